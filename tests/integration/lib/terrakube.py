"""Terrakube's API as its executors meet it: 2.28, 2.33 or 2.34 (and what is between), with jobs that obey its rules.

It keeps jobs and steps, checks tokens, and makes the races of the real one: lib/terrakube.md lists what it does as the real one, and
where each of that was seen. What the real one would choke on is in `faults`, which a test holds against []; what it was asked is in
`requests`. Redis is a real one (lib/redis.py)."""

import base64
import contextlib
import hashlib
import hmac
import io
import itertools
import json
import re
import secrets
import socket
import tarfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import zipfile

from lib import web
from lib.providers import platform

JSON_API, FINAL = "application/vnd.api+json", ("completed", "failed", "rejected", "cancelled", "noChanges", "notExecuted")
PLANS = ("terraformPlan", "terraformPlanDestroy")
OVER = ("completed", "failed", "rejected", "cancelled", "noChanges")  # of a job
BELL = "terrakube:executor-available"
CONTEXT_TAKEN = ("pending", "waitingApproval", "approved", "queue", "running", "completed", "noChanges")
TOFU = "1.12.6"


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(secret, claims):
    """A token as jjwt makes it: the length of the key chooses the algorithm."""
    key = base64.b64decode(secret)
    name, digest = next((n, d) for size, n, d in ((64, "HS512", "sha512"), (48, "HS384", "sha384"), (0, "HS256", "sha256")) if len(key) >= size)
    signed = ".".join(b64url(json.dumps(part).encode()) for part in ({"alg": name}, claims))
    return f"{signed}.{b64url(hmac.new(key, signed.encode(), digest).digest())}"


def read_token(secret, header, version):
    """(status that refuses it or None, claims)."""
    head, _, token = (header or "").partition(" ")
    parts = token.split(".")
    if head != "Bearer" or len(parts) != 3:
        return 401, {}
    try:
        decoded = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts]
        claims = json.loads(decoded[1])
    except ValueError:
        return 401, {}
    right = hmac.new(base64.b64decode(secret), f"{parts[0]}.{parts[1]}".encode(), hashlib.sha256).digest()
    if json.loads(decoded[0]).get("alg") != "HS256" or not hmac.compare_digest(right, decoded[2]) or claims.get("exp", 2 ** 40) < time.time():
        return 401, claims
    if claims.get("iss") != "TerrakubeInternal" or (version <= (2, 28) and set(parts[1]) & set("-_")):
        return 500, claims
    return None, claims


class Step:
    def __init__(self, number, kind, name=None, **members):
        self.id, self.number, self.kind, self.members = str(uuid.uuid4()), number, kind, members
        self.attributes = {"name": name or kind, "output": None, "status": "pending", "stepNumber": number}

    @property
    def status(self):
        return self.attributes["status"]


class Workspace:
    """What its jobs are given."""

    def __init__(self, name, source, **more):
        self.id, self.name, self.source = str(uuid.uuid4()), name, source
        self.branch, self.folder, self.tool_version, self.tofu = "main", "/", TOFU, True
        self.variables, self.environment, self.vcs, self.token, self.connection, self.ssh_key = {}, {}, "PUBLIC", None, None, None
        self.policies, self.exemptions = [], []
        self.__dict__.update(more)


class Job:
    def __init__(self, number, workspace, steps):
        self.id, self.workspace, self.steps = str(number), workspace, steps
        self.attributes = {"approvalTeam": None, "comments": None, "commitId": None, "output": None, "overrideBranch": None, "overrideSource": None,
                           "planChanges": True, "refresh": True, "refreshOnly": False, "status": "pending", "terraformPlan": None, "via": "UI"}
        self.row, self.updated, self.context, self.committed = threading.RLock(), time.time(), {}, threading.Event()
        self.settled = threading.Event()  # what the scheduler does about its status is done
        self.settled.set()

    @property
    def status(self):
        return self.attributes["status"]

    def set(self, **attributes):
        self.attributes.update(attributes)
        self.updated = time.time()

    def next_step(self):
        return next((step for step in sorted(self.steps, key=lambda s: s.number) if step.status == "pending"), None)


