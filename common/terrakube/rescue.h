/*
 * rescue.h - the output of a step whose process is gone: what it had said until then, and what the
 * reader must know. Used by whoever comes after it, a second pod or dayfly's service.
 */
#ifndef DF_TERRAKUBE_RESCUE_H
#define DF_TERRAKUBE_RESCUE_H

#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"

/* Ends such an output. */
#define DF_TERRAKUBE_NOT_AGAIN                                                                     \
    "The step may have changed resources, so it is not run again: look at the state, and plan "    \
    "again.\n"

/* Writes the lines that the step has in Redis to fd, unless lines go through the API or there is no
 * Redis. What could not be read is told in the program's log. */
void df_terrakube_rescue_lines(const struct df_terrakube_settings *s,
                               const struct df_terrakube_payload *p, int fd);

#endif
