"""The parts of `make bench` about workflows of the engines tekton and ansible: imported by run. Tekton's controller and AWX are
played; the API server is real."""

import base64
import contextlib
import json
import time

from kubernetes import World, api_server, quiet, rested, seconds_of, status_kib, tail_of
from lib import awx as played
from lib import dayfly as d
from lib import tekton
from lib.workflows import Workflows

LIMIT_MS = 15
BEGUN = {"status": {"startTime": "2026-11-29T12:00:00Z", **tekton.succeeded("Unknown", "Running", "Tasks Completed: 0")}}


class Timed(played.AWX):
    """An AWX that knows when it was asked what, and when it answered: [(from, to, method, path)]."""

    def __init__(self):
        self.times = []
        super().__init__()

    def answer(self, method, target, *rest):
        began = time.time()
        answer = super().answer(method, target, *rest)
        self.times.append((began, time.time(), method, target))
        return answer


def settings(engine, awx=None, steps=2000):
    token = {"name": "awx-token", "key": "token"}
    return {"shape": Workflows, "config": {
        "engines": ["job", engine], "limits": {"steps": steps}, "log": {"level": "info"}, "timeouts": {"pending": "24h"},
        **({"ansible": {"apiUrl": awx.url, "tokenSecretRef": token}} if awx else {})}}


def ask(w, engine, name, special):
    """A workflow with a target of its own; returns when it was accepted."""
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": name},
                "spec": {"action": "workflow", "engine": engine, "targetResource": f"default/deployment/{name}", "workflow": special}}
    status, _, body = w.pods.server.request("POST", "/v1/taskactions", document,
                                            {"Authorization": f"Bearer {w.home.env['DAYFLY_TOKEN']}"})
    assert status == 201, body
    return seconds_of(next(t["at"] for t in json.loads(body)["status"]["timeline"] if t["name"] == "queued"))


def ask_tekton(w, name):
    return ask(w, "tekton", name, {"executionBundle": "registry.example.com/restart:v1"})


def ask_ansible(w, name):
    return ask(w, "ansible", name, {"engineConfig": {"playbookPath": "restart.yml", "jobTemplateName": "restart"}})


def served(w):
    """[(from, to)]: when the API server was asked by the spawner, in its audit log."""
    return [(seconds_of(e["requestReceivedTimestamp"]), seconds_of(e["stageTimestamp"])) for e in w.audit(stage="ResponseComplete")
            if e["verb"] != "watch" and not e["userAgent"].startswith("tests")]


def own_ms(begins, ends, others):
    """Milliseconds between these two without those for which others worked, [(from, to)]."""
    waited = sum(to - since for since, to in others if begins <= since and to <= ends)
    return (ends - begins - waited) * 1000


def report(row, what, asked, arrived, others):
    """asked, arrived: {name: time}."""
    p99, text = tail_of([own_ms(asked[name], arrived[name], others) for name in asked])
    row(f"workflow accepted to its {what}, own time, p99", text, f"<= {LIMIT_MS} ms", p99 <= LIMIT_MS)
    row("the same with the answers of others that it waits for", tail_of([(arrived[n] - asked[n]) * 1000 for n in asked])[1], "", True)


@contextlib.contextmanager
def tekton_in(w):
    tekton.install(w.cluster)
    try:
        yield
    finally:
        tekton.remove(w.cluster)


def accepted_tekton(row, quick, work):
    n = 20 if quick else 300
    with World(work, **settings("tekton")) as w, tekton_in(w), w.pods:
        rested(w.cluster)
        asked = {}
        for i in range(n + 1):
            asked[f"w{i}"] = ask_tekton(w, f"w{i}")
            time.sleep(0.05)
        d.wait_for("all runs", lambda: len(w.namespace.get("pipelineruns")) == n + 1)
        arrived = {}
        owners = {run["metadata"]["name"]: run["metadata"]["labels"]["kubernaut.ai/workflow-execution"]
                  for run in w.namespace.get("pipelineruns")}
        for event in w.audit(verb="create", resource="pipelineruns", stage="ResponseComplete"):
            arrived[owners[event["objectRef"]["name"]]] = seconds_of(event["requestReceivedTimestamp"])
        del asked["w0"]  # it opens connections
        report(row, "PipelineRun's POST", asked, arrived, served(w))


