/*
 * terrakube.h - a step that Terrakube's API gives to its executor. Contract: POST
 * /api/v1/terraform-rs of executor/service/mode/online. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_TERRAKUBE_H
#define DF_REQUESTS_TERRAKUBE_H

#include "spawner/spawner.h"

/* Makes the step durable: payload first, then its TaskAction. text: the body, a TerraformJob. A step
 * that is known is success: the API sends one again whose answer it lost. A payload with a fault is
 * taken if it says whose step it is: the runner tells the fault where the user looks. RETRY: there is no
 * room; the API sends it again. USER: it cannot be told whose step it is. */
int df_request_terrakube_step(struct df_spawner *s, const char *text, size_t n,
                              struct df_err *err) DF_MUST_CHECK;

#endif
