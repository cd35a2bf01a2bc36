/* What readers see of the outputs of a managed state, which may hold what was secret in a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "common/redact/tree.h"
#include "spawner/steps/outputs.h"
#include "spawner/steps/shown.h"
#include "tests/unit/step_world.h"

/* ---- words ---- */

static void executor_uid(struct world *w, char ret[64])
{
    DF_JSON cJSON *doc = get(w, DF_KIND_EXECUTOR, "net");
    (void)snprintf(ret, 64, "%s", df_json_str(doc, "metadata.uid"));
}

/* A file as an upload leaves it, from text with ' instead of "; the caller frees the path. */
static char *upload(struct world *w, const char *text)
{
    char *path = df_strf("%s/upload-XXXXXX", df_blob_tmp_dir(w->s.blobs));
    DF_JSON cJSON *doc = json(text);
    DF_FREE char *printed = df_json_print(doc);
    DF_CLOSE int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(df_fs_write_all(fd, printed, strlen(printed), NULL), 0);
    return path;
}

/* A new version with these outputs. step: that writes it; NULL: a person. */
static void put_state(struct world *w, int serial, const char *step, const char *outputs)
{
    char uid[64];
    struct df_err err = {0};
    executor_uid(w, uid);
    DF_FREE char *text =
        df_strf("{'version':4,'serial':%d,'lineage':'L','outputs':{%s}}", serial, outputs);
    DF_FREE char *path = upload(w, text);
    const struct df_state_writer by = {.step_uid = step, .actor = step ? "step" : "ada"};
    if (df_state_put(w->s.states, uid, path, NULL, &by, &err) < 0)
        fail_msg("%s", err.message);
}

static void expect_text(cJSON *got, const char *want)
{
    DF_JSON cJSON *doc = json(want);
    DF_FREE char *seen = df_json_print(got), *wanted = df_json_print(doc);
    assert_string_equal(seen, wanted);
}

/* What a caller without the role admin sees. */
static void expect_shown(struct world *w, int64_t version, const char *want)
{
    char uid[64];
    DF_JSON cJSON *outputs = NULL, *values = cJSON_CreateObject();
    cJSON *output;
    executor_uid(w, uid);
    assert_int_equal(df_state_outputs(w->s.states, uid, version, false, &outputs, NULL), 0);
    assert_int_equal(df_shown_apply(&w->s, uid, version, outputs, NULL), 0);
    cJSON_ArrayForEach (output, outputs) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
        assert_null(df_json_at(output, "shown"));
        if (value)
            assert_int_equal(
                df_json_add(values, output->string, cJSON_Duplicate(value, true), NULL), 0);
    }
    expect_text(values, want);
}

/* What a runner is asked to mask, with "secret" masked; the caller deletes it. */
static cJSON *ask(struct world *w, const struct runner *r)
{
    DF_STRS struct df_strs values = {0};
    struct df_redact_set *set = NULL;
    cJSON *missing = NULL, *output;
    bool changed = false;
    (void)df_strs_add(&values, "secret");
    assert_int_equal(df_redact_set_new(&values, &set, NULL), 0);
    assert_int_equal(df_step_get_shown(&w->s, r->uid, r->step_token, &missing, NULL), 0);
    cJSON_ArrayForEach (output, missing)
        assert_int_equal(df_redact_tree(set, cJSON_GetObjectItem(output, "value"), &changed, NULL),
                         0);
    df_redact_set_free(set);
    return missing;
}

static void answer(struct world *w, const struct runner *r, const cJSON *masked)
{
    struct df_err err = {0};
    DF_FREE char *text = df_json_print(masked);
    DF_FREE char *path = upload(w, text);
    if (df_step_put_shown(&w->s, r->uid, r->step_token, path, &err) < 0)
        fail_msg("%s", err.message);
    assert_false(df_fs_exists(path));
}

