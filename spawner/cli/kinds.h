/*
 * kinds.h - what `get` and `describe` show: the kinds of documents (model/kinds.h), secrets and the
 * audit trail. Thread rule: main thread.
 */
#ifndef DF_CLI_KINDS_H
#define DF_CLI_KINDS_H

#include "spawner/cli/cli.h"
#include "spawner/cli/text.h"
#include "spawner/model/kinds.h"

/* Finds a kind by an accepted name. Class USER if there is none; the message lists the kinds. */
int df_shown_find(const char *typed, const struct df_shown **ret, struct df_err *err) DF_MUST_CHECK;

/* The kind with this plural, which must exist. */
const struct df_shown *df_shown_of(const char *plural);

/* The kind with this `kind` in its documents; NULL: there is none, or typed is NULL. */
const struct df_kind_row *df_kind_called(const char *typed);

/* The kind of documents; NULL: it is none of documents. */
const struct df_kind_row *df_kind_shown(const struct df_shown *shown);

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

/* Fetches all pages of a list. *ret: an array. A path NULL counts as out of memory. */
int df_cli_list(struct df_cli *cli, const char *path, cJSON **ret,
                struct df_err *err) DF_MUST_CHECK;
/* Fetches all pages of a list, and gives take the items of each, which it may change. */
typedef int (*df_cli_page)(void *arg, cJSON *items, struct df_err *err);
int df_cli_list_each(struct df_cli *cli, const char *path, df_cli_page take, void *arg,
                     struct df_err *err) DF_MUST_CHECK;
/* Fetches pages until there are at least `most` items; 0: all pages. */
int df_cli_list_some(struct df_cli *cli, const char *path, size_t most, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* Fetches one object of a kind. */
int df_cli_get(struct df_cli *cli, const struct df_shown *kind, const char *name, cJSON **ret,
               struct df_err *err) DF_MUST_CHECK;

#endif
