/* What a runner gets ready before it has a step, and what its step takes of that. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/archive/tree.h"
#include "runner/preparation.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

extern char **environ;

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

struct fixture {
    char *dir;
    struct df_dirs dirs;
    struct df_stop *stop;
    char digest[65]; /* of the module */
    struct df_preparation *p;
    char **before; /* environ */
    char *path[2]; /* environ while git is another one */
};

static void put(const struct fixture *f, const char *name, mode_t mode, const char *text)
{
    DF_FREE char *path = df_fs_join(f->dir, name);
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(df_fs_mkdirs(parent, 0755, NULL), 0);
    assert_int_equal(df_fs_replace(path, text, strlen(text), mode, NULL), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    void *dir = NULL;
    if (!f || enter_scratch(&dir) < 0)
        return -1;
    f->dir = dir;
    put(f, "module/main.tf", 0644, "resource");
    put(f, "tools/tofu", 0755, "#!/bin/sh\necho OpenTofu v1.9.0\n");
    DF_FREE char *work = df_fs_join(dir, "work"), *module = df_fs_join(dir, "module");
    *state = f;
    return df_dirs_make(work, &f->dirs, NULL) < 0 || df_tree_digest(module, f->digest, NULL) < 0 ||
                   df_stop_new(-1, &f->stop, NULL) < 0
               ? -1
               : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *dir = f->dir;
    df_preparation_free(f->p);
    if (f->before)
        environ = f->before;
    free(f->path[0]);
    df_stop_free(f->stop);
    df_dirs_free(&f->dirs);
    free(f);
    return leave_scratch(&dir);
}

/* ---- a step ---- */

/* source, digest: NULL: those of the module. */
static cJSON *step_of(const struct fixture *f, const char *source, const char *digest)
{
    DF_FREE char *ours = df_strf("{'kind':'directory','url':'file://%s/module'}", f->dir);
    DF_FREE char *text =
        df_strf("{'tools':{'directories':['%s/tools'],'cacheDirectory':'%s/cache'},"
                "'runtime':{'name':'opentofu'},'source':%s,'expected':{'treeDigest':'%s'%s}}",
                f->dir, f->dir, source ? source : ours, digest ? digest : f->digest,
                source ? ",'commit':'" COMMIT "'" : "");
    return json(text);
}

static void begin(struct fixture *f, const cJSON *step)
{
    struct df_err err = {0};
    if (df_preparation_start(cJSON_Duplicate(step, true), &f->dirs, &f->p, &err) < 0)
        fail_msg("%s", err.message);
}

static bool takes(struct fixture *f)
{
    struct df_source_result source = {0};
    struct df_err err = {0};
    bool is_taken = false;
    int log = -1;
    if (df_preparation_take_source(f->p, &is_taken, &source, &log, &err) < 0)
        fail_msg("%s", err.message);
    if (is_taken) {
        assert_true(df_fs_exists(source.module_dir));
        assert_true(log >= 0);
    }
    df_source_result_free(&source);
    return is_taken;
}

static enum df_tree_visit refuse_entry(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    (void)arg;
    (void)err;
    fail_msg("%s is left", e->path);
    return DF_TREE_FAIL;
}

static void assert_empty(const struct fixture *f)
{
    assert_int_equal(df_tree_walk(f->dirs.source, refuse_entry, NULL, NULL), 0);
}

static bool knows_tool(const struct fixture *f)
{
    DF_FREE char *path = df_fs_join(f->dir, "cache/versions");
    return df_fs_exists(path);
}

/* ---- what is ready ---- */

static void a_step_takes_its_source_and_finds_its_tool_known(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *step = step_of(f, NULL, NULL);
    begin(f, step);
    df_preparation_end(f->p, step, f->stop);
    assert_true(knows_tool(f));
    assert_true(takes(f));
    assert_false(takes(f)); /* it has it */
}

static void without_a_preparation_there_is_nothing_to_take(void **state)
{
    assert_false(takes(*state));
}

static void what_was_not_known_yet_may_be_anything_in_the_step(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *step = step_of(f, NULL, NULL), *early = step_of(f, NULL, NULL);
    cJSON_DeleteItemFromObjectCaseSensitive(early, "source");
    cJSON_DeleteItemFromObjectCaseSensitive(early, "expected");
    cJSON_DeleteItemFromObjectCaseSensitive(early, "runtime");
    begin(f, early);
    df_preparation_end(f->p, step, f->stop);
    assert_true(knows_tool(f));
    assert_false(takes(f));
    assert_empty(f);
}

/* ---- what is not taken ---- */

static void a_source_that_is_not_the_plans_is_not_taken(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *step = step_of(f, NULL, "another");
    begin(f, step);
    df_preparation_end(f->p, step, f->stop);
    assert_false(takes(f));
    assert_empty(f);
}

/* The digest of a plan leaves two of these out. */
static void a_source_that_was_changed_since_is_not_taken(void **state)
{
    static const char *const changed[] = {"work/source/main.tf", "work/source/.git/config",
                                          "work/source/.terraform/modules/modules.json"};
    struct fixture *f = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(changed); i++) {
        DF_JSON cJSON *step = step_of(f, NULL, NULL);
        begin(f, step);
        df_preparation_end(f->p, step, f->stop);
        put(f, changed[i], 0644, "other");
        assert_false(takes(f));
        assert_empty(f);
        df_preparation_free(DF_TAKE(f->p));
    }
}

