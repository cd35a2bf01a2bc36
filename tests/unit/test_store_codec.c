#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/labels.h"
#include "spawner/model/tables.h"
#include "spawner/store/documents/codec.h"
#include "tests/unit/json_words.h"

#define API "dayfly.dev/v1alpha1"

static cJSON *document_of(enum df_kind kind, const char *resource)
{
    struct df_err err = {0};
    cJSON *j = json(resource);
    if (df_codec_to_document(kind, j, &err) < 0)
        fail_msg("%s", err.message);
    return j;
}

static const char taken_in[] =
    "{'metadata':{'name':'first','uid':'u','resourceVersion':'9','generation':1,'managedFields':[],"
    "'finalizers':['dayfly.dev/cleanup'],'labels':{'team':'a','dayfly.dev/live':'true'}},"
    "'spec':{'action':'destroy','executorRef':{'name':'net'},'variables':{'x':2},"
    "'cancel':{'reason':'r'}},"
    "'status':{'phase':'Running','service':{'order':'5','uid':'u','labels':{'dayfly.dev/"
    "queue':'net'},"
    "'spec':{'action':'provision','executorRef':{'name':'net','uid':'e'},'number':3}}}}";

static void a_document_shows_what_the_service_took_in_and_not_what_was_written_since(void **state)
{
    (void)state;
    DF_JSON cJSON *doc = document_of(DF_KIND_RUN, taken_in);
    assert_at(doc, "spec",
              "{'action':'provision','executorRef':{'name':'net','uid':'e'},'number':3,"
              "'cancel':{'reason':'r'}}");
    assert_at(doc, "status", "{'phase':'Running'}");
    assert_string_equal(df_json_str(doc, "kind"), "Run");
    assert_null(df_json_at(doc, "metadata.finalizers"));
    assert_null(df_json_at(doc, "metadata.managedFields"));
}

/* No field of a Run or TaskAction is forgotten: people may write all of its spec at any time. */
static void each_field_stays_as_it_was_taken_in_but_decision_and_cancel(void **state)
{
    (void)state;
    for (int k = DF_KIND_RUN; k <= DF_KIND_TASK_ACTION; k++) {
        for (const struct df_field *f = df_kind_row((enum df_kind)k)->spec; f->name; f++) {
            bool later = df_streq(f->name, "decision") || df_streq(f->name, "cancel");
            DF_FREE char *text = df_strf("{'metadata':{'name':'a'},'spec':{'%s':'theirs'},"
                                         "'status':{'service':{'spec':{'number':3}}}}",
                                         f->name);
            DF_JSON cJSON *doc = document_of((enum df_kind)k, text);
            const char *value = df_json_str(df_json_at(doc, "spec"), f->name);
            if (later != df_streq(value, "theirs"))
                fail_msg("%s: %s", f->name, value ? value : "gone");
        }
    }
}

static void labels_that_the_service_relies_on_come_from_the_status_alone(void **state)
{
    (void)state;
    DF_JSON cJSON *doc = document_of(DF_KIND_RUN, taken_in), *resource = json(taken_in);
    assert_at(doc, "metadata.labels", "{'team':'a','dayfly.dev/queue':'net'}");
    DF_STRS struct df_strs labels = {0};
    assert_int_equal(df_codec_labels(resource, &labels, NULL), 0);
    DF_FREE char *text = df_strs_join(&labels, " ");
    assert_string_equal(text, "team=a dayfly.dev/queue=net");
    assert_true(df_codec_order(resource) > 5); /* behind what was restored */
}

/* As after a backup of the cluster was restored into a new one, whose resourceVersions began
 * anew. */
