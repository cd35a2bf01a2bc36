"""What an executor was: its revisions, what differs between them, and the way back."""

import concurrent.futures
import json

import yaml

from lib.commands import EXECUTOR, HELLO
from lib.dayfly import wait_for
from test_custom_resources import World


def document(home, **spec):
    module = home.module("hello", HELLO)
    doc = yaml.safe_load(EXECUTOR.format(name="net", module=module, runtime=home.runtime, guests=1))
    doc["spec"].update(spec)
    return json.dumps(doc)


def apply(home, **spec):
    home.dayfly("apply", "-f", "-", input=document(home, **spec))


def numbers(home):
    return [r["spec"]["number"] for r in home.json("get", "revisions", "net", "-o", "json")["items"]]


def test_an_executor_goes_back_to_what_it_was(home):
    apply(home)
    assert "no earlier revision" in home.dayfly("diff", "net", code=1).stderr
    secret = {"name": "REGION", "value": "hidden-value"}
    apply(home, variables={"guests": 2}, environment=[secret])
    apply(home, variables={"guests": 2}, environment=[secret], secrets=[{"name": "db"}])
    rows = [line.split() for line in home.dayfly("get", "revisions", "net").stdout.splitlines()]
    assert rows[0] == ["NAME", "EXECUTOR", "NUMBER", "AUTHOR", "AT"]
    assert [row[:4] for row in rows[1:]] == [[f"net-r{n}", "net", str(n), "local"] for n in (3, 2, 1)]

    assert home.dayfly("diff", "net").stdout.splitlines()[1:] == ['+ spec.secrets: [{"name":"db"}]']
    since = home.dayfly("diff", "net", "1").stdout
    assert "- spec.variables.guests: 1\n+ spec.variables.guests: 2\n" in since
    assert "hidden-value" not in since
    changes = home.json("diff", "net", "2", "3", "-o", "json")
    assert changes == {"executor": "net", "from": 2, "to": 3, "changes": [{"path": "spec.secrets", "new": [{"name": "db"}]}]}

    back = home.dayfly("edit", "executor", "net", "--revision", "1").stdout
    assert back == "executor/net changed: revision 4 has the spec of revision 1\n"
    assert home.dayfly("edit", "net", "--revision", "4").stdout == "executor/net unchanged\n"
    assert numbers(home) == [4, 3, 2, 1]
    assert "no difference" in home.dayfly("diff", "net", "1", "4").stdout
    home.dayfly("run", "executor/net", "--auto-approve")
    assert home.json("get", "run", "net-1", "-o", "json")["spec"]["executorRevision"] == 4
    assert "Revision" in home.dayfly("describe", "run", "net-1").stdout
    details = home.dayfly("describe", "revision/net-r3").stdout
    assert ["Variables", "guests"] in [line.split() for line in details.splitlines()] and "hidden-value" not in details

    # A secret that is gone is told, as for any edit.
    assert "secret" in home.dayfly("edit", "net", "--revision", "3").stderr
    home.dayfly("edit", "net", "--revision", "1")
    assert "has no revision 77" in home.dayfly("edit", "net", "--revision", "77", code=1).stderr
    assert "revision" in home.dayfly("edit", "net", "--revision", "x", code=3).stderr
    assert "has no revision 77" in home.dayfly("diff", "net", "77", code=1).stderr
    assert home.dayfly("get", "revisions", "nobody", code=1).stderr
    audit = home.json("get", "audit", "-o", "json")["items"]
    assert [e["action"] for e in audit if e["kind"] == "Executor"].count("update") == 5


def test_the_way_back_is_refused_where_it_would_move_a_state_or_a_source_in_use(home):
    apply(home, storage={"type": "local", "path": str(home.directory / "first.tfstate")})
    apply(home, storage={"type": "local", "path": str(home.directory / "second.tfstate")})
    home.dayfly("run", "executor/net", "--auto-approve")
    refused = home.dayfly("edit", "net", "--revision", "1", code=3).stderr
    assert "spec.storage" in refused and "destroy" in refused
    assert numbers(home) == [2, 1]

    other = home.module("other", HELLO)
    apply(home, storage={"type": "local", "path": str(home.directory / "second.tfstate")}, description="of the first source")
    doc = json.loads(document(home, storage={"type": "local", "path": str(home.directory / "second.tfstate")}))
    doc["spec"]["source"]["url"] = f"file://{other}"
    home.dayfly("apply", "-f", "-", "--confirm-source-change", input=json.dumps(doc))
    refused = home.dayfly("edit", "net", "--revision", "3", code=1).stderr
    assert "--confirm-source-change" in refused
    assert numbers(home) == [4, 3, 2, 1]
    home.dayfly("edit", "net", "--revision", "3", "--confirm-source-change")
    assert numbers(home) == [5, 4, 3, 2, 1]


