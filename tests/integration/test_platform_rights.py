"""rbac/platform: an account with exactly these rights does its action, is refused nothing, and needs all that it has."""

import re

import pytest
import yaml

from lib.argo import NAMESPACE, Ground, install_objects, is_established
from lib.dayfly import ROOT, wait_for
from lib.platform import Platform, component, config_map, define, definition, deployment, text_of


RBAC = ROOT / "rbac/platform"

# What is granted and not seen in the audit log, by who has it: (group, resource, verb) and why.
UNSEEN = {
    "dayfly-deploy": {("", "serviceaccounts", "create"): "only if the account `default` is not there yet: a race with Kubernetes"},
    "dayfly-bootstrap": {("rbac.authorization.k8s.io", resource, verb): "asked for by the API server while it takes a role or a binding"
                         for resource in ("roles", "clusterroles") for verb in ("escalate", "bind")},
}


def objects(directory):
    listed = yaml.safe_load((directory / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(p.name for p in directory.glob("*.yaml") if p.name != "kustomization.yaml")
    return [doc for name in listed for doc in yaml.safe_load_all((directory / name).read_text())]


def rights(documents, account):
    """All that the bindings give an account: (namespace or None, group, resource, name or None, verb)."""
    roles = {(d["kind"], d["metadata"]["name"]): d for d in documents if d["kind"].endswith("Role")}
    for binding in documents:
        if any(s["name"] == account for s in binding.get("subjects", [])):
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            for rule in role["rules"]:
                yield from ((role["metadata"].get("namespace"), group, resource, name, verb)
                            for group in rule["apiGroups"] for resource in rule["resources"]
                            for name in rule.get("resourceNames", [None]) for verb in rule["verbs"])


def uses(event):
    """The rights that a request needed. A server-side apply that created something needed two."""
    of = event["objectRef"]
    resource = "/".join(filter(None, (of["resource"], of.get("subresource"))))
    created = event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == 201
    return [(of.get("namespace"), of.get("apiGroup", ""), resource, of.get("name"), verb)
            for verb in (event["verb"], *(["create"] if created else []))]


def covers(right, used):
    return all(a in (None, "*", b) for a, b in zip(right, used))


def check(ground, documents, account, mark):
    """Of all that the account has asked for since the mark."""
    events = [e for e in ground.audit(mark, user=f"system:serviceaccount:dayfly:{account}") if "objectRef" in e]
    assert events
    refused = [(e["verb"], e["requestURI"]) for e in events if e.get("responseStatus", {}).get("code") == 403]
    assert refused == []
    used = {one for e in events for one in uses(e)}
    idle = [right for right in rights(documents, account) if not any(covers(right, one) for one in used)]
    assert {(group, resource, verb) for _, group, resource, _, verb in idle} <= set(UNSEEN.get(account, {}))


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with Ground(tmp_path_factory.mktemp("ground")) as running:
        running.apply(None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dayfly"}})
        running.apply(None, *objects(RBAC))
        yield running


def platform_of(ground, directory):
    """With all that asks for rights: credentials, a registry, and manifests of Argo CD."""
    made = Platform(ground, directory, name="shop")
    for path, text in (("git/username", "git"), ("git/password", "hush"),
                       ("registry/.dockerconfigjson", '{"auths": {"registry.example": {"auth": "YTpi"}}}')):
        (made.secrets / path).parent.mkdir(exist_ok=True)
        (made.secrets / path).write_text(text)
    (made.manifests / "argocd").mkdir(parents=True)
    (made.manifests / "argocd/install.yaml").write_text(text_of(*install_objects()))
    made.env["TEARDOWN_CONFIRMATION"] = "destroy shop/staging"
    return made


def workload(kind, life=None, **spec):
    """Of a kind, with pods of that life (lib/pod_stages.py)."""
    made = deployment(kind.lower(), **({"dayfly.dev__pod": life} if life else {}))
    made["kind"], made["spec"] = kind, {**made["spec"], **spec}
    if kind in ("DaemonSet", "Job"):
        del made["spec"]["replicas"]
    return made


CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
         "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}


def job(life):
    made = workload("Job", life)
    del made["spec"]["selector"]
    made["apiVersion"] = "batch/v1"
    made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return made


def stateful_set(life=None):
    return workload("StatefulSet", life, serviceName="data", volumeClaimTemplates=[CLAIM])


def files():
    ill = [workload("Deployment", "crashes"), workload("DaemonSet", "crashes"), job("never"), stateful_set("crashes")]
    return {"well/settings.yaml": text_of(config_map("settings")), "ill/all.yaml": text_of(*ill)}


def test_each_action_is_done_by_an_account_with_the_rights_of_its_own(ground, tmp_path):
    platform, documents = platform_of(ground, tmp_path / "platform"), objects(RBAC)
    platform.environment["timeouts"] = {"sync": "60s", "health": "8s"}
    ground.site.commit(files())
    platform.dag(component("well"), component("ill", critical=True))
    define(ground, definition("constraints.gatekeeper.sh", "v1beta1", "K8sNoRoot", "Cluster"))
    for action, code in (("deploy", 2), ("validate", 1), ("teardown", 0)):
        config, mark = ground.kubeconfig_of_account("dayfly", f"dayfly-{action}"), ground.mark()
        if action == "teardown":
            ground.wait("persistentvolumeclaim", "data-statefulset-0", platform.space("ill"), lambda c: c["status"].get("phase") == "Bound")
        platform.run(action, code, KUBECONFIG_PATH=str(config))
        check(ground, documents, f"dayfly-{action}", mark)


def test_a_teardown_that_may_not_delete_the_login_removes_nothing_and_one_without_a_login_needs_no_right_to(ground, tmp_path):
    role, = [d for d in objects(RBAC) if d["kind"] == "Role" and d["metadata"]["name"] == "dayfly-teardown"]
    secrets, = [r for r in role["rules"] if r["resources"] == ["secrets"]]
    platform = platform_of(ground, tmp_path / "platform")
    ground.site.commit({"well/settings.yaml": text_of(config_map("settings"))})
    platform.dag(component("well"))
    platform.run("deploy")
    secrets["resourceNames"] = ["dayfly-repository-other"]
    ground.apply(None, role)
    try:
        weak = {"KUBECONFIG_PATH": str(ground.kubeconfig_of_account("dayfly", "dayfly-teardown"))}
        ended = platform.run("teardown", 1, **weak)
        assert ended.report["summary"]["message"].endswith(f"lacks rights: delete secrets dayfly-repository-shop in {NAMESPACE}")
        assert ground.app("well") and ground.get("secret", "dayfly-repository-shop", NAMESPACE)
        ground.delete("secret", "dayfly-repository-shop", NAMESPACE)
        assert platform.run("teardown", **weak).states() == {"well": "Done"}
    finally:
        ground.apply(None, *objects(RBAC))


@pytest.mark.parametrize("action, right", [("deploy", "create applications.argoproj.io"), ("deploy", "create secrets dayfly-repository-shop"),
                                           ("teardown", "delete applications.argoproj.io")])
def test_a_right_that_is_missing_is_named_before_the_first_write(ground, tmp_path, action, right):
    account, (verb, resource, *_) = f"dayfly-{action}", right.split()
    role, = [d for d in objects(RBAC) if d["kind"] == "Role" and d["metadata"]["name"] == account]
    rule, = [r for r in role["rules"] if r["resources"] == [resource.partition(".")[0]]]
    rule["verbs"].remove(verb)
    platform = platform_of(ground, tmp_path / "platform")
    platform.dag(component("well"))
    ground.apply(None, role)
    try:
        mark = ground.mark()
        ended = platform.run(action, 1, KUBECONFIG_PATH=str(ground.kubeconfig_of_account("dayfly", account)))
        assert ended.report["summary"]["message"].endswith(f"lacks rights: {right} in {NAMESPACE}")
        assert {e["verb"] for e in ground.audit(mark, user=f"system:serviceaccount:dayfly:{account}")} <= {"create", "get"}
    finally:
        ground.apply(None, *objects(RBAC))


def test_the_job_of_the_page_is_taken_by_the_api_server_and_runs_as_an_account_of_these(ground):
    block, = [b for b in re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/platform.md").read_text(), re.M | re.S) if "kind: Job" in b]
    for one in yaml.safe_load_all(block):
        path = ground.api.path_of(one, one["metadata"]["namespace"])
        ground.api.ask("PATCH", f"{path}?fieldManager=tests&fieldValidation=Strict&dryRun=All", one, kind="application/apply-patch+yaml")
        account = one.get("spec", {}).get("template", {}).get("spec", {}).get("serviceAccountName", "dayfly-deploy")
        assert account in {d["metadata"]["name"] for d in objects(RBAC) if d["kind"] == "ServiceAccount"}


def test_the_account_of_the_bootstrap_installs_argo_cd_and_removes_it(tmp_path):
    documents = objects(RBAC / "bootstrap")
    with Ground(tmp_path / "ground", installed=False) as bare:
        bare.apply(None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dayfly"}}, *documents)
        platform = platform_of(bare, tmp_path / "platform")
        platform.environment["timeouts"] = {"sync": "120s", "health": "120s"}
        platform.env["KUBECONFIG_PATH"] = str(bare.kubeconfig_of_account("dayfly", "dayfly-bootstrap"))
        bare.site.commit({"data/all.yaml": text_of(stateful_set())})
        platform.dag(component("data"))
        mark = bare.mark()
        process = platform.start("deploy")
        bare.wait("crd", "appprojects.argoproj.io", None, is_established)
        bare.wait("crd", "applications.argoproj.io", None, is_established)
        # What the containers of Argo CD would do, which are only simulated here.
        wait_for("argocd-secret", lambda: (bare.get("secret", namespace=NAMESPACE) or {"items": []})["items"])
        bare.apply(NAMESPACE, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-redis"},
                               "stringData": {"auth": bare.redis.password}})
        bare.start("controller", "repo-server")
        platform.end(process, mark, 0)
        bare.wait("persistentvolumeclaim", "data-statefulset-0", platform.space("data"), lambda c: c["status"].get("phase") == "Bound")
        platform.run("teardown")
        check(bare, documents, "dayfly-bootstrap", mark)
        assert bare.get("deployment", namespace=NAMESPACE)["items"] == []
