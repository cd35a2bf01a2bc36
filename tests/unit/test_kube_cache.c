#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/kube/cache.h"
#include "common/kube/store.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/memory.h"

/* ---- the store --------------------------------------------------------------------------------
 */

static int put(struct df_kube_store *s, const char *name, const char *version, const char *index,
               struct df_err *err)
{
    const struct df_packed text = {name, (uint32_t)strlen(name), 0, NULL};
    struct df_kube_item item = {"ns", name, "u", version, index, &text};
    return df_kube_store_put(s, &item, err);
}

/* The texts of an index word are these letters, in any order. */
static void assert_texts(const struct df_kube_store *s, const char *index, const char *letters)
{
    DF_PACKED_LIST struct df_packed_list texts = {0};
    assert_int_equal(df_kube_store_texts(s, index, &texts, NULL), 0);
    assert_int_equal(texts.len, strlen(letters));
    for (size_t i = 0; i < texts.len; i++)
        assert_non_null(strchr(letters, *(const char *)texts.items[i].bytes));
}

static void an_entry_is_found_by_its_whole_name_and_replaced(void **state)
{
    (void)state;
    struct df_kube_store s;
    assert_int_equal(df_kube_store_init(&s, NULL), 0);
    assert_int_equal(put(&s, "a", "1", "", NULL), 0);
    assert_int_equal(put(&s, "a", "2", "", NULL), 0);
    assert_int_equal(s.len, 1);
    assert_string_equal(df_kube_store_find(&s, "ns", "a")->version, "2");
    assert_null(df_kube_store_find(&s, "n", "sa"));
    assert_null(df_kube_store_find(&s, "", "a"));
    df_kube_store_free(&s);
}

static void the_index_finds_all_of_a_word_and_forgets_what_is_gone(void **state)
{
    (void)state;
    struct df_kube_store s;
    assert_int_equal(df_kube_store_init(&s, NULL), 0);
    assert_int_equal(put(&s, "a", "1", "j", NULL), 0);
    assert_int_equal(put(&s, "b", "2", "j", NULL), 0);
    assert_int_equal(put(&s, "c", "3", "k", NULL), 0);
    assert_int_equal(put(&s, "d", "4", "", NULL), 0);
    assert_int_equal(put(&s, "b", "5", "k", NULL), 0); /* moves to another word */
    assert_true(df_kube_store_remove(&s, "ns", "a", "6"));
    assert_texts(&s, "j", "");
    assert_texts(&s, "k", "bc");
    assert_texts(&s, NULL, "bcd");
    df_kube_store_free(&s);
}

static void an_older_version_neither_replaces_nor_removes(void **state)
{
    (void)state;
    struct df_kube_store s;
    assert_int_equal(df_kube_store_init(&s, NULL), 0);
    assert_int_equal(put(&s, "a", "10", "", NULL), 0);
    assert_int_equal(df_kube_store_look(&s, "ns", "a", "u", "9"), DF_KUBE_PUT_OLDER);
    assert_int_equal(df_kube_store_look(&s, "ns", "a", "u", "10"), DF_KUBE_PUT_SAME);
    assert_int_equal(df_kube_store_look(&s, "ns", "a", "v", "10"), DF_KUBE_PUT_CHANGED);
    assert_int_equal(df_kube_store_look(&s, "ns", "a", "u", "11"), DF_KUBE_PUT_CHANGED);
    assert_int_equal(df_kube_store_look(&s, "ns", "b", "u", "1"), DF_KUBE_PUT_CHANGED);
    assert_false(df_kube_store_remove(&s, "ns", "a", "9"));
    assert_false(df_kube_store_remove(&s, "ns", "b", "99"));
    assert_true(df_kube_store_remove(&s, "ns", "a", "10"));
    assert_int_equal(s.len, 0);
    df_kube_store_free(&s);
}

