/*
 * The audit trail in SQLite: a table with one row for each entry, and one with the members that
 * filters are about. Without a filter the trail is read in the order of its ids, with one in the
 * order of its times.
 */
#include "spawner/store/documents/audit_rows.h"

#include "common/base/clock.h"
#include "common/base/limits.h"

/* NULL if the row is damaged. */
#define MEMBER(name) "CASE WHEN json_valid(body) THEN json_extract(body, '$." name "') END"

/* Of a row that begins with id and hash. */
static struct df_audit_place place_of(sqlite3_stmt *q)
{
    return df_audit_place_at(sqlite3_column_int64(q, 0), (const char *)sqlite3_column_text(q, 1));
}

/* ---- adding --------------------------------------------------------------------------------- */

static int read_last(struct df_db *db, struct df_audit_place *ret, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT id, " MEMBER("hash") " FROM audit ORDER BY id DESC LIMIT 1", NULL,
                    &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    *ret = row ? place_of(q) : (struct df_audit_place){0};
    return 0;
}

#define WORD(which) DF_DB_T(df_json_str(entry, df_audit_word_name(which)))
static int insert(struct df_db *db, int64_t id, const cJSON *entry, struct df_err *err)
{
    DF_FREE char *text = df_json_print(entry);
    if (!text)
        return df_fail_oom(err);
    if (strlen(text) > DF_LIMIT_DOCUMENT)
        return df_fail(err, DF_ERR_LIMIT, "an audit entry is larger than %zu bytes",
                       DF_LIMIT_DOCUMENT);
    if (df_db_run(db, "INSERT INTO audit (id, body) VALUES (?1, ?2)",
                  DF_DB_ARGS(DF_DB_I(id), DF_DB_T(text)), err) < 0)
        return -1;
    return df_db_run(db, "INSERT INTO audit_words VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                     DF_DB_ARGS(DF_DB_T(df_json_text(entry, "at")), DF_DB_I(id),
                                WORD(DF_AUDIT_NAME), WORD(DF_AUDIT_ACTOR), WORD(DF_AUDIT_ACTION),
                                WORD(DF_AUDIT_KIND), WORD(DF_AUDIT_OUTCOME)),
                     err);
}

static int insert_link(struct df_db *db, cJSON *entry, struct df_audit_place *last,
                       const unsigned char *key, struct df_err *err)
{
    return df_check_alloc(entry, err) < 0 || df_audit_link(entry, last, key, err) < 0
               ? -1
               : insert(db, last->sequence, entry, err);
}

static int begin_chain(struct df_db *db, const unsigned char *key, struct df_audit_place *last,
                       struct df_err *err)
{
    DF_JSON cJSON *entry = NULL;
    if (df_audit_cut(last, 0, &entry, err) < 0)
        return -1;
    return insert_link(db, entry, last, key, err);
}

/* With one entry of a chain a trail is none of before it, whatever was done to the newest. */
static int is_unchained(struct df_db *db, const struct df_audit_place *last, bool *ret,
                        struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = last->hash[0] || !last->sequence;
    if (!row && (df_db_query(db,
                             "SELECT 1 FROM audit WHERE ifnull(" MEMBER("hash") ", " MEMBER(
                                 "sequence") ") IS NOT NULL LIMIT 1",
                             NULL, &q, err) < 0 ||
                 df_db_step(db, q, &row, err) < 0))
        return -1;
    *ret = !row;
    return 0;
}

int df_audit_rows_add(struct df_db *db, void *arg, struct df_err *err)
{
    const struct df_audit_addition *a = arg;
    struct df_audit_place last;
    bool unchained = false;
    if (read_last(db, &last, err) < 0 || is_unchained(db, &last, &unchained, err) < 0)
        return -1;
    if (unchained && !a->key)
        return insert(db, last.sequence + 1, a->entry, err);
    if (unchained && begin_chain(db, a->key, &last, err) < 0)
        return -1;
    DF_JSON cJSON *entry = cJSON_Duplicate(a->entry, true);
    return insert_link(db, entry, &last, a->key, err);
}

/* ---- reading -------------------------------------------------------------------------------- */

#define MAY_BE(n, member) " AND (?" #n " IS NULL OR w." member " = ?" #n ")"
static const char all_rows[] = "SELECT id, body FROM audit WHERE id < ?1 ORDER BY id DESC";
/* CROSS JOIN: the words come first. */
#define SOME_ROWS(index, first)                                                                    \
    "SELECT a.id, a.body FROM audit_words w " index " CROSS JOIN audit a ON a.id = w.id WHERE "    \
    "w.at >= ?1 AND w.at <= ?2 AND (w.at < ?2 OR w.id < ?3)" first MAY_BE(4, "name")               \
        MAY_BE(5, "actor") MAY_BE(6, "action") MAY_BE(7, "kind")                                   \
            MAY_BE(8, "outcome") " ORDER BY w.at DESC, w.id DESC"

