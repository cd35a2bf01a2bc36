/* What an apply that was cut off may have made: events against states, and what the control loop
 * makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "spawner/steps/creations.h"
#include "spawner/steps/outcome.h"
#include "spawner/steps/unrecorded.h"
#include "tests/unit/control_world.h"

/* ---- events and states, written shortly ---- */

/* ' stands for ". R(module, name, key): a resource of type t in an event; key as JSON. */
#define R(module, address, name, key)                                                              \
    "'resource':{'addr':'" address "','module':'" module                                           \
    "','resource_type':'t','resource_name':'" name "','resource_key':" key "}"
#define EVENT(type, resource, action, more)                                                        \
    "{'type':'" type "','hook':{" resource ",'action':'" action "'" more "}}\n"
#define BEGIN(resource) EVENT("apply_start", resource, "create", "")
#define DONE(resource, id)                                                                         \
    EVENT("apply_complete", resource, "create", ",'id_key':'id','id_value':'" id "'")
#define MADE(resource, id) BEGIN(resource) DONE(resource, id)
#define ERRORED(resource) BEGIN(resource) EVENT("apply_errored", resource, "create", "")
#define DESTROY(resource, id)                                                                      \
    EVENT("apply_start", resource, "delete", ",'id_key':'id','id_value':'" id "'")                 \
    EVENT("apply_complete", resource, "delete", "")
#define OWN_END "{'type':'diagnostic','diagnostic':{'severity':'error','summary':'x'}}\n"
#define APPLIED_ALL "{'type':'change_summary','changes':{'add':1,'operation':'apply'}}\n"

#define A R("", "t.a", "a", "null")
#define B R("", "t.b", "b", "null")
#define COUNTED R("", "t.c[1]", "c", "1")
#define EACH R("", "t.e[\\'x y\\']", "e", "'x y'")
#define QUOTED R("", "t.e[\\'a\\\\\\'b\\']", "e", "'a\\'b'")
#define IN_MODULE R("module.m[\\'k\\']", "module.m[\\'k\\'].t.a", "a", "null")

#define STATE(resources) "{'version':4,'resources':[" resources "]}"
#define OBJECT(module, mode, name, instance)                                                       \
    "{" module "'mode':'" mode "','type':'t','name':'" name "','instances':[{" instance "}]}"
#define HAS(name, id) OBJECT("", "managed", name, "'attributes':{'id':'" id "'}")

static char *unquote(const char *text)
{
    char *copy = strdup(text);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return copy;
}

static void feed(struct df_creations *c, const char *events)
{
    DF_FREE char *text = unquote(events);
    for (char *line = text, *eol; *line; line = eol + 1) {
        eol = strchr(line, '\n');
        size_t n = eol ? (size_t)(eol - line) : strlen(line);
        assert_int_equal(df_creations_event(c, line, n, NULL), 0);
        if (!eol)
            break;
    }
}

/* "t.a=1 t.b? +3": finished with its id, begun, and how many more; "" for none. */
static char *words_of(const cJSON *list)
{
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(list, "items")) {
        const char *id = df_json_str(item, "id");
        bool finished = df_json_bool(item, "finished", false);
        assert_true(!id || finished);
        (void)df_buf_addf(&b, "%s%s%s%s", b.len ? " " : "", df_json_str(item, "address"),
                          finished ? "=" : "?", id ? id : "");
    }
    if (df_json_at(list, "more"))
        (void)df_buf_addf(&b, " +%d", (int)df_json_int(list, "more", 0));
    return df_buf_take(&b);
}

struct known {
    const char *name;
    const char *events;
    const char *state; /* NULL: none */
    const char *expected;
};

