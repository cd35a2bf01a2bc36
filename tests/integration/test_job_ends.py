"""Steps on a real cluster that cannot start, are taken away, run out of something or are cancelled: each end has its reason."""

import contextlib
import datetime
import json

import pytest

from lib import cluster as kubernetes
from lib import dayfly
from lib.dayfly import wait_for
from lib.pods import Pods

SMALL = 'output "x" { value = 1 }\n'
LATE = 8  # seconds of timeouts.pending: long enough for a kubelet to say what it lacks


# ---- steps that cannot start -------------------------------------------------------------------------------

class Cause:
    """Why a pod does not start: its placement, the reason word, what the message must name."""

    def __init__(self, reason, *words, placement=None, patch=None, runner=None):
        self.reason, self.words = reason, words
        self.placement = dict(placement or {})
        if runner:
            patch = {"spec": {"containers": [{"name": "runner", **runner}]}}
        if patch:
            self.placement["podTemplate"] = patch


def on_node(name, *more):
    return {"nodeSelector": {"dayfly.test/node": name}, "tolerations": [*more]}


TOLERATE_ALL = {"operator": "Exists"}

CAUSES = {
    "node-selector": Cause("Unschedulable", "didn't match Pod's node affinity/selector", placement={"nodeSelector": {"disk": "nowhere"}}),
    "taint": Cause("Unschedulable", "untolerated taint", placement=on_node("{tag}-silent")),
    "resources": Cause("Unschedulable", "Insufficient cpu", placement={"resources": {"requests": {"cpu": "900"}}}),
    "silent-node": Cause("NodeFailed", "{tag}-silent", placement=on_node("{tag}-silent", TOLERATE_ALL)),
    "image-never": Cause("ImagePullFailed", "localhost/nowhere:1", placement={"image": "localhost/nowhere:1", "imagePullPolicy": "Never"}),
    "image-registry": Cause("ImagePullFailed", "127.0.0.1:9/nowhere:1",
                            placement={"image": "127.0.0.1:9/nowhere:1", "imagePullPolicy": "Always"}),
    "image-name": Cause("ImageNameInvalid", "NOT:AN:IMAGE", runner={"image": "NOT:AN:IMAGE"}),
    "secret": Cause("SecretMissing", '"absent-secret"',
                    placement={"secretMounts": [{"name": "absent-secret", "mountPath": "/absent"}]}),
    "config-map": Cause("ConfigMapMissing", '"absent-map"',
                        placement={"configMapMounts": [{"name": "absent-map", "mountPath": "/absent"}]}),
    "key": Cause("KeyMissing", "absent-key", placement={"secretMounts": [
        {"name": "there", "mountPath": "/absent", "items": [{"key": "absent-key", "path": "k"}]}]}),
    "env-from": Cause("SecretMissing", '"absent-env"', placement={"envFrom": [{"secretRef": {"name": "absent-env"}}]}),
    "env-key": Cause("KeyMissing", "absent-key", placement={"env": [
        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "there", "key": "absent-key"}}}]}),
    "service-account": Cause("ServiceAccountMissing", '"absent-account"', placement={"serviceAccountName": "absent-account"}),
    "claim": Cause("ClaimMissing", '"absent-claim"', placement={"volumes": [
        {"name": "v", "mountPath": "/absent", "persistentVolumeClaim": {"claimName": "absent-claim"}}]}),
    "quota": Cause("QuotaExceeded", "no-room", placement={"priorityClassName": "{tag}-none"}),
    "limit-range": Cause("AdmissionRefused", "maximum ephemeral-storage usage per Container is 1Gi",
                         placement={"resources": {"limits": {"ephemeral-storage": "2Gi"}}}),
    "pod-security": Cause("AdmissionRefused", 'violates PodSecurity "baseline', patch={"spec": {"hostPID": True}}),
    "pod-policy": Cause("AdmissionRefused", "no pods like this", placement={"labels": {"refused": "pod"}}),
    "job-policy": Cause("AdmissionRefused", "no jobs like this", placement={"labels": {"refused": "job"}}),
    "priority-class": Cause("AdmissionRefused", "absent-priority", placement={"priorityClassName": "absent-priority"}),
    "root": Cause("RunsAsRoot", "non-root", runner={"securityContext": {"runAsUser": 0}}),
    "command": Cause("CommandMissing", "/absent/program", runner={"command": ["/absent/program"]}),
    "quantity": Cause("ObjectRefused", "quantities must match", runner={"resources": {"limits": {"memory": "lots"}}}),
    "field": Cause("ObjectRefused", "dnsPolicy", patch={"spec": {"dnsPolicy": "Sometimes"}}),
    "namespace": Cause("NamespaceMissing", "{tag}-absent"),
    "rights": Cause("NotAllowed", "cannot create resource"),
}
AT_ONCE = {"image-never", "image-name", "env-from", "env-key", "limit-range", "pod-security", "pod-policy", "job-policy",
           "priority-class", "root", "command", "quantity", "field", "namespace"}
