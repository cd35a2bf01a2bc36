/*
 * mirror.h - what the API server has of our documents, in memory: kept true by a list and a watch a
 * kind, and by what our own writes were answered. No document ever goes back to an older version.
 *
 * While somebody writes a document (df_mirror_begin() to df_mirror_end()) what the watch tells of
 * it is put aside, so that the writer, and not the watch, tells of his own write; what others did
 * meanwhile is told afterwards. Of one document there is one writer at a time.
 * Thread rule: any thread.
 */
#ifndef DF_MIRROR_H
#define DF_MIRROR_H

#include "common/kube/kube.h"
#include "spawner/store/store.h"
#include "spawner/store/watch.h"

struct df_mirror; /* opaque */

/* group: of the resources; borrowed, must live on, as name_space. changes of documents are told to
 * the watchers. */
int df_mirror_start(struct df_kube *k, const char *group, const char *name_space,
                    struct df_watchers *watchers, struct df_mirror **ret,
                    struct df_err *err) DF_MUST_CHECK;
/* NULL is fine. */
void df_mirror_stop(struct df_mirror *m);

/* Waits until all there is was listed. RETRY after timeout_ms, with what failed last. */
int df_mirror_wait(struct df_mirror *m, int64_t timeout_ms, struct df_err *err) DF_MUST_CHECK;

/* Lists all anew, and waits until that is taken: nothing that was written before this call is
 * unknown after it. RETRY when *stop turns true. */
int df_mirror_catch_up(struct df_mirror *m, const volatile bool *stop,
                       struct df_err *err) DF_MUST_CHECK;

const struct df_kube_resource *df_mirror_resource(const struct df_mirror *m, enum df_kind kind);

/* ---- reading ---- */

/* The resource as it is on the wire; the caller owns *ret. NOT_FOUND. */
int df_mirror_get(struct df_mirror *m, enum df_kind kind, const char *name, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;
int df_mirror_get_by_uid(struct df_mirror *m, enum df_kind kind, const char *uid, cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* As of store.h, with resources instead of documents. */
int df_mirror_list(struct df_mirror *m, enum df_kind kind, const struct df_store_list_options *o,
                   cJSON **ret, char **ret_cursor, struct df_err *err) DF_MUST_CHECK;
int64_t df_mirror_count(struct df_mirror *m, enum df_kind kind, const char *label);
int df_mirror_names(struct df_mirror *m, enum df_kind kind, const char *label, struct df_strs *to,
                    struct df_err *err) DF_MUST_CHECK;

/* ---- writing ---- */

struct df_mirror_write {
    enum df_kind kind;
    const char *name; /* borrowed */
    cJSON *held;      /* what the watch told last meanwhile */
    bool held_gone;   /* it told that this one was deleted */
    struct df_mirror_write *next;
};

/* Waits for the writer before. */
void df_mirror_begin(struct df_mirror *m, struct df_mirror_write *w, enum df_kind kind,
                     const char *name);
void df_mirror_end(struct df_mirror *m, struct df_mirror_write *w);

/* An answer of the API server. own: it is the caller's write that is told; else that of somebody
 * else. What is older than what is known changes nothing. */
int df_mirror_note(struct df_mirror *m, enum df_kind kind, const cJSON *wire, bool own,
                   struct df_err *err);
/* It was removed, by us (own) or by somebody else. version: of the event. */
void df_mirror_note_gone(struct df_mirror *m, enum df_kind kind, const cJSON *wire, bool own);

#endif
