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

/* NULL if the row is damaged. */
#define MEMBER(name) "CASE WHEN json_valid(body) THEN json_extract(body, '$." name "') END"
#define WORD(name) ", " MEMBER(name) " AS " name
/* clang-format off */
#define WORDS "SELECT ifnull(" MEMBER("at") ", '') AS at, id" \
              WORD("name") WORD("actor") WORD("action") WORD("kind") WORD("outcome") " FROM audit"
/* clang-format on */

const char df_db_audit_words[] =
    "CREATE TABLE IF NOT EXISTS audit_words (at TEXT NOT NULL, id INTEGER NOT NULL, name TEXT,"
    " actor TEXT, action TEXT, kind TEXT, outcome TEXT, PRIMARY KEY (at, id)) WITHOUT ROWID;"
    /* Each has (at, id) behind its columns. */
    "CREATE INDEX IF NOT EXISTS audit_words_name ON audit_words (name);"
    "CREATE INDEX IF NOT EXISTS audit_words_outcome ON audit_words (outcome);"
    "CREATE INDEX IF NOT EXISTS audit_words_actor ON audit_words (actor, at, id, action, kind,"
    " outcome, name);"
    /* What is not that of an entry goes, and what is missing comes. */
    "DELETE FROM audit_words WHERE NOT EXISTS (SELECT 1 FROM (" WORDS ") AS a"
    " WHERE a.id = audit_words.id AND a.at IS audit_words.at AND a.name IS audit_words.name"
    " AND a.actor IS audit_words.actor AND a.action IS audit_words.action"
    " AND a.kind IS audit_words.kind AND a.outcome IS audit_words.outcome);"
    "INSERT INTO audit_words " WORDS " WHERE id NOT IN (SELECT id FROM audit_words)"
    " AND json_valid(body)";
