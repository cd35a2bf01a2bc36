/*
 * kube_words.h - Kubernetes' objects in tests. Include behind cmocka.h.
 */
#ifndef DF_TEST_KUBE_WORDS_H
#define DF_TEST_KUBE_WORDS_H

#include "tests/unit/json_words.h"

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
