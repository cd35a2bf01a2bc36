/* Which variables of a module are declared sensitive, because their values are secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/tofu/sensitive.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

#define OVERRIDE "zzzz_dayfly_sensitive_override.tf.json"

/* The override file for this step and module; NULL: none. The caller frees. */
static char *written(const char *dir, const char *step, const char *file, const char *module)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    DF_FREE char *path = df_fs_join(dir, OVERRIDE);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_JSON cJSON *doc = json(step);
    struct df_err err = {0};
    (void)unlink(path);
    assert_int_equal(df_hcl_scan_text(file, module, strlen(module), &m, NULL), 0);
    if (df_sensitive_write(doc, &m, dir, &err) < 0)
        fail_msg("%s", err.message);
    if (!df_fs_exists(path))
        return NULL;
    assert_int_equal(df_fs_read(path, &text, NULL), 0);
    return strdup(df_buf_str(&text));
}

#define SECRET "{'secretEnvironment':{'TF_VAR_a':'x','PGPASSWORD':'y'}}"
#define ONLY_A "{\"variable\":{\"a\":{\"sensitive\":true}}}"

static const struct {
    const char *step, *file, *module, *want;
} cases[] = {
    {SECRET, "m.tf", "variable \"a\" {}\nvariable \"b\" {}\n", ONLY_A},
    {SECRET, "m.tf", "variable \"a\" {\n  type = string\n  default = \"d\"\n}\n", ONLY_A},
    {SECRET, "m.tf.json", "{\"variable\":{\"a\":{\"type\":\"string\"}}}", ONLY_A},
    {SECRET, "m.tf.json", "{\"variable\":[{\"b\":{}},{\"a\":{}}]}", ONLY_A},
    /* The module does not declare it: an override of nothing would be a fault. */
    {SECRET, "m.tf", "variable \"b\" {}\nvariable \"PGPASSWORD\" {}\n", NULL},
    {SECRET, "m.tf", "output \"a\" {\n  value = 1\n}\n", NULL},
    /* The module's author has decided. */
    {SECRET, "m.tf", "variable \"a\" {\n  sensitive = true\n}\n", NULL},
    {SECRET, "m.tf", "variable \"a\" {\n  sensitive = false\n}\n", NULL},
    {SECRET, "m.tf.json", "{\"variable\":{\"a\":{\"sensitive\":false}}}", NULL},
    {SECRET, "m.tf", "variable \"a\" {}\nvariable \"a\" {\n  sensitive = false\n}\n", NULL},
    /* The path of a file is not a secret. */
    {"{'secretEnvironment':{'TF_VAR_a':'@files/db.a'}}", "m.tf", "variable \"a\" {}\n", NULL},
    {"{'environment':{'TF_VAR_a':'x'},'variables':{'a':'x'}}", "m.tf", "variable \"a\" {}\n", NULL},
    {"{'sealed':{'variables':{'a':'x','b':'y'},'plain':['b']}}", "m.tf",
     "variable \"a\" {}\nvariable \"b\" {}\n", ONLY_A},
    {"{'secretEnvironment':{'TF_VAR_a':'x'},'sealed':{'variables':{'a':'y'}}}", "m.tf",
     "variable \"a\" {}\n", ONLY_A},
    {"{}", "m.tf", "variable \"a\" {}\n", NULL},
};

static void a_variable_with_a_secret_is_declared_sensitive_and_no_other(void **state)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *got = written(*state, cases[i].step, cases[i].file, cases[i].module);
        if ((got || cases[i].want) && !df_streq(got, cases[i].want))
            fail_msg("case %zu: wanted %s, got %s", i, cases[i].want ? cases[i].want : "nothing",
                     got ? got : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_variable_with_a_secret_is_declared_sensitive_and_no_other),
    };
    return cmocka_run_group_tests_name("sensitive variables", tests, NULL, NULL);
}
