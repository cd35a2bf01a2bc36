/*
 * flow.h - one step of Terrakube: what its door, its report and its stages share. docs/terrakube.md
 * has the whole picture.
 *
 * Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_FLOW_H
#define DF_RUNNER_TERRAKUBE_FLOW_H

#include "common/terrakube/api.h"
#include "common/terrakube/log_stream.h"
#include "common/terrakube/storage.h"
#include "runner/context.h"
#include "runner/terrakube/context.h"
#include "runner/terrakube/scripts.h"
#include "runner/terrakube/waits.h"
#include "runner/terrakube/watch.h"

/* How long the API and the storage are asked again before a result counts as undeliverable: a
 * database that is restored, a node that is replaced. */
#define DF_TERRAKUBE_RETRY_MS (15 * 60 * 1000)
#define DF_TERRAKUBE_PLAN_FILE "terraformLibrary.tfPlan" /* in the module's directory */

struct df_terrakube {
    /* Set before the step starts, and borrowed. */
    const struct df_terrakube_settings *settings;
    const struct df_terrakube_payload *payload;
    const struct df_strs *environment; /* of the container, without the platform's */
    const struct df_err *refused;      /* why the payload cannot be run; NULL: it can */
    struct df_terrakube_api *api;
    struct df_terrakube_storage *storage; /* NULL only if refused */
    struct df_terrakube_stream *stream;
    struct df_terrakube_context *context; /* NULL: there is none */
    struct df_terrakube_waits waits;
    char pod[37];       /* random: tells this process from another one that has the same step */
    cJSON *document;    /* the step document, which the stages complete */
    bool is_handed_out; /* by dayfly's service */
    const volatile bool *stop; /* of the step, once it has begun; or NULL */
    /* What the stages found. Owned. */
    struct df_terrakube_job job; /* as the API showed it last */
    struct df_terrakube_watch *watch;
    struct df_terrakube_scripts scripts;
    char *known_hosts; /* of ssh servers; NULL: any */
    char *output_json; /* of `output -json`; or NULL */
    char *plan_place;  /* for job.terraformPlan; NULL: no plan is stored */
    int plan_code;     /* of -detailed-exitcode; -1: nothing was planned */
    char commit[65];   /* of the source; "" before it is known */
    bool is_unheard;   /* the API did not give the job: it is told nothing more */
    bool is_announced; /* the API knows that the step runs */
    bool has_begun;    /* something of the user ran: a second start would repeat it */
    bool is_told;      /* the API knows how the step ended, or whose it is */
};

/* That of the step, which the row's data begins with (open.h). NULL: it is not one of Terrakube. */
static inline struct df_terrakube *df_terrakube_of(const struct df_context *c)
{
    return c->work_data;
}

/* Frees what the flow owns, not what it borrows. */
void df_terrakube_flow_free(struct df_terrakube *t);

/* True for terraformPlan and terraformPlanDestroy. */
bool df_terrakube_is_plan(const struct df_terrakube_payload *p);
/* False until API 2.28, the last whose payloads have an agentUrl: a job stays pending until its
 * executor tells that it runs, and has no context. */
bool df_terrakube_has_queue(const struct df_terrakube_payload *p);
/* True for the commands of onReject, whose step the API marks `failed` while it dispatches them.
 * Needs t->job. */
bool df_terrakube_is_refusal(const struct df_terrakube *t);
/* True for a configuration that the Terraform CLI uploaded. */
bool df_terrakube_is_remote_content(const struct df_terrakube_payload *p);

#endif
