"""Our own State Service: where each step stands, and every transition as server-sent events."""

import json
import threading

import pytest

from lib.dayfly import DAYFLY, DEADLINE, Server, wait_for
from lib.transitions import Events, key

MODULE = 'resource "terraform_data" "a" {\n  input = timestamp()\n}\n'  # each run has something to do
SLOW = """
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "while [ ! -e %s ]; do sleep 0.05; done"
  }
}
"""


def history(server, step):
    return [key({"taskAction": step, "state": event})
            for event in server.get(f"/v1/states/{step}")["transitions"]]


@pytest.fixture
def net(home, server):
    """An executor, and how to run it."""
    module = home.module("net", MODULE)
    home.dayfly("create", "-f", "-", input=f"""
kind: Executor
metadata: {{name: net}}
spec: {{source: {{url: 'file://{module}', kind: directory}}}}
""")
    return lambda: home.dayfly("run", "net", "--auto-approve")


def test_a_state_is_the_last_transition_and_the_list_has_those_of_all(server, net):
    net()
    plan = server.get("/v1/states/net-1-plan")
    assert [event["phase"].removeprefix("ACTION_PHASE_") for event in plan["transitions"]] == \
        ["QUEUED", "INITIALIZING", "RUNNING", "SUCCEEDED"]
    assert plan["state"] == plan["transitions"][-1]
    assert plan["state"]["id"] == {"run": {"project": "default", "domain": "default", "name": "net-1"}, "name": "plan"}
    assert plan["uid"] == server.get("/v1/taskactions/net-1-plan")["metadata"]["uid"]
    states = server.get("/v1/states?namePrefix=net-1")["items"]
    assert {state["taskAction"]: state["state"]["phase"] for state in states} == \
        {"net-1-plan": "ACTION_PHASE_SUCCEEDED", "net-1-apply": "ACTION_PHASE_SUCCEEDED"}
    first = server.get("/v1/states?limit=1")
    assert len(first["items"]) == 1 and first["nextCursor"]
    assert server.request("GET", "/v1/states/net-9-plan")[0] == 404


def test_a_watcher_is_told_each_transition_once_and_in_order(server, net):
    net()
    wait_for("the steps to be settled",
             lambda: not server.get("/v1/taskactions?label=dayfly.dev/unfinished=true")["items"])
    watcher = Events(server)
    assert watcher.until("sentinel") == []  # what is over is no news
    net()
    found = watcher.phases_until_end_of("net-2-apply")
    for step in ("net-2-plan", "net-2-apply"):
        assert [entry for entry in found if entry[0] == step] == history(server, step)
    assert len(found) == len(set(found))
    watcher.close()


def test_a_watcher_is_first_shown_where_the_steps_stand_that_are_not_over(home, server, net):
    marker = home.directory / "go-on"
    module = home.module("slow", SLOW % marker)
    home.dayfly("create", "-f", "-", input=f"""
kind: Executor
metadata: {{name: slow}}
spec: {{source: {{url: 'file://{module}', kind: directory}}}}
""")
    before = Events(server)
    before.until("sentinel")
    client = home.popen(DAYFLY, "run", "slow", "--auto-approve")
    while key(json.loads(before.next()["data"]))[0::2] != ("slow-1-apply", "RUNNING"):
        pass
    late = Events(server)
    assert [key(state)[0::2] for state in late.until("sentinel")] == [("slow-1-apply", "RUNNING")]
    marker.touch()
    assert [entry[0::2] for entry in late.phases_until_end_of("slow-1-apply")] == [("slow-1-apply", "SUCCEEDED")]
    assert client.wait(DEADLINE) == 0
    before.close()
    late.close()


@pytest.mark.parametrize("restart", [False, True], ids=["the client", "the spawner"])
def test_who_comes_back_with_the_last_id_misses_nothing(home, server, net, restart):
    watcher = Events(server)
    watcher.until("sentinel")
    net()
    seen = watcher.phases_until_end_of("net-1-apply")
    watcher.close()
    net()
    if restart:
        server.stop()
        server.start()
    again = Events(server, watcher.last)
    seen += map(key, again.until("sentinel"))
    net()
    seen += again.phases_until_end_of("net-3-apply")
    again.close()
    for run in (1, 2, 3):
        for step in (f"net-{run}-plan", f"net-{run}-apply"):
            mine = list(dict.fromkeys(entry for entry in seen if entry[0] == step))
            assert mine == history(server, step)
    # What was seen before is not told again, but for the steps that were still written to.
    assert seen.count(("net-1-plan", 0, "QUEUED")) == 1


def test_a_watcher_of_a_stopping_server_is_told_so(home):
    server = Server(home).start()
    watcher = Events(server)
    watcher.until("sentinel")
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    assert watcher.next()["event"] == "stopping"
    stopper.join()
    assert server.process.returncode == 0
