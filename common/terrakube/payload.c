/*
 * The job of an executor, read strictly where it says what is to be done, and leniently where a
 * version of the API has a member more or less. First the kinds of members, then the job's own
 * rules, its commands, and reading.
 */
#include "common/terrakube/payload.h"

#include <ctype.h>
#include <strings.h>

#include "common/crypto/crypto.h"

enum { UUID_LEN = 36 };

/* No value is shown: it may be a secret. */
static int fail_member(struct df_err *err, const char *name, const char *allowed)
{
    return df_fail_reason(err, DF_ERR_USER, "PayloadInvalid",
                          "the job of Terrakube: \"%s\" must be %s", name, allowed);
}

/* ---- kinds of members ---- */

/* Null, absent and "" are NULL. */
static int read_string(const cJSON *job, const char *name, const char **ret, struct df_err *err)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(job, name);
    if (!j || cJSON_IsNull(j))
        return 0;
    if (!cJSON_IsString(j))
        return fail_member(err, name, "a string or null");
    *ret = *j->valuestring ? j->valuestring : NULL;
    return 0;
}

static int read_bool(const cJSON *job, const char *name, bool fallback, bool *ret,
                     struct df_err *err)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(job, name);
    if (j && !cJSON_IsNull(j) && !cJSON_IsBool(j))
        return fail_member(err, name, "true or false");
    *ret = cJSON_IsBool(j) ? cJSON_IsTrue(j) : fallback;
    return 0;
}

/* *ret: NULL if it is absent, null or empty. */
static int read_array(const cJSON *job, const char *name, const cJSON **ret, struct df_err *err)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(job, name);
    if (j && !cJSON_IsNull(j) && !cJSON_IsArray(j))
        return fail_member(err, name, "a list or null");
    *ret = j && j->child ? j : NULL;
    return 0;
}

/* Becomes a segment of URLs and of names of objects. */
static int read_uuid(const cJSON *job, const char *name, const char **ret, struct df_err *err)
{
    const char *s = df_json_str(job, name);
    size_t n = s ? strlen(s) : 0;
    bool good = n == UUID_LEN;
    for (size_t i = 0; good && i < UUID_LEN; i++)
        good =
            i == 8 || i == 13 || i == 18 || i == 23 ? s[i] == '-' : isxdigit((unsigned char)s[i]);
    if (!good)
        return fail_member(err, name, "a UUID");
    *ret = s;
    return 0;
}

/* Versions write it as a string; a number says the same. One job has one text, because the name of
 * its step is made of it: "01" would be a second step beside "1". */
static int read_job(cJSON *job, const char **ret, struct df_err *err)
{
    enum { LONGEST = 18 }; /* what fits an int64_t in any case */
    int64_t number = df_json_int(job, "jobId", -1);
    if (number >= 0) {
        DF_FREE char *digits = df_strf("%lld", (long long)number);
        if (df_json_put(job, err, DF_STR_ALLOC("jobId", digits)) < 0)
            return -1;
    }
    const char *s = df_json_str(job, "jobId");
    size_t n = s ? strspn(s, "0123456789") : 0;
    if (!n || n > LONGEST || s[n] || (n > 1 && *s == '0'))
        return fail_member(err, "jobId", "a number of at most 18 digits, without zeros before it");
    *ret = s;
    return 0;
}

/* A null says that there is no such variable: it is taken out. */
static int check_strings(cJSON *object, const char *what, struct df_err *err)
{
    cJSON *next = NULL;
    for (cJSON *j = object->child; j; j = next) {
        next = j->next;
        if (cJSON_IsNull(j)) {
            cJSON_Delete(cJSON_DetachItemViaPointer(object, j));
            continue;
        }
        if (!*j->string || strchr(j->string, '='))
            return fail_member(err, what, "an object whose names are not empty and without \"=\"");
        if (!cJSON_IsString(j))
            return df_fail_reason(err, DF_ERR_USER, "PayloadInvalid",
                                  "the job of Terrakube: \"%s\" in \"%s\" must be a string or null",
                                  j->string, what);
    }
    return 0;
}

