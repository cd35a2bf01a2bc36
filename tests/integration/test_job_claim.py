"""How a pod gets its step, on a real cluster: once, by its own token, and no secret value in any object."""

import base64
import hashlib
import json
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
import yaml

from lib import web
from lib.cluster import Namespace
from lib.dayfly import wait_for
from lib.kube_proxy import KubeProxy
from lib.pods import NODE, TAG, Pods, config_map_of

PASSWORD = "Tr0ub4dor-and-3-horses"
# Waits where a test may look, until the file is there; tells what a program in the pod can see.
MODULE = """
variable "password" {
  default   = "none"
  sensitive = true
}
resource "terraform_data" "a" {
  input = nonsensitive(sha256(var.password))
  provisioner "local-exec" {
    command     = "echo begun; echo \\"it is $SHOWN\\"; while [ -e /hold/on ] && [ ! -e /tmp/go ]; do sleep 0.1; done"
    environment = { SHOWN = nonsensitive(var.password) }
  }
}
output "digest" { value = terraform_data.a.output }
"""
HOLD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hold"}, "data": {"on": ""}}
HELD = {"configMapMounts": [{"name": "hold", "mountPath": "/hold"}]}


def forms(value):
    """How a value may be hidden in a text: as it is, and in base64 at each of the three positions."""
    yield value
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + value.encode()).decode().rstrip("=")
        yield text[4 if shift else 0:-2]


def finds(text, value):
    return any(form in text for form in forms(value))


def everything(namespace):
    """{kind: JSON} of every object in the namespace, and the logs of its pods."""
    kinds = namespace.cluster.kubectl("api-resources", "--verbs=list", "--namespaced", "-o", "name").stdout.split()
    found = {"Secret": "", "Event": ""}
    for item in (item for kind in kinds for item in namespace.get(kind)):
        found[item["kind"]] = found.get(item["kind"], "") + json.dumps(item) + "\n"
    for pod in namespace.get("pods"):
        name = pod["metadata"]["name"]
        found[f"log of {name}"] = namespace.kubectl("logs", name, "--all-containers", check=False).stdout
    return found


def problem(server, uid, token, claim="a" * 32):
    """(status, type) of a claim with this token."""
    status, _, body = server.request("POST", f"/v1/steps/{uid}/claim", {"claimId": claim},
                                     {"Authorization": f"Bearer {token}"})
    return status, json.loads(body)["type"].rpartition("/")[2]


def add_executor(pods, placement=None, **spec):
    pods.home.dayfly("secret", "set", "vault", "password", input=PASSWORD)
    pods.executor("net", MODULE, placement, secrets=[{"name": "vault"}], **spec)


def hold(pods):
    """Begins a run and returns it when its apply waits in the pod, with that pod."""
    pods.namespace.apply(HOLD)
    add_executor(pods, HELD)
    process, run = pods.begin("net")
    pods.wait_log(run, "): begun")
    return process, run, pods.pod_of(f"{run}-apply")


def let_go(pods, pod):
    pods.namespace.kubectl("exec", pod["metadata"]["name"], "-c", "runner", "--", "touch", "/tmp/go")


def check_end(pods, process, run):
    assert pods.ended(run)["reason"] == "Applied"
    process.communicate()
    outputs = json.loads(pods.home.dayfly("outputs", "net", "-o", "json").stdout)
    assert outputs["digest"]["value"] == hashlib.sha256(PASSWORD.encode()).hexdigest()


