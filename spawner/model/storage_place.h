/*
 * storage_place.h - the place of a state as one text, with one spelling for each place: two
 * executors that would write the same object have the same text, whatever their settings look like.
 *
 * The text is a comparison of words. What only the network or a file system knows (a second name of
 * a host, a link) is found by the lineage of the state instead (control/runs/lineage.h). Where one
 * store has two protocols, both have its text: a bucket of Google by the types gcs and s3.
 *
 * For spawner/model alone. Thread rule: pure functions, any thread.
 */
#ifndef DF_STORAGE_PLACE_H
#define DF_STORAGE_PLACE_H

#include "common/base/buf.h"
#include "common/json/json.h"

/* Adds the place. config: spec.storage.config; path: spec.storage.path, NULL for a type without.
 * Settings that are absent or empty have the value that the backend gives them. */
typedef void df_storage_place(struct df_buf *text, const cJSON *config, const char *path);

df_storage_place df_storage_place_s3;
df_storage_place df_storage_place_azurerm;
df_storage_place df_storage_place_gcs;
df_storage_place df_storage_place_local;
df_storage_place df_storage_place_http;

/* Is it the URL of a store whose host has the name of a bucket, as in
 * https://BUCKET.s3.eu-west-1.amazonaws.com? With the name in config.bucket, too, the place would
 * have a second spelling. */
bool df_storage_has_bucket_host(const char *url);

#endif
