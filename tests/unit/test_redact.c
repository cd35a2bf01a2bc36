#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "common/json/json.h"
#include "common/redact/redact.h"
#include "tests/unit/memory.h"
#include "tests/unit/redact_oracle.h"

/* A fixed sequence, so that a failure can be looked at again. */
static uint64_t seed = 88172645463325252ULL;

static unsigned next_random(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % below;
}

static void random_value(char *to, size_t n)
{
    static const char alphabet[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_-.~!@#$%^&*(){}\"'\\ <>";
    for (size_t i = 0; i < n; i++)
        to[i] = alphabet[next_random(sizeof alphabet - 1)];
    /* Blanks at the ends are not part of a value. */
    to[0] = 'k';
    to[n - 1] = 'Z';
    to[n] = '\0';
}

static struct df_redact_set *set_of(const struct df_strs *secrets)
{
    struct df_redact_set *set = NULL;
    struct df_err err = {0};
    if (df_redact_set_new(secrets, &set, &err) < 0)
        fail_msg("%s", err.message);
    return set;
}

static struct df_redact_set *set_of_words(const char *const *words)
{
    DF_STRS struct df_strs v = {0};
    for (; *words; words++)
        assert_int_equal(df_strs_add(&v, *words), 0);
    return set_of(&v);
}
#define SET(...) set_of_words((const char *const[]){__VA_ARGS__, NULL})

static struct df_redact *stream_of(const struct df_redact_set *set)
{
    struct df_redact *r = NULL;
    assert_int_equal(df_redact_new(set, &r, NULL), 0);
    return r;
}

/* The text through a stream, in two parts. */
static void redact_split(struct df_redact *r, const char *text, size_t n, size_t split,
                         struct df_buf *out)
{
    df_buf_clear(out);
    assert_int_equal(df_redact_feed(r, text, split, out, NULL), 0);
    assert_int_equal(df_redact_feed(r, text + split, n - split, out, NULL), 0);
    assert_int_equal(df_redact_finish(r, out, NULL), 0);
}

static void assert_redacts(const struct df_redact_set *set, const char *text, const char *expected)
{
    struct df_redact *r = stream_of(set);
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    for (size_t split = 0; split <= strlen(text); split++) {
        redact_split(r, text, strlen(text), split, &out);
        assert_string_equal(df_buf_str(&out), expected);
    }
    DF_BUF struct df_buf at_once = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_redact_string(set, text, &at_once, NULL), 0);
    assert_string_equal(df_buf_str(&at_once), expected);
    df_redact_free(r);
}

/* --- forms, each made by somebody else's encoder --------------------------------------------- */

static void a_value_is_masked_in_each_of_its_forms(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("S3cr3t/+\"pa\\ss<word>&\xc3\xa9 \xf0\x9f\x98\x80");
    static const char *const forms[] = {
        "S3cr3t/+\"pa\\ss<word>&\xc3\xa9 \xf0\x9f\x98\x80",
        /* python: urllib.parse.quote(s, safe=''), quote_plus, the same in lower case */
        "S3cr3t%2F%2B%22pa%5Css%3Cword%3E%26%C3%A9%20%F0%9F%98%80",
        "S3cr3t%2F%2B%22pa%5Css%3Cword%3E%26%C3%A9+%F0%9F%98%80",
        "S3cr3t%2f%2b%22pa%5css%3cword%3e%26%c3%a9%20%f0%9f%98%80",
        /* every byte */
        "%53%33%63%72%33%74%2F%2B%22%70%61%5C%73%73%3C%77%6F%72%64%3E%26%C3%A9%20%F0%9F%98%80",
        /* python: json.dumps(s), with ensure_ascii=False; Go: json.Marshal; PHP: json_encode */
        "S3cr3t/+\\\"pa\\\\ss<word>&\\u00e9 \\ud83d\\ude00",
        "S3cr3t/+\\\"pa\\\\ss<word>&\xc3\xa9 \xf0\x9f\x98\x80",
        "S3cr3t/+\\\"pa\\\\ss\\u003cword\\u003e\\u0026\xc3\xa9 \xf0\x9f\x98\x80",
        "S3cr3t\\/+\\\"pa\\\\ss<word>&\\u00e9 \\ud83d\\ude00",
        /* .NET */
        "S3cr3t/\\u002B\\u0022pa\\\\ss\\u003Cword\\u003E\\u0026\\u00E9 \\uD83D\\uDE00",
        /* JSON in JSON */
        "S3cr3t/+\\\\\\\"pa\\\\\\\\ss<word>&\xc3\xa9 \xf0\x9f\x98\x80",
        /* hex */
        "5333637233742f2b2270615c73733c776f72643e26c3a920f09f9880",
        "5333637233742F2B2270615C73733C776F72643E26C3A920F09F9880",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(forms); i++) {
        DF_FREE char *text = df_strf("before [%s] behind\n", forms[i]);
        assert_redacts(set, text, "before [***] behind\n");
    }
    df_redact_set_free(set);
}

