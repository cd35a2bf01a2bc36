"""An existing state comes to dayfly and leaves it again, with the real tools."""

import json
import os
import signal
import stat
import subprocess
import urllib.request

import pytest

from lib import dayfly

MODULE = """
resource "terraform_data" "a" {
  input = "a"
}
resource "terraform_data" "b" {
  count = 2
  input = "b${count.index}"
}
output "a" {
  value = terraform_data.a.output
}
"""
HTTP = 'terraform {\n  backend "http" {}\n}\n'


def plain(home, directory, *args, code=0, **kwargs):
    """The tool itself, as somebody without dayfly uses it."""
    result = home.run("tofu" if home.runtime == "opentofu" else "terraform", *args, cwd=directory, **kwargs)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout


def applied(home, name="net", text=MODULE):
    """A module that was applied with the tool and has a terraform.tfstate; returns directory and state."""
    directory = home.module(name, text)
    plain(home, directory, "init")
    plain(home, directory, "apply", "-auto-approve")
    state = home.directory / f"{name}.tfstate"
    (directory / "terraform.tfstate").rename(state)
    return directory, state


def tool_option(home):
    return "--tool", home.runtime


def push(home, directory, state, *args, **kwargs):
    return home.dayfly("state", "push", directory, state, *tool_option(home), *args, **kwargs)


def no_changes(home, executor):
    document = home.json("run", executor, "--action", "dry-run")
    assert document["run"]["status"]["phase"] == "Succeeded", document
    assert document["run"]["status"]["hasChanges"] is False, document["planSummary"]


def status(home, executor="net"):
    found = home.json("get", "executor", executor)["status"]
    return found["state"], found["status"]


# ---- push and pull ---------------------------------------------------------------------------------------------------

def test_a_pushed_state_needs_no_changes_and_comes_back_the_same(either_home):
    home = either_home
    directory, state = applied(home)
    said = push(home, directory, state).stdout
    assert "The state of net is version 1 now (serial " in said
    no_changes(home, "net")
    assert home.dayfly("state", "pull", "net").stdout == state.read_text()
    assert home.json("outputs", "net")["a"]["value"] == "a"


@pytest.mark.parametrize("encoding, said", [("utf-16", "is UTF-16, as PowerShell's > writes it"),
                                            ("utf-8-sig", "begins with a byte order mark")])
def test_a_state_that_windows_has_written_is_refused_with_what_it_is(home, encoding, said):
    module = home.module("net", 'resource "terraform_data" "a" {}\n')
    state = home.directory / "net.tfstate"
    state.write_bytes('{"version":4,"serial":1,"lineage":"l","outputs":{},"resources":[]}'.encode(encoding))
    refused = home.dayfly("state", "push", module, state, code=3).stderr
    assert f"the state {said}: it must be UTF-8 without a byte order mark" in refused


def test_an_executor_with_a_pushed_state_is_provisioned_and_can_be_destroyed(either_home):
    home = either_home
    directory, state = applied(home)
    push(home, directory, state)
    assert status(home) == ("provisioned", "done")
    assert "Destroy it first" in home.dayfly("delete", "net", code=1).stderr
    document = home.json("run", "net", "--action", "destroy", "--auto-approve")
    assert document["planSummary"]["destroy"] == 3
    assert status(home) == ("destroyed", "done")
    push(home, directory, state)
    assert status(home) == ("provisioned", "done"), "a state that is pushed over an empty one does not count"


def test_a_state_that_holds_resources_is_not_replaced_by_accident(home):
    directory, state = applied(home)
    push(home, directory, state)
    _, other = applied(home, "other", MODULE.replace('input = "a"', 'input = "x"'))
    refused = home.dayfly("state", "push", "net", other, code=1).stderr
    assert "holds resources" in refused and "--replace" in refused
    assert home.dayfly("state", "pull", "net").stdout == state.read_text()
    version = home.json("state", "push", "net", other, "--replace")
    assert version["version"] == 2
    assert home.dayfly("state", "pull", "net").stdout == other.read_text()
    assert home.dayfly("state", "show", "net", "--version", "1").stdout == state.read_text()


def test_the_same_state_again_is_no_new_version(home):
    directory, state = applied(home)
    push(home, directory, state)
    push(home, directory, state)
    assert [v["version"] for v in home.json("state", "list", "net")["items"]] == [1]


