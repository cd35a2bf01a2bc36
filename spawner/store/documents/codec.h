/*
 * codec.h - translates a document, as the rest of the spawner knows it (store.h), from and to the
 * custom resource that the API server stores. The field's row in the model (field.h) says where
 * each field goes.
 *
 * People may write the spec of a resource, but only the service may write its status: these are
 * different rights in Kubernetes. So the service keeps what it must rely on in status.service:
 *
 *   order   the resourceVersion at which the document was accepted: the creation number
 *   uid     the document's: that of its first resource. Blobs, steps and plans name documents by
 *           it, so it outlives a backup of the cluster that creates the resources again, with other
 *           uids
 *   labels  the labels by which the service finds its documents; the same names in
 *           metadata.labels, which people may write, are ignored
 *   spec    members of the spec that the service has set (a run's number and snapshot) or that are
 *           fixed since the document was accepted (its action and variables); they replace those
 *           of the resource's spec, which people may still write
 *
 * So a write of the control loop is one request, and a crash cannot leave half of it. A resource
 * without status.service was applied and is not accepted yet; it becomes a document without status.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_CODEC_H
#define DF_CODEC_H

#include "common/base/strs.h"
#include "spawner/model/model.h"

#define DF_FINALIZER "dayfly.dev/cleanup"

/* Decodes a resource into the document, in place. */
int df_codec_to_document(enum df_kind kind, cJSON *resource, struct df_err *err) DF_MUST_CHECK;

/* The API server reads numbers as 64-bit integers or doubles. Refuses one that would be rounded,
 * with its path: class USER, reason InvalidDocument. */
int df_codec_check_numbers(const cJSON *doc, struct df_err *err) DF_MUST_CHECK;

/* The encoders return the body of a request, which borrows from doc and resource: it must not be
 * read after one of them is gone. api_version: "group/version" of the resource. */

/* The resource to create for a new document, without its status. */
int df_codec_new(enum df_kind kind, const char *api_version, const cJSON *doc,
                 const char *name_space, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* An update of the resource without its status, and an update of its status alone. resource: the
 * current one. *ret stays NULL if nothing would change. */
int df_codec_main(enum df_kind kind, const char *api_version, const cJSON *doc,
                  const cJSON *resource, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
int df_codec_status(enum df_kind kind, const char *api_version, const cJSON *doc,
                    const cJSON *resource, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The index keys of the watch cache: the document's labels, as "key=value". A document that was
 * applied, edited or deleted since its last reconcile is also indexed as unfinished, and an
 * unfinished one that was made again from a backup as restored. */
int df_codec_labels(const cJSON *resource, struct df_strs *ret, struct df_err *err) DF_MUST_CHECK;

/* The document's uid; borrowed. NULL: it has none. */
const char *df_codec_uid(const cJSON *resource);

/* The creation number, which sorts lists. Documents that were restored from a backup stand before
 * those of this cluster, whose resourceVersions may have begun anew. */
int64_t df_codec_order(const cJSON *resource);

/* The finalizers without ours. NULL if there is no memory. */
cJSON *df_codec_other_finalizers(const cJSON *resource);

#endif
