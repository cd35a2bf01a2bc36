"""The container images: what is in them, and that the programs work inside with a read-only root."""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import urllib.error
import urllib.request

import pytest

from lib import dayfly
from lib.executor import chart_objects
from lib.registry import Registry

MB = 1000 * 1000
VERSION = (dayfly.ROOT / "VERSION").read_text().strip()
UID, ANY_UID = 65532, 1002
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="building and entering images needs root here")
WORK = "/work"  # of the pod
NAMES = ("spawner", "runner", "platform", "terrakube")
ENTRYPOINTS = {"spawner": "dayfly", "runner": "dayfly-runner", "platform": "dayfly-platform", "terrakube": "entrypoint"}
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
        self.packed = sum(layer["size"] for layer in manifest["layers"])
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
    for library in ("curl", "microhttpd", "hiredis"):
        (tree / "build" / library).symlink_to((dayfly.ROOT / "build" / library).resolve())
    programs = tmp / "programs"
    programs.mkdir()
    for program in ("dayfly", "dayfly-runner", "dayfly-platform"):
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
            text = build(NAMES, tmp)[1]
            said.write_text(text)
    return tmp / "tree/build/images", said.read_text()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    tmp = tmp_path_factory.mktemp("images")
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    archives, said = build_once((tmp_path_factory.getbasetemp().parent if parallel else tmp) / "built")
    made = {}
    for name in NAMES:
        assert f"localhost/dayfly-{name}:{VERSION}" in said
        directory = tmp / name
        directory.mkdir()
        made[name] = Image(archives / f"{name}.tar", directory)
    return made


def entering(root, *command, mounts=(), uid=UID, **env):
    """What runs a program as this user, in an image's files, which are read-only but for /work and /tmp, as in a pod."""
    script = 'set -e; r=$1; shift; mount --bind "$r" "$r"; mount -t proc proc "$r/proc"; ' \
        'mount -t tmpfs tmpfs "$r/tmp" -o mode=1777; mount -t tmpfs tmpfs "$r/dev"; ' \
        'for d in null zero urandom; do touch "$r/dev/$d"; mount --bind "/dev/$d" "$r/dev/$d"; done; ' \
        'while [ "$1" != -- ]; do mount --bind "$1" "$r$2"; shift 2; done; shift; ' \
        'mount -o remount,ro,bind "$r"; ' \
        f'exec env -i "$@"'
    environment = {"PATH": "/usr/local/bin:/usr/bin", "HOME": "/work", **env}
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", str(root), *[str(m) for m in mounts], "--",
            *[f"{name}={value}" for name, value in environment.items()],
            "/usr/sbin/chroot", f"--userspec={uid}:{uid}", "--groups=", str(root), *map(str, command)]


def inside(root, *command, timeout=dayfly.DEADLINE, **how):
    """Runs it to its end."""
    return subprocess.run(entering(root, *command, **how), capture_output=True, text=True, timeout=timeout, check=False)


def test_they_are_small(images):
    assert images["runner"].size() <= 60 * MB
    assert images["spawner"].size() <= 60 * MB
    assert images["terrakube"].size() <= 60 * MB
    assert (images["runner"].root / "usr/bin/dayfly-runner").stat().st_size <= 2 * MB
    assert images["platform"].packed <= 15 * MB
    assert images["platform"].size() <= 33 * MB


