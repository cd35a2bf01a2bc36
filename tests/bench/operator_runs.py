"""The parts of `make bench` about a whole run as a user of the operator sees it: from the documents to "applied", against a bare
Job that does init, plan and apply of the same module, by turns."""

import datetime
import json
import os
import statistics
import time

from kubernetes import World, api_server, api_server_pid, clear, complete_at, cpu_seconds, created_at, jobs_path, quiet, status_kib
from lib import dayfly as d
from lib.pods import TAG
from lib.replicas import Replicas

GROUP = "/apis/dayfly.dev/v1alpha1/namespaces"
SPAWNERS = 2
IDLE = 60  # seconds
MODULE = """
resource "terraform_data" "a" { input = "a" }
resource "terraform_data" "b" { input = terraform_data.a.output }
resource "terraform_data" "c" { input = terraform_data.b.output }
output "last" { value = terraform_data.c.output }
"""
SLOW = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "sleep 10"
  }
}
"""
MOUNT = {"name": "module", "mountPath": "/module"}
BARE = "set -e; cp /module/main.tf .; tofu init -input=false; tofu plan -input=false -out=plan.bin; tofu apply -input=false plan.bin"
# As BARE where everything was applied before: its state is the ConfigMap's.
BARE_AGAIN = BARE.replace("cp /module/main.tf .", "cp /module/main.tf /module/terraform.tfstate .")


# Of the chart: a runner's pod for each of so many steps at once.
CONFIG = {"log": {"level": "info"}, "limits": {"steps": 24}}


def configured(work, config=None, **more):
    """The operator as its chart installs it, but for what is given: two replicas and the default Lease."""
    return World(work, Replicas, **{"count": SPAWNERS, "lease": "15s", "config": {**CONFIG, **(config or {})}, **more})


def config_map(w, name, **files):
    w.namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {
        file.replace("__", "."): text for file, text in files.items()}})


# ---- what is made ----------------------------------------------------------------------------------------------------

def executor(name, **placement):
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name}, "spec": {
        "source": {"url": "file:///module", "kind": "directory"},
        "placement": {"imagePullPolicy": "IfNotPresent", "configMapMounts": [MOUNT], **placement}}}


def provision(name, of):
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Run", "metadata": {"name": name}, "spec": {
        "executorRef": {"name": of}, "action": "provision", "autoApprove": True}}


def bare_job(name, script, module="module"):
    """With what a user gives a pod that shall not touch anything else: a directory of its own, no token of the cluster."""
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": {
        "restartPolicy": "Never", "automountServiceAccountToken": False, "enableServiceLinks": False,
        "volumes": [{"name": "module", "configMap": {"name": module}}, {"name": "work", "emptyDir": {}}],
        "containers": [{"name": "tofu", "image": f"localhost/dayfly-runner:{TAG}", "imagePullPolicy": "IfNotPresent",
                        "command": ["sh", "-c", script], "workingDir": "/work",
                        "env": [{"name": "HOME", "value": "/work"}, {"name": "CHECKPOINT_DISABLE", "value": "1"}],
                        "volumeMounts": [MOUNT, {"name": "work", "mountPath": "/work"}]}]}}}}


def post(w, api, kind, *documents):
    for document in documents:
        api.send("POST", f"{GROUP}/{w.namespace.name}/{kind}", document)


# ---- what is measured ------------------------------------------------------------------------------------------------

def run_of(w, api, name):
    return api.send("GET", f"{GROUP}/{w.namespace.name}/runs/{name}")


def wait_runs(w, api, names, reason):
    def ended():
        """One request for all of them, and not often: it is the API server whose time is measured."""
        found = [run.get("status", {}) for run in api.send("GET", f"{GROUP}/{w.namespace.name}/runs")["items"]
                 if run["metadata"]["name"] in names]
        over = [status for status in found if "finishedAt" in status]
        assert all(status["reason"] == reason for status in over), over
        return len(over) == len(names) or time.sleep(0.5)
    d.wait_for(f"{len(names)} runs", ended, seconds=600)


def wait_jobs(w, api, names):
    def done():
        over = [j["metadata"]["name"] for j in api.send("GET", jobs_path(w))["items"] if j["status"].get("succeeded")]
        return set(names) <= set(over) or time.sleep(0.5)
    d.wait_for(f"{len(names)} bare Jobs", done, seconds=600)


def spans(w, resource, names):
    """Seconds of each from the first one's creation to its own last status: what the API server itself says."""
    began = min(created_at(w, name, resource) for name in names)
    return [complete_at(w, name, resource) - began for name in names]


