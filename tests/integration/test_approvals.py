"""What a role may: skip the approval, approve what somebody else asked for, give a run variables."""

import base64
import datetime
import json

import pytest

from lib.commands import on_terminal
from lib.dayfly import Server, wait_for

MODULE = 'resource "terraform_data" "one" {\n  input = "one"\n}\n'
TOKENS = {"eve": "write", "bob": "write", "ann": "admin"}


class Service:
    """A server with a token for each person of TOKENS; `be("eve")` is who asks from then on."""

    def __init__(self, home, caller=None, **approval):
        self.home = home
        made = {name: home.json("token-file", "create", "--name", name, "--role", role) for name, role in TOKENS.items()}
        file = home.directory / "tokens"
        file.write_text("".join(m["line"].rstrip("\n") + "\n" for m in made.values()))
        file.chmod(0o600)
        self.tokens = {name: m["token"] for name, m in made.items()}
        config = {"auth": {"tokenFile": str(file)}, "approval": approval}
        self.server = Server(home, config=json.dumps(config | ({"caller": caller} if caller else {})))

    def __enter__(self):
        self.server.__enter__()
        self.be("ann")
        return self

    def __exit__(self, *exc):
        return self.server.__exit__(*exc)

    def be(self, name):
        self.home.env.update(DAYFLY_TOKEN=self.tokens[name])
        return self.home

    def executor(self, name, **spec):
        module = self.home.module(name, MODULE)
        document = {"kind": "Executor", "metadata": {"name": name},
                    "spec": {"source": {"url": f"file://{module}"}, **spec}}
        self.home.dayfly("create", "-f", "-", input=json.dumps(document))

    def ask(self, name, action="provision", **body):
        return self.request("POST", f"/v1/executors/{name}/runs", {"action": action, **body})

    def approve(self, run):
        return self.request("POST", f"/v1/runs/{run}/approve", {})

    def request(self, method, path, body=None):
        status, _, answer = self.server.request(
            method, path, body, {"Authorization": f"Bearer {self.home.env['DAYFLY_TOKEN']}"})
        return status, json.loads(answer)

    def await_phase(self, run, phase):
        found = wait_for(f"{run} to be {phase}", lambda: (lambda r: r["status"].get("phase") == phase and r)(
            self.request("GET", f"/v1/runs/{run}")[1]))
        return found

    def phase(self, run):
        return self.request("GET", f"/v1/runs/{run}")[1]["status"]["phase"]


def reason(answer):
    status, problem = answer
    return status, problem["type"].rsplit("/", 1)[1]


# ---- the role that may skip the approval ----

def test_a_required_approval_is_not_skipped_by_the_flag_of_a_write_token(home):
    with Service(home) as service:
        service.executor("net")
        service.be("eve")
        answer = service.ask("net", autoApprove=True)
        assert reason(answer) == (403, "Forbidden")
        assert "needs the role admin" in answer[1]["detail"] and "yours is write" in answer[1]["detail"]
        refused = home.dayfly("run", "net", "--auto-approve", code=1)
        assert "--auto-approve" in refused.stderr and "approval.autoApprove" in refused.stderr
        assert service.ask("net", "dry-run", autoApprove=True)[0] == 201, "a dry-run applies nothing"
        service.await_phase("net-1", "Succeeded")
        assert service.ask("net")[0] == 201
        service.await_phase("net-2", "WaitingApproval")
        home.dayfly("approve", "net-2")
        assert service.await_phase("net-2", "Succeeded")["status"]["approvedBy"] == "eve"


def test_it_is_skipped_by_an_admin_and_where_no_approval_is_required(home):
    with Service(home) as service:
        service.executor("net")
        service.executor("free", approval="automatic")
        service.be("ann")
        service.ask("net", autoApprove=True)
        service.await_phase("net-1", "Succeeded")
        service.be("eve")
        service.ask("free", autoApprove=True)
        service.await_phase("free-1", "Succeeded")


