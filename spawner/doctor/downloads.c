/*
 * downloads.c - checks of where steps on this machine get tools and providers from: directories,
 * indices, mirrors and caches. What a module without providers does not need is only a warning.
 */
#include <dirent.h>
#include <errno.h>

#include "common/base/fs.h"
#include "common/http/http.h"
#include "spawner/doctor/checks.h"

#define ANSWER_MS 10000
#define FILE_SCHEME "file://"

static bool is_local(const struct df_doctor_context *p)
{
    return p->config.runs_here;
}

static int read_directory(const char *path, struct df_err *err)
{
    DIR *d = opendir(path);
    if (!d)
        return df_fail_errno(err, errno, "read the directory %s", path);
    (void)closedir(d);
    return 0;
}

int df_doctor_request(const char *url, const char *ca_file, struct df_err *err)
{
    const struct df_http_options o = {.ca_file = ca_file};
    DF_HTTP struct df_http *http = NULL;
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    struct df_http_request req = DF_HTTP_REQUEST("HEAD", url);
    req.timeout_ms = ANSWER_MS;
    if (df_starts_with(url, FILE_SCHEME))
        return df_fs_exists(url + sizeof(FILE_SCHEME) - 1)
                   ? 0
                   : df_fail(err, DF_ERR_USER, "%s does not exist", url);
    return df_http_new(&o, &http, err) < 0 ? -1 : df_http_send(http, &req, &answer, err);
}

static void check_url(struct df_doctor_context *p, const char *key, const char *url,
                      const char *ca_file, enum df_level if_away)
{
    struct df_err why = {0};
    if (!url)
        return;
    if (df_doctor_request(url, ca_file, &why) < 0)
        df_finding(p, if_away, "%s: %s", key, why.message);
    else
        df_finding(p, DF_LEVEL_OK, "%s: %s answers", key, url);
}

/* ---- tools ---- */

static void check_tool_directories(struct df_doctor_context *p)
{
    for (size_t i = 0; i < p->config.tool_directories.len; i++) {
        const char *path = p->config.tool_directories.items[i];
        struct df_err why = {0};
        if (read_directory(path, &why) < 0)
            df_finding(p, DF_LEVEL_WARN, "tools.directories: %s", why.message);
        else
            df_finding(p, DF_LEVEL_OK, "tools.directories: %s can be read", path);
    }
}

int df_check_downloads(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_config *c = &p->config;
    struct df_err why = {0};
    (void)err;
    if (!is_local(p))
        return 0;
    check_tool_directories(p);
    /* Without a tool on this machine each step needs the download. */
    enum df_level level = df_has_local_tool(p) ? DF_LEVEL_WARN : DF_LEVEL_FAIL;
    check_url(p, "tools.index.opentofu", c->tool_index_opentofu, c->tool_ca_file, level);
    check_url(p, "tools.index.terraform", c->tool_index_terraform, c->tool_ca_file, level);
    bool downloads = c->tool_index_opentofu || c->tool_index_terraform;
    if (downloads && c->tool_cache_directory &&
        df_doctor_try_directory(c->tool_cache_directory, &why) < 0)
        df_finding(p, level, "tools.cacheDirectory: %s", why.message);
    return 0;
}

/* ---- providers ---- */

int df_check_providers(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_config *c = &p->config;
    struct df_err why = {0};
    if (c->mirror_directory && read_directory(c->mirror_directory, &why) < 0)
        df_finding(p, DF_LEVEL_WARN, "providers.mirror.directory: %s: modules with providers fail",
                   why.message);
    else if (c->mirror_directory)
        df_finding(p, DF_LEVEL_OK, "providers.mirror.directory: %s can be read",
                   c->mirror_directory);
    if (!is_local(p))
        return 0;
    if (c->filesystem_mirror && read_directory(c->filesystem_mirror, &why) < 0)
        df_finding(p, DF_LEVEL_WARN, "providers.filesystemMirror: %s: modules with providers fail",
                   why.message);
    else if (c->filesystem_mirror)
        df_finding(p, DF_LEVEL_OK, "providers.filesystemMirror: %s can be read",
                   c->filesystem_mirror);
    check_url(p, "providers.networkMirror", c->network_mirror, NULL, DF_LEVEL_WARN);
    /* Each step creates this directory, and fails if it cannot. */
    if (c->plugin_cache_directory && df_doctor_try_directory(c->plugin_cache_directory, err) < 0)
        return df_err_wrap(err, "providers.pluginCacheDirectory");
    if (c->plugin_cache_directory)
        df_finding(p, DF_LEVEL_OK, "providers.pluginCacheDirectory: %s can be written",
                   c->plugin_cache_directory);
    return 0;
}
