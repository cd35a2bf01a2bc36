/* The plan between its two steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "tests/unit/step_world.h"

/* ---- plans ---- */

static void a_plan_is_sealed_and_comes_back_as_it_was(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    DF_FREE char *path = make_bundle(&r, "net-1", "secret plan text");
    DF_BUF struct df_buf sent = DF_BUF_INIT(DF_MIB), sealed = DF_BUF_INIT(DF_MIB),
                         back = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &sent, NULL), 0);
    assert_int_equal(df_step_put_plan(&w->s, r.uid, r.step_token, path, NULL), 0);
    assert_false(df_fs_exists(path));
    DF_FREE char *key = df_strf("plans/%s", r.uid);
    assert_int_equal(df_blob_get(w->s.blobs, key, &sealed, NULL), 0);
    assert_null(memmem(sealed.data, sealed.len, "secret plan", 11));
    report(&r, PLANNED);
    struct runner a = claim(w, "net-1-apply");
    for (int i = 0; i < 2; i++) { /* the first answer was lost */
        DF_CLOSE int fd = -1;
        int64_t size;
        assert_int_equal(df_step_get_plan(&w->s, a.uid, a.step_token, &fd, &size, NULL), 0);
        df_buf_clear(&back);
        assert_int_equal(df_fs_read_fd(fd, &back, NULL), 0);
        assert_int_equal(size, sent.len);
        assert_int_equal(back.len, sent.len);
        assert_memory_equal(back.data, sent.data, sent.len);
    }
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.plan.usedBy", a.uid);
}

static void an_apply_is_told_what_was_planned_with_what(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    put_plan(&r, "net-1");
    report(&r, "{'exitCode':0,'reason':'Planned','hasChanges':true,'lockFileSha256':'ab',"
               "'source':{'commit':'c0ffee','treeDigest':'d1'},"
               "'tool':{'name':'opentofu','version':'1.12.6'}}");
    struct fake_step *s = await_start(w, "net-1-apply");
    cJSON *doc = NULL;
    assert_int_equal(try_claim(w, s, CLAIM_A, &doc, NULL), 0);
    assert_string_equal(df_json_str(doc, "expected.commit"), "c0ffee");
    assert_string_equal(df_json_str(doc, "expected.treeDigest"), "d1");
    assert_string_equal(df_json_str(doc, "expected.toolName"), "opentofu");
    assert_string_equal(df_json_str(doc, "expected.toolVersion"), "1.12.6");
    assert_string_equal(df_json_str(doc, "expected.lockFileSha256"), "ab");
    df_json_wipe(doc);
}

static void a_bundle_of_another_step_or_a_broken_one_is_not_taken(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    struct df_err err;
    DF_FREE char *other_run = make_bundle(&r, "net-2", "p");
    assert_fails(df_step_put_plan(&w->s, r.uid, r.step_token, other_run, &err), err, DF_ERR_USER,
                 "PlanCorrupt");
    DF_FREE char *path = make_bundle(&r, "net-1", "the plan");
    DF_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t size = lseek(fd, 0, SEEK_END);
    assert_int_equal(pwrite(fd, "X", 1, size - 1), 1);
    struct df_err broken = {0};
    assert_int_equal(df_step_put_plan(&w->s, r.uid, r.step_token, path, &broken), -1);
    assert_string_equal(broken.reason, "PlanCorrupt");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "status.plan", "");
}

/* Brings the run to its apply, whose token comes back. */
static struct runner reach_apply(struct world *w)
{
    play_plan(w, "net-1", "net-1-plan");
    return claim(w, "net-1-apply");
}

struct plan_change {
    const char *key;
    const cJSON *value;
};

static int set_in_plan(cJSON *task, void *arg, struct df_err *err)
{
    const struct plan_change *c = arg;
    cJSON *plan = df_json_object_at(df_json_object_at(task, "status"), "plan");
    return df_json_set(plan, c->key, cJSON_Duplicate(c->value, true), err);
}

