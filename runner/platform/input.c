/*
 * input.c - all that an action gets from outside. The keys of the files are tables; the variables
 * are in environment.c, the cluster in cluster.c.
 */
#include "runner/platform/input.h"

#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/nearest.h"
#include "common/base/parse.h"
#include "common/source/rules.h"
#include "runner/platform/dag.h"
#include "runner/platform/environment.h"
#include "runner/platform/file.h"
#include "runner/platform/shape.h"

const char *const df_platform_action_names[3] = {"deploy", "validate", "teardown"};

/* ---- environment.yaml ---- */

static const char *domain_fault(const char *domain)
{
    static const char fault[] = "must be a DNS name, as platform.example.org";
    char label[DF_LIMIT_NAME + 1];
    if (strlen(domain) > DF_LIMIT_HOST)
        return fault;
    for (;;) {
        size_t n = strcspn(domain, ".");
        if (n >= sizeof(label))
            return fault;
        df_copy(label, n + 1, domain);
        if (!df_is_dns_label(label))
            return fault;
        if (!domain[n])
            return NULL;
        domain += n + 1;
    }
}

static const char *repository_fault(const char *url)
{
    struct df_source_url parts;
    const char *fault = df_source_open_url_fault(url, &parts);
    if (df_streq(fault, DF_SOURCE_USE_SECRET))
        return "has credentials in it: take them out, and mount them as git/username and "
               "git/password in the folder of secrets";
    bool has_form = strchr(url, '@') || df_starts_with(url, "file://") ||
                    df_starts_with(url, "ssh://") || df_starts_with(url, "https://") ||
                    df_starts_with(url, "http://");
    return !fault || has_form ? fault
                              : "must be an https://, http://, ssh:// or file:/// URL, or "
                                "user@host:path";
}

#define IN(member) offsetof(struct df_platform_input, member)

static const struct df_shape timeouts[] = {
    {"sync", DF_SHAPE_DURATION, IN(sync_ms), .fallback = "10m"},
    {"health", DF_SHAPE_DURATION, IN(health_ms), .fallback = "10m"},
    {0},
};
static const struct df_shape retries[] = {
    {"maxAttempts", DF_SHAPE_WHOLE, IN(max_attempts), .min = 1, .max = DF_LIMIT_ATTEMPTS},
    {"backoff", DF_SHAPE_DURATION, IN(backoff_ms), .fallback = "10s"},
    {0},
};
static const struct df_shape environment_keys[] = {
    {"name", DF_SHAPE_LABEL, IN(name), .is_required = true},
    {"domain", DF_SHAPE_TEXT, IN(domain), .is_required = true, .check = domain_fault},
    {"gitRepository", DF_SHAPE_TEXT, IN(git_repository), .is_required = true,
     .check = repository_fault},
    {"gitRevision", DF_SHAPE_TEXT, IN(git_revision), .is_required = true,
     .check = df_source_ref_fault},
    {"clusterName", DF_SHAPE_TEXT, IN(cluster_name)},
    {"argocdNamespace", DF_SHAPE_LABEL, IN(argocd_namespace), .fallback = "argocd"},
    {"workflowsNamespace", DF_SHAPE_LABEL, IN(workflows_namespace), .fallback = "argo"},
    {"timeouts", DF_SHAPE_OBJECT, DF_SHAPE_NOWHERE, .members = timeouts},
    {"retries", DF_SHAPE_OBJECT, DF_SHAPE_NOWHERE, .members = retries},
    {0},
};

/* Reads a file of the directory. False, with a fault if it must be there, if it is not. The default
 * is a folder of the image, which a laptop has not. */
static bool read_file(const char *dir, const char *name, bool is_required, struct df_buf *ret,
                      struct df_faults *faults)
{
    DF_FREE char *path = df_fs_join(dir, name);
    struct df_err why = {0};
    if (path && !is_required && !df_fs_exists(path))
        return false;
    if (df_file_read(path, ret, &why) == 0)
        return true;
    df_faults_add(faults, name, "%s%s", why.message,
                  path && !df_fs_exists(path) ? "; --config DIR names the folder that has it" : "");
    return false;
}

/* git would say it only when all else is right. A repository whose DAG is mounted need not be read
 * from here: Argo CD may have a key of its own. */
