/* The commands of a phase one after the other: run_command() runs one; banners; the clone of the
 * tools repository. */
#include "runner/terrakube/scripts.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/terrakube/token.h"
#include "runner/terrakube/advice.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/script_env.h"
#include "runner/terrakube/source.h"

enum { TOKEN_SECONDS = 300 };

#define GREEN "\033[32;40;1m"
#define RED "\033[31;40;1m"
#define PLAIN "\033[0m"

void df_terrakube_scripts_free(struct df_terrakube_scripts *s)
{
    free(s->tools);
    *s = (struct df_terrakube_scripts){0};
}

/* ---- which commands ---- */

static bool is_of(const struct df_terrakube_command *c, enum df_terrakube_phase phase)
{
    switch (phase) {
    case DF_TERRAKUBE_BEFORE_INIT:
        return c->before_init;
    case DF_TERRAKUBE_BEFORE:
        return c->before && !c->before_init;
    case DF_TERRAKUBE_AFTER:
        return c->after;
    case DF_TERRAKUBE_ALL:
        return true;
    }
    DF_BUG("phase %d", (int)phase);
}

bool df_terrakube_scripts_has(const cJSON *list, enum df_terrakube_phase phase)
{
    DF_FREE struct df_terrakube_command *commands = NULL;
    size_t n = 0;
    bool found = false;
    if (!list || df_terrakube_commands(list, &commands, &n, NULL) < 0)
        return list != NULL; /* the run then tells what is wrong with it */
    for (size_t i = 0; i < n; i++)
        found = found || is_of(&commands[i], phase);
    return found;
}

/* ---- what people see ---- */

/* Each line in the colour, unless the settings want none, also an empty one at the end. */
static int show(struct df_context *c, const char *colour, const char *text, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT);
    bool plain = df_terrakube_of(c) && !df_terrakube_of(c)->settings->colour;
    for (const char *line = text;; line++) {
        size_t n = strcspn(line, "\n");
        (void)df_buf_addf(&out, "%s%.*s%s\n", plain ? "" : colour, (int)n, line,
                          plain ? "" : PLAIN);
        line += n;
        if (!*line)
            break;
    }
    return df_buf_check(&out, err) < 0 ? -1 : df_output_text(c->output, out.data, out.len, err);
}

#define STARS "***************************************"

static int show_begin(struct df_context *c, const struct df_terrakube_command *command,
                      struct df_err *err)
{
    DF_FREE char *head =
        df_strf(STARS "\nCommand Priority %d\nRunning %s\nScript Information:  ", command->priority,
                command->is_bash ? "BASH" : "GROOVY");
    if (df_check_alloc(head, err) < 0 || show(c, GREEN, head, err) < 0 ||
        show(c, GREEN, command->script, err) < 0)
        return -1;
    return show(c, GREEN, "\n\n\n" STARS "\nBegin Execution: ", err);
}

static int show_end(struct df_context *c, struct df_err *err)
{
    return show(c, GREEN, "End Execution... \n\n\n", err);
}

/* ---- the tools repository ---- */

static cJSON *tools_source(const struct df_terrakube_scripts *s, struct df_err *err)
{
    const cJSON *env = s->payload->environment;
    const struct df_terrakube_access access = {
        .url = s->settings->tools_repository,
        .vcs_type = df_json_str(env, "TERRAKUBE_PRIVATE_EXTENSION_REPO_TYPE"),
        .token = df_json_str(env, "TERRAKUBE_PRIVATE_EXTENSION_REPO_TOKEN"),
        .http_credentials = s->settings->http_credentials};
    DF_SECRET_JSON cJSON *source = cJSON_CreateObject();
    if (!source) {
        (void)df_fail_oom(err);
        return NULL;
    }
    if (df_json_put(
            source, err, DF_STR("url", s->settings->tools_repository), DF_STR("kind", "git"),
            DF_STR("ref", s->settings->tools_branch ? s->settings->tools_branch : "main")) < 0 ||
        df_terrakube_source_add_access(&access, source, err) < 0)
        return NULL;
    return DF_TAKE(source);
}

static int clone_tools(const struct df_context *c, const struct df_terrakube_scripts *s,
                       struct df_err *err)
{
    DF_SECRET_JSON cJSON *source = tools_source(s, err);
    DF_CLEANUP(df_source_result_free) struct df_source_result result = {0};
    if (!source || df_fs_mkdirs(s->tools, 0700, err) < 0)
        return -1;
    const struct df_source_request q = {.source = source,
                                        .checkout = s->tools,
                                        .private_dir = c->dirs->fetch,
                                        .log_fd = -1,
                                        .stop = df_stop_flag(c->stop),
                                        .advice = &df_terrakube_source_advice};
    return df_source_fetch(&q, &result, err);
}

