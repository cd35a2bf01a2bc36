/* What can be asked for: checked and durable, whoever asks and however many at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "spawner/requests/leftovers.h"
#include "tests/unit/control_loop.h"

/* ---- executors ---- */

#define CROWD 8

struct client {
    struct world *w;
    char name[16];
    struct df_err err;
    int result;
};

static void *create_beside_others(void *arg)
{
    struct client *c = arg;
    DF_FREE char *text = df_strf("{'metadata':{'name':'%s'},'spec':{'source':{'url':"
                                 "'file:///nowhere','kind':'directory'},'storage':{'type':'s3',"
                                 "'path':'one/place','config':{'bucket':'b','region':'r'}}}}",
                                 c->name);
    DF_JSON cJSON *doc = json(text);
    c->result = df_request_create_executor(
        &c->w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, "tester"}, NULL, &c->err);
    return NULL;
}

static void executors_that_come_at_once_do_not_get_one_place_for_their_states(void **state)
{
    struct client clients[CROWD] = {0};
    pthread_t threads[CROWD];
    int made = 0;
    for (int i = 0; i < CROWD; i++) {
        clients[i].w = *state;
        (void)snprintf(clients[i].name, sizeof(clients[i].name), "e%d", i);
        assert_int_equal(pthread_create(&threads[i], NULL, create_beside_others, &clients[i]), 0);
    }
    for (int i = 0; i < CROWD; i++) {
        (void)pthread_join(threads[i], NULL);
        made += clients[i].result == 0;
        if (clients[i].result < 0)
            assert_string_equal(clients[i].err.reason, "StorageInUse");
    }
    assert_int_equal(made, 1);
}

static void a_new_executor_has_its_first_status_and_the_marks_of_the_service(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *doc = json("{'metadata':{'name':'net','labels':{'team':'a'}},"
                              "'spec':{'source':{'url':'file:///nowhere','kind':'directory'}}}");
    DF_JSON cJSON *marks = json("{'labels':{'dayfly.dev/mark':'m'}}");
    assert_int_equal(
        df_request_create_executor(
            &w->s, &(struct df_document_request){doc, marks, DF_ROLE_ADMIN, "ann"}, NULL, NULL),
        0);
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.creator", "ann");
    assert_value(w, DF_KIND_EXECUTOR, "net", "metadata.labels.team", "a");
    DF_JSON cJSON *made = get(w, DF_KIND_EXECUTOR, "net");
    const cJSON *labels = df_json_at(made, "metadata.labels");
    assert_non_null(cJSON_GetObjectItemCaseSensitive(labels, "dayfly.dev/mark"));
}

static void labels_of_the_service_are_not_for_clients(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *doc =
        json("{'metadata':{'name':'net','labels':{'dayfly.dev/unfinished':'true'}},"
             "'spec':{'source':{'url':'file:///nowhere','kind':'directory'}}}");
    assert_int_equal(
        df_request_create_executor(
            &w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, "ann"}, NULL, &err),
        -1);
    assert_string_equal(err.reason, "InvalidDocument");
}

static void a_change_raises_the_revision_and_needs_the_newest_version(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *first = json("{'metadata':{'name':'net'},"
                                "'spec':{'source':{'url':'file:///nowhere','kind':'directory'}}}");
    assert_int_equal(
        df_request_create_executor(
            &w->s, &(struct df_document_request){first, NULL, DF_ROLE_ADMIN, "ann"}, NULL, NULL),
        0);
    DF_JSON cJSON *old = get(w, DF_KIND_EXECUTOR, "net");
    for (int i = 0; i < 2; i++) {
        DF_FREE char *text = df_strf("{'metadata':{'name':'net'},'spec':{'source':{'url':"
                                     "'file:///nowhere','kind':'directory'},'variables':{'n':%d}}}",
                                     i);
        DF_JSON cJSON *doc = json(text);
        int result = df_request_change_executor(
            &w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, "ann", DF_VERBS_ADMIN},
            old, false, NULL, &err);
        if (result != -i)
            fail_msg("%s", err.message);
    }
    assert_string_equal(err.reason, "Conflict");
    DF_JSON cJSON *changed = get(w, DF_KIND_EXECUTOR, "net");
    assert_int_equal(df_json_int(changed, "status.revision", 0), 2);
    assert_int_equal(df_json_int(changed, "spec.variables.n", -1), 0);
}

/* ---- orphans ---- */

/* A plan of no step. */
static void leave_orphan(const struct world *w, int n, bool old)
{
    const struct timespec times[2] = {{old ? 1 : 0, old ? 0 : UTIME_NOW}, {1, old ? 0 : UTIME_NOW}};
    DF_FREE char *path = df_strf("%s/blobs/data/plans/00000000-0000-4000-8000-%012d", w->dir, n);
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(futimens(fd, times), 0);
}

static void orphans_that_stay_do_not_hide_those_that_can_be_removed(void **state)
{
    enum { OLD = 20 };
    struct world *w = *state;
    DF_JSON cJSON *items = cJSON_CreateArray();
    int gone = 0;
    const cJSON *item;
    assert_int_equal(df_blob_put(w->s.blobs, "plans/first", "x", 1, NULL), 0);
    for (int i = 0; i < DF_LIMIT_ORPHANS + OLD; i++)
        leave_orphan(w, i, false);
    for (int i = 0; i < OLD; i++)
        leave_orphan(w, DF_LIMIT_ORPHANS + OLD + i, true);
    assert_int_equal(df_leftovers_orphans(&w->s, true, false, items, NULL), 0);
    cJSON_ArrayForEach (item, items)
        gone += !df_json_str(item, "kept");
    assert_int_equal(gone, OLD);
    assert_int_equal(cJSON_GetArraySize(items), DF_LIMIT_ORPHANS + OLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(executors_that_come_at_once_do_not_get_one_place_for_their_states),
        TEST(a_new_executor_has_its_first_status_and_the_marks_of_the_service),
        TEST(labels_of_the_service_are_not_for_clients),
        TEST(a_change_raises_the_revision_and_needs_the_newest_version),
        TEST(orphans_that_stay_do_not_hide_those_that_can_be_removed),
    };
    return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
