/*
 * creations.c - a table of the addresses that an apply touched, keyed by the parts of the address.
 * Read df_creations_event(), df_creations_compare() and df_creations_missing().
 *
 * When is an object missing? The tool keeps its state in memory and stores it at intervals and at
 * its end. If the tool ended by itself, everything that the providers returned is in the state that
 * it stored or left as errored.tfstate, even the partial object of a failed creation. An object
 * that is not in that state was never created. If the tool was killed, or if a state lacks a
 * completed object (then the state was lost, whatever the tool reported), only the state counts:
 * every object that was begun and is not in the state may exist.
 */
#include "spawner/steps/creations.h"

#include <search.h>

#include "common/base/limits.h"

struct object {
    struct object *next;
    char *key; /* module, type, name and index */
    char *address;
    char *id, *id_key;         /* of the new object; NULL: unknown */
    char *old_id, *old_id_key; /* of the destroyed object at this address; NULL: unknown */
    bool created;              /* the creation has begun */
    bool finished;
    bool recorded;
};

struct df_creations {
    struct object *first, **end; /* in the order of their events */
    size_t count;
    void *by_key;       /* tsearch(3) tree of the same objects */
    int64_t beyond;     /* creations that did not fit into the table */
    bool tool_ended;    /* the caller has proof of it */
    bool tool_said_end; /* the newest event is one that the tool emits at its end */
    const char *incomparable;
};

struct df_creations *df_creations_new(void)
{
    struct df_creations *c = calloc(1, sizeof(*c));
    if (c)
        c->end = &c->first;
    return c;
}

static void free_object(struct object *o)
{
    if (!o)
        return;
    free(o->key);
    free(o->address);
    free(o->id);
    free(o->id_key);
    free(o->old_id);
    free(o->old_id_key);
    free(o);
}

static void free_nothing(void *node)
{
    (void)node;
}

void df_creations_free(struct df_creations *c)
{
    if (!c)
        return;
    tdestroy(c->by_key, free_nothing);
    for (struct object *o = c->first, *next; o; o = next) {
        next = o->next;
        free_object(o);
    }
    free(c);
}

/* ---- the table ---- */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct object *)a)->key, ((const struct object *)b)->key);
}

static struct object *find_object(const struct df_creations *c, char *key)
{
    const struct object probe = {.key = key};
    struct object *const *node = tfind(&probe, &c->by_key, by_key);
    return node ? *node : NULL;
}

/* Takes ownership of key. */
static struct object *add_object(struct df_creations *c, char *key, const char *address,
                                 struct df_err *err)
{
    struct object *o = calloc(1, sizeof(*o));
    if (o) {
        o->key = key;
        o->address = strdup(address);
    } else {
        free(key);
    }
    if (!o || !o->address || !tsearch(o, &c->by_key, by_key)) {
        free_object(o);
        (void)df_fail_oom(err);
        return NULL;
    }
    *c->end = o;
    c->end = &o->next;
    c->count++;
    return o;
}

/* The key of an object. index: number, string, null or NULL. Returns NULL if out of memory. The
 * index is last, because it may contain the separator; the names cannot. */
static char *key_of(const char *module, const char *type, const char *name, const cJSON *index)
{
    DF_FREE char *text =
        index && !cJSON_IsNull(index) ? df_json_print(index) : strdup(""); /* 1 is not "1" */
    return text ? df_strf("%s\n%s\n%s\n%s", module ? module : "", type, name, text) : NULL;
}

/* ---- events ---- */

/* False for an id that contains a masked secret: it cannot be compared. */
static bool is_whole(const char *id)
{
    return !df_str_empty(id) && !strstr(id, "***");
}

static int note_creation(struct object *o, const char *type, const cJSON *hook, struct df_err *err)
{
    const char *id = df_json_str(hook, "id_value"), *id_key = df_json_str(hook, "id_key");
    o->created = true;
    if (!df_streq(type, "apply_complete"))
        return 0;
    o->finished = true;
    if (!id_key || !is_whole(id))
        return 0;
    return df_str_set(&o->id, id, err) < 0 || df_str_set(&o->id_key, id_key, err) < 0 ? -1 : 0;
}

/* Notes the object that a replacement destroys: a state that still has the old id is older than the
 * new object. */
static int note_destruction(struct object *o, const char *type, const cJSON *hook,
                            struct df_err *err)
{
    const char *id = df_json_str(hook, "id_value"), *id_key = df_json_str(hook, "id_key");
    if (!df_streq(type, "apply_start") || !id_key || !is_whole(id))
        return 0;
    return df_str_set(&o->old_id, id, err) < 0 || df_str_set(&o->old_id_key, id_key, err) < 0 ? -1
                                                                                              : 0;
}

static int note_hook(struct df_creations *c, const char *type, const cJSON *hook,
                     struct df_err *err)
{
    const cJSON *r = df_json_at(hook, "resource");
    const char *kind = df_json_str(r, "resource_type"), *name = df_json_str(r, "resource_name");
    const char *address = df_json_str(r, "addr"), *action = df_json_str(hook, "action");
    bool creates = df_streq(action, "create");
    if (!address || !kind || !name || (!creates && !df_streq(action, "delete")))
        return 0;
    char *key = key_of(df_json_str(r, "module"), kind, name, df_json_at(r, "resource_key"));
    if (!key)
        return df_fail_oom(err);
    struct object *o = find_object(c, key);
    if (!o && c->count == DF_LIMIT_TOUCHED_OBJECTS) {
        free(key);
        c->beyond += creates && df_streq(type, "apply_start");
        return 0;
    }
    if (o)
        free(key);
    else
        o = add_object(c, key, address, err);
    if (!o)
        return -1;
    return creates ? note_creation(o, type, hook, err) : note_destruction(o, type, hook, err);
}

