#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/process/process.h"
#include "scratch.h"

#define NOBODY 65534

static const char *const the_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", NULL};

/* <dir>/data/{key,mine/file} and <dir>/open/file */
static void lay_out(const char *dir)
{
    static const char *const names[] = {"data", "data/mine", "open"};
    static const char *const files[] = {"data/key", "data/mine/file", "open/file"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        DF_FREE char *path = df_fs_join(dir, names[i]);
        assert_int_equal(mkdir(path, 0755), 0);
        assert_true(geteuid() != 0 || chown(path, NOBODY, NOBODY) == 0);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        DF_FREE char *path = df_fs_join(dir, files[i]);
        assert_int_equal(df_fs_write(path, "text", 4, 0600, NULL), 0);
        assert_true(geteuid() != 0 || chown(path, NOBODY, NOBODY) == 0);
    }
    assert_int_equal(chmod(dir, 0755), 0);
}

static void add(struct df_wall *v, enum df_wall_access access, const char *dir, const char *name)
{
    DF_FREE char *path = df_fs_join(dir, name);
    assert_int_equal(df_wall_add(v, access, path, NULL), 0);
}

/* The output of a shell script with this wall, started in dir. */
static char *run_with(const struct df_wall *v, const char *dir, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(65536);
    struct df_err err = {0};
    int code;
    o.cwd = dir;
    o.wall = v;
    if (df_process_run(&o, 20000, &out, NULL, &code, &err) < 0)
        fail_msg("%s", err.message);
    return df_buf_take(&out);
}

static void hidden_data_shows_only_what_is_laid_over_it(void **state)
{
    DF_WALL struct df_wall v = {0};
    lay_out(*state);
    add(&v, DF_WALL_HIDDEN, *state, "data");
    add(&v, DF_WALL_WRITABLE, *state, "data/mine");
    DF_FREE char *seen = run_with(&v, *state,
                                  "ls data; cat data/mine/file; echo new >data/mine/new && echo w; "
                                  "touch data/other 2>/dev/null || echo r; cat open/file");
    assert_string_equal(seen, "mine\ntextw\nr\ntext");
    DF_FREE char *made = df_fs_join(*state, "data/mine/new");
    DF_FREE char *key = df_fs_join(*state, "data/key");
    assert_true(df_fs_exists(made) && df_fs_exists(key));
}

