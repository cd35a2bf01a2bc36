"""The parts of `make bench` that need the real Kubernetes: imported by run."""

import concurrent.futures
import json
import pathlib
import ssl
import statistics
import subprocess
import time
import urllib.request

from lib import cluster as kubernetes
from lib import dayfly as d
from lib.pods import TAG, Pods, runner_image

MODULE = 'resource "terraform_data" "a" { input = timestamp() }\n'
NOWHERE = {"nodeSelector": {"dayfly.dev/nowhere": "x"}}  # its pods stay pending: nothing of the node's speed is in it


def seconds_of(stamp):
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0." + (rest or "0"))


class World:
    """A cluster, a namespace, a spawner with the engine job."""

    def __init__(self, work, **kubernetes_settings):
        self.settings = kubernetes_settings
        self.work = work

    def __enter__(self):
        self.use = kubernetes.Use()
        self.cluster = self.use.__enter__()
        self.namespace = kubernetes.Namespace(self.cluster)
        self.home = d.Home(pathlib.Path(self.work) / "home", d.tofu())
        self.pods = Pods(self.home, self.namespace, d.tofu(), **self.settings)
        return self

    def __exit__(self, *args):
        self.pods.__exit__(*args)
        self.namespace.close()
        self.use.__exit__(*args)

    def audit(self, **wanted):
        """Audit events of this namespace whose members are as wanted."""
        for event in self.cluster.audit():
            ref = event.get("objectRef", {})
            if ref.get("namespace") == self.namespace.name and all(
                    event.get(k, ref.get(k)) == v for k, v in wanted.items()):
                yield event


def request_all(pods, names, connections=16):
    """A dry-run of each executor, asked for by several clients at once."""
    token = {"Authorization": f"Bearer {pods.home.env['DAYFLY_TOKEN']}"}

    def ask(name):
        status, _, body = pods.server.request("POST", f"/v1/executors/{name}/runs", {"action": "dry-run"}, token)
        assert status == 201, body

    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        list(pool.map(ask, names))


def make_executors(pods, names, **spec):
    documents = [{"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name}, "spec": {
        "source": {"url": "file:///module/module.tar.gz", "kind": "archive"}, **spec}} for name in names]
    text = "\n---\n".join(json.dumps(doc) for doc in documents)
    pods.home.dayfly("create", "-f", "-", input=text)


class Bare:
    """The same API server over bare kept-alive connections."""

    def __init__(self, cluster):
        kubeconfig = json.loads(cluster.kubectl("config", "view", "--raw", "-o", "json").stdout)
        self.server = kubeconfig["clusters"][0]["cluster"]["server"]
        directory = cluster.kubeconfig.parent / "pki"
        self.context = ssl.create_default_context(cafile=directory / "ca.crt")
        self.context.load_cert_chain(directory / "admin.crt", directory / "admin.key")

    def create_all(self, namespace, jobs, connections=16):
        """Seconds that it takes to create these Jobs."""
        import http.client
        host, _, port = self.server.removeprefix("https://").partition(":")

        def work(mine):
            connection = http.client.HTTPSConnection(host, int(port), context=self.context)
            for job in mine:
                connection.request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", json.dumps(job),
                                   {"Content-Type": "application/json"})
                answer = connection.getresponse()
                body = answer.read()
                assert answer.status == 201, body

        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(connections) as pool:
            list(pool.map(work, [jobs[i::connections] for i in range(connections)]))
        return time.monotonic() - began


def audit_span(events):
    """Seconds from the first request to the last answer."""
    stamps = [(seconds_of(e["requestReceivedTimestamp"]), seconds_of(e["stageTimestamp"])) for e in events]
    return max(s for _, s in stamps) - min(r for r, _ in stamps)


def creation(row, quick, work):
    """Jobs a second: ours, from requests by 16 clients, against 16 bare connections that create the same Jobs."""
    n = 50 if quick else 300
    with World(work, placement={"imagePullPolicy": "IfNotPresent", **NOWHERE},
               config={"control": {"workers": 16}, "limits": {"steps": 10000}}) as w:
        with w.pods:
            names = [f"e{i}" for i in range(n)]
            make_executors(w.pods, names)
            request_all(w.pods, names)
            d.wait_for("all Jobs", lambda: len(w.namespace.get("jobs")) == n, seconds=600)
            ours = n / audit_span(w.audit(verb="create", resource="jobs", stage="ResponseComplete"))
            jobs = w.namespace.get("jobs")
        for job in jobs:
            job.pop("status", None)
            meta = job["metadata"]
            job["metadata"] = {"name": "bare-" + meta["name"], "labels": {"bare": "yes"}}
            job["spec"].pop("selector", None)
            labels = job["spec"]["template"]["metadata"]["labels"]
            for key in list(labels):
                if "controller-uid" in key or "job-name" in key:
                    del labels[key]
        bare = n / Bare(w.cluster).create_all(w.namespace.name, jobs)
    row(f"Jobs created a second ({n}, asked for by 16 clients)", f"{ours:.0f} (bare: {bare:.0f})", ">= 0.9 of bare",
        ours >= 0.9 * bare)


