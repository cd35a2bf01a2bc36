/*
 * action_event.h - the transitions of a step as other services read them: the messages ActionEvent
 * and PutRequest of flyteidl2.workflow, in the JSON of protocol buffers. Thread rule: pure
 * functions, any thread.
 *
 * A transition is an entry of status.phaseHistory, whose place there is its version: the same entry
 * is always the same event, however often it is told. `id.run.name` is the run (of a step that
 * stands alone: itself), `id.name` its spec.action.
 */
#ifndef DF_ACTION_EVENT_H
#define DF_ACTION_EVENT_H

#include "spawner/model/model.h"

/* Where our runs stand in the other service's order of things. */
struct df_action_scope {
    const char *project; /* NULL: the namespace of the document */
    const char *domain;
};

/* How many transitions the step has had. */
int df_action_transitions(const cJSON *task);

/* The transition at index, below that number. */
int df_action_event(const cJSON *task, int index, const struct df_action_scope *scope, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;
int df_action_put(const cJSON *task, int index, const struct df_action_scope *scope, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
