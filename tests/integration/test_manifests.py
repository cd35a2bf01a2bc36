"""The plain manifests of the operator, and the make targets that people know from other operators."""

import json
import os
import re
import shutil
import subprocess
import uuid

import pytest
import yaml

from lib import crds, pods
from lib.cluster import Namespace, let_go, with_kubectl
from lib.dayfly import ROOT, wait_for
from lib.registry import Registry
from lib.release import CHART, helm

VERSION = (ROOT / "VERSION").read_text().strip()
TARGETS = ["install", "uninstall", "deploy", "undeploy", "build-installer", "docker-build", "docker-push", "help"]


def user(env):
    """The environment of somebody who has kubectl."""
    return {**os.environ, "PATH": with_kubectl(os.environ["PATH"]), **env}


def try_make(*args, tree=ROOT, **env):
    """`make` as a user calls it, in a checkout."""
    return subprocess.run(["make", "--no-print-directory", *args], cwd=tree, env=user(env), capture_output=True,
                          text=True, check=False)


def make(*args, tree=ROOT, **env):
    result = try_make(*args, tree=tree, **env)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def render(what, **env):
    result = subprocess.run([ROOT / "rbac/render", what], env=user(env), capture_output=True, text=True, check=True)
    return [doc for doc in yaml.safe_load_all(result.stdout) if doc]


def one(docs, kind, name="dayfly"):
    found, = [d for d in docs if d["kind"] == kind and d["metadata"]["name"] == name]
    return found


def chart(*args):
    return [d for d in yaml.safe_load_all(helm("template", "dayfly", CHART, "-n", "dayfly", *args).stdout) if d]


