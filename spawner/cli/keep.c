/*
 * dayfly set, and --keep of dayfly run: change variables and settings of an executor. Read
 * change_executor() in the middle, then df_cmd_set() at the end.
 */
#include "spawner/cli/keep.h"

#include "common/hcl/hcl.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/variables.h"

/* ---- sensitive variables ---- */

/* *ret: the module's folder, if its source has a file URL; else NULL. */
static int local_module(const cJSON *executor, char **ret, struct df_err *err)
{
    static const char scheme[] = "file://";
    const char *url = df_json_str(executor, "spec.source.url");
    const char *folder = df_json_str(executor, "spec.source.folder");
    *ret = NULL;
    if (!url || !df_starts_with(url, scheme))
        return 0;
    return df_check_alloc(*ret = df_strf("%s/%s", url + strlen(scheme), folder ? folder : ""), err);
}

static int check_variable(const struct df_hcl_module *m, const char *executor, const char *name,
                          struct df_err *err)
{
    const struct df_hcl_block *b = df_hcl_sensitive(m, name);
    return b ? df_fail(err, DF_ERR_USER,
                       "variable %s is declared sensitive (%s, line %u) and is not kept in a "
                       "document: store it with `dayfly secret set %s %s` and name the secret "
                       "%s in spec.secrets",
                       name, b->file, b->line, executor, name, executor)
             : 0;
}

