"""The parts of `make bench` about dayfly-platform: imported by run. The API server is real, and so is Argo CD where it has to do
something."""

import json
import os
import pathlib
import statistics
import subprocess
import time

from lib.argo import HERE, NAMESPACE, Ground
from lib.platform import Platform, component, config_map, deployment, text_of


def synced(ground, platform, name, commit):
    """An Application as it is after a deploy, so that no controller is needed."""
    spec = {"project": "default", "source": {"repoURL": ground.site.url, "path": "a", "targetRevision": commit},
            "destination": {"server": HERE, "namespace": platform.space(name)},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true", "ServerSideApply=true"]}}
    resources = [{"kind": "ConfigMap", "name": f"x{k}", "namespace": "n", "status": "Synced", "version": "v1"} for k in range(20)]
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "labels": {"dayfly.dev/environment": platform.name, "dayfly.dev/stack": "foundation"}}, "spec": spec,
            "status": {"sync": {"status": "Synced", "revision": commit,
                                "comparedTo": {"source": spec["source"], "destination": spec["destination"]}},
                       "health": {"status": "Healthy"}, "reconciledAt": "2026-11-29T12:00:00Z", "resources": resources}}


def crowd(ground, work, n):
    """A platform of n components that are Synced and Healthy."""
    platform = Platform(ground, work / "platform", name="crowd")
    commit = ground.site.commit({"a/x.yaml": text_of(config_map("x"))})
    platform.environment["gitRevision"] = commit
    names = [f"c{i:03}" for i in range(n)]
    platform.dag(*[component(name, path="a") for name in names])
    for name in names:
        ground.apply(NAMESPACE, synced(ground, platform, name, commit))
    return platform


def peak_mib(platform, action):
    process = platform.start(action)
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                peak = max([peak, *(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))])
        except OSError:
            pass
        time.sleep(0.002)
    process.communicate()
    return peak / 1024


def seconds(platform, action):
    began = time.monotonic()
    process = platform.start(action)
    output = process.communicate()[0]
    assert process.returncode == 0, output
    return time.monotonic() - began


def second(row, quick, work):
    work = pathlib.Path(work)
    n = 50 if quick else 200
    with Ground(work / "ground") as ground:
        ground.kill("controller")
        platform = crowd(ground, work, n)
        took = statistics.median(seconds(platform, "deploy") for _ in range(3 if quick else 9))
        writes = len(platform.run("deploy").writes)
        peak = peak_mib(platform, "deploy")
    row(f"second deploy of {n} Applications", f"{took:.2f} s", "<= 1.5 s", took <= 1.5)
    row("the same: objects written", str(writes), "0", writes == 0)
    row("the same: peak resident memory", f"{peak:.1f} MiB", "<= 12 MiB", peak <= 12)


def validate(row, quick, work):
    work = pathlib.Path(work)
    n = 50 if quick else 500
    with Ground(work / "ground") as ground:
        ground.kill("controller")
        platform = crowd(ground, work, n)
        took = statistics.median(seconds(platform, "validate") for _ in range(3 if quick else 9))
    row(f"validate of {n} Applications", f"{took:.2f} s", "<= 1 s", took <= 1)


def start(row, quick, work):
    """To the first request at the API server, by its log."""
    work = pathlib.Path(work)
    with Ground(work / "ground") as ground:
        ground.kill("controller")
        platform = crowd(ground, work, 1)
        pauses = []
        for _ in range(3 if quick else 20):
            began = time.time()
            first = platform.run("validate").audit[0]["requestReceivedTimestamp"]
            stamp = time.mktime(time.strptime(first[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(first[19:-1])
            pauses.append((stamp - began) * 1000)
    took = statistics.median(pauses)
    row("dayfly-platform: from its start to its first request, median", f"{took:.0f} ms", "<= 30 ms", took <= 30)


def script(order):
    """What people write without a program for it: one component after the other, looked at each second."""
    return "set -eu\n" + "\n".join(f"""
kubectl apply -f {name}.json >/dev/null
kubectl -n argocd patch application {name} --type merge -p '{{"operation":{{"sync":{{"syncOptions":["CreateNamespace=true"]}}}}}}' >/dev/null
until [ "$(kubectl -n argocd get application {name} -o jsonpath='{{.status.sync.status}} {{.status.health.status}}')" = "Synced Healthy" ]
do sleep 1; done""" for name in order)


def deploy(row, quick, work):
    """Ten real components, three stacks."""
    work = pathlib.Path(work)
    names = [f"c{i}" for i in range(10)]
    depends = {"c3": ["c0"], "c4": ["c1"], "c5": ["c2"], "c6": ["c3", "c4"], "c7": ["c5"], "c8": ["c6"], "c9": ["c7"]}
    files = {f"{n}/{kind}.yaml": text_of(made) for n in names for kind, made in (("d", deployment(n)), ("c", config_map(n)))}
    ours, theirs = [], []
    for turn in range(1 if quick else 3):
        with Ground(work / f"ground{turn}") as ground:
            ground.site.commit(files)
            platform = Platform(ground, work / f"ours{turn}", name="ours")
            platform.dag(*[component(n, *depends.get(n, ())) for n in names])
            ours.append(seconds(platform, "deploy"))
        with Ground(work / f"other{turn}") as ground:
            ground.site.commit(files)
            other = Platform(ground, work / f"theirs{turn}", name="theirs")
            for n in names:
                app = synced(ground, other, n, "main")
                del app["status"]
                app["metadata"]["namespace"] = NAMESPACE
                app["spec"]["source"]["path"] = n
                (work / f"{n}.json").write_text(json.dumps(app))
            env = {**os.environ, "KUBECONFIG": str(ground.kubeconfig), "PATH": f"{os.path.dirname(ground.program('kubectl'))}:{os.environ['PATH']}"}
            began = time.monotonic()
            subprocess.run(["sh", "-c", script(names)], cwd=work, env=env, check=True)
            theirs.append(time.monotonic() - began)
    ratio = statistics.median(ours) / statistics.median(theirs)
    row("deploy of ten components against a script with kubectl", f"{ratio:.2f} ({statistics.median(ours):.1f} s)", "<= 0.8 of its time",
        ratio <= 0.8)


PARTS = {"platform-second": second, "platform-validate": validate, "platform-start": start, "platform-deploy": deploy}
