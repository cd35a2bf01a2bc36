"""Nothing grows for ever: ended runs, workflows and old versions of states go, and what matters stays."""

import json
import os
import sqlite3
import time
import uuid

from lib.dayfly import DAYFLY, Server, wait_for
from lib.trail import age

MODULE = 'variable "n" { default = 0 }\nresource "terraform_data" "it" { input = var.n }\n'


def serve(home, **keys):
    return Server(home, config="retention:\n" + "".join(f"  {key}: {value}\n" for key, value in keys.items()))


def provision(home, name="net", times=1, module=MODULE):
    home.module(name, module)
    for n in range(times):
        home.dayfly("run", name, "--auto-approve", "--var", f"n={n}", cwd=home.directory)


def names(server, kind):
    return sorted(item["metadata"]["name"] for item in server.get(f"/v1/{kind}")["items"])


def versions(server, executor):
    return [v["version"] for v in server.get(f"/v1/executors/{executor}/state/versions")["items"]]


def days_ago(days):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - days * 86400))


def age_versions(server, days=8, newest=10**6):
    """Makes the versions up to that one older than the week that each stays."""
    for file in (server.data / "blobs" / "data" / "state").glob("*/0*.state"):
        meta, document = file.read_bytes().split(b"\n", 1)
        if int(file.stem) <= newest:
            file.write_bytes(json.dumps({**json.loads(meta), "createdAt": days_ago(days)}).encode() + b"\n" + document)


def blobs(server):
    return sorted(str(p.relative_to(server.data / "blobs")) for p in (server.data / "blobs").rglob("*") if p.is_file())


def test_the_newest_runs_of_each_executor_stay_and_older_ones_go_with_all_that_is_theirs(home):
    with serve(home, runs=0) as server:
        provision(home, "net", times=4)
        provision(home, "db")
        uids = {step["metadata"]["uid"] for step in server.get("/v1/taskactions")["items"] if step["spec"]["runRef"]["name"] in ("net-1", "net-2")}
        assert len(uids) == 4 and any(uid in blob for uid in uids for blob in blobs(server))
    with serve(home, runs=2) as server:
        wait_for("old runs to go", lambda: names(server, "runs") == ["db-1", "net-3", "net-4"])
        assert {step["spec"]["runRef"]["name"] for step in server.get("/v1/taskactions")["items"]} == {"db-1", "net-3", "net-4"}
        assert not any(uid in blob for uid in uids for blob in blobs(server))
        assert "Apply complete" in home.dayfly("logs", "net-3").stdout
        provision(home)
        assert "net-5" in names(server, "runs")  # numbers go on


def test_the_newest_versions_of_a_state_stay(home):
    with serve(home, stateVersions=0) as server:
        provision(home, times=4)
        newest = versions(server, "net")
        assert len(newest) >= 4
    with serve(home, stateVersions=2) as server:
        home.dayfly("gc")
        assert versions(server, "net") == newest, "those of the last week"
        age_versions(server)
        home.dayfly("gc")
        wait_for("old versions to go", lambda: versions(server, "net") == newest[:2])
        home.dayfly("state", "rollback", "net", newest[1])
        assert home.dayfly("state", "show", "net").stdout
        assert sum(".state" in blob for blob in blobs(server)) == 3
        gone = home.dayfly("state", "show", "net", "--version", newest[2], code=None)
        assert gone.returncode != 0 and f"there is no state version {newest[2]}; there are {newest[1]} to" in gone.stderr
    # Without a service: what is beyond is told before it is removed.
    alone = ("--data-directory", server.data, "--config", home.directory / "dayfly.yaml")
    home.env["DAYFLY_SERVER"] = ""
    assert home.dayfly("gc", "--dry-run", *alone).stdout == "1 version of the state of net would be removed\n"
    assert home.dayfly("gc", *alone).stdout == "1 version of the state of net removed\n"
    assert sum(".state" in blob for blob in blobs(server)) == 2


def test_gc_shows_first_and_removes_then(home):
    with serve(home, runs=0, stateVersions=0):
        provision(home, times=3)
    with serve(home, runs=1, stateVersions=1) as server:
        wait_for("the first sweep", lambda: names(server, "runs") == ["net-3"])
        assert home.dayfly("gc").stdout == "Nothing is older than retention keeps.\n"
        provision(home)
        age_versions(server)
        shown = home.dayfly("gc", "--dry-run").stdout
        assert "Run net-3 would be removed" in shown and " of the state of net would be removed" in shown
        assert names(server, "runs") == ["net-3", "net-4"]
        removed = home.json("gc")["items"]
        assert {"kind": "Run", "name": "net-3"} in removed and names(server, "runs") == ["net-4"]
        assert versions(server, "net") == versions(server, "net")[:1]
        entries = server.get("/v1/audit")["items"]
        assert [e["outcome"] for e in entries if e["kind"] == "Retention"] == ["done"] * 3


