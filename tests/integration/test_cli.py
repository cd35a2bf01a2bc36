"""What a person or a script meets at the command line: real programs, real tool, real terminals."""

import json
import os
import re
import signal
import subprocess

import pytest

from lib import dayfly
from lib.commands import EXECUTOR, HELLO, Terminal, begun, on_terminal, slow

# ---- run, without a service -----------------------------------------------------------------------------------------

def test_a_document_stands_alone_on_standard_output_and_the_progress_beside_it(home):
    module = home.module("hello", HELLO)
    result = home.dayfly("run", module, "--auto-approve", "-o", "json")
    document = json.loads(result.stdout)
    told = ["executor hello created", "hello-1: provision of hello", "Plan: 3 to add", "apply: runs in process",
            "Apply complete! Resources: 3 added", "door_code = <sensitive>", "hello-1: Succeeded in"]
    places = [result.stderr.find(line) for line in told]
    assert places == sorted(places) and places[0] >= 0, f"{list(zip(told, places))}\n{result.stderr}"
    assert "\x1b" not in result.stderr and "\r" not in result.stderr, "a pipe gets plain lines"
    assert set(document) == {"run", "steps", "planSummary", "outputs"}
    assert document["run"]["status"]["phase"] == "Succeeded"
    assert [s["name"] for s in document["steps"]] == ["plan", "apply"]
    assert len({s["pid"] for s in document["steps"]}) == 2, "plan and apply ran in one process"
    assert all(s["exitCode"] == 0 for s in document["steps"])
    assert document["planSummary"]["add"] == 3
    assert document["outputs"]["greeting"]["value"] == "Hello, world!"
    assert "value" not in document["outputs"]["door_code"]


def test_a_failure_beside_a_document_is_told_as_without_one_and_as_masked(home):
    home.dayfly("secret", "set", "db", "password", input="hunter2-hunter2")
    module = home.module("bad", """
variable "password" { type = string }
resource "terraform_data" "bad" {
  provisioner "local-exec" {
    command     = "echo it is $PW; exit 7"
    environment = { PW = var.password }
  }
}
""")
    home.dayfly("create", "-f", "-", input=json.dumps({
        "apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "bad"},
        "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime},
                 "secrets": [{"name": "db"}]}}))
    result = home.dayfly("run", "bad", "--auto-approve", "-o", "json", code=None)
    assert result.returncode in (1, 2) and json.loads(result.stdout)["run"]["status"]["reason"] == "ApplyFailed"
    for line in ("bad-1: provision of bad", "Plan: 1 to add", "\n***\n", "exit status 7", "bad-1: Failed in",
                 "`dayfly why bad-1` says more"):
        assert line in result.stderr, result.stderr
    assert "hunter2" not in result.stderr + result.stdout


def test_a_pipe_gets_plain_lines_with_the_log(home):
    module = home.module("hello", HELLO)
    text = home.dayfly("run", module, "--auto-approve", env={"NO_COLOR": ""}).stdout
    assert "\x1b" not in text and "\r" not in text
    order = ["hello-1: provision of hello", "plan: runs in process", "Plan: 3 to add", "plan: done in",
             "apply: runs in process", "Apply complete! Resources: 3 added", "door_code = <sensitive>",
             "apply: done in", "hello-1: Succeeded in"]
    places = [text.find(line) for line in order]
    assert places == sorted(places) and places[0] >= 0, f"{list(zip(order, places))}\n{text}"
    assert text.count("\nOutputs:\n") == 1, "the outputs are shown twice"


def test_a_second_run_has_nothing_to_do(home):
    module = home.module("hello", HELLO)
    home.dayfly("run", module, "--auto-approve")
    document = home.json("run", module, "--auto-approve")
    assert document["run"]["status"]["reason"] == "NoChanges"
    assert document["run"]["metadata"]["name"] == "hello-2"
    text = home.dayfly("run", module, "--auto-approve").stdout
    assert "plan: done in" in text and "\nNo changes." in text and 'greeting = "Hello, world!"' in text


