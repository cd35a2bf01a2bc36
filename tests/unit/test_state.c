#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/crypto/crypto.h"
#include "tests/unit/state_words.h"

/* ---- put and get ---------------------------------------------------------------------------- */

static void at_first_there_is_no_state(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    int fd = -1;
    int64_t size = 0;
    assert_no_state(&w);
    assert_failed(df_state_open(w.states, UID, 0, &fd, &size, &err), &err, DF_ERR_NOT_FOUND, "");
    assert_int_equal(count_versions(&w), 0);
    DF_JSON cJSON *outputs = NULL;
    assert_int_equal(df_state_outputs(w.states, UID, 0, true, &outputs, &err), 0);
    assert_int_equal(cJSON_GetArraySize(outputs), 0);
}

static void every_version_is_kept_with_its_story(void **state)
{
    struct df_err err = {0};
    {
        WORLD w = open_world(*state);
        must_put(&w, 1);
        must_put(&w, 2);
        must_put(&w, 7);
    }
    WORLD w = open_world(*state);
    assert_current(&w, 7);
    DF_JSON cJSON *list = versions_of(&w);
    assert_int_equal(cJSON_GetArraySize(list), 3);
    const cJSON *newest = cJSON_GetArrayItem(list, 0);
    DF_FREE char *text = state_text(7, "L", "");
    char sha256[DF_SHA256_HEX];
    assert_int_equal(df_sha256_hex(text, strlen(text), sha256, &err), 0);
    assert_int_equal(df_json_int(newest, "version", 0), 3);
    assert_int_equal(df_json_int(newest, "serial", 0), 7);
    assert_int_equal(df_json_int(newest, "size", 0), strlen(text));
    assert_string_equal(df_json_str(newest, "lineage"), "L");
    assert_string_equal(df_json_str(newest, "sha256"), sha256);
    assert_string_equal(df_json_str(newest, "run"), "net-1");
    assert_string_equal(df_json_str(newest, "step"), STEP);
    assert_string_equal(df_json_str(newest, "actor"), "me");
    int64_t at = 0;
    assert_int_equal(df_time_parse(df_json_str(newest, "createdAt"), &at, &err), 0);
    assert_int_equal(df_json_int(cJSON_GetArrayItem(list, 2), "serial", 0), 1);

    DF_CLOSE int fd = -1;
    int64_t size = 0;
    DF_BUF struct df_buf old = DF_BUF_INIT(1000);
    DF_FREE char *second = state_text(2, "L", "");
    assert_int_equal(df_state_open(w.states, UID, 2, &fd, &size, &err), 0);
    assert_int_equal(size, strlen(second));
    assert_int_equal(df_fs_read_fd(fd, &old, &err), 0);
    assert_string_equal(df_buf_str(&old), second);
}

static void versions_that_do_not_exist_are_not_found(void **state)
{
    WORLD w = open_world(*state);
    must_put(&w, 1);
    static const struct {
        int64_t version;
        enum df_err_class cls;
    } cases[] = {{2, DF_ERR_NOT_FOUND},
                 {99999999, DF_ERR_NOT_FOUND},
                 {INT64_MAX, DF_ERR_NOT_FOUND},
                 {-1, DF_ERR_USER},
                 {INT64_MIN, DF_ERR_USER}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        int fd = -1;
        int64_t size = 0;
        assert_failed(df_state_open(w.states, UID, cases[i].version, &fd, &size, &err), &err,
                      cases[i].cls, "");
        assert_int_equal(df_state_rollback(w.states, UID, cases[i].version, "me", &err), -1);
    }
}

static void what_may_follow_a_state_is_decided_by_lineage_and_serial(void **state)
{
    static const struct {
        int serial;
        const char *lineage, *more, *reason;
    } cases[] = {
        {4, "L", "", "StaleSerial"},         {0, "L", "", "StaleSerial"},
        {5, "L", ",\"x\":1", "StaleSerial"}, {6, "M", "", "ForeignLineage"},
        {5, "M", "", "ForeignLineage"},      {6, "", "", "ForeignLineage"},
        {6, "l", "", "ForeignLineage"},
    };
    WORLD w = open_world(*state);
    must_put(&w, 5);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        assert_failed(put(&w, cases[i].serial, cases[i].lineage, cases[i].more, NULL, &err), &err,
                      DF_ERR_CONFLICT, cases[i].reason);
        assert_current(&w, 5);
        assert_int_equal(count_versions(&w), 1);
    }
    must_put(&w, 6);
    must_put(&w, 1000000);
    assert_int_equal(count_versions(&w), 3);
}

