"""kill -9 of the spawner and of the runner, at any moment: what was promised must still hold.

The sweep kills the spawner at its n-th system call that somebody outside could notice, from its start to the end of a
provision, starts another one on the same data directory, and looks at the end. `make check` takes 100 points spread
over the run; DAYFLY_CRASH_POINTS=all (`make crash-sweep`) takes every one.
"""

import http.client
import json
import os
import pathlib
import shlex
import shutil
import signal
import time

import pytest

from lib.dayfly import BUILD, DEADLINE, Home, Server, alive

KILLAT = BUILD / "tools" / "killat"
POINTS = os.environ.get("DAYFLY_CRASH_POINTS", "100")
FINAL = ("Succeeded", "Failed", "Canceled", "Discarded")

# What was made outside is written into a ledger there; {ledger} once for each resource.
MODULE = """
resource "terraform_data" "first" {{
  provisioner "local-exec" {{
    command = "echo first >> {ledger}; for i in 1 2 3; do echo tick $i; sleep 0.02; done"
  }}
}}

resource "terraform_data" "second" {{
  depends_on = [terraform_data.first]
  provisioner "local-exec" {{
    command = "echo second >> {ledger}"
  }}
}}
"""


def parse(answer):
    try:
        return json.loads(answer)
    except ValueError:
        return None


