#include "spawner/config/blob_bucket.h"

#include "common/blob/azblob.h"
#include "common/blob/gcs.h"
#include "common/blob/s3.h"

int df_config_bucket(const struct df_config *c, const char *location, struct df_bucket **ret,
                     struct df_err *err)
{
    const char *name = strstr(location, "://") + strlen("://"), *slash = strchr(name, '/');
    DF_FREE char *bucket = strndup(name, slash ? (size_t)(slash - name) : strlen(name));
    const char *prefix = slash ? slash + 1 : NULL;
    if (!bucket)
        return df_fail_oom(err);
    const struct df_s3_options s3 = {.bucket = bucket,
                                     .prefix = prefix,
                                     .region = c->s3_region,
                                     .endpoint = c->s3_endpoint,
                                     .ca_file = c->s3_ca_file,
                                     .path_style = c->s3_path_style,
                                     .names_keys = true};
    const struct df_gcs_options gcs = {.bucket = bucket,
                                       .prefix = prefix,
                                       .endpoint = c->gcs_endpoint,
                                       .ca_file = c->gcs_ca_file,
                                       .anonymous = c->gcs_anonymous,
                                       .names_keys = true};
    const struct df_azblob_options azblob = {.account = bucket,
                                             .place = prefix,
                                             .endpoint = c->azblob_endpoint,
                                             .ca_file = c->azblob_ca_file,
                                             .names_keys = true};
    return df_starts_with(location, "gs:")       ? df_gcs_bucket_new(&gcs, ret, err)
           : df_starts_with(location, "azblob:") ? df_azblob_bucket_new(&azblob, ret, err)
                                                 : df_s3_bucket_new(&s3, ret, err);
}
