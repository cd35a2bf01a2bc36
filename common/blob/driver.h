/*
 * driver.h - what the drivers of buckets (bucket.h) share: checks of a place, names, versions, and
 * what a status means. Internal to common/blob. Thread rule: pure functions, any thread.
 */
#ifndef DF_BLOB_DRIVER_H
#define DF_BLOB_DRIVER_H

#include "common/blob/bucket.h"

/* Bytes of an object that are received at once: with curl's own 16 KiB an object of 1 MiB takes 64 turns
 * of poll and recv, a tenth of what a download costs. In memory once for each request on its way. */
#define DF_DRIVER_PIECE ((size_t)128 * DF_KIB)

/* A prefix becomes a part of URLs. USER; so is "". */
int df_driver_check_prefix(const char *prefix, struct df_err *err) DF_MUST_CHECK;

/* https://host[:port], or http; NULL and "": the store's own. USER. */
int df_driver_check_endpoint(const char *endpoint, struct df_err *err) DF_MUST_CHECK;

/* Puts the key of the configuration whose value is wrong in front of a message, if names_keys.
 * Returns -1. */
int df_driver_at(bool names_keys, const char *key, struct df_err *err);

/* The name of a listed object behind the bucket's prefix, borrowed of name. NULL: it is not below
 * the prefix, or not made of segments of safe characters: not ours, and in a URL it could lead
 * elsewhere. */
const char *df_driver_own_name(const char *name, const char *prefix);

/* The version of an object that b answered with this ETag. SYSTEM if it is none. */
int df_driver_set_version(const struct df_bucket *b, const char *name, const char *etag,
                          struct df_bucket_version *ret, struct df_err *err) DF_MUST_CHECK;

/* Where save() writes. */
struct df_driver_file {
    int fd; /* borrowed */
    int64_t left;
    struct df_err err;
};
/* Empties the file. */
int df_driver_file_begin(struct df_driver_file *f, int fd, int64_t max,
                         struct df_err *err) DF_MUST_CHECK;
/* on_data of the request; arg is the struct df_driver_file. */
int df_driver_file_take(void *arg, const char *bytes, size_t n);
/* What prevented its end, after an answer. */
int df_driver_file_end(const struct df_driver_file *f, struct df_err *err) DF_MUST_CHECK;

/* What a status of 300 and above means, unless the store's protocol says otherwise. */
enum df_err_class df_driver_class_of(int status);

#endif
