/*
 * From the workflow to a running job, in this order: ConfigMaps become variables, Secrets become
 * credentials, the job template is launched with both. No launch comes before a look for the job of
 * an earlier one. Read df_awx_create() first.
 */
#include "spawner/engine/ansible/awx_launch.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/engine/ansible/awx_credentials.h"
#include "spawner/engine/ansible/awx_job.h"
#include "spawner/engine/ansible/extra_vars.h"
#include "spawner/engine/vault_secrets.h"
#include "spawner/engine/workflow/workflow.h"

/* Nobody asks for a start again later than DF_WORKFLOW_TTL_SECONDS after the first time; the rest
 * is for clocks that differ. A template may have thousands of older jobs. */
#define LOST_JOB_US (INT64_C(86400) * 1000000)

enum { LOOK_S = 10 /* how soon a lost launch is looked for again */ };

/* ---- Secrets and ConfigMaps ---- */

struct dependency {
    const struct df_kube_resource *resource;
    const char *what, *missing; /* reason */
};
static const struct dependency of_secret = {&df_kube_secrets, "secret", "SecretMissing"};
static const struct dependency of_config_map = {&df_kube_config_maps, "configmap",
                                                "ConfigMapMissing"};

static int read_dependency(const struct df_awx_call *c, const struct dependency *d,
                           const char *name, cJSON **ret, struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = d->resource, .name_space = c->name_space, .name = name};
    struct df_err why = {0};
    if (df_kube_get(c->kube, &at, ret, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_NOT_FOUND) {
        why.cls = DF_ERR_USER;
        df_copy(why.reason, sizeof(why.reason), d->missing);
    } else if (why.cls == DF_ERR_DENIED) {
        df_copy(why.reason, sizeof(why.reason), "NotAllowed");
    }
    (void)df_err_wrap(&why, "read dependency %s \"%s\" in \"%s\"", d->what, name, c->name_space);
    return df_err_pass(err, &why);
}

/* A playbook that got one of the service's own Secrets would be the service. */
static int check_secret(const struct df_awx_call *c, const char *name, const cJSON *secret,
                        struct df_err *err)
{
    if (!df_never_is_secret(c->never, name) && !df_kube_label(secret, DF_LABEL_VAULT))
        return 0;
    return df_fail_reason(
        err, DF_ERR_USER, DF_REASON_PLACEMENT_DENIED,
        "the Secret \"%.80s\" is the service's own, or of its vault (the label " DF_LABEL_VAULT
        "): no workflow gets it, whoever asks; copy what the playbook "
        "needs into a Secret of its own",
        name);
}

static int read_config_maps(const struct df_awx_call *c, const cJSON *names, cJSON *to,
                            struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, names) {
        cJSON *map = NULL;
        if (read_dependency(c, &of_config_map, df_json_str(item, "name"), &map, err) < 0 ||
            df_json_append(to, map, err) < 0)
            return df_err_wrap(err, "inject dependency configmaps");
    }
    return 0;
}

static int make_vars(const struct df_awx_call *c, const struct df_workflow *w, cJSON **ret,
                     struct df_err *err)
{
    DF_JSON cJSON *maps = cJSON_CreateArray(), *parameters = NULL;
    const cJSON *request = df_json_at(c->step->workflow.spec, "remediationRequestRef");
    const struct df_extra_owner owner = {.name = w->name,
                                         .name_space = w->source_namespace,
                                         .request = df_json_str(request, "name"),
                                         .request_namespace = df_json_str(request, "namespace"),
                                         .uid = w->uid};
    if (df_check_alloc(maps, err) < 0 || read_config_maps(c, w->config_maps, maps, err) < 0 ||
        df_workflow_parameters(w->parameters, w->declared, &parameters, err) < 0)
        return -1;
    return df_extra_vars(parameters, &owner, maps, ret, err);
}

/* ---- credentials ---- */

/* With the action's uid: another cluster that has the same AWX may have an action of this name. */
static char *credential_name(const struct df_engine_step *step, const char *secret)
{
    DF_FREE char *action = df_strf("%s-%s", step->name, step->uid);
    return action ? df_awx_credential_name(secret, action) : NULL;
}

