/*
 * masks.c - values that were given, and contents of files; make_set() makes the redactor's set of
 * both. What was once read from a file stays masked when the file changes, because it may have been
 * printed. The set before the current one is freed when the next is made: a thread may still use
 * it.
 */
#include "runner/report/masks.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/json/json.h"

/* All owned. */
struct df_masks {
    struct df_strs values;
    struct df_strs files;    /* paths */
    struct df_strs contents; /* of files, all that were read, without newlines at their ends; and
                              * what was added */
    size_t masked;           /* so many of them are in the set */
    struct df_redact_set *set, *previous;
};

void df_masks_free(struct df_masks *m)
{
    if (!m)
        return;
    df_strs_wipe(&m->values);
    df_strs_free(&m->files);
    df_strs_wipe(&m->contents);
    df_redact_set_free(m->set);
    df_redact_set_free(m->previous);
    free(m);
}

static int add_all(struct df_strs *to, const struct df_strs *from, struct df_err *err)
{
    for (size_t i = 0; from && i < from->len; i++)
        (void)df_strs_add(to, from->items[i]);
    return df_strs_check(to, err);
}

static int make_set(struct df_masks *m, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs all = {0};
    struct df_redact_set *set = NULL;
    if (add_all(&all, &m->values, err) < 0 || add_all(&all, &m->contents, err) < 0 ||
        df_redact_set_new(&all, &set, err) < 0)
        return -1;
    df_redact_set_free(m->previous);
    m->previous = m->set;
    m->set = set;
    m->masked = m->contents.len;
    return 0;
}

/* Adds what the file holds, unless it is known. */
static int read_file(struct df_masks *m, const char *path, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    if (df_fs_read(path, &text, err) < 0)
        return -1;
    while (text.len && strchr("\r\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    if (!text.len || df_strs_has(&m->contents, df_buf_str(&text)))
        return 0;
    (void)df_strs_add(&m->contents, df_buf_str(&text));
    return df_strs_check(&m->contents, err);
}

static int read_first(struct df_masks *m, struct df_err *err)
{
    for (size_t i = 0; i < m->files.len; i++) {
        struct df_err why = {0};
        if (read_file(m, m->files.items[i], &why) < 0)
            return df_fail(err, DF_ERR_USER, "%s", why.message);
    }
    return 0;
}

int df_masks_new(const struct df_strs *values, const struct df_strs *files, struct df_masks **ret,
                 struct df_err *err)
{
    struct df_masks *m = calloc(1, sizeof *m);
    if (!m)
        return df_fail_oom(err);
    if (add_all(&m->values, values, err) < 0 || add_all(&m->files, files, err) < 0 ||
        read_first(m, err) < 0 || make_set(m, err) < 0) {
        df_masks_free(m);
        return -1;
    }
    *ret = m;
    return 0;
}

int df_masks_replace(struct df_masks *m, const struct df_strs *values, struct df_err *err)
{
    struct df_strs before = m->values;
    m->values = (struct df_strs){0};
    if (add_all(&m->values, values, err) < 0 || make_set(m, err) < 0) {
        df_strs_wipe(&m->values);
        m->values = before;
        return -1;
    }
    df_strs_wipe(&before);
    return 0;
}

int df_masks_renew(struct df_masks *m, bool *ret_changed, struct df_err *err)
{
    for (size_t i = 0; i < m->files.len; i++) {
        struct df_err why = {0};
        if (read_file(m, m->files.items[i], &why) < 0 && why.cls == DF_ERR_LIMIT)
            return df_err_pass(err, &why);
    }
    *ret_changed = m->contents.len > m->masked; /* also if an earlier try failed */
    return *ret_changed ? make_set(m, err) : 0;
}

static int add_json(cJSON *to, const struct df_strs *from, struct df_err *err)
{
    for (size_t i = 0; i < from->len; i++)
        if (df_json_append(to, cJSON_CreateString(from->items[i]), err) < 0)
            return -1;
    return 0;
}

int df_masks_save(const struct df_masks *m, const struct df_strs *values, const char *path,
                  struct df_err *err)
{
    DF_SECRET_JSON cJSON *all = cJSON_CreateArray();
    return df_check_alloc(all, err) < 0 || add_json(all, values, err) < 0 ||
                   add_json(all, &m->contents, err) < 0
               ? -1
               : df_json_save(path, all, err);
}

int df_masks_add(struct df_masks *m, const char *path, struct df_err *err)
{
    DF_SECRET_JSON cJSON *all = NULL;
    const cJSON *value;
    if (df_json_load(path, DF_LIMIT_REDACT_BYTES, &all, err) < 0)
        return -1;
    cJSON_ArrayForEach (value, all) {
        const char *text = cJSON_GetStringValue(value);
        if (!df_str_empty(text) && !df_strs_has(&m->values, text))
            (void)df_strs_add_new(&m->contents, text);
    }
    return df_strs_check(&m->contents, err);
}

int df_masks_add_value(struct df_masks *m, const char *value, struct df_err *err)
{
    (void)df_strs_add_new(&m->contents, value);
    return df_strs_check(&m->contents, err);
}

bool df_masks_may_change(const struct df_masks *m)
{
    return m->files.len > 0;
}

const struct df_redact_set *df_masks_set(const struct df_masks *m)
{
    return m->set;
}
