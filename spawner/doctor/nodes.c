/*
 * nodes.c - checks that there are nodes for the pods of steps: nodes with the labels of their
 * nodeSelector and without a taint that they do not tolerate. The spawner's own account may not
 * list nodes; then the probe shows it.
 */
#include "spawner/doctor/checks.h"

static const struct df_kube_resource nodes = {"", "v1", "nodes"};

struct tally {
    const cJSON *tolerations;
    size_t open, fit; /* schedulable nodes, and those of them that these pods tolerate */
    char taint[300];  /* a taint that these pods do not tolerate */
};

/* ---- taints ---- */

static bool is_equal(const cJSON *a, const cJSON *b, const char *member)
{
    const char *of_a = df_json_str(a, member), *of_b = df_json_str(b, member);
    return df_streq(of_a ? of_a : "", of_b ? of_b : "");
}

/* The rule of Kubernetes: a toleration without a key (operator Exists) or without an effect applies
 * to every one. */
static bool tolerates(const cJSON *toleration, const cJSON *taint)
{
    bool any_value = df_streq(df_json_str(toleration, "operator"), "Exists");
    bool any_key = any_value && df_str_empty(df_json_str(toleration, "key"));
    bool any_effect = df_str_empty(df_json_str(toleration, "effect"));
    return (any_effect || is_equal(toleration, taint, "effect")) &&
           (any_key || is_equal(toleration, taint, "key")) &&
           (any_value || is_equal(toleration, taint, "value"));
}

static bool is_tolerated(const cJSON *taint, const cJSON *tolerations)
{
    const cJSON *t;
    bool is_preference = df_streq(df_json_str(taint, "effect"), "PreferNoSchedule");
    cJSON_ArrayForEach (t, tolerations)
        if (tolerates(t, taint))
            return true;
    return is_preference;
}

/* ---- nodes ---- */

static int count_node(void *arg, const cJSON *node, struct df_err *err)
{
    struct tally *t = arg;
    const cJSON *taint;
    (void)err;
    if (df_json_bool(df_json_at(node, "spec"), "unschedulable", false))
        return 0;
    t->open++;
    cJSON_ArrayForEach (taint, df_json_at(node, "spec.taints")) {
        if (is_tolerated(taint, t->tolerations))
            continue;
        const char *value = df_json_str(taint, "value");
        (void)snprintf(t->taint, sizeof(t->taint), "%s%s%s:%s on %s", df_json_str(taint, "key"),
                       df_str_empty(value) ? "" : "=", value ? value : "",
                       df_json_str(taint, "effect"), df_kube_name(node));
        return 0;
    }
    t->fit++;
    return 0;
}

/* Appends the labels as a selector: "a=b,c=d". */
static int selector_of(const cJSON *labels, struct df_buf *to, struct df_err *err)
{
    for (const cJSON *l = labels ? labels->child : NULL; l; l = l->next)
        (void)df_buf_addf(to, "%s%s=%s", to->len ? "," : "", l->string,
                          cJSON_IsString(l) ? l->valuestring : "");
    return df_buf_check(to, err);
}

/* If only some steps need such nodes, an autoscaler may create them on demand, so their absence is
 * a warning. Nodes for all steps must exist now. */
static void report(struct df_doctor_context *p, const char *of, const char *labels,
                   const struct tally *t)
{
    bool is_for_all = df_streq(of, p->jobs->child->string);
    const char *with = *labels ? " with the labels " : "";
    if (t->fit)
        df_finding(p, DF_LEVEL_OK, "nodes%s%s that accept the pods of %s: %zu", with, labels, of,
                   t->fit);
    else if (t->open)
        df_finding(p, DF_LEVEL_FAIL,
                   "no node%s%s accepts the pods of %s: they do not tolerate the taint %s: add a "
                   "toleration there, or remove the taint",
                   with, labels, of, t->taint);
    else
        df_finding(p, is_for_all ? DF_LEVEL_FAIL : DF_LEVEL_WARN,
                   "no node%s%s accepts pods: correct the nodeSelector of %s, or label a node%s",
                   with, labels, of, is_for_all ? "" : "; unless an autoscaler creates such nodes");
}

static int check_pod(struct df_doctor_context *p, const char *of, const cJSON *pod,
                     const char *labels, struct df_err *err)
{
    struct tally t = {.tolerations = df_json_at(pod, "tolerations")};
    const struct df_kube_at at = {.resource = &nodes};
    const struct df_kube_sink sink = {.item = count_node, .arg = &t};
    const struct df_kube_select select = {.labels = *labels ? labels : NULL};
    struct df_err why = {0};
    if (df_kube_list(p->kube, &at, &select, 0, &sink, &why) == 0)
        report(p, of, labels, &t);
    if (why.cls == DF_ERR_NONE || why.cls == DF_ERR_DENIED)
        return 0;
    return df_err_pass(err, &why);
}

/* Checks pods with the same labels and tolerations only once. */
int df_check_nodes(struct df_doctor_context *p, struct df_err *err)
{
    DF_STRS struct df_strs checked = {0};
    const cJSON *job;
    cJSON_ArrayForEach (job, p->jobs) {
        const cJSON *pod = df_json_at(job, "spec.template.spec");
        DF_BUF struct df_buf labels = DF_BUF_INIT(DF_LIMIT_URL);
        const cJSON *tolerations = df_json_at(pod, "tolerations");
        DF_FREE char *tolerated = tolerations ? df_json_print(tolerations) : strdup("");
        if (selector_of(df_json_at(pod, "nodeSelector"), &labels, err) < 0)
            return -1;
        DF_FREE char *key = tolerated ? df_strf("%s %s", df_buf_str(&labels), tolerated) : NULL;
        if (df_check_alloc(key, err) < 0 ||
            (df_strs_add_new(&checked, key) &&
             check_pod(p, job->string, pod, df_buf_str(&labels), err) < 0))
            return -1;
    }
    return df_strs_check(&checked, err);
}
