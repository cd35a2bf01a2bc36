"""The store in the cluster, and what people do with kubectl: apply, approve, cancel, delete."""

import base64
import ctypes
import json
import os
import subprocess
import time
import uuid

import pytest
import yaml

from lib import crds, dayfly
from lib.dayfly import BUILD, wait_for
from lib.pods import Pods, config_map_of

MODULE = """
variable "gate" { default = "" }
resource "terraform_data" "a" {
  provisioner "local-exec" { command = var.gate == "" ? "true" : "until test -e ${var.gate}; do sleep 0.05; done" }
}
output "n" { value = 1 }
"""


class World:
    """A spawner whose documents are in a namespace of the cluster; its steps are processes on this machine."""

    def __init__(self, home, namespace, **settings):
        self.home, self.namespace = home, namespace
        crds.install(namespace.cluster)
        config = {"store": "kubernetes", "kubernetes": {"kubeconfig": str(namespace.cluster.kubeconfig),
                                                        "namespace": namespace.name, **settings}}
        self.server = dayfly.Server(home, config=json.dumps(config))
        self.module = home.module("net", MODULE)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *args):
        try:
            self.server.__exit__(*args)
        finally:
            self.namespace.let_go()

    def executor(self, name="net", **spec):
        return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                "spec": {"source": {"url": f"file://{self.module}", "kind": "directory"}, **spec}}

    @staticmethod
    def run(name, executor="net", action="provision", **spec):
        return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Run", "metadata": {"name": name},
                "spec": {"executorRef": {"name": executor}, "action": action, **spec}}

    def phase(self, run, phase):
        return self.namespace.wait("run", run, lambda r: r.get("status", {}).get("phase") == phase)

    def patch(self, kind, name, spec):
        self.namespace.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def provision(self, name="first"):
        self.namespace.apply(self.executor(), self.run(name, autoApprove=True))
        return self.phase(name, "Succeeded")


@pytest.fixture
def world(home, namespace):
    with World(home, namespace) as running:
        yield running


def conditions(document):
    return {c["type"]: (c["status"], c["reason"]) for c in document["status"]["conditions"]}


# ---- the store ------------------------------------------------------------------------------------------------------

