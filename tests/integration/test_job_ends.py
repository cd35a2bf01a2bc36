"""Steps on a real cluster that cannot start, are taken away, run out of something or are canceled: each end has its reason."""

import contextlib
import datetime
import json
import socket

import pytest

from lib import cluster as kubernetes
from lib import dayfly
from lib.dayfly import wait_for
from lib.mid import SLOW, Mid, delete, evict, kill_runner, limit
from lib.pods import NODE, Pods

SMALL = 'output "x" { value = 1 }\n'
MANY = {"limits": {"steps": 50}}
LATE = 12  # seconds of timeouts.pending where no node is asked
LATER = 60  # seconds of it where a kubelet must say what it lacks: many pods start at once, on a machine that may be slow


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
    "volume": Cause("VolumeFailed", "nowhere.example", patch={"spec": {
        "volumes": [{"name": "v", "csi": {"driver": "nowhere.example"}}],
        "containers": [{"name": "runner", "volumeMounts": [{"name": "v", "mountPath": "/absent"}]}]}}),
    "quota": Cause("QuotaExceeded", "no-room", placement={"priorityClassName": "{tag}-none"}),
    "limit-range": Cause("AdmissionRefused", "maximum ephemeral-storage usage per Container is 1Gi",
                         placement={"resources": {"limits": {"ephemeral-storage": "2Gi"}}}),
    "pod-security": Cause("AdmissionRefused", 'violates PodSecurity "baseline', patch={"spec": {"hostPID": True}}),
    "pod-policy": Cause("AdmissionRefused", "no pods like this", placement={"labels": {"refused": "pod"}}),
    "job-policy": Cause("AdmissionRefused", "no jobs like this", placement={"labels": {"refused": "job"}}),
    "pod-webhook": Cause("AdmissionRefused", "failed calling webhook", placement={"labels": {"refused": "pod-webhook"}}),
    "job-webhook": Cause("AdmissionRefused", "failed calling webhook", placement={"labels": {"refused": "job-webhook"}}),
    "priority-class": Cause("AdmissionRefused", "absent-priority", placement={"priorityClassName": "absent-priority"}),
    "root": Cause("RunsAsRoot", "non-root", runner={"securityContext": {"runAsUser": 0}}),
    "container": Cause("ContainerFailed", "seccomp", runner={"securityContext": {"seccompProfile": {
        "type": "Localhost", "localhostProfile": "nowhere.json"}}}),
    "command": Cause("CommandMissing", "/absent/program", runner={"command": ["/absent/program"]}),
    "quantity": Cause("ObjectRefused", "quantities must match", runner={"resources": {"limits": {"memory": "lots"}}}),
    "field": Cause("ObjectRefused", "dnsPolicy", patch={"spec": {"dnsPolicy": "Sometimes"}}),
    "namespace": Cause("NamespaceMissing", "{tag}-absent"),
    "rights": Cause("NotAllowed", "cannot create resource"),
}
# Before the pending time is over: at once, or after the grace that a container's configuration has.
AT_ONCE = {"image-never", "image-name", "env-from", "env-key", "limit-range", "pod-security", "pod-policy", "job-policy",
           "priority-class", "root", "command", "quantity", "field", "namespace"}
TOLD_BY_KUBELET = AT_ONCE | {"image-registry", "secret", "config-map", "key", "volume", "container"}
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


def dead_webhook(tag, what, group, resource):
    """Somebody's webhook that does not answer: of the objects of this namespace that have the label."""
    return {"name": f"{what}.dayfly.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"url": "https://127.0.0.1:9/"}, "timeoutSeconds": 1,
            "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}],
            "objectSelector": {"matchLabels": {"refused": what}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": tag}}}


def silent_node(name):
    """A node that no kubelet speaks for."""
    room = {"cpu": "8", "memory": "16Gi", "pods": "100", "ephemeral-storage": "100Gi"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"dayfly.test/node": name}},
            "spec": {"taints": [{"key": "dayfly.test/silent", "effect": "NoSchedule"}]},
            "status": {"capacity": room, "allocatable": room}}


def add_silent_node(cluster, name):
    node = silent_node(name)
    cluster.kubectl("create", "-f", "-", input=json.dumps(node))
    cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": node["status"]}))


