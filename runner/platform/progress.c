/*
 * What is to be done next for a component: a function for each stage, in the order in which a
 * component goes through them. Each looks for an end, then for what it waits for.
 */
#include "runner/platform/progress.h"

/* The first look may have begun before it was asked for. */
enum { MOST_LOOKS = 2 };

static struct df_next make(enum df_todo todo)
{
    return (struct df_next){.todo = todo};
}

static struct df_next tell(enum df_todo todo, const char *cause, const char *what, const char *why)
{
    struct df_next n = {.todo = todo, .cause = cause};
    df_application_explain(n.message, sizeof n.message, what, why);
    return n;
}

static bool is_running(const struct df_application_view *v)
{
    return df_streq(v->phase, "Running") || df_streq(v->phase, "Terminating");
}

static bool runs(const struct df_application_view *v)
{
    return v->is_requested || is_running(v);
}

/* Argo CD may not see an operation that it is asked for until it is woken. */
static bool is_overlooked(const struct df_progress *p, const struct df_application_view *v,
                          int64_t now_ms)
{
    return v->is_requested && !is_running(v) && !v->is_refreshing && now_ms >= p->wake_at_ms;
}

/* ---- the stages ---- */

static struct df_next end_of_compare(const struct df_application_view *v)
{
    bool is_of_server = strstr(v->condition, "server side apply in dryrun mode");
    if (*v->condition)
        return tell(DF_TODO_FAIL, is_of_server ? "SyncFailed" : "RepositoryUnavailable",
                    "Argo CD cannot compare it", v->condition);
    return tell(DF_TODO_FAIL, "SyncTimeout", "Argo CD did not compare it in time",
                runs(v) ? "an operation of somebody else is still under way" : "");
}

static struct df_next end_of_moved(const struct df_progress_rules *rules,
                                   const struct df_application_view *v)
{
    struct df_next n = {.todo = DF_TODO_FAIL, .cause = "CommitChanged"};
    (void)snprintf(
        n.message, sizeof n.message,
        "the repository has moved on from the commit %.40s, which alone may be deployed, "
        "to %.40s",
        rules->commit, v->revision);
    return n;
}

static struct df_next next_of_compare(const struct df_progress *p,
                                      const struct df_progress_rules *rules,
                                      const struct df_application_view *v, int64_t now_ms)
{
    bool is_of_now = p->is_new || (p->refreshes && !v->is_refreshing);
    const char *lasting = df_application_lasting_cause(v->condition);
    bool is_other = df_application_is_behind(v, rules->commit) && p->refreshes < MOST_LOOKS;
    if (v->is_current && is_of_now && lasting)
        return tell(DF_TODO_FAIL, lasting, "Argo CD cannot compare it", v->condition);
    if (now_ms >= p->until_ms)
        return end_of_compare(v);
    if (is_overlooked(p, v, now_ms))
        return make(DF_TODO_REFRESH);
    if (runs(v))
        return tell(DF_TODO_WAIT, NULL, "an earlier operation is under way", "");
    if (*v->condition && !v->is_refreshing && (!is_of_now || now_ms >= p->wake_at_ms))
        return make(DF_TODO_RENDER);
    if (!v->is_current && !v->is_refreshing && now_ms >= p->wake_at_ms)
        return make(DF_TODO_REFRESH);
    if (!v->is_current || v->is_refreshing)
        return tell(DF_TODO_WAIT, NULL, "Argo CD compares it", v->condition);
    bool is_stale = is_other || (v->is_before_end && df_streq(v->sync, "OutOfSync"));
    if (is_stale && (!p->refreshes || now_ms >= p->wake_at_ms))
        return make(DF_TODO_REFRESH);
    if (is_stale || (!df_streq(v->sync, "Synced") && !df_streq(v->sync, "OutOfSync")))
        return tell(DF_TODO_WAIT, NULL, "Argo CD compares it", v->condition);
    if (rules->is_bound && df_application_is_behind(v, rules->commit))
        return end_of_moved(rules, v);
    return make(df_streq(v->sync, "Synced") ? DF_TODO_HEALTH : DF_TODO_SYNC);
}

