"""teardown against a real Argo CD: backwards through the DAG, volumes as PV_POLICY says, and what is left is named."""

import signal

import pytest

from lib.argo import FINALIZER, NAMESPACE, Ground, install_objects, is_established
from lib.dayfly import wait_for
from lib.kube_proxy import KubeProxy
from lib.platform import Platform, claim, component, config_map, deployment, stateful_set, text_of


HOLD = "example.com/hold"
CONTROLLER = f"system:serviceaccount:{NAMESPACE}:argocd-application-controller"


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with Ground(tmp_path_factory.mktemp("ground")) as running:
        yield running


def platform_at(ground, tmp_path, name):
    made = Platform(ground, tmp_path / "platform", name=name)
    made.env["TEARDOWN_CONFIRMATION"] = f"destroy {name}/staging"
    return made


@pytest.fixture
def platform(ground, tmp_path, request):
    yield platform_at(ground, tmp_path, f"p{abs(hash(request.node.name)) % 10**8}")
    ground.remove_applications()


FOUR = {"crds/one.yaml": text_of(config_map("one", "default")), "cm/two.yaml": text_of(config_map("two")),
        "app/deployment.yaml": text_of(deployment("app")), "side/three.yaml": text_of(config_map("three"))}
DAG = (component("crds", namespace=None), component("cm", "crds"), component("app", "cm", stack="apps", critical=True), component("side"))
NAMES = [c["name"] for c in DAG]


