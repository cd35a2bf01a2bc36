#include "common/aws/keys.h"

static void wipe_string(char **s)
{
    if (*s)
        explicit_bzero(*s, strlen(*s));
    free(*s);
    *s = NULL;
}

void df_aws_keys_wipe(struct df_aws_keys *k)
{
    wipe_string(&k->access_key);
    wipe_string(&k->secret_key);
    wipe_string(&k->token);
}
