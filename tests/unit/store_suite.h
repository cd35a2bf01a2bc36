/*
 * store_suite.h - what every home of the documents must do, written against store.h alone:
 * documents, lists, the audit trail. How to use it: store_words.h.
 */
#ifndef DF_TEST_STORE_SUITE_H
#define DF_TEST_STORE_SUITE_H

#include "tests/unit/store_words.h"

/* ---- one document --------------------------------------------------------------------------- */

static void a_new_document_gets_its_identity(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *doc = document("net", "{\"team\":\"a\"}", "{\"x\":1}");
    DF_JSON cJSON *before = cJSON_Duplicate(doc, true);
    DF_JSON cJSON *stored = NULL;
    assert_int_equal(df_store_create(s, DF_KIND_EXECUTOR, doc, &stored, &err), 0);
    assert_true(df_json_equal(doc, before));
    assert_int_equal(strlen(df_json_str(stored, "metadata.uid")), 36);
    assert_true(version_of(stored) > 0);
    assert_int_equal(df_json_int(stored, "metadata.generation", 0), 1);
    int64_t at = 0;
    assert_int_equal(df_time_parse(df_json_str(stored, "metadata.creationTimestamp"), &at, &err),
                     0);
    assert_int_equal(df_json_int(stored, "spec.x", 0), 1);
    DF_JSON cJSON *read = got(s, DF_KIND_EXECUTOR, "net");
    assert_true(df_json_equal(read, stored));
    DF_JSON cJSON *by_uid = NULL;
    assert_int_equal(df_store_get_by_uid(s, DF_KIND_EXECUTOR, df_json_str(stored, "metadata.uid"),
                                         &by_uid, &err),
                     0);
    assert_true(df_json_equal(by_uid, stored));
}

/* Also one that means something elsewhere in an object of Kubernetes. */
static void a_member_may_have_any_name(void **state)
{
    static const char spec[] =
        "{\"managedFields\":1,\"v\":{\"metadata\":{\"managedFields\":[2]},\"template\":3}}";
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *wanted = json(spec), *stored = made(s, DF_KIND_EXECUTOR, "net", "{}", spec);
    assert_true(df_json_equal(df_json_at(stored, "spec"), wanted));
    assert_int_equal(df_json_set_str(df_json_object_at(stored, "status"), "phase", "new", &err), 0);
    assert_int_equal(df_store_update(s, DF_KIND_EXECUTOR, stored, NULL, &err), 0);
    DF_JSON cJSON *read = got(s, DF_KIND_EXECUTOR, "net");
    assert_true(df_json_equal(df_json_at(read, "spec"), wanted));
}

static void identity_is_the_stores_to_give(void **state)
{
    STORE *s = suite_open(*state);
    DF_JSON cJSON *doc =
        json("{\"metadata\":{\"name\":\"net\",\"uid\":\"mine\",\"generation\":77,"
             "\"resourceVersion\":\"99\",\"creationTimestamp\":\"2001-01-01T00:00:00Z\"}}");
    DF_JSON cJSON *stored = NULL;
    assert_int_equal(df_store_create(s, DF_KIND_EXECUTOR, doc, &stored, NULL), 0);
    assert_string_not_equal(df_json_str(stored, "metadata.uid"), "mine");
    assert_int_equal(df_json_int(stored, "metadata.generation", 0), 1);
    assert_true(version_of(stored) != 99);
    assert_string_not_equal(df_json_str(stored, "metadata.creationTimestamp"),
                            "2001-01-01T00:00:00Z");
}

static void a_name_is_taken_once_a_kind(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    make(s, DF_KIND_RUN, "net", "{}");
    make(s, DF_KIND_EXECUTOR, "net", "{}");
    make(s, DF_KIND_TASK_ACTION, "net", "{}");
    DF_JSON cJSON *doc = document("net", "{}", "{\"other\":true}");
    assert_refused(df_store_create(s, DF_KIND_RUN, doc, NULL, &err), &err, DF_ERR_CONFLICT,
                   "AlreadyExists");
    DF_JSON cJSON *read = got(s, DF_KIND_RUN, "net");
    assert_null(df_json_at(read, "spec.other"));
}