static int read_strings(cJSON *job, const char *name, const cJSON **ret, struct df_err *err)
{
    cJSON *j = cJSON_GetObjectItemCaseSensitive(job, name);
    if (!j || cJSON_IsNull(j)) {
        if (df_json_set(job, name, cJSON_CreateObject(), err) < 0)
            return -1;
        j = cJSON_GetObjectItemCaseSensitive(job, name);
    }
    if (!cJSON_IsObject(j))
        return fail_member(err, name, "an object of strings");
    *ret = j;
    return check_strings(j, name, err);
}

/* ---- the job's own rules ---- */

static const struct {
    const char *name;
    enum df_terrakube_type type;
} types[] = {
    {"terraformPlan", DF_TERRAKUBE_PLAN},    {"terraformPlanDestroy", DF_TERRAKUBE_PLAN_DESTROY},
    {"terraformApply", DF_TERRAKUBE_APPLY},  {"terraformDestroy", DF_TERRAKUBE_DESTROY},
    {"customScripts", DF_TERRAKUBE_SCRIPTS}, {"approval", DF_TERRAKUBE_REJECTED},
};

static int read_type(const cJSON *job, enum df_terrakube_type *ret, struct df_err *err)
{
    const char *s = df_json_str(job, "type");
    for (size_t i = 0; i < DF_ARRAY_SIZE(types); i++)
        if (df_streq(types[i].name, s)) {
            *ret = types[i].type;
            return 0;
        }
    return df_fail_reason(
        err, DF_ERR_USER, "PayloadInvalid",
        "Command type not defined: the job of Terrakube has the type \"%s\", which "
        "must be terraformPlan, terraformPlanDestroy, terraformApply, "
        "terraformDestroy, customScripts or approval",
        s ? s : "");
}

/* "/stack,/other" is what a workspace watches; the first one is where it runs. */
static int read_folder(cJSON *job, const char **ret, struct df_err *err)
{
    const char *s = NULL;
    if (read_string(job, "folder", &s, err) < 0)
        return -1;
    if (s && strchr(s, ',')) {
        DF_FREE char *first = strndup(s, (size_t)(strchr(s, ',') - s));
        if (df_json_put(job, err, DF_STR_ALLOC("folder", first)) < 0)
            return -1;
    }
    return read_string(job, "folder", ret, err);
}

/* Newer versions may give the list that has `hcl` instead of the map. */
static int read_variables(cJSON *job, const cJSON **ret, struct df_err *err)
{
    static const char allowed[] = "an object of strings, or a list of {key, value, hcl}";
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(job, "variables");
    if (cJSON_IsObject(list) || !list || cJSON_IsNull(list))
        return read_strings(job, "variables", ret, err);
    if (!cJSON_IsArray(list))
        return fail_member(err, "variables", allowed);
    for (const cJSON *j = list->child; j; j = j->next) {
        const char *key = NULL, *value = NULL;
        bool hcl = false;
        if (!cJSON_IsObject(j))
            return fail_member(err, "variables", allowed);
        if (read_string(j, "key", &key, err) < 0 || read_string(j, "value", &value, err) < 0 ||
            read_bool(j, "hcl", false, &hcl, err) < 0)
            return df_err_wrap(err, "variables");
        if (!key || strchr(key, '='))
            return fail_member(err, "variables",
                               "a list whose keys are not empty and without \"=\"");
    }
    *ret = list;
    return 0;
}

/* `tofu` of all versions; iacType and terragruntVersion of newer ones. */
static int read_product(const cJSON *job, bool *ret_tofu, struct df_err *err)
{
    const char *kind = NULL, *terragrunt = NULL;
    if (read_string(job, "iacType", &kind, err) < 0 ||
        read_string(job, "terragruntVersion", &terragrunt, err) < 0)
        return -1;
    bool tofu = kind && (strcasecmp(kind, "tofu") == 0 || strcasecmp(kind, "opentofu") == 0);
    if (!kind && terragrunt)
        kind = "terragrunt";
    if (kind && !tofu && strcasecmp(kind, "terraform") != 0)
        return df_fail_reason(err, DF_ERR_USER, "PayloadUnsupported",
                              "the workspace's type is \"%s\": this executor runs terraform and "
                              "tofu; give the workspace one of them, or another executor",
                              kind);
    return read_bool(job, "tofu", tofu, ret_tofu, err);
}

/* As strcasestr(), which is no part of C or POSIX. */
static bool has_word(const char *s, const char *word)
{
    for (size_t n = strlen(word); *s; s++)
        if (strncasecmp(s, word, n) == 0)
            return true;
    return false;
}

