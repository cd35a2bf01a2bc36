"""Values that no document may hold: sensitive variables, --secret-var, and where they must not be found."""

import json
import os
import pathlib
import secrets

import pytest

from lib import dayfly

VALUE = "correct-horse-battery"

MODULE = """
variable "password" {
  type      = string
  sensitive = true
}
variable "region" { default = "none" }
resource "terraform_data" "kept" { input = nonsensitive(sha256(var.password)) }
output "digest" { value = nonsensitive(sha256(var.password)) }
output "region" { value = var.region }
"""

TYPED = """
variable "settings" { type = object({ user = string, ports = list(number) }) }
output "sum" { value = "${nonsensitive(sum(var.settings.ports))}" }
output "length" { value = nonsensitive(length(var.settings.user)) }
"""


def assert_nowhere(home, *results):
    """No file of the data directory (databases with their WAL, logs, step directories) has the value, nor what was said."""
    for result in results:
        assert VALUE not in result.stdout + result.stderr
    for path in home.state.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert VALUE.encode() not in path.read_bytes(), path


def outputs(home, name):
    return {key: value["value"] for key, value in home.json("outputs", name).items()}


def test_a_variable_that_the_module_declares_sensitive_is_in_no_document(either_home):
    module = either_home.module("db", MODULE)
    result = either_home.dayfly("run", module, "--auto-approve", "--var", f"password={VALUE}", "--var", "region=eu")
    run = either_home.json("get", "run", "db-1")
    assert run["spec"]["sealed"]["variables"] == ["password"]
    assert run["spec"]["variables"] == {"region": "eu"}
    assert outputs(either_home, "db")["region"] == "eu"
    assert_nowhere(either_home, result)


def test_a_run_that_waits_keeps_the_value_sealed_and_its_apply_has_it(either_home):
    module = either_home.module("db", MODULE)
    waiting = either_home.dayfly("run", module, "--no-wait", "--secret-var", "password=-", input=VALUE + "\n")
    assert_nowhere(either_home, waiting)
    done = either_home.dayfly("approve", "-f", "db-1")
    assert_nowhere(either_home, waiting, done)
    listed = either_home.dayfly("secret", "list")
    assert "dayfly-run" not in listed.stdout


def test_a_secret_variable_may_have_any_type(either_home):
    module = either_home.module("typed", TYPED)
    path = either_home.directory / "settings.json"
    path.write_text(json.dumps({"user": VALUE, "ports": [40, 2]}))
    result = either_home.dayfly("run", module, "--auto-approve", "--secret-var", f"settings=@{path}")
    path.unlink()
    assert outputs(either_home, "typed")["sum"] in ("42", 42)
    assert_nowhere(either_home, result)


def test_a_value_on_the_command_line_is_refused(home):
    module = home.module("db", MODULE)
    result = home.dayfly("run", module, "--secret-var", f"password={VALUE}", code=3)
    assert "@FILE" in result.stderr and VALUE not in result.stderr


def test_a_sensitive_value_in_a_document_fails_the_step_with_the_ways_out(either_home):
    module = either_home.module("db", MODULE)
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "db"},
                "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": either_home.runtime},
                         "variables": {"password": "in-the-open"}}}
    path = either_home.directory / "db.json"
    path.write_text(json.dumps(document))
    either_home.dayfly("apply", "-f", path)
    result = either_home.dayfly("run", "db", "--auto-approve", code=1)
    run = either_home.json("get", "run", "db-1")
    assert run["status"]["reason"] == "SensitiveValue"
    assert "--secret-var password" in run["status"]["message"]
    assert "main.tf" in run["status"]["message"]
    assert "dayfly set db var password-" in run["status"]["message"]
    assert result.returncode == 1


def test_variables_of_a_module_that_is_not_here_are_sealed_and_shown_if_they_are_no_secrets(either_home):
    module = either_home.module("repo", MODULE + 'resource "terraform_data" "say" {\n'
                                '  provisioner "local-exec" { command = "echo region ${var.region}" }\n}\n')
    either_home.repository(module)
    result = either_home.dayfly("run", f"file://{module}", "--branch", "main", "--name", "far", "--auto-approve",
                                "--var", f"password={VALUE}", "--var", "region=eu-west-1")
    run = either_home.json("get", "run", "far-1")
    assert sorted(run["spec"]["sealed"]["variables"]) == ["password", "region"]
    assert "variables" not in run["spec"]
    assert "region eu-west-1" in either_home.dayfly("logs", "far-1").stdout
    assert_nowhere(either_home, result)


def test_a_value_kept_before_the_module_could_be_read_is_refused_with_the_command_that_removes_it(either_home):
    module = either_home.module("repo", MODULE)
    either_home.repository(module)
    bare = either_home.directory / "repo.git"  # has no files that the command line could read
    either_home.git(either_home.directory, "clone", "-q", "--bare", module, bare)
    either_home.dayfly("run", f"file://{bare}", "--branch", "main", "--name", "far", "--auto-approve",
                       "--var", "password=in-the-open", "--keep", code=1)
    status = either_home.json("get", "run", "far-1")["status"]
    assert status["reason"] == "SensitiveValue"
    assert "`dayfly set far var password-`" in status["message"]
    either_home.dayfly("set", "far", "var", "password-")
    either_home.dayfly("run", "far", "--auto-approve", "--secret-var", "password=-", input=VALUE)