WATCHED = ["node-selector", "rights", "quota", "secret"]  # asked about while they wait


def policy(tag, what, group, resource):
    """A ValidatingAdmissionPolicy that refuses one kind of object of this namespace, by a label, and its binding."""
    name = f"{tag}-{what}"
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    return [{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
             "spec": {"failurePolicy": "Fail", "validations": [{"expression": "false", "message": f"no {resource} like this"}],
                      "matchConstraints": {"resourceRules": [rule], "objectSelector": {"matchLabels": {"refused": what}},
                                           "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": tag}}}}},
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
             "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}]


def silent_node(name):
    """A node that no kubelet speaks for."""
    room = {"cpu": "8", "memory": "16Gi", "pods": "100", "ephemeral-storage": "100Gi"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"dayfly.test/node": name}},
            "spec": {"taints": [{"key": "dayfly.test/silent", "effect": "NoSchedule"}]},
            "status": {"capacity": room, "allocatable": room}}


def obstacles(namespace):
    """What stands in the way in this namespace; the cluster-wide part is called after it."""
    tag = namespace.name
    cluster = namespace.cluster
    cluster.kubectl("label", "namespace", tag, "pod-security.kubernetes.io/enforce=baseline")
    objects = [
        silent_node(f"{tag}-silent"),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"{tag}-none"}, "value": -7},
        *policy(tag, "pod", "", "pods"), *policy(tag, "job", "batch", "jobs")]
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    cluster.kubectl("patch", "node", f"{tag}-silent", "--subresource=status", "--type=merge", "-p",
                    json.dumps({"status": silent_node("x")["status"]}))
    namespace.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "there"}, "stringData": {"some-key": "x"}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-room"}, "spec": {
            "hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": [f"{tag}-none"]}]}}},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [
            {"type": "Container", "max": {"ephemeral-storage": "1Gi"}, "default": {"ephemeral-storage": "512Mi"},
             "defaultRequest": {"ephemeral-storage": "1Mi"}}]}})

    def in_force():
        probe = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe", "labels": {"refused": "job"}}, "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}
        return namespace.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(probe), check=False).returncode
    wait_for("the policies to be in force", in_force)


def clear(namespace):
    tag = namespace.name
    namespace.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        namespace.cluster.kubectl("delete", kind, f"{tag}-pod", f"{tag}-job", "--ignore-not-found", check=False)
    namespace.cluster.kubectl("delete", "node", f"{tag}-silent", "--ignore-not-found", check=False)
    namespace.cluster.kubectl("delete", "priorityclass", f"{tag}-none", "--ignore-not-found", check=False)


def viewer(namespace, directory):
    """A kubeconfig of an account that may look, and make nothing."""
    namespace.kubectl("create", "serviceaccount", "viewer")
    namespace.kubectl("create", "role", "viewer", "--verb=get,list,watch", "--resource=jobs,pods,events")
    namespace.kubectl("create", "rolebinding", "viewer", "--role=viewer", f"--serviceaccount={namespace.name}:viewer")
    config = json.loads(namespace.cluster.kubectl("config", "view", "--raw", "-o", "json").stdout)
    config["users"] = [{"name": "viewer", "user": {"token": namespace.token("viewer")}}]
    config["contexts"][0]["context"]["user"] = "viewer"
    path = directory / "viewer.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def filled(value, tag):
    """The value with the tag put in wherever it is asked for."""
    return json.loads(json.dumps(value).replace("{tag}", tag))


