/*
 * report.h - the status report of an action: JSON with five sections (Summary, Components,
 * Failures, Metrics, Recommendations), the same as Markdown, and a summary of at most 4 KiB for the
 * pod's termination log.
 *
 * Contract: contracts/platform.md §6; docs/platform-report.schema.json is its JSON schema. Thread
 * rule: main thread.
 */
#ifndef DF_PLATFORM_REPORT_H
#define DF_PLATFORM_REPORT_H

#include "runner/platform/component.h"

/* All borrowed. */
struct df_report_facts {
    const struct df_platform_input *in;
    const struct df_component *components; /* NULL: the action did not come so far */
    size_t len;
    enum df_result result;
    const char *message; /* why the action as a whole ended so; or NULL */
    const char *cause;   /* its reason word; or NULL */
    const char *commit;  /* of the repository, that gitRevision led to; NULL: not known */
    const struct df_faults *faults; /* of an invalid input; or NULL */
    int64_t started_us, ended_us;
    unsigned writes;         /* objects that were written (in a dry run: would be) */
    const cJSON *bootstrap;  /* array of strings: what was installed; or NULL */
    const cJSON *compliance; /* of validate; or NULL */
    const cJSON *removal;    /* of teardown: {orphans: [...], volumes: [...]}; or NULL */
    const char *left;        /* what a teardown left behind; NULL or "": nothing */
    const cJSON *not_in_dag; /* array of strings: Applications that the DAG lacks; or NULL */
};

/* The caller owns *ret. */
int df_platform_report_make(const struct df_report_facts *facts, cJSON **ret,
                            struct df_err *err) DF_MUST_CHECK;

/* Writes it to all places that the input names. */
int df_platform_report_write(const struct df_platform_input *in, const cJSON *report,
                             struct df_err *err) DF_MUST_CHECK;
/* The report for people, as Markdown; the caller frees. */
int df_platform_report_markdown(const cJSON *report, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
