/*
 * dayfly why: explains how a run or a workflow ended: cause, stages, the end of the log, and what
 * to do. Read tell() for a run and why_task() for a TaskAction.
 */
#include "common/base/clock.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/follow/summary.h"
#include "spawner/cli/named.h"
#include "spawner/cli/policies.h"
#include "spawner/cli/reasons.h"
#include "spawner/cli/task_words.h"
#include "spawner/cli/text.h"
#include "spawner/cli/timeline.h"
#include "spawner/cli/unrecorded.h"
#include "spawner/model/engine_kinds.h"
#include "spawner/model/errored_states.h"
#include "spawner/model/model.h"
#include "spawner/model/policy.h"
#include "spawner/model/task_kinds.h"
#include "spawner/model/waiting.h"

#define TAIL_BYTES (16 * DF_KIB)
#define TAIL_LINES 20
#define REPEATED_BYTES 200 /* of a message: enough to recognize it */

/* ---- the end of the log ---- */

static int keep_tail(void *arg, const char *bytes, size_t n)
{
    struct df_buf *tail = arg;
    if (n > TAIL_BYTES) {
        bytes += n - TAIL_BYTES;
        n = TAIL_BYTES;
    }
    if (tail->len + n > TAIL_BYTES)
        df_buf_consume(tail, tail->len + n - TAIL_BYTES);
    return df_buf_add(tail, bytes, n);
}

/* The beginning of the last lines. */
static const char *last_lines(const struct df_buf *tail, size_t lines)
{
    const char *text = df_buf_str(tail), *p = text + tail->len;
    for (size_t seen = 0; p > text; p--)
        if (p[-1] == '\n' && p != text + tail->len && ++seen == lines)
            break;
    return p;
}

/* True if the line repeats the message, which add_cause() has printed: the runner ends the log with
 * it. */
static bool repeats(const char *line, size_t n, const char *message)
{
    size_t m = message ? strnlen(message, REPEATED_BYTES) : 0;
    return m && memmem(line, n, message, m);
}

static int add_log(struct df_cli *cli, const cJSON *run, const char *step, struct df_buf *out,
                   struct df_err *err)
{
    const char *message = df_json_str(run, "status.message");
    DF_FREE char *path = df_path("runs", df_json_str(run, "metadata.name"), "log", NULL);
    DF_FREE char *full = path ? df_strf("%s?step=%s", path, step) : NULL;
    DF_BUF struct df_buf tail = DF_BUF_INIT(TAIL_BYTES);
    if (!full)
        return df_fail_oom(err);
    struct df_err none = {0};
    if (df_client_fetch(cli->client, full, keep_tail, &tail, &none) < 0) {
        /* The documents have the cause; the log may be removed by now. */
        (void)df_buf_adds(out, "There is no log to show: ");
        df_text_safe(out, none.message, strlen(none.message));
        return df_buf_addc(out, '\n') < 0 ? df_buf_check(out, err) : 0;
    }
    if (!tail.len)
        return 0;
    const char *from = last_lines(&tail, TAIL_LINES);
    size_t n = tail.len - (size_t)(from - df_buf_str(&tail));
    (void)df_buf_adds(out, "The log ends with:\n");
    for (const char *line = from, *end = from + n; line < end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((eol ? eol : end) - line);
        if (!repeats(line, len, message)) {
            (void)df_buf_adds(out, "  | ");
            df_text_safe(out, line, len);
            (void)df_buf_addc(out, '\n');
        }
        line += len + 1;
    }
    (void)df_buf_addc(out, '\n');
    return 0;
}

/* ---- the cause ---- */

/* What is in the way now: it is tried again and again, and nothing else is to be said. */
static void add_wait(const cJSON *waiting, struct df_buf *out)
{
    DF_FREE char *text = df_waiting_text(waiting, false);
    (void)df_buf_adds(out, "It ");
    df_text_safe(out, text ? text : "waits", text ? strlen(text) : strlen("waits"));
    (void)df_buf_adds(out, "\nIt goes on by itself when that is over.\n");
}

