/*
 * terrakube.h - what the service itself does for steps of Terrakube: it tells their API what no runner
 * could tell, and keeps their heartbeat while no runner has claimed them. What a runner does itself is
 * in runner/terrakube.
 *
 * Calls are short (DF_TIMEOUT_TERRAKUBE_MS each) and repeatable; the control loop repeats them.
 * Thread rule: any thread.
 */
#ifndef DF_STEPS_TERRAKUBE_H
#define DF_STEPS_TERRAKUBE_H

#include <pthread.h>

#include "common/base/log.h"
#include "common/terrakube/settings.h"
#include "spawner/spawner.h"

/* When waiting jobs had their last heartbeat, each in a place that its name chooses. Two jobs of one
 * place only get more of them. Atomic; zero: none yet. */
struct df_terrakube_beats {
    uint64_t at[1024]; /* seconds, and the job's mark above them */
};

/* Is a heartbeat of this job due? Then it counts as given. now_us, *ret_next_us: real time; when the
 * next one is due. Pure but for *b. Thread rule: any thread. */
bool df_terrakube_beat_is_due(struct df_terrakube_beats *b, const char *job, int64_t now_us,
                              int64_t *ret_next_us);

/* What the service knows of the Terrakube whose executor it is: spawner.h has it. */
struct df_terrakube_door {
    struct df_terrakube_settings settings;
    struct df_strs environment; /* the settings as "NAME=VALUE", for the runners */
    bool turned_away;           /* atomic: a step was refused since the last ring */
    int64_t ring_us;            /* atomic: real time of the next ring; 0: none is due */
    struct df_log_gate refused; /* steps that are logged as refused */
    struct df_terrakube_beats beats;
    pthread_mutex_t room; /* held while unfinished steps are counted and one is added */
};
/* Reads the environment of this process. USER as in settings.h. */
int df_terrakube_door_open(char *const *environment, struct df_terrakube_door **ret,
                           struct df_err *err) DF_MUST_CHECK;
void df_terrakube_door_close(struct df_terrakube_door *d); /* NULL is fine */

/* The member `terrakube` of the step document: {"payload": its text, "settings": ["NAME=VALUE"],
 * "folder"}. folder: that of the workspace as the API has it, which a payload cannot change (2.33).
 * *ret has secrets: df_json_wipe() it. RETRY while the API does not answer. */
int df_terrakube_part(struct df_spawner *s, const cJSON *task, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* Writes the step's output (what its runner had said, why it failed, what it began and nobody recorded:
 * status.unrecorded), and that it and its job failed. Does nothing if the API has an end of the step
 * already, or the job was cancelled. */
int df_terrakube_tell_failure(struct df_spawner *s, const cJSON *task, const char *reason,
                              const char *message, struct df_err *err) DF_MUST_CHECK;

/* The heartbeat of a job whose step waits, if one is due: a pass that something else woke asks nobody,
 * and an API that is away holds up one pass in fifteen seconds. *ret_next_us: when the next one is due,
 * also after a failure. *ret_over: the API says that the job was cancelled, rejected or has ended. */
int df_terrakube_beat(struct df_spawner *s, const cJSON *task, int64_t now_us, int64_t *ret_next_us,
                      bool *ret_over, struct df_err *err) DF_MUST_CHECK;

/* Wakes the API's queue, if a step was turned away: there is room now. Call df_terrakube_ring_again()
 * each second, which wakes it again two seconds later, and at its first call in any case. */
int df_terrakube_ring(struct df_spawner *s, struct df_err *err) DF_MUST_CHECK;
int df_terrakube_ring_again(struct df_spawner *s, struct df_err *err) DF_MUST_CHECK;

#endif
