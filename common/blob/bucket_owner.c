#include "common/blob/bucket_owner.h"

#include "common/blob/bucket_tries.h"

#define OWNER "owner"

enum { TURNS = 3 }; /* others may put their mark between our look and our put */

/* *ret: what the mark says; *ret_version is empty where none is. The caller frees. */
static int read_mark(struct df_bucket *b, char **ret, struct df_bucket_version *ret_version,
                     struct df_err *err)
{
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_KIB);
    struct df_err why = {0};
    *ret_version = (struct df_bucket_version){""};
    if (df_bucket_get(b, OWNER, &mark, ret_version, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    *ret = strndup(df_buf_str(&mark), strcspn(df_buf_str(&mark), "\r\n"));
    return *ret ? 0 : df_fail_oom(err);
}

static int put_mark(struct df_bucket *b, const char *id, const struct df_bucket_version *version,
                    struct df_err *err)
{
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_KIB);
    bool unsure = false;
    (void)df_buf_addf(&mark,
                      "%s\nis the dayfly installation whose states, plans and logs are here\n", id);
    return df_bucket_put(b, OWNER, &mark, version, &unsure, err);
}

static int refuse(const struct df_bucket *b, const char *id, const char *other, struct df_err *err)
{
    return df_fail_reason(
        err, DF_ERR_USER, "ForeignBlobs",
        "%s belongs to the dayfly installation %.64s, and this is %s: give each a "
        "bucket or prefix of its own. If that one is gone (its data directory was "
        "lost, or restored here), blobs.takeOver: %.64s makes it this one's",
        b->place, other, id, other);
}

/* One turn: 0: the mark is ours; 1: another one was there first, look again. */
static int take_turn(struct df_bucket *b, const char *id, const char *former, struct df_err *err)
{
    DF_FREE char *there = NULL;
    struct df_bucket_version version;
    struct df_err why = {0};
    if (read_mark(b, &there, &version, err) < 0)
        return -1;
    if (df_streq(there, id))
        return 0;
    if (*version.text && !df_streq(there, former))
        return refuse(b, id, there, err);
    if (put_mark(b, id, &version, &why) == 0)
        return 0;
    return why.cls == DF_ERR_CONFLICT ? 1 : df_err_pass(err, &why);
}

int df_bucket_claim(struct df_bucket *b, const char *id, const char *former, struct df_err *err)
{
    for (int i = 0; i < TURNS; i++) {
        int result = take_turn(b, id, former, err);
        if (result <= 0)
            return result;
    }
    return df_fail(err, DF_ERR_RETRY, "%s: others change the mark of its owner now: try again",
                   b->place);
}
