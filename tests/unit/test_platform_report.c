#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "runner/platform/advice.h"
#include "runner/platform/report.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

/* ---- a deploy of three components, and one beside its scope ---- */

#define BEGAN INT64_C(1795768200000000)

static char hub[] = "hub", staging[] = "staging", scope[] = "stack:foundation";
static char names[][16] = {"crds", "cert-manager", "app", "elsewhere"};

struct world {
    struct df_platform_input in;
    struct df_node nodes[4];
    struct df_component components[4];
    struct df_report_facts facts;
};

static void open_world(struct world *w)
{
    *w = (struct world){.in = {.action = DF_PLATFORM_DEPLOY,
                               .environment = staging,
                               .scope = {.text = scope},
                               .name = hub}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(w->nodes); i++) {
        w->nodes[i] = (struct df_node){.name = names[i], .stack = scope + 6, .is_in_scope = i < 3};
        w->components[i].node = &w->nodes[i];
    }
    w->facts = (struct df_report_facts){.in = &w->in,
                                        .components = w->components,
                                        .len = DF_ARRAY_SIZE(w->components),
                                        .started_us = BEGAN,
                                        .ended_us = BEGAN + 90500000};
}

/* The first is done, the second has failed, the third waits for it. */
static void partly_fail(struct world *w)
{
    struct df_component *c = w->components;
    c[0].state = DF_COMPONENT_DONE;
    df_copy(c[0].sync, sizeof(c[0].sync), "Synced");
    df_copy(c[0].health, sizeof(c[0].health), "Healthy");
    df_copy(c[0].revision, sizeof(c[0].revision), "3f2a9c");
    c[0].changed = true;
    c[0].started_us = BEGAN;
    c[0].ended_us = BEGAN + 12345678;
    c[0].waited_us = 10000000;
    c[1].started_us = BEGAN + 12345678;
    c[1].retries = 2;
    df_component_fail(&c[1], "ImagePullFailed", "%s cannot be pulled", "quay.example/x:9");
    c[1].ended_us = BEGAN + 90000000;
    c[1].diagnostics = json("['Failed: no such tag', 'last line']");
    c[2].state = DF_COMPONENT_SKIPPED;
    df_copy(c[2].cause, sizeof(c[2].cause), "DependencyFailed");
    w->facts.result = DF_RESULT_PARTIAL;
    w->facts.writes = 3;
}

static void close_world(struct world *w)
{
    for (size_t i = 0; i < w->facts.len; i++)
        df_component_free(&w->components[i]);
}

/* The report; with DAYFLY_TEST_REPORTS it is left there for tests/integration, which holds it
 * against the schema. */
static cJSON *report_of(const struct world *w)
{
    static unsigned count;
    struct df_err err = {0};
    cJSON *report = NULL;
    if (df_platform_report_make(&w->facts, &report, &err) < 0)
        fail_msg("%s", err.message);
    const char *dir = getenv("DAYFLY_TEST_REPORTS");
    DF_FREE char *path = dir ? df_strf("%s/%u.json", dir, ++count) : NULL;
    if (path)
        assert_int_equal(df_json_save(path, report, &err), 0);
    return report;
}

/* ---- the document ---- */

static void a_report_tells_what_became_of_each_component(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    partly_fail(&w);
    DF_JSON cJSON *report = report_of(&w);
    assert_at(report, "components",
              "[{'name':'crds','stack':'foundation','state':'Done','sync':'Synced',"
              "  'health':'Healthy','revision':'3f2a9c','changed':true,'durationSeconds':12.345678,"
              "  'waitedSeconds':10,'retries':0},"
              " {'name':'cert-manager','stack':'foundation','state':'Failed','changed':false,"
              "  'durationSeconds':77.654322,'waitedSeconds':0,'retries':2,"
              "  'message':'quay.example/x:9 cannot be pulled','cause':'ImagePullFailed'},"
              " {'name':'app','stack':'foundation','state':'Skipped','changed':false,"
              "  'durationSeconds':0,'waitedSeconds':0,'retries':0,'cause':'DependencyFailed'}]");
    assert_at(report, "metrics",
              "{'components':{'Pending':0,'Running':0,'Done':1,'Degraded':0,'Failed':1,"
              "'Skipped':1},'retries':2,'waitedSeconds':10,'writes':3}");
    close_world(&w);
}

