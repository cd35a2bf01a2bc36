"""Personal tokens: what people give to their programs, at the real service, with people of a real OpenID provider and of a token file."""

import base64
import hashlib
import json
import re
import time
import urllib.request

import pytest

from lib.dayfly import Server, wait_for
from lib.oidc import Provider
from test_oidc import MODULE, ask, configuration

GRANTS = """
grants:
  platform: {to: {groups: [platform]}, on: {all: true}, preset: admin}
  network: {to: {groups: [net-team]}, on: {matchLabels: {team: net}}, preset: write}
"""
ON_NET = {"matchLabels": {"team": "net"}}


@pytest.fixture(scope="module")
def provider():
    with Provider({}) as provider:
        yield provider


def groups(provider, name, *names):
    """From the next sign-in on the person is in these groups."""
    body = json.dumps({"groups": names}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{provider.issuer}/users/{name}", body, {"Content-Type": "application/json"}, method="PUT"))


def sign_in(provider, name, *names):
    groups(provider, name, *names)
    return provider.sign_in(name)


def make(server, owner, name="ci", status=201, **ceiling):
    got, made, reason = ask(server, owner, "POST", "/v1/tokens", {"name": name, **(ceiling or {"preset": "read"})})
    assert got == status, made
    return made["token"] if got == 201 else (reason, made["detail"])


def age(token):
    """Seconds since the provider made it, by whole ones."""
    payload = token.split(".")[1]
    return int(time.time()) - json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["iat"]


def executor(home, server, token, name, **labels):
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"source": {"url": f"file://{home.module('net', MODULE)}", "kind": "directory"}}}
    assert ask(server, token, "POST", "/v1/executors", body)[0] == 201


def refused(server, token, *words, path="/v1/executors"):
    status, problem, reason = ask(server, token, path=path)
    return status == 401 and reason == "Unauthorized" and all(word in problem["detail"] for word in words)


def names(server, token):
    status, answer, _ = ask(server, token)
    assert status == 200, answer
    return [item["metadata"]["name"] for item in answer["items"]]


def revoke(server, token, path):
    return server.request("DELETE", f"/v1/tokens{path}", headers={"Authorization": f"Bearer {token}"})[0]


def trail(server, token):
    return [(e["actor"].rpartition("#")[2], e.get("token"), e["action"], e["name"], e["outcome"]) for e in ask(server, token, path="/v1/audit")[1]["items"]]


def test_a_token_may_what_both_its_ceiling_and_its_owner_may_and_nothing_else(home, provider):
    with Server(home, config=configuration(provider, grants=GRANTS)) as server:
        root, bob = sign_in(provider, "root", "platform"), sign_in(provider, "bob", "net-team")
        executor(home, server, root, "net", team="net")
        executor(home, server, root, "db", team="db")
        reads = make(server, bob, "reads", preset="read")
        plans = make(server, bob, "plans", verbs=["view", "plan"], on={"names": ["net", "db"]})
        assert re.fullmatch("dft_[A-Za-z0-9_-]{80}", plans) and names(server, plans) == names(server, reads) == ["net"]
        dry, real = {"action": "dry-run"}, {"action": "provision"}
        assert ask(server, plans, "POST", "/v1/executors/net/runs", dry)[0] == 201
        status, problem, _ = ask(server, plans, "POST", "/v1/executors/net/runs", real)
        assert status == 403 and "you may not apply" in problem["detail"], problem
        assert ask(server, bob, "POST", "/v1/executors/net/runs", real)[0] == 201
        assert ask(server, reads, "POST", "/v1/executors/net/runs", dry)[0] == 403 and ask(server, plans, path="/v1/executors/db")[0] == 404
        all_of_it = make(server, root, "all", preset="admin", on=ON_NET)
        assert names(server, all_of_it) == ["net"] and ask(server, all_of_it, path="/v1/executors/db")[0] == 404
        assert ask(server, all_of_it, path="/v1/audit")[0] == 403  # belongs to no executor
        assert ask(server, all_of_it, "POST", "/v1/executors", {"metadata": {"name": "x"}, "spec": {"source": {"url": "file:///x"}}})[0] == 403