static bool says_nothing(const cJSON *j)
{
    return cJSON_IsNull(j) || cJSON_IsFalse(j) || (cJSON_IsString(j) && !*j->valuestring) ||
           ((cJSON_IsArray(j) || cJSON_IsObject(j)) && !j->child);
}

/* An API newer than this program would rely on a rule that nobody enforces. */
static int refuse_unknown_rules(const cJSON *job, struct df_err *err)
{
    static const char *const words[] = {"policy", "policies", "enforcement"};
    for (const cJSON *j = job->child; j; j = j->next) {
        if (df_streq(j->string, "policyList") || df_streq(j->string, "policyExemptionList") ||
            says_nothing(j))
            continue;
        for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
            if (has_word(j->string, words[i]))
                return df_fail_reason(err, DF_ERR_USER, "PayloadUnsupported",
                                      "the job of Terrakube has \"%s\", which may restrict what it "
                                      "may do and is not known here: use a newer executor",
                                      j->string);
    }
    return 0;
}

/* ---- commands ---- */

static int read_priority(const cJSON *command, int *ret, struct df_err *err)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(command, "priority");
    int64_t n = j && !cJSON_IsNull(j) ? df_json_int(command, "priority", INT64_MAX) : 0;
    if (n < INT32_MIN || n > INT32_MAX)
        return fail_member(err, "priority", "a whole number of 32 bits");
    *ret = (int)n;
    return 0;
}

static int read_command(const cJSON *j, struct df_terrakube_command *ret, struct df_err *err)
{
    const char *runtime = df_json_str(j, "runtime");
    bool is_bash = df_streq(runtime, "BASH");
    if (!is_bash && !df_streq(runtime, "GROOVY"))
        return fail_member(err, "runtime", "BASH or GROOVY");
    *ret = (struct df_terrakube_command){.is_bash = is_bash, .script = ""};
    if (read_string(j, "script", &ret->script, err) < 0 ||
        read_priority(j, &ret->priority, err) < 0 ||
        read_bool(j, "before", false, &ret->before, err) < 0 ||
        read_bool(j, "after", false, &ret->after, err) < 0 ||
        read_bool(j, "verbose", false, &ret->verbose, err) < 0 ||
        read_bool(j, "beforeInit", false, &ret->before_init, err) < 0)
        return -1;
    if (!ret->script)
        ret->script = "";
    return 0;
}

/* The order of the payload stays among those of equal priority. */
static void insert(struct df_terrakube_command *all, size_t n, struct df_terrakube_command c)
{
    for (; n && all[n - 1].priority > c.priority; n--)
        all[n] = all[n - 1];
    all[n] = c;
}

int df_terrakube_commands(const cJSON *list, struct df_terrakube_command **ret, size_t *ret_n,
                          struct df_err *err)
{
    size_t n = (size_t)cJSON_GetArraySize(list), done = 0;
    if (n > DF_LIMIT_TERRAKUBE_COMMANDS)
        return df_fail_reason(err, DF_ERR_LIMIT, "PayloadInvalid",
                              "a step of Terrakube has %zu commands; %d are allowed", n,
                              DF_LIMIT_TERRAKUBE_COMMANDS);
    DF_FREE struct df_terrakube_command *all = calloc(n ? n : 1, sizeof(*all));
    if (!all)
        return df_fail_oom(err);
    for (const cJSON *j = n ? list->child : NULL; j; j = j->next) {
        struct df_terrakube_command c;
        if (read_command(j, &c, err) < 0)
            return df_err_wrap(err, "command %zu", done + 1);
        insert(all, done++, c);
    }
    *ret = DF_TAKE(all);
    *ret_n = n;
    return 0;
}

/* What is wrong with a command is told before anything runs. */
static int read_commands(const cJSON *job, const char *name, const cJSON **ret, struct df_err *err)
{
    DF_FREE struct df_terrakube_command *commands = NULL;
    size_t n = 0;
    if (read_array(job, name, ret, err) < 0)
        return -1;
    return *ret && df_terrakube_commands(*ret, &commands, &n, err) < 0
               ? df_err_wrap(err, "%s", name)
               : 0;
}

/* ---- reading ---- */

