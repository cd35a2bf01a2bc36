#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/object_dir.h"
#include "tests/unit/state_words.h"

static void a_lock_is_taken_once_and_its_holder_is_named(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_lock(&w, "A", STEP);
    DF_JSON cJSON *info = lock_info("B"), *holder = NULL, *first = lock_info("A");
    assert_failed(df_state_lock(w.states, UID, info, NULL, &holder, &err), &err, DF_ERR_CONFLICT,
                  "StateLocked");
    assert_true(df_json_equal(holder, first));
    assert_non_null(strstr(err.message, "me@here"));
    assert_lock_id(&w, "A");
}

static void locking_again_with_the_same_id_is_the_same_lock(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_lock(&w, "A", STEP);
    must_lock(&w, "A", STEP);
    assert_failed(lock(&w, "A", NULL, &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_failed(lock(&w, "A", "another-step", &err), &err, DF_ERR_CONFLICT, "StateLocked");
}

static void a_lock_survives_its_process(void **state)
{
    struct df_err err = {0};
    {
        WORLD w = open_world(*state);
        must_lock(&w, "A", STEP);
    }
    WORLD w = open_world(*state);
    assert_lock_id(&w, "A");
    assert_failed(lock(&w, "B", NULL, &err), &err, DF_ERR_CONFLICT, "StateLocked");
}

static void a_steps_lock_is_released_by_that_step_or_by_an_admin(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_unlocker step = {.step_uid = STEP}, other = {.step_uid = "another-step"},
                                   person = {0}, admin = {.may_force = true};
    const struct df_state_unlocker *const refused[] = {&other, &person};
    must_lock(&w, "A", STEP);
    for (size_t i = 0; i < DF_ARRAY_SIZE(refused); i++)
        assert_failed(df_state_unlock(w.states, UID, "A", refused[i], NULL, &err), &err,
                      DF_ERR_DENIED, "Forbidden");
    assert_lock_id(&w, "A");
    assert_int_equal(df_state_unlock(w.states, UID, "A", &step, NULL, &err), 0);
    must_lock(&w, "B", STEP);
    assert_int_equal(df_state_unlock(w.states, UID, "B", &admin, NULL, &err), 0);
    must_lock(&w, "C", NULL); /* of a person */
    assert_int_equal(df_state_unlock(w.states, UID, "C", &person, NULL, &err), 0);
    assert_lock_id(&w, NULL);
}

static void a_lock_is_released_by_its_id_alone(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_lock(&w, "A", STEP);
    static const char *const wrong[] = {"B", "", "a", NULL};
    for (size_t i = 0; i < DF_ARRAY_SIZE(wrong); i++) {
        DF_JSON cJSON *holder = NULL;
        assert_failed(df_state_unlock(w.states, UID, wrong[i], &anybody, &holder, &err), &err,
                      DF_ERR_CONFLICT, "StateLocked");
        assert_string_equal(df_json_str(holder, "ID"), "A");
    }
    assert_int_equal(df_state_unlock(w.states, UID, "A", &anybody, NULL, &err), 0);
    assert_lock_id(&w, NULL);
    assert_int_equal(df_state_unlock(w.states, UID, "A", &anybody, NULL, &err), 0);
    must_lock(&w, "B", NULL);
}

static void a_dead_step_loses_its_own_lock_and_no_other(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    bool released = true;
    assert_int_equal(df_state_release_dead(w.states, UID, STEP, &released, &err), 0);
    assert_false(released);
    must_lock(&w, "A", STEP);
    assert_int_equal(df_state_release_dead(w.states, UID, "another-step", &released, &err), 0);
    assert_false(released);
    assert_lock_id(&w, "A");
    assert_int_equal(df_state_release_dead(w.states, UID, STEP, &released, &err), 0);
    assert_true(released);
    assert_lock_id(&w, NULL);
    must_lock(&w, "P", NULL);
    assert_int_equal(df_state_release_dead(w.states, UID, STEP, &released, &err), 0);
    assert_false(released);
    assert_lock_id(&w, "P");
}

static void an_admin_releases_any_lock(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_lock(&w, "A", STEP);
    assert_int_equal(df_state_force_unlock(w.states, UID, &err), 0);
    assert_int_equal(df_state_force_unlock(w.states, UID, &err), 0);
    assert_lock_id(&w, NULL);
}

static void a_lock_without_id_or_beyond_its_cap_is_refused(void **state)
{
    static const char *const infos[] = {"{}", "{\"ID\":\"\"}", "{\"ID\":7}",    "{\"ID\":null}",
                                        "[]", "\"A\"",         "{\"id\":\"A\"}"};
    WORLD w = open_world(*state);
    struct df_err err = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(infos); i++) {
        DF_JSON cJSON *info = NULL;
        assert_int_equal(df_json_parse(infos[i], strlen(infos[i]), &info, &err), 0);
        assert_failed(df_state_lock(w.states, UID, info, NULL, NULL, &err), &err, DF_ERR_USER, "");
    }
    DF_JSON cJSON *info = lock_info("A");
    DF_FREE char *big = malloc(DF_LIMIT_LOCK_INFO + 1);
    assert_non_null(big);
    memset(big, 'x', DF_LIMIT_LOCK_INFO);
    big[DF_LIMIT_LOCK_INFO] = '\0';
    assert_int_equal(df_json_add_str(info, "Info", big, NULL), 0);
    assert_failed(df_state_lock(w.states, UID, info, NULL, NULL, &err), &err, DF_ERR_LIMIT, "");
    assert_lock_id(&w, NULL);
}

static void while_it_is_locked_only_the_holder_writes(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer nobody = {0};
    must_put(&w, 1);
    must_put(&w, 2);
    must_lock(&w, "A", STEP);
    assert_failed(put(&w, 3, "L", "", NULL, &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_failed(put(&w, 3, "L", "", "B", &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_failed(df_state_delete(w.states, UID, &nobody, &err), &err, DF_ERR_CONFLICT,
                  "StateLocked");
    assert_failed(df_state_rollback(w.states, UID, 1, "me", &err), &err, DF_ERR_CONFLICT,
                  "StateLocked");
    assert_current(&w, 2);
    assert_int_equal(put(&w, 3, "L", "", "A", &err), 0);
    assert_int_equal(df_state_unlock(w.states, UID, "A", &anybody, NULL, &err), 0);
    /* A lock that was broken while its holder worked: serial and lineage still protect. */
    assert_int_equal(put(&w, 4, "L", "", "A", &err), 0);
    assert_failed(put(&w, 4, "L", ",\"x\":1", "A", &err), &err, DF_ERR_CONFLICT, "StaleSerial");
}

static void knowing_the_id_of_a_steps_lock_is_not_enough_to_write(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    char step[64];
    DF_FREE char *text = state_text(1, "L", "");
    const struct df_state_writer person = {.lock_id = "A", .actor = "me"};
    const struct df_state_writer other = {.lock_id = "A", .step_uid = "another-step"};
    must_lock(&w, "A", STEP);
    assert_int_equal(df_state_lock_step(w.states, UID, "A", step, &err), 0);
    assert_string_equal(step, STEP);
    assert_int_equal(df_state_lock_step(w.states, UID, "B", step, &err), 0);
    assert_string_equal(step, "");
    assert_failed(put_text(&w, text, &person, &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_failed(put_text(&w, text, &other, &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_failed(df_state_delete(w.states, UID, &other, &err), &err, DF_ERR_CONFLICT,
                  "StateLocked");
    assert_int_equal(put(&w, 1, "L", "", "A", &err), 0);
    assert_int_equal(df_state_force_unlock(w.states, UID, &err), 0);
    must_lock(&w, "P", NULL);
    assert_int_equal(df_state_lock_step(w.states, UID, "P", step, &err), 0);
    assert_string_equal(step, "");
}

static int put_by_person(const struct world *w, int serial, const char *more, const char *lock_id,
                         struct df_err *err)
{
    DF_FREE char *text = state_text(serial, "L", more);
    const struct df_state_writer by = {.lock_id = lock_id, .actor = "ci", .needs_lock = true};
    return put_text(w, text, &by, err);
}

static void without_a_lock_a_person_replaces_no_state_that_holds_resources(void **state)
{
    static const char *const full = ",\"resources\":[{\"mode\":\"managed\",\"type\":\"t\","
                                    "\"name\":\"n\",\"instances\":[{}]}]";
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer nobody = {.actor = "ci", .needs_lock = true};
    assert_int_equal(put_by_person(&w, 1, "", NULL, &err), 0);
    assert_int_equal(put_by_person(&w, 2, full, NULL, &err), 0); /* nothing is lost yet */
    assert_int_equal(put_by_person(&w, 2, full, NULL, &err), 0); /* repeated after a lost answer */
    assert_failed(put_by_person(&w, 3, "", NULL, &err), &err, DF_ERR_CONFLICT, "StateExists");
    assert_failed(put_by_person(&w, 3, "", "A", &err), &err, DF_ERR_CONFLICT, "StateExists");
    assert_failed(df_state_delete(w.states, UID, &nobody, &err), &err, DF_ERR_CONFLICT,
                  "StateExists");
    assert_current(&w, 2);
    must_lock(&w, "A", NULL);
    assert_int_equal(put_by_person(&w, 3, full, "A", &err), 0);
    assert_int_equal(df_state_unlock(w.states, UID, "A", &anybody, NULL, &err), 0);
    must_put(&w, 4); /* a step has its own rules */
}

static void a_damaged_lock_protects_until_an_admin_removes_it(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_put(&w, 1);
    must_lock(&w, "A", STEP);
    overwrite(&w, "lock.json", "{\"inf");
    assert_failed(put(&w, 2, "L", "", "A", &err), &err, DF_ERR_SYSTEM, "");
    assert_non_null(strstr(err.message, "state unlock"));
    assert_failed(lock(&w, "B", NULL, &err), &err, DF_ERR_SYSTEM, "");
    assert_int_equal(df_state_force_unlock(w.states, UID, &err), 0);
    must_lock(&w, "B", NULL);
}

/* ---- two replicas ---- */

/* Over one object store, with a vault of its own: locks are not sealed. */
static struct world open_replica(const char *dir, const char *name)
{
    static const struct df_blob_sizes sizes = {.chunk = (int64_t)(512 * DF_KIB),
                                               .stream_chunk = (int64_t)(64 * DF_KIB),
                                               .no_chunks = (int64_t)(16 * DF_KIB),
                                               .blob = (int64_t)(4 * DF_MIB)};
    struct df_err err = {0};
    struct world w = {.dir = dir};
    DF_FREE char *objects = df_fs_join(dir, "objects"), *own = df_fs_join(dir, name);
    DF_FREE char *database = df_fs_join(own, "vault.db"), *key = df_fs_join(own, "vault.key");
    if (object_dir_open(objects, own, &sizes, &w.blobs, &err) < 0 ||
        df_vault_open(database, key, &w.vault, &err) < 0 ||
        df_states_open(w.blobs, w.vault, &w.states, &err) < 0)
        fail_msg("%s", err.message);
    return w;
}

static void who_took_a_lock_releases_it_with_one_request(void **state)
{
    WORLD w = open_replica(*state, "one");
    struct df_err err = {0};
    must_lock(&w, "A", STEP);
    object_fault.calls = 0;
    assert_int_equal(df_state_unlock(w.states, UID, "A", &anybody, NULL, &err), 0);
    assert_int_equal(object_fault.calls, 1);
    assert_lock_id(&w, NULL);
}

/* The first replica still knows the lock that it created. */
static void a_lock_that_replaced_another_is_not_released_in_its_place(void **state)
{
    WORLD w = open_replica(*state, "one");
    WORLD other = open_replica(*state, "two");
    const struct df_state_unlocker step = {.step_uid = STEP};
    DF_JSON cJSON *holder = NULL;
    struct df_err err = {0};
    bool released = true;
    must_lock(&w, "A", STEP);
    assert_int_equal(df_state_force_unlock(other.states, UID, &err), 0);
    must_lock(&other, "B", "another-step");
    assert_failed(df_state_unlock(w.states, UID, "A", &step, &holder, &err), &err, DF_ERR_CONFLICT,
                  "StateLocked");
    assert_string_equal(df_json_str(holder, "ID"), "B");
    assert_lock_id(&other, "B");
    assert_failed(df_state_unlock(w.states, UID, "B", &step, NULL, &err), &err, DF_ERR_DENIED,
                  "Forbidden");
    assert_int_equal(df_state_force_unlock(other.states, UID, &err), 0);
    must_lock(&w, "A", STEP);
    assert_int_equal(df_state_force_unlock(other.states, UID, &err), 0);
    must_lock(&other, "B", "another-step");
    assert_int_equal(df_state_release_dead(w.states, UID, STEP, &released, &err), 0);
    assert_false(released);
    assert_lock_id(&other, "B");
}

static void a_lock_that_another_replica_took_is_released_here(void **state)
{
    WORLD w = open_replica(*state, "one");
    WORLD other = open_replica(*state, "two");
    struct df_err err = {0};
    bool released = false;
    must_lock(&w, "A", "another-step");
    assert_int_equal(df_state_force_unlock(other.states, UID, &err), 0);
    must_lock(&other, "B", STEP);
    assert_int_equal(df_state_release_dead(w.states, UID, STEP, &released, &err), 0);
    assert_true(released);
    /* And one that is gone is released by nobody. */
    must_lock(&w, "A", "another-step");
    assert_int_equal(df_state_force_unlock(other.states, UID, &err), 0);
    assert_int_equal(df_state_release_dead(w.states, UID, STEP, &released, &err), 0);
    assert_false(released);
    must_lock(&w, "A", STEP);
    assert_int_equal(df_state_unlock(other.states, UID, "A", &anybody, NULL, &err), 0);
    assert_int_equal(df_state_unlock(w.states, UID, "A", &anybody, NULL, &err), 0);
    assert_lock_id(&w, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_lock_is_taken_once_and_its_holder_is_named),
        scratch_test(locking_again_with_the_same_id_is_the_same_lock),
        scratch_test(a_lock_survives_its_process),
        scratch_test(a_lock_is_released_by_its_id_alone),
        scratch_test(a_steps_lock_is_released_by_that_step_or_by_an_admin),
        scratch_test(a_dead_step_loses_its_own_lock_and_no_other),
        scratch_test(an_admin_releases_any_lock),
        scratch_test(a_lock_without_id_or_beyond_its_cap_is_refused),
        scratch_test(while_it_is_locked_only_the_holder_writes),
        scratch_test(knowing_the_id_of_a_steps_lock_is_not_enough_to_write),
        scratch_test(without_a_lock_a_person_replaces_no_state_that_holds_resources),
        scratch_test(a_damaged_lock_protects_until_an_admin_removes_it),
        scratch_test(who_took_a_lock_releases_it_with_one_request),
        scratch_test(a_lock_that_replaced_another_is_not_released_in_its_place),
        scratch_test(a_lock_that_another_replica_took_is_released_here),
    };
    return cmocka_run_group_tests_name("state_lock", tests, NULL, NULL);
}
