/*
 * lines.h - the line of each value in a YAML text; used inside common/yaml only.
 *
 * The tree is a vector: an entry refers to its parent by index and owns its key once, so memory
 * stays linear in the text, however long and deep the paths are.
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

/* Adds an entry and returns its index. key (copied) may be NULL. */
int df_yaml_lines_add(struct df_yaml_lines *l, size_t parent, const char *key, size_t index,
                      unsigned line, size_t *ret, struct df_err *err) DF_MUST_CHECK;

/* Returns the line of the last entry with this key under parent, or 0. */
unsigned df_yaml_lines_of_key(const struct df_yaml_lines *l, size_t parent, const char *key);

#endif
