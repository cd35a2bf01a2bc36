/*
 * Tables of phrases of Kubernetes with our reason words, and the choice of the Event that explains
 * a pod best.
 */
#include "spawner/engine/diagnosis/pod_cause.h"

#include "common/base/clock.h"

/* ---- phrases of Kubernetes ---- */

#define NO_ANSWER "failed calling webhook"

/* The first match counts, so the more exact rows come first. */
static const struct {
    const char *needle, *also; /* the message must have both; also may be NULL */
    const char *reason;
} causes[] = {
    {"couldn't find key", NULL, "KeyMissing"},
    {"references non-existent", " key", "KeyMissing"},
    {"serviceaccount \"", "not found", "ServiceAccountMissing"},
    {"error looking up service account", NULL, "ServiceAccountMissing"},
    {"persistentvolumeclaim \"", "not found", "ClaimMissing"},
    {"secret \"", "not found", "SecretMissing"},
    {"secrets \"", "not found", "SecretMissing"},
    {"configmap \"", "not found", "ConfigMapMissing"},
    {"configmaps \"", "not found", "ConfigMapMissing"},
    {"namespaces \"", "not found", "NamespaceMissing"},
    {"because it is being terminated", NULL, "NamespaceMissing"},
    {"exceeded quota", NULL, "QuotaExceeded"},
    {"failed quota", NULL, "QuotaExceeded"},
    {"runAsNonRoot", "image", "RunsAsRoot"},
    {"runAsUser breaks non-root policy", NULL, "RunsAsRoot"},
    {"exec:", "no such file", "CommandMissing"},
    {"executable file not found", NULL, "CommandMissing"},
    {"no command specified", NULL, "CommandMissing"},
    {"exec:", "permission denied", "CommandMissing"},
    {"exec format error", NULL, "CommandMissing"},
    {"pull image", NULL, "ImagePullFailed"},
    {"pulling image", NULL, "ImagePullFailed"},
    {"ErrImagePull", NULL, "ImagePullFailed"},
    {"ImagePullBackOff", NULL, "ImagePullFailed"},
    {"MountVolume", NULL, "VolumeFailed"},
    {"AttachVolume", NULL, "VolumeFailed"},
    {"attach or mount volumes", NULL, "VolumeFailed"},
    {"subPath", NULL, "VolumeFailed"},
    {"violates PodSecurity", NULL, "AdmissionRefused"},
    {"admission webhook", NULL, "AdmissionRefused"},
    {NO_ANSWER, NULL, "AdmissionRefused"},
    {"ValidatingAdmissionPolicy", NULL, "AdmissionRefused"},
    {"no PriorityClass", NULL, "AdmissionRefused"},
    {"RuntimeClass", "not found", "AdmissionRefused"},
    {"is forbidden", NULL, "AdmissionRefused"},
    {" is invalid", NULL, "ObjectRefused"},
    {"Invalid value", NULL, "ObjectRefused"},
    {"quantities must match", NULL, "ObjectRefused"},
    {"unable to parse quantity", NULL, "ObjectRefused"},
    {"cannot unmarshal", NULL, "ObjectRefused"},
};

const char *df_pod_cause(const char *text, const char *fallback)
{
    for (size_t i = 0; text && i < DF_ARRAY_SIZE(causes); i++)
        if (strstr(text, causes[i].needle) && (!causes[i].also || strstr(text, causes[i].also)))
            return causes[i].reason;
    return fallback;
}

bool df_pod_cause_webhook(const char *text)
{
    return text && strstr(text, NO_ANSWER);
}

bool df_pod_cause_is_permanent(const char *reason, const char *text)
{
    return df_streq(reason, "ObjectRefused") || df_streq(reason, "NamespaceMissing") ||
           df_streq(reason, "CommandMissing") ||
           (df_streq(reason, "AdmissionRefused") && !df_pod_cause_webhook(text));
}

/* ---- our sentences ---- */

