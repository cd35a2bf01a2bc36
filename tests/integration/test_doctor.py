"""`dayfly doctor` on a real cluster: a good installation has no fault, and each seeded one is named by its own check."""

import contextlib
import copy
import datetime
import json
import re
import shutil
import subprocess

import pytest
import yaml

from lib import cluster as kubernetes
from lib import crds, dayfly
from lib.dayfly import ROOT, wait_for
from lib.kube_proxy import KubeProxy
from lib.pods import NODE, TAG, VERSION, Pods, claim_on, image, reach
from lib.release import Release, merged
from test_job_rights import apply_set, kubeconfig_of

OLD = "0.0.9" if len(VERSION) == 5 else "0" * len(VERSION)


class World:
    """A good installation: a spawner on this machine, its rights, its image, its data."""

    def __init__(self, cluster, tofu, directory):
        self.cluster, self.tofu, self.directory = cluster, tofu, directory
        self.namespace = kubernetes.Namespace(cluster)
        apply_set(self.namespace, directory / "rbac", "sidecar")
        self.admin = cluster.kubeconfig
        self.spawner = kubeconfig_of(self.namespace, "dayfly-spawner", directory / "spawner.kubeconfig")
        self.pods = Pods(dayfly.Home(directory / "home", tofu), self.namespace, tofu,
                         placement={"serviceAccountName": "dayfly-runner"}).start()
        self.home = self.pods.home
        self.config = yaml.safe_load((self.home.directory / "dayfly.yaml").read_text())
        self.config["listen"] = f"{NODE}:0"
        self.config["timeouts"] = {"pending": "20s"}
        self.undo = contextlib.ExitStack()

    def doctor(self, changes=None, *args, code=None):
        """What it finds: {check: [(level, message)]}."""
        file = self.directory / "doctor.yaml"
        file.write_text(json.dumps(merged(self.config, changes or {})))
        result = self.home.dayfly("doctor", "--config", file, "-o", "json", *args, code=code)
        document = json.loads(result.stdout)
        found = {}
        for finding in document["findings"]:
            found.setdefault(finding["check"], []).append((finding["level"], finding["message"]))
        failures = [f for f in document["findings"] if f["level"] == "fail"]
        assert document["failures"] == len(failures)
        assert result.returncode == (1 if failures else 0)
        return found

    def put(self, *objects):
        """Objects of the namespace, until the test ends."""
        self.namespace.apply(*objects)
        for o in objects:
            self.undo.callback(self.namespace.kubectl, "delete", o["kind"], o["metadata"]["name"], "--ignore-not-found")

    def put_global(self, document):
        self.cluster.kubectl("apply", "-f", "-", input=json.dumps(document))
        self.undo.callback(self.cluster.kubectl, "delete", document["kind"], document["metadata"]["name"])

    def enforce(self, level):
        """The namespace enforces this Pod Security Standard, until the test ends; None: none."""
        label = "pod-security.kubernetes.io/enforce"
        self.undo.callback(self.cluster.kubectl, "label", "namespace", self.namespace.name, f"{label}-")
        self.cluster.kubectl("label", "namespace", self.namespace.name, "--overwrite", f"{label}={level}" if level else f"{label}-")

    def close(self):
        self.pods.server.stop()
        self.namespace.close()


@pytest.fixture(scope="module")
def shared(cluster, tofu, tmp_path_factory):
    with kubernetes.Calm(alone=False):
        world = World(cluster, tofu, tmp_path_factory.mktemp("doctor"))
        yield world
        world.close()


@pytest.fixture
def world(shared):
    with shared.undo:
        yield shared
    shared.undo = contextlib.ExitStack()


def fails(found):
    """{check: what is wrong, a line each}."""
    wrong = {check: [m for level, m in all_ if level == "fail"] for check, all_ in found.items()}
    return {check: "\n".join(messages) for check, messages in wrong.items() if messages}


# ---- a good installation ----


def test_a_good_installation_has_no_failure_for_a_person(world):
    found = world.doctor(code=0)
    assert fails(found) == {}
    for check in ("configuration", "data-directory", "tokens", "tls", "address", "cluster", "clock", "issuer", "rights",
                  "placement-policy", "placement", "runner-rights", "references", "nodes", "job", "pod", "start", "image", "dns", "reach",
                  "pod-clock", "pod-token", "pod-storage", "tool"):
        assert [level for level, _ in found[check]] == ["ok"] * len(found[check]), found[check]
    assert world.namespace.get("jobs") == []


