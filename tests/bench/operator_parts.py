"""The parts of `make bench` about the operator: documents as custom resources, several spawners, real Jobs."""

import concurrent.futures
import http.client
import itertools
import json
import random
import time

from kubernetes import (NOWHERE, MadeJobs, Nobodys, World, api_server, bare_copy, clear, counted, cpu_seconds, jobs_path, passes, quiet,
                        seconds_of, status_kib)
from lib import dayfly as d
from lib.pods import TAG
from lib.replicas import Replicas

LEASE = 4  # seconds
PENDING = 86400  # nothing of these parts fails because the machine is slow
ANYTHING = {"write": {"workflow": {"fields": ["*", "podTemplate"], "images": ["*"], "serviceAccounts": ["default"]}}}
CONFIG = {"limits": {"steps": 10000}, "log": {"level": "info"}, "placement": {"allow": ANYTHING}}


def task(name, placement):
    """As somebody applies it."""
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": name}, "spec": {
        "action": "workflow", "targetResource": f"prod/deployment/{name}", "timeoutSeconds": PENDING, "pendingSeconds": PENDING,
        "workflow": {"executionBundle": f"localhost/dayfly-runner:{TAG}", "workflowId": "restart-deployment", "version": "1.4.2",
                     "parameters": {"REGION": "eu-west-1", "REPLICAS": "3", "NAMESPACE": "prod", "DEPLOYMENT": name},
                     "resources": {"limits": {"memory": "64Mi"}}, "serviceAccountName": "default"},
        "placement": {"imagePullPolicy": "IfNotPresent", **placement}}}


def tasks_path(w, *parts):
    return "/".join([f"/apis/dayfly.dev/v1alpha1/namespaces/{w.namespace.name}/taskactions", *parts])


def apply(w, api, names, placement):
    """Seconds that it takes the API server to have them."""
    return api.each(names, lambda name: api.send("POST", tasks_path(w), task(name, placement)))


def transitions(pods, phase):
    return counted(pods, f'dayfly_step_transitions_total{{phase="{phase}"')


# ---- many live ones -------------------------------------------------------------------------------------------------

