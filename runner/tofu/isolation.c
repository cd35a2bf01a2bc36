/* What a step sees: strict_shown[] and list_own() have most of it. */
#include "runner/tofu/isolation.h"

#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/process/tmpdir.h"
#include "runner/tofu/hiding.h"

/* ---- the handoff ---- */

/* Where systems keep private keys, besides what the handoff names. */
static const char *const always_hidden[] = {"/etc/ssl/private", "/etc/pki/tls/private"};

void df_isolation_free(struct df_isolation *i)
{
    df_strs_free(&i->secrets);
    df_wall_free(&i->hidden);
    *i = (struct df_isolation){0};
}

static int list_secrets(const cJSON *paths, struct df_strs *ret, struct df_err *err)
{
    const cJSON *path;
    cJSON_ArrayForEach (path, paths)
        (void)df_strs_add(ret, cJSON_GetStringValue(path));
    DF_FREE char *shared = df_tmpdir_shared();
    if (!shared)
        return df_fail_oom(err);
    (void)mkdir(shared, 0700); /* what is not there cannot be hidden from a step that makes it */
    (void)df_strs_add(ret, shared);
    for (size_t i = 0; i < DF_ARRAY_SIZE(always_hidden); i++)
        (void)df_strs_add(ret, always_hidden[i]);
    return df_strs_check(ret, err);
}

/* What no source may contain: by every name. */
static int add_hidden(struct df_isolation *i, struct df_err *err)
{
    DF_STRS struct df_strs found = {0};
    if (df_hiding_find(&i->secrets, NULL, &found, err) < 0)
        return -1;
    for (size_t n = 0; n < found.len; n++)
        if (df_wall_add(&i->hidden, DF_WALL_HIDDEN, found.items[n], err) < 0)
            return -1;
    return 0;
}

int df_isolation_read(const cJSON *handoff, struct df_isolation *ret, struct df_err *err)
{
    const char *mode = df_json_str(handoff, "isolation.mode");
    struct df_isolation i = {.is_on = mode != NULL, .is_strict = df_streq(mode, "strict")};
    if (mode && !i.is_strict && !df_streq(mode, "auto"))
        return df_fail(err, DF_ERR_USER, "isolation.mode: \"%.40s\" is neither auto nor strict",
                       mode);
    if (i.is_on && (list_secrets(df_json_at(handoff, "isolation.hidden"), &i.secrets, err) < 0 ||
                    add_hidden(&i, err) < 0)) {
        df_isolation_free(&i);
        return -1;
    }
    *ret = i;
    return 0;
}

/* ---- the machine ---- */

static int add_all(struct df_wall *w, enum df_wall_access access, const char *const *paths,
                   size_t n, struct df_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (df_wall_add(w, access, paths[i], err) < 0)
            return -1;
    return 0;
}

/* Root could change the kernel's settings, and with them run programs outside, or disturb others.
 * The owner of these files needs no capability. */
static int protect_kernel(struct df_wall *w, struct df_err *err)
{
    static const char *const settings[] = {"/proc/acpi", "/proc/bus",          "/proc/fs",
                                           "/proc/irq",  "/proc/mtrr",         "/proc/scsi",
                                           "/proc/sys",  "/proc/sysrq-trigger"};
    return geteuid() == 0 ? add_all(w, DF_WALL_READ_ONLY, settings, DF_ARRAY_SIZE(settings), err)
                          : 0;
}

/* A user's own part of the control groups, as desktops have it, ends and stops their processes. */
static int auto_machine(struct df_wall *w, const struct df_strs *secrets, struct df_err *err)
{
    if (df_hiding_everywhere(w, secrets, err) < 0 ||
        df_wall_add(w, DF_WALL_READ_ONLY, "/sys", err) < 0)
        return -1;
    return protect_kernel(w, err);
}

/* Programs and libraries, and what name resolution, TLS and user names need. Of directories where
 * keys lie as well, only the parts without. */