def test_what_somebody_loses_by_a_new_sign_in_their_token_loses_too(home, provider):
    more = GRANTS + "  look: {to: {groups: [lookers]}, on: {all: true}, preset: read}\n"
    with Server(home, config=configuration(provider, grants=more)) as server:
        root, old = sign_in(provider, "root", "platform"), sign_in(provider, "eve", "net-team")
        executor(home, server, root, "net", team="net")
        token = make(server, old, verbs=["view", "plan"])
        assert ask(server, token, "POST", "/v1/executors/net/runs", {"action": "dry-run"})[0] == 201
        wait_for("another second: the provider's times have no fractions", lambda: age(old) >= 1)
        new = sign_in(provider, "eve", "lookers")
        assert ask(server, token, "POST", "/v1/executors/net/runs", {"action": "dry-run"})[0] == 201  # nobody has told the service
        assert ask(server, new)[0] == 200
        assert ask(server, token, "POST", "/v1/executors/net/runs", {"action": "dry-run"})[0] == 403 and names(server, token) == ["net"]
        assert ask(server, old, "POST", "/v1/executors/net/runs", {"action": "dry-run"})[0] == 201  # as long as it is good
        assert ask(server, token, "POST", "/v1/executors/net/runs", {"action": "dry-run"})[0] == 403
        wait_for("another second", lambda: age(new) >= 1)
        assert ask(server, sign_in(provider, "eve", "visitors"))[0] == 403  # with nothing any more, and that counts, too
        status, problem, _ = ask(server, token)
        assert status == 403 and "no grant of auth.grants names" in problem["detail"] and "visitors" in problem["detail"]
        assert ("eve", None, "read", "/v1/executors", "refused") in trail(server, root)


def test_a_token_that_is_none_any_more_is_refused_and_told_why(home, provider):
    with Server(home, config=configuration(provider, grants=GRANTS)) as server:
        ann, root = sign_in(provider, "ann", "net-team"), sign_in(provider, "root", "platform")
        token = make(server, ann)
        assert refused(server, token[:-1], "is not whole") and refused(server, token[:4] + token[5:] + "x", "is not whole")
        changed = token[:30] + ("A" if token[30] != "A" else "B") + token[31:]
        assert refused(server, changed, "is not whole")
        sum_of = lambda body: base64.urlsafe_b64encode(body + hashlib.sha256(body).digest()[:4]).decode()  # noqa: E731
        body = base64.urlsafe_b64decode(token[4:])[:-4]
        assert "dft_" + sum_of(body) == token and ask(server, token)[0] == 200
        for at in 3, 20, 50:  # whose it is, the random part, the proof
            forged = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
            assert refused(server, "dft_" + sum_of(forged), "of another service")
        brief = make(server, ann, "brief", preset="read", expires="1s")
        wait_for("the end of the token", lambda: ask(server, brief)[0] == 401)
        assert refused(server, brief, "personal token brief of", "#ann expired at")
        assert make(server, ann, "brief") != brief  # an expired one does not keep its name
        assert revoke(server, ann, "/ci") == 204
        assert refused(server, token, "was revoked") and revoke(server, ann, "/ci") == 404
        again = make(server, ann)
        assert again != token and ask(server, again)[0] == 200 and refused(server, token, "was revoked")
        # Of others: an admin.
        who = f"{provider.issuer}#ann".replace("#", "%23")
        bob = sign_in(provider, "bob", "net-team")
        assert revoke(server, bob, f"/ci?of={who}") == ask(server, bob, path=f"/v1/tokens?of={who}")[0] == 403
        assert [t["name"] for t in ask(server, root, path=f"/v1/tokens?of={who}")[1]["items"]] == ["brief", "ci"]
        assert revoke(server, root, f"?of={who}") == 204 and refused(server, again, "was revoked")
        assert ask(server, root, path=f"/v1/tokens?of={who}")[1]["items"] == [] == ask(server, bob, path="/v1/tokens")[1]["items"]
        assert ("root", None, "revoke", "all", "done") in trail(server, root) and ("bob", None, "revoke", "ci", "refused") in trail(server, root)
    with Server(home, config=configuration(provider, grants=GRANTS), data=home.directory / "other") as server:
        assert refused(server, again, "of another service")


