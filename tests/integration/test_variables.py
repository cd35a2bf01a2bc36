"""Where variables come from, in which order they win, and which tool and path a run has: real tools, real files."""

import json
import re
import subprocess
from decimal import Decimal

import pytest

from lib import dayfly
from lib.dayfly import wait_for

REGION = """
variable "region" { default = "module" }
variable "size" { default = 1 }
resource "terraform_data" "place" { input = "${var.region}/${var.size}" }
output "region" { value = var.region }
output "size" { value = var.size }
output "place" { value = abspath(path.module) }
output "home" { value = pathexpand("~") }
"""


def executor(home, name, module, **spec):
    path = home.directory / f"{name}.yaml"
    source = {"url": f"file://{module}", "kind": "directory", **spec.pop("source", {})}
    path.write_text(json.dumps({"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                                "spec": {"source": source, **spec}}))
    home.dayfly("apply", "-f", path)
    return name


def region_of(home, *args):
    """The region that a run to its end gives."""
    return home.json("run", *args, "--auto-approve")["outputs"]["region"]["value"]


def refused(home, *args):
    """What a run that fails says."""
    result = home.dayfly("run", *args, "--auto-approve", code=1)
    return result.stdout + result.stderr


@pytest.fixture
def module(either_home):
    """A module with a tree of variable files."""
    directory = either_home.module("net", REGION)
    for path, region in (("environments/dev/eu-west-1.tfvars", "eu-west-1"), ("environments/dev/us.tfvars", "us")):
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'region = "{region}"\n')
    return directory

# ---- files of the source ----------------------------------------------------------------------------------------------

def test_a_variable_file_of_the_source_is_used_by_plan_apply_and_destroy(either_home, module):
    home = either_home
    name = executor(home, "net", module, arguments=["-var-file=environments/dev/eu-west-1.tfvars"])
    assert region_of(home, name) == "eu-west-1"
    text = home.dayfly("run", name, "--action", "destroy", "--auto-approve").stdout
    assert "eu-west-1/1" in text, "the plan of the destroy did not know the file's value"
    assert home.json("get", "executor", name)["status"]["state"] == "destroyed"


def test_variable_files_are_a_list_of_the_executor_and_the_later_file_wins(either_home, module):
    name = executor(either_home, "net", module,
                    variableFiles=["environments/dev/us.tfvars", "environments/dev/eu-west-1.tfvars"])
    assert region_of(either_home, name) == "eu-west-1"


def test_a_variable_file_is_named_in_two_arguments_as_well(either_home, module):
    name = executor(either_home, "net", module)
    assert region_of(either_home, name, "--arg=--var-file", "--arg=environments/dev/us.tfvars") == "us"


def test_variables_win_over_the_files_of_the_same_level_and_those_of_the_run_over_all(either_home, module):
    home = either_home
    name = executor(home, "net", module, variableFiles=["environments/dev/eu-west-1.tfvars"],
                    variables={"region": "executor"})
    assert region_of(home, name) == "executor"
    assert region_of(home, name, "--arg=-var-file=environments/dev/us.tfvars") == "us"
    assert region_of(home, name, "--arg=-var-file=environments/dev/us.tfvars", "--var", "region=run") == "run"


def test_files_that_the_tool_reads_by_itself_lose_against_all_others(either_home, module):
    home = either_home
    (module / "terraform.tfvars").write_text('region = "terraform.tfvars"\nsize = 2\n')
    name = executor(home, "net", module, environment=[{"name": "TF_VAR_region", "value": "environment"}])
    assert region_of(home, name) == "terraform.tfvars"
    (module / "z.auto.tfvars").write_text('region = "auto"\n')
    assert region_of(home, name) == "auto"
    assert region_of(home, name, "--arg=-var-file=environments/dev/us.tfvars") == "us"
    document = home.json("run", name, "--auto-approve", "--var", "region=run")
    assert document["outputs"]["region"]["value"] == "run"
    assert document["outputs"]["size"]["value"] in (2, "2")


def test_a_plan_that_was_looked_at_is_applied_with_the_values_of_its_files(either_home, module):
    home = either_home
    prod = home.directory / "prod.tfvars"
    prod.write_text("size = 9\n")
    name = executor(home, "net", module, variables={"region": "executor", "size": 1},
                    variableFiles=["environments/dev/us.tfvars"])
    shown = home.dayfly("run", name, "--arg=-var-file=environments/dev/eu-west-1.tfvars", "--var-file", prod, code=1)
    assert "eu-west-1/9" in shown.stdout
    approved = home.dayfly("approve", "net-1")
    assert "net-1: Succeeded" in approved.stdout
    assert home.dayfly("outputs", name, "region").stdout.strip() == "eu-west-1"


def test_a_variable_file_beside_the_module_is_reached_with_dots_that_stay_in_the_source(either_home):
    home = either_home
    home.module("live/net", REGION)
    (home.directory / "live" / "dev.tfvars").write_text('region = "beside"\n')
    name = executor(home, "net", home.directory / "live", source={"folder": "net"}, variableFiles=["../dev.tfvars"])
    assert region_of(home, name) == "beside"


@pytest.mark.parametrize("file, words", [
    ("../outside.tfvars", "leads out of the source"),
    ("environments/../../outside.tfvars", "leads out of the source"),
    ("missing.tfvars", '"missing.tfvars" is not in the source'),
    ("environments", "is not a file"),
])
def test_a_variable_file_that_is_not_in_the_source_fails_the_plan_by_name(either_home, module, file, words):
    home = either_home
    (home.directory / "outside.tfvars").write_text('region = "outside"\n')
    name = executor(home, "net", module, variableFiles=[file])
    text = refused(home, name)
    assert words in text and file in text, text
    assert "Terraform used" not in text and "OpenTofu used" not in text, "the tool ran"
    assert words in refused(home, executor(home, "two", module, arguments=["-var-file", file]))


@pytest.mark.parametrize("option", ["-target-file", "--exclude-file"])
@pytest.mark.parametrize("file, words", [
    ("../outside.txt", "leads out of the source"),
    ("missing.txt", '"missing.txt" is not in the source'),
    ("environments", "is not a file"),
])
def test_a_file_of_addresses_that_is_not_in_the_source_fails_the_plan_by_name(either_home, module, option, file, words):
    home = either_home
    (home.directory / "outside.txt").write_text("a word that nobody may see\n")
    for form in ([f"{option}={file}"], [option, file]):
        text = refused(home, executor(home, "net", module, arguments=form))
        assert words in text and f'the file of -{option.strip("-")} "{file}"' in text, text
        assert "nobody may see" not in text
        assert "Terraform used" not in text and "OpenTofu used" not in text, "the tool ran"


def test_a_link_out_of_the_source_is_refused_as_a_variable_file(either_home, module):
    home = either_home
    outside = home.directory / "outside.tfvars"
    outside.write_text('region = "outside"\n')
    (module / "link.tfvars").symlink_to(outside)
    # On a laptop it is followed, as any other: test_layouts.py.
    assert region_of(home, executor(home, "net", module, variableFiles=["link.tfvars"])) == "outside"
    with dayfly.Server(home):
        text = refused(home, executor(home, "net", module, variableFiles=["link.tfvars"]))
        assert "link.tfvars" in text and "SourceRefused" in text


def test_an_absolute_variable_file_is_refused_before_anything_is_stored(either_home, module):
    home = either_home
    result = home.dayfly("run", module, "--name", "net", "--arg=-var-file=/etc/passwd", code=3)
    assert '"/etc/passwd" is absolute' in result.stderr

# ---- files of the client ----------------------------------------------------------------------------------------------

def test_a_tfvars_file_of_the_client_is_used_and_stands_in_no_document(either_home, module):
    home = either_home
    hcl = home.directory / "prod.tfvars"
    hcl.write_text('# a comment\nregion = "client-hcl"\nsize   = 7\n')
    outputs = home.json("run", module, "--auto-approve", "--var-file", hcl)
    assert outputs["outputs"]["region"]["value"] == "client-hcl"
    assert outputs["run"]["spec"]["sealed"]["files"] == ["1-prod.tfvars"]
    as_json = home.directory / "prod.tfvars.json"
    as_json.write_text('{"region": "client-json"}')
    assert region_of(home, module, "--var-file", as_json) == "client-json"
    for kind in ("executors", "runs", "taskactions", "audit"):
        text = home.dayfly("get", kind, "-o", "json").stdout
        assert "client-hcl" not in text and "client-json" not in text and "a comment" not in text
    for database in home.state.rglob("*.db*"):
        assert b"client-json" not in database.read_bytes(), f"{database} holds the file"


def test_a_service_keeps_the_clients_file_sealed_while_the_plan_waits(home, server):
    module = home.module("net", REGION)
    prod = home.directory / "prod.tfvars"
    prod.write_text('# only-in-the-file\nregion = "prod"\n')
    home.dayfly("run", module, "--var-file", prod, "--no-wait")
    assert home.json("get", "run", "net-1")["status"]["phase"] == "WaitingApproval"
    prod.unlink()
    holding = [p for p in server.data.rglob("*") if p.is_file() and b"only-in-the-file" in p.read_bytes()]
    assert not holding, f"the file's content lies open in {holding}"
    home.dayfly("approve", "-f", "net-1")
    assert home.dayfly("outputs", "net", "region").stdout.strip() == "prod"


def test_the_last_var_and_var_file_of_the_command_line_wins(either_home, module):
    home = either_home
    (module / "z.auto.tfvars").write_text('region = "auto"\n')
    for name in ("one", "two"):
        (home.directory / f"{name}.tfvars").write_text(f'region = "{name}"\n')
    one, two = home.directory / "one.tfvars", home.directory / "two.tfvars"
    yaml = home.directory / "three.yaml"
    yaml.write_text("region: three\n")
    name = executor(home, "net", module, variables={"region": "executor"},
                    variableFiles=["environments/dev/us.tfvars"])
    assert region_of(home, name, "--var-file", one) == "one"
    assert region_of(home, name, "--var-file", one, "--var-file", two) == "two"
    assert region_of(home, name, "--var", "region=var", "--var-file", two) == "two"
    assert region_of(home, name, "--var-file", two, "--var", "region=var") == "var"
    assert region_of(home, name, "--var-file", yaml, "--var-file", one) == "one"
    assert region_of(home, name, "--var-file", one, "--var-file", yaml) == "three"


def test_a_var_file_that_cannot_be_read_is_named_and_nothing_is_asked_for(home):
    module = home.module("net", REGION)
    result = home.dayfly("run", module, "--var-file", "nowhere.tfvars", code=3)
    assert "--var-file nowhere.tfvars" in result.stderr
    assert home.json("get", "runs")["items"] == []


@pytest.mark.parametrize("name", ["net.tfvars", "net.tfvars.json", "net.yaml"])
def test_a_file_in_utf_16_is_refused_with_what_it_is(home, name):
    module = home.module("net", REGION)
    text = {"net.tfvars": 'region = "eu"\n', "net.tfvars.json": '{"region": "eu"}', "net.yaml": "region: eu\n"}[name]
    for encoding, said in (("utf-16", "is UTF-16, as PowerShell's > writes it"), ("utf-16-le", "is UTF-16"),
                           ("utf-8-sig", "begins with a byte order mark")):
        (home.directory / name).write_bytes(text.encode(encoding))
        if (name, encoding) == ("net.yaml", "utf-8-sig"):  # which YAML allows
            continue
        refused = home.dayfly("run", module, "--var-file", home.directory / name, "--auto-approve", code=3).stderr
        assert said in refused and "must be UTF-8 without a byte order mark" in refused and name in refused
    assert home.json("get", "executors")["items"] == []


TYPES = """
variable "text" {
  type    = string
  default = ""
}
variable "any" {
  type    = any
  default = null
}
variable "none" { default = "" }
variable "list" {
  type    = list(string)
  default = []
}
output "all" { value = jsonencode([var.text, var.any, var.none, var.list]) }
"""


@pytest.mark.parametrize("word", [
    'text={"Version": "2012"}', "text=[x", "text=5", "any=5", 'any="5"', "any={a = 1}", "any=null", "none=[1]", "none=5", 'list=["a"]',
    'list=[1 + 1, "$${a}", "b",] # why',
])
def test_a_value_is_read_as_the_tool_reads_it(either_home, word):
    home = either_home
    module = home.module("types", TYPES)
    directory = home.directory / "by-hand"
    directory.mkdir()
    (directory / "main.tf").write_text(TYPES)
    subprocess.run([next(home.bin.iterdir()), "apply", "-auto-approve", "-input=false", "-var", word], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    state = json.loads((directory / "terraform.tfstate").read_text())
    assert home.json("run", module, "--auto-approve", "--var", word)["outputs"]["all"]["value"] == state["outputs"]["all"]["value"]


def test_a_text_where_the_tool_takes_an_expression_is_refused_before_it_runs(home):
    module = home.module("types", TYPES.split("output")[0])
    for word, said in (("any=eu", "a text needs quotes"), ("list=", "a text needs quotes"), ("list=[", "which it is not"),
                       ('list=["${"/*"}"])\ntext = ([/* */"x"][0]', "without a template (${ or %{)")):
        assert said in home.dayfly("run", module, "--var", word, code=3).stderr
    assert home.json("get", "runs")["items"] == []
    said = home.dayfly("run", module, "--secret-var", "any=-", input="secret-text", code=3).stderr
    assert "must be JSON" in said and "secret-text" not in said
    (home.directory / "policy.json").write_text('{"a": 1}')
    home.dayfly("run", module, "--auto-approve", "--secret-var", "any=-", "--secret-var", f"text=@{home.directory}/policy.json", input="[1]")
    home.dayfly("run", module, "--auto-approve", "--keep", "--var", 'text={"a": 1}', "--var", "any=7")
    assert home.json("get", "executor", "types")["spec"]["variables"] == {"text": '{"a": 1}', "any": 7}
    assert "no value in HCL" in home.dayfly("run", module, "--auto-approve", "--keep", "--var", "any={a = 1}", code=3).stderr
    home.dayfly("set", "types", "var", "text=[", 'list=["b"]')
    assert home.json("get", "executor", "types")["spec"]["variables"] == {"text": "[", "any": 7, "list": ["b"]}
    assert "write JSON" in home.dayfly("set", "types", "var", "any={a = 1}", code=3).stderr


def test_what_is_wrong_in_a_tfvars_file_is_said_by_the_tool(either_home, module):
    bad = either_home.directory / "bad.tfvars"
    bad.write_text('region = \n')
    text = refused(either_home, module, "--var-file", bad)
    assert "PlanFailed" in text or "InitFailed" in text


def test_a_tfvars_file_is_not_kept(home):
    module = home.module("net", REGION)
    (home.directory / "a.tfvars").write_text('region = "eu"\n')
    result = home.dayfly("run", module, "--keep", "--var-file", home.directory / "a.tfvars", code=3)
    assert "--keep keeps no .tfvars file" in result.stderr


NUMBERS = ["0.1234567890123456789012345678", "-0.1000000000000000055511151231257827", "12345678901234567890", "0.1", "1E5",
           "1e40", "0.30000000000000001", "-0"]


def exact(text):
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


@pytest.mark.parametrize("way", ["var", "yaml", "executor", "secret"])
def test_every_digit_of_a_number_arrives_at_the_tool_and_comes_back(either_home, way):
    home = either_home
    module = home.directory / "numbers"
    module.mkdir()
    (module / "main.tf").write_text('variable "n" { type = list(number) }\n'
                                    f'output "n" {{\n  value = var.n\n  sensitive = {str(way == "secret").lower()}\n}}\n'
                                    f'output "f" {{ value = {NUMBERS[0]} }}\n')
    given = f"[{', '.join(NUMBERS)}]"
    (home.directory / "n.yaml").write_text(f"n: {given}\n")
    (home.directory / "n.json").write_text(given)
    name, options = str(module), ["--var", f"n={given}"]
    if way == "yaml":
        options = ["--var-file", home.directory / "n.yaml"]
    elif way == "secret":
        options = ["--secret-var", f"n=@{home.directory / 'n.json'}"]
    elif way == "executor":
        (home.directory / "numbers.yaml").write_text(f"""
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {{name: numbers}}
spec: {{source: {{url: "file://{module}", kind: directory}}, variables: {{n: {given}}}}}
""")
        home.dayfly("apply", "-f", home.directory / "numbers.yaml")
        name, options = "numbers", []
    home.dayfly("run", name, "--auto-approve", *options)
    expected = [Decimal(n) for n in NUMBERS]
    state = exact(home.dayfly("state", "pull", "numbers").stdout)
    assert state["outputs"]["n"]["value"] == expected
    if way == "secret":  # the digits are masked wherever they are shown
        return
    outputs = exact(home.dayfly("outputs", "numbers", "-o", "json").stdout)
    assert outputs["n"]["value"] == expected
    assert outputs["f"]["value"] == expected[0]
    assert f"value: {NUMBERS[0]}\n" in home.dayfly("outputs", "numbers", "-o", "yaml").stdout
    assert f"f = {NUMBERS[0]}\n" in home.dayfly("outputs", "numbers").stdout
    assert f"f = {NUMBERS[0]}\n" in home.dayfly("logs", "numbers-1").stdout


# ---- variables that stay ----------------------------------------------------------------------------------------------

SENSITIVE = REGION + """
variable "password" {
  default   = "none"
  sensitive = true
}
"""


def test_variables_are_set_and_taken_away_on_an_executor(home):
    module = home.module("net", REGION)
    typed = REGION.replace('"size" { default = 1 }', '"size" {\n  type    = any\n  default = 1\n}')
    (module / "main.tf").write_text(typed)
    name = executor(home, "net", module, variables={"size": {"old": 1}})
    assert home.dayfly("set", name, "var", "region=eu", 'size={"new": 2}').stdout == "executor/net changed\n"
    assert home.json("get", "executor", name)["spec"]["variables"] == {"region": "eu", "size": {"new": 2}}
    assert home.dayfly("set", name, "var", "region=eu").stdout == "executor/net unchanged\n"
    home.dayfly("set", name, "var", "size-")
    assert region_of(home, name) == "eu"
    assert home.json("get", "executor", name)["spec"]["variables"] == {"region": "eu"}


def test_the_tool_of_an_executor_is_set_from_the_command_line(home):
    name = executor(home, "net", home.module("net", REGION))
    home.dayfly("set", name, "tool=terraform", "tool-version=~> 1.9")
    assert home.json("get", "executor", name)["spec"]["runtime"] == {"name": "terraform", "version": "~> 1.9"}
    home.dayfly("set", name, "tool-", "tool-version-")
    assert home.json("get", "executor", name)["spec"]["runtime"] == {}


@pytest.mark.parametrize("words, said", [
    (["var"], "NAME=VALUE"),
    (["var", "=x"], "must be name=value"),
    (["var", "a.b=x"], "a.b"),
    (["region=eu"], '"region=eu" cannot be set: write `var NAME=VALUE`'),
])
def test_what_cannot_be_set_is_refused_with_the_way(home, words, said):
    name = executor(home, "net", home.module("net", REGION))
    assert said in home.dayfly("set", name, *words, code=3).stderr
    assert "variables" not in home.json("get", "executor", name)["spec"]


def test_the_variables_of_a_run_are_kept_on_demand(home):
    module = home.module("net", REGION)
    result = home.dayfly("run", module, "--auto-approve", "--var", "region=eu", "--keep")
    assert "the variables of this run are kept" in result.stderr
    assert region_of(home, module) == "eu"
    assert home.json("get", "executor", "net")["spec"]["variables"] == {"region": "eu"}
    assert region_of(home, module, "--var", "region=once") == "once"
    assert region_of(home, module) == "eu"


def test_a_dry_run_keeps_nothing(home):
    module = home.module("net", REGION)
    result = home.dayfly("run", module, "--action", "dry-run", "--var", "region=eu", "--keep", code=3)
    assert "a dry-run does not" in result.stderr


def test_a_sensitive_variable_is_not_kept_and_the_way_out_works(home):
    module = home.module("net", SENSITIVE)
    name = executor(home, "net", module)
    for words in (("set", name, "var", "password=hunter2"),
                  ("run", name, "--auto-approve", "--keep", "--var", "password=hunter2")):
        result = home.dayfly(*words, code=3)
        assert "variable password is declared sensitive (main.tf, line" in result.stderr
        assert "dayfly secret set net password" in result.stderr and "hunter2" not in result.stderr
    assert "hunter2" not in home.dayfly("get", "executor", name, "-o", "json").stdout

# ---- the tool ---------------------------------------------------------------------------------------------------------

def test_the_only_tool_that_is_installed_is_used_and_recorded(either_home, module):
    home = either_home
    path = home.env["PATH"].split(":")
    home.env["PATH"] = ":".join(p for p in path if p != "/usr/local/bin")
    document = home.json("run", module, "--auto-approve")
    assert document["run"]["status"]["tool"]["name"] == home.runtime
    found = home.json("get", "executor", "net")
    assert "name" not in found["spec"]["runtime"] and found["status"]["tool"]["name"] == home.runtime


def test_an_executor_keeps_to_the_tool_of_its_last_apply(home, module_home_with_both):
    module, terraform = module_home_with_both
    home.json("run", module, "--auto-approve")
    (home.bin / "tofu").unlink()
    (home.bin / "terraform").symlink_to(terraform)
    text = home.dayfly("run", module, "--auto-approve", code=1)
    assert "ToolMissing" in text.stdout + text.stderr
    assert home.json("run", module, "--auto-approve", "--tool", "terraform",
                     "--var", "size=3")["run"]["status"]["tool"]["name"] == "terraform"


@pytest.fixture
def module_home_with_both(home, terraform):
    return home.module("both", REGION), terraform

# ---- the path ---------------------------------------------------------------------------------------------------------

def test_paths_in_outputs_are_the_same_in_every_run_of_an_executor(either_home, module):
    home = either_home
    first = home.json("run", module, "--auto-approve")["outputs"]
    again = home.json("run", module, "--auto-approve")
    assert again["run"]["status"]["reason"] == "NoChanges"
    assert again["outputs"]["place"] == first["place"] and again["outputs"]["home"] == first["home"]
    other = home.json("run", module, "--name", "other", "--auto-approve")["outputs"]
    assert other["place"] != first["place"], "two executors share a path"


def test_what_a_step_leaves_beside_the_module_is_gone_in_the_next_one(either_home):
    home = either_home
    module = home.module("net", """
resource "terraform_data" "x" {
  triggers_replace = timestamp()
  provisioner "local-exec" { command = "ls; touch left-behind" }
}
""")
    home.dayfly("run", module, "--auto-approve")
    text = home.dayfly("run", module, "--auto-approve").stdout
    assert "main.tf" in text and "left-behind" not in text.replace("touch left-behind", "")

# ---- outputs of another executor ----------------------------------------------------------------------------------------

def has_in_clear(directory, text, but):
    """Is the text in a file below? True also while files go away."""
    try:
        return any(text.encode() in f.read_bytes() for f in directory.rglob("*") if f.is_file() and f != but)
    except FileNotFoundError:
        return True


def test_a_module_reads_the_managed_state_of_another_executor_as_the_page_says(either_home):
    home, tokens = either_home, either_home.directory / "tokens"
    tokens.touch(mode=0o600)
    page = (dayfly.ROOT / "docs/variables.md").read_text()
    reader = re.search(r"^```hcl\n(.*?)^```$", page, re.M | re.S)[1]
    net = home.module("net", 'resource "terraform_data" "net" { input = "vpc-17" }\noutput "vpc" { value = terraform_data.net.output }')
    make = lambda name, role: home.run(dayfly.DAYFLY, "token-file", "create", "--name", name, "--role", role,
                                       "--token-file", tokens).stdout.strip()
    home.env["DAYFLY_TOKEN"], token, reads = make("boss", "admin"), make("app-reads-net", "write"), make("looks", "read")
    with dayfly.Server(home, config=f"auth: {{tokenFile: {tokens}}}\n") as server:
        home.dayfly("run", net, "--auto-approve")
        module = home.module("app", reader.replace("https://dayfly.example", server.url))
        home.dayfly("secret", "set", "app", "dayfly_token", input=token)
        executor(home, "app", module, secrets=[{"name": "app"}], runtime={"name": home.runtime})
        home.dayfly("secret", "allow", "app", "--executor", "app")
        shown = home.dayfly("run", "executor/app", "--auto-approve", "-o", "json")
        assert json.loads(shown.stdout)["outputs"]["vpc"]["value"] == "vpc-17"
        assert token not in shown.stdout + shown.stderr
        wait_for("the token to be nowhere in the clear when the step's directory has gone",
                 lambda: not has_in_clear(server.data, token, tokens))
        home.dayfly("secret", "set", "app", "dayfly_token", "--force", input=reads)
        assert "invalid auth" in refused(home, "executor/app"), "a token that may not read states"
