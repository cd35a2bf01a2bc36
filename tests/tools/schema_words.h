/*
 * schema_words.h - what the tables of the model do not say: texts for `kubectl explain` and
 * openapi.yaml, columns of `kubectl get`, and the rules of the model in the words of the API
 * server.
 */
#ifndef DF_SCHEMA_WORDS_H
#define DF_SCHEMA_WORDS_H

#include "spawner/model/apply_window.h"
#include "spawner/model/placement_rules.h"
#include "spawner/model/rules.h"

/* ---- rules ---- */

#define LABEL "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define QUALIFIED "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
#define VERSION "[0-9]+(\\.[0-9]+(\\.[0-9]+)?)?([-+][A-Za-z0-9.+-]+)?"
#define CONSTRAINT " *(>=|<=|!=|~>|=|>|<)? *" VERSION " *"
#define DIGITS "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)"

/* A rule of the model, as a pattern of a string or as CEL. What is not here the spawner alone
 * refuses, when it takes the resource in. */
struct words {
    df_rule *rule;
    const char *pattern; /* or NULL */
    const char *cel;     /* or NULL */
    const char *message; /* of the CEL rule */
};

#define EXACTLY_ONE(names) "[" names "].filter(x, x).size() == 1"

/* The kind of a source, as the model derives it. */
#define ARCHIVE_NAME                                                                               \
    "self.url.matches('(?i)^[^?#]+[.](tar[.]gz|tgz|tar[.]zst|tar|zip)/?([?#].*)?$')"
#define GIT_NAME                                                                                   \
    "(!self.url.startsWith('file:') || self.url.matches('(?i)^[^?#]+[.]git/?([?#].*)?$'))"
#define HAS_REF "(has(self.tag) || has(self.branch) || has(self.commit))"
#define IS_ARCHIVE "(has(self.kind) ? self.kind == 'archive' : " ARCHIVE_NAME ")"
#define IS_GIT                                                                                     \
    "(has(self.kind) ? self.kind == 'git' : !" ARCHIVE_NAME " && (" GIT_NAME " || " HAS_REF "))"
#define IS_KNOWN "(has(self.kind) || " ARCHIVE_NAME " || " GIT_NAME " || " HAS_REF ")"

#define USER "[A-Za-z0-9._][A-Za-z0-9._-]*"
#define HOST "([A-Za-z0-9][A-Za-z0-9.-]*|\\\\[[0-9A-Fa-f:.]+\\\\])"
#define PORT                                                                                       \
    "(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
#define REF(name)                                                                                  \
    "!" name                                                                                       \
    ".matches('[ ~^:?*\\\\[\\\\\\\\]|^[-./]|^refs/|[.][.]|@[{]|//|/[.]|^@$|[/.]$|[.]lock$|"        \
    "[.]lock/')"
#define KEY "^(" QUALIFIED "/)?" QUALIFIED "$"
#define NOT_OURS                                                                                   \
    "!k.startsWith('dayfly.dev/') && !k.startsWith('batch.kubernetes.io/') && "                    \
    "!k.startsWith('kubernaut.ai/') && k != 'job-name' && k != 'controller-uid'"