/* A runner masks "secret" in what was not masked yet; which of these must be names. */
static void mask(struct world *w, const struct runner *r, const char *names)
{
    DF_JSON cJSON *masked = ask(w, r), *asked = cJSON_CreateArray();
    const cJSON *output;
    cJSON_ArrayForEach (output, masked)
        assert_int_equal(df_json_append_str(asked, output->string, NULL), 0);
    expect_text(asked, names);
    answer(w, r, masked);
}

/* The apply of the first run. */
static struct runner begin_apply(struct world *w)
{
    play_plan(w, "net-1", "net-1-plan");
    return claim(w, "net-1-apply");
}

/* Makes a version older than keys are valid. */
static void age(struct world *w, int version)
{
    char uid[64];
    executor_uid(w, uid);
    DF_FREE char *key = df_strf("state/%s/%08d.state", uid, version);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB), older = DF_BUF_INIT(DF_MIB);
    DF_JSON cJSON *meta = NULL;
    assert_int_equal(df_blob_get(w->s.blobs, key, &text, NULL), 0);
    size_t line = (size_t)((const char *)memchr(text.data, '\n', text.len) - text.data);
    assert_int_equal(df_json_parse(text.data, line, &meta, NULL), 0);
    assert_int_equal(df_json_set_str(meta, "createdAt", "2026-01-01T00:00:00Z", NULL), 0);
    DF_FREE char *first = df_json_print(meta);
    (void)df_buf_adds(&older, first);
    (void)df_buf_add(&older, text.data + line, text.len - line);
    assert_int_equal(df_blob_put(w->s.blobs, key, older.data, older.len, NULL), 0);
}

/* ---- tests ---- */

static void what_a_step_wrote_is_seen_when_its_runner_has_masked_it(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    put_state(w, 1, r.uid,
              "'a':{'value':'the secret'},'b':{'value':[1,{'secret':2}]},"
              "'c':{'value':'plain'},'d':{'value':'secret','sensitive':true}");
    expect_shown(w, 0, "{'a':'***','b':'***','c':'***'}");
    mask(w, &r, "['a','b','c']");
    expect_shown(w, 0, "{'a':'the ***','b':[1,{'***':2}],'c':'plain'}");
    /* A value that is a new one is not the one that was masked. */
    put_state(w, 2, r.uid, "'a':{'value':'the secret'},'c':{'value':'secret'},'e':{'value':1}");
    expect_shown(w, 0, "{'a':'the ***','c':'***','e':'***'}");
    mask(w, &r, "['c','e']");
    expect_shown(w, 0, "{'a':'the ***','c':'***','e':1}");
    mask(w, &r, "[]");
}

/* The keys of a step are not known in the next one. */
static void what_was_masked_stays_masked_while_its_value_is_the_same(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    char uid[64];
    executor_uid(w, uid);
    put_state(w, 1, r.uid, "'a':{'value':'the secret'},'b':{'value':1}");
    mask(w, &r, "['a','b']");
    put_state(w, 2, r.uid, "'a':{'value':'the secret'},'b':{'value':2}");
    mask(w, &r, "['b']");
    expect_shown(w, 0, "{'a':'the ***','b':2}");
    /* A runner that sends a value for it does not change that. */
    DF_JSON cJSON *shown = NULL;
    assert_int_equal(df_outputs_open(&w->s, DF_OUTPUTS_SHOWN, uid, &shown, NULL), 0);
    DF_FREE char *text =
        df_strf("{'a':{'digest':'%s','value':'the secret'}}", df_json_str(shown, "a.digest"));
    DF_FREE char *path = upload(w, text);
    assert_int_equal(df_step_put_shown(&w->s, r.uid, r.step_token, path, NULL), 0);
    expect_shown(w, 0, "{'a':'the ***','b':2}");
}

