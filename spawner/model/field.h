/*
 * field.h - a field of a document is one row: its type and rule, the writer, and where the value is
 * copied to. All code that handles fields reads the row:
 *
 *   validation                schema.h
 *   requests for runs         spawner/requests: BY_CLIENT
 *   a run's snapshot          spawner/requests: all fields of the Executor except DF_LIVE
 *   a run's steps             spawner/requests: the snapshot, and DF_TO_STEP of the run
 *   the step document         spawner/steps: DF_TO_RUNNER
 *   the custom resource       spawner/store/documents: which fields its spec has, which its status
 *   CRDs, openapi.yaml        make crds openapi (tests/tools/schemas.c)
 *
 * Thread rule: constant data.
 */
#ifndef DF_FIELD_H
#define DF_FIELD_H

#include "common/json/json.h"

struct df_path;
struct df_faults;

/* A rule that a table cannot express. Adds a fault for everything wrong in value. */
typedef void df_rule(const cJSON *value, const struct df_path *path, struct df_faults *f);

enum df_type {
    DF_TYPE_ANY,
    DF_TYPE_STRING,
    DF_TYPE_BOOL,
    DF_TYPE_WHOLE,
    DF_TYPE_OBJECT,
    DF_TYPE_LIST
};

/* The writer of a field of a spec. In a cluster everybody with the right to a resource can write
 * its spec. Therefore the accepted spec of a Run or a TaskAction is copied into the status, and
 * only the copy counts from then on; fields with DF_BY_VERB are the exception. The spec of an
 * Executor belongs to its users. */
enum df_by {
    DF_BY_CLIENT,  /* the client: in the body of a request, or in the applied resource */
    DF_BY_PATH,    /* the same, but a REST request has it in its path */
    DF_BY_VERB,    /* a later decision: /approve, /cancel, or kubectl at any time */
    DF_BY_SERVICE, /* the service: users neither write it nor see it in the resource's spec */
};

#define DF_REQUIRED 1U
#define DF_FROZEN 2U /* cannot be changed after the creation of the document */
#define DF_LINES 4U  /* STRING: may have line breaks and tabs */
#define DF_LIVE 8U   /* Executor: read when it is needed; runs do not keep a copy */
#define DF_TO_STEP                                                                                 \
    16U /* Run: a list or map is added to the snapshot's, any other value replaces it */
#define DF_TO_RUNNER 32U /* TaskAction: in the step document under the same name */

struct df_field {
    const char *name; /* of the member; NULL in the row that ends a table and in items */
    enum df_type type;
    enum df_by by;
    unsigned flags;
    int64_t min, max;         /* WHOLE: value; STRING: bytes; LIST, OBJECT: count. max 0: no cap */
    const char *const *words; /* STRING: one of these, ends with NULL; or NULL */
    const char *fallback;     /* default value as JSON text; or NULL */
    const char *only;         /* Run: for this action alone; or NULL */
    const struct df_field *fields; /* OBJECT: its members; NULL: any names */
    const struct df_field *item;   /* LIST: every item; OBJECT without fields: every member */
    df_rule *rule;                 /* called if all of the above is valid; or NULL */
};

/* The row of this name; NULL: there is none. */
const struct df_field *df_field_find(const struct df_field *fields, const char *name);

#endif