static const struct known cases[] = {
    {"nothing happened", "", STATE(""), ""},
    {"all is in the state", MADE(A, "1") MADE(B, "2"), STATE(HAS("a", "1") "," HAS("b", "2")), ""},
    {"completed, and the state came before", MADE(A, "1") MADE(B, "2"), STATE(HAS("a", "1")),
     "t.b=2"},
    {"no state at all", MADE(A, "1") BEGIN(B), NULL, "t.a=1 t.b?"},
    {"begun alone", BEGIN(A), STATE(""), "t.a?"},
    {"begun, and a state has it already", BEGIN(A), STATE(HAS("a", "1")), ""},
    {"completed without an id", BEGIN(A) EVENT("apply_complete", A, "create", ""), STATE(""),
     "t.a="},
    {"completed under another attribute",
     BEGIN(A) EVENT("apply_complete", A, "create", ",'id_key':'tags.Name','id_value':'n'"),
     STATE(OBJECT("", "managed", "a", "'attributes':{'tags':{'Name':'n'}}")), ""},
    {"an id with a masked secret is not told, nor compared", MADE(A, "x-***"), STATE(""), "t.a="},
    {"an id with a masked secret is found by its address", MADE(A, "x-***"), STATE(HAS("a", "x-1")),
     ""},
    {"failed, and then cut off", ERRORED(A), STATE(""), "t.a?"},
    {"failed, and tofu told the end", ERRORED(A) OWN_END, STATE(""), ""},
    {"a plain failed apply", MADE(A, "1") ERRORED(B) OWN_END, STATE(HAS("a", "1")), ""},
    {"a complete apply", MADE(A, "1") APPLIED_ALL, STATE(HAS("a", "1")), ""},
    {"the end was told, but the state was lost", MADE(A, "1") ERRORED(B) OWN_END, STATE(""),
     "t.a=1 t.b?"},
    {"a diagnostic before the first creation is no end", OWN_END BEGIN(A), STATE(""), "t.a?"},
    {"count", MADE(COUNTED, "1"),
     STATE(OBJECT("", "managed", "c", "'index_key':1,'attributes':{'id':'1'}")), ""},
    {"another index", MADE(COUNTED, "1"),
     STATE(OBJECT("", "managed", "c", "'index_key':0,'attributes':{'id':'1'}")), "t.c[1]=1"},
    {"a number is not a string", MADE(COUNTED, "1"),
     STATE(OBJECT("", "managed", "c", "'index_key':'1','attributes':{'id':'1'}")), "t.c[1]=1"},
    {"for_each", MADE(EACH, "1"),
     STATE(OBJECT("", "managed", "e", "'index_key':'x y','attributes':{'id':'1'}")), ""},
    {"for_each, and not there", MADE(EACH, "1"), STATE(""), "t.e[\"x y\"]=1"},
    {"a key with a quote", MADE(QUOTED, "1"),
     STATE(OBJECT("", "managed", "e", "'index_key':'a\\'b','attributes':{'id':'1'}")), ""},
    {"a key with a quote, and not there", MADE(QUOTED, "1"), STATE(""), "t.e[\"a\\\"b\"]=1"},
    {"in a module", MADE(IN_MODULE, "1"),
     STATE(OBJECT("'module':'module.m[\\'k\\']',", "managed", "a", "'attributes':{'id':'1'}")), ""},
    {"the same name in the root", MADE(IN_MODULE, "1"), STATE(HAS("a", "1")),
     "module.m[\"k\"].t.a=1"},
    {"a data source of that name", MADE(A, "1"),
     STATE(OBJECT("", "data", "a", "'attributes':{'id':'1'}")), "t.a=1"},
    {"the former object, deposed", MADE(A, "2"),
     STATE(OBJECT("", "managed", "a", "'deposed':'12345678','attributes':{'id':'1'}")), "t.a=2"},
    {"the former object, deposed, and the new one begun", BEGIN(A),
     STATE(OBJECT("", "managed", "a", "'deposed':'12345678','attributes':{'id':'1'}")), "t.a?"},
    {"the former object, deposed, and the new one", MADE(A, "2"),
     STATE(OBJECT("", "managed", "a",
                  "'deposed':'12345678','attributes':{'id':'1'}},{'attributes':{'id':'2'}")),
     ""},
    {"replaced, and the state is older than the destruction", DESTROY(A, "1") MADE(A, "2"),
     STATE(HAS("a", "1")), "t.a=2"},
    {"replaced, and begun alone", DESTROY(A, "1") BEGIN(A), STATE(HAS("a", "1")), "t.a?"},
    {"replaced, begun, and the state has the new one", DESTROY(A, "1") BEGIN(A),
     STATE(HAS("a", "2")), ""},
    {"replaced, the new one first, begun alone", BEGIN(A),
     STATE(OBJECT("", "managed", "a", "'create_before_destroy':true,'attributes':{'id':'1'}")),
     "t.a?"},
    {"replaced, the new one first, completed", MADE(A, "2") DESTROY(A, "1"),
     STATE(OBJECT("", "managed", "a", "'create_before_destroy':true,'attributes':{'id':'2'}")), ""},
    {"only destroyed", DESTROY(A, "1"), STATE(""), ""},
    {"updated", EVENT("apply_start", A, "update", ",'id_key':'id','id_value':'1'"), STATE(""), ""},
    {"read", EVENT("apply_start", A, "read", ""), STATE(""), ""},
    {"events that end within a line", MADE(A, "1") "{'type':'apply_start','hook':{'resource':{'ad",
     STATE(""), "t.a=1"},
    {"garbage between them",
     "panic: 'apply_start'\n\n[]\n{'type':'apply_start'}\n" MADE(
         A, "1") "{'type':'apply_start','hook':{'resource':7,'action':'create'}}\n{'x':'apply_'}\n",
     STATE(""), "t.a=1"},
    {"what a provisioner prints is no event",
     "{'type':'provision_progress','hook':{'output':'{\\'type\\':\\'apply_start\\'}'}}\n",
     STATE(""), ""},
    {"a state with odd parts", MADE(A, "1"),
     "{'resources':[7,{},{'mode':'managed'},{'mode':'managed','instances':[1,{}]},"
     "{'mode':'managed','type':'t','name':'a','instances':{'x':1}}]}",
     "t.a=1"},
};

