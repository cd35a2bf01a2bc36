"""The runner beside what a real Terrakube API and its own executor, both 2.28.0, said to each other: same calls with equivalent
bodies, same entries in Redis, same objects in the storage. docs/terrakube.md has the differences and their reasons."""

import json
import re

import pytest

from lib import dayfly
from lib.executor import FIXTURES, Executor
from lib.redis import Redis, from_java, to_java
from lib.terrakube import Terrakube

VARIABLES = {"owner": "oracle", "shout": "test-only-shout"}
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# What Terrakube's client sends back as it got it; the API keeps what a PATCH leaves out.
ECHOED = ("tcl", "templateReference")


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tofu):
    """Jobs as the recorded ones, run here: {name: (requests, entries of the stream, step, job, command lines of the tool)}."""
    directory = tmp_path_factory.mktemp("replay")
    done = {}
    with Redis(directory / "redis") as redis, Terrakube("2.28", redis=redis, busy=0) as api:
        executor = Executor(dayfly.Home(directory / "home", tofu), api, redis)
        ran = note_commands(executor.home)

        def run(name, job):
            before, commands = len(api.requests), len(ran.read_text().splitlines())
            step = executor.run(job)
            entries = redis.command("XRANGE", to_java(job.id), "-", "+")
            done[name] = (api.requests[before:], entries, step, job, ran.read_text().splitlines()[commands:])

        net = api.workspace("net", executor.source(), variables=VARIABLES)
        job = api.job(net, "terraformPlan", "terraformApply")
        run("plan", job)
        run("apply", job)
        run("destroy", api.job(net, "terraformDestroy"))
        failing = api.workspace("p", executor.source("p", (FIXTURES / "module-plan-fail.tf").read_text()), variables=VARIABLES)
        run("plan-fail", api.job(failing, "terraformPlan", "terraformApply"))
        breaking = api.workspace("a", executor.source("a", (FIXTURES / "module-apply-fail.tf").read_text()), variables=VARIABLES)
        job = api.job(breaking, "terraformPlan", "terraformApply")
        run("", job)
        run("apply-fail", job)
        done["executor"], done["net"] = executor, net
        yield done


def note_commands(home):
    """The file in which the tool's command lines will stand."""
    real, ran = (home.bin / "tofu").resolve(), home.directory / "ran"
    ran.touch()
    (home.bin / "tofu").unlink()
    (home.bin / "tofu").write_text(f'#!/bin/sh\n[ "$1" = version ] || echo "$*" >> {ran}\nexec {real} "$@"\n')
    (home.bin / "tofu").chmod(0o755)
    return ran


# ---- command lines ----

def words(line):
    """The words of a command line without the variables and the place of the events: their order does not matter to the tool."""
    return sorted(w for w in re.sub(r"--var \S+", "", line).split() if not w.startswith(("-json-into=", "-var-file=")))


@pytest.mark.parametrize("name", ["plan", "apply", "destroy"])
def test_the_tool_is_run_with_the_same_words(runs, name):
    lines = (FIXTURES / f"exec-{name}.txt").read_text().splitlines()
    theirs = [line.split("/tofu ", 1)[1] for line in lines if "/tofu " in line]
    # The outputs are read where a script or the UI gets them.
    assert [words(line) for line in runs[name][4]] == [words(line) for line in theirs if line != "output -json"]
    assert not any(secret in line for line in runs[name][4] for secret in VARIABLES.values())


# ---- calls of the API ----

def shape(path):
    """A path without its ids."""
    return re.sub(r"/job/\d+", "/job/N", re.sub(UUID, "ID", path.partition("?")[0]))


def written(calls):
    """What was written: [(method, shape of the path, attributes)]."""
    found = []
    for method, path, status, body in calls:
        if method in ("POST", "PATCH") and status != 401:
            attributes = {k: v for k, v in json.loads(body)["data"]["attributes"].items() if k not in ECHOED}
            found.append((method, shape(path), attributes))
    return found


def recorded(name):
    lines = (FIXTURES / f"http-{name}.jsonl").read_text().splitlines()
    return [(c["method"], c["path"], c["status"], c["request_body"]) for c in map(json.loads, lines)]


