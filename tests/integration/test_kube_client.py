"""The Kubernetes client (common/kube) against a real API server, with the server and its etcd failing under it."""

import base64
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import threading

import pytest

from lib.dayfly import BUILD, wait_for

KUBE = BUILD / "tools/kube"
CONFIG_MAPS, PODS, JOBS = "/v1/configmaps", "/v1/pods", "batch/v1/jobs"


def config_map(name, **labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


class Kube:
    """The client's test program in a namespace."""

    def __init__(self, namespace, kubeconfig=None, **env):
        self.name = namespace.name
        sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        self.env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig or namespace.cluster.kubeconfig),
                    **sanitizers, **env}

    def command(self, verb, *args):
        return [str(KUBE), "-n", self.name, verb, *args]

    def run(self, verb, *args, body=None):
        text = body if isinstance(body, str) else json.dumps(body) if body is not None else None
        return subprocess.run(self.command(verb, *args), env=self.env, input=text or "", capture_output=True, text=True,
                              check=False, timeout=120)

    def __call__(self, verb, *args, body=None):
        result = self.run(verb, *args, body=body)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def object(self, verb, *args, body=None):
        return json.loads(self(verb, *args, body=body))

    def fails(self, verb, *args, body=None):
        """[class, reason, seconds to wait, message]"""
        result = self.run(verb, *args, body=body)
        assert result.returncode == 1, result.stdout + result.stderr
        return result.stderr.strip().split(" ", 3)

    def follow(self, verb, *args):
        return Follower(self.command(verb, *args), self.env)


class Follower:
    """A watch in the background and what it has said so far."""

    def __init__(self, command, env):
        self.lines = []
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.read()), daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
        return []

    def wait(self, pattern, after=0):
        """Waits for a line, and returns its index."""
        def found():
            for i, line in enumerate(self.lines[after:], after):
                if re.fullmatch(pattern, line):
                    return i + 1
            return None
        return wait_for(f"{pattern!r} among {self.lines[-5:]}", found) - 1

    def names(self):
        """What exists by what was told."""
        there, told = set(), set()
        for line in self.lines:
            word, *rest = line.split()
            if word == "begin":
                told = set()
            elif word == "apply":
                there.add(rest[0])
                told.add(rest[0])
            elif word == "remove":
                there.discard(rest[0])
            elif word == "listed":
                there &= told
        return there

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(timeout=20) == 0
        self.reader.join()


@pytest.fixture
def kube(namespace):
    return Kube(namespace)


# ---- verbs ---------------------------------------------------------------------------------------------------

def test_an_object_is_made_read_changed_and_deleted(kube):
    made = kube.object("create", CONFIG_MAPS, body=config_map("a"))
    assert made["metadata"]["uid"] and made["data"] == {"k": "v"}
    assert kube.object("get", CONFIG_MAPS, "a")["metadata"]["uid"] == made["metadata"]["uid"]
    made["data"] = {"k": "w"}
    assert kube.object("update", CONFIG_MAPS, "a", body=made)["data"] == {"k": "w"}
    assert kube.object("patch", CONFIG_MAPS, "a", body={"data": {"l": "1"}})["data"] == {"k": "w", "l": "1"}
    assert kube.object("patch", CONFIG_MAPS, "a", "type=json", body=[{"op": "remove", "path": "/data/k"}])["data"] == {"l": "1"}
    kube("delete", CONFIG_MAPS, "a")
    assert kube.fails("get", CONFIG_MAPS, "a")[:2] == ["not-found", "NotFound"]
    assert kube.fails("delete", CONFIG_MAPS, "a")[0] == "not-found"


def test_of_a_large_object_the_metadata_alone_may_be_asked_for(kube):
    whole = kube.object("create", CONFIG_MAPS, body=config_map("a"))
    part = kube.object("get", CONFIG_MAPS, "a", "metadata=true")
    assert part["metadata"]["uid"] == whole["metadata"]["uid"] and "data" not in part
    assert part["kind"] == "PartialObjectMetadata"
    changed = kube.object("update", CONFIG_MAPS, "a", "metadata=true", body={**whole, "data": {"k": "w"}})
    assert "data" not in changed and kube.object("get", CONFIG_MAPS, "a")["data"] == {"k": "w"}