/* Its runner was killed, and nobody else knows its keys. */
static void what_a_killed_step_left_is_masked_by_others_when_its_keys_have_expired(void **state)
{
    struct world *w = *state;
    struct runner plan = claim(w, "net-1-plan");
    put_state(w, 1, "of-a-killed-step", "'a':{'value':'the secret'},'b':{'value':1}");
    mask(w, &plan, "[]");
    put_plan(&plan, "net-1");
    report(&plan, PLANNED);
    struct runner r = claim(w, "net-1-apply");
    put_state(w, 2, r.uid, "'a':{'value':'the secret'},'b':{'value':2}");
    mask(w, &r, "['b']");
    expect_shown(w, 0, "{'a':'***','b':2}");
    age(w, 1);
    mask(w, &r, "['a']");
    expect_shown(w, 0, "{'a':'the ***','b':2}");
}

static void a_plan_masks_what_a_person_stored(void **state)
{
    struct world *w = *state;
    struct runner plan = claim(w, "net-1-plan");
    put_state(w, 1, NULL, "'a':{'value':'the secret'}");
    expect_shown(w, 0, "{'a':'the secret'}");
    mask(w, &plan, "['a']");
    expect_shown(w, 0, "{'a':'the ***'}");
}

static void an_old_version_and_one_that_comes_back_are_seen_as_their_step_masked_them(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    char uid[64];
    executor_uid(w, uid);
    put_state(w, 1, r.uid, "'a':{'value':'the secret'},'b':{'value':1}");
    mask(w, &r, "['a','b']");
    put_state(w, 2, "of-another-step", "'a':{'value':'other'},'b':{'value':1}");
    expect_shown(w, 1, "{'a':'the ***','b':1}");
    expect_shown(w, 2, "{'a':'***','b':1}");
    /* The newest of the executor are others now. */
    assert_int_equal(df_outputs_seal(&w->s, DF_OUTPUTS_SHOWN, uid, "{}", NULL), 0);
    expect_shown(w, 1, "{'a':'the ***','b':1}");
    assert_int_equal(df_state_rollback(w->s.states, uid, 1, "ada", NULL), 0);
    expect_shown(w, 0, "{'a':'the ***','b':1}");
    /* Nothing is left that says who wrote it. */
    assert_int_equal(df_outputs_delete(&w->s, r.uid, NULL), 0);
    expect_shown(w, 0, "{'a':'***','b':'***'}");
    const struct df_state_keep newest = {.newest = 1};
    int64_t count = 0;
    assert_int_equal(df_state_prune(w->s.states, uid, &newest, false, &count, NULL), 0);
    expect_shown(w, 0, "{'a':'***','b':'***'}");
}

static void what_a_person_stored_is_seen_unless_it_is_known_to_hold_a_secret(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    put_state(w, 1, r.uid, "'a':{'value':'the secret'}");
    mask(w, &r, "['a']");
    put_state(w, 2, NULL, "'a':{'value':'the secret'},'b':{'value':'mine'}");
    expect_shown(w, 0, "{'a':'the ***','b':'mine'}");
    mask(w, &r, "['b']");
    expect_shown(w, 0, "{'a':'the ***','b':'mine'}");
}

static void what_is_no_digest_of_a_value_is_not_stored(void **state)
{
    static const char *const sent[] = {"{}", "{'a':{}}", "{'a':{'value':'x'}}",
                                       "{'a':{'digest':'','value':'x'}}",
                                       "{'z':{'digest':'aa','value':'x'}}"};
    struct world *w = *state;
    struct runner r = begin_apply(w);
    struct df_err err = {0};
    put_state(w, 1, r.uid, "'a':{'value':'the secret'}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(sent); i++) {
        DF_FREE char *path = upload(w, sent[i]);
        assert_int_equal(df_step_put_shown(&w->s, r.uid, r.step_token, path, NULL), 0);
        expect_shown(w, 0, "{'a':'***'}");
    }
    DF_FREE char *path = upload(w, "['a']");
    assert_fails(df_step_put_shown(&w->s, r.uid, r.step_token, path, &err), err, DF_ERR_USER, "");
    assert_fails(df_step_put_shown(&w->s, r.uid, "wrong", path, &err), err, DF_ERR_DENIED, "");
    cJSON *none = NULL;
    assert_fails(df_step_get_shown(&w->s, r.uid, "wrong", &none, &err), err, DF_ERR_DENIED, "");
}

