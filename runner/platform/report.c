/*
 * report.c - what an action found, as one JSON document, and the places where it is left: the
 * file of REPORT_PATH, Markdown beside it, and the pod's termination log.
 *
 * A report is a function of its facts: nothing here looks at a clock, and lists have the order of
 * the DAG or of the table of advice.
 */
#include "runner/platform/report.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"
#include "runner/platform/advice.h"

/* ---- sections ---- */

static double seconds(int64_t us)
{
    return (double)us / 1e6;
}

static const char *or_null(const char *s)
{
    return df_str_empty(s) ? NULL : s;
}

static cJSON *make_summary(const struct df_report_facts *f)
{
    const struct df_platform_input *in = f->in;
    return df_json_object(
        DF_STR("action", df_platform_action_names[in->action]),
        DF_STR("status", df_result_name(f->result)), DF_NUM("exitCode", f->result),
        DF_NUM("durationSeconds", seconds(f->ended_us - f->started_us)),
        DF_TIME("startedAt", f->started_us), DF_TIME("finishedAt", f->ended_us),
        DF_STR("scope", in->scope.text), DF_STR("environment", in->environment),
        DF_STR("name", in->name), DF_BOOL("dryRun", in->dry_run), DF_STR("commit", f->commit),
        DF_STR("message", or_null(f->message)), DF_STR("cause", or_null(f->cause)));
}

/* One that the action did not end has lasted until the action's own end. */
static double component_seconds(const struct df_report_facts *f, const struct df_component *c)
{
    if (!c->started_us)
        return 0;
    return seconds((c->ended_us ? c->ended_us : f->ended_us) - c->started_us);
}

static int add_component(const struct df_report_facts *f, const struct df_component *c,
                         cJSON *report, struct df_err *err)
{
    cJSON *j = df_json_object(
        DF_STR("name", c->node->name), DF_STR("stack", or_null(c->node->stack)),
        DF_STR("state", df_component_state_name(c->state)), DF_STR("sync", or_null(c->sync)),
        DF_STR("health", or_null(c->health)), DF_STR("revision", or_null(c->revision)),
        DF_BOOL("changed", c->changed), DF_NUM("durationSeconds", component_seconds(f, c)),
        DF_NUM("waitedSeconds", seconds(c->waited_us)), DF_NUM("retries", c->retries),
        DF_STR("message", or_null(c->message)), DF_STR("cause", or_null(c->cause)),
        DF_STR("warning", or_null(c->warning)));
    return df_json_append(df_json_array_at(report, "components"), j, err);
}

static int add_failure(cJSON *report, const char *component, const char *cause, const char *message,
                       const cJSON *diagnostics, struct df_err *err)
{
    cJSON *j =
        df_json_object(DF_STR("component", component), DF_STR("cause", or_null(cause)),
                       DF_STR("message", or_null(message)),
                       DF_ITEM("diagnostics", diagnostics ? cJSON_Duplicate(diagnostics, true)
                                                          : cJSON_CreateArray()));
    return df_json_append(df_json_array_at(report, "failures"), j, err);
}

/* What concerns the action as a whole: each fault of its input, or why it ended. */
static int add_own_failures(const struct df_report_facts *f, cJSON *report, struct df_err *err)
{
    size_t n = f->faults ? f->faults->lines.len : 0;
    for (size_t i = 0; i < n; i++) {
        if (add_failure(report, NULL, "InvalidInput", f->faults->lines.items[i], NULL, err) < 0)
            return -1;
    }
    bool is_told = n || (df_str_empty(f->cause) && df_str_empty(f->message));
    if (!is_told && add_failure(report, NULL, f->cause, f->message, NULL, err) < 0)
        return -1;
    return df_str_empty(f->left) ? 0 : add_failure(report, NULL, "OrphansLeft", f->left, NULL, err);
}

/* A skipped component did nothing wrong: it stands among the components only. */
static int add_components(const struct df_report_facts *f, cJSON *report, struct df_err *err)
{
    for (size_t i = 0; i < f->len; i++) {
        const struct df_component *c = &f->components[i];
        bool failed = c->state == DF_COMPONENT_FAILED || c->state == DF_COMPONENT_DEGRADED;
        if (!c->node->is_in_scope)
            continue;
        if (add_component(f, c, report, err) < 0 ||
            (failed &&
             add_failure(report, c->node->name, c->cause, c->message, c->diagnostics, err) < 0))
            return -1;
    }
    return 0;
}

static int add_metrics(const struct df_report_facts *f, cJSON *report, struct df_err *err)
{
    unsigned counts[DF_COMPONENT_STATES] = {0};
    int retries = 0;
    int64_t waited_us = 0;
    for (size_t i = 0; i < f->len; i++) {
        const struct df_component *c = &f->components[i];
        counts[c->state] += c->node->is_in_scope;
        retries += c->retries;
        waited_us += c->waited_us;
    }
    DF_JSON cJSON *states = cJSON_CreateObject();
    for (int i = 0; i < DF_COMPONENT_STATES; i++) {
        if (df_json_add_num(states, df_component_state_name((enum df_component_state)i), counts[i],
                            err) < 0)
            return -1;
    }
    cJSON *metrics =
        df_json_object(DF_ITEM("components", DF_TAKE(states)), DF_NUM("retries", retries),
                       DF_NUM("waitedSeconds", seconds(waited_us)), DF_NUM("writes", f->writes));
    return df_json_add(report, "metrics", metrics, err);
}

