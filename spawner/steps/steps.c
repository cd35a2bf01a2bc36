/*
 * steps.c - claim, progress and result of a step; streams.c, plans.c and outputs.c have the rest.
 * Each call checks the token and changes the TaskAction in one function (set_...), which the store
 * executes as a compare-and-swap. Read df_step_claim() first: it chooses between claim() and
 * claim_in_pod().
 */
#include "spawner/steps/steps.h"
#include "spawner/model/task_parts.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "common/crypto/jwt.h"
#include "spawner/identity/claim.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/recipe.h"
#include "spawner/model/shared_pod.h"
#include "spawner/model/workflow.h"
#include "spawner/steps/engine_step.h"
#include "spawner/steps/errored.h"
#include "spawner/steps/lock_holder.h"
#include "spawner/steps/outcome.h"
#include "spawner/steps/standby.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/step_document.h"
#include "spawner/steps/unrecorded.h"
#include "spawner/steps/waits.h"
#include "spawner/upstream.h"

static int modify_task(struct df_spawner *s, const char *uid, df_store_change change, void *arg,
                       cJSON **ret, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &task, err) < 0)
        return -1;
    return df_task_modify(s, df_json_str(task, "metadata.name"), change, arg, ret, err);
}

/* ---- claim ---- */

struct claim {
    const char *token;
    const struct df_claim_pod *pod; /* verified by its own token; NULL: token is a claim token */
    const char *host; /* of the verified pod, if it is that of another step (shared_pod.h) */
    const char *made; /* uid of the engine's object by which the pod was verified; or NULL */
    struct df_step_tokens tokens;
    char step_hash[65];
    char state_hash[65];
    char providers_hash[65];
    const cJSON *body;
    int64_t now_us;
};

int df_step_check_claim_id(const cJSON *body, struct df_err *err)
{
    const char *id = df_json_str(body, "claimId");
    if (id && strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                          "claimId: must be 32 lower-case hex digits");
}

/* Stores the pod that the verified token names. What the runner says about its pod is not
 * trusted. */
static int set_pod(cJSON *claimed, const struct df_claim_pod *pod, struct df_err *err)
{
    if (df_json_set_str(claimed, "podUid", pod->uid, err) < 0 ||
        df_json_set_str(claimed, "podName", pod->name, err) < 0)
        return -1;
    return pod->node[0] ? df_json_set_str(claimed, "node", pod->node, err) : 0;
}

/* Who knows the claimId and the token of the claim gets the document: people may read the status,
 * so it has a hash. */
static int hash_claim_id(const struct claim *c, char ret[DF_SHA256_HEX], struct df_err *err)
{
    const char *id = df_json_str(c->body, "claimId");
    return df_sha256_hex(id, strlen(id), ret, err);
}

