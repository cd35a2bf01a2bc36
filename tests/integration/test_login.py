"""As whom a service sees its callers."""

import hashlib
import json

import pytest

from lib.dayfly import Server
from lib.oidc import Provider
from test_oidc import PEOPLE, configuration


@pytest.fixture(scope="module")
def provider():
    with Provider(PEOPLE) as provider:
        yield provider


def test_whoami_names_the_person_their_groups_and_the_grants_that_name_them(home, provider):
    with Server(home, config=configuration(provider)) as server:
        home.env["DAYFLY_TOKEN"] = provider.sign_in("alice")
        name = f"{provider.issuer}#alice"
        assert home.json("whoami") == {"name": name, "role": "admin", "knownBy": "openid", "groups": ["platform", "net-team"],
                                       "grants": ["platform", "network"]}
        assert home.dayfly("whoami").stdout.splitlines() == [
            f"Service:   {server.url}", f"Name:      {name}", "Role:      admin", "Known by:  openid",
            "Groups:    platform, net-team", "Grants:    platform, network"]
        home.env["DAYFLY_TOKEN"] = provider.sign_in("carol")
        assert "groups: visitors, sales" in home.dayfly("whoami", code=1).stderr


def test_whoami_tells_a_token_of_the_file_from_the_user_of_this_machine(home):
    with Server(home) as server:
        assert home.json("whoami") == {"name": "local", "role": "admin", "knownBy": "local", "groups": [], "grants": []}
        assert server.request("GET", "/v1/whoami", headers={"Authorization": "Bearer x"})[0] == 401
    tokens = home.directory / "tokens"
    tokens.write_text(f"local read {hashlib.sha256(b'a-token').hexdigest()}\n")
    tokens.chmod(0o600)
    with Server(home, config=f"auth: {{tokenFile: {tokens}}}\n", data=home.directory / "other"):
        home.env["DAYFLY_TOKEN"] = "a-token"
        assert home.json("whoami") == {"name": "local", "role": "read", "knownBy": "tokenFile", "groups": [], "grants": []}
        assert home.dayfly("whoami").stdout.endswith("Groups:    -\nGrants:    -\n")


def test_where_to_sign_in_is_told_to_everybody_and_nothing_else(home, provider):
    with Server(home, config=configuration(provider, scopes="openid teams")) as server:
        status, _, body = server.request("GET", "/v1/login", headers={})
        assert (status, json.loads(body)) == (200, {"issuer": provider.issuer, "clientId": "dayfly", "scopes": "openid teams"})
    with Server(home, data=home.directory / "other") as server:
        status, _, body = server.request("GET", "/v1/login", headers={})
        assert status == 404 and "no OpenID provider" in json.loads(body)["detail"]
