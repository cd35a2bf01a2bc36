/*
 * df_source_url_fault() splits a URL into its parts and checks each; the short functions behind it
 * check refs, commits, folders and names of archives.
 */
#include "common/source/rules.h"

#include <ctype.h>
#include <strings.h>

#include "common/base/parse.h"

/* ---- archives ---- */

size_t df_source_archive_ending(const char *name, size_t n)
{
    static const char *const endings[] = {".tar.gz", ".tgz", ".tar.zst", ".tar", ".zip"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(endings); i++) {
        size_t m = strlen(endings[i]);
        if (n > m && strncasecmp(name + n - m, endings[i], m) == 0)
            return m;
    }
    return 0;
}

size_t df_source_url_name(const char *url)
{
    size_t n = strcspn(url, "?#");
    return n && url[n - 1] == '/' ? n - 1 : n;
}

/* ---- URLs ---- */

static bool is_host(const char *s, size_t n)
{
    if (n >= 3 && s[0] == '[' && s[n - 1] == ']')
        return strspn(s + 1, "0123456789abcdefABCDEF:.") == n - 2;
    if (n < 1 || n > 253 || s[0] == '-' || s[0] == '.')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '.')
            return false;
    return true;
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(s, word, n) == 0;
}

static bool is_loopback_host(const char *s, size_t n)
{
    return is_word(s, n, "localhost") || is_word(s, n, "127.0.0.1") || is_word(s, n, "[::1]");
}