static const struct words rules[] = {
    {df_rule_name, "^" LABEL "$", NULL, NULL},
    {df_rule_subdomain, "^" LABEL "(\\." LABEL ")*$", NULL, NULL},
    {df_rule_secret_variable, "^[A-Za-z_][A-Za-z0-9_]*$", NULL, NULL},
    {df_rule_sha256, "^[0-9a-f]{64}$", NULL, NULL},
    {df_rule_version, "^" CONSTRAINT "(," CONSTRAINT ")*$", NULL, NULL},
    {df_rule_label_key, "^(" QUALIFIED "/)?" QUALIFIED "$", NULL, NULL},
    {df_rule_label_value, "^(" QUALIFIED ")?$", NULL, NULL},
    {df_rule_quantity, "^\\+?" DIGITS "([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$", NULL, NULL},
    {df_rule_image, "^[A-Za-z0-9._:/@-]*[A-Za-z0-9._-]$",
     "!self.contains('://') && "
     "!self.contains('//')",
     "must be an image, without a scheme and without empty parts"},
    {df_rule_image, NULL,
     "self.matches('^([^/]*[.:][^/]*|localhost)/') ? !self.matches('^[^/]+/[^:@]*[A-Z]') : "
     "!self.matches('^[^:@]*[A-Z]')",
     "a repository is written in lower case"},
    {df_rule_ip, "^[0-9a-fA-F:.]+$", NULL, NULL},
    {df_rule_labels, NULL,
     "self.all(k, k.matches('" KEY "') && self[k].matches('^(" QUALIFIED ")?$'))",
     "has something that is not a label"},
    {df_rule_pod_labels, NULL,
     "self.all(k, k.matches('" KEY "') && self[k].matches('^(" QUALIFIED ")?$') && " NOT_OURS ")",
     "has something that is not a label, or a label that the service sets"},
    {df_rule_pod_metadata, NULL, "self.all(k, k.matches('" KEY "') && " NOT_OURS ")",
     "has something that is not a key, or a key that the service sets"},
    {df_rule_mount_path, "^/[^:]*$",
     "!self.contains('/../') && !self.endsWith('/..') && !self.matches('^/(proc|sys|dev)/') && "
     "!self.matches('^/run/dayfly/') && "
     "!self.matches('^/(|work|tmp|run|run/dayfly|proc|sys|dev|etc|usr|bin|lib|sbin|lib64)/*$')",
     "must be absolute, without .., and none of the runner's own"},
    {df_rule_duration, "^([0-9]+(\\.[0-9]*)?(ns|us|ms|s|m|h))+$",
     "duration(self) >= duration('1s') && duration(self) <= duration('168h')",
     "must be from 1s to 168h"},
    {df_rule_clock, "^([01][0-9]|2[0-3]):[0-5][0-9]$", NULL, NULL},
    {df_rule_utc_offset, "^[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00)$", NULL, NULL},
    {df_rule_apply_window, NULL, "self.from != self.to", "from and to must be different times"},
    {df_rule_age, "^([0-9]+(\\.[0-9]*)?(ns|us|ms|s|m|h))+$",
     "duration(self) >= duration('0s') && duration(self) <= duration('87600h')",
     "must be from 0s to 87600h"},
    {df_rule_source, NULL,
     "[has(self.tag), has(self.branch), has(self.commit)].filter(x, x).size() <= 1",
     "takes only one of tag, branch and commit"},
    {df_rule_source, NULL, "!" IS_GIT " || " HAS_REF, "needs a tag, a branch or a commit"},
    {df_rule_source, NULL,
     IS_GIT " || !" IS_KNOWN " || !(" HAS_REF " || has(self.submodules) && self.submodules)",
     "has a tag, a branch, a commit and submodules only for git"},
    {df_rule_source, NULL,
     "!(has(self.kind) && self.kind == 'directory') || self.url.startsWith('file:')",
     "of kind directory needs a file:/// URL"},
    {df_rule_source, NULL,
     "!" IS_ARCHIVE " || self.url.startsWith('file:') || self.url.startsWith('http')",
     "of kind archive needs a file or https URL"},
    {df_rule_source, NULL, "!(" IS_ARCHIVE " && self.url.startsWith('http')) || has(self.sha256)",
     "needs sha256: what a server sends is checked against it"},
    {df_rule_source, NULL, IS_ARCHIVE " || !" IS_KNOWN " || !has(self.sha256)",
     "has sha256 only for archives; a commit says what it is"},
    {df_rule_source, NULL, "!" IS_GIT " || !self.url.contains('?')",
     "of kind git may have no query in its url; use tag, branch or commit"},
    {df_rule_source, NULL,
     "self.url.startsWith('file:///') || self.url.matches('^https://" HOST PORT "(/.|[?])') || "
     "self.url.matches('^ssh://(" USER "@)?" HOST PORT "(/.|[?])') || "
     "self.url.matches('^http://(?i)(localhost|127[.]0[.]0[.]1|\\\\[::1\\\\])" PORT "(/.|[?])') || "
     "self.url.matches('^" USER "@" HOST ":[^-:]')",
     "url must be a file:///, https:// or ssh:// URL, or user@host:path, with a valid host and a "
     "path, and without credentials, which belong into a secret that secretRef names"},
    {df_rule_source, NULL,
     "self.url.startsWith('file:') || (self.url.matches('^[!-\\\\[\\\\]-~]*$') && "
     "!self.url.matches('(?i)[?].*(token|secret|passw|credential|signature|sig=|key=)'))",
     "url has a blank, a backslash, a byte beyond ASCII or a credential in it"},
    {df_rule_source, NULL, "!self.url.contains('#')",
     "url may not have a fragment; use tag, branch or commit"},
    {df_rule_source, NULL, "!has(self.tag) || " REF("self.tag"),
     "tag is not a name that git allows"},
    {df_rule_source, NULL, "!has(self.branch) || " REF("self.branch"),
     "branch is not a name that git allows"},
    {df_rule_source, NULL,
     "!has(self.commit) || self.commit.matches('^([0-9a-f]{40}|[0-9a-f]{64})$')",
     "commit must be 40 or 64 lower-case hex digits"},
    {df_rule_source, NULL,
     "!has(self.folder) || !self.folder.matches('(?i)^[/-]|\\\\\\\\|(^|/)([.][.]|[.]git)(/|$)|//')",
     "folder must be relative and may not lead through .. or .git"},
    {df_rule_environment, NULL, "self.all(e, e.name.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
     "has something that is not the name of an environment variable"},
    {df_rule_environment, NULL,
     "self.all(e, !e.name.matches('^(TF_HTTP_.*|TF_STATE.*|TF_WORKSPACE|TF_CLI_ARGS.*|"
     "TF_CLI_CONFIG_FILE|TERRAFORM_CONFIG|TF_PLUGIN_CACHE_MAY.*|TF_REATTACH_PROVIDERS|"
     "TF_(TEMP_)?LOG_PATH|TF_DATA_DIR|TF_IN_AUTOMATION|TF_INPUT|PATH|HOME|TMPDIR|DAYFLY_.*|"
     "LD_.*)$'))",
     "has a variable that the service sets, or that it must not be given"},
    {df_rule_secrets, NULL,
     "self.all(s, !has(s.env) || (has(s.as) && s.as != 'variable' && has(s.keys) && "
     "s.keys.size() == 1))",
     "has an env without as: env or as: file, or beside more or less than one key"},
    {df_rule_arguments, NULL,
     "self.all(a, !a.matches('^--?(chdir|state[^=]*|backup[^=]*|backend[^=]*|lock[^=]*|"
     "auto-approve|destroy|out|generate-config-out|json[^=]*|input|detailed-exitcode|"
     "show-sensitive|var|help|h|version)(=.*)?$'))",
     "has an option that dayfly sets itself, or that a plan must not be given"},
    {df_rule_arguments, NULL, "self.all(a, !a.matches('^-(-*|-*=.*|--.*)$'))",
     "has something that is not an option"},
    {df_rule_arguments, NULL,
     "self.all(a, "
     "!a.matches('^(--?(var|target|exclude)-file=)?/|^--?(var|target|exclude)-file=$'))",
     "names a file by an absolute path, or -var-file and its like without a file"},
    {df_rule_variable_file, NULL, "!self.startsWith('/')",
     "must be relative to the module's folder"},
    {df_rule_arguments, NULL, "self.size() == 0 || self[0].startsWith('-')",
     "does not begin with an option"},
    {df_rule_storage, NULL, "!has(self.type) || self.type != 'local' || has(self.path)",
     "path is required for the type local"},
    {df_rule_storage, NULL,
     "!has(self.type) || self.type != 'module' || "
     "(!has(self.path) && !(has(self.overrideBackend) && self.overrideBackend))",
     "path and overrideBackend are not for the type module"},
    {df_rule_storage, NULL, "!has(self.type) || self.type != 'http' || !has(self.path)",
     "path is not for the type http: config.address names the state"},
    {df_rule_storage, NULL,
     "!has(self.path) || (has(self.type) && self.type == 'local') == self.path.startsWith('/')",
     "path is absolute for the type local, and for no other"},
    {df_rule_storage, NULL,
     "!has(self.path) || !self.path.matches('[.][.]|//|/[.]/|%|^[.]/|/$|/[.]$|^[.]$')",
     "path may not have .., //, /./ or % in it, nor end with /"},
    {df_rule_integrations, NULL,
     "self.all(a, has(a.name) ? !has(a.provider) && !has(a.secretRef) : "
     "has(a.provider) && has(a.secretRef))",
     "an entry has the name of an integration, or a provider and a secretRef"},
    {df_rule_integrations, NULL,
     "self.all(a, has(a.name) ? self.exists_one(b, has(b.name) && b.name == a.name) : "
     "!has(a.provider) || self.exists_one(b, has(b.provider) && b.provider == a.provider)) && "
     "self.filter(a, has(a.provider) && a.provider.endsWith('_ssh')).size() <= 1",
     "has two that set the same variable"},
    {df_rule_volume, NULL,
     EXACTLY_ONE("has(self.emptyDir), has(self.persistentVolumeClaim), has(self.secret), "
                 "has(self.configMap), has(self.csi), has(self.nfs), has(self.image)"),
     "needs exactly one of emptyDir, persistentVolumeClaim, secret, configMap, csi, nfs, image"},
    {df_rule_volume, NULL, "!self.name.startsWith('dayfly-')",
     "the name begins with dayfly-, as the service's own do"},
    {df_rule_env_source, NULL,
     EXACTLY_ONE("has(self.secretKeyRef), has(self.configMapKeyRef), has(self.fieldRef), "
                 "has(self.resourceFieldRef)"),
     "needs exactly one of secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef"},
    {df_rule_env_from, NULL, "has(self.secretRef) != has(self.configMapRef)",
     "needs exactly one of secretRef, configMapRef"},
    {df_rule_env, NULL,
     "self.all(e, e.name.matches('^[A-Za-z_.-][A-Za-z0-9_.-]*$') && "
     "!e.name.startsWith('DAYFLY_') && !(has(e.value) && has(e.valueFrom)))",
     "has a wrong name, or a value and a valueFrom"},
    {df_rule_toleration, NULL,
     "(has(self.operator) && self.operator == 'Exists') ? !(has(self.value) && self.value != '') : "
     "has(self.key)",
     "Exists takes no value, Equal needs a key"},
    {df_rule_toleration, NULL,
     "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
     "tolerationSeconds is for the effect NoExecute alone"},
    {df_rule_expression, NULL,
     "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : "
     "self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) || size(self.values) == 0 : "
     "has(self.values) && size(self.values) == 1",
     "operator and values do not fit together"},
    {df_rule_user_context, NULL,
     "!(has(self.runAsNonRoot) && self.runAsNonRoot && has(self.runAsUser) && self.runAsUser == 0)",
     "runAsNonRoot is true and runAsUser is 0, which is root"},
    {df_rule_container_user, NULL,
     "!(has(self.runAsNonRoot) && self.runAsNonRoot && has(self.runAsUser) && self.runAsUser == 0)",
     "runAsNonRoot is true and runAsUser is 0, which is root"},
    {df_rule_container_user, NULL,
     "!(has(self.privileged) && self.privileged) || (has(self.allowPrivilegeEscalation) && "
     "self.allowPrivilegeEscalation)",
     "privileged needs allowPrivilegeEscalation: true beside it"},
    {df_rule_container_user, NULL,
     "!(has(self.capabilities) && has(self.capabilities.add) && self.capabilities.add.exists(c, "
     "c in ['SYS_ADMIN', 'CAP_SYS_ADMIN'])) || (has(self.allowPrivilegeEscalation) && "
     "self.allowPrivilegeEscalation)",
     "the capability SYS_ADMIN needs allowPrivilegeEscalation: true beside it"},
};

