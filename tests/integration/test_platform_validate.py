"""validate against a real Argo CD: what is well, what is not, and what it says of the cluster's rules. It only reads."""

import json

import pytest
import yaml

from lib.argo import NAMESPACE, Ground
from lib.control_plane import READS
from lib.dayfly import wait_for
from lib.platform import Platform, component, config_map, define, definition, deployment, text_of


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with Ground(tmp_path_factory.mktemp("ground")) as running:
        yield running


@pytest.fixture
def platform(ground, tmp_path, request):
    made = Platform(ground, tmp_path / "platform", name=f"p{abs(hash(request.node.name)) % 10**8}")
    yield made
    ground.remove_applications()


@pytest.fixture
def deployed(ground, platform):
    """Two components: `web`, a critical one with a Deployment of two replicas, and `side` with another one of one."""
    ground.site.commit({"web/deployment.yaml": text_of(deployment("web", replicas=2)), "web/settings.yaml": text_of(config_map("settings")),
                        "side/deployment.yaml": text_of(deployment("side"))})
    platform.dag(component("side"), component("web", "side", critical=True))
    platform.run("deploy")
    return platform


def criteria(platform, **components):
    (platform.config / "health.yaml").write_text(yaml.safe_dump({"components": components}))


def break_pods(ground, platform, name, life, **spec):
    """The Deployment's new pods have that life; its old ones stay."""
    template = {"metadata": {"labels": {"dayfly.dev/pod": life}}}
    return ground.patch("deployment", name, platform.space(name), {"spec": {"template": template, **spec}})


def sicken(ground, platform, name):
    """One pod of the component's Deployment is not ready any more; nothing else changes."""
    space = platform.space(name)
    pod = ground.get("pod", namespace=space)["items"][0]["metadata"]["name"]
    conditions = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
    ground.patch("pod", pod, space, {"status": {"conditions": conditions}}, subresource="status")
    ground.wait("deployment", name, space, lambda d: d["status"].get("unavailableReplicas") == 1)
    ground.wait_app(name, lambda app: app["status"]["health"]["status"] == "Progressing")


def without_times(report):
    text = json.dumps(report, sort_keys=True)
    timed = {"startedAt", "finishedAt", "durationSeconds", "waitedSeconds"}
    return json.loads(text, object_hook=lambda o: {k: v for k, v in o.items() if k not in timed})


def test_a_healthy_platform_is_valid_and_reports_are_equal_but_for_times(deployed):
    seen = [deployed.run("validate") for _ in range(10)]
    assert seen[0].states() == {"side": "Done", "web": "Done"}
    assert {c["health"] for c in seen[0].report["components"]} == {"Healthy"}
    assert all(without_times(one.report) == without_times(seen[0].report) for one in seen)


def test_an_account_that_may_only_read_is_enough_and_nothing_else_is_asked_of_the_server(ground, deployed):
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": list(READS)}]
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
    ground.apply("default", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
                 {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": rules},
                 {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
                  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}, "subjects": [subject]})
    config, mark = ground.kubeconfig_of_account("default", "reader"), ground.mark()
    deployed.run("validate", KUBECONFIG_PATH=str(config))
    verbs = {e["verb"] for e in ground.audit(mark, user="system:serviceaccount:default:reader")}
    assert verbs and verbs <= set(READS)


def test_a_critical_deployment_whose_new_image_does_not_start_is_a_failure(ground, deployed):
    break_pods(ground, deployed, "web", "crashes")
    ground.wait("deployment", "web", deployed.space("web"), lambda d: d["status"].get("unavailableReplicas", 0) > 0)
    seen = deployed.run("validate", 1)
    web = seen.component("web")
    assert web["state"] == "Failed" and "replicas are ready" in web["message"]
    failure = next(f for f in seen.report["failures"] if f.get("component") == "web")
    assert failure["cause"] == "WorkloadNotReady"
    said = wait_for("restarts in the report", lambda: [
        line for f in deployed.run("validate", 1).report["failures"] for line in f["diagnostics"] if "2 restarts" in line])
    assert "ended last with code 1 (Error)" in said[0]


