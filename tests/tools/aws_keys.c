/*
 * aws_keys - prints the keys that common/aws finds in its environment: access key, secret key,
 * token and the second of expiry, one a line; again for each further line of standard input
 * ("refused" says first that a service did not accept them). A failure is its message on standard
 * error, and 1. tests/integration/test_aws_credentials.py runs it.
 */
#include "common/aws/credentials.h"
#include "common/http/http.h"

static int print_keys(struct df_aws_credentials *c, struct df_aws_keys *k, struct df_err *err)
{
    df_aws_keys_wipe(k);
    if (df_aws_credentials_get(c, k, err) < 0)
        return -1;
    (void)printf("%s\n%s\n%s\n%lld\n", k->access_key, k->secret_key, k->token ? k->token : "",
                 (long long)(k->expires_us / 1000000));
    (void)fflush(stdout);
    return 0;
}

static int print_all(struct df_aws_credentials *c, struct df_err *err)
{
    char line[64] = "";
    DF_AWS_KEYS k = {0};
    do {
        if (df_starts_with(line, "refused") && k.access_key)
            (void)df_aws_credentials_refused(c, &k);
        if (print_keys(c, &k, err) < 0)
            return -1;
    } while (fgets(line, sizeof(line), stdin));
    return 0;
}

int main(void)
{
    struct df_err err = {0};
    struct df_aws_credentials *c = NULL;
    if (df_http_global_init(&err) < 0 || df_aws_credentials_new("eu-central-1", &c, &err) < 0 ||
        print_all(c, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        df_aws_credentials_free(c);
        return 1;
    }
    df_aws_credentials_free(c);
    return 0;
}
