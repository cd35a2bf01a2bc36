"""Commands of a template in Groovy, which Terrakube's executor runs within itself: here by the real groovy."""

import functools
import os
import subprocess

import pytest

from lib import dayfly
from lib.executor import Executor
from lib.redis import Redis
from lib.terrakube import Terrakube

SCRIPT = """
println "what it prints"
terrakubeOutput << "${new Greeter().greet(owner)} in job ${jobId} of ${workspaceId}, ${terraformOutputJson.length()} bytes of outputs\\n"
"""


@functools.cache
def groovy():
    return subprocess.run([dayfly.ROOT / "tests/tools/get-groovy"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.fixture
def executor(home, tmp_path):
    with Redis(tmp_path / "redis") as redis, Terrakube("2.33", redis=redis) as api:
        yield Executor(home, api, redis)
        assert api.faults == []


def test_a_groovy_command_has_its_job_its_classes_and_its_output(executor):
    api = executor.api
    tools = executor.source("tools", "", **{"Greeter.groovy": 'class Greeter {\n  String greet(name) { "hello $name" }\n}\n'})
    net = api.workspace("net", executor.source(text=""), variables={"owner": "oracle"})
    env = {"TerrakubeToolsRepository": tools, "PATH": f"{groovy()}:{os.environ['PATH']}"}

    def run(script):
        command = {"runtime": "GROOVY", "script": script, "priority": 100, "before": False, "after": False, "verbose": False, "beforeInit": False}
        job = api.job(net, ("customScripts", {"commandList": [command]}))
        step = executor.run(job, **env)
        return step.status, executor.output(step), job

    status, said, job = run(SCRIPT)
    assert status == "completed" and f"what it prints\nhello oracle in job {job.id} of {net.id}, 0 bytes of outputs" in said, said
    status, said, _ = run('throw new IllegalStateException("not today")')
    assert status == "failed" and "not today" in said and "Script Exit Code ==>1" in said, said
