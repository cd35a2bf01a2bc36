"""People with kubectl who meddle at random with whatever there is, beside replicas that are killed: no run is lost, doubled or
stuck, each end has its true reason, and nothing is left that belongs to nobody."""

import collections
import json
import os
import random
import time

from lib.dayfly import wait_for
from lib.ledger import FINAL, made_for
from lib.replicas import Replicas
from lib.workflows import is_over

SEED = int(os.environ.get("DAYFLY_FAULT_SEED") or random.randrange(1 << 32))
RUNS = int(os.environ.get("DAYFLY_MEDDLED_RUNS", "2"))
ABREAST = 4
KINDS = ("provision", "dry-run", "provision", "destroy")
# What a meddler may bring about; anything else would be a fault of the service.
ENDS = {"Succeeded": {"Applied", "NoChanges", "Planned", "Destroyed"},
        "Failed": {"JobDeleted", "PodDeleted", "Aborted", "RunnerLost", "TofuFailed", "StateLocked", "StepDeleted"},
        "Canceled": {"Canceled", "Aborted"}}


class Meddler:
    """Runs of a few executors, and what is done to them."""

    def __init__(self, world, count, chance):
        self.world, self.namespace, self.count, self.chance = world, world.namespace, count, chance
        self.executors = [f"e{i}" for i in range(min(count, ABREAST))]
        self.begun, self.live, self.ends = 0, {}, collections.Counter()
        self.done = collections.Counter()

    # ---- what is done ----

    def some(self, kind, accept=lambda found: True):
        """The name of an object that lives, or None."""
        found = [o["metadata"]["name"] for o in self.namespace.get(kind)
                 if "deletionTimestamp" not in o["metadata"] and accept(o)]
        return self.chance.choice(found) if found else None

    def delete(self, kind, name, *args):
        self.namespace.kubectl("delete", kind, name, "--wait=false", "--ignore-not-found", *args, check=False)

    def job(self):
        name = self.some("jobs", lambda o: o["status"].get("active"))
        if name:
            self.delete("job", name)
        return name

    def pod(self):
        name = self.some("pods", lambda o: o["status"].get("phase") == "Running")
        if name:
            self.delete("pod", name, "--grace-period=0", "--force")
        return name

    def politely(self):
        """As kubectl deletes a run that goes on."""
        name = self.some("runs", lambda o: o.get("status", {}).get("phase") in ("Pending", "Running"))
        if name:
            self.delete("run", name)
        return name

    def force(self):
        """Takes the finalizer off a step or a run that goes on, and deletes it."""
        kind = self.chance.choice(("taskactions", "runs"))
        name = self.some(kind, lambda o: o.get("status", {}).get("phase") not in FINAL and not is_over(o))
        if name:
            self.namespace.kubectl("patch", kind, name, "--type=merge", "-p", '{"metadata":{"finalizers":[]}}', check=False)
            self.delete(kind, name)
        return name

    def log(self):
        """The Secret of a log. That of a state is nobody's to mend: its run ends with a reason (test_kube_backends.py)."""
        name = self.some("secrets", lambda o: o["metadata"].get("annotations", {}).get("dayfly.dev/key", "").startswith("logs/"))
        if name:
            self.delete("secret", name)
        return name

    def phase(self):
        name = self.some("runs", lambda o: o.get("status", {}).get("phase") in ("Pending", "Running"))
        if name:
            self.namespace.kubectl("patch", "run", name, "--subresource=status", "--type=merge", "-p",
                                   json.dumps({"status": {"phase": "Succeeded"}}), check=False)
        return name

    def service(self):
        self.delete("service", "dayfly")
        time.sleep(self.chance.uniform(0, 2))
        self.world.serve(self.namespace)
        return True

    def lease(self):
        self.delete("lease", "dayfly")
        return True

    def leader(self):
        leader = self.world.leader()
        if leader is not None and self.world.spawners[leader].process.poll() is None:
            self.world.spawners[leader].kill()
        return True

    DEEDS = ("job", "pod", "politely", "force", "log", "phase", "service", "lease", "leader")

    def meddle(self):
        deed = self.chance.choice(self.DEEDS)
        if getattr(self, deed)():
            self.done[deed] += 1

    # ---- runs ----

    def fill(self):
        busy = {executor for executor, _ in self.live.values()}
        for executor in self.executors:
            if executor not in busy and self.begun < self.count:
                self.begun += 1
                run = self.begin(executor, f"{executor}/{self.begun}", self.chance.choice(KINDS))
                self.live[run] = (executor, self.begun)

    def begin(self, executor, key, kind):
        """Asks for a run, of another kind where this one makes no sense; returns its name."""
        state = self.world.get(f"/v1/executors/{executor}")["status"].get("state")
        if state == "destroyed":
            code, run = self.world.ask("POST", f"/v1/executors/{executor}/recreate", {"autoApprove": True}, key)
            assert code == 201, run
            return run["metadata"]["name"]
        if state == "destroy":  # one that did not come to its end
            kind = "destroy"
        elif kind == "destroy" and state != "provisioned":
            kind = "provision"
        return self.world.request(executor, key, kind)

    def collect(self):
        for run in list(self.live):
            code, document = self.world.ask("GET", f"/v1/runs/{run}")
            if code == 404:
                if self.world.get(f"/v1/executors/{self.live[run][0]}")["status"].get("activeRun") == run:
                    continue  # deleted by force: its step is being ended
                self.ends["deleted"] += 1
            elif document["status"].get("phase") in FINAL and "reason" in document["status"]:  # a forged phase has none
                self.note(run, document["status"])
            else:
                continue
            del self.live[run]

    def note(self, run, status):
        assert status["reason"] in ENDS[status["phase"]], (run, status)
        self.ends[status["reason"]] += 1

    def go(self):
        end = time.monotonic() + 120 + 10 * self.count
        while self.begun < self.count or self.live:
            assert time.monotonic() < end, f"not over: {self.live}"
            self.fill()
            until = time.monotonic() + self.chance.uniform(0.5, 4.0)
            while time.monotonic() < until and self.live:
                self.collect()
                time.sleep(0.1)
            if self.live:
                self.meddle()

    # ---- afterwards ----

    def check(self):
        """Left alone, each executor is free, and a run of it goes through."""
        for executor in self.executors:
            wait_for(f"{executor} to be free", lambda e=executor: "activeRun" not in self.world.get(f"/v1/executors/{e}")["status"])
            for key in ("last", "anew"):  # if the first one ends a destroy, the second makes it again
                status = self.world.finish(run := self.begin(executor, f"{executor}/{key}", "provision"))
                if status["reason"] == "Applied":
                    break
            assert (status["phase"], status["reason"]) == ("Succeeded", "Applied"), (run, status)
            assert self.world.resources(executor) == ["first", "second"]
        self.world.check_at_most_once()

        def nobodys():
            known = {made_for(t) for t in self.namespace.get("taskactions")}
            return [j for j in self.namespace.get("jobs") if j["metadata"]["labels"]["dayfly.dev/step-uid"] not in known]
        try:
            wait_for("every Job to belong to a step", lambda: not nobodys())
        finally:
            print("Jobs of nobody:", json.dumps([[j["metadata"], j["status"]] for j in nobodys()]))
        self.world.check_nothing_left(self.executors)
        runs = {r["metadata"]["name"] for r in self.namespace.get("runs")}
        wait_for("every step to belong to a run", lambda: all(
            t["metadata"]["labels"]["dayfly.dev/run"] in runs for t in self.namespace.get("taskactions")))


def test_meddling_at_random_loses_doubles_and_leaves_nothing(home, namespace, tofu):
    print(f"DAYFLY_FAULT_SEED={SEED}")
    world = Replicas(home, namespace, tofu, applyAhead=True)
    world.start()
    try:
        meddler = Meddler(world, RUNS, random.Random(SEED))
        for i, executor in enumerate(meddler.executors):
            world.make(executor, placement={"podPerStep": i % 2 == 0})
        meddler.go()
        print(f"{RUNS} runs, meddled: {dict(meddler.done)}, ends: {dict(meddler.ends)}")
        meddler.check()
    finally:
        world.__exit__()
