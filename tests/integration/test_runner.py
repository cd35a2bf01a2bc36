"""dayfly-runner alone: steps from files, real OpenTofu and Terraform, no spawner."""

import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import threading
import zipfile
from hashlib import sha256

import pytest

from lib import dayfly
from lib.dayfly import wait_for

HELLO = """
variable "name" { default = "world" }
variable "password" {
  default   = "none"
  sensitive = true
}
resource "terraform_data" "hello" { input = "hello ${var.name}" }
output "greeting" { value = terraform_data.hello.output }
output "secret" {
  value     = var.password
  sensitive = true
}
"""

# One resource is done at once; the other waits for a gate that never opens.
SLOW = """
resource "terraform_data" "first" { input = "first" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "touch %s; exec sleep 1000" }
}
"""


class Steps:
    """The steps of one run: one module, one state, one report directory; a work directory each."""

    def __init__(self, home, text=HELLO, **files):
        self.home = home
        self.module = home.module("module", text, **files)
        self.state = home.directory / "kept.tfstate"
        self.report = home.directory / "report"
        self.count = 0
        self.plan_result = None

    def document(self, action, **changes):
        document = {
            "uid": f"uid-{self.count}", "run": "hello-1", "action": action, "runtime": {"name": self.home.runtime},
            "tools": {"directories": [str(self.home.bin)], "cacheDirectory": str(self.home.directory / "tools")},
            "source": {"url": f"file://{self.module}", "kind": "directory"},
            "state": {"type": "local", "config": {"path": str(self.state)}},
        }
        if action == "apply" and self.plan_result:
            plan = self.plan_result
            document["expected"] = {"treeDigest": plan["source"]["treeDigest"],
                                    "commit": plan["source"].get("commit"), "toolName": plan["tool"]["name"],
                                    "toolVersion": plan["tool"]["version"],
                                    "lockFileSha256": plan.get("lockFileSha256")}
        document.update(changes)
        return document

    def start(self, action, env=None, work=None, **changes):
        self.count += 1
        self.work = pathlib.Path(work or self.home.directory / f"step-{self.count}")
        self.file = self.home.directory / f"step-{self.count}.json"
        self.file.write_text(json.dumps(self.document(action, **changes)))
        self.output = self.home.directory / f"step-{self.count}.out"
        with open(self.output, "wb") as output:
            return self.home.popen(dayfly.RUNNER, "step", "--file", self.file, "--report-dir", self.report,
                                   "--work-dir", self.work, stdout=output, stderr=output, env=env)

    def finish(self, process):
        """(exit code, result document)"""
        code = process.wait(timeout=dayfly.DEADLINE * 2)
        path = self.report / "result.json"
        assert path.exists(), f"exit {code}, no result\n{self.output.read_text(errors='replace')}"
        result = json.loads(path.read_text())
        path.unlink()
        return code, result

    def run(self, action, reason, code=0, **changes):
        """Runs a step and insists on its reason and exit code; returns the result document."""
        actual, result = self.finish(self.start(action, **changes))
        said = self.output.read_text(errors="replace")
        assert (result["reason"], result["exitCode"], actual) == (reason, code, code), f"{result}\n{said}"
        if action.startswith("plan"):
            self.plan_result = result
        return result

    def log(self):
        return (self.report / "log").read_text()

    def events(self):
        return [json.loads(line) for line in (self.report / "events").read_text().splitlines()]

    def resources(self):
        if not self.state.exists():
            return {}
        found = json.loads(self.state.read_text())["resources"]
        return {r["name"]: r["instances"][0].get("status", "ok") for r in found}


@pytest.fixture
def steps(home):
    return Steps(home)


