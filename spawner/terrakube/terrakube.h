/*
 * terrakube.h - what the files of spawner/terrakube share: what the service does for steps that the
 * API of a Terrakube gives to its executor (docs/terrakube.md). Who stands outside asks the row
 * (upstream.h). What a runner does itself is in runner/terrakube.
 *
 * Calls of the API and of Redis are short (DF_TIMEOUT_TERRAKUBE_MS each) and repeatable; the
 * control loop repeats them. Thread rule: any thread.
 */
#ifndef DF_SPAWNER_TERRAKUBE_H
#define DF_SPAWNER_TERRAKUBE_H

#include <pthread.h>

#include "common/base/log.h"
#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"
#include "spawner/spawner.h"

struct df_api;
struct df_doctor_context;
struct df_periodic;

/* When waiting jobs had their last heartbeat, each in a place that its name chooses. Two jobs of
 * one place only get more of them. Atomic; zero: none yet. */
struct df_terrakube_beats {
    uint64_t at[1024]; /* seconds, and the job's mark above them */
};

/* What the service knows of the Terrakube whose executor it is: the data of the row. */
struct df_terrakube_service {
    struct df_terrakube_settings settings;
    struct df_strs environment; /* the settings as "NAME=VALUE", for the runners */
    bool turned_away;           /* atomic: a step was refused since the last ring */
    int64_t ring_us;            /* atomic: real time of the next ring; 0: none is due */
    struct df_log_gate refused; /* steps that are logged as refused */
    struct df_terrakube_beats beats;
    pthread_mutex_t room;     /* held while unfinished steps are counted and one is added */
    struct df_api *address;   /* where the API finds its executor; NULL: not started */
    struct df_periodic *bell; /* rings again; NULL: not started */
};

/* NULL: terrakube.listen is not set. */
static inline struct df_terrakube_service *df_terrakube_of(const struct df_spawner *s)
{
    return s->upstream_data;
}

/* ---- document.c: a TaskAction with the action terrakube. Pure ---- */

/* "tk-<job>-<step>": one step of Terrakube has one name, however often the API sends it. The caller
 * frees; NULL: out of memory. */
char *df_terrakube_task_name(const struct df_terrakube_payload *p);

/* The spec of the step: who it is, and the keys of its workspace that place the pod (ephemeral.h).
 * The payload, which has secrets, is not in it. Of a payload that could not be read organization,
 * job and step are enough. The caller owns *ret. */
int df_terrakube_task_spec(const struct df_terrakube_payload *p, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;

/* The placement that the workspace's keys ask for. USER, reason InvalidPlacement: a key makes no
 * sense, or what no workspace may set, whatever the policy allows: variables that change how the
 * runner works, and mounts over the programs and files of its image. The caller owns *ret. */
int df_terrakube_placement(const cJSON *task, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Organization, workspace, job and step of the TaskAction, borrowed; all else is 0: for calls of
 * the API about the step. */
void df_terrakube_task_payload(const cJSON *task, struct df_terrakube_payload *ret);

/* ---- payloads.c: one blob for each step, sealed and bound to the step's name. It has secrets, and
 * is in no document and no object of the cluster ---- */

/* The blob's name, of the step's. */
#define DF_PAYLOAD_BLOB "payloads/%s"

/* Stores the payload, durably, before its step is stored. task: the step's name. */
int df_payload_put(struct df_spawner *s, const char *task, const char *text, size_t n,
                   struct df_err *err) DF_MUST_CHECK;
/* Absent is success. */
int df_payload_delete(struct df_spawner *s, const char *task, struct df_err *err) DF_MUST_CHECK;

/* The member `terrakube` of the step document: {"payload": its text, "settings": ["NAME=VALUE"],
 * "folder"}. folder: that of the workspace as the API has it, which a payload cannot change (2.33).
 * *ret has secrets: df_json_wipe() it. RETRY while the API does not answer. */
int df_terrakube_part(struct df_spawner *s, const cJSON *task, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* ---- calls.c: what no runner tells ---- */

/* Writes the step's output (what its runner had said, why it failed, what it began and nobody
 * recorded: status.unrecorded), and that it and its job failed. Does nothing if the API has an end
 * of the step already, or the job was cancelled. */
int df_terrakube_tell_failure(struct df_spawner *s, const cJSON *task, const char *reason,
                              const char *message, struct df_err *err) DF_MUST_CHECK;

/* The heartbeat of a job whose step waits, if one is due: a pass that something else woke asks
 * nobody, and an API that is away holds up one pass in fifteen seconds. *ret_next_us: when the next
 * one is due, also after a failure. *ret_over: the API says that the job was cancelled, rejected or
 * has ended. */
int df_terrakube_beat(struct df_spawner *s, const cJSON *task, int64_t now_us, int64_t *ret_next_us,
                      bool *ret_over, struct df_err *err) DF_MUST_CHECK;
/* Is a heartbeat of this job due? Then it counts as given. now_us, *ret_next_us: real time; when
 * the next one is due. Pure but for *b. */
bool df_terrakube_beat_is_due(struct df_terrakube_beats *b, const char *job, int64_t now_us,
                              int64_t *ret_next_us);

/* Wakes the API's queue, if a step was turned away: there is room now. Call
 * df_terrakube_ring_again() each second while this replica leads: it wakes the queue again two
 * seconds later, when the job that ended is not the oldest one any more, which alone Terrakube
 * wakes; and at its first call in any case. */
int df_terrakube_ring(struct df_spawner *s, struct df_err *err) DF_MUST_CHECK;
int df_terrakube_ring_again(struct df_spawner *s, struct df_err *err) DF_MUST_CHECK;

/* ---- request.c ---- */

/* Makes the step durable: payload first, then its TaskAction. text: the body, a TerraformJob (POST
 * /api/v1/terraform-rs of executor/service/mode/online). A step that is known is success: the API
 * sends one again whose answer it lost. A payload with a fault is taken if it says whose step it
 * is: the runner tells the fault where the user looks. RETRY: there is no room; the API sends it
 * again. USER: it cannot be told whose step it is. */
int df_request_terrakube_step(struct df_spawner *s, const char *text, size_t n,
                              struct df_err *err) DF_MUST_CHECK;

/* ---- for the row ---- */

extern const struct df_route_table df_terrakube_routes; /* address.c */
extern const struct df_task_hooks df_terrakube_hooks;   /* steps.c */
int df_check_terrakube(struct df_doctor_context *p, struct df_err *err) DF_MUST_CHECK; /* check.c */

#endif