def accepted(row, quick, work):
    """From the step's acceptance to the arrival of its Job at the API server, one after the other."""
    n = 20 if quick else 100
    with World(work, placement={"imagePullPolicy": "IfNotPresent", **NOWHERE},
               config={"limits": {"steps": 1000}}) as w, w.pods:
        names = [f"e{i}" for i in range(n)]
        make_executors(w.pods, names)
        for name in names:
            request_all(w.pods, [name], 1)
            time.sleep(0.05)
        d.wait_for("all Jobs", lambda: len(w.namespace.get("jobs")) == n, seconds=60)
        waits = []
        for event in w.audit(verb="create", resource="jobs", stage="ResponseComplete"):
            name = event["objectRef"].get("name")
            task = w.pods.document("taskactions", name)
            queued = next(t["at"] for t in task["status"]["timeline"] if t["name"] == "queued")
            waits.append((seconds_of(event["requestReceivedTimestamp"]) - seconds_of(queued)) * 1000)
    waits.sort()
    p99 = waits[min(len(waits) - 1, int(0.99 * len(waits)))]
    row("request accepted to its Job's arrival at the API server, p99",
        f"{p99:.1f} ms (p50 {statistics.median(waits):.1f}, n={len(waits)})", "<= 10 ms", p99 <= 10)


def bare_job(w, name):
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
                w.namespace.apply(bare_job(w, f"bare{i}"))
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
        "(init is the tool's)", True)
    row("a step's end is known before its Job's Complete condition is there, median",
        f"{statistics.median(early):.2f} s", ">= 1 s", statistics.median(early) >= 1)


def created_at(w, name):
    return seconds_of(next(w.audit(verb="create", resource="jobs", name=name, stage="ResponseComplete"))[
        "requestReceivedTimestamp"])


def complete_at(w, name):
    """When the Job controller's last status was written."""
    return max(seconds_of(e["stageTimestamp"]) for e in w.audit(resource="jobs", name=name, subresource="status",
                                                               stage="ResponseComplete"))


def crowd(row, quick, work):
    """Many live steps: the spawner's memory, and how soon a new spawner has looked at them all."""
    n = 500 if quick else 10000
    with World(work, placement={"imagePullPolicy": "IfNotPresent", **NOWHERE}, config={
            "control": {"workers": 16}, "limits": {"steps": 10000}, "timeouts": {"pending": "24h"}}) as w:
        w.cluster.stop_part("controller-manager")  # Jobs without pods: the node has no room for so many
        try:
            with w.pods:
                names = [f"e{i}" for i in range(n)]
                for i in range(0, n, 200):
                    make_executors(w.pods, names[i:i + 200])
                request_all(w.pods, names)
                d.wait_for("all Jobs", lambda: count_jobs(w) == n, seconds=3600)
                time.sleep(2)
                full = status_kib(w.pods.server.process.pid, "VmRSS")
                w.pods.server.kill()
                began = time.monotonic()
                w.pods.start()
                d.wait_for("the spawner to catch up", lambda: caught_up(w, n), seconds=600)
                took = time.monotonic() - began
        finally:
            w.cluster.bring_back()
    row(f"spawner, resident memory, {n} live steps", f"{full / 1024:.1f} MiB", "<= 64 MiB", full <= 64 * 1024)
    row(f"restart with {n} live steps until each was looked at", f"{took:.1f} s", "<= 5 s", took <= 5)


def count_jobs(w):
    out = w.namespace.kubectl("get", "jobs", "-o", "name", "--chunk-size=1000").stdout
    return out.count("\n")


def caught_up(w, n):
    token = {"Authorization": f"Bearer {w.home.env['DAYFLY_TOKEN']}"}
    metrics = w.pods.server.request("GET", "/metrics", headers=token)[2].decode()
    passes = [float(line.split()[-1]) for line in metrics.splitlines()
              if line.startswith('dayfly_control_passes_total{kind="TaskAction",result="ok"')]
    return sum(passes) >= n


def status_kib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)


PARTS = {"kubernetes-creation": creation, "kubernetes-accepted": accepted, "kubernetes-steps": steps,
         "kubernetes-crowd": crowd}
