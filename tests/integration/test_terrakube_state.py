"""ApiTerraformStateImpl (2.34): the API keeps state and plan, the executor has no key of a storage."""

import io
import zipfile

import pytest

from lib.executor import Executor
from lib.redis import Redis
from lib.terrakube import Terrakube

MODULE = 'resource "terraform_data" "it" {\n  input = "kept-by-the-api"\n}\n'


@pytest.fixture
def executor(home, tmp_path):
    with Redis(tmp_path / "redis") as redis, Terrakube("2.34", redis=redis) as api:
        yield Executor(home, api, redis)
        assert api.faults == []


def test_the_api_keeps_the_state_and_no_plan_carries_its_token(executor):
    api = executor.api
    net = api.workspace("net", executor.source(text=MODULE))
    job = api.job(net, "terraformPlan", "terraformApply")
    for status in ("pending", "completed"):
        executor.run(job, TerraformStateType="ApiTerraformStateImpl")
        assert job.status == status, executor.said()
    assert "kept-by-the-api" in api.states[net.id].decode() and not api.locks.get(net.id)
    plan = next(body for path, body in api.objects.items() if path.endswith("/terraform.tfstate") and body[:2] == b"PK")
    with zipfile.ZipFile(io.BytesIO(plan)) as parts:
        whole = b"".join(parts.read(name) for name in parts.namelist())
    assert b"http-backend" in whole and b"eyJ" not in whole
    again = api.job(net, "terraformPlan")
    executor.run(again, TerraformStateType="ApiTerraformStateImpl")
    assert (again.status, again.attributes["planChanges"]) == ("completed", False), executor.said()
