#include "spawner/cli/module_name.h"

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "common/source/rules.h"

#define BASE_MAX 40 /* leaves room for "-<8 hex>" and for "-<run number>-apply" */

/* Appends the last part of a path or URL, without ".git" or the ending of an archive. */
static void add_last_part(struct df_buf *out, const char *path)
{
    static const char repository[] = ".git";
    size_t n = strlen(path), m = strlen(repository);
    while (n && path[n - 1] == '/')
        n--;
    bool says_git = n > m && strncmp(path + n - m, repository, m) == 0;
    n -= says_git ? m : df_source_archive_ending(path, n);
    size_t start = n;
    while (start && path[start - 1] != '/' && path[start - 1] != ':')
        start--;
    (void)df_buf_add(out, path + start, n - start);
}

/* Converts letters to lower case and each sequence of other characters to one dash. */
static void to_label(const char *text, char ret[BASE_MAX + 1])
{
    size_t n = 0;
    for (; *text && n < BASE_MAX; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain)
            ret[n++] = c;
        else if (n && ret[n - 1] != '-')
            ret[n++] = '-';
    }
    while (n && ret[n - 1] == '-')
        n--;
    ret[n] = '\0';
}

int df_module_name(const char *url, const char *folder, bool hashed, char ret[64],
                   struct df_err *err)
{
    char base[BASE_MAX + 1], hash[DF_SHA256_HEX];
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_URL);
    add_last_part(&text, url);
    if (folder && *folder) {
        (void)df_buf_addc(&text, '-');
        add_last_part(&text, folder);
    }
    if (df_buf_check(&text, err) < 0)
        return -1;
    to_label(df_buf_str(&text), base);
    DF_FREE char *identity = df_strf("%s %s", url, folder ? folder : "");
    if (!identity)
        return df_fail_oom(err);
    if (df_sha256_hex(identity, strlen(identity), hash, err) < 0)
        return -1;
    const char *shown = base[0] ? base : "module";
    (void)snprintf(ret, 64, hashed ? "%s-%.8s" : "%s", shown, hash);
    return 0;
}
