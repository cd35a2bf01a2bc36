/*
 * key_files.h - the keys that seal what is in a bucket, as files have them (blobs.keyFiles). Thread
 * rule: any thread.
 */
#ifndef DF_CONFIG_KEY_FILES_H
#define DF_CONFIG_KEY_FILES_H

#include "common/crypto/crypto.h"
#include "spawner/config/config.h"

#define DF_KEY_WORDS "64 hex digits and a newline, as `openssl rand -hex 32` prints them"

/* The caller wipes the key. USER: the file is none. Else as it cannot be read. The message has key
 * and path, and never what the file holds. */
int df_config_key_file(const char *path, unsigned char ret[DF_KEY_LEN],
                       struct df_err *err) DF_MUST_CHECK;

/* Reads all of them, as the next start will. Fails as the first that is wrong. */
int df_config_check_key_files(const struct df_config *c, struct df_err *err) DF_MUST_CHECK;

#endif
