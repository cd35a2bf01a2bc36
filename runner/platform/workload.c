#include "runner/platform/workload.h"

bool df_workload_is_kind(const char *kind)
{
    static const char *const kinds[] = {"Deployment", "StatefulSet", "DaemonSet", "Job"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(kinds); i++) {
        if (df_streq(kind, kinds[i]))
            return true;
    }
    return false;
}

static bool is_job_ready(const cJSON *job, char *why, size_t size)
{
    int64_t wanted = df_json_int(job, "spec.completions", 1);
    int64_t succeeded = df_json_int(job, "status.succeeded", 0);
    (void)snprintf(why, size, "%lld of %lld completions", (long long)succeeded, (long long)wanted);
    return succeeded >= wanted;
}

/* Of a DaemonSet the nodes say how many there shall be. */
static int64_t wanted_replicas(const cJSON *live)
{
    bool of_nodes = df_streq(df_json_str(live, "kind"), "DaemonSet");
    return of_nodes ? df_json_int(live, "status.desiredNumberScheduled", 0)
                    : df_json_int(live, "spec.replicas", 1);
}

static int64_t updated_replicas(const cJSON *live)
{
    bool of_nodes = df_streq(df_json_str(live, "kind"), "DaemonSet");
    return df_json_int(live, of_nodes ? "status.updatedNumberScheduled" : "status.updatedReplicas",
                       0);
}

/* How many of them shall be of the newest generation: a person may hold some back. */
static int64_t wanted_updates(const cJSON *live, int64_t wanted)
{
    int64_t partition = df_json_int(live, "spec.updateStrategy.rollingUpdate.partition", 0);
    if (df_streq(df_json_str(live, "spec.updateStrategy.type"), "OnDelete"))
        return 0;
    return wanted - partition;
}

/* A Deployment keeps its old pods until the new ones are ready: an image that cannot be pulled
 * shows in pods that are not available, not in the number of those that are ready. */
bool df_workload_is_ready(const cJSON *live, int64_t min, char *why, size_t size)
{
    if (df_streq(df_json_str(live, "kind"), "Job"))
        return is_job_ready(live, why, size);
    bool of_nodes = df_streq(df_json_str(live, "kind"), "DaemonSet");
    int64_t wanted = wanted_replicas(live), updated = updated_replicas(live);
    int64_t ready = df_json_int(live, of_nodes ? "status.numberReady" : "status.readyReplicas", 0);
    int64_t missing =
        df_json_int(live, of_nodes ? "status.numberUnavailable" : "status.unavailableReplicas", 0);
    int n = snprintf(why, size,
                     "%lld of %lld replicas are ready, %lld are of the newest generation, %lld are "
                     "not available",
                     (long long)ready, (long long)wanted, (long long)updated, (long long)missing);
    if (min >= 0 && n > 0 && (size_t)n < size)
        (void)snprintf(why + n, size - (size_t)n, "; minReadyReplicas of health.yaml is %lld",
                       (long long)min);
    if (df_json_int(live, "status.observedGeneration", 0) <
        df_json_int(live, "metadata.generation", 0))
        return false;
    if (min >= 0)
        return ready >= min;
    return ready >= wanted && !missing && updated >= wanted_updates(live, wanted);
}

static void add_expression(struct df_buf *to, const cJSON *expression)
{
    const char *key = df_json_str(expression, "key"), *op = df_json_str(expression, "operator");
    const cJSON *value, *values = df_json_at(expression, "values");
    if (df_streq(op, "Exists") || df_streq(op, "DoesNotExist")) {
        (void)df_buf_addf(to, "%s%s", df_streq(op, "Exists") ? "" : "!", key);
        return;
    }
    (void)df_buf_addf(to, "%s %s (", key, df_streq(op, "In") ? "in" : "notin");
    cJSON_ArrayForEach (value, values)
        (void)df_buf_addf(to, "%s%s", value == values->child ? "" : ",",
                          cJSON_IsString(value) ? value->valuestring : "");
    (void)df_buf_addc(to, ')');
}

int df_workload_selector(const cJSON *live, struct df_buf *to, struct df_err *err)
{
    const cJSON *one;
    cJSON_ArrayForEach (one, df_json_at(live, "spec.selector.matchLabels"))
        (void)df_buf_addf(to, "%s%s=%s", to->len ? "," : "", one->string,
                          cJSON_IsString(one) ? one->valuestring : "");
    cJSON_ArrayForEach (one, df_json_at(live, "spec.selector.matchExpressions")) {
        (void)df_buf_adds(to, to->len ? "," : "");
        add_expression(to, one);
    }
    return df_buf_check(to, err);
}
