"""Reading from the command line: lists, one thing by any of its names, documents that go back, and who holds what."""

import fcntl
import hashlib
import json
import os
import re
import stat
import struct
import subprocess
import termios
import urllib.parse
import urllib.request

import pytest
import yaml

from lib import dayfly
from lib.commands import EXECUTOR, HELLO, begun, on_terminal, slow

# ---- lists ----------------------------------------------------------------------------------------------------------

LABELS = {"one": {"team": "net", "stage": "dev"}, "two": {"team": "net", "stage": "prod"}, "three": {"team": "db"}}


def executors(home, names=LABELS):
    """Executors that never ran, with labels."""
    module = home.module("hello", HELLO)
    documents = []
    for guests, name in enumerate(names, 1):
        document = yaml.safe_load(EXECUTOR.format(name=name, module=module, runtime=home.runtime, guests=guests))
        document["metadata"]["labels"] = LABELS.get(name, {})
        documents.append(json.dumps(document))
    home.dayfly("create", "-f", "-", input="\n---\n".join(documents))


def names(home, *words):
    return home.dayfly("get", *words, "-o", "name").stdout.split()


@pytest.fixture
def three(home, server):
    executors(home)
    return home


def test_several_names_are_shown_together(three):
    assert names(three, "executors", "two", "one") == ["executor/two", "executor/one"]
    items = three.json("get", "executor/one", "exec/three")["items"]
    assert [i["metadata"]["name"] for i in items] == ["one", "three"]
    assert three.json("get", "executor", "one")["metadata"]["name"] == "one"
    missing = three.dayfly("get", "executors", "one", "nobody", "-o", "name", code=1)
    assert missing.stdout == "executor/one\n" and "nobody" in missing.stderr


def test_a_name_alone_is_an_executor_or_a_run(three):
    three.dayfly("run", "one", "--action", "dry-run")
    assert names(three, "one", "one-1") == ["executor/one", "run/one-1"]
    assert "no executor and no run" in three.dayfly("get", "nobody", code=3).stderr
    executors(three, ["one-1"])
    for command in ("get", "describe", "logs", "why"):
        error = three.dayfly(command, "one-1", code=3).stderr
        assert "executor/one-1" in error and "run/one-1" in error
    assert names(three, "run/one-1") == ["run/one-1"]


def test_an_executor_named_as_a_run_is_answered_with_the_list_of_its_runs(three):
    for command in (["get", "runs", "one"], ["get", "run/one"], ["describe", "run", "one"]):
        error = three.dayfly(*command, code=1).stderr
        assert "one is an executor, not a run: `dayfly get runs --executor one` lists its runs" in error
    assert "executor" not in three.dayfly("get", "runs", "nobody", code=1).stderr


def test_every_command_takes_the_names_that_get_prints(three):
    run = three.dayfly("run", "executor/one", "--no-wait").stdout
    assert "one-1" in run
    (printed,) = names(three, "runs")
    assert printed == "run/one-1"
    assert "Phase" in three.dayfly("describe", printed).stdout
    assert "Plan:" in three.dayfly("logs", printed).stdout
    assert "waits for a decision" in three.dayfly("why", printed).stdout
    assert three.dayfly("approve", "-f", printed).stdout
    assert three.dayfly("outputs", "executor/one").stdout
    assert three.dayfly("state", "list", "executor/one").stdout
    assert three.dayfly("cancel", printed, code=1).stderr
    step = names(three, "steps")[0]
    assert step.startswith("taskaction/")
    assert three.dayfly("why", step).stdout and three.dayfly("describe", step).stdout
    assert three.dayfly("delete", *names(three, "executors", "two", "three")).stdout == \
        "executor/two deleted\nexecutor/three deleted\n"
    assert "takes no run" in three.dayfly("outputs", printed, code=3).stderr


def test_logs_and_why_of_an_executor_are_those_of_its_latest_run(three):
    three.dayfly("run", "one", "--action", "dry-run")
    three.dayfly("run", "one", "--auto-approve")
    assert three.dayfly("logs", "one").stdout == three.dayfly("logs", "one-2").stdout
    assert three.dayfly("why", "executor/one").stdout.startswith("one-2, provision of one")
    assert "has no run yet" in three.dayfly("logs", "two", code=1).stderr


