/* Variables in the order of precedence, which is Terrakube's: later ones win. Then PATH. */
#include "runner/terrakube/script_env.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"

/* ---- .terrakube_temp_env ---- */

int df_terrakube_temp_env(const char *directory, struct df_strs *env, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_TEMP_ENV);
    DF_FREE char *path = df_fs_join(directory, DF_TERRAKUBE_TEMP_ENV);
    if (!path)
        return df_fail_oom(err);
    if (!df_fs_exists(path))
        return 0;
    if (df_fs_read_plain(path, &text, err) < 0)
        return df_err_wrap(err, "what the scripts left for the environment");
    char *line = text.data;
    while (line && *line) {
        size_t n = strcspn(line, "\r\n");
        char *next = line[n] ? line + n + 1 : line + n;
        line[n] = '\0';
        char *sign = strchr(line, '=');
        if (sign && sign > line) {
            *sign = '\0';
            (void)df_strs_set_env(env, line, sign + 1);
        }
        line = next;
    }
    return df_strs_check(env, err);
}

/* ---- variables ---- */

static void set(struct df_strs *env, const char *name, const char *value)
{
    (void)df_strs_set_env(env, name, value ? value : "");
}

static int add_places(const struct df_terrakube_scripts *s, struct df_strs *env, struct df_err *err)
{
    DF_FREE char *tools = df_fs_join(s->directory, DF_TERRAKUBE_TOOLS);
    DF_FREE char *repository = df_fs_join(s->directory, DF_TERRAKUBE_TOOLS_REPOSITORY);
    DF_FREE char *temp_env = df_fs_join(s->directory, DF_TERRAKUBE_TEMP_ENV);
    if (!tools || !repository || !temp_env)
        return df_fail_oom(err);
    set(env, "workingDirectory", s->directory);
    set(env, "bashToolsDirectory", tools);
    set(env, "terrakubeToolsRepository", repository);
    set(env, "terrakubeEnv", temp_env);
    return df_strs_check(env, err);
}

static int add_job(const struct df_terrakube_scripts *s, const char *token, struct df_strs *env,
                   struct df_err *err)
{
    const struct df_terrakube_payload *p = s->payload;
    set(env, "organizationId", p->organization);
    set(env, "workspaceId", p->workspace);
    set(env, "jobId", p->job);
    set(env, "stepId", p->step);
    set(env, "terraformVersion", p->version);
    set(env, "source", p->source);
    set(env, "branch", p->branch);
    set(env, "vcsType", p->vcs_type);
    set(env, "accessToken", p->access_token);
    set(env, "terraformOutput", s->terraform_output);
    set(env, "terrakubeApi", s->settings->public_url);
    set(env, "terrakubeToken", token);
    return df_strs_check(env, err);
}

/* An object of strings, or an array of {key, value}. */
static int add_values(const cJSON *values, struct df_strs *env, struct df_err *err)
{
    const cJSON *v;
    cJSON_ArrayForEach (v, values) {
        const char *name = cJSON_IsObject(v) ? df_json_str(v, "key") : v->string;
        const char *text = cJSON_IsObject(v) ? df_json_str(v, "value") : v->valuestring;
        if (name && *name && !strchr(name, '=') && text)
            (void)df_strs_set_env(env, name, text);
    }
    return df_strs_check(env, err);
}

/* ---- PATH ---- */

struct finding {
    const char *root;
    struct df_strs *path;
    const char *ending; /* of the files whose directories are wanted; NULL: every directory */
    bool makes_executable;
};

static int add_directory(const struct finding *f, const char *relative, struct df_err *err)
{
    DF_FREE char *dir = *relative ? df_fs_join(f->root, relative) : strdup(f->root);
    if (!dir)
        return df_fail_oom(err);
    (void)df_strs_add_new(f->path, dir);
    return df_strs_check(f->path, err);
}

static int add_parent(const struct finding *f, const struct df_tree_entry *e, struct df_err *err)
{
    const char *slash = strrchr(e->path, '/');
    DF_FREE char *parent = strndup(e->path, slash ? (size_t)(slash - e->path) : 0);
    return parent ? add_directory(f, parent, err) : df_fail_oom(err);
}