@pytest.fixture
def by_token(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        yield world


def test_a_secret_value_is_in_no_object_and_in_no_log(by_token):
    pods = by_token
    process, run, pod = hold(pods)
    during = everything(pods.namespace)
    assert during["Event"] and during["Job"] and during["Pod"] and not during["Secret"]
    let_go(pods, pod)
    check_end(pods, process, run)
    after = everything(pods.namespace)
    logs = pods.home.dayfly("logs", run).stdout
    assert "it is ***" in logs
    places = {**{f"during: {k}": v for k, v in during.items()}, **{f"after: {k}": v for k, v in after.items()},
              "dayfly logs": logs, "spawner's log": pods.server.log.read_text(),
              "audit": json.dumps(list(pods.namespace.cluster.audit(pods.namespace.name)))}
    assert [place for place, text in places.items() if finds(text, PASSWORD)] == []


def second_pod(pod):
    """A pod made of the same template, with a token of its own for the same audience. Without the label by
    which the Job's controller would take it for its own, and remove it."""
    labels = {k: v for k, v in pod["metadata"]["labels"].items() if "controller-uid" not in k}
    spec = {k: v for k, v in pod["spec"].items() if k not in ("nodeName", "hostname")}
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": "second", "labels": labels, "annotations": pod["metadata"]["annotations"]}}


def test_a_second_pod_of_the_same_template_touches_nothing_and_its_end_is_not_the_steps(by_token):
    process, run, pod = hold(by_token)
    by_token.namespace.apply(second_pod(pod))
    second = by_token.namespace.wait("pod", "second", lambda p: p["status"]["phase"] in ("Succeeded", "Failed"))
    ended = second["status"]["containerStatuses"][0]["state"]["terminated"]
    why = f"the pod second is not controlled by the Job of step {run}-apply"
    assert ended["exitCode"] == 3 and ended["message"].startswith("claim: ") and why in ended["message"]  # no result
    said = by_token.namespace.kubectl("logs", "second").stdout
    assert why in said and "opentofu" not in said
    assert by_token.document("runs", run)["status"]["phase"] == "Running"
    let_go(by_token, pod)
    check_end(by_token, process, run)


def running_init(pods, step):
    """The pod of a step once its first init container runs."""
    for pod in pods.namespace.get_all("pods", f"batch.kubernetes.io/job-name={step}"):
        if any("running" in s["state"] for s in pod["status"].get("initContainerStatuses", [])):
            return pod
    return None


def idle_pod(namespace, name, account="default", labels=None):
    """A pod that is there and never runs: a token may be bound to it."""
    namespace.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
                     "spec": {"serviceAccountName": account, "nodeSelector": {"none": "such"},
                              "containers": [{"name": "c", "image": "none"}]}})


def test_a_token_of_another_pod_account_namespace_or_audience_opens_nothing(by_token):
    namespace = by_token.namespace
    process, run, pod = hold(by_token)
    uid = by_token.document("taskactions", f"{run}-apply")["metadata"]["uid"]
    audience = f"dayfly/{uid}"
    elsewhere = Namespace(namespace.cluster)
    try:
        elsewhere.kubectl("create", "serviceaccount", "default", check=False)
        namespace.kubectl("create", "serviceaccount", "other")
        idle_pod(namespace, "idle")
        idle_pod(namespace, "of-other", "other")
        idle_pod(elsewhere, "idle")
        refused = {
            "PodNotOfStep": namespace.pod_token("idle", audience),
            "TokenAudience": namespace.pod_token("idle", "dayfly/another"),
            "TokenNamespace": elsewhere.pod_token("idle", audience),
            "TokenServiceAccount": namespace.pod_token("of-other", audience, "other"),
            "TokenNotOfPod": namespace.token("default", audience=audience),
        }
        assert {r: problem(by_token.server, uid, t) for r, t in refused.items()} == {r: (401, r) for r in refused}
        own = namespace.pod_token(pod["metadata"]["name"], audience)
        assert problem(by_token.server, uid, own, "b" * 32) == (409, "AlreadyClaimed")
    finally:
        elsewhere.close()
    let_go(by_token, pod)
    check_end(by_token, process, run)


# The step's own pod is there and does not claim before it is let go.
LATE = {"podTemplate": {"spec": {"initContainers": [{
    "name": "late", "image": f"localhost/dayfly-runner:{TAG}", "imagePullPolicy": "Never",
    "command": ["sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.1; done"],
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    "volumeMounts": [{"name": "dayfly-tmp", "mountPath": "/tmp"}]}]}}}


