"""dayfly-runner alone, with its state behind HTTP."""

import json

import pytest

from lib import web
from lib.steps import Steps


class Handler(web.Handler):
    def serve(self):
        owner, body = self.server.owner, self.body()
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


def test_a_state_that_cannot_be_stored_is_kept_and_said(either_home, state_server):
    steps = Steps(either_home)
    steps.run("plan", "Planned", state=state_server.document())
    state_server.refuse = {"POST": 409}
    result = steps.run("apply", "StateRefused", code=2, state=state_server.document())
    assert "errored state" in result["message"]
    kept = json.loads((steps.report / "errored-state").read_text())
    assert [r["name"] for r in kept["resources"]] == ["hello"]
    assert not (steps.work / "module" / "errored.tfstate").exists()
