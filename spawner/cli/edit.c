/*
 * dayfly edit: opens the document of an executor or an integration in an editor and sends the
 * result. Read edit() near the end, then one_turn(). With --revision it goes back to an earlier
 * spec instead (revisions.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/yaml/yaml.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/named.h"
#include "spawner/cli/replace.h"
#include "spawner/cli/revisions.h"

struct edit {
    const struct df_shown *kind;
    const char *name;
    char *path;    /* of the document */
    char *file;    /* the file for the editor, 0600 */
    cJSON *doc;    /* as fetched */
    char *text;    /* the latest text of the editor, without comment lines */
    bool attempts; /* a document was sent before */
    bool keep;     /* do not remove the file: its text was not stored */
};

static void end_edit(struct edit *e)
{
    if (e->file && !e->keep)
        (void)unlink(e->file);
    free(e->path);
    free(e->file);
    free(e->text);
    cJSON_Delete(e->doc);
}

/* ---- the file ---- */

static int make_file(struct edit *e, struct df_err *err)
{
    const char *directory = getenv("TMPDIR");
    e->file = df_strf("%s/dayfly-edit-XXXXXX.yaml", df_str_empty(directory) ? "/tmp" : directory);
    if (!e->file)
        return df_fail_oom(err);
    int fd = mkostemps(e->file, (int)strlen(".yaml"), O_CLOEXEC);
    if (fd < 0) {
        int saved = errno;
        free(e->file);
        e->file = NULL;
        return df_fail_errno(err, saved, "make a file for the editor");
    }
    (void)close(fd);
    return 0;
}

