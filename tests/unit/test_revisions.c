/* The history of an executor: a revision for each accepted spec, whatever comes between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/difference.h"
#include "spawner/model/revision.h"
#include "spawner/model/stamp.h"
#include "spawner/requests/retention.h"
#include "spawner/requests/revisions.h"
#include "tests/unit/applied_words.h"

#define SPEC(n) "{'metadata':{'name':'net'},'spec':{" SOURCE ",'variables':{'n':" #n "}}}"

static void create(struct world *w, const char *text, const char *actor)
{
    struct df_err err = {0};
    DF_JSON cJSON *doc = json(text);
    if (df_request_create_executor(
            &w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, actor}, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static int try_change(struct world *w, const char *text, enum df_role role, const char *actor,
                      struct df_err *err)
{
    DF_JSON cJSON *old = get(w, DF_KIND_EXECUTOR, "net"), *doc = json(text);
    return df_request_change_executor(
        &w->s, &(struct df_document_request){doc, NULL, role, actor, df_role_verbs(role)}, old,
        false, NULL, err);
}

static void change(struct world *w, const char *text, const char *actor)
{
    struct df_err err = {0};
    if (try_change(w, text, DF_ROLE_ADMIN, actor, &err) < 0)
        fail_msg("%s", err.message);
}

static int count(struct world *w)
{
    int64_t n = 0;
    assert_int_equal(
        df_store_count(w->s.store, DF_KIND_REVISION, "dayfly.dev/executor=net", &n, NULL), 0);
    return (int)n;
}

static void forget(struct world *w, const char *name)
{
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_REVISION, name, NULL, NULL), 0);
}

/* ---- what makes one ---- */

static void each_spec_is_a_revision_with_its_author(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    change(w, SPEC(2), "bob");
    assert_int_equal(count(w), 2);
    assert_value(w, DF_KIND_REVISION, "net-r1", "status.author", "ann");
    assert_value(w, DF_KIND_REVISION, "net-r1", "spec.executor.variables.n", "1");
    assert_value(w, DF_KIND_REVISION, "net-r2", "status.author", "bob");
    assert_value(w, DF_KIND_REVISION, "net-r2", "spec.number", "2");
    DF_FREE char *at = value_of(w, DF_KIND_EXECUTOR, "net", "status.revised.at");
    assert_value(w, DF_KIND_REVISION, "net-r2", "status.at", at);
}

static void names_of_integrations_and_secrets_are_part_of_it(void **state)
{
    struct world *w = *state;
    create(w, "{'metadata':{'name':'net'},'spec':{" SOURCE "}}", "ann");
    change(w, "{'metadata':{'name':'net'},'spec':{" SOURCE ",'secrets':[{'name':'db'}]}}", "ann");
    change(w,
           "{'metadata':{'name':'net'},'spec':{" SOURCE ",'secrets':[{'name':'db'}],"
           "'integrations':[{'provider':'aws','secretRef':{'name':'db'}}]}}",
           "ann");
    assert_int_equal(count(w), 3);
    assert_value(w, DF_KIND_REVISION, "net-r2", "spec.executor.secrets", "[{\"name\":\"db\"}]");
}

