/*
 * open.h - the flow of one step, from the environment of an executor and a payload: settings,
 * heartbeat, API, storage, context. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_OPEN_H
#define DF_RUNNER_TERRAKUBE_OPEN_H

#include "runner/terrakube/flow.h"

/* The data of the row of Terrakube (work.h). All owned, but the borrowed members of flow. */
struct df_terrakube_opened {
    struct df_terrakube flow; /* the first: df_terrakube_of() */
    struct df_strs all;       /* "NAME=VALUE": with the settings; filled by the caller */
    struct df_strs rest;      /* what code of users may have; filled by the caller */
    struct df_terrakube_settings settings;
    struct df_terrakube_payload payload;
    struct df_err refused;
};

/* Empty; the caller closes it. NULL: no memory. */
struct df_terrakube_opened *df_terrakube_opened_new(void);

/* Reads a payload and all settings, and starts the heartbeat. is_base64: it is EphemeralJobData. A
 * payload that cannot be run, and a storage that cannot be used, are told like failures of the step
 * (flow.refused). Fails if nobody could be told. */
int df_terrakube_open(struct df_terrakube_opened *o, const char *payload, bool is_base64,
                      struct df_err *err) DF_MUST_CHECK;

/* Removes the heartbeat, and frees all. opened: a struct df_terrakube_opened; or NULL. */
void df_terrakube_close(void *opened);

#endif
