"""A real Argo CD without machines: its application controller and its repository server are processes of this user beside a
control plane of the same kind (lib/control_plane.py), with a git server over http.

    with Ground(directory) as ground:
        revision = ground.site.commit({"a/config.yaml": "..."})
        ground.apply("argocd", application("a", ground.site.url))
        ground.sync("a", revision)
        ground.wait_app("a", is_healthy)

What Argo CD's own pods would do is done by these processes; its Deployments are in the cluster, too, and their simulated
pods are ready, so that whoever looks for Argo CD finds it installed.
"""

import functools
import pathlib
import re
import secrets
import time

import yaml

from lib.control_plane import ControlPlane, search_path
from lib.dayfly import DEADLINE, tool, wait_for
from lib.git_servers import HttpsServer, Repository, sh
from lib.redis import Redis

NAMESPACE = "argocd"
HERE = "https://kubernetes.default.svc"  # Argo CD's name of the cluster that it runs in
OURS = ("default", NAMESPACE)  # namespaces that are always there
DEFINITIONS = ("applications.argoproj.io", "appprojects.argoproj.io")
REFRESH = "argocd.argoproj.io/refresh"
# What tests have in namespaces; their other objects go unseen.
KINDS = ("deployment", "statefulset", "daemonset", "job", "replicaset", "pod", "persistentvolumeclaim", "configmap", "service", "secret")
FINALIZER = "resources-finalizer.argocd.argoproj.io"


def install_file():
    return pathlib.Path(tool("argocd")).parent / "core-install.yaml"


@functools.cache
def install_objects():
    """What Argo CD's makers install without a user interface, but for ApplicationSets, whose definition alone is larger than
    all the rest."""
    documents = re.split(r"^---\n", install_file().read_text(), flags=re.M)
    return parse("---\n".join(text for text in documents if not re.search(r"^  name: (argocd-applicationset-|applicationsets\.)", text, re.M)))


def parse(text):
    """The documents of a large file; the loader that is written in C takes a tenth of the time."""
    return [one for one in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if one]


# Argo CD's API server makes this project and the key; nothing of core-install.yaml does, and without them no Application syncs.
PROJECT = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
           "spec": {"sourceRepos": ["*"], "destinations": [{"namespace": "*", "server": "*"}],
                    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}}


def application(name, url, path=None, revision="main", namespace=None, **source):
    """An Application as `dayfly-platform` makes them: nothing happens to it until an operation is asked for."""
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "finalizers": [FINALIZER]},
            "spec": {"project": "default",
                     "source": {"repoURL": url, "path": path or name, "targetRevision": revision, **source},
                     "destination": {"server": HERE, "namespace": namespace or name},
                     "syncPolicy": {"syncOptions": ["CreateNamespace=true", "ServerSideApply=true"]}}}


def is_healthy(app):
    """Synced, Healthy, and nothing is going on or asked for."""
    status = app.get("status", {})
    return (status.get("sync", {}).get("status") == "Synced" and status.get("health", {}).get("status") == "Healthy"
            and "operation" not in app and status.get("operationState", {}).get("phase") == "Succeeded")


