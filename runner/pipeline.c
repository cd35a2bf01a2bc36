#include "runner/pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "runner/tofu/failure.h"

#define INIT_TAIL (256 * DF_KIB)

void df_pipeline_free(struct df_pipeline *p)
{
    cJSON_Delete(p->result);
    df_source_result_free(&p->source);
    df_tool_free(&p->tool);
    df_workspace_free(&p->workspace);
    free(p->pid_path);
    free(p->fifo_path);
}

/* ---- what is known so far ---- */

static int add_copy(cJSON *to, const cJSON *from, const char *name, struct df_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    return item ? df_json_add(to, name, cJSON_Duplicate(item, true), err) : 0;
}

int df_pipeline_mark(struct df_pipeline *p, const char *name, int64_t at_us, struct df_err *err)
{
    cJSON *timeline = df_json_array_at(p->result, "timeline");
    DF_JSON cJSON *news = cJSON_CreateObject();
    cJSON *latest = news ? df_json_array_at(news, "timeline") : NULL;
    cJSON *entry = cJSON_CreateObject();
    if (!timeline || !latest) {
        cJSON_Delete(entry);
        return df_fail_oom(err);
    }
    if (df_json_append(timeline, entry, err) < 0 || df_json_add_str(entry, "name", name, err) < 0 ||
        df_json_add_time(entry, "at", at_us, err) < 0 ||
        df_json_append(latest, cJSON_Duplicate(entry, true), err) < 0 ||
        add_copy(news, p->result, "source", err) < 0 || add_copy(news, p->result, "tool", err) < 0)
        return -1;
    df_report_progress(p->report, news);
    return 0;
}

int df_pipeline_add_summary(struct df_pipeline *p, struct df_err *err)
{
    const struct df_output_summary *s = df_output_summary(p->output);
    cJSON *summary = s->seen ? df_json_object_at(p->result, "planSummary") : NULL;
    if (!s->seen)
        return 0;
    if (!summary)
        return df_fail_oom(err);
    if (df_json_add_num(summary, "add", s->add, err) < 0 ||
        df_json_add_num(summary, "change", s->change, err) < 0 ||
        df_json_add_num(summary, "destroy", s->destroy, err) < 0)
        return -1;
    return df_json_add_num(summary, "import", s->import, err);
}

/* ---- source ---- */

/* What the fetch said, for people, now that it is over. */
static void show_fetch_log(struct df_pipeline *p, int fd)
{
    char piece[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n) {
        if (df_output_text(p->output, piece, (size_t)n, NULL) < 0)
            return;
    }
}

static int fetch(struct df_pipeline *p, struct df_err *err)
{
    DF_CLOSE int log = memfd_create("fetch", MFD_CLOEXEC);
    const struct df_source_request q = {.source = df_json_at(p->doc, "source"),
                                        .expected_commit = df_json_str(p->doc, "expected.commit"),
                                        .checkout = p->dirs->source,
                                        .private_dir = p->dirs->fetch,
                                        .log_fd = log,
                                        .stop = df_stop_flag(p->stop)};
    int failed = df_source_fetch(&q, &p->source, err);
    if (log >= 0)
        show_fetch_log(p, log);
    return failed ? df_err_reason(err, "SourceFailed") : 0;
}

static int check_source(const struct df_pipeline *p, struct df_err *err)
{
    const char *commit = df_json_str(p->doc, "expected.commit");
    const char *digest = df_json_str(p->doc, "expected.treeDigest");
    if (!df_str_empty(commit) && !df_streq(commit, p->source.commit))
        return df_fail_reason(err, DF_ERR_CONFLICT, "SourceChanged",
                              "planned from commit %s, but this is %s: plan again", commit,
                              p->source.commit);
    if (!df_str_empty(digest) && !df_streq(digest, p->source.tree_digest))
        return df_fail_reason(err, DF_ERR_CONFLICT, "SourceChanged",
                              "the source's files changed since the plan (their digest was %.12s, "
                              "now it is %.12s): plan again",
                              digest, p->source.tree_digest);
    return 0;
}

/* Where tofu leaves an errored.tfstate, for the engine of a runner that was killed. */
static int link_module(const struct df_pipeline *p, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(p->step_dir, "module");
    if (!path)
        return df_fail_oom(err);
    if ((unlink(path) < 0 && errno != ENOENT) || symlink(p->source.module_dir, path) < 0)
        return df_fail_errno(err, errno, "link %s", path);
    return 0;
}

