/*
 * tls.c - the certificate is read from the configured files, or issued by an authority of dayfly's
 * own and kept valid by renew(). Read df_tls_open(), which prepares either, and refresh(), which
 * reloads changed files before each handshake.
 */
#include "spawner/http/tls.h"

#include <pthread.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/crypto/certificate.h"
#include "common/http/http.h"
#include "spawner/http/authority.h"

#define CHAIN_MAX 8
#define RENEW_BEFORE_US ((int64_t)30 * 24 * 3600 * 1000000)
#define RENEW_CHECK_MS 60000

/* Distinguishes the versions of a file. */
struct version {
    ino_t inode;
    off_t size;
    struct timespec mtime;
};

struct df_tls {
    char *cert_file, *key_file;
    char *authority_file, *authority_key_file; /* dayfly's own; NULL: configured files are used */
    char *extra_ca_file;                       /* server.tls.caFile, or NULL */
    char *ca_file;                             /* <data>/ca.pem */
    bool has_ca;
    struct df_strs names;

    pthread_mutex_t lock; /* guards everything below */
    struct version cert_version, key_version;
    struct df_buf cert, key;
    int64_t checked_ms;
    struct df_err fault; /* of the last load; cls NONE: none */
};

/* ---- files ---- */

static int read_pem(const char *path, struct df_buf *to, struct df_err *err)
{
    *to = DF_BUF_INIT(DF_LIMIT_CA);
    return df_fs_read(path, to, err);
}

static void get_version(const char *path, struct version *ret)
{
    struct stat st = {0};
    (void)stat(path, &st); /* a missing file counts as a version */
    *ret = (struct version){st.st_ino, st.st_size, st.st_mtim};
}

static bool same_version(const struct version *a, const struct version *b)
{
    return a->inode == b->inode && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
           a->mtime.tv_nsec == b->mtime.tv_nsec;
}

static int load(struct df_tls *t, struct df_err *err)
{
    struct df_buf cert = DF_BUF_INIT(0), key = DF_BUF_INIT(0);
    if (read_pem(t->cert_file, &cert, err) < 0 || read_pem(t->key_file, &key, err) < 0 ||
        df_certificate_check_pair(df_buf_str(&cert), df_buf_str(&key), err) < 0) {
        df_buf_free(&cert);
        df_buf_wipe(&key);
        return df_err_wrap(err, "certificate %s, key %s", t->cert_file, t->key_file);
    }
    df_buf_free(&t->cert);
    df_buf_wipe(&t->key);
    t->cert = cert;
    t->key = key;
    return 0;
}

/* ---- dayfly's own authority ---- */

/* Writes the files of the authority: the shared one, or one for this data directory. */
static int get_authority(const struct df_tls *t, const struct df_config *c, struct df_kube *kube,
                         struct df_err *err)
{
    DF_BUF struct df_buf cert = DF_BUF_INIT(DF_LIMIT_CA);
    struct df_buf key = DF_BUF_INIT(DF_LIMIT_CA);
    if (!c->tls_secret && df_fs_exists(t->authority_file))
        return 0;
    if (c->tls_secret && !kube)
        return df_fail(err, DF_ERR_USER,
                       "server.tls.secret: needs a cluster: neither store nor engine uses one");
    int result = c->tls_secret
                     ? df_authority_shared(kube, df_config_namespace(c, kube), c->tls_secret, &key,
                                           &cert, err)
                     : df_certificate_authority("dayfly certificate authority", &key, &cert, err);
    /* The key is written first: after a crash in between there is no certificate, and both are made
     * again. */
    if (result == 0)
        result = df_fs_replace(t->authority_key_file, df_buf_str(&key), key.len, 0600, err);
    if (result == 0)
        result = df_fs_replace(t->authority_file, df_buf_str(&cert), cert.len, 0644, err);
    df_buf_wipe(&key);
    return result;
}

static bool still_fits(const struct df_tls *t, const char *authority)
{
    DF_BUF struct df_buf cert = DF_BUF_INIT(0);
    return read_pem(t->cert_file, &cert, NULL) == 0 &&
           df_certificate_fits(df_buf_str(&cert), authority, &t->names,
                               df_real_us() + RENEW_BEFORE_US);
}

