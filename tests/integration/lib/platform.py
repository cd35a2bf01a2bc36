"""Runs dayfly-platform with files and variables of a test, against a ground of lib/argo.py."""

import dataclasses
import json
import os
import subprocess

import jsonschema
import yaml

from lib.argo import is_established
from lib.control_plane import writes
from lib.dayfly import BUILD, ROOT

PROGRAM = BUILD / "dayfly-platform"
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/platform-report.schema.json").read_text()))


def config_map(name, namespace=None, **data):
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **where}, "data": data or {"a": "1"}}


def deployment(name, replicas=1, **labels):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name, **{k.replace("__", "/"): v for k, v in labels.items()}}},
                                  "spec": {"containers": [{"name": "main", "image": "registry.example/main:1"}]}}}}


def claim(name):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}


def stateful_set(name, template):
    """As charts write one: the API server adds kind, apiVersion and status to the template of its claims."""
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "registry.example/main:1"}]}}
    made = {k: v for k, v in claim(template).items() if k in ("metadata", "spec")}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {"replicas": 1, "serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": pod,
                     "volumeClaimTemplates": [made]}}


def definition(group, version, kind, scope="Namespaced"):
    plural = kind.lower() + "s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope, "names": {"kind": kind, "plural": plural},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": schema}]}}


def define(ground, *definitions):
    ground.apply(None, *definitions)
    for one in definitions:
        ground.wait("crd", one["metadata"]["name"], None, is_established)


def text_of(*objects):
    return yaml.safe_dump_all(objects)


@dataclasses.dataclass
class Ended:
    code: int
    output: str
    report: dict
    audit: list

    @property
    def writes(self):
        return writes(self.audit)

    def component(self, name):
        return next(c for c in self.report["components"] if c["name"] == name)

    def states(self):
        return {c["name"]: c["state"] for c in self.report["components"]}

    def lines(self):
        return [json.loads(line) for line in self.output.splitlines()]


class Platform:
    """One environment: its files, and what the program is told besides."""

    def __init__(self, ground, directory, name="plant", **environment):
        self.ground, self.directory, self.name = ground, directory, name
        self.config, self.secrets, self.manifests = (directory / d for d in ("config", "secrets", "manifests"))
        for folder in (self.config, self.secrets):
            folder.mkdir(parents=True)
        self.environment = {"name": name, "domain": "plant.example", "gitRepository": ground.site.url, "gitRevision": "main",
                            "timeouts": {"sync": "60s", "health": "60s"}, "retries": {"maxAttempts": 3, "backoff": "1s"}, **environment}
        self.prefix = []  # of the command: lib/island.py
        self.env = {"ENVIRONMENT": "staging", "LOG_FORMAT": "json", "REPORT_PATH": str(directory / "report.json")}

    def dag(self, *components):
        (self.config / "dag.yaml").write_text(self.dag_text(*components))

    def dag_text(self, *components):
        """namespace=None: the component has none."""
        spaced = [{"namespace": self.space(c["name"]), **c} for c in components]
        return yaml.safe_dump({"components": [{k: v for k, v in c.items() if v is not None} for c in spaced]})

    def space(self, component):
        """The namespace of a component: no other test has it."""
        return f"{self.name}-{component}"

    def write_environment(self):
        (self.config / "environment.yaml").write_text(yaml.safe_dump(self.environment))

    def start(self, action, *args, **env):
        self.write_environment()
        env = {"PATH": os.environ["PATH"], "TMPDIR": str(self.directory), "KUBECONFIG_PATH": str(self.ground.kubeconfig_of("dayfly")),
               **self.env, **env}
        return subprocess.Popen(
            [*self.prefix, PROGRAM, action, "--config", self.config, "--secrets", self.secrets, "--manifests", self.manifests, *args],
            env={k: v for k, v in env.items() if v is not None}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def end(self, process, mark, code=None):
        output = process.communicate(timeout=240)[0]
        path = self.directory / "report.json"
        report = json.loads(path.read_text()) if path.exists() else {}
        if report:
            SCHEMA.validate(report)
        ended = Ended(process.returncode, output, report, self.ground.audit(mark, user="dayfly"))
        assert code is None or ended.code == code, f"exit {ended.code}, not {code}\n{output}\n{json.dumps(report, indent=1)}"
        return ended

    def run(self, action, code=0, *args, **env):
        (self.directory / "report.json").unlink(missing_ok=True)
        mark = self.ground.mark()
        return self.end(self.start(action, *args, **env), mark, code)


def component(name, *depends, **more):
    return {"name": name, "stack": "foundation", "path": name, "dependsOn": list(depends), **more}
