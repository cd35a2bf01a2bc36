"""The custom resource definitions: made from the model's tables, and as strict as the model."""

import concurrent.futures
import json
import os
import re
import subprocess

import pytest

from lib import crds
from lib.dayfly import BUILD, ROOT

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

# What CEL cannot say, or not within its budget: the spawner refuses it when it takes the resource in (InvalidDocument).
LEFT_TO_THE_SPAWNER = [
    r"spec\.description: has a control character",  # may have lines; patterns cannot tell the others
    r"null; leave it out",  # the API server drops nulls
    r"spec\.variables: .* is not the name of a variable",  # values of any type are out of CEL's sight
    r"spec\.storage\.config",  # the same
    r"metadata\.(labels|annotations)",  # rules of the API server's own
    r'spec\.arguments\[\d\]: "b" does not begin with -',  # needs the item before
    r"needs one value, a whole number",
    r"is not a quantity",  # of another type than a number or a string
    r"is more than the limit|needs a limit that is the same|is not a resource",
    r"something else is mounted",  # three lists together
    r"podTemplate",  # anything that a pod may have
    r"secret_key: is a secret|is set by spec\.storage\.path",
    r"spec\.secrets\[\d\]: .* occurs twice",  # depends on the form of both
    r"spec\.secrets\[\d\]\.keys\[\d\]",  # which names a form takes
    r"set by two keys|set by spec\.secrets, too",  # all keys against all others
    r"spec\.secrets\[\d\]\.env: .* is refused",  # as the names of spec.environment
    r"placement\.env\[\d\]: .* is refused",  # the same
    r"spec\.source\.url: .*name the repository alone",  # pages and folders of forges: no pattern of a few lines
    r"spec\.workflow\.(executionBundle|engineConfig\.[A-Za-z]+|parameters\.[^:]*): ",  # the engine decides
    r"is for modules of OpenTofu and Terraform|: a platform has no",  # the runtime decides
    r"spec\.cancel: is not a field",  # of a new workflow; later it is the way to cancel it
]

# What the service itself writes, not into the spec; and a fraction without quotes, which the API server's type of
# quantities does not know.
REFUSED_BY_THE_SERVER_ALONE = [
    r'unknown field "spec\.(number|requestedBy|cancel\.at|source|graceSeconds|arguments)"',
    r'must be of type integer,string: "number"',
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """All documents that the model's own tests show it, and what it said."""
    path = tmp_path_factory.mktemp("shown") / "documents"
    for name in ("model", "model_arguments", "model_source", "model_workflow", "placement"):
        subprocess.run([str(BUILD / "record" / name)], check=True, capture_output=True, cwd=ROOT,
                       env={**os.environ, "DAYFLY_TEST_DOCUMENTS": str(path)})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    unique = {json.dumps([case["kind"], case["document"]], sort_keys=True): case for case in lines}
    return [case for case in unique.values() if isinstance(case["document"].get("metadata"), dict)]


def resource(number, case):
    """The document as somebody would apply it, under a name of its own unless that is what is wrong with it."""
    document = json.loads(json.dumps(case["document"]))
    metadata = document["metadata"]
    if NAME.fullmatch(str(metadata.get("name"))):
        metadata["name"] = f"case-{number}"
    metadata.pop("namespace", None)
    metadata.pop("resourceVersion", None)
    return {"apiVersion": "dayfly.dev/v1alpha1", "kind": case["kind"], **document}


def matches(patterns, text):
    return any(re.search(pattern, text) for pattern in patterns)


def test_the_api_server_takes_and_refuses_what_the_model_does(namespace, shown):
    crds.install(namespace.cluster)

    def show(numbered):
        number, case = numbered
        answer = crds.kube(namespace, "create", case["kind"], body=json.dumps(resource(number, case)))
        return case, answer.returncode == 0, answer.stderr

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(show, enumerate(shown)))
    lax = [case["message"] for case, taken, _ in answers
           if taken and not case["accepted"] and not matches(LEFT_TO_THE_SPAWNER, case["message"])]
    strict = [why for case, taken, why in answers
              if not taken and case["accepted"] and not matches(REFUSED_BY_THE_SERVER_ALONE, why)]
    assert not lax and not strict
    assert sum(not case["accepted"] for case, _, _ in answers) > 400  # the tables are not empty


def test_the_definitions_are_those_of_the_models_tables():
    for plural in crds.PLURALS.values():
        made = subprocess.run([str(BUILD / "tools/schemas"), plural], check=True, capture_output=True, text=True).stdout
        assert made == (crds.DIRECTORY / f"{plural}.yaml").read_text(), f"{plural}: run `make crds`"


def test_each_field_of_a_spec_is_explained(namespace):
    crds.install(namespace.cluster)
    for path, words in (("executor", "where its state is"), ("executor.spec.source.url", "git@host:path"),
                        ("run.spec.decision", "approve or discard"), ("taskaction.spec.workflow", "What is executed"),
                        ("run.status.phase", "WaitingApproval")):
        assert words in namespace.kubectl("explain", path).stdout.replace("\n    ", " ")


@pytest.mark.parametrize("before, patch, why", [
    ({}, {"action": "destroy"}, "cannot be changed"),
    ({}, {"executorRef": {"name": "other"}}, "cannot be changed"),
    ({}, {"decision": {"verdict": "approved"}}, "does not wait for a decision"),
    ({"phase": "Running"}, {"decision": {"verdict": "approved"}}, "does not wait for a decision"),
    ({"phase": "WaitingApproval"}, {"decision": {"verdict": "maybe"}}, "Unsupported value"),
    ({"phase": "WaitingApproval"}, {"decision": {"verdict": "approved", "by": "me"}}, "unknown field"),
    ({"phase": "WaitingApproval"}, {"decision": {"verdict": "approved"}}, None),
    ({}, {"cancel": {"reason": "enough"}}, None),
])
def test_of_a_run_only_a_decision_that_is_due_and_a_cancel_can_be_written(namespace, before, patch, why):
    crds.install(namespace.cluster)
    namespace.apply({"apiVersion": "dayfly.dev/v1alpha1", "kind": "Run", "metadata": {"name": "r"},
                     "spec": {"executorRef": {"name": "net"}, "action": "provision"}})
    if before:
        namespace.kubectl("patch", "run", "r", "--subresource=status", "--type=merge", "-p",
                          json.dumps({"status": before}))
    result = namespace.kubectl("patch", "run", "r", "--type=merge", "-p", json.dumps({"spec": patch}), check=False)
    output = result.stderr + result.stdout
    if why:
        assert (result.returncode != 0 or "Warning" in output) and why in output, output
    else:
        assert result.returncode == 0, output


@pytest.mark.parametrize("status, refused", [
    ({"state": "provision", "mayHoldResources": False}, False),
    ({"state": "provision", "mayHoldResources": True}, True),
    ({"state": "provisioned"}, True),
    ({"state": "destroyed", "mayHoldResources": False}, False),
])
def test_storage_cannot_be_changed_while_it_holds_a_state(namespace, status, refused):
    crds.install(namespace.cluster)
    namespace.apply({"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "net"},
                     "spec": {"source": {"url": "file:///src"}}})
    namespace.kubectl("patch", "executor", "net", "--subresource=status", "--type=merge", "-p",
                      json.dumps({"status": status}))
    result = namespace.kubectl("patch", "executor", "net", "--type=merge", "-p",
                               '{"spec":{"storage":{"type":"local","path":"/states/net"}}}', check=False)
    assert (result.returncode != 0) == refused, result.stderr
    assert ("before the executor is destroyed" in result.stderr) == refused
