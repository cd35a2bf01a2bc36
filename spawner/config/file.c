#include <errno.h>
#include <libgen.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/yaml/yaml.h"
#include "spawner/config/keys.h"

struct file {
    const char *path;
    const char *base; /* its directory, absolute */
    struct df_yaml_lines *lines;
};

static int fault_at(const struct file *f, const char *name, struct df_err *err)
{
    return df_err_wrap(err, "%s:%u: %s", f->path, df_yaml_line(f->lines, name), name);
}

/* The text of a scalar, as it would be in the environment; NULL if out of memory. */
static char *scalar_text(const cJSON *value)
{
    return cJSON_IsString(value) ? strdup(value->valuestring) : df_json_print(value);
}

static int set_list(struct df_config *c, const struct df_key *k, const cJSON *list,
                    const struct file *f, struct df_err *err)
{
    struct df_strs *v = df_key_member(c, k);
    df_strs_free(v);
    for (const cJSON *item = list->child; item; item = item->next) {
        if (!cJSON_IsString(item) || !*item->valuestring)
            return df_fail(err, DF_ERR_USER, "must be a list of strings");
        if (df_key_add_item(v, k, item->valuestring, f->base, err) < 0)
            return -1;
    }
    return 0;
}

static int set_value(struct df_config *c, const struct df_key *k, const cJSON *value,
                     const struct file *f, struct df_err *err)
{
    if ((k->type == DF_KEY_PATHS || k->type == DF_KEY_WORDS) && cJSON_IsArray(value))
        return set_list(c, k, value, f, err);
    if (cJSON_IsNull(value))
        return df_fail(err, DF_ERR_USER, "has no value; leave it out");
    if (cJSON_IsArray(value) || (cJSON_IsObject(value) && k->type != DF_KEY_OBJECT))
        return df_fail(err, DF_ERR_USER, "must be a single value");
    DF_FREE char *text = scalar_text(value);
    return text ? df_key_set(c, k, text, f->base, err) : df_fail_oom(err);
}

static bool is_section(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < df_key_count; i++)
        if (strncmp(df_keys[i].name, name, n) == 0 && df_keys[i].name[n] == '.')
            return true;
    return false;
}

static int set_members(struct df_config *c, const cJSON *section, const char *prefix,
                       const struct file *f, struct df_err *err);

static int set_member(struct df_config *c, const cJSON *m, const char *name, const struct file *f,
                      struct df_err *err)
{
    /* In the file a key is a path of mappings: a name with dots is no key. */
    bool dotted = strchr(m->string, '.');
    const struct df_key *k = dotted ? NULL : df_key_find(name);
    /* `engine` is both: a name, or the mapping that has engine.local.isolation. */
    bool is_mapping = cJSON_IsObject(m) && is_section(name);
    if (k && !is_mapping)
        return set_value(c, k, m, f, err) < 0 ? fault_at(f, name, err) : 0;
    if (dotted || !is_section(name)) {
        (void)df_fail(err, DF_ERR_USER, "there is no such key (see docs/configuration.md)");
        return fault_at(f, name, err);
    }
    if (cJSON_IsObject(m))
        return set_members(c, m, name, f, err);
    if (cJSON_IsNull(m))
        return 0;
    (void)df_fail(err, DF_ERR_USER, "must hold keys");
    return fault_at(f, name, err);
}

static int set_members(struct df_config *c, const cJSON *section, const char *prefix,
                       const struct file *f, struct df_err *err)
{
    for (const cJSON *m = section->child; m; m = m->next) {
        DF_FREE char *name = df_strf("%s%s%s", prefix, *prefix ? "." : "", m->string);
        if (df_check_alloc(name, err) < 0 || set_member(c, m, name, f, err) < 0)
            return -1;
    }
    return 0;
}

static int read_tree(struct df_config *c, const char *path, const char *base, const cJSON *tree,
                     struct df_yaml_lines *lines, struct df_err *err)
{
    const struct file f = {path, base, lines};
    if (!cJSON_IsObject(tree) && !cJSON_IsNull(tree))
        return df_fail(err, DF_ERR_USER, "%s: must hold keys (see docs/configuration.md)", path);
    return set_members(c, tree, "", &f, err);
}

int df_config_read_file(struct df_config *c, const char *path, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_JSON cJSON *tree = NULL;
    struct df_yaml_lines *lines = NULL;
    DF_FREE char *real = realpath(path, NULL);
    if (!real)
        return df_fail_errno(err, errno, "configuration file %s", path);
    if (df_fs_read(path, &text, err) < 0)
        return df_err_wrap(err, "configuration file");
    if (df_yaml_parse(df_buf_str(&text), text.len, &tree, &lines, err) < 0)
        return df_err_wrap(err, "%s", path);
    int result = read_tree(c, path, dirname(real), tree, lines, err);
    df_yaml_lines_free(lines);
    return result;
}
