"""The state of an executor in tofu's own backends, in real servers: where it is, that it is locked, that somebody else's lock
is told and stays, and that the credential is in no document, command line, log or file."""

import functools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml

from lib import buckets, web
from lib.backends import PATH, Amazon, Azure, Google, Web
from lib.dayfly import DAYFLY, DEADLINE, ROOT, Server, wait_for

STORES = {"s3": Amazon, "dynamodb": functools.partial(Amazon, table="locks"), "azurerm": Azure, "gcs": Google, "http": Web}
OBJECTS = {"gcs": Google.STATE, "http": "e"}

MODULE = """
variable "look" {}
variable "n" {
  type    = number
  default = 2
}
resource "terraform_data" "one" { input = var.n }
resource "terraform_data" "look" {
  provisioner "local-exec" { command = "curl -sf ${var.look}" }
}
output "n" { value = terraform_data.one.output }
"""


def simple_storage(url, **more):
    """In the bucket of a server that is not Amazon's."""
    return {"storage": {"type": "s3", "config": {
        "bucket": "blobs", "region": "us-east-1", "endpoints": {"s3": url}, "use_path_style": True, "skip_credentials_validation": True,
        "skip_metadata_api_check": True, "skip_requesting_account_id": True, "skip_region_validation": True, "skip_s3_checksum": True,
        "encrypt": False, **more}}, "integrations": [{"provider": "aws", "secretRef": {"name": "store"}}]}


def read(path):
    try:
        return path.read_bytes() if path.is_file() else b""  # a pipe would wait for its writer
    except OSError:  # gone meanwhile
        return b""


def places_of(secret, directory):
    """Files of the service and of its steps with this text."""
    return [pathlib.Path(path) / name for path, _, names in os.walk(directory) for name in names
            if secret.encode() in read(pathlib.Path(path) / name)]


