#include "runner/tofu/image_records.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"

enum { HEAD = 4096, SIZE_DIGITS = 24 };

/* The record's name. A program that is shorter than its head has none. */
static int identify(const char *program, char ret[DF_SHA256_HEX], struct df_err *err)
{
    char text[HEAD + SIZE_DIGITS];
    struct stat st;
    DF_CLOSE int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "%s", program);
    if (pread(fd, text, HEAD, 0) != HEAD)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s is shorter than %d bytes", program, HEAD);
    int digits = snprintf(text + HEAD, SIZE_DIGITS, "%lld\n", (long long)st.st_size);
    return df_sha256_hex(text, HEAD + (size_t)digits, ret, err);
}

int df_image_record_read(const char *records, const char *program, struct df_tool *ret,
                         struct df_err *err)
{
    char identity[DF_SHA256_HEX];
    DF_BUF struct df_buf banner = DF_BUF_INIT(256);
    if (identify(program, identity, err) < 0)
        return -1;
    DF_FREE char *path = df_strf("%s/versions/%s", records, identity);
    return df_fs_read(path, &banner, err) < 0 ? -1
                                              : df_tool_parse_banner(df_buf_str(&banner), ret, err);
}
