/*
 * What `get` and `describe` show: the kinds, then those things that are no documents; the text of
 * cells, and the requests that fetch documents.
 */
#include "spawner/cli/kinds.h"
#include "spawner/cli/policies.h"
#include "spawner/cli/task_words.h"

#include "common/base/clock.h"
#include "common/changes/changes.h"
#include "spawner/cli/text.h"
#include "spawner/model/accepted.h"
#include "spawner/model/errored_states.h"
#include "spawner/model/labels.h"
#include "spawner/model/model.h"

static const struct df_column secret_columns[] = {
    {"NAME", "name", DF_CELL_TEXT, false},
    {"KEYS", "keys", DF_CELL_LIST, false},
    {"EXECUTORS", "executors", DF_CELL_LIST, false, 1},
    {"CHANGED", "updatedAt", DF_CELL_AGE, false, 3},
    {"SOURCE", "source", DF_CELL_TEXT, false, 2},
    {"OWNER", "owner", DF_CELL_TEXT, true},
    {"MESSAGE", "message", DF_CELL_TEXT, true},
    {0}};

static const struct df_column audit_columns[] = {{"AT", "at", DF_CELL_TEXT, false},
                                                 {"ACTOR", "actor", DF_CELL_TEXT, false},
                                                 {"TOKEN", "token", DF_CELL_TEXT, true},
                                                 {"ROLE", "role", DF_CELL_TEXT, true},
                                                 {"ACTION", "action", DF_CELL_TEXT, false},
                                                 {"KIND", "kind", DF_CELL_TEXT, false, 2},
                                                 {"NAME", "name", DF_CELL_TEXT, false},
                                                 {"OUTCOME", "outcome", DF_CELL_TEXT, false, 1},
                                                 {"DETAIL", "detail", DF_CELL_TEXT, true},
                                                 {"ADDRESS", "address", DF_CELL_TEXT, true},
                                                 {"EXECUTOR", "executor", DF_CELL_TEXT, true},
                                                 {"SEQUENCE", "sequence", DF_CELL_TEXT, true},
                                                 {0}};

static const struct df_column engine_columns[] = {{"NAME", "name", DF_CELL_TEXT, false},
                                                  {"TAKES", "takes", DF_CELL_LIST, false},
                                                  {"AVAILABLE", "available", DF_CELL_TEXT, false},
                                                  {"MESSAGE", "message", DF_CELL_TEXT, false, 1},
                                                  {0}};

/* What is not a document. */
static const struct df_shown others[] = {
    {"secrets", "secret", "secrets|secret", "name", NULL, secret_columns, NULL},
    {"audit", "audit", "audit", "at", NULL, audit_columns, NULL},
    {"engines", "engine", "engines|engine", "name", NULL, engine_columns, NULL},
};

const struct df_shown *df_shown_nth(size_t n)
{
    if (n < DF_KIND_COUNT)
        return &df_kind_row((enum df_kind)n)->shown;
    n -= DF_KIND_COUNT;
    return n < DF_ARRAY_SIZE(others) ? &others[n] : NULL;
}

const struct df_shown *df_shown_of(const char *plural)
{
    const struct df_shown *kind;
    for (size_t i = 0; (kind = df_shown_nth(i)); i++)
        if (df_streq(kind->plural, plural))
            return kind;
    DF_BUG("there is no kind %s", plural);
}

const struct df_kind_row *df_kind_called(const char *typed)
{
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        if (df_streq(df_kind_name((enum df_kind)kind), typed))
            return df_kind_row((enum df_kind)kind);
    return NULL;
}

const struct df_kind_row *df_kind_shown(const struct df_shown *shown)
{
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        if (&df_kind_row((enum df_kind)kind)->shown == shown)
            return df_kind_row((enum df_kind)kind);
    return NULL;
}

