"""dayfly mirror: the providers of modules, from a registry into a directory that both tools read."""

import hashlib
import json
import re
import signal
import threading

import pytest

from lib import dayfly, providers, web
from lib.providers import Registry, platform
from lib.steps import Steps

SOURCE = f"{Registry.HOST}/test/simple"
OTHER = "plan9_amd64"
INSIDE = "registry.example"  # the same registry, where the service asks it
MODULE = f"""
terraform {{
  required_providers {{
    simple = {{ source = "{SOURCE}" }}
  }}
}}
resource "simple_resource" "r" {{ value = "x" }}
"""


@pytest.fixture
def registry(tmp_path):
    """Two versions for this platform and one other."""
    archive = providers.packed(dayfly.tool("provider"), tmp_path / "made").read_bytes()
    small = {("simple", v, OTHER): b"PK\x05\x06" + bytes(18) for v in ("1.0.0", "2.0.0")}
    pair = web.self_signed(tmp_path, alternatives=f"DNS:localhost,DNS:{INSIDE}")
    with Registry(pair, {("simple", v, platform()): archive for v in ("1.0.0", "2.0.0")} | small) as running:
        running.environment = running.client(tmp_path)
        yield running


def lock(registry, version="1.0.0", damaged=False):
    """A lock file, as tofu makes it of what the registry has."""
    hashes = [f"zh:{hashlib.sha256(a + b'!' * damaged).hexdigest()}" for (_, v, _), a in registry.archives.items()
              if v == version]
    listed = "".join(f'    "{h}",\n' for h in hashes)
    return f'provider "{SOURCE}" {{\n  version = "{version}"\n  hashes = [\n{listed}  ]\n}}\n'


def locked(home, registry, name="locked", **kwargs):
    module = home.module(name, MODULE)
    (module / ".terraform.lock.hcl").write_text(lock(registry, **kwargs))
    return module


def mirror(home, registry, *args, code=0):
    return home.dayfly("mirror", *args, code=code, env=registry.environment)


def test_the_providers_of_modules_become_a_mirror(home, registry, terraform, tmp_path):
    place, free = home.directory / "providers", home.module("free", MODULE)
    wanted = [place, locked(home, registry), free, "--platform", platform(), "--platform", OTHER]
    said = mirror(home, registry, *wanted)
    assert f"{SOURCE} 1.0.0 {platform()}: added, " in said.stderr
    assert f"{free}: has no .terraform.lock.hcl" in said.stderr
    assert "4 added, 0 there, 0 failed" in said.stdout
    assert sorted(p.name for p in free.iterdir()) == ["main.tf"], "nothing is written into a module"
    index, version = ((place / SOURCE / name) for name in ("index.json", "1.0.0.json"))
    assert json.loads(index.read_text()) == {"versions": {"1.0.0": {}, "2.0.0": {}}}
    for name, entry in json.loads(version.read_text())["archives"].items():
        archive = registry.archives["simple", "1.0.0", name]
        assert (place / SOURCE / entry["url"]).read_bytes() == archive
        assert entry["hashes"] == [f"zh:{hashlib.sha256(archive).hexdigest()}"]
    assert sorted(p.name for p in place.iterdir()) == [".dayfly.lock", Registry.HOST]
    sent = len(registry.sent)
    assert "0 added, 2 there, 0 failed" in mirror(home, registry, *wanted[:2], *wanted[3:]).stdout
    assert len(registry.sent) == sent, "what is there is not downloaded again"
    for user in (home, dayfly.Home(tmp_path / "other", terraform)):
        Steps(user, MODULE).run("plan", "Planned", providers={"filesystemMirror": str(place)})


def test_a_package_that_was_not_locked_is_named_and_left_out(home, registry):
    place = home.directory / "providers"
    said = mirror(home, registry, place, locked(home, registry, damaged=True), locked(home, registry, "good", version="2.0.0"),
                  code=1)
    assert f"{SOURCE} 1.0.0 {platform()}: failed: its SHA-256 is " in said.stderr
    assert f"providers lock -platform={platform()}" in said.stderr
    assert "1 added, 0 there, 1 failed" in said.stdout
    assert sorted(p.name for p in (place / SOURCE).glob("[!.]*")) == [
        "2.0.0.json", "index.json", f"terraform-provider-simple_2.0.0_{platform()}.zip"]


def test_a_lock_file_with_checksums_of_contents_alone_is_enough(home, registry, tmp_path):
    place, module = home.directory / "providers", home.module("module", MODULE)
    package = providers.unpacked(dayfly.tool("provider"), tmp_path / "unpacked")
    (module / ".terraform.lock.hcl").write_text(
        f'provider "{SOURCE}" {{\n  version = "1.0.0"\n  hashes = ["h1:no",\n    "{providers.h1(package)}",\n  ]\n}}\n')
    assert "1 added" in mirror(home, registry, place, module).stdout
    said = mirror(home, registry, place, module, "--platform", OTHER, code=1).stderr
    assert f"{SOURCE} 1.0.0 {OTHER}: failed: " in said