def descendants_of_session(marker):
    """Command lines of living processes that mention the marker."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            words = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if str(marker).encode() in words and dayfly.alive(entry):
            found.append(int(entry))
    return found


# ---- the main job ----

def test_plan_apply_and_destroy_in_separate_runners(either_home):
    steps = Steps(either_home)
    planned = steps.run("plan", "Planned")
    assert planned["hasChanges"] and planned["planSummary"] == {"add": 1, "change": 0, "destroy": 0, "import": 0}
    assert "terraform_data.hello will be created" in steps.log()
    bundle = (steps.report / "plan").read_bytes()
    assert planned["plan"] == {"sha256": sha256(bundle).hexdigest(), "size": len(bundle)}

    applied = steps.run("apply", "Applied")
    assert applied["planSummary"]["add"] == 1
    assert steps.resources() == {"hello": "ok"}
    assert 'greeting = "hello world"' in steps.log()
    assert "Initializing" not in steps.log(), "an apply without providers needs no init"

    assert not steps.run("plan", "NoChanges")["hasChanges"]
    assert steps.run("plan-destroy", "Planned")["planSummary"]["destroy"] == 1
    steps.run("apply", "Destroyed")
    assert steps.resources() == {}


def parts_of(bundle):
    header = json.loads(bundle[19:19 + int(bundle[10:18], 16)])
    return [part["name"] for part in header["parts"]]


def test_a_plan_is_kept_with_its_json_for_those_who_decide(steps):
    steps.run("plan", "Planned")
    assert parts_of((steps.report / "plan").read_bytes()) == ["plan", "plan.json"]


def test_a_plan_that_nobody_reviews_is_not_shown_and_can_be_applied(steps):
    steps.run("plan", "Planned", reviewed=False)
    assert parts_of((steps.report / "plan").read_bytes()) == ["plan"]
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


def test_init_and_show_which_are_over_at_once_collect_less_garbage(steps):
    assert {"init": "200", "show": "200", "plan": "own", "apply": "own"}.items() <= garbage_collection(steps).items()


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
    assert "Initializing" in steps.log(), "fetched modules must be there when the plan is applied"


@pytest.mark.parametrize("text, reason, word", [
    ('resource "x" {', "InitFailed", "main.tf:1"),
    ('output "o" { value = terraform_data.none.id }', "PlanFailed", "main.tf:1"),
    ('variable "v" {}\noutput "o" { value = var.v }', "PlanFailed", "No value for required variable"),
    ('module "m" { source = "./none" }', "InitFailed", "none"),
    ('terraform {\n  cloud {}\n}', "InitFailed", "cloud"),
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


def test_a_backend_of_the_module_is_overridden(steps):
    (steps.module / "backend.tf").write_text('terraform {\n  backend "s3" { bucket = "none" }\n}\n')
    steps.run("plan", "Planned")
    steps.run("apply", "Applied")
    assert steps.resources() == {"hello": "ok"}


def test_a_state_file_in_the_source_is_not_lost_silently(steps):
    steps.run("plan", "Planned")
    steps.run("apply", "Applied")
    steps.state.rename(steps.module / "terraform.tfstate")
    steps.home.repository(steps.module)
    result = steps.run("plan", "InitFailed", code=1,
                       source={"url": f"file://{steps.module}", "kind": "git", "branch": "main"})
    assert "terraform.tfstate" in result["message"]


# ---- providers ----

HOST = "registry.invalid"
PROVIDED = f"""
terraform {{
  required_providers {{
    simple = {{ source = "{HOST}/test/simple" }}
  }}
}}
resource "simple_resource" "r" {{ value = "x" }}
"""


@pytest.fixture(scope="session")
def provider():
    """A real provider plugin."""
    return subprocess.run([dayfly.ROOT / "tests/tools/get-provider"], check=True, capture_output=True,
                          text=True).stdout.strip()


def platform():
    return f"linux_{'arm64' if os.uname().machine == 'aarch64' else 'amd64'}"


def test_providers_come_from_a_mirror_into_a_shared_cache(either_home, provider):
    steps = Steps(either_home, PROVIDED)
    place = either_home.directory / "mirror" / HOST / "test" / "simple" / "1.0.0" / platform()
    place.mkdir(parents=True)
    (place / "terraform-provider-simple_v1.0.0").symlink_to(provider)
    cache = either_home.directory / "plugins"
    providers = {"filesystemMirror": str(either_home.directory / "mirror"), "pluginCacheDirectory": str(cache)}
    planned = steps.run("plan", "Planned", providers=providers)
    assert len(planned["lockFileSha256"]) == 64
    assert (cache / HOST / "test" / "simple" / "1.0.0").is_dir()
    steps.run("apply", "Applied", providers=providers)
    assert "Initializing" in steps.log(), "plugins must be there when the plan is applied"
    assert steps.resources() == {"r": "ok"}
    assert not steps.run("plan", "NoChanges", providers=providers)["hasChanges"]


def test_a_provider_starts_in_however_deep_a_work_directory(home, provider):
    steps = Steps(home, PROVIDED)
    place = home.directory / "mirror" / HOST / "test" / "simple" / "1.0.0" / platform()
    place.mkdir(parents=True)
    (place / "terraform-provider-simple_v1.0.0").symlink_to(provider)
    deep = home.directory / ("d" * 100) / "work"  # a socket's name has no room for it
    code, result = steps.finish(steps.start(
        "plan", work=deep, providers={"filesystemMirror": str(home.directory / "mirror")}))
    assert (code, result["reason"]) == (0, "Planned"), result
    assert "simple_resource.r will be created" in steps.log()
    assert list(pathlib.Path("/tmp").glob(f"dayfly-{sha256(bytes(deep / 'work')).hexdigest()[:16]}")) == []


def test_a_network_mirror_gets_its_token_and_nobody_else_does(home, provider, tmp_path):
    archive = tmp_path / "simple.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.write(provider, "terraform-provider-simple_v1.0.0")
    documents = {f"/{HOST}/test/simple/index.json": {"versions": {"1.0.0": {}}},
                 f"/{HOST}/test/simple/1.0.0.json": {"archives": {platform(): {"url": "simple.zip"}}}}
    tokens = set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            tokens.add(self.headers.get("Authorization"))
            body = json.dumps(documents[self.path]).encode() if self.path in documents else archive.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if self.path in documents else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with HttpsServer(Handler, tmp_path) as server:
        token = "t0ken-${x}-\"quoted\""
        seen = home.directory / "seen"
        steps = Steps(home, PROVIDED + f"""
