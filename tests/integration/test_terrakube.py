"""The runner as Terrakube's ephemeral executor: real tofu, git and Redis, and an API that plays Terrakube's."""

import contextlib
import json
import pathlib
import re
import uuid

import pytest

from lib import buckets, dayfly, git_servers, web
from lib.executor import FIXTURES, Executor
from lib.redis import Redis
from lib.terrakube import Terrakube

VARIABLES = {"owner": "oracle", "shout": "test-only-shout"}
PLAIN = {"TerrakubeEnableColorOutput": "false"}


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis"), password=f"redis-{uuid.uuid4()}") as running:  # a secret of these tests alone
        yield running


@pytest.fixture
def api(redis):
    redis.command("FLUSHALL")
    with Terrakube("2.33", redis=redis) as running:
        yield running


@pytest.fixture
def executor(home, api, redis):
    made = Executor(home, api, redis)
    yield made
    assert api.faults == []


def module(name):
    return (FIXTURES / f"{name}.tf").read_text()


def workspace(executor, **more):
    return executor.api.workspace("net", more.pop("source", None) or executor.source(), **{"variables": VARIABLES, **more})


def test_a_plan_is_applied_and_destroyed(executor):
    api = executor.api
    net = workspace(executor)
    job = api.job(net, "terraformPlan", "terraformApply")
    net.tool_version = "*"
    plan = executor.run(job, **PLAIN)
    assert (job.status, plan.status, job.attributes["commitId"]) == ("pending", "completed", executor.commit), executor.said()
    assert re.search(r"\nRunning Tofu [0-9]+\.[0-9]+\.[0-9]+\n", executor.output(plan)), "the version that runs, not the range"
    assert "Plan: 3 to add, 0 to change, 0 to destroy." in executor.output(plan)
    assert job.attributes["terraformPlan"] == str(executor.plan(job, plan)) and executor.plan(job, plan).read_bytes()[:2] == b"PK"

    apply = executor.run(job, **PLAIN)
    assert (job.status, apply.status) == ("completed", "completed"), executor.said()
    assert "Apply complete! Resources: 3 added, 0 changed, 0 destroyed." in executor.output(apply)
    shown, raw = executor.states(net), executor.states(net, raw=True)
    assert len(shown) == len(raw) == 1 and raw[0].name == shown[0].stem + ".raw.json"
    assert json.loads(shown[0].read_text())["values"]["outputs"]["greeting"]["value"] == "hello oracle"
    assert json.loads(raw[0].read_text()) == json.loads(executor.state(net).read_text())
    assert [h["attributes"]["output"].rsplit("/", 1)[1] for h in api.history] == [shown[0].name]

    destroy = executor.run(api.job(net, "terraformDestroy"), **PLAIN)
    assert "Destroy complete! Resources: 3 destroyed." in executor.output(destroy)
    assert len(executor.states(net)) == 2 and json.loads(executor.state(net).read_text())["resources"] == []

    again = api.job(net, "terraformPlan", "terraformApply")
    with_nothing = api.job(api.workspace("none", executor.source("none", "")), "terraformPlan", "terraformApply")
    executor.run(again, **PLAIN)
    nothing = executor.run(with_nothing, **PLAIN)
    assert again.status == "pending"
    assert (with_nothing.status, with_nothing.attributes["planChanges"], with_nothing.steps[1].status) == ("completed", False, "notExecuted")
    assert "No changes. Your infrastructure matches the configuration." in executor.output(nothing)


def test_a_plan_that_fails_is_told_and_the_pod_ends_well(executor):
    net = executor.api.workspace("net", executor.source(text=module("module-plan-fail")), variables=VARIABLES)
    job = executor.api.job(net, "terraformPlan", "terraformApply")
    step = executor.run(job, **PLAIN)
    assert (job.status, step.status, job.attributes["terraformPlan"], job.attributes["planChanges"]) == ("failed", "failed", "", True)
    assert "Resource precondition failed" in executor.output(step)


def test_a_failed_apply_stores_its_state_before_it_is_told(executor):
    net = executor.api.workspace("net", executor.source(text=module("module-apply-fail")), variables=VARIABLES)
    job = executor.api.job(net, "terraformPlan", "terraformApply")
    executor.run(job, **PLAIN)
    apply = executor.run(job, **PLAIN)
    assert (job.status, apply.status) == ("failed", "failed")
    assert "going to fail" in executor.output(apply)
    assert len(executor.api.history) == len(executor.states(net)) == 1
    told = [r["path"].rsplit("/", 1)[1] for r in executor.api.requests if r["method"] in ("POST", "PATCH") and "context" not in r["path"] and not r["busy"]]
    assert told[-3:] == ["history", apply.id, job.id]


# ---- what the step is given ----

def test_a_source_that_cannot_be_fetched_fails_the_step_before_it_runs(executor):
    net = workspace(executor, branch="nowhere")
    job = executor.api.job(net, "terraformPlan")
    step = executor.run(job)
    assert (job.status, step.status) == ("failed", "failed")
    assert "Failed to prepare work dir\ndayfly: SourceFailed: " in executor.output(step) and "nowhere" in executor.output(step)
    assert "running" not in json.dumps([r.get("body") for r in executor.api.asked("PATCH", "")])


