/* What doctor decides without a cluster: clocks, what a probe reported, which nodes take a pod, and
 * that its page names every check. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "spawner/doctor/checks.h"
#include "spawner/doctor/doctor.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/kube_words.h"

#define S INT64_C(1000000)
#define UID "4b1d7a52-0000-4000-8000-000000000001"

static void a_clock_is_off_only_outside_of_the_two_looks_at_ours(void **state)
{
    (void)state;
    static const struct {
        int64_t from_us, at_us, slack_us, to_us, skew_us;
    } cases[] = {
        {10 * S, 10 * S, 0, 12 * S, 0},
        {10 * S, 12 * S, 0, 12 * S, 0},
        {10 * S, 9 * S, 1 * S, 12 * S, 0}, /* a second that is cut off */
        {10 * S, 9 * S, 0, 12 * S, -1 * S},
        {10 * S, 40 * S, 1 * S, 12 * S, 28 * S},
        {100 * S, 39 * S, 1 * S, 101 * S, -60 * S},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_int_equal(
            df_clock_skew(cases[i].from_us, cases[i].at_us, cases[i].slack_us, cases[i].to_us),
            cases[i].skew_us);
}

static struct df_doctor_context context(cJSON *findings)
{
    struct df_doctor_context p = {.findings = findings, .check = "x", .uid = UID};
    p.url = strdup("https://dayfly.infra.svc:8030");
    p.issuer = strdup("https://issuer.example");
    p.probed_to_us = 60 * S;
    return p;
}

static void free_context(struct df_doctor_context *p)
{
    cJSON_Delete(p->probe);
    free(p->config.tool_index_opentofu);
    free(p->url);
    free(p->issuer);
}

