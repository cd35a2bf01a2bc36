"""Real git repositories behind real servers: Debian's sshd, and `git http-backend` behind TLS."""

import base64
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading

from . import dayfly, web

GIT_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_ALLOW_PROTOCOL": "file:https:ssh",
}


def sh(*args, cwd=None, env=None, stdin=None):
    """Runs a program that must succeed; its stdout as text without the last line feed."""
    done = subprocess.run([str(a) for a in args], cwd=cwd, env={**GIT_ENV, **(env or {})}, input=stdin,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{args}: {done.stderr}"
    return done.stdout.rstrip("\n")


class Repository:
    """A bare repository that is filled without a work tree: what git would refuse to check in goes in, too."""

    def __init__(self, path, ids="sha1"):
        self.path = pathlib.Path(path)
        sh("git", "init", "-q", "--bare", "-b", "main", f"--object-format={ids}", self.path)

    def git(self, *args, **kwargs):
        return sh("git", "-C", self.path, *args, **kwargs)

    def blob(self, text):
        return self.git("hash-object", "-w", "--stdin", stdin=text)

    def tree(self, files):
        """files: {path: text | (mode, text or object id)}; nested directories are made."""
        entries, below = [], {}
        for path, content in files.items():
            head, _, rest = path.partition("/")
            if rest:
                below.setdefault(head, {})[rest] = content
                continue
            mode, text = content if isinstance(content, tuple) else ("100644", content)
            kind = {"160000": "commit", "040000": "tree"}.get(mode, "blob")
            entries.append((head, mode, kind, text if kind != "blob" else self.blob(text)))
        entries += [(name, "040000", "tree", self.tree(inner)) for name, inner in below.items()]
        # By hand, because git mktree refuses what a stranger's server would not.
        raw = b"".join(mode.lstrip("0").encode() + b" " + name.encode() + b"\0" + bytes.fromhex(oid)
                       for name, mode, kind, oid in
                       sorted(entries, key=lambda e: e[0] + ("/" if e[2] == "tree" else "")))
        file = self.path / "tree.tmp"
        file.write_bytes(raw)
        return self.git("hash-object", "-t", "tree", "-w", "--literally", file)

    def commit(self, files, branch="main", message="change"):
        """Adds a commit with exactly these files to a branch; its id."""
        parent = subprocess.run(["git", "-C", self.path, "rev-parse", "-q", "--verify", f"refs/heads/{branch}"],
                                env=GIT_ENV, capture_output=True, text=True, check=False).stdout.strip()
        parents = ["-p", parent] if parent else []
        commit = self.git("commit-tree", *parents, "-m", message, self.tree(files))
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit


class Authority:
    """A certificate authority of the test's own, and certificates for this machine."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ca = self.directory / "ca.pem"
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
           "-subj", "/CN=test authority", "-keyout", self.directory / "ca.key", "-out", self.ca)

    def certificate(self, names="IP:127.0.0.1,DNS:localhost,DNS:sources.example"):
        key, request, cert, extension = (self.directory / n for n in ("leaf.key", "leaf.csr", "leaf.pem", "leaf.ext"))
        extension.write_text(f"subjectAltName={names}\n")
        sh("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test",
           "-keyout", key, "-out", request)
        sh("openssl", "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.directory / "ca.key",
           "-CAcreateserial", "-days", "2", "-extfile", extension, "-out", cert)
        return cert, key


class Handler(web.Handler):
    def handle_request(self):
        site = self.server.owner
        site.requests.append((self.command, self.path, dict(self.headers)))
        body = self.body()
        site.bodies.append(body)
        if site.password is not None:
            expected = base64.b64encode(f"{site.user}:{site.password}".encode()).decode()
            if self.headers.get("Authorization") != f"Basic {expected}":
                return self.answer(401, b"who are you?", WWW_Authenticate='Basic realm="test"')
        path = self.path.partition("?")[0]
        if path in site.pages:
            return site.pages[path](self)
        return self.backend(site, body)

    def backend(self, site, body):
        path, _, query = self.path.partition("?")
        env = {**GIT_ENV, "GIT_PROJECT_ROOT": str(site.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "test",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", "")}
        # An old server speaks version 0 and gives nothing that is not advertised.
        if not site.old and "Git-Protocol" in self.headers:
            env["GIT_PROTOCOL"] = self.headers["Git-Protocol"]
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(fields.pop("Status", "200 OK").split()[0])
        fields.pop("Content-Length", None)
        return self.answer(status, content, **fields)

    do_GET = do_POST = handle_request


class HttpsServer(web.Server):
    """Serves the repositories below root, and pages: {path: function(handler)}; without an authority over plain http."""

    def __init__(self, root, authority=None, user="git", password=None, old=False, host="127.0.0.1", port=0):
        self.root, self.user, self.password, self.old = pathlib.Path(root), user, password, old
        self.pages, self.requests, self.bodies = {}, [], []
        super().__init__(Handler, authority.certificate() if authority else None, host, port)


class Proxy:
    """Leads every CONNECT, whatever its host, to one port of this machine."""

    def __init__(self, port):
        self.port, self.asked = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.lead, args=(client,), daemon=True).start()

    def lead(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(65536)
        self.asked.append(head.split(b"\r\n")[0].decode())
        there = socket.create_connection(("127.0.0.1", self.port))
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for a, b in ((client, there), (there, client)):
            threading.Thread(target=web.relay, args=(a, b), daemon=True).start()

    def stop(self):
        self.listener.close()


class SshServer:
    """Debian's sshd, one process a connection, as a user of the test's own and never as root."""

    USER = "tester"

    def __init__(self, directory):
        unpacked = pathlib.Path(sh(dayfly.ROOT / "tests/tools/get-sshd",
                                   env={k: v for k, v in os.environ.items() if k in ("HOME", "XDG_CACHE_HOME", "PATH")}))
        # Not below pytest's own directory, which only its owner may enter.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dayfly-sshd-", dir=directory))
        self.directory.chmod(0o755)
        self.uid = 65534 if os.getuid() == 0 else os.getuid()
        libraries = self.directory / "lib"
        libraries.mkdir()
        for library in unpacked.glob("usr/lib/*/lib*.so*"):
            shutil.copy(library, libraries)
        self.sshd = shutil.copy(unpacked / "usr/sbin/sshd", self.directory)
        self.key, self.other_key = self.make_key("key"), self.make_key("other")
        self.make_key("host")
        self.write("authorized", (self.directory / "key.pub").read_text())
        passwd = self.write("passwd", f"{self.USER}:x:{self.uid}:{self.uid}::{self.directory}:/bin/sh\n"
                                      f"root:x:0:0::/root:/bin/sh\n")
        group = self.write("group", f"{self.USER}:x:{self.uid}:\n")
        git = self.write("gitconfig", "[safe]\n\tdirectory = *\n")
        self.config = self.write("config", f"""
            HostKey {self.directory}/host
            AuthorizedKeysFile {self.directory}/authorized
            StrictModes no
            UsePAM no
            PasswordAuthentication no
            KbdInteractiveAuthentication no
            PidFile none
            LogLevel ERROR
            AcceptEnv GIT_PROTOCOL
            SetEnv GIT_CONFIG_GLOBAL={git}
        """)
        self.env = {"LD_LIBRARY_PATH": str(libraries), "LD_PRELOAD": str(libraries / "libnss_wrapper.so"),
                    "NSS_WRAPPER_PASSWD": str(passwd), "NSS_WRAPPER_GROUP": str(group), "PATH": GIT_ENV["PATH"]}
        if os.getuid() == 0:
            os.chown(self.directory / "host", self.uid, self.uid)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.children = []
        threading.Thread(target=self.serve, daemon=True).start()

    def write(self, name, text):
        path = self.directory / name
        path.write_text("\n".join(line.strip() for line in text.splitlines()) + "\n" if name == "config" else text)
        path.chmod(0o644)
        return path

    def make_key(self, name):
        path = self.directory / name
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path)
        return path.read_text()

    @property
    def known_hosts(self):
        kind, key, *_ = (self.directory / "host.pub").read_text().split()
        return f"[127.0.0.1]:{self.port} {kind} {key}\n"

    def url(self, path):
        return f"ssh://{self.USER}@127.0.0.1:{self.port}{path}"

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.children.append(subprocess.Popen(
                [self.sshd, "-i", "-e", "-f", self.config], env=self.env, stdin=connection, stdout=connection,
                stderr=subprocess.DEVNULL,
                **({"user": self.uid, "group": self.uid, "extra_groups": []} if os.getuid() == 0 else {})))
            connection.close()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # close() alone would let a waiting accept() take one more
        self.listener.close()
        for child in self.children:
            child.kill()
            child.wait()
        shutil.rmtree(self.directory)