def rules(role):
    """What a role allows, one (group, resource, names, verb) each."""
    return {(group, resource, tuple(rule.get("resourceNames", [])), verb) for rule in role["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_help_names_every_target():
    said = make("help")
    for target in TARGETS:
        assert re.search(rf"^make {target} ", said, re.M), target


def tool_for_images(path, **env):
    result = subprocess.run([ROOT / "images/tool"], env={**os.environ, "PATH": path, **env}, capture_output=True, text=True, check=True)
    return result.stdout.strip(), result.stderr


def test_the_image_of_a_runner_gets_the_tofu_of_path_or_the_pinned_one_unless_another_is_named(tofu, tmp_path):
    system, mine, shim = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", tmp_path / "mine", tmp_path / "shim"
    for directory in (mine, shim):
        directory.mkdir()
    (mine / "tofu").symlink_to(tofu)
    (shim / "tofu").write_text("#!/bin/sh\nexec tofu-1.2\n")
    (shim / "tofu").chmod(0o755)
    chosen, said = tool_for_images(f"{mine}:{system}")
    assert chosen == os.path.realpath(tofu) and "WITH_TOFU=none" in said
    pinned = subprocess.run([ROOT / "tests/tools/get-tofu"], capture_output=True, text=True, check=True).stdout.strip()
    for path in (system, f"{shim}:{system}"):
        chosen, said = tool_for_images(path)
        assert chosen == pinned and "pinned OpenTofu" in said
    assert tool_for_images(f"{mine}:{system}", WITH_TOFU="none") == ("", "")
    assert tool_for_images(f"{mine}:{system}", WITH_TOFU="/opt/terraform") == ("/opt/terraform", "")
    chosen, said = tool_for_images(f"{mine}:{system}", ARCH="other")
    assert not chosen and "for other name one" in said


def test_without_kubectl_it_is_named_and_so_is_the_way_out():
    result = subprocess.run([ROOT / "rbac/render", "all"], env={**os.environ, "KUBECTL": "absent kubectl"}, capture_output=True,
                            text=True, check=False)
    assert result.returncode == 127 and "there is no absent in PATH; KUBECTL=" in result.stderr


def test_namespace_and_images_are_those_that_were_said():
    docs = render("all", NAMESPACE="infra", IMG="registry.example/dayfly-spawner:9", RUNNER_IMG="registry.example/runner:9")
    for doc in docs:
        assert doc["metadata"].get("namespace", "infra") in ("infra", "infra-steps")
        for subject in doc.get("subjects", []):
            assert subject["namespace"] == "infra"
    assert one(docs, "Namespace", "infra") and one(docs, "Namespace", "infra-steps")
    steps = [d for d in docs if d["metadata"].get("namespace") == "infra-steps"]
    assert {d["kind"] for d in steps} == {"ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"}
    spawner, = one(steps, "NetworkPolicy", "dayfly-runner")["spec"]["egress"][1]["to"]
    assert spawner["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "infra"}
    container, = one(docs, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/dayfly-spawner:9"
    assert {"name": "DAYFLY_KUBERNETES_IMAGE", "value": "registry.example/runner:9"} in container["env"]
    assert {"name": "DAYFLY_KUBERNETES_STEP_NAMESPACE", "value": "$(POD_NAMESPACE)-steps"} in container["env"]


def test_without_a_word_the_images_are_those_of_this_version():
    text = (ROOT / "rbac/operator/deployment.yaml").read_text() + (ROOT / "rbac/samples/taskaction.yaml").read_text()
    assert set(re.findall(r"localhost/\S+:([0-9.]+)", text)) == {VERSION}
    container, = one(render("operator"), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"localhost/dayfly-spawner:{VERSION}"


def test_undeploy_keeps_the_namespace_with_what_is_in_it():
    kinds = {d["kind"] for d in render("inside")}
    assert "Namespace" not in kinds and "CustomResourceDefinition" not in kinds and "Deployment" in kinds
    assert {d["kind"] for d in render("operator")} == kinds | {"Namespace"}


def test_chart_and_manifests_give_the_same_rights():
    """Two ways to install one thing."""
    plain = render("operator")
    for role in ("dayfly", "dayfly-steps"):
        assert rules(one(plain, "Role", role)) == {r for r in rules(one(chart(), "Role", role)) if not r[2]}
    for people in ("viewer", "editor", "workflows", "admin"):
        assert rules(one(plain, "Role", f"dayfly-{people}")) == rules(one(chart(), "Role", f"dayfly-{people}"))
    sidecar = yaml.safe_load((ROOT / "rbac/sidecar/role.yaml").read_text())
    beside = chart("--set", "shape=sidecar,steps.namespace=dayfly")
    assert rules(sidecar) == {r for r in rules(one(beside, "Role")) if not r[2]}


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "NetworkPolicy"])
def test_chart_and_manifests_have_the_same_guards(kind):
    def guards(docs):
        text = {json.dumps({k: v for k, v in d["spec"].items() if k not in ("selector", "podSelector")}, sort_keys=True)
                for d in docs if d["kind"] == kind}
        return {line.replace('"app.kubernetes.io/instance": "dayfly", ', "") for line in text}  # of Helm alone
    assert guards(render("operator")) == guards(chart())


def test_images_are_built_under_their_names_and_pushed(tmp_path):
    with Registry() as registry:
        names = {"IMG": f"{registry.address}/x/dayfly-spawner:7", "RUNNER_IMG": f"{registry.address}/x/dayfly-runner:7",
                 "OUT": str(tmp_path)}
        make("docker-build", *(f"{k}={v}" for k, v in names.items()))
        make("docker-push", "PUSH_FLAGS=--tls-verify=false", *(f"{k}={v}" for k, v in names.items()))
        manifests = {path: json.loads(m) for path, m in registry.manifests.items()}
        assert set(manifests) == {"/v2/x/dayfly-spawner/manifests/7", "/v2/x/dayfly-runner/manifests/7"}
        for manifest in manifests.values():
            assert {layer["digest"] for layer in manifest["layers"]} <= set(registry.blobs)
            config = json.loads(registry.blobs[manifest["config"]["digest"]])
            assert config["config"]["User"] == "65532:65532"


@pytest.mark.parametrize("image, runner", [
    ("localhost/dayfly-spawner:1", "localhost/dayfly-runner:1"),
    ("registry.example:5000/team/executor:tag", "registry.example:5000/team/executor-runner:tag"),
    ("registry.example:5000/executor", "registry.example:5000/executor-runner"),
])
def test_the_image_of_the_runner_has_a_name_of_its_own(image, runner):
    said = subprocess.run(["make", "-n", "deploy", f"IMG={image}"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f" IMG={image} RUNNER_IMG={runner} " in said


@pytest.mark.parametrize("target", ["docker-build", "docker-push", "deploy"])
def test_one_name_for_both_images_is_refused_before_anything_is_done(target):
    result = subprocess.run(["make", "--no-print-directory", "-n", target, "IMG=registry.example/x:1", "RUNNER_IMG=registry.example/x:1"],
                            cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and not result.stdout and "are both registry.example/x:1" in result.stderr


def test_a_push_to_nowhere_is_refused_before_anything_is_sent():
    result = subprocess.run([ROOT / "images/push"], capture_output=True, text=True, check=False,
                            env={k: v for k, v in os.environ.items() if k not in ("IMG", "RUNNER_IMG")})
    assert result.returncode == 1 and "names no registry" in result.stderr


# ---- on the cluster ----


class Operator:
    """The operator in a namespace of its own, by make and kubectl."""

    def __init__(self, namespace, tofu):
        self.namespace = namespace
        self.env = {"KUBECONFIG": str(namespace.cluster.kubeconfig)}
        self.settings = [f"NAMESPACE={namespace.name}", f"IMG={pods.image(namespace.cluster, 'spawner', pods.TAG)}",
                         f"RUNNER_IMG={pods.runner_image(namespace.cluster, tofu)}"]

    def make(self, *args):
        return make(*args, *self.settings, **self.env)

    def wait_ready(self):
        self.namespace.kubectl("rollout", "status", "deployment/dayfly", "--timeout=180s")
        assert self.namespace.get("deployment", "dayfly")["status"]["readyReplicas"] == 2

    def undeploy(self):
        self.make("undeploy")
        wait_for("its pods to go", lambda: not self.namespace.get_all("pods", "app.kubernetes.io/name=dayfly"))
        for kind in ("deployment", "service", "role", "poddisruptionbudget"):
            assert not self.namespace.get(kind), kind
        assert not [n for n in self.namespace.get("networkpolicy") if n["metadata"]["name"].startswith("dayfly")]
        assert self.namespace.cluster.kubectl("get", "namespace", f"{self.namespace.name}-steps")


def samples(namespace, directory):
    """rbac/samples for other namespaces and with this checkout's image, as people change it."""
    shutil.copytree(ROOT / "rbac/samples", directory)
    for file in directory.glob("*.yaml"):
        text = file.read_text().replace("namespace: dayfly", f"namespace: {namespace.name}")
        file.write_text(text.replace(f"dayfly-runner:{VERSION}", f"dayfly-runner:{pods.TAG}"))
    return directory


# Not needed by every story, each for its reason.
RARELY = {
    **{("dayfly.dev", plural, verb): "asked for by REST, or looked at again after a conflict"
       for plural in ("executors", "runs", "taskactions") for verb in ("get", "create")},
    ("dayfly.dev", "revisions", "get"): "looked at again after a conflict",
    ("dayfly.dev", "revisions", "update"): "one whose finalizer somebody took",
    ("dayfly.dev", "audittrails", "get"): "another replica wrote to the same page",
    ("dayfly.dev", "audittrails", "delete"): "the trail is full",
    **{("", "configmaps", verb): "a blob with more than one piece" for verb in ("get", "list", "create", "delete")},
    ("", "persistentvolumeclaims", "get"): "a plugin cache",
    ("", "namespaces", "get"): "`dayfly doctor`",
    ("", "pods", "delete"): "a pod that never claimed its step",
    ("", "pods/log", "get"): "a workflow has printed something",
    ("batch", "jobs", "delete"): "a canceled step, a workflow that is taken away",
    ("batch", "jobs", "get"): "a Job is looked at before it is let go or replaced",
    ("coordination.k8s.io", "leases", "get"): "the watch was behind",
}


def check_rights(namespace):
    """What the operator may do is what it does, and nothing was refused."""
    seen, refused = namespace.cluster.used_by(f"system:serviceaccount:{namespace.name}:dayfly")
    steps = namespace.cluster.kubectl("-n", f"{namespace.name}-steps", "get", "role", "dayfly-steps", "-o", "json").stdout
    roles = (namespace.get("role", "dayfly"), json.loads(steps))
    granted = {(group, resource, verb) for role in roles for group, resource, _, verb in rules(role)}
    assert not refused
    assert not seen - granted, "used by somebody else's grant"
    assert not granted - seen - set(RARELY), "granted and never used"


def condition(document, kind):
    found = [c for c in document.get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0]["status"] if found else None


def test_deploy_and_the_samples_do_what_they_say(namespace, tofu, tmp_path):
    operator = Operator(namespace, tofu)
    operator.make("deploy")
    operator.wait_ready()
    directory = samples(namespace, tmp_path / "samples")
    namespace.cluster.kubectl("apply", "-k", directory)
    run = namespace.wait("run", "sample-first", lambda r: r.get("status", {}).get("phase") in ("Succeeded", "Failed"), 120)
    assert run["status"]["phase"] == "Succeeded", run["status"]
    assert namespace.get("executor", "sample")["status"]["state"] == "provisioned"
    task = namespace.wait("taskaction", "sample-workflow", lambda t: "True" in (condition(t, "Succeeded"), condition(t, "Failed")))
    assert condition(task, "Succeeded") == "True", task["status"]
    destroy = {"apiVersion": crds.GROUP + "/v1alpha1", "kind": "Run", "metadata": {"name": "sample-last"},
               "spec": {"executorRef": {"name": "sample"}, "action": "destroy", "autoApprove": True}}
    namespace.apply(destroy)
    namespace.wait("run", "sample-last", lambda r: r.get("status", {}).get("phase") == "Succeeded", 120)
    namespace.cluster.kubectl("delete", "-k", directory, "--timeout=180s", "--ignore-not-found")
    namespace.kubectl("delete", "taskactions,runs,executors", "--all", "--timeout=180s")
    check_rights(namespace)
    operator.undeploy()


def until_both_samples_succeeded(namespace):
    namespace.wait("run", "sample-first", lambda r: condition(r, "Succeeded") == "True", 120)
    namespace.wait("taskaction", "sample-workflow", lambda t: condition(t, "Succeeded") == "True")


def test_the_samples_as_they_are_come_and_go_in_either_order_with_the_operator(exclusive, tmp_path):
    """`make docker-build deploy IMG=…; kubectl apply -k config/samples`, with nothing else said."""
    image = "registry.example/team/executor:tag"
    make("docker-build", f"IMG={image}", f"OUT={tmp_path}")
    for part in ("spawner", "runner"):  # what a push and the pulls of the nodes do
        exclusive.load_image(tmp_path / f"{part}.tar")
    kubeconfig = {"KUBECONFIG": str(exclusive.kubeconfig)}
    namespace = Namespace(exclusive, "dayfly")
    try:
        for other in exclusive.api.ask("GET", "/api/v1/namespaces")["items"]:  # of tests whose spawner was alive as they ended
            if other["metadata"].get("deletionTimestamp"):
                let_go(exclusive.api, other["metadata"]["name"])
        for operator_goes_first in (False, True):
            make("deploy", f"IMG={image}", **kubeconfig)
            exclusive.kubectl("apply", "-k", ROOT / "config/samples")
            until_both_samples_succeeded(namespace)
            if not operator_goes_first:
                exclusive.kubectl("delete", "-k", ROOT / "config/samples", "--timeout=180s")
            make("undeploy", "uninstall", **kubeconfig)
            assert not exclusive.kubectl("get", "crd", "-o", "name").stdout.count(crds.GROUP)
            if operator_goes_first:  # what the definitions did not take with them
                exclusive.kubectl("delete", "-k", ROOT / "rbac/samples", "--timeout=180s", check=False)
                assert not namespace.in_steps().get("configmap", "sample-module")
    finally:
        namespace.close()
        make("install", **kubeconfig)


def test_the_installer_is_one_file_that_a_plain_apply_takes(namespace, tofu, tmp_path):
    operator = Operator(namespace, tofu)
    operator.make("build-installer", f"DIST={tmp_path}")
    namespace.cluster.kubectl("apply", "-f", tmp_path / "install.yaml")
    operator.wait_ready()
    operator.undeploy()


def test_definitions_come_and_go(cluster, tmp_path):
    """In a copy under another group, because other tests use the real ones meanwhile."""
    group = f"t{uuid.uuid4().hex[:8]}.{crds.GROUP}"
    for part in ("Makefile", "VERSION"):
        shutil.copy(ROOT / part, tmp_path)
    definitions = tmp_path / crds.DIRECTORY.relative_to(ROOT)
    for part in (ROOT / "rbac", crds.DIRECTORY):
        shutil.copytree(part, tmp_path / part.relative_to(ROOT))
    for file in definitions.glob("*.yaml"):
        file.write_text(re.sub(rf"((?:group: |name: \w+\.)){crds.GROUP}", rf"\g<1>{group}", file.read_text()))
    env = {"KUBECONFIG": str(cluster.kubeconfig)}
    names = [f"crd/{plural}.{group}" for plural in crds.PLURALS.values()]
    make("install", tree=tmp_path, **env)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=180s", *names)
    make("install", tree=tmp_path, **env)
    executor = {"apiVersion": f"{group}/v1alpha1", "kind": "Executor", "metadata": {"name": "net", "namespace": "default", "finalizers": ["dayfly.dev/cleanup"]},
                "spec": {"source": {"url": "file:///m", "kind": "directory"}}}
    cluster.kubectl("create", "-f", "-", input=json.dumps(executor))
    for status, said in (({"mayHoldResources": True}, "these Executors may hold resources: default/net "),
                         ({"mayHoldResources": False}, "the namespace default has Executors, Runs, TaskActions or Revisions that an operator must clean up")):
        cluster.kubectl("-n", "default", "patch", f"executors.{group}", "net", "--subresource=status", "--type=merge",
                        "-p", json.dumps({"status": status}))
        refused = try_make("uninstall", tree=tmp_path, **env)
        assert refused.returncode != 0 and said in refused.stderr and "Nothing was deleted" in refused.stderr, refused
        assert len(cluster.kubectl("get", *names, "-o", "name").stdout.split()) == len(names)
    let_go = [tmp_path / "rbac/let-go", "default"]
    subprocess.run(let_go, env=user(env), check=True, capture_output=True)
    assert not json.loads(cluster.kubectl("-n", "default", "get", f"executors.{group}", "net", "-o", "json").stdout)["metadata"].get("finalizers")
    make("uninstall", tree=tmp_path, **env)
    wait_for("the definitions to go", lambda: not cluster.kubectl("get", *names, "--ignore-not-found", "-o", "name").stdout)
    make("uninstall", tree=tmp_path, **env)