def obstacles(namespace):
    """What stands in the way in this namespace; the cluster-wide part is called after it."""
    tag = namespace.name
    cluster = namespace.cluster
    cluster.kubectl("label", "namespace", tag, "pod-security.kubernetes.io/enforce=baseline")
    add_silent_node(cluster, f"{tag}-silent")
    objects = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"{tag}-none"}, "value": -7},
        *policy(tag, "pod", "", "pods"), *policy(tag, "job", "batch", "jobs"),
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": tag},
         "webhooks": [dead_webhook(tag, "pod-webhook", "", "pods"), dead_webhook(tag, "job-webhook", "batch", "jobs")]}]
    cluster.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    namespace.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "there"}, "stringData": {"some-key": "x"}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-room"}, "spec": {
            "hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": [f"{tag}-none"]}]}}},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [
            {"type": "Container", "max": {"ephemeral-storage": "1Gi"}, "default": {"ephemeral-storage": "512Mi"},
             "defaultRequest": {"ephemeral-storage": "1Mi"}}]}})

    def in_force(what):
        probe = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe", "labels": {"refused": what}}, "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}
        return namespace.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(probe), check=False).returncode
    wait_for("the policies and webhooks to be in force", lambda: in_force("job") and in_force("job-webhook"))


def clear(namespace):
    tag = namespace.name
    namespace.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        namespace.cluster.kubectl("delete", kind, f"{tag}-pod", f"{tag}-job", "--ignore-not-found", check=False)
    namespace.cluster.kubectl("delete", "validatingwebhookconfiguration", tag, "--ignore-not-found", check=False)
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
            return stack.enter_context(Pods(home, namespace, tofu, config=MANY, **kubernetes))
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
        return look_at_all(worlds, namespace)


def says(world, command, *words):
    """What a command says, once it says all of these words."""
    def said():
        text = world.home.dayfly(*command).stdout
        return text if all(word in text for word in words) else None
    return wait_for(f"{command} to tell of {words}", said)


def lives(job):
    """Is it neither over nor on its way out? The pod of the silent node cannot go before its node does."""
    over = {c["type"] for c in job.get("status", {}).get("conditions", [])} & {"Failed", "Complete"}
    return not over and "deletionTimestamp" not in job["metadata"]


def pending(name):
    """Seconds that a step of this cause may wait for its runner."""
    return LATER if name in TOLD_BY_KUBELET else LATE


def look_at_all(worlds, namespace):
    result = {"tag": namespace.name, "waiting": {}}
    for name in sorted(CAUSES, key=WATCHED.__contains__):
        world, placement = worlds.of(name), filled(CAUSES[name].placement, namespace.name)
        world.executor(name, SMALL, placement=placement, timeouts={"pending": f"{pending(name)}s"})
        world.ask(name, "dry-run")
    for name in WATCHED:
        world, run = worlds.of(name), f"{name}-1"
        causes = filled(CAUSES[name].words, namespace.name)
        result["waiting"][name] = [says(world, ["why", run], f"Its step {run}-plan waits for its pod: ", *causes), says(world, ["describe", "run", run], "; ", *causes)]
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
        assert took(seen["task"]) < pending(name)
    else:
        assert pending(name) <= took(seen["task"])


@pytest.mark.parametrize("name", WATCHED)
def test_who_asks_while_it_waits_is_told_what_for(told, name):
    why, describe = told["waiting"][name]
    for words in filled(CAUSES[name].words, told["tag"]):
        assert words in why and words in describe


def test_whoever_goes_with_a_run_is_told_once_what_it_waits_for(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL, placement={"serviceAccountName": "late"}, timeouts={"pending": f"{LATE}s"})
        shown = home.dayfly("run", "net", "--action", "dry-run", code=1).stdout
        assert shown.count("plan: waits: the pod's service account does not exist") == 1
        assert 'serviceaccount "late" not found' in shown


def test_what_did_not_start_leaves_nothing_behind(told):
    assert told["secrets"] == {"there"}


