#include "spawner/store/documents.h"

#include "common/base/limits.h"

enum { BUCKETS = 8192 }; /* ten thousand documents: one or two in each */

struct df_label_set {
    struct df_label_set *next;
    struct df_document_link *first;
    size_t count;
    char label[];
};

static size_t bucket_of(const char *text)
{
    return df_hash_str(DF_HASH_BEGIN, text) % BUCKETS;
}

int df_documents_init(struct df_documents *d, struct df_err *err)
{
    *d = (struct df_documents){0};
    d->names = calloc(BUCKETS, sizeof(struct df_document *));
    d->uids = calloc(BUCKETS, sizeof(struct df_document *));
    d->labels = calloc(BUCKETS, sizeof(struct df_label_set *));
    if (d->names && d->uids && d->labels)
        return 0;
    df_documents_free(d);
    return df_fail_oom(err);
}

static void free_document(struct df_document *doc)
{
    free(doc->links);
    free(doc);
}

void df_documents_free(struct df_documents *d)
{
    for (size_t i = 0; d->names && i < BUCKETS; i++) {
        for (struct df_document *doc = d->names[i], *next; doc; doc = next) {
            next = doc->next;
            free_document(doc);
        }
    }
    for (size_t i = 0; d->labels && i < BUCKETS; i++) {
        for (struct df_label_set *set = d->labels[i], *next; set; set = next) {
            next = set->next;
            free(set);
        }
    }
    free(d->names);
    free(d->uids);
    free(d->labels);
    *d = (struct df_documents){0};
}

/* ---- finding -------------------------------------------------------------------------------- */

struct df_document *df_documents_find(const struct df_documents *d, const char *name)
{
    struct df_document *doc = d->names[bucket_of(name)];
    while (doc && strcmp(doc->name, name) != 0)
        doc = doc->next;
    return doc;
}

struct df_document *df_documents_find_uid(const struct df_documents *d, const char *uid)
{
    struct df_document *doc = d->uids[bucket_of(uid)];
    while (doc && (doc->gone || strcmp(doc->uid, uid) != 0))
        doc = doc->next_uid;
    return doc;
}

static struct df_label_set **label_place(const struct df_documents *d, const char *label)
{
    struct df_label_set **set = &d->labels[bucket_of(label)];
    while (*set && strcmp((*set)->label, label) != 0)
        set = &(*set)->next;
    return set;
}

size_t df_documents_count(const struct df_documents *d, const char *label)
{
    const struct df_label_set *set = *label_place(d, label);
    return set ? set->count : 0;
}

void df_documents_names(const struct df_documents *d, const char *label, struct df_strs *to)
{
    const struct df_label_set *set = *label_place(d, label);
    for (const struct df_document_link *l = set ? set->first : NULL; l; l = l->next)
        (void)df_strs_add(to, l->document->name);
}

/* ---- labels --------------------------------------------------------------------------------- */

static struct df_label_set *label_set(struct df_documents *d, const char *label)
{
    struct df_label_set **place = label_place(d, label);
    if (!*place) {
        size_t n = strlen(label) + 1;
        struct df_label_set *set = malloc(sizeof(*set) + n);
        if (!set)
            return NULL;
        *set = (struct df_label_set){0};
        memcpy(set->label, label, n);
        *place = set;
    }
    return *place;
}

static void drop_set_if_empty(struct df_documents *d, struct df_label_set *set)
{
    if (set->count)
        return;
    struct df_label_set **place = label_place(d, set->label);
    *place = set->next;
    free(set);
}

static void unlink_labels(struct df_documents *d, struct df_document *doc)
{
    for (size_t i = 0; i < doc->link_count; i++) {
        struct df_document_link *link = &doc->links[i];
        *link->at = link->next;
        if (link->next)
            link->next->at = link->at;
        link->set->count--;
        drop_set_if_empty(d, link->set);
    }
    doc->link_count = 0;
}

static int link_labels(struct df_documents *d, struct df_document *doc,
                       const struct df_strs *labels, struct df_err *err)
{
    doc->links = labels->len ? calloc(labels->len, sizeof(*doc->links)) : NULL;
    if (labels->len && !doc->links)
        return df_fail_oom(err);
    for (size_t i = 0; i < labels->len; i++) {
        struct df_label_set *set = label_set(d, labels->items[i]);
        if (!set)
            return df_fail_oom(err);
        struct df_document_link *link = &doc->links[doc->link_count++];
        *link = (struct df_document_link){doc, set, set->first, &set->first};
        if (set->first)
            set->first->at = &link->next;
        set->first = link;
        set->count++;
    }
    return 0;
}

