"""Runs whose pods keep a ledger outside of them, beside a spawner that is killed: what was promised, as counted."""

import collections
import http.client
import json
import os
import pathlib
import re
import time

from lib.dayfly import wait_for
from lib.pods import Pods, runner_image

FINAL = ("Succeeded", "Failed", "Canceled", "Discarded")
MOUNT = "/ledger"

# Writes down that this pod is there, and stays for as long as the test says: to open a pipe waits for its other end. It is
# sourced: nothing outlives its shell.
HOLD = f"""
pod=$(hostname)
echo "$where $pod" >> {MOUNT}/held
pipe={MOUNT}/hold-"$where"-"${{pod%-*}}"
if [ -p "$pipe" ]; then true 2>/dev/null <"$pipe"; fi
"""

# In front of the image's tofu: counts its starts, and is held before or after what it does.
TOFU = f"""#!/bin/sh
case $1 in
plan | apply) ;;
*) exec /usr/local/bin/tofu "$@" ;;
esac
pod=$(hostname)
echo "$1 $pod" >> {MOUNT}/starts
if [ -e {MOUNT}/hold-before-"${{pod%-*}}" ]; then where=before; . {MOUNT}/bin/hold; fi
if [ -e {MOUNT}/hold-greedy-"${{pod%-*}}" ]; then where=greedy; . {MOUNT}/bin/hold; exec tail /dev/zero; fi
[ -e {MOUNT}/hold-after-"${{pod%-*}}" ] || exec /usr/local/bin/tofu "$@"
/usr/local/bin/tofu "$@"
code=$?
where=after; . {MOUNT}/bin/hold
exit $code
"""

# Two resources, made anew by every run, that write themselves down one after the other; the second may be held.
MODULE = f"""
resource "terraform_data" "first" {{
  triggers_replace = plantimestamp()
  provisioner "local-exec" {{
    command = "echo first $(hostname) >> {MOUNT}/made"
  }}
}}

resource "terraform_data" "second" {{
  depends_on       = [terraform_data.first]
  triggers_replace = plantimestamp()
  provisioner "local-exec" {{
    command = "echo second $(hostname) >> {MOUNT}/made; where=second; . {MOUNT}/bin/hold"
  }}
}}
"""


def step_of(pod):
    """Name of the step by the name of its pod."""
    return pod.rpartition("-")[0]


def made_for(task):
    """Of which the Job of a step has the uid: of the step, or of its standby runner."""
    host = task.get("status", {}).get("engineRef", {}).get("hostUid", "")
    return host if host.startswith("standby-") else task["metadata"]["uid"]


def is_over(job):
    return {c["type"] for c in job["status"].get("conditions", []) if c["status"] == "True"} & {"Complete", "Failed"}


def is_standby(job):
    return "dayfly.dev/standby" in job["metadata"]["labels"]


def applied_in(step):
    """Name of the step that applies in the pod of this one: with one pod for both steps it is called after the plan."""
    return f"{step.removesuffix('-plan')}-apply" if step.endswith("-plan") else step


class Ledger:
    """A directory of the node that every pod of the test writes to."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        (self.directory / "bin").mkdir(parents=True)
        self.directory.chmod(0o777)  # pods are another user
        self.served = {}  # pod of a standby runner -> its step
        for name, text in (("tofu", TOFU), ("hold", HOLD)):
            (self.directory / "bin" / name).write_text(text)
            (self.directory / "bin" / name).chmod(0o755)

    def placement(self, image):
        """What brings it into the pods, with our tofu in front of theirs, and a container before the runner to hold it."""
        volume = {"name": "ledger", "hostPath": {"path": str(self.directory), "type": "Directory"}}
        mounts = [{"name": "ledger", "mountPath": MOUNT}]
        before = {"name": "before", "image": image, "command": ["sh", "-c", f"where=start; . {MOUNT}/bin/hold"], "volumeMounts": mounts}
        return {"env": [{"name": "PATH", "value": f"{MOUNT}/bin:/usr/local/bin:/usr/bin"}],
                "podTemplate": {"spec": {"volumes": [volume], "initContainers": [before],
                                         "containers": [{"name": "runner", "volumeMounts": mounts}]}}}

    def lines(self, name):
        """[(word, pod)] of one of its files."""
        file = self.directory / name
        return [tuple(line.split()) for line in file.read_text().splitlines()] if file.exists() else []

    def step_in(self, pod):
        return self.served.get(pod, step_of(pod))

    def note_served(self, tasks):
        """What the names of the pods of standby runners do not say."""
        self.served.update({task["status"]["claimedBy"]["podName"]: task["metadata"]["name"] for task in tasks
                            if made_for(task) != task["metadata"]["uid"] and "claimedBy" in task["status"]})

    def starts(self):
        """{(verb, step): how often tofu was started for it}"""
        return collections.Counter((verb, applied_in(self.step_in(pod)) if verb == "apply" else self.step_in(pod))
                                   for verb, pod in self.lines("starts"))

    def made(self, run):
        return [word for word, pod in self.lines("made") if applied_in(self.step_in(pod)) == f"{run}-apply"]

    def hold(self, where, step):
        os.mkfifo(self.directory / f"hold-{where}-{step}")

    def let_go(self, where, step):
        """Whoever waits goes on, and whoever comes later does not wait."""
        pipe = self.directory / f"hold-{where}-{step}"
        end = os.open(pipe, os.O_RDWR)
        pipe.unlink()
        os.close(end)

    def wait_held(self, where, step, seconds=90):
        """Waits until a pod of the step is held there, and returns the pod's name."""
        def seen():
            return next((pod for word, pod in self.lines("held") if word == where and step_of(pod) == step), None)
        return wait_for(f"{step} to be held at {where}", seen, seconds)


