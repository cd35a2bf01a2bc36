#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/engine/job_engine.h"
#include "spawner/engine/placement.h"

/* An optional plugin cache is mounted where its claim exists. */
static int find_plugin_claim(const struct df_job_options *o, const cJSON *placement, bool *ret,
                             struct df_err *err)
{
    static const struct df_kube_resource claims = {"", "v1", "persistentvolumeclaims"};
    const char *name = df_json_str(placement, "pluginCache.claimName");
    *ret = name && !df_json_bool(df_json_at(placement, "pluginCache"), "optional", false);
    if (!name || *ret)
        return 0;
    const struct df_kube_at at = {.resource = &claims, .name_space = o->name_space, .name = name};
    struct df_err why = {0};
    *ret = df_kube_get(o->kube, &at, NULL, &why) == 0;
    if (*ret || why.cls == DF_ERR_NOT_FOUND || why.cls == DF_ERR_DENIED)
        return 0;
    *err = why;
    return -1;
}

static int read_ca(const struct df_engine_step *step, struct df_buf *to, struct df_err *err)
{
    return step->ca_file ? df_fs_read(step->ca_file, to, err) : 0;
}

int df_job_render(const struct df_job_options *o, const struct df_engine_step *step, cJSON **ret,
                  struct df_err *err)
{
    DF_JSON cJSON *placement = NULL;
    DF_BUF struct df_buf ca = DF_BUF_INIT(DF_LIMIT_CA_ANNOTATION);
    bool has_claim = false;
    if (df_placement_resolve(&step->placement, &placement, err) < 0 ||
        find_plugin_claim(o, placement, &has_claim, err) < 0 || read_ca(step, &ca, err) < 0)
        return -1;
    const struct df_job_spec spec = {
        .name = step->name,
        .namespace = o->name_space,
        .uid = step->uid,
        .run = step->run,
        .executor = step->executor,
        .action = step->action,
        .claim = o->by_secret ? DF_CLAIM_SECRET : DF_CLAIM_TOKEN,
        .image = o->image,
        .server_url = o->reachable ? step->server_url : NULL,
        .ca_pem = ca.len ? df_buf_str(&ca) : NULL,
        .timeout_seconds = step->timeout_seconds,
        .grace_seconds = step->grace_seconds,
        .pending_seconds = step->pending_seconds,
        .ttl_seconds = o->ttl_seconds,
        .placement = placement,
        .has_plugin_claim = has_claim,
    };
    return df_job_build(&spec, ret, err);
}

#define JOB_UID_LABEL "batch.kubernetes.io/controller-uid" /* on its pods */

/* Its pod may have ended before the Job says so. */
static bool is_over(const struct df_job_engine *j, const struct df_engine_step *step,
                    const cJSON *job)
{
    DF_JOB_VIEW struct df_job_view view = {0};
    if (!job || df_workflow_is_completed(job) || df_kube_is_deleted(job))
        return job != NULL;
    return df_job_look(j->watch, step, &view, NULL) == 0 && view.pod &&
           df_streq(df_kube_label(view.pod, JOB_UID_LABEL), df_kube_uid(job)) &&
           df_job_judge(step, &view, 0).phase == DF_ENGINE_ENDED;
}

/* The name is taken: by ourselves, in a call whose answer was lost; by an earlier try of the step;
 * or by somebody else, whose Job is never touched. */
static int meet_existing(const struct df_job_engine *j, const struct df_engine_step *step,
                         cJSON **ret_job, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (df_job_read(j->o.kube, j->name_space, step->name, &job, err) < 0)
        return -1;
    const char *owner = job ? df_kube_label(job, DF_LABEL_STEP_UID) : NULL;
    if (job && !df_streq(owner, step->uid))
        return df_fail_reason(
            err, DF_ERR_CONFLICT, "NameTaken",
            "the Job %s/%s is another's (step %s): delete it, or wait for its end", j->name_space,
            step->name, owner ? owner : "unknown");
    bool ended = is_over(j, step, job);
    if (ended && df_job_delete(j, step, job, err) < 0)
        return -1;
    if (!job || ended)
        return df_fail(err, DF_ERR_RETRY, "the Job %s/%s of an earlier try is being removed",
                       j->name_space, step->name);
    *ret_job = DF_TAKE(job);
    return 0;
}

