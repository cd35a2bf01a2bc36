"""Clients that want to starve the others: whoever has not shown a token, and whoever has one and wants everything."""

import contextlib
import hashlib
import http.client
import os
import socket
import time
import urllib.parse

import pytest

from lib.crowd import OVER_TLS, Crowd, huge_hello
from lib.dayfly import Server, free_port, wait_for

ROLES = {"reader": "read", "writer": "write", "boss": "admin"}
MEMORY = 128 * 1024 * 1024  # limits.memory of the chart


def bearer(name):
    return {"Authorization": f"Bearer {name}"}


def guard(home, more=""):
    """A server with a token for each role: its name. server.probe is the port of /livez alone."""
    tokens, probe = home.directory / "tokens", free_port()
    tokens.write_text("".join(f"{name} {role} {hashlib.sha256(name.encode()).hexdigest()}\n"
                              for name, role in ROLES.items()))
    server = Server(home, config=f"auth: {{tokenFile: {tokens}}}\nkubernetes: {{webhook: w}}\n"
                                 f"server: {{livez: {{listen: 127.0.0.1:{probe}}}{more}}}\n")
    server.probe = probe
    return server


@pytest.fixture
def guarded(home):
    with guard(home) as server:
        yield server


def connect(server, port=None):
    url = urllib.parse.urlsplit(server.url)
    return socket.create_connection((url.hostname, port or url.port), timeout=60)


def ask(server, path, headers=None, body=None):
    """(status, text) for a new connection. Where a crowd is quicker than a busy machine, it may have to come again."""
    for _ in range(5):
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, _, answer = server.request("GET" if body is None else "POST", path, body, headers=headers)
            return status, answer.decode()
    raise AssertionError(f"{path}: five connections were lost")


def metric(server, name):
    text = ask(server, "/metrics")[1]
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name)), 0)


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def ended(s):
    """Waits until the server has ended this connection."""
    while True:
        try:
            if not s.recv(65536):
                return True
        except ConnectionResetError:
            return True


def alive(server, path="/livez"):
    probe = http.client.HTTPConnection("127.0.0.1", server.probe, timeout=60)
    probe.request("GET", path)
    with probe.getresponse() as answer:
        return answer.status, answer.read()


KINDS = [("silent", 1100), ("trickle", 1100), ("slow", 1100), ("claims", 1000), ("reviews", 1100), ("followers", 1100),
         ("hello", 1100), ("half", 1100), ("huge", 1100), ("https", 1100), ("https-slow", 1100)]


@pytest.mark.parametrize(("kind", "count"), KINDS)
def test_a_crowd_from_the_same_address_keeps_nobody_out(home, kind, count):
    with guard(home, ", tls: {names: [localhost]}" if kind in OVER_TLS else "") as server:
        endure(server, kind, count)


def keep_connected(server):
    where = urllib.parse.urlsplit(server.url)
    if where.scheme == "https":
        return http.client.HTTPSConnection(where.hostname, where.port, timeout=60, context=server.trust())
    return http.client.HTTPConnection(where.hostname, where.port, timeout=60)


def endure(guarded, kind, count):
    kept = keep_connected(guarded)
    with Crowd(guarded.url, kind, count, "reader"):
        if kind != "huge":  # those are gone at once
            wait_for("the crowd to be turned away", lambda: metric(
                guarded, 'dayfly_http_requests_total{method="GET",route="/v1/transitions",code="429"' if kind == "followers"
                else 'dayfly_http_connections_cut_total{reason="room"}') > 0)
        for _ in range(20):
            kept.request("GET", "/v1/executors", headers=bearer("boss"))
            with kept.getresponse() as answer:
                assert answer.status == 200
                answer.read()
            assert ask(guarded, "/v1/runs", bearer("writer"))[0] == 200
            assert ask(guarded, "/readyz")[0] == 200
            assert ask(guarded, "/v1/admission/write", body={})[0] == 400  # it was read
            assert alive(guarded) == (200, b"ok\n")
        if "asan" not in os.environ.get("DAYFLY_BUILD", ""):
            assert rss(guarded.process.pid) < MEMORY
    kept.close()
    wait_for("the crowd to be forgotten", lambda: metric(guarded, "dayfly_http_connections ") <= 2)


def test_a_head_that_is_not_complete_after_ten_seconds_ends_its_connection(guarded):
    began = time.monotonic()
    with connect(guarded) as s:
        for byte in b"GET /livez HTTP/1.1\r\nX: " + b"x" * 1000:
            try:
                s.sendall(bytes([byte]))
            except OSError:
                break
            if time.monotonic() > began + 60:
                pytest.fail("a head took more than a minute")
            time.sleep(0.1)
        assert ended(s)
    assert metric(guarded, 'dayfly_http_connections_cut_total{reason="time"}') == 1


def test_a_message_of_a_handshake_that_has_no_end_is_not_collected(home):
    with guard(home, ", tls: {names: [localhost]}") as server, connect(server) as s, pytest.raises(OSError):
        s.sendall(huge_hello(15_000_000))


def test_an_answer_that_nobody_reads_ends_its_connection(guarded):
    url = urllib.parse.urlsplit(guarded.url)
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.connect((url.hostname, url.port))
        s.sendall(40 * b"GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for("the reader to be cut off",
                 lambda: metric(guarded, 'dayfly_http_connections_cut_total{reason="time"}') == 1, seconds=180)


def test_an_idle_connection_with_a_token_outlives_a_head(guarded):
    kept = http.client.HTTPConnection(*urllib.parse.urlsplit(guarded.url).netloc.split(":"), timeout=60)
    kept.request("GET", "/v1/executors", headers=bearer("reader"))
    assert kept.getresponse().read()
    first = kept.sock
    with connect(guarded) as silent:  # a stranger, whose time is over before
        assert ended(silent)
    kept.request("GET", "/v1/executors", headers=bearer("reader"))
    assert kept.getresponse().read()
    assert kept.sock is first, "the connection was made anew"
    kept.close()


def test_a_token_with_many_event_streams_is_told_so_and_still_served(guarded):
    streams = []
    try:
        for _ in range(128):
            s = connect(guarded)
            s.sendall(b"GET /v1/transitions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer reader\r\n\r\n")
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
            streams.append(s)
        status, headers, body = guarded.request("GET", "/v1/transitions", headers=bearer("reader"))
        assert (status, headers["Retry-After"]) == (429, "1") and b"more than 128 event streams" in body
        assert guarded.request("GET", "/v1/runs", headers=bearer("reader"))[0] == 200
        with connect(guarded) as s:
            s.sendall(b"GET /v1/transitions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer boss\r\n\r\n")
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
    finally:
        for s in streams:
            s.close()


def test_a_probe_has_an_address_of_its_own(guarded):
    silent = [connect(guarded, guarded.probe) for _ in range(200)]
    try:
        assert [alive(guarded) for _ in range(5)] == 5 * [(200, b"ok\n")]
        for path in ("/v1/executors", "/livezz", "/"):
            assert alive(guarded, path)[0] == 404
        with connect(guarded, guarded.probe) as s:
            s.sendall(b"GET /livez HTTP/1.1\r\nX: " + b"x" * 5000)
            assert ended(s)
    finally:
        for s in silent:
            s.close()
    assert guarded.request("GET", "/livez")[0] == 200