static bool is_plain_user(const char *s, size_t n)
{
    if (s[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
            return false;
    return true;
}

/* Sets *ret_host_len to the length of the host in "host[:port]". */
static const char *split_port(const char *s, size_t n, size_t *ret_host_len)
{
    const char *end = s + n, *bracket = memchr(s, ']', n), *after = bracket ? bracket : s;
    const char *colon = memchr(after, ':', (size_t)(end - after));
    *ret_host_len = (size_t)((colon ? colon : end) - s);
    if (!is_host(s, *ret_host_len))
        return "has no valid host";
    if (!colon)
        return NULL;
    char port[8] = "";
    int64_t number = 0;
    if (end - colon - 1 < (int)sizeof(port))
        memcpy(port, colon + 1, (size_t)(end - colon - 1));
    return df_parse_i64(port, 1, 65535, &number, NULL) < 0 ? "has no valid port" : NULL;
}

/* Splits "[user@]host[:port]" in front of the path. */
static const char *split_authority(const char *s, bool is_plain_http, struct df_source_url *u)
{
    size_t n = strcspn(s, "/?#"), host_len = 0;
    const char *at = memrchr(s, '@', n);
    u->user = s;
    u->user_len = at ? (size_t)(at - s) : 0;
    u->host = at ? at + 1 : s;
    u->host_len = (size_t)(s + n - u->host);
    u->path = s + n;
    const char *fault = split_port(u->host, u->host_len, &host_len);
    u->is_open = !fault && is_plain_http && !is_loopback_host(u->host, host_len);
    return fault;
}

static const char *const schemes_wanted =
    "must be a file:///, https:// or ssh:// URL, or user@host:path";

/* Splits user@host:path, as ssh and git write it. */
static const char *split_scp(const char *s, struct df_source_url *u)
{
    const char *at = strchr(s, '@'), *colon = at ? strchr(at, ':') : NULL;
    if (!colon || at == s || memchr(s, '/', (size_t)(colon - s)))
        return schemes_wanted;
    *u = (struct df_source_url){.scheme = DF_SCHEME_SSH,
                                .user = s,
                                .user_len = (size_t)(at - s),
                                .host = at + 1,
                                .host_len = (size_t)(colon - at - 1),
                                .path = colon + 1};
    if (!is_host(u->host, u->host_len))
        return "has no valid host";
    return !*u->path || *u->path == '-' || *u->path == ':' ? "has no valid path" : NULL;
}

static const char *split_url(const char *s, struct df_source_url *u)
{
    static const struct {
        const char *prefix;
        enum df_source_scheme scheme;
        bool is_plain_http;
    } schemes[] = {{"https://", DF_SCHEME_HTTPS, false},
                   {"http://", DF_SCHEME_HTTPS, true},
                   {"ssh://", DF_SCHEME_SSH, false}};
    if (df_starts_with(s, "file://")) {
        *u = (struct df_source_url){.scheme = DF_SCHEME_FILE, .path = s + strlen("file://")};
        return *u->path == '/' ? NULL : "must name an absolute path: file:///…";
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(schemes); i++) {
        if (!df_starts_with(s, schemes[i].prefix))
            continue;
        u->scheme = schemes[i].scheme;
        return split_authority(s + strlen(schemes[i].prefix), schemes[i].is_plain_http, u);
    }
    return strstr(s, "://") ? schemes_wanted : split_scp(s, u);
}

const char *df_source_open_url_fault(const char *url, struct df_source_url *ret)
{
    struct df_source_url u = {0};
    if (df_has_control(url))
        return "has a control character in it";
    const char *fault = split_url(url, &u);
    if (fault)
        return fault;
    if (u.user_len && memchr(u.user, ':', u.user_len))
        return DF_SOURCE_USE_SECRET;
    if (u.scheme == DF_SCHEME_SSH && u.user_len && !is_plain_user(u.user, u.user_len))
        return "has no valid user name";
    *ret = u;
    return NULL;
}

const char *df_source_url_fault(const char *url, struct df_source_url *ret)
{
    struct df_source_url u = {0};
    const char *fault = df_source_open_url_fault(url, &u);
    if (fault)
        return fault;
    if (u.is_open)
        return "must be https: plain http is for loopback hosts alone";
    *ret = u;
    return NULL;
}

/* ---- addresses of folders ---- */

#define SAY_APART                                                                                  \
    ": name the repository alone, the folder in it with folder (--folder), and the ref with "      \
    "branch, tag or commit (--branch, ...)"

/* Skips n parts of the path, which begins with a slash; NULL: it has fewer, or ends there. */
static const char *behind_parts(const char *path, int n)
{
    for (; path && n; n--)
        path = *path ? strchr(path + 1, '/') : NULL;
    return path && path[1] ? path : NULL;
}

/* What the forges put between a repository and a ref. A repository of GitHub and GitLab cannot have
 * these names. */
static bool is_page(const char *url)
{
    static const char *const anywhere[] = {"/-/tree/",  "/-/blob/",     "/src/branch/",
                                           "/src/tag/", "/src/commit/", NULL};
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    const char *rest = behind_parts(path, 2);
    if (!df_starts_with(url, "http") || df_ends_with(url, ".git"))
        return false;
    for (const char *const *part = anywhere; *part; part++)
        if (strstr(url, *part))
            return true;
    return rest && (df_starts_with(rest, "/tree/") || df_starts_with(rest, "/blob/") ||
                    (df_starts_with(rest, "/src/") && strstr(url, "://bitbucket.org/")));
}

static bool has_folder(const char *url)
{
    const char *host = strstr(url, "://"), *from = host ? host + 3 : url;
    if (df_starts_with(url, "file:"))
        return strstr(url, ".git//");
    const char *path = from + strcspn(from, host ? "/" : ":");
    path += *path != '\0';
    const char *slashes = strstr(path, "//");
    return slashes && slashes > path && strcspn(url, "?#") > (size_t)(slashes - url);
}

const char *df_source_address_fault(const char *url)
{
    if (df_starts_with(url, "git::"))
        return "begins with git::, as a module's source does" SAY_APART;
    if (is_page(url))
        return "is the web page of a folder" SAY_APART;
    return has_folder(url) ? "has a folder behind //" SAY_APART : NULL;
}

/* ---- refs and folders ---- */

const char *df_source_ref_fault(const char *s)
{
    if (*s == '-')
        return "may not begin with -";
    if (df_starts_with(s, "refs/"))
        return "is the short name, without refs/heads/ or refs/tags/";
    if (!*s || df_has_control(s) || strstr(s, "..") || strstr(s, "@{") || strstr(s, "//") ||
        strstr(s, "/.") || s[strcspn(s, " ~^:?*[\\")] || *s == '.' || *s == '/' ||
        strcmp(s, "@") == 0)
        return "is not a name that git allows";
    return df_ends_with(s, "/") || df_ends_with(s, ".") || df_ends_with(s, ".lock") ||
                   strstr(s, ".lock/")
               ? "is not a name that git allows"
               : NULL;
}

const char *df_source_commit_fault(const char *s)
{
    size_t n = strlen(s);
    bool hex = s[strspn(s, "0123456789abcdef")] == '\0';
    return hex && (n == 40 || n == 64) ? NULL : "must be 40 or 64 lower-case hex digits";
}

const char *df_source_folder_fault(const char *s)
{
    if (df_has_control(s))
        return "has a control character in it";
    if (*s == '/' || *s == '-' || strchr(s, '\\'))
        return "must be a relative path with / between the parts";
    for (;; s++) {
        size_t n = strcspn(s, "/");
        if (is_word(s, n, "..") || is_word(s, n, ".git"))
            return "may not lead through .. or .git";
        if (n == 0 && s[n])
            return "has an empty part";
        s += n;
        if (!*s)
            return NULL;
    }
}