def test_a_foreign_pod_of_the_same_account_gets_nothing_before_the_steps_own_pod_claims(by_token):
    namespace = by_token.namespace
    add_executor(by_token, LATE)
    process, run = by_token.begin("net")
    pod = wait_for("the init container of the plan", lambda: running_init(by_token, f"{run}-plan"))
    uid = by_token.document("taskactions", f"{run}-plan")["metadata"]["uid"]
    namespace.kubectl("create", "serviceaccount", "default", check=False)
    idle_pod(namespace, "idle")
    idle_pod(namespace, "disguised", labels={k: v for k, v in pod["metadata"]["labels"].items() if "batch.kubernetes.io" not in k})
    for name in ("idle", "disguised"):
        token = namespace.pod_token(name, f"dayfly/{uid}")
        assert problem(by_token.server, uid, token) == (401, "PodNotOfStep"), name
    assert "claimedBy" not in by_token.document("taskactions", f"{run}-plan")["status"]
    for step in ("plan", "apply"):
        own = wait_for("the init container", lambda s=step: running_init(by_token, f"{run}-{s}"))
        namespace.kubectl("exec", own["metadata"]["name"], "-c", "late", "--", "touch", "/tmp/go")
        claimed = wait_for("the claim", lambda s=step: by_token.document("taskactions", f"{run}-{s}")["status"].get("claimedBy"))
        assert claimed["podUid"] == own["metadata"]["uid"]
    check_end(by_token, process, run)


def test_steps_run_in_a_namespace_of_their_own_and_older_ones_end_where_they_began(home, namespace, tofu):
    steps = Namespace(namespace.cluster)
    try:
        pods = Pods(home, namespace, tofu)
        pods.server.listen = f"{NODE}:{free_port()}"  # where the runner finds the next spawner
        with pods:
            process, run, pod = hold(pods)
            process.kill()  # it would start a spawner of its own
            process.communicate()
            pods.server.stop()
            file = home.directory / "dayfly.yaml"
            config = json.loads(file.read_text())
            config["kubernetes"]["stepNamespace"] = steps.name
            file.write_text(json.dumps(config))
            pods.start()
            let_go(pods, pod)
            assert pods.ended(run)["reason"] == "Applied"
            steps.apply(HOLD, config_map_of(home.module("after", MODULE), "module-net"))  # a placement names what is there
            assert pods.run("net", "--action", "destroy")["run"]["status"]["reason"] == "Destroyed"
        where = {n.name: {j["metadata"]["name"] for j in n.get("jobs")} for n in (namespace, steps)}
        assert where == {namespace.name: {"net-1-plan", "net-1-apply"}, steps.name: {"net-2-plan", "net-2-apply"}}
    finally:
        steps.close()


