/*
 * Finds the smallest directory with all that a module names by relative paths. First the paths in
 * calls of modules, then those in other strings; read df_reach_widen() at the end first.
 */
#include "spawner/cli/reach.h"

#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/hcl/calls.h"

static const char file_scheme[] = "file://";

struct reach {
    char *module;   /* the real path of the module's directory */
    char *own;      /* of the source as it is now */
    char *top;      /* holds everything so far */
    char *why;      /* the first path that leads out of own; or NULL */
    char *left;     /* the first path in a string that is not brought along; or NULL */
    char *left_top; /* the smallest directory with it */
    bool guess;
    const char *in; /* the directory whose strings are read */
};

static void free_reach(struct reach *r)
{
    free(r->module);
    free(r->own);
    free(r->top);
    free(r->why);
    free(r->left);
    free(r->left_top);
}

/* ---- what is needed ---- */

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void cut_last_part(char *path)
{
    char *slash = strrchr(path, '/');
    slash[slash == path] = '\0';
}

/* Why this is no directory of one project, but where other things of the caller, or of other users,
 * lie. */
static const char *fault_of_top(const char *top)
{
    struct stat st;
    const char *named = getenv("HOME");
    DF_FREE char *home = df_str_empty(named) ? NULL : realpath(named, NULL);
    if (df_streq(top, "/") || (home && df_fs_is_within(home, top)))
        return df_streq(home, top) ? "your home directory" : "above your home directory";
    if (stat(top, &st) == 0 && (st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH))
        return "a directory of all users";
    return NULL;
}

/* Remembers a path that is not brought along. top: the caller's, taken. */
static int leave(struct reach *r, char **top, const char *named, struct df_err *err)
{
    if (r->left)
        return 0;
    r->left = df_strf("%s in %s", named, r->in);
    r->left_top = DF_TAKE(*top);
    return df_check_alloc(r->left, err);
}

/* Widens the top until it has the directory. is_sure: the module does not work without it; else the
 * path may mean something else, and is no reason to take everything. */
static int need(struct reach *r, const char *directory, const char *named, bool is_sure,
                struct df_err *err)
{
    DF_FREE char *top = strdup(r->top);
    if (!top)
        return df_fail_oom(err);
    while (!df_fs_is_within(directory, top))
        cut_last_part(top);
    if (df_streq(top, r->top))
        return 0;
    if (!is_sure && (!r->guess || fault_of_top(top)))
        return leave(r, &top, named, err);
    free(r->top);
    r->top = DF_TAKE(top);
    if (!r->why)
        r->why = df_strf("%s in %s", named, r->in);
    return df_check_alloc(r->why, err);
}

/* *ret: the directory of what a path names, for the caller to free; NULL: there is no such
 * thing. */
static int directory_of(const char *base, const char *path, char **ret, struct df_err *err)
{
    DF_FREE char *full = df_hcl_path(base, path);
    if (!full)
        return df_fail_oom(err);
    bool is_there = df_fs_exists(full);
    if (is_there && !is_directory(full))
        cut_last_part(full);
    *ret = is_there ? DF_TAKE(full) : NULL;
    return 0;
}

/* ---- paths in strings ---- */

/* Cuts a template off, and the part of a path that it belongs to: "../x/${var.a}.json" ->
 * "../x". */
static char *constant_part(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i + 1 < n; i++)
        if ((text[i] == '$' || text[i] == '%') && text[i + 1] == '{')
            n = i;
    if (!text[n])
        return strdup(text);
    while (n && text[n - 1] != '/')
        n--;
    return strndup(text, n);
}

/* Takes the prefix away that names a directory. *ret_base: what the rest is relative to. */
static const char *without_prefix(const struct reach *r, const char *text, const char **ret_base)
{
    static const char *const prefixes[] = {"${path.module}/", "${path.root}/", "${path.cwd}/"};
    *ret_base = df_starts_with(text, prefixes[0]) ? r->in : r->module;
    for (size_t i = 0; i < DF_ARRAY_SIZE(prefixes); i++)
        if (df_starts_with(text, prefixes[i]))
            return text + strlen(prefixes[i]);
    return text;
}

/* "..", and "../" are as likely something else as a path. */
static bool is_only_dots(const char *path)
{
    return !path[strspn(path, "./")];
}

