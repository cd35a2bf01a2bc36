"""dayfly-runner alone: where it gets tools and providers from."""

import contextlib
import http.server
import json
import os
import pathlib
import shutil
import threading
import zipfile
from hashlib import sha256

import pytest

from lib import dayfly, web
from lib.steps import Steps


def platform():
    return f"linux_{'arm64' if os.uname().machine == 'aarch64' else 'amd64'}"


# ---- providers ----

HOST = "registry.invalid"
PROVIDED = f"""
terraform {{
  required_providers {{
    simple = {{ source = "{HOST}/test/simple" }}
  }}
}}
resource "simple_resource" "r" {{ value = "x" }}
"""


@pytest.fixture(scope="session")
def provider():
    """A real provider plugin."""
    return dayfly.tool("provider")


PACKAGE = f"{HOST}/test/simple/1.0.0/{platform()}"
PLUGIN = "terraform-provider-simple_v1.0.0"


def with_mirror(home, provider):
    """A mirror with the provider, and a cache: what the step document says of them."""
    place = home.directory / "mirror" / PACKAGE
    place.mkdir(parents=True)
    (place / PLUGIN).symlink_to(provider)
    return {"filesystemMirror": str(home.directory / "mirror"), "pluginCacheDirectory": str(home.directory / "plugins")}


def test_providers_come_from_a_mirror_into_a_shared_cache(either_home, provider):
    steps = Steps(either_home, PROVIDED)
    providers = with_mirror(either_home, provider)
    program = either_home.directory / "mirror" / PACKAGE / PLUGIN
    program.unlink()
    program.write_text(f"#!/bin/sh\necho $(tr '\\0' '\\n' </proc/$PPID/cmdline | sed -n 2p) ${{GOGC:-own}}"
                       f" >>{either_home.directory}/gc\nexec {provider} \"$@\"\n")
    program.chmod(0o755)
    planned = steps.run("plan", "Planned", providers=providers)
    assert len(planned["lockFileSha256"]) == 64
    assert (either_home.directory / "plugins" / PACKAGE).is_dir()
    steps.run("apply", "Applied", providers=providers)
    told = set((either_home.directory / "gc").read_text().splitlines())
    assert {line for line in told if line.startswith(("plan", "apply"))} == {"plan own", "apply own"}, "a provider may be large"
    assert "no init: what the plan's made is here (1 provider verified)" in steps.log()
    assert "Initializing" not in steps.log()
    assert steps.resources() == {"r": "ok"}
    assert json.loads((steps.report / "outputs").read_text()) == {}, "the backend is known without an init, too"
    assert not steps.run("plan", "NoChanges", providers=providers)["hasChanges"]


def test_an_apply_on_a_machine_without_the_package_runs_init(either_home, provider):
    steps = Steps(either_home, PROVIDED)
    steps.run("plan", "Planned", providers=with_mirror(either_home, provider))
    packed = either_home.directory / "packed" / HOST / "test" / "simple"
    packed.mkdir(parents=True)
    with zipfile.ZipFile(packed / f"terraform-provider-simple_1.0.0_{platform()}.zip", "w") as z:
        z.write(provider, PLUGIN)
    steps.run("apply", "Applied", providers={"filesystemMirror": str(either_home.directory / "packed")})
    assert f"init again: {HOST}/test/simple 1.0.0 is not in a cache or mirror here" in steps.log()
    assert "Initializing" in steps.log()
    assert steps.resources() == {"r": "ok"}


@pytest.mark.parametrize("clean_mirror", [True, False])
def test_a_tampered_package_of_the_cache_is_never_executed(either_home, provider, clean_mirror):
    steps = Steps(either_home, PROVIDED)
    providers = with_mirror(either_home, provider)
    steps.run("plan", "Planned", providers=providers)
    ran = either_home.directory / "ran"
    place = either_home.directory / ("plugins" if clean_mirror else "mirror") / PACKAGE
    if place.is_symlink():
        place.unlink()
        place.mkdir()
    (place / PLUGIN).unlink(missing_ok=True)
    (place / PLUGIN).write_text(f"#!/bin/sh\ntouch {ran}\nexec {provider} \"$@\"\n")
    (place / PLUGIN).chmod(0o755)
    reason, code = ("Applied", 0) if clean_mirror else ("InitFailed", 1)
    steps.run("apply", reason, code=code, providers=providers)
    assert "which the lock file does not name" in steps.log()
    assert not ran.exists()
    assert steps.resources() == ({"r": "ok"} if clean_mirror else {})


