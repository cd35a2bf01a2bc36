/* What the runner reads of tofu's words: any bytes end somewhere, and what is made of them fits. */
#include "runner/tofu/failure.h"
#include "runner/tofu/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unlock_words(const char *what, const char *id, char out[DF_FAILURE_UNLOCK_MAX])
{
    (void)snprintf(out, DF_FAILURE_UNLOCK_MAX, "%s %s", what, id);
}

static const struct df_failure_advice elsewhere = {.unlock = unlock_words,
                                                   .credentials = "elsewhere"};

static void check_failure(const char *text)
{
    struct df_failure f;
    df_failure_from_text(text, &f);
    if (strlen(f.summary) >= sizeof f.summary || strlen(f.detail) >= sizeof f.detail)
        abort();
    struct df_err err = {0};
    if (df_failure_explain(&f, "tofu init", "InitFailed", strlen(text) % 2 ? &elsewhere : NULL,
                           &err) != -1 ||
        !*err.reason)
        abort();
}

static void check_version(const char *text)
{
    struct df_version v, again;
    struct df_constraint c;
    char out[DF_VERSION_TEXT];
    if (df_version_parse(text, &v, NULL) == 0 &&
        (df_version_parse(df_version_format(&v, out), &again, NULL) < 0 ||
         df_version_compare(&v, &again) != 0))
        abort();
    if (df_constraint_parse(text, &c, NULL) == 0 && df_constraint_exact(&c) &&
        !df_constraint_allows(&c, df_constraint_exact(&c)))
        abort();
}

/* A range is constraints, which can be printed and read again. */
static void check_range(const char *text)
{
    struct df_range r;
    if (df_range_parse(text, &r, NULL) < 0)
        return;
    for (size_t i = 0; i < r.n; i++) {
        struct df_constraint again;
        DF_FREE char *print = df_constraint_print(&r.any[i]);
        if (!print || df_constraint_parse(print, &again, NULL) < 0 || again.n != r.any[i].n)
            abort();
    }
    if (df_range_exact(&r) && !df_range_allows(&r, df_range_exact(&r)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DF_FREE char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_failure(text);
    check_version(text);
    check_range(text);
    return 0;
}
