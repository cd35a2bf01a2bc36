/* dayfly get, with and without --watch: fetches and prints a group of documents. */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/strs.h"
#include "spawner/cli/get.h"

bool df_get_wants_document(const struct df_cli *cli)
{
    return df_streq(df_cli_output(cli), "json") || df_streq(df_cli_output(cli), "yaml");
}

bool df_get_wants_lines(const struct df_cli *cli)
{
    return df_streq(df_cli_output(cli), "jsonl") || df_streq(df_cli_output(cli), "csv");
}

const char *const df_get_audit_options[] = {"actor",   "action", "kind",  "name",
                                            "outcome", "since",  "until", NULL};

/* A duration before now becomes a time. */
static const char *time_of(const char *value, char out[DF_TIME_LEN])
{
    int64_t ago_us = 0;
    if (df_duration_parse(value, &ago_us, NULL) < 0)
        return value;
    return df_time_format(df_real_us() - ago_us, out);
}

static void add_query(struct df_buf *path, const char *name, const char *value)
{
    DF_FREE char *escaped = df_url_escape(value);
    (void)df_buf_addf(path, "%c%s=", strchr(df_buf_str(path), '?') ? '&' : '?', name);
    (void)df_buf_adds(path, escaped);
}

/* The states too, if the service can filter by them. */
static void add_choice(const struct df_cli *cli, const struct df_get *get,
                       const struct df_shown *kind, struct df_buf *path)
{
    DF_BUF struct df_buf states = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    const char *name = NULL, *creator = df_arg(&cli->args, "creator");
    if (df_choice_query(&get->choice, kind, &name, &states))
        add_query(path, name, df_buf_str(&states));
    if (get->selector)
        add_query(path, "label", get->selector);
    if (creator)
        add_query(path, "creator", creator);
}

int df_get_path(const struct df_cli *cli, const struct df_get *get, const struct df_shown *kind,
                char **ret, struct df_err *err)
{
    DF_BUF struct df_buf path = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_FREE char *list = get->executor ? df_path("executors", get->executor, kind->plural, NULL)
                                       : df_path(kind->plural, NULL);
    (void)df_buf_adds(&path, list);
    add_choice(cli, get, kind, &path);
    for (const char *const *name = df_get_audit_options; *name; name++) {
        char at[DF_TIME_LEN];
        const char *value = df_arg(&cli->args, *name);
        bool is_time = df_streq(*name, "since") || df_streq(*name, "until");
        if (value)
            add_query(&path, *name, is_time ? time_of(value, at) : value);
    }
    if (df_get_wants_lines(cli) && df_streq(kind->plural, "audit"))
        add_query(&path, "limit", "1000");
    return df_check_alloc(*ret = df_buf_take(&path), err);
}

/* ---- fetching ---- */

static int fetch_list(struct df_cli *cli, const struct df_get *get, const struct df_shown *kind,
                      cJSON **ret, struct df_err *err)
{
    const struct df_choice *c = &get->choice;
    bool here = c->states || c->name_space || c->sort_by; /* needs all pages */
    DF_FREE char *path = NULL;
    if (df_get_path(cli, get, kind, &path, err) < 0)
        return -1;
    return df_cli_list_some(cli, path, here ? 0 : c->limit, ret, err);
}

/* Fetches a named document. 1: it does not exist; the others are fetched all the same. */
static int fetch_one(struct df_cli *cli, const struct df_named *named, cJSON *items,
                     struct df_err *err)
{
    cJSON *doc = NULL;
    if (df_cli_get(cli, named->kind, named->name, &doc, err) < 0)
        return err->cls == DF_ERR_NOT_FOUND ? 1 : -1;
    return df_json_append(items, doc, err);
}

static int fetch_named(struct df_cli *cli, struct df_get *get, size_t from, size_t n, cJSON *items,
                       struct df_err *err)
{
    for (size_t i = from; i < from + n; i++) {
        int missing = fetch_one(cli, &get->named[i], items, err);
        if (missing < 0 || (missing && get->count == 1))
            return -1;
        if (missing && !get->quiet)
            df_cli_note("%s", err->message);
        get->missing = get->missing || missing;
    }
    return 0;
}

size_t df_get_group(const struct df_get *get, size_t from)
{
    size_t n = 1;
    while (get->named[from].name && from + n < get->count && get->named[from + n].name &&
           get->named[from + n].kind == get->named[from].kind)
        n++;
    return n;
}

int df_get_fetch(struct df_cli *cli, struct df_get *get, size_t from, size_t n, cJSON **ret,
                 struct df_err *err)
{
    const struct df_shown *kind = get->named[from].kind;
    DF_JSON cJSON *items = NULL;
    if (!get->named[from].name) {
        if (fetch_list(cli, get, kind, &items, err) < 0)
            return -1;
    } else {
        if (!(items = cJSON_CreateArray()))
            return df_fail_oom(err);
        if (fetch_named(cli, get, from, n, items, err) < 0)
            return -1;
    }
    if (df_choose(&get->choice, kind, items, err) < 0)
        return -1;
    *ret = DF_TAKE(items);
    return 0;
}

/* ---- printing ---- */

static int print_names(const struct df_shown *kind, const cJSON *items, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, items) {
        const char *name = df_json_str(item, kind->id);
        (void)df_buf_addf(&out, "%s/%s\n", kind->singular, name ? name : "");
    }
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

int df_get_print(const struct df_cli *cli, const struct df_shown *kind, const cJSON *items,
                 bool header, struct df_table_shape *shape, struct df_err *err)
{
    if (df_streq(df_cli_output(cli), "name"))
        return print_names(kind, items, err);
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    const struct df_shown_options o = {.wide = df_streq(df_cli_output(cli), "wide"),
                                       .header = header,
                                       .now_us = df_real_us(),
                                       .shape = shape};
    if (df_shown_table(kind, items, &o, &out, err) < 0)
        return -1;
    return df_cli_print(df_buf_str(&out), err);
}
