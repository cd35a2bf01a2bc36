"""Nothing is made, changed or destroyed by silence: with the real tofu and the real terraform."""

import json
import subprocess

import pytest

from lib.dayfly import Server, wait_for

ONE = 'resource "terraform_data" "one" {\n  input = "one"\n}\n'
TWO = ONE + 'resource "terraform_data" "two" {\n  input = "two"\n}\n'


def executor(home, name, directory, **spec):
    document = {"kind": "Executor", "metadata": {"name": name},
                "spec": {"source": {"url": f"file://{directory}"}, "runtime": {"name": home.runtime}, **spec}}
    home.dayfly("create", "-f", "-", input=json.dumps(document))


def addresses(home, name):
    """What the state of an executor holds."""
    state = json.loads(home.dayfly("state", "show", name).stdout)
    return sorted(f"{r['type']}.{r['name']}" for r in state["resources"])


# ---- a dry-run changes nothing but its own run ----

def test_a_dry_run_changes_nothing_but_its_own_run(either_home):
    home = either_home
    module = home.module("net", ONE)
    home.repository(module)
    home.git(module, "checkout", "-qb", "wider")
    (module / "main.tf").write_text(TWO)
    (module / "deep").mkdir()
    (module / "deep" / "main.tf").write_text(TWO)
    home.git(module, "add", "-A")
    home.git(module, "commit", "-qm", "wider")
    home.dayfly("run", module, "--branch", "main", "--tool", home.runtime, "--auto-approve")
    before = home.json("get", "executor", "net")

    dry = home.json("run", module, "--branch", "wider", "--action", "dry-run", "--var", "who=me",
                    "--tool", home.runtime, "--tool-version", ">= 1.0")
    assert dry["planSummary"]["add"] == 1, dry
    assert dry["run"]["spec"]["source"] == {"branch": "wider"}
    assert dry["run"]["spec"]["snapshot"]["source"]["branch"] == "wider"
    assert dry["run"]["spec"]["snapshot"]["runtime"] == {"name": home.runtime, "version": ">= 1.0"}
    deep = home.json("run", "executor/net", "--branch", "wider", "--folder", "deep", "--action", "dry-run")
    assert deep["planSummary"]["add"] == 1

    after = home.json("get", "executor", "net")
    assert after["spec"] == before["spec"]
    assert after["status"]["revision"] == before["status"]["revision"]
    assert home.json("run", "executor/net", "--action", "dry-run")["run"]["status"]["hasChanges"] is False


def test_what_a_dry_run_may_say_is_refused_of_other_runs_and_checked_as_an_executor(server, home):
    module = home.module("net", ONE)
    executor(home, "net", module)
    for action, extra, word in (("provision", {"source": {"branch": "main"}}, "spec.source: is for a dry-run alone"),
                                ("destroy", {"runtime": {"name": "terraform"}}, "spec.runtime: is for a dry-run alone"),
                                ("dry-run", {"source": {"url": "file:///etc"}}, "spec.source.url"),
                                ("dry-run", {"source": {"folder": "../up"}}, "spec.source.folder"),
                                ("dry-run", {"source": {"tag": "a", "branch": "b"}}, "only one of"),
                                ("dry-run", {"runtime": {"version": "what"}}, "spec.runtime.version")):
        status, _, body = server.request("POST", "/v1/executors/net/runs", {"action": action, **extra})
        assert status == 400 and word in json.loads(body)["detail"], (action, extra, body)


def test_options_that_change_an_executor_say_what_they_changed(home):
    module = home.module("net", ONE)
    home.repository(module)
    home.git(module, "branch", "wider")
    home.dayfly("run", module, "--branch", "main", "--auto-approve")
    changed = home.dayfly("run", module, "--branch", "wider", "--tool-version", ">= 1.0", "--auto-approve")
    assert "executor net changed: source.branch main -> wider, runtime.version none -> >= 1.0" in changed.stderr
    again = home.dayfly("run", module, "--branch", "wider", "--tool-version", ">= 1.0", "--auto-approve")
    assert "changed:" not in again.stderr


