/*
 * Checks whether the module keeps its state elsewhere than in the executor's storage, and refuses
 * such a module with a message that names the ways out. df_backend_check() at the end decides;
 * find_state() searches in this order: a selected workspace, a backend block, a noted backend,
 * state files.
 */
#include "runner/tofu/backend.h"

#include <dirent.h>
#include <limits.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/tofu/backend_noted.h"

#define STATE_FILE "terraform.tfstate"
#define SELECTED_FILE ".terraform/environment"
#define WORKSPACES_DIR "terraform.tfstate.d"

/* ---- where the module keeps its state ---- */

/* An unreadable or large state counts as one with resources. */
static bool holds_resources(const char *path)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE_COMPARED);
    DF_JSON cJSON *state = NULL;
    struct df_err err = {0};
    if (!df_fs_exists(path))
        return false;
    if (df_fs_read(path, &text, &err) < 0)
        return err.cls != DF_ERR_NOT_FOUND;
    if (text.len == 0)
        return false;
    if (df_json_parse_nul(df_buf_str(&text), text.len, &state, NULL) < 0)
        return true;
    const cJSON *resources = df_json_at(state, "resources");
    return !resources || cJSON_GetArraySize(resources) > 0;
}

/* The first evidence that the module keeps its state elsewhere. */
struct finding {
    enum { NOTHING, BLOCK, PARTIAL, NOTED, STATE, WORKSPACE } kind;
    char what[320];               /* for people: `the block `backend "s3"` in main.tf, line 3` */
    char workspace[NAME_MAX + 1]; /* of WORKSPACE */
    char file[PATH_MAX];          /* the state, if it is a file; else "" */
};

/* True if the block lacks the attribute that identifies the state. */
static bool is_partial(const struct df_hcl_block *b)
{
    static const char *const needed[][2] = {
        {"s3", "bucket"},  {"azurerm", "key"}, {"gcs", "bucket"},  {"http", "address"},
        {"cos", "bucket"}, {"oss", "bucket"},  {"consul", "path"}, {"kubernetes", "secret_suffix"},
    };
    for (size_t i = 0; b->labels.len && i < DF_ARRAY_SIZE(needed); i++)
        if (df_streq(b->labels.items[0], needed[i][0]))
            return !df_hcl_has_attribute(b, needed[i][1]);
    return false;
}

static bool is_backend(const struct df_hcl_block *b, const char *label)
{
    return df_streq(b->type, "backend") && b->labels.len && df_streq(b->labels.items[0], label);
}

/* True if the path of a `backend "local"` outlives the step. */
static bool is_lasting(const struct df_hcl_block *b)
{
    const char *path = df_hcl_attribute(b, "path");
    return path && *path == '/';
}

static void find_block(const struct df_backend_request *q, const struct df_hcl_block *b,
                       struct finding *f)
{
    const char *label = b->labels.len ? b->labels.items[0] : "";
    const char *path = df_hcl_attribute(b, "path");
    f->kind = is_partial(b) ? PARTIAL : BLOCK;
    (void)snprintf(f->what, sizeof(f->what), "the %sblock `%s%s%.60s%s` in %.100s, line %u",
                   f->kind == PARTIAL ? "partial " : "", b->type, *label ? " \"" : "", label,
                   *label ? "\"" : "", b->file, b->line);
    if (!is_backend(b, "local") || is_lasting(b))
        return;
    f->kind = STATE;
    if (path || !df_hcl_has_attribute(b, "path"))
        (void)snprintf(f->file, sizeof(f->file), "%s/%s", q->origin_dir ? q->origin_dir : ".",
                       path ? path : STATE_FILE);
}

static void find_workspace(const char *shown_dir, const char *name, struct finding *f)
{
    f->kind = WORKSPACE;
    (void)snprintf(f->workspace, sizeof(f->workspace), "%s", name);
    if (shown_dir)
        (void)snprintf(f->file, sizeof(f->file), "%s/" WORKSPACES_DIR "/%s/" STATE_FILE, shown_dir,
                       name);
}

