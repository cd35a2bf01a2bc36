/*
 * input_world.h - the input of a platform action: variables, mounted files and a kubeconfig, which
 * a test makes worse and loads. Include behind cmocka.h.
 */
#ifndef DF_TEST_INPUT_WORLD_H
#define DF_TEST_INPUT_WORLD_H

#include <fcntl.h>

#include "runner/platform/input.h"
#include "scratch.h"

#define ENVIRONMENT                                                                                \
    "name: shop\n"                                                                                 \
    "domain: shop.example.org\n"                                                                   \
    "gitRepository: https://git.example.org/platform.git\n"                                        \
    "gitRevision: main\n"

#define KUBECONFIG                                                                                 \
    "current-context: here\n"                                                                      \
    "contexts: [{name: here, context: {cluster: c, user: u}}]\n"                                   \
    "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]\n"                          \
    "users: [{name: u, user: {token: hush}}]\n"

struct world {
    char *dir; /* borrowed */
    char *config, *secrets, *manifests, *account, *kubeconfig;
    struct df_platform_input in;
    struct df_faults faults;
};

static inline void world_free(struct world *w)
{
    char *paths[] = {w->config, w->secrets, w->manifests, w->account, w->kubeconfig};
    for (size_t i = 0; i < DF_ARRAY_SIZE(paths); i++)
        free(paths[i]);
    df_input_free(&w->in);
    df_faults_free(&w->faults);
}
#define WORLD DF_CLEANUP(world_free) struct world

static inline void put(const char *dir, const char *name, const char *text)
{
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(dir, name);
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    if (df_fs_mkdirs(parent, 0755, &err) < 0 ||
        df_fs_write(path, text, strlen(text), 0644, &err) < 0)
        fail_msg("%s", err.message);
}

/* The environment of the test: `kept` owns what was ever set. */
static struct df_strs kept;
static char *variables[64];

/* value NULL: takes it out. */
static inline void set(const char *name, const char *value)
{
    size_t n = 0;
    assert_int_equal(unsetenv(name), 0);
    while (variables[n])
        n++;
    assert_true(n + 1 < DF_ARRAY_SIZE(variables));
    if (!value)
        return;
    assert_int_equal(df_strs_addf(&kept, "%s=%s", name, value), 0);
    variables[n] = kept.items[kept.len - 1];
}

static inline void clear_variables(void)
{
    memset(variables, 0, sizeof(variables));
    environ = variables;
    df_strs_free(&kept);
}

/* A good input: no variables but the required ones. */
static inline struct world good_world(char *dir)
{
    struct world w = {.dir = dir,
                      .config = df_fs_join(dir, "config"),
                      .secrets = df_fs_join(dir, "secrets"),
                      .manifests = df_fs_join(dir, "manifests"),
                      .account = df_fs_join(dir, "account"),
                      .kubeconfig = df_fs_join(dir, "kubeconfig")};
    put(dir, "config/environment.yaml", ENVIRONMENT);
    put(dir, "kubeconfig", KUBECONFIG);
    clear_variables();
    set("ENVIRONMENT", "staging");
    set("KUBECONFIG_PATH", w.kubeconfig);
    return w;
}

static inline void load_as(struct world *w, enum df_platform_action action)
{
    const struct df_input_places places = {w->config, w->secrets, w->manifests, w->account};
    struct df_err err = {0};
    df_input_free(&w->in);
    df_faults_free(&w->faults);
    if (df_input_load(action, &places, &w->in, &w->faults, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void load(struct world *w)
{
    load_as(w, DF_PLATFORM_DEPLOY);
}

static inline void assert_good(const struct world *w)
{
    if (w->faults.lines.len)
        fail_msg("%s", w->faults.lines.items[0]);
}

/* Exactly these faults, joined by line ends; the directory of the test is left out of them. */
static inline void assert_faults(const struct world *w, const char *expected)
{
    DF_BUF struct df_buf seen = DF_BUF_INIT(DF_MIB);
    DF_FREE char *all = df_strs_join(&w->faults.lines, "\n");
    size_t n = strlen(w->dir);
    for (const char *p = all; *p;) {
        bool is_dir = strncmp(p, w->dir, n) == 0;
        (void)(is_dir ? df_buf_adds(&seen, "DIR") : df_buf_addc(&seen, *p));
        p += is_dir ? n : 1;
    }
    assert_string_equal(df_buf_str(&seen), expected);
}

/* load(), and what was logged meanwhile. The caller frees. */
static inline char *load_and_listen(struct world *w)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    DF_FREE char *path = df_fs_join(w->dir, "stderr");
    int real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    load(w);
    assert_true(dup2(real, STDERR_FILENO) >= 0);
    (void)close(real);
    assert_int_equal(df_fs_read(path, &text, NULL), 0);
    return df_buf_take(&text);
}

#endif
