"""Custom resources keep who wrote them: the webhook and the policy of rbac/admission.yaml on a real API server."""

import json
import os
import re
import subprocess

import pytest
import yaml

from lib import crds, dayfly
from lib.cluster import kubeconfig_of, with_kubectl
from lib.dayfly import ROOT, wait_for
from lib.pods import NODE
from lib.replicas import PORT, free_ports

MODULE = 'resource "terraform_data" "a" {}\n'
REQUESTED, DECIDED = "dayfly.dev/requested-by", "dayfly.dev/decided-by"
EDITORS, ADMINS = ("eve", "bob"), ("ann",)


class World:
    """A spawner with the account of rbac/operator, behind a Service; eve and bob are editors, ann is an admin."""

    def __init__(self, home, namespace):
        self.home, self.namespace = home, namespace
        crds.install(namespace.cluster)
        self.give_rights()
        port = free_ports(1)[0]
        self.serve(port)
        self.webhook = f"dayfly.{namespace.name}"
        token = home.json("token-file", "create", "--name", "auditor", "--role", "admin")
        tokens = home.directory / "tokens"
        tokens.write_text(token["line"] + "\n")
        tokens.chmod(0o600)
        config = {"store": "kubernetes", "approval": {"separateApprover": True}, "auth": {"tokenFile": str(tokens)},
                  "advertiseUrl": f"https://{NODE}:{port}",
                  "server": {"tls": {"names": [NODE, f"dayfly.{namespace.name}.svc"], "secret": "dayfly-authority"}},
                  "kubernetes": {"kubeconfig": str(self.kubeconfig()),
                                 "namespace": namespace.name, "webhook": self.webhook}}
        self.server = dayfly.Server(home, config=json.dumps(config), listen=f"{NODE}:{port}")
        home.env.update(DAYFLY_TOKEN=token["token"], DAYFLY_CA_FILE=str(self.server.data / "ca.pem"))
        self.module = home.module("net", MODULE)

    def give_rights(self):
        """The roles of the manifests, in this namespace, and people who are bound to them."""
        objects = []
        for file in ("role", "people", "authority"):
            for found in yaml.safe_load_all((ROOT / f"rbac/operator/{file}.yaml").read_text()):
                found["metadata"]["namespace"] = self.namespace.name
                objects.append(found)
        account = {"kind": "ServiceAccount", "name": "dayfly", "namespace": self.namespace.name}
        bound = {"dayfly": [account], "dayfly-editor": [{"kind": "User", "name": n} for n in EDITORS],
                 "dayfly-admin": [{"kind": "User", "name": n} for n in ADMINS]}
        group = "rbac.authorization.k8s.io"
        self.namespace.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "dayfly"}}, *objects,
            *[{"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {"name": role},
               "roleRef": {"apiGroup": group, "kind": "Role", "name": role},
               "subjects": [s if "namespace" in s else {**s, "apiGroup": group} for s in subjects]}
              for role, subjects in bound.items()])

    def kubeconfig(self):
        """As if the spawner were a pod of this namespace."""
        path = kubeconfig_of(self.namespace, "dayfly", self.home.directory / "kubeconfig")
        config = yaml.safe_load(path.read_text())
        config["contexts"][0]["context"]["namespace"] = self.namespace.name
        path.write_text(yaml.safe_dump(config))
        return path

    def serve(self, port):
        """The Service of the webhook, whose endpoint is a process of the node instead of a pod."""
        meta = {"name": "dayfly", "labels": {"kubernetes.io/service-name": "dayfly"}}
        self.namespace.apply(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dayfly"},
             "spec": {"ports": [{"port": PORT, "protocol": "TCP"}]}},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta, "addressType": "IPv4",
             "ports": [{"port": port, "protocol": "TCP"}], "endpoints": [{"addresses": [NODE]}]})

    def __enter__(self):
        self.server.start()
        cluster = self.namespace.cluster
        env = {**os.environ, "NAMESPACE": self.namespace.name, "PATH": with_kubectl(os.environ["PATH"]),
               "KUBECTL": f"kubectl --kubeconfig {cluster.kubeconfig}"}
        text = subprocess.run([ROOT / "rbac/render", "admission"], env=env, check=True, capture_output=True, text=True)
        webhook, policy = text.stdout.split("---\n", 1)
        # The API server notices each some moments later. The webhook hides the policy, which therefore comes first.
        cluster.kubectl("apply", "-f", "-", input=policy)
        wait_for("the policy", lambda: "must be" in self.make("eve", "probe", dry=True).stderr)
        cluster.kubectl("apply", "-f", "-", input=webhook)
        wait_for("the webhook", lambda: self.stamp_of_probe() == "write eve")
        return self

    def __exit__(self, *args):
        for kind in ("mutatingwebhookconfiguration", "validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            self.namespace.cluster.kubectl("delete", kind, self.webhook, "--ignore-not-found")
        try:
            self.server.__exit__(*args)
        finally:
            self.namespace.let_go()

    def stamp_of_probe(self):
        made = self.make("eve", "probe", dry=True)
        return json.loads(made.stdout)["metadata"].get("annotations", {}).get(REQUESTED) if made.returncode == 0 else None

    # ---- what people do ----

    def kubectl(self, who, *args, **kwargs):
        return self.namespace.kubectl("--as", who, *args, check=False, **kwargs)

    def make(self, who, name, executor="net", annotations=None, dry=False, **spec):
        run = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Run",
               "metadata": {"name": name, "annotations": annotations or {}},
               "spec": {"executorRef": {"name": executor}, "action": "provision", **spec}}
        flags = ["--dry-run=server", "-o", "json"] if dry else []
        return self.kubectl(who, "create", "-f", "-", *flags, input=json.dumps(run))

    def executor(self, who, name):
        document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                    "spec": {"source": {"url": f"file://{self.module}", "kind": "directory"}}}
        return self.kubectl(who, "create", "-f", "-", input=json.dumps(document))

    def decide(self, who, run, verdict="approved"):
        return self.kubectl(who, "patch", "run", run, "--type=merge", "-p",
                            json.dumps({"spec": {"decision": {"verdict": verdict}}}))

    def tell_deletion(self, role, user, uid):
        """A call as from the API server, of anybody; the status."""
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                  "request": {"uid": "1", "operation": "DELETE", "resource": {"group": crds.GROUP}, "userInfo": {"username": user},
                              "oldObject": {"kind": "Run", "metadata": {"uid": uid}}}}
        return self.server.request("POST", f"/v1/admission/{role}", review)[0]

    def phase(self, run, phase):
        return self.namespace.wait("run", run, lambda r: r.get("status", {}).get("phase") == phase)

    def audit(self):
        return {(e["actor"], e["role"], e["action"], e["name"], e["outcome"])
                for e in self.home.json("get", "audit")["items"]}


