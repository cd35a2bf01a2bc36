/*
 * The SQLite backend of the vault: secrets in the file of the documents, sealed under a key derived
 * from the key file.
 */
#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/store/documents/schema.h"
#include "spawner/store/vault/vault_backend.h"

/* This text is sealed when the database is created, so that a wrong key file is noticed at once. */
#define CHECK_AAD "check"
#define CHECK_TEXT "dayfly"

struct sealed_vault {
    struct df_vault vault;
    pthread_mutex_t lock;
    struct df_db *db;
    unsigned char key[DF_KEY_LEN]; /* encrypts the secrets */
};

static struct sealed_vault *sealed_of(struct df_vault *v)
{
    return (struct sealed_vault *)v; /* its first member */
}

/* ---- the key file --------------------------------------------------------------------------- */

static int read_check(struct df_db *db, struct df_buf *sealed, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT sealed FROM key_check", NULL, &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    if (row)
        (void)df_buf_add(sealed, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0));
    return df_buf_check(sealed, err);
}

static int write_check(struct sealed_vault *v, struct df_err *err)
{
    DF_BUF struct df_buf sealed = DF_BUF_INIT(100);
    if (df_aead_seal(v->key, CHECK_AAD, CHECK_TEXT, strlen(CHECK_TEXT), &sealed, err) < 0)
        return -1;
    return df_db_run(v->db, "INSERT INTO key_check VALUES (?1)",
                     DF_DB_ARGS(DF_DB_B(sealed.data, sealed.len)), err);
}

/* Loads the key file and checks that the database was sealed with it. */
static int load_keys(struct sealed_vault *v, const char *key_file, struct df_err *err)
{
    DF_BUF struct df_buf sealed = DF_BUF_INIT(100);
    DF_BUF struct df_buf text = DF_BUF_INIT(100);
    if (read_check(v->db, &sealed, err) < 0)
        return -1;
    if (sealed.len && !df_fs_exists(key_file))
        return df_fail(err, DF_ERR_SYSTEM,
                       "key file %s is missing: nothing sealed can be read without it; restore it "
                       "from a copy, or start with another --data-directory",
                       key_file);
    if (df_key_file(key_file, v->vault.master, err) < 0 ||
        df_derive_key(v->vault.master, "vault", v->key, err) < 0)
        return -1;
    if (!sealed.len)
        return write_check(v, err);
    if (df_aead_open(v->key, CHECK_AAD, sealed.data, sealed.len, &text, NULL) < 0)
        return df_fail(err, DF_ERR_SYSTEM,
                       "key file %s is not the one that this database is sealed with: restore the "
                       "right one from a copy, or start with another --data-directory",
                       key_file);
    return 0;
}

/* ---- additional data ------------------------------------------------------------------------ */

/* Returns the additional data that binds a sealed value to its name and key; the caller frees. */
static char *aad_of(const char *name, const char *key)
{
    return df_strf("secret/%s/%s", name, key);
}

/* ---- set ------------------------------------------------------------------------------------ */

/* One change of a secret. */
struct change {
    const char *name;
    const char *key;             /* NULL: none, or of a deletion: all */
    const struct df_buf *sealed; /* the value, if there is a key */
    const char *use;             /* JSON; NULL: as before */
};

/* *ret: the number of keys of this secret that are not c->key. */
static int count_others(struct df_db *db, const struct change *c, int64_t *ret, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(db, "SELECT count(*) FROM secrets WHERE name = ?1 AND key <> ?2",
                    DF_DB_ARGS(DF_DB_T(c->name), DF_DB_T(c->key ? c->key : "")), &q, err) < 0 ||
        df_db_step(db, q, &row, err) < 0)
        return -1;
    *ret = row ? sqlite3_column_int64(q, 0) : 0;
    return 0;
}

static int put_value(struct df_db *db, const struct change *c, struct df_err *err)
{
    return df_db_run(db, "INSERT OR REPLACE INTO secrets VALUES (?1, ?2, ?3, ?4)",
                     DF_DB_ARGS(DF_DB_T(c->name), DF_DB_T(c->key),
                                DF_DB_B(c->sealed->data, c->sealed->len), DF_DB_I(df_real_us())),
                     err);
}

static int put_body(struct df_db *db, void *arg, struct df_err *err)
{
    const struct change *c = arg;
    int64_t others = 0;
    if (count_others(db, c, &others, err) < 0)
        return -1;
    if (!c->key && !others)
        return df_vault_no_secret(c->name, NULL, err);
    if (c->key && others >= DF_LIMIT_SECRET_KEYS)
        return df_fail(err, DF_ERR_LIMIT, "secret \"%s\" has %d keys, which is the most", c->name,
                       DF_LIMIT_SECRET_KEYS);
    if (c->key && put_value(db, c, err) < 0)
        return -1;
    return c->use ? df_db_run(db, "INSERT OR REPLACE INTO secret_uses VALUES (?1, ?2)",
                              DF_DB_ARGS(DF_DB_T(c->name), DF_DB_T(c->use)), err)
                  : 0;
}

