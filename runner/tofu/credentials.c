#include "runner/tofu/credentials.h"

#define AWS "AWS", "AWS_PROFILE", "aws sso login"
#define GOOGLE                                                                                     \
    "Google Cloud", "GOOGLE_APPLICATION_CREDENTIALS", "gcloud auth application-default login"
#define AZURE "Azure", "ARM_CLIENT_SECRET", "az login"

/* The words are from messages of the providers, and of backends that use the same libraries. */
static const struct df_credentials_case cases[] = {
    {"No valid credential sources found", AWS},
    {"no valid credential sources for", AWS},
    {"no EC2 IMDS role found", AWS},
    {"failed to refresh cached credentials", AWS},
    {"failed to get shared config profile", AWS},
    {"ExpiredToken", AWS},
    {"SSO session has expired or is invalid", AWS},
    {"could not find default credentials", GOOGLE},
    {"Attempted to load application default credentials", GOOGLE},
    {"oauth2: \"invalid_grant\"", GOOGLE},
    {"unable to build authorizer for", AZURE},
    {"could not configure AzureCli Authorizer", AZURE},
    {"building account: could not acquire access token", AZURE},
    {"building account: unable to configure ResourceManagerAccount", AZURE},
    {"building AzureRM Client", AZURE},
    {"Please run 'az login'", AZURE},
    {"401 Bad credentials", "GitHub", "GITHUB_TOKEN", "gh auth login"},
    {"401 Requires authentication", "GitHub", "GITHUB_TOKEN", "gh auth login"},
    {"no vault token set on Client", "Vault", "VAULT_TOKEN", "vault login"},
    {"no vault token found", "Vault", "VAULT_TOKEN", "vault login"},
    {"api_key and app_key must be set unless validate = false", "Datadog", "DD_API_KEY", NULL},
};

const struct df_credentials_case *df_credentials_case_of(const struct df_failure *f)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        if (strcasestr(f->summary, cases[i].words) || strcasestr(f->detail, cases[i].words))
            return &cases[i];
    return NULL;
}
