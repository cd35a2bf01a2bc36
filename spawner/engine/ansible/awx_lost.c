#include "spawner/engine/ansible/awx_lost.h"

#include "common/base/clock.h"

int df_awx_lost_init(struct df_awx_lost *l, struct df_err *err)
{
    *l = (struct df_awx_lost){.steps = cJSON_CreateObject()};
    (void)pthread_mutex_init(&l->lock, NULL);
    return df_check_alloc(l->steps, err);
}

void df_awx_lost_destroy(struct df_awx_lost *l)
{
    cJSON_Delete(l->steps);
    (void)pthread_mutex_destroy(&l->lock);
}

static int64_t until_us(void)
{
    return df_mono_us() + DF_AWX_LOST_SECONDS * INT64_C(1000000);
}

void df_awx_lost_before(struct df_awx_lost *l)
{
    (void)pthread_mutex_lock(&l->lock);
    l->until_us = until_us();
    (void)pthread_mutex_unlock(&l->lock);
}

void df_awx_lost_note(struct df_awx_lost *l, const char *uid, enum df_awx_loss what)
{
    (void)pthread_mutex_lock(&l->lock);
    const cJSON *known = cJSON_GetObjectItemCaseSensitive(l->steps, uid);
    if (df_json_int(known, "loss", DF_AWX_NOTHING) == DF_AWX_LAUNCH)
        what = DF_AWX_LAUNCH;
    int64_t until = what == DF_AWX_NOTHING ? 0 : until_us();
    cJSON *entry = df_json_object(DF_NUM("until", until), DF_NUM("loss", what));
    if (df_json_set(l->steps, uid, entry, NULL) < 0)
        l->until_us = until_us();
    (void)pthread_mutex_unlock(&l->lock);
}

void df_awx_lost_forget(struct df_awx_lost *l, const char *uid)
{
    (void)pthread_mutex_lock(&l->lock);
    cJSON_DeleteItemFromObjectCaseSensitive(l->steps, uid);
    (void)pthread_mutex_unlock(&l->lock);
}

enum df_awx_loss df_awx_lost_of(struct df_awx_lost *l, const char *uid, int64_t *ret_left_us)
{
    (void)pthread_mutex_lock(&l->lock);
    const cJSON *known = cJSON_GetObjectItemCaseSensitive(l->steps, uid);
    *ret_left_us = df_json_int(known, "until", l->until_us) - df_mono_us();
    bool is_before = !known && *ret_left_us > 0;
    int64_t what = df_json_int(known, "loss", is_before ? DF_AWX_BEFORE : DF_AWX_NOTHING);
    (void)pthread_mutex_unlock(&l->lock);
    return (enum df_awx_loss)what;
}
