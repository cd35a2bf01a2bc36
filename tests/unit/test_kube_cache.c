#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/kube/cache.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/memory.h"

/* ---- the cache --------------------------------------------------------------------------------
 */

struct diary {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct df_buf text; /* names that changed() told, with the phase of what is there */
};

static void on_changed(void *arg, const struct df_kube_change *change)
{
    struct diary *d = arg;
    (void)pthread_mutex_lock(&d->lock);
    const char *phase = df_json_str(change->object, "phase");
    (void)df_buf_addf(&d->text, "%s/%s%s%s ", change->name_space, change->name, phase ? "=" : "",
                      phase ? phase : "");
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

#define JOB_LABEL "batch.kubernetes.io/job-name"
#define POD(name, job, phase, version)                                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"build\",\"uid\":\"u\","                  \
    "\"resourceVersion\":\"" version "\",\"managedFields\":[{\"manager\":\"m\"}],\"labels\":{"     \
    "\"" JOB_LABEL "\":\"" job "\"}},\"status\":{\"phase\":\"" phase "\"}}"

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
    const char *job = df_kube_label(object, JOB_LABEL);
    DF_JSON cJSON *kept = cJSON_CreateObject();
    if (!kept || df_json_add_str(kept, "name", df_kube_name(object), NULL) < 0 ||
        df_json_add_str(kept, "phase", df_json_str(object, "status.phase"), NULL) < 0 ||
        (job && df_json_add_str(kept, "job", job, NULL) < 0))
        return NULL;
    return DF_TAKE(kept);
}

static int by_job(void *arg, const cJSON *object, struct df_kube_keys *ret, struct df_err *err)
{
    (void)arg;
    (void)df_strs_add(&ret->words, df_json_str(object, "job"));
    return df_strs_check(&ret->words, err);
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

static void assert_no_object(struct df_kube_cache *c, const char *name)
{
    DF_SHARED const cJSON *kept = NULL;
    assert_int_equal(df_kube_cache_find(c, "build", name, &kept, NULL), 0);
    assert_null(kept);
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
                                      .keys = by_job,
                                      .changed = on_changed,
                                      .arg = &d};
    struct df_kube_cache *c = open_cache(k, &o);
    /* The list; a runs, c comes and goes; the second list knows no b but a d, and a as it was. */
    await(&d, "build/a=Pending build/b=Pending build/a=Running build/c=Pending build/c "
              "build/d=Pending build/b ");
    DF_SHARED const cJSON *a = NULL;
    DF_STRS struct df_strs of_j = {0};
    struct df_err err = {0};
    assert_int_equal(df_kube_cache_find(c, "build", "a", &a, &err), 0);
    assert_string_equal(df_json_str(a, "phase"), "Running");
    assert_no_object(c, "b");
    assert_int_equal(df_kube_cache_each(c, "j", add_name, &of_j, &err), 0);
    assert_int_equal(of_j.len, 2);
    assert_true(df_strs_has(&of_j, "a") && df_strs_has(&of_j, "d"));
    assert_int_equal(df_kube_cache_count(c, NULL), 2);
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
    assert_no_object(c, "a");
    assert_int_equal(df_kube_cache_count(c, NULL), 1);
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
        DF_SHARED const cJSON *kept = NULL;
        DF_JSON cJSON *pod = NULL;
        assert_int_equal(df_json_parse(cases[i].pod, strlen(cases[i].pod), &pod, NULL), 0);
        assert_int_equal(df_kube_cache_note(c, pod, true, NULL), 0);
        assert_int_equal(df_kube_cache_find(c, "build", cases[i].name, &kept, NULL), 0);
        assert_int_equal(kept != NULL, cases[i].there);
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
    DF_SHARED const cJSON *a = NULL;
    assert_int_equal(df_kube_cache_find(c, "build", "a", &a, NULL), 0);
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

/* ---- own writes -------------------------------------------------------------------------------
 */

/* Says of each change: its type, name, version; local, no-op; its number, or "initial". */
static void on_change_of_write(void *arg, const struct df_kube_change *change)
{
    struct diary *d = arg;
    (void)pthread_mutex_lock(&d->lock);
    if (!change->is_initial)
        (void)df_buf_addf(&d->text, "%d%s%s%s%s#%d ", (int)change->type, change->name,
                          change->version, change->is_local ? "-local" : "",
                          change->is_noop ? "-noop" : "", (int)change->sequence);
    (void)pthread_cond_broadcast(&d->changed);
    (void)pthread_mutex_unlock(&d->lock);
}

static uint64_t draw(void *arg)
{
    static uint64_t drawn;
    (void)arg;
    return drawn++;
}

static int by_phase(void *arg, const cJSON *object, struct df_kube_keys *ret, struct df_err *err)
{
    (void)arg, (void)err;
    ret->digest = df_json_hash(df_json_at(object, "status"), 0);
    return 0;
}

/* One list of a and b as of 10; then another, as of 20, of a alone, which was changed to
 * Running. */
static void tell_two_lists(struct kube_server *s, const struct kube_request *r,
                           struct kube_reply *a)
{
    if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        a->hold = true;
        return;
    }
    kube_say(a, 200, "",
             s->lists == 1 ? "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" POD(
                                 "a", "j", "Pending", "5") "," POD("b", "k", "Pending", "6") "]}"
                           : "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" POD(
                                 "a", "j", "Running", "15") "]}");
}

