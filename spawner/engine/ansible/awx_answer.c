#include "spawner/engine/ansible/awx_answer.h"

#include "common/json/json.h"
#include "common/redact/redact.h"
#include "spawner/engine/ansible/awx_client.h"

/* "passwords_needed_to_start": ["ssh_password"] and the like. */
static void add_needs(const cJSON *answer, const char *key, const char *words, struct df_buf *to)
{
    const cJSON *need, *needs = df_json_at(answer, key);
    cJSON_ArrayForEach (need, needs)
        (void)df_buf_addf(to, "%s%s", need == needs->child ? words : ", ",
                          cJSON_IsString(need) ? need->valuestring : "?");
    if (needs)
        (void)df_buf_adds(to, "; ");
}

/* AWX says {"detail": "Not found."} of what does not exist, and where it was asked for text prints
 * the same as Python does. Any other 404 is of what stands before it. */
static bool says_not_found(const struct df_http_response *res)
{
    static const char as_text[] = "{'detail': ";
    DF_JSON cJSON *answer = NULL;
    const char *body = df_buf_str(&res->body);
    if (res->status != 404)
        return false;
    (void)!df_json_parse_nul(body, res->body.len, &answer, NULL);
    return df_json_str(answer, "detail") || df_starts_with(body, as_text);
}

/* What a person can do about it, where AWX's own words do not say it. */
static void add_way_out(const struct df_http_response *res, struct df_buf *to)
{
    DF_JSON cJSON *answer = NULL;
    if (res->status >= 300 && res->status < 400)
        (void)df_buf_adds(to, "it is redirected, and ansible.apiUrl must lead to AWX itself; ");
    if (res->status == 401)
        (void)df_buf_adds(to, "AWX refuses the token of ansible.tokenSecretRef; ");
    if (res->status == 404 && !says_not_found(res))
        (void)df_buf_adds(to, "this is not AWX's answer: it is away, or ansible.apiUrl does not "
                              "lead to it; ");
    (void)!df_json_parse(df_buf_str(&res->body), res->body.len, &answer, NULL);
    add_needs(answer, "passwords_needed_to_start",
              "the credentials of the job template must store the passwords that it needs to "
              "start: ",
              to);
    add_needs(answer, "variables_needed_to_start",
              "the parameters must have what the survey of the job template needs to start: ", to);
}

/* AWX may repeat what it was sent. The text is cut after it is masked, so that no half of a secret
 * remains. */
static int mask(const struct df_strs *secrets, const char *text, char to[DF_AWX_BODY])
{
    struct df_redact_set *set = NULL;
    DF_BUF struct df_buf masked = DF_BUF_INIT(2 * DF_LIMIT_HTTP_RESPONSE);
    int result = df_redact_set_new(secrets, &set, NULL);
    if (result == 0)
        result = df_redact_string(set, text, &masked, NULL);
    df_redact_set_free(set);
    df_copy(to, DF_AWX_BODY, df_buf_str(&masked));
    for (; *to; to++)
        *to = (unsigned char)*to < 0x20 || *to == 0x7f ? ' ' : *to;
    return result;
}

/* 408, 425 and 499 are of a proxy that did not wait for AWX, which may have done what was asked; so
 * it may where the success is another one than is known. */
static enum df_err_class class_of(const struct df_http_response *res)
{
    switch (res->status) {
    case 404:
        return says_not_found(res) ? DF_ERR_NOT_FOUND : DF_ERR_RETRY;
    case 408:
    case 425:
    case 429:
    case 499:
        return DF_ERR_RETRY;
    default:
        return res->status >= 500 ? DF_ERR_RETRY : res->status < 300 ? DF_ERR_SYSTEM : DF_ERR_USER;
    }
}

int df_awx_fail_status(const char *what, const struct df_http_response *res,
                       const struct df_strs *secrets, struct df_err *err)
{
    char shown[DF_AWX_BODY];
    DF_BUF struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_HTTP_RESPONSE);
    add_way_out(res, &text);
    (void)df_buf_adds(&text, df_buf_str(&res->body));
    if (df_buf_check(&text, NULL) < 0 || mask(secrets, df_buf_str(&text), shown) < 0)
        df_copy(shown, sizeof(shown), "(its answer cannot be shown)");
    (void)df_fail(err, class_of(res), "AWX %s returned %d: %s", what, res->status, shown);
    if (err && err->cls == DF_ERR_RETRY && res->retry_after_s > 0)
        err->retry_after_s =
            res->retry_after_s < DF_AWX_WAIT_S ? res->retry_after_s : DF_AWX_WAIT_S;
    return res->status == 401 || res->status == 403 ? df_err_reason(err, "NotAllowed") : -1;
}
