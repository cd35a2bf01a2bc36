/*
 * memory.h - what the leader remembers about a document, beside what the store holds. Each memory
 * has a section below that says what it is for, and why it may be lost with the process, or when
 * another one leads. A reconciler that finds its document final or gone calls df_memory_forget(),
 * which ends all of them; a memory may end before, too.
 *
 * A document is known by its kind and its name, which is all that is left of one that is gone; or
 * by its uid, which is all that a request of a runner has. Thread rule: any thread.
 */
#ifndef DF_STORE_MEMORY_H
#define DF_STORE_MEMORY_H

#include <pthread.h>

#include "common/json/json.h"
#include "spawner/model/kinds.h"

enum df_memory_of {
    DF_MEMORY_WAIT,
    DF_MEMORY_REF,
    DF_MEMORY_OUTPUTS,
    DF_MEMORY_EXECUTOR,
    DF_MEMORY_LOG,
    DF_MEMORY_STEP,
    DF_MEMORY_KINDS
};

/* All zeros: nothing is remembered. */
struct df_memory {
    pthread_mutex_t lock;                 /* guards the rest */
    struct df_memory_entry *first, **end; /* the oldest first; end: where the next is linked */
    size_t counts[DF_MEMORY_KINDS];
};

void df_memory_free(struct df_memory *m); /* nobody uses it any more */

/* Forgets all about the document of this name, and about those that had the name before. */
void df_memory_forget(struct df_memory *m, enum df_kind kind, const char *name);

/* ---- what fails for a run or step, and since when (steps/waits.h) ---- Many of one document, at
 * most DF_LIMIT_WAITS: beyond them none is added, and what fails is not shown. Lost: a wait that
 * its document says already is adopted from there; another one begins with its next failure. */

/* What failed or succeeded, and for whom. */
struct df_wait_case {
    enum df_kind kind; /* DF_KIND_RUN or DF_KIND_TASK_ACTION; other kinds are ignored */
    const char *name;  /* of the document; NULL: it has this uid */
    const char *uid;
    const void *what; /* an address that stands for it */
    bool is_optional; /* the step goes on without it: its log */
};

/* Since when it fails: since began_us if it did not fail before. doc: that of the case. */
int64_t df_memory_add_wait(struct df_memory *m, const struct df_wait_case *c, const cJSON *doc,
                           int64_t began_us);
/* It fails no more. True if nothing else of this document fails, or only things that go on aside.
 * name: of the document. */
bool df_memory_end_wait(struct df_memory *m, const struct df_wait_case *c, char name[64]);
bool df_memory_has_wait(struct df_memory *m, const struct df_wait_case *c);
/* A process before this one wrote into the TaskAction that it waits: the next success ends that. */
void df_memory_adopt_wait(struct df_memory *m, const cJSON *task);

/* ---- the reference to what an engine made (status.engineRef), until it is written ---- One of a
 * TaskAction. The claim writes the step soon, so the reference comes with that write, or with an
 * earlier one, or in a write of its own after DF_REF_DUE_US (transitions.h). Whoever decides by the
 * reference of a step that is not claimed looks here, too. Lost: what the engine made is found
 * again by its name. No limit: a step has a slot before the engine is asked. */

/* Longer than a pod takes to its claim when ten start at once on two cores. */
#define DF_REF_DUE_US INT64_C(5000000)

/* Remembers a copy, instead of that of an earlier attempt to start the step. attempt: the hash of
 * the claim token (status.auth.claim), which each attempt that may have made something writes
 * before the engine is asked. */
int df_memory_put_ref(struct df_memory *m, const cJSON *task, const char *attempt, const cJSON *ref,
                      struct df_err *err) DF_MUST_CHECK;
/* *ret: a copy of the reference of this attempt, which the caller deletes; NULL: there is none.
 * *ret_due_us: real time at which it is to be written; or 0. */
int df_memory_get_ref(struct df_memory *m, const cJSON *task, cJSON **ret, int64_t *ret_due_us,
                      struct df_err *err) DF_MUST_CHECK;
/* That of this attempt is written. */
void df_memory_drop_ref(struct df_memory *m, const cJSON *task);

/* ---- the outputs that were read for the runner of a step, which is asked to mask some
 * (steps/shown.h) ---- One of a step, not of all: a moment later its runner sends them, and nobody
 * need read them again. They may be outdated by then; each is stored with the digest of its value
 * and shown for no other value. At most DF_LIMIT_READ_OUTPUTS, of DF_LIMIT_READ_OUTPUTS_BYTES each;
 * the newest replace the oldest. Wiped in the end. Lost: they are read again. */

/* Remembers a copy, instead of what was read for this step before; best effort. */
void df_memory_put_outputs(struct df_memory *m, const cJSON *task, const cJSON *outputs);
/* Takes them out; delete them with df_json_wipe(). NULL: there are none. */
cJSON *df_memory_take_outputs(struct df_memory *m, const char *step_uid);

/* ---- the executor that an applied run looks for, and which is missing or not accepted ----
 * kubectl sends the documents of one file one after the other; the pass that accepts the executor
 * wakes the runs. At most DF_LIMIT_AWAITING; the newest replace the oldest. Lost: the run looks for
 * its executor by the clock. */

/* Call it before the run looks for its executor; otherwise an acceptance in between is missed. */
void df_memory_await_executor(struct df_memory *m, const cJSON *run, const char *executor);
/* Takes out the first run that waits for this executor; false: there is none. */
bool df_memory_take_awaiting(struct df_memory *m, const char *executor, char run[64]);

/* ---- when the output of a workflow is read next (control/steps/workflow_log.c) ---- One of a
 * TaskAction. Lost: it is read at once. No limit: a workflow that runs has a slot. */

void df_memory_put_log_due(struct df_memory *m, const cJSON *task, int64_t due_us);
/* 0: nothing is remembered. */
int64_t df_memory_get_log_due(struct df_memory *m, const cJSON *task);

/* ---- the step that was created for a run, until the run's document names it (control/runs/runs.c)
 * ---- One of a Run. A TaskAction that somebody removes by force in between may have started; its
 * run must not create it again. Lost: the run would; that takes a crash in the same moment, too. No
 * limit: a run that creates steps is the first of its executor. */

/* Remembers a copy of the step's entry in status.steps. entry: NULL: the document names it. */
int df_memory_put_step(struct df_memory *m, const cJSON *run, const cJSON *entry,
                       struct df_err *err) DF_MUST_CHECK;
/* *ret: a copy, which the caller deletes; NULL: nothing is remembered. */
int df_memory_get_step(struct df_memory *m, const cJSON *run, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

#endif
