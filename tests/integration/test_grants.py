"""Who may do what with which executors: grants by name and label, verb by verb, to people with real tokens of a real provider."""

import json
import socket
import textwrap
import urllib.parse

import pytest

from lib.dayfly import Server, wait_for
from lib.oidc import Provider
from lib.transitions import Events

MODULE = 'resource "terraform_data" "a" {}'
VERBS = "view plan apply approve destroy cancel edit state state-write secrets grant".split()
PRESETS = {"read": "view", "plan": "view plan", "write": "view plan apply approve cancel state", "approver": "view approve", "admin": " ".join(VERBS)}
PEOPLE = {name: {"groups": [group]} for name, group in {"root": "platform", "bob": "net-team", "cyd": "net-lead", "dan": "on-call", "eve": "lookers",
                                                         "joe": "net-editor"}.items()}
GRANTS = {
    "platform": {"to": {"groups": ["platform"]}, "on": {"all": True}, "preset": "admin"},
    "team": {"to": {"groups": ["net-team"]}, "on": {"matchLabels": {"team": "net"}}, "verbs": ["view", "plan"]},
    "lead": {"to": {"groups": ["net-lead"]}, "on": {"matchLabels": {"team": "net"}}, "preset": "write"},
    "editor": {"to": {"groups": ["net-editor"]}, "on": {"matchLabels": {"team": "net"}}, "verbs": ["view", "edit"]},
    "secret": {"to": {"groups": ["net-editor"]}, "on": {"matchLabels": {"team": "db"}}, "preset": "admin"},
    "call": {"to": {"groups": ["on-call"]}, "on": {"names": ["db", "none"]}, "preset": "approver"},
    "look": {"to": {"groups": ["lookers"]}, "on": {"all": True}, "preset": "read"},
}
# One person for each verb, with it and `view`, and one for each preset.
PEOPLE |= {f"only-{verb}": {"groups": []} for verb in VERBS} | {f"has-{preset}": {"groups": []} for preset in PRESETS}


@pytest.fixture(scope="module")
def provider():
    with Provider(PEOPLE) as provider:
        yield provider


def one(provider, person, **grant):
    return {"to": {"users": [f"{provider.issuer}#{person}"]}, "on": {"names": ["net"]}, **grant}


def configuration(provider, more="", creator=None):
    grants = {**GRANTS, **{f"only-{verb}": one(provider, f"only-{verb}", verbs=sorted({"view", verb})) for verb in VERBS},
              **{f"has-{preset}": one(provider, f"has-{preset}", preset=preset) for preset in PRESETS}}
    auth = {"oidc": {"issuer": provider.issuer, "audience": "dayfly"}, "grants": grants, **({"creator": creator} if creator else {})}
    return "auth:\n" + textwrap.indent("\n".join(f"{key}: {json.dumps(value)}" for key, value in auth.items()), "  ") + "\n" + more


class World:
    def __init__(self, home, provider, server):
        self.home, self.provider, self.server, self.tokens = home, provider, server, {}
        self.url = f"file://{home.module('net', MODULE)}"

    def header(self, who):
        self.tokens.setdefault(who, None)
        if not self.tokens[who]:
            self.tokens[who] = self.provider.sign_in(who)
        return {"Authorization": f"Bearer {self.tokens[who]}"}

    def ask(self, who, method, path, body=None, **headers):
        kind = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        body = body.encode() if isinstance(body, str) else body
        status, _, answer = self.server.request(method, path, body, {**self.header(who), **kind, **headers})
        answer = json.loads(answer) if answer and answer.lstrip()[:1] in (b"{", "{") else {}
        return status, answer

    def ok(self, *args, **headers):
        status, answer = self.ask(*args, **headers)
        assert status < 300, (args, status, answer)
        return answer

    def refused(self, status, *args, **headers):
        got, answer = self.ask(*args, **headers)
        assert got == status, (args, got, answer)
        return answer.get("detail", "")

    def executor(self, name, **labels):
        return {"metadata": {"name": name, "labels": labels}, "spec": {"source": {"url": self.url, "kind": "directory"}}}

    def make(self, who, name, **labels):
        return self.ok(who, "POST", "/v1/executors", self.executor(name, **labels))

    def names(self, who, path):
        """Of all pages: a short page need not be the last one."""
        found, cursor = [], ""
        while cursor is not None:
            page = self.ok(who, "GET", f"{path}?limit=2&cursor={cursor}" if cursor else f"{path}?limit=2")
            found += [item.get("taskAction") or item["metadata"]["name"] for item in page["items"]]
            cursor = page.get("nextCursor")
        return sorted(found)

    def run(self, who, executor, action="dry-run", phase="Succeeded"):
        name = self.ok(who, "POST", f"/v1/executors/{executor}/runs", {"action": action})["metadata"]["name"]
        wait_for(f"{name} to be {phase}", lambda: self.ok("root", "GET", f"/v1/runs/{name}")["status"].get("phase") == phase)
        return name