def test_a_run_whose_step_has_no_runner_says_what_it_waits_for(home):
    module, gate = slow(home)
    with dayfly.Server(home, config="limits: {steps: 1}\n"):
        home.dayfly("run", module, "--auto-approve", "--var", f"gate={gate}", "-d")
        dayfly.wait_for("the apply to begin", lambda: begun(gate))
        executors(home, ["one"])
        home.dayfly("run", "one", "--auto-approve", "-d")
        waits = "Its step one-1-plan waits for its runner: 1 step runs, the limit is 1 (limits.steps); it is the next\n"
        dayfly.wait_for("the run to wait for a slot", lambda: waits in home.dayfly("why", "one").stdout)
        assert "under way" not in home.dayfly("why", "one-1").stdout
        empty = home.dayfly("logs", "one-1")
        assert (empty.stdout, empty.stderr) == ("", "dayfly: run one-1 is Running and has nothing in its log yet: "
                                                    "`dayfly why one-1` says what it waits for\n")
        home.dayfly("run", "one", "--auto-approve", "-d")
        home.dayfly("cancel", "one-2")
        ended = "run one-2 is Canceled and has nothing in its log: `dayfly why one-2` says why\n"
        for follow in ([], ["-f"]):
            empty = home.dayfly("logs", "one-2", *follow)
            assert empty.stdout == "" and ended in empty.stderr
        gate.touch()
        dayfly.wait_for("the run to end", lambda: home.json("get", "run", "one-1")["status"]["phase"] == "Succeeded")
        shown = home.dayfly("logs", "one-1")
        assert "Apply complete" in shown.stdout and shown.stderr == ""


def test_get_all_shows_executors_runs_and_steps(three):
    three.dayfly("run", "one", "--action", "dry-run")
    assert names(three, "all") == ["executor/one", "executor/two", "executor/three", "run/one-1", "taskaction/one-1-plan"]
    tables = three.dayfly("get", "all").stdout.split("\n\n")
    assert [t.split()[0] for t in tables] == ["NAME"] * 3


@pytest.mark.parametrize("selector, chosen", [
    ("team=net", ["one", "two"]), ("team=net,stage!=dev", ["two"]), ("stage", ["one", "two"]), ("!stage", ["three"]),
    ("team in (db,web)", ["three"]), ("team notin (db)", ["one", "two"]), ("team=nobody", [])])
def test_labels_choose_as_in_kubectl(three, server, selector, chosen):
    assert names(three, "executors", "-l", selector) == [f"executor/{name}" for name in chosen]
    # One item a page: the cursor goes on behind what did not match.
    found, cursor = [], ""
    while cursor is not None:
        page = server.get(f"/v1/executors?limit=1&label={urllib.parse.quote(selector)}{cursor}")
        found += [i["metadata"]["name"] for i in page["items"]]
        cursor = f"&cursor={page['nextCursor']}" if page.get("nextCursor") else None
    assert found == chosen


