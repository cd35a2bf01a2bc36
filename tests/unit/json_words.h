/*
 * json_words.h - documents in tests: JSON with ' for ", which reads better inside of C. Include
 * behind cmocka.h.
 */
#ifndef DF_TEST_JSON_WORDS_H
#define DF_TEST_JSON_WORDS_H

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

#endif
