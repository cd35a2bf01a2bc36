/*
 * beside.h - a run that takes no turn (recipe.h), and the run whose turn it is meanwhile: the plan
 * of the one does not know what the other does. `status.beside` names that run. Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_MODEL_BESIDE_H
#define DF_MODEL_BESIDE_H

#include "common/json/json.h"

/* Is it not noted yet whether there is one? Then it is to be looked for. */
bool df_beside_is_open(const cJSON *run);

/* Notes its name. */
int df_beside_note(cJSON *run, const cJSON *beside, struct df_err *err) DF_MUST_CHECK;

/* What the reader of the plan should know; "" if there is no such run, or if it has ended and
 * changed nothing. beside: the run that is noted; NULL: it does not exist any more. */
void df_beside_words(const cJSON *run, const cJSON *beside, char *to, size_t size);

#endif
