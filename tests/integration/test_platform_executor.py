"""An executor whose runtime is `platform`: its runs plan, deploy and tear down a platform with a real Argo CD."""

import json

import pytest
import yaml

from lib.argo import NAMESPACE, Ground, is_healthy
from lib.control_plane import writes
from lib.dayfly import BUILD
from lib.platform import SCHEMA, Platform, component, config_map, text_of

FILES = {"one/map.yaml": text_of(config_map("one")), "two/map.yaml": text_of(config_map("two"))}
TWO = (component("one"), component("two", "one"))


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with Ground(tmp_path_factory.mktemp("ground")) as running:
        yield running


class Plant:
    """A user with a folder that describes a platform, and its executor."""

    def __init__(self, home, platform):
        self.home, self.platform, self.ground = home, platform, platform.ground
        (home.bin / "dayfly-platform").symlink_to(BUILD / "dayfly-platform")
        platform.dag(*TWO)

    def run(self, *args, code=0, **kwargs):
        self.platform.write_environment()
        kubeconfig = self.ground.kubeconfig_of("dayfly")
        return self.home.dayfly("run", self.platform.config, "--name", "plant", "--tool", "platform", "--env", "ENVIRONMENT=staging",
                                "--env", f"KUBECONFIG_PATH={kubeconfig}", *args, code=code, timeout=200, **kwargs)

    def define(self, environment=None, secrets=()):
        """An executor as people keep it: with its environment and secrets."""
        self.platform.write_environment()
        environment = {"ENVIRONMENT": "staging", "KUBECONFIG_PATH": str(self.ground.kubeconfig_of("dayfly")), **(environment or {})}
        self.home.dayfly("apply", "-f", "-", input=yaml.safe_dump({
            "apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "plant"},
            "spec": {"source": {"url": f"file://{self.platform.config}", "kind": "directory"}, "runtime": {"name": "platform"},
                     "environment": [{"name": n, "value": v} for n, v in environment.items()], "secrets": list(secrets)}}))

    def last(self):
        return max(self.home.json("get", "runs")["items"], key=lambda run: run["spec"]["number"])["status"]

    def report(self, *args):
        return json.loads(self.home.dayfly("outputs", "plant", "report", *args).stdout)


@pytest.fixture
def plant(ground, home, tmp_path, request):
    ground.site.commit(FILES)
    yield Plant(home, Platform(ground, tmp_path / "platform", name=f"p{abs(hash(request.node.name)) % 10**8}"))
    ground.remove_applications()


def test_a_run_deploys_the_platform_and_the_next_one_finds_nothing_to_do(plant):
    first = plant.run("--auto-approve")
    assert is_healthy(plant.ground.app("one")) and is_healthy(plant.ground.app("two"))
    status = plant.last()
    assert (status["phase"], status["reason"], status["planSummary"]["change"]) == ("Succeeded", "Applied", 2), first.stdout
    assert status["tool"]["name"] == "platform"
    report = plant.report()
    SCHEMA.validate(report)
    assert [c["state"] for c in report["components"]] == ["Done", "Done"] and not report["summary"]["dryRun"]
    second = plant.run("--auto-approve")
    assert (plant.last()["phase"], plant.last()["reason"]) == ("Succeeded", "NoChanges")
    assert "Outputs:" not in second.stdout  # the whole report
    assert plant.home.json("get", "executor", "plant")["status"]["mayHoldResources"] is True


def test_a_plan_writes_nothing_and_is_deployed_when_it_is_approved(plant):
    mark = plant.ground.mark()
    plant.run("--no-wait")
    assert plant.last()["phase"] == "WaitingApproval"
    assert writes(plant.ground.audit(mark, user="dayfly")) == []
    log = plant.home.dayfly("logs", "plant-1").stdout
    assert 'Done: would be created and synchronized component="one"' in log
    plant.home.dayfly("approve", "plant-1", timeout=200)
    assert (plant.last()["phase"], plant.last()["reason"]) == ("Succeeded", "Applied")
    assert is_healthy(plant.ground.app("two"))


