/*
 * tree.h - walks a directory tree without ever following a link, in an order that is always the
 * same, and tells whether a symbolic link stays inside. Thread rule: any thread, as long as nobody
 * changes the tree meanwhile; a change is no danger, only an error or an odd picture.
 */
#ifndef DF_TREE_H
#define DF_TREE_H

#include <sys/stat.h>

#include "common/base/err.h"

struct df_tree_entry {
    const char *path; /* relative to the walked directory, "a/b" */
    const char *name; /* its last component */
    int dir;          /* descriptor of the directory that holds it */
    const struct stat *st;
};

/* What a visitor says: go on (and down, if it is a directory), do not go down, or fail. */
enum df_tree_visit { DF_TREE_GO_ON = 0, DF_TREE_SKIP = 1, DF_TREE_FAIL = -1 };
typedef enum df_tree_visit (*df_tree_visitor)(void *arg, const struct df_tree_entry *e,
                                              struct df_err *err);

/* Calls visit for every entry below directory, names of each directory in byte order, a directory
 * before its content. A visitor may remove the entry it is called for and then skip it. Class LIMIT
 * beyond DF_LIMIT_TREE_DEPTH or DF_LIMIT_TREE_ENTRIES. */
int df_tree_walk(const char *directory, df_tree_visitor visit, void *arg,
                 struct df_err *err) DF_MUST_CHECK;

/* Does the symbolic link at path (relative to root, no component of it a link but the last) lead to
 * a place below root, existing or not, however many links lie on the way? Class USER, reason
 * SourceRefused, when it does not or when the links go in a circle. */
int df_tree_link_stays(int root, const char *path, struct df_err *err) DF_MUST_CHECK;

/* Removes all content of a directory, but not the directory. */
int df_tree_empty(const char *directory, struct df_err *err) DF_MUST_CHECK;

#endif
