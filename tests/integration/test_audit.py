"""The audit trail: one chain over restarts, kills, retention and restored backups; what breaks it is named; filters and exports."""

import csv
import io
import json
import re
import sqlite3
import threading

import pytest

from lib.dayfly import Server, wait_for
from lib.trail import age

MODULE = 'variable "n" { default = 0 }\nresource "terraform_data" "it" { input = var.n }\noutput "n" { value = "hunter2" }\n'


def verify(home, *args, code=0):
    return home.dayfly("audit", "verify", *args, code=code).stdout


def entries(home, *args):
    return [json.loads(line) for line in home.dayfly("get", "audit", "-o", "jsonl", *args).stdout.splitlines()]


def secrets(home, *names):
    for name in names:
        home.dayfly("secret", "set", name, "password", input="s3cret\n")


def edit(data, sql, *args):
    with sqlite3.connect(data / "dayfly.db") as database:
        database.execute(sql, args)


def test_a_run_is_in_the_trail_from_its_request_to_its_end(home, server):
    home.module("net", MODULE)
    home.dayfly("run", "net", "--auto-approve", "--var", "n=1", cwd=home.directory)
    end, request, create = entries(home)
    assert [e["action"] for e in (create, request, end)] == ["create", "create", "end"]
    assert (request["kind"], request["address"]) == ("Run", "127.0.0.1")
    assert {k: end[k] for k in ("kind", "name", "executor", "runAction", "outcome", "exitCode", "reason")} == {
        "kind": "Run", "name": "net-1", "executor": "net", "runAction": "provision", "outcome": "done", "exitCode": 0, "reason": "Applied"}
    assert end["changes"]["add"] == 1 and end["actor"] == request["actor"]
    assert "hunter2" not in json.dumps([create, request, end])
    assert re.search("whole: 3 entries, 1 to 3", verify(home))
    (home.directory / "net" / "main.tf").write_text("nonsense")
    home.dayfly("run", "net", "--auto-approve", cwd=home.directory, code=1)
    failed, = entries(home, "--outcome", "failed")
    assert (failed["name"], failed["exitCode"]) == ("net-2", 1) and "changes" not in failed


def test_the_chain_goes_on_over_restarts_kills_and_a_restored_backup(home):
    with Server(home) as server:
        secrets(home, "one")
    with Server(home, data=server.data) as server:
        stop = threading.Event()

        def write():
            while not stop.is_set():
                try:
                    server.request("PUT", "/v1/secrets/many/key", body=b"x")
                except OSError:
                    return

        writers = [threading.Thread(target=write) for _ in range(4)]
        for writer in writers:
            writer.start()
        wait_for("some entries", lambda: len(server.get("/v1/audit?limit=100")["items"]) > 30)
        server.kill()
        stop.set()
        for writer in writers:
            writer.join()
        server.start()
        secrets(home, "two")
        assert "The audit trail is whole" in verify(home)
        home.dayfly("backup", home.directory / "a.tar")
        before = entries(home)
    home.dayfly("restore", home.directory / "a.tar", "--data-directory", home.directory / "again")
    with Server(home, data=home.directory / "again"):
        secrets(home, "three")
        after = entries(home)
        assert "The audit trail is whole" in verify(home)
        restore = next(e for e in after if e["action"] == "restore")
        below = next(e for e in after if e["sequence"] == restore["sequence"] - 1)
        assert below in before


@pytest.mark.parametrize("sql, words", [
    ("UPDATE audit SET body = replace(body, 'two', 'ten') WHERE id = 2", "broken at entry 2: entry 2 was changed, or the one before it: its hash should be"),
    ("DELETE FROM audit WHERE id = 2", "broken at entry 2: entry 2 is missing: before 3 comes 1"),
    ("DELETE FROM audit WHERE id < 3", "broken at entry 2: entry 2 is missing: the trail is cut there"),
    ("UPDATE audit SET body = 'nonsense' WHERE id = 3", "broken at entry 3: entry 3 has no sequence or no hash"),
], ids=["changed", "removed", "cut", "damaged"])
def test_what_is_done_to_the_database_is_named(home, sql, words):
    with Server(home) as server:
        secrets(home, "one", "two", "three", "four")
    edit(server.data, sql)
    with Server(home, data=server.data):
        assert words in verify(home, code=1)
        report = json.loads(verify(home, "-o", "json", code=1))
        assert not report["verified"] and report["broken"]["sequence"] > 1
        secrets(home, "five")  # it goes on


