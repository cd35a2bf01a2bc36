/*
 * paint.h - the colours of tofu and terraform, for the plain text that they log. The log itself has
 * none: a pipe, `dayfly logs | cat` and documents get it as it is. Thread rule: one painter, one
 * thread.
 */
#ifndef DF_CLI_PAINT_H
#define DF_CLI_PAINT_H

#include "common/base/buf.h"

struct df_paint {
    bool changes; /* within the list of changes: "+", "-" and "~" in front of a line have colours */
    size_t column;  /* of those signs within a heredoc that the plan changes; 0: there are none */
    char until[48]; /* the word that ends the heredoc, or "" */
};

/* One whole line, its newline at the end or not, which is safe for a terminal (df_text_safe()).
 * What no line of the tool looks like is left as it is. */
void df_paint_line(struct df_paint *p, const char *line, size_t n, struct df_buf *out);

#endif
