/*
 * allow_rule.h - one rule of the policy `placement.allow`: what a role may set at a level; for
 * spawner/model only, except that the configuration checks its rules with df_allow_rule_check().
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_ALLOW_RULE_H
#define DF_ALLOW_RULE_H

#include "common/base/limits.h"
#include "spawner/model/never.h"

enum df_allow_role { DF_ALLOW_WRITE, DF_ALLOW_ADMIN };
#define DF_ALLOW_ROLES 2
/* An Executor, a Run, a TaskAction that people make, a step that Terrakube's API sends. Of the last
 * there is a rule for `write` alone: whoever edits a workspace counts as that. */
enum df_allow_level { DF_ALLOW_EXECUTOR, DF_ALLOW_RUN, DF_ALLOW_WORKFLOW, DF_ALLOW_TERRAKUBE };
#define DF_ALLOW_LEVELS 4

/* The lists of a rule. */
enum df_allow_list {
    DF_ALLOW_FIELDS, /* of the placement */
    DF_ALLOW_ACCOUNTS,
    DF_ALLOW_IMAGES,
    DF_ALLOW_SECRETS,
    DF_ALLOW_CONFIG_MAPS,
    DF_ALLOW_VOLUMES, /* kinds */
    DF_ALLOW_PRIORITIES,
    DF_ALLOW_METADATA, /* keys of labels and annotations that mean something to others */
};
#define DF_ALLOW_LISTS 8
extern const char *const df_allow_lists[DF_ALLOW_LISTS]; /* their names: "fields" */
extern const char *const df_volume_kinds[];              /* "emptyDir", ends with NULL */

/* The policy. All borrowed; each may be NULL, except never. */
struct df_allow {
    const cJSON *rules[DF_ALLOW_ROLES][DF_ALLOW_LEVELS]; /* NULL: the defaults */
    const cJSON *defaults; /* kubernetes.placement. Its account, image and priority class, and those
                            * of the classes, may always be named */
    const cJSON *classes;
    const char *image; /* kubernetes.image: may always be named, too */
    const char
        *workflow_account; /* workflows.serviceAccount; NULL: its default. A writer's workflow
                                   * may have it, unless a rule says otherwise */
    const struct df_never *never;
};

struct df_allow_cell {
    enum df_allow_role role;
    enum df_allow_level level;
};

/* Of a workflow that names no account. Borrowed. */
const char *df_allow_workflow_account(const struct df_allow *a);

/* The names of a list: those of the configuration, else the defaults. Borrowed. */
struct df_allow_names {
    const char *at[DF_LIMIT_ALLOWED];
    size_t count;
};
void df_allow_names(const struct df_allow *a, const struct df_allow_cell *cell,
                    enum df_allow_list list, struct df_allow_names *ret);

/* Is the name in the list? `*` at the end of an entry stands for anything. */
bool df_allow_has(const struct df_allow *a, const struct df_allow_cell *cell,
                  enum df_allow_list list, const char *name);

/* Does the key of a label or annotation mean something to others? By its domain, as those that
 * cloud identities, container runtimes, meshes, injectors and the selectors of Services read; a
 * name of one's own has none. */
bool df_allow_is_foreign_key(const char *key);

/* Checks a rule of the configuration: an object with some of the lists. Class USER; the message
 * names every fault. */
int df_allow_rule_check(cJSON *rule, struct df_err *err) DF_MUST_CHECK;

#endif