static void a_document_without_a_proper_name_is_refused(void **state)
{
    static const char *const docs[] = {
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":{\"name\":\"\"}}",
        "{\"metadata\":{\"name\":7}}",
        "{\"metadata\":{\"name\":\"Net\"}}",
        "{\"metadata\":{\"name\":\"a/b\"}}",
        "{\"metadata\":{\"name\":\"a' OR '1'='1\"}}",
        ("{\"metadata\":{\"name\":"
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}}"),
    };
    STORE *s = suite_open(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(docs); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *doc = json(docs[i]);
        assert_refused(df_store_create(s, DF_KIND_RUN, doc, NULL, &err), &err, DF_ERR_USER, "");
        assert_refused(df_store_update(s, DF_KIND_RUN, doc, NULL, &err), &err, DF_ERR_USER, "");
    }
    assert_list(s, (struct df_store_list_options){0}, "");
}

static void what_does_not_exist_is_not_found(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    make(s, DF_KIND_RUN, "there", "{}");
    assert_no_document(s, DF_KIND_EXECUTOR, "there");
    assert_no_document(s, DF_KIND_RUN, "her");
    assert_no_document(s, DF_KIND_RUN, "%");
    DF_JSON cJSON *read = got(s, DF_KIND_RUN, "there");
    cJSON *none = NULL;
    assert_refused(
        df_store_get_by_uid(s, DF_KIND_EXECUTOR, df_json_str(read, "metadata.uid"), &none, &err),
        &err, DF_ERR_NOT_FOUND, "");
    DF_JSON cJSON *doc = json("{\"metadata\":{\"name\":\"gone\",\"resourceVersion\":\"1\"}}");
    assert_refused(df_store_update(s, DF_KIND_RUN, doc, NULL, &err), &err, DF_ERR_NOT_FOUND, "");
    assert_refused(df_store_remove(s, DF_KIND_RUN, "gone", NULL, &err), &err, DF_ERR_NOT_FOUND, "");
    cJSON *found = doc;
    assert_int_equal(df_store_find(s, DF_KIND_RUN, "gone", &found, NULL), 0);
    assert_null(found);
}

static void text_of_every_kind_comes_back_as_it_was(void **state)
{
    STORE *s = suite_open(*state);
    const char *spec = "{\"s\":\"\\u0001\\n\\\"\\\\ é 漢 \\ud83d\\ude00 '; DROP TABLE\",\"n\":"
                       "9007199254740991,\"f\":0.1,\"a\":[null,true,{}],\"\":[]}";
    cJSON_Delete(made(s, DF_KIND_RUN, "net", "{}", spec));
    DF_JSON cJSON *read = got(s, DF_KIND_RUN, "net");
    DF_JSON cJSON *want = json(spec);
    assert_true(df_json_equal(df_json_at(read, "spec"), want));
}

/* ---- update --------------------------------------------------------------------------------- */

static void an_update_needs_the_version_it_was_made_from(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *first = made(s, DF_KIND_RUN, "net", "{}", "{\"x\":1}");
    DF_JSON cJSON *second = cJSON_Duplicate(first, true);
    set_spec(first, "{\"x\":2}");
    set_spec(second, "{\"x\":3}");
    DF_JSON cJSON *stored = NULL;
    assert_int_equal(df_store_update(s, DF_KIND_RUN, first, &stored, &err), 0);
    assert_true(version_of(stored) > version_of(second));
    assert_refused(df_store_update(s, DF_KIND_RUN, second, NULL, &err), &err, DF_ERR_CONFLICT,
                   "Conflict");
    cJSON_DeleteItemFromObject(cJSON_GetObjectItem(second, "metadata"), "resourceVersion");
    assert_refused(df_store_update(s, DF_KIND_RUN, second, NULL, &err), &err, DF_ERR_USER, "");
    DF_JSON cJSON *read = got(s, DF_KIND_RUN, "net");
    assert_true(df_json_equal(read, stored));
    assert_int_equal(df_json_int(read, "spec.x", 0), 2);
}

static void an_update_of_another_document_of_that_name_is_refused(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *old = made(s, DF_KIND_RUN, "net", "{}", "{}");
    assert_int_equal(df_store_remove(s, DF_KIND_RUN, "net", NULL, &err), 0);
    DF_JSON cJSON *new = made(s, DF_KIND_RUN, "net", "{}", "{}");
    assert_string_not_equal(df_json_str(old, "metadata.uid"), df_json_str(new, "metadata.uid"));
    assert_true(version_of(new) > version_of(old));
    assert_refused(df_store_update(s, DF_KIND_RUN, old, NULL, &err), &err, DF_ERR_CONFLICT,
                   "Conflict");
    assert_int_equal(df_json_set_str(cJSON_GetObjectItem(new, "metadata"), "uid",
                                     df_json_str(old, "metadata.uid"), NULL),
                     0);
    assert_refused(df_store_update(s, DF_KIND_RUN, new, NULL, &err), &err, DF_ERR_CONFLICT,
                   "Conflict");
}

