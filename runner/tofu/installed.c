/* installed.c - the lines of a record: "<digest>  <program>" and, once it can be trusted, "#
 * <identity>". */
#include "runner/tofu/installed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/crypto/crypto.h"

enum { DIGITS = DF_SHA256_HEX - 1, RECORD_MAX = 512 };
#define SETTLED_US ((int64_t)2 * 1000000) /* file systems count in up to two seconds */

/* A program and its record. */
struct program {
    const char *path;
    char *record_path;
    int fd;
    struct stat st; /* before it was read: who changes it meanwhile causes one more comparison */
};

static void program_close(struct program *p)
{
    free(p->record_path);
    if (p->fd >= 0)
        (void)close(p->fd);
}

static int program_open(const char *path, struct program *ret, struct df_err *err)
{
    struct program p = {.path = path, .record_path = df_strf("%s.sha256", path), .fd = -1};
    *ret = p;
    if (!p.record_path)
        return df_fail_oom(err);
    ret->fd = open(path, O_RDONLY | O_CLOEXEC);
    return ret->fd < 0 || fstat(ret->fd, &ret->st) < 0 ? df_fail_errno(err, errno, "open %s", path)
                                                       : 0;
}

/* A file that was changed just now can be changed again without another time of change. */
static bool is_settled(const struct program *p)
{
    int64_t changed_us = (int64_t)p->st.st_ctim.tv_sec * 1000000 + p->st.st_ctim.tv_nsec / 1000;
    return df_real_us() - changed_us > SETTLED_US;
}

/* The record of the program as it is, if it has this digest; the caller frees. NULL: no memory. */
static char *print_record(const struct program *p, const char *digest)
{
    const struct stat *st = &p->st;
    if (!is_settled(p))
        return df_strf("%.*s  %s\n", DIGITS, digest, strrchr(p->path, '/') + 1);
    return df_strf("%.*s  %s\n# %llu %llu %lld %lld.%09ld %lld.%09ld\n", DIGITS, digest,
                   strrchr(p->path, '/') + 1, (unsigned long long)st->st_dev,
                   (unsigned long long)st->st_ino, (long long)st->st_size,
                   (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
                   (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static int write_record(const struct program *p, const char *digest, struct df_err *err)
{
    DF_FREE char *text = print_record(p, digest);
    if (!text)
        return df_fail_oom(err);
    return df_fs_replace(p->record_path, text, strlen(text), 0644, err);
}

static int fail_changed(const struct program *p, const char *found, const char *wanted,
                        struct df_err *err)
{
    bool damaged = strspn(wanted, "0123456789abcdef") < DIGITS;
    return df_fail_reason(err, DF_ERR_DENIED, "ToolChecksum",
                          "%s is not the program that was installed there, and is not started: its "
                          "SHA-256 is %s, and %s%.*s was installed (%s); find out who changed it, "
                          "then remove its directory: the next step downloads it again",
                          p->path, found, damaged ? "an unknown one" : "", damaged ? 0 : DIGITS,
                          wanted, p->record_path);
}

static int compare(const struct program *p, const char *record, struct df_err *err)
{
    char found[DF_SHA256_HEX];
    DF_FREE char *same = print_record(p, record);
    if (!same)
        return df_fail_oom(err);
    bool is_same = df_streq(record, same);
    if (is_same && is_settled(p))
        return 0;
    if (df_sha256_file_hex(p->fd, found, NULL, err) < 0)
        return -1;
    if (strncmp(found, record, DIGITS) != 0)
        return fail_changed(p, found, record, err);
    /* A record that cannot be written costs the next step another comparison. */
    if (!is_same)
        (void)!write_record(p, found, NULL);
    return 0;
}

int df_installed_note(const char *path, struct df_err *err)
{
    DF_CLEANUP(program_close) struct program p = {.fd = -1};
    char digest[DF_SHA256_HEX];
    if (program_open(path, &p, err) < 0 || df_sha256_file_hex(p.fd, digest, NULL, err) < 0)
        return -1;
    return write_record(&p, digest, err);
}

int df_installed_check(const char *path, struct df_err *err)
{
    DF_CLEANUP(program_close) struct program p = {.fd = -1};
    DF_BUF struct df_buf record = DF_BUF_INIT(RECORD_MAX);
    struct df_err why = {0};
    if (program_open(path, &p, err) < 0)
        return -1;
    if (df_fs_read(p.record_path, &record, &why) == 0)
        return compare(&p, df_buf_str(&record), err);
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    (void)!df_installed_note(path, NULL);
    return 0;
}
