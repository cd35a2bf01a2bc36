#include "spawner/cli/follow/progress.h"

#include "spawner/cli/text.h"
#include "spawner/model/model.h"

void df_progress_init(struct df_progress *p, struct df_view *view)
{
    *p = (struct df_progress){.view = view};
}

void df_progress_free(struct df_progress *p)
{
    for (size_t i = 0; i < p->count; i++)
        cJSON_Delete(p->steps[i].final);
}

/* The step of a TaskAction, by its name: "net-1-plan" is the plan. NULL: not seen yet. */
static struct df_progress_step *find_step(struct df_progress *p, const char *task_name)
{
    const char *dash = task_name ? strrchr(task_name, '-') : NULL;
    for (size_t i = 0; dash && i < p->count; i++)
        if (df_streq(p->steps[i].name, dash + 1))
            return &p->steps[i];
    return NULL;
}

/* The same, added if it is new. NULL: no name of a step, or more steps than a run has. */
static struct df_progress_step *step_of(struct df_progress *p, const char *task_name)
{
    const char *dash = task_name ? strrchr(task_name, '-') : NULL;
    struct df_progress_step *step = find_step(p, task_name);
    if (step || !dash || p->count == DF_RECIPE_STEPS || strlen(dash + 1) >= sizeof(step->name))
        return step;
    step = &p->steps[p->count++];
    (void)snprintf(step->name, sizeof(step->name), "%s", dash + 1);
    return step;
}

static void say_started(struct df_progress *p, struct df_progress_step *s, const cJSON *task)
{
    int64_t pid = df_json_int(task, "status.claimedBy.pid", 0);
    const char *host = df_json_str(task, "status.claimedBy.host");
    s->started = true;
    if (pid)
        df_view_say(p->view, DF_TONE_STRONG, "%s: runs in process %lld on %s", s->name,
                    (long long)pid, host ? host : "this machine");
    df_view_status(p->view, "%s", s->name);
}

/* Prints once why the step has not started. Compares only the text before the brackets: Kubernetes'
 * message in them changes with every attempt. */
static void say_obstacle(struct df_progress *p, struct df_progress_step *s, const cJSON *task)
{
    const char *message = df_task_message(task);
    size_t n = message ? strcspn(message, "(") : 0;
    if (n == 0 || s->started || df_task_is_final(task) || df_task_has_runner(task))
        return;
    n = n < sizeof(s->obstacle) ? n : sizeof(s->obstacle) - 1;
    if (strncmp(s->obstacle, message, n) == 0 && s->obstacle[n] == '\0')
        return;
    (void)snprintf(s->obstacle, sizeof(s->obstacle), "%.*s", (int)n, message);
    df_view_say(p->view, DF_TONE_PLAIN, "%s: waits: %s", s->name, message);
}

/* Prints only the end and the duration: the log and the summary of the run have the details. */
static void say_ended(struct df_progress *p, struct df_progress_step *s, const cJSON *task)
{
    char took[DF_SHORT_TEXT];
    bool good = df_task_succeeded(task);
    df_view_idle(p->view);
    df_view_say(p->view, good ? DF_TONE_STRONG : DF_TONE_BAD, "%s: %s in %s", s->name,
                good ? "done" : "ended", df_text_duration(df_text_took(task), took));
    s->ended = true;
}

static void show_end(struct df_progress *p, struct df_progress_step *s)
{
    if (s->final && s->log_complete && !s->ended)
        say_ended(p, s, s->final);
}

void df_progress_task(struct df_progress *p, const cJSON *task)
{
    struct df_progress_step *s = step_of(p, df_json_str(task, "metadata.name"));
    if (!s || s->ended)
        return;
    if (!s->started && df_json_at(task, "status.claimedBy.claimId"))
        say_started(p, s, task);
    say_obstacle(p, s, task);
    if (df_task_is_final(task) && !s->final)
        s->final = cJSON_Duplicate(task, true);
    show_end(p, s);
}

void df_progress_log(struct df_progress *p, const char *task_name, const cJSON *piece)
{
    if (step_of(p, task_name))
        (void)df_view_piece(p->view, piece);
}

void df_progress_log_complete(struct df_progress *p, const char *task_name)
{
    struct df_progress_step *s = step_of(p, task_name);
    if (!s)
        return;
    s->log_complete = true;
    show_end(p, s);
}

bool df_progress_knows(struct df_progress *p, const char *task_name)
{
    const struct df_progress_step *step = step_of(p, task_name);
    return !step || step->started;
}

void df_progress_skip_past(struct df_progress *p, const cJSON *run)
{
    const cJSON *past = NULL;
    cJSON_ArrayForEach (past, df_json_at(run, "status.steps")) {
        struct df_progress_step *s = step_of(p, df_json_str(past, "taskAction"));
        if (s && df_json_str(past, "finishedAt"))
            s->started = s->ended = true;
    }
}

bool df_progress_is_complete(const struct df_progress *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (!p->steps[i].ended)
            return false;
    return p->count > 0;
}
