"""The main job, end to end, as a user drives it: real tofu, real terraform, a real spawner and its runners."""

import json
import os
import signal
import subprocess
import time

import pytest

from lib import providers
from lib.dayfly import DAYFLY, Server, alive, tool, wait_for

MODULE = """
variable "who" {
  type    = string
  default = "world"
}

variable "password" {
  type      = string
  default   = "none"
  sensitive = true
}

resource "terraform_data" "greeting" {
  input = "hello ${var.who}"
}

resource "terraform_data" "copy" {
  input = terraform_data.greeting.output
}

output "greeting" {
  value = terraform_data.copy.output
}

output "password" {
  value     = var.password
  sensitive = true
}
"""

# Each apply of this module writes a line into a ledger outside: how often did tofu really act?
LEDGER = """
resource "terraform_data" "slow" {
  triggers_replace = timestamp()
  provisioner "local-exec" {
    command = "echo began >> %(ledger)s; for i in $(seq 1 %(steps)d); do echo tick $i; sleep 0.1; done; echo ended >> %(ledger)s"
  }
}

resource "terraform_data" "after" {
  input      = 1
  depends_on = [terraform_data.slow]
}
"""

# As somebody else's tofu asks for it.
LOCK = {"ID": "11111111-2222-3333-4444-555555555555", "Operation": "OperationTypeApply", "Who": "eve@elsewhere",
        "Version": "1.12.6", "Created": "2026-01-01T00:00:00Z", "Path": "", "Info": ""}

# The same without a reason to act twice.
STEADY = """
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "echo began >> %(ledger)s; sleep 1; echo ended >> %(ledger)s" }
}

resource "terraform_data" "after" {
  input      = 1
  depends_on = [terraform_data.slow]
}
"""


