"""Steps as pods: a spawner beside the real cluster, its images on the node, modules that pods can read."""

import base64
import fcntl
import hashlib
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import tarfile

from lib import dayfly
from lib.dayfly import DEADLINE, BUILD, ROOT, wait_for

NODE = "10.89.0.1"  # where pods reach what runs on this machine
VERSION = (ROOT / "VERSION").read_text().strip()
TAG = os.environ.get("DAYFLY_TEST_IMAGE_TAG", "test")


def programs_digest(*files):
    digest = hashlib.sha256()
    for file in files:
        digest.update(pathlib.Path(file).read_bytes())
    return digest.hexdigest()[:16]


def image(cluster, name, tag, programs=ROOT / "build", **env):
    """An image of this checkout's programs (or those of another directory) on the node, made anew only when they are
    others; returns its name."""
    images = ROOT / "build/images-test"
    images.mkdir(parents=True, exist_ok=True)
    parts = {"runner": ["dayfly-runner"], "spawner": ["dayfly"], "terrakube": ["dayfly", "dayfly-runner"]}[name]
    with open(images / "lock", "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = programs_digest(*[programs / part for part in parts], ROOT / "images/rootfs", ROOT / "images/packages",
                                 *sorted((ROOT / "images" / name).iterdir()), *[f for f in env.values()])
        archive = images / f"{name}-{tag}-{digest}.tar"
        if not archive.exists():
            for old in images.glob(f"{name}-{tag}-{'[0-9a-f]' * 16}.tar"):
                old.unlink()
            subprocess.run([str(ROOT / "images/build"), name], check=True, capture_output=True,
                           env={**os.environ, **env, "BUILD": str(programs), "TAG": tag, "OUT": str(images / "new")})
            (images / f"new/{name}.tar").rename(archive)
        loaded = cluster.kubeconfig.parent / f"loaded-{archive.stem}"
        if not loaded.exists():
            cluster.load_image(archive)
            loaded.touch()
    return f"localhost/dayfly-{name}:{tag}"


def runner_image(cluster, tofu):
    """The runner's image with OpenTofu in it."""
    return image(cluster, "runner", TAG, WITH_TOFU=str(tofu))


def terrakube_image(cluster, tofu):
    """The same of the executor of a Terrakube."""
    return image(cluster, "terrakube", TAG, WITH_TOFU=str(tofu))


