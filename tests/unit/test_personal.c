/* Personal tokens, over a real vault: what becomes of them with the time and with their owner. The
 * real service is in tests/integration/test_tokens.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "spawner/identity/personal.h"
#include "spawner/identity/tokens.h"
#include "spawner/store/vault/vault_tokens.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

#define HOUR_US ((int64_t)3600 * 1000000)
#define DAY_US (24 * HOUR_US)

static int64_t ahead_us; /* of this machine's clocks */

static int64_t later_mono(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + ahead_us;
}

static int64_t later_real(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + ahead_us;
}

static int fill(void *bytes, size_t n)
{
    return getentropy(bytes, n);
}

static const struct df_clock later = {later_mono, later_real, fill};

struct world {
    struct df_vault *vault;
    struct df_personal *p;
    struct df_tokens *tokens;
    cJSON *grants;
};

static const char grants_text[] =
    "{'team':{'to':{'groups':['team']},'on':{'all':true},'preset':'write'},"
    "'look':{'to':{'groups':['look']},'on':{'all':true},'preset':'read'}}";

static void open_world(struct world *w, const char *dir)
{
    DF_FREE char *database = df_fs_join(dir, "dayfly.db"), *key = df_fs_join(dir, "key");
    DF_FREE char *file = df_fs_join(dir, "tokens");
    static const char line[] =
        "dev admin 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n";
    ahead_us = 0;
    df_clock_install(&later);
    assert_int_equal(df_fs_replace(file, line, strlen(line), 0600, NULL), 0);
    assert_int_equal(df_vault_open(database, key, &w->vault, NULL), 0);
    assert_int_equal(df_personal_new(w->vault, &w->p, NULL), 0);
    assert_int_equal(df_tokens_open(file, &w->tokens, NULL), 0);
    w->grants = json(grants_text);
}

static void close_world(struct world *w)
{
    df_clock_install(NULL);
    cJSON_Delete(w->grants);
    df_tokens_close(w->tokens);
    df_personal_free(w->p);
    df_vault_close(w->vault);
}
#define WORLD DF_CLEANUP(close_world) struct world

/* A person in this group, with a token of the provider that is so old. */
static struct df_caller person(const char *name, const char *group, int64_t age_us)
{
    struct df_caller c = {.known_by = DF_KNOWN_BY_OPENID, .issued_us = df_real_us() - age_us};
    (void)snprintf(c.name, sizeof(c.name), "%s", name);
    c.groups = cJSON_CreateArray();
    cJSON_AddItemToArray(c.groups, cJSON_CreateString(group));
    return c;
}

static char *make(struct world *w, const struct df_caller *owner, const char *text)
{
    DF_JSON cJSON *request = json(text), *made = NULL;
    struct df_err err = {0};
    if (df_personal_create(w->p, owner, request, &made, &err) < 0)
        fail_msg("%s", err.message);
    return strdup(df_json_text(made, "token"));
}

static char *make_of(struct world *w, const char *name, const char *group, const char *text)
{
    struct df_caller owner = person(name, group, 0);
    char *token = make(w, &owner, text);
    df_caller_free(&owner);
    return token;
}

static void note(struct world *w, const char *name, const char *group, int64_t age_us)
{
    struct df_caller c = person(name, group, age_us);
    assert_int_equal(df_personal_note(w->p, &c, NULL), 0);
    df_caller_free(&c);
}

static int look(struct world *w, const char *token, struct df_caller *ret, struct df_err *err)
{
    const struct df_personal_rules rules = {w->grants, w->tokens, true, true};
    return df_personal_caller(w->p, &rules, token, ret, err);
}