static int set_claimed_by(cJSON *task, const struct claim *c, struct df_err *err)
{
    static const char *const members[] = {"host", "pid", "pidStart", "version"};
    char hash[DF_SHA256_HEX];
    cJSON *status = df_json_object_at(task, "status");
    cJSON *claimed = status ? df_json_object_at(status, "claimedBy") : NULL;
    if (!claimed)
        return df_fail_oom(err);
    if (c->pod && set_pod(claimed, c->pod, err) < 0)
        return -1;
    if (hash_claim_id(c, hash, err) < 0 || df_json_set_str(claimed, "claimId", hash, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(c->body, members[i]);
        bool text = cJSON_IsString(item) && strlen(item->valuestring) <= 256;
        if ((text || cJSON_IsNumber(item)) &&
            df_json_set(claimed, members[i], cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    if (df_json_add_time(claimed, "at", c->now_us, err) < 0 ||
        df_task_reset_failures(task, err) < 0)
        return -1;
    return df_task_add_time(task, "claimed", c->now_us, err);
}

/* True for the runner that has claimed the step already: it repeats its claim if the response was
 * lost. */
static bool is_holder(const cJSON *task, const struct claim *c)
{
    const cJSON *by = df_json_at(task, "status.claimedBy");
    const char *known = df_json_str(by, "claimId");
    char hash[DF_SHA256_HEX];
    if (c->pod && !df_streq(df_json_str(by, "podUid"), c->pod->uid))
        return false;
    /* Older spawners wrote the claimId itself, which is shorter than a hash. */
    return df_streq(known, df_json_str(c->body, "claimId")) ||
           (hash_claim_id(c, hash, NULL) == 0 && df_streq(known, hash));
}

bool df_step_is_held_by(const cJSON *task, const cJSON *body, const struct df_claim_pod *pod)
{
    const struct claim c = {.body = body, .pod = pod};
    return is_holder(task, &c);
}

/* A repeated claim is a write, too: who does not lead any more answers none from its cache. */
static int set_repeated(cJSON *status, const struct claim *c, struct df_err *err)
{
    return df_json_put(df_json_object_at(status, "claimedBy"), err,
                       DF_TIME("repeatedAt", c->now_us));
}

static int set_hashes(cJSON *auth, const struct claim *c, struct df_err *err)
{
    if (df_json_set_str(auth, "step", c->step_hash, err) < 0 ||
        df_json_set_str(auth, "state", c->state_hash, err) < 0)
        return -1;
    return df_json_set_str(auth, "providers", c->providers_hash, err);
}

/* Is the step no longer of the host whose pod was verified? The offer to that pod was taken back,
 * and the step gets a Job of its own. */
static bool is_moved(const cJSON *task, const struct claim *c)
{
    const char *host = df_shared_pod_host(task);
    return (host || c->host) && !df_streq(host, c->host);
}

/* Has the step another object of the engine by now? The pod was verified by the one before, which
 * is gone. */
static bool is_made_again(const cJSON *task, const struct claim *c)
{
    return c->made && !df_streq(df_json_str(task, "status.engineRef.uid"), c->made);
}

/* Only the first claimId succeeds; its runner may repeat the claim. */
static int set_claim(cJSON *task, void *arg, struct df_err *err)
{
    const struct claim *c = arg;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *auth = status ? df_json_object_at(status, "auth") : NULL;
    bool holder = df_json_at(task, "status.claimedBy") != NULL;
    if (!auth)
        return df_fail_oom(err);
    if (!c->pod && df_step_check_token(task, "claim", c->token, err) < 0)
        return -1;
    if (df_task_is_final(task))
        return df_step_fail_over(err);
    if (holder && !is_holder(task, c))
        return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyClaimed",
                              "the step was claimed by another runner");
    if (!holder && (df_task_is_canceled(task) || is_moved(task, c)))
        return df_step_fail_over(err);
    if (!holder && is_made_again(task, c))
        return df_fail_reason(err, DF_ERR_RETRY, "Conflict",
                              "the step was started again while its claim was checked");
    if ((holder ? set_repeated(status, c, err) : set_claimed_by(task, c, err)) < 0)
        return -1;
    return set_hashes(auth, c, err);
}

static int set_failed(cJSON *task, void *arg, struct df_err *err)
{
    return df_task_is_final(task) ? 1 : df_outcome_fail(task, arg, df_real_us(), err);
}

/* Ends a step whose document cannot be made, for example because a secret does not exist. Its
 * runner gets StepOver. */
static int refuse_step(struct df_spawner *s, const char *uid, const struct df_err *why,
                       struct df_err *err)
{
    struct df_outcome_failure f = {.exit_code = 3, .reason = why->reason, .message = why->message};
    if (modify_task(s, uid, set_failed, &f, NULL, err) < 0)
        return -1;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StepOver", "%s", why->message);
}

/* A step waits this long for a source of secrets that is away, and shorter than its runner does. */
static int64_t source_retry_us(const struct df_spawner *s)
{
    return s->config->timeout_pending_s * 1000000 / 2;
}

/* When its document was first asked for: by the claim, or when the engine was to get it. */
static int64_t asked_since(const cJSON *task)
{
    const char *at = df_json_str(task, "status.claimedBy.at");
    int64_t since_us = df_real_us();
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(task, "status.timeline")) {
        if (!at && df_streq(df_json_str(entry, "name"), "created"))
            at = df_json_str(entry, "at");
    }
    return at && df_time_parse(at, &since_us, NULL) == 0 ? since_us : df_real_us();
}

/* True if the document can never be made, however often the runner repeats its claim. */
static bool is_hopeless(const struct df_spawner *s, const cJSON *task, const struct df_err *why)
{
    if (df_streq(why->reason, "SecretSourceUnavailable"))
        return df_real_us() - asked_since(task) > source_retry_us(s);
    return why->cls == DF_ERR_USER || df_streq(why->reason, "SecretUnreadable") ||
           df_streq(why->reason, "SecretSourceDenied") || df_streq(why->reason, "StateUnreadable");
}

/* What a step waits for when its document cannot be made. */
static struct df_wait_case document_of(const char *uid)
{
    return (struct df_wait_case){.kind = DF_KIND_TASK_ACTION, .uid = uid, .what = df_step_document};
}

/* why: NULL: it is made. */
static void tell_wait(struct df_spawner *s, const char *uid, int64_t began_us,
                      const struct df_err *why)
{
    const struct df_wait_case w = document_of(uid);
    if (why)
        df_wait_failed(s, &w, began_us, why);
    else
        df_wait_passed(s, &w);
}

/* A runner that asks again after seconds, though nothing has failed, got no answer: something that
 * its document is made of stays silent, and the request before this one still waits for it. */
static void report_unanswered_claim(struct df_spawner *s, const cJSON *task, const struct claim *c)
{
    const char *uid = df_json_str(task, "metadata.uid");
    const struct df_wait_case w = document_of(uid);
    int64_t since_us = asked_since(task);
    struct df_err why = {0};
    if (c->now_us - since_us < DF_WAIT_TOLD_MS * INT64_C(1000) ||
        df_memory_has_wait(&s->memory, &w))
        return;
    (void)df_fail(&why, DF_ERR_RETRY,
                  "its document is not made yet: the storage or a source of secrets stays silent");
    df_wait_failed(s, &w, since_us, &why);
}

static int answer_claim(struct df_spawner *s, const char *uid, struct claim *c, cJSON **ret,
                        struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    struct df_err why = {0};
    if (modify_task(s, uid, set_claim, c, &task, err) < 0)
        return -1;
    report_unanswered_claim(s, task, c);
    if (df_step_document(s, task, &c->tokens, ret, &why) == 0) {
        tell_wait(s, uid, c->now_us, NULL);
        return 0;
    }
    if (is_hopeless(s, task, &why))
        return refuse_step(s, uid, &why, err);
    tell_wait(s, uid, c->now_us, &why);
    return df_err_pass(err, &why);
}

static int make_tokens(struct df_spawner *s, const char *uid, struct claim *c, struct df_err *err)
{
    const char *id = df_json_str(c->body, "claimId");
    c->tokens.claim = c->token;
    if (df_step_make_token(s, uid, id, "step", c->tokens.step, c->step_hash, err) < 0 ||
        df_step_make_token(s, uid, id, "state", c->tokens.state, c->state_hash, err) < 0)
        return -1;
    return df_step_make_token(s, uid, id, "providers", c->tokens.providers, c->providers_hash, err);
}

static int claim(struct df_spawner *s, const char *uid, struct claim *c, cJSON **ret,
                 struct df_err *err)
{
    int result = make_tokens(s, uid, c, err) < 0 ? -1 : answer_claim(s, uid, c, ret, err);
    explicit_bzero(c->tokens.step, sizeof(c->tokens.step));
    explicit_bzero(c->tokens.state, sizeof(c->tokens.state));
    explicit_bzero(c->tokens.providers, sizeof(c->tokens.providers));
    return result;
}

/* ---- who may claim ---- */

static int find_claimable(struct df_spawner *s, const char *uid, const cJSON **ret,
                          struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    int64_t due_us;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &task, err) < 0 ||
        df_task_show_ref(s, &task, &due_us, err) < 0)
        return -1;
    if (df_task_is_workflow(task)) /* its pods may have a valid token, but there is no document */
        return df_fail(err, DF_ERR_NOT_FOUND, "taskaction %s has no runner",
                       df_json_str(task, "metadata.name"));
    *ret = DF_TAKE(task);
    return 0;
}