# ---- a name is never guessed ----

def test_the_same_command_line_means_the_same_both_times(either_home):
    home = either_home
    home.module("hello", ONE)
    call = ("run", "hello", "--tool", home.runtime, "--auto-approve")
    home.dayfly(*call, cwd=home.directory)
    home.dayfly(*call, cwd=home.directory)
    assert [e["metadata"]["name"] for e in home.json("get", "executors")["items"]] == ["hello"]


def test_a_word_that_is_an_executor_and_another_directory_is_refused_with_both_ways_out(either_home):
    home = either_home
    elsewhere = home.module("elsewhere/net", ONE)
    here = home.module("net", TWO)
    executor(home, "net", elsewhere)
    refused = home.dayfly("run", "net", "--auto-approve", code=1, cwd=home.directory)
    assert f"executor (of file://{elsewhere})" in refused.stderr and f"directory (file://{here})" in refused.stderr
    assert "executor/net" in refused.stderr and "./net" in refused.stderr
    assert not home.json("get", "runs")["items"]

    first = home.json("run", "executor/net", "--auto-approve", cwd=home.directory)
    assert first["run"]["spec"]["executorRef"]["name"] == "net"
    other = home.json("run", "./net", "--tool", home.runtime, "--auto-approve", cwd=home.directory)
    assert other["run"]["spec"]["executorRef"]["name"].startswith("net-")


def test_the_spelling_executor_slash_name_never_means_a_directory(home):
    home.module("executor/net", ONE)
    refused = home.dayfly("run", "executor/net", code=1, cwd=home.directory)
    assert "there is no executor net" in refused.stderr and "./executor/net" in refused.stderr
    refused = home.dayfly("destroy", "executor/nope", code=1, cwd=home.directory)
    assert "there is no executor nope" in refused.stderr and "is the directory" not in refused.stderr


# ---- a second executor of one module ----

def names(home):
    return sorted(e["metadata"]["name"] for e in home.json("get", "executors")["items"])


def test_a_second_executor_of_one_module_is_made_on_request_alone(either_home):
    home = either_home
    module = home.module("dup", ONE)
    home.dayfly("run", module, "--name", "prod-dup", "--tool", home.runtime, "--auto-approve")
    for action in ("plan", "run", "destroy"):
        refused = home.dayfly(action, module, "--tool", home.runtime, code=1)
        assert "this module has an executor already: prod-dup" in refused.stderr
        assert f"`dayfly {action} executor/prod-dup`" in refused.stderr and "--name NEW" in refused.stderr
    assert "already: prod-dup" in home.dayfly("destroy", module, "--name", "prd-dup", "--tool", home.runtime, code=1).stderr
    state = home.directory / "some.tfstate"
    state.write_text(home.dayfly("state", "pull", "prod-dup").stdout)
    assert "prod-dup" in home.dayfly("state", "push", module, state, code=1).stderr
    assert names(home) == ["prod-dup"]

    asked = home.dayfly("run", module, "--name", "test-dup", "--tool", home.runtime, "--auto-approve")
    assert "executor test-dup created: " in asked.stderr
    refused = home.dayfly("run", module, "--auto-approve", code=1)
    assert "this module has executors already: prod-dup, test-dup" in refused.stderr
    assert home.json("run", module, "--name", "prod-dup", "--auto-approve")["run"]["status"]["reason"] == "NoChanges"
    assert names(home) == ["prod-dup", "test-dup"]


