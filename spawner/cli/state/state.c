/*
 * dayfly state list, show, rollback, lock, unlock: the managed state of an executor. One section
 * for each; the commands are at the end of their sections.
 */
#include <pwd.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/run.h"
#include "spawner/cli/text.h"
#include "spawner/model/model.h"

/* GET of executors/<executor>/state/<what>. */
static int get_state(struct df_cli *cli, const char *what, cJSON **ret, struct df_err *err)
{
    const char *executor = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0)
        return -1;
    DF_FREE char *path = df_path("executors", executor, "state", what, NULL);
    return df_cli_call(cli, "GET", path, NULL, ret, err);
}

/* ---- list ---- */

static const char *number_at(const cJSON *item, const char *key, char out[DF_SHORT_TEXT])
{
    int64_t n = df_json_int(item, key, -1);
    (void)snprintf(out, DF_SHORT_TEXT, "%lld", (long long)n);
    return n < 0 ? NULL : out;
}

static void add_version(struct df_table *t, const cJSON *v)
{
    char number[DF_SHORT_TEXT], age[DF_SHORT_TEXT];
    int64_t us = df_text_span(v, "createdAt", NULL, df_real_us());
    df_table_add(t, number_at(v, "version", number));
    df_table_add(t, number_at(v, "serial", number));
    df_table_add(t, number_at(v, "size", number));
    df_table_add(t, us < 0 ? NULL : df_text_age(us, age));
    df_table_add(t, df_json_str(v, "run"));
    df_table_add(t, df_json_str(v, "actor"));
    df_table_add(t, number_at(v, "rollbackOf", number));
}

/* Whoever locks writes these words. */
static void add_lock(const cJSON *lock, struct df_buf *out)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    const char *who = df_json_str(lock, "Who"), *what = df_json_str(lock, "Operation");
    const char *since = df_json_str(lock, "Created"), *info = df_json_str(lock, "Info");
    if (!lock)
        return;
    (void)df_buf_addf(&text, "Locked by %s for %s since %s%s%s\n", who ? who : "somebody",
                      df_str_empty(what) ? "an unnamed operation" : what,
                      since ? since : "an unknown time", df_str_empty(info) ? "" : ": ",
                      info ? info : "");
    df_text_safe(out, df_buf_str(&text), text.len);
}

static int print_versions(const struct df_cli *cli, const cJSON *versions, const cJSON *lock,
                          struct df_err *err)
{
    static const char *const titles[] = {"VERSION", "SERIAL", "BYTES",      "AGE",
                                         "RUN",     "BY",     "ROLLBACK OF"};
    struct df_table_shape shape = df_cli_table_shape(cli);
    DF_TABLE struct df_table t = {.columns = DF_ARRAY_SIZE(titles), .shape = &shape};
    for (size_t i = 0; i < DF_ARRAY_SIZE(titles); i++)
        df_table_add(&t, titles[i]);
    const cJSON *v = NULL;
    cJSON_ArrayForEach (v, versions) {
        add_version(&t, v);
    }
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (!versions->child)
        df_cli_note("no state yet");
    else if (df_table_print(&t, 0, &out, err) < 0)
        return -1;
    add_lock(lock, &out);
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

static int get_executor(struct df_cli *cli, const char *name, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, NULL);
    return df_cli_call(cli, "GET", path, NULL, ret, err);
}

/* why: of the service, and says where the state is. */
static int list_elsewhere(struct df_cli *cli, const struct df_err *why, struct df_err *err)
{
    const char *executor = df_cli_word(cli, 0);
    DF_JSON cJSON *doc = NULL;
    if (get_executor(cli, executor, &doc, err) < 0)
        return -1;
    return df_storage_has_history(doc) ? df_state_list_elsewhere(cli, executor, err)
                                       : df_err_pass(err, why);
}

int df_cmd_state_list(struct df_cli *cli, struct df_err *err)
{
    DF_JSON cJSON *versions = NULL, *lock = NULL;
    struct df_err why = {0};
    if (get_state(cli, "versions", &versions, &why) < 0)
        return df_streq(why.reason, "StateElsewhere") ? list_elsewhere(cli, &why, err)
                                                      : df_err_pass(err, &why);
    if (get_state(cli, "lock", &lock, err) < 0)
        return -1;
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, versions, err);
    return print_versions(cli, df_json_at(versions, "items"), lock, err);
}

/* ---- versions ---- */

