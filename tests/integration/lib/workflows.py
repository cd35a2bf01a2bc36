"""The action `workflow`: what asks for one, and what another scheduler leaves in its place."""

import hashlib
import json

from lib.dayfly import DEADLINE, wait_for
from lib.pods import Pods, runner_image

TARGET = "default/deployment/nginx"
JOB = "wfe-f3457dcc8fbcb6d9"  # the lock on it
ACCOUNT = "kubernaut-workflow-runner"


def document(image, name, script="true", target=TARGET, spec=None, volumes=(), **workflow):
    """A TaskAction of this action. volumes: of its pod, [(volume, where it is mounted)]."""
    container = {"name": "workflow", "command": ["sh", "-c", script],
                 "volumeMounts": [{"name": volume["name"], "mountPath": path} for volume, path in volumes]}
    patch = {"terminationGracePeriodSeconds": 1, "volumes": [volume for volume, _ in volumes], "containers": [container]}
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": name},
            "spec": {"action": "workflow", "targetResource": target, "placement": {"podTemplate": {"spec": patch}},
                     "workflow": {"workflowId": "restart-deployment", "executionBundle": image, **workflow},
                     **(spec or {})}}


class Workflows(Pods):
    """A spawner, and what another scheduler asks of it."""

    def __init__(self, home, namespace, tofu, **settings):
        super().__init__(home, namespace, tofu, **settings)
        self.image = runner_image(namespace.cluster, tofu)
        namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})

    def document(self, *args, **kwargs):
        return document(self.image, *args, **kwargs)

    def ask(self, *args, code=0, **kwargs):
        return self.home.dayfly("create", "-f", "-", input=json.dumps(self.document(*args, **kwargs)), code=code)

    def get(self, name):
        return self.home.json("get", "taskaction", name)

    def status(self, name):
        """(reason, message) of the condition Progressing."""
        at = {c["type"]: c for c in self.get(name)["status"]["conditions"]}
        return at["Progressing"]["reason"], at["Progressing"]["message"]

    def wait(self, name, *reasons, seconds=DEADLINE):
        return wait_for(f"{name} to be {reasons}", lambda: (s := self.status(name))[0] in reasons and s, seconds)

    def ended(self, name, seconds=DEADLINE):
        """The document, once it is final."""
        return wait_for(f"{name} to end", lambda: has_ended(task := self.get(name)) and task, seconds)


def has_ended(task):
    true = {c["type"] for c in task["status"].get("conditions", []) if c["status"] == "True"}
    return bool(true & {"Succeeded", "Failed"}) and "Progressing" not in true


def job_of(name, target=TARGET, labels=None, script="true", image=None):
    """A Job that another program made under the name of the lock."""
    lock = "wfe-" + hashlib.sha256(target.encode()).hexdigest()[:16]
    container = {"name": "workflow", "image": image, "command": ["sh", "-c", script]}
    own = {"kubernaut.ai/workflow-execution": name, "kubernaut.ai/source-namespace": "elsewhere"} if name else {}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": lock, "labels": {**own, **(labels or {})}},
            "spec": {"backoffLimit": 0, "template": {"spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}}}}


def is_over(job):
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True"
               for c in job.get("status", {}).get("conditions", []))
