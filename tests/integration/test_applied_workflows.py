"""Workflows that people apply with kubectl: asked for, waited for, canceled and deleted, without the REST API."""

import json

import pytest

from lib import crds
from lib.dayfly import wait_for
from lib.workflows import ACCOUNT, JOB, Workflows, is_over, job_of

# Of what is applied; test_placement_policy.py has what is refused without it.
ANYTHING = {"write": {"workflow": {"fields": ["*", "podTemplate"], "images": ["*"], "secrets": ["*"], "configMaps": ["*"]}}}
FOREVER = "trap 'exit 1' TERM; while :; do sleep 0.1; done"


class Applied(Workflows):
    """A spawner whose documents are custom resources."""

    def __init__(self, home, namespace, tofu, **config):
        super().__init__(home, namespace, tofu, config={"store": "kubernetes", "placement": {"allow": ANYTHING}, **config})

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            self.namespace.let_go()

    def apply(self, *args, **kwargs):
        self.namespace.apply(self.document(*args, **kwargs))

    def await_condition(self, name, condition):
        """As people wait for it; the resource."""
        self.namespace.kubectl("wait", f"--for=condition={condition}", f"taskaction/{name}", "--timeout=180s")
        return self.namespace.get("taskaction", name)

    def await_reason(self, name, reason):
        return self.namespace.wait("taskaction", name, lambda t: conditions(t).get("Progressing", ("", ""))[1] == reason)

    def patch(self, name, spec, **kwargs):
        return self.namespace.kubectl("patch", "taskaction", name, "--type=merge", "-p", json.dumps({"spec": spec}), **kwargs)


@pytest.fixture(scope="module")
def definitions(cluster):
    crds.install(cluster)


@pytest.fixture
def world(home, namespace, tofu, definitions):
    with Applied(home, namespace, tofu) as running:
        yield running


def conditions(task):
    return {c["type"]: (c["status"], c["reason"]) for c in task.get("status", {}).get("conditions", [])}


def live_pods(namespace):
    return [p["metadata"]["name"] for p in namespace.get("pods") if p["status"].get("phase") in ("Pending", "Running")]


def test_an_applied_workflow_runs_to_its_end_and_tells_it_in_its_status(world):
    world.apply("restart", 'test "$TARGET_RESOURCE $REPLICAS" = "default/deployment/nginx 3"', parameters={"REPLICAS": "3"})
    task = world.await_condition("restart", "Succeeded")
    assert conditions(task) == {"Progressing": ("False", "Completed"), "Succeeded": ("True", "Completed"),
                                "Failed": ("False", "Completed")}
    assert all(c["observedGeneration"] == task["metadata"]["generation"] for c in task["status"]["conditions"])
    status = task["status"]
    assert (status["exitCode"], status["creator"], status["executionStatus"]["status"]) == (0, "kubernetes", "True")
    job = world.namespace.get("job", JOB)
    assert status["engineRef"] == {"kind": "Job", "name": JOB, "namespace": world.namespace.name, "uid": job["metadata"]["uid"],
                                   "serviceAccountName": ACCOUNT}
    row = world.namespace.kubectl("get", "dft", "restart", "--no-headers").stdout.split()
    assert row[:4] == ["restart", "workflow", "default/deployment/nginx", "Completed"]
    assert task["spec"]["timeoutSeconds"] == 1800 and task["spec"]["engine"] == "job"
    assert world.get("restart")["status"]["reason"] == "Completed"  # the same in the REST API
    trail = {(e["actor"], e["action"], e["name"]) for e in world.home.json("get", "audit")["items"]}
    assert ("kubernetes", "create", "restart") in trail

    world.namespace.kubectl("delete", "taskaction", "restart", "--timeout=180s")
    world.namespace.wait_gone("job", JOB)
    assert not live_pods(world.namespace)


def test_a_failing_one_says_with_what(world):
    world.apply("restart", "echo it is broken >/dev/termination-log; exit 3")
    task = world.await_condition("restart", "Failed")
    assert conditions(task) == {"Progressing": ("False", "WorkflowFailed"), "Succeeded": ("False", "WorkflowFailed"),
                                "Failed": ("True", "WorkflowFailed")}
    assert task["status"]["exitCode"] == 3 and "it is broken" in task["status"]["message"]
    assert task["status"]["errorState"] == {"code": "WorkflowFailed", "kind": "USER", "message": task["status"]["message"]}


