"""Two spawners of one service whose documents, secrets, states and logs are in the cluster, behind a real Service."""

import http.client
import itertools
import json
import signal
import socket
import time

from lib import crds, dayfly
from lib.dayfly import wait_for
from lib.ledger import World, is_standby, made_for
from lib.pods import NODE, config_map_of
from lib.workflows import is_over

PORT = 8030


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind((NODE, 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Replicas(World):
    """A World that is served by several: requests go to any of them, pods reach them by the Service's name."""

    def __init__(self, home, namespace, tofu, count=2, lease="4s", config=None, **kubernetes):
        crds.install(namespace.cluster)
        host = f"dayfly.{namespace.name}.svc"
        super().__init__(home, namespace, tofu, kubeconfig=str(self.kubeconfig(home, namespace)), config={
            "store": "kubernetes", "advertiseUrl": f"https://{host}:{PORT}",
            "election": {"enabled": True, "leaseDuration": lease},
            "server": {"tls": {"names": [NODE, host], "secret": "dayfly-authority"}}, **(config or {})}, **kubernetes)
        self.ports = free_ports(count)
        self.spawners = []
        self.turn = itertools.count()
        self.serve(namespace)
        config = home.directory / "dayfly.yaml"
        for i, port in enumerate(self.ports):
            own = json.loads(config.read_text())
            own["election"]["address"] = f"https://{NODE}:{port}"
            spawner = dayfly.Server(home, config=json.dumps(own), data=home.directory / f"replica{i}",
                                    listen=f"{NODE}:{port}")
            mine = home.directory / f"replica{i}.yaml"
            mine.write_text(json.dumps(own))
            spawner.args = ["--config", str(mine)]
            spawner.log = home.directory / f"replica{i}.log"
            spawner.reach = f"https://{NODE}:{port}"
            self.spawners.append(spawner)

    @staticmethod
    def kubeconfig(home, namespace):
        """As if they were pods of this namespace."""
        config = json.loads(namespace.cluster.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = namespace.name
        path = home.directory / "kubeconfig"
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path

    def serve(self, namespace):
        """The Service, whose endpoints are processes of the node instead of pods."""
        meta = {"name": "dayfly", "labels": {"kubernetes.io/service-name": "dayfly"}}
        namespace.apply(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dayfly"},
             "spec": {"ports": [{"port": PORT, "protocol": "TCP"}]}},
            *[{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {**meta, "name": f"dayfly-{port}"},
               "addressType": "IPv4", "ports": [{"port": port, "protocol": "TCP"}],
               "endpoints": [{"addresses": [NODE]}]} for port in self.ports],
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dayfly-authority"}})

    def reconfigure(self, index, **kubernetes):
        """What one of them has to itself in its configuration, from its next start on."""
        path = self.home.directory / f"replica{index}.yaml"
        own = json.loads(path.read_text())
        own["kubernetes"].update(kubernetes)
        path.write_text(json.dumps(own))

    def become_unready(self, index):
        """What the readiness probe of a pod that does not answer any more brings about."""
        self.namespace.kubectl("delete", "endpointslice", f"dayfly-{self.ports[index]}")

    def start(self):
        for spawner in self.spawners:
            if spawner.process is None or spawner.process.poll() is not None:
                spawner.start()
        self.server = self.spawners[0]
        wait_for("a leader", lambda: self.leader() is not None)
        return self

    def leader(self):
        """Index of the one that the Lease names, or None."""
        found = [lease for lease in self.namespace.get("leases") if lease["metadata"]["name"] == "dayfly"]
        address = found[0]["metadata"].get("annotations", {}).get("dayfly.dev/address") if found else None
        return next((i for i, port in enumerate(self.ports) if address == f"https://{NODE}:{port}"), None)

    def revive(self):
        for spawner in self.spawners:
            if spawner.process.poll() is not None:
                spawner.start()

    def ask(self, method, path, body=None, key=None):
        """One request to each in turn until one answers; the dead are started again."""
        headers = {"Authorization": f"Bearer {self.home.env['DAYFLY_TOKEN']}", **({"Idempotency-Key": key} if key else {})}
        end = time.monotonic() + 120
        while True:
            self.revive()
            spawner = self.spawners[next(self.turn) % len(self.spawners)]
            try:
                status, _, answer = spawner.request(method, path, body, headers, timeout=15)
                if status != 503:
                    return status, json.loads(answer) if answer else None
            except (OSError, http.client.HTTPException, ValueError):
                pass
            assert time.monotonic() < end, f"{method} {path} is not answered"
            time.sleep(0.02)

    def executor(self, name, text, placement=None, **spec):
        """As of Pods, but asked of any replica."""
        placement = placement or {}
        self.namespace.apply(config_map_of(self.home.module(name, text), f"module-{name}"))
        mounts = [{"name": f"module-{name}", "mountPath": "/module"}, *placement.get("configMapMounts", [])]
        document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
                    "spec": {"source": {"url": "file:///module/module.tar.gz", "kind": "archive"},
                             "placement": {**placement, "configMapMounts": mounts}, **spec}}
        status, answer = self.ask("POST", "/v1/executors", document)
        assert status in (201, 409), answer

    def check_nothing_left(self, executors):
        """As of World; Secrets are where states, plans and logs are: of each there must be an owner that lives."""
        def lives(pod):
            return pod["status"].get("phase") not in ("Succeeded", "Failed")
        wait_for("the last pod", lambda: not [p for p in self.namespace.get("pods") if lives(p)])
        for executor in executors:
            path = f"/v1/executors/{executor}/state/lock"
            wait_for(f"the lock of {executor}", lambda path=path: self.ask("GET", path)[0] == 204)
            wait_for(f"{executor} to be free", lambda e=executor: "activeRun" not in self.get(f"/v1/executors/{e}")["status"])
        wait_for("the last standby runner", lambda: not self.nobodys(self.namespace.get("taskactions")))
        known = {task["metadata"]["name"]: made_for(task) for task in self.namespace.get("taskactions")}
        for job in self.namespace.get("jobs"):
            name, labels = job["metadata"]["name"], job["metadata"]["labels"]
            if is_standby(job):
                continue
            if name.startswith("wfe-"):  # called after its target; it stays when it is over
                assert is_over(job) and labels["dayfly.dev/step-uid"] in known.values(), job
            else:
                assert labels["dayfly.dev/step-uid"] == known[name], labels

    def __exit__(self, *args):
        for spawner in self.spawners:
            if spawner.process and spawner.process.poll() is None:
                spawner.process.send_signal(signal.SIGCONT)
                spawner.stop()
        for kind in ("executors", "runs", "taskactions"):
            for found in self.namespace.get(kind):
                self.namespace.kubectl("patch", kind, found["metadata"]["name"], "--type=merge", "-p",
                                       '{"metadata":{"finalizers":[]}}', check=False)