def test_a_pod_has_no_rights_in_kubernetes(by_token):
    namespace = by_token.namespace
    process, run, pod = hold(by_token)
    name = pod["metadata"]["name"]
    shell = ["exec", name, "-c", "runner", "--", "sh", "-c"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert namespace.kubectl(*shell, "ls /var/run/secrets", check=False).returncode != 0
    token = namespace.kubectl(*shell, "cat /run/dayfly/token/token").stdout.strip()
    let_go(by_token, pod)
    server = yaml.safe_load(namespace.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    asked = urllib.request.Request(f"{server}/api/v1/namespaces/{namespace.name}/pods", headers={"Authorization": f"Bearer {token}"})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(asked, context=ssl._create_unverified_context())
    account = f"system:serviceaccount:{namespace.name}:default"
    allowed = namespace.kubectl("auth", "can-i", "--list", "--as", account).stdout.splitlines()[1:]
    resources = {line.split()[0] for line in allowed if not line.startswith(" ")}
    assert resources <= {"selfsubjectreviews.authentication.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io",
                         "selfsubjectrulesreviews.authorization.k8s.io"}, resources
    check_end(by_token, process, run)


def certificate(directory, name):
    """A key and a certificate that vouches for itself, for the address where pods reach the spawner."""
    cert, key = web.self_signed(directory, name, f"IP:{NODE}")
    return key, cert


def free_port():
    with socket.create_server((NODE, 0)) as s:
        return s.getsockname()[1]


def test_a_spawner_with_another_certificate_is_not_believed(home, namespace, tofu, tmp_path):
    key, shown = certificate(tmp_path, "shown")
    _, trusted = certificate(tmp_path, "trusted")
    address = f"{NODE}:{free_port()}"
    config = {"server": {"tls": {"certFile": str(shown), "keyFile": str(key), "caFile": str(trusted)}},
              "advertiseUrl": f"https://{address}", "timeouts": {"pending": "1m"}}
    pods = Pods(home, namespace, tofu, config=config)
    pods.server.listen = address
    pods.server.trust = lambda: ssl.create_default_context(cafile=shown)
    home.env["DAYFLY_CA_FILE"] = str(shown)
    with pods:
        home.env["DAYFLY_SERVER"] = pods.server.url
        add_executor(pods)
        process, run = pods.begin("net")
        process.communicate()
        status = pods.ended(run)
        assert status["reason"] == "NeverClaimed" and "certificate" in status["message"], status
        assert pods.document("taskactions", "net-1-plan")["status"].get("claimedBy") is None


# ---- the Secret

def moments(namespace, names):
    """When each request first went through, by the audit log: {(verb, resource): time}."""
    seen = {}
    for event in namespace.cluster.audit(namespace.name):
        ref = event.get("objectRef") or {}
        what = (event["verb"], ref.get("resource"))
        if what in names and "subresource" not in ref and event["responseStatus"]["code"] < 300:
            seen.setdefault(what, event["requestReceivedTimestamp"])
    return seen


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_spawner_killed_while_it_makes_the_job_starts_the_step_once(home, namespace, tofu, tmp_path, when):
    proxy = KubeProxy(namespace.cluster, tmp_path)
    struck, told, dead = threading.Event(), threading.Event(), threading.Event()

    def kill(request, at):
        is_it = request[0] == "POST" and re.search(r"/jobs(\?|$)", request[1]) and at == when
        if is_it and not struck.is_set():
            struck.set()
            assert told.wait(60)  # who asked for the run has its name: asking is not what is struck here
            pods.server.kill()
            dead.set()
            return True
        return False

    try:
        with Pods(home, namespace, tofu, kubeconfig=str(proxy.kubeconfig)) as pods:
            add_executor(pods)
            proxy.at = kill
            process, run = pods.begin("net")
            told.set()
            assert dead.wait(60)
            process.kill()
            process.communicate()
            pods.start()
            status = pods.ended(run)
            assert (status["phase"], status["reason"]) == ("Succeeded", "Applied"), status
            log = pods.home.dayfly("logs", run).stdout
            assert log.count("local-exec): begun") == 1
    finally:
        proxy.close()
    created = [e["objectRef"]["resource"] for e in namespace.cluster.audit(namespace.name)
               if e["verb"] == "create" and (e.get("objectRef") or {}).get("resource") in ("pods", "jobs")
               and "subresource" not in e["objectRef"] and e["responseStatus"]["code"] < 300]
    assert sorted(created) == ["jobs", "jobs", "pods", "pods"]


# ---- a token's end

LIFE = 12  # seconds that a token is good for still: time for a pod to start


class Issuer:
    """Signs tokens as a cluster does, with a key of its own: those of a real one live for ten minutes at least."""

    name = "https://issuer.example"

    def __init__(self, directory):
        self.keys = directory / "jwks.json"
        self.rotate("k")

    def rotate(self, kid):
        """From now on there is this key alone."""
        self.kid, self.key = kid, self.keys.with_name(f"{kid}.key")
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True,
                                 text=True).stdout.strip().removeprefix("Modulus=")
        self.keys.write_text(json.dumps({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid, "e": "AQAB",
                                                   "n": self.base64(bytes.fromhex(modulus))}]}))

    @staticmethod
    def base64(data):
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    def token(self, pod, audience, expires):
        holder = {"namespace": pod["metadata"]["namespace"], "serviceaccount": {"name": "default"},
                  "pod": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}
        claims = {"iss": self.name, "aud": [audience], "iat": expires - 600, "exp": expires, "kubernetes.io": holder}
        text = ".".join(self.base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": self.kid}, claims))
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), check=True,
                                capture_output=True).stdout
        return f"{text}.{self.base64(signed)}"