def test_a_patch_cancels_it_with_its_pod(world):
    world.apply("restart", FOREVER)
    world.await_reason("restart", "Executing")
    world.patch("restart", {"cancel": {"reason": "wrong one"}})
    task = world.await_condition("restart", "Failed")
    assert conditions(task)["Failed"] == ("True", "Canceled")
    note = world.get("restart")["spec"]["cancel"]
    assert (note["by"], note["reason"]) == ("kubernetes", "wrong one")
    world.namespace.wait_gone("job", JOB)
    assert not live_pods(world.namespace)
    world.apply("next")
    world.await_condition("next", "Succeeded")


def test_a_deleted_one_is_ended_first_and_goes_after_its_pod(world):
    world.apply("restart", FOREVER)
    world.await_reason("restart", "Executing")
    pod, = live_pods(world.namespace)
    assert world.namespace.get("taskaction", "restart")["metadata"]["finalizers"] == ["dayfly.dev/cleanup"]
    world.namespace.kubectl("delete", "taskaction", "restart", "--timeout=180s")
    assert world.namespace.get("pod", pod) is None and world.namespace.get("job", JOB) is None


def test_one_that_waits_in_the_queue_goes_at_once_when_it_is_deleted(world):
    world.apply("first", FOREVER)
    world.await_reason("first", "Executing")
    uid = world.namespace.get("job", JOB)["metadata"]["uid"]
    world.apply("second")
    world.namespace.wait("taskaction", "second", lambda t: t.get("status", {}).get("lockedBy") == "taskaction/first")
    world.namespace.kubectl("delete", "taskaction", "second", "--timeout=180s")
    assert world.namespace.get("job", JOB)["metadata"]["uid"] == uid
    assert conditions(world.namespace.get("taskaction", "first"))["Progressing"] == ("True", "Executing")
    world.namespace.kubectl("delete", "taskaction", "first", "--timeout=180s")


def test_the_second_on_a_target_runs_when_the_first_is_deleted(world):
    world.apply("first", FOREVER)
    world.await_reason("first", "Executing")
    world.apply("second")
    world.namespace.wait("taskaction", "second", lambda t: t.get("status", {}).get("lockedBy") == "taskaction/first")
    world.apply("elsewhere", target="default/deployment/other")
    world.await_condition("elsewhere", "Succeeded")
    world.namespace.kubectl("delete", "taskaction", "first", "--timeout=180s")
    task = world.await_condition("second", "Succeeded")
    assert task["status"]["engineRef"]["uid"] == world.namespace.get("job", JOB)["metadata"]["uid"]


@pytest.mark.parametrize("owner", [None, "somebody/else"])
def test_a_job_that_is_not_ours_is_waited_for_and_never_taken_over_or_deleted(world, owner):
    """None: an ended Job that says nothing of an action; else one of another scheduler that lives."""
    ns = world.namespace
    ns.apply(job_of(owner and "theirs", script="true" if owner is None else FOREVER, image=world.image))
    uid = ns.wait("job", JOB, lambda job: owner or is_over(job))["metadata"]["uid"]
    world.apply("restart", spec={"timeoutSeconds": 2})
    task = world.await_condition("restart", "Failed")
    assert conditions(task)["Failed"] == ("True", "TargetLocked") and JOB in task["status"]["message"], task["status"]
    assert "engineRef" not in task["status"]
    ns.kubectl("delete", "taskaction", "restart", "--timeout=180s")
    job = ns.get("job", JOB)
    assert job["metadata"]["uid"] == uid and "deletionTimestamp" not in job["metadata"]


@pytest.mark.parametrize("change, said", [
    ({"action": "apply"}, "spec"),
    ({"targetResource": "nowhere"}, "must be in format"),
    ({"workflow": {"executionBundle": "localhost/x:1", "parameters": {"TARGET_RESOURCE": "x"}}}, "parameters"),
    ({"workflow": {"executionBundel": "localhost/x:1"}}, "executionBundel"),
])
def test_the_api_server_refuses_what_makes_no_sense(world, change, said):
    document = world.document("restart")
    document["spec"].update(change)
    refused = world.namespace.kubectl("apply", "-f", "-", input=json.dumps(document), check=False)
    assert refused.returncode != 0 and said in refused.stderr, refused.stderr
    assert world.namespace.get("taskactions") == []


