/*
 * choose.h - which of the listed documents `get` shows, and in what order: --state, --namespace,
 * --sort-by, --limit. Thread rule: pure functions.
 */
#ifndef DF_CLI_CHOOSE_H
#define DF_CLI_CHOOSE_H

#include "spawner/cli/kinds.h"

struct df_choice {
    const char *states;     /* "Failed,Canceled", in any case; NULL: all */
    const char *name_space; /* or NULL: all */
    const char *sort_by;    /* a column's title or ".metadata.name"; NULL: as they come */
    size_t limit;           /* 0: all */
};

/* Class USER: a state that the kind cannot have, or a column that it has not. */
int df_choice_check(const struct df_choice *c, const struct df_shown *kind,
                    struct df_err *err) DF_MUST_CHECK;

/* Takes out of items what is not chosen, and sorts the rest. The choice has been checked. */
int df_choose(const struct df_choice *c, const struct df_shown *kind, cJSON *items,
              struct df_err *err) DF_MUST_CHECK;

#endif
