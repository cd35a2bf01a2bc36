/*
 * Door A: takes the platform's variables out of the environment, and opens the step that they
 * describe. Read df_terrakube_door() at the end first.
 */
#include "runner/terrakube/door.h"

#include <strings.h>

#include "common/base/exit.h"
#include "runner/terrakube/open.h"

#define FLAG "EphemeralFlagBatch"
#define DATA "EphemeralJobData"

extern char **environ;

bool df_terrakube_door_is_ours(void)
{
    const char *flag = getenv(FLAG);
    return flag && strcasecmp(flag, "true") == 0;
}

static bool is_platform(const char *variable)
{
    DF_FREE char *name = strndup(variable, strcspn(variable, "="));
    return !name || df_streq(name, FLAG) || df_streq(name, DATA) ||
           df_terrakube_is_platform_variable(name);
}

/* Moves the environment to o. The strings lie where the kernel put them, and /proc/<pid>/environ
 * shows that memory: it is overwritten. */
static int take_environment(struct df_terrakube_opened *o, struct df_err *err)
{
    char **kept = environ;
    for (char **e = environ; *e; e++) {
        (void)df_strs_add(&o->all, *e);
        if (is_platform(*e)) {
            explicit_bzero(*e, strlen(*e));
            continue;
        }
        (void)df_strs_add(&o->rest, *e);
        *kept++ = *e;
    }
    *kept = NULL;
    return df_strs_check(&o->all, err) < 0 ? -1 : df_strs_check(&o->rest, err);
}

static int open_step(struct df_terrakube_opened *o, struct df_err *err)
{
    if (take_environment(o, err) < 0)
        return -1;
    const char *data = df_strs_get_env(&o->all, DATA);
    if (df_str_empty(data))
        return df_fail_reason(err, DF_ERR_USER, "PayloadInvalid", DATA " is not set");
    return df_terrakube_open(o, data, true, err);
}

int df_terrakube_door(void **ret_opened, struct df_err *err)
{
    struct df_terrakube_opened *o = df_terrakube_opened_new();
    if (!o)
        return df_fail_oom(err);
    if (open_step(o, err) < 0) {
        df_terrakube_close(o);
        return -1;
    }
    *ret_opened = o;
    return 0;
}

int df_terrakube_door_exit_code(const void *opened, int code)
{
    const struct df_terrakube_opened *o = opened;
    if (o && (o->flow.is_told || o->flow.has_begun))
        return DF_EXIT_OK;
    return !o || code == DF_EXIT_OK ? DF_EXIT_FAILURE : code;
}
