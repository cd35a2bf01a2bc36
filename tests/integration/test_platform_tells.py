"""What an action tells while it runs and at its end: log, metrics, spans, a notice; and what it keeps to itself."""

import base64
import json
import os
import re
import subprocess
import threading
import urllib.request

import pytest
import yaml

from lib import web
from lib.argo import NAMESPACE, Ground
from lib.dayfly import ROOT, free_port, tool, wait_for
from lib.platform import PROGRAM, Platform, component, config_map, deployment, text_of

NEVER = {"never/d.yaml": text_of(deployment("never", **{"dayfly.dev__pod": "never"}))}


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with Ground(tmp_path_factory.mktemp("ground")) as running:
        yield running


@pytest.fixture
def platform(ground, tmp_path, request):
    made = Platform(ground, tmp_path / "platform", name=f"t{abs(hash(request.node.name)) % 10**8}")
    ground.site.commit({"a/x.yaml": text_of(config_map("x")), **NEVER})
    made.dag(component("a"))
    yield made
    ground.remove_applications()


class Listener(web.Handler):
    def do_POST(self):
        self.server.owner.posts.append((self.path, self.body()))
        self.answer(200)

    do_PUT = do_POST


@pytest.fixture
def listener():
    server = web.Server(Listener)
    server.posts = []
    yield server
    server.stop()


def spans_of(listener):
    return [span for body in posted(listener, "/v1/traces") for r in body["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"]]


def below(spans, parent):
    """The names of the spans below this one, in the order of their begin."""
    found = [span for span in spans if span.get("parentSpanId") == parent["spanId"]]
    return [span["name"] for span in sorted(found, key=lambda span: int(span["startTimeUnixNano"]))]


def posted(listener, path):
    return [json.loads(body) for where, body in listener.posts if where.startswith(path)]


