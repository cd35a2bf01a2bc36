"""dayfly-runner alone: where it gets tools from."""

import contextlib
import http.server
import json
import os
import shutil
import threading
import zipfile
from hashlib import sha256

import pytest

from lib import web
from lib.providers import platform
from lib.steps import Steps
from lib.tool_mirror import ToolMirror


@pytest.fixture
def mirror(tmp_path, tofu):
    return ToolMirror(tmp_path / "mirror", tofu)


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
