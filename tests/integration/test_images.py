"""The container images: what is in them, and that both programs work inside with a read-only root."""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import stat
import subprocess

import pytest

from lib import dayfly

MB = 1000 * 1000
VERSION = (dayfly.ROOT / "VERSION").read_text().strip()
UID = 65532
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="building and entering images needs root here")
WORK = "/work"  # of the pod
MODULE = """
resource "terraform_data" "a" {
  input = "hello"
  provisioner "local-exec" { command = "echo made by $(id -u) | sed s/made/really-made/" }
}
"""


class Image:
    """An OCI archive, unpacked."""

    def __init__(self, archive, directory):
        parts = directory / "parts"
        parts.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", parts], check=True)
        self.parts = parts
        self.index = json.loads((parts / "index.json").read_text())
        manifest = self.blob(self.index["manifests"][0])
        self.config = self.blob(manifest["config"])
        self.root = directory / "root"
        self.root.mkdir()
        for layer in manifest["layers"]:
            subprocess.run(["tar", "-xf", self.path(layer), "-C", self.root], check=True)

    def path(self, descriptor):
        return self.parts / "blobs" / descriptor["digest"].replace(":", "/")

    def blob(self, descriptor):
        data = self.path(descriptor).read_bytes()
        assert hashlib.sha256(data).hexdigest() == descriptor["digest"].split(":")[1]
        return json.loads(data)

    def files(self):
        return [p for p in self.root.rglob("*") if p.is_file() and not p.is_symlink()]

    def size(self):
        """Bytes unpacked; what has two names counts once."""
        return sum({p.stat().st_ino: p.stat().st_size for p in self.files()}.values())


def build(names, tmp):
    """Runs images/build in a copy of what it reads, so that tests at the same time do not meet."""
    tree = tmp / "tree"
    (tree / "build").mkdir(parents=True)
    for part in ("images", "tools", "VERSION", "LICENSE"):
        source = dayfly.ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / part)
    for library in ("curl", "microhttpd"):
        (tree / "build" / library).symlink_to((dayfly.ROOT / "build" / library).resolve())
    programs = tmp / "programs"
    programs.mkdir()
    for program in ("dayfly", "dayfly-runner"):
        # As users have them, whatever variant the other tests run.
        shutil.copy(dayfly.ROOT / "build" / program, programs)
    env = {**os.environ, "BUILD": str(programs), "SOURCE_DATE_EPOCH": "1700000000"}
    result = subprocess.run([tree / "images/build", *names], env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return tree / "build/images", result.stdout


def build_once(tmp):
    """The worker processes of a test run share what the first of them has built."""
    tmp.mkdir(exist_ok=True)
    said = tmp / "said"
    with open(tmp / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            text = build(["spawner", "runner"], tmp)[1]
            said.write_text(text)
    return tmp / "tree/build/images", said.read_text()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("images")
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    archives, said = build_once((tmp_path_factory.getbasetemp().parent if parallel else tmp) / "built")
    made = {}
    for name in ("spawner", "runner"):
        assert f"localhost/dayfly-{name}:{VERSION}" in said
        directory = tmp / name
        directory.mkdir()
        made[name] = Image(archives / f"{name}.tar", directory)
    return made


def inside(root, *command, mounts=(), timeout=dayfly.DEADLINE):
    """Runs a program as the image's user, in its files, which are read-only but for /work and /tmp, as in a pod."""
    script = 'set -e; r=$1; shift; mount --bind "$r" "$r"; mount -t proc proc "$r/proc"; ' \
        'mount -t tmpfs tmpfs "$r/tmp" -o mode=1777; mount -t tmpfs tmpfs "$r/dev"; ' \
        'for d in null zero urandom; do touch "$r/dev/$d"; mount --bind "/dev/$d" "$r/dev/$d"; done; ' \
        'while [ "$1" != -- ]; do mount --bind "$1" "$r$2"; shift 2; done; shift; ' \
        'mount -o remount,ro,bind "$r"; ' \
        f'exec env -i PATH=/usr/local/bin:/usr/bin HOME=/work /usr/sbin/chroot --userspec={UID}:{UID} --groups= "$r" "$@"'
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", str(root),
                           *[str(m) for m in mounts], "--", *map(str, command)],
                          capture_output=True, text=True, timeout=timeout, check=False)


def test_they_are_small(images):
    assert images["runner"].size() <= 60 * MB
    assert images["spawner"].size() <= 60 * MB
    assert (images["runner"].root / "usr/bin/dayfly-runner").stat().st_size <= 2 * MB