/* A run that was applied is not accepted before its executor is there. */
static void add_turn(const cJSON *run, const cJSON *executor, struct df_buf *out)
{
    const char *name = df_json_str(run, "spec.executorRef.name");
    if (executor)
        (void)df_buf_addf(out,
                          "It waits for its turn: runs of an executor go one at a time, "
                          "`dayfly get runs --executor %s` lists them.\n",
                          name);
    else
        (void)df_buf_addf(out,
                          "Its executor %s does not exist: it waits until somebody makes it, and "
                          "fails after timeouts.pending.\n",
                          name);
}

/* Of a run under way, the step that no runner has begun, or NULL. */
static const cJSON *waiting_step(const cJSON *tasks)
{
    const cJSON *task = NULL;
    cJSON_ArrayForEach (task, tasks) {
        if (!df_task_is_final(task) && !df_task_has_runner(task))
            return task;
    }
    return NULL;
}

static void add_progress(const cJSON *run, const cJSON *tasks, struct df_buf *out)
{
    const cJSON *step = waiting_step(tasks);
    const char *message = step ? df_task_message(step) : NULL;
    const struct df_engine_kind *engine = df_engine_kind_of(df_json_str(step, "spec.engine"));
    if (!step) {
        (void)df_buf_addf(out, "It is under way: `dayfly logs -f %s` follows it.\n",
                          df_json_str(run, "metadata.name"));
        return;
    }
    (void)df_buf_addf(out, "Its step %s waits for its %s", df_json_str(step, "metadata.name"),
                      engine && engine->runs_pods ? "pod" : "runner");
    if (!df_str_empty(message)) {
        (void)df_buf_adds(out, ": ");
        df_text_safe(out, message, strlen(message));
    }
    (void)df_buf_addc(out, '\n');
}

static void add_message(const cJSON *run, struct df_buf *out)
{
    const char *message = df_json_str(run, "status.message");
    if (df_str_empty(message))
        return;
    df_text_safe(out, message, strlen(message));
    (void)df_buf_addc(out, '\n');
}

/* executor: NULL: there is none. */
static void add_waiting(const cJSON *run, const cJSON *tasks, const cJSON *executor,
                        struct df_buf *out)
{
    const char *name = df_json_str(run, "metadata.name");
    const cJSON *waiting = df_waiting_of(run);
    if (waiting)
        add_wait(waiting, out);
    else if (df_streq(df_run_phase(run), "WaitingApproval")) {
        if (df_json_at(run, "spec.decision"))
            (void)df_buf_addf(out, "The plan is approved: `dayfly cancel %s` stops it.\n", name);
        else
            (void)df_buf_addf(out,
                              "The plan is made and waits for a decision: `dayfly approve %s%s` or "
                              "`dayfly discard %s`.\n",
                              name, df_policies_failed(run, "soft") ? " --reason TEXT" : "", name);
        add_message(run, out);
    } else if (df_streq(df_run_phase(run), "Pending"))
        add_turn(run, executor, out);
    else
        add_progress(run, tasks, out);
}

/* note: {by, reason} */
static void add_decision(const char *what, const cJSON *note, struct df_buf *out)
{
    const char *by = df_json_str(note, "by"), *why = df_json_str(note, "reason");
    (void)df_buf_addf(out, "%s by %s%s", what, by ? by : "nobody known", why ? ": " : "");
    if (why)
        df_text_safe(out, why, strlen(why));
    (void)df_buf_addc(out, '\n');
}

static void add_approvals(const cJSON *run, struct df_buf *out)
{
    const cJSON *decision;
    cJSON_ArrayForEach (decision, df_json_at(run, "status.decisions")) {
        if (df_json_at(decision, "by"))
            add_decision("Approved", decision, out);
        else /* spec.automaticFor */
            (void)df_buf_addf(out, "Approved: %s\n", df_json_str(decision, "reason"));
    }
}

static void add_cause(const cJSON *run, struct df_buf *out)
{
    const char *reason = df_json_str(run, "status.reason");
    const struct df_reason *known = reason ? df_reason_find(reason) : NULL;
    if (known)
        (void)df_buf_addf(out, "%s: %s\n", reason, known->meaning);
    add_message(run, out);
    const cJSON *cancel = df_json_at(run, "spec.cancel");
    if (df_streq(df_run_phase(run), "Canceled") || df_streq(df_run_phase(run), "Discarded"))
        add_decision("Decided", cancel ? cancel : df_json_at(run, "spec.decision"), out);
}

