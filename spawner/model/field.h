/*
 * field.h - a field of a document is one row: its type and rule, who writes it, and what becomes of
 * its value. Everything else that knows the fields asks the row:
 *
 *   admission                 schema.h
 *   requests for runs         spawner/requests: BY_CLIENT
 *   a run's snapshot          spawner/requests: all of the Executor but DF_LIVE
 *   a run's steps             spawner/requests: the snapshot, and DF_TO_STEP of the run
 *   the step document         spawner/steps: DF_TO_RUNNER
 *   the custom resource       spawner/store/documents: what stands in its spec, what in its status
 *   rbac/crds, openapi.yaml   make crds openapi (tests/tools/schemas.c)
 *
 * Thread rule: constant data.
 */
#ifndef DF_FIELD_H
#define DF_FIELD_H

#include "common/json/json.h"

struct df_path;
struct df_faults;

/* A rule that a table cannot say. Adds a fault for everything wrong in value. */
typedef void df_rule(const cJSON *value, const struct df_path *path, struct df_faults *f);

enum df_type {
    DF_TYPE_ANY,
    DF_TYPE_STRING,
    DF_TYPE_BOOL,
    DF_TYPE_WHOLE,
    DF_TYPE_OBJECT,
    DF_TYPE_LIST
};

/* Who writes a field of a spec. In a cluster everybody with the right to a resource can write its
 * spec, so what a Run or a TaskAction was taken in with is kept in the status, and counts from then
 * on; but for VERB. An Executor's spec stays its people's. */
enum df_by {
    DF_BY_CLIENT,  /* who asks: in the body of a request, or in the resource that is applied */
    DF_BY_PATH,    /* the same, but a REST request has it in its path */
    DF_BY_VERB,    /* who decides later: with /approve or /cancel, or with kubectl at any time */
    DF_BY_SERVICE, /* the service: people neither write it nor see it in the resource's spec */
};

#define DF_REQUIRED 1U
#define DF_FROZEN 2U /* as it was when the document was made */
#define DF_LINES 4U  /* STRING: may have line breaks and tabs */
#define DF_LIVE 8U   /* Executor: asked for when it is needed; runs do not keep a copy */
#define DF_TO_STEP                                                                                 \
    16U /* Run: added to the snapshot's where that is a list or a map, else instead */
#define DF_TO_RUNNER 32U /* TaskAction: in the step document under the same name */

struct df_field {
    const char *name; /* of the member; NULL in the row that ends a table and in items */
    enum df_type type;
    enum df_by by;
    unsigned flags;
    int64_t min, max;         /* WHOLE: value; STRING: bytes; LIST, OBJECT: count. max 0: no cap */
    const char *const *words; /* STRING: one of these, ends with NULL; or NULL */
    const char *fallback;     /* JSON text put in when the member is absent; or NULL */
    const char *only;         /* Run: for this action alone; or NULL */
    const struct df_field *fields; /* OBJECT: its members; NULL: any names */
    const struct df_field *item;   /* LIST: every item; OBJECT without fields: every member */
    df_rule *rule;                 /* asked when all of the above is right; or NULL */
};

/* The row of this name; NULL: there is none. */
const struct df_field *df_field_find(const struct df_field *fields, const char *name);

#endif
