/*
 * foreign.h - commands and options of tofu, kubectl and gh that dayfly does not have. For each of
 * them the error message names what dayfly has instead. Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_FOREIGN_H
#define DF_CLI_FOREIGN_H

#include "common/base/err.h"

/* words: the command line from the unknown command on. 0: the tables do not contain it; else -1
 * with class USER. */
int df_foreign_command(char *const *words, size_t count, struct df_err *err);

/* words: the words after one of dayfly's commands ("run list", "apply ."). Returns as above. */
int df_foreign_words(const char *command, char *const *words, size_t count, struct df_err *err);

/* option: "name" or "name=value", without dashes. 1: the table does not contain it. 0: it asks for
 * something that dayfly always does (-input=false). Else -1 with class USER. */
int df_foreign_option(const char *option, struct df_err *err);

/* The ith command of the tables and its answer; NULL after the last. For tests. */
const char *df_foreign_at(size_t i, const char **ret_answer);

#endif
