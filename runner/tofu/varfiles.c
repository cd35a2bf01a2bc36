/*
 * Lists the variable files: collect_in_order() adds them in the order of varfiles.h; the functions
 * above it check the names of files and separate -var-file from the other arguments.
 */
#include "runner/tofu/varfiles.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "runner/tofu/sealed.h"

void df_varfiles_free(struct df_varfiles *v)
{
    df_strs_wipe(&v->files);
    df_strs_free(&v->arguments);
}

/* ---- a file of the source ---- */

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* The depth at which the path ends, or -1 if it leaves the folder where it begins. */
static int depth_of(const char *path, int depth)
{
    while (depth >= 0 && *path) {
        size_t n = strcspn(path, "/");
        if (n == 2 && strncmp(path, "..", n) == 0)
            depth--;
        else if (n && !(n == 1 && *path == '.'))
            depth++;
        path += n + (path[n] == '/');
    }
    return depth;
}

/* what: "variable file" */
static int refuse_file(const char *what, const char *file, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                          "the %s \"%.200s\" %s: name a file of the source, relative to "
                          "the module's folder",
                          what, file, why);
}

static int fail_missing(const struct df_varfiles_request *q, const char *what, const char *file,
                        struct df_err *err)
{
    const char *folder = df_json_str(q->step, "source.folder");
    return df_fail_reason(err, DF_ERR_USER, "PlanFailed",
                          "the %s \"%.200s\" is not in the source (looked for in %s%.200s)", what,
                          file, folder ? "its folder " : "its top folder", folder ? folder : "");
}

static int check_file(const struct df_varfiles_request *q, const char *what, const char *file,
                      struct df_err *err)
{
    const char *folder = df_json_str(q->step, "source.folder");
    DF_FREE char *path = df_fs_join(q->module_dir, file);
    DF_FREE char *root = realpath(q->checkout, NULL);
    struct stat st;
    if (!path)
        return df_fail_oom(err);
    if (!root)
        return df_fail_errno(err, errno, "%s", q->checkout);
    if (!*file || *file == '/')
        return refuse_file(what, file, *file ? "is absolute" : "has no name", err);
    if (depth_of(file, depth_of(folder ? folder : "", 0)) < 0)
        return refuse_file(what, file, "leads out of the source", err);
    DF_FREE char *real = realpath(path, NULL);
    if (!real && (errno == ENOENT || errno == ENOTDIR))
        return fail_missing(q, what, file, err);
    if (!real || stat(real, &st) < 0)
        return df_fail_errno(err, errno, "%s %s", what, file);
    if (!is_below(real, root))
        return refuse_file(what, file, "leads out of the source", err);
    return S_ISREG(st.st_mode) ? 0 : refuse_file(what, file, "is not a file", err);
}

static int add_source_file(const struct df_varfiles_request *q, const char *file,
                           struct df_varfiles *v, struct df_err *err)
{
    if (check_file(q, "variable file", file, err) < 0)
        return -1;
    (void)df_strs_addf(&v->files, "-var-file=%s", file);
    return 0;
}

static int add_listed(const struct df_varfiles_request *q, int from, int to, struct df_varfiles *v,
                      struct df_err *err)
{
    const cJSON *list = df_json_at(q->step, "variableFiles");
    for (int i = from; i < to; i++) {
        const char *file = cJSON_GetStringValue(cJSON_GetArrayItem(list, i));
        if (add_source_file(q, file ? file : "", v, err) < 0)
            return -1;
    }
    return 0;
}

/* The rest of a -var-file or --var-file: "=VALUE", or "" if the next argument is the value. NULL:
 * another argument. */
static const char *rest_of(const char *option, const char *argument)
{
    if (!argument || *argument != '-')
        return NULL;
    const char *name = argument + (argument[1] == '-' ? 2 : 1);
    const char *rest = name + strlen(option);
    return df_starts_with(name, option) && (*rest == '\0' || *rest == '=') ? rest : NULL;
}

static const char *var_file_rest(const char *argument)
{
    return rest_of("var-file", argument);
}

/* Files of resource addresses. The tool shows the lines that are none. */
static int check_address_files(const struct df_varfiles_request *q, struct df_err *err)
{
    static const struct {
        const char *option, *what;
    } files[] = {{"target-file", "file of -target-file"},
                 {"exclude-file", "file of -exclude-file"}};
    const cJSON *argument;
    cJSON_ArrayForEach (argument, df_json_at(q->step, "arguments")) {
        for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
            const char *rest = rest_of(files[i].option, cJSON_GetStringValue(argument));
            if (!rest)
                continue;
            const char *file = *rest ? rest + 1 : cJSON_GetStringValue(argument->next);
            if (check_file(q, files[i].what, file ? file : "", err) < 0)
                return -1;
        }
    }
    return 0;
}

