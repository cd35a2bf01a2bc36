/*
 * pod_template.h - strategic merge patches of pod templates, as `kubectl patch` and kustomize have
 * them: maps merge by key, null deletes, and lists of named things merge by their name.
 *
 * Merge keys and atomic lists are those of core/v1 (patchMergeKey, patchStrategy). Directives:
 * `$patch: replace|delete|merge` in maps, `$patch: delete` in items of merged lists,
 * `- $patch: replace` as an item of its own (the list is then what else the patch has; within
 * another item it would drop that item, as in kubectl, and is refused), `$retainKeys` in maps,
 * `$deleteFromPrimitiveList/<field>`. `$setElementOrder/<field>` is refused: the order of merged
 * lists is that of the template with new items behind it (kubectl puts them in front; nothing in a
 * pod depends on it but init containers, of which we have none).
 * Thread rule: pure functions over the trees handed in.
 */
#ifndef DF_POD_TEMPLATE_H
#define DF_POD_TEMPLATE_H

#include "common/json/json.h"

/* Applies patch to *target, both shaped like a PodTemplateSpec ({metadata, spec}). Class USER,
 * reason InvalidPlacement, with the path of what is wrong; LIMIT beyond DF_LIMIT_POD_DEPTH levels
 * or, for the result as text, DF_LIMIT_POD_TEMPLATE. On failure *target is as it was. */
int df_pod_template_patch(cJSON **target, const cJSON *patch, struct df_err *err) DF_MUST_CHECK;

#endif
