/*
 * environment.c - the variables of an action. Most are rows of the table; the scope, the trace and
 * the plain secrets that are refused have a rule of their own.
 */
#include "runner/platform/environment.h"

#include <ctype.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "runner/platform/shape.h"

/* ---- checks of the rows ---- */

/* Credentials in a URL would show in logs, reports and processes. */
static const char *url_fault(const char *url)
{
    size_t scheme = df_starts_with(url, "https://") ? 8 : df_starts_with(url, "http://") ? 7 : 0;
    size_t host = strcspn(url + scheme, "/?#");
    if (memchr(url + scheme, '@', host))
        return "has credentials in it: take them out";
    if (!scheme || !host || strchr(url, ' '))
        return "must be a URL that begins with https:// or http://";
    return strlen(url) > DF_LIMIT_URL ? "is too long for a URL" : NULL;
}

static const char *address_fault(const char *address)
{
    const char *colon = strrchr(address, ':');
    int64_t port = 0;
    if (!colon || df_parse_i64(colon + 1, 0, 65535, &port, NULL) < 0)
        return "must be an address and a port, as 0.0.0.0:9090 or :9090";
    return NULL;
}

static const char *report_fault(const char *path)
{
    return *path == '/' && df_ends_with(path, ".json")
               ? NULL
               : "must be an absolute path that ends in .json: the Markdown stands beside it";
}

static const char *const environments[] = {"development", "staging", "production", NULL};
static const char *const no_yes[] = {"false", "true", NULL};
static const char *const volume_policies[] = {"retain", "delete", NULL};
static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const log_formats[] = {"text", "json", NULL};

#define IN(member) offsetof(struct df_platform_input, member)

static const struct df_shape variables[] = {
    {"ENVIRONMENT", DF_SHAPE_WORD, IN(environment), .is_required = true, .words = environments},
    {"TARGET_SCOPE", DF_SHAPE_TEXT, IN(scope.text), .fallback = "platform"},
    {"DRY_RUN", DF_SHAPE_CHOICE, IN(dry_run), .words = no_yes},
    {"PV_POLICY", DF_SHAPE_CHOICE, IN(deletes_volumes), .words = volume_policies},
    {"TEARDOWN_CONFIRMATION", DF_SHAPE_TEXT, IN(confirmation)},
    {"EXPECTED_COMMIT", DF_SHAPE_TEXT, IN(expected_commit)},
    {"ACTION_TIMEOUT", DF_SHAPE_DURATION, IN(timeout_ms)},
    {"METRICS_ADDR", DF_SHAPE_TEXT, IN(metrics_addr), .check = address_fault},
    {"METRICS_TEXTFILE", DF_SHAPE_TEXT, IN(metrics_textfile)},
    {"PUSHGATEWAY_URL", DF_SHAPE_TEXT, IN(pushgateway_url), .check = url_fault},
    {"OTEL_EXPORTER_OTLP_ENDPOINT", DF_SHAPE_TEXT, IN(otlp_endpoint), .check = url_fault},
    {"ALERTMANAGER_URL", DF_SHAPE_TEXT, IN(alertmanager_url), .check = url_fault},
    {"REPORT_PATH", DF_SHAPE_TEXT, IN(report_path), .check = report_fault},
    /* The log is set up before; a wrong word is told with all other faults. */
    {"LOG_LEVEL", DF_SHAPE_WORD, DF_SHAPE_NOWHERE, .words = log_levels},
    {"LOG_FORMAT", DF_SHAPE_WORD, DF_SHAPE_NOWHERE, .words = log_formats},
    {0},
};

/* ---- scope ---- */

static void read_scope(struct df_scope *scope, struct df_faults *faults)
{
    const char *text = scope->text, *name = NULL;
    if (!text || strcmp(text, "platform") == 0)
        return;
    if (df_starts_with(text, "stack:")) {
        scope->kind = DF_SCOPE_STACK;
        name = text + strlen("stack:");
    } else if (df_starts_with(text, "app:")) {
        scope->kind = DF_SCOPE_APP;
        name = text + strlen("app:");
    }
    if (!name || !df_is_dns_label(name))
        df_faults_add(faults, "TARGET_SCOPE",
                      "\"%.64s\" is neither platform nor stack:NAME nor app:NAME", text);
    else
        df_faults_keep(faults, &scope->name, name);
}

/* ---- trace ---- */

/* Copies n hex digits in lower case. All zeros are no id: the word of W3C's Trace Context. */
static bool read_id(const char *text, size_t n, char *ret)
{
    if (strlen(text) < n || strspn(text, "0123456789abcdefABCDEF") < n || strspn(text, "0") >= n)
        return false;
    for (size_t i = 0; i < n; i++)
        ret[i] = (char)tolower((unsigned char)text[i]);
    ret[n] = '\0';
    return true;
}

/* "00-TRACE-SPAN-FLAGS" */
static bool read_traceparent(const char *text, struct df_trace_ids *ret)
{
    return strlen(text) == 55 && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
           read_id(text + 3, 32, ret->trace) && read_id(text + 36, 16, ret->parent);
}

