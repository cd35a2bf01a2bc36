"""The platform for arm64: its program under an emulator in the files of its image, and one image of both architectures."""

import json
import os
import subprocess

import pytest

from lib import dayfly

LONG = os.environ.get("DAYFLY_ARM64")
pytestmark = pytest.mark.skipif(not LONG or os.geteuid() != 0, reason="make soak builds for arm64, as root")
IMAGES = {"amd64": dayfly.ROOT / "build/images", "arm64": dayfly.ROOT / "build/arm64/images"}


def make(*command, **env):
    subprocess.run(command, cwd=dayfly.ROOT, env={**os.environ, **env}, check=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The files of the image."""
    directory = tmp_path_factory.mktemp("arm64") / "root"
    make("make", "ARCH=arm64", "build/arm64/dayfly-platform")
    make("images/rootfs", "platform", directory, ARCH="arm64")
    return directory


def emulated(root, *arguments, **env):
    return subprocess.run(["qemu-aarch64-static", "-L", root, root / "usr/bin/dayfly-platform", *arguments], env={**os.environ, **env},
                          capture_output=True, text=True, timeout=dayfly.DEADLINE, check=False)


def test_the_program_says_its_version(root):
    result = emulated(root, "version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"dayfly-platform {(dayfly.ROOT / 'VERSION').read_text().strip()}\n"


def test_the_program_refuses_a_bad_configuration(root, tmp_path):
    (tmp_path / "environment.yaml").write_text("name: shop\nsize: 3\n")
    result = emulated(root, "validate", "--config", tmp_path, ENVIRONMENT="staging", KUBECONFIG_PATH="/dev/null")
    assert result.returncode == 3 and "environment.yaml:2: size" in result.stdout + result.stderr, result


def test_one_image_has_both_architectures(root, tmp_path):
    del root  # its program is built
    make("images/build", "platform", ARCH="arm64")
    make("images/build", "platform", ARCH="amd64")
    make("images/index", "platform")
    archive = f"oci-archive:{IMAGES['amd64']}/platform.index.tar"
    index = json.loads(subprocess.run(["skopeo", "inspect", "--raw", archive], capture_output=True, check=True).stdout)
    assert [m["platform"] for m in index["manifests"]] == [{"architecture": a, "os": "linux"} for a in IMAGES]
    make("skopeo", "copy", "-q", "--all", archive, f"oci:{tmp_path}/copy")  # which compares all digests
    for entry in index["manifests"]:
        blobs = tmp_path / "copy/blobs/sha256"
        manifest = json.loads((blobs / entry["digest"].removeprefix("sha256:")).read_text())
        config = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_text())
        assert config["architecture"] == entry["platform"]["architecture"]
        assert sum(layer["size"] for layer in manifest["layers"]) <= 15_000_000