class World(Pods):
    """A spawner that may be killed at any time and comes back at the same address, and what its pods wrote down."""

    def __init__(self, home, namespace, tofu, config=None, **kubernetes):
        self.ledger = Ledger(home.directory / "ledger")
        self.image = runner_image(namespace.cluster, tofu)
        super().__init__(home, namespace, tofu, config={"log": {"level": "info"}, **(config or {})}, **kubernetes)

    def start(self):
        super().start()
        self.server.listen = self.server.url.partition("://")[2]  # pods know no other
        return self

    def ask(self, method, path, body=None, key=None):
        """One request, repeated until it is answered; a spawner that is dead is started again. (status, document)"""
        headers = {"Authorization": f"Bearer {self.home.env['DAYFLY_TOKEN']}", **({"Idempotency-Key": key} if key else {})}
        end = time.monotonic() + 60
        while True:
            if self.server.process.poll() is not None:
                self.start()
            try:
                status, _, answer = self.server.request(method, path, body, headers)
                if status != 503:
                    return status, json.loads(answer) if answer else None
            except (OSError, http.client.HTTPException, ValueError):
                pass
            assert time.monotonic() < end, f"{method} {path} is not answered"
            time.sleep(0.005)

    def get(self, path):
        status, document = self.ask("GET", path)
        assert status == 200, (path, status, document)
        return document

    def make(self, name, module=MODULE, placement=None, **spec):
        """An executor whose pods have the ledger."""
        mounted = self.ledger.placement(self.image)
        self.executor(name, module, placement={**mounted, **(placement or {})}, **spec)

    def request(self, name, key, action="provision"):
        """Asks for a run; its name."""
        status, run = self.ask("POST", f"/v1/executors/{name}/runs", {"action": action, "autoApprove": True}, key)
        assert status in (200, 201), run
        return run["metadata"]["name"]

    def tasks(self):
        return self.get("/v1/taskactions?limit=1000")["items"]

    def final(self, run):
        """The run's status once it is over, else None."""
        status = self.get(f"/v1/runs/{run}")["status"]
        return status if status.get("phase") in FINAL else None

    def finish(self, run, seconds=90):
        return wait_for(f"{run} to end", lambda: self.final(run), seconds)

    def resources(self, executor):
        status, state = self.ask("GET", f"/v1/executors/{executor}/state")
        return sorted(r["name"] for r in state["resources"]) if status == 200 else []

    def check_run(self, run, reason="Applied"):
        """It ended so, and all that it made is in the state."""
        status = self.final(run)
        expected = "Succeeded" if reason == "Applied" else "Failed"
        assert (status["phase"], status["reason"]) == (expected, reason), (run, status)
        self.ledger.note_served(self.tasks())
        made = self.ledger.made(run)
        assert made == sorted(set(made)), made
        assert made == self.resources(re.sub(r"-\d+$", "", run)), run
        if reason == "Applied":
            assert made == ["first", "second"], run
        return status

    def check_at_most_once(self):
        self.ledger.note_served(self.tasks())
        twice = {key: n for key, n in self.ledger.starts().items() if n > 1}
        assert not twice, twice

    def nobodys(self, tasks):
        """Jobs of standby runners that have no step and are not over: one whose runner was sent away just before a spawner was
        killed goes by its TTL."""
        known = {made_for(task) for task in tasks}
        return [job for job in self.namespace.get("jobs")
                if is_standby(job) and job["metadata"]["name"] not in known and not is_over(job)]

    def check_nothing_left(self, executors):
        """No Job that lives or that no step knows, no pod that lives, no Secret, no lock."""
        def lives(pod):
            return pod["status"].get("phase") not in ("Succeeded", "Failed")

        wait_for("the last pod", lambda: not [p for p in self.namespace.get("pods") if lives(p)])
        wait_for("the last Job", lambda: all(is_over(j) for j in self.namespace.get("jobs")))
        wait_for("the last Secret", lambda: not self.namespace.get("secrets"))
        for executor in executors:
            path = f"/v1/executors/{executor}/state/lock"
            wait_for(f"the lock of {executor}", lambda path=path: self.ask("GET", path)[0] == 204)
            assert "activeRun" not in self.get(f"/v1/executors/{executor}")["status"]
        wait_for("the last standby runner", lambda: not self.nobodys(self.tasks()))
        for job in self.namespace.get("jobs"):
            labels = job["metadata"]["labels"]
            if is_standby(job):
                continue
            task = self.get(f"/v1/taskactions/{job['metadata']['name']}")
            assert labels["dayfly.dev/step-uid"] == made_for(task), labels
