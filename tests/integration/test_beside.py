"""A dry run takes no turn and no lock: it plans the state as it is stored, beside a run that waits or works."""

import ctypes
import json
import os
import select
import subprocess
import threading
import time

import pytest

from lib.commands import begun, slow
from lib.dayfly import Server, wait_for

ONE = 'variable "n" { default = 1 }\nresource "terraform_data" "one" { input = var.n }\n'


def create(home, name, module, **spec):
    document = {"kind": "Executor", "metadata": {"name": name},
                "spec": {"source": {"url": f"file://{module}"}, "runtime": {"name": home.runtime}, **spec}}
    home.dayfly("create", "-f", "-", input=json.dumps(document))


def phases(home):
    return {r["metadata"]["name"]: r["status"]["phase"] for r in home.json("get", "runs")["items"]}


def test_a_plan_beside_a_run_that_waits_for_approval_is_made_and_says_so(either_home):
    home = either_home
    module = home.module("net", ONE)
    home.dayfly("run", module, code=1, stdin=subprocess.DEVNULL)
    said = home.dayfly("plan", module, "--detailed-exitcode", code=2, stdin=subprocess.DEVNULL).stdout
    assert "the plan is of the state as it is stored: run net-1, which waits for approval, is no part of it" in said
    planned = home.json("plan", module, "--var", "n=2")["run"]["status"]
    assert planned["phase"] == "Succeeded" and planned["beside"] == "net-1"
    assert home.json("get", "executor", "net")["status"]["lastRun"]["name"] == "net-1", "the waiting run is hidden"

    home.dayfly("approve", "net-1")
    assert phases(home) == {"net-1": "Succeeded", "net-2": "Succeeded", "net-3": "Succeeded"}
    home.dayfly("plan", module, "--detailed-exitcode")
    assert "beside" not in home.json("plan", module)["run"]["status"]


@pytest.mark.parametrize("storage", ["managed", "local"])
def test_a_plan_beside_an_apply_reads_what_is_stored_and_takes_no_lock(home, storage):
    module, gate = slow(home)
    where = {"type": "local", "path": f"{home.directory}/slow.tfstate"} if storage == "local" else {"type": "managed"}
    with Server(home, config="limits: {steps: 4}\n"):
        create(home, "slow", module, storage=where, variables={"gate": str(gate)})
        home.dayfly("run", "slow", "--auto-approve", "--detach")
        wait_for("the apply to be in its middle", lambda: begun(gate))
        for number in (2, 3):
            status = home.json("plan", "slow")["run"]["status"]
            assert (status["phase"], status["beside"]) == ("Succeeded", "slow-1")
            assert "slow-1, which is running" in status["message"]
            assert status["planSummary"]["add"] in (1, 2), "what the apply has stored so far"
        refused = home.dayfly("delete", "slow", code=1).stderr
        assert "slow" in refused
        gate.touch()
        home.dayfly("logs", "-f", "slow-1")
        assert phases(home)["slow-1"] == "Succeeded"


def test_dry_runs_of_one_executor_run_beside_each_other(home):
    module = home.module("net", ONE)
    with Server(home) as server:
        create(home, "net", module)
        home.dayfly("run", "net", "--no-wait")
        for n in range(3):
            home.dayfly("plan", "net", "--var", f"n={n}", "--detach")
        wait_for("all dry runs to end", lambda: all(phases(home)[f"net-{n}"] == "Succeeded" for n in (2, 3, 4)))
        assert phases(home)["net-1"] == "WaitingApproval"
        assert "-lock=false" not in json.dumps(server.get("/v1/taskactions/net-1-plan"))
        assert server.get("/v1/taskactions/net-2-plan")["spec"]["dryRun"] is True


# Code of the module runs in a plan, too: here it is the tool itself that asks for the lock.
GRASPS = """#!/bin/sh
if [ "$1" = plan ]; then
    for verb in LOCK UNLOCK POST; do
        curl -s -o /dev/null -w "$verb %{{http_code}}\\n" -X $verb -u "$TF_HTTP_USERNAME:$TF_HTTP_PASSWORD" \\
            -H 'Content-Type: application/json' -d '{{"ID": "grasped"}}' "$TF_HTTP_ADDRESS" >>{answers}
    done
fi
exec {tofu} "$@"
"""


