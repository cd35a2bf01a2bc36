/*
 * open_engines.h - the engines that the configuration asks for, and the steps that need others.
 * Called once at the start.
 */
#ifndef DF_OPEN_ENGINES_H
#define DF_OPEN_ENGINES_H

#include "spawner/control/control.h"

/* Registers them in s->engines; they tell s->control what changes. name_space: of the service,
 * step_space: of its Jobs; NULL without a cluster. USER: engine.local.isolation is not possible
 * here; NOT_FOUND: there is no runner. */
int df_open_engines(struct df_spawner *s, const char *name_space, const char *step_space,
                    struct df_err *err) DF_MUST_CHECK;
/* A command that runs the service for itself does not continue the work of a service with other
 * engines: it would start the next step of a run with its own. CONFLICT reason EngineMissing. The
 * store is complete. */
int df_check_engines(struct df_spawner *s, struct df_err *err) DF_MUST_CHECK;

#endif
