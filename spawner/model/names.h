/*
 * names.h - roles and actions by their names, and the names that runs and steps get. Thread rule:
 * pure functions, any thread.
 */
#ifndef DF_MODEL_NAMES_H
#define DF_MODEL_NAMES_H

#include "common/base/err.h"

#define DF_API_GROUP "dayfly.dev"
#define DF_API_VERSION DF_API_GROUP "/v1alpha1"

enum df_role { DF_ROLE_NONE, DF_ROLE_READ, DF_ROLE_WRITE, DF_ROLE_ADMIN };
const char *df_role_name(enum df_role role); /* "none", "read", "write", "admin" */
/* "read", "write" or "admin". */
int df_role_parse(const char *name, enum df_role *ret, struct df_err *err) DF_MUST_CHECK;

enum df_action {
    DF_ACTION_PROVISION,
    DF_ACTION_DRY_RUN,
    DF_ACTION_DESTROY,
    DF_ACTION_STATE,
    DF_ACTION_VALIDATE /* of a platform (platform.h) */
};
extern const char *const df_actions[];             /* their names, in this order; ended by NULL */
const char *df_action_name(enum df_action action); /* "provision" */
int df_action_parse(const char *name, enum df_action *ret, struct df_err *err) DF_MUST_CHECK;

/* A name of at most 63 characters: `<base>-<suffix>`. A base that is too long is cut, and `-` and 8
 * hex digits of its SHA-256 are inserted. Runs are `<executor>-<number>`, TaskActions `<run>-plan`,
 * `<run>-apply` and `<run>-state`. suffix: at most 40 characters. */
int df_model_name(const char *base, const char *suffix, char ret[64],
                  struct df_err *err) DF_MUST_CHECK;

#endif