static void what_changes_no_spec_makes_none(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    create(w, SPEC(1), "ann");
    change(w,
           "{'metadata':{'name':'net','labels':{'a':'b'}},'spec':{" SOURCE ",'variables':{'n':1}}}",
           "bob");
    assert_int_equal(try_change(w, SPEC(2), DF_ROLE_WRITE, "eve", &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(
        try_change(w, "{'metadata':{'name':'net'},'spec':{}}", DF_ROLE_ADMIN, "eve", &err), -1);
    assert_int_equal(count(w), 1);
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.revised.by", "ann");
}

static void a_run_says_the_revision_that_it_was_made_of(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    change(w, SPEC(2), "ann");
    run(w, "net", ASKING);
    change(w, SPEC(3), "ann");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.executorRevision", "2");
}

/* ---- many at once ---- */

#define CROWD 50

struct client {
    struct world *w;
    int n;
};

static void *change_beside_others(void *arg)
{
    const struct client *c = arg;
    DF_FREE char *text =
        df_strf("{'metadata':{'name':'net'},'spec':{" SOURCE ",'variables':{'n':%d}}}", c->n);
    struct df_err err = {.reason = "Conflict"};
    for (int result = -1; result < 0;) {
        assert_string_equal(err.reason, "Conflict");
        err = (struct df_err){0};
        result = try_change(c->w, text, DF_ROLE_ADMIN, "ann", &err);
    }
    return NULL;
}

static void fifty_changes_at_once_are_fifty_revisions(void **state)
{
    struct world *w = *state;
    struct client clients[CROWD];
    pthread_t threads[CROWD];
    bool seen[CROWD] = {0};
    create(w, SPEC(1000), "ann");
    start(w);
    for (int i = 0; i < CROWD; i++) {
        clients[i] = (struct client){w, i};
        assert_int_equal(pthread_create(&threads[i], NULL, change_beside_others, &clients[i]), 0);
    }
    for (int i = 0; i < CROWD; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(count(w), CROWD + 1);
    for (int i = 2; i <= CROWD + 1; i++) {
        char name[64];
        assert_int_equal(df_revision_name("net", i, name, NULL), 0);
        DF_JSON cJSON *doc = get(w, DF_KIND_REVISION, name);
        int64_t n = df_json_int(doc, "spec.executor.variables.n", -1);
        assert_in_range(n, 0, CROWD - 1);
        assert_false(seen[n]);
        seen[n] = true;
    }
}

/* ---- between the writes ---- */

static void the_loop_makes_up_for_one_that_a_crash_cut_off(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    change(w, SPEC(2), "bob");
    forget(w, "net-r2");
    start(w);
    await_value(w, DF_KIND_REVISION, "net-r2", "status.author", "bob");
    assert_int_equal(count(w), 2);
}

/* No loop runs here. */
static void the_next_change_makes_up_for_it_as_well(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    forget(w, "net-r1");
    change(w, SPEC(2), "bob");
    assert_int_equal(count(w), 2);
    assert_value(w, DF_KIND_REVISION, "net-r1", "status.author", "ann");
}

/* As an older version left it. */
static int drop_revised(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    (void)err;
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(doc, "status"), "revised");
    return 0;
}

static void an_executor_of_an_older_version_gets_one_without_author(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_EXECUTOR, "net", drop_revised, NULL, NULL, NULL), 0);
    start(w);
    await_value(w, DF_KIND_REVISION, "net-r1", "spec.number", "1");
    assert_value(w, DF_KIND_REVISION, "net-r1", "status.author", "");
    DF_FREE char *at = value_of(w, DF_KIND_REVISION, "net-r1", "status.at");
    assert_string_not_equal(at, "");
}

static void keeping_it_twice_is_keeping_it_once(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    DF_JSON cJSON *executor = get(w, DF_KIND_EXECUTOR, "net");
    DF_JSON cJSON *before = get(w, DF_KIND_REVISION, "net-r1");
    assert_true(df_revision_is_kept(&w->s, executor));
    assert_int_equal(df_revision_keep(&w->s, executor, NULL), 0);
    assert_value(w, DF_KIND_REVISION, "net-r1", "metadata.resourceVersion",
                 df_json_str(before, "metadata.resourceVersion"));
}

/* ---- with kubectl ---- */

static void an_edit_with_kubectl_is_one_with_its_writer_if_it_is_accepted(void **state)
{
    struct world *w = *state;
    believe_stamps(w);
    start(w);
    apply_as(w, DF_KIND_EXECUTOR, "net", "{" SOURCE "}", "admin ann");
    await_value(w, DF_KIND_REVISION, "net-r1", "status.author", "ann");
    patch(w, DF_KIND_EXECUTOR, "net", "metadata", "annotations",
          "{'dayfly.dev/requested-by':'admin bob'}");
    patch(w, DF_KIND_EXECUTOR, "net", "spec", "description", "'bad arguments'");
    await_value(w, DF_KIND_REVISION, "net-r2", "status.author", "bob");
    patch(w, DF_KIND_EXECUTOR, "net", "spec", "arguments", "['-destroy']");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.status", "refused");
    patch(w, DF_KIND_EXECUTOR, "net", "spec", "arguments", "[]");
    await_value(w, DF_KIND_REVISION, "net-r4", "status.author", "bob");
    assert_int_equal(count(w), 3);
}

