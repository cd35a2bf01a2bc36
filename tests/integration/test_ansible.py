"""Workflows of the engine `ansible`: jobs of an AWX that is played from the contract, with Secrets and ConfigMaps of the real
API server."""

import base64
import json
import signal

import pytest

from lib import awx as played
from lib.dayfly import wait_for
from lib.replicas import Replicas
from lib.rights import Steps, allow
from lib.workflows import TARGET, Workflows, has_ended

CONFIG = {"playbookPath": "playbooks/restart.yml", "jobTemplateName": "restart-pod"}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "repo-creds"}, "stringData": {"password": "hush-hush"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app-config"}, "data": {"max-retries": "5"}}
DEPENDENCIES = {"secrets": [{"name": "repo-creds"}], "configMaps": [{"name": "app-config"}]}
# Text stays text where it comes from a ConfigMap or stands within a list, whatever it looks like.
TYPED = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.assert:
        that:
          - REPLICAS is integer and REPLICAS == 3
          - RATIO is float and RATIO == 0.5
          - ENABLED is sameas true
          - NAMES is sequence and NAMES == ["web", "5"]
          - KUBERNAUT_CONFIGMAP_APP_CONFIG_MAX_RETRIES is string and KUBERNAUT_CONFIGMAP_APP_CONFIG_MAX_RETRIES == "5"
          - lookup("env", "KUBERNAUT_SECRET_REPO_CREDS_PASSWORD") == "hush-hush"
          - WFE_NAME == "restart"
    - ansible.builtin.debug:
        msg: "{{ REPLICAS }} of {{ NAMES | join(' and ') }} in {{ ZONE }}"
"""
FAILING = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.fail:
        msg: there is no deployment web
"""


def document_of(name, target=TARGET, **workflow):
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": name},
            "spec": {"action": "workflow", "engine": "ansible", "targetResource": target,
                     "workflow": {"executionBundle": "https://github.com/kubernaut/playbooks.git", "engineConfig": CONFIG,
                                  "remediationRequestRef": {"name": "rr-1", "namespace": "kubernaut"}, **workflow}}}


def config_of(awx, service):
    token = {"name": "awx-token", "key": "token", "namespace": service.name}
    return {"engines": ["job", "ansible"], "ansible": {"apiUrl": awx.url + "/", "tokenSecretRef": token}}


def set_token(namespace, token):
    namespace.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "awx-token"},
                     "data": {"token": base64.b64encode(token.encode()).decode()}})


def launches_of(awx):
    return [asked for asked in awx.asked if asked.method == "POST" and asked.path.endswith("/launch/")]


class Jobs(Workflows):
    """A spawner with the engines `job` and `ansible`, and AWX."""

    def __init__(self, home, namespace, tofu, awx, service=None, **kubernetes):
        """service: the namespace of the service, if that is another one."""
        self.awx = awx
        self.template = awx.template("restart-pod")
        set_token(service or namespace, played.TOKEN + "\n")
        super().__init__(home, namespace, tofu, **kubernetes, config=config_of(awx, service or namespace))

    def ask_ansible(self, name, target=TARGET, code=0, **workflow):
        return self.home.dayfly("create", "-f", "-", input=json.dumps(document_of(name, target, **workflow)), code=code)

    def job(self):
        """The only job that AWX has, once it has one."""
        wait_for("AWX to have a job", lambda: self.awx.jobs)
        job, = self.awx.jobs.values()
        return job

    def launches(self):
        return launches_of(self.awx)


@pytest.fixture
def world(home, namespace, tofu):
    with played.AWX() as awx, Jobs(home, namespace, tofu, awx) as running:
        yield running


def test_a_workflow_becomes_a_job_of_awx_and_tells_its_end(world):
    world.ask_ansible("restart", parameters={"REPLICAS": "3", "NAME": "web"})
    job = world.job()
    variables = json.loads(job["extra_vars"]) if isinstance(job["extra_vars"], str) else job["extra_vars"]
    assert (variables["REPLICAS"], variables["NAME"]) == (3, "web")
    assert (variables["WFE_NAME"], variables["RR_NAME"], variables["RR_NAMESPACE"]) == ("restart", "rr-1", "kubernaut")
    world.awx.move(job["id"], "running", "TASK [restart]\n")
    world.wait("restart", "Executing")
    world.awx.move(job["id"], "successful", "TASK [restart]\nok: [web]\n")
    status = world.ended("restart")["status"]
    assert (status["reason"], status["exitCode"]) == ("Completed", 0), status
    assert (status["engineRef"]["kind"], status["engineRef"]["name"]) == ("AWXJob", f"awx-job-{job['id']}")
    assert status["executionStatus"]["reason"] == "AWXJobSuccessful"
    assert world.home.dayfly("logs", "taskaction/restart").stdout == "TASK [restart]\nok: [web]\n"
    assert len(world.launches()) == 1


