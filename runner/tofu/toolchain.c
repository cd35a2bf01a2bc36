/*
 * Searches directories and PATH for the best version (consider() checks one program), and downloads
 * a release if there is none. identify() runs the `version` of a program that no image has a record
 * of, and caches the answer.
 */
#include "runner/tofu/toolchain.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "common/process/process.h"
#include "runner/tofu/image_records.h"
#include "runner/tofu/installed.h"
#include "runner/tofu/isolation.h"
#include "runner/tofu/release.h"

enum { PROBE_TIMEOUT_MS = 60000, MAX_ENTRIES = 1000 };

/* ---- what a program is ---- */

/* As the step's commands will be started. */
static int make_wall(const struct df_tool_request *r, const char *path, struct df_step_wall *ret,
                     struct df_err *err)
{
    if (!r->wall)
        return 0;
    struct df_step_wall_request q = *r->wall;
    q.tool = path;
    return df_step_wall_make(&q, ret, err);
}

static int ask_version(const struct df_tool_request *r, const char *path, struct df_tool *ret,
                       struct df_err *err)
{
    const char *const argv[] = {path, "version", NULL};
    const char *const env[] = {"CHECKPOINT_DISABLE=1", "HOME=/nonexistent",
                               "TF_CLI_CONFIG_FILE=/dev/null", NULL};
    DF_CLEANUP(df_step_wall_free) struct df_step_wall wall = {0};
    struct df_process_options o = {
        .argv = argv, .env = env, .stdin_fd = -1, .no_core = true, .death_signal = 9};
    DF_BUF struct df_buf out = DF_BUF_INIT(64 * DF_KIB);
    DF_BUF struct df_buf tail = DF_BUF_INIT(4 * DF_KIB);
    int code;
    if (make_wall(r, path, &wall, err) < 0)
        return -1;
    o.wall = wall.wall.len ? &wall.wall : NULL;
    o.limits = wall.limits;
    if (df_process_run(&o, PROBE_TIMEOUT_MS, &out, &tail, &code, err) < 0)
        return -1;
    if (code != 0)
        return df_fail(err, DF_ERR_USER, "`version` ended with exit code %d", code);
    return df_tool_parse_banner(df_buf_str(&out), ret, err);
}

/* The cache file for exactly this program file; NULL: none. */
static char *memo_path(const char *cache, const char *path, const struct stat *st)
{
    DF_FREE char *key =
        df_strf("%s\n%lld\n%lld.%09ld\n%llu", path, (long long)st->st_size,
                (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (unsigned long long)st->st_ino);
    char hex[DF_SHA256_HEX];
    if (!cache || !key || df_sha256_hex(key, strlen(key), hex, NULL) < 0)
        return NULL;
    return df_strf("%s/versions/%s", cache, hex);
}

static int recall(const char *memo, struct df_tool *ret)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(256);
    return memo && df_fs_read(memo, &b, NULL) == 0 ? df_tool_parse_banner(df_buf_str(&b), ret, NULL)
                                                   : -1;
}

/* If the cache cannot be written, the next step asks the program again. */
static void remember(const char *cache, const char *memo, const struct df_tool *t)
{
    DF_FREE char *dir = cache ? df_fs_join(cache, "versions") : NULL;
    DF_FREE char *line = df_tool_print_banner(t);
    if (!memo || !dir || !line || df_fs_mkdirs(dir, 0700, NULL) < 0 ||
        df_fs_replace(memo, line, strlen(line), 0600, NULL) < 0)
        return;
}

static int identify(const struct df_tool_request *r, const char *path, struct df_tool *ret,
                    struct df_err *err)
{
    const char *cache = df_json_str(r->tools, "cacheDirectory");
    struct stat st;
    if (stat(path, &st) < 0)
        return df_fail_errno(err, errno, "%s", path);
    DF_FREE char *memo = memo_path(cache, path, &st);
    /* The image's record first: others may write into the cache. */
    if (df_image_record_read(DF_IMAGE_RECORDS, path, ret, NULL) == 0 || recall(memo, ret) == 0)
        return 0;
    if (ask_version(r, path, ret, err) < 0)
        return -1;
    remember(cache, memo, ret);
    return 0;
}

