/*
 * Resolves the word after `dayfly run` to an executor: the word is a directory, an archive, a
 * repository or a name. The executor is found, changed by the options, or created. Read
 * df_module_executor() at the end and follow the calls upward.
 */
#include "spawner/cli/module.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/parse.h"
#include "common/source/rules.h"
#include "spawner/cli/copies.h"
#include "spawner/cli/foreign.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/module_name.h"
#include "spawner/cli/widen.h"
#include "spawner/model/model.h"
#include "spawner/model/rules.h"

/* ---- sources ---- */

bool df_module_is_url(const char *word)
{
    if (strstr(word, "://"))
        return true;
    const char *at = strchr(word, '@'), *colon = at ? strchr(at, ':') : NULL;
    return colon && !memchr(word, '/', (size_t)(colon - word));
}

static int url_of_path(const char *path, bool *ret_directory, char **ret, struct df_err *err)
{
    struct stat st;
    DF_FREE char *real = realpath(path, NULL);
    if (!real || stat(real, &st) < 0) {
        (void)df_fail_errno(err, errno, "%s", path);
        err->cls = DF_ERR_USER;
        return -1;
    }
    *ret_directory = S_ISDIR(st.st_mode);
    return df_check_alloc(*ret = df_strf("file://%s", real), err);
}

static const char *const references[] = {"branch", "tag", "commit"};

/* *ret: the one of --branch, --tag and --commit that was given, or NULL. More than one is an
 * error. */
static int reference_of(const struct df_args *args, const char **ret, struct df_err *err)
{
    const char *found = NULL;
    for (size_t i = 0; i < DF_ARRAY_SIZE(references); i++) {
        if (!df_arg_given(args, references[i]))
            continue;
        if (found)
            return df_fail(err, DF_ERR_USER, "--%s and --%s exclude each other", found,
                           references[i]);
        found = references[i];
    }
    *ret = found;
    return 0;
}

static bool has_entry(const char *directory, const char *name)
{
    DF_FREE char *path = df_strf("%s/%s", directory, name);
    return path && access(path, F_OK) == 0;
}

static bool is_bare_repository(const char *directory)
{
    return has_entry(directory, "HEAD") && has_entry(directory, "objects") &&
           has_entry(directory, "refs");
}

/* Fails unless the directory is the root of a git repository: git fetches only whole repositories,
 * and --folder names a directory in one. */
static int check_root(const char *directory, const char *reference, const struct df_args *args,
                      struct df_err *err)
{
    DF_FREE char *root = strdup(directory);
    if (!root)
        return df_fail_oom(err);
    if (is_bare_repository(root) || has_entry(root, ".git"))
        return 0;
    do {
        *strrchr(root, '/') = '\0';
    } while (*root && !has_entry(root, ".git"));
    if (!*root)
        return df_fail(err, DF_ERR_USER, "--%s is for git, and %s is in no repository", reference,
                       directory);
    const char *folder = df_arg(args, "folder");
    return df_fail(err, DF_ERR_USER,
                   "--%s: the root of the repository is %s: say %s --folder %s%s%s --%s %s",
                   reference, root, root, directory + strlen(root) + 1, folder ? "/" : "",
                   folder ? folder : "", reference, df_arg(args, reference));
}

static bool has_submodules(const struct df_args *args)
{
    return df_arg_given(args, "submodules");
}

static int fill_source(cJSON *source, const char *url, bool directory, const struct df_args *args,
                       struct df_err *err)
{
    const char *reference = NULL;
    if (reference_of(args, &reference, err) < 0 || df_json_add_str(source, "url", url, err) < 0)
        return -1;
    if (reference && directory && check_root(url + strlen("file://"), reference, args, err) < 0)
        return -1;
    if (reference)
        return df_json_put(source, err, DF_STR("kind", "git"),
                           DF_STR(reference, df_arg(args, reference)));
    return directory && !is_bare_repository(url + strlen("file://"))
               ? df_json_add_str(source, "kind", "directory", err)
               : 0;
}