def test_the_log_has_what_a_job_printed_and_the_message_its_end_also_if_awx_would_not_display_it(world):
    printed = "".join(f"line {number:06}\n" for number in range(100000)) + "fatal: no such host\n"
    world.ask_ansible("restart")
    job = world.job()
    world.awx.move(job["id"], "failed", printed[:700000], stored=False)
    wait_for("the job to be looked at", lambda: [asked for asked in world.awx.asked if asked.path.endswith(f"/jobs/{job['id']}/")][1:])
    job["stdout"], job["event_processing_finished"] = printed, True
    assert world.ended("restart")["status"]["message"].endswith("line 099999\nfatal: no such host\n")
    assert world.home.dayfly("logs", "taskaction/restart").stdout == printed


def test_a_line_that_awx_stores_late_is_in_its_place_in_the_log(world):
    world.ask_ansible("restart")
    number = world.job()["id"]
    world.awx.move(number, "running")
    world.awx.emit(number, 1, "one\n")
    wait_for("the first line", lambda: world.home.dayfly("logs", "taskaction/restart").stdout == "one\n")
    before = len(world.awx.asked)
    world.awx.emit(number, 3, "three\n")
    wait_for("a look at the gap", lambda: [a for a in world.awx.asked[before:] if "job_events" in a.path])
    world.awx.emit(number, 2, "two\n")
    world.awx.move(number, "successful")
    assert world.ended("restart")["status"]["reason"] == "Completed"
    assert world.home.dayfly("logs", "taskaction/restart").stdout == "one\ntwo\nthree\n"


@pytest.mark.parametrize("template, words", [
    ({"variables": False}, "it does not take WFE_NAME"), ({"variables": False, "survey": ["ZONE"]}, "or add them to its survey"),
    ({"choose": False}, "AWX would ignore the Secrets"),
])
def test_what_awx_would_ignore_is_refused_before_anything_is_made(world, template, words):
    world.awx.template("closed", **template)
    world.namespace.apply(SECRET)
    world.ask_ansible("restart", engineConfig={**CONFIG, "jobTemplateName": "closed"}, parameters={"ZONE": "eu-1"},
                      dependencies={"secrets": DEPENDENCIES["secrets"]})
    status = world.ended("restart")["status"]
    assert status["reason"] == "InvalidStep" and words in status["message"], status
    assert not [asked for asked in world.awx.asked if asked.method == "POST"]


def test_an_awx_that_does_not_answer_holds_few_threads_and_no_other_workflow(world):
    world.awx.silent.set()
    try:
        for number in range(6):
            world.ask_ansible(f"restart-{number}", target=f"default/deployment/web-{number}")
        wait_for("AWX to be asked", lambda: world.awx.waiting)
        world.ask("another", target="default/deployment/other")
        assert world.ended("another")["status"]["reason"] == "Completed"
        assert world.awx.most_waiting < 6  # four, and those that were given up
    finally:
        world.awx.silent.clear()
    wait_for("the jobs", lambda: len(world.awx.jobs) == 6, 120)


def test_secrets_and_config_maps_reach_the_job_and_no_credential_stays(world):
    world.namespace.apply(SECRET, CONFIG_MAP)
    world.ask_ansible("restart", dependencies=DEPENDENCIES)
    job = world.job()
    environment = world.awx.environment(job["id"])
    assert environment["KUBERNAUT_SECRET_REPO_CREDS_password".upper()] == "hush-hush"
    wait_for("the ids of its credentials", lambda: "kubernaut.ai/awx-ephemeral-credentials" in world.get("restart")["metadata"].get("annotations", {}))
    assert len(world.awx.credentials) == 1
    world.awx.move(job["id"], "successful")
    task = world.ended("restart")
    assert not world.awx.credentials
    assert "hush-hush" not in json.dumps(task) + world.server.log.read_text()


