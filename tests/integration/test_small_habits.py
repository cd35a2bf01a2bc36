"""What people type or have out of habit, and what dayfly makes of it."""

import json

import pytest

ONE = 'resource "terraform_data" "a" {}\n'


def test_a_variable_in_the_tool_s_own_syntax(either_home):
    home = either_home
    module = home.module("tags", 'variable "tags" { type = map(string) }\nvariable "zones" { type = list(string) }\n'
                         'output "all" { value = "${var.tags["Team"]} ${join(",", var.zones)}" }\n')
    run = home.json("run", module, "--auto-approve", "--var", 'tags={Team="x", Cost = 1}', "--var", 'zones=["a","b"]')
    assert run["outputs"]["all"]["value"] == "x a,b"
    assert home.dayfly("run", module, "--auto-approve", "--var", 'tags={Team="y"}', "--var", 'zones=["a", "c",]').returncode == 0
    assert home.dayfly("outputs", "tags", "all").stdout == "y a,c\n"
    assert "JSON" in home.dayfly("run", module, "--var", 'tags={Team="x"', code=3).stderr


def test_the_name_of_a_directory_with_accents(home):
    module = home.module("work/ünï cødé", ONE)
    assert "executor uni-code created" in home.dayfly("plan", module).stderr
    # An executor that has the name of earlier versions keeps it.
    other = home.module("work/déjà vu", ONE)
    home.dayfly("create", "-f", "-", input=json.dumps({
        "kind": "Executor", "metadata": {"name": "d-j-vu"}, "spec": {"source": {"url": f"file://{other}", "kind": "directory"}}}))
    assert "created" not in home.dayfly("run", other, "--auto-approve").stderr
    assert sorted(home.dayfly("get", "executors", "-o", "name").stdout.split()) == ["executor/d-j-vu", "executor/uni-code"]


def test_a_path_that_is_an_expression_is_not_taken_for_a_file(home):
    module = home.module("net", 'variable "p" { default = "x" }\nterraform {\n  backend "local" {\n    path = var.p\n  }\n}\n')
    said = home.dayfly("plan", module, code=1).stdout
    assert "BackendInModule" in said and "var.p" not in said


def test_files_for_opentofu_alone_are_explained_to_terraform(tmp_path, terraform):
    from lib import dayfly
    home = dayfly.Home(tmp_path / "home", terraform)
    module = home.directory / "net"
    module.mkdir()
    (module / "main.tofu").write_text(ONE)
    said = home.dayfly("plan", module, code=1).stdout
    assert "NoConfiguration" in said and ".tofu files alone, which OpenTofu reads" in said
    assert "--tool opentofu" in home.dayfly("why", "net").stdout.splitlines()[-1]


@pytest.mark.parametrize("action", ["plan", "run"])
def test_submodules_are_asked_for_on_the_command_line(home, action):
    repository = home.module("infra", ONE)
    home.git(repository, "init")
    home.git(repository, "add", ".")
    home.git(repository, "commit", "-m", "x")
    home.dayfly(action, repository, "--branch", "main", *(["--auto-approve"] if action == "run" else []))
    source = home.json("get", "executor", "infra")["spec"]["source"]
    assert "submodules" not in source
    home.dayfly(action, repository, "--branch", "main", "--submodules", *(["--auto-approve"] if action == "run" else []))
    source = home.json("get", "executor", "infra")["spec"]["source"]
    assert source.get("submodules", False) == (action == "run") and source["branch"] == "main"
    if action == "plan":
        assert home.json("get", "run", "infra-2")["spec"]["source"]["submodules"] is True
    home.dayfly("set", "infra", "submodules=false")
    after = home.json("get", "executor", "infra")["spec"]["source"]
    assert after["submodules"] is False and after["branch"] == "main"
    assert "cannot be set" in home.dayfly("set", "infra", "submodules=maybe", code=3).stderr
    assert "`dayfly set infra submodules=true`" in home.dayfly("run", "executor/infra", "--submodules", code=3).stderr


def test_the_words_of_a_lock_steer_no_terminal(home):
    home.dayfly("run", home.module("locked", ONE), "--auto-approve")
    home.dayfly("state", "lock", "locked", "--reason", "mine\x1b[2J")
    for command in ("list", "unlock"):
        shown = home.dayfly("state", command, "locked").stdout
        assert "mine^[[2J" in shown and "\x1b" not in shown
