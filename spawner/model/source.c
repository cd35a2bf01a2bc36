/*
 * Where a module may come from. What is refused here never reaches git, curl or a log: options in
 * disguise (-x, --upload-pack=), transports that run programs (ext::), credentials in URLs.
 */
#include <ctype.h>
#include <strings.h>

#include "common/base/parse.h"
#include "spawner/model/rules.h"

struct url {
    const char *scheme; /* literal: "file", "https", "http", "ssh", or "scp" for user@host:path */
    const char *user;   /* "user" or "user:password" in front of the @; n 0: none */
    size_t user_len;
    const char *host;
    size_t host_len;
    const char *path; /* with the query */
};

/* ---- kinds ---- */

static bool ends_with_n(const char *s, size_t n, const char *suffix)
{
    size_t m = strlen(suffix);
    return n > m && strncasecmp(s + n - m, suffix, m) == 0;
}

static bool is_archive_name(const char *s, size_t n)
{
    static const char *const suffixes[] = {".tar.gz", ".tgz", ".tar.zst", ".zip"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(suffixes); i++)
        if (ends_with_n(s, n, suffixes[i]))
            return true;
    return false;
}

const char *df_source_kind(const char *url)
{
    size_t n = strcspn(url, "?#");
    if (n && url[n - 1] == '/')
        n--;
    if (is_archive_name(url, n))
        return "archive";
    bool is_file = df_starts_with(url, "file:");
    return is_file && !ends_with_n(url, n, ".git") ? NULL : "git";
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

static bool is_loopback(const char *s, size_t n)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (strlen(names[i]) == n && strncasecmp(s, names[i], n) == 0)
            return true;
    return false;
}

/* Splits "[user@]host[:port]" in front of the path. */
static const char *split_authority(const char *s, struct url *u)
{
    size_t n = strcspn(s, "/?#");
    const char *at = memrchr(s, '@', n);
    u->user = s;
    u->user_len = at ? (size_t)(at - s) : 0;
    u->host = at ? at + 1 : s;
    u->path = s + n;
    const char *end = s + n, *bracket = memchr(u->host, ']', (size_t)(end - u->host));
    const char *after = bracket ? bracket : u->host;
    const char *colon = memchr(after, ':', (size_t)(end - after));
    u->host_len = (size_t)((colon ? colon : end) - u->host);
    if (!is_host(u->host, u->host_len))
        return "has no valid host";
    if (!colon)
        return NULL;
    char port[8] = "";
    int64_t number = 0;
    if (end - colon - 1 < (int)sizeof(port))
        memcpy(port, colon + 1, (size_t)(end - colon - 1));
    return df_parse_i64(port, 1, 65535, &number, NULL) < 0 ? "has no valid port" : NULL;
}

static const char *const schemes_wanted =
    "must be a file:///, https:// or ssh:// URL, or user@host:path";

/* user@host:path, which ssh and git understand. */
static const char *split_scp(const char *s, struct url *u)
{
    const char *at = strchr(s, '@'), *colon = at ? strchr(at, ':') : NULL;
    if (!colon || at == s || memchr(s, '/', (size_t)(colon - s)))
        return schemes_wanted;
    *u = (struct url){"scp", s, (size_t)(at - s), at + 1, (size_t)(colon - at - 1), colon + 1};
    if (!is_host(u->host, u->host_len))
        return "has no valid host";
    return !*u->path || *u->path == '-' || *u->path == ':' ? "has no valid path" : NULL;
}

static const char *split_url(const char *s, struct url *u)
{
    static const char *const schemes[] = {"file", "https", "http", "ssh"};
    const char *colon = strstr(s, "://");
    if (!colon)
        return split_scp(s, u);
    size_t n = (size_t)(colon - s);
    for (size_t i = 0; i < DF_ARRAY_SIZE(schemes); i++)
        if (strlen(schemes[i]) == n && strncmp(s, schemes[i], n) == 0)
            u->scheme = schemes[i];
    if (!u->scheme)
        return schemes_wanted;
    u->path = colon + 3;
    if (strcmp(u->scheme, "file") == 0)
        return *u->path == '/' ? NULL : "must name an absolute path: file:///…";
    return split_authority(colon + 3, u);
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

/* Parameters that carry a credential in links made for sharing. */
static bool has_secret_query(const char *path)
{
    static const char *const words[] = {"token",     "secret", "passw", "credential",
                                        "signature", "sig=",   "key="};
    const char *query = strchr(path, '?');
    for (size_t i = 0; query && i < DF_ARRAY_SIZE(words); i++)
        if (strcasestr(query, words[i]))
            return true;
    return false;
}

static bool has_bad_byte(const char *s, bool is_file)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (!is_file && (c == ' ' || c == '\\' || c >= 0x80))
            return true;
    }
    return false;
}

