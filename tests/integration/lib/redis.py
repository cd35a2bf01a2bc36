"""A real Redis, a client of it, and strings as the Java object stream has them."""

import pathlib
import select
import socket
import struct
import subprocess

from lib import dayfly


def to_java(text):
    """The bytes by which Terrakube's API writes and looks for this text."""
    coded = b""
    for character in text:
        if character == "\0":
            coded += b"\xc0\x80"
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            pieces = [units[i:i + 2].decode("utf-16-be", "surrogatepass") for i in range(0, len(units), 2)] if len(units) > 2 else [character]
            coded += b"".join(piece.encode("utf-8", "surrogatepass") for piece in pieces)
    head = b"\x74" + struct.pack(">H", len(coded)) if len(coded) <= 65535 else b"\x7c" + struct.pack(">Q", len(coded))
    return b"\xac\xed\x00\x05" + head + coded


def from_java(data):
    """The text again; ValueError for what the API could not read either."""
    if data[:4] != b"\xac\xed\x00\x05" or data[4:5] not in (b"\x74", b"\x7c"):
        raise ValueError(f"not a string of Java: {data[:40]!r}")
    at = 7 if data[4:5] == b"\x74" else 13
    (length,) = struct.unpack(">H" if at == 7 else ">Q", data[5:at])
    if len(data) != at + length:
        raise ValueError(f"{len(data) - at} bytes, not {length}")
    wide = data[at:].replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return wide.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


class Redis:
    """`with Redis(directory) as redis:` runs a server that wants this password. Whoever goes away for a while comes back at
    the same port, and has forgotten everything."""

    def __init__(self, directory, password="hunter2-redis", host="127.0.0.1"):
        self.directory, self.password, self.host, self.process = pathlib.Path(directory), password, host, None
        self.port = dayfly.free_port(host)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.env = {"TerrakubeRedisHostname": host, "TerrakubeRedisPort": str(self.port), "TerrakubeRedisPassword": password}

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(["redis-server", "-"], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=self.directory)
        self.process.stdin.write(f"port {self.port}\nbind {self.host}\nsave ''\nrequirepass {self.password}\n".encode())
        self.process.stdin.close()

        def answers():
            assert self.process.poll() is None, (self.directory / "log").read_text()
            try:
                return self.command("PING") == b"PONG"
            except OSError:
                return False

        dayfly.wait_for("Redis to answer", answers)
        return self

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def command(self, *words):
        """One command on a connection of its own."""
        with socket.create_connection((self.host, self.port), timeout=10) as connection:
            file = connection.makefile("rwb")
            for command in (("AUTH", self.password), words):
                parts = [w if isinstance(w, bytes) else str(w).encode() for w in command]
                file.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
            file.flush()
            self.read(file)
            return self.read(file)

    def read(self, file):
        line = file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("Redis is gone")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.read(file) for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def lines(self, stream):
        """The field `output` of each entry of a job's stream, as the API reads it; an entry it cannot read is a ValueError."""
        texts = []
        for _, fields in self.command("XRANGE", to_java(stream), "-", "+"):
            entry = {from_java(name): from_java(value) for name, value in zip(fields[::2], fields[1::2])}
            texts.append(entry["output"])
        return texts

    def exists(self, key):
        return self.command("EXISTS", to_java(key)) == 1

    def seconds(self, key):
        """How long the key lives on; -2: it is not there."""
        return self.command("TTL", to_java(key))

    def delete(self, key):
        return self.command("DEL", to_java(key))

    def subscribe(self, channel):
        """Hears what is published there from now on: `heard.ring()` is the next message, or None if there is none yet."""
        return Heard(self, channel)


class Heard:
    def __init__(self, redis, channel):
        self.redis, self.connection = redis, socket.create_connection((redis.host, redis.port), timeout=10)
        self.file = self.connection.makefile("rwb")
        self.file.write(f"AUTH {redis.password}\r\nSUBSCRIBE {channel}\r\n".encode())
        self.file.flush()
        redis.read(self.file)
        redis.read(self.file)

    def ring(self):
        if not select.select([self.connection], [], [], 0)[0]:
            return None
        return from_java(self.redis.read(self.file)[2])
