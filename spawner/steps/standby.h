/*
 * standby.h - runners that have started, wait for a step, and claim it: standby runners, and those
 * of plans whose pod stays for the apply (model/shared_pod.h). Both ask with df_runner_claim(), are
 * offered a step by one durable write, and are told by df_standby_offer(). The id of a plan's
 * runner is the uid of the plan; it is in no list, because its documents say all of it.
 *
 * A standby runner is the pod of a Job that was made before its step began. Its id is the name of
 * the Job, and its pod has a token for the audience dayfly/<id>. It asks the leader for a step
 * (df_runner_claim()) and waits in that request. A step that fits is offered to it by one durable
 * write: status.engineRef with hostUid = id (model/shared_pod.h). Only then df_standby_offer()
 * tells the runner, which claims the step as every runner does.
 *
 * The list is in the memory of the leader only. Nothing durable depends on it: after a crash the
 * control loop adds the Jobs that exist again, and offers again what was offered; a runner asks
 * again. Thread rule: any thread.
 */
#ifndef DF_STEPS_STANDBY_H
#define DF_STEPS_STANDBY_H

#include "common/base/limits.h"
#include "spawner/model/shared_pod.h"
#include "spawner/spawner.h"

#define DF_STANDBY_PREFIX "standby-" /* of every id, and of no TaskAction's uid */
#define DF_STANDBY_START_MS 15000
#define DF_STANDBY_STEP 64 /* bytes of a step's uid */

/* Is this the hostUid of a standby runner? NULL is none. */
bool df_standby_is(const char *host_uid);

int df_standby_new(struct df_standby **ret, struct df_err *err) DF_MUST_CHECK;
void df_standby_free(struct df_standby *b); /* no request is in flight; NULL is fine */

/* The list of the Jobs that exist is complete, and says which of them have a step: from now on an
 * id that is not in it is over, and a free runner may be taken. */
void df_standby_open(struct df_standby *b);

bool df_standby_is_open(struct df_standby *b);

/* Adds the Job `ref` {kind, name, namespace, uid, serviceAccountName, hostUid}: hostUid is the id.
 * age_ms: of the Job. Nothing if it is there already. */
int df_standby_add(struct df_standby *b, const cJSON *ref, const struct df_standby_form *form,
                   int64_t age_ms, struct df_err *err) DF_MUST_CHECK;
/* Whether there is no runner at all. */
bool df_standby_is_empty(struct df_standby *b);

/* Takes a runner for a step of this form out of the free ones: one that waits now, else one that
 * has not asked yet and is for this step alone or was made less than DF_STANDBY_START_MS ago.
 * *ret_ref: the status.engineRef of the step, which the caller deletes; NULL: there is none, or the
 * list is not complete. */
int df_standby_take(struct df_standby *b, const struct df_standby_form *step, cJSON **ret_ref,
                    struct df_err *err) DF_MUST_CHECK;
/* The taken runner is free again: the offer was not written. */
void df_standby_return(struct df_standby *b, const char *id);
/* The step with this uid was offered to the runner (durably): tells the runner. May be repeated;
 * another step is ignored, because a standby runner gets one. Nothing for an id that nobody asks
 * for. */
void df_standby_offer(struct df_standby *b, const char *id, const char *step_uid);
/* The runner is over: removes it from the list, and ends its wait with StepOver. */
void df_standby_remove(struct df_standby *b, const char *id);

/* What the runner may get ready while it waits, a document without a secret
 * (df_step_preparation()): a request that asks for it hears it. Nothing for an id that is not in
 * the list. */
int df_standby_prepare(struct df_standby *b, const char *id, const cJSON *preparation,
                       struct df_err *err) DF_MUST_CHECK;

/* The uid of the step that was offered to the runner; "": none. */
void df_standby_step(struct df_standby *b, const char *id, char ret[DF_STANDBY_STEP]);
/* The runner to which this step was offered; "": none. */
void df_standby_of_step(struct df_standby *b, const char *step_uid, char ret[DF_LIMIT_NAME + 1]);
/* The same as df_standby_remove() for a runner that is free; false if it is not, or not in the
 * list. */