static const char *url_fault(const char *s)
{
    static const char *const use_secret =
        "has credentials in it; put them into a secret and name it in secretRef";
    struct url u = {0};
    const char *fault = split_url(s, &u);
    if (fault)
        return fault;
    bool is_file = strcmp(u.scheme, "file") == 0, is_http = df_starts_with(u.scheme, "http");
    if (has_bad_byte(s, is_file))
        return "has a blank, a backslash or a byte beyond ASCII in it; percent-encode it";
    if (u.user_len && (is_http || memchr(u.user, ':', u.user_len)))
        return use_secret;
    if (u.user_len && !is_plain_user(u.user, u.user_len))
        return "has no valid user name";
    if (!is_file && has_secret_query(u.path))
        return use_secret;
    if (strcmp(u.scheme, "http") == 0 && !is_loopback(u.host, u.host_len))
        return "must be https: plain http is for loopback hosts alone";
    if (!is_file && (!*u.path || strcmp(u.path, "/") == 0))
        return "has no path";
    return strchr(s, '#') ? "may not have a fragment; use tag, branch or commit" : NULL;
}

/* ---- refs and folders ---- */

/* What git check-ref-format refuses, and what git would take for an option. */
static const char *ref_fault(const char *s)
{
    if (*s == '-')
        return "may not begin with -";
    if (df_starts_with(s, "refs/"))
        return "is the short name, without refs/heads/ or refs/tags/";
    if (strstr(s, "..") || strstr(s, "@{") || strstr(s, "//") || strstr(s, "/.") ||
        s[strcspn(s, " ~^:?*[\\")] || *s == '.' || *s == '/' || strcmp(s, "@") == 0)
        return "is no name that git allows";
    return df_ends_with(s, "/") || df_ends_with(s, ".") || df_ends_with(s, ".lock") ||
                   strstr(s, ".lock/")
               ? "is no name that git allows"
               : NULL;
}

static const char *commit_fault(const char *s)
{
    size_t n = strlen(s);
    bool hex = s[strspn(s, "0123456789abcdef")] == '\0';
    return hex && (n == 40 || n == 64) ? NULL : "must be 40 or 64 lower-case hex digits";
}

static bool is_segment(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(s, word, n) == 0;
}

static const char *folder_fault(const char *s)
{
    if (*s == '/' || *s == '-' || strchr(s, '\\'))
        return "must be a relative path with / between the parts";
    for (;; s++) {
        size_t n = strcspn(s, "/");
        if (is_segment(s, n, "..") || is_segment(s, n, ".git"))
            return "may not lead through .. or .git";
        if (n == 0 && s[n])
            return "has an empty part";
        s += n;
        if (!*s)
            return NULL;
    }
}

/* ---- spec.source as a whole ---- */

static void check_with(const cJSON *source, const char *key, const char *(*fault_of)(const char *),
                       const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, key, 0};
    const char *value = df_json_str(source, key), *fault = value ? fault_of(value) : NULL;
    if (fault)
        df_fault(f, &here, "%s", fault);
}

static int count_refs(const cJSON *source)
{
    return (df_json_str(source, "tag") != NULL) + (df_json_str(source, "branch") != NULL) +
           (df_json_str(source, "commit") != NULL);
}

static void check_refs(const cJSON *source, const char *kind, const struct df_path *path,
                       struct df_faults *f)
{
    int refs = count_refs(source);
    bool git = df_streq(kind, "git");
    if (git && refs == 0)
        df_fault(f, path, "needs a tag, a branch or a commit");
    if (refs > 1)
        df_fault(f, path, "takes only one of tag, branch and commit");
    if (kind && !git && refs)
        df_fault(f, path, "of kind %s has neither tag nor branch nor commit", kind);
    if (kind && !git && df_json_bool(source, "submodules", false))
        df_fault(f, path, "of kind %s has no submodules", kind);
}

static void check_kind(const cJSON *source, const char *kind, const struct df_path *path,
                       struct df_faults *f)
{
    const char *url = df_json_str(source, "url"), *sha256 = df_json_str(source, "sha256");
    bool is_file = df_starts_with(url, "file:"), is_http = df_starts_with(url, "http");
    bool archive = df_streq(kind, "archive");
    if (df_streq(kind, "directory") && !is_file)
        df_fault(f, path, "of kind directory needs a file:/// URL");
    if (archive && !is_file && !is_http)
        df_fault(f, path, "of kind archive needs a file or https URL");
    if (archive && is_http && !sha256)
        df_fault(f, path, "needs sha256: what a server sends is checked against it");
    if (kind && !archive && sha256)
        df_fault(f, path, "of kind %s has no sha256; a commit says what it is", kind);
    if (df_streq(kind, "git") && strchr(url, '?'))
        df_fault(f, path, "of kind git may have no query in its url; use tag, branch or commit");
}

void df_rule_source(const cJSON *source, const struct df_path *path, struct df_faults *f)
{
    int before = f->count;
    check_with(source, "url", url_fault, path, f);
    check_with(source, "tag", ref_fault, path, f);
    check_with(source, "branch", ref_fault, path, f);
    check_with(source, "commit", commit_fault, path, f);
    check_with(source, "folder", folder_fault, path, f);
    const char *kind = df_json_str(source, "kind");
    check_refs(source, kind, path, f);
    if (f->count == before)
        check_kind(source, kind, path, f);
}
