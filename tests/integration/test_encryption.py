"""OpenTofu encrypts state and plan with a passphrase from a variable: every call of the tool needs it."""

import json

import pytest

MODULE = """
variable "passphrase" {
  type      = string
  sensitive = true
}
variable "input" {
  default = "one"
}
terraform {
  encryption {
    %s
    method "aes_gcm" "m" {
      keys = key_provider.%s.k
    }
    state {
      method   = method.aes_gcm.m
      enforced = true
    }
    plan {
      method   = method.aes_gcm.m
      enforced = true
    }
  }
}
resource "terraform_data" "a" { input = var.input }
resource "terraform_data" "b" { input = "b" }
output "a" { value = terraform_data.a.output }
"""
PBKDF2 = """key_provider "pbkdf2" "k" {
      passphrase = var.passphrase
      iterations = 200000
    }"""
# pbkdf2 takes tenths of a second for each call of the tool.
FAST = """key_provider "external" "k" {
      command = ["sh", "./key", var.passphrase]
    }"""
KEY = """#!/bin/sh
echo '{"magic":"OpenTofu-External-Key-Provider","version":1}'
cat > /dev/null
key=$(printf '%s' "$1" | sha256sum | cut -c 1-32 | tr -d "\\n" | base64 -w 0)
echo '{"keys":{"encryption_key":"'"$key"'","decryption_key":"'"$key"'"},"meta":{}}'
"""
PASSPHRASE = "correct horse battery staple"


@pytest.fixture(params=["managed", "local"])
def sealed(request, home):
    """An executor whose state and plans are encrypted, and the options of its runs."""
    slow = request.param == "managed" and "every_call" in request.node.name
    module = home.module("sealed", MODULE % ((PBKDF2, "pbkdf2") if slow else (FAST, "external")), key=KEY)
    (home.directory / "passphrase").write_text(PASSPHRASE)
    (home.directory / "sealed.yaml").write_text(json.dumps({
        "apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "sealed"},
        "spec": {"source": {"url": f"file://{module}", "kind": "directory"},
                 "storage": {"type": request.param,
                             **({"path": str(home.directory / "own.tfstate")} if request.param == "local" else {})}}}))
    home.dayfly("apply", "-f", home.directory / "sealed.yaml")
    home.storage = request.param
    return ["--secret-var", f"passphrase=@{home.directory / 'passphrase'}"]


def stored(home):
    """The state as it is stored."""
    if home.storage == "local":
        return json.loads((home.directory / "own.tfstate").read_text())
    return json.loads(home.dayfly("state", "show", "sealed").stdout)


def test_every_call_of_the_tool_gets_the_passphrase(home, sealed):
    def run(*args, **kwargs):
        return home.dayfly(*args, *sealed, **kwargs).stdout

    # Not approved beforehand: the plan is shown, and kept as JSON for whoever approves it.
    run("run", "sealed", "--no-wait")
    home.dayfly("approve", "sealed-1", "--follow")
    assert "encrypted_data" in stored(home) and "terraform_data" not in json.dumps(stored(home))
    assert "no changes" in run("plan", "sealed").lower()
    assert "would remove" in run("state", "rm", "sealed", "terraform_data.b", "--dry-run").lower()
    run("state", "mv", "sealed", "terraform_data.b", "terraform_data.c")
    run("state", "rm", "sealed", "terraform_data.c")
    assert "Plan: 1 to add" in run("plan", "sealed")
    run("state", "import", "sealed", "terraform_data.b", "an-id")
    run("run", "sealed", "--auto-approve", "--var", "input=two")
    assert "-> \"three\"" in run("plan", "sealed", "--var", "input=three")
    before = stored(home)
    refused = home.dayfly("state", "rm", "sealed", "terraform_data.b", code=1).stdout
    assert "InitFailed" in refused and "var.passphrase" in refused
    assert stored(home) == before
    run("destroy", "sealed", "--auto-approve")
    home.dayfly("delete", "executor", "sealed")


