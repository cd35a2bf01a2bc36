"""Two replicas that keep everything in the cluster: whoever is asked answers, whoever dies is replaced, nothing is lost,
doubled or left over. Pods write down every start of tofu and everything they make; that is what counts.
"""

import base64
import http.client
import json
import os
import random
import signal
import subprocess
import time

import pytest

from lib import workflows
from lib.cluster import FullEtcd, compact
from lib.dayfly import wait_for
from lib.kube_proxy import KubeProxy
from lib.ledger import MOUNT
from lib.pods import NODE
from lib.replicas import Replicas
from lib.state_service import StateService, expected, is_told
from lib.transitions import Events, key

RUNS = int(os.environ.get("DAYFLY_REPLICA_RUNS", "6"))
SEED = int(os.environ.get("DAYFLY_FAULT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
ABREAST = 6  # runs at once in the sweep


@pytest.fixture
def replicas(home, namespace, tofu):
    worlds = []

    def make(**options):
        worlds.append(Replicas(home, namespace, tofu, **options))
        return worlds[-1].start()

    yield make
    for world in worlds:
        world.__exit__()


def test_a_run_is_the_same_whichever_replica_is_asked(replicas):
    world = replicas()
    world.make("net")
    run = world.request("net", "one")
    world.finish(run)
    world.check_run(run)
    headers = {"Authorization": f"Bearer {world.home.env['DAYFLY_TOKEN']}"}
    apply = f"/v1/taskactions/{run}-apply"

    def is_settled(spawner):  # its pod ends after the run has, and that changes the step once more
        return "dayfly.dev/unfinished" not in json.loads(spawner.request("GET", apply, headers=headers)[2])["metadata"]["labels"]

    wait_for("the end of the step's pod, as both know it", lambda: all(is_settled(s) for s in world.spawners))
    for path in (f"/v1/runs/{run}", apply, f"/v1/runs/{run}/log", "/v1/executors/net/outputs",
                 "/v1/executors/net/state", "/v1/executors/net/state/versions"):
        first, second = [spawner.request("GET", path, headers=headers) for spawner in world.spawners]
        assert first[0] == second[0] == 200 and first[2] == second[2], path
    assert b"Apply complete" in world.spawners[0].request("GET", f"/v1/runs/{run}/log", headers=headers)[2]
    world.check_at_most_once()
    world.check_nothing_left(["net"])


def test_tofu_keeps_no_connection_to_a_replica_that_may_freeze(replicas):
    world = replicas()
    world.make("net")
    other = world.spawners[0]
    basic = base64.b64encode(f"x:{world.home.env['DAYFLY_TOKEN']}".encode()).decode()
    client = http.client.HTTPSConnection(NODE, world.ports[0], context=other.trust())
    closes = []
    for path in ("/v1/version", "/v1/executors/net/state"):  # of which tofu asks for the second
        client.request("GET", path, headers={"Authorization": f"Basic {basic}"})
        with client.getresponse() as answer:
            answer.read()
            closes.append(answer.will_close)
    assert closes == [False, True]


def forwarding(world, replica, leader):
    """The connections that one replica has to the other, by their own ends."""
    pid = f"pid={world.spawners[replica].process.pid},"
    lines = subprocess.check_output(["ss", "-tnpH", "state", "established", f"dport = :{world.ports[leader]}"], text=True)
    return {line.split()[2] for line in lines.splitlines() if pid in line}


def test_a_replica_keeps_its_connection_to_the_leader_when_it_forwards_for_tofu(replicas):
    world = replicas()
    world.make("net")
    leader = world.leader()
    basic = base64.b64encode(f"x:{world.home.env['DAYFLY_TOKEN']}".encode()).decode()
    kept = []
    for _ in range(3):
        world.spawners[1 - leader].request("GET", "/v1/executors/net/state", headers={"Authorization": f"Basic {basic}"})
        kept.append(forwarding(world, 1 - leader, leader))
    assert kept[0] and kept[0] == kept[1] == kept[2]


def pods_at(world, replica):
    """How many connections pods have to it."""
    pid = f"pid={world.spawners[replica].process.pid},"
    lines = subprocess.check_output(["ss", "-tnpH", "state", "established", f"sport = :{world.ports[replica]}"], text=True)
    return sum(pid in line and not line.split()[3].startswith(f"{NODE}:") for line in lines.splitlines())


def test_a_runner_whose_claim_was_forwarded_works_with_the_leader_itself(replicas):
    world = replicas()
    world.make("net")
    leader = world.leader()
    world.become_unready(leader)  # the Service's name leads to the other one
    world.ledger.hold("second", "net-1-apply")
    run = world.request("net", "one")
    world.ledger.wait_held("second", "net-1-apply")
    wait_for("both connections", lambda: (pods_at(world, leader), pods_at(world, 1 - leader)) == (2, 0))
    world.ledger.let_go("second", "net-1-apply")
    world.finish(run)
    world.check_run(run)
    world.check_nothing_left(["net"])


def watches(world, resource):
    """How many were begun in this namespace so far."""
    return sum(event["verb"] == "watch" and event["stage"] == "ResponseStarted" and event["objectRef"]["resource"] == resource
               for event in world.namespace.cluster.audit(world.namespace.name))


def test_only_the_replica_that_leads_watches_jobs_and_pods(replicas):
    world = replicas()
    world.make("net")
    world.finish(world.request("net", "one"))
    wait_for("a watch of each replica", lambda: watches(world, "runs") >= 2)
    assert [watches(world, of) for of in ("jobs", "pods")] == [1, 1]
    world.spawners[world.leader()].kill()
    run = world.request("net", "two")
    world.finish(run)
    world.check_run(run)
    assert [watches(world, of) for of in ("jobs", "pods")] == [2, 2]


def test_a_leader_that_is_killed_in_mid_apply_costs_nothing(replicas):
    world = replicas()
    world.make("net")
    world.ledger.hold("second", "net-1-apply")
    run = world.request("net", "one")
    world.ledger.wait_held("second", "net-1-apply")
    world.spawners[world.leader()].kill()
    world.ledger.let_go("second", "net-1-apply")
    world.finish(run)
    world.check_run(run)
    world.check_at_most_once()
    world.check_nothing_left(["net"])


def test_a_new_leader_lists_what_others_wrote_before_it_answers(replicas, tmp_path):
    """Its watch of runs never comes through: it would know of none."""
    world = replicas()
    first, second = world.spawners
    second.kill()
    wait_for("the first to lead", lambda: world.leader() == 0)
    proxy = KubeProxy(world.namespace.cluster, tmp_path, world.namespace.name)
    cut = ["watch=true"]
    proxy.at = lambda request, when: "/runs?" in request[1] and any(word in request[1] for word in cut)
    world.reconfigure(1, kubeconfig=str(proxy.kubeconfig))
    second.start()
    try:
        world.make("net")
        run = world.request("net", "one")
        world.finish(run)
        token = {"Authorization": f"Bearer {world.home.env['DAYFLY_TOKEN']}"}

        def answer():
            return second.request("GET", f"/v1/runs/{run}", headers=token)[::2]
        cut.append("limit=")
        before = len(proxy.requests)
        first.kill()
        wait_for("the second to lead", lambda: world.leader() == 1)
        wait_for("it to ask", lambda: any("/runs?limit=" in path for _, path in proxy.requests[before:]))
        status, body = answer()
        assert (status, b"NoLeader" in body) == (503, True), body
        cut.remove("limit=")
        wait_for("an answer", lambda: answer()[0] != 503)
        assert answer()[0] == 200
    finally:
        second.kill()
        proxy.close()


def test_a_leader_that_is_killed_takes_no_transition_with_it(replicas):
    """A State Service that was away, too, is told of everything by the next leader, in order."""
    service = StateService()
    world = replicas(config={"stateService": {"url": service.url}})
    try:
        world.make("net")
        world.ledger.hold("second", "net-1-apply")
        run = world.request("net", "one")
        world.ledger.wait_held("second", "net-1-apply")
        wait_for("the plan to be told", lambda: service.of(run, "plan")[-1:] == ["SUCCEEDED"])
        service.stop()
        world.ledger.let_go("second", "net-1-apply")
        world.spawners[world.leader()].kill()
        world.finish(run)
        service.start()

        def steps():
            return [world.get(f"/v1/taskactions/{run}-{action}") for action in ("plan", "apply")]
        wait_for("everything to be told", lambda: all(map(is_told, steps())))
        for step in steps():
            assert service.of(run, step["spec"]["action"]) == expected(step)
        assert service.faults == []
    finally:
        service.stop()


def test_who_watches_all_transitions_goes_on_at_another_replica_when_the_leader_dies(replicas):
    world = replicas()
    world.make("net")
    world.ledger.hold("second", "net-1-apply")
    leader = world.leader()
    other, headers = world.spawners[1 - leader], {"Authorization": f"Bearer {world.home.env['DAYFLY_TOKEN']}"}
    watcher = Events(other, headers=headers)
    watcher.until("sentinel")
    run = world.request("net", "one")
    world.ledger.wait_held("second", "net-1-apply")
    seen = []
    while not seen or seen[-1][0::2] != (f"{run}-apply", "RUNNING"):
        seen.append(key(json.loads(watcher.next()["data"])))
    watcher.close()
    world.spawners[leader].kill()
    world.ledger.let_go("second", "net-1-apply")
    world.finish(run)
    again = Events(other, watcher.last, headers)
    seen += map(key, again.until("sentinel"))
    again.close()
    for step in (f"{run}-plan", f"{run}-apply"):
        told = [key({"taskAction": step, "state": event}) for event in world.get(f"/v1/states/{step}")["transitions"]]
        assert list(dict.fromkeys(entry for entry in seen if entry[0] == step)) == told


@pytest.mark.parametrize("at, step", [("before", "plan"), ("second", "apply")])
def test_a_leader_that_is_paused_in_mid_run_does_nothing_when_it_goes_on(replicas, at, step):
    world = replicas()
    world.make("net")
    world.ledger.hold(at, f"net-1-{step}")
    run = world.request("net", "one")
    world.ledger.wait_held(at, f"net-1-{step}")
    old = world.leader()
    world.spawners[old].process.send_signal(signal.SIGSTOP)
    wait_for("another leader", lambda: world.leader() != old)
    world.become_unready(old)
    world.ledger.let_go(at, f"net-1-{step}")
    other = world.spawners[1 - old]
    token = {"Authorization": f"Bearer {world.home.env['DAYFLY_TOKEN']}"}

    def ended():
        status, _, body = other.request("GET", f"/v1/runs/{run}", headers=token)
        return status == 200 and json.loads(body)["status"].get("phase") == "Succeeded"
    wait_for("the run to end", ended, 120)
    world.spawners[old].process.send_signal(signal.SIGCONT)
    assert world.spawners[old].process.wait(timeout=60) == 1
    world.check_run(run)
    world.check_at_most_once()
    world.check_nothing_left(["net"])


KINDS = ("provision", "dry-run", "destroy", "workflow")
ENDS = {"provision": "Applied", "destroy": "Destroyed"}


class Sweep:
    """Runs of every kind, and workflows, that are asked for by anybody while replicas are killed and paused."""

    def __init__(self, world, count, chance, cluster=None):
        self.world, self.count, self.chance, self.cluster = world, count, chance, cluster
        self.executors = [f"e{i}" for i in range(min(count, ABREAST))]
        self.live, self.done = {}, {}  # name -> its kind
        self.hurt = dict.fromkeys(["leader", "other", "both", "paused"] + (["apiserver", "etcd", "past"] if cluster else []), 0)

    def fill(self):
        for i, name in enumerate(self.executors):
            begun = [run for run in (*self.live, *self.done) if run.startswith(f"{name}-")]
            share = len(range(i, self.count, ABREAST))
            if len(begun) < share and not any(run.startswith(f"{name}-") for run in self.live):
                kind = KINDS[(i + len(begun)) % len(KINDS)]
                if kind == "destroy" and self.last_change(name) != "provision":
                    kind = "provision"
                ask = self.ask_workflow if kind == "workflow" else self.world.request
                self.live[ask(name, f"{name}/{len(begun)}", kind)] = kind

    def last_change(self, name):
        """What the executor's state comes from; None: it has none."""
        kinds = [kind for run, kind in self.done.items() if run.startswith(f"{name}-")]
        return next((kind for kind in reversed(kinds) if kind in ("provision", "destroy")), None)

    def ask_workflow(self, name, key, _):
        """It writes down its start, as tofu does."""
        name = f"{name}-w{key.rpartition('/')[2]}"
        ledger = {"name": "ledger", "hostPath": {"path": str(self.world.ledger.directory), "type": "Directory"}}
        document = workflows.document(self.world.image, name, f"echo workflow {name}-0 >> {MOUNT}/starts; sleep 1",
                                      target=f"default/deployment/{name}", volumes=[(ledger, MOUNT)])
        status, answer = self.world.ask("POST", "/v1/taskactions", document, key)
        assert status in (200, 201), answer
        return name

    def is_over(self, name, kind):
        if kind == "workflow":
            return workflows.has_ended(self.world.get(f"/v1/taskactions/{name}"))
        return self.world.final(name)

    def strike(self):
        leader = self.world.leader()
        what = self.chance.choice(sorted(self.hurt))
        self.hurt[what] += 1
        if what == "past":
            compact(self.world.namespace)
            return
        if what in ("apiserver", "etcd"):
            self.cluster.kill_part(what)
            self.cluster.bring_back()
            return
        victims = {"leader": [leader or 0], "other": [1 - (leader or 0)]}.get(what, [0, 1])
        if what == "paused":
            process = self.world.spawners[leader or 0].process
            if process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                time.sleep(self.chance.uniform(0.5, 6.0))  # the lease is 4 s: sometimes it is lost, sometimes not
                process.send_signal(signal.SIGCONT)
            return
        for i in victims:
            if self.world.spawners[i].process.poll() is None:
                self.world.spawners[i].kill()

    def go(self):
        end = time.monotonic() + 180 + 15 * self.count
        while len(self.done) < self.count:
            assert time.monotonic() < end, f"not over: {self.live}"
            self.fill()
            until = time.monotonic() + self.chance.uniform(0.5, 6.0)
            while time.monotonic() < until:
                for run in [run for run, kind in self.live.items() if self.is_over(run, kind)]:
                    self.done[run] = self.live.pop(run)
                time.sleep(0.05)
            self.strike()

    def check(self):
        """Each has come to its end, made what it had to make once, and the states have what was made last."""
        self.world.ledger.note_served(self.world.tasks())
        for run, kind in self.done.items():
            if kind == "workflow":
                task = self.world.get(f"/v1/taskactions/{run}")
                assert task["status"]["reason"] == "Completed", task
                assert self.world.ledger.starts()["workflow", run] == 1, run
                continue
            status = self.world.final(run)
            assert status["phase"] == "Succeeded", status
            assert status["reason"] == ENDS.get(kind, status["reason"]), status
            if kind == "provision":
                assert self.world.ledger.made(run) == ["first", "second"], run
        for name in self.executors:
            expected = ["first", "second"] if self.last_change(name) == "provision" else []
            assert self.world.resources(name) == expected, name
        self.world.check_at_most_once()
        self.world.check_nothing_left(self.executors)


def sweep_of(world, count, cluster=None):
    print(f"DAYFLY_FAULT_SEED={SEED}")
    sweep = Sweep(world, count, random.Random(SEED), cluster)
    world.namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": workflows.ACCOUNT}})
    for i, name in enumerate(sweep.executors):
        world.make(name, placement={"podPerStep": i % 2 == 0})
    sweep.go()
    print(f"{count} runs, {sweep.hurt}")
    sweep.check()


def test_replicas_killed_and_paused_at_random_lose_double_and_leave_nothing(replicas):
    sweep_of(replicas(applyAhead=True), RUNS)


def test_the_cluster_killed_at_random_beside_its_replicas_loses_doubles_and_leaves_nothing(alone, replicas):
    sweep_of(replicas(applyAhead=True), RUNS // 3, alone)


@pytest.mark.parametrize("part", ["apiserver", "etcd"])
def test_the_cluster_that_keeps_everything_may_go_away_in_mid_apply(alone, replicas, part):
    world = replicas(lease="30s")
    world.make("net")
    world.ledger.hold("second", "net-1-apply")
    run = world.request("net", "one")
    world.ledger.wait_held("second", "net-1-apply")
    alone.kill_part(part)
    world.ledger.let_go("second", "net-1-apply")  # its state, log and result find nobody who could keep them
    time.sleep(2)
    alone.bring_back()
    world.finish(run, 180)
    world.check_run(run)
    world.check_at_most_once()
    world.check_nothing_left(["net"])


def test_an_apply_outlives_an_etcd_that_is_full_and_the_service_says_so(alone, replicas):
    world = replicas()
    full = FullEtcd(alone, world.namespace)
    try:
        world.make("net")
        world.ledger.hold("second", "net-1-apply")
        run = world.request("net", "one")
        world.ledger.wait_held("second", "net-1-apply")
        full.fill()
        follower = world.spawners[1 - world.leader()]

        def not_ready():
            status, _, body = follower.request("GET", "/readyz?verbose")
            return status == 503 and body.decode()
        said = wait_for("it to be not ready", not_ready)
        assert "[-] leader: " in said and "database space exceeded" in said and "[+] store ok" in said, said
        assert follower.request("GET", "/livez")[0] == 200
        world.ledger.let_go("second", "net-1-apply")  # its state, log and result find nobody who could keep them
        time.sleep(2)
        full.empty()
        world.finish(run)
        world.check_run(run)
        world.finish(world.request("net", "two"))
        world.check_at_most_once()
        world.check_nothing_left(["net"])
        assert follower.request("GET", "/readyz")[0] == 200
    finally:
        full.close()
