"""How requests are framed, byte by byte: what two parsers could read differently is refused, and the connection ends.
framing.txt holds the cases."""

import pathlib
import re
import socket
import urllib.parse

import pytest

from lib.dayfly import Home, Server

CASES = pathlib.Path(__file__).with_name("framing.txt")
NEXT = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
BYTES = {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0"}
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


def request_of(text):
    parts = re.split(r"\\(x[0-9a-f]{2}|[rnt0])", text.replace("\\\n", "").replace("\n", "\r\n"))
    return b"".join(part.encode() if i % 2 == 0 else BYTES.get(part) or bytes([int(part[1:], 16)])
                    for i, part in enumerate(parts))


def cases():
    found = []
    text = re.sub(r"^#.*\n", "", CASES.read_text(), flags=re.M)
    for block in re.split(r"^== ", text, flags=re.M)[1:]:
        title, _, request = block.partition("\n")
        statuses, verdict, name = re.fullmatch(r"([\d|]+|none) (closes|stays): (.*)", title).groups()
        expected = [[]] if statuses == "none" else [[int(s)] for s in statuses.split("|")]
        found.append(pytest.param(expected, verdict, request_of(request), id=name))
    return found


@pytest.fixture(scope="module")
def address(tmp_path_factory, tofu):
    with Server(Home(tmp_path_factory.mktemp("framing") / "home", tofu), config="auth: {loopback: open}\n") as server:
        url = urllib.parse.urlsplit(server.url)
        yield (url.hostname, url.port)


def talk(address, data, until):
    """Sends the bytes and reads until the end, or until so many answers are there. (statuses, ended?)"""
    got = b""
    with socket.create_connection(address, timeout=20) as s:
        s.sendall(data)
        while len(STATUS.findall(got)) < until:
            try:
                piece = s.recv(65536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return [int(c) for c in STATUS.findall(got)], True
            got += piece
    return [int(c) for c in STATUS.findall(got)], False


@pytest.mark.parametrize(("expected", "verdict", "request_bytes"), cases())
def test_a_request_is_read_in_one_way_or_refused(address, expected, verdict, request_bytes):
    statuses, ended = talk(address, request_bytes + NEXT, until=2)
    if verdict == "closes":
        assert statuses in expected and ended, statuses
    else:
        assert statuses[:1] in expected and statuses[1:] == [200], statuses


@pytest.mark.parametrize(("expected", "verdict", "request_bytes"), [c for c in cases() if "closes" in c.values])
def test_a_kept_connection_is_as_strict_as_a_new_one(address, expected, verdict, request_bytes):
    statuses, ended = talk(address, NEXT + request_bytes + NEXT, until=3)
    assert verdict == "closes" and statuses[:1] == [200] and statuses[1:] in expected and ended, statuses


def test_a_request_may_come_in_two_pieces_cut_anywhere(address):
    for at in range(1, len(NEXT)):
        with socket.create_connection(address, timeout=20) as s:
            s.sendall(NEXT[:at])
            s.sendall(NEXT[at:])
            assert STATUS.match(s.recv(4096)).group(1) == b"200", at