/* Rules that stand in the model without a name. */
struct placed {
    const char *path, *cel, *message;
};
static const struct placed placed_rules[] = {
    {"workflow.parameters",
     "self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_.-]*$') && k != 'TARGET_RESOURCE')",
     "has a name that the system sets, or that no engine takes"},
};

/* Lists whose items are known by their name. */
static const char *const named_lists[] = {"environment", "placement.env", "placement.volumes",
                                          "workflow.dependencies.secrets",
                                          "workflow.dependencies.configMaps"};

/* ---- texts ---- */

struct text {
    const char *path; /* below spec or status */
    const char *text;
};

static const struct text texts[] = {
    {"executor", "What to run and where its state is kept: a module of OpenTofu or Terraform, its "
                 "inputs, and how a run of it is approved."},
    {"run",
     "One request on an Executor: plan and apply it, only plan it, or destroy what it created."},
    {"taskaction",
     "One step of a run (created by the service), or a workflow of another scheduler: an image "
     "that is executed against a target resource, one at a time."},
    {"revision",
     "A spec that an Executor has, or had before a change, with its author. Written by the "
     "service; the oldest are removed."},
    {"audittrail", "Entries of the audit trail: who did what, when, and with which result. Written "
                   "by the service; the oldest are removed."},
    {"description", "For people; at most 4096 bytes."},
    {"runtime", "The tool and its version."},
    {"runtime.name", "opentofu or terraform."},
    {"runtime.version",
     "1.12.6, or a constraint (>= 1.8, < 2.0); without it, any version that is found."},
    {"source", "Where the module comes from. Git needs a tag, a branch or a commit."},
    {"source.url", "file:///dir, file:///repo.git, https://..., ssh://..., or git@host:path. "
                   "Credentials are not allowed here; put them into a secret."},
    {"source.kind", "directory, git or archive; by default derived from the URL."},
    {"source.tag", "For git: a tag, without refs/tags/."},
    {"source.branch", "For git: a branch, without refs/heads/."},
    {"source.commit", "For git: 40 or 64 lower-case hex digits."},
    {"source.folder", "The module's folder within the source; relative. Cannot be changed."},
    {"source.anyCommit", "A dry-run may name a commit that no branch or tag contains, as those of "
                         "pull requests and forks."},
    {"source.submodules", "Fetch git submodules, too."},
    {"source.sha256", "For an archive; required if it comes from a server."},
    {"source.secretRef", "The secret with the credentials for fetching: username and password, "
                         "token, or ssh-privatekey and known_hosts; ca.crt."},
    {"source.secretRef.forModules",
     "The git modules on the source's host are fetched with this secret, too."},
    {"variables", "Input variables: any JSON values. Those of a run take precedence over those of "
                  "the executor. Put whole numbers of more than 18 digits in quotes."},
    {"variableFiles", "Variable files of the source (-var-file), relative to the module's folder."},
    {"arguments",
     "Further arguments of plan, after dayfly's own: -target=module.a, -parallelism=5."},
    {"environment", "Environment variables of the tool. No secrets: the values can be read here."},
    {"secrets", "Secrets whose keys become TF_VAR_<key>; all keys, or only the named ones."},
    {"integrations", "Credentials of providers: an integration by its name, or a provider and a "
                     "secret with its keys."},
    {"integrations[].name", "An integration: what it is and who may use it, it says itself."},
    {"integrations[].provider",
     "Selects which keys the secret must have and which environment variables they become."},
    {"storage", "Where the state is kept. Cannot be changed before a destroy."},
    {"storage.type",
     "managed: by dayfly; module: in the module's own backend; or a backend of the tool."},
    {"storage.overrideBackend",
     "Override a backend block or a state file of the module instead of refusing it."},
    {"storage.path", "The path within the backend; required for local, otherwise "
                     "executors/NAME/terraform.tfstate by default."},
    {"storage.config", "The backend's settings, without secrets."},
    {"approval", "required: somebody approves each plan; automatic: plans need no approval."},
    {"automaticFor", "Plans that do nothing else need no approval."},
    {"automaticFor.changes", "What they may do to resources."},
    {"automaticFor.exceptTypes", "Types of resources whose changes somebody approves."},
    {"requiredApprovals", "How many people approve each plan, 1 by default; with several neither "
                          "approval: automatic nor "
                          "autoApprove counts."},
    {"destroyApprovals", "How many people approve a destroy, or a plan that destroys everything."},
    {"approvers", "Only these people approve its plans; approval: automatic does not count."},
    {"approvers.users", "Names, as the audit trail has them."},
    {"approvers.groups", "Groups of an OpenID provider, as grants name them."},
    {"separateApprover",
     "Somebody else than the requester approves each plan; approval: automatic does not count."},
    {"applyWindow", "When plans may be applied; one that is approved waits for it."},
    {"applyWindow.days", "On which a window begins; all by default."},
    {"applyWindow.from", "When it opens: 22:00."},
    {"applyWindow.to", "When it closes, on the next day unless that is later than from."},
    {"applyWindow.utcOffset", "Of these times: +01:00; UTC by default."},
    {"replan",
     "Plan again, once, where the state has moved since the plan, or the plan is too old."},
    {"retention",
     "How much of this executor stays, instead of what the service's configuration says."},
    {"retention.runs", "Ended runs; 0: all."},
    {"retention.stateVersions", "Versions of its managed state; 0: all."},
    {"retention.age", "Older ended runs go as well, but for the newest; 0s: none for its age."},
    {"retention.logs", "Logs of ended steps that are older go before their run; 0s: none."},
    {"timeouts", "How long a step may take, from 1s to 168h."},
    {"timeouts.plan", "For the plan step."},
    {"timeouts.apply", "For the apply step."},
    {"timeouts.grace", "From the request to stop until a step is killed."},
    {"timeouts.pending", "Until a step's pod has started."},
    {"placement", "Where and how the pod runs; fields have the form of a pod in core/v1."},
    {"placement.image", "The image of the container runner."},
    {"placement.podTemplate",
     "A strategic merge patch of the pod, or a list of them; applied last."},
    {"placement.podPerStep", "false: an apply that needs no approval runs in the pod of its plan."},
    {"placement.pluginCache", "The tool's provider cache on a persistent volume claim."},
    {"placement.env",
     "Environment variables of the runner itself (a proxy, say), not of the tool."},
    {"class", "Steps get the placement of this class and count under its limit."},
    {"priority", "When steps wait for a slot, those with a higher priority start first."},
    {"executorRef", "The executor that it is of."},
    {"executorRef.uid", "Set by the service."},
    {"action", "For a run: provision, dry-run, destroy or state. For a TaskAction: workflow; the "
               "other values are steps, which the service creates."},
    {"command",
     "For the action state: mv, rm, import, force-unlock, push-errored, migrate, history or "
     "rollback with their arguments."},
    {"moveTo", "For the command migrate: the storage to which the state moves."},
    {"autoApprove", "The plan of this run needs no approval."},
    {"decision", "For a run that waits for approval: set it once, to approve or discard the plan."},
    {"decision.verdict", "approved or discarded."},
    {"decision.reason", "Why, in your own words; kept with the run."},
    {"cancel", "Set it (an empty object suffices) to cancel what runs or waits."},
    {"cancel.reason", "For people."},
    {"engine", "What executes it: job creates a Kubernetes Job."},
    {"targetResource",
     "What it locks: <namespace>/<kind>/<name> or <kind>/<name>; for a step executor/<name>."},
    {"runRef", "For a step: its run."},
    {"planFrom", "For an apply: the step whose plan is applied."},
    {"timeoutSeconds", "How long it may run, and before that how long it may wait for its target."},
    {"pendingSeconds", "How long its pod may take to start."},
    {"workflow", "What is executed."},
    {"workflow.executionBundle",
     "The image, run with its own command. Without one, the image of the runners."},
    {"workflow.executionBundleDigest", "What the bundle must end with, behind an @."},
    {"workflow.engineConfig", "For the engine ansible."},
    {"workflow.engineConfig.playbookPath", "The playbook, for people: the job template has it."},
    {"workflow.engineConfig.jobTemplateName", "The job template of AWX."},
    {"workflow.engineConfig.inventoryName", "The inventory, for people: the job template has it."},
    {"workflow.remediationRequestRef", "Who asked for it."},
    {"workflow.parameters",
     "Environment variables, or what the engine makes of them. No secrets: the values can be read "
     "here."},
    {"workflow.declaredParameterNames",
     "If set, only parameters that are true here are passed on."},
    {"workflow.dependencies", "Secrets and ConfigMaps that are mounted at /run/kubernaut."},
    {"workflow.resources", "Requests and limits of its container."},
    {"workflow.serviceAccountName",
     "Its service account; by default that of workflows.serviceAccount."},
    {"workflow.timesOutAt", "It ends at this time, whenever it began."},
};