static void a_signal_waits_until_the_process_behind_a_wall_handles_it(void **state)
{
    static const char late[] = "select(undef, undef, undef, 0.3); $SIG{INT} = sub { exit 7 }; "
                               "select(undef, undef, undef, 0.05) while 1";
    static const char *const argv[] = {"perl", "-e", late, NULL};
    DF_WALL struct df_wall v = {0};
    DF_PROCESS struct df_process p = DF_PROCESS_INIT;
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, the_env);
    struct df_err err = {0};
    bool exited = false;
    int status = 0;
    lay_out(*state);
    add(&v, DF_WALL_HIDDEN, *state, "data");
    o.wall = &v;
    assert_int_equal(df_process_spawn(&o, &p, &err), 0);
    assert_int_equal(df_process_signal(&p, SIGINT, &err), 0);
    assert_int_equal(df_process_wait(&p, 10000, &exited, &status, &err), 0);
    if (!exited) {
        assert_int_equal(df_process_signal(&p, SIGKILL, &err), 0);
        assert_int_equal(df_process_wait(&p, -1, &exited, &status, &err), 0);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void a_hidden_file_looks_empty(void **state)
{
    DF_WALL struct df_wall v = {0};
    lay_out(*state);
    add(&v, DF_WALL_HIDDEN, *state, "data/key");
    add(&v, DF_WALL_HIDDEN, *state, "open/file");
    DF_FREE char *seen = run_with(&v, *state, "cat data/key open/file data/mine/file");
    assert_string_equal(seen, "text");
}

static void a_read_only_directory_cannot_be_written_and_not_be_mounted_again(void **state)
{
    DF_WALL struct df_wall v = {0};
    lay_out(*state);
    add(&v, DF_WALL_READ_ONLY, *state, "open");
    add(&v, DF_WALL_HIDDEN, *state, "data");
    DF_FREE char *seen = run_with(
        &v, *state,
        "cat open/file; for try in 'touch open/x' 'mount -o remount,bind,rw open' 'umount open' "
        "'umount -l data' 'unshare -Urm umount data' 'unshare -Urm umount -l open' "
        "'unshare -Urm mount -o remount,bind,rw open'; do "
        "$try 2>/dev/null && echo \"$try\"; done; ls data; touch open/y 2>/dev/null && echo w");
    assert_string_equal(seen, "text");
}

static void with_a_hidden_root_only_the_entries_are_there(void **state)
{
    static const char *const shown[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc"};
    DF_WALL struct df_wall v = {0};
    lay_out(*state);
    assert_int_equal(df_wall_add(&v, DF_WALL_HIDDEN, "/", NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(shown); i++)
        assert_int_equal(df_wall_add(&v, DF_WALL_READ_ONLY, shown[i], NULL), 0);
    assert_int_equal(df_wall_add(&v, DF_WALL_EMPTY, "/tmp", NULL), 0);
    assert_int_equal(df_wall_add(&v, DF_WALL_WRITABLE, "/dev/null", NULL), 0);
    assert_int_equal(df_wall_add_link(&v, "/dev/fd", "/proc/self/fd", NULL), 0);
    add(&v, DF_WALL_WRITABLE, *state, "data/mine");
    DF_FREE char *mine = df_fs_join(*state, "data/mine");
    DF_FREE char *seen = run_with(&v, mine,
                                  "cat file; ls ..; ls -d /etc /home /root /var 2>/dev/null; "
                                  "touch /x 2>/dev/null || echo r; echo t >/tmp/t && cat /tmp/t; "
                                  "readlink /dev/fd; touch new && echo w");
    assert_string_equal(seen, "textmine\nr\nt\n/proc/self/fd\nw\n");
}

static void other_processes_are_neither_seen_nor_signalled(void **state)
{
    DF_WALL struct df_wall v = {0};
    char script[256];
    (void)snprintf(script, sizeof(script),
                   "echo $$; set -- /proc/[0-9]*; echo $#; kill -0 %d 2>/dev/null && echo seen; "
                   "cat /proc/%d/environ 2>/dev/null | head -c 5; ls /proc/1/root/ >/dev/null && "
                   "echo mine",
                   getpid(), getpid());
    DF_FREE char *seen = run_with(&v, *state, script);
    assert_string_equal(seen, "1\n1\nmine\n");
}

/* The hexadecimal number behind this name in the text of /proc/self/status. */
static uint64_t number_of(const char *status, const char *name)
{
    const char *at = strstr(status, name);
    assert_non_null(at);
    return strtoull(at + strlen(name), NULL, 16);
}

/* What a service may have that was started with ambient capabilities. Nothing without root. */
static void inherit_a_capability(int capability)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (geteuid() != 0)
        return;
    assert_int_equal(syscall(SYS_capget, &head, sets), 0);
    sets[CAP_TO_INDEX(capability)].inheritable |= CAP_TO_MASK(capability);
    assert_int_equal(syscall(SYS_capset, &head, sets), 0);
    assert_int_equal(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0), 0);
}

static void root_keeps_a_few_capabilities_and_nobody_gets_another_one(void **state)
{
    static const int kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                               CAP_KILL,  CAP_SETGID,       CAP_SETUID};
    /* Only what does no harm where it succeeds: as root this test runs on the machine itself. */
    static const char script[] =
        "cat /proc/self/status; for family in 2 17; do perl -e 'use Socket; "
        "socket(my $s, $ARGV[0], SOCK_RAW, 1) and print \"raw\"' $family; done; "
        "perl -e 'setpriority(0, 0, -5) and print \"priority\"'";
    DF_WALL struct df_wall v = {0};
    uint64_t mask = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(kept); i++)
        mask |= UINT64_C(1) << kept[i];
    inherit_a_capability(CAP_NET_RAW);
    DF_FREE char *seen = run_with(&v, *state, script);
    assert_int_equal(number_of(seen, "CapBnd:"), mask);
    assert_int_equal(number_of(seen, "CapPrm:"), geteuid() == 0 ? mask : 0);
    assert_int_equal(number_of(seen, "CapEff:"), geteuid() == 0 ? mask : 0);
    assert_int_equal(number_of(seen, "CapInh:"), 0);
    assert_int_equal(number_of(seen, "CapAmb:"), 0);
    assert_int_equal(number_of(seen, "NoNewPrivs:"), 1);
    assert_null(strstr(seen, "raw"));
    assert_null(strstr(seen, "priority"));
}

