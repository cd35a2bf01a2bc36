"""Where and how the pod of a step runs: every field of a placement, proven by the pod that really was."""

import datetime
import hashlib
import json
import os

import pytest

from lib import cluster as kubernetes
from lib import dayfly
from lib.dayfly import wait_for
from lib.pods import Pods, claim_on, reach

LOOK = """
variable "greeting" { default = "none" }
resource "terraform_data" "look" {
  input = var.greeting
  provisioner "local-exec" {
    command = <<-SH
      { cat /etc/some/config/*; sha256sum /etc/some/secret/password; cat /etc/resolv.conf /etc/hosts; id; } 2>&1
      ls -ld /scratch /cache; touch /scratch/mine && echo "scratch can be written"
      touch /cache/by-$(hostname) 2>&1; touch /etc/some/secret/x 2>&1
      env | sort; date
    SH
  }
}
"""
TERRAKUBE = {
    "TERRAKUBE_ENABLE_EPHEMERAL_EXECUTOR": "true",
    "EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS": "%(label)s=yes;kubernetes.io/os=linux",
    "EPHEMERAL_CONFIG_TOLERATIONS": "gpu:Exists:NoSchedule;dedicated=ci:Equal:NoExecute;plain",
    "EPHEMERAL_CONFIG_SERVICE_ACCOUNT": "runner-sa",
    "EPHEMERAL_CONFIG_ANNOTATIONS": "a.example/one=1;a.example/two=x",
    "EPHEMERAL_CONFIG_POD_ANNOTATIONS": "p=q",
    "EPHEMERAL_CONFIG_LABELS": "team=red",
    "EPHEMERAL_CONFIG_MAP_NAME": "extra-files",
    "EPHEMERAL_CONFIG_MAP_MOUNT_PATH": "/etc/some/config",
    "EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT": "fsGroup=2000;runAsNonRoot=true;runAsUser=1002",
    "EPHEMERAL_CONFIG_SECURITY_CONTEXT": "allowPrivilegeEscalation=false",
    "EPHEMERAL_CPU_REQUEST": "25m", "EPHEMERAL_CPU_LIMIT": "1",
    "EPHEMERAL_MEMORY_REQUEST": "56Mi", "EPHEMERAL_MEMORY_LIMIT": "1Gi",
    "EPHEMERAL_STORAGE_REQUEST": "1Mi", "EPHEMERAL_STORAGE_LIMIT": "1Gi",
    "EPHEMERAL_JOB_ENV_VARS": "TerrakubeRedisSSL=true;EXTRA=from keys",
    "EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP": "extra-env",
    "TF_PLUGIN_CACHE_DIR": "/cache", "PVC_CLAIM_NAME": "plugin-cache",
}


class World:
    """A spawner, a namespace and a label of the node that no other test has, for all tests of a group."""

    def __init__(self, cluster, tofu, directory, **kubernetes_settings):
        self.cluster = cluster
        self.namespace = kubernetes.Namespace(cluster)
        self.label = f"test.dayfly.dev/{self.namespace.name}"
        cluster.kubectl("label", "node", cluster.node, f"{self.label}=yes")
        self.volumes = []
        self.directory = directory
        reach(directory)
        self.pods = Pods(dayfly.Home(directory / "home", tofu), self.namespace, tofu, **kubernetes_settings)

    def claim(self, name):
        self.volumes.append(claim_on(self.namespace, self.directory / name, name))

    def close(self):
        self.cluster.kubectl("label", "node", self.cluster.node, f"{self.label}-", check=False)
        self.namespace.close()
        for volume in self.volumes:
            self.cluster.kubectl("delete", "pv", volume, "--wait=false", check=False)


@pytest.fixture(scope="module")
def make_world(cluster, tofu, tmp_path_factory):
    worlds = []
    with kubernetes.Calm(alone=False):
        def make(**settings):
            worlds.append(World(cluster, tofu, tmp_path_factory.mktemp("world"), **settings))
            worlds[-1].pods.start()
            return worlds[-1]
        yield make
        for world in worlds:
            try:
                world.pods.server.stop()
            finally:
                world.close()


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def account(name):
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def container_of(pod, name="runner"):
    return next(c for c in pod["spec"]["containers"] if c["name"] == name)


def has(whole, part):
    """Is everything of part in whole: members of objects, items of lists?"""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and has(whole[k], v) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(has(w, p) for w in whole) for p in part)
    return whole == part


