/*
 * schemas - prints what the tables of the model say, in the words of others: the definitions of
 * charts/dayfly/files/crds, so that the API server refuses what the model refuses (`schemas list`
 * names them, `schemas executors` prints one), and openapi.yaml with the schemas of the specs
 * (`schemas openapi FILE`; all else in it is written by hand). To be read from schema_of(): one
 * field, then whole specs, then the two kinds of files.
 */
#include "common/base/fs.h"
#include "common/changes/changes.h"
#include "common/yaml/yaml.h"
#include "spawner/model/integration_spec.h"
#include "spawner/model/kinds.h"
#include "spawner/model/placement.h"
#include "spawner/model/tables.h"
#include "spawner/model/task_kinds.h"
#include "spawner/model/workflow.h"
#include "tests/tools/schema_words.h"

/* Of a test tool: no memory is the end. */
static cJSON *object(void)
{
    cJSON *o = cJSON_CreateObject();
    if (!o)
        DF_BUG("no memory");
    return o;
}

static cJSON *add(cJSON *to, const char *key, cJSON *item)
{
    if (df_json_set(to, key, item, NULL) < 0)
        DF_BUG("no memory");
    return item;
}

static void add_str(cJSON *to, const char *key, const char *value)
{
    (void)add(to, key, cJSON_CreateString(value));
}

static void add_num(cJSON *to, const char *key, int64_t value)
{
    (void)add(to, key, cJSON_CreateNumber((double)value));
}

static void add_true(cJSON *to, const char *key)
{
    (void)add(to, key, cJSON_CreateTrue());
}

static cJSON *parse(const char *text)
{
    cJSON *j = NULL;
    struct df_err err = {0};
    if (df_json_parse(text, strlen(text), &j, &err) < 0)
        DF_BUG("%s: %s", text, err.message);
    return j;
}

static void append(cJSON *object_of, const char *key, cJSON *item)
{
    if (df_json_append(df_json_array_at(object_of, key), item, NULL) < 0)
        DF_BUG("no memory");
}

/* For whom a schema is: the API server, somebody who asks, or somebody who reads. */
enum dialect { CRD, INPUT, OUTPUT };

static bool is_in(enum dialect d, const struct df_field *f)
{
    return d == CRD ? f->by != DF_BY_SERVICE : d == OUTPUT || f->by == DF_BY_CLIENT;
}

/* ---- one field ------------------------------------------------------------------------------ */

static void describe(cJSON *schema, const struct text *list, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].path, path) == 0)
            add_str(schema, "description", list[i].text);
}

static void add_cel(cJSON *schema, const char *rule, const char *message)
{
    cJSON *validation = object();
    add_str(validation, "rule", rule);
    add_str(validation, "message", message);
    append(schema, "x-kubernetes-validations", validation);
}

static void add_rules(cJSON *schema, df_rule *rule, enum dialect d)
{
    for (size_t i = 0; rule && i < DF_ARRAY_SIZE(rules); i++) {
        if (rules[i].rule != rule)
            continue;
        if (rules[i].pattern)
            add_str(schema, "pattern", rules[i].pattern);
        if (rules[i].cel && d == CRD)
            add_cel(schema, rules[i].cel, rules[i].message);
    }
    if (rule == df_rule_time)
        add_str(schema, "format", "date-time");
}

static cJSON *schema_of(const struct df_field *field, const char *path, enum dialect d);

static void add_properties(cJSON *schema, const struct df_field *fields, const char *path,
                           enum dialect d)
{
    cJSON *properties = df_json_object_at(schema, "properties");
    for (const struct df_field *f = fields; f->name; f++) {
        DF_FREE char *below = df_strf("%s%s%s", path, *path ? "." : "", f->name);
        if (!is_in(d, f))
            continue;
        (void)add(properties, f->name, schema_of(f, below, d));
        if (f->flags & DF_REQUIRED)
            append(schema, "required", cJSON_CreateString(f->name));
    }
    if (d == INPUT)
        (void)add(schema, "additionalProperties", cJSON_CreateFalse());
}

