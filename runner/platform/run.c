/*
 * The frame of an action: input, DAG, API server, then the action itself; whatever happens, a
 * report, telemetry and an exit code at the end.
 */
#include "runner/platform/run.h"

#include <errno.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/http/http.h"
#include "runner/platform/platform.h"
#include "runner/platform/report.h"
#include "runner/platform/repository.h"

struct run {
    struct df_platform_input in;
    struct df_faults faults;
    struct df_platform platform;
    struct df_telemetry *telemetry;
    struct df_stop *stop;
    struct df_kube *kube;
    int64_t started_us;
    enum df_result result;
};

static void run_free(struct run *r)
{
    struct df_platform *p = &r->platform;
    df_repository_remove(p);
    for (size_t i = 0; p->components && i < p->dag.len; i++)
        df_component_free(&p->components[i]);
    free(p->components);
    df_dag_free(&p->dag);
    df_kinds_free(&p->objects.kinds);
    cJSON_Delete(p->bootstrap);
    cJSON_Delete(p->compliance);
    cJSON_Delete(p->removal);
    cJSON_Delete(p->not_in_dag);
    free(p->checkout);
    free(p->commit);
    df_kube_free(r->kube);
    df_telemetry_free(r->telemetry);
    df_stop_free(r->stop);
    df_faults_free(&r->faults);
    df_input_free(&r->in);
}

/* ---- the DAG ---- */

/* A branch or a tag can move: which commit it is now is known from the repository alone. */
static bool wants_commit(const struct df_platform_input *in)
{
    return in->action != DF_PLATFORM_TEARDOWN && !df_input_is_pinned(in);
}

static int check_commit(const struct run *r, struct df_err *err)
{
    const char *expected = r->in.expected_commit, *commit = r->platform.commit;
    if (!expected || df_streq(expected, commit))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "CommitChanged",
                          "EXPECTED_COMMIT: gitRevision %s is the commit %s now, and not %s: look "
                          "at what that would change (DRY_RUN=true), then deploy it",
                          r->in.git_revision, commit, expected);
}

static int fetch_repository(struct run *r, bool is_needed, struct df_err *err)
{
    struct df_err why = {0};
    if (df_repository_fetch(&r->platform, &why) == 0) {
        if (wants_commit(&r->in))
            df_warn("gitRevision %s is not deterministic: it is the commit %s now",
                    r->in.git_revision, r->platform.commit);
        return check_commit(r, err);
    }
    if (is_needed || r->in.expected_commit)
        return df_err_pass(err, &why);
    df_warn("which commit gitRevision %s is now is not known, so what Argo CD saw last counts: %s",
            r->in.git_revision, why.message);
    return 0;
}

