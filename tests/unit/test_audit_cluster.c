/* The audit trail in a cluster: several replicas write one chain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>

#include "common/kube/kube.h"
#include "spawner/model/audit_chain.h"
#include "spawner/store/documents/audit.h"
#include "tests/unit/json_words.h"
#include "tests/unit/kube_memory.h"

static const unsigned char key[DF_KEY_LEN] = "a key of thirty-two bytes, or so";

struct cluster {
    struct kube_server server;
    struct kube_memory memory;
    struct df_kube *kube;
    struct df_audit *one, *two; /* of two replicas */
};

static struct df_audit *replica(const struct cluster *c)
{
    struct df_audit *a = NULL;
    assert_int_equal(df_audit_open(c->kube, "dayfly.dev", "build", &a, NULL), 0);
    return a;
}

static int enter(void **state)
{
    struct cluster *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    kube_memory_open(&c->memory, &c->server);
    c->kube = kube_client(&c->server);
    c->one = replica(c);
    c->two = replica(c);
    *state = c;
    return 0;
}

static int leave(void **state)
{
    struct cluster *c = *state;
    df_audit_close(c->one);
    df_audit_close(c->two);
    df_kube_free(c->kube);
    kube_memory_close(&c->memory, &c->server);
    free(c);
    return 0;
}

static void note(struct df_audit *a, const char *actor)
{
    DF_JSON cJSON *entry = df_json_object(DF_TIME("at", df_real_us()), DF_STR("actor", actor));
    struct df_err err = {0};
    if (df_audit_add(a, entry, key, &err) < 0)
        fail_msg("%s", err.message);
}

static void note_many(struct df_audit *a, const char *actor, int n)
{
    for (int i = 0; i < n; i++)
        note(a, actor);
}

/* All entries, read in pages of this size. */
static cJSON *trail(struct df_audit *a, int limit)
{
    cJSON *all = cJSON_CreateArray();
    DF_FREE char *cursor = NULL;
    do {
        DF_JSON cJSON *page = NULL;
        DF_FREE char *before = cursor;
        cursor = NULL;
        assert_int_equal(df_audit_list(a, NULL, before, limit, &page, &cursor, NULL), 0);
        while (page->child)
            assert_int_equal(
                df_json_append(all, cJSON_DetachItemViaPointer(page, page->child), NULL), 0);
    } while (cursor);
    return all;
}

static cJSON *checked(struct df_audit *a, int limit)
{
    DF_AUDIT_CHECK check = {.key = key};
    DF_JSON cJSON *all = trail(a, limit);
    cJSON *report = NULL;
    const cJSON *entry;
    cJSON_ArrayForEach (entry, all)
        assert_int_equal(df_audit_check_next(&check, entry, NULL), 0);
    df_audit_check_end(&check);
    assert_int_equal(df_audit_check_report(&check, &report, NULL), 0);
    return report;
}

static void assert_holds(struct df_audit *a, int64_t entries, int64_t older)
{
    for (int limit = 7; limit < 1000; limit *= 10) {
        DF_JSON cJSON *report = checked(a, limit);
        if (!df_json_bool(report, "verified", false))
            fail_msg("%s", df_json_str(report, "broken.message"));
        assert_int_equal(df_json_int(report, "entries", 0), entries);
        assert_int_equal(df_json_int(report, "older", 0), older);
    }
}

static void replicas_by_turns_write_one_chain(void **state)
{
    struct cluster *c = *state;
    for (int i = 0; i < 70; i++) {
        note(c->one, "one");
        note(c->two, "two");
    }
    assert_holds(c->one, 140, 0);
    struct df_audit *started = replica(c);
    note(started, "three");
    assert_holds(c->two, 141, 0);
    df_audit_close(started);
}

static void *write_fifty(void *arg)
{
    note_many(arg, "many", 50);
    return NULL;
}

static void replicas_at_once_write_one_chain(void **state)
{
    struct cluster *c = *state;
    pthread_t one, two;
    assert_int_equal(pthread_create(&one, NULL, write_fifty, c->one), 0);
    assert_int_equal(pthread_create(&two, NULL, write_fifty, c->two), 0);
    assert_int_equal(pthread_join(one, NULL), 0);
    assert_int_equal(pthread_join(two, NULL), 0);
    assert_holds(c->one, 100, 0);
}

/* ---- changed behind its back ---- */

static void put(struct cluster *c, const char *name, const char *entries)
{
    DF_FREE char *text = df_strf("{'apiVersion':'dayfly.dev/v1alpha1','kind':'AuditTrail',"
                                 "'metadata':{'name':'%s'},'entries':%s}",
                                 name, entries);
    DF_JSON cJSON *object = json(text);
    const struct df_kube_resource resource = {"dayfly.dev", "v1alpha1", "audittrails"};
    const struct df_kube_at at = {.resource = &resource, .name_space = "build"};
    assert_int_equal(df_kube_create(c->kube, &at, object, NULL, NULL), 0);
}

static void drop(struct cluster *c, const char *name)
{
    const struct df_kube_resource resource = {"dayfly.dev", "v1alpha1", "audittrails"};
    const struct df_kube_at at = {.resource = &resource, .name_space = "build", .name = name};
    const struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    assert_int_equal(df_kube_delete(c->kube, &at, &o, NULL), 0);
}