static int issue(const struct df_tls *t, const char *authority_key, const char *authority,
                 struct df_err *err)
{
    DF_BUF struct df_buf cert = DF_BUF_INIT(DF_LIMIT_CA);
    struct df_buf key = DF_BUF_INIT(DF_LIMIT_CA);
    int result = df_certificate_issue(authority_key, authority, &t->names, &key, &cert, err);
    if (result == 0)
        result = df_fs_replace(t->key_file, df_buf_str(&key), key.len, 0600, err);
    if (result == 0)
        result = df_fs_replace(t->cert_file, df_buf_str(&cert), cert.len, 0644, err);
    df_buf_wipe(&key);
    return result;
}

/* Issues a certificate unless the present one is still usable. */
static int renew(const struct df_tls *t, struct df_err *err)
{
    DF_BUF struct df_buf authority = DF_BUF_INIT(0);
    struct df_buf key = DF_BUF_INIT(0);
    if (read_pem(t->authority_file, &authority, err) < 0)
        return -1;
    if (still_fits(t, df_buf_str(&authority)))
        return 0;
    int result = read_pem(t->authority_key_file, &key, err);
    if (result == 0)
        result = issue(t, df_buf_str(&key), df_buf_str(&authority), err);
    df_buf_wipe(&key);
    return result;
}

/* ---- reload ---- */

/* Renews dayfly's own certificate if it is due, and loads the files if they have changed. The
 * caller holds the lock. */
static void refresh(struct df_tls *t)
{
    struct version cert, key;
    struct df_err why = {0};
    if (t->authority_file && df_mono_ms() - t->checked_ms >= RENEW_CHECK_MS) {
        t->checked_ms = df_mono_ms();
        if (renew(t, &why) < 0)
            df_warn("the server's certificate is not renewed: %s", why.message);
    }
    get_version(t->cert_file, &cert);
    get_version(t->key_file, &key);
    if (same_version(&cert, &t->cert_version) && same_version(&key, &t->key_version))
        return;
    t->cert_version = cert;
    t->key_version = key;
    t->fault = (struct df_err){0};
    if (load(t, &t->fault) < 0)
        df_warn("the previous certificate stays in use: %s", t->fault.message);
}

int df_tls_check(struct df_tls *t, struct df_err *err)
{
    (void)pthread_mutex_lock(&t->lock);
    refresh(t);
    struct df_err fault = t->fault;
    (void)pthread_mutex_unlock(&t->lock);
    if (fault.cls == DF_ERR_NONE)
        return 0;
    return df_err_pass(err, &fault);
}

static gnutls_datum_t datum(const struct df_buf *b)
{
    return (gnutls_datum_t){.data = (unsigned char *)b->data, .size = (unsigned)b->len};
}

static int import(const struct df_buf *cert, const struct df_buf *key, gnutls_pcert_st *chain,
                  unsigned *count, gnutls_privkey_t *ret_key)
{
    gnutls_datum_t cert_pem = datum(cert), key_pem = datum(key);
    gnutls_privkey_t k = NULL;
    int rc = gnutls_pcert_list_import_x509_raw(chain, count, &cert_pem, GNUTLS_X509_FMT_PEM, 0);
    if (rc < 0)
        return rc;
    rc = gnutls_privkey_init(&k);
    if (rc == 0)
        rc = gnutls_privkey_import_x509_raw(k, &key_pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (rc == 0) {
        *ret_key = k;
        return 0;
    }
    gnutls_privkey_deinit(k);
    for (unsigned i = 0; i < *count; i++)
        gnutls_pcert_deinit(&chain[i]);
    return rc;
}

int df_tls_pair(struct df_tls *t, gnutls_pcert_st **ret_chain, unsigned *ret_count,
                gnutls_privkey_t *ret_key, struct df_err *err)
{
    unsigned count = CHAIN_MAX;
    gnutls_pcert_st *chain = gnutls_calloc(CHAIN_MAX, sizeof(*chain));
    if (!chain)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&t->lock);
    refresh(t);
    int rc = import(&t->cert, &t->key, chain, &count, ret_key);
    (void)pthread_mutex_unlock(&t->lock);
    if (rc < 0) {
        gnutls_free(chain);
        return df_fail(err, DF_ERR_SYSTEM, "certificate %s: %s", t->cert_file, gnutls_strerror(rc));
    }
    *ret_chain = chain;
    *ret_count = count;
    return 0;
}

