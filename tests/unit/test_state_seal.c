/* How states lie at rest: sealed, each under its own name, and compared when they are opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "tests/unit/state_words.h"

#define SECRET "hunter2-of-the-database"
#define OTHER_UID "6f1c3a52-0000-4000-8000-000000000002"
#define STEP_B "6f1c3a52-0000-4000-8000-00000000000b"

static const struct df_state_writer nobody = {0};

static void read_blob(const struct world *w, const char *name, struct df_buf *out)
{
    struct df_err err = {0};
    DF_FREE char *path = blob_path(w, name);
    if (df_fs_read(path, out, &err) < 0)
        fail_msg("%s", err.message);
}

static void write_blob(const struct world *w, const char *name, const struct df_buf *bytes)
{
    struct df_err err = {0};
    DF_FREE char *path = blob_path(w, name);
    if (df_fs_replace(path, bytes->data, bytes->len, 0600, &err) < 0)
        fail_msg("%s", err.message);
}

/* The meta of a version, with the end of its line. */
static size_t line_length(const struct df_buf *raw)
{
    const char *end = memchr(raw->data, '\n', raw->len);
    assert_non_null(end);
    return (size_t)(end - raw->data) + 1;
}

static void copy_blob(const struct world *w, const char *from, const char *to)
{
    DF_BUF struct df_buf bytes = DF_BUF_INIT(1 * DF_MIB);
    read_blob(w, from, &bytes);
    write_blob(w, to, &bytes);
}

