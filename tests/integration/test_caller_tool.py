"""The CLI configuration of a person's own tool (~/.tofurc, ~/.terraformrc, TF_CLI_CONFIG_FILE, `tofu login`) in `dayfly run`."""

import json
import os

import pytest

from lib import dayfly, providers, web
from lib.providers import PROVIDED

TOKEN = "correct-horse-battery-1"


@pytest.fixture(scope="session")
def provider():
    """A real provider plugin."""
    return dayfly.tool("provider")


def mirroring(home):
    return (f'plugin_cache_dir = "$HOME/.terraform.d/plugin-cache"\nprovider_installation {{\n  filesystem_mirror {{\n'
            f'    path = "{home.directory}/mirror"\n  }}\n}}\n')


@pytest.mark.parametrize("file", [".tofurc", ".terraformrc", "elsewhere.tfrc"])
def test_the_own_configuration_of_the_tool_is_used_and_named(either_home, provider, file):
    home = either_home
    if file == ".tofurc" and home.runtime == "terraform":
        pytest.skip("Terraform does not read it")
    providers.packed(provider, home.directory / "mirror")
    (home.directory / file).write_text(mirroring(home))
    env = {"TF_CLI_CONFIG_FILE": str(home.directory / file)} if file == "elsewhere.tfrc" else {}
    module = home.module("net", PROVIDED)
    made = home.dayfly("run", module, "--auto-approve", env=env)
    assert f"passed from this shell: ~/{file}" in made.stderr
    document = home.json("get", "run", "net-1")
    assert document["spec"]["sealed"]["environment"] == ["TF_CLI_CONFIG_FILE"] and "filesystem_mirror" not in json.dumps(document)
    failed = home.dayfly("run", module, "--auto-approve", "--no-env", "--arg=-refresh=false", env=env, code=None)
    assert "passed" not in failed.stderr
    why = home.dayfly("doctor", module, "--only", "module", env=env, code=None).stdout
    assert f"~/{file} says where providers come from: a run without a service uses it, a service does not" in why


def test_a_file_of_the_shell_that_is_not_there_is_named_and_left_out_as_the_tool_does(home):
    missing = home.directory / "gone.tfrc"
    env = {"TF_CLI_CONFIG_FILE": str(missing)}
    module = home.module("echo", 'resource "terraform_data" "x" {}\n')
    refused = home.dayfly("run", module, "--env", f"TF_CLI_CONFIG_FILE={missing}", code=3)
    assert f"--env TF_CLI_CONFIG_FILE: {missing}: No such file" in refused.stderr
    home.dayfly("run", module, "--env", "NOT_SET_ANYWHERE", code=3)
    assert home.json("get", "executors")["items"] == [], "an executor was created before the refusal"
    made = home.dayfly("run", module, "--auto-approve", env=env)
    assert made.stderr.count(f"TF_CLI_CONFIG_FILE of this shell names {missing}, which cannot be read") == 1
    warned = home.dayfly("doctor", module, "--only", "module", env=env, code=None).stdout
    assert f"TF_CLI_CONFIG_FILE names {missing}, which cannot be read" in warned
    assert "cannot be read" not in home.dayfly("run", module, "--no-env", env=env).stderr


def test_env_names_another_file_and_a_service_refuses_it(home, provider):
    providers.packed(provider, home.directory / "mirror")
    file = home.directory / "own.tfrc"
    file.write_text(mirroring(home))
    module = home.module("net", PROVIDED)
    made = home.dayfly("run", module, "--auto-approve", "--env", f"TF_CLI_CONFIG_FILE={file}")
    assert "passed from this shell: ~/own.tfrc" in made.stderr
    absent = home.dayfly("run", module, "--env", f"TF_CLI_CONFIG_FILE={file}.not", code=3)
    assert "own.tfrc.not" in absent.stderr and "passed from" not in absent.stderr
    with dayfly.Server(home) as server:
        (home.directory / ".terraformrc").write_text(mirroring(home))
        service = ("--server", server.url)
        refused = home.dayfly(*service, "run", module, "--env", f"TF_CLI_CONFIG_FILE={file}", code=3)
        assert "a service takes mirrors and tokens from providers.*" in refused.stderr and "passed" not in refused.stderr
        document = {"action": "dry-run", "secrets": {"cliConfig": "x"}}
        status, _, body = server.request("POST", "/v1/executors/net/runs", document)
        assert status == 400 and b"is for a command that is its own service" in body, body


