"""The ground of the tests of `dayfly-platform`: what they rely on is what a real Argo CD does here."""

import os
import pathlib
import stat
import tempfile

import pytest

from lib.argo import NAMESPACE, Site, application, is_healthy
from lib.control_plane import writes
from lib.dayfly import wait_for
from lib.git_servers import Repository, SshServer
from lib.platform_repository import COMPONENTS, SMALL, config_map, dag, document, files


def one_map(value):
    return {"a/map.yaml": document(config_map("map", value=value))}


def has_ended(*phases):
    """Its operation has come to one of these ends."""
    return lambda app: "operation" not in app and app.get("status", {}).get("operationState", {}).get("phase") in phases


def bring_up(ground, site=None, content=None):
    """The Application `a`, synced and healthy; its revision."""
    site = site or ground.site
    revision = site.commit(content or one_map("1"))
    ground.apply(NAMESPACE, application("a", site.url))
    ground.sync("a", revision)
    ground.wait_app("a", is_healthy)
    return revision


def test_an_application_becomes_synced_and_healthy(ground):
    revision = bring_up(ground)
    status = ground.app("a")["status"]
    assert status["sync"]["revision"] == revision
    assert [(r["kind"], r["name"], r["status"]) for r in status["resources"]] == [("ConfigMap", "map", "Synced")]
    assert ground.get("configmap", "map", "a")["data"] == {"value": "1"}


def test_a_new_commit_is_seen_after_a_refresh(ground):
    bring_up(ground)
    second = ground.site.commit(one_map("2"))
    app = ground.look("a", lambda app: app["status"]["sync"]["revision"] == second)
    assert app["status"]["sync"]["status"] == "OutOfSync"
    assert ground.get("configmap", "map", "a")["data"] == {"value": "1"}  # nothing is done that nobody has asked for
    ground.sync("a", second)
    ground.wait("configmap", "map", "a", lambda found: found["data"] == {"value": "2"})


def test_the_audit_log_shows_who_did_what_and_nothing_else(ground):
    kubeconfig = ground.kubeconfig_of("dayfly")
    mark = ground.mark()
    ask = ["--kubeconfig", kubeconfig, "-n", "default"]
    ground.kubectl(*ask, "get", "configmaps")
    ground.kubectl(*ask, "auth", "can-i", "create", "configmaps")
    ground.kubectl(*ask, "create", "configmap", "tried", "--dry-run=server")
    assert writes(ground.audit(mark, user="dayfly")) == []
    assert any("dryRun=All" in e["requestURI"] for e in ground.audit(mark, user="dayfly"))
    ground.kubectl(*ask, "create", "configmap", "made")
    ground.kubectl(*ask, "delete", "configmap", "made")
    path = "/api/v1/namespaces/default/configmaps"
    assert writes(ground.audit(mark, user="dayfly")) == [("create", path, 201), ("delete", f"{path}/made", 200)]


def test_all_ten_components_of_the_platform_come_up(ground):
    ground.deploy(dag()["components"], ground.site.commit(files()))
    assert {app["status"]["sourceType"] for app in ground.get("application", namespace=NAMESPACE)["items"]} == {
        "Directory", "Helm", "Kustomize"}
    image = {name: ground.get("deployment", name, name)["spec"]["template"]["spec"]["containers"][0]["image"]
             for name in ("ingress", "cache", "shop")}
    assert image == {name: f"example.org/{name}:1" for name in image}
    assert ground.get("widget", "widgets", "widgets")["spec"] == {"size": 1}
    assert ground.get("persistentvolumeclaim", "storage", "storage")["status"]["phase"] == "Bound"


FAULTY = [("never", "reports", lambda app: app["status"]["health"]["status"] == "Degraded", ""),
          ("crashes", "monitor", lambda app: app["status"]["health"]["status"] == "Degraded", ""),
          ("refused", "settings", has_ended("Failed"), "Not_A_Name"),
          ("unknown", "cache", has_ended("Failed"), "not valid"),
          ("syntax", "settings", has_ended("Error"), "converting YAML to JSON"),
          ("absent", "shop", has_ended("Error"), "app path does not exist"),
          ("hook", "ingress", lambda app: "completion of hook" in app["status"]["operationState"].get("message", ""), ""),
          ("hook-fails", "database", has_ended("Failed"), "synchronization tasks completed unsuccessfully")]


@pytest.mark.parametrize("fault, name, shows, message", FAULTY, ids=[row[0] for row in FAULTY])
def test_a_faulty_component_shows_its_fault(ground, fault, name, shows, message):
    revision = ground.site.commit(files((name,), faults={name: fault}))
    ground.apply(NAMESPACE, application(name, ground.site.url, f"platform/{name}"))
    ground.sync(name, revision)
    app = ground.wait_app(name, lambda app: app.get("status", {}).get("operationState") and "health" in app["status"] and shows(app))
    assert message in app["status"]["operationState"].get("message", "")


def test_a_component_flaps(ground):
    revision = ground.site.commit(files(("shop",), faults={"shop": "flaps"}))
    ground.apply(NAMESPACE, application("shop", ground.site.url, "platform/shop"))
    ground.sync("shop", revision)
    for word in ("Healthy", "Progressing", "Healthy"):
        ground.wait_app("shop", lambda app, word=word: app.get("status", {}).get("health", {}).get("status") == word)


