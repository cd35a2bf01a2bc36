"""What `dayfly run` passes from the shell that it runs in."""

import json
import subprocess

from lib import dayfly

MODULE = """
terraform { required_version = ">= 1.0" }
variable "region" { default = "none" }
data "external" "none" { count = 0, program = [] }
output "region" { value = var.region }
"""

# What the tool's own process sees: terraform_data runs a shell in its environment.
SEES = """
resource "terraform_data" "look" {
  provisioner "local-exec" { command = "env | sort >%s" }
}
"""


def seen(home, *args, env, code=0):
    """The environment of a local-exec of the apply, and what the command said."""
    out = home.directory / "seen"
    module = home.module("look", SEES % out)
    result = home.dayfly("run", module, "--auto-approve", *args, env=env, code=code)
    pairs = (line.partition("=") for line in out.read_text().splitlines())
    return {name: value for name, _, value in pairs}, result


def test_credentials_of_the_shell_reach_the_tool_and_one_line_names_them(either_home):
    env = {"AWS_SECRET_ACCESS_KEY": "correct-horse-1", "AWS_REGION": "eu-west-1", "UNRELATED": "x", "GITHUB_TOKEN": "tok-12345"}
    found, result = seen(either_home, env=env)
    assert found["AWS_SECRET_ACCESS_KEY"] == "correct-horse-1"
    assert found["AWS_REGION"] == "eu-west-1"
    assert found["GITHUB_TOKEN"] == "tok-12345"
    assert "UNRELATED" not in found
    lines = [line for line in result.stderr.splitlines() if "passed from this shell" in line]
    assert len(lines) == 1
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_REGION", "GITHUB_TOKEN"):
        assert name in lines[0]
    assert "correct-horse-1" not in result.stdout + result.stderr


def test_no_env_passes_nothing_and_says_nothing(home):
    found, result = seen(home, "--no-env", env={"AWS_SECRET_ACCESS_KEY": "correct-horse-1"})
    assert "AWS_SECRET_ACCESS_KEY" not in found
    assert "passed" not in result.stderr


def test_env_adds_a_variable_by_name_or_with_a_value(home):
    found, _ = seen(home, "--env", "MINE", "--env", "OTHER=two words", env={"MINE": "one"})
    assert (found["MINE"], found["OTHER"]) == ("one", "two words")


def test_git_reaches_modules_as_the_users_own_git_does(either_home):
    home = either_home
    repository = home.module("repositories/net", 'output "id" { value = "of git" }\n')
    home.git(repository, "init")
    home.git(repository, "add", ".")
    home.git(repository, "commit", "-m", "x")
    module = home.module("work/app", 'module "n" { source = "git::https://git.invalid/net" }\noutput "id" { value = module.n.id }\n')
    config = home.directory / ".gitconfig"
    config.write_text(f'[user]\n\tname = x\n[url "file://{home.directory}/repositories/"]\n\tinsteadOf = https://git.invalid/\n')
    done = home.dayfly("run", module, "--tool", home.runtime, "--auto-approve")
    assert "passed from this shell: ~/.gitconfig (--no-env passes nothing)" in done.stderr
    assert home.dayfly("outputs", "app", "id").stdout.strip() == "of git"
    assert "passed" not in home.dayfly("plan", module, "--no-env", code=1).stderr
    # What has nothing to do with how git reaches a repository is not passed.
    config.write_text("[user]\n\tname = x\n")
    assert "passed" not in home.dayfly("plan", module, code=1).stderr


def test_env_of_a_variable_that_is_not_set_is_refused(home):
    module = home.module("look", MODULE.replace('data "external" "none" { count = 0, program = [] }\n', ""))
    result = home.dayfly("run", module, "--auto-approve", "--env", "ABSENT_HERE", code=3)
    assert "ABSENT_HERE" in result.stderr


def test_the_files_of_the_providers_own_tools_are_named(home):
    for name in (".aws/config", ".aws/credentials", ".config/gcloud/application_default_credentials.json", ".azure/x"):
        path = home.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found, result = seen(home, env={})
    assert found["AWS_CONFIG_FILE"] == str(home.directory / ".aws/config")
    assert found["AWS_SHARED_CREDENTIALS_FILE"] == str(home.directory / ".aws/credentials")
    assert found["CLOUDSDK_CONFIG"] == str(home.directory / ".config/gcloud")
    assert found["AZURE_CONFIG_DIR"] == str(home.directory / ".azure")
    assert "~/.aws, ~/.config/gcloud, ~/.azure" in result.stderr


