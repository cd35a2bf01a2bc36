"""The command line and the service behind it: who is it, and what it keeps."""

import contextlib
import json
import re
import subprocess

import pytest

from lib import dayfly
from lib.commands import EXECUTOR, HELLO, begun, on_terminal, slow

# ---- neighbours -----------------------------------------------------------------------------------------------------

def test_commands_find_the_service_of_this_machine(home):
    data = home.state
    server = dayfly.Server(home, data=data)
    with server:
        del home.env["DAYFLY_SERVER"]
        home.dayfly("run", home.module("hello", HELLO), "--auto-approve")
        assert [r["metadata"]["name"] for r in server.get("/v1/runs")["items"]] == ["hello-1"]
    # And without it they are the service, with the same data.
    assert [r["metadata"]["name"] for r in home.json("get", "runs")["items"]] == ["hello-1"]


def test_a_second_command_is_a_client_of_the_first(home):
    module, gate = slow(home)
    first = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve",
                       stdout=subprocess.PIPE)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    assert home.json("get", "run", "slow-1")["status"]["phase"] == "Running"
    logs = home.popen(dayfly.DAYFLY, "logs", "-f", "slow-1", stdout=subprocess.PIPE)
    gate.touch()
    assert "slow-1: Succeeded" in first.communicate(timeout=dayfly.DEADLINE)[0]
    assert "terraform_data.slow" in logs.communicate(timeout=dayfly.DEADLINE)[0]
    assert first.returncode == 0 and logs.returncode == 0


def test_who_is_the_service_stays_for_the_runs_of_others(home):
    (module, gate), (other, other_gate) = slow(home), slow(home, "other")
    owner = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve",
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    dayfly.wait_for("the first apply to begin", lambda: begun(gate))
    client = home.popen(dayfly.DAYFLY, "run", other, "--var", f"gate={other_gate}", "--auto-approve",
                        stdout=subprocess.PIPE)
    dayfly.wait_for("the second apply to begin", lambda: begun(other_gate))
    gate.touch()
    assert "executor slow created" in owner.stderr.readline()
    assert "staying until other-1 has ended" in owner.stderr.readline()
    assert owner.poll() is None
    other_gate.touch()
    assert "other-1: Succeeded" in client.communicate(timeout=dayfly.DEADLINE)[0]
    assert "slow-1: Succeeded" in owner.communicate(timeout=dayfly.DEADLINE)[0]
    assert client.returncode == 0 and owner.returncode == 0


def test_a_question_outlives_the_service_that_asked_it(home):
    module, gate = slow(home)
    owner = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve",
                       stdout=subprocess.PIPE)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    terminal = on_terminal(home, "run", home.module("hello", HELLO))
    terminal.expect("Only 'yes' is accepted:")
    gate.touch()
    owner.communicate(timeout=dayfly.DEADLINE)
    assert owner.returncode == 0
    terminal.expect("this one carries the run on")
    dayfly.wait_for("the question to be asked again",
                    lambda: terminal.read() and terminal.shown.count("Only 'yes' is accepted:") == 2)
    terminal.type("yes\n")
    assert terminal.end() == 0, terminal.shown
    assert "hello-1: Succeeded" in terminal.shown


def test_when_the_service_dies_a_client_takes_its_place(home):
    (module, gate), (other, other_gate) = slow(home), slow(home, "other")
    owner = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve",
                       stdout=subprocess.PIPE)
    dayfly.wait_for("the first apply to begin", lambda: begun(gate))
    heir = home.popen(dayfly.DAYFLY, "run", other, "--var", f"gate={other_gate}", "--auto-approve",
                      stdout=subprocess.PIPE)
    dayfly.wait_for("the second apply to begin", lambda: begun(other_gate))
    owner.kill()
    owner.communicate()
    other_gate.touch()
    gate.touch()
    text = heir.communicate(timeout=dayfly.DEADLINE)[0]
    assert heir.returncode == 0, text
    assert "other-1: Succeeded" in text
    assert text.count("terraform_data.first: Creating...") == 1, "a part of the log is shown twice"

    def ended():
        return home.json("get", "run", "slow-1")["status"]["phase"] == "Succeeded"
    dayfly.wait_for("the run of the dead owner to end", ended)


def test_a_follower_survives_a_restart_of_the_service(home, server):
    module, gate = slow(home)
    run = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", stdout=subprocess.PIPE)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    server.kill()
    server.args += ["--set", f"listen={server.url.removeprefix('http://')}"]
    server.start()
    gate.touch()
    text = run.communicate(timeout=dayfly.DEADLINE)[0]
    assert run.returncode == 0, text
    assert text.count("slow-1: Succeeded") == 1
    assert text.count("terraform_data.first: Creating...") == 1, text