resource "terraform_data" "env" {{
  provisioner "local-exec" {{ command = "cat /proc/$PPID/environ /proc/$PPID/cmdline > {seen}" }}
}}
""")
        own = {"providers": {"networkMirror": f"https://localhost:{server.port}/",
                             "credentials": {f"localhost:{server.port}": token}},
               "env": {"SSL_CERT_FILE": str(server.certificate)}}
        steps.run("plan", "Planned", **own)
        steps.run("apply", "Applied", **own)
    assert f"Bearer {token}" in tokens
    assert token.encode() not in seen.read_bytes()
    assert steps.resources()["r"] == "ok"


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
    own = {"environment": {"REGION": "eu", "KEYFILE": "@files/key.json"}, "files": {"key.json": "{}"},
           "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    steps.run("plan", "Planned", env=stray, **own)
    steps.run("apply", "Applied", env=stray, **own)
    env = dict(line.split("=", 1) for line in seen.read_text().splitlines() if "=" in line)
    assert not {"TF_LOG", "TF_CLI_ARGS", "AWS_SECRET_ACCESS_KEY", "TF_WORKSPACE", "TF_VAR_name"} & env.keys()
    assert env["REGION"] == "eu" and env["TRACEPARENT"].startswith("00-0af7")
    assert env["KEYFILE"].endswith("/key.json")
    assert str(steps.work) in env["HOME"] and env["TMPDIR"].startswith((str(steps.work), "/tmp/dayfly-"))
    assert json.loads(steps.state.read_text())["outputs"]["greeting"]["value"] == "hello world"
    assert str(steps.file) not in pathlib.Path(f"{seen}.fds").read_text()


def test_secrets_are_masked_wherever_they_show(steps):
    secret = "pa55-wörd/x+y=="
    (steps.module / "leak.tf").write_text("""
variable "leak" {}
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


