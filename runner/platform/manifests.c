#include "runner/platform/manifests.h"

#include <dirent.h>
#include <errno.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/yaml/yaml.h"
#include "runner/platform/file.h"

bool df_manifest_is_definition(const cJSON *object)
{
    return df_streq(df_json_str(object, "kind"), "CustomResourceDefinition");
}

static bool comes_first(const cJSON *object)
{
    return df_streq(df_json_str(object, "kind"), "Namespace") || df_manifest_is_definition(object);
}

static bool is_list(const cJSON *object)
{
    return df_streq(df_json_str(object, "kind"), "List") &&
           cJSON_IsArray(df_json_at(object, "items"));
}

static bool is_whole(const cJSON *object)
{
    return df_json_str(object, "apiVersion") && df_json_str(object, "kind") &&
           df_json_str(object, "metadata.name");
}

/* Moves the items of one array to another; those of lists one by one. */
static int move_all(cJSON *from, cJSON *first, cJSON *rest, struct df_err *err)
{
    for (cJSON *one; (one = cJSON_DetachItemFromArray(from, 0));) {
        int moved;
        if (is_list(one)) {
            moved = move_all(cJSON_GetObjectItemCaseSensitive(one, "items"), first, rest, err);
            df_json_wipe(one);
        } else {
            moved = df_json_append(comes_first(one) ? first : rest, one, err);
        }
        if (moved < 0)
            return -1;
    }
    return 0;
}

/* Before the first object is written. */
static int check_all(const char *file, const cJSON *objects, struct df_err *err)
{
    const cJSON *one;
    int nth = 0;
    cJSON_ArrayForEach (one, objects) {
        nth++;
        if (is_list(one) ? check_all(file, df_json_at(one, "items"), err) < 0 : !is_whole(one))
            return is_list(one) ? -1
                                : df_fail(err, DF_ERR_USER,
                                          "%s: object %d has no apiVersion, kind or metadata.name",
                                          file, nth);
    }
    return 0;
}

static int read_file(const char *folder, const char *name, cJSON *first, cJSON *rest,
                     struct df_err *err)
{
    DF_FREE char *path = df_fs_join(folder, name);
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_MANIFESTS);
    DF_SECRET_JSON cJSON *objects = NULL;
    if (df_file_read(path, &text, err) < 0)
        return -1;
    if (df_yaml_parse_all(df_buf_str(&text), text.len, &objects, err) < 0)
        return df_err_wrap(err, "%s", name);
    if (check_all(name, objects, err) < 0)
        return -1;
    return move_all(objects, first, rest, err);
}

static int is_manifest(const struct dirent *entry)
{
    const char *n = entry->d_name;
    return *n != '.' &&
           (df_ends_with(n, ".yaml") || df_ends_with(n, ".yml") || df_ends_with(n, ".json"));
}

static void free_names(struct dirent **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

int df_manifests_read(const char *folder, cJSON **ret, struct df_err *err)
{
    struct dirent **names = NULL;
    DF_SECRET_JSON cJSON *first = cJSON_CreateArray(), *rest = cJSON_CreateArray();
    if (!first || !rest)
        return df_fail_oom(err);
    int n = scandir(folder, &names, is_manifest, alphasort), failed = 0;
    if (n < 0)
        return df_fail_errno(err, errno, "%s", folder);
    for (int i = 0; i < n && !failed; i++)
        failed = read_file(folder, names[i]->d_name, first, rest, err);
    free_names(names, n);
    for (cJSON *one; !failed && (one = cJSON_DetachItemFromArray(rest, 0));)
        failed = df_json_append(first, one, err);
    if (failed)
        return -1;
    *ret = DF_TAKE(first);
    return 0;
}
