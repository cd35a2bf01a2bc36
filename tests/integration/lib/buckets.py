"""A real S3 server (versitygw) that keeps objects as files, emulators of Google Cloud Storage and Azure Blob Storage, and a way
to them on which requests fail."""

import base64
import contextlib
import hashlib
import hmac
import os
import pathlib
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from lib import dayfly, web

ACCESS, SECRET = "dayfly-test", "hunter2/secret+key"


class S3:
    """`with S3(directory) as s3:` has the bucket "blobs", whose files are in s3.files. pair: (certificate, key) for https;
    domain: the bucket stands before it in the host's name, too."""

    kind = "s3"

    def __init__(self, directory, pair=None, domain=None, host="127.0.0.1", read_only=False):
        self.directory = pathlib.Path(directory)
        self.files = self.directory / "blobs"
        self.files.mkdir(parents=True)
        self.address = f"{host}:{dayfly.free_port(host)}"
        self.flags = ["--keep-alive"] + (["--readonly"] if read_only else []) + (["--cert", str(pair[0]), "--key", str(pair[1])] if pair else [])
        port = self.address.rpartition(":")[2]
        self.flags += ["--virtual-domain", f"{domain}:{port}"] if domain else []
        self.url = f"{'https' if pair else 'http'}://{f'{domain}:{port}' if domain else self.address}"
        self.env = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
        self.process = None

    def start(self, *more, secret=SECRET):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen([dayfly.tool("versitygw"), "--quiet", "--port", self.address, "--access", ACCESS, "--secret", secret,
                                             *self.flags, *more, "posix", str(self.directory)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def listens():
            assert self.process.poll() is None, (self.directory / "log").read_text()
            host, _, port = self.address.rpartition(":")
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
            except OSError:
                return False
            return True

        dayfly.wait_for("the S3 server to listen", listens)
        return self

    def stop(self):
        self.process.kill()
        self.process.wait()

    def restart(self, *more, **keys):
        """With these flags, or another secret key."""
        self.stop()
        return self.start(*more, **keys)

    def config(self, prefix="", **more):
        """Of a service with its blobs here."""
        keys = {"region": "us-east-1", "endpoint": self.url, "pathStyle": "true", **more}
        s3 = "".join(f"    {key}: {value}\n" for key, value in keys.items())
        return f"blobs:\n  location: s3://blobs{prefix and '/' + prefix}\n  s3:\n{s3}"

    def lose_bucket(self):
        """Somebody deletes the bucket, at once: a file may be written at any time."""
        gone = self.files.with_name("gone")
        self.files.rename(gone)
        shutil.rmtree(gone)

    def objects(self):
        """Names of all objects that have content."""
        return sorted(str(p.relative_to(self.files)) for p in self.files.rglob("*") if p.is_file() and p.stat().st_size)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class GoogleStorage:
    """The emulator fake-gcs-server with the bucket "blobs", in memory."""

    kind = "gs"

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        (self.directory / "data/blobs").mkdir(parents=True)
        self.address = f"127.0.0.1:{dayfly.free_port()}"
        self.url = f"http://{self.address}"
        self.env = {}
        self.process = None

    def config(self):
        return f"blobs:\n  location: gs://blobs/prod\n  gs:\n    endpoint: {self.url}\n    anonymous: true\n"

    def __enter__(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen([dayfly.tool("fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1",
                                             "-port", self.address.rpartition(":")[2], "-backend", "memory", "-public-host", self.address,
                                             "-data", str(self.directory / "data"), "-log-level", "error"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        dayfly.wait_for("the emulator to listen", self.listens)
        return self

    def lose_bucket(self):
        """Somebody deletes the bucket: what is in memory goes, and no bucket is made again."""
        self.__exit__()
        (self.directory / "data/blobs").rmdir()
        (self.directory / "data/other").mkdir()
        self.__enter__()

    def listens(self):
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        return True

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class AzureStorage:
    """The emulator Azurite with the container "blobs", in memory. pair: (certificate, key) for https."""

    kind, account, key = "azblob", "dayflytest", base64.b64encode(b"hunter2/secret+key of the account").decode()

    def __init__(self, directory, pair=None):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.address = f"127.0.0.1:{dayfly.free_port()}"
        self.flags = ["--cert", str(pair[0]), "--key", str(pair[1]), "--oauth", "basic"] if pair else []
        self.ca = pair[0] if pair else None
        self.url = f"{'https' if pair else 'http'}://{self.address}/{self.account}"
        self.env = {"AZURE_STORAGE_KEY": self.key}
        self.process = None

    def config(self, **more):
        keys = {"endpoint": self.url, **({"caFile": self.ca} if self.ca else {}), **more}
        return f"blobs:\n  location: azblob://{self.account}/blobs/prod\n  azblob:\n" + "".join(f"    {k}: {v}\n" for k, v in keys.items())

    def __enter__(self):
        self.start()
        dayfly.wait_for("the emulator to make its container", self.make_container)
        return self

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen([dayfly.tool("azurite"), "--inMemoryPersistence", "--disableTelemetry", "--silent", "--blobHost", "127.0.0.1",
                                             "--blobPort", self.address.rpartition(":")[2], *self.flags],
                                            env={**os.environ, "AZURITE_ACCOUNTS": f"{self.account}:{self.key}"},
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def lose_bucket(self):
        """Somebody deletes the container: what is in memory goes, and none is made again."""
        self.__exit__()
        self.start()

    def signature(self, *lines):
        digest = hmac.new(base64.b64decode(self.key), "\n".join(lines).encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()

    def make_container(self):
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        signed = self.signature("PUT", *[""] * 11, f"x-ms-date:{date}", "x-ms-version:2021-12-02",
                                f"/{self.account}/{self.account}/blobs", "restype:container")
        request = urllib.request.Request(f"{self.url}/blobs?restype=container", method="PUT", headers={
            "x-ms-date": date, "x-ms-version": "2021-12-02", "Authorization": f"SharedKey {self.account}:{signed}"})
        try:
            with urllib.request.urlopen(request, timeout=5, context=ssl.create_default_context(cafile=self.ca) if self.ca else None) as answer:
                return answer.status == 201
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
        except OSError:
            return False

    def sas(self, permissions="racwdl"):
        """A shared access signature of the account for what blobs need."""
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        signed = self.signature(self.account, permissions, "b", "co", "", until, "", "", "2021-12-02", "", "")
        return urllib.parse.urlencode({"sv": "2021-12-02", "ss": "b", "srt": "co", "sp": permissions, "se": until, "sig": signed})

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Trouble:
    """A way to a server of plain http on which a share of the requests fails, as chance decides: refused before it is
    executed, executed but never answered, changed on its way, or answered late."""

    KINDS = ("busy", "broken", "before", "after", "changed", "late")  # and "absent" or "readonly", where a test says so

    def __init__(self, address, share, seed):
        self.address, self.share, self.chance = address, share, random.Random(seed)
        self.lock = threading.Lock()
        self.met = dict.fromkeys(self.KINDS, 0)
        self.server = None

    def choose(self):
        with self.lock:
            kind = self.chance.choice(self.KINDS) if self.chance.random() < self.share else None
            if kind:
                self.met[kind] = self.met.get(kind, 0) + 1
            return kind

    def __enter__(self):
        trouble = self

        class Handler(web.Handler):
            def pass_on(self):
                body, kind = self.body(), trouble.choose()
                if kind == "busy":
                    return self.answer(503, b"<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>", Retry_After="1")
                if kind == "broken":
                    return self.answer(500, b"<html>not S3 at all</html>")
                if kind == "absent":
                    return self.answer(404, b"default backend - 404", Content_Type="text/plain")
                if kind == "readonly" and self.command != "GET":
                    return self.answer(403, b"<Error><Code>AccessDenied</Code><Message>no writes</Message></Error>", Content_Type="application/xml")
                if kind == "before":
                    return self.cut()
                if kind == "changed" and body:
                    body = bytes([body[0] ^ 1]) + body[1:]
                if kind == "late":
                    time.sleep(0.3)
                status, content, headers = self.forward(trouble.address, body)
                if kind == "after":
                    return self.cut()
                with contextlib.suppress(OSError):  # who was cut elsewhere does not read it
                    self.answer(status, content, **headers)
                return None

            def cut(self):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            do_GET = do_PUT = do_POST = do_DELETE = pass_on

        self.server = web.Server(Handler)
        self.url = self.server.url
        return self

    def __exit__(self, *_):
        self.server.stop()


def run_program(s3, *args, url=None, prefix=(), build=None):
    """A test program of tests/tools against this server; its result."""
    sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(s3.directory.parent), "BUCKET_KIND": s3.kind, "BUCKET_ENDPOINT": url or s3.url,
           "BUCKET": "blobs", **s3.env, **sanitizers}
    if not url:  # on a bad way the seed decides which request fails, so they come in one order
        env["BUCKET_AT_ONCE"] = "1"
    result = subprocess.run([*prefix, str((build or dayfly.BUILD) / "tools/blob_bucket"), *args], env=env, capture_output=True, text=True,
                            check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return result