def test_what_comes_within_the_pending_time_lets_the_step_go_on(home, namespace, tofu):
    missing = {"secretMounts": [{"name": "late", "mountPath": "/late"}], "serviceAccountName": "late"}
    refused = {"envFrom": [{"secretRef": {"name": "late"}}]}
    with Pods(home, namespace, tofu) as world:
        world.executor("wait", SMALL, placement=missing)
        world.executor("again", SMALL, placement=refused)
        run, refused = world.ask("wait", "dry-run"), world.ask("again", "dry-run")
        says(world, ["why", run], 'serviceaccount "late" not found')
        namespace.kubectl("create", "serviceaccount", "late")
        says(world, ["why", run], 'secret "late" not found')
        says(world, ["why", refused], 'secret "late" not found')
        assert world.document("taskactions", f"{refused}-plan")["status"]["phaseHistory"][-1]["phase"] == "Initializing"
        namespace.kubectl("create", "secret", "generic", "late", "--from-literal=a=b")
        for name in (run, refused):
            assert world.ended(name)["reason"] == "Planned"


def test_an_unclaimed_step_that_loses_its_pod_or_its_job_gets_another(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL, placement=on_node(namespace.name))
        run = world.ask("net", "dry-run")
        step = f"{run}-plan"
        pod = world.wait_pod(step)
        namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
        pod = world.wait_pod(step, lambda p: p["metadata"]["uid"] != pod["metadata"]["uid"])
        namespace.kubectl("delete", "job", step, "--wait=false")
        world.wait_pod(step, lambda p: p["metadata"]["uid"] != pod["metadata"]["uid"])
        namespace.cluster.kubectl("label", "node", namespace.cluster.node, f"dayfly.test/node={namespace.name}", "--overwrite")
        assert world.ended(run)["reason"] == "Planned"
        assert len(namespace.get("jobs")) == 1


def test_a_node_whose_kubelet_is_gone_is_named_and_the_next_run_works_when_it_is_back(home, alone, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL, timeouts={"pending": "5s"})
        alone.stop_part("kubelet")
        status = world.ended(world.ask("net", "dry-run"))
        assert status["reason"] == "NodeFailed" and alone.node in status["message"], status
        alone.bring_back()
        wait_for("the pod to go", lambda: not namespace.get("pods"))
        assert world.ended(world.ask("net", "dry-run"))["reason"] == "Planned"


def claim(world, step, pod):
    """What the runner does first, with the token that the pod has of Kubernetes."""
    uid = world.document("taskactions", step)["metadata"]["uid"]
    token = world.namespace.pod_token(pod["metadata"]["name"], f"dayfly/{uid}")
    status, _, body = world.server.request("POST", f"/v1/steps/{uid}/claim", {"claimId": "a" * 32},
                                           {"Authorization": f"Bearer {token}"})
    assert status == 200, body


def test_a_claimed_step_whose_node_is_removed_ends_with_that(home, namespace, tofu):
    node = f"{namespace.name}-gone"
    add_silent_node(namespace.cluster, node)  # nobody runs its pods: this test is the runner, as far as it comes
    try:
        with Pods(home, namespace, tofu) as world:
            world.executor("net", SMALL, placement=on_node(node, TOLERATE_ALL))
            run = world.ask("net", "dry-run")
            claim(world, f"{run}-plan", world.wait_pod(f"{run}-plan", lambda pod: pod["spec"].get("nodeName")))
            namespace.cluster.kubectl("delete", "node", node)
            status = world.ended(run)
            assert (status["phase"], status["reason"]) == ("Failed", "NodeLost"), status
            assert "PodGC: node no longer exists" in status["message"]
            assert "node" in home.dayfly("why", run).stdout
    finally:
        namespace.cluster.kubectl("delete", "node", node, "--ignore-not-found")


# ---- applies that somebody or something ends ---------------------------------------------------------------

def preempt(world, mid):
    """A pod of a higher priority that needs the place which only one can have."""
    tag = world.namespace.name
    slot = {f"{tag}.dayfly.test/slot": "1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important"}, "spec": {
        "priorityClassName": f"{tag}-high", "terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [
            {"name": "c", "image": world.namespace.cluster.pause_image, "resources": {"requests": slot, "limits": slot}}]}}
    world.namespace.apply(pod)


