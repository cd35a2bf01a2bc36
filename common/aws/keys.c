#include "common/aws/keys.h"

void df_aws_keys_wipe(struct df_aws_keys *k)
{
    df_str_wipe(&k->access_key);
    df_str_wipe(&k->secret_key);
    df_str_wipe(&k->token);
}
