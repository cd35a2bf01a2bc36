"""Managed state over HTTP: tofu's protocol byte by byte, and the real tofu and terraform against it."""

import base64
import hashlib
import json
import subprocess
import threading

import pytest

from lib.dayfly import Server, wait_for
from test_api import bearer, document, problem, token_file

MODULE = """
terraform {
  backend "http" {}
}
variable "n" {
  type    = number
  default = 1
}
resource "terraform_data" "a" {
  input = var.n
}
output "n" {
  value = terraform_data.a.output
}
"""


@pytest.fixture
def net(home, server):
    """The path of an executor's state; the executor itself is never run."""
    status, _, body = server.request("POST", "/v1/executors", document("net", home.module("net", MODULE)))
    assert status == 201, body
    return "/v1/executors/net/state"


def state(serial, lineage="one", **extra):
    return json.dumps({"version": 4, "terraform_version": "1.9.0", "serial": serial, "lineage": lineage,
                       "outputs": {}, "resources": [], **extra}).encode()


def lock_info(lock_id):
    return {"ID": lock_id, "Operation": "OperationTypeApply", "Info": "", "Who": "me@here", "Version": "1.9.0",
            "Created": "2026-01-01T00:00:00Z", "Path": ""}


def post(server, path, body, lock=None, headers=None):
    return server.request("POST", path + (f"?ID={lock}" if lock else ""), body,
                          {"Content-Type": "application/json", **(headers or {})})


def test_the_protocol_has_the_codes_that_tofu_knows(server, net):
    assert server.request("GET", net)[0] == 404
    assert server.request("LOCK", net, lock_info("l1"))[0] == 200
    status, _, body = server.request("LOCK", net, lock_info("l2"))
    assert (status, json.loads(body)["ID"], json.loads(body)["Who"]) == (423, "l1", "me@here")
    assert server.get(net + "/lock")["ID"] == "l1"
    first = state(1)
    md5 = {"Content-MD5": base64.b64encode(hashlib.md5(first).digest()).decode()}
    assert post(server, net, first, "l2", md5)[0] == 423
    assert post(server, net, first, None, md5)[0] == 423
    assert post(server, net, first, "l1", md5)[0] == 200
    assert server.request("GET", net)[2] == first
    status, headers, body = server.request("HEAD", net)
    assert (status, body, int(headers["Content-Length"])) == (200, b"", len(first))
    status, _, body = server.request("UNLOCK", net, lock_info("l2"))
    assert (status, json.loads(body)["ID"]) == (423, "l1")
    assert server.request("UNLOCK", net, lock_info("l1"))[0] == 200
    assert server.request("UNLOCK", net, lock_info("l1"))[0] == 200, "a repeated unlock"
    assert server.request("GET", net + "/lock")[0] == 204
    assert server.request("DELETE", net)[0] == 200
    assert server.request("GET", net)[0] == 204


def test_what_would_lose_or_mix_up_state_is_refused(server, net):
    assert post(server, net, state(5))[0] == 200
    refused = {
        "an equal serial with other content": (state(5, extra="x"), 409, "StaleSerial"),
        "a lower serial": (state(4), 409, "StaleSerial"),
        "another lineage": (state(6, "two"), 409, "ForeignLineage"),
        "no state": (b"{}", 400, "StateRefused"),
        "no json": (b"nonsense", 400, "StateRefused"),
        "nothing": (b"", 400, "StateRefused"),
        "half a state": (state(6)[:-10], 400, "StateRefused"),
    }
    for what, (body, status, reason) in refused.items():
        got, _, answer = post(server, net, body)
        assert (got, problem(answer)) == (status, reason), what
    wrong = {"Content-MD5": base64.b64encode(b"x" * 16).decode()}
    assert post(server, net, state(6), headers=wrong)[0] == 400
    assert post(server, net, state(6), headers={"Content-MD5": "short"})[0] == 400
    assert server.request("GET", net)[2] == state(5)
    assert post(server, net, state(5))[0] == 200, "the very same again is success"
    assert [v["serial"] for v in server.get(net + "/versions")["items"]] == [5]


def test_a_person_replaces_a_state_that_holds_resources_under_the_lock_alone(server, net):
    full = {"resources": [{"mode": "managed", "type": "terraform_data", "name": "a", "instances": [{}]}]}
    assert post(server, net, state(1, **full))[0] == 200
    for status, _, answer in (post(server, net, state(2)), post(server, net, state(2), "l1"), server.request("DELETE", net)):
        assert (status, problem(answer)) == (409, "StateExists") and "lock_address" in json.loads(answer)["detail"]
    assert server.request("LOCK", net, lock_info("l1"))[0] == 200
    assert post(server, net, state(2, **full), "l1")[0] == 200
    assert server.request("DELETE", net + "?ID=l1")[0] == 200


