"""An apply that waits in its middle for what a test does to it."""

import contextlib
import json
import os
import pathlib
import signal

from lib.dayfly import DEADLINE, wait_for

# Writes a line into its ledger, then waits for the file `go` in it.
SLOW = """
resource "terraform_data" "first" {
  input = 1
}
resource "terraform_data" "slow" {
  input = terraform_data.first.output
  provisioner "local-exec" { command = "echo started >> /ledger/starts; %s" }
}
output "n" { value = terraform_data.first.output }
"""
UNTIL_GO = "while [ ! -e /ledger/go ]; do sleep 0.5; done"


class Mid:
    """An apply that waits in its middle, and what its module wrote down."""

    def __init__(self, world, ledgers, name, command=UNTIL_GO, placement=None, module=None, pod_of="apply", **spec):
        self.world, self.name = world, name
        self.ledger = ledgers / name
        self.ledger.mkdir(parents=True)
        self.ledger.chmod(0o777)
        patch = {"spec": {"volumes": [{"name": "ledger", "hostPath": {"path": str(self.ledger)}}], "containers": [
            {"name": "runner", "volumeMounts": [{"name": "ledger", "mountPath": "/ledger"}]}]}}
        world.executor(name, module or SLOW % command, placement={"podTemplate": patch, **(placement or {})}, **spec)
        self.is_usual = not module
        self.run = world.ask(name)
        self.job = f"{self.run}-{pod_of}"  # of the pod in which it is

    def starts(self):
        path = self.ledger / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def wait_middle(self):
        wait_for(f"{self.job} to be in its middle", self.starts, 3 * DEADLINE)
        if self.is_usual:  # what the runner knows of it has arrived: a killed one takes the last moments with it
            self.world.wait_log(self.run, "terraform_data.first: Creation complete")
        self.pod = self.world.pod_of(self.job)["metadata"]["name"]

    def go(self):
        (self.ledger / "go").touch()

    def state(self):
        """Addresses in the stored state."""
        shown = self.world.home.dayfly("state", "show", self.name, code=None).stdout
        return [f"{r['type']}.{r['name']}" for r in json.loads(shown)["resources"]] if shown else []


# ---- what ends it from outside -----------------------------------------------------------------------------

def evict(world, mid):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": mid.pod, "namespace": world.namespace.name}}
    world.namespace.kubectl("create", "--raw", f"/api/v1/namespaces/{world.namespace.name}/pods/{mid.pod}/eviction", "-f", "-",
                            input=json.dumps(body))


def limit(kind):
    def to_a_second(world, mid):
        name = mid.pod if kind == "pod" else mid.job
        world.namespace.kubectl("patch", kind, name, "--type=merge", "-p", '{"spec": {"activeDeadlineSeconds": 1}}')
    return to_a_second


def delete(kind, *how):
    def gone(world, mid):
        world.namespace.kubectl("delete", kind, mid.pod if kind == "pod" else mid.job, "--wait=false", *how)
    return gone


def kill_runner(world, mid):
    """From outside its pod, as the kernel would."""
    uid = world.pod_of(mid.job)["metadata"]["uid"]
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if uid in (entry / "cgroup").read_text() and (entry / "comm").read_text().strip() == "dayfly-runner":
                os.kill(int(entry.name), signal.SIGKILL)