class Seen:
    """One run and what it left to look at: its apply's Job, pod and log."""

    def __init__(self, world, run, job, pod):
        self.job, self.pod = job, pod
        self.container = container_of(self.pod)
        self.log = world.pods.home.dayfly("logs", run).stdout
        self.world = world


# ---- all fields, at all three levels

@pytest.fixture(scope="module")
def placed(make_world):
    """A run with everything that a placement can say, told by configuration, Executor and Run together."""
    world = make_world(placement={
        "nodeSelector": {"kubernetes.io/os": "linux"}, "labels": {"level": "config", "of-config": "yes"},
        "annotations": {"level": "config"}, "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "1Gi"}},
        "env": [{"name": "LEVEL", "value": "config"}, {"name": "OF_CONFIG", "value": "yes"}],
    })
    name = world.namespace.name
    world.claim("shared")
    world.namespace.apply(
        config_map("files", one="text of one\n", two="not mounted\n"), config_map("more-env", FROM_MAP="yes"),
        secret("passwords", password="s3cret of the mount"), account("tofu"),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7},
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runc"})
    world.pods.executor("net", LOOK, {
        "configMapMounts": [{"name": "files", "mountPath": "/etc/some/config", "items": [{"key": "one", "path": "first"}]}],
        "secretMounts": [{"name": "passwords", "mountPath": "/etc/some/secret", "defaultMode": 0o440}],
        "nodeSelector": {world.label: "yes"}, "labels": {"level": "executor", "of-executor": "yes"},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "ci", "effect": "NoExecute",
                         "tolerationSeconds": 60}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": world.label, "operator": "In", "values": ["yes"]}]}]}}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                                       "whenUnsatisfiable": "ScheduleAnyway",
                                       "labelSelector": {"matchLabels": {"of-executor": "yes"}}}],
        "priorityClassName": name, "runtimeClassName": name, "serviceAccountName": "tofu",
        "podAnnotations": {"of-pod": "yes"}, "annotations": {"level": "executor"},
        "env": [{"name": "LEVEL", "value": "executor"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "more-env"}}],
        "volumes": [{"name": "scratch", "mountPath": "/scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                    {"name": "shared", "mountPath": "/cache", "persistentVolumeClaim": {"claimName": "shared"}}],
        "podSecurityContext": {"supplementalGroups": [4321]}, "securityContext": {"runAsUser": 65531},
        "dnsConfig": {"searches": ["tests.example"], "options": [{"name": "ndots", "value": "3"}]},
        "podTemplate": {"spec": {"hostAliases": [{"ip": "10.9.8.7", "hostnames": ["alias.example"]}],
                                 "priorityClassName": name,
                                 "containers": [{"name": "beside", "image": world.cluster.pause_image,
                                                 "imagePullPolicy": "IfNotPresent"}]}},
    }, environment=[{"name": "OF_SPEC", "value": "told to tofu"}], timeouts={"grace": "5s"})
    status, _, body = world.pods.server.request(
        "POST", "/v1/executors/net/runs",
        {"action": "provision", "autoApprove": True, "placement": {
            "labels": {"level": "run"}, "annotations": {"of-run": "yes"}, "resources": {"requests": {"memory": "64Mi"}},
            "env": [{"name": "LEVEL", "value": "run"}]}},
        {"Authorization": f"Bearer {world.pods.home.env['DAYFLY_TOKEN']}"})
    assert status == 201, body
    run = json.loads(body)["metadata"]["name"]
    pod = world.pods.wait_pod(f"{run}-apply", lambda p: p["spec"].get("nodeName"))
    job = world.namespace.get("job", f"{run}-apply")
    assert world.pods.ended(run)["reason"] == "Applied"
    return Seen(world, run, job, pod)