static void what_no_state_knows_is_listed_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const struct known *k = &cases[i];
        DF_CREATIONS struct df_creations *c = df_creations_new();
        DF_JSON cJSON *tree = k->state ? json(k->state) : NULL, *list = NULL;
        feed(c, k->events);
        if (tree)
            assert_int_equal(df_creations_compare(c, tree, NULL), 0);
        assert_int_equal(df_creations_missing(c, &list, NULL), 0);
        DF_FREE char *words = words_of(list);
        if (strcmp(words, k->expected) != 0 || !list != !*k->expected)
            fail_msg("%s: \"%s\" instead of \"%s\"", k->name, words, k->expected);
    }
}

static char *missing_of(struct df_creations *c, const char **ret_note)
{
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_creations_missing(c, &list, NULL), 0);
    *ret_note = df_json_str(list, "note") ? "noted" : "";
    return words_of(list);
}

static void without_a_state_to_ask_only_the_tools_own_end_is_believed(void **state)
{
    (void)state;
    const char *note = NULL;
    DF_CREATIONS struct df_creations *cut = df_creations_new(), *ended = df_creations_new();
    feed(cut, MADE(A, "1") ERRORED(B));
    df_creations_incomparable(cut, "nobody knows");
    DF_FREE char *all = missing_of(cut, &note);
    assert_string_equal(all, "t.a=1 t.b?");
    assert_string_equal(note, "noted");
    feed(ended, MADE(A, "1") ERRORED(B) OWN_END);
    df_creations_incomparable(ended, "nobody knows");
    DF_FREE char *none = missing_of(ended, &note);
    assert_string_equal(none, "");
}

static void an_end_that_is_proven_otherwise_counts_like_one_that_is_told(void **state)
{
    (void)state;
    const char *note = NULL;
    DF_CREATIONS struct df_creations *c = df_creations_new();
    DF_JSON cJSON *tree = json(STATE(HAS("a", "1")));
    feed(c, MADE(A, "1") BEGIN(B));
    df_creations_tool_ended(c);
    assert_int_equal(df_creations_compare(c, tree, NULL), 0);
    DF_FREE char *none = missing_of(c, &note);
    assert_string_equal(none, "");
}

static void feed_many(struct df_creations *c, size_t from, size_t to, const char *padding)
{
    for (size_t i = from; i < to; i++) {
        DF_FREE char *line = df_strf("{\"type\":\"apply_start\",\"hook\":{\"action\":\"create\","
                                     "\"resource\":{\"addr\":\"t.a[%zu]%s\",\"module\":\"\","
                                     "\"resource_type\":\"t\",\"resource_name\":\"a\","
                                     "\"resource_key\":%zu}}}",
                                     i, padding, i);
        assert_int_equal(df_creations_event(c, line, strlen(line), NULL), 0);
    }
}

