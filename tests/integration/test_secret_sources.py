"""Secrets that come from elsewhere: a real Vault (KV version 2), and directories."""

import json
import os

import pytest

from lib import web
from lib.dayfly import Server, wait_for
from lib.vault import Vault, account_token

FIRST, SECOND = "correct-horse-battery", "staple-of-purple-horses"
OLD_ENGINE = "is KV version 1, and dayfly reads KV version 2 only"
MODULE = """
resource "terraform_data" "client" {
  triggers_replace = timestamp()
  provisioner "local-exec" { command = "echo says $PGPASSWORD; printf %s $PGPASSWORD >OUT" }
}
"""


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    with Vault(tmp_path_factory.mktemp("vault")) as server:
        yield server


class Installation:
    """A service with the source "corp", and the executor db that takes the key password of corp-db."""

    def __init__(self, home, vault):
        self.home, self.vault = home, vault
        self.out = home.directory / "out"
        self.token_file = home.directory / "token-of-vault"
        self.sources = {"corp": self.kv2({"tokenFile": str(self.token_file)})}
        self.more = {}
        self.executor("db", [{"name": "corp-db", "keys": ["password"], "as": "env", "env": "PGPASSWORD"}])

    def kv2(self, auth, **more):
        return {"type": "kv2", "executors": ["db"], "url": self.vault.url, "caFile": str(self.vault.certificate), "path": "infra", "auth": auth, **more}

    def executor(self, name, secrets):
        module = self.home.module(name, MODULE.replace("OUT", str(self.out)))
        spec = {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": self.home.runtime}, "secrets": secrets}
        document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name}, "spec": spec}
        (self.home.directory / f"{name}.json").write_text(json.dumps(document))
        return self.home.directory / f"{name}.json"

    def with_account(self, number=1):
        """Logs in with the token of a service account."""
        token = account_token(number)
        self.vault.reviewer.tokens.add(token)
        self.token_file.write_text(token)
        self.sources["corp"] = self.kv2({"kubernetes": {"role": "dayfly", "tokenFile": str(self.token_file)}})
        return self

    def with_token(self, token):
        self.token_file.write_text(token + "\n")
        return self

    def serve(self):
        # One without tokens of its own lets the module write outside of its work directory.
        return Server(self.home, config=json.dumps({"vault": {"sources": self.sources}, **self.more}))

    def create(self):
        self.home.dayfly("apply", "-f", self.home.directory / "db.json")

    def run(self, code=0):
        result = self.home.dayfly("run", "db", "--auto-approve", code=code)
        for value in (FIRST, SECOND):
            assert value not in result.stdout + result.stderr
        return result

    def start(self):
        """A run that nobody waits for."""
        self.home.dayfly("run", "db", "--auto-approve", "--detach")

    def doctor(self):
        return self.home.dayfly("doctor", "--config", self.home.directory / "dayfly.yaml", code=None).stdout

    def status(self, run):
        return self.home.json("get", "run", run)["status"]


@pytest.fixture
def place(home, vault):
    if not vault.is_active():  # a test that failed left it so
        vault.unseal()
    vault.put("infra/db", password=FIRST, port="5432")
    return Installation(home, vault)


def test_each_step_reads_the_secret_anew_with_the_account_of_the_service(place, vault):
    with place.with_account().serve():
        place.create()
        result = place.run()
        assert "says ***" in place.home.dayfly("logs", "db-1").stdout + result.stdout and place.out.read_text() == FIRST
        logins = vault.reviewer.asked
        vault.put("infra/db", password=SECOND, port="5432")
        place.run()
        assert place.out.read_text() == SECOND and vault.reviewer.asked == logins > 0
        vault.revoke_accounts()
        place.run()
        assert vault.reviewer.asked > logins
        # What the policy does not allow is no reason to log in again.
        logins = vault.reviewer.asked
        vault.call("PUT", "sys/policies/acl/read", {"policy": 'path "secret/other" { capabilities = ["read"] }'})
        place.run(code=3)
        assert place.status("db-4")["reason"] == "SecretSourceDenied" and vault.reviewer.asked == logins
        vault.call("PUT", "sys/policies/acl/read", {"policy": vault.POLICY})
        assert place.out.read_text() == SECOND
        assert FIRST not in place.home.dayfly("get", "run", "db-1", "-o", "yaml").stdout
        listed = {item["name"]: item for item in place.home.json("secret", "list")["items"]}
        assert listed["corp-db"]["source"] == "corp" and listed["corp-db"]["executors"] == ["db"], listed


