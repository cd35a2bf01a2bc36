"""The real one-node Kubernetes of tests/cluster, as tests use it: kubectl, a namespace of one's own, waiting."""

import contextlib
import copy
import fcntl
import functools
import itertools
import json
import os
import subprocess
import urllib.parse
import uuid

import yaml

from lib.dayfly import DEADLINE, ROOT, tool, wait_for
from lib.kube_api import KubeApi

SCRIPT = ROOT / "tests/cluster/cluster"
HOME = ROOT / "build/cluster"
USERS = ROOT / "build/cluster.users"  # held shared by every test process that uses the cluster
CALM = ROOT / "build/cluster.calm"  # held shared by every test that runs, exclusively by one that disturbs others
OURS = ROOT / "build/cluster.by-tests"  # there: tests brought it up, the last one takes it down


def with_kubectl(path):
    """This PATH with the cluster's own kubectl in front: the machine may have none."""
    return f"{tool('kubernetes')}:{path}"


class Cluster:
    """A running cluster. Its parts can be stopped, killed and brought back."""

    kubeconfig = HOME / "admin.kubeconfig"
    audit_log = HOME / "audit.log"
    node = "node1"
    pause_image = "localhost/dayfly-pause:1"

    @functools.cached_property
    def api(self):
        return KubeApi(self.kubeconfig)

    @staticmethod
    def script(*args, check=True, env=None):
        return subprocess.run([str(SCRIPT), *map(str, args)], check=check, capture_output=True, text=True, env=env)

    def stop_part(self, part):
        """SIGTERM to one part ("apiserver", "etcd", "kubelet", ...) and waits for its end."""
        self.script("stop", part)

    def kill_part(self, part):
        self.script("kill", part)

    def bring_back(self, **env):
        """Starts what does not run and waits until all is ready."""
        result = self.script("up", check=False, env={**os.environ, **env})
        assert result.returncode == 0, result.stdout + result.stderr

    def restart_watchers(self):
        """Brings all back, and begins anew what was without an API server meanwhile: that tries again more and more rarely,
        up to half a minute, in which a node that is there is taken for lost, or takes up no pod. Waits until one runs."""
        for part in ("coredns", "proxy", "kubelet", "scheduler", "controller-manager"):
            self.stop_part(part)
        self.bring_back()
        name = f"probe-{uuid.uuid4().hex[:10]}"
        container = {"name": "c", "image": self.pause_image, "imagePullPolicy": "Never"}
        self.kubectl("create", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}))
        self.kubectl("wait", "pod", name, "--for=jsonpath={.status.phase}=Running", "--timeout=180s")
        self.kubectl("delete", "pod", name, "--wait=false")

    def load_image(self, archive):
        """Hands an OCI archive to the node."""
        self.script("load", archive)

    def kubectl(self, *args, check=True, **kwargs):
        kwargs.setdefault("capture_output", True)
        result = subprocess.run([f"{tool('kubernetes')}/kubectl", "--kubeconfig", str(self.kubeconfig), *map(str, args)],
                                text=True, check=False, **kwargs)
        assert not check or result.returncode == 0, f"kubectl {' '.join(map(str, args))}: {result.stderr}"
        return result

    def audit(self, word=""):
        """The API server's audit events so far that have this word in them, whole lines only."""
        with open(self.audit_log, encoding="utf-8") as f:
            for line in f:
                if line.endswith("\n") and word in line:
                    yield json.loads(line)

    def used_by(self, user, namespace=None):
        """{(group, resource, verb)} that the API server let this user do so far (in one namespace), and the list of what it
        refused (anywhere)."""
        seen, refused = set(), []
        for event in self.audit(user):
            ref = event.get("objectRef")
            resource = "/".join(filter(None, (ref["resource"], ref.get("subresource")))) if ref else event["requestURI"]
            what = (ref.get("apiGroup", "") if ref else "", resource, event["verb"])
            if event["responseStatus"]["code"] == 403:
                refused.append(what)
            elif ref and namespace in (None, ref.get("namespace")):
                seen.add(what)
        return seen, refused


