#include "common/yaml/lines.h"

void df_yaml_lines_free(struct df_yaml_lines *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->len; i++)
        free(l->entries[i].key);
    free(l->entries);
    free(l);
}

int df_yaml_lines_add(struct df_yaml_lines *l, size_t parent, const char *key, size_t index,
                      unsigned line, size_t *ret, struct df_err *err)
{
    if (l->len == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        struct df_yaml_line_entry *grown = reallocarray(l->entries, cap, sizeof(*grown));
        if (!grown)
            return df_fail_oom(err);
        l->entries = grown;
        l->cap = cap;
    }
    char *copy = key ? strdup(key) : NULL;
    if (key && !copy)
        return df_fail_oom(err);
    l->entries[l->len] = (struct df_yaml_line_entry){parent, copy, index, line};
    *ret = l->len++;
    return 0;
}

unsigned df_yaml_lines_of_key(const struct df_yaml_lines *l, size_t parent, const char *key)
{
    for (size_t i = l->len; i-- > 0;)
        if (l->entries[i].parent == parent && df_streq(l->entries[i].key, key))
            return l->entries[i].line;
    return 0;
}

/* One step of a path: a key of n bytes, or an item's index when key is NULL. */
struct path_step {
    const char *key;
    size_t n;
    size_t index;
};

/* Takes the next step off the path: "key", ".key" or "[7]". False: the path is malformed. */
static bool next_step(const char **path, struct path_step *ret)
{
    const char *p = *path;
    if (*p == '[') {
        char *end = NULL;
        *ret = (struct path_step){.index = strtoul(p + 1, &end, 10)};
        *path = end + 1;
        return end > p + 1 && *end == ']';
    }
    if (*p == '.')
        p++;
    *ret = (struct path_step){.key = p, .n = strcspn(p, ".[")};
    *path = p + ret->n;
    return ret->n > 0;
}

static bool matches(const struct df_yaml_line_entry *e, const struct path_step *step)
{
    if (!step->key || !e->key)
        return !step->key && !e->key && e->index == step->index;
    return strncmp(e->key, step->key, step->n) == 0 && e->key[step->n] == '\0';
}

static size_t find_child(const struct df_yaml_lines *l, size_t parent, const struct path_step *step)
{
    for (size_t i = parent + 1; i < l->len; i++)
        if (l->entries[i].parent == parent && matches(&l->entries[i], step))
            return i;
    return SIZE_MAX;
}

unsigned df_yaml_line(const struct df_yaml_lines *l, const char *path)
{
    struct path_step step;
    if (!l || !l->len)
        return 0;
    size_t at = 0;
    while (*path) {
        if (!next_step(&path, &step))
            return 0;
        at = find_child(l, at, &step);
        if (at == SIZE_MAX)
            return 0;
    }
    return l->entries[at].line;
}
