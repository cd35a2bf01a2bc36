/* What a document must say, field by field: each that lacks is named. The cases are
 * those of Flyte's validation, with the fields that are required here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/model.h"
#include "tests/unit/kube_words.h"

/* Whole documents. */
#define EXECUTOR "{'metadata':{'name':'net'},'spec':{'source':{'url':'file:///src'}}}"
#define RUN                                                                                        \
    "{'metadata':{'name':'net-1'},'spec':{'executorRef':{'name':'net'},'action':'provision'}}"
#define STEP                                                                                       \
    "{'metadata':{'name':'net-1-plan'},'spec':{'action':'plan','engine':'local','runRef':{'name':" \
    "'net-1'},'executorRef':{'name':'net'},'targetResource':'executor/net','source':{'url':"       \
    "'file:///src'}}}"
#define WORKFLOW                                                                                   \
    "{'metadata':{'name':'restart'},'spec':{'action':'workflow','targetResource':"                 \
    "'default/deployment/app','workflow':{'executionBundle':'image','dependencies':{'secrets':[{"  \
    "'name':'s'}]}}}}"

static const struct {
    enum df_kind kind;
    const char *whole;
    const char *outer, *inner, *member; /* what is taken away; inner may be NULL */
} rows[] = {
    {DF_KIND_EXECUTOR, EXECUTOR, "metadata", NULL, "name"},
    {DF_KIND_EXECUTOR, EXECUTOR, "spec", NULL, "source"},
    {DF_KIND_EXECUTOR, EXECUTOR, "spec", "source", "url"},
    {DF_KIND_RUN, RUN, "spec", NULL, "executorRef"},
    {DF_KIND_RUN, RUN, "spec", "executorRef", "name"},
    {DF_KIND_RUN, RUN, "spec", NULL, "action"},
    {DF_KIND_TASK_ACTION, STEP, "metadata", NULL, "name"},
    {DF_KIND_TASK_ACTION, STEP, "spec", NULL, "action"},
    {DF_KIND_TASK_ACTION, STEP, "spec", NULL, "engine"},
    {DF_KIND_TASK_ACTION, STEP, "spec", NULL, "runRef"},
    {DF_KIND_TASK_ACTION, STEP, "spec", "runRef", "name"},
    {DF_KIND_TASK_ACTION, STEP, "spec", NULL, "executorRef"},
    {DF_KIND_TASK_ACTION, STEP, "spec", "executorRef", "name"},
    {DF_KIND_TASK_ACTION, STEP, "spec", NULL, "targetResource"},
    {DF_KIND_TASK_ACTION, STEP, "spec", NULL, "source"},
    {DF_KIND_TASK_ACTION, STEP, "spec", "source", "url"},
    {DF_KIND_TASK_ACTION, WORKFLOW, "spec", NULL, "action"},
    {DF_KIND_TASK_ACTION, WORKFLOW, "spec", NULL, "targetResource"},
    {DF_KIND_TASK_ACTION, WORKFLOW, "spec", NULL, "workflow"},
};

static void a_whole_document_is_admitted(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *doc = json(rows[i].whole);
        struct df_err err = {0};
        if (df_model_admit(rows[i].kind, doc, NULL, &err) < 0)
            fail_msg("%s: %s", df_kind_name(rows[i].kind), err.message);
    }
}

/* Takes the member away; returns its path. */
static char *take_away(cJSON *doc, size_t row)
{
    const char *inner = rows[row].inner, *member = rows[row].member;
    cJSON *object = df_json_object_at(doc, rows[row].outer);
    if (inner)
        object = df_json_object_at(object, inner);
    cJSON_DeleteItemFromObjectCaseSensitive(object, member);
    return df_strf("%s%s%s.%s", rows[row].outer, inner ? "." : "", inner ? inner : "", member);
}

static void a_field_that_lacks_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *doc = json(rows[i].whole);
        DF_FREE char *path = take_away(doc, i);
        DF_FREE char *words = df_strf("%s: is required", path);
        struct df_err err = {0};
        if (df_model_admit(rows[i].kind, doc, NULL, &err) == 0 ||
            !df_streq(err.reason, "InvalidDocument") || !strstr(err.message, words))
            fail_msg("%s without %s: %s", df_kind_name(rows[i].kind), path, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_document_is_admitted),
        cmocka_unit_test(a_field_that_lacks_is_named),
    };
    return cmocka_run_group_tests_name("model_required", tests, NULL, NULL);
}