def test_the_pod_runs_where_labels_affinity_and_tolerations_say(placed):
    spec, label = placed.pod["spec"], placed.world.label
    assert spec["nodeName"] == placed.world.cluster.node
    assert spec["nodeSelector"] == {label: "yes", "kubernetes.io/os": "linux"}
    assert has(spec["tolerations"], [{"key": "dedicated", "operator": "Equal", "value": "ci", "effect": "NoExecute",
                                      "tolerationSeconds": 60}])
    assert has(spec["affinity"], {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": label}]}]}}})
    assert spec["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"


def test_the_pod_runs_as_its_classes_account_and_security_contexts_say(placed):
    spec, name = placed.pod["spec"], placed.world.namespace.name
    assert (spec["priorityClassName"], spec["priority"], spec["runtimeClassName"]) == (name, 7, name)
    assert spec["serviceAccountName"] == "tofu" and spec["automountServiceAccountToken"] is False
    assert has(spec["securityContext"], {"runAsNonRoot": True, "fsGroup": 65532, "supplementalGroups": [4321],
                                         "seccompProfile": {"type": "RuntimeDefault"}})
    assert has(placed.container["securityContext"], {"runAsUser": 65531, "readOnlyRootFilesystem": True,
                                                     "capabilities": {"drop": ["ALL"]}})
    assert "uid=65531 gid=65532" in placed.log and "4321" in placed.log
    claimed = placed.world.pods.document("taskactions", "net-1-apply")["status"]["engineRef"]
    assert claimed["serviceAccountName"] == "tofu"


def test_labels_and_annotations_are_on_job_and_pod(placed):
    labels = {"level": "run", "of-config": "yes", "of-executor": "yes", "dayfly.dev/run": "net-1",
              "dayfly.dev/executor": "net", "dayfly.dev/action": "apply"}
    assert has(placed.job["metadata"]["labels"], labels) and has(placed.pod["metadata"]["labels"], labels)
    assert has(placed.job["metadata"]["annotations"], {"level": "executor", "of-run": "yes"})
    assert placed.pod["metadata"]["annotations"]["of-pod"] == "yes"
    assert "of-run" not in placed.pod["metadata"]["annotations"] and "of-pod" not in placed.job["metadata"]["annotations"]


def test_tofu_sees_the_mounted_files_and_cannot_change_them(placed):
    assert "text of one" in placed.log and "not mounted" not in placed.log
    digest = hashlib.sha256(b"s3cret of the mount").hexdigest()
    assert f"{digest}  /etc/some/secret/password" in placed.log
    assert "scratch can be written" in placed.log
    assert "/etc/some/secret/x" in placed.log and "Read-only file system" in placed.log


def test_a_volume_on_a_claim_is_the_same_for_plan_and_apply(placed):
    assert any(name.startswith("by-net-1-apply") for name in os.listdir(placed.world.directory / "shared"))


def test_the_runner_has_the_environment_and_tofu_only_what_the_executor_gives_it(placed):
    env = {e["name"]: e for e in placed.container["env"]}
    assert env["LEVEL"]["value"] == "run" and env["OF_CONFIG"]["value"] == "yes"
    assert env["NODE"]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert has(placed.container["envFrom"], [{"prefix": "P_", "configMapRef": {"name": "more-env"}}])
    assert "OF_SPEC=told to tofu" in placed.log
    for name in ("LEVEL=", "OF_CONFIG=", "P_FROM_MAP="):
        assert name not in placed.log


def test_resources_of_all_levels_meet_in_the_container(placed):
    assert placed.container["resources"] == {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}


def test_names_are_looked_up_as_dns_and_host_aliases_say(placed):
    assert "tests.example" in placed.log and "ndots:3" in placed.log
    assert "10.9.8.7" in placed.log and "alias.example" in placed.log


def test_a_container_beside_the_runner_ends_with_the_step(placed):
    assert container_of(placed.pod, "beside")["image"] == placed.world.cluster.pause_image
    placed.world.namespace.wait_gone("job", "net-1-apply")
    assert placed.world.pods.pod_of("net-1-apply") is None


# ---- Terrakube's keys

@pytest.fixture(scope="module")
def workspace(make_world):
    """A run of an Executor whose environment has every key of a Terrakube workspace."""
    world = make_world(placement={"nodeSelector": {"of-the-instance": "replaced"}})
    world.claim("plugin-cache")
    world.namespace.apply(config_map("extra-files", file="text of a file\n"), config_map("extra-env", FROM_MAP="yes"),
                          account("runner-sa"))
    keys = {k: v % {"label": world.label} for k, v in TERRAKUBE.items()}
    world.pods.executor("net", LOOK, environment=[{"name": k, "value": v} for k, v in keys.items()])
    answer = world.pods.run("net")
    assert answer["run"]["status"]["reason"] == "Applied"
    seen = Seen(world, "net-1", world.namespace.get("job", "net-1-apply"), world.pods.pod_of("net-1-apply"))
    seen.keys = keys
    return seen


def test_the_keys_of_a_terrakube_workspace_make_the_fields_that_terrakube_makes(workspace):
    """As recorded of Terrakube 2.28.0 for the same keys (and, for the later ones, as its source says)."""
    spec, container = workspace.pod["spec"], workspace.container
    assert spec["nodeSelector"] == {workspace.world.label: "yes", "kubernetes.io/os": "linux"}
    assert has(spec["tolerations"], [{"effect": "NoSchedule", "key": "gpu", "operator": "Exists"},
                                     {"effect": "NoExecute", "key": "dedicated", "operator": "Equal", "value": "ci"},
                                     {"key": "plain", "operator": "Exists"}])
    assert spec["serviceAccountName"] == "runner-sa"
    assert has(spec["securityContext"], {"fsGroup": 2000, "runAsNonRoot": True, "runAsUser": 1002})
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert has(workspace.job["metadata"], {"annotations": {"a.example/one": "1", "a.example/two": "x"}, "labels": {"team": "red"}})
    assert has(workspace.pod["metadata"], {"annotations": {"p": "q"}, "labels": {"team": "red"}})
    assert container["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
        "requests": {"cpu": "25m", "memory": "56Mi", "ephemeral-storage": "1Mi"}}
    assert has(container["env"], [{"name": "TerrakubeRedisSSL", "value": "true"}, {"name": "EXTRA", "value": "from keys"}])
    assert has(container["envFrom"], [{"configMapRef": {"name": "extra-env"}}])
    mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
    volumes = {v["name"]: v for v in spec["volumes"]}
    assert volumes[mounts["/etc/some/config"]]["configMap"]["name"] == "extra-files"
    assert volumes[mounts["/cache"]]["persistentVolumeClaim"]["claimName"] == "plugin-cache"


def test_the_keys_are_the_environment_of_tofu_as_well(workspace):
    for key, value in workspace.keys.items():
        assert f"{key}={value}" in workspace.log, key
    assert "text of a file" in workspace.log and "uid=1002" in workspace.log


def test_two_runs_share_the_plugin_cache_on_a_claim(workspace):
    world = workspace.world
    world.pods.executor("next", LOOK, environment=[{"name": k, "value": v} for k, v in workspace.keys.items()])
    assert world.pods.run("next")["run"]["status"]["reason"] == "Applied"
    names = {n.rsplit("-", 1)[0] for n in os.listdir(world.directory / "plugin-cache") if n.startswith("by-")}
    assert names == {"by-net-1-apply", "by-next-1-apply"}


# ---- a second node

@pytest.fixture
def second_node(cluster):
    """A node that only its API object is: the scheduler puts pods there, nobody runs them."""
    name = f"node-{os.urandom(4).hex()}"
    taint = {"key": f"test.dayfly.dev/{name}", "value": "ci", "effect": "NoSchedule"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"taints": [taint]}}
    cluster.kubectl("create", "-f", "-", input=json.dumps(node))
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    resources = {"cpu": "4", "memory": "4Gi", "pods": "10", "ephemeral-storage": "10Gi"}
    cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
        "capacity": resources, "allocatable": resources, "conditions": [
            {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now, "lastTransitionTime": now}]}}))
    yield name, taint
    cluster.kubectl("delete", "node", name, "--wait=false")