static void check_ssh_key(const struct df_document *d, const char *secrets,
                          const struct df_platform_input *in)
{
    struct df_source_url url;
    const struct df_dag_text mounted = {in->dag_path, in->dag, in->dag_len};
    if (!in->git_repository || df_source_open_url_fault(in->git_repository, &url) ||
        url.scheme != DF_SCHEME_SSH || (in->dag && df_dag_is_whole(&mounted)))
        return;
    DF_FREE char *key = df_fs_join(secrets, "git/ssh-privatekey");
    if (!key)
        df_faults_add(d->faults, NULL, "no memory");
    else if (!df_fs_exists(key))
        df_document_fault(d, "gitRepository",
                          "is read by ssh, and there is no key: mount it as %s, beside the "
                          "server's keys in known_hosts; or name another folder with --secrets DIR",
                          key);
}

/* Behind read_dag(). */
static void read_environment_file(const char *dir, const char *secrets,
                                  struct df_platform_input *in, struct df_faults *faults)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_INPUT_FILE);
    DF_DOCUMENT struct df_document d = {0};
    in->max_attempts = 3;
    if (!read_file(dir, "environment.yaml", true, &text, faults) ||
        !df_document_parse("environment.yaml", df_buf_str(&text), text.len, faults, &d))
        return;
    df_document_read(&d, d.json, "", environment_keys, in);
    check_ssh_key(&d, secrets, in);
}

bool df_input_is_pinned(const struct df_platform_input *in)
{
    return !df_source_commit_fault(in->git_revision);
}

/* ---- dag.yaml ---- */

static void read_dag(const char *dir, struct df_platform_input *in, struct df_faults *faults)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_INPUT_FILE);
    if (!read_file(dir, "dag.yaml", false, &text, faults))
        return;
    in->dag_len = text.len;
    in->dag = df_buf_take(&text);
    in->dag_path = df_fs_join(dir, "dag.yaml");
    if (!in->dag || !in->dag_path)
        df_faults_add(faults, NULL, "no memory");
}

/* ---- health.yaml ---- */

static const char *ignored_fault(const char *s)
{
    const char *slash = strchr(s, '/');
    return slash && slash > s && slash[1] ? NULL : "must be KIND/NAME, as Deployment/web";
}

static const char *const health_words[] = {"Healthy", "Progressing", "Suspended", "Degraded",
                                           "Missing", "Unknown",     NULL};

static const struct df_shape criteria[] = {
    {"minReadyReplicas", DF_SHAPE_WHOLE, DF_SHAPE_NOWHERE, .max = DF_LIMIT_READY_REPLICAS},
    {"allowedHealth", DF_SHAPE_TEXTS, DF_SHAPE_NOWHERE, .words = health_words},
    {"ignoreResources", DF_SHAPE_TEXTS, DF_SHAPE_NOWHERE, .check = ignored_fault},
    {0},
};
static const struct df_shape health_keys[] = {
    {"components", DF_SHAPE_OBJECT, DF_SHAPE_NOWHERE, .is_required = true},
    {0},
};

static void read_health(const char *dir, struct df_platform_input *in, struct df_faults *faults)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_INPUT_FILE);
    DF_DOCUMENT struct df_document d = {0};
    if (!read_file(dir, "health.yaml", false, &text, faults) ||
        !df_document_parse("health.yaml", df_buf_str(&text), text.len, faults, &d))
        return;
    df_document_read(&d, d.json, "", health_keys, NULL);
    const cJSON *component, *all = df_json_at(d.json, "components");
    if (!cJSON_IsObject(all))
        return;
    cJSON_ArrayForEach (component, all)
        df_document_read(&d, component, df_key_path("components.%s", component->string).text,
                         criteria, NULL);
    in->health = cJSON_DetachItemFromObjectCaseSensitive(d.json, "components");
    in->health_lines = DF_TAKE(d.lines);
}

void df_input_check_health(const struct df_platform_input *in, const struct df_dag *dag,
                           struct df_faults *faults)
{
    const struct df_document d = {
        .name = "health.yaml", .lines = in->health_lines, .faults = faults};
    const cJSON *component;
    cJSON_ArrayForEach (component, in->health) {
        if (df_dag_find(dag, component->string))
            continue;
        const char *best = NULL;
        size_t distance = SIZE_MAX;
        for (size_t i = 0; i < dag->len; i++)
            df_nearest(component->string, dag->nodes[i].name, &best, &distance);
        df_document_fault(&d, df_key_path("components.%s", component->string).text,
                          "the DAG has no such component%s%s%s", best ? "; did you mean " : "",
                          best ? best : "", best ? "?" : "");
    }
}

/* ---- secrets ---- */