static void the_summary_says_which_action_it_was_and_how_it_ended(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    w.facts.commit = "3f2a9c";
    w.facts.message = "the time is over";
    w.facts.cause = "Timeout";
    w.facts.result = DF_RESULT_TIMEOUT;
    DF_JSON cJSON *report = report_of(&w);
    assert_at(
        report, "summary",
        "{'action':'deploy','status':'timeout','exitCode':4,'durationSeconds':90.5,"
        "'startedAt':'2026-11-27T08:30:00.000000Z','finishedAt':'2026-11-27T08:31:30.500000Z',"
        "'scope':'stack:foundation','environment':'staging','name':'hub','dryRun':false,"
        "'commit':'3f2a9c','message':'the time is over','cause':'Timeout'}");
    close_world(&w);
}

static void failures_are_what_failed_and_not_what_was_skipped(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    partly_fail(&w);
    DF_JSON cJSON *report = report_of(&w);
    assert_at(report, "failures",
              "[{'component':'cert-manager','cause':'ImagePullFailed',"
              "'message':'quay.example/x:9 cannot be pulled',"
              "'diagnostics':['Failed: no such tag','last line']}]");
    close_world(&w);
}

static void an_action_that_failed_as_a_whole_is_the_first_failure(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    partly_fail(&w);
    w.facts.message = "the time is over";
    w.facts.cause = "Timeout";
    DF_JSON cJSON *report = report_of(&w);
    assert_int_equal(cJSON_GetArraySize(df_json_at(report, "failures")), 2);
    assert_json(df_json_at(report, "failures")->child,
                "{'cause':'Timeout','message':'the time is over','diagnostics':[]}", "first");
    close_world(&w);
}

static void what_a_teardown_left_is_a_failure_with_advice(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    w.facts.left = "orphans are left: 1";
    DF_JSON cJSON *report = report_of(&w);
    assert_at(report, "failures",
              "[{'cause':'OrphansLeft','message':'orphans are left: 1','diagnostics':[]}]");
    assert_int_equal(cJSON_GetArraySize(df_json_at(report, "recommendations")), 1);
    w.facts.left = "";
    DF_JSON cJSON *nothing = report_of(&w);
    assert_at(nothing, "failures", "[]");
    close_world(&w);
}

static void applications_outside_of_the_dag_are_named_with_advice_and_fail_nothing(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    DF_JSON cJSON *taken_out = json("['old']");
    w.facts.not_in_dag = taken_out;
    DF_JSON cJSON *report = report_of(&w);
    assert_at(report, "notInDag", "['old']");
    assert_at(report, "failures", "[]");
    assert_int_equal(cJSON_GetArraySize(df_json_at(report, "recommendations")), 1);
    close_world(&w);
}

static void a_warning_is_told_with_its_component_and_has_advice(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    df_component_warn(&w.components[0], "NoObjects", "there is nothing in it");
    df_component_warn(&w.components[0], "NoObjects", "another one");
    df_component_warn(&w.components[1], "NoObjects", "");
    DF_JSON cJSON *report = report_of(&w);
    const cJSON *first = df_json_at(report, "components")->child;
    assert_string_equal(df_json_str(first, "warning"), "NoObjects: there is nothing in it");
    assert_null(df_json_at(first->next, "warning"));
    assert_int_equal(cJSON_GetArraySize(df_json_at(report, "recommendations")), 1);
    close_world(&w);
}

static void a_message_without_a_reason_word_is_a_failure_too(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    w.facts.result = DF_RESULT_FAILURE;
    w.facts.message = "the API server does not answer";
    DF_JSON cJSON *report = report_of(&w);
    assert_at(report, "failures",
              "[{'message':'the API server does not answer','diagnostics':[]}]");
    close_world(&w);
}

