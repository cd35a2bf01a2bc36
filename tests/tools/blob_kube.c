/*
 * blob_kube - what every backend of blobs must do (tests/unit/blob_suite.h), what every object
 * store must (chunked_suite.h), and what only Kubernetes can show. How it is run: cluster_words.h,
 * test_kube_backends.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define blob_test(f) cmocka_unit_test_setup_teardown(f, enter, leave)
#define blob_kill_test(f) cmocka_unit_test_setup_teardown(f, enter, leave_orphans)
#include "tests/unit/chunked_suite.h"

#include "common/crypto/crypto.h"
#include "tests/unit/cluster_words.h"

#define LABEL "dayfly.dev/blob"

static struct df_blob *open_in(const char *state, const char *directory)
{
    (void)state;
    struct df_err err = {0};
    struct df_blob *b = NULL;
    const struct df_blob_kube_options o = {client(), name_space, directory};
    if (df_blob_kube_open(&o, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static struct df_blob *suite_open(const char *dir)
{
    return open_in(dir, dir);
}

/* The names of all heads (Secrets) or chunks (ConfigMaps). */
static void list_heads(struct df_strs *ret)
{
    list_names(&df_kube_secrets, LABEL "=head", ret);
}

static void list_chunks(const char *state, struct df_strs *ret)
{
    (void)state;
    list_names(&df_kube_config_maps, LABEL "=chunk", ret);
}

static void delete_chunk(const char *state, const char *name)
{
    (void)state;
    delete_object(&df_kube_config_maps, name);
}

