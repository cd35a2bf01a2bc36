/* Documents first, which say whose a uid is; then the blobs, by their keys. */
#include "spawner/requests/usage.h"

#include <search.h>

#include "common/metrics/metrics.h"
#include "spawner/requests/owners.h"
#include "spawner/steps/provider_mirror.h"

struct amount {
    int64_t count, bytes;
};

struct row {
    char name[64];
    struct amount of[DF_STORED_KINDS];
};

struct usage {
    struct df_spawner *s;
    const char *only; /* an executor, or NULL */
    struct df_owners *owners;
    enum df_kind kind; /* of the documents that are visited */
    struct row total;
    struct amount orphans;
    void *rows; /* tsearch tree by name; owned */
    cJSON *list;
    struct df_err *err;
    bool failed;
};

static void usage_free(struct usage *u)
{
    df_owners_free(u->owners);
    tdestroy(u->rows, free);
    cJSON_Delete(u->list);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static struct row *row_of(struct usage *u, const char *executor, struct df_err *err)
{
    struct row probe = {0};
    df_copy(probe.name, sizeof(probe.name), executor);
    struct row *const *found = tfind(&probe, &u->rows, by_name);
    if (found)
        return *found;
    struct row *made = malloc(sizeof(*made));
    if (made)
        *made = probe;
    if (made && tsearch(made, &u->rows, by_name))
        return made;
    free(made);
    (void)df_fail_oom(err);
    return NULL;
}

static void add(struct amount *a, const struct amount *more)
{
    a->count += more->count;
    a->bytes += more->bytes;
}

/* Adds bytes, and one thing of this kind if it is one. executor "": of none. */
static int count(struct usage *u, const char *executor, enum df_stored kind,
                 const struct amount *more, struct df_err *err)
{
    if (u->only && !df_streq(u->only, executor))
        return 0;
    add(&u->total.of[kind], more);
    if (!*executor)
        return 0;
    struct row *row = row_of(u, executor, err);
    if (!row)
        return -1;
    add(&row->of[kind], more);
    return 0;
}

static int count_document(const cJSON *doc, void *arg, struct df_err *err)
{
    struct usage *u = arg;
    DF_FREE char *text = df_json_print(doc);
    if (!text)
        return df_fail_oom(err);
    const struct amount one = {1, (int64_t)strlen(text)};
    if (df_owners_add(u->owners, u->kind, doc, err) < 0)
        return -1;
    return count(u, df_owner_of(u->kind, doc), DF_STORED_DOCUMENTS, &one, err);
}

static int count_blob(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    struct usage *u = arg;
    enum df_stored kind;
    char uid[64];
    if (!df_stored_of(info->key, &kind, uid))
        return 0;
    const char *executor = df_owners_find(u->owners, uid);
    const struct amount blob = {1, info->size};
    const struct amount thing = {df_stored_counts(info->key, kind) ? 1 : 0, info->size};
    if (executor)
        return count(u, executor, kind, &thing, err);
    if (!u->only) {
        add(&u->orphans, &blob);
        add(&u->total.of[kind], &thing);
    }
    return 0;
}

static int gather(struct usage *u, struct df_err *err)
{
    static const enum df_kind kinds[] = {DF_KIND_EXECUTOR, DF_KIND_RUN, DF_KIND_TASK_ACTION,
                                         DF_KIND_REVISION};
    struct amount *audit = &u->total.of[DF_STORED_AUDIT];
    if (df_owners_new(&u->owners, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(kinds); i++) {
        u->kind = kinds[i];
        if (df_store_each(u->s->store, kinds[i], NULL, count_document, u, err) < 0)
            return -1;
    }
    if (!u->only && df_store_audit_size(u->s->store, &audit->count, &audit->bytes, err) < 0)
        return -1;
    return df_blob_each(u->s->blobs, "", count_blob, u, err);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int add_amount(cJSON *to, const char *name, const struct amount *a, struct df_err *err)
{
    cJSON *object = df_json_object_at(to, name);
    return df_json_put(object, err, DF_NUM("count", a->count), DF_NUM("bytes", a->bytes));
}

/* The audit trail is nobody's. */
static int add_row(cJSON *to, const struct row *row, struct df_err *err)
{
    for (int kind = 0; kind < DF_STORED_KINDS; kind++)
        if ((kind != DF_STORED_AUDIT || !row->name[0]) &&
            add_amount(to, df_stored_name((enum df_stored)kind), &row->of[kind], err) < 0)
            return -1;
    return 0;
}

static void list_row(const void *node, VISIT when, void *arg)
{
    struct usage *u = arg;
    const struct row *row = *(struct row *const *)node;
    if (u->failed || (when != postorder && when != leaf)) /* postorder: between the two sides */
        return;
    cJSON *item = cJSON_CreateObject();
    u->failed = df_json_append(u->list, item, u->err) < 0 ||
                df_json_add_str(item, "name", row->name, u->err) < 0 ||
                add_row(item, row, u->err) < 0;
}

static int answer(struct usage *u, cJSON *doc, struct df_err *err)
{
    cJSON *total = df_json_object_at(doc, "total");
    if (!total)
        return df_fail_oom(err);
    u->list = cJSON_CreateArray();
    u->err = err;
    if (!u->list)
        return df_fail_oom(err);
    twalk_r(u->rows, list_row, u);
    if (u->failed || add_row(total, &u->total, err) < 0 ||
        df_json_add(doc, "executors", DF_TAKE(u->list), err) < 0)
        return -1;
    return u->only ? 0 : add_amount(doc, "orphans", &u->orphans, err);
}

/* Files of the mirror of providers, which belong to no executor either. */
static int add_mirror(const struct df_config *c, cJSON *doc, struct df_err *err)
{
    struct df_provider_usage used;
    if (df_provider_mirror_measure(c, &used, err) < 0)
        return -1;
    const struct amount all = {used.archives, used.bytes};
    if (add_amount(doc, "providers", &all, err) < 0)
        return -1;
    return df_json_add_num(df_json_object_at(doc, "providers"), "limit", (double)used.limit, err);
}

int df_usage(struct df_spawner *s, const char *executor, cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(usage_free) struct usage u = {.s = s, .only = executor};
    DF_SHARED const cJSON *found = NULL;
    DF_JSON cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return df_fail_oom(err);
    if (executor && df_store_look(s->store, DF_KIND_EXECUTOR, executor, &found, err) < 0)
        return -1;
    if (gather(&u, err) < 0 || answer(&u, doc, err) < 0 ||
        (!executor && s->config->mirror_directory && add_mirror(s->config, doc, err) < 0))
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}

/* ---- the metric ------------------------------------------------------------------------------ */

static int measure_blob(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    int64_t *bytes = arg;
    enum df_stored kind;
    char uid[64];
    (void)err;
    if (df_stored_of(info->key, &kind, uid))
        bytes[kind] += info->size;
    return 0;
}

int df_usage_measure(struct df_spawner *s, struct df_err *err)
{
    int64_t bytes[DF_STORED_KINDS] = {0};
    if (df_blob_each(s->blobs, "", measure_blob, bytes, err) < 0)
        return -1;
    struct df_metric *m = df_metric_gauge("dayfly_stored_bytes",
                                          "What states, plans, logs, outputs and mirrored "
                                          "providers take, as of the last hourly look.",
                                          "kind");
    for (int kind = 0; kind <= DF_STORED_OUTPUTS; kind++)
        df_metric_set(m, df_stored_name((enum df_stored)kind), (double)bytes[kind]);
    struct df_provider_usage mirror;
    if (!s->config->mirror_directory)
        return 0;
    if (df_provider_mirror_measure(s->config, &mirror, err) < 0)
        return -1;
    df_metric_set(m, "providers", (double)mirror.bytes);
    return 0;
}
