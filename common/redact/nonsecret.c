/*
 * nonsecret.c - which values are not worth masking, so that a log stays readable.
 * df_redact_is_nonsecret() decides about a member: by its name, by lists of words, cloud regions
 * and plain URLs. df_redact_is_nonsecret_line() does the same for a line of a longer value. What
 * neither recognizes is treated as secret.
 */
#include "common/redact/nonsecret.h"

#include <ctype.h>

/* Names of members whose values are public, in lower case and without '-' and '_'. */
static const char *const public_names[] = {
    /* any document */
    "apiversion", "kind", "type", "version", "name", "description", "email",
    /* where a service is, and as whom */
    "host", "hostname", "port", "region", "scheme", "protocol", "engine", "database", "dbname",
    "dbclusteridentifier", "dbinstanceidentifier", "user", "username", "arn", "masterarn",
    /* keys of Google Cloud */
    "authprovider", "authproviderx509certurl", "authuri", "clientemail", "clientid",
    "clientx509certurl", "projectid", "quotaprojectid", "serviceaccountimpersonationurl",
    "subjecttokentype", "tokenuri", "tokenurl", "universedomain",
    /* keys of Azure */
    "subscriptionid", "tenantid",
    /* kubeconfig: a certificate is shown to everyone who connects */
    "certificateauthority", "certificateauthoritydata", "clientcertificate",
    "clientcertificatedata", "cluster", "context", "currentcontext", "namespace", "server",
    "tlsservername"};

/* Values that are words of a log, whatever the member's name. */
static const char *const public_words[] = {
    "application", "authorized_user",  "database",        "default",  "development", "disabled",
    "enabled",     "external_account", "false",           "https",    "kubernetes",  "localhost",
    "null",        "opentofu",         "optional",        "password", "postgres",    "postgresql",
    "production",  "required",         "service_account", "staging",  "terraform",   "true",
    "undefined",   "username"};

enum { NAME_MAX_LEN = 64, SEGMENT_MAX = 16 };

static bool is_listed(const char *const *list, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (df_streq(list[i], word))
            return true;
    return false;
}

/* Writes the name in lower case and without '-' and '_'; a longer one is cut, and so in no list. */
static void normalize_name(const char *name, char out[NAME_MAX_LEN])
{
    size_t n = 0;
    for (; *name && n < NAME_MAX_LEN - 1; name++)
        if (*name != '-' && *name != '_')
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
}

/* Where the regions of AWS and Google Cloud are, and on which side of it. */
static const char *const region_places[] = {
    "af",           "africa",       "ap",      "asia",   "australia", "ca",      "cn",
    "eu",           "europe",       "eu-isoe", "il",     "me",        "mx",      "sa",
    "northamerica", "southamerica", "us",      "us-gov", "us-iso",    "us-isob", "us-isof"};
static const char *const region_sides[] = {"central",   "east",      "north",
                                           "northeast", "northwest", "south",
                                           "southeast", "southwest", "west"};

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

/* The length of the side at the beginning of s, 0: none. It ends where no letter follows. */
static size_t side_len(const char *s)
{
    size_t len = strspn(s, letters);
    for (size_t i = 0; i < DF_ARRAY_SIZE(region_sides); i++) {
        if (strlen(region_sides[i]) == len && strncmp(s, region_sides[i], len) == 0)
            return len;
    }
    return 0;
}

/* "-1", "-1a", "4", "4-b": the number of a region, perhaps a zone of it. */
static bool is_region_number(const char *s)
{
    s += strspn(s, "-");
    size_t digits = strspn(s, "0123456789");
    if (!digits || digits > 2)
        return false;
    s += digits;
    s += strspn(s, "-");
    size_t zone = strspn(s, letters);
    return zone <= 1 && strlen(s) == zone;
}

/* "eu-west-1", "us-gov-east-1", "europe-west4-b". A password of words and a number is none. */
static bool is_region(const char *s)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(region_places); i++) {
        size_t place = strlen(region_places[i]);
        if (strncmp(s, region_places[i], place) != 0 || strspn(s + place, "-") != 1)
            continue;
        size_t side = side_len(s + place + 1);
        if (side && is_region_number(s + place + 1 + side))
            return true;
    }
    return false;
}

/* A URL without user, query and fragment. Each segment of its path is short: a longer one may be
 * the secret, as in the URL of a webhook. */
static bool is_public_url(const char *s)
{
    if (!df_starts_with(s, "https://") && !df_starts_with(s, "http://"))
        return false;
    const char *path = strchr(s, ':') + 3;
    path += strcspn(path, "/");
    if (strpbrk(s, "@?# \t\n"))
        return false;
    while (*path) {
        size_t n = strcspn(path + 1, "/");
        if (n >= SEGMENT_MAX)
            return false;
        path += n + 1;
    }
    return true;
}

bool df_redact_is_nonsecret(const char *name, const char *value)
{
    char word[NAME_MAX_LEN];
    bool credentials_in_url = strstr(value, "://") && strchr(value, '@');
    normalize_name(name, word);
    if (is_listed(public_names, DF_ARRAY_SIZE(public_names), word))
        return !credentials_in_url;
    return df_streq(name, value) || is_listed(public_words, DF_ARRAY_SIZE(public_words), value) ||
           (*name && is_region(value)) || is_public_url(value);
}

/* ---- lines ---- */

static bool starts(const char *s, size_t n, const char *word)
{
    return n >= strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* Copies the text between the punctuation at both ends of s; false if it does not fit. */
static bool copy_core(const char *s, size_t n, char *out, size_t size)
{
    static const char around[] = " \t\r\"',[]{}";
    while (n && strchr(around, s[n - 1]))
        n--;
    while (n && strchr(around, *s)) {
        s++;
        n--;
    }
    if (n >= size)
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    return true;
}

bool df_redact_is_nonsecret_line(const char *line, size_t n)
{
    enum { VALUE_MAX = 256, SHORT = 4 };
    char name[NAME_MAX_LEN], value[VALUE_MAX];
    size_t at = 0, alnums = 0;
    for (size_t i = 0; i < n; i++)
        alnums += isalnum((unsigned char)line[i]) ? 1 : 0;
    if (!alnums || starts(line, n, "-----BEGIN ") || starts(line, n, "-----END "))
        return true;
    while (at < n && strchr(" \t\"'-{[", line[at]))
        at++;
    size_t from = at;
    while (at < n && is_name_char(line[at]))
        at++;
    size_t len = at - from;
    at += at < n && (line[at] == '"' || line[at] == '\'') ? 1 : 0;
    if (!len || at >= n || line[at] != ':' || (at + 1 < n && !strchr(" \t\r", line[at + 1])))
        return false;
    return copy_core(line + from, len, name, sizeof name) &&
           copy_core(line + at + 1, n - at - 1, value, sizeof value) &&
           (strlen(value) < SHORT || df_redact_is_nonsecret(name, value));
}
