#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "spawner/store/tofu_state/scan.h"
#include "tests/unit/state_words.h"

static void what_is_no_state_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "null",
        "[]",
        "\"{}\"",
        "{",
        "{}",
        "}",
        "{\"serial\":1,\"lineage\":\"L\"}",
        "{\"version\":4,\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":1}",
        "{\"version\":4,\"serial\":\"1\",\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":1.0,\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":1e3,\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":-1,\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":null,\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":9007199254740993,\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":99999999999999999999,\"lineage\":\"L\"}",
        "{\"version\":4,\"serial\":1,\"lineage\":7}",
        "{\"version\":4,\"serial\":1,\"lineage\":null}",
        "{\"version\":4,\"serial\":1,\"lineage\":\"\\u004c\"}",
        "{\"version\":4,\"serial\":1,\"lineage\":\"\xff\"}",
        "{\"version\":\"4\",\"serial\":1,\"lineage\":\"L\"}",
        "{" HEAD ",\"serial\":2}",
        "{" HEAD ",\"version\":4}",
        "{" HEAD ",\"lineage\":\"M\"}",
        "{" HEAD ",\"outputs\":{},\"outputs\":{}}",
        "{\"x\":{" HEAD "}}",
        "{" HEAD "}}",
        "{" HEAD "} x",
        "{" HEAD "}{" HEAD "}",
        "{" HEAD ",}",
        "{" HEAD " \"x\":1}",
        "{," HEAD "}",
        "{" HEAD ",\"x\"}",
        "{" HEAD ",\"x\":}",
        "{" HEAD ",\"x\":1,}",
        "{" HEAD ",x:1}",
        "{" HEAD ",'x':1}",
        "{" HEAD ",\"x\":[1,]}",
        "{" HEAD ",\"x\":[,1]}",
        "{" HEAD ",\"x\":[1 2]}",
        "{" HEAD ",\"resources\":[1 2]}",
        "{" HEAD ",\"resources\":[1,]}",
        "{" HEAD ",\"resources\":[1}",
        "{" HEAD ",\"resources\":[],\"resources\":[]}",
        "{" HEAD ",\"x\":[1}",
        "{" HEAD ",\"x\":[1}]",
        "{" HEAD ",\"x\":{\"y\":1]}",
        "{" HEAD ",\"x\":{\"y\" 1}}",
        "{" HEAD ",\"x\":{1:1}}",
        "{" HEAD ",\"x\":01}",
        "{" HEAD ",\"x\":1.}",
        "{" HEAD ",\"x\":.5}",
        "{" HEAD ",\"x\":+1}",
        "{" HEAD ",\"x\":1e}",
        "{" HEAD ",\"x\":-}",
        "{" HEAD ",\"x\":0x10}",
        "{" HEAD ",\"x\":NaN}",
        "{" HEAD ",\"x\":tru}",
        "{" HEAD ",\"x\":truE}",
        "{" HEAD ",\"x\":nulll}",
        "{" HEAD ",\"x\":\"a\nb\"}",
        "{" HEAD ",\"x\":\"a\tb\"}",
        "{" HEAD ",\"x\":\"\\x\"}",
        "{" HEAD ",\"x\":\"\\u12g4\"}",
        "{" HEAD ",\"x\":\"\\u123\"}",
        "{" HEAD ",\"x\":\"",
        "{" HEAD ",\"x\":\"\\",
        "{" HEAD ",\"x\":\"\\\"}",
        "{" HEAD,
        "\xef\xbb\xbf{" HEAD "}",
        "\x1f\x8b\x08",
        "<html>502 Bad Gateway</html>",
    };
    WORLD w = open_world(*state);
    must_put(&w, 5);
    const struct df_state_writer by = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_err err = {0};
        int result = put_text(&w, texts[i], &by, &err);
        if (result == 0)
            fail_msg("accepted: %s", texts[i]);
        assert_failed(result, &err, DF_ERR_USER, "StateRefused");
    }
    assert_int_equal(count_versions(&w), 1);
}