@pytest.fixture
def world(home, provider):
    with Server(home, config=configuration(provider)) as server:
        yield World(home, provider, server)


def test_a_team_reaches_what_is_theirs_and_nothing_else(world):
    for name, team in ("net", "net"), ("lan", "net"), ("db", "db"):
        world.make("root", name, team=team)
    world.make("root", "bare")
    mine, foreign = world.run("bob", "net"), world.run("root", "db")
    assert world.names("bob", "/v1/executors") == ["lan", "net"]
    assert world.names("bob", "/v1/runs") == [mine] and world.names("bob", "/v1/executors/net/runs") == [mine]
    assert world.names("bob", "/v1/taskactions") == world.names("bob", "/v1/states") == [f"{mine}-plan"]
    assert world.names("root", "/v1/states") == sorted([f"{mine}-plan", f"{foreign}-plan"])
    assert world.names("dan", "/v1/executors") == ["db"] and world.names("dan", "/v1/runs") == [foreign]
    assert world.names("eve", "/v1/executors") == ["bare", "db", "lan", "net"]
    assert "Succeeded" in json.dumps(world.ok("bob", "GET", f"/v1/runs/{mine}")) and world.ask("bob", "GET", f"/v1/runs/{mine}/log")[0] == 200
    assert [action["items"] for action in [world.ok("bob", "GET", "/v1/executors/net/actions")]] == [["dryrun"]]
    for method, path, body in (("POST", "/v1/executors/net/runs", {"action": "provision"}), ("POST", "/v1/executors/net/recreate", None),
                               ("POST", "/v1/executors/net/runs", {"action": "destroy"}), ("PATCH", "/v1/executors/net", {}),
                               ("DELETE", "/v1/executors/net", None), ("GET", "/v1/executors/net/state", None), ("POST", f"/v1/runs/{mine}/approve", {}),
                               ("POST", f"/v1/runs/{mine}/cancel", {}), ("GET", "/v1/executors/net/outputs?showSensitive", None)):
        assert "you may not" in world.refused(403, "bob", method, path, body)
    detail = world.refused(403, "bob", "POST", "/v1/executors/net/runs", {"action": "provision"})
    assert detail == "provision needs the role write; yours is view, plan: on executor net you may not apply"


def test_what_one_may_not_view_answers_as_what_does_not_exist(world):
    world.make("root", "db", team="db")
    run = world.run("root", "db")
    reached = 0
    for kind, name in ("executors", "db"), ("runs", run), ("taskactions", f"{run}-plan"), ("states", f"{run}-plan"):
        for rest in {"executors": ["", "/access", "/access?of=bob", "/actions", "/runs", "/runs?label=team&creator=x", "/outputs", "/state", "/state/versions", "/state/lock", "/state/errored"],
                     "runs": ["", "/log", "/events", "/watch", "/outputs"], "taskactions": ["", "/log"], "states": [""]}[kind]:
            path = f"/v1/{kind}/{name}{rest}"
            hidden, absent = world.ask("bob", "GET", path), world.ask("bob", "GET", path.replace(name, "nobody"))
            assert hidden[0] == absent[0] == 404 and json.dumps(hidden[1]).replace(name, "nobody") == json.dumps(absent[1]), path
            reached += 1
    for method, path in (("PUT", "/v1/executors/db"), ("PATCH", "/v1/executors/db"), ("DELETE", "/v1/executors/db"), ("POST", "/v1/executors/db/runs"),
                         ("POST", "/v1/executors/db/recreate"), ("POST", f"/v1/runs/{run}/approve"), ("POST", f"/v1/runs/{run}/cancel"),
                         ("DELETE", "/v1/executors/db/state/lock"), ("POST", "/v1/executors/db/state/push")):
        assert world.refused(404, "bob", method, path, {"action": "dry-run"}).endswith("does not exist"), path
        reached += 1
    assert reached == 28


