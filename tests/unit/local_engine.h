/*
 * local_engine.h - the local engine with real processes, for its tests: runners are shell scripts.
 * Include behind cmocka.h.
 */
#ifndef DF_TEST_LOCAL_ENGINE_H
#define DF_TEST_LOCAL_ENGINE_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "spawner/engine/engine.h"
#include "spawner/engine/local/step_dir.h"

#define UID_A "0a0a0a0a-0000-4000-8000-000000000001"
#define UID_B "0b0b0b0b-0000-4000-8000-000000000002"
#define TOKEN "c1a1mt0ken"

/* Every script has $DIR, its step's directory, and may use these. A script ends by itself when the
 * test is gone. */
#define PRELUDE                                                                                    \
    "#!/bin/sh\n"                                                                                  \
    "DIR=$5\n"                                                                                     \
    "FD=$3\n"                                                                                      \
    "echo started >> \"$DIR/../starts\"\n"                                                         \
    "result() { echo \"{\\\"exitCode\\\":$1,\\\"reason\\\":\\\"$2\\\"}\" > \"$DIR/result.json\"; " \
    "}\n"                                                                                          \
    "wait_for() { n=0; while [ ! -s \"$DIR/$1\" ] && [ $n -lt 3000 ]; do sleep 0.01; "             \
    "n=$((n+1)); done; }\n"

struct fixture {
    char top[64];
    char *root;   /* <top>/steps */
    char *runner; /* <top>/runner */
    struct df_engine *e;
    atomic_int notified;
};

static inline void on_notify(void *arg, const char *name)
{
    struct fixture *f = arg;
    assert_int_equal(strncmp(name, "net-1-", 6), 0);
    atomic_fetch_add(&f->notified, 1);
}

static inline void open_engine_keeping(struct fixture *f, bool keep_failed)
{
    const struct df_local_options o = {.directory = f->root,
                                       .runner_path = f->runner,
                                       .notify = on_notify,
                                       .notify_arg = f,
                                       .keep_failed = keep_failed};
    assert_int_equal(df_engine_local_new(&o, &f->e, NULL), 0);
}

static inline void close_engine(struct fixture *f)
{
    if (f->e)
        f->e->ops->close(f->e);
    f->e = NULL;
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    (void)snprintf(f->top, sizeof(f->top), "/tmp/dayfly-engine-XXXXXX");
    assert_non_null(mkdtemp(f->top));
    f->root = df_fs_join(f->top, "steps");
    f->runner = df_fs_join(f->top, "runner");
    open_engine_keeping(f, false);
    *state = f;
    return 0;
}

static inline struct df_step_dir step_dir(const struct fixture *f, const char *uid)
{
    struct df_step_dir d;
    assert_int_equal(df_step_dir_init(&d, f->root, uid, NULL), 0);
    return d;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    static const char *const uids[] = {UID_A, UID_B};
    for (size_t i = 0; i < DF_ARRAY_SIZE(uids); i++) {
        DF_STEP_DIR struct df_step_dir d = step_dir(f, uids[i]);
        (void)!df_step_dir_kill(&d, NULL);
    }
    close_engine(f);
    assert_int_equal(df_fs_remove_tree(f->top, NULL), 0);
    free(f->root);
    free(f->runner);
    free(f);
    return 0;
}

static inline void script(struct fixture *f, const char *body)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&b, PRELUDE);
    (void)df_buf_adds(&b, body);
    assert_int_equal(df_fs_replace(f->runner, b.data, b.len, 0700, NULL), 0);
}

static inline struct df_engine_step step_of(const char *uid, const char *name)
{
    return (struct df_engine_step){.name = name,
                                   .uid = uid,
                                   .runner = {.server_url = "http://127.0.0.1:1",
                                              .endpoint_file = "/nowhere/endpoint",
                                              .claim_token = TOKEN,
                                              .grace_seconds = 900}};
}

static inline const struct df_engine_step *step_a(void)
{
    static struct df_engine_step s;
    s = step_of(UID_A, "net-1-plan");
    return &s;
}

static inline void create(struct fixture *f, const struct df_engine_step *s)
{
    DF_JSON cJSON *ref = NULL;
    struct df_err err = {0};
    if (f->e->ops->runner->step.create(f->e, s, &ref, &err) < 0)
        fail_msg("create: %s", err.message);
    assert_string_equal(df_json_str(ref, "kind"), "local");
    assert_string_equal(df_json_str(ref, "name"), s->name);
    assert_string_equal(df_json_str(ref, "uid"), s->uid);
}

static inline struct df_engine_observation look(struct fixture *f, const struct df_engine_step *s)
{
    struct df_engine_observation o;
    struct df_err err = {0};
    if (f->e->ops->runner->step.status(f->e, s, &o, &err) < 0)
        fail_msg("status: %s", err.message);
    return o;
}

/* What never comes is ended by tests/run. */
static inline struct df_engine_observation await_end(struct fixture *f,
                                                     const struct df_engine_step *s)
{
    struct df_engine_observation o;
    while ((o = look(f, s)).phase == DF_ENGINE_RUNNING)
        (void)usleep(2000);
    return o;
}

static inline void await_notify(struct fixture *f, int count)
{
    while (atomic_load(&f->notified) < count)
        (void)usleep(1000);
}

static inline void await_file(const char *path)
{
    struct stat st;
    while (stat(path, &st) < 0 || st.st_size == 0)
        (void)usleep(1000);
}

static inline char *in_dir(const struct fixture *f, const char *name)
{
    return df_strf("%s/%s/%s", f->root, UID_A, name);
}

static inline void await_in_dir(const struct fixture *f, const char *name)
{
    DF_FREE char *path = in_dir(f, name);
    await_file(path);
}

static inline void touch_in_dir(const struct fixture *f, const char *name, const char *text)
{
    DF_FREE char *path = in_dir(f, name);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, NULL), 0);
}

static inline char *read_file(const char *path)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    return df_buf_take(&b);
}

static inline char *read_in_dir(const struct fixture *f, const char *name)
{
    DF_FREE char *path = in_dir(f, name);
    return read_file(path);
}

static inline size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static inline size_t starts(const struct fixture *f)
{
    DF_FREE char *path = df_fs_join(f->root, "starts");
    if (!df_fs_exists(path))
        return 0;
    DF_FREE char *text = read_file(path);
    return lines_of(text);
}

static inline pid_t pid_in(const struct fixture *f, const char *name)
{
    DF_FREE char *text = read_in_dir(f, name);
    int pid = 0;
    assert_int_equal(sscanf(text, "%d", &pid), 1);
    return pid;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

#endif
