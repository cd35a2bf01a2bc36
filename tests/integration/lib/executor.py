"""dayfly-runner as the ephemeral executor of Terrakube: what its pods have, and what they leave in LocalTerraformStateImpl."""

import os
import pathlib
import subprocess

import yaml

from lib import dayfly

FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures" / "terrakube"
MODULE = (FIXTURES / "module.tf").read_text()
PLAN = "terraformLibrary.tfPlan"


def chart_objects():
    """What Terrakube's chart makes, as it was recorded."""
    return list(yaml.safe_load_all((FIXTURES / "chart-4.7.4.yaml").read_text()))


class Executor:
    """Pods with one HOME, as a shared volume gives them."""

    def __init__(self, home, api, redis):
        self.home, self.api, self.redis = home, api, redis
        self.kept = home.directory / ".terraform-spring-boot" / "local"
        self.temporary = home.directory / "tmp"
        self.temporary.mkdir()
        self.count, self.log, self.jobs = 0, None, set()
        api.saved = self.saved

    def source(self, name="module", text=MODULE, **files):
        """A repository with this module; its URL."""
        directory = self.home.module(name, text, **files)
        self.commit = self.home.repository(directory)
        return f"file://{directory}"

    def start(self, dispatch, **env):
        """The pod of a dispatched step."""
        self.count += 1
        self.jobs.add(dispatch.job)
        self.log = self.home.directory / f"pod-{self.count}.log"
        with open(self.log, "wb") as log:
            return self.home.popen(dayfly.RUNNER, env={**self.api.env(), **dispatch.env, "TMPDIR": str(self.temporary), **env},
                                   stdout=log, stderr=log)

    def finish(self, pod, code=0):
        """Waits for its end, and insists on the exit code; nothing may be left of it."""
        try:
            actual = pod.wait(timeout=dayfly.DEADLINE * 2)
        except subprocess.TimeoutExpired:
            pod.kill()
            raise
        for job in self.jobs:  # what the API does at their dispatch and their ends would meet the next job
            assert job.committed.wait(dayfly.DEADLINE) and job.settled.wait(dayfly.DEADLINE)
        assert actual == code, f"exit {actual}\n{self.said()}"
        assert not os.listdir(self.temporary), os.listdir(self.temporary)

    def run(self, job, code=0, **env):
        """Dispatches the next step and runs it to its end; the step."""
        dispatch = self.api.dispatch(job)
        self.finish(self.start(dispatch, **env), code)
        return dispatch.step

    def said(self):
        return self.log.read_text(errors="replace")

    # ---- what the storage has ----

    def saved(self, organization, job, step):
        path = self.kept / "output" / organization / job / f"{step}.tfoutput"
        return path.read_text() if path.exists() else None

    def output(self, step):
        job = next(job for job in self.api.jobs.values() if step in job.steps)
        return self.saved(self.api.organization, job.id, step.id)

    def state(self, workspace):
        """The state as the backend has it."""
        return self.kept / "backend" / self.api.organization / workspace.id / "terraform.tfstate"

    def states(self, workspace, raw=False):
        """The states that the UI has, without the raw ones or these alone."""
        directory = self.kept / "state" / self.api.organization / workspace.id / "state"
        return sorted(p for p in directory.glob("*.json") if p.name.endswith(".raw.json") == raw)

    def plan(self, job, step):
        return self.kept / "state" / self.api.organization / job.workspace.id / job.id / step.id / PLAN
