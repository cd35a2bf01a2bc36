#include "runner/torn.h"

#include <poll.h>

#include "common/base/backoff.h"
#include "common/base/limits.h"
#include "runner/planned.h"
#include "runner/pulled.h"
#include "runner/tofu/workspace.h"

enum { TRIES_MAX = 5, PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 1000 };

bool df_is_dry_run(const struct df_context *c)
{
    return df_json_bool(c->doc, "dryRun", false);
}

static bool may_be_torn(const struct df_context *c)
{
    return df_is_dry_run(c) && !df_workspace_is_managed(c->doc);
}

bool df_torn_plan(const struct df_context *c, const char *plan)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf state = DF_BUF_INIT(DF_LIMIT_STATE_COMPARED);
    const char *own = df_json_str(c->doc, "stateLineage");
    struct df_pulled p;
    if (!may_be_torn(c) || !own || df_planned_state(c, plan, &state, NULL) < 0 ||
        df_pulled_read_head(df_buf_str(&state), &p, NULL) < 0)
        return false;
    return !df_streq(p.lineage, own);
}

bool df_torn_text(const struct df_context *c, const char *error)
{
    return may_be_torn(c) && strstr(error, "Unsupported state file format");
}

bool df_torn_again(const struct df_context *c, int tries)
{
    struct pollfd stop = {.fd = df_stop_fd(c->stop), .events = POLLIN};
    if (tries >= TRIES_MAX)
        return false;
    (void)df_output_note(c->output, "dayfly: the state may have been read while it was written; it "
                                    "is read again");
    (void)poll(&stop, 1, (int)df_backoff_pause(PAUSE_MIN_MS, PAUSE_MAX_MS, tries));
    return df_stop_cause(c->stop) == DF_STOP_NONE;
}
