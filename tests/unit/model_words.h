/*
 * model_words.h - executors and what the model says of them, for its tests. Include behind
 * cmocka.h.
 */
#ifndef DF_TEST_MODEL_WORDS_H
#define DF_TEST_MODEL_WORDS_H

#include "spawner/model/model.h"
#include "tests/unit/json_words.h"

static inline cJSON *executor_of(const char *spec)
{
    cJSON *j = json("{'metadata':{'name':'net'}}");
    assert_int_equal(df_json_add(j, "spec", json(spec), NULL), 0);
    return j;
}

/* A whole executor whose spec has one more member, given as "'name': value". */
static inline cJSON *executor_with(const char *member)
{
    DF_FREE char *spec =
        df_strf("{'source':{'url':'file:///src'}%s%s}", *member ? "," : "", member);
    return executor_of(spec);
}

static inline cJSON *executor_from(const char *source)
{
    DF_FREE char *spec = df_strf("{'source':%s}", source);
    return executor_of(spec);
}

static inline void assert_admitted(enum df_kind kind, cJSON *j, const char *what)
{
    struct df_err err = {0};
    if (df_model_admit(kind, j, NULL, &err) < 0)
        fail_msg("%s: %s", what, err.message);
}

static inline void assert_refused(enum df_kind kind, cJSON *j, const char *what,
                                  const char *message)
{
    struct df_err err = {0};
    if (df_model_admit(kind, j, NULL, &err) == 0)
        fail_msg("accepted: %s", what);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.reason, "InvalidDocument");
    if (!strstr(err.message, message))
        fail_msg("%s: \"%s\" does not say \"%s\"", what, err.message, message);
}

#endif
