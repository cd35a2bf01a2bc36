/*
 * plans.c - df_step_put_plan() verifies the uploaded bundle, seals it and writes its digest into
 * the TaskAction. df_step_get_plan() gives it to the apply step of the same run, once, unchanged
 * and before it expires; it marks the plan as used before the bundle leaves the spawner.
 */
#include "spawner/steps/plans.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/bundle/bundle.h"
#include "common/crypto/crypto.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"

static void plan_key(const char *task_uid, char ret[64])
{
    (void)snprintf(ret, 64, "plans/%s", task_uid);
}

int df_plan_delete(struct df_spawner *s, const char *task_uid, struct df_err *err)
{
    char key[64];
    plan_key(task_uid, key);
    return df_blob_delete(s->blobs, key, err);
}

int df_plan_discard(struct df_spawner *s, const char *task_uid, struct df_err *err)
{
    if (df_removal_begin(&s->removals, NULL) < 0)
        return 0;
    int result = df_plan_delete(s, task_uid, err);
    df_removal_end(&s->removals);
    return result;
}

/* The associated data of the seal: a plan of another run or step cannot be opened with it. */
static char *bound_to(const char *run, const char *task_uid, const char *digest)
{
    return df_strf("dayfly plan %s %s %s", run, task_uid, digest);
}

enum sealing { SEAL, OPEN };

static int seal_or_open(struct df_spawner *s, enum sealing what, const char *aad, int in, int out,
                        struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    if (df_vault_key(s->vault, "plan", key, err) < 0)
        return -1;
    int result = what == SEAL ? df_seal_file(key, aad, in, out, err)
                              : df_open_file(key, aad, in, 0, out, err);
    explicit_bzero(key, sizeof(key));
    return result;
}

/* ---- put ---- */

static int refuse_bundle(const char *member, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "PlanCorrupt",
                          "the plan's header names another %s than its step", member);
}

/* Checks that the bundle is complete and belongs to this step. */
static int check_bundle(int fd, const cJSON *task, struct df_err *err)
{
    static const struct {
        const char *member, *path;
    } same[] = {{"run", "spec.runRef.name"}, {"step", "metadata.uid"}, {"action", "spec.action"}};
    DF_JSON cJSON *header = NULL;
    if (df_bundle_verify(fd, err) < 0 || df_bundle_header(fd, &header, err) < 0)
        return df_err_reason(err, "PlanCorrupt");
    for (size_t i = 0; i < DF_ARRAY_SIZE(same); i++)
        if (!df_streq(df_json_str(header, same[i].member), df_json_str(task, same[i].path)))
            return refuse_bundle(same[i].member, err);
    return 0;
}

static int seal_into(struct df_spawner *s, const char *aad, int in, char *path, struct df_err *err)
{
    DF_CLOSE int out = mkostemp(path, O_CLOEXEC);
    if (out < 0)
        return df_fail_errno(err, errno, "create %s", path);
    return seal_or_open(s, SEAL, aad, in, out, err);
}

static int store_sealed(struct df_spawner *s, const cJSON *task, int fd, const char *digest,
                        struct df_err *err)
{
    const char *uid = df_json_str(task, "metadata.uid");
    char key[64];
    plan_key(uid, key);
    DF_FREE char *aad = bound_to(df_json_str(task, "spec.runRef.name"), uid, digest);
    DF_FREE char *path = df_strf("%s/plan-XXXXXX", df_blob_tmp_dir(s->blobs));
    if (!aad || !path)
        return df_fail_oom(err);
    int result = seal_into(s, aad, fd, path, err);
    if (result == 0)
        result = df_blob_put_file(s->blobs, key, path, err);
    if (result < 0)
        (void)unlink(path);
    return result;
}

struct stored_plan {
    char digest[DF_SHA256_HEX];
    int64_t size;
    int64_t expires_us;
    char key_id[DF_VAULT_KEY_ID]; /* of the vault's key that it is sealed under */
};

static int set_plan(cJSON *task, void *arg, struct df_err *err)
{
    const struct stored_plan *p = arg;
    cJSON *status = df_json_object_at(task, "status");
    cJSON *plan = cJSON_CreateObject();
    if (df_task_is_final(task)) {
        cJSON_Delete(plan);
        return df_step_fail_over(err);
    }
    if (df_json_set(status, "plan", plan, err) < 0 ||
        df_json_add_str(plan, "sha256", p->digest, err) < 0 ||
        df_json_add_str(plan, "keyId", p->key_id, err) < 0 ||
        df_json_add_num(plan, "size", (double)p->size, err) < 0)
        return -1;
    return df_json_add_time(plan, "expiresAt", p->expires_us, err);
}

int df_step_put_plan(struct df_spawner *s, const char *uid, const char *token, const char *path,
                     struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    struct stored_plan p = {.expires_us = df_real_us() + s->config->plan_life_s * 1000000};
    if (df_step_open(s, uid, token, &task, err) < 0)
        return -1;
    if (df_recipe_step_of(task)->plan_of)
        return df_fail(err, DF_ERR_USER, "an apply step has no plan to store");
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (check_bundle(fd, task, err) < 0 || df_sha256_file_hex(fd, p.digest, &p.size, err) < 0 ||
        df_vault_key_id(s->vault, p.key_id, err) < 0 ||
        store_sealed(s, task, fd, p.digest, err) < 0 ||
        df_store_modify(s->store, DF_KIND_TASK_ACTION, df_json_str(task, "metadata.name"), set_plan,
                        &p, NULL, err) < 0)
        return -1;
    (void)unlink(path);
    return 0;
}

