"""An operator's namespace, exported and restored as velero 1.18 was seen to do it by the commands of docs/upkeep.md."""

import json

import pytest

from lib import crds, dayfly
from lib.cluster import Namespace
from lib.dayfly import wait_for

MODULE = 'variable "n" { default = 0 }\nresource "terraform_data" "it" { input = var.n }\noutput "n" { value = var.n }\n'
KINDS = ["secrets", "configmaps", *sorted(f"{plural}.{crds.GROUP}" for plural in crds.PLURALS.values())]  # in this order
STATUS_OF = ("Executor", "Run", "TaskAction")  # --status-include-resources
LOST = ("generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences")
LABELS = {"velero.io/backup-name": "dayfly", "velero.io/restore-name": "dayfly-20261126134755"}


def exported(namespace):
    """Everything of the namespace, but what is being deleted."""
    items = [item for kind in KINDS for item in namespace.get(kind)]
    return [item for item in items if "deletionTimestamp" not in item["metadata"] and item["metadata"]["name"] != "kube-root-ca.crt"]


def restore(namespace, items):
    """The object with two more labels, then its status, for the API server a create has none; then who wrote which field."""
    api = namespace.cluster.api
    for item in items:
        kept = {key: value for key, value in item["metadata"].items() if key not in LOST}
        metadata = {**kept, "namespace": namespace.name, "labels": {**kept.get("labels", {}), **LABELS}}
        whole = {**item, "metadata": metadata}
        path = api.path_of(whole, namespace.name)
        made = api.ask("POST", path.rpartition("/")[0], {key: value for key, value in whole.items() if key != "status"})
        if "status" in whole and item["kind"] in STATUS_OF:
            metadata["resourceVersion"] = made["metadata"]["resourceVersion"]
            api.ask("PUT", f"{path}/status", whole)
        api.ask("PATCH", path, {"metadata": {"managedFields": kept.get("managedFields", [])}}, kind="application/merge-patch+json")


@pytest.fixture
def other(cluster):
    fresh = Namespace(cluster)
    yield fresh
    fresh.close()


def serve(home, namespace, name):
    config = {"store": "kubernetes", "kubernetes": {"kubeconfig": str(namespace.cluster.kubeconfig), "namespace": namespace.name}}
    return dayfly.Server(home, config=json.dumps(config), data=home.directory / name)


def uids(server):
    return {kind: {i["metadata"]["name"]: i["metadata"]["uid"] for i in server.get(f"/v1/{kind}")["items"]} for kind in ("executors", "runs", "taskactions")}


def waits(server, run):
    wait_for("the plan", lambda: server.get(f"/v1/runs/{run}")["status"]["phase"] == "WaitingApproval")


def test_what_is_restored_into_another_namespace_goes_on(home, namespace, other):
    crds.install(namespace.cluster)
    home.module("net", MODULE)
    with serve(home, namespace, "old") as server:
        home.dayfly("run", "net", "--auto-approve", "--var", "n=7", cwd=home.directory)
        home.dayfly("secret", "set", "db", "password", input="s3cret\n")
        home.dayfly("run", "net", "--no-wait", "--var", "n=8", cwd=home.directory)
        waits(server, "net-2")
        home.dayfly("discard", "net-2")
        home.dayfly("run", "net", "--no-wait", "--var", "n=8", cwd=home.directory)
        waits(server, "net-3")
        namespace.kubectl("patch", "run", "net-3", "--type=merge", "-p", '{"spec":{"decision":{"verdict":"approved"}}}')
        wait_for("the apply", lambda: server.get("/v1/runs/net-3")["status"]["phase"] == "Succeeded")
        old = uids(server)
    items = exported(namespace)
    namespace.let_go()
    restore(other, items)
    with serve(home, other, "new") as server:
        assert uids(server) == old
        assert other.get("executor", "net")["metadata"]["uid"] != old["executors"]["net"]
        assert "Apply complete" in home.dayfly("logs", "net-1").stdout
        assert "Succeeded after" in home.dayfly("why", "net-1").stdout and "after 0.0 s" not in home.dayfly("why", "net-1").stdout
        assert server.get("/v1/runs/net-2")["status"]["phase"] == "Discarded"
        assert home.dayfly("outputs", "net", "n").stdout.strip() == "8" and "db" in home.dayfly("secret", "list").stdout
        home.dayfly("run", "net", "--auto-approve", "--var", "n=8", cwd=home.directory)
        assert server.get("/v1/runs/net-4")["status"]["reason"] == "NoChanges"
        assert [r["metadata"]["name"] for r in server.get("/v1/runs?order=newest")["items"]] == ["net-4", "net-3", "net-2", "net-1"]
        assert home.json("storage", "usage")["orphans"]["count"] == 0
        home.dayfly("destroy", "net", "--auto-approve", cwd=home.directory)
        home.dayfly("delete", "net")
        other.wait_gone("executor", "net")


def test_what_had_not_ended_is_canceled_because_it_may_have_been_done_after_the_backup(home, namespace, other):
    """A plan that waits, and a run behind it that needs no approval."""
    crds.install(namespace.cluster)
    home.module("net", MODULE)
    with serve(home, namespace, "old") as server:
        home.dayfly("run", "net", "--no-wait", "--var", "n=7", cwd=home.directory)
        waits(server, "net-1")
        home.dayfly("run", "net", "--auto-approve", "--detach", cwd=home.directory)
        items = exported(namespace)
    namespace.let_go()
    restore(other, items)
    with serve(home, other, "new") as server:
        for run in ("net-1", "net-2"):
            wait_for("the end", lambda run=run: server.get(f"/v1/runs/{run}")["status"]["phase"] == "Canceled")
            assert "restored from a backup" in home.dayfly("why", run).stdout
        assert list(uids(server)["taskactions"]) == ["net-1-plan"]
        assert [(e["actor"], e["name"]) for e in server.get("/v1/audit")["items"] if e["action"] == "cancel"] == [("restore", "net-2"), ("restore", "net-1")]
        home.dayfly("run", "net", "--auto-approve", "--var", "n=9", cwd=home.directory)
        assert home.dayfly("outputs", "net", "n").stdout.strip() == "9"