static bool has(const char *line, size_t n, const char *word)
{
    return memmem(line, n, word, strlen(word)) != NULL;
}

/* Skips lines without parsing them, because most are progress and output of provisioners. Quotes
 * inside strings are escaped, so the quoted words cannot be part of a text. */
static bool matters(const char *line, size_t n)
{
    return has(line, n, "\"apply_") || has(line, n, "\"diagnostic\"") ||
           has(line, n, "\"change_summary\"");
}

int df_creations_event(struct df_creations *c, const char *line, size_t n, struct df_err *err)
{
    DF_JSON cJSON *event = NULL;
    struct df_err why = {0};
    if (!matters(line, n))
        return 0;
    if (df_json_parse_nul(line, n, &event, &why) < 0) {
        if (why.cls == DF_ERR_USER)
            return 0;
        return df_err_pass(err, &why);
    }
    const char *type = df_json_str(event, "type");
    if (!type)
        return 0;
    if (df_starts_with(type, "apply_")) {
        c->tool_said_end = false;
        return note_hook(c, type, df_json_at(event, "hook"), err);
    }
    /* The tool emits both after storing the state; the diagnostics include a failure to store. */
    if (df_streq(type, "diagnostic") || df_streq(type, "change_summary"))
        c->tool_said_end = true;
    return 0;
}

void df_creations_tool_ended(struct df_creations *c)
{
    c->tool_ended = true;
}

/* ---- states ---- */

static bool is_missing(const struct object *o)
{
    return o->created && !o->recorded;
}

bool df_creations_any(const struct df_creations *c)
{
    for (const struct object *o = c->first; o; o = o->next)
        if (is_missing(o))
            return true;
    return c->beyond > 0;
}

/* True if the instance is the object that was created, not the one that was replaced. */
static bool is_new(const struct object *o, const cJSON *instance)
{
    const cJSON *attributes = df_json_at(instance, "attributes");
    const char *id = o->id ? df_json_str(attributes, o->id_key) : NULL;
    if (id)
        return strcmp(id, o->id) == 0;
    id = o->old_id ? df_json_str(attributes, o->old_id_key) : NULL;
    if (id)
        return strcmp(id, o->old_id) != 0;
    /* With create_before_destroy both objects look the same until the new one is finished. */
    return o->finished || !df_json_bool(instance, "create_before_destroy", false);
}

static int compare_instance(struct df_creations *c, const cJSON *resource, const cJSON *instance,
                            struct df_err *err)
{
    /* A deposed instance is the old object, which is still to be destroyed. */
    if (!cJSON_IsObject(instance) || df_json_str(instance, "deposed"))
        return 0;
    const char *type = df_json_str(resource, "type"), *name = df_json_str(resource, "name");
    if (!type || !name)
        return 0;
    DF_FREE char *key =
        key_of(df_json_str(resource, "module"), type, name, df_json_at(instance, "index_key"));
    if (!key)
        return df_fail_oom(err);
    struct object *o = find_object(c, key);
    if (o && is_new(o, instance))
        o->recorded = true;
    return 0;
}

int df_creations_compare(struct df_creations *c, const cJSON *state, struct df_err *err)
{
    const cJSON *resource, *instance;
    cJSON_ArrayForEach (resource, df_json_at(state, "resources")) {
        if (!df_streq(df_json_str(resource, "mode"), "managed"))
            continue;
        cJSON_ArrayForEach (instance, df_json_at(resource, "instances")) {
            if (compare_instance(c, resource, instance, err) < 0)
                return -1;
        }
    }
    return 0;
}

void df_creations_incomparable(struct df_creations *c, const char *why)
{
    c->incomparable = why;
}

/* ---- the missing objects ---- */

/* The head of this file says why. */
static bool is_state_complete(const struct df_creations *c)
{
    if (!c->tool_ended && !c->tool_said_end)
        return false;
    for (const struct object *o = c->incomparable ? NULL : c->first; o; o = o->next)
        if (is_missing(o) && o->finished)
            return false;
    return true;
}

static int add_item(cJSON *items, const struct object *o, struct df_err *err)
{
    cJSON *item = cJSON_CreateObject();
    if (df_json_append(items, item, err) < 0 ||
        df_json_add_str(item, "address", o->address, err) < 0 ||
        df_json_add_bool(item, "finished", o->finished, err) < 0 ||
        df_json_add_str(item, "id", o->id, err) < 0)
        return -1;
    return df_json_add_str(item, "idKey", o->id_key, err);
}

static size_t bytes_of(const struct object *o)
{
    return strlen(o->address) + (o->id ? strlen(o->id) + strlen(o->id_key) : 0);
}

static int add_items(const struct df_creations *c, cJSON *to, struct df_err *err)
{
    cJSON *items = df_json_array_at(to, "items");
    size_t listed = 0, bytes = 0;
    int64_t more = c->beyond;
    if (!items)
        return df_fail_oom(err);
    for (const struct object *o = c->first; o; o = o->next) {
        if (!is_missing(o))
            continue;
        if (listed == DF_LIMIT_UNRECORDED || bytes + bytes_of(o) > DF_LIMIT_UNRECORDED_BYTES) {
            more++;
            continue;
        }
        if (add_item(items, o, err) < 0)
            return -1;
        listed++;
        bytes += bytes_of(o);
    }
    return more ? df_json_add_num(to, "more", (double)more, err) : 0;
}

int df_creations_missing(const struct df_creations *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *found = NULL;
    if (df_creations_any(c) && !is_state_complete(c)) {
        found = cJSON_CreateObject();
        if (!found)
            return df_fail_oom(err);
        if (add_items(c, found, err) < 0 ||
            df_json_add_str(found, "note", c->incomparable, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(found);
    return 0;
}