static void put_secret(const struct world *w, int serial)
{
    struct df_err err = {0};
    if (put(w, serial, "L", ",\"x\":\"" SECRET "\"", NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static void keep_errored(const struct world *w, const char *step, const char *text)
{
    struct df_err err = {0};
    DF_FREE char *path = upload(w, text, strlen(text));
    if (df_state_keep_errored(w->states, UID, step, path, &err) < 0)
        fail_msg("%s", err.message);
}

static int open_at(const struct world *w, const char *uid, int64_t version, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    return df_state_open(w->states, uid, version, &fd, &size, err);
}

static void assert_unreadable(const struct world *w, int64_t version, const char *why)
{
    struct df_err err = {0};
    DF_FREE char *of =
        df_strf("version %lld of the state of the executor with the uid " UID, (long long)version);
    assert_failed(open_at(w, UID, version, &err), &err, DF_ERR_SYSTEM, "StateUnreadable");
    if (!strstr(err.message, of) || !strstr(err.message, why) ||
        !strstr(err.message, "dayfly state push NAME FILE --replace"))
        fail_msg("%s", err.message);
}

static void nothing_of_a_state_can_be_read_in_its_files(void **state)
{
    WORLD w = open_world(*state);
    put_secret(&w, 1);
    DF_FREE char *errored = state_text(2, "L", ",\"x\":\"" SECRET "\"");
    keep_errored(&w, STEP, errored);
    static const char *const names[] = {"00000001.state", "errored-" STEP ".tfstate"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        DF_BUF struct df_buf raw = DF_BUF_INIT(1 * DF_MIB);
        read_blob(&w, names[i], &raw);
        assert_null(memmem(raw.data, raw.len, SECRET, strlen(SECRET)));
        assert_null(memmem(raw.data, raw.len, "hunter2", strlen("hunter2")));
    }
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    read_version(&w, 1, &got);
    assert_non_null(strstr(df_buf_str(&got), SECRET));
    assert_int_equal(df_state_push_errored(w.states, UID, STEP, "me", NULL), 0);
    assert_current(&w, 2);
}

/* As it was stored before states were sealed. */
static void store_clear(const struct world *w, const char *text)
{
    char sha256[DF_SHA256_HEX];
    struct df_err err = {0};
    DF_FREE char *file = blob_path(w, "00000001.tfstate");
    *strrchr(file, '/') = '\0';
    assert_int_equal(df_fs_mkdirs(file, 0700, &err), 0);
    assert_int_equal(df_sha256_hex(text, strlen(text), sha256, &err), 0);
    DF_FREE char *meta = df_strf("{\"version\":1,\"serial\":1,\"lineage\":\"L\",\"size\":%zu,"
                                 "\"sha256\":\"%s\",\"createdAt\":\"2026-01-01T00:00:00Z\"}",
                                 strlen(text), sha256);
    overwrite(w, "00000001.tfstate", text);
    overwrite(w, "00000001.json", meta);
}

static void a_version_from_before_the_seals_is_read_and_followed_by_sealed_ones(void **state)
{
    WORLD w = open_world(*state);
    DF_FREE char *text = state_text(1, "L", ",\"x\":\"" SECRET "\"");
    store_clear(&w, text);
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    read_version(&w, 0, &got);
    assert_string_equal(df_buf_str(&got), text);
    must_put(&w, 2);
    assert_int_equal(df_state_rollback(w.states, UID, 1, "me", NULL), 0);
    assert_current(&w, 3);
    DF_BUF struct df_buf raw = DF_BUF_INIT(1 * DF_MIB);
    read_blob(&w, "00000003.state", &raw);
    assert_null(memmem(raw.data, raw.len, SECRET, strlen(SECRET)));
    DF_JSON cJSON *list = versions_of(&w);
    assert_int_equal(df_json_int(list->child, "storedSize", 0), raw.len - line_length(&raw));
    assert_int_equal(strlen(df_json_str(list->child, "keyId")), DF_VAULT_KEY_ID - 1);
    assert_null(df_json_at(cJSON_GetArrayItem(list, 2), "keyId"));
}

static void an_errored_state_from_before_the_seals_is_pushed(void **state)
{
    WORLD w = open_world(*state);
    must_put(&w, 1);
    DF_FREE char *text = state_text(2, "L", "");
    overwrite(&w, "errored-" STEP ".tfstate", text);
    assert_int_equal(df_state_push_errored(w.states, UID, STEP, "me", NULL), 0);
    assert_current(&w, 2);
}

static void a_clear_version_with_another_content_of_the_same_size_is_refused(void **state)
{
    WORLD w = open_world(*state);
    DF_FREE char *text = state_text(1, "L", ",\"x\":\"" SECRET "\"");
    store_clear(&w, text);
    strstr(text, SECRET)[0] = 'H';
    overwrite(&w, "00000001.tfstate", text);
    assert_unreadable(&w, 1, "its SHA-256 is ");
}

static void the_file_of_another_version_or_executor_is_refused(void **state)
{
    WORLD w = open_world(*state);
    put_secret(&w, 1);
    put_secret(&w, 2);
    put_secret(&w, 3);
    copy_blob(&w, "00000002.state", "00000001.state");
    assert_unreadable(&w, 1, "is that of another state or version");
    struct df_err err = {0};
    DF_FREE char *text = state_text(2, "L", ",\"x\":\"" SECRET "\"");
    DF_FREE char *path = upload(&w, text, strlen(text));
    assert_int_equal(df_state_put(w.states, OTHER_UID, path, NULL, &nobody, &err), 0);
    copy_blob(&w, "../" OTHER_UID "/00000001.state", "00000002.state");
    assert_unreadable(&w, 2, "is that of another state or version");
    assert_failed(df_state_rollback(w.states, UID, 2, "me", &err), &err, DF_ERR_SYSTEM,
                  "StateUnreadable");
    assert_current(&w, 3);
}

static void a_file_in_which_any_byte_was_changed_is_refused(void **state)
{
    WORLD w = open_world(*state);
    put_secret(&w, 1);
    put_secret(&w, 2);
    DF_BUF struct df_buf raw = DF_BUF_INIT(1 * DF_MIB);
    read_blob(&w, "00000001.state", &raw);
    for (size_t i = line_length(&raw); i < raw.len; i++) {
        struct df_err err = {0};
        raw.data[i] ^= 1;
        write_blob(&w, "00000001.state", &raw);
        assert_failed(open_at(&w, UID, 1, &err), &err, DF_ERR_SYSTEM, "StateUnreadable");
        raw.data[i] ^= 1;
    }
    write_blob(&w, "00000001.state", &raw);
    assert_int_equal(open_at(&w, UID, 1, NULL), 0);
}

static void under_another_key_both_are_named_and_a_copy_can_be_pushed(void **state)
{
    WORLD w = open_world(*state);
    char old[DF_VAULT_KEY_ID], now[DF_VAULT_KEY_ID];
    struct df_err err = {0};
    put_secret(&w, 1);
    assert_int_equal(df_vault_key_id(w.vault, old, NULL), 0);
    cleanup_world(&w);
    w = (struct world){.dir = *state};
    DF_FREE char *database = df_fs_join(*state, "other.db"), *key = df_fs_join(*state, "other.key");
    assert_int_equal(df_blob_open(*state, &w.blobs, NULL), 0);
    assert_int_equal(df_vault_open(database, key, &w.vault, NULL), 0);
    assert_int_equal(df_states_open(w.blobs, w.vault, &w.states, NULL), 0);
    assert_int_equal(df_vault_key_id(w.vault, now, NULL), 0);
    DF_FREE char *why =
        df_strf("it is sealed under the key %s, and the key of the vault is %s now", old, now);
    assert_unreadable(&w, 1, why);
    assert_failed(open_at(&w, UID, 0, &err), &err, DF_ERR_SYSTEM, "StateUnreadable");
    DF_FREE char *text = state_text(7, "L", "");
    DF_FREE char *path = upload(&w, text, strlen(text));
    assert_failed(df_state_push(w.states, UID, path, false, "me", &err), &err, DF_ERR_SYSTEM,
                  "StateUnreadable");
    assert_int_equal(df_state_push(w.states, UID, path, true, "me", &err), 0);
    assert_current(&w, 7);
}

static void an_errored_state_of_another_step_is_refused_and_listed_with_the_cause(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    DF_FREE char *text = state_text(1, "L", "");
    keep_errored(&w, STEP, text);
    copy_blob(&w, "errored-" STEP ".tfstate", "errored-" STEP_B ".tfstate");
    assert_failed(df_state_push_errored(w.states, UID, STEP_B, "me", &err), &err, DF_ERR_SYSTEM,
                  "StateUnreadable");
    assert_non_null(strstr(err.message, "state/" UID "/errored-" STEP_B ".tfstate"));
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_state_errored(w.states, UID, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 2);
    assert_null(df_json_str(cJSON_GetArrayItem(list, 0), "problem"));
    assert_non_null(strstr(df_json_str(cJSON_GetArrayItem(list, 1), "problem"), "cannot be read"));
}

static void a_state_beyond_the_memory_limit_is_stored_small_and_read_whole(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    size_t n = 2 * DF_LIMIT_STATE_IN_MEMORY;
    DF_FREE char *filler = malloc(n + 1);
    assert_non_null(filler);
    memset(filler, 'x', n);
    filler[n] = '\0';
    DF_FREE char *more = df_strf(",\"x\":\"%s\"", filler);
    DF_FREE char *text = state_text(1, "L", more);
    assert_int_equal(put_text(&w, text, &nobody, &err), 0);
    DF_BUF struct df_buf got = DF_BUF_INIT(DF_GIB);
    read_version(&w, 1, &got);
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.data, text, got.len);
    DF_FREE char *path = blob_path(&w, "00000001.state");
    struct stat blob, opened;
    assert_int_equal(stat(path, &blob), 0);
    assert_true(blob.st_size < (off_t)(n / 100));
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    assert_int_equal(df_state_open(w.states, UID, 1, &fd, &size, &err), 0);
    assert_int_equal(fstat(fd, &opened), 0);
    assert_int_equal(opened.st_dev, blob.st_dev); /* in a file, not in memory */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(nothing_of_a_state_can_be_read_in_its_files),
        scratch_test(a_version_from_before_the_seals_is_read_and_followed_by_sealed_ones),
        scratch_test(an_errored_state_from_before_the_seals_is_pushed),
        scratch_test(a_clear_version_with_another_content_of_the_same_size_is_refused),
        scratch_test(the_file_of_another_version_or_executor_is_refused),
        scratch_test(a_file_in_which_any_byte_was_changed_is_refused),
        scratch_test(under_another_key_both_are_named_and_a_copy_can_be_pushed),
        scratch_test(an_errored_state_of_another_step_is_refused_and_listed_with_the_cause),
        scratch_test(a_state_beyond_the_memory_limit_is_stored_small_and_read_whole),
    };
    return cmocka_run_group_tests_name("state_seal", tests, NULL, NULL);
}