static void a_resource_that_was_created_again_is_the_document_that_it_was(void **state)
{
    (void)state;
    DF_JSON cJSON *old = json(taken_in), *again = json(taken_in), *newer = json(taken_in);
    DF_JSON cJSON *status = NULL, *unchanged = NULL;
    cJSON *metadata = df_json_object_at(again, "metadata");
    assert_int_equal(df_json_set_str(metadata, "uid", "other", NULL), 0);
    assert_int_equal(df_json_set_str(metadata, "resourceVersion", "2", NULL), 0);
    assert_string_equal(df_codec_uid(again), "u");
    DF_JSON cJSON *doc = cJSON_Duplicate(again, true);
    assert_int_equal(df_codec_to_document(DF_KIND_RUN, doc, NULL), 0);
    assert_string_equal(df_json_str(doc, "metadata.uid"), "u");
    assert_int_equal(df_codec_status(DF_KIND_RUN, API, doc, again, &unchanged, NULL), 0);
    assert_null(unchanged);
    assert_int_equal(df_json_set_str(df_json_object_at(doc, "status"), "phase", "Failed", NULL), 0);
    assert_int_equal(df_codec_status(DF_KIND_RUN, API, doc, again, &status, NULL), 0);
    assert_string_equal(df_json_str(status, "metadata.uid"), "other"); /* the API server's */
    assert_string_equal(df_json_str(status, "status.service.uid"), "u");
    /* It stands before everything of this cluster, in its old order. */
    cJSON_DeleteItemFromObjectCaseSensitive(newer, "status");
    assert_int_equal(
        df_json_set_str(df_json_object_at(newer, "metadata"), "resourceVersion", "1", NULL), 0);
    assert_int_equal(df_codec_order(again), 5);
    assert_true(df_codec_order(newer) > df_codec_order(again));
    assert_true(df_codec_order(old) > df_codec_order(newer));
}

static void what_nobody_took_in_is_a_document_without_status(void **state)
{
    (void)state;
    static const char resource[] = "{'metadata':{'name':'first','resourceVersion':'7'},"
                                   "'spec':{'action':'provision'},'status':{'phase':'Succeeded'}}";
    DF_JSON cJSON *doc = document_of(DF_KIND_RUN, resource);
    assert_null(df_json_at(doc, "status"));
}