static int check_sensitive(const struct df_hcl_module *m, const cJSON *executor,
                           const cJSON *variables, struct df_err *err)
{
    const cJSON *v;
    cJSON_ArrayForEach (v, variables) {
        if (!cJSON_IsNull(v) &&
            check_variable(m, df_json_str(executor, "metadata.name"), v->string, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the change ---- */

struct change {
    cJSON *variables; /* name: value, or null */
    bool is_text;     /* they are texts as they were given, and not yet of the module's types */
    cJSON *spec;      /* the same for the members of runtime, source and storage; or NULL */
};

/* Gives the variables their values. m: NULL if the module cannot be read here. */
static int settle(const struct df_hcl_module *m, const cJSON *texts, cJSON **ret,
                  struct df_err *err)
{
    DF_JSON cJSON *all = cJSON_CreateObject();
    const cJSON *v;
    cJSON_ArrayForEach (v, texts) {
        cJSON *value = cJSON_IsNull(v) ? cJSON_CreateNull() : NULL;
        if (!value && df_variable_value(m, "var", v->string, v->valuestring, &value, err) < 0)
            return -1;
        if (!value)
            return df_fail(err, DF_ERR_USER,
                           "var %s: an executor keeps no value in HCL, write JSON", v->string);
        if (df_json_set(all, v->string, value, err) < 0)
            return -1;
    }
    return df_check_alloc(*ret = DF_TAKE(all), err);
}

/* *ret: the variables with their values, none of which the module declares sensitive. If the module
 * cannot be read here, the runner checks that. */
static int read_variables(const cJSON *executor, const struct change *c, cJSON **ret,
                          struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    DF_FREE char *dir = NULL;
    if (local_module(executor, &dir, err) < 0)
        return -1;
    bool visible = dir && df_hcl_scan(dir, DF_HCL_ANY, &m, NULL) == 0;
    if (visible && check_sensitive(&m, executor, c->variables, err) < 0)
        return -1;
    if (c->is_text)
        return settle(visible ? &m : NULL, c->variables, ret, err);
    return df_check_alloc(*ret = cJSON_Duplicate(c->variables, true), err);
}

/* Removes the members of `to` that are null in `from`, and replaces the others as a whole. */
static int overwrite(cJSON *to, const cJSON *from, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, from) {
        if (cJSON_IsNull(item))
            cJSON_DeleteItemFromObjectCaseSensitive(to, item->string);
        else if (df_json_set(to, item->string, cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return df_check_alloc(to, err);
}

/* *ret: the parts of a fetched document that a client may send. */
static int sendable(const cJSON *executor, cJSON **ret, struct df_err *err)
{
    static const char *const members[] = {"apiVersion", "kind", "metadata", "spec"};
    static const char *const of_service[] = {"uid", "generation", "creationTimestamp"};
    DF_JSON cJSON *doc = cJSON_CreateObject();
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++)
        if (df_json_add(doc, members[i], cJSON_Duplicate(df_json_at(executor, members[i]), true),
                        err) < 0)
            return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_service); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(doc, "metadata"), of_service[i]);
    return df_check_alloc(*ret = DF_TAKE(doc), err);
}

static bool has_reference(const cJSON *source)
{
    return df_json_str(source, "branch") || df_json_str(source, "tag") ||
           df_json_str(source, "commit");
}

/* A branch, tag or commit turns a directory source into a git source. A new storage type replaces
 * the whole storage, because its other settings belong to the old type. */
static int follow_up(cJSON *spec, const cJSON *change, struct df_err *err)
{
    cJSON *source = df_json_object_at(spec, "source");
    if (has_reference(df_json_at(change, "source")) &&
        df_streq(df_json_str(source, "kind"), "directory") &&
        df_json_set_str(source, "kind", "git", err) < 0)
        return -1;
    const cJSON *storage = df_json_at(change, "storage");
    if (!storage || df_streq(df_json_str(storage, "type"), df_json_str(spec, "storage.type")))
        return 0;
    return df_json_set(spec, "storage", cJSON_Duplicate(storage, true), err);
}

static int change_spec(cJSON *spec, const cJSON *change, struct df_err *err)
{
    const cJSON *part;
    if (follow_up(spec, change, err) < 0)
        return -1;
    cJSON_ArrayForEach (part, change) {
        if (overwrite(df_json_object_at(spec, part->string), part, err) < 0)
            return -1;
    }
    return 0;
}

static int change_executor(struct df_cli *cli, const char *name, const struct change *c,
                           bool *ret_changed, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, NULL);
    DF_JSON cJSON *executor = NULL, *variables = NULL, *doc = NULL, *stored = NULL;
    if (df_cli_call(cli, "GET", path, NULL, &executor, err) < 0 ||
        read_variables(executor, c, &variables, err) < 0 || sendable(executor, &doc, err) < 0)
        return -1;
    cJSON *spec = df_json_object_at(doc, "spec");
    if (overwrite(df_json_object_at(spec, "variables"), variables, err) < 0 ||
        change_spec(spec, c->spec, err) < 0)
        return -1;
    if (!df_json_at(executor, "spec.variables") && !df_json_at(spec, "variables")->child)
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "variables");
    *ret_changed = !df_json_equal(spec, df_json_at(executor, "spec"));
    return *ret_changed ? df_cli_call(cli, "PUT", path, doc, &stored, err) : 0;
}

int df_executor_keep(struct df_cli *cli, const char *name, const cJSON *variables,
                     bool *ret_changed, struct df_err *err)
{
    DF_JSON cJSON *copy = cJSON_Duplicate(variables, true);
    const struct change c = {.variables = copy};
    return copy ? change_executor(cli, name, &c, ret_changed, err) : df_fail_oom(err);
}

/* ---- dayfly set ---- */

/* Handles "name-", which removes a variable. *ret: false for other words. */
static int add_removal(cJSON *to, const char *word, bool *ret, struct df_err *err)
{
    size_t n = strlen(word);
    *ret = n > 1 && word[n - 1] == '-' && !strchr(word, '=');
    DF_FREE char *name = *ret ? strndup(word, n - 1) : NULL;
    if (!*ret)
        return 0;
    return df_json_put(to, err, DF_ITEM(name, cJSON_CreateNull()));
}

struct setting {
    const char *key, *part, *member;
    bool may_remove;
    bool is_reference; /* of the repository: a new one replaces the others */
    bool is_truth;
};

static const struct setting settings[] = {
    {"tool", "runtime", "name", .may_remove = true},
    {"tool-version", "runtime", "version", .may_remove = true},
    {"branch", "source", "branch", .is_reference = true},
    {"tag", "source", "tag", .is_reference = true},
    {"commit", "source", "commit", .is_reference = true},
    {"submodules", "source", "submodules", .is_truth = true},
    {"storage", "storage", "type"},
};

/* Sets a member. A new branch, tag or commit replaces the other two. */
static int set_member(cJSON *spec, const struct setting *s, cJSON *value, struct df_err *err)
{
    cJSON *part = df_json_object_at(spec, s->part);
    for (size_t i = 0; s->is_reference && i < DF_ARRAY_SIZE(settings); i++)
        if (settings[i].is_reference &&
            df_json_set(part, settings[i].member, cJSON_CreateNull(), err) < 0) {
            cJSON_Delete(value);
            return -1;
        }
    return df_json_set(part, s->member, value, err);
}

/* NULL: the text is no value of the setting, or no memory. */
static cJSON *value_of(const struct setting *s, const char *text)
{
    if (!s->is_truth)
        return cJSON_CreateString(text);
    bool is_true = df_streq(text, "true");
    return is_true || df_streq(text, "false") ? cJSON_CreateBool(is_true) : NULL;
}

static int add_setting(cJSON *spec, const char *word, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(settings); i++) {
        size_t n = strlen(settings[i].key);
        if (strncmp(word, settings[i].key, n) != 0)
            continue;
        cJSON *value = word[n] == '=' ? value_of(&settings[i], word + n + 1) : NULL;
        if (value)
            return set_member(spec, &settings[i], value, err);
        if (settings[i].may_remove && df_streq(word + n, "-"))
            return set_member(spec, &settings[i], cJSON_CreateNull(), err);
    }
    return df_fail(err, DF_ERR_USER,
                   "\"%.80s\" cannot be set: write `var NAME=VALUE`, tool=NAME, "
                   "tool-version=VERSION, storage=managed|module, submodules=true|false, or "
                   "branch=, tag= or commit=NAME; `dayfly apply -f` changes everything else",
                   word);
}

