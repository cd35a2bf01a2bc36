/*
 * azure_token [resource] - prints the token that common/azure finds in its environment, for Storage
 * or for the resource; a failure is its message on standard error, and 1.
 * tests/integration/test_azure_credentials.py runs it.
 */
#include "common/azure/credentials.h"
#include "common/http/http.h"

int main(int argc, char **argv)
{
    struct df_err err = {0};
    struct df_azure_credentials *c = NULL;
    DF_AZURE_GRANT grant = {0};
    if (df_http_global_init(&err) < 0 || df_azure_credentials_new(&c, &err) < 0)
        return 1;
    int result = argc > 1 ? df_azure_token(argv[1], &grant.text, &err)
                          : df_azure_credentials_get(c, &grant, &err);
    if (result == 0)
        (void)printf("%s\n", grant.text);
    else
        (void)fprintf(stderr, "%s\n", err.message);
    df_azure_credentials_free(c);
    return result < 0;
}
