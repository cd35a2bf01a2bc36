"""What a run waits for is told: a bucket that is away or refuses, a source of secrets that does not answer."""

import signal
import subprocess

import pytest

from lib.buckets import S3, Trouble
from lib.dayfly import DAYFLY, DEADLINE, Server, wait_for

MODULE = """
resource "terraform_data" "it" { input = "the-content-of-the-state" }
output "it" { value = terraform_data.it.output }
"""
SLOW = """
resource "terraform_data" "it" {
  provisioner "local-exec" { command = "touch BEGUN; while [ ! -e GO ]; do sleep 0.1; done" }
}
"""

EXECUTOR = """
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {{name: net}}
spec:
  source: {{kind: directory, url: "file://{module}"}}
  timeouts: {{apply: 5s, grace: 40s}}
"""


class Place:
    """A service with its blobs in a bucket, to which a way leads that refuses writes on request."""

    def __init__(self, home, s3, way):
        self.home, self.s3, self.way = home, s3, way
        way.KINDS = ("readonly",)
        home.env.update(s3.env)
        self.server = Server(home, config=s3.config(endpoint=way.url))

    def refuse(self, refuses=True):
        self.way.share = 1 if refuses else 0

    def run(self, name, module=MODULE, *args):
        """Follows a run of the module, in the background."""
        self.home.module(name, module)
        return self.home.popen(DAYFLY, "run", name, "--auto-approve", *args, cwd=self.home.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def status(self, run):
        return self.home.json("get", "run", run)["status"]

    def waits(self, run):
        return wait_for(f"{run} to wait", lambda: self.exists(run) and self.status(run).get("waiting"))

    def exists(self, run):
        return self.home.dayfly("get", "run", run, code=None).returncode == 0


@pytest.fixture
def place(home, tmp_path):
    with S3(tmp_path / "s3") as s3, Trouble(s3.address, share=0, seed=1) as way:
        place = Place(home, s3, way)
        with place.server:
            yield place


def said(client):
    out, _ = client.communicate(timeout=DEADLINE * 2)
    return out


def test_a_run_that_waits_for_the_bucket_says_so_once_and_goes_on(place):
    place.s3.stop()
    client = place.run("net")
    waiting = place.waits("net-1")
    assert waiting["reason"] == "StorageUnavailable" and waiting["since"] and waiting["message"], waiting
    assert f"It waits since {waiting['since']}: " in place.home.dayfly("why", "net-1").stdout
    assert "(waits)" in place.home.dayfly("get", "runs").stdout
    for shown in ("run", "net-1"), ("taskaction", "net-1-plan"):
        described = place.home.dayfly("describe", *shown).stdout
        assert "Waits since" in described and waiting["message"] in described, described
    place.s3.start()
    out = said(client)
    assert client.returncode == 0, out
    assert out.count(f"net-1 waits since {waiting['since']}: ") == 1 and out.count("net-1 goes on") == 1, out
    assert "waiting" not in place.status("net-1")


def test_a_bucket_that_takes_connections_and_answers_nothing_is_told_too(place):
    place.s3.process.send_signal(signal.SIGSTOP)
    try:
        client = place.run("net")
        assert "stays silent" in place.waits("net-1")["message"]
    finally:
        place.s3.process.send_signal(signal.SIGCONT)
    out = said(client)
    assert client.returncode == 0 and out.count("net-1 waits since") == 1, out


@pytest.mark.parametrize("how", ["refuses", "is away"])
def test_a_plan_is_canceled_while_the_bucket_is(place, how):
    place.refuse() if how == "refuses" else place.s3.stop()
    client = place.run("net")
    place.waits("net-1")
    place.home.dayfly("cancel", "net-1")
    wait_for("the run to be canceled", lambda: place.status("net-1")["phase"] == "Canceled")
    out = said(client)
    assert "net-1: Canceled" in out and "goes on" not in out, out
    assert "net-1, provision of net: Canceled" in place.home.dayfly("why", "net-1").stdout


def test_the_log_of_a_plan_that_ended_meanwhile_is_stored_when_the_bucket_is_back(place):
    place.refuse()
    client = place.run("net")
    place.waits("net-1")
    place.home.dayfly("cancel", "net-1")
    wait_for("the run to be canceled", lambda: place.status("net-1")["phase"] == "Canceled")
    said(client)
    asked = place.home.dayfly("logs", "net-1", code=1)
    assert asked.stdout == "" and "the log of net-1 is not stored yet" in asked.stderr
    place.refuse(False)
    wait_for("the log to be stored", lambda: "Error acquiring the state lock" in place.home.dayfly("logs", "net-1", code=None).stdout)


def test_what_a_canceled_apply_did_is_kept_though_the_bucket_refuses(place):
    begun, go = (place.home.directory / name for name in ("begun", "go"))
    client = place.run("net", SLOW.replace("BEGUN", str(begun)).replace("GO", str(go)))
    wait_for("the apply to create", begun.exists)
    place.refuse()
    go.touch()
    place.waits("net-1")
    place.home.dayfly("cancel", "net-1")
    wait_for("the cancel to reach the step", lambda: place.home.json("get", "taskaction", "net-1-apply")["spec"].get("cancel"))
    place.refuse(False)
    said(client)

    def kept():
        stored = place.home.dayfly("state", "pull", "net", code=None).stdout
        return "terraform_data" in stored or place.home.json("state", "errored", "net")["items"]

    wait_for("the state to be stored or kept", kept)


def test_an_apply_that_is_out_of_time_while_the_bucket_is_away_leaves_its_state(place):
    begun, go = (place.home.directory / name for name in ("begun", "go"))
    place.home.module("net", SLOW.replace("BEGUN", str(begun)).replace("GO", str(go)))
    place.home.dayfly("apply", "-f", "-", input=EXECUTOR.format(module=place.home.directory / "net"))
    client = place.home.popen(DAYFLY, "run", "net", "--auto-approve", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for("the apply to create", begun.exists)
    place.s3.stop()
    go.touch()
    # Its time and its grace period end while it tries to store its state.
    wait_for("the tool to end", lambda: any(place.home.directory.parent.rglob("errored.tfstate")))
    place.s3.start()
    out = said(client)
    assert client.returncode != 0 and "errored state" in place.home.dayfly("why", "net-1").stdout, out
    assert place.home.json("state", "errored", "net")["items"]
    assert "errored state" in place.home.dayfly("run", "net", "--auto-approve", code=1).stderr
    place.home.dayfly("state", "push-errored", "net")
    assert "terraform_data" in place.home.dayfly("state", "pull", "net").stdout
