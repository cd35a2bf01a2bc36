#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "runner/tofu/backend.h"
#include "tests/unit/scratch.h"

#define S3 "terraform {\n  backend \"s3\" {\n  }\n}\n"
#define WHOLE "terraform {\n  backend \"s3\" {\n bucket = \"b\"\n  }\n}\n"
#define WITH "{\"version\":4,\"resources\":[{}]}"
#define WITHOUT "{\"version\":4,\"resources\":[]}"
#define NOTED "{\"version\":3,\"backend\":{\"type\":\"s3\",\"config\":{}}}"

struct example {
    const char *type; /* of the storage */
    bool override;    /* state.overrideBackend */
    const char *file; /* in the module; NULL: none */
    const char *text; /* of that file */
    const char
        *elsewhere;     /* the same in the directory that the module was copied from, if not "" */
    const char *reason; /* NULL: nothing is refused */
    const char *word;   /* of the message, or of the note; NULL: no note */
};

static const struct example examples[] = {
    {"managed", false, "main.tf", "locals {}", "", NULL, NULL},
    {"managed", false, "main.tf", S3, "", "BackendInModule",
     "block `backend \"s3\"` in main.tf, line 2"},
    {"local", false, "main.tf", S3, "", "BackendInModule", "this executor's local storage"},
    {"managed", false, "main.tf", "terraform {\n\n cloud {}\n}", "", "BackendInModule",
     "`cloud` in main.tf, line 3"},
    {"managed", true, "main.tf", S3, "", NULL, "is overridden"},
    {"managed", false, "main.tofu", S3, "", NULL, NULL}, /* terraform does not read it */
    {"managed", false, "terraform.tfstate", WITH, "", "BackendInModule", "terraform.tfstate"},
    {"managed", false, "terraform.tfstate", WITHOUT, "", NULL, NULL},
    {"managed", false, "terraform.tfstate", "", "", NULL, NULL},
    {"managed", false, "terraform.tfstate", "{\"encrypted_data\":\"x\"}", "", "BackendInModule",
     "terraform.tfstate"},
    {"managed", false, "terraform.tfstate", "no state", "", "BackendInModule", "tfstate"},
    {"managed", true, "terraform.tfstate", WITH, "", NULL, "terraform.tfstate"},
    {"managed", false, ".terraform/terraform.tfstate", NOTED, "", "BackendInModule",
     "the backend \"s3\" that .terraform/terraform.tfstate names"},
    {"managed", false, "terraform.tfstate", WITH, "origin", "BackendInModule", "tfstate"},
    {"managed", false, ".terraform/terraform.tfstate", NOTED, "origin", "BackendInModule", "s3"},
    {"managed", false, "main.tf", S3, "", "BackendInModule", "the partial block"},
    {"managed", false, "main.tf", WHOLE, "", "BackendInModule", "the block `backend \"s3\"`"},
    {"managed", false, "main.tf", "terraform { backend \"local\" { path = \"x/y\" } }", "",
     "BackendInModule", "/origin/x/y` (docs/adopt.md)"},
    {"managed", false, "terraform.tfstate", WITH, "", "BackendInModule",
     "/origin/terraform.tfstate` (docs/adopt.md)"},
    {"s3", false, "terraform.tfstate", WITH, "", "BackendInModule",
     "into the s3 storage and set spec.storage.overrideBackend"},
    {"managed", false, ".terraform/environment", "prod", "", "BackendInModule",
     "the workspace \"prod\" that .terraform/environment selects"},
    {"managed", false, ".terraform/environment", "prod\n", "origin", "BackendInModule",
     "dayfly state push EXECUTOR FILE"},
    {"managed", false, ".terraform/environment", "default", "origin", NULL, NULL},
    {"managed", true, ".terraform/environment", "prod", "origin", NULL, "\"prod\""},
    {"managed", false, "terraform.tfstate.d/prod/terraform.tfstate", WITH, "", "BackendInModule",
     "/origin/terraform.tfstate.d/prod/terraform.tfstate`"},
    {"managed", false, "terraform.tfstate.d/prod/terraform.tfstate", WITH, "origin",
     "BackendInModule", "the workspace \"prod\" with resources in"},
    {"managed", false, "terraform.tfstate.d/prod/terraform.tfstate", WITHOUT, "origin", NULL, NULL},
    {"managed", true, "terraform.tfstate.d/prod/terraform.tfstate", WITH, "origin", NULL,
     "is overridden"},
    {"module", false, "main.tf", S3, "", NULL, NULL},
    {"module", false, "main.tf", "terraform { cloud {} }", "", NULL, NULL},
    {"module", false, "main.tf", "locals {}", "", "BackendMissing", "no `backend` or `cloud`"},
    {"module", false, "main.tf", "terraform { backend \"local\" {} }", "", "BackendMissing",
     "main.tf, line 1"},
    {"module", false, "main.tf", "terraform { backend \"local\" { path = \"x\" } }", "",
     "BackendMissing", "absolute"},
    {"module", false, "main.tf", "terraform { backend \"local\" { path = var.x } }", "",
     "BackendMissing", "absolute"},
    {"module", false, "main.tf", "terraform { backend \"local\" { path = \"/srv/x\" } }", "", NULL,
     NULL},
};

