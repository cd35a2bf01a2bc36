"""The part of `make bench` about clients that want to starve the others: from the same address as these."""

import hashlib
import http.client
import pathlib
import threading
import time
import urllib.parse

from lib import dayfly as d
from lib.crowd import OVER_TLS, Crowd

CROWDS = (("silent", 1100, "silent connections"), ("trickle", 1100, "connections that send a byte a second"),
          ("slow", 1100, "readers of a byte a second"), ("claims", 1000, "unfinished claims"),
          ("reviews", 1100, "unfinished bodies for the webhook"),
          ("hello", 1100, "TLS handshakes that do not go on"), ("half", 1100, "TLS hellos of a byte a second"),
          ("huge", 1100, "TLS hellos of 256 KiB"), ("https", 1100, "TLS connections that send a byte a second"),
          ("https-slow", 1100, "TLS readers of a byte a second"),
          ("followers", 1100, "event streams with a token of role read"))
LIMIT_KIB = 128 * 1024  # limits.memory in charts/dayfly/values.yaml


def status_kib(pid, field):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(field + ":"))


class Peak:
    """The largest resident memory of a process while it is watched, in KiB."""

    def __init__(self, pid):
        self.pid, self.kib, self.over = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.05):
            self.kib = max(self.kib, status_kib(self.pid, "VmRSS"))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def ask(connection, path, token):
    """Milliseconds of one request; fails unless it is answered with 200."""
    began = time.monotonic()
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, (path, answer.status)
    return (time.monotonic() - began) * 1000


def asked_by_others(server, probe, rounds):
    """Milliseconds of a kept connection with a token, of new ones with a token, of probes without, on both addresses."""
    where = urllib.parse.urlsplit(server.url)

    def plain(port):
        return http.client.HTTPConnection(where.hostname, port, timeout=30)

    def connection():
        return (http.client.HTTPSConnection(where.hostname, where.port, timeout=30, context=server.trust())
                if where.scheme == "https" else plain(where.port))
    kept = connection()
    took = []
    for _ in range(rounds):
        took.append(ask(kept, "/v1/executors", "boss"))
        for fresh, path, token in ((connection(), "/v1/executors", "ci"), (connection(), "/readyz", ""),
                                   (plain(probe), "/livez", "")):
            took.append(ask(fresh, path, token))
            fresh.close()
        time.sleep(0.02)
    kept.close()
    return sorted(took)


def hostile(row, quick, work):
    home = d.Home(pathlib.Path(work) / "home", d.tofu())
    tokens, probe = home.directory / "tokens", d.free_port()
    tokens.write_text("".join(f"{name} {role} {hashlib.sha256(name.encode()).hexdigest()}\n"
                              for name, role in (("boss", "admin"), ("ci", "write"), ("reader", "read"))))
    for kind, count, words in CROWDS:
        tls = ", tls: {names: [localhost]}" if kind in OVER_TLS else ""
        config = (f"auth: {{tokenFile: {tokens}}}\nkubernetes: {{webhook: w}}\n"
                  f"server: {{livez: {{listen: 127.0.0.1:{probe}}}{tls}}}\n")
        with d.Server(home, config=config) as server, Peak(server.process.pid) as peak:
            with Crowd(server.url, kind, count, "reader"):
                time.sleep(2)  # the crowd's second wave is under way
                took = asked_by_others(server, probe, 50 if quick else 250)
        p99 = took[int(0.99 * len(took))]
        row(f"{count} {words}: another's request, p99", f"{p99:.1f} ms (p50 {took[len(took) // 2]:.1f}, n={len(took)})",
            "<= 100 ms", p99 <= 100)
        row(f"{count} {words}: resident memory", f"{peak.kib / 1024:.1f} MiB", "<= 128 MiB", peak.kib <= LIMIT_KIB)


PARTS = {"hostile": hostile}
