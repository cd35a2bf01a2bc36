/*
 * range.h - version ranges as npm writes them, for schedulers that take those instead of
 * constraints.
 *
 * Alternatives are separated by `||`; each is `1.2.3 - 1.4`, or comparators separated by blanks or
 * commas that all hold: `1.5.x`, `1.5` (the same), `*`, `>=1.5`, `<1.8`, `^1.2` (up to the next
 * major version), `~1.6` and `~> 1.6` (both: up to the next minor version, unlike in a constraint
 * of version.h). Thread rule: pure functions, any thread.
 */
#ifndef DF_TOFU_RANGE_H
#define DF_TOFU_RANGE_H

#include "common/base/buf.h"
#include "runner/tofu/version.h"

struct df_range {
    struct df_constraint any[8];
    size_t n; /* at least 1 */
};

/* NULL, "" and "latest" allow every release. Class USER, naming the part that is wrong. */
int df_range_parse(const char *text, struct df_range *ret, struct df_err *err) DF_MUST_CHECK;
bool df_range_allows(const struct df_range *r, const struct df_version *v);
/* The only version that the range can mean, borrowed; else NULL. */
const struct df_version *df_range_exact(const struct df_range *r);

#endif