class Cpu:
    """CPU seconds of the spawners and of the API server while it is open, without what they take when idle."""

    def __init__(self, w, idle=(0.0, 0.0)):
        self.pids = [s.process.pid for s in w.pods.spawners]
        self.api = api_server_pid(w.cluster)
        self.idle = idle

    def now(self):
        return sum(cpu_seconds(pid) for pid in self.pids), cpu_seconds(self.api)

    def __enter__(self):
        self.before, self.began = self.now(), time.monotonic()
        return self

    def __exit__(self, *_):
        took = time.monotonic() - self.began
        self.spawners, self.api_server = (now - before - took * idle for now, before, idle in
                                          zip(self.now(), self.before, self.idle, strict=True))


def idle_share(w, quick):
    """CPU seconds a second of all spawners, and of the API server."""
    seconds = 15 if quick else IDLE
    with Cpu(w) as cpu:
        time.sleep(seconds)
    return cpu.spawners / seconds, cpu.api_server / seconds


# ---- one after the other ---------------------------------------------------------------------------------------------

ONE_POD = {"podPerStep": False}


def one(w, api, i):
    """Seconds to "applied" of a run applied with its executor, of another one in one pod, of one whose executor was there and that
    changes nothing, and of the bare Jobs that do the same."""
    name = f"one-{i}"
    post(w, api, "executors", executor(name))
    post(w, api, "runs", provision(name, name))
    wait_runs(w, api, [name], "Applied")
    quiet(w.pods)
    post(w, api, "runs", provision(f"{name}-again", name))
    wait_runs(w, api, [f"{name}-again"], "NoChanges")
    quiet(w.pods)
    post(w, api, "executors", executor(f"{name}-pod", **ONE_POD))
    post(w, api, "runs", provision(f"{name}-pod", f"{name}-pod"))
    wait_runs(w, api, [f"{name}-pod"], "Applied")
    quiet(w.pods)
    bare = [f"bare-{i}", f"bare-{i}-again"]
    for job, script, module in zip(bare, (BARE, BARE_AGAIN), ("module", "applied"), strict=True):
        api.send("POST", jobs_path(w), bare_job(job, script, module))
        wait_jobs(w, api, [job])
        time.sleep(1)
    return [spans(w, kind, [which])[0] for kind, which in
            (("runs", name), ("runs", f"{name}-pod"), ("runs", f"{name}-again"), ("jobs", bare[0]), ("jobs", bare[1]))]


def ratio_row(row, what, ours, bare, aim):
    ratio = statistics.median(o / b for o, b in zip(ours, bare, strict=True))
    row(what, f"{ratio:.2f} ({statistics.median(ours):.2f} s, bare Job {statistics.median(bare):.2f} s, n={len(ours)})",
        f"<= {aim}", ratio <= aim)


def single(row, w, api, quick):
    turns = [one(w, api, i) for i in range(1 + (2 if quick else 7))][1:]  # the first one fills caches for both
    applied, in_one, again, bare, bare_again = zip(*turns, strict=True)
    ratio_row(row, "operator: documents to applied, against a bare Job's Complete", applied, bare, 0.5)
    ratio_row(row, "operator: the same with one pod for both steps", in_one, bare, 0.35)
    ratio_row(row, "operator: the same again, no changes", again, bare_again, 0.27)


# ---- ten at once -----------------------------------------------------------------------------------------------------

def ten_ours(w, api, i, idle, **placement):
    names = [f"ten-{i}-{j}" for j in range(10)]
    with Cpu(w, idle) as cpu:
        post(w, api, "executors", *[executor(name, **placement) for name in names])
        post(w, api, "runs", *[provision(name, name) for name in names])
        wait_runs(w, api, names, "Applied")
        quiet(w.pods)
    return spans(w, "runs", names), cpu


