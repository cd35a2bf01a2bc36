/*
 * Prints how a run ended: as a document for programs, or as text for people, with outputs. Read
 * df_summary_print() at the end first.
 */
#include "spawner/cli/follow/summary.h"

#include "common/base/clock.h"
#include "spawner/cli/follow/follow.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/outputs.h"
#include "spawner/cli/reasons.h"
#include "spawner/cli/text.h"
#include "spawner/model/labels.h"
#include "spawner/model/model.h"

int df_summary_tasks(struct df_cli *cli, const char *run, cJSON **ret, struct df_err *err)
{
    DF_FREE char *label = df_strf(DF_LABEL_RUN "=%s", run);
    DF_FREE char *escaped = label ? df_url_escape(label) : NULL;
    DF_FREE char *path = escaped ? df_strf("/v1/taskactions?label=%s", escaped) : NULL;
    DF_JSON cJSON *newest_first = NULL;
    if (df_cli_list(cli, path, &newest_first, err) < 0)
        return -1;
    cJSON *tasks = cJSON_CreateArray();
    if (!tasks)
        return df_fail_oom(err);
    while (newest_first->child)
        (void)cJSON_InsertItemInArray(
            tasks, 0, cJSON_DetachItemViaPointer(newest_first, newest_first->child));
    *ret = tasks;
    return 0;
}

/* ---- for programs ---- */

static const cJSON *task_named(const cJSON *tasks, const char *name)
{
    const cJSON *task = NULL;
    cJSON_ArrayForEach (task, tasks) {
        if (df_streq(df_json_str(task, "metadata.name"), name))
            return task;
    }
    return NULL;
}

static int copy_member(cJSON *to, const char *key, const cJSON *value, struct df_err *err)
{
    return value ? df_json_add(to, key, cJSON_Duplicate(value, true), err) : 0;
}