def test_without_a_terminal_a_plan_is_left_and_approve_carries_it_to_its_end(home):
    module = home.module("hello", HELLO)
    result = home.dayfly("run", module, code=1)
    assert "hello-1 waits for approval" in result.stderr and "no terminal to ask on" in result.stderr
    assert "declined" not in result.stderr
    assert "dayfly approve hello-1" in result.stderr
    assert home.json("get", "run", "hello-1")["status"]["phase"] == "WaitingApproval"
    for verb in ("approve", "discard", "cancel"):  # which run it is, a person says
        assert f"its newest run is hello-1: `dayfly {verb} hello-1`" in home.dayfly(verb, "hello", code=1).stderr
    text = home.dayfly("approve", "hello-1").stdout
    assert "hello-1: Succeeded" in text and "3 added" in text
    assert "3 to add" not in text, "the plan is shown again"
    assert home.dayfly("outputs", "hello", "greeting").stdout == "Hello, world!\n"


def test_no_wait_leaves_a_waiting_plan_as_success(home):
    module = home.module("hello", HELLO)
    waiting = home.dayfly("run", module, "--no-wait", "-o", "json")
    assert "Plan: 3 to add" in waiting.stderr and "`dayfly approve hello-1`" in waiting.stderr
    document = json.loads(waiting.stdout)
    assert document["run"]["status"]["phase"] == "WaitingApproval"
    assert document["planSummary"]["add"] == 3
    home.dayfly("discard", "hello-1")
    assert home.json("get", "run", "hello-1")["status"]["phase"] == "Discarded"


def test_class_and_priority_are_those_of_the_run(home, server):
    module = home.module("hello", HELLO)
    run = home.json("run", module, "--action", "dry-run", "--class", "large", "--priority", "-5")["run"]
    assert (run["spec"]["class"], run["spec"]["priority"]) == ("large", -5)
    step = home.json("get", "taskaction", "hello-1-plan")
    assert (step["spec"]["class"], step["spec"]["priority"]) == ("large", -5)
    for action in ("provision", "destroy"):
        home.dayfly("run", "hello", "--action", action, "--auto-approve")
    again = home.json("recreate", "hello", "--class", "small", "--priority", "7", "--auto-approve")["run"]
    assert (again["spec"]["class"], again["spec"]["priority"], again["status"]["phase"]) == ("small", 7, "Succeeded")


def test_a_detached_run_is_named_and_left(home, server):
    module, gate = slow(home)
    asked = home.dayfly("run", module, "--var", f"gate={gate}", "--auto-approve", "--detach")
    assert asked.stdout == "run/slow-1 created\n"
    assert asked.stderr == f"dayfly: executor slow created: file://{module}\n"
    assert home.json("get", "run", "slow-1")["status"]["phase"] in ("Pending", "Running")
    document = home.json("run", "slow", "--var", f"gate={gate}", "--auto-approve", "-d")
    assert document["run"]["metadata"]["name"] == "slow-2" and document["steps"] == []
    gate.touch()
    home.dayfly("logs", "-f", "slow-2")
    assert [r["status"]["phase"] for r in home.json("get", "runs")["items"]] == ["Succeeded", "Succeeded"]


def test_a_detached_run_without_a_service_keeps_the_command_until_its_end(home):
    module = home.module("hello", HELLO)
    asked = home.dayfly("run", module, "--auto-approve", "--detach")
    assert asked.stdout == "run/hello-1 created\n" and "staying until hello-1 has ended" in asked.stderr
    assert home.json("get", "run", "hello-1")["status"]["phase"] == "Succeeded"


def test_who_waits_in_line_is_told_for_whom(home):
    module = home.module("hello", HELLO)
    home.dayfly("run", module, "--no-wait")
    waiting = on_terminal(home, "run", module, "--auto-approve")
    waiting.expect("waits for hello-1, which waits for approval")
    home.dayfly("discard", "hello-1")
    assert waiting.end() == 0, waiting.shown
    assert "hello-2: Succeeded" in waiting.shown


