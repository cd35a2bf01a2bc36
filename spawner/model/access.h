/*
 * access.h - who may do what with which executors, and by what: rows for people (`dayfly access`),
 * and what a change of labels does to the grants. grant.h decides; this only says. Thread rule:
 * pure functions, any thread.
 */
#ifndef DF_MODEL_ACCESS_H
#define DF_MODEL_ACCESS_H

#include "spawner/model/grant.h"

/* All that gives somebody something. */
struct df_access_rules {
    const cJSON *grants, *accounts; /* of the configuration; NULL: none */
    const cJSON *tokens;            /* [{name, role}], as df_tokens_list() makes it; NULL: none */
    const char *tokens_by;          /* the key of the configuration that they come from */
    const char *creator;            /* auth.creator */
};

/* Appends rows to ret, an array: {by, grant, role, to, on, verbs}. `by` is the key of the
 * configuration, `to` and `on` are as in a grant, of the token file {"tokens": [NAME]}, and of
 * auth.creator {"creator": NAME}. executor: its document; only what counts for it, and of the names
 * of a grant only its own. NULL: for all. of: a user, group, account or token; only what names it.
 * NULL: everybody. */
int df_access_rows(const struct df_access_rules *r, const cJSON *executor, const char *of,
                   cJSON *ret, struct df_err *err) DF_MUST_CHECK;

/* Has anybody all verbs on all executors, by one grant or a role? */
bool df_access_has_admin(const struct df_access_rules *r);

/* What it does that the labels of old become those of doc. labels (or NULL): an array that gets the
 * names of those that lead to other grants; none: the grants stay the same, whoever they name. said
 * (or NULL): an array that gets a sentence for each grant that comes or goes. */
int df_access_changes(const cJSON *grants, const cJSON *old, const cJSON *doc, cJSON *labels,
                      cJSON *said, struct df_err *err) DF_MUST_CHECK;

#endif
