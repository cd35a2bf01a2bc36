/*
 * rescue.h - the output of a step whose process is gone: what it had said until then, and what the
 * reader must know. Used by whoever comes after it, a second pod or dayfly's service.
 */
#ifndef DF_TERRAKUBE_RESCUE_H
#define DF_TERRAKUBE_RESCUE_H

#include "common/terrakube/api.h"
#include "common/terrakube/storage.h"

/* Ends such an output. */
#define DF_TERRAKUBE_NOT_AGAIN                                                                     \
    "The step may have changed resources, so it is not run again: look at the state, and plan "    \
    "again.\n"

/* Writes the lines that the step has in Redis to fd, unless lines go through the API or there is no
 * Redis. What could not be read is told in the program's log. */
void df_terrakube_rescue_lines(const struct df_terrakube_settings *s,
                               const struct df_terrakube_payload *p, int fd);

/* The name of the state that a step stores: the same for each process that has the step. */
int df_terrakube_state_name(const struct df_terrakube_payload *p, char ret[37],
                            struct df_err *err) DF_MUST_CHECK;

/* Adds the state that the lost process stored to the workspace's history, if it did not do that
 * itself. path: of no file yet; none is left there. Failures as in api.h and storage.h. */
int df_terrakube_rescue_history(struct df_terrakube_api *api, struct df_terrakube_storage *storage,
                                const struct df_terrakube_payload *p, const char *path,
                                struct df_err *err) DF_MUST_CHECK;

#endif