def simulate(w, api, job):
    """What a node and the Job controller write of a pod that runs: there is no such node, and the scheduler is told to
    leave the pod alone."""
    meta, template, now = job["metadata"], job["spec"]["template"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": f"{meta['name']}-{meta['uid'][:5]}", "labels": template["metadata"]["labels"], "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}]},
        "spec": {**template["spec"], "schedulingGates": [{"name": "dayfly.dev/bench"}]}}
    pods = f"/api/v1/namespaces/{w.namespace.name}/pods"
    api.send("POST", pods, pod)
    containers = [{"name": c["name"], "image": c["image"], "imageID": "", "ready": True, "started": True, "restartCount": 0,
                   "state": {"running": {"startedAt": now}}} for c in template["spec"]["containers"]]
    conditions = [{"type": t, "status": "True", "lastTransitionTime": now}
                  for t in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")]
    api.send("PATCH", f"{pods}/{pod['metadata']['name']}/status", {"status": {
        "phase": "Running", "startTime": now, "conditions": conditions, "containerStatuses": containers}},
        "application/merge-patch+json")
    api.send("PATCH", jobs_path(w, meta["name"], "status"), {"status": {"active": 1, "ready": 1, "startTime": now}},
             "application/merge-patch+json")


def simulate_all(w, api, n):
    """Each Job's pod as soon as there is the Job, as its controller does it: one that comes late looks like a second."""
    stream = http.client.HTTPSConnection(api.host, int(api.port), context=api.context)
    stream.request("GET", jobs_path(w) + "?watch=true")
    lines = (json.loads(line) for line in stream.getresponse())
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        jobs = itertools.islice((event["object"] for event in lines if event["type"] == "ADDED"), n)
        list(pool.map(lambda job: simulate(w, api, job), jobs))
    stream.close()


def make_live(w, api, names):
    """Each was taken in, got its Job and runs."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        nodes = pool.submit(simulate_all, w, api, len(names))
        apply(w, api, names, {})
        nodes.result()
    d.wait_for("each to run", lambda: transitions(w.pods, "Executing") >= len(names) or time.sleep(1), seconds=3600)
    quiet(w.pods)


def restart(w, n):
    """Seconds until a new leader has passed over all of them."""
    leader = w.pods.spawners[0]
    leader.stop()  # it gives the Lease back: how long that takes otherwise is measured for itself
    began = time.monotonic()
    w.pods.start()
    d.wait_for("the leader to catch up", lambda: passes(w.pods) >= n, seconds=600)
    return time.monotonic() - began


def watch_events(w, api, names):
    """CPU seconds of the leader for each event, and how many came a second."""
    pid = w.pods.server.process.pid
    before = cpu_seconds(pid)

    def touch(name, word):
        api.send("PATCH", tasks_path(w, name), {"metadata": {"annotations": {"bench": word}}}, "application/merge-patch+json")

    took = api.each(names, lambda name: touch(name, "once"))
    touch(names[0], "last")  # events of one kind come in order: whoever shows this one has seen all
    headers = {"Authorization": f"Bearer {w.home.env['DAYFLY_TOKEN']}"}
    d.wait_for("the last event", lambda: b'"last"' in w.pods.server.request(
        "GET", f"/v1/taskactions/{names[0]}", headers=headers)[2] or time.sleep(0.2))
    quiet(w.pods)
    return (cpu_seconds(pid) - before) / (len(names) + 1), len(names) / took


def let_go(w, api, names):
    """Without a leader nobody takes the finalizers away."""
    w.pods.spawners[0].stop()
    api.each(names, lambda name: api.send("PATCH", tasks_path(w, name), {"metadata": {"finalizers": []}},
                                          "application/merge-patch+json"))
    clear(w, "/apis/dayfly.dev/v1alpha1", "taskactions")
    clear(w, "/api/v1", "events")


def crowd(row, quick, work):
    """Many live TaskActions on simulated nodes: memory, restart, and what an event costs."""
    n = 500 if quick else 10000
    names = [f"restart-{i:05}" for i in range(n)]
    with World(work, Replicas, count=1, lease="60s", config=CONFIG) as w, Nobodys(w), w.pods:
        api = api_server(w.cluster)
        try:
            make_live(w, api, names)
            full = status_kib(w.pods.server.process.pid, "VmRSS")
            took = restart(w, n)
            quiet(w.pods)
            again = status_kib(w.pods.server.process.pid, "VmRSS")
            each, came = watch_events(w, api, names)
        finally:
            let_go(w, api, [doc["metadata"]["name"] for doc in api.list(tasks_path(w))])
    row(f"leader, resident memory, {n} live TaskActions, simulated pods",
        f"{full / 1024:.1f} MiB (restarted: {again / 1024:.1f})", "<= 64 MiB", max(full, again) <= 64 * 1024)
    row(f"leader, restart until each of {n} live TaskActions was looked at", f"{took:.1f} s", "<= 5 s", took <= 5)
    row("watch events a second for one core of the leader", f"{1 / each:.0f} ({each * 1e6:.0f} us each; {came:.0f} a second came)",
        ">= 5000", each <= 1 / 5000)


# ---- against the Job controller -------------------------------------------------------------------------------------

def last_write(w, resource, prefix):
    """When the last status of these was written."""
    return max(seconds_of(e["stageTimestamp"]) for e in w.audit(resource=resource, subresource="status")
               if e["objectRef"]["name"].startswith(prefix))


def run_ours(w, api, prefix, n, placement):
    done = transitions(w.pods, "Completed") + n
    began = time.time()
    apply(w, api, [f"{prefix}-{i}" for i in range(n)], placement)
    d.wait_for("the steps", lambda: transitions(w.pods, "Completed") >= done or time.sleep(0.5), seconds=600)
    return last_write(w, "taskactions", prefix) - began


def run_bare(w, api, prefix, jobs):
    jobs = [bare_copy(job, prefix) for job in jobs]
    names = {job["metadata"]["name"] for job in jobs}

    def done():
        found = [j for j in api.list(jobs_path(w)) if j["metadata"]["name"] in names]
        return all(j["status"].get("succeeded") for j in found) or time.sleep(0.5)

    began = time.time()
    api.each(jobs, lambda job: api.send("POST", jobs_path(w), job))
    d.wait_for("the bare Jobs", done, seconds=600)
    return last_write(w, "jobs", prefix) - began


def ends(row, quick, work):
    """Steps that do nothing, from their apply to their end, against the same Jobs without us; each twice, in turn."""
    n = 10 if quick else 40
    nothing = {"podTemplate": {"spec": {"containers": [{"name": "workflow", "command": ["cat", "/proc/uptime"]}]}}}
    with World(work, Replicas, count=1, lease="60s", config=CONFIG) as w, w.pods:
        api = api_server(w.cluster)
        run_ours(w, api, "warm", n, nothing)
        jobs = list(api.list(jobs_path(w)))
        ours = run_ours(w, api, "one", n, nothing)
        bare = run_bare(w, api, "three", jobs) + run_bare(w, api, "four", jobs)
        ours += run_ours(w, api, "two", n, nothing)
    row(f"steps finished a second, {n} at once, against bare Jobs on one node",
        f"{bare / ours:.2f} ({2 * n / ours:.2f} against {2 * n / bare:.2f})", ">= 0.95", bare / ours >= 0.95)


# ---- fail-over ------------------------------------------------------------------------------------------------------

def fail_over(w, api, name):
    """Seconds from the leader's death to the next Job."""
    made = MadeJobs(w)
    killed = time.time()
    w.pods.spawners[w.pods.leader()].kill()
    api.send("POST", tasks_path(w), task(name, NOWHERE))
    made.wait(1)
    stamps = [seconds_of(e["requestReceivedTimestamp"]) for e in w.audit(verb="create", resource="jobs")]
    w.pods.revive()
    return min(stamp for stamp in stamps if stamp > killed) - killed


def failover(row, quick, work):
    rounds = 3 if quick else 20
    with World(work, Replicas, count=2, lease=f"{LEASE}s", config=CONFIG) as w, w.pods:
        api = api_server(w.cluster)
        took = []
        for i in range(rounds):
            time.sleep(random.uniform(0, LEASE))  # the Lease is renewed now and then: any moment may be the last
            took.append(fail_over(w, api, f"next-{i}"))
    row(f"leader killed to the next Job's arrival, longest of {rounds}",
        f"{max(took):.2f} s (least {min(took):.2f}; lease {LEASE} s)", "<= lease + 1 s", max(took) <= LEASE + 1)


PARTS = {"operator-ends": ends, "operator-failover": failover, "operator-crowd": crowd}