static void generation_grows_with_the_spec_alone(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *doc = made(s, DF_KIND_RUN, "net", "{}", "{\"x\":1}");
    DF_JSON cJSON *status = NULL, *spec = NULL;
    assert_int_equal(df_json_set(doc, "status", json("{\"phase\":\"Running\"}"), NULL), 0);
    assert_int_equal(df_store_update(s, DF_KIND_RUN, doc, &status, &err), 0);
    assert_int_equal(df_json_int(status, "metadata.generation", 0), 1);
    set_spec(status, "{\"x\":2}");
    assert_int_equal(df_store_update(s, DF_KIND_RUN, status, &spec, &err), 0);
    assert_int_equal(df_json_int(spec, "metadata.generation", 0), 2);
}

static void identity_cannot_be_changed_by_an_update(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *doc = made(s, DF_KIND_RUN, "net", "{}", "{\"x\":1}");
    DF_JSON cJSON *forged = cJSON_Duplicate(doc, true);
    DF_JSON cJSON *stored = NULL;
    cJSON *metadata = cJSON_GetObjectItem(forged, "metadata");
    assert_int_equal(df_json_set(metadata, "generation", cJSON_CreateNumber(50), NULL), 0);
    assert_int_equal(df_json_set_str(metadata, "creationTimestamp", "2001-01-01T00:00:00Z", NULL),
                     0);
    cJSON_DeleteItemFromObject(metadata, "uid");
    set_spec(forged, "{\"x\":2}");
    assert_int_equal(df_store_update(s, DF_KIND_RUN, forged, &stored, &err), 0);
    static const char *const kept[] = {"metadata.uid", "metadata.creationTimestamp"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(kept); i++)
        assert_string_equal(df_json_str(stored, kept[i]), df_json_str(doc, kept[i]));
    assert_int_equal(df_json_int(stored, "metadata.generation", 0), 2);
}

static void a_document_beyond_its_cap_is_refused_and_the_old_one_kept(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_FREE char *big = malloc(DF_LIMIT_DOCUMENT + 1);
    assert_non_null(big);
    memset(big, 'x', DF_LIMIT_DOCUMENT);
    big[DF_LIMIT_DOCUMENT] = '\0';
    DF_JSON cJSON *doc = document("big", "{}", "{}");
    assert_int_equal(df_json_add_str(cJSON_GetObjectItem(doc, "spec"), "x", big, NULL), 0);
    assert_refused(df_store_create(s, DF_KIND_RUN, doc, NULL, &err), &err, DF_ERR_LIMIT, "");
    assert_no_document(s, DF_KIND_RUN, "big");
    DF_JSON cJSON *small = made(s, DF_KIND_RUN, "small", "{}", "{}");
    DF_JSON cJSON *before = cJSON_Duplicate(small, true);
    assert_int_equal(df_json_add_str(cJSON_GetObjectItem(small, "spec"), "x", big, NULL), 0);
    assert_refused(df_store_update(s, DF_KIND_RUN, small, NULL, &err), &err, DF_ERR_LIMIT, "");
    DF_JSON cJSON *read = got(s, DF_KIND_RUN, "small");
    assert_true(df_json_equal(read, before));
}

/* ---- remove --------------------------------------------------------------------------------- */

static void a_removed_document_is_gone_from_everywhere(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *doc = made(s, DF_KIND_RUN, "net", "{\"a\":\"1\"}", "{}");
    make(s, DF_KIND_RUN, "other", "{\"a\":\"1\"}");
    assert_int_equal(df_store_remove(s, DF_KIND_RUN, "net", df_json_str(doc, "metadata.uid"), &err),
                     0);
    assert_no_document(s, DF_KIND_RUN, "net");
    cJSON *none = NULL;
    assert_refused(
        df_store_get_by_uid(s, DF_KIND_RUN, df_json_str(doc, "metadata.uid"), &none, &err), &err,
        DF_ERR_NOT_FOUND, "");
    assert_list(s, (struct df_store_list_options){.label = "a=1"}, "other");
}

