/*
 * held.h - events that wait until it is known whether a secret goes on in the next one.
 *
 * What a provisioner prints comes as one event for each line. A secret that was printed in several
 * lines is in no single event, so their lines pass a redactor of their own, one after the other as
 * in the log. An event waits as long as the end of its line may begin a secret: until the next
 * event, or the end of the command. Thread rule: one thread.
 */
#ifndef DF_REPORT_HELD_H
#define DF_REPORT_HELD_H

#include "common/json/json.h"
#include "common/redact/redact.h"

struct df_held; /* opaque */

/* Takes the event. line (without newline): as it came; NULL: it was changed. */
typedef int df_held_show(void *arg, cJSON *event, const char *line, size_t n, struct df_err *err);

int df_held_new(const struct df_redact_set *set, df_held_show *show, void *arg,
                struct df_held **ret,
                struct df_err *err) DF_MUST_CHECK; /* set: as df_redact_new() */
void df_held_free(struct df_held *h);
int df_held_widen(struct df_held *h, const struct df_redact_set *set,
                  struct df_err *err) DF_MUST_CHECK;

/* Adds an event of df_event_is_progress(), which it owns from now on, and shows those that are
 * decided, in their order. */
int df_held_add(struct df_held *h, cJSON *event, const char *line, size_t n,
                struct df_err *err) DF_MUST_CHECK;
/* Shows all: another event follows, or none. */
int df_held_end(struct df_held *h, struct df_err *err) DF_MUST_CHECK;

#endif