@pytest.mark.parametrize("args", [["run", "--auto-approve"], ["run"], ["run", "-o", "json"], ["destroy"]])
def test_without_a_terminal_nobody_waits_behind_a_plan_that_waits_for_approval(home, args):
    module = home.module("hello", HELLO)
    home.dayfly("run", module, code=1, stdin=subprocess.DEVNULL)
    ended = home.dayfly(args[0], module, *args[1:], code=1, stdin=subprocess.DEVNULL)
    assert "hello-2" in ended.stderr and "dayfly approve hello-1" in ended.stderr and "dayfly discard hello-1" in ended.stderr
    phases = {r["metadata"]["name"]: r["status"]["phase"] for r in home.json("get", "runs")["items"]}
    assert phases == {"hello-1": "WaitingApproval", "hello-2": "Canceled"}
    home.dayfly("approve", "hello-1")
    assert home.dayfly("outputs", "hello", "greeting").stdout == "Hello, world!\n"


@pytest.mark.parametrize("answer, phase", [("yes", "Succeeded"), ("no", "Discarded"), ("y", "Discarded"),
                                           ("YES", "Discarded"), ("", "Discarded"), ("\x04", "Discarded")])
def test_a_terminal_is_asked_and_only_yes_applies(home, answer, phase):
    module = home.module("hello", HELLO)
    terminal = on_terminal(home, "run", module)
    terminal.expect("Only 'yes' is accepted:")
    assert "3 to add" in terminal.shown
    terminal.type(answer if answer == "\x04" else answer + "\n")
    assert terminal.end() == (0 if phase == "Succeeded" else 1), terminal.shown
    assert home.json("get", "run", "hello-1")["status"]["phase"] == phase
    assert ("greeting" in home.json("outputs", "hello")) == (phase == "Succeeded")
    # The cause of the end is named once.
    assert terminal.shown.count("iscarded") == (0 if phase == "Succeeded" else 2)
    assert "decided against" not in terminal.shown


def test_a_terminal_shows_the_step_under_way_with_its_time(home):
    module, gate = slow(home)
    terminal = on_terminal(home, "run", module, "--var", f"gate={gate}", "--auto-approve")
    terminal.expect("apply: runs in process")
    dayfly.wait_for("the clock of the apply", lambda: terminal.read() and
                    re.search(r"[|/\\-] apply  [0-9.]+ s", terminal.shown))
    gate.touch()
    assert terminal.end() == 0, terminal.shown


def test_a_dumb_terminal_is_asked_but_not_drawn_on(home):
    home.env["TERM"] = "dumb"
    terminal = on_terminal(home, "run", home.module("hello", HELLO))
    terminal.expect("Only 'yes' is accepted:")
    terminal.type("yes\n")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.shown


def test_a_log_cannot_steer_the_terminal(home):
    module = home.module("evil", r"""
output "evil" { value = "a" }
resource "terraform_data" "evil" {
  provisioner "local-exec" { command = "printf 'x\\033[2Jy\\033]0;title\\007z\\n'" }
}""")
    terminal = on_terminal(home, "run", module, "--auto-approve")
    assert terminal.end() == 0
    assert "\x1b[2J" not in terminal.shown and "\x1b]0;" not in terminal.shown
    assert "^[[2Jy" in terminal.shown


def test_json_on_a_terminal_keeps_the_question_away_from_the_document(home):
    module = home.module("hello", HELLO)
    out = home.directory / "out.json"
    terminal = Terminal(home, "/bin/sh", "-c", f"{dayfly.DAYFLY} run {module} -o json >{out}")
    terminal.expect("Only 'yes' is accepted:")
    terminal.type("yes\n")
    assert terminal.end() == 0, terminal.shown
    assert json.loads(out.read_text())["run"]["status"]["phase"] == "Succeeded"


# ---- interrupting ---------------------------------------------------------------------------------------------------

def test_ctrl_c_at_the_question_cancels_the_run(home):
    terminal = on_terminal(home, "run", home.module("hello", HELLO))
    terminal.expect("Only 'yes' is accepted:")
    terminal.type("\x03")
    assert terminal.end() == 1, terminal.shown
    assert home.json("get", "run", "hello-1")["status"]["phase"] == "Canceled"
    assert home.json("outputs", "hello") == {}


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_mid_apply_cancels_and_waits_for_the_state(home, sig):
    module, gate = slow(home)
    run = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", "-o", "json",
                     stdout=subprocess.PIPE, start_new_session=True)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    run.send_signal(sig)
    document = json.loads(run.communicate(timeout=dayfly.DEADLINE)[0])
    assert run.returncode == 2, "the canceled apply had made a resource"
    assert document["run"]["status"]["phase"] == "Canceled"
    state = json.loads(home.dayfly("state", "show", "slow").stdout)
    assert "first" in [r["name"] for r in state["resources"]]


