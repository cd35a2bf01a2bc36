/*
 * report.h - where a step's log, events, artifacts and result go. Two homes: the spawner
 * (docs/step-protocol.md) and a directory
 * (`dayfly-runner step --file step.json --report-dir DIR`, for use without any spawner).
 *
 * df_report_log() never blocks on the network: bytes go to a bounded on-disk spool and a sender
 * thread posts them in numbered frames, again and again until they are acknowledged or the step's
 * time is over. Past DF_LIMIT_STREAM bytes the rest is dropped, counted, and said in one line at
 * the end. Thread rule: log and event calls from one thread each.
 */
#ifndef DF_REPORT_H
#define DF_REPORT_H

#include "common/json/json.h"

struct df_report; /* opaque */

/* Strings are copied. spool_dir is private (0700) and exists; the spools are spool_dir/log and
 * spool_dir/events: byte i of the file is byte i of the stream (what was acknowledged may be a
 * hole), so that the engine of a runner that was killed can deliver the rest. */
struct df_report_spawner {
    const char *server;        /* URL */
    const char *endpoint_file; /* or NULL */
    const char *ca_file;       /* PEM to trust; NULL: the system's */
    const char *uid;
    const char *claim_token; /* or, for df_report_greet(), the step token */
    const char *token_file;  /* instead: the claim token is read anew at each try */
    const char *spool_dir;
    int64_t give_up_ms; /* df_report_result() tries for so long */
};
/* Connects lazily; df_http_global_init() must have been called. */
int df_report_to_spawner(const struct df_report_spawner *o, struct df_report **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Files in directory, which exists: log, events, progress (JSON lines), result.json, artifacts by
 * their names. */
int df_report_to_directory(const char *directory, struct df_report **ret,
                           struct df_err *err) DF_MUST_CHECK;
void df_report_free(struct df_report *r); /* NULL is fine */

/* Claims and returns the step document (it has secrets: df_json_wipe() it). Tries again while the
 * spawner cannot be reached (the same claimId), until *stop (may be NULL) or for pending_ms. From
 * then on the sender works. CONFLICT AlreadyClaimed or StepOver, DENIED: touch nothing. Not for
 * directories. Once. */
int df_report_claim(struct df_report *r, const volatile bool *stop, int64_t pending_ms, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* The same for a step whose document is at hand already, because it was mounted into the pod: only
 * the first runner that says so goes on. CONFLICT AlreadyClaimed or StepOver: touch nothing. Not
 * for directories. Once, instead of the claim. */
int df_report_greet(struct df_report *r, const cJSON *document, const volatile bool *stop,
                    int64_t pending_ms, struct df_err *err) DF_MUST_CHECK;

/* Appends clean (redacted) bytes. Failure only when the spool itself fails: the step goes on, the
 * message is for stdout, and the loss is counted and said at the end. */
int df_report_log(struct df_report *r, const char *bytes, size_t n,
                  struct df_err *err) DF_MUST_CHECK;
/* The same for whole lines of JSON, each with its newline. */
int df_report_event(struct df_report *r, const char *lines, size_t n,
                    struct df_err *err) DF_MUST_CHECK;

/* Merged (arrays are joined, other members replaced) and sent soon, by the sender thread; a failure
 * to deliver is not an error. body is borrowed. */
void df_report_progress(struct df_report *r, const cJSON *body);

/* True once the spawner said that the step is cancelled or over (410): the pipeline's sign to stop.
 * Noticed within 5 seconds also by a step that has nothing to say. Any thread. */
bool df_report_is_over(const struct df_report *r);
/* The same as a flag that lives as long as the report, for df_http_request.stop and the like. */
const volatile bool *df_report_over(const struct df_report *r);
/* The same as a descriptor that becomes and stays readable, for poll(2); do not read or close it.
 * -1 for directories, where nobody ever says so. */
int df_report_over_fd(const struct df_report *r);

/* Blocking; tried again until delivered, refused, over, or deadline_ms (of df_mono_ms()). name:
 * "plan" or "errored-state"; path: the file. */
int df_report_put_artifact(struct df_report *r, const char *name, const char *path,
                           int64_t deadline_ms, struct df_err *err) DF_MUST_CHECK;
/* The bundle of the plan to apply, into a new file (0600). Refusals are class CONFLICT or NOT_FOUND
 * with the protocol's reason (PlanCorrupt, PlanOfOtherRun, PlanExpired, PlanUsed, PlanMissing). */
int df_report_get_plan(struct df_report *r, const char *to_path, int64_t deadline_ms,
                       struct df_err *err) DF_MUST_CHECK;

/* Delivers everything spooled (for at most half of give_up_ms: the result must not wait for a log),
 * then the result with logBytes and eventBytes added. Returns 0 once the spawner acknowledged the
 * result. The last call but df_report_free(). */
int df_report_result(struct df_report *r, const cJSON *result, struct df_err *err) DF_MUST_CHECK;

#endif