def test_one_directory_by_two_paths_is_one_module(either_home):
    home = either_home
    live = home.module("infra/live/net", ONE)
    infra = home.directory / "infra"
    home.dayfly("run", ".", "--folder", "live/net", "--tool", home.runtime, "--auto-approve", cwd=infra)
    assert names(home) == ["infra-net"]
    (home.directory / "link").symlink_to(live)
    for word in (".", home.directory / "link", f"file://{home.directory}/link"):
        assert "already: infra-net" in home.dayfly("plan", word, code=1, cwd=live).stderr
    assert "NoChanges" in home.dayfly("run", ".", "--name", "infra-net", "--auto-approve", cwd=live).stdout
    again = home.json("run", infra, "--folder", "./live/net/", "--auto-approve")["run"]
    assert again["status"]["reason"] == "NoChanges" and names(home) == ["infra-net"]


def test_a_directory_that_was_moved_does_not_make_everything_twice(home):
    module = home.module("here/net", 'resource "terraform_data" "a" {}\n')
    home.dayfly("run", module, "--auto-approve")
    (home.directory / "there").mkdir()
    moved = module.rename(home.directory / "there/net")
    refused = home.dayfly("run", moved, "--auto-approve", code=1).stderr
    assert "executor net holds resources" in refused and "--confirm-source-change" in refused
    assert home.dayfly("get", "executors", "-o", "name").stdout.split() == ["executor/net"]
    home.dayfly("edit", "executor", "net", "--confirm-source-change", env={"EDITOR": "sed -i s#/here/#/there/#"})
    assert "NoChanges" in home.dayfly("run", moved, "--auto-approve").stdout
    # Without resources nothing can be made twice; and another module has a name of its own.
    home.dayfly("destroy", moved, "--auto-approve")
    again = moved.rename(home.directory / "net")
    assert "another module has the name net" in home.dayfly("plan", again).stderr


def test_one_repository_by_two_urls_is_one_module(home):
    document = {"kind": "Executor", "metadata": {"name": "prod"},
                "spec": {"source": {"url": "https://Git.example.org/team/net.git", "branch": "main", "folder": "live"}}}
    home.dayfly("create", "-f", "-", input=json.dumps(document))
    refused = home.dayfly("plan", "https://git.example.org/team/net/", "--tag", "v1", "--folder", "live/", code=1)
    assert "already: prod (branch main)" in refused.stderr
    assert names(home) == ["prod"]


# ---- what is made is said ----

def test_the_executor_that_a_run_makes_is_said_in_one_line(either_home):
    home = either_home
    module = home.module("net", ONE)
    home.repository(module)
    home.git(module, "branch", "wider")
    told = home.dayfly("plan", module, "--branch", "wider", "--tool", home.runtime).stderr
    assert f"executor net created: file://{module}, branch wider; later runs of net use it" in told
    assert "`dayfly set net branch=NAME`" in told
    assert "created" not in home.dayfly("plan", module, "--branch", "wider", "--tool", home.runtime).stderr
    home.dayfly("set", "net", "branch=main")
    assert home.json("get", "executor", "net")["spec"]["source"] == {
        "url": f"file://{module}", "kind": "git", "branch": "main"}

    other = home.module("other/net", ONE)
    told = home.dayfly("plan", other, "--tool", home.runtime).stderr
    assert f"created: file://{other}; another module has the name net" in told


def test_set_changes_the_storage_of_an_executor_that_holds_nothing(either_home):
    home = either_home
    module = home.module("net", 'terraform {\n  backend "s3" {}\n}\n' + ONE)
    failed = home.json("plan", module, "--tool", home.runtime, code=1)["run"]["status"]
    assert failed["reason"] == "BackendInModule" and "`dayfly set net storage=module`" in failed["message"]
    refused = home.dayfly("plan", module, "--storage", "module", code=3)
    assert "`dayfly set net storage=module`" in refused.stderr
    home.dayfly("set", "net", "storage=module")
    (module / "main.tf").write_text(ONE)
    failed = home.json("plan", module, code=1)["run"]["status"]
    assert failed["reason"] == "BackendMissing" and "`dayfly set net storage=managed`" in failed["message"]
    home.dayfly("set", "net", "storage=managed")
    home.dayfly("run", module, "--auto-approve")
    refused = home.dayfly("set", "net", "storage=module", code=3)
    assert "cannot be changed before the executor is destroyed" in refused.stderr
    assert home.json("get", "executor", "net")["spec"]["storage"]["type"] == "managed"
    assert "leave out --storage" in home.dayfly("plan", module, "--storage", "module", code=3).stderr


