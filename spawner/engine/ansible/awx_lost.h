/*
 * awx_lost.h - launches and credentials that AWX was asked for and whose answer was lost: it may
 * make them later.
 *
 * AWX takes no key by which a second launch would be the first one, so what this process has asked
 * for and AWX may have done is launched once, however long AWX works on it. Of what a process
 * before this one has asked for nobody knows: AWX ends a request by itself after 120 seconds (its
 * uwsgi's harakiri), and what has not come by then does not come. Not durable. Thread rule: any
 * thread.
 */
#ifndef DF_ENGINE_AWX_LOST_H
#define DF_ENGINE_AWX_LOST_H

#include <pthread.h>

#include "common/json/json.h"

#define DF_AWX_LOST_SECONDS 130

enum df_awx_loss {
    DF_AWX_NOTHING,    /* all that was asked for the step is known */
    DF_AWX_BEFORE,     /* the process before may have asked for it */
    DF_AWX_CREDENTIAL, /* as the last one: this process has asked for it, */
    DF_AWX_LAUNCH,     /* and AWX may have done it */
};

struct df_awx_lost {
    pthread_mutex_t lock; /* guards what follows */
    cJSON *steps;         /* {uid: {until, loss}} */
    int64_t until_us;     /* monotonic: of all others */
};
int df_awx_lost_init(struct df_awx_lost *l, struct df_err *err) DF_MUST_CHECK;
void df_awx_lost_destroy(struct df_awx_lost *l);

/* The process before this one may have asked for anything. */
void df_awx_lost_before(struct df_awx_lost *l);
/* NOTHING: this process is the first one that asks for the step. A launch stays one, whatever is
 * lost later. Without memory it is as after a start. */
void df_awx_lost_note(struct df_awx_lost *l, const char *uid, enum df_awx_loss what);
/* It was found, or the step has ended. */
void df_awx_lost_forget(struct df_awx_lost *l, const char *uid);

/* *ret_left_us: how long AWX may still work on it; <= 0: no more. */
enum df_awx_loss df_awx_lost_of(struct df_awx_lost *l, const char *uid, int64_t *ret_left_us);

#endif
