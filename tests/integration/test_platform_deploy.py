"""deploy against a real Argo CD: Applications that become healthy, and a second deploy that writes nothing."""

import json
import os
import signal
import time

import pytest
import yaml

from lib.argo import NAMESPACE, Ground, install_objects, is_established, is_healthy
from lib.control_plane import writes
from lib.dayfly import wait_for
from lib.island import Island
from lib.kube_proxy import KubeProxy
from lib.platform import Platform, component, config_map, define, definition, deployment, stateful_set, text_of


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with Ground(tmp_path_factory.mktemp("ground")) as running:
        yield running


@pytest.fixture
def platform(ground, tmp_path, request):
    made = Platform(ground, tmp_path / "platform", name=f"p{abs(hash(request.node.name)) % 10**8}")
    yield made
    ground.remove_applications()


FOUR = {"crds/one.yaml": text_of(config_map("one")), "cm/two.yaml": text_of(config_map("two")),
        "app/deployment.yaml": text_of(deployment("app")), "side/three.yaml": text_of(config_map("three"))}
DAG = (component("crds"), component("cm", "crds"), component("app", "cm", stack="apps", critical=True), component("side"))


def test_a_platform_is_deployed_in_the_order_of_its_dag_and_again_without_a_write(ground, platform):
    commit = ground.site.commit({**FOUR, "dag.yaml": platform.dag_text(*DAG)})
    first = platform.run("deploy")
    assert first.states() == dict.fromkeys(("crds", "cm", "app", "side"), "Done")
    made = {n: ground.app(n)["metadata"]["creationTimestamp"] for n in first.states()}
    assert made["crds"] <= made["cm"] <= made["app"]
    assert {first.component(n)["revision"] for n in made} == {commit}
    versions = {n: ground.app(n)["metadata"]["resourceVersion"] for n in made}
    second = platform.run("deploy")
    assert second.writes == []
    assert {n: ground.app(n)["metadata"]["resourceVersion"] for n in made} == versions
    assert not any(c["changed"] for c in second.report["components"])


def test_what_is_no_longer_in_the_repository_is_pruned(ground, platform):
    ground.site.commit({"a/one.yaml": text_of(config_map("one")), "a/two.yaml": text_of(config_map("two"))})
    platform.dag(component("a"))
    platform.run("deploy")
    ground.site.commit({"a/one.yaml": text_of(config_map("one"))})
    platform.run("deploy")
    assert {c["metadata"]["name"] for c in ground.get("configmap", namespace=platform.space("a"))["items"]} & {"one", "two"} == {"one"}


def test_what_the_api_server_adds_to_an_object_is_no_difference(ground, platform):
    ground.site.commit({"db/all.yaml": text_of(stateful_set("db", "data"))})
    platform.dag(component("db"))
    assert platform.run("deploy").states() == {"db": "Done"}
    assert platform.run("deploy").writes == []


def test_a_change_that_the_api_server_refuses_is_told_in_its_words(ground, platform):
    ground.site.commit({"db/all.yaml": text_of(stateful_set("db", "data"))})
    platform.dag(component("db"))
    platform.run("deploy")
    ground.site.commit({"db/all.yaml": text_of(stateful_set("db", "other"))})
    ended = platform.run("deploy", 1)
    assert ended.component("db")["cause"] == "SyncFailed" and "updates to statefulset spec" in ended.component("db")["message"]