static const struct text status_texts[] = {
    {"phase", "Pending, Running, WaitingApproval, Succeeded, Failed, Canceled or Discarded."},
    {"reason", "Why, in one word for machines."},
    {"message", "Why, in one sentence for people."},
    {"state", "provision, provisioned, destroy or destroyed."},
    {"status", "ready, refused, queued, in_progress, pending, done or error."},
    {"creator", "Who created it."},
    {"author", "Of a Revision: who wrote that spec."},
    {"activeRun", "The run in progress, which blocks others."},
    {"erroredStates", "Of an Executor: states that its runs could not store. While there is one, "
                      "runs are refused."},
    {"service", "Data that the service relies on. Do not change it."},
};

/* ---- of openapi.yaml alone ---- */

/* Members of a schema, as JSON. */
static const struct text openapi_members[] = {
    {"source.url", "{\"examples\":[\"file:///srv/modules/net\","
                   "\"https://git.example.org/net.git\",\"git@git.example.org:net.git\"]}"},
    {"timeouts.plan", "{\"examples\":[\"90s\",\"1h30m\"]}"},
    {"variableFiles[]", "{\"pattern\":\"^[^/]\"}"},
    {"targetResource", "{\"pattern\":\"^[^/]+(/[^/]+){1,2}$\","
                       "\"examples\":[\"default/deployment/nginx\",\"node/worker-1\"]}"},
    {"workflow.executionBundle", "{\"examples\":[\"registry.example.com/workflow:v1\"]}"},
};