static void the_same_state_again_is_success_without_a_new_version(void **state)
{
    WORLD w = open_world(*state);
    must_put(&w, 5);
    must_put(&w, 5);
    must_put(&w, 5);
    assert_int_equal(count_versions(&w), 1);
}

static void one_version_is_told_without_the_others(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    DF_JSON cJSON *newest = NULL, *first = NULL;
    cJSON *none = NULL;
    assert_failed(df_state_meta(w.states, UID, 0, &none, &err), &err, DF_ERR_NOT_FOUND, "");
    must_put(&w, 5);
    must_put(&w, 6);
    assert_int_equal(df_state_meta(w.states, UID, 0, &newest, &err), 0);
    assert_int_equal(df_json_int(newest, "version", 0), 2);
    assert_int_equal(df_json_int(newest, "serial", 0), 6);
    assert_int_equal(df_state_meta(w.states, UID, 1, &first, &err), 0);
    assert_int_equal(df_json_int(first, "serial", 0), 5);
    assert_failed(df_state_meta(w.states, UID, 3, &none, &err), &err, DF_ERR_NOT_FOUND, "");
    assert_null(none);
}

static void a_state_damaged_on_its_way_is_refused(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    DF_FREE char *text = state_text(1, "L", "");
    DF_FREE char *path = upload(&w, text, strlen(text));
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char md5[DF_MD5_LEN];
    assert_int_equal(df_md5_file(fd, md5, &err), 0);
    const struct df_state_writer by = {0};
    md5[15] ^= 1;
    assert_failed(df_state_put(w.states, UID, path, md5, &by, &err), &err, DF_ERR_USER,
                  "StateRefused");
    assert_no_state(&w);
    assert_true(df_fs_exists(path));
    md5[15] ^= 1;
    assert_int_equal(df_state_put(w.states, UID, path, md5, &by, &err), 0);
    assert_current(&w, 1);
}

