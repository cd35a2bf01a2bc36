/*
 * Depth-first: a node is placed when all that it depends on is placed, so that a walk in the
 * file's order gives an order that is as near to it as can be. An edge back to the path that led
 * here closes a cycle. Each node and each edge is seen once.
 */
#include "runner/platform/dag_order.h"

enum state { NEW, ON_PATH, PLACED };

struct walk {
    const struct df_dag *dag;
    const struct df_document *file;
    enum state *states;
    size_t *path; /* the nodes that led here */
    size_t depth;
    size_t *order;
    size_t placed;
};

static void walk_free(struct walk *w)
{
    free(w->states);
    free(w->path);
    free(w->order);
}

/* From the node on the path that the last one depends on, as "a -> b -> a". */
static void name_cycle(const struct walk *w, size_t node)
{
    if (df_faults_full(w->file->faults))
        return;
    size_t from = w->depth - 1;
    while (w->path[from] != node)
        from--;
    DF_BUF struct df_buf text = DF_BUF_INIT((w->depth + 1) * (DF_LIMIT_NAME + 4));
    for (size_t i = from; i < w->depth; i++)
        (void)df_buf_addf(&text, "%s -> ", w->dag->nodes[w->path[i]].name);
    df_document_fault(w->file, df_key_path("components[%zu].dependsOn", node).text,
                      "is a cycle: %s%s", df_buf_str(&text), w->dag->nodes[node].name);
}

/* At most DF_LIMIT_COMPONENTS calls deep. */
static void visit(struct walk *w, size_t node)
{
    const struct df_node *n = &w->dag->nodes[node];
    w->states[node] = ON_PATH;
    w->path[w->depth++] = node;
    for (size_t i = 0; i < n->depends.len; i++) {
        size_t other = n->depends.items[i];
        if (w->states[other] == ON_PATH)
            name_cycle(w, other);
        else if (w->states[other] == NEW)
            visit(w, other);
    }
    w->depth--;
    w->states[node] = PLACED;
    w->order[w->placed++] = node;
}

/* Moves the nodes to their places; edges are indices, which change. */
static int rearrange(struct df_dag *dag, const size_t *order, struct df_err *err)
{
    DF_FREE size_t *place = calloc(dag->len, sizeof(*place));
    struct df_node *nodes = calloc(dag->len, sizeof(*nodes));
    if (!place || !nodes) {
        free(nodes);
        return df_fail_oom(err);
    }
    for (size_t i = 0; i < dag->len; i++) {
        nodes[i] = dag->nodes[order[i]];
        place[order[i]] = i;
    }
    for (size_t i = 0; i < dag->len; i++)
        for (size_t k = 0; k < nodes[i].depends.len; k++)
            nodes[i].depends.items[k] = place[nodes[i].depends.items[k]];
    free(dag->nodes);
    dag->nodes = nodes;
    return 0;
}

int df_dag_sort(struct df_dag *dag, const struct df_document *file, struct df_err *err)
{
    DF_CLEANUP(walk_free)
    struct walk w = {.dag = dag,
                     .file = file,
                     .states = calloc(dag->len, sizeof(*w.states)),
                     .path = calloc(dag->len, sizeof(*w.path)),
                     .order = calloc(dag->len, sizeof(*w.order))};
    if (!w.states || !w.path || !w.order)
        return df_fail_oom(err);
    for (size_t i = 0; i < dag->len; i++)
        if (w.states[i] == NEW)
            visit(&w, i);
    return rearrange(dag, w.order, err);
}