static void one_that_somebody_else_wrote_is_removed(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    start(w);
    apply(w, DF_KIND_REVISION, "net-r7", "{'executorRef':{'name':'net'},'number':7}");
    await_gone(w, DF_KIND_REVISION, "net-r7");
    assert_int_equal(count(w), 1);
}

static void one_that_stands_in_the_way_is_replaced(void **state)
{
    struct world *w = *state;
    apply(w, DF_KIND_REVISION, "net-r1", "{'executorRef':{'name':'net'},'number':1}");
    create(w, SPEC(1), "ann");
    assert_value(w, DF_KIND_REVISION, "net-r1", "status.author", "ann");
    assert_int_equal(count(w), 1);
}

static void the_present_one_comes_back_when_it_is_deleted(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    change(w, SPEC(2), "bob");
    start(w);
    delete (w, DF_KIND_REVISION, "net-r1");
    await_gone(w, DF_KIND_REVISION, "net-r1");
    DF_FREE char *uid = value_of(w, DF_KIND_REVISION, "net-r2", "metadata.uid");
    delete (w, DF_KIND_REVISION, "net-r2");
    for (bool is_new = false; !is_new;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *now = value_of(w, DF_KIND_REVISION, "net-r2", "metadata.uid");
        is_new = *now && !df_streq(now, uid);
        if (!is_new)
            wait_for_change(w, mark);
    }
    assert_value(w, DF_KIND_REVISION, "net-r2", "status.author", "bob");
    assert_true(is_audited(w, DF_STAMP_NOBODY, "admin", "delete", "done"));
}

/* ---- their end ---- */

static void they_go_with_their_executor(void **state)
{
    struct world *w = *state;
    create(w, SPEC(1), "ann");
    change(w, SPEC(2), "ann");
    create(w, "{'metadata':{'name':'other'},'spec':{" SOURCE "}}", "ann");
    assert_int_equal(df_request_delete_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "ann", NULL),
                     0);
    assert_int_equal(count(w), 0);
    assert_value(w, DF_KIND_REVISION, "other-r1", "spec.number", "1");
    create(w, SPEC(3), "ann");
    assert_value(w, DF_KIND_REVISION, "net-r1", "spec.executor.variables.n", "3");
}

static void retention_keeps_the_newest_of_each_executor(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *removed = NULL;
    w->config.retain_revisions = 3;
    create(w, SPEC(0), "ann");
    for (int i = 0; i < 10; i++) {
        DF_FREE char *text =
            df_strf("{'metadata':{'name':'net'},'spec':{" SOURCE ",'variables':{'n':%d}}}", 10 + i);
        change(w, text, "ann");
    }
    create(w, "{'metadata':{'name':'other'},'spec':{" SOURCE "}}", "ann");
    assert_int_equal(df_retention_apply(&w->s, false, &removed, NULL), 0);
    assert_int_equal(count(w), 3);
    assert_int_equal(cJSON_GetArraySize(removed), 8);
    assert_value(w, DF_KIND_REVISION, "net-r9", "spec.number", "9");
    assert_value(w, DF_KIND_REVISION, "other-r1", "spec.number", "1");
    w->config.retain_revisions = 0;
    cJSON_Delete(removed);
    assert_int_equal(df_retention_apply(&w->s, false, &removed, NULL), 0);
    assert_int_equal(count(w), 3);
}

/* A slow change that stored its revision when the executor was gone already. */
static void retention_takes_those_without_an_executor(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *removed = NULL, *executor = NULL;
    create(w, SPEC(1), "ann");
    executor = get(w, DF_KIND_EXECUTOR, "net");
    assert_int_equal(df_request_delete_executor(&w->s, "net", DF_VERBS_ADMIN, NULL, "ann", NULL),
                     0);
    assert_int_equal(df_revision_keep(&w->s, executor, NULL), 0);
    assert_int_equal(count(w), 1);
    assert_int_equal(df_retention_apply(&w->s, false, &removed, NULL), 0);
    assert_int_equal(count(w), 0);
}

