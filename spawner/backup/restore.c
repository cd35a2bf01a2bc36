/*
 * restore.c - read df_restore() at the end first. The archive is checked as a whole, unpacked into
 * <directory>/restoring, settled there (runs are canceled, locks released), and its parts are moved
 * up, the database last. As long as `restoring` is there, no service starts, and the next restore
 * begins anew.
 */
#include "spawner/backup/restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/backup/format.h"
#include "spawner/model/audit_chain.h"
#include "spawner/model/labels.h"
#include "spawner/store/store.h"
#include "spawner/store/tofu_state/state.h"
#include "spawner/store/vault/vault.h"

#define RESTORING "restoring"
#define ACTOR "restore"

/* What a restore makes in the data directory; the database is the last. */
static const char *const parts[] = {"blobs", "tls", DF_BACKUP_KEY, DF_BACKUP_DATABASE};

/* ---- the directory --------------------------------------------------------------------------- */

static bool is_harmless(const char *name)
{
    static const char *const names[] = {".", "..", "lock", "lost+found"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        if (df_streq(name, names[i]))
            return true;
    return false;
}

/* *ret: the name of something in it, or "". */
static int find_content(const char *directory, char ret[256], struct df_err *err)
{
    DIR *d = opendir(directory);
    if (!d)
        return df_fail_errno(err, errno, "open %s", directory);
    const struct dirent *e;
    *ret = '\0';
    while (!*ret && (e = readdir(d)))
        if (!is_harmless(e->d_name))
            df_copy(ret, 256, e->d_name);
    (void)closedir(d);
    return 0;
}

/* What a killed restore left. It began in an empty directory, and no service has started since. */
static int remove_unfinished(const char *directory, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++) {
        DF_FREE char *path = df_fs_join(directory, parts[i]);
        if (df_fs_remove_tree(path, err) < 0)
            return -1;
    }
    DF_FREE char *path = df_fs_join(directory, RESTORING);
    return df_fs_remove_tree(path, err);
}

static int check_empty(const char *directory, struct df_err *err)
{
    char found[256];
    DF_FREE char *unfinished = df_fs_join(directory, RESTORING);
    if (!unfinished)
        return df_fail_oom(err);
    if (df_fs_exists(unfinished) && remove_unfinished(directory, err) < 0)
        return -1;
    if (find_content(directory, found, err) < 0)
        return -1;
    return !*found ? 0
                   : df_fail_reason(err, DF_ERR_CONFLICT, "NotEmpty",
                                    "%s is not empty (there is %.100s): restore into an empty "
                                    "directory, --data-directory DIR",
                                    directory, found);
}

/* As a service does: neither starts while the other works. */
static int lock_directory(const char *directory, int *ret_fd, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(directory, "lock");
    if (!path)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? df_fail_reason(err, DF_ERR_CONFLICT, "NotEmpty",
                                    "another dayfly process works on %s: restore into an empty "
                                    "directory, --data-directory DIR",
                                    directory)
                   : df_fail_errno(err, errno, "lock %s", path);
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

int df_restore_check_finished(const char *directory, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(directory, RESTORING);
    if (!path)
        return df_fail_oom(err);
    return !df_fs_exists(path)
               ? 0
               : df_fail_reason(err, DF_ERR_CONFLICT, "RestoreUnfinished",
                                "a restore into %s was not finished: repeat `dayfly restore`, "
                                "which begins again",
                                directory);
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && !df_streq(name, *names))
        names++;
    return *names != NULL;
}

/* Only what a backup has: nothing else gets into a data directory. Which installation this is, and
 * which bucket its own (open_blobs.h), an archive does not say in a file. */
static bool is_ours(const char *name)
{
    static const char *const files[] = {DF_BACKUP_DATABASE, DF_BACKUP_KEY, "tls/ca.pem",
                                        "tls/ca-key.pem", NULL};
    static const char *const notes[] = {DF_BACKUP_BLOBS "installation", DF_BACKUP_BLOBS "location",
                                        NULL};
    return is_one_of(name, files) ||
           (df_starts_with(name, DF_BACKUP_BLOBS) && !is_one_of(name, notes));
}

static int make_parents(const char *path, struct df_err *err)
{
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    return df_fs_mkdirs(parent, 0700, err);
}

static int open_part(void *arg, const char *name, int *ret_fd, struct df_err *err)
{
    const char *below = arg;
    DF_FREE char *path = df_fs_join(below, name);
    if (!path)
        return df_fail_oom(err);
    if (df_streq(name, DF_BACKUP_HEADER))
        return 0;
    if (!is_ours(name))
        return df_fail_reason(err, DF_ERR_USER, "BackupDamaged",
                              "%s does not belong into a data directory", name);
    if (make_parents(path, err) < 0)
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    *ret_fd = fd;
    return 0;
}

