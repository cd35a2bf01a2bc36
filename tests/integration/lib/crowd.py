"""Hostile clients: `with Crowd(url, kind, count):` keeps so many connections up, by a process of its own, and makes
each again a second after the server has cut it. Run as a program it is that process."""

import contextlib
import pathlib
import resource
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse

HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
CLAIM = (b"POST /v1/steps/00000000-0000-4000-8000-000000000000/claim HTTP/1.1\r\nHost: localhost\r\n"
         b"Authorization: Bearer any\r\nContent-Type: application/json\r\nContent-Length: 65000\r\nX-Long: "
         + b"x" * 24000 + b"\r\n\r\n" + b"{" * 40000)

REVIEW = (b"POST /v1/admission/write?timeout=3s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
          b"Content-Length: 262000\r\n\r\n" + b"[" * 260000)
READS = 40 * (b"GET /openapi.yaml" + HEAD[10:] + b"\r\n")
OVER_TLS = ("hello", "half", "huge", "https", "https-slow")  # the first three never come to the end of a handshake
TRUSTING = ssl._create_unverified_context()  # whose certificate it is does not matter to a crowd


def hello():
    """The first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        TRUSTING.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def huge_hello(size):
    """So many bytes of a hello that announces 16 MiB, in records."""
    message = b"\x01\xff\xff\xff" + hello()[9:]
    records = [message[:100], *((size - 100) // 16000 * [bytes(16000)])]
    return b"".join(b"\x16\x03\x01" + len(r).to_bytes(2, "big") + r for r in records)


def follow(token):
    return b"GET /v1/transitions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n"


HELLO, HUGE = hello(), huge_hello(256 * 1024)


class Client:
    """One connection. What it says at first, and what it says or reads once a second after that."""

    def __init__(self, address, kind, token):
        self.kind = kind
        self.socket = socket.socket()
        if kind.endswith("slow"):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self.socket.connect(address)
        if kind.startswith("https"):
            self.socket = TRUSTING.wrap_socket(self.socket, do_handshake_on_connect=False)
        self.left = {"silent": b"", "trickle": HEAD[:1], "slow": READS, "claims": CLAIM, "followers": follow(token),
                     "reviews": REVIEW, "hello": HELLO, "half": HELLO[:100], "huge": HUGE, "https": HEAD,
                     "https-slow": READS}[kind]
        self.sent = 0

    def go_on(self):
        """False when the server has ended the connection."""
        try:
            if self.kind.startswith("https"):
                self.socket.do_handshake()
            if self.left:
                self.left = self.left[self.socket.send(self.left):]
            elif self.kind in ("trickle", "half", "https"):
                self.sent += 1
                self.socket.send(b"x")
            got = self.socket.recv(1 if self.kind.endswith("slow") else 65536)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return bool(got)


def keep_up(address, kind, count, token):
    clients = [None] * count
    first = True
    while True:
        began = time.monotonic()
        for i, client in enumerate(clients):
            if client and not client.go_on():
                client.socket.close()
                client = clients[i] = None
            if not client:
                clients[i] = Client(address, kind, token)
                clients[i].go_on()
        if first:
            print("up", flush=True)
            first = False
        time.sleep(max(0.1, began + 1 - time.monotonic()))


class Crowd:
    def __init__(self, url, kind, count, token=""):
        self.args = [url, kind, str(count), token]
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__), *self.args], stdout=subprocess.PIPE,
                                        text=True)
        assert self.process.stdout.readline() == "up\n"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    where = urllib.parse.urlsplit(sys.argv[1])
    keep_up((where.hostname, where.port), sys.argv[2], int(sys.argv[3]), sys.argv[4])
