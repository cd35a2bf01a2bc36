/*
 * The members of engineConfig, the name of a job, and a table of AWX's states.
 */
#include "spawner/engine/ansible/awx_job.h"

#include <strings.h>

#include "common/base/parse.h"

#define REF "awx-job-"

/* ---- engineConfig ---- */

static int set_member(const cJSON *member, struct df_awx_config *c, struct df_err *err)
{
    const struct {
        const char *name;
        const char **to;
    } known[] = {{"playbookPath", &c->playbook},
                 {"jobTemplateName", &c->job_template},
                 {"inventoryName", &c->inventory}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++) {
        if (strcasecmp(member->string, known[i].name) != 0)
            continue;
        if (cJSON_IsString(member))
            *known[i].to = member->valuestring;
        else if (!cJSON_IsNull(member))
            return df_fail(err, DF_ERR_USER, "invalid ansible engineConfig: %s must be a string",
                           known[i].name);
        return 0;
    }
    return df_fail(err, DF_ERR_USER,
                   "invalid ansible engineConfig: \"%.64s\" is unknown: it may have playbookPath, "
                   "jobTemplateName and inventoryName",
                   member->string);
}

static int read_config(const cJSON *json, struct df_awx_config *c, struct df_err *err)
{
    const cJSON *member;
    if (!json || cJSON_IsNull(json))
        return df_fail(err, DF_ERR_USER, "engineConfig is required for ansible engine");
    if (!cJSON_IsObject(json))
        return df_fail(err, DF_ERR_USER, "invalid ansible engineConfig: it must be an object");
    cJSON_ArrayForEach (member, json)
        if (set_member(member, c, err) < 0)
            return -1;
    return *c->playbook
               ? 0
               : df_fail(err, DF_ERR_USER, "playbookPath is required in ansible engineConfig");
}

int df_awx_config_of(const cJSON *engine_config, struct df_awx_config *ret, struct df_err *err)
{
    struct df_awx_config c = {"", "", ""};
    if (read_config(engine_config, &c, err) < 0)
        return df_err_wrap(err, "parse ansible engineConfig");
    *ret = c;
    return 0;
}

/* ---- name ---- */

void df_awx_job_ref(int64_t id, char to[32])
{
    (void)snprintf(to, 32, REF "%lld", (long long)id);
}

int df_awx_job_id(const char *ref, int64_t *ret, struct df_err *err)
{
    int result = df_starts_with(ref, REF)
                     ? df_parse_i64(ref + strlen(REF), 0, INT64_MAX, ret, err)
                     : df_fail(err, DF_ERR_USER,
                               "execution ref \"%.64s\" does not have " REF " prefix", ref);
    return result < 0 ? df_err_wrap(err, "parse AWX job ID from executionRef \"%.64s\"", ref) : 0;
}

/* ---- status ---- */

struct row {
    const char *status;
    enum df_workflow_phase phase;
    const char *reason, *message;
};

/* All states of AWX but "new". A job that is queued counts as running: AWX has it. */
static const struct row rows[] = {
    {"pending", DF_WORKFLOW_RUNNING, "AWXJobPending", "AWX job is queued"},
    {"waiting", DF_WORKFLOW_RUNNING, "AWXJobPending", "AWX job is queued"},
    {"running", DF_WORKFLOW_RUNNING, "AWXJobRunning", "AWX job is executing"},
    {"successful", DF_WORKFLOW_COMPLETED, "AWXJobSuccessful", "AWX job completed successfully"},
    {"failed", DF_WORKFLOW_FAILED, "AWXJobFailed", "AWX job execution failed"},
    {"error", DF_WORKFLOW_FAILED, "AWXJobError", "AWX job encountered an internal error"},
    {"canceled", DF_WORKFLOW_FAILED, "AWXJobCanceled", "AWX job was canceled"},
};
static const struct row gone = {"", DF_WORKFLOW_FAILED, "AWXJobGone",
                                "AWX job is gone: it was deleted in AWX before it had ended"};

static const struct row *row_of(const char *status)
{
    if (!status)
        return &gone;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        if (df_streq(rows[i].status, status))
            return &rows[i];
    return NULL;
}

/* The last characters that fit: there a playbook says what failed. */
static const char *end_of(const char *text, size_t size)
{
    size_t n = strlen(text);
    const char *p = n < size ? text : text + n - size + 1;
    while (p > text && ((unsigned char)*p & 0xc0) == 0x80)
        p++;
    return p;
}

void df_awx_job_status(const char *status, const char *output, struct df_workflow_status *ret)
{
    static const char *const summaries[] = {[DF_WORKFLOW_ABSENT] = "Unknown",
                                            [DF_WORKFLOW_RUNNING] = "Unknown",
                                            [DF_WORKFLOW_COMPLETED] = "True",
                                            [DF_WORKFLOW_FAILED] = "False"};
    const struct row *row = row_of(status);
    const struct row unknown = {status, DF_WORKFLOW_RUNNING, "AWXJobUnknown", ""};
    const struct row *r = row ? row : &unknown;
    *ret = (struct df_workflow_status){.phase = r->phase};
    if (!row)
        (void)snprintf(ret->message, sizeof(ret->message), "Unknown AWX job status: %s", status);
    else if (r->phase == DF_WORKFLOW_FAILED && !df_str_empty(output))
        df_copy(ret->message, sizeof(ret->message), end_of(output, DF_AWX_SHOWN));
    else
        df_copy(ret->message, sizeof(ret->message), r->message);
    df_copy(ret->reason, sizeof(ret->reason), r->reason);
    /* Whether a job of AWX had begun is not told: its target may be half changed. */
    if (r->phase == DF_WORKFLOW_FAILED)
        ret->failure = (struct df_workflow_failure){.reason = r == &gone ? "Unknown" : "TaskFailed",
                                                    .word = "WorkflowFailed",
                                                    .task = "",
                                                    .was_execution = true};
    ret->summary.status = summaries[r->phase];
    ret->summary.reason = r->reason;
    df_copy(ret->summary.message, sizeof(ret->summary.message), ret->message);
}
