/*
 * tree.h - walks a directory tree in a fixed order without following links, and checks whether a
 * symbolic link stays inside. Thread rule: any thread. A concurrent change of the tree is safe, but
 * causes an error or an inconsistent result.
 */
#ifndef DF_TREE_H
#define DF_TREE_H

#include <sys/stat.h>

#include "common/base/err.h"

struct df_tree_entry {
    const char *path; /* relative to the walked directory, "a/b" */
    const char *name; /* last component of path */
    int dir;          /* descriptor of the directory that holds it */
    const struct stat *st;
};

/* A visitor's decision: continue (into a directory, too), do not descend, or fail. */
enum df_tree_visit { DF_TREE_GO_ON = 0, DF_TREE_SKIP = 1, DF_TREE_FAIL = -1 };
typedef enum df_tree_visit (*df_tree_visitor)(void *arg, const struct df_tree_entry *e,
                                              struct df_err *err);

/* Calls visit for every entry below directory: in byte order of names, a directory before its
 * content. A visitor may remove its entry and then return SKIP. Class LIMIT
 * beyond DF_LIMIT_TREE_DEPTH or DF_LIMIT_TREE_ENTRIES. */
int df_tree_walk(const char *directory, df_tree_visitor visit, void *arg,
                 struct df_err *err) DF_MUST_CHECK;
/* The same for an open directory, which stays open. */
int df_tree_walk_at(int directory, df_tree_visitor visit, void *arg,
                    struct df_err *err) DF_MUST_CHECK;

/* Succeeds if the symbolic link at path leads to a path below root, existing or not, through any
 * number of links. path is relative to root; only its last component may be a link. Class USER,
 * reason SourceRefused, if the link leads outside or in a circle. */
int df_tree_link_stays(int root, const char *path, struct df_err *err) DF_MUST_CHECK;

#define DF_TREE_LISTING 256
/* The entries at the top but .git, for a message: "a, b/, c"; the last ones may be left out.
 * Returns out. */
const char *df_tree_list(const char *directory, char out[DF_TREE_LISTING]);

/* Removes the content of a directory. */
int df_tree_empty(const char *directory, struct df_err *err) DF_MUST_CHECK;

#endif
