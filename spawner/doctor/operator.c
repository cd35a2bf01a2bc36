/*
 * operator.c - checks of what the operator has created in the cluster: the definitions of the
 * custom resources, and the Secret with the authority that replicas share.
 */
#include <errno.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "spawner/doctor/checks.h"
#include "spawner/model/model.h"

/* ---- custom resources ---- */

static bool serves(const cJSON *resources, const char *plural)
{
    const cJSON *r;
    cJSON_ArrayForEach (r, resources)
        if (df_streq(df_json_str(r, "name"), plural))
            return true;
    return false;
}

static int check_one_served(const cJSON *resources, const char *plural, struct df_err *err)
{
    return serves(resources, plural)
               ? 0
               : df_fail(err, DF_ERR_NOT_FOUND,
                         "the cluster has no %s of " DF_API_VERSION ": apply rbac/crds, or the "
                         "chart's definitions, of version " DF_VERSION,
                         plural);
}

static int check_served(const cJSON *resources, struct df_err *err)
{
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        if (df_kind_row((enum df_kind)kind)->is_custom_resource &&
            check_one_served(resources, df_kind_plural((enum df_kind)kind), err) < 0)
            return -1;
    return check_one_served(resources, "audittrails", err);
}

/* Appends the versions of the API group that the cluster has ("dayfly.dev/v1beta1"); nothing if it
 * does not have the group. */
static void add_versions(const struct df_doctor_context *p, struct df_buf *to)
{
    DF_JSON cJSON *group = NULL;
    const cJSON *v;
    if (df_kube_get_raw(p->kube, "/apis/" DF_API_GROUP, &group, NULL) < 0)
        return;
    cJSON_ArrayForEach (v, df_json_at(group, "versions")) {
        const char *name = df_json_str(v, "groupVersion");
        (void)df_buf_addf(to, "%s%s", to->len ? ", " : "", name ? name : "");
    }
}

static bool is_absent(const struct df_err *why)
{
    return why->cls == DF_ERR_NOT_FOUND || df_streq(why->reason, "NotServed");
}

/* The account of the spawner may not read the webhook and the policy, so this is what the
 * configuration says. */
static void tell_names(struct df_doctor_context *p)
{
    if (p->config.kube_webhook)
        df_finding(p, DF_LEVEL_OK, "custom resources name who wrote them (kubernetes.webhook %s)",
                   p->config.kube_webhook);
    else if (p->config.approval.separate)
        df_finding(p, DF_LEVEL_WARN,
                   "approval.separateApprover refuses every approval by kubectl, because custom "
                   "resources do not name who wrote them: admission.enabled of the chart, or `make "
                   "admission` and kubernetes.webhook");
    else
        df_finding(p, DF_LEVEL_OK,
                   "custom resources do not name who wrote them; the audit trail has kubernetes "
                   "(admission.enabled of the chart, or `make admission` and kubernetes.webhook, "
                   "change that)");
}

int df_check_custom_resources(struct df_doctor_context *p, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    DF_BUF struct df_buf versions = DF_BUF_INIT(300);
    struct df_err why = {0};
    bool is_complete = true;
    if (!p->config.in_cluster)
        return 0;
    if (df_kube_get_raw(p->kube, "/apis/" DF_API_VERSION, &list, &why) < 0) {
        if (!is_absent(&why))
            return df_err_pass(err, &why);
        add_versions(p, &versions);
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "the cluster does not have " DF_API_VERSION "%s%s: apply rbac/crds, or "
                       "the chart's definitions, of version " DF_VERSION,
                       versions.len ? "; it has " : "", df_buf_str(&versions));
    }
    if (check_served(df_json_at(list, "resources"), err) < 0)
        return -1;
    if (df_check_definitions(p, &is_complete, err) < 0)
        return df_err_wrap(err, "the definitions of the custom resources");
    if (is_complete)
        df_finding(p, DF_LEVEL_OK, "the cluster has the custom resources of " DF_API_VERSION);
    tell_names(p);
    return 0;
}

/* ---- the authority ---- */

/* Writes the authority's certificate into a temporary file, unless there is a CA file: outside of
 * the spawner's pod its ca.pem does not exist, and the probe needs one. */
static int keep_certificate(struct df_doctor_context *p, const char *base64, struct df_err *err)
{
    DF_BUF struct df_buf pem = DF_BUF_INIT(DF_LIMIT_CA);
    if (df_base64_decode(base64, strlen(base64), false, &pem, err) < 0)
        return df_err_wrap(err, "ca.crt");
    if (p->ca_file)
        return 0;
    const char *base = getenv("TMPDIR");
    p->ca_file = df_strf("%s/dayfly-doctor-XXXXXX", df_str_empty(base) ? "/tmp" : base);
    if (!p->ca_file)
        return df_fail_oom(err);
    DF_CLOSE int fd = mkstemp(p->ca_file);
    p->owns_ca_file = fd >= 0;
    if (fd < 0)
        return df_fail_errno(err, errno, "create a file for the authority's certificate");
    return df_fs_write_all(fd, df_buf_str(&pem), pem.len, err);
}

static const char *part(const cJSON *secret, const char *name)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(secret, "data");
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(data, name));
}

int df_check_authority(struct df_doctor_context *p, struct df_err *err)
{
    const char *name = p->config.tls_secret;
    DF_SECRET_JSON cJSON *secret = NULL;
    if (!name)
        return 0;
    const struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = p->service_ns, .name = name};
    if (df_kube_get(p->kube, &at, &secret, err) < 0)
        return df_err_wrap(err,
                           "cannot read server.tls.secret %s: create it, empty, as "
                           "rbac/operator does",
                           name);
    const char *key = part(secret, "ca.key"), *certificate = part(secret, "ca.crt");
    if (!key != !certificate)
        return df_fail(
            err, DF_ERR_USER,
            "server.tls.secret %s has only one of ca.key and ca.crt: empty it, or add the other",
            name);
    if (!certificate) {
        df_finding(p, DF_LEVEL_OK, "the Secret %s is filled at the first start", name);
        return 0;
    }
    if (keep_certificate(p, certificate, err) < 0)
        return df_err_wrap(err, "server.tls.secret %s", name);
    df_finding(p, DF_LEVEL_OK, "the replicas' authority is in the Secret %s", name);
    return 0;
}