def test_a_dry_run_reports_what_would_be_done_and_does_nothing(plant):
    mark = plant.ground.mark()
    plant.run("--action", "dry-run")
    assert (plant.last()["phase"], plant.last()["reason"]) == ("Succeeded", "Planned")
    assert plant.report("--run", "plant-1")["metrics"]["writes"] == 2
    assert writes(plant.ground.audit(mark, user="dayfly")) == []


def test_a_commit_that_came_behind_the_plan_is_not_deployed(plant):
    plant.run("--no-wait")
    plant.ground.site.commit({**FILES, "one/more.yaml": text_of(config_map("more"))})
    mark = plant.ground.mark()
    refused = plant.home.dayfly("approve", "plant-1", code=1, timeout=200)
    assert plant.last()["reason"] == "PlanStale" and "gitRevision main is the commit" in plant.last()["message"], refused.stderr
    assert writes(plant.ground.audit(mark, user="dayfly")) == []


def test_a_component_that_fails_fails_the_run_and_is_named(plant):
    plant.ground.site.commit({**FILES, "one/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\nnonsense: {a: 1}\n"})
    plant.run("--auto-approve", code=2)
    status = plant.last()
    assert (status["phase"], status["reason"]) == ("Failed", "ApplyFailed")
    assert "dayfly-platform deploy: one: " in status["message"]
    executor = plant.home.json("get", "executor", "plant")["status"]
    assert (executor["status"], executor["mayHoldResources"]) == ("error", True)


def test_a_destroy_tears_down_what_was_deployed(plant):
    plant.run("--auto-approve")
    plant.run("--action", "destroy", "--no-wait")
    assert plant.last()["planSummary"]["destroy"] == 2
    assert plant.ground.app("one")
    plant.home.dayfly("approve", "plant-2", timeout=200)
    assert (plant.last()["phase"], plant.last()["reason"]) == ("Succeeded", "Destroyed")
    assert plant.ground.names("application", NAMESPACE) == []
    plant.home.dayfly("delete", "executor", "plant")


def test_a_destroy_removes_what_an_earlier_one_has_left(plant):
    """The Applications are gone, and nothing else: as after a teardown that was killed."""
    plant.run("--auto-approve")
    plant.ground.remove_applications()
    assert plant.ground.get("namespace", plant.platform.space("one"))
    plant.run("--action", "destroy", "--no-wait")
    assert (plant.last()["phase"], plant.last()["planSummary"]["destroy"]) == ("WaitingApproval", 0)
    plant.home.dayfly("approve", "plant-2", timeout=200)
    assert (plant.last()["phase"], plant.last()["reason"]) == ("Succeeded", "Destroyed")
    plant.ground.wait_gone("namespace", plant.platform.space("one"))


def test_a_platform_is_validated_on_demand(plant):
    plant.run("--auto-approve")
    mark = plant.ground.mark()
    plant.run("--action", "validate")
    assert (plant.last()["phase"], plant.last()["reason"], plant.last()["message"]) == ("Succeeded", "Validated", "2 components are healthy")
    assert writes(plant.ground.audit(mark, user="dayfly")) == []
    plant.ground.patch("application", "two", NAMESPACE, {"metadata": {"finalizers": None}})
    plant.ground.delete("application", "two", NAMESPACE)
    plant.ground.wait_gone("application", "two", NAMESPACE)
    plant.run("--action", "validate", code=1)
    assert plant.last()["reason"] == "ValidationFailed" and "two" in plant.last()["message"]
    report = plant.report("--run", "plant-3")
    assert (report["summary"]["action"], report["summary"]["exitCode"] > 0) == ("validate", True)


def test_a_module_is_not_validated(home):
    module = home.module("net", 'output "a" { value = 1 }')
    refused = home.dayfly("run", module, "--action", "validate", code=None)
    assert refused.returncode and "only a platform is validated" in refused.stderr, refused.stderr


