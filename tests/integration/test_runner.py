"""dayfly-runner alone: steps from files, real OpenTofu and Terraform, no spawner."""

import json
import os
import pathlib
import re
import subprocess
from hashlib import sha256

import pytest

from lib import dayfly
from lib.steps import HELLO, Steps

# ---- the main job ----

def test_plan_apply_and_destroy_in_separate_runners(either_home):
    steps = Steps(either_home)
    planned = steps.run("plan", "Planned")
    assert planned["hasChanges"] and {k: n for k, n in planned["planSummary"].items() if n} == {"add": 1}
    assert "terraform_data.hello will be created" in steps.log()
    bundle = (steps.report / "plan").read_bytes()
    assert planned["plan"] == {"sha256": sha256(bundle).hexdigest(), "size": len(bundle)}

    applied = steps.run("apply", "Applied")
    assert applied["planSummary"]["add"] == 1
    assert steps.resources() == {"hello": "ok"}
    assert 'greeting = "hello world"' in steps.log()
    assert "Initializing" not in steps.log(), "the backend's note came with the plan"
    assert json.loads((steps.report / "outputs").read_text())["greeting"]["value"] == "hello world"

    assert not steps.run("plan", "NoChanges")["hasChanges"]
    assert steps.run("plan-destroy", "Planned")["planSummary"]["destroy"] == 1
    steps.run("apply", "Destroyed")
    assert steps.resources() == {}


def parts_of(bundle):
    header = json.loads(bundle[19:19 + int(bundle[10:18], 16)])
    return [part["name"] for part in header["parts"]]


def test_a_plan_is_kept_with_its_json_for_those_who_decide(steps):
    steps.run("plan", "Planned")
    assert parts_of((steps.report / "plan").read_bytes()) == ["plan", "plan.json", "backend", "files", "masks"]


def test_a_plan_that_nobody_reviews_is_not_shown_and_can_be_applied(steps):
    steps.run("plan", "Planned", reviewed=False)
    assert parts_of((steps.report / "plan").read_bytes()) == ["plan", "backend", "files", "masks"]
    steps.run("apply", "Applied")
    assert steps.resources() == {"hello": "ok"}


def garbage_collection(steps, **own):
    """What each command of tofu was told about it."""
    said, real = steps.home.directory / "said", (steps.home.bin / "tofu").resolve()
    (steps.home.bin / "tofu").unlink()
    (steps.home.bin / "tofu").write_text(f'#!/bin/sh\necho "$1 ${{GOGC:-own}}" >> {said}\nexec {real} "$@"\n')
    (steps.home.bin / "tofu").chmod(0o755)
    steps.run("plan", "Planned", **own)
    steps.run("apply", "Applied", **own)
    return dict(line.split() for line in said.read_text().splitlines())


def test_commands_that_allocate_little_collect_less_garbage(steps):
    told = garbage_collection(steps)
    assert {told[command] for command in ("init", "show", "plan", "apply", "output")} == {"200"}


def test_what_the_step_says_of_garbage_collection_stands(steps):
    told = garbage_collection(steps, environment={"GOGC": "50"})
    assert {told[command] for command in ("init", "show", "plan", "apply")} == {"50"}


def test_events_of_plan_and_apply_are_kept_as_json(either_home):
    steps = Steps(either_home)
    steps.run("plan", "Planned")
    assert {"version", "planned_change", "change_summary"} <= {e["type"] for e in steps.events()}
    steps.run("apply", "Applied")
    assert {"apply_start", "apply_complete", "change_summary", "outputs"} <= {e["type"] for e in steps.events()}


def test_a_change_of_outputs_alone_is_a_change(steps):
    steps.run("plan", "Planned")
    steps.run("apply", "Applied")
    (steps.module / "more.tf").write_text('output "more" { value = 1 }')
    result = steps.run("plan", "Planned")
    assert result["hasChanges"] and result["planSummary"]["add"] == 0
    steps.run("apply", "Applied")
    assert "more" in json.loads(steps.state.read_text())["outputs"]


def test_the_timeline_names_every_stage_in_order(steps):
    timeline = steps.run("plan", "Planned")["timeline"]
    names = [entry["name"] for entry in timeline]
    assert names == ["started", "claimed", "sourced", "initialized", "executed", "stored"]
    times = [entry["at"] for entry in timeline]
    assert times == sorted(times) and all(re.fullmatch(r"[-0-9]+T[0-9:]+\.\d{6}Z", t) for t in times)