class Worlds:
    """Three spawners: one for most causes, one in a namespace that is not there, one without rights."""

    def __init__(self, namespace, directory, tofu, stack):
        def world(name, **kubernetes):
            home = dayfly.Home(directory / name, tofu)
            return stack.enter_context(Pods(home, namespace, tofu, steps=50, **kubernetes))
        self.special = {"namespace": world("nowhere", namespace=f"{namespace.name}-absent"),
                        "rights": world("viewer", kubeconfig=str(viewer(namespace, directory)))}
        self.common = world("common")

    def of(self, name):
        return self.special.get(name, self.common)


@pytest.fixture(scope="module")
def told(cluster, tofu, tmp_path_factory):
    """All causes at once, each in a run of its own: what was said of them in the meantime and at their ends."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(kubernetes.Calm(alone=False))
        namespace = kubernetes.Namespace(cluster)
        stack.callback(namespace.close)
        stack.callback(clear, namespace)
        obstacles(namespace)
        worlds = Worlds(namespace, tmp_path_factory.mktemp("causes"), tofu, stack)
        yield look_at_all(worlds, namespace)


def waits(world, run, words):
    """What `why` says of a run that waits, once it says these words."""
    def said():
        text = world.home.dayfly("why", run).stdout
        return text if words in text else None
    return wait_for(f"why {run} to tell of {words}", said)


def lives(job):
    """Is it neither over nor on its way out? The pod of the silent node cannot go before its node does."""
    over = {c["type"] for c in job.get("status", {}).get("conditions", [])} & {"Failed", "Complete"}
    return not over and "deletionTimestamp" not in job["metadata"]


def look_at_all(worlds, namespace):
    result = {"tag": namespace.name, "waiting": {}}
    for name in sorted(CAUSES, key=WATCHED.__contains__):
        world, placement = worlds.of(name), filled(CAUSES[name].placement, namespace.name)
        world.executor(name, SMALL, placement=placement, timeouts={"pending": f"{LATE}s"})
        world.ask(name, "dry-run")
    for name in WATCHED:
        result["waiting"][name] = waits(worlds.of(name), f"{name}-1", "It waits: ")
    for name in CAUSES:
        world = worlds.of(name)
        result[name] = {"run": world.ended(f"{name}-1"), "task": world.document("taskactions", f"{name}-1-plan"),
                        "why": world.home.dayfly("why", f"{name}-1").stdout,
                        "describe": world.home.dayfly("describe", "run", f"{name}-1").stdout}
    wait_for("no Job to live", lambda: not [j for j in namespace.get("jobs") if lives(j)])
    result["secrets"] = {o["metadata"]["name"] for o in namespace.get("secrets")}
    return result


def took(task):
    """Seconds from the first try to the end."""
    ended = next(c for c in task["status"]["conditions"] if c["type"] == "Failed")["lastTransitionTime"]
    created = next(t for t in task["status"]["timeline"] if t["name"] == "created")["at"]
    return (datetime.datetime.fromisoformat(ended) - datetime.datetime.fromisoformat(created)).total_seconds()


@pytest.mark.parametrize("name", CAUSES)
def test_a_step_that_cannot_start_ends_with_the_cause_in_plain_words(told, name):
    cause, seen = CAUSES[name], told[name]
    status, task = seen["run"], seen["task"]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", cause.reason), status
    for words in filled(cause.words, told["tag"]):
        for text in (status["message"], seen["why"], seen["describe"], task["message"]):
            assert words in text
    assert "; " in status["message"] and "What to do: " in seen["why"]
    assert "claimedBy" not in task
    if name in AT_ONCE:
        assert took(seen["task"]) < LATE - 1
    else:
        assert LATE <= took(seen["task"])


@pytest.mark.parametrize("name", WATCHED)
def test_who_asks_while_it_waits_is_told_what_for(told, name):
    for words in filled(CAUSES[name].words, told["tag"]):
        assert words in told["waiting"][name]


def test_what_did_not_start_leaves_nothing_behind(told):
    assert told["secrets"] == {"there"}