bool df_standby_dismiss(struct df_standby *b, const char *id) DF_MUST_CHECK;

/* A copy of an entry. Times are monotonic. */
struct df_standby_view {
    char id[DF_LIMIT_NAME + 1];
    struct df_standby_form form;
    bool is_free;     /* neither taken nor offered a step */
    bool has_step;    /* a step was offered to it */
    bool waits;       /* its runner asks now */
    bool has_asked;   /* it has asked at least once */
    bool is_prepared; /* df_standby_prepare() was called for it */
    int64_t made_ms;  /* its Job was made */
    int64_t since_ms; /* added, or became free, or asked for the first time: the latest */
    int64_t quiet_ms; /* it asked for the last time */
};
/* Copies all entries, the oldest first. Returns their number. */
size_t df_standby_list(struct df_standby *b,
                       struct df_standby_view ret[DF_LIMIT_STANDBY]) DF_MUST_CHECK;

/* The request of a runner that waits. Borrowed. */
struct df_standby_request {
    const char *id;
    const char *token;       /* of its pod */
    const cJSON *body;       /* that of a claim; with `prepares` the runner wants a preparation */
    bool (*gone)(void *arg); /* the client has left, or the server stops; asked each second */
    void *arg;
};

/* What a request hears. */
struct df_standby_answer {
    char step[DF_STANDBY_STEP]; /* the uid of the step; "": none yet */
    cJSON *preparation;         /* without a step: what to get ready; owned; NULL: nothing */
};

/* Waits up to wait_ms until a step is offered to the id, or there is a preparation that it wants. A
 * later request with the same claimId ends this one without either: its client has left, and nobody
 * would hear of it. CONFLICT StepOver: the id is not in the list. RETRY NotListedYet: the list is
 * not complete yet; NotDecidedYet: gone() was true. Token and claimId were checked. */
int df_standby_wait(struct df_standby *b, const struct df_standby_request *r, int64_t wait_ms,
                    struct df_standby_answer *ret, struct df_err *err) DF_MUST_CHECK;
/* Waits up to wait_ms until the apply of a plan is offered to its runner r->id, or gone() is true.
 * False: a later request with the same claimId came. */
bool df_standby_wait_for_offer(struct df_standby *b, const struct df_standby_request *r,
                               int64_t wait_ms) DF_MUST_CHECK;
/* *ret: a copy of the ref of this id, which the caller deletes; NULL if it is not in the list. */
int df_standby_ref(struct df_standby *b, const char *id, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Whether the token may claim for this id, before a body is read: DENIED as df_runner_claim(). */
int df_runner_check(struct df_spawner *s, const char *id, const char *token,
                    struct df_err *err) DF_MUST_CHECK;
/* What comes next in the pod of this plan, by what is stored of its run and its apply now.
 * ret_apply: NULL, or gets the uid of the apply that was offered to this pod; "": none. */
int df_runner_next(struct df_spawner *s, const cJSON *plan, enum df_shared_pod_next *ret,
                   char ret_apply[DF_STANDBY_STEP], struct df_err *err) DF_MUST_CHECK;
/* Waits up to DF_STANDBY_WAIT_MS, and claims the offered step for the runner: *ret is its step
 * document, which the caller wipes; NULL: no step yet, ask again. *ret_preparation: instead of a
 * step, what the runner may get ready; the caller deletes it; or NULL. Errors of df_standby_wait()
 * and df_step_claim(); StepOver: no step will come. DENIED: the token is not that of a pod of this
 * Job; who has no token for the id does not hear whether it exists. */
#define DF_STANDBY_WAIT_MS 10000
int df_runner_claim(struct df_spawner *s, const struct df_standby_request *r, cJSON **ret,
                    cJSON **ret_preparation, struct df_err *err) DF_MUST_CHECK;

#endif
