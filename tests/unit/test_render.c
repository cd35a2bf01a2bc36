#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/cli/follow/summary.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/outputs.h"
#include "spawner/cli/reasons.h"
#include "spawner/cli/task_words.h"
#include "spawner/cli/text.h"
#include "spawner/cli/timeline.h"
#include "spawner/cli/unrecorded.h"

#define NOW "2026-11-21T10:00:00.000000Z"

static int64_t now_us(void)
{
    int64_t us = 0;
    assert_int_equal(df_time_parse(NOW, &us, NULL), 0);
    return us;
}

/* JSON with ' for ", so that it can be read in C. */
static cJSON *json(const char *text)
{
    DF_FREE char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    cJSON *doc = cJSON_Parse(copy);
    if (!doc)
        fail_msg("no JSON: %s", copy);
    return doc;
}

/* ---- pieces -----------------------------------------------------------------------------------
 */

static void durations_and_ages_use_the_units_that_people_use(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *duration, *age;
    } cases[] = {
        {-3, "0.0 s", "0s"},
        {0, "0.0 s", "0s"},
        {0.94, "0.9 s", "0s"},
        {59.9, "59.9 s", "59s"},
        {60, "1 min 0 s", "60s"},
        {125, "2 min 5 s", "2m"},
        {3600, "1 h 0 min", "60m"},
        {7200, "2 h 0 min", "2h"},
        {86400, "24 h 0 min", "24h"},
        {172800, "48 h 0 min", "2d"},
        {1e9, "277777 h 46 min", "11574d"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        char text[DF_SHORT_TEXT];
        int64_t us = (int64_t)(cases[i].seconds * 1e6);
        assert_string_equal(df_text_duration(us, text), cases[i].duration);
        assert_string_equal(df_text_age(us, text), cases[i].age);
    }
}

static void foreign_text_cannot_steer_the_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {"\x1b[2Jgone", "^[[2Jgone"},
        {"a\rb", "a^Mb"},
        {"bell\a", "bell^G"},
        {"\x7f", "^?"},
        {"\xc2\x9b"
         "31m",
         "^?31m"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xe2\x9b\x94 \xf0\x9f\x9b\x91", "\xe2\x9b\x94 \xf0\x9f\x9b\x91"},
        {"\x9b"
         "31m",
         "^?31m"},
        {"\xe2\x9b", "\xe2^?"},
        {"\xe9t\xe9", "\xe9t\xe9"}, /* Latin-1, whose letters steer nothing */
        {"\x1b]0;title\a", "^[]0;title^G"},
        {"", ""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_BUF struct df_buf out = DF_BUF_INIT(1000);
        df_text_safe(&out, cases[i].in, strlen(cases[i].in));
        assert_string_equal(df_buf_str(&out), cases[i].out);
    }
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    df_text_safe(&out, "a\0b", 3);
    assert_string_equal(df_buf_str(&out), "a^@b");
}

static void tables_are_aligned_by_characters_not_bytes(void **state)
{
    (void)state;
    DF_TABLE struct df_table t = {.columns = 3};
    static const char *const cells[] = {"NAME",
                                        "X",
                                        "LAST",
                                        "gr\xc3\xbc\xc3\x9f"
                                        "e",
                                        NULL,
                                        "end",
                                        "a\x1b[1m",
                                        "two\nlines",
                                        ""};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cells); i++)
        df_table_add(&t, cells[i]);
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    assert_int_equal(df_table_print(&t, 2, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "  NAME     X     LAST\n"
                                          "  gr\xc3\xbc\xc3\x9f"
                                          "e    -     end\n"
                                          "  a^[[1m   two   -\n");
}

/* ---- tables of documents ----------------------------------------------------------------------
 */

