/*
 * pulled.c - the tool prints the members of a state in this order: version, terraform_version,
 * serial, lineage, and then what the state holds. read_head() reads only those before: the rest may
 * be large, and is compared by its digest.
 */
#include "runner/pulled.h"

#include "common/base/parse.h"

#define SPACE " \t\r\n"

static int not_a_state(struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "StateRefused",
                          "`state pull` printed something else than a state of format 4");
}

/* Passes c and the space around it; NULL if there is something else. */
static const char *pass(const char *p, char c)
{
    p += strspn(p, SPACE);
    if (*p != c)
        return NULL;
    p++;
    return p + strspn(p, SPACE);
}

/* One `"key": value` with a number or a plain string. */
struct member {
    const char *key, *value; /* of a string: without its quotes */
    size_t key_len, value_len;
};

/* Returns what follows the member; or NULL. */
static const char *read_member(const char *p, struct member *ret)
{
    struct member m;
    if (*p != '"')
        return NULL;
    m.key = p + 1;
    m.key_len = strcspn(m.key, "\"");
    p = m.key[m.key_len] ? pass(m.key + m.key_len + 1, ':') : NULL;
    if (!p)
        return NULL;
    bool is_text = *p == '"';
    m.value = p + is_text;
    m.value_len = is_text ? strcspn(m.value, "\"\\") : strspn(p, "0123456789");
    p = m.value + m.value_len;
    if (is_text && *p++ != '"')
        return NULL;
    *ret = m;
    return p;
}

static bool is_key(const struct member *m, const char *key)
{
    return m->key_len == strlen(key) && memcmp(m->key, key, m->key_len) == 0;
}

static int take_serial(const struct member *m, struct df_pulled *p, struct df_err *err)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)m->value_len, m->value);
    return df_parse_i64(digits, 0, INT64_MAX, &p->serial, err) < 0 ? not_a_state(err) : 0;
}

static int take_lineage(const struct member *m, struct df_pulled *p, struct df_err *err)
{
    if (m->value_len >= sizeof(p->lineage))
        return not_a_state(err);
    memcpy(p->lineage, m->value, m->value_len);
    return 0;
}

/* text: what follows the lineage. */
static bool holds_nothing(const char *text)
{
    static const char nothing[] = ",\"outputs\":{},\"resources\":[]";
    size_t seen = 0;
    for (const char *p = text; *p && seen < sizeof(nothing) - 1; p++) {
        if (strchr(SPACE, *p))
            continue;
        if (*p != nothing[seen++])
            return false;
    }
    return seen == sizeof(nothing) - 1;
}

/* *ret_at: what follows the lineage. */
static int read_head(const char *text, struct df_pulled *ret, const char **ret_at,
                     struct df_err *err)
{
    struct df_pulled p = {.exists = true, .serial = -1};
    struct member m = {0};
    const char *at = pass(text, '{');
    while (at && !is_key(&m, "lineage")) {
        at = read_member(at, &m);
        if (at && is_key(&m, "serial") && take_serial(&m, &p, err) < 0)
            return -1;
        if (at)
            at = is_key(&m, "lineage") ? at : pass(at, ',');
    }
    if (!at || p.serial < 0)
        return not_a_state(err);
    if (take_lineage(&m, &p, err) < 0)
        return -1;
    *ret = p;
    *ret_at = at;
    return 0;
}

/* Where there is no state, the tool prints nothing, or an empty one. */
static bool is_state(const struct df_pulled *p)
{
    return *p->lineage || p->serial;
}

int df_pulled_read_head(const char *text, struct df_pulled *ret, struct df_err *err)
{
    struct df_pulled p;
    const char *at = NULL;
    *ret = (struct df_pulled){0};
    if (!text[strspn(text, SPACE)])
        return 0;
    if (read_head(text, &p, &at, err) < 0)
        return -1;
    if (is_state(&p))
        *ret = p;
    return 0;
}

int df_pulled_read(const struct df_buf *text, struct df_pulled *ret, struct df_err *err)
{
    struct df_pulled p;
    const char *whole = df_buf_str(text), *at = NULL;
    *ret = (struct df_pulled){0};
    if (strspn(whole, SPACE) == text->len)
        return 0;
    if (read_head(whole, &p, &at, err) < 0 ||
        df_sha256_hex(at, text->len - (size_t)(at - whole), p.content, err) < 0)
        return -1;
    p.is_empty = holds_nothing(at);
    if (is_state(&p))
        *ret = p;
    return 0;
}

int df_pulled_renumber(const struct df_buf *text, int64_t serial, struct df_buf *out,
                       struct df_err *err)
{
    struct member m = {0};
    const char *whole = df_buf_str(text), *at = pass(whole, '{');
    while (at && !is_key(&m, "serial")) {
        at = read_member(at, &m);
        at = at && !is_key(&m, "serial") ? pass(at, ',') : at;
    }
    if (!at || !m.value_len)
        return not_a_state(err);
    (void)df_buf_add(out, whole, (size_t)(m.value - whole));
    (void)df_buf_addf(out, "%lld", (long long)serial);
    (void)df_buf_add(out, at, text->len - (size_t)(at - whole));
    return df_buf_check(out, err);
}

bool df_pulled_is_same(const struct df_pulled *a, const struct df_pulled *b)
{
    return a->exists == b->exists && df_streq(a->lineage, b->lineage) &&
           df_streq(a->content, b->content);
}