/* ---- the search ---- */

struct search {
    const struct df_tool_request *request;
    struct df_constraint constraint;
    const char *cache;    /* or NULL */
    struct df_tool best;  /* path NULL: none yet */
    struct df_buf found;  /* "1.9.0 (/usr/bin/tofu), ..." for people */
    struct df_buf places; /* where it searched */
};

static void search_free(struct search *s)
{
    df_tool_free(&s->best);
    df_buf_free(&s->found);
    df_buf_free(&s->places);
}

static void add_location(struct df_buf *b, const char *what, const char *path)
{
    (void)df_buf_addf(b, "%s%s%s%s%s", b->len ? ", " : "", what, *what ? " (" : "", path,
                      *what ? ")" : "");
}

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Considers the program at path, if there is one. Fails if there is no memory, or no wall for the
 * step. */
static int consider(struct search *s, const char *path, struct df_err *err)
{
    struct df_tool t = {0};
    if (!is_program(path))
        return 0;
    struct df_err why = {0};
    if (identify(s->request, path, &t, &why) < 0) {
        if (df_streq(why.reason, "InvalidStep")) /* no wall can be made for this step */
            return df_err_pass(err, &why);
        add_location(&s->found, why.message, path);
        return 0;
    }
    if (t.kind != s->request->kind)
        return 0;
    char version[DF_VERSION_TEXT];
    add_location(&s->found, df_version_format(&t.version, version), path);
    bool better = !s->best.path || df_version_compare(&t.version, &s->best.version) > 0;
    if (!better || !df_constraint_allows(&s->constraint, &t.version))
        return 0;
    t.path = strdup(path);
    if (!t.path)
        return df_fail_oom(err);
    df_tool_free(&s->best);
    s->best = t;
    return 0;
}

/* Fails, too, if the program is a download that was changed: it is not even asked for its version.
 */
static int consider_in(struct search *s, const char *dir, const char *sub, struct df_err *err)
{
    DF_FREE char *path =
        df_strf("%s/%s%s%s", dir, sub, *sub ? "/" : "", df_tool_kind_program(s->request->kind));
    if (df_check_alloc(path, err) < 0 ||
        (dir == s->cache && is_program(path) && df_installed_check(path, err) < 0))
        return -1;
    return consider(s, path, err);
}

/* <dir>/<anything>/tofu; names with a dot are incomplete downloads. */
static int consider_below(struct search *s, const char *dir, struct df_err *err)
{
    DIR *d = opendir(dir);
    int failed = 0;
    for (int i = 0; d && !failed && i < MAX_ENTRIES; i++) {
        const struct dirent *e = readdir(d);
        if (!e)
            break;
        if (e->d_name[0] != '.' && e->d_type != DT_REG)
            failed = consider_in(s, dir, e->d_name, err);
    }
    if (d)
        (void)closedir(d);
    return failed;
}

static int search_directories(struct search *s, struct df_err *err)
{
    const cJSON *dir;
    cJSON_ArrayForEach (dir, df_json_at(s->request->tools, "directories")) {
        if (!cJSON_IsString(dir))
            continue;
        add_location(&s->places, "", dir->valuestring);
        if (consider_in(s, dir->valuestring, "", err) < 0 ||
            consider_below(s, dir->valuestring, err) < 0)
            return -1;
    }
    return s->cache ? consider_below(s, s->cache, err) : 0;
}

static int search_path(struct search *s, struct df_err *err)
{
    const char *p = s->request->path_env;
    if (!p || !df_json_bool(s->request->tools, "searchPath", false))
        return 0;
    add_location(&s->places, "", "PATH");
    for (;;) {
        size_t n = strcspn(p, ":");
        DF_FREE char *dir = strndup(p, n);
        if (!dir)
            return df_fail_oom(err);
        /* Skip relative entries: the result must not depend on the current directory. */
        if (*dir == '/' && consider_in(s, dir, "", err) < 0)
            return -1;
        if (!p[n])
            return 0;
        p += n + 1;
    }
}