static bool warns_of(const struct df_component *c, const char *cause)
{
    return df_starts_with(c->warning, cause) && c->warning[strlen(cause)] == ':';
}

static bool has_cause(const struct df_report_facts *f, const char *cause)
{
    if (df_streq(f->cause, cause) ||
        (f->faults && f->faults->lines.len && df_streq(cause, "InvalidInput")) ||
        (!df_str_empty(f->left) && df_streq(cause, "OrphansLeft")) ||
        (f->not_in_dag && df_streq(cause, "NotInDag")))
        return true;
    for (size_t i = 0; i < f->len; i++) {
        const struct df_component *c = &f->components[i];
        if (c->node->is_in_scope && (df_streq(c->cause, cause) || warns_of(c, cause)))
            return true;
    }
    return false;
}

static int add_recommendations(const struct df_report_facts *f, cJSON *report, struct df_err *err)
{
    cJSON *all = df_json_array_at(report, "recommendations");
    if (!all)
        return df_fail_oom(err);
    for (size_t i = 0; i < df_advice_count; i++) {
        if (has_cause(f, df_advices[i].cause) &&
            df_json_append_str(all, df_advices[i].text, err) < 0)
            return -1;
    }
    return 0;
}

static int add_copy(cJSON *report, const char *key, const cJSON *of, struct df_err *err)
{
    return of ? df_json_add(report, key, cJSON_Duplicate(of, true), err) : 0;
}

int df_platform_report_make(const struct df_report_facts *facts, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *report = df_json_object(
        DF_STR("apiVersion", "dayfly.dev/v1alpha1"), DF_STR("kind", "PlatformReport"),
        DF_ITEM("summary", make_summary(facts)), DF_ITEM("components", cJSON_CreateArray()),
        DF_ITEM("failures", cJSON_CreateArray()));
    if (df_check_alloc(report, err) < 0 || add_own_failures(facts, report, err) < 0 ||
        add_components(facts, report, err) < 0 || add_metrics(facts, report, err) < 0 ||
        add_recommendations(facts, report, err) < 0 ||
        add_copy(report, "bootstrap", facts->bootstrap, err) < 0 ||
        add_copy(report, "compliance", facts->compliance, err) < 0 ||
        add_copy(report, "removal", facts->removal, err) < 0 ||
        add_copy(report, "notInDag", facts->not_in_dag, err) < 0)
        return -1;
    *ret = DF_TAKE(report);
    return 0;
}

/* ---- the termination log ---- */

/* Cuts each string of the object to so many bytes, between two characters. */
static void shorten(cJSON *object, size_t most)
{
    for (cJSON *j = object ? object->child : NULL; j; j = j->next) {
        if (!cJSON_IsString(j) || strlen(j->valuestring) <= most)
            continue;
        size_t n = most;
        while (n && ((unsigned char)j->valuestring[n] & 0xc0) == 0x80)
            n--;
        j->valuestring[n] = '\0';
    }
}

/* What fits: the largest parts go first, the summary stays. */
static int make_short(const cJSON *report, char **ret, struct df_err *err)
{
    static const char *const parts[] = {"compliance", "removal",  "bootstrap",       "notInDag",
                                        "components", "failures", "recommendations", "metrics"};
    DF_JSON cJSON *rest = cJSON_Duplicate(report, true);
    DF_FREE char *text = df_json_print(rest);
    size_t part = 0;
    for (size_t most = DF_LIMIT_TERMINATION_LOG; text && strlen(text) > DF_LIMIT_TERMINATION_LOG;) {
        if (part < DF_ARRAY_SIZE(parts))
            cJSON_DeleteItemFromObjectCaseSensitive(rest, parts[part++]);
        else
            shorten(cJSON_GetObjectItemCaseSensitive(rest, "summary"), most /= 2);
        free(text);
        text = df_json_print(rest);
    }
    return df_check_alloc(*ret = DF_TAKE(text), err);
}

/* The kubelet has mounted this file: it can be written, not replaced. */
static int write_termination(const char *path, const cJSON *report, struct df_err *err)
{
    DF_FREE char *text = NULL;
    if (make_short(report, &text, err) < 0)
        return -1;
    DF_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? df_fail_errno(err, errno, "open %s", path)
                  : df_fs_write_all(fd, text, strlen(text), err);
}

/* ---- REPORT_PATH ---- */

static int write_text(const char *path, const char *text, struct df_err *err)
{
    if (!text)
        return df_fail_oom(err);
    return df_fs_write(path, text, strlen(text), 0644, err) < 0 ? df_err_wrap(err, "REPORT_PATH")
                                                                : 0;
}

static int write_files(const char *path, const cJSON *report, struct df_err *err)
{
    size_t stem = strlen(path) - (df_ends_with(path, ".json") ? strlen(".json") : 0);
    DF_FREE char *text = df_json_print_pretty(report);
    DF_FREE char *beside = df_strf("%.*s.md", (int)stem, path);
    DF_FREE char *markdown = NULL;
    if (write_text(path, text, err) < 0 || df_platform_report_markdown(report, &markdown, err) < 0)
        return -1;
    return write_text(beside, markdown, err);
}

/* A place that cannot be written does not keep the report from the other one. */
int df_platform_report_write(const struct df_platform_input *in, const cJSON *report,
                             struct df_err *err)
{
    int result = in->report_path ? write_files(in->report_path, report, err) : 0;
    if (in->termination_path &&
        write_termination(in->termination_path, report, result < 0 ? NULL : err) < 0)
        return -1;
    return result;
}
