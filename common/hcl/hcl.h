/*
 * hcl.h - lists the blocks of a module: just enough HCL to distinguish blocks from comments,
 * strings and heredocs.
 *
 * It is not a parser: invalid HCL yields some blocks or none, and the tool reports the fault later.
 * Thread rule: any thread.
 */
#ifndef DF_HCL_H
#define DF_HCL_H

#include "common/base/strs.h"

/* OpenTofu reads x.tofu instead of an x.tf beside it (x.tofu.json: x.tf.json); Terraform ignores
 * .tofu files. ANY reads every file, for callers that do not know the program yet. */
enum df_hcl_tool { DF_HCL_ANY, DF_HCL_OPENTOFU, DF_HCL_TERRAFORM };

struct df_hcl_block {
    bool in_terraform;     /* a `backend` or `cloud` block inside of a `terraform` block */
    char *type;            /* "variable" */
    struct df_strs labels; /* as between the quotes */
    /* Of variable, backend and cloud blocks, and of module blocks `source` alone: "name=value" for
     * a plain string, number or bool, else "name". */
    struct df_strs attributes;
    char *file;    /* name in the module's directory */
    unsigned line; /* from 1; in JSON the first line that holds the quoted type (label) */
};

struct df_hcl_module {
    struct df_hcl_block *blocks; /* in the order of the files; override files last */
    size_t len, cap;
    size_t files; /* number of configuration files in the directory */
};
#define DF_HCL_MODULE DF_CLEANUP(df_hcl_free)
void df_hcl_free(struct df_hcl_module *m);

/* Reads the files of a module's directory, not those of modules below it. An unreadable file, or
 * one with invalid JSON, counts but has no blocks. Class LIMIT for a file larger than
 * DF_LIMIT_HCL_FILE, more than DF_LIMIT_HCL_FILES files or DF_LIMIT_HCL_BLOCKS blocks; NOT_FOUND if
 * there is no such directory. */
int df_hcl_scan(const char *dir, enum df_hcl_tool tool, struct df_hcl_module *ret,
                struct df_err *err) DF_MUST_CHECK;

/* Adds the blocks of a text of any bytes; the name of the file determines the syntax. Class USER
 * for invalid JSON. On failure m has the blocks found so far. */
int df_hcl_scan_text(const char *file, const char *text, size_t n, struct df_hcl_module *m,
                     struct df_err *err) DF_MUST_CHECK;

/* A quoted string or a heredoc. Borrowed for the call. */
struct df_hcl_literal {
    const char *top;   /* the attribute outside of all brackets that it belongs to, or "" */
    const char *name;  /* the name before it: `name = "value"`, `"name": "value"`, or "" */
    const char *value; /* without quotes and escapes; a heredoc without its indentation */
};

/* Calls visit for each literal of an expression or of a variable file, in its order. Names are not
 * literals. visit returns 0, or -1 with err to end the search. */
int df_hcl_literals(const char *text,
                    int (*visit)(void *arg, const struct df_hcl_literal *l, struct df_err *err),
                    void *arg, struct df_err *err) DF_MUST_CHECK;
/* The same for each file of a module's directory, but for unreadable ones; fails as
 * df_hcl_scan(). */
int df_hcl_literals_in(const char *dir, enum df_hcl_tool tool,
                       int (*visit)(void *arg, const struct df_hcl_literal *l, struct df_err *err),
                       void *arg, struct df_err *err) DF_MUST_CHECK;

/* True if a text may stand between brackets without an effect on what is around it: it closes no
 * bracket that it did not open, and leaves no bracket, string, heredoc or comment open. False also
 * for one with a template ("${" or "%{"), whose end is not looked for, and if there is no
 * memory. */
bool df_hcl_is_closed(const char *text);

/* The plain value of an attribute (borrowed); NULL if it is absent or an expression. */
const char *df_hcl_attribute(const struct df_hcl_block *b, const char *name);
bool df_hcl_has_attribute(const struct df_hcl_block *b, const char *name);

/* The first block that declares the variable of this name, and the first that declares it sensitive
 * or ephemeral; NULL: none. Borrowed. m NULL: a module without blocks. */
const struct df_hcl_block *df_hcl_variable(const struct df_hcl_module *m, const char *name);
const struct df_hcl_block *df_hcl_sensitive(const struct df_hcl_module *m, const char *name);
/* True if the tools take a value of -var for this variable as it is: one without a type, or with
 * the type string, number or bool. For any other type the value is an expression. */
bool df_hcl_takes_text(const struct df_hcl_module *m, const char *name);

/* True if the block declares a sensitive or ephemeral variable. Only a plain false counts as no. */
bool df_hcl_is_sensitive(const struct df_hcl_block *b);

/* The backend or cloud block that determines where the state is, or NULL. Borrowed. */
const struct df_hcl_block *df_hcl_backend(const struct df_hcl_module *m);

#endif