static int fail_missing(const struct search *s, const struct df_err *download, struct df_err *err)
{
    const char *c = s->request->constraint;
    return df_fail_reason(
        err, DF_ERR_NOT_FOUND, *download->reason ? download->reason : "ToolMissing",
        "no %s %s%sis here: looked in %s; found %s; %s", df_tool_kind_name(s->request->kind),
        df_str_empty(c) ? "" : c, df_str_empty(c) ? "" : " ",
        s->places.len ? df_buf_str(&s->places) : "no directory",
        s->found.len ? df_buf_str(&s->found) : "none", download->message);
}

static int download_tool(struct search *s, struct df_err *err)
{
    struct df_err why = {0};
    DF_FREE char *path = NULL;
    if (s->request->is_local) {
        (void)df_fail(&why, DF_ERR_NOT_FOUND, "nothing was downloaded");
        return fail_missing(s, &why, err);
    }
    if (df_release_fetch(s->request, &s->constraint, &path, &why) < 0)
        return fail_missing(s, &why, err);
    if (identify(s->request, path, &s->best, err) < 0)
        return df_err_wrap(err, "downloaded %s", path);
    if (s->best.kind != s->request->kind || !df_constraint_allows(&s->constraint, &s->best.version))
        return df_fail_reason(err, DF_ERR_USER, "ToolMissing",
                              "the release index calls something else %s %s: %s",
                              df_tool_kind_name(s->request->kind), s->request->constraint, path);
    s->best.path = DF_TAKE(path);
    return 0;
}

int df_toolchain_find(const struct df_tool_request *r, struct df_tool *ret, struct df_err *err)
{
    DF_CLEANUP(search_free)
    struct search s = {.request = r,
                       .cache = df_json_str(r->tools, "cacheDirectory"),
                       .found = DF_BUF_INIT(512),
                       .places = DF_BUF_INIT(300)};
    if (df_constraint_parse(r->constraint, &s.constraint, err) < 0)
        return df_err_reason(err, "InvalidStep");
    if (search_directories(&s, err) < 0 || search_path(&s, err) < 0)
        return -1;
    if (!s.best.path && download_tool(&s, err) < 0)
        return -1;
    *ret = s.best;
    s.best.path = NULL;
    return 0;
}

int df_toolchain_find_any(const struct df_tool_request *r, struct df_tool *ret, struct df_err *err)
{
    struct df_err first = {0};
    struct df_tool_request one = *r;
    size_t tries = r->is_local ? DF_TOOL_MODULE_KINDS : 2 * DF_TOOL_MODULE_KINDS;
    for (size_t i = 0; i < tries; i++) {
        struct df_err why = {0};
        one.is_local = i < DF_TOOL_MODULE_KINDS;
        one.kind = (enum df_tool_kind)(i % DF_TOOL_MODULE_KINDS);
        if (df_toolchain_find(&one, ret, &why) == 0)
            return 0;
        bool is_final = !df_streq(why.reason, "ToolMissing");
        if (is_final || i == 0 || i == DF_TOOL_MODULE_KINDS)
            first = why;
        if (is_final)
            break;
    }
    if (!df_streq(first.reason, "ToolMissing"))
        return df_err_pass(err, &first);
    return df_fail_reason(err, first.cls, first.reason, "%s; there is no terraform either",
                          first.message);
}

int df_toolchain_of_step(const cJSON *step, const struct df_tool_request *how, struct df_tool *ret,
                         struct df_err *err)
{
    const char *planned = df_json_str(step, "expected.toolVersion");
    const char *name = df_json_str(step, planned ? "expected.toolName" : "runtime.name");
    struct df_tool_request r = *how;
    r.constraint = planned ? planned : df_json_str(step, "runtime.version");
    r.tools = df_json_at(step, "tools");
    r.path_env = getenv("PATH");
    if (!name)
        return df_toolchain_find_any(&r, ret, err);
    return df_tool_kind_parse(name, &r.kind, err) < 0 ? -1 : df_toolchain_find(&r, ret, err);
}
