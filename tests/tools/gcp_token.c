/*
 * gcp_token - prints the token that common/gcp finds in its environment; a failure is its message
 * on standard error, and 1. tests/integration/test_gcp_credentials.py runs it.
 */
#include "common/gcp/credentials.h"
#include "common/http/http.h"

int main(void)
{
    struct df_err err = {0};
    struct df_gcp_credentials *c = NULL;
    char *token = NULL;
    if (df_http_global_init(&err) < 0 || df_gcp_credentials_new(&c, &err) < 0)
        return 1;
    int result = df_gcp_credentials_get(c, &token, &err);
    if (result == 0)
        (void)printf("%s\n", token);
    else
        (void)fprintf(stderr, "%s\n", err.message);
    free(token);
    df_gcp_credentials_free(c);
    return result < 0;
}
