/*
 * dayfly create, apply: sends executors, integrations, runs and workflows from documents. Reading
 * first, then one function for each kind; read send_all() near the end first.
 */
#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/yaml/yaml.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/replace.h"

#define INPUT_MAX (16 * DF_MIB) /* of one -f: many documents of 1 MiB */

enum how { HOW_CREATE, HOW_APPLY };

/* ---- reading ---- */

static int read_input(const char *file, struct df_buf *out, struct df_err *err)
{
    int result =
        df_streq(file, "-") ? df_fs_read_fd(STDIN_FILENO, out, err) : df_fs_read(file, out, err);
    if (result < 0 && err->cls == DF_ERR_NOT_FOUND)
        err->cls = DF_ERR_USER;
    return result;
}

static int parse_input(const char *file, const struct df_buf *text, cJSON **ret, struct df_err *err)
{
    if (df_yaml_parse_all(df_buf_str(text), text->len, ret, err) < 0)
        return df_err_wrap(err, "%s", file);
    if (cJSON_GetArraySize(*ret) == 0) {
        cJSON_Delete(*ret);
        *ret = NULL;
        return df_fail(err, DF_ERR_USER, "%s: no document in it", file);
    }
    return 0;
}

static bool is_list(const cJSON *doc)
{
    const char *kind = df_json_str(doc, "kind");
    return cJSON_IsArray(df_json_at(doc, "items")) && (!kind || df_streq(kind, "List"));
}

/* Replaces each list, as `get -o yaml` prints it, by its items. docs: an array; it is replaced. */
static int flatten(cJSON **docs, struct df_err *err)
{
    DF_JSON cJSON *flat = cJSON_CreateArray();
    if (!flat)
        return df_fail_oom(err);
    while ((*docs)->child) {
        DF_JSON cJSON *doc = cJSON_DetachItemViaPointer(*docs, (*docs)->child);
        if (!is_list(doc)) {
            if (df_json_append(flat, DF_TAKE(doc), err) < 0)
                return -1;
            continue;
        }
        cJSON *items = cJSON_GetObjectItemCaseSensitive(doc, "items");
        while (items->child)
            if (df_json_append(flat, cJSON_DetachItemViaPointer(items, items->child), err) < 0)
                return -1;
    }
    cJSON_Delete(*docs);
    *docs = DF_TAKE(flat);
    return 0;
}

static int load_documents(const char *file, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(INPUT_MAX);
    if (read_input(file, &text, err) < 0 || parse_input(file, &text, ret, err) < 0)
        return -1;
    return flatten(ret, err);
}

/* ---- sending ---- */

struct sending {
    struct df_cli *cli;
    enum how how;
    cJSON *answers; /* for -o: what the service stored; NULL: a line for each is printed */
};

/* One document was sent. answer: what is stored now; owned. */
static int done(struct sending *s, const char *kind, const char *what, cJSON *answer,
                struct df_err *err)
{
    const char *name = df_json_str(answer, "metadata.name");
    if (s->answers)
        return df_json_append(s->answers, answer, err);
    DF_FREE char *line = df_strf("%s/%s %s\n", kind, name ? name : "", what);
    cJSON_Delete(answer);
    return df_cli_print(line, err);
}

/* A document that is as its sender wrote it (is_editable). */
static int create_kept(struct sending *s, const struct df_shown *kind, const cJSON *doc,
                       struct df_err *err)
{
    DF_JSON cJSON *own = NULL, *made = NULL;
    DF_FREE char *path = df_path(kind->plural, NULL);
    if (df_client_part(doc, false, &own, err) < 0 ||
        df_cli_call(s->cli, "POST", path, own, &made, err) < 0)
        return -1;
    df_tell_warnings(made);
    return done(s, kind->singular, "created", DF_TAKE(made), err);
}

static int apply_kept(struct sending *s, const struct df_shown *kind, const cJSON *doc,
                      struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    DF_FREE char *path = df_path(kind->plural, name, NULL);
    DF_JSON cJSON *old = NULL, *stored = NULL;
    bool changed = false;
    if (df_cli_call(s->cli, "GET", path, NULL, &old, err) < 0)
        return err->cls == DF_ERR_NOT_FOUND ? create_kept(s, kind, doc, err) : -1;
    if (df_replace_document(s->cli, path, old, doc, &changed, &stored, err) < 0)
        return -1;
    return done(s, kind->singular, changed ? "changed" : "unchanged", DF_TAKE(stored), err);
}

static int send_kept(struct sending *s, const struct df_shown *kind, const cJSON *doc,
                     struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    if (!name || !df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER,
                       "metadata.name: %s (lower-case letters, digits and -, at most 63)",
                       name ? "is not a valid name" : "is required");
    return s->how == HOW_CREATE ? create_kept(s, kind, doc, err) : apply_kept(s, kind, doc, err);
}

