#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/bundle/bundle.h"
#include "common/crypto/crypto.h"
#include "runner/pipeline.h"
#include "runner/tofu/failure.h"
#include "runner/tofu/gate.h"

enum { PLAN_NO_CHANGES = 0, PLAN_CHANGES = 2 }; /* of -detailed-exitcode */

/* Everything that one plan leaves behind. All owned. */
struct paths {
    char *plan, *json, *errors, *lock, *bundle, *gate;
};

static void paths_free(struct paths *f)
{
    free(f->plan);
    free(f->json);
    free(f->errors);
    free(f->lock);
    free(f->bundle);
    free(f->gate);
}

static int name_paths(const struct df_pipeline *p, struct paths *f, struct df_err *err)
{
    f->plan = df_fs_join(p->dirs->secret, "plan");
    f->json = df_fs_join(p->dirs->secret, "plan.json");
    f->errors = df_fs_join(p->dirs->secret, "show.err");
    f->bundle = df_fs_join(p->dirs->secret, "bundle");
    f->gate = df_fs_join(p->dirs->secret, "plan-to-show");
    f->lock = df_fs_join(p->source.module_dir, ".terraform.lock.hcl");
    return f->plan && f->json && f->errors && f->bundle && f->gate && f->lock ? 0
                                                                              : df_fail_oom(err);
}

/* ---- what init left ---- */

static int add_lock_digest(struct df_pipeline *p, const char *path, struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char hex[DF_SHA256_HEX];
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (df_sha256_file_hex(fd, hex, NULL, err) < 0)
        return -1;
    return df_json_add_str(p->result, "lockFileSha256", hex, err);
}

static bool has_more_than(const char *dir, const char *name)
{
    DIR *d = opendir(dir);
    bool more = false;
    for (const struct dirent *e; d && !more && (e = readdir(d));)
        more = e->d_name[0] != '.' && !df_streq(e->d_name, name);
    if (d)
        (void)closedir(d);
    return more;
}

/* Only provider plugins and fetched modules make an apply in a fresh directory need an init. */
static int needs_init(const struct df_pipeline *p, bool *ret, struct df_err *err)
{
    DF_FREE char *providers = df_strf("%s/.terraform/providers", p->source.module_dir);
    DF_FREE char *modules = df_strf("%s/.terraform/modules", p->source.module_dir);
    if (!providers || !modules)
        return df_fail_oom(err);
    *ret = df_fs_exists(providers) || has_more_than(modules, "modules.json");
    return 0;
}

/* ---- plan ---- */

static int run_plan(struct df_pipeline *p, const char *plan_path, int *ret_code, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    const cJSON *argument;
    struct df_command_end end;
    (void)df_strs_add(&args, "plan");
    (void)df_strs_add(&args, "-input=false");
    (void)df_strs_add(&args, "-no-color");
    (void)df_strs_add(&args, "-detailed-exitcode");
    (void)df_strs_add(&args, DF_LOCK_TIMEOUT);
    (void)df_strs_addf(&args, "-out=%s", plan_path);
    if (p->action == DF_STEP_PLAN_DESTROY)
        (void)df_strs_add(&args, "-destroy");
    enum df_command_events events = df_pipeline_events(p, &args);
    cJSON_ArrayForEach (argument, df_json_at(p->doc, "arguments"))
        (void)df_strs_add(&args, cJSON_IsString(argument) ? argument->valuestring : "");
    df_output_reset(p->output);
    if (df_strs_check(&args, err) < 0 ||
        df_command_run(&p->commander, &args, events, NULL, &end, err) < 0)
        return -1;
    *ret_code = end.code;
    return 0;
}

static int fail_plan(struct df_pipeline *p, struct df_err *err)
{
    struct df_failure f;
    char name[32];
    df_failure_from_events(df_output_summary(p->output), &f);
    return df_failure_explain(&f, df_pipeline_command_name(p, "plan", name), "PlanFailed", err);
}

