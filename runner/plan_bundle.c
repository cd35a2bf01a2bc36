/*
 * plan_bundle.c - df_plan_bundle_store() at the end of the plan, df_plan_bundle_fetch() and its
 * checks at the begin of the apply.
 */
#include "runner/plan_bundle.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "runner/secrets.h"

/* ---- of the plan ---- */

static int add_header(const struct df_context *c, cJSON *header, struct df_err *err)
{
    static const char *const copied[] = {"source", "tool", "lockFileSha256", "planSummary"};
    if (df_json_put(header, err, DF_STR("run", df_json_str(c->doc, "run")),
                    DF_STR("step", df_json_str(c->doc, "uid")),
                    DF_STR("action", df_json_str(c->doc, "action")),
                    DF_TIME("createdAt", df_real_us())) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(copied); i++) {
        const cJSON *item = df_json_at(c->result, copied[i]);
        if (item && df_json_add(header, copied[i], cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return 0;
}

/* For the apply: the plan may hold keys that were made for this step. */
static int save_masks(struct df_context *c, const char *path, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs given = {0};
    int next_ms;
    return df_secrets_given(c->doc, &given, err) < 0 ||
                   df_output_renew(c->output, &next_ms, err) < 0
               ? -1
               : df_masks_save(c->masks, &given, path, err);
}

static int write_bundle(struct df_context *c, const char *path, const cJSON *header,
                        const struct df_bundle_part *parts, size_t n, struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    int64_t size;
    DF_CLOSE int fd = -1;
    if (df_fs_open_plain(path, O_RDWR | O_CREAT | O_TRUNC, 0600, &fd, err) < 0 ||
        df_bundle_write(fd, header, parts, n, err) < 0 ||
        df_sha256_file_hex(fd, hex, &size, err) < 0)
        return -1;
    cJSON *plan = df_json_object_at(c->result, "plan");
    return df_json_put(plan, err, DF_STR("sha256", hex), DF_NUM("size", size));
}

int df_plan_bundle_store(struct df_context *c, cJSON *header, const struct df_bundle_part *parts,
                         size_t n, struct df_err *err)
{
    struct df_bundle_part all[DF_PLAN_BUNDLE_PARTS + 1];
    DF_FREE char *path = df_fs_join(c->dirs->secret, "bundle");
    DF_FREE char *masks = df_fs_join(c->dirs->secret, "masks");
    if (n > DF_PLAN_BUNDLE_PARTS)
        DF_BUG("too many parts of a plan");
    memcpy(all, parts, n * sizeof(*parts));
    all[n] = (struct df_bundle_part){.name = "masks", .path = masks};
    if (!path || !masks)
        return df_fail_oom(err);
    if (save_masks(c, masks, err) < 0 || add_header(c, header, err) < 0 ||
        write_bundle(c, path, header, all, n + 1, err) < 0)
        return -1;
    if (df_report_put_artifact(c->report, "plan", path, c->deadline_ms, err) < 0)
        return df_err_wrap(err, "store the plan");
    return df_context_mark(c, "stored", df_real_us(), err);
}

/* ---- of its apply ---- */

static int fetch(struct df_context *c, int *ret_fd, cJSON **ret_header, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "bundle");
    if (df_check_alloc(path, err) < 0 ||
        df_report_get_artifact(c->report, "plan", path, c->deadline_ms, err) < 0 ||
        df_fs_open_plain(path, O_RDONLY, 0, ret_fd, err) < 0)
        return -1;
    if (unlink(path) < 0) /* it has secrets of the plan's step, and the tool's code may look here */
        return df_fail_errno(err, errno, "remove %s", path);
    if (df_bundle_header(*ret_fd, ret_header, err) < 0)
        return -1;
    return df_bundle_verify(*ret_fd, err);
}

static int check_run(const struct df_context *c, const cJSON *header, struct df_err *err)
{
    const char *planned = df_json_str(header, "run"), *ours = df_json_str(c->doc, "run");
    if (df_streq(planned, ours) || (!planned && !ours))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "PlanOfOtherRun",
                          "the plan was made for run %s, not for %s", planned ? planned : "(none)",
                          ours ? ours : "(none)");
}

static int check_same(const cJSON *header, const cJSON *actual, const char *member,
                      const char *reason, struct df_err *err)
{
    const char *planned = df_json_str(header, member), *here = df_json_str(actual, member);
    if (df_streq(planned, here) || (!planned && !here))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, reason,
                          "the plan was made with %s %s, but this is %s: plan again", member,
                          planned ? planned : "(none)", here ? here : "(none)");
}

static const char *part_digest(const cJSON *header, const char *name)
{
    const cJSON *part;
    cJSON_ArrayForEach (part, df_json_at(header, "parts")) {
        if (df_streq(df_json_str(part, "name"), name))
            return df_json_str(part, "sha256");
    }
    return NULL;
}

/* The lock file in the bundle must have the digest that the bundle's header names, and the one that
 * the spawner stored when the plan was made. */
static int check_lock(const struct df_context *c, const cJSON *header, struct df_err *err)
{
    const char *inside = part_digest(header, "lock");
    const char *in_header = df_json_str(header, "lockFileSha256");
    const char *expected = df_json_str(c->doc, "expected.lockFileSha256");
    bool remembered = df_json_at(c->doc, "expected");
    if (!df_streq(inside, in_header) && (inside || in_header))
        return df_fail_reason(err, DF_ERR_CONFLICT, "LockFileChanged",
                              "the plan's .terraform.lock.hcl is not the one it was made with");
    if (remembered && !df_streq(inside, expected) && (inside || expected))
        return df_fail_reason(err, DF_ERR_CONFLICT, "LockFileChanged",
                              "the plan's .terraform.lock.hcl is not the one that was approved: "
                              "plan again");
    return 0;
}

static int check(const struct df_context *c, const cJSON *header, struct df_err *err)
{
    static const struct {
        const char *member, *reason;
    } same[] = {{"source.commit", "SourceChanged"},
                {"source.treeDigest", "SourceChanged"},
                {"tool.name", "ToolVersionChanged"},
                {"tool.version", "ToolVersionChanged"}};
    if (check_run(c, header, err) < 0)
        return -1;
    for (size_t i = 0; i < DF_ARRAY_SIZE(same); i++) {
        if (check_same(header, c->result, same[i].member, same[i].reason, err) < 0)
            return -1;
    }
    return check_lock(c, header, err);
}

/* Masks what the plan masked: keys of its step may be in its values. */
static int add_masks(struct df_context *c, int fd, const cJSON *header, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "masks");
    int next_ms;
    if (!path)
        return df_fail_oom(err);
    if (!part_digest(header, "masks"))
        return 0;
    if (df_bundle_extract(fd, "masks", path, err) < 0 || df_masks_add(c->masks, path, err) < 0)
        return -1;
    if (unlink(path) < 0)
        return df_fail_errno(err, errno, "remove %s", path);
    return df_output_renew(c->output, &next_ms, err);
}

int df_plan_bundle_fetch(struct df_context *c, int *ret_fd, cJSON **ret_header, struct df_err *err)
{
    return fetch(c, ret_fd, ret_header, err) < 0 || check(c, *ret_header, err) < 0
               ? -1
               : add_masks(c, *ret_fd, *ret_header, err);
}
