/*
 * One event of tofu in three steps: df_event_count() for the summary, df_event_render() for people,
 * df_event_redact() for the event stream. Rendered text is redacted later, with the log.
 */
#include "runner/report/events.h"

#include <limits.h>

#include "common/base/limits.h"
#include "common/hcl/value.h"
#include "common/redact/tree.h"

bool df_event_parse(const char *line, size_t n, cJSON **ret)
{
    DF_JSON cJSON *event = NULL;
    if (!n || line[0] != '{' || df_json_parse_nul(line, n, &event, NULL) < 0)
        return false;
    if (!df_json_str(event, "type") && !cJSON_GetObjectItemCaseSensitive(event, "@message"))
        return false;
    *ret = DF_TAKE(event);
    return true;
}

/* --- summary --------------------------------------------------------------------------------- */

/* The tool's own sums. What it sums up under a name that no row has is of another kind. */
static void count_sums(const cJSON *event, struct df_changes *c)
{
    const cJSON *sum;
    cJSON_ArrayForEach (sum, df_json_at(event, "changes")) {
        enum df_changes_kind kind = df_changes_kind_of(sum->string);
        double n = cJSON_IsNumber(sum) && sum->valuedouble > 0 ? sum->valuedouble : 0;
        int64_t count = n < INT_MAX ? (int64_t)n : INT_MAX;
        if (kind == DF_CHANGES_OTHER)
            c->of[kind] += count;
        else if (count > c->of[kind]) /* Terraform sums up nothing that it forgets */
            c->of[kind] = count;
    }
}

/* Counts what the tool does not sum up, or not in every version. */
static void count_planned(const cJSON *change, struct df_output_summary *s)
{
    static const char *const summed[] = {"noop",   "create", "update", "replace", "delete",
                                         "import", "move",   "read",   "open",    "close"};
    const char *action = df_json_str(change, "action");
    s->changes.of[DF_CHANGES_MOVE] += df_json_at(change, "previous_resource") != NULL;
    s->reads |= df_streq(action, "read");
    if (df_streq(action, "remove") || df_streq(action, "forget")) {
        s->changes.of[DF_CHANGES_FORGET]++;
        return;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(summed); i++)
        if (df_streq(action, summed[i]))
            return;
    s->changes.of[DF_CHANGES_OTHER]++;
}

static void count_outputs(const cJSON *event, struct df_output_summary *s)
{
    const cJSON *o;
    cJSON_ArrayForEach (o, df_json_at(event, "outputs")) {
        const char *action = df_json_str(o, "action");
        if (action && !df_streq(action, "noop"))
            s->output_changes = true;
    }
}

/* Writes text, redacted, to out. Takes over text; NULL: no memory. */
static int keep_redacted(char *text, const struct df_redact_set *set, char *out, size_t size,
                         struct df_err *err)
{
    DF_FREE char *owned = text;
    DF_BUF struct df_buf clean = DF_BUF_INIT(2 * DF_LIMIT_EVENT_LINE);
    if (df_check_alloc(owned, err) < 0 || df_redact_string(set, owned, &clean, err) < 0)
        return -1;
    (void)snprintf(out, size, "%s", df_buf_str(&clean));
    df_json_show_nul(out);
    return 0;
}

static int keep_first_error(const cJSON *event, const struct df_redact_set *set,
                            struct df_output_summary *s, struct df_err *err)
{
    const char *summary = df_json_str(event, "diagnostic.summary");
    const char *address = df_json_str(event, "diagnostic.address");
    const char *detail = df_json_str(event, "diagnostic.detail");
    const char *file = df_json_str(event, "diagnostic.range.filename");
    long long line = (long long)df_json_int(event, "diagnostic.range.start.line", 0);
    if (keep_redacted(df_strf("%s%s%s%s", summary ? summary : "error", address ? " (" : "",
                              address ? address : "", address ? ")" : ""),
                      set, s->first_error, sizeof s->first_error, err) < 0 ||
        keep_redacted(file ? df_strf("%s:%lld", file, line) : strdup(""), set, s->first_place,
                      sizeof s->first_place, err) < 0)
        return -1;
    return keep_redacted(strdup(detail ? detail : ""), set, s->first_detail, sizeof s->first_detail,
                         err);
}

/* Of a resource that is changed in an apply, not only read. */
static bool is_change(const cJSON *event)
{
    const char *action = df_json_str(event, "hook.action");
    return action && !df_streq(action, "read") && !df_streq(action, "noop");
}

