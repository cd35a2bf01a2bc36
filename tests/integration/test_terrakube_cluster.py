"""The executor of a Terrakube in a real cluster, by both ways: Jobs as its API makes them, and the service that its API posts to.
What Terrakube's own chart makes is there as it was recorded; its API, its Redis and its storage are this test's."""

import base64
import contextlib
import json
import os
import pathlib
import re
import signal
import types

import pytest
import yaml

from lib import cluster as kubernetes
from lib import dayfly
from lib.buckets import ACCESS, S3, SECRET
from lib.dayfly import wait_for
from lib.executor import FIXTURES, MODULE, chart_objects
from lib.git_servers import HttpsServer
from lib.pods import NODE, Pods, claim_on, reach, terrakube_image, volume_of
from lib.redis import Redis
from lib.release import CHART, Release
from lib.terrakube import Terrakube

SHOUT = "test-only-shout"
VARIABLES = {"owner": "oracle", "shout": SHOUT}
SETTINGS = ("terrakube-executor-config", "terrakube-executor-secrets")
ENDED = ("completed", "failed")
KEYS = {f"AwsTerraform{what}{key}": value for what in ("State", "Output") for key, value in (("AccessKey", ACCESS), ("SecretKey", SECRET))}
SLOW = """
variable "ledger" {}
resource "terraform_data" "first" {
  provisioner "local-exec" { command = "curl -s -o /dev/null ${var.ledger}/begun/$(hostname)" }
}
resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "exec sleep 600" }
}
"""


ALIVE = SLOW.replace("exec sleep 600", "while curl -s -o /dev/null ${var.ledger}/alive; do sleep 0.1; done")


def recorded(name):
    """An object that Terrakube's API has made."""
    return yaml.safe_load((FIXTURES / f"{name}.yaml").read_text())


def service_of(name, port, address):
    """What leads from a name of the cluster to a server of this test."""
    host, _, to = address.rpartition(":")
    labels = {"kubernetes.io/service-name": name}
    return ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": port}]}},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": name, "labels": labels},
             "addressType": "IPv4", "ports": [{"port": int(to)}], "endpoints": [{"addresses": [host]}]})


def has(whole, part):
    """Is everything of part in whole: members of objects, items of lists?"""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and has(whole[k], v) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(has(w, p) for w in whole) for p in part)
    return whole == part


