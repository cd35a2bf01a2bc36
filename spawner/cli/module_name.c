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

/* The letter without its accent of U+00C0 to U+017F; '*': see two_letters, '-': none. */
static const char letters[] = "aaaaaa*ceeeeiiiidnooooo-ouuuuy**aaaaaa*ceeeeiiiidnooooo-ouuuuy*y"
                              "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii**jjkkklllllll"
                              "lllnnnnnnnnnoooooo**rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

enum { FIRST_LETTER = 0xc0, FIRST_MARK = 0x300, LAST_MARK = 0x36f };

static const struct {
    unsigned code;
    const char *text;
} two_letters[] = {{0xc6, "ae"},  {0xde, "th"},  {0xdf, "ss"},  {0xe6, "ae"}, {0xfe, "th"},
                   {0x132, "ij"}, {0x133, "ij"}, {0x152, "oe"}, {0x153, "oe"}};

/* The code of two bytes of UTF-8; 0: they are none. */
static unsigned code_of(const char *text)
{
    unsigned char a = (unsigned char)text[0], b = (unsigned char)text[1];
    return (a & 0xe0) == 0xc0 && (b & 0xc0) == 0x80 ? (a & 0x1fU) << 6 | (b & 0x3fU) : 0;
}

static void add_letter(struct df_buf *out, unsigned code)
{
    bool is_letter = code >= FIRST_LETTER && code - FIRST_LETTER < sizeof(letters) - 1;
    char letter = is_letter ? letters[code - FIRST_LETTER] : '-';
    for (size_t i = 0; letter == '*' && i < DF_ARRAY_SIZE(two_letters); i++)
        if (two_letters[i].code == code)
            (void)df_buf_adds(out, two_letters[i].text);
    if (letter != '*')
        (void)df_buf_addc(out, letter);
}

/* Replaces letters with accents by letters, whether or not the accents are characters of their
 * own. */
static void plain_letters(const char *text, struct df_buf *out)
{
    while (*text) {
        unsigned code = code_of(text);
        bool is_mark = code >= FIRST_MARK && code <= LAST_MARK;
        if (code && !is_mark)
            add_letter(out, code);
        else if (!code)
            (void)df_buf_addc(out, *text);
        text += code ? 2 : 1;
    }
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

int df_module_name(const char *url, const char *folder, enum df_name_form form, char ret[64],
                   struct df_err *err)
{
    char base[BASE_MAX + 1], hash[DF_SHA256_HEX];
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_URL), plain = DF_BUF_INIT(2 * DF_LIMIT_URL);
    add_last_part(&text, url);
    if (folder && *folder) {
        (void)df_buf_addc(&text, '-');
        add_last_part(&text, folder);
    }
    plain_letters(df_buf_str(&text), &plain);
    if (df_buf_check(&text, err) < 0 || df_buf_check(&plain, err) < 0)
        return -1;
    to_label(df_buf_str(form == DF_NAME_FORMER ? &text : &plain), base);
    DF_FREE char *identity = df_strf("%s %s", url, folder ? folder : "");
    if (df_check_alloc(identity, err) < 0 ||
        df_sha256_hex(identity, strlen(identity), hash, err) < 0)
        return -1;
    const char *shown = base[0] ? base : "module";
    (void)snprintf(ret, 64, form == DF_NAME_HASHED ? "%s-%.8s" : "%s", shown, hash);
    return 0;
}
