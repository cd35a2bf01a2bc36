/*
 * report.h - delivers a step's log, events, artifacts and result. Two backends: the spawner
 * (docs/step-protocol.md), and a directory for use without a spawner
 * (`dayfly-runner step --file step.json --report-dir DIR`).
 *
 * df_report_log() never blocks on the network: it appends to a bounded spool on disk, and a sender
 * thread posts the bytes in numbered frames until they are acknowledged or the step's time is over.
 * Bytes past DF_LIMIT_STREAM are dropped; the last line of the stream gives their number.
 * Thread rule: log and event calls from one thread each.
 */
#ifndef DF_REPORT_H
#define DF_REPORT_H

#include "common/json/json.h"

struct df_report; /* opaque */

/* A standby runner may get ready what doc names (docs/step-protocol.md), and owns doc. Called once,
 * while df_report_claim() waits. */
typedef void df_report_prepare(void *arg, cJSON *doc);

/* Strings are copied. spool_dir exists and is private (0700). Byte i of spool_dir/log and of
 * spool_dir/events is byte i of the stream (acknowledged bytes may be a hole), so that the engine
 * can deliver the rest after its runner was killed. */
struct df_report_spawner {
    const char *server;        /* URL */
    const char *endpoint_file; /* or NULL */
    const char *ca_file;       /* PEM to trust; NULL: the system's */
    const char *uid;
    /* Instead, with token_file: the id of a runner that waits for its step. That of a standby
     * runner, or the uid of the plan in whose pod this one is. */
    const char *runner;
    df_report_prepare *prepare; /* of a standby runner; or NULL */
    void *prepare_arg;
    const char *claim_token;
    const char *token_file; /* instead: read again for each attempt */
    const char *claim_id;   /* 32 hex digits, which tell this runner from others */
    const char *spool_dir;
    int64_t give_up_ms; /* how long df_report_result() retries */
};
/* Connects lazily; df_http_global_init() must have been called. */
int df_report_to_spawner(const struct df_report_spawner *o, struct df_report **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Files in directory, which exists: log, events, progress (JSON lines), result.json, and each
 * artifact under its name. */
int df_report_to_directory(const char *directory, struct df_report **ret,
                           struct df_err *err) DF_MUST_CHECK;
void df_report_free(struct df_report *r); /* NULL is fine */

/* Claims the step and returns its document (it has secrets: df_json_wipe() it). Retries with the
 * same claimId while the spawner cannot be reached, until *stop (may be NULL) or for pending_ms;
 * then starts the sender. After CONFLICT AlreadyClaimed or StepOver, or DENIED, the runner must not
 * start the tool. A runner that waits for its step asks until one is given to it, for pending_ms;
 * *ret NULL: none will be (StepOver), none was in that time, or *stop. To be called once; the
 * directory backend has no claim. */
int df_report_claim(struct df_report *r, const volatile bool *stop, int64_t pending_ms, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Appends redacted bytes. Fails only if the spool cannot be written. The step continues then: the
 * caller prints the message to stdout, and the last line of the stream reports the loss. */
int df_report_log(struct df_report *r, const char *bytes, size_t n,
                  struct df_err *err) DF_MUST_CHECK;
/* The same for whole lines of JSON, each with its newline. */
int df_report_event(struct df_report *r, const char *lines, size_t n,
                    struct df_err *err) DF_MUST_CHECK;

/* Merges body into the progress that is not sent yet (arrays are joined, other members replaced);
 * the sender thread posts it soon, sooner if it hurries: it changes the step's phase. A failed
 * delivery is not an error. body is borrowed. */
void df_report_progress(struct df_report *r, const cJSON *body, bool hurries);

/* True once the spawner answered that the step is canceled or over (410): the pipeline must stop.
 * The flag is set within 5 seconds, even if the step prints nothing. Any thread. */
bool df_report_is_over(const struct df_report *r);
/* The same as a descriptor that becomes and stays readable, for poll(2); do not read or close it.
 * -1 for a directory, where it never happens. */
int df_report_over_fd(const struct df_report *r);

/* Once *stop is true nothing but an errored state and the result is tried again and again: what
 * cannot be delivered then stays undelivered. *stop outlives r. */
void df_report_heed(struct df_report *r, const volatile bool *stop);

/* Blocks and retries until the artifact is delivered or refused, the step is over, or deadline_ms
 * (of df_mono_ms()). name: "plan", "outputs" or "errored-state"; path: the file. */
int df_report_put_artifact(struct df_report *r, const char *name, const char *path,
                           int64_t deadline_ms, struct df_err *err) DF_MUST_CHECK;
/* The bundle of the plan to apply ("plan"), or the state that the step pushes ("errored-state"),
 * into a new file (0600). Refusals are class CONFLICT or NOT_FOUND with the protocol's reason
 * (PlanCorrupt, PlanOfOtherRun, PlanExpired, PlanUsed, PlanMissing). */
int df_report_get_artifact(struct df_report *r, const char *name, const char *to_path,
                           int64_t deadline_ms, struct df_err *err) DF_MUST_CHECK;

/* Delivers the spools (for at most DF_TIMEOUT_LOG_SECONDS and half of give_up_ms: the result must
 * not wait for a log; the spools are tried on while the result is), then the result with logBytes
 * and eventBytes added. Returns 0 once the spawner acknowledged the result. The last call but
 * df_report_free(). */
int df_report_result(struct df_report *r, const cJSON *result, struct df_err *err) DF_MUST_CHECK;

#endif
