"""Argo CD in the test cluster: one image of what this machine has, and the manifests that put it there.

    with InCluster(cluster, directory) as argo:      # kubectl apply of argo.folder, and what core-install.yaml lacks
        argo.namespace.apply(application("a", argo.site.url))
"""

import copy
import fcntl
import json
import pathlib
import secrets
import shutil
import subprocess

import yaml

from lib.argo import NAMESPACE, PROJECT, Site, install_objects
from lib.cluster import Namespace
from lib.dayfly import ROOT, tool
from lib.pods import NODE, programs_digest

NAME = "localhost/dayfly-test-argocd:1"
ROLES = ("argocd-application-controller", "argocd-repo-server", "argocd-server", "argocd-cmp-server", "argocd-git-ask-pass")
# What the containers run beside Argo CD's own program; kubelet wants a number as a user who is not root.
PROGRAMS = ("/usr/bin/git", "/usr/lib/git-core/git-remote-http", "/usr/bin/redis-server", "/usr/bin/sh", "/usr/bin/cp")
FILES = {"etc/passwd": "root:x:0:0::/root:/bin/sh\nargocd:x:999:999::/tmp:/bin/sh\n", "etc/group": "root:x:0:\nargocd:x:999:\n",
         "etc/nsswitch.conf": "hosts: files dns\n"}
CONTAINERFILE = "FROM scratch\nADD rootfs.tar /\nENV PATH=/usr/local/bin:/usr/bin\nUSER 999:999\n"


def libraries(program):
    """What the loader would load for it, itself included."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {word for line in said.splitlines() for word in line.split() if word.startswith("/")}


def make_root(root):
    """The files of the image: programs and their libraries, where Debian has them."""
    for name in ("usr/bin", "usr/local/bin", "usr/lib/git-core", "usr/lib64", "etc", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    for path in {*PROGRAMS, *(found for program in PROGRAMS for found in libraries(program))}:
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    (root / "usr/lib/git-core/git-remote-https").symlink_to("git-remote-http")
    (root / "usr/lib/git-core/git").symlink_to("/usr/bin/git")
    for name, text in FILES.items():
        (root / name).write_text(text)
    for name in ("argocd", "helm", "kustomize"):
        shutil.copy(tool(name), root / "usr/local/bin" / name)
    for role in ROLES:
        (root / "usr/local/bin" / role).symlink_to("argocd")


def build(work, archive):
    """With a store of its own, as images/build does: nothing is left but the archive."""
    make_root(work / "rootfs")
    subprocess.run(["tar", "-c", "-f", work / "rootfs.tar", "-C", work / "rootfs", "--sort=name", "--owner=0", "--group=0", "."], check=True)
    (work / "Containerfile").write_text(CONTAINERFILE)
    own = ["buildah", "--root", work / "store", "--runroot", work / "run"]
    for command in ([*own, "bud", "-q", "-t", NAME, "-f", work / "Containerfile", work],
                    [*own, "push", "-q", NAME, f"oci-archive:{work}/image.tar:{NAME}"]):
        subprocess.run(command, check=True, capture_output=True)
    (work / "image.tar").rename(archive)


def image(cluster):
    """The image on the node, made anew only when a program of it is another one; returns its name."""
    images = ROOT / "build/images-test"
    images.mkdir(parents=True, exist_ok=True)
    with open(images / "lock-argocd", "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = programs_digest(*PROGRAMS, *map(tool, ("argocd", "helm", "kustomize")), __file__)
        archive, work = images / f"argocd-{digest}.tar", images / "argocd.work"
        if not archive.exists():
            for old in (*images.glob("argocd-*.tar"), work):
                shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
            work.mkdir()
            build(work, archive)
            shutil.rmtree(work)
        loaded = cluster.kubeconfig.parent / f"loaded-{archive.stem}"
        if not loaded.exists():
            cluster.load_image(archive)
            loaded.touch()
    return NAME


def containers(workload):
    pod = workload["spec"]["template"]["spec"]
    return [*pod.get("initContainers", []), *pod["containers"]]


def manifests():
    """What Argo CD's makers install, with the one image for all containers; it has no gpg, and no entry point of Redis."""
    objects = copy.deepcopy(install_objects())
    for one in objects:
        if one["kind"] not in ("Deployment", "StatefulSet"):
            continue
        for container in containers(one):
            if container["name"] == "redis":
                container["command"] = ["redis-server"]
            container.update(image=NAME, imagePullPolicy="Never")
            container.setdefault("env", []).append({"name": "ARGOCD_GPG_ENABLED", "value": "false"})
    return objects


def write_manifests(folder):
    """As the image of `dayfly-platform` has them in /manifests/argocd."""
    folder.mkdir(parents=True)
    objects = manifests()
    definitions = [one for one in objects if one["kind"] == "CustomResourceDefinition"]
    (folder / "definitions.yaml").write_text(yaml.safe_dump_all(definitions))
    (folder / "install.yaml").write_text(yaml.safe_dump_all([one for one in objects if one not in definitions]))


class Existing(Namespace):
    """A namespace that somebody else makes."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name


class InCluster:
    """Argo CD in its namespace, and a repository that its pods reach; a ground for lib.platform.Platform, too. With
    installed=False there is only the folder that a bootstrap is given. All of it is removed in the end."""

    def __init__(self, cluster, directory, installed=True):
        self.cluster, self.directory, self.installed = cluster, pathlib.Path(directory), installed
        self.folder = self.directory / "manifests/argocd"
        self.namespace = Existing(cluster, NAMESPACE)

    def __enter__(self):
        image(self.cluster)
        write_manifests(self.folder)
        self.site = Site(self.directory / "git", host=NODE)
        if self.installed:
            self.install()
        return self

    def install(self):
        kubectl = self.namespace.kubectl
        Namespace(self.cluster, NAMESPACE)
        kubectl("apply", "--server-side", "-f", self.folder)
        kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", self.folder / "definitions.yaml")
        kubectl("patch", "secret", "argocd-secret", "--type=merge", "-p",
                yaml.safe_dump({"stringData": {"server.secretkey": secrets.token_urlsafe(32)}}))
        self.namespace.apply(PROJECT)
        for what in ("deployment/argocd-redis", "deployment/argocd-repo-server", "statefulset/argocd-application-controller"):
            kubectl("rollout", "status", what, "--timeout=180s")

    def __exit__(self, *_):
        for app in self.applications():
            self.namespace.kubectl("patch", "application", app, "--type=merge", "-p", '{"metadata": {"finalizers": null}}', check=False)
        self.namespace.close()
        self.cluster.kubectl("delete", "--ignore-not-found", "crd,clusterrole,clusterrolebinding", "-l",
                             "app.kubernetes.io/part-of=argocd", check=False)
        self.cluster.kubectl("wait", "--for=delete", f"namespace/{NAMESPACE}", "--timeout=120s", check=False)
        self.site.stop()

    def applications(self):
        listed = self.namespace.kubectl("get", "applications.argoproj.io", "-o", "name", check=False).stdout
        return [line.partition("/")[2] for line in listed.splitlines()]

    # ---- as Platform asks a ground

    def kubeconfig_of(self, _):
        return self.cluster.kubeconfig

    def mark(self):
        return self.cluster.audit_log.stat().st_size

    def audit(self, since, user):
        """What dayfly-platform asked for: it has the cluster's own user here, as others have."""
        with open(self.cluster.audit_log, "rb") as log:
            log.seek(since)
            events = [json.loads(line) for line in log.read().decode().split("\n")[:-1]]
        return [e for e in events if e.get("userAgent", "").startswith("dayfly-platform/")]