def test_they_run_as_a_numeric_user_that_is_not_root(images):
    for name, program in ENTRYPOINTS.items():
        config = images[name].config["config"]
        assert config["User"] == f"{UID}:{UID}"
        assert config["Entrypoint"] == [f"/usr/bin/{program}"]
        assert images[name].config["architecture"] == {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def test_the_spawner_has_no_shell_and_no_other_program(images):
    root = images["spawner"].root
    programs = sorted(str(p.relative_to(root)) for p in images["spawner"].files()
                      if p.stat().st_mode & 0o111 and ".so" not in p.name)
    assert programs == ["usr/bin/dayfly"]


def test_the_platform_has_no_shell_and_no_program_but_those_of_git(images):
    root = images["platform"].root
    programs = sorted(str(p.relative_to(root)) for p in images["platform"].files()
                      if p.stat().st_mode & 0o111 and ".so" not in p.name)
    assert programs == ["usr/bin/dayfly-platform", "usr/bin/git", "usr/bin/ssh", "usr/lib/git-core/git-remote-http"]


def test_the_platform_has_a_place_for_all_that_is_mounted(images):
    for place in ("config", "secrets", "manifests", "report"):
        assert not list((images["platform"].root / place).iterdir())


def test_nothing_in_them_gives_rights_or_can_be_changed(images):
    for image in images.values():
        for path in image.root.rglob("*"):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                continue
            assert not mode & (stat.S_ISUID | stat.S_ISGID), path
            assert not mode & stat.S_IWOTH or path in (image.root / "tmp", image.root / "home/cnb"), path
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
        assert {"libc6", "libssl3", "curl-static", "hiredis-static", "libarchive-static"} <= set(parts)
        for library in ("libmicrohttpd-static", "libjemalloc-static"):
            assert (library in parts) == (name in ("spawner", "terrakube"))
        for part in parts.values():
            assert part["versionInfo"] and part["externalRefs"][0]["referenceLocator"].startswith("pkg:")
            if not part["name"].startswith("dayfly-"):
                assert (docs / part["name"] / "copyright").exists(), part["name"]


def test_two_builds_of_one_commit_are_the_same_image(images, tmp_path):
    again, _ = build(["spawner", "runner", "platform"], tmp_path)
    for name in ("spawner", "runner", "platform"):
        image = images[name]
        manifest = json.loads(subprocess.run(["tar", "-xOf", again / f"{name}.tar", "index.json"], capture_output=True,
                                             check=True).stdout)
        assert manifest["manifests"][0]["digest"] == image.index["manifests"][0]["digest"]


def keep(parts, document):
    """Puts a document among the blobs; what refers to it."""
    data = json.dumps(document).encode()
    digest = hashlib.sha256(data).hexdigest()
    (parts / "blobs/sha256" / digest).write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def pack(image, architecture, parts, archive):
    """An archive as `ARCH=… images/build` leaves it, but for its programs: they are those of this machine."""
    shutil.copytree(image.parts, parts)
    manifest = image.blob(image.index["manifests"][0])
    manifest["config"].update(keep(parts, {**image.config, "architecture": architecture}))
    entry = {**image.index["manifests"][0], **keep(parts, manifest)}
    (parts / "index.json").write_text(json.dumps({**image.index, "manifests": [entry]}))
    archive.parent.mkdir(parents=True)
    subprocess.run(["tar", "-cf", archive, "-C", parts, *os.listdir(parts)], check=True)


def test_what_was_built_for_two_architectures_is_pushed_as_one_image(images, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(dayfly.ROOT / "images", tree / "images")
    shutil.copy(dayfly.ROOT / "VERSION", tree)
    here = images["platform"].config["architecture"]
    for one in ("amd64", "arm64"):
        pack(images["platform"], one, tmp_path / one, tree / ("build" if one == here else f"build/{one}") / "images/platform.tar")
    subprocess.run([tree / "images/index", "platform"], check=True)
    with Registry() as registry:
        env = {**os.environ, "PLATFORM_IMG": f"{registry.address}/x/dayfly-platform:7"}
        subprocess.run([tree / "images/push", "platform", "--tls-verify=false"], env=env, check=True)
        place = "/v2/x/dayfly-platform/manifests/"
        entries = json.loads(registry.manifests[f"{place}7"])["manifests"]
        assert [entry["platform"] for entry in entries] == [{"architecture": one, "os": "linux"} for one in ("amd64", "arm64")]
        for entry in entries:
            manifest = json.loads(registry.manifests[place + entry["digest"]])
            assert json.loads(registry.blobs[manifest["config"]["digest"]])["architecture"] == entry["platform"]["architecture"]
            assert {layer["digest"] for layer in manifest["layers"]} <= set(registry.blobs)


def test_the_programs_start_with_a_read_only_root(images):
    for name, program in (("spawner", "dayfly"), ("runner", "dayfly-runner"), ("platform", "dayfly-platform"), ("terrakube", "dayfly"),
                          ("terrakube", "dayfly-runner")):
        result = inside(images[name].root, program, "version")
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
        assert VERSION in result.stdout
    refused = inside(images["runner"].root, "sh", "-c", "echo x >/etc/x")
    assert refused.returncode != 0 and "Read-only" in refused.stderr


def test_the_spawner_has_its_allocator_with_its_settings(images):
    for name in ("spawner", "terrakube"):
        said = inside(images[name].root, "dayfly", "version", MALLOC_CONF="confirm_conf:true").stderr
        assert "Set conf value: narenas:1\n" in said and "Invalid" not in said, said


@pytest.mark.parametrize("name", ["runner", "terrakube"])
@pytest.mark.parametrize("command, said", [
    (["git", "ls-remote", "https://127.0.0.1:1/x"], "Failed to connect"),
    (["git", "-c", "core.sshCommand=ssh -o BatchMode=yes", "ls-remote", "ssh://git@127.0.0.1:1/x"], "Connection refused"),
    (["git", "submodule", "status"], "not a git repository"),
    (["ssh", "-V"], "OpenSSH"),
    (["sh", "-c", "env | sort | sed s/^/+/"], "+HOME"),
])
def test_a_runner_has_what_sources_and_modules_need(images, name, command, said):
    result = inside(images[name].root, *command)
    assert said in result.stdout + result.stderr


# ---- the platform ----

ENVIRONMENT = "name: shop\ndomain: shop.example\ngitRepository: https://127.0.0.1:1/shop.git\ngitRevision: main\n"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


def act(image, tmp_path, environment, secrets, action="validate"):
    """An action in the image of the platform, with these files mounted and no cluster."""
    config, secret = tmp_path / "config", tmp_path / "secrets"
    (secret / "git").mkdir(parents=True)
    config.mkdir()
    (config / "environment.yaml").write_text(environment)
    (config / "kubeconfig").write_text(KUBECONFIG)
    for name, value in secrets.items():
        (secret / "git" / name).write_text(value)
    env = of_image(image, ENVIRONMENT="staging", KUBECONFIG_PATH="/config/kubeconfig")
    return inside(image.root, *image.config["config"]["Entrypoint"], action, mounts=(config, "/config", secret, "/secrets"), **env)


def test_the_platform_refuses_a_bad_configuration(images, tmp_path):
    result = act(images["platform"], tmp_path, "name: shop\nsize: 3\n", {})
    assert result.returncode == 3 and "size" in result.stdout + result.stderr, result


def test_the_platform_reads_its_repository_over_https(images, tmp_path):
    result = act(images["platform"], tmp_path, ENVIRONMENT, {"username": "joe", "password": "hunter2"})
    assert "Failed to connect" in result.stdout + result.stderr, result


def test_git_of_the_platform_reaches_ssh_without_a_shell(images):
    result = inside(images["platform"].root, "git", "ls-remote", "ssh://git@127.0.0.1:1/x", GIT_SSH="/usr/bin/dayfly-platform",
                    GIT_SSH_VARIANT="ssh", DAYFLY_SSH_CONFIG="none")
    assert "Connection refused" in result.stderr, result


# ---- the executor of a Terrakube ----

SCRIPT = """
set -euo pipefail
[[ "$(jq -r .a[0] <<< '{"a": ["found"]}')" = found ]]
curl -sS --proto =https https://127.0.0.1:1/ || [ $? = 7 ]
for tool in unzip tar git ssh openssl-is-not-there; do command -v $tool || echo no $tool; done
"""


def test_scripts_of_terrakube_find_their_tools(images):
    result = inside(images["terrakube"].root, "bash", "-c", SCRIPT, uid=ANY_UID)
    assert result.returncode == 0 and "Failed to connect" in result.stderr, result.stderr
    assert result.stdout.split() == ["/usr/bin/unzip", "/usr/bin/tar", "/usr/bin/git", "/usr/bin/ssh", "no", "openssl-is-not-there"]


def of_image(image, **env):
    """The image's environment, and more."""
    return {**dict(entry.split("=", 1) for entry in image.config["config"]["Env"]), **env}


def test_as_a_job_of_terrakube_it_is_the_executor_of_one_step(images):
    image = images["terrakube"]
    result = inside(image.root, "entrypoint", uid=ANY_UID, **of_image(image, EphemeralFlagBatch="true"))
    assert result.returncode == 1 and "EphemeralJobData" in result.stderr, result.stderr


def test_with_arguments_it_is_the_runner(images):
    image = images["terrakube"]
    for flag in ({}, {"EphemeralFlagBatch": "true"}):
        result = inside(image.root, "entrypoint", "version", uid=ANY_UID, **of_image(image, **flag))
        assert (result.returncode, result.stdout) == (0, f"dayfly-runner {VERSION}\n"), result.stderr


def test_without_anything_it_is_the_executor_of_all_steps(images):
    image, address = images["terrakube"], f"127.0.0.1:{dayfly.free_port()}"
    settings = {key: value for doc in chart_objects() if doc["metadata"]["name"].startswith("terrakube-executor-")
                for key, value in (doc.get("data") or doc.get("stringData") or {}).items()}
    env = of_image(image, **settings)
    assert env.pop("DAYFLY_TERRAKUBE_LISTEN") == "0.0.0.0:8090"
    command = entering(image.root, "entrypoint", uid=ANY_UID, DAYFLY_TERRAKUBE_LISTEN=address, DAYFLY_LISTEN="127.0.0.1:0", **env)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
        try:
            def is_ready():
                assert serving.poll() is None, serving.stdout.read()
                try:
                    with urllib.request.urlopen(f"http://{address}/actuator/health/readiness", timeout=5) as answer:
                        return answer.read() == b'{"status":"UP"}'
                except (OSError, urllib.error.HTTPError):
                    return False
            dayfly.wait_for("the service to be ready", is_ready)
        finally:
            serving.kill()


def rootfs_with(tofu, root):
    """The files of the runner's image with this tool."""
    env = {**os.environ, "BUILD": str(dayfly.ROOT / "build"), "WITH_TOFU": str(pathlib.Path(tofu).resolve())}
    subprocess.run([dayfly.ROOT / "images/rootfs", "runner", root], env=env, check=True, capture_output=True)


def plan_in(root, home, tmp_path):
    """A whole plan in these files: git source, a provisioner's shell; only /work and /tmp can be written to. Its work directory, its
    result, and its log."""
    module = home.module("module", MODULE)
    home.repository(module)
    work, source = tmp_path / "work", tmp_path / "source"
    work.mkdir()
    shutil.copytree(module, source)
    (work / "step.json").write_text(json.dumps({
        "uid": "u", "run": "net-1", "action": "plan", "stepToken": "t", "runtime": {"name": "opentofu"},
        "tools": {"searchPath": True, "cacheDirectory": f"{WORK}/tools"},
        "source": {"url": "file:///var/lib/dayfly", "kind": "git", "branch": "main"},
        "state": {"type": "local", "config": {"path": f"{WORK}/kept.tfstate"}}}))
    for directory in (work, source):
        subprocess.run(["chown", "-R", f"{UID}:{UID}", directory], check=True)
    mounts = (work, WORK, source, "/var/lib/dayfly")
    result = inside(root, "dayfly-runner", "step", "--file", f"{WORK}/step.json", "--report-dir", f"{WORK}/report",
                    mounts=mounts)
    assert result.returncode == 0, result.stdout + result.stderr
    return work, json.loads((work / "report/result.json").read_text()), result.stdout


def test_a_whole_step_runs_in_the_runners_image_which_knows_its_tool(home, tofu, tmp_path):
    root = tmp_path / "root"
    rootfs_with(tofu, root)
    work, left, log = plan_in(root, home, tmp_path)
    assert left["reason"] == "Planned" and left["planSummary"]["add"] == 1
    assert "terraform_data.a will be created" in log
    assert not (work / "tools/versions").exists(), "the tool was asked for its version"
    note = json.loads(next((root / "usr/share/dayfly/tools/notes").glob("opentofu-*")).read_text())
    assert note["backend"]["type"] == "http" and not any(note["backend"]["config"].values())


def test_another_tool_in_the_place_of_that_of_the_image_is_asked(home, tofu, tmp_path):
    root = tmp_path / "root"
    rootfs_with(tofu, root)
    with open(root / "usr/local/bin/tofu", "ab") as program:
        program.write(b"x")
    work, left, _ = plan_in(root, home, tmp_path)
    assert left["reason"] == "Planned"
    assert list((work / "tools/versions").iterdir()), "the tool was not asked for its version"
