/* Opens the engines that the configuration names: one function each, and the table of them at the
 * end. */
#include "spawner/service/open_engines.h"

#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "common/kube/lease.h"
#include "common/process/process.h"
#include "spawner/engine/ansible/ansible.h"
#include "spawner/engine/job/job.h"
#include "spawner/engine/tekton/tekton.h"
#include "spawner/model/labels.h"

static void on_engine_change(void *arg, const char *step_name)
{
    const struct df_spawner *s = arg;
    df_control_notify(s->control, step_name);
}

static int add_engine(struct df_spawner *s, struct df_engine *e, struct df_err *err)
{
    if (df_engine_register(&s->engines, e, err) == 0)
        return 0;
    e->ops->close(e);
    return -1;
}

/* *ret: the isolation of steps (df_config_isolation()), or NULL: none. A service with tokens has
 * people whom it protects from each other: it goes without only where it was told to. */
static int choose_isolation(const struct df_config *c, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    *ret = NULL;
    if (df_streq(c->isolation, "none"))
        return 0;
    if (df_wall_probe(&why) == 0)
        return df_config_isolation(c, ret, err);
    if (df_streq(c->isolation, "strict") || df_config_has_callers(c))
        return df_fail(err, DF_ERR_USER,
                       "engine.local.isolation: %s is not possible here: %s; allow user "
                       "namespaces, or set it to none, with which a module reads what this user "
                       "reads, also the key and the states",
                       c->isolation, why.message);
    df_warn("steps are not isolated (engine.local.isolation: auto): %s; their modules read what "
            "this user reads",
            why.message);
    return 0;
}

/* Of the service, and of its Jobs; NULL without a cluster. */
struct spaces {
    const char *service, *steps;
};

static int open_local(struct df_spawner *s, const struct spaces *spaces, struct df_err *err)
{
    DF_JSON cJSON *isolation = NULL;
    DF_FREE char *directory = df_fs_join(s->config->data_directory, "steps");
    DF_FREE char *runner = df_config_runner(s->config);
    struct df_engine *local = NULL;
    (void)spaces;
    if (df_check_alloc(directory, err) < 0 || choose_isolation(s->config, &isolation, err) < 0)
        return -1;
    if (!runner)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "dayfly-runner is neither beside this program nor in PATH: set runner.path");
    const struct df_local_options o = {.directory = directory,
                                       .runner_path = runner,
                                       .notify = on_engine_change,
                                       .notify_arg = s,
                                       .keep_failed = s->config->keep_failed,
                                       .isolation = isolation};
    return df_engine_local_new(&o, &local, err) < 0 ? -1 : add_engine(s, local, err);
}

/* Are the Secrets of the vault in the namespace of steps? */
static bool has_vault_beside(const struct df_config *c, const struct spaces *spaces)
{
    return c->in_cluster && df_streq(spaces->steps, spaces->service);
}

static int open_job(struct df_spawner *s, const struct spaces *spaces, struct df_err *err)
{
    const struct df_config *c = s->config;
    struct df_engine *job = NULL;
    unsigned char key[DF_KEY_LEN];
    if (df_vault_key(s->vault, "job", key, err) < 0)
        return -1;
    const struct df_job_options o = {.kube = s->kube,
                                     .name_space = spaces->steps,
                                     .image = c->kube_image,
                                     .workflow_account = c->workflow_account,
                                     .ttl_seconds = c->kube_ttl_s,
                                     .never = &s->never,
                                     .sees_pipelines = c->runs_pipelines,
                                     .has_vault = has_vault_beside(c, spaces),
                                     .key = key,
                                     .notify = on_engine_change,
                                     .notify_arg = s};
    int result = df_engine_job_new(&o, &job, err);
    explicit_bzero(key, sizeof(key));
    return result < 0 ? -1 : add_engine(s, job, err);
}

/* The tasks of a Pipeline come from its bundle when it runs: nobody here sees what they mount. */
static void warn_of_bundles(const struct spaces *spaces)
{
    if (df_streq(spaces->steps, spaces->service))
        df_warn("the engine tekton runs Pipelines in the service's own namespace, %s: their "
                "bundles may mount all Secrets and claims there, also what no step gets, such as "
                "the service's key and tokens; set kubernetes.stepNamespace to another one",
                spaces->steps);
}

