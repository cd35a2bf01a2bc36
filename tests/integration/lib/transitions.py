"""A client of our own State Service: every transition as server-sent events."""

import http.client
import json
import queue
import socket
import threading
import urllib.parse

from lib.dayfly import DEADLINE


class Events:
    """A client of /v1/transitions; `next()` waits for the next event."""

    def __init__(self, server, last=None, headers=None):
        at = urllib.parse.urlparse(server.url)
        kind = http.client.HTTPConnection if at.scheme == "http" else http.client.HTTPSConnection
        more = {} if at.scheme == "http" else {"context": server.trust()}
        self.connection = kind(at.hostname, at.port, timeout=DEADLINE, **more)
        self.connection.request("GET", "/v1/transitions", headers={**server.authorization(), **(headers or {}), **({"Last-Event-ID": last} if last else {})})
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert (self.answer.status, self.answer.headers["Content-Type"]) == (200, "text/event-stream")
        self.last = last
        self.events = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        event = {}
        try:
            for line in self.answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name and not line.startswith(b":"):
                    event[name] = value
                elif event:
                    self.events.put(event)
                    event = {}
        except (OSError, ValueError, AttributeError):
            pass
        self.events.put(None)

    def next(self):
        event = self.events.get(timeout=DEADLINE)
        if event and "id" in event:
            self.last = event["id"]
        return event

    def until(self, name):
        """The states before the next event of this name."""
        states = []
        while (event := self.next())["event"] != name:
            states.append(json.loads(event["data"]))
        return states

    def phases_until_end_of(self, step):
        """(step, version, phase) of all that comes, up to the success of this step."""
        found = []
        while not found or found[-1][0] != step or found[-1][2] != "SUCCEEDED":
            event = self.next()
            if event["event"] == "state":
                found.append(key(json.loads(event["data"])))
        return found

    def close(self):
        """Also under the reader."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def key(state):
    event = state["state"]
    return state["taskAction"], event["version"], event["phase"].removeprefix("ACTION_PHASE_")
