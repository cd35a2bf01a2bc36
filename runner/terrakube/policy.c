/*
 * What opa says becomes violations; exemptions take some of them away, the level of the policy says
 * what the rest does. Then all are told: to people, and to the API.
 */
#include "runner/terrakube/policy.h"

#include <strings.h>

#include "common/base/clock.h"
#include "common/redact/tree.h"
#include "runner/terrakube/opa.h"

/* How strict a policy is. A word that we do not know is the strictest. */
enum level { ADVISORY, SOFT, HARD };

static enum level level_of(const char *word)
{
    if (word && strcasecmp(word, "ADVISORY") == 0)
        return ADVISORY;
    return word && strcasecmp(word, "SOFT_MANDATORY") == 0 ? SOFT : HARD;
}

static const char *const level_names[] = {"ADVISORY", "SOFT_MANDATORY", "HARD_MANDATORY"};

/* The result of one policy, in the form that the API reads. */
struct result {
    const cJSON *policy;
    const char *name;
    enum level level;
    cJSON *violations, *exempted; /* arrays; owned until they are in the document */
    int hard, soft, warnings;
};

static void result_free(struct result *r)
{
    cJSON_Delete(r->violations);
    cJSON_Delete(r->exempted);
}

static const char *text(const cJSON *object, const char *name)
{
    const char *s = df_json_str(object, name);
    return df_str_empty(s) ? NULL : s;
}

static const char *either(const cJSON *item, const char *a, const char *b, const char *otherwise)
{
    const char *s = text(item, a);
    s = s ? s : text(item, b);
    return s ? s : otherwise;
}

/* ---- violations ---- */

static int add_violation(struct result *r, const char *rule, const char *address,
                         const char *message, const char *status, struct df_err *err)
{
    cJSON *v = cJSON_CreateObject();
    if (df_json_append(r->violations, v, err) < 0)
        return -1;
    return df_json_put(v, err, DF_STR("ruleId", rule), DF_STR("address", address),
                       DF_STR("message", message), DF_STR("status", status));
}

/* A text, or an object with msg, rule_id and resource. */
static int take_item(struct result *r, const cJSON *item, const char *status, struct df_err *err)
{
    if (cJSON_IsString(item))
        return add_violation(r, "policy_rule", "global", item->valuestring, status, err);
    DF_FREE char *whole = df_json_print(item);
    if (!whole)
        return df_fail_oom(err);
    return add_violation(r, either(item, "rule_id", "ruleId", "policy_rule"),
                         either(item, "resource", "address", "resource"),
                         either(item, "msg", "message", whole), status, err);
}