static void count_applied(const char *type, struct df_output_summary *s)
{
    bool completed = df_streq(type, "apply_complete");
    s->begun_changes += df_streq(type, "apply_start");
    s->ended_changes += completed || df_streq(type, "apply_errored");
    s->applied += completed;
}

int df_event_count(const cJSON *event, const struct df_redact_set *set,
                   struct df_output_summary *summary, struct df_err *err)
{
    const char *type = df_json_str(event, "type");
    summary->begun |= df_json_at(event, "hook") != NULL;
    if (df_streq(type, "change_summary")) {
        summary->seen = true;
        count_sums(event, &summary->changes);
    } else if (df_streq(type, "planned_change"))
        count_planned(df_json_at(event, "change"), summary);
    else if (df_streq(type, "resource_drift"))
        summary->changes.of[DF_CHANGES_DRIFT]++;
    else if (df_streq(type, "outputs"))
        count_outputs(event, summary);
    else if (is_change(event))
        count_applied(type, summary);
    else if (df_streq(type, "diagnostic") &&
             df_streq(df_json_str(event, "diagnostic.severity"), "error") && summary->errors++ == 0)
        return keep_first_error(event, set, summary, err);
    return 0;
}

/* --- text ------------------------------------------------------------------------------------ */

/* The source lines, numbered, and the values of the expressions in them. */
static void render_snippet(const cJSON *snippet, struct df_buf *out)
{
    int64_t number = df_json_int(snippet, "start_line", 0);
    const char *code = df_json_str(snippet, "code");
    while (code && *code) {
        size_t n = strcspn(code, "\n");
        (void)df_buf_addf(out, "%4lld: ", (long long)number++);
        (void)df_buf_add(out, code, n);
        (void)df_buf_addc(out, '\n');
        code += n + (code[n] == '\n');
    }
    const cJSON *values = df_json_at(snippet, "values"), *v;
    if (cJSON_GetArraySize(values))
        (void)df_buf_adds(out, "    ├────────────────\n");
    cJSON_ArrayForEach (v, values) {
        const char *what = df_json_str(v, "traversal"), *is = df_json_str(v, "statement");
        if (what && is)
            (void)df_buf_addf(out, "    │ %s %s\n", what, is);
    }
}

static void render_location(const cJSON *diagnostic, struct df_buf *out)
{
    const char *address = df_json_str(diagnostic, "address");
    const char *file = df_json_str(diagnostic, "range.filename");
    const char *context = df_json_str(diagnostic, "snippet.context");
    if (address)
        (void)df_buf_addf(out, "\n  with %s%s\n", address, file ? "," : "");
    if (!file)
        return;
    (void)df_buf_addf(out, "%s  on %s line %lld%s%s:\n", address ? "" : "\n", file,
                      (long long)df_json_int(diagnostic, "range.start.line", 0),
                      context ? ", in " : "", context ? context : "");
    render_snippet(df_json_at(diagnostic, "snippet"), out);
}

static void render_diagnostic(const cJSON *diagnostic, struct df_buf *out)
{
    bool warning = df_streq(df_json_str(diagnostic, "severity"), "warning");
    const char *summary = df_json_str(diagnostic, "summary");
    const char *detail = df_json_str(diagnostic, "detail");
    (void)df_buf_addf(out, "\n%s: %s\n", warning ? "Warning" : "Error", summary ? summary : "");
    render_location(diagnostic, out);
    if (!df_str_empty(detail))
        (void)df_buf_addf(out, "\n%s%s", detail, df_ends_with(detail, "\n") ? "" : "\n");
}

static bool has_values(const cJSON *outputs)
{
    const cJSON *o;
    cJSON_ArrayForEach (o, outputs) {
        bool sensitive = df_json_bool(o, "sensitive", false);
        if (sensitive ? !df_json_str(o, "action") : cJSON_HasObjectItem(o, "value"))
            return true;
    }
    return false;
}

/* Outputs of a plan have an action and no value. */
static int render_outputs(const cJSON *outputs, struct df_buf *out, struct df_err *err)
{
    const cJSON *o;
    (void)df_buf_adds(out, has_values(outputs) ? "\nOutputs:\n\n" : "");
    cJSON_ArrayForEach (o, outputs) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(o, "value");
        if (df_json_bool(o, "sensitive", false)) {
            if (!df_json_str(o, "action"))
                (void)df_buf_addf(out, "%s = <sensitive>\n", o->string);
            continue;
        }
        if (!value)
            continue;
        (void)df_buf_addf(out, "%s = ", o->string);
        df_hcl_print_value(value, cJSON_GetObjectItemCaseSensitive(o, "type"), out);
        (void)df_buf_addc(out, '\n');
    }
    return df_buf_check(out, err);
}

