/*
 * The audit trail in a cluster. Each process appends its entries to one resource until that is
 * full; the oldest resources are removed. Reading merges the resources by time.
 */
#include "spawner/store/documents/audit.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/strs.h"
#include "spawner/store/documents/backend.h"

struct df_audit {
    struct df_kube *kube;
    struct df_kube_resource resource;
    const char *name_space;
    char *api_version;
    pthread_mutex_t lock;
    cJSON *open; /* the resource that is being filled, as the API server returned it; NULL: none */
    int64_t last_id;
};

static struct df_kube_at trail_at(const struct df_audit *a, const char *name)
{
    return (struct df_kube_at){&a->resource, a->name_space, name, NULL, NULL};
}

int df_audit_open(struct df_kube *k, const char *group, const char *name_space,
                  struct df_audit **ret, struct df_err *err)
{
    struct df_audit *a = calloc(1, sizeof(*a));
    if (!a)
        return df_fail_oom(err);
    a->kube = k;
    a->resource = (struct df_kube_resource){group, "v1alpha1", "audittrails"};
    a->name_space = name_space;
    a->api_version = df_strf("%s/v1alpha1", group);
    (void)pthread_mutex_init(&a->lock, NULL);
    if (!a->api_version) {
        df_audit_close(a);
        return df_fail_oom(err);
    }
    *ret = a;
    return 0;
}

void df_audit_close(struct df_audit *a)
{
    if (!a)
        return;
    (void)pthread_mutex_destroy(&a->lock);
    cJSON_Delete(a->open);
    free(a->api_version);
    free(a);
}

/* ---- adding --------------------------------------------------------------------------------- */

/* Returns an id that grows with time and is very unlikely to be equal in two processes. */
static int next_id(struct df_audit *a, int64_t *ret, struct df_err *err)
{
    uint32_t dice = 0;
    if (df_random(&dice, sizeof(dice), err) < 0)
        return -1;
    int64_t id = df_real_us() * 1000 + dice % 1000;
    *ret = id > a->last_id ? id : a->last_id + 1;
    return 0;
}

static int append_entry(struct df_audit *a, cJSON *trail, const cJSON *entry, struct df_err *err)
{
    cJSON *entries = df_json_array_at(trail, "entries"), *item = cJSON_CreateObject();
    int64_t id = 0;
    if (df_json_append(entries, item, err) < 0 || next_id(a, &id, err) < 0)
        return -1;
    DF_FREE char *text = df_strf("%lld", (long long)id);
    a->last_id = id;
    return df_json_put(item, err, DF_STR_ALLOC("id", text),
                       DF_ITEM("entry", cJSON_Duplicate(entry, true)));
}

static int check_size(const cJSON *entry, struct df_err *err)
{
    DF_FREE char *text = df_json_print(entry);
    if (!text)
        return df_fail_oom(err);
    return strlen(text) > DF_LIMIT_AUDIT_ENTRY
               ? df_fail(err, DF_ERR_LIMIT, "an audit entry is larger than %zu bytes",
                         DF_LIMIT_AUDIT_ENTRY)
               : 0;
}

/* 0: written; 1: there is no open resource with space left. */
static int add_to_open(struct df_audit *a, const cJSON *entry, struct df_err *err)
{
    struct df_err why = {0};
    cJSON *answer = NULL;
    if (!a->open || cJSON_GetArraySize(df_json_at(a->open, "entries")) >= DF_LIMIT_AUDIT_ENTRIES)
        return 1;
    DF_JSON cJSON *next = cJSON_Duplicate(a->open, true);
    if (df_check_alloc(next, err) < 0 || append_entry(a, next, entry, err) < 0)
        return -1;
    const struct df_kube_at where = trail_at(a, df_kube_name(next));
    int result = df_kube_update(a->kube, &where, next, &answer, &why);
    cJSON_Delete(a->open); /* if the answer is missing, the content is unknown */
    a->open = answer;
    if (result == 0 || why.cls == DF_ERR_CONFLICT || why.cls == DF_ERR_NOT_FOUND)
        return result == 0 ? 0 : 1;
    return df_err_pass(err, &why);
}

static cJSON *new_trail(const struct df_audit *a)
{
    char dice[9];
    if (df_random_hex(dice, 4, NULL) < 0)
        return NULL;
    DF_FREE char *name = df_strf("audit-%016llx-%s", (unsigned long long)df_real_us(), dice);
    cJSON *trail = cJSON_CreateObject();
    if (name && trail && df_json_add_str(trail, "apiVersion", a->api_version, NULL) == 0 &&
        df_json_add_str(trail, "kind", "AuditTrail", NULL) == 0 &&
        df_json_add_str(df_json_object_at(trail, "metadata"), "name", name, NULL) == 0)
        return trail;
    cJSON_Delete(trail);
    return NULL;
}

static int add_to_new(struct df_audit *a, const cJSON *entry, struct df_err *err)
{
    DF_JSON cJSON *trail = new_trail(a);
    if (!trail)
        return df_fail_oom(err);
    cJSON *answer = NULL;
    const struct df_kube_at where = trail_at(a, NULL);
    if (append_entry(a, trail, entry, err) < 0 ||
        df_kube_create(a->kube, &where, trail, &answer, err) < 0)
        return -1;
    cJSON_Delete(a->open);
    a->open = answer;
    return 0;
}

/* ---- removing the oldest --------------------------------------------------------------------- */