def test_a_good_installation_has_no_failure_with_the_spawners_own_rights(world):
    found = world.doctor({"kubernetes": {"kubeconfig": str(world.spawner)}}, code=0)
    assert fails(found) == {}
    assert [level for level, _ in found["runner-rights"]] == ["warn"]
    assert f"system:serviceaccount:{world.namespace.name}:dayfly-spawner may do all" in found["rights"][0][1]


def spawner_pod(world):
    """The spawner as the cluster runs it: its own account, settings in its environment, a Service before it."""
    host = f"dayfly.{world.namespace.name}.svc"
    placement = {"imagePullPolicy": "IfNotPresent", "serviceAccountName": "dayfly-runner"}
    settings = {"LISTEN": "0.0.0.0:8030", "ADVERTISE_URL": f"https://{host}:8030", "SERVER_TLS_NAMES": host, "ENGINE": "job",
                "AUTH_TOKEN_FILE": "/etc/dayfly/tokens", "KUBERNETES_IMAGE": world.config["kubernetes"]["image"],
                "KUBERNETES_PLACEMENT": json.dumps(placement)}
    tokens = open(world.config["auth"]["tokenFile"], encoding="ascii").read()
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens"}, "stringData": {"tokens": tokens}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dayfly"},
         "spec": {"clusterIP": "None", "selector": {"app": "dayfly"}, "ports": [{"port": 8030}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "dayfly", "labels": {"app": "dayfly"}},
         "spec": {"serviceAccountName": "dayfly-spawner", "securityContext": {"fsGroup": 65532},
                  "terminationGracePeriodSeconds": 1,
                  "containers": [{"name": "dayfly", "image": image(world.cluster, "spawner", TAG),
                                  "imagePullPolicy": "IfNotPresent",
                                  "env": [{"name": f"DAYFLY_{k}", "value": v} for k, v in settings.items()],
                                  "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8030, "scheme": "HTTPS"},
                                                     "periodSeconds": 1},
                                  "volumeMounts": [{"name": "data", "mountPath": "/var/lib/dayfly"},
                                                   {"name": "tokens", "mountPath": "/etc/dayfly", "readOnly": True}]}],
                  "volumes": [{"name": "data", "emptyDir": {}},
                              {"name": "tokens", "secret": {"secretName": "tokens", "defaultMode": 0o440}}]}}]


def test_the_spawners_own_pod_examines_itself(world):
    world.put(*spawner_pod(world))
    world.namespace.wait("pod", "dayfly", lambda p: any(c["type"] == "Ready" and c["status"] == "True"
                                                        for c in p["status"].get("conditions", [])))
    result = world.namespace.kubectl("exec", "dayfly", "--", "dayfly", "doctor", "-o", "json", check=False)
    document = json.loads(result.stdout)
    assert result.returncode == 0 and document["failures"] == 0, [f for f in document["findings"] if f["level"] != "ok"]
    found = {f["check"]: f["message"] for f in document["findings"]}
    assert found["reach"] == f"pods reach the spawner at https://dayfly.{world.namespace.name}.svc:8030"
    assert f"pods find dayfly.{world.namespace.name}.svc at 10." in found["dns"]


@pytest.mark.parametrize("shape", ["sidecar", "operator"])
def test_what_the_chart_installs_is_a_good_installation(world, tmp_path, shape):
    crds.install(world.cluster)
    namespace = kubernetes.Namespace(world.cluster)
    try:
        release = Release(dayfly.Home(tmp_path / "home", world.tofu), namespace, world.tofu, shape=shape, crds={"install": False},
                          persistence={"enabled": False}, steps=None)
        release.install()
        result = namespace.kubectl("exec", f"deploy/{release.full}", "--", "dayfly", "doctor", "-o", "json", check=False)
        document = json.loads(result.stdout)
        wrong = [f for f in document["findings"] if f["level"] != "ok" and f["check"] != "runner-rights"]
        assert result.returncode == 0 and wrong == [], wrong
        assert {"reach", "tool"} <= {f["check"] for f in document["findings"]}
        leader = [f for f in document["findings"] if f["message"].startswith("pods reach the replica that leads at https://10.")]
        assert len(leader) == (shape == "operator")
        release.helm("uninstall", release.name)
    finally:
        namespace.close()


