/* The labels of an object, and to which action an existing object belongs. */
#include <ctype.h>

#include "common/crypto/crypto.h"
#include "spawner/engine/workflow/workflow.h"
#include "spawner/model/labels.h"

#define LABEL_NAMESPACE "kubernaut.ai/source-namespace"
#define LABEL_WORKFLOW "kubernaut.ai/workflow-id"
#define LABEL_VERSION "kubernaut.ai/workflow-version"
#define LABEL_TARGET "kubernaut.ai/target-resource"

/* ---- labels ---- */

static bool is_label_value(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 63 || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[n - 1]))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("-_.", *s))
            return false;
    return true;
}

/* A valid label value for the text: sanitized, without "-", "_" and "." at its end, which may be
 * left where the text was cut. If that is still invalid, a hash. An annotation has the raw text. */
static int label_value(const char *text, char ret[64], struct df_err *err)
{
    char hash[DF_SHA256_HEX];
    df_workflow_sanitize(text, ret);
    for (size_t n = strlen(ret); n > 0 && strchr("-_.", ret[n - 1]); n--)
        ret[n - 1] = '\0';
    if (!*text || is_label_value(ret))
        return 0;
    if (df_sha256_hex(text, strlen(text), hash, err) < 0)
        return -1;
    (void)snprintf(ret, 64, "sha256-%.16s", hash);
    return 0;
}

int df_workflow_put_label(cJSON *metadata, const char *key, const char *text, struct df_err *err)
{
    char value[64];
    cJSON *labels = df_json_object_at(metadata, "labels");
    if (!text)
        return 0;
    if (label_value(text, value, err) < 0)
        return -1;
    bool is_raw = df_streq(value, text);
    cJSON *annotations = is_raw ? NULL : df_json_object_at(metadata, "annotations");
    if (!is_raw && df_json_set_str(annotations, key, text, err) < 0)
        return -1;
    return df_json_set_str(labels, key, value, err);
}

int df_workflow_put_labels(cJSON *metadata, const struct df_workflow *w, struct df_err *err)
{
    if (df_workflow_put_label(metadata, DF_LABEL_WORKFLOW_EXECUTION, w->name, err) < 0 ||
        df_workflow_put_label(metadata, LABEL_NAMESPACE, w->source_namespace, err) < 0 ||
        df_workflow_put_label(metadata, LABEL_WORKFLOW, w->workflow_id, err) < 0 ||
        df_workflow_put_label(metadata, LABEL_VERSION, w->version, err) < 0 ||
        df_workflow_put_label(metadata, LABEL_TARGET, w->target, err) < 0)
        return -1;
    cJSON *annotations = df_json_object_at(metadata, "annotations");
    return df_json_set_str(annotations, LABEL_TARGET, w->target, err);
}

/* ---- ownership ---- */

const char *df_workflow_owner(const cJSON *object)
{
    const cJSON *annotations = df_json_at(object, "metadata.annotations");
    const char *raw = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(annotations, DF_LABEL_WORKFLOW_EXECUTION));
    const char *label = raw ? raw : df_label_get(object, DF_LABEL_WORKFLOW_EXECUTION);
    return label ? label : "";
}

/* A label of the object must equal ours, unless one of them is absent. */
static bool equals_if_set(const char *label, const char *ours)
{
    return !label || !ours || df_streq(label, ours);
}

bool df_workflow_owns(const struct df_workflow *w, const cJSON *object)
{
    return df_streq(df_workflow_owner(object), w->name ? w->name : "") &&
           equals_if_set(df_label_get(object, LABEL_NAMESPACE), w->source_namespace) &&
           equals_if_set(df_label_get(object, DF_LABEL_STEP_UID), w->uid);
}

enum df_workflow_clash df_workflow_clash(const struct df_workflow *w, const cJSON *object,
                                         bool is_over)
{
    if (!object)
        return DF_WORKFLOW_CLASH_GONE;
    bool is_named =
        !df_str_empty(df_workflow_owner(object)) && df_label_get(object, LABEL_NAMESPACE);
    /* If it names our action but has another uid, an action of another system has the same name. */
    bool has_uid = !w->uid || df_streq(df_label_get(object, DF_LABEL_STEP_UID), w->uid);
    if (is_named && has_uid && df_workflow_owns(w, object))
        return DF_WORKFLOW_CLASH_ADOPT;
    /* An object without the label has no owner, so we must not delete it. */
    return is_over && !df_str_empty(df_workflow_owner(object)) ? DF_WORKFLOW_CLASH_REPLACE
                                                               : DF_WORKFLOW_CLASH_WAIT;
}

void df_workflow_describe_holder(const char *kind, const char *name_space, const char *name,
                                 const cJSON *object, char *to, size_t size)
{
    const char *owner = df_workflow_owner(object);
    (void)snprintf(to, size, "the %s %s/%s of %.100s", kind, name_space, name,
                   *owner ? owner : "an unknown owner; delete it if it is not needed");
}
