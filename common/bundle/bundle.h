/*
 * bundle.h - the file that carries a plan to its apply; format: docs/step-protocol.md, "The
 * bundle".
 * Thread rule: one bundle, one thread.
 */
#ifndef DF_BUNDLE_H
#define DF_BUNDLE_H

#include "common/json/json.h"

struct df_bundle_part {
    const char *name; /* "plan", "plan.json", "lock" */
    const char *path; /* file with the content; without it the part is left out */
    int fd;           /* path NULL: the content, from its start; -1: the part is left out */
};

/* Writes a bundle to out_fd, from its offset. header: all members of the header except "parts";
 * borrowed. */
int df_bundle_write(int out_fd, const cJSON *header, const struct df_bundle_part *parts, size_t n,
                    struct df_err *err) DF_MUST_CHECK;

/* Reads and checks only the header: format, and that the sizes add up to the file's. The caller
 * deletes *ret. */
int df_bundle_header(int fd, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Extracts one part to path (mode 0600) and verifies its digest. NOT_FOUND if the bundle has no
 * such part; class DENIED, reason PlanCorrupt, for a mismatch. */
int df_bundle_extract(int fd, const char *name, const char *path, struct df_err *err) DF_MUST_CHECK;

/* Verifies every part's digest. */
int df_bundle_verify(int fd, struct df_err *err) DF_MUST_CHECK;

#endif
