"""People sign in at a real OpenID provider; their id token is the bearer token of the API, and auth.grants says who may what."""

import hashlib
import json
import textwrap

import pytest

from lib.dayfly import Server, wait_for
from lib.oidc import Provider

PEOPLE = {
    "alice": {"groups": ["platform", "net-team"], "email": "alice@example.com"},
    "bob": {"groups": ["net-team"], "email": "bob@example.com"},
    "carol": {"groups": ["visitors", "sales"], "email": "carol@example.com"},
    "dave": {"email": "dave@example.com"},
    "erin": {"https://example.com/teams": ["net-team"], "email": "erin@example.com", "email_verified": False},
}
GRANTS = """
grants:
  platform: {to: {groups: [platform]}, on: {all: true}, preset: admin}
  network: {to: {groups: [net-team]}, on: {all: true}, preset: write}
"""
MODULE = 'resource "terraform_data" "a" {}'


@pytest.fixture(scope="module")
def provider():
    with Provider(PEOPLE) as provider:
        yield provider


def configuration(provider, more="", grants=GRANTS, **oidc):
    keys = {"issuer": provider.issuer, "audience": "dayfly", **oidc}
    return "auth:\n  oidc: " + json.dumps(keys) + "\n" + textwrap.indent(grants.strip("\n"), "  ") + "\n" + more


