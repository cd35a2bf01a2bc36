/*
 * step.c - checks of the Job and the pod of a step: makes them as the engine would, and sends them
 * to the API server as a dry run. Read df_check_step(), df_check_job() and df_check_pod().
 */
#include "spawner/doctor/checks.h"
#include "spawner/engine/job/job.h"

struct df_job_options df_job_options_of(const struct df_doctor_context *p)
{
    const struct df_config *c = &p->config;
    return (struct df_job_options){.kube = p->kube,
                                   .name_space = p->name_space,
                                   .image = c->kube_image,
                                   .never = &p->never,
                                   .ttl_seconds = c->kube_ttl_s};
}

static int make_job(struct df_doctor_context *p, const struct df_job_options *o, const char *name,
                    const struct df_placement_levels *placement, cJSON **ret, struct df_err *err)
{
    const struct df_config *c = &p->config;
    const struct df_engine_step step = {.name = name,
                                        .uid = p->uid,
                                        .timeout_seconds = c->timeout_plan_s,
                                        .pending_seconds = c->timeout_pending_s,
                                        .placement = *placement,
                                        .runner = {.server_url = p->url,
                                                   .ca_file = p->ca_file,
                                                   .run = "dayfly-doctor",
                                                   .executor = "dayfly-doctor",
                                                   .action = "plan",
                                                   .grace_seconds = c->timeout_grace_s}};
    return df_job_render(o, &step, ret, err);
}

int df_make_step_job(struct df_doctor_context *p, const struct df_job_options *o, const char *name,
                     cJSON **ret, struct df_err *err)
{
    const struct df_placement_levels levels = {.defaults = p->config.kube_placement};
    return make_job(p, o, name, &levels, ret, err);
}

static const cJSON *placement_in(const cJSON *section, const char *name)
{
    return df_json_at(cJSON_GetObjectItemCaseSensitive(section, name), "placement");
}

/* Each placement was checked with the configuration, but not merged with the levels below it. */
static int add_job(struct df_doctor_context *p, const char *section, const char *name,
                   const struct df_placement_levels *levels, struct df_err *err)
{
    const struct df_job_options o = df_job_options_of(p);
    DF_FREE char *of = df_strf("%s.%s", section, name);
    cJSON *job = NULL;
    if (!of)
        return df_fail_oom(err);
    if (make_job(p, &o, "dayfly-doctor", levels, &job, err) < 0)
        return df_err_wrap(err, "%s", of);
    return df_json_set(p->jobs, of, job, err);
}

static int add_first_job(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_placement_levels levels = {.defaults = p->config.kube_placement};
    p->jobs = cJSON_CreateObject();
    if (df_check_alloc(p->jobs, err) < 0 || add_job(p, "kubernetes", "placement", &levels, err) < 0)
        return -1;
    p->job = p->jobs->child;
    p->has |= DF_HAS_JOB;
    return 0;
}