static int add_variable(cJSON *to, const char *word, struct df_err *err)
{
    DF_FREE char *name = NULL;
    const char *value = NULL;
    bool removed = false;
    if (add_removal(to, word, &removed, err) < 0 || removed)
        return removed ? 0 : -1;
    if (df_variable_cut("var", word, &name, &value, err) < 0)
        return -1;
    return df_json_set_str(to, name, value, err);
}

static int read_words(struct df_cli *cli, struct change *c, struct df_err *err)
{
    bool variables = df_streq(df_cli_word(cli, 1), "var");
    if (variables && cli->args.word_count == 2)
        return df_fail(err, DF_ERR_USER, "var needs NAME=VALUE, or NAME- to take one away");
    for (size_t i = variables ? 2 : 1; i < cli->args.word_count; i++) {
        const char *word = df_cli_word(cli, i);
        if ((variables ? add_variable(c->variables, word, err) : add_setting(c->spec, word, err)) <
            0)
            return -1;
    }
    return 0;
}

int df_cmd_set(struct df_cli *cli, struct df_err *err)
{
    DF_JSON cJSON *variables = cJSON_CreateObject(), *spec = cJSON_CreateObject();
    struct change c = {.variables = variables, .is_text = true, .spec = spec};
    const char *name = NULL;
    bool changed = false;
    if (df_check_alloc(variables, err) < 0 || df_check_alloc(spec, err) < 0 ||
        df_cli_name(cli, 0, "executor", &name, err) < 0 || read_words(cli, &c, err) < 0 ||
        change_executor(cli, name, &c, &changed, err) < 0)
        return -1;
    return df_cli_printf(err, "executor/%s %s\n", name, changed ? "changed" : "unchanged");
}
