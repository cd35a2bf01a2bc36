/*
 * The SQLite backend of the document store: one connection that writes, a few that read.
 */
#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/store/documents/audit_rows.h"
#include "spawner/store/documents/backend.h"
#include "spawner/store/documents/commits.h"
#include "spawner/store/documents/schema.h"
#include "spawner/store/documents/watchers.h"

#define READERS 4

struct sqlite_store {
    struct df_store base;
    struct df_watchers watchers;
    struct df_db *writer;
    struct df_commits commits; /* through writer */
    char *path;

    pthread_mutex_t pool;
    pthread_cond_t returned;
    struct df_db *idle[READERS]; /* opened when first needed; guarded by pool */
    size_t idle_count, open_count;
};

static struct sqlite_store *self(struct df_store *s)
{
    return (struct sqlite_store *)s;
}

/* ---- readers -------------------------------------------------------------------------------- */

static void return_reader(struct sqlite_store *s, struct df_db *db)
{
    (void)pthread_mutex_lock(&s->pool);
    if (db)
        s->idle[s->idle_count++] = db;
    else
        s->open_count--;
    (void)pthread_cond_signal(&s->returned);
    (void)pthread_mutex_unlock(&s->pool);
}

static int borrow_reader(struct sqlite_store *s, struct df_db **ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&s->pool);
    while (!s->idle_count && s->open_count == READERS)
        (void)pthread_cond_wait(&s->returned, &s->pool);
    struct df_db *db = s->idle_count ? s->idle[--s->idle_count] : NULL;
    if (!db)
        s->open_count++;
    (void)pthread_mutex_unlock(&s->pool);
    if (!db && df_db_open(s->path, DF_DB_CHECK_HEADER, &db, err) < 0) {
        return_reader(s, NULL);
        return -1;
    }
    *ret = db;
    return 0;
}

/* ---- rows and documents --------------------------------------------------------------------- */

/* Parses the document in column 1 of a row; column 0 is its order. */
static int parse_row(sqlite3_stmt *q, cJSON **ret, struct df_err *err)
{
    const char *text = (const char *)sqlite3_column_text(q, 1);
    if (!text)
        return df_fail_oom(err);
    if (df_json_parse(text, (size_t)sqlite3_column_bytes(q, 1), ret, err) < 0) {
        struct df_err why = {0};
        if (err)
            why = *err;
        return df_fail(err, DF_ERR_SYSTEM, "a stored document is damaged: %s", why.message);
    }
    return 0;
}

static const char select_by_name[] = "SELECT created, body FROM documents WHERE kind = ?1 AND "
                                     "name = ?2";
static const char select_by_uid[] = "SELECT created, body FROM documents WHERE kind = ?1 AND "
                                    "uid = ?2";

/* Reads one document; key is its name or its uid. ret_created may be NULL. */
static int load_document(struct df_db *db, const char *sql, enum df_kind kind, const char *key,
                         cJSON **ret, int64_t *ret_created, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, sql, DF_DB_ARGS(DF_DB_I(kind), DF_DB_T(key)), &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    if (!row)
        return df_store_fail_absent(kind, key, err);
    if (ret_created)
        *ret_created = sqlite3_column_int64(q, 0);
    return parse_row(q, ret, err);
}

static int look_at(struct df_store *store, const char *sql, enum df_kind kind, const char *key,
                   const cJSON **ret, struct df_err *err)
{
    struct df_db *db = NULL;
    cJSON *document = NULL;
    if (borrow_reader(self(store), &db, err) < 0)
        return -1;
    int result = load_document(db, sql, kind, key, &document, NULL, err);
    return_reader(self(store), db);
    if (result < 0)
        return -1;
    return df_check_alloc(*ret = df_shared_new(document), err);
}

static int look(struct df_store *store, enum df_kind kind, const char *name, const cJSON **ret,
                struct df_err *err)
{
    return look_at(store, select_by_name, kind, name, ret, err);
}

