/* The table of sub-commands, df_commands[] at the end: name, arguments, help text, options and
 * function of each. The options of each command are in tables before it. */
#include "spawner/cli/commands.h"

#define ANY SIZE_MAX
#define FORMATS "json|yaml"

/* Rows that several tables share. */
/* clang-format off */
#define OUTPUT       {"output", 'o', "FORMAT", "json or yaml instead of text", FORMATS}
#define DOCUMENT     {"output", 'o', "FORMAT", "one document on standard output, nothing else", FORMATS}
#define AUTO_APPROVE {"auto-approve", 0, NULL, "apply without asking", NULL}
#define VAR          {"var", 0, "NAME=VALUE", "a variable, repeatable; [..] and {..} are JSON or HCL", NULL}
#define VAR_FILE     {"var-file", 0, "FILE", "variables: .tfvars, .tfvars.json, or one YAML or JSON object", NULL}
#define SECRET_VAR   {"secret-var", 0, "NAME[=@FILE|=-]", "a secret variable: from a prompt, file or standard input", NULL}
#define ENV          {"env", 0, "NAME[=VALUE]", "pass a variable of this shell, repeatable", NULL}
#define NO_ENV       {"no-env", 0, NULL, "pass no variable of this shell", NULL}
#define ARG          {"arg", 0, "ARGUMENT", "argument of the plan: --arg=-concise; repeatable", NULL}
#define NO_WAIT      {"no-wait", 0, NULL, "wait for the plan, not for its approval", NULL}
#define PRIORITY     {"priority", 0, "NUMBER", "-1000 to 1000 (default 0); higher-priority runs start first", NULL}
#define CLASS        {"class", 0, "NAME", "class of the steps: their placement and limit", NULL}
#define CONFIRM      {"confirm-source-change", 0, NULL, "of a provisioned executor: another repository is meant", NULL}
#define DETACH       {"detach", 'd', NULL, "create the run and do not follow it", NULL}
#define FOLLOW       {"follow", 'f', NULL, "follow the run until it has ended", NULL}
#define EXECUTORS    {"executor", 0, "LIST", "executors that may use it: a,b, or '*' for every one", NULL}
#define IN_USE       {"force", 0, NULL, "also if an executor or a run uses it", NULL}
#define SERVICE_TOKENS {"token-file", 0, "FILE", "token file of the service; default: auth.tokenFile", NULL}
/* Options that are passed to the tool's plan. */
#define TOOL_OPTIONS                                                                               \
    {"target", 0, "ADDRESS", "only this resource and its dependencies; repeatable", NULL},      \
    {"exclude", 0, "ADDRESS", "all except this resource (opentofu); repeatable", NULL},           \
    {"replace", 0, "ADDRESS", "recreate this resource; repeatable", NULL},                   \
    {"refresh", 0, "BOOL", "false: do not refresh the state first", "true|false"},        \
    {"refresh-only", 0, NULL, "only accept changes made outside of the tool", NULL},       \
    {"parallelism", 0, "NUMBER", "operations of the tool at once", NULL},                          \
    {"compact-warnings", 0, NULL, "each warning of the tool in one line", NULL}
/* Options of all commands that create a run. */
#define INPUT_OPTIONS VAR, VAR_FILE, SECRET_VAR, ENV, NO_ENV
#define RUN_OPTIONS  INPUT_OPTIONS, ARG, TOOL_OPTIONS, PRIORITY, CLASS, DETACH, DOCUMENT
/* Options that describe the module. */
#define SOURCE_OPTIONS                                                                             \
    {"name", 'n', "NAME", "executor; default: derived from the directory or URL", NULL},       \
    {"branch", 0, "BRANCH", "branch of a git source", NULL},                                              \
    {"tag", 0, "TAG", "tag of a git source", NULL},                                                    \
    {"commit", 0, "COMMIT", "commit of a git source", NULL},                                              \
    {"folder", 0, "DIR", "folder of the module in the source", NULL},                                 \
    {"sha256", 0, "HEX", "SHA-256 of an archive", NULL},                                                   \
    {"submodules", 0, NULL, "of a git source: its submodules, too", NULL},                           \
    {"tool", 0, "TOOL", "opentofu, terraform or platform; default: what is installed", "opentofu|terraform|platform"}, \
    {"storage", 0, "TYPE", "where the state is: managed (default) or module, its own backend", "managed|module"}, \
    {"tool-version", 0, "VERSION", "1.12.6 or a constraint: '~> 1.9'", NULL}
/* clang-format on */

static const struct df_option run_options[] = {
    {"action", 'a', "ACTION", "default provision", "provision|dry-run|destroy|validate"},
    AUTO_APPROVE,
    {"keep", 0, NULL, "the variables stay with the executor", NULL},
    NO_WAIT,
    RUN_OPTIONS,
    SOURCE_OPTIONS,
    {0}};

static const struct df_option plan_options[] = {
    {"lock", 0, NULL, "no effect, true or false: a plan takes no lock", NULL},
    {"detailed-exitcode", 0, NULL, "0: no changes, 2: changes, 1: failed", NULL},
    RUN_OPTIONS,
    SOURCE_OPTIONS,
    {0}};

