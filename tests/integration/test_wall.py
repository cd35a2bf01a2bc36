"""What the modules of the local engine, and other processes of its user, cannot reach (SECURITY.md)."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

from lib import dayfly, providers
from lib.commands import begun, slow
from lib.dayfly import BUILD, wait_for

NOBODY = 65534
NO_WALL = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")  # root, but it may make no namespaces
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
    directory = tempfile.mkdtemp(prefix="wall-")
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
        wait_for("the apply to begin", lambda: begun(gate))
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
        wait_for("the apply to begin", lambda: begun(gate))
        path = runner_file(server)
        server.kill()
        before = path.read_text()
        path.unlink()
        server.start()
        wait_for("the runner's file to be written again", path.exists)
        assert path.read_text() == before
        unprivileged.run("touch", gate)
        assert run.wait(60) == 0


# What a module tries: each line that it prints begins with STOLEN.
STEAL = r'''
import glob, os, sys, signal, urllib.request

data, cache, spawner, home, url = sys.argv[1:]
tried = 0


def attempt(name, theft):
    global tried
    tried += 1
    try:
        if theft():
            print("STOLEN", name, flush=True)
    except OSError as error:
        print("kept", name, error.__class__.__name__, flush=True)


def read(path):
    return lambda: len(open(path, "rb").read(8)) > 0


def write(path):
    return lambda: open(path, "wb").write(b"x") and False  # the test looks whether it is there


def writable_sys():
    """Is a control group that is owned by this user, as a desktop has it, on a mount that can be written?"""
    places = [line.split()[4] for line in open("/proc/self/mountinfo") if line.split()[4].startswith("/sys")]
    return [p for p in places if os.path.exists(p) and not os.statvfs(p).f_flag & os.ST_RDONLY]


for name in ("key", "dayfly.db", "dayfly.db-wal", "lock", "endpoint"):
    attempt(name, read(f"{data}/{name}"))
attempt("list of data", lambda: [f for f in os.listdir(data) if f != "steps"])
attempt("states", lambda: glob.glob(f"{data}/blobs/**/*.tfstate", recursive=True))
attempt("works", lambda: [f for f in glob.glob(f"{data}/steps/**/victim.txt", recursive=True)])
attempt("results", lambda: glob.glob(f"{data}/steps/*/runner.*"))
attempt("write to data", write(f"{data}/made"))
attempt("write to steps", write(f"{data}/steps/made"))
attempt("write to tools", write(f"{cache}/made"))
attempt("write to a tool", write(f"{cache}/a/terraform"))
attempt("write to its record", write(f"{cache}/a/terraform.sha256"))
for file in ("environ", "mem", "maps", "cwd/", "root/etc/passwd", "cmdline"):
    attempt(f"spawner {file}", read(f"/proc/{spawner}/{file}"))
def ask(method, path, **headers):
    def theft():
        try:
            return urllib.request.urlopen(urllib.request.Request(url + path, method=method, headers=headers), timeout=10).status
        except urllib.error.HTTPError as error:
            print("answer", error.code, flush=True)
    return theft


attempt("delete a secret", ask("DELETE", "/v1/secrets/hidden"))
attempt("audit trail", ask("GET", "/v1/audit"))
attempt("state", ask("GET", "/v1/executors/victim/state"))
attempt("guess", ask("GET", "/v1/secrets", Authorization="Bearer local"))
attempt("signal", lambda: os.kill(int(spawner), 0) is None)
attempt("environments", lambda: [p for p in glob.glob("/proc/[0-9]*/environ") if b"OF_THE_SERVICE" in open(p, "rb").read()])
attempt("other processes", lambda: [p for p in glob.glob("/proc/[0-9]*/cmdline") if b"dayfly" in open(p, "rb").read().split(b"\0")[0]])
for mount in ("umount " + data, "umount -l " + data, "unshare -Urm umount -l " + data, "unshare -Urm mount -t proc p /proc"):
    attempt(mount, lambda: os.system(mount + " 2>/dev/null") == 0 and os.path.exists(f"{data}/key"))
attempt("kernel", lambda: os.access("/proc/sys/kernel/core_pattern", os.W_OK) and os.system("echo x 2>/dev/null >/proc/sys/kernel/core_pattern") == 0)
attempt("control groups", writable_sys)
print("TRIED", tried)
for name in (".aws/config", ".ssh/id", ".gitconfig"):
    print("HOME", name, os.path.exists(f"{home}/{name}"))
try:
    open(f"{home}/made", "w").close()
    print("HOME written")
except OSError:
    print("HOME kept")
open("own", "w").write("own")
print("TMP", bool(os.environ["TMPDIR"] and open(os.environ["TMPDIR"] + "/t", "w").write("x")))
os.system("echo out >/dev/stdout; git --version >/dev/null && echo git works; getent hosts localhost >/dev/null && echo names work")
'''
VICTIM = """
resource "terraform_data" "first" { input = "VictimSecret" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "touch begun; while [ ! -e gate ]; do sleep 0.05; done" }
}
"""
THIEF = """
variable "words" { type = string }
resource "terraform_data" "thief" {
  provisioner "local-exec" { command = "python3 ${path.module}/steal.py ${var.words}" }
}
"""


class World:
    """A service with a victim: an executor with a state, and a step of it that is going on."""

    def __init__(self, home, isolation, data=None):
        self.home, self.isolation = home, isolation
        self.server = dayfly.Server(home, config=f"engine: {{local: {{isolation: {isolation}}}}}\n", data=data)
        self.cache = home.directory / "cache/dayfly/tools"
        (self.cache / "a").mkdir(parents=True)
        for name in ("terraform", "terraform.sha256"):
            (self.cache / "a" / name).write_text("as it was installed")
        for name in (".aws/config", ".ssh/id", ".gitconfig"):
            path = home.directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("")
        self.module = home.module("victim", VICTIM)
        self.work = self.server.data / "steps/at/victim/work/source"  # what the step itself sees, too
        (self.module / "victim.txt").write_text("of the victim")
        self.thief = home.module("thief", THIEF, **{"steal.py": STEAL})
        self.own(home.directory)

    def own(self, directory):
        if isinstance(self.home, Unprivileged):
            for path in [directory, *directory.rglob("*")]:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def __enter__(self):
        self.home.env["OF_THE_SERVICE"] = "1"
        self.server.__enter__()
        del self.home.env["OF_THE_SERVICE"]
        self.victim = self.home.popen(dayfly.DAYFLY, "run", self.module, "--auto-approve", stdout=subprocess.DEVNULL)
        wait_for("the victim's apply to begin", lambda: (self.work / "begun").exists())
        return self

    def __exit__(self, *how):
        if self.victim.poll() is None:
            self.home.run("touch", self.work / "gate")
            self.victim.wait(60)
        self.server.__exit__(*how)

    def made(self):
        """What the thief has written where it may not."""
        places = (*os.walk(self.server.data), *os.walk(self.cache))
        return [directory for directory, _, files in places if "made" in files] + \
            [file for file in (self.cache / "a").iterdir() if file.read_text() != "as it was installed"]

    def steal(self):
        words = [self.server.data, self.cache, self.server.process.pid, self.home.directory, self.server.url]
        done = self.home.dayfly("run", self.thief, "--var", "words=" + " ".join(map(str, words)), "--auto-approve", code=None)
        log = self.home.dayfly("logs", "thief-1").stdout
        assert done.returncode == 0, done.stdout + done.stderr + log
        return log


@pytest.fixture(params=["root", "nobody"])
def anyone(request):
    return request.getfixturevalue({"root": "home", "nobody": "unprivileged"}[request.param])


@pytest.mark.parametrize("isolation", ["auto", "strict"])
def test_a_module_steals_nothing_behind_the_wall(anyone, isolation):
    with World(anyone, isolation) as world:
        log = world.steal()
        assert "STOLEN" not in log, log
        assert re.search("TRIED 33", log) and log.count("answer 401") == 4, log
        assert log.count("HOME") == 4 and (isolation == "strict" or "HOME written" in log), log
        assert not world.made()
        assert (world.home.directory / "made").exists() == (isolation == "auto")
        for name in (".aws/config", ".ssh/id", ".gitconfig"):
            assert f"HOME {name} {isolation == 'auto'}" in log, log
        for line in ("TMP True", "out", "git works", "names work"):
            assert f": {line}\n" in log, (line, log)


MOVE = """
for name in source secret spool fetch home; do
    mv "$PWD/../$name" "$PWD/../$name.old" 2>/dev/null && echo STOLEN $name
    rm -rf "$PWD/../$name" 2>/dev/null; ln -s /tmp "$PWD/../$name" 2>/dev/null; [ -L "$PWD/../$name" ] && echo LINKED $name
