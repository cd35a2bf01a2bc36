/* states.c - what states and locks both use: keys, one writer per executor, temporary files. */
#include "spawner/store/tofu_state/states.h"

#include <errno.h>
#include <fcntl.h>

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
    *ret = s;
    return 0;
}

void df_states_close(struct df_states *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < DF_STATE_STRIPES; i++)
        (void)pthread_mutex_destroy(&s->stripes[i]);
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