def test_without_a_cluster_this_machine_alone_is_examined(tmp_path, tofu):
    home = dayfly.Home(tmp_path / "home", tofu)
    document = json.loads(home.dayfly("doctor", "-o", "json").stdout)
    alone = [("configuration", "ok"), ("data-directory", "ok"), ("runner", "ok"), ("local-tool", "ok"), ("git", "ok"), ("isolation", "ok")]
    assert [(f["check"], f["level"]) for f in document["findings"]] == alone
    # Who is alone may keep secrets for everything; they are named all the same.
    home.dayfly("secret", "set", "cloud", "token", input="hush")
    document = json.loads(home.dayfly("doctor", "-o", "json").stdout)
    assert [(f["check"], f["level"]) for f in document["findings"]] == [*alone, ("secrets", "ok")]
    assert "secrets of the vault: cloud." in document["findings"][-1]["message"]


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_the_wall_is_tried_and_a_hole_in_it_is_found(tmp_path, tofu, mode):
    home = dayfly.Home(tmp_path / "home", tofu)
    for name in ("data/key", "etc/tls.key"):
        (home.directory / name).parent.mkdir()
        (home.directory / name).write_text("KEY")
    (home.directory / "other").symlink_to("data")
    (home.directory / "tmp").mkdir()
    home.env["TMPDIR"] = str(home.directory / "tmp")
    settings = ("--set", f"engine.local.isolation={mode}", "--set", f"dataDirectory={home.directory}/other",
                "--set", f"stateService.tokenFile={home.directory}/etc/tls.key", "--only", "isolation", "-o", "json")

    def found(*more, env=None, code):
        (finding,) = [f for f in json.loads(home.dayfly("doctor", *settings, *more, env=env, code=code).stdout)["findings"]
                      if f["check"] == "isolation"]
        return finding["level"], finding["message"]
    level, message = found(code=0)
    assert level == "ok" and f"engine.local.isolation: {mode}, tried as a step has it: " in message, message
    # A certificate for a step that is the key itself: what a step is given is shown.
    level, message = found(env={"SSL_CERT_FILE": str(home.directory / "etc/tls.key")}, code=1)
    assert level == "fail" and message.endswith(f"a process behind the wall sees {home.directory}/etc/tls.key"), message
    # A runner of another version knows no such trial.
    (home.directory / "old").write_text("""#!/bin/sh\necho '{"probe": "dayfly", "version": "0.0.1"}'\n""")
    (home.directory / "old").chmod(0o755)
    level, message = found("--set", f"runner.path={home.directory}/old", code=1)
    assert level == "fail" and "another version" in message, message
    assert not list((home.directory / "tmp").iterdir())


def test_a_state_service_that_is_away_is_a_warning(world):
    (level, message), = world.doctor({"stateService": {"url": "https://127.0.0.1:1/"}}, "--no-probe", code=0)["state-service"]
    assert level == "warn" and "127.0.0.1:1" in message


def test_a_namespace_of_steps_that_does_not_enforce_restricted_is_a_warning(world):
    name = world.namespace.name

    def found(level):
        world.enforce(level)
        (said, message), = world.doctor({"kubernetes": {"kubeconfig": str(world.spawner)}}, "--no-probe", code=0)["pod-security"]
        assert said == ("ok" if level == "restricted" else "warn")
        assert said == "ok" or f"kubectl label namespace {name} pod-security.kubernetes.io/enforce=restricted" in message
        return message
    assert f"{name} of steps enforces no Pod Security Standard, not restricted" in found(None)
    assert f"{name} of steps enforces the Pod Security Standard baseline, not restricted" in found("baseline")
    assert f"{name} of steps enforces the Pod Security Standard restricted" in found("restricted")


def test_secrets_that_every_executor_may_use_are_named(world):
    world.home.dayfly("secret", "set", "cloud", "token", input="hush")
    world.undo.callback(world.home.dayfly, "secret", "delete", "cloud")
    (level, message), = world.doctor({}, "--no-probe", code=0)["secrets"]
    assert level == "warn" and "secrets of the vault: cloud." in message and "hush" not in message
    world.home.dayfly("secret", "allow", "cloud", "--executor", "net")
    (level, message), = world.doctor({}, "--no-probe", code=0)["secrets"]
    assert level == "ok" and "for the executors that it names" in message


