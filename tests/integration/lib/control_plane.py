"""A Kubernetes without machines, as processes of this user on the loopback address: etcd, API server, controller-manager and
scheduler are the real ones; KWOK plays the one node. Everything real happens but what a kubelet would do: pods are
scheduled and become ready (lib/pod_stages.py), and nothing runs in them.

    with ControlPlane(directory) as kube:
        kube.apply("default", {...})
        mark = kube.mark()
        ...
        assert not writes(kube.audit(mark, user="dayfly"))
"""

import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import urllib.parse

from lib import pod_stages
from lib.cluster import typed
from lib.dayfly import DEADLINE, tool, wait_for
from lib.git_servers import Authority, sh
from lib.kube_api import KubeApi

# Who asks with a token of that name: a part has the rights that it has in any cluster.
USERS = {"admin": ("admin", "system:masters"), "kwok": ("kwok", "system:masters"), "dayfly": ("dayfly", "system:masters"),
         "controller-manager": ("system:kube-controller-manager", ""), "scheduler": ("system:kube-scheduler", "")}
READS = ("get", "list", "watch")
NODE = "node1"


def writes(events):
    """What changed something, or was to: (verb, URI without what is behind `?`, status), but for dry runs and for questions
    about rights, which are POSTs that keep nothing."""
    return [(e["verb"], e["requestURI"].partition("?")[0], e["responseStatus"]["code"]) for e in events
            if e["verb"] not in READS and "dryRun=All" not in e["requestURI"]
            and not e["requestURI"].startswith(("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"))]


def search_path():
    return os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")


