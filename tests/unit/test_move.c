#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/pulled.h"
#include "spawner/control/runs/moved.h"
#include "spawner/model/move.h"
#include "spawner/model/state_command.h"
#include "tests/unit/model_words.h"
#include "tests/unit/state_words.h"

/* ---- what the tool prints ---- */

static int read_pulled(const char *text, struct df_pulled *ret, struct df_err *err)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(4096);
    assert_int_equal(df_buf_adds(&b, text), 0);
    return df_pulled_read(&b, ret, err);
}

#define BODY "\"outputs\":{},\"resources\":[{\"mode\":\"managed\"}],\"check_results\":null}\n"

static void a_state_is_read_in_the_layout_of_either_tool(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"version\":4,\"terraform_version\":\"1.12.6\",\"serial\":7,\"lineage\":\"L\"," BODY,
        "{\n  \"version\": 4,\n  \"terraform_version\": \"1.5.7\",\n  \"serial\": 7,\n"
        "  \"lineage\": \"L\"," BODY,
    };
    struct df_err err = {0};
    struct df_pulled first = {0}, other = {0};
    assert_int_equal(read_pulled(texts[0], &first, &err), 0);
    assert_int_equal(read_pulled(texts[1], &other, &err), 0);
    assert_true(first.exists && !first.is_empty);
    assert_int_equal(first.serial, 7);
    assert_string_equal(first.lineage, "L");
    assert_true(df_pulled_is_same(&first, &other));
}

static void states_differ_by_lineage_and_by_what_they_hold(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_same;
    } others[] = {
        {"{\"version\":4,\"serial\":9,\"lineage\":\"L\"," BODY, true},
        {"{\"version\":4,\"serial\":7,\"lineage\":\"M\"," BODY, false},
        {"{\"version\":4,\"serial\":7,\"lineage\":\"L\",\"outputs\":{},\"resources\":[]}", false},
        {"", false},
    };
    struct df_err err = {0};
    struct df_pulled first = {0};
    assert_int_equal(
        read_pulled("{\"version\":4,\"serial\":7,\"lineage\":\"L\"," BODY, &first, &err), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++) {
        struct df_pulled other = {0};
        assert_int_equal(read_pulled(others[i].text, &other, &err), 0);
        if (df_pulled_is_same(&first, &other) != others[i].is_same)
            fail_msg("%s", others[i].text);
    }
}

static void no_state_and_an_empty_one_are_told_apart_from_one_that_holds_something(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool exists, is_empty;
    } rows[] = {
        {"", false, false},
        {"\n", false, false},
        {"{\"version\":4,\"serial\":0,\"lineage\":\"\",\"outputs\":{},\"resources\":[]}", false,
         false},
        {"{\"version\":4,\"serial\":1,\"lineage\":\"L\",\"outputs\":{},\"resources\":[]}", true,
         true},
        {"{\n  \"version\": 4,\n  \"serial\": 1,\n  \"lineage\": \"L\",\n  \"outputs\": {},\n"
         "  \"resources\": []\n}",
         true, true},
        {"{\"version\":4,\"serial\":1,\"lineage\":\"L\",\"outputs\":{\"n\":1},\"resources\":[]}",
         true, false},
        {"{\"version\":4,\"serial\":1,\"lineage\":\"L\"," BODY, true, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        struct df_pulled p = {0};
        assert_int_equal(read_pulled(rows[i].text, &p, &err), 0);
        if (p.exists != rows[i].exists || p.is_empty != rows[i].is_empty)
            fail_msg("%s", rows[i].text);
    }
}

