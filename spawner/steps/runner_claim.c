/*
 * runner_claim.c - the claim of a runner that waits for its step: a standby runner, or the runner
 * of a plan whose pod stays for the apply. Who may ask is checked before the wait, and the claim of
 * the offered step checks all of it again.
 */
#include "spawner/engine/engine.h"
#include "spawner/identity/claim.h"
#include "spawner/steps/engine_step.h"
#include "spawner/steps/standby.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"

/* ---- who asks ---- */

/* A runner that waits, and the pod that asks for it. */
struct asker {
    const cJSON *plan; /* shared; NULL: a standby runner */
    cJSON *ref;        /* of its Job; owned; NULL: there is no such runner */
    struct df_claim_pod pod;
};

static void asker_drop(struct asker *a)
{
    df_shared_drop(a->plan);
    cJSON_Delete(a->ref);
}
#define ASKER DF_CLEANUP(asker_drop)

static int find_plan(struct df_spawner *s, const char *uid, struct asker *a, struct df_err *err)
{
    DF_SHARED const cJSON *plan = NULL;
    struct df_err why = {0};
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &plan, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    const cJSON *ref = df_json_at(plan, "status.engineRef");
    if (!df_shared_pod_guest(plan) || !ref)
        return 0;
    a->plan = DF_TAKE(plan);
    return df_check_alloc(a->ref = cJSON_Duplicate(ref, true), err);
}

/* The token comes before all else: its failure is the same for any id. */
static int find_asker(struct df_spawner *s, const char *id, const char *token, struct asker *ret,
                      struct df_err *err)
{
    if (!s->standby || !s->claims)
        return df_fail(err, DF_ERR_DENIED, "no runner waits for a step of this spawner");
    if ((df_standby_is(id) ? df_standby_ref(s->standby, id, &ret->ref, err)
                           : find_plan(s, id, ret, err)) < 0)
        return -1;
    return ret->ref ? df_claim_check(s->claims, id, ret->ref, token, &ret->pod, err)
                    : df_claim_check_audience(s->claims, id, token, err);
}

int df_runner_check(struct df_spawner *s, const char *id, const char *token, struct df_err *err)
{
    ASKER struct asker a = {0};
    return find_asker(s, id, token, &a, err);
}

/* Did the Job of the runner make this pod? Standby runners are of the engine of new steps. */
static int check_pod(struct df_spawner *s, const char *id, const struct asker *a,
                     struct df_err *err)
{
    struct df_engine_step job = {.name = id, .uid = id, .ref = a->ref};
    if (a->plan)
        df_engine_step_of(s, a->plan, &job);
    const char *engine = a->plan ? df_json_str(a->plan, "spec.engine") : s->config->engine;
    return df_engine_step_check_pod(s, engine, &job, &a->pod, err);
}

/* Code of the plan's module may have read the token of the pod, but not the claimId: it is to wait
 * for nothing. */
static int check_request(struct df_spawner *s, const struct df_standby_request *r,
                         const struct asker *a, struct df_err *err)
{
    if (df_step_check_claim_id(r->body, err) < 0 || (a->ref && check_pod(s, r->id, a, err) < 0))
        return -1;
    if (!a->plan || df_step_is_held_by(a->plan, r->body, &a->pod))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "PodNotOfStep",
                          "this is not the runner that has claimed step %s",
                          df_json_str(a->plan, "metadata.name"));
}

/* ---- the apply of a plan ---- */

static int look_for(struct df_spawner *s, enum df_kind kind, const char *name, const cJSON **ret,
                    struct df_err *err)
{
    return name ? df_store_look_for(s->store, kind, name, ret, err) : 0;
}

int df_runner_next(struct df_spawner *s, const cJSON *plan, enum df_shared_pod_next *ret,
                   char ret_apply[DF_STANDBY_STEP], struct df_err *err)
{
    DF_SHARED const cJSON *run = NULL, *apply = NULL;
    if (look_for(s, DF_KIND_RUN, df_json_str(plan, "spec.runRef.name"), &run, err) < 0 ||
        look_for(s, DF_KIND_TASK_ACTION, df_shared_pod_guest(plan), &apply, err) < 0)
        return -1;
    *ret = df_shared_pod_next(plan, run, apply);
    if (ret_apply)
        df_copy(ret_apply, DF_STANDBY_STEP,
                *ret == DF_SHARED_POD_APPLY ? df_json_str(apply, "metadata.uid") : "");
    return 0;
}

static int fail_left(struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_RETRY, "NotDecidedYet", "the wait for a step was cut short");
}

/* What the request of a plan's runner waits for, besides an offer: that there will be none. */
struct decision {
    struct df_spawner *s;
    const cJSON *plan;
    const struct df_standby_request *request;
};

static bool is_decided(void *arg)
{
    const struct decision *d = arg;
    enum df_shared_pod_next next;
    return d->request->gone(d->request->arg) ||
           (df_runner_next(d->s, d->plan, &next, NULL, NULL) == 0 && next != DF_SHARED_POD_WAITS);
}

/* What is stored says whether this runner has the apply, however the wait ended. */
static int wait_for_apply(struct df_spawner *s, const cJSON *plan,
                          const struct df_standby_request *r, struct df_standby_answer *ret,
                          struct df_err *err)
{
    struct decision d = {s, plan, r};
    struct df_standby_request waiting = *r;
    enum df_shared_pod_next next;
    waiting.gone = is_decided;
    waiting.arg = &d;
    if (df_runner_next(s, plan, &next, ret->step, err) < 0)
        return -1;
    if (next == DF_SHARED_POD_WAITS) {
        if (!df_standby_wait_for_offer(s->standby, &waiting, DF_STANDBY_WAIT_MS))
            return fail_left(err);
        if (df_runner_next(s, plan, &next, ret->step, err) < 0)
            return -1;
    }
    return next == DF_SHARED_POD_ENDS ? df_step_fail_over(err) : 0;
}

/* ---- the claim ---- */

static int wait_for_step(struct df_spawner *s, const struct asker *a,
                         const struct df_standby_request *r, struct df_standby_answer *ret,
                         struct df_err *err)
{
    if (a->plan)
        return wait_for_apply(s, a->plan, r, ret, err);
    return df_standby_is(r->id) ? df_standby_wait(s->standby, r, DF_STANDBY_WAIT_MS, ret, err)
                                : df_step_fail_over(err);
}

int df_runner_claim(struct df_spawner *s, const struct df_standby_request *r, cJSON **ret,
                    cJSON **ret_preparation, struct df_err *err)
{
    ASKER struct asker a = {0};
    struct df_standby_answer answer = {0};
    *ret = *ret_preparation = NULL;
    if (find_asker(s, r->id, r->token, &a, err) < 0 || check_request(s, r, &a, err) < 0 ||
        wait_for_step(s, &a, r, &answer, err) < 0)
        return -1;
    *ret_preparation = answer.preparation;
    if (!answer.step[0])
        return 0;
    /* A client that has left asks again, and claims for itself. */
    return r->gone(r->arg) ? fail_left(err)
                           : df_step_claim(s, answer.step, r->token, r->body, ret, err);
}