/* ---- get ---- */

static int plan_missing(const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "PlanMissing", "%s; start a new run", why);
}

/* Checks by the documents whether this apply may get the plan. */
static int check_plan(const cJSON *apply, const cJSON *plan, struct df_err *err)
{
    const char *run = df_json_str(apply, "spec.runRef.name");
    const char *owner = df_json_str(plan, "spec.runRef.name");
    const char *used_by = df_json_str(plan, "status.plan.usedBy");
    const char *expires = df_json_str(plan, "status.plan.expiresAt");
    int64_t expires_us;
    if (!df_streq(run, owner))
        return df_fail_reason(err, DF_ERR_CONFLICT, "PlanOfOtherRun",
                              "the plan was made for run %s, not for %s", owner, run);
    if (!expires || !df_task_succeeded(plan))
        return plan_missing("the plan step stored no plan", err);
    if (df_policies_hold(plan, err) < 0)
        return -1;
    if (used_by && !df_streq(used_by, df_json_str(apply, "metadata.uid")))
        return df_fail_reason(err, DF_ERR_CONFLICT, "PlanUsed",
                              "the plan was used by step %s already; start a new run", used_by);
    if (df_time_parse(expires, &expires_us, err) < 0)
        return -1;
    if (df_real_us() >= expires_us)
        return df_fail_reason(err, DF_ERR_CONFLICT, "PlanExpired",
                              "the plan expired at %s; start a new run", expires);
    return 0;
}

/* A plan without keyId is older than this member. */
static int corrupt(struct df_spawner *s, const cJSON *plan, struct df_err *err)
{
    const char *sealed_with = df_json_str(plan, "status.plan.keyId");
    char now[DF_VAULT_KEY_ID];
    if (sealed_with && df_vault_key_id(s->vault, now, NULL) == 0 && !df_streq(sealed_with, now))
        return df_fail_reason(err, DF_ERR_CONFLICT, "PlanCorrupt",
                              "the plan is sealed under the key %s, and the key of the vault is %s "
                              "now: somebody replaced it; start a new run, and restore the old key "
                              "if secrets do not open either",
                              sealed_with, now);
    return df_fail_reason(err, DF_ERR_CONFLICT, "PlanCorrupt",
                          "the stored plan is not the one that was approved; start a new run");
}

static int open_sealed(struct df_spawner *s, const cJSON *plan, int out, int64_t *ret_size,
                       struct df_err *err)
{
    const char *uid = df_json_str(plan, "metadata.uid");
    const char *digest = df_json_str(plan, "status.plan.sha256");
    char key[64], found[DF_SHA256_HEX];
    struct df_err why = {0};
    DF_CLOSE int in = -1;
    plan_key(uid, key);
    DF_FREE char *aad = bound_to(df_json_str(plan, "spec.runRef.name"), uid, digest);
    if (!aad)
        return df_fail_oom(err);
    if (df_blob_open_read(s->blobs, key, &in, NULL, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? plan_missing("the stored plan is gone", err)
                                           : df_fail(err, why.cls, "%s", why.message);
    if (seal_or_open(s, OPEN, aad, in, out, &why) < 0)
        return why.cls == DF_ERR_DENIED ? corrupt(s, plan, err)
                                        : df_fail(err, why.cls, "%s", why.message);
    if (df_sha256_file_hex(out, found, ret_size, err) < 0)
        return -1;
    return df_streq(found, digest) ? 0 : corrupt(s, plan, err);
}

/* This mark must be durable before the plan leaves the spawner. */
static int set_used(cJSON *plan, void *arg, struct df_err *err)
{
    const cJSON *const *apply = arg;
    if (check_plan(*apply, plan, err) < 0)
        return -1;
    cJSON *of = df_json_object_at(df_json_object_at(plan, "status"), "plan");
    return df_json_set_str(of, "usedBy", df_json_str(*apply, "metadata.uid"), err);
}

int df_step_get_plan(struct df_spawner *s, const char *uid, const char *token, int *ret_fd,
                     int64_t *ret_size, struct df_err *err)
{
    DF_SHARED const cJSON *plan = NULL, *apply = NULL;
    DF_CLOSE int fd = -1;
    int64_t size;
    if (df_step_open(s, uid, token, &apply, err) < 0)
        return -1;
    const char *from = df_json_str(apply, "spec.planFrom");
    if (!from)
        return plan_missing("this step applies no plan", err);
    if (df_store_look(s->store, DF_KIND_TASK_ACTION, from, &plan, err) < 0)
        return df_err_reason(err, "PlanMissing");
    if (check_plan(apply, plan, err) < 0 ||
        df_fs_unnamed(df_blob_tmp_dir(s->blobs), &fd, err) < 0 ||
        open_sealed(s, plan, fd, &size, err) < 0 ||
        df_store_modify(s->store, DF_KIND_TASK_ACTION, from, set_used, &apply, NULL, err) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "rewind the plan");
    *ret_fd = DF_TAKE_FD(fd);
    *ret_size = size;
    return 0;
}
