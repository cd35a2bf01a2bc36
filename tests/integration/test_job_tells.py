"""What a step in a pod tells of itself: Events on its Job, metrics, and how many of its runners may be lost."""

import pytest

from lib import crds
from lib.cluster import kubeconfig_of
from lib.dayfly import wait_for
from lib.pods import Pods

SMALL = 'resource "terraform_data" "a" {}\n'
NOWHERE = {"nodeSelector": {"dayfly.test/node": "nowhere"}}


@pytest.fixture
def pods(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        yield world


def told(pods, job):
    """Our own Events on the Jobs of that name, in order."""
    events = [e for e in pods.namespace.get("events.v1.events.k8s.io")
              if e.get("reportingController") == "dayfly.dev/spawner" and e["regarding"]["name"] == job]
    return sorted(events, key=lambda e: e["eventTime"])


def reasons(pods, job):
    return [e["reason"] for e in told(pods, job)]


def metrics(pods):
    """{series: value}"""
    status, _, body = pods.server.request("GET", "/metrics", headers={"Authorization": f"Bearer {pods.home.env['DAYFLY_TOKEN']}"})
    assert status == 200
    lines = [line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#")]
    return {series: float(value) for series, value in lines}


def test_each_phase_of_a_step_is_an_event_on_its_job_and_a_metric(pods):
    pods.executor("net", SMALL)
    assert pods.ended(pods.ask("net", "dry-run"))["reason"] == "Planned"
    phases = ["Queued", "Initializing", "Executing", "Planned"]
    wait_for("the Events of all phases", lambda: reasons(pods, "net-1-plan") == phases)
    job = pods.namespace.get("job", "net-1-plan")
    for event in told(pods, "net-1-plan"):
        assert event["regarding"] == {"apiVersion": "batch/v1", "kind": "Job", "name": "net-1-plan",
                                      "namespace": pods.namespace.name, "uid": job["metadata"]["uid"]}
        assert event["type"] == "Normal" and event["action"] == "plan"
    assert "Planned" in pods.namespace.kubectl("describe", "job", "net-1-plan").stdout
    history = pods.document("taskactions", "net-1-plan")["status"]["phaseHistory"]
    assert [h["phase"] for h in history] == ["Queued", "Initializing", "Executing", "Completed"]
    assert metrics(pods)['dayfly_step_transitions_total{phase="Completed",reason="Planned"}'] == 1
    assert metrics(pods)['dayfly_steps_ended_total{action="plan",result="success",reason="Planned"}'] == 1


def test_a_failure_is_a_warning_with_its_cause(pods):
    pods.executor("bad", 'resource "nonsense" {\n')
    assert pods.ended(pods.ask("bad", "dry-run"))["reason"] in ("InitFailed", "PlanFailed")
    wait_for("the Event of the end", lambda: any(e["type"] == "Warning" for e in told(pods, "bad-1-plan")))
    status = pods.document("taskactions", "bad-1-plan")["status"]
    end = told(pods, "bad-1-plan")[-1]
    assert end["reason"] == status["reason"] and status["message"][:200] in end["note"]
    assert status["errorState"] == {"code": status["reason"], "kind": "USER", "message": status["message"]}


def test_a_step_whose_jobs_are_taken_away_one_after_the_other_is_given_up_with_the_fourth(pods):
    pods.executor("net", SMALL, placement=NOWHERE)
    run = pods.ask("net", "dry-run")
    step = f"{run}-plan"
    seen = None
    for _ in range(4):
        pod = pods.wait_pod(step, lambda p, old=seen: p["metadata"]["uid"] != old)
        seen = pod["metadata"]["uid"]
        pods.namespace.kubectl("delete", "job", step, "--wait=false")
    assert pods.ended(run)["reason"] == "MaxSystemFailuresExceeded"
    status = pods.document("taskactions", step)["status"]
    assert (status["attempts"], status["systemFailures"]) == (1, 4)
    assert status["errorState"]["kind"] == "SYSTEM" and "deleted the Job" in status["message"]
    phases = [h["phase"] for h in status["phaseHistory"]]
    assert phases == ["Queued", "Initializing"] + 3 * ["RetryableFailure", "Initializing"] + ["RetryableFailure", "PermanentFailure"]
    wait_for("the last Event", lambda: "MaxSystemFailuresExceeded" in reasons(pods, step))
    assert reasons(pods, step).count("RetryableFailure") == 4
    assert metrics(pods)['dayfly_step_transitions_total{phase="RetryableFailure",reason="JobDeleted"}'] == 4
    pods.namespace.wait_gone("job", step)


def test_events_that_are_forbidden_are_said_once_and_nothing_waits_for_them(home, namespace, tofu, tmp_path):
    account = "no-events"
    namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}},
                    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": account},
                     "rules": [{"apiGroups": ["batch"], "resources": ["jobs"],
                                "verbs": ["get", "list", "watch", "create", "delete"]},
                               {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["list", "watch"]}]},
                    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": account},
                     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
                     "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace.name}]})
    kubeconfig = kubeconfig_of(namespace, account, tmp_path / "kubeconfig")
    with Pods(home, namespace, tofu, kubeconfig=str(kubeconfig)) as pods:
        pods.executor("net", SMALL)
        for _ in range(2):
            assert pods.ended(pods.ask("net", "dry-run"))["reason"] == "Planned"
        wait_for("the warning", lambda: "the API server refuses Events about steps" in pods.server.log.read_text())
    assert pods.server.log.read_text().count("the API server refuses Events about steps") == 1
    assert not told(pods, "net-1-plan")


