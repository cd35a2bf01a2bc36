#include "spawner/cli/unrecorded.h"

#include "spawner/cli/text.h"
#include "spawner/model/model.h"
#include "spawner/model/task_kinds.h"

static void add_safe(struct df_buf *out, const char *text)
{
    df_text_safe(out, text, strlen(text));
}

/* Appends one word for a shell, quoted if necessary: addresses have brackets and quotes, and an id
 * may have any character. */
static void add_word(struct df_buf *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-";
    if (*text && strspn(text, plain) == strlen(text))
        (void)df_buf_adds(out, text);
    else
        df_text_quoted(out, text);
}

static void add_import(const char *tool, const char *address, const char *id, struct df_buf *out)
{
    DF_BUF struct df_buf words = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    add_word(&words, address);
    (void)df_buf_addc(&words, ' ');
    add_word(&words, id);
    (void)df_buf_addf(out, "    %s import ", tool);
    add_safe(out, df_buf_str(&words));
    (void)df_buf_addc(out, '\n');
}

static void add_item(const cJSON *item, const char *tool, struct df_buf *out)
{
    const char *address = df_json_str(item, "address"), *id = df_json_str(item, "id");
    const char *id_key = df_json_str(item, "idKey");
    bool finished = df_json_bool(item, "finished", false);
    if (!address)
        return;
    (void)df_buf_adds(out, "  ");
    add_safe(out, address);
    (void)df_buf_adds(out, finished ? ": was made" : ": was begun, may exist: look for it\n");
    if (!finished)
        return;
    if (!id || !id_key) {
        (void)df_buf_adds(out, ", its id is not known: look for it\n");
        return;
    }
    if (df_streq(id_key, "id")) {
        (void)df_buf_adds(out, "; to take it over:\n");
        add_import(tool, address, id, out);
        return;
    }
    (void)df_buf_addf(out, ", %s ", id_key);
    add_safe(out, id);
    (void)df_buf_addf(out, ": look for its id, then `%s import`\n", tool);
}

void df_unrecorded_add(const cJSON *task, struct df_buf *out)
{
    const cJSON *list = df_json_at(task, "status.unrecorded"), *item = NULL;
    bool terraform = df_streq(df_json_str(task, "status.tool.name"), "terraform");
    int64_t more = df_json_int(list, "more", 0);
    const char *note = df_json_str(list, "note");
    if (!list)
        return;
    if (df_storage_is_managed(task))
        (void)df_buf_adds(out, "\nObjects that may exist and that no state records:\n");
    else
        (void)df_buf_addf(out,
                          "\nObjects that were begun; look whether the state has them (a %s shows "
                          "it) before you take any over:\n",
                          df_task_kind(task)->comparison);
    cJSON_ArrayForEach (item, df_json_at(list, "items"))
        add_item(item, terraform ? "terraform" : "tofu", out);
    if (more > 0)
        (void)df_buf_addf(out, "  and %lld more: the log of the step names them\n",
                          (long long)more);
    if (note) {
        (void)df_buf_adds(out, "  (");
        add_safe(out, note);
        (void)df_buf_adds(out, ")\n");
    }
}
