"""A backup of a service that works, and what is restored from it."""

import contextlib
import hashlib
import io
import json
import os
import re
import signal
import sqlite3
import tarfile
import threading

import pytest

from lib.buckets import S3
from lib.dayfly import DAYFLY, Server, wait_for

MODULE = 'variable "n" { default = 0 }\nresource "terraform_data" "it" { input = var.n }\noutput "n" { value = var.n }\n'
SLOW = 'resource "terraform_data" "it" {\n  provisioner "local-exec" {\n    command = "cat PIPE"\n  }\n}\n'


def provision(home, name, n=0):
    home.module(name, MODULE)
    return home.dayfly("run", name, "--auto-approve", "--var", f"n={n}", cwd=home.directory)


def restored(home, archive, name="restored", code=0):
    target = home.directory / name
    result = home.dayfly("restore", archive, "--data-directory", target, code=code)
    return target, result


def unpacked(archive):
    """[(name, content)] of an archive's files, without their sums."""
    with tarfile.open(archive) as found:
        return [(m.name, found.extractfile(m).read()) for m in found.getmembers() if m.name != "SHA256SUMS"]


def forged(path, members):
    """An archive with these files and the right sums for them."""
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in [*members, ("SHA256SUMS", sums.encode())]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def is_intact(database):
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as found:
        return found.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def documents(database):
    """{kind: {name: document}}"""
    found = {"Executor": {}, "Run": {}, "TaskAction": {}, "Revision": {}}
    with sqlite3.connect(database) as rows:
        for (body,) in rows.execute("SELECT body FROM documents"):
            doc = json.loads(body)
            found[doc["kind"]][doc["metadata"]["name"]] = doc
    return found


def phase(server, run):
    return server.get(f"/v1/runs/{run}")["status"].get("phase")


def test_a_restored_service_has_states_secrets_logs_and_outputs_and_plans_no_changes(home, server):
    provision(home, "net", 7)
    home.dayfly("secret", "set", "db", "password", input="s3cret\n")
    for name, storage in (("own", {"type": "module"}), ("far", {"type": "s3", "config": {"bucket": "states", "region": "r"}})):
        spec = {"source": {"url": f"file://{home.directory}/{name}"}, "storage": storage}
        home.dayfly("create", "-f", "-", input=json.dumps({"kind": "Executor", "metadata": {"name": name}, "spec": spec}))
    made = home.dayfly("backup", home.directory / "a.tar").stdout
    assert "complete" in made and "opens everything" in made
    assert re.search(r"storage of their own are there, and not in the backup: (far|own) \((s3|module)\), (far|own) \((s3|module)\)\n", made), made
    assert (home.directory / "a.tar").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in home.directory.glob("a.tar*")] == ["a.tar"]
    provision(home, "net", 8)  # after the backup
    server.stop()
    target, said = restored(home, home.directory / "a.tar")
    assert "is as it was at" in said.stdout and "Canceled" not in said.stdout and "far (s3)" in said.stdout
    assert is_intact(target / "dayfly.db") and not (target / "restoring").exists()
    with Server(home, data=target) as again:
        assert home.dayfly("outputs", "net", "n").stdout.strip() == "7"
        assert "db" in home.dayfly("secret", "list").stdout
        assert "Apply complete" in home.dayfly("logs", "net-1").stdout
        provision(home, "net", 7)
        assert again.get("/v1/runs/net-2")["status"]["reason"] == "NoChanges"
        assert [e["action"] for e in again.get("/v1/audit")["items"] if e["kind"] == "Backup"] == ["restore"]


def test_tar_and_sha256sum_read_a_backup(home, server):
    provision(home, "net")
    home.dayfly("backup", home.directory / "a.tar")
    (home.directory / "out").mkdir()
    assert home.run("tar", "-xf", home.directory / "a.tar", cwd=home.directory / "out").returncode == 0
    assert home.run("sha256sum", "--strict", "-c", "SHA256SUMS", cwd=home.directory / "out").returncode == 0
    header = json.loads((home.directory / "out" / "backup.json").read_text())
    assert header["format"] == 1 and header["key"] and header["blobs"] and not {"location", "elsewhere"} & set(header)