def test_variables_and_arguments_reach_the_plan(steps):
    steps.run("plan", "Planned", variables={"name": "you ${x} \"q\""}, arguments=["-parallelism=1"])
    steps.run("apply", "Applied", variables={"name": "you ${x} \"q\""}, arguments=["-parallelism=1"])
    assert json.loads(steps.state.read_text())["outputs"]["greeting"]["value"] == 'hello you ${x} "q"'


def test_the_result_stands_beside_the_work_directory_too(steps):
    result = steps.run("plan", "Planned")
    kept = json.loads((steps.work / "result.json").read_text())
    assert kept["reason"] == "Planned" and kept["plan"] == result["plan"]
    assert not (steps.work / "work" / "secret").exists(), "secrets are removed at the end"


def test_without_a_work_directory_nothing_is_left_behind(steps):
    temporary = steps.home.directory / "tmp"
    temporary.mkdir()
    steps.file = steps.home.directory / "step.json"
    steps.file.write_text(json.dumps(steps.document("plan")))
    done = steps.home.run(dayfly.RUNNER, "step", "--file", steps.file, "--report-dir", steps.report,
                          env={"TMPDIR": str(temporary)})
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == []


def test_a_closed_stdout_does_not_hurt(steps):
    steps.file = steps.home.directory / "step.json"
    steps.file.write_text(json.dumps(steps.document("plan")))
    read, write = os.pipe()
    os.close(read)
    process = steps.home.popen(dayfly.RUNNER, "step", "--file", steps.file, "--report-dir", steps.report,
                               stdout=write, stderr=subprocess.DEVNULL)
    os.close(write)
    code, result = steps.finish(process)
    assert (code, result["reason"]) == (0, "Planned")


# ---- modules ----

def test_local_and_fetched_modules_work_in_plan_and_apply(either_home):
    fetched = either_home.module("fetched", """
resource "terraform_data" "read" { input = "x" }
resource "terraform_data" "run" {
  input = terraform_data.read.id
  provisioner "local-exec" { command = "cat ${path.module}/note.txt > $NOTE" }
}
""", **{"note.txt": "from the module"})
    either_home.repository(fetched)
    steps = Steps(either_home, f"""
module "near" {{ source = "./near" }}
module "far" {{ source = "git::file://{fetched}" }}
""")
    (steps.module / "near").mkdir()
    (steps.module / "near" / "main.tf").write_text('resource "terraform_data" "n" { input = path.module }')
    note = either_home.directory / "note"
    steps.run("plan", "Planned", environment={"NOTE": str(note)})
    steps.run("apply", "Applied", environment={"NOTE": str(note)})
    assert note.read_text() == "from the module"
    assert "Initializing" not in steps.log(), "the fetched modules came with the plan"


@pytest.mark.parametrize("text, reason, word", [
    ('resource "x" {', "InitFailed", "main.tf:1"),
    ('output "o" { value = terraform_data.none.id }', "PlanFailed", "main.tf:1"),
    ('variable "v" {}\noutput "o" { value = var.v }', "PlanFailed", "No value for required variable"),
    ('module "m" { source = "./none" }', "InitFailed", "none"),
    ('terraform {\n  cloud {}\n}', "BackendInModule", "`cloud` in main.tf, line 2"),
])
def test_a_bad_module_is_named_with_its_place(either_home, text, reason, word):
    steps = Steps(either_home, text)
    result = steps.run("plan", reason, code=1)
    assert word in result["message"]
    assert not steps.state.exists()


def test_a_provider_that_cannot_be_had_is_named(either_home):
    steps = Steps(either_home, """
terraform {
  required_providers {
    none = { source = "registry.invalid/none/none" }
  }
}
""")
    mirror = steps.home.directory / "mirror"
    mirror.mkdir()
    result = steps.run("plan", "InitFailed", code=1, providers={"filesystemMirror": str(mirror)})
    assert "registry.invalid/none/none" in result["message"]


def test_a_backend_of_the_module_is_overridden_where_the_document_says_so_alone(steps):
    (steps.module / "backend.tf").write_text('terraform {\n  backend "s3" { bucket = "none" }\n}\n')
    refused = steps.run("plan", "BackendInModule", code=1)
    assert '`backend "s3"` in backend.tf, line 2' in refused["message"]
    assert not steps.state.exists()
    state = {"type": "local", "config": {"path": str(steps.state)}, "overrideBackend": True}
    steps.run("plan", "Planned", state=state)
    steps.run("apply", "Applied", state=state)
    assert "is overridden" in steps.log()
    assert steps.resources() == {"hello": "ok"}


