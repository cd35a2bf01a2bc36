"""The Helm chart: what it refuses, what it renders, and its whole life on the real cluster."""

import contextlib
import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from lib import crds
from lib.cluster import with_kubectl
from lib.dayfly import ROOT, tool, wait_for
from lib.executor import chart_objects
from lib.ledger import MODULE, Ledger
from lib.pods import claim_on, config_map_of, reach, runner_image, volume_of
from lib.release import CHART, Release, helm

VERSION = (ROOT / "VERSION").read_text().strip()
THE_IMAGE = "terrakube-image.yaml"  # values of Terrakube's chart, not of ours
EXAMPLES = sorted(p.name for p in (CHART / "examples").glob("*.yaml") if p.name != THE_IMAGE)
BESIDE_TERRAKUBE = "shape=sidecar,terrakube.enabled=true,steps.namespace=infra,steps.create=false"  # as the example
EVERYTHING = ["--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true"]
FOREIGN = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}  # their definitions are not on the cluster
GATED = """
resource "terraform_data" "gate" {
  provisioner "local-exec" { command = "echo begun; until [ -e /gate/open ]; do sleep 0.1; done" }
}
"""


def render(*args, namespace="infra"):
    """The objects of a release `df`."""
    text = helm("template", "df", CHART, "--namespace", namespace, *args).stdout
    return [doc for doc in yaml.safe_load_all(text) if doc]


def one(docs, kind, name=None, namespace=None):
    found, = [d for d in docs if d["kind"] == kind and name in (None, d["metadata"]["name"])
              and namespace in (None, d["metadata"].get("namespace"))]
    return found


def configuration(docs):
    return yaml.safe_load(one(docs, "ConfigMap", "df-dayfly")["data"]["dayfly.yaml"])


# ---- without a cluster ----


@pytest.mark.parametrize("args", [[], EVERYTHING, *(["--values", CHART / "examples" / name] for name in EXAMPLES)])
def test_lint_finds_nothing(args):
    helm("lint", "--strict", CHART, *args)


@pytest.mark.parametrize("typo, said", [
    ("replicas=3", "additional properties 'replicas' not allowed"),
    ("image.name=x", "additional properties 'name' not allowed"),
    ("runner.serviceaccount.create=false", "additional properties 'serviceaccount' not allowed"),
    ("shape=embedded", "value must be one of 'operator', 'sidecar'"),
    ("replicaCount=two", "got string, want integer"),
    ("image.digest=abc", "does not match pattern"),
    ("timeouts.plan=60", "want string"),
    ("placement.allow.reader.run.fields[0]=labels", "additional properties 'reader' not allowed"),
    ("placement.allow.write.step.fields[0]=labels", "additional properties 'step' not allowed"),
    ("placement.allow.write.run.feilds[0]=labels", "additional properties 'feilds' not allowed"),
    ("placement.allow.write.run.fields[0]=nodeSelektor", "value must be one of '*'"),
    ("placement.allow.write.executor.volumes[0]=hostPath", "value must be one of '*'"),
    ("config.placement.allow.write.run.feilds[0]=labels", "additional properties 'feilds' not allowed"),
    ("auth.serviceAccounts.boss=admin", "boss"),
    ("auth.serviceAccounts.infra/boss=root", "value must be one of 'read', 'write', 'admin'"),
    ("auth.oidc.issuer=http://id.example.com", "does not match pattern"),
    ("auth.grants.a.to.groups[0]=x,auth.grants.a.preset=read", "missing property 'on'"),
    ("advertiseUrl=http://x", "does not match pattern"),
    ("limits.classes.gpu=1", "additional properties 'classes' not allowed"),
    ("runner.placement.nodeSelektor.a=b", "additional properties 'nodeSelektor' not allowed"),
    ("runner.placement.tolerations[0].kye=a", "additional properties 'kye' not allowed"),
    ("runner.classes.gpu.limits=1", "additional properties 'limits' not allowed"),
    ("runner.classes.gpu.limit=0", "minimum: got 0, want 1"),
    ("runner.classes.GPU.limit=1", "GPU"),
    ("runner.classes.gpu.placement.resources.limit.cpu=1", "additional properties 'limit' not allowed"),
    ("runner.classes.gpu.placement.resources.limits.cpu=lots", "does not match pattern"),
    ("workspaces.net.env[0].name=A", "additional properties 'env' not allowed"),
    ("workspaces.net.environment[0].name=A", "missing property 'value'"),
    ("workspaces.net.placement.serviceaccountname=a", "additional properties 'serviceaccountname' not allowed"),
    ("workspaces.net.class=No_Name", "does not match pattern"),
    ("resources.request.cpu=1", "additional properties 'request' not allowed"),
    ("tolerations[0].effect=No", "value must be one of 'NoSchedule'"),
    ("affinity.nodeAffinty.x=1", "additional properties 'nodeAffinty' not allowed"),
    ("topologySpreadConstraints[0].maxskew=1", "additional properties 'maxskew' not allowed"),
    ("securityContext.runAsRoot=true", "additional properties 'runAsRoot' not allowed"),
    ("podSecurityContext.fsgroup=1", "additional properties 'fsgroup' not allowed"),
    ("extraEnv[0].vaule=x", "additional properties 'vaule' not allowed"),
    ("extraEnvFrom[0].secret.name=x", "additional properties 'secret' not allowed"),
    ("extraVolumes[0].name=a,extraVolumes[0].emptydir.x=1", "emptydir"),
    ("extraVolumeMounts[0].name=a", "missing property 'mountPath'"),
    ("extraContainers[0].name=a", "missing property 'image'"),
    ("networkPolicy.ingressFrom[0].podselector.x=1", "podselector"),
    ("networkPolicy.stepEgress.rules[0].too.x=1", "too"),
    ("steps.namespace=Infra_Steps", "does not match pattern"),
    ("podMonitor.intervall=1s", "additional properties 'intervall' not allowed"),
    ("providers.mirror.volume.secret.secretName=x", "value must be one of 'csi', 'hostPath'"),
    ("blobs.keySecret=a,blobs.keys[0]=../a", "does not match pattern"),
    ("config.timeout.plan=1h", "additional properties 'timeout' not allowed"),
    ("config.kubernetes.placement.nodeSelektor.a=b", "additional properties 'nodeSelektor' not allowed"),
])
def test_a_typo_is_refused_and_named(typo, said):
    result = helm("template", "df", CHART, "--set", typo, check=False)
    assert result.returncode != 0
    assert said in result.stderr


def test_what_belongs_to_the_release_is_given_to_no_step():
    said = configuration(render("--set", "auth.tokenSecret=tokens,tls.existingSecret=cert,serviceAccount.name=mine"))["placement"]
    assert said == {"never": {"serviceAccounts": ["mine", "df-dayfly-admin"], "secrets": ["tokens", "cert"]}}
    assert configuration(render("--set", "shape=sidecar"))["placement"]["never"]["claims"] == ["df-dayfly-data"]
    kept = configuration(render("--set", "shape=sidecar,persistence.existingClaim=kept"))["placement"]["never"]
    assert (kept["claims"], kept["secrets"]) == (["kept"], [])
    said = configuration(render("--set", "placement.allow.write.executor.secrets={cloud-*}"))["placement"]["allow"]
    assert said == {"write": {"executor": {"secrets": ["cloud-*"]}}}


