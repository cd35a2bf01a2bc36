#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/model/selector.h"

static void it_chooses_as_kubernetes_does(void **state)
{
    (void)state;
    static const struct {
        const char *selector;
        bool matches;
        const char *label; /* to find candidates by; NULL: none */
    } cases[] = {
        {"team=net", true, "team=net"},
        {"team==net", true, "team=net"},
        {"team=db", false, "team=db"},
        {"team!=db", true, NULL},
        {"team!=net", false, NULL},
        {"other!=net", true, NULL},
        {"team", true, NULL},
        {"other", false, NULL},
        {"!other", true, NULL},
        {"!team", false, NULL},
        {"team in (db, net)", true, NULL},
        {"team in (db)", false, "team=db"},
        {"team notin (db,web)", true, NULL},
        {"team notin (db,net)", false, NULL},
        {"other notin (a)", true, NULL},
        {"empty=", true, "empty="},
        {"team=", false, "team="},
        {"a.b/c=d", true, "a.b/c=d"},
        {" team = net , stage != dev , !other ", true, "team=net"},
        {"team=net,stage=dev", false, "team=net"},
        {"in", false, NULL},
    };
    DF_JSON cJSON *doc =
        cJSON_Parse("{\"metadata\":{\"labels\":{\"team\":\"net\",\"stage\":\"prod\","
                    "\"empty\":\"\",\"a.b/c\":\"d\"}}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_selector *s = NULL;
        assert_int_equal(df_selector_parse(cases[i].selector, &s, NULL), 0);
        assert_int_equal(df_selector_matches(s, doc), cases[i].matches);
        if (cases[i].label)
            assert_string_equal(df_selector_label(s), cases[i].label);
        else
            assert_null(df_selector_label(s));
        df_selector_free(s);
    }
}

static void what_lacks_labels_matches_only_what_is_not_asked_for(void **state)
{
    (void)state;
    DF_JSON cJSON *doc = cJSON_Parse("{\"metadata\":{\"name\":\"net\"}}");
    static const char *const texts[] = {"a!=b", "!a", "a", "a=b"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_selector *s = NULL;
        assert_int_equal(df_selector_parse(texts[i], &s, NULL), 0);
        assert_int_equal(df_selector_matches(s, doc), i < 2);
        df_selector_free(s);
    }
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",     "=a",    ",",   "a=b,", "a in b", "a in (b",     "a=b c",    "a>1",
        "!a=b", "a=b=c", "a b", "a\nb", "!",      "a notin ()c", "\u00e4=b", "a=\u00e4"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_selector *s = NULL;
        struct df_err err = {0};
        assert_int_equal(df_selector_parse(texts[i], &s, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
    char long_one[DF_LIMIT_SELECTOR + 2];
    memset(long_one, 'a', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = '\0';
    struct df_selector *s = NULL;
    assert_int_equal(df_selector_parse(long_one, &s, NULL), -1);
    assert_int_equal(df_selector_parse(long_one + 1, &s, NULL), 0);
    df_selector_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_chooses_as_kubernetes_does),
        cmocka_unit_test(what_lacks_labels_matches_only_what_is_not_asked_for),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