def test_a_state_comes_from_standard_input(home):
    directory, state = applied(home)
    push(home, directory, "-", input=state.read_text())
    no_changes(home, "net")


@pytest.mark.parametrize("text, says", [
    ("", "is empty"),
    ("hello", "not a state"),
    ("{}", '"version", "serial" and "lineage" are required'),
    ('{"version": 5, "serial": 1, "lineage": "x"}', "format version 5, and dayfly knows version 4: a newer dayfly"),
    ('{"version": 3, "serial": 1, "lineage": "x"}', "format version 3"),
])
def test_what_is_no_state_is_refused_in_words(home, text, says):
    directory = home.module("net", MODULE)
    file = home.directory / "bad.tfstate"
    file.write_text(text)
    assert says in push(home, directory, file, code=3).stderr
    if text:
        assert home.json("state", "list", "net")["items"] == []
        assert status(home) == ("provision", "ready")


def test_a_state_above_the_limit_is_refused_before_it_is_sent(home):
    directory = home.module("net", MODULE)
    file = home.directory / "large.tfstate"
    with open(file, "wb") as f:
        f.truncate(600 * 1024 * 1024)
    assert "a state has at most" in push(home, directory, file, code=None).stderr


def test_a_locked_state_and_a_waiting_run_refuse_a_push(home, server):
    directory, state = applied(home)
    home.dayfly("run", directory, "--no-wait")
    assert "wait for its run" in home.dayfly("state", "push", "net", state, code=1).stderr
    home.dayfly("discard", "net-1")
    home.dayfly("state", "lock", "net", "--reason", "moving it")
    assert "locked" in home.dayfly("state", "push", "net", state, code=1).stderr
    home.dayfly("state", "unlock", "net")
    home.dayfly("state", "push", "net", state)
    assert "push" in {entry["action"] for entry in home.json("get", "audit")["items"]}


def test_a_pulled_state_is_a_private_file_and_never_replaces_one(home):
    directory, state = applied(home)
    push(home, directory, state)
    file = home.directory / "copy.tfstate"
    home.dayfly("state", "pull", "net", "--file", file)
    assert file.read_text() == state.read_text()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    file.write_text("mine")
    assert "is there already" in home.dayfly("state", "pull", "net", "--file", file, code=3).stderr
    assert file.read_text() == "mine"


# ---- the http backend from outside ------------------------------------------------------------------------------------

def test_a_command_works_on_the_state_without_a_service(either_home):
    home = either_home
    directory, state = applied(home)
    push(home, directory, state)
    name = "tofu" if home.runtime == "opentofu" else "terraform"
    outside = home.module("outside", MODULE + HTTP)

    def with_state(*args, **kwargs):
        return home.dayfly("state", "exec", "net", "--", name, *args, cwd=outside, **kwargs)
    with_state("init", "-input=false")
    assert with_state("state", "list").stdout.splitlines() == ["terraform_data.a", "terraform_data.b[0]",
                                                               "terraform_data.b[1]"]
    with_state("state", "mv", "terraform_data.a", "terraform_data.c")
    assert [v["version"] for v in home.json("state", "list", "net")["items"]] == [2, 1]
    assert json.loads(home.dayfly("state", "pull", "net").stdout)["resources"][-1]["name"] == "c"
    assert home.json("get", "runs")["items"] == []


def test_a_state_that_is_written_from_outside_counts(home):
    directory = home.module("net", MODULE)
    home.dayfly("create", "-f", "-", input=f"""
kind: Executor
metadata: {{name: net}}
spec: {{source: {{url: 'file://{directory}', kind: directory}}}}
""")
    outside, state = applied(home, "outside")
    (outside / "terraform.tfstate").write_text(state.read_text())
    (outside / "backend.tf").write_text(HTTP)
    home.dayfly("state", "exec", "net", "--", "tofu", "init", "-force-copy", cwd=outside)
    assert status(home) == ("provisioned", "done")
    no_changes(home, "net")