def test_a_signal_that_comes_to_the_process_and_to_its_group_is_one(home):
    module, gate = slow(home)
    run = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", stdout=subprocess.PIPE, start_new_session=True)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    run.send_signal(signal.SIGTERM)
    os.killpg(run.pid, signal.SIGTERM)
    text = run.communicate(timeout=dayfly.DEADLINE)[0]
    assert run.returncode == 2 and "Canceling slow-1" in text and "Leaving now" not in text, text
    assert "changed something before it was canceled" in text and "`dayfly why slow-1` says more" in text, text


def test_a_second_signal_leaves_and_the_next_command_tells_the_end(home):
    module, gate = slow(home)
    run = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", stdout=subprocess.PIPE)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    runner = home.json("get", "taskaction", "slow-1-apply")["status"]["claimedBy"]["pid"]
    os.kill(runner, signal.SIGSTOP)  # the step must not end before the second signal
    run.send_signal(signal.SIGINT)
    dayfly.wait_for("a later signal to count", lambda: run.poll() is not None or run.send_signal(signal.SIGTERM))
    text = run.communicate(timeout=dayfly.DEADLINE)[0]
    os.kill(runner, signal.SIGCONT)
    assert run.returncode == 130, text
    assert text.index("Canceling slow-1") < text.index("Leaving now")

    def ended():
        return home.json("get", "run", "slow-1")["status"]["phase"] == "Canceled"
    dayfly.wait_for("the end of the run", ended)


# ---- exit codes -----------------------------------------------------------------------------------------------------

def test_why_names_the_option_for_a_variable_without_a_value(either_home):
    module = either_home.module("asks", 'variable "region" {}\noutput "o" { value = var.region }\n')
    either_home.dayfly("plan", module, code=1)
    assert "give it a value: --var region=VALUE" in either_home.dayfly("why", "asks-1").stdout


def test_a_plan_that_fails_is_1_and_why_tells_the_cause(home):
    module = home.module("broken", 'output "x" { value = nonsense.y }\n')
    assert "Failed" in home.dayfly("run", module, "--auto-approve", code=1).stdout
    text = home.dayfly("why", "broken-1").stdout
    for part in ("broken-1, provision of broken: Failed after", "PlanFailed", "Timeline:", "claimed",
                 "The log ends with:", "nonsense", "What to do:"):
        assert part in text, text


def test_an_apply_that_had_changed_something_is_2(home):
    module = home.module("partial", """
resource "terraform_data" "good" { input = "x" }
resource "terraform_data" "bad" {
  depends_on = [terraform_data.good]
  provisioner "local-exec" { command = "exit 7" }
}""")
    document = json.loads(home.dayfly("run", module, "--auto-approve", "-o", "json", code=2).stdout)
    assert document["run"]["status"]["reason"] == "ApplyFailed"
    assert document["steps"][1]["exitCode"] == 2


def test_a_step_that_takes_too_long_is_4(home):
    module, gate = slow(home)
    document = f"""
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {{name: slow}}
spec:
  runtime: {{name: {home.runtime}}}
  source: {{url: "file://{module}", kind: directory}}
  variables: {{gate: "{gate}"}}
  timeouts: {{apply: 2s, grace: 5s}}
"""
    home.dayfly("create", "-f", "-", input=document)
    result = home.dayfly("run", "slow", "--auto-approve", code=4)
    assert "TimedOut" in result.stdout