static int build_any(const struct df_job_engine *j, const struct df_engine_step *step, cJSON **ret,
                     struct df_err *err)
{
    const struct df_workflow_place p = df_job_place(j);
    return step->workflow ? df_workflow_build(&p, step, ret, err)
                          : df_job_render(&j->o, step, ret, err);
}

static int meet_any(const struct df_job_engine *j, const struct df_engine_step *step,
                    cJSON **ret_job, struct df_err *err)
{
    const struct df_workflow_place p = df_job_place(j);
    return step->workflow ? df_workflow_meet(&p, step, ret_job, err)
                          : meet_existing(j, step, ret_job, err);
}

static int make_job(struct df_job_engine *j, const struct df_engine_step *step, cJSON **ret_job,
                    struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    struct df_kube_at at = df_job_at(j, step);
    struct df_err why = {0};
    at.name = NULL; /* the collection is posted to */
    if (build_any(j, step, &job, err) < 0)
        return -1;
    df_debug("the Job %s/%s is sent", j->name_space, step->name);
    if (df_kube_create(j->o.kube, &at, job, ret_job, &why) == 0) {
        df_job_refusal_forget(j, step);
        return df_job_note(j->watch, *ret_job, err);
    }
    if (df_streq(why.reason, "AlreadyExists"))
        return meet_any(j, step, ret_job, err);
    return df_job_refuse(j, step, &why, err);
}

/* An earlier try's is of no worth any more: its tokens were replaced. */
static int make_secret(const struct df_job_engine *j, const struct df_engine_step *step,
                       const cJSON *job, struct df_err *err)
{
    const struct df_job_spec spec = {.name = step->name,
                                     .namespace = j->name_space,
                                     .uid = step->uid,
                                     .run = step->run,
                                     .executor = step->executor,
                                     .action = step->action};
    const struct df_kube_at at = {.resource = &df_kube_secrets, .name_space = j->name_space};
    cJSON *secret = NULL;
    if (df_job_delete_secret(j, step, err) < 0 ||
        df_job_secret_build(&spec, df_kube_uid(job), step->document, &secret, err) < 0)
        return -1;
    int result = df_kube_create(j->o.kube, &at, secret, NULL, err);
    df_json_wipe(secret);
    return result;
}

static int make_ref(const struct df_job_engine *j, const cJSON *job, cJSON **ret,
                    struct df_err *err)
{
    DF_JSON cJSON *ref = cJSON_CreateObject();
    const char *account = df_json_str(job, "spec.template.spec.serviceAccountName");
    if (df_json_add_str(ref, "kind", "Job", err) < 0 ||
        df_json_add_str(ref, "name", df_kube_name(job), err) < 0 ||
        df_json_add_str(ref, "namespace", j->name_space, err) < 0 ||
        df_json_add_str(ref, "uid", df_kube_uid(job), err) < 0 ||
        df_json_add_str(ref, "serviceAccountName", account ? account : "default", err) < 0)
        return -1;
    *ret = DF_TAKE(ref);
    return 0;
}

int df_job_create(struct df_engine *e, const struct df_engine_step *asked, cJSON **ret_ref,
                  struct df_err *err)
{
    struct df_job_engine *j = df_job_of(e);
    DF_JSON cJSON *job = NULL;
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0 || make_job(j, &step, &job, err) < 0)
        return -1;
    bool needs_secret = j->o.by_secret && df_json_bool(df_json_at(job, "spec"), "suspend", false);
    if (needs_secret && make_secret(j, &step, job, err) < 0)
        return -1;
    return make_ref(j, job, ret_ref, err);
}

int df_job_release(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    struct df_job_engine *j = df_job_of(e);
    const struct df_kube_at at = df_job_at(j, step);
    DF_JSON cJSON *body = NULL, *job = NULL;
    if (df_json_parse(DF_JOB_UNSUSPEND, strlen(DF_JOB_UNSUSPEND), &body, err) < 0)
        return -1;
    const struct df_kube_patch patch = {.type = DF_KUBE_PATCH_MERGE, .body = body};
    if (df_kube_patch(j->o.kube, &at, &patch, &job, err) < 0)
        return -1;
    return df_job_note(j->watch, job, err);
}
