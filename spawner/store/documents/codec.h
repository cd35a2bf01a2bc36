/*
 * codec.h - translates a document, as the rest of the spawner knows it (store.h), from and to the
 * custom resource that the API server keeps. What becomes of a field says its row in the model
 * (field.h).
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
#ifndef DF_CODEC_H
#define DF_CODEC_H

#include "common/base/strs.h"
#include "spawner/model/model.h"

#define DF_FINALIZER "dayfly.dev/cleanup"

/* Decodes a resource into the document, in place. */
int df_codec_to_document(enum df_kind kind, cJSON *resource, struct df_err *err) DF_MUST_CHECK;

/* The encoders return the body of a request; api_version: "group/version" of the resource. */

/* The resource to create for a new document, without its status. */
int df_codec_new(enum df_kind kind, const char *api_version, const cJSON *doc,
                 const char *name_space, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* An update of the resource without its status; one of its status. resource: as it is now. *ret is
 * NULL when nothing would change. */
int df_codec_main(enum df_kind kind, const char *api_version, const cJSON *doc,
                  const cJSON *resource, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
int df_codec_status(enum df_kind kind, const char *api_version, const cJSON *doc,
                    const cJSON *resource, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The index keys of the watch cache: the document's labels, as "key=value". What the control loop
 * has not looked at since somebody applied, edited or deleted it is indexed as unfinished, too. */
int df_codec_labels(const cJSON *resource, struct df_strs *ret, struct df_err *err) DF_MUST_CHECK;

/* Its number in the order of creation; it sorts lists. */
int64_t df_codec_order(const cJSON *resource);

/* The finalizers but for ours; NULL on no memory. */
cJSON *df_codec_other_finalizers(const cJSON *resource);

#endif
