"""The plain manifests of the operator, and the make targets that people know from other operators."""

import json
import os
import re
import subprocess

import pytest
import yaml

from lib import pods
from lib.dayfly import ROOT
from lib.registry import Registry
from lib.release import CHART, helm

VERSION = (ROOT / "VERSION").read_text().strip()
TARGETS = ["install", "uninstall", "deploy", "undeploy", "build-installer", "docker-build", "docker-push", "help"]


def make(*args, **env):
    """`make` as a user calls it, in this checkout."""
    result = subprocess.run(["make", "--no-print-directory", *args], cwd=ROOT, env={**os.environ, **env}, capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def render(what, **env):
    result = subprocess.run([ROOT / "rbac/render", what], env={**os.environ, **env}, capture_output=True, text=True, check=True)
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


def test_namespace_and_images_are_those_that_were_said():
    docs = render("all", NAMESPACE="infra", IMG="registry.example/dayfly-spawner:9", RUNNER_IMG="registry.example/runner:9")
    for doc in docs:
        assert doc["metadata"].get("namespace", "infra") == "infra"
        for subject in doc.get("subjects", []):
            assert subject["namespace"] == "infra"
    assert one(docs, "Namespace", "infra")
    container, = one(docs, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/dayfly-spawner:9"
    assert {"name": "DAYFLY_KUBERNETES_IMAGE", "value": "registry.example/runner:9"} in container["env"]


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
    assert rules(one(plain, "Role")) == {r for r in rules(one(chart(), "Role")) if not r[2]}
    for people in ("viewer", "editor", "admin"):
        assert rules(one(plain, "Role", f"dayfly-{people}")) == rules(one(chart(), "Role", f"dayfly-{people}"))
    sidecar = yaml.safe_load((ROOT / "rbac/sidecar/role.yaml").read_text())
    assert rules(sidecar) == {r for r in rules(one(chart("--set", "shape=sidecar"), "Role")) if not r[2]}


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "NetworkPolicy"])
def test_chart_and_manifests_have_the_same_guards(kind):
    def guards(docs):
        return {json.dumps({k: v for k, v in d["spec"].items() if k not in ("selector", "podSelector")}, sort_keys=True)
                for d in docs if d["kind"] == kind}
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


def test_a_push_to_nowhere_is_refused_before_anything_is_sent():
    result = subprocess.run([ROOT / "images/push"], capture_output=True, text=True, check=False,
                            env={k: v for k, v in os.environ.items() if k not in ("IMG", "RUNNER_IMG")})
    assert result.returncode == 1 and "names no registry" in result.stderr