static int look_by_uid(struct df_store *store, enum df_kind kind, const char *uid,
                       const cJSON **ret, struct df_err *err)
{
    return look_at(store, select_by_uid, kind, uid, ret, err);
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Reads rows of (order, document) into a page. *ret_last is the order of its last row, 0 if no row
 * follows. */
static int read_page(struct df_db *db, sqlite3_stmt *q, int limit, cJSON *page, int64_t *ret_last,
                     struct df_err *err)
{
    int64_t last = 0;
    size_t bytes = 0;
    for (int n = 0;; n++) {
        bool row = false;
        if (df_db_step(db, q, &row, err) < 0)
            return -1;
        if (!row)
            break;
        bytes += (size_t)sqlite3_column_bytes(q, 1);
        if (n == limit || (n > 0 && bytes > DF_LIMIT_PAGE)) {
            *ret_last = last;
            return 0;
        }
        cJSON *doc = NULL;
        if (parse_row(q, &doc, err) < 0 || df_json_append(page, doc, err) < 0)
            return -1;
        last = sqlite3_column_int64(q, 0);
    }
    *ret_last = 0;
    return 0;
}

static int page_of(struct df_db *db, const char *sql, const struct df_db_arg *args, int limit,
                   cJSON **ret, char **ret_cursor, struct df_err *err)
{
    DF_JSON cJSON *page = cJSON_CreateArray();
    DF_DB_STMT sqlite3_stmt *q = NULL;
    int64_t last = 0;
    if (df_check_alloc(page, err) < 0 || df_db_query(db, sql, args, &q, err) < 0 ||
        read_page(db, q, limit, page, &last, err) < 0)
        return -1;
    if (df_page_cursor(last, ret_cursor, err) < 0)
        return -1;
    *ret = DF_TAKE(page);
    return 0;
}

#define NAMED " AND substr(d.name, 1, length(?2)) = ?2"
#define PAGE "SELECT d.created, d.body FROM documents d WHERE d.kind = ?1" NAMED " AND d.created "
/* CROSS JOIN fixes the order: SQLite must start with the few rows of the label. */
#define LABELLED_PAGE                                                                              \
    "SELECT d.created, d.body FROM labels l CROSS JOIN documents d ON d.created = l.created"       \
    " WHERE l.kind = ?1 AND l.label = ?4" NAMED " AND l.created "

static const char *list_sql(bool labelled, bool newest_first)
{
    static const char *const sql[2][2] = {
        {PAGE "> ?3 ORDER BY d.created", PAGE "< ?3 ORDER BY d.created DESC"},
        {LABELLED_PAGE "> ?3 ORDER BY l.created", LABELLED_PAGE "< ?3 ORDER BY l.created DESC"},
    };
    return sql[labelled][newest_first];
}

static int list(struct df_store *store, enum df_kind kind, const struct df_store_list_options *o,
                cJSON **ret, char **ret_cursor, struct df_err *err)
{
    static const struct df_store_list_options everything = {0};
    o = o ? o : &everything;
    int64_t start = 0;
    int limit = 0;
    struct df_db *db = NULL;
    if (df_page_start(o->cursor, o->newest_first, &start, err) < 0 ||
        df_page_limit(o->limit, &limit, err) < 0 || borrow_reader(self(store), &db, err) < 0)
        return -1;
    const struct df_db_arg args[] = {DF_DB_I(kind),
                                     DF_DB_T(o->name_prefix ? o->name_prefix : ""),
                                     DF_DB_I(start),
                                     /* Without a label the statement has no fourth parameter. */
                                     {o->label ? DF_DB_TEXT : DF_DB_END, 0, o->label},
                                     {DF_DB_END, 0, NULL}};
    int result =
        page_of(db, list_sql(o->label, o->newest_first), args, limit, ret, ret_cursor, err);
    return_reader(self(store), db);
    return result;
}

static int count_rows(struct df_db *db, enum df_kind kind, const char *label, int64_t *ret,
                      struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT count(*) FROM labels WHERE kind = ?1 AND label = ?2",
                    DF_DB_ARGS(DF_DB_I(kind), DF_DB_T(label)), &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    *ret = row ? sqlite3_column_int64(q, 0) : 0;
    return 0;
}

static int count(struct df_store *store, enum df_kind kind, const char *label, int64_t *ret,
                 struct df_err *err)
{
    struct df_db *db = NULL;
    if (borrow_reader(self(store), &db, err) < 0)
        return -1;
    int result = count_rows(db, kind, label, ret, err);
    return_reader(self(store), db);
    return result;
}

static int read_names(struct df_db *db, enum df_kind kind, const char *label, struct df_strs *to,
                      struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    if (df_db_query(db,
                    "SELECT d.name FROM labels l CROSS JOIN documents d ON d.created = l.created"
                    " WHERE l.kind = ?1 AND l.label = ?2",
                    DF_DB_ARGS(DF_DB_I(kind), DF_DB_T(label)), &q, err) < 0)
        return -1;
    for (bool row = true;;) {
        if (df_db_step(db, q, &row, err) < 0)
            return -1;
        if (!row)
            return df_strs_check(to, err);
        (void)df_strs_add(to, (const char *)sqlite3_column_text(q, 0));
    }
}

static int names(struct df_store *store, enum df_kind kind, const char *label, struct df_strs *to,
                 struct df_err *err)
{
    struct df_db *db = NULL;
    if (borrow_reader(self(store), &db, err) < 0)
        return -1;
    int result = read_names(db, kind, label, to, err);
    return_reader(self(store), db);
    return result;
}

static int audit_list(struct df_store *store, const struct df_audit_filter *filter,
                      const char *cursor, int limit, cJSON **ret, char **ret_cursor,
                      struct df_err *err)
{
    int64_t start = 0, last = 0;
    struct df_db *db = NULL;
    DF_JSON cJSON *page = cJSON_CreateArray();
    if (df_check_alloc(page, err) < 0 || df_page_start(cursor, true, &start, err) < 0 ||
        df_page_limit(limit, &limit, err) < 0 || borrow_reader(self(store), &db, err) < 0)
        return -1;
    int result = df_audit_rows_list(db, filter, start, limit, page, &last, err);
    return_reader(self(store), db);
    if (result < 0 || df_page_cursor(last, ret_cursor, err) < 0)
        return -1;
    *ret = DF_TAKE(page);
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* One write: its parameters and its result. */
struct change {
    enum df_change what;
    enum df_kind kind;
    const char *name;
    const char *uid;  /* remove: precondition, or NULL */
    const cJSON *doc; /* create, update */
    cJSON *stored;    /* create, update: the stored document; owned */
    int64_t version;
};

static void cleanup_change(struct change *c)
{
    cJSON_Delete(c->stored);
}

/* Runs body in a transaction and notifies the watchers. If body returns 1, nothing changed and
 * nobody is notified. */
static int commit_change(struct sqlite_store *s, df_db_body body, struct change *c,
                         struct df_err *err)
{
    uint64_t sequence = 0;
    int result = df_commits_run(&s->commits, body, c, &sequence, err);
    if (result != 0)
        return result < 0 ? -1 : 0;
    char version[24];
    (void)snprintf(version, sizeof(version), "%lld", (long long)c->version);
    df_watchers_notify(&s->watchers, sequence,
                       &(struct df_store_event){c->what, c->kind, c->name, version});
    return 0;
}

static int next_version(struct df_db *db, int64_t *ret, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "UPDATE counter SET version = version + 1 RETURNING version", NULL, &q,
                    err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    *ret = row ? sqlite3_column_int64(q, 0) : 0;
    return row ? 0 : df_fail(err, DF_ERR_SYSTEM, "the database has lost its version counter");
}

/* Runs sql with (kind, label, created) for each label of the document. */
static int each_label(struct df_db *db, const char *sql, enum df_kind kind, int64_t created,
                      const cJSON *doc, struct df_err *err)
{
    const cJSON *label;
    cJSON_ArrayForEach (label, df_json_at(doc, "metadata.labels")) {
        DF_FREE char *text = df_strf("%s=%s", label->string, cJSON_GetStringValue(label));
        if (df_check_alloc(text, err) < 0 ||
            df_db_run(db, sql, DF_DB_ARGS(DF_DB_I(kind), DF_DB_T(text), DF_DB_I(created)), err) < 0)
            return -1;
    }
    return 0;
}

static int add_labels(struct df_db *db, enum df_kind kind, int64_t created, const cJSON *doc,
                      struct df_err *err)
{
    return each_label(db, "INSERT INTO labels VALUES (?1, ?2, ?3)", kind, created, doc, err);
}

static int drop_labels(struct df_db *db, enum df_kind kind, int64_t created, const cJSON *doc,
                       struct df_err *err)
{
    return each_label(db, "DELETE FROM labels WHERE kind = ?1 AND label = ?2 AND created = ?3",
                      kind, created, doc, err);
}

static int set_version(struct change *c, struct df_err *err)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)c->version);
    return df_json_set_str(df_json_object_at(c->stored, "metadata"), "resourceVersion", text, err);
}

