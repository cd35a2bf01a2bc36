/*
 * dag.h - the components of a platform and what each depends on.
 *
 * Contract: contracts/platform.md §2. Thread rule: immutable once made.
 */
#ifndef DF_PLATFORM_DAG_H
#define DF_PLATFORM_DAG_H

#include "common/json/json.h"
#include "common/yaml/yaml.h"
#include "runner/platform/input.h"

/* All owned; chart is a borrowed member of the DAG's document, or NULL. */
struct df_node {
    char *name;
    char *stack;        /* NULL: of none */
    char *path;         /* in the repository; NULL: it is a chart */
    char *name_space;   /* NULL: that of each manifest */
    const cJSON *chart; /* {repoURL, name, version, values} instead of path */
    struct {
        size_t *items; /* indices of nodes */
        size_t len;
    } depends;
    int64_t timeout_ms; /* instead of timeouts.sync; 0: that one */
    bool critical, bootstrap;
    bool is_in_scope; /* of this action: of TARGET_SCOPE, and of `overrides.only` */
};

struct df_dag {
    struct df_node *nodes; /* as in the file, but each behind all that it depends on */
    size_t len;
    cJSON *document; /* owned */
};
#define DF_DAG DF_CLEANUP(df_dag_free)
void df_dag_free(struct df_dag *dag);

/* Where a document of the DAG is from, for messages with lines. */
struct df_dag_text {
    const char *name; /* "dag.yaml" */
    const char *text;
    size_t len;
};

/* False if the mounted text has overrides, which need the repository's. A text that is no YAML is
 * whole: df_dag_make() says what is wrong with it. */
bool df_dag_is_whole(const struct df_dag_text *mounted);

/* Makes the DAG of the repository's text, with the mounted one instead of it or over it
 * (`overrides:`). All nodes are in it, those outside of the scope as such. Either text may be NULL;
 * it is a fault if then none has components. Names each fault: names,
 * doubles, unknown dependencies, cycles as a path, durations, a scope that nothing has. ret must be
 * zero; the caller frees it, also on failure, and uses it only if there are no faults. -1 only for
 * what is no fault of the input. */
int df_dag_make(const struct df_dag_text *repository, const struct df_dag_text *mounted,
                const struct df_scope *scope, struct df_dag *ret, struct df_faults *faults,
                struct df_err *err) DF_MUST_CHECK;

/* Names each component of health.yaml that the DAG has not. */
void df_input_check_health(const struct df_platform_input *in, const struct df_dag *dag,
                           struct df_faults *faults);

/* NULL: there is none. */
const struct df_node *df_dag_find(const struct df_dag *dag, const char *name);

#endif