static int take_rule(struct result *r, const cJSON *value, const char *status, struct df_err *err)
{
    const cJSON *item;
    if (!value || cJSON_IsNull(value) || cJSON_IsFalse(value))
        return 0;
    if (!cJSON_IsArray(value))
        return take_item(r, value, status, err);
    cJSON_ArrayForEach (item, value) {
        if (take_item(r, item, status, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- exemptions ---- */

/* Milliseconds since 1970, whole, or RFC 3339; one that cannot be read is over. */
static bool is_in_force(const cJSON *exemption)
{
    const cJSON *expires = df_json_at(exemption, "expiresAt");
    int64_t us = 0;
    if (!expires || cJSON_IsNull(expires))
        return true;
    if (cJSON_IsNumber(expires))
        us = df_json_int(exemption, "expiresAt", 0) * 1000;
    else if (!cJSON_IsString(expires) || df_time_parse(expires->valuestring, &us, NULL) < 0)
        return false;
    return us > df_real_us();
}

static const cJSON *find_exemption(const cJSON *exemptions, const char *policy, const char *rule)
{
    const cJSON *e;
    cJSON_ArrayForEach (e, exemptions) {
        if (df_streq(text(e, "policySetId"), policy) && df_streq(text(e, "ruleId"), rule) &&
            is_in_force(e))
            return e;
    }
    return NULL;
}

static int exempt(struct result *r, cJSON *violation, const cJSON *exemption, struct df_err *err)
{
    static const char *const names[] = {"ticketReference", "justification", "expiresAt"};
    cJSON *v = cJSON_DetachItemViaPointer(r->violations, violation);
    if (df_json_append(r->exempted, v, err) < 0 ||
        df_json_set_str(v, "status", "EXEMPTED", err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        const cJSON *from = df_json_at(exemption, names[i]);
        if (from && df_json_set(v, names[i], cJSON_Duplicate(from, true), err) < 0)
            return -1;
    }
    return 0;
}

static int apply_exemptions(struct result *r, const cJSON *exemptions, struct df_err *err)
{
    cJSON *next = NULL;
    for (cJSON *v = r->violations->child; v; v = next) {
        next = v->next;
        const cJSON *e = find_exemption(exemptions, text(r->policy, "policyId"), text(v, "ruleId"));
        if (e && exempt(r, v, e, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- one policy ---- */

static int count(struct result *r, struct df_err *err)
{
    cJSON *v;
    cJSON_ArrayForEach (v, r->violations) {
        bool warns = df_streq(text(v, "status"), "WARNING");
        if (r->level == ADVISORY && !warns && df_json_set_str(v, "status", "WARNING", err) < 0)
            return -1;
        if (warns || r->level == ADVISORY)
            r->warnings++;
        else if (r->level == SOFT)
            r->soft++;
        else
            r->hard++;
    }
    return 0;
}

static void show(struct df_context *c, const struct result *r)
{
    const cJSON *v;
    (void)df_output_note(
        c->output, "dayfly: policy %s (%s): %d hard, %d soft, %d warnings, %d exempted", r->name,
        level_names[r->level], r->hard, r->soft, r->warnings, cJSON_GetArraySize(r->exempted));
    cJSON_ArrayForEach (v, r->violations) {
        (void)df_output_note(c->output, "  [%s] %s on %s: %s",
                             df_streq(text(v, "status"), "WARNING") ? "WARN"
                             : r->level == SOFT                     ? "SOFT_MANDATORY"
                                                                    : "DENY",
                             text(v, "ruleId"), text(v, "address"), text(v, "message"));
    }
    cJSON_ArrayForEach (v, r->exempted) {
        (void)df_output_note(c->output, "  [EXEMPTED] %s on %s: %s", text(v, "ruleId"),
                             text(v, "address"), text(v, "ticketReference"));
    }
}

/* What cannot be evaluated denies, whatever the level. */
static int fail_closed(struct result *r, const struct df_err *why, struct df_err *err)
{
    r->hard = 1;
    return add_violation(r, "opa_process_error", r->name, why->message, "FAILED", err);
}

static int evaluate(struct df_context *c, const struct df_terrakube_policies *q, size_t number,
                    struct result *r, struct df_err *err)
{
    DF_JSON cJSON *value = NULL;
    struct df_err why = {0};
    r->violations = cJSON_CreateArray();
    r->exempted = cJSON_CreateArray();
    if (!r->violations || !r->exempted)
        return df_fail_oom(err);
    if (df_opa_evaluate(c, q, r->policy, number, &value, &why) < 0)
        return df_stopped(df_stop_flag(c->stop)) ? df_err_pass(err, &why)
                                                 : fail_closed(r, &why, err);
    if (take_rule(r, cJSON_GetObjectItemCaseSensitive(value, "deny"), "FAILED", err) < 0 ||
        take_rule(r, cJSON_GetObjectItemCaseSensitive(value, "soft_mandatory"), "FAILED", err) <
            0 ||
        take_rule(r, cJSON_GetObjectItemCaseSensitive(value, "warn"), "WARNING", err) < 0 ||
        apply_exemptions(r, q->payload->exemptions, err) < 0)
        return -1;
    return count(r, err);
}

/* ---- all of them ---- */

static const char *status_of(int hard, int soft, int warnings)
{
    return hard ? "FAILED" : soft ? "WAITING_APPROVAL" : warnings ? "WARNING" : "PASSED";
}

static int add_counts(cJSON *to, int passed, int hard, int soft, int warnings, struct df_err *err)
{
    return df_json_put(to, err, DF_STR("status", status_of(hard, soft, warnings)),
                       DF_NUM("passedRules", passed), DF_NUM("warningRules", warnings),
                       DF_NUM("softMandatoryViolations", soft),
                       DF_NUM("hardMandatoryViolations", hard));
}

/* What the policy would do at the level that it is tried with. */
static int add_shadow(cJSON *to, const struct result *r, struct df_err *err)
{
    const char *word = text(r->policy, "shadowEnforcementLevel");
    int n = r->hard + r->soft;
    if (!word)
        return 0;
    if (df_json_add_str(to, "shadowEnforcementLevel", word, err) < 0)
        return -1;
    return level_of(word) == HARD   ? df_json_add_num(to, "shadowHardViolations", n, err)
           : level_of(word) == SOFT ? df_json_add_num(to, "shadowSoftViolations", n, err)
                                    : 0;
}

static int add_result(cJSON *results, struct result *r, struct df_err *err)
{
    cJSON *one = cJSON_CreateObject();
    bool passed = !r->hard && !r->soft && !r->warnings;
    if (df_json_append(results, one, err) < 0 ||
        df_json_put(one, err, DF_STR("policySetId", text(r->policy, "policyId")),
                    DF_STR("policySetName", r->name),
                    DF_STR("enforcementLevel", level_names[r->level])) < 0 ||
        add_counts(one, passed, r->hard, r->soft, r->warnings, err) < 0 ||
        add_shadow(one, r, err) < 0)
        return -1;
    return df_json_put(one, err, DF_ITEM("violations", DF_TAKE(r->violations)),
                       DF_ITEM("exemptedViolations", DF_TAKE(r->exempted)));
}

static int check_one(struct df_context *c, const struct df_terrakube_policies *q,
                     const cJSON *policy, size_t number, cJSON *results,
                     struct df_terrakube_verdict *v, struct df_err *err)
{
    DF_CLEANUP(result_free)
    struct result r = {.policy = policy,
                       .name = either(policy, "policyName", "policyId", "(without a name)"),
                       .level = level_of(text(policy, "enforcementLevel"))};
    if (evaluate(c, q, number, &r, err) < 0)
        return -1;
    show(c, &r);
    v->hard += r.hard;
    v->soft += r.soft;
    v->warnings += r.warnings;
    v->exempted += cJSON_GetArraySize(r.exempted);
    return add_result(results, &r, err);
}

static int check_all(struct df_context *c, const struct df_terrakube_policies *q, cJSON *document,
                     struct df_terrakube_verdict *v, struct df_err *err)
{
    const cJSON *policy;
    size_t n = 0;
    DF_JSON cJSON *results = cJSON_CreateArray();
    if (!results)
        return df_fail_oom(err);
    cJSON_ArrayForEach (policy, q->payload->policies) {
        if (check_one(c, q, policy, n++, results, v, err) < 0)
            return -1;
    }
    if (df_json_put(document, err, DF_STR("jobId", q->payload->job),
                    DF_STR("stepId", q->payload->step), DF_NUM("totalPolicies", n)) < 0 ||
        add_counts(document, v->hard + v->soft + v->warnings == 0 ? (int)n : 0, v->hard, v->soft,
                   v->warnings, err) < 0)
        return -1;
    return df_json_add(document, "results", DF_TAKE(results), err);
}

/* Everything but the status, which the API decides by: no value of a variable may hide it. */
static int redact_violations(const struct df_context *c, const cJSON *violations,
                             struct df_err *err)
{
    const cJSON *violation;
    cJSON *v;
    bool changed = false;
    cJSON_ArrayForEach (violation, violations) {
        cJSON_ArrayForEach (v, violation) {
            if (!df_streq(v->string, "status") &&
                df_redact_tree(df_masks_set(c->masks), v, &changed, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* Rules put values of the plan into what they say. */
static int redact(const struct df_context *c, const cJSON *document, struct df_err *err)
{
    const cJSON *result;
    cJSON_ArrayForEach (result, df_json_at(document, "results")) {
        if (redact_violations(c, df_json_at(result, "violations"), err) < 0 ||
            redact_violations(c, df_json_at(result, "exemptedViolations"), err) < 0)
            return -1;
    }
    return 0;
}

/* The API asks for an override of soft violations by what it gets here: it must have got it. */
static int tell(const struct df_context *c, const struct df_terrakube_policies *q,
                const cJSON *document, struct df_err *err)
{
    DF_JSON cJSON *context = NULL;
    if (redact(c, document, err) < 0)
        return -1;
    if (q->context)
        df_terrakube_context_add(q->context, "policyEvaluation", document);
    if (df_terrakube_api_context(q->api, &context, err) < 0)
        return -1;
    if (!cJSON_IsObject(context)) {
        cJSON_Delete(context);
        context = cJSON_CreateObject();
    }
    if (df_json_set(context, "policyEvaluation", cJSON_Duplicate(document, true), err) < 0)
        return -1;
    return df_terrakube_api_put_context(q->api, context, err);
}

int df_terrakube_policies_check(struct df_context *c, const struct df_terrakube_policies *q,
                                struct df_terrakube_verdict *ret, struct df_err *err)
{
    *ret = (struct df_terrakube_verdict){0};
    DF_JSON cJSON *document = cJSON_CreateObject();
    if (!document)
        return df_fail_oom(err);
    if (!q->payload->policies)
        return 0;
    if (check_all(c, q, document, ret, err) < 0)
        return df_err_reason(err, "PolicyFailed");
    struct df_err why = {0};
    int failed = tell(c, q, document, &why);
    if (ret->hard)
        return df_fail_reason(err, DF_ERR_DENIED, "PolicyFailed",
                              "%d violations of hard-mandatory policies: the log names them",
                              ret->hard);
    if (failed && ret->soft)
        return df_fail_reason(err, DF_ERR_DENIED, "PolicyFailed",
                              "%d violations of soft-mandatory policies, and the API did not take "
                              "them to ask for an override: %s",
                              ret->soft, why.message);
    return 0;
}
