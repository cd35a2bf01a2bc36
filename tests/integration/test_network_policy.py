"""The chart's NetworkPolicies, enforced on the node of the real cluster and tried with real connections of the pods."""

import pytest

from lib.ledger import MODULE, Ledger
from lib.pods import NODE, runner_image
from lib.policy import PROHIBITED, Enforced, Inside
from lib.release import Release

API = "10.96.0.1"  # the Service of the API server; it serves at port 6443 of the node
METADATA, WORLD = "169.254.169.254", "198.51.100.7"
OPEN, SHUT = 8080, 8081
OTHER = {"app": "other"}


def pod_of(name, labels, image):
    container = {"name": "c", "image": image, "imagePullPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}


def wait_address(namespace, name):
    return namespace.wait("pod", name, lambda pod: pod["status"].get("podIP"))


@pytest.fixture
def other(namespace):
    """A pod with two ports and a Service, which also has an address of the metadata service and one of the world outside."""
    namespace.apply(pod_of("other", OTHER, namespace.cluster.pause_image),
                    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other"},
                     "spec": {"selector": OTHER, "ports": [{"port": OPEN}]}})
    pod = namespace.wait("pod", "other", lambda p: p["status"]["phase"] == "Running")
    inside = Inside(pod)
    for address in (METADATA, WORLD):
        inside.ip("addr", "add", f"{address}/32", "dev", "lo")
    with inside.listening(OPEN, SHUT):
        yield inside


def test_a_step_reaches_the_spawner_dns_and_the_world_outside_and_nothing_else(home, namespace, tofu, tmp_path, other):
    ledger = Ledger(tmp_path / "ledger")
    opened = {"to": [{"podSelector": {"matchLabels": OTHER}}], "ports": [{"protocol": "TCP", "port": OPEN}]}
    release = Release(home, namespace, tofu, crds={"install": False}, replicaCount=1,
                      networkPolicy={"stepEgress": {"rules": [opened]}}).install()
    service = namespace.get("service", release.full)["spec"]["clusterIP"]
    others = namespace.get("service", "other")["spec"]["clusterIP"]
    spawner = Inside(namespace.get("pod", release.spawners()[0]))
    release.executor("net", MODULE, ledger.placement(runner_image(namespace.cluster, tofu)))
    for step in ("net-1-plan", "net-1-apply"):
        ledger.hold("start", step)
    process, _ = release.begin("net")
    let = [(service, 8030), (NODE, 53), (WORLD, SHUT), (other.address, OPEN), (others, OPEN)]
    shut = [(API, 443), (NODE, 6443), (NODE, 10250), (other.address, SHUT), (METADATA, OPEN), (spawner.address, 8031)]
    step = Inside(wait_address(namespace, ledger.wait_held("start", "net-1-plan")))
    for address in (METADATA, WORLD):
        step.ip("route", "add", address, "via", other.address)
    # Without the policies all are there: what fails below fails because of them.
    assert {step.connect(*there) for there in [*let, *shut]} == {"connected"}
    with Enforced(namespace):
        assert {there: step.connect(*there) for there in let} == dict.fromkeys(let, "connected")
        assert {there: step.connect(*there) for there in shut} == dict.fromkeys(shut, PROHIBITED)
        assert step.resolve(NODE, f"{release.full}.{namespace.name}.svc.cluster.local") == service
        with step.listening(OPEN):
            assert other.connect(step.address, OPEN) == PROHIBITED
        assert other.connect(spawner.address, 8030) == "connected"
        assert other.connect(spawner.address, 8031) == PROHIBITED
        ledger.let_go("start", "net-1-plan")
        wait_address(namespace, ledger.wait_held("start", "net-1-apply"))
    with Enforced(namespace):
        ledger.let_go("start", "net-1-apply")
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    assert ledger.made("net-1") == ["first", "second"]