def test_what_is_not_critical_degrades_the_platform(ground, deployed):
    break_pods(ground, deployed, "side", "never", progressDeadlineSeconds=1)
    ground.wait_app("side", lambda app: app["status"]["health"]["status"] == "Degraded")
    seen = deployed.run("validate", 2)
    assert seen.states() == {"side": "Degraded", "web": "Done"}
    assert seen.component("side")["health"] == "Degraded"


def test_a_change_by_hand_degrades_the_platform(ground, deployed):
    ground.patch("configmap", "settings", deployed.space("web"), {"data": {"a": "2"}})
    ground.wait_app("web", lambda app: app["status"]["sync"]["status"] == "OutOfSync")
    seen = deployed.run("validate", 2)
    assert seen.states() == {"side": "Done", "web": "Degraded"}
    assert seen.component("web")["sync"] == "OutOfSync"


def test_a_new_commit_of_a_branch_is_not_what_the_cluster_is_like(ground, deployed):
    before = deployed.run("validate").report["summary"]["commit"]
    files = {f"{name}/deployment.yaml": text_of(deployment(name, replicas=1)) for name in ("web", "side")}
    commit = ground.site.commit({**files, "web/settings.yaml": text_of(config_map("settings", a="2"))})
    seen = deployed.run("validate", 2)
    assert seen.states() == {"side": "Degraded", "web": "Degraded"} and seen.component("web")["cause"] == "OutOfSync"
    assert f"{commit}, to which a deploy would synchronize it; it is at {before}" in seen.component("web")["message"]
    deployed.run("deploy")
    deployed.run("validate")


@pytest.mark.parametrize("name, code, state", [("side", 2, "Degraded"), ("web", 1, "Failed")])
def test_a_missing_application_counts_as_much_as_its_component(ground, deployed, name, code, state):
    ground.remove_applications(name)
    seen = deployed.run("validate", code)
    assert seen.states()[name] == state and seen.component(name)["health"] == "Missing"


@pytest.mark.parametrize("wish", [{"allowedHealth": ["Progressing"]}, {"minReadyReplicas": 0}, {"ignoreResources": ["Deployment/side"]}],
                         ids=json.dumps)
def test_health_yaml_makes_a_degraded_platform_a_healthy_one(ground, deployed, wish):
    sicken(ground, deployed, "side")
    deployed.run("validate", 2)
    criteria(deployed, side=wish)
    deployed.run("validate", 0)


def test_fewer_ready_replicas_of_a_critical_component_do_where_health_yaml_says_so(ground, deployed):
    sicken(ground, deployed, "web")
    deployed.run("validate", 1)
    criteria(deployed, web={"minReadyReplicas": 2})
    deployed.run("validate", 1)
    criteria(deployed, web={"minReadyReplicas": 1})
    deployed.run("validate", 0)


def test_the_replicas_that_health_yaml_asks_for_stand_in_the_message(deployed):
    criteria(deployed, web={"minReadyReplicas": 3})
    message = deployed.run("validate", 1).component("web")["message"]
    assert "2 of 2 replicas are ready" in message and "minReadyReplicas of health.yaml is 3" in message


def test_the_log_names_each_component_that_is_not_well(ground, deployed):
    ground.remove_applications("side", "web")
    lines = {line["component"]: (line["level"], line["msg"]) for line in deployed.run("validate", 1).lines() if line["msg"].startswith("Missing: ")}
    assert {name: level for name, (level, _) in lines.items()} == {"side": "warn", "web": "error"}
    assert "has no Application web" in lines["web"][1]


def test_an_application_that_the_dag_has_no_more_is_named_and_changes_no_exit_code(deployed):
    deployed.dag(component("web", critical=True))
    for action, env in (("deploy", {}), ("validate", {}), ("teardown", {"DRY_RUN": "true", "TEARDOWN_CONFIRMATION": f"destroy {deployed.name}/staging"})):
        ended = deployed.run(action, 0, **env)
        assert ended.report["notInDag"] == ["side"] and set(ended.states()) == {"web"}, action
        assert any(line["level"] == "warn" and "the Application side of this environment" in line["msg"] for line in ended.lines()), action
        assert any("TARGET_SCOPE=app:NAME" in advice for advice in ended.report["recommendations"]), action
    assert "notInDag" not in deployed.run("validate", TARGET_SCOPE="app:web").report


