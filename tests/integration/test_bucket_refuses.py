"""A bucket that refuses a running service, or is gone: who hears of it, what waits, and that it goes on afterwards."""

import re

import pytest

from lib.buckets import ACCESS, SECRET, S3
from lib.dayfly import DAYFLY, DEADLINE, Server, wait_for

MODULE = """
resource "terraform_data" "it" { input = "the-content-of-the-state" }
output "it" { value = terraform_data.it.output }
"""

SLOW = """
resource "terraform_data" "it" {
  provisioner "local-exec" { command = "touch %s; exec sleep 3600" }
}
"""


@pytest.fixture
def s3(tmp_path):
    with S3(tmp_path / "s3") as server:
        yield server


def serve(home, s3, **keys):
    home.env.update(s3.env)
    return Server(home, config=s3.config(**keys))


def begin(home, name="net", module=MODULE):
    """A run that a command waits for."""
    home.module(name, module)
    return home.popen(DAYFLY, "run", name, "--auto-approve", cwd=home.directory)


def ready(server):
    """Status and text of /readyz?verbose."""
    status, _, text = server.request("GET", "/readyz?verbose")
    return status, text.decode()


def health(server):
    return re.search(r'dayfly_ready\{component="blobs"\} (\d)', server.request("GET", "/metrics")[2].decode()).group(1)


def fails(server):
    """What /readyz says of the blobs, once that is something; or False."""
    found = re.search(r"^\[!\] blobs: (.*)$", ready(server)[1], re.M)
    return found and found.group(1)


def lines(server, part):
    return [line for line in server.log.read_text().splitlines() if part in line]


def refused_logins(server):
    return [entry for entry in server.get("/v1/audit")["items"] if entry["action"] == "login"]


def test_a_bucket_that_is_read_only_for_a_while_delays_a_run_and_loses_nothing(home, s3):
    with serve(home, s3) as server:
        home.module("first", MODULE)
        home.dayfly("run", "first", "--auto-approve", cwd=home.directory)
        s3.restart("--readonly")
        run = begin(home)
        said = wait_for("the service to find it out", lambda: fails(server))
        assert re.fullmatch("s3://blobs cannot be written since 2[^ ]*; the log and `dayfly doctor` say why", said) and any("HTTP 403" in line for line in lines(server, "cannot be written")), said
        status, text = ready(server)
        assert status == 200 and text.endswith("ok, but not all of it: see [!]\n")
        assert health(server) == "0"
        assert "the-content-of-the-state" in home.dayfly("state", "pull", "first").stdout
        assert run.poll() is None
        s3.restart()
        assert run.wait(timeout=DEADLINE * 2) == 0
        assert home.json("outputs", "net")["it"]["value"] == "the-content-of-the-state"
        wait_for("the service to find out that it is over", lambda: not fails(server))
        assert ready(server) == (200, re.sub(r"(?m)^\[!\].*$", "", ready(server)[1])) and health(server) == "1"
        assert len(lines(server, "cannot be written")) == 1 and len(lines(server, "can be written again after")) == 1
        assert not refused_logins(server)


def test_a_state_that_the_bucket_refuses_is_a_fault_of_the_service_and_no_refusal(home, s3):
    with serve(home, s3) as server:
        home.module("net", MODULE)
        home.dayfly("run", "net", "--auto-approve", cwd=home.directory)
        s3.restart(secret="another")
        status, _, text = server.request("GET", "/v1/executors/net/state")
        assert status == 503 and b"StorageRefused" in text and b"s3://blobs" in text and b"HTTP 403" in text
        assert not refused_logins(server)
        s3.restart()
        wait_for("the state to be given", lambda: server.request("GET", "/v1/executors/net/state")[0] == 200)


def test_a_service_that_nobody_asks_notices_that_its_bucket_is_gone_and_that_it_is_back(home, s3):
    with serve(home, s3) as server:
        s3.stop()
        assert "s3://blobs cannot be read since 2" in wait_for("the service to notice", lambda: fails(server), seconds=2 * DEADLINE)
        assert health(server) == "0" and len(lines(server, "cannot be read")) == 1
        s3.start()
        wait_for("the service to notice that it is over", lambda: not fails(server))
        assert len(lines(server, "can be read again after")) == 1


@pytest.mark.parametrize("how", ["--readonly", "another secret", "gone"])
def test_one_signal_ends_a_service_whose_bucket_refuses(home, s3, how):
    begun = home.directory / "begun"
    with serve(home, s3) as server:
        run = begin(home, module=SLOW % begun)
        wait_for("the apply to begin", begun.exists)
        if how == "gone":
            s3.stop()
        elif how == "--readonly":
            s3.restart(how)
        else:
            s3.restart(secret="another")
        wait_for("the service to find it out", lambda: fails(server))
        assert server.stop() == 0
        run.kill()
        run.wait()
        s3.restart()
        with server.start():
            wait_for("the run to end", lambda: home.json("get", "run", "net-1")["status"]["phase"] in ("Failed", "Canceled"), seconds=2 * DEADLINE)
            assert "terraform_data" in home.dayfly("state", "pull", "net").stdout


def profile(home, secret):
    path = home.directory / "aws"
    path.write_text(f"[default]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {secret}\n")
    return path


def test_keys_of_a_profile_are_read_again_once_they_are_refused(home, s3):
    s3.env = {"AWS_SHARED_CREDENTIALS_FILE": str(profile(home, SECRET))}
    with serve(home, s3) as server:
        home.module("net", MODULE)
        home.dayfly("run", "net", "--auto-approve", cwd=home.directory)
        s3.restart(secret="rotated")
        assert server.request("GET", "/v1/executors/net/state")[0] == 503
        profile(home, "rotated")
        wait_for("the state to be given", lambda: server.request("GET", "/v1/executors/net/state")[0] == 200)
        assert "No changes" in home.dayfly("run", "net", "--auto-approve", cwd=home.directory).stdout


def test_a_key_of_a_bucket_that_is_gone_is_told_before_the_next_start_needs_it(home, s3):
    key = home.directory / "bucket-key"
    key.write_text("ab" * 32 + "\n")
    home.env.update(s3.env)
    server = Server(home, config=s3.config().replace("blobs:\n", f"blobs:\n  keyFiles: [{key}]\n"))
    doctor = ("doctor", "--only", "bucket-keys", "--config", home.directory / "dayfly.yaml")
    with server:
        assert not fails(server) and health(server) == "1"
        home.dayfly(*doctor)
        key.write_text("ab" * 31 + "\n")
        assert fails(server) == "blobs.keyFiles; the log and `dayfly doctor` say why" and health(server) == "0"  # whoever asks has no token
        assert f"{key} must hold" in home.dayfly(*doctor, code=None).stdout
        key.unlink()
        assert ready(server)[0] == 200 and fails(server)
        said = home.dayfly(*doctor, code=None)
        assert said.returncode != 0 and str(key) in said.stdout and "bring it back" in said.stdout