ROUTES = [  # what is asked of the executor net and its run, with bodies that are refused once the caller is not
    ("GET", "/v1/executors/net", None, "view"), ("GET", "/v1/executors/net/actions", None, "view"), ("GET", "/v1/executors/net/runs", None, "view"),
    ("GET", "/v1/executors/net/revisions", None, "view"), ("GET", "/v1/executors/net/access", None, "view grant"),
    ("GET", "/v1/executors/net/access?of=bob", None, "view grant"),
    ("GET", "/v1/executors/net/outputs", None, "view"), ("GET", "/v1/executors/net/outputs?showSensitive", None, "view secrets"),
    ("GET", "/v1/executors/net/state/versions", None, "view"), ("GET", "/v1/executors/net/state/lock", None, "view"),
    ("GET", "/v1/executors/net/state/errored", None, "view"), ("GET", "/v1/runs/net-1", None, "view"), ("GET", "/v1/runs/net-1/log", None, "view"),
    ("GET", "/v1/runs/net-1/outputs?showSensitive", None, "view secrets"), ("GET", "/v1/taskactions/net-1-plan", None, "view"),
    ("POST", "/v1/executors/net/runs", {"action": "dry-run", "class": "none"}, "view plan"),
    ("POST", "/v1/executors/net/runs", {"action": "dry-run", "source": {"branch": "x"}, "class": "none"}, "view plan apply"),
    ("POST", "/v1/executors/net/runs", {"action": "dry-run", "runtime": {"version": "1"}, "class": "none"}, "view plan apply"),
    ("POST", "/v1/executors/net/runs", {"action": "provision", "class": "none"}, "view apply"),
    ("POST", "/v1/executors/net/runs", {"action": "destroy"}, "view destroy"),
    ("POST", "/v1/executors/net/runs", {"action": "state", "command": ["rm", "a.b"], "class": "none"}, "view state-write"),
    ("POST", "/v1/executors/net/recreate", {"class": "none"}, "view apply"),
    ("PATCH", "/v1/executors/net", {"spec": {"never": 1}}, "view edit"), ("PUT", "/v1/executors/net", {}, "view edit"),
    ("DELETE", "/v1/executors/net?stateVersion=x", None, PRESETS["write"]), ("POST", "/v1/runs/net-1/approve", {}, "view approve"),
    ("POST", "/v1/runs/net-1/discard", {}, "view approve"), ("POST", "/v1/runs/net-1/cancel", {}, "view cancel"),
    ("GET", "/v1/executors/net/state", None, "view state"), ("GET", "/v1/executors/net/state/versions/9", None, "view state"),
    ("GET", "/v1/executors/net/state/errored/x", None, "view state"), ("POST", "/v1/executors/net/state?ID=x", "{}", "view apply state"),
    ("LOCK", "/v1/executors/net/state", "{}", "view apply state"), ("UNLOCK", "/v1/executors/net/state", '{"ID": 1}', "view apply state"),
    ("POST", "/v1/executors/net/state/push", "{}", "view apply state"), ("POST", "/v1/executors/net/state/push?replace", "{}", "view apply state state-write"),
    ("DELETE", "/v1/executors/net/state?ID=x", None, "view state-write"), ("POST", "/v1/executors/net/state/rollback", {}, "view state-write"),
    ("DELETE", "/v1/executors/net/state/lock", None, "view state-write"), ("DELETE", "/v1/executors/net/state/former", None, "view state-write"),
    ("DELETE", "/v1/executors/net/state/errored/x", None, "view state-write"),
    ("POST", "/v1/executors/net/state/errored/x/push", None, "view state-write"),
]


def test_each_verb_is_enforced_by_itself_on_each_route(world):
    world.make("root", "net", team="net")
    assert world.run("root", "net") == "net-1"
    sets = {f"only-{verb}": {"view", verb} for verb in VERBS} | {f"has-{preset}": set(verbs.split()) for preset, verbs in PRESETS.items()}
    for method, path, body, needed in ROUTES:
        for who, verbs in sets.items():
            status, answer = world.ask(who, method, path, body)
            lacking = set(needed.split()) - verbs
            assert (status == 403) == bool(lacking), (who, method, path, body, status, answer)
            named = set(answer["detail"].rpartition("you may not ")[2].split(", ")) if lacking else set()
            assert named <= lacking and bool(named) == bool(lacking), (who, method, path, answer)