int df_module_source(const char *word, const struct df_args *args, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *source = cJSON_CreateObject();
    DF_FREE char *local = NULL;
    bool directory = false, url = df_module_is_url(word);
    const char *fault = url ? df_source_address_fault(word) : NULL;
    if (fault)
        return df_fail(err, DF_ERR_USER, "%s %s", word, fault);
    if (!url && url_of_path(word, &directory, &local, err) < 0)
        return -1;
    if (fill_source(source, url ? word : local, directory, args, err) < 0 ||
        df_json_put(source, err, DF_STR("folder", df_arg(args, "folder")),
                    DF_STR("sha256", df_arg(args, "sha256"))) < 0 ||
        (has_submodules(args) && df_json_add_bool(source, "submodules", true, err) < 0))
        return -1;
    *ret = DF_TAKE(source);
    return 0;
}

/* ---- the executor ---- */

/* *ret: spec.runtime from --tool and --tool-version, or NULL. */
static int runtime_of(const struct df_args *args, cJSON **ret, struct df_err *err)
{
    const char *tool = df_arg(args, "tool"), *version = df_arg(args, "tool-version");
    *ret = NULL;
    if (!tool && !version)
        return 0;
    return df_check_alloc(*ret = df_json_object(DF_STR("name", tool), DF_STR("version", version)),
                          err);
}

/* Adds spec.storage from --storage. */
static int add_storage(const struct df_args *args, cJSON *spec, struct df_err *err)
{
    const char *type = df_arg(args, "storage");
    cJSON *storage = type ? df_json_object_at(spec, "storage") : NULL;
    if (!type)
        return 0;
    return df_json_set_str(storage, "type", type, err);
}

int df_module_get_executor(struct df_cli *cli, const char *name, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, NULL);
    if (df_cli_call(cli, "GET", path, NULL, ret, err) == 0)
        return 0;
    *ret = NULL;
    return err->cls == DF_ERR_NOT_FOUND ? 0 : -1;
}

static bool is_directory_source(const cJSON *source)
{
    return df_streq(df_json_str(source, "kind"), "directory");
}

/* A directory is the same however much of what is around it comes along (reach.h). */
static bool is_same_source(const cJSON *executor, const cJSON *source)
{
    const cJSON *theirs = df_json_at(executor, "spec.source");
    if (is_directory_source(theirs) && is_directory_source(source))
        return df_copies_same_module(theirs, source);
    return df_copies_same_source(theirs, source);
}

static int post_executor(struct df_cli *cli, const char *name, const cJSON *source,
                         struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject(), *runtime = NULL;
    if (df_json_put(doc, err, DF_STR("apiVersion", DF_API_VERSION), DF_STR("kind", "Executor")) <
            0 ||
        runtime_of(&cli->args, &runtime, err) < 0)
        return -1;
    cJSON *metadata = df_json_object_at(doc, "metadata"), *spec = df_json_object_at(doc, "spec");
    if (df_json_add_str(metadata, "name", name, err) < 0 ||
        df_json_add(spec, "source", cJSON_Duplicate(source, true), err) < 0 ||
        (runtime && df_json_add(spec, "runtime", DF_TAKE(runtime), err) < 0) ||
        add_storage(&cli->args, spec, err) < 0)
        return -1;
    return df_cli_call(cli, "POST", "/v1/executors", doc, NULL, err);
}

static bool has_action(const cJSON *body, enum df_action action)
{
    return df_streq(df_json_str(body, "action"), df_action_name(action));
}

static bool is_dry_run(const cJSON *body)
{
    return has_action(body, DF_ACTION_DRY_RUN);
}