def test_people_of_an_openid_provider_come_into_the_configuration():
    values = {"auth.oidc.issuer": "https://id.example.com", "auth.oidc.audience": "dayfly", "auth.oidc.usernamePrefix": "-",
              "auth.grants.a.to.groups[0]": "ops", "auth.grants.a.on.all": "true", "auth.grants.a.preset": "write"}
    auth = configuration(render(*[word for key, value in values.items() for word in ("--set", f"{key}={value}")]))["auth"]
    assert auth["oidc"] == {"issuer": "https://id.example.com", "audience": "dayfly", "usernamePrefix": "-"}
    assert auth["grants"] == {"a": {"to": {"groups": ["ops"]}, "on": {"all": True}, "preset": "write"}}
    assert "oidc" not in configuration(render())["auth"]


def test_every_value_has_a_place_in_the_schema():
    """The schema refuses what it does not know: a value without a row there could not be set."""
    def compare(values, schema, path):
        assert set(values) <= set(schema["properties"]), path
        for key, value in values.items():
            if isinstance(value, dict) and "properties" in schema["properties"][key]:
                compare(value, schema["properties"][key], f"{path}.{key}")
        extra = set(schema["properties"]) - set(values) - {"global"}
        assert not extra, f"{path}: no default for {extra}"
    compare(yaml.safe_load((CHART / "values.yaml").read_text()), json.loads((CHART / "values.schema.json").read_text()), "")