/* ---- lifecycle ---- */

static char *data_path(const struct df_config *c, const char *name)
{
    return df_fs_join(c->data_directory, name);
}

static int add_names(struct df_tls *t, const struct df_config *c, const char *url,
                     struct df_err *err)
{
    static const char *const always[] = {"localhost", "127.0.0.1", "::1"};
    DF_FREE char *host = df_url_host(url);
    (void)df_strs_add(&t->names, host);
    for (size_t i = 0; i < c->tls_names.len; i++)
        (void)df_strs_add_new(&t->names, c->tls_names.items[i]);
    for (size_t i = 0; i < DF_ARRAY_SIZE(always); i++)
        (void)df_strs_add_new(&t->names, always[i]);
    return df_strs_check(&t->names, err);
}

static int open_own(struct df_tls *t, const struct df_config *c, struct df_kube *kube,
                    const char *url, struct df_err *err)
{
    DF_FREE char *dir = data_path(c, "tls");
    t->authority_file = data_path(c, "tls/ca.pem");
    t->authority_key_file = data_path(c, "tls/ca-key.pem");
    t->cert_file = data_path(c, "tls/cert.pem");
    t->key_file = data_path(c, "tls/key.pem");
    if (df_check_alloc(t->authority_file, err) < 0 ||
        df_check_alloc(t->authority_key_file, err) < 0 || df_check_alloc(t->cert_file, err) < 0 ||
        df_check_alloc(t->key_file, err) < 0 || df_fs_mkdirs(dir, 0700, err) < 0 ||
        add_names(t, c, url, err) < 0 || get_authority(t, c, kube, err) < 0)
        return -1;
    return renew(t, err);
}

static int open_files(struct df_tls *t, const struct df_config *c, struct df_err *err)
{
    return df_str_set(&t->cert_file, c->tls_cert_file, err) < 0 ||
                   df_str_set(&t->key_file, c->tls_key_file, err) < 0
               ? -1
               : df_str_set(&t->extra_ca_file, c->tls_ca_file, err);
}

static int publish_ca(struct df_tls *t, struct df_err *err)
{
    const char *from = t->authority_file ? t->authority_file : t->extra_ca_file;
    DF_BUF struct df_buf pem = DF_BUF_INIT(0);
    t->has_ca = from != NULL;
    if (!from)
        return df_fs_remove_tree(t->ca_file, err);
    if (read_pem(from, &pem, err) < 0)
        return df_err_wrap(err, "server.tls.caFile");
    return df_fs_write(t->ca_file, df_buf_str(&pem), pem.len, 0644, err);
}

static int tls_open_files(struct df_tls *t, const struct df_config *c, struct df_kube *kube,
                          const char *url, struct df_err *err)
{
    t->ca_file = data_path(c, "ca.pem");
    if (df_check_alloc(t->ca_file, err) < 0 ||
        (c->tls_cert_file ? open_files(t, c, err) : open_own(t, c, kube, url, err)) < 0 ||
        publish_ca(t, err) < 0)
        return -1;
    t->checked_ms = df_mono_ms();
    get_version(t->cert_file, &t->cert_version);
    get_version(t->key_file, &t->key_version);
    return load(t, err);
}

int df_tls_open(const struct df_config *config, struct df_kube *kube, const char *url,
                struct df_tls **ret, struct df_err *err)
{
    *ret = NULL;
    if (!df_config_has_tls(config))
        return 0;
    struct df_tls *t = calloc(1, sizeof(*t));
    if (!t)
        return df_fail_oom(err);
    (void)pthread_mutex_init(&t->lock, NULL);
    if (tls_open_files(t, config, kube, url, err) < 0) {
        df_tls_close(t);
        return -1;
    }
    *ret = t;
    return 0;
}

void df_tls_close(struct df_tls *t)
{
    if (!t)
        return;
    (void)pthread_mutex_destroy(&t->lock);
    df_buf_free(&t->cert);
    df_buf_wipe(&t->key);
    df_strs_free(&t->names);
    free(t->cert_file);
    free(t->key_file);
    free(t->authority_file);
    free(t->authority_key_file);
    free(t->extra_ca_file);
    free(t->ca_file);
    free(t);
}

const char *df_tls_ca_file(const struct df_tls *t)
{
    return t && t->has_ca ? t->ca_file : NULL;
}
