"""The custom resources of dayfly in the cluster of the tests."""

import functools
import subprocess

from lib.dayfly import BUILD, ROOT, wait_for

GROUP = "dayfly.dev"
DIRECTORY = ROOT / "charts/dayfly/files/crds"
PLURALS = {"Executor": "executors", "Run": "runs", "TaskAction": "taskactions", "Revision": "revisions", "AuditTrail": "audittrails"}


@functools.cache
def install(cluster):
    """The definitions of this checkout, for everybody who uses the cluster; they stay, so once is enough."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(ROOT / "rbac/crds"))
    established(cluster, GROUP)


def established(cluster, group):
    def ready():
        names = [f"crd/{plural}.{group}" for plural in PLURALS.values()]
        result = cluster.kubectl("wait", "--for=condition=Established", "--timeout=180s", *names, check=False)
        return result.returncode == 0
    wait_for(f"the resources of {group}", ready)


def kube(namespace, verb, kind, *args, body=None, group=GROUP):
    """The client's test program: quicker than kubectl, and it does not look at the object itself."""
    return subprocess.run([str(BUILD / "tools/kube"), "-n", namespace.name, verb,
                           f"{group}/v1alpha1/{PLURALS[kind]}", *args], input=body or "", text=True,
                          capture_output=True, check=False, timeout=60,
                          env={"KUBECONFIG": str(namespace.cluster.kubeconfig), "PATH": "/usr/bin:/bin"})
