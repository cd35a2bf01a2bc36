/*
 * paint.h - adds the colours of tofu and terraform to their plain log text, for a terminal. The
 * stored log has no colours; a pipe such as `dayfly logs | cat` gets it unchanged. Thread rule: one
 * painter, one thread.
 */
#ifndef DF_CLI_PAINT_H
#define DF_CLI_PAINT_H

#include "common/base/buf.h"

struct df_paint {
    bool changes;   /* within the list of changes: a leading "+", "-" or "~" is coloured */
    size_t column;  /* of these signs within a heredoc that the plan changes; 0: no such heredoc */
    char until[48]; /* the word that ends the heredoc, or "" */
};

/* Appends one whole line, with or without its newline, with colours. The line must be safe for a
 * terminal (df_text_safe()). Unknown lines are not changed. */
void df_paint_line(struct df_paint *p, const char *line, size_t n, struct df_buf *out);

#endif