static int fail_unknown(const char *typed, struct df_err *err)
{
    const struct df_shown *kind;
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_KIB);
    for (size_t i = 0; (kind = df_shown_nth(i)); i++) {
        df_nearest(typed, kind->plural, &best, &distance);
        (void)df_buf_addf(&names, "%s%s",
                          !i                    ? ""
                          : df_shown_nth(i + 1) ? ", "
                                                : " and ",
                          kind->plural);
    }
    if (best)
        return df_fail(err, DF_ERR_USER, "unknown kind \"%s\"; did you mean %s?", typed, best);
    return df_fail(err, DF_ERR_USER, "unknown kind \"%s\"; there are %s", typed,
                   df_buf_str(&names));
}

int df_shown_find(const char *typed, const struct df_shown **ret, struct df_err *err)
{
    const struct df_shown *kind;
    for (size_t i = 0; (kind = df_shown_nth(i)); i++) {
        if (df_args_word(kind->names, typed)) {
            *ret = kind;
            return 0;
        }
    }
    return fail_unknown(typed, err);
}

/* ---- cells ---- */

static void add_list(struct df_buf *out, const cJSON *list)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, list) {
        if (cJSON_IsString(item))
            (void)df_buf_addf(out, "%s%s", out->len ? "," : "", item->valuestring);
    }
}

static void add_keys(struct df_buf *out, const cJSON *object)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, object) {
        (void)df_buf_addf(out, "%s%s", out->len ? "," : "", member->string ? member->string : "");
    }
}

static void add_labels(struct df_buf *out, const cJSON *labels)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, labels) {
        bool ours = member->string && df_starts_with(member->string, DF_LABEL_PREFIX);
        if (member->string && cJSON_IsString(member) && !ours)
            (void)df_buf_addf(out, "%s%s=%s", out->len ? "," : "", member->string,
                              member->valuestring);
    }
}

static void add_names(struct df_buf *out, const cJSON *list)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, list) {
        const char *name = df_json_str(item, "name");
        if (name)
            (void)df_buf_addf(out, "%s%s", out->len ? "," : "", name);
    }
}

static void add_scalar(struct df_buf *out, const cJSON *value)
{
    if (cJSON_IsString(value)) {
        (void)df_buf_adds(out, value->valuestring);
    } else if (value && !cJSON_IsNull(value)) {
        DF_FREE char *text = df_json_print(value);
        (void)df_buf_adds(out, text ? text : "");
    }
}

static void add_changes(struct df_buf *out, const cJSON *summary)
{
    struct df_changes changes;
    if (!cJSON_IsObject(summary))
        return;
    (void)df_changes_read(summary, &changes, NULL); /* of a service: a count that is none is 0 */
    df_changes_column(&changes, out);
}

/* Of an executor that has run, the word says what the last run did, also if an edit is refused. */
static void add_status(struct df_buf *out, const cJSON *executor)
{
    const char *status = df_json_str(executor, "status.status");
    (void)df_buf_adds(out, status ? status : "");
    if (df_doc_is_refused(executor) && !df_streq(status, "refused"))
        (void)df_buf_adds(out, ", edit refused");
    if (df_json_at(executor, "status.erroredStates"))
        (void)df_buf_adds(out, ", errored state");
}

static void add_errored(struct df_buf *out, const cJSON *executor)
{
    char words[256];
    df_errored_words(executor, words, sizeof(words));
    if (words[0])
        (void)df_buf_addf(out, "%s: runs are refused until `dayfly state push-errored %s`", words,
                          df_json_str(executor, "metadata.name"));
}

