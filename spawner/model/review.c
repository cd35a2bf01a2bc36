/*
 * review.c - what the annotations must be (set_stamps), the patch that makes them so, and the
 * answer. Read df_review_answer() at the end first.
 */
#include "spawner/model/review.h"

#include "common/crypto/crypto.h"

#define API_VERSION "admission.k8s.io/v1"
#define GROUP "dayfly.dev"

struct review {
    const cJSON *object, *old;       /* old: NULL or null at a creation */
    char stamp[DF_LIMIT_STAMP + 16]; /* "write eve" */
    struct df_stamp by;              /* the same, read */
};

static bool is_deletion(const cJSON *request)
{
    return df_streq(df_json_str(request, "operation"), "DELETE");
}

/* ---- the annotations ---- */

static const cJSON *annotation(const cJSON *doc, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(df_json_at(doc, "metadata.annotations"), name);
}

static bool is_new(const struct review *r, const char *path)
{
    return df_json_at(r->object, path) && !df_json_at(r->old, path);
}

/* Did this request write the spec? A Run can be edited until the service has accepted it: then it
 * is the editor's, and has the editor's role. A decision or a cancel alone does not make it
 * theirs. */
static bool writes_spec(const struct review *r)
{
    if (!cJSON_IsObject(r->old))
        return true;
    return !is_new(r, "spec.decision") && !is_new(r, "spec.cancel") &&
           !df_json_equal(df_json_at(r->object, "spec"), df_json_at(r->old, "spec"));
}

/* Sets the annotation to the user of the request if is_due; else keeps the stored one. */
static int set_stamp(cJSON *annotations, const struct review *r, const char *name, bool is_due,
                     struct df_err *err)
{
    const cJSON *before = annotation(r->old, name);
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, name);
    if (is_due)
        return df_json_add_str(annotations, name, r->stamp, err);
    return before ? df_json_set(annotations, name, cJSON_Duplicate(before, true), err) : 0;
}

static int set_stamps(cJSON *annotations, const struct review *r, struct df_err *err)
{
    if (set_stamp(annotations, r, DF_STAMP_REQUESTED, writes_spec(r), err) < 0 ||
        set_stamp(annotations, r, DF_STAMP_DECIDED, is_new(r, "spec.decision"), err) < 0)
        return -1;
    return set_stamp(annotations, r, DF_STAMP_CANCELED, is_new(r, "spec.cancel"), err);
}

/* ---- the patch ---- */

/* One operation: "add" also replaces a member. Takes ownership of the annotations. */
static int make_patch(cJSON *annotations, struct df_buf *base64, struct df_err *err)
{
    DF_JSON cJSON *patch = cJSON_CreateArray(), *operation = cJSON_CreateObject();
    if (df_json_put(operation, err, DF_ITEM("value", annotations), DF_STR("op", "add"),
                    DF_STR("path", "/metadata/annotations")) < 0 ||
        df_json_append(patch, DF_TAKE(operation), err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(patch);
    return text ? df_base64_encode(text, strlen(text), false, base64, err) : df_fail_oom(err);
}

static int add_patch(cJSON *response, const struct review *r, struct df_err *err)
{
    const cJSON *sent = df_json_at(r->object, "metadata.annotations");
    DF_JSON cJSON *wanted = sent ? cJSON_Duplicate(sent, true) : cJSON_CreateObject();
    DF_BUF struct df_buf base64 = DF_BUF_INIT(2 * DF_LIMIT_REVIEW);
    if (!cJSON_IsObject(wanted))
        return df_fail_oom(err);
    if (set_stamps(wanted, r, err) < 0)
        return -1;
    if (df_json_equal(wanted, sent) || (!sent && !wanted->child))
        return 0;
    if (make_patch(DF_TAKE(wanted), &base64, err) < 0)
        return -1;
    return df_json_put(response, err, DF_STR("patchType", "JSONPatch"),
                       DF_STR("patch", df_buf_str(&base64)));
}

/* ---- the answer ---- */

static int refuse(cJSON *response, struct df_err *err)
{
    return df_json_put(df_json_object_at(response, "status"), err, DF_NUM("code", 403),
                       DF_STR("message",
                              "dayfly keeps the name of who asks, and this user name has control "
                              "characters, is empty or too long"));
}

/* Writes the stamp and reads it again: what could not be read is not written. */
static bool name_user(struct review *r, const char *user, enum df_role role)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(doc, "metadata");
    cJSON *annotations = df_json_object_at(metadata, "annotations");
    if (!annotations || !user || strlen(user) > DF_LIMIT_STAMP)
        return false;
    (void)snprintf(r->stamp, sizeof(r->stamp), "%s %s", df_role_name(role), user);
    if (df_json_add_str(annotations, DF_STAMP_REQUESTED, r->stamp, NULL) < 0)
        return false;
    r->by = df_stamp_read(doc, DF_STAMP_REQUESTED, true);
    return r->by.is_named;
}

static int answer(const cJSON *request, enum df_role role, cJSON *response, struct df_err *err)
{
    struct review r = {.object = df_json_at(request, "object"),
                       .old = df_json_at(request, "oldObject")};
    bool deletes = is_deletion(request);
    bool is_named = name_user(&r, df_json_str(request, "userInfo.username"), role);
    if (df_json_put(response, err, DF_STR("uid", df_json_str(request, "uid")),
                    DF_BOOL("allowed", is_named || deletes)) < 0)
        return -1;
    if (deletes)
        return 0;
    return is_named ? add_patch(response, &r, err) : refuse(response, err);
}

int df_review_answer(const cJSON *review, enum df_role role, cJSON **ret, struct df_err *err)
{
    const cJSON *request = df_json_at(review, "request");
    DF_JSON cJSON *reply = cJSON_CreateObject();
    cJSON *response = df_json_object_at(reply, "response");
    if (!response)
        return df_fail_oom(err);
    if (!df_streq(df_json_str(review, "apiVersion"), API_VERSION) || !df_json_str(request, "uid") ||
        !df_streq(df_json_str(request, "resource.group"), GROUP) ||
        !cJSON_IsObject(df_json_at(request, is_deletion(request) ? "oldObject" : "object")))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "the body is no AdmissionReview (" API_VERSION
                              ") of an object of " GROUP);
    if (answer(request, role, response, err) < 0 ||
        df_json_put(reply, err, DF_STR("apiVersion", API_VERSION),
                    DF_STR("kind", "AdmissionReview")) < 0)
        return -1;
    *ret = DF_TAKE(reply);
    return 0;
}

bool df_review_deletion(const cJSON *review, enum df_role role, const char **ret_uid,
                        struct df_stamp *ret_by)
{
    const cJSON *request = df_json_at(review, "request");
    struct review r = {0};
    *ret_uid = df_json_str(request, "oldObject.metadata.uid");
    if (!is_deletion(request) || df_json_bool(request, "dryRun", false) || !*ret_uid ||
        !name_user(&r, df_json_str(request, "userInfo.username"), role))
        return false;
    *ret_by = r.by;
    return true;
}
