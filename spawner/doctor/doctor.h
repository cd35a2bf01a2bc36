/*
 * doctor.h - finds what is wrong with an installation before a run does: `dayfly doctor`.
 *
 * It looks with the service's own configuration at this machine and at the cluster, lets the API
 * server try the very Job and pod of a step without making them, and lets one pod of the runner's
 * image tell what a step would find. What it looks at, one by one: docs/doctor.md. It changes
 * nothing but for that pod, whose Job it removes. Thread rule: one call at a time.
 */
#ifndef DF_DOCTOR_H
#define DF_DOCTOR_H

#include "common/base/strs.h"
#include "common/json/json.h"

struct df_doctor_options {
    const char *config;             /* file, or NULL */
    const struct df_strs *settings; /* "key=value" over it; or NULL */
    const char *account; /* whose rights are looked at: a service account of the namespace;
                            NULL: those of the credentials at hand */
    bool probe;          /* may start a pod */
    const char *module;  /* directory whose needs are looked at, too; or NULL */
};

/* The name of the ith check, in their order; NULL after the last. For tests. */
const char *df_doctor_check(size_t i);

/* {"findings": [{"check", "level", "message"}], "failures": N, "warnings": N}; level is ok, warn or
 * fail. A configuration that cannot be read is a finding, too. The caller owns *ret. Fails on no
 * memory alone. */
int df_doctor(const struct df_doctor_options *o, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