static cJSON *anything(void)
{
    cJSON *schema = object();
    add_true(schema, "x-kubernetes-preserve-unknown-fields");
    add_true(schema, "nullable");
    return schema;
}

static void add_string(cJSON *schema, const struct df_field *f, enum dialect d)
{
    add_str(schema, "type", "string");
    if (f->min && (d == CRD || !f->words))
        add_num(schema, "minLength", f->min);
    if (f->max && !f->words)
        add_num(schema, "maxLength", f->max);
    for (const char *const *w = f->words; w && *w; w++)
        append(schema, "enum", cJSON_CreateString(*w));
    if (d == CRD && !f->words && !(f->flags & DF_LINES))
        add_str(schema, "pattern", "^[^\\x00-\\x1f\\x7f]*$");
}

static void add_whole(cJSON *schema, const struct df_field *f)
{
    add_str(schema, "type", "integer");
    add_str(schema, "format", "int64");
    add_num(schema, "minimum", f->min);
    if (f->max)
        add_num(schema, "maximum", f->max);
}

static bool is_named_list(const char *path)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(named_lists); i++)
        if (strcmp(named_lists[i], path) == 0)
            return true;
    return false;
}

static void add_list(cJSON *schema, const struct df_field *f, const char *path, enum dialect d)
{
    add_str(schema, "type", "array");
    if (f->min)
        add_num(schema, "minItems", f->min);
    if (f->max)
        add_num(schema, "maxItems", f->max);
    DF_FREE char *below = df_strf("%s[]", path);
    (void)add(schema, "items", schema_of(f->item, below, d));
    if (d != CRD)
        return;
    bool by_name = is_named_list(path);
    add_str(schema, "x-kubernetes-list-type", by_name ? "map" : "atomic");
    if (by_name)
        append(schema, "x-kubernetes-list-map-keys", cJSON_CreateString("name"));
}

/* OpenAPI leaves the parts of a pod to Kubernetes. */
static bool is_opened(const char *path, enum dialect d)
{
    return d == CRD || !df_starts_with(path, "placement.") ||
           strcmp(path, "placement.resources") == 0;
}

static void add_object(cJSON *schema, const struct df_field *f, const char *path, enum dialect d)
{
    DF_FREE char *below = df_strf("%s[]", path);
    add_str(schema, "type", "object");
    if (f->max)
        add_num(schema, "maxProperties", f->max);
    if (f->fields && is_opened(path, d))
        add_properties(schema, f->fields, path, d);
    else if (f->item)
        (void)add(schema, "additionalProperties", schema_of(f->item, below, d));
    else if (d == CRD)
        (void)add(schema, "additionalProperties", anything());
}

static void add_any(cJSON *schema, const struct df_field *f, enum dialect d)
{
    bool is_quantity = f->rule == df_rule_quantity;
    if (d == CRD)
        add_true(schema, is_quantity ? "x-kubernetes-int-or-string"
                                     : "x-kubernetes-preserve-unknown-fields");
    else if (is_quantity)
        (void)add(schema, "type", parse("[\"string\",\"number\"]"));
}

static void add_type(cJSON *schema, const struct df_field *f, const char *path, enum dialect d)
{
    switch (f->type) {
    case DF_TYPE_STRING:
        add_string(schema, f, d);
        break;
    case DF_TYPE_BOOL:
        add_str(schema, "type", "boolean");
        break;
    case DF_TYPE_WHOLE:
        add_whole(schema, f);
        break;
    case DF_TYPE_OBJECT:
        add_object(schema, f, path, d);
        break;
    case DF_TYPE_LIST:
        add_list(schema, f, path, d);
        break;
    case DF_TYPE_ANY:
    default:
        add_any(schema, f, d);
        break;
    }
}

