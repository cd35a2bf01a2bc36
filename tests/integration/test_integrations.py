"""Credentials of providers: exactly the names of the contract, short-lived ones where a role is assumed or a token exchanged, and named
integrations that many executors use. AWS's STS and S3 are moto's."""

import base64
import json
import sys
import urllib.parse
import urllib.request

import pytest
from moto.server import ThreadedMotoServer

from lib import dayfly, web
from lib.dayfly import Server

# Each provider's keys with values of their own, and the names that tofu gets; @: the path of a file.
TABLE = {
    "aws": ({"aws_access_key_id": "AKIAFORPROVIDERS0001", "aws_secret_access_key": "v-aws-secret", "aws_session_token": "v-aws-token",
             "aws_account": "424242424242", "aws_default_region": "eu-west-7"},
            "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_ACCOUNT AWS_REGION"),
    "azurerm": ({"client_id": "v-azure-client", "client_secret": "v-azure-secret", "tenant_id": "v-azure-tenant",
                 "subscription_id": "v-azure-subscription"},
                "ARM_CLIENT_ID ARM_CLIENT_SECRET ARM_TENANT_ID ARM_SUBSCRIPTION_ID "
                "AZURE_CLIENT_ID AZURE_CLIENT_SECRET AZURE_TENANT_ID AZURE_SUBSCRIPTION_ID"),
    "gcp": ({"service_account_key": '{"private_key": "v-gcp-key"}', "gcp_project_id": "v-gcp-project"},
            "GOOGLE_APPLICATION_CREDENTIALS GOOGLE_PROJECT"),
    "mongodb_atlas": ({"org_id": "v-atlas-org", "public_key": "v-atlas-public", "private_key": "v-atlas-private"},
                      "MONGODB_ATLAS_ORG_ID MONGODB_ATLAS_PUBLIC_KEY MONGODB_ATLAS_PRIVATE_KEY"),
    "datadog": ({"api_url": "v-dd-url", "api_key": "v-dd-api", "app_key": "v-dd-app"}, "DD_HOST DD_API_KEY DD_APP_KEY"),
    "github": ({"token": "v-github-token"}, "GITHUB_TOKEN"),
    "gitlab": ({"token": "v-gitlab-token", "server_url": "v-gitlab-url"}, "GITLAB_TOKEN GITLAB_SERVER_URL"),
    "bitbucket": ({"user": "v-bitbucket-user", "key": "v-bitbucket-key"}, "BITBUCKET_USER BITBUCKET_KEY"),
    "azure_devops": ({"token": "v-devops-token", "organization": "v-devops-org"}, "AZURE_TOKEN AZURE_ORGANIZATION"),
    "github_ssh": ({"ssh-privatekey": "v-ssh-key", "known_hosts": "v-ssh-host"}, "GIT_SSH_COMMAND"),
}
LONG_LIVED = {"aws_access_key_id": "AKIALONGLIVED0000001", "aws_secret_access_key": "long-lived-secret-of-the-operator"}
ROLE = "arn:aws:iam::123456789012:role/deployer"

# Says who the step is for AWS, with the variables that tofu's providers and its s3 backend read.
WHO = "import boto3; print(boto3.client('sts', region_name='us-east-1').get_caller_identity()['Arn'])"


@pytest.fixture(scope="module")
def aws():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def asked(home, aws):
    """A user whose service, and its steps, find AWS at moto."""
    home.env["AWS_ENDPOINT_URL_STS"] = aws
    return home


def store(home, name, keys):
    for key, value in keys.items():
        home.dayfly("secret", "set", name, key, input=value)