static void templates_and_shell_words_are_masked(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("it's ${x} %{y} `z`");
    assert_redacts(set, "a = \"it's $${x} %%{y} `z`\"", "a = \"***\"");
    assert_redacts(set, "'it'\\''s ${x} %{y} `z`'", "'***'");
    assert_redacts(set, "'it'\"'\"'s ${x} %{y} `z`'", "'***'");
    assert_redacts(set, "\"it's \\${x} %{y} \\`z\\`\"", "\"***\"");
    assert_redacts(set, "it\\'s\\ \\$\\{x\\}\\ %\\{y\\}\\ \\`z\\`", "***");
    df_redact_set_free(set);
}

static void a_value_that_was_wrapped_at_a_blank_is_masked(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("correct horse battery staple");
    assert_redacts(set, "Error: bad correct horse\nbattery staple.", "Error: bad ***.");
    assert_redacts(set, "Error: bad correct\nhorse battery staple.", "Error: bad ***.");
    df_redact_set_free(set);
}

/* Whatever stands around a value in the encoded bytes, nothing but a character that also depends on
 * that neighbour may be left of it. */
static void a_value_is_masked_in_base64_at_every_alignment(void **state)
{
    (void)state;
    static const char secret[] = "Tr0ub4dor&3~horse\xff\xfe?";
    struct df_redact_set *set = SET(secret);
    for (int url = 0; url < 2; url++) {
        for (size_t before = 0; before < 7; before++) {
            DF_FREE char *plain = df_strf("%.*s%s%s", (int)before, "userxyz", secret, "behind");
            DF_BUF struct df_buf encoded = DF_BUF_INIT(1000);
            assert_int_equal(df_base64_encode(plain, strlen(plain), url, &encoded, NULL), 0);
            DF_BUF struct df_buf out = DF_BUF_INIT(1000);
            assert_int_equal(df_redact_string(set, df_buf_str(&encoded), &out, NULL), 0);
            const char *masked = strstr(df_buf_str(&out), "***");
            assert_non_null(masked);
            /* at most one character more than the neighbours fill on each side */
            assert_true((size_t)(masked - df_buf_str(&out)) <= (before * 8 + 5) / 6);
            assert_true(strlen(masked + 3) <= (6 * 8 + 5) / 6 + 1 + (url ? 0 : 2));
        }
    }
    df_redact_set_free(set);
}

static void a_json_library_cannot_smuggle_a_value_out(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        char secret[40];
        random_value(secret, 8 + next_random(24));
        struct df_redact_set *set = SET(secret);
        DF_JSON cJSON *j = cJSON_CreateString(secret);
        DF_FREE char *text = df_json_print(j);
        DF_BUF struct df_buf out = DF_BUF_INIT(1000);
        assert_int_equal(df_redact_string(set, text, &out, NULL), 0);
        assert_string_equal(df_buf_str(&out), "\"***\"");
        df_redact_set_free(set);
    }
}