/* The workspace that the tool would use in dir, if it is not the default one. */
static int find_selected(const char *dir, const char *shown_dir, struct finding *f,
                         struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(NAME_MAX);
    DF_FREE char *file = df_fs_join(dir, SELECTED_FILE);
    if (!file)
        return df_fail_oom(err);
    if (!df_fs_exists(file))
        return 0;
    if (df_fs_read(file, &text, err) < 0)
        return -1;
    DF_FREE char *name = strndup(df_buf_str(&text), strcspn(df_buf_str(&text), "\r\n"));
    DF_FREE char *state = df_strf("%s/" WORKSPACES_DIR "/%s/" STATE_FILE, dir, name ? name : "");
    if (!name || !state)
        return df_fail_oom(err);
    if (!*name || df_streq(name, "default"))
        return 0;
    find_workspace(df_fs_exists(state) ? shown_dir : NULL, name, f);
    (void)snprintf(f->what, sizeof(f->what),
                   "the workspace \"%.90s\" that " SELECTED_FILE " selects", name);
    return 0;
}

/* The first workspace by name whose local state has resources. */
static int find_workspace_state(const char *dir, const char *shown_dir, struct finding *f,
                                struct df_err *err)
{
    char first[NAME_MAX + 1] = "";
    DF_FREE char *states = df_fs_join(dir, WORKSPACES_DIR);
    DIR *d = states ? opendir(states) : NULL;
    bool failed = !states;
    for (const struct dirent *e; d && !failed && (e = readdir(d));) {
        DF_FREE char *path = df_strf("%s/%s/" STATE_FILE, states, e->d_name);
        failed = !path;
        bool later = *first && strcmp(first, e->d_name) < 0;
        if (path && *e->d_name != '.' && !later && holds_resources(path))
            (void)snprintf(first, sizeof(first), "%s", e->d_name);
    }
    if (d)
        (void)closedir(d);
    if (failed)
        return df_fail_oom(err);
    if (!*first)
        return 0;
    find_workspace(shown_dir, first, f);
    (void)snprintf(f->what, sizeof(f->what),
                   "the workspace \"%.60s\" with resources in " WORKSPACES_DIR "/%.60s/" STATE_FILE,
                   first, first);
    return 0;
}

static int inspect_files(const char *dir, const char *shown_dir, struct finding *f,
                         struct df_err *err)
{
    DF_FREE char *state = df_fs_join(dir, STATE_FILE);
    DF_JSON cJSON *noted = NULL;
    if (df_check_alloc(state, err) < 0 || df_backend_noted_load(dir, &noted, err) < 0)
        return -1;
    const char *type = df_json_str(noted, "type");
    if (type) {
        f->kind = NOTED;
        (void)snprintf(f->what, sizeof(f->what),
                       "the backend \"%.60s\" that " DF_BACKEND_NOTE " names", type);
        return 0;
    }
    if (!holds_resources(state))
        return find_workspace_state(dir, shown_dir, f, err);
    f->kind = STATE;
    (void)snprintf(f->what, sizeof(f->what), "the file " STATE_FILE " with resources beside it");
    (void)snprintf(f->file, sizeof(f->file), "%s/" STATE_FILE, shown_dir);
    return 0;
}

/* Leaves NOTHING in f if there is no evidence. File names are for messages: those in a checkout are
 * relative to the module. */
static int find_state(const struct df_backend_request *q, const struct df_hcl_module *m,
                      struct finding *f, struct df_err *err)
{
    const struct df_hcl_block *b = df_hcl_backend(m);
    const char *origin = q->origin_dir;
    if (find_selected(q->module_dir, origin ? origin : ".", f, err) < 0 ||
        (f->kind == NOTHING && origin && find_selected(origin, origin, f, err) < 0))
        return -1;
    if (f->kind == NOTHING && b)
        find_block(q, b, f);
    if (f->kind == NOTHING && inspect_files(q->module_dir, origin ? origin : ".", f, err) < 0)
        return -1;
    return f->kind == NOTHING && origin ? inspect_files(origin, origin, f, err) : 0;
}

/* ---- storage of type module ---- */

/* Refuses a selected workspace. A `cloud` block names its workspaces itself. */
static int check_selected(const struct df_backend_request *q, const struct df_hcl_block *b,
                          struct df_err *err)
{
    struct finding f = {0};
    if (df_streq(b->type, "cloud") || is_backend(b, "remote"))
        return 0;
    if (find_selected(q->origin_dir ? q->origin_dir : q->module_dir, NULL, &f, err) < 0)
        return -1;
    if (f.kind == NOTHING)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "BackendInModule",
                          "the module uses %s, and with `storage: {type: module}` workspaces other "
                          "than default are not supported: give the backend a key of its own for "
                          "this executor, then `%s workspace select default`",
                          f.what, q->tool == DF_HCL_TERRAFORM ? "terraform" : "tofu");
}

static const char *executor_of(const struct df_backend_request *q)
{
    const char *executor = df_json_str(q->step, "executor");
    return executor ? executor : "EXECUTOR";
}

