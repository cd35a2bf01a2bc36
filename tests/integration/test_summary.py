"""No summary hides a change, and no exit code hides that something was changed: with the real tofu and terraform."""

import json

import pytest

from lib.dayfly import Server

TWO = 'resource "terraform_data" "a" { input = 1 }\nresource "terraform_data" "b" { input = 2 }\n'
FORGOTTEN = 'removed {\n  from = terraform_data.a\n  lifecycle { destroy = false }\n}\n'
MOVED = 'resource "terraform_data" "c" { input = 2 }\nmoved {\n  from = terraform_data.b\n  to = terraform_data.c\n}\n'
IMPORTED = 'resource "terraform_data" "d" {}\nimport {\n  to = terraform_data.d\n  id = "d"\n}\n'
COUNTED = {"add": 0, "change": 0, "destroy": 0, "import": 1, "move": 1, "forget": 1, "drift": 0, "other": 0}


def create(home, name, module, storage="managed"):
    where = {"type": "local", "path": f"{home.directory}/{name}.tfstate"} if storage == "local" else {"type": storage}
    spec = {"source": {"url": f"file://{module}"}, "runtime": {"name": home.runtime}, "storage": where}
    home.dayfly("create", "-f", "-", input=json.dumps({"kind": "Executor", "metadata": {"name": name}, "spec": spec}))


def addresses(home, name):
    state = json.loads(home.dayfly("state", "show", name).stdout)
    return sorted(f"{r['type']}.{r['name']}" for r in state["resources"])


def test_what_a_plan_forgets_moves_and_imports_is_counted_wherever_it_is_shown(either_home):
    home = either_home
    module = home.module("net", TWO)
    home.dayfly("run", module, "--auto-approve")
    (module / "main.tf").write_text(FORGOTTEN + MOVED + IMPORTED)

    plan = home.json("plan", module)
    assert plan["planSummary"] == COUNTED and plan["run"]["status"]["hasChanges"] is True
    assert plan["steps"][0]["message"] == "0 to add, 0 to change, 0 to destroy, 1 to import, 1 to move, 1 to forget"
    home.dayfly("plan", module, "--detailed-exitcode", code=2)
    rows = home.dayfly("get", "runs").stdout
    assert "+0 ~0 -0 import 1 move 1 forget 1" in rows, rows
    assert "+0 ~0 -0 import 1 move 1 forget 1" in home.dayfly("describe", "run", "net-2").stdout

    applied = home.json("run", module, "--auto-approve")["run"]["status"]
    assert applied["planSummary"] == COUNTED
    assert applied["applySummary"] == COUNTED
    assert applied["message"] == "0 added, 0 changed, 0 destroyed, 1 imported, 1 moved, 1 forgotten"
    assert addresses(home, "net") == ["terraform_data.c", "terraform_data.d"]
    assert home.json("get", "taskaction", "net-4-apply")["status"]["hasChanges"] is True


def test_a_plan_that_only_forgets_is_a_change(either_home):
    home = either_home
    module = home.module("net", TWO)
    home.dayfly("run", module, "--auto-approve")
    (module / "main.tf").write_text(FORGOTTEN + 'resource "terraform_data" "b" { input = 2 }\n')
    done = home.json("run", module, "--auto-approve")["run"]["status"]
    assert (done["hasChanges"], done["planSummary"]["forget"], done["reason"]) == (True, 1, "Applied")
    assert addresses(home, "net") == ["terraform_data.b"]


def test_a_plan_that_only_refreshes_says_what_others_changed(either_home):
    home = either_home
    module = home.module("net", TWO)
    home.dayfly("run", module, "--auto-approve")
    (module / "main.tf").write_text(MOVED + 'resource "terraform_data" "a" { input = 1 }\n')
    plan = home.json("plan", module, "--refresh-only")
    assert plan["planSummary"]["drift"] == 1
    assert plan["steps"][0]["message"].endswith("1 changed by others"), plan["steps"]
    assert "+0 ~0 -0 drift 1" in home.dayfly("get", "runs").stdout


# ---- exit code 2 ----

TAINTED = 'resource "terraform_data" "vm" {\n  provisioner "local-exec" { command = "exit 3" }\n}\n'
REFUSED = 'resource "terraform_data" "vm" {\n  lifecycle {\n    precondition {\n      condition = terraform_data.other.id == "x"\n' \
          '      error_message = "no"\n    }\n  }\n}\nresource "terraform_data" "other" {}\n'
STAYS = 'resource "terraform_data" "vm" {\n  provisioner "local-exec" {\n    when = destroy\n    command = "exit 3"\n  }\n}\n'


@pytest.mark.parametrize("storage", ["managed", "local"])
def test_an_apply_that_leaves_a_tainted_resource_has_changed_something(either_home, storage):
    home = either_home
    module = home.module("net", TAINTED)
    with Server(home):
        create(home, "net", module, storage)
        failed = home.json("run", "net", "--auto-approve", code=2)
        assert home.json("get", "taskaction", "net-1-apply")["status"]["hasChanges"] is True
    assert failed["run"]["status"]["reason"] == "ApplyFailed"


@pytest.mark.parametrize("storage", ["managed", "local"])
def test_a_destroy_that_its_provisioner_stops_has_changed_nothing(either_home, storage):
    home = either_home
    module = home.module("net", STAYS)
    with Server(home):
        create(home, "net", module, storage)
        home.dayfly("run", "net", "--auto-approve")
        failed = home.json("destroy", "net", "--auto-approve", code=1)
        assert failed["run"]["status"]["reason"] == "ApplyFailed"
        assert home.json("get", "taskaction", "net-2-apply")["status"]["hasChanges"] is False


def test_an_apply_that_failed_after_another_resource_was_made_has_changed_something(either_home):
    failed = either_home.json("run", either_home.module("net", REFUSED), "--auto-approve", code=2)
    assert failed["run"]["status"]["reason"] == "ApplyFailed"


# ---- what the log shows ----

OUTPUTS = """
resource "terraform_data" "a" { input = 1 }
output "net" { value = { name = "x", ports = tolist([80, 443]), text = "one\\ntwo" } }
output "secret" {
  value = "s3cret"
  sensitive = true
}
"""
PRINTED = 'net = {\n  "name" = "x"\n  "ports" = tolist([\n    80,\n    443,\n  ])\n  "text" = <<-EOT\n  one\n  two\n  EOT\n}\nsecret = <sensitive>\n'


def test_outputs_are_printed_as_the_tool_prints_them(either_home):
    home = either_home
    module = home.module("net", OUTPUTS)
    assert PRINTED in home.dayfly("run", module, "--auto-approve").stdout
    assert PRINTED in home.dayfly("run", module, "--auto-approve").stdout, "without changes"
    assert home.dayfly("outputs", "net").stdout == PRINTED


def test_the_end_of_a_destroy_says_that_it_destroyed(either_home):
    home = either_home
    module = home.module("net", TWO)
    home.dayfly("run", module, "--auto-approve")
    log = home.dayfly("destroy", module, "--auto-approve").stdout
    assert "Destroy complete! Resources: 2 destroyed." in log and "Apply complete" not in log
