/*
 * state_command.c - commands of the action `state`, each a row of the table `commands`. First the
 * rules that need only the document, then df_state_command_fits(), which also needs the executor
 * and says what to do instead.
 */
#include "spawner/model/state_command.h"

#include "spawner/model/model.h"
#include "spawner/model/move.h"

#define DRY_RUN "-dry-run"

struct command {
    const char *name;
    const char *takes;
    int min, max; /* number of words after the name */
    bool may_dry_run;
    bool mends; /* may go before an errored state is stored */
};

static const struct command commands[] = {
    {"mv", "SRC DST", 2, 2, .may_dry_run = true},
    {"rm", "ADDRESS...", 1, INT32_MAX, .may_dry_run = true},
    {"import", "ADDRESS ID", 2, 2, .mends = true},
    {"force-unlock", "ID", 1, 1, .mends = true},
    {DF_COMMAND_PUSH_ERRORED, "STEP", 1, 1, .mends = true},
    {"migrate", "no words: spec.moveTo is the new storage", 0, 0, .mends = false},
    {DF_COMMAND_HISTORY, "no words", 0, 0, .mends = true},
    {DF_COMMAND_ROLLBACK, "VERSION", 1, 1, .mends = false},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(commands); i++)
        if (df_streq(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static const char *name_of(const cJSON *run)
{
    return cJSON_GetStringValue(cJSON_GetArrayItem(df_json_at(run, "spec.command"), 0));
}

bool df_state_command_mends(const cJSON *run)
{
    const struct command *c = find_command(name_of(run));
    return c && c->mends;
}

/* The tool would treat an address or ID that begins with a dash as an option. */
static void check_words(const cJSON *value, int first, const struct df_path *path,
                        struct df_faults *f)
{
    for (int i = first; i < cJSON_GetArraySize(value); i++) {
        const struct df_path here = {path, NULL, i};
        const char *word = cJSON_GetStringValue(cJSON_GetArrayItem(value, i));
        if (word && *word == '-')
            df_fault(f, &here, "\"%.64s\" must not begin with -", word);
    }
}

void df_rule_state_command(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(value, 0));
    const char *second = cJSON_GetStringValue(cJSON_GetArrayItem(value, 1));
    const struct command *c = find_command(name);
    if (!c) {
        df_fault(f, path,
                 "begins with mv, rm, import, force-unlock, push-errored, migrate, history or "
                 "rollback");
        return;
    }
    int first = c->may_dry_run && df_streq(second, DRY_RUN) ? 2 : 1;
    int count = cJSON_GetArraySize(value) - first;
    if (count < c->min || count > c->max)
        df_fault(f, path, "%s takes %s", c->name, c->takes);
    if (!df_streq(c->name, DF_COMMAND_ROLLBACK)) /* the bucket's own word, and not for the tool */
        check_words(value, first, path, f);
}

static void check_target(const cJSON *doc, const struct df_path *spec, struct df_faults *f)
{
    const struct df_path here = {spec, "moveTo", 0}, type = {&here, "type", 0};
    const cJSON *target = df_json_at(doc, "spec.moveTo");
    if (df_run_moves(doc) && !target)
        df_fault(f, &here, "is required for the command migrate");
    if (!df_run_moves(doc) && target)
        df_fault(f, &here, "is for the command migrate alone");
    if (df_streq(df_json_str(target, "type"), "module"))
        df_fault(f, &type,
                 "a state cannot be moved into the backend of a module: name that "
                 "backend here (s3, azurerm, gcs, local)");
}

void df_state_command_check(const cJSON *doc, const struct df_path *root, struct df_faults *f)
{
    const struct df_path spec = {root, "spec", 0}, here = {&spec, "command", 0};
    bool is_state = df_streq(df_json_str(doc, "spec.action"), df_action_name(DF_ACTION_STATE));
    bool has_command = df_json_at(doc, "spec.command");
    if (is_state && !has_command)
        df_fault(f, &here, "is required for the action state");
    if (!is_state && has_command)
        df_fault(f, &here, "is for the action state alone");
    check_target(doc, &spec, f);
}

const char *df_state_command_pushes(const cJSON *doc)
{
    const cJSON *step = cJSON_GetArrayItem(df_json_at(doc, "spec.command"), 1);
    return df_streq(name_of(doc), DF_COMMAND_PUSH_ERRORED) ? cJSON_GetStringValue(step) : NULL;
}

/* A managed state has its versions here; of the others only some storages keep any. */
static int check_versioned(const cJSON *executor, const char *type, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    if (df_storage_has_history(executor))
        return 0;
    if (!type || df_streq(type, "managed"))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "spec.command: the versions of a managed state need no run: `dayfly "
                              "state list %s`, `dayfly state rollback %s VERSION`",
                              name, name);
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "StateElsewhere",
        "executor %s keeps its state in %s storage: dayfly lists and rolls back "
        "versions of managed states and of those in buckets of s3 and gcs alone. Use the tools of "
        "that storage, then look at what they did with `dayfly run %s --action "
        "dry-run`",
        name, type, name);
}

int df_state_rollback_check(const cJSON *executor, struct df_err *err)
{
    if (!df_streq(df_json_str(executor, "status.state"), "destroyed"))
        return 0;
    const char *name = df_json_str(executor, "metadata.name");
    DF_FREE char *look =
        df_storage_is_managed(executor)
            ? df_strf("; `dayfly state show %s --version N` prints an older state", name)
            : NULL;
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                          "executor %s is destroyed: an older state names deleted resources. Run "
                          "it with the action provision to create them again%s",
                          name, look ? look : "");
}

int df_state_command_fits(const cJSON *run, const cJSON *executor, struct df_err *err)
{
    const char *type = df_json_str(executor, "spec.storage.type");
    bool is_managed = !type || df_streq(type, "managed");
    if (is_managed && df_state_command_pushes(run))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "spec.command: `dayfly state push-errored %s` stores an errored "
                              "state as a version of a managed one, not a run",
                              df_json_str(executor, "metadata.name"));
    bool is_rollback = df_run_rolls_back(run);
    if ((is_rollback || df_streq(name_of(run), DF_COMMAND_HISTORY)) &&
        check_versioned(executor, type, err) < 0)
        return -1;
    if (is_rollback)
        return df_state_rollback_check(executor, err);
    if (!df_streq(name_of(run), "force-unlock") || !(is_managed || df_streq(type, "local")))
        return df_move_check(run, executor, err);
    if (!is_managed)
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "spec.command: the lock of a state in a file belongs to a living "
                              "process of that machine and ends with it: end that process");
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                          "spec.command: a managed state is unlocked with `dayfly state unlock "
                          "%s`, not by a run",
                          df_json_str(executor, "metadata.name"));
}

bool df_run_imports(const cJSON *run)
{
    return df_streq(name_of(run), "import");
}

bool df_run_rolls_back(const cJSON *run)
{
    return df_streq(name_of(run), DF_COMMAND_ROLLBACK);
}

bool df_run_moves(const cJSON *run)
{
    return df_streq(name_of(run), "migrate");
}
