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

/* ---- stamps ---- */

/* An installation with the webhook and its policy. */
static inline void believe_stamps(struct world *w)
{
    static char name[] = "dayfly";
    w->config.kube_webhook = name;
}

static inline void apply_as(struct world *w, enum df_kind kind, const char *name, const char *spec,
                            const char *stamp)
{
    struct df_err err = {0};
    DF_FREE char *text = df_strf("{'metadata':{'name':'%s','annotations':{"
                                 "'dayfly.dev/requested-by':'%s'}},'spec':%s}",
                                 name, stamp, spec);
    DF_JSON cJSON *doc = json(text);
    if (df_store_create(w->s.store, kind, doc, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

#define SOURCE "'source':{'url':'file:///nowhere','kind':'directory'}"

static inline void begin_stamped(struct world *w)
{
    believe_stamps(w);
    start(w);
    apply_as(w, DF_KIND_EXECUTOR, "net", "{" SOURCE "}", "admin ann");
    apply_as(w, DF_KIND_RUN, "first", RUN_NET, "write eve");
    play_plan(w, "first", "first-plan");
    await_value(w, DF_KIND_RUN, "first", "status.phase", "WaitingApproval");
}

static inline bool is_audited(struct world *w, const char *actor, const char *role,
                              const char *action, const char *outcome)
{
    DF_JSON cJSON *entries = NULL;
    const cJSON *e;
    assert_int_equal(df_store_audit_list(w->s.store, NULL, NULL, 100, &entries, NULL, NULL), 0);
    cJSON_ArrayForEach (e, entries) {
        if (df_streq(df_json_str(e, "actor"), actor) && df_streq(df_json_str(e, "role"), role) &&
            df_streq(df_json_str(e, "action"), action) &&
            df_streq(df_json_str(e, "outcome"), outcome))
            return true;
    }
    return false;
}

/* As `kubectl patch` under this name. */
static inline void decide_as(struct world *w, const char *run, const char *stamp)
{
    DF_FREE char *annotations = df_strf("{'dayfly.dev/decided-by':'%s'}", stamp);
    struct patch p = {"spec", "decision", "{'verdict':'approved'}"};
    struct df_err err = {0};
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, run);
    assert_int_equal(set_member(doc, &p, &err), 0);
    p = (struct patch){"metadata", "annotations", annotations};
    assert_int_equal(set_member(doc, &p, &err), 0);
    if (df_store_update(w->s.store, DF_KIND_RUN, doc, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void await_message(struct world *w, const char *run, const char *part)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_FREE char *message = value_of(w, DF_KIND_RUN, run, "status.message");
        if (strstr(message, part))
            return;
        wait_for_change(w, mark);
    }
}

#endif
