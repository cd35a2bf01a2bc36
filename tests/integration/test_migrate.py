"""`dayfly state migrate`: the state goes from one storage to another, and at every moment the executor names one place that has it."""

import contextlib
import http.client
import json
import os
import re
import signal

import pytest

from lib.backends import PATH, Azure
from lib.buckets import ACCESS, S3, SECRET, GoogleStorage
from lib.dayfly import BUILD, Home, Server, wait_for

MODULE = """
resource "terraform_data" "one" {
  input = "kept"
}

output "n" {
  value = 2
}
"""


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with S3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def gcs(tmp_path_factory):
    with GoogleStorage(tmp_path_factory.mktemp("gcs")) as server:
        yield server


def s3_config(s3):
    return {"bucket": "blobs", "region": "us-east-1", "endpoints": {"s3": s3.url}, "use_path_style": True, "skip_credentials_validation": True,
            "skip_metadata_api_check": True, "skip_requesting_account_id": True, "skip_region_validation": True, "skip_s3_checksum": True}


def to_s3(s3):
    return ["--to", "s3", *(f"--setting={k}={json.dumps(v) if not isinstance(v, str) else v}" for k, v in s3_config(s3).items())]


def to_gcs(gcs):
    return ["--to", "gcs", "--setting=bucket=blobs", f"--setting=storage_custom_endpoint={gcs.url}/storage/v1/"]


def create(home, name, text=MODULE, **spec):
    if not home.json("secret", "list")["items"]:
        for key, value in (("aws_access_key_id", ACCESS), ("aws_secret_access_key", SECRET)):
            home.dayfly("secret", "set", "aws", key, input=value)
    module = home.module(name, text)
    home.dayfly("create", "-f", "-", input=json.dumps({
        "apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
        "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime},
                 "integrations": [{"provider": "aws", "secretRef": {"name": "aws"}}],
                 "environment": [{"name": "GOOGLE_OAUTH_ACCESS_TOKEN", "value": "any"}], **spec}}))
    return module


def in_s3(s3, name, path=None):
    file = s3.files / (path or f"executors/{name}/terraform.tfstate")
    return json.loads(file.read_text()) if file.exists() else None


def in_gcs(gcs, name):
    connection = http.client.HTTPConnection(gcs.address, timeout=30)
    connection.request("GET", f"/blobs/executors/{name}/default.tfstate")
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return json.loads(text) if answer.status == 200 else None


def executor(home, name):
    return home.json("get", "executor", name)


def place_of(home, name, s3, gcs):
    """Type of the storage that the executor's document names, and the state that is there."""
    storage = executor(home, name)["spec"]["storage"]
    kind = storage["type"]
    if kind == "managed":
        return kind, json.loads(home.dayfly("state", "pull", name).stdout)
    return kind, in_s3(s3, name, storage["path"]) if kind == "s3" else in_gcs(gcs, name)


def what(state):
    return state["lineage"], state["outputs"], state["resources"]


def plan(home, name):
    return home.json("run", name, "--action", "dry-run")["planSummary"]


NOTHING = dict.fromkeys(("add", "change", "destroy", "import", "move", "forget", "drift", "other"), 0)


def test_a_state_goes_from_storage_to_storage_and_stays_the_same(home, s3, gcs):
    with Server(home):
        create(home, "chain")
        home.dayfly("run", "chain", "--auto-approve")
        before = json.loads(home.dayfly("state", "pull", "chain").stdout)
        serial, left = before["serial"], "managed"
        for target, kind in ((to_s3(s3), "s3"), (to_gcs(gcs), "gcs"), (["--to", "managed"], "managed"), (["--back"], "gcs")):
            done = home.json("state", "migrate", "chain", *target)
            assert done["run"]["status"]["reason"] == "StateMoved"
            assert done["outputs"]["n"]["value"] == 2
            named, state = place_of(home, "chain", s3, gcs)
            assert (named, what(state)) == (kind, what(before))
            assert state["serial"] >= serial
            assert plan(home, "chain") == NOTHING
            assert home.dayfly("outputs", "chain", "n").stdout == "2\n"
            # The place before keeps its copy until that is confirmed, and `describe` says so.
            assert executor(home, "chain")["status"]["formerStorage"]["storage"]["type"] == left
            assert re.search(f"^State kept in +{left}$", home.dayfly("describe", "executor", "chain").stdout, re.M)
            if kind != "managed":
                home.dayfly("state", "migrate", "chain", "--confirm")
                assert "formerStorage" not in executor(home, "chain")["status"]
            serial, left = state["serial"], kind
        status = executor(home, "chain")["status"]
        assert (status["state"], status["status"]) == ("provisioned", "done") and "activeRun" not in status
        # Whatever is applied from now on is written to the new place.
        home.dayfly("run", "chain", "--auto-approve", "--replace", "terraform_data.one")
        assert in_gcs(gcs, "chain")["serial"] > serial
        refused = home.dayfly("state", "pull", "chain", code=1)
        assert "gcs storage (executors/chain)" in refused.stderr


