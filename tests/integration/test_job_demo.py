"""`make demo-kubernetes` on a cluster that is there already, as somebody with a KUBECONFIG has it."""

import pytest

from lib import dayfly, pods
from lib.cluster import Calm, with_kubectl
from lib.dayfly import wait_for


@pytest.fixture
def demo_namespace(cluster):
    with Calm(alone=False):
        yield "dayfly-steps"
        cluster.kubectl("delete", "namespace", "dayfly", "dayfly-steps", "--ignore-not-found", "--wait=false")


def test_the_demo_leaves_a_pod_of_the_plan_and_one_of_the_apply_to_be_looked_at(home, cluster, tofu, tmp_path, demo_namespace):
    pods.image(cluster, "spawner", pods.TAG)
    pods.runner_image(cluster, tofu)
    result = home.run(dayfly.ROOT / "tests/demo-kubernetes", timeout=300,
                      env={"KUBECONFIG": str(cluster.kubeconfig), "DAYFLY_TAG": pods.TAG, "TMPDIR": str(tmp_path),
                           "PATH": with_kubectl(home.env["PATH"])})
    assert result.returncode == 0, result.stdout + result.stderr

    def names():
        return cluster.kubectl("-n", demo_namespace, "get", "jobs,pods", "-o", "name").stdout
    wait_for("the Jobs and pods of both steps", lambda: all(
        word in names() for word in ("job.batch/hello-1-plan", "job.batch/hello-1-apply", "pod/hello-1-plan-", "pod/hello-1-apply-")))
    assert not list(tmp_path.glob("dayfly-demo-*")), "the demo left something behind"