/* All of them, whatever happens to one. */
static int delete_credentials(struct df_awx *awx, const cJSON *ids, struct df_err *err)
{
    struct df_err why = {0};
    const cJSON *id;
    cJSON_ArrayForEach (id, ids) {
        struct df_err one = {0};
        if (df_awx_delete_credential(awx, (int64_t)id->valuedouble, &one) < 0 &&
            one.cls != DF_ERR_NOT_FOUND)
            why = one;
    }
    if (!why.cls)
        return 0;
    why.cls = DF_ERR_RETRY;
    return df_err_pass(err, &why);
}

static bool is_refusal(const struct df_err *why)
{
    return why->cls == DF_ERR_USER || why->cls == DF_ERR_DENIED || why->cls == DF_ERR_NOT_FOUND;
}

/* Those that an attempt before made for this Secret. */
static int delete_old(const struct df_awx_call *c, const char *name, struct df_err *err)
{
    DF_JSON cJSON *ids = NULL;
    return df_awx_find_credentials(c->awx, name, &ids, err) < 0
               ? -1
               : delete_credentials(c->awx, ids, err);
}

/* *ret: -1: there is a type of this name, which gives a job something else. */
static int find_type(struct df_awx *awx, const struct df_awx_secret *s, int64_t *ret,
                     struct df_err *err)
{
    DF_JSON cJSON *type = NULL;
    if (df_awx_find_type(awx, s->type, &type, err) < 0)
        return -1;
    *ret = df_awx_type_fits(type, s) ? df_json_int(type, "id", -1) : -1;
    return 0;
}

