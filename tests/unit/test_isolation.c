/* What a step sees of the secrets of its service, with the wall that its handoff makes. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/process/process.h"
#include "common/process/tmpdir.h"
#include "json_words.h"
#include "runner/tofu/isolation.h"
#include "scratch.h"

static const char *const the_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", NULL};
static const char *const modes[] = {"auto", "strict"};

/* $TOP: the directory of the test. */
static char *at(const char *top, const char *name)
{
    char *path = df_fs_join(top, name);
    assert_non_null(path);
    return path;
}

static void put(const char *top, const char *name, const char *text)
{
    DF_FREE char *path = at(top, name);
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(df_fs_mkdirs(parent, 0755, NULL), 0);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0644, NULL), 0);
}

static void put_link(const char *top, const char *name, const char *target)
{
    DF_FREE char *path = at(top, name), *made = df_strf("%s.new", path);
    assert_int_equal(symlink(target, made), 0);
    assert_int_equal(rename(made, path), 0);
}

/* A step with its work directory at top/data/work, of a service with these secrets (with commas
 * between them). step: with TOP for the directory of the test. */
struct place {
    const char *top, *mode, *secrets, *step;
    struct df_isolation isolation;
    struct df_step_wall wall;
};

static cJSON *handoff_of(const struct place *p)
{
    cJSON *handoff = cJSON_CreateObject(), *isolation = df_json_object_at(handoff, "isolation");
    cJSON *hidden = df_json_array_at(isolation, "hidden");
    assert_int_equal(df_json_add_str(isolation, "mode", p->mode, NULL), 0);
    for (const char *name = p->secrets; *name;) {
        int n = (int)strcspn(name, ",");
        DF_FREE char *path = df_strf("%s/%.*s", p->top, n, name);
        assert_int_equal(df_json_append_str(hidden, path, NULL), 0);
        name += n + (name[n] == ',');
    }
    return handoff;
}

static cJSON *step_of(const struct place *p)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(4096);
    for (const char *at_ = p->step; *at_;) {
        const char *mark = strstr(at_, "TOP");
        size_t n = mark ? (size_t)(mark - at_) : strlen(at_);
        assert_int_equal(df_buf_addf(&text, "%.*s%s", (int)n, at_, mark ? p->top : ""), 0);
        at_ += n + (mark ? strlen("TOP") : 0);
    }
    return json(df_buf_str(&text));
}

static void make_wall(struct place *p)
{
    DF_JSON cJSON *handoff = handoff_of(p), *step = step_of(p);
    DF_FREE char *work = at(p->top, "data/work");
    DF_CLEANUP(df_dirs_free) struct df_dirs dirs = {0};
    struct df_err err = {0};
    if (df_dirs_make(work, &dirs, &err) < 0 || df_isolation_read(handoff, &p->isolation, &err) < 0)
        fail_msg("%s", err.message);
    const struct df_step_wall_request q = {
        .isolation = &p->isolation, .step = step, .dirs = &dirs, .tool = "/bin/sh"};
    if (df_step_wall_make(&q, &p->wall, &err) < 0)
        fail_msg("%s", err.message);
}

static void release(struct place *p)
{
    df_step_wall_free(&p->wall);
    df_isolation_free(&p->isolation);
}

/* The output of a script behind the wall, in the work directory. */
static char *seen_by(const struct place *p, const char *script)
{
    DF_FREE char *work = at(p->top, "data/work"), *top = df_strf("TOP=%s", p->top);
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const char *const env[] = {the_env[0], top, NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, env);
    DF_BUF struct df_buf out = DF_BUF_INIT(65536);
    struct df_err err = {0};
    int code;
    o.cwd = work;
    o.wall = &p->wall.wall;
    if (df_process_run(&o, 20000, &out, NULL, &code, &err) < 0)
        fail_msg("%s", err.message);
    return df_buf_take(&out);
}

static void assert_seen(struct place *p, const char *script, const char *expected)
{
    make_wall(p);
    DF_FREE char *seen = seen_by(p, script);
    if (strcmp(seen, expected) != 0)
        fail_msg("%s: \"%s\" is not \"%s\"", p->mode, seen, expected);
    release(p);
}

/* Whatever the wall shows may have secrets below it: here a mirror of providers, by its own name
 * and by that of a link. */