EAT = "tail /dev/zero"
EAT_IN_TOFU = SLOW % "true" + """
resource "terraform_data" "fat" {
  input = length([for a in range(1000 * terraform_data.slow.output) : format("%0500000d", a)])
}
"""
# name: (reason, exit code or None, what does it once the apply is in its middle, how the executor is made)
ENDS = {
    "delete-job": ("JobDeleted", None, delete("job"), {}),
    "delete-pod": ("PodDeleted", None, delete("pod"), {}),
    "kill-pod": ("PodDeleted", None, delete("pod", "--force", "--grace-period=0"), {}),
    "kill-runner": ("RunnerKilled", None, kill_runner, {}),
    "eviction": ("Evicted", None, evict, {}),
    "preemption": ("Preempted", None, preempt, {"placement": {"priorityClassName": "{tag}-low", "resources": {
        "limits": {"{tag}.dayfly.test/slot": "1"}}}}),
    "job-deadline": ("DeadlineExceeded", None, limit("job"), {}),
    "pod-deadline": ("DeadlineExceeded", None, limit("pod"), {}),
    "timeout": ("TimedOut", 4, None, {"timeouts": {"apply": "25s"}}),
    "memory": ("OOMKilled", None, None, {"command": EAT, "placement": {"resources": {"limits": {"memory": "192Mi"}}}}),
    "memory-of-tofu": ("OOMKilled", None, None, {"module": EAT_IN_TOFU,
                                                 "placement": {"resources": {"limits": {"memory": "192Mi"}}}}),
}


def prepare_preemption(namespace, stack):
    """Priorities below everybody else's, and a thing of which the node has one."""
    cluster, tag = namespace.cluster, namespace.name
    for word, value in (("low", -20), ("high", -10)):
        cluster.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"{tag}-{word}"}, "value": value}))
        stack.callback(cluster.kubectl, "delete", "priorityclass", f"{tag}-{word}", check=False)
    slot = f"{tag}.dayfly.test~1slot"
    change = ["patch", "node", cluster.node, "--subresource=status", "--type=json", "-p"]
    cluster.kubectl(*change, json.dumps([{"op": "add", "path": f"/status/capacity/{slot}", "value": "1"}]))
    stack.callback(cluster.kubectl, *change, json.dumps([{"op": "remove", "path": f"/status/capacity/{slot}"}]), check=False)


