"""Every transition of every step is told to a State Service, in order, though it or the spawner dies."""

import json
import re
import socket

import pytest

from lib.dayfly import Server, wait_for
from lib.state_service import StateService, expected, is_told

MODULE = 'resource "terraform_data" "a" {}\n'


@pytest.fixture
def service():
    running = StateService()
    yield running
    running.stop()


def serve(home, service, protocol="events", **more):
    keys = {"url": service.url, "protocol": protocol, **more}
    return Server(home, config=json.dumps({"stateService": keys}))


def provision(home, name, action="provision"):
    """A run of an executor of its own."""
    module = home.module(name, MODULE)
    home.dayfly("create", "-f", "-", input=f"""
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {{name: {name}}}
spec: {{source: {{url: 'file://{module}', kind: directory}}}}
""")
    home.dayfly("run", name, "--action", action, "--auto-approve")


def steps(server):
    return server.get("/v1/taskactions?limit=1000")["items"]


def await_all_told(server, service, protocol="events", count=None):
    """Until each step is marked as told; then the service must know each transition of each, in order."""
    found = wait_for("everything to be told", lambda: all(map(is_told, steps(server))) and steps(server))
    assert count is None or len(found) == count
    for step in found:
        run, action = step["spec"]["runRef"]["name"], step["spec"]["action"]
        assert service.of(run, action) == expected(step, protocol), (run, action)
        assert step["status"]["reported"] == len(step["status"]["phaseHistory"])
    assert service.faults == []


def metric(server, result):
    text = server.request("GET", "/metrics")[2].decode()
    found = re.search(r'^dayfly_state_service_transitions_total\{result="%s"\} (\d+)' % result, text, re.M)
    return int(found.group(1)) if found else 0


@pytest.mark.parametrize("protocol", ["events", "put"])
def test_every_transition_of_every_step_arrives_in_order(home, service, protocol):
    """Each once, as long as nothing fails."""
    with serve(home, service, protocol) as server:
        provision(home, "net")
        await_all_told(server, service, protocol, count=2)
        assert service.of("net-1", "plan")[-1] in ("SUCCEEDED", "Completed")
        assert metric(server, "taken") == len(service.taken) == len(set(service.taken))
    names = {message["actionId"]["run"]["project"] if protocol == "put" else message["events"][0]["id"]["run"]["project"]
             for _, message in service.requests}
    assert names == {"default"}


def test_a_failed_step_tells_its_error(home, service):
    with serve(home, service, project="shop", domain="live") as server:
        module = home.module("net", 'output "x" {\n  value = nothing.at.all\n}\n')
        home.dayfly("create", "-f", "-", input=f"""
kind: Executor
metadata: {{name: net}}
spec: {{source: {{url: 'file://{module}', kind: directory}}}}
""")
        home.dayfly("run", "net", "--auto-approve", code=None)
        await_all_told(server, service, count=1)
    last = [event for _, message in service.requests for event in message["events"]][-1]
    assert last["phase"] == "ACTION_PHASE_FAILED"
    assert last["errorInfo"]["message"].startswith("PlanFailed")
    assert last["id"]["run"] == {"project": "shop", "domain": "live", "name": "net-1"}


@pytest.mark.parametrize("protocol", ["events", "put"])
def test_a_dead_service_delays_no_step_and_is_told_everything_when_it_is_back(home, service, protocol):
    with serve(home, service, protocol) as server:
        provision(home, "first")
        service.stop()
        provision(home, "second")
        provision(home, "third")
        assert not all(map(is_told, steps(server)))
        service.start()
        await_all_told(server, service, protocol, count=6)
        log = server.log.read_text()
        assert log.count("the State Service is told everything later") == log.count("the State Service answers again") > 0


def test_what_was_not_told_before_the_spawner_was_killed_is_told_by_the_next(home, service):
    server = serve(home, service)
    with server:
        provision(home, "first")
        service.stop()
        provision(home, "second")
        server.kill()
        with server.start():
            provision(home, "third")
            service.start()
            await_all_told(server, service, count=6)


def test_a_step_that_is_deleted_is_told_of_first(home, service):
    """Made and deleted while the service was away, it is told of all the same."""
    with serve(home, service) as server:
        service.stop()
        provision(home, "net", action="dry-run")
        phases = expected(steps(server)[0], "events")
        home.dayfly("delete", "net")
        assert server.get("/v1/executors/net")["status"]["deleting"]
        service.start()
        wait_for("the executor to go", lambda: server.request("GET", "/v1/executors/net")[0] == 404)
        assert service.of("net-1", "plan") == phases and phases[-1] == "SUCCEEDED"
        assert steps(server) == []


