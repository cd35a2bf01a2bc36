"""/metrics as Prometheus reads it, judged by Debian's promtool."""

import subprocess

from lib.dayfly import tool, wait_for


def metrics(server):
    status, headers, body = server.request("GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return body.decode()


def value(text, series):
    lines = [line for line in text.splitlines() if line.startswith(series + " ")]
    return float(lines[0].split()[-1]) if lines else None


def test_promtool_finds_nothing_to_complain_about(home, server):
    module = home.module("net", 'resource "terraform_data" "a" {}\n')
    home.json("run", module, "--auto-approve")
    server.request("GET", "/v1/nothing")
    server.request("GET", "/v1/runs", headers={"Authorization": "Bearer nobody"})
    result = subprocess.run([tool("promtool"), "check", "metrics"], input=metrics(server), capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0 and not result.stderr.strip(), result.stdout + result.stderr


def test_requests_are_counted_by_route_and_never_by_name(server):
    server.request("GET", "/v1/runs/some-name")
    server.request("BREW", "/v1/runs/some-name")
    text = metrics(server)
    assert value(text, 'dayfly_http_requests_total{method="GET",route="/v1/runs/{name}",code="404"}') == 1
    assert "some-name" not in text
    assert "BREW" not in text


def test_refused_logins_are_counted(server):
    before = value(metrics(server), "dayfly_http_logins_refused_total") or 0
    for _ in range(5):
        server.request("GET", "/v1/runs", headers={"Authorization": "Bearer guess"})
    assert value(metrics(server), "dayfly_http_logins_refused_total") == before + 5


def test_connections_that_end_are_not_counted_any_more(server):
    wait_for("idle connections to be forgotten", lambda: value(metrics(server), "dayfly_http_connections") <= 2)


def test_runs_that_have_not_ended_are_counted_by_phase_with_the_age_of_the_oldest(home, server):
    module = home.module("net", 'resource "terraform_data" "a" {}\n')
    waiting, pending = 'dayfly_runs{phase="WaitingApproval"}', 'dayfly_runs{phase="Pending"}'
    assert value(metrics(server), waiting) == 0 and value(metrics(server), "dayfly_leads") == 1
    home.dayfly("run", module, "--no-wait")
    assert server.request("POST", "/v1/executors/net/runs", {"action": "provision"})[0] == 201
    wait_for("a plan that waits", lambda: value(metrics(server), waiting) == 1)
    assert value(metrics(server), pending) == 1
    assert value(metrics(server), 'dayfly_oldest_run_age_seconds{phase="Pending"}') > 0
    home.dayfly("discard", "net-1")
    wait_for("the next plan", lambda: value(metrics(server), waiting) == 1 and value(metrics(server), pending) == 0)
    home.dayfly("discard", "net-2")
    wait_for("nothing", lambda: value(metrics(server), waiting) == 0)
    assert value(metrics(server), 'dayfly_oldest_run_age_seconds{phase="WaitingApproval"}') == 0