def test_every_route_of_the_api_about_executors_is_in_the_table_above(world):
    openapi = world.server.request("GET", "/openapi.yaml", None, {})[2]
    openapi = openapi.decode() if isinstance(openapi, bytes) else openapi
    paths = [line.strip().rstrip(":") for line in openapi.splitlines() if line.startswith("  /v1/executors/{") or line.startswith("  /v1/runs/{")]
    asked = {path.partition("?")[0].replace("/net-1", "/{name}").replace("/net", "/{name}").replace("versions/9", "versions/{version}")
             .replace("errored/x", "errored/{step}") for _, path, _, _ in ROUTES}
    assert set(paths) - asked == {"/v1/runs/{name}/events", "/v1/runs/{name}/watch"}


def test_what_belongs_to_no_executor_needs_a_grant_on_all(world):
    world.make("root", "net", team="net")
    routes = [("GET", path) for path in ("/v1/access?of=net-team", "/v1/integrations", "/v1/secrets", "/v1/audit", "/v1/backup", "/v1/storage", "/v1/engines")] + [
        ("POST", path) for path in ("/v1/taskactions", "/v1/integrations", "/v1/gc")] + [("PUT", "/v1/secrets/a/b"), ("DELETE", "/v1/secrets/a")]
    for method, path in routes:
        for who in "cyd", "dan", "has-admin":
            assert "for no grant of theirs is on all executors" in world.refused(403, who, method, path, {})
    assert world.ok("eve", "GET", "/v1/secrets") == {"items": []} and world.refused(403, "eve", "POST", "/v1/taskactions", {}).startswith("http")


def test_an_executor_is_made_by_who_may_have_it_then(world):
    world.make("cyd", "lan", team="net")
    detail = world.refused(403, "cyd", "POST", "/v1/executors", world.executor("web", team="db"))
    assert detail == "creating an executor needs the role write; yours is none: on executor web you may not view, plan, apply, approve, cancel, state"
    for who in "bob", "joe", "eve", "dan":
        world.refused(403, who, "POST", "/v1/executors", world.executor("web", team="net"))
    assert world.names("root", "/v1/executors") == ["lan"]
    assert world.ask("cyd", "DELETE", "/v1/executors/lan")[0] == 204


def test_labels_that_grant_are_changed_only_by_who_may_grant(world):
    world.make("root", "net", team="net", note="a")
    patch = {"metadata": {"labels": {"team": "db"}}}
    detail = world.refused(403, "joe", "PATCH", "/v1/executors/net", patch)
    assert "metadata.labels" in detail and detail.endswith("on executor net you may not grant")
    world.refused(403, "joe", "PATCH", "/v1/executors/net", {"metadata": {"labels": None}})
    version = world.ok("joe", "GET", "/v1/executors/net")["metadata"]["resourceVersion"]
    whole = world.executor("net", note="a")
    world.refused(403, "joe", "PUT", "/v1/executors/net", {**whole, "metadata": {**whole["metadata"], "resourceVersion": version}})
    assert world.ok("joe", "PATCH", "/v1/executors/net", {"metadata": {"labels": {"note": "b"}}})["metadata"]["labels"] == {"team": "net", "note": "b"}
    assert "metadata.labels.team:" in detail and "note" not in detail and "net-editor" not in detail
    moved = world.ok("root", "PATCH", "/v1/executors/net", patch)
    lost = [f"metadata.labels: the grant {grant} applies to net no more and takes {verbs} from group {group}"
            for grant, verbs, group in (("team", "view, plan", "net-team"), ("lead", "write", "net-lead"), ("editor", "view, edit", "net-editor"))]
    assert moved["warnings"] == [*lost, "metadata.labels: the grant secret applies to net now and gives admin to group net-editor"]
    entry = world.ok("root", "GET", "/v1/audit?action=update&name=net&outcome=done")["items"][0]
    assert entry["detail"] == "; ".join(moved["warnings"]) and "warnings" not in world.ok("root", "GET", "/v1/executors/net")
    world.refused(404, "bob", "GET", "/v1/executors/net")
    world.ok("joe", "PATCH", "/v1/executors/net", {"metadata": {"labels": {"team": "net"}}})  # an admin of the team db
    world.ok("bob", "GET", "/v1/executors/net")


