#include "common/terrakube/rescue.h"

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/terrakube/log_read.h"
#include "common/terrakube/wire.h"

void df_terrakube_rescue_lines(const struct df_terrakube_settings *s,
                               const struct df_terrakube_payload *p, int fd)
{
    struct df_redis *redis = NULL;
    struct df_err why = {0};
    if (s->log_via_api || !df_terrakube_has_redis(s))
        return;
    if (df_terrakube_wire_new(s, &redis, &why) < 0 ||
        df_terrakube_log_read(redis, p, DF_LIMIT_TERRAKUBE_RESCUE, fd, &why) < 0)
        df_warn("the lines that step %s of Terrakube's job %s has in Redis are not saved, or not "
                "all of them: %s",
                p->step, p->job, why.message);
    df_redis_free(redis);
}
