/*
 * awx_gate.h - how many requests may wait for one AWX at a time. The threads that send them have
 * other engines' work to do as well: an AWX that takes connections and does not answer must not
 * hold them all.
 *
 * DF_AWX_AT_ONCE requests are sent at once; another one waits for its turn for a moment, and then
 * fails. After one that got no answer all fail at once for DF_AWX_SILENCE_US, and from then on one
 * at a time is sent, until AWX answers. Thread rule: any thread.
 */
#ifndef DF_ENGINE_AWX_GATE_H
#define DF_ENGINE_AWX_GATE_H

#include <pthread.h>

#include "common/base/err.h"

enum { DF_AWX_AT_ONCE = 4 };
#define DF_AWX_TURN_US INT64_C(1000000)
#define DF_AWX_SILENCE_US INT64_C(15000000)
/* A failure that comes sooner is one of the connection, and holds no thread. */
#define DF_AWX_SILENT_US INT64_C(5000000)

struct df_awx_gate {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t left;
    int inside;
    bool is_silent;
    int64_t ask_us; /* monotonic: not before, while it is silent */
};
void df_awx_gate_init(struct df_awx_gate *g);
void df_awx_gate_destroy(struct df_awx_gate *g);

/* RETRY: not now, and nothing was sent. g: NULL is fine, here and below. */
int df_awx_gate_enter(struct df_awx_gate *g, struct df_err *err) DF_MUST_CHECK;
/* After each success of df_awx_gate_enter(). began_us: monotonic, when the request
 * was sent. */
void df_awx_gate_leave(struct df_awx_gate *g, int64_t began_us, bool was_answered);

#endif