/* --- what is and what is not a value --------------------------------------------------------- */

static void values_below_four_bytes_are_left_out(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("abc", "", "  x ", "\n\n");
    assert_redacts(set, "abc x \n\n abc", "abc x \n\n abc");
    df_redact_set_free(set);
}

static void four_bytes_are_enough(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("pass");
    assert_redacts(set, "passpas compass", "***pas com***");
    df_redact_set_free(set);
}

static void an_empty_set_changes_nothing(void **state)
{
    (void)state;
    DF_STRS struct df_strs none = {0};
    struct df_redact_set *set = set_of(&none);
    assert_redacts(set, "all of this", "all of this");
    df_redact_set_free(set);
}

static void blanks_at_the_ends_do_not_belong_to_a_value(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("  token-1234 \n");
    assert_redacts(set, "x=token-1234;", "x=***;");
    df_redact_set_free(set);
}

static void each_line_of_a_key_is_masked_with_any_line_ends(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("-----BEGIN KEY-----\n"
                                    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
                                    "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"
                                    "MzEfYyji\n"
                                    "-----END KEY-----\n");
    assert_redacts(set,
                   "  MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\n  BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\r\n",
                   "  ***\r\n  ***\r\n");
    assert_redacts(set, "key: MzEfYyji.", "key: ***.");
    assert_redacts(set,
                   "{\"k\":\"-----BEGIN KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\\n"
                   "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\\nMzEfYyji\\n-----END KEY-----\\n\"}",
                   "{\"k\":\"***\\n\"}");
    df_redact_set_free(set);
}

static void every_part_of_a_long_value_is_masked(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    char secret[LONG + 1];
    random_value(secret, LONG);
    struct df_redact_set *set = SET(secret);
    assert_redacts(set, secret, "***");
    DF_BUF struct df_buf encoded = DF_BUF_INIT(4 * LONG), out = DF_BUF_INIT(4 * LONG);
    assert_int_equal(df_base64_encode(secret, LONG, false, &encoded, NULL), 0);
    assert_int_equal(df_redact_string(set, df_buf_str(&encoded), &out, NULL), 0);
    assert_int_equal(strncmp(df_buf_str(&out), "***", 3), 0);
    assert_true(out.len < 3 + 4);
    df_redact_set_free(set);
}

