"""The keys that seal a bucket: of a command, of files, the instance's own; and one is replaced by another."""

import json
import secrets

import pytest

from lib.buckets import S3
from lib.dayfly import Server

MODULE = """
resource "terraform_data" "it" { input = "the-content-of-%s" }
output "it" { value = terraform_data.it.output }
"""


class Installation:
    """A service with its blobs in a bucket."""

    def __init__(self, home, s3):
        self.home, self.s3 = home, s3
        home.env.update(s3.env)

    def file(self, key):
        path = self.home.directory / f"key-{key[:8]}"
        path.write_text(key + "\n")
        return str(path)

    def command(self, text):
        path = self.home.directory / "unwrap"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return [str(path), "--ring", "prod"]

    def serve(self, **blobs):
        config = {"blobs": {"location": "s3://blobs", "s3": {"region": "us-east-1", "endpoint": self.s3.url, "pathStyle": True}, **blobs}}
        return Server(self.home, config=json.dumps(config))

    def refused(self, **blobs):
        server = self.serve(**blobs)
        with pytest.raises(AssertionError):
            server.start()
        return server.log.read_text().splitlines()[-1]

    def provision(self, name):
        self.home.module(name, MODULE % name)
        return self.home.dayfly("run", name, "--auto-approve", cwd=self.home.directory)

    def pull(self, name, code=0):
        return self.home.dayfly("state", "pull", name, code=code)

    def sealed_with(self, part):
        """The names of the keys in the objects that have this in their path."""
        heads = [(self.s3.files / name).read_bytes()[:12] for name in self.s3.objects() if part in name]
        return {head[4:].hex() for head in heads if head.startswith(b"dfk1")}


@pytest.fixture
def place(home, tmp_path):
    with S3(tmp_path / "s3") as server:
        yield Installation(home, server)


def test_a_key_is_replaced_without_rewriting_and_one_that_is_missing_is_named(place):
    old, new = secrets.token_hex(32), secrets.token_hex(32)
    with place.serve(keyFiles=[place.file(old)]):
        place.provision("first")
    [old_id] = place.sealed_with("state")
    before = {name: (place.s3.files / name).read_bytes() for name in place.s3.objects() if "state" in name}
    # The command of a KMS prints the new one; its arguments arrive.
    print_new = f'[ "$1 $2" = "--ring prod" ] && echo {new}\n'
    with place.serve(keyCommand=place.command(print_new), keyFiles=[place.file(old)]):
        assert "the-content-of-first" in place.pull("first").stdout
        place.provision("second")
    assert all((place.s3.files / name).read_bytes() == content for name, content in before.items())
    [new_id] = place.sealed_with("state") - {old_id}
    # A command may print the older ones as well.
    with place.serve(keyCommand=place.command(f"echo {new}; echo {old}\n")):
        assert "the-content-of-first" in place.pull("first").stdout
    with place.serve(keyCommand=place.command(print_new)) as server:
        assert "the-content-of-second" in place.pull("second").stdout
        failed = place.pull("first", code=None)
        assert failed.returncode and f"sealed with key {old_id}" in failed.stderr, failed.stderr
        place.home.module("first", MODULE % "other")
        run = place.home.dayfly("run", "first", "--auto-approve", cwd=place.home.directory, code=None)
        assert run.returncode and f"sealed with key {old_id}" in run.stdout + run.stderr, run.stdout + run.stderr
        assert place.home.json("get", "run", "first-2")["status"]["reason"] == "StateUnreadable"
        for key in (old, new):
            assert key not in server.log.read_text() + failed.stderr + run.stdout
    assert new_id != old_id


@pytest.mark.parametrize("script, told", [
    ("echo 'the ring is locked' >&2; echo more >&2; exit 3\n", "ended with exit code 3: the ring is locked"),
    ("echo not-a-key-but-secret\n", "must print 64 hex digits"),
    ("true\n", "must print 64 hex digits"),
    ("kill -9 $$\n", "ended with exit code 137"),
    (f"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do echo {'a' * 64}; done\n", "blobs.keyCommand: "),
])
def test_a_command_without_a_key_ends_the_start_with_its_reason(place, script, told):
    said = place.refused(keyCommand=place.command(script))
    assert told in said and "not-a-key-but-secret" not in said and "more" not in said.partition("locked")[2], said


def test_a_command_that_is_not_there_is_told(place):
    assert "blobs.keyCommand" in place.refused(keyCommand=["/nowhere/unwrap"])


def test_the_doctor_says_which_key_may_go(place):
    old, new = secrets.token_hex(32), secrets.token_hex(32)

    def doctor(keys):
        place.serve(keyFiles=keys)  # writes the configuration
        found = place.home.json("doctor", "--only", "keys-used", "--config", place.home.directory / "dayfly.yaml")["findings"]
        return [f["message"] for f in found if f["check"] == "keys-used"]

    with place.serve(keyFiles=[place.file(old)]):
        place.provision("first")
    keys = [place.file(new), place.file(old)]
    seals, stays, others = doctor(keys)
    assert "sealed 0 of" in seals and seals.endswith("and seals what comes") and stays.startswith(keys[1]) and stays.endswith("it must stay")
    assert others.startswith("0 of ")
    with place.serve(keyFiles=keys):
        place.home.dayfly("delete", "first", "--forget", "--state-file", place.home.directory / "first.tfstate")
        place.provision("second")
    assert doctor(keys)[1].endswith("it may go"), doctor(keys)
    with place.serve(keyFiles=keys[:1]):
        assert "the-content-of-second" in place.pull("second").stdout
