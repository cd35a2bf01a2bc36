/*
 * Chooses a release (df_release_choose() or from_mirror()), reads its digest from SHA256SUMS,
 * downloads the zip, and installs the program in the cache. Read df_release_fetch() at the end
 * first.
 */
#include "runner/tofu/release.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/archive/archive.h"
#include "common/base/fs.h"
#include "common/base/platform.h"
#include "common/crypto/crypto.h"
#include "common/http/download.h"
#include "runner/tofu/installed.h"

void df_release_free(struct df_release *r)
{
    free(r->file);
    free(r->url);
    free(r->sums[0]);
    free(r->sums[1]);
}

/* fd: -1: into ret. */
static int download_url(struct df_http *http, const char *url, int fd, const volatile bool *stop,
                        struct df_buf *ret, struct df_err *err)
{
    const struct df_download d = {url, fd, (int64_t)DF_LIMIT_TOOL_DOWNLOAD, stop};
    return df_download(http, &d, ret, err);
}

/* ---- which release ---- */

/* Resolves a reference against the URL of its document. NULL: no memory. */
static char *resolve_url(const char *base, const char *reference)
{
    if (strstr(reference, "://"))
        return strdup(reference);
    const char *slash = strrchr(base, '/');
    return df_strf("%.*s/%s", slash ? (int)(slash - base) : 0, base, reference);
}

static const cJSON *find_build(const cJSON *entry)
{
    const cJSON *build;
    cJSON_ArrayForEach (build, df_json_at(entry, "builds")) {
        if (df_streq(df_json_str(build, "os"), DF_OS_NAME) &&
            df_streq(df_json_str(build, "arch"), DF_ARCH_NAME) && df_json_str(build, "url"))
            return build;
    }
    return NULL;
}

/* The file of the release in the form of GitHub, whose name ends so; NULL: it has none. */
static const cJSON *find_asset(const cJSON *entry, const char *ending)
{
    const cJSON *asset;
    cJSON_ArrayForEach (asset, df_json_at(entry, "assets")) {
        const char *name = df_json_str(asset, "name");
        if (name && df_ends_with(name, ending) && df_json_str(asset, "browser_download_url"))
            return asset;
    }
    return NULL;
}

#define ZIP "_" DF_PLATFORM ".zip"

static bool is_for_this_machine(const cJSON *entry)
{
    return find_build(entry) || find_asset(entry, ZIP);
}

/* "versions" has them by name; GitHub's list has the name in it, or in its tag. */
static bool read_version(const cJSON *entry, struct df_version *ret)
{
    const char *const names[] = {entry->string, df_json_str(entry, "name"),
                                 df_json_str(entry, "tag_name")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        if (names[i] && df_version_parse(names[i], ret, NULL) == 0)
            return true;
    }
    return false;
}

/* The highest allowed version with a build for this machine. */
static const cJSON *choose_version(const cJSON *index, const struct df_range *range,
                                   struct df_version *ret)
{
    const cJSON *best = NULL, *entry;
    const cJSON *all = cJSON_IsArray(index) ? index : df_json_at(index, "versions");
    cJSON_ArrayForEach (entry, all) {
        struct df_version v;
        if (!read_version(entry, &v) || !df_range_allows(range, &v) || !is_for_this_machine(entry))
            continue;
        if (best && df_version_compare(&v, ret) < 0)
            continue;
        best = entry;
        *ret = v;
    }
    return best;
}

static int take_build(const char *index, const cJSON *entry, struct df_release *ret,
                      struct df_err *err)
{
    const cJSON *build = find_build(entry);
    const char *sums = df_json_str(entry, "shasums"), *file = df_json_str(build, "filename");
    ret->url = resolve_url(index, df_json_str(build, "url"));
    if (ret->url && sums)
        ret->sums[0] = resolve_url(ret->url, sums);
    const char *slash = ret->url ? strrchr(ret->url, '/') : NULL;
    ret->file = strdup(file ? file : slash ? slash + 1 : "");
    return ret->url && (ret->sums[0] || !sums) && ret->file ? 0 : df_fail_oom(err);
}

static int take_assets(const cJSON *entry, struct df_release *ret, struct df_err *err)
{
    const cJSON *zip = find_asset(entry, ZIP), *sums = find_asset(entry, "_SHA256SUMS");
    ret->url = strdup(df_json_str(zip, "browser_download_url"));
    ret->file = strdup(df_json_str(zip, "name"));
    if (sums)
        ret->sums[0] = strdup(df_json_str(sums, "browser_download_url"));
    return ret->url && ret->file && (ret->sums[0] || !sums) ? 0 : df_fail_oom(err);
}

