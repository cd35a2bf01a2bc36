"""The sets of rbac/: what they grant, in namespaces of a test, and what was used of it."""

import yaml

from lib.cluster import kubeconfig_of
from lib.dayfly import ROOT

RBAC = ROOT / "rbac"


def objects(name):
    """Every object of a set, as its kustomization lists them; not those of the set that it adds to."""
    listed = yaml.safe_load((RBAC / name / "kustomization.yaml").read_text())
    own = [r for r in listed["resources"] if not r.startswith("../")]
    assert sorted(own) == sorted(p.name for p in (RBAC / name).glob("*.yaml") if p.name != "kustomization.yaml")
    for resource in own:
        for doc in yaml.safe_load_all((RBAC / name / resource).read_text()):
            assert doc["metadata"]["name" if doc["kind"] == "Namespace" else "namespace"] == listed["namespace"]
            yield doc


def granted(name):
    """{(group, resource, verb)} of a set."""
    return {(group, resource, verb) for doc in objects(name) for rule in doc.get("rules", [])
            for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}


def allow(namespace, account, name, **rule):
    """A Role of one rule, for an account (name of its namespace, its own name)."""
    group = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    subject = {"kind": "ServiceAccount", "namespace": account[0], "name": account[1]}
    namespace.apply({**group, "kind": "Role", "rules": [rule]},
                    {**group, "kind": "RoleBinding", "subjects": [subject],
                     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}})


class Steps:
    """A namespace of steps beside that of a test. The account `dayfly` of the test's has the rights of rbac/steps there, those
    of an engine, and that to write Events, which a service with custom resources writes in its own namespace."""

    EVENTS = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}

    def __init__(self, namespace, directory, engine):
        self.service, self.namespace, self.engine = namespace, namespace.in_steps(), f"engines/{engine}"
        self.account = namespace.name, "dayfly"
        namespace.cluster.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace.name}})
        namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "dayfly"}})
        for doc in (*objects("steps"), *objects(self.engine)):
            if doc["kind"] in ("Role", "RoleBinding", "ServiceAccount"):
                del doc["metadata"]["namespace"]
                for subject in doc.get("subjects", []):
                    subject["namespace"] = namespace.name
                self.namespace.apply(doc)
        allow(self.namespace, self.account, "events", **self.EVENTS)
        self.kubeconfig = kubeconfig_of(namespace, "dayfly", directory / "dayfly.kubeconfig")

    def check_used(self):
        """Nothing was refused, and of the engine's set nothing was missing and all was used."""
        seen, refused = self.service.cluster.used_by(f"system:serviceaccount:{self.service.name}:dayfly", self.namespace.name)
        assert not refused, refused
        used, given = seen - granted("steps") - {("events.k8s.io", "events", "create")}, granted(self.engine)
        assert used == given, f"granted in vain: {given - used}, used by somebody else's grant: {used - given}"