class Dispatch:
    """A step on its way to an executor: what the pod of door A has in its environment."""

    def __init__(self, job, step, payload):
        self.job, self.step, self.payload = job, step, payload
        self.env = {"EphemeralFlagBatch": "true", "EphemeralJobData": base64.b64encode(json.dumps(payload).encode()).decode()}


class Terrakube(web.Server):
    """`with Terrakube(version="2.33", redis=redis, saved=read) as api:`; saved(organization, job, step) gives the saved output of a
    step, or None. pause: from the dispatch of a job to its status `queue`; settle: from a job's status to what the scheduler does about
    it; lock_wait: how long a write waits for a row; busy: each write of this number is one that the database does not take at first
    (0: none). tool: what releases start, with their own version."""

    def __init__(self, version="2.33", redis=None, saved=None, pause=0.3, tool=None, host="127.0.0.1", settle=0.3, lock_wait=1.0, busy=5):
        self.version = tuple(int(part) for part in version.split(".")[:2])
        self.redis, self.saved, self.pause, self.tool = redis, saved, pause, tool
        self.settle, self.lock_wait, self.busy, self.writes = settle, lock_wait, busy, 0
        self.organization, self.secret = str(uuid.uuid4()), base64.b64encode(secrets.token_bytes(32)).decode()
        self.workspaces, self.jobs, self.history, self.contents, self.states, self.locks = {}, {}, [], {}, {}, {}
        self.requests, self.faults, self.log_lines, self.troubles, self.zips = [], [], {}, [], {}
        self.objects = {}  # path: what was put there
        self.numbers, self.lock = itertools.count(1), threading.Lock()
        super().__init__(Handler, host=host)

    # ---- what a test does ----

    def env(self, state="LocalTerraformStateImpl", **more):
        """Of an executor, all in one Secret as older charts have it."""
        return {"AzBuilderApiUrl": self.url, "TerrakubeApiUrl": self.url, "InternalSecret": self.secret, "TerrakubeEnableSecurity": "true",
                "TerrakubeRegistryDomain": "registry.terrakube.example", "TerrakubeToolsRepository": "", "TerrakubeToolsBranch": "main",
                "CustomTerraformReleasesUrl": f"{self.url}/terraform/index.json", "TerraformStateType": state,
                **(self.redis.env if self.redis else {}), **more}

    def workspace(self, name, source, **more):
        workspace = Workspace(name, source, **more)
        self.workspaces[workspace.id] = workspace
        return workspace

    def job(self, workspace, *steps):
        """steps: a type, or (type, members of the payload)."""
        made = [Step(100 * i, *((step,) if isinstance(step, str) else step[:1]), **({} if isinstance(step, str) else step[1]))
                for i, step in enumerate(steps, 1)]
        job = Job(next(self.numbers), workspace, made)
        self.jobs[job.id] = job
        return job

    def dispatch(self, job):
        """Gives the next step to a pod: the test starts it. Status and log stream follow as the version does it."""
        step = job.next_step()
        assert step and job.status in ("pending", "approved", "rejected"), (job.status, [s.status for s in job.steps])
        going = Dispatch(job, step, self.payload(job, step))
        assert job.settled.wait(10)
        job.committed.clear()
        if self.version < (2, 29):  # pending until the executor reports
            self.drop_stream(job)
            job.committed.set()
        else:
            ready = threading.Event()
            threading.Thread(target=self.commit_queue, args=(job, ready), daemon=True).start()
            ready.wait()
        return going

    def commit_queue(self, job, ready):
        """After the pod was made, the stream is deleted, then the whole row is written as it was read before: up to 2.32 over
        whatever an executor reported meanwhile, later with a lock on the row."""
        locked = self.version >= (2, 33)
        with job.row if locked else contextlib.nullcontext():
            row, before = dict(job.attributes), self.lines(job)
            ready.set()
            time.sleep(self.pause)
            if len(self.lines(job)) > len(before):
                self.faults.append(f"lines of job {job.id} came before the stream was deleted: they are lost")
            self.drop_stream(job)
            if not locked and job.status not in ("pending", "approved", "rejected"):
                self.faults.append(f"job {job.id} was {job.status} before it was queued: that is overwritten")
            job.attributes = row
            self.be_dispatched(job)
        job.committed.set()

    def be_dispatched(self, job):
        """What is committed with the dispatch: the commands of onReject go out while the step they belong to becomes `failed`."""
        if job.status == "rejected":
            self.end_steps(job, "failed")
        else:
            job.set(status="queue")

    def lines(self, job):
        """Of the job's stream, of all its steps."""
        return self.log_lines.get(job.id) or (self.redis.lines(job.id) if self.redis else [])

    def drop_stream(self, job):
        self.log_lines.pop(job.id, None)
        if self.redis:
            self.redis.delete(job.id)

    def payload(self, job, step):
        """TerraformJob as this version writes it: nulls, too."""
        w = job.workspace
        payload = {"commandList": None, "type": step.kind, "organizationId": self.organization, "workspaceId": w.id, "jobId": job.id, "stepId": step.id,
                   "terraformVersion": w.tool_version, "source": w.source, "branch": w.branch.split(",")[0], "folder": w.folder, "vcsType": w.vcs,
                   "connectionType": w.connection, "refresh": job.attributes["refresh"], "refreshOnly": job.attributes["refreshOnly"],
                   "showHeader": w.branch != "remote-content", "ignoreError": False, "accessToken": w.token, "moduleSshKey": w.ssh_key,
                   "commitId": job.attributes["commitId"], "tofu": w.tofu, "variables": w.variables,
                   "environmentVariables": {"TF_IN_AUTOMATION": "1", "workspaceName": w.name, "organizationName": "oracle",
                                            "TERRAKUBE_ENABLE_EPHEMERAL_EXECUTOR": "true", **w.environment}}
        if self.version <= (2, 28):
            payload["agentUrl"] = None
        if self.version >= (2, 30):
            payload["onFailureList"] = None
        if self.version >= (2, 34):
            payload.update(policyList=w.policies, policyExemptionList=w.exemptions)
        payload.update(step.members)
        return payload

    def post(self, job, url):
        """Door B: gives the next step to the executor at this URL; its status, or None without an answer."""
        step = job.next_step()
        headers = {"Content-Type": "application/json"}
        if self.version >= (2, 31):
            headers["Authorization"] = f"Bearer {self.token_of_api()}"
        request = urllib.request.Request(url, json.dumps(self.payload(job, step)).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read()
        except OSError:
            status, body = None, b""
        if len(body) > 256 * 1024:
            status = 0  # more than the API's client reads: a failure
        with job.row:
            if status == 202:
                self.be_dispatched(job)
            elif self.version < (2, 33) or status not in (None, 503):
                job.set(status="failed")
                step.attributes["name"] = "Error sending to executor, check logs"
        return status

    def token_of_api(self, life=10, **claims):
        now = int(time.time())
        return sign(self.secret, {"iss": "TERRAKUBE_INTERNAL", "sub": "Terrakube Internal (Token)", "aud": ["TERRAKUBE_INTERNAL"],
                                  "jti": str(uuid.uuid4()), "email": "internal@terrakube.io", "email_verified": True, "name": "Terrakube Api",
                                  "iat": now, "exp": now + life, **claims})

    def cancel(self, job):
        with job.row:
            job.set(status="cancelled")

    @contextlib.contextmanager
    def queue(self, url):
        """The scheduler with this executor meanwhile: it sends pending jobs only as a bell wakes them. (A job's own retry comes each 30 s.)"""
        over, bell = threading.Event(), self.redis.subscribe(BELL)

        def run():
            while not over.wait(0.02):
                if bell.ring() is not None:
                    self.wake_next(url)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def wake_next(self, url):
        """findNextDispatchableJobId(): the oldest that is pending, also if it has no step left and is about to be completed."""
        jobs = sorted(self.jobs.values(), key=lambda j: int(j.id))
        job = next((j for j in jobs if j.status in ("pending", "approved") and not any(
            e.workspace is j.workspace and int(e.id) < int(j.id) and e.status not in OVER for e in jobs)), None)
        if job and job.next_step():
            self.post(job, url)
        elif job:
            self.follow(job)

    def reject(self, job, step):
        """An approval is refused; `step` holds the commands of onReject."""
        with job.row:
            job.set(status="rejected")
            step.kind = "approval"

    def sweep(self, grace=60.0):
        """2.33 and later, each 30 s: a job without heartbeat has lost its executor."""
        for job in list(self.jobs.values()):
            if job.status in ("queue", "running") and time.time() - job.updated > grace and not self.redis.exists(f"executor-job-heartbeat:{job.id}"):
                with job.row:
                    self.fail(job)
                    self.faults.append(f"job {job.id} had no heartbeat")

    @contextlib.contextmanager
    def sweeps(self, every=0.5, grace=1.0):
        """Sweeps meanwhile."""
        over = threading.Event()

        def run():
            while not over.wait(every):
                self.sweep(grace)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def output(self, job, step):
        """What a user sees of a step: the saved output once it is over, the stream before."""
        if step.status in FINAL:
            return self.saved(self.organization, job.id, step.id) or ""
        return "".join(line + "\n" for line in self.lines(job))

    def asked(self, method, pattern):
        """Requests of this method whose path the pattern matches, in order, without those that the database did not take."""
        return [r for r in self.requests if r["method"] == method and re.search(pattern, r["path"]) and not r["busy"]]

    def content(self, files):
        """The URL of an uploaded configuration with these files, {path: text}."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, text in files.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        name = str(uuid.uuid4())
        self.contents[name] = packed.getvalue()
        return f"{self.url}/remote/tfe/v2/configuration-versions/{name}/terraformContent.tar.gz"

    # ---- faults ----

    @contextlib.contextmanager
    def trouble(self, kind, match="", times=None):
        """Meanwhile requests whose "METHOD path" the pattern matches are answered with this status, `cut` before or `lost` after they
        are done, or late by this fraction of a second (a float). times: only so many."""
        entry = {"kind": kind, "match": re.compile(match), "left": times, "met": 0}
        self.troubles.append(entry)
        try:
            yield entry
        finally:
            self.troubles.remove(entry)

    @contextlib.contextmanager
    def away(self):
        """Meanwhile nobody listens: connections are refused."""
        address = self.httpd.server_address
        self.stop()
        try:
            yield
        finally:
            again = type(self.httpd)(address, Handler)
            again.daemon_threads, again.owner, self.httpd = True, self, again
            threading.Thread(target=again.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def meet(self, request):
        with self.lock:
            for entry in self.troubles:
                if entry["left"] != 0 and entry["match"].search(request):
                    entry["left"] = entry["left"] and entry["left"] - 1
                    entry["met"] += 1
                    return entry["kind"]
        return None

    # ---- rules ----

    def end_steps(self, job, status):
        """updateJobStepsWithStatus()"""
        for step in job.steps:
            if step.status in ("pending", "running"):
                step.attributes["status"] = status

    def fail(self, job):
        job.set(status="failed")
        self.end_steps(job, "failed")

    def is_busy(self):
        """Is this write one whose transaction fails at first?"""
        with self.lock:
            self.writes += 1
            return bool(self.busy) and self.writes % self.busy == 0

    def patch_job(self, job, attributes):
        if job.status == "cancelled":
            self.faults.append(f"job {job.id} is cancelled, and was patched: {attributes}")
        if None in attributes.values():
            self.faults.append(f"a null is stored: {attributes}")
        if not job.row.acquire(timeout=self.lock_wait):
            return 423
        try:
            job.set(**attributes)
        finally:
            job.row.release()
        if "status" in attributes and attributes["status"] != "running":
            job.settled.clear()
            threading.Timer(self.settle, self.follow, (job,)).start()
        return 204

    def follow(self, job):
        """What the scheduler does about the status of a job, some moments after it was set."""
        with job.row:
            if job.status == "pending" and not job.attributes["planChanges"]:
                self.end_unchanged(job)
            elif job.status == "pending" and not job.next_step():
                job.set(status="completed")
            elif job.status == "completed" and self.version >= (2, 29):
                self.end_steps(job, "notExecuted")
            elif job.status == "failed":
                self.fail(job)
        job.settled.set()

    def end_unchanged(self, job):
        """A plan that changes nothing: up to 2.28 it leaves its job pending; later that trips an assertion, each 30 s again."""
        if self.version >= (2, 29):
            self.faults.append(f"job {job.id} is pending without changes: an assertion fails")
            return
        job.set(status="completed")
        self.end_steps(job, "notExecuted")

    def patch_step(self, job, step, attributes):
        if None in attributes.values():
            self.faults.append(f"a null is stored: {attributes}")
        if step.status in FINAL and attributes.get("status") != step.status and job.status != "rejected":
            self.faults.append(f"step {step.id} is {step.status}, and becomes {attributes}")
        step.attributes.update(attributes)
        return 204

    # ---- releases ----

    def zip(self, product, version):
        """A release whose program says this version, and is the real one in all else."""
        if (product, version) not in self.zips:
            packed, title = io.BytesIO(), {"tofu": "OpenTofu", "terraform": "Terraform"}[product]
            script = f'#!/bin/sh\n[ "$1" = version ] && [ "$2" != -json ] && {{ echo {title} v{version}; exit; }}\nexec {self.tool} "$@"\n'
            with zipfile.ZipFile(packed, "w") as archive:
                entry = zipfile.ZipInfo(product)
                entry.external_attr = 0o755 << 16
                archive.writestr(entry, script)
            self.zips[product, version] = packed.getvalue()
        return self.zips[product, version]

    def tofu_index(self, versions=("1.11.0", TOFU)):
        """The form of GitHub's releases."""
        name = "tofu_{}_" + platform() + ".zip"
        return [{"name": f"v{v}", "tag_name": f"v{v}", "draft": False, "prerelease": False,
                 "assets": [{"name": name.format(v), "browser_download_url": f"{self.url}/rel/{name.format(v)}"}]} for v in reversed(versions)]

    def terraform_index(self, versions=("1.11.4",)):
        """The form of HashiCorp's index.json."""
        system, arch = platform().split("_")
        builds = {v: [{"name": "terraform", "version": v, "os": system, "arch": arch, "filename": f"terraform_{v}_{platform()}.zip",
                       "url": f"{self.url}/rel/terraform_{v}_{platform()}.zip"}] for v in versions}
        return {"name": "terraform", "versions": {v: {"name": "terraform", "version": v, "builds": builds[v]} for v in versions}}


def resource(kind, name, attributes, relationships=None):
    return {"type": kind, "id": name, "attributes": attributes, **({"relationships": relationships} if relationships else {})}


class Handler(web.Handler):
    """One request: its trouble, its token, its route."""

    def handle_any(self):
        api, raw = self.server.owner, self.body()
        path, _, query = self.path.partition("?")
        self.asked = {"method": self.command, "path": path, "query": query, "headers": {k.lower(): v for k, v in self.headers.items()},
                      "text": raw.decode(errors="replace"), "raw": raw, "time": time.time(), "status": None, "busy": False}
        with contextlib.suppress(ValueError):
            self.asked["body"] = json.loads(raw)
        with api.lock:
            api.requests.append(self.asked)
        kind = api.meet(f"{self.command} {path}")
        if isinstance(kind, float):
            time.sleep(kind)
        if kind == "cut":
            return self.cut()
        if isinstance(kind, int):
            return self.say(kind)
        status, body, headers = self.route(api, path)
        if kind == "lost":
            return self.cut()
        return self.say(status, body, **headers)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    def say(self, status, body=b"", **headers):
        self.asked["status"] = status
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        with contextlib.suppress(OSError):  # who gave up does not read it
            self.answer(status, body, **headers)

    def cut(self):
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def route(self, api, path):
        """(status, body, headers)."""
        for pattern, is_open, name in ROUTES:
            match = re.fullmatch(pattern, path)
            if not match:
                continue
            refusal, claims = (None, {}) if is_open else read_token(api.secret, self.credential(), api.version)
            self.asked["claims"] = claims
            if refusal:
                return refusal, b"", {"WWW_Authenticate": "Bearer"} if refusal == 401 else {}
            return getattr(self, name)(api, *match.groups())
        return 404, b"", {}

    def credential(self):
        """The http backend of tofu has the token as its password."""
        header = self.headers.get("Authorization") or ""
        if header.startswith("Basic "):
            return "Bearer " + base64.b64decode(header[6:]).decode().partition(":")[2]
        return header

    def attributes(self):
        """Of a document of JSON:API; None: it is none, or of another type of content."""
        if self.headers.get("Content-Type") != JSON_API or not isinstance(self.asked.get("body"), dict):
            return None
        return self.asked["body"].get("data", {}).get("attributes")

    def busy(self):
        """423, as Elide answers to every transaction that fails."""
        self.asked["busy"] = True
        return 423, {"errors": [{"detail": "The request could not be completed."}]}, {"Content_Type": JSON_API}

    def organizations(self, api):
        if "page[" in urllib.parse.unquote(self.asked["query"]):
            return 400, {"errors": [{"detail": "Cannot paginate organization"}]}, {"Content_Type": JSON_API}
        return 200, {"data": [resource("organization", api.organization, {"name": "oracle"})]}, {"Content_Type": JSON_API}

    def job(self, api, organization, number):
        job = api.jobs.get(number)
        if organization != api.organization or not job:
            return 404, {"errors": [{"detail": f"Unknown identifier {number} for job"}]}, {"Content_Type": JSON_API}
        if self.command == "PATCH":
            attributes = self.attributes()
            if attributes is None:
                return 415, b"", {}
            status = 423 if api.is_busy() else api.patch_job(job, attributes)
            return self.busy() if status == 423 else (status, b"", {})
        steps = [resource("step", s.id, s.attributes, {"job": {"data": {"type": "job", "id": job.id}}}) for s in reversed(job.steps)]
        links = {"step": {"data": [{"type": "step", "id": s["id"]} for s in steps]},
                 "organization": {"data": {"type": "organization", "id": organization}},
                 "workspace": {"data": {"type": "workspace", "id": job.workspace.id}}}
        document = {"data": resource("job", job.id, job.attributes, links)}
        if self.asked["query"] == "include=step":
            document["included"] = steps
        return 200, document, {"Content_Type": JSON_API}

    def step(self, api, organization, number, name):
        job = api.jobs.get(number)
        step = next((s for s in job.steps if s.id == name), None) if job and organization == api.organization else None
        attributes = self.attributes()
        if not step or self.command != "PATCH":
            return 404, b"", {}
        if attributes is None:
            return 415, b"", {}
        return self.busy() if api.is_busy() else (api.patch_step(job, step, attributes), b"", {})

    def workspace(self, api, organization, name):
        w = api.workspaces.get(name)
        if not w or organization != api.organization:
            return 404, b"", {}
        return 200, {"data": resource("workspace", name, {"name": w.name, "source": w.source, "branch": w.branch, "folder": w.folder})}, \
            {"Content_Type": JSON_API}

    def add_history(self, api, organization, name):
        attributes = self.attributes()
        if self.command == "GET":
            found = [h for h in api.history if h["relationships"]["workspace"]["data"]["id"] == name]
            return 200, {"data": found}, {"Content_Type": JSON_API}
        if name not in api.workspaces or organization != api.organization or attributes is None:
            return 404, b"", {}
        if api.is_busy():
            return self.busy()
        if not self.asked["claims"].get("email"):
            return 423, {"errors": [{"detail": "java.lang.NullPointerException"}]}, {"Content_Type": JSON_API}
        made = resource("history", str(uuid.uuid4()), attributes, {"workspace": {"data": {"type": "workspace", "id": name}}})
        api.history.append(made)
        return 201, {"data": made}, {"Content_Type": JSON_API}

    def context(self, api, number):
        job = api.jobs.get(number)
        if self.command == "GET":
            return 200, job.context if job else {}, {"Content_Type": "application/json"}
        if not job or job.status not in (CONTEXT_TAKEN if api.version >= (2, 31) else ("running",)):
            return 409, b"", {}
        job.context = self.asked["body"]
        return 200, job.context, {"Content_Type": "application/json"}

    def log(self, api, number=None):
        if api.version < (2, 29):
            return 404, b"", {}
        for line in () if number else self.asked["body"]["data"]:
            api.log_lines.setdefault(str(line["jobId"]), []).append(line["output"])
        return 200, b"", {}

    def store(self, api, *_):
        """What ApiTerraformStateImpl puts, since 2.34: only with the digest that it says."""
        if api.version < (2, 34):
            return 404, b"", {}
        if self.command == "GET":
            return (200, api.objects[self.path], {}) if self.path in api.objects else (404, b"", {})
        if hashlib.sha256(self.asked["raw"]).hexdigest() != self.headers.get("X-Content-Sha256"):
            return 409, b"", {}
        api.objects[self.path] = self.asked["raw"]
        return 201, b"", {}

    def step_output(self, api, _organization, number, name):
        if self.command == "PUT":
            return self.store(api)
        job = api.jobs.get(number)
        step = next((s for s in job.steps if s.id == name), None) if job else None
        return (200, api.output(job, step).encode(), {"Content_Type": "text/plain"}) if step else (404, b"", {})

    def remote_content(self, api, name):
        return (200, api.contents[name], {"Content_Type": "application/octet-stream"}) if name in api.contents else (404, b"", {})

    def tofu_releases(self, api):
        return 200, api.tofu_index(), {"Content_Type": "application/json"}

    def terraform_releases(self, api):
        return 200, api.terraform_index(), {"Content_Type": "application/json"}

    def release(self, api, product, version):
        return 200, api.zip(product, version), {"Content_Type": "application/zip"}

    def refuse_backend(self, api, name):
        """Since 2.34, and with a token of this workspace only."""
        if api.version < (2, 34):
            return 404, b"", {}
        return (403, b"", {}) if self.asked["claims"].get("workspaceId") != name else None

    def state(self, api, _organization, name):
        if refusal := self.refuse_backend(api, name):
            return refusal
        if self.command == "GET":
            return (200, api.states[name], {"Content_Type": "application/json"}) if name in api.states else (204, b"", {})
        held = api.locks.get(name)
        if held and f"ID={held['ID']}" not in self.asked["query"]:
            return 423, held, {}
        api.states[name] = self.asked["raw"]
        return 200, b"", {}

    def state_lock(self, api, _organization, name):
        if refusal := self.refuse_backend(api, name):
            return refusal
        if self.command == "POST" and name in api.locks:
            return 423, api.locks[name], {"Content_Type": "application/json"}
        if self.command == "POST":
            api.locks[name] = self.asked["body"]
        else:
            api.locks.pop(name, None)
        return 200, b"", {}

    def state_beat(self, api, _organization, name):
        """410: the lock was given away meanwhile."""
        return self.refuse_backend(api, name) or (200 if name in api.locks else 410, b"", {})


WORKSPACE = r"/api/v1/organization/([^/]+)/workspace/([^/]+)"
JOB = r"/api/v1/organization/([^/]+)/job/([^/]+)"
BACKEND = r"/tfstate/v1/http-backend/organization/([^/]+)/workspace/([^/]+)"
ROUTES = (  # path, without a token?, method of the handler
    (r"/api/v1/organization", False, "organizations"),
    (JOB, False, "job"), (JOB + "/step/([^/]+)", False, "step"), (WORKSPACE, False, "workspace"), (WORKSPACE + "/history", False, "add_history"),
    (r"/context/v1/(\d+)", False, "context"), (r"/logs", False, "log"), (r"/logs/(\d+)/setup-consumer-groups", False, "log"),
    (r"/tfoutput/v1/organization/([^/]+)/job/([^/]+)/step/([^/]+)", False, "step_output"),
    (r"/tfstate/v1/organization/([^/]+)/workspace/([^/]+)/jobId/([^/]+)/step/([^/]+)/terraform.tfstate", False, "store"),
    (r"/tfstate/v1/organization/([^/]+)/workspace/([^/]+)/history/([^/]+)/terraform(?:.json)?.tfstate", False, "store"),
    (r"/remote/tfe/v2/configuration-versions/([^/]+)/terraformContent.tar.gz", False, "remote_content"),
    (r"/tofu/index.json", True, "tofu_releases"), (r"/terraform/index.json", True, "terraform_releases"),
    (r"/rel/(tofu|terraform)_([0-9.]+)_\w+\.zip", True, "release"), (BACKEND + "/state", False, "state"), (BACKEND + "/lock", False, "state_lock"),
    (BACKEND + "/lock/heartbeat", False, "state_beat"))