def test_age_alone_never_takes_the_newest(home):
    with serve(home, runs=0):
        provision(home, times=2)
    with serve(home, runs=0, age="1s") as server:
        wait_for("the old run to go", lambda: home.dayfly("gc") and names(server, "runs") == ["net-2"])


def test_a_run_that_has_not_ended_stays(home):
    home.module("net", MODULE)
    with serve(home, runs=1) as server:
        home.dayfly("run", "net", "--no-wait", cwd=home.directory)
        provision(home, "db", times=2)
        home.dayfly("gc")
        assert names(server, "runs") == ["db-2", "net-1"]
        assert home.dayfly("approve", "net-1", "-f").returncode == 0


def retain(home, name, **keys):
    """Sets spec.retention of an executor."""
    got = home.json("get", "executor", name)
    doc = {"apiVersion": got["apiVersion"], "kind": "Executor", "metadata": {"name": name}, "spec": {**got["spec"], "retention": keys}}
    (home.directory / "executor.yaml").write_text(json.dumps(doc))
    home.dayfly("apply", "-f", home.directory / "executor.yaml")


def test_an_executor_says_how_much_of_it_stays(home):
    with serve(home, runs=2, stateVersions=2) as server:
        for name in ("net", "db", "all"):
            provision(home, name)
        retain(home, "net", runs=1, stateVersions=1)
        retain(home, "all", runs=0, stateVersions=0)
        for name in ("net", "db", "all"):
            provision(home, name, times=3)
        age_versions(server)
        home.dayfly("gc")
        assert names(server, "runs") == ["all-1", "all-2", "all-3", "all-4", "db-3", "db-4", "net-4"]
        assert [len(versions(server, name)) for name in ("net", "db")] == [1, 2] and len(versions(server, "all")) >= 3
        refused = {"runs": -1, "age": "1y", "logs": "-1h", "stateVersion": 3}
        for key, value in refused.items():
            (home.directory / "bad.yaml").write_text(json.dumps({"kind": "Executor", "metadata": {"name": "bad"}, "spec": {
                "source": {"url": f"file://{home.directory}/net"}, "retention": {key: value}}}))
            assert f"spec.retention.{key}" in home.dayfly("create", "-f", home.directory / "bad.yaml", code=3).stderr


def test_the_version_that_a_waiting_plan_was_made_from_stays(home):
    with serve(home, stateVersions=1) as server:
        provision(home, times=2)
        of_step = versions(server, "net")[0]
        home.dayfly("state", "rollback", "net", of_step - 1)  # a person's, which stays for the plan alone
        home.dayfly("run", "net", "--no-wait", "--var", "n=9", cwd=home.directory)
        wait_for("the plan", lambda: server.get("/v1/runs/net-3")["status"]["phase"] == "WaitingApproval")
        home.dayfly("state", "rollback", "net", of_step - 1)
        current = of_step + 1
        age_versions(server, 8)
        age_versions(server, 20, newest=current)
    with sqlite3.connect(server.data / "dayfly.db") as database:
        database.execute("UPDATE documents SET body = json_set(body, '$.metadata.creationTimestamp', ?) WHERE name = 'net-3'", (days_ago(15),))
    with serve(home, stateVersions=1) as server:
        home.dayfly("gc")
        assert versions(server, "net") == [current + 1, current, of_step]
        plan = server.get("/v1/taskactions/net-3-plan")["metadata"]["uid"]
        assert f"data/plans/{plan}" in blobs(server)
        home.dayfly("discard", "net-3", "-f", code=None)
        wait_for("the plan to go", lambda: f"data/plans/{plan}" not in blobs(server))
        home.dayfly("gc")
        assert versions(server, "net") == [current + 1, of_step]


