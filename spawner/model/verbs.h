/*
 * verbs.h - what a caller may do with an executor, its runs and its state: a set of verbs. A preset
 * is a name of such a set, and the three roles of tokens are presets, too. docs/configuration.md
 * says what each verb allows. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_VERBS_H
#define DF_MODEL_VERBS_H

#include "common/json/json.h"
#include "spawner/model/names.h"

typedef unsigned df_verbs; /* a set of these */

#define DF_VERB_VIEW (1U << 0)
#define DF_VERB_PLAN (1U << 1)
#define DF_VERB_APPLY (1U << 2)
#define DF_VERB_APPROVE (1U << 3)
#define DF_VERB_DESTROY (1U << 4)
#define DF_VERB_CANCEL (1U << 5)
#define DF_VERB_EDIT (1U << 6)
#define DF_VERB_STATE (1U << 7)
#define DF_VERB_STATE_WRITE (1U << 8)
#define DF_VERB_SECRETS (1U << 9)
#define DF_VERB_GRANT (1U << 10)

/* The roles as sets. */
#define DF_VERBS_READ DF_VERB_VIEW
#define DF_VERBS_WRITE                                                                             \
    (DF_VERB_VIEW | DF_VERB_PLAN | DF_VERB_APPLY | DF_VERB_APPROVE | DF_VERB_CANCEL | DF_VERB_STATE)
#define DF_VERBS_ADMIN ((1U << 11) - 1)

/* What the tool itself does with a state: it reads, locks and stores it. */
#define DF_VERBS_TOOL (DF_VERB_APPLY | DF_VERB_STATE)

extern const char *const df_verb_names[];   /* in the order of the bits; ended by NULL */
extern const char *const df_preset_names[]; /* ended by NULL */

df_verbs df_verb_parse(const char *name);   /* 0: there is no such verb */
df_verbs df_preset_verbs(const char *name); /* 0: there is no such preset */
df_verbs df_role_verbs(enum df_role role);
/* The highest role all of whose verbs are in the set. */
enum df_role df_verbs_role(df_verbs verbs);

/* True if every verb of `needed` is in the set. */
static inline bool df_verbs_have(df_verbs verbs, df_verbs needed)
{
    return (verbs & needed) == needed;
}

/* The names of the verbs in the set: an array of strings, which the caller frees; NULL: no
 * memory. */
cJSON *df_verbs_list(df_verbs verbs) DF_MUST_CHECK;

/* The set in words: the name of a role that is the same, "view, plan", or "none". */
#define DF_VERBS_TEXT 96
const char *df_verbs_say(df_verbs verbs, char ret[DF_VERBS_TEXT]);

/* DENIED Forbidden unless the caller has all verbs that are needed for `what` ("destroy"); the
 * message names those, the role that has them, the executor (NULL: a new one) and what the caller
 * has. */
int df_verbs_require(df_verbs has, df_verbs needed, const char *what, const char *executor,
                     struct df_err *err) DF_MUST_CHECK;

#endif