static int in_transaction(struct sealed_vault *v, df_db_body body, struct change *c,
                          struct df_err *err)
{
    (void)pthread_mutex_lock(&v->lock);
    int result = df_db_transaction(v->db, body, c, err);
    (void)pthread_mutex_unlock(&v->lock);
    return result;
}

static int put(struct df_vault *vault, const char *name, const struct df_vault_entry *entry,
               struct df_err *err)
{
    struct sealed_vault *v = sealed_of(vault);
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE + 64);
    DF_FREE char *aad = entry->key ? aad_of(name, entry->key) : NULL;
    DF_FREE char *use = entry->use ? df_json_print(entry->use) : NULL;
    if ((entry->key && !aad) || (entry->use && !use))
        return df_fail_oom(err);
    if (aad && df_aead_seal(v->key, aad, entry->value, entry->n, &sealed, err) < 0)
        return -1;
    return in_transaction(v, put_body, &(struct change){name, entry->key, &sealed, use}, err);
}

/* ---- get ------------------------------------------------------------------------------------ */

/* Unseals the row (key, sealed) and adds its value to secret. */
static int open_row(const struct sealed_vault *v, const char *name, sqlite3_stmt *q, cJSON *secret,
                    struct df_err *err)
{
    const char *key = (const char *)sqlite3_column_text(q, 0);
    DF_CLEANUP(df_buf_wipe) struct df_buf value = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE + 64);
    DF_FREE char *aad = key ? aad_of(name, key) : NULL;
    if (!aad)
        return df_fail_oom(err);
    if (df_aead_open(v->key, aad, sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1),
                     &value, NULL) < 0)
        return df_vault_unreadable(name, key, "its sealed value does not open", err);
    return df_json_add_str(secret, key, df_buf_str(&value), err);
}

static int read_secret(struct sealed_vault *v, const char *name, cJSON *secret, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(v->db, "SELECT key, sealed FROM secrets WHERE name = ?1 ORDER BY key",
                    DF_DB_ARGS(DF_DB_T(name)), &q, err) < 0)
        return -1;
    for (;;) {
        if (df_db_step(v->db, q, &row, err) < 0)
            return -1;
        if (!row)
            break;
        if (open_row(v, name, q, secret, err) < 0)
            return -1;
    }
    return secret->child ? 0 : df_vault_no_secret(name, NULL, err);
}

static int get(struct df_vault *vault, const char *name, cJSON **ret, struct df_err *err)
{
    struct sealed_vault *v = sealed_of(vault);
    DF_SECRET_JSON cJSON *secret = cJSON_CreateObject();
    if (!secret)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&v->lock);
    int result = read_secret(v, name, secret, err);
    (void)pthread_mutex_unlock(&v->lock);
    if (result == 0)
        *ret = DF_TAKE(secret);
    return result;
}

/* ---- the use -------------------------------------------------------------------------------- */

/* Sets the members of to that the stored use has. text: NULL for a secret without one. */
static int take_use(const char *text, cJSON *to, struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    const cJSON *member;
    if (!text)
        return 0;
    if (df_json_parse(text, strlen(text), &use, err) < 0)
        return -1;
    cJSON_ArrayForEach (member, use) {
        if (df_json_add(to, member->string, cJSON_Duplicate(member, true), err) < 0)
            return -1;
    }
    return 0;
}

static int read_use(struct sealed_vault *v, const char *name, cJSON *use, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    if (df_db_query(v->db,
                    "SELECT (SELECT body FROM secret_uses WHERE name = ?1) FROM secrets WHERE name "
                    "= ?1 LIMIT 1",
                    DF_DB_ARGS(DF_DB_T(name)), &q, err) < 0 ||
        df_db_step(v->db, q, &row, err) < 0)
        return -1;
    return row ? take_use((const char *)sqlite3_column_text(q, 0), use, err)
               : df_vault_no_secret(name, NULL, err);
}

static int get_use(struct df_vault *vault, const char *name, cJSON **ret, struct df_err *err)
{
    struct sealed_vault *v = sealed_of(vault);
    DF_JSON cJSON *use = cJSON_CreateObject();
    if (!use)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&v->lock);
    int result = read_use(v, name, use, err);
    (void)pthread_mutex_unlock(&v->lock);
    if (result == 0)
        *ret = DF_TAKE(use);
    return result;
}

/* ---- list ----------------------------------------------------------------------------------- */

