"""The clock of the service is 20 minutes from that of its pods, of their nodes and of the API server."""

import glob

import pytest

from lib.dayfly import ROOT
from lib.pods import Pods

SMALL = 'resource "terraform_data" "a" {\n  input = 1\n}\noutput "n" {\n  value = 1\n}\n'


class Off(Pods):
    """A service whose clock is off."""

    def __init__(self, offset, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.offset = offset
        # A sanitizer wants to be loaded first, too, and jemalloc asks for the time before libfaketime is ready.
        self.server.program = ROOT / "build/tools/dayfly-libc"

    def start(self):
        library, = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")  # the program would stand between us and the service
        self.server.start(prefix=("env", f"LD_PRELOAD={library}", f"FAKETIME={self.offset}"))
        self.home.env.pop("DAYFLY_SERVER")
        return self


@pytest.mark.parametrize("offset", ["+20m", "-20m"])
def test_a_clock_that_is_20_minutes_off_stops_no_run(home, namespace, tofu, offset):
    with Off(offset, home, namespace, tofu) as world:
        world.executor("net", SMALL)
        ended = world.ended(world.ask("net", "provision"))
        assert (ended["phase"], ended["reason"]) == ("Succeeded", "Applied"), ended


@pytest.mark.parametrize("offset", ["+20m", "-20m"])
def test_a_clock_that_is_20_minutes_off_makes_no_wait_shorter_or_longer(home, namespace, tofu, offset):
    """A pod that finds no node is given up after the time that was said, and not before."""
    with Off(offset, home, namespace, tofu) as world:
        world.executor("net", SMALL, placement={"nodeSelector": {"disk": "nowhere"}}, timeouts={"pending": "8s"})
        ended = world.ended(world.ask("net", "dry-run"))
        assert (ended["phase"], ended["reason"]) == ("Failed", "Unschedulable"), ended
