/*
 * waits.h - tells that a run or step waits: what is done for it fails through nobody's fault, and
 * whoever asked for it tries again. After DF_WAIT_TOLD_MS the document says so (waiting.h), until the same
 * thing succeeds or the document is final. The API reports each request of a runner here, the control
 * loop each pass.
 *
 * In memory: an entry for each thing that fails, none while nothing does.
 * Thread rule: any thread.
 */
#ifndef DF_STEPS_WAITS_H
#define DF_STEPS_WAITS_H

#include "spawner/spawner.h"

/* What failed or succeeded, and for whom. */
struct df_wait_case {
    enum df_kind kind; /* DF_KIND_RUN or DF_KIND_TASK_ACTION; other kinds are ignored */
    const char *name;  /* of the document; NULL: it has this uid */
    const char *uid;
    const void *what; /* an address that stands for it */
    bool is_aside;    /* the step goes on without it: its log */
};

/* began_us: real time when the attempt began. A refusal, and an attempt that only met another
 * writer, are no wait. Best effort. */
void df_wait_failed(struct df_spawner *s, const struct df_wait_case *c, int64_t began_us,
                    const struct df_err *why);
void df_wait_passed(struct df_spawner *s, const struct df_wait_case *c);
/* True if it failed, and has not succeeded since. */
bool df_wait_fails(struct df_spawner *s, const struct df_wait_case *c);
/* The document is final or gone. */
void df_wait_forget(struct df_spawner *s, enum df_kind kind, const char *name);
/* A process before this one wrote into the TaskAction that it waits: the next success ends that. */
void df_wait_adopt(struct df_spawner *s, const cJSON *task);

/* A result that blames the state, while the step waits for the storage, or the storage fails: *ret is
 * a copy that names the storage, which the caller deletes; else NULL. */
int df_wait_explain(struct df_spawner *s, const cJSON *task, const cJSON *result, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* When nobody uses it any more. */
void df_waits_free(struct df_waits *w);

#endif
