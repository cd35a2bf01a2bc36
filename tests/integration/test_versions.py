"""What is left of an older version in the middle of an upgrade: definitions in the cluster, and a replica."""

import json
import re

import pytest
import yaml

from lib import crds
from lib.dayfly import DAYFLY, ROOT, wait_for
from lib.pods import VERSION
from lib.replicas import Replicas

OLD = "0.0.9" if len(VERSION) == 5 else "0" * len(VERSION)
# Fields that came after the first definitions, by the plural of their kind.
NEWER = {"executors": ["separateApprover", "integrations", "retention"], "runs": ["priority", "moveTo"], "taskactions": ["priority"]}


@pytest.fixture
def old_definitions(exclusive, tmp_path):
    """Definitions without some fields, for everybody; with those of this checkout again afterwards."""
    items = []
    for plural, names in NEWER.items():
        definition = yaml.safe_load((crds.DIRECTORY / f"{plural}.yaml").read_text())
        spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for name in names:
            del spec["properties"][name]
        spec["x-kubernetes-validations"] = [r for r in spec.get("x-kubernetes-validations", []) if not any(n in r["rule"] for n in names)]
        items.append(definition)
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    crds.install(exclusive)
    try:
        exclusive.kubectl("replace", "-f", path)
        yield
    finally:
        exclusive.kubectl("apply", "--server-side", "--force-conflicts", "-k", ROOT / "rbac/crds")
        crds.established(exclusive, crds.GROUP)


@pytest.fixture
def old_program(tmp_path):
    """This spawner under the number of another version."""
    path = tmp_path / "dayfly-old"
    path.write_bytes(DAYFLY.read_bytes().replace(VERSION.encode() + b"\0", OLD.encode() + b"\0"))
    path.chmod(0o755)
    return path


def definitions_by_doctor(world, home):
    found = json.loads(home.dayfly("doctor", "--config", home.directory / "replica1.yaml", "--no-probe", "-o", "json", code=None).stdout)
    return [(f["level"], f["message"]) for f in found["findings"] if f["check"] == "custom-resources"]


def test_runs_go_through_an_upgrade_of_one_replica_after_the_other_on_older_definitions(home, old_definitions, old_program, namespace, tofu):
    world = Replicas(home, namespace, tofu)
    old, new = world.spawners
    old.program = old_program
    old.start()
    wait_for("the old one to lead", lambda: world.leader() == 0)
    world.start()
    try:
        world.make("net")
        world.ledger.hold("second", "net-1-apply")
        run = world.request("net", "one")
        world.ledger.wait_held("second", f"{run}-apply")
        old.program = new.program  # it is started again, as that
        old.kill()
        wait_for("the new one to lead", lambda: world.leader() == 1)
        world.ledger.let_go("second", f"{run}-apply")
        assert world.finish(run)["reason"] == "Applied"
        # A wish that the definitions cannot hold is refused: nothing is left out silently.
        wish = {"action": "provision", "autoApprove": True, "priority": 7}
        status, answer = world.ask("POST", "/v1/executors/net/runs", wish, "two")
        assert status == 400 and "the cluster's definition of runs does not have a field of net-2" in answer["detail"], answer
        again = world.request("net", "three")
        assert world.finish(again)["reason"] == "Applied"
        world.check_at_most_once()
        said = definitions_by_doctor(world, home)
        for plural, fields in (("executors", ["integrations", "retention", "separateApprover"]), ("runs", ["moveTo", "priority"]),
                               ("taskactions", ["priority"])):
            told, = [message for level, message in said if level == "warn" and f"definition of {plural} is older" in message]
            assert set(re.findall(r"spec\.(\w+)", told)) == set(fields) and "`make install`" in told
        assert [level for level, _ in said] == ["warn"] * 3 + ["ok"]
    finally:
        world.__exit__()