static void a_trail_of_an_older_dayfly_is_read_behind_the_chain(void **state)
{
    struct cluster *c = *state;
    put(c, "audit-000655c1aaaaaaaa-01234567",
        "[{'id':'1790000000000000123','entry':{'actor':'old-1'}},"
        "{'id':'1790000000000000999','entry':{'actor':'old-3'}}]");
    put(c, "audit-000655c1bbbbbbbb-01234567",
        "[{'id':'1790000000000000555','entry':{'actor':'old-2'}}]");
    note(c->one, "new");
    note(c->two, "new");
    assert_holds(c->one, 3, 3);
    DF_JSON cJSON *all = trail(c->one, 2);
    assert_int_equal(cJSON_GetArraySize(all), 6);
    assert_string_equal(df_json_str(cJSON_GetArrayItem(all, 2), "action"), "begin");
    assert_string_equal(df_json_str(cJSON_GetArrayItem(all, 3), "actor"), "old-3");
    assert_string_equal(df_json_str(cJSON_GetArrayItem(all, 4), "actor"), "old-2");
}

static void a_resource_that_was_deleted_leaves_a_hole_that_is_found(void **state)
{
    struct cluster *c = *state;
    note_many(c->one, "one", 150);
    drop(c, "audit-chain-000000000065");
    note(c->two, "two");
    DF_JSON cJSON *report = checked(c->one, 100);
    assert_false(df_json_bool(report, "verified", true));
    assert_int_equal(df_json_int(report, "broken.sequence", 0), 128);
}

static void the_newest_resource_is_missed_if_it_was_deleted(void **state)
{
    struct cluster *c = *state;
    note_many(c->one, "one", 70);
    drop(c, "audit-chain-000000000065");
    note(c->one, "one");
    DF_JSON cJSON *report = checked(c->one, 100);
    assert_false(df_json_bool(report, "verified", true));
    assert_int_equal(df_json_int(report, "broken.sequence", 0), 70);
}

static void a_full_trail_is_cut_at_a_signed_checkpoint(void **state)
{
    struct cluster *c = *state;
    for (int i = 0; i < DF_LIMIT_AUDIT_TRAILS - 2; i++) {
        DF_FREE char *name = df_strf("audit-other-%03d", i);
        put(c, name, "[]");
    }
    note_many(c->one, "one", 128); /* with the begin of the chain: of a third resource, too */
    assert_holds(c->two, 128 + 1 - 64 + 1, 0);
    DF_JSON cJSON *all = trail(c->two, 1000);
    assert_int_equal(df_json_int(all->child, "checkpoint.sequence", 0), 64);
    assert_string_equal(df_json_str(all->child, "action"), "remove");
}

static void edit_entry(struct cluster *c, const char *name, int n)
{
    const struct df_kube_resource resource = {"dayfly.dev", "v1alpha1", "audittrails"};
    const struct df_kube_at at = {.resource = &resource, .name_space = "build", .name = name};
    DF_JSON cJSON *object = NULL;
    assert_int_equal(df_kube_get(c->kube, &at, &object, NULL), 0);
    const cJSON *item = cJSON_GetArrayItem(df_json_at(object, "entries"), n);
    cJSON *entry = cJSON_GetObjectItemCaseSensitive(item, "entry");
    assert_int_equal(df_json_set_str(entry, "actor", "eve", NULL), 0);
    assert_int_equal(df_kube_update(c->kube, &at, object, NULL, NULL), 0);
}

static void what_was_edited_in_a_full_trail_is_not_removed(void **state)
{
    struct cluster *c = *state;
    for (int i = 0; i < DF_LIMIT_AUDIT_TRAILS - 2; i++) {
        DF_FREE char *name = df_strf("audit-other-%03d", i);
        put(c, name, "[]");
    }
    note_many(c->one, "one", 127); /* with the begin of the chain: two resources */
    edit_entry(c, "audit-chain-000000000001", 9);
    DF_JSON cJSON *entry = df_json_object(DF_STR("actor", "last"));
    struct df_err err = {0};
    assert_int_equal(df_audit_add(c->one, entry, key, &err), -1);
    if (!strstr(err.message, "entry 10 was changed"))
        fail_msg("%s", err.message);
    DF_JSON cJSON *report = checked(c->two, 1000);
    assert_int_equal(df_json_int(report, "broken.sequence", 0), 10);
    assert_int_equal(df_json_int(report, "entries", 0), 129);
}

static void what_replicas_write_has_seals(void **state)
{
    struct cluster *c = *state;
    note_many(c->one, "one", 3);
    DF_JSON cJSON *entry = df_json_object(DF_STR("actor", "eve"));
    assert_int_equal(df_audit_add(c->two, entry, NULL, NULL), 0);
    note(c->one, "one");
    DF_JSON cJSON *report = checked(c->one, 100);
    assert_int_equal(df_json_int(report, "broken.sequence", 0), 4);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(replicas_by_turns_write_one_chain),
        WITH(replicas_at_once_write_one_chain),
        WITH(a_trail_of_an_older_dayfly_is_read_behind_the_chain),
        WITH(a_resource_that_was_deleted_leaves_a_hole_that_is_found),
        WITH(the_newest_resource_is_missed_if_it_was_deleted),
        WITH(a_full_trail_is_cut_at_a_signed_checkpoint),
        WITH(what_was_edited_in_a_full_trail_is_not_removed),
        WITH(what_replicas_write_has_seals),
    };
    return cmocka_run_group_tests_name("audit_cluster", tests, NULL, NULL);
}