def typed(found):
    """The items of a list, each with its kind as kubectl shows it."""
    kind = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
    return [{**kind, **item} for item in found["items"]]


def let_go(api, namespace):
    """When no spawner is there any more to take dayfly's finalizers away: with them the namespace would stay for ever."""
    for plural in ("executors", "runs", "taskactions", "revisions"):
        path = f"/apis/dayfly.dev/v1alpha1/namespaces/{namespace}/{plural}"
        found = api.ask("GET", path, missing=True)  # missing: there are no definitions
        for document in (found or {"items": []})["items"]:
            if not document["metadata"].get("finalizers"):
                continue
            with contextlib.suppress(AssertionError):  # a webhook whose spawner is gone refuses it: the namespace stays then
                api.ask("PATCH", f"{path}/{document['metadata']['name']}", {"metadata": {"finalizers": None}}, missing=True,
                        kind="application/merge-patch+json")


class Namespace:
    """A fresh namespace, deleted with all that is in it. A test that names it has the cluster alone."""

    def __init__(self, cluster, name=None):
        self.cluster = cluster
        self.name = name or f"t-{uuid.uuid4().hex[:10]}"
        cluster.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}})
        # Without it no pod is let in; a controller makes it a moment later.
        wait_for("the default service account", lambda: self.get("serviceaccount", "default"))

    def in_steps(self):
        """The namespace that the chart makes for the steps of this one; it goes with this one."""
        other = copy.copy(self)
        other.name = f"{self.name}-steps"
        return other

    def kubectl(self, *args, **kwargs):
        return self.cluster.kubectl("-n", self.name, *args, **kwargs)

    def apply(self, *objects):
        """Creates or changes objects (dicts): dayfly's own as people do, with kubectl, others without a process."""
        for of_people, some in itertools.groupby(objects, lambda o: o["apiVersion"].startswith("dayfly.dev/")):
            if of_people:
                self.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(some)}))
                continue
            for document in some:
                path = self.cluster.api.path_of(document, self.name)
                self.cluster.api.ask("PATCH", f"{path}?fieldManager=tests&force=true", document, kind="application/apply-patch+yaml")

    def get(self, kind, name=None):
        """An object, or None where there is none; without a name the list of all."""
        found = self.cluster.api.ask("GET", self.cluster.api.path(kind, self.name, name), missing=name is not None)
        return found if name else typed(found)

    def get_all(self, kind, labels):
        """Every object of a kind with these labels."""
        path = self.cluster.api.path(kind, self.name)
        return typed(self.cluster.api.ask("GET", f"{path}?labelSelector={urllib.parse.quote(labels)}"))

    def wait(self, kind, name, condition, seconds=DEADLINE):
        """Waits until condition(object) holds of an object that exists, and returns the object."""
        last = [None]

        def seen():
            last[0] = found = self.get(kind, name)
            return found if found and condition(found) else None
        try:
            return wait_for(f"{kind} {name} in {self.name}", seen, seconds)
        except AssertionError as why:
            raise AssertionError(f"{why}; it is {json.dumps((last[0] or {}).get('status'))}") from None

    def wait_gone(self, kind, name, seconds=DEADLINE):
        wait_for(f"{kind} {name} to go", lambda: self.get(kind, name) is None, seconds)

    def token(self, account="default", **flags):
        """A token of a service account."""
        extra = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        return self.kubectl("create", "token", account, *extra).stdout.strip()

    def pod_token(self, pod, audience, account="default", **flags):
        """A token as the pod of this name has it."""
        return self.token(account, audience=audience, bound_object_kind="Pod", bound_object_name=pod, **flags)

    def let_go(self):
        let_go(self.cluster.api, self.name)

    def close(self):
        with contextlib.suppress(AssertionError):
            self.let_go()
        for name in (self.name, f"{self.name}-steps"):  # the chart and the manifests make the second one
            path = f"/api/v1/namespaces/{name}"
            with contextlib.suppress(AssertionError):
                self.cluster.api.ask("DELETE", path)
                self.cluster.api.ask("DELETE", f"{path}/pods", {"gracePeriodSeconds": 0})  # some would stay for minutes


