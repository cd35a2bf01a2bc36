/* The one table of sub-commands: what each is called, takes and says about itself. */
#include "spawner/cli/commands.h"

#define ANY SIZE_MAX
#define FORMATS "json|yaml"

/* Rows that several tables share. */
/* clang-format off */
#define OUTPUT       {"output", 'o', "FORMAT", "json or yaml instead of text", FORMATS}
#define DOCUMENT     {"output", 'o', "FORMAT", "one document on standard output, nothing else", FORMATS}
#define AUTO_APPROVE {"auto-approve", 0, NULL, "apply without asking", NULL}
#define VAR          {"var", 0, "NAME=VALUE", "a variable; again for more; [..] and {..} are JSON", NULL}
#define VAR_FILE     {"var-file", 0, "FILE", "variables as one YAML or JSON object", NULL}
#define ARG          {"arg", 0, "ARGUMENT", "for the plan: --arg=-parallelism=5; again for more", NULL}
#define NO_WAIT      {"no-wait", 0, NULL, "leave a plan that waits for approval, which is success", NULL}
#define PRIORITY     {"priority", 0, "NUMBER", "-1000 to 1000: who waits for a place with more of it starts first", NULL}
#define CLASS        {"class", 0, "NAME", "what its steps get and how many run at once", NULL}
#define DETACH       {"detach", 'd', NULL, "ask for the run and leave it", NULL}
#define FOLLOW       {"follow", 'f', NULL, "show what happens until the run has ended", NULL}
/* clang-format on */

static const struct df_option run_options[] = {
    {"action", 'a', "ACTION", "provision (default), dry-run or destroy",
     "provision|dry-run|destroy"},
    AUTO_APPROVE,
    VAR,
    VAR_FILE,
    ARG,
    PRIORITY,
    CLASS,
    NO_WAIT,
    DETACH,
    DOCUMENT,
    {"name", 'n', "NAME", "of the executor; default: made from the directory or URL", NULL},
    {"branch", 0, "BRANCH", "of a git source", NULL},
    {"tag", 0, "TAG", "of a git source", NULL},
    {"commit", 0, "COMMIT", "of a git source", NULL},
    {"folder", 0, "DIR", "of the module within the source", NULL},
    {"sha256", 0, "HEX", "of an archive", NULL},
    {"tool", 0, "TOOL", "opentofu (default) or terraform", "opentofu|terraform"},
    {"tool-version", 0, "VERSION", "1.12.6 or a constraint: '~> 1.9'", NULL},
    {0}};

static const struct df_option recreate_options[] = {
    AUTO_APPROVE, VAR, VAR_FILE, ARG, PRIORITY, CLASS, NO_WAIT, DETACH, DOCUMENT, {0}};

static const struct df_option serve_options[] = {
    {"listen", 0, "ADDRESS", "default 127.0.0.1:8030", NULL},
    {"set", 0, "KEY=VALUE", "any other key of the configuration; again for more", NULL},
    {0}};

static const struct df_option doctor_options[] = {
    {"set", 0, "KEY=VALUE", "any key of the configuration; again for more", NULL},
    {"service-account", 0, "NAME", "whose rights are looked at; default: yours", NULL},
    {"no-probe", 0, NULL, "start no pod", NULL},
    DOCUMENT,
    {0}};

static const struct df_option file_options[] = {
    {"filename", 'f', "FILE", "YAML or JSON, several documents with ---; - is standard input",
     NULL},
    {0}};

static const struct df_option get_options[] = {
    {"output", 'o', "FORMAT", "json, yaml, wide or name", "json|yaml|wide|name"},
    {"executor", 0, "NAME", "runs of this executor alone", NULL},
    {"watch", 'w', NULL, "show changes until Ctrl-C", NULL},
    {0}};

static const struct df_option logs_options[] = {
    {"follow", 'f', NULL, "go on until the run has ended", NULL},
    {"step", 0, "STEP", "plan or apply alone", "plan|apply"},
    {"events", 0, NULL, "the tool's own JSON events instead of text", NULL},
    {0}};

static const struct df_option decide_options[] = {
    {"follow", 'f', NULL, "show what happens until the run has ended", NULL}, {0}};

static const struct df_option cancel_options[] = {
    {"reason", 0, "TEXT", "kept with the run", NULL}, FOLLOW, {0}};

