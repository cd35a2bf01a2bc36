/*
 * libarchive with only the readers for tar and zip. df_archive_next() checks every entry (kind,
 * caps) and, for tar, that the end was not cut off.
 */
#include "common/archive/reader.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/archive/names.h"
#include "common/base/fs.h"
#include "common/base/limits.h"

enum { TAR_END_MARK = 1024, MAX_FILTERS = 2 /* one compression and libarchive's own source */ };

static la_ssize_t on_read(struct archive *a, void *arg, const void **ret)
{
    struct df_archive_reader *r = arg;
    ssize_t n;
    do
        n = pread(r->fd, r->block, sizeof(r->block), r->offset);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        archive_set_error(a, errno, "read failed");
    else
        r->offset += n;
    *ret = r->block;
    return n;
}

static la_int64_t on_seek(struct archive *a, void *arg, la_int64_t offset, int whence)
{
    struct df_archive_reader *r = arg;
    (void)a;
    off_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? r->offset : r->packed;
    if (offset < -base || offset > r->packed - base)
        return ARCHIVE_FATAL;
    r->offset = base + offset;
    return r->offset;
}

static int set_up(struct df_archive_reader *r)
{
    struct archive *a = r->a;
    return archive_read_support_format_tar(a) == ARCHIVE_OK &&
                   archive_read_support_format_zip_seekable(a) == ARCHIVE_OK &&
                   archive_read_support_filter_gzip(a) == ARCHIVE_OK &&
                   archive_read_support_filter_zstd(a) == ARCHIVE_OK &&
                   archive_read_set_read_callback(a, on_read) == ARCHIVE_OK &&
                   archive_read_set_seek_callback(a, on_seek) == ARCHIVE_OK &&
                   archive_read_set_callback_data(a, r) == ARCHIVE_OK
               ? 0
               : -1;
}

int df_archive_open(struct df_archive_reader *r, int fd, const struct df_archive_limits *limits,
                    struct df_err *err)
{
    *r = (struct df_archive_reader){.fd = fd, .limits = *limits};
    struct stat st;
    if (fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open archive");
    if (!S_ISREG(st.st_mode))
        return df_archive_refuse(err, "it is not a regular file");
    r->packed = st.st_size;
    r->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    r->before = r->utf8 ? uselocale(r->utf8) : (locale_t)0;
    r->a = archive_read_new();
    /* Allocated here: libarchive does not notice a failed allocation. */
    r->entry = archive_entry_new();
    if (!r->a || !r->entry || set_up(r) < 0)
        return df_fail_oom(err);
    if (archive_read_open1(r->a) != ARCHIVE_OK)
        return df_archive_refuse(err, "it is neither a tar (plain, gzip, zstd) nor a zip");
    return 0;
}

void df_archive_close(struct df_archive_reader *r)
{
    if (r->a)
        (void)archive_read_free(r->a);
    archive_entry_free(r->entry);
    if (r->utf8) {
        (void)uselocale(r->before);
        freelocale(r->utf8);
    }
    r->a = NULL;
    r->entry = NULL;
    r->utf8 = (locale_t)0;
}

static int fail_broken(struct df_archive_reader *r, struct df_err *err)
{
    const char *text = archive_error_string(r->a);
    return df_archive_refuse(err, "it is damaged, cut off or of an unknown kind (%s)",
                             text ? text : "no details");
}

/* Checks unpacked and read bytes: a bomb may be in headers. */
static int reader_check_size(const struct df_archive_reader *r, struct df_err *err)
{
    int64_t stream = archive_filter_bytes(r->a, 0);
    int64_t bytes = stream > r->unpacked ? stream : r->unpacked;
    if (bytes > r->limits.max_bytes)
        return df_archive_too_much(err, "it unpacks to more than %lld bytes",
                                   (long long)r->limits.max_bytes);
    if (bytes > (int64_t)(16 * DF_MIB) && bytes / DF_LIMIT_ARCHIVE_RATIO > r->packed)
        return df_archive_too_much(err, "it unpacks to more than %d times its size",
                                   DF_LIMIT_ARCHIVE_RATIO);
    return 0;
}

/* libarchive accepts a tar that was cut off between two entries; only the two empty blocks at its
 * end prove that it is complete. */
static int check_end(struct df_archive_reader *r, struct df_err *err)
{
    bool tar = (archive_format(r->a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    if (tar && archive_filter_bytes(r->a, 0) - r->position < TAR_END_MARK)
        return df_archive_refuse(err, "it is cut off: the end mark is missing");
    return 0;
}

static int reader_check_kind(struct archive_entry *e, struct df_err *err)
{
    const char *name = archive_entry_pathname(e);
    if (!name || !*name)
        return df_archive_refuse(err, "an entry has no name, or one that is not UTF-8");
    mode_t type = archive_entry_filetype(e);
    if (archive_entry_hardlink(e))
        return df_archive_refuse(err, "\"%s\" is a hard link", name);
    if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
        return df_archive_refuse(err, "\"%s\" is a device, fifo or socket", name);
    if (type == AE_IFREG && archive_entry_perm(e) & (S_ISUID | S_ISGID))
        return df_archive_refuse(err, "\"%s\" is setuid or setgid", name);
    if (archive_entry_is_encrypted(e))
        return df_archive_refuse(err, "\"%s\" is encrypted", name);
    if (archive_entry_sparse_count(e) > 0)
        return df_archive_refuse(err, "\"%s\" is a sparse file", name);
    return 0;
}

int df_archive_next(struct df_archive_reader *r, struct archive_entry **ret, struct df_err *err)
{
    if (r->entries && archive_read_data_skip(r->a) != ARCHIVE_OK)
        return fail_broken(r, err);
    r->position = archive_filter_bytes(r->a, 0);
    int rc = archive_read_next_header2(r->a, r->entry);
    if (rc == ARCHIVE_EOF) {
        *ret = NULL;
        return check_end(r, err);
    }
    if (rc != ARCHIVE_OK)
        return fail_broken(r, err);
    if (archive_filter_count(r->a) > MAX_FILTERS)
        return df_archive_refuse(err, "it is compressed more than once");
    if (++r->entries > r->limits.max_entries)
        return df_archive_too_much(err, "it holds more than %lld entries",
                                   (long long)r->limits.max_entries);
    if (reader_check_size(r, err) < 0 || reader_check_kind(r->entry, err) < 0)
        return -1;
    *ret = r->entry;
    return 0;
}

int df_archive_copy(struct df_archive_reader *r, struct archive_entry *e, int to_fd,
                    struct df_err *err)
{
    int64_t size = archive_entry_size_is_set(e) ? archive_entry_size(e) : -1, done = 0;
    for (;;) {
        const void *bytes = NULL;
        size_t n = 0;
        la_int64_t offset = 0;
        int rc = archive_read_data_block(r->a, &bytes, &n, &offset);
        if (rc == ARCHIVE_EOF)
            break;
        if (rc != ARCHIVE_OK)
            return fail_broken(r, err);
        if (!n)
            continue;
        if (offset != done)
            return df_archive_refuse(err, "\"%s\" has holes", archive_entry_pathname(e));
        done += (int64_t)n;
        r->unpacked += (int64_t)n;
        if (reader_check_size(r, err) < 0 || df_fs_write_all(to_fd, bytes, n, err) < 0)
            return -1;
    }
    if (size >= 0 && done != size)
        return df_archive_refuse(err, "\"%s\" is cut off", archive_entry_pathname(e));
    return 0;
}