SHOUTS = """
variable "tok" {
  type      = string
  sensitive = true
}
variable "open" { default = "seen-by-all" }
resource "terraform_data" "say" {
  triggers_replace = nonsensitive(sha256(var.tok))
  provisioner "local-exec" { command = "echo ${nonsensitive(var.tok)} ${var.open}" }
}
"""

NATIVE = f'# of the team\ntok = "{VALUE}" # do not show\nopen = "seen-by-all"\n'
JSON = json.dumps({"tok": VALUE, "open": "seen-by-all"})


@pytest.mark.parametrize("text, ending", [(NATIVE, "tfvars"), (JSON, "tfvars.json")], ids=["native", "json"])
@pytest.mark.parametrize("name", ["terraform", "team.auto", "--var-file", "-var-file"])
def test_a_sensitive_value_in_a_file_is_masked(either_home, name, text, ending):
    home, inside = either_home, not name.startswith("--")
    file = f"{'prod' if name.startswith('-') else name}.{ending}"
    module = home.module("shout", SHOUTS, **({file: text} if inside else {}))
    options = [f"--arg=-var-file={file}"] if name == "-var-file" else []
    if not inside:
        (home.directory / file).write_text(text)
        options = ["--var-file", home.directory / file]
    result = home.dayfly("run", module, "--tool", home.runtime, "--auto-approve", *options)
    log = home.dayfly("logs", "shout-1")
    assert "*** seen-by-all" in log.stdout
    assert_nowhere(home, result, log)


OBJECT = """
variable "tok" {
  type      = any
  sensitive = true
}
resource "terraform_data" "say" {
  provisioner "local-exec" { command = "printf '%s\\n' '${nonsensitive(join(" ", flatten(values(var.tok))))}'" }
}
"""


@pytest.mark.parametrize("value", [f'{{ a = "{VALUE}" }}', f'{{ a = ["x", "{VALUE}"] }}',
                                   f"{{\n  a = <<-END\n    {VALUE}\n  END\n}}"], ids=["object", "list", "heredoc"])
def test_a_sensitive_object_in_a_tfvars_file_is_masked_by_its_members(either_home, value):
    module = either_home.module("shout", OBJECT, **{"terraform.tfvars": f"tok = {value}\n"})
    result = either_home.dayfly("run", module, "--tool", either_home.runtime, "--auto-approve")
    log = either_home.dayfly("logs", "shout-1")
    assert "***" in log.stdout
    assert_nowhere(either_home, result, log)


def test_describe_names_the_sealed_variables(home):
    module = home.module("db", MODULE)
    home.dayfly("run", module, "--auto-approve", "--var", f"password={VALUE}")
    shown = home.dayfly("describe", "run", "db-1").stdout
    assert "password" in shown and VALUE not in shown


# The provisioner waits until somebody writes into a pipe: the processes of a step can be looked at.
WAITS = MODULE + """
resource "terraform_data" "wait" {
  provisioner "local-exec" { command = "touch %s && read answer <%s" }
}
"""


def processes():
    """(command line, environment) of every process."""
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            yield (directory / "cmdline").read_bytes(), (directory / "environ").read_bytes()
        except OSError:
            continue  # it has ended


def seen_while_a_step_runs(home, *options, env=None):
    """All processes during an apply."""
    started, pipe = home.directory / "started", home.directory / "pipe"
    os.mkfifo(pipe)
    module = home.module("db", WAITS % (started, pipe))
    run = home.popen(dayfly.DAYFLY, "run", module, "--auto-approve", *options, env=env)
    try:
        dayfly.wait_for("the provisioner", lambda: started.exists() or run.poll() is not None)
        found = list(processes())
    finally:
        if run.poll() is None:
            pipe.write_text("go on\n")
    assert run.wait(dayfly.DEADLINE) == 0
    tool = "tofu" if home.runtime == "opentofu" else "terraform"
    ours = [pair for pair in found if str(home.directory).encode() in pair[0] + pair[1]]
    for name in (str(dayfly.RUNNER), tool):
        assert any(name.encode() in line.split(b"\0")[0] for line, _ in ours), f"{name} was not there to look at"
    return found


def test_no_process_has_a_secret_variable_in_its_arguments_or_environment(either_home):
    value = secrets.token_hex(16)
    path = either_home.directory / "password"
    path.write_text(value)
    for line, environment in seen_while_a_step_runs(either_home, "--secret-var", f"password=@{path}"):
        assert value.encode() not in line + environment, line


def test_a_credential_of_the_shell_is_in_the_environment_of_the_tool_and_not_of_the_runner(either_home):
    value = secrets.token_hex(16)
    path = either_home.directory / "password"
    path.write_text("other")
    found = seen_while_a_step_runs(either_home, "--secret-var", f"password=@{path}", env={"AWS_SECRET_ACCESS_KEY": value})
    holders = [line.split(b"\0")[0].decode() for line, environment in found if value.encode() in environment]
    assert str(dayfly.RUNNER) not in holders
    assert any(name.endswith(("tofu", "terraform")) for name in holders)
    assert not [line for line, _ in found if value.encode() in line]