def test_the_shell_of_a_laptop_pays_for_the_move_as_for_a_run(home, s3):
    module = home.module("shell", MODULE)
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
    home.dayfly("run", module, "--auto-approve", env=keys)
    refused = home.dayfly("state", "migrate", "shell", *to_s3(s3), "--no-env", env=keys, code=1)
    assert "CredentialsMissing" in refused.stdout and "passed" not in refused.stderr
    moved = home.dayfly("state", "migrate", "shell", *to_s3(s3), env=keys)
    assert "passed from this shell: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY" in moved.stderr and SECRET not in moved.stdout + moved.stderr
    assert "NoChanges" in home.dayfly("run", "shell", "--auto-approve", env=keys).stdout
    # Each command on a state that is a run: with variables of the shell, or named ones.
    named = [f"--env={key}={value}" for key, value in keys.items()]
    assert "VersionsUnavailable" in home.dayfly("state", "list", "shell", env=keys, code=1).stdout, "the bucket was asked"
    home.dayfly("state", "mv", "shell", "terraform_data.one", "terraform_data.two", env=keys)
    home.dayfly("state", "rm", "shell", "terraform_data.two", *named)
    with Server(home) as server:
        service = ("--server", server.url)
        home.dayfly(*service, "run", module, "--auto-approve", "--no-env", env=keys)
        kept = home.dayfly(*service, "state", "migrate", "shell", *to_s3(s3), "--path", "other", env=keys, code=1)
        assert "not passed to the service from this shell: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY" in kept.stderr
        given = home.dayfly(*service, "state", "migrate", "shell", *to_s3(s3), "--path", "other", *named)
        assert "passed from this shell: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY" in given.stderr


def test_a_local_file_takes_the_state_and_gives_it_back(either_home, s3, gcs, tmp_path):
    home = either_home
    with Server(home):
        create(home, "file")
        home.dayfly("run", "file", "--auto-approve")
        before = json.loads(home.dayfly("state", "pull", "file").stdout)
        home.dayfly("state", "migrate", "file", "-f", "-", input=f"type: local\npath: {tmp_path}/file.tfstate\n")
        assert what(json.loads((tmp_path / "file.tfstate").read_text())) == what(before)
        assert plan(home, "file") == NOTHING
        # Applied since: going back takes the newest state along.
        home.dayfly("run", "file", "--auto-approve", "--replace", "terraform_data.one")
        newest = json.loads((tmp_path / "file.tfstate").read_text())
        home.dayfly("state", "migrate", "file", "--back")
        assert what(json.loads(home.dayfly("state", "pull", "file").stdout)) == what(newest)
        assert plan(home, "file") == NOTHING
        again = home.dayfly("state", "migrate", "file", "--to", "managed")
        assert "is in this storage already" in again.stderr
        gone = home.dayfly("delete", "file", "--forget", "--state-file", tmp_path / "kept.tfstate")
        assert f"moved away from the local storage {tmp_path}/file.tfstate, which still keeps a copy" in gone.stderr


def test_a_state_goes_to_azure_and_comes_back(home, s3, gcs, tmp_path):
    """It takes what was applied there along, and leaves it while somebody else holds its lease."""
    with Azure(tmp_path) as store:
        home.env.update(store.env)
        to_azure = ["--to", "azurerm", *(f"--setting={k}={v}" for k, v in store.config().items())]
        with Server(home):
            store.prepare(home)
            create(home, "e", integrations=[], **store.credentials())
            home.dayfly("run", "e", "--auto-approve")
            before = json.loads(home.dayfly("state", "pull", "e").stdout)
            home.dayfly("state", "migrate", "e", *to_azure)
            assert store.states() == [PATH] and not store.lock()
            assert what(json.loads(store.read())) == what(before)
            home.dayfly("run", "e", "--auto-approve", "--replace", "terraform_data.one")
            newest = store.read()
            assert json.loads(newest)["serial"] > before["serial"]
            held = store.hold()
            refused = home.dayfly("state", "migrate", "e", "--back", code=1).stdout
            assert "StateLocked" in refused and held in refused and store.lock()
            store.request("PUT", f"/states/{PATH}?comp=lease", x_ms_lease_action="break")
            home.dayfly("state", "migrate", "e", "--back")
            kind, state = place_of(home, "e", s3, gcs)
            assert (kind, what(state)) == ("managed", what(json.loads(newest))) and store.read() == newest
            assert plan(home, "e") == NOTHING


