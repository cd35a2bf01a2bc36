#include "runner/no_init.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/hcl/hcl.h"
#include "runner/init.h"
#include "runner/tofu/backend_noted.h"
#include "runner/tofu/image_records.h"
#include "runner/tofu/workspace.h"

/* ---- the module ---- */

/* Blocks that need no provider, and resources of the one that is built in. A `terraform` block may
 * ask for providers or for another version: the tool says so. */
static bool needs_nothing(const struct df_hcl_block *b)
{
    static const char *const plain[] = {"variable", "output",  "locals", "terraform",
                                        "moved",    "removed", "check",  NULL};
    for (const char *const *type = plain; *type; type++)
        if (df_streq(b->type, *type))
            return !b->in_terraform;
    return df_streq(b->type, "resource") && b->labels.len &&
           df_streq(b->labels.items[0], "terraform_data");
}

static bool is_simple(const struct df_context *c)
{
    DF_HCL_MODULE struct df_hcl_module module = {0};
    DF_FREE char *lock = df_fs_join(c->source.module_dir, ".terraform.lock.hcl");
    if (!df_workspace_is_managed(c->doc) || !lock || df_fs_exists(lock) ||
        df_hcl_scan(c->source.module_dir, df_tool_kind_hcl(c->tool.kind), &module, NULL) < 0)
        return false;
    for (size_t i = 0; i < module.len; i++) {
        const struct df_hcl_block *b = &module.blocks[i];
        if (!needs_nothing(b) && !df_streq(b->file, DF_OVERRIDE_FILE))
            return false;
    }
    return true;
}

/* ---- the note ---- */

/* Where the note for this tool is kept, below the cache or the records of the image. The caller
 * frees. NULL: nowhere, because there is no such directory or no memory. */
static char *kept_path(const struct df_context *c, const char *directory)
{
    char version[DF_VERSION_TEXT];
    return df_str_empty(directory)
               ? NULL
               : df_strf("%s/notes/%s-%s", directory, df_tool_kind_name(c->tool.kind),
                         df_version_format(&c->tool.version, version));
}

static int copy_note(const char *from, const char *to, struct df_err *err)
{
    DF_BUF struct df_buf note = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_FREE char *directory = strdup(to);
    if (!directory)
        return df_fail_oom(err);
    *strrchr(directory, '/') = '\0';
    return df_fs_read_plain(from, &note, err) < 0 || df_fs_mkdirs(directory, 0700, err) < 0
               ? -1
               : df_fs_write(to, df_buf_str(&note), note.len, 0600, err);
}

/* kept may be NULL. */
static bool place_note(const struct df_context *c, const char *kept, const char *note)
{
    if (!kept || copy_note(kept, note, NULL) < 0)
        return false;
    if (df_backend_noted_check(c->doc, c->source.module_dir, NULL) == 0)
        return true;
    (void)unlink(note);
    return false;
}

int df_init_or_not(struct df_context *c, bool *ret_without, struct df_err *err)
{
    bool may_do_without = is_simple(c);
    DF_FREE char *kept = kept_path(c, df_json_str(c->doc, "tools.cacheDirectory"));
    DF_FREE char *shipped = kept_path(c, DF_IMAGE_RECORDS);
    DF_FREE char *note = df_fs_join(c->source.module_dir, DF_BACKEND_NOTE);
    if (!note)
        return df_fail_oom(err);
    *ret_without = may_do_without && (place_note(c, shipped, note) || place_note(c, kept, note));
    if (*ret_without) {
        (void)df_output_note(c->output, "dayfly: no init: the module needs no provider and no "
                                        "other module");
        return 0;
    }
    if (df_init(c, false, err) < 0)
        return -1;
    if (may_do_without && kept)
        (void)!copy_note(note, kept, NULL); /* the next plan has its own `init` then, as before */
    return 0;
}

/* ---- after all ---- */

/* Of each error that `init` mends the tool says so: "run \"tofu init\"". */
bool df_init_is_wanted(const struct df_context *c)
{
    const struct df_output_summary *s = df_output_summary(c->output);
    return s->errors && !s->begun &&
           (strstr(s->first_error, " init") || strstr(s->first_detail, " init"));
}

int df_init_after_all(struct df_context *c, struct df_err *err)
{
    DF_FREE char *data = df_fs_join(c->source.module_dir, ".terraform");
    if (!data)
        return df_fail_oom(err);
    (void)df_output_note(c->output, "dayfly: init after all");
    return df_fs_remove_tree(data, err) < 0 ? -1 : df_init(c, false, err);
}