static void every_prefix_of_a_state_is_refused(void **state)
{
    WORLD w = open_world(*state);
    DF_FREE char *text = state_text(1, "L", ",\"x\":[{\"a\":\"b\\u00e9\",\"n\":-1.5e+3},true]");
    size_t n = strlen(text) - 1; /* without the newline */
    const struct df_state_writer by = {0};
    for (size_t cut = 0; cut < n; cut++) {
        struct df_err err = {0};
        DF_FREE char *part = strndup(text, cut);
        assert_failed(put_text(&w, part, &by, &err), &err, DF_ERR_USER, "StateRefused");
    }
    assert_no_state(&w);
}

static void states_of_every_shape_are_read_rightly(void **state)
{
    static const struct {
        const char *text;
        int64_t serial;
        const char *lineage;
    } cases[] = {
        {"{" HEAD "}", 1, "L"},
        {" \r\n\t{ \"lineage\" : \"\" , \"serial\":0,\"version\" :3 } \n", 0, ""},
        {"{\"serial\":9007199254740992,\"version\":4,\"lineage\":\"a-b_c é\"}", 9007199254740992,
         "a-b_c é"},
        {"{\"x\":{\"serial\":9,\"lineage\":\"no\"},\"y\":[{\"version\":0}]," HEAD "}", 1, "L"},
        {"{" HEAD ",\"ser\\u0069al\":5,\"serials\":6,\"\":7,\"s\":8}", 1, "L"},
        {"{" HEAD ",\"a\":[],\"b\":{},\"c\":[[],{}],\"d\":-0.0e-0,\"e\":[null,true,false]}", 1,
         "L"},
        {"{" HEAD ",\"x\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u12aF\x7f\xff\"}", 1, "L"},
    };
    WORLD w = open_world(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        struct df_state_head head = {0};
        DF_FREE char *path = upload(&w, cases[i].text, strlen(cases[i].text));
        DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (df_state_scan(fd, &head, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_int_equal(head.serial, cases[i].serial);
        assert_string_equal(head.lineage, cases[i].lineage);
    }
}

static void what_a_state_holds_is_seen(void **state)
{
    static const struct {
        const char *text;
        bool has_resources, is_encrypted;
        int64_t version;
    } cases[] = {
        {"{" HEAD "}", false, false, 4},
        {"{" HEAD ",\"resources\":[]}", false, false, 4},
        {"{" HEAD ",\"resources\" : [ \n ] }", false, false, 4},
        {"{" HEAD ",\"resources\":null}", false, false, 4},
        {"{" HEAD ",\"x\":{\"resources\":[1]}}", false, false, 4},
        {"{" HEAD ",\"resources\":[{}]}", true, false, 4},
        {"{\"resources\":[ {\"a\":[[],{}]} , {\"b\":1},3 ],\"x\":1," HEAD "}", true, false, 4},
        {"{" HEAD ",\"encrypted_data\":\"eHg=\"}", false, true, 4},
        {"{\"serial\":1,\"lineage\":\"L\",\"encrypted_data\":\"eHg=\"}", false, true, 0},
        {"{\"version\":5,\"serial\":1,\"lineage\":\"L\"}", false, false, 5},
    };
    WORLD w = open_world(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        struct df_state_head head = {0};
        DF_FREE char *path = upload(&w, cases[i].text, strlen(cases[i].text));
        DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (df_state_scan(fd, &head, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_int_equal(head.has_resources, cases[i].has_resources);
        assert_int_equal(head.is_encrypted, cases[i].is_encrypted);
        assert_int_equal(head.version, cases[i].version);
    }
}

/* depth arrays around nothing, inside of a state. */
static char *nested(size_t depth)
{
    DF_FREE char *open = malloc(depth + 1);
    DF_FREE char *close_ = malloc(depth + 1);
    assert_non_null(open);
    assert_non_null(close_);
    memset(open, '[', depth);
    memset(close_, ']', depth);
    open[depth] = close_[depth] = '\0';
    return df_strf("{" HEAD ",\"x\":%s%s}", open, close_);
}

static void nesting_has_its_cap(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    const struct df_state_writer by = {0};
    DF_FREE char *too_deep = nested(DF_LIMIT_STATE_DEPTH + 1);
    DF_FREE char *deep = nested(DF_LIMIT_STATE_DEPTH);
    assert_failed(put_text(&w, too_deep, &by, &err), &err, DF_ERR_USER, "StateRefused");
    assert_int_equal(put_text(&w, deep, &by, &err), 0);
}

static void a_lineage_has_its_cap(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    char lineage[130];
    memset(lineage, 'x', sizeof(lineage));
    lineage[129] = '\0';
    assert_failed(put(&w, 1, lineage, "", NULL, &err), &err, DF_ERR_USER, "StateRefused");
    lineage[128] = '\0';
    assert_int_equal(put(&w, 1, lineage, "", NULL, &err), 0);
    lineage[127] = 'y';
    assert_failed(put(&w, 2, lineage, "", NULL, &err), &err, DF_ERR_CONFLICT, "ForeignLineage");
}

static void a_state_larger_than_the_cap_is_a_limit(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    DF_FREE char *path = upload(&w, "", 0);
    assert_int_equal(truncate(path, (off_t)DF_LIMIT_STATE + 1), 0); /* sparse */
    const struct df_state_writer by = {0};
    assert_failed(df_state_put(w.states, UID, path, NULL, &by, &err), &err, DF_ERR_LIMIT,
                  "StateRefused");
}

static void a_state_of_many_pieces_is_read_whole(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    /* Every alignment of the members behind a filling to the borders of 64 KiB. */
    DF_FREE char *filling = malloc(200000);
    assert_non_null(filling);
    for (int shift = 0; shift < 60; shift += 7) {
        size_t n = 131072 - 40 + (size_t)shift;
        memset(filling, 'x', n);
        filling[n] = '\0';
        DF_FREE char *text = df_strf("{\"x\":\"%s\",\"version\":4,\"serial\":%d,\"lineage\":\"L\","
                                     "\"outputs\":{\"o\":{\"value\":\"%d\",\"type\":\"string\"}}}",
                                     filling, shift + 1, shift);
        const struct df_state_writer by = {0};
        if (put_text(&w, text, &by, &err) < 0)
            fail_msg("shift %d: %s", shift, err.message);
        DF_JSON cJSON *outputs = NULL;
        DF_FREE char *want = df_strf("%d", shift);
        assert_int_equal(df_state_outputs(w.states, UID, 0, false, &outputs, &err), 0);
        assert_string_equal(df_json_str(outputs, "o.value"), want);
    }
}

static int scan_text(const char *text)
{
    struct df_state_head head = {0};
    struct df_err err = {0};
    DF_CLOSE int fd = memfd_create("state", MFD_CLOEXEC);
    assert_int_equal(df_fs_write_all(fd, text, strlen(text), NULL), 0);
    return df_state_scan(fd, &head, &err);
}

/* Strings are looked through eight bytes at a time. */
static void every_byte_at_every_place_of_a_string_is_judged(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        bool good = c >= ' ' && c != '"'; /* a backslash begins the escape \n */
        for (size_t at = 0; at < 19; at++) {
            char filling[] = "nnnnnnnnnnnnnnnnnnnn";
            filling[at] = (char)c;
            DF_FREE char *text = df_strf("{" HEAD ",\"x\":\"%s\"}", filling);
            if ((scan_text(text) == 0) != good)
                fail_msg("byte %d at %zu", c, at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(what_is_no_state_is_refused),
        scratch_test(every_prefix_of_a_state_is_refused),
        scratch_test(states_of_every_shape_are_read_rightly),
        scratch_test(what_a_state_holds_is_seen),
        scratch_test(nesting_has_its_cap),
        scratch_test(a_lineage_has_its_cap),
        scratch_test(a_state_larger_than_the_cap_is_a_limit),
        scratch_test(a_state_of_many_pieces_is_read_whole),
        cmocka_unit_test(every_byte_at_every_place_of_a_string_is_judged),
    };
    return cmocka_run_group_tests_name("state_scan", tests, NULL, NULL);
}
