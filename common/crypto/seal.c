/*
 * A sealed file: "DFSEAL1\n", 32 random bytes (the salt), then chunks of 1 MiB of text, each
 * followed by its tag. Every file has its own key, derived from the salt, so that the chunk's
 * number can be its nonce; the nonce's last byte says whether the chunk is the last one. A file has
 * at least one chunk, which may be empty.
 */
#include <errno.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/crypto/aead.h"
#include "common/crypto/crypto.h"

#define CHUNK ((size_t)1024 * 1024)
#define MAGIC "DFSEAL1\n"
#define MAGIC_LEN ((size_t)8)
#define SALT_LEN ((size_t)32)
#define HEADER_LEN (MAGIC_LEN + SALT_LEN)
#define MAX_CHUNKS ((uint64_t)1 << 32)

/* Fills bytes from position at; fewer than n only at the end of the file. */
static int read_at(int fd, unsigned char *bytes, size_t n, int64_t at, size_t *ret_n,
                   struct df_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, bytes + done, n - done, at + (int64_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return df_fail_errno(err, errno, "read");
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_n = done;
    return 0;
}

static int at_end(int fd, int64_t at, bool *ret, struct df_err *err)
{
    unsigned char one;
    size_t n = 0;
    if (read_at(fd, &one, 1, at, &n, err) < 0)
        return -1;
    *ret = n == 0;
    return 0;
}

static int file_key(const unsigned char key[DF_KEY_LEN], const unsigned char salt[SALT_LEN],
                    unsigned char out[DF_KEY_LEN], struct df_err *err)
{
    char purpose[sizeof("file/") + 2 * SALT_LEN] = "file/";
    df_hex(salt, SALT_LEN, purpose + strlen("file/"));
    return df_derive_key(key, purpose, out, err);
}

static void chunk_nonce(uint64_t number, bool last, unsigned char out[DF_GCM_NONCE])
{
    memset(out, 0, DF_GCM_NONCE);
    for (size_t i = 0; i < 8; i++)
        out[3 + i] = (unsigned char)(number >> (56 - 8 * i));
    out[DF_GCM_NONCE - 1] = last;
}

/* The state of sealing or opening a file; chunk is the buffer for one chunk and its tag. */
struct sealing {
    unsigned char key[DF_KEY_LEN];
    const char *aad;
    unsigned char *chunk;
    size_t used; /* of chunk: to wipe all of it costs more than to seal a small file */
    int in_fd, out_fd;
    int64_t at; /* offset in in_fd */
};

static void sealing_end(struct sealing *s)
{
    explicit_bzero(s->key, sizeof(s->key));
    if (s->chunk)
        explicit_bzero(s->chunk, s->used);
    free(s->chunk);
}

/* Reads the next bytes: fewer than `most` only at the end of the file. */
static int read_chunk(struct sealing *s, size_t most, size_t *ret_n, struct df_err *err)
{
    size_t n = most;
    int result = read_at(s->in_fd, s->chunk, most, s->at, &n, err);
    s->used = s->used > n ? s->used : n;
    s->at += (int64_t)n;
    *ret_n = n;
    return result;
}

static int seal_chunk(struct sealing *s, uint64_t number, bool *ret_last, struct df_err *err)
{
    size_t n = 0;
    bool last = true;
    if (read_chunk(s, CHUNK, &n, err) < 0)
        return -1;
    if (n == CHUNK && at_end(s->in_fd, s->at, &last, err) < 0)
        return -1;
    unsigned char nonce[DF_GCM_NONCE];
    chunk_nonce(number, last, nonce);
    if (df_gcm_seal(s->key, nonce, s->aad, s->chunk, n, err) < 0)
        return -1;
    *ret_last = last;
    return df_fs_write_all(s->out_fd, s->chunk, n + DF_GCM_TAG, err);
}

static int open_chunk(struct sealing *s, uint64_t number, bool *ret_last, struct df_err *err)
{
    size_t n = 0;
    bool last = true;
    if (read_chunk(s, CHUNK + DF_GCM_TAG, &n, err) < 0)
        return -1;
    if (n < DF_GCM_TAG)
        return df_fail(err, DF_ERR_DENIED, "the sealed file is cut");
    if (n == CHUNK + DF_GCM_TAG && at_end(s->in_fd, s->at, &last, err) < 0)
        return -1;
    unsigned char nonce[DF_GCM_NONCE];
    chunk_nonce(number, last, nonce);
    if (df_gcm_open(s->key, nonce, s->aad, s->chunk, n - DF_GCM_TAG, err) < 0)
        return -1;
    *ret_last = last;
    return df_fs_write_all(s->out_fd, s->chunk, n - DF_GCM_TAG, err);
}

static int each_chunk(struct sealing *s,
                      int (*one)(struct sealing *, uint64_t, bool *, struct df_err *),
                      struct df_err *err)
{
    s->chunk = malloc(CHUNK + DF_GCM_TAG);
    if (!s->chunk)
        return df_fail_oom(err);
    bool last = false;
    for (uint64_t number = 0; !last; number++) {
        if (number == MAX_CHUNKS)
            return df_fail(err, DF_ERR_LIMIT, "the file is too large to seal");
        if (one(s, number, &last, err) < 0)
            return -1;
    }
    return 0;
}

int df_seal_file(const unsigned char key[DF_KEY_LEN], const char *aad, int in_fd, int out_fd,
                 struct df_err *err)
{
    unsigned char header[HEADER_LEN];
    memcpy(header, MAGIC, MAGIC_LEN);
    if (df_random(header + MAGIC_LEN, SALT_LEN, err) < 0)
        return -1;
    DF_CLEANUP(sealing_end)
    struct sealing s = {.aad = aad, .in_fd = in_fd, .out_fd = out_fd, .at = 0};
    if (file_key(key, header + MAGIC_LEN, s.key, err) < 0 ||
        df_fs_write_all(out_fd, header, HEADER_LEN, err) < 0)
        return -1;
    return each_chunk(&s, seal_chunk, err);
}

static bool is_header(const unsigned char *header, size_t n)
{
    return n == HEADER_LEN && memcmp(header, MAGIC, MAGIC_LEN) == 0;
}

int df_sealed_file(int fd, bool *ret, struct df_err *err)
{
    unsigned char header[HEADER_LEN];
    size_t n = 0;
    if (read_at(fd, header, HEADER_LEN, 0, &n, err) < 0)
        return -1;
    *ret = is_header(header, n);
    return 0;
}

int64_t df_sealed_size(int64_t n)
{
    int64_t full = n / (int64_t)CHUNK, rest = n % (int64_t)CHUNK;
    int64_t chunks = full + (rest || !full);
    return (int64_t)HEADER_LEN + n + chunks * (int64_t)DF_GCM_TAG;
}

int df_open_file(const unsigned char key[DF_KEY_LEN], const char *aad, int in_fd, int64_t begin,
                 int out_fd, struct df_err *err)
{
    unsigned char header[HEADER_LEN];
    size_t n = 0;
    if (read_at(in_fd, header, HEADER_LEN, begin, &n, err) < 0)
        return -1;
    if (!is_header(header, n))
        return df_fail(err, DF_ERR_DENIED, "not a sealed file");
    DF_CLEANUP(sealing_end)
    struct sealing s = {
        .aad = aad, .in_fd = in_fd, .out_fd = out_fd, .at = begin + (int64_t)HEADER_LEN};
    if (file_key(key, header + MAGIC_LEN, s.key, err) < 0)
        return -1;
    return each_chunk(&s, open_chunk, err);
}
