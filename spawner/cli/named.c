/*
 * Parses names on the command line: `all`, kinds, KIND NAME, kind/name, or a name alone, which is
 * looked up. Read df_named_parse() first, then df_named_run() at the end.
 */
#include "spawner/cli/named.h"

#include "common/base/parse.h"

/* ---- a name alone ---- */

/* 1: it exists; 0: it does not. */
static int exists(struct df_cli *cli, const struct df_shown *kind, const char *name,
                  struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    struct df_err why = {0};
    if (df_cli_get(cli, kind, name, &doc, &why) == 0)
        return 1;
    if (why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

/* *ret: executors or runs, or NULL if neither has the name. Fails if both have it. */
static int look_up(struct df_cli *cli, const char *name, const struct df_shown **ret,
                   struct df_err *err)
{
    const struct df_shown *executors = df_shown_of("executors"), *runs = df_shown_of("runs");
    int executor = exists(cli, executors, name, err);
    int run = executor < 0 ? -1 : exists(cli, runs, name, err);
    if (run < 0)
        return -1;
    if (executor && run)
        return df_fail(err, DF_ERR_USER,
                       "\"%s\" is an executor and a run: say executor/%s or run/%s", name, name,
                       name);
    *ret = executor ? executors : run ? runs : NULL;
    return 0;
}

/* Neither an executor nor a run has the name. Fails if a TaskAction has it: lists show those
 * without the kind. */
static int check_no_task(struct df_cli *cli, const char *name, struct df_err *err)
{
    int task = exists(cli, df_shown_of("taskactions"), name, err);
    return task <= 0
               ? task
               : df_fail(err, DF_ERR_USER, "\"%s\" is a taskaction: say taskaction/%s", name, name);
}

static int find_kind(struct df_cli *cli, const char *word, const struct df_shown **ret,
                     struct df_err *err)
{
    struct df_err unknown = {0};
    if (df_shown_find(word, ret, &unknown) == 0)
        return 0;
    if (!df_is_dns_label(word))
        return df_err_pass(err, &unknown);
    const struct df_shown *kind = NULL;
    if (look_up(cli, word, &kind, err) < 0)
        return -1;
    if (!kind && check_no_task(cli, word, err) < 0)
        return -1;
    if (!kind)
        return df_fail(err, DF_ERR_USER, "%s; no executor and no run has this name either",
                       unknown.message);
    *ret = kind;
    return 0;
}

/* ---- several words ---- */

struct list {
    struct df_named *items;
    size_t count;
};

static int add(struct list *l, const struct df_shown *kind, const char *name, struct df_err *err)
{
    struct df_named *more = reallocarray(l->items, l->count + 1, sizeof(*more));
    if (!more)
        return df_fail_oom(err);
    l->items = more;
    l->items[l->count++] = (struct df_named){kind, name};
    return 0;
}

/* "kind/name" */
static int add_pair(struct list *l, const char *word, struct df_err *err)
{
    const char *slash = strchr(word, '/');
    const struct df_shown *kind = NULL;
    DF_FREE char *typed = strndup(word, (size_t)(slash - word));
    if (df_check_alloc(typed, err) < 0 || df_shown_find(typed, &kind, err) < 0)
        return -1;
    if (!slash[1])
        return df_fail(err, DF_ERR_USER, "\"%s\": a name is missing behind the slash", word);
    return add(l, kind, slash + 1, err);
}

static bool is_kind(const char *word)
{
    struct df_err ignored;
    const struct df_shown *kind = NULL;
    return df_shown_find(word, &kind, &ignored) == 0;
}

/* Adds the kinds of "runs,executors", or, if there are names, each name for each kind. */
static int add_kinds(struct list *l, const char *word, char *const *names, size_t count,
                     struct df_err *err)
{
    DF_FREE char *copy = strdup(df_streq(word, "all") ? "executors,runs,taskactions" : word);
    char *at = copy;
    if (!copy)
        return df_fail_oom(err);
    for (char *typed; (typed = strsep(&at, ","));) {
        const struct df_shown *kind = NULL;
        if (df_shown_find(typed, &kind, err) < 0 || (!count && add(l, kind, NULL, err) < 0))
            return -1;
        for (size_t i = 0; i < count; i++)
            if ((strchr(names[i], '/') ? add_pair(l, names[i], err) : add(l, kind, names[i], err)) <
                0)
                return -1;
    }
    return 0;
}

static int add_name(struct df_cli *cli, struct list *l, const char *word, struct df_err *err)
{
    const struct df_shown *kind = NULL;
    if (strchr(word, '/'))
        return add_pair(l, word, err);
    return find_kind(cli, word, &kind, err) < 0 ? -1 : add(l, kind, word, err);
}

static int add_words(struct df_cli *cli, char *const *words, size_t count, struct list *l,
                     struct df_err *err)
{
    const char *first = words[0];
    if (df_streq(first, "all") || is_kind(first) || strchr(first, ','))
        return add_kinds(l, first, words + 1, count - 1, err);
    for (size_t i = 0; i < count; i++)
        if (add_name(cli, l, words[i], err) < 0)
            return -1;
    return 0;
}

int df_named_parse(struct df_cli *cli, char *const *words, size_t count, struct df_named **ret,
                   size_t *ret_count, struct df_err *err)
{
    struct list l = {0};
    if (add_words(cli, words, count, &l, err) < 0) {
        free(l.items);
        return -1;
    }
    *ret = l.items;
    *ret_count = l.count;
    return 0;
}

const char *df_named_task(const char *word)
{
    const struct df_shown *kind = NULL;
    struct df_err ignored;
    const char *slash = strchr(word, '/');
    DF_FREE char *typed = slash ? strndup(word, (size_t)(slash - word)) : NULL;
    bool is_task =
        typed && df_shown_find(typed, &kind, &ignored) == 0 && kind == df_shown_of("taskactions");
    return is_task && slash[1] ? slash + 1 : NULL;
}

/* ---- a run ---- */

/* *ret: the newest run of the executor, or NULL. Its status tells only of runs that had their
 * turn. */
static int newest_run(struct df_cli *cli, const char *executor, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, "runs", NULL);
    DF_FREE char *full = path ? df_strf("%s?limit=1", path) : NULL;
    DF_JSON cJSON *runs = NULL;
    if (df_check_alloc(full, err) < 0 || df_cli_list_some(cli, full, 1, &runs, err) < 0)
        return -1;
    *ret = cJSON_DetachItemFromArray(runs, 0);
    return 0;
}

static int latest_run(struct df_cli *cli, const char *executor, char **ret, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL, *newest = NULL;
    if (df_cli_get(cli, df_shown_of("executors"), executor, &doc, err) < 0)
        return -1;
    const char *run = df_json_str(doc, "status.lastRun.name");
    if (!run && newest_run(cli, executor, &newest, err) < 0)
        return -1;
    if (!run)
        run = df_json_str(newest, "metadata.name");
    if (!run)
        return df_fail(err, DF_ERR_NOT_FOUND, "executor %s has no run yet: `dayfly run %s`",
                       executor, executor);
    return df_check_alloc(*ret = strdup(run), err);
}

int df_named_run(struct df_cli *cli, const char *word, char **ret, struct df_err *err)
{
    struct list l = {0};
    const struct df_shown *kind = NULL;
    const char *name = word;
    if (strchr(word, '/')) {
        if (add_pair(&l, word, err) < 0)
            return -1;
        kind = l.items[0].kind;
        name = l.items[0].name;
        free(l.items);
    }
    if (!df_is_dns_label(name))
        return df_fail(
            err, DF_ERR_USER,
            "run \"%s\": is not a valid name (lower-case letters, digits and -, at most 63)", name);
    if (!kind && look_up(cli, name, &kind, err) < 0)
        return -1;
    if (kind == df_shown_of("executors"))
        return latest_run(cli, name, ret, err);
    if (kind && kind != df_shown_of("runs"))
        return df_fail(err, DF_ERR_USER, "\"%s\": a run or an executor is needed here", word);
    if (!kind && check_no_task(cli, name, err) < 0)
        return -1;
    if (!kind)
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "NotFound",
                              "\"%s\": no run and no executor has this name", name);
    return df_check_alloc(*ret = strdup(name), err);
}