/* ---- columns ---- */

struct column {
    const char *name, *type, *path;
    int priority; /* 1: only with -o wide */
};
#define REASON ".status.conditions[?(@.type==\"Progressing\")].reason"
#define MESSAGE ".status.conditions[?(@.type==\"Progressing\")].message"
#define CHANGES "" /* of a column: in fact one for each kind of change */

static const struct column executor_columns[] = {
    {"State", "string", ".status.state", 0},
    {"Status", "string", ".status.status", 0},
    {"Last run", "string", ".status.lastRun.name", 0},
    {"Phase", "string", ".status.lastRun.phase", 0},
    {"Revision", "integer", ".status.revision", 1},
    {"Source", "string", ".spec.source.url", 1},
    {"Errored state of", "string", ".status.erroredStates[0].run", 1},
    {"Message", "string", MESSAGE, 1},
    {"Age", "date", ".metadata.creationTimestamp", 0},
    {0}};
static const struct column run_columns[] = {{"Executor", "string", ".spec.executorRef.name", 0},
                                            {"Action", "string", ".spec.action", 0},
                                            {"Phase", "string", ".status.phase", 0},
                                            {"Reason", "string", REASON, 0},
                                            {CHANGES, "integer", ".status.planSummary", 1},
                                            {"Message", "string", MESSAGE, 1},
                                            {"Age", "date", ".metadata.creationTimestamp", 0},
                                            {0}};
