/* The audit trail in SQLite: its chain, what breaks it, retention, and what can be asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/stat.h>

#include "spawner/model/audit_chain.h"
#include "spawner/store/store.h"
#include "tests/unit/database.h"
#include "tests/unit/json_words.h"
#include "tests/unit/killed.h"
#include "tests/unit/scratch.h"

static const unsigned char key[DF_KEY_LEN] = "a key of thirty-two bytes, or so";
static const unsigned char other_key[DF_KEY_LEN] = "another key of thirty-two bytes.";

static void cleanup_store(struct df_store **s)
{
    df_store_close(*s);
}
#define STORE DF_CLEANUP(cleanup_store) struct df_store

static struct df_store *opened(const char *dir)
{
    DF_FREE char *path = df_strf("%s/dayfly.db", dir);
    struct df_store *s = NULL;
    struct df_err err = {0};
    if (df_store_sqlite_open(path, &s, &err) < 0)
        fail_msg("%s", err.message);
    df_store_sign_audit(s, key);
    return s;
}

/* ---- words ---- */

static int64_t minute(int n)
{
    return INT64_C(1790000000000000) + n * INT64_C(60000000);
}

static void note_at(struct df_store *s, int n, const char *actor, const char *action,
                    const char *outcome)
{
    DF_FREE char *name = df_strf("net-%d", n);
    DF_JSON cJSON *entry = df_json_object(
        DF_TIME("at", minute(n)), DF_STR("actor", actor), DF_STR("role", "admin"),
        DF_STR("action", action), DF_STR("kind", n % 2 ? "Run" : "Executor"), DF_STR("name", name),
        DF_STR("outcome", outcome), DF_STR("detail", "two words"));
    struct df_err err = {0};
    if (df_store_audit(s, entry, &err) < 0)
        fail_msg("%s", err.message);
}

static void note(struct df_store *s, int n)
{
    note_at(s, n, "ann", "create", "done");
}

static void note_many(struct df_store *s, int n)
{
    for (int i = 1; i <= n; i++)
        note(s, i);
}

static cJSON *trail(struct df_store *s)
{
    cJSON *all = NULL;
    assert_int_equal(df_store_audit_list(s, NULL, NULL, 1000, &all, NULL, NULL), 0);
    return all;
}

/* What a check of these entries says. */
static cJSON *checked(const cJSON *entries, const unsigned char *with)
{
    DF_AUDIT_CHECK check = {.key = with};
    cJSON *report = NULL;
    const cJSON *entry;
    cJSON_ArrayForEach (entry, entries)
        assert_int_equal(df_audit_check_next(&check, entry, NULL), 0);
    df_audit_check_end(&check);
    assert_int_equal(df_audit_check_report(&check, &report, NULL), 0);
    return report;
}

static cJSON *verified(struct df_store *s)
{
    DF_JSON cJSON *all = trail(s);
    return checked(all, key);
}

static void assert_holds(struct df_store *s, int64_t entries)
{
    DF_JSON cJSON *report = verified(s);
    if (!df_json_bool(report, "verified", false))
        fail_msg("%s", df_json_str(report, "broken.message"));
    assert_int_equal(df_json_int(report, "entries", 0), entries);
}

static void assert_report_broken(const cJSON *report, int64_t sequence, const char *words)
{
    assert_false(df_json_bool(report, "verified", true));
    assert_int_equal(df_json_int(report, "broken.sequence", 0), sequence);
    if (!strstr(df_json_text(report, "broken.message"), words))
        fail_msg("%s", df_json_text(report, "broken.message"));
}

static void assert_broken(struct df_store *s, int64_t sequence, const char *words)
{
    DF_JSON cJSON *report = verified(s);
    assert_report_broken(report, sequence, words);
}

/* ---- the chain ---- */

