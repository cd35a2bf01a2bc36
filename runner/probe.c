/*
 * Each check is one function, look_at_..., which fills its part of the report. The table parts[]
 * names the checks and when they apply; read it first.
 */
#include "runner/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sys/statvfs.h>

#include "common/base/clock.h"
#include "common/base/exit.h"
#include "common/base/fs.h"
#include "common/crypto/jwt.h"
#include "common/http/http.h"
#include "runner/report/termination.h"
#include "runner/step.h"
#include "runner/tofu/toolchain.h"
#include "runner/trial.h"

#define ANSWER_MS 15000 /* a spawner that answers later counts as unreachable */
#define ADDRESSES_MAX 4 /* reported at most */

/* ---- the checks; each adds its findings to part ---- */

struct probe {
    const struct df_probe_options *o;
    const cJSON *handoff;
};

static int add_address(cJSON *list, const struct addrinfo *a, struct df_err *err)
{
    char text[NI_MAXHOST];
    if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) != 0)
        return 0;
    return df_json_append_str(list, text, err);
}

static int add_addresses(cJSON *list, const struct addrinfo *found, struct df_err *err)
{
    for (int n = 0; found && n < ADDRESSES_MAX; found = found->ai_next, n++)
        if (add_address(list, found, err) < 0)
            return -1;
    return 0;
}

static int check_name(const struct probe *p, cJSON *part, struct df_err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    DF_FREE char *host = df_url_host(df_json_str(p->handoff, "server"));
    if (df_check_alloc(host, err) < 0 || df_json_add_str(part, "host", host, err) < 0)
        return -1;
    int rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc != 0)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s", gai_strerror(rc));
    int result = add_addresses(df_json_array_at(part, "addresses"), found, err);
    freeaddrinfo(found);
    return result;
}

/* name: of its certificate; NULL: the host of the URL. */
static int ask(const struct probe *p, const char *server, const char *name, cJSON *part,
               struct df_err *err)
{
    const struct df_http_options o = {
        .ca_file = df_json_str(p->handoff, "caFile"), .server_name = name, .proxy = ""};
    DF_HTTP struct df_http *http = NULL;
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    DF_FREE char *url = df_strf("%s/livez", server);
    if (!url)
        return df_fail_oom(err);
    struct df_http_request req = DF_HTTP_REQUEST("GET", url);
    req.timeout_ms = ANSWER_MS;
    if (df_json_add_str(part, "url", server, err) < 0 || df_http_new(&o, &http, err) < 0 ||
        df_http_send(http, &req, &answer, err) < 0)
        return -1;
    return df_json_add_num(part, "status", answer.status, err);
}

static int check_server(const struct probe *p, cJSON *part, struct df_err *err)
{
    return ask(p, df_json_str(p->handoff, "server"), NULL, part, err);
}

static int check_leader(const struct probe *p, cJSON *part, struct df_err *err)
{
    DF_FREE char *name = df_url_host(df_json_str(p->handoff, "server"));
    return name ? ask(p, df_json_str(p->handoff, "leader"), name, part, err) : df_fail_oom(err);
}

/* Reports claims of the token, never the token. */
static int check_token(const struct probe *p, cJSON *part, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    DF_JSON cJSON *payload = NULL;
    if (df_fs_read(df_json_str(p->handoff, "tokenFile"), &token, err) < 0)
        return -1;
    while (token.len && token.data[token.len - 1] == '\n')
        token.data[--token.len] = '\0';
    if (df_jwt_peek(df_buf_str(&token), &payload, err) < 0 ||
        df_json_add_str(part, "issuer", df_json_str(payload, "iss"), err) < 0)
        return -1;
    const cJSON *audience = cJSON_GetObjectItemCaseSensitive(payload, "aud");
    return df_json_add(part, "audience", cJSON_Duplicate(audience, true), err);
}

static int check_directory(const char *path, cJSON *part, struct df_err *err)
{
    struct statvfs fs;
    DF_FREE char *file = df_strf("%s/.dayfly-probe-XXXXXX", path);
    if (df_check_alloc(file, err) < 0 || df_json_add_str(part, "path", path, err) < 0)
        return -1;
    DF_CLOSE int fd = mkstemp(file);
    if (fd < 0)
        return df_fail_errno(err, errno, "make a file in %s", path);
    (void)unlink(file);
    if (df_fs_write_all(fd, "probe", 5, err) < 0)
        return df_err_wrap(err, "write to %s", path);
    if (fstatvfs(fd, &fs) < 0)
        return df_fail_errno(err, errno, "%s", path);
    return df_json_add_num(part, "free", (double)fs.f_bavail * (double)fs.f_frsize, err);
}

static int check_work(const struct probe *p, cJSON *part, struct df_err *err)
{
    return check_directory(p->o->work_dir, part, err);
}