static const struct column task_columns[] = {{"Run", "string", ".spec.runRef.name", 0},
                                             {"Action", "string", ".spec.action", 0},
                                             {"Target", "string", ".spec.targetResource", 0},
                                             {"Status", "string", REASON, 0},
                                             {"Exit", "integer", ".status.exitCode", 1},
                                             {"Engine", "string", ".spec.engine", 1},
                                             {"Message", "string", MESSAGE, 1},
                                             {"Age", "date", ".metadata.creationTimestamp", 0},
                                             {0}};
static const struct column revision_columns[] = {
    {"Executor", "string", ".spec.executorRef.name", 0},
    {"Number", "integer", ".spec.number", 0},
    {"Author", "string", ".status.author", 0},
    {"At", "string", ".status.at", 0},
    {0}};
static const struct column trail_columns[] = {{"Age", "date", ".metadata.creationTimestamp", 0},
                                              {0}};

/* What `kubectl get --field-selector` takes. Kubernetes before 1.31 ignores the list. */
static const char *const run_fields[] = {".spec.executorRef.name", ".spec.action", NULL};
static const char *const revision_fields[] = {".spec.executorRef.name", NULL};
static const char *const task_fields[] = {".spec.runRef.name", ".spec.executorRef.name",
                                          ".spec.action", NULL};

