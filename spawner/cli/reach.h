/*
 * reach.h - how much of this machine's directories a module needs besides its own: it may call
 * modules (`source = "../../modules/net"`) and name files (`file("${path.module}/../x")`) that lie
 * outside of it. Thread rule: main thread.
 */
#ifndef DF_CLI_REACH_H
#define DF_CLI_REACH_H

#include "common/json/json.h"

/* *ret: spec.source of the smallest directory that holds what the module of this source needs, with
 * the module as its folder; NULL: the source has all of it, is not a directory, or is elsewhere.
 * *ret_why: what leads out of the source, "../../net of examples/main.tf"; the caller frees both.
 * Class USER if that directory is the caller's home, above it, or open to all users: it is certainly
 * not one project. */
int df_reach_widen(const cJSON *source, cJSON **ret, char **ret_why,
                   struct df_err *err) DF_MUST_CHECK;

#endif
