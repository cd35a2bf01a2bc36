"""Programs that judge a plan: the real opa and scripts that misbehave (docs/policies.md)."""

import json
import os
import re

import pytest

from lib.commands import on_terminal
from lib.dayfly import Server, tool, wait_for

MODULE = """
variable "colour" { default = "red" }
variable "password" {
  default   = "correct-horse"
  sensitive = true
}
resource "terraform_data" "one" {
  input = { colour = var.colour, password = var.password }
}
"""
RULES = """package main

deny contains msg if {
    some r in input.resource_changes
    r.change.after.input.colour == "red"
    msg := sprintf("%s is red", [r.address])
}

warn contains "it is Friday"
"""
TOKENS = {"eve": "write", "bob": "write", "ann": "admin"}


def script(text, level="hard", **more):
    """A policy that is a Python program."""
    return {"level": level, "program": ["/usr/bin/python3", "-c", text], **more}


def says(passed, *messages):
    return f"import json, sys; json.load(sys.stdin); print(json.dumps({{'passed': {passed}, 'messages': {list(messages)}}}))"


@pytest.fixture
def rego(tmp_path):
    """rego(text, level): a policy of OPA with these rules."""
    def make(text=RULES, level="hard", query=None, **more):
        place = tmp_path / f"rules-{len(os.listdir(tmp_path))}"
        place.mkdir()
        (place / "rules.rego").write_text(text)
        place.chmod(0o755)
        opa = {"data": [str(place)], "program": tool("opa"), **({"query": query} if query else {})}
        return {"level": level, "opa": opa, **more}
    return make


@pytest.fixture
def judge(home):
    """judge(name=policy...): runs the module under these policies in the command's own service; the Run that came of it."""
    def run(*args, code=0, config=None, **policies):
        file = home.directory / "dayfly.yaml"
        file.write_text(json.dumps({"policies": policies, **(config or {})}))
        home.env["DAYFLY_CONFIG"] = str(file)
        module = home.module("net", MODULE)
        run.said = home.dayfly(*(args or ("run", module, "--auto-approve")), code=code)
        return max(home.json("get", "runs")["items"], key=lambda r: r["spec"]["number"])
    return run


def results(run):
    return {r["name"]: (r["passed"], r["messages"]) for r in run["status"].get("policies", [])}


# ---- what follows from the levels ----

def test_a_hard_policy_ends_the_run_before_anything_is_applied(home, judge, rego):
    run = judge(code=1, red=rego(), fine=script(says(True)))
    assert (run["status"]["phase"], run["status"]["reason"]) == ("Failed", "PolicyFailed")
    assert run["status"]["message"] == "policy red: terraform_data.one is red"
    assert run["status"]["policies"] == [
        {"name": "red", "level": "hard", "passed": False, "messages": ["terraform_data.one is red", "warning: it is Friday"]},
        {"name": "fine", "level": "hard", "passed": True, "messages": []}]
    assert "dayfly: policy red (hard) failed\n  terraform_data.one is red\n" in judge.said.stdout
    for shown in (home.dayfly("describe", "run/net-1").stdout, home.dayfly("why", "net-1").stdout):
        assert "Policies:\n  red (hard) failed\n    terraform_data.one is red\n    warning: it is Friday\n  fine (hard) passed\n" in shown
    assert "1 of 2 failed" in home.dayfly("get", "runs", "-o", "wide").stdout
    step = home.json("get", "taskaction", "net-1-plan")
    assert "plan" not in step["status"], "there is no plan to apply"
    assert [s["name"] for s in run["status"]["steps"]] == ["plan"]


def test_a_policy_that_passes_lets_the_plan_be_applied(home, judge, rego):
    run = judge("run", home.module("net", MODULE), "--auto-approve", "--var", "colour=blue", red=rego())
    assert (run["status"]["phase"], results(run)) == ("Succeeded", {"red": (True, ["warning: it is Friday"])})
    assert "1 passed" in home.dayfly("get", "runs", "-o", "wide").stdout


def test_an_advisory_policy_only_tells(judge, rego):
    run = judge(red=rego(level="advisory"))
    assert (run["status"]["phase"], run["status"]["reason"]) == ("Succeeded", "Applied")
    assert "dayfly: policy red (advisory) failed\n" in judge.said.stdout


