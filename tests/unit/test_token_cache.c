/* A token that many threads need, of a service that is slow, away or refuses. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/token_cache.h"
#include "common/oauth/oauth.h"

enum { CALLERS = 8, LIFE_S = 3600, EARLY_S = 300, PAUSE_MS = 5000 };

/* ---- a clock that the test moves, and a service ---- */

static int64_t now_us;

static int64_t moved_us(void)
{
    return now_us;
}

static const struct df_clock moved = {.mono_us = moved_us, .real_us = moved_us};

static void pass_s(int64_t seconds)
{
    now_us += seconds * 1000000;
}

static struct df_token_cache cache;
static int fetches;                 /* so far */
static bool is_away;                /* the service */
static bool is_forever;             /* its tokens */
static void (*before_answer)(void); /* or NULL */

static int fetch(void *arg, struct df_token *ret, struct df_err *err)
{
    assert_ptr_equal(arg, &fetches);
    if (before_answer)
        before_answer();
    fetches++;
    if (is_away)
        return df_fail(err, DF_ERR_NOT_FOUND, "no answer to request %d", fetches);
    ret->text = df_strf("token %d", fetches);
    ret->id = strdup("id");
    df_token_ends(ret, is_forever ? INT64_MAX : now_us + LIFE_S * INT64_C(1000000));
    return ret->text && ret->id ? 0 : df_fail_oom(err);
}

static int enter(void **state)
{
    (void)state;
    now_us = INT64_C(1795000000000000);
    fetches = 0;
    before_answer = NULL;
    is_away = is_forever = false;
    df_clock_install(&moved);
    df_token_cache_init(&cache, fetch, &fetches);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    df_token_cache_free(&cache);
    df_clock_install(NULL);
    return 0;
}

static void assert_token(const char *text)
{
    DF_TOKEN t = {0};
    struct df_err err = {0};
    if (df_token_cache_get(&cache, NULL, &t, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(t.text, text);
    assert_string_equal(t.id, "id");
    assert_null(t.session);
}

static void assert_failure(const char *message)
{
    DF_TOKEN t = {0};
    struct df_err err = {0};
    assert_int_equal(df_token_cache_get(&cache, NULL, &t, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY); /* it is not the caller's object that is not found */
    assert_string_equal(err.message, message);
}

/* ---- one thread ---- */

static void it_is_fetched_again_five_minutes_before_its_end(void **state)
{
    (void)state;
    assert_token("token 1");
    pass_s(LIFE_S - EARLY_S - 1);
    assert_token("token 1");
    pass_s(1);
    assert_token("token 2");
    assert_token("token 2");
}

static void one_that_never_ends_stays(void **state)
{
    (void)state;
    is_forever = true;
    assert_token("token 1");
    pass_s(INT64_C(100) * 365 * 86400);
    assert_token("token 1");
}

static void one_that_has_not_ended_outlasts_a_service_that_is_away(void **state)
{
    (void)state;
    assert_token("token 1");
    is_away = true;
    pass_s(LIFE_S - 1);
    assert_token("token 1");
    assert_int_equal(fetches, 2); /* it was asked */
    pass_s(1);
    assert_failure("no answer to request 3");
    assert_null(cache.token.text); /* a secret of no use is not kept */
    is_away = false;
    assert_token("token 4");
}

static void each_caller_asks_a_service_that_was_away(void **state)
{
    (void)state;
    is_away = true;
    assert_failure("no answer to request 1");
    assert_failure("no answer to request 2");
    is_away = false;
    assert_token("token 3");
}

static void one_that_was_refused_is_forgotten_once(void **state)
{
    (void)state;
    assert_token("token 1");
    df_token_cache_forget(&cache, "token 1");
    assert_null(cache.token.text);
    is_away = true;
    assert_failure("no answer to request 2");
    is_away = false;
    assert_token("token 3");
    df_token_cache_forget(&cache, "token 1"); /* by a thread that is late */
    assert_token("token 3");
}

static void a_renewal_keeps_it_while_the_service_is_away(void **state)
{
    DF_TOKEN refused = {0};
    (void)state;
    assert_int_equal(df_token_cache_get(&cache, NULL, &refused, NULL), 0);
    is_away = true;
    assert_false(df_token_cache_renew(&cache, &refused, PAUSE_MS));
    assert_token("token 1");
    assert_int_equal(fetches, 2);
}

static void renewals_ask_at_most_once_in_a_while(void **state)
{
    DF_TOKEN first = {0};
    DF_TOKEN second = {0};
    (void)state;
    assert_int_equal(df_token_cache_get(&cache, NULL, &first, NULL), 0);
    assert_true(df_token_cache_renew(&cache, &first, PAUSE_MS));
    assert_true(df_token_cache_renew(&cache, &first, PAUSE_MS)); /* there is another one */
    assert_int_equal(fetches, 2);
    assert_int_equal(df_token_cache_get(&cache, NULL, &second, NULL), 0);
    assert_false(df_token_cache_renew(&cache, &second, PAUSE_MS));
    pass_s(PAUSE_MS / 1000);
    assert_true(df_token_cache_renew(&cache, &second, PAUSE_MS));
    assert_token("token 3");
}

/* ---- many threads ---- */

struct caller {
    pthread_t thread;
    atomic_int id; /* of the thread; 0: it has not begun */
    struct df_token token;
    int result;
    struct df_err err;
};

static struct caller callers[CALLERS];

static bool sleeps(int id)
{
    DF_FREE char *path = df_strf("/proc/self/task/%d/stat", id);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_KIB);
    assert_int_equal(df_fs_read(path, &text, NULL), 0);
    return strstr(df_buf_str(&text), ") S ");
}

/* All but the one that fetches wait for it: where else could they sleep? */
static void await_the_others(void)
{
    for (size_t waiting = 0; waiting < CALLERS - 1; (void)sched_yield()) {
        waiting = 0;
        for (size_t i = 0; i < CALLERS; i++)
            waiting += callers[i].id && callers[i].id != gettid() && sleeps(callers[i].id);
    }
}

static const char *refused; /* a token that the callers come with */

static void *call(void *arg)
{
    struct caller *c = arg;
    c->id = gettid();
    c->result = df_token_cache_get(&cache, refused, &c->token, &c->err);
    return NULL;
}

static void call_at_once(void)
{
    int before = fetches;
    memset(callers, 0, sizeof(callers));
    before_answer = await_the_others;
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    for (size_t i = 0; i < CALLERS; i++)
        (void)pthread_join(callers[i].thread, NULL);
    assert_int_equal(fetches, before + 1);
}

static void many_callers_are_one_request(void **state)
{
    (void)state;
    call_at_once();
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(callers[i].result, 0);
        assert_string_equal(callers[i].token.text, "token 1");
        df_token_wipe(&callers[i].token);
    }
}

static void what_fails_for_one_fails_for_all_who_wait_with_it(void **state)
{
    (void)state;
    is_away = true;
    call_at_once();
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(callers[i].result, -1);
        assert_string_equal(callers[i].err.message, "no answer to request 1");
    }
}

