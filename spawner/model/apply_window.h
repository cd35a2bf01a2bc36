/*
 * apply_window.h - when plans of an executor may be applied (spec.applyWindow): {days, from, to,
 * utcOffset}. A window begins on each of its days (all without `days`) at `from`, and ends at `to`
 * of the same day, or of the next one if that is not later. The times are those of a place with
 * this offset from UTC: the C library can reckon with a zone only by changing the zone of the whole
 * process, which other threads read.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_APPLY_WINDOW_H
#define DF_MODEL_APPLY_WINDOW_H

#include "spawner/model/field.h"

extern const struct df_field df_apply_window_rows[];

/* from and to are not the same. */
df_rule df_rule_apply_window;
/* "22:00"; "+01:00". */
df_rule df_rule_clock;
df_rule df_rule_utc_offset;

/* When the window is open, real time: now_us if it is, else the next time at which it opens.
 * window: NULL: it is always open. */
int64_t df_apply_window_opens(const cJSON *window, int64_t now_us);

#endif