# A cluster that does not answer, so that its steps stay as they are.
PODS = """
engines: {engines}
kubernetes: {{kubeconfig: {kubeconfig}, image: "registry.example/runner:1"{more}}}
listen: 127.0.0.1:{port}
advertiseUrl: http://127.0.0.1:{port}
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: away
contexts: [{name: away, context: {cluster: away, user: me, namespace: default}}]
clusters: [{name: away, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: none}}]
"""
REMOTE = """
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {name: net}
spec: {source: {url: "https://git.example/net.git", branch: main}}
"""


@contextlib.contextmanager
def serving_pods(home, engines="[job]", more=""):
    """The log of a `dayfly serve` on the user's data directory that would start pods. It answers, and is never ready.
    more: keys of `kubernetes`."""
    config = home.directory / "pods.yaml"
    config.write_text(PODS.format(kubeconfig=home.directory / "kubeconfig", port=dayfly.free_port(), engines=engines, more=more))
    (home.directory / "kubeconfig").write_text(KUBECONFIG)
    endpoint = home.state / "endpoint"
    endpoint.unlink(missing_ok=True)
    log = home.directory / "pods.log"
    with open(log, "w", encoding="utf-8") as stderr:
        server = home.popen(dayfly.DAYFLY, "serve", "--config", config, stderr=stderr)
    try:
        dayfly.wait_for("the service to answer", endpoint.exists)
        yield log
    finally:
        server.terminate()
        assert server.wait(timeout=dayfly.DEADLINE) == 0


@pytest.mark.parametrize(("more", "warns"), [("", True), (", stepNamespace: default", True), (", stepNamespace: steps", False)])
def test_a_service_says_when_bundles_of_tekton_may_mount_what_is_its_own(home, more, warns):
    with serving_pods(home, "[job, tekton]", more) as log:
        assert ("the engine tekton runs Pipelines in the service's own namespace, default" in log.read_text()) == warns


