"""States at rest: sealed, bound to their executor and version, and refused when they are not what was stored."""

import json
import os
import re

import pytest

from lib.dayfly import Server

MODULE = """
variable "word" { sensitive = true }
resource "terraform_data" "a" { input = var.word }
"""
WORD = "hunter2-of-the-database"


def provision(home, name, word, code=0):
    home.dayfly("run", name, "--auto-approve", "--secret-var", "word=-", input=word + "\n", code=code)
    return home.json("get", "runs")["items"][0]["status"]


@pytest.fixture
def net(home):
    """An executor with two applies whose states hold WORD."""
    provision(home, home.module("net", MODULE), WORD)
    provision(home, "net", WORD + "-2")


def test_what_a_state_holds_is_in_none_of_its_files(home, net):
    assert WORD in home.dayfly("state", "pull", "net").stdout
    files = list(home.state.glob("blobs/data/state/*/*"))
    assert len(files) >= 2 and not [file for file in files if WORD.encode() in file.read_bytes()]


def test_a_version_in_the_place_of_another_is_refused_and_a_rollback_helps(home, net):
    newest, older = home.json("state", "list", "net")["items"][:2]
    before, file = sorted(home.state.glob("blobs/data/state/*/*.state"))[-2:]
    meta, document = file.read_bytes().split(b"\n", 1)
    other = before.read_bytes().split(b"\n", 1)[1]
    file.write_bytes(meta + b"\n" + other[:len(document)].ljust(len(document), b"x"))
    refused = home.dayfly("state", "pull", "net", code=1).stderr
    for words in ("executor net", f"version {newest['version']} of", "state rollback", "--replace"):
        assert words in refused, refused
    run = provision(home, "net", WORD + "-3", code=1)
    assert run["reason"] == "StateUnreadable" and "executor net" in run["message"], run
    home.dayfly("state", "rollback", "net", older["version"])
    assert json.loads(home.dayfly("state", "pull", "net").stdout)["serial"] == newest["serial"] + 1
    assert provision(home, "net", WORD + "-3")["phase"] == "Succeeded"


def test_a_version_is_answered_when_its_content_and_then_its_name_are_durable(home):
    with Server(home) as server:
        provision(home, home.module("net", MODULE), WORD)
    calls, file = home.directory / "calls", home.directory / "next.json"
    server = Server(home, data=server.data)
    strace = ("strace", "-D", "-f", "-y", "-s", "64", "-o", calls, "-e", "trace=fsync,rename,sendto,sendmsg,writev")
    server.start(prefix=("env", "ASAN_OPTIONS=detect_leaks=0", *strace))  # leaks cannot be looked for under ptrace
    state = json.loads(home.dayfly("state", "pull", "net").stdout)
    file.write_text(json.dumps({**state, "serial": state["serial"] + 1}))
    home.dayfly("state", "push", "net", file, "--replace")
    server.stop()
    lines = calls.read_text().splitlines()
    named = next(i for i, line in enumerate(lines) if "rename(" in line and '.state"' in line)
    upload, version = re.findall(r'"([^"]+)"', lines[named])
    assert any(f"<{upload}>" in line and "fsync(" in line for line in lines[:named])
    directory = next(i for i, line in enumerate(lines) if i > named and "fsync(" in line and f"<{os.path.dirname(version)}>" in line)
    assert not any("HTTP/1.1 2" in line for line in lines[named:directory])
    assert any("HTTP/1.1 2" in line for line in lines[directory:])
