/* What the bucket keeps, then the list, then the rollback; read rollback_state() for its order. */
#include "runner/history.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/init.h"
#include "runner/kept.h"
#include "runner/lineage.h"
#include "runner/place.h"

/* ---- the process that reads the bucket ---- */

/* {"state", "version"} in a file of the step. */
static int write_request(const struct df_context *c, const char *version, const char *file,
                         struct df_err *err)
{
    DF_SECRET_JSON cJSON *request = cJSON_CreateObject();
    if (df_json_add(request, "state", cJSON_Duplicate(df_json_at(c->doc, "state"), true), err) <
            0 ||
        (version && df_json_add_str(request, "version", version, err) < 0))
        return -1;
    return df_json_save(file, request, err);
}

static int run_reader(const struct df_context *c, const char *request, const char *out,
                      const char *errors, int *ret_code, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_FREE char *self = NULL;
    struct df_commander commander = c->commander;
    struct df_step_wall wall;
    struct df_process process = DF_PROCESS_INIT;
    struct df_command_end end = {.code = -1};
    if (df_process_own_path(&self, err) < 0)
        return -1;
    commander.program = self;
    commander.tool = NULL;
    if (commander.wall) { /* the limits are for programs of the module: this one has its own caps */
        wall = *commander.wall;
        wall.limits = NULL;
        commander.wall = &wall;
    }
    (void)df_strs_add(&args, DF_KEPT_COMMAND);
    (void)df_strs_add(&args, request);
    if (df_strs_check(&args, err) < 0 ||
        df_command_start(&commander, &args, out, errors, &process, err) < 0 ||
        df_command_wait(&commander, &process, &end, err) < 0)
        return -1;
    *ret_code = end.code;
    return 0;
}

static int fail_reader(const char *out, struct df_err *err)
{
    DF_JSON cJSON *failure = NULL;
    const char *reason, *message;
    if (df_json_load(out, DF_LIMIT_DOCUMENT, &failure, NULL) == 0 &&
        (reason = df_json_str(failure, "reason")) && (message = df_json_str(failure, "message")))
        return df_fail_reason(err, DF_ERR_USER, reason, "%s", message);
    return df_fail_reason(err, DF_ERR_SYSTEM, "RunnerFailed",
                          "the process that reads the versions of the state ended without an "
                          "answer");
}