def test_stored_secrets_are_where_the_program_looks_for_them(plant):
    """A secret `registry` with the key `.dockerconfigjson`, as the file registry/.dockerconfigjson."""
    plant.home.dayfly("secret", "set", "registry", ".dockerconfigjson", input='{"auths": {"registry.example": {"auth": "YTpi"}}}')
    plant.define(secrets=[{"name": "registry", "keys": [".dockerconfigjson"], "as": "file", "env": "REGISTRY_FILE"}])
    plant.home.dayfly("run", "plant", "--auto-approve", timeout=200)
    assert plant.ground.get("secret", "dayfly-registry", plant.platform.space("one"))["type"] == "kubernetes.io/dockerconfigjson"
    assert "YTpi" not in plant.home.dayfly("logs", "plant-1").stdout + json.dumps(plant.report())


def test_a_secret_is_in_no_message_and_in_no_log(plant):
    """Whatever has it in its name. An admin sees it in the report, as in any output."""
    plant.ground.site.commit({"hunter2hunter2/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\nnonsense: {a: 1}\n"})
    plant.platform.dag(component("hunter2hunter2"))
    plant.home.dayfly("secret", "set", "word", "WORD", input="hunter2hunter2")
    plant.define(secrets=[{"name": "word", "as": "env"}])
    plant.home.dayfly("run", "plant", "--auto-approve", code=2, timeout=200)
    status = plant.last()
    assert status["reason"] == "ApplyFailed" and "synchronization failed" in status["message"]
    assert "hunter2" not in json.dumps([status, plant.home.dayfly("logs", "plant-1").stdout])


def test_a_program_that_leaves_no_report_fails_the_run(plant):
    (plant.home.bin / "dayfly-platform").unlink()
    (plant.home.bin / "dayfly-platform").write_text(f"#!/bin/sh\n[ $1 != version ] || exec {BUILD}/dayfly-platform version\nexit 9\n")
    (plant.home.bin / "dayfly-platform").chmod(0o755)
    plant.run("--auto-approve", code=1)
    assert plant.last()["reason"] == "PlanFailed" and "ended with exit code 9 and left no report" in plant.last()["message"]


def test_wrong_input_fails_the_plan_with_each_fault(plant):
    plant.platform.environment["timeouts"] = {"sync": "10"}
    plant.run("--auto-approve", code=1)
    assert plant.last()["reason"] == "PlanFailed"
    assert "environment.yaml:" in plant.last()["message"] and "timeouts.sync" in plant.last()["message"]


@pytest.mark.parametrize("arguments", [("--var", "a=1"), ("--var-file", "a.tfvars")])
def test_variables_of_a_module_are_refused(plant, arguments):
    (plant.home.directory / "a.tfvars").write_text("a = 1\n")
    refused = plant.run("--auto-approve", *arguments, code=None, cwd=plant.home.directory)
    assert refused.returncode and "executor plant is a platform" in refused.stderr, refused.stderr


def test_a_plan_that_knew_no_commit_is_not_deployed(plant):
    """Its repository was away: what was approved then is not what a branch leads to later."""
    plant.ground.site.stop()
    try:
        plant.run("--no-wait")
    finally:
        plant.ground.site.start()
    assert plant.last()["phase"] == "WaitingApproval"
    mark = plant.ground.mark()
    refused = plant.home.dayfly("approve", "plant-1", code=1, timeout=200)
    assert plant.last()["reason"] == "PlanStale" and "and not unknown to the plan" in plant.last()["message"], refused.stderr
    assert writes(plant.ground.audit(mark, user="dayfly")) == []


@pytest.fixture
def bare(home):
    """A user with a folder of a platform, whose cluster nobody has seen."""
    config = home.module("bare", "", **{"environment.yaml": yaml.safe_dump(
        {"name": "bare", "domain": "plant.example", "gitRepository": "https://git.example/platform.git", "gitRevision": "main"})})
    (config / "main.tf").unlink()
    return home