def test_a_target_that_no_step_could_use_is_told_with_its_cause(home, tmp_path):
    with Server(home, config="engine:\n  local:\n    isolation: strict\n"):
        home.module("net", MODULE)
        home.dayfly("run", "net", "--auto-approve", cwd=home.directory)
        said = home.dayfly("state", "migrate", "net", "--to", "s3", "--setting", "buket=blobs", "--setting", "region=r", code=3).stderr
        assert '--setting bucket: is required for type s3; is "buket" meant to be it?' in said
        # A truth is one, and no text.
        said = home.dayfly("state", "migrate", "net", "--to", "s3", "--setting", "use_lockfile=false", "--setting", "bucket=b", "--setting", "region=r", code=3).stderr
        assert "--setting use_lockfile: must be true without a dynamodb_table" in said
        said = home.dayfly("state", "migrate", "net", "--to", "local", "--path", tmp_path / "x.tfstate", code=3).stdout
        assert f"with engine.local.isolation: strict a step does not see {tmp_path}/x.tfstate" in said and "StateMoveFailed" not in said


def test_a_place_that_belongs_to_another_state_is_refused(home, s3, gcs, tmp_path):
    with Server(home):
        for name in ("a", "b"):
            create(home, name)
            home.dayfly("run", name, "--auto-approve")
        home.dayfly("state", "migrate", "a", *to_s3(s3))
        # Of an executor: as long as it has or keeps its state there.
        refused = home.dayfly("state", "migrate", "b", *to_s3(s3), "--path", "executors/a/terraform.tfstate", code=1)
        assert "executor a has its state in the s3 storage executors/a/terraform.tfstate" in refused.stderr
        home.dayfly("state", "migrate", "a", "--back")
        refused = home.dayfly("state", "migrate", "b", *to_s3(s3), "--path", "executors/a/terraform.tfstate", code=1)
        assert "executor a has its state" in refused.stderr
        # What is wrong is named as it was given.
        for options, given, words in ((["--to", "s3"], "", "--setting bucket: is required"), (["-f", "-"], "type: s3\n", "-f -: config.bucket: is required")):
            refused = home.dayfly("state", "migrate", "b", *options, input=given, code=3).stderr
            assert words in refused and "moveTo" not in refused, refused
        # Of nobody that is known here: the state itself shows it, and both stay as they are.
        home.dayfly("state", "migrate", "a", "--confirm")
        theirs = in_s3(s3, "a")
        refused = home.dayfly("state", "migrate", "b", *to_s3(s3), "--path", "executors/a/terraform.tfstate", code=1)
        assert "StateExists" in refused.stdout and theirs["lineage"] in refused.stdout
        assert in_s3(s3, "a") == theirs
        assert place_of(home, "b", s3, gcs)[0] == "managed" and plan(home, "b") == NOTHING
        status = executor(home, "b")["status"]
        assert (status["state"], status["status"]) == ("provisioned", "done")
        assert not {"movingTo", "formerStorage", "activeRun"} & set(status)

        # A second move first needs a word about what the first one left.
        home.dayfly("state", "migrate", "b", *to_s3(s3))
        refused = home.dayfly("state", "migrate", "b", *to_gcs(gcs), code=1)
        assert "dayfly state migrate b --confirm" in refused.stderr
        # Without a move the storage stays what it is.
        edited = executor(home, "b")
        edited["spec"]["storage"] = {"type": "managed"}
        refused = home.dayfly("apply", "-f", "-", input=json.dumps(edited), code=3)
        assert "dayfly state migrate" in refused.stderr


