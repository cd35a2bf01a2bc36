/*
 * json.h - cJSON with the strictness and the failure rules of this project.
 *
 * cJSON is used for every document of bounded size. Trees are owned by whoever holds the root.
 * Thread rule: one tree, one thread.
 */
#ifndef DF_JSON_H
#define DF_JSON_H

#include <cjson/cJSON.h>

#include "common/base/buf.h"

static inline void df_cleanup_json(cJSON **j)
{
    cJSON_Delete(*j);
}
#define DF_JSON DF_CLEANUP(df_cleanup_json)

/* Up to here every whole number is itself in a double: 2^53 - 1. */
#define DF_JSON_MAX_WHOLE 9007199254740991.0
/* Whole doubles below this print as plain digits, as JavaScript does it. */
#define DF_JSON_MAX_PLAIN 1e21

/* Parses exactly one JSON value with nothing behind it but white space. Refused with class USER and
 * the byte offset: bad syntax (RFC 8259 to the letter), invalid UTF-8, duplicate keys, NUL in
 * strings, nesting beyond DF_LIMIT_JSON_DEPTH, numbers that are not finite. A whole number that
 * would not print as the same digits is kept as them (cJSON_Raw), so that it prints as it was read;
 * the number getters below do not see it. */
int df_json_parse(const char *text, size_t n, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A whole number from its digits (no leading zeros or plus). NULL on no memory. */
cJSON *df_json_whole(const char *digits);

/* The same, but members of these names (ended by NULL), wherever they stand, are passed over:
 * nothing is made of them, and of their text only the ends of strings and brackets are looked at.
 * For what costs much and is wanted by nobody. */
int df_json_parse_without(const char *text, size_t n, const char *const *skipped, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Reads a file of at most max bytes and parses it. */
int df_json_load(const char *path, size_t max, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Unformatted (or indented by two blanks) text; the caller frees with free(). Whole numbers below
 * DF_JSON_MAX_PLAIN print without fraction or exponent; bytes that are no UTF-8 print as U+FFFD; a
 * number that is not finite prints as null. NULL only on no memory. */
char *df_json_print(const cJSON *j);
char *df_json_print_pretty(const cJSON *j);

/* Adders: 0, or -1 on no memory (err gets it when not NULL). A NULL string value adds nothing and
 * is success. The item of df_json_add is taken over, also on failure; item == NULL counts as no
 * memory. */
int df_json_add(cJSON *object, const char *key, cJSON *item, struct df_err *err);
int df_json_add_str(cJSON *object, const char *key, const char *value, struct df_err *err);
int df_json_add_num(cJSON *object, const char *key, double value, struct df_err *err);
int df_json_add_bool(cJSON *object, const char *key, bool value, struct df_err *err);
int df_json_add_time(cJSON *object, const char *key, int64_t real_us, struct df_err *err);
int df_json_append(cJSON *array, cJSON *item, struct df_err *err);
int df_json_append_str(cJSON *array, const char *value, struct df_err *err);

/* Adds or replaces. */
int df_json_set(cJSON *object, const char *key, cJSON *item, struct df_err *err);
int df_json_set_str(cJSON *object, const char *key, const char *value, struct df_err *err);

/* The member, created as an empty object (array) when absent or of another type; NULL on no memory.
 * Borrowed. */
cJSON *df_json_object_at(cJSON *object, const char *key);
cJSON *df_json_array_at(cJSON *object, const char *key);

/* Getters by dotted path ("status.claimedBy.claimId"); a missing or null member or another type
 * yields the fallback (NULL for strings); for df_json_int a number that is not whole or beyond
 * DF_JSON_MAX_WHOLE, too. Borrowed. object may be NULL. Keys with a dot cannot be reached. */
const cJSON *df_json_at(const cJSON *object, const char *path);
const char *df_json_str(const cJSON *object, const char *path);
double df_json_num(const cJSON *object, const char *path, double fallback);
int64_t df_json_int(const cJSON *object, const char *path, int64_t fallback);
bool df_json_bool(const cJSON *object, const char *path, bool fallback);

/* The key that stands twice in the object (borrowed), or NULL in *ret. cJSON itself does not mind.
 */
int df_json_duplicate_key(const cJSON *object, const char **ret, struct df_err *err) DF_MUST_CHECK;

/* Equal as JSON values: order of members does not matter, order of items does. */
bool df_json_equal(const cJSON *a, const cJSON *b);

/* A number that two trees with the same members in the same order share, and others hardly ever:
 * not for what somebody may want to forge. Continues from seed. */
uint64_t df_json_hash(const cJSON *j, uint64_t seed);

/* Overwrites every string value with zeros, then deletes. For trees with secrets. NULL is fine. */
void df_json_wipe(cJSON *j);
static inline void df_cleanup_secret_json(cJSON **j)
{
    df_json_wipe(*j);
}
#define DF_SECRET_JSON DF_CLEANUP(df_cleanup_secret_json)

/* RFC 7386 merge patch of patch into *target (both objects). On failure *target is as it was. */
int df_json_merge_patch(cJSON **target, const cJSON *patch, struct df_err *err) DF_MUST_CHECK;

#endif
