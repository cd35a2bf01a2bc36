"""A spawner that the Helm chart has put into the cluster."""

import base64
import subprocess

import yaml

from lib import pods
from lib.dayfly import ROOT, tool, wait_for
from lib.pods import NODE, Pods

CHART = ROOT / "charts/dayfly"


def helm(*args, check=True, **kwargs):
    result = subprocess.run([tool("helm"), *map(str, args)], capture_output=True, text=True, check=False, **kwargs)
    assert not check or result.returncode == 0, f"helm {' '.join(map(str, args))}:\n{result.stdout}{result.stderr}"
    return result


def image_values(cluster, tofu):
    """Values that name this checkout's images on the node."""
    spawner, runner = pods.image(cluster, "spawner", pods.TAG), pods.runner_image(cluster, tofu)
    return {"image": dict(zip(("repository", "tag"), spawner.rsplit(":", 1))),
            "runner": {"image": dict(zip(("repository", "tag"), runner.rsplit(":", 1)))}}


def merged(*trees):
    """Later trees win, member by member; None takes a key away."""
    result = {}
    for tree in trees:
        for key, value in tree.items():
            if value is None:
                result.pop(key, None)
                continue
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


class Release(Pods):
    """A release and a client of it, which comes by the node's address. Its steps are beside the service, where tests give
    them directories of the node; steps=None: where the chart puts them."""

    def __init__(self, home, namespace, tofu, name="df", **values):
        self.home, self.namespace, self.name = home, namespace, name
        self.full = f"{name}-dayfly"
        self.values = home.directory / f"{name}-values.yaml"
        reachable = {"service": {"type": "NodePort"}, "tls": {"names": [NODE]}, "auth": {"adminAccount": {"create": True}},
                     "steps": {"namespace": namespace.name}}
        self.values.write_text(yaml.safe_dump(merged(image_values(namespace.cluster, tofu), reachable, values)))

    def helm(self, *args, **kwargs):
        return helm("--kubeconfig", self.namespace.cluster.kubeconfig, "--namespace", self.namespace.name, *args, **kwargs)

    def install(self, *args):
        self.helm("install", self.name, CHART, "--values", self.values, "--wait", "--timeout", "2m", *args)
        self.connect()
        return self

    def upgrade(self, *args):
        self.helm("upgrade", self.name, CHART, "--values", self.values, "--wait", "--timeout", "2m", *args)
        self.wait_answer()

    def rollback(self):
        """To the first revision."""
        self.helm("rollback", self.name, "1", "--wait", "--timeout", "2m")
        self.wait_answer()

    def wait_answer(self):
        """The pod is ready; that the node's port leads to it is kube-proxy's, a moment later. Of a Deployment that may have its only
        replica unavailable, helm does not even wait for the pod."""
        wait_for("the service to answer", lambda: self.home.dayfly("get", "executors", code=None).returncode == 0)

    def connect(self):
        """What NOTES.txt says to do, but for the port-forward: the client asks as the admin account."""
        secret = wait_for("the service to make its authority", self.authority)
        authority = self.home.directory / "ca.crt"
        authority.write_bytes(base64.b64decode(secret["data"]["ca.crt"]))
        port = self.namespace.get("service", self.full)["spec"]["ports"][0]["nodePort"]
        self.home.env.update(DAYFLY_SERVER=f"https://{NODE}:{port}", DAYFLY_CA_FILE=str(authority),
                             DAYFLY_TOKEN=self.namespace.token(f"{self.full}-admin", audience="dayfly"))
        self.wait_answer()

    def authority(self):
        secret = self.namespace.get("secret", f"{self.full}-authority")
        return secret if "data" in secret else None

    def spawners(self):
        """Names of its pods that are not on their way out."""
        label = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component=spawner"
        return sorted(p["metadata"]["name"] for p in self.namespace.get_all("pods", label)
                      if "deletionTimestamp" not in p["metadata"])
