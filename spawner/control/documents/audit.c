#include "spawner/control/documents/audit.h"

#include "common/base/clock.h"
#include "common/base/log.h"

void df_control_audit(struct df_spawner *s, enum df_kind kind, const char *name,
                      const struct df_audit_event *event)
{
    struct df_err err = {0};
    DF_JSON cJSON *entry = cJSON_CreateObject();
    if (!entry || df_json_add_time(entry, "at", df_real_us(), &err) < 0 ||
        df_json_add_str(entry, "actor", event->by.name, &err) < 0 ||
        df_json_add_str(entry, "role", df_role_name(event->by.role), &err) < 0 ||
        df_json_add_str(entry, "action", event->action, &err) < 0 ||
        df_json_add_str(entry, "kind", df_kind_name(kind), &err) < 0 ||
        df_json_add_str(entry, "name", name, &err) < 0 ||
        df_json_add_str(entry, "outcome", event->outcome, &err) < 0 ||
        df_json_add_str(entry, "detail", event->detail, &err) < 0 ||
        df_store_audit(s->store, entry, &err) < 0)
        df_error("audit trail: %s", entry ? err.message : "out of memory");
}