# ---- words that are true ----

def test_a_branch_is_of_a_repository_and_of_its_root(home):
    live = home.module("infra/live/net", ONE)
    infra = home.directory / "infra"
    home.repository(infra)
    refused = home.dayfly("plan", ".", "--branch", "main", code=3, cwd=live)
    assert f"say {infra} --folder live/net --branch main" in refused.stderr
    refused = home.dayfly("plan", "https://git.example.org/team/net.git", code=3)
    assert "add --branch main" in refused.stderr and "--tag" in refused.stderr
    assert names(home) == []


def test_a_bare_repository_is_one_also_without_git_in_its_name(home):
    bare = home.directory / "infra"
    home.module("work/net", ONE)
    home.repository(home.directory / "work")
    subprocess.run(["git", "clone", "-q", "--bare", home.directory / "work", bare], check=True)
    for word in (bare, f"file://{bare}"):
        refused = home.dayfly("run", word, "--auto-approve", code=3)
        assert f"{bare} is a git repository: add --branch main" in refused.stderr
    assert names(home) == []
    home.dayfly("run", bare, "--branch", "main", "--folder", "net", "--auto-approve")
    home.dayfly("run", bare, "--folder", "net", "--auto-approve")
    assert names(home) == ["infra-net"]


@pytest.mark.parametrize("url, said", [
    ("git@git.example:org/infra.git//net", "has a folder behind //"),
    ("https://git.example/infra.git//net?ref=v1", "has a folder behind //"),
    ("git::https://git.example/infra.git//net?ref=v1", "begins with git::, as a module's source does"),
    ("https://github.com/org/infra/tree/main/net", "is the web page of a folder"),
    ("https://gitlab.com/org/infra/-/tree/main/net", "is the web page of a folder"),
    ("https://bitbucket.org/org/infra/src/main/net/", "is the web page of a folder"),
])
def test_the_address_of_a_folder_is_answered_with_the_options_for_it(home, url, said):
    for options in ((), ("--branch", "main")):
        refused = home.dayfly("run", url, *options, "--auto-approve", code=3)
        assert f"{url} {said}: name the repository alone" in refused.stderr
        assert "--folder" in refused.stderr and "--branch" in refused.stderr
    assert names(home) == []


def test_an_option_that_an_executor_does_not_take_is_answered_with_what_is_there(home):
    module = home.module("elsewhere/net", ONE)
    executor(home, "pr-net", module)
    refused = home.dayfly("run", "pr-net", "--branch", "main", code=3, cwd=home.directory)
    assert "`dayfly set pr-net branch=main`" in refused.stderr and "is the directory" not in refused.stderr


def test_what_is_refused_of_an_executor_names_the_command_that_does_it(either_home):
    home = either_home
    module = home.module("net", ONE)
    other = home.module("other", ONE)
    home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    document = home.json("get", "executor", "net")
    document["spec"]["source"]["url"] = f"file://{other}"
    refused = home.dayfly("apply", "-f", "-", input=json.dumps(document), code=1)
    assert "`dayfly apply -f FILE --confirm-source-change`" in refused.stderr
    assert "`dayfly edit executor net --confirm-source-change`" in refused.stderr
    assert "confirmSourceChange" not in refused.stderr
    home.dayfly("destroy", "executor/net", "--auto-approve")
    assert "1 to add" in home.dayfly("plan", "executor/net").stdout, "a plan changes nothing"


# ---- a folder that lost its files ----

def lost(module):
    (module / "main.tf").unlink()
    (module / "README.md").write_text("moved elsewhere\n")