def test_readme_and_definitions_are_those_of_values_and_manifests():
    checked = subprocess.run([sys.executable, ROOT / "charts/sync", "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_chart_has_the_version_of_the_programs():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == VERSION
    images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    assert [i["image"] for i in images] == [f"localhost/dayfly-spawner:{VERSION}", f"localhost/dayfly-runner:{VERSION}"]
    theirs = yaml.safe_load((CHART / "examples" / THE_IMAGE).read_text())
    assert f"localhost/dayfly-terrakube:{VERSION}" in [e["value"] for e in theirs["api"]["env"]]


def of_terrakube(docs, kind, name):
    """An object of Terrakube's own chart."""
    found, = [d for d in docs if (d["kind"], d["metadata"]["name"]) == (kind, name)]
    return found


def test_a_release_beside_terrakube_takes_what_its_chart_makes_and_is_where_it_asks():
    """Held against the recorded objects: settings, URL, port, and labels by which its API is let in."""
    theirs, page = chart_objects(), (ROOT / "docs/terrakube.md").read_text()
    docs = [d for d in yaml.safe_load_all(helm("template", "dayfly", CHART, "--namespace", "terrakube", "--values", CHART / "examples/terrakube.yaml",
                                               "--set", "networkPolicy.enabled=true").stdout) if d]
    container, = one(docs, "Deployment", "dayfly")["spec"]["template"]["spec"]["containers"]
    executor, = of_terrakube(theirs, "Deployment", "terrakube-executor")["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"] == executor["envFrom"]
    for source in container["envFrom"]:
        assert of_terrakube(theirs, *(("ConfigMap", source["configMapRef"]["name"]) if "configMapRef" in source else ("Secret", source["secretRef"]["name"])))

    url, = set(re.findall(r"api\.properties\.executorUrl=(\S+)", page + (CHART / "examples/terrakube.yaml").read_text()))
    service = one(docs, "Service", "dayfly")
    port, = [p for p in service["spec"]["ports"] if p["name"] == "terrakube"]
    assert url == f"http://{service['metadata']['name']}:{port['port']}"
    assert port["port"] == port["targetPort"] == of_terrakube(theirs, "Service", "terrakube-executor-service")["spec"]["ports"][0]["port"]
    assert {"name": "terrakube", "containerPort": port["targetPort"]} in container["ports"]
    # What the value of the command becomes in Terrakube's ConfigMap ends with the path of the route.
    assert of_terrakube(theirs, "ConfigMap", "terrakube-api-config")["data"]["AzBuilderExecutorUrl"].endswith(":8090/api/v1/terraform-rs")

    rule, = [r for r in one(docs, "NetworkPolicy", "dayfly")["spec"]["ingress"] if r["ports"][0]["port"] == 8090]
    api = of_terrakube(theirs, "Deployment", "terrakube-api")["spec"]["template"]["metadata"]["labels"]
    assert rule["from"][0]["podSelector"].get("matchLabels", {}).items() <= api.items()
    labels = one(docs, "Deployment", "dayfly")["spec"]["template"]["metadata"]["labels"]
    for name in ("terrakube-api-service", "terrakube-executor-service"):
        selector = of_terrakube(theirs, "Service", name)["spec"]["selector"]
        assert any(labels.get(key) != value for key, value in selector.items()), f"{name} would take our pods for its own"


def test_rendering_twice_gives_the_same():
    assert render(*EVERYTHING) == render(*EVERYTHING)


@pytest.mark.parametrize("shape", ["operator", "sidecar"])
def test_everything_stays_in_its_namespaces_and_carries_the_labels(shape):
    for doc in render("--set", f"shape={shape}", *EVERYTHING):
        labels = doc["metadata"].get("labels", {})
        if doc["kind"] == "CustomResourceDefinition":
            continue
        assert labels["app.kubernetes.io/instance"] == "df" and labels["app.kubernetes.io/part-of"] == "dayfly"
        if doc["kind"] != "Namespace":
            assert doc["metadata"]["namespace"] in ("infra", "infra-steps"), doc


@pytest.mark.parametrize("shape", ["operator", "sidecar"])
def test_no_role_is_broader_than_it_must_be(shape):
    for role in [d for d in render("--set", f"shape={shape}") if d["kind"] == "Role"]:
        for rule in role["rules"]:
            for member in ("apiGroups", "resources", "verbs"):
                assert rule[member] and "*" not in rule[member], rule
            assert not set(rule["verbs"]) & {"escalate", "bind", "impersonate", "deletecollection"}
            if shape == "sidecar" and "secrets" in rule["resources"]:
                assert rule["resourceNames"] == ["df-dayfly-authority"] and set(rule["verbs"]) == {"get", "update"}


@pytest.mark.parametrize("args, engines", [
    ((), None),
    (("--set", "engines.tekton.enabled=true"), ["job", "tekton"]),
    (("--set", "engines.tekton.enabled=auto"), None),
    (("--set", "engines.tekton.enabled=auto", "--api-versions", "tekton.dev/v1/PipelineRun"), ["job", "tekton"]),
])
def test_tekton_is_an_engine_with_its_rights_where_it_is_asked_for(args, engines):
    docs = render(*args)
    granted = {(resource, verb) for d in docs if d["kind"] == "Role" for rule in d["rules"]
               if rule["apiGroups"] == ["tekton.dev"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert configuration(docs).get("engines") == engines
    assert ("pipelineruns", "patch") in granted if engines else not granted
    assert ("taskruns", "create") not in granted


def test_ansible_is_an_engine_with_its_rights_where_awx_is_named():
    values = ("--set", "engines.ansible.apiUrl=https://awx.example.com,engines.ansible.tokenSecret=awx")
    docs = render(*values, "--set", "shape=sidecar")
    config = configuration(docs)
    assert config["engines"] == ["job", "ansible"]
    assert "awx" in config["placement"]["never"]["secrets"]
    assert config["ansible"] == {"apiUrl": "https://awx.example.com", "tokenSecretRef": {"name": "awx", "key": "token"},
                                 "organizationId": 1, "insecure": False}
    of_secrets = [(d["metadata"]["namespace"], rule.get("resourceNames"), rule["verbs"]) for d in docs if d["kind"] == "Role"
                  for rule in d["rules"] if "secrets" in rule["resources"]]
    assert ("infra", ["awx"], ["get"]) in of_secrets
    assert any(names is None and verbs == ["get"] for _, names, verbs in of_secrets)
    refused = helm("template", "df", CHART, "--set", "engines.ansible.apiUrl=https://awx.example.com", check=False)
    assert "engines.ansible.tokenSecret" in refused.stderr


def test_a_change_of_the_configuration_rolls_the_pods_and_nothing_else_does():
    def checksum(*args):
        pod = one(render(*args), "Deployment")["spec"]["template"]
        return pod["metadata"]["annotations"]["checksum/config"]
    assert checksum("--set", "limits.steps=9") != checksum()
    assert checksum("--set", "config.log.level=debug") != checksum()
    assert checksum("--set", "replicaCount=3", "--set", "service.type=NodePort") == checksum()


def test_config_wins_over_the_values_and_is_merged():
    config = configuration(render("--set", "config.timeouts.plan=3h,timeouts.apply=2h,config.tools.searchPath=false"))
    assert config["timeouts"] == {"plan": "3h", "apply": "2h", "grace": "15m", "pending": "2m"}
    assert config["tools"] == {"searchPath": False}


def test_classes_and_workspaces_are_those_of_the_configuration(tmp_path):
    assert not {"classes", "workspaces"} & set(configuration(render()))
    values = CHART / "examples/classes.yaml"
    said, config = yaml.safe_load(values.read_text()), configuration(render("--values", values))
    assert config["classes"] == said["runner"]["classes"] and config["workspaces"] == said["workspaces"]
    same = tmp_path / "config.yaml"
    same.write_text(yaml.safe_dump({"config": {"classes": config["classes"], "workspaces": config["workspaces"],
                                               "kubernetes": {"placement": said["runner"]["placement"]}}}))
    assert configuration(render("--values", same)) == config


@pytest.mark.parametrize("kind, endpoints", [("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")])
def test_either_monitor_finds_what_serves_and_trusts_its_certificate(kind, endpoints):
    value = kind[0].lower() + kind[1:]
    docs = render("--set", f"{value}.enabled=true,{value}.interval=9s,{value}.labels.release=prom")
    monitor = one(docs, kind)
    assert not [d for d in docs if d["kind"] in FOREIGN - {kind}]
    assert monitor["metadata"]["labels"]["release"] == "prom"
    endpoint, = monitor["spec"][endpoints]
    assert (endpoint["port"], endpoint["scheme"], endpoint["interval"]) == ("https", "https", "9s")
    assert endpoint["tlsConfig"] == {"serverName": "df-dayfly.infra.svc",
                                     "ca": {"secret": {"name": "df-dayfly-authority", "key": "ca.crt"}}}
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    pod = one(docs, "Deployment")["spec"]["template"]
    assert selected <= one(docs, "Service")["metadata"]["labels"].items() and selected <= pod["metadata"]["labels"].items()
    assert "https" in {p["name"] for p in [*one(docs, "Service")["spec"]["ports"], *pod["spec"]["containers"][0]["ports"]]}


def test_two_monitors_would_count_twice_and_are_refused():
    both = helm("template", "df", CHART, "--set", "serviceMonitor.enabled=true,podMonitor.enabled=true", check=False)
    assert both.returncode != 0 and "choose one" in both.stderr


def test_what_a_user_adds_to_the_spawners_pods_is_there(tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text("""
podAnnotations: {example.org/team: infra}
podLabels: {team: infra}
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraEnvFrom: [{secretRef: {name: more}}]
extraVolumes: [{name: ca, configMap: {name: ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/more, readOnly: true}]
extraContainers: [{name: proxy, image: "registry.example/proxy:1"}]
""")
    said, pod = yaml.safe_load(values.read_text()), one(render("--values", values), "Deployment")["spec"]["template"]
    spawner, proxy = pod["spec"]["containers"]
    assert said["podAnnotations"].items() <= pod["metadata"]["annotations"].items()
    assert said["podLabels"].items() <= pod["metadata"]["labels"].items()
    assert spawner["envFrom"] == said["extraEnvFrom"] and proxy == said["extraContainers"][0]
    for more, there in (("extraEnv", spawner["env"]), ("extraVolumeMounts", spawner["volumeMounts"]), ("extraVolumes", pod["spec"]["volumes"])):
        assert said[more][0] in there


def test_a_state_service_is_told_with_its_token():
    assert "stateService" not in configuration(render())
    docs = render("--set", "stateService.url=https://states.example,stateService.tokenSecret=states")
    assert configuration(docs)["stateService"] == {"url": "https://states.example", "protocol": "events", "domain": "default",
                                                   "tokenFile": "/etc/dayfly/state-service/token"}
    pod = one(docs, "Deployment")["spec"]["template"]["spec"]
    assert {"name": "state-service", "secret": {"secretName": "states"}} in pod["volumes"]


def test_keys_of_a_bucket_come_from_a_secret_of_the_spawner_alone():
    docs = render("--set", "blobs.keySecret=bucket,blobs.keys={key-2026,key-2025},config.blobs.location=s3://acme/prod")
    said, pod = configuration(docs), one(docs, "Deployment")["spec"]["template"]["spec"]
    assert said["blobs"] == {"location": "s3://acme/prod", "keyFiles": ["/etc/dayfly/blob-keys/key-2026", "/etc/dayfly/blob-keys/key-2025"]}
    assert said["placement"]["never"]["secrets"] == ["bucket"]
    assert {"name": "blob-keys", "secret": {"secretName": "bucket"}} in pod["volumes"]
    assert {"name": "blob-keys", "mountPath": "/etc/dayfly/blob-keys", "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert "blobs" not in configuration(render())
    nowhere = helm("template", "df", CHART, "--set", "blobs.keySecret=bucket", check=False)
    assert nowhere.returncode != 0 and "blobs.keySecret: its keys seal what is in a bucket: set config.blobs.location" in nowhere.stderr


def test_blobs_are_moved_without_a_replica_of_the_old_configuration():
    usual, moving = (one(render(*args), "Deployment")["spec"] for args in ([], ["--set", "config.blobs.location=s3://acme/prod,config.blobs.move=true"]))
    assert (usual["strategy"]["type"], moving["strategy"]) == ("RollingUpdate", {"type": "Recreate"})
    usual, moving = (s["template"]["spec"]["containers"][0]["startupProbe"]["failureThreshold"] for s in (usual, moving))
    assert (usual, moving) == (120, 86400)


def test_a_mirror_of_providers_is_a_volume_of_the_spawner_alone():
    docs = render("--set", "providers.mirror.volume.persistentVolumeClaim.claimName=kept")
    said, pod = configuration(docs), one(docs, "Deployment")["spec"]["template"]["spec"]
    assert said["providers"] == {"mirror": {"directory": "/var/lib/dayfly-providers"}}
    assert said["placement"]["never"]["claims"] == ["kept"]
    assert {"name": "providers", "persistentVolumeClaim": {"claimName": "kept"}} in pod["volumes"]
    assert {"name": "providers", "mountPath": "/var/lib/dayfly-providers", "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert "providers" not in configuration(render())
    pulling = render("--set", "providers.mirror.volume.persistentVolumeClaim.claimName=kept,providers.mirror.registries={registry.opentofu.org}")
    assert configuration(pulling)["providers"]["mirror"]["registries"] == ["registry.opentofu.org"]
    mounts = one(pulling, "Deployment")["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "providers", "mountPath": "/var/lib/dayfly-providers", "readOnly": False} in mounts


def test_a_certificate_of_ones_own_leaves_no_authority():
    docs = render("--set", "tls.existingSecret=mine")
    assert configuration(docs)["server"]["tls"] == {"certFile": "/etc/dayfly/tls/tls.crt", "keyFile": "/etc/dayfly/tls/tls.key",
                                                    "caFile": "/etc/dayfly/tls/ca.crt"}
    assert not [d for d in docs if d["kind"] == "Secret"]
    assert not [r for d in docs if d["kind"] == "Role" for r in d["rules"] if r.get("resourceNames")]


def test_admission_objects_are_those_of_the_manifests_and_the_service_knows_of_them():
    values = "admission.enabled=true,admission.caBundle=QUJD,service.port=443,serviceAccount.name=mine"
    docs = render("--set", values)
    assert configuration(docs)["kubernetes"]["webhook"] == "df-dayfly.infra"
    hooks = one(docs, "MutatingWebhookConfiguration", "df-dayfly.infra")["webhooks"]
    service = {"namespace": "infra", "name": "df-dayfly", "port": 443}
    assert [h["clientConfig"] for h in hooks] == [
        {"service": {**service, "path": f"/v1/admission/{role}"}, "caBundle": "QUJD"} for role in ("write", "admin")]
    policy = one(docs, "ValidatingAdmissionPolicy", "df-dayfly.infra")
    spared = 'request.userInfo.username != "system:serviceaccount:infra:mine"'
    assert all(spared in [c["expression"] for c in d["matchConditions"]] for d in (*hooks, policy["spec"]))
    bound = one(docs, "ValidatingAdmissionPolicyBinding", "df-dayfly.infra")["spec"]
    assert bound["policyName"] == "df-dayfly.infra"
    assert bound["matchResources"]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "infra"}
    text = (ROOT / "rbac/admission.yaml").read_text()
    for name, value in (("NAME", "df-dayfly"), ("NAMESPACE", "infra"), ("ACCOUNT", "mine"), ("PORT", "443"), ("CA", "QUJD")):
        text = text.replace(f"${{{name}}}", value)
    plain = {d["kind"]: {k: v for k, v in d.items() if k != "metadata"} for d in yaml.safe_load_all(text)}
    assert len(plain) == 3
    for kind, wanted in plain.items():
        assert {k: v for k, v in one(docs, kind).items() if k != "metadata"} == wanted
    assert "${" not in json.dumps(docs) and "webhook" not in configuration(render())["kubernetes"]


def test_a_class_that_keeps_more_pods_than_it_may_have_is_refused():
    """As the service refuses it, but before the upgrade."""
    for values in ("runner.classes.small.standby.min=3,runner.classes.small.standby.max=2",
                   "runner.classes.small.standby.min=1,config.classes.small.standby.min=3,config.classes.small.standby.max=2"):
        result = helm("template", "df", CHART, "--set", values, check=False)
        assert result.returncode != 0 and "runner.classes.small.standby: max is 2 and min is 3; it must not be less" in result.stderr
    said = configuration(render("--set", "runner.classes.small.standby.min=2,runner.classes.plain.limit=1"))["classes"]
    assert said == {"small": {"standby": {"min": 2}}, "plain": {"limit": 1}}


@pytest.mark.parametrize("values, said", [
    ("admission.enabled=true", "set admission.caBundle to it"),
    ("admission.enabled=true,tls.existingSecret=mine", "ca.crt of the Secret mine in the cluster"),
    ("admission.enabled=true,admission.caBundle=QUJD,shape=sidecar", "only the shape operator has custom resources"),
])
def test_admission_without_a_ca_or_custom_resources_is_refused(values, said):
    result = helm("template", "df", CHART, "--set", values, check=False)
    assert result.returncode != 0 and said in result.stderr


def test_digests_win_over_tags():
    digest = "sha256:" + "a" * 64
    docs = render("--set", f"image.digest={digest},runner.image.digest={digest}")
    assert one(docs, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"] == f"localhost/dayfly-spawner@{digest}"
    assert configuration(docs)["kubernetes"]["image"] == f"localhost/dayfly-runner@{digest}"


def admits(rule, address, port, pod=None):
    """Does an egress rule admit a connection to this address and port? pod: (labels of its namespace, its labels)."""
    def selects(selector, labels):
        return selector.get("matchLabels", {}).items() <= labels.items()

    def is_peer(peer):
        if "ipBlock" in peer:  # some networks apply it to pods as well
            where, block = ipaddress.ip_address(address), peer["ipBlock"]
            inside = [where in ipaddress.ip_network(cidr) for cidr in (block["cidr"], *block["except"]) if ipaddress.ip_network(cidr).version == where.version]
            return inside[:1] == [True] and not any(inside[1:])
        own = peer.get("namespaceSelector", {"matchLabels": {"here": "yes"}})
        return pod is not None and selects(own, pod[0]) and selects(peer["podSelector"], pod[1])
    return (not rule.get("ports") or port in [p["port"] for p in rule["ports"]]) and (not rule.get("to") or any(map(is_peer, rule["to"])))


@pytest.mark.parametrize("apart", [False, True])
def test_steps_reach_dns_the_spawner_and_the_world_outside_and_nobody_reaches_them(apart):
    docs = render(*([] if apart else ["--set", "steps.namespace=infra"]))
    found = [d for d in docs if d["kind"] == "NetworkPolicy" and d["metadata"]["name"] == "df-dayfly-runner"]
    assert [d["metadata"]["namespace"] for d in found] == (["infra-steps", "infra"] if apart else ["infra"])
    policy = found[0]["spec"]
    assert all(d["spec"] == policy for d in found), "steps that began beside the service have the same wall"
    assert policy["ingress"] == [] and set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert policy["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "dayfly-runner",
                                                    "app.kubernetes.io/managed-by": "dayfly"}  # tests/unit/test_pod_labels.c
    spawner = one(docs, "Deployment")["spec"]["template"]["metadata"]["labels"]
    of_release = {"kubernetes.io/metadata.name": "infra"}
    elsewhere = {"kubernetes.io/metadata.name": "other"}
    may = [("1.1.1.1", 443, None), ("2606:4700::1", 443, None), ("10.96.0.10", 53, None), ("169.254.20.10", 53, None),
           ("10.0.0.9", 8030, (of_release, spawner))]
    may_not = [("169.254.169.254", 80, None), ("169.254.170.2", 80, None), ("169.254.170.23", 80, None), ("fd00:ec2::254", 80, None),
               ("10.96.0.1", 443, None), ("10.0.0.9", 10250, None), ("172.20.1.1", 443, None), ("192.168.1.1", 443, None),
               ("100.64.0.1", 80, None), ("fe80::1", 80, None), ("10.0.0.9", 22, (of_release, spawner)),
               ("10.0.0.9", 8030, (elsewhere, spawner)), ("10.0.0.9", 8030, (of_release, {"app": "other"}))]
    for wanted, cases in ((True, may), (False, may_not)):
        for case in cases:
            assert any(admits(rule, *case) for rule in policy["egress"]) == wanted, case


def test_more_egress_of_steps_is_what_the_values_say():
    api = "networkPolicy.stepEgress.rules[0].to[0].ipBlock.cidr=10.96.0.1/32,networkPolicy.stepEgress.rules[0].ports[0].port=443"
    policy = one(render("--set", f"{api},networkPolicy.stepEgress.denied={{10.244.0.0/16}}"), "NetworkPolicy", "df-dayfly-runner", "infra-steps")["spec"]
    assert policy["egress"][-1] == {"to": [{"ipBlock": {"cidr": "10.96.0.1/32"}}], "ports": [{"port": 443}]}
    assert policy["egress"][2]["to"][0]["ipBlock"]["except"] == ["10.244.0.0/16"]


def test_the_api_is_open_to_steps_and_to_whom_the_values_name():
    values = "networkPolicy.ingressFrom[0].podSelector.matchLabels.a=b"
    steps = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "dayfly-runner", "app.kubernetes.io/managed-by": "dayfly"}}}
    for more, where in (("", ["infra-steps", "infra"]), (",steps.namespace=infra", ["infra"])):
        rule, = one(render("--set", values + more), "NetworkPolicy", "df-dayfly")["spec"]["ingress"]
        selected = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}, **steps} for name in where]
        assert rule["from"][:len(where)] == selected and {"podSelector": {"matchLabels": {"a": "b"}}} in rule["from"]


def test_terrakubes_port_is_open_to_its_api_and_not_to_steps():
    """Neither to those that took the API's label: the service and Terrakube set the others last."""
    api = next(d for d in yaml.safe_load_all((ROOT / "tests/fixtures/terrakube/chart-4.7.4.yaml").read_text())
               if d and d["kind"] == "Deployment" and d["metadata"]["name"] == "terrakube-api")["spec"]["template"]["metadata"]["labels"]
    rules = one(render("--values", CHART / "examples/terrakube.yaml"), "NetworkPolicy", "dayfly")["spec"]["ingress"]
    rule, = [r for r in rules if {"protocol": "TCP", "port": 8090} in r["ports"]]
    peer, = rule["from"]
    wanted = peer["podSelector"]["matchLabels"]
    assert wanted == {"app.kubernetes.io/component": "terrakube-api"} and wanted.items() <= api.items()
    refused = {e["key"]: e.get("values") for e in peer["podSelector"]["matchExpressions"]}
    assert refused == {"app.kubernetes.io/name": ["dayfly-runner"], "terrakube.io/organization": None}
    assert api["app.kubernetes.io/name"] not in refused["app.kubernetes.io/name"] and "terrakube.io/organization" not in api


@pytest.mark.parametrize("shape", ["operator", "sidecar"])
def test_steps_in_a_namespace_of_their_own_have_there_what_they_need_and_the_spawner_no_more(shape):
    docs = render("--set", f"shape={shape}")
    there = {(d["kind"], d["metadata"]["name"]) for d in docs if d["metadata"].get("namespace") == "infra-steps"}
    assert there == {("ServiceAccount", "df-dayfly-runner"), ("Role", "df-dayfly-steps"), ("RoleBinding", "df-dayfly-steps"),
                     ("NetworkPolicy", "df-dayfly-runner"), ("ConfigMap", "df-dayfly-test")}
    labels = one(docs, "Namespace", "infra-steps")["metadata"]["labels"]
    assert all(labels[f"pod-security.kubernetes.io/{mode}"] == "restricted" for mode in ("enforce", "warn", "audit"))
    assert configuration(docs)["kubernetes"]["stepNamespace"] == "infra-steps"
    subject, = one(docs, "RoleBinding", "df-dayfly-steps")["subjects"]
    assert (subject["name"], subject["namespace"]) == ("df-dayfly", "infra")
    rights = {r: set(rule["verbs"]) for rule in one(docs, "Role", "df-dayfly-steps")["rules"] for r in rule["resources"]}
    assert rights == {"jobs": {"get", "list", "watch", "create", "delete"}, "pods": {"list", "watch", "delete"}, "pods/log": {"get"}, "persistentvolumeclaims": {"get"}, "namespaces": {"get"},
                      "events": {"create"} if shape == "sidecar" else {"list", "watch"}}
    # Where the service is, nobody can make it start a pod any more.
    assert not [rule for rule in one(docs, "Role", "df-dayfly")["rules"] if "jobs" in rule["resources"] and "create" in rule["verbs"]]
    assert not [d for d in render("--set", "steps.create=false") if d["kind"] == "Namespace"]
    assert configuration(render("--set", "steps.namespace=builds"))["kubernetes"]["stepNamespace"] == "builds"


def test_steps_that_began_beside_the_service_keep_what_they_need_there():
    """An upgrade to this chart, or away from `steps.namespace`, takes neither account nor wall from a pod that is not over."""
    docs = render("--set", "runner.serviceAccount.annotations.cloud=role")
    for namespace in ("infra", "infra-steps"):
        account = one(docs, "ServiceAccount", "df-dayfly-runner", namespace)
        assert account["metadata"]["annotations"] == {"cloud": "role"} and account["automountServiceAccountToken"] is False
    rights = {r: set(rule["verbs"]) for rule in one(docs, "Role", "df-dayfly")["rules"] for r in rule["resources"]}
    assert rights["jobs"] == {"get", "list", "watch", "delete"} and rights["pods"] == {"list", "watch", "delete"}


def test_steps_beside_the_service_are_asked_for_with_one_value():
    docs = render("--set", "steps.namespace=infra")
    assert not [d for d in docs if d["kind"] == "Namespace" or d["metadata"].get("namespace", "infra") != "infra"]
    assert "stepNamespace" not in configuration(docs)["kubernetes"]
    assert [r for r in one(docs, "Role", "df-dayfly")["rules"] if "jobs" in r["resources"] and "create" in r["verbs"]]


def test_the_longest_name_of_a_namespace_has_one_for_its_steps():
    name, = [d["metadata"]["name"] for d in render(namespace="n" * 63) if d["kind"] == "Namespace"]
    assert name == "n" * 57 + "-steps"


def test_nobody_is_an_administrator_unless_asked_for():
    accounts = configuration(render())["auth"]["serviceAccounts"]
    assert accounts == {"infra/df-dayfly-test": "write"}  # of `helm test`; it exists during the test alone
    assert [d["metadata"]["name"] for d in render() if d["kind"] == "ServiceAccount"] == ["df-dayfly", "df-dayfly-runner", "df-dayfly-runner", "df-dayfly-test"]
    docs = render("--set", "auth.adminAccount.create=true")
    assert configuration(docs)["auth"]["serviceAccounts"]["infra/df-dayfly-admin"] == "admin"
    assert one(docs, "ServiceAccount", "df-dayfly-admin")["automountServiceAccountToken"] is False


def test_an_editor_makes_runs_and_only_who_may_make_workflows_makes_them():
    def makes(role):
        rules = one(render(), "Role", f"df-dayfly-{role}")["rules"]
        return {resource for rule in rules for resource in rule["resources"] if set(rule["verbs"]) & {"create", "update", "patch", "delete"}}
    assert {role: makes(role) for role in ("viewer", "editor", "workflows", "admin")} == {
        "viewer": set(), "editor": {"runs"}, "workflows": {"taskactions"}, "admin": {"executors", "runs", "taskactions"}}


def test_the_pods_pass_the_restricted_standard():
    for shape in ("operator", "sidecar"):
        for doc in render("--set", f"shape={shape}"):
            spec = doc["spec"]["template"]["spec"] if doc["kind"] == "Deployment" else doc.get("spec")
            if doc["kind"] not in ("Deployment", "Pod"):
                continue
            assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"]
            for container in [*spec["containers"], *spec.get("initContainers", [])]:
                assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                        "capabilities": {"drop": ["ALL"]}}


# ---- watching ----


def expressions(docs):
    rules = [r for g in one(docs, "PrometheusRule")["spec"]["groups"] for r in g["rules"]]
    board = json.loads(one(docs, "ConfigMap", "df-dayfly-dashboard")["data"]["dayfly.json"])
    return rules, [t["expr"] for p in board["panels"] for t in p["targets"]]


def test_alerts_and_dashboard_ask_for_metrics_that_there_are():
    rules, panels = expressions(render(*EVERYTHING))
    source = "".join(p.read_text() for room in ("common", "spawner") for p in (ROOT / room).rglob("*.c"))
    for expression in [*(r["expr"] for r in rules), *panels]:
        for name in re.findall(r"\b(?:dayfly|executor)_\w+", expression):
            assert f'"{re.sub("_(bucket|sum|count)$", "", name)}"' in source, name


def test_prometheus_takes_the_rules(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(one(render(*EVERYTHING), "PrometheusRule")["spec"]))
    checked = subprocess.run([tool("promtool"), "check", "rules", rules], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_has_its_lines_in_the_runbook():
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs/runbook.md").read_text(), re.M)
    rules, _ = expressions(render(*EVERYTHING, "--set", "prometheusRule.runbookUrl=https://example.org/runbook"))
    assert sorted(r["alert"] for r in rules) == sorted(headings)
    for rule in rules:
        assert rule["annotations"]["runbook_url"] == f"https://example.org/runbook#{rule['alert'].lower()}"


@pytest.fixture(scope="module")
def with_notes(tmp_path_factory):
    """The chart, with its notes as a template: helm shows them of an installation alone, which needs a cluster."""
    chart = tmp_path_factory.mktemp("chart") / "dayfly"
    shutil.copytree(CHART, chart)
    text = (chart / "templates/NOTES.txt").read_text()
    (chart / "templates/notes.yaml").write_text(f'{{{{ define "notes" }}}}{text}{{{{ end }}}}notes: {{{{ include "notes" . | toJson }}}}\n')
    return chart


@pytest.mark.parametrize("values, said, not_said", [
    ("shape=operator", ["rollout status deployment/df-dayfly", "leaves the custom resource"], "persistentvolume"),
    ("shape=sidecar", ["rollout status deployment/df-dayfly", "persistentvolumeclaim/df-dayfly-data"], "custom resource"),
    ("shape=sidecar,workload.enabled=false", ["kubernetes.io/service-name=df-dayfly"], "deployment/"),
    ("shape=operator", ["Nobody has a token yet", "--set auth.adminAccount.create=true"], "df-dayfly-admin"),
    ("auth.adminAccount.create=true", ["create token df-dayfly-admin --audience dayfly"], "Nobody has a token"),
    ("auth.serviceAccounts.infra/boss=admin", ["auth.serviceAccounts"], "Nobody has a token"),
    ("auth.oidc.issuer=https://i.example.com,auth.oidc.audience=dayfly,auth.grants.a.to.groups[0]=x,auth.grants.a.on.all=true,"
     "auth.grants.a.preset=admin", ["rollout status"], "Nobody has a token"),
    ("steps.namespace=infra", ["WARNING", "label namespace infra pod-security.kubernetes.io/enforce=restricted"], "Steps run in the"),
    ("shape=operator", ["Steps run in the namespace infra-steps"], "WARNING"),
    ("steps.create=false", ["WARNING", "label namespace infra-steps pod-security"], "namespace infra pod-"),
    ("keepData=false", ["helm -n infra test df"], "leaves"),
    ("shape=operator", ["an admin called kubernetes", "--set admission.enabled=true"], "name the person"),
    ("admission.enabled=true,admission.caBundle=QUJD", ["name the person", "df-dayfly.infra"], "admission.enabled"),
    ("shape=sidecar", ["What holds a step back"], "Who writes custom resources"),
    ("shape=sidecar", ["A dry plan in a pod of its own", "get executors"], "errakube"),
    (BESIDE_TERRAKUBE, ["helm -n infra test df", "executorUrl=http://df-dayfly:8090", "get taskactions", "beside Terrakube",
                        "label --dry-run=server"], "WARNING"),
    (BESIDE_TERRAKUBE + ",terrakube.requireToken=false", ["steps without a token are taken"], "leave steps.namespace empty"),
    ("terrakube.enabled=true", ["Steps run in the namespace infra-steps"], "beside Terrakube"),
])
def test_the_notes_name_what_is_there(with_notes, values, said, not_said):
    shown = yaml.safe_load(helm("template", "df", with_notes, "-n", "infra", "--show-only", "templates/notes.yaml", "--set", values).stdout)["notes"]
    assert all(words in shown for words in said) and not_said not in shown, shown


# ---- on the cluster ----


def test_the_examples_that_the_package_index_shows_are_taken(namespace):
    crds.install(namespace.cluster)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    examples = yaml.safe_load(chart["annotations"]["artifacthub.io/crdsExamples"])
    shown = [c["kind"] for c in yaml.safe_load(chart["annotations"]["artifacthub.io/crds"])]
    assert [e["kind"] for e in examples] == shown
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": examples})
    namespace.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=text)


@pytest.mark.parametrize("args", [[*EVERYTHING], *(["--values", CHART / "examples" / name] for name in EXAMPLES)])
def test_the_api_server_takes_every_object(namespace, args):
    # A dry run makes no namespace: what is in that of the steps is taken where the release is.
    docs = [d for d in render(*args, "--set", f"steps.namespace={namespace.name}", namespace=namespace.name) if d["kind"] not in FOREIGN]
    namespace.apply(*[d for d in docs if d["kind"] == "ServiceAccount"])  # a pod is let in when its account is there
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": docs})
    taken = namespace.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    assert len(taken.stdout.splitlines()) == len(docs)
    # The definitions may be there already, applied by the server's own means.
    assert not [line for line in taken.stderr.splitlines() if "Warning" in line and "last-applied-configuration" not in line]


def objects(namespace):
    """{kind/name} of everything in a namespace but what Kubernetes keeps for itself."""
    kinds = namespace.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").stdout.split()
    own = ("events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "replicasets.apps")
    found = namespace.kubectl("get", ",".join(k for k in kinds if k not in own), "-o", "name", "--ignore-not-found")
    return set(found.stdout.split())


def test_the_sidecar_from_install_to_uninstall(home, namespace, tofu, tmp_path):
    """A dry plan by `helm test`; an apply that goes on while the release is upgraded and rolled back; nothing is left."""
    reach(tmp_path)
    gate = tmp_path / "gate"
    volumes = [claim_on(namespace, gate, "gate"), volume_of(namespace, tmp_path / "data", "df-dayfly-data")]
    release = Release(home, namespace, tofu, shape="sidecar", keepData=False,
                      persistence={"storageClass": "-", "size": "1Gi"}, runner={"jobLife": "5s"})
    before = objects(namespace)
    try:
        release.install()
        said = release.helm("test", "df").stdout
        assert f"WARNING: the namespace {namespace.name} does not enforce the Pod Security Standard restricted" in said

        gated = {"volumes": [{"name": "gate", "mountPath": "/gate", "persistentVolumeClaim": {"claimName": "gate"}}]}
        authority = namespace.get("secret", "df-dayfly-authority")["data"]
        assert set(authority) == {"ca.crt", "ca.key"}
        release.executor("gated", GATED, gated)
        process, run = release.begin("gated")
        release.wait_log(run, "): begun")
        first = release.spawners()
        release.upgrade("--set", "log.level=debug")
        assert release.spawners() != first
        release.rollback()
        assert release.document("runs", run)["status"]["phase"] == "Running"
        namespace.apply(*[d for d in render("--set", "shape=sidecar", namespace=namespace.name) if d["kind"] == "Secret"])
        assert namespace.get("secret", "df-dayfly-authority")["data"] == authority, "what was filled in is not emptied"
        (gate / "open").touch()
        assert release.ended(run)["phase"] == "Succeeded"
        process.wait()

        release.helm("uninstall", "df", "--wait", "--timeout", "2m")
        namespace.kubectl("delete", "configmap", "module-gated")
        namespace.kubectl("delete", "pod", "df-dayfly-test")  # stays for `helm test --logs`
        wait_for("nothing to be left", lambda: objects(namespace) <= before)
    finally:
        namespace.cluster.kubectl("delete", "pv", *volumes, "--wait=false")


def run_of(executor, name, action="dry-run", **spec):
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Run", "metadata": {"name": name},
            "spec": {"executorRef": {"name": executor}, "action": action, **spec}}


def kept(namespace):
    """What lies in the cluster for the operator's documents, and is not the release's: docs/operator.md takes it away."""
    page = (ROOT / "docs/operator.md").read_text()
    block, = re.findall(r"```sh\n(kubectl -n dayfly delete audittrails.*?)```", page, re.S)
    for command in block.replace("-n dayfly", f"-n {namespace.name}").replace("lease dayfly", "lease df-dayfly").splitlines():
        namespace.cluster.kubectl(*command.split()[1:])


def test_the_operator_from_install_to_uninstall(home, namespace, tofu):
    """Two replicas with one authority, everything in the cluster; all of them are replaced; what is kept is no more than data."""
    crds.install(namespace.cluster)
    release = Release(home, namespace, tofu, crds={"install": False}, runner={"jobLife": "5s"})
    before = objects(namespace)
    release.install()
    first = release.spawners()
    assert len(first) == 2
    release.helm("test", "df")
    release.executor("net", 'resource "terraform_data" "a" {}\noutput "a" { value = terraform_data.a.id }\n')
    run = release.run("net")["run"]["metadata"]["name"]

    release.upgrade("--set", "log.level=debug")
    assert not set(release.spawners()) & set(first)
    assert release.document("runs", run)["status"]["phase"] == "Succeeded"
    assert release.run("net", "--action", "destroy")["run"]["status"]["reason"] == "Destroyed"

    release.home.dayfly("delete", "net")
    namespace.wait_gone("executor", "net")
    assert namespace.get("lease", "df-dayfly")["spec"]["holderIdentity"]
    release.helm("uninstall", "df", "--wait", "--timeout", "2m")
    wait_for("the Lease to be given back", lambda: not [n for n in namespace.get("leases") if n["metadata"]["name"] == "df-dayfly"])
    namespace.kubectl("delete", "configmap", "module-net")
    namespace.kubectl("delete", "pod", "df-dayfly-test")
    kept(namespace)
    wait_for("nothing to be left", lambda: objects(namespace) <= before)


# Says when it is in its middle, and would stay there for longer than any test.
ENDLESS = """
resource "terraform_data" "first" {}
resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "echo begun; exec sleep 900" }
}
"""


@contextlib.contextmanager
def logs_of_spawners(namespace):
    """What the replicas say until their end, once the block is over."""
    said = []
    with subprocess.Popen([f"{tool('kubernetes')}/kubectl", "--kubeconfig", namespace.cluster.kubeconfig, "-n", namespace.name,
                           "logs", "-f", "--tail=-1", "-l", "app.kubernetes.io/component=spawner"], stdout=subprocess.PIPE, text=True) as log:
        yield said
        said.append(log.communicate(timeout=30)[0])


@pytest.mark.parametrize("apart", [False, True])
def test_a_namespace_goes_with_a_release_and_an_apply_in_it_and_the_log_says_what_stays(home, namespace, tofu, apart):
    """The steps are beside the service, or in a namespace of their own, which stays, and where nobody would take their state."""
    crds.install(namespace.cluster)
    steps = namespace.in_steps() if apart else namespace
    release = Release(home, namespace, tofu, crds={"install": False}, steps={"namespace": steps.name}).install()
    for name, module, spec in (("net", 'resource "terraform_data" "a" {}\n', {}), ("busy", ENDLESS, {"timeouts": {"grace": "8s"}})):
        release.executor(name, module, **spec)
        steps.apply(config_map_of(home.directory / name, f"module-{name}"))
    release.run("net")
    _, run = release.begin("busy")
    release.wait_log(run, "): begun")
    with logs_of_spawners(namespace) as said:
        namespace.cluster.kubectl("delete", "namespace", namespace.name, "--timeout=180s")
    assert "its documents are let go" in said[0]
    assert "executor net: these resources stay, and no state will contain them: terraform_data.a" in said[0]
    assert f"executor busy: step {run}-apply is in the middle of an apply" in said[0]
    assert "are in no state: terraform_data.first" in said[0]
    wait_for("the apply to end", lambda: not [p for p in steps.get("pods") if p["status"]["phase"] == "Running"])


def test_a_namespace_without_an_operator_goes_by_the_runbooks_command(home, namespace, tofu):
    """Its spawner was taken away in the middle of an apply."""
    crds.install(namespace.cluster)
    release = Release(home, namespace, tofu, crds={"install": False}).install()
    release.executor("busy", ENDLESS, timeouts={"grace": "5s"})
    _, run = release.begin("busy")
    release.wait_log(run, "): begun")
    namespace.kubectl("scale", "deployment", release.full, "--replicas=0")
    wait_for("the spawner to go", lambda: not release.spawners())
    namespace.cluster.kubectl("delete", "namespace", namespace.name, "--wait=false")
    wait_for("the pods to go", lambda: not namespace.get("pods"))
    line, = re.findall(r"^`(kubectl -n NS get executors.*)`\.$", (ROOT / "docs/runbook.md").read_text(), re.M)
    env = {**os.environ, "PATH": with_kubectl(os.environ["PATH"]), "KUBECONFIG": str(namespace.cluster.kubeconfig)}
    subprocess.run(["sh", "-c", line.replace("NS", namespace.name)], check=True, capture_output=True, env=env)
    namespace.cluster.kubectl("wait", f"namespace/{namespace.name}", "--for=delete", "--timeout=180s")


def test_steps_in_their_own_namespace_need_nothing_but_what_the_chart_gives_them(home, namespace, tofu):
    """`helm test` passes with restricted pods in a namespace of steps; the spawner is refused nothing there."""
    crds.install(namespace.cluster)
    steps = f"{namespace.name}-steps"
    release = Release(home, namespace, tofu, crds={"install": False}, steps=None)
    release.install()
    assert "WARNING" not in release.helm("test", "df").stdout
    made = [e["objectRef"]["namespace"] for e in namespace.cluster.audit('"resource":"jobs"')
            if e["verb"] == "create" and e["objectRef"]["namespace"].startswith(namespace.name)]
    assert set(made) == {steps}
    wait_for("its Jobs to go with its runs", lambda: not namespace.in_steps().get("jobs"))
    _, refused = namespace.cluster.used_by(f"system:serviceaccount:{namespace.name}:df-dayfly")
    assert not refused
    release.helm("uninstall", "df", "--wait", "--timeout", "2m")
    release.install()  # it finds the namespace that the first one left
    release.helm("uninstall", "df", "--wait", "--timeout", "2m")


REQUESTED = "dayfly.dev/requested-by"


def test_custom_resources_of_a_release_name_who_wrote_them(home, namespace, tofu):
    """From the first moment of an installation, over an upgrade and a rollback; the authority stays what it was."""
    crds.install(namespace.cluster)
    release = Release(home, namespace, tofu, crds={"install": False}, steps=None, admission={"enabled": True})

    def asked_for(name):
        """Who asked for a run that eve makes."""
        made = json.loads(namespace.kubectl("--as", "eve", "create", "-f", "-", "-o", "json", input=json.dumps(run_of("net", name))).stdout)
        assert made["metadata"]["annotations"] == {REQUESTED: "write eve"}
        run = namespace.wait("run", name, lambda r: "service" in r.get("status", {}))
        return run["status"]["service"]["spec"]["requestedBy"], run["status"]["service"]["spec"]["requestedRole"]

    def guards():
        names = [f"{kind}/{release.full}.{namespace.name}" for kind in ("mutatingwebhookconfiguration", "validatingadmissionpolicy",
                                                                        "validatingadmissionpolicybinding")]
        found = namespace.cluster.kubectl("get", *names, "--ignore-not-found", "-o", "json").stdout
        return json.loads(found)["items"] if found else []

    def authority():
        """Certificate and key, and what the API server trusts."""
        bundles = {h["clientConfig"]["caBundle"] for g in guards() for h in g.get("webhooks", [])}
        return namespace.get("secret", "df-dayfly-authority")["data"], bundles
    try:
        release.install()
        namespace.kubectl("create", "rolebinding", "eve", f"--role={release.full}-editor", "--user=eve")
        namespace.kubectl("create", "rolebinding", "ann", f"--role={release.full}-admin", "--user=ann")
        executor = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"},
                    "spec": {"source": {"url": "file:///nowhere", "kind": "directory"}}}
        # The API server notices webhook and policy some moments after they are made.
        probe = {"input": json.dumps(executor), "check": False}
        wait_for("the webhook", lambda: '"admin ann"' in namespace.kubectl("--as", "ann", "create", "-f", "-", "--dry-run=server", "-o", "json", **probe).stdout)
        namespace.kubectl("--as", "ann", "create", "-f", "-", input=json.dumps(executor))
        assert namespace.wait("executor", "net", lambda e: "status" in e)["metadata"]["annotations"] == {REQUESTED: "admin ann"}
        assert asked_for("first") == ("eve", "write")

        first = authority()
        assert set(first[0]) == {"ca.crt", "ca.key"} and first[1] == {first[0]["ca.crt"]}
        release.upgrade("--set", "log.level=debug")
        assert authority() == first and asked_for("second") == ("eve", "write")
        release.rollback()
        assert authority() == first and asked_for("third") == ("eve", "write")
        release.upgrade("--set", "admission.enabled=false")
        assert authority() == (first[0], set()) and not guards()
        release.upgrade()
        assert authority() == first
    finally:
        release.helm("uninstall", "df", "--wait", "--timeout", "2m")
        namespace.let_go()
    assert not guards()