/* The blobs are in a bucket: home remembers which (open_blobs.h). */
static int note_bucket(const char *below, const cJSON *header, struct df_err *err)
{
    const char *location = df_json_str(header, "location");
    DF_BLOB struct df_blob *home = NULL;
    DF_FREE char *path = df_fs_join(below, "blobs");
    if (df_check_alloc(path, err) < 0 || df_blob_open(path, &home, err) < 0)
        return -1;
    return location ? df_blob_put(home, "location", location, strlen(location), err) : 0;
}

static int unpack(int archive, char *below, struct df_restored *r, struct df_err *err)
{
    const struct df_backup_sink sink = {open_part, below};
    struct df_backup_facts facts = {0};
    if (df_fs_mkdirs(below, 0700, err) < 0 || df_backup_read(archive, &sink, &facts, err) < 0)
        return -1;
    r->header = facts.header;
    r->has_key = df_json_bool(facts.header, "key", false);
    return note_bucket(below, facts.header, err);
}

/* ---- what was under way ---------------------------------------------------------------------- */

struct interrupted {
    struct df_store *store;
    const char *made_at;
    enum df_kind kind;
    int64_t count;
};

static int set_cancel(cJSON *doc, void *arg, struct df_err *err)
{
    const struct interrupted *i = arg;
    cJSON *spec = df_json_object_at(doc, "spec");
    if (df_json_at(spec, "cancel"))
        return 1;
    cJSON *cancel = df_json_object_at(spec, "cancel");
    DF_FREE char *why = df_strf("this installation was restored from the backup of %s; what this "
                                "did after that is not known: make a new plan",
                                i->made_at);
    if (!cancel || !why)
        return df_fail_oom(err);
    return df_json_put(cancel, err, DF_STR("by", ACTOR), DF_TIME("at", df_real_us()),
                       DF_STR("reason", why));
}

static int cancel_one(const cJSON *doc, void *arg, struct df_err *err)
{
    struct interrupted *i = arg;
    bool ended = i->kind == DF_KIND_RUN ? df_run_is_final(doc) : df_task_is_final(doc);
    if (ended)
        return 0;
    i->count += i->kind == DF_KIND_RUN || !df_json_at(doc, "spec.runRef");
    return df_store_modify(i->store, i->kind, df_json_str(doc, "metadata.name"), set_cancel, i,
                           NULL, err);
}

static int cancel_all(struct df_store *store, struct df_restored *r, struct df_err *err)
{
    static const enum df_kind kinds[] = {DF_KIND_RUN, DF_KIND_TASK_ACTION};
    const char *at = df_json_str(r->header, "createdAt");
    for (size_t k = 0; k < DF_ARRAY_SIZE(kinds); k++) {
        struct interrupted i = {store, at ? at : "an unknown time", kinds[k], 0};
        if (df_store_each(store, kinds[k], NULL, cancel_one, &i, err) < 0)
            return -1;
        r->canceled += i.count;
    }
    return 0;
}

/* ---- locks ----------------------------------------------------------------------------------- */

struct locks {
    struct df_store *store;
    struct df_states *states;
};