def test_a_folder_that_lost_its_files_destroys_nothing(either_home):
    home = either_home
    module = home.module("net", TWO)
    home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    lost(module)
    for action in ("provision", "dry-run"):
        failed = home.json("run", module, "--action", action, "--auto-approve", code=1)["run"]["status"]
        assert (failed["phase"], failed["reason"]) == ("Failed", "NoConfiguration")
        assert "no configuration" in failed["message"] and "destroy the executor" in failed["message"]
    assert addresses(home, "net") == ["terraform_data.one", "terraform_data.two"]
    assert "Correct --folder" in home.dayfly("why", "net-2").stdout

    gone = home.json("run", module, "--action", "destroy", "--auto-approve")
    assert gone["run"]["status"]["reason"] == "Destroyed"
    assert addresses(home, "net") == []


def test_a_folder_option_that_names_no_module_destroys_nothing(either_home):
    home = either_home
    module = home.module("net", TWO)
    (module / "docs").mkdir()
    (module / "docs" / "page.md").write_text("no module\n")
    home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    failed = home.json("run", "executor/net", "--folder", "docs", "--action", "dry-run", code=1)["run"]["status"]
    assert failed["reason"] == "NoConfiguration" and "docs" in failed["message"]
    assert "what is there: page.md" in failed["message"]
    failed = home.json("run", module, "--folder", "docs", "--tool", home.runtime, "--auto-approve", code=1)
    assert failed["run"]["status"]["reason"] == "NoConfiguration"
    assert addresses(home, "net") == ["terraform_data.one", "terraform_data.two"]


# ---- a source that was emptied ----

TOKENS = {"writer": "write", "boss": "admin"}


@pytest.fixture
def guarded(either_home):
    """A server with a write token and an admin token; `guarded.be("writer")` is who asks."""
    home = either_home
    made = {name: home.json("token-file", "create", "--name", name, "--role", role) for name, role in TOKENS.items()}
    home.directory.joinpath("tokens").write_text("".join(made[n]["line"].rstrip("\n") + "\n" for n in made))
    home.directory.joinpath("tokens").chmod(0o600)
    with Server(home, config=f"auth:\n  tokenFile: {home.directory}/tokens\napproval: {{autoApprove: write}}\n") as server:
        server.be = lambda name: home.env.update(DAYFLY_TOKEN=made[name]["token"])
        server.be("boss")
        yield server


EMPTIED = {"nothing declared": ("# all of it is gone\n", "automatic"),
           "counted to zero": ('resource "terraform_data" "old" {\n  count = 0\n}\n', "required"),
           "forgotten": ('removed {\n  from = terraform_data.old\n  lifecycle {\n    destroy = false\n  }\n}\n', "automatic"),
           "something else instead": ('resource "terraform_data" "other" {}\n', "required")}


@pytest.mark.parametrize(("text", "approval"), EMPTIED.values(), ids=EMPTIED.keys())
def test_a_write_token_destroys_nothing_by_emptying_a_source(guarded, text, approval):
    home = guarded.home
    module = home.module("net", ONE.replace("one", "old"))
    executor(home, "net", module, approval=approval)
    guarded.be("writer")
    home.dayfly("run", "net", "--auto-approve")
    (module / "main.tf").write_text(text)

    refused = home.dayfly("run", "net", "--auto-approve", code=1)
    assert "an admin must approve it" in refused.stderr
    run = home.json("get", "runs", "net-2")
    assert (run["status"]["phase"], run["status"]["destroysAll"]) == ("WaitingApproval", True)
    assert "an admin must approve it" in run["status"]["message"]
    denied = home.dayfly("approve", "net-2", code=1)
    assert "needs the role admin, as a destroy does; yours is write" in denied.stderr
    assert addresses(home, "net") == ["terraform_data.old"]

    guarded.be("boss")
    home.dayfly("approve", "-f", "net-2")
    assert addresses(home, "net") == (["terraform_data.other"] if "other" in text else [])


