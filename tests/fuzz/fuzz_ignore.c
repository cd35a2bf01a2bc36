/* A .terraformignore of any bytes, and a path: the rules hold together, and matching ends. */
#include "runner/source/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rules(const struct df_ignore *g)
{
    for (size_t i = 0; i < g->len; i++)
        if (!*g->rules[i].pattern || *g->rules[i].pattern == '\n')
            abort();
}

/* The first line is the path, the rest the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DF_IGNORE struct df_ignore g = {0};
    struct df_err err = {0};
    DF_FREE char *text = size < 4096 ? malloc(size + 1) : NULL;
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    size_t n = strcspn(text, "\n");
    DF_FREE char *path = strndup(text, n);
    if (!path)
        return 0;
    if (df_ignore_add(&g, "", text + n, &err) < 0 && !*err.message)
        abort();
    check_rules(&g);
    enum df_ignore_word file = df_ignore_of(&g, path, false);
    enum df_ignore_word directory = df_ignore_of(&g, path, true);
    if (!g.len && (file != DF_IGNORE_NOTHING || directory != DF_IGNORE_NOTHING))
        abort();
    return 0;
}
