"""dayfly-runner alone: where it gets providers from, and the cache that it shares with others."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
from hashlib import sha256

import pytest

from lib import dayfly, providers, web
from lib.dayfly import wait_for
from lib.providers import HOST, PROVIDED, SOURCE, h1, platform
from lib.registry import Registry
from lib.steps import Steps


@pytest.fixture(scope="session")
def provider():
    """A real provider plugin."""
    return dayfly.tool("provider")


def test_providers_come_from_a_mirror_into_a_shared_cache(either_home, provider):
    steps = Steps(either_home, PROVIDED)
    providers.packed(provider, either_home.directory / "mirror")
    cache = either_home.directory / "plugins"
    own = {"filesystemMirror": str(either_home.directory / "mirror"), "pluginCacheDirectory": str(cache)}
    planned = steps.run("plan", "Planned", providers=own)
    assert len(planned["lockFileSha256"]) == 64
    package = cache / SOURCE / "1.0.0" / platform()
    assert [p.name for p in package.iterdir()] == ["terraform-provider-simple_v1.0.0"]
    steps.run("apply", "Applied", providers=own)
    assert "no init: what the plan's made is here (1 provider verified)" in steps.log()
    assert "Initializing" not in steps.log()
    assert steps.resources() == {"r": "ok"}
    assert json.loads((steps.report / "outputs").read_text()) == {}, "the backend is known without an init, too"
    assert not steps.run("plan", "NoChanges", providers=own)["hasChanges"]


PLUGIN = "terraform-provider-simple_v1.0.0"


def test_a_provider_has_the_garbage_collection_of_its_own_choice(either_home, provider):
    steps = Steps(either_home, PROVIDED)
    program = providers.unpacked(provider, either_home.directory / "mirror") / PLUGIN
    program.write_text(f"#!/bin/sh\necho $(tr '\\0' '\\n' </proc/$PPID/cmdline | sed -n 2p) ${{GOGC:-own}}"
                       f" >>{either_home.directory}/gc\nexec {provider} \"$@\"\n")
    own = {"filesystemMirror": str(either_home.directory / "mirror")}
    steps.run("plan", "Planned", providers=own)
    steps.run("apply", "Applied", providers=own)
    told = set((either_home.directory / "gc").read_text().splitlines())
    assert {line for line in told if line.startswith(("plan", "apply"))} == {"plan own", "apply own"}, "a provider may be large"


def test_an_apply_on_a_machine_without_the_package_runs_init(either_home, provider):
    steps = Steps(either_home, PROVIDED)
    providers.unpacked(provider, either_home.directory / "mirror")
    steps.run("plan", "Planned", providers={"filesystemMirror": str(either_home.directory / "mirror")})
    providers.packed(provider, either_home.directory / "packed")
    steps.run("apply", "Applied", providers={"filesystemMirror": str(either_home.directory / "packed")})
    assert f"init again: {SOURCE} 1.0.0 is not in a cache or mirror here" in steps.log()
    assert "Initializing" in steps.log()
    assert steps.resources() == {"r": "ok"}


@pytest.mark.parametrize("clean_mirror", [True, False])
def test_a_tampered_package_is_never_executed(either_home, provider, clean_mirror):
    steps = Steps(either_home, PROVIDED)
    mirror, cache = either_home.directory / "mirror", either_home.directory / "plugins"
    providers.packed(provider, mirror) if clean_mirror else providers.unpacked(provider, mirror)
    own = {"filesystemMirror": str(mirror), "pluginCacheDirectory": str(cache)}
    steps.run("plan", "Planned", providers=own)
    ran = either_home.directory / "ran"
    program = (cache if clean_mirror else mirror) / SOURCE / "1.0.0" / platform() / PLUGIN
    program.unlink()
    program.write_text(f"#!/bin/sh\ntouch {ran}\nexec {provider} \"$@\"\n")
    program.chmod(0o755)
    reason, code = ("Applied", 0) if clean_mirror else ("InitFailed", 1)
    steps.run("apply", reason, code=code, providers=own)
    assert "which the lock file does not name" in steps.log()
    assert not ran.exists()
    assert steps.resources() == ({"r": "ok"} if clean_mirror else {})


def test_a_provider_starts_in_however_deep_a_work_directory(home, provider):
    steps = Steps(home, PROVIDED)
    providers.unpacked(provider, home.directory / "mirror")
    deep = home.directory / ("d" * 100) / "work"  # a socket's name has no room for it
    code, result = steps.finish(steps.start(
        "plan", work=deep, providers={"filesystemMirror": str(home.directory / "mirror")}))
    assert (code, result["reason"]) == (0, "Planned"), result
    assert "simple_resource.r will be created" in steps.log()
    assert list(pathlib.Path("/tmp").glob(f"dayfly-{sha256(bytes(deep / 'work')).hexdigest()[:16]}")) == []


def test_a_network_mirror_gets_its_token_and_nobody_else_does(home, provider, tmp_path):
    archive = providers.packed(provider, tmp_path / "mirror")
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


def test_providers_come_from_an_oci_registry_to_opentofu_alone(either_home, provider, tmp_path):
    steps = Steps(either_home, PROVIDED)
    certificate, key = web.self_signed(tmp_path)
    with Registry((certificate, key)) as registry:
        providers.push(providers.packed(provider, tmp_path / "mirror"), registry, f"mirror/{HOST}/test/simple")
        host = registry.address.replace("127.0.0.1", "localhost")
        own = {"providers": {"ociMirror": f"{host}/mirror/${{hostname}}/${{namespace}}/${{type}}"},
               "env": {"SSL_CERT_FILE": str(certificate)}}
        if either_home.runtime == "terraform":
            result = steps.run("plan", "InvalidStep", code=3, **own)
            for words in ("providers.ociMirror", "terraform 1.", "OpenTofu 1.10", "providers.networkMirror"):
                assert words in result["message"]
            return
        steps.run("plan", "Planned", **own)
        steps.run("apply", "Applied", **own)
    assert steps.resources() == {"r": "ok"}


# ---- a cache that is shared ----

PACKAGE = pathlib.Path(SOURCE) / "1.0.0" / platform()


def beside(home, number, module=None):
    """Another run at the same time."""
    other = Steps.__new__(Steps)
    other.home, other.count, other.plan_result = home, 100 * number, None
    other.module = module or home.module(f"module-{number}", PROVIDED)
    other.state, other.report = home.directory / f"{number}.tfstate", home.directory / f"report-{number}"
    return other


def left_in(cache):
    """What a cache has besides its packages."""
    return [p.name for p in cache.iterdir() if p.name not in (".dayfly.lock", HOST)]


def share(home, provider):
    """(what a step gets, the cache) with a mirror of archives and an empty cache."""
    providers.packed(provider, home.directory / "mirror")
    cache = home.directory / "plugins"
    return {"providers": {"filesystemMirror": str(home.directory / "mirror"),
                          "pluginCacheDirectory": str(cache)}}, cache


@pytest.fixture
def shared(home, provider):
    return share(home, provider)


def test_eight_steps_at_once_fill_an_empty_cache_with_whole_packages(either_home, provider):
    own, cache = share(either_home, provider)
    others = [beside(either_home, n) for n in range(8)]
    started = [(one, one.start("plan", **own)) for one in others]
    ended = [(one, *one.finish(process)) for one, process in started]
    assert [(code, result["reason"]) for _, code, result in ended] == [(0, "Planned")] * 8, ended
    package = cache / PACKAGE
    assert [p.read_bytes() for p in package.iterdir()] == [pathlib.Path(provider).read_bytes()]
    for one, _, _ in ended:
        link = pathlib.Path(one.work, "work/source/.terraform/providers", PACKAGE)
        assert link.readlink() == package, "the module has its provider in the cache"
    assert left_in(cache) == []


def test_a_step_without_a_lock_file_does_not_touch_a_provider_that_another_one_executes(either_home, provider):
    own, cache = share(either_home, provider)
    beside(either_home, 1).run("plan", "Planned", **own)
    program = cache / PACKAGE / "terraform-provider-simple_v1.0.0"
    cookie = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
    with subprocess.Popen([program], env={"TF_PLUGIN_MAGIC_COOKIE": cookie}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as running:
        try:
            assert running.stdout.readline(), "the provider serves"
            before = program.stat()
            beside(either_home, 2).run("plan", "Planned", **own)
            assert (program.stat().st_ino, program.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        finally:
            running.kill()


def test_a_damaged_package_is_replaced_and_a_whole_one_is_not_even_asked_for(home, shared):
    own, cache = shared
    first = beside(home, 1)
    first.run("plan", "Planned", **own)
    lock = (first.work / "work/source" / ".terraform.lock.hcl").read_text()
    assert h1(cache / PACKAGE) in lock
    program = cache / PACKAGE / "terraform-provider-simple_v1.0.0"
    locked = home.module("locked", PROVIDED)
    (locked / ".terraform.lock.hcl").write_text(lock)
    program.write_bytes(program.read_bytes()[:1000])
    beside(home, 2, locked).run("plan", "Planned", **own)
    assert h1(cache / PACKAGE) in lock
    shutil.rmtree(home.directory / "mirror")
    beside(home, 3, locked).run("plan", "Planned", **own)
    assert left_in(cache) == []


def test_a_cache_keeps_to_its_limit_by_the_version_that_no_step_uses_any_more(either_home, provider):
    own, cache = share(either_home, provider)
    own["providers"]["pluginCacheMaxMiB"] = 1
    beside(either_home, 1).run("plan", "Planned", **own)
    assert (cache / PACKAGE).is_dir(), "its step uses it"
    providers.packed(provider, either_home.directory / "mirror", version="1.1.0")
    beside(either_home, 2).run("plan", "Planned", **own)
    assert not (cache / PACKAGE).exists() and (cache / SOURCE / "1.1.0" / platform()).is_dir()
    assert left_in(cache) == []


def test_a_read_only_cache_is_used_for_what_it_has(home, provider, shared):
    own, cache = shared
    first = beside(home, 1)
    first.run("plan", "Planned", **own)
    locked = home.module("locked", PROVIDED)
    shutil.copy(first.work / "work/source" / ".terraform.lock.hcl", locked)
    nothing = home.directory / "nothing"
    nothing.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a read-only mount needs root")
    mounted = ["unshare", "--mount", "sh", "-ec", 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; exec "$@"',
               "sh"]
    for number, at in ((2, cache), (3, nothing)):
        one = beside(home, number, locked)
        own["providers"]["pluginCacheDirectory"] = str(at)
        one.home = Mounted(home, [*mounted, str(at)])
        one.run("plan", "Planned", **own)
    assert left_in(cache) == [] and list(nothing.iterdir()) == []


class Mounted:
    """A home whose programs see another file system."""

    def __init__(self, home, before):
        self.home, self.before = home, before

    def __getattr__(self, name):
        return getattr(self.home, name)

    def popen(self, *args, **kwargs):
        return self.home.popen(*self.before, *args, **kwargs)


def test_a_killed_init_leaves_nothing_half_done_to_the_next_one(home, provider, tmp_path):
    archive = providers.packed(provider, tmp_path / "mirror")
    documents = {f"/{SOURCE}/index.json": {"versions": {"1.0.0": {}}},
                 f"/{SOURCE}/1.0.0.json": {"archives": {platform(): {"url": "simple.zip"}}}}
    stalls, begun, over = [True], threading.Event(), threading.Event()

    class Handler(web.Handler):
        def do_GET(self):
            if self.path in documents:
                return self.answer(200, json.dumps(documents[self.path]).encode(), Content_Type="application/json")
            if not stalls:
                return self.answer(200, archive.read_bytes(), Content_Type="application/zip")
            stalls.clear()
            self.send_response(200)
            self.send_header("Content-Type", "application/zip")
            self.send_header("Content-Length", str(archive.stat().st_size))
            self.end_headers()
            self.wfile.write(archive.read_bytes()[:1000000])
            self.wfile.flush()
            begun.set()
            return over.wait()

    certificate, key = web.self_signed(tmp_path)
    cache = home.directory / "plugins"
    with web.Server(Handler, (certificate, key)) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        own = {"providers": {"networkMirror": f"{url}/", "pluginCacheDirectory": str(cache)},
               "env": {"SSL_CERT_FILE": str(certificate)}}
        killed = beside(home, 1)
        process = killed.start("plan", **own)
        assert begun.wait(dayfly.DEADLINE)
        tool = int((killed.work / "tofu.pid").read_text().split()[0])
        process.kill()
        os.kill(tool, signal.SIGKILL)
        process.wait()
        wait_for("the tool to end", lambda: not dayfly.alive(tool))
        assert left_in(cache) == [] and not (cache / PACKAGE).exists()
        beside(home, 2).run("plan", "Planned", **own)
        over.set()
    assert left_in(cache) == []
    assert [p.read_bytes() for p in (cache / PACKAGE).iterdir()] == [pathlib.Path(provider).read_bytes()]