/* Of a step that may have been in mid-apply: what it did last may be in no state. */
#define REST "what the tool had stored is in the state: a new plan shows what remains to be done"
#define OF_DEPENDENCY                                                                              \
    "create it in the pod's namespace, or correct its name in spec.workflow.dependencies or the "  \
    "placement"

static const struct {
    const char *reason, *what, *remedy;
    const char *of_workflow; /* the remedy where a workflow has other keys; NULL: the same */
} sentences[] = {
    {"Unschedulable", "no node can run the pod",
     "check nodeSelector, tolerations, affinity and resources of the placement, or add a node",
     "check nodeSelector, tolerations and affinity of spec.placement, and spec.workflow.resources, "
     "or add a node"},
    {"ImagePullFailed", "the image cannot be pulled",
     "check the image's name and tag, the registry, and placement.imagePullSecrets",
     "check spec.workflow.executionBundle, the registry, and spec.placement.imagePullSecrets"},
    {"ImageNameInvalid", "the image's name is invalid", "correct placement.image",
     "correct spec.workflow.executionBundle"},
    {"SecretMissing", "a Secret that the pod needs does not exist",
     "create it in the pod's namespace, or correct its name in the placement", OF_DEPENDENCY},
    {"ConfigMapMissing", "a ConfigMap that the pod needs does not exist",
     "create it in the pod's namespace, or correct its name in the placement", OF_DEPENDENCY},
    {"KeyMissing", "a Secret or ConfigMap lacks a key that the pod needs",
     "add the key, or correct its name in the placement"},
    {"ClaimMissing", "a volume claim that the pod needs does not exist",
     "create it in the pod's namespace, or correct its name in the placement"},
    {"ServiceAccountMissing", "the pod's service account does not exist",
     "create it in the pod's namespace, or correct placement.serviceAccountName",
     "create it in the pod's namespace, or name another one in spec.workflow.serviceAccountName "
     "(default: workflows.serviceAccount of the service's configuration)"},
    {"NamespaceMissing", "the namespace does not exist",
     "create the namespace, or correct the configuration"},
    {"QuotaExceeded", "the namespace's quota leaves no room for the pod",
     "wait for others to end, request less in placement.resources, or raise the quota",
     "wait for others to end, request less in spec.workflow.resources, or raise the quota"},
    {"AdmissionRefused", "the cluster's admission refused the pod",
     "change the placement to what the policy allows, or ask the owner of the policy"},
    {"VolumeFailed", "a volume could not be mounted", "check the volume, its claim and its driver"},
    {"RunsAsRoot", "the image wants to run as root, which the pod forbids",
     "use an image with a numeric user, or set placement.podSecurityContext.runAsUser"},
    {"CommandMissing", "the image does not have the program that the pod starts",
     "correct placement.image: it must be a runner image",
     "correct spec.workflow.executionBundle, or the command in spec.placement.podTemplate"},
    {"ContainerFailed", "the container could not be created",
     "check the node's kubelet and runtime"},
    {"ObjectRefused", "the API server refused the object",
     "correct the field of the placement that the API server names"},
    {"NodeFailed", "the node could not set the pod up", "check the node, then run again"},
    {"NotAllowed", "the service has no permission to do this",
     "grant the service the Role of rbac/ in that namespace"},
    {"EngineFailed", "the API server could not create the Job",
     "dayfly retries until timeouts.pending is over"},
    {"NeverClaimed", "no runner claimed the step",
     "check the pod's events and its log, or raise timeouts.pending"},
    {"OOMKilled", "the container needed more memory than its limit and was killed",
     "raise placement.resources.limits.memory", "raise spec.workflow.resources.limits.memory"},
    {"Evicted", "the pod was evicted from its node", REST},
    {"Preempted", "the pod had to make room for one of higher priority",
     "set placement.priorityClassName; " REST},
    {"DeadlineExceeded", "the Job's deadline passed and Kubernetes ended the pod",
     "raise spec.timeouts, or find in the log what the step waited for"},
    {"NodeLost", "the pod's node is gone or no longer answers", "check the node; " REST},
    {"NodeShutdown", "the pod's node was shut down", REST},
    {"PodDeleted", "somebody deleted the pod", REST},
    {"JobDeleted", "somebody deleted the Job", REST},
    {"RunnerKilled", "the container was killed by a signal",
     "check the node's kernel log and the memory limit; " REST},
    {"RunnerFailed", "the container failed", "check its log"},
    {"InvalidStep", "the runner refused the step", "correct what the message or the log names"},
    {"TimedOut", "the step took longer than its timeout", "raise spec.timeouts"},
};

