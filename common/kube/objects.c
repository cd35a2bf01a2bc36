/*
 * Two hash tables: names to objects, and index words to all objects that have them. An object
 * stores its position in the list of each of its words, so it can be removed in constant time, and
 * counting a word reads one number. Read df_kube_objects_put() first.
 */
#include "common/kube/objects.h"

#include "common/base/limits.h"
#include "common/kube/watch.h"

enum { BUCKETS = 4096 }; /* two or three objects in each, with ten thousand */

struct df_kube_word {
    struct df_kube_word *next; /* in its bucket */
    struct df_kube_object **objects;
    uint32_t count, room;
    struct df_kube_object *first; /* most words have one object; then `objects` points here */
    char text[];
};

int df_kube_objects_init(struct df_kube_objects *s, struct df_err *err)
{
    *s = (struct df_kube_objects){0};
    s->names = calloc(BUCKETS, sizeof(struct df_kube_object *));
    s->words = calloc(BUCKETS, sizeof(struct df_kube_word *));
    if (s->names && s->words)
        return 0;
    df_kube_objects_free(s);
    return df_fail_oom(err);
}

static void word_free(struct df_kube_word *w)
{
    if (w->objects != &w->first)
        free(w->objects);
    free(w);
}

void df_kube_objects_free(struct df_kube_objects *s)
{
    for (size_t i = 0; s->names && i < BUCKETS; i++) {
        for (struct df_kube_object *o = s->names[i], *next; o; o = next) {
            next = o->next;
            df_kube_object_free(o);
        }
    }
    for (size_t i = 0; s->words && i < BUCKETS; i++) {
        for (struct df_kube_word *w = s->words[i], *next; w; w = next) {
            next = w->next;
            word_free(w);
        }
    }
    free(s->names);
    free(s->words);
    df_kube_hot_free(&s->hot);
    *s = (struct df_kube_objects){0};
}

/* ---- finding -------------------------------------------------------------------------------- */

/* The strings are stored one after the other: name, namespace, uid, version. */
static const char *string_behind(const char *s)
{
    return s + strlen(s) + 1;
}

const char *df_kube_object_space(const struct df_kube_object *o)
{
    return string_behind(o->name);
}

const char *df_kube_object_uid(const struct df_kube_object *o)
{
    return string_behind(df_kube_object_space(o));
}

const char *df_kube_object_version(const struct df_kube_object *o)
{
    return string_behind(df_kube_object_uid(o));
}

/* Returns the address of the pointer to the object, or of the end of its bucket. */
static struct df_kube_object **name_slot(const struct df_kube_objects *s, const char *name_space,
                                         const char *name)
{
    uint64_t hash = df_hash_str(df_hash_str(DF_HASH_BEGIN, name_space) ^ '/', name);
    struct df_kube_object **o = &s->names[hash % BUCKETS];
    while (*o &&
           (strcmp((*o)->name, name) != 0 || strcmp(df_kube_object_space(*o), name_space) != 0))
        o = &(*o)->next;
    return o;
}

struct df_kube_object *df_kube_objects_find(const struct df_kube_objects *s, const char *name_space,
                                            const char *name)
{
    return *name_slot(s, name_space, name);
}

static struct df_kube_word **word_slot(const struct df_kube_objects *s, const char *text)
{
    struct df_kube_word **w = &s->words[df_hash_str(DF_HASH_BEGIN, text) % BUCKETS];
    while (*w && strcmp((*w)->text, text) != 0)
        w = &(*w)->next;
    return w;
}

struct df_kube_object *df_kube_objects_first(const struct df_kube_objects *s, const char *word)
{
    const struct df_kube_word *w = *word_slot(s, word);
    return w ? w->objects[0] : NULL;
}

size_t df_kube_objects_count(const struct df_kube_objects *s, const char *word)
{
    const struct df_kube_word *w = *word_slot(s, word);
    return w ? w->count : 0;
}

void df_kube_objects_names(const struct df_kube_objects *s, const char *word, struct df_strs *to)
{
    const struct df_kube_word *w = *word_slot(s, word);
    for (size_t i = 0; w && i < w->count; i++)
        (void)df_strs_add(to, w->objects[i]->name);
}

bool df_kube_objects_is_news(struct df_kube_objects *s, const char *name_space, const char *name,
                             const char *uid, const char *version)
{
    struct df_kube_object *o = *name_slot(s, name_space, name);
    if (!o)
        return true;
    o->generation = s->generation;
    bool is_same = df_streq(df_kube_object_uid(o), uid);
    if (is_same && (o->is_tombstone || df_streq(df_kube_object_version(o), version)))
        return false;
    return !df_kube_version_is_older(version, df_kube_object_version(o));
}

