"""Standby runners on the real cluster: pods that wait for a step, for a class (classes.NAME.standby) and for the apply
of a plan that is at work (kubernetes.applyAhead)."""

import json
import os
import shutil

from lib.dayfly import wait_for
from lib.pods import Pods, claim_on, config_map_of, reach
from lib.tool_mirror import ToolMirror

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
    return wait_for(f"{count} standby runners", seen)


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


def test_a_runner_that_somebody_planted_gets_no_step(home, namespace, tofu):
    """A Job with the name, the labels and the proof of one, for the next leader to find."""
    with with_class(home, namespace, tofu, min=1, max=1) as world:
        real = ready(namespace, 1).pop()
        planted = namespace.get("job", real)
        name = "standby-" + "e" * (len(real) - len("standby-"))
        annotations = {k: v for k, v in planted["metadata"]["annotations"].items() if k.startswith("dayfly.dev/")}
        assert "dayfly.dev/proof" in annotations
        template = planted["spec"]["template"]
        template["metadata"]["labels"] = {"planted": "yes"}
        namespace.apply({"apiVersion": "batch/v1", "kind": "Job",
                         "metadata": {"name": name, "labels": {**planted["metadata"]["labels"], "dayfly.dev/step-uid": name}, "annotations": annotations},
                         "spec": {"suspend": True, "activeDeadlineSeconds": planted["spec"]["activeDeadlineSeconds"], "template": template}})
        world.server.kill()
        world.start()
        wait_for("the next leader to find it", lambda: f"the Job {namespace.name}/{name} has the labels of a Job of this service, which did not make it"
                 in world.server.log.read_text())
        of_class(world, "net")
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert name not in {host_of(world, step) for step in ("net-1-plan", "net-1-apply")}
        namespace.kubectl("delete", "job", name)


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


def asked(world, name, text=SMALL):
    """A run that waits for its approval."""
    world.executor(name, text)
    world.home.dayfly("run", name, "--detach")
    wait_for("the approval", lambda: world.document("runs", f"{name}-1")["status"]["phase"] == "WaitingApproval")
    return f"{name}-1"


def test_a_pod_waits_while_a_person_is_asked_if_it_may(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True, applyAheadFor="10m") as world:
        run = asked(world, "net")
        (ahead,) = ready(namespace, 1)
        home.dayfly("approve", run)
        assert world.ended(run)["reason"] == "Applied"
        assert host_of(world, f"{run}-apply") == ahead
        wait_for("nobody waits any more", lambda: not standbys(namespace))


def test_a_plan_that_is_discarded_takes_the_pod_away(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True, applyAheadFor="10m") as world:
        run = asked(world, "net")
        wait_for("the pod", lambda: standbys(namespace))
        home.dayfly("discard", run)
        wait_for("the pod to go", lambda: not standbys(namespace))
        assert world.document("runs", run)["status"]["phase"] == "Discarded"


def test_a_pod_that_has_waited_for_its_time_goes_and_the_apply_gets_another(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True, applyAheadFor="3s") as world:
        run = asked(world, "net")
        wait_for("the pod", lambda: standbys(namespace))
        wait_for("the pod to go", lambda: not standbys(namespace))
        assert world.document("runs", run)["status"]["phase"] == "WaitingApproval"
        home.dayfly("approve", run)
        assert world.ended(run)["reason"] == "Applied"
        assert host_of(world, f"{run}-apply") is None


def test_a_pod_that_waits_for_a_person_gives_its_place_to_a_step(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True, applyAheadFor="10m", config={"limits": {"steps": 1}}) as world:
        store = Store(home, namespace)
        store.executor(home, "held")
        run = asked(world, "net")
        wait_for("the pod", lambda: standbys(namespace))
        other = world.ask("held")  # its plan holds the only slot
        wait_for("the pod to go", lambda: not standbys(namespace))
        assert world.document("runs", other)["status"]["phase"] == "Running"
        store.let_go()
        assert world.ended(other)["reason"] == "Applied"
        home.dayfly("approve", run)
        assert world.ended(run)["reason"] == "Applied"


def test_pods_that_wait_for_an_apply_go_when_a_step_finds_no_place(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True, applyAheadFor="10m") as world:
        run = asked(world, "net")
        ready(namespace, 1)
        world.wait_pod(f"{run}-plan", lambda pod: pod["status"]["phase"] == "Succeeded")  # and counts no more
        namespace.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}})
        namespace.wait("resourcequota", "one", lambda quota: quota.get("status", {}).get("used", {}).get("pods") == "1")
        world.executor("dns", SMALL)
        assert world.run("dns")["run"]["status"]["reason"] == "Applied"
        assert world.document("runs", run)["status"]["phase"] == "WaitingApproval"


def test_no_pod_starts_ahead_of_a_step_that_waits_for_a_slot(home, namespace, tofu):
    with Pods(home, namespace, tofu, applyAhead=True, config={"limits": {"steps": 1}}) as world:
        world.executor("net", SLEEPS)
        assert world.run("net")["run"]["status"]["reason"] == "Applied"
        assert host_of(world, "net-1-apply") is None


# The plan waits until somebody writes into the pipe.
HELD = 'locals { word = file("/store/pipe") }\nresource "terraform_data" "x" { input = local.word }\n'


class Store:
    """A directory of this machine with a module and a tool, which pods reach at /store, and the pipe that holds the plan."""

    def __init__(self, home, namespace):
        self.directory = home.directory / "store"
        claim_on(namespace, self.directory, "store")
        shutil.make_archive(str(self.directory / "module"), "gztar", home.module("held", HELD))
        ToolMirror(self.directory / "mirror", "/usr/local/bin/tofu").add("1.12.6")
        os.mkfifo(self.directory / "pipe")
        self.directory.joinpath("pipe").chmod(0o666)
        reach(self.directory)

    def executor(self, home, name):
        volume = {"name": "store", "mountPath": "/store", "persistentVolumeClaim": {"claimName": "store"}}
        document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                    "spec": {"source": {"url": "file:///store/module.tar.gz", "kind": "archive"},
                             "runtime": {"name": "opentofu", "version": "1.12.6"}, "placement": {"volumes": [volume]}}}
        home.dayfly("create", "-f", "-", input=json.dumps(document))

    def let_go(self):
        """Whoever reads gets a word; from now on it is a plain file."""
        pipe, word = self.directory / "pipe", self.directory / "word"
        word.write_text("word")
        with open(pipe, "w", encoding="ascii") as end:
            word.rename(pipe)
            end.write("word")

    def remove(self):
        shutil.rmtree(self.directory / "mirror")
        (self.directory / "module.tar.gz").unlink()


def says(namespace, job, *words):
    said = namespace.kubectl("logs", f"job/{job}", check=False).stdout
    return all(word in said for word in words)


def test_the_apply_has_source_and_tool_before_the_plan_has_ended(home, namespace, tofu):
    config = {"tools": {"directories": [], "searchPath": False, "index": {"opentofu": "file:///store/mirror"}}}
    with Pods(home, namespace, tofu, applyAhead=True, config=config) as world:
        store = Store(home, namespace)
        store.executor(home, "net")
        run = world.ask("net")
        (ahead,) = wait_for("the pod ahead", lambda: standbys(namespace))
        wait_for("source and tool", lambda: says(namespace, ahead, "the source is ready", "the tool is ready"))
        assert world.document("runs", run)["status"]["phase"] == "Running"
        store.remove()
        store.let_go()
        assert world.ended(run)["reason"] == "Applied"
        assert host_of(world, f"{run}-apply") == ahead
