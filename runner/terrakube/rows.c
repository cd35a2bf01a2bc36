/*
 * The table events[] says what each event of the tool does to the row of its resource; then the
 * rows of a plan and what the state adds.
 */
#include "runner/terrakube/rows.h"

#include <strings.h>

#include "runner/terrakube/values.h"

int df_rows_init(struct df_rows *r, struct df_err *err)
{
    *r = (struct df_rows){.rows = cJSON_CreateArray(), .diagnostics = cJSON_CreateArray()};
    if (r->rows && r->diagnostics)
        return 0;
    df_rows_free(r);
    return df_fail_oom(err);
}

void df_rows_free(struct df_rows *r)
{
    cJSON_Delete(r->rows);
    cJSON_Delete(r->diagnostics);
    free(r->index);
    *r = (struct df_rows){0};
}

/* ---- rows by address ---- */

static const char *text(const cJSON *object, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

static const cJSON *at(const cJSON *object, const char *key)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

static cJSON **place_of(cJSON **index, size_t size, const char *address)
{
    size_t i = (size_t)df_hash_str(DF_HASH_BEGIN, address) & (size - 1);
    while (index[i] && !df_streq(text(index[i], "address"), address))
        i = (i + 1) & (size - 1);
    return &index[i];
}

static bool grow(struct df_rows *r)
{
    size_t size = r->size ? 2 * r->size : 64;
    cJSON **index = calloc(size, sizeof *index);
    if (!index)
        return false;
    for (size_t i = 0; i < r->size; i++) {
        if (r->index[i])
            *place_of(index, size, text(r->index[i], "address")) = r->index[i];
    }
    free(r->index);
    r->index = index;
    r->size = size;
    return true;
}

static cJSON *find_row(const struct df_rows *r, const char *address)
{
    return r->size ? *place_of(r->index, r->size, address) : NULL;
}

/* The row of the resource, new if there is none. NULL: no memory, or too many. */
static cJSON *row_of(struct df_rows *r, const char *address)
{
    cJSON *row = find_row(r, address);
    if (row)
        return row;
    if (r->count == DF_LIMIT_TERRAKUBE_ROWS || (2 * (r->count + 1) > r->size && !grow(r)))
        return NULL;
    row = cJSON_CreateObject();
    if (!row || df_json_add_str(row, "address", address, NULL) < 0 ||
        !cJSON_AddItemToArray(r->rows, row)) {
        cJSON_Delete(row);
        return NULL;
    }
    *place_of(r->index, r->size, address) = row;
    r->count++;
    return row;
}

static void set_text(cJSON *row, const char *key, const char *value)
{
    (void)df_json_set_str(row, key, value, NULL);
}

static bool has(const cJSON *row, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(row, key) != NULL;
}

/* ---- events ---- */

/* What a handler gets: its row, or NULL for those that find it themselves. */
struct taking {
    struct df_rows *rows;
    const cJSON *event, *hook;
    cJSON *row;
    const char *status; /* of the table */
};

static void set_status(const struct taking *t)
{
    int64_t elapsed = df_json_int(t->hook, "elapsed_seconds", -1);
    if (t->status)
        set_text(t->row, "status", t->status);
    if (elapsed >= 0)
        (void)df_json_set(t->row, "elapsedSeconds", cJSON_CreateNumber((double)elapsed), NULL);
}

static void start_provisioner(const struct taking *t)
{
    const char *name = text(t->hook, "provisioner");
    if (name)
        set_text(t->row, "currentProvisioner", name);
}

static void end_provisioner(const struct taking *t)
{
    cJSON_DeleteItemFromObjectCaseSensitive(t->row, "currentProvisioner");
}

static void append_limited(cJSON *array, cJSON *item)
{
    if (array && item && cJSON_GetArraySize(array) < DF_LIMIT_TERRAKUBE_ROW_LINES)
        (void)df_json_append(array, item, NULL);
    else
        cJSON_Delete(item);
}

static void add_provisioner_output(const struct taking *t)
{
    const char *line = text(t->hook, "output");
    if (line)
        append_limited(df_json_array_at(t->row, "provisionerOutput"), cJSON_CreateString(line));
}

/* A resource that is only refreshed does not change. */
static void start_refresh(const struct taking *t)
{
    const char *status = text(t->row, "status");
    if (!has(t->row, "action"))
        set_text(t->row, "action", "no-op");
    set_text(t->row, "previousStatus", status ? status : "pending");
    set_text(t->row, "status", "refreshing");
}

static void end_refresh(const struct taking *t)
{
    const char *before = text(t->row, "previousStatus");
    set_text(t->row, "status", before ? before : "pending");
    cJSON_DeleteItemFromObjectCaseSensitive(t->row, "previousStatus");
}

/* Terraform says hook.action, OpenTofu a text in hook.Msg: "Opening...", "Renewing...". */
static bool is_phase(const struct taking *t, const char *word)
{
    const char *action = text(t->hook, "action"), *message = text(t->hook, "Msg");
    return action ? strncasecmp(action, word, strlen(word)) == 0
                  : message && strncasecmp(message, word, strlen(word)) == 0;
}

static void set_ephemeral(const struct taking *t, const char *status)
{
    if (!has(t->row, "action"))
        set_text(t->row, "action", "ephemeral");
    set_text(t->row, "status", status);
}

static void start_ephemeral(const struct taking *t)
{
    set_ephemeral(t, is_phase(t, "clos") ? "ephemeral-closing" : "ephemeral-opening");
}

static void end_ephemeral(const struct taking *t)
{
    set_status(t); /* its time */
    set_ephemeral(t, is_phase(t, "renew") ? "ephemeral-renewed" : "applied");
}

static void fail_ephemeral(const struct taking *t)
{
    set_status(t);
    set_ephemeral(t, "ephemeral-errored");
}

static void take_planned(const struct taking *t)
{
    const char *action = text(at(t->event, "change"), "action");
    if (action)
        set_text(t->row, "action", action);
    set_text(t->row, "status", "planned");
}

static void take_drift(const struct taking *t)
{
    const char *action = text(at(t->event, "change"), "action");
    if (action)
        set_text(t->row, "driftAction", action);
}

/* "main.tf:12"; the caller frees. NULL: it has no place. */
static char *place_of_diagnostic(const cJSON *diagnostic)
{
    const cJSON *range = at(diagnostic, "range");
    int64_t line = df_json_int(range, "start.line", -1);
    const char *file = text(range, "filename");
    if (!file)
        return NULL;
    return line >= 0 ? df_strf("%s:%lld", file, (long long)line) : strdup(file);
}

static cJSON *make_diagnostic(const cJSON *diagnostic)
{
    DF_JSON cJSON *entry = cJSON_CreateObject();
    DF_FREE char *place = place_of_diagnostic(diagnostic);
    if (!entry ||
        df_json_put(entry, NULL, DF_STR("severity", text(diagnostic, "severity")),
                    DF_STR("summary", text(diagnostic, "summary")),
                    DF_STR("detail", text(diagnostic, "detail")), DF_STR("location", place)) < 0)
        return NULL;
    return DF_TAKE(entry);
}

static void take_diagnostic(const struct taking *t)
{
    const cJSON *diagnostic = at(t->event, "diagnostic");
    const char *severity = text(diagnostic, "severity"), *address = text(diagnostic, "address");
    bool is_error = df_streq(severity, "error");
    if ((!is_error && !df_streq(severity, "warning")) || !text(diagnostic, "summary"))
        return;
    cJSON *row = address ? row_of(t->rows, address) : NULL;
    if (row && is_error && !has(row, "status"))
        set_text(row, "status", "errored");
    append_limited(row ? df_json_array_at(row, "diagnostics") : t->rows->diagnostics,
                   make_diagnostic(diagnostic));
}

static const struct {
    const char *type;
    void (*take)(const struct taking *t);
    const char *status; /* NULL: unchanged */
    enum { OF_HOOK, OF_CHANGE, OF_ITSELF } address;
} events[] = {
    {"apply_start", set_status, "applying", OF_HOOK},
    {"apply_progress", set_status, NULL, OF_HOOK},
    {"apply_complete", set_status, "applied", OF_HOOK},
    {"apply_errored", set_status, "errored", OF_HOOK},
    {"provision_start", start_provisioner, NULL, OF_HOOK},
    {"provision_progress", add_provisioner_output, NULL, OF_HOOK},
    {"provision_complete", end_provisioner, NULL, OF_HOOK},
    {"provision_errored", end_provisioner, NULL, OF_HOOK},
    {"refresh_start", start_refresh, NULL, OF_HOOK},
    {"refresh_complete", end_refresh, NULL, OF_HOOK},
    {"ephemeral_op_start", start_ephemeral, NULL, OF_HOOK},
    {"ephemeral_action_started", start_ephemeral, NULL, OF_HOOK},
    {"ephemeral_op_progress", set_status, NULL, OF_HOOK},
    {"ephemeral_op_complete", end_ephemeral, NULL, OF_HOOK},
    {"ephemeral_action_complete", end_ephemeral, NULL, OF_HOOK},
    {"ephemeral_op_errored", fail_ephemeral, NULL, OF_HOOK},
    {"planned_change", take_planned, NULL, OF_CHANGE},
    {"resource_drift", take_drift, NULL, OF_CHANGE},
    {"diagnostic", take_diagnostic, NULL, OF_ITSELF},
};

bool df_rows_event(struct df_rows *r, const cJSON *event)
{
    const char *type = text(event, "type");
    for (size_t i = 0; type && i < DF_ARRAY_SIZE(events); i++) {
        if (!df_streq(type, events[i].type))
            continue;
        struct taking t = {
            .rows = r, .event = event, .hook = at(event, "hook"), .status = events[i].status};
        const cJSON *of = events[i].address == OF_HOOK ? t.hook : at(event, "change");
        const char *address = text(at(of, "resource"), "addr");
        if (events[i].address != OF_ITSELF && !address)
            return false;
        t.row = events[i].address != OF_ITSELF ? row_of(r, address) : NULL;
        if (events[i].address != OF_ITSELF && !t.row)
            return false;
        events[i].take(&t);
        return true;
    }
    return false;
}

/* ---- the plan ---- */

static const char *action_of(const cJSON *actions)
{
    static const char *const words[] = {"create", "delete", "update", "read", "no-op"};
    if (df_json_has_string(actions, "delete") && df_json_has_string(actions, "create"))
        return "replace";
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++) {
        if (df_json_has_string(actions, words[i]))
            return words[i];
    }
    return "unknown";
}