class Part:
    """One program. Its output is in <name>.log; it dies with the process that started it."""

    def __init__(self, directory, name, command, env=None, answers=lambda: True):
        self.name, self.command, self.answers, self.process = name, [str(word) for word in command], answers, None
        self.directory, self.log = directory, directory / f"{name}.log"
        self.env = {"PATH": search_path(), "HOME": str(directory), "TMPDIR": str(directory), "GOGC": "300", **(env or {})}

    def start(self):
        """Only from the thread that lives as long as the part shall: the kernel ends it with that one."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.command], cwd=self.directory, env=self.env,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def wait(self):
        """Until it answers."""
        def ready():
            assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.end_of_log()}"
            try:
                return self.answers()
            except (OSError, AssertionError):
                return False
        try:
            wait_for(f"{self.name} to answer", ready)
        except AssertionError as why:
            raise AssertionError(f"{why}\n{self.end_of_log()}") from None

    def end_of_log(self):
        return self.log.read_text(errors="replace")[-4000:]

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, sig=signal.SIGTERM, seconds=20):
        if not self.runs():
            return
        self.process.send_signal(sig)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ControlPlane:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.parts = {}  # in the order of their start
        self.reserved = []
        self.port = self.reserve()
        self.url = f"https://127.0.0.1:{self.port}"
        self.audit_log = self.directory / "audit.log"
        self.kubeconfig = self.directory / "admin.kubeconfig"

    # ---- start and end

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            for part in self.parts.values():
                print(f"--- log of {part.name}\n{part.end_of_log()[-1500:]}")
        self.stop()

    def begin(self):
        """Everything, as much of it as possible at once."""
        self.make_identities()
        self.add_etcd()
        self.add_apiserver()
        self.add_others()
        self.start("etcd")
        self.start("apiserver")
        self.start("controller-manager", "scheduler", wait=False)
        self.add_node()
        self.start("kwok", wait=False)
        wait_for("the default service account", lambda: self.get("serviceaccount", "default", "default"))

    def stop(self):
        volumes = self.directories_of_volumes() if self.runs("apiserver") else []
        for part in reversed(self.parts.values()):
            part.stop(signal.SIGKILL)  # nothing is to be kept
        for held in self.reserved:
            held.close()
        for path in volumes:
            shutil.rmtree(path, ignore_errors=True)

    def directories_of_volumes(self):
        """Where the controller-manager has made what claims wanted; it lets nobody choose where."""
        try:
            found = self.get("persistentvolume")["items"]
        except AssertionError:
            return []
        paths = [v["spec"]["hostPath"]["path"] for v in found if "hostPath" in v["spec"]]
        return [path for path in paths if path.startswith("/tmp/hostpath_pv/")]

    def reserve(self):
        """A port that is a part's as long as this lives, also while the part does not run: the kernel gives it to nobody who
        asks for any port, and lets a program listen that asks for this one, as servers do, with SO_REUSEADDR."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        self.reserved.append(held)
        return held.getsockname()[1]

    def add(self, name, *command, **options):
        self.parts[name] = Part(self.directory, name, command, **options)

    def start(self, *names, wait=True):
        """Starts parts that do not run; waits until they answer."""
        for name in names:
            if not self.parts[name].runs():
                self.parts[name].start()
        for name in names if wait else ():
            self.parts[name].wait()

    def kill(self, name):
        """SIGKILL; start() brings it back with what it had."""
        self.parts[name].stop(signal.SIGKILL)

    def terminate(self, name):
        self.parts[name].stop()

    def runs(self, name):
        return name in self.parts and self.parts[name].runs()

    # ---- identities

    def make_identities(self):
        """A certificate of the server and one of the administrator; all others have tokens."""
        authority = Authority(self.directory / "pki")
        pki = self.pki = authority.directory
        authority.certificate("IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc")
        sh("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
           "/O=system:masters/CN=admin", "-keyout", pki / "admin.key", "-out", pki / "admin.csr")
        sh("openssl", "x509", "-req", "-in", pki / "admin.csr", "-CA", authority.ca, "-CAkey", pki / "ca.key",
           "-CAcreateserial", "-days", "2", "-out", pki / "admin.pem")
        users = {**USERS, **self.more_users()}
        (pki / "tokens.csv").write_text("".join(f'token-of-{name},{user},{name},"{groups}"\n'
                                                for name, (user, groups) in users.items()))
        for name in users:
            self.write_kubeconfig(self.directory / f"{name}.kubeconfig", name, {"token": f"token-of-{name}"})
        self.write_kubeconfig(self.kubeconfig, "admin", {"client-certificate": str(pki / "admin.pem"),
                                                         "client-key": str(pki / "admin.key")})

    @staticmethod
    def more_users():
        return {}

    def write_kubeconfig(self, path, name, user):
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "ground",
            "clusters": [{"name": "ground", "cluster": {"server": self.url, "certificate-authority": str(self.pki / "ca.pem")}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "ground", "context": {"cluster": "ground", "user": name}}]}))
        path.chmod(0o600)

    def kubeconfig_of(self, name):
        """The kubeconfig of a user of USERS, which has a token; `dayfly` may do everything."""
        return self.directory / f"{name}.kubeconfig"

    def kubeconfig_of_account(self, namespace, account):
        """The kubeconfig of a service account, with a token as pods have it."""
        path = self.directory / f"{namespace}.{account}.kubeconfig"
        self.write_kubeconfig(path, account, {"token": self.token(namespace, account)})
        return path

    # ---- parts

    def add_etcd(self):
        port, peer = self.reserve(), self.reserve()
        self.etcd = f"http://127.0.0.1:{port}"
        self.add("etcd", tool("etcd"), "--data-dir", self.directory / "etcd", "--listen-client-urls", self.etcd,
                 "--advertise-client-urls", self.etcd, "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--log-level", "warn",
                 "--unsafe-no-fsync", answers=lambda: sh("curl", "-sf", f"{self.etcd}/health"))

    def add_apiserver(self):
        policy, pki = self.directory / "audit-policy.json", self.pki
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                                      "rules": [{"level": "Metadata"}]}))
        self.add("apiserver", self.program("kube-apiserver"), "--etcd-servers", self.etcd, "--bind-address", "127.0.0.1",
                 "--external-hostname", "127.0.0.1", "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none", "--secure-port", self.port,
                 "--cert-dir", pki, "--tls-cert-file", pki / "leaf.pem", "--tls-private-key-file", pki / "leaf.key",
                 "--client-ca-file", pki / "ca.pem", "--token-auth-file", pki / "tokens.csv",
                 "--service-account-key-file", pki / "leaf.pem", "--service-account-signing-key-file", pki / "leaf.key",
                 "--service-account-issuer", "https://kubernetes.default.svc", "--authorization-mode", "RBAC",
                 "--service-cluster-ip-range", "10.97.0.0/16",
                 # Only a controller of nodes that have a kubelet would take the taint away again.
                 "--disable-admission-plugins", "TaintNodesByCondition",
                 "--audit-log-path", self.audit_log, "--audit-log-maxsize", "100000", "--audit-policy-file", policy,
                 answers=lambda: self.api.send("GET", "/readyz", None, {})[0] == 200)

    def add_others(self):
        unused = ("node-lifecycle-controller", "node-ipam-controller", "node-route-controller", "cloud-node-lifecycle-controller",
                  "service-lb-controller", "bootstrap-signer-controller", "token-cleaner-controller")
        self.add("controller-manager", self.program("kube-controller-manager"),
                 "--kubeconfig", self.kubeconfig_of("controller-manager"), "--service-account-private-key-file", self.pki / "leaf.key",
                 "--root-ca-file", self.pki / "ca.pem", "--use-service-account-credentials", "--leader-elect=false",
                 "--secure-port", "0", "--kube-api-qps", "500", "--kube-api-burst", "1000", "--enable-hostpath-provisioner",
                 "--pvclaimbinder-sync-period", "1s", "--controllers", ",".join(["*", *(f"-{name}" for name in unused)]))
        config = self.directory / "scheduler.json"
        config.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False}, "podMaxBackoffSeconds": 1,
            "clientConnection": {"kubeconfig": str(self.kubeconfig_of("scheduler")), "qps": 500, "burst": 1000}}))
        self.add("scheduler", self.program("kube-scheduler"), "--config", config, "--secure-port", "0")
        stages = self.directory / "stages.yaml"
        stages.write_text(pod_stages.text())
        self.add("kwok", tool("kwok"), "--kubeconfig", self.kubeconfig_of("kwok"), "--config", stages, "--manage-all-nodes",
                 "--node-lease-duration-seconds", "0")

    @staticmethod
    def program(name):
        return pathlib.Path(tool("kubernetes")) / name

    def add_node(self):
        """The node, of which KWOK says that it is ready, and the class of volumes that claims get if they ask for none."""
        self.api.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}}})
        self.api.ask("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "kubernetes.io/host-path", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})

    # ---- requests

    @functools.cached_property
    def api(self):
        return KubeApi(self.kubeconfig)

    def kubectl(self, *args, check=True, **kwargs):
        kwargs.setdefault("capture_output", True)
        result = subprocess.run([self.program("kubectl"), "--kubeconfig", self.kubeconfig, *map(str, args)], text=True,
                                check=False, **kwargs)
        assert not check or result.returncode == 0, f"kubectl {' '.join(map(str, args))}: {result.stderr}"
        return result

    def get(self, kind, name=None, namespace=None):
        """An object, or None where there is none; without a name the list of all."""
        found = self.api.ask("GET", self.api.path(kind, namespace, name), missing=name is not None)
        return found if name else typed_list(found)

    def apply(self, namespace, *objects):
        """Creates or changes objects (dicts); what is cluster-wide takes no notice of the namespace."""
        for one in objects:
            path = self.api.path_of(one, one["metadata"].get("namespace", namespace))
            self.api.ask("PATCH", f"{path}?fieldManager=tests&force=true", one, kind="application/apply-patch+yaml")

    def patch(self, kind, name, namespace, change, subresource="", missing=False):
        """A merge patch; the object after it. None where it is gone, if that may be (missing)."""
        path = "/".join(filter(None, (self.api.path(kind, namespace, name), subresource)))
        return self.api.ask("PATCH", path, change, kind="application/merge-patch+json", missing=missing)

    def delete(self, kind, name, namespace=None, **options):
        self.api.ask("DELETE", self.api.path(kind, namespace, name), options or None, missing=True)

    def wait(self, kind, name, namespace, condition, seconds=DEADLINE):
        """Waits until condition(object) holds of an object that exists, and returns the object."""
        last = [None]

        def seen():
            last[0] = found = self.get(kind, name, namespace)
            return found if found and condition(found) else None
        try:
            return wait_for(f"{kind} {name}", seen, seconds)
        except AssertionError as why:
            raise AssertionError(f"{why}; it is {json.dumps((last[0] or {}).get('status'))}") from None

    def wait_gone(self, kind, name, namespace=None, seconds=DEADLINE):
        wait_for(f"{kind} {name} to go", lambda: self.get(kind, name, namespace) is None, seconds)

    def token(self, namespace, account):
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{urllib.parse.quote(account)}/token"
        return self.api.ask("POST", path, {"spec": {"expirationSeconds": 7200}})["status"]["token"]

    # ---- the audit log

    def mark(self):
        """Where the audit log ends now."""
        return self.audit_log.stat().st_size

    def audit(self, since=0, user=None, word=""):
        """The requests since a mark as the API server's audit events: `verb`, `requestURI` (with dryRun=All, if so), `user`,
        `userAgent`, `objectRef`, `responseStatus`; those of a user, or that have this word in them."""
        with open(self.audit_log, "rb") as log:
            log.seek(since)
            text = log.read().decode(errors="replace")
        events = [json.loads(line) for line in text.split("\n")[:-1] if word in line]
        return [e for e in events if user is None or e["user"].get("username") == user]


def typed_list(found):
    return {**found, "items": typed(found)} if "items" in found else found