static const char *const strict_shown[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
};
static const char *const strict_devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                             "/dev/random", "/dev/urandom", "/dev/tty"};
static const char *const strict_empty[] = {"/tmp", "/var/tmp", "/dev/shm"};
static const struct {
    const char *path, *target;
} strict_links[] = {{"/dev/fd", "/proc/self/fd"},
                    {"/dev/stdin", "/proc/self/fd/0"},
                    {"/dev/stdout", "/proc/self/fd/1"},
                    {"/dev/stderr", "/proc/self/fd/2"}};

static int add_devices(struct df_wall *w, struct df_err *err)
{
    if (add_all(w, DF_WALL_WRITABLE, strict_devices, DF_ARRAY_SIZE(strict_devices), err) < 0 ||
        add_all(w, DF_WALL_EMPTY, strict_empty, DF_ARRAY_SIZE(strict_empty), err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(strict_links); i++)
        if (df_wall_add_link(w, strict_links[i].path, strict_links[i].target, err) < 0)
            return -1;
    return 0;
}

static int strict_machine(struct df_wall *w, const struct df_strs *secrets, struct df_err *err)
{
    if (df_wall_add(w, DF_WALL_HIDDEN, "/", err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(strict_shown); i++)
        if (df_hiding_show(w, DF_WALL_READ_ONLY, strict_shown[i], secrets, err) < 0)
            return -1;
    if (df_wall_add(w, DF_WALL_WRITABLE, "/proc", err) < 0 || protect_kernel(w, err) < 0)
        return -1;
    return add_devices(w, err);
}

/* state: where it is, or where it shall go. What a tool writes to such a file is gone with its
 * wall. */
static int check_storage(const struct df_step_wall_request *q, const cJSON *state,
                         struct df_err *err)
{
    const char *path = df_json_str(state, "config.path");
    if (!q->isolation->is_strict || !df_streq(df_json_str(state, "type"), "local"))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "storage.type local: with engine.local.isolation: strict a step does not "
                          "see %s: use the storage managed, or set engine.local.isolation: auto",
                          path ? path : "the state's file");
}

/* ---- what the step was given ---- */

/* The work directory is below the data directory, which is hidden. The directories in it, where the
 * runner reads and writes from outside of the wall, are mounts of their own: code of the module can
 * neither rename one nor put a link in its place. */
static int give_work(struct df_wall *own, const struct df_dirs *dirs, struct df_err *err)
{
    DF_FREE char *work = strndup(dirs->source, strlen(dirs->source) - strlen("/source"));
    const char *const given[] = {work,         dirs->source, dirs->spool,    dirs->fetch,
                                 dirs->secret, dirs->home,   dirs->temporary};
    return work ? add_all(own, DF_WALL_WRITABLE, given, DF_ARRAY_SIZE(given), err)
                : df_fail_oom(err);
}

/* Identity tokens, which the tool reads again when they were renewed. */
static int give_tokens(struct df_wall *own, const struct df_step_wall_request *q,
                       struct df_err *err)
{
    const cJSON *path;
    cJSON_ArrayForEach (path, df_json_at(q->step, "identityTokenFiles")) {
        if (df_wall_add(own, DF_WALL_READ_ONLY, cJSON_GetStringValue(path), err) < 0)
            return -1;
    }
    return 0;
}

static int give_programs(struct df_wall *own, const struct df_step_wall_request *q,
                         struct df_err *err)
{
    DF_FREE char *self = NULL; /* it reads the versions of a state */
    if (df_process_own_path(&self, err) < 0)
        return -1;
    const char *const cache = df_json_str(q->step, "tools.cacheDirectory");
    const char *const given[] = {q->isolation->is_strict ? NULL : cache,
                                 q->tool,
                                 self,
                                 df_json_str(q->step, "providers.filesystemMirror"),
                                 df_json_str(q->step, "providers.pluginCacheDirectory"),
                                 getenv("SSL_CERT_FILE"),
                                 getenv("SSL_CERT_DIR")};
    return add_all(own, DF_WALL_READ_ONLY, given, DF_ARRAY_SIZE(given), err);
}

static int list_own(struct df_wall *own, const struct df_step_wall_request *q, struct df_err *err)
{
    return give_programs(own, q, err) < 0 || give_work(own, q->dirs, err) < 0
               ? -1
               : give_tokens(own, q, err);
}

static int show_own(struct df_wall *w, const struct df_wall *own, const struct df_strs *secrets,
                    struct df_err *err)
{
    for (size_t i = 0; i < own->len; i++)
        if (df_hiding_show(w, own->entries[i].access, own->entries[i].path, secrets, err) < 0)
            return -1;
    return 0;
}

/* ---- the walls ---- */

static int make_wall(struct df_wall *w, const struct df_step_wall_request *q, struct df_err *err)
{
    DF_WALL struct df_wall own = {0};
    DF_STRS struct df_strs secrets = {0};
    if (list_own(&own, q, err) < 0 ||
        df_hiding_find(&q->isolation->secrets, &own, &secrets, err) < 0 ||
        (q->isolation->is_strict ? strict_machine(w, &secrets, err)
                                 : auto_machine(w, &secrets, err)) < 0)
        return -1;
    return show_own(w, &own, &secrets, err);
}

int df_step_wall_make(const struct df_step_wall_request *q, struct df_step_wall *ret,
                      struct df_err *err)
{
    static const struct df_process_limits strict = {.processes = DF_LIMIT_STEP_PROCESSES,
                                                    .memory_bytes = DF_LIMIT_STEP_MEMORY,
                                                    .open_files = DF_LIMIT_STEP_OPEN_FILES};
    struct df_step_wall w = {.limits = q->isolation->is_strict ? &strict : NULL};
    *ret = (struct df_step_wall){0};
    if (!q->isolation->is_on)
        return 0;
    if (check_storage(q, df_json_at(q->step, "state"), err) < 0 ||
        check_storage(q, df_json_at(q->step, "moveTo"), err) < 0 ||
        make_wall(&w.wall, q, err) < 0) {
        df_step_wall_free(&w);
        return -1;
    }
    *ret = w;
    return 0;
}

int df_isolation_wall_of_fetch(const struct df_isolation *i, const struct df_dirs *dirs,
                               struct df_wall *ret, struct df_err *err)
{
    DF_WALL struct df_wall own = {0};
    DF_STRS struct df_strs secrets = {0};
    struct df_wall w = {0};
    if (give_work(&own, dirs, err) < 0 || df_hiding_find(&i->secrets, &own, &secrets, err) < 0 ||
        df_hiding_everywhere(&w, &secrets, err) < 0 || show_own(&w, &own, &secrets, err) < 0) {
        df_wall_free(&w);
        return -1;
    }
    *ret = w;
    return 0;
}

static int make_program_wall(struct df_wall *w, const struct df_isolation *i,
                             const struct df_strs *shown, struct df_err *err)
{
    DF_WALL struct df_wall own = {0};
    DF_STRS struct df_strs secrets = {0};
    for (size_t n = 0; n < shown->len; n++)
        if (df_wall_add(&own, DF_WALL_READ_ONLY, shown->items[n], err) < 0)
            return -1;
    return df_hiding_find(&i->secrets, &own, &secrets, err) < 0 ||
                   strict_machine(w, &secrets, err) < 0
               ? -1
               : show_own(w, &own, &secrets, err);
}

int df_isolation_wall_of_program(const struct df_isolation *i, const struct df_strs *shown,
                                 struct df_wall *ret, struct df_err *err)
{
    struct df_wall w = {0};
    if (make_program_wall(&w, i, shown, err) < 0) {
        df_wall_free(&w);
        return -1;
    }
    *ret = w;
    return 0;
}

void df_step_wall_free(struct df_step_wall *w)
{
    df_wall_free(&w->wall);
    *w = (struct df_step_wall){0};
}
