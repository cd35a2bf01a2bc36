#include "common/json/shared.h"

#define MARK 0x5f4a534f4eULL /* tells a shared root from another tree */

struct shared {
    uint64_t mark;
    unsigned references; /* atomic */
    cJSON root;
};

static struct shared *of_root(const cJSON *root)
{
    struct shared *s = (struct shared *)((char *)(uintptr_t)root - offsetof(struct shared, root));
    if (s->mark != MARK)
        DF_BUG("a tree that is not shared is used as a shared one");
    return s;
}

const cJSON *df_shared_new(cJSON *tree)
{
    struct shared *s = tree ? malloc(sizeof(*s)) : NULL;
    if (!s) {
        cJSON_Delete(tree);
        return NULL;
    }
    *s = (struct shared){.mark = MARK, .references = 1, .root = {.type = tree->type}};
    s->root.child = DF_TAKE(tree->child);
    cJSON_Delete(tree); /* with its name, if it was a member */
    return &s->root;
}

const cJSON *df_shared_add(const cJSON *shared)
{
    (void)__atomic_add_fetch(&of_root(shared)->references, 1, __ATOMIC_RELAXED);
    return shared;
}

static bool is_last(struct shared *s)
{
    return __atomic_sub_fetch(&s->references, 1, __ATOMIC_ACQ_REL) == 0;
}

void df_shared_drop(const cJSON *shared)
{
    struct shared *s = shared ? of_root(shared) : NULL;
    if (!s || !is_last(s))
        return;
    __atomic_store_n(&s->mark, 0,
                     __ATOMIC_RELAXED); /* not left out, though nobody may look again */
    cJSON_Delete(s->root.child);
    free(s);
}

/* Moves the members of the last reference to a root of their own. */
static cJSON *unshare(struct shared *s)
{
    cJSON *tree = cJSON_IsArray(&s->root) ? cJSON_CreateArray() : cJSON_CreateObject();
    if (tree)
        tree->child = DF_TAKE(s->root.child);
    df_shared_drop(&s->root);
    return tree;
}

cJSON *df_shared_own(const cJSON *shared)
{
    struct shared *s = shared ? of_root(shared) : NULL;
    if (!s)
        return NULL;
    /* Nobody can add a reference to the only one, which is the caller's. */
    if (__atomic_load_n(&s->references, __ATOMIC_ACQUIRE) == 1)
        return unshare(s);
    cJSON *copy = cJSON_Duplicate(shared, true);
    df_shared_drop(shared);
    return copy;
}