def test_a_state_file_in_the_source_is_not_lost_silently(steps):
    steps.run("plan", "Planned")
    steps.run("apply", "Applied")
    steps.state.rename(steps.module / "terraform.tfstate")
    steps.home.repository(steps.module)
    result = steps.run("plan", "BackendInModule", code=1,
                       source={"url": f"file://{steps.module}", "kind": "git", "branch": "main"})
    assert "terraform.tfstate" in result["message"]
    result = steps.run("plan", "BackendInModule", code=1)
    assert "terraform.tfstate" in result["message"], "a directory is copied without its states, and refused like the rest"


# ---- what tofu gets to see ----

def test_the_environment_is_composed_not_inherited(steps):
    seen = steps.home.directory / "seen"
    (steps.module / "env.tf").write_text(f"""
resource "terraform_data" "env" {{
  provisioner "local-exec" {{ command = "env > {seen}; readlink /proc/$PPID/fd/* > {seen}.fds" }}
}}
""")
    stray = {"TF_VAR_name": "stray", "TF_LOG": "trace", "TF_CLI_ARGS": "-nonsense", "AWS_SECRET_ACCESS_KEY": "stray",
             "TF_CLI_CONFIG_FILE": "/nowhere", "TF_WORKSPACE": "stray"}
    own = {"environment": {"REGION": "eu", "KEYFILE": "@files/key.json"}, "files": {"key.json": "{}"}}
    steps.run("plan", "Planned", env=stray, **own)
    steps.run("apply", "Applied", env=stray, **own)
    env = dict(line.split("=", 1) for line in seen.read_text().splitlines() if "=" in line)
    assert not {"TF_LOG", "TF_CLI_ARGS", "AWS_SECRET_ACCESS_KEY", "TF_WORKSPACE", "TF_VAR_name"} & env.keys()
    assert env["REGION"] == "eu"
    assert env["KEYFILE"].endswith("/key.json")
    assert str(steps.work) in env["HOME"] and env["TMPDIR"].startswith((str(steps.work), "/tmp/dayfly-"))
    assert json.loads(steps.state.read_text())["outputs"]["greeting"]["value"] == "hello world"
    assert str(steps.file) not in pathlib.Path(f"{seen}.fds").read_text()


def test_secrets_are_masked_wherever_they_show(steps):
    """Also where the module insists that its variable is not sensitive, so that tofu shows it."""
    secret = "pa55-wörd/x+y=="
    (steps.module / "leak.tf").write_text("""
variable "leak" { sensitive = false }
resource "terraform_data" "leak" {
  input = var.leak
  provisioner "local-exec" { command = "echo shell $TF_VAR_leak; printf %s \\"$TF_VAR_leak\\" | base64" }
}
output "leaked" { value = base64encode(var.leak) }
""")
    own = {"secretEnvironment": {"TF_VAR_leak": secret}, "mask": [secret]}
    steps.run("plan", "Planned", **own)
    said = [steps.log(), (steps.report / "events").read_text(), steps.output.read_text()]
    result = steps.run("apply", "Applied", **own)
    said += [steps.log(), (steps.report / "events").read_text(), steps.output.read_text(), json.dumps(result)]
    for text in said:
        assert secret not in text and "cGE1NS13" not in text
    assert "***" in said[0]


def test_what_a_plan_masked_is_masked_in_its_apply_and_in_the_outputs(steps):
    """A plan may hold keys that were made for its step alone."""
    key = "key-of-the-plans-step"
    steps.run("plan", "Planned", mask=[key], variables={"name": key})
    steps.run("apply", "Applied", mask=["key-of-the-applys-step"])
    assert key in steps.state.read_text()
    assert 'greeting = "hello ***"' in steps.log() and key not in steps.log() + json.dumps(steps.events())
    outputs = json.loads((steps.report / "outputs").read_text())
    assert outputs["greeting"]["shown"] == "hello ***" and outputs["greeting"]["value"] == f"hello {key}"


def test_a_secret_in_an_error_is_masked_in_the_message(steps):
    (steps.module / "fail.tf").write_text("""
variable "leak" { sensitive = false }
resource "terraform_data" "leak" {
  lifecycle {
    precondition {
      condition     = var.leak == ""
      error_message = "no good: ${var.leak}"
    }
  }
}
""")
    result = steps.run("plan", "PlanFailed", code=1, secretEnvironment={"TF_VAR_leak": "hunter22"})
    assert "no good: ***" in result["message"]


# ---- refusals of a plan ----

@pytest.fixture
def planned(steps):
    steps.run("plan", "Planned")
    return steps