/* A script that looks for keys of the session (-3) and of the user (-4), and for a segment of
 * shared memory; then the errors of the three calls for keys, which have no arguments. */
static char *find_keys_and_memory(const struct df_wall *v, const char *dir, key_t key)
{
    char script[512];
    (void)snprintf(script, sizeof(script),
                   "perl -e 'my @s = qw(user wall-test); "
                   "for (-3, -4) { print syscall(%d, %d, $_, @s, 0) > 0 ? \"key \" : \"none \" } "
                   "print defined(shmget(%d, 1, 0)) ? \"memory\" : \"none\"; "
                   "for (%d, %d, %d) { $! = 0; syscall($_, 0, 0, 0, 0, 0); print \" \", $! + 0 }'",
                   (int)SYS_keyctl, KEYCTL_SEARCH, (int)key, (int)SYS_add_key, (int)SYS_request_key,
                   (int)SYS_keyctl);
    return run_with(v, dir, script);
}

static long add_key(int ring)
{
    return syscall(SYS_add_key, "user", "wall-test", "x", (size_t)1, ring);
}

static void keys_of_session_and_user_and_shared_memory_stay_outside(void **state)
{
    DF_WALL struct df_wall v = {0};
    const key_t key = (key_t)getpid();
    int segment = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600);
    assert_true(segment >= 0);
    bool has_keys = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 &&
                    add_key(KEY_SPEC_SESSION_KEYRING) >= 0;
    long of_user = has_keys ? add_key(KEY_SPEC_USER_KEYRING) : -1;
    DF_FREE char *without = find_keys_and_memory(NULL, *state, key);
    DF_FREE char *with = find_keys_and_memory(&v, *state, key);
    assert_int_equal(shmctl(segment, IPC_RMID, NULL), 0);
    if (of_user >= 0)
        assert_int_equal(syscall(SYS_keyctl, KEYCTL_UNLINK, of_user, KEY_SPEC_USER_KEYRING), 0);
    assert_non_null(strstr(without, has_keys ? "key key memory" : "none none memory"));
    assert_string_equal(with, "none none none 38 38 38"); /* ENOSYS */
}

static int listen_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    (void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* Version 6 of Landlock came with Linux 6.12. */
static void abstract_sockets_of_others_are_out_of_reach_where_the_kernel_can(void **state)
{
    char script[256], name[32];
    DF_WALL struct df_wall v = {0};
    bool can = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 6;
    (void)snprintf(name, sizeof(name), "wall-test-%d", getpid());
    DF_CLOSE int fd = listen_abstract(name);
    (void)snprintf(script, sizeof(script),
                   "perl -e 'use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0); "
                   "print connect($s, pack_sockaddr_un(\"\\0%s\")) ? \"reached\" : \"kept\"'",
                   name);
    DF_FREE char *without = run_with(NULL, *state, script);
    DF_FREE char *with = run_with(&v, *state, script);
    assert_string_equal(without, "reached");
    assert_string_equal(with, can ? "kept" : "reached");
}

static void descendants_end_with_the_process(void **state)
{
    DF_WALL struct df_wall v = {0};
    lay_out(*state);
    DF_FREE char *seen =
        run_with(&v, *state, "(setsid sleep 0.2; echo late >open/late) >/dev/null 2>&1 &\necho x");
    assert_string_equal(seen, "x\n");
    (void)usleep(400000);
    DF_FREE char *late = df_fs_join(*state, "open/late");
    assert_false(df_fs_exists(late));
}

static void a_wall_that_cannot_be_applied_names_its_entry(void **state)
{
    DF_WALL struct df_wall v = {0};
    const char *const argv[] = {"/bin/true", NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, the_env);
    struct df_process p;
    struct df_err err = {0};
    lay_out(*state);
    add(&v, DF_WALL_READ_ONLY, *state, "open");
    DF_FREE char *path = df_fs_join(*state, "open"), *gone = df_fs_join(*state, "gone");
    assert_int_equal(rename(path, gone), 0);
    o.wall = &v;
    assert_int_equal(df_process_spawn(&o, &p, &err), -1);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "/bin/true isolated"));
}