def test_a_revoked_token_is_told_and_a_new_file_is_enough(place, vault):
    old = vault.token()
    with place.with_token(old).serve():
        place.create()
        vault.revoke(old)
        place.run(code=3)
        status = place.status("db-1")
        assert status["reason"] == "SecretSourceDenied" and "source corp" in status["message"] and "403" in status["message"], status
        place.with_token(vault.token())
        place.run()
        assert place.out.read_text() == FIRST


def test_a_step_waits_for_a_sealed_vault(place, vault):
    with place.with_account(2).serve() as server:
        place.create()
        vault.seal()
        place.start()
        wait_for("the step to be claimed", lambda: place.home.json("get", "taskaction", "db-1-plan")["status"].get("claimedBy"))
        assert place.status("db-1")["phase"] == "Running"
        assert server.request("GET", "/v1/secrets")[0] == 200  # and the others are served
        waiting = wait_for("the run to say what it waits for", lambda: place.status("db-1").get("waiting"))
        assert waiting["reason"] == "SecretSourceUnavailable" and "source corp" in waiting["message"], waiting
        assert f"It waits since {waiting['since']}: {waiting['message']}" in place.home.dayfly("why", "db-1").stdout
        vault.unseal()
        wait_for("the run to succeed", lambda: place.status("db-1")["phase"] == "Succeeded")
    assert place.out.read_text() == FIRST


def test_a_vault_that_stays_sealed_fails_the_step_with_its_status(place, vault):
    place.more = {"timeouts": {"pending": "4s"}}
    with place.with_token(vault.token()).serve():
        place.create()
        vault.seal()
        place.run(code=3)
        status = place.status("db-1")
        assert status["reason"] == "SecretSourceUnavailable", status
        assert "source corp" in status["message"] and "503" in status["message"] and "sealed" in status["message"], status
        shown = place.home.json("secret", "list")["items"]
        assert [item["name"] for item in shown] == ["corp-*"] and "sealed" in shown[0]["message"], shown
        assert "Vault is sealed" in place.doctor()
        vault.unseal()
        assert "secrets corp-… can be read from secret/infra of https://" in place.doctor()


def test_a_certificate_of_somebody_else_ends_the_step_before_the_token_is_sent(place, vault):
    stranger = place.home.directory / "other"
    stranger.mkdir()
    place.with_token(vault.token()).sources["corp"]["caFile"] = str(web.self_signed(stranger)[0])
    with place.serve():
        place.create()
        place.run(code=3)
        status = place.status("db-1")
    assert status["reason"] == "SecretSourceDenied" and "certificate" in status["message"], status


def test_what_is_missing_is_named_with_its_place(place, vault):
    place.with_token(vault.token())
    with place.serve():
        place.executor("db", [{"name": "corp-none", "as": "env"}])
        place.create()
        place.run(code=3)
        missing = place.status("db-1")["message"]
        assert 'secret "corp-none" of the source corp' in missing and 'write it as "none" to secret/infra of https://' in missing, missing
        place.executor("db", [{"name": "corp-db", "keys": ["nokey"], "as": "env"}])
        place.create()
        place.run(code=3)
        assert 'no key "nokey"; write it as "db" to secret/infra' in place.status("db-2")["message"], place.status("db-2")
        place.executor("db", [{"name": "other", "as": "env"}])
        place.create()
        place.run(code=3)
        assert "dayfly secret set other KEY" in place.status("db-3")["message"], place.status("db-3")
        vault.put("infra/gone", password=FIRST)
        vault.call("DELETE", "secret/data/infra/gone")
        place.executor("db", [{"name": "corp-gone", "as": "env"}])
        place.create()
        place.run(code=3)
        assert "its newest version is deleted" in place.status("db-4")["message"], place.status("db-4")


