/* Parts of a URL and of a path first, then one function for each type of storage. */
#include "spawner/model/storage_place.h"

#include <ctype.h>
#include <errno.h>

#include "common/base/util.h"

/* ---- settings ---- */

/* A setting as the backend reads it, a number as its digits; NULL if it is absent or empty. The
 * caller frees. Without memory the text fails. */
static char *setting(struct df_buf *text, const cJSON *config, const char *name)
{
    const cJSON *value = df_json_at(config, name);
    bool is_text = cJSON_IsString(value);
    if (!value || (is_text && !*value->valuestring))
        return NULL;
    char *copy = is_text ? strdup(value->valuestring) : df_json_print(value);
    if (!copy)
        text->failed = ENOMEM;
    return copy;
}

static void add_lower(struct df_buf *text, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)df_buf_addc(text, (char)tolower((unsigned char)s[i]));
}

/* ---- URLs ---- */

/* Borrowed from the URL. */
struct url {
    const char *host, *port, *rest; /* rest: path, query and fragment */
    size_t host_len, port_len;
    bool is_plain; /* http */
};

static struct url split_url(const char *s)
{
    const char *mark = strstr(s, "://");
    bool has_scheme = mark && mark + 1 == s + strcspn(s, "/?#");
    struct url u = {.host = has_scheme ? mark + 3 : s, .is_plain = strncasecmp(s, "http:", 5) == 0};
    size_t n = strcspn(u.host, "/?#");
    u.rest = u.host + n;
    const char *colon = memrchr(u.host, ':', n);
    if (colon && memchr(colon, ']', (size_t)(u.rest - colon)))
        colon = NULL; /* of an IPv6 address */
    u.host_len = colon ? (size_t)(colon - u.host) : n;
    u.port = colon ? colon + 1 : u.rest;
    while (u.port < u.rest && *u.port == '0')
        u.port++;
    u.port_len = (size_t)(u.rest - u.port);
    while (u.host_len && u.host[u.host_len - 1] == '.')
        u.host_len--;
    return u;
}

static bool host_ends_with(const struct url *u, const char *suffix)
{
    size_t n = strlen(suffix);
    return u->host_len > n && strncasecmp(u->host + u->host_len - n, suffix, n) == 0;
}

static bool has_part(const struct url *u, const char *part)
{
    const char *at = strcasestr(u->host, part);
    return at && at < u->rest;
}

static bool is_standard_port(const struct url *u)
{
    const char *port = u->is_plain ? "80" : "443";
    return !u->port_len || (u->port_len == strlen(port) && !memcmp(u->port, port, u->port_len));
}

/* Host, and the port unless the scheme implies it: a store answers http and https alike. */
static void add_host(struct df_buf *text, const struct url *u)
{
    add_lower(text, u->host, u->host_len);
    if (!is_standard_port(u))
        (void)df_buf_addf(text, ":%.*s", (int)u->port_len, u->port);
}

static int hex_value(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* Adds a part of a URL: an escape of a character that needs none is that character, any other one
 * has capital digits. */
static void add_unescaped(struct df_buf *text, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = s[i] == '%' && i + 2 < n ? hex_value(s[i + 1]) : -1;
        int low = high >= 0 ? hex_value(s[i + 2]) : -1;
        int c = low >= 0 ? high * 16 + low : (unsigned char)s[i];
        i += low >= 0 ? 2 : 0;
        if (low < 0 || (isascii(c) && isalnum(c)) || (c && strchr("-._~", c)))
            (void)df_buf_addc(text, (char)c);
        else
            (void)df_buf_addf(text, "%%%02X", (unsigned)c);
    }
}

/* ---- paths ---- */

static void cut(struct df_buf *text, size_t len)
{
    if (text->len <= len)
        return;
    text->len = len;
    text->data[len] = '\0';
}

/* Takes back the last segment, but nothing before root. */
static void cut_segment(struct df_buf *text, size_t root)
{
    size_t len = text->len;
    while (len > root && text->data[len - 1] != '/')
        len--;
    cut(text, len > root ? len - 1 : root);
}

/* Adds "/a/b", with a slash before each segment: without empty ones, "." and "..". */
static void add_path(struct df_buf *text, const char *path, size_t n, bool is_url)
{
    const char *end = path + n, *next = NULL;
    size_t root = text->len;
    for (const char *p = path; p < end; p = next + 1) {
        size_t start = text->len;
        next = memchr(p, '/', (size_t)(end - p));
        next = next ? next : end;
        (void)df_buf_addc(text, '/');
        if (is_url)
            add_unescaped(text, p, (size_t)(next - p));
        else
            (void)df_buf_add(text, p, (size_t)(next - p));
        if (text->failed)
            return;
        const char *added = df_buf_str(text) + start;
        bool is_up = df_streq(added, "/..");
        if (is_up || df_streq(added, "/") || df_streq(added, "/."))
            cut(text, start);
        if (is_up)
            cut_segment(text, root);
    }
}

static void add_segments(struct df_buf *text, const char *path)
{
    add_path(text, path ? path : "", path ? strlen(path) : 0, false);
}

/* ---- s3 and gcs ---- */

/* The names of buckets are unique in a partition of Amazon's service, whatever the address. */
static const struct partition {
    const char *name, *region; /* region: how its regions begin */
    const char *host;          /* how the hosts of its addresses end */
} partitions[] = {
    {"aws-cn", "cn-", ".amazonaws.com.cn"}, {"aws-us-gov", "us-gov-", NULL},
    {"aws-iso", "us-iso-", ".c2s.ic.gov"},  {"aws-iso-b", "us-isob-", ".sc2s.sgov.gov"},
    {"aws-eusc", "eusc-", ".amazonaws.eu"}, {"aws", "", ".amazonaws.com"},
};

