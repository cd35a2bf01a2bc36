/*
 * report.c - checks of the contents of the probe's report (runner/probe.h), one function for each
 * part. They do no I/O.
 */
#include "common/base/clock.h"
#include "spawner/doctor/checks.h"

#define LITTLE_BYTES (512.0 * 1024 * 1024) /* for a source, providers and a plan */

static const char *probed(const struct df_doctor_context *p, const char *path)
{
    const char *text = df_json_str(p->probe, path);
    return text ? text : "";
}

int df_check_image(struct df_doctor_context *p, struct df_err *err)
{
    const char *version = probed(p, "version");
    if (!df_streq(version, DF_VERSION))
        return df_fail(err, DF_ERR_USER,
                       "the image's runner is version %.64s and this is " DF_VERSION
                       ": set kubernetes.image to the same version",
                       version);
    df_finding(p, DF_LEVEL_OK, "its runner is version " DF_VERSION);
    return 0;
}

int df_check_dns(struct df_doctor_context *p, struct df_err *err)
{
    const char *wrong = df_json_str(p->probe, "name.error");
    if (wrong)
        return df_fail(err, DF_ERR_USER,
                       "pods cannot find the host %s (%.300s): correct advertiseUrl, or check "
                       "the cluster's DNS and the network policies for it",
                       probed(p, "name.host"), wrong);
    const cJSON *first = cJSON_GetArrayItem(df_json_at(p->probe, "name.addresses"), 0);
    df_finding(p, DF_LEVEL_OK, "pods find %s at %s", probed(p, "name.host"),
               cJSON_IsString(first) ? first->valuestring : "no address");
    return 0;
}

/* Runners fall back to the address that they have. */
static void check_leader(struct df_doctor_context *p)
{
    const char *wrong = df_json_str(p->probe, "leader.error"), *url = probed(p, "leader.url");
    int status = (int)df_json_int(p->probe, "leader.status", 0);
    if (!wrong && status == 200)
        df_finding(p, DF_LEVEL_OK, "pods reach the replica that leads at %s", url);
    else if (!wrong)
        df_finding(p, DF_LEVEL_WARN,
                   "%s/livez, the replica that leads, answers pods with status %d: correct "
                   "election.address",
                   url, status);
    else
        df_finding(p, DF_LEVEL_WARN,
                   "pods cannot reach the replica that leads at %s (%.400s), so each step tries it "
                   "for a second, twice, before it uses advertiseUrl: let the NetworkPolicy pass "
                   "pods of steps to the spawner's "
                   "pods at the port of listen",
                   url, wrong);
}

int df_check_reach(struct df_doctor_context *p, struct df_err *err)
{
    const char *wrong = df_json_str(p->probe, "server.error");
    int status = (int)df_json_int(p->probe, "server.status", 0);
    if (df_json_at(p->probe, "name.error"))
        return 0; /* df_check_dns() has reported it */
    if (df_streq(df_json_str(p->probe, "server.class"), "denied"))
        return df_fail(err, DF_ERR_USER,
                       "pods do not trust the spawner's certificate (%.400s): set "
                       "server.tls.caFile to the authority that signed it",
                       wrong);
    if (wrong)
        return df_fail(err, DF_ERR_USER,
                       "pods cannot reach the spawner at %s (%.400s): is it running, does its "
                       "Service have that port, and does a NetworkPolicy let pods through?",
                       p->url, wrong);
    if (status != 200)
        return df_fail(err, DF_ERR_USER,
                       "%s/livez answers pods with status %d: advertiseUrl leads to something "
                       "else than dayfly",
                       p->url, status);
    df_finding(p, DF_LEVEL_OK, "pods reach the spawner at %s", p->url);
    if (df_json_at(p->probe, "leader"))
        check_leader(p);
    return 0;
}

int df_check_pod_clock(struct df_doctor_context *p, struct df_err *err)
{
    int64_t at_us = 0;
    if (df_time_parse(probed(p, "time"), &at_us, err) < 0)
        return df_err_wrap(err, "the probe's clock");
    df_finding_skew(p, "the clock of the probe's node",
                    df_clock_skew(p->probed_from_us, at_us, 0, p->probed_to_us));
    return 0;
}

int df_check_pod_token(struct df_doctor_context *p, struct df_err *err)
{
    const char *wrong = df_json_str(p->probe, "token.error");
    const char *issuer = probed(p, "token.issuer");
    if (!p->issuer)
        return 0; /* steps are not claimed with tokens, or "issuer" has failed */
    if (wrong)
        return df_fail(err, DF_ERR_USER,
                       "the pod's token for its step cannot be read (%.300s): check "
                       "placement.podTemplate and podSecurityContext.fsGroup",
                       wrong);
    DF_FREE char *audience = df_strf("dayfly/%s", p->uid);
    if (!audience)
        return df_fail_oom(err);
    if (!df_json_has_string(df_json_at(p->probe, "token.audience"), audience))
        return df_fail(err, DF_ERR_USER,
                       "the pod's token is not for the audience %s: something changes pods when "
                       "they are created; check the cluster's mutating webhooks",
                       audience);
    if (!df_streq(issuer, p->issuer))
        return df_fail(err, DF_ERR_USER,
                       "pods' tokens are issued by \"%.200s\", but the spawner accepts \"%.200s\": "
                       "correct claim.issuer",
                       issuer, p->issuer);
    df_finding(p, DF_LEVEL_OK, "the pod has a token that the spawner accepts");
    return 0;
}

static void check_directory(struct df_doctor_context *p, const char *part, const char *remedy)
{
    const cJSON *found = df_json_at(p->probe, part);
    const char *wrong = df_json_str(found, "error"), *path = df_json_str(found, "path");
    double free_bytes = df_json_num(found, "free", 0);
    if (!found)
        return;
    if (wrong)
        df_finding(p, DF_LEVEL_FAIL, "a step cannot write to %s of its pod (%.300s): %s", path,
                   wrong, remedy);
    else
        df_finding(p, free_bytes < LITTLE_BYTES ? DF_LEVEL_WARN : DF_LEVEL_OK,
                   "%s of the pod has %.0f MiB left%s", path, free_bytes / (1024 * 1024),
                   free_bytes < LITTLE_BYTES ? ": enlarge the node's disk or the volume" : "");
}

int df_check_work(struct df_doctor_context *p, struct df_err *err)
{
    (void)err;
    check_directory(p, "work", "check placement.podTemplate and podSecurityContext.fsGroup");
    check_directory(p, "pluginCache",
                    "let the pod's group write to the claim's volume, or set "
                    "pluginCache.readOnly");
    return 0;
}

int df_check_tool(struct df_doctor_context *p, struct df_err *err)
{
    const char *wrong = df_json_str(p->probe, "tool.error");
    if (!wrong)
        df_finding(p, DF_LEVEL_OK, "the image has %s %s", probed(p, "tool.name"),
                   probed(p, "tool.version"));
    else if (p->config.tool_index_opentofu || p->config.tool_index_terraform)
        df_finding(p, DF_LEVEL_OK, "the image has no tool; each step downloads one");
    else
        return df_fail(err, DF_ERR_USER,
                       "the image has no tool that steps find (%.300s): use an image with tofu or "
                       "terraform, or set tools.directories or tools.index.opentofu",
                       wrong);
    return 0;
}
