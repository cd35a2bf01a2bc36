/* runners.c - the route of runners that wait for a step, over steps/standby.h.
 * docs/step-protocol.md describes it. */
#include "spawner/api/handlers.h"
#include "spawner/http/forward.h"
#include "spawner/steps/standby.h"

int df_gate_runner(struct df_request *req, struct df_err *err)
{
    return df_runner_check(req->s, req->params[0], req->credentials.secret, err);
}

static bool is_gone(void *arg)
{
    return df_request_is_gone(arg);
}

int df_claim_for_runner(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_SECRET_JSON cJSON *step = NULL;
    DF_JSON cJSON *preparation = NULL;
    const struct df_standby_request r = {.id = req->params[0],
                                         .token = req->credentials.secret,
                                         .body = req->json,
                                         .gone = is_gone,
                                         .arg = req};
    if (df_runner_claim(req->s, &r, &step, &preparation, err) < 0)
        return -1;
    if (preparation)
        return df_respond_json(res, 202, preparation, err);
    if (!step) {
        df_respond_nothing(res);
        return 0;
    }
    if (df_offer_leader(req, step, err) < 0)
        return -1;
    res->secret = true;
    return df_respond_json(res, 200, step, err);
}