static void a_remove_with_another_uid_is_refused(void **state)
{
    STORE *s = suite_open(*state);
    struct df_err err = {0};
    make(s, DF_KIND_RUN, "net", "{}");
    assert_refused(df_store_remove(s, DF_KIND_RUN, "net", "another", &err), &err, DF_ERR_CONFLICT,
                   "Conflict");
    cJSON_Delete(got(s, DF_KIND_RUN, "net"));
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void make_some_runs(struct df_store *s)
{
    make(s, DF_KIND_RUN, "net-2", "{\"dayfly.dev/executor\":\"net\"}");
    make(s, DF_KIND_EXECUTOR, "net", "{\"dayfly.dev/executor\":\"net\"}");
    make(s, DF_KIND_RUN, "db-1", "{\"dayfly.dev/executor\":\"db\",\"team\":\"x\"}");
    make(s, DF_KIND_RUN, "net-1", "{\"dayfly.dev/executor\":\"net\",\"team\":\"x\"}");
    make(s, DF_KIND_RUN, "net-10", "{\"dayfly.dev/executor\":\"net\"}");
}

static void lists_are_in_order_of_creation_and_can_be_narrowed(void **state)
{
    static const struct {
        struct df_store_list_options o;
        const char *want;
    } cases[] = {
        {{0}, "net-2 db-1 net-1 net-10"},
        {{.newest_first = true}, "net-10 net-1 db-1 net-2"},
        {{.label = "dayfly.dev/executor=net"}, "net-2 net-1 net-10"},
        {{.label = "dayfly.dev/executor=net", .newest_first = true}, "net-10 net-1 net-2"},
        {{.label = "team=x"}, "db-1 net-1"},
        {{.label = "team"}, ""},
        {{.label = "team=y"}, ""},
        {{.label = "team=x", .name_prefix = "net-"}, "net-1"},
        {{.name_prefix = "net-1"}, "net-1 net-10"},
        {{.name_prefix = "net-1", .newest_first = true}, "net-10 net-1"},
        {{.name_prefix = "net_"}, ""},
        {{.name_prefix = "%"}, ""},
        {{.name_prefix = ""}, "net-2 db-1 net-1 net-10"},
        {{.limit = 2}, "net-2 db-1"},
        {{.limit = 5000}, "net-2 db-1 net-1 net-10"},
    };
    STORE *s = suite_open(*state);
    make_some_runs(s);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        assert_list(s, cases[i].o, cases[i].want);
    DF_JSON cJSON *executors = NULL;
    assert_int_equal(df_store_list(s, DF_KIND_EXECUTOR, NULL, &executors, NULL, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(executors), 1);
}

static void documents_of_a_label_are_counted_and_named(void **state)
{
    static const struct {
        const char *label;
        int64_t want;
    } cases[] = {{"dayfly.dev/executor=net", 3}, {"team=x", 2}, {"team", 0}, {"team=y", 0}};
    STORE *s = suite_open(*state);
    make_some_runs(s);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        int64_t n = -1;
        assert_int_equal(df_store_count(s, DF_KIND_RUN, cases[i].label, &n, NULL), 0);
        assert_int_equal(n, cases[i].want);
        DF_STRS struct df_strs names = {0};
        assert_int_equal(df_store_names(s, DF_KIND_RUN, cases[i].label, &names, NULL), 0);
        assert_int_equal(names.len, cases[i].want);
        for (size_t k = 0; k < names.len; k++) {
            DF_JSON cJSON *run = NULL;
            assert_int_equal(df_store_get(s, DF_KIND_RUN, names.items[k], &run, NULL), 0);
            const char *equals = strchr(cases[i].label, '=');
            DF_FREE char *key = strndup(cases[i].label, (size_t)(equals - cases[i].label));
            const cJSON *labels = df_json_at(run, "metadata.labels");
            assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, key)),
                                equals + 1);
        }
    }
}

