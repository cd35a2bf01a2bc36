#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/json/packed.h"

static struct df_packer *packer(void)
{
    struct df_packer *p = NULL;
    assert_int_equal(df_packer_new(&p, NULL), 0);
    return p;
}

/* A document like the others but in its number. */
static cJSON *document(int i)
{
    DF_FREE char *text = df_strf(
        "{\"metadata\":{\"name\":\"net-%d-plan\",\"namespace\":\"build\",\"labels\":{\"app\":"
        "\"dayfly\",\"executor\":\"net\",\"run\":\"net-%d\"}},\"spec\":{\"action\":\"plan\","
        "\"timeoutSeconds\":3600},\"status\":{\"phase\":\"Running\",\"attempts\":1}}",
        i, i);
    cJSON *tree = NULL;
    assert_int_equal(df_json_parse(text, strlen(text), &tree, NULL), 0);
    return tree;
}

/* A document like no other: text of letters that follow no rule. */
static cJSON *noise(uint32_t seed, size_t n)
{
    DF_FREE char *text = calloc(1, n + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        text[i] = (char)('!' + (seed >> 16) % 90);
    }
    cJSON *tree = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(tree, "text", text, NULL), 0);
    return tree;
}

static uint32_t pack(struct df_packer *p, cJSON *tree, struct df_packed *ret)
{
    assert_int_equal(df_pack(p, tree, ret, NULL), 0);
    cJSON_Delete(tree);
    return ret->len;
}

static void assert_unpacks(struct df_packer *p, const struct df_packed *packed, cJSON *want)
{
    DF_JSON cJSON *tree = NULL;
    struct df_err err = {0};
    if (df_unpack(p, packed, &tree, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(df_json_equal(tree, want));
    cJSON_Delete(want);
}

static void of_a_document_like_another_little_is_left(void **state)
{
    (void)state;
    struct df_packer *p = packer();
    DF_PACKED struct df_packed first = {0}, second = {0};
    (void)pack(p, document(1), &first);
    assert_true(pack(p, document(2), &second) * 4 < second.text_len);
    assert_unpacks(p, &first, document(1));
    assert_unpacks(p, &second, document(2));
    df_packer_free(p);
}

static void a_new_sort_of_documents_packs_well_after_its_first(void **state)
{
    (void)state;
    struct df_packer *p = packer();
    DF_PACKED struct df_packed plain = {0}, first = {0}, second = {0};
    (void)pack(p, document(1), &plain);
    (void)pack(p, noise(7, 900), &first);
    assert_true(pack(p, noise(7, 901), &second) * 10 < second.text_len);
    assert_unpacks(p, &plain, document(1));
    assert_unpacks(p, &first, noise(7, 900));
    assert_unpacks(p, &second, noise(7, 901));
    df_packer_free(p);
}

enum { SORTS = 100 }; /* the last of 1 MiB */

static void whatever_comes_is_unpacked_as_it_was(void **state)
{
    (void)state;
    struct df_packer *p = packer();
    struct df_packed packed[SORTS];
    for (int i = 0; i < SORTS; i++)
        (void)pack(p, noise((uint32_t)i, (size_t)(i * i * i)), &packed[i]);
    for (int i = SORTS - 1; i >= 0; i--) {
        assert_unpacks(p, &packed[i], noise((uint32_t)i, (size_t)(i * i * i)));
        df_packed_free(&packed[i]);
    }
    df_packer_free(p);
}

/* As the API server gave it: a write of the document must not change what somebody else wrote in
 * it. */
static void a_nul_stays_what_it_is(void **state)
{
    static const char text[] = "{\"description\":\"a\\u0000b\"}";
    DF_JSON cJSON *tree = NULL;
    struct df_packed packed;
    struct df_packer *p = packer();
    (void)state;
    assert_int_equal(df_json_parse_nul(text, strlen(text), &tree, NULL), 0);
    (void)pack(p, cJSON_Duplicate(tree, true), &packed);
    assert_unpacks(p, &packed, cJSON_Duplicate(tree, true));
    df_packed_free(&packed);
    df_packer_free(p);
}

static void *pack_and_unpack(void *arg)
{
    for (int i = 0; i < 200; i++) {
        DF_PACKED struct df_packed packed = {0};
        bool plain = i % 3;
        (void)pack(arg, plain ? document(i) : noise((uint32_t)i, 300), &packed);
        assert_unpacks(arg, &packed, plain ? document(i) : noise((uint32_t)i, 300));
    }
    return NULL;
}

static void several_threads_share_a_packer(void **state)
{
    (void)state;
    struct df_packer *p = packer();
    pthread_t threads[4];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pack_and_unpack, p), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    df_packer_free(p);
}

static void damage_is_no_lack_of_memory(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct df_packer *p = NULL;
    DF_JSON cJSON *tree = cJSON_CreateObject(), *back = NULL;
    DF_PACKED struct df_packed packed = {0};
    assert_int_equal(df_packer_new(&p, NULL), 0);
    assert_int_equal(df_pack(p, tree, &packed, NULL), 0);
    memset((void *)(uintptr_t)packed.bytes, 0xa5, packed.len);
    assert_int_equal(df_unpack(p, &packed, &back, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, "damaged"));
    df_packer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_no_lack_of_memory),
        cmocka_unit_test(of_a_document_like_another_little_is_left),
        cmocka_unit_test(a_new_sort_of_documents_packs_well_after_its_first),
        cmocka_unit_test(whatever_comes_is_unpacked_as_it_was),
        cmocka_unit_test(a_nul_stays_what_it_is),
        cmocka_unit_test(several_threads_share_a_packer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
