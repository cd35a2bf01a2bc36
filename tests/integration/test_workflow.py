"""The action `workflow`: somebody else's image run against a target, which the name of its Job locks, on a real cluster."""

import json

import pytest

from lib.dayfly import wait_for
from lib.workflows import ACCOUNT, JOB, Workflows, is_over, job_of


@pytest.fixture
def world(home, namespace, tofu):
    with Workflows(home, namespace, tofu) as running:
        yield running


def test_a_workflow_runs_with_its_parameters_and_files_and_tells_its_end(world):
    ns = world.namespace
    ns.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db-creds"}, "stringData": {"password": "hush"}},
             {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app-config"}, "data": {"level": "9"}})
    script = ('test "$TARGET_RESOURCE $NAMESPACE $HOME $MADE_UP" = "default/deployment/nginx default /tmp " && '
              'test "$(cat /run/kubernaut/secrets/db-creds/password)" = hush && '
              'test "$(cat /run/kubernaut/configmaps/app-config/level)" = 9 && touch /tmp/x')
    made = world.ask("restart", script, parameters={"NAMESPACE": "default", "MADE_UP": "x"},
                     declaredParameterNames={"NAMESPACE": True},
                     dependencies={"secrets": [{"name": "db-creds"}], "configMaps": [{"name": "app-config"}]})
    assert made.stdout == "taskaction/restart created\n"
    task = world.ended("restart")
    status = task["status"]
    assert (status["reason"], status["exitCode"]) == ("Completed", 0), status
    assert status["executionStatus"] == {"status": "True", "reason": "Succeeded", "completedTasks": 1, "totalTasks": 1}
    assert [c["type"] for c in status["conditions"] if c["status"] == "True"] == ["Succeeded"]
    assert [t["name"] for t in status["timeline"]][:2] == ["queued", "created"]
    job = ns.get("job", JOB)
    assert status["engineRef"] == {"kind": "Job", "name": JOB, "namespace": ns.name, "uid": job["metadata"]["uid"],
                                   "serviceAccountName": ACCOUNT}
    assert (job["spec"]["ttlSecondsAfterFinished"], job["spec"]["activeDeadlineSeconds"]) == (600, 1800)
    assert job["metadata"]["labels"]["kubernaut.ai/workflow-execution"] == "restart"
    assert "claimedBy" not in status
    assert JOB in world.home.dayfly("describe", "taskaction", "restart").stdout
    assert "Completed" in world.home.dayfly("why", "taskaction/restart").stdout
    world.home.dayfly("delete", "taskaction/restart")
    ns.wait_gone("job", JOB)
    assert "restart" not in world.home.dayfly("get", "taskactions").stdout


def failure_of(status):
    return status["failureDetails"]["reason"], status["failureDetails"]["wasExecutionFailure"]


def test_a_failing_workflow_tells_its_exit_code(world):
    world.ask("restart", "echo it is broken >/dev/termination-log; exit 3")
    status = world.ended("restart")["status"]
    assert (status["reason"], status["exitCode"]) == ("WorkflowFailed", 3), status
    assert "it is broken" in status["message"] and "BackoffLimitExceeded" in status["message"]
    assert (status["executionStatus"]["status"], status["executionStatus"]["reason"]) == ("False", "Failed")
    assert failure_of(status) == ("TaskFailed", True) and status["failureDetails"]["exitCode"] == 3
    assert "it is broken" in status["failureDetails"]["message"]
    assert "exit code 3" in world.home.dayfly("why", "taskaction/restart").stdout


def test_what_a_workflow_prints_is_in_its_log_while_it_runs_and_when_its_job_is_gone(world):
    dayfly = world.home.dayfly
    world.ask("restart", "echo first; sleep 8; echo second")
    assert "has nothing in its log yet" in dayfly("logs", "taskaction/restart").stderr
    wait_for("its first line", lambda: dayfly("logs", "taskaction/restart").stdout == "first\n")
    assert dayfly("logs", "-f", "taskaction/restart").stdout == "first\nsecond\n"
    status = world.ended("restart")["status"]
    pod, = world.namespace.get("pods")
    assert status["logParts"] == [{"name": pod["metadata"]["name"], "offset": 0}]
    world.namespace.kubectl("delete", "job", JOB)
    assert dayfly("logs", "task/restart").stdout == "first\nsecond\n"
    assert "--step is for runs alone" in dayfly("logs", "taskaction/restart", "--step", "plan", code=3).stderr
    dayfly("delete", "taskaction/restart")
    assert "restart" in dayfly("logs", "taskaction/restart", code=None).stderr


def test_the_log_has_what_a_canceled_workflow_printed_until_then(world):
    world.ask("restart", "echo it has begun; sleep 600")
    world.wait("restart", "Executing")
    wait_for("its pod to print", lambda: "it has begun" in world.namespace.kubectl("logs", f"job/{JOB}").stdout)
    world.home.dayfly("cancel", "taskaction/restart")
    world.ended("restart")
    assert world.home.dayfly("logs", "taskaction/restart").stdout == "it has begun\n"


def test_what_kept_a_pod_for_a_moment_is_not_why_it_failed(world):
    world.ask("restart", "exit 3", dependencies={"secrets": [{"name": "late"}]})
    wait_for("the pod to miss its secret",
             lambda: any(e["reason"] == "FailedMount" for e in world.namespace.get("events")))
    world.namespace.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}, "stringData": {"a": "b"}})
    status = world.ended("restart")["status"]
    assert (status["reason"], status["exitCode"]) == ("WorkflowFailed", 3), status
    assert "late" not in status["message"]


