#include "common/base/strs.h"

#include <errno.h>
#include <stdarg.h>

#include "common/base/buf.h"

void df_strs_free(struct df_strs *v)
{
    for (size_t i = 0; i < v->len; i++)
        free(v->items[i]);
    free(v->items);
    *v = (struct df_strs){0};
}

void df_strs_wipe(struct df_strs *v)
{
    for (size_t i = 0; i < v->len; i++)
        explicit_bzero(v->items[i], strlen(v->items[i]));
    df_strs_free(v);
}

int df_strs_take(struct df_strs *v, char *s)
{
    if (!s || v->failed)
        goto fail;
    if (v->len + 2 > v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 8;
        char **items = reallocarray(v->items, cap, sizeof(*items));
        if (!items)
            goto fail;
        v->items = items;
        v->cap = cap;
    }
    v->items[v->len++] = s;
    v->items[v->len] = NULL;
    return 0;
fail:
    free(s);
    v->failed = ENOMEM;
    return -1;
}

int df_strs_add(struct df_strs *v, const char *s)
{
    return df_strs_take(v, s ? strdup(s) : NULL);
}

int df_strs_addf(struct df_strs *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = NULL;
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return df_strs_take(v, n < 0 ? NULL : s);
}

int df_strs_check(const struct df_strs *v, struct df_err *err)
{
    return v->failed ? df_fail_oom(err) : 0;
}

bool df_strs_has(const struct df_strs *v, const char *s)
{
    for (size_t i = 0; i < v->len; i++)
        if (strcmp(v->items[i], s) == 0)
            return true;
    return false;
}

bool df_strs_add_new(struct df_strs *v, const char *s)
{
    return !df_strs_has(v, s) && df_strs_add(v, s) == 0;
}

static bool is_env(const char *item, const char *name, size_t n)
{
    return strncmp(item, name, n) == 0 && item[n] == '=';
}

int df_strs_set_env(struct df_strs *v, const char *name, const char *value)
{
    char *s = df_strf("%s=%s", name, value);
    size_t n = strlen(name);
    for (size_t i = 0; s && i < v->len; i++) {
        if (is_env(v->items[i], name, n)) {
            free(v->items[i]);
            v->items[i] = s;
            return 0;
        }
    }
    return df_strs_take(v, s);
}

const char *df_strs_get_env(const struct df_strs *v, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < v->len; i++)
        if (is_env(v->items[i], name, n))
            return v->items[i] + n + 1;
    return NULL;
}

char *df_strs_join(const struct df_strs *v, const char *sep)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(SIZE_MAX / 4);
    for (size_t i = 0; i < v->len; i++) {
        if (i)
            (void)df_buf_adds(&b, sep);
        (void)df_buf_adds(&b, v->items[i]);
    }
    return df_buf_take(&b);
}
