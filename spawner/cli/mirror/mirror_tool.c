/*
 * mirror_tool.c - the commands of the tool that `dayfly mirror` needs: `providers mirror`,
 * `providers lock`, `get`. For a single package, write_module() makes a module that requires
 * exactly this one. All of them pass through run(), and keep their data in the stage of the store.
 */
#include "spawner/cli/mirror/mirror_tool.h"

#include <signal.h>

#include "common/base/fs.h"
#include "common/json/json.h"
#include "common/process/process.h"

#define TAIL (64 * DF_KIB)

int df_mirror_tool_find(const char *name, char **ret, struct df_err *err)
{
    static const struct {
        const char *name, *program;
    } tools[] = {{"opentofu", "tofu"}, {"terraform", "terraform"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(tools); i++) {
        if (name && !df_streq(name, tools[i].name))
            continue;
        *ret = df_process_which(tools[i].program, getenv("PATH"));
        if (*ret)
            return 0;
    }
    return df_fail(err, DF_ERR_NOT_FOUND, "%s is not in PATH, and dayfly mirror downloads with it",
                   name ? name : "neither tofu nor terraform");
}

/* ---- a command of the tool ---- */

/* The caller's environment, because of its registries and proxies, with the module's data in the
 * stage. */
static int make_environment(const struct df_mirror_store *s, struct df_strs *env,
                            struct df_err *err)
{
    DF_FREE char *data = df_fs_join(s->stage, "data");
    if (!data)
        return df_fail_oom(err);
    for (char **e = environ; *e; e++)
        if (!df_starts_with(*e, "TF_CLI_ARGS") && !df_starts_with(*e, "TF_WORKSPACE="))
            (void)df_strs_add(env, *e);
    (void)df_strs_set_env(env, "TF_DATA_DIR", data);
    (void)df_strs_set_env(env, "TF_IN_AUTOMATION", "1");
    (void)df_strs_set_env(env, "CHECKPOINT_DISABLE", "1");
    return df_strs_check(env, err);
}

/* Appends the tool's text without line ends and the frame around its errors (U+2500 to U+257F). */
static void add_plain(struct df_buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (p[0] == 0xe2 && (p[1] == 0x94 || p[1] == 0x95) && p[2]) {
            p += 2;
        } else if (*p > ' ' && *p != 0x7f) {
            (void)df_buf_addc(out, (char)*p);
        } else if (out->len && out->data[out->len - 1] != ' ') {
            (void)df_buf_addc(out, ' ');
        }
    }
}

static int fail_tool(const char *tool, const char *command, int code, const char *said,
                     struct df_err *err)
{
    DF_BUF struct df_buf plain = DF_BUF_INIT(TAIL);
    const char *error = strstr(said, "Error: ");
    add_plain(&plain, error ? error : said);
    return df_fail(err, DF_ERR_SYSTEM, "`%s %s` ended with exit code %d: %.800s",
                   strrchr(tool, '/') + 1, command, code, df_buf_str(&plain));
}

static int run(const struct df_mirror_store *s, const char *cwd, const struct df_strs *argv,
               const char *command, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs env = {0};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE), tail = DF_BUF_INIT(TAIL);
    int code = -1;
    if (df_strs_check(argv, err) < 0 || make_environment(s, &env, err) < 0)
        return -1;
    struct df_process_options o =
        DF_PROCESS_OPTIONS((const char *const *)argv->items, (const char *const *)env.items);
    o.cwd = cwd;
    o.death_signal = SIGKILL;
    if (df_process_run(&o, -1, &out, &tail, &code, err) < 0)
        return -1;
    return code == 0 ? 0 : fail_tool(argv->items[0], command, code, df_buf_str(&tail), err);
}

