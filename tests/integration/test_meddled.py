"""People with kubectl who do what nobody should: every run ends truly, and no executor forgets what it may hold."""

import json

import pytest

from lib.dayfly import wait_for
from lib.ledger import FINAL
from lib.replicas import Replicas


@pytest.fixture
def world(home, namespace, tofu):
    made = Replicas(home, namespace, tofu, count=1)
    yield made.start()
    made.__exit__()


def force_away(namespace, kind, name):
    """Deletes a document in spite of its finalizer."""
    namespace.kubectl("patch", kind, name, "--type=merge", "-p", '{"metadata":{"finalizers":[]}}')
    namespace.kubectl("delete", kind, name, "--wait=false")


def write_phase(namespace, run, phase):
    namespace.kubectl("patch", "run", run, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"phase": phase}}))


def executor_status(namespace, name):
    return namespace.get("executor", name)["status"]


def test_a_pod_that_cannot_claim_goes_at_once_when_its_run_is_deleted(world, namespace):
    """As if a webhook had replaced the image: it ignores SIGTERM, and its grace period is 900 seconds."""
    deaf = {"name": "before", "command": ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]}
    mounted = world.ledger.placement(world.image)
    mounted["podTemplate"]["spec"]["initContainers"][0].update(deaf)
    world.make("deaf", placement=mounted)
    run = world.request("deaf", "deaf/1")
    pod = world.wait_pod(f"{run}-plan", lambda pod: pod["status"].get("initContainerStatuses", [{}])[0].get("state", {}).get("running"))
    assert pod["spec"]["terminationGracePeriodSeconds"] == 900
    namespace.kubectl("delete", "run", run, "--timeout=180s")
    wait_for("the pod to go", lambda: not namespace.get("pods") and not namespace.get("jobs"))


def test_what_is_deleted_by_force_or_edited_in_mid_apply_ends_truly(world, namespace):
    """The three at once, each in an executor of its own, beside a queued run."""
    for name in ("step", "run", "phase"):
        world.make(name)
        world.ledger.hold("second", f"{name}-1-apply")
        world.request(name, f"{name}/1")
    world.request("phase", "phase/2")
    for name in ("step", "run", "phase"):
        world.ledger.wait_held("second", f"{name}-1-apply")
        assert executor_status(namespace, name)["mayHoldResources"] is True
    force_away(namespace, "taskaction", "step-1-apply")
    force_away(namespace, "run", "run-1")
    write_phase(namespace, "phase-1", "Succeeded")
    assert wait_for("the phase to be undone", lambda: namespace.get("run", "phase-1")["status"]["phase"] == "Running")

    end = world.finish("step-1")
    assert (end["phase"], end["reason"]) == ("Failed", "StepDeleted"), end
    namespace.wait_gone("job", "step-1-apply")
    namespace.wait_gone("taskaction", "run-1-apply")
    for name in ("step", "run"):
        wait_for(f"{name} to be free", lambda name=name: "activeRun" not in executor_status(namespace, name))
        status = executor_status(namespace, name)
        assert (status["status"], status["mayHoldResources"]) == ("error", True), status
        code, problem = world.ask("DELETE", f"/v1/executors/{name}")
        assert code == 409 and problem["type"].endswith("/WrongState"), problem

    world.ledger.let_go("second", "phase-1-apply")
    for run in ("phase-1", "phase-2"):
        end = world.finish(run)
        assert (end["phase"], end["reason"]) == ("Succeeded", "Applied"), (run, end)
    world.check_at_most_once()
    for name in ("step", "run", "phase"):
        wait_for(f"the lock of {name}", lambda name=name: world.ask("GET", f"/v1/executors/{name}/state/lock")[0] == 204)


def test_a_run_takes_its_jobs_with_it_and_its_name_is_free_again(world, namespace):
    world.make("net")
    run = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Run", "metadata": {"name": "nightly"},
           "spec": {"executorRef": {"name": "net"}, "action": "dry-run"}}
    for _ in range(2):
        namespace.apply(run)
        end = namespace.wait("run", "nightly", lambda r: r.get("status", {}).get("phase") in FINAL)
        assert end["status"]["reason"] == "Planned", end["status"]
        assert namespace.get("job", "nightly-plan")
        namespace.kubectl("delete", "run", "nightly", "--timeout=180s")
    namespace.wait_gone("job", "nightly-plan")
    wait_for("its pods to go", lambda: not namespace.get("pods"))
