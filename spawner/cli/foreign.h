/*
 * foreign.h - what people type who know tofu, kubectl or gh: commands and options that dayfly does
 * not have, each with our way to the same end in one line. Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_FOREIGN_H
#define DF_CLI_FOREIGN_H

#include "common/base/err.h"

/* words: what stands where a command should. 0: nobody's command. Else -1 with class USER. */
int df_foreign_command(char *const *words, size_t count, struct df_err *err);

/* words: what stands behind one of our commands ("run list", "apply ."). As above. */
int df_foreign_words(const char *command, char *const *words, size_t count, struct df_err *err);

/* option: "name" or "name=value", without dashes. 1: nobody's option. 0: it asks for what happens
 * anyway (-input=false). Else -1 with class USER. */
int df_foreign_option(const char *option, struct df_err *err);

/* The ith command in our answers' table, and its answer; NULL after the last. For tests. */
const char *df_foreign_at(size_t i, const char **ret_answer);

#endif
