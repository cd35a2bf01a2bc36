/*
 * fs.h - files, done safely: capped reads, durable writes, trees removed without following links.
 *
 * "Durable" means: after the call returned 0, the content survives a power cut (fsync of the file
 * and of its directory). A path NULL counts as out of memory, so that what makes a path need not be
 * checked before; except where a function has no err. Thread rule: any thread.
 */
#ifndef DF_BASE_FS_H
#define DF_BASE_FS_H

#include <sys/types.h>

#include "common/base/buf.h"

/* Reads a whole file, at most b->max bytes (class LIMIT beyond). Appends to b. */
int df_fs_read(const char *path, struct df_buf *b, struct df_err *err) DF_MUST_CHECK;
int df_fs_read_fd(int fd, struct df_buf *b, struct df_err *err) DF_MUST_CHECK;
/* Opens a file where a module can write. path is absolute and resolved. Fails if a part of it is a
 * symbolic link (ELOOP), which would lead to what the module itself does not see, or if it is not a
 * regular file (class USER). flags and mode: of open(2). The caller closes *ret_fd. On a kernel
 * without openat2(2) only the last part is checked for a link. */
int df_fs_open_plain(const char *path, int flags, mode_t mode, int *ret_fd,
                     struct df_err *err) DF_MUST_CHECK;
/* The same for a directory, to read. The caller closes; -1 with errno. */
int df_fs_open_plain_dir(const char *path) DF_MUST_CHECK;
/* The real path of an open file or directory; the caller frees. NULL with err: it has none. */
char *df_fs_path_of(int fd, struct df_err *err);
/* True if path is the directory or below it. Both are real paths. */
bool df_fs_is_within(const char *path, const char *directory);
/* df_fs_read() of a secret. DENIED NotPrivate if others can read or write the file, or it is
 * another user's, or no plain file. ELOOP: it is a link. */
int df_fs_read_private(const char *path, struct df_buf *b, struct df_err *err) DF_MUST_CHECK;

/* df_fs_read() of a file of df_fs_open_plain(). */
int df_fs_read_plain(const char *path, struct df_buf *b, struct df_err *err) DF_MUST_CHECK;

/* Appends the bytes from offset to end, at most up to b->max and the end of the file. */
int df_fs_read_at(int fd, int64_t offset, int64_t end, struct df_buf *b,
                  struct df_err *err) DF_MUST_CHECK;

/* Writes all n bytes, through EINTR and short writes. */
int df_fs_write_all(int fd, const void *bytes, size_t n, struct df_err *err) DF_MUST_CHECK;
/* The same at this offset; the descriptor's own stays as it is. */
int df_fs_write_at(int fd, int64_t offset, const void *bytes, size_t n,
                   struct df_err *err) DF_MUST_CHECK;

/* Copies the rest of one open file to another, and takes its bytes off *left. Class LIMIT without
 * an os_errno if there are more; a full disk has one. left NULL: no limit. */
int df_fs_copy(int from, int to, int64_t *left, struct df_err *err) DF_MUST_CHECK;

/* Replaces path by a file with this content: temporary file beside it, fsync, rename, fsync of the
 * directory. Readers see the old content or the new, never a part. */
int df_fs_replace(const char *path, const void *bytes, size_t n, mode_t mode,
                  struct df_err *err) DF_MUST_CHECK;

/* The same, but fails with class CONFLICT and leaves things alone if path exists. */
int df_fs_create(const char *path, const void *bytes, size_t n, mode_t mode,
                 struct df_err *err) DF_MUST_CHECK;

/* df_fs_replace() without fsync: for content that may be lost in a power cut. */
int df_fs_write(const char *path, const void *bytes, size_t n, mode_t mode,
                struct df_err *err) DF_MUST_CHECK;

/* Opens a new unnamed file in the directory: a killed process leaves nothing behind. The caller
 * closes it. */
int df_fs_unnamed(const char *directory, int *ret_fd, struct df_err *err) DF_MUST_CHECK;

/* Opens a lock file, makes it if there is none, and waits until this process alone has the lock.
 * The caller closes *ret_fd, which gives the lock back. */
int df_fs_lock(const char *path, mode_t mode, int *ret_fd, struct df_err *err) DF_MUST_CHECK;

/* fsync of a directory, so that names made or removed in it are durable. */
int df_fs_sync_dir(const char *path, struct df_err *err) DF_MUST_CHECK;

/* Creates path and its parents; an existing directory is success. */
int df_fs_mkdirs(const char *path, mode_t mode, struct df_err *err) DF_MUST_CHECK;

/* Removes a file or a whole tree; never follows a symbolic link; absent is success. Directories
 * that their owner may not write (module caches) are made writable first. */
int df_fs_remove_tree(const char *path, struct df_err *err) DF_MUST_CHECK;

/* Replaces whatever is at path (a link, a fifo, a tree) by an empty directory (0700); its parents
 * are created. */
int df_fs_renew_dir(const char *path, struct df_err *err) DF_MUST_CHECK;

/* a/b; the caller frees; NULL on no memory, or if one of them is NULL. */
char *df_fs_join(const char *dir, const char *name);

bool df_fs_exists(const char *path);

#endif