def test_the_configuration_lets_write_tokens_skip_it(home):
    with Service(home, autoApprove="write") as service:
        service.executor("net")
        service.be("eve")
        service.ask("net", autoApprove=True)
        service.await_phase("net-1", "Succeeded")


# ---- a separate approver ----

@pytest.mark.parametrize("of", ["instance", "executor"])
def test_a_requester_does_not_approve_their_own_run_and_somebody_else_does(home, of):
    instance = {"separateApprover": True} if of == "instance" else {}
    spec = {"separateApprover": True} if of == "executor" else {}
    with Service(home, autoApprove="write", **instance) as service:
        service.executor("net", **spec)
        service.be("eve")
        assert reason(service.ask("net", autoApprove=True)) == (403, "SelfApproval")
        refused = home.dayfly("run", "net", "--auto-approve", code=1)
        assert "another person" in refused.stderr and "--auto-approve" in refused.stderr
        assert service.ask("net")[0] == 201
        service.await_phase("net-1", "WaitingApproval")
        assert reason(service.approve("net-1")) == (403, "SelfApproval")
        refused = home.dayfly("approve", "net-1", code=1)
        assert "net-1 was requested by eve" in refused.stderr and "somebody else approves it" in refused.stderr
        assert service.phase("net-1") == "WaitingApproval"
        service.be("bob")
        assert service.approve("net-1")[0] == 200
        assert service.await_phase("net-1", "Succeeded")["status"]["approvedBy"] == "bob"
        service.be("ann")
        trail = [(e["actor"], e["action"], e["outcome"]) for e in service.request("GET", "/v1/audit")[1]["items"]
                 if e["action"] == "approve"]
        assert sorted(trail) == [("bob", "approve", "done"), ("eve", "approve", "refused"), ("eve", "approve", "refused")]


def test_it_holds_for_admins_too_and_a_requester_may_still_discard(home):
    with Service(home, separateApprover=True) as service:
        service.executor("net")
        service.be("ann")
        assert reason(service.ask("net", autoApprove=True)) == (403, "SelfApproval")
        service.ask("net")
        service.await_phase("net-1", "WaitingApproval")
        assert reason(service.approve("net-1")) == (403, "SelfApproval")
        home.dayfly("discard", "net-1")
        service.await_phase("net-1", "Discarded")


def test_an_executor_without_approvals_waits_for_another_person_too(home):
    """Otherwise whoever may make an executor would need no approver."""
    with Service(home, separateApprover=True) as service:
        service.be("eve")
        service.executor("free", approval="automatic", separateApprover=False)
        service.ask("free")
        service.await_phase("free-1", "WaitingApproval")
        assert reason(service.approve("free-1")) == (403, "SelfApproval")
        service.be("bob")
        service.approve("free-1")
        service.await_phase("free-1", "Succeeded")


def test_without_it_a_requester_approves_their_own_run(home):
    with Service(home) as service:
        service.executor("net")
        service.be("eve")
        service.ask("net")
        service.await_phase("net-1", "WaitingApproval")
        assert service.approve("net-1")[0] == 200
        service.await_phase("net-1", "Succeeded")


# ---- several approvals ----

