/* dayfly state migrate: a run that moves the state to another storage, and the confirmation that
 * the storage before it need not be kept. */
#include "common/base/fs.h"
#include "common/yaml/yaml.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/run.h"
#include "spawner/cli/signals.h"
#include "spawner/cli/variables.h"
#include "spawner/model/model.h"

/* ---- the target ---- */

static int read_file(const char *path, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    int failed = df_streq(path, "-") ? df_fs_read_fd(STDIN_FILENO, &text, err)
                                     : df_fs_read(path, &text, err);
    if (failed < 0 || df_yaml_parse(df_buf_str(&text), text.len, ret, NULL, err) < 0) {
        err->cls = DF_ERR_USER;
        return df_err_wrap(err, "-f %s", path);
    }
    return 0;
}

/* "use_lockfile=true" is a truth: no setting of a backend has the text "true" or "false". */
static int add_setting(cJSON *config, const char *setting, struct df_err *err)
{
    const char *text = NULL;
    DF_FREE char *name = NULL;
    cJSON *value = NULL;
    if (df_variable_cut("--setting", setting, &name, &text, err) < 0)
        return -1;
    if (df_streq(text, "true") || df_streq(text, "false"))
        value = cJSON_CreateBool(df_streq(text, "true"));
    else if (df_variable_value(NULL, "--setting", name, text, &value, err) < 0)
        return -1;
    else if (!value)
        return df_fail(err, DF_ERR_USER, "--setting %s: must be JSON", name);
    return df_json_set(config, name, value, err);
}

static int add_options(const struct df_cli *cli, cJSON *target, struct df_err *err)
{
    const char *type = df_arg(&cli->args, "to"), *path = df_arg(&cli->args, "path"), *setting;
    if ((type && df_json_set_str(target, "type", type, err) < 0) ||
        (path && df_json_set_str(target, "path", path, err) < 0))
        return -1;
    for (size_t i = 0; (setting = df_arg_nth(&cli->args, "setting", i)); i++) {
        cJSON *config = df_json_object_at(target, "config");
        if (df_check_alloc(config, err) < 0 || add_setting(config, setting, err) < 0)
            return -1;
    }
    return 0;
}

/* The options win over the file. */
static int given_target(const struct df_cli *cli, cJSON **ret, struct df_err *err)
{
    const char *file = df_arg(&cli->args, "filename");
    DF_JSON cJSON *target = file ? NULL : cJSON_CreateObject();
    if (file && read_file(file, &target, err) < 0)
        return -1;
    if (!cJSON_IsObject(target))
        return file
                   ? df_fail(err, DF_ERR_USER, "-f %s: must be an object: type, path, config", file)
                   : df_fail_oom(err);
    if (add_options(cli, target, err) < 0)
        return -1;
    if (!df_json_str(target, "type"))
        return df_fail(err, DF_ERR_USER,
                       "name the new storage: --to managed|s3|azurerm|gcs|local, or `type` in the "
                       "file of -f");
    *ret = DF_TAKE(target);
    return 0;
}

/* The storage that the last move left. */
static int former_target(struct df_cli *cli, const char *executor, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, NULL);
    DF_JSON cJSON *doc = NULL;
    if (df_cli_call(cli, "GET", path, NULL, &doc, err) < 0)
        return -1;
    const cJSON *former = df_json_at(doc, "status.formerStorage.storage");
    if (!former)
        return df_fail(err, DF_ERR_USER,
                       "executor %s keeps no state at an earlier place; name the new storage with "
                       "--to",
                       executor);
    return df_check_alloc(*ret = cJSON_Duplicate(former, true), err);
}

/* ---- requests ---- */

/* The service names the members of the run's spec.moveTo; here they are options, or members of the
 * file. */
static int say_in_own_words(const struct df_cli *cli, const struct df_err *why, struct df_err *err)
{
    static const struct {
        const char *path, *option;
    } words[] = {{"spec.moveTo.config.", "--setting "},
                 {"spec.moveTo.config", "--setting"},
                 {"spec.moveTo.path", "--path"},
                 {"spec.moveTo.type", "--to"},
                 {"spec.moveTo", "the new storage"}};
    DF_BUF struct df_buf text = DF_BUF_INIT(sizeof(err->message));
    const char *file = df_arg(&cli->args, "filename");
    for (const char *at = why->message; *at;) {
        size_t i = 0, n = strcspn(at, "s");
        while (i < DF_ARRAY_SIZE(words) && !df_starts_with(at, words[i].path))
            i++;
        if (i == DF_ARRAY_SIZE(words)) {
            n = n ? n : 1;
            (void)df_buf_add(&text, at, n);
        } else if (file && at[strlen("spec.moveTo")] == '.') {
            n = strlen("spec.moveTo.");
            (void)df_buf_addf(&text, "-f %s: ", file);
        } else {
            n = strlen(words[i].path);
            (void)df_buf_adds(&text, words[i].option);
        }
        at += n;
    }
    int result = df_err_pass(err, why);
    if (df_buf_check(&text, NULL) == 0)
        df_copy(err->message, sizeof(err->message), df_buf_str(&text));
    return result;
}

static int request(struct df_cli *cli, const char *executor, cJSON *target, struct df_err *err)
{
    DF_CLOSE int signals_fd = -1;
    DF_SECRET_JSON cJSON *body = cJSON_CreateObject();
    struct df_err why = {0};
    if (df_json_put(body, err, DF_ITEM("moveTo", target),
                    DF_STR("action", df_action_name(DF_ACTION_STATE))) < 0 ||
        df_json_append_str(df_json_array_at(body, "command"), "migrate", err) < 0 ||
        df_signals_open(&signals_fd, err) < 0)
        return -1;
    int code = df_request_state_run(cli, executor, body, signals_fd, &why);
    if (code >= 0)
        return code;
    if (!df_streq(why.reason, "AlreadyThere"))
        return say_in_own_words(cli, &why, err);
    df_cli_note("%s", why.message);
    return 0;
}

static int confirm(struct df_cli *cli, const char *executor, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, "state", "former", NULL);
    DF_FREE char *line = df_strf("The earlier place of the state of %s is forgotten. What it holds "
                                 "is left as it is.\n",
                                 executor);
    if (df_check_alloc(line, err) < 0 || df_cli_call(cli, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    return df_cli_print(line, err);
}

static bool has_target(const struct df_args *args)
{
    return df_arg_given(args, "to") || df_arg_given(args, "filename") ||
           df_arg_given(args, "path") || df_arg_given(args, "setting");
}

int df_cmd_state_migrate(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL;
    bool back = df_arg_given(&cli->args, "back"), confirms = df_arg_given(&cli->args, "confirm");
    cJSON *target = NULL;
    if (back + confirms + has_target(&cli->args) > 1)
        return df_fail(err, DF_ERR_USER, "--confirm, --back and a new storage exclude each other");
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0)
        return -1;
    if (confirms)
        return confirm(cli, executor, err);
    if ((back ? former_target(cli, executor, &target, err) : given_target(cli, &target, err)) < 0)
        return -1;
    return request(cli, executor, target, err);
}
