"""Everything that can go away in mid-run on a real cluster: each run ends truly, nothing is started twice, nothing is left.

Pods write down every start of tofu and everything they make in a directory of the node, the ledger; that is what counts.
"""

import contextlib
import json
import os
import pathlib
import random
import signal
import sqlite3
import time

import pytest

from lib.cluster import HOME, compact
from lib.cutter import Cutter
from lib.dayfly import wait_for
from lib.ledger import World
from lib.pods import NODE

RUNS = int(os.environ.get("DAYFLY_FAULT_RUNS", "10"))
SEED = int(os.environ.get("DAYFLY_FAULT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
ABREAST = 10  # runs at once in the sweep


@pytest.fixture
def world_of(home, namespace, tofu):
    worlds = []

    def make(**options):
        worlds.append(World(home, namespace, tofu, **options))
        return worlds[-1].start()

    yield make
    for world in worlds:
        if world.server.process.poll() is None:
            assert world.server.stop() == 0, world.server.log.read_text()[-8000:]


# ---- the spawner is killed -----------------------------------------------------------------------------------

class Sweep:
    """Runs on some executors at a time, each on its own one after the other, and a spawner that dies meanwhile."""

    def __init__(self, world, count, chance):
        self.world, self.count, self.chance = world, count, chance
        self.executors = [f"e{i}" for i in range(min(count, ABREAST))]
        self.live = {}  # run -> how often the spawner was killed during it
        self.done = {}
        self.kills = 0

    def kill(self):
        self.world.server.kill()
        self.kills += 1
        for run in self.live:
            self.live[run] += 1

    def collect(self):
        """One look at every run that is not over."""
        for run in list(self.live):
            if self.world.final(run):
                self.done[run] = self.live.pop(run)

    def fill(self):
        for i, name in enumerate(self.executors):
            begun = [run for run in (*self.live, *self.done) if run.startswith(f"{name}-")]
            share = len(range(i, self.count, ABREAST))
            if len(begun) < share and not any(run.startswith(f"{name}-") for run in self.live):
                self.live[self.world.request(name, f"{name}/{len(begun)}")] = 0

    def go(self):
        end = time.monotonic() + 120 + 10 * self.count
        while len(self.done) < self.count:
            assert time.monotonic() < end, f"not over: {self.live}"
            self.fill()
            until = time.monotonic() + self.chance.uniform(0.05, 3.0)
            while time.monotonic() < until:
                self.collect()
                time.sleep(0.02)
            self.kill()


def test_a_spawner_killed_at_random_moments_comes_to_the_true_end(world_of):
    print(f"DAYFLY_FAULT_SEED={SEED}")
    world = world_of(applyAhead=True)
    sweep = Sweep(world, RUNS, random.Random(SEED))
    for i, name in enumerate(sweep.executors):
        world.make(name, placement={"podPerStep": i % 2 == 0})
    sweep.go()
    print(f"{RUNS} runs, {sweep.kills} times killed, during a run: {sorted(sweep.done.values())}")
    for run in sweep.done:
        world.check_run(run)
    world.check_at_most_once()
    world.check_nothing_left(sweep.executors)
    # What a spawner does not know yet after its start is no warning for each of its steps.
    assert "is not there yet" not in world.server.log.read_text()


def forget_the_job(world, step):
    """As if the spawner had died between making the Job and writing down that it did."""
    world.server.kill()
    with contextlib.closing(sqlite3.connect(world.server.data / "dayfly.db")) as database, database:
        changed = database.execute("UPDATE documents SET body = json_remove(body, '$.status.engineRef') WHERE name = ?", [step])
        assert changed.rowcount == 1
    world.start()


def test_a_job_that_a_dead_spawner_did_not_record_is_found_again(world_of):
    """Its pod cannot claim before that: whose pod it is, is known by its Job alone."""
    world = world_of()
    world.make("net")
    world.ledger.hold("start", "net-1-plan")
    run = world.request("net", "one")
    world.ledger.wait_held("start", "net-1-plan")
    recorded = wait_for("the Job to be recorded", lambda: world.get("/v1/taskactions/net-1-plan")["status"].get("engineRef"))
    forget_the_job(world, "net-1-plan")
    wait_for("the Job to be recorded", lambda: world.get("/v1/taskactions/net-1-plan")["status"].get("engineRef") == recorded)
    world.ledger.let_go("start", "net-1-plan")
    assert world.finish(run)["phase"] == "Succeeded"
    world.check_at_most_once()


# ---- parts of the cluster are killed -------------------------------------------------------------------------

def test_the_api_server_may_be_away_when_a_step_ends(alone, world_of):
    world = world_of()
    world.make("net")
    world.ledger.hold("before", "net-1-plan")
    world.ledger.hold("second", "net-1-apply")
    run = world.request("net", "one")
    world.ledger.wait_held("before", "net-1-plan")
    alone.kill_part("apiserver")
    world.ledger.let_go("before", "net-1-plan")
    wait_for("the plan's end", lambda: world.get("/v1/taskactions/net-1-plan")["status"].get("exitCode") == 0)
    assert not world.final(run)
    alone.bring_back()
    world.ledger.wait_held("second", "net-1-apply")
    alone.kill_part("apiserver")
    world.server.kill()  # the next one finds no cluster at all
    world.ledger.let_go("second", "net-1-apply")
    world.finish(run)
    assert alone.kubectl("get", "--raw", "/readyz", check=False).returncode != 0
    world.check_run(run)
    alone.bring_back()
    world.check_at_most_once()
    world.check_nothing_left(["net"])


def test_etcd_may_go_away_in_mid_run(alone, world_of):
    world = world_of()
    world.make("net")
    world.ledger.hold("before", "net-1-plan")
    world.ledger.hold("second", "net-1-apply")
    run = world.request("net", "one")
    world.ledger.wait_held("before", "net-1-plan")
    alone.kill_part("etcd")
    world.ledger.let_go("before", "net-1-plan")  # the apply's Job is made against a dead etcd
    wait_for("the plan's end", lambda: world.get("/v1/taskactions/net-1-plan")["status"].get("exitCode") == 0)
    alone.bring_back()
    world.ledger.wait_held("second", "net-1-apply")
    alone.kill_part("etcd")
    world.ledger.let_go("second", "net-1-apply")
    world.finish(run)
    world.check_run(run)
    alone.bring_back()
    world.check_at_most_once()
    world.check_nothing_left(["net"])


def test_a_spawner_that_slept_while_the_past_was_compacted_finds_the_present(alone, world_of, namespace):
    world = world_of()
    world.make("net")
    world.make("gone")
    for name in ("net", "gone"):
        world.ledger.hold("second", f"{name}-1-apply")
        world.request(name, name)
    for name in ("net", "gone"):
        world.ledger.wait_held("second", f"{name}-1-apply")
    world.server.process.send_signal(signal.SIGSTOP)
    namespace.kubectl("delete", "job", "gone-1-apply", "--wait=false")
    alone.kill_part("apiserver")  # its watch cache goes with it
    alone.bring_back()
    compact(namespace)
    world.server.process.send_signal(signal.SIGCONT)
    world.ledger.let_go("second", "net-1-apply")
    world.finish("net-1")
    world.finish("gone-1")
    world.check_run("net-1")
    world.check_run("gone-1", "JobDeleted")
    world.check_at_most_once()
    world.check_nothing_left(["net", "gone"])


def test_the_kubelet_and_the_spawner_may_be_away_in_mid_apply(alone, world_of):
    world = world_of()
    world.make("net")
    world.ledger.hold("second", "net-1-apply")
    run = world.request("net", "one")
    world.ledger.wait_held("second", "net-1-apply")
    alone.stop_part("kubelet")
    world.server.kill()
    world.ledger.let_go("second", "net-1-apply")
    world.finish(run)
    world.check_run(run)
    alone.bring_back()
    world.check_at_most_once()
    world.check_nothing_left(["net"])


# ---- connections are cut -------------------------------------------------------------------------------------

def test_connections_to_the_api_server_may_be_cut_at_any_byte(world_of, namespace, tmp_path):
    with Cutter((NODE, 6443), random.Random(SEED), 60) as cutter:
        print(f"DAYFLY_FAULT_SEED={SEED}")
        config = json.loads(namespace.cluster.kubectl("config", "view", "--raw", "-o", "json").stdout)
        config["clusters"][0]["cluster"].update({"server": cutter.url, "tls-server-name": "kubernetes"})
        path = tmp_path / "cut.kubeconfig"
        path.write_text(json.dumps(config))
        world = world_of(kubeconfig=str(path))
        names = [f"e{i}" for i in range(4)]
        for name in names:
            world.make(name)
        runs = [world.request(name, name) for name in names]
        for run in runs:
            world.finish(run)
            world.check_run(run)
        print(f"{cutter.cuts} of {cutter.connections} connections were cut")
        assert cutter.cuts >= 20
        world.check_at_most_once()
        world.check_nothing_left(names)


# ---- something is taken away while the spawner is dead -------------------------------------------------------

def delete_job(namespace, pod):
    namespace.kubectl("delete", "job", pod.rpartition("-")[0], "--wait=false")


def delete_pod(namespace, pod):
    namespace.kubectl("delete", "pod", pod, "--wait=false")


def evict(namespace, pod):
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace.name}}
    path = f"/api/v1/namespaces/{namespace.name}/pods/{pod}/eviction"
    namespace.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(eviction))