/* ---- create --------------------------------------------------------------------------------- */

static int check_is_new(struct df_db *db, const struct change *c, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT 1 FROM documents WHERE kind = ?1 AND name = ?2",
                    DF_DB_ARGS(DF_DB_I(c->kind), DF_DB_T(c->name)), &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    return row ? df_backend_fail_exists(c->kind, c->name, err) : 0;
}

static int stamp_new(struct change *c, const char *uid, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(c->stored, "metadata");
    char now[DF_TIME_LEN];
    if (df_json_put(metadata, err, DF_STR("uid", uid), DF_NUM("generation", 1),
                    DF_STR("creationTimestamp", df_time_format(df_real_us(), now))) < 0)
        return -1;
    return set_version(c, err);
}

static int create_body(struct df_db *db, void *arg, struct df_err *err)
{
    struct change *c = arg;
    char uid[37];
    if (check_is_new(db, c, err) < 0 || next_version(db, &c->version, err) < 0 ||
        df_uuid(uid, err) < 0)
        return -1;
    c->stored = cJSON_Duplicate(c->doc, true);
    DF_FREE char *text = NULL;
    if (stamp_new(c, uid, err) < 0 || df_backend_print(c->kind, c->name, c->stored, &text, err) < 0)
        return -1;
    if (df_db_run(db, "INSERT INTO documents VALUES (?1, ?2, ?3, ?4, ?1, ?5)",
                  DF_DB_ARGS(DF_DB_I(c->version), DF_DB_I(c->kind), DF_DB_T(c->name), DF_DB_T(uid),
                             DF_DB_T(text)),
                  err) < 0)
        return -1;
    return add_labels(db, c->kind, c->version, c->stored, err);
}

