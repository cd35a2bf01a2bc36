"""An operator's namespace, exported and restored as velero does: with other uids, versions and owners."""

import json

import pytest

from lib import crds, dayfly
from lib.cluster import Namespace
from lib.dayfly import wait_for

MODULE = 'variable "n" { default = 0 }\nresource "terraform_data" "it" { input = var.n }\noutput "n" { value = var.n }\n'
KINDS = ["secrets", "configmaps", *(f"{plural}.{crds.GROUP}" for plural in crds.PLURALS.values())]
NEW = ("uid", "resourceVersion", "ownerReferences", "managedFields", "creationTimestamp", "generation", "selfLink", "namespace", "deletionTimestamp")


def exported(namespace):
    """Everything of the namespace that is dayfly's, without what only the old cluster knows."""
    found = []
    for kind in KINDS:
        for item in json.loads(namespace.kubectl("get", kind, "-o", "json").stdout)["items"]:
            if item["metadata"]["name"] == "kube-root-ca.crt":
                continue
            item["metadata"] = {key: value for key, value in item["metadata"].items() if key not in NEW}
            found.append(item)
    return found


def restore(namespace, items):
    """The object, then its status: for the API server a create has none."""
    for item in items:
        path = namespace.cluster.api.path_of(item, namespace.name).rpartition("/")[0]
        made = namespace.cluster.api.ask("POST", path, {key: value for key, value in item.items() if key != "status"})
        if "status" in item and item["apiVersion"].startswith(crds.GROUP):
            made["status"] = item["status"]
            namespace.cluster.api.ask("PUT", f"{path}/{made['metadata']['name']}/status", made)


@pytest.fixture
def other(cluster):
    fresh = Namespace(cluster)
    yield fresh
    crds.let_go(fresh)
    fresh.close()


def serve(home, namespace, name):
    config = {"store": "kubernetes", "kubernetes": {"kubeconfig": str(namespace.cluster.kubeconfig), "namespace": namespace.name}}
    return dayfly.Server(home, config=json.dumps(config), data=home.directory / name)


def test_what_is_restored_into_another_namespace_goes_on(home, namespace, other):
    crds.install(namespace.cluster)
    home.module("net", MODULE)
    with serve(home, namespace, "old") as server:
        home.dayfly("run", "net", "--auto-approve", "--var", "n=7", cwd=home.directory)
        home.dayfly("secret", "set", "db", "password", input="s3cret\n")
        home.dayfly("run", "net", "--no-wait", "--var", "n=8", cwd=home.directory)
        wait_for("the plan", lambda: server.get("/v1/runs/net-2")["status"]["phase"] == "WaitingApproval")
        old = {kind: {i["metadata"]["name"]: i["metadata"]["uid"] for i in server.get(f"/v1/{kind}")["items"]} for kind in ("executors", "runs", "taskactions")}
    items = exported(namespace)
    crds.let_go(namespace)
    restore(other, items)
    with serve(home, other, "new") as server:
        assert {kind: {i["metadata"]["name"]: i["metadata"]["uid"] for i in server.get(f"/v1/{kind}")["items"]} for kind in old} == old
        assert other.get("executor", "net")["metadata"]["uid"] != old["executors"]["net"]
        assert "Apply complete" in home.dayfly("logs", "net-1").stdout
        assert home.dayfly("outputs", "net", "n").stdout.strip() == "7" and "db" in home.dayfly("secret", "list").stdout
        home.dayfly("discard", "net-2")
        wait_for("the end", lambda: server.get("/v1/runs/net-2")["status"]["phase"] == "Discarded")
        home.dayfly("run", "net", "--auto-approve", "--var", "n=7", cwd=home.directory)
        assert server.get("/v1/runs/net-3")["status"]["reason"] == "NoChanges"
        assert [r["metadata"]["name"] for r in server.get("/v1/runs?order=newest")["items"]] == ["net-3", "net-2", "net-1"]
        assert home.json("storage", "usage")["orphans"]["count"] == 0
        home.dayfly("destroy", "net", "--auto-approve", cwd=home.directory)
        home.dayfly("delete", "net")
        other.wait_gone("executor", "net")