def test_the_command_gets_a_token_in_its_environment_and_keeps_its_exit_code(home):
    token = home.json("token-file", "create", "--name", "me", "--role", "write")
    tokens = home.directory / "tokens"
    tokens.write_text(token["line"] + "\n")
    with dayfly.Server(home, "--set", f"auth.tokenFile={tokens}") as server:
        env = {"DAYFLY_TOKEN": token["token"]}
        directory = home.module("net", MODULE)
        home.dayfly("create", "-f", "-", env=env, input=f"""
kind: Executor
metadata: {{name: net}}
spec: {{source: {{url: 'file://{directory}', kind: directory}}}}
""")
        shown = home.dayfly("state", "exec", "net", "--", "sh", "-c", "env | grep ^TF_HTTP_ | sort; exit 7", code=7,
                            env={**env, "TF_HTTP_ADDRESS": "http://elsewhere", "TF_HTTP_RETRY_MAX": "9"}).stdout
    address = f"{server.url}/v1/executors/net/state"
    assert shown.splitlines() == [f"TF_HTTP_ADDRESS={address}", f"TF_HTTP_LOCK_ADDRESS={address}",
                                  "TF_HTTP_LOCK_METHOD=LOCK", f"TF_HTTP_PASSWORD={token['token']}",
                                  f"TF_HTTP_UNLOCK_ADDRESS={address}", "TF_HTTP_UNLOCK_METHOD=UNLOCK",
                                  "TF_HTTP_USERNAME=dayfly"]


def test_a_command_that_is_not_there_or_an_executor_that_is_not_there_is_named(home, server):
    home.module("net", MODULE)
    home.dayfly("run", home.directory / "net", "--action", "dry-run")
    assert "nosuch" in home.dayfly("state", "exec", "net", "--", "nosuch", code=3).stderr
    assert "nobody" in home.dayfly("state", "exec", "nobody", "--", "true", code=1).stderr


def test_a_signal_to_dayfly_reaches_the_command(home, server):
    home.module("net", MODULE)
    home.dayfly("run", home.directory / "net", "--action", "dry-run")
    started = home.directory / "started"
    script = f"trap 'exit 9' TERM; touch {started}; while :; do sleep 0.05; done"
    process = home.popen(dayfly.DAYFLY, "state", "exec", "net", "--", "sh", "-c", script, stdout=subprocess.PIPE)
    dayfly.wait_for("the command", started.exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=dayfly.DEADLINE) == 9


# ---- the tool's own commands on the state, as runs ---------------------------------------------------------------------

def addresses(home, executor="net"):
    state = json.loads(home.dayfly("state", "pull", executor).stdout)
    return sorted(f"{r['type']}.{r['name']}" for r in state["resources"])


def test_an_address_is_moved_in_a_run_of_its_own(either_home):
    home = either_home
    directory, state = applied(home)
    push(home, directory, state)
    document = home.json("state", "mv", "net", "terraform_data.a", "terraform_data.c")
    run, steps = document["run"], document["steps"]
    assert (run["status"]["phase"], run["status"]["reason"]) == ("Succeeded", "StateChanged")
    assert run["spec"]["command"] == ["mv", "terraform_data.a", "terraform_data.c"]
    assert [(s["name"], s["exitCode"]) for s in steps] == [("state", 0)]
    assert addresses(home) == ["terraform_data.b", "terraform_data.c"]
    assert [v["version"] for v in home.json("state", "list", "net")["items"]] == [2, 1]
    assert home.json("state", "list", "net")["items"][0]["run"] == "net-1"
    assert home.dayfly("state", "show", "net", "--version", "1").stdout == state.read_text()
    assert status(home) == ("provisioned", "done")
    assert home.dayfly("state", "lock", "net").returncode == 0, "the lock is left behind"


def test_a_move_is_told_in_lines_with_the_words_of_the_tool(home):
    directory, state = applied(home)
    push(home, directory, state)
    text = home.dayfly("state", "mv", "net", "terraform_data.a", "terraform_data.c").stdout
    order = ["net-1: state of net", "state: runs in process", 'Move "terraform_data.a" to "terraform_data.c"',
             "dayfly: StateChanged", "state: done in"]
    places = [text.find(line) for line in order]
    assert places == sorted(places) and places[0] >= 0, f"{list(zip(order, places))}\n{text}"
    assert 'Move "terraform_data.a"' in home.dayfly("logs", "net-1").stdout
    assert 'Move "terraform_data.a"' in home.dayfly("logs", "net-1", "--step", "state").stdout
    assert "StateChanged" in home.dayfly("why", "net-1").stdout