def test_what_keeps_a_run_from_being_applied_is_loosened_only_by_who_may_grant(home, provider):
    policies = {"strict": {"level": "hard", "program": ["/bin/true"], "appliesTo": {"matchLabels": {"zone": "a"}}}}
    with Server(home, config=configuration(provider, f"policies: {json.dumps(policies)}\n")) as server:
        world = World(home, provider, server)
        net = world.executor("net", team="net", zone="a")
        world.ok("root", "POST", "/v1/executors", {**net, "spec": {**net["spec"], "separateApprover": True, "requiredApprovals": 2,
                                                           "destroyApprovals": 3, "applyWindow": {"from": "10:00", "to": "11:00"},
                                                           "approvers": {"users": ["ann"], "groups": ["net-lead"]}}})
        looser = [{"spec": spec} for spec in ({"approval": "automatic"}, {"automaticFor": {"changes": ["create"]}}, {"separateApprover": False}, {"separateApprover": None},
                                              {"requiredApprovals": 1}, {"requiredApprovals": None},
                                              {"destroyApprovals": None}, {"applyWindow": {"to": "12:00"}}, {"applyWindow": None},
                                              {"approvers": {"users": ["ann", "joe"]}}, {"approvers": {"groups": None}}, {"approvers": None})] + [{"metadata": {"labels": {"zone": None}}}]
        for patch in looser:
            assert world.refused(403, "joe", "PATCH", "/v1/executors/net", patch).endswith("on executor net you may not grant"), patch
        world.ok("joe", "PATCH", "/v1/executors/net", {"spec": {"requiredApprovals": 3, "approval": "required", "description": "stricter"}})
        for patch in looser:
            world.ok("root", "PATCH", "/v1/executors/net", patch)
        world.ok("joe", "PATCH", "/v1/executors/net", {"spec": {"approval": "required", "separateApprover": True, "approvers": {"users": ["ann"]}}})


def test_rights_are_asked_for_again_when_the_body_has_arrived(world):
    world.make("root", "net", team="net")
    body = json.dumps({"version": 4, "serial": 1, "lineage": "of-cyd", "outputs": {}, "resources": []}).encode()
    where = urllib.parse.urlsplit(world.server.url)
    with socket.create_connection((where.hostname, where.port), timeout=30) as upload:
        head = {**world.header("cyd"), "Host": where.netloc, "Content-Type": "application/json", "Content-Length": len(body), "Expect": "100-continue"}
        upload.sendall("\r\n".join(["POST /v1/executors/net/state/push HTTP/1.1", *(f"{k}: {v}" for k, v in head.items()), "", ""]).encode())
        assert upload.recv(4096).startswith(b"HTTP/1.1 100 ")
        assert world.ask("root", "DELETE", "/v1/executors/net")[0] == 204
        world.make("root", "net", team="db")  # another one, of another team
        upload.sendall(body)
        assert upload.recv(4096).startswith(b"HTTP/1.1 404 ")
    assert world.ok("root", "GET", "/v1/executors/net/state/versions")["items"] == []


def test_a_repeated_request_shows_its_executor_only_to_who_may_view_it(world):
    mine = world.executor("lan", team="net")
    key = {"Idempotency-Key": "k"}
    assert world.ok("cyd", "POST", "/v1/executors", mine, **key) == world.ok("cyd", "POST", "/v1/executors", mine, **key)
    world.ok("root", "PATCH", "/v1/executors/lan", {"metadata": {"labels": {"team": "db"}}})
    taken = world.ask("cyd", "POST", "/v1/executors", mine)
    assert taken[0] == 409 and taken[1]["type"].endswith("AlreadyExists") and world.ask("cyd", "POST", "/v1/executors", mine, **key) == taken


def test_a_refusal_names_no_executors_and_owners_that_one_may_not_view(world):
    storage = {"type": "local", "path": "/srv/one.tfstate"}
    secret = {"secrets": [{"name": "pw"}]}

    def wanting(name, **spec):
        executor = world.executor(name, team="net")
        return {**executor, "spec": {**executor["spec"], **spec}}

    world.ok("root", "POST", "/v1/executors", wanting("hidden", storage=storage))
    world.ok("root", "PATCH", "/v1/executors/hidden", {"metadata": {"labels": {"team": "db"}}})
    assert world.ask("root", "PUT", "/v1/secrets/pw/K?executors=hidden,lan", "x", **{"Content-Type": "text/plain"})[0] < 300
    world.make("root", "net", team="net")
    asked = [(409, "hidden", "POST", "/v1/executors", wanting("web", storage=storage)), (403, "hidden", "POST", "/v1/executors", wanting("web", **secret)),
             (403, world.provider.issuer, "POST", "/v1/executors", wanting("lan"))]
    for status, name, *request in asked:
        assert name not in world.refused(status, "cyd", *request)
    assert "hidden" not in world.refused(403, "joe", "PATCH", "/v1/executors/net", {"spec": secret})
    for status, name, *request in asked[:2]:
        assert name in world.refused(status, "root", *request)


