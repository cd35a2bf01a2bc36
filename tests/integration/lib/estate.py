"""The module of tests/fixtures/estate with a state that the plain tool made, and its way through dayfly."""

import json
import shutil

from lib.dayfly import ROOT

FIXTURE = ROOT / "tests/fixtures/estate"
DEV, PROD = "environments/dev/eu-west-1.tfvars", "environments/prod/eu-west-1.tfvars"


class Estate:
    """The module in a directory of its user, provisioned by `tofu` or `terraform` alone."""

    def __init__(self, home, name="estate"):
        self.home, self.name = home, name
        self.directory = home.directory / name
        shutil.copytree(FIXTURE, self.directory, ignore=shutil.ignore_patterns("next", "README.md"))
        self.tool("init", "-input=false")
        self.tool("apply", "-auto-approve", "-input=false", f"-var-file={DEV}")
        self.state = self.directory / "terraform.tfstate"

    def tool(self, *args):
        program = next(self.home.bin.iterdir())
        done = self.home.run(program, *args, cwd=self.directory)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def document(self, var_file, **spec):
        """The executor of this module with the variables of one environment."""
        source = {"url": f"file://{self.directory}", "kind": "directory"}
        return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": self.name},
                "spec": {"source": source, "arguments": [f"-var-file={var_file}"],
                         "runtime": {"name": self.home.runtime}, **spec}}

    def apply(self, document):
        self.home.dayfly("apply", "-f", "-", input=json.dumps(document))

    def take_away_state(self):
        """What a user does who has adopted the state: the files of the plain tool go."""
        for file in self.directory.glob("terraform.tfstate*"):
            file.unlink()
        shutil.rmtree(self.directory / ".terraform")

    def lay_next_over(self):
        shutil.copytree(FIXTURE / "next", self.directory, dirs_exist_ok=True)

    # ---- what a run of it must say ----

    def plan(self, *args):
        return self.home.json("plan", self.name, *args)["run"]["status"]

    def provision(self):
        return self.home.json("run", self.name, "--auto-approve")

    def check_adopted(self):
        """The first plan is right: the state is here and nothing of it would change."""
        pushed = json.loads(self.home.dayfly("state", "pull", self.name).stdout)
        own = json.loads(self.state.read_text()) if self.state.exists() else None
        assert own is None or (pushed["lineage"], pushed["outputs"]) == (own["lineage"], own["outputs"])
        status = self.plan()
        assert (status["phase"], status["hasChanges"]) == ("Succeeded", False), status
        answer = self.provision()
        assert answer["run"]["status"]["reason"] == "NoChanges", answer

    def check_changed(self):
        """Moved, imported, forgotten and changed in one run; the second one finds nothing to do."""
        answer = self.provision()
        status = answer["run"]["status"]
        assert status["reason"] == "Applied", answer
        told = {"add": 3, "change": 4, "destroy": 0, "import": 1, "move": 1, "forget": 1, "drift": 0, "other": 0}
        assert status["applySummary"] == told, status
        self.check_outputs(answer["outputs"])
        addresses = self.addresses()
        assert {"terraform_data.new_name", "terraform_data.imported"} <= addresses
        assert not {"terraform_data.old_name", "terraform_data.legacy"} & addresses
        again = self.provision()
        assert again["run"]["status"]["reason"] == "NoChanges", again
        assert again["outputs"] == answer["outputs"]

    def check_outputs(self, outputs):
        values = {name: output.get("value") for name, output in outputs.items()}
        assert values["replicas"] == 3 and values["protected"] is True
        assert values["anything"] == {"free": ["form", 1, None]}
        assert values["umlaut"] == 'größe "quoted"\n<line>'
        assert values["pair"] == ["x", 1, True]
        assert sorted(values["ports"]) == [80, 443]
        assert values["service"]["cpu"] == 0.5
        assert outputs["api_key"]["sensitive"] is True and "value" not in outputs["api_key"]

    def addresses(self):
        state = json.loads(self.home.dayfly("state", "pull", self.name).stdout)
        return {r["type"] + "." + r["name"] for r in state["resources"] if "module" not in r}

    def check_destroyed(self):
        answer = self.home.json("destroy", self.name, "--auto-approve")
        assert answer["run"]["status"]["reason"] == "Destroyed", answer
        assert self.addresses() == set()
