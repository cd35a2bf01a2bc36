/*
 * ignore.h - .terraformignore: what of a directory is not part of the module, in the syntax of
 * .gitignore. Each such file holds for the directory that has it and for what is below; the last
 * rule that matches decides. Thread rule: one thread.
 */
#ifndef DF_SOURCE_IGNORE_H
#define DF_SOURCE_IGNORE_H

#include <stddef.h>

#include "common/base/err.h"

#define DF_IGNORE_FILE ".terraformignore"

/* What editors and desktops make beside files, which the tool does not read either: swap files,
 * backups, autosaves and locks, and data of macOS. A rule with ! takes one along. */
#define DF_IGNORE_DEFAULTS ".*.sw?\n*~\n\\#*#\n.#*\n.DS_Store\n._*\n"

struct df_ignore_rule {
    char *base;    /* of the directory that has the file, "" or "a/b"; owned */
    char *pattern; /* without "!" and slashes at both ends; owned */
    bool is_negated, is_for_directories, is_anchored;
};

struct df_ignore {
    struct df_ignore_rule *rules;
    size_t len;
};
#define DF_IGNORE DF_CLEANUP(df_ignore_free)
void df_ignore_free(struct df_ignore *g);

/* Adds the rules of the file in this directory, if there is one. base: the path of the directory in
 * the source. LIMIT, reason SourceRefused, beyond DF_LIMIT_IGNORE_FILE or DF_LIMIT_IGNORE_RULES. */
int df_ignore_read(struct df_ignore *g, int directory, const char *base,
                   struct df_err *err) DF_MUST_CHECK;
/* Adds the rules of a text. */
int df_ignore_add(struct df_ignore *g, const char *base, const char *text,
                  struct df_err *err) DF_MUST_CHECK;

enum df_ignore_word { DF_IGNORE_NOTHING, DF_IGNORE_LEFT_OUT, DF_IGNORE_KEPT };
/* What the last rule that matches says of a path of the source. */
enum df_ignore_word df_ignore_of(const struct df_ignore *g, const char *path, bool is_directory);

#endif