def test_changes_at_once_have_a_number_each_and_none_is_lost(home, server):
    apply(home)

    def change(n):
        return server.request("PATCH", "/v1/executors/net", {"spec": {"description": f"change {n}"}})

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(change, range(50)))
    assert [status for status, _, _ in answers] == [200] * 50
    kept = server.get("/v1/executors/net/revisions?limit=100")["items"]
    assert sorted(r["spec"]["number"] for r in kept) == list(range(1, 52))
    assert sorted(r["spec"]["executor"]["description"] for r in kept if r["spec"]["number"] > 1) == sorted(f"change {n}" for n in range(50))
    own = {json.loads(body)["status"]["revision"]: json.loads(body)["spec"]["description"] for _, _, body in answers}
    assert own == {r["spec"]["number"]: r["spec"]["executor"]["description"] for r in kept if r["spec"]["number"] > 1}


def test_revisions_go_with_their_executor_and_into_a_backup(home):
    apply(home)
    apply(home, description="second")
    home.dayfly("backup", home.directory / "file")
    home.dayfly("delete", "net")
    assert home.dayfly("get", "revisions").stderr.endswith("no revisions\n")
    home.dayfly("restore", home.directory / "file", "--data-directory", home.directory / "restored")
    names = home.dayfly("get", "revisions", "-o", "name", "--data-directory", home.directory / "restored").stdout.split()
    assert names == ["revision/net-r2", "revision/net-r1"]


# ---- with kubectl ----

REQUESTED = "dayfly.dev/requested-by"


def test_an_edit_with_kubectl_is_a_revision_with_its_author(home, namespace):
    with World(home, namespace, webhook="dayfly") as world:  # the test plays the webhook: it writes the stamps
        def edit(who, **spec):
            namespace.kubectl("patch", "executor", "net", "--type=merge", "-p", json.dumps({
                "metadata": {"annotations": {REQUESTED: f"admin {who}"}}, "spec": spec}))

        def revision(n, author):
            found = namespace.wait("revision", f"net-r{n}", lambda r: r.get("status", {}).get("author") == author)
            assert found["spec"]["executorRef"] == {"name": "net", "uid": uid} and found["spec"]["number"] == n
            path = f"/v1/revisions/net-r{n}"  # the service hears of what it has written as everybody does
            wait_for("the revision by REST", lambda: world.server.request("GET", path)[0] == 200)
            return world.server.get(path)["spec"]["executor"]

        executor = world.executor()
        executor["metadata"]["annotations"] = {REQUESTED: "admin ann"}
        namespace.apply(executor)
        uid = namespace.wait("executor", "net", lambda e: e.get("status", {}).get("revision") == 1)["metadata"]["uid"]
        first = revision(1, "ann")
        edit("bob", description="of bob")
        assert revision(2, "bob") == {**first, "description": "of bob"}
        edit("eve", description="a\0b")
        namespace.wait("executor", "net", lambda e: e["status"]["status"] == "refused")
        edit("bob", description="of bob again")
        revision(4, "bob")
        assert home.dayfly("edit", "net", "--revision", "1").stdout == "executor/net changed: revision 5 has the spec of revision 1\n"
        assert revision(5, "local") == first
        assert numbers(home) == [5, 4, 2, 1]
        shown = namespace.kubectl("get", "dfv", "--field-selector", "spec.executorRef.name=net").stdout.splitlines()
        assert shown[0].split() == ["NAME", "EXECUTOR", "NUMBER", "AUTHOR", "AT"] and len(shown) == 5

        # What people write there themselves is no revision; what they delete is gone, but for the present one.
        namespace.apply({"apiVersion": "dayfly.dev/v1alpha1", "kind": "Revision", "metadata": {"name": "net-r9"},
                         "spec": {"executorRef": {"name": "net"}, "number": 9}})
        wait_for("the forged one to go", lambda: "net-r9" not in names(namespace))
        assert "a revision cannot be changed" in namespace.kubectl(
            "patch", "revision", "net-r2", "--type=merge", "-p", '{"spec":{"number":3}}', check=False).stderr
        before = namespace.get("revision", "net-r5")["metadata"]["uid"]
        namespace.kubectl("delete", "revision", "net-r1", "net-r5")
        namespace.wait("revision", "net-r5", lambda r: r["metadata"]["uid"] != before and r.get("status"))
        assert numbers(home) == [5, 4, 2]
        home.dayfly("delete", "net")
        assert not names(namespace)


def names(namespace):
    return [r["metadata"]["name"] for r in namespace.get("revisions")]