BAD_INPUT = [
    (["frobnicate"], "unknown command"),
    (["rnu", "."], 'did you mean "run"?'),
    (["run"], "usage: dayfly run"),
    (["run", ".", "--auto"], "did you mean --auto-approve?"),
    (["run", ".", "--action", "destory"], "is not one of"),
    (["run", ".", "--var", "x"], "must be name=value"),
    (["run", ".", "--var", "x=[1,"], "--var x"),
    (["run", ".", "--var-file", "nothing.json"], "nothing.json"),
    (["run", "./nothing-here"], "nothing-here"),
    (["run", ".", "--name", "No_Name"], "No_Name"),
    (["run", "https://git.example/a.git"], "branch"),
    (["run", ".", "--branch", "a", "--tag", "b"], "exclude each other"),
    (["run", ".", "--priority", "high"], '--priority: "high" is not a whole number from -1000 to 1000'),
    (["run", ".", "--priority", "1001"], "--priority"),
    (["run", ".", "--class", "No_Name"], '--class: "No_Name" is not a valid name'),
    (["get", "pods"], "unknown kind"),
    (["get", "runs", "-o", "xml"], "is not one of"),
    (["logs", "Not_A_Name"], "is not a valid name"),
    (["create"], "-f FILE is needed"),
    (["create", "-f", "nothing.yaml"], "nothing.yaml"),
    (["secret", "set", "db", "password", "hunter2"], "seen by everybody"),
    (["secret", "set", "db", "password=hunter2"], "seen by everybody"),
    (["state"], "needs one of: list, show"),
    (["token-file", "create", "--name", "ci"], "--role"),
    (["completion", "tcsh"], "bash, zsh and fish"),
    (["--token-file", "nothing", "get", "runs"], "nothing"),
    (["help", "frobnicate"], "unknown command"),
]


@pytest.mark.parametrize("args, message", BAD_INPUT, ids=[" ".join(a) for a, _ in BAD_INPUT])
def test_bad_input_is_3_with_the_reason_and_does_nothing(home, args, message):
    result = home.dayfly(*args, code=3, cwd=home.directory)
    assert message in result.stderr and result.stdout == ""
    assert "hunter2" not in result.stderr
    assert len(result.stderr.splitlines()) <= 3


BAD_DOCUMENTS = [
    ("kind: Executor\nmetadata: {name: x}\nspec: {}\n", "spec.source"),
    ("kind: Executor\nspec: {source: {url: file:///tmp}}\n", "metadata.name"),
    ("kind: Pod\n", "Pod"),
    ("metadata: {name: x}\n", "kind"),
    ("kind: Executor\nmetadata: {name: x}\nspec: {sauce: 1, source: {url: file:///tmp}}\n", "spec.sauce"),
    ("kind: Executor\nmetadata: {name: x}\nstatus: {}\nspec: {source: {url: file:///tmp}}\n", "status"),
    ("a: [1\n", "2"),
    ("a: &x [*x]\n", ""),
    ("", "no document"),
    ("a: !!python/object 1\n", ""),
]


@pytest.mark.parametrize("text, message", BAD_DOCUMENTS)
def test_bad_documents_are_3_with_the_place(home, text, message):
    result = home.dayfly("create", "-f", "-", input=text, code=3)
    assert message in result.stderr
    assert home.json("get", "executors")["items"] == []


def test_what_is_not_there_is_1(home):
    for args in (["get", "run", "x-1"], ["logs", "x-1"], ["approve", "x-1"], ["why", "x-1"], ["outputs", "x"],
                 ["delete", "x"], ["state", "list", "x"]):
        result = home.dayfly(*args, code=1, cwd=home.directory)
        assert result.stderr.startswith("dayfly: "), args


def test_a_module_that_is_not_there_is_a_wrong_argument(home):
    for word in ("nosuch", "./nosuch", "no/such"):
        assert "nosuch" in (said := home.dayfly("run", word, code=3, cwd=home.directory).stderr) or "no/such" in said, said
    assert home.json("get", "executors")["items"] == []
    assert "no executors, runs or taskactions" in home.dayfly("get", "all").stderr


def test_a_variable_that_the_module_does_not_declare_is_refused_before_the_plan(home):
    module = home.module("team", 'variable "team" {\n  default = "a"\n}\n')
    for action in ("run", "plan"):
        said = home.dayfly(action, module, "--var", "taem=x", code=3).stderr
        assert "--var taem: the module declares no variable of this name; did you mean team?" in said
    assert home.json("get", "runs")["items"] == []
    home.dayfly("plan", module, "--var", "team=x")


# ---- names ----------------------------------------------------------------------------------------------------------