/* Once a step, beside the checkout: within it a plan that packs the module would see a clone that
 * differs from run to run. Scripts that need no tools run without them. */
static int prepare_tools(struct df_context *c, struct df_terrakube_scripts *s, struct df_err *err)
{
    if (s->has_tools)
        return 0;
    s->has_tools = true;
    s->tools = df_strf("%s-tools", c->dirs->source);
    struct df_err why = {0};
    if (!s->tools)
        return df_fail_oom(err);
    if (s->settings->tools_repository && clone_tools(c, s, &why) < 0)
        (void)df_output_note(c->output, "dayfly: scripts run without the tools repository %s: %s",
                             s->settings->tools_repository, why.message);
    return df_fs_mkdirs(s->tools, 0700, err);
}

static char *tools_place(const struct df_terrakube_scripts *s)
{
    return df_fs_join(s->directory, DF_TERRAKUBE_TOOLS_REPOSITORY);
}

/* A source may have a directory of this name: it makes room, as it does for Terrakube. */
static int show_tools(const struct df_terrakube_scripts *s, struct df_err *err)
{
    DF_FREE char *place = tools_place(s);
    DF_FREE char *parent = df_fs_join(s->directory, ".terrakube");
    struct stat st;
    if (!place || !parent)
        return df_fail_oom(err);
    if (lstat(parent, &st) == 0 && !S_ISDIR(st.st_mode))
        return df_fail_reason(err, DF_ERR_USER, "ScriptFailed",
                              "%s in the source is not a directory; scripts need one of that name",
                              parent);
    if (df_fs_mkdirs(parent, 0755, err) < 0 || df_fs_remove_tree(place, err) < 0)
        return -1;
    return rename(s->tools, place) < 0 ? df_fail_errno(err, errno, "move to %s", place) : 0;
}

static int hide_tools(const struct df_terrakube_scripts *s, struct df_err *err)
{
    DF_FREE char *place = tools_place(s);
    if (!place)
        return df_fail_oom(err);
    if (rename(place, s->tools) == 0)
        return 0;
    return errno == ENOENT ? df_fs_mkdirs(s->tools, 0700, err) /* a script removed it */
                           : df_fail_errno(err, errno, "move %s back", place);
}

/* ---- one command ---- */

/* What runs a script, and its file in the directory. */
struct language {
    const char *program, *file, *missing;
};

static const struct language bash = {
    "bash", "userScript.sh",
    "the commands of this job need bash, which is not in this image: use the runner's image for "
    "scripts, or one of yours with bash"};
static const struct language groovy = {"groovy", "userScript.groovy",
                                       "a command of this job is written in Groovy, and this image "
                                       "has no groovy: use an image that has "
                                       "it on PATH, or write the command in bash (runtime: BASH)"};

/* Terrakube runs Groovy within itself: the script finds what bash has as variables of its own, and
 * its output is what it wrote to terrakubeOutput. Classes come from the directories behind its
 * name. */
static const char groovy_main[] =
    "def binding = new Binding(new HashMap(System.getenv()))\n"
    "binding.setVariable('terraformOutputJson', System.getenv('terraformOutput'))\n"
    "binding.setVariable('terrakubeOutput', new ByteArrayOutputStream())\n"
    "new GroovyScriptEngine(args.tail() as String[]).run(args[0], binding)\n"
    "print binding.getVariable('terrakubeOutput')\n";

static int write_file(const char *dir, const char *name, const char *text, char **ret,
                      struct df_err *err)
{
    DF_FREE char *path = df_fs_join(dir, name);
    if (df_fs_write(path, text, strlen(text), 0700, err) < 0)
        return -1;
    *ret = DF_TAKE(path);
    return 0;
}

static int find_program(const struct language *l, const struct df_strs *env, char **ret,
                        struct df_err *err)
{
    *ret = df_process_which(l->program, df_strs_get_env(env, "PATH"));
    return *ret ? 0 : df_fail_reason(err, DF_ERR_USER, "ScriptFailed", "%s", l->missing);
}

