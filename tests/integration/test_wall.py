"""What the modules of the local engine, and other processes of its user, cannot reach (SECURITY.md)."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from lib import dayfly
from lib.commands import begun, slow
from lib.dayfly import BUILD, wait_for

NOBODY = 65534
READ = """
import os, sys
for name in ("environ", "mem", "maps"):
    try:
        fd = os.open(f"/proc/{sys.argv[1]}/{name}", os.O_RDONLY)
        print(name, len(os.read(fd, 10)) if name != "mem" else 10)
    except OSError as error:
        print(name, error.__class__.__name__)
"""


class Unprivileged(dayfly.Home):
    """A user without rights. Programs and tool are copies: that user need not be able to enter the directory of ours."""

    def __init__(self, directory, tofu):
        directory = pathlib.Path(directory)
        shutil.copy(tofu, directory / "tofu")
        super().__init__(directory / "home", directory / "tofu")
        for program in ("dayfly", "dayfly-runner"):
            shutil.copy(BUILD / program, self.bin / program)
        for path in [directory, *directory.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        self.prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")

    def popen(self, *args, **kwargs):
        return super().popen(*self.prefix, *self.mine(args), **kwargs)

    def run(self, *args, **kwargs):
        return super().run(*self.prefix, *self.mine(args), **kwargs)

    def mine(self, args):
        return [self.bin / "dayfly" if a == dayfly.DAYFLY else a for a in args]


@pytest.fixture
def unprivileged(tofu):
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    directory = tempfile.mkdtemp(prefix="dayfly-wall-")
    yield Unprivileged(directory, tofu)
    shutil.rmtree(directory)


def runner_file(server):
    """Where the identity of the runner of the step that is going on is written."""
    files = (server.data / "steps").glob("*/runner.pid")
    return next(f for f in files if dayfly.alive(int(f.read_text().split()[0])))


def test_database_and_its_siblings_are_closed_to_others_whatever_the_umask(home):
    with dayfly.Server(home, data=home.directory / "data") as server:
        server.data.joinpath("dayfly.db").chmod(0o644)
        server.stop()
        server.start(prefix=("sh", "-c", 'umask 0; exec "$@"', "sh"))
        modes = {f.name: f.stat().st_mode & 0o777 for f in server.data.glob("dayfly.db*")}
        assert len(modes) == 3 and set(modes.values()) == {0o600}, modes


def test_processes_of_the_same_user_read_neither_memory_nor_environment_of_spawner_and_runner(unprivileged):
    module, gate = slow(unprivileged)
    os.chown(module, NOBODY, NOBODY)
    with dayfly.Server(unprivileged) as server:
        run = unprivileged.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", stdout=subprocess.DEVNULL)
        wait_for("the apply to begin", lambda: begun(gate), 20)
        runner = int(runner_file(server).read_text().split()[0])
        for pid in (server.process.pid, runner):
            seen = unprivileged.run("python3", "-c", READ, pid).stdout.split("\n")
            assert seen[:3] == ["environ PermissionError", "mem PermissionError", "maps PermissionError"], (pid, seen)
        unprivileged.run("touch", gate)
        assert run.wait(60) == 0


def test_an_unprivileged_spawner_finds_again_a_runner_whose_pid_it_had_no_time_to_write(unprivileged):
    module, gate = slow(unprivileged)
    os.chown(module, NOBODY, NOBODY)
    with dayfly.Server(unprivileged) as server:
        run = unprivileged.popen(dayfly.DAYFLY, "run", module, "--var", f"gate={gate}", "--auto-approve", stdout=subprocess.DEVNULL)
        wait_for("the apply to begin", lambda: begun(gate), 20)
        path = runner_file(server)
        server.kill()
        before = path.read_text()
        path.unlink()
        server.start()
        wait_for("the runner's file to be written again", path.exists)
        assert path.read_text() == before
        unprivileged.run("touch", gate)
        assert run.wait(60) == 0