def test_a_taint_keeps_pods_away_until_they_tolerate_it(home, namespace, tofu, second_node):
    node, taint = second_node
    there = {"nodeSelector": {"kubernetes.io/hostname": node}}
    with Pods(home, namespace, tofu) as pods:
        pods.executor("away", LOOK, there, timeouts={"pending": "2s"})
        status = pods.run("away", code=1)["run"]["status"]
        assert status["reason"] == "Unschedulable" and "taint" in status["message"], status
        toleration = {"key": taint["key"], "operator": "Equal", "value": "ci", "effect": "NoSchedule"}
        pods.executor("there", LOOK, {**there, "tolerations": [toleration]}, timeouts={"pending": "60s"})
        process, run = pods.begin("there")
        pod = pods.wait_pod(f"{run}-plan", lambda p: p["spec"].get("nodeName"))
        assert pod["spec"]["nodeName"] == node
        pods.home.dayfly("cancel", run)
        namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0", check=False)
        assert pods.ended(run)["phase"] == "Canceled"
        process.communicate()


# ---- what the instance has for classes and for single executors

SMALL = {"requests": {"cpu": "15m", "memory": "48Mi"}, "limits": {"memory": "320Mi"}}
MEMORY = """
resource "terraform_data" "look" {
  provisioner "local-exec" { # the file of cgroup v2, or of v1
    command = "cd /sys/fs/cgroup; echo it may have $(cat memory.max memory/memory.limit_in_bytes) bytes, region $REGION"
  }
}
"""


