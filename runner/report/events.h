/*
 * events.h - counts the events of tofu's machine-readable UI (`-json`, `-json-into`), renders them
 * as text, and redacts them without breaking the JSON.
 *
 * Unknown types and absent members are no error: most releases of tofu and terraform add some.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_REPORT_EVENTS_H
#define DF_REPORT_EVENTS_H

#include "common/json/json.h"
#include "common/redact/redact.h"
#include "runner/report/output.h"

/* True if the line is an event; the caller then owns *ret. A NUL in a string of it is
 * DF_JSON_NUL. */
bool df_event_parse(const char *line, size_t n, cJSON **ret);

/* Adds the event to the summary, with strings redacted. */
int df_event_count(const cJSON *event, const struct df_redact_set *set,
                   struct df_output_summary *summary, struct df_err *err) DF_MUST_CHECK;

/* The event as text for people, in whole lines and not redacted: the message; a diagnostic with its
 * source lines, and outputs with their values, as tofu shows them. destroys: the plan that is
 * applied destroys, which the message of an apply does not know. NUL is NUL. */
int df_event_render(const cJSON *event, bool destroys, struct df_buf *out,
                    struct df_err *err) DF_MUST_CHECK;

/* True for a line that a provisioner printed. */
bool df_event_is_progress(const cJSON *event);
/* Puts another text for it into such an event: into the output, and the message that repeats it. */
int df_event_set_progress(cJSON *event, const char *output, struct df_err *err) DF_MUST_CHECK;

/* The line (without newline; NULL: the event was changed) with every secret masked: still one JSON
 * object, and unchanged if there is no secret in it. Also finds secrets in decoded strings. An
 * event that would cease to be JSON is replaced by one that says so. Modifies event. */
int df_event_redact(cJSON *event, const char *line, size_t n, const struct df_redact_set *set,
                    struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
