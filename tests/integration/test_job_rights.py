"""rbac/ on a real cluster: a spawner that is nobody but `dayfly-spawner` does all of its work, and uses every right."""

import os
import shutil

import pytest

from lib.cluster import kubeconfig_of
from lib.dayfly import ROOT, wait_for
from lib.pods import Pods, claim_on, reach

MODULE = """
variable "n" { default = 1 }
resource "terraform_data" "a" {
  input = var.n
  provisioner "local-exec" { command = "touch /cache/used-by-$(hostname)" }
}
"""
SLOW = 'resource "terraform_data" "slow" {\n  provisioner "local-exec" { command = "echo begun; exec sleep 600" }\n}\n'


def apply_set(namespace, directory, name):
    """Applies a set as rbac/README.md says: with another namespace in its kustomization. Returns its rules."""
    shutil.copytree(ROOT / "rbac", directory)
    kustomization = directory / name / "kustomization.yaml"
    kustomization.write_text(kustomization.read_text().replace("namespace: dayfly", f"namespace: {namespace.name}"))
    namespace.cluster.kubectl("apply", "-k", directory / name)
    return [rule for role in namespace.get("roles") for rule in role["rules"]]


def tell_story(pods):
    """Everything that makes the spawner speak to the API server."""
    pods.executor("net", MODULE, environment=[{"name": "TF_PLUGIN_CACHE_DIR", "value": "/cache"}])
    assert pods.run("net")["run"]["status"]["reason"] == "Applied"

    pods.executor("slow", SLOW)
    process, run = pods.begin("slow")
    pods.wait_log(run, "): begun")
    pods.home.dayfly("cancel", run)
    assert pods.ended(run)["phase"] == "Canceled"
    process.wait()

    # Only an Event of the kubelet says so, which comes when the node has time.
    pods.executor("bad", SLOW, {"secretMounts": [{"name": "nobody-made-it", "mountPath": "/secret"}]})
    process, run = pods.begin("bad")
    wait_for("the cause", lambda: '"nobody-made-it" not found' in pods.document("runs", run)["status"].get("message", ""))
    pods.home.dayfly("cancel", run)
    assert pods.ended(run)["phase"] == "Canceled"
    process.wait()

    process, run = pods.begin("slow")
    pods.wait_log(run, "): begun")
    pods.namespace.kubectl("delete", "job", f"{run}-apply", "--wait=false")
    assert pods.ended(run)["phase"] != "Succeeded"
    process.wait()


def test_the_rights_of_the_manifests_are_those_that_the_spawner_uses(home, namespace, tofu, tmp_path):
    rules = apply_set(namespace, tmp_path / "rbac", "sidecar")
    granted = {(group, resource, verb) for rule in rules for group in rule["apiGroups"]
               for resource in rule["resources"] for verb in rule["verbs"]}
    reach(tmp_path)
    volume = claim_on(namespace, tmp_path / "cache", "terrakube-plugin-pvc")  # what a workspace gets without a name
    config = kubeconfig_of(namespace, "dayfly-spawner", tmp_path / "kubeconfig")
    try:
        with Pods(home, namespace, tofu, kubeconfig=str(config),
                  placement={"serviceAccountName": "dayfly-runner"}) as pods:
            tell_story(pods)
        assert any(os.scandir(tmp_path / "cache")), "the claim was not mounted"
    finally:
        namespace.cluster.kubectl("delete", "pv", volume, "--wait=false")
    seen, refused = namespace.cluster.used_by(f"system:serviceaccount:{namespace.name}:dayfly-spawner")
    assert not refused
    # Workflows run in other tests.
    assert granted - seen == {("", "namespaces", "get"), ("", "pods/log", "get")}, "granted and never used, but by `dayfly doctor`"
    assert seen - granted == set(), "used by somebody else's grant"