static void a_hash_does_not_depend_on_the_order_of_members(void **state)
{
    (void)state;
    DF_JSON cJSON *a = json("{'b':{'y':[1,{'q':null,'p':'ä'}],'x':true},'a':'1'}");
    DF_JSON cJSON *b = json("{'hash':'x','a':'1','b':{'x':true,'y':[1,{'p':'ä','q':null}]}}");
    static const char text[] = "{\"a\":\"1\",\"b\":{\"x\":true,\"y\":[1,{\"p\":\"ä\",\"q\":null}]}}"
                               "before";
    char of_a[DF_SHA256_HEX], of_b[DF_SHA256_HEX], of_text[DF_SHA256_HEX];
    assert_int_equal(df_audit_hash(a, "before", of_a, NULL), 0);
    assert_int_equal(df_audit_hash(b, "before", of_b, NULL), 0);
    assert_int_equal(df_sha256_hex(text, strlen(text), of_text, NULL), 0);
    assert_string_equal(of_a, of_b);
    assert_string_equal(of_a, of_text);
}

static void entries_are_links_of_one_chain_also_after_a_restart(void **state)
{
    struct df_store *s = opened(*state);
    note_many(s, 3);
    df_store_close(s);
    STORE *again = opened(*state);
    note(again, 4);
    assert_holds(again, 4);
    DF_JSON cJSON *all = trail(again);
    assert_int_equal(df_json_int(all->child, "sequence", 0), 4);
    DF_JSON cJSON *report = verified(again);
    assert_string_equal(df_json_str(report, "newest.hash"), df_json_str(all->child, "hash"));
}

struct edit {
    const char *sql;
    int64_t sequence;
    const char *words;
};
static const struct edit edits[] = {
    {"UPDATE audit SET body = replace(body, 'ann', 'eve') WHERE id = 4", 4, "was changed"},
    {"UPDATE audit SET body = replace(body, 'two', 'ten') WHERE id = 1", 1, "was changed"},
    {"UPDATE audit SET body = replace(body, 'two', 'ten') WHERE id IN (2, 5)", 2, "was changed"},
    {"DELETE FROM audit WHERE id = 3", 3, "entry 3 is missing: before 4 comes 2"},
    {"DELETE FROM audit WHERE id <= 2", 2, "entry 2 is missing: the trail is cut there"},
    {"UPDATE audit SET body = (SELECT body FROM audit WHERE id = 2) WHERE id = 3", 2,
     "before entry 2 comes 2: the order was changed"},
    {"UPDATE audit SET body = json_remove(body, '$.hash') WHERE id = 3", 3, "no hash"},
    {"UPDATE audit SET body = 'nonsense' WHERE id = 5", 5, "no hash"},
    {"UPDATE audit SET body = json_set(body, '$.hash', 'nonsense') WHERE id = 6", 1, "newest"},
    {"UPDATE audit SET body = json_set(body, '$.hash', upper(body ->> '$.hash')) WHERE id = 6", 1,
     "newest"},
    {"UPDATE audit SET body = json_remove(body, '$.seal') WHERE id = 6", 6, "the seal of this"},
    {"UPDATE audit SET body = json_remove(body, '$.seal') WHERE id IN (3, 5)", 3, "the seal"},
    {"UPDATE audit SET body = json_set(body, '$.seal', '00') WHERE id = 1", 1, "the seal"},
    {"DELETE FROM audit", 1, "there is no entry"},
    {"INSERT INTO audit SELECT 7, body FROM audit WHERE id = 1", 1, "below entry 1, the first"},
    {"UPDATE audit SET id = -id", 1, "below entry 1, the first of the chain, comes 2"},
    {"UPDATE audit SET body = json_object('actor', 'ann') WHERE id = 1", 1, "no hash"},
    {"INSERT INTO audit VALUES (0, '{}')", 1, "below entry 1, the first of the chain, comes 0"},
};

static void whatever_is_done_to_the_rows_is_found_and_named(void **state)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(edits); i++) {
        DF_FREE char *dir = df_strf("%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0700), 0);
        STORE *s = opened(dir);
        note_many(s, 6);
        assert_holds(s, 6);
        execute(dir, edits[i].sql);
        assert_broken(s, edits[i].sequence, edits[i].words);
    }
}

static void a_service_with_a_damaged_entry_starts_and_goes_on(void **state)
{
    struct df_store *s = opened(*state);
    note_many(s, 2);
    df_store_close(s);
    execute(*state, "UPDATE audit SET body = 'nonsense' WHERE id = 1;"
                    "DROP TABLE audit_words");
    STORE *again = opened(*state);
    note(again, 3);
    assert_broken(again, 1, "no hash");
}

