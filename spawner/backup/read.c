/*
 * read.c - reads an archive once, from its beginning to its end. Read read_all() and next_member()
 * first. The order is fixed (check_place()): description, database, other files, sums. Files go to
 * the sink before the sums at the end prove them: what the sink has counts only after success.
 */
#include "spawner/backup/read.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/archive/ustar.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/backup/format.h"

struct reader {
    int fd;
    int64_t at, end;
    const struct df_backup_sink *sink;
    struct df_sha256_ctx *sums; /* of the lines that the sums must have */
    struct df_buf header;
    struct df_backup_facts facts;
    bool complete; /* the sums were there, and right */
};

static int damaged(struct df_err *err, const char *what)
{
    return df_fail_reason(err, DF_ERR_USER, "BackupDamaged",
                          "the archive is damaged (%s): take another copy of it", what);
}

static int read_piece(struct reader *r, char *to, size_t n, struct df_err *err)
{
    for (size_t got = 0; got < n;) {
        ssize_t more = pread(r->fd, to + got, n - got, r->at + (int64_t)got);
        if (more < 0 && errno != EINTR)
            return df_fail_errno(err, errno, "read the archive");
        if (more == 0)
            return damaged(err, "it is cut off");
        got += more < 0 ? 0 : (size_t)more;
    }
    r->at += (int64_t)n;
    return 0;
}

/* ---- one member ------------------------------------------------------------------------------ */

static int copy_content(struct reader *r, const struct df_ustar *h, int to,
                        struct df_sha256_ctx *digest, struct df_err *err)
{
    char piece[64 * DF_KIB];
    bool is_header = df_streq(h->name, DF_BACKUP_HEADER);
    if (h->size > r->end - r->at)
        return damaged(err, "it is cut off");
    for (int64_t left = h->size; left;) {
        size_t n = left < (int64_t)sizeof(piece) ? (size_t)left : sizeof(piece);
        if (read_piece(r, piece, n, err) < 0 || df_sha256_update(digest, piece, n, err) < 0 ||
            (to >= 0 && df_fs_write_all(to, piece, n, err) < 0))
            return -1;
        if (is_header && df_buf_add(&r->header, piece, n) < 0)
            return damaged(err, "its description is too long");
        left -= (int64_t)n;
    }
    return 0;
}

static int skip_padding(struct reader *r, const struct df_ustar *h, struct df_err *err)
{
    char zeros[DF_USTAR_BLOCK];
    size_t n = df_ustar_padding(h->size);
    if (read_piece(r, zeros, n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (zeros[i])
            return damaged(err, "there is something between two files");
    return 0;
}

/* The sums are right if their digest is that of the lines they must have. */
static int check_sums(struct reader *r, const char *digest, struct df_err *err)
{
    char wanted[DF_SHA256_HEX];
    if (df_sha256_final_hex(r->sums, wanted, err) < 0)
        return -1;
    if (!df_streq(wanted, digest))
        return damaged(err, "a file is not what its SHA-256 says");
    r->complete = true;
    return 0;
}

static int add_line(struct reader *r, const char *digest, const char *name, struct df_err *err)
{
    DF_FREE char *line = df_strf("%s  %s\n", digest, name);
    if (!line)
        return df_fail_oom(err);
    return df_sha256_update(r->sums, line, strlen(line), err);
}

/* Names and description are shown to people: a terminal would execute other bytes. */
static bool is_plain(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return !*text;
}

static bool has_plain_strings(const cJSON *header)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, header)
        if (cJSON_IsString(member) && !is_plain(member->valuestring))
            return false;
    return true;
}