static void assert_may(struct world *w, const char *token, df_verbs verbs)
{
    struct df_caller c = {0};
    struct df_err err = {0};
    if (look(w, token, &c, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(c.granted.all, verbs);
    assert_int_equal(c.role, df_verbs_role(verbs));
    df_caller_free(&c);
}

static void assert_refused(struct world *w, const char *token, const char *reason, const char *said)
{
    struct df_caller c = {0};
    struct df_err err = {0};
    assert_int_equal(look(w, token, &c, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_string_equal(err.reason, reason);
    if (!strstr(err.message, said) || strstr(err.message, token))
        fail_msg("%s", err.message);
}

static void the_groups_of_the_newest_sign_in_count_and_no_older_token_brings_one_back(void **state)
{
    WORLD w;
    open_world(&w, *state);
    DF_FREE char *token = make_of(&w, "i#ann", "team", "{'name':'ci','preset':'write'}");
    assert_may(&w, token, DF_VERBS_WRITE);
    note(&w, "i#ann", "look", 0);
    assert_may(&w, token, DF_VERBS_READ);
    note(&w, "i#ann", "team", HOUR_US); /* good for a while, but older */
    assert_may(&w, token, DF_VERBS_READ);
    struct df_caller old = person("i#ann", "team", HOUR_US);
    DF_FREE char *other = make(&w, &old, "{'name':'other','preset':'write'}");
    df_caller_free(&old);
    assert_may(&w, other, DF_VERBS_READ);
    note(&w, "i#bob", "team", 0); /* somebody else */
    assert_may(&w, token, DF_VERBS_READ);
    note(&w, "i#ann", "none", 0);
    assert_refused(&w, token, "Forbidden", "no grant of auth.grants names i#ann");
    note(&w, "i#ann", "team", 0);
    assert_may(&w, token, DF_VERBS_WRITE);
}

static void a_person_who_stays_away_has_no_token_until_the_next_sign_in(void **state)
{
    WORLD w;
    open_world(&w, *state);
    DF_FREE char *token =
        make_of(&w, "i#ann", "team", "{'name':'ci','preset':'write','expires':'90d'}");
    DF_FREE char *of_file = NULL;
    struct df_caller dev = {.known_by = DF_KNOWN_BY_TOKEN, .name = "dev"};
    of_file = make(&w, &dev, "{'name':'ci','preset':'read','expires':'90d'}");
    ahead_us = DF_PERSONAL_IDLE_DAYS * DAY_US - HOUR_US;
    assert_may(&w, token, DF_VERBS_WRITE);
    ahead_us += 2 * HOUR_US;
    assert_refused(&w, token, "Unauthorized",
                   "i#ann, whose personal token this is, has not signed");
    assert_may(&w, of_file, DF_VERBS_READ); /* the file says whether its owner is there */
    note(&w, "i#ann", "team", 0);
    assert_may(&w, token, DF_VERBS_WRITE);
    ahead_us += DF_PERSONAL_IDLE_DAYS * DAY_US - HOUR_US; /* the note came within the hour */
    assert_may(&w, token, DF_VERBS_WRITE);
    ahead_us += 35 * DAY_US;
    assert_refused(&w, token, "Unauthorized", "personal token ci of i#ann expired at");
}

static size_t entries(struct world *w)
{
    DF_STRS struct df_strs ids = {0};
    assert_int_equal(df_vault_tokens_list(w->vault, &ids, NULL), 0);
    return ids.len;
}

static void
what_has_expired_is_known_for_a_week_and_then_all_of_its_owner_is_forgotten(void **state)
{
    WORLD w;
    open_world(&w, *state);
    DF_FREE char *brief =
        make_of(&w, "i#ann", "team", "{'name':'brief','preset':'read','expires':'1h'}");
    DF_FREE char *token = make_of(&w, "i#ann", "team", "{'name':'ci','preset':'read'}");
    DF_FREE char *other = make_of(&w, "i#bob", "team", "{'name':'ci','preset':'read'}");
    ahead_us = DAY_US;
    assert_int_equal(df_personal_sweep(w.p, NULL), 0);
    assert_refused(&w, brief, "Unauthorized", "expired at");
    ahead_us = DF_PERSONAL_SHOWN_DAYS * DAY_US + 2 * HOUR_US;
    assert_int_equal(df_personal_sweep(w.p, NULL), 0);
    assert_refused(&w, brief, "Unauthorized", "was revoked, or expired long ago");
    assert_may(&w, token, DF_VERBS_READ);
    assert_int_equal(entries(&w), 2);
    const struct df_personal_owner ann = {"i#ann", "openid"}, any = {"i#bob", NULL},
                                   file = {"i#bob", "tokenFile"};
    assert_int_equal(df_personal_revoke(w.p, &ann, "ci", NULL), 0);
    assert_int_equal(entries(&w), 1);
    note(&w, "i#ann", "team", 0); /* who has no token is not written down */
    assert_int_equal(entries(&w), 1);
    assert_refused(&w, token, "Unauthorized", "was revoked");
    assert_int_equal(df_personal_revoke(w.p, &file, NULL, NULL), -1);
    assert_int_equal(df_personal_revoke(w.p, &any, NULL, NULL), 0);
    assert_int_equal(entries(&w), 0);
    assert_refused(&w, other, "Unauthorized", "was revoked");
}

static void a_use_is_written_down_once_in_an_hour_and_never_revives_a_token(void **state)
{
    WORLD w;
    open_world(&w, *state);
    DF_FREE char *token = make_of(&w, "i#ann", "team", "{'name':'ci','preset':'read'}");
    const struct df_personal_owner ann = {"i#ann", "openid"};
    char first[DF_TIME_LEN] = "";
    static const struct {
        int64_t ahead_us;
        bool is_new;
    } cases[] = {{0, true}, {HOUR_US / 2, false}, {HOUR_US + DAY_US, true}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *list = NULL;
        ahead_us = cases[i].ahead_us;
        assert_may(&w, token, DF_VERBS_READ);
        assert_int_equal(df_personal_list(w.p, &ann, &list, NULL), 0);
        const char *at = df_json_text(list->child, "lastUsedAt");
        assert_null(df_json_at(list->child, "digest"));
        assert_int_equal(strcmp(at, first) != 0, cases[i].is_new);
        (void)snprintf(first, sizeof(first), "%s", at);
    }
    assert_int_equal(df_personal_revoke(w.p, &ann, "ci", NULL), 0);
    assert_refused(&w, token, "Unauthorized", "was revoked");
    assert_int_equal(entries(&w), 0);
}

/* Of the same name, one of the file and one of the provider. */
static void people_of_one_name_have_tokens_of_their_own(void **state)
{
    WORLD w;
    open_world(&w, *state);
    struct df_caller dev = {.known_by = DF_KNOWN_BY_TOKEN, .name = "dev"};
    struct df_caller local = {.known_by = DF_KNOWN_BY_LOCAL, .name = "dev"};
    DF_FREE char *of_file = make(&w, &dev, "{'name':'ci','preset':'admin'}");
    DF_FREE char *of_person = make_of(&w, "dev", "look", "{'name':'ci','preset':'admin'}");
    DF_FREE char *of_user = make(&w, &local, "{'name':'ci','preset':'admin'}");
    assert_may(&w, of_file, DF_VERBS_ADMIN);
    assert_may(&w, of_person, DF_VERBS_READ);
    assert_refused(&w, of_user, "Unauthorized", "dev, whose personal token this is, is not among");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(the_groups_of_the_newest_sign_in_count_and_no_older_token_brings_one_back),
        scratch_test(a_person_who_stays_away_has_no_token_until_the_next_sign_in),
        scratch_test(what_has_expired_is_known_for_a_week_and_then_all_of_its_owner_is_forgotten),
        scratch_test(a_use_is_written_down_once_in_an_hour_and_never_revives_a_token),
        scratch_test(people_of_one_name_have_tokens_of_their_own),
    };
    return cmocka_run_group_tests_name("personal", tests, NULL, NULL);
}
