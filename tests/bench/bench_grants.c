/*
 * bench_grants - what one check of grants costs: whom a request is from, and what they may do with
 * an executor. A person with five groups, 100 grants to three users and three groups each: a third
 * of them by label, a third by names, a third on all executors. Prints a row for tests/bench/run:
 * name, value, limit, ok or NOT.
 */
#include <time.h>

#include "spawner/model/grant.h"

enum { GRANTS = 100, ROUNDS = 2000, EXECUTORS = 50, LIMIT_US = 20 };

static cJSON *parsed(const char *text)
{
    cJSON *json = cJSON_Parse(text);
    if (!json)
        abort();
    return json;
}

/* Where grant i is. */
static const char *where(int i, char out[128])
{
    if (i % 3 == 0)
        (void)snprintf(out, 128, "{\"matchLabels\":{\"team\":\"t%d\",\"env\":\"prod\"}}", i % 10);
    else if (i % 3 == 1)
        (void)snprintf(out, 128, "{\"names\":[\"net-%d\",\"db\",\"web\",\"lan\"]}", i % 10);
    return i % 3 == 2 ? "{\"all\":true}" : out;
}

static cJSON *make_grants(void)
{
    cJSON *grants = cJSON_CreateObject();
    for (int i = 0; i < GRANTS; i++) {
        char on[128], text[1024], name[16];
        (void)snprintf(name, sizeof(name), "g%d", i);
        (void)snprintf(text, sizeof(text),
                       "{\"to\":{\"users\":[\"https://id.example.com#%d\",\"a\",\"b\"],\"groups\":"
                       "[\"team-%d\",\"c\",\"d\"]},\"on\":%s,\"verbs\":[\"view\",\"plan\"]}",
                       i % 20, i % 10, where(i, on));
        cJSON_AddItemToObject(grants, name, parsed(text));
    }
    struct df_err err;
    if (df_grants_check(grants, &err) < 0)
        abort();
    return grants;
}

/* Of the processor: others work on it, too. */
static double cpu_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Microseconds of one check, the mean of many: of the caller, and on one executor. */
static double check(const cJSON *grants, const struct df_grantee *who, cJSON *const *executors)
{
    df_verbs all = 0;
    double start_us = cpu_us();
    for (int i = 0; i < ROUNDS; i++) {
        const cJSON *doc = executors[i % EXECUTORS];
        struct df_granted g;
        if (df_grants_of(grants, who, &g, NULL) < 0)
            abort();
        all |= df_granted_on(&g, who->user, df_json_str(doc, "metadata.name"), doc);
        df_granted_free(&g);
    }
    double us = cpu_us() - start_us;
    if (!all)
        abort();
    return us / ROUNDS;
}

static int compare(const void *a, const void *b)
{
    const double *l = a, *r = b;
    return (*l > *r) - (*l < *r);
}

int main(void)
{
    cJSON *executors[EXECUTORS];
    double times[50];
    for (int i = 0; i < EXECUTORS; i++) {
        char text[256];
        (void)snprintf(text, sizeof(text),
                       "{\"metadata\":{\"name\":\"net-%d\",\"labels\":{\"team\":\"t%d\",\"env\":"
                       "\"prod\"}},\"status\":{\"creator\":\"boss\"}}",
                       i, i % 10);
        executors[i] = parsed(text);
    }
    DF_JSON cJSON *grants = make_grants();
    DF_JSON cJSON *groups = parsed("[\"team-1\",\"team-2\",\"everybody\",\"x\",\"y\"]");
    const struct df_grantee who = {.user = "https://id.example.com#7", .groups = groups};
    for (size_t i = 0; i < DF_ARRAY_SIZE(times); i++)
        times[i] = check(grants, &who, executors);
    qsort(times, DF_ARRAY_SIZE(times), sizeof(*times), compare);
    double median = times[DF_ARRAY_SIZE(times) / 2];
    printf("a check of a person with 100 grants: the caller's, and on an executor\t%.1f us (n=%d)\t"
           "<= %d us\t%s\n",
           median, ROUNDS * (int)DF_ARRAY_SIZE(times), LIMIT_US, median <= LIMIT_US ? "ok" : "NOT");
    for (int i = 0; i < EXECUTORS; i++)
        cJSON_Delete(executors[i]);
    return 0;
}