def config_map_of(module, name="module"):
    """A ConfigMap with a module directory as an archive: what a pod can read without any server."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for file in sorted(module.iterdir()):
            archive.add(file, arcname=file.name)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "binaryData": {"module.tar.gz": base64.b64encode(packed.getvalue()).decode()}}


def reach(directory):
    """Lets the users of pods come to a directory on this machine."""
    while directory.parent != directory:
        directory.chmod(directory.stat().st_mode | stat.S_IXOTH)
        directory = directory.parent


def claim_on(namespace, directory, name):
    """A PersistentVolumeClaim on a new directory of this machine that everybody may write to; returns its volume, which
    is the cluster's and not the namespace's."""
    directory.mkdir()
    directory.chmod(0o777)
    volume = f"{name}-{namespace.name}"
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    namespace.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
         "spec": {**common, "capacity": {"storage": "1Mi"}, "hostPath": {"path": str(directory)},
                  "claimRef": {"namespace": namespace.name, "name": name}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
         "spec": {**common, "volumeName": volume, "resources": {"requests": {"storage": "1Mi"}}}})
    namespace.wait("pvc", name, lambda claim: claim["status"].get("phase") == "Bound")
    return volume


def volume_of(namespace, directory, claim):
    """A volume on this machine that waits for a claim of this name; returns its name."""
    directory.mkdir()
    directory.chmod(0o777)
    name = f"{claim}-{namespace.name}"
    namespace.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                     "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "capacity": {"storage": "1Gi"},
                              "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": str(directory)},
                              "claimRef": {"namespace": namespace.name, "name": claim}}})
    return name


class Pods:
    """A spawner with the engine `job` in a namespace of its own."""

    def __init__(self, home, namespace, tofu, /, config=None, **kubernetes):
        self.home, self.namespace = home, namespace
        made = home.dayfly("token-file", "create", "--name", "test", "--role", "admin", "-o", "json")
        token = json.loads(made.stdout)
        tokens = home.directory / "tokens"
        tokens.write_text(token["line"] + "\n")
        tokens.chmod(0o600)
        home.env["DAYFLY_TOKEN"] = token["token"]
        settings = {"kubeconfig": str(namespace.cluster.kubeconfig), "namespace": namespace.name,
                    "image": runner_image(namespace.cluster, tofu),
                    **kubernetes, "placement": {"imagePullPolicy": "IfNotPresent", **kubernetes.get("placement", {})}}
        engines = {} if "engines" in (config or {}) else {"engine": "job"}
        config = {**engines, "kubernetes": settings, "server": {"tls": {"names": [NODE]}},
                  "auth": {"tokenFile": str(tokens)}, "log": {"level": "debug"},
                  **(config or {})}
        self.server = dayfly.Server(home, config=json.dumps(config), data=home.state, listen=f"{NODE}:0")

    def start(self):
        self.server.start()
        self.home.env.pop("DAYFLY_SERVER")  # found by its data directory, certificate and all
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *args):
        self.server.__exit__(*args)

    def executor(self, name, text, placement=None, **spec):
        """Makes an executor of a module that its pods have as a ConfigMap."""
        self.namespace.apply(config_map_of(self.home.module(name, text), f"module-{name}"))
        placement = placement or {}
        mounts = [{"name": f"module-{name}", "mountPath": "/module"}, *placement.get("configMapMounts", [])]
        document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                    "spec": {"source": {"url": "file:///module/module.tar.gz", "kind": "archive"},
                             "placement": {**placement, "configMapMounts": mounts}, **spec}}
        self.home.dayfly("create", "-f", "-", input=json.dumps(document))

    def run(self, name, *args, code=0):
        """Provisions to the end; returns the document that `dayfly run -o json` prints."""
        return json.loads(self.home.dayfly("run", name, "--auto-approve", "-o", "json", *args, code=code).stdout)

    def begin(self, name, *args):
        """Asks for a run and does not wait for it; returns the process and the run's name."""
        process = self.home.popen(dayfly.DAYFLY, "run", name, "--auto-approve", *args, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        line = process.stdout.readline()
        assert not line.startswith("dayfly:"), line
        return process, re.match(r"(\S+):", line).group(1)

    def ask(self, name, action="provision"):
        """Asks for a run that needs no approval; returns its name at once."""
        status, _, body = self.server.request("POST", f"/v1/executors/{name}/runs", {"action": action, "autoApprove": True},
                                              {"Authorization": f"Bearer {self.home.env['DAYFLY_TOKEN']}"})
        assert status == 201, (status, body)
        return json.loads(body)["metadata"]["name"]

    def document(self, kind, name):
        return json.loads(self.home.dayfly("get", kind, name, "-o", "json").stdout)

    def ended(self, run, seconds=3 * DEADLINE):
        """The run's status, once it is final."""
        def final():
            status = self.document("runs", run)["status"]
            return status if status.get("phase") in ("Succeeded", "Failed", "Canceled", "Discarded") else None
        return wait_for(f"{run} to end", final, seconds)

    def wait_log(self, run, text, seconds=DEADLINE):
        """Waits until the log of a run that goes on has this text."""
        def seen():
            said = self.home.dayfly("logs", run, code=None).stdout
            status = self.document("runs", run)["status"]
            assert text in said or status["phase"] in ("Pending", "Running"), (status, said)
            return text in said
        return wait_for(f"{text!r} in the log of {run}", seen, seconds)

    def pod_of(self, step):
        """The newest pod of a step, or None."""
        pods = self.namespace.get_all("pods", f"batch.kubernetes.io/job-name={step}")
        return max(pods, key=lambda p: p["metadata"]["creationTimestamp"], default=None)

    def wait_pod(self, step, condition=lambda pod: True, seconds=DEADLINE):
        def seen():
            pod = self.pod_of(step)
            return pod if pod and condition(pod) else None
        return wait_for(f"a pod of {step}", seen, seconds)
