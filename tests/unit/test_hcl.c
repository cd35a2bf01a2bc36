#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/hcl/hcl.h"
#include "tests/unit/scratch.h"

static struct df_hcl_module scan_text(const char *file, const char *text)
{
    struct df_hcl_module m = {0};
    struct df_err err = {0};
    if (df_hcl_scan_text(file, text, strlen(text), &m, &err) < 0)
        fail_msg("%s", err.message);
    return m;
}

/* "variable.v:1 terraform:2 terraform/backend.s3:3" */
static char *listing(const struct df_hcl_module *m)
{
    DF_STRS struct df_strs all = {0};
    for (size_t i = 0; i < m->len; i++) {
        const struct df_hcl_block *b = &m->blocks[i];
        DF_FREE char *labels = df_strs_join(&b->labels, ".");
        (void)df_strs_addf(&all, "%s%s%s%s:%u", b->in_terraform ? "terraform/" : "", b->type,
                           *labels ? "." : "", labels, b->line);
    }
    return df_strs_join(&all, " ");
}

static void check_listing(const char *file, const char *text, const char *expected)
{
    DF_HCL_MODULE struct df_hcl_module m = scan_text(file, text);
    DF_FREE char *found = listing(&m);
    if (strcmp(found, expected) != 0)
        fail_msg("%s\nhas %s\nnot %s", text, found, expected);
}

static void blocks_are_listed_with_labels_and_lines(void **state)
{
    (void)state;
    check_listing(
        "x.tf",
        "# a\nvariable \"v\" {\n  type = string\n}\n\nresource \"a\" \"b\" {\n  c {\n  }\n}\n"
        "terraform {\n  required_version = \"1\"\n  backend \"s3\" {\n  }\n}\nlocals {}",
        "variable.v:2 resource.a.b:6 terraform:10 terraform/backend.s3:12 locals:15");
    check_listing("x.tf", "\xef\xbb\xbfvariable v {}\r\nmodule /* x */ \"m\" /* y\n*/ {\r\n}",
                  "variable.v:1 module.m:2");
}

static void blocks_are_told_from_what_looks_like_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool found;
    } table[] = {
        {"terraform { cloud { } }", true},
        {"terraform { backend \"s3\" {} }", true},
        {"terraform {\n cloud {\n organization = \"o\"\n } }", true},
        {"/* x */ terraform { # y\n required_version = \"1\"\n cloud{} }", true},
        {"locals { a = \"}\" }\nterraform {\ncloud {}\n}", true},
        {"locals { a = \"${b[\"}\"]}{\" }\nterraform {\ncloud {}\n}", true},
        {"locals { a = <<EOT\n{ \"\nEOT\n}\nterraform {\ncloud {}\n}", true},
        {"locals {\n a = <<-EOT\n  { EOT x\n  EOT\n}\nterraform {\ncloud {}\n}", true},
        {"locals { a = 1 << 2 }\nterraform { cloud {} }", true},
        {"terraform { required_providers {\n a = { source = \"x/a\" }\n }\n backend \"local\" {}}",
         true},
        {"", false},
        {"terraform { }", false},
        {"terraform { # cloud {\n}", false},
        {"terraform { // cloud {\n}", false},
        {"terraform { /* cloud { */ }", false},
        {"terraform { required_version = \"cloud {\" }", false},
        {"terraform { required_version = \"\\\" cloud { \" }", false},
        {"terraform { a = \"$${\" }\nx { cloud { } }", false},
        {"terraform { x { cloud { } } }", false},
        {"cloud { }", false},
        {"backend \"s3\" { }", false},
        {"resource \"terraform\" \"x\" { cloud { } }", false},
        {"module \"m\" { cloud { } }", false},
        {"terraform { cloud = 1 }", false},
        {"terraform { my_cloud { } }", false},
        {"terraform { my-backend \"x\" { } }", false},
        {"locals { cloud = { } }", false},
        {"locals { a = <<EOT\nterraform { cloud { } }\nEOT\n}", false},
        {"locals { a = <<EOT\nterraform { cloud { } }", false},
        {"\"${\"${\"${\"", false},
        {"/*", false},
        {"<<", false},
        {"terraform { backend \"", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        DF_HCL_MODULE struct df_hcl_module m = scan_text("x.tf", table[i].text);
        if ((df_hcl_backend(&m) != NULL) != table[i].found)
            fail_msg("%s", table[i].text);
    }
}

