/*
 * admission.c - the webhook of the API server (docs/internals/stamp.md). Anybody may call it: the
 * answer is made of the request alone, and nothing is stored but who deletes a document.
 */
#include "common/base/clock.h"
#include "spawner/api/handlers.h"
#include "spawner/model/review.h"
#include "spawner/requests/deletions.h"

/* Without the webhook nobody has a reason to send a body here. */
int df_gate_review(struct df_request *req, struct df_err *err)
{
    if (req->s->config->kube_webhook)
        return 0;
    return df_fail(err, DF_ERR_NOT_FOUND, "kubernetes.webhook is not set");
}

int df_review_admission(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    enum df_role role = DF_ROLE_NONE;
    const char *uid = NULL;
    struct df_stamp by;
    if (df_role_parse(req->params[0], &role, NULL) < 0 || role < DF_ROLE_WRITE)
        return df_fail(err, DF_ERR_NOT_FOUND, "the path ends with write or admin");
    if (df_review_answer(req->json, role, &answer, err) < 0)
        return -1;
    if (df_review_deletion(req->json, role, &uid, &by))
        df_deletions_tell(req->s->deletions, uid, &by, df_real_us());
    return df_respond_json(res, 200, answer, err);
}
