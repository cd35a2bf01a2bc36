/*
 * action_event.h - the transitions of a step in the format of other services: the messages
 * ActionEvent and PutRequest of flyteidl2.workflow, in the JSON of protocol buffers. Thread rule:
 * pure functions, any thread.
 *
 * A transition is an entry of status.phaseHistory, and its index is its version. One entry always
 * becomes the same event, however often it is sent. `id.run.name` is the run (for a step without a
 * run, the step itself), `id.name` is spec.action.
 */
#ifndef DF_ACTION_EVENT_H
#define DF_ACTION_EVENT_H

#include "spawner/model/model.h"

/* Project and domain of our runs in the other service. */
struct df_action_scope {
    const char *project; /* NULL: the namespace of the document */
    const char *domain;
};

/* Number of the step's transitions. */
int df_action_transitions(const cJSON *task);

/* The transition at index, which is below df_action_transitions(). The caller owns *ret. */
int df_action_event(const cJSON *task, int index, const struct df_action_scope *scope, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;
int df_action_put(const cJSON *task, int index, const struct df_action_scope *scope, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
