/*
 * keep.c - df_terrakube_keep_state() at the end has the order: the state that the backend did not
 * take (errored.tfstate), then the history, then the outputs. The file is stored before anything
 * else, because it is the only copy. What fails is noted in the step's log, and the next part is
 * tried all the same.
 */
#include "runner/terrakube/keep.h"

#include <fcntl.h>
#include <poll.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/terrakube/rescue.h"
#include "runner/terrakube/commands.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/unlock.h"
#include "runner/tofu/sealed.h"

/* ---- errored.tfstate ---- */

#define ERRORED "errored.tfstate"

#define PATIENCE "15 minutes at most, or until the pod must end" /* DF_TERRAKUBE_RETRY_MS */

/* The first place for the state must not keep the push waiting for long. */
enum { PUSH_PAUSE_MIN_MS = 1000, PUSH_PAUSE_MAX_MS = 30000, RAW_RETRY_MS = 20000 };

/* The state of this step in the storage. */
struct kept {
    char uuid[37];
    bool has_errored; /* the raw one is there, as the tool left it */
};

/* tofu writes a file; a link was made by the module. */
static bool is_plain_file(const char *path)
{
    DF_CLOSE int fd = -1;
    return df_fs_open_plain(path, O_RDONLY, 0, &fd, NULL) == 0;
}

int df_terrakube_remove_errored(const struct df_context *c, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->source.module_dir, ERRORED);
    return path ? df_fs_remove_tree(path, err) : df_fail_oom(err);
}

/* False: the step must stop. */
static bool pause_ms(const struct df_context *c, int64_t ms)
{
    struct pollfd stop = {.fd = df_stop_fd(c->stop), .events = POLLIN};
    (void)poll(&stop, 1, (int)ms);
    return df_stop_cause(c->stop) == DF_STOP_NONE;
}

/* Before anything else: the file is the only copy, and the pod may end at any time. */
static void keep_errored(struct df_context *c, const char *path, struct kept *kept)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    DF_TERRAKUBE_STORAGE struct df_terrakube_storage *storage = NULL;
    struct df_err why = {0};
    kept->has_errored =
        df_terrakube_storage_new(t->settings, RAW_RETRY_MS, NULL, &storage, &why) == 0 &&
        df_terrakube_storage_put(storage, t->payload, DF_TERRAKUBE_OBJECT_STATE_RAW, kept->uuid,
                                 path, &why) == 0;
    if (kept->has_errored)
        (void)df_output_note(c->output,
                             "dayfly: the backend did not take the new state. It is kept as the "
                             "raw state of this job, and pushed again for " PATIENCE);
    else
        (void)df_output_note(c->output,
                             "dayfly: the backend did not take the new state. It is pushed again "
                             "for " PATIENCE
                             ", but could not be kept as the raw state of this job: %s",
                             why.message);
}

/* False: it is not stored, why says the last cause. */
static bool push_until_stored(struct df_context *c, const char *out, struct df_err *why)
{
    static const char *const push[] = {"state", "push", "-no-color", ERRORED, NULL};
    DF_FREE char *errors = df_strf("%s.err", out); /* as df_terrakube_command_save() names it */
    int64_t deadline = df_mono_ms() + DF_TERRAKUBE_RETRY_MS;
    bool unlocked = false;
    for (int failures = 1;; failures++) {
        if (df_terrakube_command_save(c, push, out, why) == 0)
            return true;
        int64_t pause = df_backoff_pause(PUSH_PAUSE_MIN_MS, PUSH_PAUSE_MAX_MS, failures);
        if (errors && df_terrakube_unlock_own(c, errors) && !unlocked) {
            unlocked = true;
            pause = 0; /* nothing is in its way now */
        }
        if (df_mono_ms() + pause > deadline || !pause_ms(c, pause))
            return false;
    }
}

/* The tool leaves the new state in a file of this pod when the backend does not take it. */
static void push_errored(struct df_context *c, struct kept *kept)
{
    DF_FREE char *path = df_fs_join(c->source.module_dir, ERRORED);
    DF_FREE char *out = df_fs_join(c->dirs->secret, "push");
    struct df_err why = {0};
    if (!path || !out || !is_plain_file(path))
        return;
    keep_errored(c, path, kept);
    if (push_until_stored(c, out, &why)) {
        (void)df_output_note(c->output, "dayfly: the backend has taken the new state now");
        (void)unlink(path);
        return;
    }
    (void)df_output_note(
        c->output,
        "dayfly: the new state could not be stored, and the backend still has the "
        "old one (%s)%s",
        why.message, kept->has_errored ? ". The new one is kept as the raw state of this job" : "");
}

/* ---- state ---- */

static int store(struct df_context *c, enum df_terrakube_object what, const char *uuid,
                 const char *path, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    return df_terrakube_storage_put(t->storage, t->payload, what, uuid, path, err);
}