static void a_source_of_another_step_is_not_taken(void **state)
{
    struct fixture *f = *state;
    static const char *const members[] = {"source", "runtime", "tools"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        DF_JSON cJSON *step = step_of(f, NULL, NULL), *other = step_of(f, NULL, NULL);
        assert_int_equal(df_json_set(other, members[i], json("{'url':'other'}"), NULL), 0);
        begin(f, step);
        df_preparation_end(f->p, other, f->stop);
        assert_false(takes(f));
        assert_empty(f);
        df_preparation_free(DF_TAKE(f->p));
    }
}

static void a_source_that_is_not_there_leaves_the_tool_to_be_found(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *step = step_of(f, "{'kind':'directory','url':'file:///nowhere'}", NULL);
    begin(f, step);
    df_preparation_end(f->p, step, f->stop);
    assert_false(takes(f));
    assert_true(knows_tool(f));
}

/* ---- a fetch on its way ---- */

#define SLOW "{'kind':'git','url':'https://127.0.0.1:1/net','branch':'main'}"

static void use_git(struct fixture *f, const char *script)
{
    put(f, "bin/git", 0755, script);
    f->path[0] = df_strf("PATH=%s/bin:/usr/bin:/bin", f->dir);
    f->before = environ;
    environ = f->path;
}

/* A git that says that it works, and hangs. */
static void hang_git(struct fixture *f)
{
    DF_FREE char *text = df_strf("#!/bin/sh\n: > %s/begun\nexec /bin/sleep 300\n", f->dir);
    use_git(f, text);
}

static void await_git(const struct fixture *f)
{
    DF_FREE char *begun = df_fs_join(f->dir, "begun");
    while (!df_fs_exists(begun))
        (void)usleep(1000);
}

static void a_fetch_for_another_step_is_stopped(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *step = step_of(f, SLOW, NULL), *other = step_of(f, NULL, NULL);
    hang_git(f);
    begin(f, step);
    await_git(f);
    df_preparation_end(f->p, other, f->stop);
    assert_false(takes(f));
    assert_empty(f);
}

static void a_step_that_is_stopped_does_not_wait_for_its_fetch(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *step = step_of(f, SLOW, NULL);
    hang_git(f);
    begin(f, step);
    await_git(f);
    df_stop_now(f->stop, DF_STOP_TIMEOUT);
    df_preparation_end(f->p, step, f->stop);
    assert_false(takes(f));
}

static void a_runner_without_a_step_stops_its_fetch(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *step = step_of(f, SLOW, NULL);
    hang_git(f);
    begin(f, step);
    await_git(f);
    df_preparation_free(DF_TAKE(f->p));
    assert_empty(f);
}

static void *release_git(void *arg)
{
    const struct fixture *f = arg;
    DF_FREE char *pipe = df_fs_join(f->dir, "pipe");
    int fd = open(pipe, O_WRONLY | O_CLOEXEC); /* when the tool reads */
    assert_true(fd >= 0);
    (void)close(fd);
    return NULL;
}

/* The git fails when it is released; the tool is looked for only after that. */
static void a_step_waits_for_its_source_on_its_way(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *pipe = df_fs_join(f->dir, "pipe");
    DF_FREE char *git = df_strf("#!/bin/sh\nread x < %s\nexec /bin/false\n", pipe);
    DF_JSON cJSON *step = step_of(f, SLOW, NULL);
    pthread_t thread;
    use_git(f, git);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    begin(f, step);
    assert_int_equal(pthread_create(&thread, NULL, release_git, f), 0);
    df_preparation_end(f->p, step, f->stop);
    (void)pthread_join(thread, NULL);
    assert_true(knows_tool(f)); /* which comes after the source */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    df_stop_block();
    const struct CMUnitTest tests[] = {
        TEST(a_step_takes_its_source_and_finds_its_tool_known),
        TEST(without_a_preparation_there_is_nothing_to_take),
        TEST(what_was_not_known_yet_may_be_anything_in_the_step),
        TEST(a_source_that_is_not_the_plans_is_not_taken),
        TEST(a_source_that_was_changed_since_is_not_taken),
        TEST(a_source_of_another_step_is_not_taken),
        TEST(a_source_that_is_not_there_leaves_the_tool_to_be_found),
        TEST(a_fetch_for_another_step_is_stopped),
        TEST(a_step_that_is_stopped_does_not_wait_for_its_fetch),
        TEST(a_runner_without_a_step_stops_its_fetch),
        TEST(a_step_waits_for_its_source_on_its_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
