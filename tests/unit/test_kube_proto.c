#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/kube/proto.h"
#include "spawner/engine/job/job_fields.h"
#include "tests/unit/proto_words.h"

#define BUF(name) DF_BUF struct df_buf name = DF_BUF_INIT(DF_MIB)

static void metadata(struct df_buf *to)
{
    BUF(owner);
    proto_text(to, 1, "net-1-plan");
    proto_text(to, 2, "");
    proto_text(to, 3, "build");
    proto_text(to, 5, "u-1");
    proto_text(to, 6, "4711");
    proto_number(to, 7, 3);
    proto_time(to, 8, 1790000000);
    proto_time(to, 9, 1790000060);
    proto_number(to, 10, 0);
    proto_entry(to, 11, "dayfly.dev/action", "plan");
    proto_entry(to, 11, "empty", "");
    proto_entry(to, 12, "note", "of nobody's concern");
    proto_text(&owner, 1, "Job");
    proto_text(&owner, 4, "u-0");
    proto_number(&owner, 6, 1);
    proto_message(to, 13, &owner);
}

#define METADATA                                                                                   \
    "\"metadata\":{\"name\":\"net-1-plan\",\"namespace\":\"build\",\"uid\":\"u-1\","               \
    "\"resourceVersion\":\"4711\",\"creationTimestamp\":\"2026-09-21T14:13:20Z\","                 \
    "\"deletionTimestamp\":\"2026-09-21T14:14:20Z\",\"deletionGracePeriodSeconds\":0,"             \
    "\"labels\":{\"dayfly.dev/action\":\"plan\",\"empty\":\"\"},"                                  \
    "\"ownerReferences\":[{\"uid\":\"u-0\",\"controller\":true}]}"

static void failed_job(struct df_buf *job)
{
    BUF(part);
    BUF(condition);
    metadata(&part);
    proto_message(job, 1, &part);
    proto_number(&part, 1, 1);
    proto_number(&part, 10, 0);
    proto_message(job, 2, &part);
    proto_text(&condition, 1, "Failed");
    proto_text(&condition, 2, "True");
    proto_time(&condition, 3, 0);
    proto_time(&condition, 4, 1790000060);
    proto_text(&condition, 5, "DeadlineExceeded");
    proto_text(&condition, 6, "too late");
    proto_message(&part, 1, &condition);
    proto_number(&part, 4, 0);
    proto_number(&part, 5, 0);
    proto_number(&part, 6, 1);
    proto_message(job, 3, &part);
}

#define FAILED_JOB                                                                                 \
    "{" METADATA ",\"spec\":{\"suspend\":false},\"status\":{\"conditions\":[{\"type\":\"Failed\"," \
    "\"status\":\"True\",\"lastTransitionTime\":\"2026-09-21T14:14:20Z\","                         \
    "\"reason\":\"DeadlineExceeded\",\"message\":\"too late\"}],\"failed\":1}}"

static void add_container(struct df_buf *status, uint32_t field, const char *name, int64_t code,
                          int64_t sig)
{
    BUF(container);
    BUF(state);
    BUF(end);
    proto_text(&container, 1, name);
    proto_number(&end, 1, code);
    proto_number(&end, 2, sig);
    proto_text(&end, 3, sig ? "OOMKilled" : "Completed");
    proto_time(&end, 5, 0);
    proto_time(&end, 6, 1790000060);
    proto_message(&state, 3, &end);
    proto_message(&container, 2, &state);
    proto_message(&container, 3, &state); /* empty */
    proto_number(&container, 4, 0);
    proto_number(&container, 5, 0);
    proto_text(&container, 6, "image");
    proto_message(status, field, &container);
}

#define CONTAINER(name, end)                                                                       \
    "{\"name\":\"" name "\",\"state\":{\"terminated\":{" end                                       \
    ",\"finishedAt\":\"2026-09-21T14:14:20Z\"}},\"lastState\":{},\"ready\":false,"                 \
    "\"restartCount\":0}"