# ---- TaskActions that are objects of the cluster ---------------------------------------------------------------------

@pytest.fixture
def in_cluster(home, namespace, tofu):
    crds.install(namespace.cluster)
    with Pods(home, namespace, tofu, {"store": "kubernetes"}) as world:
        yield world
        for kind in ("executors", "runs", "taskactions"):
            for found in namespace.get(kind):
                namespace.kubectl("patch", kind, found["metadata"]["name"], "--type=merge", "-p",
                                  '{"metadata":{"finalizers":[]}}', check=False)


def told_on_task(pods, task):
    return [e["reason"] for e in pods.namespace.get("events.v1.events.k8s.io")
            if e.get("reportingController") == "dayfly.dev/spawner" and e["regarding"]["kind"] == "TaskAction"
            and e["regarding"]["name"] == task]


def test_a_step_that_is_deleted_before_its_pod_starts_is_aborted_and_goes_with_its_job(in_cluster):
    pods = in_cluster
    pods.executor("net", SMALL, placement=NOWHERE)
    run = pods.ask("net", "dry-run")
    step = f"{run}-plan"
    pods.wait_pod(step)
    pods.namespace.kubectl("delete", "taskaction", step, "--wait=false")
    status = pods.ended(run)
    assert (status["phase"], status["reason"]) == ("Canceled", "Aborted")
    pods.namespace.wait_gone("taskaction", step)
    pods.namespace.wait_gone("job", step)
    wait_for("the Event of the end", lambda: "Aborted" in told_on_task(pods, step))


def test_a_deleted_step_stays_until_its_pod_is_gone(in_cluster):
    pods = in_cluster
    # The end of the pod takes long enough to be seen.
    lasting = {"podTemplate": {"spec": {"containers": [{"name": "runner", "lifecycle": {"preStop": {"exec": {"command": ["sleep", "10"]}}}}]}}}
    pods.executor("net", 'resource "terraform_data" "a" {\n  provisioner "local-exec" { command = "echo begun; sleep 600" }\n}\n', lasting)
    run = pods.ask("net")
    step = f"{run}-apply"
    pods.wait_log(run, "begun")
    pods.namespace.kubectl("delete", "taskaction", step, "--wait=false")
    left = []

    def gone():
        task = pods.namespace.kubectl("get", "taskaction", step, "-o", "name", check=False)
        pod = pods.pod_of(step)  # asked later: what is still there now was there when the step was gone
        left.append((bool(pod), task.returncode == 0))
        return task.returncode != 0
    wait_for("the TaskAction to go", gone, 120)
    assert (True, True) in left and (True, False) not in left, left
    status = pods.ended(run)
    assert (status["phase"], status["reason"]) == ("Canceled", "Aborted")
    wait_for("the Event of the first phase", lambda: told_on_task(pods, step)[:1] == ["Queued"])