def test_lists_are_filtered_by_state_status_and_phase_and_pages_go_on(three, server):
    three.dayfly("run", "one", "--auto-approve")
    three.dayfly("run", "one", "--action", "dry-run")
    three.dayfly("run", "two", "--no-wait")

    def found(path):
        """All names, one item a page: the cursor goes on behind what did not match."""
        said, cursor = [], ""
        while cursor is not None:
            page = server.get(f"/v1/{path}{'&' if '?' in path else '?'}limit=1{cursor}")
            said += [i["metadata"]["name"] for i in page["items"]]
            cursor = f"&cursor={page['nextCursor']}" if page.get("nextCursor") else None
        return said

    assert found("executors?state=provisioned") == ["one"]
    assert found("executors?state=provision,provisioned") == ["one", "two", "three"]
    assert found("executors?state=provision&status=pending") == ["two"]
    assert found("executors?status=ready,pending&label=team%3Dnet") == ["two"]
    assert found("runs?phase=Succeeded") == ["one-2", "one-1"] and found("runs?phase=Failed") == []
    assert found("executors/one/runs?phase=Succeeded,WaitingApproval") == ["one-2", "one-1"]
    assert found("executors/two/runs?phase=WaitingApproval") == ["two-1"]
    creator = server.get("/v1/executors/one")["status"]["creator"]
    assert found(f"executors?creator={creator}&state=provision") == ["two", "three"] and found("executors?creator=nobody") == []
    assert found(f"runs?creator={creator}&phase=Succeeded") == ["one-2", "one-1"] and found("runs?creator=nobody") == []
    assert found(f"executors/one/runs?creator={creator}") == ["one-2", "one-1"] and found("executors/one/runs?label=!dayfly.dev/executor") == []
    assert names(three, "executors", "--creator", creator, "--state", "PENDING,provisioned") == ["executor/one", "executor/two"]
    assert names(three, "executors", "--state", "Provision", "--limit", "1") == ["executor/two"]
    assert names(three, "runs", "--creator", creator, "--state", "waitingapproval") == ["run/two-1"] and names(three, "runs", "--creator", "nobody") == []
    assert names(three, "runs", "--executor", "one", "--creator", creator, "--state", "Failed,SUCCEEDED") == ["run/one-2", "run/one-1"]
    assert "--creator is for executors and runs" in three.dayfly("get", "taskactions", "--creator", "me", code=3).stderr
    assert "--creator is for lists" in three.dayfly("get", "executor", "one", "--creator", "me", code=3).stderr
    for path in ("executors?creator=", "runs?creator=", "taskactions?creator=me", "executors?state=ready", "executors?status=provisioned", "executors?state=", "executors?state=destroy,",
                 "runs?phase=pending", "runs?state=provision", "taskactions?phase=Running", "executors/one/runs?status=done"):
        assert server.request("GET", f"/v1/{path}")[0] == 400, path


def test_an_executor_that_names_a_missing_secret_is_made_with_a_warning_and_the_command(home, server):
    module = home.module("hello", HELLO)
    spec = {"source": {"url": f"file://{module}", "kind": "directory", "secretRef": {"name": "git"}},
            "secrets": [{"name": "db", "keys": ["password"]}, {"name": "there"}],
            "integrations": [{"provider": "datadog", "secretRef": {"name": "dd"}}]}
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "e"}, "spec": spec}
    home.dayfly("secret", "set", "there", "key", input="v")
    made = home.dayfly("create", "-f", "-", "-o", "json", input=json.dumps(document))
    stored = json.loads(made.stdout)
    for place, name, key in (("spec.secrets", "db", "password"), ("spec.integrations", "dd", "KEY"), ("spec.source.secretRef", "git", "KEY")):
        (said,) = [w for w in stored["warnings"] if w.startswith(f'{place}: secret "{name}" does not exist yet')]
        assert said.endswith(f"`dayfly secret set {name} {key}` makes it") and f"dayfly: warning: {said}\n" in made.stderr
    assert len(stored["warnings"]) == 3
    assert "warnings" not in home.json("get", "executor", "e"), "it is said once, and stored nowhere"
    # What -o prints goes back; a change says what is still missing, and nothing when nothing is.
    stored["spec"]["description"] = "changed"
    home.dayfly("secret", "set", "dd", "api_key", input="v")
    changed = home.dayfly("apply", "-f", "-", input=json.dumps(stored))
    assert changed.stdout == "executor/e changed\n" and changed.stderr.count("dayfly: warning: ") == 2
    for name in ("db", "git"):
        home.dayfly("secret", "set", name, "password", input="v")
    status, _, body = server.request("PATCH", "/v1/executors/e", {"spec": {"description": "again"}})
    assert status == 200 and "warnings" not in json.loads(body)
    both = [{**document, "metadata": {"name": name}} for name in ("f", "g")]
    listed = home.json("create", "-f", "-", input="\n---\n".join(map(json.dumps, both)))
    assert [i["metadata"]["name"] for i in listed["items"]] == ["f", "g"]


def test_a_selector_that_makes_no_sense_is_refused(three):
    assert "team>1" in three.dayfly("get", "executors", "-l", "team>1", code=3).stderr
    assert "have no labels" in three.dayfly("get", "secrets", "-l", "a=b", code=3).stderr


def test_states_choose_executors_and_phases_runs(three):
    three.dayfly("run", "one", "--auto-approve")
    three.dayfly("run", "two", "--no-wait")
    assert names(three, "executors", "--state", "provisioned") == ["executor/one"]
    assert names(three, "executors", "--state", "ready,Pending") == ["executor/two", "executor/three"]
    assert names(three, "runs", "--state", "waitingapproval") == ["run/two-1"]
    assert "Succeeded" in three.dayfly("get", "runs", "--state", "Won", code=3).stderr


