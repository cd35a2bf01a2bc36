#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/xml/xml.h"

/* "path=text;" of each element, in order of their ends. */
static int add_element(void *arg, const char *path, const char *text, struct df_err *err)
{
    (void)df_buf_addf(arg, "%s=%s;", path, text);
    return df_buf_check(arg, err);
}

static int read_text(const char *text, struct df_buf *out, struct df_err *err)
{
    const struct df_xml_sink sink = {add_element, out};
    return df_xml_read(text, strlen(text), &sink, err);
}

static void assert_elements(const char *text, const char *want)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(DF_MIB);
    if (read_text(text, &got, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(df_buf_str(&got), want);
}

static void assert_refused(const char *text, enum df_err_class cls, const char *word)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(DF_MIB);
    assert_int_equal(read_text(text, &got, &err), -1);
    assert_int_equal(err.cls, cls);
    assert_non_null(strstr(err.message, word));
}

static void elements_come_with_their_path_and_text_as_they_end(void **state)
{
    (void)state;
    assert_elements("<?xml version=\"1.0\"?><L><C><K>a&amp;b</K><S>7</S></C><T/></L>",
                    "L/C/K=a&b;L/C/S=7;L/C=;L/T=;L=;");
}

static void a_namespace_prefix_is_not_a_part_of_a_name(void **state)
{
    (void)state;
    assert_elements("<s:L xmlns:s=\"http://x/\"><s:K>v</s:K></s:L>", "L/K=v;L=;");
}

static void what_is_not_xml_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_refused("<html>\n<p>502\n</html>", DF_ERR_USER, "line 3");
    assert_refused("", DF_ERR_USER, "line 1");
    assert_refused("Service Unavailable", DF_ERR_USER, "not XML");
}

/* "Billion laughs" and fetched files both need one. */
static void a_document_type_is_refused(void **state)
{
    (void)state;
    assert_refused("<!DOCTYPE l [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><l>&b;</l>",
                   DF_ERR_USER, "document type");
    assert_refused("<!DOCTYPE l SYSTEM \"file:///etc/passwd\"><l/>", DF_ERR_USER, "document type");
}

static void what_is_too_deep_or_too_long_is_a_limit(void **state)
{
    (void)state;
    DF_BUF struct df_buf deep = DF_BUF_INIT(DF_MIB);
    for (int i = 0; i < 1000; i++)
        (void)df_buf_adds(&deep, "<a>");
    assert_refused(df_buf_str(&deep), DF_ERR_LIMIT, "512 bytes");
    DF_BUF struct df_buf longest = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&longest, "<a>");
    for (size_t i = 0; i <= DF_LIMIT_XML_TEXT; i++)
        (void)df_buf_addc(&longest, 'x');
    assert_refused(df_buf_str(&longest), DF_ERR_LIMIT, "65536 bytes");
}

static int fail_element(void *arg, const char *path, const char *text, struct df_err *err)
{
    (void)arg, (void)text;
    return df_fail(err, DF_ERR_CONFLICT, "not this: %s", path);
}

static void the_receiver_ends_the_reading(void **state)
{
    (void)state;
    struct df_err err = {0};
    const struct df_xml_sink sink = {fail_element, NULL};
    assert_int_equal(df_xml_read("<a><b/><c/></a>", 15, &sink, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_string_equal(err.message, "not this: a/b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_come_with_their_path_and_text_as_they_end),
        cmocka_unit_test(a_namespace_prefix_is_not_a_part_of_a_name),
        cmocka_unit_test(what_is_not_xml_is_refused_with_its_line),
        cmocka_unit_test(a_document_type_is_refused),
        cmocka_unit_test(what_is_too_deep_or_too_long_is_a_limit),
        cmocka_unit_test(the_receiver_ends_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
