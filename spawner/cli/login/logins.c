/*
 * logins.c - the file first, then changes of it under its lock, then df_logins_token(), which
 * renews a login.
 */
#include "spawner/cli/login/logins.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/crypto/jwt.h"
#include "spawner/cli/login/provider.h"
#include "spawner/config/config.h"

/* A token that expires sooner is renewed: the request is on its way for a while, and clocks
 * differ. */
#define AHEAD_US (DF_JWT_LEEWAY_S * INT64_C(1000000))

/* ---- the file ---- */

struct logins {
    char *path;
    int lock_fd;
    cJSON *doc; /* {"logins": {URL: login}} */
    cJSON *all; /* of doc */
};

static void free_logins(struct logins *l)
{
    free(l->path);
    if (l->lock_fd >= 0)
        (void)close(l->lock_fd);
    df_json_wipe(l->doc);
}
#define LOGINS DF_CLEANUP(free_logins)

/* *ret NULL: this user has no place for it. */
static int find_path(char **ret, struct df_err *err)
{
    return df_config_home_path(environ, DF_LOGINS_PLACE, ret, err);
}

static int fail_content(const struct logins *l, struct df_err *err)
{
    return df_fail(err, DF_ERR_USER,
                   "%s: is not a file of `dayfly login`: remove it, and sign in again", l->path);
}

static int read_file(struct logins *l, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_LOGINS);
    struct df_err why = {0};
    if (df_fs_read_private(l->path, &text, &why) == 0) {
        if (df_json_parse(df_buf_str(&text), text.len, &l->doc, NULL) < 0)
            return fail_content(l, err);
    } else if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    else if (df_check_alloc(l->doc = cJSON_CreateObject(), err) < 0)
        return -1;
    if (!cJSON_IsObject(l->doc))
        return fail_content(l, err);
    return df_check_alloc(l->all = df_json_object_at(l->doc, "logins"), err);
}

/* All logins; none of a user without a place for them, or in the home of somebody else. */
static int read_logins(struct logins *l, struct df_err *err)
{
    if (find_path(&l->path, err) < 0)
        return -1;
    if (l->path && access(l->path, R_OK) < 0 && errno == EACCES) {
        df_warn("no login is used: %s is for another user", l->path);
        return 0;
    }
    return l->path ? read_file(l, err) : 0;
}

static cJSON *login_for(const struct logins *l, const char *url)
{
    cJSON *login = cJSON_GetObjectItemCaseSensitive(l->all, url);
    return cJSON_IsObject(login) ? login : NULL;
}

static int lock_logins(struct logins *l, struct df_err *err)
{
    if (find_path(&l->path, err) < 0)
        return -1;
    if (!l->path)
        return df_fail(err, DF_ERR_USER,
                       "no place to keep a login: neither XDG_CONFIG_HOME nor HOME is set");
    DF_FREE char *directory = strndup(l->path, (size_t)(strrchr(l->path, '/') - l->path));
    DF_FREE char *lock = df_strf("%s.lock", l->path);
    return df_fs_mkdirs(directory, 0700, err) < 0 || df_fs_lock(lock, 0600, &l->lock_fd, err) < 0
               ? -1
               : read_file(l, err);
}

static int write_logins(const struct logins *l, struct df_err *err)
{
    char *text = df_json_print_pretty(l->doc);
    if (!text)
        return df_fail_oom(err);
    int result = strlen(text) > DF_LIMIT_LOGINS
                     ? df_fail(err, DF_ERR_LIMIT,
                               "%s: would be larger than %zu KiB: `dayfly logout` "
                               "of services that you need no more",
                               l->path, (size_t)(DF_LIMIT_LOGINS / DF_KIB))
                     : df_fs_replace(l->path, text, strlen(text), 0600, err);
    df_str_wipe(&text);
    return result;
}

/* ---- changes ---- */

int df_logins_has(const char *url, bool *ret, struct df_err *err)
{
    LOGINS struct logins l = {.lock_fd = -1};
    if (read_logins(&l, err) < 0)
        return -1;
    *ret = login_for(&l, url) != NULL;
    return 0;
}