def executor(name, directory, **spec):
    return json.dumps({"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                       "spec": {"source": {"url": f"file://{directory}"}, **spec}})


def create(home, name, directory, **spec):
    home.dayfly("create", "-f", "-", input=executor(name, directory, **spec))


def start(server, name, action="provision", **body):
    """Asks for a run and does not wait for it; returns its name."""
    status, _, answer = server.request("POST", f"/v1/executors/{name}/runs", {"action": action, **body})
    assert status == 201, answer
    return json.loads(answer)["metadata"]["name"]


def phase(home, run):
    return home.json("get", "runs", run)["status"].get("phase", "Pending")


def wait_phase(home, run, *phases):
    return wait_for(f"{run} to be {' or '.join(phases)}", lambda: phase(home, run) in phases)


def finished(home, run):
    wait_phase(home, run, "Succeeded", "Failed", "Canceled", "Discarded")
    return home.json("get", "runs", run)["status"]


def step(home, name):
    return home.json("get", "taskactions", name)


def test_a_directory_is_provisioned_changed_and_destroyed_without_any_server(either_home):
    home = either_home
    module = home.module("net", MODULE)
    first = home.json("run", module, "--auto-approve", "--tool", home.runtime)
    assert first["run"]["status"]["phase"] == "Succeeded"
    assert first["planSummary"]["add"] == 2
    assert first["outputs"]["greeting"]["value"] == "hello world"
    assert "value" not in first["outputs"]["password"]

    again = home.json("run", module, "--auto-approve", "--tool", home.runtime)
    assert (again["run"]["status"]["phase"], again["run"]["status"]["reason"]) == ("Succeeded", "NoChanges")

    dry = home.json("run", module, "--action", "dry-run", "--var", "who=moon", "--tool", home.runtime)
    assert dry["planSummary"]["change"] == 2
    assert home.json("outputs", first["run"]["spec"]["executorRef"]["name"])["greeting"]["value"] == "hello world"

    gone = home.json("run", module, "--action", "destroy", "--auto-approve", "--tool", home.runtime)
    assert (gone["run"]["status"]["phase"], gone["planSummary"]["destroy"]) == ("Succeeded", 2)


def test_plan_and_apply_run_in_different_processes(home, server):
    create(home, "net", home.module("net", MODULE))
    run = start(server, "net")
    wait_phase(home, run, "WaitingApproval")
    home.dayfly("approve", run)
    assert finished(home, run)["phase"] == "Succeeded"
    plan, apply = (step(home, f"{run}-{s}")["status"] for s in ("plan", "apply"))
    assert plan["claimedBy"]["pid"] != apply["claimedBy"]["pid"]
    assert plan["claimedBy"]["claimId"] != apply["claimedBy"]["claimId"]
    names = [entry["name"] for entry in apply["timeline"]]
    for wanted in ("queued", "created", "started", "claimed", "sourced", "executed", "stored", "reported"):
        assert wanted in names, names


def test_nothing_is_applied_that_was_not_approved(home, server):
    ledger = home.directory / "ledger"
    create(home, "net", home.module("net", LEDGER % {"ledger": ledger, "steps": 1}))
    run = start(server, "net")
    wait_phase(home, run, "WaitingApproval")
    home.dayfly("discard", run)
    assert finished(home, run)["phase"] == "Discarded"
    home.dayfly("approve", run, code=1)
    assert not ledger.exists()


def test_a_source_that_changed_after_the_plan_is_not_applied(home, server):
    module = home.module("net", MODULE)
    (module / "gone.tf").write_text("")
    create(home, "net", module)
    run = start(server, "net")
    wait_phase(home, run, "WaitingApproval")
    (module / "main.tf").write_text(MODULE + 'output "more" {\n  value = 1\n}\n')
    (module / "apply.log").write_text("Plan: 1 to add\n")
    (module / "gone.tf").unlink()
    home.dayfly("approve", run, code=None)
    status = finished(home, run)
    assert (status["phase"], status["reason"]) == ("Failed", "SourceChanged")
    assert "apply.log (added), gone.tf (removed), main.tf (changed): plan again" in status["message"]
    assert ".terraformignore" in status["message"]
    assert home.json("state", "list", "net")["items"] == []


def test_what_an_editor_makes_beside_the_module_between_plan_and_apply_changes_nothing(home, server):
    module = home.module("net", MODULE)
    create(home, "net", module)
    run = start(server, "net")
    wait_phase(home, run, "WaitingApproval")
    for name in (".main.tf.swp", "main.tf~", "#main.tf#", ".DS_Store", "._main.tf"):
        (module / name).write_text("x")
    (module / ".#main.tf").symlink_to("me@here.4711:1")
    home.dayfly("approve", run)
    assert finished(home, run)["phase"] == "Succeeded"


def test_a_flipped_bit_in_a_stored_plan_is_refused(home, server):
    create(home, "net", home.module("net", MODULE))
    run = start(server, "net")
    wait_phase(home, run, "WaitingApproval")
    plans = [p for p in server.data.rglob("plans/*") if p.is_file()]
    assert len(plans) == 1
    content = bytearray(plans[0].read_bytes())
    content[len(content) // 2] ^= 1
    plans[0].write_bytes(content)
    home.dayfly("approve", run, code=None)
    status = finished(home, run)
    assert (status["phase"], status["reason"]) == ("Failed", "PlanCorrupt")


def test_a_branch_that_moved_after_the_plan_is_applied_as_it_was_planned(home, server):
    module = home.module("net", MODULE)
    commit = home.repository(module)
    home.dayfly("create", "-f", "-", input=executor("net", module, source={"url": f"file://{module}", "kind": "git",
                                                                            "branch": "main"}))
    run = start(server, "net")
    wait_phase(home, run, "WaitingApproval")
    (module / "main.tf").write_text(MODULE.replace("hello", "goodbye"))
    home.git(module, "commit", "-qam", "other words")
    home.dayfly("approve", run, code=None)
    status = finished(home, run)
    assert status["phase"] == "Succeeded", status
    assert status["source"]["commit"] == commit
    assert home.json("outputs", "net")["greeting"]["value"] == "hello world"


def test_runs_of_one_executor_go_one_after_the_other_in_order(home, server):
    ledger = home.directory / "ledger"
    create(home, "net", home.module("net", LEDGER % {"ledger": ledger, "steps": 2}))
    runs = [start(server, "net", autoApprove=True) for _ in range(3)]
    ends = [finished(home, run) for run in runs]
    assert [e["phase"] for e in ends] == ["Succeeded"] * 3
    assert ledger.read_text().split() == ["began", "ended"] * 3
    assert [e["finishedAt"] for e in ends] == sorted(e["finishedAt"] for e in ends)


def test_a_canceled_apply_keeps_its_state_and_ends_canceled(home, server):
    ledger = home.directory / "ledger"
    create(home, "net", home.module("net", LEDGER % {"ledger": ledger, "steps": 20}))
    run = start(server, "net", autoApprove=True)
    wait_for("the apply to act", lambda: ledger.exists() and "began" in ledger.read_text())
    home.dayfly("cancel", run)
    status = finished(home, run)
    assert (status["phase"], status["reason"]) == ("Canceled", "Canceled")
    # tofu was asked once, kindly: it halted its provisioner, stored what there is, and began nothing more.
    assert ledger.read_text().split() == ["began"]
    state = json.loads(home.dayfly("state", "show", "net").stdout)
    assert [r["name"] for r in state["resources"]] == ["slow"]
    assert home.dayfly("run", "net", "--action", "dry-run").returncode == 0


def test_a_runner_that_is_killed_in_mid_apply_loses_nothing(home, server):
    ledger = home.directory / "ledger"
    create(home, "net", home.module("net", LEDGER % {"ledger": ledger, "steps": 10}))
    run = start(server, "net", autoApprove=True)
    wait_for("the apply to act", lambda: ledger.exists() and "began" in ledger.read_text())
    pid = int(step(home, f"{run}-apply")["status"]["claimedBy"]["pid"])
    os.kill(pid, signal.SIGKILL)
    status = finished(home, run)
    assert (status["phase"], status["reason"]) == ("Failed", "RunnerLost")
    assert ledger.read_text().split() == ["began"]
    state = json.loads(home.dayfly("state", "show", "net").stdout)
    assert [r["name"] for r in state["resources"]] == ["slow"]
    assert home.dayfly("run", "net", "--action", "dry-run").returncode == 0


def test_a_spawner_that_is_killed_in_mid_apply_finds_its_runner_again(home):
    ledger = home.directory / "ledger"
    server = Server(home).start()
    create(home, "net", home.module("net", LEDGER % {"ledger": ledger, "steps": 20}))
    run = start(server, "net", autoApprove=True)
    wait_for("the apply to act", lambda: ledger.exists() and "began" in ledger.read_text())
    server.kill()
    time.sleep(0.3)  # a moment in which nobody is there
    with server.start():
        status = finished(home, run)
        assert status["phase"] == "Succeeded", status
        assert ledger.read_text().split() == ["began", "ended"]
        log = home.dayfly("logs", run).stdout
        ticks = [int(line.split("tick ")[1]) for line in log.splitlines() if "tick " in line and "(local-exec): tick" in line]
        assert ticks == list(range(1, 21))


def leave_errored_state(home, server, ledger, meanwhile=lambda run: None, phase="Failed"):
    """A run whose state is kept as an errored one: somebody else has the lock when it is to be stored."""
    create(home, "net", home.module("net", STEADY % {"ledger": ledger}))
    run = start(server, "net", autoApprove=True)
    wait_for("the apply to act", lambda: ledger.exists() and "began" in ledger.read_text())
    home.dayfly("state", "unlock", "net")  # too early: the holder lives
    assert server.request("LOCK", "/v1/executors/net/state", LOCK)[0] == 200
    meanwhile(run)
    status = finished(home, run)
    assert status["phase"] == phase and "errored state" in status["message"], status
    return run


def test_an_errored_state_does_not_replace_what_a_later_step_has_stored(home, server):
    leave_errored_state(home, server, home.directory / "ledger")
    home.dayfly("state", "unlock", "net")
    later = home.json("state", "import", "net", "terraform_data.after", "11111111-2222-3333-4444-555555555555")["run"]
    assert later["status"]["reason"] == "StateChanged"
    stored = home.dayfly("state", "show", "net").stdout
    refused = home.dayfly("state", "push-errored", "net", code=1).stderr
    assert f"step {later['metadata']['name']}-state has changed the state after" in refused
    assert home.dayfly("state", "show", "net").stdout == stored
    assert len(home.json("state", "errored", "net")["items"]) == 1


def test_a_state_that_was_refused_is_kept_and_pushed_later(home, server):
    ledger = home.directory / "ledger"
    run = leave_errored_state(home, server, ledger)
    assert ledger.read_text().split() == ["began", "ended"]
    kept = home.json("state", "errored", "net")["items"]
    assert [k["step"] for k in kept] == [step(home, f"{run}-apply")["metadata"]["uid"]]
    assert "push-errored" in home.dayfly("why", run).stdout

    assert LOCK["Who"] in home.dayfly("state", "push-errored", "net", code=1).stderr
    home.dayfly("state", "unlock", "net")
    home.dayfly("state", "push-errored", "net")
    assert home.json("state", "errored", "net")["items"] == []
    state = json.loads(home.dayfly("state", "show", "net").stdout)
    assert sorted(r["name"] for r in state["resources"]) == ["after", "slow"]
    assert not any(home.json("run", "net", "--auto-approve")["planSummary"].values())
    assert ledger.read_text().split() == ["began", "ended"]


def test_while_an_errored_state_is_kept_no_run_changes_anything(home, server):
    ledger = home.directory / "ledger"
    run = leave_errored_state(home, server, ledger)
    home.dayfly("state", "unlock", "net")
    noted = home.json("get", "executors", "net")["status"]["erroredStates"]
    assert [(n["run"], n["step"]) for n in noted] == [(run, step(home, f"{run}-apply")["metadata"]["uid"])]
    for action in ("provision", "destroy"):
        refused = home.dayfly("run", "net", "--action", action, "--auto-approve", code=1).stderr
        for word in (f"run {run} could not", noted[0]["at"], "push-errored net", "discard-errored net"):
            assert word in refused, refused
        code, _, answer = server.request("POST", "/v1/executors/net/runs", {"action": action})
        assert code == 409 and json.loads(answer)["type"].endswith("/ErroredStatePending"), answer
    assert server.request("POST", "/v1/executors/net/runs", {"action": "state", "command": ["rm", "terraform_data.after"]})[0] == 409
    assert "push-errored" in home.dayfly("state", "rollback", "net", 1, code=1).stderr
    assert "push-errored" in home.dayfly("delete", "net", "--forget", code=1).stderr
    assert f"run {run} could not store its state" in home.dayfly("state", "exec", "net", "--", "true").stderr
    looked = home.dayfly("plan", "net", code=None).stdout
    assert "the plan is of an old state" in looked and run in looked
    assert "error, errored state" in home.dayfly("get", "executors").stdout
    described = home.dayfly("describe", "executor", "net").stdout
    assert f"run {run} could not store its state" in described and "You may: dryrun edit\n" in described
    assert ledger.read_text().split() == ["began", "ended"]


def test_a_run_that_waited_does_not_start_behind_an_errored_state(home, server):
    ledger, queued = home.directory / "ledger", []
    run = leave_errored_state(home, server, ledger, lambda run: queued.append(start(server, "net", autoApprove=True)))
    status = finished(home, queued[0])
    assert (status["phase"], status["reason"]) == ("Failed", "ErroredStatePending"), status
    assert run in status["message"] and "steps" not in status
    assert "push-errored" in home.dayfly("why", queued[0]).stdout
    assert ledger.read_text().split() == ["began", "ended"]


def test_why_a_canceled_run_does_not_say_that_its_state_is_stored(home, server):
    run = leave_errored_state(home, server, home.directory / "ledger", lambda run: home.dayfly("cancel", run), "Canceled")
    assert "its state could not be stored" in home.json("get", "runs", run)["status"]["message"]
    for of in (run, f"step/{run}-apply"):
        told = home.dayfly("why", of).stdout
        assert "The state of this run is not stored" in told and "discard-errored net" in told
        assert "is in the state" not in told


def test_an_errored_state_that_nobody_needs_is_written_to_a_file_and_removed(home, server):
    run = leave_errored_state(home, server, home.directory / "ledger")
    home.dayfly("state", "unlock", "net")
    file = home.directory / "kept.tfstate"
    home.dayfly("state", "discard-errored", "net", "--state-file", file)
    assert sorted(r["name"] for r in json.loads(file.read_text())["resources"]) == ["after", "slow"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert home.json("state", "errored", "net")["items"] == []
    assert "erroredStates" not in home.json("get", "executors", "net")["status"]
    assert ("discard-errored", "net") in [(e["action"], e["name"]) for e in home.json("get", "audit")["items"]]
    assert "kept as the errored state" in home.json("get", "runs", run)["status"]["message"]
    assert home.json("run", "net", "--auto-approve")["run"]["status"]["reason"] == "Applied"


def test_a_spawner_that_is_asked_to_end_cancels_what_runs_and_waits_for_it(home):
    ledger = home.directory / "ledger"
    server = Server(home).start()
    create(home, "net", home.module("net", LEDGER % {"ledger": ledger, "steps": 10}))
    run = start(server, "net", autoApprove=True)
    wait_for("the apply to act", lambda: ledger.exists() and "began" in ledger.read_text())
    pid = int(step(home, f"{run}-apply")["status"]["claimedBy"]["pid"])
    assert server.stop() == 0
    assert not alive(pid)
    assert ledger.read_text().split() == ["began"]
    with server.start():
        status = finished(home, run)
        assert status["phase"] in ("Canceled", "Failed") and status["reason"], status
        state = json.loads(home.dayfly("state", "show", "net").stdout)
        assert [r["name"] for r in state["resources"]] == ["slow"]


def test_an_apply_over_its_time_is_stopped_kindly_and_fails_as_timed_out(home, server):
    ledger = home.directory / "ledger"
    create(home, "net", home.module("net", LEDGER % {"ledger": ledger, "steps": 30}), timeouts={"apply": "1s"})
    run = start(server, "net", autoApprove=True)
    status = finished(home, run)
    assert (status["phase"], status["reason"]) == ("Failed", "TimedOut")
    assert step(home, f"{run}-apply")["status"]["exitCode"] == 4
    assert ledger.read_text().split() == ["began"]


def test_a_failed_apply_is_partial_and_names_its_cause(home, server):
    create(home, "net", home.module("net", MODULE + """
resource "terraform_data" "bad" {
  depends_on = [terraform_data.copy]
  provisioner "local-exec" {
    command = "echo no luck; exit 7"
  }
}
"""))
    result = home.dayfly("run", "net", "--auto-approve", code=2)
    assert "exit status 7" in result.stdout + result.stderr
    run = "net-1"
    status = finished(home, run)
    assert (status["phase"], status["reason"]) == ("Failed", "ApplyFailed")
    assert "terraform_data.bad" in status["message"]
    why = home.dayfly("why", run).stdout
    assert "ApplyFailed" in why and "terraform_data.bad" in why


@pytest.mark.parametrize("text, reason, words", [
    ('resource "terraform_data" "x" {\n', "InitFailed|PlanFailed", "main.tf"),
    ('resource "terraform_data" "x" {\n  input = var.nothing\n}\n', "InitFailed|PlanFailed", "nothing"),
    ('terraform {\n  required_providers {\n    x = {\n      source = "registry.invalid/a/b"\n    }\n  }\n}\n'
     'resource "x_y" "z" {}\n', "InitFailed", "registry.invalid"),
])
def test_a_module_that_cannot_work_fails_with_tofus_own_words(home, server, text, reason, words):
    create(home, "bad", home.module("bad", text))
    home.dayfly("run", "bad", "--action", "dry-run", code=1)
    status = finished(home, "bad-1")
    assert status["phase"] == "Failed" and status["reason"] in reason.split("|"), status
    assert words in status["message"], status
    assert ("providers.mirror.directory" in home.dayfly("why", "bad-1").stdout) == (words == "registry.invalid")


def test_secrets_reach_tofu_and_nothing_else(home, server):
    secret = "s3cr3t/with \"quotes\" & more"
    home.dayfly("secret", "set", "db", "password", input=secret)
    create(home, "net", home.module("net", MODULE + """
resource "terraform_data" "leak" {
  triggers_replace = timestamp()
  provisioner "local-exec" {
    command = "printf 'raw %s\\n' \\"$SECRET\\"; printf 'b64 %s\\n' $(printf '%s' \\"$SECRET\\" | base64 -w0)"
    environment = { SECRET = nonsensitive(var.password) }
  }
}
"""), secrets=[{"name": "db"}])
    run = start(server, "net", autoApprove=True)
    assert finished(home, run)["phase"] == "Succeeded"
    shown = home.json("outputs", "net", "--show-sensitive")
    assert shown["password"]["value"] == secret
    import base64
    forms = [secret, base64.b64encode(secret.encode()).decode(), json.dumps(secret)[1:-1]]
    texts = [home.dayfly("logs", run).stdout, home.dayfly("logs", "--events", run).stdout,
             json.dumps(home.json("get", "runs", run)), json.dumps(step(home, f"{run}-apply")),
             home.dayfly("why", run).stdout, server.log.read_text(), server.request("GET", "/metrics")[2].decode(),
             json.dumps(server.get("/v1/audit"))]
    assert "raw ***" in texts[0] and "b64 ***" in texts[0]
    for form in forms:
        for text in texts:
            assert form not in text
    database = b"".join(p.read_bytes() for p in server.data.glob("*.db*"))
    assert secret.encode() not in database


def test_a_lock_held_by_another_tofu_is_named_and_can_be_freed_by_an_admin(home, server):
    create(home, "net", home.module("net", MODULE))
    assert server.request("LOCK", "/v1/executors/net/state", LOCK)[0] == 200
    home.dayfly("run", "net", "--auto-approve", code=1)
    status = finished(home, "net-1")
    assert status["reason"] == "StateLocked" and "eve@elsewhere" in status["message"], status
    assert home.json("run", "net", "--action", "dry-run")["planSummary"]["add"] > 0, "what needs no lock does not mind one"
    home.dayfly("state", "unlock", "net")
    assert home.dayfly("run", "net", "--auto-approve").returncode == 0


def test_an_earlier_state_comes_back_as_a_new_version(home, server):
    create(home, "net", home.module("net", MODULE))
    home.dayfly("run", "net", "--auto-approve")
    home.dayfly("run", "net", "--auto-approve", "--var", "who=moon")
    before = home.json("state", "list", "net")["items"]
    first = min(v["version"] for v in before)
    home.dayfly("state", "rollback", "net", str(first))
    after = home.json("state", "list", "net")["items"]
    assert len(after) == len(before) + 1
    assert max(v["serial"] for v in after) > max(v["serial"] for v in before)
    assert home.dayfly("run", "net", "--action", "dry-run").returncode == 0


def test_what_is_declined_at_the_question_is_not_applied(home):
    module = home.module("net", MODULE)
    result = subprocess.run(["script", "-qec", f"{DAYFLY} run {module}", "/dev/null"], input="no\n", text=True,
                            env=home.env, capture_output=True, timeout=120, check=False)
    assert result.returncode == 1, result.stdout
    assert "hello world" in result.stdout
    name = home.json("get", "executors")["items"][0]["metadata"]["name"]
    assert home.json("state", "list", name)["items"] == []


# ---- init, where it would do nothing ---------------------------------------------------------------------------------

def log_of(home, run):
    return home.dayfly("logs", run).stdout


def test_a_plan_runs_no_init_where_that_would_only_note_the_backend(home):
    module = home.module("hello", MODULE)
    home.dayfly("run", module, "--auto-approve")
    home.dayfly("run", "hello", "--action", "provision", "--auto-approve", "--var", "who=you")
    assert "Initializing" in log_of(home, "hello-1")
    assert "dayfly: no init" in log_of(home, "hello-2") and "Initializing" not in log_of(home, "hello-2")
    assert home.json("outputs", "hello")["greeting"]["value"] == "hello you"


@pytest.mark.parametrize("note, said", [
    ('{"version": 3, "backend": {"type": "http", "config": {"address": null}, "hash": 1}}', "dayfly: no init"),
    ('{"version": 3, "backend": {"type": "http", "config": {"address": "http://127.0.0.1:1"}, "hash": 1}}', "Initializing"),
    ("{", "Initializing"),
])
def test_a_note_that_somebody_else_wrote_leads_nowhere_else(home, note, said):
    home.dayfly("run", home.module("hello", MODULE), "--auto-approve")
    kept, = (home.directory / "cache").glob("**/notes/*")
    kept.write_text(note)
    home.dayfly("run", "hello", "--action", "dry-run", "--var", "who=you")
    log = log_of(home, "hello-2")
    assert said in log and "2 to change" in log, log


def test_a_tool_that_wants_an_init_nevertheless_gets_it(home):
    home.env["DAYFLY_PROVIDERS_FILESYSTEM_MIRROR"] = str(home.directory / "mirror")
    providers.packed(tool("provider"), home.directory / "mirror")
    home.dayfly("run", home.module("hello", MODULE), "--auto-approve")
    home.module("hello", f'terraform {{\n required_providers {{\n simple = {{ source = "{providers.SOURCE}" }}\n }}\n}}\n{MODULE}')
    home.dayfly("run", "hello", "--action", "dry-run", "--var", "who=you")
    log = log_of(home, "hello-2")
    assert "dayfly: init after all" in log and "- Installed" in log and "2 to change" in log, log


def test_a_module_that_came_to_need_more_gets_its_init(home):
    module = home.module("hello", MODULE)
    home.dayfly("run", module, "--auto-approve")
    home.module("hello/more", 'resource "terraform_data" "more" { input = 1 }')
    home.module("hello", MODULE + 'module "more" { source = "./more" }')
    home.dayfly("run", "hello", "--action", "provision", "--auto-approve")
    assert "- more in more" in log_of(home, "hello-2")