@pytest.fixture
def world(home, namespace):
    with World(home, namespace) as running:
        yield running


def ok(result):
    assert result.returncode == 0, result.stderr
    return result


def refused(result, *words):
    assert result.returncode != 0, result.stdout
    for word in words:
        assert word in result.stderr, result.stderr


def test_documents_name_who_wrote_them_and_nobody_forges_a_name(world):
    ok(world.executor("ann", "net"))
    refused(world.executor("eve", "mine"), "forbidden")

    # A forged name is overwritten.
    ok(world.make("eve", "first", annotations={REQUESTED: "admin ceo", DECIDED: "admin ceo"}))
    run = world.phase("first", "WaitingApproval")
    assert run["metadata"]["annotations"] == {REQUESTED: "write eve"}
    assert run["status"]["service"]["spec"]["requestedBy"] == "eve"
    world.kubectl("bob", "annotate", "run", "first", "--overwrite", f"{REQUESTED}=write bob")
    assert world.namespace.get("run", "first")["metadata"]["annotations"] == {REQUESTED: "write eve"}

    # The requester's own approval is taken away, the one of somebody else counts.
    ok(world.decide("eve", "first"))
    seen = world.namespace.wait("run", "first", lambda r: "SelfApproval" in r["status"].get("message", ""))
    assert seen["status"]["phase"] == "WaitingApproval" and "decision" not in seen["spec"]
    assert "the decision of eve is refused" in seen["status"]["message"]
    ok(world.decide("bob", "first"))
    done = world.phase("first", "Succeeded")
    assert done["status"]["approvedBy"] == "bob"
    assert re.search(r"Requested by:?\s+eve\b", world.home.dayfly("describe", "run", "first").stdout)

    # Who edits a run that waits for its executor makes it theirs: with the role of the creator they could do more.
    ok(world.make("ann", "borrowed", executor="later", action="destroy"))
    assert world.namespace.get("run", "borrowed")["metadata"]["annotations"] == {REQUESTED: "admin ann"}
    ok(world.kubectl("bob", "patch", "run", "borrowed", "--type=merge", "-p", '{"spec":{"variables":{"a":1}}}'))
    assert world.namespace.get("run", "borrowed")["metadata"]["annotations"] == {REQUESTED: "write bob"}

    # An editor may do what `write` may.
    ok(world.make("eve", "end", action="destroy"))
    assert "admin" in world.phase("end", "Failed")["status"]["message"]

    assert world.audit() >= {("ann", "admin", "create", "net", "done"), ("eve", "write", "provision", "first", "done"),
                             ("eve", "write", "approve", "first", "refused"), ("bob", "write", "approve", "first", "done"),
                             ("eve", "write", "create", "end", "refused")}