static enum df_tree_visit find_visitor(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    const struct finding *f = arg;
    if (S_ISDIR(e->st->st_mode) && (df_streq(e->name, ".git") || df_streq(e->name, ".terraform")))
        return DF_TREE_SKIP;
    if (!f->ending && S_ISDIR(e->st->st_mode) && add_directory(f, e->path, err) < 0)
        return DF_TREE_FAIL;
    if (!f->ending || !S_ISREG(e->st->st_mode) || !df_ends_with(e->name, f->ending))
        return DF_TREE_GO_ON;
    if (f->makes_executable &&
        fchmodat(e->dir, e->name, (e->st->st_mode & 07777) | S_IXUSR, 0) < 0) {
        (void)df_fail_errno(err, errno, "make %s executable", e->path);
        return DF_TREE_FAIL;
    }
    return add_parent(f, e, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
}

static int find(struct finding f, struct df_err *err)
{
    if (!df_fs_exists(f.root))
        return 0;
    if (!f.ending && add_directory(&f, "", err) < 0)
        return -1;
    return df_tree_walk(f.root, find_visitor, &f, err);
}

int df_terrakube_directories_of(const char *root, const char *ending, struct df_strs *ret,
                                struct df_err *err)
{
    return find((struct finding){.root = root, .path = ret, .ending = ending}, err);
}

static int add_scripts(const char *root, struct df_strs *path, struct df_err *err)
{
    return find((struct finding){root, path, ".sh", true}, err);
}

/* What is there, then the places of Terrakube, then the tool. */
static int add_path(const struct df_terrakube_scripts *s, const char *tool, struct df_strs *env,
                    struct df_err *err)
{
    DF_STRS struct df_strs path = {0};
    DF_FREE char *tools = df_fs_join(s->directory, DF_TERRAKUBE_TOOLS);
    DF_FREE char *repository = df_fs_join(s->directory, DF_TERRAKUBE_TOOLS_REPOSITORY);
    const char *before = df_strs_get_env(env, "PATH");
    if (!tools || !repository)
        return df_fail_oom(err);
    (void)df_strs_add(&path, df_str_empty(before) ? "/usr/local/bin:/usr/bin:/bin" : before);
    (void)df_strs_add_new(&path, tools);
    if (find((struct finding){.root = tools, .path = &path}, err) < 0 ||
        add_scripts(repository, &path, err) < 0 || add_scripts(s->directory, &path, err) < 0)
        return -1;
    const char *slash = tool ? strrchr(tool, '/') : NULL;
    if (slash && slash > tool)
        (void)df_strs_addf(&path, "%.*s", (int)(slash - tool), tool);
    DF_FREE char *joined = df_strs_join(&path, ":");
    if (!joined || df_strs_check(&path, err) < 0)
        return df_fail_oom(err);
    (void)df_strs_set_env(env, "PATH", joined);
    return df_strs_check(env, err);
}

static int compose(const struct df_terrakube_scripts *s, const struct df_strs *base,
                   const char *tool, const char *token, struct df_strs *env, struct df_err *err)
{
    for (size_t i = 0; i < base->len; i++)
        (void)df_strs_add(env, base->items[i]);
    if (df_terrakube_temp_env(s->directory, env, err) < 0 || add_places(s, env, err) < 0 ||
        add_job(s, token, env, err) < 0 || add_values(s->payload->environment, env, err) < 0 ||
        add_values(s->payload->variables, env, err) < 0)
        return -1;
    return add_path(s, tool, env, err);
}

int df_terrakube_script_env(const struct df_terrakube_scripts *s, const struct df_strs *base,
                            const char *tool, const char *token, struct df_strs *ret,
                            struct df_err *err)
{
    DF_SECRET_STRS struct df_strs env = {0};
    if (compose(s, base, tool, token, &env, err) < 0)
        return -1;
    *ret = env;
    env = (struct df_strs){0};
    return 0;
}
