"""What people type who come from tofu, kubectl and gh: real programs, real tools."""

import json

import pytest

from lib.commands import HELLO

def tool(home):
    return ["-tool", home.runtime]


# ---- plan and destroy -----------------------------------------------------------------------------------------------


def test_a_plan_says_by_its_exit_code_whether_something_would_change(either_home):
    module = either_home.module("hello", HELLO)
    changes = either_home.dayfly("plan", module, "-detailed-exitcode", code=2)
    assert "Plan: 3 to add" in changes.stdout and "hello-1: Succeeded" in changes.stdout
    either_home.dayfly("plan", module)
    either_home.dayfly("run", module, "-auto-approve")
    same = either_home.dayfly("plan", module, "--detailed-exitcode").stdout
    assert same.rstrip().split("\n")[-1].startswith("hello-4: Succeeded in ") and same.rstrip().endswith(": NoChanges"), same
    # tofu counts a new output as a change, too.
    (module / "more.tf").write_text('output "more" { value = 1 }\n')
    either_home.dayfly("plan", module, "--detailed-exitcode", code=2)
    (module / "more.tf").write_text('output "more" { value = nonsense.x }\n')
    either_home.dayfly("plan", module, "--detailed-exitcode", code=1)


def test_a_plan_changes_nothing_and_waits_for_nobody(home):
    module = home.module("hello", HELLO)
    document = home.json("plan", module)
    assert document["run"]["spec"]["action"] == "dry-run" and document["run"]["status"]["phase"] == "Succeeded"
    assert document["outputs"] == {}
    home.dayfly("plan", module, "-auto-approve", code=3)
    home.dayfly("plan", module, "--detach", "--detailed-exitcode", code=3)


def test_a_plan_that_is_told_not_to_lock_is_a_plan(home):
    module = home.module("hello", HELLO)
    for word in ("-lock=false", "-lock=true", "--lock=false"):
        assert home.json("plan", module, word)["planSummary"]["add"] == 3


def test_destroy_asks_where_there_is_somebody_and_takes_the_options_of_run(either_home):
    module = either_home.module("hello", HELLO)
    either_home.dayfly("run", module, "--auto-approve", "--name", "mine")
    refused = either_home.dayfly("destroy", "mine", code=1)
    assert "mine-2 waits for approval" in refused.stderr
    either_home.dayfly("discard", "mine-2")
    document = either_home.json("destroy", module, "--name", "mine", "-auto-approve")
    assert document["run"]["spec"]["action"] == "destroy"
    assert either_home.json("get", "executor", "mine")["status"]["state"] == "destroyed"


def test_what_is_destroyed_can_be_planned_and_a_second_destroy_has_nothing_to_do(either_home):
    module = either_home.module("hello", HELLO)
    never = either_home.dayfly("destroy", module, "--auto-approve")
    assert "nothing to destroy: hello was never applied: there is no such executor" in never.stderr
    assert either_home.json("get", "executors")["items"] == [], "the destroy made an executor"
    either_home.dayfly("plan", module)
    assert "hello was never applied" in either_home.dayfly("destroy", module).stderr
    either_home.dayfly("run", module, "--auto-approve")
    either_home.dayfly("destroy", module, "--auto-approve")
    again = either_home.dayfly("destroy", module, "--auto-approve", "-o", "json")
    assert "nothing to destroy: hello is destroyed already" in again.stderr and json.loads(again.stdout)["run"] is None
    either_home.dayfly("destroy", "other", code=3)
    planned = either_home.json("plan", module)
    assert planned["planSummary"]["add"] == 3
    assert either_home.json("get", "executor", "hello")["status"]["state"] == "destroyed"
    assert either_home.json("run", module, "--auto-approve")["run"]["status"]["phase"] == "Succeeded"


def test_the_tools_own_spellings_do_what_they_do_there(either_home):
    module = either_home.module("hello", HELLO)
    (module / "more.json").write_text('{"guests": 1}')
    run = either_home.json("run", module, "-auto-approve", "-var", "name=moon", f"-var-file={module}/more.json",
                           "-target=terraform_data.greeting", "-parallelism=3", "-compact-warnings", "-no-color",
                           "-input=false", "-lock=true")
    assert run["run"]["spec"]["variables"] == {"name": "moon", "guests": 1}
    assert run["run"]["spec"]["arguments"] == ["-target=terraform_data.greeting", "-parallelism=3", "-compact-warnings"]
    assert run["planSummary"]["add"] == 1, "the target was not taken"
    either_home.dayfly("run", module, "-auto-approve=true", "-var=name=moon")
    replaced = either_home.json("plan", module, "-var=name=moon", "-replace=terraform_data.greeting")
    assert replaced["planSummary"]["destroy"] == 1
    stale = either_home.dayfly("plan", module, "-var", "name=moon", "-refresh=false").stdout
    assert "Refreshing state" not in stale
    outside = either_home.dayfly("plan", module, "-var", "name=moon", "-refresh-only").stdout
    assert "NoChanges" in outside
    refused = either_home.dayfly("run", module, "--arg=-state=x", code=3)
    assert "-state is refused" in refused.stderr