/* True for events that the tool does not print as text, or that `show` prints after the plan. */
static bool is_silent(const cJSON *event, const char *type)
{
    static const char *const silent[] = {"version", "planned_change", "refresh_complete"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(silent); i++)
        if (df_streq(type, silent[i]))
            return true;
    return df_streq(type, "change_summary") &&
           df_streq(df_json_str(event, "changes.operation"), "plan");
}

/* Terraform's last resort for a state that no storage and no disk took. OpenTofu prints it bare. */
static int render_dumped_state(const cJSON *event, struct df_buf *out, struct df_err *err)
{
    const cJSON *state = cJSON_GetObjectItemCaseSensitive(event, "state");
    if (!cJSON_IsObject(state))
        return 0;
    DF_FREE char *text = df_json_print_nul(state);
    (void)df_buf_addf(out, "%s\n", text ? text : "");
    return df_check_alloc(text, err);
}

static bool is_end_of_apply(const cJSON *event, const char *type)
{
    return df_streq(type, "change_summary") &&
           df_streq(df_json_str(event, "changes.operation"), "apply");
}

static int render(const cJSON *event, bool destroys, struct df_buf *out, struct df_err *err)
{
    const char *type = df_json_str(event, "type");
    const char *message = df_json_str(event, "@message");
    const cJSON *diagnostic = df_json_at(event, "diagnostic");
    if (df_streq(type, "diagnostic") && cJSON_IsObject(diagnostic))
        render_diagnostic(diagnostic, out);
    else if (df_streq(type, "outputs"))
        return render_outputs(df_json_at(event, "outputs"), out, err);
    else if (destroys && is_end_of_apply(event, type))
        (void)df_buf_addf(out, "Destroy complete! Resources: %lld destroyed.\n",
                          (long long)df_json_int(event, "changes.remove", 0));
    else if (message && !is_silent(event, type))
        (void)df_buf_addf(out, "%s\n", message);
    if (df_streq(type, "log") && render_dumped_state(event, out, err) < 0)
        return -1;
    return df_buf_check(out, err);
}

int df_event_render(const cJSON *event, bool destroys, struct df_buf *out, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(4 * DF_LIMIT_EVENT_LINE);
    if (render(event, destroys, &text, err) < 0)
        return -1;
    (void)df_json_add_bytes(out, df_buf_str(&text));
    return df_buf_check(out, err);
}

/* --- redaction ------------------------------------------------------------------------------- */

static const char unshowable[] =
    "{\"@level\":\"warn\",\"@message\":\"dayfly: an event could not be masked and was left out\","
    "\"@module\":\"dayfly\",\"type\":\"log\"}";

bool df_event_is_progress(const cJSON *event)
{
    const char *output = df_json_str(event, "hook.output");
    return output && !strchr(output, '\n') &&
           df_streq(df_json_str(event, "type"), "provision_progress");
}

int df_event_set_progress(cJSON *event, const char *output, struct df_err *err)
{
    cJSON *hook = cJSON_GetObjectItemCaseSensitive(event, "hook");
    const char *message = df_json_str(event, "@message"), *before = df_json_str(hook, "output");
    bool repeats = message && df_ends_with(message, before);
    size_t kept = repeats ? strlen(message) - strlen(before) : 0;
    DF_FREE char *text = df_strf("%.*s%s", (int)kept, repeats ? message : "", output);
    return df_json_put(event, err, DF_STR_ALLOC("@message", text)) < 0
               ? -1
               : df_json_set_str(hook, "output", output, err);
}

int df_event_redact(cJSON *event, const char *line, size_t n, const struct df_redact_set *set,
                    struct df_buf *out, struct df_err *err)
{
    bool changed = false;
    if (df_redact_tree(set, event, &changed, err) < 0)
        return -1;
    DF_FREE char *text = changed || !line ? df_json_print_nul(event) : strndup(line, n);
    if (!text)
        return df_fail_oom(err);
    /* A match that is left spans JSON syntax, for example an escape sequence. */
    bool again = false;
    if (df_redact_text(set, &text, &again, err) < 0)
        return -1;
    DF_JSON cJSON *still = NULL;
    bool showable = !again || df_json_parse_nul(text, strlen(text), &still, NULL) == 0;
    (void)df_buf_adds(out, showable ? text : unshowable);
    return df_buf_check(out, err);
}