def test_an_admin_who_asks_for_it_empties_a_source_in_one_go(guarded):
    home = guarded.home
    module = home.module("net", ONE)
    executor(home, "net", module)
    home.dayfly("run", "net", "--auto-approve")
    (module / "main.tf").write_text("# nothing\n")
    done = home.json("run", "net", "--auto-approve")
    assert done["run"]["status"]["reason"] == "Applied" and done["run"]["status"]["destroysAll"] is True
    assert addresses(home, "net") == []


def test_a_write_token_replaces_and_removes_parts_as_before(guarded):
    home = guarded.home
    module = home.module("net", TWO)
    executor(home, "net", module)
    guarded.be("writer")
    home.dayfly("run", "net", "--auto-approve")
    (module / "main.tf").write_text(ONE)
    home.dayfly("run", "net", "--auto-approve")
    (module / "main.tf").write_text(ONE.replace("input", "triggers_replace"))
    home.dayfly("run", "net", "--auto-approve")
    assert addresses(home, "net") == ["terraform_data.one"]


# ---- nothing is deleted that still holds resources ----

def test_an_executor_whose_state_holds_resources_is_not_deleted(either_home):
    home = either_home
    module = home.module("net", TWO)
    home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    refused = home.dayfly("delete", "net", code=1)
    assert "holds 2 resources: terraform_data.one, terraform_data.two" in refused.stderr
    assert "--action destroy" in refused.stderr and "--forget" in refused.stderr
    home.dayfly("run", module, "--action", "destroy", "--auto-approve")
    home.dayfly("delete", "net")


def test_a_long_list_of_resources_is_cut(home):
    module = home.module("net", 'resource "terraform_data" "many" {\n  count = 30\n}\n')
    home.dayfly("run", module, "--auto-approve")
    refused = home.dayfly("delete", "net", code=1)
    assert "holds 30 resources: terraform_data.many[0], " in refused.stderr and " more" in refused.stderr


def test_a_state_that_was_pushed_keeps_its_executor(home, server):
    module = home.module("net", TWO)
    home.dayfly("run", module, "--auto-approve")
    state = home.dayfly("state", "show", "net").stdout
    executor(home, "fresh", module)
    status, _, body = server.request("POST", "/v1/executors/fresh/state", state.encode())
    assert status == 200, body
    assert "holds 2 resources" in home.dayfly("delete", "fresh", code=1).stderr
    home.dayfly("run", "fresh", "--action", "destroy", "--auto-approve")
    home.dayfly("delete", "fresh")


def test_delete_with_forget_leaves_the_resources_and_writes_the_state_first(either_home):
    home = either_home
    module = home.module("net", TWO)
    home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    state = home.dayfly("state", "show", "net").stdout
    (home.directory / "net.tfstate").write_text("mine")
    taken = home.dayfly("delete", "net", "--forget", code=3, cwd=home.directory)
    assert "not overwritten" in taken.stderr and "nothing was deleted" in taken.stderr
    home.dayfly("delete", "net", "--forget", "--state-file", "/nowhere/at/all", code=3, cwd=home.directory)
    assert home.json("get", "executor", "net")["metadata"]["name"] == "net"

    done = home.dayfly("delete", "net", "--forget", "--state-file", "kept.tfstate", cwd=home.directory)
    assert "its resources are left as they are" in done.stderr and "kept.tfstate" in done.stderr
    assert (home.directory / "kept.tfstate").read_text() == state
    assert (home.directory / "kept.tfstate").stat().st_mode & 0o777 == 0o600
    assert (home.directory / "net.tfstate").read_text() == "mine"
    home.dayfly("get", "executor", "net", code=1)


