"""Public modules as they lie in their repositories: an example calls the module above it, an environment calls modules beside it.
`dayfly run DIRECTORY` takes along what the module names, as `tofu plan` in that directory finds it."""
import json

import pytest

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


def test_a_file_that_is_looked_for_outside_is_explained(home):
    module = home.module("work/net", 'output "x" { value = file("../absent.json") }\n')
    home.dayfly("plan", module, code=1)
    assert "--folder" in home.dayfly("why", "net").stdout.splitlines()[-1]