static void a_nul_in_a_label_ends_it(void **state)
{
    (void)state;
    static const char text[] = "variable \"\0\" { }\nvariable \"a\0b\" { }";
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err err = {0};
    assert_int_equal(df_hcl_scan_text("x.tf", text, sizeof(text) - 1, &m, &err), 0);
    assert_int_equal(m.len, 2);
    assert_string_equal(m.blocks[0].labels.items[0], "");
    assert_string_equal(m.blocks[1].labels.items[0], "a");
}

static void json_says_the_same_as_the_native_syntax(void **state)
{
    (void)state;
    check_listing("x.tf.json",
                  "{\n\"//\": \"c\",\n\"variable\": {\"v\": {}},\n\"resource\": {\"a\": {\"b\": "
                  "[{}, {}]}},\n\"terraform\": [{}, {\"backend\": {\"s3\": {}}}]\n}",
                  "variable.v:3 resource.a.b:4 resource.a.b:4 terraform:5 terraform:5 "
                  "terraform/backend.s3:5");
    check_listing("x.tofu.json", "[{\"terraform\":{\"cloud\":{}}},{\"locals\":{}}]",
                  "terraform:1 terraform/cloud:1 locals:1");
    check_listing("x.tf.json", "{\"variable\":{\"a\":{}},\"variable\":{\"b\":{}}}",
                  "variable.a:1 variable.b:1");
    check_listing("x.tf.json", "3", "");
}

static void what_is_no_json_is_refused_with_its_file(void **state)
{
    (void)state;
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err err = {0};
    assert_int_equal(df_hcl_scan_text("x.tf.json", "{", 1, &m, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "x.tf.json"));
}

static void sensitive_variables_are_seen(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text;
        bool sensitive;
    } table[] = {
        {"x.tf", "variable \"v\" {\n sensitive = true\n}", true},
        {"x.tf", "variable \"v\" { sensitive=true }", true},
        {"x.tf", "variable \"v\" { sensitive = true # why\n}", true},
        {"x.tf", "variable \"v\" { sensitive = \"true\" }", true},
        {"x.tf", "variable \"v\" { sensitive = \"1\" }", true},
        {"x.tf", "/*/ the \"old\" way, a 6\" pipe /*/ variable \"v\" { sensitive = true }", true},
        {"x.tf", "variable \"v\" { sensitive = (true) }", true},
        {"x.tf", "variable \"v\" { default = {\n a = \"}\"\n }\n sensitive = true }", true},
        {"x.tf", "variable \"v\" { default = <<E\nx\nE\n sensitive = true }", true},
        {"x.tf", "variable \"v\" { ephemeral = true }", true},
        {"x.tf.json", "{\"variable\":{\"v\":{\"sensitive\":true}}}", true},
        {"x.tf.json", "{\"variable\":{\"v\":[{\"sensitive\":\"true\"}]}}", true},
        {"x.tf", "variable \"v\" { sensitive = false }", false},
        {"x.tf", "variable \"v\" {\n type = string\n}\nlocals { sensitive = true }", false},
        {"x.tf", "variable \"v\" { default = { sensitive = true } }", false},
        {"x.tf", "variable \"v\" { validation { condition = x.sensitive == true } }", false},
        {"x.tf", "variable \"v\" { description = \"sensitive = true\" }", false},
        {"x.tf", "variable \"v\" { # sensitive = true\n}", false},
        {"x.tf.json", "{\"variable\":{\"v\":{\"sensitive\":false,\"default\":null}}}", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        DF_HCL_MODULE struct df_hcl_module m = scan_text(table[i].file, table[i].text);
        assert_true(m.len > 0);
        if (df_hcl_is_sensitive(&m.blocks[0]) != table[i].sensitive)
            fail_msg("%s", table[i].text);
    }
}

static void plain_attributes_are_values_and_expressions_are_not(void **state)
{
    (void)state;
    DF_HCL_MODULE struct df_hcl_module m = scan_text(
        "x.tf", "terraform {\n backend \"local\" {\n path = \"/a/b\"\n x = var.y\n n = 3\n"
                " t = \"a${b}\"\n c = \"a\" == b ? 1 : 2\n o = { path = \"no\" }\n }\n}\n");
    const struct df_hcl_block *b = df_hcl_backend(&m);
    assert_string_equal(df_hcl_attribute(b, "path"), "/a/b");
    assert_string_equal(df_hcl_attribute(b, "n"), "3");
    assert_null(df_hcl_attribute(b, "x"));
    assert_true(df_hcl_has_attribute(b, "x"));
    assert_null(df_hcl_attribute(b, "t"));
    assert_null(df_hcl_attribute(b, "c"));
    assert_null(df_hcl_attribute(b, "o"));
    assert_true(df_hcl_has_attribute(b, "t"));
    assert_true(df_hcl_has_attribute(b, "o"));
    assert_false(df_hcl_has_attribute(b, "none"));
}