static int add_arguments(const struct df_varfiles_request *q, int from, int to,
                         struct df_varfiles *v, struct df_err *err)
{
    const cJSON *list = df_json_at(q->step, "arguments");
    for (int i = from; i < to; i++) {
        const char *argument = cJSON_GetStringValue(cJSON_GetArrayItem(list, i));
        const char *rest = var_file_rest(argument), *file = NULL;
        if (!rest) {
            (void)df_strs_add(&v->arguments, argument ? argument : "");
            continue;
        }
        if (*rest)
            file = rest + 1;
        else if (i + 1 < to)
            file = cJSON_GetStringValue(cJSON_GetArrayItem(list, ++i));
        if (add_source_file(q, file ? file : "", v, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- variables as a file ---- */

static int add_variables(const struct df_varfiles_request *q, const cJSON *variables,
                         const char *name, struct df_varfiles *v, struct df_err *err)
{
    if (!variables || !variables->child)
        return 0;
    DF_FREE char *path = df_fs_join(q->secret_dir, name);
    if (df_json_save(path, variables, err) < 0)
        return -1;
    (void)df_strs_addf(&v->files, "-var-file=%s", path);
    return 0;
}

/* ---- the order ---- */

static int add_level(const struct df_varfiles_request *q, const int files[2],
                     const int arguments[2], struct df_varfiles *v, struct df_err *err)
{
    return add_listed(q, files[0], files[1], v, err) < 0 ||
                   add_arguments(q, arguments[0], arguments[1], v, err) < 0
               ? -1
               : 0;
}

static int clamp(int64_t n, int max)
{
    return n < 0 ? 0 : n > max ? max : (int)n;
}

static int collect_in_order(const struct df_varfiles_request *q, struct df_varfiles *v,
                            struct df_err *err)
{
    const cJSON *of_run = df_json_at(q->step, "ofRun");
    int files = cJSON_GetArraySize(df_json_at(q->step, "variableFiles"));
    int arguments = cJSON_GetArraySize(df_json_at(q->step, "arguments"));
    int own_files = files - clamp(df_json_int(of_run, "variableFiles", 0), files);
    int own_arguments = arguments - clamp(df_json_int(of_run, "arguments", 0), arguments);
    if (add_level(q, (int[]){0, own_files}, (int[]){0, own_arguments}, v, err) < 0 ||
        add_variables(q, df_json_at(q->step, "variables"), "variables.tfvars.json", v, err) < 0)
        return -1;
    size_t plain = v->files.len;
    if (add_level(q, (int[]){own_files, files}, (int[]){own_arguments, arguments}, v, err) < 0 ||
        df_sealed_files(q->step, q->secret_dir, &v->files, err) < 0)
        return -1;
    /* If no file was added since, the file of `variables` already sets the run's values. */
    if (v->files.len > plain &&
        add_variables(q, df_json_at(of_run, "variables"), "run.tfvars.json", v, err) < 0)
        return -1;
    return 0;
}

/* True if the step names variable files: only they make an order necessary. */
static bool names_files(const cJSON *step)
{
    const cJSON *argument;
    if (cJSON_GetArraySize(df_json_at(step, "variableFiles")) > 0 ||
        cJSON_GetArraySize(df_json_at(step, "sealed.files")) > 0)
        return true;
    cJSON_ArrayForEach (argument, df_json_at(step, "arguments")) {
        if (var_file_rest(cJSON_GetStringValue(argument)))
            return true;
    }
    return false;
}

static int copy_arguments(const cJSON *step, struct df_strs *to)
{
    const cJSON *argument;
    cJSON_ArrayForEach (argument, df_json_at(step, "arguments"))
        (void)df_strs_add(to, cJSON_IsString(argument) ? argument->valuestring : "");
    return 0;
}

int df_varfiles_collect(const struct df_varfiles_request *q, struct df_varfiles *ret,
                        struct df_err *err)
{
    struct df_varfiles v = {0};
    int failed =
        names_files(q->step) ? collect_in_order(q, &v, err) : copy_arguments(q->step, &v.arguments);
    if (failed || check_address_files(q, err) < 0 ||
        df_sealed_variables(q->step, q->secret_dir, &v.files, err) < 0 ||
        df_strs_check(&v.files, err) < 0 || df_strs_check(&v.arguments, err) < 0) {
        df_varfiles_free(&v);
        return -1;
    }
    *ret = v;
    return 0;
}
