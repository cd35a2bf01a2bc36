#include "spawner/steps/provider_index.h"

#include "common/base/fs.h"
#include "common/providers/lockfile.h"

#define PREFIX "terraform-provider-"

static const char *type_of(const char *source)
{
    return strrchr(source, '/') + 1;
}

char *df_provider_archive_path(const char *root, const struct df_provider_archive *a)
{
    return df_strf("%s/%s/" PREFIX "%s_%s_%s.zip", root, a->source, type_of(a->source), a->version,
                   a->platform);
}

bool df_provider_is_platform(const char *text)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t os = strspn(text, word);
    size_t arch = text[os] == '_' ? strspn(text + os + 1, word) : 0;
    return os && arch && !text[os + 1 + arch];
}

bool df_provider_archive_parse(char *name, const char *source, struct df_provider_archive *ret)
{
    const char *type = type_of(source);
    size_t n = strlen(PREFIX) + strlen(type);
    if (strlen(name) < n + strlen("_.zip") || !df_starts_with(name, PREFIX) ||
        strncmp(name + strlen(PREFIX), type, strlen(type)) != 0 || name[n] != '_' ||
        !df_ends_with(name, ".zip"))
        return false;
    char *version = name + n + 1, *platform = strchr(version, '_');
    if (!platform)
        return false;
    *platform++ = '\0';
    name[n + 1 + strlen(version) + 1 + strlen(platform) - strlen(".zip")] = '\0';
    *ret = (struct df_provider_archive){source, version, platform};
    return df_provider_is_version(version) && df_provider_is_platform(platform);
}

int df_provider_index_read(const char *path, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_MIRROR_INDEX);
    DF_JSON cJSON *tree = NULL;
    struct df_err why = {0};
    if (df_fs_read(path, &text, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (text.len == 0 || df_json_parse(df_buf_str(&text), text.len, &tree, NULL) < 0 ||
        !cJSON_IsObject(tree)) {
        cJSON_Delete(tree);
        tree = cJSON_CreateObject();
    }
    *ret = DF_TAKE(tree);
    return *ret ? 0 : df_fail_oom(err);
}

cJSON *df_provider_index_entry(const struct df_provider_archive *a, const char *sha256)
{
    DF_JSON cJSON *entry = cJSON_CreateObject();
    cJSON *hashes = entry ? df_json_array_at(entry, "hashes") : NULL;
    DF_FREE char *zh = df_strf("zh:%s", sha256);
    DF_FREE char *path = df_provider_archive_path("", a);
    if (!hashes || !zh || !path || df_json_append_str(hashes, zh, NULL) < 0 ||
        df_json_add_str(entry, "url", strrchr(path, '/') + 1, NULL) < 0)
        return NULL;
    return DF_TAKE(entry);
}

/* Sets <member>.<name> of the index at path to value, which it takes. Does not write what is the
 * same. */
static int set_index(const char *path, const char *member, const char *name, cJSON *value,
                     struct df_err *err)
{
    DF_JSON cJSON *taken = value, *index = NULL;
    if (!value)
        return df_fail_oom(err);
    if (df_provider_index_read(path, &index, err) < 0)
        return -1;
    cJSON *members = df_json_object_at(index, member);
    if (!members)
        return df_fail_oom(err);
    if (cJSON_Compare(cJSON_GetObjectItemCaseSensitive(members, name), value, true))
        return 0;
    if (df_json_set(members, name, DF_TAKE(taken), err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(index);
    return text ? df_fs_replace(path, text, strlen(text), 0644, err) : df_fail_oom(err);
}

static int lock_indexes(const char *root, const char *source, int *ret, struct df_err *err)
{
    DF_FREE char *path = df_strf("%s/%s/.lock", root, source);
    if (!path)
        return df_fail_oom(err);
    return df_fs_lock(path, 0644, ret, err);
}

int df_provider_index_add(const char *root, const struct df_provider_archive *a, const char *sha256,
                          struct df_err *err)
{
    DF_CLOSE int lock = -1;
    DF_FREE char *versions = df_strf("%s/%s/index.json", root, a->source);
    DF_FREE char *archives = df_strf("%s/%s/%s.json", root, a->source, a->version);
    if (!versions || !archives)
        return df_fail_oom(err);
    if (lock_indexes(root, a->source, &lock, err) < 0 ||
        set_index(archives, "archives", a->platform, df_provider_index_entry(a, sha256), err) < 0)
        return -1;
    return set_index(versions, "versions", a->version, cJSON_CreateObject(), err);
}