/* ---- directories ---- */

static int list_literal(void *arg, const struct df_hcl_literal *l, struct df_err *err)
{
    (void)err;
    return df_buf_addf(arg, "%s/%s=%s;", l->top, l->name, l->value);
}

static void literals_are_listed_with_the_names_before_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"a = \"x\" # \"no\"\nb = [\"y\", 1, \"z\"] // \"no\"\n", "a/a=x;b/b=y;b/b=z;"},
        {"a = { p = \"x\", \"q r\" : \"y\" } /* \"no\" */ b = \"z\"", "a/p=x;a/q r=y;b/b=z;"},
        {"{ p = \"say \\\"hi\\\"\\n$${x} %%{y} ${z}\" }", "/p=say \"hi\"\n${x} %{y} ${z};"},
        {"a = <<-END\n    one\n      two\n  END\nb = \"x\"", "a/a=one\ntwo\n;b/b=x;"},
        {"a = <<END\nENDING\nEND\n", "a/a=ENDING\n;"},
        {"a = \"x\" == \"y\"", "a/a=x;a/a=y;"},
        {"a = \"unclosed", "a/a=unclosed;"},
        {"a = <<", "a/a=;"},
        {"/*", ""},
        {"}}} a = \"x\\", "/a=x\\;"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_BUF struct df_buf list = DF_BUF_INIT(1000);
        assert_int_equal(df_hcl_literals(rows[i].text, list_literal, &list, NULL), 0);
        assert_string_equal(df_buf_str(&list), rows[i].expected);
    }
}