class Ground(ControlPlane):
    """With installed=False nothing of Argo CD is in the cluster, and its processes do not run: install() and
    start("repo-server", "controller") do what a bootstrap would."""

    def __init__(self, directory, installed=True, user="git", password=None):
        super().__init__(directory)
        self.installed = installed
        self.site = Site(self.directory / "git", user, password)

    def begin(self):
        self.redis = Redis(self.directory / "redis", "password-of-redis")
        self.redis.port = self.reserve()
        self.add_redis()
        self.add_repo_server()
        self.start("redis", wait=False)
        self.start("repo-server", wait=False)
        super().begin()
        self.add_controller()
        if self.installed:
            self.install()
            self.start("controller", "redis", "repo-server")

    def stop(self):
        super().stop()
        self.site.stop()

    @staticmethod
    def more_users():
        groups = "system:serviceaccounts,system:serviceaccounts:argocd,system:authenticated"
        return {"argocd": (f"system:serviceaccount:{NAMESPACE}:argocd-application-controller", groups)}

    # ---- parts

    def add_redis(self):
        config = self.directory / "redis.conf"
        config.write_text(f"port {self.redis.port}\nbind 127.0.0.1\nsave ''\nrequirepass {self.redis.password}\n")
        config.chmod(0o600)
        self.add("redis", "redis-server", config, answers=lambda: self.redis.command("PING") == b"PONG")

    def add_argo(self, name, role, metrics, *flags, **env):
        """One of the roles of Argo CD's program."""
        self.add(name, tool("argocd"), "--redis", f"127.0.0.1:{self.redis.port}", "--metrics-port", metrics, "--loglevel", "info",
                 "--logformat", "text", *flags,
                 env={"ARGOCD_BINARY_NAME": role, "REDIS_PASSWORD": self.redis.password, "ARGOCD_GPG_ENABLED": "false",
                      "ARGOCD_TLS_DATA_PATH": str(self.directory / "tls"), "ARGOCD_SSH_DATA_PATH": str(self.directory / "ssh"),
                      "NO_COLOR": "1", **env},
                 answers=lambda: sh("curl", "-sf", f"http://127.0.0.1:{metrics}/healthz"))

    def add_repo_server(self):
        programs = self.directory / "bin"
        programs.mkdir()
        for name, path in (("argocd", tool("argocd")), ("helm", tool("helm")), ("kustomize", tool("kustomize"))):
            (programs / name).symlink_to(path)
        self.repo_server = f"127.0.0.1:{self.reserve()}"
        self.add_argo("repo-server", "argocd-repo-server", self.reserve(), "--address", "127.0.0.1",
                      "--metrics-address", "127.0.0.1", "--port", self.repo_server.partition(":")[2], "--disable-tls",
                      PATH=f"{programs}:{search_path()}", ARGOCD_ASK_PASS_SOCK=str(self.directory / "ask-pass.sock"))

    def add_controller(self):
        self.add_argo("controller", "argocd-application-controller", self.reserve(), "--namespace", NAMESPACE,
                      "--kubeconfig", self.kubeconfig_of("argocd"), "--repo-server", self.repo_server, "--repo-server-plaintext",
                      KUBECONFIG=str(self.kubeconfig_of("argocd")), ARGOCD_FAKE_IN_CLUSTER="true")

    def install(self):
        """All of install_objects() and what Argo CD's own pods would add, in an order that needs no second try."""
        objects = install_objects()
        self.apply(None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self.apply(NAMESPACE, *objects)
        self.apply(NAMESPACE, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-redis"},
                               "stringData": {"auth": self.redis.password}})
        self.patch("secret", "argocd-secret", NAMESPACE, {"stringData": {"server.secretkey": secrets.token_urlsafe(32)}})
        self.wait("crd", "appprojects.argoproj.io", None, is_established)
        self.wait("crd", "applications.argoproj.io", None, is_established)
        self.apply(NAMESPACE, PROJECT)

    def mount(self):
        """What a kubelet would do by itself: Argo CD's programs find as files what the ConfigMaps of known hosts and of
        certificates hold now."""
        for name, folder in (("argocd-ssh-known-hosts-cm", "ssh"), ("argocd-tls-certs-cm", "tls")):
            (self.directory / folder).mkdir(exist_ok=True)
            for key, text in (self.get("configmap", name, NAMESPACE).get("data") or {}).items():
                (self.directory / folder / key).write_text(text)

    def remove_applications(self, *names):
        """With their objects, which the next Application of a name would take for its own; without names all."""
        names = names or [app["metadata"]["name"] for app in self.get("application", namespace=NAMESPACE)["items"]]
        for name in names:
            self.patch("application", name, NAMESPACE, {"metadata": {"finalizers": [FINALIZER]}})
            self.delete("application", name, NAMESPACE)
        for name in names:
            self.wait_gone("application", name, NAMESPACE)

    def clean(self):
        """Of a ground that was installed: everything runs, and the cluster is as install() left it: no Application, none of their namespaces, definitions and
        volumes, and Argo CD itself is there. Nothing is asked of Argo CD for it."""
        self.site.start()
        self.start(*self.parts)
        if "applications.argoproj.io" in self.names("crd"):
            for name in self.names("application", NAMESPACE):
                self.patch("application", name, NAMESPACE, {"metadata": {"finalizers": None}}, missing=True)
            self.api.ask("DELETE", self.api.path("application", NAMESPACE))
        self.remove_others()
        if not self.is_whole():
            wait_for("a namespace that ends", lambda: not self.is_ending())
            self.kill("controller")
            self.install()
            self.start("controller")

    def is_whole(self):
        return (set(DEFINITIONS) <= set(self.names("crd")) and self.get("appproject", "default", NAMESPACE)
                and {"argocd-redis", "argocd-repo-server"} <= set(self.names("deployment", NAMESPACE)))

    def is_ending(self):
        namespace = self.get("namespace", NAMESPACE)
        return namespace and "deletionTimestamp" in namespace["metadata"]

    def remove_others(self):
        """Namespaces, definitions and volumes that install() has not made, with all that tests have in them."""
        used = [name for name in self.names("namespace") if name not in OURS and not name.startswith("kube-")]
        for kind in KINDS:
            for name in used:
                self.api.ask("DELETE", self.api.path(kind, name), {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        self.forget_volumes()
        definitions = [name for name in self.names("crd") if name not in DEFINITIONS]
        for name in definitions:
            self.delete("crd", name)
        wait_for("everything to go", lambda: not any(self.left(kind, used) for kind in ("pod", "persistentvolumeclaim")))
        # Their controller would wait 5 seconds before it looks into them.
        for name in used:
            self.delete("namespace", name)
            self.api.ask("PUT", f"/api/v1/namespaces/{name}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}}, missing=True)
        wait_for("namespaces, definitions and volumes to go", lambda: not set(self.names("namespace")) & set(used)
                 and not set(self.names("crd")) & set(definitions) and not self.names("persistentvolume"))

    def forget_volumes(self):
        """Also those that are to be kept when their claims go."""
        for one in self.get("persistentvolume")["items"]:
            self.patch("persistentvolume", one["metadata"]["name"], None, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}, missing=True)

    def left(self, kind, namespaces):
        """The objects of a kind in these namespaces."""
        return [one for one in self.get(kind)["items"] if one["metadata"]["namespace"] in namespaces]

    def names(self, kind, namespace=None):
        return [one["metadata"]["name"] for one in self.get(kind, namespace=namespace)["items"]]

    # ---- applications

    def app(self, name):
        return self.get("application", name, NAMESPACE)

    def wait_app(self, name, condition, seconds=DEADLINE):
        return self.wait("application", name, NAMESPACE, condition, seconds)

    def sync(self, name, revision=None, **more):
        """Asks for one sync, as `argocd app sync` and `dayfly-platform` do."""
        wanted = {"syncStrategy": {"hook": {}}, "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"], **more}
        if revision:
            wanted["revision"] = revision
        return self.patch("application", name, NAMESPACE, {"operation": {"initiatedBy": {"username": "tests"}, "sync": wanted}})

    def look(self, name, condition, seconds=DEADLINE):
        """Has Argo CD look at an Application until this holds, and returns it: a request that comes while it looks is lost."""
        asked = [0.0]

        def holds():
            app = self.app(name)
            if condition(app):
                return app
            if REFRESH not in app["metadata"].get("annotations", {}) and time.monotonic() > asked[0] + 3:
                self.refresh(name)
                asked[0] = time.monotonic()
            return None
        return wait_for(f"Argo CD to see what {name} is like", holds, seconds)

    def deploy(self, components, revision, seconds=DEADLINE):
        """Brings these entries of a dag.yaml (platform_repository.dag) up, each when what it depends on is healthy."""
        waiting, begun = {one["name"]: one for one in components}, {}

        def is_done():
            for name, one in list(waiting.items()):
                if name not in begun and not set(one["dependsOn"]) & set(waiting):
                    begun[name] = time.monotonic()
                    self.apply(NAMESPACE, application(name, self.site.url, one["path"], namespace=one["namespace"]))
                    self.sync(name, revision)
                elif name in begun and self.has_come_up(name, begun):
                    del waiting[name]
            return not waiting
        try:
            wait_for("the platform to be healthy", is_done, seconds)
        except AssertionError as why:
            raise AssertionError(f"{why}: {[(name, self.app(name).get('status')) for name in waiting if name in begun]}") from None

    def has_come_up(self, name, begun):
        """Argo CD compares a moment after a sync, perhaps before it knows of a definition that was synced; it looks again
        minutes later, or when it is asked to."""
        app = self.app(name)
        if not is_healthy(app) and "operation" not in app and time.monotonic() > begun[name] + 5:
            self.refresh(name)
            begun[name] = time.monotonic()
        return is_healthy(app)

    def refresh(self, name, how="normal"):
        """Has Argo CD look at the repository and the cluster now; it takes the annotation away when it begins to."""
        return self.patch("application", name, NAMESPACE, {"metadata": {"annotations": {REFRESH: how}}})


def is_established(definition):
    return any(c["type"] == "Established" and c["status"] == "True" for c in definition.get("status", {}).get("conditions") or [])


class Site:
    """A repository `platform.git` behind http. Stopped, nobody reaches it; start() serves it at the same address."""

    def __init__(self, root, user="git", password=None, host="127.0.0.1"):
        self.root, self.user, self.password, self.host, self.port = pathlib.Path(root), user, password, host, 0
        self.server = None
        self.root.mkdir(parents=True)
        self.repository = Repository(self.root / "platform.git")
        self.start()

    def start(self):
        if self.server:
            return
        self.server = HttpsServer(self.root, user=self.user, password=self.password, host=self.host, port=self.port)
        self.port = self.server.httpd.server_port
        self.url = f"{self.server.url}/platform.git"

    def stop(self):
        if self.server:
            self.server.stop()
        self.server = None

    def commit(self, files, branch="main", message="change"):
        """A commit with exactly these files ({path: text}); its id."""
        return self.repository.commit(files, branch, message)

    def secret(self, name="repository"):
        """What tells Argo CD the password of this repository."""
        return {"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": "repository"}},
                "stringData": {"type": "git", "url": self.url, "username": self.user, "password": self.password}}