static int write_document(struct df_store *store, df_db_body body, struct change *c, cJSON **ret,
                          struct df_err *err)
{
    if (df_backend_name(c->doc, &c->name, err) < 0 || commit_change(self(store), body, c, err) < 0)
        return -1;
    if (ret)
        *ret = DF_TAKE(c->stored);
    return 0;
}

static int create(struct df_store *store, enum df_kind kind, const cJSON *doc, cJSON **ret,
                  struct df_err *err)
{
    DF_CLEANUP(cleanup_change)
    struct change c = {.what = DF_CHANGE_ADDED, .kind = kind, .doc = doc};
    return write_document(store, create_body, &c, ret, err);
}

/* ---- update --------------------------------------------------------------------------------- */

/* Keeps the fields that only the store sets; generation grows if the spec changes. */
static int stamp_changed(struct change *c, const cJSON *old, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(c->stored, "metadata");
    double generation = df_json_num(old, "metadata.generation", 1);
    if (!df_json_equal(df_json_at(c->stored, "spec"), df_json_at(old, "spec")))
        generation++;
    return df_json_put(metadata, err, DF_STR("uid", df_json_str(old, "metadata.uid")),
                       DF_NUM("generation", generation),
                       DF_STR("creationTimestamp", df_json_str(old, "metadata.creationTimestamp")));
}

