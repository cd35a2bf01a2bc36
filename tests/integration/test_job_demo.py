"""`make demo-kubernetes`: what it shows is there, with images as users get them."""

import os
import subprocess

from lib import dayfly
from lib.pods import VERSION, image


def test_demo_kubernetes_goes_through_the_whole_story(cluster, tofu, tmp_path):
    image(cluster, "spawner", VERSION)
    image(cluster, "runner", VERSION, WITH_TOFU=str(tofu))
    env = {"HOME": str(tmp_path), "PATH": f"{cluster.programs}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.kubeconfig)}
    result = subprocess.run([str(dayfly.ROOT / "tests/demo-kubernetes")], env=env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False, timeout=300)
    assert result.returncode == 0, result.stdout[-5000:]
    assert "hello-1: Succeeded" in result.stdout and "3 destroyed" in result.stdout
    pods = cluster.kubectl("-n", "dayfly", "get", "pods", "-o", "name").stdout.split()
    assert len([p for p in pods if "-plan-" in p]) == 3 and len([p for p in pods if "-apply-" in p]) == 2
    cluster.kubectl("delete", "namespace", "dayfly", "--wait=false")