class LateSource(web.Server):
    """A server of a module that does not answer before it is told to."""

    def __init__(self, archive, key, cert):
        self.may_answer = threading.Event()
        outer = self

        class Handler(web.Handler):
            def do_GET(self):
                outer.may_answer.wait(60)
                self.answer(200, archive)

        super().__init__(Handler, (cert, key), host=NODE)
        self.url += "/module.tar.gz"


LATE_TOKEN = {"podTemplate": {"spec": {"volumes": [
    {"name": "dayfly-token", "projected": None, "secret": {"secretName": "made-late"}}]}}}


def hand_token(pods, issuer, run, expires):
    """Gives the pod of this run's plan, which waits for it, a token of the issuer, and returns that and the step's uid."""
    pod = pods.wait_pod(f"{run}-plan")
    uid = pods.document("taskactions", f"{run}-plan")["metadata"]["uid"]
    token = issuer.token(pod, f"dayfly/{uid}", expires)
    pods.namespace.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made-late"},
                          "stringData": {"token": token}})
    return token, uid


def test_a_key_that_was_rotated_between_two_steps_is_taken_up(home, namespace, tofu, tmp_path):
    issuer = Issuer(tmp_path)
    config = {"claim": {"issuer": issuer.name, "jwksUrl": f"file://{issuer.keys}"}}
    with Pods(home, namespace, tofu, config=config) as pods:
        pods.executor("net", MODULE, LATE_TOKEN)
        for kid in ("k", "next"):
            issuer.rotate(kid)
            run = pods.ask("net", "dry-run")
            hand_token(pods, issuer, run, int(time.time()) + 600)
            assert pods.ended(run)["reason"] == "Planned"
            namespace.kubectl("delete", "secret", "made-late")


def test_a_token_that_expires_in_mid_run_does_no_harm(home, namespace, tofu, tmp_path):
    issuer = Issuer(tmp_path)
    key, cert = certificate(tmp_path, "source")
    archive = base64.b64decode(config_map_of(home.module("net", MODULE))["binaryData"]["module.tar.gz"])
    source = LateSource(archive, key, cert)
    config = {"claim": {"issuer": issuer.name, "jwksUrl": f"file://{issuer.keys}"}}
    with Pods(home, namespace, tofu, config=config) as pods:
        home.dayfly("secret", "set", "source", "ca.crt", "--from-file", cert)
        pods.executor("net", MODULE, LATE_TOKEN,
                      source={"url": source.url, "kind": "archive", "secretRef": {"name": "source"},
                              "sha256": hashlib.sha256(archive).hexdigest()})
        process, run = pods.begin("net", "--action", "dry-run")
        token, uid = hand_token(pods, issuer, run, int(time.time()) + LIFE - 30)  # 30 s of leeway for clocks
        wait_for("the claim", lambda: pods.document("taskactions", f"{run}-plan")["status"].get("claimedBy"))
        wait_for("the token's end", lambda: problem(pods.server, uid, token) == (401, "TokenExpired"))
        source.may_answer.set()
        assert pods.ended(run)["reason"] == "Planned"
        assert "1 to add" in pods.home.dayfly("logs", run).stdout
        process.communicate()
    source.stop()