/* Computes the hashes from this entry on anew, as whoever has no key can. */
static void rewrite(const char *dir, struct df_store *s, int64_t from)
{
    DF_JSON cJSON *all = trail(s);
    struct df_audit_place last = {0};
    for (int i = cJSON_GetArraySize(all) - 1; i >= 0; i--) {
        cJSON *entry = cJSON_GetArrayItem(all, i);
        if (df_json_int(entry, "sequence", 0) < from) {
            last = df_audit_place_of(entry);
            continue;
        }
        assert_int_equal(df_json_set_str(entry, "actor", "eve", NULL), 0);
        assert_int_equal(df_audit_link(entry, &last, NULL, NULL), 0);
        DF_FREE char *text = df_json_print(entry);
        DF_FREE char *sql =
            df_strf("UPDATE audit SET body = '%s' WHERE id = %lld", text, (long long)last.sequence);
        execute(dir, sql);
    }
}

static void whoever_has_no_key_cannot_compute_the_chain_anew(void **state)
{
    STORE *s = opened(*state);
    note_many(s, 6);
    rewrite(*state, s, 4);
    assert_broken(s, 4, "entry 4 does not have the seal of this service");
    DF_JSON cJSON *all = trail(s), *without = checked(all, NULL);
    assert_true(df_json_bool(without, "verified", false));
}

