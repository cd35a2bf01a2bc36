/*
 * spool.h - an append-only file with a size limit, which keeps one stream (log or events) until the
 * spawner has it.
 *
 * Byte i of the file is byte i of the stream, also after its front was returned to the disk and
 * reads as a hole. After a runner died the engine therefore continues from the file where the last
 * acknowledged frame ended. The first piece that exceeds the cap and all later ones are dropped and
 * counted; df_spool_finish() reports them in one last line, for which room is reserved. A piece
 * that the disk refused is dropped and counted too, but later ones may succeed.
 * Thread rule: append and finish from one thread; read and reclaim from one other, which must have
 * learned the end under a lock.
 */
#ifndef DF_SPOOL_H
#define DF_SPOOL_H

#include "common/base/err.h"

struct df_spool_drops {
    uint64_t bytes;
    uint64_t lines;
};

struct df_spool {
    int fd;       /* owned; -1: closed */
    bool events;  /* JSON lines; the last line is an event, too */
    uint64_t max; /* the cap, the last line included */
    uint64_t end; /* bytes in the stream */
    bool full;
    bool mid_line; /* the last byte is not a newline */
    struct df_spool_drops over_cap;
    struct df_spool_drops failed;
    uint64_t reclaimed; /* the reader's: bytes below were returned to the disk */
};

#define DF_SPOOL_CLOSED ((struct df_spool){.fd = -1})

/* Creates (or empties) the file dir/name, mode 0600. */
int df_spool_open(struct df_spool *s, const char *dir, const char *name, bool events, uint64_t max,
                  struct df_err *err) DF_MUST_CHECK;
/* Keeps the file. A closed spool is fine. */
void df_spool_close(struct df_spool *s);

/* Fails only if the disk does; dropping past the cap is success. */
int df_spool_append(struct df_spool *s, const char *bytes, size_t n,
                    struct df_err *err) DF_MUST_CHECK;
/* Appends the last line if anything was dropped. A disk that is still full drops it, too. */
void df_spool_finish(struct df_spool *s);

/* Exactly n bytes from offset on; they must have been appended and not reclaimed. */
int df_spool_read(const struct df_spool *s, uint64_t offset, char *to, size_t n,
                  struct df_err *err) DF_MUST_CHECK;
/* Returns the whole megabytes below offset to the disk, if the file system can. They must not be
 * read again. */
void df_spool_reclaim(struct df_spool *s, uint64_t offset);

#endif
