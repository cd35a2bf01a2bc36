/*
 * bench_store_kube - the store in a cluster with many live TaskActions: how long until all is
 * known, what it costs, and what it holds in memory.
 *
 *   bench_store_kube NAMESPACE [COUNT]
 *
 * Makes what is missing of COUNT (10000) steps in a namespace of KUBECONFIG's cluster, which has
 * the resources of rbac/crds; then opens the store in a new process. Leaves them there.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/http/http.h"
#include "common/kube/kube.h"
#include "spawner/store/store.h"

enum { WRITERS = 8 };

static struct df_kube *connect_to(void)
{
    struct df_err err = {0};
    struct df_kube_config config = {0};
    struct df_kube *kube = NULL;
    if (df_http_global_init(&err) < 0 ||
        df_kube_config_load(&(struct df_kube_config_options){0}, &config, &err) < 0 ||
        df_kube_new(&config, &kube, &err) < 0)
        DF_BUG("%s", err.message);
    return kube;
}

static struct df_store *open_in(struct df_kube *kube, const char *name_space)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    if (df_store_kube_open(kube, DF_API_GROUP, name_space, &s, &err) < 0)
        DF_BUG("%s", err.message);
    return s;
}

/* A step as the control loop writes it, while it runs. */
static const char step[] =
    "{\"metadata\":{\"name\":\"net-%d-plan\",\"labels\":{\"dayfly.dev/run\":\"net-%d\","
    "\"dayfly.dev/executor\":\"net\",\"dayfly.dev/unfinished\":\"true\",\"dayfly.dev/live\":"
    "\"true\"}},\"spec\":{\"action\":\"plan\",\"engine\":\"job\",\"runRef\":{\"name\":\"net-%d\"},"
    "\"executorRef\":{\"name\":\"net\",\"uid\":\"d6920c8e-88a7-4797-aaba-11d3cd044071\"},"
    "\"targetResource\":\"executor/net\",\"timeoutSeconds\":3600,\"graceSeconds\":900,"
    "\"pendingSeconds\":120,\"runtime\":{\"name\":\"opentofu\",\"version\":\"1.12.6\"},\"source\":{"
    "\"url\":\"https://git.example/infrastructure/network.git\",\"kind\":\"git\",\"branch\":"
    "\"main\",\"folder\":\"envs/prod\",\"secretRef\":{\"name\":\"git\"}},\"variables\":{\"region\":"
    "\"eu-west-1\",\"zones\":[\"a\",\"b\",\"c\"],\"size\":3},\"secrets\":[{\"name\":\"app\"}],"
    "\"integrations\":[{\"provider\":\"aws\",\"secretRef\":{\"name\":\"aws\"}}],\"storage\":{"
    "\"type\":\"managed\"},\"placement\":{\"nodeSelector\":{\"disk\":\"ssd\"}}},\"status\":{"
    "\"auth\":{\"claim\":\"90b8b1559fe7d4c92296d636d4f1789ef1367d0558077f3575f4d7c98d6da74c\","
    "\"step\":\"052d7edf589019fcd0a72d3e5a05aaf7ae27d099cb16032da9ce7c5a13f71b1a\"},\"claimedBy\":{"
    "\"at\":\"2026-11-21T20:16:51.016691Z\",\"claimId\":\"abd97c3511b165f97c38f6fbc4ea8a0d\","
    "\"podName\":\"net-prod-3-plan-abcde\",\"podUid\":\"d6920c8e-88a7-4797-aaba-11d3cd044071\"},"
    "\"conditions\":[{\"type\":\"Progressing\",\"status\":\"True\",\"reason\":\"Executing\","
    "\"lastTransitionTime\":\"2026-11-21T20:16:50.808058Z\",\"observedGeneration\":1},{\"type\":"
    "\"Succeeded\",\"status\":\"False\",\"reason\":\"Executing\",\"lastTransitionTime\":"
    "\"2026-11-21T20:16:50.808058Z\",\"observedGeneration\":1},{\"type\":\"Failed\",\"status\":"
    "\"False\",\"reason\":\"Executing\",\"lastTransitionTime\":\"2026-11-21T20:16:50.808058Z\","
    "\"observedGeneration\":1}],\"engineRef\":{\"kind\":\"Job\",\"name\":\"net-%d-plan\",\"uid\":"
    "\"98449802-3bcd-469a-b79d-f1f7b757fcf3\",\"namespace\":\"dayfly\"},\"timeline\":[{\"name\":"
    "\"queued\",\"at\":\"2026-11-21T20:16:50.808058Z\"},{\"name\":\"created\",\"at\":"
    "\"2026-11-21T20:16:50.925415Z\"},{\"name\":\"claimed\",\"at\":\"2026-11-21T20:16:51.016691Z\"}"
    ","
    "{\"name\":\"started\",\"at\":\"2026-11-21T20:16:51.008411Z\"},{\"name\":\"sourced\",\"at\":"
    "\"2026-11-21T20:16:51.152261Z\"},{\"name\":\"initialized\",\"at\":"
    "\"2026-11-21T20:16:51.301054Z\"}]}}";

