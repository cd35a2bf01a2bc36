#include "spawner/service/probe_blobs.h"

/* Three requests a minute cost nothing, and an alert wants to know within one: a store that takes
 * every request and answers none is found out after most of a minute. What failed is watched more
 * closely, because somebody is waiting. */
#define PERIOD_US INT64_C(20000000)
#define PERIOD_FAILING_US INT64_C(5000000)

static int64_t probe(void *arg)
{
    struct df_blob *blobs = arg;
    df_blob_probe(blobs);
    return df_blob_check(blobs, NULL) < 0 ? PERIOD_FAILING_US : PERIOD_US;
}

int df_probe_blobs_start(struct df_blob *blobs, struct df_periodic **ret, struct df_err *err)
{
    return df_periodic_start(probe, blobs, PERIOD_US, ret, err) < 0
               ? df_err_wrap(err, "the thread that asks the store of blobs")
               : 0;
}