static void lists_show_the_columns_of_their_kind(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *item, *table;
        bool wide;
    } cases[] = {
        {"runs",
         "[{'metadata':{'name':'net-1','creationTimestamp':'2026-11-21T09:57:00Z'},"
         "'spec':{'executorRef':{'name':'net'},'action':'provision'},"
         "'status':{'phase':'Succeeded','reason':'Applied','planSummary':{'add':1,'change':2,"
         "'destroy':3},'startedAt':'2026-11-21T09:57:00Z','finishedAt':'2026-11-21T09:57:02.5Z'}}]",
         "NAME    EXECUTOR   ACTION      PHASE       REASON    PLAN       TOOK    AGE\n"
         "net-1   net        provision   Succeeded   Applied   +1 ~2 -3   2.5 s   3m\n",
         false},
        {"executor",
         "[{'metadata':{'name':'net'},'spec':{},'status':{'state':'provision','status':'ready'}}]",
         "NAME   STATE       STATUS   LAST RUN   PHASE   AGE\n"
         "net    provision   ready    -          -       -\n",
         false},
        {"executor",
         "[{'metadata':{'name':'net'},'spec':{},'status':{'state':'provisioned','status':'done',"
         "'conditions':[{'type':'Progressing','status':'False','reason':'InvalidDocument'}]}}]",
         "NAME   STATE         STATUS               LAST RUN   PHASE   AGE\n"
         "net    provisioned   done, edit refused   -          -       -\n",
         false},
        {"secret",
         "[{'name':'db','keys':['a','b'],'executors':['net'],'updatedAt':'2026-11-21T09:59:58Z'}]",
         "NAME   KEYS   EXECUTORS   CHANGED   SOURCE\n"
         "db     a,b    net         2s        -\n",
         false},
        {"audit",
         "[{'at':'t','actor':'ci','role':'write','action':'create','kind':'Run','name':'net-1',"
         "'outcome':'ok','detail':'\\u001b[2J','sequence':7}]",
         "AT   ACTOR   TOKEN   ROLE    ACTION   KIND   NAME    OUTCOME   DETAIL   ADDRESS   "
         "EXECUTOR   SEQUENCE\n"
         "t    ci      -       write   create   Run    net-1   ok        ^[[2J    -         "
         "-          7\n",
         true},
        {"taskactions", "[]", "NAME   OF   ACTION   REASON   EXIT CODE   PLAN   AGE\n", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const struct df_shown *kind = NULL;
        DF_JSON cJSON *items = json(cases[i].item);
        DF_BUF struct df_buf out = DF_BUF_INIT(10000);
        assert_int_equal(df_shown_find(cases[i].kind, &kind, NULL), 0);
        const struct df_shown_options o = {
            .wide = cases[i].wide, .header = true, .now_us = now_us()};
        assert_int_equal(df_shown_table(kind, items, &o, &out, NULL), 0);
        assert_string_equal(df_buf_str(&out), cases[i].table);
    }
}

static void a_table_is_cut_to_the_terminal(void **state)
{
    (void)state;
    static const char *const cells[] = {
        "NAME", "MESSAGE", "AGE", "net-1", "a l\u00f6ng message here", "5m"};
    DF_TABLE struct df_table t = {.columns = 3};
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    struct df_table_shape shape = {.limit = 24};
    t.shape = &shape;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cells); i++)
        df_table_add(&t, cells[i]);
    assert_int_equal(df_table_print(&t, 0, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "NAME    MESSAGE      AGE\n"
                                          "net-1   a l\u00f6ng me\u2026   5m\n");
}