static void the_head_of_a_state_has_its_lineage(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct df_pulled p = {0};
    assert_int_equal(
        df_pulled_read_head("{\"version\":4,\"serial\":7,\"lineage\":\"L\",\"outp", &p, &err), 0);
    assert_true(p.exists && p.serial == 7);
    assert_string_equal(p.lineage, "L");
    assert_int_equal(df_pulled_read_head("{\"version\":4,\"serial\":0,\"lineage\":\"\"}", &p, &err),
                     0);
    assert_false(p.exists);
    assert_int_equal(df_pulled_read_head(" \n", &p, &err), 0);
    assert_false(p.exists);
    assert_int_equal(df_pulled_read_head("{\"version\":4,\"serial\":7,\"lin", &p, &err), -1);
    assert_string_equal(err.reason, "StateRefused");
}

static void what_is_no_state_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Error: no",
        "{",
        "{}",
        "[1]",
        "{\"serial\":1}",
        "{\"lineage\":\"L\"," BODY,
        "{\"serial\":1,\"lineage\":\"L",
        "{\"serial\":1,\"lineage\":\"a\\\"b\"," BODY,
        "{\"serial\":-1,\"lineage\":\"L\"," BODY,
        "{\"serial\":99999999999999999999,\"lineage\":\"L\"," BODY,
        "{\"serial\" 1,\"lineage\":\"L\"," BODY,
        "{\"resources\":[],\"serial\":1,\"lineage\":\"L\"}",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        struct df_err err = {0};
        struct df_pulled p = {0};
        if (read_pulled(bad[i], &p, &err) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_string_equal(err.reason, "StateRefused");
    }
}

/* ---- the document of a run ---- */

static cJSON *move_to(const char *more)
{
    cJSON *run = json("{'metadata':{'name':'net-1'}}");
    DF_FREE char *text = df_strf("{'executorRef':{'name':'net'},%s}", more);
    assert_int_equal(df_json_add(run, "spec", json(text), NULL), 0);
    return run;
}

#define S3 "{'type':'s3','config':{'bucket':'b','region':'r'}}"

static void a_move_gets_the_defaults_of_a_storage(void **state)
{
    (void)state;
    DF_JSON cJSON *run = move_to("'action':'state','command':['migrate'],'moveTo':" S3);
    assert_admitted(DF_KIND_RUN, run, "s3");
    assert_at(run, "spec.moveTo",
              "{'type':'s3','path':'executors/net/terraform.tfstate',"
              "'config':{'bucket':'b','region':'r','use_lockfile':true,'encrypt':true}}");
}

static void a_move_without_a_place_and_a_place_without_a_move_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *says;
    } bad[] = {
        {"'action':'state','command':['migrate']", "spec.moveTo: is required"},
        {"'action':'state','command':['migrate','s3'],'moveTo':" S3, "no words"},
        {"'action':'state','command':['rm','a.b'],'moveTo':" S3, "for the command migrate alone"},
        {"'action':'destroy','moveTo':" S3, "spec.moveTo"},
        {"'action':'state','command':['migrate'],'moveTo':{'type':'module'}", "spec.moveTo.type"},
        {"'action':'state','command':['migrate'],'moveTo':{'type':'local'}", "spec.moveTo.path"},
        {"'action':'state','command':['migrate'],'moveTo':{'type':'s3'}", "bucket"},
        {"'action':'state','command':['migrate'],'moveTo':{'type':'s3','config':{'bucket':'b',"
         "'region':'r','secret_key':'x'}}",
         "is a secret"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_JSON cJSON *run = move_to(bad[i].spec);
        assert_refused(DF_KIND_RUN, run, bad[i].spec, bad[i].says);
    }
}

static const char managed[] = "{'type':'managed'}";
static const char local[] = "{'type':'local','path':'/s/net'}";
static const char other[] = "{'type':'local','path':'/s/other'}";

static cJSON *executor_in(const char *storage, const char *status)
{
    DF_FREE char *text = df_strf("{'metadata':{'name':'net','uid':'" UID "','generation':1},"
                                 "'spec':{'storage':%s},'status':%s}",
                                 storage, status);
    return json(text);
}