/* "executor net created: file:///srv/infra, branch main, folder live/net" */
static int say_created(const char *name, const cJSON *source, const char *taken, const cJSON *body,
                       struct df_err *err)
{
    static const char *const members[] = {"branch", "tag", "commit", "folder"};
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    bool is_git = false;
    (void)df_buf_addf(&text, "executor %s created: %s", name, df_json_str(source, "url"));
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        const char *value = df_json_str(source, members[i]);
        if (value)
            (void)df_buf_addf(&text, ", %s %s", members[i], value);
        is_git = is_git || (value && i < DF_ARRAY_SIZE(references));
    }
    if (taken)
        (void)df_buf_addf(&text, "; another module has the name %s", taken);
    if (is_dry_run(body))
        (void)df_buf_addf(&text, "; later runs of %s use it", name);
    if (is_dry_run(body) && is_git)
        (void)df_buf_addf(&text, ", `dayfly set %s branch=NAME` changes the branch", name);
    if (df_buf_check(&text, err) < 0)
        return -1;
    df_cli_note("%s", df_buf_str(&text));
    return 0;
}

static int check_reference(const cJSON *source, struct df_err *err)
{
    static const char file[] = "file://";
    const char *url = df_json_str(source, "url");
    bool is_git = df_streq(df_source_kind(url), "git") ||
                  (df_starts_with(url, file) && is_bare_repository(url + strlen(file)));
    if (!is_git || df_json_str(source, "kind"))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "%s is a git repository: add --branch main, or another --branch, --tag or "
                   "--commit",
                   url);
}

/* Creates nothing for a destroy: there is nothing of this name to destroy. taken: the preferred
 * name, if another module already has it; or NULL. */
static int create_executor(struct df_cli *cli, const char *name, const char *taken,
                           const cJSON *source, const cJSON *body, struct df_err *err)
{
    bool destroys = has_action(body, DF_ACTION_DESTROY);
    bool may_copy = df_arg_given(&cli->args, "name") && !destroys;
    DF_JSON cJSON *wide = NULL;
    DF_FREE char *why = NULL;
    if (check_reference(source, err) < 0 || (!may_copy && df_copies_refuse(cli, source, err) < 0))
        return -1;
    if (destroys)
        return 0;
    if (df_widen_source(cli, name, source, &wide, &why, err) < 0 ||
        post_executor(cli, name, wide ? wide : source, err) < 0)
        return -1;
    return say_created(name, wide ? wide : source, taken, body, err);
}

/* A merge patch of spec.source: members that the new source does not have become null. */
static int source_patch(const cJSON *source, cJSON **ret, struct df_err *err)
{
    static const char *const members[] = {"kind", "branch", "tag", "commit", "sha256"};
    DF_JSON cJSON *patch = cJSON_CreateObject();
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(source, members[i]);
        if (df_json_add(patch, members[i],
                        value ? cJSON_Duplicate(value, true) : cJSON_CreateNull(), err) < 0)
            return -1;
    }
    *ret = DF_TAKE(patch);
    return 0;
}

/* A merge patch of the executor, from the options that were given. */
static int patch_of(const struct df_args *args, const cJSON *source, cJSON **ret,
                    struct df_err *err)
{
    DF_JSON cJSON *patch = cJSON_CreateObject(), *runtime = NULL, *changes = NULL;
    cJSON *spec = df_json_object_at(patch, "spec");
    const char *reference = NULL;
    if (df_check_alloc(spec, err) < 0 || reference_of(args, &reference, err) < 0 ||
        runtime_of(args, &runtime, err) < 0)
        return -1;
    bool named = reference || df_arg_given(args, "sha256") || is_directory_source(source);
    if (named && (source_patch(source, &changes, err) < 0 ||
                  df_json_add(spec, "source", DF_TAKE(changes), err) < 0))
        return -1;
    if (has_submodules(args) &&
        df_json_set(df_json_object_at(spec, "source"), "submodules", cJSON_CreateTrue(), err) < 0)
        return -1;
    if ((runtime && df_json_add(spec, "runtime", DF_TAKE(runtime), err) < 0) ||
        add_storage(args, spec, err) < 0)
        return -1;
    *ret = DF_TAKE(patch);
    return 0;
}