def ten_bare(w, api, prefix, idle, count):
    names = [f"bare-{prefix}-{j}" for j in range(count)]
    with Cpu(w, idle) as cpu:
        for name in names:
            api.send("POST", jobs_path(w), bare_job(name, BARE))
        wait_jobs(w, api, names)
        time.sleep(2)
    return spans(w, "jobs", names), cpu


def kept(w):
    """What a run leaves in the namespace, by kind."""
    return {kind: len(w.namespace.get(kind)) for kind in ("secrets", "configmaps")}


class Tens:
    """What the turns of ten at once took."""

    def __init__(self):
        self.first, self.last, self.spawners, self.api_server = [], [], [], []

    def add(self, spans_of_ten, cpu):
        self.first.append(min(spans_of_ten)), self.last.append(max(spans_of_ten))
        self.spawners.append(cpu.spawners), self.api_server.append(cpu.api_server)


def ten_turns(w, api, quick, idle):
    """By turns: ours with a pod for each step, ours with one for both, ten bare Jobs, twenty of them."""
    ours, in_one, bare, pods = Tens(), Tens(), Tens(), Tens()
    for i in range(1 if quick else 3):
        ours.add(*ten_ours(w, api, i, idle))
        in_one.add(*ten_ours(w, api, f"pod-{i}", idle, **ONE_POD))
        bare.add(*ten_bare(w, api, f"ten-{i}", idle, 10))
        pods.add(*ten_bare(w, api, f"twenty-{i}", idle, 20))
    return ours, in_one, bare, pods


def cpu_rows(row, what, ours, bare):
    spent = statistics.median(ours.spawners) / 10 * 1000
    row(f"operator: CPU of all replicas for a run, ten at once, {what}", f"{spent:.0f} ms", "<= 60 ms", spent <= 60)
    theirs, its = statistics.median(ours.api_server), statistics.median(bare.api_server)
    row(f"operator: API server's CPU for ten runs against as many bare pods, {what}", f"{theirs / its:.2f} ({theirs:.1f} s, bare "
        f"{its:.1f} s)", "<= 1.3", theirs / its <= 1.3)


def ten(row, w, api, quick):
    idle, before = idle_share(w, quick), kept(w)
    each = idle[0] * 60 / SPAWNERS
    row("operator idle: CPU of a replica in a minute", f"{each:.2f} s", "<= 0.05 s", each <= 0.05)
    ours, in_one, bare, pods = ten_turns(w, api, quick, idle)
    ratio_row(row, "operator: ten at once, the last applied", ours.last, bare.last, 1.5)
    ratio_row(row, "operator: the same with one pod for both steps", in_one.last, bare.last, 0.95)
    ratio_row(row, "operator: ten at once, against as many bare pods: twenty Jobs", ours.last, pods.last, 1.0)
    ratio_row(row, "operator: ten at once, the first applied", ours.first, bare.first, 1.5)
    cpu_rows(row, "two pods", ours, pods)
    cpu_rows(row, "one pod", in_one, bare)
    runs_made = 20 * len(ours.last)
    left = {kind: round((count - before[kind]) / runs_made, 1) for kind, count in kept(w).items()}
    row("operator: objects that a run leaves", ", ".join(f"{count} {kind}" for kind, count in left.items()), "", True)
    most = max(status_kib(s.process.pid, "VmRSS") for s in w.pods.spawners) / 1024
    row("operator: resident memory of a replica", f"{most:.1f} MiB", "<= 36 MiB", most <= 36)


# ---- pods that are there before they are needed ----------------------------------------------------------------------

CLASS = {"standby": {"min": 2, "max": 4},
         "placement": {"imagePullPolicy": "IfNotPresent", "configMapMounts": [MOUNT]}}


AHEAD = {"of": "ahead"}  # so that no runner of the class fits


MANY = {**CLASS, "standby": {"min": 20, "max": 20}}  # the steps of ten runs