def test_open_secrets_of_the_cluster_are_named_and_no_key_is_made(world):
    def vault(name, **annotations):
        world.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"dayfly.dev/vault": "true"},
                                                                      "annotations": annotations}, "stringData": {"token": "hush"}})
    for number in range(21):
        vault(f"open-{number:02}")
    vault("narrow", **{"dayfly.dev/executors": "net"})
    (level, message), = world.doctor(OPERATOR, "--no-probe")["secrets"]
    assert level == "warn" and "open-00, open-01" in message and "open-19 and 1 more." in message and "narrow" not in message
    nobody = kubeconfig_of(world.namespace, "dayfly-runner", world.directory / "nobody.kubeconfig")
    (level, message), = world.doctor({**OPERATOR, "kubernetes": {"kubeconfig": str(nobody)}}, "--no-probe", code=1)["secrets"]
    assert level == "warn" and "may not list the secrets of the vault" in message
    assert not world.namespace.get("secret", "dayfly-key")


def test_a_class_whose_nodes_are_not_there_yet_is_a_warning(world):
    found = world.doctor({"classes": {"small": {}, "batch": {"placement": {"nodeSelector": {"disk": "nobody-made-it"}}}}},
                         "--no-probe", code=0)["nodes"]
    assert [level for level, _ in found] == ["ok", "warn"]
    assert "disk=nobody-made-it" in found[1][1] and "classes.batch" in found[1][1]


def test_what_is_wrong_is_said_once_and_not_by_everything_that_stands_on_it(world):
    found = world.doctor(api_server_unreachable(world), code=1)
    assert set(fails(found)) == {"cluster"}
    (level, message), = found["examination"]
    assert level == "warn" and "rights" in message and "reach" in message


def test_lines_for_people_say_level_check_and_message(world):
    world.enforce("restricted")
    file = world.directory / "doctor.yaml"
    file.write_text(json.dumps(world.config))
    lines = world.home.dayfly("doctor", "--config", file, "--no-probe").stdout.splitlines()
    assert lines[0] == f"[ok]   configuration: {file} is valid"
    assert lines[-1] == "0 FAIL, 0 warn"
    assert not any("start:" in line for line in lines)


OPERATOR = {"store": "kubernetes", "election": {"enabled": True}}
# Steps run without them, too.
SPARE = {("create", "events.events.k8s.io"), ("get", "persistentvolumeclaims"), ("get", "namespaces"), ("delete", "pods"),
         ("get", "pods/log")}


@pytest.mark.parametrize("roles, changes", [
    (["sidecar"], {}),
    (["operator", "steps"], {**OPERATOR, "kubernetes": {"stepNamespace": "builds"}}),
    (["sidecar", "engines/tekton"], {"engine": None, "engines": ["job", "tekton"]}),
    (["sidecar", "engines/ansible"], {"engine": None, "engines": ["job", "ansible"],
                                      "ansible": {"apiUrl": "http://127.0.0.1:9", "tokenSecretRef": {"name": "a", "key": "b"}}}),
])
def test_the_rights_that_are_checked_are_those_of_the_roles(world, roles, changes):
    """For an account that may do nothing all of them are reported, no more and no less."""
    files = [yaml.safe_load((ROOT / "rbac" / name / "role.yaml").read_text()) for name in roles]
    granted = {(verb, f"{r.partition('/')[0]}{'.' if g else ''}{g}{''.join(r.partition('/')[1:])}")
               for role in files for rule in role["rules"] for g in rule["apiGroups"]
               for r in rule["resources"] for verb in rule["verbs"]}
    found = world.doctor(changes, "--no-probe", "--service-account", "nobody")["rights"]
    missed = set()
    for level, message in found:
        verbs, resource = re.search(r"^the service account nobody may not (.+) (\S+) in the namespace", message).groups()
        missed |= {(verb, resource) for verb in verbs.split(", ")}
        assert (level == "warn") == ((verbs, resource) in SPARE), message
    assert missed == granted


def test_a_right_that_was_taken_away_is_missed(world):
    role, = [r for r in world.namespace.get("roles") if r["metadata"]["name"] == "dayfly-spawner"]
    role = {k: role[k] for k in ("apiVersion", "kind", "rules")} | {"metadata": {"name": "dayfly-spawner"}}
    world.undo.callback(world.namespace.apply, role)
    less = copy.deepcopy(role)
    less["rules"][0]["verbs"].remove("delete")
    world.namespace.apply(less)

    def seen():
        found = world.doctor({"kubernetes": {"kubeconfig": str(world.spawner)}}, "--no-probe")
        return "may not delete jobs.batch" in fails(found).get("rights", "")
    wait_for("the right to be missed", seen)


# ---- faults ----

FAULTS = {}


