/*
 * definitions.c - finds the fields of this version that the cluster's custom resource definitions
 * do not have: the API server drops them from every resource, and says so only to who applied it.
 */
#include "spawner/doctor/checks.h"
#include "spawner/model/model.h"

#define PUBLISHED "/openapi/v3/apis/" DF_API_VERSION

enum { SHOWN = 4 }; /* fields that a finding names */

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool takes_anything(const cJSON *schema)
{
    return df_json_bool(schema, "x-kubernetes-preserve-unknown-fields", false);
}

static int compare_fields(const struct df_field *fields, const cJSON *schema, const char *path,
                          struct df_strs *missing, struct df_err *err);

static int compare_value(const struct df_field *f, const cJSON *schema, const char *path,
                         struct df_strs *missing, struct df_err *err)
{
    if (f->fields)
        return compare_fields(f->fields, schema, path, missing, err);
    if (!f->item)
        return 0;
    const char *items = f->type == DF_TYPE_LIST ? "items" : "additionalProperties";
    DF_FREE char *below = df_strf("%s[]", path);
    return below ? compare_value(f->item, member(schema, items), below, missing, err)
                 : df_fail_oom(err);
}

static int compare_fields(const struct df_field *fields, const cJSON *schema, const char *path,
                          struct df_strs *missing, struct df_err *err)
{
    if (takes_anything(schema))
        return 0;
    for (const struct df_field *f = fields; f->name; f++) {
        if (f->by == DF_BY_SERVICE)
            continue;
        const cJSON *own = member(member(schema, "properties"), f->name);
        DF_FREE char *below = df_strf("%s.%s", path, f->name);
        if (!below)
            return df_fail_oom(err);
        if (!own)
            (void)df_strs_add_new(missing, below);
        else if (compare_value(f, own, below, missing, err) < 0)
            return -1;
    }
    return df_strs_check(missing, err);
}

static const cJSON *find_schema(enum df_kind kind, const cJSON *schemas)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "dev.dayfly.v1alpha1.%s", df_kind_name(kind));
    return df_json_at(member(schemas, name), "properties.spec");
}

/* A definition that is not published yet misses nothing. */
static int find_missing(enum df_kind kind, const cJSON *schemas, struct df_strs *missing,
                        struct df_err *err)
{
    const cJSON *schema = find_schema(kind, schemas);
    if (!schema)
        return 0;
    if (compare_fields(df_kind_row(kind)->spec, schema, "spec", missing, err) < 0)
        return -1;
    const struct df_field *const *other = df_kind_row(kind)->other_specs;
    for (size_t i = 0; i < DF_ARRAY_SIZE(df_kind_row(kind)->other_specs) && other[i]; i++)
        if (compare_fields(other[i], schema, "spec", missing, err) < 0)
            return -1;
    return 0;
}

static int tell_missing(struct df_doctor_context *p, enum df_kind kind,
                        const struct df_strs *missing, struct df_err *err)
{
    DF_STRS struct df_strs shown = {0};
    for (size_t i = 0; i < missing->len && i < SHOWN; i++)
        (void)df_strs_add(&shown, missing->items[i]);
    DF_FREE char *list = df_strs_join(&shown, ", ");
    char more[40] = "";
    if (df_strs_check(&shown, err) < 0 || !list)
        return df_fail_oom(err);
    if (missing->len > SHOWN)
        (void)snprintf(more, sizeof(more), " and %zu more", missing->len - SHOWN);
    df_finding(p, DF_LEVEL_WARN,
               "the definition of %s is older than version " DF_VERSION
               " and drops %s%s: `make install` or the chart (crds.install) renews it",
               df_kind_plural(kind), list, more);
    return 0;
}

int df_check_definitions(struct df_doctor_context *p, bool *ret_complete, struct df_err *err)
{
    DF_JSON cJSON *published = NULL;
    struct df_err why = {0};
    *ret_complete = true;
    if (df_kube_get_raw(p->kube, PUBLISHED, &published, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND || why.cls == DF_ERR_DENIED ? 0 : df_err_pass(err, &why);
    const cJSON *schemas = df_json_at(published, "components.schemas");
    for (int kind = 0; kind < DF_KIND_COUNT; kind++) {
        DF_STRS struct df_strs missing = {0};
        if (!df_kind_row((enum df_kind)kind)->is_custom_resource)
            continue;
        if (find_missing((enum df_kind)kind, schemas, &missing, err) < 0)
            return -1;
        if (missing.len == 0)
            continue;
        *ret_complete = false;
        if (tell_missing(p, (enum df_kind)kind, &missing, err) < 0)
            return -1;
    }
    return 0;
}