@pytest.fixture
def deployed(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    platform.run("deploy")
    return platform


def applications(ground):
    return sorted(app["metadata"]["name"] for app in ground.get("application", namespace=NAMESPACE)["items"])


def deletions(ended):
    """What was deleted, in order: (plural, name)."""
    return [(e["objectRef"]["resource"], e["objectRef"]["name"]) for e in ended.audit if e["verb"] == "delete"]


def orphans(ended):
    return [(o["kind"], o["name"]) for o in ended.report["removal"]["orphans"]]


# ---- what it needs

def test_without_the_confirmation_of_this_environment_nothing_is_touched(ground, deployed):
    name = deployed.name
    for word in (None, "", "yes", "destroy", "destroy other/staging", f"destroy {name}/production", f"DESTROY {name}/staging"):
        assert deployed.run("teardown", 3, TEARDOWN_CONFIRMATION=word).writes == [], word
    assert applications(ground) == sorted(NAMES)


def test_a_dry_run_says_what_would_be_removed_and_writes_nothing(ground, deployed):
    ended = deployed.run("teardown", DRY_RUN="true")
    assert ended.writes == [] and applications(ground) == sorted(NAMES)
    assert {c["message"] for c in ended.report["components"]} == {"would be removed"}


def test_what_something_outside_of_the_scope_depends_on_stays(ground, deployed):
    for scope, dependent in (("app:crds", "cm"), ("app:cm", "app"), ("stack:foundation", "app")):
        ended = deployed.run("teardown", 3, TARGET_SCOPE=scope)
        assert ended.writes == [] and applications(ground) == sorted(NAMES)
        assert f"{dependent} is in the cluster, outside of the scope" in ended.report["summary"]["message"]


def test_an_absent_component_in_between_does_not_hide_who_depends_on_the_scope(ground, deployed):
    ground.remove_applications("cm")
    ended = deployed.run("teardown", 3, TARGET_SCOPE="app:crds")
    assert "app is in the cluster" in ended.report["summary"]["message"] and ended.writes == []


def test_an_application_of_somebody_else_stays(ground, deployed):
    ground.patch("application", "side", NAMESPACE, {"metadata": {"labels": {"dayfly.dev/environment": "other"}}})
    ended = deployed.run("teardown", 2)
    assert ended.component("side")["cause"] == "NotOurs" and applications(ground) == ["side"]
    assert not any(name == "side" for _, name in deletions(ended))


# ---- order

def test_components_go_backwards_through_the_dag_and_nothing_is_left(ground, deployed):
    ended = deployed.run("teardown")
    gone = [name for plural, name in deletions(ended) if plural == "applications"]
    assert sorted(gone) == sorted(NAMES) and [n for n in gone if n != "side"] == ["app", "cm", "crds"]
    assert ended.states() == dict.fromkeys(NAMES, "Done") and applications(ground) == []
    assert orphans(ended) == []
    assert [ground.get("namespace", deployed.space(n)) for n in NAMES] == [None] * 4
    again = deployed.run("teardown")
    assert again.writes == [] and {c["message"] for c in again.report["components"]} == {"nothing there"}


def test_a_component_waits_until_what_depends_on_it_is_gone(ground, deployed):
    mark = ground.mark()
    ended = deployed.run("teardown")
    asked = {e["objectRef"]["name"]: e["requestReceivedTimestamp"] for e in ended.audit
             if e["verb"] == "delete" and e["objectRef"]["resource"] == "applications"}
    # The last write that Argo CD still found an Application for took its finalizer away.
    gone = {e["objectRef"]["name"]: e["stageTimestamp"] for e in ground.audit(mark, user=CONTROLLER)
            if e["verb"] in ("patch", "update") and e["objectRef"]["resource"] == "applications" and e["responseStatus"]["code"] == 200}
    assert gone["app"] <= asked["cm"] and gone["cm"] <= asked["crds"]


def test_objects_of_the_bootstrap_go_last(ground, platform):
    ground.site.commit({"base/base.yaml": text_of(config_map("base")), "side/three.yaml": text_of(config_map("three"))})
    platform.dag(component("base", bootstrap=True), component("side", "base"))
    platform.run("deploy")
    ended = platform.run("teardown")
    assert deletions(ended)[:2] == [("applications", "side"), ("configmaps", "base")]
    assert ended.states() == {"base": "Done", "side": "Done"} and ground.get("namespace", platform.space("base")) is None


def test_on_nothing_there_is_nothing_to_do(platform):
    platform.dag(*DAG)
    ended = platform.run("teardown")
    assert ended.writes == [] and ended.states() == dict.fromkeys(NAMES, "Done")


def test_a_scope_takes_its_own_and_leaves_the_rest(ground, deployed):
    ended = deployed.run("teardown", TARGET_SCOPE="stack:apps")
    assert deletions(ended) == [("applications", "app")] and applications(ground) == ["cm", "crds", "side"]
    assert ground.get("namespace", deployed.space("app"))


def test_a_namespace_that_others_use_or_made_stays(ground, deployed):
    ground.apply(deployed.space("side"), config_map("of-somebody"))
    ground.patch("namespace", deployed.space("cm"), None, {"metadata": {"labels": {"team": "a"}}})
    ended = deployed.run("teardown")
    kept = dict(line.split(": ", 1) for line in ended.report["removal"]["namespaces"])
    assert kept[deployed.space("side")] == "ConfigMap of-somebody is left in it"
    assert kept[deployed.space("cm")] == "somebody else made or changed it"
    assert kept[deployed.space("app")] == "deleted"
    assert ground.get("configmap", "of-somebody", deployed.space("side"))


@pytest.mark.parametrize("victim", ["side", "cm"])
def test_a_teardown_that_was_killed_is_continued_by_the_next_one(ground, deployed, victim):
    process = deployed.start("teardown")
    wait_for(f"the end of {victim}", lambda: victim not in applications(ground) or process.poll() is not None)
    process.kill()
    assert process.wait() in (-signal.SIGKILL, 0)
    process.stdout.close()
    ended = deployed.run("teardown")
    assert ended.states() == dict.fromkeys(NAMES, "Done") and applications(ground) == []
    assert [ground.get("namespace", deployed.space(n)) for n in NAMES] == [None] * 4


# ---- volumes

@pytest.fixture
def with_volumes(ground, platform):
    """A component with a claim of its own and a StatefulSet that makes another one."""
    ground.site.commit({"data/all.yaml": text_of(claim("files"), stateful_set("db", "data"))})
    platform.dag(component("data"))
    platform.run("deploy")
    space = platform.space("data")
    for name in ("files", "data-db-0"):
        ground.wait("persistentvolumeclaim", name, space, lambda c: c["status"].get("phase") == "Bound")
    return platform


def volumes(ground, platform):
    """Claim -> (phase, policy) of the volumes that the platform's claims had."""
    return {v["spec"]["claimRef"]["name"]: (v["status"]["phase"], v["spec"]["persistentVolumeReclaimPolicy"])
            for v in ground.get("persistentvolume")["items"] if v["spec"]["claimRef"]["namespace"] == platform.space("data")}


def test_volumes_are_retained_and_listed_unless_they_are_to_be_deleted(ground, with_volumes):
    ended = with_volumes.run("teardown")
    assert volumes(ground, with_volumes) == dict.fromkeys(("files", "data-db-0"), ("Released", "Retain"))
    listed = ended.report["removal"]["volumes"]
    assert sorted((v["claim"], v["namespace"], v["component"], v["policy"]) for v in listed) == [
        (name, with_volumes.space("data"), "data", "Retain") for name in ("data-db-0", "files")]
    assert {kind for kind, _ in orphans(ended)} == {"PersistentVolume"}
    again = with_volumes.run("teardown")
    assert again.report["removal"]["volumes"] == listed and again.writes == []


def test_stateful_sets_are_asked_for_once_however_many_claims_there_are(ground, platform):
    sets = [{**one, "spec": {**one["spec"], "replicas": 2}} for one in (stateful_set("db", "data"), stateful_set("db-log", "data"))]
    ground.site.commit({"data/all.yaml": text_of(*sets)})
    platform.dag(component("data"))
    platform.run("deploy")
    space, made = platform.space("data"), {f"data-{name}-{i}" for name in ("db", "db-log") for i in (0, 1)}
    wait_for("all claims", lambda: made == set(ground.names("persistentvolumeclaim", space)))
    ended = platform.run("teardown", PV_POLICY="delete")
    asked = [e["verb"] for e in ended.audit if f"/namespaces/{space}/statefulsets" in e["requestURI"]]
    assert asked == ["list"] and made == {name for kind, name in deletions(ended) if kind == "persistentvolumeclaims"}


def test_the_claim_of_a_stateful_set_that_a_deploy_has_pruned_keeps_its_namespace(ground, with_volumes):
    ground.site.commit({"data/all.yaml": text_of(claim("files"))})
    with_volumes.run("deploy")
    assert ground.get("statefulset", "db", with_volumes.space("data")) is None
    ended = with_volumes.run("teardown", PV_POLICY="delete")
    assert ended.report["removal"]["namespaces"] == [f"{with_volumes.space('data')}: PersistentVolumeClaim data-db-0 is left in it"]
    assert volumes(ground, with_volumes) == {"data-db-0": ("Bound", "Delete")}


def replaced(ground, kind, name, namespace, other):
    """The object goes, and somebody makes another one of its name: the uid of that."""
    ground.delete(kind, name, namespace)
    if kind == "namespace":  # its controller would take its time
        ground.api.ask("PUT", f"/api/v1/namespaces/{name}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}}, missing=True)
    ground.wait_gone(kind, name, namespace)
    ground.apply(namespace, other)
    return ground.get(kind, name, namespace)["metadata"]["uid"]


@pytest.mark.parametrize("kind", ["configmap", "persistentvolumeclaim", "namespace", "secret"])
def test_what_has_taken_the_name_of_an_object_a_moment_before_is_not_deleted(ground, platform, tmp_path, kind):
    space, plural = platform.space("data"), f"{kind}s"
    name, where, other = {"configmap": ("base", space, config_map("base", a="other")), "persistentvolumeclaim": ("data-db-0", space, claim("data-db-0")),
                          "namespace": (space, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}),
                          "secret": (f"dayfly-repository-{platform.name}", NAMESPACE, {
                              "apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"dayfly-repository-{platform.name}"}})}[kind]
    ground.site.commit({"data/all.yaml": text_of(stateful_set("db", "data")), "base/all.yaml": text_of(config_map("base"))})
    if kind == "secret":
        (platform.secrets / "git").mkdir()
        for file in ("username", "password"):
            (platform.secrets / "git" / file).write_text("git")
    platform.dag(component("data"), component("base", bootstrap=True, namespace=space))
    platform.run("deploy")
    proxy, made = KubeProxy(ground, tmp_path), []

    def at(request, when):
        if not made and when == "before" and request[0] == "DELETE" and request[1].endswith(f"/{plural}/{name}"):
            made.append(replaced(ground, kind, name, where, other))
        return False
    proxy.at = at
    ended = platform.end(platform.start("teardown", KUBECONFIG_PATH=str(proxy.kubeconfig)), ground.mark())
    proxy.close()
    left = ground.get(kind, name, where)
    assert [left["metadata"]["uid"]] == made and "deletionTimestamp" not in left["metadata"], ended.output


@pytest.mark.parametrize("wish, policy", [("retain", "Retain"), ("delete", "Delete")])
def test_a_dry_run_names_the_volumes_and_namespaces_that_would_go(ground, with_volumes, wish, policy):
    ended = with_volumes.run("teardown", DRY_RUN="true", PV_POLICY=wish)
    space, removal = with_volumes.space("data"), ended.report["removal"]
    assert ended.writes == [] and set(volumes(ground, with_volumes).values()) == {("Bound", "Delete")}
    assert sorted((v["claim"], v["namespace"], v["component"], v["policy"]) for v in removal["volumes"]) == [
        (name, space, "data", policy) for name in ("data-db-0", "files")]
    assert {v["name"] for v in removal["volumes"]} == {v["metadata"]["name"] for v in ground.get("persistentvolume")["items"]
                                                       if v["spec"]["claimRef"]["namespace"] == space}
    assert removal["namespaces"] == [f"{space}: would be deleted, unless something is left in it by then"] and removal["orphans"] == []
    ground.patch("namespace", space, None, {"metadata": {"labels": {"team": "a"}}})
    ended = with_volumes.run("teardown", DRY_RUN="true", PV_POLICY=wish)
    assert ended.report["removal"]["namespaces"] == [f"{space}: would stay: somebody else made or changed it"]
    with_volumes.run("teardown", None, PV_POLICY="delete")


def test_volumes_are_gone_when_they_are_to_be_deleted(ground, with_volumes):
    ended = with_volumes.run("teardown", PV_POLICY="delete")
    assert volumes(ground, with_volumes) == {} and ended.report["removal"]["volumes"] == []


def test_volumes_that_an_earlier_teardown_retained_are_never_deleted(ground, with_volumes):
    with_volumes.run("teardown")
    with_volumes.run("teardown", PV_POLICY="delete")
    assert volumes(ground, with_volumes) == dict.fromkeys(("files", "data-db-0"), ("Released", "Retain"))


# ---- Argo CD itself

def deploy_with_argo_cd(bare, platform):
    """What a first deploy does, and what the containers of Argo CD would do, which are only simulated here."""
    bare.site.commit({"side/three.yaml": text_of(config_map("three"))})
    platform.dag(component("side"))
    (platform.manifests / "argocd").mkdir(parents=True)
    (platform.manifests / "argocd/install.yaml").write_text(text_of(*install_objects()))
    (platform.secrets / "registry").mkdir()
    (platform.secrets / "registry/.dockerconfigjson").write_text('{"auths": {"registry.example": {"auth": "YTpi"}}}')
    (platform.secrets / "git").mkdir()
    for name, value in (("username", "git"), ("password", "secret")):
        (platform.secrets / "git" / name).write_text(value)
    mark, process = bare.mark(), platform.start("deploy")
    bare.wait("crd", "applications.argoproj.io", None, is_established)
    wait_for("argocd-secret", lambda: (bare.get("secret", namespace=NAMESPACE) or {"items": []})["items"])
    bare.apply(NAMESPACE, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-redis"},
                           "stringData": {"auth": bare.redis.password}})
    bare.start("controller", "repo-server")
    platform.end(process, mark, 0)


def test_argo_cd_goes_with_the_last_platform_if_a_deploy_installed_it(tmp_path):
    with Ground(tmp_path / "ground", installed=False) as bare:
        platform = platform_at(bare, tmp_path, "last")
        deploy_with_argo_cd(bare, platform)
        other = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "of-others"}, "spec": {}}
        bare.apply(NAMESPACE, other)
        ended = platform.run("teardown")
        assert bare.get("namespace", platform.space("side")) is None
        assert ended.report["bootstrap"] == ["Argo CD stays: it is used by appprojects of-others"]
        assert bare.get("secret", "dayfly-repository-last", NAMESPACE) is None
        bare.delete("appproject", "of-others", NAMESPACE)
        bare.terminate("controller")
        ended = platform.run("teardown")
        assert "deleted CustomResourceDefinition applications.argoproj.io" in ended.report["bootstrap"]
        bare.wait_gone("crd", "applications.argoproj.io")
        assert bare.get("deployment", namespace=NAMESPACE)["items"] == []
        assert bare.get("clusterrole", "argocd-application-controller") is None
        again = platform.run("teardown")
        assert again.writes == [] and "bootstrap" not in again.report


def test_an_argo_cd_that_others_installed_stays(ground, deployed):
    (deployed.manifests / "argocd").mkdir(parents=True)
    (deployed.manifests / "argocd/install.yaml").write_text(text_of(*install_objects()))
    deployed.run("teardown")
    assert ground.get("crd", "applications.argoproj.io") and ground.get("deployment", namespace=NAMESPACE)["items"]


# ---- what hangs

def hold(ground, kind, name, space, finalizers):
    ground.patch(kind, name, space, {"metadata": {"finalizers": finalizers}})


def test_an_object_that_a_finalizer_holds_is_named_with_it_and_what_is_below_stays(ground, deployed):
    deployed.dag(*({**c, "timeout": "4s"} for c in DAG))
    space = deployed.space("cm")
    hold(ground, "configmap", "two", space, [HOLD])
    ended = deployed.run("teardown", 2)
    assert ended.states() == {"app": "Done", "side": "Done", "cm": "Failed", "crds": "Skipped"}
    assert ended.component("cm")["cause"] == "StuckFinalizer"
    found = {(o["kind"], o["name"]): o["why"] for o in ended.report["removal"]["orphans"]}
    assert HOLD in found["ConfigMap", "two"] and FINALIZER in found["Application", "cm"]
    assert set(found) == {("ConfigMap", "two"), ("Application", "cm")}
    hold(ground, "configmap", "two", space, None)
    ended = deployed.run("teardown")
    assert ended.states() == dict.fromkeys(NAMES, "Done") and applications(ground) == []


def test_an_only_component_that_hangs_is_a_partial_teardown(ground, platform):
    ground.site.commit({"side/three.yaml": text_of(config_map("three"))})
    platform.dag(component("side", timeout="4s"))
    platform.run("deploy")
    hold(ground, "configmap", "three", platform.space("side"), [HOLD])
    assert ("ConfigMap", "three") in orphans(platform.run("teardown", 2))
    hold(ground, "configmap", "three", platform.space("side"), None)


def test_a_namespace_that_does_not_end_is_named_with_what_holds_it(ground, deployed):
    deployed.environment["timeouts"]["sync"] = "4s"
    space = deployed.space("side")
    ground.apply(space, config_map("of-somebody"))
    hold(ground, "configmap", "of-somebody", space, [HOLD])
    ground.delete("namespace", space)
    ground.wait("namespace", space, None, lambda n: any(  # the server says what holds it a moment later
        c["type"] == "NamespaceFinalizersRemaining" and c["status"] == "True" for c in n["status"].get("conditions") or []))
    ended = deployed.run("teardown", 2)
    found = {(o["kind"], o["name"]): o["why"] for o in ended.report["removal"]["orphans"]}
    assert HOLD in found["Namespace", space]
    hold(ground, "configmap", "of-somebody", space, None)


def test_an_object_that_argo_cd_was_told_to_keep_is_an_orphan(ground, platform):
    kept = config_map("kept")
    kept["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": "Delete=false"}
    ground.site.commit({"side/kept.yaml": text_of(kept)})
    platform.dag(component("side"))
    platform.run("deploy")
    ended = platform.run("teardown", 2)
    assert orphans(ended) == [("ConfigMap", "kept")] and ended.states() == {"side": "Done"}
    ground.delete("configmap", "kept", platform.space("side"))
    assert orphans(platform.run("teardown")) == []


def test_an_application_that_the_dag_has_no_more_is_an_orphan(ground, deployed):
    deployed.dag(*DAG[:3])
    ended = deployed.run("teardown", 2)
    assert orphans(ended) == [("Application", "side")] and applications(ground) == ["side"]


def test_orphans_are_told_in_the_log_the_failures_and_the_recommendations(deployed):
    deployed.dag(*DAG[:3])
    ended = deployed.run("teardown", 2)
    words = "orphans are left: 1, of them Application side"
    assert words in ended.lines()[-1]["msg"] and "3 of 3 components are gone" in ended.lines()[-1]["msg"]
    failure, = ended.report["failures"]
    assert failure["cause"] == "OrphansLeft" and words in failure["message"] and "component" not in failure
    assert any("removal in the report" in advice for advice in ended.report["recommendations"])
    assert "notSearched" not in ended.report["removal"] and "orphansNotShown" not in ended.report["removal"]


# ---- nothing of others

def written_by_dayfly(ground, *objects):
    """Server-side apply by its manager; the label of an environment is not everything that says who wrote what."""
    for one in objects:
        path = ground.api.path_of(one, one["metadata"].get("namespace"))
        ground.api.ask("PATCH", f"{path}?fieldManager=dayfly&force=true", one, kind="application/apply-patch+yaml")


def labelled(one, name):
    return {**one, "metadata": {**one["metadata"], "labels": {"dayfly.dev/environment": name}}}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def definition(plural):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": plural.title()},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


@pytest.fixture
def of_bootstrap(ground, platform):
    """Runs a teardown of a component of the bootstrap whose folder has these objects, as they are in the cluster."""
    def run(*objects, code=0):
        written_by_dayfly(ground, *objects)
        for one in objects:
            if one["kind"] == "CustomResourceDefinition":
                ground.wait("crd", one["metadata"]["name"], None, is_established)
        ground.site.commit({"base/all.yaml": text_of(*objects)})
        platform.dag(component("base", bootstrap=True))
        return platform.run("teardown", code)
    return run


def test_of_a_bootstrap_only_what_has_the_label_of_this_environment_goes(ground, platform, of_bootstrap):
    space = f"{platform.name}-shared"
    ground.apply(None, namespace(space))
    ended = of_bootstrap(labelled(config_map("ours", space), platform.name), labelled(config_map("of-another", space), "other"),
                         config_map("of-nobody", space))
    assert ground.get("configmap", "ours", space) is None
    assert ground.get("configmap", "of-another", space) and ground.get("configmap", "of-nobody", space)
    stays, deleted = sorted(ended.report["bootstrap"])
    assert stays.startswith("base: ConfigMap of-another and more of its objects stays: not of this environment") and deleted == "deleted ConfigMap ours"


def test_a_namespace_of_a_bootstrap_stays_with_what_others_have_in_it(ground, platform, of_bootstrap):
    space = f"{platform.name}-others"
    ground.apply(None, namespace(space))
    ground.apply(space, config_map("precious"))
    ended = of_bootstrap(labelled(namespace(space), platform.name))
    assert ground.get("configmap", "precious", space) and "deletionTimestamp" not in ground.get("namespace", space)["metadata"]
    assert any(line.startswith(f"Namespace {space} stays: ") for line in ended.report["bootstrap"])


def test_a_definition_of_a_bootstrap_stays_as_long_as_there_are_objects_of_its_kind(ground, platform, of_bootstrap):
    used, unused = (labelled(definition(plural), platform.name) for plural in ("gears", "cogs"))
    written_by_dayfly(ground, used)
    ground.wait("crd", "gears.example.com", None, is_established)
    gear = {"apiVersion": "example.com/v1", "kind": "Gears", "metadata": {"name": "one", "namespace": "default"}}
    wait_for("the kind", lambda: ground.api.ask("PATCH", "/apis/example.com/v1/namespaces/default/gears/one?fieldManager=tests", gear,
                                                kind="application/apply-patch+yaml", missing=True))
    ended = of_bootstrap(used, unused)
    assert ended.report["bootstrap"] == ["deleted CustomResourceDefinition cogs.example.com",
                                         "CustomResourceDefinition gears.example.com stays: there are still gears one"]
    assert ground.api.ask("GET", "/apis/example.com/v1/namespaces/default/gears/one")


def test_a_claim_of_a_bootstrap_stays(ground, platform, of_bootstrap):
    space = f"{platform.name}-data"
    ground.apply(None, namespace(space))
    kept = claim("files")
    kept["metadata"]["namespace"] = space
    ended = of_bootstrap(labelled(kept, platform.name))
    assert "deletionTimestamp" not in ground.get("persistentvolumeclaim", "files", space)["metadata"]
    assert ended.report["bootstrap"] == ["PersistentVolumeClaim files stays: it holds data"]


def told_of_namespaces(ended):
    return dict(line.split(": ", 1) for line in ended.report["removal"]["namespaces"])


def test_a_namespace_stays_unless_it_is_known_who_made_it(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    ground.apply(None, namespace(platform.space("side")))  # leaves no entry of who wrote it
    platform.run("deploy")
    ground.patch("namespace", platform.space("cm"), None, {"metadata": {"managedFields": [{}]}})
    ended = platform.run("teardown")
    assert told_of_namespaces(ended) == {platform.space("app"): "deleted", **{platform.space(n): "somebody else made or changed it" for n in ("side", "cm")}}
    for name in ("side", "cm"):
        assert "deletionTimestamp" not in ground.get("namespace", platform.space(name))["metadata"]


def test_a_namespace_of_ours_goes_and_that_of_another_environment_stays(ground, platform):
    platform.dag(component("crds"), component("cm"))
    ground.site.commit(FOUR)
    written_by_dayfly(ground, labelled(namespace(platform.space("crds")), platform.name), labelled(namespace(platform.space("cm")), "other"))
    ended = platform.run("teardown")
    assert told_of_namespaces(ended) == {platform.space("crds"): "deleted", platform.space("cm"): "somebody else made or changed it"}
    assert orphans(ended) == []


def test_a_namespace_stays_with_what_an_object_of_others_owns_in_it(ground, deployed):
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"{deployed.name}-operator"}, "rules": []}
    ground.apply(None, role)
    uid = ground.get("clusterrole", role["metadata"]["name"])["metadata"]["uid"]
    owner = {"apiVersion": role["apiVersion"], "kind": "ClusterRole", "name": role["metadata"]["name"], "uid": uid}
    ground.apply(deployed.space("side"), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-operator", "ownerReferences": [owner]}})
    ended = deployed.run("teardown")
    assert told_of_namespaces(ended)[deployed.space("side")] == "Secret of-operator is left in it"
    assert ground.get("secret", "of-operator", deployed.space("side"))
    ground.delete("clusterrole", role["metadata"]["name"])


def annotated(one, key, value):
    return {**one, "metadata": {**one["metadata"], "annotations": {key: value}}}


@pytest.mark.parametrize("key, value", [("argocd.argoproj.io/sync-options", "Prune=false, Delete=false")])
def test_a_claim_that_argo_cd_was_told_to_keep_stays_with_its_namespace(ground, platform, key, value):
    ground.site.commit({"kept/all.yaml": text_of(annotated(claim("files"), key, value))})
    platform.dag(component("kept"))
    platform.run("deploy")
    ground.wait("persistentvolumeclaim", "files", platform.space("kept"), lambda c: c["status"].get("phase") == "Bound")
    volume = ground.get("persistentvolumeclaim", "files", platform.space("kept"))["spec"]["volumeName"]
    ended = platform.run("teardown", 2, PV_POLICY="delete")
    assert "deletionTimestamp" not in ground.get("persistentvolumeclaim", "files", platform.space("kept"))["metadata"]
    assert told_of_namespaces(ended)[platform.space("kept")] == "PersistentVolumeClaim files is left in it" and ended.report["removal"]["volumes"] == []
    assert ground.get("persistentvolume", volume)["spec"]["persistentVolumeReclaimPolicy"] == "Delete"


def test_the_volume_of_a_claim_that_is_kept_is_retained_all_the_same(ground, platform):
    one = annotated(claim("files"), "argocd.argoproj.io/sync-options", "Prune=false, Delete=false")
    ground.site.commit({"saved/all.yaml": text_of(one)})
    platform.dag(component("saved"))
    platform.run("deploy")
    bound = ground.wait("persistentvolumeclaim", "files", platform.space("saved"), lambda c: c["status"].get("phase") == "Bound")
    platform.run("teardown", 2)
    assert ground.get("persistentvolume", bound["spec"]["volumeName"])["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


@pytest.fixture
def with_owner(ground, platform):
    """A component with a ConfigMap; the reference of what it owns."""
    ground.site.commit({"data/all.yaml": text_of(config_map("owner"))})
    platform.dag(component("data"))
    platform.run("deploy")
    found = ground.get("configmap", "owner", platform.space("data"))
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": found["metadata"]["uid"]}


def test_the_volume_of_another_claim_is_left_alone(ground, platform, with_owner):
    victim, trick = f"{platform.name}-victim", claim("trick")
    ground.apply(None, namespace(victim))
    ground.apply(victim, claim("precious"))
    bound = ground.wait("persistentvolumeclaim", "precious", victim, lambda c: c["status"].get("phase") == "Bound")
    volume = bound["spec"]["volumeName"]
    ground.patch("persistentvolume", volume, None, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    trick["metadata"]["ownerReferences"] = [with_owner]
    trick["spec"]["volumeName"] = volume
    ground.apply(platform.space("data"), trick)
    ended = platform.run("teardown", PV_POLICY="delete")
    left = ground.get("persistentvolume", volume)
    assert left["spec"]["persistentVolumeReclaimPolicy"] == "Retain" and "labels" not in left["metadata"]
    assert ended.report["removal"]["volumes"] == [] and ground.get("persistentvolumeclaim", "precious", victim)


@pytest.mark.parametrize("change", [{"apiVersion": "example.com/v1"}, {"kind": "Secret"}, {"name": "other"}, {}])
def test_a_claim_is_of_a_component_only_if_its_owner_is(ground, platform, with_owner, change):
    one = claim("of-others")
    if not change:
        one = annotated(one, "argocd.argoproj.io/tracking-id", f"other:/PersistentVolumeClaim:{platform.space('data')}/of-others")
    one["metadata"]["ownerReferences"] = [{**with_owner, **change}]
    ground.apply(platform.space("data"), one)
    ended = platform.run("teardown", None)
    assert ("persistentvolumeclaims", "of-others") not in deletions(ended)
    assert not any("of-others" in map(str, write) for write in ended.writes)


def test_the_claim_of_an_owner_that_argo_cd_made_goes_with_it(ground, platform, with_owner):
    one = claim("of-owner")
    one["metadata"]["ownerReferences"] = [with_owner]
    ground.apply(platform.space("data"), one)
    ended = platform.run("teardown")
    assert any(e["objectRef"]["name"] == "of-owner" for e in ended.audit if e["verb"] == "patch")
    assert ground.get("persistentvolumeclaim", "of-owner", platform.space("data")) is None


def test_where_orphans_could_not_be_searched_for_the_end_is_not_known(ground, deployed):
    unreadable = definition("wheels")
    unreadable["spec"]["versions"].append({**unreadable["spec"]["versions"][0], "name": "v2", "storage": False})
    unreadable["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"}}}
    ground.apply(None, unreadable)
    ground.wait("crd", "wheels.example.com", None, is_established)
    gear = {"apiVersion": "example.com/v1", "kind": "Wheels", "metadata": {"name": "one", "namespace": "default"}}
    wait_for("the kind", lambda: ground.api.ask("POST", "/apis/example.com/v1/namespaces/default/wheels", gear, missing=True))
    ended = deployed.run("teardown", 2)
    assert [line.partition(":")[0] for line in ended.report["removal"]["notSearched"]] == ["wheels.example.com"] and orphans(ended) == []
    assert set(told_of_namespaces(ended).values()) == {"not all that may be in it could be listed"}
