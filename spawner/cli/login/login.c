/*
 * dayfly login, logout: the provider that the service names, a sign-in there (device.c), and the
 * service's word on who came, before anything is kept. Read df_cmd_login() first.
 */
#include <errno.h>
#include <stdlib.h>

#include "spawner/cli/commands.h"
#include "spawner/cli/login/device.h"
#include "spawner/cli/login/logins.h"

/* ---- the service ---- */

/* The URL of the service that is meant; it may be away. Starts none. */
static int find_service(struct df_cli *cli, struct df_err *err)
{
    if (df_cli_connect_as(cli, DF_CONNECT_RUNNING, err) == 0)
        return 0;
    return df_streq(err->reason, "NobodyServes")
               ? df_err_wrap(err, "which service? --server URL or DAYFLY_SERVER names it")
               : -1;
}

/* Another client for the service of this command, with this token or none. */
static int make_client(const struct df_cli *cli, const char *token, struct df_client **ret,
                       struct df_err *err)
{
    struct df_client_address address = {0};
    int result = df_client_address_copy(df_client_address_of(cli->client), &address, err);
    address.is_login = false;
    df_str_wipe(&address.token);
    if (result == 0)
        result = df_str_set(&address.token, token, err);
    if (result == 0)
        result = df_client_new(&address, ret, err);
    df_client_address_free(&address);
    return result;
}

static int ask_service(const struct df_cli *cli, const char *token, const char *path, cJSON **ret,
                       struct df_err *err)
{
    struct df_client *client = NULL;
    if (make_client(cli, token, &client, err) < 0)
        return -1;
    int result = df_client_call(client, "GET", path, NULL, NULL, ret, err);
    df_client_free(client);
    return result;
}

static const char *service_url(const struct df_cli *cli)
{
    return df_client_address_of(cli->client)->url;
}

/* Tokens are sent there, and it says where a password is to be given. */
static int check_service(const struct df_cli *cli, struct df_err *err)
{
    if (df_url_is_safe(service_url(cli)))
        return 0;
    return df_fail(
        err, DF_ERR_USER,
        "server %s: must be an https:// URL (http:// on this machine): whoever is on the "
        "way could read the tokens, and name another provider",
        service_url(cli));
}

/* ---- login ---- */

static int set_ca_file(const struct df_cli *cli, cJSON *login, struct df_err *err)
{
    const char *given = df_arg(&cli->args, "issuer-ca-file");
    DF_FREE char *path = given ? realpath(given, NULL) : NULL;
    if (given && !path)
        return df_fail_errno(err, errno, "--issuer-ca-file %s", given);
    return path ? df_json_set_str(login, "caFile", path, err) : 0;
}

/* login: {issuer, clientId, caFile}. *ret_asked: what the service says of its provider; NULL: it
 * was not asked. */
static int choose_provider(const struct df_cli *cli, cJSON *login, cJSON **ret_asked,
                           struct df_err *err)
{
    const char *issuer = df_arg(&cli->args, "issuer"), *client = df_arg(&cli->args, "client-id");
    DF_JSON cJSON *asked = NULL;
    if ((!issuer || !client) && ask_service(cli, NULL, "/v1/login", &asked, err) < 0)
        return df_err_wrap(err, "server %s", service_url(cli));
    issuer = issuer ? issuer : df_json_str(asked, "issuer");
    client = client ? client : df_json_str(asked, "clientId");
    if (df_json_put(login, err, DF_STR("issuer", issuer), DF_STR("clientId", client)) < 0)
        return -1;
    *ret_asked = DF_TAKE(asked);
    return set_ca_file(cli, login, err);
}

static int revoke_tokens(struct df_provider *p, const cJSON *login, struct df_err *err)
{
    const char *token = df_json_str(login, "refreshToken");
    const struct df_http_parameter form[] = {
        {"token", token}, {"token_type_hint", "refresh_token"}, {0}};
    return token ? df_provider_ask(p, "revocation_endpoint", form, NULL, err) : 0;
}

/* name, role: words of the service. */
static int tell(const struct df_cli *cli, const char *name, const char *role, struct df_err *err)
{
    DF_FREE char *text = df_strf("signed in to %s as %s, role %s\n", service_url(cli),
                                 name ? name : "-", role ? role : "-");
    return df_cli_print_safe(text, err);
}

static int keep(const struct df_cli *cli, struct df_provider *p, const cJSON *login,
                struct df_err *err)
{
    DF_JSON cJSON *who = NULL;
    if (ask_service(cli, df_json_str(login, "idToken"), "/v1/whoami", &who, err) < 0 ||
        df_logins_put(service_url(cli), login, err) < 0) {
        (void)revoke_tokens(p, login, NULL); /* nobody has it any more */
        return -1;
    }
    if (!df_str_empty(getenv("DAYFLY_TOKEN")))
        df_cli_note("DAYFLY_TOKEN is set in this shell: commands use it instead of this login");
    return tell(cli, df_json_str(who, "name"), df_json_str(who, "role"), err);
}

int df_cmd_login(struct df_cli *cli, struct df_err *err)
{
    DF_SECRET_JSON cJSON *login = cJSON_CreateObject();
    DF_JSON cJSON *asked = NULL;
    DF_PROVIDER struct df_provider p = {0};
    if (df_check_alloc(login, err) < 0 || find_service(cli, err) < 0 ||
        check_service(cli, err) < 0 || choose_provider(cli, login, &asked, err) < 0 ||
        df_provider_open(&p, login, err) < 0)
        return -1;
    const char *scope = df_arg(&cli->args, "scope");
    df_cli_note("sign in to %s at %.300s, client %.100s", service_url(cli), df_provider_issuer(&p),
                df_provider_client(&p));
    if (df_device_sign_in(&p, scope ? scope : df_json_str(asked, "scopes"), login, err) < 0)
        return -1;
    return keep(cli, &p, login, err);
}

/* ---- logout ---- */

static int end_at_provider(const cJSON *login, struct df_err *err)
{
    DF_PROVIDER struct df_provider p = {0};
    if (!df_json_str(login, "refreshToken"))
        return 0;
    if (df_provider_open(&p, login, err) < 0)
        return -1;
    if (revoke_tokens(&p, login, err) == 0)
        return 0;
    if (!df_streq(err->reason, "NoEndpoint"))
        return -1;
    *err = (struct df_err){0};
    df_cli_note("%.300s revokes no tokens: the refresh token, which is removed here, is good until "
                "it expires there",
                df_provider_issuer(&p));
    return 0;
}

int df_cmd_logout(struct df_cli *cli, struct df_err *err)
{
    DF_SECRET_JSON cJSON *login = NULL;
    if (find_service(cli, err) < 0 || df_logins_remove(service_url(cli), &login, err) < 0)
        return -1;
    if (end_at_provider(login, err) < 0)
        return df_err_wrap(err,
                           "the login for %s is removed here, but the refresh token is not "
                           "revoked",
                           service_url(cli));
    return df_cli_printf(err, "signed out of %s\n", service_url(cli));
}