def fault(check, *words, probe=False, retried=False):
    """Registers a fault: what the function returns is laid over the configuration, and `check` must fail with these words."""
    def register(function):
        FAULTS[function.__name__] = (function, check, words, probe, retried)
        return function
    return register


@fault("configuration", "kubernetes.imagee")
def unknown_key(world):
    return {"kubernetes": {"imagee": "x"}}


# rights


@fault("rights", "leases.coordination.k8s.io")
def the_lease_may_not_be_held(world):
    return {"election": {"enabled": True}, "kubernetes": {"kubeconfig": str(world.spawner)}}


@fault("references", "service account nobody-made-it")
def service_account_missing(world):
    return {"kubernetes": {"placement": {"serviceAccountName": "nobody-made-it"}}}


@fault("runner-rights", "service account mighty", "get secrets", retried=True)
def runner_may_read_secrets(world):
    world.put({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mighty"}},
              {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "mighty"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
               "subjects": [{"kind": "ServiceAccount", "name": "mighty", "namespace": world.namespace.name}]})
    return {"kubernetes": {"placement": {"serviceAccountName": "mighty"}}}


@fault("runner-rights", "service account mighty", "classes.batch", retried=True)
def runner_of_a_class_may_read_secrets(world):
    runner_may_read_secrets(world)
    return {"classes": {"batch": {"placement": {"serviceAccountName": "mighty"}}}}


# cluster


@fault("cluster", "does not answer", "127.0.0.1:1")
def api_server_unreachable(world):
    config = yaml.safe_load(world.admin.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = world.directory / "nowhere.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return {"kubernetes": {"kubeconfig": str(path)}}


@fault("job", "nobody-made-it", "namespace does not exist")
def namespace_missing(world):
    return {"kubernetes": {"namespace": "nobody-made-it", "placement": {"serviceAccountName": None}}}


@fault("custom-resources", "does not have dayfly.dev/v1alpha1", "rbac/crds")
def custom_resources_missing(world):
    absent = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    return {"store": "kubernetes", **through(world, answers={"/apis/dayfly.dev/v1alpha1": (404, absent),
                                                             "/apis/dayfly.dev": (404, absent)})}


@fault("custom-resources", "does not have dayfly.dev/v1alpha1; it has dayfly.dev/v1alpha0")
def custom_resources_of_another_version(world):
    group = {"kind": "APIGroup", "name": "dayfly.dev", "versions": [{"groupVersion": "dayfly.dev/v1alpha0"}]}
    return {"store": "kubernetes", **through(world, answers={"/apis/dayfly.dev/v1alpha1": (404, "404 page not found"),
                                                             "/apis/dayfly.dev": (200, group)})}


@fault("custom-resources", "no audittrails")
def custom_resources_of_an_older_installation(world):
    listed = {"kind": "APIResourceList", "resources": [{"name": n} for n in ("executors", "runs", "taskactions", "revisions")]}
    return {"store": "kubernetes", **through(world, answers={"/apis/dayfly.dev/v1alpha1": (200, listed)})}


@fault("authority", "server.tls.secret nobody-made-it")
def authority_missing(world):
    return merged(in_namespace(world), {"server": {"tls": {"secret": "nobody-made-it"}}})


@fault("authority", "has only one of ca.key and ca.crt")
def authority_in_half(world):
    world.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "half"}, "stringData": {"ca.crt": "x"}})
    return merged(in_namespace(world), {"server": {"tls": {"secret": "half"}}})


def in_namespace(world):
    """The authority is looked for in the namespace of the spawner itself."""
    config = yaml.safe_load(world.admin.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = world.namespace.name
    path = world.directory / "namespaced.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return {"kubernetes": {"kubeconfig": str(path)}}


def through(world, **what):
    """A configuration that comes to the API server by way of a proxy."""
    proxy = KubeProxy(world.cluster, world.directory)
    for name, value in what.items():
        setattr(proxy, name, value)
    world.undo.callback(proxy.close)
    return {"kubernetes": {"kubeconfig": str(proxy.kubeconfig)}}


@fault("clock", "the API server's clock is", "s behind this machine's")
def api_server_is_behind(world):
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=10)
    return through(world, headers={"Date": past.strftime("%a, %d %b %Y %H:%M:%S GMT")})


@fault("issuer", "https://issuer.example", "correct claim.issuer")
def issuer_of_another_cluster(world):
    return {"claim": {"issuer": "https://issuer.example"}}


