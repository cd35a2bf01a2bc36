/*
 * memory.c - one list of all memories of all documents. An entry is one of them; what its members
 * mean depends on `of`. Each section works on its own entries, df_memory_forget() on all.
 */
#include "spawner/store/memory.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/shared_pod.h"
#include "spawner/model/waiting.h"

struct df_memory_entry {
    struct df_memory_entry *next;
    enum df_memory_of of;
    enum df_kind kind;
    char name[64], uid[64];
    int64_t at_us;    /* WAIT: since then; REF, LOG: it is due then */
    const void *what; /* WAIT: NULL: adopted, anything ends it */
    bool is_optional; /* WAIT */
    cJSON *ref;       /* REF; STEP: its entry in the run */
    char *text;       /* REF: the attempt; OUTPUTS: their JSON; EXECUTOR: its name */
};

static void free_entry(struct df_memory_entry *e)
{
    if (!e)
        return;
    cJSON_Delete(e->ref);
    df_str_wipe(&e->text);
    free(e);
}

/* NULL: out of memory, or the document has no name or uid. */
static struct df_memory_entry *new_entry(enum df_memory_of of, enum df_kind kind, const cJSON *doc)
{
    const char *name = df_json_str(doc, "metadata.name"), *uid = df_json_str(doc, "metadata.uid");
    struct df_memory_entry *e = name && uid ? calloc(1, sizeof(*e)) : NULL;
    if (!e)
        return NULL;
    e->of = of;
    e->kind = kind;
    df_copy(e->name, sizeof(e->name), name);
    df_copy(e->uid, sizeof(e->uid), uid);
    return e;
}

/* ---- the list; under the lock ---- */

/* TURN = enter(m): the lock is held to the end of the block. */
#define TURN DF_CLEANUP(leave) pthread_mutex_t *turn

static pthread_mutex_t *enter(struct df_memory *m)
{
    (void)pthread_mutex_lock(&m->lock);
    return &m->lock;
}

static void leave(pthread_mutex_t **lock)
{
    (void)pthread_mutex_unlock(*lock);
}

/* *at: the entry, or NULL, which is fine. */
static struct df_memory_entry *take_out(struct df_memory *m, struct df_memory_entry **at)
{
    struct df_memory_entry *e = *at;
    if (!e)
        return NULL;
    *at = e->next;
    if (!e->next)
        m->end = at;
    m->counts[e->of]--;
    return e;
}

static struct df_memory_entry **end_of(struct df_memory *m)
{
    return m->first ? m->end : &m->first;
}

static bool fits(const struct df_memory_entry *e, const char *name, const char *uid,
                 const char *text)
{
    return (!name || df_streq(e->name, name)) && (!uid || df_streq(e->uid, uid)) &&
           (!text || df_streq(e->text, text));
}

/* Where the oldest entry with these is linked, of which NULL is any; or the end of the list. */
static struct df_memory_entry **find(struct df_memory *m, enum df_memory_of of, const char *name,
                                     const char *uid, const char *text)
{
    struct df_memory_entry **at = m->counts[of] ? &m->first : end_of(m);
    while (*at && ((*at)->of != of || !fits(*at, name, uid, text)))
        at = &(*at)->next;
    return at;
}

/* Takes ownership. If there are too many, a wait is not added, and others replace the oldest. */
static void add(struct df_memory *m, struct df_memory_entry *e)
{
    static const size_t most[DF_MEMORY_KINDS] = {[DF_MEMORY_WAIT] = DF_LIMIT_WAITS,
                                                 [DF_MEMORY_REF] = SIZE_MAX,
                                                 [DF_MEMORY_OUTPUTS] = DF_LIMIT_READ_OUTPUTS,
                                                 [DF_MEMORY_EXECUTOR] = DF_LIMIT_AWAITING,
                                                 [DF_MEMORY_LOG] = SIZE_MAX,
                                                 [DF_MEMORY_STEP] = SIZE_MAX};
    bool is_full = m->counts[e->of] == most[e->of];
    if (is_full && e->of == DF_MEMORY_WAIT) {
        free_entry(e);
        return;
    }
    if (is_full)
        free_entry(take_out(m, find(m, e->of, NULL, NULL, NULL)));
    *end_of(m) = e;
    m->end = &e->next;
    m->counts[e->of]++;
}

/* ---- all memories ---- */