static const struct df_option outputs_options[] = {
    OUTPUT, {"show-sensitive", 0, NULL, "print sensitive values, too", NULL}, {0}};

static const struct df_option show_options[] = {
    {"version", 0, "NUMBER", "of `state list`; default: the newest", NULL}, {0}};
static const struct df_option lock_options[] = {
    {"reason", 0, "TEXT", "shown to whoever meets the lock", NULL}, {0}};
static const struct df_option secret_set_options[] = {
    {"from-file", 0, "FILE", "the value, byte for byte; - is standard input", NULL}, {0}};
static const struct df_option token_options[] = {
    {"name", 0, "NAME", "of the holder, for the audit trail", NULL},
    {"role", 0, "ROLE", "read, write or admin", "read|write|admin"},
    OUTPUT,
    {0}};
static const struct df_option output_options[] = {OUTPUT, {0}};

const struct df_command df_commands[] = {
    {"run", "DIR|FILE|URL|EXECUTOR [options]", "Plan a module, ask, apply: one run to its end",
     "A directory, archive or git repository becomes an executor with a name made from it; its\n"
     "state is kept under that name. Without a service this process is one for as long as the\n"
     "run takes. On a terminal the plan is shown and 'yes' asked for; elsewhere only\n"
     "--auto-approve applies. Ctrl-C cancels the run and waits until its state is stored.\n"
     "Values of secrets do not belong in --var: see dayfly secret set.\n",
     "dayfly run examples/hello\n"
     "dayfly run examples/hello --action destroy\n"
     "dayfly run https://git.example/infra.git --branch main --folder net --action dry-run\n"
     "dayfly run net --auto-approve --var region=eu -o json\n"
     "dayfly run net --auto-approve --class large --priority 10 --detach\n",
     run_options, 1, 1, df_cmd_run},
    {"serve", "[options]", "Run the service in the foreground", NULL,
     "dayfly serve\n"
     "dayfly serve --listen 127.0.0.1:8030 --data-directory /var/lib/dayfly\n"
     "dayfly serve --config /etc/dayfly.yaml --set limits.steps=16\n",
     serve_options, 0, 0, df_cmd_serve},
    {"doctor", "[options]", "Find what is wrong with an installation",
     "Looks with the service's configuration at this machine and the cluster, and lets one pod of\n"
     "the runner's image tell what a step would find. Ends with 1 when something FAILs.\n",
     "dayfly doctor --config /etc/dayfly.yaml\n"
     "dayfly doctor --config /etc/dayfly.yaml --service-account dayfly-spawner\n"
     "kubectl exec deploy/dayfly -- dayfly doctor -o json\n",
     doctor_options, 0, 0, df_cmd_doctor},
    {"create", "-f FILE", "Create executors, or ask for runs and workflows, from documents", NULL,
     "dayfly create -f executor.yaml\n"
     "cat net.yaml db.yaml | dayfly create -f -\n",
     file_options, 0, 0, df_cmd_create},
    {"apply", "-f FILE", "Create or change executors from documents", NULL,
     "dayfly apply -f executor.yaml\n", file_options, 0, 0, df_cmd_apply},
    {"delete", "EXECUTOR|taskaction/NAME...",
     "Delete executors whose resources are gone, and workflows", NULL,
     "dayfly delete net\n"
     "dayfly delete taskaction/restart\n",
     NULL, 1, ANY, df_cmd_delete},
    {"recreate", "EXECUTOR [options]", "Provision an executor again that was destroyed", NULL,
     "dayfly recreate net\n", recreate_options, 1, 1, df_cmd_recreate},
    {"get", "executors|runs|taskactions|secrets|audit [NAME]", "List things, or show one", NULL,
     "dayfly get runs\n"
     "dayfly get runs --executor net -o wide\n"
     "dayfly get executor net -o yaml\n"
     "dayfly get runs -w\n",
     get_options, 1, 2, df_cmd_get},
    {"describe", "KIND NAME", "Show one thing in full, for people", NULL,
     "dayfly describe executor net\n"
     "dayfly describe run net-3\n",
     NULL, 2, 2, df_cmd_describe},
    {"logs", "RUN", "Show the log of a run", NULL,
     "dayfly logs net-3\n"
     "dayfly logs -f net-3\n"
     "dayfly logs net-3 --step apply --events\n",
     logs_options, 1, 1, df_cmd_logs},
    {"approve", "RUN", "Let a waiting run apply its plan", NULL,
     "dayfly approve net-3\n"
     "dayfly approve -f net-3\n",
     decide_options, 1, 1, df_cmd_approve},
    {"discard", "RUN", "Drop the plan of a waiting run", NULL, "dayfly discard net-3\n",
     decide_options, 1, 1, df_cmd_discard},
    {"cancel", "RUN|taskaction/NAME", "End a run; a tool under way stores its state first", NULL,
     "dayfly cancel net-3 --reason 'wrong region'\n"
     "dayfly cancel taskaction/restart\n",
     cancel_options, 1, 1, df_cmd_cancel},
    {"why", "RUN|taskaction/NAME", "Tell how a run came to its end and what to do next", NULL,
     "dayfly why net-3\n"
     "dayfly why taskaction/restart\n",
     NULL, 1, 1, df_cmd_why},
    {"outputs", "EXECUTOR [NAME]", "Show the outputs of a module", NULL,
     "dayfly outputs net\n"
     "dayfly outputs net vpc_id\n"
     "dayfly outputs net -o json --show-sensitive\n",
     outputs_options, 1, 2, df_cmd_outputs},
    {"state list", "EXECUTOR", "List the kept versions of the state, and who locks it", NULL,
     "dayfly state list net\n", output_options, 1, 1, df_cmd_state_list},
    {"state show", "EXECUTOR", "Print a state as it is stored", "It holds secrets.\n",
     "dayfly state show net --version 3 >net.tfstate\n", show_options, 1, 1, df_cmd_state_show},
    {"state rollback", "EXECUTOR VERSION", "Make an old version the newest again",
     "A new version with the old content is stored; nothing is lost and no resource is touched.\n",
     "dayfly state rollback net 3\n", NULL, 2, 2, df_cmd_state_rollback},
    {"state lock", "EXECUTOR", "Lock the state, so that no run can use it", NULL,
     "dayfly state lock net --reason 'moving it by hand'\n", lock_options, 1, 1, df_cmd_state_lock},
    {"state unlock", "EXECUTOR", "Release the lock, whoever holds it",
     "A lock of a dead runner is released by itself. Use this only when the holder is certainly\n"
     "gone: two writers at once lose resources.\n",
     "dayfly state unlock net\n", NULL, 1, 1, df_cmd_state_unlock},
    {"state errored", "EXECUTOR", "List states that could not be stored in their time", NULL,
     "dayfly state errored net\n", output_options, 1, 1, df_cmd_state_errored},
    {"state push-errored", "EXECUTOR [STEP]", "Store such a state as the newest version", NULL,
     "dayfly state push-errored net\n", NULL, 1, 2, df_cmd_state_push_errored},
    {"secret set", "NAME KEY", "Store a value for use as TF_VAR_<key> or as credentials",
     "The value comes from standard input (without its last newline), from --from-file (byte for\n"
     "byte) or from a prompt that does not show it. It cannot be read back.\n",
     "dayfly secret set db password\n"
     "pass show db | dayfly secret set db password\n"
     "dayfly secret set deploy-key ssh-privatekey --from-file ~/.ssh/deploy\n",
     secret_set_options, 2, ANY, df_cmd_secret_set},
    {"secret list", "", "List secrets and their keys, never values", NULL, "dayfly secret list\n",
     output_options, 0, 0, df_cmd_secret_list},
    {"secret delete", "NAME [KEY]", "Delete a secret or one key of it", NULL,
     "dayfly secret delete db password\n", NULL, 1, 2, df_cmd_secret_delete},
    {"token create", "--name NAME --role ROLE", "Make a bearer token and its line for the service",
     NULL, "dayfly token create --name ci --role write\n", token_options, 0, 0,
     df_cmd_token_create},
    {"version", "", "Show the version", NULL, "dayfly version -o json\n", output_options, 0, 0,
     df_cmd_version},
    {"completion", "bash|zsh|fish", "Print a completion script", NULL,
     "source <(dayfly completion bash)\n"
     "source <(dayfly completion zsh)\n"
     "dayfly completion fish | source\n",
     NULL, 1, 1, df_cmd_completion},
    {"help", "[COMMAND]", "Explain a command", NULL, "dayfly help run\n", NULL, 0, ANY,
     df_cmd_help},
    {0}};