static void describe(const struct df_pipeline *p, bool changes, struct df_outcome *ret)
{
    const struct df_output_summary *s = df_output_summary(p->output);
    (void)snprintf(ret->reason, sizeof ret->reason, "%s", changes ? "Planned" : "NoChanges");
    if (!changes)
        (void)snprintf(ret->message, sizeof ret->message, "no changes");
    else if (s->add + s->change + s->destroy + s->import == 0)
        (void)snprintf(ret->message, sizeof ret->message, "only outputs change");
    else
        (void)snprintf(ret->message, sizeof ret->message,
                       "%d to add, %d to change, %d to destroy, %d to import", s->add, s->change,
                       s->destroy, s->import);
}

/* ---- the plan, shown ---- */

/* `show -json`, which is started together with `plan` and waits at the gate for its end. */
struct shower {
    struct df_gate gate;
    struct df_process process; /* pid -1: not started */
};
#define SHOWER_INIT ((struct shower){.gate = DF_GATE_INIT, .process = DF_PROCESS_INIT})

static void shower_drop(struct shower *s)
{
    if (s->process.pid > 0)
        df_command_drop(&s->process);
    df_gate_drop(&s->gate);
}

static int start_show(struct df_pipeline *p, const struct paths *f, const char *plan,
                      struct df_process *ret, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    struct df_commander brief = p->commander;
    brief.is_brief = true;
    (void)df_strs_add(&args, "show");
    (void)df_strs_add(&args, "-json");
    (void)df_strs_add(&args, plan);
    if (df_strs_check(&args, err) < 0)
        return -1;
    return df_command_start(&brief, &args, f->json, f->errors, ret, err);
}

/* A plan that is approved as soon as it is made goes with its run: nobody would read the JSON, and
 * making it takes as long as half the plan. */
static bool is_reviewed(const struct df_pipeline *p)
{
    return df_json_bool(p->doc, "reviewed", true);
}

/* Only time is lost when this fails. */
static void start_shower(struct df_pipeline *p, const struct paths *f, struct shower *s)
{
    if (!is_reviewed(p))
        return;
    if (df_gate_make(f->gate, &s->gate, NULL) < 0 ||
        start_show(p, f, f->gate, &s->process, NULL) < 0)
        shower_drop(s);
}

/* The plan for people, from tools that cannot print it beside their events. */
static int show_text(struct df_pipeline *p, const char *plan_path, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    struct df_command_end end;
    if (df_pipeline_prints_both(p))
        return 0;
    (void)df_strs_add(&args, "show");
    (void)df_strs_add(&args, "-no-color");
    (void)df_strs_add(&args, plan_path);
    if (df_strs_check(&args, err) < 0)
        return -1;
    return df_command_run(&p->commander, &args, DF_EVENTS_NONE, NULL, &end, err);
}

static int fail_show(struct df_pipeline *p, const char *errors, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    struct df_failure f = {.summary = ""};
    char name[32];
    if (df_fs_read(errors, &text, NULL) == 0)
        df_failure_from_text(df_buf_str(&text), &f);
    return df_failure_explain(&f, df_pipeline_command_name(p, "show -json", name), "PlanFailed",
                              err);
}

/* The plan as JSON; meanwhile as text, where it was not printed yet. */
static int show(struct df_pipeline *p, const struct paths *f, struct shower *s, struct df_err *err)
{
    struct df_command_end end = {.code = -1};
    bool waiting = s->process.pid > 0 && df_gate_open(&s->gate, f->plan, NULL) == 0;
    if (show_text(p, f->plan, err) < 0)
        return -1;
    if (!is_reviewed(p))
        return 0;
    if (waiting && df_command_wait(&p->commander, &s->process, &end, err) < 0)
        return -1;
    if (end.code == 0)
        return 0;
    shower_drop(s);
    if (start_show(p, f, f->plan, &s->process, err) < 0 ||
        df_command_wait(&p->commander, &s->process, &end, err) < 0)
        return -1;
    return end.code == 0 ? 0 : fail_show(p, f->errors, err);
}