def test_a_source_on_a_server_without_tls(executor):
    executor.source()
    with git_servers.HttpsServer(executor.home.directory, user="oauth2", password="token-of-gitlab") as site:
        url = site.url.replace("127.0.0.1", "0.0.0.0") + "/module/.git"  # not a name of loopback
        job = executor.api.job(workspace(executor, source=url, vcs="GITLAB", token="token-of-gitlab"), "terraformPlan", "terraformApply")
        assert executor.run(job, DAYFLY_TERRAKUBE_HTTP_CREDENTIALS="true", **PLAIN).status == "completed", executor.said()
    assert "token-of-gitlab" not in executor.said()


VALUES = """
variable "text" { default = "module" }
variable "list" { type = list(string) }
output "text" { value = var.text }
output "list" { value = var.list }
"""


def test_variables_win_over_the_files_of_the_module(executor):
    source = executor.source(text=VALUES, **{"x.auto.tfvars": 'text = "file"\nlist = ["file"]\n'})
    net = executor.api.workspace("net", source, variables={"text": '["a"]', "list": '["a", # one\n "b"]'})
    executor.run(executor.api.job(net, "terraformApply"), **PLAIN)
    outputs = json.loads(executor.state(net).read_text())["outputs"]
    assert {name: output["value"] for name, output in outputs.items()} == {"text": '["a"]', "list": ["a", "b"]}


def test_a_variable_that_the_module_does_not_declare_is_an_error(executor):
    job = executor.api.job(workspace(executor, variables={**VARIABLES, "typo": "x"}), "terraformPlan")
    step = executor.run(job, **PLAIN)
    assert (job.status, step.status) == ("failed", "failed")
    assert "Value for undeclared variable" in executor.output(step)


def bash(script, priority=100, **when):
    return {"runtime": "BASH", "script": script, "priority": priority, **when}


def test_scripts_run_around_the_plan_with_what_it_has(executor):
    commands = [bash("echo early; echo FROM=script >> $terrakubeEnv", beforeInit=True),
                bash("echo before $owner $COLOUR", before=True), bash("ls terraformLibrary.tfPlan; echo after $FROM", after=True)]
    job = executor.api.job(workspace(executor, environment={"COLOUR": "blue"}), ("terraformPlan", {"commandList": commands}))
    step = executor.run(job, **PLAIN)
    output = executor.output(step)
    places = [output.index(text) for text in ("early\n", "Initializing Terrakube Job", "before oracle blue\n", "Running Tofu PLAN", "Plan: 3",
                                              "terraformLibrary.tfPlan\nafter script\n")]
    assert places == sorted(places) and step.status == "completed"


def test_custom_scripts_and_their_failure(executor):
    net = workspace(executor)
    failing = [bash("echo first"), bash("echo second; exit 7", 200), bash("echo never", 300)]
    step = executor.run(executor.api.job(net, ("customScripts", {"commandList": failing})), **PLAIN)
    assert step.status == "failed" and "first\nsecond\n" in executor.output(step)
    assert "\nScript Exit Code ==>7\n" in executor.output(step) and "\x1b[" not in executor.output(step) and "never" not in executor.output(step)
    job = executor.api.job(net, ("customScripts", {"commandList": failing[:1]}))
    assert executor.run(job, **PLAIN).status == "completed" and job.status == "completed"


def test_scripts_after_a_failure(executor):
    api = executor.api
    net = api.workspace("net", executor.source(text=module("module-plan-fail")), variables=VARIABLES)
    step = executor.run(api.job(net, ("terraformPlan", {"onFailureList": [bash("echo cleaned up")]})), **PLAIN)
    assert step.status == "failed" and "cleaned up\n" in executor.output(step)


@pytest.mark.parametrize("when", ["before the dispatch is committed", "after it"])
def test_the_commands_of_a_refused_approval_run_once(executor, when, tmp_path):
    """The API marks their step `failed` in the transaction that dispatches them."""
    api, told = executor.api, tmp_path / "told"
    job = api.job(workspace(executor), ("approval", {"commandList": [bash(f"echo told them | tee -a {told}")]}), "terraformApply")
    api.reject(job, job.steps[0])
    api.pause = 3 if when.startswith("before") else 0
    dispatch = api.dispatch(job)
    if when == "after it":
        assert job.committed.wait(30)
    executor.finish(executor.start(dispatch, **PLAIN))
    assert (job.status, [s.status for s in job.steps]) == ("rejected", ["failed", "failed"])
    assert "told them\n" in executor.output(dispatch.step) and told.read_text() == "told them\n"
    executor.finish(executor.start(dispatch, **PLAIN))
    assert told.read_text() == "told them\n" and executor.output(dispatch.step).endswith("told them\n"), executor.said()


def test_a_plan_whose_error_is_ignored_runs_its_scripts(executor):
    net = executor.api.workspace("net", executor.source(text=module("module-plan-fail")), variables=VARIABLES)
    job = executor.api.job(net, ("terraformPlan", {"ignoreError": True, "commandList": [bash("echo after", after=True)]}), "terraformApply")
    step = executor.run(job, **PLAIN)
    assert (job.status, step.status, job.attributes["planChanges"]) == ("failed", "completed", False) and "after\n" in executor.output(step)


