/* Payloads of Terrakube for unit tests. */
#ifndef TESTS_UNIT_TERRAKUBE_WORDS_H
#define TESTS_UNIT_TERRAKUBE_WORDS_H

#include "common/terrakube/payload.h"

/* 32 bytes of no secret, in base64. */
#define TERRAKUBE_SECRET "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

/* A plan with these members besides (a JSON object). */
static inline struct df_terrakube_payload terrakube_payload(const char *members)
{
    static const char common[] =
        "{\"type\":\"terraformPlan\",\"jobId\":\"7\",\"tofu\":true,"
        "\"organizationId\":\"11111111-1111-1111-1111-111111111111\","
        "\"workspaceId\":\"22222222-2222-2222-2222-222222222222\","
        "\"stepId\":\"33333333-3333-3333-3333-333333333333\",\"terraformVersion\":\"1.12.6\","
        "\"environmentVariables\":{},\"variables\":{},\"source\":\"https://git.example/a.git\","
        "\"branch\":\"main\",\"folder\":\"/\",\"vcsType\":\"PUBLIC\"}";
    DF_JSON cJSON *document = NULL;
    DF_JSON cJSON *more = NULL;
    struct df_terrakube_payload p = {0};
    struct df_err err = {0};
    assert_int_equal(df_json_parse(common, strlen(common), &document, NULL), 0);
    assert_int_equal(df_json_parse(members, strlen(members), &more, NULL), 0);
    assert_int_equal(df_json_merge_patch(&document, more, NULL), 0);
    DF_FREE char *text = df_json_print(document);
    if (df_terrakube_payload_read(text, strlen(text), &p, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return p;
}

#endif
