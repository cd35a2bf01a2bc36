/*
 * checks.h - the checks of `dayfly doctor`, and the context that they share. Only for
 * spawner/doctor.
 *
 * A check is one row in the table of doctor.c. It reports with df_finding(), any number of times; a
 * failure that it returns becomes a finding of level fail. Thread rule: one thread.
 */
#ifndef DF_DOCTOR_CHECKS_H
#define DF_DOCTOR_CHECKS_H

#include "common/kube/kube.h"
#include "spawner/config/config.h"

enum df_level { DF_LEVEL_OK, DF_LEVEL_WARN, DF_LEVEL_FAIL };

/* The prerequisites of checks, as bits. The check that provides one sets its bit. */
enum df_prerequisite {
    DF_HAS_CLUSTER = 1 << 0,  /* the API server answers */
    DF_HAS_JOB = 1 << 1,      /* the first of `jobs` was made */
    DF_HAS_ACCEPTED = 1 << 2, /* the API server accepts that Job and its pod */
    DF_HAS_PROBE = 1 << 3     /* `probe` is set */
};

/* Owned, except where a member is called borrowed. */
struct df_doctor_context {
    struct df_config config;
    const char *account; /* borrowed; or NULL */
    const char *module;  /* borrowed; or NULL */
    unsigned has;
    char *url;              /* the URL of the spawner that runners get */
    char *ca_file;          /* the CA file that they trust; NULL: the system's */
    bool owns_ca_file;      /* ca_file is a temporary file of doctor */
    struct df_kube *kube;   /* set by the check "cluster" */
    const char *name_space; /* of the Jobs; borrowed */
    const char *service_ns; /* namespace of the spawner and what it keeps; borrowed */
    struct df_never never;  /* what no step may have, as far as the configuration names it */
    char *issuer;           /* expected in pods' tokens; NULL: unknown */
    char uid[37];           /* of the step that doctor pretends to start */
    cJSON *jobs;            /* Jobs of steps as the engine would make them; the names are the keys
                               of the placement: kubernetes.placement, classes.NAME,
                               workspaces.NAME */
    const cJSON *job;       /* the first of them; borrowed */
    cJSON *probe;           /* the report of runner/probe.h */
    int64_t probed_from_us, probed_to_us; /* times before and after it was made */

    cJSON *findings; /* borrowed from the document */
    const char *check;
    size_t counts[3]; /* by level */
    bool is_oom;      /* sticky: a finding was lost */
};

/* Adds a finding of the current check. */
void df_finding(struct df_doctor_context *p, enum df_level level, const char *fmt, ...)
    DF_PRINTF(3, 4);

/* The difference between another clock and this machine's; negative if the other one is behind, 0
 * if they may be equal. at_us: what the other clock showed between from_us and to_us. slack_us: its
 * resolution; one second for a clock of whole seconds. */
int64_t df_clock_skew(int64_t from_us, int64_t at_us, int64_t slack_us, int64_t to_us);
/* Reports this difference. whose: "the API server's clock". */
void df_finding_skew(struct df_doctor_context *p, const char *whose, int64_t skew_us);

/* machine.c */
/* Fills url and ca_file. */
int df_find_server(struct df_doctor_context *p, struct df_err *err) DF_MUST_CHECK;
int df_check_data_directory(struct df_doctor_context *p, struct df_err *err);
/* Succeeds if this directory can be written to; if it does not exist, the nearest existing one
 * above it. */
int df_doctor_try_directory(const char *path, struct df_err *err) DF_MUST_CHECK;
int df_check_tokens(struct df_doctor_context *p, struct df_err *err);
int df_check_openid(struct df_doctor_context *p, struct df_err *err);
int df_check_credentials(struct df_doctor_context *p, struct df_err *err);
int df_check_tls(struct df_doctor_context *p, struct df_err *err);
int df_check_state_service(struct df_doctor_context *p, struct df_err *err);
int df_check_address(struct df_doctor_context *p, struct df_err *err);

/* bucket.c */
int df_check_bucket_keys(struct df_doctor_context *p, struct df_err *err);
int df_check_bucket(struct df_doctor_context *p, struct df_err *err);

/* keys_used.c */
int df_check_keys_used(struct df_doctor_context *p, struct df_err *err);

