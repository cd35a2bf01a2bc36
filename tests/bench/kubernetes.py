"""The parts of `make bench` that need the real Kubernetes: imported by run."""

import base64
import concurrent.futures
import contextlib
import http.client
import http.server
import json
import math
import os
import pathlib
import ssl
import statistics
import threading
import time

from lib import cluster as kubernetes
from lib import dayfly as d
from lib.pods import TAG, Pods, runner_image

MODULE = 'resource "terraform_data" "a" { input = timestamp() }\n'
NOWHERE = {"nodeSelector": {"dayfly.dev/nowhere": "x"}}  # its pods stay pending: nothing of the node's speed is in it


def seconds_of(stamp):
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0." + (rest or "0"))


IDLE = 30  # seconds after which a connection is not trusted to be open still


class World:
    """A cluster, a namespace, a spawner with the engine job (or what else shape makes of home, namespace and tofu)."""

    def __init__(self, work, shape=Pods, **settings):
        self.shape, self.settings = shape, settings
        self.work = work

    def __enter__(self):
        self.use = kubernetes.Use()
        self.cluster = self.use.__enter__()
        self.namespace = kubernetes.Namespace(self.cluster)
        self.home = d.Home(pathlib.Path(self.work) / "home", d.tofu())
        self.pods = self.shape(self.home, self.namespace, d.tofu(), **self.settings)
        return self

    def __exit__(self, *args):
        self.pods.__exit__(*args)
        # What is measured next shall not stand beside it. Nor would the namespace alone: it waits for its pods' grace.
        clear(self, "/apis/batch/v1", "jobs")
        clear(self, "/api/v1", "pods")
        self.namespace.close()
        self.use.__exit__(*args)

    def audit(self, **wanted):
        """Audit events of this namespace whose members are as wanted."""
        for event in self.cluster.audit(self.namespace.name):
            ref = event.get("objectRef", {})
            if ref.get("namespace") == self.namespace.name and all(
                    event.get(k, ref.get(k)) == v for k, v in wanted.items()):
                yield event


def request_all(pods, names, connections=16):
    """A dry-run of each executor, asked for by several clients at once, as bare as those of the API server."""
    clients = Bare(pods.server.url, pods.server.trust(), {"Authorization": f"Bearer {pods.home.env['DAYFLY_TOKEN']}"})
    clients.each(names, lambda name: clients.send("POST", f"/v1/executors/{name}/runs", {"action": "dry-run"}), connections)


def make_executors(pods, names, **spec):
    documents = [{"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name}, "spec": {
        "source": {"url": "file:///module/module.tar.gz", "kind": "archive"}, **spec}} for name in names]
    text = "\n---\n".join(json.dumps(doc) for doc in documents)
    pods.home.dayfly("create", "-f", "-", input=text)


class Bare:
    """A server over bare kept-alive connections, one a thread."""

    def __init__(self, url, context, headers=None):
        self.host, _, self.port = url.removeprefix("https://").partition(":")
        self.context, self.headers = context, headers or {}
        self.mine = threading.local()

    def send(self, method, path, body=None, content="application/json"):
        """The answer's document."""
        if time.monotonic() - getattr(self.mine, "used", -IDLE) >= IDLE:
            self.mine.connection = http.client.HTTPSConnection(self.host, int(self.port), context=self.context)
        self.mine.connection.request(method, path, json.dumps(body).encode() if body else None,
                                     {"Content-Type": content, **self.headers})
        answer = self.mine.connection.getresponse()
        text = answer.read()
        self.mine.used = time.monotonic()
        assert answer.status in (200, 201), (method, path, text)
        return json.loads(text)

    def list(self, path):
        """All, a page at a time."""
        more = ""
        while True:
            page = self.send("GET", f"{path}?limit=500{more}")
            yield from page["items"]
            if not page["metadata"].get("continue"):
                return
            more = f"&continue={page['metadata']['continue']}"

    @staticmethod
    def each(items, function, connections=16):
        """Seconds that it takes to do this with each item, on so many connections."""
        items = list(items)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(connections) as pool:
            list(pool.map(lambda mine: [function(item) for item in mine], [items[i::connections] for i in range(connections)]))
        return time.monotonic() - began


