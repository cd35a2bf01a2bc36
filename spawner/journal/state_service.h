/*
 * state_service.h - one call to the State Service that stateService.* names: StateService.Put or
 * EventsProxyService.Record of flyteidl2.workflow, by the Connect protocol with JSON.
 * Thread rule: one thread.
 */
#ifndef DF_JOURNAL_STATE_SERVICE_H
#define DF_JOURNAL_STATE_SERVICE_H

#include "spawner/config/config.h"
#include "spawner/model/action_event.h"

struct df_state_service; /* opaque */

/* config is borrowed and must live on. */
int df_state_service_new(const struct df_config *config, struct df_state_service **ret,
                         struct df_err *err) DF_MUST_CHECK;
void df_state_service_free(struct df_state_service *s); /* NULL is fine */

/* The most transitions of one step in a call. */
int df_state_service_most(const struct df_state_service *s);

enum df_state_answer {
    DF_STATE_TAKEN,
    /* Not now: *err says why, and err->retry_after_s the shortest delay. Class SYSTEM: only these
     * transitions; others may be accepted. */
    DF_STATE_LATER,
    DF_STATE_REFUSED /* it will never be accepted */
};

/* Sends n transitions from index on. */
enum df_state_answer df_state_service_tell(struct df_state_service *s, const cJSON *task, int index,
                                           int n, struct df_err *err);

#endif