def run_bare(home, *args, code=1, **kwargs):
    return home.dayfly("run", home.directory / "bare", "--tool", "platform", "--env", "ENVIRONMENT=staging", "--env", "TARGET_SCOPE=platform",
                       "--env", "KUBECONFIG_PATH=/nowhere/kubeconfig", *args, code=code, **kwargs)


def test_the_variables_of_a_platform_are_shown_and_the_tools_configuration_stays_at_home(bare):
    (bare.bin / "dayfly-platform").symlink_to(BUILD / "dayfly-platform")
    ran = run_bare(bare, env={"TF_CLI_CONFIG_FILE": "/nowhere/tofurc"})
    assert "dayfly-platform deploy: KUBECONFIG_PATH: open /nowhere/kubeconfig: No such file" in ran.stdout, ran.stdout
    assert "TF_CLI_CONFIG_FILE" not in ran.stderr, ran.stderr


def test_without_the_program_a_step_says_how_to_have_it(bare):
    ran = run_bare(bare)
    assert "ToolMissing: no platform is here" in ran.stdout and "dayfly-platform comes with dayfly" in ran.stdout, ran.stdout
    assert "No OpenTofu, Terraform or dayfly-platform" in bare.dayfly("why", "bare-1").stdout


def play(home, report, code=0):
    """A dayfly-platform that ends with this report, and says which variables it got."""
    (home.directory / "report").write_text(json.dumps({"components": [], "failures": [], "metrics": {"writes": 0}, **report}))
    (home.bin / "dayfly-platform").write_text(f"""#!/bin/sh
[ $1 != version ] || exec {BUILD}/dayfly-platform version
echo "$1 DRY_RUN=$DRY_RUN EXPECTED_COMMIT=$EXPECTED_COMMIT."
cat {home.directory}/report >$REPORT_PATH
exit {code}
""")
    (home.bin / "dayfly-platform").chmod(0o755)


SUMMARY = {"name": "bare", "environment": "staging", "status": "success"}


def test_an_apply_expects_the_commit_of_its_plan_and_none_if_that_knew_none(bare):
    play(bare, {"summary": {**SUMMARY, "commit": "a" * 40}, "metrics": {"writes": 1}})
    assert f"deploy DRY_RUN=false EXPECTED_COMMIT={'a' * 40}." in run_bare(bare, "--auto-approve", code=0).stdout
    play(bare, {"summary": SUMMARY, "metrics": {"writes": 1}})
    assert "deploy DRY_RUN=false EXPECTED_COMMIT=unknown to the plan." in run_bare(bare, "--auto-approve", code=0).stdout


def test_a_destroy_goes_on_also_if_no_component_is_left(bare):
    play(bare, {"summary": SUMMARY, "metrics": {"writes": 1}})
    run_bare(bare, "--auto-approve", code=0)
    play(bare, {"summary": SUMMARY})
    ran = run_bare(bare, "--action", "destroy", "--auto-approve", code=0)
    assert "teardown DRY_RUN=true" in ran.stdout and "teardown DRY_RUN=false" in ran.stdout, ran.stdout


def test_a_deploy_without_changes_names_what_is_not_healthy(bare):
    play(bare, {"summary": SUMMARY, "components": [{"name": "one", "health": "Degraded"}, {"name": "two", "health": "Healthy"}]})
    ran = run_bare(bare, code=0)
    assert "nothing is to be written, but one is Degraded" in ran.stdout and "two is" not in ran.stdout, ran.stdout
    assert "Outputs:" not in ran.stdout


@pytest.mark.parametrize("command", [("rm", "bare", "a.b"), ("list", "bare"), ("pull", "bare")])
def test_commands_on_a_state_are_refused(bare, command):
    run_bare(bare)
    refused = bare.dayfly("state", *command, code=None)
    assert refused.returncode and "executor bare is a platform: it has no state to work on" in refused.stderr, refused.stderr