def api_server(cluster):
    kubeconfig = json.loads(cluster.kubectl("config", "view", "--raw", "-o", "json").stdout)
    directory = cluster.kubeconfig.parent / "pki"
    context = ssl.create_default_context(cafile=directory / "ca.crt")
    context.load_cert_chain(directory / "admin.crt", directory / "admin.key")
    return Bare(kubeconfig["clusters"][0]["cluster"]["server"], context)


def jobs_path(w, *parts):
    return "/".join([f"/apis/batch/v1/namespaces/{w.namespace.name}/jobs", *parts])


class MadeJobs:
    """How many Jobs were made in the namespace since, told by the end of the audit log: cheap to ask again and again."""

    def __init__(self, w):
        self.word = f'"namespace":"{w.namespace.name}"'
        self.log = open(w.cluster.audit_log, encoding="utf-8")
        self.log.seek(0, 2)
        self.part, self.count = "", 0

    def reach(self, n):
        *lines, self.part = (self.part + self.log.read()).split("\n")
        self.count += sum(self.word in line and '"verb":"create"' in line and '"resource":"jobs"' in line
                          and '"code":201' in line for line in lines)
        return self.count >= n

    def wait(self, n, seconds=3600):
        d.wait_for(f"{n} Jobs", lambda: self.reach(n) or time.sleep(0.1), seconds)
        self.log.close()