@pytest.mark.parametrize("body, said", [
    ({"name": "ci", "verbs": ["view", "fly"]}, 'token.verbs[1]: "fly" is not one of view, plan'),
    ({"name": "ci", "verbs": ["plan"]}, "its verbs must have view"),
    ({"name": "ci", "verbs": []}, "token.verbs: is empty"),
    ({"name": "ci"}, "token: must have either verbs or preset"),
    ({"name": "ci", "preset": "read", "verbs": ["view"]}, "token: must have either verbs or preset"),
    ({"name": "ci", "preset": "owner"}, 'token.preset: "owner"'),
    ({"name": "ci", "preset": "read", "expires": "91d"}, '"91d": a token lasts more than nothing and at most 90d'),
    ({"name": "ci", "preset": "read", "expires": "2161h"}, "at most 90d"),
    ({"name": "ci", "preset": "read", "expires": "0d"}, "more than nothing"),
    ({"name": "ci", "preset": "read", "expires": "-1h"}, "is negative"),
    ({"name": "ci", "preset": "read", "expires": "2026-01-01"}, "is not a duration"),
    ({"name": "CI", "preset": "read"}, "token.name"),
    ({"preset": "read"}, "token.name: is required"),
    ({"name": "ci", "preset": "read", "on": {}}, "token.on: must say which executors"),
    ({"name": "ci", "preset": "read", "on": {"names": []}}, "token.on: must say which executors"),
    ({"name": "ci", "preset": "read", "owner": "root"}, "token.owner"),
])
def test_what_no_token_can_be_is_named(server, body, said):
    status, _, answer = server.request("POST", "/v1/tokens", body)
    assert status == 400 and said in json.loads(answer)["detail"], answer


def test_a_person_has_twenty_at_most_and_each_name_once(server):
    asked = lambda name: server.request("POST", "/v1/tokens", {"name": name, "preset": "read"})  # noqa: E731
    for n in range(20):
        assert asked(f"t{n}")[0] == 201
    status, _, answer = asked("t7")
    assert status == 409 and "you have one of this name" in json.loads(answer)["detail"]
    status, _, answer = asked("more")
    assert status == 409 and json.loads(answer)["type"].endswith("/TooManyTokens") and "20 personal tokens" in json.loads(answer)["detail"]
    assert server.request("DELETE", "/v1/tokens/t3")[0] == 204 and asked("more")[0] == 201


def test_no_token_makes_tokens_and_none_outlives_a_restart_or_a_backup_as_more_than_it_is(home, provider):
    tokens = home.directory / "tokens"
    tokens.write_text("".join(f"{name} {role} {hashlib.sha256(name.encode()).hexdigest()}\n" for name, role in (("boss", "admin"), ("dev", "write"))))
    tokens.chmod(0o600)
    text = configuration(provider, grants=GRANTS).replace("auth:\n", f"auth:\n  tokenFile: {tokens}\n")
    with Server(home, config=text) as server:
        ann = sign_in(provider, "ann", "net-team")
        personal, of_file = make(server, ann, preset="write"), make(server, "dev", preset="admin")
        for token in personal, of_file:
            for method, path in (("POST", "/v1/tokens"), ("GET", "/v1/tokens"), ("DELETE", "/v1/tokens"), ("DELETE", "/v1/tokens/ci")):
                status, problem, _ = ask(server, token, method, path, {"name": "x", "preset": "read"} if method == "POST" else None)
                assert status == 403 and "a personal token makes, lists and revokes none" in problem["detail"]
        who = ask(server, of_file, path="/v1/whoami")[1]
        assert (who["name"], who["role"], who["knownBy"], who["token"]["name"]) == ("dev", "write", "tokenFile", "ci")
        assert ask(server, of_file, path="/v1/audit")[0] == 403 and ask(server, of_file, path="/v1/secrets")[0] == 200
        archive = home.directory / "backup.tar"
        home.dayfly("backup", archive, env={"DAYFLY_TOKEN": "boss"})
    with Server(home, config=text) as server:
        assert ask(server, personal)[0] == ask(server, of_file)[0] == 200
        tokens.write_text(tokens.read_text().replace("dev write", "dev read"))
        assert ask(server, of_file, path="/v1/whoami")[1]["role"] == "read"
        tokens.write_text(tokens.read_text().replace("dev read", "dave read"))
        assert refused(server, of_file, "dev, whose personal token this is, is not among the callers", "the token file has no such name")
        assert revoke(server, "boss", "/ci?of=dev") == 204
        log = server.log.read_text()
    home.dayfly("restore", archive, "--data-directory", home.directory / "restored")
    with Server(home, config=text, data=home.directory / "restored") as server:
        assert refused(server, of_file, "older than the backup") and refused(server, personal, "older than the backup")
    for token in personal, of_file:
        digest = hashlib.sha256(token.encode()).hexdigest()
        found = [path for path in home.directory.rglob("*") if path.is_file()
                 and any(word.encode() in path.read_bytes() for word in (token, token[4:], digest))]
        assert not found and token not in log, found


