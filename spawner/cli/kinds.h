/*
 * kinds.h - the kinds of objects that `get` and `describe` show, with their columns. Thread rule:
 * main thread.
 */
#ifndef DF_CLI_KINDS_H
#define DF_CLI_KINDS_H

#include "spawner/cli/cli.h"
#include "spawner/cli/text.h"

/* How the value at a column's path becomes a cell. */
enum df_cell {
    DF_CELL_TEXT,    /* a string, number or bool as it is */
    DF_CELL_AGE,     /* a time: how long ago */
    DF_CELL_CHANGES, /* a planSummary: "+1 ~0 -2 forget 1" (common/changes/changes.h) */
    DF_CELL_LIST,    /* strings, joined by commas */
    DF_CELL_SHORT,   /* the first 12 characters of a digest */
    DF_CELL_KEYS,    /* the names of an object's members */
    DF_CELL_LABELS,  /* the labels that people gave: name=value */
    DF_CELL_NAMES,   /* the member "name" of each item of a list */
    DF_CELL_STATUS, /* of an executor: the word of its status, a refused edit, a kept errored state */
    DF_CELL_ERRORED, /* status.erroredStates: which run left one, and what to do */
    DF_CELL_OWNER,   /* the spec of a TaskAction: whose step it is */
    DF_CELL_REASON,  /* the status of a run: its reason, or that it waits */
    DF_CELL_SPAN     /* an object: the time from its startedAt to its finishedAt, or to now */
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

struct df_shown {
    const char *plural;        /* "executors": also the route */
    const char *singular;      /* "executor": before the slash of -o name */
    const char *names;         /* accepted names: "executor|executors|ex" */
    const char *id;            /* path of the name, for -o name and get KIND NAME */
    const char *const *states; /* paths that --state compares; NULL: it has no state */
    const char *state_words;   /* possible states: "Pending|Running"; NULL: any word */
    const struct df_column *columns;
    const struct df_column *details; /* of `describe`, one a line; NULL: the columns */
};

/* Finds a kind by an accepted name. Class USER if there is none; the message lists the kinds. */
int df_shown_find(const char *typed, const struct df_shown **ret, struct df_err *err) DF_MUST_CHECK;

/* The kind with this plural, which must exist. */
const struct df_shown *df_shown_of(const char *plural);

/* The nth kind, or NULL after the last one. */
const struct df_shown *df_shown_nth(size_t n);

struct df_shown_options {
    bool wide, header;
    int64_t now_us;               /* real time */
    struct df_table_shape *shape; /* or NULL */
};

/* Appends the table of these items. */
int df_shown_table(const struct df_shown *kind, const cJSON *items,
                   const struct df_shown_options *o, struct df_buf *out,
                   struct df_err *err) DF_MUST_CHECK;

/* Sets column widths for values that may come later: a run that is Pending may become Succeeded. */
void df_shown_room(const struct df_shown *kind, bool wide, struct df_table_shape *shape);

/* Appends one line, title and value, for each detail that has a value. */
int df_shown_details(const struct df_shown *kind, const cJSON *item, int64_t now_us,
                     struct df_table_shape shape, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;

/* Fetches all pages of a list. *ret: an array. */
int df_cli_list(struct df_cli *cli, const char *path, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;
/* Fetches pages until there are at least `most` items; 0: all pages. */
int df_cli_list_some(struct df_cli *cli, const char *path, size_t most, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* Fetches one object of a kind. */
int df_cli_get(struct df_cli *cli, const struct df_shown *kind, const char *name, cJSON **ret,
               struct df_err *err) DF_MUST_CHECK;

#endif