def test_the_configuration_of_dayfly_wins_over_the_tool_s(home, provider):
    providers.packed(provider, home.directory / "mirror")
    (home.directory / ".tofurc").write_text('provider_installation {\n  filesystem_mirror { path = "/nonexistent" }\n}\n')
    config = home.directory / "dayfly.yaml"
    config.write_text(f"providers: {{filesystemMirror: {home.directory}/mirror}}\n")
    made = home.dayfly("run", home.module("net", PROVIDED), "--auto-approve", "--config", config)
    assert "is used instead of the CLI configuration of the caller's shell" in made.stdout
    failed = home.dayfly("run", "net", "--auto-approve", "--arg=-refresh=false", code=None)
    if failed.returncode:
        assert "DAYFLY_CONFIG" in home.dayfly("why", "net").stdout


class Modules(web.Handler):
    """A registry of modules that has none, and keeps what it was told."""

    def do_GET(self):
        if self.path == "/.well-known/terraform.json":
            return self.answer(200, b'{"modules.v1": "/v1/"}', Content_Type="application/json")
        self.server.owner.told.append(self.headers.get("Authorization"))
        return self.answer(404)


@pytest.mark.parametrize("how", ["login", "block", "json", "variable"])
def test_tokens_of_registries_reach_the_tool_and_nothing_else(either_home, tmp_path, how):
    home = either_home
    pair = web.self_signed(tmp_path, alternatives="DNS:localhost")
    with web.Server(Modules, pair) as server:
        server.told = []
        url = server.url.replace("127.0.0.1", "localhost")
        env = {"SSL_CERT_FILE": str(pair[0])}
        services = f'host "registry.invalid" {{\n  services = {{ "modules.v1" = "{url}/v1/" }}\n}}\n'
        rc, token = home.directory / ".terraformrc", {"registry.invalid": {"token": TOKEN}}
        rc.write_text(services)
        if how == "login":
            (home.directory / ".terraform.d").mkdir()
            (home.directory / ".terraform.d/credentials.tfrc.json").write_text(json.dumps({"credentials": token}))
        elif how == "block":
            rc.write_text(f'{services}credentials "registry.invalid" {{\n  token = "{TOKEN}"\n}}\n')
        elif how == "json":
            rc.write_text(json.dumps({"plugin_cache_dir": "/nonexistent", "credentials": token,
                                      "host": {"registry.invalid": {"services": {"modules.v1": f"{url}/v1/"}}}}))
        else:
            env["TF_TOKEN_registry_invalid"] = TOKEN
        module = home.module("net", 'module "m" { source = "registry.invalid/a/b/c" }\n')
        run = home.dayfly("run", module, "--auto-approve", env=env, code=1)
        assert f"Bearer {TOKEN}" in server.told, run.stdout
        assert TOKEN not in run.stdout + run.stderr
        files = [os.path.join(d, f) for d, _, names in os.walk(home.state) for f in names]
        assert not [f for f in files if TOKEN.encode() in open(f, "rb").read()]


def test_a_token_that_a_module_prints_is_masked(either_home):
    home = either_home
    (home.directory / ".terraformrc").write_text(f'credentials "registry.invalid" {{\n  token = "{TOKEN}"\n}}\n')
    module = home.module("echo", 'resource "terraform_data" "x" {\n  provisioner "local-exec" { command = "cat $TF_CLI_CONFIG_FILE" }\n}\n')
    run = home.dayfly("run", module, "--auto-approve")
    assert 'token = "***"' in run.stdout and TOKEN not in run.stdout


def test_what_cannot_be_used_is_named(home):
    module = home.module("net", "")
    (home.directory / ".tofurc").write_text('credentials_helper "pass" {\n  args = []\n}\n')
    assert "the credentials_helper of ~/.tofurc is not used" in home.dayfly("plan", module).stderr
    (home.directory / ".tofurc").write_text("{")
    assert ".tofurc" in home.dayfly("plan", module, code=3).stderr
    home.dayfly("plan", module, "--no-env")