@contextlib.contextmanager
def awx_world(work, **more):
    with Timed() as awx:
        awx.template("restart")
        with World(work, **settings("ansible", awx, **more)) as w:
            w.namespace.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "awx-token"},
                               "data": {"token": base64.b64encode(played.TOKEN.encode()).decode()}})
            with w.pods:
                rested(w.cluster)
                yield w, awx


def accepted_ansible(row, quick, work):
    n = 20 if quick else 300
    with awx_world(work) as (w, awx):
        awx.run_job = lambda awx, job: awx.move(job["id"], "successful")
        asked = {}
        for i in range(n + 1):
            asked[f"w{i}"] = ask_ansible(w, f"w{i}")
            time.sleep(0.1)  # AWX is played by this process: it shall have nothing else to do
        d.wait_for("all jobs", lambda: len(awx.jobs) == n + 1)
        launches = [time for time in awx.times if time[3].endswith("/launch/")]
        arrived = {f"w{i}": launch[0] for i, launch in enumerate(launches)}
        del asked["w0"]
        report(row, "launch's POST to AWX", asked, arrived, [time[:2] for time in awx.times] + served(w))


def crowd(row, quick, work):
    """Live PipelineRuns: what they add to the spawner's memory."""
    n = 100 if quick else 1000
    with World(work, **settings("tekton")) as w, tekton_in(w), w.pods:
        pid = w.pods.server.process.pid
        for i in range(20):  # what the first ones need, all need
            ask_tekton(w, f"first{i}")
        d.wait_for("the first runs", lambda: len(w.namespace.get("pipelineruns")) == 20)
        time.sleep(5)
        before = status_kib(pid, "VmRSS")
        for i in range(n):
            ask_tekton(w, f"w{i}")
        api = api_server(w.cluster)
        path = f"/apis/tekton.dev/v1/namespaces/{w.namespace.name}/pipelineruns"
        d.wait_for("all runs", lambda: len(list(api.list(path))) == n + 20, seconds=600)
        for run in api.list(path):
            api.send("PATCH", f"{path}/{run['metadata']['name']}/status", BEGUN, "application/merge-patch+json")
        time.sleep(40)  # each was looked at: their logs are asked for every half minute
        added = (status_kib(pid, "VmRSS") - before) / 1024
    row(f"{n} live PipelineRuns: resident memory that they add", f"{added:.1f} MiB (before: {before / 1024:.1f})", "<= 4 MiB", added <= 4)


def asks(row, quick, work):
    """How often AWX is asked: by an idle service, and about a job that runs."""
    idle, runs = (30, 40) if quick else (90, 120)
    with awx_world(work) as (w, awx):
        quiet(w.pods)
        before = len(awx.times)
        time.sleep(idle)
        count = len(awx.times) - before
        row(f"AWX configured, nothing to do: requests in {idle} s", str(count), f"<= {idle // 30}", count <= idle // 30)
        ask_ansible(w, "long")
        d.wait_for("its job", lambda: awx.jobs)
        awx.move(1, "running")
        time.sleep(runs)
        at = [since for since, _, method, path in awx.times if (method, path) == ("GET", "/api/v2/jobs/1/")]
        pauses = [later - sooner for sooner, later in zip(at, at[1:])]
        awx.move(1, "successful")
    row("AWX asked about a running job: least pause", f"{min(pauses):.2f} s", ">= 2 s", min(pauses) >= 1.99)
    row(f"the same after {runs} s", f"{pauses[-1]:.1f} s", ">= 0.08 of its age", pauses[-1] >= 0.08 * runs and pauses[-1] > pauses[0])


PARTS = {"engines-tekton": accepted_tekton, "engines-ansible": accepted_ansible, "engines-crowd": crowd, "engines-asks": asks}
