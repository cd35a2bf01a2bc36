/*
 * replay.c - runs a fuzzer over the files that its arguments name: what the fuzzers found once is
 * tried in every check, in programs that gcc built with the sanitizers for the other tests.
 */
#include "common/base/fs.h"
#include "common/base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
    DF_BUF struct df_buf input = DF_BUF_INIT(64 * DF_MIB);
    struct df_err err;
    if (df_fs_read(path, &input, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    (void)fprintf(stderr, "%s\n", path); /* the last one is the one that failed */
    /* A block of just this size: the sanitizer sees a read behind it. */
    uint8_t *data = malloc(input.len);
    if (input.len)
        memcpy(data, input.data, input.len);
    (void)LLVMFuzzerTestOneInput(data, input.len);
    free(data);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "%s: name the files of a corpus\n", argv[0]);
        return 1;
    }
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    return 0;
}
