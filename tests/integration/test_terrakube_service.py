"""The service as the executor of a Terrakube: each step that its API posts to terrakube.listen is a TaskAction with a runner of
its own, and the API hears of every end."""

import contextlib
import http.server
import json
import os
import signal
import socket
import threading
import urllib.error
import urllib.request

import pytest

from lib import dayfly
from lib.dayfly import Server, wait_for
from lib.executor import Executor
from lib.redis import Redis
from lib.terrakube import BELL, Terrakube

VARIABLES = {"owner": "oracle", "shout": "test-only-shout"}
ENDED = ("completed", "failed")


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def api(redis):
    redis.command("FLUSHALL")
    with Terrakube("2.33", redis=redis) as running:
        yield running


class Door:
    """The service and where Terrakube's API finds it."""

    def __init__(self, home, api, redis):
        self.home, self.api, self.executor = home, api, Executor(home, api, redis)
        self.port = dayfly.free_port()
        self.url = f"http://127.0.0.1:{self.port}/api/v1/terraform-rs"
        home.env.update({**api.env(), "TerrakubeEnableColorOutput": "false", "DAYFLY_TERRAKUBE_LISTEN": f"127.0.0.1:{self.port}"})

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None, ""

    def run(self, job):
        """Posts the next step and waits for its end; the step."""
        step = job.next_step()
        assert self.api.post(job, self.url) == 202
        wait_for("the end of the step", lambda: step.status in ENDED and job.status not in ("queue", "running") and job.settled.is_set())
        return step

    def task(self, job, step):
        return self.home.json("get", "taskactions", f"tk-{job.id}-{step.id}")

    def workspace(self, **more):
        return self.api.workspace("net", self.executor.source(), **{"variables": VARIABLES, **more})


@pytest.fixture
def door(home, api, redis):
    opened = Door(home, api, redis)
    with Server(home):
        wait_for("the door to be open", lambda: opened.get("/actuator/health/liveness")[0] == 200)
        yield opened
    assert api.faults == []


def test_a_plan_and_its_apply_are_steps_with_runners_of_their_own(door):
    job = door.api.job(door.workspace(), "terraformPlan", "terraformApply")
    plan = door.run(job)
    assert (job.status, plan.status) == ("pending", "completed"), door.home.dayfly("get", "taskactions").stdout
    apply = door.run(job)
    assert (job.status, apply.status) == ("completed", "completed")
    assert "Apply complete! Resources: 3 added" in door.executor.output(apply)
    for step, kind in ((plan, "terraformPlan"), (apply, "terraformApply")):
        task = wait_for("the step to have ended here, too", lambda s=step: (t := door.task(job, s))["status"].get("reason") and t)
        assert task["spec"]["terrakube"]["type"] == kind and task["spec"]["terrakube"]["workspaceName"] == "net"
        assert task["status"]["claimedBy"]["claimId"]
    assert f"/net, job {job.id}" in door.home.dayfly("get", "taskactions").stdout
    said = door.home.dayfly("why", f"taskaction/tk-{job.id}-{apply.id}").stdout
    assert "terraformApply of " in said and f"/net, job {job.id}: Applied\nThe changes were applied." in said, said
    assert "test-only-shout" not in json.dumps(door.home.json("get", "taskactions"))
    wait_for("the payloads to be gone", lambda: not list((door.home.directory / "data/blobs").rglob("payloads/*")))


def test_a_step_that_is_sent_again_runs_once(door):
    job = door.api.job(door.workspace(), "terraformPlan")
    step = job.next_step()
    assert door.api.post(job, door.url) == door.api.post(job, door.url) == 202
    wait_for("the end of the step", lambda: step.status in ENDED)
    assert len(door.home.json("get", "taskactions")["items"]) == 1
    assert len([r for r in door.api.asked("PATCH", f"/step/{step.id}") if "running" in json.dumps(r["body"])]) == 1


def test_who_has_no_token_of_the_api_is_refused_and_nothing_is_kept(door):
    log = door.home.directory / "serve.log"
    assert f"taking steps of Terrakube at http://127.0.0.1:{door.port}" in log.read_text()
    job = door.api.job(door.workspace(), "terraformPlan")
    secret, door.api.secret = door.api.secret, "b3RoZXItc2VjcmV0LW9mLTMyLWJ5dGVzLW9yLW1vcmU="
    assert door.api.post(job, door.url) == 401
    door.api.secret = secret
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(door.url, b"{}", method="POST"), timeout=10)
    assert refused.value.code == 401
    assert door.home.json("get", "taskactions")["items"] == []
    assert log.read_text().count("a step of Terrakube is refused: ") == 1


