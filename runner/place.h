/*
 * place.h - a place at which a state is, for the commands that read it at one and write it at
 * another. The tool works with one backend at a time: df_place_use() points the module at a place,
 * and the other functions work with the one that it points at. Thread rule: main thread.
 */
#ifndef DF_RUNNER_PLACE_H
#define DF_RUNNER_PLACE_H

#include "runner/context.h"
#include "runner/pulled.h"

struct df_place {
    const cJSON *doc;       /* the step document with this place as its `state`; borrowed */
    char words[400];        /* "the gcs storage (executors/net)" */
    char *file;             /* where its state is pulled to; owned by who made the place */
    struct df_pulled holds; /* what was pulled last */
};

/* Fills in words from doc. */
void df_place_describe(struct df_place *p);

/* *ret: a copy of the step document whose state is a file of this step. The caller wipes it, also
 * after a failure. */
int df_place_stage(const cJSON *step, const char *file, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Makes p->doc the document of the step, and initializes the module there. Fails as df_init(). */
int df_place_use(struct df_context *c, const struct df_place *p, struct df_err *err) DF_MUST_CHECK;

/* Reads the state into p->file and p->holds. */
int df_place_pull(struct df_context *c, struct df_place *p, struct df_err *err) DF_MUST_CHECK;

/* Reason StateLocked if somebody holds the lock. */
int df_place_check_unlocked(struct df_context *c, const struct df_place *p,
                            struct df_err *err) DF_MUST_CHECK;

/* Stores the state of a file, under the lock. forced: whatever lineage and serial are there. */
int df_place_push(struct df_context *c, const struct df_place *p, const char *file, bool forced,
                  struct df_err *err) DF_MUST_CHECK;

#endif