/* Rows are sorted by name: a new name starts a new entry. */
static int list_row(sqlite3_stmt *q, cJSON *list, cJSON **current, struct df_err *err)
{
    const char *name = (const char *)sqlite3_column_text(q, 0);
    if (!*current || !df_streq(name, df_json_str(*current, "name"))) {
        cJSON *entry = cJSON_CreateObject();
        if (df_json_append(list, entry, err) < 0 ||
            df_json_put(entry, err, DF_STR("name", name), DF_ITEM("keys", cJSON_CreateArray())) <
                0 ||
            take_use((const char *)sqlite3_column_text(q, 3), entry, err) < 0)
            return -1;
        *current = entry;
    }
    char at[DF_TIME_LEN];
    (void)df_time_format(sqlite3_column_int64(q, 2), at);
    const char *latest = df_json_str(*current, "updatedAt");
    if ((!latest || strcmp(at, latest) > 0) && df_json_set_str(*current, "updatedAt", at, err) < 0)
        return -1;
    return df_json_append_str(df_json_array_at(*current, "keys"),
                              (const char *)sqlite3_column_text(q, 1), err);
}

static int read_list(struct sealed_vault *v, bool of_runs, cJSON *list, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    cJSON *current = NULL;
    if (df_db_query(v->db,
                    "SELECT name, key, updated, body FROM secrets LEFT JOIN secret_uses USING "
                    "(name) WHERE (substr(name, 1, ?1) = ?2) = ?3 ORDER BY name, key",
                    DF_DB_ARGS(DF_DB_I((int64_t)strlen(DF_VAULT_RUN_PREFIX)),
                               DF_DB_T(DF_VAULT_RUN_PREFIX), DF_DB_I(of_runs)),
                    &q, err) < 0)
        return -1;
    for (;;) {
        if (df_db_step(v->db, q, &row, err) < 0)
            return -1;
        if (!row)
            return 0;
        if (list_row(q, list, &current, err) < 0)
            return -1;
    }
}

static int list(struct df_vault *vault, bool of_runs, cJSON **ret, struct df_err *err)
{
    struct sealed_vault *v = sealed_of(vault);
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (!list)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&v->lock);
    int result = read_list(v, of_runs, list, err);
    (void)pthread_mutex_unlock(&v->lock);
    if (result == 0)
        *ret = DF_TAKE(list);
    return result;
}

/* ---- delete --------------------------------------------------------------------------------- */

static int delete_rows(struct df_db *db, const struct change *c, struct df_err *err)
{
    DF_DB_STMT sqlite3_stmt *q = NULL;
    bool row = false;
    const char *sql = c->key ? "DELETE FROM secrets WHERE name = ?1 AND key = ?2 RETURNING 1"
                             : "DELETE FROM secrets WHERE name = ?1 RETURNING 1";
    /* With key NULL the statement has no second parameter. */
    const struct df_db_arg args[] = {
        DF_DB_T(c->name), {c->key ? DF_DB_TEXT : DF_DB_END, 0, c->key}, {DF_DB_END, 0, NULL}};
    if (df_db_query(db, sql, args, &q, err) < 0 || df_db_step(db, q, &row, err) < 0)
        return -1;
    return row ? 0 : df_vault_no_secret(c->name, c->key, err);
}

/* The use goes with the last key: another secret of this name begins anew. */
static int delete_body(struct df_db *db, void *arg, struct df_err *err)
{
    const struct change *c = arg;
    if (delete_rows(db, c, err) < 0)
        return -1;
    return df_db_run(db,
                     "DELETE FROM secret_uses WHERE name = ?1 AND NOT EXISTS (SELECT 1 FROM "
                     "secrets WHERE name = ?1)",
                     DF_DB_ARGS(DF_DB_T(c->name)), err);
}

static int remove_secret(struct df_vault *vault, const char *name, const char *key,
                         struct df_err *err)
{
    return in_transaction(sealed_of(vault), delete_body, &(struct change){name, key, NULL, NULL},
                          err);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_sealed(struct df_vault *vault)
{
    struct sealed_vault *v = sealed_of(vault);
    (void)pthread_mutex_destroy(&v->lock);
    df_db_close(v->db);
    explicit_bzero(v, sizeof(*v));
    free(v);
}

static const struct df_vault_ops sealed_ops = {close_sealed, put,  get,
                                               get_use,      list, remove_secret};

int df_vault_open(const char *database, const char *key_file, struct df_vault **ret,
                  struct df_err *err)
{
    struct sealed_vault *v = calloc(1, sizeof(*v));
    if (!v)
        return df_fail_oom(err);
    DF_VAULT struct df_vault *vault = &v->vault;
    vault->ops = &sealed_ops;
    (void)pthread_mutex_init(&v->lock, NULL);
    if (df_db_open(database, DF_DB_CHECK_HEADER, &v->db, err) < 0 ||
        df_db_run(v->db, df_db_secret_uses, NULL, err) < 0 || load_keys(v, key_file, err) < 0)
        return -1;
    *ret = DF_TAKE(vault);
    return 0;
}