static void copy_chunk(const char *state, const char *from, const char *to)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *chunk = NULL;
    struct df_kube_at at = object_at(&df_kube_config_maps, from);
    struct df_kube_at all = object_at(&df_kube_config_maps, NULL);
    assert_int_equal(df_kube_get(client(), &at, &chunk, &err), 0);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(chunk, "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "uid");
    assert_int_equal(df_json_set_str(metadata, "name", to, &err), 0);
    if (df_kube_create(client(), &all, chunk, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static size_t delete_all_objects(void)
{
    return delete_objects(&df_kube_secrets, LABEL) + delete_objects(&df_kube_config_maps, LABEL);
}

/* ---- before and after each test ------------------------------------------------------------- */

static int enter(void **state)
{
    return enter_scratch(state);
}

static int leave_orphans(void **state)
{
    (void)delete_all_objects();
    return leave_scratch(state);
}

/* Nothing but heads and the chunks they name is there: without the blobs nothing is left. */
static int leave(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs keys = {0};
    DF_BLOB struct df_blob *b = suite_open(*state);
    int result = df_blob_list(b, "", &keys, &err);
    for (size_t i = 0; result == 0 && i < keys.len; i++)
        result = df_blob_delete(b, keys.items[i], &err);
    size_t left = delete_all_objects();
    if (result < 0 || left)
        print_error("%zu objects are left: %s\n", left, err.message);
    return leave_scratch(state) < 0 || result < 0 || left ? -1 : 0;
}

/* ---- what only Kubernetes shows ------------------------------------------------------------- */

/* What a state holds is seen by those alone who may see Secrets. */
static void chunks_show_nothing_of_their_content(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs names = {0};
    DF_JSON cJSON *chunk = NULL;
    DF_BUF struct df_buf bytes = DF_BUF_INIT(MIB);
    BLOBS *b = suite_open(*state);
    DF_FREE char *text = malloc(MIB / 4);
    assert_non_null(text);
    for (size_t i = 0; i + 8 <= MIB / 4; i += 8)
        memcpy(text + i, "hunter2,", 8);
    assert_int_equal(df_blob_put(b, "state/x/1", text, MIB / 4, &err), 0);
    list_chunks(*state, &names);
    assert_int_equal(names.len, 1);
    struct df_kube_at at = object_at(&df_kube_config_maps, names.items[0]);
    assert_int_equal(df_kube_get(client(), &at, &chunk, &err), 0);
    const char *content = df_json_str(chunk, "binaryData.content");
    assert_int_equal(df_base64_decode(content, strlen(content), false, &bytes, &err), 0);
    assert_true(bytes.len > 28);
    assert_null(memmem(bytes.data, bytes.len, "hunter2", 7));
    /* Nor is it but compressed. */
    static const unsigned char zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    assert_null(memmem(bytes.data, bytes.len, zstd, sizeof(zstd)));
}

static void a_chunk_with_another_ones_content_is_damaged(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs names = {0};
    BLOBS *b = suite_open(*state);
    put_noise(b, "state/x/1", MIB, 1);
    list_chunks(*state, &names);
    delete_chunk(*state, names.items[1]);
    copy_chunk(*state, names.items[0], names.items[1]);
    DF_BUF struct df_buf got = DF_BUF_INIT(MIB);
    assert_int_equal(df_blob_get(b, "state/x/1", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, names.items[1]));
}

static void a_head_that_somebody_changed_is_damaged(void **state)
{
    static const char *const changes[] = {
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/size\":\"99\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/size\":\"-1\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/size\":null}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/key\":\"other\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/chunk-size\":\"0\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/chunks\":\"abc\"}}}",
        "{\"data\":{\"content\":\"eHh4eA==\"}}",
        "{\"data\":{\"content\":null}}",
        "{\"data\":{\"key\":null}}",
        "{\"data\":{\"key\":\"eHh4eA==\"}}",
        "{\"data\":null}",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(changes); i++) {
        struct df_err err = {0};
        DF_STRS struct df_strs names = {0};
        DF_JSON cJSON *change = NULL;
        BLOBS *b = suite_open(*state);
        put(b, "x", "hunter2");
        list_heads(&names);
        struct df_kube_at at = object_at(&df_kube_secrets, names.items[0]);
        assert_int_equal(df_json_parse(changes[i], strlen(changes[i]), &change, &err), 0);
        const struct df_kube_patch patch = {.type = DF_KUBE_PATCH_MERGE, .body = change};
        if (df_kube_patch(client(), &at, &patch, NULL, &err) < 0)
            fail_msg("%s", err.message);
        DF_BUF struct df_buf got = DF_BUF_INIT(100);
        assert_int_equal(df_blob_get(b, "x", &got, &err), -1);
        assert_int_equal(err.cls, DF_ERR_SYSTEM);
        assert_non_null(strstr(err.message, names.items[0]));
        delete_object(&df_kube_secrets, names.items[0]);
    }
}

/* Who moves into a cluster with the data directory of before must not lose what is in it. */
static void blobs_that_lie_in_the_directory_are_left_alone(void **state)
{
    struct df_err err = {0};
    struct df_blob *before = NULL;
    assert_int_equal(df_blob_open(*state, &before, &err), 0);
    put(before, "state/x/1", "kept");
    df_blob_close(before);
    BLOBS *b = suite_open(*state);
    put(b, "state/x/2", "in the cluster");
    assert_keys(b, "", "state/x/2");
    assert_int_equal(df_blob_open(*state, &before, &err), 0);
    assert_content(before, "state/x/1", "kept");
    assert_keys(before, "", "state/x/1");
    df_blob_close(before);
}

static void a_namespace_that_is_not_there_is_named(void **state)
{
    struct df_err err = {0};
    const struct df_blob_kube_options o = {client(), "no-such-namespace", *state};
    BLOBS *b = NULL;
    assert_int_equal(df_blob_kube_open(&o, &b, &err), 0);
    assert_int_equal(df_blob_put(b, "x", "hunter2", 7, &err), -1);
    assert_non_null(strstr(err.message, "no-such-namespace"));
    assert_null(strstr(err.message, "hunter2"));
}

int main(void)
{
    if (!find_cluster())
        return 2;
    const struct CMUnitTest tests[] = {
        BLOB_SUITE,
        BLOB_KILL_SUITE,
        CHUNKED_SUITE,
        blob_test(chunks_show_nothing_of_their_content),
        blob_test(a_chunk_with_another_ones_content_is_damaged),
        blob_test(a_head_that_somebody_changed_is_damaged),
        blob_test(blobs_that_lie_in_the_directory_are_left_alone),
        blob_test(a_namespace_that_is_not_there_is_named),
    };
    int result = cmocka_run_group_tests_name("blob in Kubernetes", tests, NULL, NULL);
    df_kube_free(client());
    return result;
}
