/*
 * shown.c - the runner's side: df_step_get_shown() lists the outputs that nothing is stored for and
 * that this step may mask (find_origins()), df_step_put_shown() stores what it sends back. The
 * reader's side: df_shown_apply() takes what is stored for the executor, then for the step that
 * wrote the version; what is left is hidden, unless a person stored the state.
 */
#include "spawner/steps/shown.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/model/recipe.h"
#include "spawner/steps/outputs.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"

#define UNKNOWN "***"

/* ---- digests ---- */

/* Of the value of an output; "" if it has none. */
static int digest_of(const cJSON *output, char ret[DF_SHA256_HEX], struct df_err *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
    ret[0] = '\0';
    if (!value)
        return 0;
    char *text = df_json_print_nul(value);
    if (!text)
        return df_fail_oom(err);
    int result = df_sha256_hex(text, strlen(text), ret, err);
    explicit_bzero(text, strlen(text));
    free(text);
    return result;
}

/* What is stored for the output with this digest; or NULL. */
static const cJSON *find(const cJSON *shown, const char *name, const char *digest)
{
    const cJSON *entry = cJSON_GetObjectItemCaseSensitive(shown, name);
    return entry && df_streq(df_json_str(entry, "digest"), digest) ? entry : NULL;
}

/* uid: of a step or an executor. *ret is {} if nothing is stored. */
static int load(struct df_spawner *s, const char *uid, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_outputs_open(s, DF_OUTPUTS_SHOWN, uid, ret, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    *ret = cJSON_CreateObject();
    return *ret ? 0 : df_fail_oom(err);
}

/* ---- who wrote it ---- */

/* The meta of a version (0: the newest), which the caller deletes; NULL: it is gone or damaged. */
static int find_meta(struct df_spawner *s, const char *executor, int64_t version, cJSON **ret,
                     struct df_err *err)
{
    struct df_err why = {0};
    if (df_state_meta(s->states, executor, version, ret, &why) == 0)
        return 0;
    *ret = NULL;
    return why.cls == DF_ERR_NOT_FOUND || df_streq(why.reason, "StateUnreadable")
               ? 0
               : df_err_pass(err, &why);
}

/* The step that wrote the outputs of the version with this meta (NULL: nobody knows): "" if a
 * person did. A rollback has those of an older version. One that is gone or damaged may be that of
 * any step: *ret_known is false. */
static int find_writer(struct df_spawner *s, const char *executor, const cJSON *meta, char ret[64],
                       bool *ret_known, struct df_err *err)
{
    DF_JSON cJSON *older = NULL;
    int64_t of, before = INT64_MAX;
    *ret_known = false;
    for (; meta && (of = df_json_int(meta, "rollbackOf", 0)) > 0; meta = older) {
        if (of >= before)
            return 0;
        before = of;
        cJSON_Delete(DF_TAKE(older));
        if (find_meta(s, executor, of, &older, err) < 0)
            return -1;
    }
    const char *step = df_json_str(meta, "step");
    (void)snprintf(ret, 64, "%s", step ? step : "");
    *ret_known = meta != NULL;
    return 0;
}

/* ---- the runner's side ---- */

/* The outputs of the current state, and what is stored for them: df_json_wipe(). */
struct known {
    cJSON *outputs;
    cJSON *meta; /* of the current state; NULL: there is none */
    cJSON *seen; /* {digests: {name: digest}, shown: {name: {digest, value}}} */
};

static void known_free(struct known *k)
{
    df_json_wipe(k->outputs);
    cJSON_Delete(k->meta);
    df_json_wipe(k->seen);
}

static cJSON *digests_in(const struct known *k)
{
    return cJSON_GetObjectItemCaseSensitive(k->seen, "digests");
}

static cJSON *shown_in(const struct known *k)
{
    return cJSON_GetObjectItemCaseSensitive(k->seen, "shown");
}

static int add_digests(const cJSON *outputs, cJSON *to, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    const cJSON *output;
    cJSON_ArrayForEach (output, outputs)
        if (digest_of(output, digest, err) < 0 ||
            (*digest && df_json_add_str(to, output->string, digest, err) < 0))
            return -1;
    return 0;
}

static int know(struct df_spawner *s, const char *executor, struct known *ret, struct df_err *err)
{
    cJSON *shown = NULL;
    ret->seen = cJSON_CreateObject();
    cJSON *digests = ret->seen ? df_json_object_at(ret->seen, "digests") : NULL;
    if (!digests)
        return df_fail_oom(err);
    if (df_state_current_outputs(s->states, executor, &ret->outputs, &ret->meta, err) < 0 ||
        add_digests(ret->outputs, digests, err) < 0 ||
        (ret->outputs->child && load(s, executor, &shown, err) < 0))
        return -1;
    return shown ? df_json_add(ret->seen, "shown", shown, err) : 0;
}

static int add_missing(const cJSON *output, const char *digest, cJSON *missing, struct df_err *err)
{
    cJSON *entry = cJSON_CreateObject();
    if (df_json_add(missing, output->string, entry, err) < 0 ||
        df_json_add_str(entry, "digest", digest, err) < 0)
        return -1;
    return df_json_add(entry, "value", cJSON_Duplicate(df_json_at(output, "value"), true), err);
}

/* Whose outputs a step may mask. */
struct origins {
    cJSON *before; /* the outputs before the step wrote any; df_json_wipe() */
    bool is_ripe;  /* whoever wrote those, a later step masks them */
    bool makes;    /* the others are the step's own: it knows what they were made of */
};

static void origins_free(struct origins *o)
{
    df_json_wipe(o->before);
}

static int check_ripe(struct df_spawner *s, const char *executor, const cJSON *v, bool *ret,
                      struct df_err *err)
{
    char writer[64];
    bool is_known = false;
    const char *at = df_json_str(v, "createdAt");
    int64_t us;
    if (find_writer(s, executor, v, writer, &is_known, err) < 0)
        return -1;
    *ret = (is_known && !*writer) || (at && df_time_parse(at, &us, NULL) == 0 &&
                                      df_real_us() - us > DF_SHOWN_RIPE_SECONDS * INT64_C(1000000));
    return 0;
}

static bool is_of(const cJSON *version, const char *step)
{
    return df_streq(df_json_str(version, "step"), step);
}

/* The meta of a version, if it is there and of another step; else NULL. */
static cJSON *open_foreign(struct df_spawner *s, const char *executor, int64_t version,
                           const char *step)
{
    DF_JSON cJSON *v = NULL;
    if (version < 1 || df_state_meta(s->states, executor, version, &v, NULL) < 0 || is_of(v, step))
        return NULL;
    return DF_TAKE(v);
}

static int list_foreign(struct df_spawner *s, const char *executor, const char *step, cJSON **ret,
                        struct df_err *err)
{
    DF_JSON cJSON *versions = NULL;
    cJSON *v;
    if (df_state_versions(s->states, executor, &versions, err) < 0)
        return -1;
    cJSON_ArrayForEach (v, versions) {
        if (!is_of(v, step)) {
            *ret = cJSON_DetachItemViaPointer(versions, v);
            return 0;
        }
    }
    return 0;
}

/* The newest version that this step did not write, which the caller deletes; NULL: there is none.
 * newest: the meta of the current one. Most steps write one version: a list, which reads every
 * meta, is rarely needed. */
static int version_before(struct df_spawner *s, const char *executor, const cJSON *newest,
                          const char *step, cJSON **ret, struct df_err *err)
{
    int64_t number = df_json_int(newest, "version", 0);
    if (!is_of(newest, step)) {
        *ret = cJSON_Duplicate(newest, true);
        return *ret ? 0 : df_fail_oom(err);
    }
    *ret = open_foreign(s, executor, number - 1, step);
    return *ret || number == 1 ? 0 : list_foreign(s, executor, step, ret, err);
}

/* newest: the meta of the current state. */
static int find_origins(struct df_spawner *s, const cJSON *task, const cJSON *newest,
                        struct origins *ret, struct df_err *err)
{
    DF_JSON cJSON *v = NULL;
    const char *executor = df_json_str(task, "spec.executorRef.uid");
    ret->makes = df_streq(df_json_str(task, "spec.action"), "apply");
    if (version_before(s, executor, newest, df_json_str(task, "metadata.uid"), &v, err) < 0)
        return -1;
    if (!v)
        return 0;
    return check_ripe(s, executor, v, &ret->is_ripe, err) < 0
               ? -1
               : df_state_outputs(s->states, executor, df_json_int(v, "version", 0), false,
                                  &ret->before, err);
}

static int add_if_known(const struct origins *o, const cJSON *output, cJSON *missing,
                        struct df_err *err)
{
    char digest[DF_SHA256_HEX], before[DF_SHA256_HEX] = "";
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(o->before, output->string);
    if (digest_of(output, digest, err) < 0 || (old && digest_of(old, before, err) < 0))
        return -1;
    bool is_own = !df_streq(digest, before);
    return (is_own ? o->makes : o->is_ripe) ? add_missing(output, digest, missing, err) : 0;
}

/* The outputs of the current state that nothing is stored for; borrowed from k. */
static int list_unknown(const struct known *k, const cJSON **list, size_t *ret_count,
                        struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    const cJSON *output;
    *ret_count = 0;
    cJSON_ArrayForEach (output, k->outputs) {
        if (digest_of(output, digest, err) < 0)
            return -1;
        if (*digest && !find(shown_in(k), output->string, digest))
            list[(*ret_count)++] = output;
    }
    return 0;
}

static int add_missing_of(struct df_spawner *s, const cJSON *task, const struct known *k,
                          cJSON *missing, struct df_err *err)
{
    DF_CLEANUP(origins_free) struct origins o = {NULL, false, false};
    DF_FREE const cJSON **list = calloc((size_t)cJSON_GetArraySize(k->outputs) + 1, sizeof *list);
    size_t count = 0;
    if (!list)
        return df_fail_oom(err);
    if (list_unknown(k, list, &count, err) < 0 ||
        (count && find_origins(s, task, k->meta, &o, err) < 0))
        return -1;
    for (size_t i = 0; i < count; i++)
        if (add_if_known(&o, list[i], missing, err) < 0)
            return -1;
    return 0;
}

int df_step_get_shown(struct df_spawner *s, const char *uid, const char *token, cJSON **ret,
                      struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    DF_CLEANUP(known_free) struct known k = {0};
    DF_SECRET_JSON cJSON *missing = cJSON_CreateObject();
    if (!missing)
        return df_fail_oom(err);
    if (df_step_open(s, uid, token, &task, err) < 0 ||
        know(s, df_json_str(task, "spec.executorRef.uid"), &k, err) < 0 ||
        add_missing_of(s, task, &k, missing, err) < 0)
        return -1;
    if (missing->child || df_recipe_step_of(task)->writes) /* else its runner sends nothing */
        df_memory_put_outputs(&s->memory, task, k.seen);
    *ret = DF_TAKE(missing);
    return 0;
}

/* All that is known now of the outputs of the current state. */
static int merge(const struct known *k, const cJSON *sent, cJSON *to, struct df_err *err)
{
    const cJSON *digest;
    cJSON_ArrayForEach (digest, digests_in(k)) {
        const char *name = digest->string;
        const cJSON *entry = find(shown_in(k), name, digest->valuestring);
        entry = entry ? entry : find(sent, name, digest->valuestring);
        if (entry && df_json_add(to, name, cJSON_Duplicate(entry, true), err) < 0)
            return -1;
    }
    return 0;
}

int df_step_put_shown(struct df_spawner *s, const char *uid, const char *token, const char *path,
                      struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    DF_SECRET_JSON cJSON *sent = NULL;
    DF_JSON cJSON *all = cJSON_CreateObject();
    DF_CLEANUP(known_free) struct known k = {0};
    if (!all)
        return df_fail_oom(err);
    if (df_step_open(s, uid, token, &task, err) < 0 || df_outputs_read(path, &sent, err) < 0)
        return -1;
    const char *executor = df_json_str(task, "spec.executorRef.uid");
    k.seen = df_memory_take_outputs(&s->memory, uid);
    if ((!k.seen && know(s, executor, &k, err) < 0) || merge(&k, sent, all, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print_nul(all);
    if (!text)
        return df_fail_oom(err);
    bool is_known = df_json_equal(all, shown_in(&k));
    if (all->child &&
        (df_outputs_seal(s, DF_OUTPUTS_SHOWN, uid, text, err) < 0 ||
         (!is_known && df_outputs_seal(s, DF_OUTPUTS_SHOWN, executor, text, err) < 0)))
        return -1;
    (void)unlink(path);
    return 0;
}

/* ---- the reader's side ---- */

/* Shows what is stored; *ret_left: how many outputs have a value that nothing is stored for. */
static int show_stored(const cJSON *shown, cJSON *outputs, size_t *ret_left, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    cJSON *output;
    *ret_left = 0;
    cJSON_ArrayForEach (output, outputs) {
        if (cJSON_GetObjectItemCaseSensitive(output, "shown"))
            continue;
        if (digest_of(output, digest, err) < 0)
            return -1;
        const cJSON *entry = *digest ? find(shown, output->string, digest) : NULL;
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(entry, "value");
        *ret_left += *digest && !value;
        if (value && df_json_add(output, "shown", cJSON_Duplicate(value, true), err) < 0)
            return -1;
    }
    return 0;
}

/* What was not masked does not stay, if hide is set. */
static int finish(cJSON *outputs, bool hide, struct df_err *err)
{
    cJSON *output;
    cJSON_ArrayForEach (output, outputs) {
        cJSON *shown = cJSON_DetachItemFromObjectCaseSensitive(output, "shown");
        bool has_value = cJSON_GetObjectItemCaseSensitive(output, "value");
        if (!shown && hide && has_value && !(shown = cJSON_CreateString(UNKNOWN)))
            return df_fail_oom(err);
        if (shown && df_json_set(output, "value", shown, err) < 0)
            return -1;
    }
    return 0;
}

int df_shown_apply(struct df_spawner *s, const char *executor_uid, int64_t version, cJSON *outputs,
                   struct df_err *err)
{
    DF_JSON cJSON *of_executor = NULL, *of_step = NULL, *meta = NULL;
    char step[64] = "";
    bool is_known = false;
    size_t left = 0;
    if (load(s, executor_uid, &of_executor, err) < 0 ||
        show_stored(of_executor, outputs, &left, err) < 0)
        return -1;
    if (!left)
        return finish(outputs, false, err);
    if (find_meta(s, executor_uid, version, &meta, err) < 0 ||
        find_writer(s, executor_uid, meta, step, &is_known, err) < 0)
        return -1;
    if (*step &&
        (load(s, step, &of_step, err) < 0 || show_stored(of_step, outputs, &left, err) < 0))
        return -1;
    return finish(outputs, !is_known || *step, err);
}