def test_server_side_apply_makes_and_takes_over(kube):
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    assert kube.object("patch", CONFIG_MAPS, "a", "type=apply", "manager=one", body=mine)["data"] == {"k": "1"}
    mine["data"]["k"] = "2"
    assert kube.fails("patch", CONFIG_MAPS, "a", "type=apply", "manager=two", body=mine)[:2] == ["conflict", "Conflict"]
    assert kube.object("patch", CONFIG_MAPS, "a", "type=apply", "manager=two", "force=true", body=mine)["data"] == {"k": "2"}


def test_a_strategic_patch_merges_lists_by_name(kube, namespace):
    made = kube.object("create", JOBS, body=job("j", namespace.cluster.pause_image))
    patch = {"metadata": {"labels": {"x": "y"}}, "spec": {"suspend": True}}
    changed = kube.object("patch", JOBS, "j", "type=strategic", body=patch)
    assert changed["spec"]["suspend"] and changed["metadata"]["labels"]["x"] == "y"
    assert changed["spec"]["template"]["spec"]["containers"] == made["spec"]["template"]["spec"]["containers"]


def test_conflicts_are_told_apart(kube):
    made = kube.object("create", CONFIG_MAPS, body=config_map("a"))
    cls, reason, _, message = kube.fails("create", CONFIG_MAPS, body=config_map("a"))
    assert (cls, reason) == ("conflict", "AlreadyExists") and '"a" already exists' in message
    kube("patch", CONFIG_MAPS, "a", body={"data": {"l": "1"}})
    assert kube.fails("update", CONFIG_MAPS, "a", body=made)[:2] == ["conflict", "Conflict"]


def test_a_delete_holds_to_its_preconditions(kube):
    made = kube.object("create", CONFIG_MAPS, body=config_map("a"))["metadata"]
    assert kube.fails("delete", CONFIG_MAPS, "a", "uid=11111111-2222-3333-4444-555555555555")[:2] == ["conflict", "Conflict"]
    kube("patch", CONFIG_MAPS, "a", body={"data": {"l": "1"}})
    assert kube.fails("delete", CONFIG_MAPS, "a", f"version={made['resourceVersion']}")[:2] == ["conflict", "Conflict"]
    kube("delete", CONFIG_MAPS, "a", f"uid={made['uid']}")
    assert kube.fails("get", CONFIG_MAPS, "a")[0] == "not-found"


def test_what_is_wrong_with_an_object_is_told_with_every_cause(kube, namespace):
    bad = job("j", namespace.cluster.pause_image)
    bad["spec"]["backoffLimit"] = -1
    bad["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    cls, reason, _, message = kube.fails("create", JOBS, body=bad)
    assert (cls, reason) == ("user", "Invalid")
    assert "spec.backoffLimit" in message and "restartPolicy" in message
    assert kube.fails("create", JOBS, body={"spec": 7})[0] == "user"


def test_what_is_wrong_with_a_secret_never_shows_its_value(kube):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "hunter2 is not base64"}}
    cls, _, _, message = kube.fails("create", "/v1/secrets", body=secret)
    assert cls == "user" and "hunter2" not in message


def test_a_resource_that_is_not_served_is_no_absent_object(kube):
    assert kube.fails("get", "nowhere.example/v1/things", "a")[:2] == ["retry", "NotServed"]


def test_the_grace_period_and_propagation_are_as_asked(kube, namespace):
    kube("create", JOBS, body=job("j", namespace.cluster.pause_image))
    wait_for("the pod", lambda: namespace.get("pods"))
    kube("delete", JOBS, "j", "propagation=Orphan")
    namespace.wait_gone("job", "j")
    left = namespace.get("pods")[0]["metadata"]
    assert not left.get("ownerReferences") and not left.get("deletionTimestamp")
    kube("delete", PODS, left["name"], "grace=0")
    namespace.wait_gone("pod", left["name"])


def pod(name, image, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never",
                     "containers": [{"name": "main", "image": image, "imagePullPolicy": "Never"}], **spec}}


def job(name, image):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "template": {"spec": pod(name, image)["spec"]}}}


# ---- lists and watches ---------------------------------------------------------------------------------------