def test_transitions_are_those_of_executors_that_one_may_view(world):
    world.make("root", "net", team="net")
    world.make("root", "db", team="db")
    events = Events(world.server, headers=world.header("bob"))
    events.until("sentinel")
    hidden, seen = world.run("root", "db"), world.run("bob", "net")
    found = {step for step, _, _ in events.phases_until_end_of(f"{seen}-plan")}
    assert found == {f"{seen}-plan"} and hidden
    again = Events(world.server, last="1", headers=world.header("bob"))  # who comes back is sent all that was written since
    assert {state["taskAction"] for state in again.until("sentinel")} == {f"{seen}-plan"}


def test_an_approver_decides_and_a_plan_that_destroys_everything_is_not_theirs(home, provider):
    with Server(home, config=configuration(provider)) as server:
        world = World(home, provider, server)
        world.make("root", "db", team="db")
        run = world.run("root", "db", "provision", "WaitingApproval")
        world.refused(404, "bob", "POST", f"/v1/runs/{run}/approve", {})
        world.ok("dan", "POST", f"/v1/runs/{run}/approve", {})
        wait_for("the apply", lambda: world.ok("dan", "GET", f"/v1/runs/{run}")["status"]["phase"] == "Succeeded")
        destroy = world.run("root", "db", "destroy", "WaitingApproval")
        assert world.refused(403, "dan", "POST", f"/v1/runs/{destroy}/approve", {}).endswith("on executor db you may not destroy")
        world.ok("dan", "POST", f"/v1/runs/{destroy}/discard", {})


def test_who_made_an_executor_has_the_creators_preset_on_it(home, provider):
    with Server(home, config=configuration(provider, creator="admin")) as server:
        world = World(home, provider, server)
        world.make("cyd", "mine", team="net")
        world.make("root", "net", team="net")
        assert world.ok("cyd", "GET", "/v1/executors/mine/actions")["items"] == ["execute", "dryrun", "edit", "delete"]
        world.ok("cyd", "PATCH", "/v1/executors/mine", {"spec": {"description": "mine"}})
        world.refused(403, "cyd", "PATCH", "/v1/executors/net", {"spec": {"description": "mine"}})
        world.refused(403, "cyd", "GET", "/v1/secrets")
        world.ok("root", "PATCH", "/v1/executors/mine", {"metadata": {"labels": {"team": "db"}}})  # an admin takes it away
        world.refused(404, "cyd", "GET", "/v1/executors/mine")


ASKED = {"view": ("GET", "", None), "plan": ("POST", "/runs", {"action": "dry-run", "class": "none"}),
         "apply": ("POST", "/runs", {"action": "provision", "class": "none"}), "destroy": ("POST", "/runs", {"action": "destroy"}),
         "edit": ("PATCH", "", {"spec": {"never": 1}}), "state": ("GET", "/state", None), "grant": ("GET", "/access", None),
         "state-write": ("POST", "/state/rollback", {}), "secrets": ("GET", "/outputs?showSensitive", None)}


def allowed(world, who, name):
    """The verbs of a person on an executor, found out by asking: what is allowed is done, or refused for another reason."""
    def may(method, rest, body):
        status, answer = world.ask(who, method, f"/v1/executors/{name}{rest}", body)
        return status != 403 and not (status == 404 and answer["detail"].endswith("does not exist"))
    return {verb for verb, asked in ASKED.items() if may(*asked)}


def test_access_says_what_everybody_is_allowed_indeed(world):
    world.make("root", "net", team="net")
    world.make("root", "db", team="db")
    for name in "net", "db":
        rows = world.ok("root", "GET", f"/v1/executors/{name}/access")["items"]
        for who in PEOPLE:
            groups = {*PEOPLE[who]["groups"]}
            said = {verb for row in rows for verb in row["verbs"]
                    if f"{world.provider.issuer}#{who}" in row["to"].get("users", []) or groups & {*row["to"].get("groups", [])}}
            assert allowed(world, who, name) == said & {*ASKED}, (name, who, said)


