"""dayfly-runner as it lives in a pod: hand-over and token in files, https to the spawner, PID 1, termination log."""

import json
import os
import signal
import subprocess
import urllib.parse

import pytest

from lib import dayfly, web
from lib.dayfly import wait_for

UID = "4b1d7a52-0000-4000-8000-000000000001"
MODULE = 'resource "terraform_data" "a" { input = "hello" }\n'
# tofu is asked to end while this waits; the first resource must be in the state then.
SLOW = """
resource "terraform_data" "first" { input = "first" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "touch %s; exec sleep 1000" }
}
"""


class Handler(web.Handler):
    def tell(self, status, body=None):
        self.answer(status, b"" if status == 204 else json.dumps(body or {}).encode(), Content_Type="application/json")

    def do_POST(self):
        path = urllib.parse.urlsplit(self.path).path.removeprefix(f"/v1/steps/{UID}")
        self.server.owner.take(self, path, self.body(), self.headers["Authorization"].removeprefix("Bearer "))

    do_PUT = do_POST


class Spawner(web.Server):
    """Plays the spawner's side of docs/step-protocol.md over https for one step."""

    def __init__(self, directory, name="IP:127.0.0.1"):
        self.document = None
        self.good_token = "pod-token"
        self.claims, self.tokens, self.log, self.result = [], [], b"", None
        self.holder = None
        self.ca, key = web.self_signed(directory, "spawner", name)
        super().__init__(Handler, (self.ca, key))

    def claim(self, request, claim, token):
        self.claims.append(claim)
        self.tokens.append(token)
        if token != self.good_token:
            return request.tell(503)
        if self.holder and self.holder != claim["claimId"]:
            return request.tell(409, {"type": "https://dayfly.dev/problems/AlreadyClaimed"})
        self.holder = claim["claimId"]
        return request.tell(200, self.document)

    def take(self, request, path, body, token):
        if path == "/claim":
            return self.claim(request, json.loads(body), token)
        if token != "step-token":
            return request.tell(401)
        if path == "/streams/log":
            self.log += body
            return request.tell(200, {"offset": len(self.log)})
        if path == "/streams/events":
            self.events = getattr(self, "events", 0) + len(body)
            return request.tell(200, {"offset": self.events})
        if path == "/result":
            self.result = json.loads(body)
            return request.tell(200)
        return request.tell(204 if path == "/progress" else 201)


class Pod:
    """The files that a pod of a step has, in a directory instead of at /run/dayfly."""

    def __init__(self, home, text=MODULE):
        self.home = home
        self.directory = home.directory / "pod"
        self.directory.mkdir()
        self.work = self.directory / "work"
        self.state = self.directory / "kept.tfstate"
        self.termination = self.directory / "termination-log"
        self.termination.write_text("")
        self.token = self.directory / "token"
        self.token.write_text("pod-token\n")
        self.file = self.directory / "handoff.json"
        self.output = self.directory / "output"
        module = home.module("module", text)
        self.document = {
            "uid": UID, "run": "net-1", "action": "plan", "stepToken": "step-token", "runtime": {"name": "opentofu"},
            "tools": {"directories": [str(home.bin)], "cacheDirectory": str(self.directory / "tools")},
            "source": {"url": f"file://{module}", "kind": "directory"},
            "state": {"type": "local", "config": {"path": str(self.state)}}, "mask": ["pod-token"],
        }

    def start(self, prefix=(), **handoff):
        handoff = {"terminationLog": str(self.termination), **handoff}
        self.file.write_text(json.dumps(handoff))
        with open(self.output, "wb") as output:
            return self.home.popen(*prefix, dayfly.RUNNER, "step", "--handoff-file", self.file, "--work-dir", self.work,
                                   stdout=output, stderr=output)

    def run(self, **handoff):
        return self.start(**handoff).wait(timeout=dayfly.DEADLINE)

    def said(self):
        return self.output.read_text(errors="replace")

    def left(self):
        text = self.termination.read_text()
        return json.loads(text) if text else None


@pytest.fixture
def pod(home):
    return Pod(home)


@pytest.fixture
def spawner(pod, tmp_path):
    playing = Spawner(tmp_path)
    playing.document = pod.document
    yield playing
    playing.stop()


def by_token(pod, spawner, **more):
    return {"server": spawner.url, "uid": UID, "tokenFile": str(pod.token), "caFile": str(spawner.ca), **more}