@fault("issuer", "cannot read the keys of pods' tokens", "keys.json")
def keys_of_the_issuer_unreachable(world):
    discovery = json.loads(world.cluster.kubectl("get", "--raw", "/.well-known/openid-configuration").stdout)
    return {"claim": {"issuer": discovery["issuer"], "jwksUrl": f"file://{world.directory}/keys.json"}}


# image


@fault("placement", "classes.greedy: placement.resources.requests.memory")
def a_class_that_asks_for_more_than_the_instance_lets_it_have(world):
    return {"kubernetes": {"placement": {"resources": {"limits": {"memory": "256Mi"}}}},
            "classes": {"greedy": {"placement": {"resources": {"requests": {"memory": "1Gi"}}}}}}


@fault("placement", "workspaces.net: placement.resources.requests.cpu")
def a_workspace_that_asks_for_more_than_its_class_lets_it_have(world):
    return {"classes": {"small": {"placement": {"resources": {"limits": {"cpu": "1"}}}}},
            "workspaces": {"net": {"class": "small", "environment": [{"name": "EPHEMERAL_CPU_REQUEST", "value": "2"}]}}}


@fault("placement", "kubernetes.image")
def image_not_named(world):
    return {"kubernetes": {"image": None}}


@fault("start", "localhost/nobody-made-it:1", "cannot be pulled", probe=True)
def image_cannot_be_pulled(world):
    return {"kubernetes": {"image": "localhost/nobody-made-it:1"}}


@fault("start", "localhost/dayfly-spawner", "is not a runner", probe=True)
def image_is_the_spawners(world):
    return {"kubernetes": {"image": image(world.cluster, "spawner", TAG)}}


@fault("image", f"version {OLD} and this is {VERSION}", probe=True)
def image_of_another_version(world):
    programs = world.directory / "old"
    programs.mkdir()
    program = (ROOT / "build/dayfly-runner").read_bytes().replace(VERSION.encode() + b"\0", OLD.encode() + b"\0")
    (programs / "dayfly-runner").write_bytes(program)
    return {"kubernetes": {"image": image(world.cluster, "runner", f"{TAG}-old", programs)}}


# the way from the pod to the spawner


@fault("address", "leads a pod to itself")
def spawner_listens_to_itself_alone(world):
    return {"listen": "127.0.0.1:8030", "server": None}


@fault("dns", "nobody-made-it.invalid", probe=True)
def host_of_the_spawner_unknown_in_pods(world):
    return {"advertiseUrl": "https://nobody-made-it.invalid:8030"}


@fault("reach", f"https://{NODE}:1", "NetworkPolicy", probe=True)
def spawner_out_of_reach_of_pods(world):
    return {"advertiseUrl": f"https://{NODE}:1"}


# TLS


def certificate(world, name, days="2", ca=None, start=None):
    """A certificate, self-signed or of an authority made by this function; returns the paths of it and its key."""
    cert, key = world.directory / f"{name}.pem", world.directory / f"{name}.key"
    signer = ["-CA", ca[0], "-CAkey", ca[1]] if ca else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    f"/CN={name}", "-addext", f"subjectAltName=IP:{NODE if name != 'other' else '192.0.2.1'}",
                    *signer, "-days", days, "-keyout", key, "-out", cert], check=True, capture_output=True)
    if start:
        days_of(world, cert, key, start)
    return cert, key


def days_of(world, cert, key, span):
    """Gives a self-signed certificate another validity."""
    authority = world.directory / "ca"
    shutil.rmtree(authority, ignore_errors=True)
    authority.mkdir()
    (authority / "index").touch()
    (authority / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=x\n[x]\ndatabase={authority}/index\nnew_certs_dir={authority}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\ncopy_extensions=copy\n[p]\ncommonName=supplied\n")
    request = authority / "request"
    subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=dated", "-addext", f"subjectAltName=IP:{NODE}",
                    "-out", request], check=True, capture_output=True)
    subprocess.run(["openssl", "ca", "-batch", "-notext", "-config", authority / "ca.cnf", "-selfsign", "-keyfile", key,
                    "-startdate", span[0], "-enddate", span[1], "-in", request, "-out", cert],
                   check=True, capture_output=True)


def served_with(world, pair, ca=None):
    tls = {"names": None, "certFile": str(pair[0]), "keyFile": str(pair[1])}
    if ca:
        tls["caFile"] = str(ca)
    return {"advertiseUrl": f"https://{NODE}:8030", "server": {"tls": tls}}