def test_an_apply_of_the_operator_outlives_an_upgrade_and_a_rollback(home, namespace, tofu, tmp_path):
    """Both replicas are replaced twice while tofu is in the middle of an apply: it was started once, and all it made is in the
    state. The upgrade also gives steps a namespace of their own, in which none of these may be."""
    reach(tmp_path)
    crds.install(namespace.cluster)
    ledger = Ledger(tmp_path / "ledger")
    release = Release(home, namespace, tofu, crds={"install": False}).install()
    release.executor("net", MODULE, ledger.placement(runner_image(namespace.cluster, tofu)))
    ledger.hold("second", "net-1-apply")
    process, run = release.begin("net")
    ledger.wait_held("second", f"{run}-apply")
    before = release.spawners()
    try:
        release.upgrade("--set", "steps.namespace=,limits.steps=3,runner.classes.small.limit=1,workspaces.net.class=small")
        upgraded = release.spawners()
        assert len(upgraded) == 2 and not set(upgraded) & set(before)
        assert namespace.get("run", run)["status"]["phase"] == "Running"
        # The new values count for what begins now: they know of no such class.
        namespace.apply(run_of("net", "other", **{"class": "large"}))
        refused = namespace.wait("run", "other", lambda r: r.get("status", {}).get("phase") == "Failed")
        assert "is not among the classes of this service: small" in refused["status"]["message"]

        release.rollback()
        assert not set(release.spawners()) & {*before, *upgraded}
        namespace.apply(run_of("net", "after", "provision", autoApprove=True, **{"class": "large"}))
        namespace.wait("run", "after", lambda r: r.get("status", {}).get("phase") == "Pending")
        assert namespace.get("run", run)["status"]["phase"] == "Running"
        ledger.let_go("second", f"{run}-apply")
        for name in (run, "after"):
            namespace.wait("run", name, lambda r: r["status"]["phase"] in ("Succeeded", "Failed", "Canceled"), seconds=120)
            assert namespace.get("run", name)["status"]["phase"] == "Succeeded"
        process.communicate()
        steps = [("plan", f"{run}-plan"), ("apply", f"{run}-apply"), ("plan", "after-plan"), ("apply", "after-apply")]
        assert dict(ledger.starts()) == {step: 1 for step in steps}
        assert ledger.made(run) == ["first", "second"]
        state = json.loads(release.home.dayfly("state", "show", "net").stdout)
        assert sorted(r["name"] for r in state["resources"]) == ["first", "second"]
        assert [t["metadata"]["labels"]["dayfly.dev/run"] for t in namespace.get("taskactions")].count(run) == 2
    finally:
        release.helm("uninstall", "df", "--wait", "--timeout", "2m")
        namespace.let_go()


