"""The REST interface from outside: bodies, connections, documents, roles, followers."""

import base64
import hashlib
import http.client
import json
import os
import socket
import subprocess
import threading
import urllib.parse

import pytest

from lib.dayfly import Server, wait_for

MODULE = """
variable "n" {
  default = 1
}
resource "terraform_data" "a" {
  input = var.n
}
output "n" {
  value = terraform_data.a.output
}
output "secret" {
  value     = "hunter2-${var.n}"
  sensitive = true
}
"""


def problem(body):
    return json.loads(body)["type"].removeprefix("https://dayfly.dev/problems/")


def document(name, directory, **spec):
    return {"metadata": {"name": name}, "spec": {"source": {"url": f"file://{directory}", "kind": "directory"}, **spec}}


def create(server, name, directory, **spec):
    status, _, body = server.request("POST", "/v1/executors", document(name, directory, **spec))
    assert status == 201, body
    return json.loads(body)


def run(server, name, action="provision", **extra):
    """Runs to the end; returns the run."""
    status, _, body = server.request("POST", f"/v1/executors/{name}/runs",
                                     {"action": action, "autoApprove": True, **extra})
    assert status == 201, body
    run_name = json.loads(body)["metadata"]["name"]
    events(server, f"/v1/runs/{run_name}/watch")
    return server.get(f"/v1/runs/{run_name}")


def connect(server):
    url = urllib.parse.urlsplit(server.url)
    return socket.create_connection((url.hostname, url.port), timeout=30)