/* Fails if a directory is given, but the executor uses a branch, tag or commit of it: these can
 * have other files than the directory. */
static int check_kind(const cJSON *executor, const cJSON *source, struct df_err *err)
{
    const cJSON *theirs = df_json_at(executor, "spec.source");
    const char *name = df_json_str(executor, "metadata.name");
    if (!is_directory_source(source))
        return 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(references); i++) {
        const char *value = df_json_str(theirs, references[i]);
        if (value)
            return df_fail(err, DF_ERR_CONFLICT,
                           "executor %s takes %s %s of this repository, not the directory as it "
                           "lies there: say executor/%s or --%s %s, or give another --name",
                           name, references[i], value, name, references[i], value);
    }
    return 0;
}

/* ---- what the options change ---- */

/* "source.branch main -> dev, runtime.name opentofu -> terraform" */
static void add_changes(const cJSON *before, const cJSON *after, struct df_buf *out)
{
    static const char *const paths[] = {
        "spec.source.kind",   "spec.source.branch", "spec.source.tag",      "spec.source.commit",
        "spec.source.sha256", "spec.runtime.name",  "spec.runtime.version", "spec.storage.type"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(paths); i++) {
        const char *old = df_json_str(before, paths[i]), *new = df_json_str(after, paths[i]);
        if (!df_streq(old ? old : "", new ? new : ""))
            (void)df_buf_addf(out, "%s%s %s -> %s", out->len ? ", " : "",
                              paths[i] + strlen("spec."), old ? old : "none", new ? new : "none");
    }
}

/* Applies the options to the executor, if they change anything. */
static int update_executor(struct df_cli *cli, const cJSON *executor, const cJSON *source,
                           struct df_err *err)
{
    DF_JSON cJSON *patch = NULL, *wanted = cJSON_Duplicate(executor, true);
    DF_BUF struct df_buf changes = DF_BUF_INIT(DF_LIMIT_HTTP_BODY);
    const char *name = df_json_str(executor, "metadata.name");
    if (df_check_alloc(wanted, err) < 0 || check_kind(executor, source, err) < 0 ||
        patch_of(&cli->args, source, &patch, err) < 0 ||
        df_json_merge_patch(&wanted, patch, err) < 0)
        return -1;
    if (df_json_equal(wanted, executor))
        return 0;
    DF_FREE char *path = df_path("executors", name, NULL);
    if (df_cli_call(cli, "PATCH", path, patch, NULL, err) < 0)
        return -1;
    add_changes(executor, wanted, &changes);
    df_cli_note("executor %s changed: %s", name, df_buf_str(&changes));
    return 0;
}