def test_a_secret_in_an_error_is_masked_in_the_message(steps):
    (steps.module / "fail.tf").write_text("""
variable "leak" {}
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


# ---- ends ----

@pytest.fixture
def slow(either_home):
    """A run whose apply hangs: (steps, file that says that it does)."""
    begun = either_home.directory / "begun"
    steps = Steps(either_home, SLOW % begun)
    steps.run("plan", "Planned")
    return steps, begun


def gone(marker):
    wait_for("every process of the step to be gone", lambda: not descendants_of_session(marker))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_cancelled_apply_stores_its_state_and_says_what_changed(slow, number):
    steps, begun = slow
    process = steps.start("apply")
    wait_for("the apply to hang", begun.exists)
    process.send_signal(number)
    code, result = steps.finish(process)
    assert (code, result["reason"], result["exitCode"]) == (2, "Canceled", 2)
    assert steps.resources()["first"] == "ok"
    assert steps.log().lower().count("interrupt received") == 1
    gone(steps.work)
    begun.unlink()
    (steps.module / "main.tf").write_text('resource "terraform_data" "first" { input = "first" }')
    steps.run("plan", "Planned")  # the lock is free again
    steps.run("apply", "Applied")


def test_a_step_out_of_time_is_stopped_like_one_cancelled(slow):
    steps, begun = slow
    code, result = steps.finish(steps.start("apply", timeoutSeconds=3))
    assert begun.exists(), "three seconds were not enough to begin"
    assert (code, result["reason"]) == (4, "TimedOut")
    assert "3 s" in result["message"]
    assert steps.resources()["first"] == "ok"
    gone(steps.work)


def test_what_ignores_the_interrupt_is_killed_after_the_grace_period(home):
    begun = home.directory / "begun"
    steps = Steps(home, f"""
resource "terraform_data" "deaf" {{
  provisioner "local-exec" {{
    command     = "trap '' INT TERM; touch {begun}; while :; do sleep 0.1; done"
  }}
}}
""")
    steps.run("plan", "Planned")
    process = steps.start("apply", graceSeconds=1)
    wait_for("the apply to hang", begun.exists)
    process.send_signal(signal.SIGTERM)
    code, result = steps.finish(process)
    assert result["reason"] == "Canceled" and code in (1, 2)
    gone(steps.work)


def test_daemons_of_provisioners_do_not_outlive_the_step(home):
    pid = home.directory / "pid"
    steps = Steps(home, f"""
resource "terraform_data" "daemon" {{
  provisioner "local-exec" {{
    command = "setsid sh -c 'echo $$ > {pid}; exec sleep 1000' </dev/null >/dev/null 2>&1 & sleep 0.2"
  }}
}}
""")
    steps.run("plan", "Planned")
    steps.run("apply", "Applied")
    wait_for("the daemon to say its pid", lambda: pid.exists() and pid.read_text().strip())
    assert not dayfly.alive(int(pid.read_text()))


def test_a_killed_runner_does_not_take_tofu_along(either_home):
    """Whoever started the runner interrupts tofu then; alone, tofu comes to its own end and stores its state."""
    begun, gate = either_home.directory / "begun", either_home.directory / "gate"
    steps = Steps(either_home, f"""
resource "terraform_data" "slow" {{
  provisioner "local-exec" {{
    command = "touch {begun}; while [ ! -e {gate} ]; do sleep 0.05; done; seq 2000"
  }}
}}
""")
    steps.run("plan", "Planned")
    process = steps.start("apply")
    wait_for("the apply to wait", begun.exists)
    pid = int((steps.work / "tofu.pid").read_text().split()[0])
    process.kill()
    process.wait()
    assert dayfly.alive(pid)
    gate.touch()  # from here on tofu writes to pipes that nobody reads
    gone(steps.work)
    assert not (steps.work / "result.json").exists()
    assert steps.resources() == {"slow": "ok"}
    assert not (steps.state.parent / f".{steps.state.name}.lock.info").exists(), "the lock is released"


def test_a_step_stopped_before_tofu_runs_never_starts_it(steps, tmp_path):
    fifo = tmp_path / "handoff"
    os.mkfifo(fifo)
    process = steps.home.popen(dayfly.RUNNER, "step", "--file", fifo, "--report-dir", steps.report,
                               "--work-dir", tmp_path / "work", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with open(fifo, "w", encoding="ascii") as f:  # opens when the runner reads its document
        process.send_signal(signal.SIGTERM)
        f.write(json.dumps(steps.document("plan")))
    code, result = steps.finish(process)
    assert (code, result["reason"]) == (1, "Canceled")
    assert not (tmp_path / "work" / "tofu.pid").exists()
    process.stderr.close()


def test_two_runners_do_not_share_a_work_directory(slow):
    steps, begun = slow
    first = steps.start("apply")
    wait_for("the apply to hang", begun.exists)
    second = steps.home.run(dayfly.RUNNER, "step", "--file", steps.file, "--report-dir", steps.home.directory / "other",
                            "--work-dir", steps.work)
    assert second.returncode == 3 and "another runner" in second.stderr
    first.send_signal(signal.SIGTERM)
    assert steps.finish(first)[1]["reason"] == "Canceled"


# ---- state ----

class StateServer:
    """A state backend that says no on demand."""

    def __init__(self):
        self.state = None
        self.lock = None
        self.refuse = {}  # method -> status
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body=b""):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.command in outer.refuse:
                    return self.answer(outer.refuse[self.command])
                if self.command == "LOCK":
                    if outer.lock:
                        return self.answer(423, outer.lock)
                    outer.lock = body
                elif self.command == "UNLOCK":
                    outer.lock = None
                elif self.command == "POST":
                    outer.state = body
                elif self.command == "GET" and outer.state is None:
                    return self.answer(204)
                return self.answer(200, outer.state if self.command == "GET" else b"")

            do_GET = do_POST = do_LOCK = do_UNLOCK = serve

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def document(self):
        return {"type": "managed", "address": f"http://127.0.0.1:{self.server.server_port}/state", "username": "u",
                "password": "state-password"}

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def state_server():
    server = StateServer()
    yield server
    server.close()


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


# ---- toolchain ----

class HttpsServer:
    """A TLS server with a certificate of its own for localhost."""

    def __init__(self, handler, directory):
        self.certificate, key = directory / "cert.pem", directory / "key.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                               "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                               str(key), "-out", str(self.certificate)], capture_output=True, check=False)
        assert made.returncode == 0, made.stderr
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Mirror:
    """Releases of a tool that says it is some version, and is the real one in all else."""

    def __init__(self, directory, real):
        self.directory = directory
        self.real = real
        self.index = {"versions": {}}

    def add(self, version, tamper=False):
        folder = self.directory / version
        folder.mkdir(parents=True)
        name = f"tofu_{version}_{platform()}.zip"
        script = f'#!/bin/sh\n[ "$1" = version ] && {{ echo OpenTofu v{version}; exit; }}\nexec {self.real} "$@"\n'
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("README.md", "hello")
            archive.writestr("tofu", script)
        digest = sha256((folder / name).read_bytes() + (b"!" if tamper else b"")).hexdigest()
        (folder / f"tofu_{version}_SHA256SUMS").write_text(f"{'0' * 64}  other.zip\n{digest}  {name}\n")
        self.index["versions"][version] = {
            "shasums": f"tofu_{version}_SHA256SUMS",
            "builds": [{"os": "plan9", "arch": "amd64", "filename": "x", "url": "x"},
                       {"os": "linux", "arch": platform().rsplit("_")[1], "filename": name,
                        "url": f"{version}/{name}"}]}
        (self.directory / "index.json").write_text(json.dumps(self.index))
        return digest


@pytest.fixture
def mirror(tmp_path, tofu):
    return Mirror(tmp_path / "mirror", tofu)


def tools(steps, index, **more):
    return {"runtime": {"name": "opentofu", "version": more.pop("version", None)},
            "tools": {"cacheDirectory": str(steps.home.directory / "cache" / "tools"),
                      "index": {"opentofu": index}, **more}}


def test_a_tool_is_downloaded_once_from_an_index(steps, mirror):
    digest = mirror.add("1.9.5")
    mirror.add("1.9.7-rc1")
    mirror.add("1.8.0")
    index = (mirror.directory / "index.json").as_uri()
    result = steps.run("plan", "Planned", **tools(steps, index, version="~> 1.9"))
    assert result["tool"] == {"name": "opentofu", "version": "1.9.5"}
    assert (steps.home.directory / "cache" / "tools" / digest / "tofu").exists()
    shutil.rmtree(mirror.directory)
    steps.run("apply", "Applied", **tools(steps, index))
    steps.run("plan", "NoChanges", **tools(steps, index, version=">= 1.9, < 2"))


def test_a_tool_is_downloaded_from_a_plain_mirror(steps, mirror):
    mirror.add("1.9.5")
    result = steps.run("plan", "Planned", **tools(steps, mirror.directory.as_uri(), version="1.9.5"))
    assert result["tool"]["version"] == "1.9.5"


def test_a_plain_mirror_needs_an_exact_version(steps, mirror):
    mirror.add("1.9.5")
    result = steps.run("plan", "ToolMissing", code=1, **tools(steps, mirror.directory.as_uri(), version=">= 1.9"))
    assert "exact version" in result["message"]


@pytest.mark.parametrize("kind", ["index", "mirror"])
def test_a_tool_with_a_wrong_checksum_is_refused_and_not_kept(steps, mirror, kind):
    mirror.add("1.9.5", tamper=True)
    url = (mirror.directory / "index.json").as_uri() if kind == "index" else mirror.directory.as_uri()
    result = steps.run("plan", "ToolChecksum", code=1, **tools(steps, url, version="1.9.5"))
    assert "1.9.5" in result["message"]
    cache = steps.home.directory / "cache" / "tools"
    assert list(cache.rglob("tofu")) == [] and list(cache.glob(".*")) == []


def test_a_tool_that_nobody_has_is_named_with_what_there_is(steps, mirror):
    mirror.add("1.9.5")
    url = (mirror.directory / "index.json").as_uri()
    result = steps.run("plan", "ToolMissing", code=1, **tools(steps, url, version=">= 99", directories=[
        str(steps.home.bin)]))
    assert ">= 99" in result["message"] and str(steps.home.bin) in result["message"]
    assert "index.json" in result["message"]


def test_tools_come_over_https_with_a_configured_authority(steps, mirror, tmp_path):
    digest = mirror.add("1.9.5")
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=mirror.directory)

        def log_request(self, *args):
            asked.append(self.path)

    with HttpsServer(Handler, tmp_path) as server:
        url = f"https://127.0.0.1:{server.port}/index.json"
        steps.run("plan", "ToolMissing", code=1, **tools(steps, url, version="1.9.5"))
        assert asked == [], "a server with an unknown certificate is not talked to"
        processes = []
        for i in range(4):  # writers at once
            other = Steps.__new__(Steps)
            other.__dict__.update(steps.__dict__, count=10 + i, report=steps.home.directory / f"report-{i}",
                                  state=steps.home.directory / f"{i}.tfstate")
            processes.append((other, other.start("plan", **tools(steps, url, version="1.9.5",
                                                                 caFile=str(server.certificate)))))
        for other, process in processes:
            code, result = other.finish(process)
            assert (code, result["tool"]["version"]) == (0, "1.9.5"), result
    cache = steps.home.directory / "cache" / "tools"
    assert sorted(p.name for p in cache.iterdir()) == sorted([digest, "versions"])


def test_an_old_tool_that_prints_only_events_is_shown_as_text(steps, mirror):
    mirror.add("1.9.5")  # before -json-into
    url = (mirror.directory / "index.json").as_uri()
    steps.run("plan", "Planned", **tools(steps, url))
    assert "terraform_data.hello will be created" in steps.log()
    assert '"@message"' not in steps.log()
    assert "planned_change" in {e["type"] for e in steps.events()}


# ---- bad input ----

@pytest.mark.parametrize("changes, word", [
    ({"action": "refresh"}, "refresh"),
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


@pytest.mark.parametrize("words", [[], ["nonsense"], ["step"], ["step", "--file", "x"], ["step", "--handoff-fd", "x"],
                                   ["step", "--handoff-fd", "1"], ["step", "--report-dir", "x"],
                                   ["step", "--file", "x", "--report-dir", "y", "z"], ["step", "--nonsense"],
                                   ["step", "--handoff-fd", "3", "--file", "x", "--report-dir", "y"]])
def test_wrong_words_are_answered_with_the_usage(home, words):
    done = home.run(dayfly.RUNNER, *words)
    assert done.returncode == 3
    assert "dayfly-runner step" in done.stderr and done.stdout == ""