def test_a_trail_of_before_the_chain_gets_one_that_begins_with_an_entry(home):
    with Server(home) as server:
        secrets(home, "one", "two")
    with sqlite3.connect(server.data / "dayfly.db") as database:
        database.execute("UPDATE audit SET body = json_remove(body, '$.hash', '$.sequence', '$.seal')")
        database.execute("DROP TABLE audit_words")
    with Server(home, data=server.data):
        secrets(home, "three")
        new, begin, *old = entries(home)
        assert (begin["action"], begin["checkpoint"]["sequence"], new["sequence"], len(old)) == ("begin", 2, 4, 2)
        assert "2 entries" in verify(home)
        assert len(entries(home, "--kind", "Secret")) == 3  # the old ones are found, too


def test_retention_cuts_at_a_checkpoint_that_only_this_service_can_sign(home):
    with Server(home) as server:
        secrets(home, "one", "two", "three")
    age(server.data, "2020-01-01T00:00:00.000000Z", below=3)
    with Server(home, data=server.data, config="retention:\n  audit: 168h\n") as server:
        wait_for("old entries to go", lambda: len(server.get("/v1/audit")["items"]) == 2)
        cut, _ = entries(home)
        assert (cut["action"], cut["checkpoint"]["sequence"]) == ("remove", 2)
        file = home.directory / "trail.jsonl"
        file.write_text(home.dayfly("get", "audit", "-o", "jsonl").stdout)
        assert "Seals were not looked at" in verify(home, file)
        assert "Seals" not in verify(home, file, "--key", server.data / "key")
        (home.directory / "other").write_text("0" * 64 + "\n")
        assert "does not have the seal" in verify(home, file, "--key", home.directory / "other", code=1)
        (home.directory / "none").write_text("key")
        assert "is no key" in home.dayfly("audit", "verify", file, "--key", home.directory / "none", code=3).stderr
        assert "--key is for a file" in home.dayfly("audit", "verify", "--key", file, code=3).stderr


def test_what_was_edited_is_not_hidden_by_retention(home):
    with Server(home) as server:
        secrets(home, "one", "two", "three")
    edit(server.data, "UPDATE audit SET body = json_set(body, '$.at', '2020-01-01T00:00:00.000000Z') WHERE id < 3")
    with Server(home, data=server.data, config="retention:\n  audit: 168h\n") as server:
        refused = home.dayfly("gc", code=None)
        assert refused.returncode != 0 and "the audit trail is broken at entry 1, so the oldest entries stay" in refused.stderr
        assert [e["sequence"] for e in entries(home)] == [4, 3, 2, 1] and "broken at entry 1" in verify(home, code=1)  # that it was asked for is one


def test_refusals_are_counted_for_each_caller_and_have_a_limit(home, tmp_path):
    made = {name: home.json("token-file", "create", "--name", name, "--role", role) for name, role in (("ann", "write"), ("bob", "write"), ("boss", "admin"))}
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{token['line']}\n" for token in made.values()))
    tokens.chmod(0o600)
    with Server(home, config=f"auth:\n  tokenFile: {tokens}\n") as server:
        def ask(name, method, path, body=None):
            return server.request(method, path, body, {"Authorization": f"Bearer {made[name]['token']}", "Dayfly-Forwarded": "1"})

        def refused(name):
            return [e for e in json.loads(ask("boss", "GET", f"/v1/audit?limit=1000&actor={name}")[2])["items"] if e["outcome"] == "refused"]

        for _ in range(100):
            assert ask("ann", "DELETE", "/v1/executors/nothing")[0] == 404
            assert ask("ann", "POST", "/v1/executors", {"kind": "nonsense"})[0] in (400, 422)
        assert ask("bob", "DELETE", "/v1/executors/nothing")[0] == 404
        assert len(refused("ann")) == 30 and len(refused("bob")) == 1
        entry, = refused("bob")  # whatever a client says of replicas
        assert (entry["address"], entry["forwarded"]) == ("127.0.0.1", True)


