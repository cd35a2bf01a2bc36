/* df_provider_mirror_get() at the end: an archive is get_archive(), an index is get_index(). */
#include "spawner/steps/provider_mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/providers/lockfile.h"
#include "spawner/steps/provider_registry.h"

enum { MEASURES = 100 };

struct request {
    const struct df_config *config;
    const char *source, *file;
    char *path; /* in the directory */
};

static void request_free(struct request *q)
{
    free(q->path);
}

static int fail_missing(const struct request *q, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND,
                   "the mirror of this service has no %s/%s: add it with `dayfly mirror`",
                   q->source, q->file);
}

/* May the service ask the registry of this source? */
static bool may_ask(const struct request *q)
{
    DF_FREE char *host = strndup(q->source, strcspn(q->source, "/"));
    return host && df_strs_has(&q->config->mirror_registries, host);
}

static int open_file(const struct request *q, struct df_provider_file *ret, struct df_err *err)
{
    struct stat st;
    /* O_NONBLOCK: nobody can make this thread wait with a fifo. */
    DF_CLOSE int fd = open(q->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return fail_missing(q, err);
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "providers.mirror.directory: open %s", q->path);
    if (!S_ISREG(st.st_mode))
        return fail_missing(q, err);
    *ret = (struct df_provider_file){.fd = DF_TAKE_FD(fd), .size = st.st_size};
    return 0;
}

static int open_registry(const struct request *q, struct df_provider_registry *ret,
                         struct df_err *err)
{
    return df_provider_registry_open(q->source, q->config->mirror_ca_file, ret, err);
}

/* ---- room ---- */

static enum df_tree_visit add_size(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct df_provider_usage *u = arg;
    (void)err;
    if (S_ISREG(e->st->st_mode)) {
        u->bytes += e->st->st_size;
        u->archives += df_ends_with(e->name, ".zip");
    }
    return DF_TREE_GO_ON;
}

int df_provider_mirror_measure(const struct df_config *c, struct df_provider_usage *ret,
                               struct df_err *err)
{
    const struct df_provider_usage none = {.limit = c->mirror_max_mib * (int64_t)DF_MIB};
    struct df_err why = {.os_errno = ENOENT};
    /* A file that is renamed meanwhile ends a walk. */
    for (int i = 0; why.os_errno == ENOENT && i < MEASURES; i++) {
        struct df_provider_usage u = none;
        why = (struct df_err){0};
        if (!df_fs_exists(c->mirror_directory) ||
            df_tree_walk(c->mirror_directory, add_size, &u, &why) == 0) {
            *ret = u;
            return 0;
        }
    }
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "providers.mirror.directory");
}

/* What the running downloads may still take. Of this process, because only the leader serves
 * steps. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int64_t promised;
} downloads = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static int fail_full(const struct request *q, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_LIMIT, "MirrorFull",
                          "%s is not kept: the mirror of providers in %s would have more than the "
                          "%lld MiB of providers.mirror.maxMiB. Remove archives that no module "
                          "locks any more, or raise the limit",
                          q->file, q->config->mirror_directory,
                          (long long)q->config->mirror_max_mib);
}

/* With the lock. How much a download will take nobody knows: it waits while others leave less than
 * the largest archive may have, and alone it gets what is left. */
static int take_room(const struct request *q, int64_t *ret, struct df_err *err)
{
    const int64_t most = (int64_t)DF_LIMIT_PROVIDER_ARCHIVE;
    for (;;) {
        struct df_provider_usage used;
        if (df_provider_mirror_measure(q->config, &used, err) < 0)
            return -1;
        int64_t left = used.limit - used.bytes - downloads.promised;
        if (left <= 0 && !downloads.promised)
            return fail_full(q, err);
        if (left >= most || !downloads.promised) {
            *ret = left < most ? left : most;
            downloads.promised += *ret;
            return 0;
        }
        (void)pthread_cond_wait(&downloads.ended, &downloads.lock);
    }
}