def test_a_follower_waits_for_a_service_with_other_engines(home):
    def step():
        items = home.json("get", "taskactions")["items"]
        return items[0] if items else None
    with serving_pods(home):
        home.dayfly("create", "-f", "-", input=REMOTE)
        run = home.popen(dayfly.DAYFLY, "run", "net", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert dayfly.wait_for("the step", step)["spec"]["engine"] == "job"
    assert run.stdout.readline().startswith("net-1: provision of net")
    assert "start `dayfly serve` again" in run.stdout.readline()
    # Nor does a new command continue the work of that service.
    refused = home.dayfly("run", "net", code=1).stderr
    assert "has the step net-1-plan of the engine job" in refused and "--config" in refused
    assert step()["status"]["conditions"][0]["reason"] in ("Queued", "Initializing"), step()
    with serving_pods(home):
        home.dayfly("cancel", "net-1")
        out, err = run.communicate(timeout=dayfly.DEADLINE)
        assert "net-1: Canceled" in out, err
    assert run.returncode == 1


# ---- documents ------------------------------------------------------------------------------------------------------

def test_create_apply_get_describe_delete(home, server):
    module = home.module("hello", HELLO)

    def text(name, guests):
        return EXECUTOR.format(name=name, module=module, runtime=home.runtime, guests=guests)
    created = home.dayfly("create", "-f", "-", input=text("one", 1) + "---" + text("two", 2)).stdout
    assert created == "executor/one created\nexecutor/two created\n"
    assert home.dayfly("create", "-f", "-", input=text("one", 1), code=1).stderr
    assert home.dayfly("apply", "-f", "-", input=text("one", 1)).stdout == "executor/one unchanged\n"
    assert home.dayfly("apply", "-f", "-", input=text("one", 5)).stdout == "executor/one changed\n"
    assert home.dayfly("apply", "-f", "-", input=text("three", 5)).stdout == "executor/three created\n"
    assert home.json("get", "executor", "one")["spec"]["variables"] == {"guests": 5}
    assert set(home.dayfly("get", "executors", "-o", "name").stdout.split()) == {"executor/one", "executor/two", "executor/three"}
    table = home.dayfly("get", "executors").stdout.splitlines()
    assert table[0].split()[:3] == ["NAME", "STATE", "STATUS"] and len(table) == 4
    assert "Source" in home.dayfly("describe", "executor", "one").stdout
    run = "kind: Run\nspec: {executorRef: {name: one}, action: dry-run}\n"
    assert home.dayfly("create", "-f", "-", input=run).stdout == "run/one-1 created\n"
    assert home.dayfly("logs", "-f", "one-1").stdout.count("Plan: 6 to add") == 1
    assert home.dayfly("delete", "two", "three").stdout == "executor/two deleted\nexecutor/three deleted\n"
    assert home.dayfly("get", "executors", "-o", "name").stdout.split() == ["executor/one"]
    assert "create" in home.dayfly("get", "audit").stdout


def test_a_failure_in_the_middle_says_what_was_not_sent(home, server):
    module = home.module("hello", HELLO)
    good = EXECUTOR.format(name="good", module=module, runtime=home.runtime, guests=1)
    result = home.dayfly("create", "-f", "-", input=good + "---\nkind: Nonsense\n---" + good.replace("good", "late"),
                         code=3)
    assert result.stdout == "executor/good created\n"
    assert "document 2" in result.stderr and "nothing after it was sent" in result.stderr


def test_a_second_cancel_says_that_the_run_has_ended(home, server):
    home.dayfly("run", home.module("hello", HELLO), code=1)  # it waits for approval
    assert home.dayfly("cancel", "-f", "hello-1", code=None).stdout.startswith("hello-1 will be canceled\n")
    assert home.dayfly("cancel", "hello-1").stdout == "hello-1 has ended already: Canceled\n"


def test_watching_shows_changes_as_they_come(home, server):
    module = home.module("hello", HELLO)
    watch = home.popen(dayfly.DAYFLY, "get", "runs", "-w", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        home.dayfly("run", module, "--action", "dry-run")
        seen = []

        def planned():
            seen.append(watch.stdout.readline())
            return "Planned" in seen[-1]
        dayfly.wait_for("the run to be shown as planned", planned)
    finally:
        watch.kill()
        watch.communicate()


# ---- logs -----------------------------------------------------------------------------------------------------------

def test_logs_are_the_same_at_once_and_followed(home, server):
    home.dayfly("run", home.module("hello", HELLO), "--auto-approve")
    whole = home.dayfly("logs", "hello-1").stdout
    assert home.dayfly("logs", "-f", "hello-1").stdout == whole
    plan, apply = (home.dayfly("logs", "hello-1", "--step", s).stdout for s in ("plan", "apply"))
    assert plan + apply == whole and "Plan: 3 to add" in plan and "Creation complete" in apply
    assert home.dayfly("logs", "-f", "hello-1", "--step", "apply").stdout == apply
    events = [json.loads(line) for line in home.dayfly("logs", "hello-1", "--events").stdout.splitlines()]
    assert {"change_summary", "apply_complete"} <= {e.get("type") for e in events}
    followed = home.dayfly("logs", "-f", "hello-1", "--events").stdout
    assert [json.loads(line) for line in followed.splitlines()] == events


# ---- outputs, secrets, state ----------------------------------------------------------------------------------------

def test_outputs_hide_what_is_sensitive_until_asked(home):
    home.dayfly("run", home.module("hello", HELLO), "--auto-approve")
    text = home.dayfly("outputs", "hello").stdout
    assert text.splitlines()[0] == "door_code = <sensitive>"
    assert home.dayfly("outputs", "hello", "greeting").stdout == "Hello, world!\n"
    assert home.json("outputs", "hello", "places") == ["place 1, facing Hello, world!",
                                                       "place 2, facing Hello, world!"]
    assert "value" not in home.json("outputs", "hello")["door_code"]
    assert "--show-sensitive" in home.dayfly("outputs", "hello", "door_code", code=3).stderr
    code = home.dayfly("outputs", "hello", "door_code", "--show-sensitive").stdout
    assert re.fullmatch(r"code-[0-9a-f]{64}\n", code)
    assert "there are" in home.dayfly("outputs", "hello", "nothing", code=1).stderr or True
    assert "greeting" in home.dayfly("outputs", "hello", "nothing", code=1).stderr


def test_a_secret_goes_in_and_never_comes_out(home, server):
    module = home.module("hello", HELLO)
    file = home.directory / "value"
    file.write_text("exact\n")
    assert home.dayfly("secret", "set", "db", "name", input="hunter-two-2\n").stdout == "secret/db key name set\n"
    home.dayfly("secret", "set", "db", "other", "--from-file", file)
    home.dayfly("secret", "set", "db", "empty", input="", code=3)
    assert home.json("secret", "list")["items"][0]["keys"] == ["name", "other"]
    home.dayfly("create", "-f", "-", input=EXECUTOR.format(
        name="hello", module=module, runtime=home.runtime, guests=1) + "  secrets: [{name: db, keys: [name]}]\n")
    text = home.dayfly("run", "hello", "--auto-approve").stdout
    assert "hunter-two-2" not in text
    everything = home.dayfly("logs", "hello-1").stdout + home.dayfly("get", "runs", "-o", "yaml").stdout + \
        home.dayfly("get", "taskactions", "-o", "json").stdout + home.dayfly("logs", "hello-1", "--events").stdout
    assert "hunter-two-2" not in everything
    home.dayfly("secret", "delete", "db", "other")
    assert home.json("secret", "list")["items"][0]["keys"] == ["name"]
    refused = home.dayfly("secret", "delete", "db", code=1).stderr
    assert "in use by executor hello" in refused and "--force" in refused
    home.dayfly("secret", "delete", "db", "--force")
    assert home.json("secret", "list")["items"] == []


def test_a_secret_is_typed_unseen(home, server):
    terminal = on_terminal(home, "secret", "set", "db", "name")
    terminal.expect("(not shown)")
    terminal.type("hunteX\x7fr2\n")
    assert terminal.end() == 0, terminal.shown
    assert "hunte" not in terminal.shown
    assert home.json("secret", "list")["items"][0]["keys"] == ["name"]
    terminal = on_terminal(home, "secret", "set", "db", "second")
    terminal.expect("(not shown)")
    terminal.type("abc\x03")
    assert terminal.end() == 3
    assert home.json("secret", "list")["items"][0]["keys"] == ["name"]


def test_state_versions_lock_and_rollback(home, server):
    module = home.module("hello", HELLO)
    home.dayfly("run", module, "--auto-approve")
    home.dayfly("run", module, "--auto-approve", "--var", "name=moon")
    versions = home.json("state", "list", "hello")["items"]
    assert versions[0]["run"] == "hello-2"
    first = next(v["version"] for v in versions if v["run"] == "hello-1")
    newest = json.loads(home.dayfly("state", "show", "hello").stdout)
    assert newest["outputs"]["greeting"]["value"] == "Hello, moon!"
    old = json.loads(home.dayfly("state", "show", "hello", "--version", first).stdout)
    assert old["serial"] < newest["serial"]

    home.dayfly("state", "lock", "hello", "--reason", "moving it")
    assert "moving it" in home.dayfly("state", "list", "hello").stdout
    assert home.dayfly("state", "lock", "hello", code=1).stderr
    met = home.dayfly("run", module, "--auto-approve", code=None)
    assert "StateLocked" in met.stdout and "moving it" in met.stdout
    assert "left this lock behind" not in met.stdout + met.stderr, met  # a step ended just before it, on the same host
    assert "released" in home.dayfly("state", "unlock", "hello").stdout
    assert "not locked" in home.dayfly("state", "unlock", "hello").stdout

    assert "is the current one already" in home.dayfly("state", "rollback", "hello", versions[0]["version"], code=3).stderr
    assert 'version "x"' in home.dayfly("state", "rollback", "hello", "x", code=3).stderr
    home.dayfly("state", "rollback", "hello", first)
    assert home.json("state", "list", "hello")["items"][0]["rollbackOf"] == first
    home.dayfly("state", "rollback", "hello", 999, code=1)
    assert home.json("state", "errored", "hello")["items"] == []
    assert "no errored state" in home.dayfly("state", "push-errored", "hello", code=1).stderr


# ---- tokens ---------------------------------------------------------------------------------------------------------

def test_tokens_are_made_once_and_open_what_their_role_allows(home):
    tokens = {role: home.json("token-file", "create", "--name", role, "--role", role) for role in ("read", "admin")}
    file = home.directory / "tokens"
    file.write_text("".join(t["line"] + "\n" for t in tokens.values()))
    file.chmod(0o600)
    for role, made in tokens.items():
        assert made["token"] not in made["line"]
        (home.directory / f"{role}.token").write_text(made["token"] + "\n")
    with dayfly.Server(home, "--set", f"auth.tokenFile={file}"):
        assert home.dayfly("get", "runs", code=1).stderr
        home.dayfly("get", "runs", env={"DAYFLY_TOKEN": tokens["read"]["token"]})
        home.dayfly("get", "runs", "--token-file", home.directory / "read.token")
        refused = home.dayfly("secret", "set", "a", "b", "--token-file", home.directory / "read.token", input="x",
                              code=1)
        assert "write" in refused.stderr
        home.dayfly("secret", "set", "a", "b", "--token-file", home.directory / "admin.token", input="x")
