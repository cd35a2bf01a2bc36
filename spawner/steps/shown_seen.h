/*
 * shown_seen.h - what was read for the runner of a step that asked which outputs it is to mask
 * (shown.h): a moment later it sends them, and nobody need look again.
 *
 * In memory of this process, for some steps, if it is small: a caller that finds nothing reads it
 * again. It may be outdated when it is used. That is safe: each output is stored with the digest
 * of its value and shown for no other value. Wiped when it is removed. Thread rule: any thread.
 */
#ifndef DF_STEPS_SHOWN_SEEN_H
#define DF_STEPS_SHOWN_SEEN_H

#include "spawner/spawner.h"

/* Keeps a copy for the step with this uid, instead of what was kept for it; best effort. */
void df_shown_seen_keep(struct df_shown_seen *s, const char *step_uid, const cJSON *seen);
/* Takes it out; delete it with df_json_wipe(). NULL: there is none. */
cJSON *df_shown_seen_take(struct df_shown_seen *s, const char *step_uid);
void df_shown_seen_free(struct df_shown_seen *s);

#endif
