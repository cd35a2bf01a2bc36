/* The rules and their inputs as files, one run of `opa eval`, and its answer. */
#include "runner/terrakube/opa.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/source/rules.h"
#include "runner/opa_answer.h"
#include "runner/terrakube/advice.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/source.h"

enum { TIMEOUT_MS = 120000, TAIL = 16 * 1024 };

#define QUERY "data.terraform.analysis"

static const char *text(const cJSON *policy, const char *name)
{
    const char *s = df_json_str(policy, name);
    return df_str_empty(s) ? NULL : s;
}

/* What belongs to one policy. All owned. */
struct bundle {
    char *place;  /* directory of this policy, outside of the checkout */
    char *rules;  /* directory of its rules */
    char *lib;    /* directory of rules that it shares; or NULL */
    char *inputs; /* file; or NULL */
};

static void bundle_free(struct bundle *b)
{
    free(b->place);
    free(b->rules);
    free(b->lib);
    free(b->inputs);
}

/* ---- rules ---- */

static char *folder_of(const cJSON *policy)
{
    const char *folder = text(policy, "folder");
    const char *begin = folder ? folder + strspn(folder, "/") : "";
    size_t n = strlen(begin);
    while (n && begin[n - 1] == '/')
        n--;
    return strndup(begin, n);
}

static int add_access(const struct df_context *c, const struct df_terrakube_policies *q,
                      const cJSON *policy, cJSON *source, struct df_err *err)
{
    const char *url = text(policy, "repository"), *token = text(policy, "accessToken");
    const char *key = text(policy, "moduleSshKey"), *vcs = text(policy, "vcsType");
    bool is_http = df_starts_with(url, "http://") || df_starts_with(url, "https://");
    if (!is_http && !df_starts_with(url, "file://")) {
        vcs = "SSH";
        token = key ? key : token;
    } else if (!vcs || df_streq(vcs, "PUBLIC")) {
        vcs = "GITHUB"; /* as Terrakube does with a token of no known service */
    }
    const struct df_terrakube_access access = {url, vcs, token, q->known_hosts,
                                               df_terrakube_of(c) &&
                                                   df_terrakube_of(c)->settings->http_credentials};
    return df_terrakube_source_add_access(&access, source, err);
}

static int fetch_rules(struct df_context *c, const struct df_terrakube_policies *q,
                       const cJSON *policy, const char *folder, struct bundle *b,
                       struct df_err *err)
{
    const char *branch = text(policy, "branch");
    DF_CLEANUP(df_source_result_free) struct df_source_result result = {0};
    DF_SECRET_JSON cJSON *source = cJSON_CreateObject();
    DF_FREE char *checkout = df_fs_join(b->place, "rules");
    if (df_json_put(source, err, DF_STR("url", text(policy, "repository")), DF_STR("kind", "git"),
                    DF_STR("ref", branch ? branch : "main"), DF_STR("folder", folder)) < 0 ||
        add_access(c, q, policy, source, err) < 0 || df_fs_mkdirs(checkout, 0700, err) < 0)
        return -1;
    const struct df_source_request r = {.source = source,
                                        .checkout = checkout,
                                        .private_dir = c->dirs->fetch,
                                        .log_fd = -1,
                                        .stop = df_stop_flag(c->stop),
                                        .advice = &df_terrakube_source_advice};
    if (df_source_fetch(&r, &result, err) < 0)
        return -1;
    b->rules = DF_TAKE(result.module_dir);
    return df_check_alloc(b->lib = df_fs_join(checkout, "lib"), err);
}

/* A policy without a repository is a folder of the workspace's own source. */
static int find_rules(const struct df_context *c, const char *folder, struct bundle *b,
                      struct df_err *err)
{
    const char *fault = *folder ? df_source_folder_fault(folder) : NULL;
    if (fault)
        return df_fail(err, DF_ERR_USER, "its folder \"%s\" %s", folder, fault);
    b->rules = df_fs_join(c->source.module_dir, folder);
    b->lib = df_fs_join(c->source.module_dir, "lib");
    if (!b->rules || !b->lib)
        return df_fail_oom(err);
    return df_fs_exists(b->rules)
               ? 0
               : df_fail(err, DF_ERR_NOT_FOUND, "the source has no folder \"%s\"", folder);
}