/* Writes the document below a comment: instructions, and why it was refused. */
static int write_file(const struct edit *e, const char *refusal, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(2 * DF_LIMIT_DOCUMENT);
    (void)df_buf_addf(&out,
                      "# %s/%s. Lines that begin with # are left out; an unchanged document\n"
                      "# changes nothing.\n",
                      e->kind->singular, e->name);
    if (refusal)
        (void)df_buf_adds(&out, "#\n# It was refused:\n");
    for (const char *line = refusal; line && *line;) {
        size_t n = strcspn(line, "\n");
        (void)df_buf_addf(&out, "#   %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    (void)df_buf_adds(&out, e->text);
    if (df_buf_check(&out, err) < 0)
        return -1;
    return df_fs_write(e->file, df_buf_str(&out), out.len, 0600, err);
}

/* Reads the file without its comment lines. */
static int read_file(const struct edit *e, char **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_DOCUMENT),
                         own = DF_BUF_INIT(2 * DF_LIMIT_DOCUMENT);
    if (df_fs_read(e->file, &text, err) < 0)
        return -1;
    for (const char *line = df_buf_str(&text); *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        if (*line != '#')
            (void)df_buf_add(&own, line, n);
        line += n;
    }
    if (df_buf_check(&own, err) < 0)
        return -1;
    return df_check_alloc(*ret = strdup(df_buf_str(&own)), err);
}

/* ---- the editor ---- */

static const char *editor(void)
{
    const char *visual = getenv("VISUAL"), *plain = getenv("EDITOR");
    return !df_str_empty(visual) ? visual : !df_str_empty(plain) ? plain : "vi";
}

/* The editor shares the terminal, the process group and the signals of this command. */
static int spawn_editor(const struct edit *e, pid_t *ret, struct df_err *err)
{
    DF_FREE char *command = df_strf("%s \"$1\"", editor());
    if (!command)
        return df_fail_oom(err);
    char *argv[] = {(char[]){"sh"},          (char[]){"-c"}, command,
                    (char[]){"dayfly-edit"}, e->file,        NULL};
    int failed = posix_spawn(ret, "/bin/sh", NULL, NULL, argv, environ);
    return failed ? df_fail_errno(err, failed, "start the editor %s", editor()) : 0;
}

static int run_editor(const struct edit *e, struct df_err *err)
{
    pid_t pid = -1;
    int status = 0;
    if (spawn_editor(e, &pid, err) < 0)
        return -1;
    void (*before)(int) = signal(SIGINT, SIG_IGN); /* Ctrl-C is for the editor */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    (void)signal(SIGINT, before);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return df_fail(err, DF_ERR_CONFLICT,
                   "the editor (%s) failed: %s %s is unchanged; $VISUAL or $EDITOR chooses another "
                   "editor",
                   editor(), e->kind->singular, e->name);
}

/* ---- fetching and sending ---- */

static int fetch(struct df_cli *cli, struct edit *e, struct df_err *err)
{
    DF_JSON cJSON *own = NULL;
    if (df_cli_call(cli, "GET", e->path, NULL, &e->doc, err) < 0 ||
        df_client_part(e->doc, true, &own, err) < 0)
        return -1;
    /* The editor may be open for long: do not hold the data directory meanwhile. */
    df_cli_disconnect(cli);
    return df_check_alloc(e->text = df_yaml_print(own), err);
}

static int send(struct df_cli *cli, const struct edit *e, bool *ret_changed, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL, *now = NULL, *stored = NULL;
    if (df_yaml_parse(e->text, strlen(e->text), &doc, NULL, err) < 0)
        return -1;
    const char *name = df_json_str(doc, "metadata.name");
    if (!df_streq(name, e->name))
        return df_fail(err, DF_ERR_USER, "metadata.name: must stay %s", e->name);
    if (df_cli_call(cli, "GET", e->path, NULL, &now, err) < 0)
        return -1;
    return df_replace_document(cli, e->path, now, doc, ret_changed, &stored, err);
}

/* Keeps the file, so that the text is not lost. */
static int keep_file(struct edit *e, struct df_err *err)
{
    e->keep = true;
    return df_err_wrap(err, "nothing was changed; your text is in %s", e->file);
}

/* Runs the editor and sends the document. 1: it was refused; repeat with *err above the document.
 * 0: done. */
static int one_turn(struct df_cli *cli, struct edit *e, const char **ret_word, struct df_err *err)
{
    char *text = NULL;
    bool changed = false;
    if (run_editor(e, err) < 0 || read_file(e, &text, err) < 0)
        return -1;
    bool same = df_streq(text, e->text), empty = !text[strspn(text, " \t\r\n")];
    free(e->text);
    e->text = text;
    *ret_word = "unchanged";
    if ((same || empty) && !e->attempts)
        return 0;
    if (same || empty)
        return df_fail(err, DF_ERR_USER, "the document is still refused") < 0 ? keep_file(e, err)
                                                                              : 0;
    e->attempts = true;
    if (send(cli, e, &changed, err) == 0) {
        *ret_word = changed ? "changed" : "unchanged";
        return 0;
    }
    df_cli_disconnect(cli);
    return err->cls == DF_ERR_USER ? 1 : keep_file(e, err);
}

static int edit(struct df_cli *cli, struct edit *e, struct df_err *err)
{
    const char *word = NULL;
    e->path = df_path(e->kind->plural, e->name, NULL);
    if (df_check_alloc(e->path, err) < 0 || fetch(cli, e, err) < 0 || make_file(e, err) < 0 ||
        write_file(e, NULL, err) < 0)
        return -1;
    for (int again; (again = one_turn(cli, e, &word, err));) {
        struct df_err refusal = *err;
        if (again < 0 || write_file(e, refusal.message, err) < 0)
            return -1;
    }
    return df_cli_printf(err, "%s/%s %s\n", e->kind->singular, e->name, word);
}

static int fail_unfit(struct df_err *err)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_KIB);
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        if (df_kind_row((enum df_kind)kind)->is_editable)
            (void)df_buf_addf(&names, "%s%s", names.len ? " or " : "",
                              df_kind_row((enum df_kind)kind)->shown.singular);
    return df_fail(err, DF_ERR_USER, "only one %s can be edited: dayfly edit executor NAME",
                   df_buf_str(&names));
}

int df_cmd_edit(struct df_cli *cli, struct df_err *err)
{
    struct df_named *named = NULL;
    size_t count = 0;
    cli->as = DF_CONNECT_LOOK;
    if (df_named_parse(cli, cli->args.words, cli->args.word_count, &named, &count, err) < 0)
        return -1;
    const struct df_kind_row *kind = df_kind_shown(named[0].kind);
    bool fits = count == 1 && named[0].name && kind && kind->is_editable;
    struct edit e = {.kind = named[0].kind, .name = named[0].name};
    free(named);
    if (!fits)
        return fail_unfit(err);
    const char *revision = df_arg(&cli->args, "revision");
    if (revision && kind != df_kind_row(DF_KIND_EXECUTOR))
        return df_fail(err, DF_ERR_USER, "--revision is for executors");
    if (revision)
        return df_revision_return(cli, e.name, revision, err);
    int result = edit(cli, &e, err);
    end_edit(&e);
    return result;
}
