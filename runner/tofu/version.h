/*
 * version.h - versions of tofu and terraform, and version constraints.
 *
 * A version has one to three numbers ("1.9" is 1.9.0), optionally a "v" before and a pre-release
 * after them ("1.10.0-rc1"), in the order of SemVer 2.0.0; build metadata ("+...") is ignored.
 * A constraint is a comma-separated list of an operator (`=`, the default, `!=`, `>`, `>=`, `<`,
 * `<=`, `~>`) and a version. A pre-release satisfies it only if the list names a pre-release with
 * the same numbers.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_TOFU_VERSION_H
#define DF_TOFU_VERSION_H

#include "common/base/err.h"

#define DF_VERSION_TEXT 112

struct df_version {
    int64_t number[3];
    int given;    /* how many of the numbers were written */
    char pre[64]; /* without the dash; or "" */
};

/* Class USER for anything else. */
int df_version_parse(const char *text, struct df_version *ret, struct df_err *err) DF_MUST_CHECK;
/* "1.9.0-rc1". Returns out. */
const char *df_version_format(const struct df_version *v, char out[DF_VERSION_TEXT]);
/* Below, at or above zero. */
int df_version_compare(const struct df_version *a, const struct df_version *b);

enum df_version_op {
    DF_VERSION_EQ,
    DF_VERSION_NE,
    DF_VERSION_GT,
    DF_VERSION_GE,
    DF_VERSION_LT,
    DF_VERSION_LE,
    DF_VERSION_NEAR /* ~> */
};

struct df_constraint {
    struct {
        enum df_version_op op;
        struct df_version version;
    } terms[8];
    size_t n; /* 0: anything but a pre-release */
};

/* NULL and "" allow every release. Class USER, naming the term that is wrong. */
int df_constraint_parse(const char *text, struct df_constraint *ret,
                        struct df_err *err) DF_MUST_CHECK;
/* As text that df_constraint_parse() reads. The caller frees; NULL: no memory. */
char *df_constraint_print(const struct df_constraint *c);
bool df_constraint_allows(const struct df_constraint *c, const struct df_version *v);
/* The only version that the constraint can mean ("1.9.0", "= 1.9.0"), borrowed; else NULL. */
const struct df_version *df_constraint_exact(const struct df_constraint *c);

#endif