class World:
    """One user, one data directory, one executor with the module, and a tofu that counts its starts."""

    def __init__(self, directory, tofu, module=MODULE):
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.ledger = directory / "ledger"
        self.starts = directory / "starts"
        tool = directory / "tool" / "tofu"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\necho \"$1\" >> {self.starts}\nexec {tofu} \"$@\"\n")
        tool.chmod(0o755)
        self.home = Home(directory / "home", tool)
        self.module = self.home.module("net", module.format(ledger=self.ledger))
        self.server = Server(self.home)
        self.data = self.server.data

    def ask(self, method, path, body=None, headers=None):
        """One request, repeated as long as nobody answers; a spawner that is dead is started again."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                status, _, answer = self.server.request(method, path, body, headers)
                if status != 503:
                    return status, parse(answer)
            except (OSError, http.client.HTTPException):
                pass
            if self.server.process.poll() is not None:
                self.restart()
            assert time.monotonic() < end, f"{method} {path} is not answered"
            time.sleep(0.005)

    def restart(self):
        self.acknowledged = self.streams()
        self.server.start()

    acknowledged = {}

    def streams(self):
        """What lies in the logs: at least what was acknowledged."""
        return {p.name: p.read_bytes() for p in self.data.glob("blobs/**/logs/*")}

    def provision(self):
        """Makes the executor and one run of it; returns the run's name."""
        executor = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"},
                    "spec": {"source": {"url": f"file://{self.module}"}}}
        status, answer = self.ask("POST", "/v1/executors", executor, {"Idempotency-Key": "executor"})
        assert status in (200, 201), answer
        status, answer = self.ask("POST", "/v1/executors/net/runs", {"action": "provision", "autoApprove": True},
                                  {"Idempotency-Key": "run"})
        assert status in (200, 201), answer
        return answer["metadata"]["name"]

    def get(self, path):
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer

    def wait(self, what, condition):
        """Waits for something while a spawner lives. It is asked seldom: every answer is calls to be killed at."""
        end = time.monotonic() + DEADLINE
        while not (value := condition()):
            assert time.monotonic() < end, f"waited in vain for {what}"
            self.ask("GET", "/livez")
            time.sleep(0.05)
        return value

    def finish(self, run):
        return self.wait(f"the end of {run}", lambda: self.final(run))

    def final(self, run):
        status = self.get(f"/v1/runs/{run}")["status"]
        return status if status.get("phase") in FINAL else None

    def resources(self):
        """Names of the resources in the state."""
        status, state = self.ask("GET", "/v1/executors/net/state")
        return sorted(r["name"] for r in state["resources"]) if status == 200 else []

    def engine_keeps(self):
        """Directories of steps, and the names that are taken."""
        steps = self.data / "steps"
        return set(os.listdir(steps)) | set(os.listdir(steps / "by-name"))

    def processes(self):
        """What was started for steps of this data directory and still lives."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(self.data / "steps").encode() in words and alive(entry.name):
                found.append(entry.name)
        return found


def check_promises(world, run, status):
    # tofu acted at most once.
    starts = world.starts.read_text().split()
    assert starts.count("plan") <= 1 and starts.count("apply") <= 1, starts
    made = sorted(world.ledger.read_text().split()) if world.ledger.exists() else []
    assert made == sorted(set(made)), made
    # An end with a reason; here nothing stands in the way of the true one.
    assert (status["phase"], status["reason"]) == ("Succeeded", "Applied"), status
    # Everything that was made is in the state.
    assert made == ["first", "second"] and world.resources() == made
    executor = world.get("/v1/executors/net")["status"]
    assert (executor["state"], executor["status"]) == ("provisioned", "done"), executor
    assert "activeRun" not in executor
    # What was acknowledged of the log is the beginning of the log.
    for name, before in world.acknowledged.items():
        assert world.streams()[name].startswith(before), name
    for step in ("plan", "apply"):
        log = world.ask("GET", f"/v1/taskactions/{run}-{step}")[1]["metadata"]["uid"] + ".log"
        assert b"dayfly: opentofu" in world.streams()[log]
    # Nothing is left: no process, no lock, no step directory, no plan, no half-written file.
    world.wait("the last process", lambda: not world.processes())
    assert world.ask("GET", "/v1/executors/net/state/lock")[0] == 204
    world.wait("the engine to clean up", lambda: world.engine_keeps() == {"at", "by-name", "failed"})
    assert not list(world.data.glob("blobs/**/plans/*"))
    assert not list(world.data.glob("blobs/tmp/*"))


def start_under(world, *options):
    """Starts the spawner under killat; it may be dead before it is ready."""
    try:
        world.server.start(prefix=[KILLAT, *options, "--visible", "--"])
    except AssertionError:
        assert world.server.process.returncode == 128 + signal.SIGKILL, world.server.log.read_text()
        world.restart()


def stop(world):
    """Lets the spawner end by itself, if it has not been killed before."""
    assert world.server.stop() in (0, 128 + signal.SIGKILL), world.server.log.read_text()


def explain(world):
    return f"--- log of dayfly serve\n{world.server.log.read_text()[-8000:]}"


@pytest.fixture(scope="session")
def calls(tofu, tmp_path_factory):
    """How many calls a provision takes. A few runs differ a little; each counts for itself."""
    world = World(tmp_path_factory.mktemp("count"), tofu)
    count = world.home.directory / "calls"
    start_under(world, "--count", count)
    run = world.provision()
    check_promises(world, run, world.finish(run))
    stop(world)
    return int(count.read_text())


def sweep(tofu, directory, points):
    """One provision for each point; what goes wrong is told with its point, after all of them."""
    wrong = []
    for n in points:
        world = World(directory / str(n), tofu)
        try:
            start_under(world, str(n))
            run = world.provision()
            check_promises(world, run, world.finish(run))
            stop(world)
        except AssertionError as error:
            wrong.append(f"killed at call {n}: {error}\n{explain(world)}")
        finally:
            world.server.kill()
        if not wrong:
            shutil.rmtree(directory / str(n))
    assert not wrong, "\n\n".join(wrong)


PARTS = 20


@pytest.mark.parametrize("part", range(PARTS))
def test_a_spawner_killed_at_any_call_comes_to_the_true_end(tofu, tmp_path, calls, part):
    step = 1 if POINTS == "all" else max(1, calls // int(POINTS))
    points = list(range(1, calls + 1, step))
    sweep(tofu, tmp_path, points[part::PARTS])


# ---- the runner, tofu, and two of them at once

SLOW = """
resource "terraform_data" "a" {{
  provisioner "local-exec" {{
    command = "echo a >> {ledger}; sleep 0.3"
  }}
}}

resource "terraform_data" "b" {{
  depends_on = [terraform_data.a]
  provisioner "local-exec" {{
    command = "echo b >> {ledger}; sleep 0.3"
  }}
}}