static int find_step(struct df_store *store, const char *uid, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_store_get_by_uid(store, DF_KIND_TASK_ACTION, uid, ret, &why) == 0 ||
        why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

/* A lock may be newer than the documents: of a step that they do not know. One that they know gives
 * its lock back when it ends; that of a person stays. */
static int release_unknown(const cJSON *executor, void *arg, struct df_err *err)
{
    struct locks *l = arg;
    const char *uid = df_json_str(executor, "metadata.uid");
    DF_JSON cJSON *info = NULL, *step = NULL;
    char holder[64] = "";
    bool released = false;
    if (df_state_lock_info(l->states, uid, &info, err) < 0)
        return -1;
    const char *id = df_json_str(info, "ID");
    if (id && df_state_lock_step(l->states, uid, id, holder, err) < 0)
        return -1;
    if (!*holder)
        return 0;
    if (find_step(l->store, holder, &step, err) < 0)
        return -1;
    return step ? 0 : df_state_release_dead(l->states, uid, holder, &released, err);
}

static int release_locks(const char *below, struct df_store *store, struct df_err *err)
{
    DF_BLOB struct df_blob *blobs = NULL;
    struct locks l = {store, NULL};
    DF_FREE char *path = df_fs_join(below, "blobs");
    if (!path)
        return df_fail_oom(err);
    /* Locks are not sealed: no vault is needed. */
    if (df_blob_open(path, &blobs, err) < 0 || df_states_open(blobs, NULL, &l.states, err) < 0)
        return -1;
    int result = df_store_each(store, DF_KIND_EXECUTOR, NULL, release_unknown, &l, err);
    df_states_close(l.states);
    return result;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int note_restore(struct df_store *store, const struct df_restored *r, struct df_err *err)
{
    DF_JSON cJSON *entry =
        df_json_object(DF_TIME("at", df_real_us()), DF_STR("actor", ACTOR), DF_STR("role", "admin"),
                       DF_STR("action", "restore"), DF_STR("kind", "Backup"),
                       DF_STR("name", df_json_str(r->header, "createdAt")),
                       DF_STR("outcome", "done"), DF_STR("detail", ""));
    if (!entry)
        return df_fail_oom(err);
    return df_store_audit(store, entry, err);
}

/* The key opens the database, or the service would not start. It signs what the audit trail says of
 * its chain. */
static int use_key(struct df_store *store, const char *database, const char *file,
                   struct df_err *err)
{
    DF_VAULT struct df_vault *vault = NULL;
    unsigned char key[DF_KEY_LEN];
    if (df_vault_open(database, file, &vault, err) < 0 ||
        df_vault_key(vault, DF_AUDIT_KEY_PURPOSE, key, err) < 0)
        return -1;
    df_store_sign_audit(store, key);
    explicit_bzero(key, sizeof(key));
    return 0;
}

/* The sums of an archive find damage; whoever forges one computes them anew. */
static int check_database(const char *database, struct df_err *err)
{
    struct df_err why = {0};
    return df_store_sqlite_check(database, &why) == 0
               ? 0
               : df_fail_reason(err, DF_ERR_USER, "BackupDamaged",
                                "the archive is damaged, or not one that dayfly made (%s): take "
                                "another copy of it",
                                why.message);
}

static int settle(const char *below, struct df_restored *r, struct df_err *err)
{
    struct df_store *store = NULL;
    DF_FREE char *database = df_fs_join(below, DF_BACKUP_DATABASE);
    DF_FREE char *key = df_fs_join(below, DF_BACKUP_KEY);
    if (df_check_alloc(database, err) < 0 || df_check_alloc(key, err) < 0 ||
        check_database(database, err) < 0 || df_store_sqlite_open(database, &store, err) < 0)
        return -1;
    int result = r->has_key ? use_key(store, database, key, err) : 0;
    if (result == 0)
        result = cancel_all(store, r, err);
    if (result == 0)
        result = release_locks(below, store, err);
    if (result == 0)
        result = note_restore(store, r, err);
    df_store_close(store);
    return result;
}

static int move_parts(const char *directory, const char *below, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(parts); i++) {
        DF_FREE char *from = df_fs_join(below, parts[i]);
        DF_FREE char *to = df_fs_join(directory, parts[i]);
        if (!from || !to)
            return df_fail_oom(err);
        if (rename(from, to) < 0 && errno != ENOENT)
            return df_fail_errno(err, errno, "move %s to %s", from, to);
    }
    return df_fs_sync_dir(directory, err);
}

static int restore_locked(int archive, const char *directory, int lock, struct df_restored *r,
                          struct df_err *err)
{
    DF_FREE char *below = df_fs_join(directory, RESTORING);
    if (df_check_alloc(below, err) < 0 || check_empty(directory, err) < 0)
        return -1;
    if (unpack(archive, below, r, err) < 0 || settle(below, r, err) < 0) {
        (void)!df_fs_remove_tree(below, NULL);
        return -1;
    }
    if (syncfs(lock) < 0) /* of many files: at once */
        return df_fail_errno(err, errno, "sync %s", directory);
    if (move_parts(directory, below, err) < 0 || df_fs_remove_tree(below, err) < 0)
        return -1;
    return df_fs_sync_dir(directory, err);
}

int df_restore(int archive, const char *directory, struct df_restored *ret, struct df_err *err)
{
    struct df_restored r = {0};
    struct df_backup_facts facts = {0};
    DF_CLOSE int lock = -1;
    if (df_backup_read(archive, NULL, &facts, err) < 0)
        return -1;
    cJSON_Delete(facts.header);
    if (df_fs_mkdirs(directory, 0700, err) < 0 || lock_directory(directory, &lock, err) < 0)
        return -1;
    if (restore_locked(archive, directory, lock, &r, err) < 0) {
        cJSON_Delete(r.header);
        return -1;
    }
    *ret = r;
    return 0;
}
