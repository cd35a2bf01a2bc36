"""dayfly-runner alone, with its state behind HTTP."""

import json
import re
import subprocess

import pytest

from lib import web
from lib.steps import HELLO, Steps


STATE = json.dumps({"version": 4, "terraform_version": "1.6.0", "serial": 1, "lineage": "another", "outputs": {},
                    "resources": [], "check_results": None}).encode()
BAD = 'resource "terraform_data" "bad" {\n  provisioner "local-exec" { command = "exit 1" }\n}\n'


class Handler(web.Handler):
    def break_off(self, body):
        """An answer whose sender dies in the middle."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:len(body) // 2])
        self.close_connection = True

    def serve(self):
        owner, body = self.server.owner, self.body()
        owner.asked.append(self.command)
        if self.command in owner.refuse:
            return self.answer(owner.refuse[self.command])
        if self.command == "LOCK":
            if owner.lock:
                return self.answer(423, owner.lock)
            owner.lock = body
        elif self.command == "UNLOCK":
            owner.lock = None
        elif self.command == "POST":
            owner.state = body
        elif self.command == "GET" and owner.breaks and owner.breaks.pop(0):
            return self.break_off(owner.state or STATE)
        elif self.command == "GET" and owner.state is None:
            return self.answer(204)
        return self.answer(200, owner.state if self.command == "GET" else b"")

    do_GET = do_POST = do_LOCK = do_UNLOCK = serve


class StateServer(web.Server):
    """A state backend that says no on demand."""

    def __init__(self):
        self.state = None
        self.lock = None
        self.refuse = {}  # method -> status
        self.breaks = []  # of the next GETs: does the answer break off?
        self.asked = []  # methods
        super().__init__(Handler)

    def document(self):
        return {"type": "managed", "address": f"{self.url}/state", "username": "u", "password": "state-password"}


@pytest.fixture
def state_server():
    with StateServer() as server:
        yield server


def test_managed_state_goes_through_http(either_home, state_server):
    steps = Steps(either_home)
    steps.run("plan", "Planned", state=state_server.document())
    assert state_server.lock is None and state_server.state is None
    steps.run("apply", "Applied", state=state_server.document())
    assert json.loads(state_server.state)["outputs"]["greeting"]["value"] == "hello world"
    assert state_server.lock is None
    assert "state-password" not in (steps.report / "plan").read_text(errors="replace")


def test_a_locked_state_names_its_holder(either_home, state_server):
    steps = Steps(either_home)
    state_server.lock = json.dumps({"ID": "1234-5678", "Operation": "OperationTypeApply", "Info": "",
                                    "Who": "somebody@elsewhere", "Version": "1.0.0",
                                    "Created": "2026-01-02T03:04:05Z", "Path": ""}).encode()
    result = steps.run("plan", "StateLocked", code=1, state=state_server.document())
    assert "1234-5678" in result["message"]
    if steps.home.runtime == "opentofu":  # terraform describes its own attempt instead
        assert "somebody@elsewhere" in result["message"]


def test_a_state_that_cannot_be_read_is_said_to_be_away(either_home, state_server):
    steps = Steps(either_home)
    document = state_server.document()
    state_server.refuse = {"GET": 403}
    steps.run("plan", "StateRefused", code=1, state=document)


def test_a_plan_of_another_state_is_not_even_given_to_the_tool(either_home, state_server):
    """Tools of before 1.6 take a plan of no state for any."""
    steps = Steps(either_home)
    steps.run("plan", "Planned", state=state_server.document())
    other = {**state_server.document(), "lineage": "11111111-2222-3333-4444-555555555555", "serial": 7}
    refused = steps.run("apply", "PlanStale", code=1, state=other)
    assert "11111111-2222-3333-4444-555555555555" in refused["message"] and "plan again" in refused["message"]
    steps.run("apply", "Applied", state=state_server.document())
    steps.run("plan-destroy", "Planned", state=state_server.document())
    now = json.loads(state_server.state)
    same = {**state_server.document(), "lineage": now["lineage"], "serial": now["serial"]}
    assert "now" in steps.run("apply", "PlanStale", code=1, state={**same, "serial": now["serial"] + 1})["message"]
    steps.run("apply", "Destroyed", state=same)


def test_a_state_that_cannot_be_stored_is_kept_and_said(either_home, state_server):
    steps = Steps(either_home)
    steps.run("plan", "Planned", state=state_server.document())
    state_server.refuse = {"POST": 409}
    result = steps.run("apply", "StateRefused", code=2, state=state_server.document())
    assert "errored state" in result["message"]
    kept = json.loads((steps.report / "errored-state").read_text())
    assert [r["name"] for r in kept["resources"]] == ["hello"]
    assert not (steps.work / "module" / "errored.tfstate").exists()


FILLS = """resource "terraform_data" "fills" {
  provisioner "local-exec" { command = "cat /dev/zero >filler || true" }
}
"""


def test_a_state_that_no_disk_had_room_for_is_not_said_to_be_kept(either_home, state_server):
    steps, small = Steps(either_home, FILLS), either_home.directory / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", small], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount")
    try:
        steps.run("plan", "Planned", state=state_server.document())
        state_server.refuse = {"POST": 409}
        result = steps.run("apply", "StateRefused", code=2, state=state_server.document(), work=small / "step")
    finally:
        subprocess.run(["umount", "-l", small], check=True)
    assert "the errored state is cut off: the log has what the tool could print of it" in result["message"], result
    assert "push it" not in result["message"]
    assert re.search('"name": ?"fills"', steps.log()), "the tool prints what it cannot write"


@pytest.mark.parametrize("ends", ["well", "badly"])
def test_a_file_of_the_source_is_not_taken_for_a_state_that_could_not_be_stored(home, ends):
    steps = Steps(home, HELLO if ends == "well" else BAD, **{"errored.tfstate": STATE.decode()})
    home.repository(steps.module)
    source = {"url": f"file://{steps.module}", "kind": "git", "branch": "main"}
    steps.run("plan", "Planned", source=source)
    if ends == "well":
        steps.run("apply", "Applied", source=source)
    else:
        assert "errored" not in steps.run("apply", "ApplyFailed", code=2, source=source)["message"]
    assert not (steps.report / "errored-state").exists() and "errored" not in steps.log()


# ---- an answer that breaks off ----

AGAIN = "dayfly: the answer with the state broke off before the command began its work; it is run again"


@pytest.fixture
def applied(either_home, state_server):
    """Steps whose state holds a resource, and whose next plan has a change."""
    steps = Steps(either_home)
    steps.run("plan", "Planned", state=state_server.document())
    steps.run("apply", "Applied", state=state_server.document())
    (steps.module / "more.tf").write_text('resource "terraform_data" "more" { input = "more" }')
    return steps


def test_a_state_that_breaks_off_fails_neither_plan_nor_apply(applied, state_server):
    state_server.breaks = [True, True]  # the plan, which needs no init
    applied.run("plan", "Planned", state=state_server.document())
    assert applied.log().count(AGAIN) == 2 and not state_server.breaks and state_server.lock is None

    state_server.breaks, state_server.asked = [True, True], []
    result = applied.run("apply", "Applied", state=state_server.document())
    assert result["planSummary"]["add"] == 1
    assert applied.log().count(AGAIN) == 2
    assert [e["hook"]["resource"]["addr"] for e in applied.events() if e["type"] == "apply_start"] == \
        ["terraform_data.more"]
    assert [m for m in state_server.asked if m != "GET"][:6] == ["LOCK", "UNLOCK"] * 2 + ["LOCK", "POST"]
    assert state_server.lock is None
    assert {r["name"] for r in json.loads(state_server.state)["resources"]} == {"hello", "more"}


@pytest.mark.parametrize("command", [["mv", "terraform_data.hello", "terraform_data.moved"],
                                     ["rm", "terraform_data.hello"],
                                     ["import", "terraform_data.more", "an-id"]])
def test_a_state_that_breaks_off_fails_no_command_on_the_state(applied, state_server, command):
    state_server.breaks = [False, True]  # init, the command
    applied.run("state", "StateChanged", state=state_server.document(), command=command)
    assert applied.log().count(AGAIN) == 1 and not state_server.breaks and state_server.lock is None


def test_a_state_that_always_breaks_off_ends_the_step(home, state_server):
    steps = Steps(home)
    state_server.breaks = [True] * 100
    steps.run("plan", "StateUnavailable", code=1, state=state_server.document())
    assert state_server.asked == ["GET"] * 5


def test_an_apply_that_meets_a_broken_state_behind_its_work_is_not_begun_again(either_home, state_server):
    """Without a state, the tool reads it a second time before it stores the first one."""
    steps = Steps(either_home)
    steps.run("plan", "Planned", state=state_server.document())
    state_server.breaks, state_server.asked = [False, True], []
    result = steps.run("apply", "StateUnavailable", code=2, state=state_server.document())
    assert "Failed to read remote state" in result["message"]
    assert state_server.asked == ["LOCK", "GET", "GET", "UNLOCK"]
    assert AGAIN not in steps.log()
    kept = json.loads((steps.report / "errored-state").read_text())
    assert [r["name"] for r in kept["resources"]] == ["hello"]


def test_an_apply_that_began_a_resource_is_not_begun_again_whatever_its_error(home, state_server):
    steps = Steps(home)
    steps.run("plan", "Planned", state=state_server.document())
    real, runs = (home.bin / "tofu").resolve(), home.directory / "runs"
    event = json.dumps({"type": "diagnostic", "@message": "Error", "diagnostic": {
        "severity": "error", "summary": "error loading state: Failed to read remote state: unexpected EOF"}})
    (home.bin / "tofu").unlink()
    (home.bin / "tofu").write_text(f"""#!/bin/sh
[ "$1" = apply ] || exec {real} "$@"
echo >> {runs}
{real} "$@"
for word; do case $word in -json-into=*) echo '{event}' >> "${{word#*=}}" ;; esac; done
exit 1
""")
    (home.bin / "tofu").chmod(0o755)
    steps.run("apply", "StateUnavailable", code=2, state=state_server.document())
    assert runs.read_text() == "\n"
