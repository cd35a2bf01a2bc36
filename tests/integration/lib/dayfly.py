"""The real programs as tests drive them: command line, server, runner, work directories."""

import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("DAYFLY_BUILD", ROOT / "build")).resolve()
DAYFLY = BUILD / "dayfly"
RUNNER = BUILD / "dayfly-runner"
CRASHES = (99, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE)  # 99: of a sanitizer
DEADLINE = 180.0  # seconds after which something that should happen counts as never happening


def wait_for(what, condition, seconds=DEADLINE):
    """Polls until condition() is true and returns its value; fails with the name of what was awaited. It looks more
    rarely as time goes by, and no more than half of the time: others want to work meanwhile."""
    began, pause = time.monotonic(), 0.01
    while True:
        look = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > began + seconds:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
        pause = min(pause * 1.1, 0.1)
        time.sleep(max(pause, min(now - look, 0.25)))


def alive(pid):
    """Is this process there, and not only a zombie?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def children(pid):
    """Direct children of a process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def free_port(host="127.0.0.1"):
    """A port of this address that is free now, for what must know its address beforehand; bind it at once."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


class Home:
    """A user of their own: HOME, XDG directories, PATH with one tool in front, nothing inherited."""

    def __init__(self, directory, tool):
        self.directory = pathlib.Path(directory)
        self.state = self.directory / "state" / "dayfly"
        self.bin = self.directory / "bin"
        self.bin.mkdir(parents=True)
        name = "tofu" if "tofu" in pathlib.Path(tool).name else "terraform"
        (self.bin / name).symlink_to(tool)
        self.token = ""  # of the server that started last
        self.runtime = "opentofu" if name == "tofu" else "terraform"
        self.env = {
            "HOME": str(self.directory),
            "PATH": f"{self.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "XDG_STATE_HOME": str(self.directory / "state"),
            "XDG_CACHE_HOME": str(self.directory / "cache"),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def popen(self, *args, env=None, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("text", True)
        return subprocess.Popen([str(a) for a in args], env={**self.env, **(env or {})}, **kwargs)

    def run(self, *args, env=None, timeout=DEADLINE * 2, **kwargs):
        """Runs a program to its end; the result has returncode, stdout, stderr."""
        kwargs.setdefault("capture_output", True)
        kwargs.setdefault("text", True)
        if "input" not in kwargs:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([str(a) for a in args], env={**self.env, **(env or {})}, timeout=timeout,
                              check=False, **kwargs)

    def dayfly(self, *args, code=0, **kwargs):
        """Runs `dayfly ...` and insists on the exit code (None: any)."""
        result = self.run(DAYFLY, *args, **kwargs)
        if code is not None and result.returncode != code:
            raise AssertionError(f"dayfly {' '.join(map(str, args))}: exit {result.returncode}, not {code}\n"
                                 f"--- stdout\n{result.stdout}\n--- stderr\n{result.stderr}")
        return result

    def json(self, *args, **kwargs):
        return json.loads(self.dayfly(*args, "-o", "json", **kwargs).stdout)

    def module(self, name, text, **files):
        """Writes a module directory with main.tf and further files; returns its path."""
        directory = self.directory / name
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "main.tf").write_text(text)
        for file, content in files.items():
            (directory / file).write_text(content)
        return directory

    def git(self, directory, *args):
        result = self.run("git", "-C", directory, "-c", "user.name=t", "-c", "user.email=t@example.org",
                          "-c", "init.defaultBranch=main", *args)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    def repository(self, directory):
        """Turns a module directory into a git repository with one commit; returns the commit."""
        self.git(directory, "init", "-q")
        self.git(directory, "add", "-A")
        self.git(directory, "commit", "-qm", "module")
        return self.git(directory, "rev-parse", "HEAD")


class Server:
    """A `dayfly serve` of its own; `with Server(home) as server:` stops it and insists on a clean end."""

    def __init__(self, home, *args, config=None, data=None, listen="127.0.0.1:0"):
        self.home = home
        self.listen = listen
        self.args = list(args)
        self.data = pathlib.Path(data or home.directory / "data")
        self.log = home.directory / "serve.log"
        if config is not None:
            path = home.directory / "dayfly.yaml"
            path.write_text(config)
            self.args += ["--config", str(path)]
        self.process = None
        self.program = DAYFLY
        self.url = None
        self.reach = None  # the URL from here, where what it tells its runners is of use to them alone

    def start(self, prefix=()):
        endpoint = self.data / "endpoint"
        before = endpoint.stat().st_mtime_ns if endpoint.exists() else None
        with open(self.log, "ab") as log:
            self.process = self.home.popen(*prefix, self.program, "serve", "--data-directory", self.data,
                                           "--listen", self.listen, *self.args, stdout=log, stderr=log)

        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"dayfly serve ended with {self.process.returncode}:\n{self.log.read_text()}")
            if not endpoint.exists() or endpoint.stat().st_mtime_ns == before:
                return False
            url = self.reach or endpoint.read_text().strip()
            try:
                with urllib.request.urlopen(url + "/readyz", timeout=5, context=self.trust()) as answer:
                    return url if answer.status == 200 else False
            except OSError:
                return False

        self.url = wait_for("dayfly serve to be ready", ready)
        self.home.env["DAYFLY_SERVER"] = self.url
        if self.home.env.get("DAYFLY_TOKEN", "") == self.home.token:  # not one that a test has set
            self.home.token = self.home.env["DAYFLY_TOKEN"] = self.token() or ""
        return self

    def token(self):
        """The token that a service without other ones made for its user."""
        path = self.data / "token"
        return path.read_text().strip() if path.exists() else None

    def authorization(self):
        """The header of this user's requests."""
        return {"Authorization": f"Bearer {self.token()}"} if self.token() else {}

    def trust(self):
        """What clients of this server are to trust, when it speaks https."""
        ca = self.data / "ca.pem"
        return ssl.create_default_context(cafile=ca) if ca.exists() else None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=DEADLINE):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=seconds)
        code = self.process.returncode if self.process else None
        assert code not in CRASHES, f"dayfly serve CRASHED ({code}):\n{self.log.read_text()[-20000:]}"
        return code

    def request(self, method, path, body=None, headers=None, timeout=30):
        """(status, headers, bytes) of one request; never raises for a status."""
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        request = urllib.request.Request(self.url + path, data=data, method=method, headers={**self.authorization(), **(headers or {})})
        if isinstance(body, (dict, list)):
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=self.trust()) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read()

    def get(self, path):
        status, _, body = self.request("GET", path)
        assert status == 200, (status, body)
        return json.loads(body)

    def __enter__(self):
        return self if self.process and self.process.poll() is None else self.start()

    def __exit__(self, kind, value, trace):
        if kind is not None and self.log.exists():
            print("--- log of dayfly serve\n" + self.log.read_text()[-20000:])
        try:
            code = self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if kind is None:
            assert code == 0, f"dayfly serve ended with {code}:\n{self.log.read_text()[-20000:]}"


@functools.cache
def tool(name):
    """The path that tests/tools/get-<name> prints; what is not there yet it builds or fetches first."""
    return subprocess.run([ROOT / f"tests/tools/get-{name}"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def tofu():
    """The real OpenTofu of these tests."""
    return os.environ.get("DAYFLY_TEST_TOFU") or tool("tofu")


def terraform():
    """A real Terraform when the machine has one, else None (there is none to be had from packages)."""
    return os.environ.get("DAYFLY_TEST_TERRAFORM") or shutil.which("terraform")
