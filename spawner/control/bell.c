#include "spawner/control/bell.h"

#include "common/base/log.h"
#include "spawner/steps/terrakube.h"

#define LOOK_US INT64_C(1000000)

static int64_t look(void *arg)
{
    struct df_err why = {0};
    if (df_terrakube_ring_again(arg, &why) < 0)
        df_warn("Terrakube's queue is not woken and looks again by itself: %s", why.message);
    return LOOK_US;
}

int df_bell_start(struct df_spawner *s, struct df_periodic **ret, struct df_err *err)
{
    if (!s->terrakube)
        return 0;
    return df_periodic_start(look, s, 0, ret, err) < 0 ? df_err_wrap(err, "the bell's thread") : 0;
}