static void secrets_below_what_is_shown_are_hidden(void **state)
{
    static const char *const steps[] = {"{'providers': {'filesystemMirror': 'TOP/shown'}}",
                                        "{'providers': {'filesystemMirror': 'TOP/alias'}}"};
    put(*state, "shown/provider", "provider ");
    put(*state, "shown/store/key", "KEY");
    put(*state, "shown/tls/private/tls.key", "KEY");
    put(*state, "shown/tls/certs/ca.pem", "certificate ");
    put(*state, "elsewhere/token", "KEY");
    put_link(*state, "shown/token", "../elsewhere/token");
    put_link(*state, "alias", "shown");
    for (size_t i = 0; i < DF_ARRAY_SIZE(modes) * DF_ARRAY_SIZE(steps); i++) {
        struct place p = {.top = *state,
                          .mode = modes[i / 2],
                          .secrets = "data,shown/store,shown/tls/private/tls.key,shown/token",
                          .step = steps[i % 2]};
        assert_seen(
            &p,
            "for d in $TOP/shown $TOP/alias; do cat $d/provider $d/tls/certs/ca.pem "
            "$d/store/key $d/tls/private/tls.key $d/token; cat $d/store/* $d/tls/private/*; "
            "done 2>/dev/null; cat $TOP/elsewhere/token 2>/dev/null",
            df_streq(p.mode, "auto") ? "provider certificate provider certificate "
                                     : "provider certificate ");
    }
}

/* Runs the script behind the wall; renews when it has made the file `ready` in its work directory.
 * Then `renewed` is there. */
static char *seen_over_a_renewal(const struct place *p, void (*renew)(const char *top),
                                 const char *script)
{
    DF_FREE char *ready = at(p->top, "data/work/ready"), *renewed = at(p->top, "data/work/renewed");
    DF_FREE char *whole =
        df_strf("touch ready; while [ ! -e renewed ]; do sleep 0.02; done; %s", script);
    pid_t pid = fork();
    if (pid == 0) {
        for (int n = 0; n < 500 && !df_fs_exists(ready); n++)
            (void)usleep(20000);
        renew(p->top);
        _exit(df_fs_write(renewed, "", 0, 0644, NULL) < 0);
    }
    char *seen = seen_by(p, whole);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)unlink(ready);
    (void)unlink(renewed);
    return seen;
}

static void renew_files(const char *top)
{
    put(top, "etc/tokens", "NEW");
    put(top, "etc/born", "NEW");
    put(top, "archive/key2", "NEW");
    put_link(top, "live/key", "../archive/key2");
    put(top, "volume/..3/key", "NEW");
    put_link(top, "volume/..data", "..3");
}

/* As `token-file create` replaces its file, certbot the target of a link, and the kubelet a
 * directory. */
static void a_secret_that_is_renewed_stays_hidden_from_a_step_that_runs(void **state)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(modes); i++) {
        struct place p = {.top = *state,
                          .mode = modes[i],
                          .secrets = "data,etc/tokens,etc/born,live/key,volume/key",
                          .step = "{'providers': {'filesystemMirror': 'TOP'}}"};
        p.step = i ? p.step : "{}";
        put(*state, "etc/tokens", "OLD");
        put(*state, "archive/key1", "OLD");
        put(*state, "live/other.pem", "OLD");
        put_link(*state, "live/key", "../archive/key1");
        put(*state, "volume/..2/key", "OLD");
        put_link(*state, "volume/..data", "..2");
        put_link(*state, "volume/key", "..data/key");
        make_wall(&p);
        DF_FREE char *seen = seen_over_a_renewal(
            &p, renew_files,
            "cd $TOP; cat etc/* archive/* live/* volume/* volume/..*/* 2>/dev/null");
        assert_string_equal(seen, "");
        release(&p);
    }
}

static void renew_token(const char *top)
{
    put(top, "etc/token", "new");
}

/* What a step may see is in the folder: here its identity token, which it reads again. */
static void a_folder_with_something_shown_is_not_hidden(void **state)
{
    struct place p = {.top = *state,
                      .mode = "auto",
                      .secrets = "data,etc/token,etc/key",
                      .step = "{'identityTokenFiles': ['TOP/etc/token']}"};
    put(*state, "etc/token", "old");
    put(*state, "etc/key", "KEY");
    put(*state, "etc/open", " open");
    make_wall(&p);
    DF_FREE char *seen = seen_over_a_renewal(&p, renew_token, "cd $TOP/etc; cat token key open");
    assert_string_equal(seen, "new open");
    release(&p);
}

static void of_a_folder_with_folders_only_the_secret_is_hidden(void **state)
{
    struct place p = {.top = *state, .mode = "auto", .secrets = "data,project/token", .step = "{}"};
    put(*state, "project/token", "KEY");
    put(*state, "project/main.tf", "module ");
    put(*state, "project/modules/a.tf", "below");
    assert_seen(&p, "cd $TOP/project; cat token main.tf modules/a.tf", "module below");
}

