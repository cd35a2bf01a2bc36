/*
 * service.h - a step of Terrakube that dayfly's service was given and hands out: the same flow as
 * that of a Job of Terrakube's API, told to both. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_SERVICE_H
#define DF_RUNNER_TERRAKUBE_SERVICE_H

#include "runner/terrakube/open.h"
#include "runner/tofu/workspace.h"

/* Opens the flow that the member `terrakube` of the step document describes: {"payload": text,
 * "settings": ["NAME=VALUE"], "folder": of the workspace as the API has it, or absent}. Completes
 * the document, and takes that member out. *report, claimed, becomes part of the new one, which
 * replaces it. *ret_opened is a struct df_terrakube_opened; the caller closes it after the
 * report. */
int df_terrakube_join(cJSON *document, const struct df_dirs *dirs, struct df_report **report,
                      void **ret_opened, struct df_err *err) DF_MUST_CHECK;

#endif