static void add_openapi_members(cJSON *schema, const char *path)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(openapi_members); i++) {
        if (strcmp(openapi_members[i].path, path) != 0)
            continue;
        DF_JSON cJSON *members = parse(openapi_members[i].text);
        const cJSON *m;
        cJSON_ArrayForEach (m, members) {
            (void)add(schema, m->string, cJSON_Duplicate(m, true));
        }
    }
}

static void add_placed_rules(cJSON *schema, const char *path)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(placed_rules); i++)
        if (strcmp(placed_rules[i].path, path) == 0)
            add_cel(schema, placed_rules[i].cel, placed_rules[i].message);
}

static cJSON *reference_to(const char *name)
{
    cJSON *schema = object();
    DF_FREE char *path = df_strf("#/components/schemas/%s", name);
    add_str(schema, "$ref", path);
    return schema;
}

static cJSON *schema_of(const struct df_field *f, const char *path, enum dialect d)
{
    if (d != CRD && strcmp(path, "placement") == 0)
        return reference_to("Placement");
    cJSON *schema = object();
    describe(schema, texts, DF_ARRAY_SIZE(texts), path);
    add_type(schema, f, path, d);
    if (f->fallback)
        (void)add(schema, "default", parse(f->fallback));
    add_rules(schema, f->rule, d);
    if (d == CRD)
        add_placed_rules(schema, path);
    else
        add_openapi_members(schema, path);
    return schema;
}

/* ---- spec and status ------------------------------------------------------------------------ */

static cJSON *spec_of(const struct df_field *fields, enum dialect d)
{
    cJSON *schema = object();
    add_str(schema, "type", "object");
    add_properties(schema, fields, "", d);
    return schema;
}

/* Those members of a step that a workflow does not have. */
static void add_step_members(cJSON *spec, enum dialect d)
{
    cJSON *properties = df_json_object_at(spec, "properties");
    cJSON *actions = df_json_array_at(df_json_object_at(properties, "action"), "enum");
    const struct df_field *step = df_task_spec;
    for (const struct df_field *f = step; f->name; f++)
        if (is_in(d, f) && !df_field_find(df_workflow_rows, f->name))
            (void)add(properties, f->name, schema_of(f, f->name, d));
    for (const char *const *w = df_field_find(step, "action")->words; *w; w++)
        if (df_json_append_str(actions, *w, NULL) < 0)
            DF_BUG("no memory");
}

/* Those that only a step of Terrakube has. */
static void add_terrakube_members(cJSON *spec, enum dialect d)
{
    cJSON *properties = df_json_object_at(spec, "properties");
    cJSON *actions = df_json_array_at(df_json_object_at(properties, "action"), "enum");
    for (const struct df_field *f = df_terrakube_rows; f->name; f++)
        if (is_in(d, f) && !df_json_at(properties, f->name))
            (void)add(properties, f->name, schema_of(f, f->name, d));
    if (df_json_append_str(actions, DF_ACTION_TERRAKUBE, NULL) < 0)
        DF_BUG("no memory");
}

/* Of a step, a workflow or a step of Terrakube. */
static cJSON *task_spec(enum dialect d)
{
    cJSON *spec = spec_of(df_workflow_rows, d);
    add_step_members(spec, d);
    add_terrakube_members(spec, d);
    cJSON_DeleteItemFromObject(spec, "required");
    append(spec, "required", cJSON_CreateString("action"));
    append(spec, "required", cJSON_CreateString("targetResource"));
    return spec;
}