def test_a_dry_run_of_a_move_changes_nothing(either_home):
    home = either_home
    directory, state = applied(home)
    push(home, directory, state)
    document = home.json("state", "mv", "net", "terraform_data.a", "terraform_data.c", "--dry-run")
    assert document["run"]["status"]["reason"] == "Completed"
    assert home.dayfly("state", "pull", "net").stdout == state.read_text()


def test_addresses_are_forgotten_and_objects_imported(either_home):
    home = either_home
    directory, state = applied(home)
    push(home, directory, state)
    home.dayfly("state", "rm", "net", "terraform_data.a", "terraform_data.b")
    assert addresses(home) == []
    identity = next(i["attributes"]["id"] for r in json.loads(state.read_text())["resources"] if r["name"] == "a"
                    for i in r["instances"])
    document = home.json("state", "import", "net", "terraform_data.a", identity)
    assert document["run"]["status"]["reason"] == "StateChanged"
    assert addresses(home) == ["terraform_data.a"]


def test_an_import_makes_a_new_executor_provisioned_with_its_variables(either_home):
    home = either_home
    directory = home.module("net", """
variable "size" {
  type = number
}
resource "terraform_data" "a" {
  input = var.size
}
""")
    home.dayfly("create", "-f", "-", input=f"""
kind: Executor
metadata: {{name: net}}
spec:
  runtime: {{name: {home.runtime}}}
  source: {{url: 'file://{directory}', kind: directory}}
  variables: {{size: 3}}
""")
    home.dayfly("state", "import", "net", "terraform_data.a", "some-id")
    assert status(home) == ("provisioned", "done")
    assert home.json("get", "executor", "net")["status"]["mayHoldResources"] is True
    home.dayfly("delete", "net", code=1)


def test_a_command_that_fails_says_why_and_changes_nothing(either_home):
    home = either_home
    directory, state = applied(home)
    push(home, directory, state)
    failed = home.dayfly("state", "mv", "net", "terraform_data.nothing", "terraform_data.c", code=1)
    assert "StateCommandFailed" in failed.stdout and "terraform_data.nothing" in failed.stdout
    assert home.json("get", "run", "net-1")["status"]["reason"] == "StateCommandFailed"
    assert "\x1b" not in failed.stdout
    assert "state mv" in home.json("get", "run", "net-1")["status"]["message"]
    assert home.dayfly("state", "pull", "net").stdout == state.read_text()
    assert status(home) == ("provisioned", "done")


def test_a_locked_state_is_not_changed(home):
    directory, state = applied(home)
    push(home, directory, state)
    home.dayfly("state", "lock", "net")
    home.dayfly("state", "rm", "net", "terraform_data.a", code=1)
    assert home.json("get", "run", "net-1")["status"]["reason"] == "StateLocked"


def test_a_state_of_another_storage_is_changed_the_same_way(either_home):
    home = either_home
    directory, state = applied(home)
    kept = home.directory / "kept.tfstate"
    kept.write_text(state.read_text())
    home.dayfly("create", "-f", "-", input=f"""
kind: Executor
metadata: {{name: net}}
spec:
  runtime: {{name: {home.runtime}}}
  source: {{url: 'file://{directory}', kind: directory}}
  storage: {{type: local, path: '{kept}'}}
""")
    home.dayfly("state", "mv", "net", "terraform_data.a", "terraform_data.c", code=None)
    assert home.json("get", "run", "net-1")["status"]["reason"] == "StateChanged"
    assert {r["name"] for r in json.loads(kept.read_text())["resources"]} == {"b", "c"}


def test_commands_on_the_state_are_for_admins_and_checked(home):
    tokens = home.directory / "tokens"
    made = {role: home.json("token-file", "create", "--name", role, "--role", role) for role in ("write", "admin")}
    tokens.write_text("".join(m["line"] + "\n" for m in made.values()))
    directory, state = applied(home)
    with dayfly.Server(home, "--set", f"auth.tokenFile={tokens}"):
        env = {role: {"DAYFLY_TOKEN": m["token"]} for role, m in made.items()}
        push(home, directory, state, env=env["write"])
        assert "admin" in home.dayfly("state", "rm", "net", "terraform_data.a", code=1, env=env["write"]).stderr
        assert "admin" in push(home, directory, state, "--replace", code=1, env=env["write"]).stderr
        for words, says in ((["--", "-state=x", "b"], "must not begin with -"),):
            assert says in home.dayfly("state", "mv", "net", *words, code=3, env=env["admin"]).stderr
        document = """
kind: Run
spec: {executorRef: {name: net}, action: %s}
"""
        for action, says in (("state", "is required for the action state"),
                             ("dry-run, command: [rm, a.b]", "is for the action state alone"),
                             ("state, command: [force-unlock, x]", "dayfly state unlock"),
                             ("state, command: [push, x]", "begins with mv, rm, import, force-unlock, push-errored, migrate, history or rollback"),
                             ("state, command: [mv, a.b]", "mv takes SRC DST")):
            assert says in home.dayfly("create", "-f", "-", input=document % action, code=3, env=env["admin"]).stderr