def test_the_rights_of_the_set_are_those_that_the_engine_uses(home, namespace, tofu, tmp_path):
    steps = Steps(namespace, tmp_path, "ansible")
    allow(namespace, steps.account, "token", apiGroups=[""], resources=["secrets"], resourceNames=["awx-token"], verbs=["get"])
    steps.namespace.apply(SECRET, CONFIG_MAP)
    with played.AWX() as awx, Jobs(home, steps.namespace, tofu, awx, namespace, kubeconfig=str(steps.kubeconfig)) as world:
        world.ask_ansible("restart", dependencies=DEPENDENCIES)
        awx.move(world.job()["id"], "successful")
        assert world.ended("restart")["status"]["reason"] == "Completed"
        world.ask_ansible("canceled")
        wait_for("the next job", lambda: world.get("canceled")["status"].get("engineRef"))
        world.home.dayfly("cancel", "taskaction/canceled")
        assert world.ended("canceled")["status"]["reason"] == "Canceled"
        world.ask("another", target="default/deployment/other")
        assert world.ended("another")["status"]["reason"] == "Completed"
    steps.check_used()


def test_a_job_that_fails_shows_the_end_of_its_output(world):
    world.ask_ansible("restart")
    job = world.job()
    world.awx.move(job["id"], "failed", "TASK [restart]\nfatal: connection refused\n")
    status = world.ended("restart")["status"]
    assert status["reason"] == "WorkflowFailed" and "connection refused" in status["message"], status


# ---- playbooks that really run ----

def test_a_playbook_gets_variables_of_their_types_and_secrets_and_its_output_is_the_log(world):
    world.awx.template("typed", playbook=TYPED)
    world.namespace.apply(SECRET, CONFIG_MAP)
    world.ask_ansible("restart", engineConfig={**CONFIG, "jobTemplateName": "typed"}, dependencies=DEPENDENCIES,
                      parameters={"REPLICAS": "3", "RATIO": "0.5", "ENABLED": "true", "NAMES": '["web", "5"]', "ZONE": "eu-1"})
    status = world.ended("restart")["status"]
    log = world.home.dayfly("logs", "taskaction/restart").stdout
    assert (status["reason"], status["exitCode"]) == ("Completed", 0), log
    assert "3 of web and 5 in eu-1" in log and "failed=0" in log
    assert not world.awx.credentials


def test_a_playbook_that_fails_fails_its_workflow_with_the_end_of_its_output(world):
    world.awx.template("failing", playbook=FAILING)
    world.ask_ansible("restart", engineConfig={**CONFIG, "jobTemplateName": "failing"})
    status = world.ended("restart")["status"]
    assert (status["reason"], status["executionStatus"]["reason"]) == ("WorkflowFailed", "AWXJobFailed"), status
    assert "there is no deployment web" in status["message"] and "failed=1" in status["message"]
    assert "there is no deployment web" in world.home.dayfly("logs", "taskaction/restart").stdout


def test_a_canceled_workflow_cancels_its_job(world):
    world.ask_ansible("restart")
    job = world.job()
    world.awx.move(job["id"], "running")
    world.wait("restart", "Executing")
    world.home.dayfly("cancel", "taskaction/restart")
    wait_for("AWX to be asked", lambda: any(a.path.endswith("/cancel/") for a in world.awx.asked))
    world.awx.move(job["id"], "canceled")
    assert world.ended("restart")["status"]["reason"] == "Canceled"


def test_a_launch_whose_answer_was_lost_is_found_and_not_repeated(world):
    world.awx.break_next("POST", f"job_templates/{world.template['id']}/launch/", "lost")
    world.ask_ansible("restart")
    job = world.job()
    world.awx.move(job["id"], "successful")
    assert world.ended("restart", seconds=120)["status"]["reason"] == "Completed"
    assert len(world.launches()) == 1


def test_a_workflow_that_is_canceled_before_its_lost_launch_is_found_leaves_no_job_and_no_credential(world):
    world.namespace.apply(SECRET)
    world.awx.break_next("POST", f"job_templates/{world.template['id']}/launch/", "lost")
    world.ask_ansible("restart", dependencies={"secrets": DEPENDENCIES["secrets"]})
    job = world.job()
    world.home.dayfly("cancel", "taskaction/restart")
    assert world.ended("restart")["status"]["reason"] == "Canceled"
    wait_for("the job to be canceled", lambda: job["status"] == "canceled")
    wait_for("the credential to go", lambda: not world.awx.credentials)
    assert len(world.launches()) == 1


