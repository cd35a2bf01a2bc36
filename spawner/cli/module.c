#include "spawner/cli/module.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "common/source/rules.h"
#include "spawner/model/model.h"

#define BASE_MAX 40 /* leaves room for "-<8 hex>" and for "-<run number>-apply" */

/* ---- names and sources ------------------------------------------------------------------------
 */

bool df_module_is_url(const char *word)
{
    if (strstr(word, "://"))
        return true;
    const char *at = strchr(word, '@'), *colon = at ? strchr(at, ':') : NULL;
    return colon && !memchr(word, '/', (size_t)(colon - word));
}

/* The last part of a path or URL, without what only says how it is packed. */
static void add_last_part(struct df_buf *out, const char *path)
{
    static const char repository[] = ".git";
    size_t n = strlen(path), m = strlen(repository);
    while (n && path[n - 1] == '/')
        n--;
    bool says_git = n > m && strncmp(path + n - m, repository, m) == 0;
    n -= says_git ? m : df_source_archive_ending(path, n);
    size_t start = n;
    while (start && path[start - 1] != '/' && path[start - 1] != ':')
        start--;
    (void)df_buf_add(out, path + start, n - start);
}

/* Letters and digits in lower case, everything else one dash. */
static void to_label(const char *text, char ret[BASE_MAX + 1])
{
    size_t n = 0;
    for (; *text && n < BASE_MAX; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain)
            ret[n++] = c;
        else if (n && ret[n - 1] != '-')
            ret[n++] = '-';
    }
    while (n && ret[n - 1] == '-')
        n--;
    ret[n] = '\0';
}

int df_module_name(const char *url, const char *folder, bool hashed, char ret[64],
                   struct df_err *err)
{
    char base[BASE_MAX + 1], hash[DF_SHA256_HEX];
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_URL);
    add_last_part(&text, url);
    if (folder && *folder) {
        (void)df_buf_addc(&text, '-');
        add_last_part(&text, folder);
    }
    if (df_buf_check(&text, err) < 0)
        return -1;
    to_label(df_buf_str(&text), base);
    DF_FREE char *identity = df_strf("%s %s", url, folder ? folder : "");
    if (!identity)
        return df_fail_oom(err);
    if (df_sha256_hex(identity, strlen(identity), hash, err) < 0)
        return -1;
    const char *shown = base[0] ? base : "module";
    (void)snprintf(ret, 64, hashed ? "%s-%.8s" : "%s", shown, hash);
    return 0;
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
    *ret = df_strf("file://%s", real);
    *ret_directory = S_ISDIR(st.st_mode);
    return *ret ? 0 : df_fail_oom(err);
}

/* At most one of the three; NULL in *ret when none was given. */
static int reference_of(const struct df_args *args, const char **ret, struct df_err *err)
{
    static const char *const names[] = {"branch", "tag", "commit"};
    const char *found = NULL;
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        if (!df_arg_given(args, names[i]))
            continue;
        if (found)
            return df_fail(err, DF_ERR_USER, "--%s and --%s exclude each other", found, names[i]);
        found = names[i];
    }
    *ret = found;
    return 0;
}

static int fill_source(cJSON *source, const char *url, bool directory, const struct df_args *args,
                       struct df_err *err)
{
    const char *reference = NULL;
    if (reference_of(args, &reference, err) < 0 || df_json_add_str(source, "url", url, err) < 0)
        return -1;
    if (reference)
        return df_json_add_str(source, "kind", "git", err) < 0 ||
                       df_json_add_str(source, reference, df_arg(args, reference), err) < 0
                   ? -1
                   : 0;
    return directory ? df_json_add_str(source, "kind", "directory", err) : 0;
}

int df_module_source(const char *word, const struct df_args *args, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *source = cJSON_CreateObject();
    DF_FREE char *local = NULL;
    bool directory = false, url = df_module_is_url(word);
    if (!url && url_of_path(word, &directory, &local, err) < 0)
        return -1;
    if (fill_source(source, url ? word : local, directory, args, err) < 0 ||
        df_json_add_str(source, "folder", df_arg(args, "folder"), err) < 0 ||
        df_json_add_str(source, "sha256", df_arg(args, "sha256"), err) < 0)
        return -1;
    *ret = DF_TAKE(source);
    return 0;
}

