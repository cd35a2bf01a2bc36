"""The unit packaging/dayfly.service as it stands, under a real systemd: the first process of namespaces of its own."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from lib import dayfly
from lib.dayfly import wait_for

# Makes a machine of its own of these namespaces: systemd, the programs, a tofu, and nothing that lasts.
MACHINE = r"""
set -eu
programs=$1 tofu=$2 shared=$3
mount --make-rprivate /
umount --lazy --recursive /sys/fs/cgroup
mount -t proc proc /proc
ip link set lo up
mount -t tmpfs -o mode=755 none /run
mkdir -p /run/systemd/system/dayfly.service.d /run/programs /run/tool /run/etc /run/shared
cp "$programs/dayfly" "$programs/dayfly-runner" /run/programs/
cp "$tofu" /run/tool/tofu
cp -a /etc/. /run/etc/ && mount --bind /run/etc /etc
mount --bind "$shared" /run/shared
mkdir -p /etc/dayfly && cp /run/shared/dayfly.yaml /etc/dayfly/
sed s,@BINDIR@,/run/programs, /run/shared/dayfly.service >/run/systemd/system/dayfly.service
cp /run/shared/test.conf /run/systemd/system/dayfly.service.d/
for place in /var/lib /var/cache /var/tmp /tmp; do mount -t tmpfs none "$place"; done
container=dayfly-test exec /lib/systemd/systemd --system --unit=dayfly.service --log-target=null
"""
# What no machine but this one needs.
DROP_IN = """
[Unit]
DefaultDependencies=no
[Service]
Environment=PATH=/run/tool:/usr/bin:/bin
StandardOutput=append:/run/dayfly.log
StandardError=append:/run/dayfly.log
"""
STEAL = r"""
for file in /var/lib/dayfly/key /var/lib/private/dayfly/key /var/lib/dayfly/token /var/lib/dayfly/dayfly.db /etc/dayfly/dayfly.yaml; do
    [ -s "$file" ] && [ -n "$(head -c 1 "$file")" ] && echo "STOLEN $file"; done