static const char status_schema[] =
    "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{"
    "\"phase\":{\"type\":\"string\"},\"reason\":{\"type\":\"string\"},"
    "\"message\":{\"type\":\"string\"},\"state\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"string\"},\"creator\":{\"type\":\"string\"},"
    "\"author\":{\"type\":\"string\"},\"at\":{\"type\":\"string\"},"
    "\"activeRun\":{\"type\":\"string\"},\"mayHoldResources\":{\"type\":\"boolean\"},"
    "\"erroredStates\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"step\":{\"type\":\"string\"},\"run\":{\"type\":\"string\"},"
    "\"at\":{\"type\":\"string\",\"format\":\"date-time\"}}}},"
    "\"observedGeneration\":{\"type\":\"integer\",\"format\":\"int64\"},"
    "\"service\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,"
    "\"x-kubernetes-map-type\":\"atomic\"},"
    "\"conditions\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
    "\"x-kubernetes-list-map-keys\":[\"type\"],\"items\":{\"type\":\"object\","
    "\"required\":[\"type\",\"status\"],\"properties\":{\"type\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"string\",\"enum\":[\"True\",\"False\",\"Unknown\"]},"
    "\"reason\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},"
    "\"observedGeneration\":{\"type\":\"integer\",\"format\":\"int64\"},"
    "\"lastTransitionTime\":{\"type\":\"string\",\"format\":\"date-time\"}}}}}}";

static cJSON *status_of(void)
{
    cJSON *status = parse(status_schema);
    cJSON *property;
    add_str(status, "description", "What the service says of it.");
    cJSON_ArrayForEach (property, df_json_object_at(status, "properties"))
        describe(property, status_texts, DF_ARRAY_SIZE(status_texts), property->string);
    return status;
}

/* ---- the definitions ------------------------------------------------------------------------ */

struct definition {
    const struct column *columns;
    const struct cel *rules;
    const char *const *selectable;  /* paths; NULL: none */
    cJSON *(*spec)(enum dialect d); /* of the kind; NULL: what the row of the kind says */
    const struct df_kind_row *kind; /* NULL: it is no kind of documents, and has entries instead */
    const char *name, *plural, *short_name;
};

static const struct definition definitions[DF_KIND_COUNT] = {
    [DF_KIND_EXECUTOR] = {executor_columns, executor_rules},
    [DF_KIND_RUN] = {run_columns, run_rules, run_fields},
    [DF_KIND_TASK_ACTION] = {task_columns, task_rules, task_fields, task_spec},
    [DF_KIND_REVISION] = {revision_columns, revision_rules, revision_fields},
};
static const struct definition audit_trail = {
    .columns = trail_columns, .name = "AuditTrail", .plural = "audittrails", .short_name = "dfa"};

/* False: in a cluster there is no such resource. */
static bool find_definition(const char *plural, struct definition *ret)
{
    for (int k = 0; k < DF_KIND_COUNT; k++) {
        const struct df_kind_row *kind = df_kind_row((enum df_kind)k);
        *ret = definitions[k];
        ret->kind = kind;
        ret->name = kind->name;
        ret->plural = kind->shown.plural;
        ret->short_name = kind->short_name;
        if (kind->is_custom_resource && strcmp(ret->plural, plural) == 0)
            return true;
    }
    *ret = audit_trail;
    return strcmp(audit_trail.plural, plural) == 0;
}

static int list_definitions(void)
{
    for (int k = 0; k < DF_KIND_COUNT; k++)
        if (df_kind_row((enum df_kind)k)->is_custom_resource)
            (void)puts(df_kind_plural((enum df_kind)k));
    return puts(audit_trail.plural) < 0;
}

static cJSON *names_of(const struct definition *d, const char *singular)
{
    cJSON *names = object();
    add_str(names, "kind", d->name);
    add_str(names, "listKind", "");
    DF_FREE char *list = df_strf("%sList", d->name);
    add_str(names, "listKind", list);
    add_str(names, "plural", d->plural);
    add_str(names, "singular", singular);
    append(names, "shortNames", cJSON_CreateString(d->short_name));
    append(names, "categories", cJSON_CreateString("dayfly"));
    return names;
}

