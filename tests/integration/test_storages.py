"""Executors whose state is not dayfly's own: they end, and tell of their end, as managed ones do."""

import json
import shutil
import urllib.request

import pytest
from moto.server import ThreadedMotoServer

from lib.dayfly import Server

MODULE = """
variable "n" {
  type    = number
  default = 2
}

resource "terraform_data" "one" {
  input = var.n
}

output "n" {
  value = terraform_data.one.output
}

output "password" {
  value     = "pa55-of-${terraform_data.one.output}"
  sensitive = true
}
"""


OTHER = """
resource "terraform_data" "other" {
}
"""

BACKEND = """
terraform {
  backend "local" {
    path = "%s"
  }
}
"""


class Storage:
    """A storage of one kind, where each executor has a state of its own."""

    def __init__(self, kind, directory, s3=None):
        self.kind = kind
        self.directory = directory
        self.s3 = s3

    def state(self, name):
        return self.directory / f"{name}.tfstate"

    def spec(self, name):
        """The members of an executor's spec."""
        if self.kind == "local":
            return {"storage": {"type": "local", "path": str(self.state(name))}}
        if self.kind == "s3":
            return {"storage": {"type": "s3", "config": self.s3.config}, "integrations": [
                {"provider": "aws", "secretRef": {"name": "aws"}}]}
        return {"storage": {"type": self.kind}}

    def prepare(self, home):
        if self.kind == "s3":
            for key in ("aws_access_key_id", "aws_secret_access_key"):
                home.dayfly("secret", "set", "aws", key, input="testing")

    def module(self, name):
        """What the module says of its state."""
        return {"backend.tf": BACKEND % self.state(name)} if self.kind == "module" else {}


