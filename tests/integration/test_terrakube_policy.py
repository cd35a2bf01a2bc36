"""Policies of Terrakube's API (2.34) on a plan: the real opa (tests/tools/opa), rules in a git repository, the result where the API
looks for it."""

import functools
import json
import os
import subprocess
import time

import pytest

from lib import dayfly
from lib.executor import Executor
from lib.redis import Redis
from lib.terrakube import Terrakube

RULES = """package terraform.analysis

import rego.v1

deny contains {"msg": sprintf("%s is not allowed", [r.type]), "rule_id": "no-type", "resource": r.address} if {
    some r in input.resource_changes
    r.type in data.terrakube.inputs.forbidden
}

warn contains "it is Friday" if data.terrakube.inputs.friday
"""
PLAN = {"resource_changes": [{"address": "terraform_data.x", "type": "terraform_data"}]}
FORBIDDEN = {"forbidden": '["terraform_data"]', "friday": "false"}


@functools.cache
def opa():
    return subprocess.run([dayfly.ROOT / "tests/tools/get-opa"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Checked:
    """The verdict, what people see, and what the API has got."""

    def __init__(self, done, job):
        self.__dict__.update({"reason": "", "message": "", **json.loads(done.stdout)})
        self.log, self.told = done.stderr, job.context.get("policyEvaluation")


@pytest.fixture
def repository(tmp_path):
    """Of rules: net, and what cannot be evaluated."""
    repository = tmp_path / "rules"
    env = {**os.environ, **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}}
    (repository / "net").mkdir(parents=True)
    (repository / "empty").mkdir()
    (repository / "broken").mkdir()
    (repository / "net/rules.rego").write_text(RULES)
    (repository / "empty/readme.md").write_text("no rules\n")
    (repository / "broken/rules.rego").write_text("package terraform.analysis\n\ndeny contains \n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", repository, *words], check=True, env=env)
    return repository


def policy(repository, number=0, /, **more):
    return {"policyId": f"p{number}", "policyName": f"policy {number}", "repository": f"file://{repository}", "branch": "main", "folder": "/net",
            "enforcementLevel": "HARD_MANDATORY", "inputs": FORBIDDEN, **more}


def path_with_opa(path=os.environ["PATH"]):
    return f"{os.path.dirname(opa())}:{path}"


