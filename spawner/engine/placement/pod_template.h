/*
 * pod_template.h - strategic merge patches of pod templates, as in `kubectl patch` and kustomize:
 * maps are merged by key, null deletes, and lists of named items are merged by name.
 *
 * Merge keys and atomic lists are those of core/v1 (patchMergeKey, patchStrategy). Directives:
 * `$patch: replace|delete|merge` in maps, `$patch: delete` in items of merged lists,
 * `- $patch: replace` as an item of its own (the other items of the patch then replace the list;
 * within another item it would drop that item, as in kubectl, and is refused), `$retainKeys` in
 * maps, `$deleteFromPrimitiveList/<field>`. `$setElementOrder/<field>` is refused: a merged list
 * has the order of the template, and new items are appended (kubectl prepends them; in a pod the
 * order matters only for init containers, and our pods have none).
 * Thread rule: pure functions over the trees that are passed in.
 */
#ifndef DF_POD_TEMPLATE_H
#define DF_POD_TEMPLATE_H

#include "common/json/json.h"

/* Applies patch to *target; both have the shape of a PodTemplateSpec ({metadata, spec}). Class
 * USER, reason InvalidPlacement, with the path of the error. LIMIT: more than DF_LIMIT_POD_DEPTH
 * levels, or the result is larger than DF_LIMIT_POD_TEMPLATE as text. On failure *target is
 * unchanged. */
int df_pod_template_patch(cJSON **target, const cJSON *patch, struct df_err *err) DF_MUST_CHECK;

#endif