/* ---- the executor -----------------------------------------------------------------------------
 */

/* What --tool and --tool-version ask for, or NULL in *ret. */
static int runtime_of(const struct df_args *args, cJSON **ret, struct df_err *err)
{
    const char *tool = df_arg(args, "tool"), *version = df_arg(args, "tool-version");
    *ret = NULL;
    if (!tool && !version)
        return 0;
    DF_JSON cJSON *runtime = cJSON_CreateObject();
    if (df_json_add_str(runtime, "name", tool, err) < 0 ||
        df_json_add_str(runtime, "version", version, err) < 0)
        return -1;
    *ret = DF_TAKE(runtime);
    return 0;
}

static int get_executor(struct df_cli *cli, const char *name, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, NULL);
    if (!path)
        return df_fail_oom(err);
    if (df_cli_call(cli, "GET", path, NULL, ret, err) == 0)
        return 0;
    *ret = NULL;
    return err->cls == DF_ERR_NOT_FOUND ? 0 : -1;
}

static bool is_same_module(const cJSON *executor, const cJSON *source)
{
    const char *mine = df_json_str(source, "folder");
    const char *theirs = df_json_str(executor, "spec.source.folder");
    return df_streq(df_json_str(executor, "spec.source.url"), df_json_str(source, "url")) &&
           strcmp(mine ? mine : "", theirs ? theirs : "") == 0;
}

static int create_executor(struct df_cli *cli, const char *name, const cJSON *source,
                           struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject(), *runtime = NULL;
    if (df_json_add_str(doc, "apiVersion", DF_API_VERSION, err) < 0 ||
        df_json_add_str(doc, "kind", "Executor", err) < 0 ||
        runtime_of(&cli->args, &runtime, err) < 0)
        return -1;
    cJSON *metadata = df_json_object_at(doc, "metadata"), *spec = df_json_object_at(doc, "spec");
    if (!metadata || !spec)
        return df_fail_oom(err);
    if (df_json_add_str(metadata, "name", name, err) < 0 ||
        df_json_add(spec, "source", cJSON_Duplicate(source, true), err) < 0 ||
        (runtime && df_json_add(spec, "runtime", DF_TAKE(runtime), err) < 0))
        return -1;
    return df_cli_call(cli, "POST", "/v1/executors", doc, NULL, err);
}

/* A merge patch of the source: what is not asked for any more is taken away. */
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

/* Options that were given change the executor; what was not given stays as it is. */
static int patch_of(const struct df_args *args, const cJSON *source, cJSON **ret,
                    struct df_err *err)
{
    DF_JSON cJSON *patch = cJSON_CreateObject(), *runtime = NULL, *changes = NULL;
    cJSON *spec = patch ? df_json_object_at(patch, "spec") : NULL;
    const char *reference = NULL;
    if (!spec)
        return df_fail_oom(err);
    if (reference_of(args, &reference, err) < 0 || runtime_of(args, &runtime, err) < 0)
        return -1;
    bool named = reference || df_arg_given(args, "sha256") ||
                 df_streq(df_json_str(source, "kind"), "directory");
    if (named && (source_patch(source, &changes, err) < 0 ||
                  df_json_add(spec, "source", DF_TAKE(changes), err) < 0))
        return -1;
    if (runtime && df_json_add(spec, "runtime", DF_TAKE(runtime), err) < 0)
        return -1;
    *ret = DF_TAKE(patch);
    return 0;
}

/* A directory as it lies there is something else than what is committed in it. */
static int check_kind(const cJSON *executor, const cJSON *source, struct df_err *err)
{
    static const char *const references[] = {"branch", "tag", "commit"};
    const cJSON *theirs = df_json_at(executor, "spec.source");
    const char *name = df_json_str(executor, "metadata.name");
    if (!df_streq(df_json_str(source, "kind"), "directory"))
        return 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(references); i++) {
        const char *value = df_json_str(theirs, references[i]);
        if (value)
            return df_fail(err, DF_ERR_CONFLICT,
                           "executor %s takes %s %s of this repository, not the directory as it "
                           "lies there: say --%s %s, or give another --name",
                           name, references[i], value, references[i], value);
    }
    return 0;
}