static int stage_source(struct df_pipeline *p, struct df_err *err)
{
    if (fetch(p, err) < 0)
        return -1;
    cJSON *source = df_json_object_at(p->result, "source");
    if (!source)
        return df_fail_oom(err);
    if ((*p->source.commit && df_json_add_str(source, "commit", p->source.commit, err) < 0) ||
        df_json_add_str(source, "treeDigest", p->source.tree_digest, err) < 0)
        return -1;
    (void)df_output_note(p->output, "dayfly: source %s%s(files %.12s)", p->source.commit,
                         *p->source.commit ? " " : "", p->source.tree_digest);
    if (check_source(p, err) < 0 || link_module(p, err) < 0)
        return -1;
    return df_pipeline_mark(p, "sourced", df_real_us(), err);
}

/* ---- toolchain ---- */

/* An apply takes the very version that planned; a plan file is good for no other. */
static int find_tool(struct df_pipeline *p, struct df_err *err)
{
    const char *planned = df_json_str(p->doc, "expected.toolVersion");
    const char *name =
        planned ? df_json_str(p->doc, "expected.toolName") : df_json_str(p->doc, "runtime.name");
    struct df_tool_request r = {.constraint =
                                    planned ? planned : df_json_str(p->doc, "runtime.version"),
                                .tools = df_json_at(p->doc, "tools"),
                                .path_env = getenv("PATH"),
                                .stop = df_stop_flag(p->stop)};
    if (df_tool_kind_parse(name ? name : "opentofu", &r.kind, err) < 0)
        return -1;
    if (df_toolchain_find(&r, &p->tool, err) == 0)
        return 0;
    if (!planned || !df_streq(err->reason, "ToolMissing"))
        return df_err_reason(err, "ToolMissing");
    struct df_err why = *err;
    return df_fail_reason(err, DF_ERR_CONFLICT, "ToolVersionChanged",
                          "planned with %s %s, which is not here any more: %s", name, planned,
                          why.message);
}

static int stage_tool(struct df_pipeline *p, struct df_err *err)
{
    char version[DF_VERSION_TEXT];
    if (find_tool(p, err) < 0)
        return -1;
    const char *name = df_tool_kind_name(p->tool.kind);
    cJSON *tool = df_json_object_at(p->result, "tool");
    if (!tool)
        return df_fail_oom(err);
    if (df_json_add_str(tool, "name", name, err) < 0 ||
        df_json_add_str(tool, "version", df_version_format(&p->tool.version, version), err) < 0)
        return -1;
    (void)df_output_note(p->output, "dayfly: %s %s", name, version);
    return 0;
}

/* ---- workspace and init ---- */

