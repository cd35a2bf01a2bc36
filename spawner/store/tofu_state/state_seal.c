/*
 * How a document lies in its blob: compressed (a store cannot compress it once it is sealed), then
 * sealed with the vault's key "state" and bound to the blob's key, so that it opens under no other
 * name.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/store/tofu_state/states.h"
#include "spawner/store/vault/vault.h"

enum { PIECE = 256 * 1024, LEVEL = 3, FRAME_HEAD = 18 /* the longest of zstd */ };

/* ---- compression ---------------------------------------------------------------------------- */

/* Two pieces of a document. Most documents are one; what was used of them is wiped at the end. */
struct pieces {
    ssize_t n; /* bytes in in; 0 at the end of the file */
    size_t used_in, used_out;
    unsigned char in[PIECE], out[PIECE];
};

/* NULL: no memory. */
static struct pieces *new_pieces(void)
{
    struct pieces *p = malloc(sizeof(*p));
    if (p)
        p->used_in = p->used_out = 0;
    return p;
}

static void cleanup_pieces(struct pieces **p)
{
    if (*p) {
        explicit_bzero((*p)->in, (*p)->used_in);
        explicit_bzero((*p)->out, (*p)->used_out);
    }
    free(*p);
}

static void cleanup_packer(ZSTD_CCtx **c)
{
    (void)ZSTD_freeCCtx(*c);
}

static void cleanup_unpacker(ZSTD_DCtx **d)
{
    (void)ZSTD_freeDCtx(*d);
}

static int read_piece(struct pieces *p, int fd, int64_t *at, struct df_err *err)
{
    do {
        p->n = pread(fd, p->in, PIECE, *at);
    } while (p->n < 0 && errno == EINTR);
    if (p->n < 0)
        return df_fail_errno(err, errno, "read a state");
    p->used_in = p->used_in > (size_t)p->n ? p->used_in : (size_t)p->n;
    *at += p->n;
    return 0;
}

static int write_piece(struct pieces *p, size_t n, int fd, struct df_err *err)
{
    p->used_out = p->used_out > n ? p->used_out : n;
    return df_fs_write_all(fd, p->out, n, err);
}

/* A place for n bytes of a document until its descriptor is closed: in memory, so that a state can
 * be read when the disk is full, and is not written there in clear. */
static int open_place(struct df_states *s, uint64_t n, int *ret_fd, struct df_err *err)
{
    if (n > DF_LIMIT_STATE_IN_MEMORY)
        return df_fs_unnamed(df_blob_tmp_dir(s->blobs), ret_fd, err);
    int fd = memfd_create("state", MFD_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "memory for a state");
    *ret_fd = fd;
    return 0;
}

static int size_of(int fd, int64_t *ret, struct df_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "read a state");
    *ret = st.st_size;
    return 0;
}

/* Compresses the file in_fd of n bytes into out_fd. */
static int compress(int in_fd, int64_t n, int out_fd, struct df_err *err)
{
    DF_CLEANUP(cleanup_pieces) struct pieces *p = new_pieces();
    DF_CLEANUP(cleanup_packer) ZSTD_CCtx *c = ZSTD_createCCtx();
    int64_t at = 0;
    bool last = false;
    if (!p || !c || ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(c, (unsigned long long)n)))
        return df_fail_oom(err);
    do {
        if (read_piece(p, in_fd, &at, err) < 0)
            return -1;
        ZSTD_inBuffer in = {p->in, (size_t)p->n, 0};
        last =
            at >= n || !p->n; /* zstd copies nothing if all comes in one piece that is the last */
        for (bool more = true; more;) {
            ZSTD_outBuffer out = {p->out, PIECE, 0};
            size_t left = ZSTD_compressStream2(c, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
            if (ZSTD_isError(left))
                return df_fail(err, DF_ERR_SYSTEM, "a state cannot be compressed: %s",
                               ZSTD_getErrorName(left));
            if (write_piece(p, out.pos, out_fd, err) < 0)
                return -1;
            more = last ? left > 0 : in.pos < in.size;
        }
    } while (!last);
    return 0;
}

/* Writes the piece p to out_fd, expanded. *left: 0 if the document is complete. */
static int expand_piece(ZSTD_DCtx *d, struct pieces *p, int out_fd, size_t *left,
                        struct df_err *err)
{
    ZSTD_inBuffer in = {p->in, (size_t)p->n, 0};
    for (bool more = true; more;) {
        ZSTD_outBuffer out = {p->out, PIECE, 0};
        *left = ZSTD_decompressStream(d, &out, &in);
        if (ZSTD_isError(*left))
            return df_fail(err, DF_ERR_SYSTEM, "a state does not expand: %s",
                           ZSTD_getErrorName(*left));
        if (write_piece(p, out.pos, out_fd, err) < 0)
            return -1;
        more = in.pos < in.size || out.pos == PIECE;
    }
    return 0;
}

