/*
 * restored.h - cancels runs, steps and workflows whose custom resources were restored from a
 * backup: what was under way then may have been done since, and a plan that waited may have been
 * applied. In a restored data directory `dayfly restore` has done this already
 * (spawner/backup/restore.h). A document whose cancel is refused is held; other documents do not
 * wait for it.
 */
#ifndef DF_CONTROL_RESTORED_H
#define DF_CONTROL_RESTORED_H

#include "spawner/control/loop.h"

/* Cancels what has not ended, with an entry in the audit trail for each; what cannot be canceled is
 * logged and held. Repeating it changes nothing. Called by one thread, before the workers start. */
int df_restored_cancel(struct df_control *c, struct df_err *err) DF_MUST_CHECK;

/* For a pass, before it does anything for its document: cancels one that is held, which fails as
 * long as that is refused, so that none of its steps starts. *ret_done: it was held, and the next
 * pass follows. Any thread. */
int df_restored_pass(struct df_control *c, enum df_kind kind, const cJSON *doc, bool *ret_done,
                     struct df_err *err) DF_MUST_CHECK;

#endif