def test_versions_are_kept_and_rolled_back_to(server, net):
    for serial in (1, 2, 3):
        assert post(server, net, state(serial, outputs={"n": {"value": serial, "type": "number"}}))[0] == 200
    assert server.get("/v1/executors/net/outputs")["n"]["value"] == 3
    assert json.loads(server.request("GET", net + "/versions/1")[2])["serial"] == 1
    assert server.request("GET", net + "/versions/9")[0] == 404
    assert server.request("GET", net + "/versions/0")[0] == 400
    assert server.request("LOCK", net, lock_info("l1"))[0] == 200
    assert server.request("POST", net + "/rollback", {"version": 1})[0] == 423
    assert server.request("DELETE", net + "/lock")[0] == 204
    status, _, body = server.request("POST", net + "/rollback", {"version": 1})
    assert (status, json.loads(body)["serial"], json.loads(body)["rollbackOf"]) == (200, 4, 1)
    assert server.get("/v1/executors/net/outputs")["n"]["value"] == 1
    assert len(server.get(net + "/versions")["items"]) == 4
    for body in ({}, {"version": "1"}, {"version": 1.5}, {"version": 1, "more": 1}):
        assert server.request("POST", net + "/rollback", body)[0] == 400, body
    assert server.request("POST", net + "/rollback", {"version": 77})[0] == 404


def test_a_large_state_goes_through_unchanged(server, net):
    large = state(1, padding="x" * (40 * 1024 * 1024))
    md5 = {"Content-MD5": base64.b64encode(hashlib.md5(large).digest()).decode()}
    assert post(server, net, large, headers=md5)[0] == 200
    assert server.request("GET", net)[2] == large


def test_writers_at_the_same_time_leave_a_history_without_holes(server, net):
    won = []

    def write(name):
        for serial in range(1, 21):
            if post(server, net, state(serial, writer=name))[0] == 200:
                won.append(serial)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    versions = server.get(net + "/versions")["items"]
    serials = [v["serial"] for v in versions]
    assert serials == sorted(set(serials), reverse=True)
    assert sorted(won) == sorted(serials)


def test_state_that_lives_elsewhere_is_not_served(home, server):
    storage = {"type": "local", "path": "/srv/x.tfstate"}
    body = document("far", home.module("far", MODULE), storage=storage)
    assert server.request("POST", "/v1/executors", body)[0] == 201
    status, _, answer = server.request("GET", "/v1/executors/far/state")
    assert (status, problem(answer)) == (409, "StateElsewhere")


# ---- the real tools ----


