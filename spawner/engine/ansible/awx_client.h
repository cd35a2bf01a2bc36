/*
 * awx_client.h - the REST API of AWX, as far as the engine `ansible` needs it.
 *
 * Contract: kubernaut's AWX client. Unlike there names are escaped in URLs, all pages of a list are
 * read, and the token is read again when AWX refuses it. Each call is sent once: what may be
 * repeated is RETRY, and whoever repeats a POST looks first whether the lost answer was a yes.
 *
 * Failures: those of df_http_send(); RETRY (408, 425, 429, 499, 5xx; retry_after_s is at most
 * DF_AWX_WAIT_S), NOT_FOUND (a 404 in which AWX itself says so; any other is RETRY: a proxy before
 * an AWX that is away), USER (any other status; 401 and 403 with the reason NotAllowed), SYSTEM (an
 * answer that is not AWX's, also a success of another status).
 * The text is "AWX <what> returned <status>: <body>", in which the token and the inputs of
 * credentials are masked. Thread rule: one handle, one thread.
 */
#ifndef DF_ENGINE_AWX_CLIENT_H
#define DF_ENGINE_AWX_CLIENT_H

#include "common/json/json.h"
#include "spawner/engine/ansible/awx_gate.h"

enum {
    DF_AWX_ITEMS = 1000, /* jobs of a template, the newest ones, or templates, that are looked at */
    DF_AWX_BODY = 512,   /* bytes of an answer that a message shows */
    DF_AWX_NEAREST = 5,  /* templates that a message names instead of one that is not there */
    DF_AWX_PAGES = 10,   /* of any other list */
    DF_AWX_WAIT_S = 60,  /* a longer Retry-After is of a page for people: AWX may be back sooner */
};

struct df_awx; /* opaque */

/* Borrowed: they must live as long as the handle. */
struct df_awx_options {
    const char *url;      /* ansible.apiUrl; slashes at its end are dropped */
    const char *ca_file;  /* PEM; NULL: the system's */
    bool insecure;        /* accepts any certificate */
    int64_t organization; /* of credentials, and of templates if several have the name; <= 0: 1 */
    /* Reads the token; white space around it is dropped. *ret is wiped and freed here. Called
     * before the first request, and again when AWX answers 401. */
    int (*token)(void *arg, char **ret, struct df_err *err);
    /* Called directly before each request that changes something: false: it is not sent, and fails
     * with RETRY NotLeader. NULL: always. */
    bool (*may_write)(void *arg);
    void *arg;
    const volatile bool *stop; /* ends a request within 100 ms; or NULL */
    struct df_awx_gate *gate;  /* of all handles for this AWX; or NULL */
};

/* USER: the URL is empty, not http or https, or has a user in it. */
int df_awx_new(const struct df_awx_options *options, struct df_awx **ret,
               struct df_err *err) DF_MUST_CHECK;
void df_awx_free(struct df_awx *a); /* NULL is fine */
/* Wipes what it knows to mask it, but its token: what is sent from now on is another's. */
void df_awx_forget(struct df_awx *a);
static inline void df_cleanup_awx(struct df_awx **a)
{
    df_awx_free(*a);
}
#define DF_AWX DF_CLEANUP(df_cleanup_awx)

/* Of the last call, which failed: AWX may have done it. False: it was not sent, or refused. */
bool df_awx_may_have_done(const struct df_awx *a);

/* ---- job templates and jobs ---- */

/* What a launch may give it, if AWX tells; else everything. */
struct df_awx_template {
    int64_t id;
    bool takes_variables, takes_credentials; /* "Prompt on launch" */
    bool has_survey; /* then it takes the variables of the survey all the same */
};
/* name: jobTemplateName of engineConfig. USER: it is empty; there is none, with the names that are
 * nearest; or several have the name, and not one of them is of our organization. */
int df_awx_find_template(struct df_awx *a, const char *name, struct df_awx_template *ret,
                         struct df_err *err) DF_MUST_CHECK;

/* USER: a launch with these variables would ignore some, which the text names, or credentials. A
 * playbook that lacks them does something else. */
int df_awx_check_prompts(struct df_awx *a, const struct df_awx_template *t, const cJSON *vars,
                         bool has_credentials, struct df_err *err) DF_MUST_CHECK;

/* *ret: ids of its credentials, an array; the caller owns it. */
int df_awx_template_credentials(struct df_awx *a, int64_t template_id, cJSON **ret,
                                struct df_err *err) DF_MUST_CHECK;

/* For a launch whose answer was lost. *ret: of the template's newest DF_AWX_ITEMS jobs since then
 * (by AWX's clock; 0: ever) the newest that was launched for the action with this uid; -1: none
 * was. What others gave their jobs neither fills the memory, nor makes a list that is too large to
 * be read. */
int df_awx_find_job(struct df_awx *a, int64_t template_id, int64_t since_us, const char *uid,
                    int64_t *ret, struct df_err *err) DF_MUST_CHECK;

struct df_awx_launched {
    int64_t job;
    char ignored[128]; /* what AWX did not give to the job, "extra_vars, credentials"; "": nothing.
                          It runs all the same: to be canceled */
};
/* vars: an object; credentials: ids. Left out if empty or NULL. USER names the passwords or
 * variables that are needed to start. */
int df_awx_launch(struct df_awx *a, int64_t template_id, const cJSON *vars,
                  const cJSON *credentials, struct df_awx_launched *ret,
                  struct df_err *err) DF_MUST_CHECK;

/* *ret: the job as AWX describes it; the caller owns it. *ret_ahead_us: so far is AWX's clock, by
 * which its times are, ahead of ours; 0: not so much that it could be told. */
int df_awx_job(struct df_awx *a, int64_t id, cJSON **ret, int64_t *ret_ahead_us,
               struct df_err *err) DF_MUST_CHECK;
/* Success as well if the job has ended. */
int df_awx_cancel(struct df_awx *a, int64_t id, struct df_err *err) DF_MUST_CHECK;
/* How many events of the job AWX has stored, and the number of the newest. AWX stores them in any
 * order: if both are the same, and still are when the output was read in between, then it has no
 * gap that is filled later. */
struct df_awx_events {
    int64_t count, newest;
};
int df_awx_count_events(struct df_awx *a, int64_t id, struct df_awx_events *ret,
                        struct df_err *err) DF_MUST_CHECK;
/* Appends what the job has printed; LIMIT beyond the buffer's cap. NOT_FOUND: nothing yet, or there
 * is no such job. */
int df_awx_stdout(struct df_awx *a, int64_t id, struct df_buf *to,
                  struct df_err *err) DF_MUST_CHECK;

/* ---- credential types and credentials ---- */

/* *ret: {id, name, kind, inputs, injectors}; the caller owns it. NOT_FOUND: there is none. */
int df_awx_find_type(struct df_awx *a, const char *name, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;
int df_awx_create_type(struct df_awx *a, const char *name, const cJSON *inputs,
                       const cJSON *injectors, int64_t *ret_id, struct df_err *err) DF_MUST_CHECK;

/* *ret: the ids of those in our organization, an array: one for each type. The caller owns it. */
int df_awx_find_credentials(struct df_awx *a, const char *name, cJSON **ret,
                            struct df_err *err) DF_MUST_CHECK;
/* inputs: {field: "text"}, secret. */
int df_awx_create_credential(struct df_awx *a, const char *name, int64_t type, const cJSON *inputs,
                             int64_t *ret_id, struct df_err *err) DF_MUST_CHECK;
int df_awx_delete_credential(struct df_awx *a, int64_t id, struct df_err *err) DF_MUST_CHECK;

#endif