static int version_number(const char *text, int64_t *ret, struct df_err *err)
{
    if (df_parse_i64(text, 1, INT64_MAX, ret, err) < 0)
        return df_err_wrap(err, "version \"%s\"", text);
    return 0;
}

int df_cmd_state_show(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL, *version = df_arg(&cli->args, "version");
    int64_t number = 0;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0 ||
        (version && version_number(version, &number, err) < 0) || df_cli_connect(cli, err) < 0)
        return -1;
    DF_FREE char *path = version
                             ? df_path("executors", executor, "state", "versions", version, NULL)
                             : df_path("executors", executor, "state", NULL);
    return df_client_download(cli->client, path, STDOUT_FILENO, err);
}

static int rollback_managed(struct df_cli *cli, const char *executor, const char *version,
                            struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, "state", "rollback", NULL);
    DF_JSON cJSON *body = cJSON_CreateObject();
    int64_t number = 0;
    if (version_number(version, &number, err) < 0 ||
        df_json_add_num(body, "version", (double)number, err) < 0 ||
        df_cli_call(cli, "POST", path, body, NULL, err) < 0)
        return -1;
    return df_cli_printf(err,
                         "The state of %s is that of version %lld again, as a new version; "
                         "a dry-run shows what it means.\n",
                         executor, (long long)number);
}

/* A bucket names its versions itself, some stores with a number; who has the state says whose the
 * word is. */
int df_cmd_state_rollback(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL, *version = df_cli_word(cli, 1);
    DF_JSON cJSON *doc = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0 ||
        get_executor(cli, executor, &doc, err) < 0)
        return -1;
    return df_storage_is_managed(doc) ? rollback_managed(cli, executor, version, err)
                                      : df_state_rollback_elsewhere(cli, executor, version, err);
}

/* ---- lock ---- */

static int who_am_i(char out[256])
{
    char host[128] = "";
    const struct passwd *user = getpwuid(geteuid());
    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = '\0';
    return snprintf(out, 256, "%s@%s", user ? user->pw_name : "unknown", host);
}

/* *ret: lock information in the format of tofu. */
static int lock_info(const struct df_cli *cli, cJSON **ret, struct df_err *err)
{
    char id[37], who[256];
    DF_JSON cJSON *info = cJSON_CreateObject();
    const char *reason = df_arg(&cli->args, "reason");
    (void)who_am_i(who);
    if (df_uuid(id, err) < 0 ||
        df_json_put(info, err, DF_STR("ID", id), DF_STR("Operation", "dayfly state lock"),
                    DF_STR("Info", reason ? reason : ""), DF_STR("Who", who),
                    DF_STR("Version", DF_VERSION), DF_TIME("Created", df_real_us()),
                    DF_STR("Path", "")) < 0)
        return -1;
    *ret = DF_TAKE(info);
    return 0;
}

int df_cmd_state_lock(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0)
        return -1;
    DF_FREE char *path = df_path("executors", executor, "state", NULL);
    DF_JSON cJSON *info = NULL;
    if (lock_info(cli, &info, err) < 0 || df_cli_call(cli, "LOCK", path, info, NULL, err) < 0)
        return -1;
    return df_cli_printf(err, "The state of %s is locked until `dayfly state unlock %s`.\n",
                         executor, executor);
}

/* Fails if an ID is given and the lock has another one: only the named lock may be released. */
static int check_lock(const char *executor, const cJSON *lock, const char *id, struct df_err *err)
{
    const char *held = df_json_str(lock, "ID");
    if (!id || !held || df_streq(held, id))
        return 0;
    return df_fail(err, DF_ERR_CONFLICT,
                   "the state of %s is locked under the ID %s, not %s; that lock stays", executor,
                   held, id);
}

int df_cmd_state_unlock(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL, *id = df_cli_word(cli, 1);
    DF_JSON cJSON *lock = NULL;
    struct df_err why = {0};
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0)
        return -1;
    if (get_state(cli, "lock", &lock, &why) < 0) {
        return df_streq(why.reason, "StateElsewhere")
                   ? df_state_unlock_elsewhere(cli, executor, id, err)
                   : df_err_pass(err, &why);
    }
    if (check_lock(executor, lock, id, err) < 0)
        return -1;
    DF_FREE char *path = df_path("executors", executor, "state", "lock", NULL);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (df_cli_call(cli, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    add_lock(lock, &text);
    (void)df_buf_adds(&text, text.len ? "That lock is released.\n" : "It was not locked.\n");
    return df_buf_check(&text, err) < 0 ? -1 : df_cli_print(df_buf_str(&text), err);
}