def test_code_of_a_dry_run_neither_locks_nor_writes_the_state(home, tofu):
    answers = home.directory / "answers"
    tool = home.bin / "tofu"
    tool.unlink()
    tool.write_text(GRASPS.format(answers=answers, tofu=tofu))
    tool.chmod(0o755)
    module = home.module("net", ONE)
    with Server(home, config="engine: {local: {isolation: none}}\n"):
        create(home, "net", module)
        home.dayfly("plan", "net")
        assert answers.read_text().split() == ["LOCK", "403", "UNLOCK", "403", "POST", "403"]


def test_a_dry_run_of_an_executor_that_is_to_be_destroyed_plans_its_configuration(home):
    module = home.module("net", ONE)
    home.dayfly("run", module, "--auto-approve")
    home.dayfly("destroy", module, "--no-wait")
    status = home.json("plan", module)["run"]["status"]
    assert (status["planSummary"]["destroy"], status["hasChanges"]) == (0, False)


def test_a_plan_that_waits_is_made_stale_by_nothing_that_a_dry_run_does(home):
    module = home.module("net", ONE)
    home.dayfly("run", module, "--no-wait")
    home.dayfly("plan", module, "--refresh-only")
    home.dayfly("plan", module, "--var", "n=5")
    home.dayfly("approve", "net-1")
    assert json.loads(home.dayfly("state", "show", "net").stdout)["resources"][0]["instances"][0]["attributes"]["input"]["value"] == 1


FOREIGN = {"version": 4, "terraform_version": "1.0.0", "serial": 3, "lineage": "11111111-2222-3333-4444-555555555555",
           "outputs": {}, "resources": [], "check_results": None}


@pytest.mark.parametrize("storage", ["managed", "local"])
def test_a_plan_of_no_state_is_stale_when_somebody_has_put_one_there(either_home, storage):
    home = either_home
    module = home.module("net", ONE)
    file = home.directory / "net.tfstate"
    with Server(home) as server:
        create(home, "net", module, storage={"type": storage, **({"path": str(file)} if storage == "local" else {})})
        home.dayfly("run", "net", "--no-wait")
        if storage == "local":
            file.write_text(json.dumps(FOREIGN))
        else:
            lock = {"ID": "l", "Who": "eve"}
            assert server.request("LOCK", "/v1/executors/net/state", lock)[0] == 200
            assert server.request("POST", "/v1/executors/net/state?ID=l", FOREIGN)[0] == 200
            assert server.request("UNLOCK", "/v1/executors/net/state", lock)[0] == 200
        home.dayfly("approve", "-f", "net-1", code=1)
        status = home.json("get", "run", "net-1")["status"]
        assert status["reason"] == "PlanStale", status
        assert "Run again" in home.dayfly("why", "net-1").stdout


def test_a_spawner_that_dies_with_a_dry_run_beside_a_waiting_run_loses_neither(home):
    module = home.module("net", ONE)
    with Server(home) as server:
        create(home, "net", module)
        home.dayfly("run", "net", "--no-wait")
        for n, pause in enumerate((0, 0.05, 0.1, 0.2, 0.4)):
            home.dayfly("plan", "net", "--detach")
            time.sleep(pause)  # another moment of it each time
            server.kill()
            server.start()
            name = f"net-{n + 2}"
            wait_for(f"{name} to end", lambda: phases(home)[name] not in ("Pending", "Running"))
            status = home.json("get", "run", name)["status"]
            assert (status["phase"], status.get("beside")) == ("Succeeded", "net-1"), status
            assert phases(home)["net-1"] == "WaitingApproval"
        home.dayfly("approve", "-f", "net-1")
        assert phases(home)["net-1"] == "Succeeded"


READ_AGAIN = ("read while it was written", "broke off")
CLOSE_NOWRITE = 0x10  # of inotify(7): somebody has read the file to its end, or given up