def test_the_second_on_a_target_waits_for_the_first_and_runs_then(world):
    world.ask("first", "sleep 8")  # on a busy machine everything up to `why` took four seconds
    world.wait("first", "Executing")
    uid = world.namespace.get("job", JOB)["metadata"]["uid"]
    world.ask("second")
    waits = world.wait("second", "Queued")
    wait_for("second to say for what it waits", lambda: "taskaction/first" in world.status("second")[1])
    assert waits and world.get("second")["status"]["lockedBy"] == "taskaction/first"
    assert world.namespace.get("job", JOB)["metadata"]["uid"] == uid
    assert "taskaction/first" in world.home.dayfly("why", "taskaction/second").stdout
    assert world.ended("first")["status"]["reason"] == "Completed"
    second = world.ended("second")["status"]
    assert second["reason"] == "Completed" and second["engineRef"]["uid"] != uid
    assert "lockedBy" not in second
    world.home.dayfly("delete", "taskaction/first")  # whose Job is gone: the one of that name is not its own
    assert world.namespace.get("job", JOB)["metadata"]["uid"] == second["engineRef"]["uid"]


def test_an_ended_job_of_another_scheduler_is_replaced_and_a_live_one_waited_for(world):
    ns = world.namespace
    ns.apply(job_of("other", script="sleep 8", image=world.image))
    uid = ns.get("job", JOB)["metadata"]["uid"]
    world.ask("restart")
    wait_for("the holder to be named", lambda: "other" in world.get("restart")["status"].get("lockedBy", ""))
    assert world.status("restart")[0] == "Queued"
    status = world.ended("restart")["status"]
    assert status["reason"] == "Completed" and status["engineRef"]["uid"] != uid


def test_a_job_that_names_no_action_is_never_deleted(world):
    ns = world.namespace
    ns.apply(job_of(None, image=world.image))
    uid = ns.wait("job", JOB, is_over)["metadata"]["uid"]
    world.ask("restart", spec={"timeoutSeconds": 1})
    status = world.ended("restart")["status"]
    assert status["reason"] == "TargetLocked" and JOB in status["message"], status
    world.home.dayfly("delete", "taskaction/restart")
    assert ns.get("job", JOB)["metadata"]["uid"] == uid


def test_a_spawner_that_comes_back_adopts_its_job(world):
    marker = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "go"}, "data": {"go": "1"}}
    world.ask("restart", "until [ -e /run/kubernaut/configmaps/go/go ]; do sleep 0.1; done",
              dependencies={"configMaps": [{"name": "go"}]})
    uid = world.namespace.wait("job", JOB, lambda job: True)["metadata"]["uid"]
    world.server.kill()
    world.namespace.apply(marker)  # the pod starts and ends while nobody looks
    world.namespace.wait("job", JOB, is_over)
    world.start()
    status = world.ended("restart")["status"]
    assert (status["reason"], status["engineRef"]["uid"]) == ("Completed", uid)
    assert len(world.namespace.get("pods")) == 1


def test_a_job_that_somebody_deletes_is_not_made_again(world):
    world.ask("restart", "sleep 600")
    world.wait("restart", "Executing")
    world.namespace.kubectl("delete", "job", JOB)
    status = world.ended("restart")["status"]
    assert (status["reason"], status["message"]) == ("JobDeleted", "it was deleted externally")
    assert world.namespace.get("job", JOB) is None
    world.home.dayfly("delete", "taskaction/restart")