/* dag.yaml of the repository into text; nothing if it has none. */
static int read_default(const struct df_platform *p, struct df_buf *text, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(p->checkout, "dag.yaml");
    struct df_err why = {0};
    if (df_check_alloc(path, err) < 0)
        return -1;
    if (df_fs_read_plain(path, text, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return 0;
}

static bool needs_files(const struct df_dag *dag)
{
    for (size_t i = 0; i < dag->len; i++) {
        if (dag->nodes[i].bootstrap && dag->nodes[i].is_in_scope)
            return true;
    }
    return false;
}

static int make_dag(struct run *r, struct df_err *err)
{
    struct df_platform *p = &r->platform;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_INPUT_FILE);
    const struct df_dag_text mounted = {r->in.dag_path, r->in.dag, r->in.dag_len};
    bool needs_default = !r->in.dag || !df_dag_is_whole(&mounted);
    if ((needs_default || wants_commit(&r->in)) && fetch_repository(r, needs_default, err) < 0)
        return -1;
    if (needs_default && read_default(p, &text, err) < 0)
        return -1;
    const struct df_dag_text repository = {"dag.yaml", df_buf_str(&text), text.len};
    if (df_dag_make(text.len ? &repository : NULL, r->in.dag ? &mounted : NULL, &r->in.scope,
                    &p->dag, &r->faults, err) < 0)
        return -1;
    df_input_check_health(&r->in, &p->dag, &r->faults);
    if (df_faults_check(&r->faults, err) < 0)
        return -1;
    if (needs_files(&p->dag) && !p->checkout)
        return fetch_repository(r, true, err);
    return 0;
}

static int make_components(struct df_platform *p, struct df_err *err)
{
    p->components = calloc(p->dag.len + 1, sizeof(*p->components));
    if (!p->components)
        return df_fail_oom(err);
    for (size_t i = 0; i < p->dag.len; i++)
        p->components[i].node = &p->dag.nodes[i];
    return 0;
}

/* ---- the action ---- */

static int act(struct run *r, struct df_err *err)
{
    static int (*const actions[])(struct df_platform * p,
                                  struct df_err * err) = {[DF_PLATFORM_DEPLOY] = df_deploy,
                                                          [DF_PLATFORM_VALIDATE] = df_validate,
                                                          [DF_PLATFORM_TEARDOWN] = df_teardown};
    struct df_platform *p = &r->platform;
    r->in.kube.user_agent = "dayfly-platform/" DF_VERSION;
    if (df_kube_new(&r->in.kube, &r->kube, err) < 0)
        return -1;
    *p = (struct df_platform){.in = &r->in,
                              .telemetry = r->telemetry,
                              .stop = r->stop,
                              .kube = r->kube,
                              .objects = {.kube = r->kube,
                                          .environment = r->in.name,
                                          .telemetry = r->telemetry,
                                          .dry_run = r->in.dry_run,
                                          .stop = df_stop_flag(r->stop)}};
    if (make_dag(r, err) < 0 || make_components(p, err) < 0)
        return -1;
    return actions[r->in.action](p, err);
}

static void count(const struct df_platform *p, size_t by_state[DF_COMPONENT_STATES])
{
    for (size_t i = 0; p->components && i < p->dag.len; i++) {
        if (p->dag.nodes[i].is_in_scope)
            by_state[p->components[i].state]++;
    }
}

/* Of an action that went through. In a validate a failed component is one that is critical. */
static enum df_result result_of(const struct run *r)
{
    size_t n[DF_COMPONENT_STATES] = {0};
    count(&r->platform, n);
    size_t bad = n[DF_COMPONENT_FAILED] + n[DF_COMPONENT_SKIPPED] + n[DF_COMPONENT_DEGRADED];
    if (df_stop_cause(r->stop) == DF_STOP_TIMEOUT)
        return DF_RESULT_TIMEOUT;
    if (r->in.action == DF_PLATFORM_VALIDATE && n[DF_COMPONENT_FAILED])
        return DF_RESULT_FAILURE;
    if (!bad && df_stop_cause(r->stop) == DF_STOP_NONE)
        return *r->platform.left ? DF_RESULT_PARTIAL : DF_RESULT_SUCCESS;
    bool is_partial = n[DF_COMPONENT_DONE] || n[DF_COMPONENT_DEGRADED] || *r->platform.left;
    return is_partial ? DF_RESULT_PARTIAL : DF_RESULT_FAILURE;
}

/* The word for what ended the action as a whole. */
static void name_cause(const struct run *r, struct df_err *why)
{
    if (r->stop && df_stop_cause(r->stop) == DF_STOP_TIMEOUT)
        (void)snprintf(why->reason, sizeof why->reason, "Timeout");
    else if (why->cls == DF_ERR_RETRY)
        (void)df_err_reason(why, "Unreachable");
    else
        (void)df_err_reason(why, why->cls == DF_ERR_DENIED ? "Forbidden" : "ActionFailed");
}

static void end_failed(struct run *r, struct df_err *why)
{
    name_cause(r, why);
    r->result = df_streq(why->reason, "Timeout")        ? DF_RESULT_TIMEOUT
                : df_streq(why->reason, "InvalidInput") ? DF_RESULT_INVALID
                                                        : DF_RESULT_FAILURE;
    if (r->telemetry)
        df_telemetry_error(r->telemetry, why->reason);
}

/* ---- the end ---- */

static void report(struct run *r, const struct df_err *why)
{
    DF_JSON cJSON *document = NULL;
    struct df_err err = {0};
    const struct df_report_facts facts = {.in = &r->in,
                                          .components = r->platform.components,
                                          .len = r->platform.components ? r->platform.dag.len : 0,
                                          .result = r->result,
                                          .message = why->cls ? why->message : NULL,
                                          .cause = *why->reason ? why->reason : NULL,
                                          .commit = r->platform.commit,
                                          .faults = r->faults.lines.len ? &r->faults : NULL,
                                          .started_us = r->started_us,
                                          .ended_us = df_real_us(),
                                          .writes = r->platform.objects.writes,
                                          .bootstrap = r->platform.bootstrap,
                                          .compliance = r->platform.compliance,
                                          .removal = r->platform.removal,
                                          .left = r->platform.left,
                                          .not_in_dag = r->platform.not_in_dag};
    if (df_platform_report_make(&facts, &document, &err) < 0 ||
        df_platform_report_write(&r->in, document, &err) < 0)
        df_error("the report is not written: %s", err.message);
}

static void tell_faults(const struct run *r)
{
    for (size_t i = 0; i < r->faults.lines.len; i++)
        df_error("%s", r->faults.lines.items[i]);
}

static size_t count_changed(const struct df_platform *p)
{
    size_t changed = 0;
    for (size_t i = 0; p->components && i < p->dag.len; i++)
        changed += p->components[i].state == DF_COMPONENT_DONE && p->components[i].changed;
    return changed;
}

/* A dry run knows what would be done, and nothing of what would come of it. */
static void sum_up(const struct run *r, char *summary, size_t size)
{
    size_t n[DF_COMPONENT_STATES] = {0}, all = 0, changed = count_changed(&r->platform);
    bool removes = r->in.action == DF_PLATFORM_TEARDOWN;
    count(&r->platform, n);
    for (size_t i = 0; i < DF_COMPONENT_STATES; i++)
        all += n[i];
    if (df_input_only_shows(&r->in))
        (void)snprintf(
            summary, size, "%zu of %zu components would be %s, %zu %s, %zu failed, %zu skipped",
            changed, all, removes ? "removed" : "created or changed",
            n[DF_COMPONENT_DONE] - changed, removes ? "are not there" : "would stay as they are",
            n[DF_COMPONENT_FAILED], n[DF_COMPONENT_SKIPPED]);
    else
        (void)snprintf(summary, size,
                       "%zu of %zu components are %s, %zu degraded, %zu failed, %zu skipped%s%s",
                       n[DF_COMPONENT_DONE], all, removes ? "gone" : "healthy",
                       n[DF_COMPONENT_DEGRADED], n[DF_COMPONENT_FAILED], n[DF_COMPONENT_SKIPPED],
                       *r->platform.left ? "; " : "", r->platform.left);
}

static void tell_end(const struct run *r, const struct df_err *why, char *summary, size_t size)
{
    if (why->cls)
        (void)snprintf(summary, size, "%s", why->message);
    else
        sum_up(r, summary, size);
    if (r->result == DF_RESULT_SUCCESS)
        df_info("%s: %s; %u objects %s", df_platform_action_names[r->in.action], summary,
                r->platform.objects.writes, r->in.dry_run ? "would be written" : "written");
    else
        df_error("%s: %s: %s", df_platform_action_names[r->in.action], df_result_name(r->result),
                 summary);
}

/* A report that cannot be written is found out before anything is done, not after. */
static void check_report_place(struct run *r)
{
    const char *slash = r->in.report_path ? strrchr(r->in.report_path, '/') : NULL;
    DF_FREE char *folder =
        slash ? strndup(r->in.report_path, (size_t)(slash - r->in.report_path) + 1) : NULL;
    if (folder && access(folder, W_OK | X_OK) < 0)
        df_faults_add(&r->faults, "REPORT_PATH", "the folder %s cannot be written: %s", folder,
                      strerror(errno));
}

static int begin(struct run *r, enum df_platform_action action,
                 const struct df_input_places *places, struct df_err *err)
{
    if (df_http_global_init(err) < 0 || df_stop_new(-1, &r->stop, err) < 0 ||
        df_input_load(action, places, &r->in, &r->faults, err) < 0)
        return -1;
    check_report_place(r);
    if (df_telemetry_start(&r->in, &r->telemetry, err) < 0)
        return -1;
    if (r->in.timeout_ms)
        df_stop_after(r->stop, r->in.timeout_ms);
    return df_faults_check(&r->faults, err);
}

int df_platform_run(enum df_platform_action action, const struct df_input_places *places)
{
    DF_CLEANUP(run_free) struct run r = {.started_us = df_real_us()};
    struct df_err err = {0};
    char summary[1024] = "";
    df_log_to(STDOUT_FILENO);
    df_log_action(df_platform_action_names[action]);
    if (df_log_setup_environment(!isatty(STDOUT_FILENO), "platform", &err) < 0)
        err = (struct df_err){0}; /* df_input_load() names it with all other faults */
    if (begin(&r, action, places, &err) < 0 || act(&r, &err) < 0)
        end_failed(&r, &err);
    else
        r.result = result_of(&r);
    tell_faults(&r);
    report(&r, &err);
    tell_end(&r, &err, summary, sizeof summary);
    if (r.telemetry)
        df_telemetry_end(r.telemetry, r.result, summary);
    return (int)r.result;
}