static void what_nobody_looked_at_is_found_as_unfinished(void **state)
{
    (void)state;
    static const struct {
        const char *resource;
        bool found;
    } cases[] = {
        {"{'metadata':{},'spec':{}}", true},
        {"{'metadata':{},'status':{'phase':'Failed'}}", true},
        {"{'metadata':{'generation':4},'status':{'service':{}}}", false},
        {"{'metadata':{'generation':2},'status':{'revision':1,'service':{}}}", true},
        {"{'metadata':{'generation':2},'status':{'revision':2,'service':{}}}", false},
        {"{'metadata':{'deletionTimestamp':'2026-11-21T20:17:40Z'},'status':{'service':{}}}", true},
        {"{'metadata':{},'status':{'service':{'labels':{'dayfly.dev/unfinished':'true'}}}}", true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *resource = json(cases[i].resource);
        DF_STRS struct df_strs labels = {0};
        assert_int_equal(df_codec_labels(resource, &labels, NULL), 0);
        assert_int_equal(df_strs_has(&labels, "dayfly.dev/unfinished=true"), cases[i].found);
        assert_true(labels.len <= 1); /* found once */
    }
}

static void what_was_made_again_and_has_not_ended_is_found_as_restored(void **state)
{
    (void)state;
    static const struct {
        const char *resource;
        bool found;
    } cases[] = {
        {"{'metadata':{'uid':'b'},'status':{'service':{'uid':'a',"
         "'labels':{'dayfly.dev/unfinished':'true'}}}}",
         true},
        {"{'metadata':{'uid':'a'},'status':{'service':{'uid':'a',"
         "'labels':{'dayfly.dev/unfinished':'true'}}}}",
         false},
        {"{'metadata':{'uid':'b'},'status':{'service':{'uid':'a'}}}", false},
        {"{'metadata':{'uid':'b'},'spec':{}}", false},
        /* people write labels as they like */
        {"{'metadata':{'uid':'a','labels':{'dayfly.dev/restored':'true'}},"
         "'status':{'service':{'uid':'a','labels':{'dayfly.dev/unfinished':'true'}}}}",
         false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *resource = json(cases[i].resource);
        DF_STRS struct df_strs labels = {0};
        assert_int_equal(df_codec_labels(resource, &labels, NULL), 0);
        assert_int_equal(df_strs_has(&labels, "dayfly.dev/restored=true"), cases[i].found);
    }
}

static void a_new_resource_shows_what_people_ask_for_and_holds_the_rest_in_its_status(void **state)
{
    (void)state;
    DF_JSON cJSON *doc =
        json("{'metadata':{'name':'net-1-plan','namespace':'default','uid':'x',"
             "'labels':{'dayfly.dev/run':'net-1','dayfly.dev/live':'true','team':'a'}},"
             "'spec':{'action':'plan','runRef':{'name':'net-1'},'source':{'url':'file:///src'}},"
             "'status':{'phase':'x'}}");
    DF_JSON cJSON *resource = NULL, *status = NULL, *main = NULL;
    assert_int_equal(df_codec_new(DF_KIND_TASK_ACTION, API, doc, "apps", &resource, NULL), 0);
    assert_at(resource, "metadata",
              "{'name':'net-1-plan','namespace':'apps','finalizers':['dayfly.dev/cleanup'],"
              "'labels':{'dayfly.dev/run':'net-1','team':'a'}}");
    assert_at(resource, "spec", "{'action':'plan','runRef':{'name':'net-1'}}");
    assert_null(df_json_at(resource, "status"));
    /* As the API server answers. */
    assert_int_equal(
        df_json_add_str(df_json_object_at(resource, "metadata"), "resourceVersion", "12", NULL), 0);
    assert_int_equal(df_codec_main(DF_KIND_TASK_ACTION, API, doc, resource, &main, NULL), 0);
    assert_null(main);
    assert_int_equal(df_codec_status(DF_KIND_TASK_ACTION, API, doc, resource, &status, NULL), 0);
    assert_at(status, "status",
              "{'phase':'x','service':{'order':'12',"
              "'labels':{'dayfly.dev/run':'net-1','dayfly.dev/live':'true'},"
              "'spec':{'action':'plan','runRef':{'name':'net-1'},"
              "'source':{'url':'file:///src'}}}}");
    assert_null(df_json_at(status, "spec"));
}

/* Which of the two requests a change of the document takes. */
static void each_change_is_written_where_it_belongs(void **state)
{
    (void)state;
    static const struct {
        const char *path, *member, *value;
        bool main, status;
    } cases[] = {
        {NULL, NULL, NULL, false, false},
        {"status", "phase", "'Succeeded'", false, true},
        {"spec", "cancel", "{'reason':'r','by':'eve'}", false, true},
        {"spec", "number", "4", false, true},
        {"spec", "unknown", "1", true, false},
        {"metadata", "annotations", "{'a':'b'}", true, false},
        {"metadata", "labels", "{'team':'b','dayfly.dev/queue':'net'}", true, false},
        {"metadata", "labels", "{'team':'a'}", false, true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *doc = document_of(DF_KIND_RUN, taken_in), *resource = json(taken_in);
        DF_JSON cJSON *main = NULL, *status = NULL;
        if (cases[i].path)
            assert_int_equal(df_json_set(df_json_object_at(doc, cases[i].path), cases[i].member,
                                         json(cases[i].value), NULL),
                             0);
        assert_int_equal(df_codec_main(DF_KIND_RUN, API, doc, resource, &main, NULL), 0);
        assert_int_equal(df_codec_status(DF_KIND_RUN, API, doc, resource, &status, NULL), 0);
        if ((main != NULL) != cases[i].main || (status != NULL) != cases[i].status)
            fail_msg("case %zu: main %d, status %d", i, main != NULL, status != NULL);
    }
}

static void the_service_never_writes_into_what_people_wrote(void **state)
{
    (void)state;
    DF_JSON cJSON *doc = document_of(DF_KIND_RUN, taken_in), *resource = json(taken_in);
    DF_JSON cJSON *main = NULL;
    assert_int_equal(
        df_json_set(df_json_object_at(doc, "metadata"), "annotations", json("{'a':'b'}"), NULL), 0);
    assert_int_equal(df_codec_main(DF_KIND_RUN, API, doc, resource, &main, NULL), 0);
    assert_true(df_json_equal(df_json_at(main, "spec"), df_json_at(resource, "spec")));
    assert_null(df_json_at(main, "status"));
    assert_at(main, "metadata.labels", "{'team':'a','dayfly.dev/live':'true'}");
}

/* "spec.decision" of the resource after the service has written the document. */
static void a_decision_that_the_service_takes_away_goes_from_what_people_wrote(void **state)
{
    (void)state;
    DF_JSON cJSON *resource = json(taken_in), *main = NULL, *status = NULL;
    assert_int_equal(df_json_set(df_json_object_at(resource, "spec"), "decision",
                                 json("{'verdict':'approved'}"), NULL),
                     0);
    DF_JSON cJSON *doc = cJSON_Duplicate(resource, true);
    assert_int_equal(df_codec_to_document(DF_KIND_RUN, doc, NULL), 0);
    assert_string_equal(df_json_str(doc, "spec.decision.verdict"), "approved");
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(doc, "spec"), "decision");
    assert_int_equal(df_codec_main(DF_KIND_RUN, API, doc, resource, &main, NULL), 0);
    assert_non_null(main);
    assert_null(df_json_at(main, "spec.decision"));
    assert_string_equal(df_json_str(main, "spec.action"), df_json_str(resource, "spec.action"));
    assert_int_equal(df_codec_status(DF_KIND_RUN, API, doc, resource, &status, NULL), 0);
}

static void a_resource_that_is_taken_in_gets_the_finalizer_unless_it_is_being_deleted(void **state)
{
    (void)state;
    static const char *const resources[] = {
        "{'metadata':{'name':'a','finalizers':['x/y']},'spec':{}}",
        ("{'metadata':{'name':'a','finalizers':['x/y'],"
         "'deletionTimestamp':'2026-11-21T20:17:40Z'},'spec':{}}"),
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(resources); i++) {
        DF_JSON cJSON *doc = document_of(DF_KIND_EXECUTOR, resources[i]),
                      *resource = json(resources[i]);
        DF_JSON cJSON *main = NULL, *others = NULL;
        assert_int_equal(df_codec_main(DF_KIND_EXECUTOR, API, doc, resource, &main, NULL), 0);
        assert_int_equal(main != NULL, i == 0);
        if (!main)
            continue;
        assert_at(main, "metadata.finalizers", "['x/y','dayfly.dev/cleanup']");
        others = df_codec_other_finalizers(main);
        assert_at(resource, "metadata.finalizers", "['x/y']");
        assert_int_equal(cJSON_GetArraySize(others), 1);
    }
}

static void a_resource_that_is_taken_in_shows_its_executor_as_a_label(void **state)
{
    (void)state;
    static const struct {
        const char *labels, *shown;
    } rows[] = {
        {"{}", "{'dayfly.dev/executor':'net'}"},
        {"{'team':'a'}", "{'team':'a','dayfly.dev/executor':'net'}"},
        {"{'dayfly.dev/executor':'mine'}", "{'dayfly.dev/executor':'mine'}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *text =
            df_strf("{'metadata':{'name':'a','labels':%s},'spec':{}}", rows[i].labels);
        DF_JSON cJSON *resource = json(text), *doc = document_of(DF_KIND_RUN, text), *main = NULL;
        assert_int_equal(df_label_set(doc, DF_LABEL_EXECUTOR, "net", NULL), 0);
        assert_int_equal(df_codec_main(DF_KIND_RUN, API, doc, resource, &main, NULL), 0);
        assert_at(main, "metadata.labels", rows[i].shown);
    }
}

static void a_number_that_the_api_server_would_round_is_refused_with_its_path(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *kept =
        json("{'spec':{'variables':{'a':0.1,'b':-9223372036854775808,'c':1e300,'d':-0}}}");
    DF_JSON cJSON *rounded =
        json("{'spec':{'variables':{'f':0.1234567890123456789,'list':[1,18446744073709551617]}}}");
    assert_int_equal(df_codec_check_numbers(kept, &err), 0);
    assert_int_equal(df_codec_check_numbers(rounded, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.reason, "InvalidDocument");
    assert_string_equal(err.message,
                        "spec.variables.f: Kubernetes would round the number "
                        "0.1234567890123456789: put it in quotes; spec.variables.list[1]: "
                        "Kubernetes would round the number 18446744073709551617: put it in quotes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_shows_what_the_service_took_in_and_not_what_was_written_since),
        cmocka_unit_test(each_field_stays_as_it_was_taken_in_but_decision_and_cancel),
        cmocka_unit_test(labels_that_the_service_relies_on_come_from_the_status_alone),
        cmocka_unit_test(a_resource_that_was_created_again_is_the_document_that_it_was),
        cmocka_unit_test(what_nobody_took_in_is_a_document_without_status),
        cmocka_unit_test(what_nobody_looked_at_is_found_as_unfinished),
        cmocka_unit_test(what_was_made_again_and_has_not_ended_is_found_as_restored),
        cmocka_unit_test(a_new_resource_shows_what_people_ask_for_and_holds_the_rest_in_its_status),
        cmocka_unit_test(each_change_is_written_where_it_belongs),
        cmocka_unit_test(the_service_never_writes_into_what_people_wrote),
        cmocka_unit_test(a_decision_that_the_service_takes_away_goes_from_what_people_wrote),
        cmocka_unit_test(a_resource_that_is_taken_in_gets_the_finalizer_unless_it_is_being_deleted),
        cmocka_unit_test(a_resource_that_is_taken_in_shows_its_executor_as_a_label),
        cmocka_unit_test(a_number_that_the_api_server_would_round_is_refused_with_its_path),
    };
    return cmocka_run_group_tests_name("store_codec", tests, NULL, NULL);
}
