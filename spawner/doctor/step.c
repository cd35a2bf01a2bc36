/*
 * The Job of a step, as the engine would make it, shown to the API server without making it.
 */
#include "spawner/doctor/patient.h"
#include "spawner/engine/job.h"

struct df_job_options df_job_options_of(const struct df_patient *p)
{
    const struct df_config *c = &p->config;
    return (struct df_job_options){.kube = p->kube,
                                   .name_space = p->name_space,
                                   .image = c->kube_image,
                                   .by_secret = df_streq(c->kube_claim, "secret"),
                                   .reachable = true,
                                   .ttl_seconds = c->kube_ttl_s};
}

static int make_job(struct df_patient *p, const struct df_job_options *o, const char *name,
                    const struct df_placement_levels *placement, cJSON **ret, struct df_err *err)
{
    const struct df_config *c = &p->config;
    const struct df_engine_step step = {.name = name,
                                        .uid = p->uid,
                                        .server_url = p->url,
                                        .ca_file = p->ca_file,
                                        .run = "dayfly-doctor",
                                        .executor = "dayfly-doctor",
                                        .action = "plan",
                                        .timeout_seconds = c->timeout_plan_s,
                                        .grace_seconds = c->timeout_grace_s,
                                        .pending_seconds = c->timeout_pending_s,
                                        .placement = *placement};
    return df_job_render(o, &step, ret, err);
}

int df_make_step_job(struct df_patient *p, const struct df_job_options *o, const char *name,
                     cJSON **ret, struct df_err *err)
{
    const struct df_placement_levels levels = {.defaults = p->config.kube_placement};
    return make_job(p, o, name, &levels, ret, err);
}

static const cJSON *placement_in(const cJSON *section, const char *name)
{
    return df_json_at(cJSON_GetObjectItemCaseSensitive(section, name), "placement");
}

/* Each was checked with the configuration, but not with what stands below it. */
static int try_levels(struct df_patient *p, const struct df_job_options *o, const char *section,
                      const char *name, const struct df_placement_levels *levels,
                      struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    return make_job(p, o, "dayfly-doctor", levels, &job, err) < 0
               ? df_err_wrap(err, "%s.%s", section, name)
               : 0;
}

static int try_classes(struct df_patient *p, const struct df_job_options *o, struct df_err *err)
{
    const struct df_config *c = &p->config;
    const cJSON *item;
    cJSON_ArrayForEach (item, c->classes) {
        const struct df_placement_levels levels = {.defaults = c->kube_placement,
                                                   .class = df_json_at(item, "placement")};
        if (try_levels(p, o, "classes", item->string, &levels, err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (item, c->workspaces) {
        const struct df_placement_levels levels = {
            .defaults = c->kube_placement,
            .class = placement_in(c->classes, df_json_str(item, "class")),
            .workspace = df_json_at(item, "placement"),
            .environment = df_json_at(item, "environment")};
        if (try_levels(p, o, "workspaces", item->string, &levels, err) < 0)
            return -1;
    }
    return 0;
}

int df_look_step(struct df_patient *p, struct df_err *err)
{
    const struct df_job_options o = df_job_options_of(p);
    if (!p->config.kube_image && !df_json_str(p->config.kube_placement, "image"))
        return df_fail(err, DF_ERR_USER,
                       "kubernetes.image: the runner's image is not named: set it to the image "
                       "dayfly-runner of version " DF_VERSION);
    if (df_make_step_job(p, &o, "dayfly-doctor", &p->job, err) < 0)
        return df_err_wrap(err, "kubernetes.placement");
    p->ground |= DF_GROUND_JOB;
    if (try_classes(p, &o, err) < 0)
        return -1;
    df_find(p, DF_LEVEL_OK, "a step's Job can be made of it");
    return 0;
}

/* ---- what admission says ---- */

int df_look_job(struct df_patient *p, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_jobs, .name_space = p->name_space};
    struct df_err why = {0};
    if (df_kube_dry_run(p->kube, &at, p->job, &why) < 0) {
        const struct df_pod_verdict v = df_job_refusal(&why);
        return df_fail(err, why.cls, "%s", v.message);
    }
    p->ground |= DF_GROUND_TAKEN;
    df_find(p, DF_LEVEL_OK, "the API server takes a step's Job");
    return 0;
}

/* The pod that the Job controller would make. */
static int make_pod(const struct df_patient *p, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *pod = cJSON_Duplicate(df_json_at(p->job, "spec.template"), true);
    cJSON *metadata = pod ? df_json_object_at(pod, "metadata") : NULL;
    if (!metadata)
        return df_fail_oom(err);
    if (df_json_add_str(pod, "apiVersion", "v1", err) < 0 ||
        df_json_add_str(pod, "kind", "Pod", err) < 0 ||
        df_json_add_str(metadata, "name", df_kube_name(p->job), err) < 0)
        return -1;
    *ret = DF_TAKE(pod);
    return 0;
}

/* A pod is what quotas, limit ranges and security levels are about. The spawner may not make pods,
 * so its own account does not get so far: for it the probe shows the same. */
static bool may_not_try(const struct df_err *why)
{
    return why->cls == DF_ERR_DENIED && strstr(why->message, "cannot create resource");
}

int df_look_pod(struct df_patient *p, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_pods, .name_space = p->name_space};
    DF_JSON cJSON *pod = NULL;
    struct df_err why = {0};
    if (make_pod(p, &pod, err) < 0)
        return -1;
    if (df_kube_dry_run(p->kube, &at, pod, &why) == 0) {
        df_find(p, DF_LEVEL_OK, "the API server takes a step's pod");
        return 0;
    }
    if (may_not_try(&why)) {
        df_find(p, DF_LEVEL_OK, "who asks may not make pods; the probe's pod shows the same");
        return 0;
    }
    const struct df_pod_verdict v = df_job_refusal(&why);
    p->ground &= ~(unsigned)DF_GROUND_TAKEN;
    return df_fail(err, why.cls, "%s", v.message);
}
