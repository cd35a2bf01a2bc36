"""Standby runners on the real cluster: pods that wait for a step, for a class (classes.NAME.standby) and for the apply
of a plan that is at work (kubernetes.applyAhead)."""

import json

from lib.dayfly import wait_for
from lib.pods import Pods, config_map_of

SMALL = 'resource "terraform_data" "x" { input = 1 }\noutput "x" { value = terraform_data.x.output }\n'
MOUNT = [{"name": "module-net", "mountPath": "/module"}]


def standbys(namespace):
    """The Jobs of standby runners that have not ended."""
    return {job["metadata"]["name"]: job for job in namespace.get("jobs")
            if "dayfly.dev/standby" in job["metadata"]["labels"] and not job.get("status", {}).get("conditions")}


def ready(namespace, count):
    """Until so many standby runners work and have no step; returns their names."""
    def seen():
        pods = namespace.get_all("pods", "dayfly.dev/standby")
        names = {pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] for pod in pods
                 if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]}
        return names if len(names) == count else None
    return wait_for(f"{count} standby runners", seen, 60)


def host_of(world, step):
    return world.document("taskactions", step)["status"]["engineRef"].get("hostUid")


def of_class(world, name, **placement):
    """An executor of the class, whose pods are those of the class if nothing else is said."""
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                "spec": {"source": {"url": "file:///module/module.tar.gz", "kind": "archive"}, "class": "small",
                         **({"placement": placement} if placement else {})}}
    world.home.dayfly("create", "-f", "-", input=json.dumps(document))


def with_class(home, namespace, tofu, **standby):
    world = Pods(home, namespace, tofu, config={"classes": {"small": {
        "standby": standby, "placement": {"configMapMounts": MOUNT}}}})
    namespace.apply(config_map_of(home.module("net", SMALL), "module-net"))
    return world


def test_a_step_of_the_class_is_served_by_a_pod_that_waits(home, namespace, tofu):
    with with_class(home, namespace, tofu, min=1, max=1) as world:
        first = ready(namespace, 1)
        of_class(world, "net")
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert {host_of(world, "net-1-plan")} == first
        plan = world.document("taskactions", "net-1-plan")
        assert plan["status"]["claimedBy"]["podName"].startswith(first.pop())
        assert "hello" not in home.dayfly("logs", "net-1").stdout
        wait_for("another one that waits", lambda: len(ready(namespace, 1)) == 1)


def test_each_runner_serves_exactly_one_step(home, namespace, tofu):
    with with_class(home, namespace, tofu, min=2, max=2) as world:
        ready(namespace, 2)
        of_class(world, "net")
        for _ in range(2):
            world.run("net")
        steps = [host_of(world, step) for step in ("net-1-plan", "net-1-apply", "net-2-plan")]
        served = [host for host in steps if host]
        assert served and len(set(served)) == len(served)


def test_a_step_of_another_placement_gets_a_pod_of_its_own(home, namespace, tofu):
    with with_class(home, namespace, tofu, min=1, max=1) as world:
        first = ready(namespace, 1)
        of_class(world, "net", labels={"team": "net"})
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert host_of(world, "net-1-plan") is None and host_of(world, "net-1-apply") is None
        assert ready(namespace, 1) == first


SLEEPS = 'locals { x = sum([for i in range(400) : length([for j in range(400) : j if j % 7 == i % 7])]) }\n' + SMALL


def test_the_pod_of_the_apply_starts_while_the_plan_is_at_work(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True) as world:
        world.executor("net", SLEEPS)
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        plan, apply = (world.document("taskactions", f"net-1-{step}") for step in ("plan", "apply"))
        host = apply["status"]["engineRef"].get("hostUid")
        assert host and host.startswith("standby-") and "hostUid" not in plan["status"]["engineRef"]
        assert apply["status"]["engineRef"]["name"] == host
        assert apply["status"]["claimedBy"]["podUid"] != plan["status"]["claimedBy"]["podUid"]
        wait_for("nobody waits any more", lambda: not standbys(namespace))


def test_a_plan_without_changes_takes_the_pod_away_before_it_has_a_step(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True) as world:
        world.executor("net", SLEEPS)
        world.run("net")
        assert world.run("net")["run"]["status"]["reason"] == "NoChanges"
        wait_for("the pod to go", lambda: not standbys(namespace))


def test_a_plan_that_failed_takes_the_pod_away(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True) as world:
        world.executor("net", SLEEPS + 'resource "terraform_data" "y" { input = nothing }\n')
        assert world.ended(world.ask("net"))["reason"] == "PlanFailed"
        wait_for("the pod to go", lambda: not standbys(namespace))


def test_a_run_that_needs_an_approval_starts_no_pod_ahead(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True) as world:
        world.executor("net", SLEEPS)
        home.dayfly("run", "net", "--detach")
        wait_for("the approval", lambda: world.document("runs", "net-1")["status"]["phase"] == "WaitingApproval")
        assert not standbys(namespace)
        home.dayfly("approve", "net-1")
        assert world.ended("net-1")["reason"] == "Applied"
        assert host_of(world, "net-1-apply") is None


def test_no_pod_starts_ahead_of_a_step_that_waits_for_a_slot(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True, config={"limits": {"steps": 1}}) as world:
        world.executor("net", SLEEPS)
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert host_of(world, "net-1-apply") is None
