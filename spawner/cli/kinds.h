/*
 * kinds.h - what `get` and `describe` can show, and the columns of each.
 */
#ifndef DF_CLI_KINDS_H
#define DF_CLI_KINDS_H

#include "spawner/cli/cli.h"

/* How the value at a column's path becomes a cell. */
enum df_cell {
    DF_CELL_TEXT,    /* a string, number or bool as it is */
    DF_CELL_AGE,     /* a time: how long ago */
    DF_CELL_CHANGES, /* {add, change, destroy}: "+1 ~0 -2" */
    DF_CELL_LIST,    /* strings, joined by commas */
    DF_CELL_SHORT,   /* the first 12 characters of a digest */
    DF_CELL_KEYS,    /* the names of an object's members */
    DF_CELL_SPAN     /* "startedAt": the time from there to finishedAt beside it, or to now */
};

struct df_column {
    const char *title; /* NULL ends the list */
    const char *path;
    enum df_cell cell;
    bool wide; /* only with -o wide */
};

struct df_shown {
    const char *plural; /* "executors": also the route */
    const char *names;  /* what a person may type: "executor|executors|ex" */
    const char *id;     /* path of its name, for -o name and get KIND NAME */
    const struct df_column *columns;
    const struct df_column *details; /* `describe` shows these, one a line; NULL: the columns */
};

/* Class USER with the kinds there are. */
int df_shown_find(const char *typed, const struct df_shown **ret, struct df_err *err) DF_MUST_CHECK;

/* The table of these items. now_us: real time. */
int df_shown_table(const struct df_shown *kind, const cJSON *items, bool wide, bool header,
                   int64_t now_us, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* One line for each detail that has a value: "Title:   value". */
int df_shown_details(const struct df_shown *kind, const cJSON *item, int64_t now_us,
                     struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* All pages of a list. *ret is an array. */
int df_cli_list(struct df_cli *cli, const char *path, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;

/* One object of a kind. */
int df_cli_get(struct df_cli *cli, const struct df_shown *kind, const char *name, cJSON **ret,
               struct df_err *err) DF_MUST_CHECK;

#endif