def test_a_list_comes_in_pages_with_selectors(kube, namespace):
    namespace.apply(*(config_map(f"c{i}", even=str(i % 2 == 0)) for i in range(11)))
    names = re.findall(r"^item (c\d+) \d+$", kube("list", CONFIG_MAPS, "page=3", "fields=metadata.name!=kube-root-ca.crt"), re.M)
    assert sorted(names) == sorted(f"c{i}" for i in range(11)) and len(names) == 11
    assert len(re.findall(r"^item ", kube("list", CONFIG_MAPS, "labels=even=True"), re.M)) == 6


def test_a_watch_tells_what_is_and_what_becomes(kube):
    kube("create", CONFIG_MAPS, body=config_map("a"))
    with kube.follow("watch", CONFIG_MAPS, "fields=metadata.name!=kube-root-ca.crt") as w:
        w.wait("listed")
        assert w.names() == {"a"}
        kube("create", CONFIG_MAPS, body=config_map("b"))
        kube("patch", CONFIG_MAPS, "a", body={"data": {"x": "y"}})
        kube("delete", CONFIG_MAPS, "a")
        w.wait(r"remove a \d+")
        assert w.names() == {"b"}
        assert [line.split()[:2] for line in w.lines] == [
            ["begin"], ["apply", "a"], ["listed"], ["apply", "b"], ["apply", "a"], ["remove", "a"]]


def test_a_stream_that_the_server_ends_is_taken_up_again(kube):
    with kube.follow("watch", CONFIG_MAPS, "timeout=1") as w:
        w.wait("listed")
        for i in range(12):
            kube("create", CONFIG_MAPS, body=config_map(f"c{i}"))
            w.wait(rf"apply c{i} \d+")
            if i % 4 == 3:
                threading.Event().wait(1.1)  # over the server's own end
        assert [line for line in w.lines if line.startswith(("begin", "failed"))] == ["begin"]


def test_a_watch_outlives_the_api_server(alone, namespace):
    kube = Kube(namespace)
    with kube.follow("watch", CONFIG_MAPS) as w:
        w.wait("listed")
        kube("create", CONFIG_MAPS, body=config_map("before"))
        w.wait(r"apply before \d+")
        alone.kill_part("apiserver")
        w.wait("failed retry .*")
        assert kube.fails("get", CONFIG_MAPS, "before")[0] == "retry"
        alone.bring_back()
        kube("create", CONFIG_MAPS, body=config_map("after"))
        kube("delete", CONFIG_MAPS, "before")
        w.wait(r"remove before \d+")
        assert {"after"} <= w.names() and "before" not in w.names()
        assert len([line for line in w.lines if line.startswith("apply before")]) <= 2


def test_a_watch_outlives_etcd(alone, namespace):
    kube = Kube(namespace)
    with kube.follow("watch", CONFIG_MAPS) as w:
        w.wait("listed")
        alone.kill_part("etcd")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            # The API server holds it back for half a minute before it gives up; until then etcd may be back.
            during = pool.submit(kube.run, "create", CONFIG_MAPS, body=config_map("during"))
            alone.bring_back()
            assert during.result().returncode == 0 or during.result().stderr.startswith("retry ")
        wait_for("a write", lambda: kube.run("create", CONFIG_MAPS, body=config_map("after")).returncode == 0)
        w.wait(r"apply after \d+")


def compact(version):
    """What etcd does every five minutes for the API server."""
    body = json.dumps({"revision": str(version), "physical": True})
    subprocess.run(["curl", "-sf", "-d", body, "http://127.0.0.1:23790/v3/kv/compaction"], check=True, capture_output=True)


def test_a_watch_whose_past_was_compacted_lists_once_more(alone, namespace):
    kube = Kube(namespace)
    kube("create", CONFIG_MAPS, body=config_map("stays"))
    kube("create", CONFIG_MAPS, body=config_map("goes"))
    with kube.follow("watch", CONFIG_MAPS, "fields=metadata.name!=kube-root-ca.crt") as w:
        w.wait("listed")
        w.process.send_signal(19)  # SIGSTOP: it sleeps through what follows
        kube("delete", CONFIG_MAPS, "goes")
        newest = kube.object("create", CONFIG_MAPS, body=config_map("comes"))["metadata"]["resourceVersion"]
        for i in range(5):
            newest = kube.object("patch", CONFIG_MAPS, "stays", body={"data": {"n": str(i)}})["metadata"]["resourceVersion"]
        alone.kill_part("apiserver")  # its watch cache goes with it
        alone.bring_back()
        compact(newest)
        w.process.send_signal(18)
        w.wait(r"apply comes \d+")
        w.wait(rf"apply stays {newest}")
        wait_for("a true picture", lambda: w.names() == {"stays", "comes"})
        assert w.lines.count("begin") <= 2
        before = len(w.lines)
        kube("create", CONFIG_MAPS, body=config_map("later"))
        w.wait(r"apply later \d+", before)