int df_release_choose(struct df_http *http, const char *url, const struct df_tool_request *r,
                      const struct df_range *range, struct df_release *ret, struct df_err *err)
{
    DF_BUF struct df_buf text = {0};
    DF_JSON cJSON *index = NULL;
    if (download_url(http, url, -1, r->stop, &text, err) < 0)
        return -1;
    if (df_json_parse(df_buf_str(&text), text.len, &index, err) < 0)
        return df_err_wrap(err, "%s is not a releases index", url);
    struct df_version version;
    const cJSON *entry = choose_version(index, range, &version);
    if (!entry)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s lists none for " DF_PLATFORM, url);
    (void)df_version_format(&version, ret->version);
    return find_build(entry) ? take_build(url, entry, ret, err) : take_assets(entry, ret, err);
}

static int from_index(struct df_http *http, const char *url, const struct df_tool_request *r,
                      const struct df_constraint *constraint, struct df_release *ret,
                      struct df_err *err)
{
    const struct df_range range = {.any = {*constraint}, .n = 1};
    if (df_release_choose(http, url, r, &range, ret, err) < 0)
        return -1;
    return ret->sums[0] ? 0
                        : df_fail(err, DF_ERR_NOT_FOUND,
                                  "%s names no SHA256SUMS of version %s: what cannot be verified "
                                  "is not downloaded",
                                  url, ret->version);
}

static int from_mirror(const char *base, const struct df_tool_request *r,
                       const struct df_constraint *constraint, struct df_release *ret,
                       struct df_err *err)
{
    const struct df_version *exact = df_constraint_exact(constraint);
    if (!exact)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "the mirror %s cannot be listed: ask for an exact version, or configure "
                       "an index that ends in .json",
                       base);
    const char *program = df_tool_kind_program(r->kind);
    const char *v = df_version_format(exact, ret->version);
    int n = (int)strlen(base) - df_ends_with(base, "/");
    ret->file = df_strf("%s_%s_" DF_PLATFORM ".zip", program, v);
    ret->url = ret->file ? df_strf("%.*s/%s/%s", n, base, v, ret->file) : NULL;
    ret->sums[0] = df_strf("%.*s/%s/%s_%s_SHA256SUMS", n, base, v, program, v);
    ret->sums[1] = df_strf("%.*s/%s/SHA256SUMS", n, base, v);
    return ret->url && ret->sums[0] && ret->sums[1] ? 0 : df_fail_oom(err);
}

/* ---- its digest ---- */

/* Lines are "<64 hex>  <file>", with an optional star before the file. */
static bool find_sum(const char *text, const char *file, char ret[DF_SHA256_HEX])
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t hex = strspn(line, "0123456789abcdefABCDEF");
        const char *name = line + hex + strspn(line + hex, " \t*");
        size_t n = strcspn(name, "\r\n");
        if (hex != DF_SHA256_HEX - 1 || n != strlen(file) || memcmp(name, file, n) != 0)
            continue;
        for (size_t i = 0; i < hex; i++)
            ret[i] = (char)(line[i] >= 'A' && line[i] <= 'F' ? line[i] - 'A' + 'a' : line[i]);
        ret[hex] = '\0';
        return true;
    }
    return false;
}

/* *ret is empty if the release has no SHA256SUMS. */
static int expected_sum(struct df_http *http, const struct df_release *r, const volatile bool *stop,
                        char ret[DF_SHA256_HEX], struct df_err *err)
{
    DF_BUF struct df_buf text = {0};
    *ret = '\0';
    if (!r->sums[0])
        return 0;
    int failed = download_url(http, r->sums[0], -1, stop, &text, err);
    if (failed && r->sums[1] && err->cls == DF_ERR_NOT_FOUND)
        failed = download_url(http, r->sums[1], -1, stop, &text, err);
    if (failed)
        return -1;
    if (!find_sum(df_buf_str(&text), r->file, ret))
        return df_fail_reason(err, DF_ERR_DENIED, "ToolChecksum", "%s does not name %s", r->sums[0],
                              r->file);
    return 0;
}

/* ---- into the cache ---- */