def test_a_service_that_never_answers_delays_no_step(home, service):
    service.stop()
    with socket.create_server(("127.0.0.1", service.port)) as silent, serve(home, service) as server:
        provision(home, "net")
        assert [step["status"]["phaseHistory"][-1]["phase"] for step in steps(server)] == ["Completed"] * 2
        silent.close()


def test_retry_after_is_obeyed(home, service):
    refused = []

    def busy_once(message):
        if refused:
            return None
        refused.extend(message["events"])
        return 429, {"Retry-After": "2"}, {"code": "resource_exhausted"}

    service.answer = busy_once
    with serve(home, service) as server:
        provision(home, "net")
        await_all_told(server, service, count=2)
        assert metric(server, "later") == len(refused)
    assert service.times[1] - service.times[0] >= 2  # the first pause of the back-off is a hundredth of that


def test_what_is_refused_for_good_is_dropped_and_said_once(home, service):
    def refuse(message):
        return (400, {}, {"code": "invalid_argument", "message": "no such project"}) \
            if message["events"][0]["id"]["run"]["name"] == "bad-1" else None

    service.answer = refuse
    with serve(home, service) as server:
        provision(home, "bad")
        bad = steps(server)
        provision(home, "good")
        found = wait_for("everything to be told", lambda: all(map(is_told, steps(server))) and steps(server))
        for step in found:
            if step["spec"]["runRef"]["name"] == "good-1":
                assert service.of("good-1", step["spec"]["action"]) == expected(step, "events")
        assert service.of("bad-1", "plan") == service.of("bad-1", "apply") == []
        assert metric(server, "refused") == sum(len(step["status"]["phaseHistory"]) for step in bad)
        assert server.log.read_text().count("which are dropped: HTTP 400 invalid_argument: no such project") == 1


def test_put_that_says_no_in_its_answer_is_told_again_or_dropped_by_its_code(home, service):
    """What was not taken is told again."""
    answers = [{"status": {"code": 14, "message": "later"}}, {"status": {"code": 3, "message": "never"}}]
    service.answer = lambda message: (200, {}, {"actionId": message["actionId"], **answers.pop(0)}) if answers else None
    with serve(home, service, "put") as server:
        provision(home, "net")
        wait_for("everything to be told", lambda: all(map(is_told, steps(server))))
        assert metric(server, "refused") == 1 and metric(server, "later") >= 1
        assert service.of("net-1", "plan")[0] != "Queued"  # dropped by code 3, at its second try


def test_an_end_that_was_refused_in_the_answer_does_not_count_as_told(home, service):
    """The call succeeds, and says in its answer that the write failed."""
    service.answer = lambda message: (200, {}, {"status": {"code": 13, "message": "db write failed"}}) \
        if json.loads(message["state"])["phase"] == "Completed" else None
    with serve(home, service, "put") as server:
        provision(home, "net", action="dry-run")
        wait_for("the end to be told twice", lambda: metric(server, "later") >= 2)
        step = steps(server)[0]
        assert not is_told(step) and "reported" not in step["status"]
        service.answer = None
        await_all_told(server, service, "put", count=1)


def test_one_step_that_is_never_taken_keeps_no_other_from_being_told(home, service):
    service.answer = lambda message: (500, {}, {"code": "internal"}) \
        if message["events"][0]["id"]["run"]["name"] == "bad-1" else None
    with serve(home, service) as server:
        provision(home, "bad")
        provision(home, "good")
        wait_for("the others to be told", lambda: [is_told(step) for step in steps(server)].count(True) == 2)
        for step in steps(server):
            assert is_told(step) == (step["spec"]["runRef"]["name"] == "good-1")
        service.answer = None
        await_all_told(server, service, count=4)


def test_a_token_is_read_anew_for_each_call_and_stands_nowhere_else(home, service):
    token = home.directory / "token"
    token.write_text("old-secret\n")
    with serve(home, service, tokenFile=str(token)) as server:
        provision(home, "first")
        await_all_told(server, service, count=2)
        service.answer = lambda message: (401, {}, {"code": "unauthenticated"}) \
            if service.requests[-1][0]["Authorization"] != "Bearer new-secret" else None
        provision(home, "second")
        assert not all(map(is_told, steps(server)))
        token.write_text("new-secret\n")
        await_all_told(server, service, count=4)
        log = server.log.read_text() + json.dumps(steps(server))
        assert "old-secret" not in log and "new-secret" not in log
    assert service.requests[0][0]["Authorization"] == "Bearer old-secret"