def test_an_object_of_two_components_is_warned_of(ground, platform):
    ground.site.commit({"one/x.yaml": text_of(config_map("x"))})
    platform.dag(component("one"), component("two", "one", path="one", namespace=platform.space("one")))
    ended = platform.run("deploy")
    assert ended.component("two")["warning"].startswith("SharedResourceWarning: ConfigMap/x ") and "warning" not in ended.component("one")
    assert any(line["level"] == "warn" and "two: SharedResourceWarning" in line["msg"] for line in ended.lines())
    assert any("all components but one" in advice for advice in ended.report["recommendations"])
    ground.wait_app("one", lambda app: app["status"]["sync"]["status"] == "OutOfSync")
    ended = platform.run("validate", 2)
    assert ended.component("one")["warning"].startswith("SharedResourceWarning: ")
    assert any(line["level"] == "warn" and line["component"] == "one" and "SharedResourceWarning" in line["msg"] for line in ended.lines())


def test_a_component_without_an_object_is_warned_of(ground, platform):
    ground.site.commit({"empty/README.md": "nothing", "one/x.yaml": text_of(config_map("x"))})
    platform.dag(component("empty"), component("one"))
    for action in ("deploy", "validate"):
        ended = platform.run(action)
        assert ended.component("empty")["warning"].startswith("NoObjects: ") and "warning" not in ended.component("one"), action
    assert "empty | foundation | Done" in (platform.directory / "report.md").read_text() and "NoObjects: " in (platform.directory / "report.md").read_text()


def test_criteria_excuse_nothing_that_they_do_not_explain(ground, deployed):
    criteria(deployed, web={"minReadyReplicas": 1})
    ground.kill("controller")
    try:
        ground.patch("application", "web", NAMESPACE, {"status": {"health": {"status": "Degraded"}}})
        assert deployed.run("validate", 1).component("web")["health"] == "Degraded"
        ground.patch("application", "web", NAMESPACE, {"status": {"health": {"status": "Missing"}, "resources": []}})
        deployed.run("validate", 1)
    finally:
        ground.start("controller")
    ground.refresh("web")
    ground.wait_app("web", lambda app: app["status"]["health"]["status"] == "Healthy")


def test_applications_of_other_names_with_our_label_do_not_count(ground, deployed):
    ground.apply(NAMESPACE, {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                             "metadata": {"name": "stranger", "labels": {"dayfly.dev/environment": deployed.name}},
                             "spec": {"project": "default", "source": {"repoURL": ground.site.url, "path": "none", "targetRevision": "main"},
                                      "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"}}})
    assert set(deployed.run("validate").states()) == {"web", "side"}


def test_a_component_of_the_bootstrap_is_judged_by_its_objects(ground, platform):
    ground.site.commit({"base/all.yaml": text_of(config_map("base"), deployment("base"))})
    platform.dag(component("base", bootstrap=True, critical=True))
    platform.run("deploy")
    space = platform.space("base")
    assert platform.run("validate").states() == {"base": "Done"}
    break_pods(ground, platform, "base", "never")
    ground.wait("deployment", "base", space, lambda d: d["status"].get("unavailableReplicas", 0) > 0)
    assert "Deployment base: " in platform.run("validate", 1).component("base")["message"]
    ground.delete("configmap", "base", space)
    assert platform.run("validate", 1).component("base")["message"] == "ConfigMap base: it is not there"


def test_a_kind_that_nobody_serves_is_asked_for_once(ground, platform):
    things = [{"apiVersion": "none.example/v1", "kind": "Thing", "metadata": {"name": f"t{i}"}} for i in range(5)]
    ground.site.commit({"base/all.yaml": text_of(*things)})
    platform.dag(component("base", bootstrap=True))
    seen = platform.run("validate", 2)
    assert seen.component("base")["message"] == "Thing t0: it is not there"
    assert [e["requestURI"] for e in seen.audit if "none.example" in e["requestURI"]] == ["/apis/none.example/v1"]