def test_only_what_is_missing_comes_again(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    platform.run("deploy")
    kept = {n: ground.app(n)["metadata"]["uid"] for n in ("crds", "cm", "app")}
    ground.patch("application", "side", NAMESPACE, {"metadata": {"finalizers": None}})
    ground.delete("application", "side", NAMESPACE)
    ground.wait_gone("application", "side", NAMESPACE)
    again = platform.run("deploy")
    assert [c["name"] for c in again.report["components"] if c["changed"]] == ["side"]
    assert {n: ground.app(n)["metadata"]["uid"] for n in kept} == kept


def test_a_failed_component_skips_what_depends_on_it_and_no_other(ground, platform):
    bad = {**FOUR, "cm/two.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\nnonsense: {a: 1}\n"}
    ground.site.commit(bad)
    platform.dag(*DAG)
    ended = platform.run("deploy", code=2)
    assert ended.states() == {"crds": "Done", "cm": "Failed", "app": "Skipped", "side": "Done"}
    failure, = [f for f in ended.report["failures"] if f["component"] == "cm"]
    assert failure["cause"] == "SyncFailed" and "nonsense" in failure["message"] + json.dumps(failure["diagnostics"])
    assert ended.report["recommendations"]


def test_a_deploy_of_which_nothing_becomes_healthy_has_failed(ground, platform):
    ground.site.commit({"a/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\nnonsense: 1\n"})
    platform.dag(component("a"), component("b", "a"))
    assert platform.run("deploy", code=1).states() == {"a": "Failed", "b": "Skipped"}


def test_a_component_that_does_not_become_healthy_is_told_with_its_events(ground, platform):
    platform.environment["timeouts"] = {"sync": "60s", "health": "6s"}
    ground.site.commit({"never/d.yaml": text_of(deployment("never", **{"dayfly.dev__pod": "never"}))})
    platform.dag(component("never"))
    ended = platform.run("deploy", code=1)
    failure, = ended.report["failures"]
    assert failure["cause"] == "HealthTimeout"
    assert any(line.startswith("Deployment never: 0 of 1 replicas are ready") for line in failure["diagnostics"]), failure


def test_an_image_that_cannot_be_pulled_is_the_cause(ground, platform):
    platform.environment["timeouts"] = {"sync": "60s", "health": "10s"}
    ground.site.commit({"never/d.yaml": text_of(deployment("never", **{"dayfly.dev__pod": "never"}))})
    platform.dag(component("never"))
    mark, process = ground.mark(), platform.start("deploy")
    space = platform.space("never")

    def pod():
        found = (ground.get("pod", namespace=space) or {"items": []})["items"]
        return next((p for p in found if p["status"].get("containerStatuses")), None)
    one = wait_for("the pod", pod)
    status = {"containerStatuses": [{**one["status"]["containerStatuses"][0], "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    ground.patch("pod", one["metadata"]["name"], space, {"status": status}, subresource="status")
    ended = platform.end(process, mark, 1)
    assert ended.component("never")["cause"] == "ImagePullFailed"
    assert any("/secrets/registry" in advice for advice in ended.report["recommendations"])


def unseen(name, life="never"):
    """A Deployment that is never ready, which Argo CD is told not to mind."""
    made = deployment(name, **{"dayfly.dev__pod": life})
    made["metadata"]["annotations"] = {"argocd.argoproj.io/ignore-healthcheck": "true"}
    return made


def test_a_critical_component_is_not_deployed_while_a_workload_of_it_is_not_ready(ground, platform):
    platform.environment["timeouts"] = {"sync": "60s", "health": "7s"}
    ground.site.commit({"web/d.yaml": text_of(unseen("web")), "side/c.yaml": text_of(config_map("side"))})
    platform.dag(component("web", critical=True), component("side", "web"))
    for _ in range(2):
        ended = platform.run("deploy", code=1)
        assert is_healthy(ground.app("web"))
        assert ended.states() == {"web": "Failed", "side": "Skipped"}
        assert ended.component("web")["cause"] == "WorkloadNotReady"
        assert ended.component("web")["message"].startswith("Deployment web: 0 of 1 replicas are ready")
    assert ended.writes == []
    platform.dag(component("web"))
    platform.run("deploy")


def test_the_workloads_of_a_critical_component_are_waited_for(ground, platform):
    ground.site.commit({"web/d.yaml": text_of(unseen("web"))})
    platform.dag(component("web", critical=True))
    mark, process = ground.mark(), platform.start("deploy")
    ground.wait_app("web", is_healthy)
    pod, = wait_for("the pod", lambda: ground.get("pod", namespace=platform.space("web"))["items"])
    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    ground.patch("pod", pod["metadata"]["name"], platform.space("web"), {"status": {"conditions": conditions}}, subresource="status")
    assert platform.end(process, mark, 0).states() == {"web": "Done"}


@pytest.mark.parametrize("life, word", [("never", "Progressing"), ("crashes", "Degraded")])
def test_a_word_of_health_that_health_yaml_allows_is_enough_for_a_deploy(ground, platform, life, word):
    made = deployment("web", **{"dayfly.dev__pod": life})
    made["spec"]["progressDeadlineSeconds"] = 1 if word == "Degraded" else 600
    ground.site.commit({"web/d.yaml": text_of(made), "side/c.yaml": text_of(config_map("side"))})
    platform.dag(component("web"), component("side", "web"))
    (platform.config / "health.yaml").write_text(yaml.safe_dump({"components": {"web": {"allowedHealth": [word]}}}))
    ended = platform.run("deploy")
    assert ended.states() == {"web": "Done", "side": "Done"} and ended.component("web")["health"] == word
    assert platform.run("validate").states() == ended.states()


def of_workloads(audit):
    return [(e["verb"], e["requestURI"]) for e in audit if e.get("objectRef", {}).get("resource") in ("deployments", "pods")]


def test_a_deploy_asks_no_more_of_critical_workloads_than_validate_does(ground, platform):
    ground.site.commit({"web/d.yaml": text_of(deployment("web"))})
    platform.dag(component("web", critical=True))
    platform.run("deploy")
    again, looked = platform.run("deploy"), platform.run("validate")
    assert len(of_workloads(looked.audit)) == 2, "its Deployment and its pods"
    assert of_workloads(again.audit) == of_workloads(looked.audit) and again.writes == []
    assert not any(c["changed"] for c in again.report["components"])


def test_the_time_of_an_action_ends_it_with_a_report(ground, platform):
    ground.site.commit({"never/d.yaml": text_of(deployment("never", **{"dayfly.dev__pod": "never"}))})
    platform.dag(component("never"), component("after", "never"))
    ended = platform.run("deploy", code=4, ACTION_TIMEOUT="8s")
    assert ended.states() == {"never": "Failed", "after": "Skipped"}
    assert ended.component("never")["cause"] == "Timeout"


def test_a_dry_run_says_what_would_be_and_writes_nothing(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    ended = platform.run("deploy", DRY_RUN="true")
    assert ended.writes == [] and not ground.get("application", namespace=NAMESPACE)["items"]
    assert {c["message"] for c in ended.report["components"]} == {"would be created and synchronized"}
    platform.run("deploy")
    ended = platform.run("deploy", DRY_RUN="true")
    assert {c["message"] for c in ended.report["components"]} == {"nothing would be written"}


def test_a_dry_run_finds_a_path_that_the_commit_does_not_have(ground, platform):
    commit = ground.site.commit(FOUR)
    platform.dag(component("crds"), component("cm", path="cm/nonexistent"))
    ended = platform.run("deploy", 2, DRY_RUN="true")
    assert ended.states() == {"crds": "Done", "cm": "Failed"} and ended.component("cm")["cause"] == "PathNotFound"
    assert ended.component("cm")["message"] == f"the repository has no folder cm/nonexistent at the commit {commit}"


def test_a_dry_run_after_a_new_commit_of_a_branch_says_that_it_would_be_synchronized(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    platform.run("deploy")
    commit = ground.site.commit({**FOUR, "side/three.yaml": text_of(config_map("three", a="2"))})
    ended = platform.run("deploy", DRY_RUN="true")
    assert ended.writes == [] and "4 objects would be written" in ended.output
    assert {c["message"] for c in ended.report["components"]} == {
        f"would be synchronized to commit {commit}, with which Argo CD has not compared it yet"}


def test_a_scope_touches_only_its_own(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    ended = platform.run("deploy", TARGET_SCOPE="stack:foundation")
    assert {c["name"] for c in ended.report["components"] if c["changed"]} == {"crds", "cm", "side"}
    assert not [w for w in ended.writes if "/applications/app" in w[1]]
    ended = platform.run("deploy", code=3, TARGET_SCOPE="stack:none")
    assert ended.writes == [] and "foundation" in ended.output and "apps" in ended.output


def test_a_component_whose_dependency_outside_of_the_scope_is_not_healthy_is_skipped(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    ended = platform.run("deploy", code=1, TARGET_SCOPE="app:app")
    assert ended.component("app")["state"] == "Skipped" and "cm" in ended.component("app")["message"]


def test_an_environment_of_another_tier_is_refused_before_the_first_write(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(component("side"))
    platform.run("deploy")
    for action in ("deploy", "validate", "teardown"):
        ended = platform.run(action, 3, ENVIRONMENT="production", TEARDOWN_CONFIRMATION=f"destroy {platform.name}/production")
        assert ended.writes == [] and f"ENVIRONMENT: is production, but {platform.name} was deployed to this cluster as staging" in ended.output
    ground.patch("application", "side", NAMESPACE, {"metadata": {"labels": {"dayfly.dev/tier": "production"}}})
    assert platform.run("deploy", ENVIRONMENT="production").writes == []
    ground.patch("application", "side", NAMESPACE, {"metadata": {"labels": {"dayfly.dev/tier": None}}})
    platform.run("deploy")
    assert ground.app("side")["metadata"]["labels"]["dayfly.dev/tier"] == "staging"


def test_an_application_of_somebody_else_stays_as_it_is(ground, platform):
    ground.site.commit(FOUR)
    ground.apply(NAMESPACE, {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "side"},
                             "spec": {"project": "default", "source": {"repoURL": ground.site.url, "path": "side", "targetRevision": "main"},
                                      "destination": {"server": "https://kubernetes.default.svc", "namespace": "other"}}})
    before = ground.app("side")["spec"]
    platform.dag(*DAG)
    ended = platform.run("deploy", code=2)
    assert ended.component("side")["cause"] == "NotOurs" and ground.app("side")["spec"] == before


def test_a_new_commit_of_a_branch_is_named_deployed_and_warned_of(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    platform.run("deploy")
    commit = ground.site.commit({**FOUR, "side/three.yaml": text_of(config_map("three", a="2"))})
    ended = platform.run("deploy")
    assert "not deterministic" in ended.output and commit in ended.output
    assert ended.report["summary"]["commit"] == commit
    assert {c["revision"] for c in ended.report["components"]} == {commit}
    assert ground.get("configmap", "three", platform.space("side"))["data"] == {"a": "2"}
    assert platform.run("deploy").writes == []


def test_a_deploy_that_is_killed_ends_the_same_when_it_is_run_again(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    for seconds in (0.1, 0.3, 0.6, 1, 1.5, 2, 3):
        process = platform.start("deploy")
        time.sleep(seconds)  # any moment is as good as another
        process.send_signal(signal.SIGKILL)
        process.communicate()
    ended = platform.run("deploy")
    assert set(ended.states().values()) == {"Done"}
    assert len(ground.get("application", namespace=NAMESPACE)["items"]) == 4
    for name in ended.states():
        assert len(ground.app(name)["status"]["history"]) == 1, "synchronized more than once"
    assert platform.run("deploy").writes == []


def test_an_api_server_that_goes_and_comes_is_waited_for(ground, platform, tmp_path):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    proxy = KubeProxy(ground, tmp_path)
    process = platform.start("deploy", KUBECONFIG_PATH=str(proxy.kubeconfig))
    wait_for("the first Application", lambda: ground.get("application", namespace=NAMESPACE)["items"])
    proxy.at = lambda request, when: True
    time.sleep(10)  # as long as it is away
    proxy.at = lambda request, when: False
    ended = platform.end(process, ground.mark(), 0)
    assert set(ended.states().values()) == {"Done"}
    assert is_healthy(ground.app("app"))


def test_a_repository_that_is_away_is_told_and_waited_for(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    ground.site.stop()
    mark = ground.mark()
    process = platform.start("deploy")
    wait_for("Argo CD to find no repository", lambda: any(
        app.get("status", {}).get("conditions") for app in ground.get("application", namespace=NAMESPACE)["items"]))
    ground.site.start()
    ended = platform.end(process, mark, 0)
    assert "which commit gitRevision main is now is not known" in ended.output
    assert set(ended.states().values()) == {"Done"}


def test_a_repository_that_came_back_is_asked_again_by_the_next_deploy(ground, platform):
    ground.site.commit({"a/one.yaml": text_of(config_map("one"))})
    platform.dag(component("a", timeout="8s"))
    ground.site.stop()
    assert platform.run("deploy", 1).component("a")["cause"] == "RepositoryUnavailable"
    ground.site.start()
    assert platform.run("deploy").states() == {"a": "Done"}


def test_a_path_that_came_with_a_later_commit_is_found_by_the_next_deploy(ground, platform):
    ground.site.commit({"b/one.yaml": text_of(config_map("one"))})
    platform.dag(component("a"))
    assert platform.run("deploy", 1).component("a")["cause"] == "PathNotFound"
    ground.site.commit({"a/one.yaml": text_of(config_map("one"))})
    assert platform.run("deploy").states() == {"a": "Done"}


MISSING = {"kus/kustomization.yaml": "resources: [missing.yaml]\n"}
REQUIRED = {"helm/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "helm/templates/a.yaml": '{{ required "say the colour" .Values.colour }}\n'}


@pytest.mark.parametrize("name, files, words", [("kus", MISSING, "missing.yaml: no such file or directory"), ("helm", REQUIRED, "say the colour")])
def test_manifests_that_cannot_be_rendered_end_a_component_at_once_with_the_words_of_the_tool(ground, platform, name, files, words):
    ground.site.commit(files)
    platform.dag(component(name, timeout="20s"))
    ended = platform.run("deploy", code=1)
    failed = ended.component(name)
    assert failed["cause"] == "ComparisonError" and words in failed["message"]
    assert not any("gitRepository" in advice for advice in ended.report["recommendations"])


def test_a_quota_that_is_full_is_told_at_once(ground, platform):
    ground.site.commit({"a/one.yaml": text_of(config_map("one"))})
    platform.dag(component("a"))
    space = platform.space("a")
    ground.apply(None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    ground.apply(space, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"configmaps": "0"}}})
    ground.wait("resourcequota", "none", space, lambda q: q.get("status", {}).get("hard"))
    ended = platform.run("deploy", code=1)
    assert ended.component("a")["cause"] == "QuotaExceeded"


def test_rights_that_are_missing_are_named_before_the_first_write(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    ground.apply("default", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak"}})
    mark = ground.mark()
    ended = platform.run("deploy", code=1, KUBECONFIG_PATH=str(ground.kubeconfig_of_account("default", "weak")))
    assert ended.report["summary"]["cause"] == "Forbidden"
    assert "patch applications.argoproj.io in argocd" in ended.report["summary"]["message"]
    assert writes(ground.audit(mark, user="system:serviceaccount:default:weak")) == []


def test_faults_of_all_files_are_named_at_once_before_any_request(ground, platform):
    platform.environment.update(domain=None, gitRevison="main")
    platform.env["ENVIRONMENT"] = "prod"
    platform.dag(component("a", "b"), component("b", "a"), component("a"))
    ended = platform.run("deploy", code=3)
    told = [line["msg"] for line in ended.lines() if line["level"] == "error"]
    for word in ("ENVIRONMENT", "environment.yaml", "gitRevison"):
        assert any(word in line for line in told), told
    assert ended.audit == []
    assert ended.report["summary"]["status"] == "invalid"


def bring_manifests(platform):
    """What a first deploy needs besides a repository."""
    platform.environment["timeouts"] = {"sync": "120s", "health": "120s"}
    (platform.manifests / "argocd").mkdir(parents=True)
    (platform.manifests / "argocd/install.yaml").write_text(text_of(*install_objects()))


def deploy_first(bare, platform, **env):
    """To a cluster without Argo CD; what its containers would do, which are only simulated here, is done beside it."""
    mark = bare.mark()
    process = platform.start("deploy", **env)
    bare.wait("crd", "appprojects.argoproj.io", None, is_established)
    bare.wait("crd", "applications.argoproj.io", None, is_established)
    wait_for("argocd-secret", lambda: (bare.get("secret", namespace=NAMESPACE) or {"items": []})["items"])
    bare.apply(NAMESPACE, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-redis"},
                           "stringData": {"auth": bare.redis.password}})
    bare.start("controller", "repo-server")
    return platform.end(process, mark, 0)


def test_a_first_deploy_installs_argo_cd_and_the_second_writes_nothing(tmp_path):
    with Ground(tmp_path / "ground", installed=False) as bare:
        platform = Platform(bare, tmp_path / "platform")
        bare.site.commit(FOUR)
        platform.dag(*DAG)
        (platform.secrets / "registry").mkdir()
        (platform.secrets / "registry/.dockerconfigjson").write_text('{"auths": {"registry.example": {"auth": "YTpi"}}}')
        ended = platform.run("deploy", 1)
        assert ended.report["summary"]["cause"] == "ArgoCDMissing" and "--manifests" in ended.report["summary"]["message"]
        assert ["core-install.yaml" in advice and "--manifests" in advice for advice in ended.report["recommendations"]] == [True]
        bring_manifests(platform)
        ended = platform.run("deploy", DRY_RUN="true")
        assert ended.writes == [] and ended.report["bootstrap"] and all(line.startswith("would create ") for line in ended.report["bootstrap"])
        ended = deploy_first(bare, platform)
        assert set(ended.states().values()) == {"Done"}
        assert any(line.startswith("created CustomResourceDefinition") for line in ended.report["bootstrap"])
        for component_name in ended.states():
            space = platform.space(component_name)
            assert bare.get("secret", "dayfly-registry", space)["type"] == "kubernetes.io/dockerconfigjson"
            assert bare.get("serviceaccount", "default", space)["imagePullSecrets"] == [{"name": "dayfly-registry"}]
        assert platform.run("deploy").writes == []


def test_a_first_deploy_reaches_the_api_server_and_the_repository_and_asks_nobody_else(tmp_path):
    with Ground(tmp_path / "ground", installed=False) as bare, Island(bare.port, bare.site.port) as island:
        platform = Platform(bare, tmp_path / "platform")
        bare.site.commit({**FOUR, "dag.yaml": platform.dag_text(*DAG, component("base", bootstrap=True)), "base/c.yaml": text_of(config_map("base"))})
        bring_manifests(platform)
        platform.prefix = island.prefix
        assert set(deploy_first(bare, platform).states().values()) == {"Done"}
        assert island.strangers() == set()
        assert platform.run("deploy").writes == []
        assert island.strangers() == set()
        platform.run("validate")
        assert island.strangers() == set()


def test_an_island_sees_whom_else_a_deploy_asks(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(component("side"))
    with Island(ground.port, ground.site.port) as island:
        platform.prefix = island.prefix
        platform.run("deploy", PUSHGATEWAY_URL="http://192.0.2.7:9091")
        assert island.strangers() == {"192.0.2.7:9091"}


def test_what_others_made_is_not_taken_over_by_the_bootstrap(ground, platform):
    space = f"{platform.name}-others"
    ground.apply(None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    ground.apply(space, config_map("precious"))
    foreign = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": {"team": "mine"}}}
    ground.site.commit({"base/n.yaml": text_of(foreign), "base/own.yaml": text_of(config_map("own", space))})
    platform.dag(component("base", bootstrap=True))
    ended = platform.run("deploy", code=1)
    assert ended.report["summary"]["cause"] == "NotOurs" and space in ended.report["summary"]["message"]
    assert "team" not in ground.get("namespace", space)["metadata"].get("labels", {})
    ground.site.commit({"base/own.yaml": text_of(config_map("own", space))})
    platform.run("deploy")
    assert ground.get("configmap", "own", space)["metadata"]["labels"]["dayfly.dev/environment"] == platform.name
    assert platform.run("deploy").writes == []


def test_a_component_of_the_bootstrap_may_define_a_kind_and_have_an_object_of_it(ground, platform):
    group = f"{platform.name}.example"
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}}
    ground.site.commit({"base/a.yaml": text_of(definition(group, "v1", "Thing")), "base/b.yaml": text_of(thing)})
    platform.dag(component("base", bootstrap=True, namespace="default"))
    assert platform.run("deploy").states() == {"base": "Done"}
    assert platform.run("validate").states() == {"base": "Done"}
    ground.delete("crd", f"things.{group}")


def test_a_component_of_the_bootstrap_needs_no_namespace_of_its_own(ground, platform):
    definition = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": platform.name}, "rules": []}
    ground.site.commit({"base/role.yaml": text_of(definition)})
    platform.dag(component("base", bootstrap=True, namespace=None))
    assert platform.run("deploy").states() == {"base": "Done"}
    assert ground.get("clusterrole", platform.name)


def test_the_account_of_a_namespace_keeps_what_others_pull_images_with(ground, platform):
    ground.site.commit({"a/one.yaml": text_of(config_map("one"))})
    platform.dag(component("a"))
    space = platform.space("a")
    ground.apply(None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    ground.wait("serviceaccount", "default", space, lambda a: True)
    ground.patch("serviceaccount", "default", space, {"imagePullSecrets": [{"name": "tenant-pull"}]})
    (platform.secrets / "registry").mkdir()
    (platform.secrets / "registry/.dockerconfigjson").write_text('{"auths": {}}')
    platform.run("deploy")
    assert ground.get("serviceaccount", "default", space)["imagePullSecrets"] == [{"name": "tenant-pull"}, {"name": "dayfly-registry"}]
    assert platform.run("deploy").writes == []


def test_an_argo_cd_of_others_stays_even_if_a_part_of_ours_is_missing_in_it(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    (platform.manifests / "argocd").mkdir(parents=True)
    extra = deployment("argocd-extra")
    (platform.manifests / "argocd/install.yaml").write_text(text_of(*install_objects(), extra))
    ended = platform.run("deploy")
    assert "others installed it" in ended.output and "bootstrap" not in ended.report
    assert ground.get("deployment", "argocd-extra", NAMESPACE) is None


def test_what_is_no_regular_file_is_refused_and_not_waited_for(ground, platform):
    ground.site.commit(FOUR)
    os.mkfifo(platform.config / "dag.yaml")
    assert "dag.yaml is not a regular file" in platform.run("deploy", code=3).output


def test_a_report_that_could_not_be_written_is_told_before_the_first_write(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(*DAG)
    ended = platform.run("deploy", code=3, REPORT_PATH="/nowhere/report.json")
    assert "REPORT_PATH" in ended.output and ended.audit == []


def test_a_commit_that_cannot_be_named_leaves_no_directory(ground, platform):
    ground.site.commit(FOUR)
    platform.dag(component("crds"), component("base", bootstrap=True))
    ground.site.stop()
    platform.run("deploy", code=1)
    ground.site.start()
    assert not list(platform.directory.glob("dayfly-platform-*"))


# ---- hooks

@pytest.fixture(scope="module")
def workflows(ground):
    """The kind alone, as Argo Workflows defines it; its controller's part is end_workflow(). Once: Argo CD takes minutes to see a kind
    that went and came back."""
    define(ground, definition("argoproj.io", "v1alpha1", "Workflow"))
    yield
    ground.delete("crd", "workflows.argoproj.io")


def hook(name, phase):
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": name, "annotations": {"argocd.argoproj.io/hook": phase}},
            "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "registry.example/main:1"}}]}}


def end_workflow(ground, name, space, phase, message=""):
    """What markWorkflowPhase() of argo-workflows writes (workflow/controller/operator.go)."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    labels = {"workflows.argoproj.io/phase": phase, "workflows.argoproj.io/completed": "true"}
    status = {"phase": phase, "message": message, "startedAt": now, "finishedAt": now, "conditions": [{"type": "Completed", "status": "True"}]}
    ground.patch("workflow", name, space, {"metadata": {"labels": labels}, "status": status})


@pytest.mark.parametrize("phase", ["PreSync", "PostSync"])
def test_a_deploy_waits_for_the_workflow_of_a_hook_which_the_next_one_does_not_run_again(ground, platform, workflows, phase):
    ground.site.commit({"db/hook.yaml": text_of(hook("migrate", phase)), "db/c.yaml": text_of(config_map("db")), **FOUR})
    platform.dag(component("db"), component("side", "db"))
    space, mark, process = platform.space("db"), ground.mark(), platform.start("deploy")
    made = ground.wait("workflow", "migrate", space, lambda w: True)
    ground.wait_app("db", lambda app: "waiting for completion of hook" in app["status"].get("operationState", {}).get("message", ""))
    assert bool(ground.get("configmap", "db", space)) == (phase == "PostSync") and ground.app("side") is None
    end_workflow(ground, "migrate", space, "Succeeded")
    assert platform.end(process, mark, 0).states() == {"db": "Done", "side": "Done"}
    assert platform.run("deploy").writes == []
    assert ground.get("workflow", "migrate", space)["metadata"]["uid"] == made["metadata"]["uid"]
    ended = platform.run("teardown", TEARDOWN_CONFIRMATION=f"destroy {platform.name}/staging")
    assert ended.report["removal"]["orphans"] == [] and ground.get("workflow", "migrate", space) is None


def test_a_workflow_of_a_hook_that_failed_fails_its_component_with_its_message(ground, platform, workflows):
    platform.environment["retries"]["maxAttempts"] = 1
    ground.site.commit({"db/hook.yaml": text_of(hook("migrate", "PreSync")), "db/c.yaml": text_of(config_map("db")), **FOUR})
    platform.dag(component("db"), component("side", "db"))
    mark, process = ground.mark(), platform.start("deploy")
    ground.wait("workflow", "migrate", platform.space("db"), lambda w: True)
    end_workflow(ground, "migrate", platform.space("db"), "Failed", "table shop.orders is locked")
    ended = platform.end(process, mark, 1)
    assert ended.states() == {"db": "Failed", "side": "Skipped"} and ended.component("db")["cause"] == "SyncFailed"
    assert "Workflow migrate failed: table shop.orders is locked" in ended.component("db")["message"]
    assert ground.get("configmap", "db", platform.space("db")) is None


def test_while_a_branch_moves_nothing_but_the_expected_commit_is_deployed(ground, platform, workflows):
    files = {"db/hook.yaml": text_of(hook("migrate", "PreSync")), "db/c.yaml": text_of(config_map("db")), **FOUR}
    first = ground.site.commit(files)
    platform.dag(component("db"), component("side", "db"))
    mark, process = ground.mark(), platform.start("deploy", EXPECTED_COMMIT=first)
    ground.wait("workflow", "migrate", platform.space("db"), lambda w: True)
    ground.site.commit({**files, "side/four.yaml": text_of(config_map("four"))})
    end_workflow(ground, "migrate", platform.space("db"), "Succeeded")
    ended = platform.end(process, mark, 2)
    assert ended.states() == {"db": "Done", "side": "Failed"} and ended.component("side")["cause"] == "CommitChanged"
    assert f"moved on from the commit {first}" in ended.component("side")["message"]
    assert ground.app("db")["status"]["operationState"]["operation"]["sync"]["revision"] == first
    assert ground.get("configmap", "four", platform.space("side")) is None