void df_memory_forget(struct df_memory *m, enum df_kind kind, const char *name)
{
    TURN = enter(m);
    for (struct df_memory_entry **at = &m->first; *at;) {
        if ((*at)->kind == kind && df_streq((*at)->name, name))
            free_entry(take_out(m, at));
        else
            at = &(*at)->next;
    }
}

void df_memory_free(struct df_memory *m)
{
    while (m->first)
        free_entry(take_out(m, &m->first));
}

/* ---- waits ---- */

static bool is_of(const struct df_memory_entry *e, const struct df_wait_case *c)
{
    return e->of == DF_MEMORY_WAIT && e->kind == c->kind &&
           df_streq(c->name ? e->name : e->uid, c->name ? c->name : c->uid);
}

static bool is_case(const struct df_memory_entry *e, const struct df_wait_case *c)
{
    return is_of(e, c) && (!e->what || e->what == c->what);
}

static struct df_memory_entry *find_case(struct df_memory *m, const struct df_wait_case *c)
{
    struct df_memory_entry *e = m->counts[DF_MEMORY_WAIT] ? m->first : NULL;
    while (e && !is_case(e, c))
        e = e->next;
    return e;
}

static void add_wait(struct df_memory *m, const struct df_wait_case *c, const cJSON *doc,
                     int64_t since_us)
{
    struct df_memory_entry *e = new_entry(DF_MEMORY_WAIT, c->kind, doc);
    if (!e)
        return;
    e->what = c->what;
    e->is_optional = c->is_optional;
    e->at_us = since_us;
    add(m, e);
}

int64_t df_memory_add_wait(struct df_memory *m, const struct df_wait_case *c, const cJSON *doc,
                           int64_t began_us)
{
    TURN = enter(m);
    struct df_memory_entry *e = find_case(m, c);
    if (e)
        e->what = c->what;
    else
        add_wait(m, c, doc, began_us);
    return e ? e->at_us : began_us;
}

bool df_memory_end_wait(struct df_memory *m, const struct df_wait_case *c, char name[64])
{
    bool was_there = false, others = false;
    TURN = enter(m);
    for (struct df_memory_entry **at = &m->first; *at && m->counts[DF_MEMORY_WAIT];) {
        const struct df_memory_entry *e = *at;
        if (is_case(e, c)) {
            was_there = true;
            df_copy(name, 64, e->name);
            free_entry(take_out(m, at));
        } else {
            others = others || (is_of(e, c) && (c->is_optional || !e->is_optional));
            at = &(*at)->next;
        }
    }
    return was_there && !others;
}

bool df_memory_has_wait(struct df_memory *m, const struct df_wait_case *c)
{
    TURN = enter(m);
    return find_case(m, c) != NULL;
}

void df_memory_adopt_wait(struct df_memory *m, const cJSON *task)
{
    static const struct df_wait_case anything = {.kind = DF_KIND_TASK_ACTION};
    TURN = enter(m);
    if (df_waiting_of(task))
        add_wait(m, &anything, task, df_waiting_since(task));
}

/* ---- one entry of a document ---- */

/* Instead of the former one. Takes ownership of e; NULL: the former one is taken out. */
static void put(struct df_memory *m, enum df_memory_of of, const cJSON *doc,
                struct df_memory_entry *e)
{
    TURN = enter(m);
    free_entry(take_out(m, find(m, of, df_json_str(doc, "metadata.name"), NULL, NULL)));
    if (e)
        add(m, e);
}

static struct df_memory_entry *take(struct df_memory *m, enum df_memory_of of, const char *uid,
                                    const char *text)
{
    TURN = enter(m);
    return take_out(m, find(m, of, NULL, uid, text));
}

/* ---- references ---- */

/* Where the reference of this attempt is linked. A step that was offered to the pod of another one
 * since then has the reference of that pod, and the claim token of its last own attempt. */
static struct df_memory_entry **find_ref(struct df_memory *m, const cJSON *task)
{
    const char *uid = df_json_str(task, "metadata.uid"),
               *attempt = df_json_str(task, "status.auth.claim");
    bool has_own = attempt && !df_shared_pod_host(task);
    return find(m, DF_MEMORY_REF, df_json_str(task, "metadata.name"), uid, has_own ? attempt : "");
}