def test_a_class_brings_its_steps_to_its_nodes_and_no_more_than_its_limit(home, namespace, tofu, second_node):
    node, taint = second_node
    large = {"limit": 1, "placement": {"nodeSelector": {"kubernetes.io/hostname": node}, "resources": {"requests": {"cpu": "2"}},
                                       "tolerations": [{"key": taint["key"], "operator": "Exists"}]}}
    small = {"placement": {"resources": SMALL}}
    with Pods(home, namespace, tofu, config={"classes": {"large": large, "small": small}}) as pods:
        pods.executor("net", MEMORY, timeouts={"pending": "60s"}, **{"class": "large"})
        pods.executor("dns", MEMORY, **{"class": "large"})
        process, run = pods.begin("net")
        pod = pods.wait_pod(f"{run}-plan", lambda p: p["spec"].get("nodeName"))
        assert pod["spec"]["nodeName"] == node and container_of(pod)["resources"] == {"requests": {"cpu": "2"}}
        pods.home.dayfly("run", "dns", "--detach")
        wait_for("the second of the class to wait for the first", lambda: "1 step of the class large runs, the limit is 1 (classes.large.limit)"
                 in json.dumps(pods.document("taskactions", "dns-1-plan")["status"]["conditions"]))

        pods.home.dayfly("cancel", "dns-1")
        assert pods.run("dns", "--class", "small")["run"]["status"]["phase"] == "Succeeded"
        apply = pods.pod_of("dns-2-apply")
        assert apply["spec"]["nodeName"] != node and container_of(apply)["resources"] == SMALL
        assert f"it may have {320 << 20} bytes" in pods.home.dayfly("logs", "dns-2").stdout

        pods.home.dayfly("cancel", run)
        namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0", check=False)
        assert pods.ended(run)["phase"] == "Canceled"
        process.communicate()


def test_an_executor_has_what_its_workspace_gives_it_and_others_have_not(home, namespace, tofu):
    namespace.apply(account("of-net"), account("of-run"))
    net = {"class": "small", "placement": {"annotations": {"team": "net", "level": "workspace"}},
           "environment": [{"name": "EPHEMERAL_CONFIG_SERVICE_ACCOUNT", "value": "of-net"}, {"name": "REGION", "value": "west"}]}
    config = {"classes": {"small": {"placement": {"resources": SMALL}}}, "workspaces": {"net": net}}
    with Pods(home, namespace, tofu, config=config, placement={"annotations": {"level": "config"}}) as pods:
        pods.executor("net", MEMORY)
        pods.executor("dns", MEMORY)
        pods.run("net")
        job, pod = namespace.get("job", "net-1-apply"), pods.pod_of("net-1-apply")
        assert has(job["metadata"]["annotations"], {"team": "net", "level": "workspace"})
        assert pod["spec"]["serviceAccountName"] == "of-net" and container_of(pod)["resources"] == SMALL
        assert f"{320 << 20} bytes, region west" in pods.home.dayfly("logs", "net-1").stdout
        pods.run("dns")
        job, pod = namespace.get("job", "dns-1-apply"), pods.pod_of("dns-1-apply")
        assert has(job["metadata"]["annotations"], {"level": "config"}) and "team" not in job["metadata"]["annotations"]
        assert pod["spec"]["serviceAccountName"] == "default" and not container_of(pod)["resources"]


# ---- what cannot be

def test_a_class_that_is_not_configured_is_refused_and_those_that_are_are_named(home, namespace, tofu):
    with Pods(home, namespace, tofu, config={"classes": {"large": {}, "small": {}}}) as pods:
        pods.executor("net", MEMORY, **{"class": "lagre"})
        said = pods.home.dayfly("run", "net", "--auto-approve", code=3)
        assert 'class: "lagre" is not among the classes of this service: large, small' in said.stderr
    assert namespace.get("jobs") == []


def test_a_bad_key_ends_with_the_key_the_value_and_the_reason(home, namespace, tofu):
    with Pods(home, namespace, tofu) as pods:
        document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"},
                    "spec": {"source": {"url": "file:///module/module.tar.gz", "kind": "archive"},
                             "environment": [{"name": "EPHEMERAL_CONFIG_TOLERATIONS", "value": "foo=bar"}]}}
        said = pods.home.dayfly("create", "-f", "-", input=json.dumps(document), code=None)
        assert said.returncode != 0
        for word in ("EPHEMERAL_CONFIG_TOLERATIONS", "Exists", "value"):
            assert word in said.stderr, said.stderr
    assert namespace.get("jobs") == []
