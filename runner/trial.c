/* What is noted outside, then the look from the inside, then df_trial(), which has both done. */
#include "runner/trial.h"

#include <ctype.h>
#include <dirent.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/base/exit.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/process/process.h"
#include "runner/tofu/isolation.h"

#define LOOK_MS 20000
#define REQUEST_MAX (256 * DF_KIB)
#define ANSWER_MAX (4 * DF_KIB)

/* ---- outside ---- */

/* Which file or directory a path leads to; NULL: to none. The caller frees. */
static char *id_of(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0
               ? NULL
               : df_strf("%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

static int note_at(cJSON *row, const char *path, const char *id, struct df_err *err)
{
    return df_json_add_str(row, "path", path, err) < 0 ? -1 : df_json_add_str(row, "id", id, err);
}

static int note(cJSON *hidden, const char *path, const char *id, struct df_err *err)
{
    cJSON *row = cJSON_CreateObject();
    if (df_json_append(hidden, row, err) < 0)
        return -1;
    return note_at(row, path, id, err);
}

/* By the name that the configuration has, and by the real one. */
static int note_secret(cJSON *hidden, const char *path, struct df_err *err)
{
    DF_FREE char *id = id_of(path), *real = realpath(path, NULL);
    if (!id || !real)
        return 0;
    if (note(hidden, path, id, err) < 0)
        return -1;
    return df_streq(path, real) ? 0 : note(hidden, real, id, err);
}

static int write_request(const struct df_isolation *i, const struct df_dirs *dirs, const char *path,
                         struct df_err *err)
{
    DF_JSON cJSON *request = cJSON_CreateObject();
    cJSON *hidden = df_json_array_at(request, "hidden");
    cJSON *shown = df_json_object_at(request, "shown");
    DF_FREE char *id = id_of(dirs->source);
    if (df_check_alloc(hidden, err) < 0 || df_check_alloc(shown, err) < 0 ||
        df_check_alloc(id, err) < 0 || note_at(shown, dirs->source, id, err) < 0)
        return -1;
    for (size_t n = 0; n < i->secrets.len; n++)
        if (note_secret(hidden, i->secrets.items[n], err) < 0)
            return -1;
    DF_FREE char *text = df_json_print(request);
    return text ? df_fs_write(path, text, strlen(text), 0600, err) : df_fail_oom(err);
}

/* ---- inside ---- */

static bool leads_to(const cJSON *row)
{
    const char *path = df_json_str(row, "path");
    DF_FREE char *id = path ? id_of(path) : NULL;
    return id && df_streq(id, df_json_str(row, "id"));
}

static int look_for_files(const cJSON *request)
{
    const cJSON *row;
    int faults = 0;
    cJSON_ArrayForEach (row, df_json_at(request, "hidden")) {
        if (leads_to(row))
            faults += printf("sees %s\n", df_json_str(row, "path")) > 0;
    }
    if (!leads_to(df_json_at(request, "shown")))
        faults += puts("does not see its own work directory") >= 0;
    return faults;
}

static bool has_capability(const struct __user_cap_data_struct *sets, int c)
{
    const struct __user_cap_data_struct *half = &sets[CAP_TO_INDEX(c)];
    return (half->permitted | half->effective | half->inheritable) & CAP_TO_MASK(c);
}

static int look_for_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    int faults = 0;
    if (syscall(SYS_capget, &head, sets) < 0)
        return puts("cannot read its capabilities") >= 0;
    for (int c = 0, is_set; (is_set = prctl(PR_CAPBSET_READ, c, 0, 0, 0)) >= 0; c++)
        if (!df_wall_keeps(c) && (is_set || has_capability(sets, c)))
            faults += printf("has the capability %d\n", c) > 0;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        faults += puts("may gain privileges") >= 0;
    return faults;
}

static int look_for_processes(void)
{
    DIR *proc = opendir("/proc");
    int others = 0;
    for (const struct dirent *e; proc && (e = readdir(proc));)
        others += isdigit((unsigned char)e->d_name[0]) && strtol(e->d_name, NULL, 10) != getpid();
    if (!proc)
        return puts("has no /proc") >= 0;
    (void)closedir(proc);
    return others ? printf("sees %d other processes\n", others) > 0 : 0;
}

int df_trial_look(const char *file)
{
    DF_JSON cJSON *request = NULL;
    struct df_err err = {0};
    if (df_json_load(file, REQUEST_MAX, &request, &err) < 0) {
        (void)puts(err.message);
        return DF_EXIT_FAILURE;
    }
    int faults = look_for_files(request) + look_for_capabilities() + look_for_processes();
    return faults ? DF_EXIT_FAILURE : DF_EXIT_OK;
}

/* ---- both ---- */

static int look_behind(const struct df_wall *wall, const char *self, const char *request,
                       struct df_err *err)
{
    const char *const argv[] = {self, DF_TRIAL_COMMAND, request, NULL};
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, NULL);
    DF_BUF struct df_buf out = DF_BUF_INIT(ANSWER_MAX);
    int code;
    o.wall = wall;
    if (df_process_run(&o, LOOK_MS, &out, NULL, &code, err) < 0)
        return -1;
    while (out.len && out.data[out.len - 1] == '\n')
        out.data[--out.len] = '\0';
    for (size_t i = 0; i < out.len; i++)
        if (out.data[i] == '\n')
            out.data[i] = ',';
    return code == DF_EXIT_OK ? 0
                              : df_fail(err, DF_ERR_DENIED, "a process behind the wall %s",
                                        out.len ? df_buf_str(&out) : "did not report");
}

static int try_wall(const struct df_isolation *i, const struct df_dirs *dirs, const cJSON *step,
                    struct df_err *err)
{
    DF_CLEANUP(df_step_wall_free) struct df_step_wall wall = {0};
    DF_FREE char *self = NULL, *request = df_fs_join(dirs->source, "request.json");
    if (df_check_alloc(request, err) < 0 || df_process_own_path(&self, err) < 0 ||
        write_request(i, dirs, request, err) < 0)
        return -1;
    const struct df_step_wall_request q = {
        .isolation = i, .step = step, .dirs = dirs, .tool = self};
    return df_step_wall_make(&q, &wall, err) < 0 ? -1 : look_behind(&wall.wall, self, request, err);
}

int df_trial(const cJSON *handoff, const char *work_dir, cJSON *part, struct df_err *err)
{
    DF_CLEANUP(df_isolation_free) struct df_isolation isolation = {0};
    DF_CLEANUP(df_dirs_free) struct df_dirs dirs = {0};
    if (df_isolation_read(handoff, &isolation, err) < 0 || df_dirs_make(work_dir, &dirs, err) < 0 ||
        df_json_add_num(part, "hidden", (double)isolation.hidden.len, err) < 0)
        return -1;
    return try_wall(&isolation, &dirs, df_json_at(handoff, "step"), err);
}
