/* get.h - the two halves of `dayfly get`: what is asked for, and the same again and again (-w).
 * Thread rule: main thread. */
#ifndef DF_CLI_GET_H
#define DF_CLI_GET_H

#include "spawner/cli/choose.h"
#include "spawner/cli/named.h"
#include "spawner/cli/text.h"

struct df_get {
    struct df_named *named; /* owned */
    size_t count;
    const char *selector; /* of labels; or NULL */
    struct df_choice choice;
    bool quiet;   /* what is not there is not reported */
    bool missing; /* something that was named is not there */
};

bool df_get_wants_document(const struct df_cli *cli);

/* How many entries from there on are one table: a list, or names of one kind. */
size_t df_get_group(const struct df_get *get, size_t from);

/* The documents of such a group, chosen and sorted. */
int df_get_fetch(struct df_cli *cli, struct df_get *get, size_t from, size_t n, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Rows or names. shape: of the table, which may be printed in several parts. */
int df_get_print(const struct df_cli *cli, const struct df_shown *kind, const cJSON *items,
                 bool header, struct df_table_shape *shape, struct df_err *err) DF_MUST_CHECK;

/* Until Ctrl-C: prints what there is, then what changes. Never is the service that moves runs on:
 * where nobody serves the data directory it looks once and waits for a service. */
int df_get_watch(struct df_cli *cli, struct df_get *get, struct df_err *err) DF_MUST_CHECK;

#endif
