#include "common/crypto/ssl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"

static void cleanup_kdf(EVP_KDF **k)
{
    EVP_KDF_free(*k);
}

static void cleanup_kdf_ctx(EVP_KDF_CTX **c)
{
    EVP_KDF_CTX_free(*c);
}

int df_derive_key(const unsigned char master[DF_KEY_LEN], const char *purpose,
                  unsigned char out[DF_KEY_LEN], struct df_err *err)
{
    DF_CLEANUP(cleanup_kdf) EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    DF_CLEANUP(cleanup_kdf_ctx) EVP_KDF_CTX *c = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    /* OSSL_PARAM has no const form; nothing below is written to. */
    unsigned char key[DF_KEY_LEN];
    char digest[] = "SHA256";
    DF_FREE char *info = df_strf("dayfly/%s", purpose);
    if (!c || !info)
        return df_fail_oom(err);
    memcpy(key, master, sizeof(key));
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key, sizeof(key)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, strlen(info)),
        OSSL_PARAM_construct_end(),
    };
    int ok = EVP_KDF_derive(c, out, DF_KEY_LEN, params);
    explicit_bzero(key, sizeof(key));
    return ok == 1 ? 0 : df_fail_ssl(err, "derive key");
}

int df_key_parse(const char *text, size_t n, unsigned char out[DF_KEY_LEN])
{
    static const char digits[] = "0123456789abcdef";
    if (n != DF_KEY_TEXT || text[DF_KEY_TEXT - 1] != '\n')
        return -1;
    unsigned char key[DF_KEY_LEN] = {0};
    for (size_t i = 0; i < DF_KEY_TEXT - 1; i++) {
        const char *d = text[i] ? strchr(digits, text[i]) : NULL;
        if (!d)
            return -1;
        key[i / 2] = (unsigned char)(key[i / 2] << 4 | (d - digits));
    }
    memcpy(out, key, sizeof(key));
    explicit_bzero(key, sizeof(key));
    return 0;
}

static int check_mode(int fd, const char *path, struct df_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "key file %s", path);
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_SYSTEM, "key file %s is not a regular file", path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return df_fail(err, DF_ERR_SYSTEM,
                       "key file %s may be read by others (mode %04o): chmod 600 %s", path,
                       st.st_mode & 07777u, path);
    return 0;
}

static int load_key(int fd, const char *path, unsigned char out[DF_KEY_LEN], struct df_err *err)
{
    if (check_mode(fd, path, err) < 0)
        return -1;
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_KEY_TEXT);
    /* Reserve everything at once: a reallocation leaves a copy of the key behind. */
    if (!df_buf_reserve(&text, DF_KEY_TEXT))
        return df_buf_check(&text, err);
    struct df_err why = {0};
    bool read = df_fs_read_fd(fd, &text, &why) == 0;
    if (!read && why.cls != DF_ERR_LIMIT) {
        (void)df_err_pass(err, &why);
        return df_err_wrap(err, "key file %s", path);
    }
    if (!read || df_key_parse(df_buf_str(&text), text.len, out) < 0)
        return df_fail(err, DF_ERR_SYSTEM,
                       "key file %s is damaged: it must be 64 hex digits and a newline; restore it "
                       "from a copy",
                       path);
    return 0;
}

int df_key_make(char out[DF_KEY_TEXT + 1], struct df_err *err)
{
    if (df_random_hex(out, DF_KEY_LEN, err) < 0)
        return -1;
    out[DF_KEY_TEXT - 1] = '\n';
    out[DF_KEY_TEXT] = '\0';
    return 0;
}

static int make_key(const char *path, struct df_err *err)
{
    char text[DF_KEY_TEXT + 1];
    if (df_key_make(text, err) < 0)
        return -1;
    int result = df_fs_create(path, text, DF_KEY_TEXT, 0600, err);
    explicit_bzero(text, sizeof(text));
    return result;
}

int df_key_file(const char *path, unsigned char out[DF_KEY_LEN], struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0)
        return load_key(fd, path, out, err);
    if (errno != ENOENT)
        return df_fail_errno(err, errno, "key file %s", path);
    /* A conflict means that another process created the key file first; then that key is used. */
    struct df_err why = {0};
    if (make_key(path, &why) < 0 && why.cls != DF_ERR_CONFLICT) {
        (void)df_err_pass(err, &why);
        return df_err_wrap(err, "make key file %s", path);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return df_fail_errno(err, errno, "key file %s", path);
    return load_key(fd, path, out, err);
}