def test_modules_of_one_name_are_two_executors(home):
    one, two = home.module("a/net", HELLO), home.module("b/net", HELLO)
    first = home.json("run", one, "--action", "dry-run")["run"]["spec"]["executorRef"]["name"]
    second = home.json("run", two, "--action", "dry-run")["run"]["spec"]["executorRef"]["name"]
    again = home.json("run", two, "--action", "dry-run")["run"]["spec"]["executorRef"]["name"]
    named = home.json("run", two, "--action", "dry-run", "--name", "mine")["run"]["spec"]["executorRef"]["name"]
    assert first == "net" and re.fullmatch(r"net-[0-9a-f]{8}", second) and again == second and named == "mine"
    assert "has another source" in home.dayfly("run", one, "--name", "mine", code=1).stderr


def test_an_executor_is_run_by_its_name_from_anywhere(home):
    home.dayfly("run", home.module("hello", HELLO), "--auto-approve")
    assert home.json("run", "hello", "--auto-approve", cwd="/")["run"]["metadata"]["name"] == "hello-2"
    home.dayfly("run", "hello", "--branch", "x", code=3, cwd="/")
    # Where another directory has the name of an executor, ./ makes it the directory, executor/ the executor.
    home.module("elsewhere/hello", HELLO)
    inside = home.directory / "elsewhere"
    assert home.json("run", "executor/hello", "--auto-approve", cwd=inside)["run"]["metadata"]["name"] == "hello-3"
    other = home.json("run", "./hello", "--action", "dry-run", cwd=inside)["run"]["spec"]["executorRef"]["name"]
    assert re.fullmatch(r"hello-[0-9a-f]{8}", other)
    home.module("fresh", HELLO)
    assert home.json("run", "fresh", "--action", "dry-run", cwd=home.directory)["run"]["metadata"]["name"] == "fresh-1"


def test_running_never_turns_a_repository_into_a_directory(home, server):
    module = home.module("hello", HELLO)
    commit = home.repository(module)
    text = EXECUTOR.format(name="hello", module=module, runtime=home.runtime, guests=1)
    home.dayfly("create", "-f", "-", input=text.replace("kind: directory", "kind: git, branch: main"))
    before = home.json("get", "executor", "hello")["spec"]
    document = home.json("run", "hello", "--action", "dry-run", cwd=home.directory)
    assert document["run"]["status"]["source"]["commit"] == commit
    refused = home.dayfly("run", "./hello", "--action", "dry-run", cwd=home.directory, code=1)
    assert "--branch main" in refused.stderr
    home.json("run", "./hello", "--branch", "main", "--action", "dry-run", cwd=home.directory)
    assert home.json("get", "executor", "hello")["spec"] == before


def test_a_repository_is_run_by_url_and_folder(home):
    module = home.module("infra/live/net", HELLO)
    repository = home.directory / "infra"
    commit = home.repository(repository)
    document = home.json("run", f"file://{repository}", "--branch", "main", "--folder", "live/net", "--auto-approve")
    assert document["run"]["spec"]["executorRef"]["name"] == "infra-net"
    assert document["run"]["status"]["source"]["commit"] == commit
    (module / "main.tf").write_text(HELLO.replace("Hello,", "Goodbye,"))
    assert home.json("run", "infra-net", "--auto-approve")["run"]["status"]["reason"] == "NoChanges"


# ---- the rest -------------------------------------------------------------------------------------------------------

def test_every_command_has_help(home):
    overview = home.dayfly("help").stdout
    assert home.dayfly().stdout == overview and home.dayfly("--help").stdout == overview
    commands = re.findall(r"^  ([a-z]+(?: [a-z-]+)?)  +\S", overview.split("Common options")[0], re.M)
    assert len(commands) >= 28
    for command in commands:
        text = home.dayfly(*command.split(), "--help").stdout
        assert f"Usage: dayfly {command}" in text and "Examples:" in text
        assert home.dayfly("help", *command.split()).stdout == text


def test_version(home, server):
    version = (dayfly.ROOT / "VERSION").read_text().strip()
    assert home.dayfly("--version").stdout == home.dayfly("version").stdout
    assert home.json("version") == {"version": version, "server": home.json("version")["server"]}
    assert home.json("version")["server"]["version"] == version


def test_a_reader_that_goes_away_is_no_error(home, server):
    result = home.run("bash", "-c", f"{dayfly.DAYFLY} help | head -n 1")
    assert result.returncode == 0 and result.stderr == ""
