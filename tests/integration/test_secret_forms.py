"""Secrets of the vault as variables of the environment and as files, besides TF_VAR_*."""

import json

import pytest

PASSWORD = "correct-horse-battery"
PASSFILE = "db.example:5432:app:ada:staple-of-horses\n"

# What a provisioner sees: a client that reads its password from the environment, or from a file that a variable names.
MODULE = """
resource "terraform_data" "client" {
  provisioner "local-exec" { command = "%s" }
}
"""


def executor(home, name, module, **spec):
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                "spec": {"source": {"url": f"file://{module}", "kind": "directory"},
                         "runtime": {"name": home.runtime}, **spec}}
    path = home.directory / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def seen(home, command, secrets, **spec):
    """The log of an apply whose provisioner runs the command, and what the command wrote to $OUT."""
    out = home.directory / "out"
    module = home.module("db", MODULE % command.replace("$OUT", str(out)))
    home.dayfly("apply", "-f", executor(home, "db", module, secrets=secrets, **spec))
    result = home.dayfly("run", "db", "--auto-approve")
    log = home.dayfly("logs", "db-1").stdout
    for text in (PASSWORD, PASSFILE.strip()):
        assert text not in log + result.stdout + result.stderr
    return log, out.read_text()


def test_a_secret_becomes_an_environment_variable_and_is_masked(either_home):
    either_home.dayfly("secret", "set", "db", "PGPASSWORD", input=PASSWORD + "\n")
    log, written = seen(either_home, "echo client says $PGPASSWORD; printf %s $PGPASSWORD >$OUT",
                        [{"name": "db", "keys": ["PGPASSWORD"], "as": "env"}])
    assert written == PASSWORD
    assert "client says ***" in log


def test_a_key_may_get_the_name_that_a_program_reads(either_home):
    either_home.dayfly("secret", "set", "db", "db-password", input=PASSWORD + "\n")
    either_home.dayfly("secret", "set", "db", "other", input="not-asked-for\n")
    _, written = seen(either_home, "env >$OUT",
                      [{"name": "db", "keys": ["db-password"], "as": "env", "env": "PGPASSWORD"}])
    lines = written.splitlines()
    assert f"PGPASSWORD={PASSWORD}" in lines
    assert "not-asked-for" not in written


def test_a_secret_becomes_a_file_that_a_variable_names_and_is_masked(either_home):
    path = either_home.directory / "pgpass"
    path.write_text(PASSFILE)
    either_home.dayfly("secret", "set", "db", "passfile", "--from-file", path)
    path.unlink()
    log, written = seen(either_home, "echo client says $(cat $PGPASSFILE); cat $PGPASSFILE >$OUT; "
                                     "stat -c %a $PGPASSFILE >>$OUT; echo $PGPASSFILE >>$OUT",
                        [{"name": "db", "keys": ["passfile"], "as": "file", "env": "PGPASSFILE"}])
    assert written.startswith(PASSFILE + "600\n")
    name = written.splitlines()[-1]
    assert name.endswith("/files/db.passfile")
    assert not either_home.run("test", "-e", name).returncode == 0, "the file outlives its step"
    assert "client says ***" in log


def test_the_path_of_a_file_is_a_variable_of_the_module(either_home):
    either_home.dayfly("secret", "set", "db", "key", input=PASSWORD)
    module = either_home.module("db", 'variable "key" { sensitive = true }\n'
                                'output "length" { value = length(nonsensitive(file(var.key))) }\n')
    either_home.dayfly("apply", "-f", executor(either_home, "db", module, secrets=[{"name": "db", "as": "file"}]))
    either_home.dayfly("run", "db", "--auto-approve")
    assert either_home.json("outputs", "db")["length"]["value"] == len(PASSWORD)


@pytest.mark.parametrize("spec, words", [
    ({"secrets": [{"name": "db", "keys": ["TF_HTTP_ADDRESS"], "as": "env"}]}, "TF_HTTP_ADDRESS is refused"),
    ({"secrets": [{"name": "db", "keys": ["db-password"], "as": "env"}]}, "env: NAME"),
    ({"secrets": [{"name": "db", "keys": ["A"], "as": "env"}], "environment": [{"name": "A", "value": "x"}]},
     "A is set by spec.secrets, too"),
])
def test_a_variable_that_cannot_be_set_is_refused_when_the_executor_is_stored(home, spec, words):
    module = home.module("db", MODULE % "true")
    result = home.dayfly("apply", "-f", executor(home, "db", module, **spec), code=3)
    assert words in result.stderr


