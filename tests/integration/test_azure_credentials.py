"""Access tokens of Azure, from where Azure's own programs take them. The token services exist in a cloud alone and are played here
as Microsoft documents them; the blobs behind them are Azurite's, which checks what a token is for."""

import base64
import json
import os
import subprocess
import time
import urllib.parse

import pytest

from lib import dayfly, web
from lib.buckets import AzureStorage, run_program

FORM = {"grant_type": "client_credentials", "client_id": "app-1"}
BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def jwt(**claims):
    """A token as Azurite wants it, which checks all but the signature."""
    now = int(time.time())
    claims = {"aud": "https://storage.azure.com", "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
              "nbf": now - 60, "iat": now - 60, "exp": now + 3600, **claims}
    parts = [{"typ": "JWT", "alg": "RS256", "kid": "k"}, claims]
    return ".".join([base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts] + ["c2lnbmF0dXJl"])


class Azure(web.Handler):
    def give(self, good):
        owner = self.server.owner
        owner.asked += 1
        if not good or owner.status != 400:
            return self.answer(owner.status, b'{"error": "invalid_request"}', Content_Type="application/json")
        return self.answer(200, json.dumps({"access_token": owner.token, **owner.life}).encode(), Content_Type="application/json")

    def do_GET(self):  # noqa: N802
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        metadata = path == "/metadata/identity/oauth2/token" and self.headers["Metadata"] == "true" and asked["api-version"] == "2018-02-01"
        service = path == "/msi/token" and self.headers["X-IDENTITY-HEADER"] == "of-the-service" and asked["api-version"] == "2019-08-01"
        return self.give((metadata or service) and asked["resource"] == self.server.owner.resource and asked.get("client_id") in (None, "app-1"))

    def do_POST(self):  # noqa: N802
        asked = dict(urllib.parse.parse_qsl(self.body().decode()))
        proof = ({"client_secret": "s3cret/+&"}, {"client_assertion_type": BEARER, "client_assertion": "of-the-cluster"})
        return self.give(self.path == "/tenant-1/oauth2/v2.0/token" and asked in [{**FORM, "scope": self.server.owner.scope, **p} for p in proof])


@pytest.fixture
def azure():
    with web.Server(Azure) as server:
        server.token, server.life, server.asked, server.status = jwt(), {"expires_in": 3599}, 0, 400
        server.resource, server.scope = "https://storage.azure.com/", "https://storage.azure.com/.default"
        yield server


APPLICATION = {"AZURE_CLIENT_ID": "app-1", "AZURE_TENANT_ID": "tenant-1"}


def environment(azure, tmp_path, source):
    (tmp_path / "federated").write_text("of-the-cluster\n")
    authority = {"AZURE_AUTHORITY_HOST": azure.url + "/", **APPLICATION}
    metadata = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": azure.url}
    return {"federation": {**authority, "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "federated")},
            "secret": {**authority, "AZURE_CLIENT_SECRET": "s3cret/+&"},
            "metadata": metadata, "metadata of one identity": {**metadata, "AZURE_CLIENT_ID": "app-1"},
            "service": {"IDENTITY_ENDPOINT": azure.url + "/msi/token", "IDENTITY_HEADER": "of-the-service"}}[source]


def token(env, *resource, code=0):
    sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    result = subprocess.run([dayfly.BUILD / "tools/azure_token", *resource], env={**env, **sanitizers}, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout.strip() if code == 0 else result.stderr


@pytest.mark.parametrize("source", ["federation", "secret", "metadata", "metadata of one identity", "service"])
def test_a_token_comes_from_what_the_environment_offers(azure, tmp_path, source):
    assert token(environment(azure, tmp_path, source)) == azure.token


@pytest.mark.parametrize("source", ["federation", "metadata"])
def test_a_token_for_another_service_names_it(azure, tmp_path, source):
    azure.resource, azure.scope = "499b84ac", "499b84ac/.default"
    env = {**environment(azure, tmp_path, source), "AZURE_STORAGE_KEY": "of-another-service"}
    assert token(env, "499b84ac") == azure.token


def test_the_life_of_a_token_may_be_a_text(azure, tmp_path):
    azure.life = {"expires_in": "3599", "expires_on": "1"}
    assert token(environment(azure, tmp_path, "metadata")) == azure.token


@pytest.mark.parametrize("missing", ["AZURE_CLIENT_ID", "AZURE_TENANT_ID"])
def test_half_an_application_is_named(azure, tmp_path, missing):
    env = environment(azure, tmp_path, "secret")
    del env[missing]
    said = token(env, code=1)
    assert f"AZURE_CLIENT_SECRET is set, but {missing} is not" in said and "s3cret" not in said
    assert azure.asked == 0


def test_a_refusal_is_told_without_what_was_sent(azure, tmp_path):
    env = {**environment(azure, tmp_path, "secret"), "AZURE_CLIENT_SECRET": "wrong-s3cret"}
    said = token(env, code=1)
    assert "credentials of Azure" in said and "400" in said and "wrong-s3cret" not in said


def test_blobs_are_read_and_written_with_a_token(azure, tmp_path):
    pair = web.self_signed(tmp_path, "localhost", "IP:127.0.0.1,DNS:localhost")
    with AzureStorage(tmp_path / "azure", pair=pair) as server:
        server.env = {**environment(azure, tmp_path, "federation"), "BUCKET_CA": str(pair[0])}
        run_program(server, "clock")
        assert azure.asked == 3  # one for each of its tests
        azure.token = jwt(aud="https://elsewhere.example")
        with pytest.raises(AssertionError, match="InvalidAuthenticationInfo|AuthenticationFailed|HTTP 40[13]"):
            run_program(server, "clock")


@pytest.mark.parametrize("missing", ["file", "answer"])
def test_a_token_that_cannot_be_had_does_not_say_that_there_is_no_state(azure, home, tmp_path, missing):
    pair = web.self_signed(tmp_path, "localhost", "IP:127.0.0.1,DNS:localhost")
    with AzureStorage(tmp_path / "azure", pair=pair) as store:
        home.env.update(environment(azure, tmp_path, "federation"))
        azure.life = {"expires_in": 0}  # so each request needs a new one
        with dayfly.Server(home, config=store.config()) as server:
            home.module("net", 'resource "terraform_data" "it" { input = "the-content-of-the-state" }\n')
            home.dayfly("run", "net", "--auto-approve", cwd=home.directory)
            if missing == "file":
                (tmp_path / "federated").rename(tmp_path / "away")
            else:
                azure.status = 404
            status, _, said = server.request("GET", "/v1/executors/net/state")
            assert status == 503, (status, said)  # 404 would tell the tool that there is none
            azure.status = 400
            if missing == "file":
                (tmp_path / "away").rename(tmp_path / "federated")
            assert "the-content-of-the-state" in home.dayfly("state", "pull", "net").stdout
