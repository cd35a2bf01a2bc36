/*
 * yaml.h - YAML (libyaml's event API) into the cJSON trees of json.h, with the line of every key.
 *
 * Accepted is the JSON-like core: mappings with string keys, sequences, plain scalars by the
 * YAML 1.2 core schema (so `no` is a string, `0o7` a number), quoted scalars as strings, anchors
 * and aliases within the node budget. Refused with class USER and the place: tags, merge keys,
 * duplicate keys, more than DF_LIMIT_YAML_NODES values after alias expansion, more than
 * DF_LIMIT_YAML_ANCHORS anchors, nesting beyond DF_LIMIT_JSON_DEPTH, invalid UTF-8.
 */
#ifndef DF_YAML_H
#define DF_YAML_H

#include "common/json/json.h"

/* Where each value was written: dotted path -> line. Opaque. */
struct df_yaml_lines;
void df_yaml_lines_free(struct df_yaml_lines *l);
/* The line (from 1) of the value at this dotted path ("spec.source[0].url" style as json paths of
 * the model), or 0. */
unsigned df_yaml_line(const struct df_yaml_lines *l, const char *path);

/* One document; a text without any is null. ret_lines may be NULL when lines are not wanted. */
int df_yaml_parse(const char *text, size_t n, cJSON **ret, struct df_yaml_lines **ret_lines,
                  struct df_err *err) DF_MUST_CHECK;

/* Several documents separated by `---`: *ret becomes an array; empty ones are left out. */
int df_yaml_parse_all(const char *text, size_t n, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* YAML text of a JSON tree (block style, strings quoted where a plain one would read as something
 * else, also to readers of YAML 1.1). The caller frees; NULL only on no memory. */
char *df_yaml_print(const cJSON *j);

#endif