/* The scheduler counts nodes by what they lack. That some are full is enough: others may be unfit
 * for ever. */
static bool lacks_room(const char *reason, const char *words)
{
    if (!df_streq(reason, "Unschedulable") || !words)
        return df_streq(reason, "QuotaExceeded");
    return strstr(words, "Insufficient ") || strstr(words, "Too many pods");
}

void df_pod_explain(struct df_pod_diagnosis *v, const char *reason, const char *words)
{
    size_t i = 0;
    while (i < DF_ARRAY_SIZE(sentences) && !df_streq(sentences[i].reason, reason))
        i++;
    if (i == DF_ARRAY_SIZE(sentences))
        DF_BUG("no sentence for %s", reason);
    bool has_words = !df_str_empty(words);
    const char *other = v->of_workflow ? sentences[i].of_workflow : NULL;
    v->lacks_room = lacks_room(reason, words);
    (void)snprintf(v->reason, sizeof(v->reason), "%s", reason);
    (void)snprintf(v->message, sizeof(v->message), "%s%s%.600s%s; %s", sentences[i].what,
                   has_words ? " (" : "", has_words ? words : "", has_words ? ")" : "",
                   other ? other : sentences[i].remedy);
}

/* ---- Events ---- */

static bool is_about(const cJSON *event, const char *kind, const cJSON *object)
{
    const char *uid = df_json_str(event, "involvedObject.uid");
    const char *own = df_json_str(object, "metadata.uid");
    if (!df_streq(df_json_str(event, "involvedObject.kind"), kind) ||
        !df_streq(df_json_str(event, "involvedObject.name"), df_json_str(object, "metadata.name")))
        return false;
    return !uid || !own || df_streq(uid, own);
}

/* 0: the Event has no time. */
static int64_t time_of(const cJSON *event)
{
    static const char *const members[] = {"series.lastObservedTime", "lastTimestamp", "eventTime",
                                          "metadata.creationTimestamp"};
    int64_t at = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        const char *text = df_json_str(event, members[i]);
        if (text && df_time_parse(text, &at, NULL) == 0)
            return at;
    }
    return 0;
}

static bool is_one_of(const char *const *words, const char *word)
{
    for (; *words; words++)
        if (df_streq(*words, word))
            return true;
    return false;
}

/* A kubelet that has just received a pod, or is removing it, reports errors of its own caches,
 * which explain nothing. */
static bool is_about_caches(const cJSON *event)
{
    const char *message = df_json_str(event, "message");
    return message && (strstr(message, "\" not registered") || strstr(message, "failed to sync "));
}

bool df_pod_event_is_better(const cJSON *event, const cJSON *than)
{
    if (!than || is_about_caches(event) != is_about_caches(than))
        return !than || is_about_caches(than);
    return time_of(event) >= time_of(than);
}

const char *df_pod_event(const cJSON *events, const char *kind, const cJSON *object,
                         const char *const *words, const char **ret_reason)
{
    const cJSON *best = NULL;
    for (const cJSON *e = events ? events->child : NULL; e; e = e->next)
        if (is_about(e, kind, object) && is_one_of(words, df_json_str(e, "reason")) &&
            df_pod_event_is_better(e, best))
            best = e;
    if (!best)
        return NULL;
    *ret_reason = df_json_str(best, "reason");
    const char *message = df_json_str(best, "message");
    return message ? message : "";
}
