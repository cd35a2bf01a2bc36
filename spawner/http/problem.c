/*
 * problem.c - two tables (reason to status; status to title and default reason), then the code.
 * df_problem_status() looks up the status; df_problem_write() writes the document.
 */
#include "spawner/http/problem.h"

#include <errno.h>

#include "common/base/parse.h"

/* Reasons that have a status of their own. */
static const struct {
    const char *reason;
    int status;
} by_reason[] = {
    {"Unauthorized", 401},
    {"MethodNotAllowed", 405},
    {"StepOver", 410},
    {"PreconditionFailed", 412},
    /* Nothing is stored here any more: runners and tofu do not repeat a 412, as they do a 500. */
    {"StorageTakenOver", 412},
    {"UnsupportedMediaType", 415},
    {"IdempotencyKeyReused", 422},
    {"PlacementDenied", 403},
    {"StateLocked", 423},
    {"PreconditionRequired", 428},
    {"TooManyRequests", 429},
    {"MirrorFull", 507},
    /* A wrong plan fails with class DENIED, but the caller's rights are not the cause. */
    {"PlanCorrupt", 409},
    {"PlanOfOtherRun", 409},
    {"PlanExpired", 409},
    {"PlanUsed", 409},
    {"PlanMissing", 404},
    /* The configuration of the service is wrong, not what the caller asks for. */
    {"SecretSourceDenied", 500},
    /* Refused tokens of pods. */
    {"TokenTooLarge", 401},
    {"TokenMalformed", 401},
    {"TokenDuplicateClaim", 401},
    {"TokenAlgorithm", 401},
    {"TokenKeyUnknown", 401},
    {"TokenSignature", 401},
    {"TokenIssuer", 401},
    {"TokenAudience", 401},
    {"TokenExpired", 401},
    {"TokenNotYetValid", 401},
    {"TokenNotOfPod", 401},
    {"TokenNotOfAccount", 401},
    {"TokenNoUser", 401},
    {"TokenNamespace", 401},
    {"TokenServiceAccount", 401},
    {"PodNotOfStep", 401},
};

static const struct {
    int status;
    const char *title;
    const char *reason; /* used if the failure has no reason of its own */
} titles[] = {
    {400, "Bad request", "BadRequest"},
    {401, "Authentication needed", "Unauthorized"},
    {403, "Not allowed", "Forbidden"},
    {404, "Not found", "NotFound"},
    {405, "Method not allowed", "MethodNotAllowed"},
    {409, "Conflict", "Conflict"},
    {410, "Over", "Gone"},
    {412, "Precondition failed", "PreconditionFailed"},
    {413, "Too large", "TooLarge"},
    {415, "Unsupported media type", "UnsupportedMediaType"},
    {422, "Idempotency key reused", "IdempotencyKeyReused"},
    {423, "Locked", "Locked"},
    {428, "Precondition required", "PreconditionRequired"},
    {429, "Too many requests", "TooManyRequests"},
    {500, "Internal error", "InternalError"},
    {503, "Try again later", "Unavailable"},
    {507, "Out of space", "OutOfSpace"},
};

static int limit_status(const struct df_err *err)
{
    if (err->os_errno == ENOSPC || err->os_errno == EDQUOT)
        return 507;
    /* Descriptors and memory become free again, so a retry helps: 503. A fixed limit stays: 413. */
    return err->os_errno || df_streq(err->message, "out of memory") ? 503 : 413;
}

int df_problem_status(const struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(by_reason); i++)
        if (df_streq(err->reason, by_reason[i].reason))
            return by_reason[i].status;
    switch (err->cls) {
    case DF_ERR_USER:
        return 400;
    case DF_ERR_DENIED:
        /* An errno means that the spawner may not read its own file, which is not the caller's
         * fault. */
        return err->os_errno ? 500 : 403;
    case DF_ERR_NOT_FOUND:
        return 404;
    case DF_ERR_CONFLICT:
        return 409;
    case DF_ERR_RETRY:
        return 503;
    case DF_ERR_LIMIT:
        return limit_status(err);
    case DF_ERR_NONE:
    case DF_ERR_SYSTEM:
    case DF_ERR_BUG:
        return 500;
    }
    return 500;
}

static size_t title_index(int status)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(titles); i++)
        if (titles[i].status == status)
            return i;
    DF_BUG("status %d has no title", status);
}

/* A message may end inside a character or contain bytes that are not UTF-8, but the document must
 * be valid. */
static void make_utf8(char *s)
{
    size_t n = strlen(s);
    for (size_t cut = 0; cut < 4 && cut <= n; cut++) {
        if (df_is_utf8(s, n - cut)) {
            s[n - cut] = '\0';
            return;
        }
    }
    for (; *s; s++)
        if ((unsigned char)*s >= 0x80)
            *s = '?';
}

static int copy_members(cJSON *to, const cJSON *from, struct df_err *err)
{
    const cJSON *m;
    cJSON_ArrayForEach (m, from) {
        if (df_json_add(to, m->string, cJSON_Duplicate(m, true), err) < 0)
            return -1;
    }
    return 0;
}

int df_problem_write(const struct df_err *problem, const cJSON *extra, struct df_buf *out,
                     struct df_err *err)
{
    int status = df_problem_status(problem);
    size_t at = title_index(status);
    const char *reason = problem->reason[0] ? problem->reason : titles[at].reason;
    char detail[sizeof(problem->message)];
    memcpy(detail, problem->message, sizeof(detail));
    make_utf8(detail);
    DF_BUF struct df_buf type = DF_BUF_INIT(256);
    (void)df_buf_addf(&type, "https://dayfly.dev/problems/%s", reason);
    DF_JSON cJSON *doc = cJSON_CreateObject();
    if (df_buf_check(&type, err) < 0 ||
        df_json_put(doc, err, DF_STR("type", df_buf_str(&type)), DF_STR("title", titles[at].title),
                    DF_NUM("status", status), DF_STR("detail", detail)) < 0 ||
        copy_members(doc, extra, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(doc);
    if (!text || df_buf_adds(out, text) < 0)
        return df_fail_oom(err);
    return 0;
}