def is_part(told, whole):
    """All that was told stands in the whole, and of lists nothing is missing."""
    if isinstance(told, dict):
        return isinstance(whole, dict) and all(k in whole and is_part(v, whole[k]) for k, v in told.items())
    if isinstance(told, list):
        return len(told) == len(whole) and all(map(is_part, told, whole))
    return told == whole


def test_jobs_and_pods_are_told_as_protobuf_as_their_json_has_them(kube, namespace):
    """To the engine, which reads of them what it goes by."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ends", "labels": {"dayfly.dev/x": ""}}, "spec": {
        "backoffLimit": 0, "suspend": False, "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "waits", "image": namespace.cluster.pause_image, "imagePullPolicy": "Never"},
            {"name": "fails", "image": namespace.cluster.pause_image, "imagePullPolicy": "Never", "command": ["/nowhere"]}]}}}}

    def last(follower):
        objects = [json.loads(line.removeprefix("object ")) for line in follower.lines if line.startswith("object ")]
        return objects[-1] if objects else {"metadata": {}}

    def told_as_it_is(follower, kind):
        """What was told last, which is the object as it is now."""
        def same():
            told, whole = last(follower), namespace.get(kind)[0]
            return (told, whole) if told["metadata"].get("resourceVersion") == whole["metadata"]["resourceVersion"] else None
        told, whole = wait_for(f"the last of the {kind}", same)
        assert is_part(told, whole), (told, whole)
        return told
    with kube.follow("watch", JOBS, "as=engine") as jobs, kube.follow("watch", PODS, "as=engine") as pods:
        jobs.wait("listed")
        pods.wait("listed")
        kube("create", JOBS, body=job)
        wait_for("the container to fail", lambda: "StartError" in json.dumps(last(pods)))
        pod = told_as_it_is(pods, "pods")
        ends = {c["name"]: c["state"] for c in pod["status"]["containerStatuses"]}
        assert ends["fails"]["terminated"]["exitCode"] == 128 and ends["waits"]["running"]["startedAt"]
        assert [c["name"] for c in pod["spec"]["containers"]] == ["waits", "fails"] and pod["spec"]["nodeName"] == "node1"
        namespace.kubectl("delete", "pod", "--all", "--wait=false")
        # "FailureTarget" has the same reason, and comes before the pods are counted
        wait_for("the Job to fail", lambda: "Failed" in [c["type"] for c in last(jobs).get("status", {}).get("conditions", [])])
        told = told_as_it_is(jobs, "jobs")
        assert told["status"]["failed"] == 1 and told["spec"] == {"suspend": False}  # as JSON there would be more
        assert told["status"]["conditions"] and told["metadata"]["labels"] == {"dayfly.dev/x": ""}
        assert [line for line in jobs.lines + pods.lines if line.startswith("failed")] == []


def test_a_cache_follows(kube):
    kube("create", CONFIG_MAPS, body=config_map("a"))
    with kube.follow("cache", CONFIG_MAPS, "fields=metadata.name!=kube-root-ca.crt") as c:
        c.wait("synced 1")
        kube("delete", CONFIG_MAPS, "a")
        wait_for("both changes", lambda: c.lines.count("a") == 2)


# ---- who we are ----------------------------------------------------------------------------------------------

def kubeconfig_of(namespace, tmp_path, **changes):
    """The administrator's kubeconfig with other words for cluster or user."""
    config = json.loads(namespace.cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"].update(changes.get("cluster", {}))
    if "user" in changes:
        config["users"][0]["user"] = changes["user"]
    for key in changes.get("without", []):
        config["clusters"][0]["cluster"].pop(key)
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def encoded(path):
    return base64.b64encode(pathlib.Path(path).read_bytes()).decode()


def test_certificates_may_stand_in_the_kubeconfig_itself(namespace, tmp_path):
    config = json.loads(namespace.cluster.kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    path = kubeconfig_of(namespace, tmp_path, without=["certificate-authority"],
                         cluster={"certificate-authority-data": encoded(cluster["certificate-authority"])},
                         user={"client-certificate-data": encoded(user["client-certificate"]),
                               "client-key-data": encoded(user["client-key"])})
    Kube(namespace, path)("list", CONFIG_MAPS)


def test_another_authority_is_refused(namespace, tmp_path):
    own = tmp_path / "own"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{own}.key", "-out", f"{own}.crt",
                    "-subj", "/CN=dayfly-test-ca", "-days", "2"], check=True, capture_output=True)
    path = kubeconfig_of(namespace, tmp_path, cluster={"certificate-authority": f"{own}.crt"})
    cls, _, _, message = Kube(namespace, path).fails("list", CONFIG_MAPS)
    assert cls == "denied" and "CA certificate" in message


