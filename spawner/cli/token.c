/* dayfly token create, list, revoke: the personal tokens of the caller, at the service. */
#include "spawner/cli/token.h"

#include "common/base/clock.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/kinds.h"

void df_token_executors(const cJSON *token, struct df_buf *out)
{
    const cJSON *names = df_json_at(token, "on.names"),
                *labels = df_json_at(token, "on.matchLabels");
    const cJSON *all = names ? names : labels, *one;
    cJSON_ArrayForEach (one, all) {
        (void)df_buf_adds(out, one == all->child ? "" : ", ");
        (void)df_buf_addf(out, "%s%s%s", names ? "" : one->string, names ? "" : "=",
                          cJSON_IsString(one) ? one->valuestring : "");
    }
    if (!all)
        (void)df_buf_adds(out, "all");
}

/* ---- create ---- */

/* Adds the words of "a,b" to a list, or of "k=v,l=w" to an object. */
static int add_words(const char *text, cJSON *to, const char *option, struct df_err *err)
{
    DF_FREE char *copy = strdup(text);
    char *at = copy;
    if (!copy || !to)
        return df_fail_oom(err);
    for (char *word; (word = strsep(&at, ","));) {
        char *value = strchr(word, '=');
        if (cJSON_IsArray(to)) {
            if (df_json_append_str(to, word, err) < 0)
                return -1;
            continue;
        }
        if (!value || value == word || value[-1] == '!')
            return df_fail(err, DF_ERR_USER, "--%s %s: \"%.64s\" is not LABEL=VALUE", option, text,
                           word);
        *value = '\0';
        if (df_json_set_str(to, word, value + 1, err) < 0)
            return -1;
    }
    return 0;
}

static int make_body(const struct df_cli *cli, cJSON *body, struct df_err *err)
{
    const char *verbs = df_arg(&cli->args, "verbs"), *names = df_arg(&cli->args, "executor");
    const char *labels = df_arg(&cli->args, "selector"), *preset = df_arg(&cli->args, "preset");
    if (!verbs == !preset)
        return df_fail(err, DF_ERR_USER,
                       "what may the token? either --preset read (plan, write, approver, admin) or "
                       "--verbs view,plan");
    if (names && labels)
        return df_fail(err, DF_ERR_USER, "--executor and --selector: give one of them");
    if (df_json_put(body, err, DF_STR("name", df_cli_word(cli, 0)), DF_STR("preset", preset),
                    DF_STR("expires", df_arg(&cli->args, "expires"))) < 0)
        return -1;
    if (verbs && add_words(verbs, df_json_array_at(body, "verbs"), "verbs", err) < 0)
        return -1;
    if (!names && !labels)
        return 0;
    cJSON *on = df_json_object_at(body, "on");
    return names ? add_words(names, df_json_array_at(on, "names"), "executor", err)
                 : add_words(labels, df_json_object_at(on, "matchLabels"), "selector", err);
}

static int print_made(const struct df_cli *cli, const cJSON *made, struct df_err *err)
{
    const char *token = df_json_str(made, "token");
    DF_BUF struct df_buf executors = DF_BUF_INIT(DF_LIMIT_HTTP_BODY);
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, made, err);
    char *text =
        token ? df_strf(cli->out_tty ? "Token, shown this once:\n  %s\n" : "%s\n", token) : NULL;
    if (df_cli_print(text, err) < 0) {
        df_str_wipe(&text);
        return -1;
    }
    df_str_wipe(&text);
    df_token_executors(made, &executors);
    df_cli_note("token/%s is good until %s, for executors: %s", df_cli_word(cli, 0),
                df_json_str(made, "expiresAt"), df_buf_str(&executors));
    return 0;
}

int df_cmd_token_create(struct df_cli *cli, struct df_err *err)
{
    DF_JSON cJSON *body = cJSON_CreateObject();
    DF_SECRET_JSON cJSON *made = NULL;
    DF_FREE char *path = df_path("tokens", NULL);
    if (df_check_alloc(body, err) < 0 || make_body(cli, body, err) < 0 ||
        df_cli_call(cli, "POST", path, body, &made, err) < 0)
        return -1;
    return print_made(cli, made, err);
}

/* ---- list, revoke ---- */

static char *path_of(const struct df_cli *cli, const char *name)
{
    const char *of = df_arg(&cli->args, "of");
    DF_FREE char *path = df_path("tokens", name, NULL), *escaped = df_url_escape(of ? of : "");
    return path && escaped ? df_strf(of ? "%s?of=%s" : "%s", path, escaped) : NULL;
}

static const struct df_column columns[] = {{"NAME", "name", DF_CELL_TEXT, false},
                                           {"VERBS", "verbs", DF_CELL_LIST, false, 2},
                                           {"EXECUTORS", "executors", DF_CELL_TEXT, false, 3},
                                           {"EXPIRES", "expiresAt", DF_CELL_TEXT, false},
                                           {"USED", "lastUsedAt", DF_CELL_AGE, false, 1},
                                           {0}};
static const struct df_shown shown = {"tokens", "token", "", "name", NULL, columns, NULL};

static int print_list(const struct df_cli *cli, cJSON *items, struct df_err *err)
{
    struct df_table_shape shape = df_cli_table_shape(cli);
    const struct df_shown_options o = {.header = true, .now_us = df_real_us(), .shape = &shape};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    cJSON *item;
    cJSON_ArrayForEach (item, items) {
        DF_BUF struct df_buf executors = DF_BUF_INIT(DF_LIMIT_HTTP_BODY);
        df_token_executors(item, &executors);
        if (df_json_set_str(item, "executors", df_buf_str(&executors), err) < 0)
            return -1;
    }
    if (!items->child)
        df_cli_note("no personal tokens");
    else if (df_shown_table(&shown, items, &o, &out, err) < 0)
        return -1;
    return df_cli_print(df_buf_str(&out), err);
}

int df_cmd_token_list(struct df_cli *cli, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    DF_FREE char *path = path_of(cli, NULL);
    if (df_cli_call(cli, "GET", path, NULL, &doc, err) < 0)
        return -1;
    cJSON *items = df_json_array_at(doc, "items");
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, doc, err);
    return items ? print_list(cli, items, err) : df_fail_oom(err);
}

int df_cmd_token_revoke(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL;
    bool all = df_arg_given(&cli->args, "all");
    if (all == (df_cli_word(cli, 0) != NULL))
        return df_fail(err, DF_ERR_USER, "name the token to revoke, or all of them with --all");
    if (!all && df_cli_name(cli, 0, "token", &name, err) < 0)
        return -1;
    DF_FREE char *path = path_of(cli, name);
    if (df_cli_call(cli, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    return df_cli_printf(err, "%s%s revoked\n", all ? "all tokens" : "token/", all ? "" : name);
}