def test_a_deletion_is_theirs_who_deleted_and_nobody_writes_another_name(world):
    ok(world.executor("ann", "net"))
    for name in ("own", "disputed", "stranger"):
        ok(world.make("eve", name))
        uid = world.namespace.wait("run", name, lambda r: "status" in r)["metadata"]["uid"]
        # Anybody may call the webhook. Who knows the uid takes a name away; who does not does nothing.
        if name != "own":
            told = uid if name == "disputed" else "3f0c8d5e-0000-4000-8000-000000000000"
            assert world.tell_deletion("admin", "ceo", told) == 200
    ok(world.kubectl("eve", "delete", "run", "own", "--dry-run=server"))
    for name in ("own", "disputed", "stranger"):
        ok(world.kubectl("bob", "delete", "run", name, "--timeout=180s"))
    ok(world.kubectl("ann", "delete", "executor", "net", "--timeout=180s"))
    deleted = {entry for entry in world.audit() if entry[2] == "delete"}
    assert deleted >= {("bob", "write", "delete", "own", "done"), ("bob", "write", "delete", "stranger", "done"),
                       ("kubernetes", "admin", "delete", "disputed", "done"), ("ann", "admin", "delete", "net", "done")}
    assert not [entry for entry in deleted if entry[0] == "ceo"]


def test_while_the_service_is_away_an_admin_works_and_nobody_forges_a_name(world):
    ok(world.executor("ann", "net"))
    world.namespace.wait("executor", "net", lambda e: "status" in e)
    ok(world.make("eve", "waits"))
    world.phase("waits", "WaitingApproval")
    world.server.stop()

    refused(world.make("eve", "a"), 'dayfly.dev/requested-by must be "write eve"', "did not answer")
    for forged in ("write bob", "admin eve", "admin ann", "eve"):
        refused(world.make("eve", "a", annotations={REQUESTED: forged}), 'must be "write eve"')
    refused(world.make("ann", "a", annotations={REQUESTED: "admin ceo"}), '"admin ann"')
    refused(world.decide("eve", "waits"), 'dayfly.dev/decided-by must be "write eve"')
    refused(world.kubectl("bob", "annotate", "run", "waits", "--overwrite", f"{REQUESTED}=write bob"),
            'must be as it was, "write eve"')
    refused(world.kubectl("bob", "annotate", "run", "waits", f"{DECIDED}=write bob"), "decided-by must be")
    ok(world.kubectl("bob", "annotate", "run", "waits", "note=mine"))

    ok(world.make("eve", "named", annotations={REQUESTED: "write eve"}))
    ok(world.make("ann", "nameless"))
    ok(world.decide("ann", "waits"))  # without a name: it does not count where a separate approver is needed
    world.server.start()
    seen = world.namespace.wait("run", "waits", lambda r: "not known by name" in r["status"].get("message", ""))
    assert seen["status"]["phase"] == "WaitingApproval" and "decision" not in seen["spec"]
    ok(world.decide("bob", "waits", "discarded"))
    world.phase("waits", "Discarded")
    by = {name: world.namespace.wait("run", name, lambda r: "status" in r)["status"]["service"]["spec"]
          for name in ("named", "nameless")}
    assert (by["named"]["requestedBy"], by["named"]["requestedRole"]) == ("eve", "write")
    assert (by["nameless"]["requestedBy"], by["nameless"]["requestedRole"]) == ("kubernetes", "admin")