def test_the_example_for_a_private_s3_is_enough(home, tmp_path):
    text, = [b for b in re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/objects.md").read_text(), re.M | re.S) if "use_path_style" in b]
    with buckets.S3(tmp_path / "s3") as s3, Server(home):
        spec = yaml.safe_load(text.replace("https://s3.example.com", s3.url).replace("tofu-states", "blobs"))["spec"]
        for key, value in (("aws_access_key_id", buckets.ACCESS), ("aws_secret_access_key", buckets.SECRET)):
            home.dayfly("secret", "set", "s3-keys", key, input=value)
        module = home.module("e", 'resource "terraform_data" "it" { input = 1 }\n')
        home.dayfly("create", "-f", "-", input=json.dumps({"kind": "Executor", "metadata": {"name": "e"}, "spec": {
            "source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime}, **spec}}))
        home.dayfly("run", "e", "--auto-approve")
        assert s3.objects() == [PATH]


class Recorder(web.Handler):
    """Hands on what is posted, and remembers it."""

    def do_POST(self):
        body = self.body()
        self.server.owner.bodies.append(body)
        request = urllib.request.Request(f"http://{self.server.owner.target}{self.path}", data=body, headers=dict(self.headers))
        with urllib.request.urlopen(request, timeout=30) as answer:
            self.answer(answer.status, answer.read(), Content_Type=answer.headers["Content-Type"])


class Look:
    """A URL at which the store is looked at in the midst of an apply, and whether its credential can be seen anywhere."""

    def __init__(self, store, directory):
        look, self.seen, self.leaks, self.secret = self, [], [], store.SECRET.encode()

        class Handler(web.Handler):
            def do_GET(self):
                look.seen.append(store.lock())
                look.leaks += [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if look.secret in read(p)]
                look.leaks += places_of(store.SECRET, directory)
                self.answer(200)

        self.server = web.Server(Handler)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()


@pytest.fixture(params=list(STORES))
def store(request, tmp_path):
    with STORES[request.param](tmp_path) as running:
        yield running


def document(home, name, module, spec, **more):
    return json.dumps({
        "apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
        "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime}, **spec, **more}})


def create(home, store, look, name="e"):
    store.prepare(home)
    variables = {"look": look.server.url} if look else {}
    home.dayfly("create", "-f", "-", input=document(home, name, home.module(name, MODULE), store.spec(), variables=variables))




def test_a_state_is_in_its_store_and_locked_meanwhile(either_home, store, request):
    home, name = either_home, request.node.callspec.params["store"]
    home.env.update(store.env)
    with Server(home) as server, Look(store, home.directory) as look:
        create(home, store, look)
        assert home.json("run", "e", "--auto-approve")["outputs"]["n"]["value"] == 2
        assert store.states() == [OBJECTS.get(name, PATH)]
        assert [json.loads(lock)["Operation"] for lock in look.seen] == ["OperationTypeApply"] and not store.lock()
        assert not look.leaks
        assert home.json("run", "e", "--auto-approve")["run"]["status"]["reason"] == "NoChanges"
        if name == "s3":
            assert store.is_encrypted()
        if name == "dynamodb":
            assert list(store.items()) == [f"states/{PATH}-md5"]

        held = store.hold()
        before = store.lock()
        status = home.json("run", "e", "--var", "n=3", "--auto-approve", code=1)["run"]["status"]
        assert status["reason"] == "StateLocked", status
        told = () if name == "http" and home.runtime == "terraform" else ("eve@elsewhere", "OperationTypeApply", "2026-01-01 10:20:30.5")
        for word in (*told, held):  # terraform does not tell what the server of an http backend says
            assert word in status["message"], status["message"]
        assert store.lock() == before
        home.dayfly("state", "unlock", "e")
        assert not store.lock()
        assert server.get("/v1/audit?action=force-unlock")["items"][0]["outcome"] == "done"
        assert json.loads(store.read())["serial"] >= 1
        assert home.json("run", "e", "--var", "n=3", "--auto-approve")["outputs"]["n"]["value"] == 3
    assert not places_of(store.SECRET, home.directory)


def test_nested_settings_are_what_the_store_gets(either_home, tmp_path):
    """A session policy of an assumed role, whose ${...} is not the tool's."""
    home = either_home
    policy = json.dumps({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::states/${aws:username}/*"}]})
    with Amazon(tmp_path) as store, web.Server(Recorder) as recorder, Server(home):
        recorder.target, recorder.bodies = store.url.partition("//")[2], []
        store.prepare(home)
        spec = store.spec()
        spec["storage"]["config"]["endpoints"]["sts"] = recorder.url
        spec["storage"]["config"]["assume_role"] = {"role_arn": "arn:aws:iam::123456789012:role/states", "policy": policy, "tags": {"${team}": "%{net}"}}
        home.dayfly("create", "-f", "-", input=document(home, "e", home.module("e", 'output "n" { value = 2 }\n'), spec))
        home.dayfly("run", "e", "--auto-approve")
        asked = urllib.parse.parse_qs(recorder.bodies[0].decode())
    assert json.loads(asked["Policy"][0]) == json.loads(policy)
    assert (asked["Tags.member.1.Key"], asked["Tags.member.1.Value"]) == (["${team}"], ["%{net}"])


def test_a_lease_without_a_name_is_told_and_stays(home, tmp_path):
    with Azure(tmp_path, by="sas_token") as store:
        home.env.update(store.env)
        with Server(home), Look(store, home.directory) as look:
            create(home, store, look)
            home.dayfly("run", "e", "--auto-approve")
            assert not look.leaks
            store.lease()
            status = home.json("run", "e", "--auto-approve", code=1)["run"]["status"]
            assert status["reason"] == "StateLocked" and "break the lease of the blob" in status["message"], status
            assert store.lock() == "a lease"
        assert not places_of(store.SECRET, home.directory)


def kill_below(pid):
    """All processes that a process started, the oldest first: as their machine would lose them."""
    below = [int(p) for threads in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for p in threads.read_text().split()]
    for child in below:
        os.kill(child, signal.SIGSTOP)
        kill_below(child)
        os.kill(child, signal.SIGKILL)


def test_the_lock_of_a_killed_run_is_told_with_its_run_and_step(home, tmp_path):
    with Amazon(tmp_path) as store, Server(home) as server:
        store.prepare(home)
        hang = f'resource "terraform_data" "hang" {{\n  provisioner "local-exec" {{ command = "touch {tmp_path}/hangs; sleep 3600" }}\n}}\n'
        home.dayfly("create", "-f", "-", input=document(home, "e", home.module("e", hang), store.spec()))
        with home.popen(DAYFLY, "run", "e", "--auto-approve", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
            wait_for("the apply to hang", (tmp_path / "hangs").exists)
            kill_below(server.process.pid)
            assert client.wait(DEADLINE) != 0
        assert store.lock()
        left = "Step e-1-apply of run e-1 left this lock behind (RunnerLost). "
        told = home.dayfly("run", "e", "--auto-approve", code=1).stdout
        assert f": StateLocked\n  {left}" in told, "the follower knows less than why"
        status = home.json("get", "run", "e-2")["status"]
        assert status["reason"] == "StateLocked" and status["message"].startswith(left), status["message"]
        assert home.dayfly("why", "e-2").stdout.splitlines()[1:3] == ["StateLocked: The state is locked.", status["message"]]
        home.dayfly("state", "unlock", "e")
        assert not store.lock()


def test_twenty_executors_at_once_are_twenty_states_in_one_bucket(home, tmp_path):
    names = [f"e{i}" for i in range(20)]
    with buckets.S3(tmp_path / "s3") as s3, Server(home):
        for key, value in (("aws_access_key_id", buckets.ACCESS), ("aws_secret_access_key", buckets.SECRET)):
            home.dayfly("secret", "set", "store", key, input=value)
        module = home.module("m", 'resource "terraform_data" "it" {}\n')
        # This server keeps objects as files: it removes a folder that became empty, also one in which another request is about to write.
        (s3.files / "executors").mkdir()
        (s3.files / "executors" / "another").write_text("x")
        for name in names:
            home.dayfly("create", "-f", "-", input=document(home, name, module, simple_storage(s3.url)))
        clients = [home.popen(DAYFLY, "run", name, "--auto-approve", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for name in names]
        for client in clients:
            said = client.communicate(timeout=DEADLINE * 2)[0]
            assert client.returncode == 0, said
        assert s3.objects() == sorted(["executors/another", *(f"executors/{name}/terraform.tfstate" for name in names)])
        states = [json.loads((s3.files / "executors" / name / "terraform.tfstate").read_text()) for name in names]
        assert len({state["lineage"] for state in states}) == 20


class Fault(web.Handler):
    """A way to the store on which requests of a kind fail as the test says."""

    def pass_on(self):
        way, body = self.server.owner, self.body()
        fault = way.choose(self.command, self.path)
        if fault == "busy":
            return self.answer(503, b"<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>")
        if fault == "denied":
            return self.answer(403, b"<Error><Code>AccessDenied</Code><Message>not for the likes of you</Message></Error>")
        if fault == "lost":
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        status, content, headers = self.forward(way.target, body)
        if fault == "cut":  # the store has it all, but never gets to say so
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        return self.answer(status, content, **headers)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on


class Way:
    """`left` requests of the method on the state, not on its lock, fail with `fault`."""

    def __init__(self, s3):
        self.server, self.fault, self.left = web.Server(Fault), None, 0
        self.server.target, self.server.choose = s3.address, self.choose

    def fail(self, method, fault, left):
        self.method, self.fault, self.left = method, fault, left

    def choose(self, method, path):
        if not self.left or method != self.method or not path.partition("?")[0].endswith(".tfstate"):
            return None
        self.left -= 1
        return self.fault


@pytest.fixture(params=[1])
def way(request, home, tmp_path):
    """An executor e whose state is at the end of a way that can be bad, and the way."""
    with buckets.S3(tmp_path / "s3") as s3, Server(home) as server:
        way = Way(s3)
        way.state = s3.files / "executors/e/terraform.tfstate"
        for key, value in (("aws_access_key_id", buckets.ACCESS), ("aws_secret_access_key", buckets.SECRET)):
            home.dayfly("secret", "set", "store", key, input=value)
        text = 'variable "n" { default = 1 }\nresource "terraform_data" "it" { input = var.n }\nresource "terraform_data" "late" {}\n'
        storage = simple_storage(way.server.url, max_retries=request.param)
        home.dayfly("create", "-f", "-", input=document(home, "e", home.module("e", text), storage))
        yield way
        way.server.stop()
        assert server


@pytest.mark.parametrize("way", [5], indirect=True)
def test_a_busy_store_is_waited_for(home, way):
    way.fail("PUT", "busy", 3)
    home.dayfly("run", "e", "--auto-approve")
    assert not way.left and json.loads(way.state.read_text())["serial"] == 1


def test_a_store_that_denies_is_told_in_its_words(home, way):
    way.fail("HEAD", "denied", 1000)
    status = home.json("run", "e", "--auto-approve", code=1)["run"]["status"]
    assert status["reason"] == "StateUnavailable" and "403" in status["message"], status


@pytest.mark.parametrize("fault", ["lost", "cut"])
def test_a_state_that_could_not_be_stored_is_kept_and_pushed_afterwards(home, way, fault):
    """Whether the store has it or not: there are never two states under one serial."""
    home.dayfly("run", "e", "--auto-approve")
    before = json.loads(way.state.read_text())
    way.fail("PUT", fault, 1000)
    status = home.json("run", "e", "--var", "n=2", "--auto-approve", code=None)["run"]["status"]
    assert status["reason"] == "StateUnavailable" and "kept as the errored state" in status["message"], status
    assert "push-errored" in home.dayfly("why", "e-2").stdout
    assert "run e-2 could not store its state" in home.dayfly("run", "e", "--auto-approve", code=1).stderr
    kept = home.json("state", "errored", "e")["items"]
    assert [k["lineage"] for k in kept] == [before["lineage"]] and kept[0]["serial"] > before["serial"]
    way.left = 0
    home.dayfly("state", "push-errored", "e")
    stored = json.loads(way.state.read_text())
    assert stored["serial"] >= kept[0]["serial"] and stored["lineage"] == before["lineage"]
    assert stored["resources"][0]["instances"][0]["attributes"]["input"]["value"] == "2"
    assert home.json("state", "errored", "e")["items"] == []
    assert "erroredStates" not in home.json("get", "executors", "e")["status"]
    assert home.json("run", "e", "--var", "n=2", "--auto-approve")["run"]["status"]["reason"] == "NoChanges"


def test_an_errored_state_does_not_replace_a_newer_one(home, way):
    home.dayfly("run", "e", "--target", "terraform_data.it", "--auto-approve")
    way.fail("PUT", "lost", 1000)
    home.dayfly("run", "e", "--var", "n=2", "--auto-approve", code=None)
    way.left = 0
    home.dayfly("state", "import", "e", "terraform_data.late", "11111111-2222-3333-4444-555555555555")
    stored = way.state.read_text()
    home.dayfly("state", "push-errored", "e", code=1)
    refused = home.json("get", "runs", "e-4")["status"]
    assert refused["reason"] == "StateRefused" and "step e-3-state has changed the state after e-2-apply" in refused["message"], refused
    assert way.state.read_text() == stored and len(home.json("state", "errored", "e")["items"]) == 1