@pytest.fixture
def leader(pod, spawner, tmp_path):
    """Makes a second replica, whose certificate has this name, and says that it leads: at another name of this host."""
    playing = []

    def make(name):
        directory = tmp_path / "leader"
        directory.mkdir()
        playing.append(Spawner(directory, name))
        offer = {"url": playing[0].url.replace("127.0.0.1", "localhost"), "forwarded": True}
        pod.document["leader"] = offer
        both = tmp_path / "both.pem"
        both.write_text(spawner.ca.read_text() + playing[0].ca.read_text())
        spawner.ca = both
        return playing[0]
    yield make
    playing[0].stop()


def test_a_step_goes_to_a_leader_whose_certificate_has_the_name_of_the_server(pod, spawner, leader):
    leading = leader("IP:127.0.0.1")
    assert pod.run(**by_token(pod, spawner)) == 0, pod.said()
    assert leading.result["exitCode"] == 0 and leading.log and not spawner.log and spawner.result is None


def test_a_leader_whose_certificate_has_another_name_gets_nothing(pod, spawner, leader):
    leading = leader("DNS:localhost")
    assert pod.run(**by_token(pod, spawner)) == 0, pod.said()
    assert leading.result is None and not leading.log
    assert spawner.result["exitCode"] == 0 and spawner.log
    assert "the replica that leads cannot be asked directly" in pod.said()


def test_a_pod_claims_its_step_and_reports_to_spawner_stdout_and_termination_log(pod, spawner):
    assert pod.run(**by_token(pod, spawner)) == 0, pod.said()
    assert spawner.result["reason"] == "Planned"
    assert pod.left()["reason"] == "Planned" and pod.left()["exitCode"] == 0
    assert "terraform_data.a will be created" in pod.said()
    assert b"terraform_data.a will be created" in spawner.log
    assert "pod-token" not in pod.said() + pod.termination.read_text()


def test_the_token_is_read_anew_at_each_try(pod, spawner):
    pod.token.write_text("expired\n")
    process = pod.start(**by_token(pod, spawner))
    wait_for("a refused claim", lambda: len(spawner.tokens) > 1)
    fresh = pod.directory / "fresh"
    fresh.write_text("pod-token")
    fresh.rename(pod.token)
    assert process.wait(timeout=dayfly.DEADLINE) == 0, pod.said()
    assert spawner.tokens[0] == "expired" and spawner.tokens[-1] == "pod-token"
    assert len({claim["claimId"] for claim in spawner.claims}) == 1


def test_a_second_pod_ends_with_3_and_touches_nothing(pod, spawner):
    spawner.holder = "somebody"
    assert pod.run(**by_token(pod, spawner)) == 3
    assert "another runner" in pod.said()
    assert "another runner" in pod.termination.read_text() and spawner.result is None
    assert not list((pod.work / "work" / "source").iterdir())


def test_an_unknown_authority_is_not_talked_to(pod, spawner):
    handoff = by_token(pod, spawner)
    del handoff["caFile"]
    assert pod.run(**handoff) == 3
    assert "certificate" in pod.said() and not spawner.claims


@pytest.mark.parametrize("change, message", [
    ({"tokenFile": None}, "one of token, tokenFile"),
    ({"token": "x"}, "one of token, tokenFile"),
    ({"server": None}, "no server or uid"),
    ({"uid": None}, "no server or uid"),
])
def test_a_hand_over_that_lacks_something_is_refused(pod, spawner, change, message):
    assert pod.run(**by_token(pod, spawner, **change)) == 3
    assert message in pod.said()


def test_as_first_process_it_ends_tofu_keeps_the_state_and_says_why(home, pod):
    """SIGTERM as the kubelet sends it."""
    started, report = pod.directory / "started", pod.directory / "report"
    home.module("module", SLOW % started)

    def start(action, **more):
        file = pod.directory / f"{action}.json"
        file.write_text(json.dumps({**pod.document, "action": action, **more}))
        return home.popen("unshare", "--pid", "--fork", "--mount-proc", dayfly.RUNNER, "step", "--file", file,
                          "--report-dir", report, "--work-dir", pod.directory / action,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def result():
        return json.loads((report / "result.json").read_text())

    assert start("plan").wait(timeout=dayfly.DEADLINE) == 0
    planned = result()
    process = start("apply", expected={"treeDigest": planned["source"]["treeDigest"], "toolName": "opentofu",
                                       "toolVersion": planned["tool"]["version"],
                                       "lockFileSha256": planned.get("lockFileSha256")})
    wait_for("the slow resource", started.exists)
    first, = dayfly.children(process.pid)
    os.kill(first, signal.SIGTERM)
    process.wait(timeout=dayfly.DEADLINE)
    assert (result()["reason"], result()["exitCode"]) == ("Canceled", 2), result()
    assert "first" in [r["name"] for r in json.loads(pod.state.read_text())["resources"]]