def test_plans_of_ended_runs_and_old_logs_go_and_their_runs_stay(home):
    with serve(home, runs=0) as server:
        provision(home)
        home.dayfly("run", "net", "--no-wait", "--var", "n=9", cwd=home.directory)
        steps = {step["metadata"]["name"]: step["metadata"]["uid"] for step in server.get("/v1/taskactions")["items"]}
        left = server.data / "blobs" / "data" / "plans" / steps["net-1-plan"]
        left.write_bytes(b"what a crash left")
        assert "Plan net-1-plan would be removed" in home.dayfly("gc", "--dry-run").stdout and left.exists()
        assert home.dayfly("gc").stdout == "Plan net-1-plan removed\n" and not left.exists()
    with serve(home, runs=0, logs="1s") as server:
        wait_for("old logs to go", lambda: home.dayfly("gc") and not any(steps["net-1-apply"] in blob for blob in blobs(server)))
        assert names(server, "runs") == ["net-1", "net-2"] and len(names(server, "taskactions")) == 3
        assert {f"data/logs/{steps['net-2-plan']}.log", f"data/plans/{steps['net-2-plan']}"} <= set(blobs(server))
        assert home.dayfly("approve", "net-2", "-f").returncode == 0
        for more in ([], ["--step", "apply"], ["--events"], ["--follow"]):
            asked = home.dayfly("logs", "net-1", *more, code=1)
            assert asked.stdout == "" and "the log of net-1 was removed: retention.logs of the service's configuration keeps logs until 20" in asked.stderr, more


def lose_logs(home, server):
    """What the storage has not taken yet is stored again from the runner's file, until its step is settled."""
    wait_for("the steps to be settled", lambda: not any("dayfly.dev/unfinished" in t["metadata"].get("labels", {}) for t in home.json("get", "taskactions")["items"]))
    for path in (server.data / "blobs" / "data" / "logs").iterdir():
        path.unlink()


def test_a_log_that_the_storage_lost_is_told(home):
    with serve(home, runs=0) as server:
        provision(home)
        lose_logs(home, server)
        lost = home.dayfly("logs", "net-1", code=1)
        assert lost.stdout == "" and "the log of net-1 is not stored any more" in lost.stderr


def test_an_approval_is_followed_without_the_log_of_the_plan(home):
    home.module("net", MODULE)
    with serve(home, runs=0) as server:
        home.dayfly("run", "net", "--no-wait", cwd=home.directory)
        lose_logs(home, server)
        assert "Apply complete" in home.dayfly("approve", "net-1", "-f").stdout


def test_why_a_run_failed_is_told_without_its_log(home):
    with serve(home, runs=0) as server:
        home.module("bad", 'output "x" { value = nonsense.y }\n')
        home.dayfly("run", "bad", "--auto-approve", cwd=home.directory, code=1)
        lose_logs(home, server)
        why = home.dayfly("why", "bad-1").stdout
        assert "PlanFailed" in why and "There is no log to show: the log of bad-1 is not stored any more" in why, why


def test_orphans_are_listed_and_if_asked_removed_when_they_are_a_day_old_but_states_never(home):
    with serve(home) as server:
        provision(home)
        before = blobs(server)
        data, old = server.data / "blobs" / "data", time.time() - 73 * 3600
        nobody = str(uuid.uuid4())
        for key in (f"plans/{nobody}", f"logs/{nobody}.log", f"outputs/{nobody}", f"state/{nobody}/00000001.tfstate"):
            (data / key).parent.mkdir(parents=True, exist_ok=True)
            (data / key).write_bytes(b"x" * 2048)
            os.utime(data / key, (old, old))
        (data / "logs" / f"{nobody}.events").write_bytes(b"young")
        (data / "notes.txt").write_bytes(b"of somebody else")
        shown = home.dayfly("gc", "--orphans", "--dry-run").stdout
        assert f"plans/{nobody}, which belongs to nothing (2.0 KiB, 3d old), would be removed" in shown
        assert f"state/{nobody}/00000001.tfstate, which belongs to nothing (2.0 KiB, 3d old), stays: a state" in shown
        usage = home.json("storage", "usage")
        assert usage["orphans"] == {"count": 5, "bytes": 4 * 2048 + 5}
        assert f"plans/{nobody}, which belongs to nothing (2.0 KiB, 3d old), stays: --orphans removes it" in home.dayfly("gc").stdout
        assert f"data/plans/{nobody}" in blobs(server)
        items = home.json("gc", "--orphans")["items"]
        assert {item["name"]: item.get("kept") for item in items if item["kind"] == "Orphan"} == {
            f"plans/{nobody}": None, f"logs/{nobody}.log": None, f"outputs/{nobody}": None, f"state/{nobody}/00000001.tfstate": "state", f"logs/{nobody}.events": "young"}
        assert set(blobs(server)) - set(before) == {f"data/state/{nobody}/00000001.tfstate", f"data/logs/{nobody}.events", "data/notes.txt"}
        assert set(before) <= set(blobs(server))