/* First what a failure is told with. */
static int read_names(struct df_terrakube_payload *p, struct df_err *err)
{
    cJSON *job = p->document;
    if (read_uuid(job, "organizationId", &p->organization, err) < 0 ||
        read_job(job, &p->job, err) < 0 || read_uuid(job, "stepId", &p->step, err) < 0)
        return -1;
    return read_uuid(job, "workspaceId", &p->workspace, err);
}

static int read_source(struct df_terrakube_payload *p, struct df_err *err)
{
    const struct {
        const char *name;
        const char **to;
    } strings[] = {
        {"terraformVersion", &p->version},
        {"source", &p->source},
        {"branch", &p->branch},
        {"commitId", &p->commit},
        {"vcsType", &p->vcs_type},
        {"connectionType", &p->connection_type},
        {"accessToken", &p->access_token},
        {"moduleSshKey", &p->module_ssh_key},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(strings); i++)
        if (read_string(p->document, strings[i].name, strings[i].to, err) < 0)
            return -1;
    return read_folder(p->document, &p->folder, err);
}

/* What is absent is as the API's own default; an uploaded configuration has no banner. */
static int read_flags(struct df_terrakube_payload *p, struct df_err *err)
{
    const cJSON *job = p->document;
    bool header = !df_streq(p->branch, "remote-content");
    if (read_bool(job, "refresh", true, &p->refresh, err) < 0 ||
        read_bool(job, "refreshOnly", false, &p->refresh_only, err) < 0 ||
        read_bool(job, "showHeader", header, &p->show_header, err) < 0 ||
        read_bool(job, "ignoreError", false, &p->ignore_error, err) < 0)
        return -1;
    return read_product(job, &p->is_tofu, err);
}

static int read_lists(struct df_terrakube_payload *p, struct df_err *err)
{
    cJSON *job = p->document;
    if (read_strings(job, "environmentVariables", &p->environment, err) < 0 ||
        read_variables(job, &p->variables, err) < 0 ||
        read_commands(job, "commandList", &p->commands, err) < 0 ||
        read_commands(job, "onFailureList", &p->on_failure, err) < 0 ||
        read_array(job, "policyList", &p->policies, err) < 0)
        return -1;
    return read_array(job, "policyExemptionList", &p->exemptions, err);
}

int df_terrakube_payload_read(const char *text, size_t n, struct df_terrakube_payload *ret,
                              struct df_err *err)
{
    *ret = (struct df_terrakube_payload){0};
    if (n > DF_LIMIT_TERRAKUBE_PAYLOAD)
        return df_fail_reason(err, DF_ERR_LIMIT, "PayloadInvalid",
                              "the job of Terrakube has %zu bytes; %zu are allowed", n,
                              DF_LIMIT_TERRAKUBE_PAYLOAD);
    if (df_json_parse(text, n, &ret->document, err) < 0) {
        (void)df_err_wrap(err, "the job of Terrakube");
        return df_err_reason(err, "PayloadInvalid");
    }
    if (!cJSON_IsObject(ret->document))
        return df_fail_reason(err, DF_ERR_USER, "PayloadInvalid",
                              "the job of Terrakube must be an object");
    if (read_names(ret, err) < 0 || read_type(ret->document, &ret->type, err) < 0 ||
        read_source(ret, err) < 0 || read_flags(ret, err) < 0 || read_lists(ret, err) < 0)
        return -1;
    return refuse_unknown_rules(ret->document, err);
}

int df_terrakube_payload_decode(const char *base64, struct df_terrakube_payload *ret,
                                struct df_err *err)
{
    struct df_buf text = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_PAYLOAD);
    *ret = (struct df_terrakube_payload){0};
    (void)df_buf_reserve(&text, strlen(base64) / 4 * 3); /* no copy is left behind as it grows */
    int result = df_base64_decode(base64, strlen(base64), false, &text, err);
    if (result < 0) {
        (void)df_err_wrap(err, "EphemeralJobData");
        (void)df_err_reason(err, "PayloadInvalid");
    } else {
        result = df_terrakube_payload_read(df_buf_str(&text), text.len, ret, err);
    }
    df_buf_wipe(&text);
    return result;
}

void df_terrakube_payload_free(struct df_terrakube_payload *p)
{
    df_json_wipe(p->document);
    *p = (struct df_terrakube_payload){0};
}