static void a_narrow_terminal_gets_fewer_columns_and_those_whole(void **state)
{
    (void)state;
    static const struct {
        size_t limit;
        const char *table;
    } cases[] = {
        {80, "NAME    EXECUTOR   ACTION      PHASE       REASON    PLAN       TOOK    AGE\n"
             "net-1   net        provision   Succeeded   Applied   +1 ~2 -3   2.5 s   3m\n"},
        {60, "NAME    ACTION      PHASE       REASON    PLAN       AGE\n"
             "net-1   provision   Succeeded   Applied   +1 ~2 -3   3m\n"},
        {40, "NAME    PHASE       REASON    PLAN\n"
             "net-1   Succeeded   Applied   +1 ~2 -3\n"},
        {30, "NAME    PHASE       PLAN\n"
             "net-1   Succeeded   +1 ~2 -3\n"},
        {24, "NAME    PHASE    PLAN\n"
             "net-1   Succe\u2026   +1 ~2 \u2026\n"},
    };
    DF_JSON cJSON *items =
        json("[{'metadata':{'name':'net-1','creationTimestamp':'2026-11-21T09:57:00Z'},"
             "'spec':{'executorRef':{'name':'net'},'action':'provision'},"
             "'status':{'phase':'Succeeded','reason':'Applied','planSummary':{'add':1,'change':2,"
             "'destroy':3},'startedAt':'2026-11-21T09:57:00Z',"
             "'finishedAt':'2026-11-21T09:57:02.5Z'}}]");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_table_shape shape = {.limit = cases[i].limit, .goes_on = true};
        DF_BUF struct df_buf out = DF_BUF_INIT(10000);
        struct df_shown_options o = {.header = true, .now_us = now_us(), .shape = &shape};
        assert_int_equal(df_shown_table(df_shown_of("runs"), items, &o, &out, NULL), 0);
        assert_string_equal(df_buf_str(&out), cases[i].table);
        o.header = false; /* a row that comes later has the same columns */
        size_t before = out.len;
        assert_int_equal(df_shown_table(df_shown_of("runs"), items, &o, &out, NULL), 0);
        assert_string_equal(df_buf_str(&out) + before, strchr(cases[i].table, '\n') + 1);
    }
}

static void rows_that_come_later_keep_the_columns(void **state)
{
    (void)state;
    struct df_table_shape shape = {.goes_on = true, .widths = {0, 8}};
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    for (int i = 0; i < 2; i++) {
        DF_TABLE struct df_table t = {.columns = 3, .shape = &shape};
        df_table_add(&t, i ? "a-1" : "net-1");
        df_table_add(&t, i ? "Finished" : "Run");
        df_table_add(&t, "x");
        assert_int_equal(df_table_print(&t, 0, &out, NULL), 0);
    }
    assert_string_equal(df_buf_str(&out), "net-1   Run        x\n"
                                          "a-1     Finished   x\n");
}