static const struct df_option destroy_options[] = {
    AUTO_APPROVE, NO_WAIT, RUN_OPTIONS, SOURCE_OPTIONS, {0}};

static const struct df_option recreate_options[] = {AUTO_APPROVE, NO_WAIT, RUN_OPTIONS, {0}};

static const struct df_option serve_options[] = {
    {"listen", 0, "ADDRESS", "default 127.0.0.1:8030", NULL},
    {"set", 0, "KEY=VALUE", "any other key of the configuration; repeatable", NULL},
    {0}};

static const struct df_option gc_options[] = {
    {"dry-run", 0, NULL, "remove nothing, and list what would be removed", NULL},
    {"orphans", 0, NULL, "remove blobs that belong to nothing, too", NULL},
    OUTPUT,
    {0}};

static const struct df_option backup_options[] = {
    {"without-key", 0, NULL, "leave out the key, which opens everything", NULL},
    {"verify", 0, NULL, "make none: check FILE, which is a backup", NULL},
    {0}};

static const struct df_option mirror_options[] = {
    {"platform", 0, "OS_ARCH", "linux_amd64, linux_arm64, ...; repeatable; default: this machine's",
     NULL},
    {"tool", 0, "TOOL", "what downloads; default: what is installed, OpenTofu first",
     "opentofu|terraform"},
    {0}};

static const struct df_option doctor_options[] = {
    {"set", 0, "KEY=VALUE", "any key of the configuration; repeatable", NULL},
    {"service-account", 0, "NAME", "account whose rights are checked; default: yours", NULL},
    {"no-probe", 0, NULL, "start no pod", NULL},
    {"only", 0, "CHECK", "make this check alone; docs/doctor.md lists them", NULL},
    DOCUMENT,
    {0}};

static const struct df_option file_options[] = {
    {"filename", 'f', "FILE", "YAML or JSON, several documents with ---; - is standard input",
     NULL},
    OUTPUT,
    {0}};

static const struct df_option delete_options[] = {
    {"forget", 0, NULL, "leave the resources as they are; their state goes into a file", NULL},
    {"state-file", 0, "FILE", "that file; default: EXECUTOR.tfstate", NULL},
    {0}};

static const struct df_option errored_options[] = {
    {"state-file", 0, "FILE", "where it is written; default: EXECUTOR.errored.tfstate", NULL}, {0}};

static const struct df_option abandon_options[] = {
    {"state-file", 0, "FILE", "where its state is written; default: EXECUTOR.tfstate", NULL}, {0}};

static const struct df_option apply_options[] = {
    {"filename", 'f', "FILE", "YAML or JSON, several documents with ---; - is standard input",
     NULL},
    OUTPUT,
    CONFIRM,
    {0}};
static const struct df_option edit_options[] = {
    {"revision", 0, "NUMBER", "of an executor: give it the spec of this revision again", NULL},
    CONFIRM,
    {0}};

static const struct df_option access_options[] = {
    {"of", 0, "WHO", "only what this user, group, service account or token has", NULL},
    OUTPUT,
    {0}};

static const struct df_option get_options[] = {
    {"output", 'o', "FORMAT", "json, yaml, jsonl, csv, wide or name",
     "json|yaml|jsonl|csv|wide|name"},
    {"executor", 0, "EXECUTOR", "only runs or revisions of this executor", NULL},
    {"selector", 'l', "LABELS", "only what has these labels: k=v,k2!=v,k3", NULL},
    {"state", 0, "STATE", "only these states or phases, separated by commas", NULL},
    {"creator", 0, "WHO", "only executors that this one made, or runs that it asked for", NULL},
    {"namespace", 'n', "NAMESPACE", "only this metadata.namespace", NULL},
    {"sort-by", 0, "COLUMN", "a column's title, or a path like .metadata.name", NULL},
    {"limit", 0, "NUMBER", "at most so many of each kind", NULL},
    {"watch", 'w', NULL, "show changes until Ctrl-C", NULL},
    {"actor", 0, "NAME", "of the audit trail: what this one did", NULL},
    {"action", 0, "WORD", "of the audit trail: this action: create, approve, login, ...", NULL},
    {"kind", 0, "KIND", "of the audit trail: on things of this kind: Executor, Run, Secret, ...",
     NULL},
    {"name", 0, "NAME", "of the audit trail: on the thing of this name", NULL},
    {"outcome", 0, "WORD", "of the audit trail: with this outcome", "done|refused|failed|canceled"},
    {"since", 0, "TIME", "of the audit trail: at this time or later: RFC 3339, or 24h (ago)", NULL},
    {"until", 0, "TIME", "of the audit trail: before this time", NULL},
    {0}};

static const struct df_option audit_verify_options[] = {
    {"key", 0, "FILE", "of a file: look at the signatures with this key of the service", NULL},
    OUTPUT,
    {0}};

static const struct df_option logs_options[] = {
    {"follow", 'f', NULL, "continue until the run has ended", NULL},
    {"step", 0, "STEP", "only plan, apply or state", "plan|apply|state"},
    {"events", 0, NULL, "the tool's own JSON events instead of text", NULL},
    {0}};