resource "terraform_data" "c" {{
  depends_on = [terraform_data.b]
  provisioner "local-exec" {{
    command = "echo c >> {ledger}; sleep 0.3"
  }}
}}
"""


@pytest.fixture
def slow(tofu, tmp_path):
    world = World(tmp_path, tofu, SLOW)
    world.server.start()
    yield world
    try:
        assert world.server.stop() == 0, explain(world)
    finally:
        world.server.kill()


def until_made(world, name):
    """The run that is applying and has just begun to make this resource."""
    run = world.provision()
    world.wait(f"{name} to be made", lambda: world.ledger.exists() and name in world.ledger.read_text().split())
    return run


def pid_of(world, run, what):
    """Process of the apply step: "runner" or "tofu"."""
    return int((world.data / "steps/by-name" / f"{run}-apply" / f"{what}.pid").read_text().split()[0])


def check_nothing_is_lost(world, run, reason):
    status = world.finish(run)
    assert (status["phase"], status["reason"]) == ("Failed", reason), status
    assert status["message"]
    made = sorted(world.ledger.read_text().split())
    assert world.resources() == made, explain(world)
    assert world.ask("GET", "/v1/executors/net/state/lock")[0] == 204
    assert world.starts.read_text().split().count("apply") == 1
    return status


def check_next_run_works(world):
    _, answer = world.ask("POST", "/v1/executors/net/runs", {"action": "provision", "autoApprove": True})
    status = world.finish(answer["metadata"]["name"])
    assert (status["phase"], status["reason"]) == ("Succeeded", "Applied"), status
    assert world.resources() == ["a", "b", "c"]


@pytest.mark.parametrize("resource", ["a", "b", "c"])
def test_a_runner_that_is_killed_in_mid_apply_loses_nothing(slow, resource):
    run = until_made(slow, resource)
    os.kill(pid_of(slow, run, "runner"), signal.SIGKILL)
    status = check_nothing_is_lost(slow, run, "RunnerLost")
    assert "killed by signal 9" in status["message"]
    check_next_run_works(slow)


def test_spawner_and_runner_killed_together_lose_nothing(slow):
    run = until_made(slow, "b")
    runner, tofu = pid_of(slow, run, "runner"), pid_of(slow, run, "tofu")
    slow.server.kill()
    os.kill(runner, signal.SIGKILL)
    slow.restart()
    check_nothing_is_lost(slow, run, "RunnerLost")
    assert not alive(tofu)
    check_next_run_works(slow)


def test_a_tofu_that_is_killed_in_mid_apply_leaves_no_lock_behind(slow):
    run = until_made(slow, "b")
    os.kill(pid_of(slow, run, "tofu"), signal.SIGKILL)
    status = slow.finish(run)
    assert status["phase"] == "Failed" and status["reason"], status
    slow.wait("the lock to be free", lambda: slow.ask("GET", "/v1/executors/net/state/lock")[0] == 204)
    slow.wait("the last process", lambda: not slow.processes())


# Two are made at once, the third not before it is killed.
HELD = """
resource "terraform_data" "made" {{
  for_each = toset(["it's", "say \\"x y\\""])
}}

resource "terraform_data" "held" {{
  depends_on = [terraform_data.made]
  provisioner "local-exec" {{
    command = "echo $$ held >> {ledger}; exec sleep 600"
  }}
}}
"""

FAILING = """
resource "terraform_data" "made" {{
}}

resource "terraform_data" "fails" {{
  depends_on = [terraform_data.made]
  provisioner "local-exec" {{
    command = "echo fails >> {ledger}; exit 7"
  }}
}}
"""


@pytest.fixture
def world_of(tofu, tmp_path):
    worlds = []

    def make(module):
        worlds.append(World(tmp_path, tofu, module))
        worlds[0].server.start()
        return worlds[0]

    yield make
    try:
        assert worlds[0].server.stop() == 0, explain(worlds[0])
    finally:
        worlds[0].server.kill()


def made_of(world, run):
    """{address: id} of what tofu's events say is made, as far as they have arrived."""
    uid = world.get(f"/v1/taskactions/{run}-apply")["metadata"]["uid"]
    lines = world.streams().get(f"{uid}.events", b"").decode().split("\n")
    hooks = [e["hook"] for e in map(parse, lines) if e and e["type"] == "apply_complete"]
    return {h["resource"]["addr"]: h["id_value"] for h in hooks}


def unrecorded(world, run):
    return world.get(f"/v1/taskactions/{run}-apply")["status"].get("unrecorded")


def check_unrecorded(world, run, made):
    """The list, and what people see of it."""
    found = unrecorded(world, run)["items"]
    assert {i["address"]: i["id"] for i in found if i["finished"]} == made, found
    assert [i["address"] for i in found if not i["finished"]] == ["terraform_data.held"], found
    message = world.get(f"/v1/runs/{run}")["status"]["message"]
    assert message.endswith(f"; 3 objects may exist that no state records: dayfly why {run}"), message
    why = world.home.dayfly("why", run).stdout
    assert "terraform_data.held: was begun, may exist: look for it" in why
    imports = [shlex.split(line) for line in why.splitlines() if line.strip().startswith("tofu import ")]
    assert {words[2]: words[3] for words in imports} == made, why
    assert imports[0][2] in world.home.dayfly("describe", "taskaction", f"{run}-apply").stdout
    assert "3 objects may exist that no state records" in world.server.log.read_text()