@fault("tls", "expired", "expired.pem")
def certificate_expired(world):
    pair = certificate(world, "expired", start=("20200101000000Z", "20210101000000Z"))
    return served_with(world, pair, pair[0])


@fault("tls", "not yet valid")
def certificate_of_the_future(world):
    pair = certificate(world, "future", start=("20400101000000Z", "20410101000000Z"))
    return served_with(world, pair, pair[0])


@fault("tls", f"not for the name {NODE}")
def certificate_for_another_name(world):
    pair = certificate(world, "other")
    return served_with(world, pair, pair[0])


@fault("tls", "unable to get local issuer certificate")
def authority_of_another_certificate(world):
    own, another = certificate(world, "own-authority"), certificate(world, "another-authority")
    return served_with(world, certificate(world, "own", ca=own), another[0])


@fault("reach", "do not trust the spawner's certificate", probe=True)
def pods_trust_another_authority(world):
    pair = certificate(world, "trusted")
    url = world.pods.server.url
    return merged(served_with(world, pair, pair[0]), {"advertiseUrl": url})


@fault("tls", "the key does not belong to the certificate")
def key_of_another_certificate(world):
    one, two = certificate(world, "one"), certificate(world, "two")
    return served_with(world, (one[0], two[1]))


# quota and admission


@fault("pod", "exceeded quota: no-room")
def quota_exhausted(world):
    world.put({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-room"}, "spec": {"hard": {"pods": "0"}}})
    world.namespace.wait("resourcequota", "no-room", lambda q: q.get("status", {}).get("hard"))
    return {}


@fault("pod", "maximum memory usage per Container is 64Mi", retried=True)
def limit_range_below_the_step(world):
    world.put({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
               "spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}})
    return {"kubernetes": {"placement": {"resources": {"limits": {"memory": "256Mi"}}}}}


@fault("pod", "violates PodSecurity", "restricted", retried=True)
def pod_security_refuses_the_placement(world):
    label = "pod-security.kubernetes.io/enforce"
    world.cluster.kubectl("label", "namespace", world.namespace.name, f"{label}=restricted")
    world.undo.callback(world.cluster.kubectl, "label", "namespace", world.namespace.name, f"{label}-")
    return {"kubernetes": {"placement": {"securityContext": {"allowPrivilegeEscalation": True}}}}


@fault("start", "violates PodSecurity", probe=True)
def pod_security_refuses_it_and_the_spawner_may_not_try(world):
    pod_security_refuses_the_placement(world)
    return {"kubernetes": {"kubeconfig": str(world.spawner),
                           "placement": {"securityContext": {"allowPrivilegeEscalation": True}}}}


@fault("job", "failed calling webhook", "gate.example.org", retried=True)
def webhook_does_not_answer(world):
    name = world.namespace.name
    world.put_global({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{"name": "gate.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                      "failurePolicy": "Fail", "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/"},
                      "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                      "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"],
                                 "operations": ["CREATE"]}]}]})
    return {}


# storage


@fault("data-directory", "is not a directory")
def data_directory_is_a_file(world):
    path = world.directory / "file"
    path.touch()
    return {"dataDirectory": str(path)}


@fault("data-directory", "Read-only file system")
def data_directory_cannot_be_written(world):
    return {"dataDirectory": mounted(world, "ro", "ro")}


@fault("data-directory", "MiB left", "enlarge its volume")
def data_directory_is_full(world):
    return {"dataDirectory": mounted(world, "full", "size=1m")}


def mounted(world, name, options):
    path = world.directory / name
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)
    world.undo.callback(subprocess.run, ["umount", path], check=True)
    return str(path)


@fault("references", "claim nobody-made-it")
def plugin_cache_missing(world):
    return {"kubernetes": {"placement": {"pluginCache": {"claimName": "nobody-made-it", "mountPath": "/cache"}}}}


@fault("references", "claim unbound is Pending")
def plugin_cache_without_a_volume(world):
    world.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "unbound"},
               "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": {"storage": "1Mi"}}}})
    return {"kubernetes": {"kubeconfig": str(world.spawner), 
                           "placement": {"pluginCache": {"claimName": "unbound", "mountPath": "/cache"}}}}


@fault("pod-storage", "cannot write to", "pluginCache.readOnly", probe=True)
def plugin_cache_belongs_to_root(world):
    reach(world.directory)
    volume = claim_on(world.namespace, world.directory / "cache", "closed")
    (world.directory / "cache").chmod(0o755)
    world.undo.callback(world.cluster.kubectl, "delete", "pv", volume, "--wait=false")
    world.undo.callback(world.namespace.kubectl, "delete", "pvc", "closed", "--wait=false")
    return {"kubernetes": {"placement": {"pluginCache": {"claimName": "closed", "mountPath": "/cache"}}}}