static struct df_next next_of_failed_sync(const struct df_progress *p,
                                          const struct df_progress_rules *rules,
                                          const struct df_application_view *v)
{
    const char *lasting = df_application_lasting_cause(v->message);
    if (lasting || p->syncs >= rules->max_attempts)
        return tell(DF_TODO_FAIL, lasting ? lasting : "SyncFailed", "the synchronization failed",
                    v->message);
    return tell(DF_TODO_RETRY, NULL, "the synchronization failed and is tried again", v->message);
}

static struct df_next next_of_sync(const struct df_progress *p,
                                   const struct df_progress_rules *rules,
                                   const struct df_application_view *v, int64_t now_ms)
{
    bool is_ours = df_streq(v->span, p->span);
    if (is_ours && !v->is_requested) {
        if (df_streq(v->phase, "Succeeded"))
            return make(DF_TODO_HEALTH);
        if (df_streq(v->phase, "Failed") || df_streq(v->phase, "Error"))
            return next_of_failed_sync(p, rules, v);
    }
    if (now_ms >= p->until_ms)
        return tell(DF_TODO_FAIL, "SyncTimeout", "the synchronization did not end in time",
                    is_ours ? v->message : "");
    if (!is_ours && is_overlooked(p, v, now_ms))
        return make(DF_TODO_REFRESH);
    if (!is_ours && !runs(v)) /* another client has replaced it */
        return tell(DF_TODO_RETRY, NULL, "the operation was replaced by another one", "");
    return tell(DF_TODO_WAIT, NULL, "it is synchronized", is_ours ? v->message : "");
}

static struct df_next end_of_health(const struct df_progress_rules *rules,
                                    const struct df_application_view *v)
{
    if (!df_streq(v->sync, "Synced") && rules->is_bound &&
        df_application_is_behind(v, rules->commit))
        return end_of_moved(rules, v);
    if (!df_streq(v->sync, "Synced"))
        return tell(DF_TODO_FAIL, "OutOfSync", "it is not as the repository says", v->condition);
    return tell(DF_TODO_FAIL, df_streq(v->health, "Degraded") ? "Degraded" : "HealthTimeout",
                "it did not become healthy in time", v->health_message);
}

static struct df_next next_of_health(const struct df_progress *p,
                                     const struct df_progress_rules *rules,
                                     const struct df_application_view *v, int64_t now_ms)
{
    if (rules->is_healthy && df_streq(v->sync, "Synced") && !runs(v))
        return make(DF_TODO_DONE);
    if (now_ms >= p->until_ms)
        return end_of_health(rules, v);
    if (!df_streq(v->sync, "Synced") && !v->is_refreshing && now_ms >= p->wake_at_ms)
        return make(*v->condition ? DF_TODO_RENDER : DF_TODO_REFRESH);
    return tell(DF_TODO_WAIT, NULL, "it becomes healthy", v->health_message);
}

struct df_next df_progress_next(const struct df_progress *p, const struct df_progress_rules *rules,
                                const struct df_application_view *v, int64_t now_ms)
{
    if (now_ms < p->retry_at_ms)
        return make(DF_TODO_WAIT);
    switch (p->stage) {
    case DF_STAGE_COMPARE:
        return next_of_compare(p, rules, v, now_ms);
    case DF_STAGE_SYNC:
        return next_of_sync(p, rules, v, now_ms);
    case DF_STAGE_HEALTH:
        return next_of_health(p, rules, v, now_ms);
    case DF_STAGE_DEPENDS:
    case DF_STAGE_APPLY:
    case DF_STAGE_OVER:
    default:
        return make(DF_TODO_WAIT);
    }
}
