/*
 * blocks.c - first how the scanners of both syntaxes (native.c, json.c) add blocks and attributes,
 * within the limits; then the questions about a module. Attributes are stored only for the blocks
 * and names that a question needs: as "name=value", or as "name" if the scanner gives no value.
 */
#include "common/hcl/blocks.h"

#include "common/base/limits.h"

static void block_free(struct df_hcl_block *b)
{
    free(b->type);
    free(b->file);
    df_strs_free(&b->labels);
    df_strs_free(&b->attributes);
}

void df_hcl_free(struct df_hcl_module *m)
{
    for (size_t i = 0; i < m->len; i++)
        block_free(&m->blocks[i]);
    free(m->blocks);
    *m = (struct df_hcl_module){0};
}

static int grow_blocks(struct df_hcl_module *m, struct df_err *err)
{
    if (m->len < m->cap)
        return 0;
    size_t cap = m->cap ? m->cap * 2 : 16;
    struct df_hcl_block *blocks = reallocarray(m->blocks, cap, sizeof(*blocks));
    if (!blocks)
        return df_fail_oom(err);
    m->blocks = blocks;
    m->cap = cap;
    return 0;
}

struct df_hcl_block *df_hcl_add(struct df_hcl_module *m, const char *file, unsigned line,
                                const char *type, size_t n, struct df_err *err)
{
    if (m->len >= DF_LIMIT_HCL_BLOCKS) {
        (void)df_fail(err, DF_ERR_LIMIT, "%s: the module has more than %d blocks", file,
                      DF_LIMIT_HCL_BLOCKS);
        return NULL;
    }
    if (grow_blocks(m, err) < 0)
        return NULL;
    struct df_hcl_block b = {.type = strndup(type, n), .file = strdup(file), .line = line};
    if (!b.type || !b.file) {
        block_free(&b);
        (void)df_fail_oom(err);
        return NULL;
    }
    m->blocks[m->len] = b;
    return &m->blocks[m->len++];
}

bool df_hcl_is_state_block(const char *type, size_t n)
{
    return (n == 7 && memcmp(type, "backend", n) == 0) || (n == 5 && memcmp(type, "cloud", n) == 0);
}

bool df_hcl_keeps_attributes(const struct df_hcl_block *b)
{
    return b->in_terraform || df_streq(b->type, "variable") || df_streq(b->type, "module");
}

/* The arguments of a call are many, and not needed. */
static bool is_kept(const struct df_hcl_block *b, const char *name, size_t n)
{
    static const char source[] = "source";
    return !df_streq(b->type, "module") || (n == strlen(source) && memcmp(name, source, n) == 0);
}

int df_hcl_add_attribute(struct df_hcl_block *b, const char *name, size_t name_len,
                         const char *value, size_t value_len, struct df_err *err)
{
    if (!is_kept(b, name, name_len))
        return 0;
    if (b->attributes.len >= DF_LIMIT_HCL_ATTRIBUTES)
        return df_fail(err, DF_ERR_LIMIT, "%s, line %u: the block has more than %d attributes",
                       b->file, b->line, DF_LIMIT_HCL_ATTRIBUTES);
    (void)df_strs_addf(&b->attributes, "%.*s%s%.*s", (int)name_len, name, value ? "=" : "",
                       value ? (int)value_len : 0, value ? value : "");
    return df_strs_check(&b->attributes, err);
}

bool df_hcl_is_plain(const char *text, size_t n)
{
    return !memchr(text, '\\', n) && !memchr(text, '\0', n) && !memmem(text, n, "${", 2) &&
           !memmem(text, n, "%{", 2);
}

const char *df_hcl_attribute(const struct df_hcl_block *b, const char *name)
{
    return df_strs_get_env(&b->attributes, name);
}

bool df_hcl_has_attribute(const struct df_hcl_block *b, const char *name)
{
    return df_strs_has(&b->attributes, name) || df_hcl_attribute(b, name);
}

static bool declares(const struct df_hcl_block *b, const char *name)
{
    return df_streq(b->type, "variable") && b->labels.len && df_streq(b->labels.items[0], name);
}

/* An override file, which comes last, may set another type. */
bool df_hcl_takes_text(const struct df_hcl_module *m, const char *name)
{
    bool text = true;
    for (size_t i = 0; i < m->len; i++) {
        const struct df_hcl_block *b = &m->blocks[i];
        if (!declares(b, name) || !df_hcl_has_attribute(b, "type"))
            continue;
        const char *type = df_hcl_attribute(b, "type");
        text = df_streq(type, "string") || df_streq(type, "number") || df_streq(type, "bool");
    }
    return text;
}

/* HCL converts "1" and "true": only a plain false is certainly false. */
static bool may_be_true(const struct df_hcl_block *b, const char *name)
{
    const char *value = df_hcl_attribute(b, name);
    return value ? !df_streq(value, "false") : df_hcl_has_attribute(b, name);
}

bool df_hcl_is_sensitive(const struct df_hcl_block *b)
{
    return may_be_true(b, "sensitive") || may_be_true(b, "ephemeral");
}

const struct df_hcl_block *df_hcl_variable(const struct df_hcl_module *m, const char *name)
{
    for (size_t i = 0; m && i < m->len; i++)
        if (declares(&m->blocks[i], name))
            return &m->blocks[i];
    return NULL;
}

const struct df_hcl_block *df_hcl_sensitive(const struct df_hcl_module *m, const char *name)
{
    for (size_t i = 0; m && i < m->len; i++)
        if (declares(&m->blocks[i], name) && df_hcl_is_sensitive(&m->blocks[i]))
            return &m->blocks[i];
    return NULL;
}

const struct df_hcl_block *df_hcl_backend(const struct df_hcl_module *m)
{
    for (size_t i = m->len; i > 0; i--) {
        if (m->blocks[i - 1].in_terraform)
            return &m->blocks[i - 1];
    }
    return NULL;
}