/* Whatever a step is shown: a directory of certificates may be all of /etc/ssl. */
static void keys_of_the_system_are_hidden_in_every_mode(void **state)
{
    static const char script[] =
        "for d in /etc/ssl/private /etc/pki/tls/private; do ls $d; done "
        "2>/dev/null; [ -n \"$(ls /etc/ssl/certs)\" ] && echo certificates";
    for (size_t i = 0; i < DF_ARRAY_SIZE(modes); i++) {
        struct place p = {.top = *state,
                          .mode = modes[i],
                          .secrets = "data",
                          .step = "{'providers': {'filesystemMirror': '/etc/ssl'}}"};
        assert_seen(&p, script, "certificates\n");
    }
}

static void bind(const char *top, const char *from, const char *to)
{
    DF_FREE char *source = at(top, from), *place = at(top, to);
    assert_int_equal(df_fs_mkdirs(place, 0755, NULL), 0);
    assert_int_equal(mount(source, place, NULL, MS_BIND, NULL), 0);
}

/* In a mount namespace of its own. Ends with 0 if nothing is seen. */
static int look_at_second_mounts(const char *top, const char *mode)
{
    struct place p = {.top = top,
                      .mode = mode,
                      .secrets = "data,keys/key",
                      .step = "{'providers': {'filesystemMirror': 'TOP'}}"};
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 2;
    bind(top, "data", "twice");
    bind(top, "data/blobs", "part of it");
    bind(top, "keys", "mounted/keys");
    bind(top, ".", "whole");
    make_wall(&p);
    DF_FREE char *seen =
        seen_by(&p, "cd $TOP; cat twice/* twice/blobs/* 'part of it'/* mounted/keys/key "
                    "whole/data/key whole/data/blobs/* whole/keys/key 2>/dev/null; "
                    "cat mounted/open whole/open");
    DF_FREE char *source = at(top, "part of it");
    DF_CLOSE int fd = open(source, O_PATH | O_CLOEXEC);
    bool is_refused = df_wall_touches_hidden(&p.isolation.hidden, fd);
    release(&p);
    if (strcmp(seen, "open open ") != 0 || !is_refused)
        print_error("%s: \"%s\"\n", mode, seen);
    return strcmp(seen, "open open ") == 0 && is_refused ? 0 : 1;
}

static void what_is_mounted_twice_is_hidden_at_each_place(void **state)
{
    int status;
    if (geteuid() != 0)
        skip();
    put(*state, "data/key", "KEY");
    put(*state, "data/blobs/state", "KEY");
    put(*state, "keys/key", "KEY");
    put(*state, "keys/sub/file", "KEY");
    put(*state, "mounted/open", "open ");
    put(*state, "open", "open ");
    for (size_t i = 0; i < DF_ARRAY_SIZE(modes); i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(look_at_second_mounts(*state, modes[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

static void settings_of_the_kernel_are_no_files_that_root_may_write(void **state)
{
    static const char script[] = "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger "
                                 "/proc/irq/default_smp_affinity; do [ -w $f ] && echo $f; done";
    for (size_t i = 0; i < DF_ARRAY_SIZE(modes); i++) {
        struct place p = {.top = *state, .mode = modes[i], .secrets = "data", .step = "{}"};
        assert_seen(&p, script, "");
    }
}

/* As a user who has had no step with long paths yet: one that runs could make it, and look into the
 * files of the next ones. */
static int make_shared_as(uid_t user)
{
    DF_CLEANUP(df_isolation_free) struct df_isolation isolation = {0};
    DF_JSON cJSON *handoff = json("{'isolation': {'mode': 'auto', 'hidden': []}}");
    if (setuid(user) < 0)
        return 1;
    DF_FREE char *shared = df_tmpdir_shared();
    if (df_fs_exists(shared) || df_isolation_read(handoff, &isolation, NULL) < 0)
        return 2;
    return rmdir(shared) < 0 ? 3 : 0;
}

static void the_directory_of_temporary_files_is_there_before_a_step_could_make_it(void **state)
{
    int status;
    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0)
        _exit(make_shared_as((uid_t)(1000000000 + getpid())));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(secrets_below_what_is_shown_are_hidden),
        scratch_test(a_secret_that_is_renewed_stays_hidden_from_a_step_that_runs),
        scratch_test(a_folder_with_something_shown_is_not_hidden),
        scratch_test(of_a_folder_with_folders_only_the_secret_is_hidden),
        scratch_test(keys_of_the_system_are_hidden_in_every_mode),
        scratch_test(what_is_mounted_twice_is_hidden_at_each_place),
        scratch_test(settings_of_the_kernel_are_no_files_that_root_may_write),
        scratch_test(the_directory_of_temporary_files_is_there_before_a_step_could_make_it),
    };
    struct df_err err = {0};
    (void)alarm(60);
    if (df_wall_probe(&err) < 0) {
        print_message("skipped: %s\n", err.message);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