static cJSON *whole_schema(const struct definition *d, const char *singular)
{
    cJSON *schema = object(), *properties = df_json_object_at(schema, "properties");
    describe(schema, texts, DF_ARRAY_SIZE(texts), singular);
    add_str(schema, "type", "object");
    (void)add(properties, "apiVersion", parse("{\"type\":\"string\"}"));
    (void)add(properties, "kind", parse("{\"type\":\"string\"}"));
    (void)add(properties, "metadata", parse("{\"type\":\"object\"}"));
    if (!d->kind) {
        (void)add(properties, "entries",
                  parse("{\"type\":\"array\",\"x-kubernetes-list-type\":\"atomic\",\"items\":{"
                        "\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}"));
        return schema;
    }
    (void)add(properties, "spec", d->spec ? d->spec(CRD) : spec_of(d->kind->spec, CRD));
    (void)add(properties, "status", status_of());
    append(schema, "required", cJSON_CreateString("spec"));
    for (const struct cel *c = d->rules; c->rule; c++)
        add_cel(schema, c->rule, c->message);
    return schema;
}

static void add_column(cJSON *list, const struct column *c, const char *name, const char *path)
{
    cJSON *column = object();
    add_str(column, "name", name);
    add_str(column, "type", c->type);
    add_str(column, "jsonPath", path);
    if (c->priority)
        add_num(column, "priority", c->priority);
    if (df_json_append(list, column, NULL) < 0)
        DF_BUG("no memory");
}

/* One for each kind of change. */
static void add_change_columns(cJSON *list, const struct column *c)
{
    for (int i = 0; i < DF_CHANGES_KINDS; i++) {
        const char *kind = df_changes_name((enum df_changes_kind)i);
        DF_FREE char *name = strdup(kind), *path = df_strf("%s.%s", c->path, kind);
        *name = (char)(*name - 'a' + 'A');
        add_column(list, c, name, path);
    }
}

static cJSON *columns_of(const struct definition *d)
{
    cJSON *list = cJSON_CreateArray();
    for (const struct column *c = d->columns; c->name; c++) {
        if (strcmp(c->name, CHANGES) == 0)
            add_change_columns(list, c);
        else
            add_column(list, c, c->name, c->path);
    }
    return list;
}

static void add_selectable(cJSON *version, const char *const *paths)
{
    cJSON *list = cJSON_CreateArray();
    for (; *paths; paths++) {
        cJSON *field = object();
        add_str(field, "jsonPath", *paths);
        if (df_json_append(list, field, NULL) < 0)
            DF_BUG("no memory");
    }
    (void)add(version, "selectableFields", list);
}

static cJSON *version_of(const struct definition *d, const char *singular)
{
    cJSON *version = object();
    add_str(version, "name", "v1alpha1");
    add_true(version, "served");
    add_true(version, "storage");
    (void)add(version, "additionalPrinterColumns", columns_of(d));
    if (d->kind)
        (void)add(version, "subresources", parse("{\"status\":{}}"));
    if (d->selectable)
        add_selectable(version, d->selectable);
    (void)add(df_json_object_at(version, "schema"), "openAPIV3Schema", whole_schema(d, singular));
    return version;
}

