"""What the simulated node (KWOK) lets become of a pod. The label `dayfly.dev/pod` on a pod says which life it has:

  (none)    ready at once; a pod of a Job or of a Workflow succeeds
  fails     of a Job or of a Workflow: its containers end with exit code 1
  never     its containers run and never become ready
  crashes   its containers wait in CrashLoopBackOff, after two restarts
  flaps     ready and not ready in turns, a second each
"""

import json

LIFE = '.metadata.labels["dayfly.dev/pod"]'
READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
OWNER = ".metadata.ownerReferences.[].kind"

STATUS = """
{{ $now := Now }}
phase: PHASE
startTime: {{ or .status.startTime $now | Quote }}
hostIP: 10.98.0.1
podIP: 10.98.0.1
conditions:
- {type: PodScheduled, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "READY", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "READY", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: CONTAINER
  restartCount: RESTARTS
  STATE
{{ end }}
"""
RUNS = "state: {running: {startedAt: {{ $now | Quote }}}}"
ENDED = "terminated: {exitCode: CODE, reason: WHY, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}"
SUCCEEDED = "state: {" + ENDED.replace("CODE", "0").replace("WHY", "Completed") + "}"
FAILED = "state: {" + ENDED.replace("CODE", "1").replace("WHY", "Error") + "}"
CRASHES = ("state: {waiting: {reason: CrashLoopBackOff, message: back-off 20s restarting failed container}}\n"
           "  lastState: {" + ENDED.replace("CODE", "1").replace("WHY", "Error") + "}")


def status(ready, phase="Running", state=RUNS, restarts=0):
    words = {"PHASE": phase, "READY": "True" if ready else "False", "CONTAINER": "true" if ready else "false",
             "RESTARTS": str(restarts), "STATE": state}
    text = STATUS
    for word, value in words.items():
        text = text.replace(word, value)
    return {"statusTemplate": text}


NODE_STATUS = """
conditions:
- {type: Ready, status: "True", reason: KubeletReady, lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}}
addresses:
- {type: InternalIP, address: 10.98.0.1}
allocatable: {cpu: "1000", memory: 1Ti, pods: "1000"}
capacity: {cpu: "1000", memory: 1Ti, pods: "1000"}
"""


def stage(name, following, *conditions, kind="Pod", deleted=False, delay=0):
    """A stage of objects for which all these (expression, operator, values) hold."""
    conditions = [*conditions, (".metadata.deletionTimestamp", "Exists" if deleted else "DoesNotExist", None)]
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name},
            "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "next": following,
                     "selector": {"matchExpressions": [
                         {"key": key, "operator": operator, **({"values": values} if values else {})}
                         for key, operator, values in conditions]},
                     **({"delay": {"durationMilliseconds": delay}} if delay else {})}}


def stages():
    pending = (".status.phase", "In", ["Pending"])
    of_work = (".status.phase", "In", ["Running"]), (OWNER, "In", ["Job", "Workflow"])
    return [
        stage("join", {"statusTemplate": NODE_STATUS}, (READY, "NotIn", ["True"]), kind="Node"),
        stage("start", status(True), pending, (LIFE, "NotIn", ["never", "crashes"])),
        stage("stay-unready", status(False), pending, (LIFE, "In", ["never"])),
        stage("crash", status(False, state=CRASHES, restarts=2), pending, (LIFE, "In", ["crashes"])),
        stage("fall", status(False), (LIFE, "In", ["flaps"]), (READY, "In", ["True"]), delay=1000),
        stage("rise", status(True), (LIFE, "In", ["flaps"]), (READY, "In", ["False"]), delay=1000),
        stage("succeed", status(False, "Succeeded", SUCCEEDED), *of_work, (LIFE, "NotIn", ["never", "crashes", "fails"])),
        stage("fail", status(False, "Failed", FAILED), *of_work, (LIFE, "In", ["fails"])),
        stage("delete", {"delete": True}, deleted=True),
    ]


def text():
    """As KWOK reads it: one document after the other."""
    return "\n---\n".join(json.dumps(one) for one in stages())