static void an_unknown_kind_is_answered_with_the_nearest(void **state)
{
    (void)state;
    const struct df_shown *kind = NULL;
    struct df_err err = {0};
    assert_int_equal(df_shown_find("excutors", &kind, &err), -1);
    assert_string_equal(err.message, "unknown kind \"excutors\"; did you mean executors?");
    assert_int_equal(df_shown_find("pods", &kind, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
}

static void details_leave_out_what_has_no_value(void **state)
{
    (void)state;
    const struct df_shown *kind = NULL;
    DF_JSON cJSON *item = json("{'metadata':{'name':'net'},'spec':{'source':{'url':'file:///a'},"
                               "'variables':{'x':1,'y':2}},'status':{'revision':4}}");
    DF_BUF struct df_buf out = DF_BUF_INIT(10000);
    assert_int_equal(df_shown_find("executors", &kind, NULL), 0);
    assert_int_equal(df_shown_details(kind, item, now_us(), (struct df_table_shape){0}, &out, NULL),
                     0);
    assert_string_equal(df_buf_str(&out), "Name        net\n"
                                          "Revision    4\n"
                                          "Source      file:///a\n"
                                          "Variables   x,y\n");
}

static void details_have_all_lines_of_a_description_and_the_labels_that_people_gave(void **state)
{
    (void)state;
    DF_JSON cJSON *item =
        json("{'metadata':{'name':'net','labels':{'team':'net','dayfly.dev/idempotency-key':'k',"
             "'tier':'1'}},'spec':{'description':'# The network\\n\\nAsk Wanda.\\n'}}");
    DF_BUF struct df_buf out = DF_BUF_INIT(10000);
    assert_int_equal(df_shown_details(df_shown_of("executors"), item, now_us(),
                                      (struct df_table_shape){0}, &out, NULL),
                     0);
    assert_string_equal(df_buf_str(&out), "Name          net\n"
                                          "Labels        team=net,tier=1\n"
                                          "Description   # The network\n"
                                          "               \n"
                                          "              Ask Wanda.\n");
}

static void a_timeline_shows_what_each_stage_took(void **state)
{
    (void)state;
    DF_JSON cJSON *task =
        json("{'status':{'timeline':[{'name':'queued','at':'2026-11-21T10:00:00.000000Z'},"
             "{'name':'claimed','at':'2026-11-21T10:00:00.012000Z'},"
             "{'name':'executed','at':'2026-11-21T10:00:01.512000Z'}]}}");
    DF_BUF struct df_buf out = DF_BUF_INIT(10000);
    assert_int_equal(df_timeline_add(task, (struct df_table_shape){0}, &out, NULL), 0);
    assert_non_null(strstr(df_buf_str(&out), "claimed    2026-11-21T10:00:00.012000Z   +0.012 s"));
    assert_non_null(strstr(df_buf_str(&out), "executed   2026-11-21T10:00:01.512000Z   +1.500 s"));
}

static void what_a_step_took_is_told_by_the_clock_of_the_service_alone(void **state)
{
    (void)state;
    DF_JSON cJSON *task =
        json("{'status':{'timeline':[{'name':'queued','at':'2026-11-21T10:00:00.000000Z'},"
             "{'name':'claimed','at':'2026-11-21T10:00:00.012000Z'},"
             "{'name':'sourced','at':'2026-11-21T09:56:00.512000Z'},"
             "{'name':'executed','at':'2026-11-21T10:04:01.512000Z'}],"
             "'conditions':[{'type':'Progressing','status':'False','reason':'Planned',"
             "'lastTransitionTime':'2026-11-21T10:00:02.500000Z'}]}}");
    assert_int_equal(df_text_took(task), 2500000);
    DF_JSON cJSON *unknown = json("{'status':{}}");
    assert_int_equal(df_text_took(unknown), 0);
}

static void outputs_look_as_the_tool_shows_them_and_hide_what_is_sensitive(void **state)
{
    (void)state;
    DF_JSON cJSON *outputs =
        json("{'a':{'sensitive':false,'type':'string','value':'x\\ny'},"
             "'b':{'sensitive':true,'type':'string'},"
             "'c':{'sensitive':false,'type':['list','number'],'value':[1,2.5]},"
             "'d':{'sensitive':false,'type':'dynamic','value':null}}");
    DF_BUF struct df_buf out = DF_BUF_INIT(10000);
    assert_int_equal(df_outputs_text(outputs, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "a = <<EOT\nx\ny\nEOT\nb = <sensitive>\n"
                                          "c = tolist([\n  1,\n  2.5,\n])\nd = null\n");
}

static void the_document_of_a_run_holds_its_four_parts(void **state)
{
    (void)state;
    DF_JSON cJSON *run = json(
        "{'metadata':{'name':'net-1'},'status':{'planSummary':{'add':1},"
        "'steps':[{'name':'plan','taskAction':'net-1-plan','phase':'Succeeded'},"
        "{'name':'apply','taskAction':'net-1-apply','phase':'Failed','reason':'ApplyFailed'}]}}");
    DF_JSON cJSON *tasks =
        json("[{'metadata':{'name':'net-1-apply'},'status':{'exitCode':2,'reason':'other',"
             "'claimedBy':{'pid':7,'host':'h'},'unrecorded':{'items':[]}}},{'metadata':{'name':'"
             "net-1-plan'},'status':{'"
             "exitCode':0}}]");
    DF_JSON cJSON *outputs = json("{}"), *doc = NULL;
    assert_int_equal(df_summary_document(run, tasks, outputs, &doc, NULL), 0);
    DF_FREE char *steps = df_json_print(df_json_at(doc, "steps"));
    assert_string_equal(steps,
                        "[{\"name\":\"plan\",\"taskAction\":\"net-1-plan\",\"phase\":\"Succeeded\","
                        "\"exitCode\":0},{\"name\":\"apply\",\"taskAction\":\"net-1-apply\","
                        "\"phase\":\"Failed\",\"reason\":\"ApplyFailed\",\"exitCode\":2,"
                        "\"unrecorded\":{\"items\":[]},\"host\":\"h\",\"pid\":7}]");
    assert_int_equal(df_json_int(doc, "planSummary.add", 0), 1);
    assert_true(cJSON_IsObject(df_json_at(doc, "outputs")));
    assert_true(df_json_equal(df_json_at(doc, "run"), run));
    assert_int_equal(cJSON_GetArraySize(doc), 4);
}

static void what_may_exist_is_shown_with_the_command_that_takes_it_over(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    DF_JSON cJSON *task =
        json("{'status':{'tool':{'name':'opentofu'},'unrecorded':{'items':["
             "{'address':'t.a','finished':true,'id':'i-1','idKey':'id'},"
             "{'address':'t.e[\\'x y\\']','finished':true,'id':'a b;$(c)','idKey':'id'},"
             "{'address':'t.n','finished':true,'id':'\\u001b[2Jweb','idKey':'tags.Name'},"
             "{'address':'t.u','finished':true},{'address':'t.b','finished':false},7],"
             "'more':3,'note':'not compared'}}}");
    df_unrecorded_add(task, &b);
    assert_string_equal(df_buf_str(&b),
                        "\nObjects that may exist and that no state records:\n"
                        "  t.a: was made; to take it over:\n    tofu import t.a i-1\n"
                        "  t.e[\"x y\"]: was made; to take it over:\n"
                        "    tofu import 't.e[\"x y\"]' 'a b;$(c)'\n"
                        "  t.n: was made, tags.Name ^[[2Jweb: look for its id, then `tofu import`\n"
                        "  t.u: was made, its id is not known: look for it\n"
                        "  t.b: was begun, may exist: look for it\n"
                        "  and 3 more: the log of the step names them\n"
                        "  (not compared)\n");
}

static void a_word_with_a_single_quote_stays_one_word_and_terraform_has_its_name(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    DF_JSON cJSON *task = json("{'status':{'tool':{'name':'terraform'},'unrecorded':{'items':["
                               "{'address':'t.a','finished':true,'id':'ITS','idKey':'id'}]}}}");
    cJSON *item = cJSON_GetArrayItem(df_json_at(task, "status.unrecorded.items"), 0);
    assert_int_equal(df_json_set_str(item, "id", "it's", NULL), 0);
    df_unrecorded_add(task, &b);
    assert_non_null(strstr(df_buf_str(&b), "    terraform import t.a 'it'\\''s'\n"));
}

static void a_step_without_such_a_list_shows_nothing(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    DF_JSON cJSON *task = json("{'status':{'reason':'ApplyFailed'}}");
    df_unrecorded_add(task, &b);
    assert_string_equal(df_buf_str(&b), "");
}

static void a_run_without_a_plan_has_null_for_its_summary(void **state)
{
    (void)state;
    DF_JSON cJSON *run = json("{'status':{}}"), *tasks = json("[]"), *outputs = json("{}");
    DF_JSON cJSON *doc = NULL;
    assert_int_equal(df_summary_document(run, tasks, outputs, &doc, NULL), 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(doc, "planSummary")));
    assert_int_equal(cJSON_GetArraySize(df_json_at(doc, "steps")), 0);
}

/* ---- reasons ----------------------------------------------------------------------------------
 */

static void every_reason_of_the_documentation_has_its_sentences(void **state)
{
    (void)state;
    DF_BUF struct df_buf page = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    assert_int_equal(df_fs_read("docs/objects.md", &page, NULL), 0);
    char *section = strstr(page.data, "\n## Reasons\n");
    assert_non_null(section);
    size_t found = 0;
    for (char *at = section; *at;) {
        size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        char word[64];
        (void)snprintf(word, sizeof(word), "%.*s", (int)(n < 63 ? n : 63), at);
        /* Reasons stand between backquotes, several in one pair. */
        size_t capitals = 0;
        for (size_t i = 0; i < n; i++)
            capitals += at[i] >= 'A' && at[i] <= 'Z';
        if (capitals >= 2 && !df_reason_find(word))
            fail_msg("no sentence for %s", word);
        found += capitals >= 2;
        at += n ? n : 1;
    }
    assert_true(found > 20);
}

static void reasons_are_sentences_and_known_once(void **state)
{
    (void)state;
    for (const struct df_reason *r = df_reasons; r->word; r++) {
        assert_ptr_equal(df_reason_find(r->word), r);
        assert_true(df_ends_with(r->meaning, "."));
        assert_true(!r->next || df_ends_with(r->next, "."));
    }
    assert_null(df_reason_find("Nonsense"));
    assert_null(df_reason_find(""));
}

static void a_step_has_an_owner_wherever_it_comes_from(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{'runRef':{'name':'net-3'}}", "net-3"},
        {"{'targetResource':'deployment/web'}", "deployment/web"},
        {"{'targetResource':'terrakube/e4','terrakube':{'organizationName':'acme',"
         "'workspaceName':'net','workspace':'e4','job':'12'}}",
         "acme/net, job 12"},
        {"{'terrakube':{'workspace':'e4','job':'12'}}", "e4, job 12"},
        {"{'terrakube':{'organizationName':'acme','job':'12'}}", "job 12"},
        {"{}", ""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *spec = json(cases[i][0]);
        DF_BUF struct df_buf out = DF_BUF_INIT(DF_KIB);
        df_text_owner(spec, &out);
        assert_string_equal(df_buf_str(&out), cases[i][1]);
    }
}

/* These reasons belong to what a job of Terrakube has not: documents, stored plans, moved states,
 * secrets of dayfly. */
static bool is_never_of_terrakube(const char *word)
{
    static const char *const words[] = {"Accepted",
                                        "BackendMissing",
                                        "CommitNotInBranch",
                                        "Deleting",
                                        "ExecutorGone",
                                        "IntegrationFailed",
                                        "IntegrationNotAllowed",
                                        "ErroredStatePending",
                                        "InternalError",
                                        "InvalidDocument",
                                        "NoSuchVersion",
                                        "PlanOfOtherRun",
                                        "PlanUsed",
                                        "SecretNotAllowed",
                                        "SecretSourceDenied",
                                        "SecretSourceUnavailable",
                                        "SecretUnreadable",
                                        "SensitiveValue",
                                        "StateBelongsToAnother",
                                        "StateChanged",
                                        "StateMoveFailed",
                                        "StateMoved",
                                        "StateUnreadable",
                                        "StorageChanged",
                                        "TargetLocked",
                                        "ToolVersionChanged",
                                        "ValidationFailed",
                                        "PodsExhausted",
                                        "WorkflowFailed"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (df_streq(words[i], word))
            return true;
    return false;
}

static void steps_of_terrakube_are_explained_without_runs_and_executors(void **state)
{
    (void)state;
    static const char *const strange[] = {"EXECUTOR", "`dayfly", "spec.", "he executor",
                                          "The run "};
    for (const struct df_reason *r = df_reasons; r->word; r++) {
        const struct df_reason *said = df_reason_of_kind(DF_TASK_TERRAKUBE, r->word);
        assert_non_null(said);
        assert_string_equal(said->word, r->word);
        for (size_t i = 0; i < DF_ARRAY_SIZE(strange) && !is_never_of_terrakube(r->word); i++)
            if (strstr(said->meaning, strange[i]) || (said->next && strstr(said->next, strange[i])))
                fail_msg("%s: %s %s", r->word, said->meaning, said->next);
    }
    assert_string_equal(df_reason_of_kind(DF_TASK_TERRAKUBE, "VariableInvalid")->word,
                        "VariableInvalid");
    assert_null(df_reason_of_kind(DF_TASK_TERRAKUBE, "Nonsense"));
}

static void workflows_are_explained_without_plans_states_and_runners(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "Completed",       "Canceled",         "Aborted",          "TimedOut",
        "InvalidStep",     "EngineFailed",     "Unschedulable",    "ImagePullFailed",
        "SecretMissing",   "ImageNameInvalid", "ConfigMapMissing", "KeyMissing",
        "ClaimMissing",    "NamespaceMissing", "QuotaExceeded",    "ServiceAccountMissing",
        "VolumeFailed",    "AdmissionRefused", "RunsAsRoot",       "CommandMissing",
        "ContainerFailed", "ObjectRefused",    "NotAllowed",       "InvalidPlacement",
        "OOMKilled",       "Evicted",          "Preempted",        "DeadlineExceeded",
        "NodeLost",        "NodeShutdown",     "PodDeleted",       "JobDeleted",
        "TargetLocked",    "PodsExhausted",    "WorkflowFailed",   "RunnerKilled"};
    static const char *const strange[] = {" state",
                                          " apply",
                                          " plan ",
                                          "dry-run",
                                          "runner",
                                          "xecutor",
                                          "timeouts",
                                          "placement.image:",
                                          "placement.serviceAccountName",
                                          "placement.resources"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++) {
        const struct df_reason *said = df_reason_of_kind(DF_TASK_WORKFLOW, ends[i]);
        assert_string_equal(said->word, ends[i]);
        for (size_t k = 0; k < DF_ARRAY_SIZE(strange); k++)
            if (strstr(said->meaning, strange[k]) || (said->next && strstr(said->next, strange[k])))
                fail_msg("%s: %s %s", ends[i], said->meaning, said->next);
    }
}

/* Without memory for its path no request is sent, and the server is not even looked for. */
static void a_path_or_text_that_is_missing_is_out_of_memory(void **state)
{
    (void)state;
    struct df_cli cli = {0};
    struct df_err asked = {0}, listed = {0}, printed = {0};
    cJSON *items = NULL;
    assert_int_equal(df_cli_call(&cli, "GET", NULL, NULL, NULL, &asked), -1);
    assert_int_equal(df_cli_list(&cli, NULL, &items, &listed), -1);
    assert_int_equal(df_cli_print(NULL, &printed), -1);
    assert_string_equal(asked.message, "out of memory");
    assert_string_equal(listed.message, "out of memory");
    assert_string_equal(printed.message, "out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_and_ages_use_the_units_that_people_use),
        cmocka_unit_test(foreign_text_cannot_steer_the_terminal),
        cmocka_unit_test(tables_are_aligned_by_characters_not_bytes),
        cmocka_unit_test(lists_show_the_columns_of_their_kind),
        cmocka_unit_test(a_table_is_cut_to_the_terminal),
        cmocka_unit_test(a_narrow_terminal_gets_fewer_columns_and_those_whole),
        cmocka_unit_test(rows_that_come_later_keep_the_columns),
        cmocka_unit_test(an_unknown_kind_is_answered_with_the_nearest),
        cmocka_unit_test(details_leave_out_what_has_no_value),
        cmocka_unit_test(details_have_all_lines_of_a_description_and_the_labels_that_people_gave),
        cmocka_unit_test(a_timeline_shows_what_each_stage_took),
        cmocka_unit_test(what_a_step_took_is_told_by_the_clock_of_the_service_alone),
        cmocka_unit_test(outputs_look_as_the_tool_shows_them_and_hide_what_is_sensitive),
        cmocka_unit_test(the_document_of_a_run_holds_its_four_parts),
        cmocka_unit_test(a_run_without_a_plan_has_null_for_its_summary),
        cmocka_unit_test(what_may_exist_is_shown_with_the_command_that_takes_it_over),
        cmocka_unit_test(a_word_with_a_single_quote_stays_one_word_and_terraform_has_its_name),
        cmocka_unit_test(a_step_without_such_a_list_shows_nothing),
        cmocka_unit_test(every_reason_of_the_documentation_has_its_sentences),
        cmocka_unit_test(reasons_are_sentences_and_known_once),
        cmocka_unit_test(a_step_has_an_owner_wherever_it_comes_from),
        cmocka_unit_test(steps_of_terrakube_are_explained_without_runs_and_executors),
        cmocka_unit_test(workflows_are_explained_without_plans_states_and_runners),
        cmocka_unit_test(a_path_or_text_that_is_missing_is_out_of_memory),
    };
    return cmocka_run_group_tests_name("render", tests, NULL, NULL);
}