int df_logins_put(const char *url, const cJSON *login, struct df_err *err)
{
    LOGINS struct logins l = {.lock_fd = -1};
    return lock_logins(&l, err) < 0 ||
                   df_json_set(l.all, url, cJSON_Duplicate(login, true), err) < 0
               ? -1
               : write_logins(&l, err);
}

int df_logins_remove(const char *url, cJSON **ret, struct df_err *err)
{
    LOGINS struct logins l = {.lock_fd = -1};
    if (lock_logins(&l, err) < 0)
        return -1;
    DF_SECRET_JSON cJSON *login = cJSON_DetachItemFromObjectCaseSensitive(l.all, url);
    if (!login)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no login for %s", url);
    if (write_logins(&l, err) < 0)
        return -1;
    *ret = DF_TAKE(login);
    return 0;
}

/* ---- the token ---- */

/* -1: it does not say when it expires. */
static int64_t expires_us(const cJSON *login)
{
    DF_JSON cJSON *claims = NULL;
    const char *token = df_json_str(login, "idToken");
    return token && df_jwt_peek(token, &claims, NULL) == 0
               ? df_seconds_us(df_json_int(claims, "exp", 0))
               : -1;
}

/* *ret NULL: there is none that is good for a while. */
static int take_token(const cJSON *login, char **ret, int64_t *ret_until_us, struct df_err *err)
{
    int64_t until_us = expires_us(login) - AHEAD_US;
    *ret = NULL;
    if (df_real_us() >= until_us)
        return 0;
    *ret_until_us = until_us;
    return df_check_alloc(*ret = strdup(df_json_str(login, "idToken")), err);
}

static int fail_expired(const char *url, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_DENIED, "LoginExpired",
                          "the login for %s has expired%s%s: run `dayfly login --server %s`", url,
                          *why ? ", and " : "", why, url);
}

static int ask_provider(cJSON *login, struct df_err *err)
{
    DF_PROVIDER struct df_provider p = {0};
    DF_SECRET_JSON cJSON *answer = NULL;
    const struct df_http_parameter form[] = {{"grant_type", "refresh_token"},
                                             {"refresh_token", df_json_str(login, "refreshToken")},
                                             {0}};
    return df_provider_open(&p, login, err) < 0 ||
                   df_provider_ask(&p, "token_endpoint", form, &answer, err) < 0
               ? -1
               : df_provider_take(&p, answer, login, err);
}

/* A signal waits until the new refresh token is stored: the old one is of no use any more, also if
 * the ID token that came with it is refused. */
static int renew(struct logins *l, const char *url, cJSON *login, struct df_err *err)
{
    sigset_t all, before;
    struct df_err why = {0}, unwritten = {0};
    if (!df_json_str(login, "refreshToken"))
        return fail_expired(url, "", err);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    int result = ask_provider(login, &why);
    if (write_logins(l, result == 0 ? &why : &unwritten) < 0)
        result = -1;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        return 0;
    if (why.cls == DF_ERR_DENIED)
        return fail_expired(url, why.message, err);
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "the login for %s has expired and could not be renewed", url);
}

int df_logins_token(const char *url, char **ret, int64_t *ret_until_us, struct df_err *err)
{
    LOGINS struct logins seen = {.lock_fd = -1}, l = {.lock_fd = -1};
    if (read_logins(&seen, err) < 0 ||
        take_token(login_for(&seen, url), ret, ret_until_us, err) < 0)
        return -1;
    if (*ret)
        return 0;
    if (lock_logins(&l, err) < 0)
        return -1;
    cJSON *login = login_for(&l, url); /* another process may have renewed it meanwhile */
    if (!login)
        return fail_expired(url, "was removed", err);
    if (take_token(login, ret, ret_until_us, err) < 0)
        return -1;
    if (*ret)
        return 0;
    if (renew(&l, url, login, err) < 0)
        return -1;
    *ret_until_us = expires_us(login) - AHEAD_US;
    return df_check_alloc(*ret = strdup(df_json_str(login, "idToken")), err);
}
