"""Argo CD in the real cluster, from the manifests that a bootstrap is given."""

import pytest

from lib.argo import application, is_healthy
from lib.argo_cluster import InCluster
from lib.cluster import Calm
from lib.dayfly import ROOT
from lib.platform import Platform, component
from lib.platform_repository import config_map, document
from lib.pods import TAG, Pods, config_map_of, image

pytestmark = pytest.mark.xdist_group("argo-cluster")  # it has one namespace of its own
CHART = {"a/Chart.yaml": document({"apiVersion": "v2", "name": "a", "version": "0.1.0"}),
         "a/values.yaml": document({"value": "1"}),
         "a/templates/map.yaml": document(config_map("map", value="VALUE")).replace("VALUE", '"{{ .Values.value }}"')}


@pytest.fixture
def argo(cluster, tmp_path, request):
    """Installed, or to be installed by a test of @pytest.mark.parametrize("argo", [False], indirect=True)."""
    with Calm(alone=False), InCluster(cluster, tmp_path, installed=getattr(request, "param", True)) as running:
        yield running


def test_an_application_of_a_chart_is_synced_by_pods(argo):
    revision = argo.site.commit(CHART)
    argo.namespace.apply(application("a", argo.site.url, namespace="argo-a"))
    argo.namespace.kubectl("patch", "application", "a", "--type=merge", "-p", document(
        {"operation": {"sync": {"revision": revision, "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"]}}}))
    argo.namespace.wait("application", "a", is_healthy)
    api = argo.cluster.api
    assert api.ask("GET", api.path("configmap", "argo-a", "map"))["data"] == {"value": "1"}
    argo.namespace.kubectl("delete", "application", "a", "--timeout=60s")
    assert api.ask("GET", api.path("configmap", "argo-a", "map"), missing=True) is None
    api.ask("DELETE", "/api/v1/namespaces/argo-a")


@pytest.mark.parametrize("argo", [False], indirect=True)
def test_a_deploy_brings_argo_cd_into_the_cluster_and_syncs_with_it(argo, tmp_path):
    argo.site.commit(CHART)
    platform = Platform(argo, tmp_path / "platform", "real")
    platform.manifests = argo.folder.parent
    platform.environment["timeouts"] = {"sync": "3m", "health": "3m"}
    platform.dag(component("a"))
    assert platform.run("deploy").writes
    assert is_healthy(argo.namespace.get("application", "a"))
    api = argo.cluster.api
    assert api.ask("GET", api.path("configmap", platform.space("a"), "map"))["data"] == {"value": "1"}
    assert platform.run("deploy").writes == []
    platform.run("teardown", TEARDOWN_CONFIRMATION="destroy real/staging")
    assert api.ask("GET", api.path("configmap", platform.space("a"), "map"), missing=True) is None
    api.ask("DELETE", f"/api/v1/namespaces/{platform.space('a')}", missing=True)


def may_deploy(namespace, account):
    """The account of a step, with all that deploy and teardown need of this cluster."""
    namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}},
                    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": namespace.name},
                     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                     "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace.name}]})


def test_an_executor_deploys_a_platform_from_a_pod_and_takes_it_away(argo, home, namespace, tofu, tmp_path):
    argo.site.commit(CHART)
    platform = Platform(argo, tmp_path / "platform", namespace.name, timeouts={"sync": "3m", "health": "3m"})
    platform.dag(component("a"))
    platform.write_environment()
    may_deploy(namespace, "platform")
    namespace.apply(config_map_of(platform.config, "platform"))
    placement = {"image": image(argo.cluster, "runner", f"{TAG}-platform", WITH_TOFU=str(ROOT / "build/dayfly-platform")),
                 "serviceAccountName": "platform", "podTemplate": {"spec": {"automountServiceAccountToken": True}},
                 "configMapMounts": [{"name": "platform", "mountPath": "/module"}]}
    with Pods(home, namespace, tofu) as pods:
        home.dayfly("create", "-f", "-", input=document(
            {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "shop"},
             "spec": {"source": {"url": "file:///module/module.tar.gz", "kind": "archive"}, "runtime": {"name": "platform"},
                      "environment": [{"name": "ENVIRONMENT", "value": "staging"}], "placement": placement}}))
        assert pods.run("shop")["run"]["status"]["reason"] == "Applied"
        argo.namespace.wait("application", "a", is_healthy)
        assert pods.run("shop")["run"]["status"]["reason"] == "NoChanges"
        assert pods.run("shop", "--action", "validate")["run"]["status"]["reason"] == "Validated"
        assert pods.run("shop", "--action", "destroy")["run"]["status"]["reason"] == "Destroyed"
        api = argo.cluster.api
        assert api.ask("GET", api.path("configmap", platform.space("a"), "map"), missing=True) is None
    api.ask("DELETE", f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{namespace.name}")
    api.ask("DELETE", f"/api/v1/namespaces/{platform.space('a')}", missing=True)
