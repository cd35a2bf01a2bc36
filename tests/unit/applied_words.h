/* What people write with kubectl: documents without status, patches and deletions. */
#ifndef DF_TEST_APPLIED_WORDS_H
#define DF_TEST_APPLIED_WORDS_H

#include "tests/unit/control_loop.h"

static inline void apply(struct world *w, enum df_kind kind, const char *name, const char *spec)
{
    struct df_err err = {0};
    DF_FREE char *text =
        df_strf("{'metadata':{'name':'%s','namespace':'default'},'spec':%s}", name, spec);
    DF_JSON cJSON *doc = json(text);
    if (df_store_create(w->s.store, kind, doc, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void apply_executor(struct world *w, const char *name)
{
    apply(w, DF_KIND_EXECUTOR, name, "{'source':{'url':'file:///nowhere','kind':'directory'}}");
}

#define RUN_NET "{'executorRef':{'name':'net'},'action':'provision'}"

/* Sets one member of the document, as a patch would. */
struct patch {
    const char *object, *member, *value;
};

static inline int set_member(cJSON *doc, void *arg, struct df_err *err)
{
    const struct patch *p = arg;
    return df_json_set(df_json_object_at(doc, p->object), p->member, json(p->value), err);
}

static inline void patch(struct world *w, enum df_kind kind, const char *name, const char *object,
                         const char *member, const char *value)
{
    struct patch p = {object, member, value};
    struct df_err err = {0};
    if (df_store_modify(w->s.store, kind, name, set_member, &p, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void delete (struct world *w, enum df_kind kind, const char *name)
{
    patch(w, kind, name, "metadata", "deletionTimestamp", "'2026-11-21T20:17:40Z'");
}

static inline void await_gone(struct world *w, enum df_kind kind, const char *name)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *doc = get(w, kind, name);
        if (!doc)
            return;
        wait_for_change(w, mark);
    }
}

/* The status of one of three conditions. */
static inline void await_condition(struct world *w, enum df_kind kind, const char *name,
                                   const char *type, const char *status, const char *reason)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *doc = get(w, kind, name);
        const cJSON *c;
        cJSON_ArrayForEach (c, df_json_at(doc, "status.conditions")) {
            if (df_streq(df_json_str(c, "type"), type) &&
                df_streq(df_json_str(c, "status"), status) &&
                df_streq(df_json_str(c, "reason"), reason))
                return;
        }
        wait_for_change(w, mark);
    }
}

#endif