static int visit_literal(void *arg, const struct df_hcl_literal *l, struct df_err *err)
{
    struct reach *r = arg;
    const char *base = NULL, *path = without_prefix(r, l->value, &base);
    bool is_path = path != l->value || !is_only_dots(path);
    if (!strstr(path, "..") || *path == '/' || !is_path || strlen(path) > DF_LIMIT_URL)
        return 0;
    DF_FREE char *constant = constant_part(path), *directory = NULL;
    if (df_check_alloc(constant, err) < 0 ||
        (*constant && directory_of(base, constant, &directory, err) < 0))
        return -1;
    return directory ? need(r, directory, constant, false, err) : 0;
}

/* ---- a module and those that it calls ---- */

static int read_strings(struct reach *r, const char *directory, struct df_err *err)
{
    struct df_err why = {0};
    r->in = directory;
    if (df_hcl_literals_in(directory, DF_HCL_ANY, visit_literal, r, &why) == 0 ||
        why.cls != DF_ERR_LIMIT)
        return 0;
    return df_err_pass(err, &why);
}

static int visit_call(void *arg, const struct df_hcl_call *call, struct df_err *err)
{
    struct reach *r = arg;
    if (!is_directory(call->target))
        return 0; /* the tool says so */
    r->in = call->directory;
    return need(r, call->target, call->source, true, err) < 0 ? -1
                                                              : read_strings(r, call->target, err);
}

/* ---- the source ---- */

static int check_top(const struct reach *r, struct df_err *err)
{
    const char *fault = fault_of_top(r->top);
    if (!fault)
        return 0;
    return df_fail(
        err, DF_ERR_USER,
        "the module names %s, and the smallest directory with both is %s, %s, which is "
        "not copied: move them into a directory of their own, or say which part is to be "
        "copied: DIRECTORY --folder FOLDER",
        r->why, r->top, fault);
}

static int make_source(const struct reach *r, const cJSON *source, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *wide = cJSON_Duplicate(source, true);
    DF_FREE char *url = df_strf("%s%s", file_scheme, r->top);
    const char *folder = r->module + strlen(r->top);
    folder += strspn(folder, "/");
    if (df_json_put(wide, err, DF_STR_ALLOC("url", url), DF_STR("folder", folder)) < 0)
        return -1;
    *ret = DF_TAKE(wide);
    return 0;
}

/* False: there is no such directory here. */
static bool find_module(const cJSON *source, struct reach *ret)
{
    const char *url = df_json_str(source, "url"), *folder = df_json_str(source, "folder");
    if (!url || !df_starts_with(url, file_scheme) ||
        !df_streq(df_json_str(source, "kind"), "directory"))
        return false;
    ret->own = realpath(url + strlen(file_scheme), NULL);
    DF_FREE char *path = ret->own ? df_strf("%s/%s", ret->own, folder ? folder : "") : NULL;
    ret->module = path ? realpath(path, NULL) : NULL;
    ret->top = ret->module ? strdup(ret->own) : NULL;
    return ret->top && df_fs_is_within(ret->module, ret->own);
}

/* What was left may have come along for another reason since. */
static int tell_left(const struct reach *r, struct df_reach *ret, struct df_err *err)
{
    if (!r->left || df_fs_is_within(r->left_top, r->top))
        return 0;
    const char *folder = r->module + strlen(r->left_top);
    ret->left_fault = fault_of_top(r->left_top);
    return df_str_set(&ret->left, r->left, err) < 0 ||
                   df_str_set(&ret->left_top, r->left_top, err) < 0
               ? -1
               : df_str_set(&ret->left_folder, folder + strspn(folder, "/"), err);
}

static int find_all(struct reach *r, const cJSON *source, struct df_reach *ret, struct df_err *err)
{
    if (read_strings(r, r->module, err) < 0 ||
        df_hcl_calls(r->module, DF_HCL_ANY, visit_call, r, err) < 0 || tell_left(r, ret, err) < 0)
        return -1;
    if (!r->why)
        return 0;
    if (check_top(r, err) < 0 || make_source(r, source, &ret->source, err) < 0)
        return -1;
    ret->why = DF_TAKE(r->why);
    return 0;
}

void df_reach_free(struct df_reach *r)
{
    cJSON_Delete(r->source);
    free(r->why);
    free(r->left);
    free(r->left_top);
    free(r->left_folder);
}

int df_reach_widen(const cJSON *source, bool guess, struct df_reach *ret, struct df_err *err)
{
    DF_CLEANUP(free_reach) struct reach r = {.guess = guess};
    DF_REACH struct df_reach found = {0};
    if (find_module(source, &r) && find_all(&r, source, &found, err) < 0)
        return -1;
    *ret = found;
    found = (struct df_reach){0};
    return 0;
}
