/*
 * The current outputs of an executor, and the outputs that a run had at its end.
 */
#include "spawner/steps/outputs.h"
#include "common/base/clock.h"
#include "spawner/api/handlers.h"
#include "spawner/api/state.h"
#include "spawner/model/labels.h"
#include "spawner/model/output_types.h"

#include "spawner/steps/masks.h"
#include "spawner/steps/shown.h"

static bool is_managed(const cJSON *executor)
{
    const char *type = df_json_str(executor, "spec.storage.type");
    return !type || df_streq(type, "managed");
}

/* Of a state without outputs: it may be one that cannot be read. */
static int check_readable(struct df_spawner *s, const char *executor_uid, int64_t version,
                          struct df_err *err)
{
    struct df_err why = {0};
    bool is_encrypted = false;
    if (df_state_is_encrypted(s->states, executor_uid, version, &is_encrypted, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (!is_encrypted)
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, DF_STATE_ENCRYPTED,
                          "the state is encrypted by the tool, so its outputs cannot be read here: "
                          "the log of the run that applied them has those that are not sensitive, "
                          "and `dayfly state exec` gives the tool the state");
}

/* Returns those of a version of the managed state. */
static int of_state(struct df_spawner *s, const char *executor_uid, int64_t version,
                    enum df_outputs_view view, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *outputs = NULL;
    bool all = view == DF_OUTPUTS_SENSITIVE;
    if (df_state_outputs(s->states, executor_uid, version, all, &outputs, err) < 0 ||
        (!outputs->child && check_readable(s, executor_uid, version, err) < 0) ||
        (view == DF_OUTPUTS_MASKED && df_shown_apply(s, executor_uid, version, outputs, err) < 0))
        return -1;
    *ret = DF_TAKE(outputs);
    return 0;
}

/* Before the first apply there are no outputs. */
static int of_executor(struct df_spawner *s, const cJSON *executor, enum df_outputs_view view,
                       cJSON **ret, struct df_err *err)
{
    const char *uid = df_json_str(executor, "metadata.uid");
    struct df_err why = {0};
    if (is_managed(executor))
        return of_state(s, uid, 0, view, ret, err) < 0
                   ? df_state_failed(df_json_str(executor, "metadata.name"), err)
                   : 0;
    if (df_outputs_get(s, uid, view, ret, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return df_check_alloc(*ret = cJSON_CreateObject(), err);
}

static int fail_no_outputs(const cJSON *run, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND, "run %s: no outputs are stored",
                   df_json_str(run, "metadata.name"));
}

/* Returns the outputs of the newest state version at the end of the run. */
static int of_managed_run(struct df_spawner *s, const cJSON *run, const char *executor_uid,
                          enum df_outputs_view view, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *versions = NULL;
    const char *finished = df_json_str(run, "status.finishedAt");
    const cJSON *v;
    int64_t end_us = df_real_us(), made_us = 0;
    if ((finished && df_time_parse(finished, &end_us, err) < 0) ||
        df_state_versions(s->states, executor_uid, &versions, err) < 0)
        return -1;
    cJSON_ArrayForEach (v, versions) {
        const char *at = df_json_str(v, "createdAt");
        if (at && df_time_parse(at, &made_us, NULL) == 0 && made_us <= end_us)
            return of_state(s, executor_uid, df_json_int(v, "version", 0), view, ret, err);
    }
    return fail_no_outputs(run, err);
}

/* Returns the outputs of the last step that stored any. */
static int of_steps(struct df_spawner *s, const cJSON *run, enum df_outputs_view view, cJSON **ret,
                    struct df_err *err)
{
    DF_FREE char *label = df_strf(DF_LABEL_RUN "=%s", df_json_str(run, "metadata.name"));
    DF_JSON cJSON *tasks = NULL;
    const struct df_store_list_options o = {.label = label, .limit = 100};
    const cJSON *task;
    if (df_check_alloc(label, err) < 0 ||
        df_store_list(s->store, DF_KIND_TASK_ACTION, &o, &tasks, NULL, err) < 0)
        return -1;
    cJSON_ArrayForEach (task, tasks) {
        struct df_err why = {0};
        if (df_outputs_get(s, df_json_str(task, "metadata.uid"), view, ret, &why) == 0)
            return 0;
        if (why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
    }
    return fail_no_outputs(run, err);
}

static int of_run(struct df_spawner *s, const cJSON *run, enum df_outputs_view view, cJSON **ret,
                  struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    if (df_store_look(s->store, DF_KIND_EXECUTOR, df_json_str(run, "spec.executorRef.name"),
                      &executor, err) < 0)
        return -1;
    const char *type = df_json_str(run, "spec.snapshot.storage.type");
    if (type && !df_streq(type, "managed"))
        return of_steps(s, run, view, ret, err);
    if (of_managed_run(s, run, df_json_str(executor, "metadata.uid"), view, ret, err) == 0)
        return 0;
    return df_state_failed(df_json_str(executor, "metadata.name"), err);
}

/* Who may see secrets gets the values as they are, as in the state. */
static int choose_view(const struct df_request *req, struct df_response *res,
                       enum df_outputs_view *ret, struct df_err *err)
{
    bool show = false;
    if (df_request_flag(req, "showSensitive", &show, err) < 0)
        return -1;
    bool may = df_verbs_have(req->verbs, DF_VERB_SECRETS);
    *ret = show ? DF_OUTPUTS_SENSITIVE : may ? DF_OUTPUTS_PLAIN : DF_OUTPUTS_MASKED;
    if (!show)
        return 0;
    res->audit = "show-sensitive";
    return df_verbs_require(req->verbs, DF_VERB_SECRETS, "showSensitive", NULL, err);
}

typedef int (*finder)(struct df_spawner *s, const cJSON *doc, enum df_outputs_view view,
                      cJSON **ret, struct df_err *err);

/* Also what a runner masked: a secret may have been stored, or replaced, since. */
static int mask_outputs(struct df_spawner *s, const cJSON *doc, cJSON *outputs, struct df_err *err)
{
    const cJSON *const specs[] = {df_json_at(doc, "spec"), df_json_at(doc, "spec.snapshot"), NULL};
    return df_mask_outputs(s, specs, outputs, err) < 0 ? -1 : df_output_types_hide(outputs, err);
}

static int respond_outputs(struct df_request *req, struct df_response *res, enum df_kind kind,
                           finder find, struct df_err *err)
{
    DF_SHARED const cJSON *doc = NULL;
    DF_SECRET_JSON cJSON *outputs = NULL;
    enum df_outputs_view view = DF_OUTPUTS_MASKED;
    if (choose_view(req, res, &view, err) < 0 ||
        df_store_look(req->s->store, kind, req->params[0], &doc, err) < 0 ||
        find(req->s, doc, view, &outputs, err) < 0 ||
        (view == DF_OUTPUTS_MASKED && mask_outputs(req->s, doc, outputs, err) < 0))
        return -1;
    res->secret = view == DF_OUTPUTS_SENSITIVE;
    return df_respond_json(res, 200, outputs, err);
}

int df_get_outputs(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return respond_outputs(req, res, DF_KIND_EXECUTOR, of_executor, err);
}

int df_get_run_outputs(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return respond_outputs(req, res, DF_KIND_RUN, of_run, err);
}
