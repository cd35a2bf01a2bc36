#include "runner/lineage.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"
#include "runner/pull.h"
#include "runner/pulled.h"
#include "runner/tofu/workspace.h"

static int read_head(const char *file, struct df_pulled *ret, struct df_err *err)
{
    char head[DF_PULLED_HEAD + 1];
    DF_CLOSE int fd = -1;
    if (df_fs_open_plain(file, O_RDONLY, 0, &fd, err) < 0)
        return -1;
    ssize_t n = pread(fd, head, DF_PULLED_HEAD, 0);
    if (n < 0)
        return df_fail_errno(err, errno, "read %s", file);
    head[n] = '\0';
    return df_pulled_read_head(head, ret, err);
}

static int note(struct df_context *c, const struct df_pulled *p, struct df_err *err)
{
    cJSON *state = df_json_object_at(c->result, "state");
    if (!state)
        return df_fail_oom(err);
    return df_json_set_str(state, "lineage", p->lineage, err) < 0
               ? -1
               : df_json_set(state, "serial", cJSON_CreateNumber((double)p->serial), err);
}

int df_lineage_note(struct df_context *c, struct df_err *err)
{
    struct df_pulled p;
    DF_FREE char *file = df_fs_join(c->dirs->secret, "lineage.tfstate");
    if (df_workspace_is_managed(c->doc))
        return 0;
    if (!file)
        return df_fail_oom(err);
    if (df_pull(c, file, err) < 0 || read_head(file, &p, err) < 0 ||
        df_fs_remove_tree(file, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return *p.lineage ? note(c, &p, err) : 0;
}

void df_lineage_note_new(struct df_context *c)
{
    struct df_err err = {0};
    if (!df_json_at(c->result, "state") && df_lineage_note(c, &err) < 0)
        (void)df_output_note(c->output,
                             "dayfly: the lineage of the new state is noted by the next plan: %s",
                             err.message);
}

int df_lineage_compare(const struct df_context *c, const char *found, struct df_err *err)
{
    const char *executor = df_json_str(c->doc, "executor");
    const char *own = df_json_str(c->doc, "stateLineage");
    if (df_str_empty(found))
        return 0;
    const char *other = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(df_json_at(c->doc, "othersLineages"), found));
    if (own && !df_streq(found, own))
        return df_fail_reason(err, DF_ERR_CONFLICT, "StateRefused",
                              "the state in the storage of executor %s has the lineage \"%s\", but "
                              "the executor's state has \"%s\": somebody put another one there. "
                              "Nothing was changed; bring the right one back",
                              executor, found, own);
    if (other)
        return df_fail_reason(err, DF_ERR_CONFLICT, "StateBelongsToAnother",
                              "the state in the storage of executor %s (lineage \"%s\") is that of "
                              "executor %s. Nothing was changed; give %s a storage of its own",
                              executor, found, other, executor);
    return 0;
}

int df_lineage_check(struct df_context *c, struct df_err *err)
{
    return df_lineage_note(c, err) < 0
               ? -1
               : df_lineage_compare(c, df_json_str(c->result, "state.lineage"), err);
}