static int check_plugin_cache(const struct probe *p, cJSON *part, struct df_err *err)
{
    return check_directory(p->o->plugin_cache, part, err);
}

static int find_tool(const cJSON *tools, enum df_tool_kind kind, cJSON *part, struct df_err *err)
{
    DF_CLEANUP(df_tool_free) struct df_tool tool = {0};
    char version[DF_VERSION_TEXT];
    const struct df_tool_request r = {.kind = kind, .tools = tools, .path_env = getenv("PATH")};
    if (df_toolchain_find(&r, &tool, err) < 0 ||
        df_json_add_str(part, "name", df_tool_kind_name(kind), err) < 0)
        return -1;
    return df_json_add_str(part, "version", df_version_format(&tool.version, version), err);
}

/* One of the two is enough: each executor chooses its own. */
static int check_tool(const struct probe *p, cJSON *part, struct df_err *err)
{
    DF_JSON cJSON *tools = NULL;
    if (df_json_parse(p->o->tools, strlen(p->o->tools), &tools, err) < 0)
        return -1;
    if (find_tool(tools, DF_TOOL_TERRAFORM, part, NULL) == 0)
        return 0;
    return find_tool(tools, DF_TOOL_OPENTOFU, part, err);
}

static int check_wall(const struct probe *p, cJSON *part, struct df_err *err)
{
    return df_trial(p->handoff, p->o->work_dir, part, err);
}

/* ---- the report ---- */

static bool has_server(const struct probe *p)
{
    return df_json_str(p->handoff, "server") != NULL;
}

static bool has_leader(const struct probe *p)
{
    return has_server(p) && df_json_str(p->handoff, "leader");
}

static bool has_token(const struct probe *p)
{
    return df_json_str(p->handoff, "tokenFile") != NULL;
}

static bool has_plugin_cache(const struct probe *p)
{
    return p->o->plugin_cache != NULL;
}

static bool has_tools(const struct probe *p)
{
    return p->o->tools != NULL;
}

static bool has_wall(const struct probe *p)
{
    return df_json_at(p->handoff, "isolation") != NULL;
}

static const struct {
    const char *name;
    bool (*applies)(const struct probe *p); /* NULL: always */
    int (*look)(const struct probe *p, cJSON *part, struct df_err *err);
} parts[] = {
    {"name", has_server, check_name},     {"server", has_server, check_server},
    {"leader", has_leader, check_leader}, {"token", has_token, check_token},
    {"work", NULL, check_work},           {"pluginCache", has_plugin_cache, check_plugin_cache},
    {"tool", has_tools, check_tool},      {"wall", has_wall, check_wall},
};

static int add_part(const struct probe *p, size_t i, cJSON *report, struct df_err *err)
{
    struct df_err why = {0};
    cJSON *part = df_json_object_at(report, parts[i].name);
    if (!part)
        return df_fail_oom(err);
    if (parts[i].look(p, part, &why) == 0)
        return 0;
    return df_json_add_str(part, "class", df_err_class_name(why.cls), err) < 0
               ? -1
               : df_json_add_str(part, "error", why.message, err);
}

static int fill_report(const struct probe *p, cJSON *report, struct df_err *err)
{
    if (df_json_put(report, err, DF_STR("probe", "dayfly"), DF_STR("version", DF_VERSION)) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++)
        if ((!parts[i].applies || parts[i].applies(p)) && add_part(p, i, report, err) < 0)
            return -1;
    /* Last: as close as possible to the moment when the report is read. */
    return df_json_add_time(report, "time", df_real_us(), err);
}

static int write_report(const struct probe *p, const cJSON *report, struct df_err *err)
{
    const char *log = df_json_str(p->handoff, "terminationLog");
    DF_FREE char *text = df_json_print(report);
    if (!text)
        return df_fail_oom(err);
    if (puts(text) < 0 || fflush(stdout) != 0)
        return df_fail_errno(err, errno, "standard output");
    return df_termination_write(log ? log : DF_TERMINATION_LOG, report, err);
}

static int run_probe(const struct df_probe_options *o, struct df_err *err)
{
    DF_JSON cJSON *handoff = NULL, *report = cJSON_CreateObject();
    struct probe p = {.o = o};
    if (df_check_alloc(report, err) < 0 || df_http_global_init(err) < 0 ||
        df_json_load(o->handoff_file, DF_HANDOFF_MAX, &handoff, err) < 0)
        return -1;
    p.handoff = handoff;
    return fill_report(&p, report, err) < 0 ? -1 : write_report(&p, report, err);
}

int df_probe(const struct df_probe_options *o)
{
    struct df_err err = {0};
    if (run_probe(o, &err) == 0)
        return DF_EXIT_OK;
    (void)fprintf(stderr, "dayfly-runner: probe: %s\n", err.message);
    return DF_EXIT_FAILURE;
}
