"""Bytes that are no text, from a module's command to whoever reads: none is lost, and nothing around them."""

import base64
import json

from lib.commands import on_terminal
from lib.executor import Executor
from lib.redis import Redis
from lib.terrakube import Terrakube
from test_api import bearer, guarded  # noqa: F401 (a fixture)

# Both tools put a NUL into the JSON of events as \u0000; what is no UTF-8 is U+FFFD there already.
ODD = """
variable "code" { default = "0" }
resource "terraform_data" "a" {
  provisioner "local-exec" { command = "echo before; printf 'A\\\\000B\\\\n'; printf 'X\\\\377\\\\376Y\\\\302\\\\n'; echo the-reason-is-here >&2; exit ${var.code}" }
}
"""
VALUES = """
resource "terraform_data" "a" {
  for_each = toset([base64decode("awBl")])
  input    = each.key
}
output "text" { value = base64decode("QQBC") }
output "object" { value = { (base64decode("awBl")) = base64decode("AA==") } }
"""


HIDDEN = """
output "token" {
  value     = base64decode("czNjcmV0LWZpcnN0AHMzY3JldC1zZWNvbmQ=") # s3cret-first, NUL, s3cret-second
  sensitive = true
}
"""


def printed(home):
    """What the command's lines must be in the log: text of OpenTofu, events of Terraform."""
    if home.runtime == "opentofu":
        return [b"before", b"A\0B", b"X\xff\xfeY\xc2", b"the-reason-is-here"]
    return [b"before", b"A\0B", "X\ufffd\ufffdY\ufffd".encode(), b"the-reason-is-here"]


def lines(log):
    return [line.split(b"(local-exec): ")[1] for line in log.split(b"\n") if b"(local-exec): " in line and b"Executing" not in line]


def test_every_byte_that_a_command_prints_reaches_who_follows_and_who_reads(either_home):
    module = either_home.module("odd", ODD)
    followed = either_home.dayfly("run", module, "--auto-approve", text=False).stdout
    assert lines(followed) == printed(either_home) and b"Apply complete!" in followed
    stored = either_home.dayfly("logs", "odd-1", text=False).stdout
    assert lines(stored) == printed(either_home)
    again = either_home.dayfly("logs", "-f", "odd-1", text=False).stdout
    assert again == stored
    assert either_home.dayfly("logs", "-f", "odd-1", "--step", "apply", text=False).stdout in stored


def test_an_error_with_a_nul_is_an_event_and_the_reason(either_home):
    module = either_home.module("odd", ODD)
    failed = either_home.dayfly("run", module, "--auto-approve", "--var", "code=3", text=False, code=None)
    assert failed.returncode and lines(failed.stdout) == printed(either_home)
    assert b"Error: local-exec provisioner error\n\n  with terraform_data.a,\n" in failed.stdout and b'{"@level"' not in failed.stdout
    why = either_home.dayfly("why", "odd-1", text=False).stdout
    assert b"local-exec provisioner error (terraform_data.a)" in why and b"before\n" in why and b"the-reason-is-here\n" in why
    events = [json.loads(line) for line in either_home.dayfly("logs", "--events", "odd-1").stdout.splitlines()]
    outputs = [e["hook"]["output"] for e in events if e["type"] == "provision_progress"]
    assert outputs[1:] == ["before", "A\0B", "X\ufffd\ufffdY\ufffd", "the-reason-is-here"]
    assert [e for e in events if e["type"] == "diagnostic" and "A\0B" in e["diagnostic"]["detail"]]
    message = either_home.json("get", "run", "odd-1")["status"]["message"]
    assert "A^@B" in message and message.endswith("the-reason-is-here")


def test_a_terminal_shows_a_nul_as_it_shows_other_control_characters(home):
    module = home.module("odd", ODD)
    terminal = on_terminal(home, "run", module, "--auto-approve")
    assert terminal.end() == 0 and "(local-exec): A^@B\r" in terminal.shown and "\0" not in terminal.shown
    terminal = on_terminal(home, "logs", "odd-1")
    assert terminal.end() == 0 and "(local-exec): A^@B\r" in terminal.shown


def test_a_piece_of_the_followed_log_has_the_bytes_that_its_text_cannot_say(home, guarded):  # noqa: F811
    module = home.module("odd", ODD)
    executor = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "odd"},
                "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime}}}
    assert guarded.request("POST", "/v1/executors", executor, bearer("boss"))[0] == 201
    assert guarded.request("POST", "/v1/executors/odd/runs", {"action": "provision", "autoApprove": True}, bearer("boss"))[0] == 201
    stream = guarded.request("GET", "/v1/runs/odd-1/log?follow=true", headers=bearer("reader"))[2].decode()
    pieces = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith('data: {"step"')]
    pieces = [piece for piece in pieces if "text" in piece]
    whole = b"".join(base64.b64decode(p["bytes"]) if "bytes" in p else p["text"].encode() for p in pieces)
    assert whole == guarded.request("GET", "/v1/runs/odd-1/log", headers=bearer("reader"))[2]
    text = "".join(p["text"] for p in pieces)
    assert "A\ufffdB" in text and "X\ufffd\ufffdY\ufffd" in text and "\0" not in text
    assert [p for p in pieces if "bytes" in p] and [p for p in pieces if "bytes" not in p]
    for p in pieces:
        assert ("bytes" in p) == ("\ufffd" in p["text"])


def test_a_nul_in_a_state_and_in_outputs_is_kept(either_home):
    module = either_home.module("values", VALUES)
    followed = either_home.dayfly("run", module, "--auto-approve", text=False)
    assert b"Apply complete!" in followed.stdout and b"dayfly: only admins" not in followed.stdout
    shown = {name: output["value"] for name, output in either_home.json("outputs", "values").items()}
    assert shown == {"text": "A\0B", "object": {"k\0e": "\0"}}
    assert either_home.dayfly("outputs", "values", "text", text=False).stdout == b"A\0B\n"
    assert 'text = "A\\x00B"\n' in either_home.dayfly("outputs", "values").stdout
    assert '"A\\u0000B"' in either_home.dayfly("outputs", "values", "-o", "yaml").stdout
    assert either_home.dayfly("plan", module).returncode == 0
    assert either_home.dayfly("destroy", module, "--auto-approve").returncode == 0


def test_the_saved_output_of_a_job_of_terrakube_has_every_byte_and_its_scripts_no_value_with_a_nul(home, tmp_path):
    with Redis(tmp_path / "redis") as redis, Terrakube("2.33", redis=redis) as api:
        executor = Executor(home, api, redis)
        script = """printf '%s\\n' "$terraformOutput" s3cret-second s3cret-first; echo script-done"""
        command = {"runtime": "BASH", "script": script, "priority": 100, "before": False, "after": True, "verbose": False, "beforeInit": False}
        job = api.job(api.workspace("net", executor.source(text=ODD + HIDDEN)), ("terraformApply", {"commandList": [command]}))
        step = executor.run(job, TerrakubeEnableColorOutput="false")
        assert step.status == "completed", executor.said()
        saved = (executor.kept / "output" / api.organization / job.id / f"{step.id}.tfoutput").read_bytes()
        assert lines(saved) == printed(home)
        assert b"script-done" in saved and b"s3cret" not in saved
        shown = json.loads(executor.states(job.workspace)[0].read_text())["values"]["outputs"]["token"]["value"]
        assert shown == "s3cret-first\0s3cret-second"