static int replace_labels(struct df_db *db, const struct change *c, int64_t created,
                          const cJSON *old, struct df_err *err)
{
    if (df_json_equal(df_json_at(c->stored, "metadata.labels"), df_json_at(old, "metadata.labels")))
        return 0;
    if (drop_labels(db, c->kind, created, old, err) < 0)
        return -1;
    return add_labels(db, c->kind, created, c->stored, err);
}

static int update_body(struct df_db *db, void *arg, struct df_err *err)
{
    struct change *c = arg;
    DF_JSON cJSON *old = NULL;
    int64_t created = 0;
    if (load_document(db, select_by_name, c->kind, c->name, &old, &created, err) < 0)
        return -1;
    const struct df_backend_known known = {df_json_str(old, "metadata.resourceVersion"),
                                           df_json_str(old, "metadata.uid")};
    if (df_backend_check_unchanged(c->kind, c->doc, &known, err) < 0)
        return -1;
    c->stored = cJSON_Duplicate(c->doc, true);
    if (df_check_alloc(c->stored, err) < 0 || stamp_changed(c, old, err) < 0)
        return -1;
    if (df_json_equal(c->stored, old))
        return 1;
    DF_FREE char *text = NULL;
    if (next_version(db, &c->version, err) < 0 || set_version(c, err) < 0 ||
        df_backend_print(c->kind, c->name, c->stored, &text, err) < 0)
        return -1;
    if (df_db_run(db, "UPDATE documents SET version = ?1, body = ?2 WHERE created = ?3",
                  DF_DB_ARGS(DF_DB_I(c->version), DF_DB_T(text), DF_DB_I(created)), err) < 0)
        return -1;
    return replace_labels(db, c, created, old, err);
}

static int update(struct df_store *store, enum df_kind kind, const cJSON *doc, cJSON **ret,
                  struct df_err *err)
{
    DF_CLEANUP(cleanup_change)
    struct change c = {.what = DF_CHANGE_MODIFIED, .kind = kind, .doc = doc};
    return write_document(store, update_body, &c, ret, err);
}

/* ---- remove, audit -------------------------------------------------------------------------- */

static int remove_body(struct df_db *db, void *arg, struct df_err *err)
{
    struct change *c = arg;
    DF_JSON cJSON *old = NULL;
    int64_t created = 0;
    if (load_document(db, select_by_name, c->kind, c->name, &old, &created, err) < 0)
        return -1;
    if (c->uid && !df_streq(c->uid, df_json_str(old, "metadata.uid")))
        return df_backend_fail_other(c->kind, c->name, err);
    if (next_version(db, &c->version, err) < 0 || drop_labels(db, c->kind, created, old, err) < 0)
        return -1;
    return df_db_run(db, "DELETE FROM documents WHERE created = ?1", DF_DB_ARGS(DF_DB_I(created)),
                     err);
}

static int remove_document(struct df_store *store, enum df_kind kind, const char *name,
                           const char *uid, struct df_err *err)
{
    struct change c = {.what = DF_CHANGE_DELETED, .kind = kind, .name = name, .uid = uid};
    return commit_change(self(store), remove_body, &c, err);
}

static int audit(struct df_store *store, const cJSON *entry, struct df_err *err)
{
    struct df_audit_addition a = {entry, df_store_audit_key(store)};
    return df_commits_join(&self(store)->commits, df_audit_rows_add, &a, err);
}

static int audit_size(struct df_store *store, int64_t *ret_count, int64_t *ret_bytes,
                      struct df_err *err)
{
    struct df_db *db = NULL;
    if (borrow_reader(self(store), &db, err) < 0)
        return -1;
    int result = df_audit_rows_measure(db, ret_count, ret_bytes, err);
    return_reader(self(store), db);
    return result;
}

static int find_cut(struct sqlite_store *s, const struct df_audit_limits *limits,
                    struct df_audit_place *ret, int64_t *ret_count, struct df_err *err)
{
    struct df_db *db = NULL;
    if (borrow_reader(s, &db, err) < 0)
        return -1;
    int result =
        df_audit_rows_find_cut(db, limits, df_store_audit_key(&s->base), ret, ret_count, err);
    return_reader(s, db);
    return result;
}