/* ---- changing ------------------------------------------------------------------------------- */

static const char *pack(char **at, const char *s)
{
    size_t n = strlen(s) + 1;
    const char *here = memcpy(*at, s, n);
    *at += n;
    return here;
}

static struct df_document *new_document(const struct df_document_item *i)
{
    size_t n = strlen(i->name) + strlen(i->uid) + strlen(i->version) + i->text->len + 3;
    struct df_document *doc = malloc(sizeof(*doc) + n);
    if (!doc)
        return NULL;
    *doc = (struct df_document){.order = i->order, .sense = i->sense};
    char *at = doc->bytes;
    doc->name = pack(&at, i->name);
    doc->uid = pack(&at, i->uid);
    doc->version = pack(&at, i->version);
    doc->text = *i->text;
    doc->text.bytes = memcpy(at, i->text->bytes, i->text->len);
    return doc;
}

void df_documents_hide(struct df_documents *d, struct df_document *doc)
{
    unlink_labels(d, doc);
    doc->gone = true;
}

void df_documents_drop(struct df_documents *d, struct df_document *doc)
{
    struct df_document **name = &d->names[bucket_of(doc->name)];
    struct df_document **uid = &d->uids[bucket_of(doc->uid)];
    while (*name != doc)
        name = &(*name)->next;
    *name = doc->next;
    while (*uid != doc)
        uid = &(*uid)->next_uid;
    *uid = doc->next_uid;
    unlink_labels(d, doc);
    free_document(doc);
    d->count--;
}

int df_documents_put(struct df_documents *d, const struct df_document_item *item,
                     struct df_err *err)
{
    struct df_document *old = df_documents_find(d, item->name);
    if (!old && d->count >= DF_LIMIT_KUBE_OBJECTS)
        return df_fail(err, DF_ERR_LIMIT, "more than %d documents of one kind",
                       DF_LIMIT_KUBE_OBJECTS);
    struct df_document *doc = new_document(item);
    if (!doc)
        return df_fail_oom(err);
    if (link_labels(d, doc, item->labels, err) < 0) {
        unlink_labels(d, doc);
        free_document(doc);
        return -1;
    }
    if (old)
        df_documents_drop(d, old);
    struct df_document **name = &d->names[bucket_of(doc->name)];
    struct df_document **uid = &d->uids[bucket_of(doc->uid)];
    doc->next = *name;
    *name = doc;
    doc->next_uid = *uid;
    *uid = doc;
    doc->mark = d->mark;
    d->count++;
    return 0;
}

void df_documents_begin(struct df_documents *d)
{
    d->mark++;
}

struct df_document *df_documents_next_unmarked(const struct df_documents *d)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct df_document *doc = d->names[i]; doc; doc = doc->next)
            if (doc->mark != d->mark)
                return doc;
    return NULL;
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct selection {
    const struct df_documents_query *query;
    struct df_document **found;
    size_t count;
};

static void take_if_it_fits(struct selection *s, struct df_document *doc)
{
    const struct df_documents_query *q = s->query;
    bool is_behind = q->newest_first ? doc->order < q->after : doc->order > q->after;
    if (!doc->gone && is_behind && df_starts_with(doc->name, q->prefix))
        s->found[s->count++] = doc;
}

static int by_order(const void *a, const void *b)
{
    int64_t x = (*(struct df_document *const *)a)->order;
    int64_t y = (*(struct df_document *const *)b)->order;
    return (x > y) - (x < y);
}

static void reverse(struct df_document **found, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct df_document *other = found[count - 1 - i];
        found[count - 1 - i] = found[i];
        found[i] = other;
    }
}

int df_documents_select(const struct df_documents *d, const struct df_documents_query *q,
                        struct df_document ***ret, size_t *ret_count, struct df_err *err)
{
    const struct df_label_set *set = q->label ? *label_place(d, q->label) : NULL;
    size_t most = q->label ? (set ? set->count : 0) : d->count;
    struct selection s = {.query = q, .found = calloc(most + 1, sizeof(*s.found))};
    if (!s.found)
        return df_fail_oom(err);
    for (const struct df_document_link *l = set ? set->first : NULL; l; l = l->next)
        take_if_it_fits(&s, l->document);
    for (size_t i = 0; !q->label && i < BUCKETS; i++)
        for (struct df_document *doc = d->names[i]; doc; doc = doc->next)
            take_if_it_fits(&s, doc);
    qsort(s.found, s.count, sizeof(*s.found), by_order);
    if (q->newest_first)
        reverse(s.found, s.count);
    *ret = s.found;
    *ret_count = s.count;
    return 0;
}
