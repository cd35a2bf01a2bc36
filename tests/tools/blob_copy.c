/*
 * blob_copy put KEY FILE, blob_copy get KEY [FILE]: one blob, to or from the bucket of
 * blob_bucket.c's environment. put moves the file away, as the service does with a finished plan;
 * get fetches into an unnamed file, and copies that into FILE, which exists. Prints the most memory
 * it had. tests/bench/blobs.py measures it.
 */
#include <fcntl.h>
#include <sys/sendfile.h>

#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/blob/bucket.h"
#include "common/blob/s3.h"
#include "common/http/http.h"

static int open_blobs(const char *directory, struct df_blob **ret, struct df_err *err)
{
    static const unsigned char key[DF_KEY_LEN] = "the key of this measurement.....";
    const struct df_s3_options s3 = {.bucket = getenv("BUCKET"),
                                     .region = "us-east-1",
                                     .endpoint = getenv("BUCKET_ENDPOINT"),
                                     .path_style = true};
    DF_KEYRING keys = {0};
    struct df_bucket *bucket = NULL;
    const struct df_blob_bucket_options o = {.keys = &keys, .directory = directory};
    if (df_http_global_init(err) < 0 || df_keyring_add(&keys, key, err) < 0 ||
        df_s3_bucket_new(&s3, &bucket, err) < 0)
        return -1;
    return df_blob_bucket_open(bucket, &o, ret, err);
}

static int copy_out(struct df_blob *b, const char *key, const char *path, struct df_err *err)
{
    DF_CLOSE int from = -1;
    int64_t left = 0;
    if (df_blob_open_read(b, key, &from, &left, err) < 0)
        return -1;
    if (!path)
        return 0;
    DF_CLOSE int to = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (to < 0)
        return df_fail(err, DF_ERR_USER, "%s cannot be written", path);
    for (ssize_t n; left > 0; left -= n) {
        n = sendfile(to, from, NULL, (size_t)left);
        if (n <= 0)
            return df_fail(err, DF_ERR_SYSTEM, "%s ended too early", key);
    }
    return 0;
}

/* The most memory that this process had. */
static void print_peak(void)
{
    DF_BUF struct df_buf status = DF_BUF_INIT(DF_MIB);
    const char *peak = df_fs_read("/proc/self/status", &status, NULL) == 0
                           ? strstr(df_buf_str(&status), "VmHWM:")
                           : NULL;
    (void)printf("%.*s\n", peak ? (int)strcspn(peak, "\n") : 0, peak ? peak : "");
}

int main(int argc, char **argv)
{
    struct df_err err = {0};
    DF_BLOB struct df_blob *b = NULL;
    const char *directory = getenv("TMPDIR");
    if (argc < 3 || (argc < 4 && !df_streq(argv[1], "get")) || !directory) {
        df_error("TMPDIR=... blob_copy put KEY FILE, or get KEY [FILE]");
        return 2;
    }
    bool put = df_streq(argv[1], "put");
    if (open_blobs(directory, &b, &err) == 0 && (put ? df_blob_put_file(b, argv[2], argv[3], &err)
                                                     : copy_out(b, argv[2], argv[3], &err)) == 0) {
        print_peak();
        return 0;
    }
    df_error("%s", err.message);
    return 1;
}
