"""A service that does not stop in order: its log says why, and its successor that it did."""

import os
import signal

import pytest

from lib.dayfly import Server


def lines_of(server, word):
    return [line for line in server.log.read_text().splitlines() if word in line]


def unclean_ends(server):
    body = server.request("GET", "/metrics")[2].decode()
    return [int(float(line.split()[1])) for line in body.splitlines() if line.startswith("dayfly_unclean_ends ")][0]


def end_by(server, number):
    os.kill(server.process.pid, number)
    assert server.process.wait(timeout=30) == -number


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGILL])
def test_a_service_that_a_fatal_signal_ends_logs_it_in_one_line_with_a_backtrace(home, number):
    server = Server(home).start()
    end_by(server, number)
    told = lines_of(server, "fatal signal")
    assert len(told) == 1
    assert f"fatal signal {number.name} sent by process {os.getpid()}" in told[0]
    assert " dayfly+0x" in told[0].split("; backtrace:")[1]


def test_a_service_knows_that_the_one_before_it_was_killed(home):
    server = Server(home).start()
    assert unclean_ends(server) == 0
    pid = server.process.pid
    server.kill()
    with server:
        assert unclean_ends(server) == 1
        assert f"the process before this one ({pid}, dayfly serve) ended without stopping" in server.log.read_text()
    found = home.dayfly("doctor", "--data-directory", server.data, code=None).stdout
    assert "[warn] data-directory: 1 process ended without stopping, the last one (dayfly serve)" in found


def test_an_orderly_stop_is_not_counted(home):
    server = Server(home)
    for _ in range(2):
        with server:
            assert unclean_ends(server) == 0
    assert not lines_of(server, "without stopping")
    assert "without stopping" not in home.dayfly("doctor", "--data-directory", server.data, code=None).stdout