static const struct df_option decide_options[] = {
    {"reason", 0, "TEXT", "kept with the run", NULL},
    {"follow", 'f', NULL, "follow the run until it has ended", NULL},
    {0}};

static const struct df_option cancel_options[] = {
    {"reason", 0, "TEXT", "kept with the run", NULL}, FOLLOW, {0}};

static const struct df_option outputs_options[] = {
    OUTPUT,
    {"run", 0, "RUN", "as they were when this run ended", NULL},
    {"show-sensitive", 0, NULL, "print sensitive values as well", NULL},
    {0}};

static const struct df_option show_options[] = {
    {"version", 0, "NUMBER", "version in `state list`; default: the newest", NULL}, {0}};
static const struct df_option pull_options[] = {
    {"file", 0, "FILE", "write to a new file that only you can read", NULL}, {0}};
static const struct df_option push_options[] = {
    {"replace", 0, NULL, "also over a state that holds resources, which stays as a version", NULL},
    {"name", 'n', "NAME", "executor; default: derived from the directory", NULL},
    {"branch", 0, "BRANCH", "branch of a git source", NULL},
    {"tag", 0, "TAG", "tag of a git source", NULL},
    {"commit", 0, "COMMIT", "commit of a git source", NULL},
    {"folder", 0, "DIR", "folder of the module in the source", NULL},
    {"sha256", 0, "HEX", "SHA-256 of an archive", NULL},
    {"submodules", 0, NULL, "of a git source: its submodules, too", NULL},
    {"tool", 0, "TOOL", "opentofu or terraform", "opentofu|terraform"},
    {"tool-version", 0, "VERSION", "1.12.6 or a constraint: '~> 1.9'", NULL},
    OUTPUT,
    {0}};
static const struct df_option change_options[] = {
    {"dry-run", 0, NULL, "show what would change, and change nothing", NULL},
    INPUT_OPTIONS,
    DETACH,
    DOCUMENT,
    {0}};
static const struct df_option migrate_options[] = {
    {"to", 0, "TYPE", "the new storage", "managed|s3|azurerm|gcs|local"},
    {"path", 0, "PATH", "its key, prefix or file; default as for a new executor", NULL},
    {"setting", 0, "KEY=VALUE", "a setting of its backend, repeatable; [..] and {..} are JSON",
     NULL},
    {"filename", 'f', "FILE", "the storage as YAML or JSON: what spec.storage has", NULL},
    {"back", 0, NULL, "to the storage that the last move left", NULL},
    {"confirm", 0, NULL, "forget that storage; nothing is removed there", NULL},
    INPUT_OPTIONS,
    DETACH,
    DOCUMENT,
    {0}};
static const struct df_option import_options[] = {INPUT_OPTIONS, DETACH, DOCUMENT, {0}};
static const struct df_option push_errored_options[] = {INPUT_OPTIONS, {0}};
static const struct df_option lock_options[] = {
    {"reason", 0, "TEXT", "shown to everybody who finds the lock", NULL}, {0}};
static const struct df_option secret_set_options[] = {
    {"from-file", 0, "FILE", "the value, byte for byte; - is standard input", NULL},
    EXECUTORS,
    IN_USE,
    {0}};
static const struct df_option secret_allow_options[] = {EXECUTORS, IN_USE, {0}};
static const struct df_option secret_delete_options[] = {IN_USE, {0}};
#define OF                                                                                         \
    {                                                                                              \
        "of", 0, "WHO", "of this person, as the audit trail names them; for admins", NULL          \
    }
static const struct df_option token_options[] = {
    {"preset", 0, "PRESET", "its verbs", "read|plan|write|approver|admin"},
    {"verbs", 0, "LIST", "its verbs, one by one: view,plan", NULL},
    {"executor", 0, "LIST", "only on these executors: a,b", NULL},
    {"selector", 'l', "LABELS", "only on executors that have all these labels: k=v,k2=v2", NULL},
    {"expires", 0, "TIME", "12h, 30d (default), at most 90d", NULL},
    OUTPUT,
    {0}};
static const struct df_option token_list_options[] = {OF, OUTPUT, {0}};
static const struct df_option token_revoke_options[] = {
    OF, {"all", 0, NULL, "all of them", NULL}, {0}};
static const struct df_option token_file_options[] = {
    {"name", 0, "NAME", "name of the holder, for the audit trail", NULL},
    {"role", 0, "ROLE", "read, write or admin", "read|write|admin"},
    {"token-file", 0, "FILE", "add the line to this token file of the service", NULL},
    OUTPUT,
    {0}};
static const struct df_option token_file_list_options[] = {SERVICE_TOKENS, OUTPUT, {0}};
static const struct df_option token_file_revoke_options[] = {SERVICE_TOKENS, {0}};
static const struct df_option login_options[] = {
    {"issuer", 0, "URL", "OpenID provider; default: the service names it", NULL},
    {"client-id", 0, "ID", "client that the tokens are for; default: the service names it", NULL},
    {"scope", 0, "SCOPES", "what to ask the provider for, separated by blanks", NULL},
    {"issuer-ca-file", 0, "FILE", "PEM certificates to trust for the provider", NULL},
    {0}};
