"""Reports of platform actions as a JSON schema reads them, and their metrics as Prometheus does."""

import json
import re
import subprocess

import jsonschema
import pytest

from lib.dayfly import BUILD, ROOT, tool


@pytest.fixture(scope="module")
def schema():
    document = json.loads((ROOT / "docs/platform-report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def left_by(program, directory):
    """The directory, with the reports and metrics of a unit test."""
    subprocess.run([BUILD / "tests" / program], check=True, capture_output=True, env={"DAYFLY_TEST_REPORTS": str(directory)})
    return directory


def test_each_report_is_as_the_schema_says(schema, tmp_path):
    reports = [json.loads(path.read_text()) for path in left_by("test_platform_report", tmp_path).glob("*.json")]
    assert len(reports) > 10
    for report in reports:
        schema.validate(report)
    assert {report["summary"]["status"] for report in reports} == {"success", "failure", "partial", "invalid", "timeout"}
    assert any("removal" in report for report in reports)


def test_the_schema_refuses_what_no_report_has(schema, tmp_path):
    report = json.loads(next(left_by("test_platform_report", tmp_path).glob("1.json")).read_text())
    for path in ((), ("summary",), ("components", 0), ("failures", 0), ("metrics",), ("metrics", "components")):
        changed = json.loads(json.dumps(report))
        place = changed
        for step in path:
            place = place[step]
        place["surprise"] = True
        assert not schema.is_valid(changed), path


def test_promtool_finds_nothing_to_complain_about(tmp_path):
    text = (left_by("test_platform_telemetry", tmp_path) / "metrics.prom").read_text()
    result = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0 and not result.stderr.strip(), result.stdout + result.stderr
    types = dict(line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE "))
    assert types == {"executor_action_duration_seconds": "histogram", "executor_action_status": "gauge",
                     "executor_component_health": "gauge", "executor_errors_total": "counter"}


def test_the_page_says_of_each_cause_what_to_do():
    causes = re.findall(r'^    \{"(\w+)",', (ROOT / "runner/platform/advice.c").read_text(), re.M)
    page = (ROOT / "docs/platform.md").read_text()
    assert len(causes) > 20 and [c for c in causes if f"| `{c}` |" not in page] == []