static void note(struct df_kube_cache *c, const char *text, bool is_local)
{
    DF_JSON cJSON *pod = NULL;
    assert_int_equal(df_json_parse(text, strlen(text), &pod, NULL), 0);
    assert_int_equal(df_kube_cache_note(c, pod, is_local, NULL), 0);
}

static void note_deleted(struct df_kube_cache *c, const char *text, bool is_local)
{
    DF_JSON cJSON *pod = NULL;
    assert_int_equal(df_json_parse(text, strlen(text), &pod, NULL), 0);
    df_kube_cache_note_deleted(c, pod, is_local);
}

static void list_anew(struct df_kube_cache *c)
{
    assert_int_equal(df_kube_cache_await(c, df_kube_cache_list_anew(c), NULL, NULL), 0);
}

static void what_others_write_during_an_own_write_becomes_known_behind_it(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    struct df_kube_write w, of_b;
    kube_start(&s, tell_two_lists, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache_options o = {.resource = &df_kube_pods,
                                      .name_space = "build",
                                      .keys = by_phase,
                                      .sequence = draw,
                                      .changed = on_change_of_write,
                                      .arg = &d};
    struct df_kube_cache *c = open_cache(k, &o);
    df_kube_cache_begin(c, &w, "build", "a");
    df_kube_cache_begin(c, &of_b, "build", "b");
    list_anew(c); /* a as of 15 is held back; b is not in it, but is written */
    assert_string_equal(df_buf_str(&d.text), "");
    note(c, POD("a", "j", "Pending", "12"), true); /* although the watch came as far as 20 */
    note(c, POD("a", "j", "Failed", "11"), true);  /* older: changes nothing */
    note_deleted(c, POD("b", "k", "Pending", "5"), false); /* older than what is there */
    assert_string_equal(df_buf_str(&d.text), "1a12-local-noop#0 ");
    df_kube_cache_end(c, &w);
    assert_string_equal(df_buf_str(&d.text), "1a12-local-noop#0 1a15#1 ");
    note(c, POD("b", "k", "Running", "30"), true);
    df_kube_cache_end(c, &of_b);
    list_anew(c); /* b is newer than this list */
    assert_int_equal(df_kube_cache_count(c, NULL), 2);
    assert_string_equal(df_buf_str(&d.text), "1a12-local-noop#0 1a15#1 1b30-local#2 ");
    df_kube_cache_stop(c);
    kube_stop(&s);
    diary_close(&d);
}

static void an_own_deletion_is_a_tombstone_until_the_next_list(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    struct df_kube_write w;
    kube_start(&s, tell_two_lists, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache_options o = {
        .resource = &df_kube_pods, .changed = on_change_of_write, .arg = &d};
    struct df_kube_cache *c = open_cache(k, &o);
    df_kube_cache_begin(c, &w, "build", "b");
    note_deleted(c, POD("b", "k", "Pending", "6"), true);
    note(c, POD("b", "k", "Pending", "7"), false); /* what the watch may still say of it */
    df_kube_cache_end(c, &w);
    assert_no_object(c, "b");
    list_anew(c);
    assert_int_equal(df_kube_cache_count(c, NULL), 1);
    assert_string_equal(df_buf_str(&d.text), "2b6-local#0 1a15-noop#0 ");
    df_kube_cache_stop(c);
    kube_stop(&s);
    diary_close(&d);
}

#define POD_OF(uid, version)                                                                       \
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"build\",\"uid\":\"" uid                         \
    "\",\"resourceVersion\":\"" version "\"}}"

/* The lists have the first a. After the second list it is deleted, another a is created and
 * deleted, and then the pod end is created. */
static void tell_two_of_one_name(struct kube_server *s, const struct kube_request *r,
                                 struct kube_reply *a)
{
    if (!strstr(r->target, "watch=true")) {
        kube_say(
            a, 200, "",
            "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" POD_OF("first", "5") "]}");
        return;
    }
    kube_stream(a);
    a->hold = true;
    if (s->lists == 1)
        return;
    kube_line(a, "{\"type\":\"DELETED\",\"object\":" POD_OF("first", "12") "}");
    kube_line(a, "{\"type\":\"ADDED\",\"object\":" POD_OF("second", "13") "}");
    kube_line(a, "{\"type\":\"DELETED\",\"object\":" POD_OF("second", "14") "}");
    kube_line(a, "{\"type\":\"ADDED\",\"object\":" POD("end", "j", "Pending", "15") "}");
}

struct write_of_a {
    const char *answer;  /* the object that the writer notes; NULL: the write failed */
    bool is_deletion;    /* the writer deleted the object */
    const char *changes; /* all that the owner is notified of */
};

static void check_write_of_a(const struct write_of_a *t)
{
    struct kube_server s;
    struct diary d;
    struct df_kube_write w;
    kube_start(&s, tell_two_of_one_name, NULL);
    diary_open(&d);
    DF_KUBE struct df_kube *k = kube_client(&s);
    struct df_kube_cache_options o = {
        .resource = &df_kube_pods, .changed = on_change_of_write, .arg = &d};
    struct df_kube_cache *c = open_cache(k, &o);
    df_kube_cache_begin(c, &w, "build", "a");
    list_anew(c);
    await(&d, "0end15#0 "); /* all that comes before it is held back */
    if (t->is_deletion)
        note_deleted(c, t->answer, true);
    else if (t->answer)
        note(c, t->answer, true);
    df_kube_cache_end(c, &w);
    assert_no_object(c, "a");
    if (t->answer && !t->is_deletion)
        note(c, t->answer, true); /* a late answer */
    assert_no_object(c, "a");
    assert_int_equal(df_kube_cache_count(c, NULL), 1); /* no tombstone either */
    assert_string_equal(df_buf_str(&d.text), t->changes);
    df_kube_cache_stop(c);
    kube_stop(&s);
    diary_close(&d);
}

static void what_is_deleted_created_and_deleted_during_an_own_write_is_gone_behind_it(void **state)
{
    (void)state;
    static const struct write_of_a cases[] = {
        {NULL, false, "0end15#0 2a14#0 "},
        {POD_OF("first", "11"), false, "0end15#0 1a11-local-noop#0 2a14#0 "},
        {POD_OF("second", "13"), false, "0end15#0 1a13-local-noop#0 2a14#0 "},
        {POD_OF("first", "5"), true, "0end15#0 2a5-local#0 "},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        check_write_of_a(&cases[i]);
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
    assert_int_equal(df_kube_cache_count(c, NULL), FLOOD);
    assert_peak_below(40 * 1024); /* the server's own answers included */
    df_kube_cache_stop(c);
    kube_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_objects_take_little_memory),
        cmocka_unit_test(a_cache_follows_and_tells_each_change_once),
        cmocka_unit_test(what_is_not_wanted_any_more_is_gone),
        cmocka_unit_test(an_own_write_is_there_at_once_and_never_undoes_the_watch),
        cmocka_unit_test(without_a_reducer_all_but_managed_fields_is_kept),
        cmocka_unit_test(what_others_write_during_an_own_write_becomes_known_behind_it),
        cmocka_unit_test(an_own_deletion_is_a_tombstone_until_the_next_list),
        cmocka_unit_test(what_is_deleted_created_and_deleted_during_an_own_write_is_gone_behind_it),
        cmocka_unit_test(who_waits_for_a_cache_in_vain_is_told_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