class Calm:
    """Tests that only use the cluster share it; one that stops its parts has it alone."""

    def __init__(self, alone):
        self.alone = alone

    def __enter__(self):
        self.lock = open(CALM, "a", encoding="ascii")
        fcntl.flock(self.lock, fcntl.LOCK_EX if self.alone else fcntl.LOCK_SH)

    def __exit__(self, *_):
        self.lock.close()


class Use:
    """One test process's share in the cluster: the first brings it up, the last takes it down, unless it was up before
    (`make cluster-up`) or DAYFLY_KEEP_CLUSTER is set."""

    def __enter__(self):
        USERS.parent.mkdir(exist_ok=True)
        self.lock = open(USERS, "a", encoding="ascii")
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        if not (HOME / "admin.kubeconfig").exists():
            OURS.touch()
        with Calm(alone=False):  # what a test has stopped on purpose is not to be started
            result = Cluster.script("up", check=False)
        assert result.returncode == 0, f"the cluster does not come up:\n{result.stdout}{result.stderr}"
        return Cluster()

    def __exit__(self, *_):
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.close()  # others still use it
            return
        if OURS.exists() and not os.environ.get("DAYFLY_KEEP_CLUSTER"):
            OURS.unlink()
            Cluster.script("down")
            gone = Cluster.script("verify-gone", check=False)
            assert gone.returncode == 0, gone.stderr
        self.lock.close()


def kubeconfig_of(namespace, account, path):
    """A kubeconfig with nothing but a token of a service account."""
    config = yaml.safe_load(namespace.cluster.kubeconfig.read_text())
    config["users"] = [{"name": account, "user": {"token": namespace.token(account)}}]
    for context in config["contexts"]:
        context["context"]["user"] = account
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


def etcd(path, **body):
    """One request to the store of the API server."""
    command = ["curl", "-sf", "-d", json.dumps(body), f"http://127.0.0.1:23790/v3/{path}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def compact(namespace):
    """Forgets the past, as etcd does every five minutes for the API server."""
    namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "newest"}, "data": {"at": uuid.uuid4().hex}})
    etcd("kv/compaction", revision=namespace.get("configmap", "newest")["metadata"]["resourceVersion"], physical=True)


class FullEtcd:
    """An etcd whose quota is filled to the brim by ConfigMaps of a namespace; only for a test that has the cluster alone."""

    ROOM = 4 << 20  # what others may write before

    def __init__(self, cluster, namespace):
        self.cluster, self.namespace = cluster, namespace
        size = int(etcd("maintenance/status")["dbSize"])
        cluster.stop_part("etcd")
        cluster.bring_back(DAYFLY_ETCD_QUOTA=str(size + self.ROOM))

    def fill(self):
        """Until the API server refuses every write."""
        def full():
            body = {"metadata": {"generateName": "fill-", "labels": {"dayfly-test": "fill"}}, "data": {"a": "a" * 900_000}}
            try:
                self.cluster.api.ask("POST", f"/api/v1/namespaces/{self.namespace.name}/configmaps", body)
            except AssertionError as why:
                return "database space exceeded" in str(why)
            return False
        wait_for("etcd to be full", full)

    def empty(self):
        """As its manual says: remove, compact, defragment, disarm."""
        self.cluster.api.ask("DELETE", f"/api/v1/namespaces/{self.namespace.name}/configmaps?labelSelector=dayfly-test%3Dfill")
        etcd("kv/compaction", revision=etcd("maintenance/status")["header"]["revision"], physical=True)
        etcd("maintenance/defragment")
        self.disarm()

    @staticmethod
    def disarm():
        member = etcd("maintenance/status")["header"]["member_id"]
        etcd("maintenance/alarm", action="DEACTIVATE", memberID=member, alarm="NOSPACE")

    def close(self):
        """With its usual quota again."""
        self.empty()
        self.cluster.stop_part("etcd")
        self.cluster.bring_back()