/* *ret: the members of spec.source that the options of a dry-run override, or NULL. */
static int overriding_source(const struct df_args *args, cJSON **ret, struct df_err *err)
{
    static const char *const options[] = {"branch", "tag", "commit", "folder", "sha256"};
    DF_JSON cJSON *source = cJSON_CreateObject();
    const char *reference = NULL;
    if (df_check_alloc(source, err) < 0 || reference_of(args, &reference, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(options); i++)
        if (df_json_add_str(source, options[i], df_arg(args, options[i]), err) < 0)
            return -1;
    if (has_submodules(args) && df_json_add_bool(source, "submodules", true, err) < 0)
        return -1;
    *ret = source->child ? DF_TAKE(source) : NULL;
    return 0;
}

/* Adds the options to the request of a dry-run, for this run only. */
static int override_in_run(const struct df_args *args, cJSON *body, struct df_err *err)
{
    DF_JSON cJSON *source = NULL, *runtime = NULL;
    if (overriding_source(args, &source, err) < 0 || runtime_of(args, &runtime, err) < 0)
        return -1;
    if (source && df_json_add(body, "source", DF_TAKE(source), err) < 0)
        return -1;
    return runtime ? df_json_add(body, "runtime", DF_TAKE(runtime), err) : 0;
}

/* Refuses another --storage: a dry-run does not change the executor. */
static int check_storage(const struct df_args *args, const cJSON *executor, struct df_err *err)
{
    const char *type = df_arg(args, "storage"), *name = df_json_str(executor, "metadata.name");
    if (!type || df_streq(type, df_json_str(executor, "spec.storage.type")))
        return 0;
    if (df_streq(df_json_str(executor, "status.state"), "provision") &&
        !df_json_bool(executor, "status.mayHoldResources", false))
        return df_fail(err, DF_ERR_USER,
                       "executor %s has storage %s, which a dry-run does not change: `dayfly set "
                       "%s storage=%s` does",
                       name, df_json_str(executor, "spec.storage.type"), name, type);
    return df_fail(
        err, DF_ERR_USER,
        "executor %s has storage %s, which a dry-run does not change: leave out --storage", name,
        df_json_str(executor, "spec.storage.type"));
}

/* Uses an existing executor for this run: updates it, or overrides its settings in a dry-run. */
static int use_executor(struct df_cli *cli, const cJSON *executor, const cJSON *source, cJSON *body,
                        struct df_err *err)
{
    if (df_widen_executor(cli, executor, source, err) < 0)
        return -1;
    if (!is_dry_run(body))
        return update_executor(cli, executor, source, err);
    if (check_kind(executor, source, err) < 0 || check_storage(&cli->args, executor, err) < 0)
        return -1;
    return override_in_run(&cli->args, body, err);
}

/* ---- which executor it is ---- */

/* Fails: the executor has the same module under another path. */
static int other_path(const struct df_cli *cli, const cJSON *executor, struct df_err *err)
{
    const char *folder = df_json_str(executor, "spec.source.folder");
    const char *name = df_json_str(executor, "metadata.name");
    return df_fail(err, DF_ERR_CONFLICT,
                   "executor %s has this module by another path (%s%s%s): use it with `dayfly %s "
                   "executor/%s`",
                   name, df_json_str(executor, "spec.source.url"), folder ? ", folder " : "",
                   folder ? folder : "", cli->command->name, name);
}

/* Creates the executor of this name, or uses it if it has the same source. 1: the name belongs to
 * another module. */
static int try_name(struct df_cli *cli, const char *name, const char *taken, const cJSON *source,
                    cJSON *body, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    if (df_module_get_executor(cli, name, &executor, err) < 0)
        return -1;
    if (!executor)
        return create_executor(cli, name, taken, source, body, err);
    if (is_same_source(executor, source))
        return use_executor(cli, executor, source, body, err);
    return df_copies_same_module(df_json_at(executor, "spec.source"), source)
               ? other_path(cli, executor, err)
               : 1;
}

static int for_named(struct df_cli *cli, const char *name, const char *taken, const cJSON *source,
                     cJSON *body, struct df_err *err)
{
    int result = try_name(cli, name, taken, source, body, err);
    if (result == 1)
        return df_fail(err, DF_ERR_CONFLICT,
                       "executor %s has another source; choose another --name, or change it with "
                       "`dayfly apply -f`",
                       name);
    return result;
}

/* 1: the module has an executor of the name that was once made of it. */
static int pick_former(struct df_cli *cli, const cJSON *source, cJSON *body, char ret[64],
                       struct df_err *err)
{
    const char *url = df_json_str(source, "url"), *folder = df_json_str(source, "folder");
    DF_JSON cJSON *executor = NULL;
    char plain[64];
    if (df_module_name(url, folder, DF_NAME_PLAIN, plain, err) < 0 ||
        df_module_name(url, folder, DF_NAME_FORMER, ret, err) < 0)
        return -1;
    if (df_streq(ret, plain))
        return 0;
    if (df_module_get_executor(cli, ret, &executor, err) < 0)
        return -1;
    if (!executor || !is_same_source(executor, source))
        return 0;
    return use_executor(cli, executor, source, body, err) < 0 ? -1 : 1;
}

/* Uses the plain name, or the name with a hash if another module has the plain one. */
static int pick_name(struct df_cli *cli, const cJSON *source, cJSON *body, char ret[64],
                     struct df_err *err)
{
    const char *url = df_json_str(source, "url"), *folder = df_json_str(source, "folder");
    char plain[64];
    int former = pick_former(cli, source, body, ret, err);
    if (former != 0)
        return former < 0 ? -1 : 0;
    if (df_module_name(url, folder, DF_NAME_PLAIN, plain, err) < 0 ||
        df_module_name(url, folder, DF_NAME_HASHED, ret, err) < 0)
        return -1;
    int result = try_name(cli, plain, NULL, source, body, err);
    if (result == 1)
        return for_named(cli, ret, plain, source, body, err);
    memcpy(ret, plain, sizeof(plain));
    return result;
}

static int for_source(struct df_cli *cli, const cJSON *source, cJSON *body, char **ret,
                      struct df_err *err)
{
    const char *given = df_arg(&cli->args, "name");
    char picked[64];
    if (given && !df_is_dns_label(given))
        return df_fail(err, DF_ERR_USER, "--name \"%s\": is not a valid name", given);
    if ((given ? for_named(cli, given, NULL, source, body, err)
               : pick_name(cli, source, body, picked, err)) < 0)
        return -1;
    return df_check_alloc(*ret = strdup(given ? given : picked), err);
}

/* The first option that describes a source or an executor, or NULL. */
static const char *source_option(const struct df_args *args)
{
    static const char *const names[] = {"branch",  "tag",       "commit",       "folder",
                                        "sha256",  "tool",      "tool-version", "name",
                                        "storage", "submodules"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (df_arg_given(args, names[i]))
            return names[i];
    return NULL;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Fails; the message names the command that changes the executor. */
static int refuse_option(const struct df_args *args, const char *option, const char *name,
                         struct df_err *err)
{
    bool can_set = df_args_word("branch|tag|commit|tool|tool-version|storage|submodules", option);
    const char *value = df_arg(args, option);
    DF_FREE char *set = df_strf("`dayfly set %s %s=%s`", name, option, value ? value : "true");
    if (!set)
        return df_fail_oom(err);
    return df_fail(err, DF_ERR_USER,
                   "--%s is for directories and URLs; executor %s is run as it is defined: %s "
                   "changes it%s%s%s",
                   option, name, can_set ? set : "`dayfly apply -f`",
                   is_directory(name) ? ", ./" : "", is_directory(name) ? name : "",
                   is_directory(name) ? " is the directory" : "");
}

/* Runs an executor as it is defined. Only a dry-run may override its settings. */
static int for_executor(const struct df_args *args, const char *name, cJSON *body, char **ret,
                        struct df_err *err)
{
    const char *option = df_arg_given(args, "name") ? "name" : source_option(args);
    bool may_override = is_dry_run(body) && !df_streq(option, "name");
    if (option && !may_override)
        return refuse_option(args, option, name, err);
    if (may_override && override_in_run(args, body, err) < 0)
        return -1;
    return df_check_alloc(*ret = strdup(name), err);
}

/* ---- what the word means ---- */

#define EXECUTOR_PREFIX "executor/"

/* The word is executor/NAME, which never means a directory. */
static int for_spelled_out(struct df_cli *cli, const char *name, cJSON *body, char **ret,
                           struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    DF_FREE char *directory = df_strf("./" EXECUTOR_PREFIX "%s", name);
    if (!directory)
        return df_fail_oom(err);
    bool there = is_directory(directory);
    if (!df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER, EXECUTOR_PREFIX "%s: \"%s\" is not a valid name%s%s%s",
                       name, name, there ? "; " : "", there ? directory : "",
                       there ? " is the directory" : "");
    if (df_module_get_executor(cli, name, &executor, err) < 0)
        return -1;
    if (!executor)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no executor %s%s%s%s", name,
                       there ? "; " : "", there ? directory : "", there ? " is the directory" : "");
    return for_executor(&cli->args, name, body, ret, err);
}

static int refuse_ambiguous(const char *word, const cJSON *executor, const cJSON *source,
                            struct df_err *err)
{
    const char *folder = df_json_str(executor, "spec.source.folder");
    return df_fail(
        err, DF_ERR_CONFLICT,
        "\"%s\" is both an executor (of %s%s%s) and a directory (%s): say " EXECUTOR_PREFIX
        "%s or ./%s",
        word, df_json_str(executor, "spec.source.url"), folder ? ", folder " : "",
        folder ? folder : "", df_json_str(source, "url"), word, word);
}

/* The word names both an executor and a directory. That is allowed if both are the same module: the
 * first `dayfly run DIR` created this executor, and the second one means it. */
static int for_both(struct df_cli *cli, const char *word, const cJSON *executor, cJSON *body,
                    char **ret, struct df_err *err)
{
    DF_JSON cJSON *source = NULL;
    if (df_module_source(word, &cli->args, &source, err) < 0)
        return -1;
    if (df_arg_given(&cli->args, "name"))
        return for_source(cli, source, body, ret, err);
    if (is_same_source(executor, source)) {
        if ((source_option(&cli->args) ? use_executor(cli, executor, source, body, err)
                                       : df_widen_executor(cli, executor, source, err)) < 0)
            return -1;
        return df_check_alloc(*ret = strdup(word), err);
    }
    if (!source_option(&cli->args) &&
        df_copies_same_module(df_json_at(executor, "spec.source"), source)) {
        return df_check_alloc(*ret = strdup(word), err);
    }
    bool is_part = df_streq(df_json_str(executor, "spec.source.url"), df_json_str(source, "url")) &&
                   !df_json_str(executor, "spec.source.folder");
    return is_part ? for_source(cli, source, body, ret, err)
                   : refuse_ambiguous(word, executor, source, err);
}

/* Fails: the word is no executor and no directory. The message names a similar executor. */
static int fail_unknown(struct df_cli *cli, const char *word, struct df_err *err)
{
    DF_JSON cJSON *executors = NULL;
    struct df_err ignored = {0};
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    const cJSON *executor = NULL;
    DF_FREE char *path = df_path("executors", NULL);
    if (df_cli_list(cli, path, &executors, &ignored) < 0)
        executors = NULL; /* then the message has no suggestion */
    cJSON_ArrayForEach (executor, executors) {
        df_nearest(word, df_json_str(executor, "metadata.name"), &best, &distance);
    }
    return df_fail(err, DF_ERR_USER,
                   "\"%s\": there is no executor and no directory of this name%s%s%s", word,
                   best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
}

int df_module_executor(struct df_cli *cli, cJSON *body, char **ret, struct df_err *err)
{
    const char *word = df_cli_word(cli, 0);
    DF_JSON cJSON *executor = NULL, *source = NULL;
    bool label = df_is_dns_label(word);
    if (df_starts_with(word, EXECUTOR_PREFIX))
        return for_spelled_out(cli, word + strlen(EXECUTOR_PREFIX), body, ret, err);
    if (label && df_module_get_executor(cli, word, &executor, err) < 0)
        return -1;
    if (executor && is_directory(word))
        return for_both(cli, word, executor, body, ret, err);
    if (executor)
        return for_executor(&cli->args, word, body, ret, err);
    if (label && access(word, F_OK) < 0 && df_foreign_words("run", &cli->args.words[0], 1, err) < 0)
        return -1;
    if (label && access(word, F_OK) < 0)
        return fail_unknown(cli, word, err);
    if (df_module_source(word, &cli->args, &source, err) < 0)
        return -1;
    return for_source(cli, source, body, ret, err);
}