@pytest.mark.parametrize("runner_dies", [True, False])
def test_what_a_killed_tofu_made_and_did_not_store_is_listed(world_of, runner_dies):
    world = world_of(HELD)
    run = until_made(world, "held")
    made = world.wait("two to be made", lambda: len(m := made_of(world, run)) == 2 and m)
    assert sorted(made) == ['terraform_data.made["it\'s"]', 'terraform_data.made["say \\"x y\\""]']
    runner, tofu = pid_of(world, run, "runner"), pid_of(world, run, "tofu")
    if runner_dies:
        os.kill(runner, signal.SIGSTOP)  # or it would report
    os.kill(tofu, signal.SIGKILL)
    if runner_dies:
        os.kill(runner, signal.SIGKILL)  # nothing of the step lives on: tofu was the first process of its namespace
    status = world.finish(run)
    assert (status["phase"], status["reason"]) == ("Failed", "RunnerLost" if runner_dies else "ApplyFailed"), status
    assert world.resources() == []
    check_unrecorded(world, run, made)


def test_a_plain_failed_apply_lists_nothing(world_of):
    world = world_of(FAILING)
    run = until_made(world, "fails")
    status = world.finish(run)
    assert (status["phase"], status["reason"]) == ("Failed", "ApplyFailed"), status
    assert world.resources() == ["fails", "made"]
    assert unrecorded(world, run) is None and "records" not in status["message"]
    assert "that no state records" not in world.home.dayfly("why", run).stdout


def test_a_canceled_apply_lists_nothing(world_of):
    world = world_of(HELD)
    run = until_made(world, "held")
    assert world.ask("POST", f"/v1/runs/{run}/cancel", {})[0] == 200
    assert world.finish(run)["phase"] == "Canceled"
    assert world.resources() == ["held", "made"]
    assert unrecorded(world, run) is None


def test_a_runner_killed_alone_lists_nothing_for_tofu_stores_its_state(world_of):
    world = world_of(HELD)
    run = until_made(world, "held")
    os.kill(pid_of(world, run, "runner"), signal.SIGKILL)
    assert world.finish(run)["reason"] == "RunnerLost"
    assert world.resources() == ["held", "made"]
    assert unrecorded(world, run) is None


def test_a_spawner_killed_again_and_again_comes_to_the_end(slow):
    run = until_made(slow, "a")
    for _ in range(4):
        slow.server.kill()
        slow.restart()
    status = slow.finish(run)
    assert (status["phase"], status["reason"]) == ("Succeeded", "Applied"), status
    assert slow.resources() == sorted(slow.ledger.read_text().split()) == ["a", "b", "c"]


def test_a_second_spawner_on_the_same_data_directory_is_refused(slow):
    second = slow.home.run(slow.server.process.args[0], "serve", "--data-directory", slow.data, "--listen", "127.0.0.1:0")
    assert second.returncode == 1
    holder = f"process {slow.server.process.pid} (dayfly serve) holds the data directory {slow.data}, at {slow.server.url}"
    assert holder in second.stderr
    check_first = slow.provision()
    assert slow.finish(check_first)["phase"] == "Succeeded"


def test_a_run_that_waits_for_approval_survives_any_number_of_spawners(slow):
    executor = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"},
                "spec": {"source": {"url": f"file://{slow.module}"}}}
    slow.ask("POST", "/v1/executors", executor)
    _, run = slow.ask("POST", "/v1/executors/net/runs", {"action": "provision"})
    name = run["metadata"]["name"]
    waiting = lambda: slow.get(f"/v1/runs/{name}")["status"].get("phase") == "WaitingApproval"  # noqa: E731
    slow.wait("the question", waiting)
    assert slow.server.stop() == 0
    slow.restart()
    assert waiting()
    slow.server.kill()
    slow.restart()
    assert waiting()
    assert slow.ask("POST", f"/v1/runs/{name}/approve", {})[0] == 200
    assert slow.finish(name)["phase"] == "Succeeded"