static void a_sweep_takes_what_the_list_did_not_tell(void **state)
{
    (void)state;
    struct df_kube_store s;
    assert_int_equal(df_kube_store_init(&s, NULL), 0);
    assert_int_equal(put(&s, "a", "1", "j", NULL), 0);
    assert_int_equal(put(&s, "b", "2", "j", NULL), 0);
    assert_int_equal(put(&s, "newer-than-the-list", "10", "", NULL), 0);
    df_kube_store_begin(&s);
    (void)df_kube_store_look(&s, "ns", "b", "u", "2");
    assert_int_equal(put(&s, "c", "3", "j", NULL), 0);
    struct df_kube_entry *gone = df_kube_store_sweep(&s, "9");
    assert_non_null(gone);
    assert_string_equal(gone->name, "a");
    assert_null(gone->next);
    free(gone);
    assert_int_equal(s.len, 3);
    assert_texts(&s, "j", "bc");
    df_kube_store_free(&s);
}

static void more_objects_than_the_cap_are_refused(void **state)
{
    (void)state;
    struct df_kube_store s;
    struct df_err err = {0};
    assert_int_equal(df_kube_store_init(&s, NULL), 0);
    for (int i = 0; i < DF_LIMIT_KUBE_OBJECTS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "o%d", i);
        assert_int_equal(put(&s, name, "1", "", NULL), 0);
    }
    assert_int_equal(put(&s, "one-more", "1", "", &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(put(&s, "o7", "2", "", &err), 0); /* a known one may change */
    df_kube_store_free(&s);
}

/* ---- the cache --------------------------------------------------------------------------------
 */

struct diary {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct df_buf text; /* names that changed() told */
};

static void on_changed(void *arg, const char *name_space, const char *name)
{
    struct diary *d = arg;
    (void)pthread_mutex_lock(&d->lock);
    (void)df_buf_addf(&d->text, "%s/%s ", name_space, name);
    (void)pthread_cond_broadcast(&d->changed);
    (void)pthread_mutex_unlock(&d->lock);
}

static void diary_open(struct diary *d)
{
    *d = (struct diary){.text = DF_BUF_INIT(64 * DF_MIB)};
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_cond_init(&d->changed, NULL);
}

static void diary_close(struct diary *d)
{
    df_buf_free(&d->text);
    (void)pthread_cond_destroy(&d->changed);
    (void)pthread_mutex_destroy(&d->lock);
}

static void await(struct diary *d, const char *text)
{
    (void)pthread_mutex_lock(&d->lock);
    while (strcmp(df_buf_str(&d->text), text) != 0)
        (void)pthread_cond_wait(&d->changed, &d->lock);
    (void)pthread_mutex_unlock(&d->lock);
}

#define POD(name, job, phase, version)                                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"build\",\"uid\":\"u\","                  \
    "\"resourceVersion\":\"" version "\",\"managedFields\":[{\"manager\":\"m\"}],\"labels\":{"     \
    "\"batch.kubernetes.io/job-name\":\"" job "\"}},\"status\":{\"phase\":\"" phase "\"}}"

static void tell_pods(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    if (!strstr(r->target, "watch=true")) {
        kube_say(a, 200, "",
                 s->lists == 1
                     ? "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" POD(
                           "a", "j", "Pending", "5") "," POD("b", "k", "Pending", "6") "]}"
                     : "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" POD(
                           "a", "j", "Running", "11") "," POD("d", "j", "Pending", "15") "]}");
        return;
    }
    kube_stream(a);
    a->hold = true;
    if (s->watches > 1)
        return;
    kube_line(a, "{\"type\":\"MODIFIED\",\"object\":" POD("a", "j", "Running", "11") "}");
    kube_line(a, "{\"type\":\"ADDED\",\"object\":" POD("c", "j", "Pending", "12") "}");
    kube_line(a, "{\"type\":\"DELETED\",\"object\":" POD("c", "j", "Failed", "13") "}");
    kube_line(a, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}");
}

static cJSON *keep_phase(void *arg, const cJSON *object)
{
    (void)arg;
    DF_JSON cJSON *kept = cJSON_CreateObject();
    if (!kept || df_json_add_str(kept, "name", df_kube_name(object), NULL) < 0 ||
        df_json_add_str(kept, "phase", df_json_str(object, "status.phase"), NULL) < 0)
        return NULL;
    return DF_TAKE(kept);
}

static const char *by_job(void *arg, const cJSON *object)
{
    (void)arg;
    return df_kube_label(object, "batch.kubernetes.io/job-name");
}

static int add_name(void *arg, const cJSON *kept, struct df_err *err)
{
    (void)err;
    return df_strs_add(arg, df_json_str(kept, "name"));
}

static struct df_kube_cache *open_cache(struct df_kube *k, const struct df_kube_cache_options *o)
{
    struct df_kube_cache *c = NULL;
    struct df_err err = {0};
    if (df_kube_cache_start(k, o, &c, &err) < 0 || df_kube_cache_wait(c, -1, NULL, &err) < 0)
        fail_msg("%s", err.message);
    return c;
}

static void a_cache_follows_and_tells_each_change_once(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, tell_pods, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache_options o = {.resource = &df_kube_pods,
                                      .keep = keep_phase,
                                      .index = by_job,
                                      .changed = on_changed,
                                      .arg = &d};
    struct df_kube_cache *c = open_cache(k, &o);
    /* The list; a runs, c comes and goes; the second list knows no b but a d, and a as it was. */
    await(&d, "build/a build/b build/a build/c build/c build/d build/b ");
    DF_JSON cJSON *a = NULL;
    DF_STRS struct df_strs of_j = {0};
    struct df_err err = {0};
    assert_int_equal(df_kube_cache_get(c, "build", "a", &a, &err), 0);
    assert_string_equal(df_json_str(a, "phase"), "Running");
    assert_int_equal(df_kube_cache_get(c, "build", "b", &a, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_int_equal(df_kube_cache_each(c, "j", add_name, &of_j, &err), 0);
    assert_int_equal(of_j.len, 2);
    assert_true(df_strs_has(&of_j, "a") && df_strs_has(&of_j, "d"));
    assert_int_equal(df_kube_cache_count(c), 2);
    df_kube_cache_stop(c);
    kube_stop(&s);
    diary_close(&d);
}

static bool is_pending(void *arg, const cJSON *object)
{
    (void)arg;
    return df_streq(df_json_str(object, "status.phase"), "Pending");
}

static void what_is_not_wanted_any_more_is_gone(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, tell_pods, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache_options o = {
        .resource = &df_kube_pods, .wants = is_pending, .changed = on_changed, .arg = &d};
    struct df_kube_cache *c = open_cache(k, &o);
    /* As above, but that a goes when it runs. */
    await(&d, "build/a build/b build/a build/c build/c build/d build/b ");
    DF_JSON cJSON *a = NULL;
    assert_int_equal(df_kube_cache_get(c, "build", "a", &a, NULL), -1);
    assert_int_equal(df_kube_cache_count(c), 1);
    df_kube_cache_stop(c);
    kube_stop(&s);
    diary_close(&d);
}

static void an_own_write_is_there_at_once_and_never_undoes_the_watch(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, tell_pods, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache_options o = {.resource = &df_kube_pods, .changed = on_changed, .arg = &d};
    struct df_kube_cache *c = open_cache(k, &o);
    await(&d, "build/a build/b build/a build/c build/c build/d build/b ");
    static const struct {
        const char *pod, *name;
        bool there;
    } cases[] = {
        {POD("c", "j", "Pending", "12"), "c", false}, /* gone by the watch at 13 */
        {POD("a", "j", "Pending", "10"), "a", true},
        {POD("m", "j", "Pending", "17"), "m", false}, /* the list as of 20 did not have it */
        {POD("n", "j", "Pending", "30"), "n", true},  /* the watch has not come so far */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *pod = NULL, *kept = NULL;
        assert_int_equal(df_json_parse(cases[i].pod, strlen(cases[i].pod), &pod, NULL), 0);
        assert_int_equal(df_kube_cache_note(c, pod, NULL), 0);
        int found = df_kube_cache_get(c, "build", cases[i].name, &kept, NULL);
        assert_int_equal(found, cases[i].there ? 0 : -1);
        if (df_streq(cases[i].name, "a"))
            assert_string_equal(df_json_str(kept, "status.phase"), "Running");
    }
    await(&d, "build/a build/b build/a build/c build/c build/d build/b build/n ");
    df_kube_cache_stop(c);
    kube_stop(&s);
    diary_close(&d);
}

static void without_a_reducer_all_but_managed_fields_is_kept(void **state)
{
    (void)state;
    struct kube_server s;
    kube_start(&s, tell_pods, NULL);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache *c =
        open_cache(k, &(struct df_kube_cache_options){.resource = &df_kube_pods});
    DF_JSON cJSON *a = NULL;
    assert_int_equal(df_kube_cache_get(c, "build", "a", &a, NULL), 0);
    assert_string_equal(df_kube_uid(a), "u");
    assert_null(df_json_at(a, "metadata.managedFields"));
    df_kube_cache_stop(c);
    kube_stop(&s);
}

static void deny(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)s, (void)r;
    kube_status(a, 403, "Forbidden", "pods is forbidden: nobody cannot list");
}

static bool is_true = true;
static void who_waits_for_a_cache_in_vain_is_told_why(void **state)
{
    (void)state;
    struct kube_server s;
    kube_start(&s, deny, NULL);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache_options o = {.resource = &df_kube_pods};
    struct df_kube_cache *c = NULL;
    struct df_err err = {0};
    assert_int_equal(df_kube_cache_start(k, &o, &c, &err), 0);
    do /* until the first answer came */
        assert_int_equal(df_kube_cache_wait(c, 1, NULL, &err), -1);
    while (!strstr(err.message, "nobody cannot list"));
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_int_equal(df_kube_cache_wait(c, -1, &is_true, &err), -1);
    df_kube_cache_stop(c);
    kube_stop(&s);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

enum { FLOOD = SANITIZED ? 400 : 10000 };

/* Pods of the size that they have with their managed fields: 6 KiB. */
static void tell_many(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    (void)s;
    if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        a->hold = true;
        return;
    }
    long limit = kube_parameter(r->target, "limit"), from = kube_parameter(r->target, "continue");
    from = from < 0 ? 0 : from;
    long to = from + limit < FLOOD ? from + limit : FLOOD;
    DF_BUF struct df_buf body = DF_BUF_INIT(64 * DF_MIB);
    (void)df_buf_adds(&body, "{\"metadata\":{\"resourceVersion\":\"99999\"");
    if (to < FLOOD)
        (void)df_buf_addf(&body, ",\"continue\":\"%ld\"", to);
    (void)df_buf_adds(&body, "},\"items\":[");
    for (long i = from; i < to; i++) {
        (void)df_buf_addf(&body,
                          "%s{\"metadata\":{\"name\":\"net-%ld-plan-abcde\",\"namespace\":"
                          "\"build\",\"uid\":\"11111111-2222-3333-4444-555555555555\","
                          "\"resourceVersion\":\"%ld\",\"managedFields\":[",
                          i > from ? "," : "", i, i + 1);
        for (int f = 0; f < 150; f++)
            (void)df_buf_addf(&body, "%s{\"f:field-%d\":{\"f:of\":{}}}", f ? "," : "", f);
        (void)df_buf_adds(&body, "]},\"status\":{\"phase\":\"Running\"}}");
    }
    (void)df_buf_adds(&body, "]}");
    kube_say(a, 200, "", df_buf_str(&body));
}

static void ten_thousand_objects_take_little_memory(void **state)
{
    (void)state;
    struct kube_server s;
    kube_start(&s, tell_many, NULL);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache *c = open_cache(
        k, &(struct df_kube_cache_options){.resource = &df_kube_pods, .keep = keep_phase});
    assert_int_equal(df_kube_cache_count(c), FLOOD);
    assert_peak_below(40 * 1024); /* the server's own answers included */
    df_kube_cache_stop(c);
    kube_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_objects_take_little_memory),
        cmocka_unit_test(an_entry_is_found_by_its_whole_name_and_replaced),
        cmocka_unit_test(the_index_finds_all_of_a_word_and_forgets_what_is_gone),
        cmocka_unit_test(an_older_version_neither_replaces_nor_removes),
        cmocka_unit_test(a_sweep_takes_what_the_list_did_not_tell),
        cmocka_unit_test(more_objects_than_the_cap_are_refused),
        cmocka_unit_test(a_cache_follows_and_tells_each_change_once),
        cmocka_unit_test(what_is_not_wanted_any_more_is_gone),
        cmocka_unit_test(an_own_write_is_there_at_once_and_never_undoes_the_watch),
        cmocka_unit_test(without_a_reducer_all_but_managed_fields_is_kept),
        cmocka_unit_test(who_waits_for_a_cache_in_vain_is_told_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
