/*
 * progress.h - how a component of a deploy comes to its end: what is to be done next, from what
 * Argo CD says of its Application.
 *
 * A pure function over a small state: the loop of deploy.c does what it says. docs/platform.md has
 * the way through the stages as a picture. Thread rule: any thread.
 */
#ifndef DF_PLATFORM_PROGRESS_H
#define DF_PLATFORM_PROGRESS_H

#include "runner/platform/application.h"

enum df_stage {
    DF_STAGE_DEPENDS, /* what it depends on is not healthy yet */
    DF_STAGE_APPLY,   /* the Application is written, if it is not as it shall be */
    DF_STAGE_COMPARE, /* the Application is as it shall be; Argo CD compares it */
    DF_STAGE_SYNC,    /* an operation was asked for */
    DF_STAGE_HEALTH,
    DF_STAGE_OVER
};

struct df_progress {
    enum df_stage stage;
    char span[17];       /* of the operation that was asked for */
    int64_t applied_us;  /* real: from then on Argo CD is waited for; 0: not yet */
    int syncs;           /* operations that were asked for */
    int refreshes;       /* how often Argo CD was asked to look at the repository */
    bool is_new;         /* this deploy made the Application: nothing in it is from before */
    int64_t until_ms;    /* of the stage; monotonic */
    int64_t wake_at_ms;  /* if Argo CD has done nothing by then, it is woken */
    int64_t retry_at_ms; /* nothing is done before; 0: at once */
};

/* What a deploy wants of a component. */
struct df_progress_rules {
    /* That it shall be compared with; NULL: any. A branch may have moved on since: then Argo CD has
     * a newer one after it looked twice, and that counts. */
    const char *commit;
    bool is_bound;    /* nothing but that commit may be deployed: it was approved */
    int max_attempts; /* of syncs */
    bool is_healthy;  /* Argo CD's word for its health is Healthy, or one that is allowed */
};

enum df_todo {
    DF_TODO_WAIT,
    DF_TODO_REFRESH,
    DF_TODO_RENDER, /* a refresh for which Argo CD must use nothing that it has kept */
    DF_TODO_SYNC,   /* ask for an operation; go to DF_STAGE_SYNC */
    DF_TODO_HEALTH, /* go to DF_STAGE_HEALTH */
    DF_TODO_RETRY,  /* after a pause go back to DF_STAGE_COMPARE */
    DF_TODO_DONE,   /* but for the workloads, if they are critical */
    DF_TODO_FAIL
};

struct df_next {
    enum df_todo todo;
    const char *cause; /* FAIL: the reason word, static */
    char message[480]; /* FAIL and RETRY: why; WAIT: what for */
};

struct df_next df_progress_next(const struct df_progress *p, const struct df_progress_rules *rules,
                                const struct df_application_view *v, int64_t now_ms);

#endif