def test_a_canceled_workflow_ends_with_its_pod_and_frees_its_target(world):
    world.ask("restart", "sleep 600")
    world.wait("restart", "Executing")
    world.home.dayfly("cancel", "taskaction/restart", "--reason", "wrong one")
    status = world.ended("restart")["status"]
    assert status["reason"] == "Canceled"
    assert world.namespace.get("job", JOB) is None
    assert not [p for p in world.namespace.get("pods") if p["status"]["phase"] == "Running"]
    world.ask("again")
    assert world.ended("again")["status"]["reason"] == "Completed"
    assert "has ended" in world.home.dayfly("cancel", "taskaction/again", code=None).stderr


def test_a_missing_service_account_is_told_and_ends_it_in_time(world):
    world.ask("restart", spec={"pendingSeconds": 3}, serviceAccountName="nobody")
    status = world.ended("restart")["status"]
    assert status["reason"] == "ServiceAccountMissing" and "nobody" in status["message"], status
    assert failure_of(status) == ("ConfigurationError", False)
    world.namespace.wait_gone("job", JOB)


def test_a_pod_that_was_killed_is_made_again_and_counted(world):
    ns = world.namespace
    marker = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "go"}}
    ns.apply(marker)
    world.ask("restart", "[ -e /run/kubernaut/configmaps/go/go ] || exit 137", dependencies={"configMaps": [{"name": "go"}]})
    world.wait("restart", "Executing")
    ns.apply({**marker, "data": {"go": "1"}})
    status = world.ended("restart")["status"]
    assert (status["reason"], status["executionStatus"]["retryCount"]) == ("Completed", 1), status


def test_a_pod_that_is_killed_again_and_again_is_given_up(world):
    world.ask("restart", "exit 137")
    status = world.ended("restart", seconds=150)["status"]
    assert (status["reason"], status["executionStatus"]["retryCount"]) == ("PodsExhausted", 3), status
    assert failure_of(status) == ("Unknown", True)
    assert "killed again and again" in world.home.dayfly("why", "taskaction/restart").stdout
    world.namespace.wait_gone("job", JOB)


def test_what_runs_out_of_time_says_why_it_never_started(world):
    world.ask("restart", spec={"timeoutSeconds": 8}, dependencies={"secrets": [{"name": "absent"}]})
    status = world.ended("restart")["status"]
    assert status["reason"] == "SecretMissing" and '"absent" not found' in status["message"], status
    assert failure_of(status) == ("ConfigurationError", False)


def test_what_makes_no_sense_is_refused_with_every_fault(world):
    refused = world.ask("restart", target="default", code=None, parameters={"TARGET_RESOURCE": "x", "LD_PRELOAD": "y"},
                        serviceAccount="x").stderr
    for words in ("spec.targetResource: must be in format", "spec.workflow.parameters.TARGET_RESOURCE: is refused",
                  "spec.workflow.parameters.LD_PRELOAD: is refused", 'did you mean "serviceAccountName"'):
        assert words in refused
    document = world.document("restart")
    document["spec"]["engine"] = "awx"
    unknown = world.home.dayfly("create", "-f", "-", input=json.dumps(document), code=None).stderr
    assert 'unsupported execution engine: "awx" (registered: [job])' in unknown
    document["spec"] = {**document["spec"], "engine": "job", "action": "apply"}
    assert "only workflow" in world.home.dayfly("create", "-f", "-", input=json.dumps(document), code=None).stderr
    assert world.namespace.get("jobs") == []


def test_the_same_request_twice_asks_once(world):
    headers = {"Authorization": "Bearer " + world.home.env["DAYFLY_TOKEN"], "Idempotency-Key": "k1"}
    answers = [world.server.request("POST", "/v1/taskactions", world.document("restart"), headers) for _ in range(2)]
    assert [status for status, _, _ in answers] == [201, 201]
    assert answers[1][1]["Idempotency-Replayed"] == "true"
    assert answers[0][1]["Location"] == "/v1/taskactions/restart"
    assert json.loads(answers[0][2])["metadata"]["uid"] == json.loads(answers[1][2])["metadata"]["uid"]
    assert world.ended("restart")["status"]["reason"] == "Completed"


def test_nobody_claims_a_workflow(world):
    world.ask("restart", "sleep 600")
    world.wait("restart", "Executing")
    task = world.get("restart")
    token = world.namespace.pod_token(world.namespace.get("pods")[0]["metadata"]["name"],
                                      f"dayfly/{task['metadata']['uid']}", ACCOUNT, duration="10m")
    status, _, body = world.server.request("POST", f"/v1/steps/{task['metadata']['uid']}/claim", {"claimId": "0" * 32},
                                           {"Authorization": f"Bearer {token}"})
    assert status == 404, body
    world.home.dayfly("cancel", "taskaction/restart")
    world.ended("restart")
