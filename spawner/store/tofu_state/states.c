/* states.c - what states and locks both use: keys, one writer per executor, temporary files. */
#include "spawner/store/tofu_state/states.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"

static bool uid_is_good(const char *uid)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
    size_t n = strlen(uid);
    return n > 0 && n <= 63 && strspn(uid, good) == n;
}

int df_state_key(const char *uid, const char *name, struct df_state_key *ret, struct df_err *err)
{
    if (!uid_is_good(uid))
        return df_fail(err, DF_ERR_USER, "\"%.100s\" is not a uid", uid);
    (void)snprintf(ret->text, sizeof(ret->text), "state/%s%s%s", uid, *name ? "/" : "", name);
    return 0;
}

pthread_mutex_t *df_state_enter(struct df_states *s, const char *uid)
{
    pthread_mutex_t *turn = &s->stripes[df_hash_str(DF_HASH_BEGIN, uid) % DF_STATE_STRIPES];
    (void)pthread_mutex_lock(turn);
    return turn;
}

#define HINT_US ((int64_t)10 * 60 * 1000000)

static size_t place_of(const char *uid)
{
    return df_hash_str(DF_HASH_BEGIN, uid) % DF_STATE_HINTS;
}

int64_t df_state_hint(struct df_states *s, const char *uid)
{
    size_t i = place_of(uid);
    (void)pthread_mutex_lock(&s->hint);
    bool fresh = s->hints[i].at_us > df_mono_us() - HINT_US;
    int64_t number = fresh && df_streq(s->hints[i].uid, uid) ? s->hints[i].number : 0;
    (void)pthread_mutex_unlock(&s->hint);
    return number;
}

void df_state_remember(struct df_states *s, const char *uid, int64_t number)
{
    size_t i = place_of(uid);
    (void)pthread_mutex_lock(&s->hint);
    (void)snprintf(s->hints[i].uid, sizeof(s->hints[i].uid), "%s", uid);
    s->hints[i].number = number;
    s->hints[i].at_us = df_mono_us();
    (void)pthread_mutex_unlock(&s->hint);
}

int df_states_open(struct df_blob *blobs, struct df_vault *vault, struct df_states **ret,
                   struct df_err *err)
{
    struct df_states *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    s->blobs = blobs;
    s->vault = vault;
    for (size_t i = 0; i < DF_STATE_STRIPES; i++)
        (void)pthread_mutex_init(&s->stripes[i], NULL);
    (void)pthread_mutex_init(&s->hint, NULL);
    *ret = s;
    return 0;
}

void df_states_close(struct df_states *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < DF_STATE_STRIPES; i++)
        (void)pthread_mutex_destroy(&s->stripes[i]);
    (void)pthread_mutex_destroy(&s->hint);
    free(s);
}

/* ---- temporary files ------------------------------------------------------------------------ */

void df_cleanup_temporary(struct df_state_temporary *t)
{
    if (t->fd >= 0) {
        (void)close(t->fd);
        (void)unlink(t->path);
    }
    free(t->path);
}

int df_state_temporary(struct df_states *s, struct df_state_temporary *ret, struct df_err *err)
{
    ret->path = df_fs_join(df_blob_tmp_dir(s->blobs), "state-XXXXXX");
    if (!ret->path)
        return df_fail_oom(err);
    ret->fd = mkostemp(ret->path, O_CLOEXEC);
    return ret->fd < 0 ? df_fail_errno(err, errno, "create %s", ret->path) : 0;
}