class Place:
    """Terrakube's namespace, and the servers behind its names."""

    def __init__(self, cluster, tofu, directory, stack):
        self.cluster, self.tofu, self.directory, self.stack = cluster, tofu, directory, stack
        reach(directory)
        self.home = dayfly.Home(directory / "home", tofu)
        self.chart = {d["metadata"]["name"]: d for d in chart_objects() if d["metadata"]["name"] in SETTINGS}
        secrets = self.chart["terrakube-executor-secrets"]["stringData"]
        self.redis = stack.enter_context(Redis(directory / "redis", password=secrets["TerrakubeRedisPassword"], host=NODE))
        self.s3 = stack.enter_context(S3(directory / "s3", host=NODE))
        (self.s3.directory / "terrakube").mkdir()
        self.api = stack.enter_context(Terrakube("2.33", redis=self.redis, saved=self.saved, host=NODE))
        self.api.secret = secrets["InternalSecret"]
        self.git = stack.enter_context(HttpsServer(directory / "home", host=NODE))
        secrets.update(KEYS)  # the chart's own are those of its MinIO
        self.namespace = self.make_namespace()
        self.namespace.apply(*self.chart.values(), *service_of("terrakube-api-service", 8080, self.api.address),
                             *service_of("terrakube-valkey", 6379, f"{NODE}:{self.redis.port}"),
                             *service_of("terrakube-minio", 9000, self.s3.address))

    def make_namespace(self):
        made = kubernetes.Namespace(self.cluster)
        self.stack.callback(made.close)
        return made

    def saved(self, organization, job, step):
        path = self.s3.directory / "terrakube/tfoutput" / organization / job / f"{step}.tfoutput"
        return path.read_text() if path.exists() else None

    def output(self, job, step):
        """Without its colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.saved(self.api.organization, job.id, step.id) or "")

    def state(self, workspace):
        path = self.s3.directory / "terrakube/tfstate" / self.api.organization / workspace.id / "terraform.tfstate"
        return json.loads(path.read_text())

    def workspace(self, name="net", text=MODULE, **more):
        self.home.repository(self.home.module(name, text))
        return self.api.workspace(name, f"{self.git.url}/{name}/.git", **{"variables": VARIABLES, **more})

    def make_job(self, job, like="job-plan", **pod):
        """The Job of the next step, as it was recorded, but for the image; with the ConfigMap that the API adds since 2.31."""
        dispatch, document = self.api.dispatch(job), recorded(like)
        name = f"job-{job.id}"
        document["metadata"].update(name=name, namespace=self.namespace.name, labels={"workspaceId": job.workspace.id})
        spec = document["spec"]["template"]["spec"]
        container, = spec["containers"]
        container.update(name=name, image=terrakube_image(self.cluster, self.tofu), **pod.pop("container", {}))
        container["env"] = [{"name": n, "value": v} for n, v in dispatch.env.items()]
        container["envFrom"].append({"configMapRef": {"name": "terrakube-executor-config"}})
        spec.update(pod)
        self.namespace.apply(document)
        return dispatch.step

    def pods_of(self, job):
        return self.namespace.get_all("pods", f"batch.kubernetes.io/job-name=job-{job.id}")

    def finish(self, job):
        """The Job's end; it makes room for the next of its name."""
        def over():
            return {c["type"] for c in self.namespace.get("job", f"job-{job.id}")["status"].get("conditions", []) if c["status"] == "True"}
        said = wait_for("the end of the Job", lambda: over() & {"Complete", "Failed"})
        logs = self.namespace.kubectl("logs", f"job/job-{job.id}", check=False).stdout
        self.namespace.kubectl("delete", "job", f"job-{job.id}")
        assert "Complete" in said, logs
        return logs

    def begun(self, workspace):
        return [r for r in self.api.requests if r["path"].startswith(f"/{workspace.id}/begun/")]


