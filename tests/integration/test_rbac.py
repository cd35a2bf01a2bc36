"""The rights that the manifests of rbac/ give: who gets them, and that they stay small."""

import pytest
import yaml

from lib import dayfly

RBAC = dayfly.ROOT / "rbac"
SETS = ["sidecar", "steps"]


def objects(name):
    """Every object of a set, as its kustomization lists them; not those of the set that it adds to."""
    listed = yaml.safe_load((RBAC / name / "kustomization.yaml").read_text())
    own = [r for r in listed["resources"] if not r.startswith("../")]
    assert sorted(own) == sorted(p.name for p in (RBAC / name).glob("*.yaml") if p.name != "kustomization.yaml")
    for resource in own:
        for doc in yaml.safe_load_all((RBAC / name / resource).read_text()):
            assert doc["metadata"]["name" if doc["kind"] == "Namespace" else "namespace"] == listed["namespace"]
            yield doc


@pytest.mark.parametrize("name", SETS)
def test_everything_stays_in_its_namespace_and_names_what_it_allows(name):
    for doc in objects(name):
        assert doc["kind"] in ("ServiceAccount", "Role", "RoleBinding", *(["Namespace", "NetworkPolicy"] if name == "steps" else []))
        for rule in doc.get("rules", []):
            for member in ("apiGroups", "resources", "verbs"):
                assert rule[member] and "*" not in rule[member], rule
            assert not set(rule["verbs"]) & {"escalate", "bind", "impersonate", "deletecollection"}


@pytest.mark.parametrize("name", SETS)
def test_a_binding_gives_its_own_role_to_the_spawner_alone(name):
    roles = {doc["metadata"]["name"] for doc in objects(name) if doc["kind"] == "Role"}
    for doc in objects(name):
        if doc["kind"] == "RoleBinding":
            assert doc["roleRef"]["kind"] == "Role" and doc["roleRef"]["name"] in roles
            assert [s["name"] for s in doc["subjects"]] == ["dayfly" if name == "steps" else "dayfly-spawner"]


@pytest.mark.parametrize("name", ["sidecar", "steps"])
def test_the_pods_of_steps_have_no_rights_and_no_token_by_default(name):
    account, = [d for d in objects(name) if (d["kind"], d["metadata"]["name"]) == ("ServiceAccount", "dayfly-runner")]
    assert account["automountServiceAccountToken"] is False


def test_no_set_touches_secrets():
    for name in SETS:
        for doc in objects(name):
            assert not [rule for rule in doc.get("rules", []) if "secrets" in rule["resources"]]
