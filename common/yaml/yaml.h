/*
 * yaml.h - parses YAML (libyaml's event API) into the cJSON trees of json.h and records the line of
 * every key.
 *
 * It accepts the JSON-like core: mappings with string keys, sequences, plain scalars by the YAML
 * 1.2 core schema (so `no` is a string, `0o7` a number), quoted scalars as strings, anchors and
 * aliases within the node budget. Refused with class USER and the line: tags, merge keys, duplicate
 * keys, more than DF_LIMIT_YAML_NODES values after alias expansion, more than DF_LIMIT_YAML_ANCHORS
 * anchors, nesting deeper than DF_LIMIT_JSON_DEPTH, invalid UTF-8.
 */
#ifndef DF_YAML_H
#define DF_YAML_H

#include "common/json/json.h"

/* The line of each value by its dotted path. Opaque. */
struct df_yaml_lines;
void df_yaml_lines_free(struct df_yaml_lines *l);
/* Returns the line (from 1) of the value at this dotted path ("spec.source[0].url"), or 0. */
unsigned df_yaml_line(const struct df_yaml_lines *l, const char *path);

/* Parses one document; an empty text is null. ret_lines may be NULL. */
int df_yaml_parse(const char *text, size_t n, cJSON **ret, struct df_yaml_lines **ret_lines,
                  struct df_err *err) DF_MUST_CHECK;

/* Parses documents separated by `---` into an array; empty ones are left out. */
int df_yaml_parse_all(const char *text, size_t n, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Prints a JSON tree as YAML in block style. Strings are quoted if a reader of YAML 1.2 or 1.1
 * would take them for another type. The caller frees; NULL only if out of memory, or j is NULL. */
char *df_yaml_print(const cJSON *j);

#endif