def test_an_exported_file_that_was_cut_or_edited_is_told(home, server):
    secrets(home, "one", "two", "three")
    whole = home.dayfly("get", "audit", "-o", "jsonl").stdout
    lines = whole.splitlines(keepends=True)
    file = home.directory / "trail.jsonl"

    def check(text, code=1):
        file.write_text(text)
        return home.dayfly("audit", "verify", file, code=code)

    assert "3 entries, 1 to 3" in check(whole, code=0).stdout
    assert "3 entries, 1 to 3" in home.dayfly("audit", "verify", "-", input=whole).stdout
    cut = check(whole[:len(whole) // 2])
    assert "line 2 is no JSON: the file is cut there" in cut.stderr and "broken at entry 2" in cut.stdout
    assert "entry 1 is missing: the trail is cut there" in check("".join(lines[:2])).stdout
    assert "entry 2 is missing: before 3 comes 1" in check(lines[0] + lines[2]).stdout
    assert "below entry 1, the first of the chain, comes 2" in check("".join(reversed(lines))).stdout
    assert "entry 1 was changed" in check(whole.replace('"one"', '"won"')).stdout
    assert "there is no entry" in check("").stdout
    told = check(re.sub('"hash":"[0-9a-f]{64}"', lambda _: '"hash":"%s"' % (64 * r"\u001b"), whole))
    assert "\x1b" not in told.stdout + told.stderr and "no hash" in told.stdout
    missing = home.dayfly("audit", "verify", home.directory / "nowhere", code=1)
    assert "nowhere" in missing.stderr


def test_filters_are_the_servers_and_bad_ones_are_refused(home, server):
    secrets(home, "one", "two")
    home.dayfly("secret", "delete", "one", "password")
    assert [e["action"] for e in entries(home, "--name", "one")] == ["delete", "update"]
    assert [e["name"] for e in entries(home, "--action", "delete", "--kind", "Secret")] == ["one"]
    assert len(entries(home, "--since", "1h", "--outcome", "done", "--actor", "local")) == 3
    assert entries(home, "--until", "1h") == [] == entries(home, "--actor", "ann")
    assert len(server.get("/v1/audit?action=update&limit=1")["items"]) == 1
    for option, value, words in (("since", "yesterday", "is no RFC 3339 time"), ("actor", "", "must not be empty"), ("outcome", "good", "done")):
        assert words in home.dayfly("get", "audit", f"--{option}", value, code=3).stderr
    assert "since" in home.dayfly("get", "audit", "--since", "1h", "--until", "2h", code=3).stderr
    assert "--actor is for the audit trail" in home.dayfly("get", "runs", "--actor", "ann", code=3).stderr
    assert "not with -o csv" in home.dayfly("get", "runs", "-w", "-o", "csv", code=3).stderr


def test_exports_are_lines_that_a_spreadsheet_may_open(home, server):
    secrets(home, "one")
    with sqlite3.connect(server.data / "dayfly.db") as database:
        database.execute("UPDATE audit SET body = json_set(body, '$.detail', ?)", ('=HYPERLINK("x"), two\nlines',))
    row, = csv.DictReader(io.StringIO(home.dayfly("get", "audit", "-o", "csv").stdout))
    assert row["detail"] == "'=HYPERLINK(\"x\"), two\nlines" and (row["name"], row["sequence"], row["action"]) == ("one", "1", "update")
    home.module("net", MODULE)
    home.dayfly("run", "net", "--auto-approve", cwd=home.directory)
    run, = csv.DictReader(io.StringIO(home.dayfly("get", "runs", "-o", "csv").stdout))
    assert run["metadata.name"] == "net-1"
    document = json.loads(home.dayfly("get", "run", "net-1", "-o", "jsonl").stdout)
    assert document["metadata"]["name"] == "net-1"
