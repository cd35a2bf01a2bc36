"""dayfly-runner alone: how a step ends before its time."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

from lib import dayfly
from lib.dayfly import wait_for
from lib.steps import Steps

# One resource is done at once; the other waits for a gate that never opens.
SLOW = """
resource "terraform_data" "first" { input = "first" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "touch %s; exec sleep 1000" }
}
"""


def descendants_of_session(marker):
    """Command lines of living processes that mention the marker."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            words = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if str(marker).encode() in words and dayfly.alive(entry):
            found.append(int(entry))
    return found


@pytest.fixture
def slow(either_home):
    """A run whose apply hangs: (steps, file that says that it does)."""
    begun = either_home.directory / "begun"
    steps = Steps(either_home, SLOW % begun)
    steps.run("plan", "Planned")
    return steps, begun


def gone(marker):
    wait_for("every process of the step to be gone", lambda: not descendants_of_session(marker))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_canceled_apply_stores_its_state_and_says_what_changed(slow, number):
    steps, begun = slow
    process = steps.start("apply")
    wait_for("the apply to hang", begun.exists)
    process.send_signal(number)
    code, result = steps.finish(process)
    assert (code, result["reason"], result["exitCode"]) == (2, "Canceled", 2)
    assert steps.resources()["first"] == "ok"
    assert steps.log().lower().count("interrupt received") == 1
    gone(steps.work)
    begun.unlink()
    (steps.module / "main.tf").write_text('resource "terraform_data" "first" { input = "first" }')
    steps.run("plan", "Planned")  # the lock is free again
    steps.run("apply", "Applied")


def test_a_step_out_of_time_is_stopped_like_one_canceled(slow):
    steps, begun = slow
    code, result = steps.finish(steps.start("apply", timeoutSeconds=3))
    assert begun.exists(), "three seconds were not enough to begin"
    assert (code, result["reason"]) == (4, "TimedOut")
    assert "3 s" in result["message"]
    assert steps.resources()["first"] == "ok"
    gone(steps.work)


def test_what_ignores_the_interrupt_is_killed_after_the_grace_period(home):
    begun = home.directory / "begun"
    steps = Steps(home, f"""
resource "terraform_data" "deaf" {{
  provisioner "local-exec" {{
    command     = "trap '' INT TERM; touch {begun}; while :; do sleep 0.1; done"
  }}
}}
""")
    steps.run("plan", "Planned")
    process = steps.start("apply", graceSeconds=1)
    wait_for("the apply to hang", begun.exists)
    process.send_signal(signal.SIGTERM)
    code, result = steps.finish(process)
    assert result["reason"] == "Canceled" and code in (1, 2)
    gone(steps.work)


def test_daemons_of_provisioners_do_not_outlive_the_step(home):
    pid = home.directory / "pid"
    steps = Steps(home, f"""
resource "terraform_data" "daemon" {{
  provisioner "local-exec" {{
    command = "setsid sh -c 'echo $$ > {pid}; exec sleep 1000' </dev/null >/dev/null 2>&1 & sleep 0.2"
  }}
}}
""")
    steps.run("plan", "Planned")
    steps.run("apply", "Applied")
    wait_for("the daemon to say its pid", lambda: pid.exists() and pid.read_text().strip())
    assert not dayfly.alive(int(pid.read_text()))


def test_a_killed_runner_does_not_take_tofu_along(either_home):
    """Whoever started the runner interrupts tofu then; alone, tofu comes to its own end and stores its state."""
    begun, gate = either_home.directory / "begun", either_home.directory / "gate"
    steps = Steps(either_home, f"""
resource "terraform_data" "slow" {{
  provisioner "local-exec" {{
    command = "touch {begun}; while [ ! -e {gate} ]; do sleep 0.05; done; seq 2000"
  }}
}}
""")
    steps.run("plan", "Planned")
    process = steps.start("apply")
    wait_for("the apply to wait", begun.exists)
    pid = int((steps.work / "tofu.pid").read_text().split()[0])
    process.kill()
    process.wait()
    assert dayfly.alive(pid)
    gate.touch()  # from here on tofu writes to pipes that nobody reads
    gone(steps.work)
    assert not (steps.work / "result.json").exists()
    assert steps.resources() == {"slow": "ok"}
    assert not (steps.state.parent / f".{steps.state.name}.lock.info").exists(), "the lock is released"


def test_a_step_stopped_before_tofu_runs_never_starts_it(steps, tmp_path):
    fifo = tmp_path / "handoff"
    os.mkfifo(fifo)
    process = steps.home.popen(dayfly.RUNNER, "step", "--file", fifo, "--report-dir", steps.report,
                               "--work-dir", tmp_path / "work", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with open(fifo, "w", encoding="ascii") as f:  # opens when the runner reads its document
        process.send_signal(signal.SIGTERM)
        f.write(json.dumps(steps.document("plan")))
    code, result = steps.finish(process)
    assert (code, result["reason"]) == (1, "Canceled")
    assert not (tmp_path / "work" / "tofu.pid").exists()
    process.stderr.close()


def test_two_runners_do_not_share_a_work_directory(slow):
    steps, begun = slow
    first = steps.start("apply")
    wait_for("the apply to hang", begun.exists)
    second = steps.home.run(dayfly.RUNNER, "step", "--file", steps.file, "--report-dir", steps.home.directory / "other",
                            "--work-dir", steps.work)
    assert second.returncode == 3 and "another runner" in second.stderr
    first.send_signal(signal.SIGTERM)
    assert steps.finish(first)[1]["reason"] == "Canceled"