done; cd ..; echo TRIED $(ls)
"""


@pytest.mark.parametrize("isolation", ["auto", "strict"])
def test_a_module_puts_nothing_in_place_of_a_directory_where_the_runner_works(anyone, isolation):
    """The runner is outside of the wall, and would follow a link there."""
    with dayfly.Server(anyone, config=f"engine: {{local: {{isolation: {isolation}}}}}\n"):
        module = anyone.module("mover", 'resource "terraform_data" "x" {\n  provisioner "local-exec" { command = %s }\n}\n' % json.dumps(MOVE))
        if isinstance(anyone, Unprivileged):
            os.chown(module, NOBODY, NOBODY)
        anyone.dayfly("run", module, "--auto-approve", code=None)
        log = anyone.dayfly("logs", "mover-1").stdout
    assert re.search("TRIED .*secret", log), log
    assert "): STOLEN" not in log and "): LINKED" not in log, log


def test_a_module_leaves_the_directories_above_the_data_where_they_are(unprivileged):
    """The next step, and the service, look for it there."""
    home = unprivileged
    above = home.directory / "share" / "state"
    code = "".join(f'mv "{d}" "{d}.old" && echo MOVED {d.name}\n' for d in (above / "data", above, above.parent, home.directory))
    code += f'touch "{above}/made" && mv "{above}/made" "{home.directory}/moved" && echo TRIED\n'
    module = home.module("mover", 'resource "terraform_data" "x" {\n  provisioner "local-exec" { command = %s }\n}\n' % json.dumps(code))
    above.mkdir(parents=True)
    for path in (module, above, above.parent, home.directory):
        os.chown(path, NOBODY, NOBODY)
    with dayfly.Server(home, config="engine: {local: {isolation: auto}}\n", data=above / "data") as server:
        home.dayfly("run", "--server", server.url, module, "--auto-approve", code=None)
        log = home.dayfly("logs", "--server", server.url, "mover-1").stdout
    assert "): TRIED" in log and "): MOVED" not in log, log
    assert (home.directory / "moved").exists()


# It says another version where it sees the data directory or another process.
PLANTED = """#!/bin/sh
version=9.9.9
[ ! -e '%s/dayfly.db' ] || version=6.6.6
[ "$(ls -d /proc/[0-9]* | wc -l)" -lt 8 ] || version=6.6.6
echo OpenTofu v$version
"""


@pytest.mark.parametrize("isolation", ["auto", "strict"])
def test_a_program_that_is_asked_for_its_version_is_behind_the_wall(home, isolation):
    """A module may write to a directory of PATH, or where tools are downloaded to."""
    planted = home.directory / "planted"
    planted.mkdir()
    (planted / "tofu").write_text(PLANTED % (home.directory / "data"))
    (planted / "tofu").chmod(0o755)
    home.env["PATH"] = f"{planted}:{home.env['PATH']}"
    with dayfly.Server(home, config=f"engine: {{local: {{isolation: {isolation}}}}}\n"):
        assert "6.6.6" in home.run(planted / "tofu").stdout
        home.dayfly("run", home.module("net", 'terraform {\n}\n'), code=None)
        log = home.dayfly("logs", "net-1").stdout
        assert "dayfly: opentofu 9.9.9" in log, log


def test_a_step_for_which_no_wall_can_be_made_says_why_and_asks_no_program(home):
    document = {"kind": "Executor", "metadata": {"name": "net"},
                "spec": {"source": {"url": f"file://{home.module('net', '')}", "kind": "directory"},
                         "storage": {"type": "local", "path": str(home.directory / "net.tfstate")}}}
    with dayfly.Server(home, config="engine: {local: {isolation: strict}}\n"):
        home.dayfly("create", "-f", "-", input=json.dumps(document))
        home.dayfly("run", "net", code=None)
        status = home.json("get", "run", "net-1")["status"]
    assert status["reason"] == "InvalidStep" and "a step does not see" in status["message"], status


# ---- the shared plugin cache ----

ENCRYPTED = """
terraform {
  encryption {
    key_provider "external" "k" { command = ["sh", "./key"] }
    method "aes_gcm" "m" { keys = key_provider.external.k }
    state { method = method.aes_gcm.m }
  }
}
module "a" { source = "./a" }
"""
# The tool has a plugin cache in `init` alone.
KEY = """#!/bin/sh
if [ -n "$TF_PLUGIN_CACHE_DIR" ]; then
%s
fi
echo '{"magic":"OpenTofu-External-Key-Provider","version":1}'
cat > /dev/null
key=$(printf '0%%.0s' $(seq 32) | base64 -w 0)
echo '{"keys":{"encryption_key":"'"$key"'","decryption_key":"'"$key"'"},"meta":{}}'
"""


@pytest.mark.parametrize("isolation", ["auto", "strict"])
def test_code_that_runs_in_init_changes_no_package_that_others_run(home, isolation):
    """A key provider "external" puts its own packages beside the tool's, which shows that it ran, and tries the others."""
    cache = home.directory / "plugins"
    simple, other = (f"registry.invalid/test/{name}/1.0.0/{providers.platform()}" for name in ("simple", "other"))

    def module(name, words, code):
        stage = "\n".join(f'mkdir -p $TF_PLUGIN_CACHE_DIR/{p} && echo {words} >$TF_PLUGIN_CACHE_DIR/{p}/program'
                          for p in (simple, other if words == "evil" else simple))
        home.module(f"{name}/a", 'resource "terraform_data" "a" {}\n')
        return home.module(name, ENCRYPTED, key=KEY % f"{stage}\n{code}")

    def seen():
        return {str(p.relative_to(cache)): p.read_text() for p in sorted(cache.rglob("*")) if p.is_file()}

    steal = f"""( echo evil >{cache / simple}/program; rm -rf {cache / simple}; echo evil >{cache / simple}.h1
        touch {cache}/made; mkdir {cache}/.stage-made; ln {cache / simple}/program hard ) 2>/dev/null"""
    with dayfly.Server(home, config=f"engine: {{local: {{isolation: {isolation}}}}}\nproviders: {{pluginCacheDirectory: {cache}}}\n"):
        home.dayfly("run", module("victim", "good", ":"), "--auto-approve")
        before = seen()
        assert before[f"{simple}/program"] == "good\n"
        home.dayfly("run", module("thief", "evil", steal), "--auto-approve")
        after = seen()
    assert after.pop(f"{other}/program") == "evil\n" and after.pop(f"{other}.h1"), "it ran in init"
    after.pop(f"{other}.use")
    assert after == before
    assert not (cache / ".stage-made").exists()


