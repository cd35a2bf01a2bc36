"""Blobs and secrets in Secrets of a namespace, against the real API server.

The tests themselves are cmocka programs: what a backend must do is written once, in C, for all backends (tests/unit/*_suite.h).
"""

import os
import subprocess

import pytest

from lib.dayfly import BUILD


@pytest.mark.parametrize("program", ["blob_kube", "vault_kube"])
def test_this_backend_does_what_every_backend_does(program, namespace, tmp_path):
    sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(namespace.cluster.kubeconfig), "NAMESPACE": namespace.name,
           "TMPDIR": str(tmp_path), **sanitizers}
    result = subprocess.run([str(BUILD / "tools" / program)], env=env, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