/* Reads both forms of the state. A state that the backend did not take is in its file. */
static int read_state(struct df_context *c, const char *json, const char **raw, const char *errored,
                      struct df_err *err)
{
    static const char *const show[] = {"show", "-json", NULL};
    static const char *const show_errored[] = {"show", "-json", ERRORED, NULL};
    static const char *const pull[] = {"state", "pull", NULL};
    bool is_errored = is_plain_file(errored);
    if (df_terrakube_command_save(c, is_errored ? show_errored : show, json, err) < 0)
        return -1;
    if (is_errored) {
        *raw = errored;
        return 0;
    }
    return df_terrakube_command_save(c, pull, *raw, err);
}

/* What the plan did not know. */
static void show_state(const struct df_context *c, const char *json)
{
    DF_JSON cJSON *state = df_terrakube_of(c)->context ? df_terrakube_shown(c, json) : NULL;
    if (state)
        df_terrakube_context_state(df_terrakube_of(c)->context, state);
}

static int store_state(struct df_context *c, const struct kept *kept, struct df_err *err)
{
    DF_FREE char *json = df_fs_join(c->dirs->secret, "state.json");
    DF_FREE char *pulled = df_fs_join(c->dirs->secret, "state.raw.json");
    DF_FREE char *errored = df_fs_join(c->source.module_dir, ERRORED);
    const char *raw = pulled;
    if (df_check_alloc(json, err) < 0 || df_check_alloc(pulled, err) < 0 ||
        df_check_alloc(errored, err) < 0 || read_state(c, json, &raw, errored, err) < 0)
        return -1;
    show_state(c, json);
    bool has_raw = raw == errored && kept->has_errored;
    if (store(c, DF_TERRAKUBE_OBJECT_STATE_JSON, kept->uuid, json, err) < 0 ||
        (!has_raw && store(c, DF_TERRAKUBE_OBJECT_STATE_RAW, kept->uuid, raw, err) < 0))
        return -1;
    return df_terrakube_api_add_history(df_terrakube_of(c)->api, kept->uuid, err);
}

/* ---- outputs ---- */

/* A value with NUL is masked by its parts, as one of several lines is. */
static int hide_value(struct df_context *c, char *value, struct df_err *err)
{
    for (char *nul = value; (nul = strstr(nul, DF_JSON_NUL));)
        memset(nul, '\n', strlen(DF_JSON_NUL));
    return df_output_hide_also(c->output, value, err);
}

/* Scripts get all outputs, and may print them. */
static int hide_sensitive(struct df_context *c, const char *text, size_t n, struct df_err *err)
{
    DF_SECRET_JSON cJSON *outputs = NULL;
    DF_SECRET_STRS struct df_strs values = {0};
    const cJSON *output;
    if (df_json_parse_nul(text, n, &outputs, err) < 0)
        return -1;
    cJSON_ArrayForEach (output, outputs) {
        if (df_json_bool(output, "sensitive", false) &&
            df_sealed_add_leaves(&values, df_json_at(output, "value"), err) < 0)
            return -1;
    }
    for (size_t i = 0; i < values.len; i++)
        if (hide_value(c, values.items[i], err) < 0)
            return -1;
    return df_strs_check(&values, err);
}

static int keep_outputs(struct df_context *c, struct df_err *err)
{
    static const char *const output[] = {"output", "-json", NULL};
    struct df_terrakube *t = df_terrakube_of(c);
    DF_FREE char *path = df_fs_join(c->dirs->secret, "outputs.json");
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OUTPUTS);
    DF_JSON cJSON *shown = NULL;
    if (!t->context && !df_terrakube_scripts_has(t->payload->commands, DF_TERRAKUBE_AFTER))
        return 0;
    if (df_check_alloc(path, err) < 0 || df_terrakube_command_save(c, output, path, err) < 0 ||
        df_fs_read_plain(path, &text, err) < 0 ||
        hide_sensitive(c, df_buf_str(&text), text.len, err) < 0)
        return -1;
    if (t->context && (shown = df_terrakube_shown(c, path)))
        df_terrakube_context_outputs(t->context, shown);
    if (!(t->output_json = df_buf_take(&text)))
        return df_fail_oom(err);
    t->scripts.terraform_output = t->output_json;
    return 0;
}

void df_terrakube_keep_state(struct df_context *c, bool failed)
{
    struct df_err why = {0};
    struct kept kept = {.uuid = ""};
    if (df_terrakube_state_name(df_terrakube_of(c)->payload, kept.uuid, &why) <
        0) /* what is stored by this name fails, and is noted there */
        df_warn("%s", why.message);
    /* A tool that succeeded has stored its state: the file is not its own. */
    if (failed)
        push_errored(c, &kept);
    else if (df_terrakube_remove_errored(c, &why) < 0)
        df_warn("%s", why.message);
    if (store_state(c, &kept, &why) < 0)
        (void)df_output_note(c->output,
                             "dayfly: the state could not be added to the workspace's history: %s",
                             why.message);
    if (keep_outputs(c, &why) < 0)
        (void)df_output_note(c->output, "dayfly: the outputs are not in the UI: %s", why.message);
}