def test_a_provider_starts_in_however_deep_a_work_directory(home, provider):
    steps = Steps(home, PROVIDED)
    place = home.directory / "mirror" / HOST / "test" / "simple" / "1.0.0" / platform()
    place.mkdir(parents=True)
    (place / "terraform-provider-simple_v1.0.0").symlink_to(provider)
    deep = home.directory / ("d" * 100) / "work"  # a socket's name has no room for it
    code, result = steps.finish(steps.start(
        "plan", work=deep, providers={"filesystemMirror": str(home.directory / "mirror")}))
    assert (code, result["reason"]) == (0, "Planned"), result
    assert "simple_resource.r will be created" in steps.log()
    assert list(pathlib.Path("/tmp").glob(f"dayfly-{sha256(bytes(deep / 'work')).hexdigest()[:16]}")) == []


def test_a_network_mirror_gets_its_token_and_nobody_else_does(home, provider, tmp_path):
    archive = tmp_path / "simple.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.write(provider, "terraform-provider-simple_v1.0.0")
    documents = {f"/{HOST}/test/simple/index.json": {"versions": {"1.0.0": {}}},
                 f"/{HOST}/test/simple/1.0.0.json": {"archives": {platform(): {"url": "simple.zip"}}}}
    tokens = set()

    class Handler(web.Handler):
        def do_GET(self):
            tokens.add(self.headers.get("Authorization"))
            if self.path in documents:
                self.answer(200, json.dumps(documents[self.path]).encode(), Content_Type="application/json")
            else:
                self.answer(200, archive.read_bytes(), Content_Type="application/zip")

    certificate, key = web.self_signed(tmp_path)
    with web.Server(Handler, (certificate, key)) as server:
        host = server.address.replace("127.0.0.1", "localhost")
        token = "t0ken-${x}-\"quoted\""
        seen = home.directory / "seen"
        steps = Steps(home, PROVIDED + f"""
resource "terraform_data" "env" {{
  provisioner "local-exec" {{ command = "cat /proc/$PPID/environ /proc/$PPID/cmdline > {seen}" }}
}}
""")
        own = {"providers": {"networkMirror": f"https://{host}/",
                             "credentials": {host: token}},
               "env": {"SSL_CERT_FILE": str(certificate)}}
        steps.run("plan", "Planned", **own)
        steps.run("apply", "Applied", **own)
    assert f"Bearer {token}" in tokens
    assert token.encode() not in seen.read_bytes()
    assert steps.resources()["r"] == "ok"


# ---- toolchain ----

class Mirror:
    """Releases of a tool that says it is some version, and is the real one in all else."""

    def __init__(self, directory, real):
        self.directory = directory
        self.real = real
        self.index = {"versions": {}}

    def add(self, version, tamper=False):
        folder = self.directory / version
        folder.mkdir(parents=True)
        name = f"tofu_{version}_{platform()}.zip"
        script = f'#!/bin/sh\n[ "$1" = version ] && {{ echo OpenTofu v{version}; exit; }}\nexec {self.real} "$@"\n'
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("README.md", "hello")
            archive.writestr("tofu", script)
        digest = sha256((folder / name).read_bytes() + (b"!" if tamper else b"")).hexdigest()
        (folder / f"tofu_{version}_SHA256SUMS").write_text(f"{'0' * 64}  other.zip\n{digest}  {name}\n")
        self.index["versions"][version] = {
            "shasums": f"tofu_{version}_SHA256SUMS",
            "builds": [{"os": "plan9", "arch": "amd64", "filename": "x", "url": "x"},
                       {"os": "linux", "arch": platform().rsplit("_")[1], "filename": name,
                        "url": f"{version}/{name}"}]}
        (self.directory / "index.json").write_text(json.dumps(self.index))
        return digest


@pytest.fixture
def mirror(tmp_path, tofu):
    return Mirror(tmp_path / "mirror", tofu)


def tools(steps, index, **more):
    return {"runtime": {"name": "opentofu", "version": more.pop("version", None)},
            "tools": {"cacheDirectory": str(steps.home.directory / "cache" / "tools"),
                      "index": {"opentofu": index}, **more}}


def test_a_tool_is_downloaded_once_from_an_index(steps, mirror):
    digest = mirror.add("1.9.5")
    mirror.add("1.9.7-rc1")
    mirror.add("1.8.0")
    index = (mirror.directory / "index.json").as_uri()
    result = steps.run("plan", "Planned", **tools(steps, index, version="~> 1.9"))
    assert result["tool"] == {"name": "opentofu", "version": "1.9.5"}
    assert (steps.home.directory / "cache" / "tools" / digest / "tofu").exists()
    shutil.rmtree(mirror.directory)
    steps.run("apply", "Applied", **tools(steps, index))
    steps.run("plan", "NoChanges", **tools(steps, index, version=">= 1.9, < 2"))