def test_a_dry_run_and_a_destroy_are_judged_as_well(home, judge):
    nothing = script("import json, sys\ngone = [r for r in json.load(sys.stdin)['resource_changes'] if r['change']['actions'] == ['delete']]\n"
                     "print(json.dumps({'passed': not gone, 'messages': ['nothing is destroyed here'] * len(gone)}))")
    assert judge("plan", home.module("net", MODULE), no=nothing)["status"]["reason"] == "Planned"
    assert judge(no=nothing)["status"]["reason"] == "Applied"
    assert judge("destroy", home.module("net", MODULE), "--auto-approve", code=1, no=nothing)["status"]["message"] == \
        "policy no: nothing is destroyed here"


def test_a_plan_without_changes_is_not_judged(judge):
    assert judge()["status"]["reason"] == "Applied"
    assert judge(no=script(says(False)))["status"]["reason"] == "NoChanges"


# ---- a soft policy and who may override it ----

class Service:
    """A server with policies and a token for each person of TOKENS."""

    def __init__(self, home, **policies):
        self.home = home
        made = {name: home.json("token-file", "create", "--name", name, "--role", role) for name, role in TOKENS.items()}
        file = home.directory / "tokens"
        file.write_text("".join(m["line"].rstrip("\n") + "\n" for m in made.values()))
        file.chmod(0o600)
        self.tokens = {name: m["token"] for name, m in made.items()}
        self.server = Server(home, config=json.dumps({"auth": {"tokenFile": str(file)}, "policies": policies}))

    def __enter__(self):
        self.server.__enter__()
        self.executor("net")
        return self

    def __exit__(self, *exc):
        return self.server.__exit__(*exc)

    def be(self, name):
        self.home.env["DAYFLY_TOKEN"] = self.tokens[name]
        return self.home

    def executor(self, name, **metadata):
        module = self.home.module(name, MODULE)
        document = {"kind": "Executor", "metadata": {"name": name, **metadata},
                    "spec": {"source": {"url": f"file://{module}"}, "approval": "automatic"}}
        self.be("ann").dayfly("create", "-f", "-", input=json.dumps(document))

    def ask(self, name, phase):
        """A run, of which nobody need have a look: the executor's approval is automatic."""
        run = self.be("eve").json("run", name, "--no-wait", code=None)["run"]["metadata"]["name"]
        return wait_for(f"{run} to be {phase}", lambda: (lambda r: r["status"].get("phase") == phase and r)(self.get(run)))

    def get(self, run):
        return self.home.json("get", "run", run)


def test_a_soft_policy_makes_a_run_wait_for_an_admin_who_says_why(home):
    with Service(home, look=script(says(False, "look at it"), "soft")) as service:
        run = service.ask("net", "WaitingApproval")
        assert "soft policy look has failed (look at it)" in run["status"]["message"]
        refused = service.be("bob").dayfly("approve", "net-1", "--reason", "I like it", code=1).stderr
        assert "needs the role admin" in refused and "yours is write" in refused
        refused = service.be("ann").dayfly("approve", "net-1", code=3).stderr
        assert "dayfly approve net-1 --reason TEXT" in refused
        assert "--reason TEXT" in service.be("ann").dayfly("why", "net-1").stdout
        service.be("ann").dayfly("approve", "-f", "net-1", "--reason", "it is a test")
        done = service.get("net-1")
        assert (done["status"]["phase"], done["status"]["approvedBy"]) == ("Succeeded", "ann")
        assert done["spec"]["decision"]["reason"] == "it is a test"
        assert results(done) == {"look": (False, ["look at it"])}
        assert re.search(r"Because +it is a test", service.be("ann").dayfly("describe", "run/net-1").stdout)


def test_whom_a_soft_policy_names_may_override_it_and_nobody_else(home):
    with Service(home, look=script(says(False), "soft", overrideBy=["bob"])) as service:
        service.ask("net", "WaitingApproval")
        refused = service.be("ann").dayfly("approve", "net-1", "--reason", "I am the admin", code=1).stderr
        assert "policies.look.overrideBy" in refused and "ann is not" in refused
        service.be("bob").dayfly("approve", "-f", "net-1", "--reason", "agreed")
        assert service.get("net-1")["status"]["phase"] == "Succeeded"


def test_anybody_who_may_approve_discards_what_a_soft_policy_holds(home):
    with Service(home, look=script(says(False), "soft")) as service:
        service.ask("net", "WaitingApproval")
        service.be("bob").dayfly("discard", "net-1")
        wait_for("the end", lambda: service.get("net-1")["status"]["phase"] == "Discarded")


def test_a_policy_judges_the_executors_with_its_labels(home):
    only = {"appliesTo": {"matchLabels": {"team": "net"}}}
    with Service(home, nets=script(says(False), **only), all=script(says(True))) as service:
        assert results(service.ask("net", "Succeeded")) == {"all": (True, [])}
        service.executor("labelled", labels={"team": "net"})
        assert results(service.ask("labelled", "Failed")) == {"nets": (False, []), "all": (True, [])}


