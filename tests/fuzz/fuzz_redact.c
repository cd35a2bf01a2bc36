/*
 * fuzz_redact - the redactor against its slow oracle.
 *
 * Input: number of secrets; for each its length and bytes; a seed for the sizes of the pieces; the
 * text. A text byte 0x01 stands for "here comes a form of a secret", picked by the next byte, so
 * that the fuzzer finds forms without having to guess them. 0x02 is the same, wrapped, coloured and
 * escaped as further bytes say, and behind what tools write in front of a line. 0x03 is such a
 * prefix alone.
 */
#include "common/redact/redact.h"
#include "tests/unit/redact_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *p, *end;
};

static unsigned next_byte(struct input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

static void read_secrets(struct input *in, struct df_strs *secrets)
{
    unsigned count = next_byte(in) % 8;
    for (unsigned i = 0; i < count; i++) {
        char value[256];
        unsigned n = next_byte(in);
        for (unsigned k = 0; k < n; k++) {
            unsigned c = next_byte(in);
            value[k] = (char)(c ? c : '.');
        }
        value[n] = '\0';
        if (df_strs_add(secrets, value) < 0)
            abort();
    }
}

/* A line break and what a tool writes in front of a line, or nearly that. */
static void add_prefix(struct input *in, struct df_buf *text)
{
    static const char *const parts[] = {"\n",          "a.b",
                                        ".c",          "[0]",
                                        "[\"k\"]",     "[\"a b\\\" (c): ]\"]",
                                        "[\"",         "\"]",
                                        "\"",          "\\",
                                        ":",           " (",
                                        "remote-exec", "): ",
                                        "):\033[0m ",  "\033[0m\033[1m",
                                        "\r\n",        "m-1._",
                                        "\xc3\xa9",    " (x): "};
    static const char *const whole[] = {"\na.b (local-exec): ", "\nm.n[\"k (x): \"].a.b[1]: (c): ",
                                        "\n\033[0m\033[1mmodule.m.a.b (remote-exec):\033[0m "};
    unsigned how = next_byte(in);
    if (how < 128) {
        (void)df_buf_adds(text, whole[how % DF_ARRAY_SIZE(whole)]);
        return;
    }
    for (unsigned i = 0; i < how % 8; i++)
        (void)df_buf_adds(text, parts[next_byte(in) % DF_ARRAY_SIZE(parts)]);
}

/* A form with something between and instead of its bytes. */
static void add_spoiled(struct input *in, const struct df_buf *form, struct df_buf *text)
{
    static const char *const gaps[] = {"",        "",     "",     "\n",      "\r\n\xe2\x94\x82 ",
                                       "\033[1m", "\\",   "\\n",  "''",      "\"\"",
                                       " ",       "\n  ", "%0A",  "&nbsp;",  "\\\\\\",
                                       "\033[",   "%",    "&#1;", "\\u000a", "\t\n"};
    for (size_t i = 0; i < form->len; i++) {
        unsigned how = next_byte(in);
        oracle_spell(text, how % 16, form->data[i]);
        if (how / 16 == 15)
            add_prefix(in, text);
        else
            (void)df_buf_adds(text, gaps[how / 16 % DF_ARRAY_SIZE(gaps)]);
    }
}

static void read_text(struct input *in, const struct oracle *o, struct df_buf *text)
{
    while (in->p < in->end) {
        unsigned c = next_byte(in);
        if (c == 3) {
            add_prefix(in, text);
        } else if (c <= 2 && c && o->count) {
            const struct df_buf *form = &o->patterns[next_byte(in) * 7919U % o->count].form;
            if (c == 2)
                add_spoiled(in, form, text);
            else
                (void)df_buf_add(text, form->data, form->len);
        } else {
            (void)df_buf_addc(text, (char)c);
        }
    }
}

static void redact(const struct df_redact_set *set, const struct df_buf *text, unsigned seed,
                   struct df_buf *out)
{
    struct df_redact *r = NULL;
    if (df_redact_new(set, &r, NULL) < 0)
        abort();
    for (size_t at = 0; at < text->len;) {
        seed = seed * 1103515245U + 12345U;
        size_t n = 1 + (seed >> 16) % 97;
        n = n < text->len - at ? n : text->len - at;
        if (df_redact_feed(r, text->data + at, n, out, NULL) < 0)
            abort();
        at += n;
    }
    if (df_redact_finish(r, out, NULL) < 0)
        abort();
    df_redact_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096)
        return 0;
    struct input in = {data, data + size};
    DF_STRS struct df_strs secrets = {0};
    read_secrets(&in, &secrets);
    unsigned seed = next_byte(&in);
    struct df_redact_set *set = NULL;
    if (df_redact_set_new(&secrets, &set, NULL) < 0)
        abort();
    struct oracle o = oracle_new(&secrets);
    DF_BUF struct df_buf text = DF_BUF_INIT(1 << 20), expected = DF_BUF_INIT(1 << 20),
                         out = DF_BUF_INIT(1 << 20);
    read_text(&in, &o, &text);
    if (!text.failed) {
        oracle_redact(&o, df_buf_str(&text), text.len, &expected);
        redact(set, &text, seed, &out);
        if (out.len != expected.len || (out.len && memcmp(out.data, expected.data, out.len) != 0))
            abort();
    }
    oracle_free(&o);
    df_redact_set_free(set);
    return 0;
}
