/*
 * The audit trail in a cluster. All replicas append to one chain: to the newest resource until that
 * is full, and then to a new one whose name is the sequence of its first entry. A resource is
 * written against the version that was read, and a name exists once, so the chain cannot fork:
 * whoever comes second reads what the first has written, and tries again.
 *
 * Resources of an older dayfly have names with a time, and entries without hashes; they are read
 * behind those of the chain.
 */
#include "spawner/store/documents/audit.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/strs.h"
#include "spawner/model/audit_chain.h"
#include "spawner/store/documents/backend.h"

#define CHAIN "audit-chain-" /* sorted behind the older names, which go on with a digit */
/* The id of an entry of the chain is this and its sequence: larger than all older ones, which are
 * times. */
#define CHAIN_IDS INT64_C(5000000000000000000)
#define TRIES 16 /* of an entry, while others write, too */

struct df_audit {
    struct df_kube *kube;
    struct df_kube_resource resource;
    const char *name_space;
    char *api_version;
    pthread_mutex_t lock;
    cJSON *open; /* the newest resource, as the API server returned it; NULL: look for it */
    struct df_audit_place last; /* the newest entry that is known */
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

/* ---- names ---------------------------------------------------------------------------------- */

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

/* The names of all resources, the oldest first. */
static int list_names(struct df_audit *a, struct df_strs *names, struct df_err *err)
{
    const struct df_kube_sink sink = {forget_names, note_name, names};
    struct df_kube_at all = trail_at(a, NULL);
    all.metadata_only = true;
    if (df_kube_list(a->kube, &all, NULL, 0, &sink, err) < 0)
        return -1;
    if (names->len)
        qsort(names->items, names->len, sizeof(*names->items), by_name);
    return 0;
}

/* The sequence of the first entry of a resource of the chain; 0: it is not of the chain. */
static int64_t first_of(const char *name)
{
    int64_t first = 0;
    bool named = df_starts_with(name, CHAIN) &&
                 df_parse_i64(name + strspn(name, CHAIN "0"), 1, INT64_MAX, &first, NULL) == 0;
    return named ? first : 0;
}

/* *ret NULL: it is not there. */
static int find_trail(struct df_audit *a, const char *name, cJSON **ret, struct df_err *err)
{
    const struct df_kube_at where = trail_at(a, name);
    struct df_err why = {0};
    *ret = NULL;
    if (df_kube_get(a->kube, &where, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

/* ---- adding --------------------------------------------------------------------------------- */

static struct df_audit_place last_of(const cJSON *trail)
{
    const cJSON *entries = df_json_at(trail, "entries");
    const cJSON *last = cJSON_GetArrayItem(entries, cJSON_GetArraySize(entries) - 1);
    return df_audit_place_of(df_json_at(last, "entry"));
}

/* Remembers what the API server has. If entries that were there are gone, the chain goes on behind
 * them all the same: the hole is found by whoever checks it. */
static void take_open(struct df_audit *a, cJSON *trail)
{
    struct df_audit_place last = last_of(trail);
    cJSON_Delete(a->open);
    a->open = trail;
    if (last.sequence >= a->last.sequence)
        a->last = last;
}

/* Looks for the newest resource of the chain. *ret_begins: there is none, but older ones. */
static int find_open(struct df_audit *a, bool *ret_begins, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    cJSON *trail = NULL;
    if (list_names(a, &names, err) < 0)
        return -1;
    size_t n = names.len;
    while (n && !first_of(names.items[n - 1]))
        n--;
    *ret_begins = names.len && !n && !a->last.sequence;
    if (n && find_trail(a, names.items[n - 1], &trail, err) < 0)
        return -1;
    if (trail)
        take_open(a, trail);
    return 0;
}

static int append_link(cJSON *trail, const cJSON *entry, struct df_audit_place *last,
                       const unsigned char *key, struct df_err *err)
{
    cJSON *entries = df_json_array_at(trail, "entries"), *item = cJSON_CreateObject();
    DF_JSON cJSON *link = cJSON_Duplicate(entry, true);
    if (df_json_append(entries, item, err) < 0 || df_check_alloc(link, err) < 0 ||
        df_audit_link(link, last, key, err) < 0)
        return -1;
    DF_FREE char *id = df_strf("%lld", (long long)(CHAIN_IDS + last->sequence));
    return df_json_put(item, err, DF_STR_ALLOC("id", id), DF_ITEM("entry", DF_TAKE(link)));
}

static cJSON *new_trail(const struct df_audit *a)
{
    DF_FREE char *name = df_strf(CHAIN "%012lld", (long long)a->last.sequence + 1);
    cJSON *trail = cJSON_CreateObject();
    if (name && trail && df_json_add_str(trail, "apiVersion", a->api_version, NULL) == 0 &&
        df_json_add_str(trail, "kind", "AuditTrail", NULL) == 0 &&
        df_json_add_str(df_json_object_at(trail, "metadata"), "name", name, NULL) == 0)
        return trail;
    cJSON_Delete(trail);
    return NULL;
}

/* A full one is never written again, nor is one behind which entries are known. */
static bool has_room(const struct df_audit *a)
{
    return a->open && cJSON_GetArraySize(df_json_at(a->open, "entries")) < DF_LIMIT_AUDIT_ENTRIES &&
           last_of(a->open).sequence == a->last.sequence;
}

static int write_trail(struct df_audit *a, const cJSON *trail, bool is_new, cJSON **ret,
                       struct df_err *err)
{
    const struct df_kube_at new = trail_at(a, NULL), old = trail_at(a, df_kube_name(trail));
    return is_new ? df_kube_create(a->kube, &new, trail, ret, err)
                  : df_kube_update(a->kube, &old, trail, ret, err);
}

struct addition {
    const cJSON *entry;
    const unsigned char *key;
    bool is_new; /* it is the first of its resource */
};

/* 0: written; 1: somebody else has written meanwhile. */
static int try_once(struct df_audit *a, struct addition *add, struct df_err *err)
{
    struct df_err why = {0};
    cJSON *answer = NULL;
    DF_JSON cJSON *begin = NULL;
    bool begins = false;
    if (!a->open && find_open(a, &begins, err) < 0)
        return -1;
    add->is_new = !has_room(a);
    struct df_audit_place last = a->last;
    DF_JSON cJSON *trail = add->is_new ? new_trail(a) : cJSON_Duplicate(a->open, true);
    if (df_check_alloc(trail, err) < 0 ||
        (begins && (df_audit_cut(&last, 0, &begin, err) < 0 ||
                    append_link(trail, begin, &last, add->key, err) < 0)) ||
        append_link(trail, add->entry, &last, add->key, err) < 0)
        return -1;
    int result = write_trail(a, trail, add->is_new, &answer, &why);
    if (result == 0) {
        take_open(a, answer);
        return 0;
    }
    cJSON_Delete(a->open); /* the answer is missing: what is there now is not known */
    a->open = NULL;
    bool again = why.cls == DF_ERR_CONFLICT || why.cls == DF_ERR_NOT_FOUND;
    return again ? 1 : df_err_pass(err, &why);
}

static int add_link(struct df_audit *a, struct addition *add, struct df_err *err)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int result = try_once(a, add, err);
        if (result <= 0)
            return result;
    }
    return df_fail(err, DF_ERR_RETRY, "other replicas write to the audit trail all the time");
}

/* ---- removing the oldest --------------------------------------------------------------------- */

/* Looks for the newest checkpoint: as a rule it is in one of the newest resources. */
static int take_checkpoint(struct df_audit *a, const struct df_strs *names,
                           struct df_audit_check *check, struct df_err *err)
{
    for (size_t i = names->len; i-- > 0;) {
        DF_JSON cJSON *trail = NULL;
        if (first_of(names->items[i]) && find_trail(a, names->items[i], &trail, err) < 0)
            return -1;
        const cJSON *entries = df_json_at(trail, "entries");
        for (int n = cJSON_GetArraySize(entries); n-- > 0;) {
            const cJSON *entry = df_json_at(cJSON_GetArrayItem(entries, n), "entry");
            if (df_json_at(entry, "checkpoint"))
                return df_audit_check_cut(check, entry, err);
        }
    }
    return 0;
}

/* Fails if what is to go is no whole end of the chain: a checkpoint would hide that. */
static int check_going(struct df_audit *a, const struct df_strs *names, size_t going,
                       const unsigned char *key, struct df_err *err)
{
    DF_AUDIT_CHECK check = {.key = key};
    if (take_checkpoint(a, names, &check, err) < 0)
        return -1;
    for (size_t i = going; i-- > 0;) {
        DF_JSON cJSON *trail = NULL;
        if (first_of(names->items[i]) && find_trail(a, names->items[i], &trail, err) < 0)
            return -1;
        const cJSON *entries = df_json_at(trail, "entries");
        for (int n = cJSON_GetArraySize(entries); n-- > 0;)
            if (df_audit_check_next(&check, df_json_at(cJSON_GetArrayItem(entries, n), "entry"),
                                    err) < 0)
                return -1;
    }
    df_audit_check_end(&check);
    return check.broken ? df_audit_fail_cut(&check, err) : 0;
}

/* The checkpoint first: the chain begins behind what goes. */
static int note_cut(struct df_audit *a, const struct df_strs *names, size_t going,
                    const unsigned char *key, struct df_err *err)
{
    DF_JSON cJSON *trail = NULL, *entry = NULL;
    int64_t first = 0;
    for (size_t i = 0; i < going && !first; i++)
        first = first_of(names->items[i]);
    if (!first)
        return 0;
    if (find_trail(a, names->items[going - 1], &trail, err) < 0)
        return -1;
    const struct df_audit_place cut = last_of(trail);
    if (!cut.sequence) /* it is gone already, or none of ours */
        return 0;
    if (check_going(a, names, going, key, err) < 0 ||
        df_audit_cut(&cut, cut.sequence - first + 1, &entry, err) < 0)
        return -1;
    return add_link(a, &(struct addition){entry, key, false}, err);
}

static int drop_oldest(struct df_audit *a, const unsigned char *key, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    if (list_names(a, &names, err) < 0)
        return -1;
    size_t going = names.len > DF_LIMIT_AUDIT_TRAILS ? names.len - DF_LIMIT_AUDIT_TRAILS : 0;
    if (going && note_cut(a, &names, going, key, err) < 0)
        return -1;
    for (size_t i = 0; i < going; i++) {
        const struct df_kube_at oldest = trail_at(a, names.items[i]);
        const struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
        struct df_err why = {0};
        if (df_kube_delete(a->kube, &oldest, &o, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
    }
    return 0;
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

int df_audit_add(struct df_audit *a, const cJSON *entry, const unsigned char *key,
                 struct df_err *err)
{
    struct addition add = {entry, key, false};
    if (check_size(entry, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&a->lock);
    int result = add_link(a, &add, err);
    if (result == 0 && add.is_new && drop_oldest(a, key, err) < 0)
        result = df_err_wrap(err, "the entry is written, but older ones cannot be removed");
    (void)pthread_mutex_unlock(&a->lock);
    return result;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    const struct df_audit_filter *filter; /* or NULL */
    int64_t before;
    cJSON *found; /* items {id, entry} */
};

static int64_t id_of(const cJSON *item)
{
    const char *text = df_json_str(item, "id");
    int64_t id = 0;
    return text && df_parse_i64(text, 1, INT64_MAX, &id, NULL) == 0 ? id : 0;
}

static int read_trail(struct reading *r, const cJSON *trail, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(trail, "entries")) {
        if (id_of(item) < r->before &&
            (!r->filter || df_audit_filter_takes(r->filter, df_json_at(item, "entry"))) &&
            df_json_append(r->found, cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return 0;
}

/* Is all that is below this resource older than what is asked for? */
static bool ends_before(const struct reading *r, const cJSON *trail)
{
    const char *at = df_json_str(cJSON_GetArrayItem(df_json_at(trail, "entries"), 0), "entry.at");
    return r->filter && r->filter->since[0] && at && strcmp(at, r->filter->since) < 0;
}

/* The newest first, until there are more than limit. Those that are older than the chain overlap:
 * they are read all, or not. */
static int read_trails(struct df_audit *a, struct reading *r, int limit, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    if (df_check_alloc(r->found, err) < 0 || list_names(a, &names, err) < 0)
        return -1;
    for (size_t i = names.len; i-- > 0;) {
        DF_JSON cJSON *trail = NULL;
        int64_t first = first_of(names.items[i]);
        bool is_older = !first || CHAIN_IDS + first < r->before;
        if (is_older &&
            (find_trail(a, names.items[i], &trail, err) < 0 || read_trail(r, trail, err) < 0))
            return -1;
        if (first && (cJSON_GetArraySize(r->found) > limit || ends_before(r, trail)))
            break;
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

int df_audit_list(struct df_audit *a, const struct df_audit_filter *filter, const char *cursor,
                  int limit, cJSON **ret, char **ret_cursor, struct df_err *err)
{
    struct reading r = {.filter = filter};
    if (df_page_start(cursor, true, &r.before, err) < 0 || df_page_limit(limit, &limit, err) < 0)
        return -1;
    r.found = cJSON_CreateArray();
    int result = read_trails(a, &r, limit, err);
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
