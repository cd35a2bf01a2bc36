/* What the row of a kind says, and what other files must say of each kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/api/handlers.h"
#include "spawner/api/routes.h"
#include "spawner/http/route.h"
#include "spawner/model/kinds.h"

static void kinds_have_the_numbers_of_the_databases(void **state)
{
    (void)state;
    static const char *const names[] = {"Executor", "Run", "TaskAction", "Integration", "Revision"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        assert_string_equal(df_kind_name((enum df_kind)i), names[i]);
}

static void a_row_says_all_of_its_kind(void **state)
{
    (void)state;
    for (int k = 0; k < DF_KIND_COUNT; k++) {
        const struct df_kind_row *row = df_kind_row((enum df_kind)k);
        const struct df_field *kind = df_field_find(row->rows, "kind");
        const struct df_field *spec = df_field_find(row->rows, "spec");
        assert_string_equal(kind->words[0], row->name);
        assert_ptr_equal(spec->fields, row->spec);
        assert_int_equal(strcasecmp(row->shown.singular, row->name), 0);
        assert_non_null(row->shown.columns);
        assert_true(df_starts_with(row->shown.names, row->shown.plural));
        assert_true(!row->is_custom_resource || row->short_name);
    }
}

static void assert_file_has(const char *path, const char *word)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &text, NULL), 0);
    if (!strstr(df_buf_str(&text), word))
        fail_msg("%s does not have %s", path, word);
}

static void every_kind_stands_where_no_row_is_read(void **state)
{
    (void)state;
    static const char *const roles[] = {"rbac/operator/role.yaml",
                                        "charts/dayfly/templates/rbac.yaml"};
    for (int k = 0; k < DF_KIND_COUNT; k++) {
        const char *plural = df_kind_plural((enum df_kind)k);
        DF_FREE char *in_cli = df_strf("`%s`", plural), *file = df_strf("- %s.yaml", plural);
        assert_file_has("docs/cli.md", in_cli);
        if (!df_kind_row((enum df_kind)k)->is_custom_resource)
            continue;
        assert_file_has("charts/dayfly/files/crds/Kustomization", file);
        DF_FREE char *status = df_strf("%s/status", plural);
        for (size_t i = 0; i < DF_ARRAY_SIZE(roles); i++)
            assert_file_has(roles[i], status);
    }
}

static bool has_route(const char *path, int kind)
{
    for (size_t i = 0; i < df_routes.count; i++) {
        const struct df_route *r = &df_routes.rows[i];
        if (strcmp(r->method, "GET") == 0 && strcmp(r->pattern, path) == 0)
            return !df_kind_row((enum df_kind)kind)->is_custom_resource || (int)r->of == kind;
    }
    return false;
}

static void every_kind_can_be_listed_and_read(void **state)
{
    (void)state;
    for (int k = 0; k < DF_KIND_COUNT; k++) {
        DF_FREE char *list = df_strf("/v1/%s", df_kind_plural((enum df_kind)k));
        DF_FREE char *one = df_strf("%s/{name}", list);
        if (!has_route(list, k) || !has_route(one, k))
            fail_msg("%s", list);
    }
}

/* A route that forgets its kind would change documents of the first one. */
static void a_route_for_documents_has_the_kind_of_its_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < df_routes.count; i++) {
        const struct df_route *r = &df_routes.rows[i];
        bool is_of_documents = r->handler == df_list_documents || r->handler == df_get_document ||
                               r->handler == df_create_document || r->handler == df_put_document ||
                               r->handler == df_patch_document;
        DF_FREE char *path = df_strf("/v1/%s", df_kind_plural(r->of));
        if (is_of_documents && !df_starts_with(r->pattern, path))
            fail_msg("%s %s is of %s", r->method, r->pattern, df_kind_name(r->of));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_the_numbers_of_the_databases),
        cmocka_unit_test(a_row_says_all_of_its_kind),
        cmocka_unit_test(every_kind_stands_where_no_row_is_read),
        cmocka_unit_test(every_kind_can_be_listed_and_read),
        cmocka_unit_test(a_route_for_documents_has_the_kind_of_its_path),
    };
    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