/* The checkpoint first: when it is there, the chain begins behind the cut, whether or not the
 * entries before are all gone. */
static int audit_prune(struct df_store *store, const struct df_audit_limits *limits, bool dry_run,
                       int64_t *ret_count, struct df_err *err)
{
    struct sqlite_store *s = self(store);
    struct df_audit_place cut = {0};
    DF_JSON cJSON *entry = NULL;
    int64_t count = 0;
    if (find_cut(s, limits, &cut, &count, err) < 0)
        return -1;
    *ret_count = count;
    if (dry_run || !count)
        return 0;
    if (df_audit_cut(&cut, count, &entry, err) < 0 || audit(store, entry, err) < 0)
        return -1;
    struct df_audit_removal r = {.up_to = cut.sequence};
    do {
        if (df_commits_run(&s->commits, df_audit_rows_remove, &r, NULL, err) < 0)
            return -1;
    } while (r.count);
    return 0;
}

/* A personal token (vault/vault_tokens.h) that is revoked later must not come back with a copy. */
static int leave_out_tokens(const char *path, struct df_err *err)
{
    struct df_db *db = NULL;
    if (df_db_open(path, DF_DB_CHECK_HEADER, &db, err) < 0)
        return -1;
    int result = df_db_run(db, "DELETE FROM secrets WHERE name LIKE 'dayfly-tokens.%'", NULL, err);
    df_db_close(db);
    return result;
}

static int snapshot(struct df_store *store, const char *path, struct df_err *err)
{
    struct df_db *db = NULL;
    if (borrow_reader(self(store), &db, err) < 0)
        return -1;
    int result = df_db_copy(db, path, err);
    return_reader(self(store), db);
    return result < 0 ? -1 : leave_out_tokens(path, err);
}

/* ---- open and close ------------------------------------------------------------------------- */

static int watch(struct df_store *store, df_store_watcher fn, void *arg, struct df_err *err)
{
    return df_watchers_add(&self(store)->watchers, fn, arg, err);
}

static void unwatch(struct df_store *store, df_store_watcher fn, void *arg)
{
    df_watchers_remove(&self(store)->watchers, fn, arg);
}

static void close_store(struct df_store *store)
{
    struct sqlite_store *s = self(store);
    for (size_t i = 0; i < s->idle_count; i++)
        df_db_close(s->idle[i]);
    df_db_close(s->writer);
    df_watchers_free(&s->watchers);
    df_commits_free(&s->commits);
    (void)pthread_mutex_destroy(&s->pool);
    (void)pthread_cond_destroy(&s->returned);
    free(s->path);
    free(s);
}

static const struct df_store_ops sqlite_ops = {
    .close = close_store,
    .create = create,
    .look = look,
    .look_by_uid = look_by_uid,
    .list = list,
    .count = count,
    .names = names,
    .update = update,
    .remove = remove_document,
    .watch = watch,
    .unwatch = unwatch,
    .audit = audit,
    .audit_list = audit_list,
    .audit_size = audit_size,
    .audit_prune = audit_prune,
    .snapshot = snapshot,
};

int df_store_sqlite_open(const char *path, struct df_store **ret, struct df_err *err)
{
    struct sqlite_store *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    s->base.ops = &sqlite_ops;
    df_watchers_init(&s->watchers);
    (void)pthread_mutex_init(&s->pool, NULL);
    (void)pthread_cond_init(&s->returned, NULL);
    s->path = strdup(path);
    int result = s->path ? df_db_open(path, DF_DB_CHECK_ALL, &s->writer, err) : df_fail_oom(err);
    if (result == 0)
        result = df_db_make(s->writer, df_db_audit_words, err);
    df_commits_init(&s->commits, s->writer, &s->watchers);
    if (result < 0)
        close_store(&s->base);
    else
        *ret = &s->base;
    return result;
}
