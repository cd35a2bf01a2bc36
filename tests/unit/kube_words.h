/*
 * kube_words.h - Kubernetes' objects in tests: JSON with ' for ", which reads better inside of C.
 * Include behind cmocka.h.
 */
#ifndef DF_TEST_KUBE_WORDS_H
#define DF_TEST_KUBE_WORDS_H

#include "common/json/json.h"

static inline cJSON *json(const char *text)
{
    struct df_err err = {0};
    cJSON *j = NULL;
    DF_FREE char *quoted = strdup(text);
    for (char *p = quoted; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    if (df_json_parse(quoted, strlen(quoted), &j, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return j;
}

static inline void assert_json(const cJSON *seen, const char *expected, const char *what)
{
    DF_JSON cJSON *wanted = json(expected);
    DF_FREE char *text = df_json_print(seen);
    if (!df_json_equal(seen, wanted))
        fail_msg("%s: %s\nis not %s", what, text, expected);
}

/* The member behind a path, as assert_json. */
static inline void assert_at(const cJSON *object, const char *path, const char *expected)
{
    const cJSON *seen = df_json_at(object, path);
    if (!seen)
        fail_msg("%s is not there", path);
    assert_json(seen, expected, path);
}

static inline void assert_message(const struct df_err *err, const char *part)
{
    if (!strstr(err->message, part))
        fail_msg("\"%s\" is not in \"%s\"", part, err->message);
}

/* The item whose name is this one. */
static inline const cJSON *named(const cJSON *object, const char *path, const char *name)
{
    const cJSON *list = df_json_at(object, path);
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
        if (df_streq(df_json_str(item, "name"), name))
            return item;
    return NULL;
}

/* A member whose key has dots and slashes. */
static inline const char *keyed(const cJSON *object, const char *path, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(df_json_at(object, path), key));
}

#endif