/* One that is a part of the rules is read with them. */
static void drop_lib(struct bundle *b)
{
    size_t n = strlen(b->rules);
    struct stat st;
    bool within = strncmp(b->lib, b->rules, n) == 0 && (b->lib[n] == '/' || !b->lib[n]);
    if (!within && stat(b->lib, &st) == 0 && S_ISDIR(st.st_mode))
        return;
    free(b->lib);
    b->lib = NULL;
}

/* ---- inputs ---- */

/* A text that is a JSON value other than a text is that value. */
static cJSON *input_value(const char *s)
{
    cJSON *value = NULL;
    if (df_json_parse(s, strlen(s), &value, NULL) == 0 && !cJSON_IsString(value) &&
        !cJSON_IsNull(value))
        return value;
    cJSON_Delete(value);
    return cJSON_CreateString(s);
}

static int write_inputs(const cJSON *policy, struct bundle *b, struct df_err *err)
{
    const cJSON *inputs = df_json_at(policy, "inputs"), *v;
    if (!cJSON_IsObject(inputs) || !inputs->child)
        return 0;
    DF_JSON cJSON *root = cJSON_CreateObject();
    cJSON *outer = df_json_object_at(root, "terrakube");
    cJSON *inner = df_json_object_at(outer, "inputs");
    if (!inner)
        return df_fail_oom(err);
    cJSON_ArrayForEach (v, inputs) {
        if (cJSON_IsString(v) &&
            df_json_add(inner, v->string, input_value(v->valuestring), err) < 0)
            return -1;
    }
    DF_FREE char *print = df_json_print(root);
    b->inputs = df_fs_join(b->place, "inputs.json");
    return df_check_alloc(print, err) < 0 ? -1
                                          : df_fs_write(b->inputs, print, strlen(print), 0600, err);
}

static int prepare(struct df_context *c, const struct df_terrakube_policies *q, const cJSON *policy,
                   size_t number, struct bundle *b, struct df_err *err)
{
    DF_FREE char *folder = folder_of(policy);
    b->place = df_strf("%s-policies/%zu", c->dirs->source, number);
    if (df_check_alloc(folder, err) < 0 || df_fs_mkdirs(b->place, 0700, err) < 0)
        return -1;
    if ((text(policy, "repository") ? fetch_rules(c, q, policy, folder, b, err)
                                    : find_rules(c, folder, b, err)) < 0)
        return df_err_wrap(err, "its rules");
    drop_lib(b);
    return write_inputs(policy, b, err);
}

/* ---- the run ---- */

/* By the PATH of the runner: that of the step is the workspace's to set. */
static int find_opa(char **ret, struct df_err *err)
{
    *ret = df_process_which("opa", getenv("PATH"));
    return *ret ? 0
                : df_fail(err, DF_ERR_NOT_FOUND,
                          "this image has no opa to evaluate it: use an image that has opa "
                          "on PATH, or remove the policies from the workspace");
}

static int run_opa(struct df_context *c, const struct df_terrakube_policies *q,
                   const struct bundle *b, struct df_buf *out, struct df_buf *tail, int *ret_code,
                   struct df_err *err)
{
    DF_FREE char *opa = NULL;
    DF_FREE char *home = df_strf("HOME=%s", c->dirs->temporary);
    if (df_check_alloc(home, err) < 0 || find_opa(&opa, err) < 0)
        return -1;
    const char *argv[16] = {opa, "eval", "--data", b->rules};
    size_t n = 4;
    const char *const more[] = {b->lib, b->inputs};
    for (size_t i = 0; i < DF_ARRAY_SIZE(more); i++) {
        if (more[i]) {
            argv[n++] = "--data";
            argv[n++] = more[i];
        }
    }
    const char *const rest[] = {"--input", q->plan_json, "--format", "json", QUERY};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rest); i++)
        argv[n++] = rest[i];
    const char *const env[] = {home, NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, env);
    o.cwd = b->place;
    o.no_core = true;
    o.death_signal = 9;
    o.stop = df_stop_flag(c->stop);
    return df_process_run(&o, TIMEOUT_MS, out, tail, ret_code, err);
}

int df_opa_evaluate(struct df_context *c, const struct df_terrakube_policies *q,
                    const cJSON *policy, size_t number, cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(bundle_free) struct bundle b = {0};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_CONTEXT);
    DF_BUF struct df_buf tail = DF_BUF_INIT(TAIL);
    int code = -1;
    if (prepare(c, q, policy, number, &b, err) < 0 ||
        run_opa(c, q, &b, &out, &tail, &code, err) < 0)
        return -1;
    return df_opa_answer(&out, df_buf_str(&tail), code, QUERY, ret, err);
}
