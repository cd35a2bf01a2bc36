/*
 * owners.c - first which kind and uid a blob's key has (df_stored_of()), then the executor of a
 * uid. Uids are an array, which the first search after an addition sorts. Each executor's name is
 * stored once.
 */
#include "spawner/requests/owners.h"

#include <search.h>

struct owned {
    char uid[40];
    const char *executor; /* in names */
};

struct df_owners {
    struct owned *items; /* owned */
    size_t len, cap;
    bool sorted;
    void *names; /* tsearch tree of strings; owned */
};

/* ---- keys ------------------------------------------------------------------------------------ */

const char *df_stored_name(enum df_stored kind)
{
    static const char *const names[DF_STORED_KINDS] = {"states",  "plans",     "logs",
                                                       "outputs", "documents", "audit"};
    return names[kind];
}

bool df_stored_of(const char *key, enum df_stored *ret, char ret_uid[64])
{
    static const struct {
        const char *prefix, *end; /* the uid ends before one of these, or at the end of the key */
        enum df_stored kind;
    } forms[] = {{"state/", "/", DF_STORED_STATES},
                 {"plans/", "", DF_STORED_PLANS},
                 {"logs/", ".", DF_STORED_LOGS},
                 {"outputs/", "", DF_STORED_OUTPUTS},
                 {"shown/", "", DF_STORED_OUTPUTS}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(forms); i++) {
        if (!df_starts_with(key, forms[i].prefix))
            continue;
        const char *uid = key + strlen(forms[i].prefix);
        size_t n = strcspn(uid, forms[i].end);
        if (n == 0 || n > 63)
            return false;
        (void)snprintf(ret_uid, 64, "%.*s", (int)n, uid);
        *ret = forms[i].kind;
        return true;
    }
    return false;
}

bool df_stored_counts(const char *key, enum df_stored kind)
{
    return kind == DF_STORED_STATES ? df_ends_with(key, ".state") || df_ends_with(key, ".tfstate")
           : kind == DF_STORED_LOGS ? df_ends_with(key, ".log")
                                    : true;
}

/* ---- documents ------------------------------------------------------------------------------- */

int df_owners_new(struct df_owners **ret, struct df_err *err)
{
    struct df_owners *o = calloc(1, sizeof(*o));
    if (!o)
        return df_fail_oom(err);
    *ret = o;
    return 0;
}

void df_owners_free(struct df_owners *o)
{
    if (!o)
        return;
    tdestroy(o->names, free);
    free(o->items);
    free(o);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* One copy of each name. NULL: no memory. */
static const char *keep_name(struct df_owners *o, const char *name)
{
    char *const *found = tfind(name, &o->names, by_text);
    if (found)
        return *found;
    char *copy = strdup(name);
    if (copy && tsearch(copy, &o->names, by_text))
        return copy;
    free(copy);
    return NULL;
}

const char *df_owner_of(enum df_kind kind, const cJSON *doc)
{
    const char *name =
        df_json_str(doc, kind == DF_KIND_EXECUTOR ? "metadata.name" : "spec.executorRef.name");
    return name ? name : "";
}

static int grow(struct df_owners *o, struct df_err *err)
{
    size_t cap = o->cap ? 2 * o->cap : 64;
    struct owned *items = reallocarray(o->items, cap, sizeof(*items));
    if (!items)
        return df_fail_oom(err);
    o->items = items;
    o->cap = cap;
    return 0;
}

int df_owners_add(struct df_owners *o, enum df_kind kind, const cJSON *doc, struct df_err *err)
{
    const char *uid = df_json_str(doc, "metadata.uid");
    if (kind == DF_KIND_RUN || kind == DF_KIND_REVISION || !uid)
        return 0;
    if (o->len == o->cap && grow(o, err) < 0)
        return -1;
    const char *executor = keep_name(o, df_owner_of(kind, doc));
    if (!executor)
        return df_fail_oom(err);
    struct owned *e = &o->items[o->len++];
    df_copy(e->uid, sizeof(e->uid), uid);
    e->executor = executor;
    o->sorted = false;
    return 0;
}

struct adding {
    struct df_owners *owners;
    enum df_kind kind;
};

static int add_one(const cJSON *doc, void *arg, struct df_err *err)
{
    const struct adding *a = arg;
    return df_owners_add(a->owners, a->kind, doc, err);
}

int df_owners_load(struct df_owners *o, struct df_store *store, struct df_err *err)
{
    struct adding executors = {o, DF_KIND_EXECUTOR}, steps = {o, DF_KIND_TASK_ACTION};
    if (df_store_each(store, DF_KIND_EXECUTOR, NULL, add_one, &executors, err) < 0)
        return -1;
    return df_store_each(store, DF_KIND_TASK_ACTION, NULL, add_one, &steps, err);
}

static int by_uid(const void *a, const void *b)
{
    return strcmp(((const struct owned *)a)->uid, ((const struct owned *)b)->uid);
}

const char *df_owners_find(struct df_owners *o, const char *uid)
{
    struct owned probe = {0};
    df_copy(probe.uid, sizeof(probe.uid), uid);
    if (!o->len)
        return NULL;
    if (!o->sorted)
        qsort(o->items, o->len, sizeof(*o->items), by_uid);
    o->sorted = true;
    const struct owned *found = bsearch(&probe, o->items, o->len, sizeof(*o->items), by_uid);
    return found ? found->executor : NULL;
}
