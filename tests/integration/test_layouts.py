"""Public modules as they lie in their repositories: an example calls the module above it, an environment calls modules beside it.
`dayfly run DIRECTORY` takes along what the module names, as `tofu plan` in that directory finds it."""
import json

import pytest

from lib import dayfly

LABEL = """
variable "context" { default = {} }
variable "name" { default = "" }
locals { id = join("-", compact([lookup(var.context, "namespace", ""), var.name])) }
output "id" { value = local.id }
"""


def write(directory, files):
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


# The habits of terraform-aws-modules, cloudposse, terragrunt's predecessors, and wrappers.
LAYOUTS = {
    "example of a module": ("terraform-null-label", "examples/complete", {
        "main.tf": LABEL,
        "examples/complete/main.tf": """
            module "label" {
              source  = "../../"
              context = { namespace = "eg" }
              name    = "app"
            }
            output "id" { value = module.label.id }"""}, "eg-app"),
    "example of a submodule": ("terraform-aws-iam", "examples/user", {
        "main.tf": "",
        "modules/user/main.tf": LABEL + 'module "tags" { source = "../../modules/tags" }\noutput "tags" { value = module.tags.all }\n',
        "modules/tags/main.tf": 'output "all" { value = { owner = "x" } }\n',
        "examples/user/main.tf": 'module "u" { source = "../../modules/user" }\noutput "id" { value = module.u.tags.owner }\n'}, "x"),
    "wrapper": ("terraform-aws-vpc", "wrappers", {
        "main.tf": LABEL,
        "wrappers/main.tf": """
            variable "items" { default = { a = { name = "a" } } }
            module "wrapper" {
              source   = "../"
              for_each = var.items
              name     = each.value.name
            }
            output "id" { value = module.wrapper["a"].id }"""}, "a"),
    "environments": ("infra", "live/eu/dev", {
        "modules/net/main.tf": LABEL,
        "live/eu/dev/main.tf": """
            module "net" {
              source = "../../../modules/net"
              name   = "dev"
            }
            output "id" { value = "${module.net.id}:${trimspace(file("${path.module}/../region"))}" }""",
        "live/eu/region": "eu-west-1\n"}, "dev:eu-west-1"),
    "in JSON": ("json", "env/a", {
        "lib/main.tf": LABEL,
        "env/a/main.tf.json": json.dumps({"module": {"n": {"source": "../../lib", "name": "j"}},
                                          "output": {"id": {"value": "${module.n.id}"}}})}, "j"),
}