def test_a_lock_and_a_run_in_the_queue_are_respected(home, s3, gcs):
    with Server(home):
        create(home, "q")
        home.dayfly("run", "q", "--auto-approve")
        home.dayfly("state", "lock", "q")
        refused = home.dayfly("state", "migrate", "q", *to_s3(s3), code=1)
        assert "StateLocked" in refused.stdout and in_s3(s3, "q") is None
        home.dayfly("state", "unlock", "q")
        # A run that was asked for before the move began does not write to the place that was left.
        home.dayfly("run", "q", "--no-wait", "--replace", "terraform_data.one")
        waiting = executor(home, "q")["status"]["lastRun"]["name"]
        moved = home.dayfly("state", "migrate", "q", *to_s3(s3), "-d").stdout.split()[0].partition("/")[2]
        again = home.dayfly("state", "migrate", "q", *to_s3(s3), "-d", code=1).stderr
        assert f"is being moved by run {moved}, which is Pending: wait for it" in again, again
        late = home.dayfly("run", "q", "--auto-approve", "-d").stdout.split()[0].partition("/")[2]
        home.dayfly("discard", waiting)

        def end(run):
            status = home.json("get", "run", run)["status"]
            return status if "finishedAt" in status else None

        assert wait_for("the move", lambda: end(moved))["reason"] == "StateMoved"
        assert wait_for("the late run", lambda: end(late))["reason"] == "StorageChanged"
        assert place_of(home, "q", s3, gcs)[0] == "s3" and plan(home, "q") == NOTHING


# A key from outside: the one from a passphrase takes a tenth of a second for each time that it is needed.
KEY = """#!/bin/sh
echo '{"magic":"OpenTofu-External-Key-Provider","version":1}'
cat > /dev/null
echo '{"keys":{"encryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","decryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},"meta":{}}'
"""

ENCRYPTED = """
terraform {
  backend "local" {
    path = "%s"
  }
  encryption {
    key_provider "external" "k" {
      command = ["sh", "./key"]
    }
    method "aes_gcm" "m" {
      keys = key_provider.external.k
    }
    state {
      method   = method.aes_gcm.m
      enforced = true
    }
  }
}
"""


def test_an_encrypted_state_stays_encrypted_and_leaves_the_backend_of_its_module(home, s3, gcs, tmp_path):
    file = tmp_path / "own.tfstate"
    with Server(home):
        (create(home, "sealed", MODULE + ENCRYPTED % file, storage={"type": "module"}) / "key").write_text(KEY)
        home.dayfly("run", "sealed", "--auto-approve")
        assert "encrypted_data" in json.loads(file.read_text())
        for target, kind in ((["--to", "managed"], "managed"), (to_s3(s3), "s3")):
            home.dayfly("state", "migrate", "sealed", *target)
            named, state = place_of(home, "sealed", s3, gcs)
            assert named == kind and "encrypted_data" in state and state["lineage"] == json.loads(file.read_text())["lineage"]
            assert plan(home, "sealed") == NOTHING
            home.dayfly("state", "migrate", "sealed", "--confirm")


# ---- killed

TOOL = """#!/bin/sh
echo "$1 $2" >> {dir}/calls
if [ "$(wc -l < {dir}/calls)" = "$(cat {dir}/at)" ]; then
  echo > {dir}/reached
  read -r _ < {dir}/gate
fi
exec {tofu} "$@"
"""


class Killed:
    """A user whose tool stops when it is started for the n-th time, so that somebody can be killed there."""

    def __init__(self, directory, tofu):
        self.directory = directory
        (directory / "tool").mkdir(parents=True)
        tool = directory / "tool/tofu"
        tool.write_text(TOOL.format(dir=directory, tofu=tofu))
        tool.chmod(0o755)
        os.mkfifo(directory / "gate")
        (directory / "at").write_text("0")
        self.home = Home(directory / "home", tool)
        self.server = Server(self.home)

    def stop_at(self, n):
        for name in ("calls", "reached"):
            (self.directory / name).unlink(missing_ok=True)
        (self.directory / "at").write_text(str(n))

    def end(self, run):
        status = self.home.json("get", "run", run)["status"]
        return status if "finishedAt" in status else None

    def kill(self, run, victim):
        """Kills, and lets the tool go on."""
        if victim == "spawner":
            self.server.kill()
        else:
            pid = (self.server.data / "steps/by-name" / f"{run}-state/runner.pid").read_text().split()[0]
            os.kill(int(pid), signal.SIGKILL)
        (self.directory / "at").write_text("0")
        gate = os.open(self.directory / "gate", os.O_RDWR)
        os.write(gate, b"\n")
        if victim == "spawner":
            self.server.start()
        status = wait_for(f"the end of {run}", lambda: self.end(run))
        os.close(gate)
        return status


@pytest.fixture
def killed(tofu, tmp_path):
    world = Killed(tmp_path / "world", tofu)
    world.server.start()
    create(world.home, "k")
    world.home.dayfly("run", "k", "--auto-approve")
    yield world
    world.server.kill()


def check_one_place(home, s3, gcs, before, kinds):
    """The place that the document names has the state. Which one it is, before or after the switch."""
    named, state = place_of(home, "k", s3, gcs)
    assert named in kinds and state and what(state) == what(before) and state["serial"] >= before["serial"]
    return state