@pytest.fixture(scope="module")
def ended(cluster, tofu, tmp_path_factory):
    """Every kind of end, all at once in applies of their own."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(kubernetes.Calm(alone=False))
        namespace = kubernetes.Namespace(cluster)
        stack.callback(namespace.close)
        prepare_preemption(namespace, stack)
        directory = tmp_path_factory.mktemp("ends")
        world = stack.enter_context(Pods(dayfly.Home(directory / "home", tofu), namespace, tofu, config=MANY))
        return end_all(world, directory / "ledgers")


class Ends(dict):
    """What is known of each end; an end that never came fails its own tests alone."""

    @contextlib.contextmanager
    def noting(self, name):
        try:
            yield
        except AssertionError as error:
            self[name] = error

    def __getitem__(self, name):
        seen = super().__getitem__(name)
        if isinstance(seen, AssertionError):
            raise seen
        return seen

    def came(self):
        return [name for name, seen in self.items() if not isinstance(seen, AssertionError)]


def end_all(world, ledgers):
    mids, result = {}, Ends()
    for name, (_, _, _, how) in ENDS.items():
        mids[name] = Mid(world, ledgers, name, **filled(how, world.namespace.name))
    for name, mid in mids.items():
        with result.noting(name):
            mid.wait_middle()
            if ENDS[name][2]:
                ENDS[name][2](world, mid)
    for name in [name for name in mids if name not in result]:
        with result.noting(name):
            mid, status = mids[name], world.ended(mids[name].run)
            mid.go()
            result[name] = {"run": status, "task": world.document("taskactions", mid.job), "state": mid.state(),
                            "why": world.home.dayfly("why", mid.run).stdout, "starts": mid.starts(),
                            "log": world.home.dayfly("logs", mid.run).stdout}
    world.namespace.kubectl("delete", "pod", "important", "--wait=false", "--ignore-not-found")
    again = {name: world.ask(name, "dry-run") for name in result.came()}
    for name, run in again.items():
        with result.noting(name):
            result[name].update({"again": world.ended(run), "starts later": mids[name].starts()})
    return result


@pytest.mark.parametrize("name", ENDS)
def test_an_apply_that_is_ended_from_outside_says_by_what(ended, name):
    (reason, code, _, _), seen = ENDS[name], ended[name]
    assert (seen["run"]["phase"], seen["run"]["reason"]) == ("Failed", reason), seen["run"]
    assert f"{reason}: " in seen["why"] and "What to do: " in seen["why"]
    if code is not None:
        assert seen["task"]["status"]["exitCode"] == code


@pytest.mark.parametrize("name", ENDS)
def test_an_apply_that_was_ended_is_not_started_again_and_the_next_plan_works(ended, name):
    seen = ended[name]
    assert (seen["starts"], seen["starts later"]) == (1, 1)
    assert seen["again"]["reason"] == "Planned", seen["again"]
    listed = {i["address"] for i in seen["task"]["status"].get("unrecorded", {}).get("items", [])}
    assert "terraform_data.first" in {*seen["state"], *listed}
    if name not in ("kill-pod", "kill-runner", "memory-of-tofu"):  # tofu was asked to end: it has written everything
        assert "terraform_data.first" in seen["state"], (seen["log"], seen["run"])


# ---- cancel ------------------------------------------------------------------------------------------------

def is_over(pod):
    """Does nothing of this pod run any more?"""
    statuses = pod["status"].get("containerStatuses", []) if pod else []
    return all("terminated" in s["state"] for s in statuses)


def test_a_cancel_in_mid_apply_interrupts_tofu_once_and_ends_when_the_pod_is_gone(home, namespace, tofu, tmp_path):
    with Pods(home, namespace, tofu) as world:
        mid = Mid(world, tmp_path, "net")
        mid.wait_middle()
        home.dayfly("cancel", mid.run, "--reason", "wrong region")
        status = world.ended(mid.run)
        pod = world.pod_of(mid.job)
        assert is_over(pod)
        assert (status["phase"], status["reason"]) == ("Canceled", "Canceled"), status
        assert "wrong region" in home.dayfly("why", mid.run).stdout
        assert "terraform_data.first" in mid.state()
        log = home.dayfly("logs", mid.run).stdout
        assert log.count("Interrupt received") == 1 and "Two interrupts" not in log
        namespace.wait_gone("job", mid.job)
        assert world.pod_of(mid.job) is None
        mid.go()
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert mid.starts() == 2  # that of the second run


def test_a_cancel_before_the_pod_starts_leaves_nothing(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        world.executor("net", SMALL, placement={"nodeSelector": {"disk": "nowhere"}})
        run = world.ask("net")
        world.wait_pod(f"{run}-plan")
        home.dayfly("cancel", run)
        assert world.ended(run)["reason"] == "Canceled"
        namespace.wait_gone("job", f"{run}-plan")
        assert not namespace.get("pods") and not namespace.get("secrets")
        assert "claimedBy" not in world.document("taskactions", f"{run}-plan")["status"]


def test_a_cancel_in_the_plan_ends_tofu(home, namespace, tofu):
    silent = socket.create_server((NODE, 0))
    with silent, Pods(home, namespace, tofu) as world:
        world.executor("net", f'module "m" {{ source = "http://{NODE}:{silent.getsockname()[1]}/m.zip" }}\n')
        run = world.ask("net")
        silent.settimeout(60)
        held = silent.accept()[0]
        home.dayfly("cancel", run)
        assert world.ended(run)["phase"] == "Canceled"
        assert is_over(world.pod_of(f"{run}-plan"))
        held.close()


def test_a_spawner_that_is_stopped_leaves_its_pods_alone_and_finds_them_again(home, namespace, tofu, tmp_path):
    with Pods(home, namespace, tofu) as world:
        mid = Mid(world, tmp_path, "net")
        mid.wait_middle()
        assert world.server.stop() == 0
        assert not is_over(world.pod_of(mid.job))
        world.start()
        mid.go()
        assert world.ended(mid.run)["reason"] == "Applied"
        assert mid.starts() == 1
        assert world.document("runs", mid.run).get("spec", {}).get("cancel") is None
