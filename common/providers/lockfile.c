/* The tools write one attribute or one hash a line, so it is read line by line: read_line(). */
#include "common/providers/lockfile.h"

#include "common/base/fs.h"

#define HOST_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
#define VERSION_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.+"

enum { PART_MAX = 253, SOURCE_PARTS = 3 };

void df_lockfile_free(struct df_lockfile *l)
{
    for (size_t i = 0; i < l->len; i++) {
        free(l->providers[i].source);
        free(l->providers[i].version);
        df_strs_free(&l->providers[i].hashes);
    }
    free(l->providers);
    *l = (struct df_lockfile){0};
}

bool df_provider_is_source(const char *text)
{
    int parts = 0;
    for (const char *p = text;; p++) {
        size_t n = strspn(p, HOST_BYTES);
        if (n == 0 || n > PART_MAX || *p == '.' || (p[n] && p[n] != '/'))
            return false;
        parts++;
        p += n;
        if (!*p)
            return parts == SOURCE_PARTS;
    }
}

bool df_provider_is_version(const char *text)
{
    size_t n = strspn(text, VERSION_BYTES);
    return *text >= '0' && *text <= '9' && n <= PART_MAX && !text[n];
}

const struct df_locked_provider *df_lockfile_find(const struct df_lockfile *l, const char *source)
{
    for (size_t i = 0; i < l->len; i++)
        if (df_streq(l->providers[i].source, source))
            return &l->providers[i];
    return NULL;
}

/* A copy of the first quoted text of a line, for the caller to free; NULL: there is none. */
static char *quoted(const char *line)
{
    const char *begin = strchr(line, '"');
    const char *end = begin ? strchr(begin + 1, '"') : NULL;
    return end ? strndup(begin + 1, (size_t)(end - begin - 1)) : NULL;
}

static int begin_provider(struct df_lockfile *l, const char *line, struct df_err *err)
{
    DF_FREE char *source = quoted(line);
    if (!source || !df_provider_is_source(source))
        return df_fail(err, DF_ERR_USER, "\"%.80s\" is not the source of a provider",
                       source ? source : line);
    if (l->len == DF_LIMIT_LOCKED_PROVIDERS)
        return df_fail(err, DF_ERR_LIMIT, "it has more than %d providers",
                       DF_LIMIT_LOCKED_PROVIDERS);
    void *grown = reallocarray(l->providers, l->len + 1, sizeof(*l->providers));
    if (!grown)
        return df_fail_oom(err);
    l->providers = (struct df_locked_provider *)grown;
    l->providers[l->len++] = (struct df_locked_provider){.source = DF_TAKE(source)};
    return 0;
}

static int set_version(struct df_locked_provider *p, const char *line, struct df_err *err)
{
    DF_FREE char *version = quoted(line);
    if (!version || !df_provider_is_version(version))
        return df_fail(err, DF_ERR_USER, "\"%.80s\" is not the version of a provider",
                       version ? version : line);
    free(p->version);
    p->version = DF_TAKE(version);
    return 0;
}

static bool is_attribute(const char *line, const char *name)
{
    size_t n = strlen(name);
    return strncmp(line, name, n) == 0 && line[n + strspn(line + n, " \t")] == '=';
}

static int read_line(struct df_lockfile *l, const char *line, struct df_err *err)
{
    struct df_locked_provider *last = l->len ? &l->providers[l->len - 1] : NULL;
    line += strspn(line, " \t");
    if (df_starts_with(line, "provider ") || df_starts_with(line, "provider\""))
        return begin_provider(l, line, err);
    if (last && is_attribute(line, "version"))
        return set_version(last, line, err);
    if (last && (df_starts_with(line, "\"h1:") || df_starts_with(line, "\"zh:")))
        return df_strs_take(&last->hashes, quoted(line)) < 0 ? df_fail_oom(err) : 0;
    return 0;
}

static int read_lines(char *text, struct df_lockfile *l, struct df_err *err)
{
    unsigned number = 0;
    for (char *line; (line = strsep(&text, "\n"));) {
        number++;
        if (read_line(l, line, err) < 0)
            return df_err_wrap(err, "line %u", number);
    }
    for (size_t i = 0; i < l->len; i++)
        if (!l->providers[i].version)
            return df_fail(err, DF_ERR_USER, "provider %s has no version", l->providers[i].source);
    return 0;
}

int df_lockfile_read(const char *module_dir, struct df_lockfile *ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_LOCKFILE);
    DF_LOCKED struct df_lockfile l = {0};
    DF_FREE char *path = df_fs_join(module_dir, DF_LOCKFILE);
    struct df_err why = {0};
    if (!path)
        return df_fail_oom(err);
    if (df_fs_read(path, &text, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    DF_FREE char *lines = df_buf_take(&text);
    if (!lines)
        return df_fail_oom(err);
    if (read_lines(lines, &l, err) < 0)
        return df_err_wrap(err, "%s", path);
    *ret = l;
    l = (struct df_lockfile){0};
    return 0;
}
