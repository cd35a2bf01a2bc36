/*
 * allow.c - the checks of one document against the policy: of a field, of a name that it refers to,
 * of its resources. Read df_allow_check() first, at the end.
 */
#include "spawner/model/allow.h"

#include "spawner/model/placement.h"
#include "spawner/model/references.h"
#include "spawner/model/workflow.h"

struct check {
    const struct df_allow *allow;
    const struct df_allow_ask *ask;
    struct df_allow_cell cell;
    struct df_faults *faults;
};

static struct check check_of(const struct df_allow *a, const struct df_allow_ask *ask,
                             struct df_faults *f)
{
    enum df_allow_role role = ask->role >= DF_ROLE_ADMIN ? DF_ALLOW_ADMIN : DF_ALLOW_WRITE;
    return (struct check){a, ask, {role, ask->level}, f};
}

/* ---- words ---- */

static const char *role_word(const struct check *c)
{
    return c->cell.role == DF_ALLOW_ADMIN ? "admin" : "write";
}

static const char *level_word(const struct check *c)
{
    static const char *const words[] = {"executor", "run", "workflow", "terrakube"};
    return words[c->cell.level];
}

static const char *level_noun(const struct check *c)
{
    static const char *const nouns[] = {"an Executor", "a Run", "a workflow",
                                        "a workspace of Terrakube"};
    return nouns[c->cell.level];
}

/* Who else can set it, beside the operator. Nobody asks for a step of Terrakube as an admin. */
static const char *or_admin(const struct check *c)
{
    bool has_admins = c->cell.role != DF_ALLOW_ADMIN && c->cell.level != DF_ALLOW_TERRAKUBE;
    return has_admins ? ", or a caller with the role admin can set it" : "";
}

static void deny_name(const struct check *c, const char *what, enum df_allow_list list,
                      const char *name, const struct df_path *path)
{
    df_fault(c->faults, path,
             "a caller with the role %s may not take the %s \"%.80s\" for %s; the operator can add "
             "it to placement.allow.%s.%s.%s of the service's configuration%s",
             role_word(c), what, name, level_noun(c), role_word(c), level_word(c),
             df_allow_lists[list], or_admin(c));
}

/* ---- one reference ---- */

static bool has_name(const cJSON *placement, const char *member, const char *name)
{
    return df_streq(df_json_str(placement, member), name);
}

/* Does the configuration give it to steps anyway? A Secret or ConfigMap of the configuration is
 * mounted where the operator wants it, and nowhere else. */
static bool is_configured(const struct df_allow *a, enum df_reference kind, const char *name)
{
    static const char *const members[] = {
        [DF_REFERENCE_ACCOUNT] = "serviceAccountName",
        [DF_REFERENCE_IMAGE] = "image",
        [DF_REFERENCE_PRIORITY] = "priorityClassName",
        [DF_REFERENCE_AUDIENCE] = NULL,
    };
    const char *member = members[kind];
    const cJSON *class;
    if (!member)
        return false;
    if (has_name(a->defaults, member, name) ||
        (kind == DF_REFERENCE_IMAGE && df_streq(a->image, name)))
        return true;
    cJSON_ArrayForEach (class, a->classes) {
        if (has_name(df_json_at(class, "placement"), member, name))
            return true;
    }
    return false;
}

/* True if a list decides about references of this kind. A claim is limited by the volume kinds, the
 * audience of a token is part of a podTemplate. */
static bool list_of(enum df_reference kind, enum df_allow_list *ret)
{
    static const struct {
        bool has;
        enum df_allow_list list;
    } lists[] = {
        [DF_REFERENCE_ACCOUNT] = {true, DF_ALLOW_ACCOUNTS},
        [DF_REFERENCE_IMAGE] = {true, DF_ALLOW_IMAGES},
        [DF_REFERENCE_SECRET] = {true, DF_ALLOW_SECRETS},
        [DF_REFERENCE_CONFIG_MAP] = {true, DF_ALLOW_CONFIG_MAPS},
        [DF_REFERENCE_PRIORITY] = {true, DF_ALLOW_PRIORITIES},
        [DF_REFERENCE_AUDIENCE] = {0},
    };
    *ret = lists[kind].list;
    return lists[kind].has;
}

