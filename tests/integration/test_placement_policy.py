"""Who may set what in the pod of a step (placement.allow), and what no pod gets: by the REST API, and on a real cluster by the
custom resources of somebody who has the roles `editor` and `workflows` alone."""

import hashlib
import json
import ssl
import urllib.error
import urllib.request

import pytest

from lib import crds
from lib.dayfly import Server, wait_for
from lib.pods import runner_image
from lib.release import Release

CONFIG = """
auth: {tokenFile: %s}
classes: {small: {placement: {resources: {limits: {memory: 1Gi}}}}}
kubernetes: {placement: {serviceAccountName: steps}}
placement:
  allow: {write: {executor: {secrets: [team-*]}}}
  never: {serviceAccounts: [spawner]}
"""
MODULE = 'resource "terraform_data" "a" {}'
TEMPLATE = {"podTemplate": {"spec": {"hostPID": True}}}


class Policy:
    """A service with two callers."""

    def __init__(self, home):
        tokens = home.directory / "tokens"
        tokens.write_text("".join(f"{role} {role} {hashlib.sha256(role.encode()).hexdigest()}\n" for role in ("write", "admin")))
        tokens.chmod(0o600)
        self.home, self.server = home, Server(home, config=CONFIG % tokens)

    def ask(self, role, method, path, body, **headers):
        """(status, problem or document)"""
        status, _, answer = self.server.request(method, path, body, {"Authorization": f"Bearer {role}",
                                                                     "Content-Type": "application/json", **headers})
        return status, json.loads(answer)

    def refused(self, *args, **kwargs):
        """The message of a refusal by the policy."""
        status, answer = self.ask(*args, **kwargs)
        assert (status, answer["type"].rpartition("/")[2]) == (403, "PlacementDenied"), answer
        return answer["detail"]

    def done(self, *args, **kwargs):
        status, answer = self.ask(*args, **kwargs)
        assert status in (200, 201), answer
        return answer

    def finish(self, run):
        path = f"/v1/runs/{run}"
        wait_for(f"{run} to end", lambda: self.ask("admin", "GET", path, None)[1]["status"].get("finishedAt"))

    def executor(self, name="net", **spec):
        module = self.home.module("net", MODULE)
        return {"metadata": {"name": name}, "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, **spec}}


@pytest.fixture
def policy(home):
    made = Policy(home)
    with made.server:
        yield made


def run(placement, **more):
    return {"action": "dry-run", "placement": placement, **more}


def test_a_run_by_write_chooses_where_it_runs_and_nothing_that_it_can_reach(policy):
    policy.done("write", "POST", "/v1/executors", policy.executor())
    runs = "/v1/executors/net/runs"
    policy.done("write", "POST", runs, run({"nodeSelector": {"a": "b"}, "labels": {"c": "d"}}))
    said = policy.refused("write", "POST", runs, run(TEMPLATE))
    assert said == ("placement.podTemplate: a caller with the role write may not set it for a Run; the operator can add it to "
                    "placement.allow.write.run.fields of the service's configuration, or a caller with the role admin can set it")
    for placement in ({"serviceAccountName": "steps"}, {"image": "evil:1"}, {"env": [{"name": "A", "value": "b"}]},
                      {"secretMounts": [{"name": "team-db", "mountPath": "/s"}]}):
        assert "may not set it for a Run" in policy.refused("write", "POST", runs, run(placement))
    large = {"resources": {"limits": {"memory": "2Gi"}}}
    assert "2Gi is more than the class small allows (1Gi)" in policy.refused("write", "POST", runs, run(large, **{"class": "small"}))
    policy.done("write", "POST", runs, run(large))
    policy.done("admin", "POST", runs, run(TEMPLATE))
    assert len(policy.ask("write", "GET", "/v1/executors/net/runs", None)[1]["items"]) == 3


def test_an_executor_by_write_names_what_the_lists_have(policy):
    executors = "/v1/executors"
    mount = {"secretMounts": [{"name": "team-db", "mountPath": "/s"}], "serviceAccountName": "steps"}
    policy.done("write", "POST", executors, policy.executor(placement=mount))
    for name, spec, said in (
            ("a", {"placement": TEMPLATE}, "placement.podTemplate: a caller with the role write may not set it for an Executor"),
            ("b", {"placement": {"serviceAccountName": "other"}}, 'may not take the service account "other"'),
            ("c", {"placement": {"envFrom": [{"secretRef": {"name": "db"}}]}}, "placement.envFrom[0].secretRef.name: "),
            ("d", {"environment": [{"name": "EPHEMERAL_CONFIG_SERVICE_ACCOUNT", "value": "other"}]},
             "spec.environment: Terrakube's keys: placement.serviceAccountName: ")):
        assert said in policy.refused("write", "POST", executors, policy.executor(name, **spec))
        policy.done("admin", "POST", executors, policy.executor(name, **spec))


def test_an_executor_from_before_a_rule_stays_and_only_what_an_edit_changes_is_checked(policy):
    given = {"serviceAccountName": "deployer", **TEMPLATE}
    policy.done("admin", "POST", "/v1/executors", policy.executor(placement=given))
    policy.server.stop()
    config = policy.home.directory / "dayfly.yaml"
    config.write_text(config.read_text().replace("allow: {", "allow: {admin: {executor: {fields: ['*'], serviceAccounts: []}}, "))
    policy.server.start()
    policy.done("write", "POST", "/v1/executors/net/runs", {"action": "dry-run"})
    policy.finish("net-1")

    def edit(spec):
        return ("admin", "PATCH", "/v1/executors/net", {"spec": spec})
    patch = {"Content-Type": "application/merge-patch+json"}
    changed = policy.done(*edit({"description": "other", "placement": {"labels": {"a": "b"}}}), **patch)
    assert changed["spec"]["placement"] == {**given, "labels": {"a": "b"}}
    said = policy.refused(*edit({"placement": {"serviceAccountName": "boss"}}), **patch)
    assert said == ('placement.serviceAccountName: a caller with the role admin may not take the service account "boss" for an Executor; '
                    "the operator can add it to placement.allow.admin.executor.serviceAccounts of the service's configuration")
    assert "placement.podTemplate: " in policy.refused(*edit({"placement": None}), **patch)


def test_a_workflow_by_write_runs_images_of_the_list(policy):
    def ask(role, image, **workflow):
        return (role, "POST", "/v1/taskactions", {"metadata": {"name": "fix"}, "spec": {
            "action": "workflow", "targetResource": "deployment/a", "workflow": {"executionBundle": image, **workflow}}})
    said = policy.refused(*ask("write", "evil:1"))
    assert said.startswith('workflow.executionBundle: a caller with the role write may not take the image "evil:1" for a workflow')
    assert "no step gets it" in policy.refused(*ask("admin", "evil:1", serviceAccountName="spawner"))
    # The policy lets it pass, this service has no engine for it.
    assert policy.ask(*ask("admin", "evil:1"))[0] == 400


def test_nobody_gets_what_is_the_services_own(policy):
    policy.done("admin", "POST", "/v1/executors", policy.executor())
    token = {"serviceAccountToken": {"audience": "dayfly", "path": "t"}}
    for placement in ({"serviceAccountName": "spawner"}, {"secretMounts": [{"name": "dayfly-key", "mountPath": "/k"}]},
                      {"podTemplate": {"spec": {"serviceAccountName": "spawner"}}},
                      {"podTemplate": {"spec": {"volumes": [{"name": "t", "projected": {"sources": [token]}}]}}}):
        said = policy.refused("admin", "POST", "/v1/executors/net/runs", run(placement))
        assert "belongs to dayfly itself: no step gets it, whoever asks" in said


# ---- on the cluster ----

SHELL = "wget -qO- https://kubernetes.default/api/v1/secrets; cat /key/key; sleep 600"


def evil(kind, account, image):
    """What read the key and every Secret of the namespace once."""
    if kind == "Run":
        spec = {"executorRef": {"name": "victim"}, "action": "provision", "autoApprove": True, "placement": {
            "serviceAccountName": account, "podTemplate": {"spec": {
                "automountServiceAccountToken": True,
                "volumes": [{"name": "key", "secret": {"secretName": "dayfly-key"}}],
                "initContainers": [{"name": "peek", "image": image, "command": ["sh", "-c", SHELL],
                                    "volumeMounts": [{"name": "key", "mountPath": "/key"}]}]}}}}
    else:
        spec = {"action": "workflow", "targetResource": "deployment/evil5", "workflow": {
            "executionBundle": image, "serviceAccountName": account,
            "dependencies": {"secrets": [{"name": "dayfly-key"}, {"name": f"{account}-authority"}]}},
            "placement": {"podTemplate": {"spec": {"automountServiceAccountToken": True, "containers": [
                {"name": "workflow", "command": ["sh", "-c", SHELL]}]}}}}
    return {"apiVersion": f"{crds.GROUP}/v1alpha1", "kind": kind, "metadata": {"name": f"evil-{kind.lower()}"}, "spec": spec}


def refusal(namespace, kind, name):
    """The message with which a resource failed."""
    def failures(document):
        return [c for c in document.get("status", {}).get("conditions", []) if (c["type"], c["status"]) == ("Failed", "True")]
    failed, = failures(namespace.wait(kind, name, failures))
    assert failed["reason"] == "PlacementDenied", failed
    return failed["message"]


def ask(env, path, body):
    """(status, document or problem) of a request by the admin."""
    request = urllib.request.Request(env["DAYFLY_SERVER"] + path, data=json.dumps(body).encode(), method="POST", headers={
        "Authorization": f"Bearer {env['DAYFLY_TOKEN']}", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30, context=ssl.create_default_context(cafile=env["DAYFLY_CA_FILE"])) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_an_editor_makes_no_pod_with_what_is_the_services_own(home, namespace, tofu):
    """The service finds its own account by its token: the configuration does not name it here."""
    crds.install(namespace.cluster)
    release = Release(home, namespace, tofu, crds={"install": False}, auth={"adminAccount": {"create": True}}, replicaCount=1,
                      config={"placement": {"never": {"serviceAccounts": ["nobody"]}}}).install()
    account, image = release.full, runner_image(namespace.cluster, tofu)
    try:
        release.executor("victim", MODULE)
        for role in ("editor", "workflows"):
            namespace.kubectl("create", "rolebinding", f"eve-{role}", f"--role={account}-{role}", "--user=eve")
        for kind in ("Run", "TaskAction"):
            namespace.kubectl("--as", "eve", "create", "-f", "-", input=json.dumps(evil(kind, account, image)))
        said = refusal(namespace, "run", "evil-run")
        assert "placement.podTemplate: a caller with the role write may not set it for a Run" in said
        said = refusal(namespace, "taskaction", "evil-taskaction")
        assert f'workflow.serviceAccountName: the service account "{account}" belongs to dayfly itself' in said
        assert 'the Secret "dayfly-key" belongs to dayfly itself' in said
        # An admin may write a podTemplate, and gets neither.
        runs, placement = "/v1/executors/victim/runs", evil("Run", account, image)["spec"]["placement"]
        status, answer = ask(home.env, runs, {"action": "dry-run", "placement": placement})
        assert status == 403 and f'"{account}" belongs to dayfly itself' in answer["detail"], answer
        # Which Secrets are the vault's, their label tells when the Job is made.
        home.dayfly("secret", "set", "cloud", "token", input="hush")
        mount = {"secretMounts": [{"name": "cloud", "mountPath": "/cloud"}]}
        status, answer = ask(home.env, runs, {"action": "dry-run", "placement": mount})
        assert status == 201, answer
        assert "is a secret of dayfly's vault" in refusal(namespace, "run", answer["metadata"]["name"])
        assert namespace.get("jobs") == []
        # What an admin gave is no reason to refuse the destroy of an executor that somebody deletes.
        release.executor("given", MODULE, placement={"podTemplate": {"spec": {"terminationGracePeriodSeconds": 5}}})
        release.run("given")
        namespace.kubectl("delete", "executor", "given", "--wait=false")
        namespace.wait("executor", "given", lambda e: any(c["reason"] == "Deleting" for c in e["status"].get("conditions", [])))
        assert release.run("given", "--action", "destroy")["run"]["status"]["reason"] == "Destroyed"
        namespace.wait_gone("executor", "given")
    finally:
        release.helm("uninstall", release.name, "--wait", "--timeout", "2m")
        namespace.let_go()
