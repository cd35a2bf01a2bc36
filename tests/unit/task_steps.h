/*
 * task_steps.h - steps to decide about, for the tests of df_task_next(). Include behind cmocka.h.
 */
#ifndef DF_TEST_TASK_STEPS_H
#define DF_TEST_TASK_STEPS_H

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/model.h"

#define SECOND INT64_C(1000000)
#define EPOCH (INT64_C(1800000000) * SECOND) /* when the step was created */

struct step {
    enum df_outcome end;
    bool claimed, canceled;
    bool never_created;
    bool interrupted;
    bool unrecorded; /* the engine's: made, and the document does not say so */
    bool deleted;    /* the document, at CANCEL_S */
    bool tried;      /* its engine made a runner for it */
    bool counted;    /* which was lost, and counted */
    int failures;    /* tries that were lost before */
};

#define PENDING_S 120
#define TIMEOUT_S 3600
#define GRACE_S 900
#define MARGIN_S DF_TIMEOUT_MARGIN_SECONDS
#define CLAIM_S 5   /* the claim, after EPOCH */
#define CANCEL_S 50 /* the cancel, after EPOCH */
#define FINAL_S 100 /* the end, after EPOCH */

static inline void put_time(cJSON *parent, const char *member, int64_t second)
{
    assert_int_equal(
        df_json_add_time(df_json_object_at(parent, member), "at", EPOCH + second * SECOND, NULL),
        0);
}

static inline cJSON *make_step(const struct step *s)
{
    cJSON *task = cJSON_CreateObject();
    cJSON *spec = df_json_object_at(task, "spec"), *status = df_json_object_at(task, "status");
    (void)df_json_add_num(spec, "timeoutSeconds", TIMEOUT_S, NULL);
    (void)df_json_add_num(spec, "graceSeconds", GRACE_S, NULL);
    (void)df_json_add_num(spec, "pendingSeconds", PENDING_S, NULL);
    if (s->canceled)
        put_time(spec, "cancel", CANCEL_S);
    if (s->claimed)
        put_time(status, "claimedBy", CLAIM_S);
    if (s->interrupted)
        put_time(status, "interrupted", CANCEL_S);
    if (s->deleted) {
        char at[DF_TIME_LEN];
        (void)df_json_add_str(df_json_object_at(task, "metadata"), "deletionTimestamp",
                              df_time_format(EPOCH + CANCEL_S * SECOND, at), NULL);
    }
    if (s->tried)
        (void)df_json_add_str(df_json_object_at(status, "engineRef"), "name", "j", NULL);
    if (s->counted)
        (void)df_json_add_bool(df_json_object_at(status, "engineRef"), "lost", true, NULL);
    if (s->failures)
        (void)df_json_add_num(status, "systemFailures", s->failures, NULL);
    assert_int_equal(df_task_add_time(task, "queued", EPOCH - 9999 * SECOND, NULL), 0);
    if (!s->never_created)
        assert_int_equal(df_task_add_time(task, "created", EPOCH, NULL), 0);
    assert_int_equal(
        df_task_set_conditions(task, s->end, "Reason", "", EPOCH + FINAL_S * SECOND, NULL), 0);
    return task;
}

static inline struct df_engine_observation observed(enum df_engine_phase phase, bool has_result)
{
    struct df_engine_observation seen = {.phase = phase, .exit_code = -1, .has_result = has_result};
    if (phase != DF_ENGINE_ABSENT)
        seen.since_us = EPOCH;
    if (phase == DF_ENGINE_ENDED)
        (void)snprintf(seen.cause, sizeof(seen.cause), "killed by signal 9");
    return seen;
}

#define ABSENT DF_ENGINE_ABSENT
#define STARTING DF_ENGINE_PENDING
#define RUNNING DF_ENGINE_RUNNING
#define ENDED DF_ENGINE_ENDED
#define RAN_OUT (CLAIM_S + TIMEOUT_S + GRACE_S + MARGIN_S)
#define GIVEN_UP (RAN_OUT + GRACE_S + MARGIN_S)
#define CANCEL_OUT (CANCEL_S + GRACE_S + 2 * MARGIN_S)

#endif
