/*
 * Checks out submodules without `git submodule`, which skips some of them silently and was the
 * target of most attacks by malicious repositories. The links in the commit's tree have the path
 * and commit of each submodule; only its URL is read from .gitmodules. It is then checked out like
 * any repository. Read df_git_submodules() at the end first.
 */
#include <errno.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/git.h"

enum { MAX_NESTING = 8 };

/* Adds the settings of .gitmodules as items "key\nvalue". */
static int read_settings(const struct df_git *g, const struct df_git_repo *r,
                         struct df_strs *settings, struct df_err *err)
{
    DF_FREE char *file = df_fs_join(r->directory, ".gitmodules");
    struct stat st;
    if (!file)
        return df_fail_oom(err);
    if (lstat(file, &st) < 0 || !S_ISREG(st.st_mode))
        return df_source_refuse(err, "%s has submodules, but no regular file .gitmodules",
                                r->remote);
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (df_git_run(g, r,
                   DF_GIT_ARGS("config", "-z", "--no-includes", "-f", ".gitmodules", "--list"),
                   &out, err) < 0)
        return df_err_wrap(err, ".gitmodules");
    for (size_t at = 0; at < out.len; at += strlen(out.data + at) + 1)
        (void)df_strs_add(settings, out.data + at);
    return df_strs_check(settings, err);
}

/* The value of "submodule.<name>.<word>"; the last one counts. */
static const char *value_of(const struct df_strs *settings, const char *name, size_t len,
                            const char *word)
{
    for (size_t i = settings->len; i-- > 0;) {
        const char *key = settings->items[i], *end = strchrnul(key, '\n');
        size_t n = (size_t)(end - key), m = strlen(word);
        if (*end && n == len + m && strncmp(key, name, len) == 0 &&
            strncmp(key + len, word, m) == 0)
            return end + 1;
    }
    return NULL;
}

/* The URL of the submodule at path. */
static const char *submodule_url(const struct df_strs *settings, const char *path)
{
    for (size_t i = 0; i < settings->len; i++) {
        const char *key = settings->items[i], *end = strchrnul(key, '\n');
        size_t n = (size_t)(end - key), m = strlen(".path");
        bool is_path =
            *end && n > m && df_starts_with(key, "submodule.") && strncmp(end - m, ".path", m) == 0;
        if (is_path && df_streq(end + 1, path))
            return value_of(settings, key, n - m, ".url");
    }
    return NULL;
}

/* Removes the last component of a URL, an absolute path or "user@host:path"; false: it has none. */
static bool go_up(char *base)
{
    const char *scheme = strstr(base, "://");
    char *first = scheme ? strchr(scheme + 3, '/') : base; /* where the path begins */
    char *colon = scheme || *base == '/' ? NULL : strchr(base, ':');
    char *slash = first ? strrchr(colon ? colon : first, '/') : NULL;
    if (slash) {
        *slash = '\0';
        return true;
    }
    if (!colon || !colon[1])
        return false;
    colon[1] = '\0';
    return true;
}

int df_git_resolve_url(const char *parent, const char *url, char **ret, struct df_err *err)
{
    bool relative = df_starts_with(url, "./") || df_starts_with(url, "../");
    DF_FREE char *base = strdup(relative ? parent : url);
    if (!base)
        return df_fail_oom(err);
    for (size_t n = strlen(base); relative && n > 1 && base[n - 1] == '/';)
        base[--n] = '\0';
    const char *rest = relative ? url : "";
    while (df_starts_with(rest, "./") || df_starts_with(rest, "../")) {
        bool up = rest[1] == '.';
        if (up && !go_up(base))
            return df_source_refuse(err, "submodule url \"%s\" leads above %s", url, parent);
        rest += up ? 3 : 2;
    }
    *ret =
        *rest ? df_strf("%s%s%s", base, df_ends_with(base, ":") ? "" : "/", rest) : DF_TAKE(base);
    return df_check_alloc(*ret, err);
}

/* Only a source on this disk may have submodules on this disk, named by URL or path. */
static int check_url(const struct df_git *g, const char *path, const char *url, struct df_err *err)
{
    const struct df_source_spec *s = g->fetch->spec;
    bool local = s->scheme == DF_SCHEME_FILE;
    struct df_source_url u = {.scheme = DF_SCHEME_FILE};
    if (!(local && *url == '/') && df_source_url_check(url, s->accepts_http, &u, err) < 0)
        return df_err_wrap(err, "submodule \"%s\"", path);
    if (u.scheme == DF_SCHEME_FILE && !local)
        return df_source_refuse(err,
                                "submodule \"%s\": a source from a server must not have a "
                                "submodule on this disk (%s)",
                                path, url);
    return 0;
}

/* git created an empty directory for the submodule. Refuse anything else, such as a symbolic link
 * that leads out of the checkout. */
static int check_directory(const char *directory, const char *path, struct df_err *err)
{
    struct stat st;
    if (lstat(directory, &st) < 0 || !S_ISDIR(st.st_mode))
        return df_source_refuse(err, "submodule \"%s\" is not a directory", path);
    return 0;
}

static int take_one(struct df_git *g, const struct df_git_repo *parent,
                    const struct df_strs *settings, const char *link, struct df_err *err)
{
    const char *path = link + strcspn(link, " ") + 1, *url = submodule_url(settings, path);
    if (++g->submodules > DF_LIMIT_SUBMODULES)
        return df_source_refuse(err, "more than %d submodules", DF_LIMIT_SUBMODULES);
    if (!url)
        return df_source_refuse(err, "submodule \"%s\" has no url in .gitmodules", path);
    DF_FREE char *commit = strndup(link, strcspn(link, " "));
    DF_FREE char *directory = df_fs_join(parent->directory, path);
    DF_FREE char *remote = NULL;
    DF_STRS struct df_strs links = {0};
    char got[65];
    if (df_check_alloc(commit, err) < 0 || df_check_alloc(directory, err) < 0 ||
        df_git_resolve_url(parent->remote, url, &remote, err) < 0 || !remote ||
        check_url(g, path, remote, err) < 0 || check_directory(directory, path, err) < 0)
        return -1;
    const struct df_git_repo r = {
        .directory = directory, .remote = remote, .commit = commit, .depth = parent->depth + 1};
    df_fetch_note(g->fetch, "fetching submodule %s from %s", path, remote);
    if (df_git_checkout(g, &r, got, &links, err) < 0 || df_git_submodules(g, &r, &links, err) < 0)
        return df_err_wrap(err, "submodule \"%s\"", path);
    return 0;
}

int df_git_submodules(struct df_git *g, const struct df_git_repo *r, const struct df_strs *links,
                      struct df_err *err)
{
    if (!links->len)
        return 0;
    if (r->depth >= MAX_NESTING)
        return df_source_refuse(err, "submodules are nested deeper than %d", MAX_NESTING);
    DF_STRS struct df_strs settings = {0};
    if (read_settings(g, r, &settings, err) < 0)
        return -1;
    for (size_t i = 0; i < links->len; i++)
        if (take_one(g, r, &settings, links->items[i], err) < 0)
            return -1;
    return 0;
}