@pytest.fixture(scope="module")
def place(cluster, tofu, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        stack.enter_context(kubernetes.Calm(alone=False))
        yield Place(cluster, tofu, tmp_path_factory.mktemp("terrakube"), stack)


@pytest.fixture(autouse=True)
def obeyed(place):
    """Nothing that the API would choke on."""
    place.api.faults.clear()
    yield
    assert place.api.faults == []


# ---- Jobs that the API makes ----

def test_jobs_as_terrakube_makes_them_plan_in_one_pod_and_apply_in_another(place):
    """The plan with nothing but what was recorded; the apply as another user, whose pod has no writable place but /tmp."""
    place.api.history.clear()
    net = place.workspace()
    job = place.api.job(net, "terraformPlan", "terraformApply")
    plan = place.make_job(job)
    said = place.finish(job)
    assert (job.status, plan.status) == ("pending", "completed"), said
    assert "Plan: 3 to add, 0 to change, 0 to destroy." in place.output(job, plan)
    assert "Plan:" in said, "the pod's log has it, too"
    apply = place.make_job(job, "job-apply", securityContext={"runAsUser": 1002, "runAsGroup": 1000, "runAsNonRoot": True},
                           volumes=[{"name": "tmp", "emptyDir": {}}],
                           container={"securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
                                      "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]})
    said = place.finish(job)
    assert (job.status, apply.status) == ("completed", "completed"), said
    assert "Apply complete! Resources: 3 added" in place.output(job, apply)
    assert place.state(net)["outputs"]["greeting"]["value"] == "hello oracle" and SHOUT.upper() not in said
    assert set(job.context["planStructuredOutput"]) == {plan.id} and len(place.api.history) == 1


def kill_runner(pod):
    """From outside its pod, as the kernel would."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if pod["metadata"]["uid"] in (entry / "cgroup").read_text() and (entry / "comm").read_text().strip() == "dayfly-runner":
                os.kill(int(entry.name), signal.SIGKILL)


def test_a_pod_that_kubernetes_starts_again_does_not_apply_again(place):
    """One pod is deleted in mid-apply: it ends its step itself, with or without a second pod beside it. One runner is killed: the second
    pod tells the API. Both Jobs end well."""
    jobs = {}
    place.api.history.clear()
    for end in ("deleted", "killed"):
        net = place.workspace(end, SLOW)
        net.variables = {"ledger": f"{place.api.url}/{net.id}"}
        jobs[end] = place.api.job(net, "terraformApply")
        place.make_job(jobs[end], "job-apply")
    for job in jobs.values():
        wait_for("the apply", lambda job=job: place.begun(job.workspace) and "second: Creating" in "".join(place.api.lines(job)))
    first = {end: place.pods_of(job)[0] for end, job in jobs.items()}
    place.namespace.kubectl("delete", "pod", first["deleted"]["metadata"]["name"], "--wait=false")
    kill_runner(first["killed"])
    place.redis.command("DEL", f"dayfly:live:{jobs['killed'].steps[0].id}")  # it would end 45 s after the pod
    for end, job in jobs.items():
        step, = job.steps
        wait_for("the end of the step", lambda step=step: step.status in ENDED)
        if end == "killed":
            wait_for("a second pod", lambda job=job, end=end: [p for p in place.pods_of(job) if p["metadata"]["uid"] != first[end]["metadata"]["uid"]])
        said = place.finish(job)
        assert (job.status, step.status) == ("failed", "failed"), said
        assert len(place.begun(job.workspace)) == 1
    assert [h["relationships"]["workspace"]["data"]["id"] for h in place.api.history] == [jobs["deleted"].workspace.id]
    assert "it is not run again" in place.output(jobs["killed"], jobs["killed"].steps[0])
    assert [r["name"] for r in place.state(jobs["deleted"].workspace)["resources"]] == ["first", "second"]


# ---- the service, as its chart installs it ----

class Service(Release):
    """The release of the three commands of docs/terrakube.md, in a namespace that is not called terrakube."""

    def __init__(self, place):
        self.place = place
        image, tag = terrakube_image(place.cluster, place.tofu).rsplit(":", 1)
        super().__init__(place.home, place.namespace, place.tofu, "dayfly", runner={"image": {"repository": image, "tag": tag}},
                         persistence={"storageClass": "-", "size": "1Gi"},
                         placement={"allow": {"write": {"terrakube": {"fields": ["podSecurityContext", "securityContext", "nodeSelector", "tolerations", "labels", "annotations", "resources", "env",
                                                                              "envFrom", "serviceAccountName", "configMapMounts", "podAnnotations", "pluginCache"], "serviceAccounts": ["*"], "configMaps": ["*"], "metadata": ["terrakube.io/*", "a.example/*"]}}}})
        self.full = "dayfly"
        volume = volume_of(place.namespace, place.directory / "data", "dayfly-data")
        place.stack.callback(place.cluster.kubectl, "delete", "pv", volume, "--wait=false")
        self.helm("install", "dayfly", CHART, "--values", CHART / "examples/terrakube.yaml", "--values", self.values, "--wait", "--timeout", "2m")
        place.stack.callback(self.helm, "uninstall", "dayfly", check=False)
        self.connect()
        address = place.namespace.get("service", "dayfly")["spec"]["clusterIP"]
        self.url = f"http://{address}:8090/api/v1/terraform-rs"

    def begin(self, job):
        """Gives it the next step; the step and the name it has here."""
        step = job.next_step()
        assert self.place.api.post(job, self.url) == 202
        return step, f"tk-{job.id}-{step.id}"

    def run_step(self, job):
        """To its end; step, Job and pod."""
        step, name = self.begin(job)
        wait_for("the end of the step", lambda: step.status in ENDED and job.status not in ("queue", "running") and job.settled.is_set())
        return step, self.namespace.get("job", name), self.pod_of(name)


@pytest.fixture(scope="module")
def service(place):
    return Service(place)


def test_the_service_runs_plan_and_apply_in_pods_of_their_own(service, place):
    net = place.workspace("served")
    job = place.api.job(net, "terraformPlan", "terraformApply")
    plan, _, first = service.run_step(job)
    assert (job.status, plan.status) == ("pending", "completed"), place.output(job, plan)
    apply, _, second = service.run_step(job)
    assert (job.status, apply.status) == ("completed", "completed"), place.output(job, apply)
    assert "Apply complete! Resources: 3 added" in place.output(job, apply)
    for step, pod in ((plan, first), (apply, second)):
        task = service.document("taskactions", f"tk-{job.id}-{step.id}")
        assert task["status"]["claimedBy"]["podName"] == pod["metadata"]["name"]
        assert pod["metadata"]["labels"]["terrakube.io/workspace"] == net.id


def test_a_runner_of_the_service_killed_in_mid_apply_keeps_its_lines_and_names_what_may_exist(service, place):
    net = place.workspace("lost", ALIVE)
    net.variables = {"ledger": f"{place.api.url}/{net.id}"}
    job = place.api.job(net, "terraformApply")
    step, name = service.begin(job)
    # Events of the last moment may be lost with the pod: some calls later these are not of it.
    wait_for("the apply", lambda: len([r for r in place.api.requests if r["path"] == f"/{net.id}/alive"]) > 20)
    kill_runner(service.pod_of(name))
    wait_for("the end of the step", lambda: step.status in ENDED and job.settled.is_set())
    said = place.output(job, step)
    parts = ["terraform_data.first: Creation complete", "dayfly: RunnerKilled: ", "  terraform_data.first: was made, id ",
             "  terraform_data.second: was begun, and may exist", "it is not run again: look at the state, and plan again."]
    places = [said.find(part) for part in parts]
    assert -1 not in places and places == sorted(places), said
    why = service.home.dayfly("why", f"taskaction/{name}").stdout
    assert "terraform_data.second: was begun, may exist" in why and "run again" not in (why + said).replace("not run again", ""), why
    assert len(place.begun(net)) == 1


def test_the_rights_that_terrakube_documents_let_its_api_make_jobs_and_no_more(cluster):
    """Applied as they stand: what they say is Terrakube's own text."""
    account, made = "system:serviceaccount:terrakube:terrakube-api-service-account", dayfly.ROOT / "examples/terrakube-rbac.yaml"

    def may(verb, kind):
        return cluster.kubectl("auth", "can-i", verb, kind, "-n", "terrakube", "--as", account, check=False).stdout.strip() == "yes"

    assert [(d["kind"], d["metadata"]["name"], d["metadata"]["namespace"]) for d in yaml.safe_load_all(made.read_text())] == [
        ("ServiceAccount", "terrakube-api-service-account", "terrakube"), ("Role", "terrakube-api-role", "terrakube"),
        ("RoleBinding", "terrakube-api-role-binding", "terrakube")]
    cluster.kubectl("create", "namespace", "terrakube")
    try:
        cluster.kubectl("apply", "-f", made)
        assert all(may(verb, "jobs.batch") for verb in ("get", "list", "watch", "create", "update", "patch", "delete"))
        assert not any(may(verb, kind) for verb in ("get", "create") for kind in ("secrets", "pods", "configmaps"))
    finally:
        cluster.kubectl("delete", "namespace", "terrakube", "--wait=false")


def test_helm_test_asks_all_parts_of_terrakube_and_runs_a_step(service, place):
    before = len(place.api.requests)
    said = service.helm("test", "dayfly", "--logs").stdout
    assert said.count("Succeeded") >= 3 and "POD LOGS: dayfly-test" in said, said
    asked = {(r["path"], r["status"]) for r in place.api.requests[before:]}
    assert {("/api/v1/organization", 200), ("/tofu/index.json", 200)} <= asked


LOOK = """
id -u
cat /etc/extra/file
echo of the job: $OF_JOB, of the map: $FROM_MAP
touch $TF_PLUGIN_CACHE_DIR/by-a-user
"""
MORE_KEYS = {
    "EPHEMERAL_CONFIG_LABELS": "team=red;terrakube.io/workspace=another",
    "EPHEMERAL_CONFIG_POD_ANNOTATIONS": "p=q",
    "EPHEMERAL_STORAGE_REQUEST": "1Mi", "EPHEMERAL_STORAGE_LIMIT": "1Gi",
    "EPHEMERAL_JOB_ENV_VARS": "OF_JOB=yes",
    "EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP": "extra-env",
}


def mounts_of(pod_spec):
    """{path: what is there}, of the only container."""
    volumes = {v["name"]: {k: s for k, s in v.items() if k != "name"} for v in pod_spec["volumes"]}
    container, = pod_spec["containers"]
    return {m["mountPath"]: volumes[m["name"]] for m in container["volumeMounts"]}


def bash(script):
    return {"commandList": [{"runtime": "BASH", "script": script, "priority": 1, "after": True}]}


@pytest.fixture
def things(place):
    """What the recorded workspace names, and a node as it wants one."""
    def config_map(name, **data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    volume = claim_on(place.namespace, place.directory / "plugin-cache", "plugin-cache")
    place.namespace.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner-sa"}},
                          config_map("extra-files", file="text of a file\n"), config_map("extra-env", FROM_MAP="yes"))
    place.cluster.kubectl("label", "node", place.cluster.node, "diskType=ssd", "pool=runners")
    yield
    place.cluster.kubectl("label", "node", place.cluster.node, "diskType-", "pool-")
    place.cluster.kubectl("delete", "pv", volume, "--wait=false")


def test_the_keys_of_a_workspace_make_the_pod_that_terrakube_makes_of_them(service, place, things):
    like = recorded("job-toggles-all")
    expected = like["spec"]["template"]["spec"]
    container, = expected["containers"]
    payload, = [json.loads(base64.b64decode(e["value"])) for e in container["env"] if e["name"] == "EphemeralJobData"]
    net = place.workspace("toggles", environment={**payload["environmentVariables"], **MORE_KEYS})
    net.environment.pop("organizationName")
    step, job, pod = service.run_step(place.api.job(net, ("terraformPlan", bash(LOOK))))
    output = place.output(next(iter(j for j in place.api.jobs.values() if step in j.steps)), step)
    assert step.status == "completed", output

    spec, (ours,) = pod["spec"], pod["spec"]["containers"]
    assert spec["nodeSelector"] == expected["nodeSelector"] and spec["serviceAccountName"] == expected["serviceAccountName"]
    for part in ("tolerations", "securityContext"):
        assert has(spec[part], expected[part]), spec[part]
    assert has(ours["securityContext"], container["securityContext"])
    resources = {kind: {**values, "ephemeral-storage": size} for (kind, values), size in zip(sorted(container["resources"].items()), ("1Gi", "1Mi"))}
    assert ours["resources"] == resources
    mounts = mounts_of(spec)
    for path, volume in mounts_of(expected).items():
        assert has(mounts[path], volume), mounts
    assert has(job["metadata"], {"annotations": like["metadata"]["annotations"]})
    assert has(pod["metadata"], {"annotations": {"p": "q"}})
    forced = {"terrakube.io/organization": place.api.organization, "terrakube.io/workspace": net.id}
    for labels in (job["metadata"]["labels"], pod["metadata"]["labels"]):
        assert has(labels, {"team": "red", **forced}), labels

    assert "1002\ntext of a file\nof the job: yes, of the map: yes\n" in output
    assert (place.directory / "plugin-cache/by-a-user").exists()
    assert_no_secret_lies_around(place)


def forms_of(secret):
    return secret, base64.b64encode(secret.encode()).decode()


def assert_no_secret_lies_around(place):
    """Neither the payload nor a setting of the platform is in an object of the namespace, but in the Secret that has it anyway."""
    kinds = place.namespace.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").stdout.split()
    found = json.loads(place.namespace.kubectl("get", ",".join(kinds), "-o", "json").stdout)["items"]
    assert {"Job", "Pod", "ConfigMap", "Secret"} <= {o["kind"] for o in found}
    for secret in (SHOUT, place.api.secret, place.redis.password, SECRET):
        holders = {o["metadata"]["name"] for o in found if any(form in json.dumps(o) for form in forms_of(secret))}
        assert holders == (set() if secret == SHOUT else {"terrakube-executor-secrets"}), holders


def test_a_plugin_cache_that_has_no_claim_is_the_pods_own(service, place):
    for name, where, mounted in (("absolute", "/own-cache", True), ("relative", "$HOME/cache", False)):
        net = place.workspace(name, environment={"TF_PLUGIN_CACHE_DIR": where})
        step, _, pod = service.run_step(place.api.job(net, "terraformPlan"))
        assert step.status == "completed"
        cache = [volume for path, volume in mounts_of(pod["spec"]).items() if "cache" in path]
        assert cache == ([{"emptyDir": {}}] if mounted else []), (name, cache)


# ---- pods that do not come ----

@pytest.fixture(scope="module")
def stranded(place):
    """A service beside the cluster whose image nobody has."""
    door = types.SimpleNamespace(place=place, home=dayfly.Home(place.directory / "stranded", place.tofu), namespace=place.make_namespace())
    address = f"{NODE}:{dayfly.free_port(NODE)}"
    door.url = f"http://{address}/api/v1/terraform-rs"
    storage = {**KEYS, "AwsTerraformStateBucketName": "terrakube", "AwsTerraformStateRegion": "us-east-1", "AwsEndpoint": place.s3.url}
    door.home.env.update(place.api.env("AwsTerraformStateImpl", **storage))
    config = {"terrakube": {"listen": address}, "timeouts": {"pending": "18s"}}
    with Pods(door.home, door.namespace, place.tofu, config, image="localhost/dayfly-nowhere:1") as door.pods:
        yield door


def test_why_a_pod_does_not_come_is_told_in_the_step_and_its_job_lives_until_then(stranded, place):
    api, no_node = place.api, {"EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS": "disk=of-nobody"}
    with api.sweeps():
        steps, jobs = {}, {}
        for name, keys in (("key", {"EPHEMERAL_CPU_LIMIT": "lots"}), ("image", {}), ("node", no_node), ("cancelled", no_node)):
            jobs[name] = api.job(place.workspace(name, environment=keys), "terraformPlan")
            steps[name] = jobs[name].next_step()
            assert api.post(jobs[name], stranded.url) == 202
        waits = f"tk-{jobs['cancelled'].id}-{steps['cancelled'].id}"
        stranded.namespace.wait("job", waits, lambda job: True)
        api.cancel(jobs["cancelled"])
        stranded.namespace.wait_gone("job", waits)
        assert jobs["cancelled"].status == "cancelled"
        for name, said in (("key", ("EPHEMERAL_CPU_LIMIT", '"lots"')), ("image", ("ImagePullFailed", "localhost/dayfly-nowhere:1")),
                           ("node", ("Unschedulable", "node"))):
            wait_for("the end of the job", lambda name=name: jobs[name].status in ENDED)
            assert (jobs[name].status, steps[name].status) == ("failed", "failed")
            output = place.output(jobs[name], steps[name])
            assert all(word in output for word in said), output
        # The API is asked at a heartbeat, not whenever something of the pod changes, and before it is told the end.
        assert len(api.asked("GET", f"/job/{jobs['image'].id}$")) <= 4