def test_without_the_key_nothing_sealed_opens_until_the_key_is_there(home, server):
    provision(home, "net")
    assert "does not contain the key" in home.dayfly("backup", home.directory / "a.tar", "--without-key").stdout
    with tarfile.open(home.directory / "a.tar") as archive:
        assert "key" not in archive.getnames() and "tls/ca-key.pem" not in archive.getnames()
    server.stop()
    target, said = restored(home, home.directory / "a.tar")
    assert f"put it into {target}/key" in said.stdout
    refused = home.run(DAYFLY, "serve", "--data-directory", target, "--listen", "127.0.0.1:0")
    assert refused.returncode != 0 and "key is missing" in refused.stderr
    (target / "key").write_text((server.data / "key").read_text())
    (target / "key").chmod(0o600)
    with Server(home, data=target):
        assert home.dayfly("state", "show", "net").stdout


def test_a_run_under_way_in_the_backup_ends_with_the_true_reason_and_frees_its_state(home):
    pipe = home.directory / "pipe"
    os.mkfifo(pipe)
    home.module("slow", SLOW.replace("PIPE", str(pipe)))
    home.module("wait", MODULE)
    with Server(home, config="engines: [local]\nengine:\n  local:\n    isolation: none\n") as server:
        home.dayfly("run", "wait", "--no-wait", cwd=home.directory)
        home.dayfly("run", "slow", "--auto-approve", "--detach", cwd=home.directory)
        wait_for("the apply to begin", lambda: "apply_start" in home.dayfly("logs", "slow-1", "--events", code=None).stdout)
        assert server.request("GET", "/v1/executors/slow/state/lock")[0] == 200
        home.dayfly("backup", home.directory / "a.tar")
        pipe.write_text("on\n")
        wait_for("the apply", lambda: phase(server, "slow-1") == "Succeeded")
    target, said = restored(home, home.directory / "a.tar")
    assert "2 runs or workflows" in said.stdout
    with Server(home, data=target) as again:
        wait_for("both runs to end", lambda: {phase(again, "slow-1"), phase(again, "wait-1")} == {"Canceled"})
        for run in ("slow-1", "wait-1"):
            assert "restored from the backup of" in again.get(f"/v1/runs/{run}")["status"]["message"]
        assert home.dayfly("approve", "wait-1", code=None).returncode != 0
        assert again.request("GET", "/v1/executors/slow/state/lock")[0] == 204
        ended = again.get("/v1/taskactions/slow-1-apply")
        assert [item["address"] for item in ended["status"]["unrecorded"]["items"]] == ["terraform_data.it"]
        wait_for("nothing to be left of the step", lambda: not {"dayfly.dev/live", "dayfly.dev/unfinished"} & set(again.get("/v1/taskactions/slow-1-apply")["metadata"]["labels"]))
        home.dayfly("destroy", "slow", "--auto-approve")


def test_a_backup_while_applies_run_is_whole(home, server):
    """Every state that was acknowledged before is in it, and each plan and log that a document names."""
    for name in ("a", "b"):
        home.module(name, MODULE)
    busy = [threading.Thread(target=lambda name=name: [provision(home, name, n) for n in range(4)]) for name in ("a", "b")]
    for thread in busy:
        thread.start()
    wait_for("first states", lambda: all(server.request("GET", f"/v1/executors/{name}/state/versions")[0] == 200 for name in ("a", "b")))
    made = []
    while any(thread.is_alive() for thread in busy) or not made:
        known = {name: [v["version"] for v in server.get(f"/v1/executors/{name}/state/versions")["items"]] for name in ("a", "b")}
        made.append((home.directory / f"{len(made)}.tar", known))
        home.dayfly("backup", made[-1][0])
    for thread in busy:
        thread.join()
    for archive, known in made:
        with tarfile.open(archive) as found:
            names = set(found.getnames())
            found.extract("dayfly.db", home.directory / "check")
        database = home.directory / "check" / "dayfly.db"
        assert is_intact(database)
        docs = documents(database)
        for executor in docs["Executor"].values():
            for version in known[executor["metadata"]["name"]]:
                assert f"blobs/data/state/{executor['metadata']['uid']}/{version:08}.state" in names
        for step in docs["TaskAction"].values():
            run = docs["Run"][step["spec"]["runRef"]["name"]]
            if step["status"].get("plan") and not run["status"].get("finishedAt"):
                assert f"blobs/data/plans/{step['metadata']['uid']}" in names
            if step["status"].get("claimedBy") and run["status"].get("finishedAt"):
                assert f"blobs/data/logs/{step['metadata']['uid']}.log" in names
    target, _ = restored(home, made[-1][0])
    server.stop()
    with Server(home, data=target):
        for name in ("a", "b"):
            home.dayfly("state", "show", name)