static void ended_pod(struct df_buf *pod)
{
    BUF(part);
    BUF(below);
    metadata(&part);
    proto_message(pod, 1, &part);
    proto_text(&below, 1, "runner");
    proto_message(&part, 2, &below);
    proto_text(&part, 10, "node1");
    proto_message(pod, 2, &part);
    proto_text(&part, 1, "Failed");
    proto_text(&part, 3, "");
    proto_text(&part, 4, "Evicted");
    add_container(&part, 8, "runner", 137, 9);
    add_container(&part, 10, "fetch", 0, 0);
    proto_message(pod, 3, &part);
}

#define ENDED_POD                                                                                  \
    "{" METADATA ",\"spec\":{\"containers\":[{\"name\":\"runner\"}],\"nodeName\":\"node1\"},"      \
    "\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"containerStatuses\":[" CONTAINER(   \
        "runner",                                                                                  \
        "\"exitCode\":137,\"signal\":9,\"reason\":\"OOMKilled\"") "],\"initContainerStatuses\":"   \
                                                                  "[" CONTAINER(                   \
                                                                      "fetch",                     \
                                                                      "\"exitCode\":0,"            \
                                                                      "\"reason\":"                \
                                                                      "\"Completed\"") "]}}"

static void must_read_as(const struct df_proto_field *fields, const struct df_buf *object,
                         const char *expected)
{
    DF_JSON cJSON *tree = NULL;
    struct df_err err = {0};
    if (df_proto_read_object(fields, object->data, object->len, &tree, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *text = df_json_print(tree);
    assert_string_equal(text, expected);
}

static void a_job_is_read_as_its_json_would_be(void **state)
{
    (void)state;
    BUF(job);
    BUF(object);
    failed_job(&job);
    proto_object(&object, "Job", &job);
    must_read_as(df_job_fields, &object, FAILED_JOB);
}

static void a_pod_is_read_as_its_json_would_be(void **state)
{
    (void)state;
    BUF(pod);
    BUF(object);
    ended_pod(&pod);
    proto_object(&object, "Pod", &pod);
    must_read_as(df_pod_fields, &object, ENDED_POD);
}

static void a_negative_number_is_one(void **state)
{
    (void)state;
    BUF(message);
    BUF(object);
    proto_number(&message, 6, -1);
    proto_object(&object, "Status", &message);
    must_read_as(df_proto_status, &object, "{\"code\":-1}");
}

static void what_no_table_names_is_passed_over_however_it_is_encoded(void **state)
{
    (void)state;
    BUF(message);
    BUF(object);
    proto_number(&message, 1000, -1);
    proto_varint(&message, 1001 << 3 | 1); /* eight bytes */
    (void)df_buf_add(&message, "12345678", 8);
    proto_varint(&message, 1002 << 3 | 5); /* four */
    (void)df_buf_add(&message, "1234", 4);
    proto_text(&message, 1003, "text");
    proto_text(&message, 3, "said");
    proto_object(&object, "Status", &message);
    must_read_as(df_proto_status, &object, "{\"message\":\"said\"}");
}

static void an_event_has_its_type_and_its_object(void **state)
{
    (void)state;
    static const struct {
        const char *type, *expected;
    } cases[] = {
        {"ADDED", "{\"type\":\"ADDED\",\"object\":" FAILED_JOB "}"},
        {"DELETED", "{\"type\":\"DELETED\",\"object\":" FAILED_JOB "}"},
        {"BOOKMARK", "{\"type\":\"BOOKMARK\",\"object\":" FAILED_JOB "}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        BUF(job);
        BUF(event);
        DF_JSON cJSON *tree = NULL;
        failed_job(&job);
        proto_event(&event, cases[i].type, "Job", &job);
        assert_int_equal(df_proto_read_event(df_job_fields, event.data, event.len, &tree, NULL), 0);
        DF_FREE char *text = df_json_print(tree);
        assert_string_equal(text, cases[i].expected);
    }
}

static void the_object_of_an_error_is_a_status(void **state)
{
    (void)state;
    BUF(status);
    BUF(part);
    BUF(cause);
    BUF(event);
    DF_JSON cJSON *tree = NULL;
    proto_text(&status, 3, "too old");
    proto_text(&status, 4, "Expired");
    proto_text(&cause, 2, "why");
    proto_text(&cause, 3, "where");
    proto_message(&part, 4, &cause);
    proto_number(&part, 5, 7);
    proto_message(&status, 5, &part);
    proto_number(&status, 6, 410);
    proto_event(&event, "ERROR", "Status", &status);
    assert_int_equal(df_proto_read_event(df_job_fields, event.data, event.len, &tree, NULL), 0);
    DF_FREE char *text = df_json_print(tree);
    assert_string_equal(text, "{\"type\":\"ERROR\",\"object\":{\"message\":\"too old\",\"reason\":"
                              "\"Expired\",\"details\":{\"causes\":[{\"message\":\"why\",\"field\":"
                              "\"where\"}],\"retryAfterSeconds\":7},\"code\":410}}");
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } messages[] = {
        {"\x1a", 1},                                              /* no length */
        {"\x1a\x05said", 6},                                      /* a length beyond the end */
        {"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* one beyond all bounds */
        {"\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* a number without an end */
        {"\x30", 1},                                              /* none at all */
        {"\x31"
         "1234567",
         8}, /* seven bytes of eight */
        {"\x35"
         "123",
         4},         /* three of four */
        {"\x33", 1}, /* groups were never of use */
        {"\x34", 1},
        {"\x36", 1}, /* no such encoding */
        {"\x37", 1},
        {"\x02\x01x", 3}, /* a field of number 0 */
        {"\x32\x03"
         "410",
         5},             /* a text where a number must be */
        {"\x18\x05", 2}, /* a number where a text must be */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(messages); i++) {
        BUF(message);
        BUF(object);
        cJSON *tree = NULL;
        struct df_err err = {0};
        (void)df_buf_add(&message, messages[i].bytes, messages[i].n);
        proto_object(&object, "Status", &message);
        if (df_proto_read_object(df_proto_status, object.data, object.len, &tree, &err) == 0)
            fail_msg("message %zu is taken", i);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_null(tree);
    }
}

static void a_time_beyond_all_years_is_refused(void **state)
{
    (void)state;
    BUF(message);
    BUF(part);
    BUF(object);
    cJSON *tree = NULL;
    proto_time(&part, 8, INT64_MAX);
    proto_message(&message, 1, &part);
    proto_object(&object, "Job", &message);
    assert_int_equal(df_proto_read_object(df_job_fields, object.data, object.len, &tree, NULL), -1);
}

static void an_object_without_its_envelope_is_refused(void **state)
{
    (void)state;
    static const char *const others[] = {"", "k8s", "{\"kind\":\"Status\"}"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++) {
        cJSON *tree = NULL;
        assert_false(df_proto_is_object(others[i], strlen(others[i])));
        assert_int_equal(
            df_proto_read_object(df_proto_status, others[i], strlen(others[i]), &tree, NULL), -1);
    }
}

static void an_event_cut_anywhere_is_refused_or_has_no_object(void **state)
{
    (void)state;
    BUF(pod);
    BUF(event);
    ended_pod(&pod);
    proto_event(&event, "ADDED", "Pod", &pod);
    for (size_t n = 0; n < event.len; n++) {
        DF_FREE char *exact = malloc(n ? n : 1); /* so that a sanitizer sees the end */
        cJSON *tree = NULL;
        assert_non_null(exact);
        memcpy(exact, event.data, n);
        assert_int_equal(df_proto_read_event(df_pod_fields, exact, n, &tree, NULL), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_read_as_its_json_would_be),
        cmocka_unit_test(a_pod_is_read_as_its_json_would_be),
        cmocka_unit_test(a_negative_number_is_one),
        cmocka_unit_test(what_no_table_names_is_passed_over_however_it_is_encoded),
        cmocka_unit_test(an_event_has_its_type_and_its_object),
        cmocka_unit_test(the_object_of_an_error_is_a_status),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(a_time_beyond_all_years_is_refused),
        cmocka_unit_test(an_object_without_its_envelope_is_refused),
        cmocka_unit_test(an_event_cut_anywhere_is_refused_or_has_no_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