/* programs.c */
int df_check_runner(struct df_doctor_context *p, struct df_err *err);
/* True if a step on this machine finds tofu or terraform without a download. */
bool df_has_local_tool(const struct df_doctor_context *p);
int df_check_local_tool(struct df_doctor_context *p, struct df_err *err);
int df_check_git(struct df_doctor_context *p, struct df_err *err);
int df_check_isolation(struct df_doctor_context *p, struct df_err *err);

/* wall.c */
/* Makes the wall of a step and looks from the inside. Succeeds if it hides what it should:
 * *ret_hidden paths. */
int df_doctor_try_wall(const struct df_config *c, size_t *ret_hidden,
                       struct df_err *err) DF_MUST_CHECK;

/* downloads.c */
int df_check_downloads(struct df_doctor_context *p, struct df_err *err);
int df_check_providers(struct df_doctor_context *p, struct df_err *err);
/* Succeeds with any response, because only the tool knows the paths below this URL. ca_file NULL:
 * the system's. */
int df_doctor_request(const char *url, const char *ca_file, struct df_err *err) DF_MUST_CHECK;

/* registries.c */
struct df_hcl_module;
/* A part of the check "module". */
int df_check_registries(struct df_doctor_context *p, const struct df_hcl_module *m,
                        struct df_err *err) DF_MUST_CHECK;

/* module.c */
int df_check_module(struct df_doctor_context *p, struct df_err *err);

/* cluster.c */
int df_check_cluster(struct df_doctor_context *p, struct df_err *err);
int df_check_clock(struct df_doctor_context *p, struct df_err *err);
int df_check_issuer(struct df_doctor_context *p, struct df_err *err);

/* operator.c */
int df_check_custom_resources(struct df_doctor_context *p, struct df_err *err);
int df_check_authority(struct df_doctor_context *p, struct df_err *err);

/* definitions.c */
/* Warns of fields of this version that the cluster's definitions do not have. *ret_complete: there
 * is none, or the account may not read the definitions. */
int df_check_definitions(struct df_doctor_context *p, bool *ret_complete, struct df_err *err);

/* rights.c */
int df_check_rights(struct df_doctor_context *p, struct df_err *err);
int df_check_runner_rights(struct df_doctor_context *p, struct df_err *err);

/* secrets.c */
int df_check_secrets(struct df_doctor_context *p, struct df_err *err);

/* sources.c */
int df_check_sources(struct df_doctor_context *p, struct df_err *err);
/* Reports the own secrets (df_vault_list()) whose names are those of a source. */
void df_find_hidden_secrets(struct df_doctor_context *p, const cJSON *secrets);

/* policy.c */
int df_check_policy(struct df_doctor_context *p, struct df_err *err);
int df_check_pod_security(struct df_doctor_context *p, struct df_err *err);

/* step.c */
int df_check_step(struct df_doctor_context *p, struct df_err *err);
int df_check_job(struct df_doctor_context *p, struct df_err *err);
int df_check_pod(struct df_doctor_context *p, struct df_err *err);
/* The Job of a step with that name and the uid of p. */
struct df_job_options;
int df_make_step_job(struct df_doctor_context *p, const struct df_job_options *o, const char *name,
                     cJSON **ret, struct df_err *err) DF_MUST_CHECK;
struct df_job_options df_job_options_of(const struct df_doctor_context *p);

/* references.c */
int df_check_references(struct df_doctor_context *p, struct df_err *err);

/* nodes.c */
int df_check_nodes(struct df_doctor_context *p, struct df_err *err);

/* leader.c */
/* *ret: the URL at which runners ask the replica that leads, which the caller frees; NULL: they are
 * told of none, or a finding says why it is not known. */
int df_find_leader(struct df_doctor_context *p, char **ret, struct df_err *err) DF_MUST_CHECK;

/* probe.c */
int df_check_start(struct df_doctor_context *p, struct df_err *err);

/* report.c: the contents of the probe's report */
int df_check_image(struct df_doctor_context *p, struct df_err *err);
int df_check_dns(struct df_doctor_context *p, struct df_err *err);
int df_check_reach(struct df_doctor_context *p, struct df_err *err);
int df_check_pod_clock(struct df_doctor_context *p, struct df_err *err);
int df_check_pod_token(struct df_doctor_context *p, struct df_err *err);
int df_check_work(struct df_doctor_context *p, struct df_err *err);
int df_check_tool(struct df_doctor_context *p, struct df_err *err);

#endif