static int note_name(void *arg, const cJSON *trail, struct df_err *err)
{
    struct df_strs *names = arg;
    return df_strs_add(names, df_kube_name(trail)) < 0 ? df_strs_check(names, err) : 0;
}

static int forget_names(void *arg, const char *version, struct df_err *err)
{
    (void)version, (void)err;
    df_strs_free(arg);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int drop_oldest(struct df_audit *a, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    const struct df_kube_sink sink = {forget_names, note_name, &names};
    const struct df_kube_at all = trail_at(a, NULL);
    if (df_kube_list(a->kube, &all, NULL, 0, &sink, err) < 0)
        return -1;
    if (names.len)
        qsort(names.items, names.len, sizeof(*names.items), by_name);
    for (size_t i = 0; i + DF_LIMIT_AUDIT_TRAILS < names.len; i++) {
        const struct df_kube_at oldest = trail_at(a, names.items[i]);
        const struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
        struct df_err why = {0};
        if (df_kube_delete(a->kube, &oldest, &o, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
    }
    return 0;
}

int df_audit_add(struct df_audit *a, const cJSON *entry, struct df_err *err)
{
    if (check_size(entry, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&a->lock);
    int result = add_to_open(a, entry, err);
    if (result > 0) {
        result = add_to_new(a, entry, err);
        if (result == 0 && drop_oldest(a, err) < 0)
            result = df_err_wrap(err, "the entry is written, but older ones cannot be removed");
    }
    (void)pthread_mutex_unlock(&a->lock);
    return result;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    int64_t before;
    cJSON *found; /* items {id, entry} */
};

static int64_t id_of(const cJSON *item)
{
    const char *text = df_json_str(item, "id");
    int64_t id = 0;
    return text && df_parse_i64(text, 1, INT64_MAX, &id, NULL) == 0 ? id : 0;
}

static int begin_reading(void *arg, const char *version, struct df_err *err)
{
    struct reading *r = arg;
    (void)version;
    cJSON_Delete(r->found);
    return df_check_alloc(r->found = cJSON_CreateArray(), err);
}

static int read_trail(void *arg, const cJSON *trail, struct df_err *err)
{
    struct reading *r = arg;
    const cJSON *item;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(trail, "entries")) {
        if (id_of(item) < r->before &&
            df_json_append(r->found, cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = id_of(*(const cJSON *const *)a), y = id_of(*(const cJSON *const *)b);
    return (x < y) - (x > y);
}

/* Returns the first items; *ret_last as for df_page_cursor(). */
static int take_page(const cJSON *const *items, int count, int limit, cJSON **ret,
                     int64_t *ret_last, struct df_err *err)
{
    DF_JSON cJSON *page = cJSON_CreateArray();
    int taken = count < limit ? count : limit;
    for (int i = 0; i < taken; i++)
        if (df_json_append(page, cJSON_Duplicate(df_json_at(items[i], "entry"), true), err) < 0)
            return -1;
    *ret_last = taken < count ? id_of(items[taken - 1]) : 0;
    return df_check_alloc(*ret = DF_TAKE(page), err);
}

static int sort_page(const cJSON *found, int limit, cJSON **ret, char **ret_cursor,
                     struct df_err *err)
{
    int count = cJSON_GetArraySize(found), i = 0;
    DF_FREE const cJSON **items = calloc((size_t)count + 1, sizeof(*items));
    DF_JSON cJSON *page = NULL;
    int64_t last = 0;
    const cJSON *item;
    if (!items)
        return df_fail_oom(err);
    cJSON_ArrayForEach (item, found)
        items[i++] = item;
    qsort(items, (size_t)count, sizeof(*items), newest_first);
    if (take_page(items, count, limit, &page, &last, err) < 0 ||
        df_page_cursor(last, ret_cursor, err) < 0)
        return -1;
    *ret = DF_TAKE(page);
    return 0;
}

int df_audit_list(struct df_audit *a, const char *cursor, int limit, cJSON **ret, char **ret_cursor,
                  struct df_err *err)
{
    struct reading r = {0};
    const struct df_kube_sink sink = {begin_reading, read_trail, &r};
    const struct df_kube_at all = trail_at(a, NULL);
    if (df_page_start(cursor, true, &r.before, err) < 0 || df_page_limit(limit, &limit, err) < 0)
        return -1;
    int result = df_kube_list(a->kube, &all, NULL, 0, &sink, err);
    if (result == 0)
        result = sort_page(r.found, limit, ret, ret_cursor, err);
    cJSON_Delete(r.found);
    return result;
}

static int begin_measure(void *arg, const char *version, struct df_err *err)
{
    int64_t *sums = arg;
    (void)version, (void)err;
    sums[0] = sums[1] = 0;
    return 0;
}

static int measure_trail(void *arg, const cJSON *trail, struct df_err *err)
{
    int64_t *sums = arg;
    DF_FREE char *text = df_json_print(trail);
    if (!text)
        return df_fail_oom(err);
    sums[0] += cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(trail, "entries"));
    sums[1] += (int64_t)strlen(text);
    return 0;
}

int df_audit_size(struct df_audit *a, int64_t *ret_count, int64_t *ret_bytes, struct df_err *err)
{
    int64_t sums[2] = {0};
    const struct df_kube_sink sink = {begin_measure, measure_trail, sums};
    const struct df_kube_at all = trail_at(a, NULL);
    if (df_kube_list(a->kube, &all, NULL, 0, &sink, err) < 0)
        return -1;
    *ret_count = sums[0];
    *ret_bytes = sums[1];
    return 0;
}