/* By what has few entries, as a rule; else by time. */
static const char *sql_of(const struct df_audit_filter *f)
{
    const char *outcome = f->words[DF_AUDIT_OUTCOME];
    if (f->words[DF_AUDIT_NAME])
        return SOME_ROWS("INDEXED BY audit_words_name", " AND w.name = ?4");
    if (f->words[DF_AUDIT_ACTOR])
        return SOME_ROWS("INDEXED BY audit_words_actor", " AND w.actor = ?5");
    if (outcome && !df_streq(outcome, "done"))
        return SOME_ROWS("INDEXED BY audit_words_outcome", " AND w.outcome = ?8");
    return SOME_ROWS("", "");
}

/* The time of this entry; "" if it is not there. */
static int time_of(struct df_db *db, int64_t id, char out[DF_TIME_LEN], struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT " MEMBER("at") " FROM audit WHERE id = ?1", DF_DB_ARGS(DF_DB_I(id)),
                    &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    const char *at = row ? (const char *)sqlite3_column_text(q, 0) : NULL;
    (void)snprintf(out, DF_TIME_LEN, "%s", at ? at : "");
    return 0;
}

static int read_row(sqlite3_stmt *q, cJSON **ret, struct df_err *err)
{
    const char *text = (const char *)sqlite3_column_text(q, 1);
    if (!text)
        return df_fail_oom(err);
    if (df_json_parse(text, (size_t)sqlite3_column_bytes(q, 1), ret, NULL) < 0)
        *ret = df_json_object(DF_NUM("sequence", sqlite3_column_int64(q, 0)));
    return df_check_alloc(*ret, err);
}

static int read_rows(struct df_db *db, sqlite3_stmt *q, int limit, cJSON *page, int64_t *ret_last,
                     struct df_err *err)
{
    int64_t last = 0;
    size_t bytes = 0;
    for (int n = 0;; n++) {
        bool row = false;
        cJSON *entry = NULL;
        if (df_db_step(db, q, &row, err) < 0)
            return -1;
        if (!row || n == limit || bytes > DF_LIMIT_PAGE) {
            *ret_last = row ? last : 0;
            return 0;
        }
        if (read_row(q, &entry, err) < 0 || df_json_append(page, entry, err) < 0)
            return -1;
        last = sqlite3_column_int64(q, 0);
        bytes += (size_t)sqlite3_column_bytes(q, 1);
    }
}

static int list_filtered(struct df_db *db, const struct df_audit_filter *f, int64_t before,
                         int limit, cJSON *page, int64_t *ret_last, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    char end[DF_TIME_LEN] = "~"; /* after every time */
    bool goes_on = before < INT64_MAX;
    if (goes_on && time_of(db, before, end, err) < 0)
        return -1;
    bool from_until = f->until[0] && strcmp(f->until, end) < 0;
    if (df_db_query(db, sql_of(f),
                    DF_DB_ARGS(DF_DB_T(f->since), DF_DB_T(from_until ? f->until : end),
                               DF_DB_I(from_until ? 0 : before), DF_DB_T(f->words[DF_AUDIT_NAME]),
                               DF_DB_T(f->words[DF_AUDIT_ACTOR]),
                               DF_DB_T(f->words[DF_AUDIT_ACTION]), DF_DB_T(f->words[DF_AUDIT_KIND]),
                               DF_DB_T(f->words[DF_AUDIT_OUTCOME])),
                    &q, err) < 0)
        return -1;
    return read_rows(db, q, limit, page, ret_last, err);
}

int df_audit_rows_list(struct df_db *db, const struct df_audit_filter *filter, int64_t before,
                       int limit, cJSON *page, int64_t *ret_last, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    if (filter)
        return list_filtered(db, filter, before, limit, page, ret_last, err);
    if (df_db_query(db, all_rows, DF_DB_ARGS(DF_DB_I(before)), &q, err) < 0)
        return -1;
    return read_rows(db, q, limit, page, ret_last, err);
}

int df_audit_rows_measure(struct df_db *db, int64_t *ret_count, int64_t *ret_bytes,
                          struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT count(*), ifnull(sum(length(body)), 0) FROM audit", NULL, &q, err) <
            0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    *ret_count = row ? sqlite3_column_int64(q, 0) : 0;
    *ret_bytes = row ? sqlite3_column_int64(q, 1) : 0;
    return 0;
}

/* ---- the end of the oldest ------------------------------------------------------------------ */

/* Times of one format are in order as texts. Before ?1 all go; before ?2 those that are not among
 * the newest ?3. The entries that go are the oldest, and no one among them stays: the chain would
 * have a hole. */
static const char find_first_kept[] = "SELECT id FROM audit WHERE NOT (" MEMBER(
    "at") " < ?1 OR (" MEMBER("at") " < ?2 AND id <= "
                                    "(SELECT max(id) FROM audit) - ?3)) ORDER BY id LIMIT 1";