/* The control loop may be writing the same document just now. */
static void change_plan_status(struct world *w, const char *task, const char *key, cJSON *value)
{
    DF_JSON cJSON *owned = value;
    struct plan_change c = {key, value};
    struct df_err err = {0};
    if (df_store_modify(w->s.store, DF_KIND_TASK_ACTION, task, set_in_plan, &c, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static int get_plan_from(struct df_spawner *s, const struct runner *a, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size;
    return df_step_get_plan(s, a->uid, a->step_token, &fd, &size, err);
}

static int get_plan(const struct runner *a, struct df_err *err)
{
    return get_plan_from(&a->w->s, a, err);
}

static void a_used_an_expired_and_a_missing_plan_are_refused_each_with_its_reason(void **state)
{
    struct world *w = *state;
    struct runner a = reach_apply(w);
    struct df_err err;
    change_plan_status(w, "net-1-plan", "usedBy", cJSON_CreateString("somebody else"));
    assert_fails(get_plan(&a, &err), err, DF_ERR_CONFLICT, "PlanUsed");
    change_plan_status(w, "net-1-plan", "usedBy", cJSON_CreateString(a.uid));
    change_plan_status(w, "net-1-plan", "expiresAt", cJSON_CreateString("2001-01-01T00:00:00Z"));
    assert_fails(get_plan(&a, &err), err, DF_ERR_CONFLICT, "PlanExpired");
    change_plan_status(w, "net-1-plan", "expiresAt", cJSON_CreateString("2999-01-01T00:00:00Z"));
    DF_FREE char *plan_uid = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.uid");
    DF_FREE char *key = df_strf("plans/%s", plan_uid);
    assert_int_equal(df_blob_delete(w->s.blobs, key, NULL), 0);
    assert_fails(get_plan(&a, &err), err, DF_ERR_NOT_FOUND, "PlanMissing");
}

static void a_plan_under_a_key_that_was_replaced_names_the_keys(void **state)
{
    struct world *w = *state;
    struct runner a = reach_apply(w);
    struct df_err err;
    DF_FREE char *db = df_fs_join(w->dir, "other.db"), *key = df_fs_join(w->dir, "other-key");
    char old[DF_VAULT_KEY_ID], new[DF_VAULT_KEY_ID];
    struct df_spawner other = w->s;
    assert_int_equal(df_vault_open(db, key, &other.vault, NULL), 0);
    assert_int_equal(df_vault_key_id(w->s.vault, old, NULL), 0);
    assert_int_equal(df_vault_key_id(other.vault, new, NULL), 0);
    assert_fails(get_plan_from(&other, &a, &err), err, DF_ERR_CONFLICT, "PlanCorrupt");
    df_vault_close(other.vault);
    assert_string_not_equal(old, new);
    assert_true(strstr(err.message, old) && strstr(err.message, new));
    assert_int_equal(get_plan(&a, &err), 0);
}

static void any_flipped_bit_of_a_stored_plan_is_found(void **state)
{
    struct world *w = *state;
    struct runner a = reach_apply(w);
    DF_FREE char *plan_uid = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.uid");
    DF_FREE char *key = df_strf("plans/%s", plan_uid);
    DF_BUF struct df_buf good = DF_BUF_INIT(DF_MIB);
    struct df_err err;
    assert_int_equal(df_blob_get(w->s.blobs, key, &good, NULL), 0);
    for (size_t i = 0; i < good.len; i += 1 + good.len / 97) {
        good.data[i] ^= (char)(1 << i % 8);
        assert_int_equal(df_blob_put(w->s.blobs, key, good.data, good.len, NULL), 0);
        assert_fails(get_plan(&a, &err), err, DF_ERR_CONFLICT, "PlanCorrupt");
        good.data[i] ^= (char)(1 << i % 8);
    }
    assert_int_equal(df_blob_put(w->s.blobs, key, good.data, good.len - 1, NULL), 0);
    assert_fails(get_plan(&a, &err), err, DF_ERR_CONFLICT, "PlanCorrupt");
    assert_int_equal(df_blob_put(w->s.blobs, key, good.data, good.len, NULL), 0);
    change_plan_status(w, "net-1-plan", "sha256", cJSON_CreateString("00"));
    assert_fails(get_plan(&a, &err), err, DF_ERR_CONFLICT, "PlanCorrupt");
}

static int set_plan_from(cJSON *task, void *arg, struct df_err *err)
{
    return df_json_set_str(df_json_object_at(task, "spec"), "planFrom", arg, err);
}

static void plan_from(struct world *w, const char *apply, char *plan)
{
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, apply, set_plan_from, plan, NULL, NULL),
        0);
}

static void the_plan_of_another_run_is_refused(void **state)
{
    struct world *w = *state;
    make_executor(w, "dns", "");
    cJSON_Delete(make_run(w, "dns", "{'action':'provision'}"));
    play_plan(w, "dns-1", "dns-1-plan");
    await_value(w, DF_KIND_RUN, "dns-1", "status.phase", "WaitingApproval");
    struct runner a = reach_apply(w);
    struct df_err err;
    plan_from(w, "net-1-apply", (char[]){"dns-1-plan"});
    assert_fails(get_plan(&a, &err), err, DF_ERR_CONFLICT, "PlanOfOtherRun");
    /* Nor does the sealed blob of one do under the name of the other. */
    DF_FREE char *mine = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.uid");
    DF_FREE char *theirs = value_of(w, DF_KIND_TASK_ACTION, "dns-1-plan", "metadata.uid");
    DF_FREE char *my_key = df_strf("plans/%s", mine), *their_key = df_strf("plans/%s", theirs);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_blob_get(w->s.blobs, their_key, &b, NULL), 0);
    assert_int_equal(df_blob_put(w->s.blobs, my_key, b.data, b.len, NULL), 0);
    plan_from(w, "net-1-apply", (char[]){"net-1-plan"});
    assert_fails(get_plan(&a, &err), err, DF_ERR_CONFLICT, "PlanCorrupt");
}

