/*
 * runner_claim.c - the claim of a standby runner: who may ask is checked before the wait, and the claim
 * of the offered step checks all of it again.
 */
#include "spawner/engine/engine.h"
#include "spawner/identity/claim.h"
#include "spawner/steps/standby.h"
#include "spawner/steps/steps.h"

/* *ret_ref: that of the id, and *ret_pod the pod that asks; NULL: the id is not in the list. The token
 * comes first: its failure is the same for any id. */
static int check_token(struct df_spawner *s, const char *id, const char *token, cJSON **ret_ref,
                       struct df_claim_pod *ret_pod, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    if (!s->standby || !s->claims || !df_standby_is(id))
        return df_fail(err, DF_ERR_DENIED, "this spawner has no such standby runner");
    if (df_standby_ref(s->standby, id, &ref, err) < 0 ||
        (ref ? df_claim_check(s->claims, id, ref, token, ret_pod, err)
             : df_claim_check_audience(s->claims, id, token, err)) < 0)
        return -1;
    *ret_ref = DF_TAKE(ref);
    return 0;
}

int df_runner_check(struct df_spawner *s, const char *id, const char *token, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    struct df_claim_pod pod;
    return check_token(s, id, token, &ref, &pod, err);
}

/* Did the Job of the id make this pod? Standby runners are of the engine of new steps. */
static int check_pod(struct df_spawner *s, const char *id, const cJSON *ref,
                     const struct df_claim_pod *claimant, struct df_err *err)
{
    struct df_engine *e = NULL;
    const struct df_engine_step job = {.name = id, .uid = id, .ref = ref};
    const struct df_engine_pod pod = {.name = claimant->name, .uid = claimant->uid};
    if (df_engine_get_for(&s->engines, s->config->engine, &job, &e, err) < 0)
        return -1;
    return e->ops->runner->check_pod(e, &job, &pod, err);
}

int df_runner_claim(struct df_spawner *s, const struct df_standby_request *r, cJSON **ret,
                    cJSON **ret_preparation, struct df_err *err)
{
    DF_JSON cJSON *ref = NULL;
    struct df_claim_pod pod;
    struct df_standby_answer answer;
    *ret = *ret_preparation = NULL;
    if (check_token(s, r->id, r->token, &ref, &pod, err) < 0 ||
        df_step_check_claim_id(r->body, err) < 0 ||
        (ref && check_pod(s, r->id, ref, &pod, err) < 0) ||
        df_standby_wait(s->standby, r, DF_STANDBY_WAIT_MS, &answer, err) < 0)
        return -1;
    *ret_preparation = answer.preparation;
    return answer.step[0] ? df_step_claim(s, answer.step, r->token, r->body, ret, err) : 0;
}