def of_class(name, which="warm"):
    """An executor whose pods are those of the class."""
    document = executor(name)
    document["spec"]["class"] = which
    del document["spec"]["placement"]
    return document


def wait_standbys(w, count):
    """Until so many runners wait, and nothing else is at work."""
    quiet(w.pods)
    d.wait_for("standby runners", lambda: sum(
        pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in w.namespace.get_all("pods", "dayfly.dev/standby")) >= count or time.sleep(0.2), seconds=60)
    time.sleep(1)


def mark(w, api, step, name):
    """The moment of the entry of this name in the timeline of a step, in seconds."""
    task = api.send("GET", f"{GROUP}/{w.namespace.name}/taskactions/{step}")
    at = next(entry["at"] for entry in task["status"]["timeline"] if entry["name"] == name)
    return datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp()


def to_the_tool(w, api, run):
    """Milliseconds from a run's arrival at the API server to the moment at which its plan has source and tool."""
    return (mark(w, api, f"{run}-plan", "sourced") - created_at(w, run, "runs")) * 1000


def turn_ahead(w, api, i):
    """Seconds to "applied" of a run from standby, of the same without changes, of one whose apply's pod starts while the plan is at
    work, of the same without changes, and of the bare Jobs."""
    took = []
    for name, document in ((f"warm-{i}", of_class(f"warm-{i}")), (f"ahead-{i}", executor(f"ahead-{i}", labels=AHEAD))):
        wait_standbys(w, CLASS["standby"]["min"])
        post(w, api, "executors", document)
        for run, reason in ((name, "Applied"), (f"{name}-again", "NoChanges")):
            post(w, api, "runs", provision(run, name))
            wait_runs(w, api, [run], reason)
            took.append(spans(w, "runs", [run])[0])
            took.append(to_the_tool(w, api, run))
            wait_standbys(w, CLASS["standby"]["min"])
    for job, script, module in ((f"bare-{i}", BARE, "module"), (f"bare-{i}-again", BARE_AGAIN, "applied")):
        api.send("POST", jobs_path(w), bare_job(job, script, module))
        wait_jobs(w, api, [job])
        took.append(spans(w, "jobs", [job])[0])
        time.sleep(1)
    return took


def turn_of_ten(w, api, i, idle):
    """Ten at once from runners that wait, and ten bare Jobs."""
    names = [f"many-{i}-{j}" for j in range(10)]
    wait_standbys(w, MANY["standby"]["min"])
    with Cpu(w, idle) as cpu:
        post(w, api, "executors", *[of_class(name, "many") for name in names])
        post(w, api, "runs", *[provision(name, name) for name in names])
        wait_runs(w, api, names, "Applied")
    ours = spans(w, "runs", names), cpu
    wait_standbys(w, MANY["standby"]["min"])
    return ours, ten_bare(w, api, f"many-{i}", idle, 10)


def standby_ten(row, quick, work):
    with configured(work, config={"classes": {"many": MANY}}) as w, w.pods:
        config_map(w, "module", main__tf=MODULE)
        api = api_server(w.cluster)
        wait_standbys(w, MANY["standby"]["min"])
        idle = idle_share(w, quick)
        ours, bare = Tens(), Tens()
        for i in range(1 + (1 if quick else 3)):
            of_turn, of_bare = turn_of_ten(w, api, i, idle)
            if i:  # the first one fills caches for both
                ours.add(*of_turn), bare.add(*of_bare)
        ratio_row(row, "operator: ten at once from standby runners, the last applied", ours.last, bare.last, 1.04)
        ratio_row(row, "operator: the same, the first applied", ours.first, bare.first, 0.75)