def test_access_of_somebody_is_what_names_them(world):
    world.make("root", "db", team="db")
    joe = f"{world.provider.issuer}#only-grant"
    answer = world.ok("root", "GET", f"/v1/access?of={urllib.parse.quote(joe)}")
    assert answer["items"] == [
        {"by": "auth.grants", "grant": "only-grant", "to": {"users": [joe]}, "on": {"names": ["net"]}, "verbs": ["view", "grant"]},
        {"by": "auth.creator", "to": {"creator": joe}, "on": {"creator": joe}, "verbs": PRESETS["write"].split()}]
    assert [row["grant"] for row in world.ok("root", "GET", "/v1/access?of=net-editor")["items"]] == ["editor", "secret"]
    assert world.ok("root", "GET", "/v1/access?of=nobody")["items"] == [] and "?of=NAME" in world.refused(400, "root", "GET", "/v1/access?of=")
    call = world.ok("joe", "GET", "/v1/executors/db/access?of=on-call")["items"]  # not that it is on others, too
    assert call == [{"by": "auth.grants", "grant": "call", "to": {"groups": ["on-call"]}, "on": {"names": ["db"]}, "verbs": ["view", "approve"]}]
    world.refused(403, "dan", "GET", "/v1/executors/db/access")
    assert not any("spec.approvers" in note for note in world.ok("joe", "GET", "/v1/executors/db/access")["notes"])
    world.ok("root", "PATCH", "/v1/executors/db", {"spec": {"approvers": {"groups": ["on-call"]}}})
    assert any("spec.approvers" in note for note in world.ok("joe", "GET", "/v1/executors/db/access")["notes"])
    assert world.ok("root", "GET", "/v1/audit?outcome=refused&actor=" + urllib.parse.quote(f"{world.provider.issuer}#dan"))["items"][0]["action"] == "read"


def test_the_command_shows_who_may_what_and_warns_of_who_gains_and_loses(home, provider):
    tokens = home.directory / "tokens"
    boss, clerk = (home.dayfly("token-file", "create", "--name", name, "--role", role, "--token-file", tokens).stdout.strip()
                   for name, role in (("boss", "admin"), ("clerk", "read")))
    with Server(home, config=configuration(provider).replace("auth:\n", f"auth:\n  tokenFile: {tokens}\n")) as server:
        world, env = World(home, provider, server), {"DAYFLY_TOKEN": boss}
        world.make("cyd", "net", team="net")
        shown = home.dayfly("access", "net", env=env).stdout
        lines = {" ".join(line.split()) for line in shown.splitlines()}
        assert lines > {"BY VERBS ON TO", "grant platform admin all group platform", "grant team view, plan team=net group net-team",
                        "auth.tokenFile admin all token boss", "auth.tokenFile read all token clerk", f"auth.creator write net {provider.issuer}#cyd"}
        assert "grant secret" not in shown and boss not in shown
        rows = home.json("access", "net", "--of", "clerk", env=env)["items"]
        assert rows == [{"by": "auth.tokenFile", "role": "read", "to": {"tokens": ["clerk"]}, "on": {"all": True}, "verbs": ["view"]}]
        assert "grant secret admin team=db group net-editor" in " ".join(home.dayfly("access", "--of", "net-editor", env=env).stdout.split())
        assert "Known by:" in home.dayfly("access", env={"DAYFLY_TOKEN": clerk}).stdout
        assert "you may not" in home.dayfly("access", "net", env={"DAYFLY_TOKEN": clerk}, code=1).stderr
        assert "admin is needed" in home.dayfly("access", "--of", "ops", env={"DAYFLY_TOKEN": clerk}, code=1).stderr
        document = home.json("get", "executor", "net", env=env)
        document["metadata"]["labels"]["team"] = "db"
        applied = home.dayfly("apply", "-f", "-", input=json.dumps(document), env=env)
        assert "dayfly: warning: metadata.labels: the grant team applies to net no more and takes view, plan from group net-team" in applied.stderr
        assert "dayfly: warning: metadata.labels: the grant secret applies to net now and gives admin to group net-editor" in applied.stderr


