"""`blobs.move` where several replicas have everything in the cluster: nobody writes to the old place meanwhile, or later."""

import contextlib
import json
import signal
import threading

import pytest

from lib import crds
from lib.buckets import S3
from lib.dayfly import Server, wait_for

STATE = {"version": 4, "terraform_version": "1.10.0", "serial": 3, "lineage": "kept", "outputs": {}, "resources": []}
EXECUTOR = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"},
            "spec": {"source": {"url": "file:///module.tar.gz", "kind": "archive"}}}


def replica(home, namespace, name, blobs=None):
    """Of a service in this namespace."""
    config = home.directory / f"{name}.yaml"
    config.write_text(json.dumps({
        "engine": "job", "store": "kubernetes", "auth": {"loopback": "open"}, "election": {"enabled": True, "leaseDuration": "4s"},
        "kubernetes": {"kubeconfig": str(namespace.cluster.kubeconfig), "namespace": namespace.name, "image": "localhost/none:1"},
        **({"blobs": blobs} if blobs else {})}))
    server = Server(home, "--config", config, data=home.directory / name)
    server.log = home.directory / f"{name}.log"
    return server


def wait_leads(server):
    wait_for("it to lead", lambda: ' leads"' in server.log.read_text())


def begin_to_wait(server):
    """Starts it while another one leads; the thread that goes on when it serves, or has ended."""
    def begin():
        with contextlib.suppress(AssertionError):
            server.start()
    server.log.touch()
    start = threading.Thread(target=begin)
    start.start()
    wait_for("it to wait", lambda: "blobs.move: waits until no other replica leads" in server.log.read_text())
    return start


def test_blobs_go_to_a_bucket_when_no_replica_leads_that_uses_the_old_place(home, namespace, tmp_path):
    crds.install(namespace.cluster)
    with S3(tmp_path / "s3") as s3:
        home.env.update(s3.env)
        leader, follower = (replica(home, namespace, name) for name in ("leader", "follower"))
        blobs = {"location": "s3://blobs", "move": True, "s3": {"region": "us-east-1", "endpoint": s3.url, "pathStyle": True}}
        impatient, moving = (replica(home, namespace, name, blobs) for name in ("impatient", "moving"))
        try:
            leader.start()
            wait_leads(leader)
            home.dayfly("create", "-f", "-", input=json.dumps(EXECUTOR))
            home.dayfly("state", "push", "net", "-", input=json.dumps(STATE))
            follower.start()
            follower.process.send_signal(signal.SIGSTOP)

            begin_to_wait(impatient)
            impatient.process.terminate()
            assert impatient.process.wait(60) == 1
            assert "was told to end while another replica leads; nothing was done" in impatient.log.read_text()

            start = begin_to_wait(moving)
            assert not [name for name in s3.objects() if "state/" in name]
            assert leader.stop() == 0
            start.join()
            wait_leads(moving)
            assert json.loads(home.dayfly("state", "pull", "net").stdout)["lineage"] == "kept"
            assert [name for name in s3.objects() if "state/" in name]
            assert "blobs: all are in s3://blobs; the cluster still has its copies" in moving.log.read_text()

            with pytest.raises(AssertionError, match="is not set, and states, plans and logs are in s3://blobs"):
                leader.start()
            assert moving.stop() == 0
            follower.process.send_signal(signal.SIGCONT)
            assert follower.process.wait(60) == 1
            assert "does not lead, this process ends: states, plans and logs were moved to s3://blobs" in follower.log.read_text()
        finally:
            for server in (leader, follower, impatient, moving):
                if server.process and server.process.poll() is None:
                    server.kill()
            namespace.let_go()