def plain(value):
    """An attribute without ids, host and commit."""
    if not isinstance(value, str):
        return value
    value = re.sub(r"^https?://[^/]+", "URL", re.sub(UUID, "ID", value))
    value = re.sub(r"/job/\d+|(?<=/ID/ID/)\d+(?=/ID/)", "/job/N", value)
    value = re.sub(r"^/.*(?=/\.terraform-spring-boot/)", "HOME", value)
    return re.sub(r"^([0-9a-f]{40}|\d+)$", "X", value)


@pytest.mark.parametrize("name", ["plan", "apply", "destroy", "plan-fail", "apply-fail"])
def test_the_same_is_written_to_the_api_in_the_same_order(runs, name):
    ours = written((r["method"], r["path"], r["status"], r["text"]) for r in runs[name][0])
    theirs = written(recorded(name))
    assert [call[:2] for call in ours] == [call[:2] for call in theirs]
    for (_, path, our), (_, _, their) in zip(ours, theirs):
        status = our.get("status")
        # While a job begins to run, Terrakube's client sends back output, plan and planChanges as it got them.
        left_out = {"output", "terraformPlan", "planChanges"} if status == "running" and path.endswith("/job/N") else set()
        assert {k: plain(v) for k, v in our.items()} == {k: plain(v) for k, v in their.items() if k not in left_out}


@pytest.mark.parametrize("name", ["plan", "apply", "destroy"])
def test_what_is_read_is_no_more_than_the_job(runs, name):
    """Not the index of releases, because the tool is here; the job once more often at the most, to see a cancel."""
    read = [shape(r["path"]) for r in runs[name][0] if r["method"] == "GET"]
    assert set(read) == {"/api/v1/organization/ID/job/N"} and len(read) <= 5
    assert all(r["status"] != 401 for r in runs[name][0])


# ---- Redis ----

def entries_of(raw):
    return [[(from_java(f), from_java(v)) for f, v in zip(fields[::2], fields[1::2])] for _, fields in raw]


def line(text):
    """Without ids and times, which differ between runs."""
    return re.sub(UUID, "ID", re.sub(r"Job \d+", "Job N", re.sub(r"after \d+s", "after 0s", text)))


@pytest.mark.parametrize("name", ["plan", "apply", "destroy"])
def test_the_same_entries_come_to_redis(runs, name):
    _, raw, step, job, _ = runs[name]
    ours = entries_of(raw)
    commands = [json.loads(text) for text in (FIXTURES / f"redis-{name}.decoded.jsonl").read_text().splitlines()]
    theirs = [[tuple(f) for f in c["fields"]] for c in commands if c["cmd"] == "XADD"]
    assert [[k for k, _ in entry] for entry in ours] == [[k for k, _ in entry] for entry in theirs]
    assert [dict(e)["lineNumber"] for e in ours] == [dict(e)["lineNumber"] for e in theirs]
    assert {(dict(e)["jobId"], dict(e)["stepId"]) for e in ours} == {(job.id, step.id)}
    # Resources are created in parallel: their lines may come in any order.
    assert sorted(line(dict(e)["output"]) for e in ours) == sorted(line(dict(e)["output"]) for e in theirs)
    banners = [dict(e)["output"] for e in theirs if "\x1b[32;40;1m" in dict(e)["output"]]
    assert [line(dict(e)["output"]) for e in ours if "\x1b[32;40;1m" in dict(e)["output"]] == [line(b) for b in banners]


# ---- storage ----

def test_the_same_objects_are_stored(runs):
    executor, net = runs["executor"], runs["net"]
    job = runs["plan"][3]
    assert executor.plan(job, runs["plan"][2]).exists()
    for name in ("plan", "apply", "destroy", "plan-fail", "apply-fail"):
        assert executor.output(runs[name][2]), name
    assert len(executor.states(net)) == len(executor.states(net, raw=True)) == 2
    assert {p.name for p in executor.kept.iterdir()} <= {"backend", "output", "state", "binary"}