int df_memory_put_ref(struct df_memory *m, const cJSON *task, const char *attempt, const cJSON *ref,
                      struct df_err *err)
{
    struct df_memory_entry *e = new_entry(DF_MEMORY_REF, DF_KIND_TASK_ACTION, task);
    if (e) {
        e->ref = cJSON_Duplicate(ref, true);
        e->text = strdup(attempt);
        e->at_us = df_real_us() + DF_REF_DUE_US;
    }
    if (!e || !e->ref || !e->text) {
        free_entry(e);
        return df_fail_oom(err);
    }
    put(m, DF_MEMORY_REF, task, e);
    return 0;
}

int df_memory_get_ref(struct df_memory *m, const cJSON *task, cJSON **ret, int64_t *ret_due_us,
                      struct df_err *err)
{
    TURN = enter(m);
    const struct df_memory_entry *e = *find_ref(m, task);
    *ret = e ? cJSON_Duplicate(e->ref, true) : NULL;
    *ret_due_us = e ? e->at_us : 0;
    return e && !*ret ? df_fail_oom(err) : 0;
}

void df_memory_drop_ref(struct df_memory *m, const cJSON *task)
{
    TURN = enter(m);
    free_entry(take_out(m, find_ref(m, task)));
}

/* ---- outputs ---- */

void df_memory_put_outputs(struct df_memory *m, const cJSON *task, const cJSON *outputs)
{
    struct df_memory_entry *e = new_entry(DF_MEMORY_OUTPUTS, DF_KIND_TASK_ACTION, task);
    if (e)
        e->text = df_json_print_nul(outputs);
    if (e && (!e->text || strlen(e->text) > DF_LIMIT_READ_OUTPUTS_BYTES))
        free_entry(DF_TAKE(e));
    put(m, DF_MEMORY_OUTPUTS, task, e);
}

cJSON *df_memory_take_outputs(struct df_memory *m, const char *step_uid)
{
    cJSON *outputs = NULL;
    struct df_memory_entry *e = take(m, DF_MEMORY_OUTPUTS, step_uid, NULL);
    if (e && df_json_parse_nul(e->text, strlen(e->text), &outputs, NULL) < 0)
        outputs = NULL;
    free_entry(e);
    return outputs;
}

/* ---- runs that look for their executor ---- */

void df_memory_await_executor(struct df_memory *m, const cJSON *run, const char *executor)
{
    struct df_memory_entry *e = new_entry(DF_MEMORY_EXECUTOR, DF_KIND_RUN, run);
    TURN = enter(m);
    if (e && (e->text = strdup(executor)) && !*find(m, e->of, e->name, NULL, executor))
        add(m, DF_TAKE(e));
    free_entry(e);
}

bool df_memory_take_awaiting(struct df_memory *m, const char *executor, char run[64])
{
    struct df_memory_entry *e = take(m, DF_MEMORY_EXECUTOR, NULL, executor);
    df_copy(run, 64, e ? e->name : "");
    free_entry(e);
    return run[0];
}

/* ---- when the output of a workflow is read next ---- */

void df_memory_put_log_due(struct df_memory *m, const cJSON *task, int64_t due_us)
{
    struct df_memory_entry *e = new_entry(DF_MEMORY_LOG, DF_KIND_TASK_ACTION, task);
    if (e)
        e->at_us = due_us;
    put(m, DF_MEMORY_LOG, task, e);
}

int64_t df_memory_get_log_due(struct df_memory *m, const cJSON *task)
{
    TURN = enter(m);
    const struct df_memory_entry *e =
        *find(m, DF_MEMORY_LOG, NULL, df_json_str(task, "metadata.uid"), NULL);
    return e ? e->at_us : 0;
}

/* ---- the step that was created last ---- */

int df_memory_put_step(struct df_memory *m, const cJSON *run, const cJSON *entry,
                       struct df_err *err)
{
    struct df_memory_entry *e = entry ? new_entry(DF_MEMORY_STEP, DF_KIND_RUN, run) : NULL;
    if (e)
        e->ref = cJSON_Duplicate(entry, true);
    if (entry && (!e || !e->ref)) {
        free_entry(e);
        return df_fail_oom(err);
    }
    put(m, DF_MEMORY_STEP, run, e);
    return 0;
}

int df_memory_get_step(struct df_memory *m, const cJSON *run, cJSON **ret, struct df_err *err)
{
    TURN = enter(m);
    const struct df_memory_entry *e =
        *find(m, DF_MEMORY_STEP, NULL, df_json_str(run, "metadata.uid"), NULL);
    *ret = e ? cJSON_Duplicate(e->ref, true) : NULL;
    return e && !*ret ? df_fail_oom(err) : 0;
}