static void check_reference(void *arg, enum df_reference kind, const char *name,
                            const struct df_path *path)
{
    const struct check *c = arg;
    enum df_allow_list list;
    if (list_of(kind, &list) && !df_allow_has(c->allow, &c->cell, list, name) &&
        !is_configured(c->allow, kind, name))
        deny_name(c, df_reference_name(kind), list, name, path);
}

/* ---- one field ---- */

static void check_volume_kind(const struct check *c, const char *kind, const struct df_path *path)
{
    if (!df_allow_has(c->allow, &c->cell, DF_ALLOW_VOLUMES, kind))
        deny_name(c, "volume kind", DF_ALLOW_VOLUMES, kind, path);
}

static void check_volumes(const struct check *c, const cJSON *list, const struct df_path *path)
{
    int index = 0;
    const cJSON *volume;
    cJSON_ArrayForEach (volume, list) {
        const struct df_path here = {path, NULL, index++};
        for (const char *const *kind = df_volume_kinds; *kind; kind++)
            if (cJSON_GetObjectItemCaseSensitive(volume, *kind))
                check_volume_kind(c, *kind, &here);
    }
}

static void check_quantity(const struct check *c, const cJSON *asked, const struct df_path *path)
{
    const cJSON *class = cJSON_GetObjectItemCaseSensitive(c->allow->classes, c->ask->class_name);
    const cJSON *limits = df_json_at(class, "placement.resources.limits");
    const char *most =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(limits, asked->string));
    if (most && cJSON_IsString(asked) && df_quantity(asked->valuestring) > df_quantity(most))
        df_fault(c->faults, path,
                 "%.32s is more than the class %s allows (%.32s); take another class, or the "
                 "operator can raise classes.%s.placement.resources.limits.%.32s of the service's "
                 "configuration%s",
                 asked->valuestring, c->ask->class_name, most, c->ask->class_name, asked->string,
                 or_admin(c));
}

/* The limits of a class bind all but admins. */
static void check_resources(const struct check *c, const cJSON *resources,
                            const struct df_path *path)
{
    const cJSON *part, *asked;
    if (c->cell.role == DF_ALLOW_ADMIN || !c->ask->class_name)
        return;
    cJSON_ArrayForEach (part, resources) {
        const struct df_path here = {path, part->string, 0};
        cJSON_ArrayForEach (asked, part) {
            const struct df_path at = {&here, asked->string, 0};
            check_quantity(c, asked, &at);
        }
    }
}

static void check_key(const struct check *c, const char *key, const struct df_path *path)
{
    const struct df_path at = {path, key, 0};
    if (df_allow_is_foreign_key(key) && !df_allow_has(c->allow, &c->cell, DF_ALLOW_METADATA, key))
        deny_name(c, "key", DF_ALLOW_METADATA, key, &at);
}

/* Taking a key away counts as well: an admin may have said there that nothing is to be injected. */
static void check_keys(const struct check *c, const cJSON *now, const cJSON *was,
                       const struct df_path *path)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, now) {
        const cJSON *before = cJSON_GetObjectItemCaseSensitive(was, entry->string);
        if (!before || !df_json_equal(before, entry))
            check_key(c, entry->string, path);
    }
    cJSON_ArrayForEach (entry, was) {
        if (!cJSON_GetObjectItemCaseSensitive(now, entry->string))
            check_key(c, entry->string, path);
    }
}

static bool is_metadata(const char *field)
{
    return df_streq(field, "labels") || df_streq(field, "annotations") ||
           df_streq(field, "podAnnotations");
}

static bool may_set(const struct check *c, const char *field, const struct df_path *where)
{
    const struct df_path path = {where, field, 0};
    if (df_allow_has(c->allow, &c->cell, DF_ALLOW_FIELDS, field))
        return true;
    df_fault(c->faults, &path,
             "a caller with the role %s may not set it for %s; the operator can add it to "
             "placement.allow.%s.%s.fields of the service's configuration%s",
             role_word(c), level_noun(c), role_word(c), level_word(c), or_admin(c));
    return false;
}