static cJSON *definition_of(const struct definition *d)
{
    cJSON *crd = object(), *spec = object();
    DF_FREE char *name = df_strf("%s." DF_API_GROUP, d->plural);
    DF_FREE char *singular = strdup(d->name);
    for (char *p = singular; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    add_str(crd, "apiVersion", "apiextensions.k8s.io/v1");
    add_str(crd, "kind", "CustomResourceDefinition");
    add_str(df_json_object_at(crd, "metadata"), "name", name);
    (void)add(crd, "spec", spec);
    add_str(spec, "group", DF_API_GROUP);
    add_str(spec, "scope", "Namespaced");
    (void)add(spec, "names", names_of(d, singular));
    append(spec, "versions", version_of(d, singular));
    return crd;
}

static int print_definition(const struct definition *d)
{
    DF_JSON cJSON *crd = definition_of(d);
    DF_FREE char *text = df_yaml_print(crd);
    return text && printf("# Made by `make crds` from spawner/model.\n%s", text) > 0 ? 0 : 1;
}

/* ---- openapi.yaml --------------------------------------------------------------------------- */

#define BEGIN "    # Made by `make openapi` from spawner/model, to the end of schemas.\n"

static cJSON *run_input(void)
{
    cJSON *schema = spec_of(df_run_spec, INPUT);
    (void)add(df_json_object_at(schema, "properties"), "secrets", reference_to("RunSecrets"));
    return schema;
}

/* Its action is provision. */
static cJSON *recreate_input(void)
{
    cJSON *schema = run_input(), *properties = df_json_object_at(schema, "properties");
    for (const struct df_field *f = df_run_spec; f->name; f++)
        if (f->only || strcmp(f->name, "action") == 0)
            cJSON_DeleteItemFromObjectCaseSensitive(properties, f->name);
    cJSON_DeleteItemFromObjectCaseSensitive(schema, "required");
    return schema;
}

static cJSON *placement(void)
{
    cJSON *schema = object();
    describe(schema, texts, DF_ARRAY_SIZE(texts), "placement");
    add_str(schema, "type", "object");
    add_properties(schema, df_placement_rows, "placement", INPUT);
    return schema;
}

/* Without the texts, which go by the path in the specs of others. */
static void drop_texts(cJSON *schema)
{
    cJSON_DeleteItemFromObjectCaseSensitive(schema, "description");
    cJSON *member;
    cJSON_ArrayForEach (member, df_json_object_at(schema, "properties")) {
        cJSON_DeleteItemFromObjectCaseSensitive(member, "description");
    }
}

static cJSON *integration(void)
{
    cJSON *schema = spec_of(df_integration_rows, INPUT);
    drop_texts(schema);
    return schema;
}

static cJSON *all_schemas(void)
{
    cJSON *all = object();
    (void)add(all, "Placement", placement());
    (void)add(all, "ExecutorSpec", spec_of(df_executor_spec, INPUT));
    (void)add(all, "RunInput", run_input());
    (void)add(all, "RecreateInput", recreate_input());
    (void)add(all, "RunSpec", spec_of(df_run_spec, OUTPUT));
    (void)add(all, "RevisionSpec", spec_of(df_revision_spec, OUTPUT));
    (void)add(all, "WorkflowSpec", spec_of(df_workflow_rows, INPUT));
    (void)add(all, "TaskActionSpec", task_spec(OUTPUT));
    (void)add(all, "IntegrationSpec", integration());
    return all;
}

/* Small things in one line: JSON is YAML. */
static void put(struct df_buf *to, const cJSON *member, int depth)
{
    DF_FREE char *text = df_json_print(member);
    bool in_one_line = !text || !cJSON_IsObject(member) || strlen(text) <= 160;
    (void)df_buf_addf(to, "%*s%s:%s%s\n", depth * 2, "", member->string, in_one_line ? " " : "",
                      in_one_line ? text : "");
    for (const cJSON *m = in_one_line ? NULL : member->child; m; m = m->next)
        put(to, m, depth + 1);
}

/* The file with these schemas in the place of the former ones, which are its end. */
static int print_openapi(const char *path)
{
    DF_BUF struct df_buf file = DF_BUF_INIT(DF_MIB);
    DF_JSON cJSON *all = all_schemas();
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    if (df_fs_read(path, &file, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const char *begin = strstr(df_buf_str(&file), BEGIN);
    for (const cJSON *schema = all->child; schema; schema = schema->next)
        put(&text, schema, 2);
    if (text.failed || !begin) {
        (void)fprintf(stderr, "%s: has no line \"%s\"\n", path, BEGIN);
        return 1;
    }
    (void)printf("%.*s" BEGIN "%s", (int)(begin - df_buf_str(&file)), df_buf_str(&file),
                 df_buf_str(&text));
    return 0;
}

int main(int argc, char **argv)
{
    struct definition d;
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list_definitions();
    if (argc == 2 && find_definition(argv[1], &d))
        return print_definition(&d);
    if (argc == 3 && strcmp(argv[1], "openapi") == 0)
        return print_openapi(argv[2]);
    (void)fprintf(stderr, "usage: schemas list, schemas PLURAL, schemas openapi FILE\n");
    return 2;
}