@pytest.fixture
def lax_group(cluster, tmp_path):
    """An API group of one's own whose resources take any spec, for tests of the store alone."""
    group = f"t{uuid.uuid4().hex[:8]}.{crds.GROUP}"
    items = []
    for kind, plural in crds.PLURALS.items():
        definition = yaml.safe_load((crds.DIRECTORY / f"{plural}.yaml").read_text())
        version = definition["spec"]["versions"][0]
        version["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version.pop("selectableFields", None)  # of fields that this schema does not have
        definition["spec"]["group"] = group
        definition["spec"]["names"] = {"kind": kind, "plural": plural}
        definition["metadata"]["name"] = f"{plural}.{group}"
        items.append(definition)
    path = tmp_path / "crds.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    cluster.kubectl("apply", "-f", path)
    crds.established(cluster, group)
    yield group
    cluster.kubectl("delete", "namespaces", "-l", f"dayfly-test={group}", "--wait=false")
    cluster.kubectl("delete", "-f", path, "--wait=false")


def test_the_store_in_the_cluster_behaves_as_the_one_in_a_file(namespace, lax_group):
    suite = subprocess.run([str(BUILD / "tools/store_kube"), lax_group], capture_output=True, text=True, check=False,
                           timeout=300, env={**os.environ, "KUBECONFIG": str(namespace.cluster.kubeconfig)})
    assert suite.returncode == 0, suite.stdout[-5000:] + suite.stderr[-5000:]


# ---- applied --------------------------------------------------------------------------------------------------------

def test_an_applied_run_is_planned_approved_and_applied(world):
    # The run first: order does not matter to those who apply a directory.
    world.namespace.apply(world.run("first"))
    world.namespace.apply(world.executor())
    world.phase("first", "WaitingApproval")
    world.patch("run", "first", {"decision": {"verdict": "approved"}})
    run = world.phase("first", "Succeeded")
    assert run["status"]["approvedBy"] == "kubernetes"
    assert conditions(run) == {"Progressing": ("False", "Applied"), "Succeeded": ("True", "Applied"),
                               "Failed": ("False", "Applied")}
    executor = world.namespace.get("executor", "net")
    assert executor["status"]["state"] == "provisioned" and executor["status"]["status"] == "done"
    assert {t["metadata"]["name"] for t in world.namespace.get("taskactions")} == {"first-plan", "first-apply"}
    trail = {(e["actor"], e["action"], e["name"]) for e in world.home.json("get", "audit")["items"]}
    assert {("kubernetes", "create", "net"), ("kubernetes", "approve", "first")} <= trail


def test_an_applied_dry_run_takes_no_turn_beside_a_run_that_waits(world):
    world.namespace.apply(world.executor(), world.run("first"))
    world.phase("first", "WaitingApproval")
    world.namespace.apply(world.run("second", action="dry-run"), world.run("third", action="dry-run"))
    for name in ("second", "third"):
        status = world.phase(name, "Succeeded")["status"]
        assert "run first, which waits for approval, is no part of it" in status["message"]
    assert world.namespace.get("run", "first")["status"]["phase"] == "WaitingApproval"
    world.patch("run", "first", {"decision": {"verdict": "approved"}})
    world.phase("first", "Succeeded")


def test_what_is_taken_in_is_held_and_what_is_over_has_no_marks_left(world):
    """The labels by which the service finds unfinished documents are gone with the end."""
    world.namespace.apply(world.executor(), world.run("first"))
    asking = world.phase("first", "WaitingApproval")
    plan = world.namespace.get("taskaction", "first-plan")
    for document in (asking, plan, world.namespace.get("executor", "net")):
        assert document["metadata"]["finalizers"] == ["dayfly.dev/cleanup"]
        assert [c["type"] for c in document["status"]["conditions"]] == ["Progressing", "Succeeded", "Failed"]
    assert asking["status"]["service"]["labels"]["dayfly.dev/unfinished"] == "true"
    world.patch("run", "first", {"decision": {"verdict": "discarded"}})
    world.phase("first", "Discarded")

    def marks(kind, name):
        return set(world.namespace.get(kind, name)["status"]["service"]["labels"])
    wait_for("the marks to go", lambda: marks("run", "first") == {"dayfly.dev/executor"} and
             marks("taskaction", "first-plan") == {"dayfly.dev/executor", "dayfly.dev/run"})


def test_the_same_documents_are_in_the_rest_api(world):
    world.provision()
    run = world.server.get("/v1/runs/first")
    assert run["spec"]["number"] == 1 and run["spec"]["requestedBy"] == "kubernetes"
    assert "service" not in run["status"] and run["metadata"]["namespace"] == world.namespace.name
    assert "first" in world.home.dayfly("get", "runs").stdout
    # And the next run of the service takes the next number, and a name that nobody took.
    world.namespace.apply(world.run("net-2", action="dry-run"))
    world.phase("net-2", "Succeeded")
    world.home.dayfly("run", "net", "--action", "dry-run")
    assert world.namespace.get("run", "net-3")["status"]["phase"] == "Succeeded"


def test_no_second_key_is_made_where_something_is_sealed_with_the_first(world):
    world.provision()
    world.server.stop()
    key = world.namespace.get("secret", "dayfly-key")
    world.namespace.kubectl("delete", "secret", "dayfly-key")
    with pytest.raises(AssertionError, match="ended with 1:(.|\n)*the Secret dayfly-key in .* is missing.*restore it from a copy"):
        world.server.start()
    assert not world.namespace.get("secret", "dayfly-key")
    key["metadata"] = {"name": "dayfly-key"}
    world.namespace.apply(key)
    world.server.start()
    assert json.loads(world.home.dayfly("outputs", "net", "-o", "json").stdout)["n"]["value"] == 1


def test_a_state_in_the_cluster_is_sealed_and_read_back(world):
    world.provision()
    uid = world.namespace.get("executor", "net")["metadata"]["uid"]
    state = json.loads(world.home.dayfly("state", "pull", "net").stdout)
    assert state["outputs"]["n"]["value"] == 1
    heads = {head["metadata"]["annotations"]["dayfly.dev/key"]: head for head in world.namespace.get("secret")
             if "dayfly.dev/key" in head["metadata"].get("annotations", {})}
    newest = max(key for key in heads if key.startswith(f"state/{uid}/") and key.endswith(".state"))
    packed = base64.b64decode(heads[newest]["data"]["content"])
    room = ctypes.create_string_buffer(1 << 20)
    size = ctypes.CDLL("libzstd.so.1").ZSTD_decompress(room, len(room), packed, len(packed))
    meta, document = room.raw[:size].split(b"\n", 1)
    assert json.loads(meta)["lineage"] == state["lineage"] and document.startswith(b"DFSEAL1\n")


def test_the_api_server_keeps_no_list_of_who_owns_the_fields_of_a_growing_log(world):
    """That list is much of what each frame costs it. A blob that was put once has it."""
    world.provision()
    logs = [secret for secret in json.loads(world.namespace.kubectl(
        "get", "secrets", "-o", "json", "--show-managed-fields").stdout)["items"]
        if secret["metadata"].get("annotations", {}).get("dayfly.dev/key", "").endswith(".log")]
    assert logs and not [log for log in logs if "managedFields" in log["metadata"]]


def test_columns_tell_what_is_there(world):
    world.provision()
    def row(kind):
        return [" ".join(line.split()) for line in world.namespace.kubectl("get", kind).stdout.splitlines()]
    assert row("dfe")[0] == "NAME STATE STATUS LAST RUN PHASE AGE"
    assert row("dfe")[1].startswith("net provisioned done first Succeeded ")
    assert row("dfr")[1].startswith("first net provision Succeeded Applied ")
    assert row("dft")[1].startswith("first-apply first apply executor/net Applied ")


def test_kubectl_lists_the_runs_and_steps_of_one_executor(world):
    world.provision()
    world.namespace.apply(world.executor("other"), world.run("second", "other", "dry-run"))
    world.phase("second", "Succeeded")

    def names(kind, *args):
        return world.namespace.kubectl("get", kind, *args, "-o", "name").stdout.split()

    assert names("runs", "-l", "dayfly.dev/executor=net") == ["run.dayfly.dev/first"]
    assert names("runs", "--field-selector", "spec.executorRef.name=other") == ["run.dayfly.dev/second"]
    assert names("runs", "--field-selector", "spec.action=destroy") == []
    assert names("taskactions", "--field-selector", "spec.runRef.name=second") == ["taskaction.dayfly.dev/second-plan"]


@pytest.mark.parametrize("spec, message", [
    ({"variables": {"1x": 1}}, "is not the name of a variable"),
    ({"storage": {"type": "s3", "path": "a"}}, "spec.storage.config.bucket: is required for type s3"),
])
def test_what_only_the_spawner_can_refuse_says_so_and_can_be_mended(world, spec, message):
    world.namespace.apply(world.executor(**spec), world.run("first", autoApprove=True))
    executor = world.namespace.wait("executor", "net", lambda e: e.get("status", {}).get("conditions"))
    assert conditions(executor) == {"Progressing": ("False", "InvalidDocument"), "Failed": ("True", "InvalidDocument"),
                                    "Succeeded": ("False", "InvalidDocument")}
    assert message in executor["status"]["conditions"][0]["message"]
    assert executor["status"]["status"] == "refused"
    run = world.phase("first", "Failed")
    assert conditions(run)["Failed"] == ("True", "InvalidDocument")
    assert "was refused" in run["status"]["message"]
    world.namespace.apply(world.executor())
    world.namespace.wait("executor", "net", lambda e: conditions(e)["Succeeded"] == ("True", "Accepted") and e["status"]["status"] == "ready")
    world.namespace.apply(world.run("second", autoApprove=True))
    world.phase("second", "Succeeded")


def test_a_text_with_a_nul_keeps_nothing_else_from_being_read(world):
    odd = world.executor("odd", description="a\0b")
    odd["metadata"]["annotations"] = {"example.org/odd": "a\0b"}
    world.namespace.apply(odd, world.executor())
    executor = world.namespace.wait("executor", "odd", lambda e: e.get("status", {}).get("conditions"))
    assert executor["status"]["status"] == "refused" and "control character" in json.dumps(executor["status"])
    world.server.stop()
    world.server.start()
    world.namespace.apply(world.run("net-1", autoApprove=True))
    world.phase("net-1", "Succeeded")
    executor = world.namespace.wait("executor", "odd", lambda e: True)
    assert executor["spec"]["description"] == "a\0b" and executor["metadata"]["generation"] == 1  # no write has changed it
    assert executor["status"]["status"] == "refused"


def test_why_of_a_run_says_that_its_executor_is_missing(world):
    world.namespace.apply(world.run("first"))
    assert "Its executor net does not exist" in world.home.dayfly("why", "first").stdout
    world.namespace.apply(world.executor())
    world.phase("first", "WaitingApproval")


def test_the_latest_run_of_an_executor_may_be_one_that_was_refused(world):
    world.namespace.apply(world.executor())
    world.namespace.wait("executor", "net", lambda e: e.get("status", {}).get("conditions"))
    world.namespace.apply(world.run("first", variables={"1x": 1}))
    world.phase("first", "Failed")
    assert world.home.dayfly("why", "net").stdout.startswith("first, provision of net: Failed")


def test_a_run_that_brings_its_own_approval_is_refused(world):
    """By the service: the API server takes it, because a restored run comes without its status, too."""
    world.namespace.apply(world.executor(), world.run("first", decision={"verdict": "approved"}))
    run = world.phase("first", "Failed")
    assert conditions(run)["Failed"] == ("True", "InvalidDocument")
    assert "spec.decision: the run does not wait for a decision" in run["status"]["message"]


def test_an_edit_counts_as_a_revision_and_reaches_the_next_run(world):
    world.provision()
    world.namespace.apply(world.executor(variables={"gate": ""}))
    world.namespace.wait("executor", "net", lambda e: e["status"]["revision"] == 2)
    assert world.home.json("get", "executor", "net")["status"]["observedGeneration"] == 2


def test_two_that_want_one_place_for_their_state_do_not_both_get_it(world, tmp_path):
    storage = {"type": "local", "path": str(tmp_path / "state")}
    world.namespace.apply(world.executor("a", storage=storage), world.executor("b", storage=storage))
    both = [world.namespace.wait("executor", name, lambda e: e.get("status", {}).get("conditions")) for name in "ab"]
    assert sorted(conditions(e)["Succeeded"][0] for e in both) == ["False", "True"]


def test_an_executor_that_holds_resources_keeps_every_setting_of_its_storage(world):
    """The definition compares type and path; in another bucket the next plan would create everything again."""
    workspace = {"type": "local", "path": str(world.home.directory / "net.tfstate"), "config": {}}
    world.namespace.apply(world.executor(storage=workspace), world.run("first", autoApprove=True))
    world.phase("first", "Succeeded")
    elsewhere = {"workspace_dir": str(world.home.directory / "elsewhere")}
    world.patch("executor", "net", {"storage": {"config": elsewhere}})
    edited = world.namespace.wait("executor", "net", lambda e: e["status"]["revision"] == 2)
    assert conditions(edited)["Failed"] == ("True", "InvalidDocument")
    assert "`dayfly state migrate net` moves the state" in next(c["message"] for c in edited["status"]["conditions"] if c["type"] == "Failed")
    world.patch("executor", "net", {"storage": {"config": {"workspace_dir": None}}})
    world.namespace.wait("executor", "net", lambda e: conditions(e)["Succeeded"][0] == "True")


def test_a_step_that_somebody_applies_is_refused_and_none_can_be_forged(world):
    world.namespace.apply(
        world.executor(),
        {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": "mine"},
         "spec": {"action": "plan", "targetResource": "executor/net", "runRef": {"name": "none"}}},
        {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": "first-plan"},
         "spec": {"action": "plan", "engine": "none", "targetResource": "executor/net", "runRef": {"name": "first"}}})
    mine = world.namespace.wait("taskaction", "mine", lambda t: t.get("status", {}).get("conditions"))
    assert conditions(mine)["Failed"] == ("True", "InvalidDocument")
    world.namespace.wait("taskaction", "first-plan", lambda t: t.get("status", {}).get("conditions"))
    world.namespace.apply(world.run("first", autoApprove=True))
    assert world.phase("first", "Failed")["status"]["reason"] == "NameTaken"


def test_the_steps_of_an_applied_run_are_jobs(home, namespace, tofu):
    crds.install(namespace.cluster)
    try:
        with Pods(home, namespace, tofu, config={"store": "kubernetes"}):
            namespace.apply(
                config_map_of(home.module("net", 'output "n" { value = 1 }\nresource "terraform_data" "a" {}'), "module"),
                {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"},
                 "spec": {"source": {"url": "file:///module/module.tar.gz", "kind": "archive"},
                          "placement": {"configMapMounts": [{"name": "module", "mountPath": "/module"}]}}},
                World.run("first", autoApprove=True))
            namespace.wait("run", "first", lambda r: r.get("status", {}).get("phase") == "Succeeded", seconds=180)
            assert {j["metadata"]["name"] for j in namespace.get("jobs")} == {"first-plan", "first-apply"}
            assert namespace.get("taskaction", "first-apply")["status"]["engineRef"]["kind"] == "Job"
    finally:
        namespace.let_go()


def test_retention_leaves_a_run_whose_file_may_be_applied_again(home, namespace):
    """It would come back, and run again. `kubectl apply` marks it."""
    home.env["DAYFLY_RETENTION_RUNS"] = "1"
    with World(home, namespace) as world:
        world.provision("first")
        for _ in range(2):
            status, _, run = world.server.request("POST", "/v1/executors/net/runs", {"action": "dry-run"})
            assert status == 201, run
            world.phase(json.loads(run)["metadata"]["name"], "Succeeded")
        removed = home.json("gc")["items"]
        assert [item["kind"] for item in removed] == ["Run"] and removed[0]["name"] != "first"
        assert world.server.get("/v1/runs/first")["status"]["phase"] == "Succeeded"


# ---- cancel and delete ----------------------------------------------------------------------------------------------

@pytest.fixture
def gate(tmp_path):
    path = tmp_path / "gate"
    yield path
    path.touch()


def begin_to_apply(world, gate):
    """A run whose apply does not end before the gate is opened."""
    world.namespace.apply(world.executor(variables={"gate": str(gate)}), world.run("first", autoApprove=True))
    world.namespace.wait("taskaction", "first-apply", lambda t: t.get("status", {}).get("claimedBy"))


def test_a_run_is_canceled_by_a_patch(world, gate):
    world.namespace.apply(world.executor(), world.run("first"))
    world.phase("first", "WaitingApproval")
    world.patch("run", "first", {"cancel": {"reason": "enough"}})
    run = world.phase("first", "Canceled")
    assert world.home.json("get", "run", "first")["spec"]["cancel"]["by"] == "kubernetes", run


def test_a_deleted_run_is_ended_first_and_goes_with_its_steps(world, gate):
    begin_to_apply(world, gate)
    world.namespace.kubectl("delete", "run", "first", "--wait=false")
    seen = world.namespace.wait("run", "first", lambda r: (r["status"].get("service") or {}).get("spec", {}).get(
        "cancel"))
    assert seen["metadata"]["deletionTimestamp"]
    gate.touch()
    world.namespace.wait_gone("run", "first")
    assert world.namespace.get("taskactions") == []


def test_a_deleted_executor_waits_until_nothing_would_be_left_behind(world):
    world.provision()
    world.namespace.kubectl("delete", "executor", "net", "--wait=false")
    waits = world.namespace.wait("executor", "net", lambda e: "Destroy it first" in e["status"]["conditions"][0]["message"])
    assert conditions(waits)["Progressing"][1] == "Deleting"
    world.namespace.apply(world.run("last", action="destroy", autoApprove=True))
    world.namespace.wait_gone("executor", "net")
    assert world.namespace.get("runs") == [] and world.namespace.get("taskactions") == []


# ---- death ----------------------------------------------------------------------------------------------------------

def test_a_spawner_that_was_killed_goes_on_where_it_was(world, gate):
    begin_to_apply(world, gate)
    world.server.kill()
    # Meanwhile people go on.
    world.namespace.apply(world.run("second", action="dry-run"))
    world.namespace.apply(world.executor("late"))
    gate.touch()
    world.server.start()
    world.phase("first", "Succeeded")
    world.phase("second", "Succeeded")
    world.namespace.wait("executor", "late", lambda e: e.get("status", {}).get("state") == "provision")
    plans = [t["metadata"]["name"] for t in world.namespace.get("taskactions")]
    assert sorted(plans) == ["first-apply", "first-plan", "second-plan"]


def test_what_was_deleted_while_nobody_was_there_goes_afterwards(world):
    world.provision()
    world.server.kill()
    world.namespace.kubectl("delete", "run", "first", "--wait=false")
    assert world.namespace.get("run", "first")
    world.server.start()
    world.namespace.wait_gone("run", "first")


def test_a_spawner_killed_at_any_request_loses_and_doubles_nothing(world):
    """Killed again and again, a moment later each time, while runs go on."""
    world.namespace.apply(world.executor())
    runs = [f"r{i}" for i in range(4)]
    world.namespace.apply(*[world.run(name, autoApprove=True) for name in runs])
    for _ in range(6):
        done = [r for r in world.namespace.get("runs") if r.get("status", {}).get("phase") == "Succeeded"]
        if len(done) == len(runs):
            break
        before = {t["metadata"]["name"]: t["metadata"]["resourceVersion"] for t in world.namespace.get("taskactions")}
        wait_for("a step to move on", lambda: {t["metadata"]["name"]: t["metadata"]["resourceVersion"]
                                               for t in world.namespace.get("taskactions")} != before or
                 all(r.get("status", {}).get("phase") == "Succeeded" for r in world.namespace.get("runs")))
        world.server.kill()
        world.server.start()
    for name in runs:
        world.phase(name, "Succeeded")
    numbers = [world.home.json("get", "run", name)["spec"]["number"] for name in runs]
    assert len(set(numbers)) == len(numbers)
    steps = world.namespace.get("taskactions")
    assert len(steps) <= 2 * len(runs) and all(conditions(t)["Succeeded"][0] == "True" for t in steps)


def test_an_annotation_of_somebody_else_is_seen_but_moves_nothing(world):
    world.provision()

    def passes():
        text = world.server.request("GET", "/metrics")[2].decode()
        return [line for line in text.splitlines() if line.startswith("dayfly_control_passes_total")]

    def settled():
        return not world.server.get("/v1/taskactions?label=dayfly.dev%2Funfinished%3Dtrue")["items"]

    def rests():
        before = passes()
        time.sleep(1)
        return passes() == before
    wait_for("everything to be tidied up", settled)
    wait_for("the loop to rest", rests)
    before = passes()
    world.namespace.kubectl("annotate", "run", "first", "team=net")
    wait_for("the annotation", lambda: "team" in json.dumps(world.server.get("/v1/runs/first")))
    assert passes() == before
    world.patch("executor", "net", {"description": "mine"})
    wait_for("the edit", lambda: passes() != before)