def test_a_damaged_cut_foreign_or_newer_archive_is_refused_before_anything_is_written(home, server):
    provision(home, "net")
    home.dayfly("backup", home.directory / "good.tar")
    good = (home.directory / "good.tar").read_bytes()
    assert "complete" in home.dayfly("backup", "--verify", home.directory / "good.tar").stdout
    at = good.index(b"dayfly.db") + 4096
    newer = good.replace(b'"format":1', b'"format":2')
    cases = {"flipped": good[:at] + bytes([good[at] ^ 1]) + good[at + 1:], "cut": good[:len(good) // 2], "no end": good[:-1024], "empty": b"",
             "other": b"x" * 4096, "newer": newer}
    with tarfile.open(fileobj=io.BytesIO(good)) as archive:  # a file is missing
        plan = next(m for m in archive.getmembers() if m.name.endswith(".state"))
    end = plan.offset_data + (plan.size + 511) // 512 * 512
    cases["missing"] = good[:plan.offset] + good[end:]
    for what, content in cases.items():
        (home.directory / "bad.tar").write_bytes(content)
        target, result = restored(home, home.directory / "bad.tar", name=f"to {what}", code=None)
        assert result.returncode != 0, what
        assert ("knows format 1" if what == "newer" else "archive") in result.stderr, (what, result.stderr)
        assert not target.exists(), what
        assert home.dayfly("backup", "--verify", home.directory / "bad.tar", code=None).returncode != 0, what


def test_a_forged_archive_restores_neither_programs_nor_less_than_a_backup_nor_writes_to_the_terminal(home, server):
    home.dayfly("secret", "set", "db", "password", input="s3cret\n")
    home.dayfly("backup", home.directory / "good.tar")
    server.stop()
    header, database, *others = unpacked(home.directory / "good.tar")
    restored(home, forged(home.directory / "same.tar", [header, database, *others]), name="same")

    def with_sql(sql):
        (home.directory / "forged.db").write_bytes(database[1])
        with contextlib.closing(sqlite3.connect(home.directory / "forged.db")) as changed:
            changed.executescript(sql)
        return (database[0], (home.directory / "forged.db").read_bytes())

    described = json.loads(header[1])
    red = (header[0], json.dumps({**described, "createdAt": "\x1b[31mnow"}).encode())
    newer = (header[0], json.dumps({**described, "format": 2, "version": "\x1b[2J"}).encode())
    cases = {
        "trigger": ([header, with_sql("CREATE TRIGGER t AFTER INSERT ON audit BEGIN DELETE FROM audit; END"), *others], "does not make"),
        "view": ([header, with_sql("DROP TABLE labels; CREATE VIEW labels AS SELECT 1"), *others], "does not make"),
        "no database": ([header, *others], "it has no database"),
        "second database": ([header, database, *others, database], "it has two databases"),
        "second header": ([header, database, *others, header], "it has two descriptions"),
        "red": ([red, database, *others], "other than plain characters"),
        "newer": ([newer, database, *others], "other than plain characters"),
        "named": ([header, database, ("\x1b[31mred", b""), *others], "other than plain characters"),
    }
    for what, (members, words) in cases.items():
        target, result = restored(home, forged(home.directory / "bad.tar", members), name=f"to {what}", code=None)
        assert result.returncode != 0 and words in result.stderr, (what, result.stderr)
        assert "\x1b" not in result.stderr + result.stdout, what
        assert not (target / "dayfly.db").exists() and not (target / "restoring").exists(), what


def test_a_hostile_archive_writes_nothing_but_what_a_backup_has(home, server, tmp_path):
    """Links and devices, ways out, doubled and misplaced names, sizes that are lies; each with the right sums."""
    home.dayfly("backup", home.directory / "good.tar")
    server.stop()
    canary = tmp_path / "canary"
    canary.write_text("alive")
    parts = unpacked(home.directory / "good.tar")
    blob = ("blobs/data/x", b"evil")

    def bent(*members, **fields):
        """The archive with these members; of the last one the header's fields (offset: bytes) are changed."""
        content = bytearray(forged(home.directory / "bad.tar", [*parts, *members]).read_bytes())
        with tarfile.open(home.directory / "bad.tar") as archive:
            head = next(m.offset for m in archive.getmembers() if m.name == members[-1][0])
        for field, value in fields.items():
            start = {"type": 156, "link": 157, "size": 124, "name": 0, "prefix": 345}[field]
            content[head + start:head + start + len(value)] = value
        content[head + 148:head + 156] = b" " * 8
        content[head + 148:head + 156] = b"%06o\0 " % sum(content[head:head + 512])
        return bytes(content)
    cases = {f"type {t}": bent(blob, type=t.encode(), link=str(canary).encode()) for t in "12345679gxLKS"}
    cases |= {f"name {n}": bent((n, b"evil")) for n in ("blobs/data/../../canary", "blobs/data/./x", "blobs/data//x", "../canary", "key/../../canary", "restoring/x",
                                                       "lock", "token", "tls/other.pem", "blobs/data/installation", "blobs/data/location", "blobs", "blobs/x", "blobs/data")}
    cases |= {"absolute": bent(blob, name=str(canary).encode() + b"\0"), "prefix": bent(blob, prefix=b"..\0"),
              "twice": bent(blob, blob), "below a file": bent(blob, ("blobs/data/x/y", b"evil")),
              "huge": bent(blob, size=b"77777777777"), "huger": bent(blob, size=b"\x80" + b"\x00" * 3 + b"\x7f" + b"\xff" * 7),
              "negative": bent(blob, size=b"\xff" * 12), "smaller": bent(blob, size=b"00000000001")}
    for what, content in cases.items():
        (home.directory / "bad.tar").write_bytes(content)
        target, result = restored(home, home.directory / "bad.tar", name=f"to {what.replace('/', '_')}", code=None)
        assert result.returncode not in (0, -6, -11), (what, result.stderr)
        assert not target.exists() or {p.name for p in target.iterdir()} <= {"lock"}, what
        assert canary.read_text() == "alive" and not list(home.directory.glob("canary*")), what


def test_restore_leaves_a_directory_with_something_in_it_alone(home, server):
    home.dayfly("backup", home.directory / "a.tar")
    before = sorted(p.name for p in server.data.iterdir())
    refused = home.dayfly("restore", home.directory / "a.tar", "--data-directory", server.data, code=None)
    assert refused.returncode != 0 and "works on" in refused.stderr
    server.stop()
    refused = home.dayfly("restore", home.directory / "a.tar", "--data-directory", server.data, code=None)
    assert refused.returncode != 0 and "is not empty" in refused.stderr
    assert {p.name for p in server.data.iterdir()} - set(before) == set()
    assert "replaces no file" in home.dayfly("backup", home.directory / "a.tar", code=None).stderr


def test_a_killed_restore_is_no_installation_and_can_be_repeated(home, server):
    provision(home, "net")
    home.dayfly("backup", home.directory / "a.tar")
    server.stop()
    target = home.directory / "restored"
    # strace kills it at one of its renames into place, and at an early write
    for call, nth in (("rename", 1), ("rename", 3), ("openat", 60)):
        killed = home.run("strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={nth}", DAYFLY, "restore", home.directory / "a.tar",
                          "--data-directory", target)
        assert killed.returncode in (-signal.SIGKILL, 137), killed
        if (target / "restoring").exists():
            refused = home.run(DAYFLY, "serve", "--data-directory", target, "--listen", "127.0.0.1:0")
            assert refused.returncode != 0 and "was not finished" in refused.stderr
        else:
            assert not (target / "dayfly.db").exists()
    restored(home, home.directory / "a.tar")
    with Server(home, data=target):
        assert home.dayfly("state", "show", "net").stdout


def test_a_killed_backup_leaves_no_file_of_that_name_and_removals_go_on(home, server):
    provision(home, "net")
    killed = home.run("strace", "-f", "-o", "/dev/null", "-e", "inject=link:signal=KILL", DAYFLY, "backup", home.directory / "a.tar")
    assert killed.returncode in (-signal.SIGKILL, 137)
    assert not (home.directory / "a.tar").exists()
    home.dayfly("destroy", "net", "--auto-approve", cwd=home.directory)
    home.dayfly("delete", "net")
    wait_for("the executor to be gone", lambda: not server.get("/v1/executors")["items"])
    assert not [p for p in (server.data / "blobs" / "tmp").iterdir() if p.name.startswith("backup-")]


def test_a_service_that_dies_while_it_makes_a_backup_leaves_none(home):
    with Server(home) as server:
        provision(home, "net")
    state = next((server.data / "blobs" / "data" / "state").glob("*/00000001.state"))  # the documents are copied before it
    server = Server(home, data=server.data)
    server.start(prefix=("strace", "-f", "-o", "/dev/null", "-P", state, "-e", "trace=openat", "-e", "inject=openat:signal=KILL"))
    failed = home.dayfly("backup", home.directory / "a.tar", code=None)
    assert failed.returncode != 0 and server.process.wait(timeout=60) != 0
    assert not list(home.directory.glob("a.tar*"))
    with Server(home, data=server.data):
        assert list((server.data / "blobs" / "tmp").iterdir()) == []
        assert "complete" in home.dayfly("backup", home.directory / "a.tar").stdout


def test_a_backup_needs_the_role_admin_and_is_audited(home, tmp_path):
    made = home.json("token-file", "create", "--name", "ci", "--role", "write")
    boss = home.json("token-file", "create", "--name", "boss", "--role", "admin")
    tokens = tmp_path / "tokens"
    tokens.write_text(made["line"] + "\n" + boss["line"] + "\n")
    tokens.chmod(0o600)
    with Server(home, config=f"auth:\n  tokenFile: {tokens}\n") as server:
        refused = home.dayfly("backup", home.directory / "a.tar", env={"DAYFLY_TOKEN": made["token"]}, code=None)
        assert refused.returncode != 0 and not (home.directory / "a.tar").exists()
        home.dayfly("backup", home.directory / "a.tar", env={"DAYFLY_TOKEN": boss["token"]})
        _, _, body = server.request("GET", "/v1/audit", headers={"Authorization": f"Bearer {boss['token']}"})
        entries = [e for e in json.loads(body)["items"] if e["kind"] == "Backup"]
        assert [(e["actor"], e["outcome"]) for e in entries] == [("boss", "done"), ("ci", "refused")]


def test_where_blobs_are_in_a_bucket_the_archive_says_so_and_has_the_rest(home, tmp_path):
    with S3(tmp_path / "s3") as bucket:
        home.env.update(bucket.env)
        with Server(home, config=bucket.config()) as server:
            provision(home, "net", 5)
            assert "states, plans and logs are in s3://blobs" in home.dayfly("backup", home.directory / "a.tar").stdout
            usage = home.json("storage", "usage")
            assert usage["orphans"]["count"] == 0 and usage["total"]["states"]["count"] == 1
            sealed = [p for p in (bucket.files / name for name in bucket.objects()) if "probe" not in str(p) and p.name != "owner"]
            assert sum(usage["total"][kind]["bytes"] for kind in ("states", "plans", "logs", "outputs")) == sum(p.stat().st_size for p in sealed)
        with tarfile.open(home.directory / "a.tar") as archive:
            assert sorted(archive.getnames()) == ["SHA256SUMS", "backup.json", "dayfly.db", "key"]
        target, said = restored(home, home.directory / "a.tar")
        assert "set blobs.location to it" in said.stdout
        refused = home.run(DAYFLY, "serve", "--data-directory", target, "--listen", "127.0.0.1:0")
        assert refused.returncode != 0 and "blobs.location: is not set" in refused.stderr
        with pytest.raises(AssertionError, match="blobs.takeOver: [0-9a-f]{32} makes it this one's") as other:
            Server(home, config=bucket.config(), data=target).start()
        former = re.search("blobs.takeOver: [0-9a-f]{32}", str(other.value)).group().replace("blobs.", "blobs:\n  ")
        with Server(home, config=bucket.config().replace("blobs:", former), data=target) as server:
            assert home.dayfly("outputs", "net", "n").stdout.strip() == "5"
            provision(home, "net", 5)
            assert server.get("/v1/runs/net-2")["status"]["reason"] == "NoChanges"


def test_without_a_service_the_command_backs_up_the_data_directory(home):
    provision(home, "net", 3)
    home.dayfly("backup", home.directory / "a.tar")
    home.dayfly("restore", home.directory / "a.tar", env={"XDG_STATE_HOME": str(home.directory / "other")})
    assert home.dayfly("outputs", "net", "n", env={"XDG_STATE_HOME": str(home.directory / "other")}).stdout.strip() == "3"
