/*
 * Reads the `source` member of a step document: URL, kind, then the other members, each checked
 * with the rules of common/source. Read df_source_spec_read() at the end first.
 */
#include "runner/source/spec.h"
#include "runner/source/source.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/parse.h"
#include "runner/source/source.h"

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
    free(s->host);
    free(s->origin);
    *s = (struct df_source_spec){0};
}

/* ---- URLs ---- */

static int refuse_member(const char *member, const char *fault, struct df_err *err)
{
    return fault ? df_source_refuse(err, "source.%s %s", member, fault) : 0;
}

int df_source_url_check(const char *url, bool accepts_http, struct df_source_url *ret,
                        struct df_err *err)
{
    const char *fault =
        accepts_http ? df_source_open_url_fault(url, ret) : df_source_url_fault(url, ret);
    return refuse_member("url", fault, err);
}

char *df_source_host(const char *url)
{
    struct df_source_url u = {0};
    if (!url || df_source_open_url_fault(url, &u) || !u.host_len)
        return NULL;
    bool bracket = u.host[0] == '[';
    size_t n = bracket ? strcspn(u.host, "]") - 1 : strcspn(u.host, ":/");
    return strndup(u.host + bracket, n < u.host_len ? n : u.host_len);
}

static int read_host(struct df_source_spec *s, const struct df_source_url *u, struct df_err *err)
{
    s->host = strndup(u->user, (size_t)(u->host - u->user) + u->host_len);
    if (u->scheme == DF_SCHEME_HTTPS) /* as in git's question for a password */
        s->origin = df_strf("%.*s%.*s", (int)(u->user - s->url), s->url, (int)u->host_len, u->host);
    return s->host && (s->origin || u->scheme != DF_SCHEME_HTTPS) ? 0 : df_fail_oom(err);
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

/* The path as written; percent-decoded if no such path exists. */
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

static enum df_source_kind guess_kind(const struct df_source_spec *s)
{
    struct stat st;
    if (s->scheme != DF_SCHEME_FILE)
        return s->scheme == DF_SCHEME_HTTPS &&
                       df_source_archive_ending(s->url, df_source_url_name(s->url))
                   ? DF_SOURCE_ARCHIVE
                   : DF_SOURCE_GIT;
    if (stat(s->path, &st) == 0 && S_ISREG(st.st_mode))
        return DF_SOURCE_ARCHIVE;
    bool git = s->tag || s->branch || s->ref || s->commit || is_bare_repository(s->path);
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

static int check_refs(const struct df_source_spec *s, struct df_err *err)
{
    int count = (s->tag != NULL) + (s->branch != NULL) + (s->ref != NULL) + (s->commit != NULL);
    if (s->kind == DF_SOURCE_GIT && !count)
        return df_source_refuse(err,
                                "%s is a git repository: source needs a branch, a tag or a "
                                "commit of it (--branch main)",
                                s->url);
    if (count > 1)
        return df_source_refuse(err, "source takes only one of tag, branch and commit");
    if (s->kind != DF_SOURCE_GIT && count)
        return df_source_refuse(err, "source.tag, .branch and .commit are for git repositories");
    if ((s->tag && refuse_member("tag", df_source_ref_fault(s->tag), err) < 0) ||
        (s->branch && refuse_member("branch", df_source_ref_fault(s->branch), err) < 0) ||
        (s->ref && refuse_member("ref", df_source_ref_fault(s->ref), err) < 0) ||
        (s->commit && refuse_member("commit", df_source_commit_fault(s->commit), err) < 0))
        return -1;
    return 0;
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
    if (s->folder && refuse_member("folder", df_source_folder_fault(s->folder), err) < 0)
        return -1;
    if (s->username && (df_has_control(s->username) || strchr(s->username, ':')))
        return df_source_refuse(err, "the source's user name holds a colon or control character");
    if (s->password && df_has_control(s->password))
        return df_source_refuse(err, "the source's password holds a control character");
    return 0;
}

/* An empty member counts as absent. */
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
    s->ref = text(source, "ref");
    s->commit = text(source, "commit");
    s->folder = text(source, "folder");
    s->sha256 = text(source, "sha256");
    s->submodules = df_json_bool(source, "submodules", false);
    s->any_commit = df_json_bool(source, "anyCommit", false);
    s->accepts_http = df_json_bool(source, "acceptsHttp", false);
    s->follows_links = df_json_bool(source, "followsLinks", false);
    s->keeps_top = df_json_bool(source, "keepsTop", false);
    s->username = text(source, "credentials.username");
    s->password = text(source, "credentials.password");
    s->ssh_key = text(source, "credentials.sshPrivateKey");
    s->known_hosts = text(source, "credentials.knownHosts");
    s->accepts_host_keys = df_json_bool(source, "credentials.acceptsHostKeys", false);
    s->ca_certificate = text(source, "credentials.caCertificate");
}

int df_source_spec_read(const cJSON *source, struct df_source_spec *ret, struct df_err *err)
{
    DF_SOURCE_SPEC struct df_source_spec s = {0};
    struct df_source_url u = {0};
    read_members(source, &s);
    if (!s.url)
        return df_source_refuse(err, "source.url is required");
    if (df_source_url_check(s.url, s.accepts_http, &u, err) < 0)
        return -1;
    s.scheme = u.scheme;
    if ((s.scheme == DF_SCHEME_FILE ? read_path(&s, err) : read_host(&s, &u, err)) < 0)
        return -1;
    if (read_kind(source, &s, err) < 0 || check_refs(&s, err) < 0 || check_rest(&s, err) < 0)
        return -1;
    *ret = s;
    s = (struct df_source_spec){0};
    return 0;
}