static void a_long_value_of_wide_characters_has_no_seams(void **state)
{
    (void)state;
    DF_BUF struct df_buf secret = DF_BUF_INIT(10000), text = DF_BUF_INIT(100000);
    for (int i = 0; i < 1500; i++) {
        (void)df_buf_addf(&secret, "%c\xc3\xa9\xe2\x82\xac", 'a' + (int)next_random(26));
        (void)df_buf_addf(&text, "%c\\u00e9\\u20ac", secret.data[secret.len - 6]);
    }
    struct df_redact_set *set = SET(df_buf_str(&secret));
    DF_BUF struct df_buf out = DF_BUF_INIT(100000);
    assert_int_equal(df_redact_string(set, df_buf_str(&text), &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "***");
    df_redact_set_free(set);
}

static void too_many_values_are_refused_with_the_number(void **state)
{
    (void)state;
    DF_STRS struct df_strs v = {0};
    for (int i = 0; i <= DF_LIMIT_SECRETS_MASKED; i++)
        assert_int_equal(df_strs_addf(&v, "secret-%d", i), 0);
    struct df_redact_set *set = NULL;
    struct df_err err = {0};
    assert_int_equal(df_redact_set_new(&v, &set, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_non_null(strstr(err.message, "4097"));
    assert_null(set);
}

static void too_large_values_are_refused(void **state)
{
    (void)state;
    DF_STRS struct df_strs v = {0};
    char *value = malloc(DF_LIMIT_SECRET_VALUE + 1);
    for (int i = 0; i < 20; i++) {
        random_value(value, DF_LIMIT_SECRET_VALUE);
        assert_int_equal(df_strs_add(&v, value), 0);
    }
    free(value);
    struct df_redact_set *set = NULL;
    struct df_err err = {0};
    assert_int_equal(df_redact_set_new(&v, &set, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

/* ---- lines of a provisioner ---- */

static void a_line_of_a_provisioner_is_shown_as_soon_as_it_is_decided(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("hunter2-secret");
    struct df_redact *r = stream_of(set);
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    static const struct {
        const char *piece, *shown;
    } rows[] = {{"a.b (local-exec): one\n", "a.b (local-exec): one\n"},
                {"a.b (local-exec): hunter2", "a.b (local-exec): "},
                {"\n", ""},
                {"a.b (local", ""},
                {"-exec): -secret\n", "***\na.b (local-exec): ***\n"},
                {"a.b (local-exec): hunter2\n", "a.b (local-exec): "},
                {"a.b: Still creating...\n", "hunter2\na.b: Still creating...\n"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        df_buf_clear(&out);
        assert_int_equal(df_redact_feed(r, rows[i].piece, strlen(rows[i].piece), &out, NULL), 0);
        assert_string_equal(df_buf_str(&out), rows[i].shown);
    }
    df_redact_free(r);
    df_redact_set_free(set);
}

/* An address with keys may have any length; the redactor looks at so much of it. */
static void a_prefix_is_known_up_to_its_limit(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("hunter2-secret");
    for (size_t longer = 0; longer < 2; longer++) {
        const size_t key = DF_LIMIT_REDACT_PREFIX - strlen("a.b[\"\"] (c):") + longer;
        char name[DF_LIMIT_REDACT_PREFIX];
        memset(name, 'k', key);
        name[key] = '\0';
        DF_FREE char *text = df_strf("hunter2\na.b[\"%s\"] (c): -secret\n", name);
        DF_FREE char *expected = df_strf("***\na.b[\"%s\"] (c): ***\n", name);
        assert_redacts(set, text, longer ? text : expected);
    }
    df_redact_set_free(set);
}

/* --- the stream ------------------------------------------------------------------------------ */

static void ordinary_text_passes_at_once(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("hunter2-secret", "another-Value_99");
    struct df_redact *r = stream_of(set);
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    static const char line[] = "terraform_data.b: Creation complete after 0s [id=2ad166b3]\n";
    assert_int_equal(df_redact_feed(r, line, strlen(line), &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), line);
    df_redact_free(r);
    df_redact_set_free(set);
}

static void only_what_may_begin_a_value_is_held_back(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("hunter2-secret");
    struct df_redact *r = stream_of(set);
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    assert_int_equal(df_redact_feed(r, "say hunter2-", 12, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "say ");
    assert_int_equal(df_redact_feed(r, "gatherer", 8, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "say hunter2-gatherer");
    df_redact_free(r);
    df_redact_set_free(set);
}

static void overlapping_and_adjacent_values_become_one_mask(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("abcdefgh", "efghijkl", "efgh", "bcde");
    assert_redacts(set, "-abcdefghijkl-", "-***-");
    assert_redacts(set, "-abcdefghabcdefgh-", "-***-");
    assert_redacts(set, "-abcdefg-efgh-", "-a***fg-***-");
    df_redact_set_free(set);
}

static void a_mask_is_not_repeated_when_its_bytes_come_one_by_one(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("aaaaaaaa", "aaaaaaaab");
    struct df_redact *r = stream_of(set);
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    for (int i = 0; i < 100; i++)
        assert_int_equal(df_redact_feed(r, "a", 1, &out, NULL), 0);
    assert_int_equal(df_redact_finish(r, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "***");
    df_redact_free(r);
    df_redact_set_free(set);
}

static void nuls_and_binary_bytes_pass(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("\xff\xfe\xfd\xfc", "plain");
    struct df_redact *r = stream_of(set);
    static const char text[] = "\0\0plain\0\xff\xfe\xfd\xfc\0\x80\xff\xfe";
    static const char expected[] = "\0\0***\0***\0\x80\xff\xfe";
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    for (size_t split = 0; split < sizeof text; split++) {
        redact_split(r, text, sizeof text, split, &out);
        assert_int_equal(out.len, sizeof expected);
        assert_memory_equal(out.data, expected, sizeof expected);
    }
    df_redact_free(r);
    df_redact_set_free(set);
}

/* Every form of 200 values, split at every position, against the oracle. */
static void no_split_of_any_form_of_200_values_shows_anything(void **state)
{
    (void)state;
    DF_STRS struct df_strs secrets = {0};
    for (int i = 0; i < 200; i++) {
        char value[64];
        random_value(value, 4 + next_random(36));
        assert_int_equal(df_strs_add(&secrets, value), 0);
    }
    struct df_redact_set *set = set_of(&secrets);
    struct df_redact *r = stream_of(set);
    struct oracle o = oracle_new(&secrets);
    DF_BUF struct df_buf out = DF_BUF_INIT(10000), text = DF_BUF_INIT(10000),
                         expected = DF_BUF_INIT(10000);
    for (size_t p = 0; p < o.count; p++) {
        const struct oracle_pattern *pattern = &o.patterns[p];
        if (pattern->joined)
            continue;
        df_buf_clear(&text);
        df_buf_clear(&expected);
        (void)df_buf_adds(&text, "p=");
        (void)df_buf_add(&text, pattern->form.data, pattern->form.len);
        (void)df_buf_adds(&text, "\t;");
        (void)df_buf_adds(&expected, "p=***\t;");
        for (size_t split = 0; split <= text.len; split++) {
            redact_split(r, text.data, text.len, split, &out);
            assert_string_equal(df_buf_str(&out), df_buf_str(&expected));
        }
    }
    oracle_free(&o);
    df_redact_free(r);
    df_redact_set_free(set);
}

/* Values made of few letters overlap, contain and border on each other all the time. */
static void random_text_over_few_letters_agrees_with_the_oracle(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        DF_STRS struct df_strs secrets = {0};
        for (unsigned i = 0; i < 1 + next_random(6); i++) {
            char value[32];
            size_t n = 4 + next_random(12);
            for (size_t k = 0; k < n; k++)
                value[k] = (char)('a' + next_random(2));
            value[n] = '\0';
            assert_int_equal(df_strs_add(&secrets, value), 0);
        }
        struct df_redact_set *set = set_of(&secrets);
        struct df_redact *r = stream_of(set);
        struct oracle o = oracle_new(&secrets);
        char text[300];
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)('a' + next_random(next_random(20) ? 2 : 3));
        DF_BUF struct df_buf expected = DF_BUF_INIT(1000), out = DF_BUF_INIT(1000);
        oracle_redact(&o, text, sizeof text, &expected);
        for (size_t at = 0; at < sizeof text;) {
            size_t n = 1 + next_random(40);
            n = n < sizeof text - at ? n : sizeof text - at;
            assert_int_equal(df_redact_feed(r, text + at, n, &out, NULL), 0);
            at += n;
        }
        assert_int_equal(df_redact_finish(r, &out, NULL), 0);
        assert_string_equal(df_buf_str(&out), df_buf_str(&expected));
        oracle_free(&o);
        df_redact_free(r);
        df_redact_set_free(set);
    }
}

/* Pieces of text that wrap, colour and escape values of the letters a and b. */
static void add_wrapped(struct df_buf *text)
{
    static const char *const words[] = {
        "a",           "b",      "ab",     "ba",    "aabb",    "\n",        "\r\n",
        " ",           "\n\n  ", "%61",    "%62",   "%6",      "\\u0061",   "\\\\u0062",
        "\\x61",       "&#97;",  "&#x62;", "&amp;", "\033[1m", "\033[0;31", "\033",
        "\\",          "\\n",    "''",     "\"\"",  "\"",      "'",         "\xe2\x94\x82",
        "\xe2",        "YWJh",   "6162",   "61:62", "&",       "%",         "\t",
        "\na.b (c): ", "\na",    ".b",     "a.b",   " (c",     "): ",       "[\""};
    unsigned kind = next_random(3);
    if (kind < 2)
        (void)df_buf_adds(text, words[next_random(5)]);
    else
        (void)df_buf_adds(text, words[next_random(DF_ARRAY_SIZE(words))]);
}

/* A value with something between its letters, and some of these escaped. */
static void add_spoiled(struct df_buf *text, const char *value)
{
    static const char *const gaps[] = {"\n",
                                       "\r\n\xe2\x94\x82 ",
                                       "\033[0m",
                                       " ",
                                       "''",
                                       "\\",
                                       "\na.b (local-exec): ",
                                       "\na.b: (local-exec): ",
                                       "\n\033[0m\033[1ma.b[\"a (b): \\\"]\"] (c):\033[0m "};
    unsigned seldom = 1 + next_random(8);
    for (; *value; value++) {
        oracle_spell(text, next_random(4 * seldom), *value);
        if (!next_random(seldom))
            (void)df_buf_adds(text, gaps[next_random(DF_ARRAY_SIZE(gaps))]);
    }
}

static void feed_in_pieces(struct df_redact *r, const struct df_buf *text, size_t most,
                           struct df_buf *out)
{
    for (size_t at = 0; at < text->len;) {
        size_t n = 1 + next_random((unsigned)most);
        n = n < text->len - at ? n : text->len - at;
        assert_int_equal(df_redact_feed(r, text->data + at, n, out, NULL), 0);
        at += n;
    }
    assert_int_equal(df_redact_finish(r, out, NULL), 0);
}

static void wrapped_and_escaped_text_agrees_with_the_oracle(void **state)
{
    (void)state;
    const int rounds = SANITIZED ? 300 : 1500;
    size_t masked = 0;
    for (int round = 0; round < rounds; round++) {
        DF_STRS struct df_strs secrets = {0};
        const unsigned count = 1 + next_random(3);
        for (unsigned i = 0; i < count; i++) {
            char value[32];
            size_t n = 8 + next_random(6);
            for (size_t k = 0; k < n; k++)
                value[k] = (char)('a' + next_random(2));
            value[n] = '\0';
            assert_int_equal(df_strs_add(&secrets, value), 0);
        }
        struct df_redact_set *set = set_of(&secrets);
        struct df_redact *r = stream_of(set);
        struct oracle o = oracle_new(&secrets);
        DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB), expected = DF_BUF_INIT(DF_MIB),
                             out = DF_BUF_INIT(DF_MIB);
        for (int i = 0; i < 100; i++) {
            add_wrapped(&text);
            if (!next_random(30))
                add_spoiled(&text, secrets.items[next_random(count)]);
        }
        oracle_redact(&o, text.data, text.len, &expected);
        static const size_t most[] = {1, 3, 7, 40, 1000};
        for (size_t i = 0; i < DF_ARRAY_SIZE(most); i++) {
            df_buf_clear(&out);
            feed_in_pieces(r, &text, most[i], &out);
            assert_string_equal(df_buf_str(&out), df_buf_str(&expected));
        }
        masked += strstr(df_buf_str(&out), "***") != NULL;
        oracle_free(&o);
        df_redact_free(r);
        df_redact_set_free(set);
    }
    assert_true(masked > (size_t)rounds / 2);
}

static void a_stream_can_be_used_again_after_its_end(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("hunter2-secret");
    struct df_redact *r = stream_of(set);
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    assert_int_equal(df_redact_feed(r, "hunter2", 7, &out, NULL), 0);
    assert_int_equal(df_redact_finish(r, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "hunter2");
    assert_int_equal(df_redact_feed(r, "-secret hunter2-secret", 22, &out, NULL), 0);
    assert_int_equal(df_redact_finish(r, &out, NULL), 0);
    assert_string_equal(df_buf_str(&out), "hunter2-secret ***");
    df_redact_free(r);
    df_redact_set_free(set);
}

static void a_line_of_a_gigabyte_passes_in_bounded_memory(void **state)
{
    (void)state;
    struct df_redact_set *set = SET("hunter2-secret", "aaaaaaaaaaaaaaaaaaaaaaaab");
    struct df_redact *r = stream_of(set);
    static char piece[64 * 1024];
    memset(piece, 'a', sizeof piece);
    memcpy(piece + 1000, "hunter2-secret", 14);
    DF_BUF struct df_buf out = DF_BUF_INIT(sizeof piece + DF_KIB);
    const uint64_t line = SANITIZED ? DF_GIB / 16 : DF_GIB;
    uint64_t bytes = 0;
    long before = peak_kib();
    for (uint64_t fed = 0; fed < line; fed += sizeof piece) {
        assert_int_equal(df_redact_feed(r, piece, sizeof piece, &out, NULL), 0);
        bytes += out.len;
        df_buf_clear(&out);
    }
    assert_int_equal(df_redact_finish(r, &out, NULL), 0);
    bytes += out.len;
    uint64_t masked = line / sizeof piece;
    assert_int_equal(bytes, line - masked * (14 - 3));
    assert_peak_below(before + 4096);
    df_redact_free(r);
    df_redact_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_masked_in_each_of_its_forms),
        cmocka_unit_test(templates_and_shell_words_are_masked),
        cmocka_unit_test(a_value_that_was_wrapped_at_a_blank_is_masked),
        cmocka_unit_test(a_value_is_masked_in_base64_at_every_alignment),
        cmocka_unit_test(a_json_library_cannot_smuggle_a_value_out),
        cmocka_unit_test(values_below_four_bytes_are_left_out),
        cmocka_unit_test(four_bytes_are_enough),
        cmocka_unit_test(an_empty_set_changes_nothing),
        cmocka_unit_test(blanks_at_the_ends_do_not_belong_to_a_value),
        cmocka_unit_test(each_line_of_a_key_is_masked_with_any_line_ends),
        cmocka_unit_test(every_part_of_a_long_value_is_masked),
        cmocka_unit_test(a_long_value_of_wide_characters_has_no_seams),
        cmocka_unit_test(too_many_values_are_refused_with_the_number),
        cmocka_unit_test(too_large_values_are_refused),
        cmocka_unit_test(a_line_of_a_provisioner_is_shown_as_soon_as_it_is_decided),
        cmocka_unit_test(a_prefix_is_known_up_to_its_limit),
        cmocka_unit_test(ordinary_text_passes_at_once),
        cmocka_unit_test(only_what_may_begin_a_value_is_held_back),
        cmocka_unit_test(overlapping_and_adjacent_values_become_one_mask),
        cmocka_unit_test(a_mask_is_not_repeated_when_its_bytes_come_one_by_one),
        cmocka_unit_test(nuls_and_binary_bytes_pass),
        cmocka_unit_test(no_split_of_any_form_of_200_values_shows_anything),
        cmocka_unit_test(random_text_over_few_letters_agrees_with_the_oracle),
        cmocka_unit_test(wrapped_and_escaped_text_agrees_with_the_oracle),
        cmocka_unit_test(a_stream_can_be_used_again_after_its_end),
        cmocka_unit_test(a_line_of_a_gigabyte_passes_in_bounded_memory),
    };
    return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
