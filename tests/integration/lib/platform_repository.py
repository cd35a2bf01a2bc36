"""The git repository of a small platform, as `dayfly-platform` is given one: dag.yaml at its root, ten components in three
stacks, one directory each, of every form that Argo CD renders.

    ground.site.commit(files())                             all ten, healthy
    ground.site.commit(files(SMALL, version=2))             four of them, each of them changed
    ground.site.commit(files(faults={"reports": "never"}))  see FAULTS
"""

import yaml

STACKS = ("foundation", "services", "apps")
# What can be wrong with a component. The first three are of its pods (lib/pod_stages.py) and so of those with a Deployment.
FAULTS = {
    "never": "its pods never become ready: synced, Progressing, Degraded after 5 seconds",
    "crashes": "its pods crash in a loop: the same, and the pods say why",
    "flaps": "its pods are ready every other second",
    "refused": "one of its objects is none that the API server takes: the sync fails",
    "unknown": "one of its objects is of a kind that there is not: the sync fails",
    "syntax": "one of its files is no YAML: Argo CD cannot compare",
    "absent": "its path is not in the repository: Argo CD cannot compare",
    "hook": "a hook before its sync never ends: the sync runs for ever",
    "hook-fails": "a hook before its sync fails: the sync fails",
}
SMALL = ("settings", "storage", "cache", "shop")


def document(*objects):
    """Objects as a file of YAML."""
    return yaml.safe_dump_all(objects, sort_keys=False)


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name, version, life=None, replicas=1):
    labels = {"app": name, **({"dayfly.dev/pod": life} if life else {})}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     **({"progressDeadlineSeconds": 5} if life else {}),
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [{"name": "main", "image": f"example.org/{name}:{version}"}]}}}}


def settings(name, version, _):
    return {"first.yaml": document(config_map(f"{name}-first", version=str(version))),
            "second.yaml": document(config_map(f"{name}-second", version=str(version)))}


def crds(*_):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    return {"widgets.yaml": document({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}})}


def storage(name, *_):
    return {"claim.yaml": document({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})}


def widgets(name, version, _):
    return {"widget.yaml": document({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name},
                                     "spec": {"size": version}})}


def chart(name, version, life):
    """A Helm chart."""
    of_values = document(deployment(name, "TAG", life)).replace(":TAG", ":{{ .Values.tag }}")
    return {"Chart.yaml": document({"apiVersion": "v2", "name": name, "version": "0.1.0"}),
            "values.yaml": document({"tag": str(version)}),
            "templates/deployment.yaml": of_values}


def overlay(name, version, life):
    """A kustomization with a base."""
    return {"kustomization.yaml": document({"resources": ["base"], "images": [{"name": f"example.org/{name}", "newTag": str(version)}]}),
            "base/kustomization.yaml": document({"resources": ["deployment.yaml"]}),
            "base/deployment.yaml": document(deployment(name, 0, life))}


def workload(name, version, life):
    return {"deployment.yaml": document(deployment(name, version, life, replicas=2))}


# name: (stack, form, what it depends on, more of its entry in dag.yaml)
COMPONENTS = {
    "crds": ("foundation", crds, (), {}),
    "settings": ("foundation", settings, (), {}),
    "storage": ("foundation", storage, ("settings",), {}),
    "ingress": ("services", chart, ("crds",), {"timeout": "2m"}),
    "widgets": ("services", widgets, ("crds",), {}),
    "cache": ("services", overlay, ("settings",), {}),
    "database": ("services", workload, ("storage",), {"critical": True}),
    "shop": ("apps", workload, ("database", "cache", "ingress"), {"critical": True}),
    "reports": ("apps", workload, ("database",), {}),
    "monitor": ("apps", chart, ("ingress",), {}),
}


def dag(names=tuple(COMPONENTS)):
    """The document dag.yaml of these components; what they depend on and is not among them is left out."""
    return {"components": [
        {"name": name, "stack": COMPONENTS[name][0], "path": f"platform/{name}", "namespace": name,
         "dependsOn": [other for other in COMPONENTS[name][2] if other in names], **COMPONENTS[name][3]} for name in names]}


def hook(name, life):
    return document({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": f"{name}-before", "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
        "spec": {"backoffLimit": 0,
                 "template": {"metadata": {"labels": {"dayfly.dev/pod": life}},
                              "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.org/c"}]}}}})


BAD_FILES = {
    "refused": lambda _: document(config_map("Not_A_Name")),
    "unknown": lambda name: document({"apiVersion": "example.org/v1", "kind": "Nothing", "metadata": {"name": name}}),
    "syntax": lambda _: "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n",
    "hook": lambda name: hook(name, "never"),
    "hook-fails": lambda name: hook(name, "fails"),
}


def of_component(name, version, fault):
    """{path below its directory: text}"""
    life = fault if fault in ("never", "crashes", "flaps") else None
    made = COMPONENTS[name][1](name, version, life)
    assert not life or life in "".join(made.values()), f"{name} has no pods that could be {fault}"
    below = "templates/" if "Chart.yaml" in made else ""
    added = {f"{fault}.yaml": BAD_FILES[fault](name)} if fault in BAD_FILES else {}
    if added and "kustomization.yaml" in made:
        made["kustomization.yaml"] = made["kustomization.yaml"].replace("- base", f"- base\n- {fault}.yaml")
    return {**made, **{f"{below}{path}": text for path, text in added.items()}}


def files(names=tuple(COMPONENTS), version=1, faults=None, **more):
    """{path: text} of the repository; `version` is in every component but the definitions and the claim. What is in `more` is
    a path and its text, too."""
    faults = faults or {}
    assert set(faults) <= set(names) and set(faults.values()) <= set(FAULTS), faults
    made = {"dag.yaml": document(dag(names)), **more}
    for name in names:
        if faults.get(name) != "absent":
            made.update({f"platform/{name}/{path}": text for path, text in of_component(name, version, faults.get(name)).items()})
    return made


def environment(url, revision="main", **more):
    """The text of environment.yaml for this repository, with waits that fit a test."""
    return document({"name": "test", "domain": "example.org", "gitRepository": url, "gitRevision": revision,
                     "timeouts": {"sync": "2m", "health": "2m"}, "retries": {"maxAttempts": 3, "backoff": "1s"}, **more})