/* Refuses a state that would be removed together with the step's work directory. */
static int check_own(const struct df_backend_request *q, const struct df_hcl_module *m,
                     struct df_err *err)
{
    const struct df_hcl_block *b = df_hcl_backend(m);
    if (!b)
        return df_fail_reason(err, DF_ERR_USER, "BackendMissing",
                              "spec.storage.type is module, but the module has no `backend` or "
                              "`cloud` block: add one, or choose another type (`dayfly set %s "
                              "storage=managed`)",
                              executor_of(q));
    if (!is_backend(b, "local") || is_lasting(b))
        return check_selected(q, b, err);
    return df_fail_reason(err, DF_ERR_USER, "BackendMissing",
                          "%.100s, line %u: the path of the `backend \"local\"` block is not "
                          "written as an absolute path: the state would be removed together with "
                          "the step's work directory; write it so, or choose another type "
                          "(`dayfly set %s storage=managed`)",
                          b->file, b->line, executor_of(q));
}

/* ---- the ways out ---- */

static const char *type_of(const struct df_backend_request *q)
{
    const char *type = df_json_str(q->step, "state.type");
    return type ? type : "managed";
}

/* How to take over that state; the caller frees. */
static char *describe_adoption(const struct df_backend_request *q, const struct finding *f)
{
    const char *file = df_starts_with(f->file, "./") ? f->file + 2 : f->file;
    if (!df_streq(type_of(q), "managed"))
        return df_strf("move that state into the %s storage and set "
                       "spec.storage.overrideBackend: true",
                       type_of(q));
    return df_strf("adopt %s with `dayfly state push %s %s` (docs/adopt.md)",
                   f->kind == WORKSPACE ? "that state" : "it", executor_of(q),
                   *file ? file : "FILE");
}

/* The alternative to adoption, or "". The caller frees. */
static char *describe_other_way(const struct df_backend_request *q, const struct finding *f)
{
    static const char keep[] = "keep it there with `dayfly set %s storage=module` (`--storage "
                               "module` for a new executor), or ";
    static const char write_and_keep[] =
        "write its settings into the block and keep it there with `dayfly set %s storage=module` "
        "(`--storage module` for a new executor), or ";
    switch (f->kind) {
    case BLOCK:
        return df_strf(keep, executor_of(q));
    case PARTIAL:
        return df_strf(write_and_keep, executor_of(q));
    case WORKSPACE:
        return strdup("each workspace needs an executor of its own (`--name`), so ");
    case NOTED:
    case STATE:
    case NOTHING:
        break;
    }
    return strdup("");
}

static int refuse_override(const struct df_backend_request *q, const struct finding *f,
                           struct df_err *err)
{
    DF_FREE char *adopt = describe_adoption(q, f), *way = describe_other_way(q, f);
    if (!adopt || !way)
        return df_fail_oom(err);
    return df_fail_reason(err, DF_ERR_USER, "BackendInModule",
                          "the module keeps its state elsewhere (%s), and this executor's %s "
                          "storage would start without it: %s%s",
                          f->what, type_of(q), way, adopt);
}

/* ---- the decision ---- */

/* Removes copies of overridden states: `init` would ask whether to migrate them. */
static int drop_states(const struct df_backend_request *q, struct df_err *err)
{
    DF_FREE char *state = df_fs_join(q->module_dir, STATE_FILE);
    DF_FREE char *workspaces = df_fs_join(q->module_dir, WORKSPACES_DIR);
    return df_fs_remove_tree(state, err) < 0 ? -1 : df_fs_remove_tree(workspaces, err);
}

int df_backend_check(const struct df_backend_request *q, char ret_note[512], struct df_err *err)
{
    struct finding found = {0};
    DF_HCL_MODULE struct df_hcl_module m = {0};
    ret_note[0] = '\0';
    if (df_hcl_scan(q->module_dir, q->tool, &m, err) < 0)
        return df_err_reason(err, "InitFailed");
    if (df_streq(type_of(q), "module"))
        return check_own(q, &m, err);
    if (find_state(q, &m, &found, err) < 0)
        return -1;
    if (found.kind != NOTHING && !df_json_bool(q->step, "state.overrideBackend", false))
        return refuse_override(q, &found, err);
    if (found.kind != NOTHING)
        (void)snprintf(ret_note, 512, "%s is overridden: the state is in the executor's %s storage",
                       found.what, type_of(q));
    return drop_states(q, err);
}