@pytest.mark.parametrize("key, spec, words", [
    ("LD_PRELOAD", {}, "LD_PRELOAD is refused"),
    ("db-password", {}, "env: NAME"),
    ("STAGE", {"environment": [{"name": "STAGE", "value": "test"}]}, "spec.environment sets, too"),
    ("GITHUB_TOKEN", {"integrations": [{"provider": "github", "secretRef": {"name": "hub"}}]},
     "integration github sets GITHUB_TOKEN, which something else sets, too"),
])
def test_what_only_the_secret_shows_fails_the_step_in_words(home, key, spec, words):
    home.dayfly("secret", "set", "hub", "token", input="hub-token\n")
    home.dayfly("secret", "set", "db", key, input=PASSWORD + "\n")
    module = home.module("db", MODULE % "true")
    home.dayfly("apply", "-f", executor(home, "db", module, secrets=[{"name": "db", "as": "env"}], **spec))
    home.dayfly("run", "db", "--auto-approve", code=3)
    status = home.json("get", "run", "db-1")["status"]
    assert status["reason"] == "InvalidStep"
    assert words in status["message"] and PASSWORD not in status["message"]


def test_a_secret_of_the_executor_wins_over_the_shell(home):
    home.dayfly("secret", "set", "aws", "AWS_PROFILE", input="of-the-executor\n")
    out = home.directory / "out"
    module = home.module("db", MODULE % f"printf %s $AWS_PROFILE >{out}")
    secrets = [{"name": "aws", "keys": ["AWS_PROFILE"], "as": "env"}]
    home.dayfly("apply", "-f", executor(home, "db", module, secrets=secrets))
    home.dayfly("run", "db", "--auto-approve", env={"AWS_PROFILE": "of-the-shell"})
    assert out.read_text() == "of-the-executor"


# Every argument of a declaration must survive that dayfly declares the variable sensitive.
SENSITIVE = """
variable "password" {
  type        = string
  description = "Of the database."
  nullable    = false
  validation {
    condition     = length(var.password) > 4
    error_message = "Too short."
  }
}
variable "ports" { default = [1, 2] }
resource "terraform_data" "db" { input = "%s:${var.password}:${length(var.ports)}" }
"""
JSON = """{"variable": {"hosts": {"type": "list(string)", "default": ["a"]}},
 "resource": {"terraform_data": {"hosts": {"input": "${var.hosts}"}}}}"""


def test_a_variable_with_a_secret_is_sensitive_to_the_tool(either_home):
    home = either_home
    home.dayfly("secret", "set", "db", "password", input=PASSWORD + "\n")
    home.dayfly("secret", "set", "db", "hosts", input='["one.example", "two.example"]\n')
    module = home.module("db", SENSITIVE % "x", **{"more.tf.json": JSON})
    home.dayfly("apply", "-f", executor(home, "db", module, secrets=[{"name": "db"}]))
    home.dayfly("run", "db", "--auto-approve")
    plan = home.dayfly("logs", "db-1").stdout
    assert plan.count("(sensitive value)") >= 2 and PASSWORD not in plan and "***" not in plan
    state = json.loads(home.dayfly("state", "show", "db").stdout)
    inputs = [r["instances"][0]["attributes"]["input"]["value"] for r in state["resources"]]
    assert f"x:{PASSWORD}:2" in inputs and ["one.example", "two.example"] in inputs
    again = home.dayfly("plan", "db", "--detailed-exitcode").stdout
    assert "No changes" in again, again


def test_a_plain_output_of_a_secret_is_refused_by_the_tool_unless_the_module_says_so(either_home):
    home = either_home
    home.dayfly("secret", "set", "db", "password", input=PASSWORD + "\n")
    output = 'output "plain" { value = var.password }\n'
    module = home.module("db", 'variable "password" {}\n' + output)
    home.dayfly("apply", "-f", executor(home, "db", module, secrets=[{"name": "db"}]))
    refused = home.dayfly("run", "db", "--auto-approve", code=1)
    assert "Output refers to sensitive values" in refused.stdout + refused.stderr
    (module / "main.tf").write_text('variable "password" { sensitive = false }\n' + output)
    home.dayfly("run", "db", "--auto-approve")
