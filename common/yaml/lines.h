/*
 * lines.h - where in a YAML text each value was written; inside common/yaml only.
 *
 * A tree in a vector: an entry knows its parent by index and owns its key once, so that memory
 * stays linear in the text however long and deep the paths are.
 */
#ifndef DF_YAML_LINES_H
#define DF_YAML_LINES_H

#include "common/yaml/yaml.h"

#define DF_YAML_NO_PARENT SIZE_MAX

struct df_yaml_lines {
    struct df_yaml_line_entry {
        size_t parent;
        char *key;    /* owned; NULL for items of a sequence and for the root */
        size_t index; /* of an item */
        unsigned line;
    } * entries;
    size_t len;
    size_t cap;
};

/* Adds an entry and yields its index. key (copied) may be NULL. */
int df_yaml_lines_add(struct df_yaml_lines *l, size_t parent, const char *key, size_t index,
                      unsigned line, size_t *ret, struct df_err *err) DF_MUST_CHECK;

/* The line of the last entry with this key under parent, or 0. */
unsigned df_yaml_lines_of_key(const struct df_yaml_lines *l, size_t parent, const char *key);

#endif