def test_what_the_engine_does_not_take_is_refused_by_the_service(world):
    """The definition does not know which names of parameters an engine takes."""
    world.apply("restart", parameters={"LD_PRELOAD": "x"})
    task = world.await_condition("restart", "Failed")
    assert conditions(task)["Failed"] == ("True", "InvalidDocument") and "LD_PRELOAD" in json.dumps(task["status"]), task["status"]
    assert world.namespace.get("job", JOB) is None


def test_what_only_the_spawner_can_refuse_is_told_in_the_conditions(world):
    world.apply("restart", spec={"engine": "awx"})
    task = world.await_condition("restart", "Failed")
    message, = {c["message"] for c in task["status"]["conditions"] if c["type"] == "Failed"}
    assert 'unsupported execution engine: "awx" (registered: [job])' in message
    assert world.namespace.get("jobs") == []
    world.namespace.kubectl("delete", "taskaction", "restart", "--timeout=180s")


def test_a_class_gives_it_nodes_and_a_limit_but_not_what_it_says_itself(home, namespace, tofu, definitions):
    quick = {"limit": 1, "placement": {"nodeSelector": {"kubernetes.io/os": "linux"}, "serviceAccountName": "default",
                                       "image": "nobody-made-it", "resources": {"requests": {"cpu": "900"}}}}
    with Applied(home, namespace, tofu, classes={"quick": quick}) as world:
        world.apply("first", FOREVER, spec={"class": "quick"})
        world.await_reason("first", "Executing")
        pod = namespace.get("job", JOB)["spec"]["template"]["spec"]
        assert (pod["nodeSelector"], pod["serviceAccountName"]) == ({"kubernetes.io/os": "linux"}, ACCOUNT)
        assert pod["containers"][0]["image"] == world.image and not pod["containers"][0]["resources"]
        world.apply("other", target="default/deployment/other", spec={"class": "quick"})
        said = namespace.wait("taskaction", "other", lambda t: "of the class quick runs" in json.dumps(t.get("status", {})))
        assert conditions(said)["Progressing"] == ("True", "Queued")
        world.apply("unknown", target="default/deployment/third", spec={"class": "quikc"})
        refused = world.await_condition("unknown", "Failed")
        assert 'class: "quikc" is not among the classes of this service: quick' in json.dumps(refused["status"]["conditions"]).replace("\\", "")
        namespace.kubectl("delete", "taskaction", "first", "unknown", "--timeout=180s")
        world.await_condition("other", "Succeeded")


def test_what_was_taken_in_counts_and_not_what_is_edited_afterwards(world):
    world.apply("first", FOREVER)
    world.await_reason("first", "Executing")
    world.apply("second", "true")
    world.namespace.wait("taskaction", "second", lambda t: t.get("status", {}).get("lockedBy"))
    world.patch("second", {"workflow": {"parameters": {"FORGED": "1"}}})
    refused = world.patch("second", {"targetResource": "default/deployment/other"}, check=False)
    assert refused.returncode != 0
    world.namespace.kubectl("delete", "taskaction", "first", "--timeout=180s")
    world.await_condition("second", "Succeeded")
    container, = world.namespace.get("job", JOB)["spec"]["template"]["spec"]["containers"]
    assert "FORGED" not in {e["name"] for e in container["env"]}


def test_a_spawner_that_comes_back_takes_in_what_was_applied_and_adopts_its_job(world):
    world.apply("first", FOREVER)
    world.await_reason("first", "Executing")
    uid = world.namespace.get("job", JOB)["metadata"]["uid"]
    world.server.kill()
    world.apply("elsewhere", target="default/deployment/other")
    world.start()
    world.await_condition("elsewhere", "Succeeded")
    task = world.namespace.get("taskaction", "first")
    assert (task["status"]["engineRef"]["uid"], conditions(task)["Progressing"]) == (uid, ("True", "Executing"))
    assert world.namespace.get("job", JOB)["metadata"]["uid"] == uid
    world.patch("first", {"cancel": {}})
    world.await_condition("first", "Failed")
    wait_for("its pod to go", lambda: not live_pods(world.namespace))