class Nobodys:
    """While it is open, the Jobs of the namespace are managed by nobody: Kubernetes' own controller makes no pods of them,
    and so neither it nor the node stands in the way of thousands."""

    def __init__(self, w):
        pki = w.cluster.kubeconfig.parent / "pki"
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Admission)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.w, self.ca = w, base64.b64encode((pki / "ca.crt").read_bytes()).decode()

    def __enter__(self):
        self.w.namespace.apply({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.w.namespace.name}, "webhooks": [{
                "name": "bench.dayfly.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": f"https://127.0.0.1:{self.server.server_address[1]}/", "caBundle": self.ca},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.w.namespace.name}},
                "rules": [{"operations": ["CREATE"], "apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]}]}]})
        bare, job = api_server(self.w.cluster), bare_job("probe")
        d.wait_for("the webhook", lambda: "managedBy" in bare.send("POST", jobs_path(self.w) + "?dryRun=All", job)["spec"])
        return self

    def __exit__(self, *args):
        self.w.cluster.kubectl("delete", "mutatingwebhookconfiguration", self.w.namespace.name)
        self.server.shutdown()


class Admission(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    PATCH = base64.b64encode(json.dumps([{"op": "add", "path": "/spec/managedBy", "value": "dayfly.dev/bench"}]).encode())

    def do_POST(self):  # noqa: N802
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": self.PATCH.decode()}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def audit_span(events):
    """Seconds from the first request to the last answer."""
    stamps = [(seconds_of(e["requestReceivedTimestamp"]), seconds_of(e["stageTimestamp"])) for e in events]
    return max(s for _, s in stamps) - min(r for r, _ in stamps)


def bare_copy(job, prefix):
    """The same Job to the byte, but for its names: no spawner looks at it."""
    spec = {k: v for k, v in job["spec"].items() if k != "selector"}
    template = spec["template"]
    spec["template"] = {"metadata": of_nobody(template["metadata"]), "spec": template["spec"]}
    meta = {"name": f"{prefix}-{job['metadata']['name']}", **of_nobody(job["metadata"])}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def of_nobody(meta):
    """Its labels and annotations under keys as long; without those that Kubernetes adds."""
    return {kind: {key.replace("dayfly.dev/", "nobody.dev/"): value for key, value in meta[kind].items()
                   if "controller-uid" not in key and "job-name" not in key}
            for kind in ("labels", "annotations") if kind in meta}


class Halves:
    """While it is open, Kubernetes has one half of the processors and whoever asks it has the other: a spawner does not
    stand on its API server's machine, and neither shall win by taking the other's time."""

    def __init__(self, w):
        self.cpus = sorted(os.sched_getaffinity(0))
        self.parts = [int(file.read_text().split()[0]) for file in w.cluster.kubeconfig.parent.glob("*.pid")]

    @staticmethod
    def pin(pid, cpus):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(task.name), cpus)

    def __enter__(self):
        half = max(1, len(self.cpus) // 2)
        for pid in self.parts:
            self.pin(pid, self.cpus[:half])
        self.pin(os.getpid(), self.cpus[half:] or self.cpus)

    def __exit__(self, *args):
        for pid in (*self.parts, os.getpid()):
            self.pin(pid, self.cpus)


def creating(steps):
    return {"config": {"limits": {"steps": steps}, "log": {"level": "info"}},
            "placement": {"imagePullPolicy": "IfNotPresent", **NOWHERE}}


def let_in(w, n):
    """Lets the n steps of the queue have Jobs as well; the seconds from the first to the last."""
    config = w.home.directory / "dayfly.yaml"
    config.write_text(config.read_text().replace('"steps": 1', '"steps": 10000'))
    made, began = MadeJobs(w), time.time()
    with w.pods:
        made.wait(n)
    return audit_span([e for e in w.audit(verb="create", resource="jobs", stage="ResponseComplete")
                       if seconds_of(e["requestReceivedTimestamp"]) >= began])


def creation_turn(work, n):
    """Seconds that n Jobs take: ours, and the same from 16 bare connections; in a namespace with no others, for a spawner
    looks at all there are when it begins."""
    with World(work, **creating(1)) as w:
        with w.pods:
            names = [f"e{i}" for i in range(1 + n)]
            make_executors(w.pods, names)
            made = MadeJobs(w)
            request_all(w.pods, names)
            made.wait(1)
            quiet(w.pods)
        api = api_server(w.cluster)
        with Halves(w):
            ours = let_in(w, n)
            jobs = [bare_copy(job, "bare") for job in w.namespace.get("jobs")][:n]
            bare = api.each(jobs, lambda job: api.send("POST", jobs_path(w), job))
    return ours, bare


def creation(row, quick, work):
    """Jobs a second: ours, of steps that wait in the queue, against 16 bare connections that create the same Jobs; by turns,
    and each long: the API server collects its garbage once in a thousand Jobs, and is half as fast then. Where a turn is
    shorter than that, the same half of each is hit."""
    rounds, n = (2, 25) if quick else (3, 3000)
    turns = [creation_turn(f"{work}/{i}", n) for i in range(rounds)]
    ours, bare = (n * rounds / sum(seconds) for seconds in zip(*turns, strict=True))
    row(f"Jobs created a second, of {n} steps in the queue, {rounds} turns", f"{ours:.0f} (bare: {bare:.0f})",
        ">= 0.9 of bare", ours >= 0.9 * bare)


def asked(row, quick, work):
    """The same from requests of 16 clients, and all on the same processors."""
    n = 50 if quick else 300
    with World(work, **creating(10000)) as w:
        with w.pods:
            names = [f"e{i}" for i in range(n)]
            make_executors(w.pods, names)
            made = MadeJobs(w)
            request_all(w.pods, names)
            made.wait(n)
            ours = n / audit_span(w.audit(verb="create", resource="jobs", stage="ResponseComplete"))
            jobs = w.namespace.get("jobs")
        jobs = [bare_copy(job, "bare") for job in jobs]
        api = api_server(w.cluster)
        bare = n / api.each(jobs, lambda job: api.send("POST", jobs_path(w), job))
    row(f"the same from {n} requests by 16 clients on the same processors", f"{ours:.0f} (bare: {bare:.0f})", "", True)


def accepted(row, quick, work):
    """From the step's acceptance to the POST of its Job, one after the other: when the spawner sends it, and when the API
    server, on the same processors, says that it has come."""
    n = 20 if quick else 300
    with World(work, placement={"imagePullPolicy": "IfNotPresent", **NOWHERE},
               config={"limits": {"steps": 1000}, "log": {"level": "debug"}}) as w, w.pods:
        names = [f"e{i}" for i in range(n)]
        make_executors(w.pods, names)
        for name in names:
            request_all(w.pods, [name], 1)
            time.sleep(0.05)
        d.wait_for("all Jobs", lambda: len(w.namespace.get("jobs")) == n, seconds=60)
        tell = sent_at(w)
        sent, come = [], []
        for event in w.audit(verb="create", resource="jobs", stage="ResponseComplete"):
            name = event["objectRef"].get("name")
            task = w.pods.document("taskactions", name)
            queued = seconds_of(next(t["at"] for t in task["status"]["timeline"] if t["name"] == "queued"))
            sent.append((tell[name] - queued) * 1000)
            come.append((seconds_of(event["requestReceivedTimestamp"]) - queued) * 1000)
    p99, text = tail_of(sent)
    row("request accepted to its Job's POST, p99", text, "<= 10 ms", p99 <= 10)
    row("the same to the moment that the API server gives as its arrival", tail_of(come)[1], "", True)


def sent_at(w):
    """{Job's name: when the spawner sent it}, by its log."""
    word = f"the Job {w.namespace.name}/"
    lines = [json.loads(line) for line in w.pods.server.log.read_text().splitlines() if word in line]
    return {line["msg"].split()[2].partition("/")[2]: seconds_of(line["ts"]) for line in lines}


def tail_of(milliseconds):
    """Their 99th percentile, and a text of it."""
    p99 = sorted(milliseconds)[math.ceil(0.99 * len(milliseconds)) - 1]
    return p99, f"{p99:.1f} ms (p50 {statistics.median(milliseconds):.1f}, n={len(milliseconds)})"


def bare_job(name):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{
            "name": "c", "image": f"localhost/dayfly-runner:{TAG}", "imagePullPolicy": "IfNotPresent",
            "command": ["cat", "/proc/uptime"]}]}}}}


