"""The key of a cloud account, shown by a module that knows it: a reader of the service sees no part of it."""

import base64
import json
import re
import subprocess

import pytest

from lib.dayfly import Server
from lib.transitions import Events, key as said
from test_api import bearer, events, guarded, token_file

# Each line that the shell prints stands behind a prefix in the log, and is an event of its own.
MODULE = """
variable "key" { sensitive = false }
variable "fail" { default = "" }
resource "terraform_data" "key" {
  provisioner "local-exec" {
    environment = { PEM = jsondecode(var.key).private_key }
    command = <<-EOT
      all() { cat "$1"; base64 -w0 "$1"; echo; base64 "$1"; base64 -w64 "$1"; od -An -v -tx1 "$1" | tr -d ' \\n' | fold -w60; echo; }
      printf %s "$PEM" >pem
      ${var.fail == "shell" ? "cat $KEYFILE; base64 $KEYFILE; exit 7" : "all $KEYFILE; all pem"}
    EOT
  }
}
resource "terraform_data" "refused" {
  depends_on = [terraform_data.key]
  lifecycle {
    precondition {
      condition     = var.fail != "condition"
      error_message = "refused: ${var.key} or ${base64encode(var.key)}"
    }
  }
}
output "document" { value = var.key }
output "key" { value = { pem = jsondecode(var.key).private_key, encoded = base64encode(var.key) } }
"""


@pytest.fixture(scope="module")
def key():
    """A key of a service account as Google writes it."""
    made = subprocess.run(["openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
                          check=True, stdout=subprocess.PIPE, text=True)
    return json.dumps({"type": "service_account", "project_id": "demo", "private_key_id": "0c5e72d9b1a34f6e8d07",
                       "private_key": made.stdout, "client_email": "tofu@demo.iam.gserviceaccount.com",
                       "token_uri": "https://oauth2.googleapis.com/token"}, indent=2) + "\n"


def parts(key):
    """Every twelve characters of the key's body, from each fourth one on, as it is and as encoders write it."""
    pem = json.loads(key)["private_key"]
    body = "".join(line for line in pem.split("\n") if "-----" not in line)
    encoded = [base64.b64encode(text.encode()).decode() for text in (key, pem)] + [key.encode().hex(), pem.encode().hex()]
    return {text[i:i + 12] for text in [body, *encoded] for i in range(0, len(text) - 11, 4)}


def shown(key, text):
    """The parts of the key in a text, also across what its lines begin with and its escapes."""
    joined = text.replace("terraform_data.key (local-exec): ", "").replace("\\n", "").replace("\n", "")
    return sorted(part for part in parts(key) if part in text or part in joined)


def make(home, server, key):
    """An executor whose module gets the key as a variable and as a file."""
    module = home.module("cloud", MODULE)
    assert server.request("PUT", "/v1/secrets/account/key", key.encode(), bearer("boss"))[0] == 204
    executor = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "cloud"},
                "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime},
                         "secrets": [{"name": "account", "keys": ["key"]},
                                     {"name": "account", "keys": ["key"], "as": "file", "env": "KEYFILE"}]}}
    assert server.request("POST", "/v1/executors", executor, bearer("boss"))[0] == 201


def run(server, last="apply", **spec):
    """Everything about a run that the role read gets, when its last step is over."""
    read = bearer("reader")
    followed = Events(server, headers=read)
    made = server.request("POST", "/v1/executors/cloud/runs", {"action": "provision", "autoApprove": True, **spec}, bearer("boss"))
    name = json.loads(made[2])["metadata"]["name"]
    path = f"/v1/runs/{name}"
    events(server, f"{path}/watch", read)
    ends = {(f"{name}-{last}", "SUCCEEDED"), (f"{name}-{last}", "FAILED")}
    told = [followed.next()]
    while told[-1]["event"] != "state" or said(json.loads(told[-1]["data"]))[::2] not in ends:
        told.append(followed.next())
    followed.close()
    texts = {at: server.request("GET", at, headers=read)[2].decode()
             for at in (path, path + "/log", path + "/events", path + "/outputs", "/v1/taskactions", "/v1/executors/cloud", "/v1/executors/cloud/outputs")}
    return {**texts, "transitions": json.dumps(told)}