static void uids_that_could_lead_astray_are_refused(void **state)
{
    static const char *const uids[] = {
        "",    ".",    "..",
        "a/b", "../x", "a.b",
        "a b", "a\n",  "0123456789012345678901234567890123456789012345678901234567890123"};
    WORLD w = open_world(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(uids); i++) {
        struct df_err err = {0};
        int fd = -1;
        int64_t size = 0;
        bool released = false;
        DF_JSON cJSON *info = lock_info("A");
        cJSON *ret = NULL;
        const struct df_state_writer by = {0};
        DF_FREE char *text = state_text(1, "L", "");
        DF_FREE char *path = upload(&w, text, strlen(text));
        assert_int_equal(df_state_put(w.states, uids[i], path, NULL, &by, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_int_equal(df_state_open(w.states, uids[i], 0, &fd, &size, &err), -1);
        assert_int_equal(df_state_lock(w.states, uids[i], info, NULL, NULL, &err), -1);
        assert_int_equal(df_state_unlock(w.states, uids[i], "A", &anybody, NULL, &err), -1);
        assert_int_equal(df_state_release_dead(w.states, uids[i], STEP, &released, &err), -1);
        assert_int_equal(df_state_force_unlock(w.states, uids[i], &err), -1);
        assert_int_equal(df_state_versions(w.states, uids[i], &ret, &err), -1);
        assert_int_equal(df_state_rollback(w.states, uids[i], 1, "me", &err), -1);
        assert_int_equal(df_state_delete(w.states, uids[i], &by, &err), -1);
        assert_int_equal(df_state_purge(w.states, uids[i], &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_int_equal(df_state_keep_errored(w.states, UID, uids[i], path, &err), -1);
        assert_int_equal(df_state_push_errored(w.states, UID, uids[i], "me", &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

/* ---- rollback, delete, purge ---------------------------------------------------------------- */

static void a_rollback_is_a_new_version_with_the_old_content(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer by = {0};
    const char *odd = " {\"serial\" : 9 ,\n \"version\":4, \"lineage\": \"L\",\"x\":\"\xff\\u00e9 "
                      "\\\"serial\\\": 9\",\"y\":{\"serial\":9}}\r\n";
    assert_int_equal(put_text(&w, odd, &by, &err), 0);
    must_put(&w, 10);
    must_put(&w, 99);
    assert_int_equal(df_state_rollback(w.states, UID, 1, "admin", &err), 0);
    DF_BUF struct df_buf got = DF_BUF_INIT(1000);
    read_version(&w, 0, &got);
    assert_string_equal(df_buf_str(&got),
                        " {\"serial\" : 100 ,\n \"version\":4, \"lineage\": \"L\",\"x\":\"\xff"
                        "\\u00e9 \\\"serial\\\": 9\",\"y\":{\"serial\":9}}\r\n");
    DF_JSON cJSON *list = versions_of(&w);
    const cJSON *newest = cJSON_GetArrayItem(list, 0);
    assert_int_equal(df_json_int(newest, "version", 0), 4);
    assert_int_equal(df_json_int(newest, "serial", 0), 100);
    assert_int_equal(df_json_int(newest, "rollbackOf", 0), 1);
    assert_string_equal(df_json_str(newest, "actor"), "admin");
    must_put(&w, 101);
}

static void a_rollback_that_makes_no_sense_is_refused(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer by = {0};
    assert_failed(df_state_rollback(w.states, UID, 1, "me", &err), &err, DF_ERR_NOT_FOUND, "");
    must_put(&w, 1);
    assert_failed(df_state_rollback(w.states, UID, 1, "me", &err), &err, DF_ERR_USER, "");
    assert_failed(df_state_rollback(w.states, UID, 2, "me", &err), &err, DF_ERR_NOT_FOUND, "");
    assert_failed(df_state_rollback(w.states, UID, 0, "me", &err), &err, DF_ERR_USER, "");
    assert_int_equal(df_state_delete(w.states, UID, &by, &err), 0);
    must_put(&w, 1);
    assert_failed(df_state_rollback(w.states, UID, 2, "me", &err), &err, DF_ERR_USER, "");
    assert_int_equal(count_versions(&w), 3);
}

static void a_deleted_state_is_gone_but_its_history_stays(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer by = {.actor = "me"};
    must_put(&w, 5);
    assert_int_equal(df_state_delete(w.states, UID, &by, &err), 0);
    assert_int_equal(df_state_delete(w.states, UID, &by, &err), 0);
    assert_no_state(&w);
    assert_int_equal(count_versions(&w), 2);
    DF_CLOSE int fd = -1;
    int64_t size = -1;
    assert_int_equal(df_state_open(w.states, UID, 0, &fd, &size, &err), 0);
    assert_int_equal(size, 0);
    DF_JSON cJSON *outputs = NULL;
    assert_int_equal(df_state_outputs(w.states, UID, 0, true, &outputs, &err), 0);
    assert_int_equal(cJSON_GetArraySize(outputs), 0);

    assert_int_equal(df_state_rollback(w.states, UID, 1, "me", &err), 0);
    assert_current(&w, 6);
    assert_int_equal(df_state_delete(w.states, UID, &by, &err), 0);
    assert_int_equal(put(&w, 1, "another", "", NULL, &err), 0);
    assert_current(&w, 1);
    assert_int_equal(count_versions(&w), 5);
}

static void deleting_nothing_makes_no_version(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer by = {0};
    assert_int_equal(df_state_delete(w.states, UID, &by, &err), 0);
    assert_int_equal(count_versions(&w), 0);
}

static void a_purge_takes_everything_of_one_executor(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_put(&w, 1);
    must_lock(&w, "A", STEP);
    DF_FREE char *path = upload(&w, "x", 1);
    assert_int_equal(df_state_keep_errored(w.states, UID, STEP, path, &err), 0);
    DF_FREE char *text = state_text(3, "M", "");
    DF_FREE char *other = upload(&w, text, strlen(text));
    const struct df_state_writer by = {0};
    assert_int_equal(df_state_put(w.states, UID "2", other, NULL, &by, &err), 0);
    assert_int_equal(df_state_purge(w.states, UID, &err), 0);
    assert_int_equal(df_state_purge(w.states, UID, &err), 0);
    assert_no_state(&w);
    assert_lock_id(&w, NULL);
    DF_BUF struct df_buf got = DF_BUF_INIT(1000);
    assert_int_equal(get_current(&w, UID "2", &got, &err), 0);
    must_put(&w, 1);
}

/* ---- outputs -------------------------------------------------------------------------------- */

static void outputs_are_printed_as_tofu_prints_them(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer by = {0};
    DF_BUF struct df_buf text = DF_BUF_INIT(1 * DF_MIB);
    /* A state of OpenTofu 1.12.6 and what its `output -json` (and Terraform 1.11.4's) says of it.
     */
    assert_int_equal(df_fs_read("tests/fixtures/state/outputs.tfstate", &text, &err), 0);
    assert_int_equal(put_text(&w, df_buf_str(&text), &by, &err), 0);
    DF_JSON cJSON *want = NULL, *all = NULL, *some = NULL;
    assert_int_equal(df_json_load("tests/fixtures/state/outputs.json", DF_MIB, &want, &err), 0);
    assert_int_equal(df_state_outputs(w.states, UID, 0, true, &all, &err), 0);
    DF_FREE char *want_text = df_json_print(want);
    DF_FREE char *got_text = df_json_print(all);
    assert_string_equal(got_text, want_text);

    assert_int_equal(df_state_outputs(w.states, UID, 0, false, &some, &err), 0);
    cJSON_DeleteItemFromObject(cJSON_GetObjectItem(want, "sec"), "value");
    assert_true(df_json_equal(some, want));
    DF_FREE char *some_text = df_json_print(some);
    assert_null(strstr(some_text, "hidden"));
}

static void odd_outputs_are_no_trouble(void **state)
{
    static const struct {
        const char *outputs, *want;
    } cases[] = {
        {"{}", "{}"},
        {"null", "{}"},
        {"[]", "{}"},
        {"[{\"value\":1}]", "{}"},
        {"{\"a\":null}", "{\"a\":{\"sensitive\":false}}"},
        {"{\"a\":{\"sensitive\":true,\"value\":1}}", "{\"a\":{\"sensitive\":true}}"},
        {"{\"a\":{\"value\":null,\"type\":\"string\"}}",
         "{\"a\":{\"sensitive\":false,\"type\":\"string\",\"value\":null}}"},
    };
    WORLD w = open_world(*state);
    const struct df_state_writer by = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_FREE char *text = df_strf("{\"version\":4,\"serial\":%zu,\"lineage\":\"L\","
                                     "\"outputs\":%s}",
                                     i, cases[i].outputs);
        assert_int_equal(put_text(&w, text, &by, &err), 0);
        DF_JSON cJSON *outputs = NULL;
        if (df_state_outputs(w.states, UID, 0, false, &outputs, &err) < 0)
            fail_msg("%s: %s", cases[i].outputs, err.message);
        DF_FREE char *got = df_json_print(outputs);
        assert_string_equal(got, cases[i].want);
    }
}

static void outputs_beyond_their_cap_are_a_limit(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    DF_FREE char *big = malloc(DF_LIMIT_OUTPUTS + 1);
    assert_non_null(big);
    memset(big, 'x', DF_LIMIT_OUTPUTS);
    big[DF_LIMIT_OUTPUTS] = '\0';
    DF_FREE char *text = df_strf("{" HEAD ",\"outputs\":{\"a\":{\"value\":\"%s\"}}}", big);
    const struct df_state_writer by = {0};
    assert_int_equal(put_text(&w, text, &by, &err), 0);
    cJSON *outputs = NULL;
    assert_failed(df_state_outputs(w.states, UID, 0, false, &outputs, &err), &err, DF_ERR_LIMIT,
                  "");
}

/* ---- errored states ------------------------------------------------------------------------- */

static void keep_errored(const struct world *w, const char *step, const char *text)
{
    struct df_err err = {0};
    DF_FREE char *path = upload(w, text, strlen(text));
    if (df_state_keep_errored(w->states, UID, step, path, &err) < 0)
        fail_msg("%s", err.message);
    assert_false(df_fs_exists(path));
}

static void an_errored_state_is_kept_listed_and_pushed(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_put(&w, 1);
    DF_FREE char *text = state_text(2, "L", ",\"resources\":[]");
    keep_errored(&w, STEP, text);
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_state_errored(w.states, UID, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 1);
    const cJSON *entry = cJSON_GetArrayItem(list, 0);
    assert_string_equal(df_json_str(entry, "step"), STEP);
    assert_int_equal(df_json_int(entry, "serial", 0), 2);
    assert_string_equal(df_json_str(entry, "lineage"), "L");
    assert_int_equal(df_json_int(entry, "size", 0), strlen(text));
    assert_non_null(df_json_str(entry, "at"));
    assert_current(&w, 1);

    must_lock(&w, "A", NULL);
    assert_failed(df_state_push_errored(w.states, UID, STEP, "me", &err), &err, DF_ERR_CONFLICT,
                  "StateLocked");
    assert_int_equal(df_state_force_unlock(w.states, UID, &err), 0);
    assert_int_equal(df_state_push_errored(w.states, UID, STEP, "me", &err), 0);
    assert_current(&w, 2);
    DF_JSON cJSON *after = NULL;
    assert_int_equal(df_state_errored(w.states, UID, &after, &err), 0);
    assert_int_equal(cJSON_GetArraySize(after), 0);
    DF_JSON cJSON *versions = versions_of(&w);
    assert_string_equal(df_json_str(cJSON_GetArrayItem(versions, 0), "step"), STEP);
    assert_failed(df_state_push_errored(w.states, UID, STEP, "me", &err), &err, DF_ERR_NOT_FOUND,
                  "");
}

static void an_errored_state_that_is_refused_is_kept(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    must_put(&w, 5);
    DF_FREE char *old = state_text(4, "L", "");
    keep_errored(&w, STEP, old);
    keep_errored(&w, "torn", "{\"version\":4,");
    keep_errored(&w, "empty", "");
    assert_failed(df_state_push_errored(w.states, UID, STEP, "me", &err), &err, DF_ERR_CONFLICT,
                  "StaleSerial");
    assert_failed(df_state_push_errored(w.states, UID, "torn", "me", &err), &err, DF_ERR_USER,
                  "StateRefused");
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_state_errored(w.states, UID, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 3);
    const cJSON *torn = cJSON_GetArrayItem(list, 2);
    assert_string_equal(df_json_str(torn, "step"), "torn");
    assert_non_null(df_json_str(torn, "problem"));
    assert_null(df_json_at(torn, "serial"));
    assert_int_equal(count_versions(&w), 1);
    DF_FREE char *newer = state_text(6, "L", "");
    keep_errored(&w, STEP, newer);
    assert_int_equal(df_state_push_errored(w.states, UID, STEP, "me", &err), 0);
    assert_current(&w, 6);
}

/* The serial of another state says nothing. */
static void an_errored_state_of_another_lineage_is_refused_and_kept(void **state)
{
    static const struct {
        const char *lineage;
        int serial;
    } rows[] = {{"M", 6}, {"M", 5}, {"M", 4}, {"", 6}};
    WORLD w = open_world(*state);
    must_put(&w, 5);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *list = NULL;
        DF_FREE char *text = state_text(rows[i].serial, rows[i].lineage, "");
        keep_errored(&w, STEP, text);
        assert_failed(df_state_push_errored(w.states, UID, STEP, "me", &err), &err, DF_ERR_CONFLICT,
                      "ForeignLineage");
        assert_int_equal(df_state_errored(w.states, UID, &list, &err), 0);
        assert_int_equal(cJSON_GetArraySize(list), 1);
        assert_current(&w, 5);
    }
}

/* ---- damage and death ----------------------------------------------------------------------- */

static void damage_to_the_current_version_stops_everything_loudly(void **state)
{
    static const char *const damages[] = {
        "",
        "{",
        "{\n",
        "{}\n",
        "{\"serial\":2,\"size\":1,\"storedSize\":1,\"lineage\":\"L\",\"sha256\":\"\"}\n",
        "{\"serial\":\"2\",\"size\":1,\"storedSize\":1,\"lineage\":\"L\",\"sha256\":\"\"}\nx",
    };
    WORLD w = open_world(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(damages); i++) {
        struct df_err err = {0};
        assert_int_equal(df_state_purge(w.states, UID, &err), 0);
        must_put(&w, 1);
        must_put(&w, 2);
        overwrite(&w, "00000002.state", damages[i]);
        DF_BUF struct df_buf got = DF_BUF_INIT(1000);
        assert_failed(get_current(&w, UID, &got, &err), &err, DF_ERR_SYSTEM, "StateUnreadable");
        assert_failed(put(&w, 3, "L", "", NULL, &err), &err, DF_ERR_SYSTEM, "StateUnreadable");
        assert_failed(df_state_rollback(w.states, UID, 1, "me", &err), &err, DF_ERR_SYSTEM,
                      "StateUnreadable");
        assert_int_equal(count_versions(&w), 2);
        /* The way out that the message names. */
        DF_FREE char *path = blob_path(&w, "00000002.state");
        assert_int_equal(unlink(path), 0);
        assert_current(&w, 1);
        must_put(&w, 2);
    }
}

static void a_damaged_old_version_does_not_hide_the_others(void **state)
{
    WORLD w = open_world(*state);
    must_put(&w, 1);
    must_put(&w, 2);
    must_put(&w, 3);
    overwrite(&w, "00000002.state", "{");
    assert_current(&w, 3);
    DF_JSON cJSON *list = versions_of(&w);
    assert_int_equal(cJSON_GetArraySize(list), 3);
    assert_true(df_json_bool(cJSON_GetArrayItem(list, 1), "damaged", false));
    must_put(&w, 4);
}

static void files_of_others_beside_the_state_are_no_versions(void **state)
{
    WORLD w = open_world(*state);
    must_put(&w, 1);
    static const char *const names[] = {"x.state",   "99999999.state.bak",         "-5.state",
                                        "1e9.state", "99999999999999999999.state", "00000000.state",
                                        "x.json",    "99999999.json.bak"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        overwrite(&w, names[i], "{}");
    assert_current(&w, 1);
    assert_int_equal(count_versions(&w), 1);
}

static int push(const struct world *w, const char *text, bool replace, struct df_err *err)
{
    DF_FREE char *path = upload(w, text, strlen(text));
    int result = df_state_push(w->states, UID, path, replace, "me", err);
    if (result == 0)
        assert_false(df_fs_exists(path));
    (void)unlink(path);
    return result;
}

static void a_push_follows_nothing_or_an_empty_state_and_replaces_only_when_told(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    DF_FREE char *empty = state_text(7, "A", ",\"resources\":[]");
    DF_FREE char *full = state_text(3, "B", ",\"resources\":[{}]");
    DF_FREE char *other = state_text(1, "C", ",\"resources\":[{}]");
    assert_int_equal(push(&w, empty, false, &err), 0);
    assert_int_equal(push(&w, full, false, &err), 0);
    assert_int_equal(push(&w, full, false, &err), 0); /* the same again */
    assert_int_equal(count_versions(&w), 2);
    assert_failed(push(&w, other, false, &err), &err, DF_ERR_CONFLICT, "StateExists");
    assert_current(&w, 3);
    assert_int_equal(push(&w, other, true, &err), 0);
    assert_int_equal(count_versions(&w), 3);
    assert_current(&w, 1);
}

static void a_push_is_refused_while_the_state_is_locked(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    DF_FREE char *text = state_text(1, "L", "");
    must_lock(&w, "id", STEP);
    assert_failed(push(&w, text, true, &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_no_state(&w);
}

static void a_push_of_what_cannot_be_taken_over_is_refused(void **state)
{
    static const char *const texts[] = {"hello", "{\"version\":5,\"serial\":1,\"lineage\":\"L\"}",
                                        "{\"version\":3,\"serial\":1,\"lineage\":\"L\"}"};
    WORLD w = open_world(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_err err = {0};
        assert_failed(push(&w, texts[i], true, &err), &err, DF_ERR_USER, "StateRefused");
    }
    assert_no_state(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(at_first_there_is_no_state),
        scratch_test(every_version_is_kept_with_its_story),
        scratch_test(versions_that_do_not_exist_are_not_found),
        scratch_test(what_may_follow_a_state_is_decided_by_lineage_and_serial),
        scratch_test(the_same_state_again_is_success_without_a_new_version),
        scratch_test(one_version_is_told_without_the_others),
        scratch_test(a_state_damaged_on_its_way_is_refused),
        scratch_test(uids_that_could_lead_astray_are_refused),
        scratch_test(a_rollback_is_a_new_version_with_the_old_content),
        scratch_test(a_rollback_that_makes_no_sense_is_refused),
        scratch_test(a_deleted_state_is_gone_but_its_history_stays),
        scratch_test(deleting_nothing_makes_no_version),
        scratch_test(a_purge_takes_everything_of_one_executor),
        scratch_test(outputs_are_printed_as_tofu_prints_them),
        scratch_test(odd_outputs_are_no_trouble),
        scratch_test(outputs_beyond_their_cap_are_a_limit),
        scratch_test(a_push_follows_nothing_or_an_empty_state_and_replaces_only_when_told),
        scratch_test(a_push_is_refused_while_the_state_is_locked),
        scratch_test(a_push_of_what_cannot_be_taken_over_is_refused),
        scratch_test(an_errored_state_is_kept_listed_and_pushed),
        scratch_test(an_errored_state_that_is_refused_is_kept),
        scratch_test(an_errored_state_of_another_lineage_is_refused_and_kept),
        scratch_test(damage_to_the_current_version_stops_everything_loudly),
        scratch_test(a_damaged_old_version_does_not_hide_the_others),
        scratch_test(files_of_others_beside_the_state_are_no_versions),
    };
    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