def rewrite_header(steps, change):
    """Changes the header of the stored bundle."""
    path = steps.report / "plan"
    bundle = path.read_bytes()
    size = int(bundle[10:18], 16)
    header = json.loads(bundle[19:19 + size])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(b"DFBUNDLE1\n%08x\n" % len(text) + text + bundle[19 + size:])


def set_in(*path, value):
    def change(header):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value
    return change


@pytest.mark.parametrize("reason, change", [
    ("PlanOfOtherRun", set_in("run", value="other-1")),
    ("SourceChanged", set_in("source", "treeDigest", value="0" * 64)),
    ("SourceChanged", set_in("source", "commit", value="0" * 40)),
    ("ToolVersionChanged", set_in("tool", "version", value="1.2.3")),
    ("ToolVersionChanged", set_in("tool", "name", value="pulumi")),
    ("LockFileChanged", set_in("lockFileSha256", value="0" * 64)),
    ("PlanCorrupt", set_in("parts", 0, "sha256", value="0" * 64)),
    ("PlanCorrupt", set_in("parts", value=[])),
])
def test_a_plan_of_something_else_is_refused(planned, reason, change):
    rewrite_header(planned, change)
    planned.run("apply", reason, code=1)
    assert not planned.state.exists()


def test_any_flipped_bit_of_the_parts_is_refused(planned):
    path = planned.report / "plan"
    good = path.read_bytes()
    first = 19 + int(good[10:18], 16)
    for at in range(first, len(good), (len(good) - first) // 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:])
        planned.run("apply", "PlanCorrupt", code=1)
    path.write_bytes(good[:-1])
    planned.run("apply", "PlanCorrupt", code=1)
    assert not planned.state.exists()
    path.write_bytes(good)
    planned.run("apply", "Applied")


def test_a_missing_plan_is_refused(planned):
    (planned.report / "plan").unlink()
    planned.run("apply", "PlanMissing", code=1)


def test_a_source_that_changed_since_the_plan_is_refused(planned):
    (planned.module / "main.tf").write_text(HELLO + "# one byte more")
    result = planned.run("apply", "SourceChanged", code=1)
    assert "plan again" in result["message"]
    assert not planned.state.exists()


def test_another_tool_version_than_planned_is_refused(planned):
    planned.plan_result["tool"]["version"] = "1.2.3"
    result = planned.run("apply", "ToolVersionChanged", code=1)
    assert "1.2.3" in result["message"]


def test_a_lock_file_that_was_not_approved_is_refused(planned):
    planned.plan_result["lockFileSha256"] = "0" * 64
    planned.run("apply", "LockFileChanged", code=1)


def test_the_lock_file_of_the_plan_is_the_one_applied(home):
    steps = Steps(home)
    (steps.module / ".terraform.lock.hcl").write_text("# a lock file that nobody needs\n")
    result = steps.run("plan", "Planned")
    assert result["lockFileSha256"] == sha256(b"# a lock file that nobody needs\n").hexdigest()
    assert steps.run("apply", "Applied")["lockFileSha256"] == result["lockFileSha256"]


# ---- bad input ----

@pytest.mark.parametrize("changes, word", [
    ({"action": "refresh"}, "refresh"),
    ({"action": "terrakube-plan"}, "terrakube-plan"),
    ({"runtime": {"name": "pulumi"}}, "pulumi"),
    ({"runtime": {"name": "opentofu", "version": "newest"}}, "newest"),
    ({"state": {"type": "local", "config": {"path": "relative.tfstate"}}}, "absolute"),
    ({"state": None}, "state.type"),
    ({"environment": {"A B": "x"}}, "A B"),
])
def test_an_invalid_step_is_refused_with_its_fault(steps, changes, word):
    changes = dict(changes)
    action = changes.pop("action", "plan")
    result = steps.run(action, "InvalidStep", code=3, **changes)
    assert word in result["message"]


def test_a_source_that_is_not_there_is_named(steps):
    result = steps.run("plan", "SourceFailed", code=1, source={"url": "file:///no/such/dir", "kind": "directory"})
    assert "/no/such/dir" in result["message"]


@pytest.mark.parametrize("text", ["", "{", "[1,2]", '{"a":1,"a":2}'])
def test_a_document_that_is_none_is_refused(steps, tmp_path, text):
    file = tmp_path / "step.json"
    file.write_text(text)
    done = steps.home.run(dayfly.RUNNER, "step", "--file", file, "--report-dir", steps.report)
    assert done.returncode == 3


def mounted(directory, options):
    directory.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(directory)], capture_output=True,
                          check=False)
    if made.returncode != 0:
        pytest.skip("no right to mount")


