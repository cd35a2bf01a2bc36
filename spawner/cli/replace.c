#include "spawner/cli/replace.h"

#include "spawner/cli/kinds.h"
#include "spawner/model/labels.h"

static void drop_reserved(cJSON *metadata, const char *map)
{
    cJSON *entries = cJSON_GetObjectItemCaseSensitive(metadata, map);
    if (!cJSON_IsObject(entries))
        return;
    for (cJSON *entry = entries->child, *next; entry; entry = next) {
        next = entry->next;
        if (df_starts_with(entry->string, DF_LABEL_PREFIX))
            cJSON_Delete(cJSON_DetachItemViaPointer(entries, entry));
    }
    if (!entries->child)
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, map);
}

int df_client_part(const cJSON *doc, bool keep_version, cJSON **ret, struct df_err *err)
{
    static const char *const set_by_service[] = {"uid", "generation", "creationTimestamp",
                                                 "managedFields", "selfLink"};
    DF_JSON cJSON *copy = cJSON_Duplicate(doc, true);
    if (!copy)
        return df_fail_oom(err);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(copy, "metadata");
    /* Without a uid the status was written by hand: the service refuses it with an explanation. */
    if (cJSON_HasObjectItem(metadata, "uid")) {
        cJSON_DeleteItemFromObjectCaseSensitive(copy, "status");
        cJSON_DeleteItemFromObjectCaseSensitive(copy, "warnings");
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(set_by_service); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, set_by_service[i]);
    if (!keep_version)
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
    drop_reserved(metadata, "labels");
    drop_reserved(metadata, "annotations");
    *ret = DF_TAKE(copy);
    return 0;
}

/* *ret: true if this document would change nothing. */
static int is_same(const cJSON *old, const cJSON *own, bool *ret, struct df_err *err)
{
    DF_JSON cJSON *left = NULL, *right = NULL;
    if (df_client_part(old, false, &left, err) < 0 || df_client_part(own, false, &right, err) < 0)
        return -1;
    *ret = df_json_equal(left, right);
    return 0;
}

static int fail_stale(const cJSON *old, const char *version, struct df_err *err)
{
    const char *name = df_json_str(old, "metadata.name");
    const struct df_kind_row *row = df_kind_called(df_json_str(old, "kind"));
    const char *kind = row ? row->shown.singular : "executor";
    return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict",
                          "%s %s was changed meanwhile: the document has resourceVersion %s, the "
                          "service %s; read it again with `dayfly get %s %s -o yaml`, or leave "
                          "metadata.resourceVersion out to overwrite the change",
                          kind, name, version, df_json_str(old, "metadata.resourceVersion"), kind,
                          name);
}

void df_tell_warnings(const cJSON *answer)
{
    const cJSON *warning = NULL;
    cJSON_ArrayForEach (warning, df_json_at(answer, "warnings")) {
        if (cJSON_IsString(warning))
            df_cli_note("warning: %s", warning->valuestring);
    }
}

int df_replace_document(struct df_cli *cli, const char *path, const cJSON *old, const cJSON *doc,
                        bool *ret_changed, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *own = NULL, *stored = NULL;
    bool same = false;
    if (df_client_part(doc, true, &own, err) < 0 || is_same(old, own, &same, err) < 0)
        return -1;
    *ret_changed = false;
    if (same)
        return df_check_alloc(*ret = cJSON_Duplicate(old, true), err);
    cJSON *metadata = df_json_object_at(own, "metadata");
    const char *newest = df_json_str(old, "metadata.resourceVersion");
    const char *version = df_json_str(own, "metadata.resourceVersion");
    if (version && !df_streq(version, newest))
        return fail_stale(old, version, err);
    if (!version && df_json_set_str(metadata, "resourceVersion", newest, err) < 0)
        return -1;
    bool confirms = df_arg_given(&cli->args, "confirm-source-change");
    DF_FREE char *whole = df_strf("%s%s", path, confirms ? "?confirmSourceChange=true" : "");
    if (df_cli_call(cli, "PUT", whole, own, &stored, err) < 0)
        return -1;
    *ret_changed = !df_streq(newest, df_json_str(stored, "metadata.resourceVersion"));
    df_tell_warnings(stored);
    *ret = DF_TAKE(stored);
    return 0;
}