@pytest.mark.parametrize("of", ["instance", "executor"])
def test_two_people_approve_a_plan_and_the_run_says_who(home, of):
    instance = {"requiredApprovals": 2} if of == "instance" else {}
    spec = {"requiredApprovals": 2} if of == "executor" else {}
    with Service(home, **instance) as service:
        service.executor("net", **spec)
        service.be("eve")
        service.ask("net")
        digest = service.await_phase("net-1", "WaitingApproval")["status"]["planDigest"]
        assert "has your approval; it has 1" in home.dayfly("approve", "net-1", "--reason", "CHG-1").stdout
        assert "has your approval; it has 1" in home.dayfly("approve", "net-1").stdout, "nobody counts twice"
        wait_for("the message", lambda: service.request("GET", "/v1/runs/net-1")[1]["status"].get("message") ==
                 "1 of 2 approvals: approved by eve")
        assert "1 of 2 approvals: approved by eve" in home.dayfly("why", "net-1").stdout
        service.be("bob")
        assert home.dayfly("approve", "net-1").stdout == "net-1 approved\n"
        run = service.await_phase("net-1", "Succeeded")
        assert [(d["by"], d["verdict"], d.get("reason"), d["plan"]) for d in run["status"]["decisions"]] == [
            ("eve", "approved", "CHG-1", digest), ("bob", "approved", None, digest)]
        why = home.dayfly("why", "net-1").stdout
        assert "Approved by eve: CHG-1\n" in why and "Approved by bob\n" in why


def test_the_question_of_a_run_takes_one_of_several_approvals(home):
    with Service(home) as service:
        service.executor("net", requiredApprovals=2)
        terminal = on_terminal(home, "run", "net")
        terminal.expect("Only 'yes' is accepted:")
        terminal.type("yes\n")
        assert terminal.end() == 1
        assert "not applied: net-1 has 1 of the required approvals" in terminal.shown
        service.be("bob")
        home.dayfly("approve", "-f", "net-1")
        assert service.phase("net-1") == "Succeeded"


def test_several_approvals_are_not_given_in_advance_and_one_person_discards(home):
    with Service(home) as service:
        service.executor("net", approval="automatic", requiredApprovals=2)
        refused = home.dayfly("run", "net", "--auto-approve", code=1)
        assert "requiredApprovals or destroyApprovals of executor net" in refused.stderr and "leave it out" in refused.stderr
        service.ask("net")
        service.await_phase("net-1", "WaitingApproval")
        service.approve("net-1")
        service.be("bob")
        home.dayfly("discard", "net-1", "--reason", "too large")
        service.await_phase("net-1", "Discarded")
        assert "Decided by bob: too large" in home.dayfly("why", "net-1").stdout


def test_an_approval_of_another_plan_and_rubbish_are_refused(home):
    with Service(home) as service:
        service.executor("net")
        service.ask("net")
        digest = service.await_phase("net-1", "WaitingApproval")["status"]["planDigest"]

        def approve(**body):
            return reason(service.request("POST", "/v1/runs/net-1/approve", body))
        assert approve(plan="0" * 64) == (409, "PlanChanged")
        assert approve(reason=1) == approve(plan=[]) == approve(reason="x" * 1025) == approve(because="") == (400, "InvalidDocument")
        assert service.phase("net-1") == "WaitingApproval"
        assert service.request("POST", "/v1/runs/net-1/approve", {"plan": digest})[0] == 200
        service.await_phase("net-1", "Succeeded")
        for value in (0, 11, "2"):
            answer = service.request("PATCH", "/v1/executors/net", {"spec": {"requiredApprovals": value}})
            assert reason(answer) == (400, "InvalidDocument") and "requiredApprovals" in answer[1]["detail"]


# ---- what a plan does ----

LIST = 'locals {\n  names = %s\n}\nresource "terraform_data" "one" {\n  for_each = toset(local.names)\n  input    = %s\n}\n'