static int open_tekton(struct df_spawner *s, const struct spaces *spaces, struct df_err *err)
{
    const struct df_config *c = s->config;
    struct df_engine *tekton = NULL;
    unsigned char key[DF_KEY_LEN];
    warn_of_bundles(spaces);
    if (df_vault_key(s->vault, "tekton", key, err) < 0)
        return -1;
    const struct df_tekton_options o = {.kube = s->kube,
                                        .name_space = spaces->steps,
                                        .workflow_account = c->workflow_account,
                                        .never = &s->never,
                                        .has_vault = has_vault_beside(c, spaces),
                                        .key = key,
                                        .notify = on_engine_change,
                                        .notify_arg = s};
    int result = df_engine_tekton_new(&o, &tekton, err);
    explicit_bzero(key, sizeof(key));
    return result < 0 ? -1 : add_engine(s, tekton, err);
}

/* As the fence of s->kube: AWX is changed by the leader alone. */
static bool leads(void *arg)
{
    const struct df_spawner *s = arg;
    struct df_lease *lease = __atomic_load_n(&s->lease, __ATOMIC_ACQUIRE);
    return !lease || df_lease_is_held(lease);
}

static int open_ansible(struct df_spawner *s, const struct spaces *spaces, struct df_err *err)
{
    const struct df_config *c = s->config;
    const char *named = c->awx.secret_namespace;
    struct df_engine *ansible = NULL;
    const struct df_ansible_options o = {
        .kind = &df_engine_kinds[DF_ENGINE_ANSIBLE],
        .kube = s->kube,
        .name_space = spaces->steps,
        .never = &s->never,
        .sees_pipelines = c->runs_pipelines,
        .url = c->awx.url,
        .ca_file = c->awx.ca_file,
        .insecure = c->awx.insecure,
        .organization = c->awx.organization,
        .token_secret = {c->awx.secret, c->awx.secret_key, named ? named : spaces->service},
        .may_write = leads,
        .may_write_arg = s,
        .notify = on_engine_change,
        .notify_arg = s};
    return df_engine_ansible_new(&o, &ansible, err) < 0 ? -1 : add_engine(s, ansible, err);
}

int df_open_engines(struct df_spawner *s, const char *name_space, const char *step_space,
                    struct df_err *err)
{
    static int (*const opens[DF_ENGINE_COUNT])(struct df_spawner *, const struct spaces *,
                                               struct df_err *) = {[DF_ENGINE_LOCAL] = open_local,
                                                                   [DF_ENGINE_JOB] = open_job,
                                                                   [DF_ENGINE_TEKTON] = open_tekton,
                                                                   [DF_ENGINE_ANSIBLE] =
                                                                       open_ansible};
    const struct spaces spaces = {name_space, step_space};
    for (size_t i = 0; i < DF_ENGINE_COUNT; i++)
        if (df_strs_has(&s->config->engines, df_engine_kinds[i].name) &&
            opens[i](s, &spaces, err) < 0)
            return -1;
    return 0;
}

/* A df_store_visit: fails for a step of an engine that this service does not have. */
static int check_engine(const cJSON *task, void *arg, struct df_err *err)
{
    const struct df_spawner *s = arg;
    const char *engine = df_json_str(task, "spec.engine");
    if (df_engine_find(&s->engines, engine))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "EngineMissing",
                          "the data directory %s has the step %s of the engine %s, which this "
                          "command does not have: start the service that has it (`dayfly serve` "
                          "with its --config), or give this command that --config",
                          s->config->data_directory, df_json_str(task, "metadata.name"), engine);
}

int df_check_engines(struct df_spawner *s, struct df_err *err)
{
    return s->config->embedded && !s->config->only_answers
               ? df_store_each(s->store, DF_KIND_TASK_ACTION, DF_LABEL_UNFINISHED "=true",
                               check_engine, s, err)
               : 0;
}