# ---- docs/adopt.md, executed --------------------------------------------------------------------------------------------

DOC = (dayfly.ROOT / "docs/adopt.md").read_text()
WEB = 'resource "terraform_data" "web" {\n  input = "a"\n}\noutput "web" {\n  value = terraform_data.web.output\n}\n'


def commands(heading):
    """The shell commands below a heading of the page."""
    section = DOC.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = "".join(block.split("```", 1)[0] for block in section.split("```sh\n")[1:])
    assert found, heading
    return found


def follow(home, heading, directory, env=None):
    """Runs them as somebody with a shell would; returns what they print."""
    (home.bin / "dayfly").exists() or (home.bin / "dayfly").symlink_to(dayfly.DAYFLY)
    text = commands(heading)
    if home.runtime == "terraform":
        text = text.replace("tofu ", "terraform ").replace("state push .", "state push . --tool terraform")
    result = home.run("sh", "-eu", "-c", text, cwd=directory, env=env)
    assert result.returncode == 0, text + result.stdout + result.stderr
    return result.stdout.lower()


def test_the_page_goes_from_a_local_state_to_no_changes_and_back(either_home):
    home = either_home
    directory, state = applied(home, "net", WEB)
    state.rename(directory / "terraform.tfstate")
    assert "dayfly: nochanges" in follow(home, "From a local terraform.tfstate", directory)
    assert "statechanged" in follow(home, "Repair the state", directory)
    assert "terraform_data.web" in follow(home, "Use the state from outside", directory)
    assert "no changes" in follow(home, "Leave", directory)


def test_the_page_goes_from_a_remote_backend_to_no_changes(either_home):
    home = either_home
    directory = home.module("net", WEB, **{
        "backend.tf": f'terraform {{\n  backend "local" {{\n    path = "{home.directory}/far/net.tfstate"\n  }}\n}}\n'})
    plain(home, directory, "init")
    plain(home, directory, "apply", "-auto-approve")
    assert "dayfly: nochanges" in follow(home, "From S3 or another remote backend", directory)


def test_the_page_goes_from_s3_to_no_changes(home):
    server = pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    try:
        url = "http://%s:%s" % running.get_host_and_port()
        urllib.request.urlopen(urllib.request.Request(f"{url}/states", method="PUT")).close()
        env = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
               "AWS_ENDPOINT_URL_S3": url}
        directory = home.module("net", WEB, **{"backend.tf": """
terraform {
  backend "s3" {
    bucket                      = "states"
    key                         = "net.tfstate"
    region                      = "us-east-1"
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
  }
}
"""})
        plain(home, directory, "init", env=env)
        plain(home, directory, "apply", "-auto-approve", env=env)
        assert not (directory / "terraform.tfstate").exists()
        assert "dayfly: nochanges" in follow(home, "From S3 or another remote backend", directory, env)
    finally:
        running.stop()


def test_the_page_goes_from_another_http_backend_to_no_changes(home, tmp_path, tofu):
    other = dayfly.Home(tmp_path / "other", tofu)
    token = other.json("token-file", "create", "--name", "me", "--role", "admin")
    tokens = other.directory / "tokens"
    tokens.write_text(token["line"] + "\n")
    with dayfly.Server(other, "--set", f"auth.tokenFile={tokens}") as far:
        there = other.module("net", WEB)
        other.dayfly("run", there, "--auto-approve", env={"DAYFLY_TOKEN": token["token"]})
        env = {"TF_HTTP_ADDRESS": f"{far.url}/v1/executors/net/state", "TF_HTTP_USERNAME": "me",
               "TF_HTTP_PASSWORD": token["token"]}
        directory = home.module("net", WEB)
        assert "dayfly: nochanges" in follow(home, "From the http backend of another tool", directory, env)
