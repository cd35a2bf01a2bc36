/*
 * names.h - the names of an archive so far, and the rules for the next one.
 * Internal to common/archive. Thread rule: one set, one thread.
 */
#ifndef DF_ARCHIVE_NAMES_H
#define DF_ARCHIVE_NAMES_H

#include "common/base/err.h"

enum df_name_kind { DF_NAME_DIRECTORY, DF_NAME_FILE, DF_NAME_LINK };

struct df_names {
    void *tree; /* of tsearch(3), ordered ignoring case */
};

void df_names_free(struct df_names *n);
#define DF_NAMES DF_CLEANUP(df_names_free)

/* Normalizes a path of an archive: "./a//b/" becomes "a/b", "./" becomes "". The caller frees *ret.
 * Refused: absolute, "..", control bytes, not UTF-8, too long, too deep. */
int df_name_clean(const char *raw, char **ret, struct df_err *err) DF_MUST_CHECK;

/* Adds a normalized path and the directories above it. Refused: a duplicate name (unless both are
 * directories), a name that differs from another only by ASCII case, a path through something else
 * than a directory. */
int df_names_add(struct df_names *n, const char *path, enum df_name_kind kind,
                 struct df_err *err) DF_MUST_CHECK;

/* Fails with class USER, reason SourceRefused. */
int df_archive_refuse(struct df_err *err, const char *fmt, ...) DF_PRINTF(2, 3);
/* The same with class LIMIT, for an exceeded cap. */
int df_archive_too_much(struct df_err *err, const char *fmt, ...) DF_PRINTF(2, 3);

#endif
