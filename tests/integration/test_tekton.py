"""Workflows of the engine `tekton`: a PipelineRun on the real API server, whose status is driven as Tekton's controller does it."""

import json

import pytest

from lib import tekton
from lib.dayfly import wait_for
from lib.rights import Steps
from lib.workflows import JOB, TARGET, Workflows, is_over, job_of

# On one worker: the last tests take the definitions away.
pytestmark = [pytest.mark.usefixtures("definitions"), pytest.mark.xdist_group("tekton")]
BUNDLE = "registry.example.com/restart:v1"


@pytest.fixture(scope="module")
def definitions(cluster):
    tekton.install(cluster)
    yield
    tekton.remove(cluster)


class Pipelines(Workflows):
    """A spawner with both engines, and Tekton's controller."""

    def __init__(self, home, namespace, tofu, **kubernetes):
        super().__init__(home, namespace, tofu, config={"engines": ["job", "tekton"]}, **kubernetes)
        self.tekton = tekton.Controller(namespace)

    def ask_tekton(self, name, target=TARGET, code=0, spec=None, **workflow):
        document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": name},
                    "spec": {"action": "workflow", "engine": "tekton", "targetResource": target,
                             "workflow": {"executionBundle": BUNDLE, **workflow}, **(spec or {})}}
        return self.home.dayfly("create", "-f", "-", input=json.dumps(document), code=code)


@pytest.fixture
def world(home, namespace, tofu):
    with Pipelines(home, namespace, tofu) as running:
        yield running


def test_a_workflow_becomes_a_pipeline_run_and_tells_its_end(world):
    world.ask_tekton("restart", parameters={"REPLICAS": "3", "log-level": "debug"}, workflowId="restart-deployment",
                     dependencies={"secrets": [{"name": "db-creds"}], "configMaps": [{"name": "app.config"}]},
                     spec={"timeoutSeconds": 60, "placement": {"nodeSelector": {"disk": "ssd"}}})
    spec = world.tekton.run_of(JOB)["spec"]
    assert spec["pipelineRef"] == {"resolver": "bundles", "params": [
        {"name": "bundle", "value": BUNDLE}, {"name": "name", "value": "workflow"}, {"name": "kind", "value": "pipeline"}]}
    assert spec["params"] == [{"name": "REPLICAS", "value": "3"}, {"name": "log-level", "value": "debug"},
                              {"name": "TARGET_RESOURCE", "value": TARGET}]
    assert [w["name"] for w in spec["workspaces"]] == ["secret-db-creds", "configmap-app.config"]
    assert spec["taskRunTemplate"]["podTemplate"]["nodeSelector"] == {"disk": "ssd"}
    world.tekton.begin(JOB, "first", "second")
    world.wait("restart", "Executing")
    world.tekton.task_ends(JOB, "first")
    wait_for("one task to have ended", lambda: world.get("restart")["status"]["executionStatus"].get("completedTasks") == 1)
    world.tekton.task_ends(JOB, "second")
    world.tekton.end(JOB)
    status = world.ended("restart")["status"]
    assert (status["reason"], status["exitCode"], status["engineRef"]["kind"]) == ("Completed", 0, "PipelineRun"), status
    assert status["executionStatus"]["status"] == "True" and status["executionStatus"]["totalTasks"] == 2
    world.home.dayfly("delete", "taskaction/restart")
    world.namespace.wait_gone("pipelinerun", JOB)


def test_a_pipeline_that_fails_tells_task_and_exit_code(world):
    world.ask_tekton("restart")
    world.tekton.begin(JOB, "apply")
    world.tekton.task_ends(JOB, "apply", code=7)
    world.tekton.end(JOB, "False", "Failed", "Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0")
    status = world.ended("restart")["status"]
    assert (status["reason"], status["exitCode"]) == ("WorkflowFailed", 7), status
    assert status["failureDetails"]["failedTaskName"] == f"{JOB}-apply"
    assert status["failureDetails"]["reason"] == "TaskFailed" and status["failureDetails"]["wasExecutionFailure"]
    assert "exit code 7" in world.home.dayfly("why", "taskaction/restart").stdout


def test_a_canceled_workflow_asks_tekton_to_cancel_its_run(world):
    world.ask_tekton("restart")
    world.tekton.begin(JOB, "apply")
    world.wait("restart", "Executing")
    world.home.dayfly("cancel", "taskaction/restart")
    world.tekton.end_canceled(JOB)
    assert world.ended("restart")["status"]["reason"] == "Canceled"
    assert world.namespace.get("pipelinerun", JOB)  # to be looked at


def test_what_the_tasks_print_is_the_log(world):
    world.ask_tekton("restart")
    world.tekton.begin(JOB, "apply")
    container = {"name": "step-main", "image": world.image, "command": ["sh", "-c", "echo from the task"]}
    world.namespace.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{JOB}-apply-pod"},
                           "spec": {"restartPolicy": "Never", "containers": [container]}})
    world.namespace.wait("pod", f"{JOB}-apply-pod", lambda pod: pod["status"].get("phase") == "Succeeded")
    world.tekton.task_ends(JOB, "apply", pod=f"{JOB}-apply-pod")
    world.tekton.end(JOB)
    world.ended("restart")
    assert world.home.dayfly("logs", "taskaction/restart").stdout == "from the task\n"


