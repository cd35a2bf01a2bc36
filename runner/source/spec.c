#include "runner/source/spec.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/base/fs.h"

int df_source_refuse(struct df_err *err, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return df_fail_reason(err, DF_ERR_USER, "SourceRefused", "%s", text);
}

void df_source_spec_free(struct df_source_spec *s)
{
    free(s->path);
    free(s->origin);
    *s = (struct df_source_spec){0};
}

/* ---- URLs ---- */

/* Where "[user@]host[:port]" begins and ends in a URL or in "[user@]host:path". */
static const char *authority(const char *url, size_t *ret_len)
{
    const char *scheme = strstr(url, "://");
    const char *start = scheme ? scheme + 3 : url;
    *ret_len = strcspn(start, scheme ? "/?#" : ":");
    return start;
}

char *df_source_host(const char *url)
{
    size_t n = 0;
    const char *start = authority(url, &n);
    return strndup(start, n);
}

static bool is_loopback(const char *host, size_t n)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), host);
    if (*name != '[')
        name[strcspn(name, ":")] = '\0';
    struct in_addr v4;
    if (inet_pton(AF_INET, name, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcasecmp(name, "localhost") == 0 || df_starts_with(name, "[::1]");
}

static int find_scheme(const char *url, enum df_source_scheme *ret, struct df_err *err)
{
    size_t n = 0;
    const char *host = authority(url, &n);
    if (df_starts_with(url, "file:///"))
        *ret = DF_SCHEME_FILE;
    else if (df_starts_with(url, "https://") ||
             (df_starts_with(url, "http://") && is_loopback(host, n)))
        *ret = DF_SCHEME_HTTPS;
    else if (df_starts_with(url, "ssh://") ||
             (!strstr(url, "://") && strchr(url, ':') && !memchr(host, '/', n)))
        *ret = DF_SCHEME_SSH;
    else
        return df_source_refuse(err,
                                "source.url \"%s\": only file:///path, https://, ssh:// and "
                                "user@host:path are taken",
                                url);
    return 0;
}

static bool has_control(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return true;
    return false;
}

/* "ext::sh -c ...": git would run git-remote-ext. */
static bool names_transport(const char *url)
{
    size_t n = strspn(url, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-");
    return df_starts_with(url + n, "::");
}

int df_source_url_check(const char *url, enum df_source_scheme *ret, struct df_err *err)
{
    if (has_control(url))
        return df_source_refuse(err, "source.url holds a control character");
    if (*url == '-' || names_transport(url))
        return df_source_refuse(
            err, "source.url \"%s\": looks like an option or names a transport program", url);
    if (find_scheme(url, ret, err) < 0)
        return -1;
    if (*ret == DF_SCHEME_FILE)
        return 0;
    size_t n = 0;
    const char *host = authority(url, &n), *at = memrchr(host, '@', n);
    /* The URL is not shown: it holds a password. */
    if (at && memchr(host, ':', (size_t)(at - host)))
        return df_source_refuse(
            err, "source.url carries a password: put it into a secret, named by source.secretRef");
    size_t user = at ? (size_t)(at - host) + 1 : 0;
    if (n == user || *host == '-' || host[user] == '-')
        return df_source_refuse(err, "source.url \"%s\": has no valid host or user", url);
    return 0;
}

/* "https://host:port" without a user, in the letters in which git asks for a password. */
static int read_origin(struct df_source_spec *s, struct df_err *err)
{
    size_t n = 0;
    const char *host = authority(s->url, &n), *at = memrchr(host, '@', n);
    size_t user = at ? (size_t)(at - host) + 1 : 0;
    s->origin = df_strf("%.*s%.*s", (int)(host - s->url), s->url, (int)(n - user), host + user);
    return s->origin ? 0 : df_fail_oom(err);
}

static void percent_decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        char digits[3] = "";
        if (*s == '%' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
            memcpy(digits, s + 1, 2);
            *to++ = (char)strtoul(digits, NULL, 16);
            s += 2;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* A path as it stands, or percent-decoded when there is no such thing. */
static int read_path(struct df_source_spec *s, struct df_err *err)
{
    s->path = strdup(s->url + strlen("file://"));
    if (!s->path)
        return df_fail_oom(err);
    if (!df_fs_exists(s->path))
        percent_decode(s->path);
    struct stat st;
    if (stat(s->path, &st) == 0)
        return 0;
    int saved = errno;
    (void)df_fail_errno(err, saved, "source.url \"%s\": %s", s->url, s->path);
    return df_err_reason(err, "SourceFailed");
}

/* ---- kinds ---- */

static bool has_entry(const char *dir, const char *name)
{
    DF_FREE char *path = df_fs_join(dir, name);
    return path && df_fs_exists(path);
}

static bool is_bare_repository(const char *path)
{
    return has_entry(path, "HEAD") && has_entry(path, "objects") && has_entry(path, "refs");
}

static bool is_archive_name(const char *url)
{
    static const char *const suffixes[] = {".tar.gz", ".tgz", ".tar.zst", ".tar", ".zip"};
    size_t n = strcspn(url, "?#");
    for (size_t i = 0; i < DF_ARRAY_SIZE(suffixes); i++) {
        size_t m = strlen(suffixes[i]);
        if (n > m && strncasecmp(url + n - m, suffixes[i], m) == 0)
            return true;
    }
    return false;
}

static enum df_source_kind guess_kind(const struct df_source_spec *s)
{
    struct stat st;
    if (s->scheme != DF_SCHEME_FILE)
        return s->scheme == DF_SCHEME_HTTPS && is_archive_name(s->url) ? DF_SOURCE_ARCHIVE
                                                                       : DF_SOURCE_GIT;
    if (stat(s->path, &st) == 0 && S_ISREG(st.st_mode))
        return DF_SOURCE_ARCHIVE;
    bool git = s->tag || s->branch || s->commit || is_bare_repository(s->path);
    return git ? DF_SOURCE_GIT : DF_SOURCE_DIRECTORY;
}

static int read_kind(const cJSON *source, struct df_source_spec *s, struct df_err *err)
{
    static const char *const words[] = {"directory", "git", "archive"};
    const char *word = df_json_str(source, "kind");
    if (!word) {
        s->kind = guess_kind(s);
        return 0;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++) {
        if (df_streq(word, words[i])) {
            s->kind = (enum df_source_kind)i;
            return 0;
        }
    }
    return df_source_refuse(err, "source.kind \"%s\": must be directory, git or archive", word);
}

/* ---- the other members ---- */

bool df_is_commit(const char *s)
{
    size_t n = strlen(s);
    return (n == 40 || n == 64) && !s[strspn(s, "0123456789abcdef")];
}

/* The rules of git check-ref-format, and nothing that looks like an option. */
static bool is_ref_name(const char *s)
{
    return *s && *s != '-' && *s != '/' && *s != '.' && !has_control(s) &&
           !s[strcspn(s, " ~^:?*[\\")] && !strstr(s, "..") && !strstr(s, "@{") &&
           !strstr(s, "//") && !strstr(s, "/.") && !strstr(s, ".lock/") && !df_streq(s, "@") &&
           !df_ends_with(s, "/") && !df_ends_with(s, ".") && !df_ends_with(s, ".lock");
}

static int check_refs(const struct df_source_spec *s, struct df_err *err)
{
    int count = (s->tag != NULL) + (s->branch != NULL) + (s->commit != NULL);
    if (s->kind == DF_SOURCE_GIT && count != 1)
        return df_source_refuse(err, "source needs exactly one of tag, branch and commit");
    if (s->kind != DF_SOURCE_GIT && count)
        return df_source_refuse(err, "source.tag, .branch and .commit are for git repositories");
    if (s->tag && !is_ref_name(s->tag))
        return df_source_refuse(err, "source.tag \"%s\": is no name that git allows", s->tag);
    if (s->branch && !is_ref_name(s->branch))
        return df_source_refuse(err, "source.branch \"%s\": is no name that git allows", s->branch);
    if (s->commit && !df_is_commit(s->commit))
        return df_source_refuse(err, "source.commit \"%s\": must be all 40 or 64 hex digits",
                                s->commit);
    return 0;
}

bool df_is_inner_path(const char *s)
{
    if (*s == '/' || has_control(s))
        return false;
    for (;; s++) {
        size_t n = strcspn(s, "/");
        if ((n == 2 && strncmp(s, "..", 2) == 0) || (n == 4 && strncasecmp(s, ".git", 4) == 0))
            return false;
        s += n;
        if (!*s)
            return true;
    }
}

static int check_rest(const struct df_source_spec *s, struct df_err *err)
{
    if (s->kind == DF_SOURCE_DIRECTORY && s->scheme != DF_SCHEME_FILE)
        return df_source_refuse(err, "source.kind directory needs a file:/// URL");
    if (s->kind == DF_SOURCE_ARCHIVE && s->scheme == DF_SCHEME_SSH)
        return df_source_refuse(err, "source.kind archive needs a file:/// or https:// URL");
    if (s->kind == DF_SOURCE_ARCHIVE && s->scheme == DF_SCHEME_HTTPS && !s->sha256)
        return df_source_refuse(err, "source.sha256 is required for an archive from a server");
    if (s->sha256 &&
        (strlen(s->sha256) != 64 || s->sha256[strspn(s->sha256, "0123456789abcdefABCDEF")]))
        return df_source_refuse(err, "source.sha256: must be 64 hex digits");
    if (s->folder && !df_is_inner_path(s->folder))
        return df_source_refuse(err, "source.folder \"%s\": must stay inside the source",
                                s->folder);
    if (s->username && (has_control(s->username) || strchr(s->username, ':')))
        return df_source_refuse(err, "the source's user name holds a colon or control character");
    if (s->password && has_control(s->password))
        return df_source_refuse(err, "the source's password holds a control character");
    return 0;
}

/* A member that is empty counts as absent. */
static const char *text(const cJSON *source, const char *path)
{
    const char *s = df_json_str(source, path);
    return df_str_empty(s) ? NULL : s;
}

static void read_members(const cJSON *source, struct df_source_spec *s)
{
    s->url = text(source, "url");
    s->tag = text(source, "tag");
    s->branch = text(source, "branch");
    s->commit = text(source, "commit");
    s->folder = text(source, "folder");
    s->sha256 = text(source, "sha256");
    s->submodules = df_json_bool(source, "submodules", false);
    s->username = text(source, "credentials.username");
    s->password = text(source, "credentials.password");
    s->ssh_key = text(source, "credentials.sshPrivateKey");
    s->known_hosts = text(source, "credentials.knownHosts");
    s->ca_certificate = text(source, "credentials.caCertificate");
}

int df_source_spec_read(const cJSON *source, struct df_source_spec *ret, struct df_err *err)
{
    DF_SOURCE_SPEC struct df_source_spec s = {0};
    read_members(source, &s);
    if (!s.url)
        return df_source_refuse(err, "source.url is required");
    if (df_source_url_check(s.url, &s.scheme, err) < 0)
        return -1;
    if (s.scheme == DF_SCHEME_FILE && read_path(&s, err) < 0)
        return -1;
    if (s.scheme == DF_SCHEME_HTTPS && read_origin(&s, err) < 0)
        return -1;
    if (read_kind(source, &s, err) < 0 || check_refs(&s, err) < 0 || check_rest(&s, err) < 0)
        return -1;
    *ret = s;
    s = (struct df_source_spec){0};
    return 0;
}