def test_a_hostile_job_reaches_nothing_but_its_own_step(door, tmp_path):
    """Its names become parts of URLs, keys and paths, its source and branch words of git."""
    canary, state, net = tmp_path / "canary", door.home.directory / "data", door.workspace()

    def post(**members):
        job = door.api.job(net, "terraformPlan")
        step = job.next_step()
        body = json.dumps({**door.api.payload(job, step), **members}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {door.api.token_of_api()}"}
        try:
            with urllib.request.urlopen(urllib.request.Request(door.url, body, headers, method="POST"), timeout=60) as answer:
                return answer.status, job, step
        except urllib.error.HTTPError as error:
            return error.code, job, step
    known = str(door.api.organization)
    asked = len(door.api.requests)
    for members in ({"organizationId": "../../x"}, {"organizationId": f"{known}/../.."}, {"organizationId": f"{known}?x="}, {"jobId": "1/../2"},
                    {"jobId": "-1"}, {"jobId": "01"}, {"jobId": "1e3"}, {"jobId": 1e300}, {"stepId": "x"}, {"stepId": f"../{known}"}, {"stepId": f"{known}%2f.."}):
        assert post(**members)[0] == 400, members
    assert door.home.json("get", "taskactions")["items"] == [] and len(door.api.requests) == asked
    for members in ({"workspaceId": "a/../b"}, {"source": f"ext::sh -c 'touch {canary}'"}, {"source": f"file://{state}"}, {"source": f"--upload-pack=touch {canary}"},
                    {"branch": f"--upload-pack=touch {canary}"}, {"branch": "../../tags/x"}, {"commitId": f"--output={canary}"}, "a folder that leads out"):
        if isinstance(members, str):  # the API has it
            net.folder, members = "/../../..", {}
        status, job, step = wait_for("room", lambda m=members: (answer := post(**m))[0] != 503 and answer)
        assert status == 202, members
        wait_for(f"the end of {members}", lambda s=step, j=job: s.status in ENDED and j.status not in ("queue", "running"))
        assert step.status == "failed" and not canary.exists(), (members, door.executor.output(step))
        assert (state / "key").read_text().strip() not in door.executor.output(step)


def test_there_is_room_for_one_step_on_a_machine_and_a_waiting_job_is_woken_afterwards(door):
    """The bell wakes the oldest pending job alone, which mostly is the one that made the room and has nothing left to do."""
    gate = door.home.directory / "gate"
    slow = [{"runtime": "BASH", "script": f"while [ ! -e {gate} ]; do sleep 0.1; done", "priority": 1, "before": True}]
    door.api.settle = 1.5  # longer than the step needs to be removed here
    first = door.api.job(door.workspace(), ("terraformPlan", {"commandList": slow}), "terraformApply")
    second = door.api.job(door.api.workspace("other", first.workspace.source, variables=VARIABLES), "terraformPlan")
    first.steps[1].attributes["status"] = "completed"  # the job has nothing left to do
    assert door.api.post(first, door.url) == 202
    assert door.api.post(second, door.url) == 503
    assert second.status == "pending"
    with door.api.queue(door.url):
        gate.touch()
        wait_for("the second to be sent and to end", lambda: second.status == "completed")
    assert first.status == "completed"


def test_a_service_that_starts_wakes_what_waits(home, api, redis):
    """What waits may have been refused by the service before it, or found nobody."""
    door, bell = Door(home, api, redis), redis.subscribe(BELL)
    with Server(home):
        assert wait_for("the bell", lambda: [text] if (text := bell.ring()) is not None else None) == [""]
    assert door.port


def test_the_commands_of_a_refused_approval_run(door):
    job = door.api.job(door.workspace(), ("approval", {"commandList": [{"runtime": "BASH", "script": "echo told them", "priority": 1}]}))
    step = job.steps[0]
    door.api.reject(job, step)
    assert door.api.post(job, door.url) == 202 and step.status == "failed"
    task = wait_for("the end of the step", lambda: (t := door.task(job, step))["status"].get("reason") and t)
    assert (task["status"]["reason"], task["status"]["exitCode"], job.status, step.status) == ("Completed", 0, "rejected", "failed")
    assert "told them\n" in door.executor.output(step)


@pytest.mark.parametrize("kind", ["customScripts", "approval"])
def test_scripts_and_approvals_end_as_what_they_were(door, kind):
    job = door.api.job(door.workspace(), (kind, {"commandList": [{"runtime": "BASH", "script": "echo hello", "priority": 1}]}), "terraformPlan")
    if kind == "approval":
        job.set(status="approved")
    step = door.run(job)
    assert (job.status, step.status) == ("pending", "completed")
    task = wait_for("the step to have ended here, too", lambda: (t := door.task(job, step))["status"].get("reason") and t)
    assert (task["status"]["reason"], task["status"]["exitCode"]) == ("Completed", 0)
    assert " failed: " not in (door.home.directory / "serve.log").read_text()


def test_one_job_has_two_steps_at_most_that_have_not_ended(door):
    """The second is the next one, sent while the pod of the last is still there; a third would be steps that nobody counts."""
    gate = door.home.directory / "gate"
    slow = [{"runtime": "BASH", "script": f"while [ ! -e {gate} ]; do sleep 0.1; done", "priority": 1, "before": True}]
    job = door.api.job(door.workspace(), *[("terraformPlan", {"commandList": slow}) for _ in range(6)])
    answers = []

    def post(step):
        body = json.dumps(door.api.payload(job, step)).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {door.api.token_of_api()}"}
        try:
            with urllib.request.urlopen(urllib.request.Request(door.url, body, headers, method="POST"), timeout=60) as answer:
                answers.append(answer.status)
        except urllib.error.HTTPError as error:
            answers.append(error.code)

    posts = [threading.Thread(target=post, args=(step,)) for step in job.steps]
    for thread in posts:
        thread.start()
    for thread in posts:
        thread.join()
    assert sorted(answers) == [202] * 2 + [503] * 4
    assert len(door.home.json("get", "taskactions")["items"]) == 2
    assert door.api.post(door.api.job(job.workspace, "terraformPlan"), door.url) == 503
    door.api.cancel(job)
    gate.touch()


def test_a_runner_that_is_killed_is_told_and_none_follows_it(door):
    gate = door.home.directory / "gate"
    slow = [{"runtime": "BASH", "script": f"touch {gate}; sleep 600", "priority": 1, "before": True}]
    job = door.api.job(door.workspace(), ("terraformApply", {"commandList": slow}))
    step = job.next_step()
    assert door.api.post(job, door.url) == 202
    wait_for("the script", gate.exists)
    task = door.task(job, step)
    os.kill(task["status"]["claimedBy"]["pid"], signal.SIGKILL)
    wait_for("the end of the step", lambda: job.status == "failed" and step.status == "failed")
    assert "dayfly: RunnerLost: " in door.executor.output(step)
    assert "terraform.tfstate" not in str(list(door.executor.kept.rglob("*"))), "nothing was applied"


MID = """
resource "terraform_data" "early" { input = "made" }
resource "terraform_data" "late" {
  depends_on = [terraform_data.early]
  provisioner "local-exec" { command = "touch $BEGAN; sleep 600" }
}
"""


@pytest.mark.parametrize("redis_too", [True, False])
def test_a_runner_killed_in_mid_apply_keeps_its_lines_and_names_what_may_exist(door, redis, redis_too):
    began = door.home.directory / "began"
    net = door.api.workspace("mid", door.executor.source("mid", MID), environment={"BEGAN": str(began)})
    job = door.api.job(net, "terraformApply")
    step = job.next_step()
    assert door.api.post(job, door.url) == 202
    wait_for("the apply", began.exists)
    if not redis_too:  # it has forgotten, as after a restart
        wait_for("the lines", lambda: redis.lines(job.id))
        redis.command("FLUSHALL")
    os.kill(door.task(job, step)["status"]["claimedBy"]["pid"], signal.SIGKILL)
    wait_for("the end of the step", lambda: job.status == "failed" and step.status == "failed")
    said = door.executor.output(step)
    parts = ["Initializing Terrakube Job", "terraform_data.early: Creation complete", "terraform_data.late: Creating...", "dayfly: RunnerLost: ",
             "dayfly: these objects were begun", "  terraform_data.early: was made, id ", "  terraform_data.late: was begun, and may exist",
             "it is not run again: look at the state, and plan again."]
    assert [said.index(part) for part in parts] == sorted(said.index(part) for part in parts), said
    task = wait_for("the end here", lambda: (t := door.task(job, step))["status"].get("reason") and t)
    assert [i["address"] for i in task["status"]["unrecorded"]["items"]] == ["terraform_data.early", "terraform_data.late"]
    why = door.home.dayfly("why", f"taskaction/tk-{job.id}-{step.id}").stdout
    assert "terraform_data.early: was made; to take it over:" in why and "terraform_data.late: was begun, may exist" in why, why
    assert "run again" not in (why + said + task["status"]["message"]).replace("not run again", ""), why


def test_a_state_that_a_lost_runner_stored_comes_to_the_history(door):
    job = door.api.job(door.workspace(), "terraformApply")
    step = job.next_step()
    with door.api.trouble(503, "POST .*/history") as trouble:
        assert door.api.post(job, door.url) == 202
        wait_for("the state to be stored", lambda: trouble["met"])
        os.kill(door.task(job, step)["status"]["claimedBy"]["pid"], signal.SIGKILL)
    wait_for("the end of the step", lambda: job.status == "failed" and step.status == "failed")
    stored, = door.executor.states(job.workspace)
    assert [h["attributes"]["output"].rsplit("/", 1)[1] for h in door.api.history] == [stored.name]


def test_an_end_that_terrakube_does_not_take_is_a_warning(door):
    job = door.api.job(door.workspace(), "terraformPlan")
    step = job.next_step()
    with door.api.trouble(400, f"PATCH .*/step/{step.id}"):
        assert door.api.post(job, door.url) == 202
        wait_for("the end here", lambda: door.task(job, step)["status"].get("reason"))
    log = [json.loads(line) for line in (door.home.directory / "serve.log").read_text().splitlines() if line.startswith("{")]
    told = [entry["msg"] for entry in log if entry["level"] == "warn"]
    assert any("Terrakube was not told of its end: " in text and "HTTP 400" in text for text in told), log


def test_a_cancelled_job_ends_its_step(door):
    gate = door.home.directory / "gate"
    slow = [{"runtime": "BASH", "script": f"touch {gate}; sleep 600", "priority": 1, "before": True}]
    job = door.api.job(door.workspace(), ("terraformPlan", {"commandList": slow}))
    step = job.next_step()
    assert door.api.post(job, door.url) == 202
    wait_for("the script", gate.exists)
    door.api.cancel(job)
    wait_for("the step to end", lambda: step.status in ENDED)
    assert job.status == "cancelled"


@contextlib.contextmanager
def cluster_that_is_away():
    """An API server that answers nothing, and the list of who asked what: a step that is let through asks for its Job here."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            asked.append((self.command, self.path.partition("?")[0]))
            self.send_error(503)

        def log_message(self, *args):
            pass

    Handler.do_GET = Handler.do_POST = Handler.answer
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


def kubeconfig(directory, url):
    file = directory / "kubeconfig"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {"token": "t"}}],
                                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "terrakube"}}],
                                "clusters": [{"name": "k", "cluster": {"server": url}}]}))
    return str(file)


REFUSED = [
    ({"EPHEMERAL_JOB_ENV_VARS": "LOCALDOMAIN=evil.example"}, "LOCALDOMAIN is refused: it changes which hosts the runner speaks to"),
    ({"EPHEMERAL_JOB_ENV_VARS": "LD_PRELOAD=/cache/x.so"}, "LD_PRELOAD is refused: it changes which code the runner loads"),
    ({"EPHEMERAL_JOB_ENV_VARS": "PATH=/cache/bin"}, "PATH is refused: it changes which programs"),
    ({"EPHEMERAL_JOB_ENV_VARS": "TerrakubeRedisHostname=evil"}, "TerrakubeRedisHostname is refused: it is a setting of Terrakube's executor"),
    ({"TF_PLUGIN_CACHE_DIR": "/usr/local/bin", "PVC_CLAIM_NAME": "cache"}, 'TF_PLUGIN_CACHE_DIR: "/usr/local/bin" is refused'),
    ({"EPHEMERAL_CONFIG_SERVICE_ACCOUNT": "terrakube-api"}, "placement.allow.write.terrakube.serviceAccounts of the service's configuration\n"),
    ({"EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT": "runAsUser=0"}, "placement.allow.write.terrakube.fields"),
    ({"EPHEMERAL_CONFIG_SECURITY_CONTEXT": "allowPrivilegeEscalation=true"}, "placement.allow.write.terrakube.fields"),
    ({"EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP": "any"}, "placement.allow.write.terrakube.configMaps"),
]
AIMED = {"EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS": "pool=batch", "EPHEMERAL_CONFIG_TOLERATIONS": "dedicated=batch:Equal:NoSchedule",
         "EPHEMERAL_CONFIG_LABELS": "team=red", "EPHEMERAL_CPU_REQUEST": "250m", "EPHEMERAL_MEMORY_LIMIT": "1Gi",
         "EPHEMERAL_JOB_ENV_VARS": "TF_LOG=debug", "EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP": "terrakube-executor-config"}


def test_a_workspace_aims_its_pods_and_has_no_power_over_them(home, api, redis):
    """The step of a workspace that asks for more is failed with the reason in its output, and nobody asks the cluster for a Job."""
    door = Door(home, api, redis)
    with cluster_that_is_away() as (url, asked):
        settings = {"kubeconfig": kubeconfig(home.directory, url), "image": "localhost/runner:1"}
        config = {"engine": "job", "kubernetes": settings, "terrakube": {"steps": 20}}
        with Server(home, config=json.dumps(config)):
            wait_for("the door to be open", lambda: door.get("/actuator/health/liveness")[0] == 200)
            net = door.workspace()
            for environment, why in REFUSED:
                net.environment = environment
                job = door.api.job(net, "terraformPlan")
                step = door.run(job)
                assert (job.status, step.status) == ("failed", "failed")
                assert why in door.executor.output(step), (environment, door.executor.output(step))
            assert not [path for method, path in asked if method == "POST" and path.endswith("/jobs")]
            net.environment = AIMED
            job = door.api.job(net, "terraformPlan")
            assert door.api.post(job, door.url) == 202
            wait_for("the Job to be asked for", lambda: [1 for method, path in asked if method == "POST" and path.endswith("/jobs")])
            assert job.status == "queue"


def test_its_health_is_told_as_spring_tells_it(door):
    assert door.get("/actuator/health/liveness") == (200, '{"status":"UP"}')
    assert door.get("/actuator/health/readiness") == (200, '{"status":"UP"}')
    assert door.get("/v1/executors")[0] == 404


def test_a_door_that_is_taken_ends_the_service_and_says_so(home, api, redis):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        Door(home, api, redis)
        home.env["DAYFLY_TERRAKUBE_LISTEN"] = address
        result = home.run(dayfly.DAYFLY, "serve", "--listen", "127.0.0.1:0")
    assert result.returncode != 0 and address in result.stderr, result.stderr


def test_a_service_without_the_settings_says_which_is_missing(home, api, redis):
    door = Door(home, api, redis)
    del home.env["TerrakubeRegistryDomain"]
    result = home.run(dayfly.DAYFLY, "serve", "--listen", "127.0.0.1:0")
    assert result.returncode != 0 and "TerrakubeRegistryDomain is not set" in result.stderr and door.port
    assert "terrakube-executor-config" in result.stderr and "EPHEMERAL_CONFIG" not in result.stderr


def test_doctor_says_whether_terrakube_answers(home, api, redis):
    Door(home, api, redis)
    found = [f["level"] for f in home.json("doctor", "--only", "terrakube")["findings"] if f["check"] == "terrakube"]
    assert found == ["ok"] * 4, found
    home.env["InternalSecret"] = "b3RoZXItc2VjcmV0LW9mLTMyLWJ5dGVzLW9yLW1vcmU="
    told = [f["message"] for f in home.json("doctor", "--only", "terrakube", code=1)["findings"] if f["level"] == "fail"]
    assert len(told) == 1 and "refuses a token signed with InternalSecret" in told[0]
    home.env["InternalSecret"] = "no base64!"
    told = [f["message"] for f in home.json("doctor", "--only", "terrakube", code=1)["findings"] if f["level"] == "fail"]
    assert len(told) == 1 and told[0].startswith("InternalSecret: ")
