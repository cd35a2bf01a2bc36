/* dayfly get: lists and single documents, as a table, JSON, YAML or names. */
#include <poll.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/kinds.h"

#define WATCH_POLL_MS 500

static int print_names(const struct df_shown *kind, const cJSON *items, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, items) {
        const char *name = df_json_str(item, kind->id);
        (void)df_buf_addf(&out, "%s\n", name ? name : "");
    }
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

static int print_table(const struct df_cli *cli, const struct df_shown *kind, const cJSON *items,
                       bool header, struct df_err *err)
{
    if (header && cJSON_GetArraySize(items) == 0) {
        df_cli_note("no %s", kind->plural);
        return 0;
    }
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    bool wide = df_streq(df_cli_output(cli), "wide");
    if (df_shown_table(kind, items, wide, header, df_real_us(), &out, err) < 0)
        return -1;
    return df_cli_print(df_buf_str(&out), err);
}

/* The items go over into the printed document. */
static int print_document(const struct df_cli *cli, cJSON *items, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateObject();
    if (df_json_add(list, "items", items, err) < 0)
        return -1;
    return df_cli_print_json(cli, list, err);
}

static bool wants_document(const struct df_cli *cli)
{
    return df_streq(df_cli_output(cli), "json") || df_streq(df_cli_output(cli), "yaml");
}

/* items: taken over. */
static int print_items(const struct df_cli *cli, const struct df_shown *kind, cJSON *items,
                       bool header, struct df_err *err)
{
    if (wants_document(cli))
        return print_document(cli, items, err);
    int result = df_streq(df_cli_output(cli), "name") ? print_names(kind, items, err)
                                                      : print_table(cli, kind, items, header, err);
    cJSON_Delete(items);
    return result;
}

static int get_one(struct df_cli *cli, const struct df_shown *kind, const char *name,
                   struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_cli_get(cli, kind, name, &doc, err) < 0)
        return -1;
    if (wants_document(cli))
        return df_cli_print_json(cli, doc, err);
    cJSON *items = cJSON_CreateArray();
    if (df_json_append(items, DF_TAKE(doc), err) < 0) {
        cJSON_Delete(items);
        return -1;
    }
    return print_items(cli, kind, items, true, err);
}

static int list_path(const struct df_cli *cli, const struct df_shown *kind, char **ret,
                     struct df_err *err)
{
    const char *executor = df_arg(&cli->args, "executor");
    if (executor && !df_streq(kind->plural, "runs"))
        return df_fail(err, DF_ERR_USER, "--executor is for runs");
    *ret = executor ? df_path("executors", executor, "runs", NULL) : df_path(kind->plural, NULL);
    return *ret ? 0 : df_fail_oom(err);
}

/* Takes out of items what stands in seen with the same resourceVersion; seen learns the rest. */
static int keep_changed(const struct df_shown *kind, cJSON *items, cJSON *seen, struct df_err *err)
{
    for (cJSON *item = items->child, *next; item; item = next) {
        next = item->next;
        const char *name = df_json_str(item, kind->id);
        const char *version = df_json_str(item, "metadata.resourceVersion");
        if (!name)
            continue;
        const cJSON *old = cJSON_GetObjectItemCaseSensitive(seen, name);
        if (old && df_streq(old->valuestring, version ? version : name))
            cJSON_Delete(cJSON_DetachItemViaPointer(items, item));
        else if (df_json_set_str(seen, name, version ? version : name, err) < 0)
            return -1;
    }
    return 0;
}

static int watch(struct df_cli *cli, const struct df_shown *kind, const char *path,
                 struct df_err *err)
{
    DF_JSON cJSON *seen = cJSON_CreateObject();
    if (!seen)
        return df_fail_oom(err);
    for (bool first = true;; first = false) {
        cJSON *items = NULL;
        if (df_cli_list(cli, path, &items, err) < 0)
            return -1;
        if (keep_changed(kind, items, seen, err) < 0) {
            cJSON_Delete(items);
            return -1;
        }
        if (!items->child && !first)
            cJSON_Delete(items);
        else if (print_items(cli, kind, items, first, err) < 0)
            return -1;
        (void)poll(NULL, 0, WATCH_POLL_MS);
    }
}

int df_cmd_get(struct df_cli *cli, struct df_err *err)
{
    const struct df_shown *kind = NULL;
    if (df_shown_find(df_cli_word(cli, 0), &kind, err) < 0)
        return -1;
    const char *name = df_cli_word(cli, 1);
    bool watching = df_arg_given(&cli->args, "watch");
    if (name && watching)
        return df_fail(err, DF_ERR_USER, "--watch is for lists; `dayfly logs -f RUN` follows one");
    if (name)
        return get_one(cli, kind, name, err);
    DF_FREE char *path = NULL;
    if (list_path(cli, kind, &path, err) < 0)
        return -1;
    if (watching)
        return watch(cli, kind, path, err);
    cJSON *items = NULL;
    if (df_cli_list(cli, path, &items, err) < 0)
        return -1;
    return print_items(cli, kind, items, true, err);
}
