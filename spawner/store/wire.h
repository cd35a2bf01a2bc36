/*
 * wire.h - a document as the rest of the spawner knows it (store.h), and as the custom resource
 * that the API server keeps.
 *
 * People write the spec of a resource, the service alone its status: the rights to them differ. So
 * all that the service must be able to rely on stands in the status, as status.service:
 *
 *   order   the resourceVersion at which the document was taken in: the order of creation
 *   labels  those that the service finds its documents by; what people write under these names in
 *           metadata.labels is not believed
 *   spec    members of the spec that the service set (the number of a run, its snapshot), or took
 *           in for good (its action and variables): they stand in for those of the spec, which
 *           people may still write
 *
 * A write of the control loop is thus one request, and a crash leaves no half of it. A resource
 * without status.service is one that somebody applied and nobody took in yet: a document without
 * status.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_WIRE_H
#define DF_WIRE_H

#include "common/base/strs.h"
#include "spawner/model/model.h"

#define DF_FINALIZER "dayfly.dev/cleanup"

/* Turns a resource into the document, in place. */
int df_wire_to_document(enum df_kind kind, cJSON *wire, struct df_err *err) DF_MUST_CHECK;

/* What to write, as the body of a request. api_version: "group/version" of the resource. */

/* The resource to create for a new document, without its status. */
int df_wire_new(enum df_kind kind, const char *api_version, const cJSON *doc,
                const char *name_space, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* The resource without its status, so that it says what the document says; the status. wire: as it
 * is now. *ret is NULL when it is as it should be. */
int df_wire_main(enum df_kind kind, const char *api_version, const cJSON *doc, const cJSON *wire,
                 cJSON **ret, struct df_err *err) DF_MUST_CHECK;
int df_wire_status(enum df_kind kind, const char *api_version, const cJSON *doc, const cJSON *wire,
                   cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The labels that the document is found by, as "key=value". What is to be taken in or let go is
 * also found as unfinished. */
int df_wire_labels(const cJSON *wire, struct df_strs *ret, struct df_err *err) DF_MUST_CHECK;

/* Its place in the order of creation. */
int64_t df_wire_order(const cJSON *wire);

/* The finalizers but for ours; NULL on no memory. */
cJSON *df_wire_other_finalizers(const cJSON *wire);

#endif