static void each_fault_of_the_input_is_a_failure(void **state)
{
    (void)state;
    struct world w;
    DF_FAULTS struct df_faults faults = {{0}};
    open_world(&w);
    df_faults_add(&faults, "TARGET_SCOPE", "there is no stack foo");
    df_faults_add(&faults, "ENVIRONMENT", "is not set");
    w.in.environment = w.in.name = w.in.scope.text = NULL;
    w.facts.components = NULL;
    w.facts.len = 0;
    w.facts.faults = &faults;
    w.facts.result = DF_RESULT_INVALID;
    w.facts.cause = "InvalidInput";
    w.facts.message = "2 faults";
    DF_JSON cJSON *report = report_of(&w);
    assert_int_equal(cJSON_GetArraySize(df_json_at(report, "failures")), 2);
    assert_string_equal(df_json_str(df_json_at(report, "failures")->child->next, "message"),
                        faults.lines.items[1]);
    assert_int_equal(cJSON_GetArraySize(df_json_at(report, "recommendations")), 1);
    assert_int_equal(cJSON_GetArraySize(df_json_at(report, "components")), 0);
    close_world(&w);
}

static void a_component_that_still_runs_lasts_until_the_end(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    w.components[0].state = DF_COMPONENT_RUNNING;
    w.components[0].started_us = BEGAN + 500000;
    DF_JSON cJSON *report = report_of(&w);
    const cJSON *first = df_json_at(report, "components")->child;
    assert_true(df_json_num(first, "durationSeconds", 0) == 90);
    close_world(&w);
}

static void the_same_cause_is_advised_once(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    for (size_t i = 0; i < 3; i++)
        df_component_fail(&w.components[i], i ? "SyncFailed" : "HealthTimeout", "no");
    df_component_fail(&w.components[3], "NotOurs", "beside the scope");
    DF_JSON cJSON *report = report_of(&w);
    const cJSON *all = df_json_at(report, "recommendations");
    assert_int_equal(cJSON_GetArraySize(all), 2);
    assert_non_null(strstr(all->child->valuestring, "manifest"));
    assert_non_null(strstr(all->child->next->valuestring, "timeouts.health"));
    close_world(&w);
}

static void advice_is_one_sentence_for_each_cause(void **state)
{
    (void)state;
    for (size_t i = 0; i < df_advice_count; i++) {
        const char *text = df_advices[i].text;
        assert_true(df_ends_with(text, ".") && !strstr(text, ". "));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(df_advices[i].cause, df_advices[j].cause);
    }
}

static void the_same_facts_make_the_same_report(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    partly_fail(&w);
    DF_JSON cJSON *one = report_of(&w), *other = report_of(&w);
    DF_FREE char *text = df_json_print(one), *again = df_json_print(other);
    assert_string_equal(text, again);
    close_world(&w);
}

#define REMOVAL                                                                                    \
    "{'namespaces':[],'volumes':[{'name':'pv-1','policy':'Retain'}],'orphansNotShown':0,"          \
    "'orphans':[{'kind':'Pod','namespace':'web','name':'web-0','why':'a finalizer holds it'}]}"
#define COMPLIANCE                                                                                 \
    "{'policyReports':{'status':'not assessed','why':'it is not installed'},"                      \
    "'clusterPolicyReports':{'status':'not assessed','why':'it is not installed'},"                \
    "'gatekeeper':{'status':'assessed','constraints':1,'violations':1,'objects':[{'kind':'Pod'}]}" \
    ","                                                                                            \
    "'podSecurity':{'status':'assessed','namespaces':[{'namespace':'web','enforce':'not set'}]}}"

static void what_only_one_action_tells_is_there_when_it_is_given(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    DF_JSON cJSON *bootstrap = json("['argocd']");
    DF_JSON cJSON *removal = json(REMOVAL), *compliance = json(COMPLIANCE);
    w.facts.bootstrap = bootstrap;
    w.facts.removal = removal;
    w.facts.compliance = compliance;
    DF_JSON cJSON *report = report_of(&w);
    assert_at(report, "bootstrap", "['argocd']");
    assert_at(report, "removal", REMOVAL);
    assert_at(report, "compliance", COMPLIANCE);
    close_world(&w);
}

/* ---- Markdown ---- */

static char *markdown_of(const struct world *w)
{
    DF_JSON cJSON *report = report_of(w);
    char *text = NULL;
    assert_int_equal(df_platform_report_markdown(report, &text, NULL), 0);
    return text;
}