static cJSON *step_document(int n)
{
    char text[sizeof(step) + 64];
    cJSON *doc = NULL;
    (void)snprintf(text, sizeof(text), step, n, n, n, n);
    if (df_json_parse(text, strlen(text), &doc, NULL) < 0)
        DF_BUG("the step is no JSON");
    return doc;
}

struct share {
    struct df_store *store;
    int first, count;
};

static void *fill_share(void *arg)
{
    const struct share *s = arg;
    for (int i = s->first; i < s->count; i += WRITERS) {
        DF_JSON cJSON *doc = step_document(i);
        struct df_err err = {0};
        if (df_store_create(s->store, DF_KIND_TASK_ACTION, doc, NULL, &err) < 0 &&
            !df_streq(err.reason, "AlreadyExists"))
            DF_BUG("%s", err.message);
    }
    return NULL;
}

static void fill(const char *name_space, int count)
{
    struct df_kube *kube = connect_to();
    struct df_store *store = open_in(kube, name_space);
    pthread_t threads[WRITERS];
    struct share shares[WRITERS];
    int64_t began = df_mono_ms(), there = 0;
    (void)df_store_count(store, DF_KIND_TASK_ACTION, "dayfly.dev/live=true", &there, NULL);
    for (int i = 0; i < WRITERS; i++) {
        shares[i] = (struct share){store, i, count};
        if (pthread_create(&threads[i], NULL, fill_share, &shares[i]) != 0)
            DF_BUG("no thread");
    }
    for (int i = 0; i < WRITERS; i++)
        (void)pthread_join(threads[i], NULL);
    int64_t took = df_mono_ms() - began;
    if (count > there)
        (void)printf("created: %lld a second\n", (long long)((count - there) * 1000 / (took + 1)));
    df_store_close(store);
    df_kube_free(kube);
}

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2)
        return 0;
    (void)fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int64_t cpu_us(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

static void measure(const char *name_space)
{
    struct df_kube *kube = connect_to();
    long before_kib = resident_kib();
    int64_t began = df_mono_ms(), cpu = cpu_us(), live = 0;
    struct df_store *store = open_in(kube, name_space);
    int64_t took = df_mono_ms() - began, spent = cpu_us() - cpu;
    struct rusage u;
    (void)df_store_count(store, DF_KIND_TASK_ACTION, "dayfly.dev/live=true", &live, NULL);
    (void)getrusage(RUSAGE_SELF, &u);
    (void)printf("live TaskActions: %lld\ncaught up after: %lld ms\ncpu: %lld us each\n"
                 "resident: %ld KiB, %ld before, %ld at most\n",
                 (long long)live, (long long)took, (long long)(live ? spent / live : 0),
                 resident_kib(), before_kib, u.ru_maxrss);
    df_store_close(store);
    df_kube_free(kube);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench_store_kube NAMESPACE [COUNT]\n");
        return 2;
    }
    fill(argv[1], argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10000);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        measure(argv[1]);
        exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
