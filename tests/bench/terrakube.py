"""The part of `make bench` in which the runner is Terrakube's ephemeral executor, beside Terrakube's own.

That one (2.28.0) was measured elsewhere: medians of three runs on 2 cores, the same module, the tool already there. Its times until the
exit of the process include tool, git and API; ours beside them do not, because our limits are about our own part."""

import contextlib
import pathlib
import statistics
import time

from lib import dayfly as d
from lib import terrakube
from lib.executor import Executor
from lib.redis import Redis

JAVA = {"first": 6.5, "exit": {"terraformPlan": 58.5, "terraformApply": 63.0}, "mib": 405}  # of both kinds of steps
VARIABLES = {"owner": "oracle", "shout": "test-only-shout"}
TIMED = """#!/bin/bash
began=$EPOCHREALTIME
{program} "$@"
code=$?
echo $began $EPOCHREALTIME >> {log}
exit $code
"""


class Answered(terrakube.Handler):
    """Notes when each request was answered, and sends answers at once, as real servers do."""

    disable_nagle_algorithm = True

    def say(self, *args, **headers):
        super().say(*args, **headers)
        self.asked["answered"] = time.time()


def time_programs(home):
    """tofu and git say when they ran."""
    log = home.directory / "ran"
    log.touch()
    for name, program in (("tofu", (home.bin / "tofu").resolve()), ("git", "/usr/bin/git")):
        with contextlib.suppress(FileNotFoundError):
            (home.bin / name).unlink()
        (home.bin / name).write_text(TIMED.format(program=program, log=log))
        (home.bin / name).chmod(0o755)
    return log


def covered(spans):
    """Seconds that lie in at least one of the spans."""
    total, reached = 0.0, 0.0
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return total


def measure(executor, job, log):
    """(seconds to the first call, seconds that are our own, peak KiB) of the job's next step."""
    api, peak = executor.api, 0
    dispatch = api.dispatch(job)
    job.committed.wait()
    before, ran = len(api.requests), len(log.read_text().splitlines())
    began = time.time()
    pod = executor.start(dispatch)
    while pod.poll() is None:
        with contextlib.suppress(OSError, StopIteration):
            status = pathlib.Path(f"/proc/{pod.pid}/status").read_text().splitlines()
            peak = max(peak, int(next(line for line in status if line.startswith("VmHWM:")).split()[1]))
        time.sleep(0.002)
    ended = time.time()
    executor.finish(pod)
    calls = [(r["time"], r.get("answered", ended)) for r in api.requests[before:]]
    programs = [tuple(map(float, line.split())) for line in log.read_text().splitlines()[ran:]]
    return min(calls)[0] - began, ended - began - covered(calls + programs), peak


def executor(row, quick, work):
    rounds, seen = 3 if quick else 10, {"terraformPlan": [], "terraformApply": []}
    home = d.Home(pathlib.Path(work) / "home", d.tofu())
    log = time_programs(home)
    terrakube.Handler, plain = Answered, terrakube.Handler
    try:
        with Redis(pathlib.Path(work) / "redis") as redis, terrakube.Terrakube("2.33", redis=redis, pause=0, busy=0) as api:
            pods = Executor(home, api, redis)
            source = pods.source()
            for i in range(rounds + 1):
                job = api.job(api.workspace(f"net{i}", source, variables=VARIABLES), *seen)
                for kind in seen:
                    seen[kind].append(measure(pods, job, log))
    finally:
        terrakube.Handler = plain
    firsts = [first * 1000 for kind in seen for first, _, _ in seen[kind][1:]]
    first = statistics.median(firsts)
    row("Terrakube: from the pod's exec to the first call of the API, p50", f"{first:.0f} ms (Java: {JAVA['first'] * 1000:,.0f} ms)", "<= 30 ms",
        first <= 30)
    for kind, runs in seen.items():
        own = statistics.median(own * 1000 for _, own, _ in runs[1:])
        row(f"Terrakube: our own time in {kind}, p50", f"{own:.0f} ms (Java, all in all: {JAVA['exit'][kind]:.1f} s)", "<= 100 ms", own <= 100)
    peak = max(kib for runs in seen.values() for _, _, kib in runs) / 1024
    row("Terrakube: peak resident memory without the tool", f"{peak:.1f} MiB (Java: {JAVA['mib']} MiB)", "<= 12 MiB", peak <= 12)


PARTS = {"terrakube": executor}
