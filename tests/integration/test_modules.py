"""Modules on the host of the source get its credentials where the executor says so, and no other host does."""

import json
import os
import pathlib
import tempfile
import types

import pytest

from lib import git_servers
from lib.git_servers import Repository

PASSWORD = "correct-horse-battery"
MODULE = 'resource "terraform_data" "m" {}\n'
# In place of the tool: says what a program of the module would find, then is the tool.
SEARCH = r"""#!/bin/sh
(env; grep -rl 'correct-horse-batter[y]\|PRIVATE KE[Y]' "$HOME/.."; echo searched) 2>&1 | sed "s/^/$1: /" >&2
exec {real} "$@"
"""


@pytest.fixture(scope="module")
def world():
    """A directory that other users may read, for repositories that an sshd of another user serves."""
    with tempfile.TemporaryDirectory(prefix="dayfly-modules-") as directory:
        os.chmod(directory, 0o755)
        yield pathlib.Path(directory)


@pytest.fixture(scope="module")
def authority(world):
    return git_servers.Authority(world / "ca")


@pytest.fixture(scope="module")
def https(world, authority):
    server = git_servers.HttpsServer(world, authority, password=PASSWORD)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ssh():
    server = git_servers.SshServer(tempfile.gettempdir())
    yield server
    server.stop()


@pytest.fixture(scope="module")
def other(world, authority):
    """Another host, which has the same password and the same certificate."""
    server = git_servers.HttpsServer(world, authority, password=PASSWORD)
    yield server
    server.stop()


@pytest.fixture(params=["https", "ssh"])
def host(request, world, authority):
    """A host of both repositories: the URL of one, and the keys of the secret for it."""
    server = request.getfixturevalue(request.param)
    if request.param == "https":
        return types.SimpleNamespace(url=lambda name: f"{server.url}/{name}", secret={
            "username": "git", "password": PASSWORD, "ca.crt": authority.ca.read_text()})
    return types.SimpleNamespace(url=lambda name: server.url(f"{world}/{name}"),
                                 secret={"ssh-privatekey": server.key, "known_hosts": server.known_hosts})


def executor(home, world, url, modules, secret, **ref):
    """Creates the executor net of a repository whose module calls these."""
    root = Repository(world / f"{home.directory.parent.name}.git")
    root.commit({"main.tf": "".join(f'module "{name}" {{ source = "git::{source}?ref=main" }}\n'
                                    for name, source in modules.items())})
    for key, value in secret.items():
        home.dayfly("secret", "set", "repo", key, input=value)
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"}, "spec": {
        "runtime": {"name": home.runtime}, "source": {"url": url(root.path.name), "branch": "main",
                                                      "secretRef": {"name": "repo", **ref}}}}
    document["spec"].update(ref.pop("spec", {}))
    document["spec"]["source"]["secretRef"].pop("spec", None)
    home.dayfly("create", "-f", "-", input=json.dumps(document))


def failed(home):
    home.dayfly("run", "net", "--auto-approve", code=1)
    status = home.json("get", "run", home.json("get", "executor", "net")["status"]["lastRun"]["name"])["status"]
    assert status["reason"] == "InitFailed", status
    return status["message"]


def unauthorized(server):
    """The server was asked for something, and got no credentials."""
    assert server.requests
    return all("Authorization" not in headers for _, _, headers in server.requests)


def test_modules_on_the_host_of_the_source_get_its_credentials_only_in_init(either_home, world, host):
    home = either_home
    name = f"m-{home.directory.parent.name}.git"
    Repository(world / name).commit({"main.tf": MODULE})
    executor(home, world, host.url, {"m": host.url(name)}, host.secret, forModules=True)
    tool = home.bin / ("tofu" if home.runtime == "opentofu" else "terraform")
    real = tool.resolve()
    tool.unlink()
    tool.write_text(SEARCH.format(real=real))
    tool.chmod(0o755)
    home.dayfly("run", "net", "--auto-approve")
    lines = home.dayfly("logs", "net-1").stdout.splitlines()
    found = {c: "\n".join(line for line in lines if line.startswith(f"{c}: ")) for c in ("init", "plan", "apply")}
    assert "secret/modules/" in found["init"] and "searched" in found["init"]
    for command in ("plan", "apply"):
        assert "searched" in found[command]
        for word in ("askpass", "ASKPASS", "GIT_SSH", "sslCAInfo", "secret/modules"):
            assert word not in found[command], "a program of the module could find what was for init alone"


def test_where_the_executor_does_not_say_so_the_message_names_the_way(home, world, host):
    name = f"m-{home.directory.parent.name}.git"
    Repository(world / name).commit({"main.tf": MODULE})
    executor(home, world, host.url, {"m": host.url(name)}, host.secret)
    message = failed(home)
    assert "a module on the host of the source was not fetched" in message
    assert "source.secretRef.forModules: true" in message
    assert "source.secretRef.forModules: true" in home.dayfly("logs", "net-1").stdout


@pytest.mark.parametrize("way", ["module", "redirect", "submodule"])
def test_no_other_host_gets_the_credentials_of_the_source(home, world, authority, https, other, way):
    other.requests.clear()
    m = Repository(world / f"m-{way}.git")
    pointer = m.commit({"main.tf": MODULE})
    url = f"{https.url}/{m.path.name}"
    if way == "module":
        url = f"{other.url}/{m.path.name}"
    elif way == "redirect":
        https.pages[f"/{m.path.name}/info/refs"] = lambda handler: handler.answer(
            302, b"", Location=f"{other.url}{handler.path}")
    else:
        m.commit({"main.tf": MODULE, "inner": ("160000", pointer),
                  ".gitmodules": f'[submodule "inner"]\n\tpath = inner\n\turl = {other.url}/{m.path.name}\n'})
    # The executor trusts the other host, so that only the helper can keep the password from it.
    executor(home, world, lambda name: f"{https.url}/{name}", {"m": url},
             {"username": "git", "password": PASSWORD, "ca.crt": authority.ca.read_text()}, forModules=True,
             spec={"environment": [{"name": "GIT_SSL_CAINFO", "value": str(authority.ca)}]})
    assert "forModules" not in failed(home)
    assert unauthorized(other)


def test_the_certificates_of_the_source_are_for_its_host_alone(home, world, authority, https):
    free = git_servers.HttpsServer(world, authority)
    try:
        Repository(world / "free.git").commit({"main.tf": MODULE})
        executor(home, world, lambda name: f"{https.url}/{name}", {"m": f"{free.url}/free.git"},
                 {"username": "git", "password": PASSWORD, "ca.crt": authority.ca.read_text()}, forModules=True)
        assert "verification failed" in failed(home) or "certificate" in failed(home)
        assert not free.requests
    finally:
        free.stop()