for process in /proc/[0-9]*; do grep -qsz '^/run/programs/dayfly$' "$process/cmdline" && echo "STOLEN $process"; done
grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status; echo TRIED
"""
SLOW = """
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "touch begun; while [ ! -e gate ]; do sleep 0.05; done" }
}
"""


def group_of_this_process():
    """The directory of its cgroup (version 2); None: there is none that this test may use."""
    found = re.search(r"^\S+ (\S+) cgroup2 ", pathlib.Path("/proc/self/mounts").read_text(), re.M)
    own = re.search(r"^0::/(.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.M)
    return pathlib.Path(found[1]) / own[1] if found and own else None


class Machine:
    """with Machine(...) as machine: the unit has been started."""

    def __init__(self, directory, tofu, settings="", config=None):
        self.directory, self.tofu = directory, tofu
        directory.mkdir(mode=0o755)
        shutil.copy(dayfly.ROOT / "packaging/dayfly.service", directory)
        (directory / "dayfly.yaml").write_text(config or (dayfly.ROOT / "packaging/dayfly.yaml").read_text())
        (directory / "test.conf").write_text(DROP_IN + settings)
        for path in [directory, *directory.parents]:
            if path.owner() == "root" and "pytest" in str(path):
                path.chmod(0o755)
        self.group = group_of_this_process() / f"dayfly-unit-{os.getpid()}"

    def __enter__(self):
        self.group.mkdir()
        begin = f"echo $$ >{self.group}/cgroup.procs && exec unshare --mount --pid --net --cgroup --fork --kill-child sh -c \"$0\" sh \"$@\""
        self.process = subprocess.Popen(["sh", "-c", begin, MACHINE, str(dayfly.BUILD), str(self.tofu), str(self.directory)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            self.init = wait_for("systemd", lambda: next(iter(dayfly.children(self.process.pid)), None))
            wait_for("the service", lambda: self.ended() or "serving at" in self.log() or "is not possible here" in self.log())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *how):
        self.process.kill()  # and systemd with it, and with that every process of its namespace
        said = self.process.communicate()[1]
        for path in sorted(self.group.rglob("*/"), reverse=True):
            wait_for("the control groups to be empty", lambda: removed(path))
        wait_for("the control group to be empty", lambda: removed(self.group))
        print(said)

    def ended(self):
        if self.process.poll() is not None:
            pytest.skip("no systemd runs in namespaces here: " + self.process.communicate()[1][-500:])

    def log(self):
        path = pathlib.Path(f"/proc/{self.init}/root/run/dayfly.log")
        return path.read_text() if path.exists() else ""

    def run(self, *command, **kwargs):
        """A command of root on this machine."""
        env = {"PATH": "/run/programs:/usr/bin:/bin", "HOME": "/run", "DAYFLY_SERVER": "http://127.0.0.1:8030"}
        token = pathlib.Path(f"/proc/{self.init}/root/var/lib/private/dayfly/token")
        env["DAYFLY_TOKEN"] = token.read_text().strip() if token.exists() else ""
        enter = ["nsenter", f"--target={self.init}", "--mount", "--pid", "--net", "--wd=/run", "--"]
        return subprocess.Popen([*enter, *map(str, command)], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)

    def output(self, *command, code=0):
        process = self.run(*command)
        said = process.communicate(timeout=dayfly.DEADLINE * 2)[0]
        assert process.returncode == code, f"{command}: {process.returncode}\n{said}\n{self.log()}"
        return said

    def main_pid(self):
        """As this machine counts."""
        return int(self.output("systemctl", "show", "--property=MainPID", "--value", "dayfly").strip())

    def module(self, name, text):
        """A directory that the service may read, /run/shared/NAME there."""
        (self.directory / name).mkdir()
        (self.directory / name / "main.tf").write_text(text)
        return f"/run/shared/{name}"


def removed(path):
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture
def machine(tmp_path, tofu):
    if os.geteuid() != 0 or not shutil.which("systemctl") or not group_of_this_process():
        pytest.skip("needs root, systemd and control groups of version 2")
    return lambda **kwargs: Machine(tmp_path / "shared", tofu, **kwargs)


def thief(machine):
    return machine.module("thief", 'resource "terraform_data" "x" {\n  provisioner "local-exec" { command = %s }\n}\n' % json.dumps(STEAL))


def test_under_its_own_restrictions_the_wall_is_built_and_a_module_steals_nothing(machine):
    with machine() as m:
        log = m.output("dayfly", "run", thief(m), "--auto-approve")
        assert "local-exec): TRIED" in log and "local-exec): STOLEN" not in log, log
        assert re.search(r"CapPrm:\s*0{16}\b", log), log
        assert "not isolated" not in m.log()
        # The kernel gives the wall a /proc of its own only where nothing lies over that of the service.
        mounts = m.output("cat", f"/proc/{m.main_pid()}/mountinfo")
        assert not re.search(r"^\d+ \d+ \S+ \S+ /proc/", mounts, re.M), mounts


def test_without_a_wall_the_same_module_steals(machine):
    config = (dayfly.ROOT / "packaging/dayfly.yaml").read_text()
    with machine(config=re.sub("isolation: .*", "isolation: none", config)) as m:
        log = m.output("dayfly", "run", thief(m), "--auto-approve")
        assert "local-exec): STOLEN /var/lib/dayfly/key" in log and "local-exec): STOLEN /proc/" in log, log


def test_where_the_unit_allows_no_namespaces_the_shipped_configuration_does_not_start(machine):
    with machine(settings="RestrictNamespaces=yes\n") as m:
        assert "engine.local.isolation: strict is not possible here" in m.log() and "serving" not in m.log()
        wait_for("the unit to fail", lambda: "ActiveState=failed" in m.output("systemctl", "show", "dayfly"))


def test_a_runner_outlives_a_crash_of_the_service_and_the_next_one_finds_it(machine):
    with machine() as m:
        run = m.run("dayfly", "run", m.module("slow", SLOW), "--auto-approve", "--detach")
        assert run.wait(60) == 0, run.stdout.read()
        work = pathlib.Path(f"/proc/{m.init}/root/var/lib/private/dayfly/steps/at/slow/work/source")
        wait_for("the apply to begin", lambda: (work / "begun").exists())
        before = m.main_pid()
        m.output("kill", f"-{int(signal.SIGKILL)}", before)
        wait_for("the next service", lambda: m.log().count("serving at") == 2)
        assert m.main_pid() not in (0, before)
        (work / "gate").touch()
        wait_for("the run to end", lambda: "Succeeded" in m.output("dayfly", "get", "runs"))
        assert "RunnerLost" not in m.log()
