/*
 * blob_keys.h - the keys that seal what is in a bucket: of a command (blobs.keyCommand), of files
 * (blobs.keyFiles), and the instance's own. Called once at the start.
 */
#ifndef DF_BLOB_KEYS_H
#define DF_BLOB_KEYS_H

#include "common/crypto/keyring.h"
#include "spawner/config/config.h"
#include "spawner/store/vault/vault.h"

/* Fills the ring in this order: what the command prints, the files, the vault's own key. USER: a
 * file or the command's output is no key. SYSTEM: the command failed; the message has its exit code
 * and the first line of its stderr, never its stdout. */
int df_blob_keys(const struct df_config *config, struct df_vault *vault, struct df_keyring *ret,
                 struct df_err *err) DF_MUST_CHECK;

#endif
