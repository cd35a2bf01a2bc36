/*
 * bench_redact - masking throughput of one core, in MB/s (10^6 bytes), with 200 secrets.
 *
 * Texts: a log as tofu and its providers write it, which must pass at 1000 MB/s, and with colours
 * at 400 MB/s; the same with a secret in every line, text made of secrets that are wrong in one
 * byte, which must keep up with a flood of 100 MB/s; nothing but escapes (20 MB/s) or wrapped
 * base64 of secrets (50 MB/s); and lines of a provisioner that end in the middle of a secret (200
 * MB/s). The stated peer, in the same run over the same bytes: memchr() for a byte that is not
 * there, and memcpy(). Prints rows for tests/bench/run: name, value, limit, ok or NOT.
 */
#include <time.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "common/redact/redact.h"
#include "common/redact/set.h"

enum { SECRETS = 200, SECRET_LEN = 40, ROUNDS = 40, PIECE = 64 * 1024 };
#define TEXT_BYTES (4 * DF_MIB) /* a round fits into one slice of a busy processor */

static uint64_t seed = 88172645463325252ULL;

static unsigned next_random(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % below;
}

static void random_word(char *to, size_t n, const char *alphabet)
{
    unsigned letters = (unsigned)strlen(alphabet);
    for (size_t i = 0; i < n; i++)
        to[i] = alphabet[next_random(letters)];
    to[n] = '\0';
}

static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* Tokens as services give them out: a common beginning, then random characters. */
static void make_secrets(struct df_strs *secrets, size_t len)
{
    static const char *const kinds[] = {"ghp_", "AKIA", "xoxb-", "glpat-", "", "", "s3cr3t/", "p@"};
    for (int i = 0; i < SECRETS; i++) {
        char word[SECRET_LEN + 1];
        const char *kind = kinds[(size_t)i % DF_ARRAY_SIZE(kinds)];
        size_t kept = strlen(kind) < len / 2 ? strlen(kind) : len / 2;
        random_word(word, len - kept, alnum);
        (void)df_strs_addf(secrets, "%.*s%s", (int)kept, kind, word);
    }
}

static void add_log_line(struct df_buf *b)
{
    char id[33], word[13];
    random_word(id, 32, "0123456789abcdef");
    random_word(word, 12, "abcdefghijklmnopqrstuvwxyz");
    switch (next_random(5)) {
    case 0:
        (void)df_buf_addf(b,
                          "module.network.aws_subnet.private[%u]: Creation complete after %us "
                          "[id=subnet-%.17s]\n",
                          next_random(99), next_random(60), id);
        break;
    case 1:
        (void)df_buf_addf(b,
                          "2026-11-21T09:%02u:50.812499Z [DEBUG] provider.terraform-provider-%s_v5"
                          ".31.0_x5: HTTP Request Sent: http.method=POST rpc.service=EC2 "
                          "tf_req_id=%s @caller=github.com/hashicorp/aws-sdk-go-base/v2\n",
                          next_random(60), word, id);
        break;
    case 2:
        (void)df_buf_addf(b,
                          "  + resource \"aws_security_group_rule\" \"%s\" {\n      + id        = "
                          "(known after apply)\n      + protocol  = \"tcp\"\n    }\n",
                          word);
        break;
    case 3:
        (void)df_buf_addf(
            b,
            "{\"@level\":\"info\",\"@message\":\"%s.this: Refreshing state... [id=%s]\""
            ",\"@module\":\"tofu.ui\",\"type\":\"refresh_start\"}\n",
            word, id);
        break;
    default:
        (void)df_buf_addf(
            b, "Note: Objects have changed outside of OpenTofu: arn:aws:iam::%09u:role/%s\n",
            next_random(999999999), word);
    }
}

/* Almost a secret: without its last byte, without its first, or with one wrong in the middle. */
static void add_near_match(struct df_buf *b, const struct df_strs *secrets)
{
    const char *secret = secrets->items[next_random((unsigned)secrets->len)];
    size_t n = strlen(secret), at = next_random((unsigned)n - 2) + 1;
    unsigned kind = next_random(3);
    if (kind == 0)
        (void)df_buf_add(b, secret, n - 1);
    else if (kind == 1)
        (void)df_buf_add(b, secret + 1, n - 1);
    else
        (void)df_buf_addf(b, "%.*s\x01%s", (int)at, secret, secret + at + 1);
    (void)df_buf_addc(b, '\x02');
}

/* Percent encoding of a secret that is wrong in its first byte: every character is a joint. */
static void add_escapes(struct df_buf *b, const struct df_strs *secrets)
{
    const char *secret = secrets->items[next_random((unsigned)secrets->len)];
    (void)df_buf_adds(b, "%21");
    for (const char *c = secret + 1; *c; c++)
        (void)df_buf_addf(b, "%%%02x", (unsigned char)*c);
    (void)df_buf_addc(b, ' ');
}

/* Secrets in one document that base64 has wrapped. */
static void add_base64(struct df_buf *b, const struct df_strs *secrets)
{
    DF_BUF struct df_buf plain = DF_BUF_INIT(4096), encoded = DF_BUF_INIT(8192);
    while (plain.len < 1024)
        (void)df_buf_addf(&plain, "password: %s\n",
                          secrets->items[next_random((unsigned)secrets->len)]);
    if (df_base64_encode(plain.data, plain.len, false, &encoded, NULL) < 0)
        abort();
    for (size_t at = 0; at < encoded.len; at += 76)
        (void)df_buf_addf(b, "%.76s\n", encoded.data + at);
}

/* What a provisioner prints; one line in four ends with the first half of a secret, which the next
 * does not go on with. */