def test_they_run_as_a_numeric_user_that_is_not_root(images):
    for name, program in (("spawner", "dayfly"), ("runner", "dayfly-runner")):
        config = images[name].config["config"]
        assert config["User"] == f"{UID}:{UID}"
        assert config["Entrypoint"] == [f"/usr/bin/{program}"]
        assert images[name].config["architecture"] == {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def test_the_spawner_has_no_shell_and_no_other_program(images):
    root = images["spawner"].root
    programs = sorted(str(p.relative_to(root)) for p in images["spawner"].files()
                      if p.stat().st_mode & 0o111 and ".so" not in p.name)
    assert programs == ["usr/bin/dayfly"]


def test_nothing_in_them_gives_rights_or_can_be_changed(images):
    for image in images.values():
        for path in image.root.rglob("*"):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                continue
            assert not mode & (stat.S_ISUID | stat.S_ISGID), path
            assert not mode & stat.S_IWOTH or path == image.root / "tmp", path
            assert path.lstat().st_uid == 0, path


def test_no_link_in_them_leads_nowhere(images):
    for image in images.values():
        for path in image.root.rglob("*"):
            if path.is_symlink():
                target = os.readlink(path)
                to = image.root / target.lstrip("/") if target.startswith("/") else path.parent / target
                assert to.exists() or to.is_symlink(), f"{path} -> {target}"


def test_they_know_the_usual_authorities_and_keep_the_copyright_notices(images):
    for image in images.values():
        bundle = (image.root / "etc/ssl/certs/ca-certificates.crt").read_text()
        assert bundle.count("BEGIN CERTIFICATE") > 100
        assert (image.root / "usr/share/doc/libc6/copyright").exists()


def test_each_lists_all_that_it_consists_of_with_versions_and_licences(images):
    for name, image in images.items():
        docs = image.root / "usr/share/doc"
        sbom = json.loads((docs / "dayfly/sbom.spdx.json").read_text())
        assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["documentDescribes"] == [f"SPDXRef-dayfly-{name}"]
        parts = {p["name"]: p for p in sbom["packages"]}
        assert len({p["SPDXID"] for p in sbom["packages"]}) == len(sbom["packages"]) > 20
        assert parts[f"dayfly-{name}"]["versionInfo"] == VERSION
        assert {"libc6", "libssl3", "curl-static", "libarchive-static"} <= set(parts)
        assert ("libmicrohttpd-static" in parts) == (name == "spawner")
        for part in parts.values():
            assert part["versionInfo"] and part["externalRefs"][0]["referenceLocator"].startswith("pkg:")
            if not part["name"].startswith("dayfly-"):
                assert (docs / part["name"] / "copyright").exists(), part["name"]


def test_two_builds_of_one_commit_are_the_same_image(images, tmp_path):
    again, _ = build(["spawner", "runner"], tmp_path)
    for name, image in images.items():
        manifest = json.loads(subprocess.run(["tar", "-xOf", again / f"{name}.tar", "index.json"], capture_output=True,
                                             check=True).stdout)
        assert manifest["manifests"][0]["digest"] == image.index["manifests"][0]["digest"]


def test_both_programs_start_with_a_read_only_root(images):
    for name, program in (("spawner", "dayfly"), ("runner", "dayfly-runner")):
        result = inside(images[name].root, program, "version")
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
        assert VERSION in result.stdout
    refused = inside(images["runner"].root, "sh", "-c", "echo x >/etc/x")
    assert refused.returncode != 0 and "Read-only" in refused.stderr


@pytest.mark.parametrize("command, said", [
    (["git", "ls-remote", "https://127.0.0.1:1/x"], "Failed to connect"),
    (["git", "-c", "core.sshCommand=ssh -o BatchMode=yes", "ls-remote", "ssh://git@127.0.0.1:1/x"], "Connection refused"),
    (["git", "submodule", "status"], "not a git repository"),
    (["ssh", "-V"], "OpenSSH"),
    (["sh", "-c", "env | sort | sed s/^/+/"], "+HOME"),
])
def test_the_runner_has_what_sources_and_modules_need(images, command, said):
    result = inside(images["runner"].root, *command)
    assert said in result.stdout + result.stderr


def test_a_whole_step_runs_in_the_runners_image(home, tofu, tmp_path):
    """git source, tofu in the image, a provisioner's shell; only /work and /tmp can be written to."""
    root = tmp_path / "root"
    env = {**os.environ, "BUILD": str(dayfly.ROOT / "build"), "WITH_TOFU": str(pathlib.Path(tofu).resolve())}
    subprocess.run([dayfly.ROOT / "images/rootfs", "runner", root], env=env, check=True, capture_output=True)
    module = home.module("module", MODULE)
    home.repository(module)
    work, source = tmp_path / "work", tmp_path / "source"
    work.mkdir()
    shutil.copytree(module, source)
    (work / "step.json").write_text(json.dumps({
        "uid": "u", "run": "net-1", "action": "plan", "stepToken": "t", "runtime": {"name": "opentofu"},
        "tools": {"searchPath": True, "cacheDirectory": "/tmp/tools"},
        "source": {"url": "file:///var/lib/dayfly", "kind": "git", "branch": "main"},
        "state": {"type": "local", "config": {"path": f"{WORK}/kept.tfstate"}}}))
    (work / "handoff.json").write_text(json.dumps({"documentFile": f"{WORK}/step.json",
                                                   "terminationLog": f"{WORK}/termination-log"}))
    (work / "termination-log").write_text("")
    for directory in (work, source):
        subprocess.run(["chown", "-R", f"{UID}:{UID}", directory], check=True)
    mounts = (work, WORK, source, "/var/lib/dayfly")
    result = inside(root, "dayfly-runner", "step", "--handoff-file", f"{WORK}/handoff.json", mounts=mounts)
    assert result.returncode == 0, result.stdout + result.stderr
    left = json.loads((work / "termination-log").read_text())
    assert left["reason"] == "Planned" and left["planSummary"]["add"] == 1
    assert "terraform_data.a will be created" in result.stdout
