"""A program in a network of its own, from which only chosen ports of this machine can be reached; whatever else it tries is seen.

    with Island(6443) as island:
        subprocess.run([*island.prefix, "curl", "https://127.0.0.1:6443"], check=False)
        assert island.strangers() == set()

The network has the loopback device alone, over which every route leads: a packet to anybody else arrives nowhere, but is
seen there. A chosen port is the same inside; it leads through a socket that is a file, which belongs to no network.
"""

import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

from lib.web import relay

ROUTES = "ip link set lo up && ip route add default dev lo && { ip -6 route add default dev lo || true; }"
INSIDE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from lib.island import live; sys.exit(live(*sys.argv[1:]))"
ALL_PROTOCOLS = 3
TCP, UDP = 6, 17
SYN, ACK = 0x02, 0x10


class Island:
    def __init__(self, *ports):
        self.ports = ports

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.listeners = [(socket.socket(socket.AF_UNIX), port) for port in self.ports]
        for listener, port in self.listeners:
            listener.bind(str(self.folder / str(port)))
            listener.listen()
            hand_on(listener, lambda port=port: socket.create_connection(("127.0.0.1", port)))
        return self

    def __exit__(self, *_):
        for listener, _ in self.listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.temporary.cleanup()

    @property
    def prefix(self):
        """What comes before the words of a command."""
        root = pathlib.Path(__file__).resolve().parents[1]
        return ["unshare", "--map-root-user", "--net", sys.executable, "-c", INSIDE, str(root), str(self.folder), ",".join(map(str, self.ports))]

    def strangers(self):
        """Whom the program that has ended wanted to reach besides: {"192.0.2.1:443"}."""
        return set(json.loads((self.folder / "strangers").read_text()))


def hand_on(listener, connect):
    """Each connection to the listener goes on to a new one, until the listener is closed."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                there = connect()
                for pair in ((client, there), (there, client)):
                    threading.Thread(target=relay, args=pair, daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()


def live(folder, ports, *command):
    """Inside: opens the ways, runs the command, and writes down whom it wanted to reach; its exit code."""
    subprocess.run(["sh", "-c", ROUTES], check=True)
    folder, ports, seen = pathlib.Path(folder), [int(port) for port in ports.split(",")], set()
    for port in ports:
        hand_on(socket.create_server(("127.0.0.1", port)), lambda port=port: connect_to_file(folder / str(port)))
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS))
    threading.Thread(target=watch, args=(packets, seen), daemon=True).start()
    code = subprocess.run(command, check=False).returncode
    (folder / "strangers").write_text(json.dumps(sorted(seen - {f"127.0.0.1:{port}" for port in ports})))
    return code


def connect_to_file(path):
    made = socket.socket(socket.AF_UNIX)
    made.connect(str(path))
    return made


def watch(packets, seen):
    while True:
        wanted = destination(packets.recv(65536))
        if wanted:
            seen.add(wanted)


def destination(packet):
    """Whom a packet is for that begins something: a datagram, or the first one of a connection. None: it is another one."""
    if packet[0] >> 4 == 4:
        protocol, at, host = packet[9], 4 * (packet[0] & 15), socket.inet_ntop(socket.AF_INET, packet[16:20])
    else:
        protocol, at, host = packet[6], 40, socket.inet_ntop(socket.AF_INET6, packet[24:40])
    begins = protocol == UDP or (protocol == TCP and packet[at + 13] & (SYN | ACK) == SYN)
    return f"{host}:{int.from_bytes(packet[at + 2:at + 4], 'big')}" if begins else None