def test_the_configuration_says_what_is_passed(home):
    config = home.directory / "dayfly.yaml"
    config.write_text("caller: {environment: [MY_*], files: false}\n")
    (home.directory / ".azure").mkdir()
    found, _ = seen(home, "--config", config, env={"MY_TOKEN": "abcd", "AWS_REGION": "eu"})
    assert found["MY_TOKEN"] == "abcd"
    assert "AWS_REGION" not in found and "AZURE_CONFIG_DIR" not in found


def test_what_is_secret_is_masked_and_a_region_is_not(home):
    module = home.module("echo", 'resource "terraform_data" "look" {\n'
                         '  provisioner "local-exec" { command = "echo saw $AWS_SECRET_ACCESS_KEY in $AWS_REGION" }\n}\n')
    env = {"AWS_SECRET_ACCESS_KEY": "correct-horse-1", "AWS_REGION": "eu-west-1"}
    home.dayfly("run", module, "--auto-approve", env=env)
    log = home.dayfly("logs", "echo-1").stdout
    assert "saw *** in eu-west-1" in log


def test_an_apply_after_an_approval_in_another_shell_still_has_them(home):
    out = home.directory / "seen"
    module = home.module("look", SEES % out)
    home.dayfly("run", module, "--no-wait", env={"AWS_REGION": "eu-west-1"})
    home.dayfly("approve", "-f", "look-1")
    assert "AWS_REGION=eu-west-1" in out.read_text()


def test_a_variable_of_the_executor_wins_over_the_shell(home):
    out = home.directory / "seen"
    module = home.module("look", SEES % out)
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "own"},
                "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "approval": "automatic",
                         "runtime": {"name": home.runtime}, "environment": [{"name": "AWS_REGION", "value": "us-east-1"}]}}
    path = home.directory / "own.json"
    path.write_text(json.dumps(document))
    home.dayfly("apply", "-f", path)
    home.dayfly("run", "own", "--auto-approve", env={"AWS_REGION": "eu-west-1"})
    assert "AWS_REGION=us-east-1" in out.read_text()


def test_a_service_gets_nothing_of_a_shell_but_what_env_names(home):
    with dayfly.Server(home) as server:
        out = home.directory / "seen"
        module = home.module("look", SEES % out)
        result = home.dayfly("--server", server.url, "run", module, "--auto-approve", "--env", "AWS_PROFILE",
                             env={"AWS_REGION": "eu-west-1", "AWS_PROFILE": "dev"})
        assert "AWS_REGION" not in out.read_text()
        assert "AWS_PROFILE=dev" in out.read_text()
        assert "AWS_REGION" not in result.stderr


def test_a_service_that_was_started_with_an_option_first_gets_nothing_either(home):
    data = home.directory / "data"
    server = home.popen(dayfly.DAYFLY, "--data-directory", data, "serve", "--listen", "127.0.0.1:0",
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        dayfly.wait_for("the service", lambda: (data / "endpoint").exists())
        module = home.module("net", 'output "x" { value = 1 }\n')
        said = home.dayfly("run", module, "--data-directory", data, "--auto-approve",
                           env={"AWS_SECRET_ACCESS_KEY": "correct-horse-1"}).stderr
        assert "passed from this shell" not in said
    finally:
        server.terminate()
        server.wait()


def test_a_service_gets_nothing_of_the_shell_and_one_note_says_so(home, server):
    env = {"AWS_SECRET_ACCESS_KEY": "correct-horse-1", "AWS_REGION": "eu-west-1", "GITHUB_TOKEN": "tok-12345", "UNRELATED": "x"}
    for extra in ({}, {"DAYFLY_SERVER": server.url}):
        found, result = seen(home, "--env", "GITHUB_TOKEN", env={**env, **extra})
        assert "AWS_SECRET_ACCESS_KEY" not in found and found["GITHUB_TOKEN"] == "tok-12345"
        (line,) = [line for line in result.stderr.splitlines() if "not passed to the service" in line]
        assert "AWS_SECRET_ACCESS_KEY, " in line + ", " and "AWS_REGION" in line and "--env NAME" in line
        assert "GITHUB_TOKEN" not in line and "UNRELATED" not in line
        assert "correct-horse-1" not in result.stdout + result.stderr
        (home.directory / "seen").unlink()
        home.dayfly("destroy", "look", "--auto-approve", "--no-env", env={**env, **extra})
    module = home.module("look", SEES % "seen")
    assert "not passed" not in home.dayfly("plan", module, "--name", "b", "--no-env", env={**env, **extra}).stderr
    assert "not passed" not in home.dayfly("plan", module, "--name", "b", env={"AWS_REGION": "eu-west-1"}).stderr