def test_a_full_disk_is_named(steps):
    small = steps.home.directory / "small"
    mounted(small, "size=16k")
    try:
        result = steps.run("plan", "DiskFull", code=1, work=small / "step")
        assert "No space left" in result["message"] or "no space left" in result["message"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_read_only_work_directory_is_named(steps):
    fixed = steps.home.directory / "fixed"
    mounted(fixed, "ro")
    try:
        file = steps.home.directory / "step.json"
        file.write_text(json.dumps(steps.document("plan")))
        done = steps.home.run(dayfly.RUNNER, "step", "--file", file, "--report-dir", steps.report, "--work-dir",
                              fixed / "step")
        assert done.returncode in (1, 3)
        assert str(fixed) in done.stderr and "Read-only" in done.stderr
    finally:
        subprocess.run(["umount", str(fixed)], check=True)


# ---- the command line ----

@pytest.mark.parametrize("words", [["help"], ["--help"]])
def test_help_names_every_way_to_run_it(home, words):
    done = home.run(dayfly.RUNNER, *words)
    assert done.returncode == 0
    for word in ("--handoff-fd", "--file", "--report-dir", "--work-dir", "version", "Exit codes"):
        assert word in done.stdout


def test_version_is_one_line(home):
    done = home.run(dayfly.RUNNER, "version")
    assert done.returncode == 0
    assert done.stdout == f"dayfly-runner {(dayfly.ROOT / 'VERSION').read_text().strip()}\n"


@pytest.mark.parametrize("leader", [{}, {"leader": "https://127.0.0.1:1", "new": 1}])
def test_a_probe_asks_the_leader_that_its_handoff_names_and_ignores_what_it_does_not_know(home, tmp_path, leader):
    handoff, log = tmp_path / "handoff.json", tmp_path / "log"
    log.touch()
    handoff.write_text(json.dumps({"server": "http://127.0.0.1:1", "terminationLog": str(log), **leader}))
    done = home.run(dayfly.RUNNER, "probe", "--handoff-file", handoff, "--work-dir", tmp_path)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["work"]["free"] > 0
    assert report["server"]["url"] == "http://127.0.0.1:1"
    assert report.get("leader", {}).get("url") == leader.get("leader")


def test_without_a_command_it_says_what_it_can(home):
    done = home.run(dayfly.RUNNER)
    assert done.returncode == 0 and "step --handoff-fd N" in done.stdout


@pytest.mark.parametrize("words", [["nonsense"], ["step"], ["step", "--file", "x"], ["step", "--handoff-fd", "x"],
                                   ["step", "--handoff-fd", "1"], ["step", "--report-dir", "x"],
                                   ["step", "--file", "x", "--report-dir", "y", "z"], ["step", "--nonsense"],
                                   ["step", "--handoff-fd", "3", "--file", "x", "--report-dir", "y"], ["probe"],
                                   ["probe", "--handoff-file", "x"], ["probe", "--runtime", "opentofu"]])
def test_wrong_words_are_answered_with_the_usage(home, words):
    done = home.run(dayfly.RUNNER, *words)
    assert done.returncode == 3
    assert "dayfly-runner step" in done.stderr and done.stdout == ""


def log_of_a_missing_step(home, tmp_path, **environment):
    return home.run(dayfly.RUNNER, "step", "--file", tmp_path / "absent", "--report-dir", tmp_path / "report", env=environment).stderr


def test_its_own_log_has_the_format_of_the_environment(home, tmp_path):
    line = json.loads(log_of_a_missing_step(home, tmp_path, LOG_FORMAT="json", LOG_LEVEL="error"))
    assert (line["level"], line["component"]) == ("error", "runner") and "absent" in line["msg"]
    for text in (log_of_a_missing_step(home, tmp_path), log_of_a_missing_step(home, tmp_path, LOG_FORMAT="text", LOG_LEVEL="debug")):
        assert re.fullmatch(r"\S+ error .*absent.*\n", text)


@pytest.mark.parametrize("variable, word", [("LOG_LEVEL", "loud"), ("LOG_LEVEL", "INFO"), ("LOG_FORMAT", "xml")])
def test_other_words_for_its_log_are_invalid_input(home, tmp_path, variable, word):
    done = home.run(dayfly.RUNNER, "version", env={variable: word})
    assert (done.returncode, done.stdout) == (3, "")
    assert variable in done.stderr and word in done.stderr