def test_the_words_of_the_tool_have_no_remains_of_its_colours(home, registry):
    registry.archives.clear()
    for module in (locked(home, registry), home.module("free", MODULE)):
        said = mirror(home, registry, home.directory / "providers", module, code=1).stderr
        assert "exit code 1" in said and "[0m" not in said and "[31m" not in said, said


def test_an_interrupted_mirror_is_continued(home, registry):
    place, began, over = home.directory / "providers", threading.Event(), threading.Event()
    modules = [locked(home, registry), locked(home, registry, "second", version="2.0.0")]
    registry.stall = ("/files/simple/2.0.0/", began, over)
    process = home.popen(dayfly.DAYFLY, "mirror", place, *modules, env=registry.environment, stdout=-1, stderr=-1)
    assert began.wait(dayfly.DEADLINE)
    assert "another dayfly mirror writes to" in mirror(home, registry, place, *modules, code=1).stderr
    process.send_signal(signal.SIGINT)
    process.communicate()
    registry.stall = None
    over.set()
    assert "1 added, 1 there, 0 failed" in mirror(home, registry, place, *modules).stdout
    assert [s[1] for s in registry.sent] == ["1.0.0", "2.0.0"]
    assert not (place / ".stage").exists()


def test_what_cannot_be_mirrored_is_refused_before_anything_is_made(home, registry, tmp_path):
    module, place, empty = home.module("module", MODULE), home.directory / "providers", tmp_path / "empty"
    empty.mkdir()
    for words, said in (((empty,), "has no configuration"), ((module, "--platform", "linux"), "linux_amd64"),
                        ((home.directory / "nowhere",), "nowhere")):
        assert said in mirror(home, registry, place, *words, code=1 if "nowhere" in said else 3).stderr
    (home.bin / "tofu").unlink()
    environment = registry.environment | {"PATH": str(home.bin)}
    said = home.dayfly("mirror", place, module, "--tool", "opentofu", code=1, env=environment).stderr
    assert "opentofu is not in PATH" in said
    assert not place.exists()


# ---- the service ----


@pytest.fixture
def filled(home, registry):
    """(a mirror, a module whose providers it has)"""
    place, module = home.directory / "providers", locked(home, registry)
    mirror(home, registry, place, module)
    return place, module


def test_steps_of_a_service_without_tls_read_the_mirror_themselves(home, filled):
    place, module = filled
    with dayfly.Server(home, "--set", f"providers.mirror.directory={place}"):
        home.dayfly("run", module, "--auto-approve")
        assert "Installing test/simple v1.0.0" in home.dayfly("logs", "locked-1").stdout


class Mirrored(dayfly.Server):
    """A service with TLS that is the mirror of its steps."""

    def __init__(self, home, **mirror):
        port = dayfly.free_port()
        super().__init__(home, listen=f"127.0.0.1:{port}", config=json.dumps({
            "server": {"tls": {"names": ["localhost"]}}, "advertiseUrl": f"https://localhost:{port}",
            "providers": {"mirror": mirror}}))

    def start(self, prefix=()):
        self.home.env["DAYFLY_CA_FILE"] = str(self.data / "ca.pem")
        return super().start(prefix)


@pytest.mark.parametrize("runtime", ["opentofu", "terraform"])
def test_steps_take_providers_from_the_service_at_a_url_that_no_log_shows(home, filled, terraform, runtime):
    place, module = filled
    (home.bin / "terraform").symlink_to(terraform)
    with Mirrored(home, directory=str(place)):
        home.dayfly("run", module, "--auto-approve", "--tool", runtime)
        for archive in place.rglob("*.zip"):
            archive.unlink()
        failed = home.dayfly("run", module, "--action", "destroy", "--auto-approve", code=1)
    said = failed.stdout + failed.stderr
    assert runtime == "terraform" or f"/{SOURCE}/" in said, "tofu names the URL of what it did not get"
    assert not re.search("/providers/[0-9a-f]{64}", said)


def test_pods_get_a_mirror_over_tls_only_and_steps_one_mirror_only(home):
    for more, said in (("engines=job", "needs server.tls"), ("providers.networkMirror=https://m/", "steps get one mirror")):
        result = home.dayfly("serve", "--set", "providers.mirror.directory=/srv/providers", "--set", more, code=3)
        assert "providers.mirror.directory" in result.stderr and said in result.stderr
    result = home.dayfly("serve", "--set", "providers.mirror.registries=registry.example", code=3)
    assert "needs providers.mirror.directory" in result.stderr


