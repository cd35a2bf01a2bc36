"""The stand-in for Terrakube's API (lib/terrakube.py): held against the recorded exchanges of the real one, and its rules."""

import base64
import json
import time
import urllib.error
import urllib.request

import pytest

from lib import dayfly, web
from lib.redis import Redis, from_java, to_java
from lib.terrakube import BELL, FINAL, JSON_API, Terrakube, sign

RECORDED = dayfly.ROOT / "tests/fixtures/terrakube"


@pytest.fixture
def redis(tmp_path):
    with Redis(tmp_path / "redis") as running:
        yield running


def token(api, **claims):
    now = int(time.time())
    return sign(api.secret, {"iss": "TerrakubeInternal", "aud": "TerrakubeInternal", "email": "no-reply@terrakube.io", "iat": now, "exp": now + 60, **claims})


def ask(api, method, path, body=None, bearer=None, kind=JSON_API):
    """(status, content) of a request."""
    headers = {"Authorization": f"Bearer {token(api) if bearer is None else bearer}"}
    if body is not None:
        headers["Content-Type"] = kind
    request = urllib.request.Request(api.url + path, body if body is None else body.encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def patch(api, job, step=None, **attributes):
    kind, name = ("job", job.id) if step is None else ("step", step.id)
    path = f"/api/v1/organization/{api.organization}/job/{job.id}" + (f"/step/{step.id}" if step else "")
    status = ask(api, "PATCH", path, json.dumps({"data": {"type": kind, "id": name, "attributes": attributes}}))[0]
    assert job.settled.wait(30)
    return status


def shape(value):
    """Names and types of a document; what differs between versions or runs is left out."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items() if k not in ("address", "createdBy", "createdDate", "updatedBy", "updatedDate", "tcl",
                                                                  "templateReference", "overrideSource")}
    if isinstance(value, list):
        return [shape(v) for v in value]
    return None if value is None else type(value).__name__


@pytest.mark.parametrize("run", ["plan", "apply"])
def test_it_answers_as_the_real_one_did(run):
    exchanges = [json.loads(line) for line in (RECORDED / f"http-{run}.jsonl").read_text().splitlines()]
    first = json.loads(next(e["response_body"] for e in exchanges if e["status"] == 200))
    with Terrakube("2.28", saved=lambda *_: None, busy=0) as api:
        api.organization = first["data"]["relationships"]["organization"]["data"]["id"]
        job = api.job(api.workspace("net", "http://git.example/module.git"), "terraformPlan", "terraformApply")
        api.workspaces = {first["data"]["relationships"]["workspace"]["data"]["id"]: job.workspace}
        job.workspace.id = next(iter(api.workspaces))
        job.attributes.update(first["data"]["attributes"])
        for given, step in zip(first["included"], reversed(job.steps)):
            step.id, step.attributes = given["id"], dict(given["attributes"])
        for e in exchanges:
            there = dict(e["request_headers"]).get("Authorization", "none")
            bearer = "" if there == "Bearer" else token(api)
            status, content = ask(api, e["method"], e["path"], e["request_body"] or None, bearer, dict(e["request_headers"]).get("Content-Type"))
            assert status == e["status"], (e["method"], e["path"], content)
            if e["response_body"] and "index.json" not in e["path"]:
                assert shape(json.loads(content))["data"] == shape(json.loads(e["response_body"]))["data"], e["path"]
        assert api.faults == []


def test_a_token_is_checked_as_the_real_one_does(tmp_path):
    with Terrakube("2.28") as api:
        job = api.job(api.workspace("net", "x"), "terraformPlan")
        path = f"/api/v1/organization/{api.organization}/job/{job.id}"
        assert ask(api, "GET", path)[0] == 200
        assert ask(api, "GET", path, bearer="")[0] == 401
        assert ask(api, "GET", path, bearer=token(api, exp=int(time.time()) - 1))[0] == 401
        assert ask(api, "GET", path, bearer=sign(base64.b64encode(b"x" * 32).decode(), {"iss": "TerrakubeInternal"}))[0] == 401
        assert ask(api, "GET", path, bearer=token(api, iss="somebody"))[0] == 500
        assert ask(api, "GET", path, bearer=token(api, name="?" * 60))[0] == 500


@pytest.mark.parametrize("version,kept", [("2.30", False), ("2.33", True)])
def test_a_status_that_comes_too_early_is_lost_where_the_row_is_not_locked(redis, version, kept):
    with Terrakube(version, redis=redis, pause=0.1, busy=0) as api:
        job = api.job(api.workspace("net", "x"), "terraformPlan", "terraformApply")
        api.dispatch(job)
        redis.command("XADD", to_java(job.id), "*", to_java("output"), to_java("too early"))
        assert job.status == "pending"
        assert patch(api, job, status="running") == 204
        assert job.committed.wait(30)
        dayfly.wait_for("the status", lambda: job.status == ("running" if kept else "queue"))
        assert redis.lines(job.id) == []
        assert any("are lost" in fault for fault in api.faults)
        assert any("overwritten" in fault for fault in api.faults) != kept


def test_a_job_goes_its_way(redis):
    with Terrakube("2.34", redis=redis, saved=lambda *_: "saved", pause=0.05, busy=0) as api:
        job = api.job(api.workspace("net", "x"), "terraformPlan", "terraformApply")
        for status in ("pending", "completed"):
            going = api.dispatch(job)
            assert json.loads(base64.b64decode(going.env["EphemeralJobData"]))["stepId"] == going.step.id
            assert job.committed.wait(30) and job.status == "queue"
            redis.command("XADD", to_java(job.id), "*", to_java("output"), to_java("☃ line"))
            assert patch(api, job, status="running") == 204 and api.output(job, going.step) == "☃ line\n"
            assert patch(api, job, going.step, status="completed") == 204
            assert patch(api, job, status="pending") == 204 and job.status == status
            assert api.output(job, going.step) == "saved"
        assert api.faults == []
        other = api.job(job.workspace, "terraformPlan", "terraformApply")
        assert patch(api, other, status="failed") == 204
        assert [s.status for s in other.steps] == ["failed", "failed"]


def test_a_job_that_changes_nothing_ends_as_its_version_ends_it():
    with Terrakube("2.28", busy=0) as old, Terrakube("2.33", busy=0) as new:
        ends = {}
        for api, status in ((old, "pending"), (old, "completed"), (new, "pending"), (new, "completed")):
            job = api.job(api.workspace("net", "x"), "terraformPlan", "terraformApply")
            assert patch(api, job, job.steps[0], status="completed") == patch(api, job, status=status, planChanges=False) == 204
            ends[api.version, status] = (job.status, job.steps[1].status)
        assert ends == {((2, 28), "pending"): ("completed", "notExecuted"), ((2, 28), "completed"): ("completed", "pending"),
                        ((2, 33), "pending"): ("pending", "pending"), ((2, 33), "completed"): ("completed", "notExecuted")}
        assert old.faults == [] and len(new.faults) == 1 and "assertion" in new.faults[0]


def test_a_step_of_a_rejected_job_has_failed_when_its_commands_run(redis):
    with Terrakube("2.33", redis=redis, pause=0.05) as api:
        job = api.job(api.workspace("net", "x"), ("approval", {"commandList": []}), "terraformApply")
        api.reject(job, job.steps[0])
        api.dispatch(job)
        assert job.committed.wait(30)
        assert (job.status, [s.status for s in job.steps]) == ("rejected", ["failed", "failed"])


def test_what_the_database_does_not_take_is_answered_with_423(redis):
    with Terrakube("2.33", redis=redis, busy=3) as api:
        job = api.job(api.workspace("net", "x"), "terraformPlan")
        assert [patch(api, job, job.steps[0], status="pending") for _ in range(4)] == [204, 204, 423, 204]
        assert len(api.asked("PATCH", "/step/")) == 3 and len(api.requests) == 4
        api.pause, api.lock_wait, api.busy = 1, 0.1, 0
        api.dispatch(job)
        assert patch(api, job, status="running") == 423, "the row is locked"
        assert job.committed.wait(30) and patch(api, job, status="running") == 204


def test_organizations_have_no_pages():
    with Terrakube() as api:
        status, content = ask(api, "GET", "/api/v1/organization?page%5Bsize%5D=1")
        assert status == 400 and "Cannot paginate organization" in content
        assert ask(api, "GET", "/api/v1/organization")[0] == 200


def test_a_bell_wakes_the_oldest_job_that_is_pending_also_if_it_is_about_to_be_completed(redis):
    with Terrakube("2.33", redis=redis, settle=30, busy=0) as api, web.Server(Executor) as executor:
        executor.status, executor.asked = 202, []
        ended, waiting = (api.job(api.workspace("net", "x"), "terraformPlan") for _ in range(2))
        ended.steps[0].attributes["status"] = "completed"
        with api.queue(executor.url):
            redis.command("PUBLISH", BELL, to_java(""))
            dayfly.wait_for("the ended one to be completed", lambda: ended.status == "completed")
            assert waiting.status == "pending" and not executor.asked
            redis.command("PUBLISH", BELL, to_java(""))
            dayfly.wait_for("the waiting one to be sent", lambda: waiting.status == "queue")


def test_a_job_without_heartbeat_is_swept_away(redis):
    with Terrakube("2.33", redis=redis) as api:
        dead, live = (api.job(api.workspace("net", "x"), "terraformPlan") for _ in range(2))
        for job in (dead, live):
            patch(api, job, status="running")
        redis.command("SET", to_java(f"executor-job-heartbeat:{live.id}"), to_java("1"), "EX", "45")
        with api.sweeps(every=0.05, grace=0.1):
            dayfly.wait_for("the sweep", lambda: dead.status == "failed")
        assert live.status == "running" and dead.steps[0].status in FINAL


def test_a_state_is_kept_for_whoever_holds_its_lock():
    with Terrakube("2.34") as api:
        workspace = api.workspace("net", "x")
        path, own = f"/tfstate/v1/http-backend/organization/{api.organization}/workspace/{workspace.id}", token(api, workspaceId=workspace.id)
        assert ask(api, "GET", path + "/state")[0] == 403
        assert ask(api, "GET", path + "/state", bearer=own) == (204, "")
        assert ask(api, "POST", path + "/lock", '{"ID": "l-1"}', own)[0] == 200
        assert ask(api, "POST", path + "/lock", '{"ID": "l-2"}', own) == (423, '{"ID": "l-1"}')
        assert ask(api, "POST", path + "/state", "{}", own)[0] == 423
        assert ask(api, "POST", path + "/state?ID=l-1", '{"serial": 1}', own)[0] == 200
        assert ask(api, "GET", path + "/state", bearer=own) == (200, '{"serial": 1}')
        assert ask(api, "POST", path + "/lock/heartbeat", "", own)[0] == 200
        assert ask(api, "DELETE", path + "/lock", bearer=own)[0] == 200
        assert ask(api, "POST", path + "/lock/heartbeat", "", own)[0] == 410


class Executor(web.Handler):
    """Door B: answers with what the test says, and checks the token as the Java executor does."""

    def do_POST(self):  # noqa: N802
        owner = self.server.owner
        owner.asked.append((self.headers.get("Authorization"), json.loads(self.body())))
        self.answer(owner.status, b"{}", Content_Type="application/json")


@pytest.mark.parametrize("version,status,after", [("2.28", 202, "queue"), ("2.28", 200, "failed"), ("2.28", 503, "failed"),
                                                  ("2.33", 202, "queue"), ("2.33", 200, "failed"), ("2.33", 503, "pending")])
def test_a_job_is_posted_to_an_executor(version, status, after):
    with Terrakube(version) as api, web.Server(Executor) as executor:
        executor.status, executor.asked = status, []
        job = api.job(api.workspace("net", "x"), "terraformPlan")
        assert api.post(job, executor.url + "/api/v1/terraform-rs") == status
        assert job.status == after
        ((authorization, payload),) = executor.asked
        assert payload["stepId"] == job.steps[0].id and ("agentUrl" in payload) == (version == "2.28")
        assert (authorization is None) == (version == "2.28")


def test_it_can_be_in_trouble_and_away():
    with Terrakube() as api:
        job = api.job(api.workspace("net", "x"), "terraformPlan")
        path = f"/api/v1/organization/{api.organization}/job/{job.id}"
        with api.trouble(503, "GET .*/job/", times=1) as met:
            assert [ask(api, "GET", path)[0] for _ in range(2)] == [503, 200]
            assert met["met"] == 1
        with api.trouble("lost", "PATCH"), pytest.raises(OSError):
            patch(api, job, status="running")
        assert job.status == "running"
        with api.away(), pytest.raises(urllib.error.URLError):
            ask(api, "GET", path)
        assert ask(api, "GET", path)[0] == 200


def test_strings_of_java_are_the_recorded_bytes():
    assert to_java("123").hex() == "aced0005740003313233"
    for text in ("", "a\0b", "\N{SNOWMAN}\N{ROCKET}", "x" * 65535, "x" * 65536):
        assert from_java(to_java(text)) == text
    assert to_java("\N{ROCKET}")[7:].hex() == "eda0bdedba80"
    with pytest.raises(ValueError):
        from_java(b"plain")