@pytest.fixture
def check(tmp_path, repository):
    """check(policy..., exemptions=[...], path=...): policies on PLAN; a policy is what differs from policy()."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(PLAN))
    with Terrakube(version="2.34") as api:
        def run(*policies, exemptions=(), path=None, away=False, mask=""):
            workspace = api.workspace("net", "file:///nowhere")
            workspace.policies = [policy(repository, i, **p) for i, p in enumerate(policies)]
            workspace.exemptions = list(exemptions)
            job = api.job(workspace, "terraformPlan")
            job.set(status="completed" if not away else "failed")
            payload = tmp_path / f"payload-{job.id}.json"
            payload.write_text(json.dumps(api.payload(job, job.steps[0])))
            work = tmp_path / f"work-{job.id}"
            done = subprocess.run([dayfly.BUILD / "tools/terrakube_policy", payload, plan, work], capture_output=True, text=True, check=False, timeout=60,
                                  env={**os.environ, **api.env(), "HOME": str(tmp_path), "PATH": path or path_with_opa(), "MASK": mask})
            assert done.returncode == 0, done.stdout + done.stderr
            return Checked(done, job)
        yield run


def test_a_hard_policy_that_denies_fails_the_step_and_says_why(check):
    seen = check({})
    assert (seen.hard, seen.soft, seen.reason) == (1, 0, "PolicyFailed")
    assert "[DENY] no-type on terraform_data.x: terraform_data is not allowed" in seen.log
    assert seen.told["status"] == "FAILED" and seen.told["hardMandatoryViolations"] == 1
    assert seen.told["results"][0]["violations"] == [{"ruleId": "no-type", "address": "terraform_data.x", "message": "terraform_data is not allowed",
                                                       "status": "FAILED"}]


@pytest.mark.parametrize("exempted", [False, True], ids=["denied", "exempted"])
def test_the_api_gets_no_secret_that_a_rule_puts_into_its_message(check, exempted):
    exemption = {"policySetId": "p0", "ruleId": "no-type", "ticketReference": "OPS-7", "expiresAt": None}
    seen = check({}, mask="terraform_data", exemptions=[exemption] * exempted)
    (result,) = seen.told["results"]
    (violation,) = result["exemptedViolations" if exempted else "violations"]
    assert (violation["message"], violation["address"]) == ("*** is not allowed", "***.x") and "terraform_data" not in seen.log + json.dumps(seen.told)


@pytest.mark.parametrize("word", ["WAITING_APPROVAL", "SOFT_MANDATORY", "FAILED"])
def test_no_secret_hides_what_the_api_decides_by(check, word):
    seen = check({"enforcementLevel": "SOFT_MANDATORY"}, mask=word)
    (result,) = seen.told["results"]
    assert (seen.told["status"], result["status"], result["violations"][0]["status"]) == ("WAITING_APPROVAL", "WAITING_APPROVAL", "FAILED")
    assert result["enforcementLevel"] == "SOFT_MANDATORY"


def test_a_plan_that_keeps_the_rules_passes(check):
    seen = check({"inputs": {"forbidden": "[]"}}, {"inputs": {"forbidden": '["aws_instance"]'}})
    assert (seen.hard, seen.soft, seen.warnings, seen.reason) == (0, 0, 0, "")
    assert (seen.told["status"], seen.told["totalPolicies"], seen.told["passedRules"]) == ("PASSED", 2, 2)


@pytest.mark.parametrize(("level", "status", "counts"), [("SOFT_MANDATORY", "WAITING_APPROVAL", (0, 1, 0)), ("ADVISORY", "WARNING", (0, 0, 1)),
                                                        ("SOMETHING_NEW", "FAILED", (1, 0, 0))])
def test_the_level_says_what_a_violation_does(check, level, status, counts):
    seen = check({"enforcementLevel": level})
    assert (seen.hard, seen.soft, seen.warnings) == counts and seen.told["status"] == status
    assert seen.reason == ("PolicyFailed" if counts[0] else "")


def test_a_warning_does_not_fail_a_hard_policy(check):
    seen = check({"inputs": {"forbidden": "[]", "friday": "true"}})
    assert (seen.hard, seen.warnings, seen.reason) == (0, 1, "") and "[WARN] policy_rule on global: it is Friday" in seen.log


def test_only_an_exemption_that_is_in_force_takes_a_violation_away(check):
    exemption = {"policySetId": "p0", "ruleId": "no-type", "ticketReference": "OPS-7", "expiresAt": None}
    seen = check({}, exemptions=[exemption])
    assert (seen.hard, seen.exempted, seen.reason) == (0, 1, "") and "[EXEMPTED] no-type on terraform_data.x: OPS-7" in seen.log
    for other in ({"expiresAt": int((time.time() - 60) * 1000)}, {"expiresAt": "soon"},
                  {"expiresAt": 2 * 10**16}, {"expiresAt": 1e300}, {"policySetId": "p1"}, {"ruleId": "other"}):
        assert check({}, exemptions=[{**exemption, **other}]).hard == 1, other
    assert check({}, exemptions=[{**exemption, "expiresAt": int((time.time() + 3600) * 1000)}]).hard == 0


@pytest.mark.parametrize("wrong", [{"folder": "/empty"}, {"folder": "/broken"}, {"folder": "/absent"}, {"folder": "/../.."}, {"branch": "absent"},
                                    {"repository": "file:///nowhere/rules"}], ids=lambda p: next(iter(p.values())))
def test_what_cannot_be_evaluated_denies_whatever_the_level(check, wrong):
    seen = check({"enforcementLevel": "ADVISORY", **wrong})
    assert (seen.hard, seen.reason) == (1, "PolicyFailed")
    assert "[DENY] opa_process_error on policy 0:" in seen.log


def test_the_token_of_a_policy_does_not_go_over_http(check):
    seen = check({"repository": "http://rules.example/rules.git", "accessToken": "ghs-test-only-token"})
    assert (seen.hard, seen.reason) == (1, "PolicyFailed") and "use https" in seen.log


def test_an_image_without_opa_lets_no_plan_pass(check, tmp_path):
    seen = check({}, path="/usr/bin:/bin")
    assert (seen.hard, seen.reason) == (1, "PolicyFailed") and "this image has no opa to evaluate it" in seen.log


def test_soft_violations_that_the_api_does_not_take_fail_the_step(check):
    seen = check({"enforcementLevel": "SOFT_MANDATORY"}, away=True)
    assert seen.reason == "PolicyFailed" and "did not take them to ask for an override" in seen.message


def test_a_plan_that_a_policy_denies_is_neither_stored_nor_applied(home, tmp_path, repository):
    with Redis(tmp_path / "redis") as redis, Terrakube("2.34", redis=redis) as api:
        executor = Executor(home, api, redis)
        net = api.workspace("net", executor.source(text='resource "terraform_data" "x" {}\n'), policies=[policy(repository)],
                            environment={"PATH": "/nowhere"})  # the workspace does not choose the opa
        job = api.job(net, "terraformPlan", "terraformApply")
        step = executor.run(job, PATH=path_with_opa(home.env["PATH"]))
        assert (job.status, step.status) == ("failed", "failed"), executor.said()
        assert "[DENY] no-type on terraform_data.x" in executor.output(step)
        assert not executor.plan(job, step).exists() and not job.attributes["terraformPlan"]
        net.policies = [policy(repository, enforcementLevel="SOFT_MANDATORY")]
        job = api.job(net, "terraformPlan", "terraformApply")
        executor.run(job, PATH=path_with_opa(home.env["PATH"]))
        assert job.status == "pending" and job.context["policyEvaluation"]["status"] == "WAITING_APPROVAL", executor.said()
        assert set(job.context) >= {"policyEvaluation", "planStructuredOutput"}
        assert api.faults == []


@pytest.fixture
def executor(home, tmp_path):
    """Its opa is the real one."""
    home.env["PATH"] = path_with_opa(home.env["PATH"])
    with Redis(tmp_path / "redis") as redis, Terrakube("2.34", redis=redis) as api:
        made = Executor(home, api, redis)
        yield made
        assert api.faults == []


ALLOWED = {"forbidden": "[]", "friday": "false"}
ONE = 'resource "terraform_data" "x" {}\n'


def test_without_a_plan_that_the_policies_saw_nothing_is_applied(executor, repository):
    api = executor.api
    net = api.workspace("net", executor.source(text=ONE), policies=[policy(repository, inputs=ALLOWED)])
    alone = api.job(net, "terraformApply")
    step = executor.run(alone)
    assert (alone.status, step.status) == ("failed", "failed")
    assert "PolicyFailed: the job has policies, but no plan for which they were evaluated: plan first" in executor.output(step)
    planned = api.job(net, "terraformPlan", "terraformApply")
    executor.run(planned)
    place = planned.attributes["terraformPlan"]
    planned.attributes["terraformPlan"] = None  # with the rights of a user
    assert "PolicyFailed" in executor.output(executor.run(planned))
    for form in ("{place}", "/{job}/x{escaped}"):
        other = api.job(net, "terraformApply")
        other.attributes["terraformPlan"] = form.format(place=place, job=other.id, escaped=place.replace("/", "%2F"))
        assert "PolicyFailed" in executor.output(executor.run(other))
    destroy = api.job(net, "terraformPlan", "terraformDestroy")
    executor.run(destroy)
    assert "terraformPlanDestroy" in executor.output(executor.run(destroy))
    assert not executor.state(net).exists()


def test_the_plan_that_the_policies_let_pass_is_applied(executor, repository):
    net = executor.api.workspace("net", executor.source(text=ONE), policies=[policy(repository, inputs=ALLOWED)])
    for kind in ("terraformPlan", "terraformPlanDestroy"):
        job = executor.api.job(net, kind, "terraformApply")
        executor.run(job)
        step = executor.run(job)
        assert (job.status, step.status) == ("completed", "completed"), executor.said()


def command(script, **when):
    return {"commandList": [{"runtime": "BASH", "script": script, "priority": 1, **when}]}


@pytest.mark.parametrize("policed", [True, False], ids=["policies", "no policies"])
def test_a_script_does_not_replace_the_plan_that_was_shown(executor, repository, policed):
    module = ONE.replace("{}", "{\n  count = 0\n}") + 'output "o" {\n  value = 1\n}\n'
    swap = "sed -i 's/count = 0//' main.tf; tofu plan -input=false -out=terraformLibrary.tfPlan && echo swapped"
    net = executor.api.workspace("net", executor.source(text=module), policies=[policy(repository)] if policed else None)
    job = executor.api.job(net, ("terraformPlan", command(swap, after=True)), "terraformApply")
    step = executor.run(job)
    said = executor.output(step)
    assert (job.status, step.status) == ("failed", "failed") and "swapped" in said, said
    assert ("PolicyFailed" if policed else "PlanFailed") + ": terraformLibrary.tfPlan has changed since the plan was shown" in said
    assert not executor.plan(job, step).exists() and not job.attributes["terraformPlan"]


def test_what_a_script_leaves_running_does_not_write_what_the_policies_read(executor, repository):
    rewrite = """cat > ../rewrite <<'X'
while sleep 0.01; do
  if [ -s plan.json ]; then echo '{"resource_changes": []}' > .other; mv .other plan.json; touch ../rewritten; fi
done
X
cd ../secret && setsid bash ../rewrite < /dev/null > /dev/null 2>&1 &
"""
    net = executor.api.workspace("net", executor.source(text=ONE), policies=[policy(repository)])
    job = executor.api.job(net, ("terraformPlan", command(rewrite, before=True)), "terraformApply")
    step = executor.run(job)
    assert (job.status, step.status) == ("failed", "failed"), executor.said()
    assert "[DENY] no-type on terraform_data.x" in executor.output(step)