# ---- secrets below what strict shows -------------------------------------------------------------------------------

# What a module behind the wall finds of the service: words that are in its files, and in no other place.
SEARCH = """
cd /usr/local && find . -type f | grep -v '/at/' | sed 's/^/FOUND /'
for file in /usr/local/etc/tls/tls.key /usr/local/etc/tokens /usr/local/data/key /etc/ssl/private/*; do
    [ -s "$file" ] && echo "FOUND $file"; done; echo SEARCHED
"""


# Runs a command with a directory at another place, and only there.
MOVED = """
import os, subprocess, sys
there, here = sys.argv[1:3]
subprocess.run(["mount", "--bind", there, here], check=True)
subprocess.run(["mount", "-t", "tmpfs", "none", os.path.dirname(there)], check=True)
os.execvp(sys.argv[3], [word.replace(there, here) for word in sys.argv[3:]])
"""


def test_strict_shows_no_secret_of_the_service_below_usr(home, tmp_path):
    """A data directory, a TLS key and a token file below /usr, which strict shows. /usr/local is this test's own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    place, token = tmp_path / "moved/local", "t" * 20
    line = f"ci admin {hashlib.sha256(token.encode()).hexdigest()}\n"
    for name, text in {"etc/secret/tokens": line, "etc/tls/tls.key": "KEY", "etc/open/file": "x"}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / "etc/secret/tokens").chmod(0o600)
    server = dayfly.Server(home, "--set", f"auth.tokenFile={place}/etc/secret/tokens", "--set", f"stateService.tokenFile={place}/etc/tls/tls.key",
                           data=place / "data")
    server.start(prefix=("unshare", "--mount", "python3", "-c", MOVED, place, "/usr/local"))
    try:
        home.env["DAYFLY_TOKEN"] = token
        module = home.module("search", 'resource "terraform_data" "x" {\n  provisioner "local-exec" { command = %s }\n}\n' % json.dumps(SEARCH))
        log = home.dayfly("run", module, "--auto-approve").stdout
    finally:
        assert server.stop() == 0
    found = re.findall(r"local-exec\): FOUND (\S+)", log)
    assert "SEARCHED" in log and found == ["./etc/open/file"], log
    assert (place / "data/key").exists()


@pytest.mark.parametrize("mode", ["auto", "strict", None])
def test_a_service_with_tokens_does_not_start_where_no_wall_is_possible(home, mode):
    if os.geteuid() != 0:
        pytest.skip("needs root to take a capability away")
    (home.directory / "tokens").write_text("ci admin " + "0" * 64 + "\n")
    isolation = ("--set", f"engine.local.isolation={mode}") if mode else ()
    refused = home.run(*NO_WALL, dayfly.DAYFLY, "serve", "--listen", "127.0.0.1:0", "--set", f"auth.tokenFile={home.directory}/tokens", *isolation)
    assert refused.returncode == 3 and f"engine.local.isolation: {mode or 'strict'} is not possible here" in refused.stderr, refused.stderr


def test_without_tokens_or_with_none_a_service_starts_there(home):
    if os.geteuid() != 0:
        pytest.skip("needs root to take a capability away")
    (home.directory / "tokens").write_text("ci admin " + "0" * 64 + "\n")
    for args, warns in (((), True), (("--set", "engine.local.isolation=none", "--set", f"auth.tokenFile={home.directory}/tokens"), False)):
        server = dayfly.Server(home, *args)
        server.start(prefix=NO_WALL)
        assert server.stop() == 0
        assert ("steps are not isolated" in server.log.read_text()) == warns
        server.log.unlink()


def test_without_a_wall_the_same_module_steals(home):
    with World(home, "none") as world:
        log = world.steal()
        for name in ("key", "dayfly.db", "works", "results", "signal"):
            assert f"STOLEN {name}\n" in log, (name, log)
            assert len(world.made()) == 5


def test_steps_behind_the_wall_end_as_others_and_leave_nothing(anyone):
    with World(anyone, "strict") as world:
        world.steal()
    assert world.victim.returncode == 0
    assert not list((world.server.data / "steps").glob("*-*-*"))


# ---- the token of a service without other ones ----------------------------------------------------------------------

def codes(server, *headers):
    """The statuses of requests with these Authorization headers; None: without one."""
    def ask(header):
        headers = {"Authorization": header} if header else {}
        try:
            return urllib.request.urlopen(urllib.request.Request(server.url + "/v1/executors", headers=headers)).status
        except urllib.error.HTTPError as error:
            return error.code
    return [ask(header) for header in headers]


def test_a_step_behind_the_wall_may_not_fill_the_memory_and_ends_before_the_service(home):
    """What it writes to its own /tmp is memory; when that runs out anyway, the kernel takes the step."""
    shown = "df --output=target,size -k /tmp /dev/shm | sed 's/^/PLACE /'; echo PRIORITY $(cat /proc/self/oom_score_adj)"
    home.module("net", 'resource "terraform_data" "x" {\n  provisioner "local-exec" { command = %s }\n}\n' % json.dumps(shown))
    home.env["DAYFLY_ENGINE_LOCAL_ISOLATION"] = "strict"
    log = home.dayfly("run", "net", "--auto-approve", cwd=home.directory).stdout
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    sizes = dict(re.findall(r"PLACE (/\S+)\s+(\d+)", log))
    assert set(sizes) == {"/tmp", "/dev/shm"} and all(int(size) <= memory * 0.21 for size in sizes.values()), log
    assert "PRIORITY 500" in log


def test_without_its_token_a_service_on_loopback_admits_nobody(home):
    with dayfly.Server(home) as server:
        assert codes(server, None, "Bearer x", f"Bearer {server.token()}") == [401, 401, 200]
        assert (server.data / "token").stat().st_mode & 0o777 == 0o600
        assert len(server.token()) == 64
        before = server.token()
        server.stop()
        server.start()
        assert server.token() == before


def test_a_token_that_others_could_read_is_replaced(home):
    with dayfly.Server(home) as server:
        before = server.token()
        server.stop()
        (server.data / "token").chmod(0o644)
        server.start()
        assert server.token() != before and (server.data / "token").stat().st_mode & 0o777 == 0o600
        assert codes(server, f"Bearer {before}", f"Bearer {server.token()}") == [401, 200]


def test_commands_of_the_same_user_find_the_token_and_those_of_another_do_not(unprivileged):
    with dayfly.Server(unprivileged, data=unprivileged.state) as server:
        del unprivileged.env["DAYFLY_TOKEN"]
        unprivileged.dayfly("get", "executors")  # by DAYFLY_SERVER
        unprivileged.dayfly("get", "executors", env={"DAYFLY_SERVER": server.url.replace("127.0.0.1", "localhost") + "/"})
        unprivileged.dayfly("get", "executors", env={"DAYFLY_SERVER": ""})  # by the data directory
        unprivileged.prefix = ("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "--")
        refused = unprivileged.dayfly("get", "executors", code=None)
        assert refused.returncode != 0 and "bearer token" in refused.stderr, refused.stderr


def test_a_process_that_listens_where_the_service_did_does_not_get_its_token(home):
    with dayfly.Server(home, data=home.state) as server:
        token, url = server.token(), server.url
        del home.env["DAYFLY_TOKEN"]
    with socket.create_server(("127.0.0.1", int(url.rpartition(":")[2]))) as listener:
        command = home.popen(dayfly.DAYFLY, "get", "executors", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connection = listener.accept()[0]
        head = connection.recv(65536).decode()
        connection.close()
        command.kill()
        command.wait()
    assert head.startswith("GET ") and "Authorization" not in head and token not in head, head


def test_loopback_can_be_open_and_a_token_file_ends_the_token(home):
    with dayfly.Server(home, config="auth: {loopback: open}\n") as server:
        assert codes(server, None) == [200] and server.token() is None
    with dayfly.Server(home) as server:
        assert server.token()
    (home.directory / "tokens").write_text("")
    with dayfly.Server(home, config=f"auth: {{tokenFile: {home.directory}/tokens}}\n") as server:
        assert server.token() is None


LINKER = """
variable "key" { type = string }
resource "terraform_data" "linker" {
  provisioner "local-exec" { command = "ln -s ${var.key} errored.tfstate; exit 1" }
}
"""


# A folder of the source that becomes a link, while tofu works in it.
SWAPPER = """
variable "outside" { type = string }
resource "terraform_data" "swapper" {
  provisioner "local-exec" { command = "cd .. && mv net was && ln -s ${var.outside} net; exit 1" }
}
"""


def test_the_runner_does_not_follow_a_folder_that_the_module_made_a_link(home):
    outside = home.directory / "outside"
    outside.mkdir()
    foreign = outside / "errored.tfstate"
    foreign.write_text('{"marker": "of-another-step"}')
    with dayfly.Server(home) as server:
        home.module("infra/net", SWAPPER)
        home.dayfly("run", home.directory / "infra", "--folder", "net", "--var", f"outside={outside}", "--auto-approve", code=None)
        assert home.json("state", "errored", "infra-net")["items"] == []
        server.stop()
        assert not [f for f in server.data.rglob("*") if f.is_file() and b"of-another-step" in f.read_bytes()]
    assert foreign.exists()


def test_the_runner_does_not_follow_a_link_of_the_module_to_the_key(home):
    with dayfly.Server(home) as server:
        module = home.module("linker", LINKER)
        home.dayfly("run", module, "--var", f"key={server.data}/key", "--auto-approve", code=2)
        key = (server.data / "key").read_bytes().strip()
        server.stop()
        kept = [f for f in server.data.rglob("*") if f.is_file() and f.name != "key" and key in f.read_bytes()]
        assert not kept
