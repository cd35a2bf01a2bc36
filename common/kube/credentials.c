#include "common/kube/credentials.h"

#include <pthread.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/limits.h"

struct df_kube_credentials {
    const struct df_kube_config *config;
    pthread_mutex_t lock;
    struct df_kube_credential now; /* generation 0: never read */
};

void df_kube_credential_free(struct df_kube_credential *c)
{
    df_str_wipe(&c->token);
    df_str_wipe(&c->cert_pem);
    df_str_wipe(&c->key_pem);
}

int df_kube_credentials_new(const struct df_kube_config *config, struct df_kube_credentials **ret,
                            struct df_err *err)
{
    struct df_kube_credentials *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    c->config = config;
    (void)pthread_mutex_init(&c->lock, NULL);
    *ret = c;
    return 0;
}

void df_kube_credentials_free(struct df_kube_credentials *c)
{
    if (!c)
        return;
    df_kube_credential_free(&c->now);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Reads from the configuration's text, or from the file if one is named. */
static int read_one(const char *text, const char *file, size_t max, char **ret, struct df_err *err)
{
    if (file)
        return df_kube_read_secret(file, max, ret, err);
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? df_fail_oom(err) : 0;
}

static int read_all(const struct df_kube_config *c, const volatile bool *stop,
                    struct df_kube_credential *to, struct df_err *err)
{
    /* Data in the kubeconfig takes precedence over a file, but a token file over a token, as in
     * kubectl. */
    const char *cert_file = c->cert_pem ? NULL : c->cert_file;
    const char *key_file = c->key_pem ? NULL : c->key_file;
    bool files = c->token_file || cert_file || key_file;
    to->until_ms = files ? df_mono_ms() + DF_KUBE_CREDENTIAL_LIFE_MS : INT64_MAX;
    if (read_one(c->token, c->token_file, DF_LIMIT_TOKEN, &to->token, err) < 0 ||
        read_one(c->cert_pem, cert_file, DF_LIMIT_KUBE_PEM, &to->cert_pem, err) < 0 ||
        read_one(c->key_pem, key_file, DF_LIMIT_KUBE_PEM, &to->key_pem, err) < 0)
        return -1;
    /* The plug-in is used only if there is no other credential, as in kubectl. */
    if (c->exec.command && !to->token && !to->cert_pem)
        return df_kube_exec_run(c, stop, to, err);
    return 0;
}

static int read_anew(struct df_kube_credentials *c, const volatile bool *stop, struct df_err *err)
{
    DF_KUBE_CREDENTIAL struct df_kube_credential fresh = {.generation = c->now.generation + 1};
    struct df_err why = {0};
    if (read_all(c->config, stop, &fresh, &why) < 0) {
        /* Not NOT_FOUND: callers would take it for a missing object. */
        enum df_err_class cls =
            why.cls == DF_ERR_USER || why.cls == DF_ERR_LIMIT ? why.cls : DF_ERR_RETRY;
        return df_fail(err, cls, "credentials of %s: %s", c->config->source, why.message);
    }
    struct df_kube_credential old = c->now;
    c->now = fresh;
    fresh = old;
    return 0;
}

static int copy_credential(const struct df_kube_credential *now, unsigned known,
                           struct df_kube_credential *ret, struct df_err *err)
{
    DF_KUBE_CREDENTIAL struct df_kube_credential c = {.generation = now->generation,
                                                      .until_ms = now->until_ms};
    if (now->generation != known && (df_str_set(&c.token, now->token, err) < 0 ||
                                     df_str_set(&c.cert_pem, now->cert_pem, err) < 0 ||
                                     df_str_set(&c.key_pem, now->key_pem, err) < 0))
        return -1;
    *ret = c;
    c = (struct df_kube_credential){0};
    return 0;
}

int df_kube_credentials_get(struct df_kube_credentials *c, unsigned known,
                            const volatile bool *stop, struct df_kube_credential *ret,
                            struct df_err *err)
{
    (void)pthread_mutex_lock(&c->lock);
    int result = 0;
    if (!c->now.generation || c->now.until_ms <= df_mono_ms())
        result = read_anew(c, stop, err);
    if (result == 0)
        result = copy_credential(&c->now, known, ret, err);
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

void df_kube_credentials_refused(struct df_kube_credentials *c, unsigned generation)
{
    (void)pthread_mutex_lock(&c->lock);
    if (c->now.generation == generation)
        c->now.until_ms = INT64_MIN;
    (void)pthread_mutex_unlock(&c->lock);
}
