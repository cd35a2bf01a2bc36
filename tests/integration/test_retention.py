"""Nothing grows for ever: ended runs, workflows and old versions of states go, and what matters stays."""

from lib.dayfly import Server, wait_for

MODULE = 'variable "n" { default = 0 }\nresource "terraform_data" "it" { input = var.n }\n'


def serve(home, **keys):
    return Server(home, config="retention:\n" + "".join(f"  {key}: {value}\n" for key, value in keys.items()))


def provision(home, name="net", times=1):
    home.module(name, MODULE)
    for n in range(times):
        home.dayfly("run", name, "--auto-approve", "--var", f"n={n}", cwd=home.directory)


def names(server, kind):
    return sorted(item["metadata"]["name"] for item in server.get(f"/v1/{kind}")["items"])


def versions(server, executor):
    return [v["version"] for v in server.get(f"/v1/executors/{executor}/state/versions")["items"]]


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
        wait_for("old versions to go", lambda: versions(server, "net") == newest[:2])
        home.dayfly("state", "rollback", "net", newest[1])
        assert home.dayfly("state", "show", "net").stdout
        assert sum(".tfstate" in blob for blob in blobs(server)) == 3
        gone = home.dayfly("state", "show", "net", "--version", newest[2], code=None)
        assert gone.returncode != 0 and f"there is no state version {newest[2]}; there are {newest[1]} to" in gone.stderr


def test_gc_shows_first_and_removes_then(home):
    with serve(home, runs=0, stateVersions=0):
        provision(home, times=3)
    with serve(home, runs=1, stateVersions=1) as server:
        wait_for("the first sweep", lambda: names(server, "runs") == ["net-3"])
        assert home.dayfly("gc").stdout == "Nothing is beyond retention.*\n"
        provision(home)
        shown = home.dayfly("gc", "--dry-run").stdout
        assert "Run net-3 would be removed" in shown and "versions of the state of net would be removed" in shown
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


def test_removing_needs_the_role_admin(home, tmp_path):
    tokens = tmp_path / "tokens"
    made = home.json("token", "create", "--name", "ci", "--role", "write")
    tokens.write_text(made["line"] + "\n")
    tokens.chmod(0o600)
    with Server(home, config=f"auth:\n  tokenFile: {tokens}\n") as server:
        status, _, _ = server.request("POST", "/v1/gc?dryRun=true", headers={"Authorization": f"Bearer {made['token']}"})
        assert status == 403
