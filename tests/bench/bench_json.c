/*
 * What the JSON of one watch event costs, against cJSON's own reader and writer, which check less:
 * a list of pods as the API server sends it, managed fields and all.
 */
#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/json/json.h"

enum { PODS = 200, ROUNDS = 9 };

/* %1$d: a number that makes it another pod. */
static const char head[] =
    "{\"metadata\":{\"name\":\"hello-%1$d-plan-x7k2p\",\"generateName\":\"hello-%1$d-plan-\","
    "\"namespace\":\"infra\",\"uid\":\"6f7d0e1c-5c1b-4a55-9d0e-%1$012d\",\"resourceVersion\":"
    "\"%1$d\",\"generation\":1,\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"labels\":{"
    "\"app.kubernetes.io/managed-by\":\"dayfly\",\"batch.kubernetes.io/controller-uid\":"
    "\"0a1b2c3d-5c1b-4a55-9d0e-%1$012d\",\"batch.kubernetes.io/job-name\":\"hello-%1$d-plan\","
    "\"dayfly.dev/executor\":\"hello\",\"dayfly.dev/run\":\"hello-%1$d\"},\"ownerReferences\":[{"
    "\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"hello-%1$d-plan\",\"uid\":"
    "\"0a1b2c3d-5c1b-4a55-9d0e-%1$012d\",\"controller\":true,\"blockOwnerDeletion\":true}],"
    "\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
    "\"apiVersion\":\"v1\",\"time\":\"2026-01-02T03:04:05Z\",\"fieldsType\":\"FieldsV1\","
    "\"fieldsV1\":{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},"
    "\"f:app.kubernetes.io/managed-by\":{},\"f:batch.kubernetes.io/controller-uid\":{},"
    "\"f:batch.kubernetes.io/job-name\":{},\"f:dayfly.dev/executor\":{},\"f:dayfly.dev/run\":{}},"
    "\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"0a1b2c3d\\\"}\":{}}},\"f:spec\":{"
    "\"f:containers\":{\"k:{\\\"name\\\":\\\"runner\\\"}\":{\".\":{},\"f:image\":{},"
    "\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{\".\":{},\"f:limits\":{},"
    "\"f:requests\":{}},\"f:securityContext\":{\".\":{},\"f:runAsNonRoot\":{}},"
    "\"f:terminationMessagePath\":{},\"f:volumeMounts\":{}}},\"f:dnsPolicy\":{},"
    "\"f:restartPolicy\":{},\"f:terminationGracePeriodSeconds\":{},\"f:volumes\":{}}}}]},";
static const char tail[] =
    "\"spec\":{\"volumes\":[{\"name\":\"step\",\"projected\":{\"sources\":[{"
    "\"serviceAccountToken\":{\"audience\":\"dayfly\",\"expirationSeconds\":3600,\"path\":"
    "\"token\"}}],\"defaultMode\":420}},{\"name\":\"work\",\"emptyDir\":{\"sizeLimit\":\"2Gi\"}}],"
    "\"containers\":[{\"name\":\"runner\",\"image\":\"registry.example/dayfly-runner:1.0.0\","
    "\"args\":[\"step\",\"--server\",\"https://dayfly.infra.svc:8030\"],\"env\":[{\"name\":"
    "\"DAYFLY_STEP\",\"value\":\"hello-%1$d-plan\"},{\"name\":\"TMPDIR\",\"value\":\"/tmp\"}],"
    "\"resources\":{\"limits\":{\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"100m\",\"memory\":"
    "\"256Mi\"}},\"volumeMounts\":[{\"name\":\"step\",\"readOnly\":true,\"mountPath\":"
    "\"/var/run/dayfly\"},{\"name\":\"work\",\"mountPath\":\"/data\"}],\"terminationMessagePath\":"
    "\"/dev/termination-log\",\"imagePullPolicy\":\"IfNotPresent\",\"securityContext\":{"
    "\"capabilities\":{\"drop\":[\"ALL\"]},\"runAsNonRoot\":true,\"readOnlyRootFilesystem\":true}}]"
    ","
    "\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":930,\"nodeName\":\"node-1\"},"
    "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
    "\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-01-02T03:04:06Z\"},{\"type\":"
    "\"PodScheduled\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":"
    "\"2026-01-02T03:04:05Z\"}],\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.1.0.7\",\"startTime\":"
    "\"2026-01-02T03:04:05Z\",\"containerStatuses\":[{\"name\":\"runner\",\"state\":{\"running\":{"
    "\"startedAt\":\"2026-01-02T03:04:06Z\"}},\"ready\":true,\"restartCount\":0,\"started\":true}],"
    "\"qosClass\":\"Burstable\"}}";

static void make_list(struct df_buf *text)
{
    df_buf_adds(text, "{\"kind\":\"PodList\",\"items\":[");
    for (int i = 0; i < PODS; i++) {
        df_buf_adds(text, i ? "," : "");
        df_buf_addf(text, head, i);
        df_buf_addf(text, tail, i);
    }
    df_buf_adds(text, "]}");
}

static cJSON *read_ours(const struct df_buf *text)
{
    cJSON *tree = NULL;
    return df_json_parse(text->data, text->len, &tree, NULL) < 0 ? NULL : tree;
}

static cJSON *read_theirs(const struct df_buf *text)
{
    return cJSON_ParseWithLength(text->data, text->len);
}

static double mb_per_s(size_t bytes, int64_t us)
{
    return us > 0 ? (double)bytes / (double)us : 0;
}

/* The best of some rounds; the tree's end is part of it, as in life. */
static double reading(const struct df_buf *text, cJSON *(*read)(const struct df_buf *text))
{
    int64_t best_us = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start_us = df_mono_us();
        cJSON *tree = read(text);
        if (!tree)
            abort();
        cJSON_Delete(tree);
        int64_t us = df_mono_us() - start_us;
        best_us = us < best_us ? us : best_us;
    }
    return mb_per_s(text->len, best_us);
}

static double writing(const cJSON *tree, size_t bytes, char *(*print)(const cJSON *tree))
{
    int64_t best_us = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start_us = df_mono_us();
        char *text = print(tree);
        if (!text)
            abort();
        free(text);
        int64_t us = df_mono_us() - start_us;
        best_us = us < best_us ? us : best_us;
    }
    return mb_per_s(bytes, best_us);
}

static void row(const char *what, double ours, double theirs)
{
    printf("%s\t%.0f MB/s (cJSON's own: %.0f)\t>= 0.75 of cJSON's own\t%s\n", what, ours, theirs,
           ours >= 0.75 * theirs ? "ok" : "NOT");
}

int main(void)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(16 * DF_MIB);
    make_list(&text);
    DF_JSON cJSON *tree = read_ours(&text);
    if (!tree)
        abort();
    row("reading a list of pods, every rule of JSON checked", reading(&text, read_ours),
        reading(&text, read_theirs));
    row("writing it", writing(tree, text.len, df_json_print),
        writing(tree, text.len, cJSON_PrintUnformatted));
    return 0;
}
