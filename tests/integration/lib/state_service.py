"""A State Service as the contract describes it: StateService.Put and EventsProxyService.Record by Connect with JSON.

It is strict: a member that the messages do not have, a wrong type or a missing header is invalid_argument."""

import http.server
import json
import re
import threading
import time

PUT = "/flyteidl2.workflow.StateService/Put"
RECORD = "/flyteidl2.workflow.EventsProxyService/Record"
PHASES = {"QUEUED", "WAITING_FOR_RESOURCES", "INITIALIZING", "RUNNING", "SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT",
          "PAUSED", "RECOVERED"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")

# The messages: member -> type, another message, or a test of the value.
RUN_ID = {"org": str, "project": str, "domain": str, "name": str}
ACTION_ID = {"run": RUN_ID, "name": str}
ACTION_EVENT = {
    "id": ACTION_ID, "attempt": lambda v: v >= 1, "version": lambda v: v >= 0,
    "phase": lambda v: v.removeprefix("ACTION_PHASE_") in PHASES and v.startswith("ACTION_PHASE_"),
    "updatedTime": TIME.fullmatch, "reportedTime": TIME.fullmatch,
    "errorInfo": {"message": str, "kind": lambda v: v in ("KIND_UNSPECIFIED", "KIND_USER", "KIND_SYSTEM")},
    "logInfo": list, "logContext": dict, "cluster": str, "outputs": dict, "cacheStatus": str,
    "clusterEvents": lambda v: all(TIME.fullmatch(e["occurredAt"]) and e["message"] for e in v)}
PUT_REQUEST = {"actionId": ACTION_ID, "parentActionName": str, "state": str}
STATE = {"phase": str, "actionId": str, "timestamp": TIME.fullmatch}
REQUIRED = {id(ACTION_ID): {"run", "name"}, id(RUN_ID): {"project", "domain", "name"},
            id(ACTION_EVENT): {"id", "attempt", "phase", "version", "updatedTime"},
            id(PUT_REQUEST): {"actionId", "state"}, id(STATE): set(STATE)}


def fault(value, message, path=""):
    """What is wrong with it, or None."""
    if isinstance(message, type):
        return None if isinstance(value, message) else f"{path}: {value!r}"
    if callable(message):
        return None if message(value) else f"{path}: {value!r}"
    if not isinstance(value, dict):
        return f"{path}: {value!r}"
    if not set(value) <= set(message) or not REQUIRED.get(id(message), set()) <= set(value):
        return f"{path}: members {sorted(value)}"
    return next(filter(None, (fault(value[key], message[key], f"{path}.{key}") for key in value)), None)


OURS = {"Queued": "QUEUED", "Initializing": "INITIALIZING", "Executing": "RUNNING", "Completed": "SUCCEEDED",
        "PermanentFailure": "FAILED", "Aborted": "ABORTED"}


def expected(step, protocol="events"):
    """What a State Service is told of this TaskAction."""
    phases = [entry["phase"] for entry in step["status"]["phaseHistory"]]
    return phases if protocol == "put" else [OURS[phase] for phase in phases]


def is_told(step):
    return "dayfly.dev/unreported" not in step["metadata"]["labels"]


class StateService:
    """`start()` and `stop()` as often as a test wants, always on the same port."""

    def __init__(self):
        self.port = 0
        self.server = None
        self.lock = threading.Lock()
        self.taken = []  # (run, action, version or None, phase) in the order of the requests
        self.faults = []
        self.requests = []  # headers, message
        self.times = []  # of the requests, monotonic
        self.answer = None  # message -> None or (status, headers, body), asked first
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, headers, body = service.take(self.path, self.headers, message)
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def stop(self):
        """Nobody answers any more, also not on connections that are open."""
        server, self.server = self.server, None
        if server:
            server.shutdown()
            server.server_close()
        with self.lock:
            self.answer = None

    def take(self, path, headers, message):
        with self.lock:
            self.requests.append((dict(headers), message))
            self.times.append(time.monotonic())
            if self.server is None:
                return 503, {"Connection": "close"}, {"code": "unavailable"}
            found = self.check(path, headers, message)
            if found:
                self.faults.append(found)
                return 400, {}, {"code": "invalid_argument", "message": found}
            special = self.answer(message) if self.answer else None
            if special:
                return special
            return self.put(message) if path == PUT else self.record(message)

    @staticmethod
    def check(path, headers, message):
        if headers.get("Connect-Protocol-Version") != "1" or headers.get("Content-Type") != "application/json":
            return f"headers: {dict(headers)}"
        if path == PUT:
            return fault(message, PUT_REQUEST) or fault(json.loads(message["state"]), STATE, "state")
        if path != RECORD or set(message) != {"events"} or not message["events"]:
            return f"{path}: {message}"
        return next(filter(None, (fault(event, ACTION_EVENT) for event in message["events"])), None)

    def put(self, message):
        action, state = message["actionId"], json.loads(message["state"])
        assert state["actionId"] == f'{action["run"]["name"]}/{action["name"]}'
        self.taken.append((action["run"]["name"], action["name"], None, state["phase"]))
        return 200, {}, {"actionId": action, "status": {"code": 0}}

    def record(self, message):
        for event in message["events"]:
            self.taken.append((event["id"]["run"]["name"], event["id"]["name"], event["version"],
                               event["phase"].removeprefix("ACTION_PHASE_")))
        return 200, {}, {}

    def of(self, run, action):
        """The phases of an action in the order in which they came; a transition that came again counts once."""
        with self.lock:
            mine = [(version, phase) for r, a, version, phase in self.taken if (r, a) == (run, action)]
        return [phase for _, phase in dict.fromkeys(mine)]
