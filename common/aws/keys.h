/*
 * keys.h - a pair of keys of an AWS account. Thread rule: one struct, one thread.
 */
#ifndef DF_AWS_KEY_PAIR_H
#define DF_AWS_KEY_PAIR_H

#include "common/base/err.h"

struct df_aws_keys {
    char *access_key, *secret_key; /* owned, as is token */
    char *token;                   /* NULL: the keys are not temporary */
    int64_t expires_us;            /* real time; 0: never */
};
void df_aws_keys_wipe(struct df_aws_keys *k); /* and frees */
#define DF_AWS_KEYS DF_CLEANUP(df_aws_keys_wipe) struct df_aws_keys

#endif