class Tear:
    """Writes these bytes to the file, and its whole content as soon as they were read so many times."""

    def __init__(self, file, torn, reads):
        self.file, self.torn, self.reads, self.whole = file, torn, reads, file.read_bytes()

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.file.write_bytes(self.torn)
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        assert libc.inotify_add_watch(self.fd, os.fsencode(self.file), CLOSE_NOWRITE) >= 0
        self.over = os.eventfd(0)
        self.mender = threading.Thread(target=self.mend)
        self.mender.start()

    def mend(self):
        seen = 0
        while seen < self.reads:
            ready = select.select([self.fd, self.over], [], [])[0]
            if self.over in ready:
                break
            seen += len(os.read(self.fd, 4096)) // 16  # struct inotify_event, without a name
        self.file.write_bytes(self.whole)

    def __exit__(self, *_):
        os.eventfd_write(self.over, 1)
        self.mender.join()
        os.close(self.fd)
        os.close(self.over)


def test_a_state_file_that_is_written_as_it_is_read_is_read_again(either_home):
    """The tools write the file of their backend `local` in place: a reader without a lock may find nothing in it."""
    home = either_home
    module = home.module("net", ONE)
    file = home.directory / "net.tfstate"
    with Server(home):
        create(home, "net", module, storage={"type": "local", "path": str(file)})
        home.dayfly("run", "net", "--auto-approve")
        whole = file.read_bytes()
        for torn in (b"", whole[:100]):
            logs = []
            for reads in range(1, 5):  # `init` and the runner may be the first; the plan itself is tried five times
                with Tear(file, torn, reads):
                    run = home.json("plan", "net", code=None)
                logs.append(home.dayfly("logs", run["run"]["metadata"]["name"]).stdout)
                assert run["run"]["status"]["hasChanges"] is False, logs[-1]
                assert "outputs are not kept" not in logs[-1]
            assert any(said in log for said in READ_AGAIN for log in logs), logs


# ---- outputs ----

OUTPUT = 'terraform {\n  backend "local" { path = "%s" }\n}\noutput "at" { value = "%s" }\n'


def found(path, value, lineage):
    """A state with this one output, as somebody else may have left it."""
    path.write_text(json.dumps({
        "version": 4, "terraform_version": "1.6.0", "serial": 7, "lineage": lineage,
        "outputs": {"at": {"value": value, "type": "string"}}, "resources": [], "check_results": None}))


def test_a_dry_run_of_another_branch_leaves_the_outputs_of_its_executor(home):
    good, other = home.directory / "good.tfstate", home.directory / "other.tfstate"
    module = home.module("net", OUTPUT % (good, "https://good.example"))
    home.repository(module)
    home.git(module, "checkout", "-qb", "other")
    (module / "main.tf").write_text(OUTPUT % (other, "https://other.example"))
    home.git(module, "commit", "-qam", "other")
    home.git(module, "checkout", "-q", "main")
    found(other, "https://other.example", "11111111-2222-3333-4444-555555555555")
    create(home, "net", module, storage={"type": "module"},
           source={"url": f"file://{module}", "kind": "git", "branch": "main"})
    home.dayfly("run", "net", "--auto-approve")
    refused = home.dayfly("plan", "net", "--branch", "other", code=1).stdout
    assert "StateRefused" in refused
    assert home.dayfly("outputs", "net", "at").stdout.strip() == "https://good.example"
    home.dayfly("plan", "net")
    assert home.dayfly("outputs", "net", "at").stdout.strip() == "https://good.example"


def test_a_run_that_finds_the_state_of_somebody_else_leaves_the_outputs(home):
    state = home.directory / "net.tfstate"
    module = home.module("net", OUTPUT % (state, "one"))
    create(home, "net", module, storage={"type": "module"})
    home.dayfly("run", "net", "--auto-approve")
    (module / "main.tf").write_text(OUTPUT % (state, "two"))
    found(state, "two", "11111111-2222-3333-4444-555555555555")
    assert "StateRefused" in home.dayfly("run", "net", "--auto-approve", code=1).stdout
    assert home.dayfly("outputs", "net", "at").stdout.strip() == "one"


def test_a_new_executor_does_not_get_the_outputs_of_another_ones_state(home):
    state = home.directory / "net.tfstate"
    for name in ("net", "copy"):
        create(home, name, home.module(name, OUTPUT % (state, "one")), storage={"type": "module"})
    home.dayfly("run", "net", "--auto-approve")
    assert "StateBelongsToAnother" in home.dayfly("run", "copy", "--auto-approve", code=1).stdout
    assert "one" not in home.dayfly("outputs", "copy", code=None).stdout
