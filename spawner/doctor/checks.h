/*
 * checks.h - the checks of `dayfly doctor`, and the context that they share; inside spawner/doctor
 * only.
 *
 * A check is one row in the table of doctor.c. It reports with df_finding(), any number of times; a
 * failure that it returns is a finding of level fail. Thread rule: one thread.
 */
#ifndef DF_DOCTOR_CHECKS_H
#define DF_DOCTOR_CHECKS_H

#include "common/kube/kube.h"
#include "spawner/config/config.h"

enum df_level { DF_LEVEL_OK, DF_LEVEL_WARN, DF_LEVEL_FAIL };

/* What a check may need, as bits; set by the check that provides it. */
enum df_prerequisite {
    DF_HAS_CLUSTER = 1 << 0, /* kube answers */
    DF_HAS_JOB = 1 << 1,     /* the first of jobs was built */
    DF_HAS_TAKEN = 1 << 2,   /* the API server would take it */
    DF_HAS_PROBE = 1 << 3    /* probe is there */
};

/* Owned, except where a member is called borrowed. */
struct df_doctor_context {
    struct df_config config;
    const char *account; /* borrowed; or NULL */
    const char *module;  /* borrowed; or NULL */
    unsigned has;
    char *url;              /* what runners are told */
    char *ca_file;          /* what they are to trust; NULL: the system's */
    bool owns_ca_file;      /* it was made here, and goes */
    struct df_kube *kube;   /* NULL before "cluster" */
    const char *name_space; /* of the Jobs; borrowed */
    char *issuer;           /* of pods' tokens, as the spawner expects it; NULL: not known */
    char uid[37];           /* of the step that is made up */
    cJSON *jobs;            /* of steps as the engine would make them, by where their placement
                               stands: kubernetes.placement, classes.NAME, workspaces.NAME */
    const cJSON *job;       /* the first of them; borrowed */
    cJSON *probe;           /* the report of runner/probe.h */
    int64_t probed_from_us, probed_to_us; /* it was made between these */

    cJSON *findings; /* borrowed from the document */
    const char *check;
    size_t counts[3]; /* by level */
    bool is_oom;      /* sticky: a finding is lost */
};

/* Adds a finding of the current check. */
void df_finding(struct df_doctor_context *p, enum df_level level, const char *fmt, ...)
    DF_PRINTF(3, 4);

/* How far a clock that showed at_us between two looks at ours is off; a clock of whole seconds has
 * a slack of one second. */
int64_t df_clock_skew(int64_t from_us, int64_t at_us, int64_t slack_us, int64_t to_us);
/* Says what that means. whose: "the API server's clock". */
void df_finding_skew(struct df_doctor_context *p, const char *whose, int64_t skew_us);

/* machine.c */
/* Fills url and ca_file. */
int df_find_server(struct df_doctor_context *p, struct df_err *err) DF_MUST_CHECK;
int df_look_data_directory(struct df_doctor_context *p, struct df_err *err);
/* Can this directory be written to, or the nearest one above it that exists? */
int df_doctor_try_directory(const char *path, struct df_err *err) DF_MUST_CHECK;
int df_look_tokens(struct df_doctor_context *p, struct df_err *err);
int df_look_credentials(struct df_doctor_context *p, struct df_err *err);
int df_look_tls(struct df_doctor_context *p, struct df_err *err);
int df_look_state_service(struct df_doctor_context *p, struct df_err *err);
int df_look_address(struct df_doctor_context *p, struct df_err *err);

/* programs.c */
int df_look_runner(struct df_doctor_context *p, struct df_err *err);
/* Does a step on this machine find tofu or terraform without a download? */
bool df_has_local_tool(const struct df_doctor_context *p);
int df_look_local_tool(struct df_doctor_context *p, struct df_err *err);
int df_look_git(struct df_doctor_context *p, struct df_err *err);

/* downloads.c */
int df_look_downloads(struct df_doctor_context *p, struct df_err *err);
int df_look_providers(struct df_doctor_context *p, struct df_err *err);

/* module.c */
int df_look_module(struct df_doctor_context *p, struct df_err *err);

/* cluster.c */
int df_look_cluster(struct df_doctor_context *p, struct df_err *err);
int df_look_clock(struct df_doctor_context *p, struct df_err *err);
int df_look_issuer(struct df_doctor_context *p, struct df_err *err);

/* operator.c */
int df_look_custom_resources(struct df_doctor_context *p, struct df_err *err);
int df_look_authority(struct df_doctor_context *p, struct df_err *err);

/* rights.c */
int df_look_rights(struct df_doctor_context *p, struct df_err *err);
int df_look_runner_rights(struct df_doctor_context *p, struct df_err *err);

/* step.c */
int df_look_step(struct df_doctor_context *p, struct df_err *err);
int df_look_job(struct df_doctor_context *p, struct df_err *err);
int df_look_pod(struct df_doctor_context *p, struct df_err *err);
/* The Job of a step of that name and of p's uid. */
struct df_job_options;
int df_make_step_job(struct df_doctor_context *p, const struct df_job_options *o, const char *name,
                     cJSON **ret, struct df_err *err) DF_MUST_CHECK;
struct df_job_options df_job_options_of(const struct df_doctor_context *p);

/* references.c */
int df_look_references(struct df_doctor_context *p, struct df_err *err);

/* nodes.c */
int df_look_nodes(struct df_doctor_context *p, struct df_err *err);

/* probe.c */
int df_look_start(struct df_doctor_context *p, struct df_err *err);

/* report.c: what the probe tells */
int df_look_image(struct df_doctor_context *p, struct df_err *err);
int df_look_dns(struct df_doctor_context *p, struct df_err *err);
int df_look_reach(struct df_doctor_context *p, struct df_err *err);
int df_look_pod_clock(struct df_doctor_context *p, struct df_err *err);
int df_look_pod_token(struct df_doctor_context *p, struct df_err *err);
int df_look_work(struct df_doctor_context *p, struct df_err *err);
int df_look_tool(struct df_doctor_context *p, struct df_err *err);

#endif