def test_an_encrypted_state_is_taken_over_as_it_is(home):
    """`state pull` would print it open, and a module with `enforced = true` reads no such state."""
    module = home.module("net", MODULE % (FAST, "external"), key=KEY)
    for command in (["init"], ["apply", "-auto-approve"]):
        done = home.run(home.bin / "tofu", *command, cwd=module, env={"TF_VAR_passphrase": PASSPHRASE})
        assert done.returncode == 0, done.stderr
    (module / "terraform.tfstate").rename(home.directory / "net.tfstate")
    (home.directory / "passphrase").write_text(PASSPHRASE)
    key = ["--secret-var", f"passphrase=@{home.directory / 'passphrase'}"]
    home.dayfly("state", "push", module, home.directory / "net.tfstate")
    assert "encrypted_data" in home.dayfly("state", "show", "net").stdout
    assert "no changes" in home.dayfly("plan", "net", *key).stdout.lower()
    assert "var.passphrase" in home.dayfly("plan", "net", code=None).stdout


def test_outputs_of_an_encrypted_state_are_shown_or_said_to_be_unreadable(home, sealed):
    document = home.json("run", "sealed", "--auto-approve", *sealed)
    if home.storage == "local":  # the runner has read them
        assert document["outputs"]["a"]["value"] == "one"
        assert home.dayfly("outputs", "sealed", "a").stdout == "one\n"
        return
    assert document["run"]["status"]["phase"] == "Succeeded" and "outputs" not in document
    for words in (["sealed"], ["sealed", "a"], ["sealed", "--run", "sealed-1"]):
        said = home.dayfly("outputs", *words, code=None)
        assert said.returncode and "the state is encrypted by the tool" in said.stderr
    assert 'a = "one"' in home.dayfly("logs", "sealed-1").stdout
    refused = home.dayfly("delete", "executor", "sealed", code=None)
    assert refused.returncode and "cannot be read here (it is encrypted" in refused.stderr


def test_the_passphrase_is_in_no_argv_log_or_document(home, sealed):
    calls = home.directory / "calls"
    real = (home.bin / "tofu").resolve()
    (home.bin / "tofu").unlink()
    (home.bin / "tofu").write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {real} "$@"\n')
    (home.bin / "tofu").chmod(0o755)
    home.dayfly("run", "sealed", "--no-wait", *sealed)
    home.dayfly("approve", "sealed-1", "--follow")
    home.dayfly("state", "rm", "sealed", "terraform_data.b", *sealed)
    commands = calls.read_text().splitlines()
    for command in ("init", "plan", "show", "apply", "state rm"):
        own = [c for c in commands if c.startswith(f"{command} ")]
        assert own and all("-var-file=" in c for c in own), (command, own)
    seen = "\n".join(commands) + home.dayfly("logs", "sealed-1").stdout + json.dumps(home.json("get", "run", "sealed-1"))
    assert PASSPHRASE not in seen


def test_what_show_says_when_it_fails_is_in_log_and_message(home):
    module = home.module("net", 'resource "terraform_data" "a" {}\n')
    real = (home.bin / "tofu").resolve()
    (home.bin / "tofu").unlink()
    error = r"\033[31mError: \033[0m\033[1mthe plan is of another planet\033[0m\n\n\033[0m  on main.tf line 1:\n\nBring it back.\n"
    (home.bin / "tofu").write_text(f"""#!/bin/sh
if [ "$1" = show ]; then printf '{error}' >&2; exit 1; fi
exec {real} "$@"
""")
    (home.bin / "tofu").chmod(0o755)
    failed = home.dayfly("run", module, "--no-wait", code=1).stdout
    assert "PlanFailed" in failed
    run = home.json("get", "run", "net-1")["status"]
    assert run["reason"] == "PlanFailed"
    assert "tofu show -json: the plan is of another planet (main.tf:1): Bring it back." in run["message"]
    assert "the plan is of another planet" in home.dayfly("logs", "net-1").stdout


def test_an_import_gets_the_secret_variables_of_its_run(either_home):
    home = either_home
    module = home.module("net", 'variable "name" {}\nresource "terraform_data" "a" { input = var.name }\n'
                                'resource "terraform_data" "b" {}\n')
    (home.directory / "name").write_text("of-nobody")
    secret = ["--secret-var", f"name=@{home.directory / 'name'}"]
    home.dayfly("run", module, "--tool", home.runtime, "--auto-approve", *secret)
    home.dayfly("state", "rm", "net", "terraform_data.b", *secret)
    home.dayfly("state", "import", "net", "terraform_data.b", "an-id", *secret)
    assert "no changes" in home.dayfly("plan", "net", *secret).stdout.lower()