static void markdown_has_the_five_sections_in_order(void **state)
{
    (void)state;
    static const char *const titles[] = {"# Report of deploy\n", "\n## Summary\n",
                                         "\n## Components\n",    "\n## Failures\n",
                                         "\n## Metrics\n",       "\n## Recommendations\n"};
    struct world w;
    open_world(&w);
    partly_fail(&w);
    DF_FREE char *text = markdown_of(&w);
    const char *at = text;
    for (size_t i = 0; i < DF_ARRAY_SIZE(titles); i++) {
        if (!(at = strstr(at, titles[i])))
            fail_msg("%s is not there, or not behind the one before:\n%s", titles[i], text);
    }
    assert_non_null(strstr(text, "\n### cert-manager: ImagePullFailed\n"));
    assert_non_null(strstr(text, "\n- last line\n"));
    assert_non_null(strstr(text, "| crds | foundation | Done | Synced | Healthy | 3f2a9c | yes |"));
    close_world(&w);
}

static void markdown_has_tenths_of_seconds(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    w.components[0].waited_us = 5;
    w.facts.ended_us = BEGAN + 116792;
    DF_FREE char *text = markdown_of(&w);
    assert_non_null(strstr(text, "| Waited | 0.0 s |\n"));
    assert_non_null(strstr(text, "| Duration | 0.1 s |\n"));
    close_world(&w);
}

static void a_message_cannot_leave_its_cell(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    df_component_fail(&w.components[0], "SyncFailed", "a | b\n## Summary <img> [x](http://y)");
    DF_FREE char *text = markdown_of(&w);
    assert_non_null(strstr(text, "a \\| b \\#\\# Summary \\<img\\> \\[x\\](http://y) |\n"));
    close_world(&w);
}

static void what_is_left_of_a_platform_is_a_list(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    DF_JSON cJSON *removal = json(REMOVAL);
    w.facts.removal = removal;
    DF_FREE char *text = markdown_of(&w);
    assert_non_null(strstr(text, "\n## Removal\n\n- namespaces\n- volumes\n"
                                 "  - name: pv-1, policy: Retain\n- orphansNotShown: 0\n"
                                 "- orphans\n  - kind: Pod, namespace: web, name: web-0, "
                                 "why: a finalizer holds it\n"));
    close_world(&w);
}

/* ---- where it is left ---- */

static cJSON *load(const char *path)
{
    struct df_err err = {0};
    cJSON *j = NULL;
    if (df_json_load(path, DF_MIB, &j, &err) < 0)
        fail_msg("%s", err.message);
    return j;
}

static void the_report_and_its_markdown_stand_side_by_side(void **state)
{
    struct world w;
    open_world(&w);
    DF_FREE char *path = df_strf("%s/deploy.json", (char *)*state);
    DF_FREE char *beside = df_strf("%s/deploy.md", (char *)*state);
    w.in.report_path = path;
    DF_JSON cJSON *report = report_of(&w);
    assert_int_equal(df_platform_report_write(&w.in, report, NULL), 0);
    DF_JSON cJSON *written = load(path);
    assert_true(df_json_equal(written, report));
    assert_true(df_fs_exists(beside));
    close_world(&w);
}

/* Writes the report to a termination log that has an older, longer text, and reads it. */
static cJSON *termination_of(struct world *w, const char *dir)
{
    struct stat before, after;
    DF_FREE char *old = calloc(1, 20001);
    DF_FREE char *path = df_strf("%s/termination-log", dir);
    assert_non_null(old);
    memset(old, 'x', 20000);
    assert_int_equal(df_fs_write(path, old, 20000, 0644, NULL), 0);
    assert_int_equal(stat(path, &before), 0);
    w->in.termination_path = path;
    DF_JSON cJSON *report = report_of(w);
    assert_int_equal(df_platform_report_write(&w->in, report, NULL), 0);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_true(after.st_size <= 4096);
    return load(path);
}