def test_a_lost_launch_that_awx_does_after_the_end_of_its_workflow_is_canceled_too(world):
    """As behind a proxy that does not wait: the workflow is canceled before AWX has the job."""
    world.namespace.apply(SECRET)
    world.awx.break_next("POST", f"job_templates/{world.template['id']}/launch/", 504)
    world.ask_ansible("restart", dependencies={"secrets": DEPENDENCIES["secrets"]})
    wait_for("the launch", world.launches)
    world.home.dayfly("cancel", "taskaction/restart")
    assert world.ended("restart")["status"]["reason"] == "Canceled"
    launch, = world.launches()
    with world.awx.lock:
        world.awx.launch(world.template["id"], json.loads(launch.body))
    wait_for("the job to be canceled", lambda: world.job()["status"] == "canceled")
    wait_for("the credential to go", lambda: not world.awx.credentials)
    assert len(world.launches()) == 1


def test_a_spawner_that_comes_back_finds_its_job(world):
    world.ask_ansible("restart")
    job = world.job()
    world.server.kill()
    world.awx.move(job["id"], "successful")
    world.start()
    assert world.ended("restart")["status"]["reason"] == "Completed"
    assert len(world.launches()) == 1


def test_a_spawner_that_was_killed_while_awx_worked_on_its_launch_launches_no_other(world):
    world.awx.break_next("POST", f"job_templates/{world.template['id']}/launch/", 8.0)
    world.ask_ansible("restart")
    wait_for("the launch", world.launches)
    world.server.kill()
    world.start()
    world.awx.move(world.job()["id"], "successful")
    assert world.ended("restart", seconds=120)["status"]["reason"] == "Completed"
    assert len(world.launches()) == 1


def test_a_leader_that_is_stopped_before_its_launch_launches_nothing_when_it_goes_on(home, namespace, tofu):
    with played.AWX() as awx:
        template = awx.template("restart-pod")
        set_token(namespace, played.TOKEN)
        world = Replicas(home, namespace, tofu, config={**config_of(awx, namespace), "timeouts": {"pending": "10m"}})
        try:
            world.start()
            awx.break_next("GET", f"job_templates/{template['id']}/jobs/", 2.0)
            assert world.ask("POST", "/v1/taskactions", document_of("restart"))[0] == 201
            wait_for("its look for a job", lambda: any("/jobs/" in asked.path for asked in awx.asked))
            old = world.leader()
            world.spawners[old].process.send_signal(signal.SIGSTOP)
            wait_for("another leader", lambda: world.leader() != old)
            wait_for("its launch", lambda: awx.jobs, 300)
            world.spawners[old].process.send_signal(signal.SIGCONT)
            assert world.spawners[old].process.wait(timeout=60) == 1
            job, = awx.jobs.values()
            awx.move(job["id"], "successful")
            wait_for("its end", lambda: has_ended(world.ask("GET", "/v1/taskactions/restart")[1]))
            assert len(launches_of(awx)) == 1
        finally:
            world.__exit__()


def test_an_awx_that_is_away_is_waited_for_and_named(world):
    world.awx.away = True
    world.ask_ansible("restart")
    wait_for("the workflow to say what it waits for", lambda: "AWX" in json.dumps(world.get("restart")["status"]))
    ansible, = [e for e in json.loads(world.home.dayfly("get", "engines", "-o", "json").stdout)["items"] if e["name"] == "ansible"]
    assert not ansible["available"] and "AWX" in ansible["message"]
    world.awx.away = False
    world.awx.move(world.job()["id"], "successful")
    assert world.ended("restart")["status"]["reason"] == "Completed"


def test_a_token_that_was_replaced_is_read_again(world):
    world.awx.token = "another-token"
    set_token(world.namespace, "another-token")
    world.ask_ansible("restart")
    world.awx.move(world.job()["id"], "successful")
    assert world.ended("restart")["status"]["reason"] == "Completed"


def test_a_template_that_is_not_there_names_the_nearest(world):
    world.ask_ansible("restart", engineConfig={**CONFIG, "jobTemplateName": "restart-pods"})
    status = world.ended("restart")["status"]
    assert status["reason"] == "InvalidStep" and '"restart-pod"' in status["message"], status
    assert not world.launches()


@pytest.mark.parametrize("workflow, words", [
    ({"engineConfig": {"playbookPath": "a"}}, "engineConfig.jobTemplateName: is required"),
    ({"parameters": {"a-b": "x"}}, "is not the name of a playbook's variable"),
    ({"engineConfig": {**CONFIG, "limit": "x"}}, "engineConfig.limit: is not a field"),
])
def test_what_no_playbook_takes_is_refused_at_once(world, workflow, words):
    assert words in world.ask_ansible("restart", code=3, **workflow).stderr
    assert not world.awx.asked