def standby(row, quick, work):
    with configured(work, config={"classes": {"warm": CLASS}}, applyAhead=True) as w, w.pods:
        config_map(w, "module", main__tf=MODULE)
        config_map(w, "applied", main__tf=MODULE, terraform__tfstate=applied_state(w))
        api = api_server(w.cluster)
        turns = [turn_ahead(w, api, i) for i in range(1 + (2 if quick else 7))][1:]
        warm, first, warm_again, second, ahead, _, ahead_again, _, bare, bare_again = zip(*turns, strict=True)
        begins = statistics.median(second)
        row("operator: run accepted to its plan's source and tool, from standby runners, p50", f"{begins:.0f} ms (with its executor: "
            f"{statistics.median(first):.0f} ms, n={len(second)})", "<= 50 ms", begins <= 50)
        ratio_row(row, "operator: documents to applied from standby runners", warm, bare, 0.17)
        ratio_row(row, "operator: the same again, no changes", warm_again, bare_again, 0.27)
        ratio_row(row, "operator: documents to applied, the apply's pod started ahead", ahead, bare, 0.5)
        ratio_row(row, "operator: the same again, no changes", ahead_again, bare_again, 0.27)


# ---- take-over -------------------------------------------------------------------------------------------------------

def begin(w, index):
    """As a container of a pod of its own: its kubelet starts it again after its death."""
    w.home.env["POD_UID"] = f"pod-{index}"
    w.pods.spawners[index].start()


def takeover(w, api, name, comes_back):
    """Seconds from the leader's death in the middle of an apply to the moment at which somebody leads."""
    post(w, api, "executors", executor(name))
    post(w, api, "runs", provision(name, name))
    d.wait_for("the apply", lambda: any(s["name"] == "apply" and s["phase"] == "Running" for s in run_of(
        w, api, name).get("status", {}).get("steps", [])) or time.sleep(0.1), seconds=120)
    leader, term = w.pods.leader(), transitions_of_lease(w)
    w.pods.spawners[leader].kill()
    killed = time.monotonic()
    if comes_back:
        begin(w, leader)
    d.wait_for("a leader", lambda: transitions_of_lease(w) > term or time.sleep(0.05), seconds=60)
    took = time.monotonic() - killed
    if not comes_back:
        begin(w, leader)
    wait_runs(w, api, [name], "Applied")
    return took


def transitions_of_lease(w):
    return next(x["spec"]["leaseTransitions"] for x in w.namespace.get("leases") if x["metadata"]["name"] == "dayfly")


def takeovers(row, quick, work):
    rounds = 1 if quick else 3
    with configured(work) as w:
        config_map(w, "module", main__tf=SLOW)
        try:
            for index in range(SPAWNERS):
                begin(w, index)
            w.home.env.pop("DAYFLY_SERVER", None)
            d.wait_for("a leader", lambda: w.pods.leader() is not None)
            api = api_server(w.cluster)
            again = [takeover(w, api, f"again-{i}", comes_back=True) for i in range(rounds)]
            gone = [takeover(w, api, f"gone-{i}", comes_back=False) for i in range(rounds)]
        finally:
            w.home.env.pop("POD_UID", None)
    row("operator: leader's container killed in mid-apply, until one leads, longest", f"{max(again):.1f} s", "<= 5 s", max(again) <= 5)
    row("operator: leader's pod gone in mid-apply, until one leads, longest", f"{max(gone):.1f} s", "<= 17.5 s: the Lease and a look",
        max(gone) <= 17.5)


# ---- the parts -------------------------------------------------------------------------------------------------------

def runs(row, quick, work):
    with configured(work) as w, w.pods:
        config_map(w, "module", main__tf=MODULE)
        config_map(w, "applied", main__tf=MODULE, terraform__tfstate=applied_state(w))
        api = api_server(w.cluster)
        try:
            single(row, w, api, quick)
            ten(row, w, api, quick)
        finally:
            clear(w, "/api/v1", "events")


def applied_state(w):
    """The state of the module, applied on this machine."""
    directory = w.home.module("applied", MODULE)
    for args in (["init", "-input=false"], ["apply", "-input=false", "-auto-approve"]):
        result = w.home.run(w.home.bin / "tofu", *args, cwd=directory, env={"CHECKPOINT_DISABLE": "1", "HOME": os.fspath(directory)})
        assert result.returncode == 0, result.stdout + result.stderr
    return (directory / "terraform.tfstate").read_text()


PARTS = {"operator-runs": runs, "operator-standby": standby, "operator-standby-ten": standby_ten, "operator-takeover": takeovers}
