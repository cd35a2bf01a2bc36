/*
 * columns.h - what lists and descriptions of documents show: each column is a title and the path of
 * its value. The CLI makes the cells (cli/kinds.h). Thread rule: constant data.
 */
#ifndef DF_MODEL_COLUMNS_H
#define DF_MODEL_COLUMNS_H

#include <stdbool.h>

/* How the value at a column's path becomes a cell. */
enum df_cell {
    DF_CELL_TEXT,     /* a string, number or bool as it is */
    DF_CELL_AGE,      /* a time: how long ago */
    DF_CELL_CHANGES,  /* a planSummary: "+1 ~0 -2 forget 1" (common/changes/changes.h) */
    DF_CELL_LIST,     /* strings, joined by commas */
    DF_CELL_SHORT,    /* the first 12 characters of a digest */
    DF_CELL_KEYS,     /* the names of an object's members */
    DF_CELL_LABELS,   /* the labels that people gave: name=value */
    DF_CELL_NAMES,    /* the member "name" of each item of a list */
    DF_CELL_STATUS,   /* of an executor: its status, a refused edit, a kept errored state */
    DF_CELL_ERRORED,  /* status.erroredStates: which run left one, and what to do */
    DF_CELL_OWNER,    /* the spec of a TaskAction: whose step it is */
    DF_CELL_POLICIES, /* status.policies: how many passed or failed */
    DF_CELL_REASON,   /* the status of a run: its reason, or that it waits */
    DF_CELL_SPAN      /* an object: the time from its startedAt to its finishedAt, or to now */
};

struct df_column {
    const char *title; /* NULL ends the list */
    const char *path;
    enum df_cell cell;
    bool wide; /* only with -o wide */
    /* In a terminal that is too narrow the columns with the highest number are left out first; 0:
     * this one stays. */
    unsigned char spare;
};

/* Of the kinds (kinds.c). */
extern const struct df_column df_executor_columns[], df_executor_details[];
extern const struct df_column df_run_columns[], df_run_details[];
extern const struct df_column df_task_columns[], df_task_details[];
extern const struct df_column df_integration_columns[], df_integration_details[];
extern const struct df_column df_revision_columns[], df_revision_details[];

/* A member by which a list is filtered. */
struct df_state_member {
    const char *path;  /* "status.phase"; NULL ends the list */
    const char *words; /* that it may be: "Pending|Running"; NULL: any */
    const char *query; /* parameter of the list's route: "phase"; NULL: none */
};

/* How a kind is called and shown. */
struct df_shown {
    const char *plural;   /* "executors": also the route, and the resource in a cluster */
    const char *singular; /* "executor": before the slash of -o name */
    const char *names;    /* that the CLI accepts: "executor|executors|ex" */
    const char *id;       /* path of the name, for -o name and get KIND NAME */
    const struct df_state_member *states; /* that --state compares; NULL: it has none */
    const struct df_column *columns;
    const struct df_column *details; /* of `describe`, one a line; NULL: the columns */
};

#endif