/* The reverse of compress(). What was sealed was not changed: no more comes out than
 * expanded_size() says. */
static int expand(int in_fd, int out_fd, struct df_err *err)
{
    DF_CLEANUP(cleanup_pieces) struct pieces *p = new_pieces();
    DF_CLEANUP(cleanup_unpacker) ZSTD_DCtx *d = ZSTD_createDCtx();
    int64_t at = 0;
    size_t left = 0;
    if (!p || !d)
        return df_fail_oom(err);
    do {
        if (read_piece(p, in_fd, &at, err) < 0 ||
            (p->n && expand_piece(d, p, out_fd, &left, err) < 0))
            return -1;
    } while (p->n);
    return left ? df_fail(err, DF_ERR_SYSTEM, "a state does not expand: it is cut") : 0;
}

static int expanded_size(int fd, int64_t *ret, struct df_err *err)
{
    unsigned char head[FRAME_HEAD];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    unsigned long long size = ZSTD_getFrameContentSize(head, n > 0 ? (size_t)n : 0);
    if (size > DF_LIMIT_STEP_FILE) /* unknown, or an error */
        return df_fail(err, DF_ERR_SYSTEM, "a state does not expand: its size is unknown");
    *ret = (int64_t)size;
    return 0;
}

/* ---- the seal ------------------------------------------------------------------------------- */

struct key {
    unsigned char bytes[DF_KEY_LEN];
};

static void wipe_key(struct key *k)
{
    explicit_bzero(k->bytes, sizeof(k->bytes));
}
#define KEY DF_CLEANUP(wipe_key) struct key

int df_state_pack(struct df_states *s, const char *path, struct df_state_packed *ret,
                  struct df_err *err)
{
    DF_STATE_PACKED p = {open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), -1, 0};
    int64_t size = 0;
    if (p.file < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (size_of(p.file, &size, err) < 0 || open_place(s, (uint64_t)size, &p.packed, err) < 0 ||
        compress(p.file, size, p.packed, err) < 0 || size_of(p.packed, &size, err) < 0)
        return -1;
    *ret = (struct df_state_packed){DF_TAKE_FD(p.file), DF_TAKE_FD(p.packed), df_sealed_size(size)};
    return 0;
}

/* The file stays the same one: a new one, and the removal of this one, would cost as much as a
 * sync. */
int df_state_seal(struct df_states *s, const struct df_state_key *key, const char *line,
                  const struct df_state_packed *p, struct df_err *err)
{
    KEY k;
    if (df_vault_key(s->vault, "state", k.bytes, err) < 0 ||
        df_fs_write_all(p->file, line, strlen(line), err) < 0 ||
        df_seal_file(k.bytes, key->text, p->packed, p->file, err) < 0)
        return -1;
    if (ftruncate(p->file, (off_t)strlen(line) + p->sealed_size) < 0)
        return df_fail_errno(err, errno, "seal a state");
    return 0;
}

static int unseal(struct df_states *s, const struct df_state_key *key, int blob, int64_t begin,
                  int *ret_fd, int64_t *ret_size, struct df_err *err)
{
    KEY k;
    DF_CLOSE int packed = -1, document = -1;
    int64_t sealed_size = 0, size = 0;
    if (size_of(blob, &sealed_size, err) < 0 ||
        open_place(s, (uint64_t)sealed_size, &packed, err) < 0 ||
        df_vault_key(s->vault, "state", k.bytes, err) < 0 ||
        df_open_file(k.bytes, key->text, blob, begin, packed, err) < 0 ||
        expanded_size(packed, &size, err) < 0 ||
        open_place(s, (uint64_t)size, &document, err) < 0 || expand(packed, document, err) < 0)
        return -1;
    if (lseek(document, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "rewind a state");
    *ret_fd = DF_TAKE_FD(document);
    *ret_size = size;
    return 0;
}

int df_state_unseal(struct df_states *s, const struct df_state_key *key, int *blob, int64_t begin,
                    int *ret_fd, int64_t *ret_size, struct df_err *err)
{
    bool sealed = false;
    if (!begin && df_sealed_file(*blob, &sealed, err) < 0)
        return -1;
    if (begin || sealed)
        return unseal(s, key, *blob, begin, ret_fd, ret_size, err);
    if (size_of(*blob, ret_size, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(*blob);
    return 0;
}