/* The advice if dayfly does not store the state, and therefore has no versions and no errored state
 * of it; else NULL. */
static const char *next_elsewhere(const cJSON *run, const char *reason)
{
    static const struct {
        const char *reason, *next;
    } table[] = {{"StateLocked",
                  "Wait for the holder of the lock. Only if it is certainly dead, release the "
                  "lock: `dayfly state unlock EXECUTOR`."},
                 {"StateUnavailable",
                  "Look at the storage and its credentials, then run again. A state that could not "
                  "be stored is kept: `dayfly state errored EXECUTOR`, then `dayfly state "
                  "push-errored EXECUTOR` before any other run."},
                 {"StateRefused", "Find out who else writes the state, then run again."},
                 {"PlanUsed", "Look at the storage of the state, and run again."},
                 {"RunnerLost",
                  "The tool stores its state in that storage by itself: a dry-run shows what is "
                  "there and what is missing."}};
    const char *type = df_json_str(run, "spec.snapshot.storage.type");
    if (!type || df_streq(type, "managed"))
        return NULL;
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        if (df_streq(table[i].reason, reason))
            return table[i].next;
    }
    return NULL;
}

/* Names the directory that `init` could not read: "lstat ../mod: no such file or directory". */
static void add_unreadable(const char *message, struct df_buf *out)
{
    static const char key[] = "lstat ";
    const char *at = strstr(message, key);
    const char *path = at ? at + strlen(key) : "a directory";
    size_t n = at ? strcspn(path, ": ") : strlen(path);
    (void)df_buf_adds(out, "What to do: the module uses ");
    df_text_safe(out, path, n);
    (void)df_buf_adds(out, df_starts_with(path, "..")
                               ? ", which is outside of the folder given: name its root and "
                                 "--folder (`dayfly run ROOT --folder FOLDER`).\n"
                               : ", which is not in the source.\n");
}

/* True for a message about a file that the tool looks for outside of the source: `no file exists at
 * "../x"`. */
static bool is_file_outside(const char *message)
{
    const char *at = strstr(message, "no file exists at ");
    return at && strstr(at, "..");
}

#define NAME_ROOT                                                                                  \
    "What to do: name a directory that has both, and the module in it with --folder (`dayfly run " \
    "ROOT --folder FOLDER`); of a directory, `dayfly run DIRECTORY` takes along what the module "  \
    "names with ../.\n"

