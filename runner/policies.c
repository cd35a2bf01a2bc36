/*
 * policies.c - in this order: the messages of one policy, its process, what it answered, and
 * evaluate(), which makes a failure of everything that went wrong; then all policies of the step.
 */
#include "runner/policies.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/opa_answer.h"
#include "runner/orphans.h"
#include "runner/plan_masked.h"

enum { TAIL = 4096 };

struct policy {
    struct df_context *c;
    const cJSON *doc; /* of the step document */
    const char *name, *level;
    const char *plan;            /* path of the masked JSON; or NULL, */
    const struct df_err *unread; /* and why */
    cJSON *messages;             /* owned */
    int left_out;                /* messages for which there was no room */
    bool passed;
};

/* ---- messages ---- */

/* Makes one line of it, which is no longer than the limit and ends with a whole character. */
static char *line_of(const char *text)
{
    size_t n = strlen(text);
    if (n > DF_LIMIT_POLICY_MESSAGE) {
        n = DF_LIMIT_POLICY_MESSAGE;
        while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    char *line = strndup(text, n);
    for (char *at = line; at && *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = ' ';
    return line;
}

static int add_message(struct policy *p, const char *prefix, const char *text, struct df_err *err)
{
    DF_BUF struct df_buf clean = DF_BUF_INIT(4 * DF_LIMIT_POLICY_ANSWER);
    if (cJSON_GetArraySize(p->messages) >= DF_LIMIT_POLICY_MESSAGES) {
        p->left_out++;
        return 0;
    }
    if (df_buf_adds(&clean, prefix) < 0 ||
        df_redact_string(df_masks_set(p->c->masks), text, &clean, err) < 0)
        return -1;
    DF_FREE char *line = line_of(df_buf_str(&clean));
    return line ? df_json_append_str(p->messages, line, err) : df_fail_oom(err);
}

static int count_left_out(struct policy *p, struct df_err *err)
{
    DF_FREE char *text = df_strf("and %d more", p->left_out);
    if (!p->left_out)
        return 0;
    return text ? df_json_append_str(p->messages, text, err) : df_fail_oom(err);
}

/* A text, or an object with msg, as OPA's rules and conftest's have it. */
static int add_item(struct policy *p, const char *prefix, const cJSON *item, struct df_err *err)
{
    const char *text = cJSON_IsString(item) ? item->valuestring : df_json_str(item, "msg");
    DF_FREE char *whole = text ? NULL : df_json_print(item);
    if (!text && !whole)
        return df_fail_oom(err);
    return add_message(p, prefix, text ? text : whole, err);
}

static int add_items(struct policy *p, const char *prefix, const cJSON *list, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        if (add_item(p, prefix, item, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- its process ---- */

/* The program and what it may read. */
struct command {
    struct df_strs argv, shown;
};

static void command_free(struct command *k)
{
    df_strs_free(&k->argv);
    df_strs_free(&k->shown);
}

static void add_all(struct df_strs *to, const char *before, const cJSON *list)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        if (before)
            (void)df_strs_add(to, before);
        (void)df_strs_add(to, cJSON_GetStringValue(item));
    }
}

static const char *query_of(const struct policy *p)
{
    const char *query = df_json_str(p->doc, "opa.query");
    return query ? query : "data.main";
}

/* A built-in function that fails would otherwise only make its rule undefined: nothing denies. */
static void add_opa(const struct policy *p, struct df_strs *argv)
{
    static const char *const words[] = {"eval", "--strict-builtin-errors", "--stdin-input",
                                        "--format", "json"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        (void)df_strs_add(argv, words[i]);
    add_all(argv, "--data", df_json_at(p->doc, "opa.data"));
    (void)df_strs_add(argv, query_of(p));
}

/* By the PATH of the runner: that of the step is the module's. */
static int find_program(const char *name, char **ret, struct df_err *err)
{
    *ret = strchr(name, '/') ? strdup(name) : df_process_which(name, getenv("PATH"));
    return *ret ? 0
                : df_fail(err, DF_ERR_NOT_FOUND,
                          "there is no program %.200s on PATH where steps run: install it there, "
                          "use an image that has it, or name its path",
                          name);
}

static int make_command(const struct policy *p, struct command *k, struct df_err *err)
{
    const cJSON *words = df_json_at(p->doc, "program"), *opa = df_json_at(p->doc, "opa");
    const char *named =
        opa ? df_json_str(opa, "program") : cJSON_GetStringValue(words ? words->child : NULL);
    DF_FREE char *program = NULL;
    if (!opa && !named)
        return df_fail(err, DF_ERR_USER,
                       "the configuration of the service has no policy of this name any more");
    if (find_program(named ? named : "opa", &program, err) < 0)
        return -1;
    (void)df_strs_add(&k->argv, program);
    (void)df_strs_add(&k->shown, program);
    if (opa)
        add_opa(p, &k->argv);
    const cJSON *first = opa || !words ? NULL : words->child;
    for (const cJSON *word = first ? first->next : NULL; word; word = word->next)
        (void)df_strs_add(&k->argv, cJSON_GetStringValue(word));
    add_all(&k->shown, NULL, df_json_at(p->doc, "opa.data"));
    add_all(&k->shown, NULL, df_json_at(p->doc, "files"));
    return df_strs_check(&k->argv, err) < 0 ? -1 : df_strs_check(&k->shown, err);
}

static int explain(const struct policy *p, int64_t seconds, const struct df_err *why,
                   struct df_err *err)
{
    return why->cls == DF_ERR_RETRY && df_stop_cause(p->c->stop) == DF_STOP_NONE
               ? df_fail(err, DF_ERR_USER, "it did not end within %llds, and was ended",
                         (long long)seconds)
               : df_err_pass(err, why);
}

/* home: what is its HOME, its TMPDIR and where it starts. */
static int run_in(const struct policy *p, const char *home, const struct command *k,
                  struct df_buf *out, struct df_buf *tail, int *ret_code, struct df_err *err)
{
    const struct df_isolation *isolation = p->c->isolation;
    const int64_t seconds = df_json_int(p->doc, "timeoutSeconds", DF_POLICY_SECONDS);
    /* Without a wall all processes of this user count, which may be those of other pods. */
    const struct df_process_limits limits = {
        .processes = isolation->is_on ? DF_LIMIT_POLICY_PROCESSES : RLIM_INFINITY,
        .memory_bytes = (rlim_t)df_json_int(p->doc, "memoryMiB", DF_POLICY_MIB) * DF_MIB,
        .open_files = DF_LIMIT_POLICY_OPEN_FILES};
    DF_WALL struct df_wall wall = {0};
    DF_CLOSE int plan = -1;
    const char *path = getenv("PATH");
    DF_FREE char *home_is = df_strf("HOME=%s", home), *tmp_is = df_strf("TMPDIR=%s", home);
    DF_FREE char *path_is = df_strf("PATH=%s", path ? path : "");
    if (!home_is || !tmp_is || !path_is)
        return df_fail_oom(err);
    const char *const env[] = {home_is, tmp_is, path_is, NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS((const char *const *)k->argv.items, env);
    struct df_err why = {0};
    if (df_fs_open_plain(p->plan, O_RDONLY, 0, &plan, err) < 0 ||
        (isolation->is_on && df_isolation_wall_of_program(isolation, &k->shown, &wall, err) < 0))
        return -1;
    o.stdin_fd = plan;
    o.cwd = home;
    o.no_core = true;
    o.no_network = true;
    o.as_nobody = isolation->is_on;
    o.max_file_bytes = DF_LIMIT_POLICY_FILE;
    o.death_signal = 9;
    o.limits = &limits;
    o.wall = isolation->is_on ? &wall : NULL;
    o.stop = df_stop_flag(p->c->stop);
    int result = df_process_run(&o, seconds * 1000, out, tail, ret_code, &why);
    if (!isolation->is_on) /* behind a wall all of them have ended */
        (void)df_orphans_end();
    return result == 0 ? 0 : explain(p, seconds, &why, err);
}

/* Python imports from where it starts, others read their configuration there or below HOME: nobody
 * but this policy ever writes there. Behind a wall /tmp is such a place. */
static int run(const struct policy *p, const struct command *k, struct df_buf *out,
               struct df_buf *tail, int *ret_code, struct df_err *err)
{
    if (p->c->isolation->is_on)
        return run_in(p, "/tmp", k, out, tail, ret_code, err);
    DF_FREE char *home = df_fs_join(p->c->dirs->secret, "policy");
    if (df_check_alloc(home, err) < 0 || df_fs_renew_dir(home, err) < 0)
        return -1;
    int result = run_in(p, home, k, out, tail, ret_code, err);
    (void)!df_fs_remove_tree(home, NULL); /* else it goes with the secrets of the step */
    return result;
}

/* ---- its answer ---- */

/* {"passed": bool, "messages": [texts]} */
static int read_answer(struct policy *p, const struct df_buf *out, const char *tail, int code,
                       struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    struct df_err why = {0};
    if (code != 0)
        return df_fail(err, DF_ERR_USER, "it ended with exit code %d%s%.300s", code,
                       *tail ? ": " : "", tail);
    if (df_json_parse(df_buf_str(out), out->len, &answer, &why) < 0)
        return df_fail(err, DF_ERR_USER, "it printed no JSON: %.200s", why.message);
    const cJSON *passed = df_json_at(answer, "passed"), *texts = df_json_at(answer, "messages");
    if (!cJSON_IsBool(passed))
        return df_fail(err, DF_ERR_USER,
                       "its answer has no member passed that is true or false: it must be "
                       "{\"passed\": false, \"messages\": [\"why\"]}");
    if (texts && !cJSON_IsArray(texts))
        return df_fail(err, DF_ERR_USER, "the member messages of its answer must be a list");
    p->passed = cJSON_IsTrue(passed);
    return add_items(p, "", texts, err);
}

struct rule {
    const char *name, *prefix;
    bool denies;
};

/* deny, and deny_of_anything as well. NULL: it is another one. */
static const struct rule *rule_of(const char *name)
{
    static const struct rule rules[] = {
        {"deny", "", true}, {"violation", "", true}, {"warn", "warning: ", false}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rules); i++) {
        size_t n = strlen(rules[i].name);
        if (strncmp(name, rules[i].name, n) == 0 && (!name[n] || name[n] == '_'))
            return &rules[i];
    }
    return NULL;
}

/* The sets deny and violation refuse, warn only tells. */
static int read_opa(struct policy *p, const struct df_buf *out, const char *tail, int code,
                    struct df_err *err)
{
    DF_JSON cJSON *value = NULL;
    const cJSON *set;
    bool any = false;
    if (df_opa_answer(out, tail, code, query_of(p), &value, err) < 0)
        return -1;
    p->passed = true;
    cJSON_ArrayForEach (set, value) {
        const struct rule *rule = rule_of(set->string);
        if (!rule)
            continue;
        if (!cJSON_IsArray(set))
            return df_fail(err, DF_ERR_USER,
                           "its rule %s is no set: write `%s contains message if`", set->string,
                           set->string);
        any = true;
        p->passed = p->passed && !(rule->denies && set->child);
        if (add_items(p, rule->prefix, set, err) < 0)
            return -1;
    }
    return any ? 0
               : df_fail(err, DF_ERR_USER, "%s has none of the rules deny, violation and warn",
                         query_of(p));
}

static int try_to_evaluate(struct policy *p, struct df_err *err)
{
    DF_CLEANUP(command_free) struct command k = {0};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_POLICY_ANSWER);
    DF_BUF struct df_buf tail = DF_BUF_INIT(TAIL);
    int code = -1;
    if (!p->plan)
        return df_err_pass(err, p->unread);
    if (make_command(p, &k, err) < 0 || run(p, &k, &out, &tail, &code, err) < 0)
        return -1;
    return (df_json_at(p->doc, "opa") ? read_opa : read_answer)(p, &out, df_buf_str(&tail), code,
                                                                err);
}

/* Fails only if the step is to end, or for want of memory. */
static int evaluate(struct policy *p, struct df_err *err)
{
    struct df_err why = {0};
    if (df_check_alloc(p->messages = cJSON_CreateArray(), err) < 0)
        return -1;
    if (try_to_evaluate(p, &why) < 0) {
        if (df_stop_cause(p->c->stop) != DF_STOP_NONE)
            return df_err_pass(err, &why);
        p->passed = false;
        p->left_out = 0;
        cJSON_Delete(p->messages);
        if (df_check_alloc(p->messages = cJSON_CreateArray(), err) < 0 ||
            add_message(p, "could not be evaluated: ", why.message, err) < 0)
            return -1;
    }
    return count_left_out(p, err);
}

/* ---- all of them ---- */

bool df_plan_policies_any(const struct df_context *c)
{
    return cJSON_GetArraySize(df_json_at(c->doc, "policies")) > 0;
}

static void tell(const struct policy *p)
{
    const cJSON *message;
    (void)df_output_note(p->c->output, "dayfly: policy %s (%s) %s", p->name, p->level,
                         p->passed ? "passed" : "failed");
    cJSON_ArrayForEach (message, p->messages)
        (void)df_output_note(p->c->output, "  %s", message->valuestring);
}

static int check_one(struct policy *p, cJSON *results, struct df_err *err)
{
    if (evaluate(p, err) < 0)
        return -1;
    tell(p);
    return df_json_append(results,
                          df_json_object(DF_STR("name", p->name), DF_BOOL("passed", p->passed),
                                         DF_ITEM("messages", DF_TAKE(p->messages))),
                          err);
}

/* *ret: the path of the JSON that the programs read. */
static int write_masked(const struct df_context *c, int json, char **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *plan = NULL;
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_PLAN_READ);
    DF_FREE char *path = df_fs_join(c->dirs->secret, "plan.masked.json");
    if (lseek(json, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "plan.json");
    if (df_check_alloc(path, err) < 0 || df_fs_read_fd(json, &text, err) < 0 ||
        df_json_parse_nul(df_buf_str(&text), text.len, &plan, err) < 0)
        return -1;
    df_buf_wipe(&text);
    if (df_plan_mask(plan, df_masks_set(c->masks), err) < 0 || df_json_save(path, plan, err) < 0)
        return -1;
    *ret = DF_TAKE(path);
    return 0;
}

static int check_all(struct df_context *c, const char *plan, const struct df_err *unread,
                     int *ret_failed, struct df_err *ret_why, struct df_err *err)
{
    const cJSON *doc;
    cJSON *results = df_json_array_at(c->result, "policies");
    cJSON_ArrayForEach (doc, df_json_at(c->doc, "policies")) {
        struct policy p = {.c = c,
                           .doc = doc,
                           .name = df_json_text(doc, "name"),
                           .level = df_json_text(doc, "level"),
                           .plan = plan,
                           .unread = unread};
        int result = check_one(&p, results, err);
        cJSON_Delete(p.messages);
        if (result < 0)
            return -1;
        const cJSON *added = cJSON_GetArrayItem(results, cJSON_GetArraySize(results) - 1);
        const cJSON *first = df_json_at(added, "messages");
        if (!p.passed && df_streq(p.level, "hard") && (*ret_failed)++ == 0)
            (void)df_fail_reason(ret_why, DF_ERR_USER, "PolicyFailed", "policy %s: %s", p.name,
                                 first && first->child ? first->child->valuestring : "not passed");
    }
    return 0;
}

int df_plan_policies_check(struct df_context *c, int json, struct df_err *err)
{
    DF_FREE char *plan = NULL;
    struct df_err why = {0}, unread = {0};
    int failed = 0;
    if (!df_plan_policies_any(c))
        return 0;
    /* Of a plan that was made before. */
    cJSON_DeleteItemFromObjectCaseSensitive(c->result, "policies");
    /* `show` runs providers, too. Behind a wall they have ended with it. */
    if (!c->isolation->is_on && df_orphans_must_end("PolicyFailed", err) < 0)
        return -1;
    if (write_masked(c, json, &plan, &unread) < 0)
        (void)df_err_wrap(&unread, "the plan's JSON cannot be read or masked");
    int result = check_all(c, plan, &unread, &failed, &why, err);
    if (plan)
        (void)unlink(plan);
    if (result < 0 || !failed)
        return result;
    return failed == 1 ? df_err_pass(err, &why)
                       : df_fail_reason(err, DF_ERR_USER, "PolicyFailed",
                                        "%s (and %d more policies)", why.message, failed - 1);
}