# ---- what cannot be evaluated has failed ----

BROKEN = {
    "endless": ("while True: pass", "it did not end within 1s"),
    "asleep": ("import time; time.sleep(1000)", "it did not end within 1s"),
    "garbage": ("print('all is well')", "it printed no JSON"),
    "silent": ("pass", "it printed no JSON"),
    "vague": ("print('{\"passed\": \"yes\"}')", "no member passed that is true or false"),
    "list": ("print('[]')", "no member passed"),
    "twice": ("print('{\"passed\": true}{\"passed\": true}')", "it printed no JSON"),
    "odd": ("print('{\"passed\": true, \"messages\": \"none\"}')", "messages of its answer must be a list"),
    "fails": ("import sys; print('{\"passed\": true}'); sys.exit('no mood')", "it ended with exit code 1: no mood"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "(in vain)|it ended with exit code"),
    "flood": ("while True: print('x' * 65536)", "more than 1048576 bytes"),
    "network": ("import socket; socket.socket(); print('{\"passed\": true}')", "Permission denied"),
    "unix": ("import socket; socket.socket(socket.AF_UNIX); print('{\"passed\": true}')", "Permission denied"),
    "memory": ("x = bytearray(512 << 20); print('{\"passed\": true}')", "MemoryError"),
    "forks": ("import os\nwhile True: os.fork()", "it did not end within 1s|Resource temporarily unavailable"),
    "leaves": ("import os, sys\nif os.fork(): sys.exit(3)\nos.setsid()\nwhile True: pass", "it ended with exit code 3"),
}


@pytest.mark.parametrize("isolation", ["auto", "none"])
def test_whatever_a_program_does_wrong_is_a_failure_of_its_policy(judge, isolation):
    broken = {n: s for n, s in BROKEN.items() if isolation == "auto" or n != "forks"}  # without a wall root may fork for ever
    policies = {n: script(s[0], "advisory", timeout="60s" if n == "memory" else "1s" if n in ("endless", "asleep", "forks") else "30s", memoryMiB=256)
                for n, s in broken.items() if n != "killed"}
    run = judge(config={"engine": {"local": {"isolation": isolation}}}, **policies)
    assert run["status"]["reason"] == "Applied", "advisory ones only tell"
    for name, (passed, messages) in results(run).items():
        assert not passed and len(messages) == 1 and messages[0].startswith("could not be evaluated: "), (name, messages)
        assert re.search(broken[name][1], messages[0]), (name, messages)
    assert len(results(run)) == len(policies)


@pytest.mark.parametrize("name", ["endless", "garbage", "fails", "missing"])
def test_a_hard_policy_fails_closed(judge, name):
    policy = {"level": "hard", "program": ["no-such-program"]} if name == "missing" else script(BROKEN[name][0], timeout="1s")
    run = judge(code=1, strict=policy)
    assert run["status"]["reason"] == "PolicyFailed"
    assert run["status"]["message"].startswith("policy strict: could not be evaluated: ")


OPA_BROKEN = {
    "syntax": ("package main\ndeny contains\n", None, "opa: "),
    "package": ("package other\ndeny contains 1 if false\n", None, "no package main"),
    "nothing": ("package main\nx := 1\n", None, "none of the rules deny, violation and warn"),
    "set": ("package main\ndeny := false\n", None, "its rule deny is no set"),
    "http": ("package main\ndeny contains 1 if http.send({\"method\": \"get\", \"url\": \"http://127.0.0.1:1\"}).status_code == 200\n", None,
             "http.send"),
    "query": (RULES, "data.elsewhere", "no package elsewhere"),
}


def test_rules_that_cannot_be_evaluated_deny(judge, rego):
    """http.send() that fails makes a rule undefined, which would deny nothing."""
    run = judge(**{n: rego(text, "advisory", query) for n, (text, query, _) in OPA_BROKEN.items()})
    for name, (passed, messages) in results(run).items():
        assert not passed and OPA_BROKEN[name][2] in messages[0], (name, messages)
    assert len(results(run)) == len(OPA_BROKEN)


def test_rules_of_conftest_are_rules_of_ours(judge, rego):
    """Objects with msg, the set violation, another package."""
    text = RULES.replace("package main", "package policy.net").replace("deny contains msg", 'violation contains {"msg": msg, "details": {}}')
    assert results(judge(code=1, red=rego(text, query="data.policy.net"))) == {"red": (False, ["terraform_data.one is red", "warning: it is Friday"])}