static void pages_put_together_are_the_whole_list(void **state)
{
    STORE *s = suite_open(*state);
    for (int i = 0; i < 25; i++) {
        DF_FREE char *name = df_strf("run-%d", i);
        make(s, DF_KIND_RUN, name, i % 2 ? "{\"odd\":\"yes\"}" : "{}");
    }
    for (int limit = 1; limit < 30; limit += 3) {
        for (int way = 0; way < 4; way++) {
            struct df_store_list_options o = {
                .limit = limit, .newest_first = way & 1, .label = way & 2 ? "odd=yes" : NULL};
            DF_FREE char *cursor = NULL;
            int total = 0, first = -1;
            do {
                DF_JSON cJSON *page = NULL;
                char *next = NULL;
                o.cursor = cursor;
                assert_int_equal(df_store_list(s, DF_KIND_RUN, &o, &page, &next, NULL), 0);
                assert_true(cJSON_GetArraySize(page) == limit || !next);
                assert_true(cJSON_GetArraySize(page) > 0);
                const cJSON *doc;
                cJSON_ArrayForEach (doc, page) {
                    int number = (int)strtol(df_json_str(doc, "metadata.name") + 4, NULL, 10);
                    if (first >= 0)
                        assert_true(o.newest_first ? number < first : number > first);
                    first = number;
                    total++;
                }
                free(cursor);
                cursor = next;
            } while (cursor);
            assert_int_equal(total, o.label ? 12 : 25);
        }
    }
}

static void a_page_goes_on_where_it_ended_although_documents_went(void **state)
{
    STORE *s = suite_open(*state);
    make_some_runs(s);
    struct df_store_list_options o = {.limit = 2};
    DF_JSON cJSON *page = NULL;
    DF_FREE char *cursor = NULL;
    assert_int_equal(df_store_list(s, DF_KIND_RUN, &o, &page, &cursor, NULL), 0);
    assert_non_null(cursor);
    assert_int_equal(df_store_remove(s, DF_KIND_RUN, "db-1", NULL, NULL), 0);
    make(s, DF_KIND_RUN, "new", "{}");
    assert_list(s, (struct df_store_list_options){.cursor = cursor}, "net-1 net-10 new");
}

static void a_foreign_cursor_or_limit_is_refused(void **state)
{
    static const char *const cursors[] = {"", "x", "-1", "0", "1 ", "99999999999999999999", "1e3"};
    STORE *s = suite_open(*state);
    make(s, DF_KIND_RUN, "net", "{}");
    struct df_err err = {0};
    cJSON *page = NULL;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cursors); i++) {
        struct df_store_list_options o = {.cursor = cursors[i]};
        assert_refused(df_store_list(s, DF_KIND_RUN, &o, &page, NULL, &err), &err, DF_ERR_USER, "");
        assert_refused(df_store_audit_list(s, NULL, cursors[i], 0, &page, NULL, &err), &err,
                       DF_ERR_USER, "");
    }
    struct df_store_list_options o = {.limit = -1};
    assert_refused(df_store_list(s, DF_KIND_RUN, &o, &page, NULL, &err), &err, DF_ERR_USER, "");
}

static void a_page_of_large_documents_ends_early_and_goes_on(void **state)
{
    STORE *s = suite_open(*state);
    DF_FREE char *big = malloc(DF_MIB);
    assert_non_null(big);
    memset(big, 'x', DF_MIB - 1000);
    big[DF_MIB - 1000] = '\0';
    DF_FREE char *spec = df_strf("{\"x\":\"%s\"}", big);
    for (int i = 0; i < 6; i++) {
        DF_FREE char *name = df_strf("big-%d", i);
        cJSON_Delete(made(s, DF_KIND_RUN, name, "{}", spec));
    }
    DF_JSON cJSON *page = NULL;
    DF_FREE char *cursor = NULL;
    assert_int_equal(df_store_list(s, DF_KIND_RUN, NULL, &page, &cursor, NULL), 0);
    DF_FREE char *names = names_of(page);
    assert_string_equal(names, "big-0 big-1 big-2 big-3");
    assert_list(s, (struct df_store_list_options){.cursor = cursor}, "big-4 big-5");
}

static void a_list_follows_the_labels_of_an_update(void **state)
{
    STORE *s = suite_open(*state);
    DF_JSON cJSON *doc = made(s, DF_KIND_RUN, "net", "{\"a\":\"1\",\"b\":\"2\"}", "{}");
    assert_int_equal(df_json_set(cJSON_GetObjectItem(doc, "metadata"), "labels",
                                 json("{\"b\":\"3\",\"c\":\"4\"}"), NULL),
                     0);
    assert_int_equal(df_store_update(s, DF_KIND_RUN, doc, NULL, NULL), 0);
    assert_list(s, (struct df_store_list_options){.label = "a=1"}, "");
    assert_list(s, (struct df_store_list_options){.label = "b=2"}, "");
    assert_list(s, (struct df_store_list_options){.label = "b=3"}, "net");
    assert_list(s, (struct df_store_list_options){.label = "c=4"}, "net");
}