def test_an_executor_in_use_is_abandoned_with_its_state_in_a_file(home, server):
    """Its apply is canceled, its lock is another one's, and nothing of it is destroyed."""
    module = home.module("net", TWO)
    home.dayfly("run", module, "--auto-approve")
    held = home.directory / "held"
    (module / "main.tf").write_text(TWO + f"""
resource "terraform_data" "slow" {{
  provisioner "local-exec" {{ command = "touch {held}; exec sleep 600" }}
}}
""")
    home.dayfly("run", module, "--auto-approve", "-d")
    wait_for("the apply", held.exists)
    home.dayfly("abandon", "net", cwd=home.directory)
    kept = json.loads((home.directory / "net.tfstate").read_text())
    assert {"one", "two"} <= {r["name"] for r in kept["resources"]}
    home.dayfly("get", "executor", "net", code=1)
    entry = next(e for e in home.json("get", "audit")["items"] if e["action"] == "abandon")
    assert (entry["kind"], entry["name"], entry["outcome"]) == ("Executor", "net", "done")


def test_an_executor_whose_state_is_locked_and_unreadable_is_abandoned_by_an_admin_alone(guarded):
    home = guarded.home
    executor(home, "net", home.module("net", ONE))
    home.dayfly("run", "net", "--auto-approve")
    home.dayfly("state", "lock", "net")
    state = next(guarded.data.rglob("*.state"))
    state.write_bytes(b"not " + state.read_bytes())
    guarded.be("writer")
    assert "needs the role admin" in home.dayfly("abandon", "net", code=1, cwd=home.directory).stderr
    guarded.be("boss")
    home.dayfly("delete", "net", "--forget", code=None, cwd=home.directory)
    done = home.dayfly("abandon", "net", cwd=home.directory)
    assert "no state was kept here" in done.stderr and not (home.directory / "net.tfstate").exists()
    home.dayfly("get", "executor", "net", code=1)


def test_a_state_that_was_written_after_the_copy_is_not_forgotten(home, server):
    module = home.module("net", TWO)
    home.dayfly("run", module, "--auto-approve")
    (module / "main.tf").write_text(ONE)
    home.dayfly("run", module, "--auto-approve")
    newest = home.json("state", "list", "net")["items"][0]["version"]
    for version in (newest - 1, 0):
        status, _, body = server.request("DELETE", f"/v1/executors/net?forget=true&stateVersion={version}")
        assert status == 412 and "it was written meanwhile" in json.loads(body)["detail"], body
    home.dayfly("state", "lock", "net")
    refused = home.dayfly("delete", "net", "--forget", code=1, cwd=home.directory)
    assert "is locked by" in refused.stderr and not (home.directory / "net.tfstate").exists()
    home.dayfly("state", "unlock", "net")
    status, _, body = server.request("DELETE", f"/v1/executors/net?forget=true&stateVersion={newest}")
    assert status == 204, body


def test_delete_is_not_offered_while_the_state_holds_resources(home, server):
    def actions():
        return json.loads(server.request("GET", "/v1/executors/fresh/actions")[2])["items"]
    module = home.module("net", ONE)
    home.dayfly("run", module, "--auto-approve")
    state = home.dayfly("state", "show", "net").stdout
    executor(home, "fresh", module)
    assert "delete" in actions()
    assert server.request("POST", "/v1/executors/fresh/state", state.encode())[0] == 200
    assert "delete" not in actions()


def test_a_write_token_forgets_nothing(guarded):
    home = guarded.home
    executor(home, "net", home.module("net", ONE))
    home.dayfly("run", "net", "--auto-approve")
    guarded.be("writer")
    denied = home.dayfly("delete", "net", "--forget", code=1, cwd=home.directory)
    assert "needs the role admin" in denied.stderr
    assert not (home.directory / "net.tfstate").exists()
    assert addresses(home, "net") == ["terraform_data.one"]


