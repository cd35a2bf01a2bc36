/*
 * kube_memory.h - an API server that keeps objects in memory, and counts its requests: enough for
 * the stores of documents, secrets and blobs. Nothing else writes there, so its watches are silent.
 * Include behind cmocka.h.
 */
#ifndef DF_TEST_KUBE_MEMORY_H
#define DF_TEST_KUBE_MEMORY_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/strs.h"
#include "common/json/json.h"
#include "tests/unit/kube_server.h"

struct kube_memory {
    cJSON *objects; /* {path: object} */
    cJSON *counts;  /* {"PUT runs/status": number} */
    int version;
};

/* ---- names ---- */

/* "/apis/dayfly.dev/v1alpha1/namespaces/build/runs/net-1/status", with the last parts or "". */
struct kube_place {
    char collection[200], plural[64], name[260], sub[32];
};

static inline struct kube_place kube_place_of(const char *target)
{
    struct kube_place p = {.name = ""};
    DF_FREE char *path = strndup(target, strcspn(target, "?"));
    char *at = strstr(path, "/namespaces/build/");
    if (!at)
        fail_msg("no namespace in %s", target);
    (void)sscanf(at, "/namespaces/build/%63[^/]/%259[^/]/%31s", p.plural, p.name, p.sub);
    (void)snprintf(p.collection, sizeof(p.collection), "%.*s/%s",
                   (int)(at + strlen("/namespaces/build") - path), path, p.plural);
    return p;
}

static inline char *kube_key_of(const struct kube_place *p, const char *name)
{
    return df_strf("%s/%s", p->collection, name);
}

/* ---- counts ---- */

/* Heads of blobs are told apart by the first part of their key: "secrets(logs)". */
static inline void kube_count(struct kube_memory *m, const char *method, const struct kube_place *p,
                              const cJSON *object)
{
    const char *key = df_kube_annotation(object, "dayfly.dev/key");
    const char *of = key ? key : df_kube_label(object, "dayfly.dev/vault") ? "vault" : "";
    int n = (int)strcspn(of, "/");
    DF_FREE char *word = df_strf("%s %s%s%.*s%s%s%s", method, p->plural, n ? "(" : "", n, of,
                                 n ? ")" : "", *p->sub ? "/" : "", p->sub);
    const cJSON *had = cJSON_GetObjectItemCaseSensitive(m->counts, word);
    (void)!df_json_set(m->counts, word, cJSON_CreateNumber(had ? had->valueint + 1 : 1), NULL);
}

/* ---- objects ---- */

static inline void kube_stamp(struct kube_memory *m, cJSON *object)
{
    DF_FREE char *version = df_strf("%d", ++m->version);
    assert_int_equal(
        df_json_set_str(df_json_object_at(object, "metadata"), "resourceVersion", version, NULL),
        0);
}

static inline bool kube_has_status(const struct kube_place *p)
{
    return strstr(p->collection, "dayfly.dev") && strcmp(p->plural, "audittrails") != 0;
}

static inline void kube_say_object(struct kube_reply *a, int status, const cJSON *object)
{
    DF_FREE char *text = df_json_print(object);
    kube_say(a, status, "", text);
}

/* Every term must hold: "a=b" or "a". */
static inline bool kube_selects(const char *selector, const cJSON *object)
{
    DF_FREE char *terms = strdup(selector);
    char *rest = NULL;
    for (char *t = strtok_r(terms, ",", &rest); t; t = strtok_r(NULL, ",", &rest)) {
        char *is = strchr(t, '=');
        if (is)
            *is++ = '\0';
        const char *label = df_kube_label(object, t);
        if (!label || (is && strcmp(label, is) != 0))
            return false;
    }
    return true;
}

static inline char *kube_selector_of(const char *target)
{
    const char *at = strstr(target, "labelSelector=");
    DF_BUF struct df_buf text = DF_BUF_INIT(4096);
    at = at ? at + strlen("labelSelector=") : "";
    for (; *at && *at != '&'; at++) {
        unsigned byte = (unsigned char)*at;
        if (*at == '%' && sscanf(at + 1, "%2x", &byte) == 1)
            at += 2;
        const char c = (char)byte;
        (void)df_buf_add(&text, &c, 1);
    }
    return strdup(df_buf_str(&text));
}

static inline void kube_list_objects(struct kube_memory *m, const struct kube_place *p,
                                     const char *target, struct kube_reply *a)
{
    DF_FREE char *selector = kube_selector_of(target), *prefix = df_strf("%s/", p->collection);
    DF_FREE char *version = df_strf("%d", m->version);
    DF_JSON cJSON *list = cJSON_CreateObject();
    cJSON *items = df_json_array_at(list, "items");
    const cJSON *object;
    (void)!df_json_set_str(df_json_object_at(list, "metadata"), "resourceVersion", version, NULL);
    cJSON_ArrayForEach (object, m->objects) {
        if (df_starts_with(object->string, prefix) && kube_selects(selector, object))
            (void)!df_json_append(items, cJSON_Duplicate(object, true), NULL);
    }
    kube_say_object(a, 200, list);
}