static int run_mirror(const char *tool, const struct df_mirror_store *s, const char *module,
                      const struct df_strs *platforms, const char *into, struct df_err *err)
{
    DF_STRS struct df_strs argv = {0};
    (void)df_strs_add(&argv, tool);
    (void)df_strs_add(&argv, "providers");
    (void)df_strs_add(&argv, "mirror");
    (void)df_strs_add(&argv, "-no-color");
    for (size_t i = 0; i < platforms->len; i++)
        (void)df_strs_addf(&argv, "-platform=%s", platforms->items[i]);
    (void)df_strs_add(&argv, into);
    return run(s, module, &argv, "providers mirror", err);
}

static int empty(const char *directory, struct df_err *err)
{
    return df_fs_remove_tree(directory, err) < 0 ? -1 : df_fs_mkdirs(directory, 0700, err);
}

/* Empties `into`, and the data of the module before. */
static int begin(const struct df_mirror_store *s, const char *into, struct df_err *err)
{
    DF_FREE char *data = df_fs_join(s->stage, "data");
    return df_check_alloc(data, err) < 0 || empty(data, err) < 0 ? -1 : empty(into, err);
}

/* ---- one package ---- */

/* A module that requires exactly this package. */
static int write_module(const char *module, const struct df_mirror_package *p, struct df_err *err)
{
    if (empty(module, err) < 0)
        return -1;
    DF_FREE char *path = df_fs_join(module, "main.tf.json");
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *settings = df_json_object_at(doc, "terraform");
    cJSON *required = df_json_object_at(settings, "required_providers");
    cJSON *provider = df_json_object_at(required, "mirrored");
    DF_FREE char *version = df_strf("= %s", p->archive.version);
    if (df_json_put(provider, err, DF_STR("source", p->archive.source),
                    DF_STR_ALLOC("version", version)) < 0)
        return -1;
    return df_json_save(path, doc, err);
}

int df_mirror_tool_fetch(const char *tool, const struct df_mirror_store *s,
                         const struct df_mirror_package *p, const char *into, struct df_err *err)
{
    DF_STRS struct df_strs platforms = {0};
    DF_FREE char *module = df_fs_join(s->stage, "module");
    (void)df_strs_add(&platforms, p->archive.platform);
    if (!module || df_strs_check(&platforms, err) < 0)
        return df_fail_oom(err);
    if (begin(s, into, err) < 0 || write_module(module, p, err) < 0)
        return -1;
    return run_mirror(tool, s, module, &platforms, into, err);
}

int df_mirror_tool_lock(const char *tool, const struct df_mirror_store *s, const char *root,
                        const struct df_mirror_package *p, struct df_lockfile *ret,
                        struct df_err *err)
{
    DF_STRS struct df_strs argv = {0};
    DF_FREE char *module = df_fs_join(s->stage, "module");
    if (!module)
        return df_fail_oom(err);
    (void)df_strs_add(&argv, tool);
    (void)df_strs_add(&argv, "providers");
    (void)df_strs_add(&argv, "lock");
    (void)df_strs_add(&argv, "-no-color");
    (void)df_strs_addf(&argv, "-fs-mirror=%s", root);
    (void)df_strs_addf(&argv, "-platform=%s", p->archive.platform);
    if (write_module(module, p, err) < 0 || run(s, module, &argv, "providers lock", err) < 0)
        return -1;
    return df_lockfile_read(module, ret, err);
}

/* ---- a module ---- */

/* Modules that it calls have requirements, too. */
static int get_modules(const char *tool, const struct df_mirror_store *s, const char *module,
                       struct df_err *err)
{
    DF_STRS struct df_strs argv = {0};
    (void)df_strs_add(&argv, tool);
    (void)df_strs_add(&argv, "get");
    (void)df_strs_add(&argv, "-no-color");
    return run(s, module, &argv, "get", err);
}

int df_mirror_tool_fetch_module(const char *tool, const struct df_mirror_store *s,
                                const char *module, const struct df_strs *platforms,
                                const char *into, struct df_err *err)
{
    if (begin(s, into, err) < 0 || get_modules(tool, s, module, err) < 0)
        return -1;
    return run_mirror(tool, s, module, platforms, into, err);
}
