#include "spawner/store/documents/schema.h"

/* created: the resource version at which a document was created; it orders lists and is never
 * reused. counter has one row. Values in secrets and key_check are sealed by the vault. */
const char df_db_schema[] =
    "CREATE TABLE counter (version INTEGER NOT NULL);"
    "INSERT INTO counter VALUES (0);"
    "CREATE TABLE documents (created INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT "
    "NULL,"
    " uid TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (kind, name));"
    "CREATE INDEX documents_by_kind ON documents (kind);"
    "CREATE TABLE labels (kind INTEGER NOT NULL, label TEXT NOT NULL, created INTEGER NOT NULL,"
    " PRIMARY KEY (kind, label, created)) WITHOUT ROWID;"
    "CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);"
    "CREATE TABLE secrets (name TEXT NOT NULL, key TEXT NOT NULL, sealed BLOB NOT NULL,"
    " updated INTEGER NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID;"
    "CREATE TABLE key_check (sealed BLOB NOT NULL);"
    "PRAGMA application_id = 0x64666c79;"
    "PRAGMA user_version = 1;";

const char df_db_secret_uses[] =
    "CREATE TABLE IF NOT EXISTS secret_uses (name TEXT PRIMARY KEY, body TEXT NOT NULL)";

const char df_db_audit_words[] =
    "CREATE TABLE IF NOT EXISTS audit_words (at TEXT NOT NULL, id INTEGER NOT NULL, name TEXT,"
    " actor TEXT, action TEXT, kind TEXT, outcome TEXT, PRIMARY KEY (at, id)) WITHOUT ROWID;"
    /* Each has (at, id) behind its columns. */
    "CREATE INDEX IF NOT EXISTS audit_words_name ON audit_words (name);"
    "CREATE INDEX IF NOT EXISTS audit_words_outcome ON audit_words (outcome);"
    "CREATE INDEX IF NOT EXISTS audit_words_actor ON audit_words (actor, at, id, action, kind,"
    " outcome, name);"
    "INSERT OR IGNORE INTO audit_words SELECT ifnull(json_extract(body, '$.at'), ''), id,"
    " json_extract(body, '$.name'), json_extract(body, '$.actor'), json_extract(body, '$.action'),"
    " json_extract(body, '$.kind'), json_extract(body, '$.outcome') FROM audit"
    " WHERE id > ifnull((SELECT id FROM audit_words ORDER BY at DESC, id DESC LIMIT 1), 0)"
    " AND json_valid(body)";