static const char find_last_before[] =
    "SELECT id, " MEMBER("hash") ", (SELECT count(*) FROM audit WHERE id < ?1)"
                                 " FROM audit WHERE id < ?1 ORDER BY id DESC LIMIT 1";

static int first_kept(struct df_db *db, const struct df_audit_limits *limits, int64_t *ret,
                      struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    char before[DF_TIME_LEN], never_after[DF_TIME_LEN];
    bool row = false;
    (void)df_time_format(limits->before_us, before);
    (void)df_time_format(limits->keep ? limits->never_after_us : 0, never_after);
    if (df_db_query(db, find_first_kept,
                    DF_DB_ARGS(DF_DB_T(before), DF_DB_T(never_after), DF_DB_I(limits->keep)), &q,
                    err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    *ret = row ? sqlite3_column_int64(q, 0) : INT64_MAX;
    return 0;
}

/* Of those whose entries were removed before the begin of the chain, none tells where it begins. */
static const char find_checkpoint[] =
    "SELECT id, body FROM audit WHERE " MEMBER("checkpoint.hash") " > '' OR (" MEMBER(
        "checkpoint.hash") " = '' AND " MEMBER("action") " = 'begin') ORDER BY id DESC LIMIT 1";

/* *ret_begins: there is a checkpoint, and it is in *check. */
static int take_checkpoint(struct df_db *db, struct df_audit_check *check, bool *ret_begins,
                           struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    DF_JSON cJSON *entry = NULL;
    if (df_db_query(db, find_checkpoint, NULL, &q, err) < 0 ||
        df_db_step(db, q, ret_begins, err) < 0)
        return -1;
    if (!*ret_begins)
        return 0;
    return read_row(q, &entry, err) < 0 ? -1 : df_audit_check_cut(check, entry, err);
}

static int check_rows(struct df_db *db, struct df_audit_check *check, int64_t up_to,
                      struct df_err *err)
{
    for (int64_t before = up_to + 1; before;) {
        DF_JSON cJSON *page = cJSON_CreateArray();
        const cJSON *entry;
        if (df_check_alloc(page, err) < 0 ||
            df_audit_rows_list(db, NULL, before, 1000, page, &before, err) < 0)
            return -1;
        cJSON_ArrayForEach (entry, page)
            if (df_audit_check_next(check, entry, err) < 0)
                return -1;
    }
    df_audit_check_end(check);
    return 0;
}

/* Fails if what is to go is no whole end of the chain: a checkpoint would hide that. */
static int check_cut(struct df_db *db, const struct df_audit_place *cut, const unsigned char *key,
                     struct df_err *err)
{
    DF_AUDIT_CHECK check = {.key = key};
    struct df_audit_place last;
    bool begins = false, unchained = false;
    if (take_checkpoint(db, &check, &begins, err) < 0 || read_last(db, &last, err) < 0 ||
        (!begins && is_unchained(db, &last, &unchained, err) < 0))
        return -1;
    bool is_cut_already = begins && cut->sequence <= check.begin.sequence;
    if (!unchained && !is_cut_already && check_rows(db, &check, cut->sequence, err) < 0)
        return -1;
    return check.broken ? df_audit_fail_cut(&check, err) : 0;
}

int df_audit_rows_find_cut(struct df_db *db, const struct df_audit_limits *limits,
                           const unsigned char *key, struct df_audit_place *ret, int64_t *ret_count,
                           struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    struct df_audit_place cut;
    int64_t kept = 0;
    bool row = false;
    *ret_count = 0;
    if (first_kept(db, limits, &kept, err) < 0 ||
        df_db_query(db, find_last_before, DF_DB_ARGS(DF_DB_I(kept)), &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    if (!row)
        return 0;
    cut = place_of(q);
    if (check_cut(db, &cut, key, err) < 0)
        return -1;
    *ret = cut;
    *ret_count = sqlite3_column_int64(q, 2);
    return 0;
}

int df_audit_rows_remove(struct df_db *db, void *arg, struct df_err *err)
{
    static const char batch[] = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id <= ?1"
                                " ORDER BY id LIMIT 1000) RETURNING id";
    struct df_audit_removal *r = arg;
    DF_DB_STMT sqlite3_stmt *q = NULL;
    int64_t n = 0;
    if (df_db_query(db, batch, DF_DB_ARGS(DF_DB_I(r->up_to)), &q, err) < 0)
        return -1;
    for (bool row = true; row; n += row)
        if (df_db_step(db, q, &row, err) < 0)
            return -1;
    r->count = n;
    return n ? 0
             : df_db_run(db, "DELETE FROM audit_words WHERE id <= ?1",
                         DF_DB_ARGS(DF_DB_I(r->up_to)), err);
}