static int reserve(const struct request *q, int64_t *ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&downloads.lock);
    int failed = take_room(q, ret, err);
    (void)pthread_mutex_unlock(&downloads.lock);
    return failed;
}

static void give_back(int64_t bytes)
{
    (void)pthread_mutex_lock(&downloads.lock);
    downloads.promised -= bytes;
    (void)pthread_cond_broadcast(&downloads.ended);
    (void)pthread_mutex_unlock(&downloads.lock);
}

/* ---- an archive ---- */

/* One that its registry has. All borrowed but what has an owner. */
struct pull {
    const struct request *q;
    struct df_provider_archive archive;
    struct df_provider_registry registry; /* owned */
    struct df_provider_package package;   /* owned */
    const char *directory;
};

static void pull_free(struct pull *p)
{
    df_provider_registry_close(&p->registry);
    df_provider_package_free(&p->package);
}

static int fill(struct pull *p, int fd, struct df_err *err)
{
    int64_t room = 0;
    struct df_err why = {0};
    if (reserve(p->q, &room, err) < 0)
        return -1;
    int failed = df_provider_registry_download(&p->registry, &p->package, fd, room, &why);
    give_back(room);
    if (!failed)
        return 0;
    return why.cls == DF_ERR_LIMIT && room < (int64_t)DF_LIMIT_PROVIDER_ARCHIVE
               ? fail_full(p->q, err)
               : df_err_pass(err, &why);
}

/* With the lock of the archive: what an earlier try left at the part's path is overwritten. */
static int download(struct pull *p, struct df_err *err)
{
    DF_FREE char *part = df_strf("%s/.%s.part", p->directory, p->q->file);
    if (!part)
        return df_fail_oom(err);
    DF_CLOSE int fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return df_fail_errno(err, errno, "providers.mirror.directory: create %s", part);
    if (fill(p, fd, err) < 0) {
        (void)unlink(part);
        return -1;
    }
    if (fsync(fd) < 0 || rename(part, p->q->path) < 0)
        return df_fail_errno(err, errno, "rename to %s", p->q->path);
    return df_provider_index_add(p->q->config->mirror_directory, &p->archive, p->package.sha256,
                                 err);
}

/* Whoever waits for the lock finds the archive afterwards. */
static int lock_archive(const struct request *q, const char *directory, int *ret,
                        struct df_err *err)
{
    DF_FREE char *path = df_strf("%s/.%s.lock", directory, q->file);
    if (!path)
        return df_fail_oom(err);
    return df_fs_lock(path, 0644, ret, err) < 0 ? df_err_wrap(err, "providers.mirror.directory")
                                                : 0;
}

/* Nothing is made for an archive that the registry does not have. */
static int pull_archive(const struct request *q, struct df_err *err)
{
    DF_CLOSE int lock = -1;
    DF_FREE char *directory = df_strf("%s/%s", q->config->mirror_directory, q->source);
    DF_FREE char *name = strdup(q->file);
    DF_CLEANUP(pull_free) struct pull p = {.q = q, .directory = directory};
    if (!directory || !name)
        return df_fail_oom(err);
    if (!df_provider_archive_parse(name, q->source, &p.archive))
        return fail_missing(q, err);
    if (open_registry(q, &p.registry, err) < 0 ||
        df_provider_registry_package(&p.registry, &p.archive, &p.package, err) < 0 ||
        df_fs_mkdirs(directory, 0755, err) < 0 || lock_archive(q, directory, &lock, err) < 0)
        return -1;
    return df_fs_exists(q->path) ? 0 : download(&p, err);
}

static int get_archive(const struct request *q, struct df_provider_file *ret, struct df_err *err)
{
    if (!df_fs_exists(q->path) && may_ask(q) && pull_archive(q, err) < 0)
        return -1;
    return open_file(q, ret, err);
}

/* ---- an index ---- */