/* ---- rules of the whole ---- */

struct cel {
    const char *rule, *message;
};

#define NAME_RULE                                                                                  \
    {                                                                                              \
        "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",                      \
            "metadata.name must be a DNS label: 1 to 63 of a-z, 0-9 and -"                         \
    }

static const struct cel executor_rules[] = {
    NAME_RULE,
    {"!has(oldSelf.status) || !((has(oldSelf.status.mayHoldResources) && "
     "oldSelf.status.mayHoldResources) || (has(oldSelf.status.state) && oldSelf.status.state in "
     "['provisioned', 'destroy'])) || (self.spec.storage.type == oldSelf.spec.storage.type && "
     "has(self.spec.storage.path) == has(oldSelf.spec.storage.path) && "
     "(!has(self.spec.storage.path) || self.spec.storage.path == oldSelf.spec.storage.path))",
     "spec.storage cannot be changed before the executor is destroyed"},
    {"(has(self.spec.source.folder) ? self.spec.source.folder : '') == "
     "(has(oldSelf.spec.source.folder) ? oldSelf.spec.source.folder : '')",
     "spec.source.folder cannot be changed"},
    {0}};
static const struct cel run_rules[] = {
    NAME_RULE,
    {"self.spec.action == oldSelf.spec.action && self.spec.executorRef.name == "
     "oldSelf.spec.executorRef.name && has(self.spec.autoApprove) == "
     "has(oldSelf.spec.autoApprove) && (!has(self.spec.autoApprove) || self.spec.autoApprove == "
     "oldSelf.spec.autoApprove) && "
     "has(self.spec.arguments) == has(oldSelf.spec.arguments) && has(self.spec.placement) == "
     "has(oldSelf.spec.placement)",
     "a run's spec cannot be changed, but for decision and cancel; make another run"},
    {"self.spec.action == 'dry-run' || (!has(self.spec.source) && !has(self.spec.runtime))",
     "spec.source and spec.runtime are for a dry-run alone; change the executor for other runs"},
    {"!has(self.spec.decision) || has(oldSelf.spec.decision) || (has(oldSelf.status) && "
     "has(oldSelf.status.phase) && oldSelf.status.phase == 'WaitingApproval')",
     "spec.decision: the run does not wait for a decision"},
    {"!has(oldSelf.spec.decision) || (has(self.spec.decision) ? self.spec.decision.verdict == "
     "oldSelf.spec.decision.verdict : has(oldSelf.status) && has(oldSelf.status.phase) && "
     "oldSelf.status.phase == 'WaitingApproval')",
     "spec.decision cannot be changed"},
    {"!has(oldSelf.spec.cancel) || has(self.spec.cancel)", "spec.cancel cannot be taken back"},
    {0}};
