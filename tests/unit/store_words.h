/*
 * store_words.h - the words in which the suites of the store are written.
 *
 * A test program defines  static struct df_store *suite_open(const char *dir);  which opens the
 * store kept in dir (made when absent, fails the test otherwise), includes the suites, and puts
 * STORE_SUITE and STORE_CROWD_SUITE into its list of tests.
 */
#ifndef DF_TEST_STORE_WORDS_H
#define DF_TEST_STORE_WORDS_H

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/strs.h"
#include "spawner/store/store.h"
#include "tests/unit/scratch.h"

static struct df_store *suite_open(const char *dir);

static void cleanup_store(struct df_store **s)
{
    df_store_close(*s);
}
#define STORE DF_CLEANUP(cleanup_store) struct df_store

static cJSON *json(const char *text)
{
    struct df_err err = {0};
    cJSON *j = NULL;
    if (df_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return j;
}

static cJSON *document(const char *name, const char *labels, const char *spec)
{
    DF_FREE char *text =
        df_strf("{\"apiVersion\":\"dayfly.dev/v1alpha1\",\"metadata\":{\"name\":\"%s\","
                "\"namespace\":\"default\",\"labels\":%s},\"spec\":%s}",
                name, labels, spec);
    return json(text);
}

static cJSON *made(struct df_store *s, enum df_kind kind, const char *name, const char *labels,
                   const char *spec)
{
    struct df_err err = {0};
    DF_JSON cJSON *doc = document(name, labels, spec);
    cJSON *stored = NULL;
    if (df_store_create(s, kind, doc, &stored, &err) < 0)
        fail_msg("%s", err.message);
    return stored;
}

static void make(struct df_store *s, enum df_kind kind, const char *name, const char *labels)
{
    cJSON_Delete(made(s, kind, name, labels, "{}"));
}

static cJSON *got(struct df_store *s, enum df_kind kind, const char *name)
{
    struct df_err err = {0};
    cJSON *doc = NULL;
    if (df_store_get(s, kind, name, &doc, &err) < 0)
        fail_msg("%s", err.message);
    return doc;
}

static int64_t version_of(const cJSON *doc)
{
    const char *text = df_json_str(doc, "metadata.resourceVersion");
    assert_non_null(text);
    return strtoll(text, NULL, 10);
}

static void set_spec(cJSON *doc, const char *spec)
{
    assert_int_equal(df_json_set(doc, "spec", json(spec), NULL), 0);
}

static void assert_no_document(struct df_store *s, enum df_kind kind, const char *name)
{
    struct df_err err = {0};
    cJSON *doc = NULL;
    assert_int_equal(df_store_get(s, kind, name, &doc, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_null(doc);
    assert_non_null(strstr(err.message, name));
}

static void assert_refused(int result, const struct df_err *err, enum df_err_class cls,
                           const char *reason)
{
    assert_int_equal(result, -1);
    assert_int_equal(err->cls, cls);
    assert_string_equal(err->reason, reason);
}

/* The names of a list, joined by blanks; the caller frees. */
static char *names_of(const cJSON *list)
{
    DF_STRS struct df_strs names = {0};
    const cJSON *doc;
    cJSON_ArrayForEach (doc, list) {
        assert_int_equal(df_strs_add(&names, df_json_str(doc, "metadata.name")), 0);
    }
    return df_strs_join(&names, " ");
}

static void assert_list(struct df_store *s, struct df_store_list_options o, const char *want)
{
    struct df_err err = {0};
    DF_JSON cJSON *list = NULL;
    if (df_store_list(s, DF_KIND_RUN, &o, &list, NULL, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *names = names_of(list);
    assert_string_equal(names, want);
}

#endif
