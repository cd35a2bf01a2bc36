/*
 * dayfly token-file list, create, revoke: reads and changes the service's token file. Needs no
 * server. Reading first, then list; then the functions that change the file, and the commands that
 * use them.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/text.h"
#include "spawner/config/config.h"
#include "spawner/identity/tokens.h"

/* --token-file, else auth.tokenFile of the configuration, with all links followed. */
static int find_file(const struct df_cli *cli, char **ret, struct df_err *err)
{
    const char *given = df_arg(&cli->args, "token-file");
    struct df_config config = {0};
    if (!given && df_config_load(df_cli_config(cli), environ, NULL, &config, err) < 0)
        return -1;
    const char *path = given ? given : config.token_file;
    int result = 0;
    if (!path)
        result = df_fail(err, DF_ERR_USER,
                         "which token file? --token-file FILE names it, or a configuration with "
                         "auth.tokenFile (--config)");
    else if (!(*ret = realpath(path, NULL)))
        result = df_fail_errno(err, errno, "token file %s", path);
    df_config_free(&config);
    return result;
}

static int read_file(const char *path, struct df_buf *text, struct df_token **ret,
                     size_t *ret_count, struct df_err *err)
{
    if (df_fs_read(path, text, err) < 0)
        return df_err_wrap(err, "token file");
    if (df_tokens_parse(df_buf_str(text), ret, ret_count, err) < 0)
        return df_err_wrap(err, "token file %s", path);
    return 0;
}

/* ---- list ---- */

static int print_list(const struct df_cli *cli, const struct df_token *list, size_t count,
                      struct df_err *err)
{
    struct df_table_shape shape = df_cli_table_shape(cli);
    DF_TABLE struct df_table t = {.columns = 2, .shape = &shape};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TOKEN_FILE);
    df_table_add(&t, "NAME");
    df_table_add(&t, "ROLE");
    for (size_t i = 0; i < count; i++) {
        df_table_add(&t, list[i].name);
        df_table_add(&t, df_role_name(list[i].role));
    }
    if (!count)
        df_cli_note("no tokens");
    else if (df_table_print(&t, 0, &out, err) < 0)
        return -1;
    return df_cli_print(df_buf_str(&out), err);
}

static int print_document(const struct df_cli *cli, const struct df_token *list, size_t count,
                          struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *items = doc ? cJSON_AddArrayToObject(doc, "items") : NULL;
    if (!items)
        return df_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        cJSON *item = cJSON_CreateObject();
        if (df_json_append(items, item, err) < 0 ||
            df_json_put(item, err, DF_STR("name", list[i].name),
                        DF_STR("role", df_role_name(list[i].role))) < 0)
            return -1;
    }
    return df_cli_print_json(cli, doc, err);
}

int df_cmd_token_file_list(struct df_cli *cli, struct df_err *err)
{
    DF_FREE char *path = NULL;
    DF_FREE struct df_token *list = NULL;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_TOKEN_FILE);
    size_t count = 0;
    if (find_file(cli, &path, err) < 0 || read_file(path, &text, &list, &count, err) < 0)
        return -1;
    return df_cli_output(cli)[0] ? print_document(cli, list, count, err)
                                 : print_list(cli, list, count, err);
}

/* ---- changes ---- */

static bool is_line_of(const char *line, const char *name)
{
    line += strspn(line, " \t\r");
    return strcspn(line, " \t\r\n") == strlen(name) && df_starts_with(line, name);
}

/* Copies the text, comments included, without the line of this name. False: there is no such
 * line. */
static bool without(const char *text, const char *name, struct df_buf *out)
{
    bool found = false;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        if (is_line_of(line, name))
            found = true;
        else
            (void)df_buf_add(out, line, n);
        line += n;
    }
    return found;
}