class Person:
    """Somebody with a tool and a checkout of their own, whose backend is the executor's state."""

    def __init__(self, home, tool, server, name, password=None):
        self.home, self.tool = home, tool
        self.directory = home.module(name, MODULE)
        address = server.url + "/v1/executors/net/state"
        self.env = {"TF_HTTP_ADDRESS": address, "TF_HTTP_LOCK_ADDRESS": address, "TF_HTTP_UNLOCK_ADDRESS": address,
                    "TF_HTTP_RETRY_MAX": "0", "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        self.env.update({"TF_HTTP_USERNAME": "anyone", "TF_HTTP_PASSWORD": password or server.token()})
        assert self("init", "-input=false").returncode == 0

    def __call__(self, *args, **kwargs):
        return self.home.run(self.tool, f"-chdir={self.directory}", *args, "-no-color", env=self.env, **kwargs)

    def apply(self, n, *args):
        return self("apply", "-auto-approve", "-input=false", f"-var=n={n}", *args)


@pytest.fixture(params=["tofu", "terraform"])
def tool(request):
    return request.getfixturevalue(request.param)


def test_the_real_tool_applies_reads_and_destroys(home, server, net, tool):
    person = Person(home, tool, server, "mine")
    result = person.apply(7)
    assert result.returncode == 0, result.stdout + result.stderr
    assert server.get("/v1/executors/net/outputs")["n"]["value"] == 7
    assert json.loads(person("output", "-json").stdout)["n"]["value"] == 7
    assert person("plan", "-detailed-exitcode", "-input=false", "-var=n=7").returncode == 0
    assert person("destroy", "-auto-approve", "-input=false").returncode == 0
    assert json.loads(server.request("GET", net)[2])["resources"] == []
    assert server.request("GET", net + "/lock")[0] == 204


def test_the_real_tool_shows_who_holds_the_lock_and_breaks_it_when_told(home, server, net, tool):
    person = Person(home, tool, server, "mine")
    assert server.request("LOCK", net, lock_info("11111111-2222-3333-4444-555555555555"))[0] == 200
    held = person.apply(1)
    assert held.returncode == 1
    assert "11111111-2222-3333-4444-555555555555" in "".join(held.stderr.split())
    freed = person("force-unlock", "-force", "11111111-2222-3333-4444-555555555555")
    assert freed.returncode == 0, freed.stdout + freed.stderr
    assert person.apply(1).returncode == 0


def test_tofu_and_terraform_at_the_same_time_never_write_over_each_other(home, server, net, tofu, terraform):
    people = [Person(home, tofu, server, "a"), Person(home, terraform, server, "b"), Person(home, tofu, server, "c")]
    failed = []

    def work(person, first):
        for n in range(first, first + 3):
            result = person.apply(n, "-lock-timeout=60s")
            if result.returncode != 0:
                failed.append(result.stderr)

    threads = [threading.Thread(target=work, args=(p, 10 * i)) for i, p in enumerate(people)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed
    versions = server.get(net + "/versions")["items"]
    serials = [v["serial"] for v in versions]
    assert serials == sorted(set(serials), reverse=True)
    assert len({v["lineage"] for v in versions}) == 1
    values = [json.loads(server.request("GET", f"{net}/versions/{v['version']}")[2])["outputs"]["n"]["value"]
              for v in reversed(versions)]
    assert sorted(set(values)) == [0, 1, 2, 10, 11, 12, 20, 21, 22], values
    for i in range(3):  # each tool's own applies came in order
        own = [v for v in values if v // 10 == i]
        assert own == sorted(own)


def test_without_waiting_one_of_two_real_tools_is_told_that_the_state_is_locked(home, server, net, tofu, terraform):
    slow = MODULE + 'resource "terraform_data" "slow" {\n  provisioner "local-exec" {\n    command = "sleep 3"\n  }\n}\n'
    first, second = Person(home, tofu, server, "a"), Person(home, terraform, server, "b")
    (first.directory / "main.tf").write_text(slow)
    running = home.popen(first.tool, f"-chdir={first.directory}", "apply", "-auto-approve", "-input=false", "-no-color",
                         env=first.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = ""
    while "Provisioning with" not in output:
        line = running.stdout.readline()
        assert line, output
        output += line
    assert "Lock Info" in second.apply(2).stderr
    assert running.wait(timeout=60) == 0
    running.stdout.close()
    assert second.apply(2).returncode == 0


SLOW = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "until [ -e %s ]; do sleep 0.1; done"
  }
}
"""


def test_the_lock_of_a_run_is_not_broken_by_whoever_reads_its_id(home, tool):
    path = token_file(home, reader="read", writer="write", boss="admin")
    gate = home.directory / "gate"
    isolation = "engine: {local: {isolation: auto}}\n"  # the gate is outside
    with Server(home, config=f"auth: {{tokenFile: {path}}}\n" + isolation) as server:
        body = document("net", home.module("net", SLOW % gate))
        assert server.request("POST", "/v1/executors", body, bearer("writer"))[0] == 201
        run = {"action": "provision", "autoApprove": True}
        assert server.request("POST", "/v1/executors/net/runs", run, bearer("boss"))[0] == 201

        def lock_of(action):
            status, _, body = server.request("GET", "/v1/executors/net/state/lock", headers=bearer("reader"))
            return json.loads(body)["ID"] if status == 200 and action in json.loads(body)["Operation"] else None

        lock = wait_for("the apply to hold the lock", lambda: lock_of("Apply"))
        net = "/v1/executors/net/state"
        status, _, answer = server.request("UNLOCK", net, lock_info(lock), bearer("writer"))
        assert (status, problem(answer)) == (403, "Forbidden")
        status, _, answer = server.request("POST", f"{net}?ID={lock}", state(50), bearer("writer"))
        assert (status, problem(answer)) == (423, "StateLocked")
        status, _, answer = server.request("DELETE", f"{net}?ID={lock}", headers=bearer("boss"))
        assert (status, problem(answer)) == (423, "StateLocked")
        person = Person(home, tool, server, "mine", "writer" * 2)
        assert person("force-unlock", "-force", lock).returncode == 1, "only an admin breaks a lock"
        person.env["TF_HTTP_PASSWORD"] = "boss" * 2
        assert person("force-unlock", "-force", lock).returncode == 0
        gate.touch()
        ended = wait_for("the run to end", lambda: phase(server) not in (None, "Pending", "Running") and phase(server))
        assert ended in ("Succeeded", "Failed")


def phase(server):
    status, _, body = server.request("GET", "/v1/runs/net-1", headers=bearer("reader"))
    return json.loads(body)["status"].get("phase") if status == 200 else None


def test_people_use_their_token_as_the_password(home, tool):
    path = token_file(home, reader="read", writer="write", boss="admin")
    with Server(home, config=f"auth: {{tokenFile: {path}}}\n") as server:
        body = document("net", home.module("net", MODULE))
        assert server.request("POST", "/v1/executors", body, bearer("writer"))[0] == 201
        person = Person(home, tool, server, "mine", "writer" * 2)
        assert person.apply(3).returncode == 0
        person.env["TF_HTTP_PASSWORD"] = "reader" * 2
        denied = person.apply(4)
        assert denied.returncode == 1 and "invalid auth" in denied.stderr
