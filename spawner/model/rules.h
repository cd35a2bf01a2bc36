/*
 * rules.h - rules that a table of fields cannot express; for spawner/model only.
 * Each is a df_rule: it adds a fault for everything that is wrong.
 */
#ifndef DF_RULES_H
#define DF_RULES_H

#include "spawner/model/schema.h"

/* rules.c: strings and keys */
df_rule df_rule_name;     /* a DNS label */
df_rule df_rule_duration; /* "1h30m", from one second to a week */
df_rule df_rule_age;      /* "720h", from 0s to ten years */
df_rule df_rule_time;     /* RFC 3339 */
df_rule df_rule_version;  /* an exact version or a constraint */
df_rule df_rule_sha256;   /* 64 lower-case hex digits */
df_rule df_rule_labels;   /* keys and values as Kubernetes has them */
df_rule df_rule_annotation_keys;
df_rule df_rule_variables; /* the keys are identifiers */
/* A name of an HCL variable. */
void df_check_identifier(const char *name, const struct df_path *path, struct df_faults *f);

/* source.c: spec.source as a whole. df_source_kind(): the kind that the URL implies ("git",
 * "archive"), or NULL. */
df_rule df_rule_source;
const char *df_source_kind(const char *url);

/* arguments.c: spec.arguments, spec.variableFiles, spec.environment */
df_rule df_rule_arguments;
df_rule df_rule_variable_file; /* an item of spec.variableFiles */
df_rule df_rule_environment;
df_rule df_rule_environment_names; /* the keys of a map */
/* The name of a variable that a user may set. */
void df_check_variable(const char *name, const struct df_path *path, struct df_faults *f);

/* secret_forms.c: spec.secrets, and its conflicts with spec.environment and spec.storage */
df_rule df_rule_secrets;
df_rule df_rule_secret_variable; /* spec.secrets[].env */
df_rule df_rule_executor_spec;

/* storage_rules.c, integration.c */
df_rule df_rule_storage;
df_rule df_rule_integrations;

#endif
