/*
 * Rules of spec.source: those of common/source, values that a document should not contain, and
 * which members may be combined.
 */
#include <strings.h>

#include "common/base/parse.h"
#include "common/source/rules.h"
#include "spawner/model/model.h"
#include "spawner/model/rules.h"

/* ---- kinds ---- */

const char *df_source_kind(const char *url)
{
    static const char repository[] = ".git";
    size_t n = df_source_url_name(url), m = strlen(repository);
    if (df_source_archive_ending(url, n))
        return "archive";
    bool says_git = n > m && strncasecmp(url + n - m, repository, m) == 0;
    return df_starts_with(url, "file:") && !says_git ? NULL : "git";
}

/* ---- URLs ---- */

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
    struct df_source_url u = {0};
    const char *fault = df_source_address_fault(s);
    if (!fault)
        fault = df_source_url_fault(s, &u);
    if (fault)
        return fault;
    bool is_file = u.scheme == DF_SCHEME_FILE;
    if (has_bad_byte(s, is_file))
        return "has a blank, a backslash or a byte beyond ASCII in it; percent-encode it";
    if (u.scheme == DF_SCHEME_HTTPS && u.user_len)
        return DF_SOURCE_USE_SECRET;
    if (!is_file && has_secret_query(u.path))
        return DF_SOURCE_USE_SECRET;
    if (!is_file && (!*u.path || strcmp(u.path, "/") == 0))
        return "has no path";
    return strchr(s, '#') ? "may not have a fragment; use tag, branch or commit" : NULL;
}

/* ---- spec.source as a whole ---- */

static void check_with(const cJSON *source, const char *key, const char *(*fault_of)(const char *),
                       const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, key, 0};
    const char *value = df_json_str(source, key), *fault;
    if (df_str_empty(value) || df_has_control(value)) /* the table of fields reports these */
        return;
    fault = fault_of(value);
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
    check_with(source, "tag", df_source_ref_fault, path, f);
    check_with(source, "branch", df_source_ref_fault, path, f);
    check_with(source, "commit", df_source_commit_fault, path, f);
    check_with(source, "folder", df_source_folder_fault, path, f);
    const char *kind = df_json_str(source, "kind");
    check_refs(source, kind, path, f);
    if (f->count == before)
        check_kind(source, kind, path, f);
}

/* ---- the same repository ---- */

static void lower_case(char *from, const char *end)
{
    for (; from < end; from++)
        if (*from >= 'A' && *from <= 'Z')
            *from = (char)(*from - 'A' + 'a');
}

static size_t without_slashes(const char *s, size_t n)
{
    while (n && s[n - 1] == '/')
        n--;
    return n;
}

/* Normalizes the URL: drops slashes at the end and, on a server, ".git"; scheme and host in lower
 * case. The local directories x and x.git are different. The caller frees. */
static char *plain_url(const char *url)
{
    static const char ending[] = ".git";
    size_t n = without_slashes(url, strlen(url)), m = strlen(ending);
    bool is_remote = strncasecmp(url, "file:", strlen("file:")) != 0;
    if (is_remote && n > m && strncasecmp(url + n - m, ending, m) == 0)
        n = without_slashes(url, n - m);
    char *plain = strndup(url, n);
    if (!plain)
        return NULL;
    char *scheme_end = strstr(plain, "://");
    char *host = scheme_end ? scheme_end + strlen("://") : plain;
    char *host_end = host + strcspn(host, scheme_end ? "/" : ":/");
    char *user_end = memchr(host, '@', (size_t)(host_end - host));
    if (scheme_end)
        lower_case(plain, scheme_end);
    if (scheme_end || user_end)
        lower_case(user_end ? user_end : host, host_end);
    return plain;
}

bool df_source_is_same(const char *a, const char *b)
{
    DF_FREE char *one = plain_url(a), *other = plain_url(b);
    return one && other && strcmp(one, other) == 0;
}

/* The path of a directory's module, however it is divided into URL and folder; the caller frees.
 * NULL: it is none. */
static char *directory_of(const cJSON *source)
{
    const char *url = df_json_str(source, "url"), *folder = df_json_str(source, "folder");
    if (!url || !df_streq(df_json_str(source, "kind"), "directory"))
        return NULL;
    size_t n = without_slashes(url, strlen(url));
    return df_strf("%.*s%s%s", (int)n, url, df_str_empty(folder) ? "" : "/", folder ? folder : "");
}

bool df_source_is_same_directory(const cJSON *a, const cJSON *b)
{
    DF_FREE char *one = directory_of(a), *other = directory_of(b);
    return df_streq(one, other);
}