static void set_values(cJSON *row, const cJSON *resource, const cJSON *change)
{
    const char *type = text(resource, "type"), *address = text(resource, "address");
    const cJSON *before = at(change, "before"), *after = at(change, "after");
    DF_JSON cJSON *was = df_values_marks(type, address, at(change, "before_sensitive"));
    DF_JSON cJSON *is = df_values_marks(type, address, at(change, "after_sensitive"));
    cJSON *changed = df_values_changed(before, after, was, is);
    (void)df_json_set(row, "before", df_values_hide(before, was), NULL);
    (void)df_json_set(row, "after", df_values_hide(after, is), NULL);
    if (changed)
        (void)df_json_set(row, "changedSensitive", changed, NULL);
    if (was)
        (void)df_json_set(row, "beforeSensitive", DF_TAKE(was), NULL);
    if (is)
        (void)df_json_set(row, "afterSensitive", DF_TAKE(is), NULL);
    if (at(change, "after_unknown"))
        (void)df_json_set(row, "afterUnknown", cJSON_Duplicate(at(change, "after_unknown"), true),
                          NULL);
}

static void take_change(struct df_rows *r, const cJSON *resource)
{
    static const char *const names[][2] = {
        {"moduleAddress", "module_address"}, {"resourceType", "type"}, {"resourceName", "name"}};
    const cJSON *change = at(resource, "change"), *importing = at(change, "importing");
    const char *action = action_of(at(change, "actions")), *address = text(resource, "address");
    bool imports = importing && !cJSON_IsNull(importing), stays = df_streq(action, "no-op");
    cJSON *row = change && address && (imports || !stays) ? row_of(r, address) : NULL;
    if (!row)
        return;
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        set_text(row, names[i][0], text(resource, names[i][1]));
    if (at(change, "actions"))
        (void)df_json_set(row, "actions", cJSON_Duplicate(at(change, "actions"), true), NULL);
    set_text(row, "action", stays ? "import" : action);
    if (imports)
        (void)df_json_set(row, "importing", cJSON_Duplicate(importing, true), NULL);
    set_values(row, resource, change);
}

