/*
 * wall.c - tries the wall of steps on this machine: starts the probe of a runner, as a step's
 * runner would be started, with the isolation that the configuration says. It works in a directory
 * of its own, which is removed.
 */
#include <errno.h>

#include "common/base/fs.h"
#include "common/process/process.h"
#include "spawner/doctor/checks.h"

#define TRIAL_MS 60000
#define REPORT_MAX ((size_t)64 * 1024)

/* ---- what the runner gets ---- */

/* The members of a step document on which its wall depends. */
static int add_step(const struct df_config *c, cJSON *handoff, struct df_err *err)
{
    cJSON *step = df_json_object_at(handoff, "step");
    cJSON *tools = df_json_object_at(step, "tools");
    cJSON *providers = df_json_object_at(step, "providers");
    if (df_json_add_str(tools, "cacheDirectory", c->tool_cache_directory, err) < 0)
        return -1;
    return df_json_put(providers, err, DF_STR("pluginCacheDirectory", c->plugin_cache_directory),
                       DF_STR("filesystemMirror", c->filesystem_mirror));
}

static int write_handoff(const struct df_config *c, const char *path, const char *log,
                         struct df_err *err)
{
    DF_JSON cJSON *handoff = cJSON_CreateObject();
    cJSON *isolation = NULL;
    if (df_config_isolation(c, &isolation, err) < 0 ||
        df_json_put(handoff, err, DF_ITEM("isolation", isolation), DF_STR("terminationLog", log)) <
            0 ||
        add_step(c, handoff, err) < 0)
        return -1;
    return df_fs_write(log, "", 0, 0600, err) < 0 ? -1 : df_json_save(path, handoff, err);
}

static int compose_env(struct df_strs *env, struct df_err *err)
{
    static const char *const names[] = {"PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);
        if (value)
            (void)df_strs_set_env(env, names[i], value);
    }
    return df_strs_check(env, err);
}

/* ---- the trial ---- */

static int run_probe(const char *runner, const char *handoff, const char *work, cJSON **ret,
                     struct df_err *err)
{
    const char *const argv[] = {runner, "probe", "--handoff-file", handoff, "--work-dir",
                                work,   NULL};
    DF_STRS struct df_strs env = {0};
    DF_BUF struct df_buf out = DF_BUF_INIT(REPORT_MAX), said = DF_BUF_INIT(500);
    int code;
    if (compose_env(&env, err) < 0)
        return -1;
    const struct df_process_options o =
        DF_PROCESS_OPTIONS(argv, (const char *const *)(void *)env.items);
    if (df_process_run(&o, TRIAL_MS, &out, &said, &code, err) < 0)
        return -1;
    if (code != 0)
        return df_fail(err, DF_ERR_SYSTEM, "%s probe ended with %d: %s", runner, code,
                       df_buf_str(&said));
    return df_json_parse(df_buf_str(&out), out.len, ret, err);
}

static int try_in(const struct df_config *c, const char *runner, const char *directory, cJSON **ret,
                  struct df_err *err)
{
    DF_FREE char *handoff = df_fs_join(directory, "handoff.json");
    DF_FREE char *log = df_fs_join(directory, "report.json");
    DF_FREE char *work = df_fs_join(directory, "work");
    if (df_check_alloc(handoff, err) < 0 || df_check_alloc(log, err) < 0 ||
        df_fs_mkdirs(work, 0700, err) < 0 || write_handoff(c, handoff, log, err) < 0)
        return -1;
    return run_probe(runner, handoff, work, ret, err);
}

static int judge(const char *runner, const cJSON *wall, struct df_err *err)
{
    const char *error = df_json_str(wall, "error");
    if (!wall)
        return df_fail(err, DF_ERR_USER, "%s is of another version and does not try its wall: %s",
                       runner, "install both programs of one version");
    return error ? df_fail(err, DF_ERR_SYSTEM, "%s", error) : 0;
}

int df_doctor_try_wall(const struct df_config *c, size_t *ret_hidden, struct df_err *err)
{
    const char *base = getenv("TMPDIR");
    DF_FREE char *runner = df_config_runner(c);
    DF_FREE char *directory = df_strf("%s/dayfly-doctor-XXXXXX", base ? base : "/tmp");
    DF_JSON cJSON *report = NULL;
    if (!directory)
        return df_fail_oom(err);
    if (!runner)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no dayfly-runner that could try it");
    if (!mkdtemp(directory))
        return df_fail_errno(err, errno, "%s", directory);
    int result = try_in(c, runner, directory, &report, err);
    int removed = df_fs_remove_tree(directory, result < 0 ? NULL : err);
    const cJSON *wall = df_json_at(report, "wall");
    if (result < 0 || removed < 0 || judge(runner, wall, err) < 0)
        return -1;
    *ret_hidden = (size_t)df_json_int(wall, "hidden", 0);
    return 0;
}