def test_usage_counts_what_there_is_of_each_executor(home):
    with serve(home) as server:
        provision(home, "net", times=2)
        provision(home, "db", module=MODULE + 'output "it" { value = terraform_data.it.output }\n')
        wait_for("the plans to go", lambda: not any("/plans/" in blob for blob in blobs(server)))
        usage = home.json("storage", "usage")
        net, db = (next(row for row in usage["executors"] if row["name"] == name) for name in ("net", "db"))
        kept = [server.data / "blobs" / key for key in blobs(server)]
        for kind, directory in (("states", "state"), ("logs", "logs"), ("plans", "plans"), ("outputs", "shown")):
            there = [p for p in kept if f"/data/{directory}/" in str(p)]
            counted = [p for p in there if p.suffix != ".events"]  # a log is two files
            assert usage["total"][kind] == {"count": len(counted), "bytes": sum(p.stat().st_size for p in there)}
            assert net[kind]["bytes"] + db[kind]["bytes"] == usage["total"][kind]["bytes"]
        assert net["documents"]["count"] == 1 + 1 + 2 + 4 and usage["total"]["audit"]["count"] > 0 and usage["orphans"]["count"] == 0
        assert (net["states"]["count"], db["states"]["count"], net["outputs"]["count"]) == (len(versions(server, "net")), 1, 0)
        assert db["outputs"]["count"] == 2  # of its apply, and the newest of the executor
        alone, = home.json("storage", "usage", "db")["executors"]
        assert {k: v for k, v in alone.items() if k != "documents"} == {k: v for k, v in db.items() if k != "documents"}  # they lose labels
        assert "net" in home.dayfly("storage", "usage").stdout
        assert home.dayfly("storage", "usage", "nobody", code=None).returncode != 0
        wait_for("the first look", lambda: 'dayfly_stored_bytes{kind="states"}' in server.request("GET", "/metrics")[2].decode())


def test_the_audit_trail_ends_where_the_configuration_says_and_says_so(home):
    def trail(server):
        return [(e["action"], e["kind"]) for e in server.get("/v1/audit")["items"]]

    with serve(home, auditEntries=1) as server:
        provision(home)
        home.dayfly("gc")
        assert len(trail(server)) == 4, "younger than a week"
    age(server.data, days_ago(8))
    with serve(home, audit="240h") as server:  # ten days
        provision(home)
        assert "audit" not in home.dayfly("gc").stdout and len(trail(server)) > 3
    age(server.data, days_ago(8))
    with serve(home, audit="168h") as server:
        wait_for("old entries to go", lambda: trail(server) == [("remove", "Audit")])
        assert "entries, as retention.audit" in server.get("/v1/audit")["items"][0]["detail"]
    refused = home.dayfly("serve", "--set", "retention.audit=24h", "--data-directory", server.data, code=3)
    assert "retention.audit" in refused.stderr and "168h" in refused.stderr


def test_a_killed_removal_is_completed_by_the_next(home):
    """Killed at several of its unlinks, of whatever they are: every state opens, and what was to go is gone in the end."""
    with serve(home, runs=0, stateVersions=0) as server:
        provision(home, times=4)
        age_versions(server)
    for nth in (1, 4, 7):
        server = Server(home, config="retention: {runs: 1, stateVersions: 1}\n")
        server.process = home.popen("strace", "-f", "-o", "/dev/null", "-e", "trace=unlink", "-e",
                                    f"inject=unlink:signal=KILL:when={nth}", DAYFLY, "serve", "--data-directory", server.data, "--listen", "127.0.0.1:0",
                                    *server.args, stdout=-3, stderr=-3)
        assert server.process.wait(timeout=60) != 0
    with serve(home, runs=1, stateVersions=1) as server:
        wait_for("the rest to go", lambda: names(server, "runs") == ["net-4"] and len(versions(server, "net")) == 1)
        assert home.dayfly("state", "show", "net").stdout and "Apply complete" in home.dayfly("logs", "net-4").stdout
        wait_for("blobs of what is gone to go", lambda: len([b for b in blobs(server) if "/state/" in b or "/logs/" in b]) == 1 + 4)


def test_removing_needs_the_role_admin(home, tmp_path):
    tokens = tmp_path / "tokens"
    made = home.json("token-file", "create", "--name", "ci", "--role", "write")
    tokens.write_text(made["line"] + "\n")
    tokens.chmod(0o600)
    with Server(home, config=f"auth:\n  tokenFile: {tokens}\n") as server:
        status, _, _ = server.request("POST", "/v1/gc?dryRun=true", headers={"Authorization": f"Bearer {made['token']}"})
        assert status == 403