static void a_short_report_is_whole_in_the_termination_log(void **state)
{
    struct world w;
    open_world(&w);
    partly_fail(&w);
    DF_JSON cJSON *whole = report_of(&w);
    DF_JSON cJSON *told = termination_of(&w, *state);
    assert_true(df_json_equal(told, whole));
    close_world(&w);
}

static void the_termination_log_leaves_out_components_before_failures(void **state)
{
    struct world w;
    open_world(&w);
    for (size_t i = 0; i < 3; i++)
        df_component_fail(&w.components[i], "SyncFailed", "%0500d", 1);
    w.components[0].diagnostics = json("['0123456789']");
    for (int i = 0; i < 50; i++)
        assert_int_equal(df_json_append_str(w.components[0].diagnostics, "0123456789", NULL), 0);
    DF_JSON cJSON *told = termination_of(&w, *state);
    assert_null(df_json_at(told, "components"));
    assert_non_null(df_json_at(told, "failures"));
    assert_non_null(df_json_at(told, "recommendations"));
    close_world(&w);
}

static void the_termination_log_shortens_words_last_and_between_characters(void **state)
{
    struct world w;
    open_world(&w);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&text, "a");
    for (int i = 0; i < 9000; i++)
        (void)df_buf_adds(&text, i < 4000 ? "\xc3\xa4" : "\"");
    w.facts.message = df_buf_str(&text);
    DF_JSON cJSON *told = termination_of(&w, *state);
    const char *message = df_json_str(told, "summary.message");
    assert_true(strlen(message) > 500);
    assert_null(strstr(message, "\xef\xbf\xbd"));
    assert_string_equal(df_json_str(told, "summary.status"), "success");
    assert_non_null(df_json_str(told, "summary.name"));
    close_world(&w);
}

static void a_place_that_fails_keeps_the_report_from_no_other(void **state)
{
    struct world w;
    struct df_err err = {0};
    open_world(&w);
    DF_FREE char *path = df_strf("%s/absent/report.json", (char *)*state);
    DF_FREE char *log = df_strf("%s/log", (char *)*state);
    assert_int_equal(df_fs_write(log, "", 0, 0644, NULL), 0);
    w.in.report_path = path;
    w.in.termination_path = log;
    DF_JSON cJSON *report = report_of(&w);
    assert_int_equal(df_platform_report_write(&w.in, report, &err), -1);
    assert_non_null(strstr(err.message, "REPORT_PATH"));
    DF_JSON cJSON *told = load(log);
    assert_non_null(df_json_at(told, "summary"));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_tells_what_became_of_each_component),
        cmocka_unit_test(the_summary_says_which_action_it_was_and_how_it_ended),
        cmocka_unit_test(failures_are_what_failed_and_not_what_was_skipped),
        cmocka_unit_test(an_action_that_failed_as_a_whole_is_the_first_failure),
        cmocka_unit_test(what_a_teardown_left_is_a_failure_with_advice),
        cmocka_unit_test(applications_outside_of_the_dag_are_named_with_advice_and_fail_nothing),
        cmocka_unit_test(a_warning_is_told_with_its_component_and_has_advice),
        cmocka_unit_test(a_message_without_a_reason_word_is_a_failure_too),
        cmocka_unit_test(each_fault_of_the_input_is_a_failure),
        cmocka_unit_test(a_component_that_still_runs_lasts_until_the_end),
        cmocka_unit_test(the_same_cause_is_advised_once),
        cmocka_unit_test(advice_is_one_sentence_for_each_cause),
        cmocka_unit_test(the_same_facts_make_the_same_report),
        cmocka_unit_test(what_only_one_action_tells_is_there_when_it_is_given),
        cmocka_unit_test(markdown_has_the_five_sections_in_order),
        cmocka_unit_test(markdown_has_tenths_of_seconds),
        cmocka_unit_test(a_message_cannot_leave_its_cell),
        cmocka_unit_test(what_is_left_of_a_platform_is_a_list),
        scratch_test(the_report_and_its_markdown_stand_side_by_side),
        scratch_test(a_short_report_is_whole_in_the_termination_log),
        scratch_test(the_termination_log_leaves_out_components_before_failures),
        scratch_test(the_termination_log_shortens_words_last_and_between_characters),
        scratch_test(a_place_that_fails_keeps_the_report_from_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
