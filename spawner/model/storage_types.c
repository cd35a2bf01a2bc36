#include "spawner/model/storage_types.h"

#include "common/base/util.h"

static const struct df_storage_type types[] = {
    {.name = "managed"},
    {.name = "module"},
    {.name = "s3",
     .has_config = true,
     .path_key = "key",
     .path_form = "executors/%s/terraform.tfstate",
     .required = {"bucket", "region"},
     .place = {{.name = "bucket"},
               {.name = "endpoints.s3", .other = "endpoint", .is_address = true}}},
    {.name = "azurerm",
     .has_config = true,
     .path_key = "key",
     .path_form = "executors/%s/terraform.tfstate",
     .required = {"resource_group_name", "storage_account_name", "container_name"},
     .place = {{.name = "storage_account_name"},
               {.name = "container_name"},
               {.name = "metadata_host", .other = "environment", .standard = "public"}}},
    /* The backend adds "/default.tfstate" to its prefix. */
    {.name = "gcs",
     .has_config = true,
     .path_key = "prefix",
     .path_form = "executors/%s",
     .required = {"bucket"},
     .place = {{.name = "bucket"}, {.name = "storage_custom_endpoint", .is_address = true}}},
    {.name = "local", .has_config = true, .path_key = "path"},
    /* Its address names the state, so it has no path. */
    {.name = "http",
     .has_config = true,
     .required = {"address"},
     .place = {{.name = "address", .is_address = true}}},
};

const struct df_storage_type *df_storage_type_find(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(types); i++)
        if (df_streq(types[i].name, name))
            return &types[i];
    return NULL;
}