def test_rules_whose_names_go_on_are_rules_as_well(judge, rego):
    """As conftest has them: deny_buckets, and not denying."""
    def policy(*rules):
        return rego("package main\n" + "".join(f'{rule} contains "{rule}"\n' for rule in rules), "advisory")
    run = judge(deny=policy("deny_red"), violation=policy("violation_red"), warn=policy("warn_red", "denying", "warned"), none=policy("denying"),
                empty=rego("package main\ndeny_red contains 1 if false\n", "advisory"), value=rego("package main\ndeny_red := true\n", "advisory"))
    found = results(run)
    assert "none of the rules" in found.pop("none")[1][0] and "its rule deny_red is no set" in found.pop("value")[1][0]
    assert found == {"deny": (False, ["deny_red"]), "violation": (False, ["violation_red"]), "warn": (True, ["warning: warn_red"]), "empty": (True, [])}


# ---- the module against the policy ----

@pytest.fixture
def tool_does(home, tofu):
    """tool_does(text): a script that the tool is from now on, with the real one at its end. Code of a module runs in a plan, too: here the tool is it."""
    def make(text):
        path = home.bin / "tofu"
        path.unlink()
        path.write_text(f"#!/bin/sh\n{text}\nexec {tofu} \"$@\"\n")
        path.chmod(0o755)
    return make


NO_WALL = {"engine": {"local": {"isolation": "none"}}}


def test_without_a_wall_a_program_reads_nothing_that_the_module_left_for_it(judge, tool_does):
    """A Python program imports from where it starts."""
    tool_does("""echo "print('{\"passed\": true}'); raise SystemExit" | tee json.py $TMPDIR/json.py $HOME/json.py >/dev/null""")
    run = judge(config=NO_WALL, code=1, strict=script(says(False, "no")))
    assert (run["status"]["reason"], results(run)) == ("PolicyFailed", {"strict": (False, ["no"])})


def test_without_a_wall_each_program_has_an_empty_directory_of_its_own(judge):
    text = ("import json, os\nhome = os.getcwd()\nfound = os.listdir('.'), oct(os.stat('.').st_mode), os.environ['HOME'] == home == os.environ['TMPDIR']\n"
            "open('json.py', 'w').close()\nprint(json.dumps({'passed': True, 'messages': [str(found), home]}))")
    seen = results(judge(config=NO_WALL, a=script(text), b=script(text)))
    assert [messages[0] for _, messages in seen.values()] == ["([], '0o40700', True)"] * 2, seen
    assert not any(os.path.exists(messages[1]) for _, messages in seen.values())


@pytest.mark.parametrize("command", ["plan", "show"])
def test_no_process_of_the_module_runs_beside_a_policy(home, judge, tool_does, command):
    """Both run providers."""
    left = home.directory / "left"
    tool_does(f'if [ "$1" = {command} ]; then setsid sleep 100 </dev/null >/dev/null 2>&1 & echo $! >{left}; fi')
    text = f"import json, os\npid = open({str(left)!r}).read().strip()\nprint(json.dumps({{'passed': not os.path.exists('/proc/' + pid)}}))"
    assert results(judge(config=NO_WALL, alone=script(text))) == {"alone": (True, [])}


def test_a_plan_that_a_policy_refused_is_not_made_again(home, judge, tool_does, tmp_path):
    """One without an init is, if the tool asks for it: here it does although it has planned."""
    cache = {"tools": {"cacheDirectory": str(tmp_path / "cache")}}
    judge(config=cache)
    event = json.dumps({"@level": "error", "type": "diagnostic", "diagnostic": {"severity": "error", "summary": "run tofu init"}})
    tool_does(f"""if [ "$1" = plan ]; then
    for word in "$@"; do case "$word" in -json-into=*) exec 9>>"${{word#*=}}"; echo '{event}' >&9;; esac; done
fi""")
    judge("run", home.module("other", MODULE), "--auto-approve", code=1, config=cache, strict=script(says(False, "no")))
    run = home.json("get", "run", "other-1")
    assert "dayfly: no init" in judge.said.stdout and "dayfly: init after all" not in judge.said.stdout
    assert (run["status"]["reason"], results(run)) == ("PolicyFailed", {"strict": (False, ["no"])})


# ---- what a program sees ----

LOOK = """
import glob, json, os, sys
plan = json.load(sys.stdin)
found = {"environment": sorted(os.environ), "user": os.getuid(), "plan": json.dumps(plan)}
for name, path in (("data", DATA), ("files", FILES)):
    try:
        found[name] = open(path).read()
    except OSError as error:
        found[name] = type(error).__name__
found["processes"] = len(glob.glob("/proc/[0-9]*"))
print(json.dumps({"passed": True, "messages": [k + "=" + part for k, v in found.items() if k != "plan" for part in [str(v)]]
    + ["secret" for s in ("correct-horse",) if s in found["plan"]] + ["masked" for s in ["(sensitive)"] if s in found["plan"]]}))
"""