static void more_than_is_listed_is_counted(void **state)
{
    (void)state;
    DF_CREATIONS struct df_creations *c = df_creations_new();
    DF_JSON cJSON *list = NULL;
    feed_many(c, 0, DF_LIMIT_UNRECORDED + 1, "");
    assert_int_equal(df_creations_missing(c, &list, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(df_json_at(list, "items")), DF_LIMIT_UNRECORDED);
    assert_int_equal(df_json_int(list, "more", 0), 1);
    assert_int_equal(df_unrecorded_count(list), DF_LIMIT_UNRECORDED + 1);
}

static void addresses_that_make_a_document_too_large_are_counted(void **state)
{
    (void)state;
    DF_CREATIONS struct df_creations *c = df_creations_new();
    DF_JSON cJSON *list = NULL;
    char padding[2048];
    memset(padding, 'x', sizeof(padding) - 1);
    padding[sizeof(padding) - 1] = '\0';
    feed_many(c, 0, 64, padding);
    assert_int_equal(df_creations_missing(c, &list, NULL), 0);
    assert_true(cJSON_GetArraySize(df_json_at(list, "items")) < 33);
    assert_int_equal(df_unrecorded_count(list), 64);
}

static void objects_beyond_the_table_are_counted(void **state)
{
    (void)state;
    DF_CREATIONS struct df_creations *c = df_creations_new();
    DF_JSON cJSON *list = NULL;
    feed_many(c, 0, DF_LIMIT_TOUCHED_OBJECTS + 7, "");
    assert_int_equal(df_creations_missing(c, &list, NULL), 0);
    assert_int_equal(df_unrecorded_count(list), DF_LIMIT_TOUCHED_OBJECTS + 7);
}

/* ---- the end of a step ---- */

#define AUTO "{'action':'provision','autoApprove':true}"
#define FAILED "{'exitCode':1,'reason':'ApplyFailed','message':'it failed'}"

static struct runner begin_apply(struct world *w, const char *spec, const char *events)
{
    struct df_err err = {0};
    int64_t end;
    make_executor(w, "net", spec);
    assert_int_equal(df_control_start(w->s.control, NULL), 0);
    cJSON_Delete(make_run(w, "net", AUTO));
    play_plan(w, "net-1", "net-1-plan");
    struct runner r = claim(w, "net-1-apply");
    DF_FREE char *text = unquote(events);
    const struct df_frame f = {DF_STREAM_EVENTS, 0, text, strlen(text)};
    if (df_step_append(&w->s, r.uid, r.step_token, &f, &end, &err) < 0)
        fail_msg("%s", err.message);
    return r;
}

static void lock_state(struct world *w, const struct runner *r)
{
    DF_JSON cJSON *info = json("{'ID':'1','Operation':'OperationTypeApply','Who':'tofu'}");
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    assert_int_equal(df_state_lock(w->s.states, executor, info, r->uid, NULL, NULL), 0);
}

/* Stored by the step, with its lock; r NULL: by somebody before it. */
static void put_state(struct world *w, const struct runner *r, const char *resources)
{
    struct df_err err = {0};
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    DF_FREE char *path = df_strf("%s/a-state", df_blob_tmp_dir(w->s.blobs));
    DF_FREE char *shorthand =
        df_strf("{'version':4,'serial':1,'lineage':'l','resources':%s}", resources);
    DF_FREE char *text = unquote(shorthand);
    const struct df_state_writer by = {.lock_id = "1", .step_uid = r ? r->uid : NULL};
    const struct df_state_writer before = {.actor = "somebody"};
    if (df_fs_replace(path, text, strlen(text), 0600, &err) < 0 ||
        df_state_put(w->s.states, executor, path, NULL, r ? &by : &before, &err) < 0)
        fail_msg("%s", err.message);
}

static void unlock_state(struct world *w)
{
    const struct df_state_unlocker admin = {.may_force = true};
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    assert_int_equal(df_state_unlock(w->s.states, executor, "1", &admin, NULL, NULL), 0);
}

static void assert_listed(struct world *w, const char *expected)
{
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, "net-1-apply");
    const cJSON *list = df_json_at(task, "status.unrecorded");
    DF_FREE char *words = words_of(list);
    assert_string_equal(words, expected);
    assert_true(*expected || !list);
    const char *message = df_json_str(task, "status.message");
    const char *clause = df_storage_is_managed(task) ? "that no state records"
                                                     : "begun, which the state may have or lack";
    bool told = strstr(message, clause) != NULL;
    assert_int_equal(told, *expected != '\0');
}

