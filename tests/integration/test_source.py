"""Sources for real: directories, git over file, https and ssh, archives; the honest and the hostile."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
import time
import types
import zipfile

import pytest

from lib import dayfly, git_servers, hostile_archives
from lib.git_servers import Repository, sh

FETCH = dayfly.BUILD / "tools" / "fetch_source"
PASSWORD = "correct-horse-battery"
MODULE = {"main.tf": 'resource "terraform_data" "x" {}\n', "net/main.tf": "# net\n", "net/run.sh": ("100755", "#!/bin/sh\n")}
ABSENT = "0123456789" * 4


def snapshot(directory):
    """Everything that can be seen of a tree, to prove that it was left alone."""
    seen = []
    for path in sorted(pathlib.Path(directory).rglob("*")):
        st = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        seen.append((str(path), st.st_mode, st.st_mtime_ns, content))
    return seen


def files_of(directory):
    """{path: content} of the regular files and links below, without git's own."""
    found = {}
    for path in sorted(pathlib.Path(directory).rglob("*")):
        name = path.relative_to(directory)
        if ".git" not in name.parts and not path.is_dir():
            found[str(name)] = path.read_bytes()
    return found


class Work:
    """A place to fetch into, with a canary beside it."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.checkout, self.private = self.directory / "checkout", self.directory / "private"
        self.canary = self.directory / "canary"
        self.canary.mkdir(parents=True)
        (self.canary / "file").write_text("alive")
        (self.canary / "link").symlink_to("file")
        self.before = snapshot(self.canary)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        self.env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})

    def start(self, source, planned=None, env=None):
        for directory in (self.checkout, self.private):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(mode=0o700)
        document = self.directory / "source.json"
        document.write_text(json.dumps(source))
        return subprocess.Popen([str(a) for a in (FETCH, document, self.checkout, self.private, *filter(None, [planned]))],
                                env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, log = process.communicate(timeout=dayfly.DEADLINE)
        assert out, log
        result = types.SimpleNamespace(**json.loads(out), ok=process.returncode == 0, log=log,
                                       files=files_of(self.checkout))
        assert list(self.private.iterdir()) == [], "credentials were left"
        assert snapshot(self.canary) == self.before, "the canary was touched"
        return result

    def fetch(self, url, planned=None, env=None, **members):
        return self.finish(self.start({"url": url, **members}, planned, env))

    def fetch_ok(self, *args, **kwargs):
        result = self.fetch(*args, **kwargs)
        assert result.ok, result.message
        return result

    def refused(self, *args, reason="SourceRefused", says="", **kwargs):
        result = self.fetch(*args, **kwargs)
        assert not result.ok, "it was taken"
        assert (result.reason, says in result.message) == (reason, True), f"{result.reason}: {result.message}"
        assert list(self.checkout.iterdir()) == [], "something was left in the checkout"
        return result


@pytest.fixture
def work(tmp_path):
    return Work(tmp_path / "work")


@pytest.fixture(scope="module")
def world():
    """A directory that other users may read, for repositories that an sshd of another user serves."""
    with tempfile.TemporaryDirectory(prefix="dayfly-world-") as directory:
        os.chmod(directory, 0o755)
        yield pathlib.Path(directory)


@pytest.fixture(scope="module")
def authority(world):
    return git_servers.Authority(world / "ca")


@pytest.fixture(scope="module")
def https(world, authority):
    server = git_servers.HttpsServer(world, authority, user="git", password=PASSWORD)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ssh():
    server = git_servers.SshServer(tempfile.gettempdir())
    yield server
    server.stop()


@pytest.fixture(scope="module")
def repository(world):
    """main, a branch, a tag, an annotated tag; main has moved on since."""
    r = Repository(world / "module.git")
    r.first = r.commit(MODULE)
    r.git("tag", "light")
    r.git("tag", "-a", "-m", "first", "v1.0")
    r.second = r.commit({**MODULE, "new.tf": "# new\n"})
    r.side = r.commit({"side.tf": "# side\n"}, branch="team/side")
    return r


@pytest.fixture(params=["file", "https", "ssh"])
def remote(request, world, authority):
    """url(name) and members of a source for each way to a repository of the world."""
    if request.param == "file":
        return types.SimpleNamespace(url=lambda name: f"file://{world}/{name}", members={})
    server = request.getfixturevalue(request.param)
    if request.param == "https":
        credentials = {"username": "git", "password": PASSWORD, "caCertificate": authority.ca.read_text()}
        return types.SimpleNamespace(url=lambda name: f"{server.url}/{name}", members={"credentials": credentials})
    credentials = {"sshPrivateKey": server.key, "knownHosts": server.known_hosts}
    return types.SimpleNamespace(url=lambda name: server.url(f"{world}/{name}"), members={"credentials": credentials})


def credentials_of(https, authority, **more):
    return {"username": "git", "password": PASSWORD, "caCertificate": authority.ca.read_text(), **more}


# ---- the tree digest ----


def digest_of(directory):
    """The rule of runner/source/digest.c, written once more."""
    total = hashlib.sha256(b"dayfly-tree-1\n")

    def walk(path, prefix):
        for name in sorted(os.listdir(path), key=os.fsencode):
            if name in (".git", ".terraform"):
                continue
            here, shown = path / name, os.fsencode(prefix + name)
            mode = here.lstat().st_mode
            if stat.S_ISDIR(mode):
                total.update(b"d 0 " + shown + b"\0")
                walk(here, prefix + name + "/")
                continue
            content = os.fsencode(os.readlink(here)) if stat.S_ISLNK(mode) else here.read_bytes()
            kind = "l" if stat.S_ISLNK(mode) else "x" if mode & stat.S_IXUSR else "f"
            total.update(f"{kind} {len(content)} ".encode() + shown + b"\0" + content)

    walk(pathlib.Path(directory), "")
    return total.hexdigest()


def test_the_same_tree_has_the_same_digest_however_it_came(work, world, repository, tmp_path):
    plain = tmp_path / "module"
    sh("git", "clone", "-q", "-b", "v1.0", "-c", "advice.detachedHead=false", repository.path, plain)
    (plain / "terraform.tfstate").write_text("{}")
    directory = work.fetch_ok(f"file://{plain}")
    assert directory.treeDigest == digest_of(work.checkout)
    shutil.rmtree(plain / ".git")
    (plain / "terraform.tfstate").unlink()
    found = {"directory": directory.treeDigest, "git": work.fetch_ok(f"file://{repository.path}", tag="v1.0").treeDigest}
    for name, kind in (("tar.gz", "gztar"), ("zip", "zip")):
        archive = shutil.make_archive(str(tmp_path / "module-1.0"), kind, tmp_path, "module")
        found[name] = work.fetch_ok(f"file://{archive}").treeDigest
    assert len(set(found.values())) == 1, found


# ---- git, honest ----


def test_every_kind_of_ref_over_every_transport(work, remote, repository):
    url = remote.url("module.git")
    cases = [({"branch": "main"}, repository.second), ({"branch": "team/side"}, repository.side),
             ({"tag": "light"}, repository.first), ({"tag": "v1.0"}, repository.first),
             ({"commit": repository.first}, repository.first)]
    for ref, commit in cases:
        result = work.fetch_ok(url, **ref, **remote.members)
        assert result.commit == commit, ref
        assert result.treeDigest == digest_of(work.checkout)
        assert ("main.tf" in result.files) == (commit != repository.side)
        assert f"dayfly: fetching {url}, " in result.log
        depth = sh("git", "-C", work.checkout, "rev-list", "--count", "HEAD")
        assert depth == "1", "more than one commit was fetched"
    result = work.fetch_ok(url, branch="main", folder="net", **remote.members)
    assert result.moduleDir == str(work.checkout / "net")
    assert os.access(work.checkout / "net/run.sh", os.X_OK)


def test_a_name_is_the_branch_and_else_the_tag(work, remote, repository):
    url = remote.url("module.git")
    assert work.fetch_ok(url, ref="main", **remote.members).commit == repository.second
    result = work.fetch_ok(url, ref="v1.0", **remote.members)
    assert result.commit == repository.first and f"fetching {url}, branch or tag v1.0" in result.log
    assert work.fetch_ok(url, ref="v1.0", planned=repository.second, **remote.members).commit == repository.second
    work.refused(url, ref="absent", **remote.members, reason="SourceFailed", says="there is no such branch or tag")


def test_the_planned_commit_is_fetched_even_though_the_branch_moved(work, remote, repository):
    result = work.fetch_ok(remote.url("module.git"), planned=repository.first, branch="main", **remote.members)
    assert result.commit == repository.first
    assert "new.tf" not in result.files


def test_an_old_server_that_gives_no_commit_by_id_is_dug_through(work, world, authority, repository):
    server = git_servers.HttpsServer(world, authority, old=True)
    ca = {"credentials": {"caCertificate": authority.ca.read_text()}}
    try:
        r = Repository(world / "old.git")
        first, second, third = (r.commit({"main.tf": f"# {i}\n"}) for i in range(3))
        r.git("tag", "-a", "-m", "x", "v1.0", second)
        url = f"{server.url}/old.git"
        for source in ({"branch": "main"}, {"tag": "v1.0"}, {"commit": first}):
            result = work.fetch_ok(url, planned=first, **source, **ca)
            assert result.commit == first and result.files == {"main.tf": b"# 0\n"}
            assert "searching the history" in result.log
        assert work.fetch_ok(url, commit=third, **ca).commit == third  # a tip is given at once
        # Planned from a branch that was rewritten since: only the tag still leads there.
        r.git("update-ref", "refs/heads/main", r.git("commit-tree", "-m", "other", r.tree({"main.tf": "# other\n"})))
        assert work.fetch_ok(url, planned=first, branch="main", **ca).commit == first
        work.refused(url, planned=third, branch="main", **ca, reason="SourceFailed", says=f"commit {third} is not in")
    finally:
        server.stop()


@pytest.fixture(scope="module")
def forge(world):
    """A long main, a tag beside it, the head of a pull request, and a commit of a fork, which no ref has."""
    r = Repository(world / "forge.git")
    r.old, r.evil = r.commit(MODULE), {**MODULE, "evil.tf": "# evil\n"}
    tree, last = r.git("rev-parse", f"{r.old}^{{tree}}"), r.old
    for _ in range(110):
        last = r.git("commit-tree", "-p", last, "-m", "x", tree)
    r.git("update-ref", "refs/heads/main", last)
    r.git("tag", "-a", "-m", "x", "v9", r.commit({**MODULE, "tagged.tf": ""}, branch="gone"))
    r.tagged = r.git("rev-parse", "v9^{commit}")
    r.git("update-ref", "-d", "refs/heads/gone")
    r.pull = r.git("commit-tree", "-p", last, "-m", "pull", r.tree(r.evil))
    r.git("update-ref", "refs/pull/7/head", r.pull)
    r.fork = r.git("commit-tree", "-p", r.old, "-m", "fork", r.tree(r.evil))
    r.git("config", "uploadpack.allowAnySHA1InWant", "true")
    r.tip = last
    return r


def test_a_commit_must_be_in_a_branch_or_tag_unless_the_executor_allows_any(work, remote, forge):
    url = remote.url("forge.git")
    for commit in (forge.tip, forge.tagged, forge.old):
        assert work.fetch_ok(url, commit=commit, **remote.members).commit == commit
    for commit in (forge.pull, forge.fork, ABSENT):
        work.refused(url, commit=commit, **remote.members, reason="CommitNotInBranch", says="no branch or tag")
    for commit in (forge.pull, forge.fork):
        assert "evil.tf" in work.fetch_ok(url, commit=commit, anyCommit=True, **remote.members).files
    work.refused(url, branch="pull/7/head", **remote.members, reason="SourceFailed", says="there is no such branch")


def test_the_commits_of_a_server_that_leaves_no_files_out_are_searched_as_well(work, forge, https, authority):
    """It ignores the filter, or has one: either way nothing of the commit is fetched before it is found."""
    members = {"credentials": credentials_of(https, authority)}
    for allowed in ("true", "false"):
        forge.git("config", "uploadpack.allowFilter", allowed)
        assert work.fetch_ok(f"{https.url}/forge.git", commit=forge.old, **members).commit == forge.old
        work.refused(f"{https.url}/forge.git", commit=forge.pull, **members, reason="CommitNotInBranch")


def test_a_server_is_not_asked_for_the_commit_that_is_searched(work, forge, https, authority):
    """It would give that of a fork as readily as any."""
    https.bodies.clear()
    work.refused(f"{https.url}/forge.git", commit=forge.fork, credentials=credentials_of(https, authority),
                 reason="CommitNotInBranch")
    asked = [body for body in https.bodies if b"command=fetch" in body]
    assert asked and not any(forge.fork.encode() in body for body in asked)


def test_a_working_copy_gives_what_it_has_checked_out_and_fetched(work, forge, tmp_path):
    """As a CI system makes it: shallow, of a pull request, without a branch."""
    tree = tmp_path / "tree"
    for words in (["init", "-q", str(tree)],
                  ["-C", tree, "fetch", "-q", "--depth=1", f"file://{forge.path}", f"{forge.pull}:refs/remotes/pull/7/merge"],
                  ["-C", tree, "checkout", "-q", "--detach", forge.pull]):
        sh("git", *words)
    assert work.fetch_ok(f"file://{tree}", commit=forge.pull).commit == forge.pull
    sh("git", "-C", tree, "fetch", "-q", "--depth=1", f"file://{forge.path}", forge.tip)
    sh("git", "-C", tree, "checkout", "-q", "--detach", forge.tip)
    assert work.fetch_ok(f"file://{tree}", commit=forge.tip).commit == forge.tip
    assert work.fetch_ok(f"file://{tree}", commit=forge.pull).commit == forge.pull


@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_a_repository_with_sha256_ids_is_read_by_every_kind_of_ref(work, world, authority, old):
    server = git_servers.HttpsServer(world, authority, old=old)
    ca = {"credentials": {"caCertificate": authority.ca.read_text()}}
    try:
        r = Repository(world / f"long-{old}.git", ids="sha256")
        inner = Repository(world / f"inner-{old}.git", ids="sha256")
        pointer = inner.commit({"inner.tf": "# inner\n"})
        first = r.commit(MODULE)
        r.git("tag", "-a", "-m", "x", "v1.0")
        second = r.commit({**MODULE, "inner": ("160000", pointer), ".gitmodules":
                           f'[submodule "inner"]\n\tpath = inner\n\turl = ../inner-{old}.git\n'})
        for url in (f"{server.url}/long-{old}.git", f"file://{r.path}"):
            kind = {"kind": "git", **ca}
            for ref, commit in (({"branch": "main"}, second), ({"tag": "v1.0"}, first), ({"commit": first}, first),
                                ({"ref": "main"}, second), ({"ref": "v1.0"}, first)):
                assert work.fetch_ok(url, **ref, **kind).commit == commit
            assert work.fetch_ok(url, branch="main", planned=first, **kind).commit == first
            assert "inner/inner.tf" in work.fetch_ok(url, branch="main", submodules=True, **kind).files
            work.refused(url, branch="absent", **kind, reason="SourceFailed", says="there is no such branch or tag")
            if not old:
                work.refused(url, commit=ABSENT, **kind, reason="SourceFailed", says=f"commit {ABSENT} cannot be in "
                             f"{url.removeprefix('file://')}, whose commits have 64 digits")
    finally:
        server.stop()


def test_a_commit_that_is_gone_is_named(work, remote, repository):
    work.refused(remote.url("module.git"), planned=ABSENT, branch="main", **remote.members,
                 reason="SourceFailed", says=f"commit {ABSENT} is not in")


def test_a_work_tree_is_taken_at_a_ref_and_not_as_it_lies_there(work, repository, tmp_path):
    tree = tmp_path / "with blank" / "100%"
    sh("git", "clone", "-q", repository.path, tree)
    (tree / "main.tf").write_text("# not committed\n")
    (tree / "new-and-unknown.tf").write_text("# not committed\n")
    result = work.fetch_ok(f"file://{tree}", branch="main")
    assert result.files["main.tf"] == MODULE["main.tf"].encode()
    assert "new-and-unknown.tf" not in result.files
    assert work.fetch_ok(f"file://{tree}").files["main.tf"] == b"# not committed\n"


def test_large_files_stay_pointers(work, world):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1\n"
    r = Repository(world / "lfs.git")
    r.commit({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "x.bin": pointer})
    assert work.fetch_ok(f"file://{r.path}", branch="main").files["x.bin"] == pointer.encode()


# ---- submodules ----


def gitmodules(**modules):
    return "".join(f'[submodule "{name}"]\n\tpath = {name}\n\turl = {url}\n' for name, url in modules.items())


@pytest.fixture(scope="module")
def super_repository(world, repository):
    """super -> lib (relative URL, not at its tip) -> deep."""
    deep = Repository(world / "deep.git")
    deep_commit = deep.commit({"deep.tf": "# deep\n"})
    lib = Repository(world / "lib.git")
    lib_commit = lib.commit({"lib.tf": "# lib\n", ".gitmodules": gitmodules(deep="../deep.git"),
                             "deep": ("160000", deep_commit)})
    lib.commit({"lib.tf": "# later\n"})
    r = Repository(world / "super.git")
    r.commit({**MODULE, ".gitmodules": gitmodules(lib="../lib.git"), "lib": ("160000", lib_commit)})
    return r


def test_submodules_come_only_when_asked_for_and_at_their_commits(work, remote, super_repository):
    url = remote.url("super.git")
    without = work.fetch_ok(url, branch="main", **remote.members)
    assert "lib/lib.tf" not in without.files
    result = work.fetch_ok(url, branch="main", submodules=True, **remote.members)
    assert result.files["lib/lib.tf"] == b"# lib\n"
    assert result.files["lib/deep/deep.tf"] == b"# deep\n"
    assert result.treeDigest == digest_of(work.checkout) != without.treeDigest


def test_submodule_tricks_are_refused(work, world, https, authority, repository):
    trick = Repository(world / "trick.git")
    commit = repository.first
    link = ("160000", commit)

    def section(name="lib", path="lib", url="../module.git", more=""):
        return f'[submodule "{name}"]\n\tpath = {path}\n\turl = {url}\n{more}'

    # What one says, and what the answer names. A file URL lets git see it first or us, never both.
    cases = {
        "url is an option": ({".gitmodules": section(url="--upload-pack=touch${IFS}/tmp/dayfly-evil"), "lib": link}, ""),
        "url runs a program": ({".gitmodules": section(url="ext::touch /tmp/dayfly-evil"), "lib": link}, ""),
        "url is ssh option": ({".gitmodules": section(url="ssh://-oProxyCommand=touch/x"), "lib": link}, ""),
        "url is on this disk": ({".gitmodules": section(url=f"file://{world}/module.git"), "lib": link}, "on this disk"),
        "url is a path": ({".gitmodules": section(url=f"{world}/module.git"), "lib": link}, ""),
        "url has a line feed": ({".gitmodules": section(url='"https://127.0.0.1/x\\ny"'), "lib": link}, ""),
        "path leads out": ({".gitmodules": section(path="../canary"), "lib": link}, ""),
        "path is absolute": ({".gitmodules": section(path="/tmp/dayfly-evil"), "lib": link}, ""),
        "path is an option": ({".gitmodules": section(path="-x"), "-x": link}, ""),
        "path is git's own": ({".gitmodules": section(path=".git/modules"), "lib": link}, ""),
        "path through a link": ({".gitmodules": section(path="l/lib"), "l": ("120000", "../canary"), "lib": link}, ""),
        "name leads out": ({".gitmodules": section(name="../../hooks"), "lib": link}, ""),
        "update runs a program": ({".gitmodules": section(more="\tupdate = !touch /tmp/dayfly-evil\n"), "lib": link}, ""),
        ".gitmodules is a link": ({".gitmodules": ("120000", "modules"), "modules": section(), "lib": link}, ""),
    }
    for name, (files, says) in cases.items():
        trick.commit(files, message=name)
        for url, members in ((f"{https.url}/trick.git", {"credentials": credentials_of(https, authority)}),
                             (f"file://{trick.path}", {})):
            if name in ("url is on this disk", "url is a path") and url.startswith("file:"):
                continue  # which a source on this disk may have
            result = work.fetch(url, branch="main", submodules=True, **members)
            assert not result.ok, f"{name} over {url} was taken"
            assert result.reason == "SourceRefused" and says in result.message, f"{name}: {result.reason} {result.message}"
            assert result.files == {}, name
    assert not os.path.exists("/tmp/dayfly-evil")


def test_credentials_do_not_go_to_the_host_of_a_submodule(work, world, https, authority, repository):
    other = git_servers.HttpsServer(world, authority, user="git", password=PASSWORD)
    try:
        r = Repository(world / "greedy.git")
        r.commit({".gitmodules": gitmodules(lib=f"{other.url}/module.git"), "lib": ("160000", repository.first)})
        work.refused(f"{https.url}/greedy.git", branch="main", submodules=True,
                     credentials=credentials_of(https, authority), reason="SourceFailed", says="requires")
        assert other.requests, "the submodule was never asked for"
        assert not any("Authorization" in headers for _, _, headers in other.requests)
    finally:
        other.stop()


# ---- git, hostile ----


def test_trees_that_reach_out_are_refused(work, world):
    r = Repository(world / "hostile.git")
    config = '[core]\n\thooksPath = hooks\n\tfsmonitor = "touch /tmp/dayfly-evil"\n'
    cases = {
        "link out": {"l": ("120000", "../canary/file"), "main.tf": ""},
        "absolute link": {"l": ("120000", "/etc/passwd")},
        "links that only together lead out": {"top/x": "", "a/b/up": ("120000", "../../top"),
                                              "out": ("120000", "a/b/up/../../canary")},
        "git's own directory": {".git/config": config, "main.tf": ""},
        "git's own directory, other case": {".GIT/config": config},
        "git's own directory below": {"net/.git/config": config},
        "git's own directory by NTFS": {"GIT~1/config": config},
        "dotdot": {"..": ("040000", r.tree({"canary": ""}))},
    }
    for name, files in cases.items():
        r.commit(files, message=name)
        result = work.fetch(f"file://{r.path}", branch="main")
        assert not result.ok and result.reason == "SourceRefused", f"{name}: {vars(result)}"
        assert result.files == {}, name
    assert not os.path.exists("/tmp/dayfly-evil")


def test_a_few_objects_that_unfold_to_millions_of_files_are_not_checked_out(work, world):
    r = Repository(world / "bomb.git")
    tree = r.tree({f"f{i}": "x" for i in range(10)})
    for _ in range(7):
        tree = r.tree({f"d{i}": ("040000", tree) for i in range(10)})
    r.commit({"d": ("040000", tree)})
    work.refused(f"file://{r.path}", branch="main", says="too many files")
    r = Repository(world / "heavy.git")
    heavy = r.tree({f"f{i}": ("100644", "0" * (3 << 20)) for i in range(1)})
    for _ in range(3):
        heavy = r.tree({f"d{i}": ("040000", heavy) for i in range(10)})
    r.commit({"d": ("040000", heavy)})
    work.refused(f"file://{r.path}", branch="main", says="bytes of files")


def test_a_repository_of_another_user_is_read(work, world):
    if os.getuid() != 0:
        pytest.skip("only root can give a repository away")
    r = Repository(world / "theirs.git")
    commit = r.commit(MODULE)
    for path in [r.path, *r.path.rglob("*")]:
        os.chown(path, 65534, 65534)
    assert work.fetch_ok(f"file://{r.path}", branch="main").commit == commit


def test_a_planted_plugin_directory_is_thrown_away(work, world):
    r = Repository(world / "planted.git")
    r.commit({"main.tf": "", ".terraform/modules/modules.json": "{}", "net/.terraform/providers/x": "evil"})
    assert set(work.fetch_ok(f"file://{r.path}", branch="main").files) == {"main.tf"}


def test_nothing_of_the_users_git_setup_counts(work, repository, tmp_path):
    mark = tmp_path / "mark"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-merge"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / hook).chmod(0o755)
    evil = (f"[core]\n\thooksPath = {hooks}\n\tsshCommand = touch {mark}\n\tfsmonitor = touch {mark}\n\taskPass = touch {mark}\n"
            f"[init]\n\ttemplateDir = {tmp_path / 'template'}\n[url \"file:///nowhere\"]\n\tinsteadOf = file://\n")
    (tmp_path / "template" / "hooks").mkdir(parents=True)
    shutil.copy(hooks / "post-checkout", tmp_path / "template" / "hooks")
    (work.directory / ".gitconfig").write_text(evil)
    (tmp_path / "evil").write_text(evil)
    env = {"GIT_CONFIG_GLOBAL": str(tmp_path / "evil"), "GIT_CONFIG_SYSTEM": str(tmp_path / "evil"), "GIT_DIR": str(tmp_path),
           "GIT_TEMPLATE_DIR": str(tmp_path / "template"), "GIT_SSH_COMMAND": f"touch {mark}", "GIT_WORK_TREE": str(tmp_path),
           "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": str(hooks),
           "GIT_EXEC_PATH": str(tmp_path), "GIT_EXTERNAL_DIFF": f"touch {mark}"}
    assert work.fetch_ok(f"file://{repository.path}", branch="main", env=env).commit == repository.second
    assert not mark.exists()


# ---- what goes wrong, and what is said about it ----


def test_mistakes_over_https_are_named_with_the_way_out(work, https, authority, repository):
    url = f"{https.url}/module.git"
    right = credentials_of(https, authority)
    wrong = {**right, "password": "wrong-" + PASSWORD}
    cases = [
        ({"credentials": wrong}, "SourceFailed", "rejects the user name and password"),
        ({"credentials": {"caCertificate": right["caCertificate"]}}, "SourceFailed", "name a secret with username and"),
        ({"credentials": {k: v for k, v in right.items() if k != "caCertificate"}}, "SourceRefused", "put its CA as ca.crt"),
        ({"credentials": right, "url": f"{https.url}/absent.git"}, "SourceFailed", "there is no git repository"),
        ({"credentials": right, "branch": "absent"}, "SourceFailed", "couldn't find remote ref refs/heads/absent"),
        ({"credentials": right, "branch": None, "tag": "main"}, "SourceFailed", "refs/tags/main"),
        ({"credentials": right, "url": "https://127.0.0.1:1/x.git"}, "SourceFailed", "cannot be reached"),
    ]
    for members, reason, says in cases:
        source = {"url": url, "branch": "main", **members}
        result = work.refused(source.pop("url"), **source, reason=reason, says=says)
        assert PASSWORD not in result.message + result.log


def test_mistakes_over_ssh_are_named_with_the_way_out(work, world, ssh, repository):
    url = ssh.url(f"{world}/module.git")
    stranger = ssh.known_hosts.split()[0] + " " + " ".join((ssh.directory / "other.pub").read_text().split()[:2]) + "\n"
    cases = [
        ({}, "SourceFailed", "put one as ssh-privatekey into a secret"),
        ({"sshPrivateKey": ssh.key}, "SourceFailed", "the host key of tester@127.0.0.1"),
        ({"sshPrivateKey": ssh.key, "knownHosts": "example.org " + ssh.known_hosts.split(" ", 1)[1]}, "SourceRefused",
         "not among the pinned ones"),
        ({"sshPrivateKey": ssh.key, "knownHosts": stranger}, "SourceRefused", "is not the pinned one"),
        ({"sshPrivateKey": ssh.other_key, "knownHosts": ssh.known_hosts}, "SourceFailed", "rejects the key"),
        ({"sshPrivateKey": "no key", "knownHosts": ssh.known_hosts}, "SourceFailed", "cannot be read"),
    ]
    for credentials, reason, says in cases:
        work.refused(url, branch="main", credentials=credentials, reason=reason, says=says)
    good = {"sshPrivateKey": ssh.key.rstrip("\n"), "knownHosts": ssh.known_hosts}
    work.refused(ssh.url(f"{world}/absent.git"), branch="main", credentials=good, reason="SourceFailed",
                 says="there is no git repository")
    assert work.fetch_ok(url, branch="main", credentials=good).commit == repository.second


def test_a_server_of_any_host_key_is_taken_only_when_told_and_then_said(work, world, ssh, repository):
    url, key = ssh.url(f"{world}/module.git"), {"sshPrivateKey": ssh.key}
    result = work.fetch_ok(url, branch="main", credentials={**key, "acceptsHostKeys": True})
    assert result.commit == repository.second and "no known hosts are configured: whichever key" in result.log
    stranger = ssh.known_hosts.split()[0] + " " + " ".join((ssh.directory / "other.pub").read_text().split()[:2]) + "\n"
    work.refused(url, branch="main", credentials={**key, "acceptsHostKeys": True, "knownHosts": stranger},
                 reason="SourceRefused", says="is not the pinned one")


def test_a_private_directory_with_a_blank_and_a_percent_sign_serves_ssh(tmp_path, world, ssh, repository):
    work = Work(tmp_path / "my %h data")
    good = {"sshPrivateKey": ssh.key, "knownHosts": ssh.known_hosts}
    assert work.fetch_ok(ssh.url(f"{world}/module.git"), branch="main", credentials=good).commit == repository.second


def test_secrets_are_in_no_argv_and_no_environment(work, world, ssh, https, authority, repository, tmp_path):
    """A `git` and an `ssh` that write down how they were called, in front of the real ones."""
    record = tmp_path / "record"
    (tmp_path / "bin").mkdir()
    for program in ("git", "ssh"):
        spy = tmp_path / "bin" / program
        spy.write_text(f"#!/bin/sh\n{{ echo \"$0 $*\"; env; }} >>{record}\n"
                       f"exec {shutil.which(program)} \"$@\"\n")
        spy.chmod(0o755)
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "STRAY_TOKEN": "stray-secret", "TF_VAR_x": "stray-secret"}
    credentials = credentials_of(https, authority, sshPrivateKey=ssh.key, knownHosts=ssh.known_hosts)
    work.fetch_ok(f"{https.url}/module.git", branch="main", credentials=credentials, env=env)
    work.fetch_ok(ssh.url(f"{world}/module.git"), branch="main", credentials=credentials, env=env)
    seen = record.read_text()
    assert seen.count("/bin/git ") >= 8 and "/bin/ssh " in seen
    for secret in (PASSWORD, "PRIVATE KEY", ssh.key.split("\n")[1], "stray-secret", "BEGIN CERTIFICATE"):
        assert secret not in seen


def test_a_fetch_that_hangs_ends_when_it_is_told_to(work, world, authority):
    server = git_servers.HttpsServer(world, authority)
    asked = []

    def hang(handler):
        asked.append(1)
        time.sleep(dayfly.DEADLINE)

    server.pages["/slow.git/info/refs"] = hang
    server.pages["/slow.tar.gz"] = hang
    ca = {"caCertificate": authority.ca.read_text()}
    try:
        for url, members in ((f"{server.url}/slow.git", {"branch": "main"}), (f"{server.url}/slow.tar.gz", {"sha256": "0" * 64})):
            asked.clear()
            process = work.start({"url": url, "credentials": ca, **members})
            dayfly.wait_for("the request", lambda: asked)
            process.send_signal(signal.SIGTERM)
            result = work.finish(process)
            assert not result.ok and "stopped" in result.message
            assert dayfly.children(process.pid) == []
    finally:
        server.stop()


def test_without_git_a_git_source_says_what_is_missing(work, repository):
    work.refused(f"file://{repository.path}", branch="main", env={"PATH": "/nonexistent"}, reason="SourceFailed",
                 says="a git source needs the git program")


def test_a_full_disk_is_said_to_be_full(repository, world):
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a mount of its own")
    big = Repository(world / "big.git")
    big.commit({"big": os.urandom(150000).hex()})
    script = """
        mount -t tmpfs -o size=160k none "$1" && mkdir "$1/checkout" "$1/private" && cd "$1" &&
        printf '%s' "$2" >/dev/shm/source.$$ && "$3" /dev/shm/source.$$ checkout private; rm /dev/shm/source.$$; ls -A checkout private
    """
    for source in ({"url": f"file://{big.path}", "branch": "main"}, {"url": f"file://{big.path}", "kind": "directory"}):
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", place, json.dumps(source), str(FETCH)],
                                  capture_output=True, text=True, check=False)
            answer, _, left = done.stdout.partition("\n")
            assert json.loads(answer)["reason"] == "DiskFull", done.stdout + done.stderr
            assert left == "checkout:\n\nprivate:\n"


# ---- archives ----

CORPUS = hostile_archives.corpus()


@pytest.mark.parametrize("name", CORPUS)
def test_archive(work, tmp_path, name):
    content, files = CORPUS[name]
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    url = f"file://{archive}"
    if files is hostile_archives.REFUSED:
        work.refused(url, kind="archive", says="")
    else:
        assert work.fetch_ok(url, kind="archive").files == files
    assert not os.path.exists("/tmp/dayfly-hostile")


def good_tar(top="module-1.0/"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, text in (("main.tf", b"# m\n"), ("net/main.tf", b"# n\n")):
            info = tarfile.TarInfo(top + name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    return gzip.compress(out.getvalue())


def test_archives_over_https(work, world, authority):
    data = good_tar()
    digest = hashlib.sha256(data).hexdigest()
    server = git_servers.HttpsServer(world, authority, user="git", password=PASSWORD)
    elsewhere = git_servers.HttpsServer(world, authority)
    plain = git_servers.HttpsServer(world)
    server.pages["/m.tar.gz"] = lambda h: h.answer(200, data)
    server.pages["/moved.tar.gz"] = lambda h: h.answer(302, Location="/m.tar.gz")
    server.pages["/away.tar.gz"] = lambda h: h.answer(302, Location=f"{elsewhere.url}/m.tar.gz")
    server.pages["/down.tar.gz"] = lambda h: h.answer(302, Location=f"{plain.url}/m.tar.gz")
    server.pages["/file.tar.gz"] = lambda h: h.answer(302, Location="file:///etc/passwd")
    elsewhere.pages["/m.tar.gz"] = plain.pages["/m.tar.gz"] = lambda h: h.answer(200, data)

    def cut(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:100])
        handler.close_connection = True

    def endless(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(1 << 40))
        handler.end_headers()
        handler.close_connection = True

    server.pages["/cut.tar.gz"] = cut
    server.pages["/endless.tar.gz"] = endless
    members = {"sha256": digest, "credentials": credentials_of(server, authority)}
    try:
        for page in ("m", "moved", "away"):
            result = work.fetch_ok(f"{server.url}/{page}.tar.gz", folder="net", **members)
            assert result.files == {"main.tf": b"# m\n", "net/main.tf": b"# n\n"} and result.commit == ""
        assert elsewhere.requests and not any("Authorization" in headers for _, _, headers in elsewhere.requests)
        upper = {**members, "sha256": digest.upper()}
        work.fetch_ok(f"{server.url}/m.tar.gz", **upper)
        wrong = {**members, "sha256": "0" * 64}
        work.refused(f"{server.url}/m.tar.gz", **wrong, says=f"has SHA-256 {digest}")
        work.refused(f"{server.url}/m.tar.gz", credentials=members["credentials"], says="sha256 is required")
        work.refused(f"{server.url}/down.tar.gz", **members, reason="SourceFailed", says="from https to http is refused")
        work.refused(f"{server.url}/file.tar.gz", **members, reason="SourceFailed", says="only http and https")
        work.refused(f"{server.url}/cut.tar.gz", **members, reason="SourceFailed", says="cut.tar.gz")
        work.refused(f"{server.url}/endless.tar.gz", **members, reason="SourceFailed", says="larger than 536870912 bytes")
        work.refused(f"{server.url}/absent.tar.gz", **members, reason="SourceFailed", says="HTTP 404")
        denied = {**members, "credentials": {**members["credentials"], "password": "no"}}
        work.refused(f"{server.url}/m.tar.gz", **denied, reason="SourceFailed", says="HTTP 401")
        untrusted = {**members, "credentials": {}}
        work.refused(f"{server.url}/m.tar.gz", **untrusted, reason="SourceFailed", says="CA certificate")
        assert not plain.requests
    finally:
        for s in (server, elsewhere, plain):
            s.stop()


def test_proxies_are_used_as_everybody_uses_them(work, world, authority, repository):
    data = good_tar()
    server = git_servers.HttpsServer(world, authority)
    server.pages["/m.tar.gz"] = lambda h: h.answer(200, data)
    proxy = git_servers.Proxy(int(server.url.rpartition(":")[2]))
    ca = {"credentials": {"caCertificate": authority.ca.read_text()}}
    archive = {**ca, "sha256": hashlib.sha256(data).hexdigest()}
    try:
        for env in ({"HTTPS_PROXY": proxy.url}, {"https_proxy": proxy.url}):
            work.fetch_ok("https://sources.example/m.tar.gz", env=env, **archive)
            assert work.fetch_ok("https://sources.example/module.git", env=env, tag="v1.0", **ca).commit == repository.first
        assert proxy.asked and set(proxy.asked) == {"CONNECT sources.example:443 HTTP/1.1"}
        proxy.asked.clear()
        # This machine needs none for our own client, and NO_PROXY tells git.
        work.fetch_ok(f"{server.url}/m.tar.gz", env={"HTTPS_PROXY": proxy.url}, **archive)
        work.fetch_ok(f"{server.url}/module.git", env={"HTTPS_PROXY": proxy.url, "NO_PROXY": "127.0.0.1"}, tag="v1.0", **ca)
        assert not proxy.asked
    finally:
        proxy.stop()
        server.stop()


def test_a_folder_of_an_archive_is_below_its_single_top(work, tmp_path):
    archive = tmp_path / "m.tgz"
    archive.write_bytes(good_tar())
    assert work.fetch_ok(f"file://{archive}", folder="net").moduleDir == str(work.checkout / "net")
    work.refused(f"file://{archive}", folder="module-1.0", reason="SourceFailed", says="which has: main.tf, net/")
    flat = tmp_path / "m.zip"
    with zipfile.ZipFile(flat, "w") as z:
        z.writestr("main.tf", "# m\n")
        z.writestr("net/main.tf", "# n\n")
    assert work.fetch_ok(f"file://{flat}", folder="net").files == {"main.tf": b"# m\n", "net/main.tf": b"# n\n"}
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    work.fetch_ok(f"file://{archive}", sha256=digest)
    work.refused(f"file://{archive}", sha256="1" * 64, says="it is not the archive that was meant")


def test_what_a_desktop_puts_beside_the_folder_does_not_hide_the_single_top(work, tmp_path):
    packed = tmp_path / "infra.zip"
    with zipfile.ZipFile(packed, "w") as z:  # as the Finder of macOS packs a folder
        for name in ("infra/", "infra/main.tf", "__MACOSX/", "__MACOSX/._infra", "__MACOSX/infra/._main.tf", ".DS_Store",
                     "infra/.DS_Store", "infra/net/main.tf", "._infra", "Thumbs.db", "desktop.ini"):
            z.writestr(name, "" if name.endswith("/") else f"# {name}\n")
    result = work.fetch_ok(f"file://{packed}", folder="net")
    assert result.moduleDir == str(work.checkout / "net") and result.files["main.tf"] == b"# infra/main.tf\n"
    with zipfile.ZipFile(packed, "w") as z:
        for name in ("infra/main.tf", "other/main.tf", "__MACOSX/infra/._main.tf"):
            z.writestr(name, "# m\n")
    assert "infra/main.tf" in work.fetch_ok(f"file://{packed}").files, "one of two folders was taken"