static bool shows_pod(const struct df_spawner *s, const cJSON *task, const char *token)
{
    return token && df_step_is_in_pod(s, task) && df_jwt_is(token);
}

static int check_pod_token(struct df_spawner *s, const cJSON *task, const char *token,
                           struct df_claim_pod *ret, struct df_err *err)
{
    const char *host = df_shared_pod_host(task);
    const char *id = host ? host : df_json_str(task, "metadata.uid");
    if (!s->claims)
        return df_fail(err, DF_ERR_DENIED, "this spawner accepts no tokens of pods");
    return df_claim_check(s->claims, id, df_json_at(task, "status.engineRef"), token, ret, err);
}

/* In a shared pod only the runner of the host gets the step: the pod that the offer names, and the
 * claimId with which that runner claimed the host. Code of the host's module may have read the
 * token in the pod; the claimId was never outside the runner. No module's code was ever in the pod
 * of a standby runner, which is not a step. */
static int check_host(struct df_spawner *s, const struct claim *c, struct df_err *err)
{
    DF_SHARED const cJSON *host = NULL;
    if (!c->host || df_standby_is(c->host))
        return 0;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, c->host, &host, err) < 0)
        return -1;
    if (is_holder(host, c))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "PodNotOfStep",
                          "the step was offered to the runner of step %s, and this is another one",
                          df_json_str(host, "metadata.name"));
}