def steps(row, quick, work):
    """A step's pod against a bare Job of the same image; and how early its end is known."""
    n = 4 if quick else 10
    first, tofu, early = [], [], []
    with World(work) as w:
        runner_image(w.cluster, d.tofu())
        with w.pods:
            w.pods.executor("net", MODULE)
            w.pods.run("net", "--action", "dry-run")
            for i in range(n):
                w.namespace.apply(bare_job(f"bare{i}"))
                w.namespace.wait("job", f"bare{i}", lambda j: j.get("status", {}).get("succeeded"))
                booted = time.time() - float(pathlib.Path("/proc/uptime").read_text().split()[0])
                said = booted + float(w.namespace.kubectl("logs", f"job/bare{i}").stdout.split()[0])
                bare = said - created_at(w, f"bare{i}")
                w.pods.run("net", "--action", "dry-run")
                name = f"net-{i + 2}-plan"
                w.namespace.wait("job", name, lambda j: j.get("status", {}).get("succeeded"))
                status = w.pods.document("taskactions", name)["status"]
                at = {t["name"]: seconds_of(t["at"]) for t in status["timeline"]}
                made = created_at(w, name)
                first.append((at["started"] - made - bare) * 1000)
                tofu.append((at["initialized"] - made - bare) * 1000)
                early.append(complete_at(w, name) - at["reported"])
    row("a step's first own moment against a bare Job's first line, median",
        f"{statistics.median(first):+.0f} ms", "<= 50 ms", statistics.median(first) <= 50)
    row("the tool's init done against a bare Job's first line, median", f"{statistics.median(tofu):+.0f} ms",
        "<= 100 ms to its start", statistics.median(tofu) <= 100)
    row("a step's end is known before its Job's Complete condition is there, median",
        f"{statistics.median(early):.2f} s", ">= 1 s", statistics.median(early) >= 1)