/* ---- words ---------------------------------------------------------------------------------- */

static struct df_kube_word *find_or_make_word(struct df_kube_objects *s, const char *text)
{
    struct df_kube_word **slot = word_slot(s, text);
    if (!*slot) {
        size_t n = strlen(text) + 1;
        struct df_kube_word *w = malloc(sizeof(*w) + n);
        if (!w)
            return NULL;
        *w = (struct df_kube_word){.objects = &w->first, .room = 1};
        memcpy(w->text, text, n);
        *slot = w;
    }
    return *slot;
}

static int word_make_room(struct df_kube_word *w, struct df_err *err)
{
    if (w->count < w->room)
        return 0;
    bool is_inside = w->objects == &w->first;
    uint32_t room = w->room < 4 ? 4 : w->room + w->room / 2;
    struct df_kube_object **more = realloc(is_inside ? NULL : w->objects, room * sizeof(*more));
    if (!more)
        return df_fail_oom(err);
    if (is_inside)
        *more = w->first;
    w->objects = more;
    w->room = room;
    return 0;
}

static void word_drop_if_unused(struct df_kube_objects *s, struct df_kube_word *w)
{
    if (w->count)
        return;
    *word_slot(s, w->text) = w->next;
    word_free(w);
}

static int enter_words(struct df_kube_objects *s, struct df_kube_object *o,
                       const struct df_strs *words, struct df_err *err)
{
    for (size_t i = 0; words && i < words->len; i++) {
        struct df_kube_word *w = find_or_make_word(s, words->items[i]);
        if (!w)
            return df_fail_oom(err);
        if (word_make_room(w, err) < 0) {
            word_drop_if_unused(s, w);
            return -1;
        }
        o->members[o->member_count++] = (struct df_kube_member){w, w->count};
        w->objects[w->count++] = o;
    }
    return 0;
}

/* Moves the last object of the word into the free position. */
static void leave_word(struct df_kube_objects *s, struct df_kube_member *m)
{
    struct df_kube_word *w = m->word;
    struct df_kube_object *last = w->objects[--w->count];
    struct df_kube_member *of_last = last->members;
    while (of_last->word != w || of_last->at != w->count)
        of_last++;
    of_last->at = m->at;
    w->objects[m->at] = last;
    word_drop_if_unused(s, w);
}

static void leave_words(struct df_kube_objects *s, struct df_kube_object *o)
{
    while (o->member_count) {
        leave_word(s, &o->members[o->member_count - 1]);
        o->member_count--;
    }
}

/* ---- changing ------------------------------------------------------------------------------- */

static char *append_string(char *to, const char *s)
{
    size_t n = strlen(s) + 1;
    memcpy(to, s, n);
    return to + n;
}

static struct df_kube_object *new_object(const struct df_kube_item *i, uint32_t generation)
{
    size_t members = (i->words ? i->words->len : 0) * sizeof(struct df_kube_member);
    size_t strings = strlen(i->name_space) + strlen(i->name) + strlen(i->uid) + strlen(i->version);
    struct df_kube_object *o = malloc(sizeof(*o) + members + strings + 4);
    if (!o)
        return NULL;
    char *at = (char *)o->members + members;
    *o = (struct df_kube_object){.name = at,
                                 .order = i->order,
                                 .digest = i->digest,
                                 .generation = generation,
                                 .kept = df_cached_share(i->kept)};
    at = append_string(at, i->name);
    at = append_string(at, i->name_space);
    at = append_string(at, i->uid);
    (void)append_string(at, i->version);
    return o;
}

void df_kube_objects_bury(struct df_kube_objects *s, struct df_kube_object *o)
{
    leave_words(s, o);
    df_kube_hot_drop(&s->hot, o);
    df_cached_drop(DF_TAKE(o->kept));
    o->is_tombstone = true;
}

void df_kube_objects_remove(struct df_kube_objects *s, struct df_kube_object *o)
{
    *name_slot(s, df_kube_object_space(o), o->name) = o->next;
    leave_words(s, o);
    df_kube_hot_drop(&s->hot, o);
    s->count--;
}

void df_kube_object_free(struct df_kube_object *o)
{
    if (!o)
        return;
    df_cached_drop(o->kept);
    free(o);
}