def ask(server, token, method="GET", path="/v1/executors", body=None):
    status, _, answer = server.request(method, path, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    answer = json.loads(answer)
    return status, answer, answer.get("type", "").rpartition("/")[2]


def test_a_grant_to_a_group_gives_its_members_their_role_and_the_highest_of_several(home, provider):
    with Server(home, config=configuration(provider)) as server:
        executor = {"metadata": {"name": "net"}, "spec": {"source": {"url": f"file://{home.module('net', MODULE)}", "kind": "directory"}}}
        alice, bob = provider.sign_in("alice"), provider.sign_in("bob")
        status, made, _ = ask(server, bob, "POST", "/v1/executors", executor)
        assert status == 201, made
        assert ask(server, bob, "GET", "/v1/audit")[0] == 403  # for admins
        status, trail, _ = ask(server, alice, "GET", "/v1/audit")
        assert status == 200 and trail["items"][-1]["actor"] == f"{provider.issuer}#bob", trail


def test_who_is_in_no_grant_is_refused_and_told_which_groups_came(home, provider):
    with Server(home, config=configuration(provider)) as server:
        status, problem, reason = ask(server, provider.sign_in("carol"))
        assert (status, reason) == (403, "Forbidden")
        assert problem["detail"] == f"no grant of auth.grants names {provider.issuer}#carol or one of the token's groups: visitors, sales"
        assert ask(server, provider.sign_in("dave"))[1]["detail"].endswith("groups: it has none")


def test_a_token_for_another_client_and_one_that_was_changed_are_refused(home, provider):
    with Server(home, config=configuration(provider)) as server:
        assert ask(server, provider.sign_in("alice", client="wiki"))[::2] == (401, "TokenAudience")
        token = provider.sign_in("alice")
        head, payload, signature = token.split(".")
        other = provider.sign_in("bob").split(".")[1]
        # The provider's tokens name no key, so that another key may have signed them: it is asked again, but not for each.
        unknown = (503, "TokenKeysUnavailable"), (401, "TokenKeyUnknown")
        assert ask(server, f"{head}.{other}.{signature}")[::2] in unknown
        assert ask(server, f"{head}.{payload}.")[::2] in unknown
        assert ask(server, token)[0] == 200


def test_a_person_may_have_a_grant_by_name_with_the_claims_and_prefixes_that_are_configured(home, provider):
    grants = "grants: {alice: {to: {users: ['corp:alice@example.com'], groups: []}, on: {all: true}, preset: read}," \
             " boss: {to: {users: [boss]}, on: {all: true}, preset: admin}, teams: {to: {groups: ['corp:net-team']}, on: {all: true}, preset: write}}"
    oidc = {"usernameClaim": "email", "usernamePrefix": "corp:", "groupsClaim": "https://example.com/teams", "groupsPrefix": "corp:"}
    with Server(home, config=configuration(provider, grants=grants, **oidc)) as server:
        assert ask(server, provider.sign_in("alice"))[0] == 200
        assert ask(server, provider.sign_in("bob"))[0] == 403
        status, problem, reason = ask(server, provider.sign_in("erin"))
        assert (status, reason, problem["detail"]) == (401, "TokenNoUser", 'the token\'s claim "email_verified" is not true')


def test_the_claim_email_has_no_prefix_unless_one_is_given(home, provider):
    grants = "grants: {alice: {to: {users: [alice@example.com]}, on: {all: true}, preset: admin}}"
    with Server(home, config=configuration(provider, grants=grants, usernameClaim="email")) as server:
        assert ask(server, provider.sign_in("alice"))[0] == 200


def test_a_provider_that_comes_late_or_changes_its_keys_is_asked_again(home):
    provider = Provider(PEOPLE)
    with Server(home, config=configuration(provider)) as server, provider:
        old = provider.sign_in("alice")
        assert ask(server, old)[0] == 200
        provider.stop()
        assert ask(server, old)[0] == 200  # the keys that are known stay good
        provider.start()
        new = provider.sign_in("alice")
        wait_for("the new keys", lambda: ask(server, new)[0] == 200)
        assert ask(server, old)[::2] in ((503, "TokenKeysUnavailable"), (401, "TokenKeyUnknown"))


def test_while_the_provider_is_away_its_people_are_asked_to_come_again_and_the_token_file_works(home, provider):
    away = Provider(PEOPLE)
    tokens = home.directory / "tokens"
    tokens.write_text(f"root admin {hashlib.sha256(b'break-glass').hexdigest()}\n")
    tokens.chmod(0o600)
    text = configuration(away).replace("auth:\n", f"auth:\n  tokenFile: {tokens}\n")
    with away:
        token = away.sign_in("alice")
    with Server(home, config=text) as server:
        assert ask(server, token)[::2] == (503, "TokenKeysUnavailable")
        assert ask(server, "break-glass")[0] == 200
        assert ask(server, provider.sign_in("alice"))[::2] == (401, "Unauthorized")  # of another issuer


def test_a_separate_approver_is_somebody_else_by_the_provider(home, provider):
    with Server(home, config=configuration(provider, more="approval: {separateApprover: true}\n")) as server:
        alice, bob = provider.sign_in("alice"), provider.sign_in("bob")
        executor = {"metadata": {"name": "net"}, "spec": {"source": {"url": f"file://{home.module('net', MODULE)}", "kind": "directory"}}}
        assert ask(server, bob, "POST", "/v1/executors", executor)[0] == 201
        status, run, _ = ask(server, bob, "POST", "/v1/executors/net/runs", {"action": "provision"})
        assert status == 201, run
        path = f"/v1/runs/{run['metadata']['name']}"
        wait_for("the plan", lambda: ask(server, bob, "GET", path)[1]["status"].get("phase") == "WaitingApproval")
        assert ask(server, bob, "POST", path + "/approve")[::2] == (403, "SelfApproval")
        assert ask(server, alice, "POST", path + "/approve")[0] == 200
        wait_for("the end", lambda: ask(server, bob, "GET", path)[1]["status"].get("phase") == "Succeeded")


def test_an_approver_is_in_a_group_of_the_provider(home, provider):
    with Server(home, config=configuration(provider)) as server:
        alice, bob = provider.sign_in("alice"), provider.sign_in("bob")
        executor = {"metadata": {"name": "net"}, "spec": {"source": {"url": f"file://{home.module('net', MODULE)}", "kind": "directory"},
                                                          "approvers": {"groups": ["platform"]}}}
        nobody = {**executor, "spec": {**executor["spec"], "approvers": {}}}
        assert ask(server, bob, "POST", "/v1/executors", nobody)[1]["detail"].endswith("spec.approvers: is empty")
        assert ask(server, bob, "POST", "/v1/executors", executor)[0] == 201
        assert ask(server, bob, "POST", "/v1/executors/net/runs", {"action": "provision", "autoApprove": True})[::2] == (403, "NotApprover")
        assert ask(server, bob, "POST", "/v1/executors/net/runs", {"action": "provision"})[0] == 201
        wait_for("the plan", lambda: ask(server, bob, "GET", "/v1/runs/net-1")[1]["status"].get("phase") == "WaitingApproval")
        status, problem, reason = ask(server, bob, "POST", "/v1/runs/net-1/approve")
        assert (status, reason) == (403, "NotApprover") and "(groups: platform)" in problem["detail"], problem
        assert ask(server, alice, "POST", "/v1/runs/net-1/approve")[0] == 200
        wait_for("the end", lambda: ask(server, bob, "GET", "/v1/runs/net-1")[1]["status"].get("phase") == "Succeeded")


def test_doctor_asks_the_provider_and_says_when_it_names_another_issuer(home, provider):
    config = home.directory / "dayfly.yaml"

    def found(issuer):
        config.write_text(configuration(provider, issuer=issuer))
        answer = home.dayfly("doctor", "--config", config, "--only", "openid", "-o", "json", code=None)
        finding = [f for f in json.loads(answer.stdout)["findings"] if f["check"] == "openid"][0]
        return finding["level"], finding["message"]

    assert found(provider.issuer) == ("ok", f"the OpenID provider {provider.issuer} answers, and its keys are available")
    other = provider.issuer + "/"
    level, message = found(other)
    assert level == "fail" and f'says that its issuer is "{provider.issuer}", not "{other}"' in message


@pytest.mark.parametrize("auth, said", [
    ({"oidc": {"issuer": "https://id.example.com", "audience": "dayfly"}}, "auth.grants: is required"),
    ({"oidc": {"issuer": "https://id.example.com"}, "grants": {}}, "auth.oidc.audience: is required"),
    ({"grants": {"a": {"to": {"users": ["x"]}, "on": {"all": True}, "preset": "read"}}}, "auth.oidc.issuer: is required"),
    ({"oidc": {"issuer": "http://id.example.com", "audience": "a"}, "grants": {}}, "must be an https:// URL"),
    ({"oidc": {"issuer": "http://localhost.example.com", "audience": "a"}, "grants": {}}, "must be an https:// URL"),
    ({"oidc": {"issuer": "https://me:pw@id.example.com", "audience": "a"}, "grants": {}}, "must be scheme, host and path"),
    ({"grants": {"a": {"to": {}, "on": {"all": True}, "preset": "read"}}}, "a.to: must name somebody"),
    ({"grants": {"a": {"to": {"users": ["x"]}, "on": {}, "preset": "read"}}}, "a.on: must say which executors"),
    ({"grants": {"a": {"to": {"users": ["x"]}, "on": {"all": False}, "preset": "read"}}}, "a.on.all: must be true, or left out"),
    ({"grants": {"a": {"to": {"users": ["x"]}, "on": {"all": True}, "preset": "owner"}}}, "a.preset: "),
    ({"grants": {"a": {"to": {"teams": ["x"]}, "on": {"all": True}, "preset": "read"}}}, "a.to.teams: "),
])
def test_a_configuration_by_which_nobody_or_anybody_could_sign_in_is_refused(home, auth, said):
    config = home.directory / "dayfly.yaml"
    config.write_text(json.dumps({"auth": auth}))
    answer = home.dayfly("serve", "--config", config, "--data-directory", home.directory / "data", code=3)
    assert said in answer.stderr, answer.stderr
