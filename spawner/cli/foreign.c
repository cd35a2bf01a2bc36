/*
 * Commands and options of other tools, each with what dayfly has instead: the table of commands and
 * its search first, then the table of options and its search.
 */
#include "spawner/cli/foreign.h"

#include "common/base/util.h"

/* ---- commands ---- */

struct answer {
    const char *words; /* "init", or two words: "auth login"; "*" is any second word */
    const char *answer;
};

static const struct answer commands[] = {
    /* tofu and terraform */
    {"init", "each step initializes the tool by itself; `dayfly plan DIR` shows what would change"},
    {"validate", "`dayfly plan DIR` checks a module and shows what it would change"},
    {"fmt", "dayfly changes no sources; use the tool itself: `tofu fmt`"},
    {"show", "`dayfly logs RUN` shows a plan, `dayfly state show EXECUTOR` the state"},
    {"import",
     "`dayfly state import EXECUTOR ADDRESS ID` takes an object into the state; so does an "
     "import block in the module, with the next run"},
    {"taint", "`dayfly run EXECUTOR --replace ADDRESS` makes a resource again"},
    {"untaint", "dayfly marks nothing; `dayfly run EXECUTOR --replace ADDRESS` names what to make "
                "again"},
    {"output", "`dayfly outputs EXECUTOR [NAME]` shows outputs"},
    {"refresh",
     "`dayfly run EXECUTOR --refresh-only` takes what has changed outside into the state"},
    {"workspace",
     "each executor has a state of its own; `dayfly run DIR --name NAME` makes another "
     "one of the same module"},
    {"console", "dayfly has no console; `dayfly state show EXECUTOR` prints the state, `dayfly "
                "outputs EXECUTOR` the outputs"},
    {"force-unlock", "`dayfly state unlock EXECUTOR [ID]` releases a lock; one of a dead runner is "
                     "released by itself"},
    {"push", "`dayfly state push EXECUTOR FILE` stores a state"},
    {"pull", "`dayfly state pull EXECUTOR` prints the state"},
    {"mv", "`dayfly state mv EXECUTOR SRC DST` moves an address in the state"},
    {"providers", "`dayfly logs RUN` names the providers of a run; credentials of registries are "
                  "providers.credentialsFile of the configuration"},
    {"graph", "dayfly draws no graphs; use the tool itself: `tofu graph`"},
    {"test", "dayfly runs no module tests; use the tool itself: `tofu test`"},
    {"metadata", "use the tool itself: `tofu metadata functions -json`"},
    {"up", "`dayfly run DIR` plans a module, asks, and applies it"},
    {"deploy", "`dayfly run DIR` plans a module, asks, and applies it"},
    {"preview", "`dayfly plan DIR` shows what a module would change"},
    /* kubectl */
    {"exec",
     "a step takes no commands; `dayfly logs -f RUN` shows what it does, `dayfly why RUN` how "
     "it ended"},
    {"attach", "`dayfly logs -f RUN` follows a run"},
    {"rollout",
     "`dayfly run EXECUTOR` applies, `dayfly logs -f RUN` follows, `dayfly state rollback "
     "EXECUTOR VERSION` takes an old state"},
    {"port-forward", "dayfly forwards no ports; --server URL names a service that is elsewhere"},
    {"proxy", "`dayfly serve --listen ADDRESS:PORT` is the service"},
    {"top", "`dayfly get runs` shows what is under way; a service has its figures at /metrics"},
    {"config", "options and DAYFLY_* variables are the configuration, docs/configuration.md lists "
               "them; `dayfly doctor` checks it"},
    {"scale", "limits.steps of the configuration says how many steps run at once"},
    {"wait", "`dayfly logs -f RUN` ends with the run"},
    {"events",
     "`dayfly logs RUN --events` shows the tool's events, `dayfly why RUN` what happened"},
    {"explain", "docs/objects.md describes each field; `dayfly help COMMAND` each command"},
    {"replace", "`dayfly apply -f FILE` changes executors"},
    {"patch", "`dayfly apply -f FILE` changes executors"},
    {"label", "metadata.labels of a document holds labels; `dayfly apply -f FILE` changes it"},
    {"annotate",
     "metadata.annotations of a document holds them; `dayfly apply -f FILE` changes it"},
    {"api-resources", "the kinds are executors, runs, taskactions, integrations, secrets and "
                      "audit: `dayfly get KIND`"},
    {"cluster-info",
     "`dayfly doctor` looks at the installation, `dayfly version` names the server"},
    {"auth",
     "`dayfly login` signs in at the OpenID provider of a service; `dayfly token-file create` "
     "makes a token"},
    {"cp", "`dayfly state show EXECUTOR` prints a state, `dayfly logs RUN` a log"},
    {"debug", "`dayfly why RUN` tells how a run came to its end, `dayfly doctor` looks at the "
              "installation"},
    /* gh */
    {"pr", "dayfly knows no pull requests; `dayfly plan DIR` shows what a change would do"},
    {"repo", "`dayfly run URL --branch NAME` takes a git repository"},
    {"workflow", "`dayfly create -f FILE` asks for workflows, `dayfly get taskactions` lists them"},
    {"issue", "dayfly keeps no issues; `dayfly why RUN` tells how a run came to its end"},
    {"release", "`dayfly run URL --tag NAME` takes a release of a git repository"},
    {"status", "`dayfly get runs` shows what is under way"},
    {"list", "`dayfly get executors` and `dayfly get runs` list things"},
    {"ls", "`dayfly get executors` and `dayfly get runs` list things"},
    {"ps", "`dayfly get runs` shows what is under way"},
    {"stop", "`dayfly cancel RUN` ends a run"},
    {"rm", "`dayfly destroy EXECUTOR` destroys its resources, `dayfly delete EXECUTOR` forgets it, "
           "`dayfly state rm EXECUTOR ADDRESS` forgets one resource"},
    {"api", "openapi.yaml of a service describes its API; -o json prints documents"},
};

