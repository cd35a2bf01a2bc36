/*
 * fuzz_truststore - files of authorities, and strings of Java's object stream: what others wrote in
 * Java's forms.
 *
 * Held: what is no good is refused as that, what is taken is not empty, and a string that was read
 * is read again from what is made of it.
 */
#include "common/crypto/truststore.h"
#include "common/terrakube/jdk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_string(const uint8_t *data, size_t size)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB), form = DF_BUF_INIT(DF_MIB),
                         again = DF_BUF_INIT(DF_MIB);
    if (df_jdk_read(data, size, &text, NULL) < 0)
        return;
    if (df_jdk_add(&form, df_buf_str(&text), text.len, NULL) < 0 ||
        df_jdk_read(form.data, form.len, &again, NULL) < 0 || again.len != text.len ||
        memcmp(df_buf_str(&again), df_buf_str(&text), text.len) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    if (size > 64 * DF_KIB)
        return 0;
    if (df_truststore_read(data, size, NULL, &out, &err) == 0) {
        if (!df_starts_with(df_buf_str(&out), "-----BEGIN CERTIFICATE-----"))
            abort();
    } else if (err.cls != DF_ERR_USER && err.cls != DF_ERR_LIMIT) {
        abort();
    }
    read_string(data, size);
    return 0;
}