static void a_text_is_closed_that_leaves_what_is_around_it_alone(void **state)
{
    (void)state;
    static const char *const closed[] = {"",
                                         "1 # )",
                                         "[\"a\", (1)]",
                                         "{ a = \")\" } // (",
                                         "<<END\n)\nEND)\nEND\n",
                                         "/* ( */ 1",
                                         "[\"$${a}%%{b\"]"};
    static const char *const open[] = {"[1", "1)", "[1]) x = (2", "\"a", "\"a\\\"", "1 /* one",
                                       "<<END\nE", "<<END\nEND)\n", "[1)]) ([",
                                       /* what a template has are strings of its own */
                                       "[\"${\"/*\"}\"])\nx = ([/* */1]", "\"%{if true}\"",
                                       "\"$$${a}\"", "<<END\n${a}\nEND\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(closed); i++)
        assert_true(df_hcl_is_closed(closed[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(open); i++)
        assert_false(df_hcl_is_closed(open[i]));
}

static void put(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(dir, name);
    struct df_err err = {0};
    if (df_fs_write(path, text, strlen(text), 0600, &err) < 0)
        fail_msg("%s", err.message);
}

static char *files_of(const char *dir, enum df_hcl_tool tool, size_t count)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    DF_STRS struct df_strs all = {0};
    struct df_err err = {0};
    if (df_hcl_scan(dir, tool, &m, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(m.files, count);
    for (size_t i = 0; i < m.len; i++)
        (void)df_strs_add(&all, m.blocks[i].file);
    return df_strs_join(&all, " ");
}

static void each_program_reads_its_own_files_overrides_last(void **state)
{
    const char *dir = *state;
    static const char *const names[] = {"a_override.tf", "b.tf",    "b.tofu",      "c.tf.json",
                                        "c.tofu.json",   "d.tofu",  "override.tf", "z.tf",
                                        ".hidden.tf",    "#e.tf#",  "e.tf~",       "README.md",
                                        "x.tfvars",      "y.tf.bak"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        put(dir, names[i], df_ends_with(names[i], "json") ? "{\"locals\":{}}" : "locals {}");
    DF_FREE char *sub = df_fs_join(dir, "dir.tf");
    assert_int_equal(df_fs_mkdirs(sub, 0700, NULL), 0);
    DF_FREE char *tofu = files_of(dir, DF_HCL_OPENTOFU, 6);
    assert_string_equal(tofu, "b.tofu c.tofu.json d.tofu z.tf a_override.tf override.tf");
    DF_FREE char *terraform = files_of(dir, DF_HCL_TERRAFORM, 5);
    assert_string_equal(terraform, "b.tf c.tf.json z.tf a_override.tf override.tf");
    DF_FREE char *any = files_of(dir, DF_HCL_ANY, 8);
    assert_string_equal(any,
                        "b.tf b.tofu c.tf.json c.tofu.json d.tofu z.tf a_override.tf override.tf");
}

static void an_override_decides_the_backend(void **state)
{
    const char *dir = *state;
    put(dir, "z.tf", "terraform { backend \"s3\" {} }");
    put(dir, "a_override.tf", "terraform { backend \"local\" {} }");
    DF_HCL_MODULE struct df_hcl_module m = {0};
    assert_int_equal(df_hcl_scan(dir, DF_HCL_TERRAFORM, &m, NULL), 0);
    assert_string_equal(df_hcl_backend(&m)->labels.items[0], "local");
}

static void a_directory_without_configuration_has_no_files(void **state)
{
    const char *dir = *state;
    DF_FREE char *none = files_of(dir, DF_HCL_OPENTOFU, 0);
    assert_string_equal(none, "");
    put(dir, "a.tf", "");
    DF_FREE char *empty = files_of(dir, DF_HCL_OPENTOFU, 1);
    assert_string_equal(empty, "");
    DF_FREE char *absent = df_fs_join(dir, "absent");
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err err = {0};
    assert_int_equal(df_hcl_scan(absent, DF_HCL_ANY, &m, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

/* ---- limits ---- */

static void refused_text(const char *one, size_t times, const char *head)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_LIMIT_HCL_FILE);
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err err = {0};
    (void)df_buf_adds(&b, head);
    for (size_t i = 0; i < times; i++)
        (void)df_buf_adds(&b, one);
    assert_int_equal(df_hcl_scan_text("x.tf", b.data, b.len, &m, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_non_null(strstr(err.message, "x.tf"));
}

static void blocks_and_attributes_beyond_any_module_are_refused(void **state)
{
    (void)state;
    refused_text("a {}\n", DF_LIMIT_HCL_BLOCKS + 1, "");
    refused_text("a = 1\n", DF_LIMIT_HCL_ATTRIBUTES + 1, "variable \"v\" {\n");
}

static void a_file_beyond_the_cap_is_refused_not_passed_over(void **state)
{
    const char *dir = *state;
    DF_FREE char *path = df_fs_join(dir, "x.tf");
    put(dir, "x.tf", "");
    assert_int_equal(truncate(path, (off_t)DF_LIMIT_HCL_FILE + 1), 0);
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err err = {0};
    assert_int_equal(df_hcl_scan(dir, DF_HCL_ANY, &m, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void more_files_than_any_module_has_are_refused(void **state)
{
    const char *dir = *state;
    for (size_t i = 0; i <= DF_LIMIT_HCL_FILES; i++) {
        DF_FREE char *name = df_strf("%zu.tf", i);
        put(dir, name, "");
    }
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err err = {0};
    assert_int_equal(df_hcl_scan(dir, DF_HCL_ANY, &m, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_listed_with_labels_and_lines),
        cmocka_unit_test(blocks_are_told_from_what_looks_like_them),
        cmocka_unit_test(a_nul_in_a_label_ends_it),
        cmocka_unit_test(json_says_the_same_as_the_native_syntax),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_file),
        cmocka_unit_test(sensitive_variables_are_seen),
        cmocka_unit_test(plain_attributes_are_values_and_expressions_are_not),
        cmocka_unit_test(literals_are_listed_with_the_names_before_them),
        cmocka_unit_test(a_text_is_closed_that_leaves_what_is_around_it_alone),
        scratch_test(each_program_reads_its_own_files_overrides_last),
        scratch_test(an_override_decides_the_backend),
        scratch_test(a_directory_without_configuration_has_no_files),
        cmocka_unit_test(blocks_and_attributes_beyond_any_module_are_refused),
        scratch_test(a_file_beyond_the_cap_is_refused_not_passed_over),
        scratch_test(more_files_than_any_module_has_are_refused),
    };
    return cmocka_run_group_tests_name("hcl", tests, NULL, NULL);
}