static void skew_is_reported_from_five_seconds_on_and_fails_from_thirty(void **state)
{
    (void)state;
    static const struct {
        int64_t skew_us;
        const char *level, *words;
    } cases[] = {
        {0, "ok", "agree"},
        {-4 * S, "ok", "agree"},
        {5 * S, "warn", "5 s ahead of"},
        {-29 * S, "warn", "29 s behind"},
        {30 * S, "fail", "30 s ahead of"},
        {-3600 * S, "fail", "3600 s behind"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *findings = cJSON_CreateArray();
        DF_CLEANUP(free_context) struct df_doctor_context p = context(findings);
        df_finding_skew(&p, "a clock", cases[i].skew_us);
        assert_string_equal(df_json_str(findings->child, "level"), cases[i].level);
        assert_non_null(strstr(df_json_str(findings->child, "message"), cases[i].words));
    }
}

typedef int check_fn(struct df_doctor_context *p, struct df_err *err);

/* level NULL: no finding. */
struct report_case {
    check_fn *check;
    const char *probe, *level, *words;
};

static void assert_reported(const struct report_case *t)
{
    DF_JSON cJSON *findings = cJSON_CreateArray();
    DF_CLEANUP(free_context) struct df_doctor_context p = context(findings);
    struct df_err err = {0};
    assert_int_equal(df_json_parse(t->probe, strlen(t->probe), &p.probe, NULL), 0);
    bool failed = t->check(&p, &err) < 0;
    const cJSON *last = cJSON_GetArrayItem(findings, cJSON_GetArraySize(findings) - 1);
    const char *level = failed ? "fail" : df_json_str(last, "level");
    const char *message = failed ? err.message : df_json_str(last, "message");
    if (!t->level) {
        assert_null(level);
        return;
    }
    assert_non_null(level);
    assert_string_equal(level, t->level);
    if (!strstr(message, t->words))
        fail_msg("%s: %s", t->probe, message);
}

static void the_report_of_a_probe_decides_each_check(void **state)
{
    (void)state;
    static const struct report_case cases[] = {
        {df_check_image, "{\"version\":\"" DF_VERSION "\"}", "ok", DF_VERSION},
        {df_check_image, "{\"version\":\"9.9\"}", "fail", "version 9.9 and this is " DF_VERSION},
        {df_check_image, "{}", "fail", "version  and"},
        {df_check_dns, "{\"name\":{\"host\":\"a.b\",\"addresses\":[\"10.0.0.1\"]}}", "ok",
         "a.b at 10.0.0.1"},
        {df_check_dns, "{\"name\":{\"host\":\"a.b\",\"error\":\"no such name\"}}", "fail",
         "host a.b (no such name)"},
        {df_check_reach, "{\"server\":{\"status\":200}}", "ok", "https://dayfly.infra.svc:8030"},
        {df_check_reach, "{\"server\":{\"status\":404}}", "fail", "status 404"},
        {df_check_reach,
         "{\"server\":{\"status\":200},\"leader\":{\"url\":\"https://10.0.0.7\",\"status\":200}}",
         "ok", "pods reach the replica that leads at https://10.0.0.7"},
        {df_check_reach,
         "{\"server\":{\"status\":200},\"leader\":{\"url\":\"https://10.0.0.7\",\"status\":503}}",
         "warn", "https://10.0.0.7/livez, the replica that leads, answers pods with status 503"},
        {df_check_reach,
         "{\"server\":{\"status\":200},\"leader\":{\"url\":\"https://"
         "10.0.0.7\",\"class\":\"retry\","
         "\"error\":\"timed out\"}}",
         "warn", "cannot reach the replica that leads at https://10.0.0.7 (timed out)"},
        {df_check_reach, "{\"server\":{\"class\":\"retry\",\"error\":\"refused\"}}", "fail",
         "NetworkPolicy"},
        {df_check_reach, "{\"server\":{\"class\":\"denied\",\"error\":\"bad\"}}", "fail",
         "do not trust"},
        {df_check_reach, "{\"name\":{\"error\":\"x\"},\"server\":{\"error\":\"y\"}}", NULL, NULL},
        {df_check_pod_clock, "{\"time\":\"1970-01-01T00:00:30Z\"}", "ok", "agree"},
        {df_check_pod_clock, "{\"time\":\"1970-01-01T01:01:00Z\"}", "fail", "3600 s ahead of"},
        {df_check_pod_clock, "{}", "fail", "clock"},
        {df_check_pod_token,
         "{\"token\":{\"issuer\":\"https://issuer.example\",\"audience\":[\"dayfly/" UID "\"]}}",
         "ok", "token"},
        {df_check_pod_token,
         "{\"token\":{\"issuer\":\"https://other.example\",\"audience\":[\"dayfly/" UID "\"]}}",
         "fail", "https://other.example"},
        {df_check_pod_token,
         "{\"token\":{\"issuer\":\"https://issuer.example\",\"audience\":[\"api\"]}}", "fail",
         "audience dayfly/" UID},
        {df_check_pod_token, "{\"token\":{\"error\":\"no such file\"}}", "fail", "no such file"},
        {df_check_work, "{\"work\":{\"path\":\"/work\",\"free\":1073741824}}", "ok", "1024 MiB"},
        {df_check_work, "{\"work\":{\"path\":\"/work\",\"free\":1048576}}", "warn", "1 MiB left"},
        {df_check_work, "{\"work\":{\"path\":\"/work\",\"error\":\"read-only\"}}", "fail",
         "cannot write to /work of its pod (read-only)"},
        {df_check_tool, "{\"tool\":{\"name\":\"opentofu\",\"version\":\"1.2.3\"}}", "ok",
         "opentofu 1.2.3"},
        {df_check_tool, "{\"tool\":{\"name\":\"opentofu\",\"error\":\"none\"}}", "fail", "none"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_reported(&cases[i]);
}

static void an_image_without_a_tool_is_fine_where_steps_download_one(void **state)
{
    (void)state;
    static const char probe[] = "{\"tool\":{\"error\":\"none\"}}";
    DF_JSON cJSON *findings = cJSON_CreateArray();
    DF_CLEANUP(free_context) struct df_doctor_context p = context(findings);
    p.config.tool_index_opentofu = strdup("https://mirror.example");
    assert_int_equal(df_json_parse(probe, strlen(probe), &p.probe, NULL), 0);
    assert_int_equal(df_check_tool(&p, NULL), 0);
    assert_string_equal(df_json_str(findings->child, "level"), "ok");
}

struct lease_case {
    const char *lease;          /* NULL: there is none */
    int64_t age_s;              /* of its renewal */
    const char *leader, *words; /* NULL: none */
};

static void give_lease(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    const struct lease_case *t = s->arg;
    char at[DF_TIME_LEN];
    (void)r;
    if (!t->lease) {
        kube_say(a, 403, "", "{\"message\":\"leases is forbidden\"}");
        return;
    }
    DF_JSON cJSON *lease = json(t->lease);
    cJSON *spec = df_json_object_at(lease, "spec");
    (void)df_time_format(df_real_us() - t->age_s * S, at);
    assert_int_equal(df_json_set_str(spec, "renewTime", at, NULL), 0);
    assert_int_equal(df_json_add_num(spec, "leaseDurationSeconds", 100, NULL), 0);
    DF_FREE char *body = df_json_print(lease);
    kube_say(a, 200, "", body);
}

#define LEASE(address) "{'metadata':{'annotations':{'dayfly.dev/address':'" address "'}}}"

static void the_leader_is_known_or_it_is_said_why_not(void **state)
{
    (void)state;
    static const struct lease_case rows[] = {
        {LEASE("https://10.0.0.7"), 1, "https://10.0.0.7", NULL},
        {LEASE("https://10.0.0.7"), 101, NULL,
         "the Lease dayfly in the namespace infra is not renewed"},
        {LEASE("http://10.0.0.7"), 1, NULL, NULL},
        {LEASE(""), 101, NULL, NULL},
        {NULL, 0, NULL, "the Lease dayfly in the namespace infra cannot be read: "},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct kube_server server;
        struct lease_case row = rows[i];
        kube_start(&server, give_lease, &row);
        DF_JSON cJSON *findings = cJSON_CreateArray();
        struct df_doctor_context p = {
            .findings = findings, .check = "start", .service_ns = "infra"};
        char name[] = "dayfly";
        DF_FREE char *leader = NULL;
        p.config.elects = true;
        p.config.election_lease = name;
        p.kube = kube_client(&server);
        assert_int_equal(df_find_leader(&p, &leader, NULL), 0);
        assert_true(df_streq(leader, row.leader) || (!leader && !row.leader));
        assert_int_equal(cJSON_GetArraySize(findings), row.words ? 1 : 0);
        if (row.words) {
            assert_string_equal(df_json_str(findings->child, "level"), "warn");
            assert_non_null(strstr(df_json_str(findings->child, "message"), row.words));
        }
        df_kube_free(p.kube);
        kube_stop(&server);
    }
}

static void list_nodes(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    const char *nodes = s->arg;
    DF_JSON cJSON *items = json(nodes);
    DF_FREE char *text = df_json_print(items);
    DF_FREE char *body = df_strf("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":%s}", text);
    (void)r;
    kube_say(a, 200, "", body);
}

#define NODE(spec) "{'metadata':{'name':'node-1'},'spec':{" spec "}}"
#define TAINTED(taint) NODE("'taints':[{" taint "}]")
#define BATCH "'key':'pool','value':'batch','effect':'NoSchedule'"

static void a_node_accepts_a_pod_that_tolerates_its_taints(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *tolerations, *level, *words;
    } rows[] = {
        {"[]", "[]", "fail", "no node accepts pods"},
        {"[" NODE("") "]", "[]", "ok", ": 1"},
        {"[" NODE("'unschedulable':true") "]", "[]", "fail", "no node accepts pods"},
        {"[" TAINTED(BATCH) "]", "[]", "fail", "pool=batch:NoSchedule on node-1"},
        {"[" TAINTED(BATCH) "]", "", "fail", "pool=batch:NoSchedule on node-1"},
        {"[" TAINTED(BATCH) "," NODE("") "]", "[]", "ok", ": 1"},
        {"[" TAINTED(BATCH) "]", "[{" BATCH "}]", "ok", ": 1"},
        {"[" TAINTED(BATCH) "]", "[{'key':'pool','value':'batch'}]", "ok", ": 1"},
        {"[" TAINTED(BATCH) "]", "[{'key':'pool','operator':'Exists'}]", "ok", ": 1"},
        {"[" TAINTED(BATCH) "]", "[{'operator':'Exists'}]", "ok", ": 1"},
        {"[" TAINTED(BATCH) "]", "[{'key':'pool','value':'web'}]", "fail", "pool=batch"},
        {"[" TAINTED(BATCH) "]", "[{'key':'disk','operator':'Exists'}]", "fail", "pool=batch"},
        {"[" TAINTED(BATCH) "]", "[{'operator':'Exists','effect':'NoExecute'}]", "fail",
         "pool=batch"},
        {"[" TAINTED("'key':'slow','effect':'PreferNoSchedule'") "]", "[]", "ok", ": 1"},
        {"[" TAINTED("'key':'down','effect':'NoExecute'") "]", "[]", "fail", "down:NoExecute"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct kube_server server;
        kube_start(&server, list_nodes, (void *)(uintptr_t)rows[i].nodes);
        DF_JSON cJSON *findings = cJSON_CreateArray();
        DF_FREE char *job =
            df_strf("{'classes.batch':{'spec':{'template':{'spec':{%s%s}}}}}",
                    *rows[i].tolerations ? "'tolerations':" : "", rows[i].tolerations);
        struct df_doctor_context p = {.findings = findings, .check = "nodes", .jobs = json(job)};
        p.kube = kube_client(&server);
        struct df_err err = {0};
        if (df_check_nodes(&p, &err) < 0)
            fail_msg("%s", err.message);
        assert_int_equal(cJSON_GetArraySize(findings), 1);
        const char *message = df_json_str(findings->child, "message");
        if (!df_streq(df_json_str(findings->child, "level"), rows[i].level) ||
            !strstr(message, rows[i].words) || !strstr(message, "classes.batch"))
            fail_msg("row %zu: %s", i, message);
        df_kube_free(p.kube);
        cJSON_Delete(p.jobs);
        kube_stop(&server);
    }
}

static void the_page_of_doctor_names_every_check(void **state)
{
    (void)state;
    DF_BUF struct df_buf page = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    assert_int_equal(df_fs_read("docs/doctor.md", &page, NULL), 0);
    for (size_t i = 0; df_doctor_check(i); i++) {
        DF_FREE char *row = df_strf("| `%s` |", df_doctor_check(i));
        if (!strstr(df_buf_str(&page), row))
            fail_msg("docs/doctor.md has no row for %s", df_doctor_check(i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_is_off_only_outside_of_the_two_looks_at_ours),
        cmocka_unit_test(skew_is_reported_from_five_seconds_on_and_fails_from_thirty),
        cmocka_unit_test(the_report_of_a_probe_decides_each_check),
        cmocka_unit_test(an_image_without_a_tool_is_fine_where_steps_download_one),
        cmocka_unit_test(the_leader_is_known_or_it_is_said_why_not),
        cmocka_unit_test(a_node_accepts_a_pod_that_tolerates_its_taints),
        cmocka_unit_test(the_page_of_doctor_names_every_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