def test_the_trail_names_the_owner_and_the_token_and_a_token_is_its_owners_approval(home, provider):
    with Server(home, config=configuration(provider, grants=GRANTS, more="approval: {separateApprover: true}\n")) as server:
        root, bob, cyd = sign_in(provider, "root", "platform"), sign_in(provider, "bob", "net-team"), sign_in(provider, "cyd", "net-team")
        executor(home, server, root, "net", team="net")
        token, other = make(server, bob, preset="write"), make(server, cyd, "release", preset="approver")
        status, run, _ = ask(server, token, "POST", "/v1/executors/net/runs", {"action": "provision"})
        assert status == 201 and run["spec"]["requestedBy"].endswith("#bob")
        path = f"/v1/runs/{run['metadata']['name']}"
        wait_for("the plan", lambda: ask(server, bob, path=path)[1]["status"].get("phase") == "WaitingApproval")
        for mine in token, bob:
            assert ask(server, mine, "POST", path + "/approve")[::2] == (403, "SelfApproval")
        assert ask(server, other, "POST", path + "/approve")[0] == 200
        wait_for("the end", lambda: ask(server, bob, path=path)[1]["status"].get("phase") == "Succeeded")
        found = trail(server, root)
        for entry in (("bob", None, "create", "ci", "done"), ("bob", "ci", "create", "net-1", "done"), ("bob", "ci", "approve", run["metadata"]["name"], "refused"),
                      ("bob", None, "approve", run["metadata"]["name"], "refused"), ("cyd", "release", "approve", run["metadata"]["name"], "done")):
            assert entry in found, (entry, found)
        entry = [e for e in ask(server, root, path="/v1/audit")[1]["items"] if e["kind"] == "Token"][-1]
        assert re.fullmatch(r"until \S+Z: (write|view, approve)", entry["detail"])


# ---- dayfly token ----

def test_the_commands_make_show_and_end_a_token_of_the_user_of_this_machine(home, server):
    made = home.dayfly("token", "create", "ci", "--verbs", "view,plan", "--executor", "net,dns", "--expires", "12h")
    assert re.fullmatch(r"dft_\S{80}\n", made.stdout) and "for executors: net, dns" in made.stderr and made.stdout.strip() not in made.stderr
    token = {"DAYFLY_TOKEN": made.stdout.strip()}
    assert home.json("token", "create", "team", "--preset", "plan", "-l", "team=net,env=dev")["on"] == {"matchLabels": {"team": "net", "env": "dev"}}
    rows = [line.split() for line in home.dayfly("token", "list").stdout.splitlines()]
    assert rows[0][:2] == ["NAME", "VERBS"] and [row[0] for row in rows[1:]] == ["ci", "team"] and "team=net," in rows[2]
    shown = home.dayfly("whoami", env=token).stdout
    assert "Name:      local\nRole:      none\n" in shown and re.search(r"Token:     ci, until \S+Z\nVerbs:     view, plan\nExecutors: net, dns\n", shown)
    assert home.json("token", "list")["items"][0]["lastUsedAt"]
    assert "makes, lists and revokes none" in home.dayfly("token", "list", env=token, code=1).stderr
    assert home.dayfly("token", "revoke", "ci").stdout == "token/ci revoked\n"
    assert "was revoked" in home.dayfly("get", "executors", env=token, code=1).stderr
    assert home.dayfly("token", "revoke", "--all").stdout == "all tokens revoked\n" and "no personal tokens" in home.dayfly("token", "list").stderr


@pytest.mark.parametrize("words, said", [
    (["ci"], "either --preset read"), (["ci", "--preset", "read", "--verbs", "view"], "either --preset read"),
    (["ci", "--preset", "read", "--executor", "net", "-l", "a=b"], "give one of them"), (["ci", "--preset", "read", "-l", "team"], "is not LABEL=VALUE"),
    (["ci", "--preset", "read", "-l", "team!=net"], "is not LABEL=VALUE"), (["ci", "--verbs", "view,,plan"], "token.verbs[1]")])
def test_a_command_that_says_too_little_or_too_much_makes_no_token(home, server, words, said):
    assert said in home.dayfly("token", "create", *words, code=3).stderr


def test_a_service_that_asks_nobody_for_a_token_makes_none(home):
    with Server(home, config="auth: {loopback: open}\n") as server:
        status, _, answer = server.request("POST", "/v1/tokens", {"name": "ci", "preset": "read"})
        assert status == 403 and "asks nobody for a token" in json.loads(answer)["detail"]