def test_an_upgrade_to_a_configuration_that_makes_no_sense_leaves_a_replica_that_serves(home, namespace, tofu):
    crds.install(namespace.cluster)
    release = Release(home, namespace, tofu, crds={"install": False}).install()
    release.executor("net", 'resource "terraform_data" "a" {}\n')
    try:
        values = ["--set", "config.control.maxSystemFailures=-1"]
        release.helm("upgrade", "df", CHART, "--values", release.values, *values)

        def refusal():
            """What a new pod says that does not come up."""
            for pod in release.spawners():
                said = namespace.kubectl("logs", pod, "--tail=5", check=False).stdout
                if "control.maxSystemFailures" in said:
                    return said
            return None
        assert "from 0 to 100" in wait_for("a new replica to refuse its configuration", refusal)
        namespace.apply(run_of("net", "meanwhile"))
        namespace.wait("run", "meanwhile", lambda r: r.get("status", {}).get("phase") == "Succeeded", seconds=120)

        release.rollback()
        assert len(release.spawners()) == 2
        namespace.apply(run_of("net", "afterwards"))
        namespace.wait("run", "afterwards", lambda r: r.get("status", {}).get("phase") == "Succeeded", seconds=120)
    finally:
        release.helm("uninstall", "df", "--wait", "--timeout", "2m")
        namespace.let_go()