/* The lists say nothing about a podTemplate: whoever may write one may write everything in it,
 * except what nobody gets. */
static void check_field(struct check *c, const cJSON *field, const cJSON *was,
                        const struct df_path *where)
{
    const struct df_path path = {where, field->string, 0};
    df_never_find_of(c->allow->never, field, where, c->faults);
    if (!may_set(c, field->string, where) || df_streq(field->string, "podTemplate"))
        return;
    df_references_of(field, where, check_reference, c);
    if (df_streq(field->string, "volumes"))
        check_volumes(c, field, &path);
    else if (df_streq(field->string, "pluginCache"))
        check_volume_kind(c, "persistentVolumeClaim", &path);
    else if (df_streq(field->string, "resources"))
        check_resources(c, field, &path);
    else if (is_metadata(field->string))
        check_keys(c, field, was, &path);
}

/* Taking a field away is a change of it, too. */
static void check_taken(const struct check *c, const cJSON *was, const struct df_path *where)
{
    const struct df_path path = {where, was->string, 0};
    if (may_set(c, was->string, where) && is_metadata(was->string))
        check_keys(c, NULL, was, &path);
}

int df_allow_check(const struct df_allow *a, const struct df_allow_ask *ask, const cJSON *placement,
                   const cJSON *old, struct df_err *err)
{
    struct df_faults f = {0};
    struct check c = check_of(a, ask, &f);
    const struct df_path root = {0}, where = {&root, ask->where, 0};
    const cJSON *field;
    cJSON_ArrayForEach (field, placement) {
        const cJSON *was = cJSON_GetObjectItemCaseSensitive(old, field->string);
        if (!was || !df_json_equal(field, was))
            check_field(&c, field, was, &where);
    }
    cJSON_ArrayForEach (field, old) {
        if (!cJSON_GetObjectItemCaseSensitive(placement, field->string))
            check_taken(&c, field, &where);
    }
    return df_faults_fail(&f, DF_REASON_PLACEMENT_DENIED, "", err);
}

/* ---- workflows ---- */

int df_allow_check_workflow(const struct df_allow *a, const struct df_allow_ask *ask,
                            const cJSON *workflow, struct df_err *err)
{
    struct df_faults f = {0};
    struct check c = check_of(a, ask, &f);
    const struct df_path root = {0}, where = {&root, ask->where, 0};
    const struct df_path resources_path = {&where, "resources", 0};
    const cJSON *resources = df_json_at(workflow, "resources");
    df_never_find(a->never, NULL, workflow, &where, &f);
    df_references(workflow, &where, check_reference, &c);
    if (df_str_empty(df_json_str(workflow, "serviceAccountName"))) {
        DF_JSON cJSON *named =
            df_json_object(DF_STR("serviceAccountName", df_allow_workflow_account(a)));
        if (!named)
            return df_fail_oom(err);
        df_never_find(a->never, NULL, named, &where, &f);
        df_references(named, &where, check_reference, &c);
    }
    if (resources && may_set(&c, "resources", &where))
        check_resources(&c, resources, &resources_path);
    return df_faults_fail(&f, DF_REASON_PLACEMENT_DENIED, "", err);
}

/* ---- in one line ---- */

void df_allow_describe(const struct df_allow *a, const struct df_allow_cell *cell,
                       struct df_buf *to)
{
    struct df_allow_names names;
    for (int list = 0; list < DF_ALLOW_LISTS; list++) {
        df_allow_names(a, cell, (enum df_allow_list)list, &names);
        if (list != DF_ALLOW_FIELDS && names.count)
            (void)df_buf_addf(to, ", %s", df_allow_lists[list]);
        for (size_t i = 0; i < names.count; i++)
            (void)df_buf_addf(to, "%s%s", list == DF_ALLOW_FIELDS && i == 0 ? "" : " ",
                              names.at[i]);
        if (list == DF_ALLOW_FIELDS && !names.count)
            (void)df_buf_adds(to, "nothing");
    }
}