int df_kube_objects_put(struct df_kube_objects *s, const struct df_kube_item *item,
                        struct df_err *err)
{
    struct df_kube_object *old = df_kube_objects_find(s, item->name_space, item->name);
    if (!old && s->count >= DF_LIMIT_KUBE_OBJECTS)
        return df_fail(err, DF_ERR_LIMIT, "more than %d objects of one type",
                       DF_LIMIT_KUBE_OBJECTS);
    if (item->words && item->words->len > UINT16_MAX)
        return df_fail(err, DF_ERR_LIMIT, "%s: more than %d index words", item->name, UINT16_MAX);
    if (df_kube_hot_reserve(&s->hot, err) < 0)
        return -1;
    struct df_kube_object *o = new_object(item, s->generation);
    if (!o)
        return df_fail_oom(err);
    if (enter_words(s, o, item->words, err) < 0) {
        leave_words(s, o);
        df_kube_object_free(o);
        return -1;
    }
    if (old)
        df_kube_objects_remove(s, old);
    df_kube_object_free(old);
    struct df_kube_object **slot = name_slot(s, item->name_space, item->name);
    *slot = o;
    s->count++;
    df_kube_objects_use(s, o);
    return 0;
}

/* ---- hot and cold --------------------------------------------------------------------------- */

void df_kube_objects_use(struct df_kube_objects *s, struct df_kube_object *o)
{
    if (df_cached_tree(o->kept))
        df_kube_hot_use(&s->hot, o);
}

struct df_cached *df_kube_objects_coldest(const struct df_kube_objects *s, size_t most)
{
    return s->hot.len > most ? s->hot.objects[0]->kept : NULL;
}

void df_kube_objects_cool(struct df_kube_objects *s, const struct df_cached *hot,
                          struct df_cached *cold)
{
    size_t i = 0;
    while (i < s->hot.len && s->hot.objects[i]->kept != hot)
        i++;
    if (i == s->hot.len)
        return;
    struct df_kube_object *o = s->hot.objects[i];
    df_kube_hot_drop(&s->hot, o);
    df_cached_drop(o->kept);
    o->kept = df_cached_share(cold);
}

/* ---- lists' generations --------------------------------------------------------------------- */

void df_kube_objects_begin(struct df_kube_objects *s)
{
    s->generation++;
}

struct df_kube_object *df_kube_objects_unlisted(const struct df_kube_objects *s, size_t *bucket)
{
    for (; *bucket < BUCKETS; ++*bucket)
        for (struct df_kube_object *o = s->names[*bucket]; o; o = o->next)
            if (o->generation != s->generation)
                return o;
    return NULL;
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct selection {
    const struct df_kube_query *query;
    struct df_kube_object **found;
    size_t count;
};

static void add_if_it_matches(struct selection *s, struct df_kube_object *o)
{
    const struct df_kube_query *q = s->query;
    bool is_behind = !q->after || (q->newest_first ? o->order < q->after : o->order > q->after);
    if (!o->is_tombstone && is_behind && (!q->prefix || df_starts_with(o->name, q->prefix)))
        s->found[s->count++] = o;
}

static int by_order(const void *a, const void *b)
{
    int64_t x = (*(struct df_kube_object *const *)a)->order;
    int64_t y = (*(struct df_kube_object *const *)b)->order;
    return (x > y) - (x < y);
}

static int by_order_newest_first(const void *a, const void *b)
{
    return by_order(b, a);
}

int df_kube_objects_select(const struct df_kube_objects *s, const struct df_kube_query *q,
                           struct df_kube_object ***ret, size_t *ret_count, struct df_err *err)
{
    const struct df_kube_word *w = q->word ? *word_slot(s, q->word) : NULL;
    size_t most = q->word ? (w ? w->count : 0) : s->count;
    struct selection found = {.query = q, .found = calloc(most + 1, sizeof(*found.found))};
    if (!found.found)
        return df_fail_oom(err);
    for (size_t i = 0; w && i < w->count; i++)
        add_if_it_matches(&found, w->objects[i]);
    for (size_t i = 0; !q->word && i < BUCKETS; i++)
        for (struct df_kube_object *o = s->names[i]; o; o = o->next)
            add_if_it_matches(&found, o);
    qsort(found.found, found.count, sizeof(*found.found),
          q->newest_first ? by_order_newest_first : by_order);
    *ret = found.found;
    *ret_count = found.count;
    return 0;
}