class S3:
    """A server that speaks S3, with one bucket."""

    def __init__(self, url):
        self.url = url
        self.config = {"bucket": "states", "region": "us-east-1", "endpoints": {"s3": url}, "use_path_style": True,
                       "skip_credentials_validation": True, "skip_metadata_api_check": True,
                       "skip_requesting_account_id": True, "skip_region_validation": True, "skip_s3_checksum": True}
        self.request("PUT", "")

    def request(self, method, key, body=None):
        request = urllib.request.Request(f"{self.url}/states{key}", data=body, method=method,
                                         headers={"Content-Type": "application/octet-stream", "Authorization": "AWS testing:unverified"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def keys(self):
        listing = self.request("GET", "?list-type=2")
        return [part.partition("</Key>")[0] for part in listing.split("<Key>")[1:]]


@pytest.fixture
def s3():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset", method="POST"), timeout=30).close()
    yield S3(url)
    server.stop()


@pytest.fixture(params=["managed", "local", "module", "s3"])
def storage(request, tmp_path):
    (tmp_path / "states").mkdir()
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return Storage(request.param, tmp_path / "states", server)


def document(home, name, module, **spec):
    return json.dumps({
        "apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
        "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime}, **spec}})


def create(home, name, storage, text=MODULE, **spec):
    storage.prepare(home)
    module = home.module(name, text, **storage.module(name))
    home.dayfly("create", "-f", "-", input=document(home, name, module, **storage.spec(name), **spec))
    return module


def last_line(result):
    return result.stdout.strip().splitlines()[-1]


def test_every_storage_ends_with_the_same_verdict_document_and_exit_code(either_home, storage):
    home = either_home
    with Server(home):
        module = create(home, "e", storage)
        first = home.dayfly("run", "e", "--auto-approve")
        assert last_line(first).startswith("e-1: Succeeded in ") and last_line(first).endswith(": Applied"), first.stdout
        again = home.json("run", "e", "--auto-approve")
        assert (again["run"]["status"]["phase"], again["run"]["status"]["reason"]) == ("Succeeded", "NoChanges")
        assert again["outputs"]["n"] == {"sensitive": False, "type": "number", "value": 2}
        assert again["outputs"]["password"] == {"sensitive": True, "type": "string"}
        assert home.dayfly("outputs", "e", "n").stdout == "2\n"

        home.dayfly("run", "e", "--var", "n=3", "--no-wait")
        approved = home.dayfly("approve", "-f", "e-3")
        assert last_line(approved).endswith(": Applied"), approved.stdout
        dry = home.json("run", "e", "--action", "dry-run", "--var", "n=4")
        assert dry["planSummary"]["change"] == 1 and dry["outputs"]["n"]["value"] == 3
        assert home.dayfly("outputs", "e", "n").stdout == "3\n"

        (module / "bad.tf").write_text('resource "terraform_data" "bad" {\n  provisioner "local-exec" {\n'
                                       '    command = "exit 7"\n  }\n}\n')
        assert home.dayfly("run", "e", "--auto-approve", code=None).returncode in (1, 2)
        (module / "bad.tf").unlink()

        gone = home.json("run", "e", "--action", "destroy", "--auto-approve")
        assert gone["run"]["status"]["reason"] == "Destroyed" and gone["outputs"] == {}


def test_the_outputs_of_an_older_run_can_be_asked(either_home, storage):
    home = either_home
    with Server(home):
        create(home, "e", storage)
        home.dayfly("run", "e", "--auto-approve")
        home.dayfly("run", "e", "--auto-approve", "--var", "n=3")
        assert home.dayfly("outputs", "e", "n", "--run", "e-1").stdout == "2\n"
        assert home.dayfly("outputs", "e", "n", "--run", "e-2").stdout == "3\n"
        assert home.dayfly("outputs", "e", "n").stdout == "3\n"


def test_sensitive_outputs_are_sealed_and_shown_on_demand_alone(either_home, storage):
    home = either_home
    with Server(home) as server:
        create(home, "e", storage)
        home.dayfly("run", "e", "--auto-approve")
        assert "sensitive" in home.dayfly("outputs", "e", "password", code=3).stderr
        assert home.dayfly("outputs", "e", "password", "--show-sensitive").stdout == "pa55-of-2\n"
        if storage.kind != "managed":
            kept = [p for p in server.data.rglob("*") if p.is_file() and b"pa55-of" in p.read_bytes()]
            assert not kept


def test_a_state_in_s3_has_a_path_by_default_and_is_locked_by_default(either_home, s3):
    home, storage = either_home, Storage("s3", None, s3)
    slow = MODULE + f"""
resource "terraform_data" "look" {{
  provisioner "local-exec" {{ command = "curl -s '{s3.url}/states?list-type=2' > {home.directory}/seen" }}
}}
"""
    with Server(home):
        create(home, "e", storage, slow)
        kept = home.json("get", "executors", "e")["spec"]["storage"]
        assert kept["path"] == "executors/e/terraform.tfstate" and kept["config"]["use_lockfile"] is True
        home.dayfly("run", "e", "--auto-approve")
        assert s3.keys() == ["executors/e/terraform.tfstate"]
        assert "executors/e/terraform.tfstate.tflock" in (home.directory / "seen").read_text()


def test_a_foreign_lock_is_named_and_stays(either_home, s3):
    home, storage = either_home, Storage("s3", None, s3)
    lock = {"ID": "11111111-2222-3333-4444-555555555555", "Operation": "OperationTypeApply", "Who": "eve@elsewhere",
            "Version": "1.12.6", "Created": "2026-01-01T00:00:00Z", "Path": "states/x", "Info": ""}
    with Server(home):
        create(home, "e", storage)
        s3.request("PUT", "/executors/e/terraform.tfstate.tflock", json.dumps(lock).encode())
        result = home.json("run", "e", "--auto-approve", code=1)
        assert result["run"]["status"]["reason"] == "StateLocked"
        assert "eve@elsewhere" in result["run"]["status"]["message"]
        assert "`dayfly state unlock" in result["run"]["status"]["message"]
        assert "release the lock: `dayfly state unlock EXECUTOR`" in home.dayfly("why", "e-1").stdout
        assert "`dayfly state unlock e`" in home.dayfly("state", "lock", "e", code=1).stderr
        assert s3.keys() == ["executors/e/terraform.tfstate.tflock"]


def test_a_foreign_lock_is_released_in_a_run_of_the_tool_s_own_command(either_home, s3):
    home, storage = either_home, Storage("s3", None, s3)
    lock = {"ID": "11111111-2222-3333-4444-555555555555", "Operation": "OperationTypeApply", "Who": "eve@elsewhere",
            "Version": "1.12.6", "Created": "2026-01-01T00:00:00Z", "Path": "states/executors/e/terraform.tfstate", "Info": ""}
    with Server(home):
        create(home, "e", storage)
        s3.request("PUT", "/executors/e/terraform.tfstate.tflock", json.dumps(lock).encode())
        assert "`dayfly state unlock e ID`" in home.dayfly("state", "unlock", "e", code=3).stderr
        home.dayfly("run", "e", "--auto-approve", code=1)
        other = home.json("state", "unlock", "e", lock["ID"].replace("1", "9"), code=1)
        said = other["run"]["status"]
        assert said["reason"] == "StateLocked" and "not with the ID 99999999-2222-3333-4444-555555555555" in said["message"], said
        assert f'`dayfly state unlock EXECUTOR {lock["ID"]}`' in said["message"], said
        assert s3.keys() == ["executors/e/terraform.tfstate.tflock"], "a lock with another ID stays"
        released = home.dayfly("state", "unlock", "e")
        assert "successfully unlocked" in released.stdout, released.stdout
        assert s3.keys() == []
        home.dayfly("run", "e", "--auto-approve")
        s3.request("PUT", "/executors/e/terraform.tfstate.tflock", json.dumps(lock).encode())
        unlocked = home.json("state", "unlock", "e", lock["ID"])
        assert unlocked["run"]["status"]["phase"] == "Succeeded" and s3.keys() == ["executors/e/terraform.tfstate"]


def test_a_managed_lock_with_another_id_stays(home, server):
    home.dayfly("create", "-f", "-", input=document(home, "e", home.module("e", MODULE)))
    home.dayfly("state", "lock", "e")
    assert "that lock stays" in home.dayfly("state", "unlock", "e", "9-9", code=1).stderr
    held = home.json("run", "e", "--auto-approve", code=1)
    assert held["run"]["status"]["reason"] == "StateLocked"
    home.dayfly("state", "unlock", "e")


def test_one_place_is_one_executor_s_and_another_bucket_is_another_place(home, s3):
    with Server(home):
        module = home.module("e", MODULE)

        def storage(bucket, path=None):
            config = {**s3.config, "bucket": bucket}
            return {"storage": {"type": "s3", "config": config, **({"path": path} if path else {})}}
        home.dayfly("create", "-f", "-", input=document(home, "a", module, **storage("one")))
        home.dayfly("create", "-f", "-", input=document(home, "b", module, **storage("two", "executors/a/terraform.tfstate")))
        taken = document(home, "c", module, **storage("one", "executors/a/terraform.tfstate"))
        assert "executor a has its state" in home.dayfly("create", "-f", "-", input=taken, code=1).stderr
        odd = document(home, "c", module, **storage("one", "executors/./a/terraform.tfstate"))
        assert "spec.storage.path" in home.dayfly("create", "-f", "-", input=odd, code=3).stderr


# ---- the state of another executor ----

def test_a_state_behind_a_link_stays_its_executor_s(either_home, tmp_path):
    home = either_home
    (tmp_path / "states").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "states")
    mine, theirs = (Storage("local", tmp_path / d) for d in ("states", "link"))
    state = mine.state("e")
    with Server(home):
        create(home, "e", mine)
        home.dayfly("run", "e", "--auto-approve")
        lineage = home.json("get", "executors", "e")["status"]["stateLineage"]
        assert lineage == json.loads(state.read_text())["lineage"]
        before = state.read_bytes()

        other = document(home, "other", home.module("other", OTHER), **theirs.spec("e"))
        home.dayfly("create", "-f", "-", input=other)
        for action in ("dry-run", "provision", "destroy"):
            status = home.json("run", "other", "--action", action, "--auto-approve", code=1)["run"]["status"]
            assert (status["reason"], len(status["steps"])) == ("StateBelongsToAnother", 1), action
            assert f'(lineage "{lineage}") is that of executor e' in status["message"]
        refused = home.json("state", "rm", "other", "terraform_data.one", code=1)["run"]["status"]
        assert refused["reason"] == "StateBelongsToAnother" and "is that of executor e" in refused["message"]
        moved = home.json("state", "migrate", "other", "--to", "managed", code=1)["run"]["status"]
        assert moved["reason"] == "StateBelongsToAnother"
        assert state.read_bytes() == before

        (tmp_path / "gone").mkdir()
        state.rename(tmp_path / "gone" / "e.tfstate")
        state.write_bytes(before.replace(lineage.encode(), lineage[::-1].encode()))
        replaced = home.json("run", "e", "--auto-approve", code=1)["run"]["status"]
        assert replaced["reason"] == "StateRefused" and lineage in replaced["message"]
        command = home.json("state", "rm", "e", "terraform_data.one", code=1)["run"]["status"]
        assert command["reason"] == "StateRefused" and "somebody put another one there" in command["message"]
        (tmp_path / "gone" / "e.tfstate").replace(state)
        home.dayfly("state", "rm", "e", "terraform_data.one")


# ---- a module with a state of its own ----

def own_state(home, module):
    """Somebody has used the tool by itself before: its state is where the module says."""
    for args in (("init", "-input=false"), ("apply", "-auto-approve", "-input=false")):
        result = home.run(home.bin / ("tofu" if home.runtime == "opentofu" else "terraform"), f"-chdir={module}", *args)
        assert result.returncode == 0, result.stderr


def test_a_module_with_a_backend_is_not_planned_from_an_empty_state(either_home, tmp_path):
    home = either_home
    module = home.module("net", MODULE, **{"backend.tf": BACKEND % (tmp_path / "own.tfstate")})
    own_state(home, module)
    refused = home.json("run", module, "--auto-approve", "--tool", home.runtime, code=1)
    status = refused["run"]["status"]
    assert status["reason"] == "BackendInModule"
    for word in ('`backend "local"` in backend.tf, line 3', "--storage module", "dayfly state push net FILE"):
        assert word in status["message"], status["message"]
    assert home.dayfly("why", "net-1").stdout.count("--storage module") == 1
    kept = home.json("run", module, "--auto-approve", "--tool", home.runtime, "--storage", "module")
    assert kept["run"]["status"]["reason"] == "NoChanges" and kept["outputs"]["n"]["value"] == 2


def test_a_state_beside_the_module_is_not_passed_over(either_home):
    home = either_home
    module = home.module("net", MODULE)
    own_state(home, module)
    refused = home.json("run", module, "--auto-approve", "--tool", home.runtime, code=1)
    assert refused["run"]["status"]["reason"] == "BackendInModule"
    assert "terraform.tfstate" in refused["run"]["status"]["message"]


def test_an_adopted_state_overrides_the_backend_with_a_line_in_the_log(either_home, tmp_path):
    home = either_home
    module = home.module("net", MODULE, **{"backend.tf": BACKEND % (tmp_path / "own.tfstate")})
    own_state(home, module)
    home.dayfly("run", module, "--tool", home.runtime, code=1)
    home.dayfly("state", "push", "net", tmp_path / "own.tfstate")
    adopted = home.json("run", module, "--auto-approve", "--tool", home.runtime)
    assert adopted["run"]["status"]["reason"] == "NoChanges"
    assert "backend.tf, line 3 is overridden" in home.dayfly("logs", adopted["run"]["metadata"]["name"]).stdout


def test_storage_of_the_module_needs_a_backend_that_lasts(either_home):
    home = either_home
    for text, word in ((MODULE, "no `backend` or `cloud` block"), (MODULE + BACKEND % "x.tfstate", "absolute path")):
        module = home.module("net", text)
        result = home.json("run", module, "--auto-approve", "--tool", home.runtime, "--storage", "module", code=1)
        assert result["run"]["status"]["reason"] == "BackendMissing"
        assert word in result["run"]["status"]["message"]


# ---- workspaces ----

def prod_state(home, module):
    """Somebody has used the tool by itself, in the workspace prod."""
    tool = home.bin / ("tofu" if home.runtime == "opentofu" else "terraform")
    for args in (("init", "-input=false"), ("workspace", "new", "prod"), ("apply", "-auto-approve", "-input=false")):
        result = home.run(tool, f"-chdir={module}", *args)
        assert result.returncode == 0, result.stderr
    return module / "terraform.tfstate.d" / "prod" / "terraform.tfstate"


@pytest.mark.parametrize("selected", [True, False], ids=["selected", "beside"])
def test_a_workspace_is_not_passed_over_and_can_be_adopted(either_home, selected):
    home = either_home
    module = home.module("net", MODULE)
    state = prod_state(home, module)
    if not selected:
        (module / ".terraform" / "environment").unlink()
    refused = home.json("run", module, "--auto-approve", "--tool", home.runtime, code=1)["run"]["status"]
    assert refused["reason"] == "BackendInModule"
    place = ".terraform/environment" if selected else "terraform.tfstate.d/prod/terraform.tfstate"
    for word in ('workspace "prod"', place, f"`dayfly state push net {state}`", "--name"):
        assert word in refused["message"], refused["message"]
    home.dayfly("state", "push", "net", state)
    adopted = home.json("run", module, "--auto-approve", "--tool", home.runtime)
    assert adopted["run"]["status"]["reason"] == "NoChanges"
    assert 'the workspace "prod"' in home.dayfly("logs", adopted["run"]["metadata"]["name"]).stdout


def test_states_of_workspaces_in_a_repository_are_found_and_overridden(either_home):
    home = either_home
    module = home.module("net", MODULE)
    state = prod_state(home, module)
    shutil.rmtree(module / ".terraform")
    home.repository(module)
    source = (f"file://{module}", "--branch", "main", "--name", "net", "--tool", home.runtime)
    refused = home.json("run", *source, code=1)["run"]["status"]
    assert refused["reason"] == "BackendInModule"
    assert "`dayfly state push net terraform.tfstate.d/prod/terraform.tfstate`" in refused["message"]
    home.dayfly("state", "push", "net", state)
    assert home.json("run", *source)["run"]["status"]["reason"] == "NoChanges"


def test_storage_of_the_module_is_the_default_workspace_alone(either_home, tmp_path):
    home = either_home
    module = home.module("net", MODULE, **{"backend.tf": BACKEND % (tmp_path / "own.tfstate")})
    prod_state(home, module)
    refused = home.json("run", module, "--tool", home.runtime, "--storage", "module", code=1)["run"]["status"]
    assert refused["reason"] == "BackendInModule"
    assert 'workspace "prod"' in refused["message"] and "a key of its own" in refused["message"]


@pytest.mark.parametrize("command", ["run", "plan", "destroy"])
def test_a_workspace_of_the_shell_is_refused_before_anything_is_made(home, command):
    module = home.module("net", MODULE)
    for args, env in (((), {"TF_WORKSPACE": "prod"}), (("--env", "TF_WORKSPACE=prod"), {}), (("--env", "TF_WORKSPACE"), {"TF_WORKSPACE": "prod"})):
        refused = home.dayfly(command, module, *args, env=env, code=3)
        assert "TF_WORKSPACE" in refused.stderr and "passed" not in refused.stderr, refused.stderr
    assert home.json("get", "executors")["items"] == []


def test_what_the_shell_says_of_encryption_and_options_is_refused_and_not_left_out(home):
    module = home.module("net", MODULE)
    for name, way_out in (("TF_ENCRYPTION", "--env TF_ENCRYPTION"), ("TF_CLI_ARGS_plan", "--arg")):
        refused = home.dayfly("run", module, "--auto-approve", env={name: "-destroy"}, code=3)
        assert f"{name} of this shell reaches no run" in refused.stderr and way_out in refused.stderr, refused.stderr
    assert home.json("get", "executors")["items"] == []
    home.dayfly("plan", module, "--no-env", env={"TF_CLI_ARGS_plan": "-destroy"})
    assert home.dayfly("plan", module, "--env", "TF_ENCRYPTION", env={"TF_ENCRYPTION": "# nothing"}).returncode == 0


def test_the_default_workspace_of_the_shell_is_no_other(home):
    home.dayfly("plan", home.module("net", MODULE), env={"TF_WORKSPACE": "default"})


# ---- the advice fits the case ----

def test_the_advice_for_a_state_in_a_file_is_its_adoption_alone(either_home):
    home = either_home
    for name, more, file in (("plain", "", "terraform.tfstate"), ("moved", BACKEND % "x.tfstate", "x.tfstate")):
        module = home.module(name, MODULE + more)
        own_state(home, module)
        message = home.json("run", module, "--tool", home.runtime, code=1)["run"]["status"]["message"]
        assert f"`dayfly state push {name} {module / file}`" in message
        assert "--storage module" not in message
        home.dayfly("state", "push", name, module / file)
        assert home.json("run", module, "--tool", home.runtime)["run"]["status"]["reason"] == "NoChanges"


def test_a_partial_backend_is_called_so(either_home):
    module = either_home.module("net", 'terraform {\n  backend "s3" {}\n}\n' + MODULE)
    message = either_home.json("run", module, "--tool", either_home.runtime, code=1)["run"]["status"]["message"]
    assert 'the partial block `backend "s3"`' in message and "write its settings into the block" in message


@pytest.mark.parametrize("storage", ["local", "module", "s3"], indirect=True)
def test_commands_for_managed_states_say_where_the_state_is(home, storage):
    where = {"local": f"in the file {storage.directory / 'e.tfstate'}", "module": "in the backend of its module",
             "s3": "in s3 storage (executors/e/terraform.tfstate)"}[storage.kind]
    (home.directory / "x.tfstate").write_text('{"version": 4, "serial": 1, "lineage": "x", "resources": []}')
    with Server(home):
        create(home, "e", storage)
        lists = () if storage.kind == "s3" else (("list", "e"),)  # there it lists the versions of the bucket
        for command in (*lists, ("pull", "e"), ("push", "e", home.directory / "x.tfstate"), ("exec", "e", "--", "true")):
            said = home.dayfly("state", *command, code=1).stderr
            assert where in said and "`dayfly outputs e`" in said, said


# ---- why init failed ----

def test_a_module_outside_of_the_source_is_told_from_a_provider_that_cannot_be_reached(either_home):
    home = either_home
    home.module("mod", "")
    module = home.module("net", 'module "m" {\n  source = "../mod"\n}\n')
    with Server(home):  # it takes the directory that the executor names, and nothing beside it
        home.dayfly("create", "-f", "-", input=document(home, "net", module, storage={"type": "managed"}))
        assert home.json("run", "net", "--action", "dry-run", code=1)["run"]["status"]["reason"] == "InitFailed"
        why = home.dayfly("why", "net-1").stdout
        assert "calls ../mod, which is outside of the source" in why and "--folder" in why
        assert "filesystemMirror" not in why
        missing = 'terraform {\n  required_providers {\n    nope = { source = "localhost/none/nope" }\n  }\n}\n'
        home.dayfly("run", home.module("far", missing), "--tool", home.runtime, code=1)
        assert "filesystemMirror" in home.dayfly("why", "far-1").stdout
