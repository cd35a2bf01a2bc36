/*
 * runners.h - the pure decision about runners that wait for a step (standby runners): which one is
 * made or removed next, from who wants one, which there are, and how much room there is. Thread
 * rule: pure functions, any thread.
 */
#ifndef DF_MODEL_RUNNERS_H
#define DF_MODEL_RUNNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

/* Who wants runners. Strings are borrowed. */
struct df_runner_demand {
    const char *run;    /* whose apply it is for: one runner; "": of a class */
    const char *digest; /* of the form of pod (engine.h) */
    int64_t min, max;   /* of a class: so many for later steps; never more than so many */
    int64_t waiting;    /* of a class: its steps that wait for a slot */
    int64_t room;       /* of a run: steps more that may run under the limits of its apply */
    int64_t retry_ms;   /* none is made before; monotonic, as all times here */
    bool is_asked;      /* of a run: a person is asked, so that its apply may never come */
};

/* A runner that exists. Strings are borrowed. */
struct df_runner {
    const char *run, *digest; /* of its form; run: for whose apply alone it is, "": for any step */
    bool is_free;             /* neither taken nor offered a step */
    bool has_step;            /* a step was offered to it */
    bool waits, has_asked;    /* its runner asks now; it has asked at least once */
    int64_t made_ms;          /* its Job was made */
    int64_t since_ms;         /* added, or became free, or asked for the first time: the latest */
    int64_t quiet_ms;         /* it asked for the last time */
};

/* Runners of one form, for one run, without a step. */
struct df_runner_form {
    const char *digest, *run;
    int64_t idle;       /* there are so many */
    int64_t wanted;     /* so many are wanted by all classes; 0 for those of a run */
    int64_t wanted_now; /* the same without those for later steps */
};

/* What is known, and where df_runners_next() counts. */
struct df_runners {
    struct df_runner_demand demands[DF_LIMIT_STANDBY];
    size_t demand_count;
    struct df_runner runners[DF_LIMIT_STANDBY];
    size_t runner_count;
    int64_t now_ms;
    bool may_make;            /* false: the service is about to stop */
    int64_t taken_ms;         /* a step took a runner for the last time */
    int64_t crowded_until_ms; /* until then runners make room for a step that finds no place */
    int64_t pending_ms;       /* how long a runner may take to ask for the first time */

    /* df_runners_count() fills these. */
    const struct df_runner_demand *by_run[DF_LIMIT_STANDBY]; /* all demands, sorted */
    struct df_runner_form forms[2 * DF_LIMIT_STANDBY];       /* sorted */
    size_t form_count;
    int64_t ahead; /* free runners for an apply that has not begun */
    int64_t sure;  /* the same without those of which a person is asked */
};

enum df_runners_next { DF_RUNNERS_WAIT, DF_RUNNERS_MAKE, DF_RUNNERS_REMOVE };
struct df_runners_verdict {
    enum df_runners_next next;
    size_t index;    /* MAKE: of the demand; REMOVE: of the runner */
    int64_t wait_ms; /* WAIT: until the next look, if nothing changes before */
};

/* Counts what the rest is decided by: with hundreds of runners and demands each question is a
 * search in a sorted list. */
void df_runners_count(struct df_runners *r);
/* What is next, after df_runners_count(). For a moment after a step took a runner, only what steps
 * need now is made, so that this step works first. A runner ahead of an apply holds a place under
 * the limits, and gives it to a step that finds none; one of which a person is asked gives it to
 * everybody. */
struct df_runners_verdict df_runners_next(const struct df_runners *r);

/* The demand whose form this runner has; NULL: there is none. */
const struct df_runner_demand *df_runners_demand_of(const struct df_runners *r,
                                                    const struct df_runner *runner);
/* All zero if there is no such runner and no such demand. */
struct df_runner_form df_runners_form(const struct df_runners *r, const char *digest,
                                      const char *run);

#endif
