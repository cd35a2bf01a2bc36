/*
 * store.h - a place for Terrakube's objects: files, buckets of a cloud, or the API itself. Internal
 * to common/terrakube: storage.c repeats its calls. Thread rule: one store, one thread.
 */
#ifndef DF_TERRAKUBE_STORE_H
#define DF_TERRAKUBE_STORE_H

#include "common/terrakube/storage.h"

/* One object; borrowed. What its kind does not need is NULL. */
struct df_terrakube_item {
    enum df_terrakube_object what;
    const char *organization, *workspace, *job, *step;
    const char *name; /* as of df_terrakube_storage_put() */
};

struct df_terrakube_store;

/* Each call is one attempt. Failures as of bucket.h: RETRY may pass. */
struct df_terrakube_store_ops {
    void (*close)(struct df_terrakube_store *s);
    int (*put)(struct df_terrakube_store *s, const struct df_terrakube_item *i, const void *bytes,
               size_t n, struct df_err *err);
    /* Into this file, which is emptied first. NOT_FOUND; LIMIT. */
    int (*get)(struct df_terrakube_store *s, const struct df_terrakube_item *i, int fd,
               struct df_err *err);
    /* Where a plan is, as job.terraformPlan says it. The caller frees; NULL: no memory. */
    char *(*place)(struct df_terrakube_store *s, const struct df_terrakube_item *i);
    const char *before; /* the segments of a place that are before the organization */
};

/* What every store begins with. */
struct df_terrakube_store {
    const struct df_terrakube_store_ops *ops;
};

/* The settings are borrowed. */
int df_terrakube_store_files(const struct df_terrakube_settings *s, struct df_terrakube_store **ret,
                             struct df_err *err) DF_MUST_CHECK;
int df_terrakube_store_buckets(const struct df_terrakube_settings *s,
                               struct df_terrakube_store **ret, struct df_err *err) DF_MUST_CHECK;
int df_terrakube_store_api(const struct df_terrakube_settings *s, const volatile bool *stop,
                           struct df_terrakube_store **ret, struct df_err *err) DF_MUST_CHECK;

/* The three parts of the storage; in Azure a container each. */
enum df_terrakube_area { DF_TERRAKUBE_TFSTATE, DF_TERRAKUBE_TFOUTPUT, DF_TERRAKUBE_TFBINARY };
enum { DF_TERRAKUBE_AREAS = 3 };
enum df_terrakube_area df_terrakube_item_area(const struct df_terrakube_item *i);
/* The name within its area. The caller frees; NULL: no memory. */
char *df_terrakube_item_key(const struct df_terrakube_item *i);

/* The bytes of a file as it is now, read as they are used: large ones need no memory. */
struct df_terrakube_bytes {
    const void *at; /* never NULL */
    size_t n;
    void *mapping; /* NULL: an empty file */
};
/* NOT_FOUND; LIMIT beyond DF_LIMIT_TERRAKUBE_OBJECT; USER: not a regular file. */
int df_terrakube_bytes_open(const char *path, struct df_terrakube_bytes *ret,
                            struct df_err *err) DF_MUST_CHECK;
void df_terrakube_bytes_close(struct df_terrakube_bytes *b);
#define DF_TERRAKUBE_BYTES DF_CLEANUP(df_terrakube_bytes_close) struct df_terrakube_bytes

#endif