static inline void kube_create_object(struct kube_memory *m, const struct kube_place *p,
                                      cJSON *object, struct kube_reply *a)
{
    DF_FREE char *key = kube_key_of(p, df_kube_name(object));
    if (cJSON_GetObjectItemCaseSensitive(m->objects, key)) {
        kube_status(a, 409, "AlreadyExists", "it is there");
        return;
    }
    char now[DF_TIME_LEN];
    DF_FREE char *uid = df_strf("00000000-0000-4000-8000-%012d", m->version + 1);
    cJSON *metadata = df_json_object_at(object, "metadata");
    (void)!df_json_set_str(metadata, "uid", uid, NULL);
    (void)!df_json_set_str(metadata, "namespace", "build", NULL);
    (void)!df_json_set_str(metadata, "creationTimestamp", df_time_format(df_real_us(), now), NULL);
    (void)!df_json_set(metadata, "generation", cJSON_CreateNumber(1), NULL);
    if (kube_has_status(p))
        cJSON_DeleteItemFromObjectCaseSensitive(object, "status");
    kube_stamp(m, object);
    (void)!df_json_set(m->objects, key, cJSON_Duplicate(object, true), NULL);
    kube_say_object(a, 201, object);
}

/* old is replaced by the members of body that this request may write. */
static inline void kube_replace_object(struct kube_memory *m, const struct kube_place *p,
                                       cJSON *old, const cJSON *body, struct kube_reply *a)
{
    const char *version = df_kube_version(body);
    if (version && !df_streq(version, df_kube_version(old))) {
        kube_status(a, 409, "Conflict", "the object has been modified");
        return;
    }
    const cJSON *member;
    cJSON_ArrayForEach (member, body) {
        bool of_status = df_streq(member->string, "status");
        if (kube_has_status(p) && of_status != (*p->sub != '\0'))
            continue;
        if (df_streq(member->string, "spec") &&
            !df_json_equal(member, cJSON_GetObjectItemCaseSensitive(old, "spec")))
            (void)!df_json_set(df_json_object_at(old, "metadata"), "generation",
                               cJSON_CreateNumber(df_json_num(old, "metadata.generation", 1) + 1),
                               NULL);
        cJSON *kept = cJSON_Duplicate(member, true);
        if (df_streq(member->string, "metadata")) { /* what the server alone sets */
            static const char *const own[] = {"uid", "namespace", "creationTimestamp",
                                              "generation"};
            for (size_t i = 0; i < DF_ARRAY_SIZE(own); i++)
                (void)!df_json_set(
                    kept, own[i],
                    cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(
                                        cJSON_GetObjectItemCaseSensitive(old, "metadata"), own[i]),
                                    true),
                    NULL);
        }
        (void)!df_json_set(old, member->string, kept, NULL);
    }
    kube_stamp(m, old);
    kube_say_object(a, 200, old);
}

static inline void kube_change_object(struct kube_memory *m, const struct kube_request *r,
                                      const struct kube_place *p, cJSON *old, const cJSON *body,
                                      struct kube_reply *a)
{
    if (!old)
        kube_status(a, 404, "NotFound", "there is none");
    else if (df_streq(r->method, "GET"))
        kube_say_object(a, 200, old);
    else if (df_streq(r->method, "PUT"))
        kube_replace_object(m, p, old, body, a);
    else if (df_streq(r->method, "DELETE")) {
        kube_say_object(a, 200, old);
        cJSON_Delete(cJSON_DetachItemViaPointer(m->objects, old));
    } else
        fail_msg("%s %s", r->method, r->target);
}

static inline void kube_remember(struct kube_server *s, const struct kube_request *r,
                                 struct kube_reply *a)
{
    struct kube_memory *m = s->arg;
    const struct kube_place p = kube_place_of(r->target);
    DF_FREE char *key = kube_key_of(&p, p.name);
    DF_JSON cJSON *body = cJSON_Parse(r->body);
    if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        a->hold = true;
        return;
    }
    cJSON *old = *p.name ? cJSON_GetObjectItemCaseSensitive(m->objects, key) : NULL;
    bool is_list = df_streq(r->method, "GET") && !*p.name;
    kube_count(m, is_list ? "LIST" : r->method, &p, old ? old : body);
    if (is_list)
        kube_list_objects(m, &p, r->target, a);
    else if (df_streq(r->method, "POST"))
        kube_create_object(m, &p, body, a);
    else
        kube_change_object(m, r, &p, old, body, a);
}

static inline void kube_memory_open(struct kube_memory *m, struct kube_server *s)
{
    *m = (struct kube_memory){cJSON_CreateObject(), cJSON_CreateObject(), 100};
    kube_start(s, kube_remember, m);
}

static inline void kube_memory_close(struct kube_memory *m, struct kube_server *s)
{
    kube_stop(s);
    cJSON_Delete(m->objects);
    cJSON_Delete(m->counts);
}

#endif
