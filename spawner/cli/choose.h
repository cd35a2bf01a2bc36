/*
 * choose.h - filters and sorts the documents that `get` shows: --state, --namespace, --sort-by,
 * --limit. Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_CHOOSE_H
#define DF_CLI_CHOOSE_H

#include "spawner/cli/kinds.h"

struct df_choice {
    const char *states;     /* "Failed,Canceled", in any case; NULL: all */
    const char *name_space; /* or NULL: all */
    const char *sort_by;    /* a column's title or ".metadata.name"; NULL: as listed */
    size_t limit;           /* 0: all */
};

/* Class USER: the kind cannot have this state, or has no such column. */
int df_choice_check(const struct df_choice *c, const struct df_shown *kind,
                    struct df_err *err) DF_MUST_CHECK;

/* The query with which the service filters by these states, if it can: *ret_name "phase", and ret
 * gets "Failed,Canceled", as the service writes them. False: df_choose() alone does. */
bool df_choice_query(const struct df_choice *c, const struct df_shown *kind, const char **ret_name,
                     struct df_buf *ret);

/* Removes the items that are not chosen, and sorts the rest. df_choice_check() has succeeded. */
int df_choose(const struct df_choice *c, const struct df_shown *kind, cJSON *items,
              struct df_err *err) DF_MUST_CHECK;

#endif
