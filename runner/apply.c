/*
 * Fetches the approved bundle, checks it against this step (run, source, tool, lock file), applies
 * the plan file, and saves a state that tofu could not store. Read df_apply() at the end first.
 */
#include "runner/apply.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/bundle/bundle.h"
#include "runner/args.h"
#include "runner/init_artifacts.h"
#include "runner/lineage.h"
#include "runner/plan_bundle.h"
#include "runner/planned.h"
#include "runner/pulled.h"
#include "runner/tofu/failure.h"
#include "runner/tool_run.h"
#include "runner/touched.h"

/* As long as the result is retried: the file may be the only record of what was created. */
enum { ERRORED_STATE_RETRY_MS = DF_TIMEOUT_RESULT_SECONDS * 1000 };

/* ---- the approved plan ---- */

struct approved {
    int fd;        /* of the bundle; owned */
    cJSON *header; /* owned */
    char *plan;    /* path of the plan file; owned */
};

static void approved_free(struct approved *a)
{
    if (a->fd >= 0)
        (void)close(a->fd);
    cJSON_Delete(a->header);
    free(a->plan);
}

/* Writes plan file and lock file to where tofu reads them. */
static int unpack(struct df_context *c, struct approved *a, struct df_err *err)
{
    a->plan = df_fs_join(c->dirs->secret, "plan");
    DF_FREE char *lock = df_fs_join(c->source.module_dir, ".terraform.lock.hcl");
    if (!a->plan || !lock)
        return df_fail_oom(err);
    if (df_bundle_extract(a->fd, "plan", a->plan, err) < 0)
        return df_err_reason(err, "PlanCorrupt");
    const char *digest = df_json_str(a->header, "lockFileSha256");
    if (!digest)
        return 0;
    if (unlink(lock) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "replace %s", lock);
    if (df_bundle_extract(a->fd, "lock", lock, err) < 0)
        return -1;
    return df_json_add_str(c->result, "lockFileSha256", digest, err);
}

/* The tools of today compare, too; those of before Terraform 1.6 and OpenTofu 1.6 take a plan of no
 * state for any. state: of the step document, as it is now. What cannot be read is left to the
 * tool. */
static int check_state(const struct df_context *c, const char *plan, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE_COMPARED);
    const cJSON *state = df_json_at(c->doc, "state");
    const char *lineage = df_json_str(state, "lineage");
    struct df_pulled p;
    if (!lineage || df_planned_state(c, plan, &text, NULL) < 0 ||
        df_pulled_read_head(df_buf_str(&text), &p, NULL) < 0)
        return 0;
    if (df_streq(p.lineage, lineage) && p.serial == df_json_int(state, "serial", p.serial))
        return 0;
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "PlanStale",
        "the state has changed since the plan was made (lineage \"%s\" and serial "
        "%lld then, \"%s\" and %lld now): nothing was applied, plan again",
        p.lineage, (long long)p.serial, lineage, (long long)df_json_int(state, "serial", 0));
}

/* ---- apply ---- */

/* The only argument of the plan that the plan file does not contain. */
static void add_parallelism(const struct df_context *c, struct df_strs *args)
{
    const cJSON *argument;
    cJSON_ArrayForEach (argument, df_json_at(c->doc, "arguments")) {
        if (cJSON_IsString(argument) && df_starts_with(argument->valuestring, "-parallelism="))
            (void)df_strs_add(args, argument->valuestring);
    }
}

static bool is_destroy(const cJSON *header)
{
    return df_streq(df_json_str(header, "action"), DF_ACTION_PLAN_DESTROY);
}

/* The tool says of any plan that it was applied. From events alone the log is written here. */
static enum df_command_events add_events(const struct df_context *c, const cJSON *header,
                                         struct df_strs *args)
{
    if (!is_destroy(header))
        return df_args_add_events(c, args);
    df_output_destroys(c->output);
    (void)df_strs_add(args, "-json");
    return DF_EVENTS_ON_STDOUT;
}

static int run_apply(struct df_context *c, const struct approved *a, int *ret_code,
                     struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, "apply");
    (void)df_strs_add(&args, "-input=false");
    (void)df_strs_add(&args, "-no-color");
    (void)df_strs_add(&args, "-auto-approve");
    (void)df_strs_add(&args, DF_LOCK_TIMEOUT);
    add_parallelism(c, &args);
    enum df_command_events events = add_events(c, a->header, &args);
    (void)df_strs_add(&args, a->plan);
    if (df_strs_check(&args, err) < 0)
        return -1;
    return df_tool_run(c, &args, events, !c->has_plugins, NULL, ret_code, err);
}

/* ---- errored.tfstate ---- */

/* Of the source, or of a provider: the tool's own is made after this. */
static int remove_errored_state(const struct df_context *c, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->source.module_dir, "errored.tfstate");
    return df_fs_remove_tree(path, err);
}

/* Moves the file out of the work directory, which is removed at the end. */
static int keep_errored_state(const struct df_context *c, const char *path, char **ret,
                              struct df_err *err)
{
    DF_FREE char *kept = df_fs_join(c->step_dir, "errored.tfstate");
    if (!kept)
        return df_fail_oom(err);
    if (rename(path, kept) < 0)
        return df_fail_errno(err, errno, "move it to %s", kept);
    *ret = DF_TAKE(kept);
    return df_fs_sync_dir(c->step_dir, err);
}

