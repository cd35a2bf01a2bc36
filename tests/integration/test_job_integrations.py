"""Integrations of steps that are pods: the pod's account proves who it is, with a token of the audience that the provider wants."""

import json

import pytest

from lib.pods import Pods

ROLE = "arn:aws:iam::123456789012:role/deployer"

# The claims of the token, in one write: what comes in pieces the tool may print as lines. The token itself is masked.
MODULE = """
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "claims=$(cut -d. -f2 $AWS_WEB_IDENTITY_TOKEN_FILE | tr _- /+ | base64 -d 2>/dev/null); echo \\"$claims\\"; cat $AWS_WEB_IDENTITY_TOKEN_FILE; ls /run/dayfly/identity"
  }
}
"""


@pytest.fixture
def pods(home, namespace, tofu):
    with Pods(home, namespace, tofu) as world:
        yield world


def test_a_pod_has_the_token_that_its_integration_exchanges_and_no_other_pod_has_it(pods):
    pods.home.dayfly("create", "-f", "-", input=json.dumps({
        "apiVersion": "dayfly.dev/v1alpha1", "kind": "Integration", "metadata": {"name": "prod"},
        "spec": {"provider": "aws", "executors": ["net"], "webIdentity": {"roleArn": ROLE}}}))
    pods.executor("net", MODULE, integrations=[{"name": "prod"}])
    assert pods.run("net")["run"]["status"]["reason"] == "Applied"
    log = pods.home.dayfly("logs", "net-1").stdout
    claims = next(json.loads(line.split(": ", 1)[1]) for line in log.splitlines() if '{"aud":' in line)
    assert claims["aud"] == ["sts.amazonaws.com"]
    assert claims["sub"] == f"system:serviceaccount:{pods.namespace.name}:default"
    assert "***" in log and "eyJ" not in log
    plain = "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" { command = \"ls /run/dayfly/identity || echo none\" }\n}\n"
    pods.executor("bare", plain)
    assert pods.run("bare")["run"]["status"]["reason"] == "Applied"
    assert "(local-exec): none" in pods.home.dayfly("logs", "bare-1").stdout