/* Replaces the file; keeps its owner and permissions. */
static int replace_file(const char *path, const struct df_buf *text, struct df_err *err)
{
    struct stat old, now;
    if (stat(path, &old) < 0)
        return df_fail_errno(err, errno, "token file %s", path);
    if (df_fs_replace(path, df_buf_str(text), text->len, old.st_mode & 07777, err) < 0)
        return df_err_wrap(err, "token file");
    bool same = stat(path, &now) == 0 && now.st_uid == old.st_uid && now.st_gid == old.st_gid;
    if (!same && chown(path, old.st_uid, old.st_gid) < 0)
        return df_fail_errno(err, errno,
                             "token file %s: is written, but its owner could not be kept", path);
    return 0;
}

/* ---- create ---- */

static int check_new(const struct df_token *list, size_t count, const char *name, const char *path,
                     struct df_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (df_streq(list[i].name, name))
            return df_fail(
                err, DF_ERR_CONFLICT,
                "token \"%s\": there is one in %s already; `dayfly token-file revoke %s` "
                "removes it",
                name, path, name);
    return 0;
}

static int append(const char *path, const char *name, const char *line, struct df_err *err)
{
    DF_FREE struct df_token *list = NULL;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_TOKEN_FILE);
    size_t count = 0;
    if (read_file(path, &text, &list, &count, err) < 0 ||
        check_new(list, count, name, path, err) < 0)
        return -1;
    bool open_end = text.len && text.data[text.len - 1] != '\n';
    (void)df_buf_addf(&text, "%s%s\n", open_end ? "\n" : "", line);
    return df_buf_check(&text, err) < 0 ? -1 : replace_file(path, &text, err);
}

/* Adds a line in one piece, or creates the file (0600). */
static int add_line(const char *path, const char *name, const char *line, struct df_err *err)
{
    DF_FREE char *real = realpath(path, NULL);
    if (real)
        return append(real, name, line, err);
    if (errno != ENOENT)
        return df_fail_errno(err, errno, "token file %s", path);
    DF_FREE char *text = df_strf("%s\n", line);
    if (!text)
        return df_fail_oom(err);
    if (df_fs_create(path, text, strlen(text), 0600, err) < 0)
        return df_err_wrap(err, "token file");
    return 0;
}

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

static int print_made(const struct df_cli *cli, const char *token, const char *line,
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
        return print_made(cli, token, line, err);
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

static int make_line(const struct df_cli *cli, const char *name, const char *role, char *token,
                     struct df_err *err)
{
    char sha256[DF_SHA256_HEX];
    const char *file = df_arg(&cli->args, "token-file");
    if (make_token(token, sha256, err) < 0)
        return -1;
    DF_FREE char *line = df_strf("%s %s %s", name, role, sha256);
    if (df_check_alloc(line, err) < 0 || (file && add_line(file, name, line, err) < 0))
        return -1;
    return print_token(cli, token, line, file, err);
}

int df_cmd_token_file_create(struct df_cli *cli, struct df_err *err)
{
    const char *name = df_arg(&cli->args, "name"), *role = df_arg(&cli->args, "role");
    if (!name || !role)
        return df_fail(err, DF_ERR_USER, "--name and --role are needed");
    if (!df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER, "--name \"%s\": is not a valid name", name);
    char token[TOKEN_LEN];
    int result = make_line(cli, name, role, token, err);
    explicit_bzero(token, sizeof(token));
    return result;
}

/* ---- revoke ---- */

int df_cmd_token_file_revoke(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL;
    DF_FREE char *path = NULL;
    DF_FREE struct df_token *list = NULL;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_TOKEN_FILE),
                         rest = DF_BUF_INIT(DF_LIMIT_TOKEN_FILE);
    size_t count = 0;
    if (df_cli_name(cli, 0, "token", &name, err) < 0 || find_file(cli, &path, err) < 0 ||
        read_file(path, &text, &list, &count, err) < 0)
        return -1;
    if (!without(df_buf_str(&text), name, &rest))
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "token \"%s\": there is none in %s; `dayfly token-file list` shows all",
                       name, path);
    if (df_buf_check(&rest, err) < 0 || replace_file(path, &rest, err) < 0)
        return -1;
    return df_cli_printf(err, "token/%s revoked\n", name);
}
