/*
 * reporter.h - reports every transition of every step to a State Service (state_service.h): at
 * least once, and those of one step in order. It has a thread of its own.
 *
 * The documents say what must be reported: a step has DF_LABEL_UNREPORTED from its creation until
 * its whole phase history has been reported. The journal and a cursor for each step only save work.
 * After a restart a step that has not ended is reported from its beginning; the receiver identifies
 * a transition by action, attempt and version.
 */
#ifndef DF_JOURNAL_REPORTER_H
#define DF_JOURNAL_REPORTER_H

#include "spawner/spawner.h"

struct df_reporter; /* opaque */

/* For a step that is being created: sets the label, if there is a State Service. */
int df_reporter_expect(const struct df_config *config, cJSON *task,
                       struct df_err *err) DF_MUST_CHECK;

/* Asks whether a step that has ended may be removed. RETRY while it is not fully reported, until
 * DF_TIMEOUT_FORGET_SECONDS after its end; then the rest is lost and the log says so. */
int df_reporter_release(const struct df_config *config, const cJSON *task,
                        struct df_err *err) DF_MUST_CHECK;

/* *ret is NULL if there is no State Service. */
int df_reporter_start(struct df_spawner *s, struct df_reporter **ret,
                      struct df_err *err) DF_MUST_CHECK;

/* Reports what is left, unless the State Service does not answer, and frees it. NULL is fine. */
void df_reporter_stop(struct df_reporter *r);

#endif
