"""Several spawners, one Lease of a real API server: who leads, who answers, and who may not write any more.

Each has documents of its own here (SQLite): so an answer shows who gave it. What they share when the documents are in
the cluster is in test_replicas.py.
"""

import json
import signal
import threading

import pytest

from lib import dayfly as d
from lib.cluster import kubeconfig_of
from lib.dayfly import DEADLINE, wait_for

LONG = "120s"  # nobody waits so long here: what happens sooner does not come of the end of a lease
SHORT = "3s"


def executor(name):
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
            "spec": {"source": {"url": "file:///module.tar.gz", "kind": "archive"}}}


def has_led(replica):
    """By its log: "NAME leads" ends a message; "no replica leads at this moment" is another one's."""
    return ' leads"}' in replica.log.read_text()


class Replicas:
    """Spawners in the order in which they were started: the first leads."""

    def __init__(self, home, namespace, duration):
        self.home, self.namespace = home, namespace
        self.config = json.dumps({
            "engine": "job", "kubernetes": {"kubeconfig": str(namespace.cluster.kubeconfig), "namespace": namespace.name,
                                            "image": "localhost/none:1"},
            "auth": {"loopback": "open"},  # a request is handed on as it is, and each has a token of its own
            "election": {"enabled": True, "leaseDuration": duration}, "log": {"level": "debug"}})
        self.all = []

    def add(self, pod=None):
        """pod: the uid of the pod in which it runs, as its environment has it."""
        replica = d.Server(self.home, config=self.config, data=self.home.directory / f"data{len(self.all)}")
        self.home.env["POD_UID"] = pod or f"pod-{len(self.all)}"
        replica.log = self.home.directory / f"serve{len(self.all)}.log"
        self.all.append(replica.start())
        wait_for("a leader", self.holder)
        return replica

    def spec(self):
        found = [lease for lease in self.namespace.get("leases") if lease["metadata"]["name"] == "dayfly"]
        return found[0]["spec"] if found else {}

    def holder(self):
        return self.spec().get("holderIdentity")

    def wait_leads(self, replica, seconds=DEADLINE):
        wait_for("it to lead", lambda: has_led(replica), seconds)

    def close(self):
        for replica in self.all:
            if replica.process.poll() is None:
                replica.process.send_signal(signal.SIGCONT)
                replica.kill()


def wait_forwards(replica):
    """Until it has read the Lease: before, it knows nobody to forward to, and answers 503."""
    wait_for("it to know the leader", lambda: replica.request("GET", "/v1/executors/none")[0] == 404)


@pytest.fixture(name="replicas")
def fixture_replicas(home, namespace):
    made = []

    def make(duration, count=2):
        group = Replicas(home, namespace, duration)
        made.append(group)
        for _ in range(count):
            group.add()
        return group

    yield make
    for group in made:
        group.close()


def test_the_first_leads_and_the_lease_says_so(replicas):
    group = replicas(LONG)
    first, second = group.all
    assert has_led(first) and not has_led(second)
    spec = group.spec()
    assert spec["holderIdentity"] in first.log.read_text()
    assert spec["leaseTransitions"] == 0 and spec["leaseDurationSeconds"] == 120


def test_a_replica_that_does_not_lead_hands_requests_on_and_their_answers_back(replicas):
    first, second = replicas(LONG).all
    wait_forwards(second)
    assert second.request("POST", "/v1/executors", executor("net"))[0] == 201
    assert first.get("/v1/executors/net") == second.get("/v1/executors/net")
    status, headers, _ = second.request("GET", "/v1/executors/net")
    assert second.request("GET", "/v1/executors/net", headers={"If-None-Match": headers["ETag"]})[0] == 304
    status, headers, body = second.request("POST", "/v1/executors", executor("net"))
    assert status == 409 and headers["Content-Type"] == "application/problem+json" and b"already exists" in body
    assert second.request("DELETE", "/v1/executors/net")[0] == 204
    assert first.request("GET", "/v1/executors/net")[0] == 404


