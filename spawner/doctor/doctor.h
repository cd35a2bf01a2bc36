/*
 * doctor.h - `dayfly doctor`: finds faults of an installation before a step fails because of them.
 *
 * It reads the same configuration as the service and checks this machine and the cluster. It sends
 * the Job and the pod of a step to the API server as a dry run, and starts one pod with the
 * runner's image, the probe, which reports what a step would find. docs/doctor.md describes each
 * check. doctor changes nothing except for the probe, whose Job it removes, and an object in the
 * bucket, which it removes. Thread rule: one call
 * at a time.
 */
#ifndef DF_DOCTOR_H
#define DF_DOCTOR_H

#include "common/base/strs.h"
#include "common/json/json.h"

struct df_doctor_options {
    const char *config;             /* file, or NULL */
    const struct df_strs *settings; /* "key=value", which override it; or NULL */
    const char *account; /* the service account of the namespace whose rights are checked; NULL:
                            the account of the present credentials */
    bool probe;          /* may start a pod */
    const char *module;  /* directory of a module to be checked, too; or NULL */
    const char *only;    /* the only check to make; NULL: all that apply */
};

/* The name of the ith check, in the order of execution; NULL after the last. For tests. */
const char *df_doctor_check(size_t i);

/* *ret: {"findings": [{"check", "level", "message"}], "failures": N, "warnings": N}, owned by the
 * caller; level is ok, warn or fail. A configuration that cannot be read is a finding, too. The
 * call fails only if memory or random numbers are not available, or (USER) if there is no check
 * `only`. */
int df_doctor(const struct df_doctor_options *o, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
