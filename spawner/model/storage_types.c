#include "spawner/model/storage_types.h"

#include "common/base/util.h"

static const struct df_storage_type types[] = {
    {.name = "managed"},
    {.name = "module"},
    {.name = "s3",
     .has_config = true,
     .has_history = true,
     .path_key = "key",
     .path_form = "executors/%s/terraform.tfstate",
     .required = {"bucket", "region"},
     .stores = {"endpoints.s3", "endpoint"},
     .place = df_storage_place_s3},
    {.name = "azurerm",
     .has_config = true,
     .path_key = "key",
     .path_form = "executors/%s/terraform.tfstate",
     .required = {"resource_group_name", "storage_account_name", "container_name"},
     .place = df_storage_place_azurerm},
    {.name = "gcs",
     .has_config = true,
     .has_history = true,
     .path_key = "prefix",
     .path_form = "executors/%s",
     .required = {"bucket"},
     .stores = {"storage_custom_endpoint"},
     .place = df_storage_place_gcs},
    {.name = "local", .has_config = true, .path_key = "path", .place = df_storage_place_local},
    /* Its address names the state, so it has no path. */
    {.name = "http", .has_config = true, .required = {"address"}, .place = df_storage_place_http},
};

const struct df_storage_type *df_storage_type_find(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(types); i++)
        if (df_streq(types[i].name, name))
            return &types[i];
    return NULL;
}
