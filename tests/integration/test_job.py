"""One Kubernetes Job a step: plan and apply in pods of their own, on a real cluster."""


import pytest

from lib.pods import Pods

MODULE = """
variable "n" { default = 1 }
variable "password" {
  default   = "none"
  sensitive = true
}
resource "terraform_data" "a" {
  input = var.n
  provisioner "local-exec" { command = "echo made in $(hostname) as $(id -u)" }
}
output "n" { value = terraform_data.a.output }
"""


@pytest.fixture
def pods(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        yield world


def test_plan_and_apply_are_two_jobs_with_a_pod_each(pods):
    pods.executor("net", MODULE)
    answer = pods.run("net")
    assert answer["run"]["status"]["reason"] == "Applied", answer
    assert answer["outputs"]["n"]["value"] == 1
    jobs = {j["metadata"]["name"] for j in pods.namespace.get("jobs")}
    assert jobs == {"net-1-plan", "net-1-apply"}
    names = {p["metadata"]["name"] for p in pods.namespace.get("pods")}
    assert len(names) == 2
    claimed = [s["claimedBy"] for s in (pods.document("taskactions", f"net-1-{a}")["status"] for a in ("plan", "apply"))]
    assert {c["podName"] for c in claimed} == names
    assert "made in net-1-apply" in pods.home.dayfly("logs", "net-1").stdout


def test_a_plan_beside_a_run_that_waits_has_a_job_of_its_own(pods):
    pods.executor("net", MODULE)
    pods.home.dayfly("run", "net", "--no-wait")
    planned = pods.home.json("plan", "net", "--var", "n=2")["run"]["status"]
    assert (planned["phase"], planned["beside"]) == ("Succeeded", "net-1")
    assert {j["metadata"]["name"] for j in pods.namespace.get("jobs")} == {"net-1-plan", "net-2-plan"}
    pods.home.dayfly("approve", "-f", "net-1")
    assert pods.document("runs", "net-1")["status"]["reason"] == "Applied"
