"""Sources of jobs of Terrakube that only a server can give: the repository and its modules over ssh, with a real sshd; what may go over http."""

import os
import pathlib
import tempfile

import pytest

from lib import git_servers, web
from lib.executor import Executor
from lib.redis import Redis
from lib.terrakube import Terrakube


@pytest.fixture
def world():
    with tempfile.TemporaryDirectory(prefix="dayfly-world-") as directory:
        os.chmod(directory, 0o755)
        yield pathlib.Path(directory)


@pytest.fixture
def ssh():
    server = git_servers.SshServer(tempfile.gettempdir())
    yield server
    server.stop()


@pytest.fixture
def executor(home, tmp_path):
    with Redis(tmp_path / "redis") as redis, Terrakube("2.33", redis=redis) as api:
        yield Executor(home, api, redis)
        assert api.faults == []


def test_the_key_of_the_workspace_opens_its_source_and_its_modules(executor, world, ssh):
    module = git_servers.Repository(world / "private.git")
    module.commit({"main.tf": 'output "it" {\n  value = "of the private module"\n}\n'})
    stack = git_servers.Repository(world / "stack.git")
    stack.commit({"stack/main.tf": f'module "p" {{\n  source = "git::{ssh.url(f"{world}/private.git")}"\n}}\n'
                                   'output "it" {\n  value = module.p.it\n}\n'})
    stack.git("tag", "v1.0")
    api = executor.api
    net = api.workspace("net", ssh.url(f"{world}/stack.git"), branch="v1.0", folder="/stack", vcs="SSH~id_ed25519", token=ssh.key)

    def plan(**env):
        job = api.job(net, "terraformPlan")
        step = executor.run(job, TerrakubeEnableColorOutput="false", **env)
        return step.status, executor.output(step)

    status, said = plan()
    assert status == "completed" and "of the private module" in said, said
    assert said.count("the SSH host key of the server of") == 1 and "is accepted" not in said
    hosts = ssh.write("hosts", ssh.known_hosts)
    status, said = plan(DAYFLY_KNOWN_HOSTS=str(hosts))
    assert status == "completed" and "of the private module" in said and "the SSH host key" not in said, said
    stranger = ssh.write("strangers", ssh.known_hosts.split()[0] + " " + " ".join((ssh.directory / "other.pub").read_text().split()[:2]) + "\n")
    status, said = plan(DAYFLY_KNOWN_HOSTS=str(stranger))
    assert status == "failed" and "is not the pinned one" in said, said
    assert "PRIVATE KEY" not in said


class Asking(web.Handler):
    """Asks for credentials, and notes what it gets."""

    def do_GET(self):
        self.server.owner.seen.append(self.headers.get("Authorization"))
        self.answer(401, WWW_Authenticate='Basic realm="x"')


@pytest.fixture
def stranger():
    """A host that is not loopback as dayfly counts it."""
    with web.Server(Asking, host="127.0.0.2") as server:
        server.seen = []
        yield server


def test_a_token_goes_over_http_only_where_an_operator_allows_it(executor, stranger):
    api = executor.api
    net = api.workspace("net", f"{stranger.url}/a/b.git", vcs="GITHUB", token="ghs-test-only-token")
    step = executor.run(api.job(net, "terraformPlan"))
    assert step.status == "failed" and "use https" in executor.output(step) and stranger.seen == [], executor.output(step)
    step = executor.run(api.job(net, "terraformPlan"), DAYFLY_TERRAKUBE_HTTP_CREDENTIALS="true")
    assert step.status == "failed" and any(seen and seen.startswith("Basic ") for seen in stranger.seen)


def test_the_token_of_the_tools_repository_does_not_go_over_http(executor, stranger):
    api = executor.api
    env = {"TERRAKUBE_PRIVATE_EXTENSION_REPO_TYPE": "GITHUB", "TERRAKUBE_PRIVATE_EXTENSION_REPO_TOKEN": "ghs-test-only-token"}
    command = {"runtime": "BASH", "script": "echo ran", "priority": 1, "before": False, "after": False, "verbose": False, "beforeInit": False}
    net = api.workspace("net", executor.source(text=""), environment=env)
    step = executor.run(api.job(net, ("customScripts", {"commandList": [command]})), TerrakubeToolsRepository=f"{stranger.url}/tools.git")
    assert step.status == "completed" and "use https" in executor.output(step) and stranger.seen == [], executor.output(step)