@fault("pod-storage", "cannot write to /work", probe=True)
def work_directory_is_read_only(world):
    mount = {"name": "dayfly-work", "mountPath": "/work", "readOnly": True}
    return {"kubernetes": {"placement": {"podTemplate": {"spec": {"containers": [{"name": "runner", "volumeMounts": [mount]}]}}}}}


# files of the service


@fault("tokens", "missing-tokens")
def token_file_missing(world):
    return {"auth": {"tokenFile": str(world.directory / "missing-tokens")}}


@fault("tokens", "others may write to it")
def token_file_is_everybodys(world):
    path = world.directory / "open-tokens"
    shutil.copy(world.config["auth"]["tokenFile"], path)
    path.chmod(0o666)
    return {"auth": {"tokenFile": str(path)}}


@fault("credentials", "others may read it")
def registry_credentials_are_everybodys(world):
    path = world.directory / "registries"
    path.write_text("registry.example: not-a-secret\n")
    path.chmod(0o644)
    return {"providers": {"credentialsFile": str(path)}}


@fault("state-service", "stateService.tokenFile", "missing-token")
def token_of_the_state_service_missing(world):
    return {"stateService": {"url": "https://127.0.0.1:1/", "tokenFile": str(world.directory / "missing-token")}}


# placement


@fault("references", "Secret nobody-made-it")
def secret_of_the_placement_missing(world):
    return {"kubernetes": {"placement": {"secretMounts": [{"name": "nobody-made-it", "mountPath": "/secret"}]}}}


@fault("start", "nobody-made-it", "Secret that the pod needs does not exist", probe=True)
def secret_of_the_placement_missing_and_the_spawner_may_not_look(world):
    return merged(secret_of_the_placement_missing(world), {"kubernetes": {"kubeconfig": str(world.spawner)}})


@fault("references", "ConfigMap nobody-made-it")
def config_map_of_the_placement_missing(world):
    return {"kubernetes": {"placement": {"envFrom": [{"configMapRef": {"name": "nobody-made-it"}}]}}}


@fault("references", "priority class nobody-made-it")
def priority_class_missing(world):
    return {"kubernetes": {"placement": {"priorityClassName": "nobody-made-it"}}}


@fault("references", "runtime class nobody-made-it")
def runtime_class_missing(world):
    return {"kubernetes": {"placement": {"runtimeClassName": "nobody-made-it"}}}


@fault("nodes", "disk=nobody-made-it")
def no_node_has_the_labels(world):
    return {"kubernetes": {"placement": {"nodeSelector": {"disk": "nobody-made-it"}}}}


@fault("references", "Secret nobody-made-it", "classes.batch")
def secret_of_a_class_missing(world):
    return {"classes": {"batch": {"placement": {"secretMounts": [{"name": "nobody-made-it", "mountPath": "/secret"}]}}}}


@fault("pod", "workspaces.net: ", "violates PodSecurity", retried=True)
def pod_security_refuses_a_workspace(world):
    refused = pod_security_refuses_the_placement(world)["kubernetes"]["placement"]
    return {"workspaces": {"net": {"placement": refused}}}


@fault("start", "must keep its args", probe=True)
def pod_template_takes_the_runner_its_words(world):
    return {"kubernetes": {"placement": {"podTemplate": {"spec": {"containers": [{"name": "runner", "args": ["sleep"]}]}}}}}


# the tool


@fault("tool", "no tool that steps find", probe=True)
def no_tool_anywhere(world):
    return {"tools": {"searchPath": False}}


@pytest.mark.parametrize("name", FAULTS)
def test_the_doctor_finds(world, name):
    seed, check, words, probe, retried = FAULTS[name]
    changes = seed(world)
    args = [] if probe else ["--no-probe"]

    def seen():
        message = fails(world.doctor(changes, *args)).get(check, "")
        return message if all(word in message for word in words) else None
    if retried:  # what the API server learns a moment later
        wait_for(f"{check} to fail", seen)
    else:
        found = fails(world.doctor(changes, *args))
        assert check in found, found
        for word in words:
            assert word in found[check], found
    if name != "namespace_missing":
        wait_for("the probe to be removed", lambda: world.namespace.get("jobs") == [])