static void add_cell(struct df_buf *out, const struct df_column *column, const cJSON *item,
                     int64_t now_us)
{
    const cJSON *value = df_json_at(item, column->path);
    char text[DF_SHORT_TEXT];
    const char *reason;
    int64_t span = 0;
    switch (column->cell) {
    case DF_CELL_TEXT:
        add_scalar(out, value);
        break;
    case DF_CELL_AGE:
        span = df_text_span(item, column->path, NULL, now_us);
        (void)df_buf_adds(out, span < 0 ? "" : df_text_age(span, text));
        break;
    case DF_CELL_CHANGES:
        add_changes(out, value);
        break;
    case DF_CELL_LIST:
        add_list(out, value);
        break;
    case DF_CELL_KEYS:
        add_keys(out, value);
        break;
    case DF_CELL_LABELS:
        add_labels(out, value);
        break;
    case DF_CELL_NAMES:
        add_names(out, value);
        break;
    case DF_CELL_SHORT:
        (void)df_buf_addf(out, "%.12s", cJSON_IsString(value) ? value->valuestring : "");
        break;
    case DF_CELL_STATUS:
        add_status(out, item);
        break;
    case DF_CELL_ERRORED:
        add_errored(out, item);
        break;
    case DF_CELL_POLICIES:
        df_policies_count(value, out);
        break;
    case DF_CELL_OWNER:
        df_text_owner(value, out);
        break;
    case DF_CELL_REASON:
        reason = df_json_str(value, "reason");
        (void)df_buf_adds(out, reason ? reason : df_json_at(value, "waiting") ? "(waits)" : "");
        break;
    case DF_CELL_SPAN:
        span = df_text_span(value, "startedAt", "finishedAt", now_us);
        (void)df_buf_adds(out, span < 0 ? "" : df_text_duration(span, text));
        break;
    }
}

static void add_row(struct df_table *t, const struct df_column *columns, const cJSON *item,
                    bool wide, int64_t now_us)
{
    for (const struct df_column *c = columns; c->title; c++) {
        if (c->wide && !wide)
            continue;
        DF_BUF struct df_buf cell = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
        if (item)
            add_cell(&cell, c, item, now_us);
        df_table_add(t, item ? df_buf_str(&cell) : c->title);
    }
}

int df_shown_table(const struct df_shown *kind, const cJSON *items,
                   const struct df_shown_options *o, struct df_buf *out, struct df_err *err)
{
    DF_TABLE struct df_table t = {.shape = o->shape};
    for (const struct df_column *c = kind->columns; c->title; c++) {
        if (c->wide && !o->wide)
            continue;
        if (o->shape && t.columns < DF_TABLE_COLUMNS)
            o->shape->spare[t.columns] = c->spare;
        t.columns++;
    }
    if (o->header)
        add_row(&t, kind->columns, NULL, o->wide, o->now_us);
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, items) {
        add_row(&t, kind->columns, item, o->wide, o->now_us);
    }
    return df_table_print(&t, 0, out, err);
}

/* The length of the longest usual word in a column with this title. */
static size_t width_of(const struct df_column *column)
{
    static const struct {
        const char *title;
        size_t width;
    } widths_by_title[] = {{"STATE", 11}, {"STATUS", 11}, {"PHASE", 15}, {"REASON", 16},
                           {"PLAN", 10},  {"TOOK", 10},   {"AGE", 4}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(widths_by_title); i++)
        if (df_streq(widths_by_title[i].title, column->title))
            return widths_by_title[i].width;
    return 0;
}

void df_shown_room(const struct df_shown *kind, bool wide, struct df_table_shape *shape)
{
    size_t n = 0;
    for (const struct df_column *c = kind->columns; c->title && n < DF_TABLE_COLUMNS; c++)
        if (wide || !c->wide)
            shape->widths[n++] = width_of(c);
}

