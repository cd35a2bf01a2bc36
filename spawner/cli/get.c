/* dayfly get: lists and single documents, as a table, JSON, YAML or names. */
#include "spawner/cli/get.h"

#include "common/base/parse.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/named.h"

/* ---- options ---- */

static int read_choice(const struct df_args *args, struct df_choice *ret, struct df_err *err)
{
    const char *limit = df_arg(args, "limit");
    int64_t most = 0;
    if (limit && df_parse_i64(limit, 1, INT32_MAX, &most, err) < 0)
        return df_err_wrap(err, "--limit");
    *ret = (struct df_choice){.states = df_arg(args, "state"),
                              .name_space = df_arg(args, "namespace"),
                              .sort_by = df_arg(args, "sort-by"),
                              .limit = (size_t)most};
    return 0;
}

/* Of each thing that is asked for. */
static int check_audit(const struct df_cli *cli, const struct df_get *get, struct df_err *err)
{
    for (const char *const *name = df_get_audit_options; *name; name++)
        for (size_t i = 0; df_arg_given(&cli->args, *name) && i < get->count; i++)
            if (!df_streq(get->named[i].kind->plural, "audit"))
                return df_fail(err, DF_ERR_USER, "--%s is for the audit trail: dayfly get audit",
                               *name);
    return 0;
}

static int check_kind(const struct df_get *get, const struct df_shown *kind, bool creator,
                      struct df_err *err)
{
    if (get->executor && !df_streq(kind->plural, "runs") && !df_streq(kind->plural, "revisions"))
        return df_fail(err, DF_ERR_USER, "--executor is for runs and revisions");
    if (creator && !df_streq(kind->plural, "executors") && !df_streq(kind->plural, "runs"))
        return df_fail(err, DF_ERR_USER, "--creator is for executors and runs");
    if (get->selector && !kind->states)
        return df_fail(err, DF_ERR_USER, "--selector: %s have no labels", kind->plural);
    return df_choice_check(&get->choice, kind, err);
}

static int check(const struct df_cli *cli, const struct df_get *get, struct df_err *err)
{
    bool creator = df_arg_given(&cli->args, "creator");
    for (size_t i = 0; i < get->count; i++) {
        if (check_kind(get, get->named[i].kind, creator, err) < 0)
            return -1;
        if (get->named[i].name && (get->selector || creator))
            return df_fail(err, DF_ERR_USER, "--%s is for lists; %s is named already",
                           creator ? "creator" : "selector", get->named[i].name);
    }
    return 0;
}

/* The end of a revision's name: "-r3". */
static bool is_numbered(const char *name)
{
    const char *suffix = strrchr(name, '-');
    int64_t number;
    return suffix && suffix[1] == 'r' && df_parse_i64(suffix + 2, 1, INT32_MAX, &number, NULL) == 0;
}

/* Any other name after `revisions` is an executor's. */
static void take_executor(struct df_get *get)
{
    struct df_named *named = get->named;
    if (get->executor || get->count != 1 || !named->name || is_numbered(named->name) ||
        !df_streq(named->kind->plural, "revisions"))
        return;
    get->executor = named->name;
    named->name = NULL;
}

/* ---- printing ---- */

/* Prints the document if one object was named, else a list. */
static int print_document(const struct df_cli *cli, const struct df_get *get, cJSON *all,
                          struct df_err *err)
{
    if (get->count == 1 && get->named[0].name && all->child)
        return df_cli_print_json(cli, all->child, err);
    DF_JSON cJSON *list = cJSON_CreateObject();
    cJSON *items = cJSON_Duplicate(all, true);
    if (df_json_add(list, "items", items, err) < 0)
        return -1;
    return df_cli_print_json(cli, list, err);
}

static int append_all(cJSON *all, cJSON *items, struct df_err *err)
{
    while (items->child)
        if (df_json_append(all, cJSON_DetachItemViaPointer(items, items->child), err) < 0)
            return -1;
    return 0;
}

/* Prints one table for each kind, separated by a blank line. */
static int print_group(const struct df_cli *cli, const struct df_shown *kind, const cJSON *items,
                       bool first, struct df_err *err)
{
    struct df_table_shape shape = df_cli_table_shape(cli);
    if (!items->child)
        return 0;
    bool blank = !first && !df_streq(df_cli_output(cli), "name");
    if (blank && df_cli_print("\n", err) < 0)
        return -1;
    return df_get_print(cli, kind, items, true, &shape, err);
}

/* "no runs", "no executors, runs or taskactions" */
static void note_nothing(const struct df_get *get)
{
    DF_BUF struct df_buf kinds = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    for (size_t from = 0, n; from < get->count; from += n) {
        n = df_get_group(get, from);
        const char *between = !from ? "" : from + n < get->count ? ", " : " or ";
        (void)df_buf_addf(&kinds, "%s%s", between, get->named[from].kind->plural);
    }
    df_cli_note("no %s", df_buf_str(&kinds));
}

static int show(struct df_cli *cli, struct df_get *get, struct df_err *err)
{
    DF_JSON cJSON *all = cJSON_CreateArray();
    bool any = false;
    if (!all)
        return df_fail_oom(err);
    for (size_t from = 0, n; from < get->count; from += n) {
        DF_JSON cJSON *items = NULL;
        n = df_get_group(get, from);
        if (df_get_wants_lines(cli)) {
            if (df_get_lines(cli, get, from, n, err) < 0)
                return -1;
            any = true;
            continue;
        }
        if (df_get_fetch(cli, get, from, n, &items, err) < 0)
            return -1;
        bool filled = items->child;
        if ((df_get_wants_document(cli)
                 ? append_all(all, items, err)
                 : print_group(cli, get->named[from].kind, items, !any, err)) < 0)
            return -1;
        any = any || filled;
    }
    if (df_get_wants_document(cli))
        return print_document(cli, get, all, err);
    if (!any && !get->missing)
        note_nothing(get);
    return 0;
}

static int run(struct df_cli *cli, struct df_get *get, struct df_err *err)
{
    if (read_choice(&cli->args, &get->choice, err) < 0)
        return -1;
    get->selector = df_arg(&cli->args, "selector");
    get->executor = df_arg(&cli->args, "executor");
    bool watching = df_arg_given(&cli->args, "watch");
    if (watching && df_get_wants_lines(cli))
        return df_fail(err, DF_ERR_USER, "--watch: not with -o %s", df_cli_output(cli));
    cli->as = watching ? DF_CONNECT_LOOK : DF_CONNECT_SERVE;
    if (df_named_parse(cli, cli->args.words, cli->args.word_count, &get->named, &get->count, err) <
        0)
        return -1;
    take_executor(get);
    if (check_audit(cli, get, err) < 0 || check(cli, get, err) < 0)
        return -1;
    if ((watching ? df_get_watch(cli, get, err) : show(cli, get, err)) < 0)
        return -1;
    return get->missing ? DF_EXIT_FAILURE : DF_EXIT_OK;
}

int df_cmd_get(struct df_cli *cli, struct df_err *err)
{
    struct df_get get = {0};
    int result = run(cli, &get, err);
    free(get.named);
    return result;
}
