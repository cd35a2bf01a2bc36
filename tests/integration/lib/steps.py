"""Steps of dayfly-runner alone, from files."""

import json
import pathlib

from . import dayfly

HELLO = """
variable "name" { default = "world" }
variable "password" {
  default   = "none"
  sensitive = true
}
resource "terraform_data" "hello" { input = "hello ${var.name}" }
output "greeting" { value = terraform_data.hello.output }
output "secret" {
  value     = var.password
  sensitive = true
}
"""


class Steps:
    """The steps of one run: one module, one state, one report directory; a work directory each."""

    def __init__(self, home, text=HELLO, **files):
        self.home = home
        self.module = home.module("module", text, **files)
        self.state = home.directory / "kept.tfstate"
        self.report = home.directory / "report"
        self.count = 0
        self.plan_result = None

    def document(self, action, **changes):
        document = {
            "uid": f"uid-{self.count}", "run": "hello-1", "action": action, "runtime": {"name": self.home.runtime},
            "tools": {"directories": [str(self.home.bin)], "cacheDirectory": str(self.home.directory / "tools")},
            "source": {"url": f"file://{self.module}", "kind": "directory"},
            "state": {"type": "local", "config": {"path": str(self.state)}},
        }
        if action == "apply" and self.plan_result:
            plan = self.plan_result
            document["expected"] = {"treeDigest": plan["source"]["treeDigest"],
                                    "commit": plan["source"].get("commit"), "toolName": plan["tool"]["name"],
                                    "toolVersion": plan["tool"]["version"],
                                    "lockFileSha256": plan.get("lockFileSha256")}
        document.update(changes)
        return document

    def start(self, action, env=None, work=None, **changes):
        self.count += 1
        self.work = pathlib.Path(work or self.home.directory / f"step-{self.count}")
        self.file = self.home.directory / f"step-{self.count}.json"
        self.file.write_text(json.dumps(self.document(action, **changes)))
        self.output = self.home.directory / f"step-{self.count}.out"
        with open(self.output, "wb") as output:
            return self.home.popen(dayfly.RUNNER, "step", "--file", self.file, "--report-dir", self.report,
                                   "--work-dir", self.work, stdout=output, stderr=output, env=env)

    def finish(self, process):
        """(exit code, result document)"""
        code = process.wait(timeout=dayfly.DEADLINE * 2)
        path = self.report / "result.json"
        assert path.exists(), f"exit {code}, no result\n{self.output.read_text(errors='replace')}"
        result = json.loads(path.read_text())
        path.unlink()
        return code, result

    def run(self, action, reason, code=0, **changes):
        """Runs a step and insists on its reason and exit code; returns the result document."""
        actual, result = self.finish(self.start(action, **changes))
        said = self.output.read_text(errors="replace")
        assert (result["reason"], result["exitCode"], actual) == (reason, code, code), f"{result}\n{said}"
        if action.startswith("plan"):
            self.plan_result = result
        return result

    def log(self):
        return (self.report / "log").read_text()

    def events(self):
        return [json.loads(line) for line in (self.report / "events").read_text().splitlines()]

    def resources(self):
        if not self.state.exists():
            return {}
        found = json.loads(self.state.read_text())["resources"]
        return {r["name"]: r["instances"][0].get("status", "ok") for r in found}