def repeat(home, s3, gcs, before, target):
    """The same command again comes to the end that it would have had."""
    home.dayfly("state", "migrate", "k", *target)
    state = check_one_place(home, s3, gcs, before, ("s3", "managed", "gcs"))
    assert home.json("run", "k", "--auto-approve")["run"]["status"]["reason"] == "NoChanges"
    if "formerStorage" in executor(home, "k")["status"]:
        home.dayfly("state", "migrate", "k", "--confirm")
    return state


# Starts of the tool in a move: init, taint, pull at the old place; init, pull, push, pull, push, pull, output at the new one; init, taint,
# pull at the old one. The first push is that of an empty state.
POINTS = [("runner", 4), ("runner", 6), ("runner", 8), ("runner", 13), ("spawner", 8), ("spawner", 13)]


def test_whoever_is_killed_at_whatever_command_one_place_has_the_state(killed, s3, gcs):
    home = killed.home
    before = json.loads(home.dayfly("state", "pull", "k").stdout)
    killed.stop_at(2)  # a person ends it there: the message does not say that something was tainted
    run = home.dayfly("state", "migrate", "k", *to_s3(s3), "-d").stdout.split()[0].partition("/")[2]
    wait_for("the check of the lock", (killed.directory / "reached").exists)
    home.dayfly("cancel", run)
    assert wait_for(f"the end of {run}", lambda: killed.end(run))["phase"] == "Canceled"
    log = home.dayfly("logs", run).stdout
    assert "the check of its lock failed" in log and "tofu taint" not in log, log
    for i, (victim, n) in enumerate(POINTS):
        target = [*to_s3(s3), "--path", f"killed/{i}.tfstate"]
        path = executor(home, "k")["spec"]["storage"].get("path")
        killed.stop_at(n)
        run = home.dayfly("state", "migrate", "k", *target, "-d").stdout.split()[0].partition("/")[2]
        wait_for(f"call {n}", (killed.directory / "reached").exists)
        status = killed.kill(run, victim)
        assert status["phase"] == ("Failed" if victim == "runner" else "Succeeded"), (victim, n, status)
        if victim == "runner":
            assert status["reason"] == "RunnerLost", (n, status)
            assert executor(home, "k")["spec"]["storage"].get("path") == path
        check_one_place(home, s3, gcs, before, ("managed", "s3"))
        before = repeat(home, s3, gcs, before, target)


KILLAT = BUILD / "tools" / "killat"


def test_a_spawner_killed_at_any_call_switches_wholly_or_not_at_all(killed, s3, gcs):
    home, server = killed.home, killed.server
    before = json.loads(home.dayfly("state", "pull", "k").stdout)
    count, ends = killed.directory / "count", []

    def move_under(i, *options):
        """Moves with a spawner that may be killed at any moment; returns the place and the ended run, if there is one."""
        target = [*to_s3(s3), "--path", f"killat/{i}.tfstate"]
        runs = {r["metadata"]["name"] for r in home.json("get", "runs")["items"]}
        assert server.stop() == 0
        try:
            server.start(prefix=["env", "ASAN_OPTIONS=detect_leaks=0", KILLAT, *options, "--visible", "--"])  # leaks cannot be looked for under ptrace
            asked = home.dayfly("state", "migrate", "k", *target, "-d", code=None)
        except AssertionError:
            asked = None
        if asked and asked.returncode == 0:
            run = asked.stdout.split()[0].partition("/")[2]
            with contextlib.suppress(AssertionError):  # it died while it was asked
                wait_for("the end, or the kill", lambda: server.process.poll() is not None or killed.end(run))
        ends.append(server.stop())
        assert ends[-1] in (0, 128 + signal.SIGKILL)
        server.start()
        made = [r["metadata"]["name"] for r in home.json("get", "runs")["items"] if r["metadata"]["name"] not in runs]
        for run in made:
            status = wait_for(f"the end of {run}", lambda: killed.end(run))  # noqa: B023
            assert (status["phase"], status["reason"]) == ("Succeeded", "StateMoved"), (options, status)
        return target

    target = move_under(0, "--count", count)
    before = repeat(home, s3, gcs, before, target)
    calls = int(count.read_text())
    for i in range(1, 4):
        target = move_under(i, str(calls * (i + 5) // 10))
        check_one_place(home, s3, gcs, before, ("s3", "managed"))
        before = repeat(home, s3, gcs, before, target)
    assert 128 + signal.SIGKILL in ends
