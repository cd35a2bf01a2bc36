/* Versions from before a version was one blob: a meta and a document each, sealed or still
 * clear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "tests/unit/state_words.h"

static void make_directory(const struct world *w)
{
    DF_FREE char *directory = df_strf("%s/data/state/" UID, w->dir);
    assert_int_equal(df_fs_mkdirs(directory, 0700, NULL), 0);
}

static int memory_with(const void *bytes, size_t n)
{
    int fd = memfd_create("pair", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(df_fs_write_all(fd, bytes, n, NULL), 0);
    return fd;
}

/* Returns the size of the document's file. */
static size_t store_document(const struct world *w, const char *name, const char *text)
{
    char packed[4096];
    unsigned char key[DF_KEY_LEN];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(1 * DF_MIB);
    DF_FREE char *path = blob_path(w, name), *bound_to = df_strf("state/" UID "/%s", name);
    size_t n = ZSTD_compress(packed, sizeof(packed), text, strlen(text), 3);
    assert_false(ZSTD_isError(n));
    DF_CLOSE int clear = memory_with(packed, n), file = memory_with("", 0);
    assert_int_equal(df_vault_key(w->vault, "state", key, NULL), 0);
    assert_int_equal(df_seal_file(key, bound_to, clear, file, NULL), 0);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    assert_int_equal(df_fs_read_fd(file, &sealed, NULL), 0);
    assert_int_equal(df_fs_replace(path, sealed.data, sealed.len, 0600, NULL), 0);
    return sealed.len;
}

static void store_pair(const struct world *w, int number, const char *text)
{
    char sha256[DF_SHA256_HEX], key_id[DF_VAULT_KEY_ID];
    make_directory(w);
    DF_FREE char *document = df_strf("%08d.tfstate", number), *meta = df_strf("%08d.json", number);
    size_t stored = store_document(w, document, text);
    assert_int_equal(df_sha256_hex(text, strlen(text), sha256, NULL), 0);
    assert_int_equal(df_vault_key_id(w->vault, key_id, NULL), 0);
    DF_FREE char *content =
        df_strf("{\"version\":%d,\"serial\":%d,\"lineage\":\"L\",\"size\":%zu,\"sha256\":\"%s\","
                "\"storedSize\":%zu,\"keyId\":\"%s\",\"createdAt\":\"2026-01-01T00:00:00Z\"}",
                number, number, strlen(text), sha256, stored, key_id);
    overwrite(w, meta, content);
}

static void store_pairs(const struct world *w, int n)
{
    for (int i = 1; i <= n; i++) {
        DF_FREE char *text = state_text(i, "L", "");
        store_pair(w, i, text);
    }
}

static void remove_blob(const struct world *w, const char *name)
{
    DF_FREE char *path = blob_path(w, name);
    assert_int_equal(unlink(path), 0);
}

static void pairs_are_read_and_followed_by_versions_in_one_blob(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    store_pairs(&w, 2);
    assert_current(&w, 2);
    must_put(&w, 3);
    assert_current(&w, 3);
    assert_failed(put(&w, 2, "L", "", NULL, &err), &err, DF_ERR_CONFLICT, "StaleSerial");
    DF_JSON cJSON *list = versions_of(&w);
    assert_int_equal(cJSON_GetArraySize(list), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(df_json_int(cJSON_GetArrayItem(list, i), "version", 0), 3 - i);
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    DF_FREE char *first = state_text(1, "L", "");
    read_version(&w, 1, &got);
    assert_string_equal(df_buf_str(&got), first);
    assert_int_equal(df_state_rollback(w.states, UID, 1, "me", &err), 0);
    assert_current(&w, 4);
}

static void the_same_state_as_in_a_pair_makes_no_version(void **state)
{
    WORLD w = open_world(*state);
    store_pairs(&w, 1);
    must_put(&w, 1);
    assert_int_equal(count_versions(&w), 1);
}

static void both_files_of_a_pair_are_removed_with_it(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    int64_t count = 0;
    store_pairs(&w, 2);
    must_put(&w, 3);
    const struct df_state_keep keep = {1, 0};
    assert_int_equal(df_state_prune(w.states, UID, &keep, false, &count, &err), 0);
    assert_int_equal(count, 2);
    DF_STRS struct df_strs keys = {0};
    assert_int_equal(df_blob_list(w.blobs, "state/" UID, &keys, &err), 0);
    assert_int_equal(keys.len, 1);
    assert_string_equal(keys.items[0], "state/" UID "/00000003.state");
}

static void a_document_without_its_meta_was_never_stored(void **state)
{
    WORLD w = open_world(*state);
    store_pairs(&w, 2);
    remove_blob(&w, "00000002.json");
    assert_current(&w, 1);
    assert_int_equal(count_versions(&w), 1);
    must_put(&w, 2);
    assert_current(&w, 2);
}

static void damage_to_a_pair_that_is_current_stops_everything_loudly(void **state)
{
    static const struct {
        const char *name, *content; /* NULL: removed */
    } damages[] = {
        {"00000002.tfstate", NULL},
        {"00000002.tfstate", ""},
        {"00000002.tfstate", "{}"},
        {"00000002.json", ""},
        {"00000002.json", "{"},
        {"00000002.json", "{}"},
        {"00000002.json", "{\"serial\":\"2\",\"size\":1,\"lineage\":\"L\",\"sha256\":\"\"}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(damages); i++) {
        struct df_err err = {0};
        WORLD w = open_world(*state); /* a service that did not see them being made */
        store_pairs(&w, 2);
        if (damages[i].content)
            overwrite(&w, damages[i].name, damages[i].content);
        else
            remove_blob(&w, damages[i].name);
        DF_BUF struct df_buf got = DF_BUF_INIT(1000);
        assert_failed(get_current(&w, UID, &got, &err), &err, DF_ERR_SYSTEM, "StateUnreadable");
        assert_failed(put(&w, 3, "L", "", NULL, &err), &err, DF_ERR_SYSTEM, "StateUnreadable");
        assert_int_equal(count_versions(&w), 2);
        remove_blob(&w, "00000002.json");
        assert_current(&w, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(pairs_are_read_and_followed_by_versions_in_one_blob),
        scratch_test(the_same_state_as_in_a_pair_makes_no_version),
        scratch_test(both_files_of_a_pair_are_removed_with_it),
        scratch_test(a_document_without_its_meta_was_never_stored),
        scratch_test(damage_to_a_pair_that_is_current_stops_everything_loudly),
    };
    return cmocka_run_group_tests_name("state_pairs", tests, NULL, NULL);
}