def test_a_source_is_only_read_and_its_executors_are_those_of_the_configuration(place, vault):
    place.with_token(vault.token())
    with place.serve():
        for words in (("set", "corp-new", "password"), ("allow", "corp-db", "--executor", "*"), ("delete", "corp-db")):
            refused = place.home.dayfly("secret", *words, code=None, input="x\n")
            assert refused.returncode and "secret/infra of https://" in refused.stderr, refused.stderr
        other = place.executor("web", [{"name": "corp-db"}])
        refused = place.home.dayfly("apply", "-f", other, code=None)
        assert "vault.sources.corp.executors" in refused.stderr, refused.stderr


def test_only_an_admin_makes_an_executor_that_the_configuration_entrusts_with_a_source(place):
    tokens = place.home.directory / "tokens"
    made = {}
    for name, role in (("ci", "write"), ("boss", "admin")):
        created = place.home.dayfly("token-file", "create", "--name", name, "--role", role, "--token-file", tokens)
        made[name] = next(word for word in (created.stdout + created.stderr).split() if len(word) > 40)
    place.more = {"auth": {"tokenFile": str(tokens)}, "engine": {"local": {"isolation": "auto"}}}
    with place.with_token("x").serve():
        place.home.env["DAYFLY_TOKEN"] = made["ci"]
        place.executor("db", [])  # it need not name a secret yet
        refused = place.home.dayfly("apply", "-f", place.home.directory / "db.json", code=None)
        assert refused.returncode and "corp-*" in refused.stderr and "admin" in refused.stderr, refused.stderr
        place.home.dayfly("apply", "-f", place.executor("web", []))
        place.home.env["DAYFLY_TOKEN"] = made["boss"]
        place.home.dayfly("apply", "-f", place.executor("db", [{"name": "corp-db"}]))


@pytest.mark.parametrize("path", ["infra/db", "data/infra/db"], ids=["as people keep it", "as version 2 would"])
def test_version_1_of_the_engine_is_told(place, vault, path):
    vault.put(path, engine="old", password=FIRST)
    place.with_token(vault.root).sources["corp"]["mount"] = "old"
    with place.serve():
        place.create()
        place.run(code=3)
        status = place.status("db-1")
        assert OLD_ENGINE in place.home.json("secret", "list")["items"][0]["message"]
    assert status["reason"] == "SecretSourceDenied" and OLD_ENGINE in status["message"], status
    assert OLD_ENGINE in place.doctor()


def test_version_1_of_the_engine_is_told_to_who_may_read_only_where_its_secrets_are(place, vault):
    vault.call("PUT", "sys/policies/acl/old", {"policy": 'path "old/infra/*" { capabilities = ["read"] }'})
    narrow = vault.call("POST", "auth/token/create", {"policies": ["old"]})["auth"]["client_token"]
    place.with_token(narrow).sources["corp"]["mount"] = "old"
    with place.serve():
        place.create()
        place.run(code=3)
        assert OLD_ENGINE in place.status("db-1")["message"], place.status("db-1")


def mount(directory, number, **files):
    """Replaces the files of a mounted Secret as a kubelet does."""
    target = directory / f"..{number}"
    target.mkdir(parents=True)
    for name, text in files.items():
        (target / name).write_text(text)
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    (directory / "..new").symlink_to(target.name)
    os.rename(directory / "..new", directory / "..data")


def test_a_mounted_secret_is_read_anew_for_each_step(place):
    secrets = place.home.directory / "secrets"
    place.sources = {"corp": {"type": "files", "executors": ["*"], "directory": str(secrets)}}
    mount(secrets / "db", 1, password=FIRST, user="ada")
    with place.serve():
        place.create()
        place.run()
        assert place.out.read_text() == FIRST
        mount(secrets / "db", 2, password=SECOND, user="ada")
        place.run()
        assert place.out.read_text() == SECOND
        assert [item["name"] for item in place.home.json("secret", "list")["items"]] == ["corp-db"]
        secrets.rename(place.home.directory / "gone")
        assert str(secrets) in place.doctor()
