/*
 * The object stores of the clouds, by the drivers of common/blob: S3 and Google with one bucket,
 * where the area begins the name; Azure with a container for each area.
 */
#include "common/blob/azblob.h"
#include "common/blob/gcs.h"
#include "common/blob/s3.h"
#include "common/terrakube/store.h"

struct buckets {
    struct df_terrakube_store store;
    const struct df_terrakube_settings *settings; /* borrowed */
    struct df_bucket *areas[DF_TERRAKUBE_AREAS];  /* owned */
};

static const char *const area_names[DF_TERRAKUBE_AREAS] = {"tfstate", "tfoutput", "tfbinary"};

static struct buckets *buckets_of(struct df_terrakube_store *s)
{
    return (struct buckets *)s; /* its first member */
}

static int put(struct df_terrakube_store *s, const struct df_terrakube_item *i, const void *bytes,
               size_t n, struct df_err *err)
{
    struct df_bucket *b = buckets_of(s)->areas[df_terrakube_item_area(i)];
    DF_FREE char *key = df_terrakube_item_key(i);
    return key ? b->ops->put(b, key, bytes, n, NULL, err) : df_fail_oom(err);
}

static int get(struct df_terrakube_store *s, const struct df_terrakube_item *i, int fd,
               struct df_err *err)
{
    struct df_bucket *b = buckets_of(s)->areas[df_terrakube_item_area(i)];
    DF_FREE char *key = df_terrakube_item_key(i);
    return key ? b->ops->save(b, key, fd, DF_LIMIT_TERRAKUBE_OBJECT, err) : df_fail_oom(err);
}

/* ---- places of plans, in the forms of the clouds' own libraries ---- */

static char *s3_place(const struct df_terrakube_settings *s, const char *key)
{
    return s->aws.endpoint ? df_strf("%s/%s/tfstate/%s", s->aws.endpoint, s->aws.bucket, key)
                           : df_strf("https://%s.s3.%s.amazonaws.com/tfstate/%s", s->aws.bucket,
                                     s->aws.region, key);
}

static char *azure_place(const struct df_terrakube_settings *s, const char *key)
{
    return s->azure.endpoint
               ? df_strf("%s/tfstate/%s", s->azure.endpoint, key)
               : df_strf("https://%s.blob.core.windows.net/tfstate/%s", s->azure.account, key);
}

static char *place(struct df_terrakube_store *store, const struct df_terrakube_item *i)
{
    const struct df_terrakube_settings *s = buckets_of(store)->settings;
    DF_FREE char *key = df_terrakube_item_key(i);
    if (!key)
        return NULL;
    return s->state == DF_TERRAKUBE_STATE_AWS     ? s3_place(s, key)
           : s->state == DF_TERRAKUBE_STATE_AZURE ? azure_place(s, key)
                                                  : df_strf("https://storage.cloud.google.com/%s/"
                                                            "tfstate/%s",
                                                            s->gcp.bucket, key);
}

/* ---- opening ---- */

/* With an endpoint of its own it is a store that only speaks S3: its region is called `auto`, as
 * the API and its executor call it, unless it insists on another. */
static int open_s3(const struct df_terrakube_settings *s, const char *area, struct df_bucket **ret,
                   struct df_err *err)
{
    const struct df_aws_keys keys = {.access_key = s->aws.access_key,
                                     .secret_key = s->aws.secret_key};
    const char *region = s->aws.region ? s->aws.region : "us-east-1";
    const struct df_s3_options o = {.bucket = s->aws.bucket,
                                    .prefix = area,
                                    .region = s->aws.endpoint ? "auto" : region,
                                    .other_region = s->aws.endpoint ? region : NULL,
                                    .endpoint = s->aws.endpoint,
                                    .ca_pem = s->ca_pem,
                                    .keys = s->aws.role_auth ? NULL : &keys,
                                    .path_style = s->aws.endpoint};
    return df_s3_bucket_new(&o, ret, err);
}

static int open_azure(const struct df_terrakube_settings *s, const char *area,
                      struct df_bucket **ret, struct df_err *err)
{
    const struct df_azblob_options o = {.account = s->azure.account,
                                        .place = area,
                                        .endpoint = s->azure.endpoint,
                                        .ca_pem = s->ca_pem,
                                        .key = s->azure.access_key,
                                        .makes_container = true};
    return df_azblob_bucket_new(&o, ret, err);
}

static int open_google(const struct df_terrakube_settings *s, const char *area,
                       struct df_bucket **ret, struct df_err *err)
{
    const struct df_gcs_options o = {.bucket = s->gcp.bucket,
                                     .prefix = area,
                                     .endpoint = s->gcp.endpoint,
                                     .ca_pem = s->ca_pem,
                                     .credentials = s->gcp.credentials};
    return df_gcs_bucket_new(&o, ret, err);
}

static void close_buckets(struct df_terrakube_store *s)
{
    for (size_t i = 0; i < DF_TERRAKUBE_AREAS; i++)
        if (buckets_of(s)->areas[i])
            buckets_of(s)->areas[i]->ops->close(buckets_of(s)->areas[i]);
    free(s);
}

static const struct df_terrakube_store_ops ops = {close_buckets, put, get, place, "/tfstate/"};

int df_terrakube_store_buckets(const struct df_terrakube_settings *s,
                               struct df_terrakube_store **ret, struct df_err *err)
{
    int (*const open_area)(const struct df_terrakube_settings *, const char *, struct df_bucket **,
                           struct df_err *) = s->state == DF_TERRAKUBE_STATE_AWS     ? open_s3
                                              : s->state == DF_TERRAKUBE_STATE_AZURE ? open_azure
                                                                                     : open_google;
    struct buckets *b = calloc(1, sizeof(*b));
    if (!b)
        return df_fail_oom(err);
    *b = (struct buckets){{&ops}, s, {NULL}};
    for (size_t i = 0; i < DF_TERRAKUBE_AREAS; i++)
        if (open_area(s, area_names[i], &b->areas[i], err) < 0) {
            close_buckets(&b->store);
            return -1;
        }
    *ret = &b->store;
    return 0;
}
