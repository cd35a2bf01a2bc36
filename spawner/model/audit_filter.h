/*
 * audit_filter.h - which entries of the audit trail are asked for. Thread rule: pure functions, any
 * thread.
 */
#ifndef DF_MODEL_AUDIT_FILTER_H
#define DF_MODEL_AUDIT_FILTER_H

#include "common/base/clock.h"
#include "common/json/json.h"

/* The members of an entry that must have exactly this value. The first ones have fewer entries
 * each, as a rule: a search begins with the first of them that is given. */
enum df_audit_word {
    DF_AUDIT_NAME,
    DF_AUDIT_ACTOR,
    DF_AUDIT_ACTION,
    DF_AUDIT_KIND,
    DF_AUDIT_OUTCOME,
    DF_AUDIT_WORDS
};
/* "name", "actor", ... */
const char *df_audit_word_name(enum df_audit_word word);

struct df_audit_filter {
    const char *words[DF_AUDIT_WORDS]; /* borrowed; NULL: any */
    char since[DF_TIME_LEN];           /* at or after; "": any. In the form of the entries */
    char until[DF_TIME_LEN];           /* before */
};

/* Sets one part of the filter, of this name: a word, `since` or `until` (RFC 3339). value is
 * borrowed; NULL: success. USER for a value that no entry can have, with the value in the message,
 * and if `since` is not before `until`. */
int df_audit_filter_set(struct df_audit_filter *f, const char *name, const char *value,
                        struct df_err *err) DF_MUST_CHECK;

bool df_audit_filter_takes(const struct df_audit_filter *f, const cJSON *entry);

#endif