/* The members of spec are the body of the request. */
static int send_run(struct sending *s, const cJSON *doc, struct df_err *err)
{
    const char *executor = df_json_str(doc, "spec.executorRef.name");
    if (!executor)
        return df_fail(err, DF_ERR_USER, "spec.executorRef.name: is required");
    DF_FREE char *path = df_path("executors", executor, "runs", NULL);
    DF_JSON cJSON *body = cJSON_Duplicate(df_json_at(doc, "spec"), true);
    DF_JSON cJSON *run = NULL;
    if (!path || !body)
        return df_fail_oom(err);
    cJSON_DeleteItemFromObjectCaseSensitive(body, "executorRef");
    if (df_cli_call(s->cli, "POST", path, body, &run, err) < 0)
        return -1;
    return done(s, "run", "created", DF_TAKE(run), err);
}

/* A document that only a new one is made of. */
static int create_document(struct sending *s, const struct df_shown *kind, const cJSON *doc,
                           struct df_err *err)
{
    DF_FREE char *path = df_path(kind->plural, NULL);
    DF_JSON cJSON *made = NULL;
    if (df_cli_call(s->cli, "POST", path, doc, &made, err) < 0)
        return -1;
    return done(s, kind->singular, "created", DF_TAKE(made), err);
}

/* Those kinds that can be sent: "Executor, Integration, Run or TaskAction". First those that are
 * sent as they are written. */
static void name_kinds(bool create, const char *last, struct df_buf *to)
{
    const char *names[DF_KIND_COUNT];
    size_t n = 0;
    for (int written = 1; written >= !create; written--)
        for (int kind = 0; kind < DF_KIND_COUNT; kind++)
            if (df_kind_row((enum df_kind)kind)->is_editable == written)
                names[n++] = df_kind_name((enum df_kind)kind);
    for (size_t i = 0; i < n; i++)
        (void)df_buf_addf(to, "%s%s", !i ? "" : i + 1 < n ? ", " : last, names[i]);
}

static int send_document(struct sending *s, const cJSON *doc, struct df_err *err)
{
    const char *name = df_json_str(doc, "kind");
    const struct df_kind_row *kind = df_kind_called(name);
    bool create = s->how == HOW_CREATE;
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_KIB);
    if (kind && kind->is_editable)
        return send_kept(s, &kind->shown, doc, err);
    if (kind == df_kind_row(DF_KIND_RUN) && create)
        return send_run(s, doc, err);
    if (kind && create)
        return create_document(s, &kind->shown, doc, err);
    name_kinds(create, name ? " and " : " or ", &names);
    if (!name)
        return df_fail(err, DF_ERR_USER, "kind: is required (%s)", df_buf_str(&names));
    return df_fail(err, DF_ERR_USER, "kind \"%s\": cannot be sent; %s can", name,
                   df_buf_str(&names));
}

static int send_documents(struct sending *s, const char *file, const cJSON *docs,
                          struct df_err *err)
{
    int number = 0;
    const cJSON *doc = NULL;
    cJSON_ArrayForEach (doc, docs) {
        number++;
        if (send_document(s, doc, err) < 0)
            return df_err_wrap(
                err, doc->next ? "%s: document %d, nothing after it was sent" : "%s: document %d",
                file, number);
    }
    return 0;
}

/* For -o: the document as it is stored; of several, a list. */
static int print_answers(struct df_cli *cli, const cJSON *answers, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    cJSON *first = cJSON_GetArrayItem(answers, 0);
    if (first && !first->next)
        return df_cli_print_json(cli, first, err);
    list = df_json_object(DF_ITEM("items", cJSON_Duplicate(answers, true)));
    return df_cli_print_json(cli, list, err);
}

static int send_all(struct df_cli *cli, enum how how, struct df_err *err)
{
    const char *file = df_arg(&cli->args, "filename");
    if (!file)
        return df_fail(err, DF_ERR_USER, "-f FILE is needed (- for standard input)");
    bool wants_document = df_cli_output(cli)[0];
    DF_JSON cJSON *docs = NULL, *answers = wants_document ? cJSON_CreateArray() : NULL;
    if (wants_document && !answers)
        return df_fail_oom(err);
    if (load_documents(file, &docs, err) < 0)
        return -1;
    struct sending s = {cli, how, answers};
    int result = send_documents(&s, file, docs, err);
    /* What was stored before a document that was refused is told, too. */
    if (cJSON_GetArraySize(answers) && print_answers(cli, answers, result < 0 ? NULL : err) < 0)
        return -1;
    return result < 0 ? -1 : DF_EXIT_OK;
}

int df_cmd_create(struct df_cli *cli, struct df_err *err)
{
    return send_all(cli, HOW_CREATE, err);
}

int df_cmd_apply(struct df_cli *cli, struct df_err *err)
{
    return send_all(cli, HOW_APPLY, err);
}
