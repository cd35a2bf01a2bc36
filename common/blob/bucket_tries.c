#include "common/blob/bucket_tries.h"

#include <time.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"

enum { TRIES = 6, FIRST_MS = 100, LAST_MS = 5000, LONGEST_S = 30, LOOK_MS = 100 };

static bool is_hasty(const struct df_bucket *b)
{
    return __atomic_load_n(&b->is_hasty, __ATOMIC_RELAXED);
}

void df_bucket_hasten(struct df_bucket *b)
{
    __atomic_store_n(&b->is_hasty, true, __ATOMIC_RELAXED);
}

static void wait_ms(const struct df_bucket *b, int64_t ms)
{
    for (int64_t end = df_mono_ms() + ms; ms > 0 && !is_hasty(b); ms = end - df_mono_ms()) {
        const struct timespec part = {0, (long)(ms < LOOK_MS ? ms : LOOK_MS) * 1000000};
        (void)nanosleep(&part, NULL);
    }
}

bool df_bucket_repeats(const struct df_bucket *b, int *failures, const struct df_err *why)
{
    if (why->cls != DF_ERR_RETRY || is_hasty(b) || ++*failures == TRIES)
        return false;
    int64_t asked = why->retry_after_s < LONGEST_S ? why->retry_after_s : LONGEST_S;
    int64_t pause = df_backoff_pause(FIRST_MS, LAST_MS, *failures);
    wait_ms(b, asked * 1000 > pause ? asked * 1000 : pause);
    return !is_hasty(b);
}

int df_bucket_get(struct df_bucket *b, const char *name, struct df_buf *out,
                  struct df_bucket_version *ret_version, struct df_err *err)
{
    struct df_err why = {0};
    int failures = 0;
    do {
        df_buf_clear(out);
        if (b->ops->get(b, name, out, ret_version, &why) == 0)
            return 0;
    } while (df_bucket_repeats(b, &failures, &why));
    return df_err_pass(err, &why);
}

int df_bucket_put(struct df_bucket *b, const char *name, const struct df_buf *content,
                  const struct df_bucket_version *version, bool *ret_unsure, struct df_err *err)
{
    struct df_err why = {0};
    int failures = 0;
    do {
        if (b->ops->put(b, name, df_buf_str(content), content->len, version, &why) == 0)
            return 0;
        if (version && why.cls == DF_ERR_NOT_FOUND) /* somebody removed it */
            why.cls = DF_ERR_CONFLICT;
        *ret_unsure = *ret_unsure || why.cls == DF_ERR_RETRY;
    } while (df_bucket_repeats(b, &failures, &why));
    return df_err_pass(err, &why);
}

int df_bucket_remove(struct df_bucket *b, const char *name, const struct df_bucket_version *version,
                     struct df_err *err)
{
    struct df_err why = {0};
    int failures = 0;
    do {
        if (b->ops->remove(b, name, version, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
            return 0;
        if (failures && version && why.cls == DF_ERR_CONFLICT) /* by the attempt before, perhaps */
            why.cls = DF_ERR_RETRY;
    } while (df_bucket_repeats(b, &failures, &why));
    return df_err_pass(err, &why);
}