/* An executor that has all of it already is left alone. */
static int update_executor(struct df_cli *cli, const cJSON *executor, const cJSON *source,
                           struct df_err *err)
{
    DF_JSON cJSON *patch = NULL, *wanted = cJSON_Duplicate(executor, true);
    if (!wanted)
        return df_fail_oom(err);
    if (check_kind(executor, source, err) < 0 || patch_of(&cli->args, source, &patch, err) < 0 ||
        df_json_merge_patch(&wanted, patch, err) < 0)
        return -1;
    if (df_json_equal(wanted, executor))
        return 0;
    DF_FREE char *path = df_path("executors", df_json_str(executor, "metadata.name"), NULL);
    return path ? df_cli_call(cli, "PATCH", path, patch, NULL, err) : df_fail_oom(err);
}

/* The executor of this name serves if it is free or of the same module; 1: it is another's. */
static int try_name(struct df_cli *cli, const char *name, const cJSON *source, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    if (get_executor(cli, name, &executor, err) < 0)
        return -1;
    if (!executor)
        return create_executor(cli, name, source, err);
    return is_same_module(executor, source) ? update_executor(cli, executor, source, err) : 1;
}

static int for_named(struct df_cli *cli, const char *name, const cJSON *source, struct df_err *err)
{
    int result = try_name(cli, name, source, err);
    if (result == 1)
        return df_fail(err, DF_ERR_CONFLICT,
                       "executor %s has another source; choose another --name, or change it with "
                       "`dayfly apply -f`",
                       name);
    return result;
}

/* The plain name, or the one with a hash where another module has taken it. */
static int pick_name(struct df_cli *cli, const cJSON *source, char ret[64], struct df_err *err)
{
    const char *url = df_json_str(source, "url"), *folder = df_json_str(source, "folder");
    if (df_module_name(url, folder, false, ret, err) < 0)
        return -1;
    int result = try_name(cli, ret, source, err);
    if (result != 1)
        return result;
    if (df_module_name(url, folder, true, ret, err) < 0)
        return -1;
    return for_named(cli, ret, source, err);
}

static int for_source(struct df_cli *cli, const cJSON *source, char **ret, struct df_err *err)
{
    const char *given = df_arg(&cli->args, "name");
    char picked[64];
    if (given && !df_is_dns_label(given))
        return df_fail(err, DF_ERR_USER, "--name \"%s\": is no name", given);
    if ((given ? for_named(cli, given, source, err) : pick_name(cli, source, picked, err)) < 0)
        return -1;
    *ret = strdup(given ? given : picked);
    return *ret ? 0 : df_fail_oom(err);
}

/* The first option that describes a source or an executor, or NULL. */
static const char *source_option(const struct df_args *args)
{
    static const char *const names[] = {"branch", "tag",  "commit",       "folder",
                                        "sha256", "tool", "tool-version", "name"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (df_arg_given(args, names[i]))
            return names[i];
    return NULL;
}

/* An executor is run as it is; nothing on the command line changes it. */
static int for_executor(const struct df_args *args, const char *name, char **ret,
                        struct df_err *err)
{
    const char *option = source_option(args);
    if (option)
        return df_fail(err, DF_ERR_USER,
                       "--%s is for directories and URLs; executor %s says it itself (`dayfly "
                       "apply -f` changes it, ./%s is the directory)",
                       option, name, name);
    *ret = strdup(name);
    return *ret ? 0 : df_fail_oom(err);
}

int df_module_executor(struct df_cli *cli, char **ret, struct df_err *err)
{
    const char *word = df_cli_word(cli, 0);
    DF_JSON cJSON *executor = NULL, *source = NULL;
    bool label = df_is_dns_label(word);
    if (label && get_executor(cli, word, &executor, err) < 0)
        return -1;
    if (executor)
        return for_executor(&cli->args, word, ret, err);
    if (label && access(word, F_OK) < 0)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "\"%s\": there is no executor and no directory of this name", word);
    if (df_module_source(word, &cli->args, &source, err) < 0)
        return -1;
    return for_source(cli, source, ret, err);
}