/* They come to forget the same token, and that does not make them wait apart. */
static void what_fails_for_one_with_a_refused_token_fails_for_all(void **state)
{
    (void)state;
    assert_token("token 1");
    is_away = true;
    refused = "token 1";
    call_at_once();
    refused = NULL;
    for (size_t i = 0; i < CALLERS; i++)
        assert_string_equal(callers[i].err.message, "no answer to request 2");
}

static void a_life_of_any_length_ends_after_now(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool is_over; /* at once */
    } cases[] = {{"{\"access_token\":\"a\",\"expires_in\":60}", false},
                 {"{\"access_token\":\"a\",\"expires_in\":9007199254740991}", false},
                 {"{\"access_token\":\"a\",\"expires_in\":9223372036855}", false},
                 {"{\"access_token\":\"a\",\"expires_in\":-9007199254740991}", true}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_TOKEN t = {0};
        DF_JSON cJSON *answer = cJSON_Parse(cases[i].answer);
        assert_int_equal(df_oauth_take(answer, "x", &t, NULL), 0);
        assert_int_equal(t.until_us <= now_us, cases[i].is_over);
        assert_true(t.until_us >= now_us);
    }
}

#define cache_test(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cache_test(it_is_fetched_again_five_minutes_before_its_end),
        cache_test(one_that_never_ends_stays),
        cache_test(one_that_has_not_ended_outlasts_a_service_that_is_away),
        cache_test(each_caller_asks_a_service_that_was_away),
        cache_test(one_that_was_refused_is_forgotten_once),
        cache_test(a_renewal_keeps_it_while_the_service_is_away),
        cache_test(renewals_ask_at_most_once_in_a_while),
        cache_test(a_life_of_any_length_ends_after_now),
        cache_test(many_callers_are_one_request),
        cache_test(what_fails_for_one_fails_for_all_who_wait_with_it),
        cache_test(what_fails_for_one_with_a_refused_token_fails_for_all),
    };
    return cmocka_run_group_tests_name("token cache", tests, NULL, NULL);
}