def test_lists_are_sorted_and_limited(three):
    assert names(three, "executors", "--sort-by", "age") == ["executor/one", "executor/two", "executor/three"]
    assert names(three, "executors", "--sort-by", ".spec.variables.guests", "--limit", "2") == ["executor/one", "executor/two"]
    assert names(three, "executors", "--sort-by", "{.metadata.labels.stage}")[-1] == "executor/three"
    assert names(three, "executors", "--limit", "1") == ["executor/one"]
    assert "LAST RUN" in three.dayfly("get", "executors", "--sort-by", "size", code=3).stderr


def test_a_namespace_chooses(three):
    assert len(names(three, "executors", "-n", "default")) == 3
    assert names(three, "executors", "-n", "elsewhere") == []


def test_describe_shows_labels_and_the_names_of_the_environment(home, server):
    document = yaml.safe_load(EXECUTOR.format(name="one", module=home.module("hello", HELLO), runtime=home.runtime, guests=1))
    document["metadata"]["labels"] = LABELS["one"]
    document["spec"]["environment"] = [{"name": "HTTP_X", "value": "hidden-1"}, {"name": "HTTP_Y", "value": "hidden-2"}]
    home.dayfly("create", "-f", "-", input=json.dumps(document))
    shown = home.dayfly("describe", "executor", "one").stdout
    assert "team=net,stage=dev" in shown and "HTTP_X,HTTP_Y" in shown and "hidden" not in shown


def test_delete_tries_every_name(three):
    result = three.dayfly("delete", "one", "nobody", "No_Name", "two", code=1)
    assert result.stdout == "executor/one deleted\nexecutor/two deleted\n"
    assert "nobody" in result.stderr and "No_Name" in result.stderr
    assert names(three, "executors") == ["executor/three"]
    three.dayfly("delete", "nobody", code=1)
    three.dayfly("delete", "No_Name", code=3)


def test_a_run_that_has_ended_takes_no_decision(three):
    three.dayfly("run", "one", "--no-wait")
    three.dayfly("approve", "-f", "one-1")
    for verb in ("approve", "discard", "cancel"):
        refused = three.dayfly(verb, "one-1", code=1)
        assert "one-1 is Succeeded" in refused.stderr and refused.stdout == ""


# ---- tables ---------------------------------------------------------------------------------------------------------

def table_on_terminal(home, columns, *words, command=("get",)):
    """The lines of `dayfly get ...` on a terminal with so many columns."""
    terminal = on_terminal(home, *command, *words)
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    assert terminal.end() == 0, terminal.shown
    return terminal.shown.splitlines()


def test_a_table_is_cut_on_a_terminal_and_whole_in_a_pipe(home, server):
    name = "a-name-of-an-executor-that-is-rather-long-and-longer"
    executors(home, [name])
    whole = home.dayfly("get", "executors").stdout.splitlines()
    assert len(whole[1]) > 60 and name in whole[1]
    cut = table_on_terminal(home, 60, "executors")
    assert len(cut) == len(whole) and max(map(len, cut)) <= 60 and "…" in cut[1]
    wide = table_on_terminal(home, 60, "executors", "-o", "wide")
    assert name in wide[1] and len(wide[1]) > 60


def test_the_tables_of_other_commands_fit_a_terminal_too(home, server):
    home.dayfly("run", home.module("net", 'output "a" {\n  value = 1\n}\n'), "--auto-approve")
    versions = table_on_terminal(home, 40, "net", command=("state", "list"))
    assert max(map(len, versions)) <= 40 < max(map(len, home.dayfly("state", "list", "net").stdout.splitlines())), versions
    told = table_on_terminal(home, 70, "run", "net-1", command=("describe",))
    whole = home.dayfly("describe", "run", "net-1").stdout
    assert max(map(len, told)) <= 70 < max(map(len, whole.splitlines())), told
    words = whole[whole.index("Conditions:"):].split()
    assert " ".join(told).split()[-len(words):] == words, "wrapped, not cut"


# ---- watching -------------------------------------------------------------------------------------------------------

