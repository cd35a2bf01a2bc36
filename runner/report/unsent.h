/*
 * unsent.h - the progress of a step that is not sent yet, and when to send it. It asks for no time
 * and sends nothing: sender.h does. Times are of df_mono_ms(). Thread rule: one thread at a time.
 */
#ifndef DF_REPORT_UNSENT_H
#define DF_REPORT_UNSENT_H

#include "common/json/json.h"

/* Progress comes in bursts; each post is a durable write of the spawner, and the result
 * repeats it. */
#define DF_PROGRESS_GAP_MS 100
/* Progress that does not change the step's phase waits so long for what does, or for the result. */
#define DF_PROGRESS_LAZY_MS 500

struct df_unsent {
    cJSON *body;      /* owned; NULL: nothing to send */
    bool hurries;     /* it changes the step's phase */
    int64_t since_ms; /* when the oldest of it was added */
};
void df_unsent_free(struct df_unsent *p);

/* Merges body, borrowed: arrays are joined, other members replaced. Drops it if there is no
 * memory. */
void df_unsent_add(struct df_unsent *p, const cJSON *body, bool hurries, int64_t now_ms);

/* Takes back what could not be sent; what was added meanwhile comes behind it. */
void df_unsent_put_back(struct df_unsent *p, struct df_unsent *failed);

/* When it is to be sent, if the last post was at last_ms; INT64_MAX: there is nothing. */
int64_t df_unsent_due_ms(const struct df_unsent *p, int64_t last_ms);

#endif