static int check_pod(struct df_spawner *s, const cJSON *task, const struct df_claim_pod *claimant,
                     struct df_err *err)
{
    struct df_engine_step step;
    df_engine_step_of(s, task, &step);
    return df_engine_step_check_pod(s, df_json_str(task, "spec.engine"), &step, claimant, err);
}

static int claim_in_pod(struct df_spawner *s, const cJSON *task, struct claim *c, cJSON **ret,
                        struct df_err *err)
{
    struct df_claim_pod pod;
    const char *uid = df_json_str(task, "metadata.uid");
    if (check_pod_token(s, task, c->token, &pod, err) < 0 || check_pod(s, task, &pod, err) < 0)
        return -1;
    c->pod = &pod;
    c->host = df_shared_pod_host(task);
    c->made = df_json_str(task, "status.engineRef.uid");
    int result = check_host(s, c, err) < 0 ? -1 : claim(s, uid, c, ret, err);
    c->pod = NULL;
    c->host = c->made = NULL;
    return result;
}

int df_step_check_claim(struct df_spawner *s, const char *uid, const char *token,
                        struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    struct df_claim_pod pod;
    if (find_claimable(s, uid, &task, err) < 0)
        return -1;
    return shows_pod(s, task, token) ? check_pod_token(s, task, token, &pod, err)
                                     : df_step_check_token(task, "claim", token, err);
}

int df_step_claim(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                  cJSON **ret, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    struct claim c = {.token = token, .body = body, .now_us = df_real_us()};
    if (df_step_check_claim_id(body, err) < 0 || find_claimable(s, uid, &task, err) < 0)
        return -1;
    return shows_pod(s, task, token) ? claim_in_pod(s, task, &c, ret, err)
                                     : claim(s, uid, &c, ret, err);
}

/* ---- progress, result ---- */

struct report {
    const char *token;
    const cJSON *body;
    const cJSON *unrecorded; /* of a result: what may be missing from the state; or NULL */
    const struct df_engine_registry *engines;
};

