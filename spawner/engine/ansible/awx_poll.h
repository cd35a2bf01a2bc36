/*
 * awx_poll.h - what AWX says of the jobs of live workflows: one thread asks about each of them
 * again and again, because AWX tells nobody when a job ends.
 *
 * A job is asked about at most every DF_WORKFLOW_PACE_MIN_US, and less often the longer it runs. An
 * ended one is kept for a while for those who then ask for its result. Nothing is durable: a job
 * that is not known here is asked about once, and added. Thread rule: any thread.
 */
#ifndef DF_ENGINE_AWX_POLL_H
#define DF_ENGINE_AWX_POLL_H

#include "spawner/engine/ansible/awx_client.h"
#include "spawner/engine/workflow/workflow.h"

#define DF_AWX_KEEP_US INT64_C(600000000)    /* how long an ended job is known */
#define DF_AWX_PRINTING_US INT64_C(20000000) /* from its end: AWX may store its output so long */

struct df_awx_poll; /* opaque */

struct df_awx_watched {
    char uid[64], step[64]; /* of the action */
    int64_t job;
    bool shows_output; /* the message of a job that failed is the end of its output */
};

/* What AWX said last. */
struct df_awx_seen {
    struct df_err why;             /* of class RETRY: AWX did not tell; the rest is empty */
    struct df_workflow_status job; /* phase RUNNING: AWX has it, also if it is queued */
    bool is_queued;
    bool is_printing;   /* it has ended, and runs until AWX has stored all that it printed */
    int64_t created_us; /* by our clock, and not in the future; 0: unknown */
};
bool df_awx_has_ended(const struct df_awx_seen *s);

/* Asks AWX now, in this thread. */
void df_awx_look(struct df_awx *awx, const struct df_awx_watched *w, struct df_awx_seen *ret);

/* awx: for the thread's own handle, borrowed. notify: called when a job's status has changed. */
int df_awx_poll_new(const struct df_awx_options *awx, df_engine_notify notify, void *notify_arg,
                    struct df_awx_poll **ret, struct df_err *err) DF_MUST_CHECK;
/* Ends at once if awx.stop is true already. NULL is fine. */
void df_awx_poll_free(struct df_awx_poll *p);

/* False: this action's job is not known. */
bool df_awx_poll_find(struct df_awx_poll *p, const char *uid, struct df_awx_seen *ret);
/* Adds a job that is not known. */
int df_awx_poll_add(struct df_awx_poll *p, const struct df_awx_watched *w,
                    const struct df_awx_seen *seen, struct df_err *err) DF_MUST_CHECK;
/* Something was done to the job: asks about it as soon as the pace allows. */
void df_awx_poll_soon(struct df_awx_poll *p, const char *uid);

#endif
