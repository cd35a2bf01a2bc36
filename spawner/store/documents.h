/*
 * documents.h - documents of one kind in memory: by name, uid and label, in order of creation.
 *
 * Held as packed text, so that ten thousand of them cost little.
 * Thread rule: one set, one thread at a time.
 */
#ifndef DF_DOCUMENTS_H
#define DF_DOCUMENTS_H

#include "common/base/strs.h"
#include "common/json/packed.h"

struct df_document {
    struct df_document *next;     /* in its bucket */
    struct df_document *next_uid; /* in its bucket of uids */
    struct df_document_link *links;
    size_t link_count;
    int64_t order;  /* of creation */
    uint64_t sense; /* of the item */
    unsigned mark;  /* of the list that told of it last */
    bool gone;      /* removed by us; stands here until the watch has seen it, too */
    const char *name, *uid, *version;
    struct df_packed text;
    char bytes[]; /* all of these */
};

/* A document under one of its labels. */
struct df_document_link {
    struct df_document *document;
    struct df_label_set *set;
    struct df_document_link *next, **at; /* at: the pointer that leads here */
};

struct df_documents {
    struct df_document **names, **uids;
    struct df_label_set **labels;
    size_t count;
    unsigned mark;
};

int df_documents_init(struct df_documents *d, struct df_err *err) DF_MUST_CHECK;
void df_documents_free(struct df_documents *d);

/* Borrowed until the next change; NULL: not there. Those that are gone are found by name alone. */
struct df_document *df_documents_find(const struct df_documents *d, const char *name);
struct df_document *df_documents_find_uid(const struct df_documents *d, const char *uid);

/* All borrowed. */
struct df_document_item {
    const char *name, *uid, *version;
    const struct df_packed *text;
    int64_t order;
    const struct df_strs *labels; /* "key=value" */
    uint64_t sense;               /* a digest of what matters; the caller's to make and compare */
};

/* Puts or replaces. LIMIT beyond DF_LIMIT_KUBE_OBJECTS. */
int df_documents_put(struct df_documents *d, const struct df_document_item *item,
                     struct df_err *err) DF_MUST_CHECK;
/* From now on gone. */
void df_documents_hide(struct df_documents *d, struct df_document *doc);
/* Takes it out and frees it. */
void df_documents_drop(struct df_documents *d, struct df_document *doc);

/* What is put or marked from now on is marked anew; df_documents_next_unmarked() finds the others:
 * one after the other, each to be dropped or marked. */
void df_documents_begin(struct df_documents *d);
struct df_document *df_documents_next_unmarked(const struct df_documents *d);

/* How many have this label ("key=value"). */
size_t df_documents_count(const struct df_documents *d, const char *label);
void df_documents_names(const struct df_documents *d, const char *label, struct df_strs *to);

struct df_documents_query {
    const char *label; /* or NULL */
    const char *prefix;
    int64_t after; /* only with a later order (newest_first: an earlier one) */
    bool newest_first;
};
/* All that fit, in order; *ret is the caller's to free, what it points to is borrowed. */
int df_documents_select(const struct df_documents *d, const struct df_documents_query *q,
                        struct df_document ***ret, size_t *ret_count,
                        struct df_err *err) DF_MUST_CHECK;

#endif
