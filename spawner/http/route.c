#include "spawner/http/route.h"

#include <stdio.h>
#include <string.h>

/* Compares a pattern with the segments of the path. params: gets the values of the {x}. */
static bool matches(const char *pattern, const struct df_target *t,
                    const char *params[DF_ROUTE_PARAMS])
{
    size_t segment = 0, param = 0;
    for (const char *p = pattern; *p; segment++) {
        p++; /* the slash */
        size_t n = strcspn(p, "/");
        if (segment >= t->segment_count)
            return false;
        const char *have = t->segments[segment];
        if (*p == '{' && *have)
            params[param++] = have;
        else if (strncmp(p, have, n) != 0 || have[n])
            return false;
        p += n;
    }
    return segment == t->segment_count;
}

static void add_allowed(char allow[64], const char *method)
{
    size_t used = strlen(allow);
    bool get = strcmp(method, "GET") == 0;
    (void)snprintf(allow + used, 64 - used, "%s%s%s", used ? ", " : "", method,
                   get ? ", HEAD" : "");
}

int df_route_find(const struct df_route_table *table, const char *method,
                  const struct df_target *target, const struct df_route **ret,
                  const char *params[DF_ROUTE_PARAMS], char allow[64], struct df_err *err)
{
    const char *wanted = df_streq(method, "HEAD") ? "GET" : method;
    allow[0] = '\0';
    for (size_t i = 0; i < table->count; i++) {
        const struct df_route *row = &table->rows[i];
        const char *found[DF_ROUTE_PARAMS] = {0};
        if (target->segment_count > DF_TARGET_SEGMENTS || !matches(row->pattern, target, found))
            continue;
        if (strcmp(row->method, wanted) != 0) {
            add_allowed(allow, row->method);
            continue;
        }
        memcpy(params, found, sizeof(found));
        *ret = row;
        return 0;
    }
    if (!allow[0])
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "there is nothing under this path; see GET /openapi.yaml");
    return df_fail_reason(err, DF_ERR_USER, "MethodNotAllowed", "this path takes %s only", allow);
}

bool df_route_has_query(const struct df_route *route, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = route->query; p && *p; p += strspn(p, " ")) {
        size_t word = strcspn(p, " ");
        if (word == n && strncmp(p, name, n) == 0)
            return true;
        p += word;
    }
    return false;
}
