"""openapi.yaml against the routes table, and against the live server by schemathesis."""

import pathlib
import re
import subprocess
import sys

import pytest
import yaml

from lib.dayfly import BUILD, ROOT, Server

FILE = ROOT / "spawner/api/openapi.yaml"
METHODS = ("get", "put", "post", "patch", "delete")
SECONDS = 15  # for each run of schemathesis; it goes on trying until then


def documented():
    """(method, path) -> operation."""
    found = {}
    for path, item in yaml.safe_load(FILE.read_text())["paths"].items():
        for method in METHODS:
            if method in item:
                found[(method.upper(), path)] = item[method]
        for method, operation in item.get("x-additional-operations", {}).items():
            found[(method, path)] = operation
    return found


def routed():
    text = (ROOT / "spawner/api/routes.c").read_text()
    return set(re.findall(r'^    ROUTE\("(\w+)", "([^"]+)"', text, re.M))


def test_every_route_is_documented_and_nothing_else_is():
    assert set(documented()) == routed()


def test_query_parameters_of_file_and_table_are_the_same():
    text = (ROOT / "spawner/api/routes.c").read_text()
    shared = dict(re.findall(r'^#define (\w+) "([^"]+)"', text, re.M))
    spec = yaml.safe_load(FILE.read_text())
    for (method, path), operation in documented().items():
        names = set()
        for parameter in operation.get("parameters", []):
            if "$ref" in parameter:
                parameter = spec["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
            if parameter["in"] == "query":
                names.add(parameter["name"])
        entry = re.search(r'^    ROUTE\("%s", "%s",.*?(?=^    ROUTE|^\};)' % (method, re.escape(path)), text,
                          re.M | re.S).group(0)
        query = re.search(r'\.query = (\w*) *(?:"([^"]+)")?', entry)
        words = shared.get(query.group(1), "") + (query.group(2) or "") if query else ""
        assert set(words.split()) == names, (method, path)


def test_the_schemas_of_documents_are_those_of_the_models_tables():
    made = subprocess.run([str(BUILD / "tools/schemas"), "openapi", str(FILE)], check=True, capture_output=True).stdout
    assert made == FILE.read_bytes(), "run `make openapi`"


def test_each_schema_is_there_once_and_is_used():
    text = FILE.read_text()
    names = re.findall(r"^    (\w+):", text.partition("\n  schemas:\n")[2], re.M)
    used = re.findall(r"#/components/schemas/(\w+)", text)
    assert len(names) == len(set(names))
    assert set(names) == set(used)


def test_every_operation_has_its_own_name_and_says_what_may_go_wrong():
    operations = documented()
    names = [operation["operationId"] for operation in operations.values()]
    assert len(names) == len(set(names))
    for key, operation in operations.items():
        assert {"400", "403", "500"} <= set(operation["responses"]), key


def test_the_server_hands_out_the_file_byte_by_byte(server):
    status, headers, body = server.request("GET", "/openapi.yaml")
    assert (status, headers["Content-Type"]) == (200, "application/yaml")
    assert body == FILE.read_bytes()


EXECUTOR = """
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {name: net}
spec: {source: {url: 'file://%s', kind: directory}}
"""


@pytest.fixture
def busy_server(home):
    """A server with something behind most of its paths."""
    with Server(home, config="auth: {loopback: open}\n") as server:
        module = home.module("net", 'resource "terraform_data" "a" {}\noutput "x" {\n  value = 1\n}\n')
        home.dayfly("create", "-f", "-", input=EXECUTOR % module)
        home.dayfly("run", "net", "--auto-approve")
        home.dayfly("secret", "set", "net", "key", input="value")
        yield server


# What a generator cannot know: documents that fit the schema and are refused all the same (a URL that is none, a name
# that is taken), and LOCK and UNLOCK, which OpenAPI 3.1 has no place for.
UNDECIDED = ["positive_data_acceptance", "allow_header_conformance"]

# Names of things that are there, so that the generator comes past "not found". A wrong name is then not wrong any more.
KNOWN = """
[[operations]]
include-path-regex = "^/v1/(executors|secrets)/"
parameters = { "path.name" = "net", "path.key" = "key", "path.version" = 1 }

[[operations]]
include-path-regex = "^/v1/runs/"
parameters = { "path.name" = "net-1" }

[[operations]]
include-path-regex = "^/v1/(taskactions|states)/"
parameters = { "path.name" = "net-1-plan" }
"""


# A stream without end; tests/integration/test_states.py reads it.
ENDLESS = "/v1/transitions"


# An If-Match that matches nothing is a refusal, too, however wrong the body.
REFUSALS = """
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "412", "415", "422", "428", "429", "5xx"]
"""


@pytest.mark.parametrize("known", ["", KNOWN], ids=["anything", "what is there"])
def test_schemathesis_finds_no_undocumented_answer(busy_server, tmp_path, known):
    st = pathlib.Path(sys.executable).with_name("st")
    config = tmp_path / "schemathesis.toml"
    config.write_text(REFUSALS + known)
    undecided = UNDECIDED + (["negative_data_rejection"] if known else [])
    result = subprocess.run(
        [str(st), "--config-file", str(config), "run", busy_server.url + "/openapi.yaml", "--url", busy_server.url,
         "--exclude-path", ENDLESS, "--checks", "all", "--exclude-checks", ",".join(undecided), "--phases", "examples,coverage,fuzzing,stateful",
         "--max-time", str(SECONDS), "--max-examples", "20", "--workers", "1", "--seed", "1", "--request-timeout", "20",
         "--generation-database", "none", "--suppress-health-check", "all", "--continue-on-failure", "--warnings", "off",
         "--no-color"],
        cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS * 6, check=False)
    assert result.returncode == 0, result.stdout[-20000:] + result.stderr[-5000:]