def test_nobody_is_verified_where_the_operator_said_so(namespace, tmp_path):
    path = kubeconfig_of(namespace, tmp_path, without=["certificate-authority"], cluster={"insecure-skip-tls-verify": True})
    Kube(namespace, path)("list", CONFIG_MAPS)


def test_the_certificate_may_be_for_another_name(namespace, tmp_path):
    path = kubeconfig_of(namespace, tmp_path, cluster={"tls-server-name": "kubernetes.default.svc"})
    Kube(namespace, path)("list", CONFIG_MAPS)
    path = kubeconfig_of(namespace, tmp_path, cluster={"tls-server-name": "elsewhere.example"})
    assert Kube(namespace, path).fails("list", CONFIG_MAPS)[0] == "denied"


def test_a_service_account_is_who_its_token_says(namespace, tmp_path):
    account = tmp_path / "account"
    account.mkdir()
    (account / "namespace").write_text(namespace.name)
    (account / "token").write_text(namespace.token())
    (account / "ca.crt").write_bytes((namespace.cluster.kubeconfig.parent / "pki/ca.crt").read_bytes())
    kube = Kube(namespace, KUBERNETES_SERVICE_HOST="10.89.0.1", KUBERNETES_SERVICE_PORT="6443",
                SERVICE_ACCOUNT_DIRECTORY=str(account))
    del kube.env["KUBECONFIG"]
    cls, reason, _, message = kube.fails("list", CONFIG_MAPS)
    assert (cls, reason) == ("denied", "Forbidden")
    assert f"system:serviceaccount:{namespace.name}:default" in message
    namespace.kubectl("create", "rolebinding", "see", "--clusterrole=view", f"--serviceaccount={namespace.name}:default")
    wait_for("the right", lambda: kube.run("list", CONFIG_MAPS).returncode == 0)
    (account / "token").write_text("eyJub3QiOiJhIHRva2VuIn0")
    cls, reason, _, message = kube.fails("list", CONFIG_MAPS)
    assert (cls, reason) == ("denied", "Unauthorized") and "eyJ" not in message


def test_an_exec_plug_in_says_who_we_are(namespace, tmp_path):
    plugin = tmp_path / "plug-in"
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": namespace.token()}}
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    plugin.chmod(0o700)
    path = kubeconfig_of(namespace, tmp_path, user={"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "./plug-in", "interactiveMode": "Never"}})
    assert f"system:serviceaccount:{namespace.name}:default" in Kube(namespace, path).fails("list", CONFIG_MAPS)[3]


# ---- what the audit log saw ----------------------------------------------------------------------------------

def test_the_audit_log_names_each_verb(kube, namespace):
    kube("create", CONFIG_MAPS, body=config_map("a"))
    kube("list", CONFIG_MAPS)
    kube("delete", CONFIG_MAPS, "a")

    def verbs():
        return {e["verb"] for e in namespace.cluster.audit(namespace.name)
                if e.get("objectRef", {}).get("namespace") == namespace.name and e["userAgent"].startswith("dayfly/")}
    wait_for("the verbs", lambda: verbs() == {"create", "list", "delete"})