class Watcher:
    """`dayfly get ... -w` whose lines are read as they come."""

    def __init__(self, home, *words):
        self.process = home.popen(dayfly.DAYFLY, "get", *words, "-w", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = ""

    def lines(self):
        try:
            self.text += os.read(self.process.stdout.fileno(), 65536).decode()
        except BlockingIOError:
            assert self.process.poll() is None, self.process.stderr.read()
        return self.text.splitlines()

    def expect(self, what):
        dayfly.wait_for(what, lambda: any(what in line for line in self.lines()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_a_watcher_keeps_its_columns(home, server):
    module = home.module("hello", HELLO)
    with Watcher(home, "runs") as watcher:
        home.dayfly("run", module, "--auto-approve")
        watcher.expect("Succeeded")
        lines = watcher.lines()
    at = lines[0].index("PHASE")
    assert lines[0].startswith("NAME") and sum(line.startswith("NAME") for line in lines) == 1
    assert {line[at:].split()[0] for line in lines[1:]} >= {"Succeeded"}
    assert all(line[at - 1] == " " and line[at] != " " for line in lines[1:]), lines


def test_a_watcher_shows_only_what_is_asked_for(three):
    with Watcher(three, "runs", "--state", "Succeeded") as watcher:
        three.dayfly("run", "one", "--auto-approve")
        three.dayfly("run", "two", "--action", "dry-run")
        watcher.expect("two-1")
        assert all("Succeeded" in line for line in watcher.lines()[1:])
    with Watcher(three, "executors", "-l", "team=db") as watcher:
        watcher.expect("three")
        assert len(watcher.lines()) == 2


def test_a_watcher_leaves_the_data_directory_to_a_service(home):
    home.dayfly("run", home.module("hello", HELLO), "--action", "dry-run")
    with Watcher(home, "runs") as watcher:
        watcher.expect("hello-1")
        with dayfly.Server(home, data=home.state):
            home.dayfly("run", "hello", "--auto-approve")
            watcher.expect("hello-2")
            dayfly.wait_for("the end of the run", lambda: any("hello-2" in n and "Succeeded" in n for n in watcher.lines()))
        # The service went away: it may start again while the watcher watches.
        with dayfly.Server(home, data=home.state):
            home.dayfly("run", "hello", "--action", "dry-run")
            watcher.expect("hello-3")


def test_a_watcher_starts_no_run(home):
    module, gate = slow(home)
    owner = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", stdout=subprocess.PIPE)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    second = home.popen(dayfly.DAYFLY, "run", "slow", "--var", f"gate={gate}", "--auto-approve", "--detach",
                        stdout=subprocess.PIPE)
    assert second.communicate(timeout=dayfly.DEADLINE)[0] == "run/slow-2 created\n"
    owner.kill()
    owner.communicate()
    gate.touch()
    with Watcher(home, "runs") as watcher:
        watcher.expect("slow-2")
        assert any("slow-2" in line and "Pending" in line for line in watcher.lines())
        with dayfly.Server(home, data=home.state):
            dayfly.wait_for("the run to end", lambda: any("slow-2" in n and "Succeeded" in n for n in watcher.lines()))


def test_an_embedded_service_that_holds_the_directory_is_named(home):
    module, gate = slow(home)
    owner = home.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", stdout=subprocess.PIPE)
    dayfly.wait_for("the apply to begin", lambda: begun(gate))
    error = home.dayfly("serve", "--listen", "127.0.0.1:0", code=1).stderr
    assert f"process {owner.pid} (dayfly run)" in error and str(home.state) in error
    gate.touch()
    owner.communicate(timeout=dayfly.DEADLINE)
    assert owner.returncode == 0


# ---- documents that go back -----------------------------------------------------------------------------------------

def test_what_get_prints_can_be_applied(three):
    three.dayfly("run", "one", "--auto-approve")
    printed = three.dayfly("get", "executor", "one", "-o", "yaml").stdout
    assert "status:" in printed and "resourceVersion" in printed
    assert three.dayfly("apply", "-f", "-", input=printed).stdout == "executor/one unchanged\n"
    changed = printed.replace("guests: 1", "guests: 7")
    assert three.dayfly("apply", "-f", "-", input=changed).stdout == "executor/one changed\n"
    after = three.json("get", "executor", "one")
    assert after["spec"]["variables"]["guests"] == 7
    assert after["status"]["state"] == "provisioned" and after["status"]["revision"] == 2
    # Once more says the same; a change that was not seen is not undone.
    assert three.dayfly("apply", "-f", "-", input=changed).stdout == "executor/one unchanged\n"
    stale = three.dayfly("apply", "-f", "-", input=printed, code=1).stderr
    assert "changed meanwhile" in stale and "resourceVersion" in stale
    assert three.json("get", "executor", "one")["spec"]["variables"]["guests"] == 7


def test_a_list_can_be_applied_elsewhere(three, tmp_path):
    printed = three.dayfly("get", "executors", "-o", "yaml").stdout
    env = {"DAYFLY_SERVER": "", "DAYFLY_TOKEN": "", "DAYFLY_DATA_DIRECTORY": str(tmp_path / "other")}
    created = three.dayfly("apply", "-f", "-", input=printed, env=env).stdout
    assert created == "executor/one created\nexecutor/two created\nexecutor/three created\n"
    assert three.dayfly("get", "executors", "-l", "team=net", "-o", "name", env=env).stdout.split() == ["executor/one", "executor/two"]


def editor(home, script):
    """An editor that runs this shell script; $1 is the file."""
    path = home.directory / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"EDITOR": str(path), "VISUAL": "", "TMPDIR": str(home.directory)}


def left(home):
    return sorted(home.directory.glob("dayfly-edit-*"))


def test_an_executor_is_edited(three):
    env = editor(three, 'stat -c %a "$1" >"$HOME/mode"; sed -i "s/guests: 1/guests: 9/" "$1"')
    assert three.dayfly("edit", "executor", "one", env=env).stdout == "executor/one changed\n"
    assert three.json("get", "executor", "one")["spec"]["variables"]["guests"] == 9
    assert (three.directory / "mode").read_text() == "600\n" and not left(three)
    assert three.dayfly("edit", "executor/one", env=editor(three, "true")).stdout == "executor/one unchanged\n"
    assert three.json("get", "executor", "one")["status"]["revision"] == 2
    assert three.dayfly("edit", "one", env=editor(three, "exit 3"), code=1).stderr
    assert three.dayfly("edit", "runs", env=env, code=3).stderr


def test_a_document_that_is_refused_is_opened_again_with_the_error(three):
    env = editor(three, 'cp "$1" "$HOME/seen"; grep -q refused "$1" && sed -i "s/colour: red//" "$1" || echo "  colour: red" >>"$1"')
    assert three.dayfly("edit", "executor", "two", env=env).stdout == "executor/two unchanged\n"
    seen = (three.directory / "seen").read_text()
    assert "# It was refused:" in seen and "spec.colour" in seen and not left(three)
    stubborn = editor(three, 'grep -q refused "$1" || echo "  colour: red" >>"$1"')
    error = three.dayfly("edit", "executor", "two", env=stubborn, code=3).stderr
    (kept,) = left(three)
    assert str(kept) in error and "colour: red" in kept.read_text()


def test_an_edit_does_not_undo_what_somebody_else_changed(three):
    other = "dayfly get executor one -o yaml | sed 's/guests: 1/guests: 4/' | dayfly apply -f - >/dev/null"
    env = editor(three, f'PATH={dayfly.BUILD}:$PATH; {other}; sed -i "s/guests: 1/guests: 9/" "$1"')
    error = three.dayfly("edit", "executor", "one", env=env, code=1).stderr
    assert "changed meanwhile" in error and str(left(three)[0]) in error
    assert three.json("get", "executor", "one")["spec"]["variables"]["guests"] == 4


def test_an_editor_keeps_nobody_from_the_data_directory(home):
    executors(home, ["one"])
    env = editor(home, 'touch "$HOME/open"; while [ ! -e "$HOME/close" ]; do sleep 0.05; done')
    edit = home.popen(dayfly.DAYFLY, "edit", "executor", "one", env=env, stdout=subprocess.PIPE)
    dayfly.wait_for("the editor", (home.directory / "open").exists)
    with dayfly.Server(home, data=home.state):
        (home.directory / "close").touch()
        assert edit.communicate(timeout=dayfly.DEADLINE)[0] == "executor/one unchanged\n"


# ---- tokens ---------------------------------------------------------------------------------------------------------

def token_file(home):
    """(path, {name: token}) of a token file with a comment, a reader and an admin."""
    path, tokens = home.directory / "tokens", {"boss": "b" * 40, "ci": "c" * 40}
    hashes = {name: hashlib.sha256(token.encode()).hexdigest() for name, token in tokens.items()}
    path.write_text(f"# who may what\nboss admin {hashes['boss']}\n\nci  read {hashes['ci']}\n")
    path.chmod(0o640)
    return path, tokens


def test_a_revoked_token_is_refused_by_the_running_service_at_once(home):
    path, tokens = token_file(home)
    with dayfly.Server(home, "--set", f"auth.tokenFile={path}"):
        def get(name):
            return home.dayfly("get", "runs", env={"DAYFLY_TOKEN": tokens[name]}, code=None)
        assert get("ci").returncode == 0
        assert home.dayfly("token-file", "list", "--token-file", path).stdout.split() == \
            ["NAME", "ROLE", "boss", "admin", "ci", "read"]
        assert home.dayfly("token-file", "revoke", "ci", "--token-file", path).stdout == "token/ci revoked\n"
        refused = get("ci")
        assert refused.returncode == 1 and "DAYFLY_TOKEN" in refused.stderr and "--token-file" in refused.stderr
        assert get("boss").returncode == 0


def test_the_token_file_keeps_its_comments_and_permissions(home):
    path, _ = token_file(home)
    before = path.read_text().splitlines()
    link = home.directory / "link"
    link.symlink_to(path)
    home.dayfly("token-file", "revoke", "ci", env={"DAYFLY_AUTH_TOKEN_FILE": str(link)})
    assert path.read_text().splitlines() == before[:3] and link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [p.name for p in home.directory.iterdir() if "tokens" in p.name] == ["tokens"]


def test_a_token_that_is_not_there_cannot_be_revoked(home):
    path, _ = token_file(home)
    before = path.read_bytes()
    assert "nobody" in home.dayfly("token-file", "revoke", "nobody", "--token-file", path, code=1).stderr
    assert "auth.tokenFile" in home.dayfly("token-file", "list", code=3).stderr
    assert path.read_bytes() == before


def test_a_new_token_goes_into_the_file_that_is_named(home):
    path = home.directory / "new-tokens"
    tokens = {}
    for name, role in (("boss", "admin"), ("ci", "read")):
        made = home.dayfly("token-file", "create", "--name", name, "--role", role, "--token-file", path)
        tokens[name] = made.stdout.removesuffix("\n")
        assert made.stderr == f"dayfly: its line was added to {path}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert home.dayfly("token-file", "list", "--token-file", path).stdout.split()[2:] == ["boss", "admin", "ci", "read"]
    before = path.read_text()
    again = home.dayfly("token-file", "create", "--name", "ci", "--role", "admin", "--token-file", path, code=1)
    assert again.stdout == "" and "dayfly token-file revoke ci" in again.stderr and path.read_text() == before
    with dayfly.Server(home, "--set", f"auth.tokenFile={path}"):
        home.dayfly("get", "runs", env={"DAYFLY_TOKEN": tokens["ci"]})


def test_a_pipe_gets_the_token_alone_and_a_person_its_line_beside_it(home):
    script = 'TOKEN=$("$DAYFLY" token-file create --name ci --role read); printf "<%s>" "$TOKEN"'
    made = subprocess.run(["sh", "-c", script], env={**home.env, "DAYFLY": str(dayfly.DAYFLY)}, capture_output=True, text=True)
    token = re.fullmatch("<(dayfly_[0-9a-f]{64})>", made.stdout)[1]
    assert f"ci read {hashlib.sha256(token.encode()).hexdigest()}" in made.stderr and token not in made.stderr


def test_a_line_is_added_below_one_without_an_end(home):
    path, _ = token_file(home)
    path.write_text(path.read_text().rstrip("\n"))
    home.dayfly("token-file", "create", "--name", "new", "--role", "read", "--token-file", path)
    assert len(path.read_text().splitlines()) == 5 and stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_service_that_others_can_reach_names_the_command_that_makes_a_token(home):
    error = home.dayfly("serve", "--listen", "0.0.0.0:0", code=3).stderr
    assert "dayfly token-file create" in error


def test_a_start_that_a_wrong_configuration_prevents_has_one_exit_code(home):
    file = home.directory / "wrong.yaml"
    file.write_text("auth:\n  tokenFile: /nowhere/tokens\n")
    for command in (["serve", "--listen", "127.0.0.1:0"], ["get", "executors"], ["get", "net"]):
        for config, words in ((file, "/nowhere/tokens"), ("/nowhere.yaml", "/nowhere.yaml")):
            error = home.dayfly(*command, "--config", config, code=3).stderr
            assert words in error and "kind" not in error, error


def test_who_has_no_token_is_told_where_one_is_taken_from(home):
    path, _ = token_file(home)
    with dayfly.Server(home, "--set", f"auth.tokenFile={path}"):
        error = home.dayfly("get", "runs", code=1).stderr
        assert "DAYFLY_TOKEN" in error and "--token-file" in error


def test_a_token_of_another_service_that_the_environment_has_is_named(home):
    module = home.module("m", "")
    error = home.dayfly("run", module, env={"DAYFLY_TOKEN": "of-another-service"}, code=1).stderr
    assert "neither --server nor DAYFLY_SERVER is set: name the service that it is for, or unset DAYFLY_TOKEN" in error, error


# ---- help -----------------------------------------------------------------------------------------------------------

def test_the_first_word_of_two_has_a_help_that_lists_the_second(home):
    for group, one in (("state", "state rollback"), ("secret", "secret set"), ("token", "token revoke"), ("token-file", "token-file revoke")):
        for words in ([group, "--help"], [group, "-h"], ["help", group]):
            assert one in home.dayfly(*words).stdout
        assert one.split()[1] in home.dayfly(group, code=3).stderr


# ---- metrics --------------------------------------------------------------------------------------------------------

def test_a_request_is_counted_before_its_answer_is_at_its_end(home, server):
    series = 'dayfly_http_requests_total{method="GET",route="/v1/runs/{name}/log",code="200"} '

    def counted():
        lines = server.request("GET", "/metrics")[2].decode().splitlines()
        return next((int(line.removeprefix(series)) for line in lines if line.startswith(series)), 0)
    home.dayfly("run", home.module("hello", HELLO), "--no-wait")
    before = counted()
    request = urllib.request.Request(server.url + "/v1/runs/hello-1/log?follow=true", headers=server.authorization())
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200  # and it goes on: the run waits for a decision
        assert counted() == before + 1


# ---- who holds the data directory -----------------------------------------------------------------------------------

def test_a_second_service_names_the_process_that_holds_the_data_directory(home, server):
    second = home.dayfly("serve", "--data-directory", server.data, "--listen", "127.0.0.1:0", code=1)
    assert f"process {server.process.pid} (dayfly serve)" in second.stderr


def test_manual_pages_make_their_directory(home):
    directory = home.directory / "share" / "man1"
    home.dayfly("help", "--man", directory)
    assert (directory / "dayfly-run.1").exists() and (directory / "dayfly.1").exists()


def test_a_word_that_is_nearly_right_is_guessed(three):
    assert "did you mean --auto-approve?" in three.dayfly("run", "one", "--auto-aprove", code=3).stderr
    assert "did you mean three?" in three.dayfly("plan", "thre", code=3).stderr
    assert "did you mean" not in three.dayfly("plan", "something-else", code=3).stderr


def test_engines_are_listed_with_what_they_take_and_why_one_is_missing(home):
    def why(engine):
        return ("the key engines of the service's configuration does not name it: "
                f"write engines: [local, {engine}] into the service's configuration (docs/configuration.md)")

    assert home.json("get", "engines")["items"] == [
        {"name": "local", "takes": ["runs"], "available": True},
        {"name": "job", "takes": ["runs", "workflows"], "available": False, "message": why("job")},
        {"name": "tekton", "takes": ["workflows"], "available": False, "message": why("tekton")},
        {"name": "ansible", "takes": ["workflows"], "available": False, "message": why("ansible")}]
    table = home.dayfly("get", "engines").stdout
    assert [line.split()[:3] for line in table.splitlines()[:2]] == [["NAME", "TAKES", "AVAILABLE"], ["local", "runs", "true"]]
    assert home.json("get", "engine", "job")["message"] == why("job")
    assert 'engines "docker": not found' in home.dayfly("get", "engine/docker", code=1).stderr