static bool read_trace_pair(const char *trace, const char *span, struct df_trace_ids *ret)
{
    return strlen(trace) == 32 && read_id(trace, 32, ret->trace) &&
           (!span || (strlen(span) == 16 && read_id(span, 16, ret->parent)));
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return df_str_empty(value) ? NULL : value;
}

static void read_trace(struct df_trace_ids *ret, struct df_faults *faults)
{
    const char *trace = variable("TRACE_ID"), *span = variable("SPAN_ID");
    const char *both = variable("TRACEPARENT");
    struct df_trace_ids ids = {.parent = ""};
    struct df_err why = {0};
    bool goes_on =
        trace ? read_trace_pair(trace, span, &ids) : !span && both && read_traceparent(both, &ids);
    if (!goes_on)
        ids.parent[0] = '\0';
    if (df_random_hex(ids.own, 8, &why) < 0 || (!goes_on && df_random_hex(ids.trace, 16, &why) < 0))
        df_faults_add(faults, "TRACE_ID", "no new one could be made: %s", why.message);
    *ret = ids;
    df_log_trace(ids.trace, ids.own); /* in the warnings of the input, too */
    if (!goes_on && (trace || span))
        df_warn("TRACE_ID and SPAN_ID must be 32 and 16 hex digits, not all 0; a new trace begins");
    else if (!goes_on && both)
        df_warn("TRACEPARENT must be as of W3C's Trace Context (00-TRACE-SPAN-01); a new trace "
                "begins");
}

/* ---- plain secrets ---- */

/* What a secret of ours is for, as names of variables begin, and the file that is to hold it. */
static const struct {
    const char *subject, *file;
} subjects[] = {
    {"GIT", "git/password or git/ssh-privatekey"},
    {"REGISTRY", "registry/.dockerconfigjson"},
    {"ARGOCD", "argocd/token"},
    {"DAYFLY_PLATFORM", "a file"},
};

static const char *const secret_words[] = {
    "PASSWORD", "TOKEN", "SECRET", "KEY", "PRIVATEKEY", "DOCKERCONFIGJSON", NULL};

/* The files' own names: a Secret that is given by envFrom instead of mounted has them. */
static const struct {
    const char *name, *file;
} members[] = {
    {"password", "git/password"},
    {"ssh-privatekey", "git/ssh-privatekey"},
    {".dockerconfigjson", "registry/.dockerconfigjson"},
    {"token", "argocd/token"},
};

/* "GIT_TOKEN" and "ARGOCD_AUTH_TOKEN" are names of secrets, "GIT_MONKEY" is not. */
static bool is_secret_name(const char *name)
{
    for (const char *const *word = secret_words; *word; word++) {
        size_t n = strlen(name), m = strlen(*word);
        if (n > m && strcasecmp(name + n - m, *word) == 0 && name[n - m - 1] == '_')
            return true;
    }
    return false;
}

/* Where a secret of this name belongs; NULL: it is none, or none of ours. */
static const char *file_for(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++)
        if (strcasecmp(name, members[i].name) == 0)
            return members[i].file;
    for (size_t i = 0; is_secret_name(name) && i < DF_ARRAY_SIZE(subjects); i++) {
        size_t n = strlen(subjects[i].subject);
        if (strncasecmp(name, subjects[i].subject, n) == 0 && name[n] == '_')
            return subjects[i].file;
    }
    return NULL;
}

/* Kubernetes injects NAME_SERVICE_PORT_PORT=443 for each port of a Service; the port may be called
 * "token". */
static bool is_service_port(const char *name, const char *value)
{
    return strstr(name, "_SERVICE_PORT_") && value[strspn(value, "0123456789")] == '\0';
}

/* Whoever can read the pod reads its environment: secrets come as files. Only those that we would
 * take are refused: a CI system or a shell has others in each environment (CI_JOB_TOKEN,
 * GITHUB_TOKEN, OPENAI_API_KEY), which nobody can take out, which are not read here, and which git
 * does not get. An empty one is no secret. */
static void refuse_plain_secrets(struct df_faults *faults)
{
    for (char **v = environ; v && *v; v++) {
        const char *equals = strchr(*v, '=');
        if (!equals || !equals[1])
            continue;
        DF_FREE char *name = strndup(*v, (size_t)(equals - *v));
        const char *file = name ? file_for(name) : NULL;
        if (!name || (file && !is_service_port(name, equals + 1)))
            df_faults_add(faults, name,
                          "is a secret in a plain variable, which everybody reads who can read the "
                          "pod: take it out, and mount it as %s in the folder of secrets",
                          file ? file : "");
    }
}

void df_environment_read(struct df_platform_input *in, struct df_faults *faults)
{
    df_shape_read_variables(variables, in, faults);
    read_scope(&in->scope, faults);
    read_trace(&in->trace, faults);
    refuse_plain_secrets(faults);
}
