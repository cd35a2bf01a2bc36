/*
 * json.h - cJSON with strict parsing and this project's error handling.
 *
 * Used for every document of bounded size. Whoever holds the root owns the tree. Thread rule: a
 * tree is used by one thread at a time, unless it is shared (shared.h).
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

/* Every whole number up to this one is exact in a double: 2^53 - 1. */
#define DF_JSON_MAX_WHOLE 9007199254740991.0
/* Whole doubles below this are printed as plain digits, as JavaScript does. */
#define DF_JSON_MAX_PLAIN 1e21

/* Parses exactly one JSON value; only white space may follow. Refused with class USER and the byte
 * offset: bad syntax (strict RFC 8259), invalid UTF-8, duplicate keys, NUL in strings, nesting
 * deeper than DF_LIMIT_JSON_DEPTH. A number that a double would round (beyond 2^53, of more than 15
 * to 17 digits, 1e400) is kept as text (cJSON_Raw) and printed unchanged; the number getters below
 * ignore it. Of others the value is kept: 1E2 is printed as 100. */
int df_json_parse(const char *text, size_t n, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Makes a number from its text in JSON, as the parser does. NULL if out of memory. */
cJSON *df_json_number(const char *text);
/* True for a number, also one that is kept as text. */
bool df_json_is_number(const cJSON *j);

/* U+0000 in a string of what others made: a tool, a program of a module, a value of an output. No
 * UTF-8 has these two bytes, so nothing else looks like it. */
#define DF_JSON_NUL "\xc0\x80"
/* Like df_json_parse(), but takes "\u0000", as DF_JSON_NUL. The tree is for df_json_print_nul() and
 * the functions below; df_json_print() makes U+FFFD of it, so that no document gets one. */
int df_json_parse_nul(const char *text, size_t n, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Like df_json_print(), with DF_JSON_NUL as "\u0000". */
char *df_json_print_nul(const cJSON *j);
/* Copies a string of such a tree to out, with NUL bytes. */
int df_json_add_bytes(struct df_buf *out, const char *s);
/* Writes "^@" for each NUL of such a string, as terminals show it. */
void df_json_show_nul(char *s);

/* Like df_json_parse_nul(), but skips members with these names (a list that ends with NULL) at
 * every level, without building their values; a name that begins with a dot is a path from the root
 * (".metadata.managedFields", which arrays do not count in). Skipped text is only searched for the
 * ends of strings and brackets. For large members that nobody reads. */
int df_json_parse_without(const char *text, size_t n, const char *const *skipped, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Reads a file of at most max bytes and parses it with df_json_parse_nul(). */
int df_json_load(const char *path, size_t max, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Prints it with df_json_print_nul() and writes it with df_fs_write(), for the owner alone (0600).
 * The text, which may have secrets, is overwritten in memory. */
int df_json_save(const char *path, const cJSON *json, struct df_err *err) DF_MUST_CHECK;

/* Prints without white space (or indented by two blanks); the caller frees with free(). Whole
 * numbers below DF_JSON_MAX_PLAIN have no fraction or exponent. Bytes that are not UTF-8 become
 * U+FFFD, a number that is not finite becomes null. NULL only if out of memory, or j is NULL. */
char *df_json_print(const cJSON *j);
/* For people; with DF_JSON_NUL as "\u0000". */
char *df_json_print_pretty(const cJSON *j);

/* Adders return 0, or -1 if out of memory (set in err unless that is NULL). An object or array that
 * is NULL counts as out of memory, so what makes one need not be checked before. A NULL string adds
 * nothing and is success. df_json_add and df_json_append take ownership of the item; on failure
 * they wipe it, because it may be secret. item NULL counts as out of memory. */
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

/* A member for the two functions below: df_json_object(DF_STR("name", name), DF_NUM("serial", 3)).
 * A NULL string is left out, but a NULL of DF_STR_ALLOC counts as out of memory: that is a string
 * that was allocated, and need not be checked before; it stays the caller's. A NULL key counts as
 * out of memory. DF_ITEM hands its item over, also on failure; an item NULL counts as out of
 * memory. The arguments are evaluated in any order, and all of them: an item must not depend on
 * another one. */
enum df_json_member_type {
    DF_MEMBER_END, /* of a list */
    DF_MEMBER_STR,
    DF_MEMBER_STR_ALLOC,
    DF_MEMBER_NUM,
    DF_MEMBER_BOOL,
    DF_MEMBER_TIME,
    DF_MEMBER_ITEM
};
struct df_json_member {
    enum df_json_member_type type;
    const char *key;
    const char *text;
    double number;
    int64_t real_us;
    cJSON *item; /* owned */
};
#define DF_STR(k, v)                                                                               \
    {                                                                                              \
        .key = (k), .type = DF_MEMBER_STR, .text = (v)                                             \
    }
#define DF_STR_ALLOC(k, v)                                                                         \
    {                                                                                              \
        .key = (k), .type = DF_MEMBER_STR_ALLOC, .text = (v)                                       \
    }
#define DF_NUM(k, v)                                                                               \
    {                                                                                              \
        .key = (k), .type = DF_MEMBER_NUM, .number = (double)(v)                                   \
    }
#define DF_BOOL(k, v)                                                                              \
    {                                                                                              \
        .key = (k), .type = DF_MEMBER_BOOL, .number = (v)                                          \
    }
#define DF_TIME(k, v)                                                                              \
    {                                                                                              \
        .key = (k), .type = DF_MEMBER_TIME, .real_us = (v)                                         \
    }
#define DF_ITEM(k, v)                                                                              \
    {                                                                                              \
        .key = (k), .type = DF_MEMBER_ITEM, .item = (v)                                            \
    }

/* Makes an object of members with different keys. The caller owns it; NULL if out of memory. */
#define df_json_object(...) df_json_object_of((const struct df_json_member[]){__VA_ARGS__, {0}})
cJSON *df_json_object_of(const struct df_json_member *members) DF_MUST_CHECK;

/* df_json_put(object, err, DF_STR(...), ...) adds members to an object, or replaces them. 0, or -1
 * if out of memory; the members before the one that failed are in the object then. */
#define df_json_put(object, err, ...)                                                              \
    df_json_put_members(object, (const struct df_json_member[]){__VA_ARGS__, {0}}, err)
int df_json_put_members(cJSON *object, const struct df_json_member *members,
                        struct df_err *err) DF_MUST_CHECK;

/* Returns the member (borrowed); creates an empty object (array) if it is absent or has another
 * type. NULL if out of memory, or if object is NULL. */
cJSON *df_json_object_at(cJSON *object, const char *key);
cJSON *df_json_array_at(cJSON *object, const char *key);

/* Getters by dotted path ("status.claimedBy.claimId"). They return the fallback (NULL for strings)
 * if the member is missing, null or of another type; df_json_int also for a number that is not
 * whole or is beyond DF_JSON_MAX_WHOLE. Results are borrowed. object may be NULL. Keys with a dot
 * cannot be reached. */
const cJSON *df_json_at(const cJSON *object, const char *path);
const char *df_json_str(const cJSON *object, const char *path);
/* The same for what is printed or compared: "" instead of NULL. */
const char *df_json_text(const cJSON *object, const char *path);
double df_json_num(const cJSON *object, const char *path, double fallback);
int64_t df_json_int(const cJSON *object, const char *path, int64_t fallback);
bool df_json_bool(const cJSON *object, const char *path, bool fallback);

/* True if a child of the array (or a member of the object) is this string. list and s may be
 * NULL. */
bool df_json_has_string(const cJSON *list, const char *s);

/* The first object of the array with this text as its member `name`, borrowed; NULL: there is none.
 * list and name may be NULL. */
const cJSON *df_json_named(const cJSON *list, const char *name);

/* Returns a duplicate key of the object (borrowed) in *ret, or NULL. cJSON itself allows
 * duplicates. */
int df_json_duplicate_key(const cJSON *object, const char **ret, struct df_err *err) DF_MUST_CHECK;

/* Equal as JSON values: order of members does not matter, order of items does. */
bool df_json_equal(const cJSON *a, const cJSON *b);

/* Hashes a tree, continuing from seed. Trees with the same members in the same order have the same
 * hash; others hardly ever. Not safe against intended collisions. */
uint64_t df_json_hash(const cJSON *j, uint64_t seed);

/* Overwrites every string with zeros, then deletes the tree. For trees with secrets. NULL is fine.
 */
void df_json_wipe(cJSON *j);
static inline void df_cleanup_secret_json(cJSON **j)
{
    df_json_wipe(*j);
}
#define DF_SECRET_JSON DF_CLEANUP(df_cleanup_secret_json)

/* Applies an RFC 7386 merge patch to *target (both objects). On failure *target is unchanged. */
int df_json_merge_patch(cJSON **target, const cJSON *patch, struct df_err *err) DF_MUST_CHECK;

#endif