def nothing(namespace, pod):
    pass


# name of the executor: where its run is held, what is done then, its end, what of it is made
TAKEN = {
    "job-start": ("start", "plan", delete_job, "Applied"),
    "pod-start": ("start", "plan", delete_pod, "Applied"),
    "job-plan": ("before", "plan", delete_job, "JobDeleted"),
    "pod-plan": ("before", "plan", delete_pod, "PodDeleted"),
    "job-apply": ("second", "apply", delete_job, "JobDeleted"),
    "pod-apply": ("second", "apply", delete_pod, "PodDeleted"),
    "evicted": ("second", "apply", evict, "Evicted"),
    "greedy": ("greedy", "apply", nothing, "OOMKilled"),
}


def test_what_is_taken_away_while_the_spawner_is_dead_is_told_truly(world_of, namespace):
    world = world_of(config={"limits": {"steps": len(TAKEN)}})
    for name, (where, action, _, _) in TAKEN.items():
        limits = {"resources": {"limits": {"memory": "300Mi"}}} if name == "greedy" else {}
        world.make(name, placement=limits)
        world.ledger.hold(where, f"{name}-1-{action}")
        world.request(name, name)
    held = {name: world.ledger.wait_held(where, f"{name}-1-{action}") for name, (where, action, _, _) in TAKEN.items()}
    world.server.kill()
    for name, (where, action, take, _) in TAKEN.items():
        take(namespace, held[name])
        if take is nothing or where == "start":
            world.ledger.let_go(where, f"{name}-1-{action}")
    world.start()
    ends = {name: world.finish(f"{name}-1") for name in TAKEN}
    print(json.dumps(ends, indent=1))
    for name, (_, _, _, reason) in TAKEN.items():
        assert ends[name]["reason"] == reason, (name, ends[name])
        world.check_run(f"{name}-1", reason)
    world.check_at_most_once()
    world.check_nothing_left(TAKEN)