static void add_provisioner(struct df_buf *b, const struct df_strs *secrets)
{
    const char *secret = secrets->items[next_random((unsigned)secrets->len)];
    char word[41];
    random_word(word, 40, "abcdefghijklmnopqrstuvwxyz ");
    (void)df_buf_addf(b, "module.network[\"eu-%u\"].null_resource.setup[%u] (local-exec): %s",
                      next_random(9), next_random(99), word);
    if (!next_random(4))
        (void)df_buf_addf(b, " %.*s", (int)strlen(secret) / 2, secret);
    (void)df_buf_addc(b, '\n');
}

enum text {
    TEXT_LOG,
    TEXT_SECRETS,
    TEXT_NEAR,
    TEXT_COLOURS,
    TEXT_ESCAPES,
    TEXT_BASE64,
    TEXT_PROVISIONER,
    TEXTS
};
static const char *const text_names[] = {
    "log",     "a secret in every line",  "near matches",          "log with colours",
    "escapes", "base64 in wrapped lines", "lines of a provisioner"};
static const double floors[] = {1000, 100, 100, 400, 20, 50, 200};

static void make_text(enum text kind, const struct df_strs *secrets, struct df_buf *b)
{
    df_buf_clear(b);
    while (b->len < TEXT_BYTES - 4096) {
        if (kind == TEXT_NEAR)
            add_near_match(b, secrets);
        else if (kind == TEXT_ESCAPES)
            add_escapes(b, secrets);
        else if (kind == TEXT_BASE64)
            add_base64(b, secrets);
        else if (kind == TEXT_PROVISIONER)
            add_provisioner(b, secrets);
        else
            add_log_line(b);
        if (kind == TEXT_COLOURS)
            (void)df_buf_adds(b, "\033[0m\033[1m");
        if (kind == TEXT_SECRETS)
            (void)df_buf_addf(b, "password=%s ",
                              secrets->items[next_random((unsigned)secrets->len)]);
    }
}

/* Time of this thread alone: other programs on the machine do not count. */
static int64_t cpu_us(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0)
        abort();
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static double best_mb_per_s(size_t bytes, const int64_t us[ROUNDS])
{
    int64_t best = us[0];
    for (int i = 1; i < ROUNDS; i++)
        best = us[i] < best ? us[i] : best;
    return (double)bytes / (double)(best ? best : 1);
}

static double run_redact(const struct df_redact_set *set, const struct df_buf *text)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    int64_t us[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct df_redact *r = NULL;
        if (df_redact_new(set, &r, NULL) < 0)
            abort();
        int64_t start = cpu_us();
        for (size_t at = 0; at < text->len; at += PIECE) {
            size_t n = text->len - at < PIECE ? text->len - at : PIECE;
            if (df_redact_feed(r, text->data + at, n, &out, NULL) < 0)
                abort();
            df_buf_clear(&out);
        }
        us[i] = cpu_us() - start;
        df_redact_free(r);
    }
    return best_mb_per_s(text->len, us);
}

static double run_memchr(const struct df_buf *text)
{
    int64_t us[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = cpu_us();
        if (memchr(text->data, 0, text->len))
            abort();
        us[i] = cpu_us() - start;
    }
    return best_mb_per_s(text->len, us);
}

static double run_memcpy(const struct df_buf *text)
{
    static char to[PIECE];
    int64_t us[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = cpu_us();
        for (size_t at = 0; at + PIECE <= text->len; at += PIECE) {
            memcpy(to, text->data + at, PIECE);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        us[i] = cpu_us() - start;
    }
    return best_mb_per_s(text->len, us);
}

static size_t patterns_bytes(const struct df_patterns *s)
{
    return sizeof *s + s->bytes_cap + s->cap * sizeof *s->patterns +
           ((size_t)1 << s->bits_log2) / 8 + ((size_t)1 << s->heads_log2) * sizeof *s->heads +
           s->count * s->step * sizeof *s->grams;
}

static size_t set_bytes(const struct df_redact_set *s)
{
    return patterns_bytes(&s->plain) + patterns_bytes(&s->joined) + sizeof s->joints +
           ((size_t)8 << s->joints.log2);
}

static void run_all(size_t secret_len, struct df_buf *text)
{
    DF_STRS struct df_strs secrets = {0};
    make_secrets(&secrets, secret_len);
    struct df_redact_set *set = NULL;
    int64_t start = df_mono_us();
    if (df_redact_set_new(&secrets, &set, NULL) < 0)
        abort();
    double ms = (double)(df_mono_us() - start) / 1000;
    printf("set of %d secrets of %zu bytes: memory\t%zu KiB (%zu patterns, built in %.1f ms)\t"
           "<= 2048 KiB\t%s\n",
           SECRETS, secret_len, set_bytes(set) / 1024, set->plain.count + set->joined.count, ms,
           set_bytes(set) <= 2 * DF_MIB ? "ok" : "NOT");
    for (enum text kind = 0; kind < TEXTS; kind++) {
        make_text(kind, &secrets, text);
        double ours = run_redact(set, text);
        printf("masking %d secrets of %zu bytes: %s\t%.0f MB/s (memchr %.0f, memcpy %.0f)\t"
               ">= %.0f MB/s\t%s\n",
               SECRETS, secret_len, text_names[kind], ours, run_memchr(text), run_memcpy(text),
               floors[kind], ours >= floors[kind] ? "ok" : "NOT");
    }
    df_redact_set_free(set);
}

int main(void)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(TEXT_BYTES);
    static const size_t lengths[] = {40, 8, 5};
    for (size_t i = 0; i < DF_ARRAY_SIZE(lengths); i++)
        run_all(lengths[i], &text);
    return 0;
}