/* ---- audit ---------------------------------------------------------------------------------- */

static void the_audit_trail_is_read_newest_first(void **state)
{
    STORE *s = suite_open(*state);
    for (int i = 0; i < 5; i++) {
        DF_FREE char *text = df_strf("{\"action\":\"a%d\",\"detail\":{\"n\":%d}}", i, i);
        DF_JSON cJSON *entry = json(text);
        assert_int_equal(df_store_audit(s, entry, NULL), 0);
    }
    DF_JSON cJSON *page = NULL, *rest = NULL;
    DF_FREE char *cursor = NULL;
    char *end = NULL;
    assert_int_equal(df_store_audit_list(s, NULL, NULL, 3, &page, &cursor, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(page), 3);
    assert_string_equal(df_json_str(cJSON_GetArrayItem(page, 0), "action"), "a4");
    assert_int_equal(df_json_int(cJSON_GetArrayItem(page, 2), "detail.n", 0), 2);
    assert_non_null(cursor);
    assert_int_equal(df_store_audit_list(s, NULL, cursor, 3, &rest, &end, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(rest), 2);
    assert_string_equal(df_json_str(cJSON_GetArrayItem(rest, 1), "action"), "a0");
    assert_null(end);
}

static void everything_is_there_after_reopening(void **state)
{
    struct df_store *s = suite_open(*state);
    DF_JSON cJSON *doc = made(s, DF_KIND_RUN, "net", "{\"a\":\"b\"}", "{\"x\":1}");
    DF_JSON cJSON *entry = json("{\"action\":\"create\"}");
    make(s, DF_KIND_RUN, "gone", "{}");
    assert_int_equal(df_store_remove(s, DF_KIND_RUN, "gone", NULL, NULL), 0);
    assert_int_equal(df_store_audit(s, entry, NULL), 0);
    df_store_close(s);

    STORE *again = suite_open(*state);
    DF_JSON cJSON *read = got(again, DF_KIND_RUN, "net");
    assert_true(df_json_equal(read, doc));
    assert_list(again, (struct df_store_list_options){.label = "a=b"}, "net");
    DF_JSON cJSON *trail = NULL;
    assert_int_equal(df_store_audit_list(again, NULL, NULL, 0, &trail, NULL, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(trail), 1);
    DF_JSON cJSON *next = made(again, DF_KIND_RUN, "gone", "{}", "{}");
    assert_true(version_of(next) >= version_of(doc) + 3);
}

#define STORE_SUITE                                                                                \
    scratch_test(a_new_document_gets_its_identity), scratch_test(a_member_may_have_any_name),      \
        scratch_test(identity_is_the_stores_to_give), scratch_test(a_name_is_taken_once_a_kind),   \
        scratch_test(a_document_without_a_proper_name_is_refused),                                 \
        scratch_test(what_does_not_exist_is_not_found),                                            \
        scratch_test(text_of_every_kind_comes_back_as_it_was),                                     \
        scratch_test(an_update_needs_the_version_it_was_made_from),                                \
        scratch_test(an_update_of_another_document_of_that_name_is_refused),                       \
        scratch_test(generation_grows_with_the_spec_alone),                                        \
        scratch_test(identity_cannot_be_changed_by_an_update),                                     \
        scratch_test(a_document_beyond_its_cap_is_refused_and_the_old_one_kept),                   \
        scratch_test(a_removed_document_is_gone_from_everywhere),                                  \
        scratch_test(a_remove_with_another_uid_is_refused),                                        \
        scratch_test(lists_are_in_order_of_creation_and_can_be_narrowed),                          \
        scratch_test(documents_of_a_label_are_counted_and_named),                                  \
        scratch_test(pages_put_together_are_the_whole_list),                                       \
        scratch_test(a_page_goes_on_where_it_ended_although_documents_went),                       \
        scratch_test(a_foreign_cursor_or_limit_is_refused),                                        \
        scratch_test(a_page_of_large_documents_ends_early_and_goes_on),                            \
        scratch_test(a_list_follows_the_labels_of_an_update),                                      \
        scratch_test(the_audit_trail_is_read_newest_first),                                        \
        scratch_test(everything_is_there_after_reopening)

#endif