def test_one_target_has_a_job_or_a_pipeline_run_not_both(world):
    ns = world.namespace
    ns.apply(job_of("other", script="sleep 8", image=world.image))
    world.ask_tekton("restart")
    wait_for("the holder to be named", lambda: "Job" in world.get("restart")["status"].get("lockedBy", ""))
    assert ns.get("pipelinerun", JOB) is None
    ns.wait("job", JOB, is_over)
    world.tekton.begin(JOB, "apply")
    world.tekton.end(JOB)
    assert world.ended("restart")["status"]["reason"] == "Completed"


def test_a_finished_run_of_another_scheduler_is_taken_over(world):
    own = {"kubernaut.ai/workflow-execution": "other", "kubernaut.ai/source-namespace": "elsewhere"}
    world.namespace.apply({"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "spec": {}, "metadata": {"name": JOB, "labels": own}})
    uid = world.tekton.run_of(JOB)["metadata"]["uid"]
    world.ask_tekton("restart")
    wait_for("the holder to be named", lambda: "other" in world.get("restart")["status"].get("lockedBy", ""))
    world.tekton.end(JOB)
    world.namespace.wait("pipelinerun", JOB, lambda run: run["metadata"]["uid"] != uid)
    world.tekton.begin(JOB, "apply")
    world.tekton.end(JOB)
    assert world.ended("restart")["status"]["reason"] == "Completed"


def test_a_spawner_that_comes_back_finds_its_run(world):
    world.ask_tekton("restart")
    uid = world.tekton.run_of(JOB)["metadata"]["uid"]
    world.server.kill()
    world.tekton.begin(JOB, "apply")
    world.tekton.end(JOB)
    world.start()
    status = world.ended("restart")["status"]
    assert (status["reason"], status["engineRef"]["uid"]) == ("Completed", uid)


def test_a_run_that_somebody_deletes_is_not_made_again(world):
    world.ask_tekton("restart")
    world.tekton.begin(JOB, "apply")
    world.wait("restart", "Executing")
    world.namespace.kubectl("delete", "pipelinerun", JOB)
    assert world.ended("restart")["status"]["reason"] == "JobDeleted"


def test_the_rights_of_the_set_are_those_that_the_engine_uses(home, namespace, tofu, tmp_path):
    steps = Steps(namespace, tmp_path, "tekton")
    with Pipelines(home, steps.namespace, tofu, kubeconfig=str(steps.kubeconfig)) as world:
        world.ask_tekton("fails")
        world.tekton.begin(JOB, "apply")
        world.tekton.task_ends(JOB, "apply", code=7)
        world.tekton.end(JOB, "False", "Failed", "Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0")
        assert world.ended("fails")["status"]["exitCode"] == 7
        world.ask_tekton("canceled")  # in the place of the other
        wait_for("the next run", lambda: world.get("canceled")["status"].get("engineRef"))
        world.home.dayfly("cancel", "taskaction/canceled")
        world.tekton.end_canceled(JOB)
        world.ended("canceled")
        world.ask("another", target="default/deployment/other")
        assert world.ended("another")["status"]["reason"] == "Completed"
    steps.check_used()


@pytest.mark.parametrize("spec, workflow, words", [
    ({}, {"parameters": {"TARGET_RESOURCE": "x"}}, "TARGET_RESOURCE: is refused"),
    ({}, {"parameters": {"a b": "x"}}, "is not the name of a Pipeline's parameter"),
    ({}, {"executionBundle": "https://git.example.com/x.git"}, "is not an image"),
])
def test_what_tekton_cannot_run_is_refused_before_anything_is_made(world, spec, workflow, words):
    assert words in world.ask_tekton("restart", spec=spec, code=3, **workflow).stderr
    assert not world.namespace.get("pipelineruns")


def test_a_placement_that_tekton_has_no_place_for_fails_in_words(world):
    world.ask_tekton("restart", resources={"limits": {"cpu": "1"}})
    status = world.ended("restart")["status"]
    assert status["reason"] == "InvalidStep" and "computeResources" in status["message"], status


def test_a_cluster_that_loses_tekton_keeps_its_workflows_waiting(world):
    cluster = world.namespace.cluster
    tekton.remove(cluster)
    world.ask_tekton("restart")
    wait_for("the workflow to say what is missing", lambda: "install Tekton" in json.dumps(world.get("restart")["status"]))
    tekton.install(cluster)
    world.tekton.begin(JOB, "apply")
    world.tekton.end(JOB)
    assert world.ended("restart")["status"]["reason"] == "Completed"


def test_in_a_cluster_without_tekton_a_workflow_is_canceled_at_once(world):
    cluster = world.namespace.cluster
    tekton.remove(cluster)
    world.ask_tekton("restart")
    wait_for("the workflow to say what is missing", lambda: "install Tekton" in json.dumps(world.get("restart")["status"]))
    world.home.dayfly("cancel", "taskaction/restart")
    assert world.ended("restart")["status"]["reason"] == "Canceled"
    world.home.dayfly("delete", "taskaction/restart")
    tekton.install(cluster)
