/* Edits with kubectl of an executor that an admin's secret is for, also while it is being
 * deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/requests/leftovers.h"
#include "spawner/requests/secrets.h"
#include "tests/unit/applied_words.h"

/* As the API server deletes what has a finalizer: the generation grows by one. In this world the
 * description makes it grow. */
static int set_deleted(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    return df_json_set_str(df_json_object_at(doc, "spec"), "description", "deleted", err) < 0
               ? -1
               : df_json_set_str(df_json_object_at(doc, "metadata"), "deletionTimestamp",
                                 "2026-11-21T20:17:40Z", err);
}

static void change_executor(struct world *w, int (*change)(cJSON *, void *, struct df_err *),
                            void *arg)
{
    struct df_err err = {0};
    if (df_store_modify(w->s.store, DF_KIND_EXECUTOR, "net", change, arg, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

/* Another source, with the stamp of its writer. */
static int set_source(cJSON *doc, void *arg, struct df_err *err)
{
    const char *stamp = arg;
    DF_FREE char *annotations = df_strf("{'dayfly.dev/requested-by':'%s'}", stamp);
    struct patch p = {"metadata", "annotations", annotations};
    if (set_member(doc, &p, err) < 0)
        return -1;
    DF_FREE char *source = df_strf("{'url':'file:///%s','kind':'directory'}", stamp + 6);
    p = (struct patch){"spec", "source", source};
    return set_member(doc, &p, err);
}

static void entrust(struct world *w, const char *secret)
{
    DF_BUF struct df_buf value = DF_BUF_INIT(16);
    struct df_err err = {0};
    assert_int_equal(df_buf_adds(&value, "v"), 0);
    const struct df_secret_request q = {.name = secret,
                                        .key = "k",
                                        .value = &value,
                                        .executors = "net",
                                        .role = DF_ROLE_ADMIN,
                                        .actor = "ann"};
    if (df_request_set_secret(&w->s, &q, &err) < 0)
        fail_msg("%s", err.message);
}

/* A run of ann's executor, which an admin's secret is for, keeps it while it is being deleted. */
static void begin_to_delete(struct world *w)
{
    begin_stamped(w);
    entrust(w, "clouds");
    change_executor(w, set_deleted, NULL);
}

static void await_deleting(struct world *w)
{
    await_condition(w, DF_KIND_EXECUTOR, "net", "Progressing", "True", "Deleting");
}

/* With one worker: the pass that comes from the change that was just seen is over. */
static void await_later_pass(struct world *w)
{
    static const char *const names[] = {"later", "latest"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        apply_executor(w, names[i]);
        await_condition(w, DF_KIND_EXECUTOR, names[i], "Succeeded", "True", "Accepted");
    }
}

static void an_edit_during_a_deletion_has_its_writers_rights(void **state)
{
    struct world *w = *state;
    char eve[] = "write eve", ann[] = "admin ann";
    w->config.workers = 1;
    begin_to_delete(w);
    await_deleting(w);
    change_executor(w, set_source, eve);
    await_condition(w, DF_KIND_EXECUTOR, "net", "Failed", "True", "InvalidDocument");
    assert_true(is_audited(w, "eve", "write", "update", "refused"));
    await_later_pass(w);
    await_condition(w, DF_KIND_EXECUTOR, "net", "Failed", "True", "InvalidDocument");
    change_executor(w, set_source, ann);
    await_deleting(w);
    assert_true(is_audited(w, "ann", "admin", "update", "done"));
    assert_true(is_audited(w, "kubernetes", "admin", "update", "done")); /* the deletion */
}

/* Before the service has found why it cannot delete yet, or has seen the deletion at all. */
static void an_edit_right_behind_a_deletion_has_its_writers_rights(void **state)
{
    struct world *w = *state;
    char eve[] = "write eve";
    begin_to_delete(w);
    change_executor(w, set_source, eve);
    await_condition(w, DF_KIND_EXECUTOR, "net", "Failed", "True", "InvalidDocument");
    assert_true(is_audited(w, "eve", "write", "update", "refused"));
}

static void an_executor_that_is_being_deleted_takes_what_ends_it_and_no_other_run(void **state)
{
    static const struct {
        const char *body;
        struct df_rights rights;
        bool is_taken;
    } cases[] = {
        {"{'action':'provision'}", {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, false},
        {"{'action':'dry-run'}", {DF_VERBS_WRITE, DF_ROLE_WRITE}, false},
        {"{'action':'state','command':['rm','a.b']}", {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, true},
        {"{'action':'destroy'}", {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, true},
    };
    struct world *w = *state;
    begin_to_delete(w);
    await_deleting(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *body = json(cases[i].body);
        const struct df_run_request request = {body, NULL, cases[i].rights, "tester"};
        struct df_err err = {0};
        bool is_taken = df_request_create_run(&w->s, "net", &request, NULL, &err) == 0;
        if (is_taken != cases[i].is_taken)
            fail_msg("%s: %s", cases[i].body, err.message);
        if (!is_taken && !df_streq(err.reason, "WrongState"))
            fail_msg("%s: %s", cases[i].body, err.message);
    }
}

/* ---- what an edit says about the approval ---- */

static int set_approval(cJSON *doc, void *arg, struct df_err *err)
{
    char eve[] = "write eve";
    (void)arg;
    return set_source(doc, eve, err) < 0 ||
                   df_json_set_str(df_json_object_at(doc, "spec"), "approval", "automatic", err) < 0
               ? -1
               : df_json_set(df_json_object_at(doc, "spec"), "separateApprover",
                             cJSON_CreateFalse(), err);
}

static void await_refused_edit(struct world *w)
{
    change_executor(w, set_approval, NULL);
    await_condition(w, DF_KIND_EXECUTOR, "net", "Failed", "True", "InvalidDocument");
}

static void apply_separate(struct world *w)
{
    believe_stamps(w);
    start(w);
    entrust(w, "clouds");
    apply_as(w, DF_KIND_EXECUTOR, "net", "{" SOURCE ",'separateApprover':true}", "admin ann");
    apply_as(w, DF_KIND_RUN, "first", RUN_NET, "write eve");
}

static void a_refused_edit_is_no_automatic_approval(void **state)
{
    struct world *w = *state;
    apply_separate(w);
    (void)await_start(w, "first-plan");
    await_refused_edit(w);
    play_plan(w, "first", "first-plan");
    await_value(w, DF_KIND_RUN, "first", "status.phase", "WaitingApproval");
}

static void a_refused_edit_lets_nobody_approve_their_own_run(void **state)
{
    struct world *w = *state;
    apply_separate(w);
    play_plan(w, "first", "first-plan");
    await_value(w, DF_KIND_RUN, "first", "status.phase", "WaitingApproval");
    await_refused_edit(w);
    decide_as(w, "first", "write eve");
    await_message(w, "first",
                  "the decision of eve is refused, WrongState: executor net was refused");
    assert_value(w, DF_KIND_RUN, "first", "spec.decision", "");
}

static void a_refused_edit_removes_nothing(void **state)
{
    const struct world *w = *state;
#define RETAINS(more) "{'spec':{'retention':{'runs':1,'stateVersions':1,'logs':'1h'}}" more "}"
    DF_JSON cJSON *good = json(RETAINS(""));
    DF_JSON cJSON *refused = json(
        RETAINS(",'status':{'conditions':[{'type':'Progressing','reason':'InvalidDocument'}]}"));
    assert_int_equal(df_retained_of(&w->config, good).versions, 1);
    const struct df_retained all = df_retained_of(&w->config, refused);
    assert_true(!all.documents && !all.versions && !all.age_us && !all.logs_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_edit_during_a_deletion_has_its_writers_rights),
        TEST(an_edit_right_behind_a_deletion_has_its_writers_rights),
        TEST(an_executor_that_is_being_deleted_takes_what_ends_it_and_no_other_run),
        TEST(a_refused_edit_is_no_automatic_approval),
        TEST(a_refused_edit_lets_nobody_approve_their_own_run),
        TEST(a_refused_edit_removes_nothing),
    };
    (void)alarm(120); /* what never comes */
    return cmocka_run_group_tests_name("applied_edits", tests, NULL, NULL);
}
