#include <errno.h>
#include <fcntl.h>
#include <strings.h>

#include "common/archive/archive.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "common/http/http.h"
#include "runner/source/fetch.h"

struct download {
    int fd;
    struct df_err *err; /* of a piece that could not be stored */
    bool failed;
};

static int store_piece(void *arg, const char *bytes, size_t n)
{
    struct download *d = arg;
    d->failed = df_fs_write_all(d->fd, bytes, n, d->err) < 0;
    return d->failed ? -1 : 0;
}

static int connect_http(const struct df_fetch *f, struct df_http **ret, struct df_err *err)
{
    DF_FREE char *ca = NULL;
    const struct df_source_spec *s = f->spec;
    if (s->ca_certificate && df_fetch_private_file(f, "ca.pem", s->ca_certificate, &ca, err) < 0)
        return -1;
    const struct df_http_options o = {.ca_file = ca,
                                      .user = !s->password  ? NULL
                                              : s->username ? s->username
                                                            : "git",
                                      .password = s->password,
                                      .follow_redirects = true};
    return df_http_new(&o, ret, err);
}

static int download_archive(const struct df_fetch *f, int fd, struct df_err *err)
{
    DF_HTTP struct df_http *h = NULL;
    if (connect_http(f, &h, err) < 0)
        return -1;
    struct download d = {.fd = fd, .err = err};
    struct df_http_request req = DF_HTTP_REQUEST("GET", f->spec->url);
    req.timeout_ms = -1;
    req.idle_timeout_ms = DF_LIMIT_HTTP_IDLE_SECONDS * 1000;
    req.max_response = DF_LIMIT_ARCHIVE_DOWNLOAD;
    req.on_data = store_piece;
    req.arg = &d;
    req.stop = f->stop;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (df_http_send(h, &req, &r, err) < 0 || d.failed)
        return -1;
    if (r.status / 100 != 2 && df_http_check(&r, f->spec->url, err) == 0)
        return df_fail(err, DF_ERR_SYSTEM, "%s: HTTP %d", f->spec->url, r.status);
    return r.status / 100 == 2 ? 0 : -1;
}

/* Opens the archive: the file on disk, or a downloaded one. */
static int open_archive(const struct df_fetch *f, int *ret, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (f->spec->path) {
        df_fetch_note(f, "unpacking %s", f->spec->path);
        fd = open(f->spec->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            return df_fail_errno(err, errno, "open %s", f->spec->path);
        if (df_fetch_check_shown(f, fd, err) < 0)
            return -1;
        *ret = DF_TAKE_FD(fd);
        return 0;
    }
    df_fetch_note(f, "fetching %s", f->spec->url);
    if (df_fs_unnamed(f->private_dir, &fd, err) < 0 || download_archive(f, fd, err) < 0)
        return -1;
    *ret = DF_TAKE_FD(fd);
    return 0;
}

static int verify_digest(const struct df_source_spec *s, int fd, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    if (!s->sha256)
        return 0;
    if (df_sha256_file_hex(fd, digest, NULL, err) < 0)
        return df_err_wrap(err, "%s", s->url);
    if (strcasecmp(digest, s->sha256) != 0)
        return df_source_refuse(err,
                                "%s has SHA-256 %s, but source.sha256 is %s: it is not the archive "
                                "that was meant",
                                s->url, digest, s->sha256);
    return 0;
}

int df_fetch_archive(const struct df_fetch *f, struct df_err *err)
{
    static const struct df_archive_limits limits = {(int64_t)DF_LIMIT_ARCHIVE_BYTES,
                                                    DF_LIMIT_ARCHIVE_ENTRIES};
    DF_CLOSE int fd = -1;
    if (open_archive(f, &fd, err) < 0 || verify_digest(f->spec, fd, err) < 0)
        return -1;
    return df_archive_unpack(fd, f->checkout, !f->spec->keeps_top, &limits, err) < 0
               ? df_err_wrap(err, "%s", f->spec->url)
               : 0;
}
