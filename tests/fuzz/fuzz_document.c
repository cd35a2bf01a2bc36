/*
 * fuzz_document - documents from strangers: admission, and the decisions about whatever a store may
 * hold. Input: one JSON document, or a list of up to four: run, executor, plan, apply.
 *
 * Held: a document that is admitted is admitted again unchanged; a refusal says why; no run is
 * applied without a plan that succeeded, no step is created again after its claim, and no workflow
 * after it was made.
 */
#include "spawner/model/model.h"
#include "spawner/model/workflow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW INT64_C(1795251001123456)

static void admit(const cJSON *given, enum df_kind kind, const cJSON *old)
{
    struct df_err err = {0};
    DF_JSON cJSON *doc = cJSON_Duplicate(given, true);
    if (df_model_admit(kind, doc, old, &err) < 0) {
        if (!df_streq(err.reason, "InvalidDocument") || !err.message[0])
            abort();
        return;
    }
    DF_JSON cJSON *once = cJSON_Duplicate(doc, true);
    if (df_model_admit(kind, doc, old, &err) < 0 || !df_json_equal(once, doc))
        abort();
}

static void decide_run(const cJSON *const docs[4])
{
    for (int first = 0; first < 2; first++) {
        const struct df_run_view view = {docs[0], docs[1], {docs[2], docs[3]}, first};
        struct df_run_verdict v = df_run_next(&view, NOW);
        bool planned = docs[2] && df_task_succeeded(docs[2]);
        if (v.next == DF_RUN_STEP && (docs[3] || (v.step ? !planned : docs[2] != NULL)))
            abort();
        if (v.next == DF_RUN_FINISH && (!v.phase || !v.reason[0]))
            abort();
    }
}

static void decide_step(const cJSON *task)
{
    for (unsigned i = 0; i < 8; i++) {
        struct df_engine_observation seen = {
            .phase = (enum df_engine_phase)(i & 3), .has_result = i & 4, .since_us = NOW};
        struct df_task_verdict v = df_task_next(task, &seen, NOW);
        const char *made = df_task_is_workflow(task) ? "status.engineRef" : "status.claimedBy";
        if (v.next == DF_TASK_CREATE && cJSON_IsObject(df_json_at(task, made)))
            abort();
        if (v.next == DF_TASK_FAIL && !v.reason[0])
            abort();
    }
}

static void change(const cJSON *executor, const cJSON *run)
{
    const char *words[9];
    DF_JSON cJSON *copy = cJSON_Duplicate(executor, true);
    if (!cJSON_IsObject(copy))
        return;
    int first = df_executor_follow_run(copy, run, false, NULL);
    DF_JSON cJSON *once = cJSON_Duplicate(copy, true);
    if (df_executor_follow_run(copy, run, false, NULL) != first || !df_json_equal(once, copy))
        abort();
    df_executor_actions(copy, DF_VERBS_ADMIN, words);
    (void)df_run_first_action(run, executor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DF_JSON cJSON *input = NULL;
    if (df_json_parse((const char *)data, size, &input, NULL) < 0)
        return 0;
    const cJSON *docs[4] = {input, NULL, NULL, NULL};
    for (int i = 0; cJSON_IsArray(input) && input->child && i < 4; i++) {
        docs[i] = cJSON_GetArrayItem(input, i);
        docs[i] = cJSON_IsObject(docs[i]) ? docs[i] : NULL;
    }
    for (int kind = 0; docs[0] && kind < DF_KIND_COUNT; kind++) {
        admit(docs[0], (enum df_kind)kind, NULL);
        admit(docs[0], (enum df_kind)kind, docs[1]);
    }
    if (!docs[0])
        return 0;
    decide_run(docs);
    decide_step(docs[0]);
    change(docs[1] ? docs[1] : docs[0], docs[0]);
    return 0;
}