static void put(const char *dir, const char *name, const char *text)
{
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(dir, name);
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    if (df_fs_mkdirs(parent, 0700, &err) < 0 ||
        df_fs_write(path, text, strlen(text), 0600, &err) < 0)
        fail_msg("%s", err.message);
}

static void try(const struct example *x, const char *dir)
{
    DF_FREE char *module = df_fs_join(dir, "module"), *origin = df_fs_join(dir, "origin");
    char note[512];
    struct df_err err = {0};
    DF_JSON cJSON *step = cJSON_CreateObject();
    cJSON *state = df_json_object_at(step, "state");
    assert_int_equal(df_json_add_str(state, "type", x->type, NULL), 0);
    assert_int_equal(df_json_add_bool(state, "overrideBackend", x->override, NULL), 0);
    assert_int_equal(df_fs_mkdirs(module, 0700, NULL), 0);
    assert_int_equal(df_fs_mkdirs(origin, 0700, NULL), 0);
    put(*x->elsewhere ? origin : module, x->file, x->text);
    const struct df_backend_request q = {
        .step = step, .module_dir = module, .origin_dir = origin, .tool = DF_HCL_TERRAFORM};
    int result = df_backend_check(&q, note, &err);
    if ((x->reason != NULL) != (result < 0) || (x->reason && !df_streq(err.reason, x->reason)))
        fail_msg("%s: %s %s", x->text, err.reason, err.message);
    const char *said = x->reason ? err.message : note;
    if (x->word ? !strstr(said, x->word) : *said != '\0')
        fail_msg("%s: \"%s\"", x->text, said);
    assert_int_equal(df_fs_remove_tree(module, NULL), 0);
    assert_int_equal(df_fs_remove_tree(origin, NULL), 0);
}

static void what_says_where_the_state_is_is_refused_unless_it_is_to_be_overridden(void **state)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(examples); i++)
        try(&examples[i], *state);
}

static void
with_storage_of_the_module_another_workspace_is_refused_unless_it_is_a_cloud_s(void **state)
{
    const char *dir = *state;
    char note[512];
    struct df_err err = {0};
    DF_JSON cJSON *step = NULL;
    static const char text[] = "{\"state\":{\"type\":\"module\"}}";
    assert_int_equal(df_json_parse(text, strlen(text), &step, NULL), 0);
    const struct df_backend_request q = {.step = step, .module_dir = dir};
    put(dir, ".terraform/environment", "prod");
    put(dir, "main.tf", S3);
    assert_int_equal(df_backend_check(&q, note, &err), -1);
    assert_string_equal(err.reason, "BackendInModule");
    assert_non_null(strstr(err.message, "a key of its own"));
    put(dir, "main.tf", "terraform {\n cloud {}\n}");
    assert_int_equal(df_backend_check(&q, note, &err), 0);
}

static void the_copies_of_overridden_states_are_removed(void **state)
{
    const char *dir = *state;
    char note[512];
    DF_FREE char *path = df_fs_join(dir, "terraform.tfstate");
    DF_FREE char *workspaces = df_fs_join(dir, "terraform.tfstate.d");
    DF_JSON cJSON *step = NULL;
    static const char text[] = "{\"state\":{\"type\":\"managed\",\"overrideBackend\":true}}";
    assert_int_equal(df_json_parse(text, strlen(text), &step, NULL), 0);
    put(dir, "terraform.tfstate", WITH);
    put(dir, "terraform.tfstate.d/prod/terraform.tfstate", WITH);
    const struct df_backend_request q = {.step = step, .module_dir = dir};
    assert_int_equal(df_backend_check(&q, note, NULL), 0);
    assert_false(df_fs_exists(path));
    assert_false(df_fs_exists(workspaces));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(what_says_where_the_state_is_is_refused_unless_it_is_to_be_overridden),
        scratch_test(
            with_storage_of_the_module_another_workspace_is_refused_unless_it_is_a_cloud_s),
        scratch_test(the_copies_of_overridden_states_are_removed),
    };
    return cmocka_run_group_tests_name("backend", tests, NULL, NULL);
}