static const struct df_option output_options[] = {OUTPUT, {0}};

static const struct df_option help_options[] = {
    {"man", 0, "DIR", "write the manual pages into this directory", NULL}, {0}};

const struct df_command df_commands[] = {
    {"run", "DIR|FILE|URL|EXECUTOR [options]", "Plan a module, ask, apply: one run to its end",
     "Creates an executor for a directory, an archive or a git repository, and keeps its state\n"
     "under the executor's name. Without a service this process is the service during the run.\n"
     "On a terminal it shows the plan and asks for 'yes'; elsewhere it applies only with\n"
     "--auto-approve. Ctrl-C cancels the run and waits until its state is stored.\n"
     "Do not put secrets into --var: see dayfly secret set.\n",
     "dayfly run examples/hello\n"
     "dayfly run examples/hello --var guests=5 --target terraform_data.greeting\n"
     "dayfly run https://git.example/infra.git --branch main --folder net --action dry-run\n"
     "dayfly run net --auto-approve --var region=eu -o json\n"
     "dayfly run net --auto-approve --class large --priority 10 --detach\n",
     run_options, 1, 1, df_cmd_run},
    {"plan", "DIR|FILE|URL|EXECUTOR [options]", "Show what a run would change, and change nothing",
     "A run with the action dry-run. With --detailed-exitcode it ends with 0 when nothing would\n"
     "change, 2 when something would, and 1 when the plan failed.\n",
     "dayfly plan examples/hello\n"
     "dayfly plan net --detailed-exitcode --target module.vpc\n",
     plan_options, 1, 1, df_cmd_plan},
    {"destroy", "DIR|FILE|URL|EXECUTOR [options]", "Destroy the resources of a module",
     "A run with the action destroy. On a terminal the plan is shown and 'yes' asked for.\n",
     "dayfly destroy examples/hello\n"
     "dayfly destroy net --auto-approve\n",
     destroy_options, 1, 1, df_cmd_destroy},
    {"serve", "[options]", "Run the service in the foreground", NULL,
     "dayfly serve\n"
     "dayfly serve --listen 127.0.0.1:8030 --data-directory /var/lib/dayfly\n"
     "dayfly serve --config /etc/dayfly.yaml --set limits.steps=16\n",
     serve_options, 0, 0, df_cmd_serve},
    {"storage usage", "[EXECUTOR]", "Show how much states, plans, logs and the rest take",
     "Counts and sizes, in all and of each executor, and of what belongs to nothing any more.\n",
     "dayfly storage usage\n"
     "dayfly storage usage net -o json\n",
     output_options, 0, 1, df_cmd_storage_usage},
    {"audit verify", "[FILE]", "Check the chain of the audit trail, and name the first broken link",
     "Of the service, or of a file of `dayfly get audit -o jsonl` without filters; - is standard\n"
     "input. Ends with 1 if an entry was changed, removed or inserted, or the file is cut.\n",
     "dayfly audit verify\n"
     "dayfly get audit -o jsonl > trail.jsonl && dayfly audit verify trail.jsonl\n"
     "dayfly audit verify trail.jsonl --key /var/lib/dayfly/key\n",
     audit_verify_options, 0, 1, df_cmd_audit_verify},
    {"gc", "", "Remove what is beyond the service's retention, and list orphans",
     "Ended runs and workflows, old versions of states, plans of ended runs, and logs and audit\n"
     "entries by age; the service does it every hour. The newest of each executor always stay.\n"
     "Orphans are blobs that belong to nothing here. They are listed, and removed with --orphans\n"
     "when they are a day old; a state never is. Needs the role admin.\n",
     "dayfly gc --dry-run\n"
     "dayfly gc --orphans\n"
     "dayfly gc -o json\n",
     gc_options, 0, 0, df_cmd_gc},
    {"backup", "FILE", "Write everything of the service into one file, while it works",
     "Documents, secrets, states, plans, logs and the key of a service with a data directory, as\n"
     "of one moment; the file is checked when it is complete. With the key it opens everything.\n"
     "Blobs in a bucket are not in it. Needs the role admin.\n",
     "dayfly backup dayfly-$(date +%F).tar\n"
     "dayfly backup /mnt/offsite/dayfly.tar --without-key\n"
     "dayfly backup --verify dayfly-2026-11-24.tar\n",
     backup_options, 1, 1, df_cmd_backup},
    {"restore", "FILE", "Make a data directory of a backup",
     "The directory must be empty, and the file is checked before anything is written. Runs that\n"
     "were under way in the backup are canceled.\n",
     "dayfly restore dayfly-2026-11-24.tar\n"
     "dayfly restore dayfly-2026-11-24.tar --data-directory /var/lib/dayfly\n",
     NULL, 1, 1, df_cmd_restore},
    {"mirror", "DIRECTORY [MODULE...]", "Download the providers of modules into a mirror",
     "The packages that the lock files (.terraform.lock.hcl) of the modules name, for each "
     "platform,\n"
     "are downloaded with `providers mirror` of the tool, which verifies their signatures, and\n"
     "compared with the checksums of the lock file. A module without a lock file gets the newest\n"
     "versions that it allows. What is there and correct is not downloaded again: an interrupted\n"
     "mirror is continued. tofu and terraform read DIRECTORY as a filesystem mirror\n"
     "(providers.filesystemMirror) or, behind any web server, as a network mirror; a service is "
     "one\n"
     "for its pods with providers.mirror.directory. Default MODULE: the current directory. Exit "
     "code\n"
     "1 if a package failed; the others are there.\n",
     "dayfly mirror /srv/providers ./net ./db\n"
     "dayfly mirror providers --platform linux_amd64 --platform linux_arm64\n",
     mirror_options, 1, ANY, df_cmd_mirror},
    {"doctor", "[DIR]", "Find what is wrong with an installation",
     "Checks this machine and the cluster with the service's configuration. One pod of the\n"
     "runner's image reports what a step would find. Exit code 1 if a check FAILs. With DIR it "
     "looks\n"
     "at what a run of that module needs, too.\n",
     "dayfly doctor ./net\n"
     "dayfly doctor --config /etc/dayfly.yaml\n"
     "dayfly doctor --config /etc/dayfly.yaml --service-account dayfly-spawner\n"
     "kubectl exec deploy/dayfly -- dayfly doctor -o json\n",
     doctor_options, 0, 1, df_cmd_doctor},
    {"create", "-f FILE",
     "Create executors and integrations, or ask for runs and workflows, from documents", NULL,
     "dayfly create -f executor.yaml\n"
     "cat net.yaml db.yaml | dayfly create -f -\n",
     file_options, 0, 0, df_cmd_create},
    {"apply", "-f FILE", "Create or change executors and integrations from documents", NULL,
     "dayfly apply -f executor.yaml\n", apply_options, 0, 0, df_cmd_apply},
    {"set", "EXECUTOR var NAME=VALUE... | SETTING=VALUE...",
     "Change variables, the tool, the branch or the storage of an executor",
     "NAME- takes a variable away. Settings are tool, tool-version, branch, tag, commit, "
     "submodules\n"
     "(true or false) and storage (managed or module; not while it holds resources). A value that\n"
     "begins with [ or { is JSON. The next run uses what is set; a run under way does not.\n",
     "dayfly set net var region=eu 'zones=[\"a\",\"b\"]'\n"
     "dayfly set net var region-\n"
     "dayfly set net tool=terraform tool-version='~> 1.9'\n"
     "dayfly set net branch=main\n",
     NULL, 2, ANY, df_cmd_set},
    {"delete", "EXECUTOR|taskaction/NAME|integration/NAME...",
     "Delete executors whose resources are gone, workflows and integrations",
     "An executor whose state holds resources is not deleted. With --forget it is: its resources\n"
     "stay, and its state is first written to a new file (NAME.tfstate here, or --state-file).\n"
     "A kind may be the first word, for all names behind it.\n",
     "dayfly delete net\n"
     "dayfly delete executor net db\n"
     "dayfly delete net --forget --state-file /safe/net.tfstate\n"
     "dayfly delete taskaction/restart\n"
     "dayfly delete integration/aws-prod\n",
     delete_options, 1, ANY, df_cmd_delete},
    {"abandon", "EXECUTOR", "Delete an executor in use, and leave its resources as they are",
     "Cancels its runs and waits for their end, writes its state to a new file (NAME.tfstate "
     "here,\n"
     "or --state-file), and deletes the executor, also if its state is locked or cannot be read.\n"
     "Nothing is destroyed. Needs the role admin.\n",
     "dayfly abandon net\n"
     "dayfly abandon net --state-file /safe/net.tfstate\n",
     abandon_options, 1, 1, df_cmd_abandon},
    {"recreate", "EXECUTOR [options]", "Provision an executor again that was destroyed", NULL,
     "dayfly recreate net\n", recreate_options, 1, 1, df_cmd_recreate},
    {"get", "KIND|KIND/NAME|NAME [NAME...]", "List things, or show some of them",
     "Kinds are executors, runs, taskactions, integrations, revisions, secrets, audit and "
     "engines;\n"
     "`all` is the first three. A name without a kind is an executor or a run. `get revisions "
     "net`\n"
     "lists those of the executor net.\n",
     "dayfly get runs\n"
     "dayfly get runs --executor net --state Failed --limit 5\n"
     "dayfly get executors -l team=net,stage!=dev --sort-by age\n"
     "dayfly get executor net db -o yaml\n"
     "dayfly get executor/net run/net-3\n"
     "dayfly get revisions net\n"
     "dayfly get runs -w\n"
     "dayfly get audit --actor ann --since 24h -o csv\n",
     get_options, 1, ANY, df_cmd_get},
    {"describe", "KIND|KIND/NAME|NAME [NAME...]", "Show things in full, for people", NULL,
     "dayfly describe executor net\n"
     "dayfly describe run/net-3\n",
     NULL, 1, ANY, df_cmd_describe},
    {"edit", "EXECUTOR|integration/NAME|executor [NAME]",
     "Change an executor or an integration in your editor",
     "The editor is $VISUAL, else $EDITOR, else vi. A document that is refused is opened again "
     "with\n"
     "the error above it. An unchanged one changes nothing. With --revision no editor opens: the\n"
     "executor gets the spec of that revision, as its next one, if an edit to it were allowed.\n",
     "dayfly edit executor net\n"
     "dayfly edit executor net --revision 3\n"
     "dayfly edit integration aws-prod\n"
     "EDITOR='code --wait' dayfly edit net\n",
     edit_options, 1, 2, df_cmd_edit},
    {"diff", "EXECUTOR [NUMBER [NUMBER]]", "Show what differs between two revisions of an executor",
     "Without a number: the last change; with one: what has changed since that revision. Values\n"
     "of environment variables are not shown. What a run would change shows `dayfly plan`.\n",
     "dayfly diff net\n"
     "dayfly diff net 1 2\n"
     "dayfly diff net 3 -o json\n",
     output_options, 1, 3, df_cmd_diff},
    {"logs", "RUN|EXECUTOR|taskaction/NAME",
     "Show the log of a run, of an executor's latest run, or of a step or workflow", NULL,
     "dayfly logs net-3\n"
     "dayfly logs executor/net\n"
     "dayfly logs -f taskaction/restart\n"
     "dayfly logs -f net-3\n"
     "dayfly logs net-3 --step apply --events\n",
     logs_options, 1, 1, df_cmd_logs},
    {"approve", "RUN", "Approve the plan of a waiting run", NULL,
     "dayfly approve net-3\n"
     "dayfly approve -f net-3\n"
     "dayfly approve net-3 --reason 'CHG-1234'\n",
     decide_options, 1, 1, df_cmd_approve},
    {"discard", "RUN", "Discard the plan of a waiting run", NULL, "dayfly discard net-3\n",
     decide_options, 1, 1, df_cmd_discard},
    {"cancel", "RUN|taskaction/NAME", "Cancel a run; a running tool stores its state first", NULL,
     "dayfly cancel net-3 --reason 'wrong region'\n"
     "dayfly cancel taskaction/restart\n",
     cancel_options, 1, 1, df_cmd_cancel},
    {"why", "RUN|EXECUTOR|taskaction/NAME", "Explain how a run ended and what to do next", NULL,
     "dayfly why net-3\n"
     "dayfly why taskaction/restart\n",
     NULL, 1, 1, df_cmd_why},
    {"outputs", "EXECUTOR [NAME]", "Show the outputs of a module", NULL,
     "dayfly outputs net\n"
     "dayfly outputs net vpc_id\n"
     "dayfly outputs net -o json --show-sensitive\n",
     outputs_options, 1, 2, df_cmd_outputs},
    {"state list", "EXECUTOR", "List the versions of the state and the holder of its lock",
     "The versions of a state in a bucket (s3, gcs) are listed by a run, with the credentials of "
     "the\n"
     "executor: newest first, in its log. That needs the role admin.\n",
     "dayfly state list net\n", import_options, 1, 1, df_cmd_state_list},
    {"state show", "EXECUTOR", "Print a state as it is stored", "It contains secrets.\n",
     "dayfly state show net --version 3 >net.tfstate\n", show_options, 1, 1, df_cmd_state_show},
    {"state push", "EXECUTOR|DIR|URL FILE", "Store a state that was created elsewhere",
     "FILE is what `tofu state pull` prints or a terraform.tfstate; - is standard input. A state\n"
     "that holds resources is not replaced without --replace. Nothing is planned or changed: a\n"
     "dry run afterwards shows whether configuration and state belong together.\n",
     "dayfly state push ./net terraform.tfstate\n"
     "tofu state pull | dayfly state push net -\n",
     push_options, 2, 2, df_cmd_state_push},
    {"state pull", "EXECUTOR", "Print the newest state, or write it to a file",
     "It contains secrets.\n", "dayfly state pull net --file terraform.tfstate\n", pull_options, 1,
     1, df_cmd_state_pull},
    {"state mv", "EXECUTOR SRC DST", "Move an address in the state, in a run of its own",
     "As `tofu state mv`, under the lock, with a log; what the state was stays as a version.\n"
     "Needs the role admin. So do `state rm` and `state import`.\n",
     "dayfly state mv net aws_instance.web 'aws_instance.web[0]'\n", change_options, 3, 3,
     df_cmd_state_mv},
    {"state rm", "EXECUTOR ADDRESS...", "Forget resources; they are not destroyed",
     "As `tofu state rm`, in a run of its own.\n", "dayfly state rm net aws_instance.old\n",
     change_options, 2, ANY, df_cmd_state_rm},
    {"state import", "EXECUTOR ADDRESS ID", "Take an object that exists into the state",
     "As `tofu import`, in a run of its own, with the executor's configuration, variables and\n"
     "credentials.\n",
     "dayfly state import net aws_instance.web i-0123456789\n", import_options, 3, 3,
     df_cmd_state_import},
    {"state exec", "EXECUTOR -- COMMAND...", "Run a command with TF_HTTP_* of the state set",
     "For tofu in a directory with `terraform { backend \"http\" {} }`: its state is the\n"
     "executor's, under the same lock. Without a service this process is one until COMMAND ends.\n"
     "The exit code is that of COMMAND.\n",
     "dayfly state exec net -- tofu init\n"
     "dayfly state exec net -- tofu state list\n",
     NULL, 2, ANY, df_cmd_state_exec},
    {"state migrate", "EXECUTOR --to TYPE | -f FILE | --back | --confirm",
     "Move the state to another storage",
     "In a run of its own, with the credentials of the executor and, without a service, those of\n"
     "this shell, as `dayfly run`: the state is copied, read back and compared, and only then the\n"
     "executor names the new storage. The old place keeps its copy until --confirm; --back moves\n"
     "the state there again. A migration that was killed can be repeated. A new place with "
     "another\n"
     "state is refused. Needs the role admin.\n",
     "dayfly state migrate net --to s3 --setting bucket=states --setting region=eu-west-1\n"
     "dayfly state migrate net --confirm\n"
     "dayfly state migrate net --to managed\n"
     "dayfly state migrate net --back\n",
     migrate_options, 1, 1, df_cmd_state_migrate},
    {"state rollback", "EXECUTOR VERSION", "Make an old version the newest again",
     "Stores a new version with the old content. No version is lost and no resource is changed.\n"
     "VERSION is one of `state list`. A state in a bucket is rolled back by a run, with the\n"
     "tool's own `state push` under the lock. Needs the role admin.\n",
     "dayfly state rollback net 3\n"
     "dayfly state rollback net 3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY\n",
     import_options, 2, 2, df_cmd_state_rollback},
    {"state lock", "EXECUTOR", "Lock the state, so that no run can use it", NULL,
     "dayfly state lock net --reason 'moving it by hand'\n", lock_options, 1, 1, df_cmd_state_lock},
    {"state unlock", "EXECUTOR [ID]", "Release the lock, whoever holds it",
     "The lock of a dead runner is released automatically. Use this only when you are sure that\n"
     "the holder is gone: two writers at once lose resources. A state in another storage is\n"
     "unlocked by the tool's own force-unlock in a run; without ID it is the lock that the\n"
     "executor's latest run with StateLocked found. Needs the role admin.\n",
     "dayfly state unlock net\n"
     "dayfly state unlock net 11111111-2222-3333-4444-555555555555\n",
     import_options, 1, 2, df_cmd_state_unlock},
    {"state errored", "EXECUTOR", "List states that could not be uploaded in time", NULL,
     "dayfly state errored net\n", output_options, 1, 1, df_cmd_state_errored},
    {"state push-errored", "EXECUTOR [STEP]", "Store such a state as the newest version",
     "As long as an errored state is kept, runs of the executor are refused. Needs the role "
     "admin.\n",
     "dayfly state push-errored net\n", push_errored_options, 1, 2, df_cmd_state_push_errored},
    {"state discard-errored", "EXECUTOR [STEP]", "Remove such a state, which nobody needs",
     "It is first written to a new file (EXECUTOR.errored.tfstate here, or --state-file). Runs "
     "are\n"
     "no longer refused, and know nothing of what it alone names: they may make that once more.\n"
     "Needs the role admin.\n",
     "dayfly state discard-errored net\n"
     "dayfly state discard-errored net --state-file /safe/net.tfstate\n",
     errored_options, 1, 2, df_cmd_state_discard_errored},
    {"secret set", "SECRET KEY", "Store a value for use as TF_VAR_<key> or as credentials",
     "The value comes from standard input (without its last newline), from --from-file (byte for\n"
     "byte) or from a prompt that does not show it. It cannot be read back.\n"
     "--executor names the executors that may use a new secret; without it a secret of an admin\n"
     "is for every executor. A value that is in use is replaced with --force alone.\n",
     "dayfly secret set db password\n"
     "dayfly secret set aws aws_access_key_id --executor net-test,net-prod\n"
     "pass show db | dayfly secret set db password\n"
     "dayfly secret set deploy-key ssh-privatekey --from-file ~/.ssh/deploy\n",
     secret_set_options, 2, ANY, df_cmd_secret_set},
    {"secret list", "", "List secrets and their keys, never values", NULL, "dayfly secret list\n",
     output_options, 0, 0, df_cmd_secret_list},
    {"secret allow", "SECRET --executor LIST", "Say which executors may use a secret",
     "The list replaces the earlier one. The owner of the secret and admins may change it; only\n"
     "an admin may allow every executor.\n",
     "dayfly secret allow aws --executor net-test,net-prod\n"
     "dayfly secret allow aws --executor '*'\n",
     secret_allow_options, 1, 1, df_cmd_secret_allow},
    {"secret delete", "SECRET [KEY]", "Delete a secret or one key of it", NULL,
     "dayfly secret delete db password\n", secret_delete_options, 1, 2, df_cmd_secret_delete},
    {"integration test", "INTEGRATION",
     "Ask a provider whether it takes an integration's credentials",
     "For AWS, calls sts:GetCallerIdentity with the keys that a step would get, and assumes the\n"
     "role before, if there is one. For Azure, asks for a token with the client secret. For "
     "others,\n"
     "checks keys, settings and the token's file, and says that the provider was not asked. For "
     "the\n"
     "owner of the integration and admins.\n",
     "dayfly integration test aws-prod\n", output_options, 1, 1, df_cmd_integration_test},
    {"token create", "NAME --preset PRESET|--verbs LIST", "Make a personal token for a program",
     "What the token may is what these options and your own rights of that moment both allow.\n"
     "Without --executor and --selector it is for every executor. It is shown once, and ends by\n"
     "itself. A pipe gets it alone: dayfly token create ci --preset read | dayfly secret set ...\n",
     "dayfly token create ci --preset read --expires 90d\n"
     "dayfly token create ci --verbs view,plan --executor net,dns\n"
     "dayfly token create ci --preset plan -l team=net\n",
     token_options, 1, 1, df_cmd_token_create},
    {"token list", "", "List your personal tokens", "Another person's with --of, for admins.\n",
     "dayfly token list\n", token_list_options, 0, 0, df_cmd_token_list},
    {"token revoke", "NAME|--all", "End a personal token", "It is refused from then on.\n",
     "dayfly token revoke ci\n"
     "dayfly token revoke --all --of alice@example.com\n",
     token_revoke_options, 0, 1, df_cmd_token_revoke},
    {"token-file create", "--name NAME --role ROLE",
     "Make a bearer token and its line for the service",
     "With --token-file the line is added to that file, in one piece; a new file gets mode 0600.\n",
     "dayfly token-file create --name ci --role write\n"
     "dayfly token-file create --name ci --role write --token-file /etc/dayfly/tokens\n",
     token_file_options, 0, 0, df_cmd_token_file_create},
    {"token-file list", "", "List the holders in the service's token file, and their roles", NULL,
     "dayfly token-file list --config /etc/dayfly.yaml\n"
     "dayfly token-file list --token-file /etc/dayfly/tokens\n",
     token_file_list_options, 0, 0, df_cmd_token_file_list},
    {"token-file revoke", "NAME", "Take a token out of the service's token file",
     "The file is replaced in one piece and keeps its comments, owner and permissions. A service\n"
     "that runs reads it again before its next request: the token is invalid from then on.\n",
     "dayfly token-file revoke ci --token-file /etc/dayfly/tokens\n", token_file_revoke_options, 1,
     1, df_cmd_token_file_revoke},
    {"login", "[--server URL]", "Sign in at the OpenID provider of a service",
     "The service names its provider (auth.oidc). The provider's page asks for the code that is\n"
     "shown here, on this machine or any other one, and then for a name and a password. The "
     "tokens\n"
     "are kept in $XDG_CONFIG_HOME/dayfly/logins.json, which only you can read, are sent to this\n"
     "service alone, and are renewed when they expire. Commands use them unless there is a\n"
     "--token-file or DAYFLY_TOKEN.\n",
     "dayfly login --server https://dayfly.example.com\n"
     "dayfly login --issuer https://login.example.com/realms/infra --client-id dayfly\n",
     login_options, 0, 0, df_cmd_login},
    {"logout", "[--server URL]", "Forget the tokens of `dayfly login`",
     "The refresh token is revoked where the provider can do that. An ID token cannot be revoked:\n"
     "a copy of it is good until it expires.\n",
     "dayfly logout --server https://dayfly.example.com\n", NULL, 0, 0, df_cmd_logout},
    {"whoami", "", "Show as whom the service sees you, your role and your groups", NULL,
     "dayfly whoami\n"
     "dayfly whoami -o json\n",
     output_options, 0, 0, df_cmd_whoami},
    {"access", "[EXECUTOR]", "Show who may do what with an executor, and what somebody may",
     "A line for each grant of auth.grants that applies, for the role of each token and service\n"
     "account, and for who made it. It needs the verb grant on the executor. With --of: on what a\n"
     "user, group, service account (namespace/name) or token has which verbs; for that of all\n"
     "executors the role admin. With neither it is `dayfly whoami`.\n",
     "dayfly access net\n"
     "dayfly access net -o json\n"
     "dayfly access --of net-team\n"
     "dayfly access net --of ci/deployer\n",
     access_options, 0, 1, df_cmd_access},
    {"version", "", "Show the version", NULL, "dayfly version -o json\n", output_options, 0, 0,
     df_cmd_version},
    {"completion", "bash|zsh|fish", "Print a completion script", NULL,
     "source <(dayfly completion bash)\n"
     "source <(dayfly completion zsh)\n"
     "dayfly completion fish | source\n",
     NULL, 1, 1, df_cmd_completion},
    {"help", "[COMMAND]", "Explain a command", NULL,
     "dayfly help run\n"
     "dayfly help --man /usr/local/share/man/man1\n",
     help_options, 0, ANY, df_cmd_help},
    {0}};
