"""What Terrakube's UI shows of a plan and an apply: rows made of the real tool's events, plan and state."""

import json

import pytest

from lib.executor import Executor
from lib.redis import Redis
from lib.terrakube import Terrakube

MODULE = """
variable "secret" {
  sensitive = true
}
resource "terraform_data" "open" {
  input = "hello"
  provisioner "local-exec" {
    command = "echo from the provisioner"
  }
}
variable "api" {}
resource "terraform_data" "leak" {
  input = "key ${var.api}"
}
resource "terraform_data" "closed" {
  input = var.secret
}
output "greeting" {
  value = terraform_data.open.output
}
output "closed" {
  sensitive = true
  value     = terraform_data.closed.output
}
"""
SECRET, KEY = "of-nobody-but-the-state", "key-in-a-variable-of-the-environment"


@pytest.fixture
def executor(home, tmp_path):
    with Redis(tmp_path / "redis") as redis, Terrakube("2.33", redis=redis) as api:
        yield Executor(home, api, redis)
        assert api.faults == []


def rows(executor, job, key, step):
    return {row["address"]: row for row in job.context[key][step.id]}, json.dumps(job.context)


def test_rows_follow_a_resource_from_plan_to_state_without_its_secrets(executor):
    api = executor.api
    net = api.workspace("net", executor.source(text=MODULE), variables={"secret": SECRET, "api": KEY}, environment={"SERVICE_API_KEY": KEY})
    job = api.job(net, "terraformPlan", "terraformApply")
    plan = executor.run(job)
    planned, text = rows(executor, job, "planStructuredOutput", plan)
    assert SECRET not in text and KEY not in text and job.context["terrakubeUI"] == {plan.id: '<div data-terrakube-structured-plan="true"></div>'}
    assert planned["terraform_data.open"]["action"] == "create" and planned["terraform_data.open"]["status"] == "planned"
    assert planned["terraform_data.open"]["after"]["input"] == "hello" and planned["terraform_data.open"]["afterUnknown"]["output"] is True
    assert planned["terraform_data.leak"]["after"]["input"] == "key ***"
    assert planned["terraform_data.closed"]["after"]["input"] is None and planned["terraform_data.closed"]["changedSensitive"] == {"input": True}

    apply = executor.run(job)
    applied, text = rows(executor, job, "applyStructuredOutput", apply)
    assert SECRET not in text and KEY not in text
    assert {row["status"] for row in applied.values()} == {"applied"}
    assert applied["terraform_data.open"]["after"]["output"] == "hello" and applied["terraform_data.open"]["afterUnknown"]["output"] is False
    assert any("from the provisioner" in line for line in applied["terraform_data.open"]["provisionerOutput"])
    assert "output" not in applied["terraform_data.closed"]["after"] or applied["terraform_data.closed"]["after"]["output"] is None
    outputs = {o["name"]: o["value"] for o in job.context["terraformOutputs"][apply.id]}
    assert outputs == {"greeting": "hello", "closed": None}
    assert set(job.context["planStructuredOutput"]) == {plan.id}
