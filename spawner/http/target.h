/*
 * target.h - the target of a request line: path and query.
 *
 * It is decoded once and strictly, so that no two parsers can understand it differently. Class USER
 * (reason BadTarget) for: a bad or encoded-NUL escape, an encoded slash, control characters, bytes
 * that are not UTF-8, the segments "." and "..", a parameter that is given twice. Empty segments
 * ("//", a slash at the end) are kept as they are: no route has one. Thread rule: one target, one
 * thread.
 */
#ifndef DF_SPAWNER_HTTP_TARGET_H
#define DF_SPAWNER_HTTP_TARGET_H

#include "common/base/err.h"

#define DF_TARGET_SEGMENTS 10 /* the longest route has 9 */
#define DF_TARGET_QUERY 16

struct df_target {
    char *storage; /* owned; everything below points into it */
    const char *segments[DF_TARGET_SEGMENTS];
    size_t segment_count; /* DF_TARGET_SEGMENTS + 1: more than any route has */
    struct {
        const char *name;
        const char *value;
    } query[DF_TARGET_QUERY];
    size_t query_count;
};

/* raw: as received ("/v1/runs/a%2Db?follow=true"); the absolute form (http://host/path) is also
 * accepted. */
int df_target_parse(const char *raw, struct df_target *ret, struct df_err *err) DF_MUST_CHECK;
void df_target_free(struct df_target *t);

/* The value of the parameter ("" if it has none), or NULL. Borrowed. */
const char *df_target_query(const struct df_target *t, const char *name);

#endif