def test_a_server_that_does_not_answer_is_a_failure(ground, deployed, tmp_path):
    config = json.loads(ground.kubeconfig_of("dayfly").read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "nobody").write_text(json.dumps(config))
    deployed.run("validate", 1, KUBECONFIG_PATH=str(tmp_path / "nobody"))


# ---- compliance

def test_rules_that_nobody_installed_are_not_assessed(deployed):
    seen = deployed.run("validate").report["compliance"]
    assert {seen[k]["status"] for k in ("policyReports", "clusterPolicyReports", "gatekeeper")} == {"not assessed"}
    assert seen["podSecurity"]["status"] == "assessed"


def test_results_of_policies_are_counted_and_name_what_offends(ground, deployed):
    define(ground, definition("wgpolicyk8s.io", "v1alpha2", "PolicyReport"),
           definition("wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport", "Cluster"))
    pods = [{"kind": "Pod", "namespace": "default", "name": name} for name in ("one", "two")]
    results = [{"policy": "no-root", "rule": "user", "result": "fail", "message": "it runs as root", "resources": [pod]} for pod in pods]
    ground.apply("default", {"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": {"name": "pods"},
                             "results": [*results, {"policy": "no-root", "result": "pass", "resources": [pods[0]]}]},
                 {"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": {"name": "sums"},
                  "summary": {"pass": 4, "skip": 1}})
    try:
        seen = wait_for("reports", lambda: deployed.run("validate").report["compliance"])
        assert {k: seen["policyReports"][k] for k in ("pass", "fail", "warn", "error", "skip")} == {
            "pass": 5, "fail": 2, "warn": 0, "error": 0, "skip": 1}
        assert [(o["kind"], o["namespace"], o["name"], o["policy"]) for o in seen["policyReports"]["objects"]] == [
            ("Pod", "default", "one", "no-root"), ("Pod", "default", "two", "no-root")]
        assert seen["clusterPolicyReports"] == {"status": "assessed", "pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 0, "objects": []}
    finally:
        for plural in ("policyreports", "clusterpolicyreports"):
            ground.delete("crd", f"{plural}.wgpolicyk8s.io")


def test_violations_of_constraints_are_counted_and_name_what_offends(ground, deployed):
    for kind in ("K8sNoRoot", "K8sLabels", "K8sMiddle"):  # the server gives them in this order
        define(ground, definition("constraints.gatekeeper.sh", "v1beta1", kind, "Cluster"))
    violation = {"kind": "Pod", "namespace": "default", "name": "one", "message": "it runs as root", "enforcementAction": "deny"}
    for kind, status in (("K8sNoRoot", {"status": {"totalViolations": 7, "violations": [violation]}}), ("K8sLabels", {})):
        ground.apply(None, {"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": kind, "metadata": {"name": "all"}, **status})
    try:
        seen = deployed.run("validate").report["compliance"]["gatekeeper"]
        assert {k: seen[k] for k in ("constraints", "violations", "notAudited")} == {"constraints": 2, "violations": 7, "notAudited": 1}
        assert seen["objects"] == [{"constraint": "K8sNoRoot", "policy": "all", "result": "deny", "kind": "Pod", "namespace": "default",
                                    "name": "one", "message": "it runs as root"}]
    finally:
        for plural in ("k8snoroots", "k8slabelss", "k8smiddles"):
            ground.delete("crd", f"{plural}.constraints.gatekeeper.sh")


def test_levels_of_pod_security_are_told_for_each_namespace(ground, deployed):
    ground.patch("namespace", deployed.space("web"), None, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
    seen = deployed.run("validate").report["compliance"]["podSecurity"]["namespaces"]
    assert seen == [{"namespace": deployed.space("side"), "enforce": "not set", "audit": "not set", "warn": "not set"},
                    {"namespace": deployed.space("web"), "enforce": "baseline", "audit": "not set", "warn": "not set"}]