def test_a_plan_that_only_creates_and_updates_needs_no_look_and_one_that_destroys_does(home):
    with Service(home) as service:
        module = home.module("net", LIST % ('["a"]', '"x"'))
        service.executor("net", automaticFor={"changes": ["create", "update"]})

        def apply(names, value, phase):
            (module / "main.tf").write_text(LIST % (names, value))
            run = service.ask("net")[1]["metadata"]["name"]
            return service.await_phase(run, phase)["status"]

        (module / "main.tf").write_text(LIST % ('["a"]', '"x"'))
        assert apply('["a"]', '"x"', "Succeeded")["planChanges"] == {"kinds": ["create"], "types": ["terraform_data"]}
        done = apply('["a", "b"]', '"y"', "Succeeded")
        assert sorted(done["planChanges"]["kinds"]) == ["create", "update"] and "approvedBy" not in done
        assert [d["reason"].partition(": ")[0] for d in done["decisions"]] == ["automatic"]
        assert "Approved: automatic: only " in home.dayfly("why", "net-2").stdout
        asked = apply('["b", "c"]', '"y"', "WaitingApproval")
        assert sorted(asked["planChanges"]["kinds"]) == ["create", "delete"] and "decisions" not in asked
        home.dayfly("approve", "-f", "net-3")
        assert service.request("PATCH", "/v1/executors/net", {"spec": {"automaticFor": {"exceptTypes": ["terraform_data"]}}})[0] == 200
        apply('["b", "c", "d"]', '"y"', "WaitingApproval")
        home.dayfly("discard", "net-4")
        for wrong in ({"changes": ["delete"]}, {"changes": []}, {"exceptTypes": ["a"]}, {"changes": ["create"], "when": "x"}):
            answer = service.request("POST", "/v1/executors", {"metadata": {"name": "other"}, "spec": {
                "source": {"url": f"file://{module}"}, "automaticFor": wrong}})
            assert reason(answer) == (400, "InvalidDocument") and "automaticFor" in answer[1]["detail"], answer


# ---- when ----

def test_an_approved_plan_waits_for_its_window_and_begins_within_it(home):
    with Service(home) as service:
        today = datetime.datetime.now(datetime.timezone.utc)
        later = [(today + datetime.timedelta(days=d)).strftime("%a").lower() for d in (2, 3)]
        service.executor("net", applyWindow={"days": later, "from": "10:00", "to": "11:00", "utcOffset": "+01:00"})
        service.ask("net")
        service.await_phase("net-1", "WaitingApproval")
        home.dayfly("approve", "net-1")
        wait_for("the message", lambda: "it opens at" in service.request("GET", "/v1/runs/net-1")[1]["status"].get("message", ""))
        why = home.dayfly("why", "net-1").stdout
        assert "The plan is approved" in why and "waits for applyWindow of executor net" in why, why
        home.dayfly("cancel", "net-1")
        service.await_phase("net-1", "Canceled")
        now = [(today + datetime.timedelta(hours=h)).strftime("%H:%M") for h in (-1, 2)]
        assert service.request("PATCH", "/v1/executors/net", {"spec": {"applyWindow": {"days": None, "from": now[0], "to": now[1], "utcOffset": None}}})[0] == 200
        service.ask("net", autoApprove=True)
        service.await_phase("net-2", "Succeeded")
        for wrong in ({"to": None}, {"from": "10:00", "to": "10:00"}, {"from": "24:00", "to": "10:00"}, {"from": "1:00", "to": "10:00"},
                      {"from": "10:00", "to": "11:00", "days": []}, {"from": "10:00", "to": "11:00", "utcOffset": "Europe/Berlin"}):
            answer = service.request("PATCH", "/v1/executors/net", {"spec": {"applyWindow": wrong}})
            assert reason(answer) == (400, "InvalidDocument") and "applyWindow" in answer[1]["detail"], answer


# ---- the webhook's route ----

REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
    "uid": "1", "resource": {"group": "dayfly.dev", "version": "v1alpha1", "resource": "runs"}, "userInfo": {"username": "eve"},
    "object": {"kind": "Run", "metadata": {"name": "a"}, "spec": {}}, "oldObject": None}}


