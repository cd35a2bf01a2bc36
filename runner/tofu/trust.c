#include "runner/tofu/trust.h"

#include "common/base/fs.h"
#include "common/crypto/truststore.h"

int df_trust_write(const char *file, const char *pem, const char *path, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TRUST);
    if ((file ? df_fs_read(file, &out, err) : df_truststore_system(&out, err)) < 0)
        return -1;
    (void)df_buf_addf(&out, "\n%s", pem);
    return df_buf_check(&out, err) < 0 ? -1 : df_fs_write(path, out.data, out.len, 0600, err);
}
