/* get.h - what `dayfly get` and `dayfly get --watch` share: fetching and printing documents. Thread
 * rule: main thread. */
#ifndef DF_CLI_GET_H
#define DF_CLI_GET_H

#include "spawner/cli/choose.h"
#include "spawner/cli/named.h"
#include "spawner/cli/text.h"

struct df_get {
    struct df_named *named; /* owned */
    size_t count;
    const char *selector; /* of labels; or NULL */
    const char *executor; /* of runs or revisions; or NULL */
    struct df_choice choice;
    bool quiet;   /* do not report documents that do not exist */
    bool missing; /* a named document does not exist */
};

/* True for -o json and -o yaml. */
bool df_get_wants_document(const struct df_cli *cli);

/* True for -o jsonl and -o csv. */
bool df_get_wants_lines(const struct df_cli *cli);

/* The path of a list, with the filters that the server applies: executor, labels, and those of the
 * audit trail. */
int df_get_path(const struct df_cli *cli, const struct df_get *get, const struct df_shown *kind,
                char **ret, struct df_err *err) DF_MUST_CHECK;

/* The options that filter the audit trail; ends with NULL. */
extern const char *const df_get_audit_options[];

/* How many entries of `named` from there on share one table: one list, or names of one kind. */
size_t df_get_group(const struct df_get *get, size_t from);

/* The documents of such a group, filtered and sorted. */
int df_get_fetch(struct df_cli *cli, struct df_get *get, size_t from, size_t n, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Prints rows, or names for -o name. shape: of the table, which may be printed in several parts. */
int df_get_print(const struct df_cli *cli, const struct df_shown *kind, const cJSON *items,
                 bool header, struct df_table_shape *shape, struct df_err *err) DF_MUST_CHECK;

/* Prints such a group as lines. */
int df_get_lines(struct df_cli *cli, struct df_get *get, size_t from, size_t n,
                 struct df_err *err) DF_MUST_CHECK;

/* Prints the documents, then their changes, until Ctrl-C. Never reconciles: if no service runs, it
 * reads the data directory once and then waits for a service. */
int df_get_watch(struct df_cli *cli, struct df_get *get, struct df_err *err) DF_MUST_CHECK;

#endif