static int add_other_jobs(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_config *c = &p->config;
    const cJSON *item;
    cJSON_ArrayForEach (item, c->classes) {
        const struct df_placement_levels levels = {.defaults = c->kube_placement,
                                                   .class = df_json_at(item, "placement")};
        if (add_job(p, "classes", item->string, &levels, err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (item, c->workspaces) {
        const struct df_placement_levels levels = {
            .defaults = c->kube_placement,
            .class = placement_in(c->classes, df_json_str(item, "class")),
            .workspace = df_json_at(item, "placement"),
            .environment = df_json_at(item, "environment")};
        if (add_job(p, "workspaces", item->string, &levels, err) < 0)
            return -1;
    }
    return 0;
}

/* The account of the service is known if doctor is told (--service-account). */
static int find_never(struct df_doctor_context *p, struct df_err *err)
{
    DF_FREE char *account = p->account ? df_strf("%s/%s", p->service_ns, p->account) : NULL;
    if (p->account && !account)
        return df_fail_oom(err);
    return df_config_never(&p->config, p->name_space, account, &p->never, err);
}

int df_check_step(struct df_doctor_context *p, struct df_err *err)
{
    if (!p->config.kube_image && !df_json_str(p->config.kube_placement, "image"))
        return df_fail(err, DF_ERR_USER,
                       "kubernetes.image: no image of the runner is set: set it to the image "
                       "dayfly-runner of version " DF_VERSION);
    if (find_never(p, err) < 0 || add_first_job(p, err) < 0 || add_other_jobs(p, err) < 0)
        return -1;
    df_finding(p, DF_LEVEL_OK, "a step's Job can be created from it");
    return 0;
}

/* ---- admission ---- */

static bool is_first(const struct df_doctor_context *p, const cJSON *job)
{
    return job == p->job;
}

static void report_rejection(struct df_doctor_context *p, const cJSON *job,
                             const struct df_err *why)
{
    const struct df_pod_diagnosis v = df_job_rejection(why, false);
    df_finding(p, DF_LEVEL_FAIL, "%s%s%s", is_first(p, job) ? "" : job->string,
               is_first(p, job) ? "" : ": ", v.message);
}

/* If the API server refuses the first Job, the others are not tried: they would be refused for the
 * same reason. */
int df_check_job(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_jobs, .name_space = p->name_space};
    size_t before = p->counts[DF_LEVEL_FAIL];
    const cJSON *job;
    (void)err;
    cJSON_ArrayForEach (job, p->jobs) {
        struct df_err why = {0};
        bool is_accepted = df_kube_dry_run(p->kube, &at, job, &why) == 0;
        if (!is_accepted)
            report_rejection(p, job, &why);
        if (is_first(p, job) && !is_accepted)
            return 0;
    }
    p->has |= DF_HAS_ACCEPTED;
    if (p->counts[DF_LEVEL_FAIL] == before)
        df_finding(p, DF_LEVEL_OK, "the API server accepts a step's Job");
    return 0;
}

/* The pod that the Job controller would create. */
static int make_pod(const cJSON *job, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *pod = cJSON_Duplicate(df_json_at(job, "spec.template"), true);
    cJSON *metadata = df_json_object_at(pod, "metadata");
    if (df_json_put(pod, err, DF_STR("apiVersion", "v1"), DF_STR("kind", "Pod")) < 0 ||
        df_json_add_str(metadata, "name", df_kube_name(job), err) < 0)
        return -1;
    *ret = DF_TAKE(pod);
    return 0;
}

/* True if this account may not create pods, so that the dry run says nothing about the pod. Quotas,
 * limit ranges and Pod Security apply to pods. The spawner's own account has no right to create
 * pods: for it the probe's pod shows the same. */
static bool is_forbidden(const struct df_err *why)
{
    return why->cls == DF_ERR_DENIED && strstr(why->message, "cannot create resource");
}

int df_check_pod(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_pods, .name_space = p->name_space};
    size_t before = p->counts[DF_LEVEL_FAIL];
    const cJSON *job;
    cJSON_ArrayForEach (job, p->jobs) {
        DF_JSON cJSON *pod = NULL;
        struct df_err why = {0};
        if (make_pod(job, &pod, err) < 0)
            return -1;
        if (df_kube_dry_run(p->kube, &at, pod, &why) == 0)
            continue;
        if (is_forbidden(&why)) {
            df_finding(p, DF_LEVEL_OK,
                       "this account may not create pods; the probe's pod shows the same");
            return 0;
        }
        report_rejection(p, job, &why);
        if (!is_first(p, job))
            continue;
        p->has &= ~(unsigned)DF_HAS_ACCEPTED;
        return 0;
    }
    if (p->counts[DF_LEVEL_FAIL] == before)
        df_finding(p, DF_LEVEL_OK, "the API server accepts a step's pod");
    return 0;
}
