#include "runner/tofu/trust.h"

#include "common/base/fs.h"

/* Where distributions have them (Go, crypto/x509/root_linux.go). */
static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

/* A minimal image has none: then only pem is trusted. */
static int add_system(struct df_buf *out, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(bundles); i++)
        if (df_fs_exists(bundles[i]))
            return df_fs_read(bundles[i], out, err);
    return 0;
}

int df_trust_write(const char *file, const char *pem, const char *path, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TRUST);
    if ((file ? df_fs_read(file, &out, err) : add_system(&out, err)) < 0)
        return -1;
    (void)df_buf_addf(&out, "\n%s", pem);
    return df_buf_check(&out, err) < 0 ? -1 : df_fs_write(path, out.data, out.len, 0600, err);
}