#define REGISTRY_FILE "registry/.dockerconfigjson"
static const struct {
    const char *file, *partner; /* one without the other is of no use */
} secrets[] = {
    {"git/username", "git/password"},
    {"git/password", "git/username"},
    {"git/ssh-privatekey", "git/known_hosts"},
    {"git/known_hosts", "git/ssh-privatekey"},
    {REGISTRY_FILE, NULL},
    {"argocd/token", NULL}, /* checked and not read: nobody asks Argo CD's API */
};

/* partner: its name below the directory, or NULL. */
static void check_secret(const char *path, const char *dir, const char *partner,
                         struct df_faults *faults)
{
    struct stat st;
    DF_FREE char *other = partner ? df_fs_join(dir, partner) : NULL;
    if (partner && (!other || !df_fs_exists(other)))
        df_faults_add(faults, other ? path : NULL, "is of no use without %s", partner);
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, R_OK) < 0)
        df_faults_add(faults, path, "must be a file that may be read");
    else if (!st.st_size)
        df_faults_add(faults, path, "is empty");
}

static void read_secrets(const char *dir, struct df_platform_input *in, struct df_faults *faults)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(secrets); i++) {
        DF_FREE char *path = df_fs_join(dir, secrets[i].file);
        if (!path)
            df_faults_add(faults, NULL, "no memory");
        if (!path || !df_fs_exists(path))
            continue;
        check_secret(path, dir, secrets[i].partner, faults);
        if (df_streq(secrets[i].file, REGISTRY_FILE))
            df_faults_keep(faults, &in->registry_file, path);
    }
}

/* ---- all ---- */

static void check_confirmation(const struct df_platform_input *in, struct df_faults *faults)
{
    if (in->action != DF_PLATFORM_TEARDOWN || (in->dry_run && !in->confirmation))
        return;
    const char *fault = in->confirmation ? NULL : "is required for a teardown";
    if (!fault && in->name && in->environment) {
        DF_FREE char *right = df_strf("destroy %s/%s", in->name, in->environment);
        if (!df_streq(in->confirmation, right))
            fault = "does not confirm the teardown of this platform";
    }
    if (fault) /* without the right text: nobody shall copy it from an error */
        df_faults_add(faults, "TEARDOWN_CONFIRMATION",
                      "%s: write the word destroy, a blank, `name` of environment.yaml, a slash "
                      "and ENVIRONMENT",
                      fault);
}

static void keep_if_there(const char *path, char **to, struct df_faults *faults)
{
    if (df_fs_exists(path))
        df_faults_keep(faults, to, path);
}

int df_input_load(enum df_platform_action action, const struct df_input_places *places,
                  struct df_platform_input *ret, struct df_faults *faults, struct df_err *err)
{
    const char *config = places && places->config ? places->config : "/config";
    const char *secrets_dir = places && places->secrets ? places->secrets : "/secrets";
    const char *manifests = places && places->manifests ? places->manifests : "/manifests";
    ret->action = action;
    df_environment_read(ret, faults);
    df_environment_read_cluster(places ? places->service_account : NULL, &ret->kube, faults);
    read_dag(config, ret, faults);
    read_environment_file(config, secrets_dir, ret, faults);
    check_confirmation(ret, faults);
    read_health(config, ret, faults);
    read_secrets(secrets_dir, ret, faults);
    keep_if_there(secrets_dir, &ret->secrets_dir, faults);
    keep_if_there(manifests, &ret->manifests_dir, faults);
    keep_if_there("/dev/termination-log", &ret->termination_path, faults);
    return df_strs_check(&faults->lines, err);
}

void df_input_free(struct df_platform_input *in)
{
    char **all[] = {&in->environment,
                    &in->scope.name,
                    &in->scope.text,
                    &in->confirmation,
                    &in->expected_commit,
                    &in->metrics_addr,
                    &in->metrics_textfile,
                    &in->pushgateway_url,
                    &in->otlp_endpoint,
                    &in->alertmanager_url,
                    &in->report_path,
                    &in->termination_path,
                    &in->name,
                    &in->domain,
                    &in->git_repository,
                    &in->git_revision,
                    &in->cluster_name,
                    &in->argocd_namespace,
                    &in->workflows_namespace,
                    &in->dag,
                    &in->dag_path,
                    &in->secrets_dir,
                    &in->manifests_dir,
                    &in->registry_file};
    for (size_t i = 0; i < DF_ARRAY_SIZE(all); i++)
        free(*all[i]);
    cJSON_Delete(in->health);
    df_yaml_lines_free(in->health_lines);
    df_kube_config_free(&in->kube);
    *in = (struct df_platform_input){0};
}