static int find_or_create_type(struct df_awx *awx, const struct df_awx_secret *s, int64_t *ret,
                               struct df_err *err)
{
    struct df_err why = {0};
    if (find_type(awx, s, ret, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    /* If it is refused, another workflow with this Secret may have been faster. */
    if (df_awx_create_type(awx, s->type, s->inputs, s->injectors, ret, &why) == 0 ||
        (why.cls == DF_ERR_USER && find_type(awx, s, ret, NULL) == 0))
        return 0;
    (void)df_err_wrap(&why, "create AWX credential type \"%s\"", s->type);
    return df_err_pass(err, &why);
}

static int ensure_type(struct df_awx *awx, struct df_awx_secret *s, int64_t *ret,
                       struct df_err *err)
{
    if (find_or_create_type(awx, s, ret, err) < 0)
        return -1;
    if (*ret < 0 && (df_awx_secret_rename(s, err) < 0 || find_or_create_type(awx, s, ret, err) < 0))
        return -1;
    return *ret >= 0
               ? 0
               : df_fail(err, DF_ERR_USER,
                         "the AWX credential type \"%s\" was changed: delete it in AWX", s->type);
}

static int create_credential(const struct df_awx_call *c, const char *secret,
                             struct df_awx_secret *s, cJSON *ids, struct df_err *err)
{
    DF_FREE char *name = credential_name(c->step, secret);
    struct df_err why = {0};
    int64_t type, id;
    if (df_check_alloc(name, err) < 0)
        return -1;
    if (ensure_type(c->awx, s, &type, err) < 0)
        return df_err_wrap(err, "ensure credential type for secret \"%s\"", secret);
    if (delete_old(c, name, &why) == 0 &&
        df_awx_create_credential(c->awx, name, type, s->values, &id, &why) == 0)
        return df_json_append(ids, cJSON_CreateNumber((double)id), err);
    if (df_awx_may_have_done(c->awx))
        df_awx_lost_note(c->lost, c->step->uid, DF_AWX_CREDENTIAL);
    (void)df_err_wrap(&why, "create ephemeral credential for secret \"%s\"", secret);
    return df_err_pass(err, &why);
}

static int inject_secret(const struct df_awx_call *c, const char *name, cJSON *ids,
                         struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    DF_AWX_SECRET s = {0};
    if (read_dependency(c, &of_secret, name, &secret, err) < 0 ||
        check_secret(c, name, secret, err) < 0 || df_awx_secret_of(secret, &s, err) < 0)
        return -1;
    return create_credential(c, name, &s, ids, err);
}

static int inject_secrets(const struct df_awx_call *c, const cJSON *secrets, cJSON *ids,
                          struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, secrets)
        if (inject_secret(c, df_json_str(item, "name"), ids, err) < 0)
            return df_err_wrap(err, "inject dependency secrets");
    return 0;
}

/* Those that were made for the step, by their names. */
static int find_credentials(const struct df_awx_call *c, cJSON *ids, struct df_err *err)
{
    const cJSON *item, *secrets = df_json_at(c->step->workflow.spec, "dependencies.secrets");
    cJSON_ArrayForEach (item, secrets) {
        DF_JSON cJSON *found = NULL;
        DF_FREE char *name = credential_name(c->step, df_json_str(item, "name"));
        if (df_check_alloc(name, err) < 0 || df_awx_find_credentials(c->awx, name, &found, err) < 0)
            return -1;
        while (found->child)
            if (df_json_append(ids, cJSON_DetachItemFromArray(found, 0), err) < 0)
                return -1;
    }
    return 0;
}

/* ---- the job ---- */

static int make_ref(const struct df_awx_call *c, int64_t job, const cJSON *ids, cJSON **ret,
                    struct df_err *err)
{
    char name[32], uid[24];
    df_awx_job_ref(job, name);
    (void)snprintf(uid, sizeof(uid), "%lld", (long long)job);
    *ret = df_json_object(DF_STR("kind", "AWXJob"), DF_STR("name", name),
                          DF_STR("namespace", c->step->workflow.name_space), DF_STR("uid", uid),
                          DF_ITEM("credentials", cJSON_Duplicate(ids, true)));
    return df_check_alloc(*ret, err);
}

/* AWX takes the list of a launch instead of the template's own. *ret_is_whole: false if that could
 * not be read: then the job is launched without it, which AWX refuses if the template needs it. */
static int merge_credentials(const struct df_awx_call *c, int64_t template_id, const cJSON *ids,
                             cJSON **ret, bool *ret_is_whole, struct df_err *err)
{
    DF_JSON cJSON *of_template = NULL;
    struct df_err why = {0};
    *ret_is_whole =
        !ids->child || df_awx_template_credentials(c->awx, template_id, &of_template, &why) == 0;
    if (!*ret_is_whole)
        df_debug("%s is launched without the credentials of its template: %s", c->step->name,
                 why.message);
    return df_awx_merge_ids(of_template, ids, ret, err);
}

/* A playbook that lacks its parameters does something else. */
static int refuse_ignored(const struct df_awx_call *c, const struct df_awx_launched *launched,
                          struct df_err *err)
{
    struct df_err why = {0};
    bool is_canceled = df_awx_cancel(c->awx, launched->job, &why) == 0;
    return df_fail(
        err, DF_ERR_USER,
        "AWX ignored %s: set \"Prompt on launch\" for it in the job template; the job "
        "%lld %s%s",
        launched->ignored, (long long)launched->job,
        is_canceled ? "was canceled" : "must be canceled by you: ", is_canceled ? "" : why.message);
}

struct launch {
    int64_t template_id;
    const cJSON *vars, *ids;
    bool may_run; /* AWX has launched it, or nobody knows: its credentials must stay */
};

static int launch(const struct df_awx_call *c, struct launch *l, cJSON **ret_ref,
                  struct df_err *err)
{
    DF_JSON cJSON *credentials = NULL;
    struct df_awx_launched launched;
    struct df_err why = {0};
    bool is_whole;
    if (merge_credentials(c, l->template_id, l->ids, &credentials, &is_whole, err) < 0)
        return -1;
    if (df_awx_launch(c->awx, l->template_id, l->vars, credentials, &launched, &why) == 0) {
        df_awx_lost_forget(c->lost, c->step->uid);
        l->may_run = !launched.ignored[0];
        return l->may_run ? make_ref(c, launched.job, l->ids, ret_ref, err)
                          : refuse_ignored(c, &launched, err);
    }
    l->may_run = df_awx_may_have_done(c->awx);
    if (l->may_run)
        df_awx_lost_note(c->lost, c->step->uid, DF_AWX_LAUNCH);
    if (why.cls == DF_ERR_USER && !is_whole)
        why.cls = DF_ERR_RETRY;
    (void)df_err_wrap(&why, "launch AWX job template %lld", (long long)l->template_id);
    return df_err_pass(err, &why);
}

static int create_new(const struct df_awx_call *c, const struct df_awx_template *t, cJSON **ret_ref,
                      struct df_err *err)
{
    DF_JSON cJSON *vars = NULL, *ids = cJSON_CreateArray();
    const struct df_workflow w = df_workflow_of(c->step, NULL);
    struct df_err why = {0};
    if (df_check_alloc(ids, err) < 0 || make_vars(c, &w, &vars, err) < 0 ||
        df_awx_check_prompts(c->awx, t, vars, cJSON_GetArraySize(w.secrets), err) < 0)
        return -1;
    struct launch l = {t->id, vars, ids, false};
    if (inject_secrets(c, w.secrets, ids, &why) == 0 && launch(c, &l, ret_ref, &why) == 0)
        return 0;
    /* What stays has our names: the next attempt, or cleanup(), finds it. */
    if (!l.may_run && delete_credentials(c->awx, ids, NULL) < 0)
        df_debug("credentials of %s stay in AWX until they can be deleted", c->step->name);
    return df_err_pass(err, &why);
}

/* ---- others that hold the target ---- */

int df_awx_check_target(const struct df_awx_call *c, struct df_err *err)
{
    static const struct df_workflow_kind *const kinds[] = {&df_workflow_job,
                                                           &df_workflow_pipeline_run};
    size_t seen = c->sees_pipelines ? 2 : 1;
    char name[21];
    if (df_workflow_name(c->step->workflow.target, name, err) < 0)
        return -1;
    for (size_t i = 0; i < seen; i++)
        if (df_workflow_check_free(c->kube, kinds[i], c->name_space, name, err) < 0)
            return -1;
    return 0;
}

/* ---- a launch whose answer was lost ---- */

/* AWX has no job of the step. Whoever asked for one may have been another process: of a leader that
 * is gone nobody knows what it has asked for last. */
static int check_quiet(const struct df_awx_call *c, struct df_err *err)
{
    struct df_err why = {0};
    int64_t left_us;
    (void)df_awx_lost_of(c->lost, c->step->uid, &left_us);
    if (!c->step->was_created || left_us <= 0)
        return 0;
    (void)df_fail(&why, DF_ERR_RETRY,
                  "AWX may still work on a launch of this action that was not answered");
    why.retry_after_s = left_us < LOOK_S * INT64_C(1000000) ? (int)(left_us / 1000000) + 1 : LOOK_S;
    return df_err_pass(err, &why);
}

bool df_awx_tell_lost(const struct df_awx_call *c, char *to, size_t size)
{
    int64_t left_us;
    enum df_awx_loss what = df_awx_lost_of(c->lost, c->step->uid, &left_us);
    if (what != DF_AWX_LAUNCH && (what != DF_AWX_BEFORE || !c->step->was_created))
        return false;
    (void)snprintf(to, size,
                   "%s, and AWX has no job of it: it may have run, and is not launched again%s. "
                   "Look in AWX for a job with the variable DAYFLY_UID %s",
                   what == DF_AWX_LAUNCH ? "AWX did not answer its launch"
                                         : "the process that asked for it is gone",
                   what == DF_AWX_LAUNCH ? "" : " yet", c->step->uid);
    return true;
}

static int check_lost(const struct df_awx_call *c, struct df_err *err)
{
    char told[400];
    return df_awx_tell_lost(c, told, sizeof(told)) ? df_fail(err, DF_ERR_RETRY, "%s", told) : 0;
}

/* since_us: 0: ever. *ret: -1: AWX has no job of the step. */
static int find_job(const struct df_awx_call *c, int64_t template_id, int64_t since_us,
                    int64_t *ret, struct df_err *err)
{
    return df_awx_find_job(c->awx, template_id, since_us, c->step->uid, ret, err);
}

/* Of a step for which nobody has asked there is none. */
static int find_earlier(const struct df_awx_call *c, int64_t template_id, int64_t *ret,
                        struct df_err *err)
{
    *ret = -1;
    if (!c->step->was_created ||
        find_job(c, template_id, df_real_us() - LOST_JOB_US, ret, err) == 0)
        return 0;
    if (err)
        err->cls = DF_ERR_RETRY;
    return df_err_wrap(err, "look for a job of this action, before one is launched");
}

static int adopt(const struct df_awx_call *c, int64_t job, cJSON **ret_ref, struct df_err *err)
{
    DF_JSON cJSON *ids = cJSON_CreateArray();
    if (df_check_alloc(ids, err) < 0 || find_credentials(c, ids, err) < 0 ||
        make_ref(c, job, ids, ret_ref, err) < 0)
        return -1;
    df_awx_lost_forget(c->lost, c->step->uid);
    return 0;
}

static int find_template(const struct df_awx_call *c, struct df_awx_template *ret,
                         struct df_err *err)
{
    struct df_awx_config config;
    if (df_awx_config_of(df_json_at(c->step->workflow.spec, "engineConfig"), &config, err) < 0)
        return -1;
    return df_awx_find_template(c->awx, config.job_template, ret, err) < 0
               ? df_err_wrap(err, "resolve AWX job template")
               : 0;
}

static int find_or_launch(const struct df_awx_call *c, cJSON **ret_ref, struct df_err *err)
{
    struct df_awx_template t;
    int64_t job;
    if (!c->step->was_created)
        df_awx_lost_note(c->lost, c->step->uid, DF_AWX_NOTHING);
    if (find_template(c, &t, err) < 0)
        return -1;
    if (find_earlier(c, t.id, &job, err) < 0)
        return -1;
    if (job >= 0)
        return adopt(c, job, ret_ref, err);
    if (check_lost(c, err) < 0 || check_quiet(c, err) < 0 || df_awx_check_target(c, err) < 0)
        return -1;
    return create_new(c, &t, ret_ref, err);
}

int df_awx_create(const struct df_awx_call *c, cJSON **ret_ref, struct df_err *err)
{
    struct df_err why = {0};
    if (find_or_launch(c, ret_ref, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_USER)
        (void)df_err_reason(&why, "InvalidStep");
    return df_err_pass(err, &why);
}

/* ---- the end ---- */

/* Of a step that was asked for, and has no reference. */
static int cancel_lost_job(const struct df_awx_call *c, struct df_err *err)
{
    struct df_err why = {0};
    struct df_awx_template t;
    int64_t job = -1;
    if (find_template(c, &t, &why) < 0) { /* without a template there is no job of it */
        bool is_none = is_refusal(&why) && !df_streq(why.reason, "NotAllowed");
        return is_none ? 0 : df_err_pass(err, &why);
    }
    if (find_job(c, t.id, 0, &job, err) < 0)
        return -1;
    return job < 0 ? check_quiet(c, err) : df_awx_cancel(c->awx, job, err);
}

static int remove_all(const struct df_awx_call *c, struct df_err *err)
{
    const cJSON *known = df_json_at(c->step->ref, "credentials");
    DF_JSON cJSON *found = NULL;
    if (known)
        return delete_credentials(c->awx, known, err);
    if (df_check_alloc(found = cJSON_CreateArray(), err) < 0 ||
        (!c->step->ref && cancel_lost_job(c, err) < 0) || find_credentials(c, found, err) < 0)
        return -1;
    return delete_credentials(c->awx, found, err);
}

int df_awx_remove(const struct df_awx_call *c, struct df_err *err)
{
    if (remove_all(c, err) < 0)
        return -1;
    df_awx_lost_forget(c->lost, c->step->uid);
    return 0;
}