static void
a_state_that_comes_between_question_and_answer_is_not_shown_as_the_one_before(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    put_state(w, 1, r.uid, "'a':{'value':'the secret'},'b':{'value':1},'c':{'value':'old'}");
    DF_JSON cJSON *masked = ask(w, &r);
    put_state(w, 2, r.uid, "'a':{'value':'the secret'},'b':{'value':'secret'}");
    answer(w, &r, masked);
    expect_shown(w, 0, "{'a':'the ***','b':'***'}");
    mask(w, &r, "['b']");
    expect_shown(w, 0, "{'a':'the ***','b':'***'}");
}

/* The answer reaches a process that was not asked: the service was started again, or another
 * replica leads. Or it is sent again, because nobody confirmed it. */
static void an_answer_needs_no_memory_of_the_question(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    put_state(w, 1, r.uid, "'a':{'value':'the secret'},'b':{'value':1}");
    DF_JSON cJSON *first = ask(w, &r);
    df_memory_forget(&w->s.memory, DF_KIND_TASK_ACTION, r.name);
    assert_int_equal(memories(w, DF_MEMORY_OUTPUTS), 0);
    put_state(w, 2, r.uid, "'a':{'value':'the secret'},'b':{'value':2}");
    answer(w, &r, first);
    expect_shown(w, 0, "{'a':'the ***','b':'***'}");
    DF_JSON cJSON *second = ask(w, &r);
    answer(w, &r, second);
    answer(w, &r, second);
    expect_shown(w, 0, "{'a':'the ***','b':2}");
}

static void remember(struct df_memory *m, const char *step, const cJSON *outputs)
{
    DF_FREE char *text = df_strf("{'metadata':{'name':'%s','uid':'%s'}}", step, step);
    DF_JSON cJSON *task = json(text);
    df_memory_put_outputs(m, task, outputs);
}

static void expect_seen(struct df_memory *m, const char *step, const char *want)
{
    DF_JSON cJSON *seen = df_memory_take_outputs(m, step);
    if (want)
        expect_text(seen, want);
    else
        assert_null(seen);
}

static bool is_kept(struct world *w, const struct runner *r)
{
    DF_JSON cJSON *missing = ask(w, r);
    DF_JSON cJSON *seen = df_memory_take_outputs(&w->s.memory, r->uid);
    return seen;
}

static void what_was_seen_is_kept_only_for_a_runner_that_answers(void **state)
{
    struct world *w = *state;
    struct runner plan = claim(w, "net-1-plan");
    put_state(w, 1, "of-another-step", "'a':{'value':1}");
    assert_false(is_kept(w, &plan)); /* nothing is missing */
    put_state(w, 2, NULL, "'a':{'value':1},'b':{'value':2}");
    assert_true(is_kept(w, &plan));
    put_plan(&plan, "net-1");
    report(&plan, PLANNED);
    struct runner apply = claim(w, "net-1-apply");
    mask(w, &apply, "['a','b']");
    assert_true(is_kept(w, &apply));
}