def events(server, path, headers=None, until=None):
    """All server-sent events until the server ends the stream, or until(event): [{id, event, data}]."""
    url = urllib.parse.urlsplit(server.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    connection.request("GET", path, headers={**server.authorization(), **(headers or {})})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    assert answer.headers["Content-Type"] == "text/event-stream"
    found, event = [], {}
    for line in answer:
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
            continue
        if event:
            found.append(event)
            if until and until(event):
                break
            event = {}
    connection.close()
    return found


def token_file(home, **roles):
    """A token file in which each token is its role's word doubled; returns its path."""
    path = home.directory / "tokens"
    path.write_text("".join(f"{name} {role} {hashlib.sha256(name.encode() * 2).hexdigest()}\n"
                            for name, role in roles.items()))
    return path


def bearer(name):
    return {"Authorization": f"Bearer {name * 2}"}


@pytest.fixture
def guarded(home):
    """A server with a token for each role."""
    path = token_file(home, reader="read", writer="write", boss="admin")
    with Server(home, config=f"auth: {{tokenFile: {path}}}\n") as server:
        yield server


# ---- bodies and connections ----


def test_a_body_of_ten_megabytes_is_refused_without_being_read(server):
    with connect(server) as s:
        s.sendall(b"POST /v1/executors HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                  b"Content-Length: 10485760\r\n\r\n" % server.token().encode())
        answer = s.recv(65536)
    assert b" 413 " in answer and b"problems/TooLarge" in answer


def test_a_secret_at_its_cap_is_stored_and_one_byte_more_is_refused(server):
    assert server.request("PUT", "/v1/secrets/big/key", b"x" * 262144)[0] == 204
    assert server.request("PUT", "/v1/secrets/big/key", b"x" * 262145)[0] == 413
    assert server.request("PUT", "/v1/secrets/big/key", b"\xff\xfe")[0] == 400


def test_peers_that_never_finish_a_request_do_not_keep_others_waiting(server):
    rude = [connect(server) for _ in range(100)]
    try:
        for i, s in enumerate(rude):
            s.sendall([b"", b"G", b"GET /livez HTTP/1.1\r\nHost: lo",
                       b"POST /v1/executors HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"][i % 4])
        for _ in range(20):
            assert server.request("GET", "/livez", timeout=5)[0] == 200
    finally:
        for s in rude:
            s.close()


# ---- documents ----


def test_a_document_is_replaced_only_from_the_version_that_was_read(home, server):
    module = home.module("net", MODULE)
    made = create(server, "net", module)
    status, headers, _ = server.request("GET", "/v1/executors/net")
    tag = headers["ETag"]
    changed = document("net", module, description="new")
    assert server.request("PUT", "/v1/executors/net", changed)[0] == 428
    status, headers, body = server.request("PUT", "/v1/executors/net", changed, {"If-Match": tag})
    assert status == 200, body
    now = json.loads(body)
    assert (now["spec"]["description"], now["status"]["revision"]) == ("new", made["status"]["revision"] + 1)
    assert now["metadata"]["uid"] == made["metadata"]["uid"]
    status, _, body = server.request("PUT", "/v1/executors/net", changed, {"If-Match": tag})
    assert (status, problem(body)) == (412, "PreconditionFailed")
    stale = {**changed, "metadata": {"name": "net", "resourceVersion": made["metadata"]["resourceVersion"]}}
    status, _, body = server.request("PUT", "/v1/executors/net", stale)
    assert (status, problem(body)) == (409, "Conflict")
    status, again, _ = server.request("PUT", "/v1/executors/net", changed, {"If-Match": headers["ETag"]})
    assert (status, again["ETag"]) == (200, headers["ETag"]), "the same again is no new version"


def test_patches_at_the_same_time_lose_nothing(home, server):
    create(server, "net", home.module("net", MODULE))

    def patch(i):
        for k in range(5):
            status, _, body = server.request("PATCH", "/v1/executors/net", {"spec": {"variables": {f"v{i}_{k}": i}}})
            assert status == 200, body

    threads = [threading.Thread(target=patch, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    executor = server.get("/v1/executors/net")
    assert len(executor["spec"]["variables"]) == 30
    assert executor["status"]["revision"] == 31


def test_what_belongs_to_the_service_is_not_taken_from_clients(home, server):
    module = home.module("net", MODULE)
    create(server, "net", module)
    for patch in ({"status": {"state": "destroyed"}}, {"metadata": {"uid": "x"}}, {"metadata": {"generation": 9}},
                  {"metadata": {"labels": {"dayfly.dev/run": "x"}}}, {"metadata": {"name": "other"}},
                  {"spec": {"source": {"folder": "elsewhere"}}}, {"spec": {"unknown": 1}}, {"spec": None}):
        status, _, body = server.request("PATCH", "/v1/executors/net", patch)
        assert (status, problem(body)) == (400, "InvalidDocument"), patch
    with_status = {**document("b", module), "status": {"state": "provisioned"}}
    assert server.request("POST", "/v1/executors", with_status)[0] == 400
    assert server.request("POST", "/v1/executors/net/runs", {"action": "dry-run", "decision": {}})[0] == 400


def test_two_executors_never_share_a_place_for_their_state(home, server):
    module = home.module("net", MODULE)
    storage = {"type": "local", "path": "/srv/one.tfstate"}
    create(server, "a", module, storage=storage)
    status, _, body = server.request("POST", "/v1/executors", document("b", module, storage=storage))
    assert (status, problem(body)) == (409, "StorageInUse")
    create(server, "b", module, storage={"type": "local", "path": "/srv/two.tfstate"})
    status, _, body = server.request("PATCH", "/v1/executors/b", {"spec": {"storage": storage}})
    assert (status, problem(body)) == (409, "StorageInUse")
    assert "executor a has its state in the local storage /srv/one.tfstate already" in json.loads(body)["detail"]
    bucket = {"type": "s3", "path": "net/state", "config": {"bucket": "states", "region": "r", "endpoints": {"s3": "https://s3.example"}}}
    create(server, "c", module, storage=bucket)
    status, _, body = server.request("POST", "/v1/executors", document("d", module, storage=bucket))
    assert (status, problem(body)) == (409, "StorageInUse")
    for words in ("executor c", "net/state", "bucket states", "endpoint https://s3.example"):
        assert words in json.loads(body)["detail"], body


def test_pages_hold_everything_once_in_order(home, server):
    module = home.module("net", MODULE)
    names = sorted(f"e{i}" for i in range(25))
    for name in names:
        create(server, name, module)
    found, cursor = [], ""
    while cursor is not None:
        page = server.get("/v1/executors?limit=10" + (f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""))
        assert len(page["items"]) <= 10
        found += [item["metadata"]["name"] for item in page["items"]]
        cursor = page.get("nextCursor")
    assert found == names
    assert [i["metadata"]["name"] for i in server.get("/v1/executors?namePrefix=e2")["items"]] == \
        [n for n in names if n.startswith("e2")]
    assert server.request("GET", "/v1/executors?cursor=nonsense!")[0] == 400


def test_a_key_is_remembered_by_a_server_that_was_killed(home, server):
    create(server, "net", home.module("net", MODULE))
    body, key = {"action": "dry-run"}, {"Idempotency-Key": "once"}
    first = json.loads(server.request("POST", "/v1/executors/net/runs", body, key)[2])
    server.kill()
    server.start()
    status, headers, again = server.request("POST", "/v1/executors/net/runs", body, key)
    assert (status, headers["Idempotency-Replayed"]) == (201, "true")
    assert json.loads(again)["metadata"]["uid"] == first["metadata"]["uid"]
    assert len(server.get("/v1/executors/net/runs")["items"]) == 1
    status, _, answer = server.request("POST", "/v1/executors/net/runs", {"action": "provision"}, key)
    assert (status, problem(answer)) == (422, "IdempotencyKeyReused")


def test_one_key_sent_by_many_at_once_makes_one_run(home, server):
    create(server, "net", home.module("net", MODULE))
    names = []

    def send():
        status, _, body = server.request("POST", "/v1/executors/net/runs", {"action": "dry-run"},
                                         {"Idempotency-Key": "same"})
        names.append((status, json.loads(body)["metadata"]["name"]))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(names) == {(201, "net-1")}


# ---- who may what ----


def test_roles_reach_as_far_as_the_contract_says(home, guarded):
    module = home.module("net", MODULE)
    post = lambda who, path, body=None: guarded.request("POST", path, body, bearer(who))[0]  # noqa: E731
    get = lambda who, path: guarded.request("GET", path, headers=bearer(who))[0]  # noqa: E731
    assert post("reader", "/v1/executors", document("net", module)) == 403
    assert post("writer", "/v1/executors", document("net", module)) == 201
    assert post("reader", "/v1/executors/net/runs", {"action": "dry-run"}) == 403
    assert guarded.request("PATCH", "/v1/executors/net", {"spec": {}}, bearer("writer"))[0] == 403
    assert guarded.request("PATCH", "/v1/executors/net", {"spec": {}}, bearer("boss"))[0] == 200
    assert post("writer", "/v1/executors/net/runs", {"action": "destroy"}) in (403, 409)
    assert (get("reader", "/v1/executors/net/state"), get("writer", "/v1/executors/net/state")) == (403, 404)
    assert (get("writer", "/v1/audit"), get("boss", "/v1/audit")) == (403, 200)
    assert post("writer", "/v1/executors/net/state/rollback", {"version": 1}) == 403
    assert guarded.request("DELETE", "/v1/executors/net/state/lock", headers=bearer("writer"))[0] == 403
    assert guarded.request("GET", "/v1/executors")[0] == 401
    assert guarded.request("GET", "/livez")[0] == 200


def test_sensitive_outputs_are_the_admins_and_looking_is_recorded(home, guarded):
    module = home.module("net", MODULE)
    guarded.request("POST", "/v1/executors", document("net", module), bearer("writer"))
    name = json.loads(guarded.request("POST", "/v1/executors/net/runs", {"action": "provision", "autoApprove": True},
                                      bearer("boss"))[2])["metadata"]["name"]
    events(guarded, f"/v1/runs/{name}/watch", bearer("reader"))
    status, _, body = guarded.request("GET", "/v1/executors/net/outputs", headers=bearer("reader"))
    assert status == 200 and b"hunter2" not in body and json.loads(body)["n"]["value"] == 1
    path = "/v1/executors/net/outputs?showSensitive=true"
    assert guarded.request("GET", path, headers=bearer("writer"))[0] == 403
    status, _, body = guarded.request("GET", path, headers=bearer("boss"))
    assert json.loads(body)["secret"]["value"] == "hunter2-1"
    trail = json.loads(guarded.request("GET", "/v1/audit?limit=2", headers=bearer("boss"))[2])["items"]
    assert [(e["actor"], e["action"], e["outcome"]) for e in trail] == [
        ("boss", "show-sensitive", "done"), ("writer", "show-sensitive", "refused")]


def test_a_token_that_was_taken_out_of_the_file_is_refused_at_once(home, guarded):
    assert guarded.request("GET", "/v1/runs", headers=bearer("reader"))[0] == 200
    token_file(home, writer="write")
    assert guarded.request("GET", "/v1/runs", headers=bearer("reader"))[0] == 401
    (home.directory / "tokens").write_text("half a li")
    assert guarded.request("GET", "/v1/runs", headers=bearer("writer"))[0] == 200
    status, _, body = guarded.request("GET", "/readyz")
    assert status == 503 and b"[-] tokens: " in body


def test_the_tokens_of_a_step_open_nothing_else_and_are_shown_to_nobody(home, server):
    create(server, "net", home.module("net", MODULE))
    done = run(server, "net")
    for path in ("/v1/taskactions", "/v1/taskactions/net-1-plan", "/v1/taskactions/net-1-apply"):
        assert '"auth"' not in json.dumps(server.get(path))
    watched = events(server, f"/v1/runs/{done['metadata']['name']}/watch")
    assert {e["event"] for e in watched} == {"run", "taskaction", "end"}
    assert '"auth"' not in json.dumps(watched)
    uid = server.get("/v1/taskactions/net-1-plan")["metadata"]["uid"]
    for token, status in (("guess", 401), ("", 401)):
        header = {"Authorization": f"Bearer {token}"} if token else {}
        assert server.request("POST", f"/v1/steps/{uid}/progress", {}, header)[0] == status
        assert server.request("PUT", f"/v1/steps/{uid}/artifacts/plan", b"x" * 1000, header)[0] == status
    basic = {"Authorization": "Basic " + base64.b64encode(f"{uid}:guess".encode()).decode()}
    assert server.request("GET", f"/v1/steps/{uid}/state", headers=basic)[0] == 401
    assert server.request("POST", f"/v1/steps/{uid}/state", b"{}", basic)[0] == 401


def test_a_claim_is_refused_before_its_body_is_read(home, server):
    create(server, "net", home.module("net", MODULE))
    run(server, "net")
    uid = server.get("/v1/taskactions/net-1-plan")["metadata"]["uid"]
    for step, status in ((uid, b" 401 "), ("0" * 32, b" 404 ")):
        with connect(server) as s:
            # The client waits for the server's word before it sends the body, which never comes.
            s.sendall(f"POST /v1/steps/{step}/claim HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
                      "Content-Type: application/json\r\nContent-Length: 65000\r\n"
                      "Expect: 100-continue\r\n\r\n".encode())
            assert status in s.recv(4096)


def test_values_of_secrets_are_never_read_back(server):
    assert server.request("PUT", "/v1/secrets/db/password", b"s3cr3t-value")[0] == 204
    for path in ("/v1/secrets", "/v1/audit", "/metrics"):
        assert b"s3cr3t-value" not in server.request("GET", path)[2]
    assert server.get("/v1/secrets")["items"][0]["keys"] == ["password"]
    assert server.request("GET", "/v1/secrets/db/password")[0] == 405
    assert b"s3cr3t-value" not in b"".join(p.read_bytes() for p in server.data.rglob("*") if p.is_file())
    assert server.request("DELETE", "/v1/secrets/db/password")[0] == 204
    assert server.request("DELETE", "/v1/secrets/db/password")[0] == 404


# ---- followers ----


def test_head_says_what_get_would_without_following(home, server):
    create(server, "net", home.module("net", MODULE))
    server.request("POST", "/v1/executors/net/runs", {"action": "provision"})
    for path in ("/v1/runs/net-1", "/v1/runs/net-1/log", "/v1/runs/net-1/log?follow=true", "/v1/runs/net-1/watch"):
        status, headers, body = server.request("HEAD", path, timeout=10)
        assert (status, body) == (200, b""), path
    assert headers["Content-Type"] == "text/event-stream"


def text_of(found):
    return "".join(json.loads(e["data"])["text"] for e in found if "event" not in e)


def test_a_follower_reads_what_the_log_holds(home, server):
    create(server, "net", home.module("net", MODULE))
    status, _, body = server.request("POST", "/v1/executors/net/runs", {"action": "provision", "autoApprove": True})
    assert status == 201, body
    followed = events(server, "/v1/runs/net-1/log?follow=true")
    plain = server.request("GET", "/v1/runs/net-1/log")[2].decode()
    assert text_of(followed) == plain
    assert "Apply complete!" in plain
    assert (followed[-1]["event"], json.loads(followed[-1]["data"])["phase"]) == ("end", "Succeeded")
    assert text_of(events(server, "/v1/runs/net-1/log?follow=true")) == plain, "a finished run is replayed"
    one = server.request("GET", "/v1/runs/net-1/log?step=plan")[2].decode()
    other = server.request("GET", "/v1/runs/net-1/log?step=apply")[2].decode()
    assert one + other == plain and one and other


def test_a_follower_that_comes_back_gets_the_rest_and_nothing_twice(home, server):
    noisy = MODULE + 'resource "terraform_data" "b" {\n  count = 40\n  input = "ünïcode-${count.index}"\n}\n'
    create(server, "net", home.module("net", noisy))
    run(server, "net")
    everything = events(server, "/v1/runs/net-1/log?follow=true")
    plain = server.request("GET", "/v1/runs/net-1/log")[2].decode()
    for i, event in enumerate(everything[:-1]):
        rest = events(server, "/v1/runs/net-1/log?follow=true", {"Last-Event-ID": event["id"]})
        assert text_of(everything[:i + 1]) + text_of(rest) == plain
    assert text_of(events(server, "/v1/runs/net-1/log?follow=true", {"Last-Event-ID": "other-plan:7"})) == plain
    assert text_of(events(server, "/v1/runs/net-1/log?follow=true", {"Last-Event-ID": "net-1-plan:99999999"})) == plain


def test_events_are_tofus_own_lines(home, server):
    create(server, "net", home.module("net", MODULE))
    run(server, "net")
    lines = server.request("GET", "/v1/runs/net-1/events")[2].decode().splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert "planned_change" in kinds and "apply_complete" in kinds and "change_summary" in kinds
    followed = events(server, "/v1/runs/net-1/events?follow=true")
    assert [e["data"] for e in followed if "event" not in e] == lines


def test_followers_of_a_server_that_is_killed_see_the_end_from_its_successor(home, server):
    slow = 'resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    command = "sleep 2; echo done"\n  }\n}\n'
    create(server, "net", home.module("net", slow))
    server.request("POST", "/v1/executors/net/runs", {"action": "provision", "autoApprove": True})
    seen = events(server, "/v1/runs/net-1/log?follow=true", until=lambda e: "Creating..." in e["data"])
    server.kill()
    server.start()
    rest = events(server, "/v1/runs/net-1/log?follow=true", {"Last-Event-ID": seen[-1]["id"]})
    assert text_of(seen) + text_of(rest) == server.request("GET", "/v1/runs/net-1/log")[2].decode()
    assert json.loads(rest[-1]["data"])["phase"] == "Succeeded"


def test_a_full_disk_is_told_to_each_caller_and_once_a_minute_in_the_log(home):
    data = home.directory / "small"
    data.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", data], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount")
    try:
        module = home.module("net", MODULE)
        with Server(home, data=data) as server:
            with open(data / "filler", "wb", buffering=0) as filler, pytest.raises(OSError):
                while True:
                    filler.write(b"x" * 4096)
            answers = [server.request("POST", "/v1/executors", {**document(f"e{i}", module), "metadata": {
                "name": f"e{i}", "annotations": {"note": "x" * 60000}}}) for i in range(20)]
            (data / "filler").unlink()
            create(server, "after", module)
        assert {status for status, _, _ in answers} == {507} and problem(answers[0][2]) == "OutOfSpace"
        told = [line for line in server.log.read_text().splitlines() if "POST /v1/executors" in line]
        assert len(told) == 1 and "No space left on device" in told[0], told
    finally:
        subprocess.run(["umount", data], check=True)
