/*
 * kinds.h - the kinds of documents, one row each: how a kind is called and shown, its fields, and
 * what the store does with it. All code that is the same for every kind reads the row:
 *
 *   validation                schema.h
 *   store                     spawner/store/documents: backends, watch caches, codec
 *   REST                      spawner/api/documents.c, pages.c
 *   command line              spawner/cli/kinds.h
 *   doctor                    spawner/doctor: definitions, rights
 *   CRDs, openapi.yaml        make crds openapi (tests/tools/schemas.c)
 *
 * What only one kind does is in its own files: CONTRIBUTING.md ("Adding a kind"). Thread rule:
 * constant data.
 */
#ifndef DF_MODEL_KINDS_H
#define DF_MODEL_KINDS_H

#include "spawner/model/columns.h"
#include "spawner/model/field.h"

/* The numbers are those of the databases: a new kind comes last, and none is ever removed. */
enum df_kind {
    DF_KIND_EXECUTOR,
    DF_KIND_RUN,
    DF_KIND_TASK_ACTION,
    DF_KIND_INTEGRATION,
    DF_KIND_REVISION
};
#define DF_KIND_COUNT 5

struct df_kind_row {
    const char *name; /* "Executor": the member kind of the document */
    struct df_shown shown;
    const char *short_name;      /* for kubectl: "dfe" */
    const struct df_field *rows; /* of the document; of TaskAction: of a step of a run */
    const struct df_field *spec; /* of its spec */
    /* Specs of documents of this kind with another action, at most two. */
    const struct df_field *other_specs[2];
    bool is_custom_resource; /* in a cluster; else only the service's API reaches it */
    /* People change its spec as they like. Of other kinds the spec counts as it was accepted: a
     * copy of it is in the status of the custom resource. */
    bool is_editable;
    bool newest_first; /* lists are in this order by default */
};

const struct df_kind_row *df_kind_row(enum df_kind kind);

const char *df_kind_name(enum df_kind kind);   /* "Executor" */
const char *df_kind_plural(enum df_kind kind); /* "executors" */

/* The state of a document by this member; NULL: it has none. Borrowed. */
const char *df_state_of(const struct df_state_member *m, const cJSON *doc);

/* The row of this member of the spec, of any action; NULL: none. */
const struct df_field *df_spec_field(enum df_kind kind, const char *name);

#endif
