/*
 * spool.h - one stream (log or events) on its way out of the runner: an append-only file, capped.
 *
 * Byte i of the file is byte i of the stream, also after the front was given back to the disk (it
 * then reads as a hole). So whoever finds the file of a runner that died can go on where the last
 * acknowledged frame ended. Once a piece does not fit under the cap, it and everything after it is
 * dropped and counted; df_spool_finish() says so in one last line, for which room is kept. A piece
 * that the disk refused is dropped and counted too, but later ones may fit again.
 * Thread rule: append and finish from one thread; read and reclaim from one other, which must have
 * been told the end by a lock.
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
    bool events;  /* JSON lines: the last line is an event, too */
    uint64_t max; /* the cap, the last line included */
    uint64_t end; /* bytes in the stream */
    bool full;
    bool mid_line; /* the last byte is not a newline */
    struct df_spool_drops over_cap;
    struct df_spool_drops failed;
    uint64_t reclaimed; /* the reader's: everything below was given back */
};

#define DF_SPOOL_CLOSED ((struct df_spool){.fd = -1})

/* Creates (or empties) the file dir/name, mode 0600. */
int df_spool_open(struct df_spool *s, const char *dir, const char *name, bool events, uint64_t max,
                  struct df_err *err) DF_MUST_CHECK;
/* The file stays. A closed spool is fine. */
void df_spool_close(struct df_spool *s);

/* Fails only when the disk does; dropping past the cap is success. */
int df_spool_append(struct df_spool *s, const char *bytes, size_t n,
                    struct df_err *err) DF_MUST_CHECK;
/* The last line, if anything was dropped. A disk that is still full loses it, too. */
void df_spool_finish(struct df_spool *s);

/* Exactly n bytes from offset on; they must have been appended and not reclaimed. */
int df_spool_read(const struct df_spool *s, uint64_t offset, char *to, size_t n,
                  struct df_err *err) DF_MUST_CHECK;
/* Nobody will read below offset again: gives whole megabytes back to the disk, where the file
 * system can. */
void df_spool_reclaim(struct df_spool *s, uint64_t offset);

#endif
