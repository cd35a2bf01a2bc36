/*
 * reporter.h - tells a State Service (state_service.h) of every transition of every step: at least
 * once, those of one step in their order. A thread of its own, which nothing waits for.
 *
 * What is to be told stands in the documents: a step has DF_LABEL_UNREPORTED from its making until
 * all of its phase history was told. Memory only shortens the way: names of steps with news (when
 * they are too many, every step with the label is looked at), and how far each step is. So after a
 * restart a step that is not over is told of from its beginning; a receiver knows a transition by
 * action, attempt and version.
 */
#ifndef DF_JOURNAL_REPORTER_H
#define DF_JOURNAL_REPORTER_H

#include "spawner/spawner.h"

struct df_reporter; /* opaque */

/* For a step that is being made: it is to be told of, if anybody is. */
int df_reporter_expect(const struct df_config *config, cJSON *task,
                       struct df_err *err) DF_MUST_CHECK;

/* A step that is over is to be removed. RETRY while the State Service is yet to be told of it:
 * until DF_TIMEOUT_FORGET_SECONDS after its end; what it was not told by then is lost,
 * which the log says. */
int df_reporter_let_go(const struct df_config *config, const cJSON *task,
                       struct df_err *err) DF_MUST_CHECK;

/* *ret NULL when nobody is to be told. */
int df_reporter_start(struct df_spawner *s, struct df_reporter **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* Tells what is left, unless the service does not answer, and frees it. NULL is fine. */
void df_reporter_stop(struct df_reporter *r);

#endif