def test_a_state_goes_through_another_replica_unchanged(replicas):
    first, second = replicas(LONG).all
    wait_forwards(second)
    first.request("POST", "/v1/executors", executor("net"))
    state = json.dumps({"version": 4, "serial": 1, "lineage": "x", "outputs": {}, "resources": [],
                        "padding": "x" * 3_000_000}).encode()
    assert second.request("LOCK", "/v1/executors/net/state", b'{"ID":"a"}')[0] == 200
    assert second.request("LOCK", "/v1/executors/net/state", b'{"ID":"b"}')[0] == 423
    assert second.request("POST", "/v1/executors/net/state?ID=a", state)[0] == 200
    assert second.request("GET", "/v1/executors/net/state")[2] == state == first.request(
        "GET", "/v1/executors/net/state")[2]


def test_a_follower_of_a_run_hears_the_leader_through_another_replica(replicas):
    first, second = replicas(LONG).all
    wait_forwards(second)
    first.request("POST", "/v1/executors", executor("net"))
    assert second.request("POST", "/v1/executors/net/runs", {"action": "dry-run"})[0] == 201
    heard = []
    follower = threading.Thread(target=lambda: heard.append(second.request("GET", "/v1/runs/net-1/watch", timeout=60)))
    follower.start()
    assert second.request("POST", "/v1/runs/net-1/cancel", {})[0] == 200
    follower.join()
    status, headers, events = heard[0]
    assert status == 200 and headers["Content-Type"] == "text/event-stream"
    assert b"event: end" in events and b'"phase":"Canceled"' in events


def test_what_belongs_to_each_replica_is_answered_by_itself(replicas):
    first, second = replicas(LONG).all
    first.process.send_signal(signal.SIGSTOP)
    for path in ("/livez", "/readyz", "/metrics", "/openapi.yaml", "/v1/version"):
        assert second.request("GET", path)[0] == 200


def test_a_leader_that_is_stopped_gives_the_lease_back(replicas):
    group = replicas(LONG)
    first, second = group.all
    assert first.stop() == 0
    group.wait_leads(second)
    assert group.spec()["leaseTransitions"] == 1


def test_a_leader_that_is_killed_is_replaced(replicas):
    group = replicas(SHORT)
    first, second = group.all
    first.kill()
    group.wait_leads(second)
    assert group.spec()["leaseTransitions"] == 1
    assert second.request("POST", "/v1/executors", executor("net"))[0] == 201


def test_a_process_that_is_started_again_in_its_pod_takes_over_what_the_one_before_held(replicas):
    """And nobody else does: this Lease lasts longer than the test."""
    group = replicas(LONG)
    first, second = group.all
    first.kill()
    other, again = group.add(), group.add(pod="pod-0")
    group.wait_leads(again)
    assert group.spec()["leaseTransitions"] == 1
    assert again.request("POST", "/v1/executors", executor("net"))[0] == 201
    assert not [r for r in (second, other) if has_led(r)]


def test_a_pod_whose_name_an_older_version_left_in_the_lease_takes_nothing_over(replicas):
    """An older version writes the holder alone."""
    group = replicas(LONG, 1)
    first, = group.all
    lease, = [found for found in group.namespace.get("leases") if found["metadata"]["name"] == "dayfly"]
    first.kill()
    nowhere = {"metadata": {"annotations": {"dayfly.dev/address": "https://127.0.0.1:1"}}, "spec": {"holderIdentity": "older"}}
    group.namespace.kubectl("patch", "lease", "dayfly", "--type=merge", "-p", json.dumps(nowhere))
    assert lease["metadata"]["annotations"]["dayfly.dev/holder-pod"] == f"pod-0/{lease['spec']['holderIdentity']}"
    again = group.add(pod="pod-0")
    wait_for("it to look for the leader", lambda: b"the leading replica does not answer" in again.request("POST", "/v1/executors", executor("net"))[2])
    assert group.holder() == "older" and not has_led(again)


def test_while_nobody_leads_documents_can_be_read_and_everything_else_is_to_be_tried_again(replicas):
    group = replicas(LONG)
    first, second = group.all
    first.kill()
    assert second.get("/v1/executors") == {"items": []}
    for method, path, body in (("POST", "/v1/executors", executor("net")), ("GET", "/v1/executors/net/state", None),
                               ("POST", "/v1/steps/u/claim", {"claimId": "0" * 32})):
        status, headers, answer = second.request(method, path, body, {"Authorization": "Bearer x"} if "steps" in path else {})
        assert status == 503 and headers["Retry-After"] and b"NoLeader" in answer, (path, answer)