def send(home, kind, name, code=0, verb="create", **spec):
    document = {"apiVersion": "dayfly.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return home.dayfly(verb, "-f", "-", input=json.dumps(document), code=code)


def executor(home, name, command, code=0, verb="create", **spec):
    """Its provisioner runs the command, in which $OUT is a file."""
    out = home.directory / f"{name}.out"
    text = 'resource "terraform_data" "%s" {\n  provisioner "local-exec" { command = %s }\n}\n'
    module = home.module(name, text % (name, json.dumps(command.replace("$OUT", str(out)))))
    result = send(home, "Executor", name, code, verb, source={"url": f"file://{module}", "kind": "directory"},
                  runtime={"name": home.runtime}, **spec)
    return out if code == 0 else result


def apply(home, name):
    home.dayfly("run", name, "--auto-approve", "--no-env")
    return home.dayfly("logs", f"{name}-1").stdout


def everything_told(home, server, name):
    """What a reader of any route, of the log of the service or of the processes' arguments can see."""
    routes = ["executors", "runs", "taskactions", "integrations", "secrets", "audit", f"runs/{name}-1/log", f"runs/{name}-1/events"]
    return "".join(server.request("GET", f"/v1/{r}")[2].decode() for r in routes) + server.log.read_text()


def test_each_provider_gives_the_names_of_the_contract_and_no_run_those_of_another(home):
    values = [v for keys, _ in TABLE.values() for v in keys.values()]
    with Server(home) as server:
        for provider, (keys, _) in TABLE.items():
            store(home, provider.replace("_", "-"), keys)
        given = executor(home, "given", "env; env >$OUT", integrations=[
            {"provider": p, "secretRef": {"name": p.replace("_", "-")}} for p in TABLE])
        bare = executor(home, "bare", "env >$OUT; cat /proc/[0-9]*/environ >>$OUT 2>/dev/null || true")
        apply(home, "given")
        apply(home, "bare")
        seen, others = given.read_text(), bare.read_text()
        names = {line.split("=")[0] for line in seen.splitlines()} - {line.split("=")[0] for line in others.splitlines()}
        assert names == {n for _, listed in TABLE.values() for n in listed.split()}
        assert not [v for v in values if v in others]
        told = everything_told(home, server, "given")
        assert not [v for v in values if v in told]


def test_a_step_gets_a_role_and_never_the_keys_that_assume_it(asked):
    home = asked
    with Server(home) as server:
        store(home, "aws", LONG_LIVED)
        send(home, "Integration", "prod", provider="aws", secretRef={"name": "aws"}, executors=["net"],
             assumeRole={"roleArn": ROLE, "externalId": "of-us", "duration": "20m", "region": "eu-west-7"})
        assert "assumed-role/deployer/" in home.dayfly("integration", "test", "prod").stdout
        where = {"name": "AWS_ENDPOINT_URL_STS", "value": home.env["AWS_ENDPOINT_URL_STS"]}
        out = executor(home, "net", f'{sys.executable} -c "{WHO}" >$OUT && env >>$OUT; cat /proc/$PPID/environ >>$OUT',
                       integrations=[{"name": "prod"}], environment=[where])
        apply(home, "net")
        seen = out.read_text()
        assert seen.splitlines()[0] == "arn:aws:sts::123456789012:assumed-role/deployer/net-1-apply"
        assert "AWS_SESSION_TOKEN=" in seen and "AWS_REGION=eu-west-7" in seen
        session = [line.split("=", 1)[1] for line in seen.splitlines() if line.startswith(("AWS_SECRET", "AWS_SESSION", "AWS_ACCESS"))]
        told = everything_told(home, server, "net")
        assert not [v for v in session if v in told]
        for value in LONG_LIVED.values():
            assert value not in seen + told
            assert not home.run("grep", "-rl", value, home.directory).stdout
        used = home.json("get", "integration", "prod")["status"]
        assert used["lastUsedBy"] == "net-1" and used["lastUsedAt"] and used["owner"]


def test_a_role_of_the_secret_is_assumed_for_the_state_in_s3_too(asked, aws):
    request = urllib.request.Request(f"{aws}/states", method="PUT", headers={"Authorization": "AWS testing:unverified"})
    urllib.request.urlopen(request, timeout=30).close()
    home = asked
    with Server(home):
        store(home, "aws", {**LONG_LIVED, "aws_account": "123456789012", "aws_assumed_role_name": "deployer", "aws_session_duration": "900"})
        out = executor(home, "net", "env >$OUT", integrations=[{"provider": "aws", "secretRef": {"name": "aws"}}], storage={
            "type": "s3", "config": {"bucket": "states", "region": "us-east-1", "endpoints": {"s3": aws}, "use_path_style": True,
                                     "skip_credentials_validation": True, "skip_metadata_api_check": True,
                                     "skip_requesting_account_id": True, "skip_region_validation": True, "skip_s3_checksum": True}})
        apply(home, "net")
        names = {line.split("=")[0] for line in out.read_text().splitlines() if line.startswith("AWS_")}
        assert names - {"AWS_EC2_METADATA_DISABLED"} == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCOUNT", "AWS_REGION"}
        assert LONG_LIVED["aws_access_key_id"] not in out.read_text()


def test_without_a_secret_the_service_itself_assumes_the_role(asked):
    home = asked
    service = {"AWS_ACCESS_KEY_ID": "AKIAOFTHESERVICE0001", "AWS_SECRET_ACCESS_KEY": "secret-of-the-service"}
    home.env.update(service)
    with Server(home):
        for name in service:
            del home.env[name]
        send(home, "Integration", "prod", provider="aws", executors=["net"], assumeRole={"roleArn": ROLE})
        assert "assumed-role/deployer/" in home.dayfly("integration", "test", "prod").stdout
        out = executor(home, "net", "env >$OUT; cat /proc/[0-9]*/environ >>$OUT 2>/dev/null || true", integrations=[{"name": "prod"}])
        apply(home, "net")
        assert "AWS_SESSION_TOKEN=" in out.read_text()
        assert not [v for v in service.values() if v in out.read_text()]


class Refusing(web.Handler):
    def do_POST(self):  # noqa: N802
        self.body()
        return self.answer(403, b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>not by you</Message></Error></ErrorResponse>")


def test_a_role_that_is_refused_fails_the_step_in_the_words_of_aws(home):
    with web.Server(Refusing) as sts:
        home.env["AWS_ENDPOINT_URL_STS"] = sts.url
        store(home, "aws", LONG_LIVED)
        send(home, "Integration", "prod", provider="aws", secretRef={"name": "aws"}, assumeRole={"roleArn": ROLE})
        executor(home, "net", "true", integrations=[{"name": "prod"}])
        home.dayfly("run", "net", "--auto-approve", code=3)
        status = home.json("get", "run", "net-1")["status"]
        assert status["reason"] == "IntegrationFailed"
        assert f"integration prod: role {ROLE}: STS AssumeRole: HTTP 403 AccessDenied: not by you" in status["message"]
        assert "not by you" in home.dayfly("integration", "test", "prod", code=3).stderr


def test_keys_of_a_private_store_that_aws_cannot_test_are_told_with_the_way_out(home):
    """AWS is out of reach, as where such a store stands."""
    home.env["https_proxy"] = "http://127.0.0.1:1"
    with Server(home):
        store(home, "minio", LONG_LIVED)
        send(home, "Integration", "private", provider="aws", secretRef={"name": "minio"})
        said = home.dayfly("integration", "test", "private", code=None)
    assert said.returncode and "integration private: " in said.stderr and "sts.us-east-1.amazonaws.com" in said.stderr, said
    assert "name that in AWS_ENDPOINT_URL_STS of the service's environment" in said.stderr


class Google(web.Handler):
    def do_POST(self):  # noqa: N802
        asked = json.loads(self.body())
        good = asked["subjectToken"] == "identity-of-the-step" and asked["audience"] == "//iam/pool"
        return self.answer(200, b'{"access_token": "of-google", "expires_in": 60}', Content_Type="application/json") if good else self.answer(400)


IDENTITIES = {
    "aws": {"webIdentity": {"roleArn": ROLE}},
    "azure": {"workloadIdentity": {"clientId": "c", "tenantId": "t", "subscriptionId": "s"}},
    "gcp": {"federation": {"projectId": "p", "provider": "//iam/pool"}},
}
IDENTITY_NAMES = """AWS_REGION AWS_ROLE_ARN AWS_ROLE_SESSION_NAME AWS_WEB_IDENTITY_TOKEN_FILE
    ARM_CLIENT_ID ARM_OIDC_TOKEN_FILE_PATH ARM_SUBSCRIPTION_ID ARM_TENANT_ID ARM_USE_OIDC
    AZURE_CLIENT_ID AZURE_FEDERATED_TOKEN_FILE AZURE_SUBSCRIPTION_ID AZURE_TENANT_ID GOOGLE_APPLICATION_CREDENTIALS GOOGLE_PROJECT""".split()


def test_a_step_exchanges_an_identity_token_and_no_other_step_sees_it(asked):
    home = asked
    token = home.directory / "identity"
    token.write_text("identity-of-the-step\n")
    exchange = dayfly.BUILD / "tools" / "gcp_token"
    with web.Server(Google) as google, Server(home, "--set", f"engine.local.identityTokenFile={token}") as server:
        for name, provider in (("aws", "aws"), ("azure", "azurerm"), ("gcp", "gcp")):
            identity = json.loads(json.dumps(IDENTITIES[name]))
            if name == "gcp":
                identity["federation"]["tokenUrl"] = google.url
            send(home, "Integration", name, provider=provider, **identity)
            said = home.dayfly("integration", "test", name).stdout
            assert f"complete, and {token} has a token; {provider} was not asked: only a step" in said, said
        token.rename(token.with_suffix(".away"))
        assert f"engine.local.identityTokenFile: open {token}" in home.dayfly("integration", "test", "gcp", code=3).stderr
        token.with_suffix(".away").rename(token)
        where = {"name": "AWS_ENDPOINT_URL_STS", "value": home.env["AWS_ENDPOINT_URL_STS"]}
        out = executor(home, "net", f'{sys.executable} -c "{WHO}" >$OUT && {exchange} >>$OUT && env >>$OUT; cat $ARM_OIDC_TOKEN_FILE_PATH',
                       integrations=[{"name": n} for n in IDENTITIES], environment=[where])
        blind = executor(home, "blind", f"cat {token} >$OUT || true")
        log = apply(home, "net")
        seen = out.read_text().splitlines()
        assert seen[0] == "arn:aws:sts::123456789012:assumed-role/deployer/net-1-apply" and seen[1] == "of-google"
        names = {line.split("=")[0] for line in seen}
        assert names >= set(IDENTITY_NAMES) and not {n for n in names if n.startswith(("ARM_", "AZURE_", "GOOGLE_"))} - set(IDENTITY_NAMES)
        assert "identity-of-the-step" not in log + everything_told(home, server, "net") and "***" in log
        apply(home, "blind")
        assert not blind.read_text()


# Shows all that it was given, and the token as it is in the middle of the step. Nothing is declared sensitive.
TALKATIVE = """
resource "terraform_data" "all" {
  provisioner "local-exec" {
    command = "(env; cat $ARM_OIDC_TOKEN_FILE_PATH) | tee all; echo waiting; until [ -e $GO ]; do sleep 0.02; done; cat $ARM_OIDC_TOKEN_FILE_PATH | tee -a all"
  }
}
output "all" { value = terraform_data.all.id == "" ? "" : file("${path.module}/all") }
"""


@pytest.mark.parametrize("storage", ["managed", "local"])
def test_a_reader_gets_neither_the_keys_of_a_step_nor_its_token_nor_a_renewed_one(asked, storage):
    home, file, token, go = asked, asked.directory / "tokens", asked.directory / "identity", asked.directory / "go"
    tokens = {role: home.json("token-file", "create", "--name", role, "--role", role, "--token-file", file)["token"] for role in ("read", "admin")}
    token.write_text("identity-when-it-began\n")
    home.env["DAYFLY_TOKEN"] = tokens["admin"]
    with Server(home, "--set", f"auth.tokenFile={file}", "--set", "engine.local.isolation=auto",
                "--set", f"engine.local.identityTokenFile={token}") as server:
        store(home, "aws", LONG_LIVED)
        send(home, "Integration", "aws", provider="aws", secretRef={"name": "aws"}, assumeRole={"roleArn": ROLE})
        send(home, "Integration", "azure", provider="azurerm", **IDENTITIES["azure"])
        send(home, "Executor", "net", source={"url": f"file://{home.module('net', TALKATIVE)}", "kind": "directory"},
             runtime={"name": home.runtime}, integrations=[{"name": "aws"}, {"name": "azure"}],
             environment=[{"name": "GO", "value": str(go)}],
             storage={"type": "managed"} if storage == "managed" else {"type": "local", "path": str(home.directory / "state")})
        home.dayfly("run", "net", "--auto-approve", "--detach", "--no-env")

        def told(role, *routes):
            got = [server.request("GET", f"/v1/{r}", headers={"Authorization": f"Bearer {tokens[role]}"}) for r in routes]
            return "".join(body.decode() for status, _, body in got if status == 200)
        dayfly.wait_for("the first half", lambda: "waiting" in told("read", "runs/net-1/log").replace("echo waiting", ""))
        token.write_text("identity-that-was-renewed\n")
        go.touch()
        home.dayfly("logs", "-f", "net-1")

        outputs = ("executors/net/outputs", "runs/net-1/outputs")
        for route in outputs:
            everything = json.loads(told("admin", route))["all"]["value"]
            session = [line.split("=", 1)[1] for line in everything.splitlines() if line.startswith(("AWS_SECRET", "AWS_SESSION", "AWS_ACCESS"))]
            assert len(session) == 3 and "identity-when-it-began\nidentity-that-was-renewed\n" in everything
            seen = json.loads(told("read", route))["all"]["value"]
            assert "AWS_SESSION_TOKEN=***\n" in seen and seen.endswith("\n***\n***\n"), seen
        log = told("read", "runs/net-1/log")
        assert "AWS_SESSION_TOKEN=***" in log and log.count("(local-exec): ***") == 2
        seen = told("read", "runs", "taskactions", "runs/net-1/log", "runs/net-1/events", *outputs) + server.log.read_text()
        assert not [value for value in (*session, "identity-when-it-began", "identity-that-was-renewed") if value in seen]


def test_a_certificate_is_a_file_of_the_step_with_its_bytes(home):
    certificate = bytes(range(256))
    store(home, "azure", {"client_id": "c-1", "tenant_id": "t-1", "subscription_id": "s-1", "client_certificate_password": "open-sesame",
                          "client_certificate": base64.b64encode(certificate).decode()})
    out = executor(home, "net", "cp $ARM_CLIENT_CERTIFICATE_PATH $OUT; stat -c %a $ARM_CLIENT_CERTIFICATE_PATH; env | grep ^ARM_",
                   integrations=[{"provider": "azurerm", "secretRef": {"name": "azure"}}])
    log = apply(home, "net")
    assert out.read_bytes() == certificate
    assert "600" in log and "ARM_CLIENT_CERTIFICATE_PASSWORD=***" in log and "ARM_CLIENT_SECRET" not in log
    home.dayfly("secret", "set", "azure", "client_secret", "--force", input="both")
    home.dayfly("run", "net", "--auto-approve", code=3)
    assert "exactly one of the keys client_secret and client_certificate" in home.json("get", "run", "net-2")["status"]["message"]


def test_a_named_integration_is_for_its_executors_alone(home):
    store(home, "hub", TABLE["github"][0])
    send(home, "Integration", "hub", provider="github", secretRef={"name": "hub"}, executors=["net"])
    send(home, "Integration", "hub", code=1, provider="github", secretRef={"name": "hub"})
    for name, entry, words in (("net", {"name": "nowhere"}, 'there is no integration "nowhere"'),
                               ("other", {"name": "hub"}, 'executor other may not use the integration "hub", which is for net')):
        assert words in executor(home, name, "true", code=None, integrations=[entry]).stderr
    pair = [{"name": "hub"}, {"provider": "github", "secretRef": {"name": "hub"}}]
    assert "github and github exclude each other: both set GITHUB_TOKEN" in executor(home, "net", "true", code=3, integrations=pair).stderr
    out = executor(home, "net", "env >$OUT", integrations=[{"name": "hub"}])
    home.dayfly("run", "net", "--auto-approve", env={"GITHUB_TOKEN": "of-the-shell"})
    assert "GITHUB_TOKEN=v-github-token" in out.read_text()

    assert "integration \"hub\" is in use by executor net" in home.dayfly("delete", "integration", "hub", code=1).stderr
    assert 'executor "integration"' not in home.dayfly("delete", "integration", "none", "hub", code=1).stderr
    assert "executor net, integration hub" in home.dayfly("secret", "delete", "hub", code=1).stderr
    narrower = send(home, "Integration", "hub", verb="apply", code=1, provider="github", secretRef={"name": "hub"}, executors=["other"])
    assert "is in use by executor net" in narrower.stderr
    other = send(home, "Integration", "hub", verb="apply", code=3, provider="gitlab", secretRef={"name": "hub"}, executors=["net"])
    assert "spec.provider: cannot be changed: it is github" in other.stderr
    assert "changed" in home.dayfly("edit", "integration", "hub", env={"EDITOR": "sed -i 's/^spec:/spec:\\n  description: of the hub/'"}).stdout
    assert "of the hub" in home.dayfly("describe", "integration", "hub").stdout
    executor(home, "net", "true", verb="apply")
    assert home.dayfly("delete", "integrations", "hub").stdout == "integration/hub deleted\n"
    assert not home.json("get", "integrations")["items"]
    assert [s["name"] for s in home.json("get", "secrets")["items"]] == ["hub"]


class Authority(web.Handler):
    """Of Azure, which exists in the cloud alone; as Microsoft documents it."""

    def do_POST(self):  # noqa: N802
        asked = dict(urllib.parse.parse_qsl(self.body().decode()))
        good = self.path == "/t-1/oauth2/v2.0/token" and asked == {
            "grant_type": "client_credentials", "client_id": "c-1", "client_secret": "open/+&sesame", "scope": "https://management.azure.com/.default"}
        told = {"access_token": "of-azure", "expires_in": 3599} if good else {"error": "invalid_client", "error_description": "AADSTS7000215"}
        return self.answer(200 if good else 401, json.dumps(told).encode(), Content_Type="application/json")


def test_azure_is_asked_for_a_client_secret_and_nobody_for_other_keys(home):
    keys = {"client_id": "c-1", "tenant_id": "t-1", "subscription_id": "s-1"}
    with web.Server(Authority) as authority:
        home.env["AZURE_AUTHORITY_HOST"] = authority.url
        with Server(home) as server:
            for name, secret in (("good", "open/+&sesame"), ("bad", "of-yesterday")):
                store(home, name, {**keys, "client_secret": secret})
                send(home, "Integration", name, provider="azurerm", secretRef={"name": name})
            assert "Azure takes the client secret" in home.dayfly("integration", "test", "good").stdout
            assert "HTTP 401" in home.dayfly("integration", "test", "bad", code=3).stderr
            store(home, "dog", TABLE["datadog"][0])
            send(home, "Integration", "dog", provider="datadog", secretRef={"name": "dog"})
            said = home.dayfly("integration", "test", "dog").stdout
            assert "has the keys that a step needs (api_key, api_url, app_key); datadog was not asked" in said, said
            told = everything_told(home, server, "none")
            assert not [v for v in ("of-azure", "of-yesterday", "sesame") if v in told + said]


def test_only_an_admin_hands_out_an_identity_or_serves_every_executor(home):
    file = home.directory / "tokens"
    tokens = {name: home.json("token-file", "create", "--name", name, "--role", role, "--token-file", file)["token"]
              for name, role in (("ada", "write"), ("root", "admin"))}
    with Server(home, "--set", f"auth.tokenFile={file}"):
        home.env["DAYFLY_TOKEN"] = tokens["root"]
        store(home, "roots", TABLE["github"][0])
        send(home, "Integration", "of-root", provider="github", secretRef={"name": "roots"}, executors=["mine"])

        home.env["DAYFLY_TOKEN"] = tokens["ada"]
        home.dayfly("secret", "set", "hub", "token", "--executor", "net", input="hub-token")
        for spec, words in (({"provider": "github", "secretRef": {"name": "hub"}}, "only an admin allows every executor"),
                            ({"provider": "aws", "executors": ["net"], "assumeRole": {"roleArn": ROLE}}, "which only an admin may grant"),
                            ({"provider": "github", "executors": ["net"], "secretRef": {"name": "roots"}}, 'secret "roots" belongs to root')):
            assert words in send(home, "Integration", "hub", code=1, **spec).stderr
        send(home, "Integration", "hub", provider="github", secretRef={"name": "hub"}, executors=["net", "wide"])
        refused = executor(home, "wide", "true", code=1, integrations=[{"name": "hub"}]).stderr
        assert 'executor wide may not use the secret "hub", which is for net' in refused
        assert "belongs to root: only its owner and an admin" in home.dayfly("delete", "integration/of-root", code=1).stderr
        assert "belongs to root" in home.dayfly("integration", "test", "of-root", code=1).stderr
        assert "only its owner or an admin makes this executor" in executor(home, "mine", "true", code=1).stderr