static const struct cel revision_rules[] = {
    NAME_RULE,
    {"self.spec == oldSelf.spec", "a revision cannot be changed; change the executor"},
    {0}};
static const struct cel task_rules[] = {
    NAME_RULE,
    {"self.spec.action == oldSelf.spec.action && self.spec.targetResource == "
     "oldSelf.spec.targetResource && has(self.spec.workflow) == has(oldSelf.spec.workflow)",
     "a TaskAction's spec cannot be changed, but for cancel; make another one"},
    {"(self.spec.action == 'workflow') == has(self.spec.workflow)",
     "spec.workflow: is what the action workflow runs, and for no other action"},
    {"self.spec.action != 'workflow' || (!has(self.spec.runRef) && !has(self.spec.executorRef) && "
     "!has(self.spec.planFrom) && !has(self.spec.command))",
     "runRef, executorRef, planFrom and command are for steps, which the service makes"},
    {"self.spec.action != 'workflow' || !has(self.spec.placement) || "
     "(!has(self.spec.placement.image) && !has(self.spec.placement.serviceAccountName) && "
     "!has(self.spec.placement.resources))",
     "spec.placement: image, serviceAccountName and resources stand in spec.workflow"},
    {"self.spec.action != 'workflow' || "
     "self.spec.targetResource.matches('^[^/]+/[^/]+(/[^/]+)?$')",
     "spec.targetResource must be in format <namespace>/<kind>/<name> or <kind>/<name>"},
    {"!has(oldSelf.spec.cancel) || has(self.spec.cancel)", "spec.cancel cannot be taken back"},
    {0}};

#endif