static void what_was_seen_is_taken_once_and_only_for_its_step(void **state)
{
    struct world *w = *state;
    struct df_memory *m = &w->s.memory;
    DF_JSON cJSON *one = json("{'a':1}"), *two = json("{'a':2}"), *large = json("{'a':3}");
    DF_FREE char *text = calloc(1, DF_LIMIT_READ_OUTPUTS_BYTES + 1);
    memset(text, 'x', DF_LIMIT_READ_OUTPUTS_BYTES);
    assert_int_equal(df_json_set_str(large, "a", text, NULL), 0);
    expect_seen(m, "step", NULL);
    remember(m, "step", one);
    expect_seen(m, "another", NULL);
    remember(m, "step", two);
    expect_seen(m, "step", "{'a':2}");
    expect_seen(m, "step", NULL);
    remember(m, "step", one);
    remember(m, "step", large);
    expect_seen(m, "step", NULL);
    /* There are more steps than are remembered. */
    for (int i = 0; i < 100 * DF_LIMIT_READ_OUTPUTS; i++) {
        DF_FREE char *step = df_strf("step-%d", i);
        remember(m, step, one);
    }
    assert_int_equal(memories(w, DF_MEMORY_OUTPUTS), DF_LIMIT_READ_OUTPUTS);
    expect_seen(m, "step-0", NULL);
}

static void put_outputs(struct world *w, const struct runner *r, const char *outputs)
{
    DF_FREE char *path = upload(w, outputs);
    struct df_err err = {0};
    if (df_step_put_outputs(&w->s, r->uid, r->step_token, path, &err) < 0)
        fail_msg("%s", err.message);
}

static void expect_view(struct world *w, enum df_outputs_view view, const char *want)
{
    char uid[64];
    DF_JSON cJSON *outputs = NULL;
    executor_uid(w, uid);
    assert_int_equal(df_outputs_get(&w->s, uid, view, &outputs, NULL), 0);
    expect_text(outputs, want);
}

static void outputs_of_other_states_are_seen_as_their_runner_masked_them(void **state)
{
    struct world *w = *state;
    struct runner r = begin_apply(w);
    put_outputs(w, &r,
                "{'a':{'sensitive':false,'value':'the secret','shown':'the ***'},"
                "'b':{'sensitive':true,'value':'hidden'}}");
    expect_view(w, DF_OUTPUTS_MASKED,
                "{'a':{'sensitive':false,'value':'the ***'},'b':{'sensitive':true}}");
    expect_view(w, DF_OUTPUTS_PLAIN,
                "{'a':{'sensitive':false,'value':'the secret'},'b':{'sensitive':true}}");
    expect_view(w, DF_OUTPUTS_SENSITIVE,
                "{'a':{'sensitive':false,'value':'the secret'},"
                "'b':{'sensitive':true,'value':'hidden'}}");
    put_outputs(w, &r, "{'a':{'sensitive':false,'value':'the secret'}}");
    expect_view(w, DF_OUTPUTS_MASKED, "{'a':{'sensitive':false,'value':'the ***'}}");
    put_outputs(w, &r, "{'a':{'sensitive':false,'value':'nothing'}}");
    expect_view(w, DF_OUTPUTS_MASKED, "{'a':{'sensitive':false,'value':'nothing'}}");
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(what_a_step_wrote_is_seen_when_its_runner_has_masked_it),
        TEST(what_was_masked_stays_masked_while_its_value_is_the_same),
        TEST(what_a_killed_step_left_is_masked_by_others_when_its_keys_have_expired),
        TEST(a_plan_masks_what_a_person_stored),
        TEST(an_old_version_and_one_that_comes_back_are_seen_as_their_step_masked_them),
        TEST(what_a_person_stored_is_seen_unless_it_is_known_to_hold_a_secret),
        TEST(what_is_no_digest_of_a_value_is_not_stored),
        TEST(a_state_that_comes_between_question_and_answer_is_not_shown_as_the_one_before),
        TEST(an_answer_needs_no_memory_of_the_question),
        TEST(what_was_seen_is_kept_only_for_a_runner_that_answers),
        TEST(what_was_seen_is_taken_once_and_only_for_its_step),
        TEST(outputs_of_other_states_are_seen_as_their_runner_masked_them),
    };
    return cmocka_run_group_tests_name("shown outputs", tests, NULL, NULL);
}
