/*
 * reach.h - how much of this machine's directories a module needs besides its own: it may call
 * modules (`source = "../../modules/net"`) and name files (`file("${path.module}/../x")`) that lie
 * outside of it. Thread rule: main thread.
 */
#ifndef DF_CLI_REACH_H
#define DF_CLI_REACH_H

#include "common/json/json.h"

struct df_reach {
    /* spec.source of the smallest directory that holds what the module needs, with the module as
     * its folder; NULL: the source has all of it, is no directory, or is elsewhere. */
    cJSON *source;
    char *why; /* what leads out of the source: "../../net in /home/me/examples/main" */
    /* The first path in a string that does not come along, in the same words; or NULL. */
    char *left;
    char *left_top, *left_folder; /* the smallest directory with it, and the module in that */
    const char *left_fault; /* what is wrong with that directory: "your home directory"; or NULL */
};
#define DF_REACH DF_CLEANUP(df_reach_free)
void df_reach_free(struct df_reach *r);

/* guess: existing files and directories that strings name come along, too, though such a string may
 * mean something else; false: only called modules do. Class USER if the directory with a called
 * module is the caller's home, above it, or open to all users: it is certainly not one project. */
int df_reach_widen(const cJSON *source, bool guess, struct df_reach *ret,
                   struct df_err *err) DF_MUST_CHECK;

#endif
