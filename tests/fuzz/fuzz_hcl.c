/* The blocks of a module: any bytes, in both syntaxes, end in blocks that hold together. */
#include "common/hcl/hcl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void scan(const char *file, const char *text, size_t n)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    struct df_err err = {0};
    if (df_hcl_scan_text(file, text, n, &m, &err) < 0 && !*err.message)
        abort();
    for (size_t i = 0; i < m.len; i++) {
        const struct df_hcl_block *b = &m.blocks[i];
        if (!b->type || b->line < 1 || strcmp(b->file, file) != 0)
            abort();
        (void)df_hcl_is_sensitive(b);
        for (size_t k = 0; k < b->labels.len; k++) {
            if (strlen(b->labels.items[k]) > n)
                abort();
        }
    }
    (void)df_hcl_backend(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of its own, so that a read behind its end is seen. */
    DF_FREE char *text = malloc(size ? size : 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    scan("x.tf", text, size);
    scan("x.tf.json", text, size);
    return 0;
}