static void a_runner_that_tells_of_a_killed_tool_leaves_a_list(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1") MADE(B, "2"));
    lock_state(w, &r);
    put_state(w, &r, "[" HAS("a", "1") "]");
    report(&r, FAILED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.b=2");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "it failed; 1 object may exist that no state records: dayfly why net-1");
}

static void a_runner_that_died_with_its_tool_leaves_a_list(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1") BEGIN(B));
    lock_state(w, &r);
    end_processes(w, "net-1-apply", -1, "killed by signal 9");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a=1 t.b?");
    DF_FREE char *message = value_of(w, DF_KIND_RUN, "net-1", "status.message");
    assert_non_null(strstr(message, "2 objects may exist that no state records: dayfly why net-1"));
}

static void a_lock_that_the_dead_left_shows_that_the_tool_was_cut_off(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", BEGIN(A));
    lock_state(w, &r);
    end_processes(w, "net-1-apply", -1, "killed by signal 9");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a?");
    DF_FREE char *executor = value_of(w, DF_KIND_EXECUTOR, "net", "metadata.uid");
    DF_JSON cJSON *info = NULL;
    assert_int_equal(df_state_lock_info(w->s.states, executor, &info, NULL), 0);
    assert_null(info); /* released all the same */
}

static void a_tool_that_stored_its_state_and_unlocked_leaves_none(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1") BEGIN(B));
    lock_state(w, &r);
    put_state(w, &r, "[" HAS("a", "1") "]");
    unlock_state(w);
    end_processes(w, "net-1-apply", -1, "killed by signal 9");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "");
}

static void a_state_from_before_the_step_knows_nothing_of_it(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", BEGIN(A));
    put_state(w, NULL, "[" HAS("a", "old") "]");
    lock_state(w, &r);
    report(&r, FAILED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a?");
}

static void an_errored_state_counts_as_a_state(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1") MADE(B, "2"));
    lock_state(w, &r);
    DF_FREE char *text =
        unquote("{'version':4,'serial':7,'lineage':'l','resources':[" HAS("a", "1") "]}");
    char *path = df_fs_join(w->dir, "errored");
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, NULL), 0);
    (void)pthread_mutex_lock(&w->engine.lock);
    fake_find(&w->engine, "net-1-apply")->state = path;
    (void)pthread_mutex_unlock(&w->engine.lock);
    end_processes(w, "net-1-apply", -1, "killed by signal 9");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.b=2");
}