/* ---- collect ---- */

static int bundle_header(const struct df_pipeline *p, cJSON *header, struct df_err *err)
{
    static const char *const copied[] = {"source", "tool", "lockFileSha256"};
    bool init = true;
    if (needs_init(p, &init, err) < 0 ||
        df_json_add_str(header, "run", df_json_str(p->doc, "run"), err) < 0 ||
        df_json_add_str(header, "step", df_json_str(p->doc, "uid"), err) < 0 ||
        df_json_add_str(header, "action", df_json_str(p->doc, "action"), err) < 0 ||
        df_json_add_bool(header, "needsInit", init, err) < 0 ||
        df_json_add_time(header, "createdAt", df_real_us(), err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(copied); i++) {
        const cJSON *item = df_json_at(p->result, copied[i]);
        if (item && df_json_add(header, copied[i], cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return 0;
}

static int write_bundle(struct df_pipeline *p, const struct paths *f, struct df_err *err)
{
    const struct df_bundle_part parts[] = {
        {"plan", f->plan}, {"plan.json", f->json}, {"lock", f->lock}};
    char hex[DF_SHA256_HEX];
    int64_t size;
    DF_CLOSE int fd = open(f->bundle, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", f->bundle);
    DF_JSON cJSON *header = cJSON_CreateObject();
    if (bundle_header(p, header, err) < 0 ||
        df_bundle_write(fd, header, parts, DF_ARRAY_SIZE(parts), err) < 0 ||
        df_sha256_file_hex(fd, hex, &size, err) < 0)
        return -1;
    cJSON *plan = df_json_object_at(p->result, "plan");
    if (!plan)
        return df_fail_oom(err);
    if (df_json_add_str(plan, "sha256", hex, err) < 0)
        return -1;
    return df_json_add_num(plan, "size", (double)size, err);
}

static int store(struct df_pipeline *p, const struct paths *f, struct df_err *err)
{
    if (write_bundle(p, f, err) < 0)
        return -1;
    if (df_report_put_artifact(p->report, "plan", f->bundle, p->deadline_ms, err) < 0)
        return df_err_wrap(err, "store the plan");
    return df_pipeline_mark(p, "stored", df_real_us(), err);
}

static int plan_and_store(struct df_pipeline *p, const struct paths *f, struct shower *s,
                          struct df_outcome *ret, struct df_err *err)
{
    int code = -1;
    if (run_plan(p, f->plan, &code, err) < 0 ||
        df_pipeline_mark(p, "executed", df_real_us(), err) < 0 ||
        df_pipeline_add_summary(p, err) < 0)
        return -1;
    if (code != PLAN_NO_CHANGES && code != PLAN_CHANGES)
        return fail_plan(p, err);
    bool changes = code == PLAN_CHANGES;
    describe(p, changes, ret);
    if (df_json_add_bool(p->result, "hasChanges", changes, err) < 0)
        return -1;
    if (!changes)
        return 0;
    return show(p, f, s, err) < 0 ? -1 : store(p, f, err);
}

int df_plan(struct df_pipeline *p, struct df_outcome *ret, struct df_err *err)
{
    DF_CLEANUP(paths_free) struct paths f = {0};
    if (name_paths(p, &f, err) < 0 || df_pipeline_init(p, false, err) < 0 ||
        df_pipeline_mark(p, "initialized", df_real_us(), err) < 0 ||
        add_lock_digest(p, f.lock, err) < 0)
        return -1;
    DF_CLEANUP(shower_drop) struct shower shower = SHOWER_INIT;
    start_shower(p, &f, &shower);
    return plan_and_store(p, &f, &shower, ret, err);
}