/* A row for each line of the text; the title stands before the first. No text: no row. */
static void add_lines(struct df_table *t, const char *title, const char *text)
{
    for (; *text; title = " ") {
        df_table_add(t, title);
        df_table_add(t, *text == '\n' ? " " : text);
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
}

int df_shown_details(const struct df_shown *kind, const cJSON *item, int64_t now_us,
                     struct df_table_shape shape, struct df_buf *out, struct df_err *err)
{
    DF_TABLE struct df_table t = {.columns = 2, .shape = &shape};
    for (const struct df_column *c = kind->details ? kind->details : kind->columns; c->title; c++) {
        DF_BUF struct df_buf cell = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
        add_cell(&cell, c, item, now_us);
        add_lines(&t, c->title, df_buf_str(&cell));
    }
    return df_table_print(&t, 0, out, err);
}

/* ---- requests ---- */

static int get_page(struct df_cli *cli, const char *path, const char *cursor, cJSON **ret,
                    struct df_err *err)
{
    DF_FREE char *escaped = cursor ? df_url_escape(cursor) : NULL;
    if (df_check_alloc(path, err) < 0 || (cursor && df_check_alloc(escaped, err) < 0))
        return -1;
    DF_FREE char *full =
        escaped ? df_strf("%s%ccursor=%s", path, strchr(path, '?') ? '&' : '?', escaped)
                : strdup(path);
    return df_cli_call(cli, "GET", full, NULL, ret, err);
}

static int move_items(cJSON *page, cJSON *all, struct df_err *err)
{
    cJSON *items = cJSON_DetachItemFromObjectCaseSensitive(page, "items");
    while (items && items->child)
        if (df_json_append(all, cJSON_DetachItemViaPointer(items, items->child), err) < 0) {
            cJSON_Delete(items);
            return -1;
        }
    cJSON_Delete(items);
    return 0;
}

int df_cli_list_each(struct df_cli *cli, const char *path, df_cli_page take, void *arg,
                     struct df_err *err)
{
    DF_FREE char *cursor = NULL;
    do {
        DF_JSON cJSON *page = NULL;
        if (get_page(cli, path, cursor, &page, err) < 0 ||
            take(arg, cJSON_GetObjectItemCaseSensitive(page, "items"), err) < 0 ||
            df_str_set(&cursor, df_json_str(page, "nextCursor"), err) < 0)
            return -1;
    } while (cursor);
    return 0;
}

int df_cli_list_some(struct df_cli *cli, const char *path, size_t most, cJSON **ret,
                     struct df_err *err)
{
    DF_JSON cJSON *all = cJSON_CreateArray();
    DF_FREE char *cursor = NULL;
    if (!all)
        return df_fail_oom(err);
    do {
        DF_JSON cJSON *page = NULL;
        if (get_page(cli, path, cursor, &page, err) < 0 || move_items(page, all, err) < 0)
            return -1;
        if (df_str_set(&cursor, df_json_str(page, "nextCursor"), err) < 0)
            return -1;
    } while (cursor && (!most || (size_t)cJSON_GetArraySize(all) < most));
    *ret = DF_TAKE(all);
    return 0;
}

int df_cli_list(struct df_cli *cli, const char *path, cJSON **ret, struct df_err *err)
{
    return df_cli_list_some(cli, path, 0, ret, err);
}

/* Finds one item in the list, because secrets, engines and audit entries have no route of their
 * own. */
static int get_from_list(struct df_cli *cli, const struct df_shown *kind, const char *name,
                         cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_path(kind->plural, NULL);
    DF_JSON cJSON *items = NULL;
    if (df_cli_list(cli, path, &items, err) < 0)
        return -1;
    cJSON *item = NULL;
    cJSON_ArrayForEach (item, items) {
        if (df_streq(df_json_str(item, kind->id), name)) {
            *ret = cJSON_DetachItemViaPointer(items, item);
            return 0;
        }
    }
    return df_fail(err, DF_ERR_NOT_FOUND, "%s \"%s\": not found", kind->plural, name);
}

static int get_named(struct df_cli *cli, const char *plural, const char *name, cJSON **ret,
                     struct df_err *err)
{
    DF_FREE char *path = df_path(plural, name, NULL);
    return df_cli_call(cli, "GET", path, NULL, ret, err);
}

/* Names the command that was meant where an executor is named instead of a run. */
static int not_a_run(struct df_cli *cli, const char *name, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    struct df_err ignored;
    if (get_named(cli, "executors", name, &executor, &ignored) < 0)
        return -1;
    return df_fail(err, DF_ERR_NOT_FOUND,
                   "%s is an executor, not a run: `dayfly get runs --executor %s` lists its runs",
                   name, name);
}

int df_cli_get(struct df_cli *cli, const struct df_shown *kind, const char *name, cJSON **ret,
               struct df_err *err)
{
    if (!df_streq(kind->id, "metadata.name"))
        return get_from_list(cli, kind, name, ret, err);
    if (get_named(cli, kind->plural, name, ret, err) == 0)
        return 0;
    bool run = err->cls == DF_ERR_NOT_FOUND && df_streq(kind->plural, "runs");
    return run ? not_a_run(cli, name, err) : -1;
}
