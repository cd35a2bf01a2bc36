/* dayfly token create: creates a bearer token and its line for the token file. Needs no server. */
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/token_file.h"

#define TOKEN_BYTES 32
#define TOKEN_LEN (sizeof("dayfly_") + 2 * TOKEN_BYTES)

static int make_token(char token[TOKEN_LEN], char sha256[DF_SHA256_HEX], struct df_err *err)
{
    char hex[2 * TOKEN_BYTES + 1];
    if (df_random_hex(hex, TOKEN_BYTES, err) < 0)
        return -1;
    (void)snprintf(token, TOKEN_LEN, "dayfly_%s", hex);
    explicit_bzero(hex, sizeof(hex));
    return df_sha256_hex(token, strlen(token), sha256, err);
}

static int print_document(const struct df_cli *cli, const char *token, const char *line,
                          struct df_err *err)
{
    DF_JSON cJSON *doc = df_json_object(DF_STR("token", token), DF_STR("line", line));
    return df_cli_print_json(cli, doc, err);
}

/* What is no terminal gets the token alone, as TOKEN=$(...) needs it. file: the token file to which
 * the line was added, or NULL. */
static int print_token(const struct df_cli *cli, const char *token, const char *line,
                       const char *file, struct df_err *err)
{
    if (df_cli_output(cli)[0])
        return print_document(cli, token, line, err);
    DF_FREE char *text = df_strf(cli->out_tty ? "Token, shown this once:\n  %s\n" : "%s\n", token);
    if (!text)
        return df_fail_oom(err);
    int result = df_cli_print(text, err);
    explicit_bzero(text, strlen(text));
    if (file)
        df_cli_note("its line was added to %s", file);
    else
        df_cli_note("its line for the token file (auth.tokenFile): %s", line);
    return result;
}

static int create(const struct df_cli *cli, const char *name, const char *role, char *token,
                  struct df_err *err)
{
    char sha256[DF_SHA256_HEX];
    const char *file = df_arg(&cli->args, "token-file");
    if (make_token(token, sha256, err) < 0)
        return -1;
    DF_FREE char *line = df_strf("%s %s %s", name, role, sha256);
    if (df_check_alloc(line, err) < 0 || (file && df_token_file_add(file, name, line, err) < 0))
        return -1;
    return print_token(cli, token, line, file, err);
}

int df_cmd_token_create(struct df_cli *cli, struct df_err *err)
{
    const char *name = df_arg(&cli->args, "name"), *role = df_arg(&cli->args, "role");
    if (!name || !role)
        return df_fail(err, DF_ERR_USER, "--name and --role are needed");
    if (!df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER, "--name \"%s\": is not a valid name", name);
    char token[TOKEN_LEN];
    int result = create(cli, name, role, token, err);
    explicit_bzero(token, sizeof(token));
    return result;
}