def test_an_executor_with_its_own_storage_is_not_deleted_before_it_is_destroyed(either_home):
    home = either_home
    executor(home, "net", home.module("net", ONE),
             storage={"type": "local", "path": str(home.directory / "net-state" / "x.tfstate")})
    home.dayfly("run", "net", "--auto-approve", code=None)
    refused = home.dayfly("delete", "net", code=1)
    assert "its own storage (local), which is not read here" in refused.stderr
    done = home.dayfly("delete", "net", "--forget", cwd=home.directory)
    assert "left as they are" in done.stderr and not (home.directory / "net.tfstate").exists()
    assert (home.directory / "net-state" / "x.tfstate").exists()


def test_the_state_of_a_destroyed_executor_is_not_rolled_back(either_home):
    home = either_home
    module = home.module("net", ONE)
    home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    home.dayfly("run", module, "--action", "destroy", "--auto-approve")
    refused = home.dayfly("state", "rollback", "net", "1", code=1)
    assert "is destroyed" in refused.stderr
    assert addresses(home, "net") == []


# ---- a source stays what it is ----

def test_a_provisioned_executor_takes_another_repository_only_when_an_admin_confirms_it(guarded):
    home = guarded.home
    module = home.module("net", ONE)
    other = home.module("other", TWO)
    executor(home, "net", module)
    home.dayfly("run", "net", "--auto-approve")

    def wanted(url):
        return json.dumps({"kind": "Executor", "metadata": {"name": "net"},
                           "spec": {"source": {"url": url}, "runtime": {"name": home.runtime}}})

    home.dayfly("apply", "-f", "-", input=wanted(f"file://{module}/"))
    refused = home.dayfly("apply", "-f", "-", input=wanted(f"file://{other}"), code=1)
    assert "--confirm-source-change" in refused.stderr and str(module) in refused.stderr
    guarded.be("writer")
    home.dayfly("apply", "-f", "-", "--confirm-source-change", input=wanted(f"file://{other}"), code=1)
    guarded.be("boss")
    home.dayfly("apply", "-f", "-", "--confirm-source-change", input=wanted(f"file://{other}"))
    assert home.json("get", "executor", "net")["spec"]["source"]["url"] == f"file://{other}"


def test_an_executor_that_holds_nothing_takes_any_repository(home):
    executor(home, "net", home.module("net", ONE))
    document = {"kind": "Executor", "metadata": {"name": "net"}, "spec": {"source": {"url": f"file://{home.directory}"}}}
    home.dayfly("apply", "-f", "-", input=json.dumps(document))


def test_a_destroy_that_waits_speaks_of_its_approval_alone(home):
    module = home.module("net", ONE)
    home.dayfly("run", module, "--auto-approve")
    waiting = home.dayfly("destroy", module, code=1)
    assert "dayfly approve net-2" in waiting.stderr
    assert "admin" not in waiting.stdout + waiting.stderr


OVERRIDES = {"a later override file": ("zzzzz_override.tf", 'terraform {\n  backend "local" {\n    path = "%s/evil.tfstate"\n  }\n}\n'),
             "the same backend with settings": ("zzzzz_override.tf", 'terraform {\n  backend "http" {\n    update_method = "PUT"\n  }\n}\n%.0s'),
             "the same backend without a check of its certificate":
                 ("zzzzz_override.tf", 'terraform {\n  backend "http" {\n    skip_cert_verification = true\n  }\n}\n%.0s'),
             "the same backend with other pauses": ("zzzzz_override.tf", 'terraform {\n  backend "http" {\n    retry_max = 9\n  }\n}\n%.0s'),
             "a .tofu file of our name": ("zzzz_dayfly_override.tofu.json", "{}%.0s")}


@pytest.mark.parametrize("what", OVERRIDES)
def test_a_file_of_the_source_does_not_lead_the_state_elsewhere(home, what):
    name, text = OVERRIDES[what]
    module = home.module("net", ONE, **{name: text % home.directory})
    executor(home, "net", module, storage={"type": "managed", "overrideBackend": True})
    refused = home.dayfly("run", "executor/net", "--auto-approve", code=1)
    assert "override" in refused.stdout + refused.stderr
    assert not (home.directory / "evil.tfstate").exists()
