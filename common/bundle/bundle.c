/*
 * Reading first: the header and its checks, one part, all parts. Then writing: the parts are
 * described (size, digest), then copied. The format is in docs/step-protocol.md.
 */
#include "common/bundle/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"

#define MAGIC "DFBUNDLE1\n"
#define MAGIC_LEN (sizeof(MAGIC) - 1)
#define LENGTH_DIGITS 8
#define HEADER_AT (MAGIC_LEN + LENGTH_DIGITS + 1)
#define MAX_PARTS 16
#define COPY_CHUNK (64 * DF_KIB)

static int fail_corrupt(struct df_err *err, const char *what)
{
    return df_fail_reason(err, DF_ERR_DENIED, "PlanCorrupt", "the plan bundle is damaged: %s",
                          what);
}

static int read_at(int fd, void *to, size_t n, int64_t offset, struct df_err *err)
{
    char *p = to;
    while (n) {
        ssize_t got = pread(fd, p, n, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return df_fail_errno(err, errno, "read the plan bundle");
        if (got == 0)
            return fail_corrupt(err, "it ends too early");
        p += got;
        n -= (size_t)got;
        offset += got;
    }
    return 0;
}

/* Reads size bytes at offset, writes them to out_fd (-1: nowhere) and computes their SHA-256. */
static int copy_range(int fd, int64_t offset, int64_t size, int out_fd, char hex[DF_SHA256_HEX],
                      struct df_err *err)
{
    DF_FREE char *chunk = malloc(COPY_CHUNK);
    if (!chunk)
        return df_fail_oom(err);
    struct df_sha256_ctx *sha = NULL;
    if (df_sha256_new(&sha, err) < 0)
        return -1;
    int failed = 0;
    while (size > 0 && !failed) {
        size_t n = size < (int64_t)COPY_CHUNK ? (size_t)size : COPY_CHUNK;
        failed = read_at(fd, chunk, n, offset, err) < 0 ||
                 df_sha256_update(sha, chunk, n, err) < 0 ||
                 (out_fd >= 0 && df_fs_write_all(out_fd, chunk, n, err) < 0);
        offset += (int64_t)n;
        size -= (int64_t)n;
    }
    failed = failed || df_sha256_final_hex(sha, hex, err) < 0;
    df_sha256_free(sha);
    return failed ? -1 : 0;
}

/* ---- reading ---- */

struct layout {
    cJSON *header; /* owned */
    int64_t data;  /* where the first part begins */
};

static bool is_lower_hex(const char *s, size_t n)
{
    return s && strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* Adds the sizes up. A part with a missing member means that the bundle is damaged. */
static int check_parts(const cJSON *header, int64_t room, struct df_err *err)
{
    const cJSON *parts = df_json_at(header, "parts");
    if (!cJSON_IsArray(parts) || cJSON_GetArraySize(parts) > MAX_PARTS)
        return fail_corrupt(err, "its header has no list of parts");
    const cJSON *part;
    cJSON_ArrayForEach (part, parts) {
        int64_t size = df_json_int(part, "size", -1);
        if (df_str_empty(df_json_str(part, "name")) ||
            !is_lower_hex(df_json_str(part, "sha256"), DF_SHA256_HEX - 1))
            return fail_corrupt(err, "a part has no name or digest");
        if (size < 0 || size > room)
            return fail_corrupt(err, "its parts do not add up to its size");
        room -= size;
    }
    return room ? fail_corrupt(err, "its parts do not add up to its size") : 0;
}

static int header_length(int fd, size_t *ret, struct df_err *err)
{
    char start[HEADER_AT + 1] = {0};
    if (read_at(fd, start, HEADER_AT, 0, err) < 0)
        return -1;
    if (memcmp(start, MAGIC, MAGIC_LEN) != 0 || start[HEADER_AT - 1] != '\n')
        return fail_corrupt(err, "it does not begin like one");
    start[HEADER_AT - 1] = '\0';
    const char *digits = start + MAGIC_LEN;
    if (!is_lower_hex(digits, LENGTH_DIGITS))
        return fail_corrupt(err, "the length of its header is not a number");
    *ret = strtoul(digits, NULL, 16);
    return *ret > DF_LIMIT_BUNDLE_HEADER ? fail_corrupt(err, "its header is too long") : 0;
}

static int parse_header(const char *text, size_t n, cJSON **ret, struct df_err *err)
{
    struct df_err inner = {0};
    if (df_json_parse(text, n, ret, &inner) == 0)
        return 0;
    if (inner.cls != DF_ERR_USER)
        return df_fail(err, inner.cls, "%s", inner.message);
    return fail_corrupt(err, inner.message);
}

static int read_layout(int fd, struct layout *ret, struct df_err *err)
{
    struct stat st;
    size_t n = 0;
    if (fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "the plan bundle");
    if (header_length(fd, &n, err) < 0)
        return -1;
    DF_FREE char *text = malloc(n + 1);
    if (df_check_alloc(text, err) < 0 || read_at(fd, text, n, HEADER_AT, err) < 0)
        return -1;
    DF_JSON cJSON *header = NULL;
    int64_t data = (int64_t)(HEADER_AT + n);
    if (parse_header(text, n, &header, err) < 0 || check_parts(header, st.st_size - data, err) < 0)
        return -1;
    *ret = (struct layout){.header = DF_TAKE(header), .data = data};
    return 0;
}

int df_bundle_header(int fd, cJSON **ret, struct df_err *err)
{
    struct layout layout;
    if (read_layout(fd, &layout, err) < 0)
        return -1;
    *ret = layout.header;
    return 0;
}

static int copy_part(int fd, const cJSON *part, int64_t offset, int out_fd, struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    if (copy_range(fd, offset, df_json_int(part, "size", 0), out_fd, hex, err) < 0)
        return -1;
    return df_streq(hex, df_json_str(part, "sha256")) ? 0 : fail_corrupt(err, "a digest is wrong");
}

static int extract_to(int fd, const cJSON *part, int64_t offset, const char *path,
                      struct df_err *err)
{
    DF_CLOSE int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return df_fail_errno(err, errno, "create %s", path);
    if (copy_part(fd, part, offset, out, err) == 0)
        return 0;
    (void)unlink(path);
    return df_err_wrap(err, "%s", path);
}

int df_bundle_extract(int fd, const char *name, const char *path, struct df_err *err)
{
    struct layout layout;
    if (read_layout(fd, &layout, err) < 0)
        return -1;
    DF_JSON cJSON *header = layout.header;
    int64_t offset = layout.data;
    const cJSON *part;
    cJSON_ArrayForEach (part, df_json_at(header, "parts")) {
        if (df_streq(df_json_str(part, "name"), name))
            return extract_to(fd, part, offset, path, err);
        offset += df_json_int(part, "size", 0);
    }
    return df_fail(err, DF_ERR_NOT_FOUND, "the plan bundle has no part \"%s\"", name);
}

int df_bundle_verify(int fd, struct df_err *err)
{
    struct layout layout;
    if (read_layout(fd, &layout, err) < 0)
        return -1;
    DF_JSON cJSON *header = layout.header;
    int64_t offset = layout.data;
    const cJSON *part;
    cJSON_ArrayForEach (part, df_json_at(header, "parts")) {
        if (copy_part(fd, part, offset, -1, err) < 0)
            return -1;
        offset += df_json_int(part, "size", 0);
    }
    return 0;
}

/* ---- writing ---- */

/* *ret_fd is -1 if there is no such file. */
static int open_part(const struct df_bundle_part *part, int *ret_fd, struct df_err *err)
{
    struct df_err why = {0};
    if (!part->path && part->fd >= 0)
        *ret_fd = fcntl(part->fd, F_DUPFD_CLOEXEC, 0);
    if (!part->path)
        return part->fd >= 0 && *ret_fd < 0 ? df_fail_errno(err, errno, "open %s", part->name) : 0;
    if (df_fs_open_plain(part->path, O_RDONLY, 0, ret_fd, &why) == 0 || why.os_errno == ENOENT)
        return 0;
    return df_err_pass(err, &why);
}

static int describe_part(const struct df_bundle_part *part, cJSON *list, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (open_part(part, &fd, err) < 0)
        return -1;
    if (fd < 0)
        return 0;
    char hex[DF_SHA256_HEX];
    int64_t size;
    cJSON *item = cJSON_CreateObject();
    if (df_json_append(list, item, err) < 0)
        return -1;
    if (df_sha256_file_hex(fd, hex, &size, err) < 0 ||
        df_json_put(item, err, DF_STR("name", part->name), DF_NUM("size", size)) < 0)
        return -1;
    if (size > (int64_t)DF_LIMIT_BUNDLE)
        return df_fail(err, DF_ERR_LIMIT, "%s has %lld bytes, more than %zu", part->name,
                       (long long)size, DF_LIMIT_BUNDLE);
    return df_json_add_str(item, "sha256", hex, err);
}

/* A file that changed after its description would make a bundle that never verifies. */
static int write_part(int out_fd, const struct df_bundle_part *part, const cJSON *item,
                      struct df_err *err)
{
    DF_CLOSE int fd = -1;
    char hex[DF_SHA256_HEX] = "";
    if (open_part(part, &fd, err) < 0)
        return -1;
    if (fd >= 0 && copy_range(fd, 0, df_json_int(item, "size", 0), out_fd, hex, err) < 0)
        return -1;
    if (!df_streq(hex, df_json_str(item, "sha256")))
        return df_fail(err, DF_ERR_CONFLICT, "%s changed while it was bundled", part->name);
    return 0;
}

static int write_header(int out_fd, const cJSON *header, struct df_err *err)
{
    DF_FREE char *text = df_json_print(header);
    if (!text)
        return df_fail_oom(err);
    size_t n = strlen(text);
    if (n > DF_LIMIT_BUNDLE_HEADER)
        return df_fail(err, DF_ERR_LIMIT, "the plan bundle's header has %zu bytes", n);
    char start[HEADER_AT + 1];
    (void)snprintf(start, sizeof(start), MAGIC "%08zx\n", n);
    if (df_fs_write_all(out_fd, start, HEADER_AT, err) < 0)
        return -1;
    return df_fs_write_all(out_fd, text, n, err);
}

static int write_parts(int out_fd, const cJSON *list, const struct df_bundle_part *parts, size_t n,
                       struct df_err *err)
{
    const cJSON *item = list->child;
    for (size_t i = 0; i < n && item; i++) {
        if (!df_streq(parts[i].name, df_json_str(item, "name")))
            continue; /* left out */
        if (write_part(out_fd, &parts[i], item, err) < 0)
            return -1;
        item = item->next;
    }
    return 0;
}

int df_bundle_write(int out_fd, const cJSON *header, const struct df_bundle_part *parts, size_t n,
                    struct df_err *err)
{
    DF_JSON cJSON *full = cJSON_Duplicate(header, true);
    cJSON *list = df_json_array_at(full, "parts");
    if (!list)
        return df_fail_oom(err);
    for (size_t i = 0; i < n; i++) {
        if (describe_part(&parts[i], list, err) < 0)
            return df_err_wrap(err, "bundle the plan");
    }
    if (write_header(out_fd, full, err) < 0 || write_parts(out_fd, list, parts, n, err) < 0)
        return df_err_wrap(err, "bundle the plan");
    return 0;
}
