#include "runner/platform/component.h"

#include "common/base/limits.h"

#include <stdarg.h>

#include "common/base/clock.h"

const char *df_component_state_name(enum df_component_state state)
{
    static const char *const names[] = {"Pending",  "Running", "Done",
                                        "Degraded", "Failed",  "Skipped"};
    return names[state];
}

const char *df_result_name(enum df_result result)
{
    static const char *const names[] = {"success", "failure", "partial", "invalid", "timeout"};
    return names[result];
}

void df_component_free(struct df_component *c)
{
    cJSON_Delete(DF_TAKE(c->diagnostics));
}

void df_component_fail(struct df_component *c, const char *cause, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(c->message, sizeof(c->message), fmt, ap);
    va_end(ap);
    df_copy(c->cause, sizeof(c->cause), cause);
    c->state = DF_COMPONENT_FAILED;
    c->ended_us = df_real_us();
}

void df_component_warn(struct df_component *c, const char *cause, const char *text)
{
    if (!*c->warning && *text)
        (void)snprintf(c->warning, sizeof(c->warning), "%s: %s", cause, text);
}

int df_component_tell(struct df_component *c, char *line, struct df_err *err)
{
    DF_FREE char *owned = line;
    if (!c->diagnostics)
        c->diagnostics = cJSON_CreateArray();
    if (cJSON_GetArraySize(c->diagnostics) >= DF_LIMIT_PLATFORM_DIAGNOSTICS)
        return 0;
    if (df_check_alloc(owned, err) < 0)
        return -1;
    return df_json_append_str(c->diagnostics, owned, err);
}