def test_the_webhook_answers_where_it_is_configured_and_reads_no_large_body_of_strangers(home):
    with Server(home) as server:
        assert server.request("POST", "/v1/admission/write", REVIEW)[0] == 404
    with Server(home, config="kubernetes: {webhook: dayfly}\n") as server:
        status, _, body = server.request("POST", "/v1/admission/write?timeout=3s", REVIEW)
        answer = json.loads(body)["response"]
        patch = json.loads(base64.b64decode(answer["patch"]))
        assert (status, answer["allowed"], patch[0]["value"]) == (200, True, {"dayfly.dev/requested-by": "write eve"})
        assert server.request("POST", "/v1/admission/read", REVIEW)[0] == 404
        assert server.request("POST", "/v1/admission/write", {**REVIEW, "pad": "x" * 262144})[0] == 413


# ---- the environment of a run ----

MAY_RUN_CODE = ["TF_ENCRYPTION", "BASH_ENV", "GIT_SSH_COMMAND", "HTTPS_PROXY", "AWS_ENDPOINT_URL", "VAULT_ADDR"]
HARMLESS = ["TF_VAR_x", "TF_LOG", "AWS_ACCESS_KEY_ID"]


def given(*names):
    return {"secrets": {"environment": {name: "off" for name in names}}}


def test_a_write_token_gives_a_run_no_variable_that_may_run_code(home):
    with Service(home) as service:
        service.executor("net", approval="automatic")
        service.be("eve")
        for name in MAY_RUN_CODE:
            answer = service.ask("net", "dry-run", **given("TF_LOG", name))
            assert reason(answer) == (403, "Forbidden"), name
            assert all(word in answer[1]["detail"] for word in [name, "role admin", "write", "caller.environment"])
        status, answer = service.request("POST", "/v1/executors/net/recreate", given("BASH_ENV"))
        assert status == 403, answer
        assert "BASH_ENV" in home.dayfly("plan", "net", "--env", "BASH_ENV=/dev/null", code=1).stderr
        assert service.request("GET", "/v1/runs")[1]["items"] == []
        assert service.ask("net", "dry-run", **given(*HARMLESS))[0] == 201
        service.await_phase("net-1", "Succeeded")
        service.be("ann")
        assert service.ask("net", "dry-run", **given("HTTPS_PROXY", "BASH_ENV"))[0] == 201
        service.await_phase("net-2", "Succeeded")


def test_the_operator_names_the_variables_that_a_write_token_may_give(home):
    with Service(home, caller={"environment": ["OUR_*"]}) as service:
        service.executor("net")
        service.be("eve")
        assert service.ask("net", "dry-run", **given("OUR_KEY"))[0] == 201
        assert service.ask("net", "dry-run", **given("BASH_ENV"))[0] == 403


@pytest.mark.parametrize("own", ["environment", "integration"])
def test_a_write_token_does_not_replace_the_credentials_of_an_executor(home, own):
    keys = {"aws_access_key_id": "AKIAEXECUTORSOWN", "aws_secret_access_key": "executors-own-key"}
    with Service(home, caller={"environment": ["AWS_REGION"]}) as service:
        if own == "environment":
            service.executor("net", environment=[{"name": "AWS_ROLE_ARN", "value": "arn:aws:iam::1:role/net"}])
        else:
            for key, value in keys.items():
                home.dayfly("secret", "set", "aws", key, "--executor", "net", input=value)
            service.executor("net", integrations=[{"provider": "aws", "secretRef": {"name": "aws"}}])
        service.be("eve")
        assert service.ask("net", "dry-run", **given("AWS_ACCESS_KEY_ID"))[0] == 201
        refused = service.await_phase("net-1", "Failed")["status"]
        assert refused["reason"] == "InvalidStep" and "AWS_ACCESS_KEY_ID" in refused["message"]
        assert service.ask("net", "dry-run", **given("TF_LOG", "GITHUB_TOKEN", "AWS_REGION"))[0] == 201
        service.await_phase("net-2", "Succeeded")
        service.be("ann")
        assert service.ask("net", "dry-run", **given("AWS_ACCESS_KEY_ID"))[0] == 201
        service.await_phase("net-3", "Succeeded")