static int set_progress(cJSON *task, void *arg, struct df_err *err)
{
    const struct report *r = arg;
    if (df_step_check_token(task, "step", r->token, err) < 0)
        return -1;
    if (df_task_is_final(task))
        return df_step_fail_over(err);
    return df_outcome_merge(task, r->body, df_real_us(), err);
}

int df_step_progress(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                     struct df_err *err)
{
    struct report r = {.token = token, .body = body};
    return modify_task(s, uid, set_progress, &r, NULL, err);
}

/* The runner repeats its result if the response was lost: the same result succeeds again. */
static int repeat_result(const cJSON *task, const cJSON *body, struct df_err *err)
{
    bool same = df_json_int(task, "status.exitCode", -1) == df_json_int(body, "exitCode", -2) &&
                df_streq(df_json_str(task, "status.reason"), df_json_str(body, "reason"));
    return same ? 1 : df_step_fail_over(err);
}

static int set_result(cJSON *task, void *arg, struct df_err *err)
{
    const struct report *r = arg;
    if (df_step_check_token(task, "step", r->token, err) < 0)
        return -1;
    if (df_task_is_final(task))
        return repeat_result(task, r->body, err);
    const struct df_engine *e = df_engine_find(r->engines, df_json_str(task, "spec.engine"));
    if (df_task_was_interrupted(task, r->body, e && !e->kind->runs_here))
        return df_outcome_interrupted(task, r->body, df_real_us(), err);
    if (df_outcome_unrecorded(task, r->unrecorded, err) < 0)
        return -1;
    return df_outcome_result(task, r->body, df_real_us(), err);
}

/* Whoever asked for the step does not know of its end, and no runner will tell it any more. */
static void warn_untold(const struct df_spawner *s, const cJSON *task, const cJSON *body)
{
    const char *why = df_json_str(body, "untold");
    if (why && !df_has_control(why))
        df_warn("step %s: %s was not told of its end: %.400s", df_json_str(task, "metadata.name"),
                s->upstream->name, why);
}

int df_step_result(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                   struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    DF_JSON cJSON *unrecorded = NULL, *explained = NULL, *ended = NULL;
    struct report r = {.token = token, .body = body, .engines = &s->engines};
    if (df_json_int(body, "exitCode", 0) != 0 && df_step_open(s, uid, token, &task, NULL) == 0) {
        /* tofu has ended before its runner reports */
        if (df_unrecorded_find(s, task, &unrecorded, err) < 0 ||
            df_lock_holder_explain(s, task, body, &explained, err) < 0 ||
            (!explained && df_wait_explain(s, task, body, &explained, err) < 0))
            return -1;
    }
    r.unrecorded = unrecorded;
    r.body = explained ? explained : body;
    if (modify_task(s, uid, set_result, &r, &ended, err) < 0)
        return -1;
    df_step_drop_errored_state(s, ended);
    warn_untold(s, ended, body);
    if (unrecorded)
        df_unrecorded_warn(df_json_str(task, "metadata.name"), unrecorded);
    return 0;
}

/* ---- the state of a step ---- */

int df_step_state_access(struct df_spawner *s, const char *uid, const char *password,
                         struct df_step_state_access *ret, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    struct df_step_state_access a = {0};
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &task, err) < 0 ||
        df_step_check_token(task, "state", password, err) < 0)
        return -1;
    const char *executor = df_json_str(task, "spec.executorRef.uid");
    const char *run = df_json_str(task, "spec.runRef.name");
    (void)snprintf(a.executor_uid, sizeof(a.executor_uid), "%s", executor ? executor : "");
    (void)snprintf(a.run, sizeof(a.run), "%s", run ? run : "");
    a.may_lock = !df_json_bool(task, "spec.dryRun", false);
    a.may_write = df_recipe_step_of(task)->writes;
    a.is_unwanted = df_task_is_canceled(task) || df_task_is_final(task);
    a.gives_up = df_real_us() >= df_task_gives_up_at(task);
    *ret = a;
    return 0;
}
