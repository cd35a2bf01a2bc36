/* Standby runners: the form of a pod, and the Jobs that were made for no step. */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "spawner/engine/job/job_engine.h"
#include "spawner/engine/job/workflow_job.h"
#include "spawner/model/labels.h"

/* ---- the form ---- */

/* Of the Job what a placement can say: its labels and annotations, and the pod. */
static int digest_of(const cJSON *job, struct df_standby_form *ret, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    DF_FREE char *metadata = df_json_print(df_json_at(job, "metadata"));
    DF_FREE char *pod = df_json_print(df_json_at(job, "spec.template"));
    DF_FREE char *text = metadata && pod ? df_strf("%s\n%s", metadata, pod) : NULL;
    if (df_check_alloc(text, err) < 0 || df_sha256_hex(text, strlen(text), digest, err) < 0)
        return -1;
    df_copy(ret->digest, sizeof(ret->digest), digest); /* a label has room for the half */
    return 0;
}

/* The form leaves out names, uid, run, executor and action: steps with equal pod templates have
 * one. */
int df_job_form(struct df_engine *e, const struct df_engine_step *step, struct df_standby_form *ret,
                struct df_err *err)
{
    const struct df_job_engine *j = (const struct df_job_engine *)(void *)e;
    struct df_engine_step nameless = *step;
    DF_JSON cJSON *job = NULL;
    nameless.name = nameless.uid = "standby";
    nameless.runner.run = nameless.runner.executor = nameless.runner.action =
        nameless.runner.standby = NULL;
    if (df_job_render(&j->o, &nameless, &job, err) < 0)
        return -1;
    ret->seconds = df_json_int(job, "spec.activeDeadlineSeconds", 0);
    df_copy(ret->run, sizeof(ret->run), step->runner.run ? step->runner.run : "");
    return digest_of(job, ret, err);
}

/* ---- the list ---- */

struct listing {
    const struct df_job_engine *engine;
    df_standby_visit visit;
    void *arg;
    int64_t now_us; /* of the cluster */
};

static int64_t age_ms(const struct listing *l, const cJSON *job)
{
    const char *made = df_json_str(job, "metadata.creationTimestamp");
    int64_t made_us = 0;
    if (!made || df_time_parse(made, &made_us, NULL) < 0 || made_us > l->now_us)
        return 0;
    return (l->now_us - made_us) / 1000;
}

static int visit_job(void *arg, const cJSON *job, struct df_err *err)
{
    const struct listing *l = arg;
    const char *digest = df_kube_label(job, DF_LABEL_STANDBY);
    struct df_standby_form form = {.seconds = df_json_int(job, "spec.activeDeadlineSeconds", 0) -
                                              DF_STANDBY_LIFE_SECONDS};
    DF_JSON cJSON *ref = NULL;
    const char *id = df_kube_label(job, DF_LABEL_STEP_UID);
    struct df_err why = {0};
    if (!digest || df_job_is_completed(job) || df_kube_is_deleted(job))
        return 0;
    if (!df_streq(id, df_kube_name(job))) { /* not made here */
        df_warn("the Job %s is no standby runner: its id is %s", df_kube_name(job),
                id ? id : "missing");
        return 0;
    }
    if (df_proof_check(&l->engine->key, "Job", job, &why) < 0) {
        df_warn("a standby runner gets no step: %s", why.message);
        return 0;
    }
    const char *run = df_kube_label(job, DF_LABEL_RUN);
    df_copy(form.digest, sizeof(form.digest), digest);
    df_copy(form.run, sizeof(form.run), run ? run : "");
    if (df_job_ref(job, &ref, err) < 0)
        return -1;
    return l->visit(l->arg, ref, &form, age_ms(l, job), err);
}

int df_job_standbys(struct df_engine *e, df_standby_visit visit, void *arg, struct df_err *err)
{
    const struct df_job_engine *j = (const struct df_job_engine *)(void *)e;
    /* With the template: the reference names its account. */
    static const char *const without[] = {DF_KUBE_MANAGED, NULL};
    struct listing l = {j, visit, arg, df_real_us() + df_kube_clock_ahead_us(j->o.kube)};
    const struct df_kube_at at = {.resource = &df_kube_jobs, .name_space = j->name_space};
    const struct df_kube_select select = {.labels = DF_MADE_SELECTOR "," DF_LABEL_STANDBY};
    const struct df_kube_sink sink = {.item = visit_job, .arg = &l, .without = without};
    return df_kube_list(j->o.kube, &at, &select, 0, &sink, err);
}