def test_a_repository_that_nobody_reaches_is_told_and_forgotten_when_it_is_back(ground):
    bring_up(ground)
    ground.site.stop()
    app = ground.look("a", lambda app: app["status"].get("conditions"))
    assert app["status"]["conditions"][0]["type"] == "ComparisonError"
    assert "connection refused" in app["status"]["conditions"][0]["message"]
    ground.site.start()
    ground.look("a", lambda app: not app["status"].get("conditions") and is_healthy(app))


def test_a_repository_with_a_password_is_read_with_what_a_secret_says(ground, tmp_path):
    site = Site(tmp_path / "private", password="of-the-repository")
    try:
        ground.apply(NAMESPACE, site.secret("private"))
        bring_up(ground, site)
    finally:
        site.stop()
        ground.delete("secret", "private", NAMESPACE)


def test_a_repository_behind_ssh_is_read_with_a_key_from_a_host_that_is_known(ground, tmp_path):
    server = SshServer(tempfile.gettempdir())
    try:
        repository = Repository(server.directory / "platform.git")
        revision = repository.commit(one_map("1"))
        url = server.url(repository.path)
        for path in (repository.path, *repository.path.rglob("*")):
            os.chown(path, server.uid, server.uid)
        known = ground.get("configmap", "argocd-ssh-known-hosts-cm", NAMESPACE)["data"]["ssh_known_hosts"]
        ground.patch("configmap", "argocd-ssh-known-hosts-cm", NAMESPACE, {"data": {"ssh_known_hosts": known + server.known_hosts}})
        ground.mount()
        ground.apply(NAMESPACE, {"apiVersion": "v1", "kind": "Secret",
                                 "metadata": {"name": "by-key", "labels": {"argocd.argoproj.io/secret-type": "repository"}},
                                 "stringData": {"type": "git", "url": url, "sshPrivateKey": server.key}})
        ground.apply(NAMESPACE, application("a", url))
        ground.sync("a", revision)
        ground.wait_app("a", is_healthy)
    finally:
        server.stop()
        ground.delete("secret", "by-key", NAMESPACE)


def test_an_application_takes_along_what_it_made(ground):
    bring_up(ground, content={"a/map.yaml": document(config_map("map")), "a/claim.yaml": files(("storage",))["platform/storage/claim.yaml"]})
    ground.delete("application", "a", NAMESPACE)
    ground.wait_gone("application", "a", NAMESPACE)
    assert ground.get("configmap", "map", "a") is None
    wait_for("the volume to go", lambda: not ground.names("persistentvolume"))
    assert ground.get("namespace", "a")["status"]["phase"] == "Active"  # Argo CD made it, and leaves it


def test_a_volume_that_is_to_be_retained_stays(ground):
    bring_up(ground, content={"a/claim.yaml": files(("storage",))["platform/storage/claim.yaml"]})
    volume = ground.names("persistentvolume")[0]
    ground.patch("persistentvolume", volume, None, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    ground.delete("application", "a", NAMESPACE)
    ground.wait_gone("application", "a", NAMESPACE)
    ground.wait("persistentvolume", volume, None, lambda found: found["status"]["phase"] == "Released")


@pytest.mark.parametrize("part", ["controller", "repo-server", "redis", "apiserver"])
def test_a_part_that_was_killed_goes_on_when_it_is_back(ground, part):
    bring_up(ground)
    ground.kill(part)
    assert not ground.runs(part)
    ground.start(part)
    second = ground.site.commit(one_map("2"))
    ground.look("a", lambda app: app["status"]["sync"]["revision"] == second)


def test_argo_cd_is_there_as_its_makers_install_it(ground):
    assert sorted(ground.names("deployment", NAMESPACE)) == ["argocd-redis", "argocd-repo-server"]
    for kind, name in (("deployment", "argocd-repo-server"), ("statefulset", "argocd-application-controller")):
        ground.wait(kind, name, NAMESPACE, lambda found: found["status"].get("readyReplicas") == 1)


def test_nothing_of_a_test_is_left_for_the_next_one(ground):
    ground.deploy(dag(SMALL)["components"], ground.site.commit(files(SMALL)))
    ground.clean()
    assert ground.names("application", NAMESPACE) == [] and ground.names("persistentvolume") == []
    assert not set(ground.names("namespace")) & set(COMPONENTS)
    assert not ground.left("pod", SMALL)


def test_a_ground_whose_argo_cd_was_removed_gets_it_again(ground):
    ground.delete("crd", "applications.argoproj.io")
    ground.delete("deployment", "argocd-redis", NAMESPACE)
    ground.wait_gone("crd", "applications.argoproj.io")
    ground.clean()
    bring_up(ground)


def test_secrets_of_the_ground_are_its_owners_alone(ground):
    """And no part works outside of its directory."""
    for path in (ground.kubeconfig, ground.kubeconfig_of("dayfly"), ground.directory / "redis.conf"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for part in ground.parts.values():
        assert pathlib.Path(os.readlink(f"/proc/{part.process.pid}/cwd")) == ground.directory