void df_rows_plan(struct df_rows *r, const cJSON *plan)
{
    const cJSON *resource;
    cJSON_ArrayForEach (resource, at(plan, "resource_changes")) {
        take_change(r, resource);
    }
}

/* ---- the apply ---- */

void df_rows_seed(struct df_rows *r, const cJSON *rows)
{
    const cJSON *of_plan, *v;
    cJSON_ArrayForEach (of_plan, rows) {
        const char *address = text(of_plan, "address");
        cJSON *row = address ? row_of(r, address) : NULL;
        const cJSON *members = row ? of_plan : NULL;
        cJSON_ArrayForEach (v, members) {
            if (!has(row, v->string) && !df_streq(v->string, "status"))
                (void)df_json_add(row, v->string, cJSON_Duplicate(v, true), NULL);
        }
        /* What is ephemeral had its whole life in the plan. */
        bool ephemeral = df_streq(text(of_plan, "action"), "ephemeral");
        if (row && !has(row, "status"))
            set_text(row, "status", ephemeral ? text(of_plan, "status") : "pending");
    }
}

/* No event tells of an import that the configuration asks for: it is in the state. */
static void take_resource(struct df_rows *r, const cJSON *resource)
{
    const char *address = text(resource, "address");
    cJSON *row = address ? find_row(r, address) : NULL;
    if (!row)
        return;
    if (df_streq(text(row, "status"), "pending"))
        set_text(row, "status", "applied");
    if (!cJSON_IsObject(at(row, "after")) || !cJSON_IsObject(at(row, "afterUnknown")))
        return;
    DF_JSON cJSON *both =
        df_values_merge(at(row, "afterSensitive"), at(resource, "sensitive_values"));
    DF_JSON cJSON *marks = df_values_marks(text(resource, "type"), address, both);
    cJSON *after = cJSON_DetachItemFromObjectCaseSensitive(row, "after");
    cJSON *still =
        df_values_resolve(at(row, "afterUnknown"), &after, at(resource, "values"), marks);
    (void)df_json_set(row, "after", df_values_hide(after, marks), NULL);
    cJSON_Delete(after);
    if (still)
        (void)df_json_set(row, "afterUnknown", still, NULL);
    if (marks)
        (void)df_json_set(row, "afterSensitive", DF_TAKE(marks), NULL);
}

