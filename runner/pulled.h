/*
 * pulled.h - what `state pull` prints, as far as two copies of one state are compared.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_RUNNER_PULLED_H
#define DF_RUNNER_PULLED_H

#include "common/base/buf.h"
#include "common/crypto/crypto.h"

struct df_pulled {
    bool exists;   /* false: there is no state yet */
    bool is_empty; /* no outputs and no resources: nobody loses anything with it */
    char lineage[129];
    int64_t serial;
    char content[DF_SHA256_HEX]; /* digest of everything after version, serial and lineage */
};

/* text: the whole output. USER StateRefused for what is no state of format 4. */
int df_pulled_read(const struct df_buf *text, struct df_pulled *ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Appends the text with another serial to out; every other byte stays. Fails as above. */
int df_pulled_renumber(const struct df_buf *text, int64_t serial, struct df_buf *out,
                       struct df_err *err) DF_MUST_CHECK;

/* text: the beginning of the output, at least DF_PULLED_HEAD bytes if there are as many. Reads
 * exists, lineage and serial alone. Fails likewise. */
#define DF_PULLED_HEAD 4096
int df_pulled_read_head(const char *text, struct df_pulled *ret, struct df_err *err) DF_MUST_CHECK;

/* Same lineage and content; the serial may differ. */
bool df_pulled_is_same(const struct df_pulled *a, const struct df_pulled *b);

#endif