static void what_was_done_to_the_newest_entry_begins_no_new_chain(void **state)
{
    static const struct edit newest[] = {
        {"UPDATE audit SET body = json_remove(body, '$.hash') WHERE id = 3", 3, "no hash"},
        {"UPDATE audit SET body = json_remove(body, '$.hash', '$.sequence') WHERE id = 3", 3,
         "no hash"},
        {"UPDATE audit SET body = json_set(body, '$.hash', 'x') WHERE id = 3", 3, "no hash"},
        {"UPDATE audit SET body = 'nonsense' WHERE id = 3", 3, "no hash"},
        {"UPDATE audit SET body = json_remove(body, '$.hash')", 3, "no hash"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(newest); i++) {
        DF_FREE char *dir = df_strf("%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0700), 0);
        STORE *s = opened(dir);
        note_many(s, 3);
        execute(dir, newest[i].sql);
        note(s, 4);
        assert_broken(s, newest[i].sequence, newest[i].words);
        DF_JSON cJSON *all = trail(s);
        assert_int_equal(cJSON_GetArraySize(all), 4);
    }
}

static void note_restore(struct df_store *s, const char *kind)
{
    DF_JSON cJSON *entry = df_json_object(DF_TIME("at", minute(9)), DF_STR("action", "restore"),
                                          DF_STR("kind", kind), DF_STR("name", "now"));
    assert_int_equal(df_store_audit(s, entry, NULL), 0);
}

static void a_restore_without_a_key_leaves_a_chain_that_holds(void **state)
{
    STORE *s = opened(*state);
    note_many(s, 2);
    s->signs = false;
    note_restore(s, "Backup");
    s->signs = true;
    note(s, 3);
    assert_holds(s, 4);
    s->signs = false;
    note_restore(s, "Run");
    s->signs = true;
    note(s, 4);
    assert_broken(s, 5, "the seal");
}

static void *note_ten(void *arg)
{
    for (int i = 1; i <= 10; i++)
        note(arg, i);
    return NULL;
}

static void writers_at_once_make_one_chain(void **state)
{
    STORE *s = opened(*state);
    pthread_t threads[8];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, note_ten, s), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_holds(s, 80);
}

static void note_for_ever(const struct child *c)
{
    struct df_store *s = opened(c->dir);
    for (uint32_t i = 1;; i++) {
        note(s, (int)i);
        acknowledge(c, i);
    }
}

static void a_writer_killed_in_the_middle_leaves_a_whole_chain(void **state)
{
    int64_t acknowledged = 0;
    for (int round = 0; round < 10; round++) {
        acknowledged += killed_child(*state, note_for_ever);
        STORE *s = opened(*state);
        note(s, 1);
        acknowledged++;
        DF_JSON cJSON *report = verified(s);
        assert_true(df_json_bool(report, "verified", false));
        assert_true(df_json_int(report, "entries", 0) >= acknowledged);
    }
}

/* ---- trails of before the chain ---- */

#define OLD_ROWS                                                                                   \
    "INSERT INTO audit (body) VALUES "                                                             \
    "('{\"at\":\"2026-01-01T00:00:00.000000Z\",\"actor\":\"old\"}'),"                              \
    "('{\"at\":\"2026-01-02T00:00:00.000000Z\",\"actor\":\"old\"}')"

static void the_chain_of_an_old_trail_begins_with_an_entry_that_says_so(void **state)
{
    STORE *s = opened(*state);
    execute(*state, OLD_ROWS);
    assert_broken(s, 1, "newest entry has no");
    note_many(s, 2);
    assert_holds(s, 3);
    DF_JSON cJSON *all = trail(s), *report = checked(all, key);
    assert_int_equal(cJSON_GetArraySize(all), 5);
    assert_int_equal(df_json_int(report, "older", 0), 2);
    const cJSON *begin = cJSON_GetArrayItem(all, 2);
    assert_string_equal(df_json_str(begin, "action"), "begin");
    assert_int_equal(df_json_int(begin, "sequence", 0), 3);
    assert_int_equal(df_json_int(begin, "checkpoint.sequence", 0), 2);
    DF_JSON cJSON *forged = checked(all, other_key);
    assert_report_broken(forged, 3, "the seal");
    DF_JSON cJSON *without = checked(all, NULL);
    assert_true(df_json_bool(without, "verified", false));
}

static void without_a_key_an_old_trail_goes_on_without_a_chain(void **state)
{
    STORE *s = opened(*state);
    execute(*state, OLD_ROWS);
    s->signs = false;
    note(s, 1);
    DF_JSON cJSON *all = trail(s);
    assert_int_equal(cJSON_GetArraySize(all), 3);
    assert_null(df_json_str(all->child, "hash"));
}

/* ---- retention ---- */

static int64_t prune(struct df_store *s, int64_t before_us, bool dry_run)
{
    int64_t count = -1;
    const struct df_audit_limits limits = {.before_us = before_us};
    struct df_err err = {0};
    if (df_store_audit_prune(s, &limits, dry_run, &count, &err) < 0)
        fail_msg("%s", err.message);
    return count;
}

static void retention_cuts_at_a_signed_checkpoint(void **state)
{
    STORE *s = opened(*state);
    note_many(s, 9);
    assert_int_equal(prune(s, minute(4), true), 3);
    assert_holds(s, 9);
    assert_int_equal(prune(s, minute(4), false), 3);
    assert_int_equal(prune(s, minute(4), false), 0);
    assert_holds(s, 7);
    DF_JSON cJSON *all = trail(s), *report = checked(all, key);
    assert_int_equal(df_json_int(report, "oldest.sequence", 0), 4);
    assert_int_equal(df_json_int(all->child, "checkpoint.sequence", 0), 3);
    note(s, 10);
    assert_int_equal(prune(s, minute(6), false), 2);
    assert_holds(s, 7);
}

static void a_trail_that_went_as_a_whole_goes_on_behind_its_checkpoint(void **state)
{
    STORE *s = opened(*state);
    note_many(s, 2500);
    assert_int_equal(prune(s, minute(3000), false), 2500);
    assert_holds(s, 1);
    note(s, 1);
    assert_holds(s, 2);
}

/* A crash between the checkpoint and the removal. */
static void what_is_below_a_checkpoint_may_still_be_there(void **state)
{
    STORE *s = opened(*state);
    note_many(s, 5);
    DF_JSON cJSON *all = trail(s), *cut = NULL;
    const struct df_audit_place place = df_audit_place_of(cJSON_GetArrayItem(all, 3));
    assert_int_equal(df_audit_cut(&place, 2, &cut, NULL), 0);
    assert_int_equal(df_store_audit(s, cut, NULL), 0);
    DF_JSON cJSON *report = verified(s);
    assert_true(df_json_bool(report, "verified", false));
    assert_int_equal(df_json_int(report, "older", 0), 2);
}

/* What is below a cut, after a crash, is still checked. */
static void nothing_can_be_put_below_a_cut(void **state)
{
    static const struct edit below[] = {
        {"INSERT INTO audit VALUES (0, '{}')", 0, "no hash"},
        {"INSERT INTO audit SELECT 1, json_set(body, '$.sequence', 1) FROM audit WHERE id = 3", 1,
         "the seal"},
        {"INSERT INTO audit SELECT 2, json_set(body, '$.sequence', 2) FROM audit WHERE id = 3", 2,
         "the seal"},
        {"INSERT INTO audit SELECT 2, json_set(body, '$.sequence', 2, '$.hash', (SELECT body ->> "
         "'$.checkpoint.hash' FROM audit WHERE id = 6)) FROM audit WHERE id = 3",
         2, "the seal"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(below); i++) {
        DF_FREE char *dir = df_strf("%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0700), 0);
        STORE *s = opened(dir);
        note_many(s, 5);
        assert_int_equal(prune(s, minute(3), false), 2);
        assert_holds(s, 4);
        execute(dir, below[i].sql);
        assert_broken(s, below[i].sequence ? below[i].sequence : 2, below[i].words);
    }
}

static void assert_keeps(struct df_store *s, int64_t before_us, const char *words)
{
    int64_t count = -1;
    const struct df_audit_limits limits = {.before_us = before_us};
    struct df_err err = {0};
    DF_JSON cJSON *before = trail(s);
    assert_int_equal(df_store_audit_prune(s, &limits, false, &count, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("%s", err.message);
    DF_JSON cJSON *after = trail(s);
    assert_true(cJSON_Compare(before, after, true));
}

static void what_was_edited_is_not_removed(void **state)
{
    static const struct edit old[] = {
        {"UPDATE audit SET body = json_set(body, '$.at', '2020-01-01T00:00:00.000000Z')"
         " WHERE id = 3",
         3, "entry 3 was changed"},
        {"UPDATE audit SET body = json_set(body, '$.at', '2020-01-01T00:00:00.000000Z')"
         " WHERE id > 2",
         3, "entry 3 was changed"},
        {"DELETE FROM audit WHERE id = 2", 2, "entry 2 is missing: before 3 comes 1"},
        {"DELETE FROM audit WHERE id = 1", 1, "entry 1 is missing"},
        {"UPDATE audit SET body = json_remove(body, '$.seal') WHERE id = 2", 2, "the seal"},
        {"UPDATE audit SET body = json_remove(body, '$.hash', '$.sequence', '$.seal') WHERE id < 4",
         3, "no hash"},
        {"UPDATE audit SET body = json_set(body, '$.checkpoint', json_object('sequence', 3, 'hash',"
         " (SELECT body ->> '$.hash' FROM audit WHERE id = 3))) WHERE id = 9",
         9, "entry 9"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(old); i++) {
        DF_FREE char *dir = df_strf("%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0700), 0);
        STORE *s = opened(dir);
        note_many(s, 9);
        execute(dir, old[i].sql);
        assert_keeps(s, minute(4), old[i].words);
        note(s, 10);
        assert_broken(s, old[i].sequence, old[i].words);
    }
}

static void what_follows_a_cut_is_not_removed_if_it_was_edited(void **state)
{
    STORE *s = opened(*state);
    note_many(s, 9);
    assert_int_equal(prune(s, minute(4), false), 3);
    execute(*state, "DELETE FROM audit WHERE id = 4");
    assert_keeps(s, minute(6), "entry 4 is missing");
}

static void entries_without_hashes_are_removed(void **state)
{
    STORE *s = opened(*state);
    execute(*state, OLD_ROWS ",('{\"at\":\"2026-01-03T00:00:00.000000Z\",\"actor\":\"old\"}')");
    assert_int_equal(prune(s, INT64_C(1767312000000000), false), 1); /* 2026-01-02 */
    DF_JSON cJSON *all = trail(s);
    assert_int_equal(cJSON_GetArraySize(all), 4);
    note(s, 1);
    assert_holds(s, 3);
    assert_int_equal(prune(s, minute(0), false), 2);
    assert_holds(s, 4);
    assert_int_equal(prune(s, minute(10000000), false), 4);
    assert_holds(s, 1);
}

static void whoever_has_no_key_cannot_cut(void **state)
{
    STORE *s = opened(*state);
    note_many(s, 5);
    df_store_sign_audit(s, other_key);
    assert_keeps(s, minute(4), "the seal");
    s->signs = false;
    assert_int_equal(prune(s, minute(4), false), 3);
    s->signs = true;
    df_store_sign_audit(s, key);
    assert_broken(s, 6, "the seal");
}

/* ---- what can be asked for ---- */

/* The numbers of the entries in their names, of pages of this size. */
static char *found(struct df_store *s, const struct df_audit_filter *f, int limit)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    DF_FREE char *cursor = NULL;
    do {
        DF_JSON cJSON *page = NULL;
        DF_FREE char *before = cursor;
        const cJSON *entry;
        cursor = NULL;
        assert_int_equal(df_store_audit_list(s, f, before, limit, &page, &cursor, NULL), 0);
        assert_true(cJSON_GetArraySize(page) <= limit);
        cJSON_ArrayForEach (entry, page)
            (void)df_buf_addf(&out, "%s%s", out.len ? " " : "", df_json_str(entry, "name") + 4);
    } while (cursor);
    return strdup(df_buf_str(&out));
}

#define NONE NULL
static const struct {
    const char *name, *value, *second, *second_value, *found;
} questions[] = {
    {"actor", "ann", NONE, NONE, "8 7 4 3"},
    {"actor", "bob", NONE, NONE, "6 5 2 1"},
    {"actor", "an", NONE, NONE, ""},
    {"actor", "ann' OR '1'='1", NONE, NONE, ""},
    {"action", "approve", NONE, NONE, "8 4"},
    {"kind", "Run", NONE, NONE, "7 5 3 1"},
    {"kind", "Run", "actor", "bob", "5 1"},
    {"name", "net-5", NONE, NONE, "5"},
    {"name", "net-5", "actor", "ann", ""},
    {"outcome", "refused", NONE, NONE, "6"},
    {"outcome", "done", "action", "approve", "8 4"},
    {"since", "2026-09-21T14:19:20Z", NONE, NONE, "8 7 6"},
    {"since", "2026-09-21T16:19:20+02:00", NONE, NONE, "8 7 6"},
    {"until", "2026-09-21T14:19:20Z", NONE, NONE, "5 4 3 2 1"},
    {"until", "2026-09-21T14:19:20Z", "actor", "ann", "4 3"},
    {"since", "2026-09-21T14:17:20Z", "until", "2026-09-21T14:20:20Z", "6 5 4"},
};

static void each_filter_finds_its_entries_page_by_page(void **state)
{
    STORE *s = opened(*state);
    for (int i = 1; i <= 8; i++)
        note_at(s, i, i % 4 == 0 || i % 4 == 3 ? "ann" : "bob", i % 4 ? "create" : "approve",
                i == 6 ? "refused" : "done");
    for (size_t i = 0; i < DF_ARRAY_SIZE(questions); i++) {
        struct df_audit_filter f = {0};
        assert_int_equal(df_audit_filter_set(&f, questions[i].name, questions[i].value, NULL), 0);
        if (questions[i].second)
            assert_int_equal(
                df_audit_filter_set(&f, questions[i].second, questions[i].second_value, NULL), 0);
        for (int limit = 1; limit < 10; limit += 3) {
            DF_FREE char *names = found(s, &f, limit);
            if (!df_streq(names, questions[i].found))
                fail_msg("%s=%s: %s", questions[i].name, questions[i].value, names);
        }
        DF_JSON cJSON *all = trail(s);
        const cJSON *entry;
        size_t n = 0;
        cJSON_ArrayForEach (entry, all)
            n += df_audit_filter_takes(&f, entry);
        DF_FREE char *names = found(s, &f, 100);
        size_t wanted = *names ? 1 : 0;
        for (const char *p = names; *p; p++)
            wanted += *p == ' ';
        assert_int_equal(n, wanted);
    }
}

static void filters_find_what_the_entries_say_after_a_restart(void **state)
{
    static const char *const edits_of_words[] = {
        "UPDATE audit_words SET actor = 'eve' WHERE id = 2",
        "UPDATE audit_words SET actor = NULL WHERE id = 2",
        "UPDATE audit_words SET at = '2020', id = 2 WHERE id = 2",
        "DELETE FROM audit_words WHERE id = 2",
        "DELETE FROM audit_words",
        "INSERT INTO audit_words (at, id, actor) VALUES ('2020', 2, 'ann')",
        "DROP TABLE audit_words",
    };
    struct df_audit_filter f = {0};
    assert_int_equal(df_audit_filter_set(&f, "actor", "ann", NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(edits_of_words); i++) {
        DF_FREE char *dir = df_strf("%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0700), 0);
        struct df_store *s = opened(dir);
        note_many(s, 3);
        df_store_close(s);
        execute(dir, edits_of_words[i]);
        STORE *again = opened(dir);
        DF_FREE char *names = found(again, &f, 10);
        assert_string_equal(names, "3 2 1");
    }
}

static void one_entry_among_many_is_found(void **state)
{
    STORE *s = opened(*state);
    struct df_audit_filter f = {0};
    note_at(s, 1, "ann", "approve", "done");
    for (int i = 2; i < 6000; i++)
        note_at(s, i, "ann", "create", i % 2 ? "done" : "refused");
    assert_int_equal(df_audit_filter_set(&f, "actor", "ann", NULL), 0);
    assert_int_equal(df_audit_filter_set(&f, "action", "approve", NULL), 0);
    DF_FREE char *names = found(s, &f, 10);
    assert_string_equal(names, "1");
}

static const struct {
    const char *name, *value, *words;
} refused[] = {
    {"actor", "", "must not be empty"},
    {"outcome", "Done", "\"Done\": must be done, refused, failed or canceled"},
    {"since", "yesterday", "\"yesterday\" is no RFC 3339 time"},
    {"until", "", "is no RFC 3339 time"},
};

static void a_filter_that_no_entry_can_have_is_refused(void **state)
{
    (void)state;
    struct df_audit_filter f = {0};
    struct df_err err = {0};
    DF_FREE char *long_name = malloc(300);
    assert_non_null(long_name);
    memset(long_name, 'x', 299);
    long_name[299] = '\0';
    for (size_t i = 0; i < DF_ARRAY_SIZE(refused); i++) {
        assert_int_equal(df_audit_filter_set(&f, refused[i].name, refused[i].value, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, refused[i].words))
            fail_msg("%s", err.message);
    }
    assert_int_equal(df_audit_filter_set(&f, "actor", long_name, &err), -1);
    assert_int_equal(df_audit_filter_set(&f, "since", "2026-01-02T00:00:00Z", &err), 0);
    assert_int_equal(df_audit_filter_set(&f, "until", "2026-01-01T00:00:00Z", &err), -1);
    assert_non_null(strstr(err.message, "is not before"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_hash_does_not_depend_on_the_order_of_members),
        scratch_test(entries_are_links_of_one_chain_also_after_a_restart),
        scratch_test(whatever_is_done_to_the_rows_is_found_and_named),
        scratch_test(a_service_with_a_damaged_entry_starts_and_goes_on),
        scratch_test(whoever_has_no_key_cannot_compute_the_chain_anew),
        scratch_test(what_was_done_to_the_newest_entry_begins_no_new_chain),
        scratch_test(a_restore_without_a_key_leaves_a_chain_that_holds),
        scratch_test(writers_at_once_make_one_chain),
        scratch_test(a_writer_killed_in_the_middle_leaves_a_whole_chain),
        scratch_test(the_chain_of_an_old_trail_begins_with_an_entry_that_says_so),
        scratch_test(without_a_key_an_old_trail_goes_on_without_a_chain),
        scratch_test(retention_cuts_at_a_signed_checkpoint),
        scratch_test(a_trail_that_went_as_a_whole_goes_on_behind_its_checkpoint),
        scratch_test(what_is_below_a_checkpoint_may_still_be_there),
        scratch_test(nothing_can_be_put_below_a_cut),
        scratch_test(what_was_edited_is_not_removed),
        scratch_test(what_follows_a_cut_is_not_removed_if_it_was_edited),
        scratch_test(entries_without_hashes_are_removed),
        scratch_test(whoever_has_no_key_cannot_cut),
        scratch_test(each_filter_finds_its_entries_page_by_page),
        scratch_test(filters_find_what_the_entries_say_after_a_restart),
        scratch_test(one_entry_among_many_is_found),
        scratch_test(a_filter_that_no_entry_can_have_is_refused),
    };
    return cmocka_run_group_tests_name("audit_trail", tests, NULL, NULL);
}
