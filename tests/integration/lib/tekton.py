"""Tekton in the cluster of the tests: its two resources, served by the real API server, and their statuses as its controller
writes them. The controller itself cannot be had here. Field names, reasons and messages are those of tekton.dev/v1 at
3ee1745 (contracts: kubernaut, §3.1 and §3.2); what the controller does to an object is named at each function."""

import json

from lib.dayfly import wait_for

GROUP = "tekton.dev"
TEXT = {"type": "string"}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
POD_TEMPLATE = ("affinity", "dnsConfig", "securityContext", "nodeSelector")
POD_TEMPLATE_LISTS = ("tolerations", "volumes", "imagePullSecrets", "hostAliases", "topologySpreadConstraints", "env")
POD_TEMPLATE_REST = {**{name: TEXT for name in ("dnsPolicy", "priorityClassName", "runtimeClassName", "schedulerName")},
                     **{name: {"type": "boolean"} for name in ("automountServiceAccountToken", "enableServiceLinks", "hostNetwork")}}


def fields(**properties):
    return {"type": "object", "properties": properties}


def many(item):
    return {"type": "array", "items": item}


PARAM = fields(name=TEXT, value={"x-kubernetes-preserve-unknown-fields": True})
PIPELINE_RUN = fields(
    pipelineRef=fields(name=TEXT, resolver=TEXT, params=many(PARAM)),
    params=many(PARAM),
    status=TEXT,
    timeouts=fields(pipeline=TEXT, tasks=TEXT, **{"finally": TEXT}),
    workspaces=many(fields(name=TEXT, secret=fields(secretName=TEXT), configMap=fields(name=TEXT))),
    taskRunTemplate=fields(serviceAccountName=TEXT, podTemplate=fields(
        **{name: FREE for name in POD_TEMPLATE}, **{name: many(FREE) for name in POD_TEMPLATE_LISTS}, **POD_TEMPLATE_REST)))


def definition(kind, spec):
    plural = f"{kind.lower()}s"
    schema = fields(apiVersion=TEXT, kind=TEXT, metadata={"type": "object"}, spec=spec, status=FREE)
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [version]}}


DEFINITIONS = [definition("PipelineRun", PIPELINE_RUN), definition("TaskRun", FREE)]
NAMES = [f"crd/{d['metadata']['name']}" for d in DEFINITIONS]


def install(cluster):
    cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": DEFINITIONS}))
    wait_for("Tekton's resources", lambda: cluster.kubectl("wait", "--for=condition=Established", *NAMES, check=False).returncode == 0)
    cluster.api.kinds = None  # they are looked up anew


def remove(cluster):
    cluster.kubectl("delete", "--wait=true", *NAMES, check=False)
    cluster.api.kinds = None


def succeeded(status, reason, message=""):
    return {"conditions": [{"type": "Succeeded", "status": status, "reason": reason, "message": message}]}


class Controller:
    """What Tekton's controller writes of the runs in one namespace."""

    def __init__(self, namespace):
        self.namespace = namespace

    def write(self, kind, name, status):
        api = self.namespace.cluster.api
        api.ask("PATCH", f"{api.path(kind, self.namespace.name, name)}/status", {"status": status}, kind="application/merge-patch+json")

    def run_of(self, name):
        return self.namespace.wait("pipelinerun", name, lambda run: True)

    def begin(self, name, *tasks):
        """It has resolved the Pipeline and made a TaskRun for each of these tasks, which has the labels of the run."""
        labels = self.run_of(name)["metadata"]["labels"]
        children = []
        for task in tasks:
            child = f"{name}-{task}"
            children.append({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": child, "pipelineTaskName": task})
            self.namespace.apply({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "spec": {},
                                  "metadata": {"name": child, "labels": {**labels, "tekton.dev/pipelineRun": name}}})
        message = f"Tasks Completed: 0 (Failed: 0, Cancelled 0), Incomplete: {len(tasks)}, Skipped: 0"
        self.write("pipelinerun", name, {"startTime": "2026-11-29T12:00:00Z", "childReferences": children,
                                         **succeeded("Unknown", "Running", message)})

    def task_ends(self, run, task, code=0, pod=None):
        """The pod of a task has ended: reason and message as of a step that failed."""
        steps = [{"name": "main", "container": "step-main", "terminated": {"exitCode": code, "reason": "Completed" if not code else "Error"}}]
        how = succeeded("True", "Succeeded", "All Steps have completed executing") if not code else \
            succeeded("False", "Failed", f"\"step-main\" exited with code {code}")
        self.write("taskrun", f"{run}-{task}", {**how, "steps": steps, **({"podName": pod} if pod else {})})

    def end(self, name, status="True", reason="Succeeded", message="Tasks Completed: 1 (Failed: 0, Cancelled 0), Skipped: 0"):
        self.write("pipelinerun", name, {"completionTime": "2026-11-29T12:01:00Z", **succeeded(status, reason, message)})

    def end_canceled(self, name):
        """What it makes of spec.status: Cancelled."""
        self.namespace.wait("pipelinerun", name, lambda run: run["spec"].get("status") == "Cancelled")
        self.end(name, "False", "Cancelled", f'PipelineRun "{name}" was cancelled')