# ---- the spawner is away for longer than the runner lives ----------------------------------------------------

def termination_log(pod):
    """What the runner left in its pod for the cluster, as far as it did."""
    files = [f for f in (HOME / "kubelet/pods" / pod["metadata"]["uid"] / "containers/runner").glob("*") if f.stat().st_size]
    return json.loads(files[0].read_text()) if files else None


def kill_runner(pod):
    """SIGKILL from the node's side."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"dayfly-runner") and pod["metadata"]["uid"] in (entry / "cgroup").read_text():
                os.kill(int(entry.name), signal.SIGKILL)


def test_what_a_runner_left_is_the_result_when_no_spawner_heard_it(world_of, namespace):
    world = world_of()
    world.make("net")
    world.ledger.hold("after", "net-1-apply")
    run = world.request("net", "one")
    pod = namespace.get("pod", world.ledger.wait_held("after", "net-1-apply"))
    world.server.kill()
    world.ledger.let_go("after", "net-1-apply")
    assert wait_for("the termination log", lambda: termination_log(pod))["reason"] == "Applied"
    kill_runner(pod)
    namespace.wait("pod", pod["metadata"]["name"], lambda p: p["status"]["phase"] == "Failed")
    world.start()
    world.finish(run)
    world.check_run(run)
    world.check_at_most_once()
    world.check_nothing_left(["net"])
