/* First the mark, then claiming it, then looking whether it is still ours. */
#include "common/blob/bucket_owner.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/blob/bucket_tries.h"

#define OWNER "owner"

enum { TURNS = 3, ID_MAX = 64 }; /* others may put their mark between our look and our put */

struct df_bucket_owner {
    char *id;
    pthread_mutex_t lock;   /* of what follows; not held during a request */
    int64_t looked_us;      /* monotonic */
    char other[ID_MAX + 1]; /* whose it is now; "": ours */
};

static char *first_line(const struct df_buf *mark)
{
    return strndup(df_buf_str(mark), strcspn(df_buf_str(mark), "\r\n"));
}

/* *ret: what the mark says; *ret_version is empty where none is. The caller frees. */
static int read_mark(struct df_bucket *b, char **ret, struct df_bucket_version *ret_version,
                     struct df_err *err)
{
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_KIB);
    struct df_err why = {0};
    *ret_version = (struct df_bucket_version){""};
    if (df_bucket_get(b, OWNER, &mark, ret_version, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return df_check_alloc(*ret = first_line(&mark), err);
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

static int refuse(const struct df_bucket *b, const char *id, const char *former, const char *other,
                  struct df_err *err)
{
    DF_FREE char *given =
        former ? df_strf(", not to %.64s, which blobs.takeOver names", former) : strdup("");
    if (!given)
        return df_fail_oom(err);
    return df_fail_reason(
        err, DF_ERR_USER, "ForeignBlobs",
        "%s belongs to the dayfly installation %.64s%s, and this is %s: give each a "
        "bucket or prefix of its own. If that one is gone (its data directory was "
        "lost, or restored here), blobs.takeOver: %.64s makes it this one's",
        b->place, other, given, id, other);
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
        return refuse(b, id, former, there, err);
    if (put_mark(b, id, &version, &why) == 0)
        return 0;
    return why.cls == DF_ERR_CONFLICT ? 1 : df_err_pass(err, &why);
}

static int put_own_mark(struct df_bucket *b, const char *id, const char *former, struct df_err *err)
{
    for (int i = 0; i < TURNS; i++) {
        int result = take_turn(b, id, former, err);
        if (result <= 0)
            return result;
    }
    return df_fail(err, DF_ERR_RETRY,
                   "%s: other services are writing the mark of its owner right now: try again",
                   b->place);
}

int df_bucket_claim(struct df_bucket *b, const char *id, const char *former,
                    struct df_bucket_owner **ret, struct df_err *err)
{
    int64_t now_us = df_mono_us();
    if (put_own_mark(b, id, former, err) < 0)
        return -1;
    struct df_bucket_owner *o = calloc(1, sizeof(*o));
    char *copy = strdup(id);
    if (!o || !copy) {
        free(o);
        free(copy);
        return df_fail_oom(err);
    }
    *o = (struct df_bucket_owner){.id = copy, .looked_us = now_us};
    (void)pthread_mutex_init(&o->lock, NULL);
    *ret = o;
    return 0;
}

void df_bucket_owner_free(struct df_bucket_owner *o)
{
    if (!o)
        return;
    (void)pthread_mutex_destroy(&o->lock);
    free(o->id);
    free(o);
}

/* ---- looking again ---- */

/* A mark that was removed is nobody's: the next start puts ours. One attempt: a write that follows
 * has its own. */
static int look(struct df_bucket_owner *o, struct df_bucket *b, struct df_err *err)
{
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_KIB);
    struct df_bucket_version version;
    struct df_err why = {0};
    if (b->ops->get(b, OWNER, &mark, &version, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    DF_FREE char *there = first_line(&mark);
    if (!there)
        return df_fail_oom(err);
    if (df_streq(there, o->id))
        return 0;
    (void)pthread_mutex_lock(&o->lock);
    (void)snprintf(o->other, sizeof(o->other), "%s", *there ? there : "(without an id)");
    (void)pthread_mutex_unlock(&o->lock);
    return 0;
}

static int check_other(struct df_bucket_owner *o, const struct df_bucket *b, struct df_err *err)
{
    char other[sizeof(o->other)];
    (void)pthread_mutex_lock(&o->lock);
    memcpy(other, o->other, sizeof(other));
    (void)pthread_mutex_unlock(&o->lock);
    return !*other ? 0
                   : df_fail_reason(
                         err, DF_ERR_SYSTEM, DF_BLOB_TAKEN_OVER,
                         "the dayfly installation %s took %s over from this one, %s, which writes "
                         "nothing there any more: stop this service, or restart it with "
                         "blobs.takeOver: %s to take it back",
                         other, b->place, o->id, other);
}

/* One of several threads looks; the others go on. */
static bool is_due(struct df_bucket_owner *o)
{
    int64_t now_us = df_mono_us();
    (void)pthread_mutex_lock(&o->lock);
    bool due = !*o->other && now_us - o->looked_us > DF_BUCKET_OWNER_SECONDS * INT64_C(1000000);
    if (due)
        o->looked_us = now_us;
    (void)pthread_mutex_unlock(&o->lock);
    return due;
}

int df_bucket_owner_allows(struct df_bucket_owner *o, struct df_bucket *b, struct df_err *err)
{
    if (!o)
        return 0;
    if (is_due(o))
        (void)!look(o, b, NULL);
    return check_other(o, b, err);
}

int df_bucket_owner_check(struct df_bucket_owner *o, struct df_bucket *b, bool at_once,
                          struct df_err *err)
{
    if (!o)
        return 0;
    return at_once && look(o, b, err) < 0 ? -1 : check_other(o, b, err);
}
