/*
 * fuzz_token - key sets and signed tokens of outsiders. The input is a token, a newline, a key set.
 *
 * Held: whatever is no good is refused by class, and what is taken says what was expected of it.
 */
#include "common/crypto/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void verify(const char *token, const struct df_jwk_set *keys)
{
    const struct df_jwt_expect e = {"i", "a", (int64_t)1790000000 * 1000000};
    DF_JSON cJSON *claims = NULL;
    struct df_err err = {0};
    if (df_jwt_verify(token, keys, &e, &claims, &err) < 0) {
        if (err.cls != DF_ERR_DENIED || !err.reason[0])
            abort();
        return;
    }
    if (!df_streq(df_json_str(claims, "iss"), "i") || !df_jwt_is(token))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
    struct df_jwk_set *keys = NULL;
    struct df_err err = {0};
    if (!end)
        return 0;
    DF_FREE char *token = strndup(text, (size_t)(end - text));
    if (!token)
        return 0;
    if (df_jwk_set_parse(end + 1, size - (size_t)(end + 1 - text), &keys, &err) < 0) {
        if (err.cls != DF_ERR_USER && err.cls != DF_ERR_LIMIT)
            abort();
        return 0;
    }
    verify(token, keys);
    df_jwk_set_free(keys);
    return 0;
}