/* tofu writes a file; a link was made by the module. */
static bool is_plain_file(const char *path)
{
    DF_CLOSE int fd = -1;
    return df_fs_open_plain(path, O_RDONLY, 0, &fd, NULL) == 0;
}

/* A full disk cuts the file off. A state, encrypted or not, is one JSON object. */
static bool is_whole(const char *path)
{
    DF_CLOSE int fd = -1;
    struct stat st;
    char end[16];
    if (df_fs_open_plain(path, O_RDONLY, 0, &fd, NULL) < 0 || fstat(fd, &st) < 0)
        return false;
    off_t from = st.st_size > (off_t)sizeof(end) ? st.st_size - (off_t)sizeof(end) : 0;
    ssize_t n = pread(fd, end, sizeof(end), from);
    while (n > 0 && isspace((unsigned char)end[n - 1]))
        n--;
    return n > 0 && end[n - 1] == '}';
}

/* Uploads or keeps errored.tfstate. words: where the file is now, for the message; "" if there is
 * none. True if it is still here, where the engine may find it. */
static bool save_errored_state(struct df_context *c, char *words, size_t size)
{
    DF_FREE char *path = df_fs_join(c->source.module_dir, "errored.tfstate");
    DF_FREE char *kept = NULL;
    struct df_err why = {0}, unkept = {0};
    words[0] = '\0';
    if (!path || !is_plain_file(path))
        return false;
    bool is_handed_over = df_report_put_artifact(c->report, "errored-state", path,
                                                 df_mono_ms() + ERRORED_STATE_RETRY_MS, &why) == 0;
    if (is_handed_over) {
        (void)snprintf(
            words, size, "%s",
            is_whole(path)
                ? "; the new state was not stored, but kept as the errored state: push it "
                  "before anything else"
                : "; the new state was not stored, and the errored state is cut off: the "
                  "log has what the tool could print of it");
        (void)unlink(path); /* the spawner has it */
    } else if (keep_errored_state(c, path, &kept, &unkept) == 0)
        (void)snprintf(words, size, "; the new state was not stored, but kept in %s (%.100s)", kept,
                       why.message);
    else
        (void)snprintf(words, size, "; the new state was not stored; it is in %s (%.100s; %.100s)",
                       path, why.message, unkept.message);
    (void)df_output_note(c->output, "dayfly: errored.tfstate%s", words);
    return !is_handed_over;
}

/* ---- the end ---- */

static int fail_apply(struct df_context *c, const char *state_words, struct df_err *err)
{
    struct df_failure f;
    df_failure_from_events(df_output_summary(c->output), &f);
    (void)df_tool_failed(c, &f, "apply", "ApplyFailed", err);
    size_t used = strlen(err->message), words = strlen(state_words);
    size_t room = sizeof err->message - 1;
    if (used + words > room)
        used = words < room ? room - words : 0; /* cut the error: where the state is matters more */
    (void)snprintf(err->message + used, sizeof err->message - used, "%s", state_words);
    return -1;
}

static void apply_succeed(struct df_context *c, const cJSON *header)
{
    const struct df_output_summary *s = df_output_summary(c->output);
    char words[DF_CHANGES_WORDS];
    df_changes_words(&s->changes, true, words, sizeof words);
    df_context_set_outcome(c, is_destroy(header) ? "Destroyed" : "Applied", "%s", words);
}

static int apply_plan(struct df_context *c, const struct approved *a, struct df_err *err)
{
    int code = -1;
    char state_words[512] = "";
    if (check_state(c, a->plan, err) < 0 || remove_errored_state(c, err) < 0 ||
        run_apply(c, a, &code, err) < 0)
        return -1;
    /* After a success the tool has stored its state, and the file is not its own. */
    if (code != 0 && save_errored_state(c, state_words, sizeof state_words) &&
        df_json_add_bool(c->result, "leavesState", true, err) < 0)
        return -1;
    c->partial = code != 0 && (*state_words || df_apply_touched(c, a->plan));
    if (!df_json_at(c->doc, "expected.stateLineage"))
        df_lineage_note_new(c);
    if (code == 0) /* in an apply the tool tells nothing of them */
        df_output_moved(c->output, df_json_int(a->header, "planSummary.move", 0));
    if (df_context_mark(c, "executed", df_real_us(), err) < 0 ||
        df_context_add_summary(c, err) < 0 ||
        df_json_add_bool(c->result, "hasChanges", code == 0 || c->partial, err) < 0)
        return -1;
    if (code != 0)
        return fail_apply(c, state_words, err);
    apply_succeed(c, a->header);
    c->has_outputs = true;
    return df_context_mark(c, "stored", df_real_us(), err);
}

int df_apply(struct df_context *c, struct df_err *err)
{
    DF_CLEANUP(approved_free) struct approved a = {.fd = -1};
    if (df_plan_bundle_fetch(c, &a.fd, &a.header, err) < 0 || unpack(c, &a, err) < 0)
        return -1;
    if (df_init_artifacts_restore(c, a.header, a.fd, err) < 0 ||
        df_context_mark(c, "initialized", df_real_us(), err) < 0)
        return -1;
    if (df_stopped(df_stop_flag(c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before the plan was applied");
    return apply_plan(c, &a, err);
}
