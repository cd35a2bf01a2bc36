/*
 * unclean.h - how often a process that held this data directory ended without stopping: killed,
 * out of memory, a fatal signal, a power cut. The file `unclean` of the data directory keeps it
 * over restarts, so that an end that left no line in a log does not go unnoticed.
 * Thread rule: the holder of the data directory writes; any process may read.
 */
#ifndef DF_UNCLEAN_H
#define DF_UNCLEAN_H

#include "common/base/clock.h"
#include "spawner/store/documents/holder.h"

struct df_unclean {
    int64_t count;
    char noticed_at[DF_TIME_LEN];    /* RFC 3339, of the last one; "" */
    char command[DF_HOLDER_COMMAND]; /* of the last one: "dayfly serve" */
};

/* What the file says; all zero if it is missing or damaged: it is a record for people. */
void df_unclean_read(const char *data_directory, struct df_unclean *ret);

/* Adds the end of `holder` to the file. */
int df_unclean_add(const char *data_directory, const struct df_holder *holder,
                   struct df_err *err) DF_MUST_CHECK;

#endif