def reader(namespace, verbs):
    """The rights of an account that sees everything, and what it may do with the Lease."""
    rules = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch"]},
             {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["list", "watch"]},
             {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch", *verbs]}]
    api = "rbac.authorization.k8s.io"
    namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
                    {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": {"name": "reader"}, "rules": rules},
                    {"apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
                     "roleRef": {"apiGroup": api, "kind": "Role", "name": "reader"},
                     "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace.name}]})


def test_a_replica_is_not_ready_and_says_why_when_nobody_can_take_the_lease(home, namespace, tmp_path):
    """As when etcd refuses writes: it may read the Lease, and no more."""
    reader(namespace, [])
    config = json.loads(Replicas(home, namespace, SHORT).config)
    config["kubernetes"]["kubeconfig"] = str(kubeconfig_of(namespace, "reader", tmp_path / "kubeconfig"))
    replica = d.Server(home, config=json.dumps(config)).start()
    try:
        answer = wait_for("it to be not ready", lambda: (a := replica.request("GET", "/readyz?verbose"))[0] == 503 and a[2].decode())
        assert "[-] leader: no replica has renewed the Lease dayfly for " in answer and "forbidden" in answer, answer
        assert "[+] store ok" in answer and replica.request("GET", "/livez")[0] == 200
        for _ in range(5):
            assert replica.request("POST", "/v1/executors", executor("net"))[0] == 503
        log = replica.log.read_text()
        assert log.count("POST /v1/executors: no replica leads") == 1 and log.count("the lease: ") == 1, log
        reader(namespace, ["create", "update"])
        wait_for("it to be ready", lambda: replica.request("GET", "/readyz")[0] == 200)
    finally:
        replica.kill()


def test_a_paused_leader_ends_when_it_goes_on_and_has_written_nothing(replicas):
    group = replicas(SHORT)
    first, second = group.all
    first.process.send_signal(signal.SIGSTOP)
    group.wait_leads(second)
    before = first.log.read_text()
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(timeout=60) == 1
    assert "leads no more" in first.log.read_text()[len(before):]
    assert group.holder() in second.log.read_text()


def test_a_request_that_a_paused_leader_holds_is_given_up_when_another_leads(replicas):
    group = replicas(SHORT, 3)
    first, second, third = group.all
    first.process.send_signal(signal.SIGSTOP)
    status, _, _ = second.request("GET", "/v1/executors", timeout=60)
    assert status in (200, 503)
    wait_for("another leader", lambda: any(has_led(r) for r in (second, third)))


def test_a_lease_that_somebody_deletes_is_made_again_and_counts_on(replicas):
    group = replicas(SHORT, 1)
    holder = group.holder()
    group.namespace.kubectl("delete", "lease", "dayfly")
    wait_for("the lease", group.holder)
    assert group.holder() == holder and group.spec()["leaseTransitions"] == 1
    assert group.all[0].request("POST", "/v1/executors", executor("net"))[0] == 201


def test_a_leader_ends_when_the_lease_is_given_to_another(replicas):
    group = replicas(LONG, 1)
    group.namespace.kubectl("patch", "lease", "dayfly", "--type=merge", "-p", '{"spec":{"holderIdentity":"somebody"}}')
    assert group.all[0].process.wait(timeout=60) == 1


def test_a_leader_outlives_an_api_server_that_is_away_for_a_moment_and_ends_when_it_stays_away(replicas, alone):
    """alone: nobody else uses the cluster meanwhile."""
    group = replicas("45s", 1)
    alone.stop_part("apiserver")
    alone.bring_back()
    assert group.all[0].process.poll() is None
    alone.stop_part("apiserver")
    assert group.all[0].process.wait(timeout=90) == 1
    alone.bring_back()


def test_an_election_without_a_cluster_is_refused(home):
    result = home.dayfly("serve", "--set", "election.enabled=true", "--data-directory", home.directory / "data", code=None)
    assert result.returncode != 0 and "election.enabled: is of use with the engine job only" in result.stderr
