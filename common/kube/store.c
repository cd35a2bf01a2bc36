#include "common/kube/store.h"

#include "common/base/limits.h"
#include "common/kube/watch.h"

enum { BUCKETS = 4096 }; /* ten thousand objects: two or three in each */

int df_kube_store_init(struct df_kube_store *s, struct df_err *err)
{
    *s = (struct df_kube_store){0};
    s->buckets = calloc(BUCKETS, sizeof(struct df_kube_entry *));
    s->index_buckets = calloc(BUCKETS, sizeof(struct df_kube_entry *));
    if (s->buckets && s->index_buckets)
        return 0;
    df_kube_store_free(s);
    return df_fail_oom(err);
}

void df_kube_store_free(struct df_kube_store *s)
{
    for (size_t i = 0; s->buckets && i < BUCKETS; i++) {
        for (struct df_kube_entry *e = s->buckets[i], *next; e; e = next) {
            next = e->next;
            free(e);
        }
    }
    free(s->buckets);
    free(s->index_buckets);
    *s = (struct df_kube_store){0};
}

static struct df_kube_entry **bucket(const struct df_kube_store *s, const char *ns,
                                     const char *name)
{
    return &s->buckets[df_hash_str(df_hash_str(DF_HASH_BEGIN, ns) ^ '/', name) % BUCKETS];
}

static struct df_kube_entry **index_bucket(const struct df_kube_store *s, const char *index)
{
    return &s->index_buckets[df_hash_str(DF_HASH_BEGIN, index) % BUCKETS];
}

/* Where the pointer to the entry stands, or the end of its bucket. */
static struct df_kube_entry **place(const struct df_kube_store *s, const char *ns, const char *name)
{
    struct df_kube_entry **e = bucket(s, ns, name);
    while (*e && (strcmp((*e)->name, name) != 0 || strcmp((*e)->name_space, ns) != 0))
        e = &(*e)->next;
    return e;
}

const struct df_kube_entry *df_kube_store_find(const struct df_kube_store *s, const char *ns,
                                               const char *name)
{
    return *place(s, ns, name);
}

enum df_kube_put df_kube_store_look(struct df_kube_store *s, const char *ns, const char *name,
                                    const char *uid, const char *version)
{
    struct df_kube_entry *e = *place(s, ns, name);
    if (!e)
        return DF_KUBE_PUT_CHANGED;
    e->mark = s->mark;
    if (df_kube_version_is_older(version, e->version))
        return DF_KUBE_PUT_OLDER;
    return df_streq(e->version, version) && df_streq(e->uid, uid) ? DF_KUBE_PUT_SAME
                                                                  : DF_KUBE_PUT_CHANGED;
}

static const char *pack(char **at, const char *s)
{
    size_t n = strlen(s) + 1;
    const char *here = memcpy(*at, s, n);
    *at += n;
    return here;
}

static struct df_kube_entry *make_entry(const struct df_kube_item *i)
{
    size_t n = strlen(i->name_space) + strlen(i->name) + strlen(i->uid) + strlen(i->version) +
               strlen(i->index) + 5 + i->text->len;
    struct df_kube_entry *e = malloc(sizeof(*e) + n);
    if (!e)
        return NULL;
    *e = (struct df_kube_entry){0};
    char *at = e->bytes;
    e->name_space = pack(&at, i->name_space);
    e->name = pack(&at, i->name);
    e->uid = pack(&at, i->uid);
    e->version = pack(&at, i->version);
    e->index = pack(&at, i->index);
    e->text = *i->text;
    e->text.bytes = memcpy(at, i->text->bytes, i->text->len);
    return e;
}

/* Takes the entry out of both chains; it is the caller's then. */
static struct df_kube_entry *unlink_entry(struct df_kube_store *s, struct df_kube_entry **at)
{
    struct df_kube_entry *e = *at;
    *at = e->next;
    struct df_kube_entry **i = index_bucket(s, e->index);
    while (*e->index && *i != e)
        i = &(*i)->index_next;
    if (*e->index)
        *i = e->index_next;
    s->len--;
    return e;
}

int df_kube_store_put(struct df_kube_store *s, const struct df_kube_item *item, struct df_err *err)
{
    struct df_kube_entry **old = place(s, item->name_space, item->name);
    if (!*old && s->len >= DF_LIMIT_KUBE_OBJECTS)
        return df_fail(err, DF_ERR_LIMIT, "more than %d objects of one type",
                       DF_LIMIT_KUBE_OBJECTS);
    struct df_kube_entry *e = make_entry(item);
    if (!e)
        return df_fail_oom(err);
    if (*old)
        free(unlink_entry(s, old));
    struct df_kube_entry **b = bucket(s, e->name_space, e->name);
    e->next = *b;
    *b = e;
    if (*e->index) {
        struct df_kube_entry **i = index_bucket(s, e->index);
        e->index_next = *i;
        *i = e;
    }
    e->mark = s->mark;
    s->len++;
    return 0;
}

bool df_kube_store_remove(struct df_kube_store *s, const char *ns, const char *name,
                          const char *version)
{
    struct df_kube_entry **e = place(s, ns, name);
    if (!*e || df_kube_version_is_older(version, (*e)->version))
        return false;
    free(unlink_entry(s, e));
    return true;
}

void df_kube_store_begin(struct df_kube_store *s)
{
    s->mark++;
}

struct df_kube_entry *df_kube_store_sweep(struct df_kube_store *s, const char *version)
{
    struct df_kube_entry *gone = NULL;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct df_kube_entry **e = &s->buckets[i]; *e;) {
            if ((*e)->mark == s->mark || df_kube_version_is_older(version, (*e)->version)) {
                e = &(*e)->next;
                continue;
            }
            struct df_kube_entry *out = unlink_entry(s, e);
            out->next = gone;
            gone = out;
        }
    }
    return gone;
}

int df_kube_store_texts(const struct df_kube_store *s, const char *index, struct df_packed_list *to,
                        struct df_err *err)
{
    const struct df_kube_entry *e = index ? *index_bucket(s, index) : NULL;
    for (; e; e = e->index_next)
        if (strcmp(e->index, index) == 0 && df_packed_list_add(to, &e->text, err) < 0)
            return -1;
    for (size_t i = 0; !index && i < BUCKETS; i++)
        for (e = s->buckets[i]; e; e = e->next)
            if (df_packed_list_add(to, &e->text, err) < 0)
                return -1;
    return 0;
}