/* Writes what df_kept_command() prints to the file out. version: NULL for the list. */
static int read_kept(const struct df_context *c, const char *version, const char *out,
                     struct df_err *err)
{
    DF_FREE char *request = df_fs_join(c->dirs->secret, "kept.json");
    DF_FREE char *errors = df_fs_join(c->dirs->secret, "kept.err");
    int code = -1;
    if (!request || !errors)
        return df_fail_oom(err);
    if (write_request(c, version, request, err) < 0 ||
        run_reader(c, request, out, errors, &code, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return code == 0 ? 0 : fail_reader(out, err);
}

/* ---- the list ---- */

static void note_version(struct df_context *c, const cJSON *v, int width)
{
    const char *at = df_json_str(v, "createdAt"), *lineage = df_json_str(v, "lineage");
    char serial[24] = "?";
    int64_t n = df_json_int(v, "serial", -1);
    if (n >= 0)
        (void)snprintf(serial, sizeof(serial), "%lld", (long long)n);
    (void)df_output_note(c->output, "%-*s  %-27s  %7s  %10lld  %s", width,
                         df_json_str(v, "version"), at, serial,
                         (long long)df_json_int(v, "size", 0), lineage ? lineage : "no state");
}

static void note_versions(struct df_context *c, const cJSON *versions)
{
    const cJSON *v;
    size_t width = sizeof("VERSION") - 1;
    cJSON_ArrayForEach (v, versions) {
        const char *id = df_json_str(v, "version");
        width = strlen(id) > width ? strlen(id) : width;
    }
    (void)df_output_note(c->output, "%-*s  %-27s  %7s  %10s  %s", (int)width, "VERSION", "CREATED",
                         "SERIAL", "BYTES", "LINEAGE");
    cJSON_ArrayForEach (v, versions) {
        note_version(c, v, (int)width);
    }
}

static int list_kept(struct df_context *c, struct df_err *err)
{
    DF_FREE char *file = df_fs_join(c->dirs->secret, "kept.list");
    DF_JSON cJSON *answer = NULL;
    if (df_check_alloc(file, err) < 0 || read_kept(c, NULL, file, err) < 0)
        return -1;
    if (df_json_load(file, DF_LIMIT_DOCUMENT, &answer, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    const cJSON *versions = df_json_at(answer, "versions");
    int n = cJSON_GetArraySize(versions);
    if (n > 0)
        note_versions(c, versions);
    df_context_set_outcome(c, "Completed",
                           n == 0                        ? "there is no state yet"
                           : n == DF_LIMIT_STATE_HISTORY ? "the newest %d versions of the state"
                                                         : "%d versions of the state",
                           n);
    return 0;
}

int df_history(struct df_context *c, struct df_err *err)
{
    return list_kept(c, err) < 0 || df_context_mark(c, "executed", df_real_us(), err) < 0
               ? -1
               : df_json_add_bool(c->result, "hasChanges", false, err);
}

/* ---- the rollback ---- */

struct rollback {
    struct df_context *c;
    const char *version;
    struct df_place now, old; /* old: the version, as the state of a file of this step */
    cJSON *old_doc;           /* owned: old.doc */
    char *kept, *next;        /* files: the version as the bucket keeps it; what is pushed */
};

static void rollback_free(struct rollback *r)
{
    df_json_wipe(r->old_doc);
    free(r->now.file);
    free(r->old.file);
    free(r->kept);
    free(r->next);
}

static int open_rollback(struct rollback *r, struct df_err *err)
{
    const char *dir = r->c->dirs->secret;
    r->now.doc = r->c->doc;
    r->now.file = df_fs_join(dir, "now.tfstate");
    r->old.file = df_fs_join(dir, "old.tfstate");
    r->kept = df_fs_join(dir, "kept.tfstate");
    r->next = df_fs_join(dir, "next.tfstate");
    if (!r->now.file || !r->old.file || !r->kept || !r->next)
        return df_fail_oom(err);
    df_place_describe(&r->now);
    (void)snprintf(r->old.words, sizeof(r->old.words), "the version %.300s", r->version);
    int result = df_place_stage(r->c->doc, r->kept, &r->old_doc, err);
    r->old.doc = r->old_doc;
    return result;
}

/* The tool reads the version, because only the tool can decrypt it. */
static int pull_old(struct rollback *r, struct df_err *err)
{
    if (read_kept(r->c, r->version, r->kept, err) < 0)
        return df_err_wrap(err, "%s", r->old.words);
    return df_place_use(r->c, &r->old, err) < 0 ? -1 : df_place_pull(r->c, &r->old, err);
}

static int check_versions(const struct rollback *r, struct df_err *err)
{
    const struct df_pulled *now = &r->now.holds, *old = &r->old.holds;
    if (!now->exists)
        return df_fail_reason(err, DF_ERR_CONFLICT, "StateRefused",
                              "%s has no state, so it cannot be checked that %s belongs to this "
                              "executor: nothing was changed",
                              r->now.words, r->old.words);
    if (!old->exists)
        return df_fail_reason(err, DF_ERR_CONFLICT, "StateRefused",
                              "%s is empty: nothing was changed", r->old.words);
    if (df_streq(now->lineage, old->lineage))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateRefused",
                          "%s has the lineage \"%s\", and the state in %s \"%s\": it is another "
                          "state, nothing was changed",
                          r->old.words, old->lineage, r->now.words, now->lineage);
}

/* The old content with a serial above the present one. The tool refuses it if somebody writes
 * before it has the lock, because that serial is taken then. */
static int write_next(const struct rollback *r, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf old = DF_BUF_INIT(DF_LIMIT_STATE);
    DF_CLEANUP(df_buf_wipe) struct df_buf next = DF_BUF_INIT(DF_LIMIT_STATE);
    if (df_fs_read_plain(r->old.file, &old, err) < 0 ||
        df_pulled_renumber(&old, r->now.holds.serial + 1, &next, err) < 0 ||
        df_fs_write(r->next, df_buf_str(&next), next.len, 0600, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return 0;
}

static int store_old(struct rollback *r, struct df_err *err)
{
    struct df_context *c = r->c;
    if (write_next(r, err) < 0 || df_place_use(c, &r->now, err) < 0)
        return -1;
    if (df_stopped(df_stop_flag(c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before the version was stored");
    if (df_place_push(c, &r->now, r->next, false, err) < 0 || df_place_pull(c, &r->now, err) < 0)
        return -1;
    if (!df_pulled_is_same(&r->now.holds, &r->old.holds))
        return df_fail_reason(err, DF_ERR_CONFLICT, "StateCommandFailed",
                              "%s gives back another state (serial %lld) than was stored: somebody "
                              "else writes there",
                              r->now.words, (long long)r->now.holds.serial);
    c->has_outputs = true;
    return 0;
}

static int rollback_state(struct rollback *r, struct df_err *err)
{
    struct df_context *c = r->c;
    if (open_rollback(r, err) < 0 || df_init(c, false, err) < 0 ||
        df_context_mark(c, "initialized", df_real_us(), err) < 0 ||
        df_place_check_unlocked(c, &r->now, err) < 0 || df_place_pull(c, &r->now, err) < 0 ||
        df_lineage_compare(c, r->now.holds.lineage, err) < 0 || pull_old(r, err) < 0 ||
        check_versions(r, err) < 0)
        return -1;
    long long before = (long long)r->now.holds.serial;
    bool changes = !df_pulled_is_same(&r->now.holds, &r->old.holds);
    if (changes && store_old(r, err) < 0)
        return -1;
    if (changes)
        df_context_set_outcome(c, "StateChanged",
                               "the state is that of %s again, with the serial %lld; before it was "
                               "%lld",
                               r->old.words, (long long)r->now.holds.serial, before);
    else
        df_context_set_outcome(c, "Completed", "%s is what the state holds already", r->old.words);
    return df_context_mark(c, "executed", df_real_us(), err) < 0
               ? -1
               : df_json_add_bool(c->result, "hasChanges", changes, err);
}

int df_rollback(struct df_context *c, const char *version, struct df_err *err)
{
    DF_CLEANUP(rollback_free) struct rollback r = {.c = c, .version = version};
    const cJSON *doc = c->doc;
    int result = rollback_state(&r, err);
    c->doc = doc;
    return result;
}