def created_at(w, name, resource="jobs"):
    return seconds_of(next(w.audit(verb="create", resource=resource, name=name, stage="ResponseComplete"))[
        "requestReceivedTimestamp"])


def complete_at(w, name, resource="jobs"):
    """When its last status was written: that of a Job by its controller."""
    return max(seconds_of(e["stageTimestamp"]) for e in w.audit(resource=resource, name=name, subresource="status",
                                                               stage="ResponseComplete"))


def crowd(row, quick, work):
    """Many live steps: the spawner's memory, and how soon a new spawner has looked at them all."""
    n = 500 if quick else 10000
    with World(work, placement={"imagePullPolicy": "IfNotPresent", **NOWHERE}, config={
            "limits": {"steps": 10000}, "log": {"level": "info"},
            "timeouts": {"pending": "24h"}}) as w, Nobodys(w), w.pods:
        names = [f"e{i}" for i in range(n)]
        for i in range(0, n, 200):
            make_executors(w.pods, names[i:i + 200])
        made = MadeJobs(w)
        request_all(w.pods, names)
        made.wait(n)
        quiet(w.pods)
        full = status_kib(w.pods.server.process.pid, "VmRSS")
        w.pods.server.kill()
        began = time.monotonic()
        w.pods.start()
        d.wait_for("the spawner to catch up", lambda: passes(w.pods) >= n, seconds=600)
        took = time.monotonic() - began
        again = status_kib(w.pods.server.process.pid, "VmRSS")
        row(f"spawner, resident memory, {n} live steps", f"{full / 1024:.1f} MiB (restarted: {again / 1024:.1f})",
            "<= 64 MiB", max(full, again) <= 64 * 1024)
        row(f"restart with {n} live steps until each was looked at", f"{took:.1f} s", "<= 5 s", took <= 5)


def clear(w, group, kind):
    """The API server takes at most a minute for one request."""
    bare, path = api_server(w.cluster), f"{group}/namespaces/{w.namespace.name}/{kind}"
    while bare.send("GET", f"{path}?limit=1")["items"]:
        try:
            api_server(w.cluster).send("DELETE", f"{path}?propagationPolicy=Background")
        except (OSError, AssertionError, http.client.HTTPException):
            pass  # the next request goes on where this one stopped
        time.sleep(0.2)


def counted(pods, start):
    """Sum of the counters of the spawner whose line begins so."""
    token = {"Authorization": f"Bearer {pods.home.env['DAYFLY_TOKEN']}"}
    metrics = pods.server.request("GET", "/metrics", headers=token)[2].decode()
    return sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(start))


def passes(pods):
    return counted(pods, 'dayfly_control_passes_total{kind="TaskAction",result="ok"')


def quiet(pods):
    """Waits until the control loop has nothing left to do."""
    def unchanged():
        before = counted(pods, "dayfly_control_passes_total")
        time.sleep(1)
        return counted(pods, "dayfly_control_passes_total") - before <= 1
    d.wait_for("the control loop to rest", unchanged, seconds=600)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def api_server_pid(cluster):
    return int((cluster.kubeconfig.parent / "apiserver.pid").read_text().split()[0])


def rested(cluster):
    """Waits until the API server uses no more than a tenth of a core: after a new definition it makes its documentation anew, with
    all of one for more than a second."""
    def rests():
        before = cpu_seconds(api_server_pid(cluster))
        time.sleep(1)
        return cpu_seconds(api_server_pid(cluster)) - before <= 0.1
    d.wait_for("the API server to rest", rests, seconds=60)


def status_kib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)


PARTS = {"kubernetes-creation": creation, "kubernetes-asked": asked, "kubernetes-accepted": accepted, "kubernetes-steps": steps,
         "kubernetes-crowd": crowd}
