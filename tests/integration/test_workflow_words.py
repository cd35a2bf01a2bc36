"""What the commands say about workflows whose cluster does not answer: none is needed here."""

import json

import pytest

from lib.dayfly import Server, wait_for

AWAY = """apiVersion: v1
kind: Config
clusters: [{name: away, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: x}}]
contexts: [{name: away, context: {cluster: away, user: me}}]
current-context: away
"""
CONFIG = "engines: [job, tekton]\nkubernetes: {{kubeconfig: {kubeconfig}, image: 'registry.example/runner:1'}}\n"


@pytest.fixture
def service(home):
    kubeconfig = home.directory / "kubeconfig"
    kubeconfig.write_text(AWAY)
    with Server(home, config=CONFIG.format(kubeconfig=kubeconfig)):
        yield home


def ask(home, engine, code=0, **workflow):
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "TaskAction", "metadata": {"name": "fix"},
                "spec": {"action": "workflow", "engine": engine, "targetResource": "default/deployment/web", "workflow": workflow}}
    return home.dayfly("create", "-f", "-", input=json.dumps(document), code=code).stderr


def test_a_workflow_that_was_never_started_is_canceled_and_deleted_without_the_cluster(service):
    ask(service, "tekton")
    wait_for("it to say what it waits for", lambda: "127.0.0.1:1" in service.dayfly("why", "taskaction/fix").stdout)
    service.dayfly("cancel", "taskaction/fix", "--reason", "no need")
    wait_for("its end", lambda: service.json("get", "taskaction", "fix")["status"].get("reason") == "Canceled")
    why = service.dayfly("why", "taskaction/fix").stdout
    assert "The workflow was canceled.\n" in why and ": no need\n" in why
    assert not any(word in why for word in ("apply", "dry-run", " state"))
    service.dayfly("delete", "taskaction/fix")


def test_the_name_of_a_workflow_alone_leads_to_its_kind(service):
    ask(service, "job")
    for command in ("logs", "why", "cancel", "describe"):
        assert '"fix" is a taskaction: say taskaction/fix' in service.dayfly(command, "fix", code=3).stderr
    for command in ("logs", "why"):
        assert '"nobody": no run and no executor has this name' in service.dayfly(command, "nobody", code=1).stderr
        assert "a name is missing behind the slash" in service.dayfly(command, "taskaction/", code=3).stderr
    assert 'Run "nobody" does not exist' in service.dayfly("cancel", "nobody", code=1).stderr


def test_a_closed_engine_says_what_opens_it(service):
    said = 'unsupported execution engine: "ansible" (registered: [job tekton]); write engines: [job, tekton, ansible] into'
    assert said in ask(service, "ansible", code=3, engineConfig={"jobTemplateName": "restart"})
    assert "dayfly has local, job, tekton, ansible" in ask(service, "awx", code=3)
    assert "the engine local runs no workflows" in ask(service, "local", code=3)