/* True if the message is about something that `init` downloads. */
static bool is_unreachable(const char *message)
{
    static const char *const words[] = {"provider", "registry",   "download", "dial tcp",
                                        "lookup ",  "connection", "timeout",  "timed out"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (strcasestr(message, words[i]))
            return true;
    return false;
}

/* Adds special advice for InitFailed. False: there is none for this message. */
static bool add_next_of_init(const char *message, struct df_buf *out)
{
    if (strstr(message, "outside of the source"))
        (void)df_buf_adds(out, NAME_ROOT);
    else if (strstr(message, "nreadable module directory"))
        add_unreadable(message, out);
    else if (!is_unreachable(message))
        (void)df_buf_adds(out, "What to do: Read the log above, mend the configuration, then run "
                               "again.\n");
    else
        return false;
    return true;
}

/* Names the option that gives a variable without a value: `input variable "v" is not set`. */
static bool add_variable(const char *message, struct df_buf *out)
{
    static const char key[] = "input variable \"", rest[] = "\" is not set";
    const char *at = strstr(message, key), *name = at ? at + strlen(key) : "";
    size_t n = strcspn(name, "\"");
    if (!n || !df_starts_with(name + n, rest))
        return false;
    (void)df_buf_adds(out, "What to do: give it a value: --var ");
    df_text_safe(out, name, n);
    (void)df_buf_adds(out, "=VALUE, --var-file FILE, or a terraform.tfvars in the module; --keep "
                           "stores it in the executor.\n");
    return true;
}

static void add_next(const cJSON *run, struct df_buf *out)
{
    const char *reason = df_json_str(run, "status.reason");
    const char *message = df_json_str(run, "status.message");
    if (df_streq(reason, "InitFailed") && message && add_next_of_init(message, out))
        return;
    if (df_streq(reason, "NoConfiguration") && message && strstr(message, ".tofu files alone")) {
        (void)df_buf_adds(out,
                          "What to do: install OpenTofu and choose it with --tool opentofu.\n");
        return;
    }
    if (df_streq(reason, "PlanFailed") && message && is_file_outside(message)) {
        (void)df_buf_adds(out, NAME_ROOT);
        return;
    }
    if (df_streq(reason, "PlanFailed") && message && add_variable(message, out))
        return;
    const char *elsewhere = next_elsewhere(run, reason);
    const struct df_reason *known = reason ? df_reason_find(reason) : NULL;
    if (elsewhere || (known && known->next))
        (void)df_buf_addf(out, "What to do: %s\n", elsewhere ? elsewhere : known->next);
}

static int add_tasks(const struct df_cli *cli, const cJSON *tasks, struct df_buf *out,
                     struct df_err *err)
{
    const cJSON *task = NULL;
    cJSON_ArrayForEach (task, tasks) {
        int64_t code = df_json_int(task, "status.exitCode", -1);
        int64_t pid = df_json_int(task, "status.claimedBy.pid", 0);
        (void)df_buf_addf(out, "\n%s: %s", df_json_str(task, "metadata.name"),
                          df_task_reason(task));
        if (code >= 0)
            (void)df_buf_addf(out, ", exit code %lld", (long long)code);
        if (pid)
            (void)df_buf_addf(out, ", process %lld on %s", (long long)pid,
                              df_json_str(task, "status.claimedBy.host"));
        (void)df_buf_addc(out, '\n');
        if (df_timeline_add(task, df_cli_text_shape(cli), out, err) < 0)
            return -1;
        df_unrecorded_add(task, out);
    }
    return 0;
}

/* The last step, whose log is shown. */
static const char *last_step(const cJSON *run)
{
    const cJSON *steps = df_json_at(run, "status.steps");
    int n = cJSON_GetArraySize(steps);
    return n ? df_json_str(cJSON_GetArrayItem(steps, n - 1), "name") : NULL;
}

/* A run that was made again from a backup is younger than its end: then it counts from its
 * start. */
static int64_t took_us(const cJSON *run)
{
    int64_t us = df_text_span(run, "metadata.creationTimestamp", "status.finishedAt", df_real_us());
    return us > 0 ? us : df_text_span(run, "status.startedAt", "status.finishedAt", df_real_us());
}

/* *ret: the executor of the run or step, or NULL: there is none. */
static int find_executor(struct df_cli *cli, const char *name, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = name ? df_path("executors", name, NULL) : NULL;
    struct df_err why = {0};
    if (!name)
        return 0;
    if (df_cli_call(cli, "GET", path, NULL, ret, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return 0;
}

/* Instead of the advice of the reason: a dry-run, or another run, would work on the old state. */
static void add_next_of_errored(const cJSON *executor, struct df_buf *out)
{
    const char *name = df_json_str(executor, "metadata.name");
    (void)df_buf_addf(out,
                      "The state of this run is not stored; it is kept as an errored state, and "
                      "until it is stored further runs of %s are refused.\n"
                      "What to do: mend what kept the state from being stored, then `dayfly state "
                      "push-errored %s`; or, if nobody needs it, `dayfly state discard-errored "
                      "%s`.\n",
                      name, name, name);
}

/* executor: NULL: there is none. */
static int print_cause(struct df_cli *cli, const cJSON *run, const cJSON *tasks,
                       const cJSON *executor, struct df_buf *out, struct df_err *err)
{
    char took[DF_SHORT_TEXT];
    const char *name = df_json_str(run, "metadata.name"), *step = last_step(run);
    (void)df_buf_addf(out, "%s, %s of %s: %s after %s\n", name, df_json_str(run, "spec.action"),
                      df_json_str(run, "spec.executorRef.name"), df_run_phase(run),
                      df_text_duration(took_us(run), took));
    if (df_run_is_final(run))
        add_cause(run, out);
    else
        add_waiting(run, tasks, executor, out);
    add_approvals(run, out);
    df_policies_show(run, out);
    if (add_tasks(cli, tasks, out, err) < 0)
        return -1;
    (void)df_buf_addc(out, '\n');
    if (df_streq(df_run_phase(run), "Failed") && step && add_log(cli, run, step, out, err) < 0)
        return -1;
    if (df_errored_is_of(executor, name))
        add_next_of_errored(executor, out);
    else
        add_next(run, out);
    return df_buf_check(out, err);
}

static int why_run(struct df_cli *cli, const char *name, struct df_buf *out, struct df_err *err)
{
    DF_FREE char *path = df_path("runs", name, NULL);
    DF_JSON cJSON *run = NULL, *tasks = NULL, *executor = NULL;
    if (df_cli_call(cli, "GET", path, NULL, &run, err) < 0 ||
        df_summary_tasks(cli, name, &tasks, err) < 0 ||
        find_executor(cli, df_json_str(run, "spec.executorRef.name"), &executor, err) < 0)
        return -1;
    return print_cause(cli, run, tasks, executor, out, err);
}

/* "restart, workflow of deployment/web: Completed", "tk-12-…, terraformPlan of net, job 12:
 * Planned" */
static void add_heading(const cJSON *task, struct df_buf *out)
{
    const char *type = df_json_str(df_task_of_upstream(task), "type");
    DF_BUF struct df_buf owner = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    df_text_owner(df_json_at(task, "spec"), &owner);
    (void)df_buf_addf(out, "%s, %s of ", df_json_str(task, "metadata.name"),
                      type ? type : df_json_str(task, "spec.action"));
    df_text_safe(out, df_buf_str(&owner), owner.len);
    (void)df_buf_addf(out, ": %s\n", df_task_reason(task));
}

/* Explains one TaskAction. */
static int why_task(struct df_cli *cli, const char *name, struct df_buf *out, struct df_err *err)
{
    DF_FREE char *path = df_path("taskactions", name, NULL);
    DF_JSON cJSON *task = NULL, *executor = NULL;
    if (df_cli_call(cli, "GET", path, NULL, &task, err) < 0 ||
        find_executor(cli, df_json_str(task, "spec.executorRef.name"), &executor, err) < 0)
        return -1;
    const char *message = df_task_message(task);
    const struct df_reason *known = df_reason_of_kind(df_task_kind(task)->id, df_task_reason(task));
    add_heading(task, out);
    if (known)
        (void)df_buf_addf(out, "%s\n", known->meaning);
    if (!df_str_empty(message)) {
        df_text_safe(out, message, strlen(message));
        (void)df_buf_addc(out, '\n');
    }
    if (df_task_is_canceled(task))
        add_decision(df_task_is_final(task) ? "Canceled" : "It is to end: canceled",
                     df_json_at(task, "spec.cancel"), out);
    if (df_waiting_of(task))
        add_wait(df_waiting_of(task), out);
    if (df_timeline_add(task, df_cli_text_shape(cli), out, err) < 0)
        return -1;
    df_unrecorded_add(task, out);
    if (df_errored_is_of(executor, df_json_str(task, "spec.runRef.name"))) {
        (void)df_buf_addc(out, '\n');
        add_next_of_errored(executor, out);
    } else if (known && known->next) {
        (void)df_buf_addf(out, "\nWhat to do: %s\n", known->next);
    }
    return df_buf_check(out, err);
}

int df_cmd_why(struct df_cli *cli, struct df_err *err)
{
    const char *word = df_cli_word(cli, 0), *task = df_named_task(word);
    DF_FREE char *run = NULL;
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (task) {
        if (why_task(cli, task, &out, err) < 0)
            return -1;
    } else if (df_named_run(cli, word, &run, err) < 0 || why_run(cli, run, &out, err) < 0) {
        return -1;
    }
    return df_cli_print(df_buf_str(&out), err);
}