static void a_state_that_is_kept_elsewhere_is_said_not_to_be_compared(void **state)
{
    struct world *w = *state;
    struct runner r =
        begin_apply(w, "'storage':{'type':'local','path':'/tmp/x.tfstate'}", MADE(A, "1"));
    report(&r, FAILED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a=1");
    DF_FREE char *note = value_of(w, DF_KIND_TASK_ACTION, "net-1-apply", "status.unrecorded.note");
    assert_non_null(strstr(note, "not kept by dayfly"));
}

static void an_encrypted_state_is_said_not_to_be_compared(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1"));
    lock_state(w, &r);
    put_state(w, &r, "null");
    report(&r, FAILED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a=1");
    DF_FREE char *note = value_of(w, DF_KIND_TASK_ACTION, "net-1-apply", "status.unrecorded.note");
    assert_non_null(strstr(note, "could not be compared"));
}

static void a_state_that_is_too_large_is_said_not_to_be_compared(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1"));
    lock_state(w, &r);
    DF_FREE char *blanks = malloc(DF_LIMIT_STATE_COMPARED + 1);
    memset(blanks, ' ', DF_LIMIT_STATE_COMPARED);
    blanks[DF_LIMIT_STATE_COMPARED] = '\0';
    DF_FREE char *resources = df_strf("[" HAS("a", "1") "]%s", blanks);
    put_state(w, &r, resources);
    report(&r, FAILED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a=1");
    DF_FREE char *note = value_of(w, DF_KIND_TASK_ACTION, "net-1-apply", "status.unrecorded.note");
    assert_non_null(strstr(note, "too large"));
}

/* Adds n bytes of no event to the events of a step, and then these events. */
static void add_events(struct world *w, const struct runner *r, size_t n, const char *events)
{
    struct df_err err = {0};
    int64_t end = 0;
    DF_FREE char *text = unquote(events);
    DF_FREE char *filler = malloc(n);
    memset(filler, 'x', n);
    assert_int_equal(df_step_stream_end(&w->s, r->uid, r->step_token, DF_STREAM_EVENTS, &end, NULL),
                     0);
    for (size_t done = 0; done < n;) {
        size_t part = n - done < DF_MIB / 2 ? n - done : DF_MIB / 2;
        const struct df_frame f = {DF_STREAM_EVENTS, end, filler, part};
        if (df_step_append(&w->s, r->uid, r->step_token, &f, &end, &err) < 0)
            fail_msg("%s", err.message);
        done += part;
    }
    const struct df_frame last = {DF_STREAM_EVENTS, end, text, strlen(text)};
    if (df_step_append(&w->s, r->uid, r->step_token, &last, &end, &err) < 0)
        fail_msg("%s", err.message);
}

static void an_event_that_lies_across_two_reads_is_seen(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1"));
    DF_FREE char *before = unquote(MADE(A, "1"));
    add_events(w, &r, DF_LIMIT_EVENT_LINE - strlen(before) - 10, "\n" DONE(B, "2"));
    lock_state(w, &r);
    report(&r, FAILED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a=1 t.b=2");
}

static void a_line_that_is_longer_than_an_event_may_be_hides_none_behind_it(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1"));
    add_events(w, &r, 3 * DF_LIMIT_EVENT_LINE + 100, "\n" MADE(B, "2"));
    lock_state(w, &r);
    report(&r, FAILED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_listed(w, "t.a=1 t.b=2");
}

static void an_apply_that_succeeded_has_none(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w, "", MADE(A, "1"));
    lock_state(w, &r);
    report(&r, APPLIED);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Succeeded");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-apply", "status.unrecorded", "");
}

static void a_successful_end_takes_the_list_away(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *task = json("{'metadata':{},'status':{}}"), *result = json(APPLIED);
    DF_JSON cJSON *list = json("{'items':[],'more':3}");
    assert_int_equal(df_outcome_unrecorded(task, list, &err), 0);
    assert_non_null(df_json_at(task, "status.unrecorded"));
    assert_int_equal(df_outcome_result(task, result, 1, &err), 0);
    assert_null(df_json_at(task, "status.unrecorded"));
}

static void a_message_that_is_too_long_makes_room_for_the_clause(void **state)
{
    (void)state;
    char text[2000];
    struct df_err err = {0};
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    DF_JSON cJSON *task = json("{'metadata':{},'spec':{'runRef':{'name':'net-1'}},'status':{}}");
    DF_JSON cJSON *list = json("{'items':[],'more':3}");
    assert_int_equal(df_outcome_unrecorded(task, list, &err), 0);
    const struct df_outcome_failure f = {.exit_code = 1, .reason = "ApplyFailed", .message = text};
    assert_int_equal(df_outcome_fail(task, &f, 1, &err), 0);
    const char *message = df_json_str(task, "status.message");
    assert_true(strlen(message) < sizeof(err.message));
    assert_true(
        df_ends_with(message, "x; 3 objects may exist that no state records: dayfly why net-1"));
}

#define TEST(name) cmocka_unit_test(name)
#define WORLD(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(what_no_state_knows_is_listed_and_nothing_else),
        TEST(without_a_state_to_ask_only_the_tools_own_end_is_believed),
        TEST(an_end_that_is_proven_otherwise_counts_like_one_that_is_told),
        TEST(more_than_is_listed_is_counted),
        TEST(addresses_that_make_a_document_too_large_are_counted),
        TEST(objects_beyond_the_table_are_counted),
        TEST(a_successful_end_takes_the_list_away),
        TEST(a_message_that_is_too_long_makes_room_for_the_clause),
        WORLD(a_runner_that_tells_of_a_killed_tool_leaves_a_list),
        WORLD(a_runner_that_died_with_its_tool_leaves_a_list),
        WORLD(a_lock_that_the_dead_left_shows_that_the_tool_was_cut_off),
        WORLD(a_tool_that_stored_its_state_and_unlocked_leaves_none),
        WORLD(a_state_from_before_the_step_knows_nothing_of_it),
        WORLD(an_errored_state_counts_as_a_state),
        WORLD(a_state_that_is_kept_elsewhere_is_said_not_to_be_compared),
        WORLD(an_encrypted_state_is_said_not_to_be_compared),
        WORLD(a_state_that_is_too_large_is_said_not_to_be_compared),
        WORLD(an_event_that_lies_across_two_reads_is_seen),
        WORLD(a_line_that_is_longer_than_an_event_may_be_hides_none_behind_it),
        WORLD(an_apply_that_succeeded_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