def test_a_downloaded_tool_that_was_changed_is_not_started_until_it_is_downloaded_again(steps, mirror):
    installed = steps.home.directory / "cache" / "tools" / mirror.add("1.9.5") / "tofu"
    wanted = tools(steps, (mirror.directory / "index.json").as_uri(), version="1.9.5")
    steps.run("plan", "Planned", **wanted)
    good, started = sha256(installed.read_bytes()).hexdigest(), steps.home.directory / "started"
    assert installed.with_suffix(".sha256").read_text().startswith(f"{good}  tofu\n")
    installed.write_text(f"#!/bin/sh\ntouch {started}\necho OpenTofu v1.9.5\n")
    result = steps.run("plan", "ToolChecksum", code=1, **wanted)
    for words in (installed, good, sha256(installed.read_bytes()).hexdigest(), "remove its directory"):
        assert str(words) in result["message"], result
    assert not started.exists()
    shutil.rmtree(installed.parent)
    steps.run("plan", "Planned", **wanted)


def test_a_tool_is_downloaded_from_a_plain_mirror(steps, mirror):
    mirror.add("1.9.5")
    result = steps.run("plan", "Planned", **tools(steps, mirror.directory.as_uri(), version="1.9.5"))
    assert result["tool"]["version"] == "1.9.5"


def test_a_plain_mirror_needs_an_exact_version(steps, mirror):
    mirror.add("1.9.5")
    result = steps.run("plan", "ToolMissing", code=1, **tools(steps, mirror.directory.as_uri(), version=">= 1.9"))
    assert "exact version" in result["message"]


@pytest.mark.parametrize("kind", ["index", "mirror"])
def test_a_tool_with_a_wrong_checksum_is_refused_and_not_kept(steps, mirror, kind):
    mirror.add("1.9.5", tamper=True)
    url = (mirror.directory / "index.json").as_uri() if kind == "index" else mirror.directory.as_uri()
    result = steps.run("plan", "ToolChecksum", code=1, **tools(steps, url, version="1.9.5"))
    assert "1.9.5" in result["message"]
    cache = steps.home.directory / "cache" / "tools"
    assert list(cache.rglob("tofu")) == [] and list(cache.glob(".*")) == []


def test_a_tool_that_nobody_has_is_named_with_what_there_is(steps, mirror):
    mirror.add("1.9.5")
    url = (mirror.directory / "index.json").as_uri()
    result = steps.run("plan", "ToolMissing", code=1, **tools(steps, url, version=">= 99", directories=[
        str(steps.home.bin)]))
    assert ">= 99" in result["message"] and str(steps.home.bin) in result["message"]
    assert "index.json" in result["message"]


def test_tools_come_over_https_with_a_configured_authority(steps, mirror, tmp_path):
    digest = mirror.add("1.9.5")
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=mirror.directory)

        def log_request(self, *args):
            asked.append(self.path)

    certificate, key = web.self_signed(tmp_path)
    with web.Server(Handler, (certificate, key)) as server:
        url = f"{server.url}/index.json"
        steps.run("plan", "ToolMissing", code=1, **tools(steps, url, version="1.9.5"))
        assert asked == [], "a server with an unknown certificate is not talked to"
        processes = []
        for i in range(4):  # writers at once
            other = Steps.__new__(Steps)
            other.__dict__.update(steps.__dict__, count=10 + i, report=steps.home.directory / f"report-{i}",
                                  state=steps.home.directory / f"{i}.tfstate")
            processes.append((other, other.start("plan", **tools(steps, url, version="1.9.5",
                                                                 caFile=str(certificate)))))
        for other, process in processes:
            code, result = other.finish(process)
            assert (code, result["tool"]["version"]) == (0, "1.9.5"), result
    cache = steps.home.directory / "cache" / "tools"
    assert sorted(p.name for p in cache.iterdir()) == sorted([digest, "versions"])


def test_a_tool_that_is_being_unpacked_is_not_to_be_found(steps, mirror):
    """Another runner that looks into the shared cache at that moment would start what is gone the next."""
    digest = mirror.add("1.9.5")
    cache, seen, over = steps.home.directory / "cache" / "tools", set(), threading.Event()

    def look():
        while not over.is_set():
            with contextlib.suppress(FileNotFoundError):
                seen.update(name for name in os.listdir(cache) if not name.startswith("."))
    looking = threading.Thread(target=look)
    looking.start()
    try:
        steps.run("plan", "Planned", **tools(steps, (mirror.directory / "index.json").as_uri(), version="1.9.5"))
    finally:
        over.set()
        looking.join()
    assert seen == {digest, "versions"}


def test_an_old_tool_that_prints_only_events_is_shown_as_text(steps, mirror):
    mirror.add("1.9.5")  # before -json-into
    url = (mirror.directory / "index.json").as_uri()
    steps.run("plan", "Planned", **tools(steps, url))
    assert "terraform_data.hello will be created" in steps.log()
    assert '"@message"' not in steps.log()
    assert "planned_change" in {e["type"] for e in steps.events()}