ANSWERED = [
    (["plan", ".", "-out=plan"], "dayfly run DIR --no-wait"),
    (["plan", ".", "-json"], "-o json"),
    (["plan", ".", "-destroy"], "dayfly destroy DIR"),
    (["run", ".", "-lock=false"], "always locks"),
    (["-chdir=net", "plan"], "dayfly plan DIR"),
    (["run", ".", "-detailed-exitcode"], "dayfly plan DIR"),
    (["run", ".", "-backend-config=x"], "spec.storage"),
    (["plan", ".", "-no-colour"], "did you mean --no-color?"),
    (["plan"], ". is the directory you are in"),
    (["apply", "."], "dayfly run DIR"),
    (["init"], "dayfly plan DIR"),
    (["validate"], "dayfly plan DIR"),
    (["import", "aws_x.y", "id"], "dayfly state import EXECUTOR ADDRESS ID"),
    (["mv", "x.y", "x.z"], "dayfly state mv EXECUTOR SRC DST"),
    (["taint", "x.y"], "--replace"),
    (["output", "-json"], "dayfly outputs"),
    (["force-unlock", "1"], "dayfly state unlock"),
    (["exec", "-it", "pod"], "dayfly logs -f"),
    (["rollout", "status"], "dayfly logs -f"),
    (["port-forward", "x", "80"], "--server"),
    (["pr", "list"], "dayfly plan DIR"),
    (["auth", "login"], "dayfly login"),
    (["run", "list"], "dayfly get runs"),
    (["run", "view", "4711"], "dayfly why RUN"),
    (["run", "watch", "4711"], "dayfly logs -f RUN"),
    (["plna", "."], 'did you mean "plan"?'),
]


@pytest.mark.parametrize("args, answer", ANSWERED, ids=[" ".join(a) for a, _ in ANSWERED])
def test_what_others_call_differently_is_answered_in_one_line_and_does_nothing(home, args, answer):
    result = home.dayfly(*args, code=3, cwd=home.directory)
    assert answer in result.stderr and result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert home.json("get", "runs")["items"] == []


# ---- doctor on a laptop ---------------------------------------------------------------------------------------------


def test_doctor_fails_where_a_run_would_and_warns_where_some_would(either_home):
    found = {f["check"]: f["level"] for f in either_home.json("doctor")["findings"]}
    assert (found["runner"], found["local-tool"], found["data-directory"]) == ("ok", "ok", "ok")
    bare = {"PATH": str(either_home.directory)}
    result = either_home.dayfly("doctor", env=bare, code=1)
    assert "[FAIL] local-tool: neither tofu nor terraform" in result.stdout and "[warn] git: git is not" in result.stdout
    either_home.dayfly("run", either_home.module("hello", HELLO), "--auto-approve", env=bare, code=1)
    home = either_home
    away = ["--set", f"providers.filesystemMirror={home.directory}/no-mirror", "--set", f"tools.directories={home.directory}/none"]
    some = home.dayfly("doctor", *away).stdout
    assert "[warn] providers: providers.filesystemMirror: read the directory" in some
    assert "[warn] downloads: tools.directories: read the directory" in some
    (home.directory / "file").write_text("")
    cache = ["--set", f"providers.pluginCacheDirectory={home.directory}/file/cache"]
    assert "[FAIL] providers: providers.pluginCacheDirectory" in home.dayfly("doctor", *cache, code=1).stdout
    assert "[ok]   providers: providers.pluginCacheDirectory" in home.dayfly(
        "doctor", "--set", f"providers.pluginCacheDirectory={home.directory}/cache").stdout
    index = ["--set", f"tools.index.opentofu=file://{home.directory}/no-index"]
    assert "[warn] downloads: tools.index.opentofu" in home.dayfly("doctor", *index).stdout
    assert "[FAIL] downloads: tools.index.opentofu" in home.dayfly("doctor", *index, env=bare, code=1).stdout
    lost = either_home.dayfly("doctor", "--set", "runner.path=/nowhere/dayfly-runner", code=1)
    assert "[FAIL] runner: /nowhere/dayfly-runner" in lost.stdout


def test_doctor_names_the_process_that_uses_the_data_directory(home, server):
    assert " (dayfly serve)" in home.dayfly("doctor", "--data-directory", server.data).stdout


def test_an_error_of_init_is_told_once_and_its_reason_is_kept(either_home):
    home = either_home
    module = home.module("net", 'module "x" {\n  source = "./missing"\n}\n')
    result = home.json("run", module, "--auto-approve", "--tool", home.runtime, code=1)
    log = home.dayfly("logs", "net-1").stdout
    assert result["run"]["status"]["reason"] == "InitFailed" and "missing" in result["run"]["status"]["message"]
    assert log.count("lstat missing") == 1 and log.splitlines()[-1] == "dayfly: InitFailed", log


def test_doctor_looks_at_a_module(home):
    module = home.module("net", HELLO)
    assert "[ok]   module: " in home.dayfly("doctor", module).stdout
    (module / "backend.tf").write_text('terraform {\n  backend "s3" {}\n}\n')
    told = home.dayfly("doctor", module).stdout
    assert "[warn] module: " in told and '`backend "s3"` in backend.tf, line 2' in told and "--storage module" in told
    (home.directory / "empty").mkdir()
    assert "has no configuration" in home.dayfly("doctor", home.directory / "empty", code=1).stdout
    assert "[FAIL] module: " in home.dayfly("doctor", home.directory / "nowhere", code=1).stdout


def test_doctor_sees_the_state_of_a_selected_workspace(home):
    module = home.module("spaces", HELLO)
    selected = module / ".terraform/environment"
    selected.parent.mkdir()
    selected.write_text("default")
    assert "[ok]   module: " in home.dayfly("doctor", module).stdout
    selected.write_text("prod")
    assert f"{selected} belongs to a state of the module's own" in home.dayfly("doctor", module).stdout