@pytest.fixture
def pulling(home, registry, tmp_path):
    """(a service whose mirror is empty and may ask the registry, the text of a module)"""
    with web.Tunnel(registry.address) as tunnel:
        home.env.update(https_proxy=tunnel.url, no_proxy="localhost,127.0.0.1")
        with Mirrored(home, directory=str(tmp_path / "pulled"), registries=[INSIDE],
                      caFile=registry.environment["SSL_CERT_FILE"]):
            yield tmp_path / "pulled" / INSIDE / "test/simple", MODULE.replace(Registry.HOST, INSIDE), tunnel


def test_a_full_mirror_takes_no_more_and_says_how_full_it_is(home, registry, tmp_path):
    place, text = tmp_path / "pulled", MODULE.replace(Registry.HOST, INSIDE)
    size = max(len(a) for a in registry.archives.values())
    limit = size // 2**20 + 1  # room for one archive of the two
    place.mkdir()
    (place / "other.zip").write_bytes(b"x" * (limit * 2**20 - size + 1))
    with web.Tunnel(registry.address) as tunnel:
        home.env.update(https_proxy=tunnel.url, no_proxy="localhost,127.0.0.1")
        with Mirrored(home, directory=str(place), registries=[INSIDE], maxMiB=limit,
                      caFile=registry.environment["SSL_CERT_FILE"]) as server:
            assert "InitFailed" in home.dayfly("plan", home.module("m", text), code=1).stdout
            assert f"more than the {limit} MiB of providers.mirror.maxMiB" in server.log.read_text()
            assert [p.name for p in place.rglob("*.zip")] == ["other.zip"] and not list(place.rglob("*.part"))
            usage = json.loads(home.dayfly("storage", "usage", "-o", "json").stdout)["providers"]
            assert usage == {"count": 1, "bytes": limit * 2**20 - size + 1, "limit": limit * 2**20}
            assert "Mirror of providers: 1, " in home.dayfly("storage", "usage").stdout
            (place / "other.zip").unlink()
            home.dayfly("plan", home.module("n", text))


def test_what_the_mirror_has_not_is_downloaded_once_and_kept(home, registry, pulling):
    place, text, _ = pulling
    modules = [home.module(f"m{n}", text) for n in range(4)]
    running = [home.popen(dayfly.DAYFLY, "plan", module, stdout=-1, stderr=-2) for module in modules]
    for process in running:
        said = process.communicate(timeout=dayfly.DEADLINE * 2)[0]
        assert process.returncode == 0, said
    assert registry.sent == [("simple", "2.0.0", platform())]
    name = f"terraform-provider-simple_2.0.0_{platform()}.zip"
    archive = registry.archives["simple", "2.0.0", platform()]
    assert (place / name).read_bytes() == archive
    assert json.loads((place / "index.json").read_text()) == {"versions": {"2.0.0": {}}}
    assert json.loads((place / "2.0.0.json").read_text())["archives"][platform()] == {
        "hashes": [f"zh:{hashlib.sha256(archive).hexdigest()}"], "url": name}
    assert not list(place.glob(".*.part"))
    registry.stop()
    home.dayfly("plan", home.module("later", text))


def test_an_archive_that_is_not_the_registry_s_is_not_kept(home, registry, pulling):
    place, text, _ = pulling
    registry.lies = b"!"
    home.dayfly("plan", home.module("m", text), code=1)
    assert [p for p in place.iterdir() if not p.name.endswith(".lock")] == []


def test_a_registry_that_the_operator_did_not_name_is_not_asked(home, pulling):
    _, text, tunnel = pulling
    home.dayfly("plan", home.module("m", text.replace(INSIDE, "other.example")), code=1)
    assert tunnel.hosts == []
    home.dayfly("plan", home.module("n", text))
    assert set(tunnel.hosts) == {f"{INSIDE}:443"}


def test_the_doctor_of_a_module_asks_the_registries_of_its_providers(home, registry):
    module, here = home.module("module", MODULE), registry.url.removeprefix("https://")
    (module / ".terraform.lock.hcl").write_text(lock(registry).replace(Registry.HOST, here) + lock(registry).replace(Registry.HOST, "registry.invalid"))

    def doctor(*args):
        found = json.loads(home.dayfly("doctor", module, "-o", "json", *args, env=registry.environment).stdout)["findings"]
        told = [(f["level"], f["message"].partition(",")[0]) for f in found if f["check"] == "module"][1:]
        return [(level, text) for level, text in told if "tfrc" not in text]  # that of the test's registry
    assert doctor() == [("ok", here), ("warn", "registry.invalid")]
    assert doctor("--set", f"providers.filesystemMirror={home.directory}") == [], "with a mirror none is asked"
    (module / ".terraform.lock.hcl").unlink()
    (module / "main.tf").write_text('resource "terraform_data" "it" {}\n')
    assert doctor() == [], "nothing is downloaded for it"
