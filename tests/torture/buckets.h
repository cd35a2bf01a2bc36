/* Scenarios of torture.c: drivers of buckets, and what proves who asks. */
#include "common/base/token_cache.h"
#include "common/blob/azblob.h"
#include "common/blob/gcs.h"
#include "common/blob/s3.h"

#define NOWHERE "http://127.0.0.1:1" /* nobody listens there */

static int refused_bucket(struct df_bucket *b, struct df_err *err)
{
    const struct df_bucket_sink none = {0};
    const struct df_bucket_version version = {"\"1\""};
    DF_FREE char *after = NULL;
    struct df_err why = {0};
    if (b->ops->put(b, "heads/x", "x", 1, &version, &why) == 0)
        DF_BUG("somebody answered");
    if (why.cls == DF_ERR_RETRY && b->ops->list(b, "heads/", &after, &none, &why) == 0)
        DF_BUG("somebody answered");
    b->ops->close(b);
    return why.cls == DF_ERR_RETRY ? 0 : df_err_pass(err, &why);
}

static int buckets_refused(struct df_err *err)
{
    static char access[] = "AKIA", secret[] = "c2VjcmV0";
    const struct df_aws_keys keys = {.access_key = access, .secret_key = secret};
    const struct df_s3_options s3 = {.bucket = "bucket",
                                     .prefix = "prefix",
                                     .region = "eu-central-1",
                                     .other_region = "auto",
                                     .endpoint = NOWHERE,
                                     .keys = &keys,
                                     .path_style = true};
    const struct df_gcs_options gcs = {
        .bucket = "bucket", .prefix = "prefix", .endpoint = NOWHERE, .token = secret};
    const struct df_azblob_options azblob = {
        .account = "account", .place = "bucket/prefix", .endpoint = NOWHERE, .key = secret};
    struct df_bucket *b = NULL;
    if (df_s3_bucket_new(&s3, &b, err) < 0 || refused_bucket(b, err) < 0 ||
        df_gcs_bucket_new(&gcs, &b, err) < 0 || refused_bucket(b, err) < 0)
        return -1;
    return df_azblob_bucket_new(&azblob, &b, err) < 0 ? -1 : refused_bucket(b, err);
}

static int fetch_token(void *arg, struct df_token *ret, struct df_err *err)
{
    (void)arg;
    df_token_ends(ret, INT64_MAX);
    return df_str_set(&ret->text, "token", err) < 0 ? -1 : df_str_set(&ret->id, "id", err);
}

static int token_kept(struct df_err *err)
{
    struct df_token_cache cache;
    DF_TOKEN t = {0};
    df_token_cache_init(&cache, fetch_token, NULL);
    int result = df_token_cache_get(&cache, NULL, &t, err);
    if (result == 0 && df_token_cache_renew(&cache, &t, 0))
        DF_BUG("another token");
    df_token_cache_free(&cache);
    return result;
}
