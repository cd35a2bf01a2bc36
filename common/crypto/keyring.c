#include "common/crypto/keyring.h"

#include "common/base/parse.h"

#define MAGIC "dfk1"

enum { MAGIC_LEN = sizeof(MAGIC) - 1, ID_LEN = sizeof(((struct df_keyring_key *)NULL)->id) };

int df_keyring_add(struct df_keyring *r, const unsigned char key[DF_KEY_LEN], struct df_err *err)
{
    unsigned char derived[DF_KEY_LEN];
    if (r->len == DF_LIMIT_KEYRING)
        return df_fail(err, DF_ERR_LIMIT, "more than %d keys for content at rest",
                       DF_LIMIT_KEYRING);
    if (df_derive_key(key, "key-id", derived, err) < 0)
        return -1;
    struct df_keyring_key *k = &r->keys[r->len++];
    memcpy(k->id, derived, ID_LEN);
    memcpy(k->key, key, DF_KEY_LEN);
    explicit_bzero(derived, sizeof(derived));
    return 0;
}

void df_keyring_wipe(struct df_keyring *r)
{
    explicit_bzero(r, sizeof(*r));
}

int df_keyring_seal(const struct df_keyring *r, const char *aad, const void *bytes, size_t n,
                    struct df_buf *out, struct df_err *err)
{
    const struct df_keyring_key *k = &r->keys[0];
    (void)df_buf_add(out, MAGIC, MAGIC_LEN);
    (void)df_buf_add(out, k->id, ID_LEN);
    return df_buf_check(out, err) < 0 ? -1 : df_aead_seal(k->key, aad, bytes, n, out, err);
}

static bool is_sealed(const char *text, size_t n)
{
    return n >= MAGIC_LEN + ID_LEN && memcmp(text, MAGIC, MAGIC_LEN) == 0;
}

size_t df_keyring_find(const struct df_keyring *r, const void *bytes, size_t n)
{
    const char *text = bytes;
    size_t i = 0;
    if (!is_sealed(text, n))
        return r->len;
    while (i < r->len && memcmp(r->keys[i].id, text + MAGIC_LEN, ID_LEN) != 0)
        i++;
    return i;
}

int df_keyring_open(const struct df_keyring *r, const char *aad, const void *bytes, size_t n,
                    struct df_buf *out, struct df_err *err)
{
    const char *text = bytes;
    if (!is_sealed(text, n))
        return df_fail(err, DF_ERR_DENIED, "this is not sealed content");
    size_t i = df_keyring_find(r, bytes, n);
    if (i < r->len)
        return df_aead_open(r->keys[i].key, aad, text + MAGIC_LEN + ID_LEN, n - MAGIC_LEN - ID_LEN,
                            out, err);
    char id[2 * ID_LEN + 1];
    df_hex(text + MAGIC_LEN, ID_LEN, id);
    return df_fail_reason(err, DF_ERR_DENIED, "UnknownKey",
                          "it is sealed with key %s, which is not among the %zu given", id, r->len);
}