static void an_apply_whose_plan_was_deleted_says_so(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *doc = NULL;
    struct df_err err;
    play_plan(w, "net-1", "net-1-plan");
    struct fake_step *apply = await_start(w, "net-1-apply");
    DF_FREE char *uid = value_of(w, DF_KIND_TASK_ACTION, "net-1-plan", "metadata.uid");
    assert_int_equal(df_store_remove(w->s.store, DF_KIND_TASK_ACTION, "net-1-plan", uid, NULL), 0);
    assert_fails(try_claim(w, apply, CLAIM_A, &doc, &err), err, DF_ERR_CONFLICT, "StepOver");
    await_value(w, DF_KIND_RUN, "net-1", "status.reason", "StepDeleted");
}

static void a_plan_step_has_no_plan_to_fetch_and_an_apply_none_to_store(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, "net-1-plan");
    struct df_err err;
    assert_fails(get_plan(&r, &err), err, DF_ERR_NOT_FOUND, "PlanMissing");
    put_plan(&r, "net-1");
    report(&r, PLANNED);
    struct runner a = claim(w, "net-1-apply");
    DF_FREE char *path = make_bundle(&a, "net-1", "p");
    assert_fails(df_step_put_plan(&w->s, a.uid, a.step_token, path, &err), err, DF_ERR_USER, "");
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_plan_is_sealed_and_comes_back_as_it_was),
        TEST(an_apply_is_told_what_was_planned_with_what),
        TEST(a_bundle_of_another_step_or_a_broken_one_is_not_taken),
        TEST(a_used_an_expired_and_a_missing_plan_are_refused_each_with_its_reason),
        TEST(a_plan_under_a_key_that_was_replaced_names_the_keys),
        TEST(any_flipped_bit_of_a_stored_plan_is_found),
        TEST(the_plan_of_another_run_is_refused),
        TEST(an_apply_whose_plan_was_deleted_says_so),
        TEST(a_plan_step_has_no_plan_to_fetch_and_an_apply_none_to_store),
    };
    return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