#define GOV 1 /* its addresses end as those of "aws", and name its region */
#define GOOGLE ".googleapis.com"

static const struct partition *partition_of_host(const struct url *u)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(partitions); i++) {
        const struct partition *p = &partitions[i];
        if (p->host && host_ends_with(u, p->host)) {
            bool is_gov = df_streq(p->name, "aws") && has_part(u, partitions[GOV].region);
            return is_gov ? &partitions[GOV] : p;
        }
    }
    return NULL;
}

static const struct partition *partition_of_region(const char *region)
{
    const struct partition *p = partitions;
    while (region && !df_starts_with(region, p->region))
        p++; /* the last one has all others */
    return region ? p : &partitions[DF_ARRAY_SIZE(partitions) - 1];
}

/* The store that the address leads to; its path is the first part of the object's. */
static void add_store(struct df_buf *text, const char *address)
{
    const struct url u = split_url(address);
    const struct partition *p = partition_of_host(&u);
    if (p)
        (void)df_buf_adds(text, p->name);
    else if (host_ends_with(&u, GOOGLE))
        (void)df_buf_adds(text, "storage" GOOGLE);
    else
        add_host(text, &u);
}

void df_storage_place_s3(struct df_buf *text, const cJSON *config, const char *path)
{
    DF_FREE char *bucket = setting(text, config, "bucket"),
                 *region = setting(text, config, "region");
    DF_FREE char *address = setting(text, config, "endpoints.s3");
    DF_FREE char *older = address ? NULL : setting(text, config, "endpoint");
    const char *given = address ? address : older;
    if (given) {
        add_store(text, given);
        const char *rest = split_url(given).rest;
        add_path(text, rest, strcspn(rest, "?#"), true);
    } else
        (void)df_buf_adds(text, partition_of_region(region)->name);
    add_segments(text, bucket);
    add_segments(text, path);
}

/* The backend adds "/default.tfstate" to its prefix. The path of the address is that of an API. */
void df_storage_place_gcs(struct df_buf *text, const cJSON *config, const char *path)
{
    DF_FREE char *bucket = setting(text, config, "bucket");
    DF_FREE char *address = setting(text, config, "storage_custom_endpoint");
    add_store(text, address ? address : "https://storage" GOOGLE);
    add_segments(text, bucket);
    add_segments(text, path);
    (void)df_buf_adds(text, "/default.tfstate");
}

/* The address of a service begins with its name; "bucket" is that of a private endpoint. */
bool df_storage_has_bucket_host(const char *url)
{
    static const char *const firsts[] = {"s3.", "s3-", "storage.", "storage-", "www."};
    const struct url u = split_url(url);
    bool is_service = false;
    if (!partition_of_host(&u) && !host_ends_with(&u, GOOGLE))
        return false;
    if (strncasecmp(u.host, "bucket.vpce-", strlen("bucket.vpce-")) == 0)
        return false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(firsts); i++)
        is_service = is_service || strncasecmp(u.host, firsts[i], strlen(firsts[i])) == 0;
    return !is_service || has_part(&u, ".s3.") || has_part(&u, ".s3-") || has_part(&u, ".storage.");
}

/* ---- azurerm ---- */

/* The names and the metadata hosts of clouds. */
static const char *const clouds[][4] = {
    {"public", "azurepubliccloud", "global", "management.azure.com"},
    {"china", "azurechinacloud", NULL, "management.chinacloudapi.cn"},
    {"usgovernment", "azureusgovernmentcloud", "usgovernmentl4", "management.usgovcloudapi.net"},
    {"german", "azuregermancloud", NULL, "management.microsoftazure.de"},
};

static void add_cloud(struct df_buf *text, const char *name, size_t n)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(clouds); i++)
        for (size_t k = 0; k < DF_ARRAY_SIZE(clouds[i]); k++)
            if (clouds[i][k] && n == strlen(clouds[i][k]) &&
                strncasecmp(clouds[i][k], name, n) == 0) {
                (void)df_buf_adds(text, clouds[i][0]);
                return;
            }
    add_lower(text, name, n);
}

/* The names of accounts are unique in a cloud. */
void df_storage_place_azurerm(struct df_buf *text, const cJSON *config, const char *path)
{
    DF_FREE char *account = setting(text, config, "storage_account_name");
    DF_FREE char *container = setting(text, config, "container_name");
    DF_FREE char *metadata = setting(text, config, "metadata_host");
    DF_FREE char *environment = setting(text, config, "environment");
    (void)df_buf_adds(text, "azure:");
    if (metadata) {
        const struct url u = split_url(metadata);
        add_cloud(text, u.host, u.host_len);
        if (!is_standard_port(&u))
            (void)df_buf_addf(text, ":%.*s", (int)u.port_len, u.port);
    } else {
        const char *name = environment ? environment : clouds[0][0];
        add_cloud(text, name, strlen(name));
    }
    (void)df_buf_addc(text, '/');
    add_lower(text, account ? account : "", account ? strlen(account) : 0);
    add_segments(text, container);
    add_segments(text, path);
}

/* ---- local, http ---- */

void df_storage_place_local(struct df_buf *text, const cJSON *config, const char *path)
{
    (void)config;
    (void)df_buf_adds(text, "file:");
    add_segments(text, path);
}

/* A query may name the state; a fragment is not sent. */
void df_storage_place_http(struct df_buf *text, const cJSON *config, const char *path)
{
    DF_FREE char *address = setting(text, config, "address");
    const struct url u = split_url(address ? address : "");
    size_t n = strcspn(u.rest, "?#");
    size_t query = strcspn(u.rest + n, "#");
    (void)path;
    add_host(text, &u);
    add_path(text, u.rest, n, true);
    if (query > 1)
        add_unescaped(text, u.rest + n, query);
}
