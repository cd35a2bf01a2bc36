/*
 * fuzz_dag - the DAG of a platform, of the repository's text and, behind a line "====", of a
 * mounted one.
 *
 * Held: either there are faults, each one line, or each node is good and stands behind all that it
 * depends on; a scope takes its nodes alone, and changes nothing else.
 */
#include "common/base/parse.h"
#include "runner/platform/dag.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BETWEEN "\n====\n"

static void check_faults(const struct df_faults *f)
{
    if (f->lines.failed || f->lines.len > DF_LIMIT_INPUT_FAULTS + 1)
        abort();
    for (size_t i = 0; i < f->lines.len; i++)
        if (df_has_control(f->lines.items[i]))
            abort();
}

static void check_node(const struct df_dag *dag, size_t i)
{
    const struct df_node *n = &dag->nodes[i];
    if (!df_is_dns_label(n->name) || df_dag_find(dag, n->name) != n || !n->path == !n->chart)
        abort();
    if (n->path && (*n->path == '/' || strstr(n->path, "..") == n->path))
        abort();
    for (size_t k = 0; k < n->depends.len; k++)
        if (n->depends.items[k] >= i)
            abort();
}

static void make(const struct df_dag_text *repository, const struct df_dag_text *mounted,
                 const struct df_scope *scope)
{
    DF_DAG struct df_dag dag = {0};
    DF_FAULTS struct df_faults faults = {{0}};
    if (df_dag_make(repository, mounted, scope, &dag, &faults, NULL) < 0)
        abort();
    check_faults(&faults);
    if (faults.lines.len)
        return;
    if (!dag.len || dag.len > DF_LIMIT_COMPONENTS || !dag.document)
        abort();
    for (size_t i = 0; i < dag.len; i++) {
        check_node(&dag, i);
        if (scope->kind == DF_SCOPE_STACK && dag.nodes[i].is_in_scope &&
            !df_streq(dag.nodes[i].stack, scope->name))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct df_scope platform = {.kind = DF_SCOPE_PLATFORM};
    const struct df_scope stack = {DF_SCOPE_STACK, (char[]){"a"}, (char[]){"stack:a"}};
    const char *text = (const char *)data;
    const char *between = size ? memmem(text, size, BETWEEN, strlen(BETWEEN)) : NULL;
    size_t first = between ? (size_t)(between - text) : size;
    size_t second = between ? first + strlen(BETWEEN) : size;
    const struct df_dag_text repository = {"dag.yaml", text, first};
    const struct df_dag_text mounted = {"/config/dag.yaml", text + second, size - second};
    make(&repository, between ? &mounted : NULL, &platform);
    make(&repository, between ? &mounted : NULL, &stack);
    return 0;
}
