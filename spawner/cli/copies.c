/*
 * copies.c - refuses a second executor for a module by mistake. Read df_copies_refuse() at the end.
 * Sources are compared by URL and folder, and on this machine by their real paths. An executor
 * whose directory is gone may have the same module: the directory may have been moved.
 */
#include "spawner/cli/copies.h"

#include <errno.h>

#include "spawner/cli/kinds.h"
#include "spawner/model/model.h"

#define NAMED_MAX 6 /* executors in one message */

static const char file_scheme[] = "file://";

/* ---- the same source ---- */

static const char *url_of(const cJSON *source)
{
    const char *url = df_json_str(source, "url");
    return url ? url : "";
}

/* The folder without a leading "./" and without slashes at its end; "." is the same as none. */
static const char *folder_of(const cJSON *source, int *ret_len)
{
    const char *folder = df_json_str(source, "folder");
    size_t n = folder ? strlen(folder) : 0;
    while (n && folder[n - 1] == '/')
        n--;
    while (n > 1 && folder[0] == '.' && folder[1] == '/') {
        folder += 2;
        n -= 2;
    }
    *ret_len = n == 1 && *folder == '.' ? 0 : (int)n;
    return folder ? folder : "";
}

/* The real path of a source on this machine, for the caller to free; NULL if it is elsewhere or
 * does not exist. */
static char *real_path_of(const cJSON *source, bool with_folder)
{
    int n = 0;
    const char *url = url_of(source), *folder = folder_of(source, &n);
    if (!df_starts_with(url, file_scheme))
        return NULL;
    DF_FREE char *path = df_strf("%s/%.*s", url + strlen(file_scheme), with_folder ? n : 0, folder);
    return path ? realpath(path, NULL) : NULL;
}

static bool same_url(const cJSON *a, const cJSON *b)
{
    DF_FREE char *one = real_path_of(a, false), *other = real_path_of(b, false);
    return one && other ? strcmp(one, other) == 0 : df_source_is_same(url_of(a), url_of(b));
}

bool df_copies_same_source(const cJSON *a, const cJSON *b)
{
    int n = 0, m = 0;
    const char *one = folder_of(a, &n), *other = folder_of(b, &m);
    return n == m && strncmp(one, other, (size_t)n) == 0 && same_url(a, b);
}

bool df_copies_same_module(const cJSON *a, const cJSON *b)
{
    DF_FREE char *one = real_path_of(a, true), *other = real_path_of(b, true);
    return df_copies_same_source(a, b) || (one && other && strcmp(one, other) == 0);
}

/* ---- a directory that was moved ---- */

/* True if the directory of this source on this machine is not there any more. */
static bool is_gone(const cJSON *source)
{
    DF_FREE char *path = real_path_of(source, true);
    return !path && errno == ENOENT && df_streq(df_json_str(source, "kind"), "directory") &&
           df_starts_with(url_of(source), file_scheme);
}

/* True if only the path to the directory differs, not its own name and not the folder in it. */
static bool same_name(const cJSON *a, const cJSON *b)
{
    int n = 0, m = 0;
    const char *folder = folder_of(a, &n), *other = folder_of(b, &m);
    const char *one = strrchr(url_of(a), '/'), *two = strrchr(url_of(b), '/');
    return df_streq(one, two) && n == m && strncmp(folder, other, (size_t)n) == 0;
}

/* Fails if the source may be the moved directory of an executor that holds resources: a second
 * executor would make them again. */
static int refuse_moved(const cJSON *executors, const cJSON *source, struct df_err *err)
{
    const cJSON *executor;
    cJSON_ArrayForEach (executor, executors) {
        const cJSON *theirs = df_json_at(executor, "spec.source");
        const char *name = df_json_str(executor, "metadata.name");
        if (df_json_bool(executor, "status.mayHoldResources", false) && is_gone(theirs) &&
            same_name(theirs, source))
            return df_fail(err, DF_ERR_CONFLICT,
                           "executor %s holds resources, and its directory %s is gone: if it was "
                           "moved here, give the executor the new URL %s with `dayfly edit "
                           "executor %s --confirm-source-change`; for another module choose a name "
                           "with --name NEW",
                           name, url_of(theirs), url_of(source), name);
    }
    return 0;
}

/* ---- the executors that have it ---- */

/* Appends "prod (branch main), test" and returns the number of executors with this module. */
static size_t name_them(const cJSON *executors, const cJSON *source, struct df_buf *out,
                        const char **ret_first)
{
    static const char *const references[] = {"branch", "tag", "commit"};
    size_t count = 0;
    const cJSON *executor;
    cJSON_ArrayForEach (executor, executors) {
        const cJSON *theirs = df_json_at(executor, "spec.source");
        if (!df_copies_same_module(theirs, source) || count++ >= NAMED_MAX)
            continue;
        const char *name = df_json_str(executor, "metadata.name");
        if (!*ret_first)
            *ret_first = name;
        (void)df_buf_addf(out, "%s%s", out->len ? ", " : "", name);
        for (size_t i = 0; i < DF_ARRAY_SIZE(references); i++) {
            const char *value = df_json_str(theirs, references[i]);
            if (value)
                (void)df_buf_addf(out, " (%s %.64s)", references[i], value);
        }
    }
    if (count > NAMED_MAX)
        (void)df_buf_addf(out, " and %zu more", count - NAMED_MAX);
    return count;
}

int df_copies_refuse(struct df_cli *cli, const cJSON *source, struct df_err *err)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_JSON cJSON *executors = NULL;
    const char *first = NULL;
    if (df_cli_list(cli, "/v1/executors", &executors, err) < 0)
        return -1;
    size_t count = name_them(executors, source, &names, &first);
    if (df_buf_check(&names, err) < 0)
        return -1;
    if (!count)
        return refuse_moved(executors, source, err);
    return df_fail(err, DF_ERR_CONFLICT,
                   "this module has %s already: %s. Use %s with `dayfly %s executor/%s`; or, if it "
                   "never applied anything, begin anew after `dayfly delete %s`; or make another "
                   "copy, with its own state and everything in it a second time, with --name NEW",
                   count == 1 ? "an executor" : "executors", df_buf_str(&names),
                   count == 1 ? "it" : "one", cli->command->name, first, first);
}