/* The depth is limited by the parser. */
static void take_module(struct df_rows *r, const cJSON *module)
{
    const cJSON *v;
    cJSON_ArrayForEach (v, at(module, "resources")) {
        take_resource(r, v);
    }
    cJSON_ArrayForEach (v, at(module, "child_modules")) {
        take_module(r, v);
    }
}

void df_rows_state(struct df_rows *r, const cJSON *state)
{
    take_module(r, at(at(state, "values"), "root_module"));
}

/* ---- outputs ---- */

static int compare_names(const void *a, const void *b)
{
    const cJSON *const *one = a, *const *other = b;
    return strcmp((*one)->string, (*other)->string);
}

static cJSON *make_output(const cJSON *output)
{
    cJSON *entry = cJSON_CreateObject();
    bool sensitive = cJSON_IsTrue(at(output, "sensitive"));
    const cJSON *type = at(output, "type"), *value = sensitive ? NULL : at(output, "value");
    if (!entry)
        return NULL;
    (void)df_json_add_str(entry, "name", output->string, NULL);
    (void)df_json_add(entry, "type", type ? cJSON_Duplicate(type, true) : cJSON_CreateNull(), NULL);
    (void)df_json_add_bool(entry, "sensitive", sensitive, NULL);
    (void)df_json_add(entry, "value", value ? cJSON_Duplicate(value, true) : cJSON_CreateNull(),
                      NULL);
    return entry;
}

cJSON *df_rows_outputs(const cJSON *outputs)
{
    size_t n = cJSON_IsObject(outputs) ? (size_t)cJSON_GetArraySize(outputs) : 0, i = 0;
    DF_FREE const cJSON **sorted = calloc(n ? n : 1, sizeof(const cJSON *));
    cJSON *list = cJSON_CreateArray();
    const cJSON *output;
    if (!sorted || !list) {
        cJSON_Delete(list);
        return NULL;
    }
    cJSON_ArrayForEach (output, outputs) {
        if (i < n)
            sorted[i++] = output;
    }
    qsort(sorted, n, sizeof *sorted, compare_names);
    for (i = 0; i < n; i++)
        append_limited(list, make_output(sorted[i]));
    return list;
}