/* Words after one of dayfly's commands. */
static const struct answer after[] = {
    {"run list", "`dayfly get runs` lists runs"},
    {"run ls", "`dayfly get runs` lists runs"},
    {"run view", "`dayfly why RUN` tells about a run, `dayfly logs RUN` shows its log"},
    {"run watch", "`dayfly logs -f RUN` follows a run"},
    {"run rerun", "`dayfly run EXECUTOR` runs it again"},
    {"run cancel", "`dayfly cancel RUN` ends a run"},
    {"run download", "`dayfly logs RUN` prints its log"},
    {"run delete", "runs are deleted with their executor: `dayfly delete EXECUTOR`"},
    {"apply *", "documents are applied with -f FILE; `dayfly run DIR` plans and applies a module"},
    {"secret get", "a secret cannot be read back; `dayfly secret list` lists names and keys"},
    {"secret create", "`dayfly secret set NAME KEY` stores a value"},
};

static bool matches(const char *row, const char *first, const char *second)
{
    size_t n = strcspn(row, " ");
    if (strlen(first) != n || strncmp(row, first, n) != 0)
        return false;
    return !row[n] || (second && (df_streq(row + n + 1, "*") || df_streq(row + n + 1, second)));
}

static int answer_of(const struct answer *rows, size_t n, const char *first, const char *second,
                     struct df_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!matches(rows[i].words, first, second))
            continue;
        bool both = strchr(rows[i].words, ' ') != NULL;
        return df_fail(err, DF_ERR_USER, "dayfly has no \"%s%s%s\": %s", first, both ? " " : "",
                       both ? second : "", rows[i].answer);
    }
    return 0;
}

int df_foreign_command(char *const *words, size_t count, struct df_err *err)
{
    return answer_of(commands, DF_ARRAY_SIZE(commands), words[0], count > 1 ? words[1] : NULL, err);
}

int df_foreign_words(const char *command, char *const *words, size_t count, struct df_err *err)
{
    return answer_of(after, DF_ARRAY_SIZE(after), command, count ? words[0] : NULL, err);
}

const char *df_foreign_at(size_t i, const char **ret_answer)
{
    size_t n = DF_ARRAY_SIZE(commands);
    const struct answer *a = i < n                          ? &commands[i]
                             : i - n < DF_ARRAY_SIZE(after) ? &after[i - n]
                                                            : NULL;
    if (!a)
        return NULL;
    *ret_answer = a->answer;
    return a->words;
}

/* ---- options ---- */

static const struct {
    const char *name;
    const char *harmless; /* with this value dayfly always does it; NULL: no such value */
    const char *answer;
} options[] = {
    {"input", "false", "nobody is asked for variables; name them with --var NAME=VALUE"},
    {"lock", "true", "a step always locks the state that it uses"},
    {"lock-timeout", NULL,
     "runs of an executor wait for each other; `dayfly state unlock EXECUTOR` "
     "releases a lock that somebody left"},
    {"auto-approve", NULL,
     "`dayfly run` and `dayfly destroy` take it; nothing else applies a plan"},
    {"detailed-exitcode", NULL, "`dayfly plan DIR --detailed-exitcode` takes it"},
    {"destroy", NULL,
     "`dayfly destroy DIR` shows the plan of a destroy and asks before it is "
     "applied"},
    {"out", NULL,
     "a plan is kept with its run: `dayfly run DIR --no-wait` leaves it, `dayfly "
     "approve RUN` applies it"},
    {"json", NULL,
     "-o json prints one document, `dayfly logs RUN --events` the tool's JSON events"},
    {"raw", NULL, "`dayfly outputs EXECUTOR NAME` prints a string as it is"},
    {"chdir", NULL,
     "name the directory: `dayfly plan DIR`; --folder names a module within a "
     "repository"},
    {"state", NULL, "spec.storage of the executor says where its state is kept"},
    {"state-out", NULL, "spec.storage of the executor says where its state is kept"},
    {"backup", NULL, "earlier states are kept: `dayfly state list EXECUTOR`"},
    {"backend", NULL, "spec.storage of the executor says where its state is kept"},
    {"backend-config", NULL, "spec.storage of the executor says where its state is kept"},
    {"upgrade", NULL, "each step initializes the tool by itself, with the lock file of the module"},
    {"reconfigure", NULL, "each step initializes the tool by itself"},
    {"migrate-state", NULL, "spec.storage of the executor says where its state is kept"},
    {"generate-config-out", NULL, "a run changes no sources"},
    {"show-sensitive", NULL,
     "`dayfly outputs EXECUTOR --show-sensitive` takes it; logs never show "
     "sensitive values"},
    {"concise", NULL, "`dayfly outputs EXECUTOR` and -o json print less than the log"},
};

int df_foreign_option(const char *option, struct df_err *err)
{
    size_t n = strcspn(option, "=");
    for (size_t i = 0; i < DF_ARRAY_SIZE(options); i++) {
        if (strlen(options[i].name) != n || strncmp(options[i].name, option, n) != 0)
            continue;
        if (option[n] && options[i].harmless && df_streq(option + n + 1, options[i].harmless))
            return 0;
        return df_fail(err, DF_ERR_USER, "-%.*s: %s", (int)n, option, options[i].answer);
    }
    return 1;
}