def test_a_program_sees_the_plan_without_what_is_sensitive_and_little_else(home, judge, tmp_path):
    given, kept = tmp_path / "limits.json", tmp_path / "other.json"
    given.write_text("the limits")
    kept.write_text("KEPT")
    for path in (given, kept):
        path.chmod(0o644)
    text = LOOK.replace("DATA", repr(str(kept))).replace("FILES", repr(str(given)))
    home.env["AWS_SECRET_ACCESS_KEY"] = "not-for-policies"
    run = judge(look=script(text, files=[str(given)]))
    passed, messages = results(run)["look"]
    seen = dict(m.partition("=")[::2] for m in messages)
    assert passed and "masked" in seen and "secret" not in seen, messages
    assert set(eval(seen["environment"])) <= {"HOME", "LC_CTYPE", "PATH", "TMPDIR"}, seen
    assert seen["data"] == "FileNotFoundError" and seen["files"] == "the limits", seen
    assert seen["user"] == ("65534" if os.geteuid() == 0 else str(os.geteuid())) and seen["processes"] == "1", seen


def test_what_a_program_says_is_masked_and_bounded(home, judge):
    home.env["AWS_SECRET_ACCESS_KEY"] = "blue-as-a-secret"
    text = ("import json, sys\nplan = sys.stdin.read()\n"
            "print(json.dumps({'passed': True, 'messages': ['x\\ny\\x1b[31m', 'blue-as-a-' + 'secret', 'é' * 400] + list('abcdefghijklm')}))")
    passed, messages = results(judge(loud=script(text)))["loud"]
    assert passed and messages[0] == "x y [31m" and "secret" not in messages[1], messages
    assert messages[2] == "é" * 150 and messages[-1] == "and 6 more" and len(messages) == 11, messages


@pytest.mark.parametrize("word, end", [("no", "Declined"), ("", "Declined"), ("agreed with security", "Succeeded")])
def test_the_question_for_the_reason_of_an_override_takes_no_bare_word_for_one(home, rego, word, end):
    file = home.directory / "dayfly.yaml"
    file.write_text(json.dumps({"policies": {"red": rego(level="soft")}}))
    home.env["DAYFLY_CONFIG"] = str(file)
    terminal = on_terminal(home, "run", home.module("net", MODULE))
    terminal.expect("Without a reason it is not:")
    terminal.type("yes\n")
    wait_for("the question once more", lambda: terminal.read() and terminal.shown.count("Without a reason it is not:") == 2)
    terminal.type(f"{word}\n")
    terminal.end()
    assert end in terminal.shown


# ---- code of the module ----

# While the plan is made it puts a plan of its own where the tool's is to be, as file and at the gate.
FORGER = """#!/bin/sh
out=$(tr '\\0' '\\n' </proc/$PPID/cmdline | sed -n 's/^-out=//p')
if [ -n "$out" ]; then
    for i in $(seq 100); do
        echo '{"format_version":"1.2","resource_changes":[]}' >$(dirname $out)/forged
        mv $(dirname $out)/forged $(dirname $out)/plan.json
        sleep 0.05
    done >/dev/null 2>&1 </dev/null &
fi
echo '{"magic":"OpenTofu-External-Key-Provider","version":1}'
cat > /dev/null
key=$(printf '0%.0s' $(seq 32) | base64 -w 0)
echo '{"keys":{"encryption_key":"'"$key"'","decryption_key":"'"$key"'"},"meta":{}}'
"""
FORGED = MODULE + """
terraform {
  encryption {
    key_provider "external" "k" { command = ["sh", "./key"] }
    method "aes_gcm" "m" { keys = key_provider.external.k }
    state { method = method.aes_gcm.m }
  }
}
"""


@pytest.mark.parametrize("isolation", ["auto", "none"])
def test_a_policy_judges_the_plan_that_the_tool_made_and_none_that_the_module_puts_there(home, rego, isolation):
    file = home.directory / "dayfly.yaml"
    file.write_text(json.dumps({"policies": {"red": rego()}, "engine": {"local": {"isolation": isolation}}}))
    home.env["DAYFLY_CONFIG"] = str(file)
    home.dayfly("run", home.module("net", FORGED, key=FORGER), "--auto-approve", code=1)
    (run,) = home.json("get", "runs")["items"]
    assert run["status"]["message"] == "policy red: terraform_data.one is red"