static int add_groovy_args(const struct df_context *c, const struct df_terrakube_scripts *s,
                           struct df_strs *args, struct df_err *err)
{
    DF_FREE char *main_path = NULL;
    DF_FREE char *tools = tools_place(s);
    if (df_check_alloc(tools, err) < 0 ||
        write_file(c->dirs->temporary, "terrakube.groovy", groovy_main, &main_path, err) < 0)
        return -1;
    (void)df_strs_add(args, main_path);
    (void)df_strs_add(args, groovy.file);
    (void)df_strs_add(args, s->directory);
    return df_terrakube_directories_of(tools, ".groovy", args, err);
}

static int report_end(struct df_context *c, const struct df_command_end *end, struct df_err *err)
{
    if (end->stopped)
        return df_fail(err, DF_ERR_RETRY, "a script was ended because the step must stop");
    if (end->code == 0)
        return 0;
    DF_FREE char *text = df_strf("Script Exit Code ==>%d", end->code);
    if (df_check_alloc(text, err) < 0 || show(c, RED, text, err) < 0)
        return -1;
    return df_fail_reason(err, DF_ERR_USER, "ScriptFailed", "a script ended with exit code %d",
                          end->code);
}

/* The terrakubeToken of one script, which may print its environment. */
static int make_token(const struct df_context *c, const struct df_terrakube_scripts *s,
                      struct df_buf *ret, struct df_err *err)
{
    const char *secret = s->settings->internal_secret;
    if (!secret)
        return 0;
    if (df_terrakube_token_make(secret, NULL, df_real_us(), TOKEN_SECONDS, ret, err) < 0)
        return -1;
    return df_output_hide_also(c->output, df_buf_str(ret), err);
}

static int run_script(struct df_context *c, const struct df_terrakube_scripts *s,
                      const struct language *l, const char *script, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs env = {0};
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    DF_STRS struct df_strs args = {0};
    DF_FREE char *program = NULL;
    DF_FREE char *path = NULL;
    struct df_command_end end;
    if (make_token(c, s, &token, err) < 0 ||
        df_terrakube_script_env(s, c->commander.env, c->tool.path, df_buf_str(&token), &env, err) <
            0 ||
        find_program(l, &env, &program, err) < 0 ||
        write_file(s->directory, l->file, script, &path, err) < 0 ||
        (l == &groovy && add_groovy_args(c, s, &args, err) < 0))
        return -1;
    if (l == &bash)
        (void)df_strs_add(&args, path);
    struct df_commander commander = c->commander;
    commander.program = program;
    commander.tool = NULL;
    commander.directory = s->directory;
    commander.env = &env;
    commander.pid_path = NULL;
    commander.is_script = true;
    if (df_strs_check(&args, err) < 0 ||
        df_command_run(&commander, &args, DF_EVENTS_NONE, NULL, &end, err) < 0)
        return -1;
    return report_end(c, &end, err);
}

static int run_command(struct df_context *c, const struct df_terrakube_scripts *s,
                       const struct df_terrakube_command *command, struct df_err *err)
{
    if (df_stopped(df_stop_flag(c->stop)))
        return df_fail(err, DF_ERR_RETRY, "the step must stop before its next script");
    if (command->verbose && show_begin(c, command, err) < 0)
        return -1;
    struct df_err why = {0};
    int failed = run_script(c, s, command->is_bash ? &bash : &groovy, command->script, &why);
    if (command->verbose && show_end(c, err) < 0)
        return -1;
    return failed ? df_err_pass(err, &why) : 0;
}

/* ---- a phase ---- */

static int run_all(struct df_context *c, struct df_terrakube_scripts *s,
                   const struct df_terrakube_command *commands, size_t n,
                   enum df_terrakube_phase phase, struct df_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (is_of(&commands[i], phase) && run_command(c, s, &commands[i], err) < 0)
            return -1;
    }
    return 0;
}

int df_terrakube_scripts_run(struct df_context *c, struct df_terrakube_scripts *s,
                             const cJSON *list, enum df_terrakube_phase phase, struct df_err *err)
{
    DF_FREE struct df_terrakube_command *commands = NULL;
    size_t n = 0;
    if (!df_terrakube_scripts_has(list, phase))
        return 0;
    if (df_terrakube_commands(list, &commands, &n, err) < 0 || prepare_tools(c, s, err) < 0 ||
        show_tools(s, err) < 0)
        return df_err_reason(err, "ScriptFailed");
    struct df_err why = {0};
    int failed = run_all(c, s, commands, n, phase, &why);
    if (hide_tools(s, err) < 0)
        return df_err_reason(err, "ScriptFailed");
    if (!failed)
        return 0;
    (void)df_err_pass(err, &why);
    return why.cls == DF_ERR_RETRY ? -1 : df_err_reason(err, "ScriptFailed");
}
