"""The rights that the manifests of rbac/ give: who gets them, and that they stay small."""

import pytest

from lib.rights import objects

ENGINES = ["engines/tekton", "engines/ansible"]
SETS = ["sidecar", "steps", *ENGINES]


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
            assert [s["name"] for s in doc["subjects"]] == ["dayfly-spawner" if name == "sidecar" else "dayfly"]


@pytest.mark.parametrize("name", ["sidecar", "steps"])
def test_the_pods_of_steps_have_no_rights_and_no_token_by_default(name):
    account, = [d for d in objects(name) if (d["kind"], d["metadata"]["name"]) == ("ServiceAccount", "dayfly-runner")]
    assert account["automountServiceAccountToken"] is False


def test_no_set_touches_secrets_but_that_of_ansible():
    for name in set(SETS) - {"engines/ansible"}:
        for doc in objects(name):
            assert not [rule for rule in doc.get("rules", []) if "secrets" in rule["resources"]]