def typed(*words, **env):
    return subprocess.run([PROGRAM, *words], env={"PATH": os.environ["PATH"], **env}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("line", ["--help", "-h", "help", "help deploy", "deploy --help", "deploy help", "validate -h", "teardown --config x --help"])
def test_help_is_given_wherever_it_is_asked_for(line):
    ended = typed(*line.split())
    assert (ended.returncode, ended.stderr) == (0, "") and ended.stdout.startswith("dayfly-platform deploys, validates or removes")


def test_the_help_names_each_variable_of_the_page():
    table = (ROOT / "docs/platform.md").read_text().split("### Variables")[1].split("\n\n")[1]
    named = set(re.findall(r"`([A-Z_]+)`", "".join(row.split("|")[1] for row in table.splitlines())))
    assert len(named) > 15 and named <= set(re.findall(r"[A-Z_]+", typed("--help").stdout))


@pytest.mark.parametrize("line, told", [
    ("deploy --dry-run", "unknown option --dry-run; did you mean the variable DRY_RUN, written before the command?"),
    ("deploy --target-scop=app:a", "unknown option --target-scop; did you mean the variable TARGET_SCOPE, written before the command?"),
    ("deploy --kubeconfig x", "unknown option --kubeconfig; did you mean the variable KUBECONFIG_PATH, written before the command?"),
    ("deploy DRY_RUN=true", "an action takes no argument DRY_RUN; did you mean the variable DRY_RUN, written before the command?"),
    ("deploy --confg x", "unknown option --confg; did you mean --config?"),
    ("deploy -config x", "unknown option -config; did you mean --config?"),
    ("validate --version", "unknown option --version; did you mean version?"),
    ("deploy --zzzzzz", "unknown option --zzzzzz"),
    ("deploy -z", "unknown option -z"),
    ("deploy --argocd-token=hush", "unknown option --argocd-token"),
    ("deploy --config", "no folder is named behind --config"),
    ("deploy --secrets=", "no folder is named behind --secrets"),
    ("deploy staging", "an action takes no argument staging"),
    ("deply", "unknown action deply; did you mean deploy?"),
    ("--config x deploy", "the action comes first, not --config"),
    ("--dry-run deploy", "the action comes first, not --dry-run; did you mean the variable DRY_RUN, written before the command?"),
    ("", "which action: deploy, validate or teardown?"),
])
def test_a_wrong_command_line_is_one_line_with_what_may_have_been_meant(line, told):
    ended = typed(*line.split())
    assert (ended.returncode, ended.stdout) == (3, "") and ended.stderr == f"dayfly-platform: {told} (see dayfly-platform --help)\n"


def test_each_line_of_the_log_is_an_object_with_the_trace(platform):
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    ended = platform.run("deploy", TRACE_ID=trace, SPAN_ID=parent)
    assert ended.lines()
    for line in ended.lines():
        assert {"ts", "level", "msg", "component", "action", "trace_id", "span_id"} <= line.keys(), line
        assert line["action"] == "deploy" and line["trace_id"] == trace
    assert {line["component"] for line in ended.lines()} == {"platform", "a"}
    app = platform.ground.app("a")
    assert app["metadata"]["annotations"]["dayfly.dev/trace-id"] == trace
    assert {"name": "dayfly.dev/trace-id", "value": trace} in app["status"]["operationState"]["operation"]["info"]


def test_a_malformed_trace_is_warned_of_and_a_new_one_begins(platform):
    ended = platform.run("deploy", TRACE_ID="xyz", SPAN_ID="00f067aa0ba902b7")
    assert any(line["level"] == "warn" and "TRACE_ID" in line["msg"] for line in ended.lines())
    assert len(ended.lines()[-1]["trace_id"]) == 32


def test_a_success_says_nothing_at_the_level_error(platform):
    assert platform.run("deploy", LOG_LEVEL="error").output == ""


def test_other_words_for_level_and_format_are_refused_with_all_other_faults():
    text = typed("deploy", "--config", "/nowhere", LOG_LEVEL="loud", LOG_FORMAT="text", ENVIRONMENT="prod").stdout
    assert all(line.split()[1] == "error" for line in text.splitlines())
    for fault in ('ENVIRONMENT: "prod" is none of', 'LOG_LEVEL: "loud" is none of', "KUBECONFIG_PATH: is required", "environment.yaml: "):
        assert fault in text
    ended = typed("deploy", LOG_FORMAT="xml")
    assert ended.returncode == 3 and 'LOG_FORMAT: "xml" is none of text, json' in [json.loads(line)["msg"] for line in ended.stdout.splitlines()]


def test_the_metrics_of_the_end_are_those_of_the_specification(platform, tmp_path):
    file = tmp_path / "metrics.prom"
    platform.run("deploy", METRICS_TEXTFILE=str(file))
    text = file.read_text()
    checked = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and not checked.stderr.strip(), checked.stdout + checked.stderr
    assert 'executor_action_status 2' in text and 'executor_component_health{component="a"} 1' in text
    assert 'executor_action_duration_seconds_count{action="deploy",result="success"} 1' in text


def test_a_dry_run_speaks_of_what_would_be_and_claims_no_health(platform, tmp_path):
    file = tmp_path / "metrics.prom"
    platform.ground.site.commit({"a/x.yaml": text_of(config_map("x")), "base/base.yaml": text_of(config_map("base"))})
    platform.dag(component("base", bootstrap=True), component("a"))
    ended = platform.run("deploy", DRY_RUN="true", METRICS_TEXTFILE=str(file))
    assert "healthy" not in ended.output and "2 of 2 components would be created or changed, 0 would stay as they are" in ended.output
    assert "executor_component_health{" not in file.read_text() and "executor_action_status 2" in file.read_text()
    assert "would create ConfigMap base" in ended.report["bootstrap"] and "created ConfigMap" not in ended.output
    platform.run("deploy")
    confirmation = f"destroy {platform.name}/staging"
    ended = platform.run("teardown", DRY_RUN="true", TEARDOWN_CONFIRMATION=confirmation, METRICS_TEXTFILE=str(file))
    assert "gone" not in ended.output and "2 of 2 components would be removed, 0 are not there" in ended.output
    assert "executor_component_health{" not in file.read_text()
    platform.run("teardown", TEARDOWN_CONFIRMATION=confirmation)


def test_a_scrape_during_the_action_sees_it_run(platform):
    platform.dag(component("never"))
    port = free_port()
    process = platform.start("deploy", METRICS_ADDR=f"127.0.0.1:{port}", ACTION_TIMEOUT="20s")

    def scraped():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        except OSError:
            return None

    text = wait_for("a scrape with the component", lambda: (t := scraped()) and 'component="never"' in t and t)
    assert "executor_action_status 1" in text and 'executor_component_health{component="never"} 0.5' in text
    process.terminate()
    assert platform.end(process, platform.ground.mark()).code in (1, 2)


def test_spans_have_the_callers_span_as_their_parent(platform, listener):
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    platform.run("deploy", TRACE_ID=trace, SPAN_ID=parent, OTEL_EXPORTER_OTLP_ENDPOINT=listener.url)
    spans = spans_of(listener)
    assert {span["traceId"] for span in spans} == {trace}
    root, = [span for span in spans if span.get("parentSpanId") == parent]
    assert {span["name"] for span in spans if span.get("parentSpanId") == root["spanId"]} == {"a"}


def test_waits_and_writes_are_spans_of_their_component(platform, listener):
    platform.ground.site.commit({"a/x.yaml": text_of(config_map("x")), "b/x.yaml": text_of(config_map("x")), **NEVER})
    platform.dag(component("a"), component("never"))
    platform.environment["timeouts"] = {"sync": "60s", "health": "5s"}
    platform.run("deploy", 2, OTEL_EXPORTER_OTLP_ENDPOINT=listener.url)
    spans = {span["name"]: span for span in spans_of(listener)}
    for name in ("a", "never"):
        told = below(spans_of(listener), spans[name])
        assert told[0] == "patch applications" and {"wait compare", "wait sync"} <= set(told), told
    ids = {name: platform.ground.app(name)["metadata"]["annotations"]["dayfly.dev/span-id"] for name in ("a", "never")}
    syncs = [span for span in spans_of(listener) if span["name"] == "wait sync"]
    assert {span["spanId"] for span in syncs} == set(ids.values())
    health, = [span for span in spans_of(listener) if span["name"] == "wait health" and span["parentSpanId"] == spans["never"]["spanId"]]
    assert health["status"] == {"code": 2, "message": "it did not become healthy in time"}
    assert int(health["endTimeUnixNano"]) - int(health["startTimeUnixNano"]) >= 4_000_000_000
    written, = [span for span in spans_of(listener) if span["name"] == "patch applications" and span["parentSpanId"] == spans["a"]["spanId"]][:1]
    assert {a["key"]: a["value"]["stringValue"] for a in written["attributes"]} == {"namespace": NAMESPACE, "name": "a"}


def test_a_component_of_the_bootstrap_has_its_span_and_its_gauge(platform, listener, tmp_path):
    platform.ground.site.commit({"base/all.yaml": text_of(config_map("x"), deployment("base"))})
    platform.dag(component("base", bootstrap=True))
    file = tmp_path / "metrics.prom"
    platform.run("deploy", OTEL_EXPORTER_OTLP_ENDPOINT=listener.url, METRICS_TEXTFILE=str(file))
    spans = {span["name"]: span for span in spans_of(listener)}
    assert spans["base"]["parentSpanId"] == spans["deploy"]["spanId"]
    assert {"patch namespaces", "patch configmaps", "patch deployments", "wait workloads"} <= set(below(spans_of(listener), spans["base"]))
    assert 'executor_component_health{component="base"} 1' in file.read_text()


def test_a_component_of_the_bootstrap_that_fails_is_named_with_its_cause(platform):
    platform.ground.site.commit({"base/a.yaml": text_of(config_map("Not-A-Name"))})
    platform.dag(component("base", bootstrap=True))
    ended = platform.run("deploy", 1)
    assert ended.component("base")["state"] == "Failed"
    failure = next(f for f in ended.report["failures"] if f.get("component") == "base")
    assert failure["cause"] == ended.report["summary"]["cause"] and "Not-A-Name" in failure["message"]


def test_a_deploy_that_changes_nothing_has_no_span_of_a_write(platform, listener):
    platform.run("deploy")
    platform.run("deploy", OTEL_EXPORTER_OTLP_ENDPOINT=listener.url)
    assert sorted(span["name"] for span in spans_of(listener)) == ["a", "deploy"]


def test_a_teardown_tells_what_it_deletes_and_waits_for(platform, listener):
    platform.run("deploy")
    platform.run("teardown", OTEL_EXPORTER_OTLP_ENDPOINT=listener.url, TEARDOWN_CONFIRMATION=f"destroy {platform.name}/staging")
    spans = {span["name"]: span for span in spans_of(listener)}
    told = below(spans_of(listener), spans["a"])
    assert {"delete applications", "wait removal"} <= set(told), told
    assert "delete namespaces" in below(spans_of(listener), spans["teardown"])


def test_a_failure_gives_notice_and_a_success_does_not(platform, listener):
    platform.run("deploy", ALERTMANAGER_URL=listener.url)
    assert not posted(listener, "/api/v2/alerts")
    platform.dag(component("never"))
    platform.run("deploy", 4, ALERTMANAGER_URL=listener.url, ACTION_TIMEOUT="4s")
    (alert,), = posted(listener, "/api/v2/alerts")
    assert alert["labels"]["action"] == "deploy" and alert["labels"]["result"] == "timeout"


def test_a_redirect_is_no_delivery(platform):
    class Redirecting(web.Handler):
        def do_POST(self):
            self.body()
            self.answer(307, Location="http://elsewhere.example/")

    server = web.Server(Redirecting)
    try:
        ended = platform.run("deploy", OTEL_EXPORTER_OTLP_ENDPOINT=server.url)
        assert any(line["level"] == "warn" and "307" in line["msg"] for line in ended.lines()), ended.output
    finally:
        server.stop()


def test_listeners_that_hang_do_not_change_how_an_action_ends(platform):
    class Hanging(web.Handler):
        def do_POST(self):
            threading.Event().wait(60)

        do_PUT = do_POST

    server = web.Server(Hanging)
    try:
        ended = platform.run("deploy", 0, OTEL_EXPORTER_OTLP_ENDPOINT=server.url, PUSHGATEWAY_URL=server.url)
        assert any(line["level"] == "warn" for line in ended.lines())
    finally:
        server.stop()


def test_a_kubeconfig_that_is_data_is_nowhere_on_disk(platform, tmp_path):
    data = (platform.ground.kubeconfig_of("dayfly")).read_bytes()
    token = yaml.safe_load(data)["users"][0]["user"]["token"]
    (tmp_path / "tmp").mkdir()
    platform.dag(component("never"))
    process = platform.start("deploy", KUBECONFIG_PATH=None, KUBECONFIG_DATA=base64.b64encode(data).decode(), TMPDIR=str(tmp_path / "tmp"),
                             ACTION_TIMEOUT="8s")
    wait_for("the Application", lambda: platform.ground.get("application", namespace=NAMESPACE)["items"])
    for path, _, names in os.walk(tmp_path):
        for name in names:
            assert token not in open(os.path.join(path, name), errors="replace").read()
    assert token.encode() not in open(f"/proc/{process.pid}/cmdline", "rb").read()
    ended = platform.end(process, platform.ground.mark(), 4)
    assert token not in ended.output and token not in json.dumps(ended.report)