@pytest.mark.parametrize("has_git", [True, False], ids=["git", "no git"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_module_in_its_repository_runs_as_the_tool_runs_it(either_home, layout, has_git):
    home = either_home
    name, folder, files, expected = LAYOUTS[layout]
    root = write(home.directory / "work" / name, files)
    if has_git:
        home.git(root, "init")
    module = root / folder
    made = home.dayfly("run", module, "--tool", home.runtime, "--auto-approve", "--no-env")
    assert f"file://{root}, folder {folder}" in made.stderr
    assert home.dayfly("outputs", module.name, "id").stdout.strip() == expected
    again = home.json("plan", ".", "--no-env", cwd=module)["run"]
    assert again["spec"]["executorRef"]["name"] == module.name and not again["status"]["hasChanges"]
    home.dayfly("destroy", module, "--auto-approve", "--no-env")


def test_an_executor_of_before_keeps_its_name_and_gets_what_its_module_needs_now(home):
    root = write(home.directory / "work/infra", {"live/dev/main.tf": 'resource "terraform_data" "a" {}\n'})
    module = root / "live/dev"
    first = home.dayfly("run", module, "--auto-approve")
    assert f"executor dev created: file://{module}\n" in first.stderr
    write(root, {"modules/m/main.tf": LABEL, "live/dev/m.tf": 'module "m" { source = "../../modules/m" }\n'})
    planned = home.dayfly("plan", module)
    assert f"executor dev changed: the module names ../../modules/m in {module}, so its source is file://{root}, folder live/dev" in planned.stderr
    assert "NoChanges" in home.dayfly("run", "dev", "--auto-approve", cwd=module.parent).stdout
    assert home.dayfly("get", "executors", "-o", "name").stdout.split() == ["executor/dev"]
    # What came along once stays, though the module does not need it any more.
    (module / "m.tf").unlink()
    assert home.dayfly("run", module, "--auto-approve").stderr.count("changed") == 0
    assert home.json("get", "executor", "dev")["spec"]["source"]["folder"] == "live/dev"


def test_a_call_out_of_the_source_is_said_before_init(home):
    root = write(home.directory / "work/label", {"main.tf": LABEL, "examples/a/x.tf": 'module "l" {\n  source = "../../"\n}\n'})
    document = {"kind": "Executor", "metadata": {"name": "narrow"},
                "spec": {"source": {"url": f"file://{root}/examples/a", "kind": "directory"}}}
    home.dayfly("create", "-f", "-", input=json.dumps(document))
    run = home.json("run", "narrow", "--auto-approve", code=1)["run"]["status"]
    assert run["reason"] == "InitFailed"
    assert 'module "l" (x.tf, line 1) calls ../../, which is outside of the source' in run["message"]
    assert "Initializing" not in home.dayfly("logs", "narrow").stdout
    assert "--folder" in home.dayfly("why", "narrow").stdout.splitlines()[-1]


def test_a_home_directory_does_not_come_along(home):
    home.module("lib", LABEL)
    module = home.module("net", 'module "l" { source = "../lib" }\n')
    refused = home.dayfly("plan", module, code=3).stderr
    assert f"names ../lib in {module}" in refused and "your home directory, which is not copied" in refused
    assert home.json("get", "executors")["items"] == []


def test_a_file_that_does_not_come_along_is_named_before_the_tool_fails(home):
    (home.directory / "tags.json").write_text('"x"')
    module = home.module("net", 'output "x" { value = file("../tags.json") }\n')
    said = home.dayfly("plan", module, code=1).stderr
    assert f"the module names ../tags.json in {module}, which does not come along, because the smallest directory with both is your home directory" in said
    assert "move both into a directory of their own" in said
    assert "does not come along" not in home.dayfly("plan", home.module("work/own", LABEL)).stderr


def test_a_file_that_is_looked_for_outside_is_explained(home):
    module = home.module("work/net", 'output "x" { value = file("../absent.json") }\n')
    home.dayfly("plan", module, code=1)
    assert "--folder" in home.dayfly("why", "net").stdout.splitlines()[-1]


# ---- symbolic links ----

def linked(home):
    """A module with links out of it; the tool reads through two of them."""
    shared = write(home.directory / "work/shared", {"tags.json": '"blue"', "net/main.tf": LABEL})
    module = home.module("work/net", """
module "net" {
  source = "./linked"
  name   = jsondecode(file("tags.json"))
}
output "id" { value = module.net.id }
""")
    (module / "linked").symlink_to("../shared/net")
    (module / "tags.json").symlink_to(shared / "tags.json")
    (module / "gone").symlink_to("/nix/store/gone")
    (module / "result").symlink_to("/usr/bin")
    return module


def test_links_out_of_a_directory_are_followed_on_a_laptop(either_home):
    home = either_home
    module = linked(home)
    made = home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    assert home.dayfly("outputs", "net", "id").stdout.strip() == "blue"
    assert "left out: gone, a link to what is not there or cannot be read" in made.stdout
    assert "left out: result, a link to the results of a build" in made.stdout
    assert "NoChanges" in home.dayfly("run", module, "--auto-approve").stdout


def test_a_service_and_what_is_hidden_are_never_led_out(home):
    module = linked(home)
    home.dayfly("plan", module)
    for target in (home.state, home.state / "key", home.directory):
        (module / "way").symlink_to(target)
        refused = home.dayfly("plan", module, code=1)
        assert 'the symbolic link "way" leads to the data directory' in refused.stdout
        (module / "way").unlink()
    (module / "way").symlink_to(home.state)
    (module / ".terraformignore").write_text("way\n")
    home.dayfly("plan", module)
    with dayfly.Server(home) as server:
        refused = home.dayfly("--server", server.url, "run", module, "--auto-approve", code=1)
        assert 'SourceRefused' in refused.stdout and 'leads out of the source tree: remove it, or name it in .terraformignore' in refused.stdout


def test_a_service_says_how_a_link_out_of_the_directory_comes_along(home):
    work = write(home.directory / "work", {"shared/tags.json": '"blue"', "live/net/main.tf": 'output "x" { value = file("tags.json") }\n'})
    (work / "live/net/tags.json").symlink_to("../../shared/tags.json")
    with dayfly.Server(home):
        refused = home.dayfly("run", work / "live/net", "--auto-approve", code=1).stdout
        assert f"or take the directory that has both: `dayfly run {work} --folder live/net --name EXECUTOR`" in refused
        taken = home.dayfly("run", work, "--folder", "live/net", "--name", "net", "--auto-approve")
        assert f"executor net changed: its source is file://{work}, folder live/net" in taken.stderr
        (work / "live/net/tags.json").unlink()
        (work / "live/net/tags.json").symlink_to(work / "shared/tags.json")
        # The way of an absolute link always leads out.
        assert "has both" not in home.dayfly("run", "net", "--auto-approve", code=1).stdout


def test_an_apply_has_the_files_of_its_plan_behind_a_link_too(home):
    shared = write(home.directory / "work/shared", {"tags.json": '"blue"'})
    module = home.module("work/net", 'resource "terraform_data" "x" { input = file("tags.json") }\n')
    (module / "tags.json").symlink_to(shared / "tags.json")
    home.dayfly("run", module, "--no-wait")
    (shared / "tags.json").write_text('"red"')
    refused = home.dayfly("approve", "-f", "net-1", code=1)
    assert "SourceChanged" in refused.stdout


def test_in_strict_isolation_no_module_chooses_what_it_sees(home):
    strict = home.directory / "strict.yaml"
    strict.write_text("engine: {local: {isolation: strict}}\n")
    module = linked(home)
    refused = home.dayfly("run", module, "--auto-approve", "--config", strict, code=1)
    assert "SourceRefused" in refused.stdout and "leads out of the source tree" in refused.stdout
    root = write(home.directory / "work/evil", {"main.tf": 'output "x" { value = file("../shared/tags.json") }\n'})
    left = home.dayfly("plan", root, "--config", strict, code=1)
    assert f"`dayfly run {home.directory}/work --folder evil --name evil`" in left.stderr and "blue" not in left.stdout
    home.dayfly("delete", "evil")
    write(root, {"call.tf": 'module "n" { source = "../shared/net" }\n'})
    refused = home.dayfly("plan", root, "--config", strict, code=3).stderr
    assert "the module calls ../shared/net" in refused and f"say {home.directory}/work --folder evil" in refused
    (root / "call.tf").unlink()
    write(home.directory / "work", {".terraformignore": "net/\n"})
    home.dayfly("plan", home.directory / "work", "--folder", "evil", "--config", strict)


@pytest.mark.parametrize("isolation", ["strict", "auto"])
def test_with_a_service_no_module_chooses_what_it_sees(home, isolation):
    work = write(home.directory / "work", {
        "secret.txt": "of the neighbours", "theirs/main.tf": 'output "t" { value = "of the neighbours" }\n',
        "evil/main.tf": 'module "t" { source = "../theirs" }\noutput "x" { value = module.t.t }\n'})
    with dayfly.Server(home, config=f"engine: {{local: {{isolation: {isolation}}}}}\n"):
        refused = home.dayfly("run", work / "evil", "--auto-approve", code=3).stderr
        assert "calls ../theirs" in refused and f"say {work} --folder evil" in refused
        assert home.json("get", "executors")["items"] == []
        (work / "evil/main.tf").rename(work / "later.tf")
        write(work / "evil", {"main.tf": 'output "x" { value = "y" }\n'})
        home.dayfly("run", work / "evil", "--auto-approve")
        (work / "later.tf").rename(work / "evil/main.tf")
        refused = home.dayfly("plan", "evil", code=None)
        assert "of the neighbours" not in refused.stdout + home.dayfly("outputs", "evil").stdout
        assert home.json("get", "executor", "evil")["spec"]["source"]["url"] == f"file://{work}/evil"


def test_with_a_service_a_string_that_may_be_a_path_refuses_nothing(home):
    work = write(home.directory / "work", {
        "docs/x.md": "of the neighbours", "net/main.tf": """
            locals { see = "../docs/x.md" }
            output "x" { value = fileexists(local.see) ? file(local.see) : "nothing" }"""})
    with dayfly.Server(home):
        done = home.dayfly("run", work / "net", "--auto-approve")
        assert f"the module names ../docs/x.md in {work}/net, which does not come along" in done.stderr
        assert f"`dayfly run {work} --folder net --name net` takes all of that directory" in done.stderr
        assert home.dayfly("outputs", "net", "x").stdout.strip() == "nothing"
        wide = home.dayfly("run", work, "--folder", "net", "--name", "net", "--auto-approve")
        assert f"executor net changed: its source is file://{work}, folder net" in wide.stderr
        assert home.dayfly("outputs", "net", "x").stdout.strip() == "of the neighbours"
        # What a person named stays; the narrower directory is the same module.
        assert "changed" not in home.dayfly("run", work / "net", "--auto-approve").stderr
