"""Workflows of three engines at once, while spawners, the API server and AWX are killed and come back at random moments:
none is lost, doubled or stuck, no target has two at a time, and nothing is left.

Whoever works for a workflow (its pod, Tekton's controller, AWX; the last two are played) writes down when it begins and
ends, all in one file: that is what counts."""

import collections
import contextlib
import json
import os
import random
import threading
import time

import pytest

from lib import awx as played
from lib import tekton, workflows
from lib.dayfly import wait_for
from lib.ledger import MOUNT
from lib.replicas import Replicas

COUNT = int(os.environ.get("DAYFLY_WORKFLOW_RUNS", "12"))
# A new leader gives AWX half a minute before it launches again what the last one had asked for: one that is killed more often
# than that starts nothing. So the faults end before the test does.
QUIET = 120
SEED = int(os.environ.get("DAYFLY_FAULT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
ENGINES = ("job", "tekton", "ansible")
SECRETS = ("repo-creds", "db-creds")
KILLED = ("leader", "other", "both", "awx", "awx", "apiserver")
ABREAST = 5  # workflows at once
BUNDLE = "registry.example.com/restart:v1"
ENDS = {"Completed": 6, "WorkflowFailed": 2, "Canceled": 2}  # and how often

Workflow = collections.namedtuple("Workflow", "name engine target seconds end")


def plan_of(count, chance):
    """{name: Workflow}. Some share a target, but for those that are canceled: nobody writes down when these end."""
    planned = {}
    for i in range(count):
        end = chance.choices(list(ENDS), ENDS.values())[0]
        target = f"own-{i}" if end == "Canceled" else f"shared-{chance.randrange(1 + count // 3)}"
        name = f"w{i}"
        planned[name] = Workflow(name, ENGINES[i % 3], f"default/deployment/{target}", round(chance.uniform(0, 3), 1), end)
    return planned


class Book:
    """The file that all write to."""

    def __init__(self, directory):
        self.path = directory / "workflows"
        self.path.touch()
        self.path.chmod(0o666)  # pods are another user

    def write(self, what, name):
        with open(self.path, "a", encoding="ascii") as book:
            book.write(f"{what} {name}\n")

    def lines(self):
        return [tuple(line.split()) for line in self.path.read_text().splitlines()]


class Players:
    """Tekton's controller in a thread, and AWX with a thread for each of its jobs."""

    def __init__(self, namespace, book, planned):
        self.book, self.planned = book, planned
        self.tekton = tekton.Controller(namespace)
        self.begun, self.ended = {}, set()  # uid of a PipelineRun -> when it began
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.play_tekton, daemon=True)
        self.thread.start()

    def play_tekton(self):
        while not self.stopped.wait(0.1):
            with contextlib.suppress(AssertionError, OSError):  # the API server is away
                for run in self.tekton.namespace.get("pipelineruns"):
                    self.work_on(run)

    def work_on(self, run):
        name, uid = run["metadata"]["name"], run["metadata"]["uid"]
        workflow = self.planned[run["metadata"]["labels"]["kubernaut.ai/workflow-execution"]]
        if "completionTime" in run.get("status", {}):
            return
        if uid not in self.begun:
            self.begun[uid] = time.monotonic()
            self.book.write("begin", workflow.name)
        if run["spec"].get("status") == "Cancelled":
            self.tekton.end(name, "False", "Cancelled", "was cancelled")
        elif "startTime" not in run.get("status", {}):
            self.tekton.begin(name)
        elif time.monotonic() > self.begun[uid] + workflow.seconds:
            self.end(name, uid, workflow)

    def end(self, name, uid, workflow):
        if uid not in self.ended:
            self.ended.add(uid)
            self.book.write("end", workflow.name)
        if workflow.end == "WorkflowFailed":
            self.tekton.end(name, "False", "Failed", "Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0")
        else:
            self.tekton.end(name)

    def play_awx(self, awx, job):
        workflow = self.planned[json.loads(job["extra_vars"])["WFE_NAME"]]
        self.book.write("begin", workflow.name)
        awx.move(job["id"], "running")
        time.sleep(workflow.seconds)
        self.book.write("end", workflow.name)
        awx.move(job["id"], "failed" if workflow.end == "WorkflowFailed" else "successful", "PLAY [all]\n")

    def stop(self):
        self.stopped.set()
        self.thread.join()


class Sweep:
    def __init__(self, world, awx, cluster, chance):
        self.world, self.awx, self.cluster, self.chance = world, awx, cluster, chance
        self.planned = plan_of(COUNT, chance)
        self.book = Book(world.ledger.directory)
        self.asked, self.ended = [], {}
        self.cancel_at = {}
        self.hurt = collections.Counter()
        self.next = []  # what is killed next: each once in every turn

    # ---- what is asked for ----

    def document(self, w):
        common = {"targetResource": w.target, "timeoutSeconds": 600, "pendingSeconds": 600}
        if w.engine == "job":
            ledger = {"name": "ledger", "hostPath": {"path": str(self.world.ledger.directory), "type": "Directory"}}
            script = (f"echo begin {w.name} >>{MOUNT}/workflows; sleep {w.seconds}; echo end {w.name} >>{MOUNT}/workflows; "
                      f"exit {3 if w.end == 'WorkflowFailed' else 0}")
            return workflows.document(self.world.image, w.name, script, spec=common, volumes=[(ledger, MOUNT)])
        special = {"executionBundle": BUNDLE} if w.engine == "tekton" else {
            "engineConfig": {"playbookPath": "restart.yml", "jobTemplateName": "restart"},
            "dependencies": {"secrets": [{"name": name} for name in SECRETS]}}
        return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": w.name},
                "spec": {"action": "workflow", "engine": w.engine, **common, "workflow": special}}

    def fill(self):
        for w in list(self.planned.values())[len(self.asked):]:
            if len(self.asked) - len(self.ended) >= ABREAST:
                return
            status, answer = self.world.ask("POST", "/v1/taskactions", self.document(w), w.name)
            assert status in (200, 201), answer
            self.asked.append(w.name)
            if w.end == "Canceled":
                self.cancel_at[w.name] = time.monotonic() + self.chance.uniform(0, 3)

    def cancel(self):
        for name, at in list(self.cancel_at.items()):
            if time.monotonic() > at:
                status, answer = self.world.ask("POST", f"/v1/taskactions/{name}/cancel", {"reason": "at random"})
                assert status in (200, 202, 409), answer  # 409: it has ended
                del self.cancel_at[name]

    def look(self):
        for task in self.world.tasks():
            if workflows.has_ended(task):
                self.ended.setdefault(task["metadata"]["name"], task["status"]["reason"])

    # ---- what is killed ----

    def kill(self, *replicas):
        for i in replicas:
            if self.world.spawners[i].process.poll() is None:
                self.world.spawners[i].kill()

    def strike(self):
        leader = self.world.leader() or 0
        if not self.next:
            # After many deaths of its API server a node looks for the next one so rarely that it is taken for lost.
            turn = [what for what in KILLED if what != "apiserver" or self.hurt[what] < COUNT // 12]
            self.next = self.chance.sample(turn, len(turn))
        what = self.next.pop()
        self.hurt[what] += 1
        if what == "awx":
            self.awx.kill()
            time.sleep(self.chance.uniform(0, 2))
            self.awx.revive()
        elif what == "apiserver":
            self.cluster.kill_part("apiserver")
            self.cluster.bring_back()
        else:
            self.kill(*{"leader": [leader], "other": [1 - leader], "both": [0, 1]}[what])

    def go(self):
        end = time.monotonic() + 180 + 10 * COUNT + QUIET
        while len(self.ended) < COUNT:
            assert time.monotonic() < end, f"stuck: {[name for name in self.asked if name not in self.ended]}"
            until = time.monotonic() + self.chance.uniform(0.2, 3)
            while time.monotonic() < until and len(self.ended) < COUNT:
                self.fill()
                self.cancel()
                self.look()
                time.sleep(0.1)
            if len(self.ended) < COUNT and time.monotonic() < end - QUIET:
                self.strike()

    # ---- afterwards ----

    def check_ends(self):
        for name, reason in self.ended.items():
            end = self.planned[name].end
            assert reason == end or (end, reason) == ("Canceled", "Completed"), self.world.get(f"/v1/taskactions/{name}")["status"]

    def check_once(self):
        counts = collections.Counter(self.book.lines())
        for name, reason in self.ended.items():
            times = [counts["begin", name], counts["end", name]]
            assert times == [1, 1] or (reason == "Canceled" and max(times) <= 1), (self.planned[name], reason, times)

    def check_one_at_a_time(self):
        holders = {}
        for what, name in self.book.lines():
            w = self.planned[name]
            if w.end == "Canceled":
                continue
            assert holders.get(w.target) == (None if what == "begin" else name), (what, w, holders)
            holders[w.target] = name if what == "begin" else None

    def check_made(self):
        """Whoever was told to make something, was told once."""
        launched = collections.Counter(json.loads(job["extra_vars"])["DAYFLY_UID"] for job in self.awx.jobs.values())
        assert set(launched.values()) <= {1}, launched
        made = collections.Counter()
        for event in self.cluster.audit(f'"namespace":"{self.world.namespace.name}"'):
            what = event.get("objectRef", {})
            if what.get("resource") in ("jobs", "pipelineruns") and event["verb"] == "create" and event["responseStatus"]["code"] == 201:
                made[what["resource"]] += 1
        for resource, engine in (("jobs", "job"), ("pipelineruns", "tekton")):  # an API server that dies may not have told
            assert made[resource] <= len([w for w in self.planned.values() if w.engine == engine]), made

    def check_nothing_left(self):
        try:
            wait_for("the last credential to go", lambda: not self.awx.credentials)
        finally:
            print("credentials that are left:", [c["name"] for c in self.awx.credentials.values()])
        types = sorted(t["name"] for t in self.awx.types.values() if not t["managed"])
        assert types == sorted(f"kubernaut-secret-{name}" for name in SECRETS)  # these stay, one for each Secret
        for name in self.asked:
            status, answer = self.world.ask("DELETE", f"/v1/taskactions/{name}")
            assert status in (200, 202, 204, 404), answer
        for kind in ("taskactions", "jobs", "pipelineruns"):
            wait_for(f"the last of the {kind} to go", lambda kind=kind: not self.world.namespace.get(kind))
        # One that has ended may stay: Kubernetes' garbage collector overlooks a Job of the same name that took the place of
        # its own while the API server was away.
        wait_for("the last pod to end", lambda: not [pod for pod in self.world.namespace.get("pods")
                                                     if pod["status"].get("phase") not in ("Succeeded", "Failed")])

    def check(self):
        self.check_ends()
        self.check_once()
        self.check_one_at_a_time()
        self.check_made()
        self.check_nothing_left()


@pytest.fixture
def pipelines(alone):
    tekton.install(alone)
    yield
    tekton.remove(alone)


@pytest.fixture
def awx():
    with played.AWX() as server:
        server.template("restart")
        yield server


@pytest.fixture
def world(pipelines, home, namespace, tofu, awx):
    replicas = Replicas(home, namespace, tofu, config={
        "engines": list(ENGINES), "log": {"level": "debug"}, "limits": {"steps": ABREAST},
        "ansible": {"apiUrl": awx.url, "tokenSecretRef": {"name": "awx-token", "key": "token"}}})
    namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": workflows.ACCOUNT}},
                    *[{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"token": played.TOKEN}}
                      for name in ("awx-token", *SECRETS)])
    yield replicas.start()
    replicas.__exit__()


def test_workflows_of_three_engines_survive_random_kills_of_everything_they_need(alone, world, awx):
    print(f"DAYFLY_FAULT_SEED={SEED}")
    began = time.monotonic()
    sweep = Sweep(world, awx, alone, random.Random(SEED))
    players = Players(world.namespace, sweep.book, sweep.planned)
    awx.run_job = players.play_awx
    try:
        sweep.go()
        print(f"{COUNT} workflows in {time.monotonic() - began:.0f} s, killed: {dict(sweep.hurt)}, ends: "
              f"{dict(collections.Counter(sweep.ended.values()))}")
        sweep.check()
    finally:
        players.stop()
