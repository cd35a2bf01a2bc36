/*
 * events.h - tofu's machine-readable UI (`-json`, `-json-into`): what one event means, how it reads
 * as text, and how it is made clean without ceasing to be JSON.
 *
 * Tolerant: unknown types and absent members are fine (tofu and terraform add some with most
 * releases). Thread rule: none; pure functions.
 */
#ifndef DF_REPORT_EVENTS_H
#define DF_REPORT_EVENTS_H

#include "common/json/json.h"
#include "common/redact/redact.h"
#include "runner/report/output.h"

/* Is this line an event? Then the caller owns *ret. */
bool df_event_parse(const char *line, size_t n, cJSON **ret);

/* Adds what the event says to the summary. first_error is redacted. */
int df_event_count(const cJSON *event, const struct df_redact_set *set,
                   struct df_output_summary *summary, struct df_err *err) DF_MUST_CHECK;

/* The event as a person reads it, one or more whole lines, not redacted: the message; a
 * diagnostic with the lines around it as tofu shows them; outputs with their values. */
int df_event_render(const cJSON *event, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* The event's line (without newline) with every secret masked, still one JSON object; byte for byte
 * as it came when there is none. Strings are also searched as they are when decoded. An event that
 * cannot be masked and stay JSON becomes one that says so. Changes event. */
int df_event_redact(cJSON *event, const char *line, size_t n, const struct df_redact_set *set,
                    struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