/* sum: the digest that the zip must have; or empty, and then gets its digest. */
static int download_zip(struct df_http *http, const struct df_release *r, int fd,
                        const volatile bool *stop, char sum[DF_SHA256_HEX], struct df_err *err)
{
    char actual[DF_SHA256_HEX];
    if (download_url(http, r->url, fd, stop, NULL, err) < 0 ||
        df_sha256_file_hex(fd, actual, NULL, err) < 0)
        return -1;
    if (*sum && !df_streq(actual, sum))
        return df_fail_reason(err, DF_ERR_DENIED, "ToolChecksum",
                              "%s has SHA-256 %s, but SHA256SUMS names %s: it was changed on its "
                              "way or the mirror is damaged",
                              r->url, actual, sum);
    (void)snprintf(sum, DF_SHA256_HEX, "%s", actual);
    return 0;
}

static int sync_file(const char *path, struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? df_fail_errno(err, errno, "sync %s", path) : 0;
}

/* Of two runners the second one uses the directory of the first. The search for tools skips names
 * that begin with a dot. mkdtemp() uses 0700, but users may share the cache. */
int df_release_publish(const char *cache, const char *tmp, const char *program, const char *digest,
                       struct df_err *err)
{
    DF_FREE char *path = df_fs_join(tmp, program);
    DF_FREE char *dir = df_fs_join(cache, digest);
    int failed = !path || !dir              ? df_fail_oom(err)
                 : sync_file(path, err) < 0 ? -1
                                            : df_installed_note(path, err);
    if (!failed &&
        (chmod(tmp, 0755) < 0 || (rename(tmp, dir) < 0 && errno != EEXIST && errno != ENOTEMPTY)))
        failed = df_fail_errno(err, errno, "rename to %s", dir);
    return df_fs_remove_tree(tmp, failed ? NULL : err) < 0 ? -1 : failed;
}

static int install_program(int zip, const char *program, const char *cache, const char *digest,
                           struct df_err *err)
{
    DF_FREE char *tmp = df_fs_join(cache, ".new-XXXXXX");
    if (!tmp)
        return df_fail_oom(err);
    if (!mkdtemp(tmp))
        return df_fail_errno(err, errno, "create directory %s", tmp);
    DF_FREE char *path = df_fs_join(tmp, program);
    int failed = path ? df_archive_unpack_one(zip, program, path, DF_LIMIT_ARCHIVE_BYTES, err)
                      : df_fail_oom(err);
    if (failed) {
        (void)!df_fs_remove_tree(tmp, NULL);
        return -1;
    }
    return df_release_publish(cache, tmp, program, digest, err);
}

int df_release_install(struct df_http *http, const struct df_release *release,
                       const struct df_tool_request *r, char **ret, struct df_err *err)
{
    const char *cache = df_json_str(r->tools, "cacheDirectory");
    const char *program = df_tool_kind_program(r->kind);
    char sum[DF_SHA256_HEX];
    if (expected_sum(http, release, r->stop, sum, err) < 0)
        return -1;
    DF_FREE char *known = df_strf("%s/%s/%s", cache, sum, program);
    if (!known)
        return df_fail_oom(err);
    DF_CLOSE int zip = -1;
    if ((!*sum || !df_fs_exists(known)) &&
        (df_fs_mkdirs(cache, 0755, err) < 0 || df_fs_unnamed(cache, &zip, err) < 0 ||
         download_zip(http, release, zip, r->stop, sum, err) < 0 ||
         install_program(zip, program, cache, sum, err) < 0))
        return -1;
    return df_check_alloc(*ret = df_strf("%s/%s/%s", cache, sum, program), err);
}

int df_release_fetch(const struct df_tool_request *r, const struct df_constraint *constraint,
                     char **ret, struct df_err *err)
{
    const char *name = df_tool_kind_name(r->kind);
    const char *index = df_json_str(df_json_at(r->tools, "index"), name);
    if (r->kind == DF_TOOL_PLATFORM)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "%s comes with dayfly and is not downloaded: put it into PATH or "
                       "tools.directories; in pods take a runner's image that has it",
                       df_tool_kind_program(r->kind));
    if (df_str_empty(index))
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "none is downloaded: tools.index.%s is not configured", name);
    if (df_str_empty(df_json_str(r->tools, "cacheDirectory")))
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "none is downloaded: tools.cacheDirectory is not configured");
    const struct df_http_options options = {
        .ca_file = df_json_str(r->tools, "caFile"), .follow_redirects = true, .allow_file = true};
    DF_HTTP struct df_http *http = NULL;
    if (df_http_new(&options, &http, err) < 0)
        return -1;
    DF_RELEASE struct df_release release = {0};
    int failed = df_ends_with(index, ".json")
                     ? from_index(http, index, r, constraint, &release, err)
                     : from_mirror(index, r, constraint, &release, err);
    return failed ? -1 : df_release_install(http, &release, r, ret, err);
}