static cJSON *moving_run(const char *from, const char *to, const char *phase)
{
    DF_FREE char *text =
        df_strf("{'metadata':{'name':'net-7'},'spec':{'action':'state','command':['migrate'],"
                "'moveTo':%s,'snapshot':{'storage':%s},'executorRef':{'name':'net'}},"
                "'status':{'phase':'%s','finishedAt':'2026-01-01T00:00:00Z',"
                "'steps':[{'name':'state','taskAction':'net-7-state'}]}}",
                to, from, phase);
    return json(text);
}

static void a_move_is_refused_where_the_state_is_and_while_another_place_is_kept(void **state)
{
    (void)state;
    static const char kept[] = "{'formerStorage':{'storage':{'type':'managed'},'run':'net-3'}}";
    static const struct {
        const char *in, *status, *to, *reason;
    } rows[] = {
        {managed, "{}", local, NULL},         {local, "{}", local, "AlreadyThere"},
        {local, kept, other, "WrongState"},   {local, kept, managed, NULL}, /* back */
        {local, kept, local, "AlreadyThere"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *e = executor_in(rows[i].in, rows[i].status);
        DF_JSON cJSON *run = moving_run(rows[i].in, rows[i].to, "Pending");
        int result = df_state_command_fits(run, e, &err);
        assert_int_equal(result, rows[i].reason ? -1 : 0);
        if (rows[i].reason)
            assert_string_equal(err.reason, rows[i].reason);
    }
}

/* ---- the executor ---- */

static void follow(cJSON *executor, const char *from, const char *to, const char *phase)
{
    struct df_err err = {0};
    DF_JSON cJSON *run = moving_run(from, to, phase);
    assert_int_equal(df_executor_follow_run(executor, run, false, &err), 0);
}

static void an_executor_is_busy_while_it_moves_and_names_the_new_storage_at_the_end(void **state)
{
    (void)state;
    DF_JSON cJSON *e = executor_in(managed, "{'state':'provisioned','status':'done','revision':4}");
    follow(e, managed, local, "Running");
    assert_true(df_executor_is_busy(e));
    assert_at(e, "status.movingTo", local);
    assert_at(e, "spec.storage", managed);
    follow(e, managed, local, "Succeeded");
    assert_at(e, "spec.storage", local);
    assert_at(e, "status",
              "{'state':'provisioned','status':'done','revision':5,"
              "'provisionedStorage':{'type':'local','path':'/s/net'},"
              "'formerStorage':{'storage':{'type':'managed'},'run':'net-7',"
              "'leftAt':'2026-01-01T00:00:00Z'},"
              "'revised':{'at':'2026-01-01T00:00:00Z'},"
              "'lastRun':{'name':'net-7','phase':'Succeeded','at':'2026-01-01T00:00:00Z'}}");
}

static void a_move_that_fails_leaves_everything_as_it_was(void **state)
{
    (void)state;
    static const char *const phases[] = {"Failed", "Canceled"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(phases); i++) {
        DF_JSON cJSON *e =
            executor_in(managed, "{'state':'destroyed','status':'done','revision':4}");
        follow(e, managed, local, "Running");
        follow(e, managed, local, phases[i]);
        assert_at(e, "spec.storage", managed);
        assert_at(e, "status.state", "'destroyed'");
        assert_at(e, "status.status", "'done'");
        assert_at(e, "status.revision", "4");
        assert_null(df_json_at(e, "status.movingTo"));
        assert_null(df_json_at(e, "status.formerStorage"));
        assert_null(df_json_at(e, "status.activeRun"));
    }
}

static void an_edit_of_a_custom_resource_keeps_the_storage_that_has_the_state(void **state)
{
    (void)state;
    static const struct {
        const char *status, *edited;
        bool is_refused;
    } rows[] = {
        {"{'mayHoldResources':true,'provisionedStorage':{'type':'managed'}}", local, true},
        {"{'mayHoldResources':true,'provisionedStorage':{'type':'managed'}}", managed, false},
        {"{'mayHoldResources':false,'provisionedStorage':{'type':'managed'}}", local, false},
        {"{'mayHoldResources':true}", local, false}, /* of an older version */
        {"{'mayHoldResources':true,'provisionedStorage':{'type':'managed'},"
         "'movingTo':{'type':'local','path':'/s/net'}}",
         other, true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *e = executor_in(managed, rows[i].status);
        DF_JSON cJSON *edited = executor_in(rows[i].edited, "{}");
        assert_int_equal(df_executor_check_provisioned_storage(e, edited, &err),
                         rows[i].is_refused ? -1 : 0);
        if (rows[i].is_refused)
            assert_string_equal(err.reason, "StorageChange");
    }
}

static void an_edit_may_name_the_storage_to_which_a_move_is_going(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *e =
        executor_in(managed, "{'mayHoldResources':true,'provisionedStorage':{'type':'managed'}}");
    DF_JSON cJSON *edited = executor_in(local, "{}");
    assert_int_equal(df_json_set(df_json_object_at(e, "status"), "movingTo",
                                 cJSON_Duplicate(df_json_at(edited, "spec.storage"), true), &err),
                     0);
    assert_int_equal(df_executor_check_provisioned_storage(e, edited, &err), 0);
}

/* In a cluster the spec is written before the status; the service may die in between. */
static void a_switch_of_which_only_the_spec_was_written_is_completed(void **state)
{
    (void)state;
    DF_JSON cJSON *e =
        executor_in(local, "{'state':'provisioned','status':'in_progress','revision':4,"
                           "'activeRun':'net-7','before':{'state':'provisioned','status':'done'}}");
    (void)!df_json_set(df_json_object_at(e, "metadata"), "generation", cJSON_CreateNumber(5), NULL);
    follow(e, managed, local, "Succeeded");
    assert_at(e, "spec.storage", local);
    assert_at(e, "status.formerStorage.storage", managed);
    assert_at(e, "status.revision", "5");
}

static void a_run_that_was_requested_before_a_move_would_use_the_old_state(void **state)
{
    (void)state;
    DF_JSON cJSON *e = executor_in(local, "{}");
    DF_JSON cJSON *before = moving_run(managed, local, "Pending");
    DF_JSON cJSON *after = moving_run(local, other, "Pending");
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(before, "status"), "steps");
    assert_true(df_move_overtook(before, e));
    assert_false(df_move_overtook(after, e));
    const struct df_run_view view = {.run = before, .executor = e, .is_first = true};
    const struct df_run_verdict v = df_run_next(&view, 0);
    assert_int_equal(v.next, DF_RUN_FINISH);
    assert_string_equal(v.reason, "StorageChanged");
}

static void a_confirmation_forgets_the_old_place_and_needs_one(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *e = executor_in(local, "{'formerStorage':{'storage':{},'run':'net-7'}}");
    assert_int_equal(df_move_confirm(e, &err), 0);
    assert_null(df_json_at(e, "status.formerStorage"));
    assert_failed(df_move_confirm(e, &err), &err, DF_ERR_CONFLICT, "WrongState");
    DF_JSON cJSON *moving = executor_in(
        local, "{'formerStorage':{'storage':{},'run':'net-7'},'movingTo':{},'activeRun':'net-8'}");
    assert_failed(df_move_confirm(moving, &err), &err, DF_ERR_CONFLICT, "WrongState");
}

/* ---- the last check ---- */

static void who_wrote_or_locked_the_old_place_meanwhile_keeps_the_state_there(void **state)
{
    WORLD w = open_world(*state);
    struct df_spawner s = {.states = w.states};
    struct df_err err = {0};
    DF_JSON cJSON *e = executor_in(managed, "{}"), *run = moving_run(managed, local, "Running");
    DF_JSON cJSON *step = json("{'status':{'tofuState':{'lineage':'L','serial':3}}}");
    DF_JSON cJSON *nothing = json("{'status':{}}");
    assert_int_equal(df_moved_check(&s, run, e, nothing, &err), 0);
    must_put(&w, 3);
    assert_int_equal(df_moved_check(&s, run, e, step, &err), 0);
    assert_failed(df_moved_check(&s, run, e, nothing, &err), &err, DF_ERR_CONFLICT,
                  "StateMoveFailed");
    DF_JSON cJSON *info = json("{'ID':'1','Who':'somebody','Operation':'apply'}");
    assert_int_equal(df_state_lock(w.states, UID, info, NULL, NULL, &err), 0);
    assert_failed(df_moved_check(&s, run, e, step, &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_int_equal(df_state_force_unlock(w.states, UID, &err), 0);
    must_put(&w, 4);
    assert_failed(df_moved_check(&s, run, e, step, &err), &err, DF_ERR_CONFLICT, "StateMoveFailed");
    /* The executor has switched: the next pass does not look at the place that it left. */
    DF_JSON cJSON *done = executor_in(local, "{}");
    assert_int_equal(df_moved_check(&s, run, done, step, &err), 0);
}

static void a_state_gets_another_serial_and_keeps_every_other_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text, *then; /* NULL: refused */
    } rows[] = {
        {"{\"version\":4,\"serial\":7,\"lineage\":\"L\"," BODY,
         "{\"version\":4,\"serial\":12,\"lineage\":\"L\"," BODY},
        {"{\n  \"version\": 4,\n  \"serial\": 123,\n  \"lineage\": \"serial\",\n \"x\": 1e400}\n",
         "{\n  \"version\": 4,\n  \"serial\": 12,\n  \"lineage\": \"serial\",\n \"x\": 1e400}\n"},
        {"{\"version\":4,\"lineage\":\"L\"}", NULL},
        {"", NULL},
        {"[]", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_BUF struct df_buf text = DF_BUF_INIT(DF_KIB), out = DF_BUF_INIT(DF_KIB);
        assert_int_equal(df_buf_adds(&text, rows[i].text), 0);
        assert_int_equal(df_pulled_renumber(&text, 12, &out, &err), rows[i].then ? 0 : -1);
        assert_string_equal(df_buf_str(&out), rows[i].then ? rows[i].then : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_gets_another_serial_and_keeps_every_other_byte),
        cmocka_unit_test(a_state_is_read_in_the_layout_of_either_tool),
        cmocka_unit_test(states_differ_by_lineage_and_by_what_they_hold),
        cmocka_unit_test(no_state_and_an_empty_one_are_told_apart_from_one_that_holds_something),
        cmocka_unit_test(the_head_of_a_state_has_its_lineage),
        cmocka_unit_test(what_is_no_state_is_refused),
        cmocka_unit_test(a_move_gets_the_defaults_of_a_storage),
        cmocka_unit_test(a_move_without_a_place_and_a_place_without_a_move_are_refused),
        cmocka_unit_test(a_move_is_refused_where_the_state_is_and_while_another_place_is_kept),
        cmocka_unit_test(an_executor_is_busy_while_it_moves_and_names_the_new_storage_at_the_end),
        cmocka_unit_test(a_move_that_fails_leaves_everything_as_it_was),
        cmocka_unit_test(an_edit_of_a_custom_resource_keeps_the_storage_that_has_the_state),
        cmocka_unit_test(an_edit_may_name_the_storage_to_which_a_move_is_going),
        cmocka_unit_test(a_switch_of_which_only_the_spec_was_written_is_completed),
        cmocka_unit_test(a_run_that_was_requested_before_a_move_would_use_the_old_state),
        cmocka_unit_test(a_confirmation_forgets_the_old_place_and_needs_one),
        scratch_test(who_wrote_or_locked_the_old_place_meanwhile_keeps_the_state_there),
    };
    return cmocka_run_group_tests_name("move", tests, NULL, NULL);
}
