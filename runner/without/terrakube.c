/* Instead of runner/terrakube, in a build without it (`make TERRAKUBE=0`): each step is refused. */
#include "runner/terrakube/work.h"

#include <strings.h>

static int refuse(struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "this dayfly-runner was built without Terrakube (make TERRAKUBE=0): give "
                          "the steps of Terrakube an image of a build with it");
}

/* Else a Job of Terrakube's API would succeed with the help. */
static bool is_starter(void)
{
    const char *flag = getenv("EphemeralFlagBatch");
    return flag && strcasecmp(flag, "true") == 0;
}

static int start(void **ret_data, struct df_err *err)
{
    (void)ret_data;
    return refuse(err);
}

static int exit_code(const void *data, int code)
{
    (void)data;
    return code;
}

static int open_step(cJSON *doc, const struct df_dirs *dirs, struct df_report **report,
                     void **ret_data, struct df_err *err)
{
    (void)doc, (void)dirs, (void)report, (void)ret_data;
    return refuse(err);
}

const struct df_work df_terrakube_work = {.member = "terrakube",
                                          .memory_limit = "EPHEMERAL_MEMORY_LIMIT",
                                          .is_starter = is_starter,
                                          .start = start,
                                          .exit_code = exit_code,
                                          .open = open_step};