static void what_a_path_has_to_do_with_hidden_ones_is_known(void **state)
{
    static const struct {
        const char *name;
        bool touches;
    } cases[] = {{"data", true},  {"data/mine", true}, {"data/key", true}, {"", true},
                 {"open", false}, {"data2", false},    {"link", true},     {"open/file", false}};
    DF_WALL struct df_wall v = {0};
    lay_out(*state);
    DF_FREE char *link = df_fs_join(*state, "link"), *other = df_fs_join(*state, "data2");
    assert_int_equal(symlink("data/mine", link), 0);
    assert_int_equal(mkdir(other, 0755), 0);
    add(&v, DF_WALL_HIDDEN, *state, "data");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *path = df_fs_join(*state, cases[i].name);
        DF_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
        assert_true(fd >= 0);
        if (df_wall_touches_hidden(&v, fd) != cases[i].touches)
            fail_msg("%s", cases[i].name);
    }
}

static void limits_hold_for_the_child_and_are_never_raised(void **state)
{
    static const struct df_process_limits limits = {
        .processes = RLIM_INFINITY, .memory_bytes = (rlim_t)1 << 30, .open_files = 50};
    const char *const argv[] = {"sh", "-c", "ulimit -d; ulimit -n; ulimit -c", NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, the_env);
    DF_BUF struct df_buf out = DF_BUF_INIT(1024);
    int code;
    (void)state;
    o.limits = &limits;
    o.no_core = true;
    assert_int_equal(df_process_run(&o, 20000, &out, NULL, &code, NULL), 0);
    assert_string_equal(df_buf_str(&out), "1048576\n50\n0\n");
}

#define TESTS                                                                                      \
    scratch_test(hidden_data_shows_only_what_is_laid_over_it),                                     \
        scratch_test(a_hidden_file_looks_empty),                                                   \
        scratch_test(a_signal_waits_until_the_process_behind_a_wall_handles_it),                   \
        scratch_test(a_read_only_directory_cannot_be_written_and_not_be_mounted_again),            \
        scratch_test(with_a_hidden_root_only_the_entries_are_there),                               \
        scratch_test(other_processes_are_neither_seen_nor_signalled),                              \
        scratch_test(root_keeps_a_few_capabilities_and_nobody_gets_another_one),                   \
        scratch_test(keys_of_session_and_user_and_shared_memory_stay_outside),                     \
        scratch_test(abstract_sockets_of_others_are_out_of_reach_where_the_kernel_can),            \
        scratch_test(descendants_end_with_the_process),                                            \
        scratch_test(a_wall_that_cannot_be_applied_names_its_entry)

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        TESTS, scratch_test(what_a_path_has_to_do_with_hidden_ones_is_known),
        scratch_test(limits_hold_for_the_child_and_are_never_raised)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The same in a child that is another user and not dumpable, as the runner of a service is. */
static int run_as_nobody(void)
{
    const struct CMUnitTest tests[] = {TESTS};
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(2);
        df_process_protect();
        _exit(cmocka_run_group_tests(tests, NULL, NULL));
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
    struct df_err err = {0};
    if (df_wall_probe(&err) < 0) {
        print_message("skipped: %s\n", err.message);
        return 0;
    }
    return run_all() + (geteuid() == 0 ? run_as_nobody() : 0);
}
