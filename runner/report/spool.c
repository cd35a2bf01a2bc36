#include "runner/report/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "common/base/fs.h"
#include "common/base/limits.h"

/* Room under the cap for the line that reports the loss. */
enum { LAST_LINE_ROOM = 512 };

int df_spool_open(struct df_spool *s, const char *dir, const char *name, bool events, uint64_t max,
                  struct df_err *err)
{
    DF_FREE char *path = df_fs_join(dir, name);
    if (!path)
        return df_fail_oom(err);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create spool %s", path);
    *s = (struct df_spool){.fd = fd, .events = events, .max = max};
    return 0;
}

void df_spool_close(struct df_spool *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
}

static void drop(struct df_spool_drops *d, const char *bytes, size_t n)
{
    const char *end = bytes + n;
    d->bytes += n;
    for (const char *p = bytes; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        d->lines++;
}

static int write_at_end(struct df_spool *s, const char *bytes, size_t n, struct df_err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = pwrite(s->fd, bytes + done, n - done, (off_t)(s->end + done));
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return df_fail_errno(err, errno, "write spool");
        done += (size_t)w;
    }
    s->end += n;
    s->mid_line = bytes[n - 1] != '\n';
    return 0;
}

int df_spool_append(struct df_spool *s, const char *bytes, size_t n, struct df_err *err)
{
    if (!n)
        return 0;
    s->full = s->full || s->end + n + LAST_LINE_ROOM > s->max;
    if (s->full) {
        drop(&s->over_cap, bytes, n);
        return 0;
    }
    if (write_at_end(s, bytes, n, err) < 0) {
        drop(&s->failed, bytes, n);
        return -1;
    }
    return 0;
}

static void size_words(uint64_t n, char out[32])
{
    if (n >= DF_GIB && n % DF_GIB == 0)
        (void)snprintf(out, 32, "%" PRIu64 " GiB", n / DF_GIB);
    else
        (void)snprintf(out, 32, "%" PRIu64 " bytes", n);
}

static void add_note(struct df_spool *s, struct df_spool_drops *d, const char *why)
{
    if (!d->bytes)
        return;
    char line[LAST_LINE_ROOM / 2];
    int n = snprintf(line, sizeof line,
                     s->events ? "%s{\"@level\":\"warn\",\"@message\":\"dayfly: %" PRIu64
                                 " bytes (%" PRIu64 " lines) of events were dropped %s\","
                                 "\"@module\":\"dayfly\",\"type\":\"log\"}\n"
                               : "%sdayfly: %" PRIu64 " bytes (%" PRIu64
                                 " lines) of log were dropped %s\n",
                     s->mid_line ? "\n" : "", d->bytes, d->lines, why);
    if (n < 0 || (size_t)n >= sizeof line)
        DF_BUG("the last line of a spool has %d bytes", n);
    if (write_at_end(s, line, (size_t)n, NULL) == 0)
        *d = (struct df_spool_drops){0};
}

void df_spool_finish(struct df_spool *s)
{
    char cap[32], why[64];
    size_words(s->max, cap);
    (void)snprintf(why, sizeof why, "past the cap of %s", cap);
    add_note(s, &s->failed, "because the spool could not be written");
    add_note(s, &s->over_cap, why);
}

int df_spool_read(const struct df_spool *s, uint64_t offset, char *to, size_t n, struct df_err *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = pread(s->fd, to + done, n - done, (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return df_fail_errno(err, errno, "read spool");
        if (r == 0)
            return df_fail(err, DF_ERR_SYSTEM, "the spool was truncated");
        done += (size_t)r;
    }
    return 0;
}

void df_spool_reclaim(struct df_spool *s, uint64_t offset)
{
    uint64_t upto = offset & ~(uint64_t)(DF_MIB - 1);
    if (upto <= s->reclaimed)
        return;
    /* A file system without holes keeps the bytes; the cap bounds them. */
    (void)fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->reclaimed,
                    (off_t)(upto - s->reclaimed));
    s->reclaimed = upto;
}