/* Adds the run's entry for a step, and members that only the TaskAction has. */
static int add_step(cJSON *steps, const cJSON *entry, const cJSON *task, struct df_err *err)
{
    cJSON *step = cJSON_Duplicate(entry, true);
    if (df_json_append(steps, step, err) < 0)
        return -1;
    static const char *const members[][2] = {
        {"exitCode", "status.exitCode"},   {"reason", "status.reason"},
        {"message", "status.message"},     {"unrecorded", "status.unrecorded"},
        {"host", "status.claimedBy.host"}, {"pid", "status.claimedBy.pid"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        if (!cJSON_HasObjectItem(step, members[i][0]) &&
            copy_member(step, members[i][0], df_json_at(task, members[i][1]), err) < 0)
            return -1;
    }
    return 0;
}

int df_summary_document(const cJSON *run, const cJSON *tasks, const cJSON *outputs, cJSON **ret,
                        struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    if (copy_member(doc, "run", run, err) < 0)
        return -1;
    cJSON *steps = df_json_array_at(doc, "steps");
    if (!steps)
        return df_fail_oom(err);
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, df_json_at(run, "status.steps")) {
        if (add_step(steps, entry, task_named(tasks, df_json_str(entry, "taskAction")), err) < 0)
            return -1;
    }
    const cJSON *plan = df_json_at(run, "status.planSummary");
    if (df_json_add(doc, "planSummary", plan ? cJSON_Duplicate(plan, true) : cJSON_CreateNull(),
                    err) < 0 ||
        copy_member(doc, "outputs", outputs, err) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}

/* ---- for people ---- */

/* True if the log ended with this reason: "dayfly: PlanFailed: ...". Of a lock the service may know
 * more than the log: which of its steps has left it. */
static bool is_already_shown(const char *note, const char *reason)
{
    bool lock = df_streq(reason, "StateLocked");
    DF_FREE char *start = reason && !lock ? df_strf("dayfly: %s", reason) : NULL;
    return start && df_starts_with(note, start);
}

static void add_message(const char *message, struct df_buf *out)
{
    if (df_str_empty(message))
        return;
    (void)df_buf_adds(out, "  ");
    df_text_safe(out, message, strlen(message));
    (void)df_buf_addc(out, '\n');
}

static void add_how(const cJSON *run, const cJSON *tasks, const char *note, struct df_buf *out)
{
    char took[DF_SHORT_TEXT];
    const char *reason = df_json_str(run, "status.reason");
    const char *message = df_json_str(run, "status.message");
    int64_t us = df_text_span(run, "metadata.creationTimestamp", "status.finishedAt", df_real_us());
    if (df_streq(reason, df_run_phase(run)))
        reason = NULL; /* Discarded, Canceled: the phase is the reason */
    (void)df_buf_addf(out, "%s: %s in %s%s%s\n", df_json_str(run, "metadata.name"),
                      df_run_phase(run), df_text_duration(us, took), reason ? ": " : "",
                      reason ? reason : "");
    if (df_streq(df_run_phase(run), "Succeeded")) {
        if (!df_run_takes_turn(run))
            add_message(message, out); /* a dry-run has one if its plan misleads */
        return;
    }
    const struct df_reason *known = reason ? df_reason_find(reason) : NULL;
    if (is_already_shown(note, reason)) {
        /* nothing to add */
    } else if (!df_str_empty(message)) {
        add_message(message, out);
    } else if (known) {
        (void)df_buf_addf(out, "  %s\n", known->meaning);
    }
    bool is_partial = df_run_exit(run, tasks) == DF_EXIT_PARTIAL;
    if (is_partial && df_streq(df_run_phase(run), "Canceled"))
        (void)df_buf_adds(out, "  The apply had changed something before it was canceled.\n");
    if (is_partial || df_streq(df_run_phase(run), "Failed"))
        (void)df_buf_addf(out, "  `dayfly why %s` says more.\n", df_json_str(run, "metadata.name"));
}

/* True if the run had no apply, at whose end the tool would have printed the outputs. The only
 * output of a platform is its report, as long as its components are many. */
static bool shows_outputs(const cJSON *run)
{
    return df_streq(df_json_str(run, "status.reason"), "NoChanges") &&
           df_streq(df_json_str(run, "spec.action"), "provision") &&
           !df_streq(df_json_str(run, "status.tool.name"), "platform");
}

static int print_text(const cJSON *run, const cJSON *tasks, const cJSON *outputs, const char *note,
                      struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    add_how(run, tasks, note, &text);
    if (shows_outputs(run) && cJSON_GetArraySize(outputs) > 0) {
        (void)df_buf_adds(&text, "\nOutputs:\n\n");
        if (df_outputs_text(outputs, &text, err) < 0)
            return -1;
    }
    return df_buf_check(&text, err) < 0 ? -1 : df_cli_print(df_buf_str(&text), err);
}

/* A person who reads standard error is told as well how the run ended. */
static void tell_how(const cJSON *run, const cJSON *tasks, const char *note)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    add_how(run, tasks, note, &text);
    df_text_write(STDERR_FILENO, df_buf_str(&text), text.len);
}

static int print_document(const struct df_cli *cli, const cJSON *run, const cJSON *tasks,
                          const cJSON *outputs, const char *note, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_summary_document(run, tasks, outputs, &doc, err) < 0)
        return -1;
    if (df_run_is_final(run))
        tell_how(run, tasks, note);
    return df_cli_print_json(cli, doc, err);
}

/* How the run ended is told also while the storage of the outputs is away, or if the state is
 * encrypted: then people have seen them in the log. *ret is unchanged then. */
static int fetch_outputs(struct df_cli *cli, const char *executor, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_outputs_fetch(cli, executor, ret, &why) == 0)
        return 0;
    bool is_encrypted = df_streq(why.reason, "StateEncrypted");
    if (why.cls != DF_ERR_RETRY && !is_encrypted)
        return df_err_pass(err, &why);
    if (!is_encrypted)
        df_cli_note("the outputs of executor %s cannot be read now: %s", executor, why.message);
    else if (df_cli_output(cli)[0])
        df_cli_note("no outputs: %s", why.message);
    return 0;
}

int df_summary_print(struct df_cli *cli, const cJSON *run, const char *note, struct df_err *err)
{
    DF_JSON cJSON *tasks = NULL, *outputs = NULL;
    const char *executor = df_json_str(run, "spec.executorRef.name");
    if (df_summary_tasks(cli, df_json_str(run, "metadata.name"), &tasks, err) < 0 ||
        fetch_outputs(cli, executor, &outputs, err) < 0)
        return -1;
    int printed = df_cli_output(cli)[0] ? print_document(cli, run, tasks, outputs, note, err)
                                        : print_text(run, tasks, outputs, note, err);
    return printed < 0 ? -1 : (int)df_run_exit(run, tasks);
}