def test_lists_are_filtered_by_the_service_for_who_may_view_some(world):
    for name, team in ("net", "net"), ("lan", "net"), ("db", "db"):
        world.make("cyd" if name == "lan" else "root", name, team=team)
    mine, foreign = world.run("bob", "net"), world.run("root", "db")
    cyd, bob = (urllib.parse.quote(f"{world.provider.issuer}#{name}") for name in ("cyd", "bob"))

    def found(who, path):
        return sorted(item["metadata"]["name"] for item in world.ok(who, "GET", path)["items"])

    for who, all_of_them in ("bob", {"lan", "net"}), ("eve", {"lan", "net", "db"}), ("dan", {"db"}), ("joe", {"lan", "net", "db"}):
        assert found(who, f"/v1/executors?creator={cyd}") == sorted({"lan"} & all_of_them)
        assert found(who, "/v1/executors?label=team=db&state=provision&status=ready,done") == sorted({"db"} & all_of_them)
        assert found(who, "/v1/executors?label=team") == sorted(all_of_them)
        assert found(who, f"/v1/runs?creator={bob}") == ([mine] if "net" in all_of_them else [])
        assert found(who, "/v1/runs?phase=Succeeded") == sorted([mine] * ("net" in all_of_them) + [foreign] * ("db" in all_of_them))
        assert found(who, f"/v1/runs?phase=Succeeded&creator={bob}&label=dayfly.dev/executor=db") == []
    assert found("bob", f"/v1/executors/net/runs?creator={bob}&phase=Succeeded") == [mine]
    assert found("bob", f"/v1/executors/net/runs?creator={cyd}") == [] and found("bob", "/v1/executors/net/runs?label=nothing") == []


@pytest.mark.parametrize("grant, said", [
    ({"to": {"users": ["x"]}, "on": {"all": True}, "preset": "write"}, "auth.grants: nobody is admin: no grant of auth.grants has the preset admin on"),
    ({"to": {"users": ["x"]}, "on": {"names": ["net"]}, "preset": "admin"}, "`NAME: {to: {groups: [GROUP]}, on: {all: true}, preset: admin}`"),
    ({"to": {"users": ["x"]}, "on": {"all": True}, "verbs": ["view", "delete"]}, 'a.verbs[1]: "delete" is not one of view, plan, apply'),
    ({"to": {"users": ["x"]}, "on": {"names": []}, "verbs": ["view"]}, "a.on: must say which executors"),
    ({"to": {"users": ["x"]}, "on": {"all": True}, "verbs": ["view"], "preset": "read"}, "a: must have either verbs or preset"),
    ({"to": {"users": ["x"]}, "on": {"all": True}, "preset": "read", "deny": True}, "a.deny"),
    ({"to": {"users": []}, "on": {"all": True}, "preset": "read"}, "a.to: must name somebody"),
    (None, 'auth.creator: "owner" is not a preset'),
])
def test_a_grant_that_says_nothing_or_too_much_is_refused(home, grant, said):
    config = home.directory / "dayfly.yaml"
    auth = {"grants": {"a": grant}} if grant else {"creator": "owner"}
    config.write_text(json.dumps({"auth": {"oidc": {"issuer": "https://id.example.com", "audience": "a"}, "grants": {}, **auth}}))
    answer = home.dayfly("serve", "--config", config, "--data-directory", home.directory / "data", code=3)
    assert said in answer.stderr, answer.stderr


def test_nobody_locks_the_last_admin_out_by_grants_and_tokens_alone_are_a_warning(home, provider):
    tokens, data = home.directory / "tokens", home.directory / "data"
    grants = {"look": {"to": {"groups": ["lookers"]}, "on": {"all": True}, "preset": "read"}}
    auth = {"oidc": {"issuer": provider.issuer, "audience": "dayfly"}, "grants": grants, "tokenFile": str(tokens)}
    config = home.directory / "dayfly.yaml"
    home.dayfly("token-file", "create", "--name", "ci", "--role", "write", "--token-file", tokens)
    for more, admin in ({"grants": grants}, False), ({"serviceAccounts": {"a/b": "write"}}, False), ({"serviceAccounts": {"a/b": "admin"}}, True):
        config.write_text(json.dumps({"auth": {**auth, **more}}))
        checked = home.dayfly("doctor", "--config", config, "--data-directory", data, "--only", "tokens", code=0 if admin else 1)
        assert ("nobody is admin" in checked.stdout) != admin, checked.stdout
        if not admin:
            answer = home.dayfly("serve", "--config", config, "--data-directory", data, "--listen", "127.0.0.1:0", code=3)
            assert "auth.grants: nobody is admin" in answer.stderr and "`dayfly token-file create --name NAME --role admin" in answer.stderr
    config.write_text(json.dumps({"auth": {"tokenFile": str(tokens)}}))
    assert "0 FAIL, 1 warn" in home.dayfly("doctor", "--config", config, "--data-directory", data, "--only", "tokens").stdout
    with Server(home, config=config.read_text()) as server:
        assert "nobody is admin" in server.log.read_text()
    home.dayfly("token-file", "create", "--name", "boss", "--role", "admin", "--token-file", tokens)
    server.log.unlink()
    with Server(home, config=json.dumps({"auth": auth})) as server:
        assert "nobody is admin" not in server.log.read_text()