static int stage_workspace(struct df_pipeline *p, struct df_err *err)
{
    if (df_workspace_prepare(p->doc, p->dirs, p->source.module_dir, &p->workspace, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    p->pid_path = df_fs_join(p->step_dir, "tofu.pid");
    p->fifo_path = df_fs_join(p->dirs->secret, "events");
    if (!p->pid_path || !p->fifo_path)
        return df_fail_oom(err);
    p->commander = (struct df_commander){
        .program = p->tool.path,
        .directory = p->source.module_dir,
        .env = &p->workspace.env,
        .fifo_path = p->fifo_path,
        .pid_path = p->pid_path,
        .output = p->output,
        .stop = p->stop,
        .grace_ms = df_json_int(p->doc, "graceSeconds", DF_TIMEOUT_GRACE_SECONDS) * 1000};
    return 0;
}

const char *df_pipeline_command_name(const struct df_pipeline *p, const char *command, char out[32])
{
    (void)snprintf(out, 32, "%s %s", df_tool_kind_program(p->tool.kind), command);
    return out;
}

static int fail_init(struct df_pipeline *p, const char *text, struct df_err *err)
{
    struct df_failure f;
    char name[32];
    df_failure_from_text(text, &f);
    DF_FREE char *local = df_fs_join(p->source.module_dir, "terraform.tfstate");
    if (local && df_fs_exists(local) && strcasestr(f.summary, "state migration"))
        return df_fail_reason(err, DF_ERR_USER, "InitFailed",
                              "the source holds a terraform.tfstate with resources, but the state "
                              "is kept elsewhere and would start without them: remove the file if "
                              "that is meant");
    return df_failure_explain(&f, df_pipeline_command_name(p, "init", name), "InitFailed", err);
}

int df_pipeline_init(struct df_pipeline *p, bool lock_readonly, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_BUF struct df_buf tail = DF_BUF_INIT(INIT_TAIL);
    struct df_command_end end;
    struct df_commander brief = p->commander;
    brief.is_brief = true;
    (void)df_strs_add(&args, "init");
    (void)df_strs_add(&args, "-input=false");
    (void)df_strs_add(&args, "-no-color");
    if (lock_readonly)
        (void)df_strs_add(&args, "-lockfile=readonly");
    if (df_strs_check(&args, err) < 0 ||
        df_command_run(&brief, &args, DF_EVENTS_NONE, &tail, &end, err) < 0)
        return -1;
    if (end.code != 0)
        return fail_init(p, df_buf_str(&tail), err);
    return 0;
}

bool df_pipeline_prints_both(const struct df_pipeline *p)
{
    static const struct df_version since = {.number = {1, 12, 0}};
    return p->tool.kind == DF_TOOL_OPENTOFU && df_version_compare(&p->tool.version, &since) >= 0;
}

enum df_command_events df_pipeline_events(const struct df_pipeline *p, struct df_strs *args)
{
    if (df_pipeline_prints_both(p)) {
        (void)df_strs_addf(args, "-json-into=%s", p->fifo_path);
        return DF_EVENTS_ASIDE;
    }
    (void)df_strs_add(args, "-json");
    return DF_EVENTS_ON_STDOUT;
}

/* ---- all of it ---- */

static const struct {
    const char *name;
    enum df_step_action action;
} actions[] = {
    {"plan", DF_STEP_PLAN}, {"plan-destroy", DF_STEP_PLAN_DESTROY}, {"apply", DF_STEP_APPLY}};

static int read_action(struct df_pipeline *p, struct df_err *err)
{
    const char *name = df_json_str(p->doc, "action");
    for (size_t i = 0; i < DF_ARRAY_SIZE(actions); i++) {
        if (df_streq(name, actions[i].name)) {
            p->action = actions[i].action;
            return 0;
        }
    }
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "action: \"%.40s\" is not plan, plan-destroy or apply", name ? name : "");
}

static int run_stages(struct df_pipeline *p, struct df_outcome *ret, struct df_err *err)
{
    if (read_action(p, err) < 0 || stage_source(p, err) < 0 || stage_tool(p, err) < 0)
        return -1;
    if (df_stopped(df_stop_flag(p->stop)))
        return df_fail(err, DF_ERR_RETRY, "before %s was started", p->tool.path);
    if (stage_workspace(p, err) < 0)
        return -1;
    return p->action == DF_STEP_APPLY ? df_apply(p, ret, err) : df_plan(p, ret, err);
}

/* A failure of what was told to stop is the stop's. */
static int explain_stop(const struct df_pipeline *p, struct df_err *err)
{
    struct df_err why = *err;
    switch (df_stop_cause(p->stop)) {
    case DF_STOP_SIGNAL:
    case DF_STOP_OVER:
        return df_fail_reason(err, DF_ERR_USER, "Canceled", "canceled: %s", why.message);
    case DF_STOP_TIMEOUT:
        return df_fail_reason(
            err, DF_ERR_USER, "TimedOut", "did not end within %lld s and was stopped: %s",
            (long long)df_json_int(p->doc, "timeoutSeconds", DF_TIMEOUT_STEP_SECONDS), why.message);
    case DF_STOP_NONE:
        break;
    }
    return -1;
}

int df_pipeline_run(struct df_pipeline *p, struct df_outcome *ret, struct df_err *err)
{
    struct df_err why = {0};
    if (run_stages(p, ret, &why) == 0)
        return 0;
    if (why.os_errno == ENOSPC || why.os_errno == EDQUOT)
        (void)snprintf(why.reason, sizeof why.reason, "DiskFull");
    (void)df_err_reason(&why, "RunnerFailed");
    (void)explain_stop(p, &why);
    *err = why;
    return -1;
}