LOOK = """
for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < "$file" >> $OUT/seen 2>/dev/null; done
grep -r -l -F -f $OUT/secrets $LOOK_IN > $OUT/files 2>/dev/null
env >> $OUT/seen
"""


def test_code_of_a_user_finds_no_secret_of_the_platform(executor, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    keys = {"AwsTerraformStateAccessKey": "AKIA-not-for-users", "AwsTerraformStateSecretKey": "aws-not-for-users"}
    secrets = [executor.api.secret, executor.redis.password, *keys.values()]
    (out / "secrets").write_text("\n".join(secrets) + "\n")
    net = workspace(executor, environment={"OUT": str(out), "LOOK_IN": str(executor.temporary)})
    dispatch = executor.api.dispatch(executor.api.job(net, ("terraformPlan", {"commandList": [bash(LOOK, after=True)]})))
    executor.finish(executor.start(dispatch, **keys))
    assert dispatch.step.status == "completed", executor.said()
    seen = (out / "seen").read_text(errors="replace")
    assert f"OUT={out}" in seen and "dayfly-runner" in seen
    for secret in (*secrets, dispatch.env["EphemeralJobData"]):
        assert secret not in seen, secret
    assert (out / "files").read_text() == ""


# ---- ends ----

SLOW = """
resource "terraform_data" "first" { input = "made" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "touch $BEGAN; sleep 300" }
}
"""


@pytest.fixture
def slow(executor, tmp_path):
    """An apply that waits for ever: its job, its step, its pod."""
    began = tmp_path / "began"
    net = executor.api.workspace("slow", executor.source("slow", SLOW), environment={"BEGAN": str(began)})
    job = executor.api.job(net, "terraformApply")
    dispatch = executor.api.dispatch(job)
    pod = executor.start(dispatch, **PLAIN)
    dayfly.wait_for("the apply to begin", lambda: began.exists() or pod.poll() is not None)
    assert pod.poll() is None, executor.said()
    yield job, dispatch, pod
    pod.kill()


def resources(executor, job):
    return [r["name"] for r in json.loads(executor.state(job.workspace).read_text())["resources"]]


def test_a_cancelled_job_interrupts_the_tool_and_stores_the_state(executor, slow):
    job, dispatch, pod = slow
    executor.api.cancel(job)
    executor.finish(pod)
    assert (job.status, dispatch.step.status) == ("cancelled", "failed")
    assert "first" in resources(executor, job) and len(executor.states(job.workspace)) == 1
    assert "one interrupt to tofu" in executor.output(dispatch.step)
    assert "the job was cancelled" in executor.output(dispatch.step)


def test_a_pod_that_must_end_stores_the_state_and_tells(executor, slow):
    job, dispatch, pod = slow
    pod.terminate()
    executor.finish(pod)
    assert (job.status, dispatch.step.status) == ("failed", "failed")
    assert "first" in resources(executor, job) and len(executor.states(job.workspace)) == 1
    assert "the executor was told to stop" in executor.output(dispatch.step)  # no Kubernetes here
    assert "Executor pod" not in executor.output(dispatch.step)


def test_a_pod_that_is_started_again_applies_nothing(executor, slow):
    job, dispatch, pod = slow
    pod.kill()
    pod.wait()
    assert executor.redis.command("DEL", f"dayfly:live:{dispatch.step.id}") == 1  # it would end 45 s after the pod
    for left in executor.temporary.iterdir():  # of the lost pod: it would be gone with it
        left.rename(executor.home.directory / left.name)
    began = pathlib.Path(job.workspace.environment["BEGAN"])
    began.unlink()
    executor.finish(executor.start(dispatch, **PLAIN))
    assert (job.status, dispatch.step.status) == ("failed", "failed")
    assert not began.exists()
    saved = executor.output(dispatch.step)
    places = [saved.index(text) for text in ("Initializing Terrakube Job", "terraform_data.slow: Creating...", "not run again")]
    assert places == sorted(places) and saved.endswith("plan again.\n"), saved
    executor.finish(executor.start(dispatch, **PLAIN))
    assert not began.exists() and executor.output(dispatch.step).count("not run again") == 1
    assert f"StepOver: job {job.id}, step {dispatch.step.id}: it ended, or another pod began it" in executor.said()


def test_a_state_that_the_lost_pod_stored_comes_to_the_history(executor):
    job = executor.api.job(workspace(executor), "terraformApply")
    dispatch = executor.api.dispatch(job)
    with executor.api.trouble(503, "POST .*/history") as trouble:
        pod = executor.start(dispatch, **PLAIN)
        dayfly.wait_for("the state to be stored", lambda: trouble["met"] or pod.poll() is not None)
        pod.kill()
        pod.wait()
    executor.redis.command("DEL", f"dayfly:live:{dispatch.step.id}")
    for left in executor.temporary.iterdir():
        left.rename(executor.home.directory / left.name)
    for _ in range(2):
        executor.finish(executor.start(dispatch, **PLAIN))
    stored, = executor.states(job.workspace)
    assert [h["attributes"]["output"].rsplit("/", 1)[1] for h in executor.api.history] == [stored.name], executor.said()


def test_a_second_pod_reports_nothing_while_the_first_one_lives(executor, slow):
    job, dispatch, pod = slow
    second = executor.start(dispatch, **PLAIN)
    dayfly.wait_for("the second pod to see the first", lambda: "another pod runs step" in executor.said() or second.poll() is not None)
    assert (second.poll(), job.status, dispatch.step.status) == (None, "running", "running"), executor.said()
    third = executor.start(dispatch, **PLAIN)
    dayfly.wait_for("the third pod to see the first", lambda: "another pod runs step" in executor.said())
    third.terminate()
    assert third.wait(dayfly.DEADLINE) == 0
    assert executor.redis.exists(f"executor-job-heartbeat:{job.id}") and dispatch.step.status == "running"
    executor.api.cancel(job)
    assert second.wait(dayfly.DEADLINE) == 0
    executor.finish(pod)
    told = [r["body"]["data"]["attributes"]["status"] for r in executor.api.asked("PATCH", f"/step/{dispatch.step.id}$")]
    assert (told, job.status) == (["running", "failed"], "cancelled")
    assert "not run again" not in executor.output(dispatch.step) and "told to stop" not in executor.output(dispatch.step)


def test_of_two_pods_that_find_a_step_unbegun_one_applies(executor):
    job = executor.api.job(workspace(executor), "terraformApply")
    step = job.next_step()
    executor.redis.command("SET", f"dayfly:step:{step.id}", "the other pod")
    executor.run(job, **PLAIN)
    assert (job.status, step.status) == ("failed", "failed") and "not run again" in executor.output(step)
    assert not executor.state(job.workspace).exists() and executor.redis.command("GET", f"dayfly:step:{step.id}") == b"the other pod"
    job = executor.api.job(job.workspace, "terraformApply")
    step = executor.run(job, **PLAIN)
    assert step.status == "completed" and executor.redis.command("TTL", f"dayfly:step:{step.id}") > 3600


def test_a_step_that_another_pod_began_meanwhile_is_not_applied(executor):
    job = executor.api.job(workspace(executor), "terraformApply")
    executor.api.pause = 3  # until the dispatch is committed a pod waits, and has asked before
    dispatch = executor.api.dispatch(job)
    pod = executor.start(dispatch, **PLAIN)
    dayfly.wait_for("the first look", lambda: executor.api.asked("GET", f"/job/{job.id}"))
    dispatch.step.attributes["status"] = "running"
    executor.finish(pod)
    assert dispatch.step.status == "failed" and "not run again" in executor.output(dispatch.step)
    assert not executor.state(job.workspace).exists()


@pytest.mark.parametrize("answer", [503, 423, 404, 403, 401, 409])
@pytest.mark.parametrize("call", ["POST .*/history", "PATCH .*/step/"])
def test_an_api_that_cannot_at_the_end_hears_of_the_apply_when_it_can(executor, answer, call):
    """423: its database took no transaction; 404: a gateway whose servers are being replaced; others: of who was just admitted."""
    api, gate = executor.api, executor.home.directory / "gate"
    wait = bash(f"touch {gate}.begun; while [ ! -e {gate} ]; do sleep 0.05; done", before=True)
    job = api.job(workspace(executor), ("terraformApply", {"commandList": [wait]}))
    dispatch = api.dispatch(job)
    pod = executor.start(dispatch, **PLAIN)
    dayfly.wait_for("the step to run", lambda: gate.with_name("gate.begun").exists() or pod.poll() is not None)
    with api.trouble(answer, call) as trouble:
        gate.touch()
        dayfly.wait_for("three tries", lambda: trouble["met"] > 2 or pod.poll() is not None)
        assert pod.poll() is None, executor.said()
    executor.finish(pod)
    assert (job.status, dispatch.step.status, len(api.history)) == ("completed", "completed", 1)
    assert "waiting for Terrakube's API, which is asked again for" in executor.said() and "answers again" in executor.said()


def test_a_dispatch_that_holds_the_row_of_its_job_does_not_fail_the_step(executor):
    """As that of the first job after the API's start did, for more than five seconds."""
    api = executor.api
    job, api.pause = api.job(workspace(executor), "terraformPlan"), 7
    step = executor.run(job, **PLAIN)
    assert (job.status, step.status, api.faults) == ("completed", "completed", []), executor.said()


def test_an_api_that_is_away_at_the_end_hears_of_the_apply_when_it_is_back(executor):
    job, executor.api.busy = executor.api.job(workspace(executor), "terraformApply"), 0
    with executor.api.trouble(503, "PATCH .*/step/", times=None) as trouble:
        dispatch = executor.api.dispatch(job)
        pod = executor.start(dispatch, **PLAIN)
        dayfly.wait_for("the step to be told", lambda: trouble["met"] > 1)
        assert pod.poll() is None
    executor.finish(pod)
    assert (job.status, dispatch.step.status) == ("completed", "completed")
    assert executor.said().count("waiting for Terrakube's API, which is asked again for 900 s at most") == 1
    assert executor.said().count("Terrakube's API answers again") == 1


def test_a_redis_that_is_away_fails_nothing(home, tmp_path):
    with Redis(tmp_path / "own") as redis, Terrakube("2.33", redis=redis) as api:
        executor = Executor(home, api, redis)
        job = api.job(workspace(executor), "terraformApply")
        dispatch = api.dispatch(job)
        assert job.committed.wait(10)
        redis.stop()
        executor.finish(executor.start(dispatch, **PLAIN))
        assert (job.status, dispatch.step.status) == ("completed", "completed")
        assert "Apply complete!" in executor.output(dispatch.step) and "Redis was not there all the time" in executor.output(dispatch.step)
        assert executor.said().count("waiting for Redis") == 1


def test_a_password_that_redis_refuses_is_told_at_once(executor):
    job = executor.api.job(workspace(executor), "terraformPlan")
    dispatch = executor.api.dispatch(job)
    assert job.committed.wait(10)
    with executor.api.away():
        pod = executor.start(dispatch, TerrakubeRedisPassword="wrong-password", **PLAIN)
        dayfly.wait_for("the refusal", lambda: "Redis refuses this executor" in executor.said())
    executor.finish(pod)
    said = executor.said()
    assert dispatch.step.status == "completed" and said.count("Redis refuses") == 1
    assert "waiting for Redis" not in said and "wrong-password" not in said


def test_an_api_that_was_never_there_leaves_the_step_to_the_next_pod(executor):
    job = executor.api.job(workspace(executor), "terraformApply")
    dispatch = executor.api.dispatch(job)
    assert job.committed.wait(10)
    with executor.api.away():
        pod = executor.start(dispatch, **PLAIN)
        dayfly.wait_for("the heartbeat", lambda: executor.redis.exists(f"executor-job-heartbeat:{job.id}"))
        dayfly.wait_for("the wait to be told", lambda: "dayfly: waiting for Terrakube's API" in executor.said())
        pod.terminate()
        executor.finish(pod, code=1)
    assert not executor.state(job.workspace).exists() and dispatch.step.status == "pending"
    executor.finish(executor.start(dispatch, **PLAIN))
    assert (job.status, dispatch.step.status) == ("completed", "completed")


def test_a_directory_that_cannot_be_written_fails_the_step_with_its_reason(executor):
    job = executor.api.job(workspace(executor), "terraformPlan")
    step = executor.run(job, TMPDIR="/proc/nowhere")
    assert (job.status, step.status) == ("failed", "failed"), executor.said()
    assert "TMPDIR must name a directory" in executor.output(step) and "/proc/nowhere" in executor.output(step)
    assert "TMPDIR must name a directory" in "".join(executor.redis.lines(job.id))


def test_a_setting_that_is_missing_is_named(executor):
    job = executor.api.job(workspace(executor), "terraformPlan")
    executor.run(job, code=1, AzBuilderApiUrl="")
    assert "AzBuilderApiUrl is not set" in executor.said() and "EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP" in executor.said()


@pytest.mark.parametrize(("secret", "why"), [("b3RoZXItc2VjcmV0LW9mLTMyLWJ5dGVzLW9yLW1vcmU=", "HTTP 401"), ("YWI=", "needs 32")])
def test_a_secret_that_the_api_does_not_take_is_named_as_the_reason(executor, secret, why):
    job = executor.api.job(workspace(executor), "terraformPlan")
    executor.run(job, code=1, InternalSecret=secret)
    [line] = [line for line in executor.said().splitlines() if "the result was not delivered" in line]
    assert "did not give the job" in line and why in line


# ---- versions of the API ----

@pytest.mark.parametrize("version", ["2.28", "2.29", "2.33"])
def test_a_plan_without_changes_ends_its_job_with_the_api_of(version, home, redis):
    redis.command("FLUSHALL")
    with Terrakube(version, redis=redis) as api:
        executor = Executor(home, api, redis)
        job = api.job(api.workspace("none", executor.source("none", "")), "terraformPlan", "terraformApply")
        executor.run(job, **PLAIN)
        assert (job.status, job.attributes["planChanges"], [s.status for s in job.steps]) == ("completed", False, ["completed", "notExecuted"])
        assert api.faults == []


@pytest.mark.parametrize("version", ["2.28", "2.31", "2.34"])
def test_plan_and_apply_with_the_api_of(version, home, redis):
    redis.command("FLUSHALL")
    with Terrakube(version, redis=redis) as api:
        executor = Executor(home, api, redis)
        job = api.job(workspace(executor), "terraformPlan", "terraformApply")
        with api.sweeps(grace=0.5):
            executor.run(job, **PLAIN)
            assert job.status == "pending", executor.said()
            assert "Plan: 3 to add, 0 to change, 0 to destroy." in redis.lines(job.id), executor.said()
            apply = executor.run(job, **PLAIN)
        assert (job.status, apply.status, api.faults) == ("completed", "completed", [])
        assert executor.redis.seconds(f"executor-job-heartbeat:{job.id}") == -2


def test_lines_go_through_the_api_where_it_is_told_so(executor):
    job = executor.api.job(workspace(executor), "terraformPlan")
    executor.run(job, LogViaApi="true", **PLAIN)
    assert executor.api.asked("PATCH", "/job/[0-9]+$")[-1]["body"]["data"]["attributes"]["status"] == "completed", "it was the only step"
    assert "Plan: 3 to add, 0 to change, 0 to destroy." in executor.api.log_lines[job.id]


def test_an_uploaded_configuration_is_planned_without_the_lines_of_init(executor):
    api = executor.api
    net = api.workspace("cli", "empty", branch="remote-content", variables=VARIABLES)
    job = api.job(net, "terraformPlan", "terraformApply")
    job.attributes["overrideSource"] = api.content({"main.tf": module("module")})
    step = executor.run(job, **PLAIN)
    assert (job.status, step.status, job.attributes["commitId"]) == ("pending", "completed", "000000000"), executor.said()
    assert "Plan: 3 to add" in executor.output(step) and "Initializing" not in executor.output(step)


def test_tokens_of_the_step_are_masked_where_a_script_prints_them(executor):
    script = 'echo "[$terrakubeToken]"; cat "$TF_CLI_CONFIG_FILE"; echo "length ${#terrakubeToken}"'
    command = {"runtime": "BASH", "script": script, "priority": 1, "before": True, "after": False, "verbose": False, "beforeInit": False}
    net = workspace(executor)
    for kind in ("terraformPlan", "customScripts"):
        step = executor.run(executor.api.job(net, (kind, {"commandList": [command]})))
        said = executor.output(step)
        assert "[***]" in said and 'token = "***"' in said and "length 0" not in said, said
        assert "eyJ" not in said and "eyJ" not in executor.said()


OUTPUTS = """
variable "key" {}
output "key" {
  value     = { id = "of-nobody", secret = "made-${var.key}", port = 123456789 }
  sensitive = true
}
output "open" { value = "seen-by-everybody" }
"""


def test_values_of_sensitive_outputs_are_masked_where_a_script_prints_them(executor):
    """A provider may have made them: no variable of the workspace holds them."""
    net = executor.api.workspace("out", executor.source("out", OUTPUTS), variables={"key": "k3y"})
    script = bash('echo "$terraformOutput"; echo "$terraformOutput" | grep -o "made-[a-z0-9]*"', after=True)
    step = executor.run(executor.api.job(net, ("terraformApply", {"commandList": [script]})), **PLAIN)
    said = executor.output(step)
    assert step.status == "completed" and "seen-by-everybody" in said and "***" in said, said
    assert not [value for value in ("made-k3y", "of-nobody", "123456789") if value in said + executor.said()]


def test_a_url_of_the_job_gets_no_token_unless_it_is_an_upload(executor):
    api, seen = executor.api, []

    class Other(web.Handler):
        def do_GET(self):
            seen.append((self.path, self.headers.get("Authorization")))
            self.answer(404)

    # Another port of the API's own host, and another path of the API itself.
    with web.Server(Other) as other:
        for url in (f"{other.url}/x", f"{other.url}/remote/tfe/v2/configuration-versions/a/../x", f"{api.url}/x/../api/v1/organization"):
            job = api.job(api.workspace("cli", "empty", branch="remote-content"), "terraformPlan")
            job.attributes["overrideSource"] = url
            assert executor.run(job).status == "failed" and "Bearer" not in executor.said()
    assert [token for _, token in seen] == [None, None], seen
    assert "authorization" not in api.asked("GET", "^/api/v1/organization$")[-1]["headers"]


def test_what_could_restrict_a_run_and_is_not_understood_is_refused(executor):
    job = executor.api.job(workspace(executor), ("terraformPlan", {"policyMode": "strict"}))
    step = executor.run(job)
    assert (job.status, step.status) == ("failed", "failed") and "policyMode" in executor.output(step)


# ---- other storages ----

def in_bucket(s3, **more):
    """The configuration of an executor that keeps everything in a bucket."""
    return {"TerraformStateType": "AwsTerraformStateImpl", "AwsTerraformStateAccessKey": buckets.ACCESS, "AwsTerraformStateSecretKey": buckets.SECRET,
            "AwsTerraformStateBucketName": "blobs", "AwsTerraformStateRegion": "us-east-1", "AwsEndpoint": s3.url, "HOME": "/nonexistent", **PLAIN, **more}


def test_plan_and_apply_with_everything_in_a_bucket(executor, tmp_path):
    api = executor.api
    with buckets.S3(tmp_path / "s3") as s3:
        own = in_bucket(s3)
        job = api.job(workspace(executor), "terraformPlan", "terraformApply")
        plan, apply = executor.run(job, **own), executor.run(job, **own)
        assert (job.status, plan.status, apply.status) == ("completed", "completed", "completed"), executor.said()
        ids = f"{api.organization}/{job.workspace.id}"
        uuid = api.history[0]["attributes"]["output"].rsplit("/", 1)[1].removesuffix(".json")
        assert s3.objects() == sorted([f"tfstate/{ids}/terraform.tfstate", f"tfstate/{ids}/{job.id}/{plan.id}/terraformLibrary.tfPlan",
                                       f"tfstate/{ids}/state/{uuid}.json", f"tfstate/{ids}/state/{uuid}.raw.json",
                                       *(f"tfoutput/{api.organization}/{job.id}/{step.id}.tfoutput" for step in job.steps)])
        assert buckets.SECRET not in executor.said()


GATED = """
variable "gate" {}
resource "terraform_data" "first" {
  provisioner "local-exec" { command = "touch ${var.gate}.begun; while [ ! -e ${var.gate} ]; do sleep 0.05; done" }
}
"""


def test_a_state_is_pushed_past_the_lock_that_the_ended_apply_left(executor, tmp_path):
    """The bucket is away when the apply ends: tofu can neither write the state nor remove its lock, which would stay for good."""
    api, gate = executor.api, tmp_path / "gate"
    with buckets.S3(tmp_path / "s3") as s3:
        net = workspace(executor, source=executor.source("gated", GATED), variables={"gate": str(gate)}, environment={"AWS_MAX_ATTEMPTS": "2"})
        job = api.job(net, "terraformApply")
        dispatch = api.dispatch(job)
        pod = executor.start(dispatch, **in_bucket(s3, AwsUseLockfile="true"))
        dayfly.wait_for("the apply", gate.with_name("gate.begun").exists)
        s3.stop()
        gate.touch()
        dayfly.wait_for("the end of the apply", lambda: "the backend did not take the new state" in executor.said())
        assert "could not be kept as the raw state of this job" in executor.said()
        s3.start()
        executor.finish(pod)
        assert "the backend has taken the new state now" in executor.said()
        state = f"tfstate/{api.organization}/{net.id}/terraform.tfstate"
        assert json.loads((s3.files / state).read_text())["resources"] and f"{state}.tflock" not in s3.objects()
        assert (job.status, dispatch.step.status, len(api.history)) == ("failed", "failed", 1)


@pytest.mark.parametrize("end", ["back", "stopped"])
def test_an_output_is_saved_when_the_storage_is_back_or_its_loss_is_told(executor, tmp_path, end):
    api, gate = executor.api, tmp_path / "gate"
    wait = bash(f"touch {gate}.begun; while [ ! -e {gate} ]; do sleep 0.05; done", after=True)
    with buckets.S3(tmp_path / "s3") as s3:
        job = api.job(workspace(executor), ("terraformApply", {"commandList": [wait]}))
        dispatch = api.dispatch(job)
        pod = executor.start(dispatch, **in_bucket(s3))
        dayfly.wait_for("the state", gate.with_name("gate.begun").exists)
        s3.stop()
        gate.touch()
        dayfly.wait_for("the wait", lambda: "waiting for Terrakube's storage" in executor.said())
        assert dispatch.step.status == "running"
        if end == "stopped":
            pod.terminate()
        else:
            s3.start()
        executor.finish(pod)
        saved = s3.files / f"tfoutput/{api.organization}/{job.id}/{dispatch.step.id}.tfoutput"
        assert (job.status, dispatch.step.status, saved.exists()) == ("completed", "completed", end == "back"), executor.said()
        assert ("the output of the step is not saved" in executor.said()) == (end == "stopped")


# ---- the API as storage ----

@pytest.fixture
def through_api(home, redis):
    """An executor that has no key of a storage: states, plans and outputs go through the API of 2.34."""
    redis.command("FLUSHALL")
    with Terrakube("2.34", redis=redis) as api:
        executor = Executor(home, api, redis)
        executor.own = {"TerraformStateType": "ApiTerraformStateImpl", **PLAIN}
        yield executor
        assert api.faults == []


def test_plan_and_apply_where_the_api_is_the_storage(through_api):
    executor, api = through_api, through_api.api
    job = api.job(workspace(executor), "terraformPlan", "terraformApply")
    executor.run(job, **executor.own)
    with api.trouble(404, "PUT /tfoutput", times=2) as gateway:  # its servers are being replaced
        apply = executor.run(job, **executor.own)
    assert (job.status, apply.status, gateway["met"]) == ("completed", "completed", 2), executor.said()
    assert "/tfoutput/" in " ".join(path for path in api.objects if apply.id in path), list(api.objects)
    assert len(json.loads(api.states[job.workspace.id])["resources"]) == 3 and len(api.history) == 1 and not api.locks


def test_a_state_that_the_backend_does_not_take_is_pushed_when_it_does(through_api):
    executor, api = through_api, through_api.api
    job = api.job(workspace(executor), "terraformApply")
    with api.trouble(503, "POST /tfstate/.*/state$", times=3):
        apply = executor.run(job, **executor.own)
    assert "the backend has taken the new state now" in executor.said()
    assert len(json.loads(api.states[job.workspace.id])["resources"]) == 3
    assert (job.status, apply.status, len(api.history)) == ("failed", "failed", 1)


@contextlib.contextmanager
def api_away_at_the_end(executor):
    """An apply whose state the API does not take, and whose lock it does not give back: job, dispatch and pod, once that has begun."""
    job = executor.api.job(workspace(executor), "terraformApply")
    dispatch = executor.api.dispatch(job)
    with executor.api.trouble(503, "(POST /tfstate/.*/state|DELETE /tfstate/.*/lock)$") as away:
        pod = executor.start(dispatch, **executor.own)
        dayfly.wait_for("the state", lambda: away["met"])
        yield job, dispatch, pod


def test_the_lock_of_an_ended_apply_is_not_kept_alive_and_its_state_is_pushed(through_api):
    """The API is away when the apply ends, so tofu's lock stays. The API gives a lock away for which no heartbeat comes."""
    executor, api = through_api, through_api.api
    with api_away_at_the_end(executor) as (job, dispatch, pod):
        dayfly.wait_for("two pushes", lambda: len(refused(api)) >= 2)
    since = len(api.requests)
    dayfly.wait_for("two looks at the job", lambda: len([r for r in api.requests[since:] if r["path"].endswith(f"/job/{job.id}")]) >= 2)
    assert "is kept as the raw state of this job" in executor.said()
    assert not [r for r in api.requests[since:] if r["path"].endswith("/heartbeat")]
    api.locks.clear()
    executor.finish(pod)
    assert "the backend has taken the new state now" in executor.said()
    assert len(json.loads(api.states[job.workspace.id])["resources"]) == 3 and not api.locks
    assert (job.status, dispatch.step.status, len(api.history)) == ("failed", "failed", 1)


def refused(api):
    """Requests for the lock that met one."""
    return [r for r in api.asked("POST", "/lock$") if r["status"] == 423]


def test_a_foreign_lock_is_not_broken_by_a_push(through_api):
    executor, api = through_api, through_api.api
    with api_away_at_the_end(executor) as (job, dispatch, pod):
        foreign = {**api.locks[job.workspace.id], "Who": "root@elsewhere"}
        api.locks[job.workspace.id] = foreign
        dayfly.wait_for("a push that meets it", lambda: len(refused(api)) >= 2)
    pod.terminate()
    executor.finish(pod)
    assert api.locks[job.workspace.id] == foreign and not api.states
    assert "the new state could not be stored" in executor.said() and dispatch.step.status == "failed"


def test_a_state_that_is_not_taken_holds_a_pod_that_must_end_no_longer(through_api):
    executor, api = through_api, through_api.api
    job = api.job(workspace(executor), "terraformApply")
    with api.trouble(503, "POST /tfstate/.*/state$", times=None):
        dispatch = api.dispatch(job)
        pod = executor.start(dispatch, **executor.own)
        dayfly.wait_for("the push", lambda: "Failed to" in executor.said() and any(d.endswith("push.err") for d in pushed(executor)))
        pod.terminate()
        executor.finish(pod)
    assert "the new state could not be stored" in executor.said() and dispatch.step.status == "failed"


def pushed(executor):
    return [str(p) for p in executor.temporary.rglob("*")]


def test_a_file_of_the_source_is_not_pushed_as_the_state(executor):
    api = executor.api
    executor.run(api.job(workspace(executor), "terraformApply"), **PLAIN)
    net = next(iter(api.workspaces.values()))
    made = json.loads(executor.state(net).read_text())
    foreign = json.dumps({**made, "serial": made["serial"] + 10, "resources": []})
    directory = pathlib.Path(net.source.removeprefix("file://"))
    for left in ("errored.tfstate", "later.tfstate"):  # the second one is made by a script
        (directory / left).write_text(foreign)
    executor.home.git(directory, "add", "-A")
    executor.home.git(directory, "commit", "-qm", "x")
    link = [{"runtime": "BASH", "script": "cp later.tfstate errored.tfstate", "priority": 1, "before": True}]
    for kind in ("terraformApply", ("terraformApply", {"commandList": link})):
        step = executor.run(api.job(net, kind), **PLAIN)
        assert step.status == "completed" and "the state that could not be stored" not in executor.said()
        assert len(json.loads(executor.state(net).read_text())["resources"]) == len(made["resources"])


# ---- handed out by dayfly's service ----

def hand_out(executor, tmp_path, dispatch, **more):
    """The end of the runner that gets this step from the service."""
    home = executor.home
    settings = [f"{name}={value}" for name, value in {**executor.api.env(), **PLAIN, "HOME": str(home.directory)}.items()]
    document = {"uid": "tk", "action": "terrakube", "stepToken": "token", "tools": {"directories": [str(home.bin)]},
                "terrakube": {"payload": json.dumps(dispatch.payload), "settings": settings, "folder": "/"}, **more}
    (tmp_path / "step.json").write_text(json.dumps(document))
    return home.run(dayfly.RUNNER, "step", "--file", tmp_path / "step.json", "--report-dir", tmp_path / "report")


def test_a_step_that_passes_its_deadline_says_which_one(executor, tmp_path):
    net = executor.api.workspace("slow", executor.source("slow", SLOW), environment={"BEGAN": str(tmp_path / "began")})
    dispatch = executor.api.dispatch(executor.api.job(net, "terraformApply"))
    hand_out(executor, tmp_path, dispatch, timeoutSeconds=3)
    assert dispatch.step.status == "failed"
    assert "within its deadline of 3 s (terrakube.deadline of the service)" in executor.output(dispatch.step)


def test_a_step_that_the_service_hands_out_is_told_to_both(executor, tmp_path):
    api, report = executor.api, tmp_path / "report"
    net = workspace(executor, folder="/nowhere", variables={**VARIABLES, "owner": "o" * 200_000})  # more than an argument may have
    job = api.job(net, "terraformPlan", "terraformApply")
    dispatch = api.dispatch(job)
    ran = hand_out(executor, tmp_path, dispatch)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads((report / "result.json").read_text())["reason"] == "Planned"
    assert (job.status, dispatch.step.status) == ("pending", "completed")
    assert "Plan: 3 to add" in (report / "log").read_text() and "Plan: 3 to add" in executor.output(dispatch.step)
    assert api.secret not in (report / "log").read_text() + (report / "events").read_text()