/* ---- differences ---- */

static const struct {
    const char *old, *now, *expected;
} differences[] = {
    {"{'a':1}", "{'a':1}", "[]"},
    {"{'a':1}", "{'a':2}", "[{'path':'spec.a','old':1,'new':2}]"},
    {"{'a':1}", "{}", "[{'path':'spec.a','old':1}]"},
    {"{}", "{'a':{'b':1}}", "[{'path':'spec.a','new':{'b':1}}]"},
    {"{'a':{'b':1,'c':2}}", "{'a':{'b':1,'c':3}}", "[{'path':'spec.a.c','old':2,'new':3}]"},
    {"{'a':['x']}", "{'a':['x','y']}", "[{'path':'spec.a','old':['x'],'new':['x','y']}]"},
    {"{'s':[{'name':'p','as':'env'},{'name':'q'}]}", "{'s':[{'name':'q'},{'name':'p'}]}",
     "[{'path':'spec.s[p].as','old':'env'}]"},
    {"{'s':[{'name':'p'}]}", "{'s':[]}", "[{'path':'spec.s[p]','old':{'name':'p'}}]"},
    {"{'s':[{'provider':'aws'}]}", "{'s':[{'name':'p'}]}",
     "[{'path':'spec.s','old':[{'provider':'aws'}],'new':[{'name':'p'}]}]"},
    {"{'environment':[{'name':'A','value':'x'}]}", "{'environment':[{'name':'A','value':'y'}]}",
     "[{'path':'spec.environment[A].value','old':'(hidden)','new':'(hidden)'}]"},
    {"{}", "{'environment':[{'name':'A','value':'x'}]}",
     "[{'path':'spec.environment','new':[{'name':'A','value':'(hidden)'}]}]"},
    {"{'environment':[]}", "{'environment':[{'name':'A','value':'x'}]}",
     "[{'path':'spec.environment[A]','new':{'name':'A','value':'(hidden)'}}]"},
    {"{}", "{'placement':{'env':[{'name':'A','value':'x'}]}}",
     "[{'path':'spec.placement','new':{'env':[{'name':'A','value':'(hidden)'}]}}]"},
    {"{'variables':{'value':'x'}}", "{'variables':{'value':'y'}}",
     "[{'path':'spec.variables.value','old':'x','new':'y'}]"},
};

static void a_difference_is_told_path_by_path_without_values_of_the_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(differences); i++) {
        DF_JSON cJSON *old = json(differences[i].old), *now = json(differences[i].now);
        DF_JSON cJSON *expected = json(differences[i].expected), *found = NULL;
        assert_int_equal(df_difference("spec", old, now, &found, NULL), 0);
        DF_FREE char *text = df_json_print(found);
        if (!df_json_equal(found, expected))
            fail_msg("%s to %s: %s", differences[i].old, differences[i].now, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_spec_is_a_revision_with_its_author),
        TEST(names_of_integrations_and_secrets_are_part_of_it),
        TEST(what_changes_no_spec_makes_none),
        TEST(a_run_says_the_revision_that_it_was_made_of),
        TEST(fifty_changes_at_once_are_fifty_revisions),
        TEST(the_loop_makes_up_for_one_that_a_crash_cut_off),
        TEST(the_next_change_makes_up_for_it_as_well),
        TEST(an_executor_of_an_older_version_gets_one_without_author),
        TEST(keeping_it_twice_is_keeping_it_once),
        TEST(an_edit_with_kubectl_is_one_with_its_writer_if_it_is_accepted),
        TEST(one_that_somebody_else_wrote_is_removed),
        TEST(one_that_stands_in_the_way_is_replaced),
        TEST(the_present_one_comes_back_when_it_is_deleted),
        TEST(they_go_with_their_executor),
        TEST(retention_keeps_the_newest_of_each_executor),
        TEST(retention_takes_those_without_an_executor),
        cmocka_unit_test(a_difference_is_told_path_by_path_without_values_of_the_environment),
    };
    return cmocka_run_group_tests_name("revisions", tests, NULL, NULL);
}
