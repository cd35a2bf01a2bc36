/* dayfly audit verify: whether the chain of the audit trail holds, of a service or of a file that
 * `dayfly get audit -o jsonl` wrote. */
#include <errno.h>
#include <stdio.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/cli/commands.h"
#include "spawner/model/audit_chain.h"

/* ---- a file ---- */

/* The key of a data directory, or of the Secret in a cluster. */
static int read_key(const char *path, unsigned char out[DF_KEY_LEN], struct df_err *err)
{
    struct df_buf text = DF_BUF_INIT(DF_KEY_TEXT + 1);
    unsigned char master[DF_KEY_LEN];
    int result = df_fs_read(path, &text, err);
    if (result == 0 && df_key_parse(df_buf_str(&text), text.len, master) < 0)
        result =
            df_fail(err, DF_ERR_USER, "--key %s: is no key: 64 hex digits and a newline", path);
    if (result == 0)
        result = df_derive_key(master, DF_AUDIT_KEY_PURPOSE, out, err);
    explicit_bzero(master, sizeof(master));
    df_buf_wipe(&text);
    return result;
}

static int check_line(struct df_audit_check *check, const char *text, size_t n, const char *path,
                      int64_t line, struct df_err *err)
{
    DF_JSON cJSON *entry = NULL;
    if (df_json_parse(text, n, &entry, NULL) < 0) {
        df_cli_note("%s: line %lld is no JSON: the file is cut there, or was edited", path,
                    (long long)line);
        entry = cJSON_CreateObject();
    }
    return df_check_alloc(entry, err) < 0 ? -1 : df_audit_check_next(check, entry, err);
}

static int check_lines(struct df_audit_check *check, FILE *file, const char *path,
                       struct df_err *err)
{
    DF_FREE char *text = NULL;
    size_t room = 0;
    ssize_t n;
    for (int64_t line = 1; (n = getline(&text, &room, file)) >= 0; line++) {
        if ((size_t)n > DF_LIMIT_DOCUMENT)
            return df_fail(err, DF_ERR_LIMIT, "%s: line %lld is longer than %zu bytes", path,
                           (long long)line, (size_t)DF_LIMIT_DOCUMENT);
        if (check_line(check, text, (size_t)n, path, line, err) < 0)
            return -1;
    }
    if (ferror(file))
        return df_fail_errno(err, errno, "read %s", path);
    df_audit_check_end(check);
    return 0;
}

static int check_file(const char *path, const unsigned char *key, cJSON **ret, struct df_err *err)
{
    DF_AUDIT_CHECK check = {.key = key};
    FILE *file = df_streq(path, "-") ? stdin : fopen(path, "re");
    if (!file)
        return df_fail_errno(err, errno, "open %s", path);
    int result = check_lines(&check, file, path, err);
    if (file != stdin)
        (void)fclose(file);
    return result < 0 ? -1 : df_audit_check_report(&check, ret, err);
}

/* ---- what was found ---- */

static int print_report(const cJSON *report, bool has_checked_seals, struct df_err *err)
{
    long long older = df_json_int(report, "older", 0);
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (df_json_at(report, "broken"))
        (void)df_buf_addf(&out, "The audit trail is broken at entry %lld: %s.\n",
                          (long long)df_json_int(report, "broken.sequence", 0),
                          df_json_text(report, "broken.message"));
    else
        (void)df_buf_addf(
            &out,
            "The audit trail is whole: %lld entries, %lld to %lld. The newest has the "
            "hash %s.\n",
            (long long)df_json_int(report, "entries", 0),
            (long long)df_json_int(report, "oldest.sequence", 0),
            (long long)df_json_int(report, "newest.sequence", 0),
            df_json_text(report, "newest.hash"));
    if (older)
        (void)df_buf_addf(&out, "Below the begin of the chain there %s %lld %s.\n",
                          older == 1 ? "is" : "are", older, older == 1 ? "entry" : "entries");
    if (!has_checked_seals)
        (void)df_buf_adds(&out, "Seals were not looked at: --key FILE does.\n");
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

int df_cmd_audit_verify(struct df_cli *cli, struct df_err *err)
{
    const char *path = df_cli_word(cli, 0), *key_file = df_arg(&cli->args, "key");
    unsigned char key[DF_KEY_LEN];
    DF_JSON cJSON *report = NULL;
    if (key_file && !path)
        return df_fail(err, DF_ERR_USER, "--key is for a file: a service has its key");
    if (key_file && read_key(key_file, key, err) < 0)
        return -1;
    cli->as = DF_CONNECT_LOOK;
    int result = path ? check_file(path, key_file ? key : NULL, &report, err)
                      : df_cli_call(cli, "GET", "/v1/audit/verify", NULL, &report, err);
    explicit_bzero(key, sizeof(key));
    if (result < 0)
        return -1;
    result = df_cli_output(cli)[0] ? df_cli_print_json(cli, report, err)
                                   : print_report(report, !path || key_file, err);
    if (result < 0)
        return -1;
    return df_json_bool(report, "verified", false) ? DF_EXIT_OK : DF_EXIT_FAILURE;
}