def test_a_key_that_a_module_shows_is_in_nothing_that_a_reader_gets(home, guarded, key):
    make(home, guarded, key)
    texts = run(guarded)
    assert texts["/v1/runs/cloud-1/log"].count("(local-exec): ***\n") > 100, "the shell showed nothing"
    assert '"value":"***' in texts["/v1/executors/cloud/outputs"]
    assert {at: shown(key, text) for at, text in texts.items()} == dict.fromkeys(texts, [])


@pytest.mark.parametrize("fail, step, words", [("condition", "plan", "refused: ***"), ("shell", "apply", "exit status 7. Output:")])
def test_a_key_in_an_error_is_in_nothing_that_a_reader_gets(home, guarded, key, fail, step, words):
    make(home, guarded, key)
    texts = run(guarded, step, variables={"fail": fail})
    assert words in texts["/v1/runs/cloud-1/log"] and words in texts["/v1/runs/cloud-1/events"]
    assert {at: shown(key, text) for at, text in texts.items()} == dict.fromkeys(texts, [])


# ---- a value in several lines ---------------------------------------------------------------------------------------

TOKEN = "glpat-Zq7_xK2mVd9Lw4RtYb6Ns3Pf8Hj1Gc5Ue0Ai"
# The tools end a line where a command pauses for a tenth of a second, too.
LINES = """
module "m" {
  source   = "./m"
  for_each = toset(["a \\"b\\" [c] (d): \u00e9"])
  token    = var.key
}
variable "key" { sensitive = false }
"""
IN_LINES = """
variable "token" {}
resource "terraform_data" "k" {
  for_each = toset(["x.y[0]\\\\"])
  provisioner "local-exec" {
    environment = { TOKEN = var.token }
    command = <<-EOT
      printf %s "$TOKEN" | fold -w 12; echo; echo --
      printf %s "$TOKEN" | base64 -w 20; echo --
      printf %s "$TOKEN" | od -An -v -tx1 | tr -d ' \\n' | fold -w 16; echo; echo --
      printf %s "$TOKEN" | sed 's/./&\\n/g'; echo --
      printf %.20s "$TOKEN"; sleep 0.4; printf %s "$TOKEN" | tail -c +21; echo; echo done
    EOT
  }
}
"""
HIDDEN = 8  # of its characters in a row are shown nowhere: a break after the first three shows these


def token_parts():
    encoded = [TOKEN, base64.b64encode(TOKEN.encode()).decode(), TOKEN.encode().hex()]
    return {text[i:i + HIDDEN] for text in encoded for i in range(0, len(text) - HIDDEN + 1)}


def ways_to_read(text):
    """A log or events as they are, and what the lines of the provisioner say without what stands between them."""
    outputs = []
    for line in text.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        outputs.append(event.get("hook", {}).get("output") or line.split("(local-exec): ", 1)[-1] if "(local-exec): " in line else "")
    return [text, "".join(outputs), "".join(re.findall(r"\(local-exec\): (.*?)[\n\"]", text))]


def test_a_secret_in_the_lines_of_a_provisioner_is_in_nothing_that_a_reader_gets(either_home):
    path = token_file(either_home, reader="read", boss="admin")
    module = either_home.module("cloud", LINES)
    either_home.module("cloud/m", IN_LINES)
    with Server(either_home, config=f"auth: {{tokenFile: {path}}}\n") as server:
        assert server.request("PUT", "/v1/secrets/account/key", TOKEN.encode(), bearer("boss"))[0] == 204
        executor = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": "cloud"},
                    "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": either_home.runtime},
                             "secrets": [{"name": "account", "keys": ["key"]}]}}
        assert server.request("POST", "/v1/executors", executor, bearer("boss"))[0] == 201
        texts = run(server)
        read = bearer("reader")
        texts["followed"] = server.request("GET", "/v1/runs/cloud-1/events?follow=true", headers=read)[2].decode().replace("data: {", "{")
    assert "(local-exec): done\n" in texts["/v1/runs/cloud-1/log"] and texts["/v1/runs/cloud-1/log"].count("(local-exec): ***\n") > 20
    assert texts["/v1/runs/cloud-1/events"].count('"output":"***"') > 20
    found = {at: [part for part in token_parts() for way in ways_to_read(text) if part in way] for at, text in texts.items()}
    assert found == dict.fromkeys(texts, [])