/* Adds the versions that the registry has. */
static int add_versions(cJSON *index, const cJSON *versions, struct df_err *err)
{
    cJSON *members = df_json_object_at(index, "versions");
    const cJSON *v;
    cJSON_ArrayForEach (v, versions) {
        const char *version = df_json_str(v, "version");
        if (!members || !version || !df_provider_is_version(version) ||
            cJSON_GetObjectItemCaseSensitive(members, version))
            continue;
        if (df_json_add(members, version, cJSON_CreateObject(), err) < 0)
            return -1;
    }
    return members ? 0 : df_fail_oom(err);
}

/* Adds what the registry says about one archive that is not here. */
static int add_archive(struct df_provider_registry *r, const struct df_provider_archive *a,
                       cJSON *archives, struct df_err *err)
{
    DF_CLEANUP(df_provider_package_free) struct df_provider_package package = {0};
    if (cJSON_GetObjectItemCaseSensitive(archives, a->platform))
        return 0;
    if (df_provider_registry_package(r, a, &package, err) < 0)
        return -1;
    return df_json_add(archives, a->platform, df_provider_index_entry(a, package.sha256), err);
}

/* The steps run on Linux; each platform costs a request. */
static int add_archives(struct df_provider_registry *r, const char *source, const char *version,
                        const cJSON *versions, cJSON *index, struct df_err *err)
{
    cJSON *archives = df_json_object_at(index, "archives");
    const cJSON *v, *p;
    cJSON_ArrayForEach (v, versions) {
        if (!df_streq(df_json_str(v, "version"), version))
            continue;
        cJSON_ArrayForEach (p, df_json_at(v, "platforms")) {
            const char *arch = df_json_str(p, "arch");
            DF_FREE char *platform = df_strf("linux_%s", arch ? arch : "");
            const struct df_provider_archive a = {source, version, platform};
            if (!archives || !platform)
                return df_fail_oom(err);
            if (df_streq(df_json_str(p, "os"), "linux") && df_provider_is_platform(platform) &&
                add_archive(r, &a, archives, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int ask_registry(const struct request *q, cJSON *index, struct df_err *err)
{
    DF_PROVIDER_REGISTRY struct df_provider_registry registry = {0};
    DF_JSON cJSON *versions = NULL;
    if (open_registry(q, &registry, err) < 0 ||
        df_provider_registry_versions(&registry, &versions, err) < 0)
        return -1;
    if (df_streq(q->file, "index.json"))
        return add_versions(index, versions, err);
    DF_FREE char *version = strndup(q->file, strlen(q->file) - strlen(".json"));
    if (!version)
        return df_fail_oom(err);
    return add_archives(&registry, q->source, version, versions, index, err);
}

/* While the registry does not answer, there is what is here. */
static int get_index(const struct request *q, struct df_provider_file *ret, struct df_err *err)
{
    DF_JSON cJSON *index = NULL;
    struct df_err why = {0};
    if (!may_ask(q))
        return open_file(q, ret, err);
    if (df_provider_index_read(q->path, &index, err) < 0)
        return -1;
    if (ask_registry(q, index, &why) < 0)
        return df_fs_exists(q->path) ? open_file(q, ret, err) : df_err_pass(err, &why);
    if (!index->child || !index->child->child)
        return fail_missing(q, err);
    *ret = (struct df_provider_file){.fd = -1, .text = df_json_print(index)};
    return ret->text ? 0 : df_fail_oom(err);
}

/* "index.json", "1.0.0.json" or the name of an archive. */
static bool is_file_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+");
    return *name != '.' && !name[n] && (df_ends_with(name, ".json") || df_ends_with(name, ".zip"));
}

int df_provider_mirror_get(const struct df_config *c, const char *source, const char *file,
                           struct df_provider_file *ret, struct df_err *err)
{
    DF_CLEANUP(request_free) struct request q = {.config = c, .source = source, .file = file};
    if (!c->mirror_directory)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "this service mirrors no providers: providers.mirror.directory is not set");
    if (!df_provider_is_source(source) || !is_file_name(file))
        return fail_missing(&q, err);
    q.path = df_strf("%s/%s/%s", c->mirror_directory, source, file);
    if (!q.path)
        return df_fail_oom(err);
    return df_ends_with(file, ".zip") ? get_archive(&q, ret, err) : get_index(&q, ret, err);
}