static int check_header(struct reader *r, struct df_err *err)
{
    if (df_json_parse(df_buf_str(&r->header), r->header.len, &r->facts.header, NULL) < 0)
        return damaged(err, "its description cannot be read");
    if (!has_plain_strings(r->facts.header))
        return damaged(err, "its description has other than plain characters");
    int64_t format = df_json_int(r->facts.header, "format", 0);
    if (format > DF_BACKUP_FORMAT)
        return df_fail_reason(err, DF_ERR_USER, "BackupTooNew",
                              "the archive has format %lld, and this dayfly knows format %d: use "
                              "version %s or a later one",
                              (long long)format, DF_BACKUP_FORMAT,
                              df_json_str(r->facts.header, "version")
                                  ? df_json_str(r->facts.header, "version")
                                  : "that made it");
    return format < 1 ? damaged(err, "its description has no format") : 0;
}

static int read_member(struct reader *r, const struct df_ustar *h, struct df_sha256_ctx *digest,
                       struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    DF_CLOSE int to = -1;
    bool is_sums = df_streq(h->name, DF_BACKUP_SUMS);
    if (r->sink && !is_sums && r->sink->open(r->sink->arg, h->name, &to, err) < 0)
        return -1;
    if (copy_content(r, h, to, digest, err) < 0 || df_sha256_final_hex(digest, hex, err) < 0 ||
        skip_padding(r, h, err) < 0)
        return -1;
    if (is_sums)
        return check_sums(r, hex, err);
    r->facts.files++;
    r->facts.bytes += h->size;
    if (r->facts.files == 1 && check_header(r, err) < 0)
        return -1;
    return add_line(r, hex, h->name, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The description is the first and the database the second, each of them once; nothing follows the
 * sums. */
static int check_place(const struct reader *r, const struct df_ustar *h, struct df_err *err)
{
    bool is_header = df_streq(h->name, DF_BACKUP_HEADER);
    bool is_database = df_streq(h->name, DF_BACKUP_DATABASE);
    if (!r->facts.files && !is_header)
        return df_fail_reason(err, DF_ERR_USER, "BackupDamaged",
                              "this is not an archive of `dayfly backup`");
    if (r->complete)
        return damaged(err, "files follow its sums");
    if (is_database != (r->facts.files == 1))
        return damaged(err, is_database ? "it has two databases" : "it has no database");
    return is_header && r->facts.files ? damaged(err, "it has two descriptions") : 0;
}

static int next_member(struct reader *r, bool *ret_end, struct df_err *err)
{
    char block[DF_USTAR_BLOCK];
    struct df_ustar h = {0};
    struct df_sha256_ctx *digest = NULL;
    if (read_piece(r, block, sizeof(block), err) < 0)
        return -1;
    if (df_ustar_parse(block, &h, ret_end, NULL) < 0)
        return r->facts.files ? damaged(err, "a file's header cannot be read")
                              : check_place(r, &h, err);
    if (*ret_end)
        return 0;
    if (!is_plain(h.name))
        return damaged(err, "the name of a file has other than plain characters");
    if (check_place(r, &h, err) < 0 || df_sha256_new(&digest, err) < 0)
        return -1;
    int result = read_member(r, &h, digest, err);
    df_sha256_free(digest);
    return result < 0 && *h.name ? df_err_wrap(err, "%s", h.name) : result;
}

static int read_all(struct reader *r, struct df_err *err)
{
    struct stat st;
    bool end = false;
    if (fstat(r->fd, &st) < 0)
        return df_fail_errno(err, errno, "the archive");
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_USER, "is not a regular file");
    r->end = st.st_size;
    if (df_sha256_new(&r->sums, err) < 0)
        return -1;
    while (!end)
        if (next_member(r, &end, err) < 0)
            return -1;
    return r->complete ? 0 : damaged(err, "its sums are missing");
}

int df_backup_read(int fd, const struct df_backup_sink *sink, struct df_backup_facts *ret,
                   struct df_err *err)
{
    struct reader r = {.fd = fd, .sink = sink, .header = DF_BUF_INIT(DF_LIMIT_DOCUMENT)};
    int result = read_all(&r, err);
    df_sha256_free(r.sums);
    df_buf_free(&r.header);
    if (result < 0)
        cJSON_Delete(r.facts.header);
    else
        *ret = r.facts;
    return result;
}
