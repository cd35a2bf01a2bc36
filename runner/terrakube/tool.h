/*
 * tool.h - finds the tofu or terraform of a step of Terrakube. Contract: section 3.4.
 *
 * The version is exact or a range as npm writes it (runner/tofu/range.h). In this order: what is
 * installed here, the highest version of the release index with a build for this machine, that
 * version from Terrakube's storage, its download. The index is read once. An object of the storage
 * is run only if the digest that an executor noted beside it, signed with InternalSecret, is the
 * object's: Terrakube's own objects have none and are passed over. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_TOOL_H
#define DF_RUNNER_TERRAKUBE_TOOL_H

#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"
#include "runner/report/output.h"
#include "runner/tofu/tool.h"

struct df_terrakube_tool_request {
    const struct df_terrakube_settings *settings;
    const struct df_terrakube_payload *payload;
    bool uses_storage;  /* Terrakube's: it is asked for seconds, and passed over when it is away */
    const cJSON *tools; /* as in a step document: directories, searchPath,
                                             cacheDirectory, caFile; its `index` is not used */
    const char *path_env;                    /* or NULL */
    struct df_output *output;                /* notes */
    const volatile bool *stop;               /* or NULL */
    const struct df_step_wall_request *wall; /* see struct df_tool_request */
};

/* Reasons ToolMissing (range, places, index), ToolChecksum. The caller frees *ret. */
int df_terrakube_tool_find(const struct df_terrakube_tool_request *r, struct df_tool *ret,
                           struct df_err *err) DF_MUST_CHECK;

#endif
