"""As whom a service sees its callers, and how people sign in: `dayfly whoami`, `login` and `logout`, with real OpenID providers."""

import hashlib
import json
import re
import signal
import socket
import subprocess
import threading

import pytest

from lib.dayfly import DAYFLY, DEADLINE, Server, wait_for
from lib.oidc import DeviceProvider, Provider
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


def test_whoami_of_who_may_something_on_some_executors_alone_names_the_grant_and_no_role(home, provider):
    grants = "grants: {net: {to: {groups: [net-team]}, on: {names: [net]}, preset: write}, boss: {to: {users: [boss]}, on: {all: true}, preset: admin}}"
    with Server(home, config=configuration(provider, grants=grants)):
        home.env["DAYFLY_TOKEN"] = provider.sign_in("bob")
        assert home.json("whoami") == {"name": f"{provider.issuer}#bob", "role": "none", "knownBy": "openid", "groups": ["net-team"],
                                       "grants": ["net"]}


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


# ---- dayfly login ----

TEAM = {"bob": {"groups": ["net-team"]}, "carol": {"groups": ["visitors", "sales"]}}


@pytest.fixture(scope="module")
def devices():
    with DeviceProvider(TEAM) as provider:
        yield provider


@pytest.fixture
def brief():
    """Its ID tokens are good for so short a time that each command renews them."""
    with DeviceProvider(TEAM, IdToken=25) as provider:
        yield provider


def logins(home):
    path = home.directory / ".config" / "dayfly" / "logins.json"
    return json.loads(path.read_text())["logins"] if path.exists() else {}


class Listener:
    """Something that listens, keeps what it is asked, and answers `answers`: {path: JSON}."""

    def __init__(self, answers={}):
        self.answers = answers

    def __enter__(self):
        self.socket, self.heads = socket.create_server(("127.0.0.1", 0)), []
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()
        return self

    def listen(self):
        while True:
            connection = self.socket.accept()[0]
            with connection:
                head = connection.recv(65536).decode()
                if head == "end":
                    return
                self.heads.append(head)
                body = json.dumps(self.answers.get(head.split()[1], {}))
                status = "200 OK\r\nContent-Type: application/json" if head.split()[1] in self.answers else "404 Not Found"
                connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())

    def __exit__(self, *_):
        with socket.create_connection(self.socket.getsockname()) as last:
            last.sendall(b"end")
        self.thread.join()
        self.socket.close()


class Login:
    """A `dayfly login` that runs."""

    def __init__(self, home, *args):
        self.process = home.popen(DAYFLY, "login", *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = ""

    def page(self):
        """The page of the code, when it is shown."""
        for line in self.process.stderr:
            self.said += line
            if shown := re.search(r"open (http\S+)", line):
                return shown[1]
        raise AssertionError(self.said)

    def end(self, code=0):
        self.said += self.process.stderr.read()
        out = self.process.stdout.read()
        assert self.process.wait(timeout=DEADLINE) == code, self.said
        return out, self.said


def sign_in(home, provider, name="bob", *args):
    login = Login(home, *args)
    assert "Success" in provider.enter_code(login.page(), name)
    return login.end()


def test_who_signs_in_with_a_code_is_known_until_the_logout_which_revokes_the_refresh_token(home, devices):
    with Server(home, config=configuration(devices)) as server:
        assert "a bearer token is needed" in home.dayfly("whoami", code=1).stderr
        out, said = sign_in(home, devices)
        assert out == f"signed in to {server.url} as {devices.issuer}#bob, role write\n"
        assert f"sign in to {server.url} at {devices.issuer}, client dayfly" in said
        assert re.search(r"code: [A-Z]{4}-[A-Z]{4} \(for 10 min", said), said
        kept = logins(home)[server.url]
        assert kept["issuer"] == devices.issuer and kept["clientId"] == "dayfly"
        directory = home.directory / ".config" / "dayfly"
        assert {p.name: p.stat().st_mode & 0o7777 for p in [directory, *directory.iterdir()]} == {
            "dayfly": 0o700, "logins.json": 0o600, "logins.json.lock": 0o600}
        assert home.json("whoami")["groups"] == ["net-team"]
        assert home.dayfly("logout").stdout == f"signed out of {server.url}\n"
        assert logins(home) == {} and "a bearer token is needed" in home.dayfly("whoami", code=1).stderr
        assert "there is no login for" in home.dayfly("logout", code=1).stderr
        assert devices.ask("/token", grant_type="refresh_token", client_id="dayfly",
                           refresh_token=kept["refreshToken"])["error"] == "invalid_grant"
    for secret in (kept["idToken"], kept["refreshToken"]):
        assert secret not in said + out + server.log.read_text()


def test_who_declines_is_told_so_and_nothing_is_kept(home, devices):
    with Server(home, config=configuration(devices)):
        login = Login(home)
        assert "interrupted" in devices.enter_code(login.page(), "bob", decline=True)
        assert "the sign-in was declined: the OpenID provider" in login.end(1)[1]
    assert logins(home) == {}


def test_a_code_that_nobody_enters_in_time_ends_the_sign_in(home):
    with DeviceProvider(TEAM, DeviceCode=2) as provider, Server(home, config=configuration(provider)):
        assert "the code has expired" in Login(home).end(1)[1]
        provider.fault(code={"expires_in": 600})  # then only the provider knows
        assert "the code has expired: the OpenID provider" in Login(home).end(1)[1]
    assert logins(home) == {}


def test_a_provider_that_wants_to_be_asked_more_rarely_or_is_away_for_a_moment_is_asked_again(home, devices):
    with Server(home, config=configuration(devices)):
        devices.fault(slowDown=1)
        sign_in(home, devices)
        devices.fault(tokenStatus=503)
        login = Login(home)
        page = login.page()
        wait_for("a question in vain", lambda: devices.fault(tokenStatus=503)["failed"])
        devices.fault()
        devices.enter_code(page, "bob")
        login.end()


def test_who_is_in_no_grant_is_refused_and_keeps_no_login(home, devices):
    with Server(home, config=configuration(devices)):
        login = Login(home)
        devices.enter_code(login.page(), "carol")
        assert "one of the token's groups: visitors, sales" in login.end(1)[1]
    assert logins(home) == {}


@pytest.mark.parametrize("fault, args, said", [
    ({"discovery": {"issuer": "https://evil.example.com"}}, [], 'says that its issuer is "https://evil.example.com", not "http://localhost:'),
    ({"discovery": {"device_authorization_endpoint": None}}, [], "no sign-in with a code (device authorization grant)"),
    ({"discovery": {"device_authorization_endpoint": "http://evil.example.com/"}}, [], "names no device_authorization_endpoint with https://"),
    ({"code": {"verification_uri": "http://evil.example.com/"}}, [], "gives no code with an https:// page"),
    ({}, ["--client-id", "web"], 'the client "web" must be a public one that has the device authorization grant'),
    ({}, ["--issuer", "http://id.example.com"], 'issuer: "http://id.example.com" must be an https:// URL'),
    ({}, ["--server", "http://dayfly.example.com"], "must be an https:// URL"),
    ({}, ["--issuer-ca-file", "/nowhere.pem"], "--issuer-ca-file /nowhere.pem"),
])
def test_what_cannot_be_trusted_or_has_no_codes_is_refused_before_a_code_is_shown(home, devices, fault, args, said):
    with Server(home, config=configuration(devices)):
        devices.fault(**fault)
        answer = Login(home, *args)
        out, err = answer.end(answer.process.wait(timeout=DEADLINE))
        devices.fault()
        assert answer.process.returncode in (1, 3) and said in err and "code:" not in err, err
    assert logins(home) == {}


def test_a_service_without_a_provider_and_no_service_at_all_say_so(home):
    assert "which service? --server URL or DAYFLY_SERVER names it" in home.dayfly("login", code=1).stderr
    with Server(home):
        assert "this service has no OpenID provider (auth.oidc)" in home.dayfly("login", code=1).stderr


@pytest.mark.parametrize("clock", [-7200, 7200])
def test_a_clock_that_is_wrong_is_named(home, clock):
    with DeviceProvider(TEAM, DeviceCode=86400) as provider, Server(home, config=configuration(provider)):
        provider.fault(clock=clock)
        login = Login(home)
        provider.enter_code(login.page(), "bob")
        assert "is of another time than the clock of this machine" in login.end(1)[1]
    assert logins(home) == {}


def test_a_token_that_the_provider_did_not_sign_for_this_client_is_not_kept(home, devices):
    with DeviceProvider(TEAM, clients=("dayfly", "wiki")) as other, Server(home, config=configuration(devices)):
        code = other.ask("/device/auth", client_id="wiki", scope="openid")
        other.enter_code(code["verification_uri_complete"], "bob")
        tokens = other.ask("/token", client_id="wiki", device_code=code["device_code"],
                           grant_type="urn:ietf:params:oauth:grant-type:device_code")
        devices.fault(tokens={"id_token": tokens["id_token"]})
        login = Login(home)
        devices.enter_code(login.page(), "bob")
        assert "the OpenID provider's token: " in login.end(1)[1]
        devices.fault()
    assert logins(home) == {}


def test_an_expired_login_is_renewed_by_one_command_at_a_time(home, brief):
    with Server(home, config=configuration(brief)) as server:
        sign_in(home, brief)
        first = logins(home)[server.url]["refreshToken"]
        several = [home.popen(DAYFLY, "whoami", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
        for one in several:
            assert "#bob" in one.communicate(timeout=DEADLINE)[0]
        assert logins(home)[server.url]["refreshToken"] != first


def test_a_renewal_that_is_interrupted_keeps_the_new_refresh_token(home, brief):
    with Server(home, config=configuration(brief)):
        sign_in(home, brief)
        brief.fault(hold=True)
        command = home.popen(DAYFLY, "whoami", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_for("the renewal", lambda: brief.fault(hold=True)["held"])
        command.send_signal(signal.SIGINT)
        brief.fault()
        command.communicate(timeout=DEADLINE)
        assert command.returncode == -signal.SIGINT
        assert "#bob" in home.dayfly("whoami").stdout


def test_a_renewal_whose_id_token_is_refused_keeps_the_new_refresh_token(home, brief):
    with Server(home, config=configuration(brief)):
        sign_in(home, brief)
        for answer in {"id_token": "a.b.c"}, {"id_token": None}:
            brief.fault(tokens=answer)
            assert "the login for" in home.dayfly("whoami", code=None).stderr
            brief.fault()
            assert "#bob" in home.dayfly("whoami").stdout


def test_what_a_service_or_a_provider_says_moves_no_terminal(home, devices):
    service = {"/v1/login": {"issuer": devices.issuer, "clientId": "dayfly"}, "/v1/whoami": {"name": "bob\x1b[2J", "role": "write\x1b[2J"}}
    with Listener(service) as listener:
        out, said = sign_in(home, devices, "bob", "--server", listener.url)
        assert "as bob" in out and "\x1b" not in out + said
    with Server(home, config=configuration(devices)):
        page = "https://id.example.com/"
        for fault in {"user_code": "\x1b[2J"}, {"verification_uri": page + "\x1b[2J"}, {"verification_uri_complete": page + "\x7f"}:
            devices.fault(code=fault)
            answer = Login(home)
            said = answer.end(answer.process.wait(timeout=DEADLINE))[1]
            assert "control characters" in said and "code:" not in said and answer.process.returncode, said
        devices.fault()


def test_a_login_that_cannot_be_renewed_says_what_to_do(home, brief):
    with Server(home, config=configuration(brief)) as server:
        sign_in(home, brief, "bob", "--scope", "openid groups")
        expired = f"the login for {server.url} has expired: run `dayfly login --server {server.url}`"
        assert expired in home.dayfly("whoami", code=1).stderr
        sign_in(home, brief)
        brief.fault(tokenStatus=503)
        assert "has expired and could not be renewed" in home.dayfly("whoami", code=1).stderr
        brief.fault()
        assert "#bob" in home.dayfly("whoami").stdout
        brief.ask("/token/revocation", client_id="dayfly", token=logins(home)[server.url]["refreshToken"])
        said = home.dayfly("whoami", code=1).stderr
        assert "refuses: invalid_grant" in said and "run `dayfly login" in said


def test_a_logout_says_when_the_refresh_token_is_not_revoked(home, devices):
    with Server(home, config=configuration(devices)):
        sign_in(home, devices)
        devices.fault(discovery={"revocation_endpoint": None})
        assert "revokes no tokens" in home.dayfly("logout").stderr
        devices.fault()
        sign_in(home, devices)
        devices.fault(discovery={"issuer": "https://evil.example.com"})
        assert "is removed here, but the refresh token is not revoked" in home.dayfly("logout", code=3).stderr
        devices.fault()
    assert logins(home) == {}


def test_a_token_that_is_given_counts_before_the_login_and_the_login_before_that_of_this_machine(home, devices):
    tokens = home.directory / "tokens"
    tokens.write_text("".join(f"{name} read {hashlib.sha256(name.encode()).hexdigest()}\n" for name in ("filed", "shell")))
    tokens.chmod(0o600)
    with Server(home, config=configuration(devices).replace("auth:\n", f"auth:\n  tokenFile: {tokens}\n")):
        sign_in(home, devices)
        mine = home.directory / "mine"
        mine.write_text("filed\n")
        given = {"DAYFLY_TOKEN": "shell"}
        assert home.json("whoami", "--token-file", mine, env=given)["name"] == "filed"
        assert home.json("whoami", env=given)["name"] == "shell"
        assert home.json("whoami")["name"] == f"{devices.issuer}#bob"
    with Server(home, data=home.state) as server:
        del home.env["DAYFLY_TOKEN"]
        assert home.json("whoami")["name"] == "local"
        path = home.directory / ".config" / "dayfly" / "logins.json"
        path.write_text(json.dumps({"logins": {server.url: {**list(logins(home).values())[0]}}}))
        assert "is that of `dayfly login`: sign in again" in home.dayfly("whoami", code=1).stderr
        del home.env["DAYFLY_SERVER"]
        assert "is that of `dayfly login`: sign in again" in home.dayfly("whoami", code=1).stderr


def test_a_login_goes_to_the_service_with_its_url_and_to_no_other_one(home, devices):
    with Server(home, config=configuration(devices)) as server:
        sign_in(home, devices)
        port = server.url.rpartition(":")[2]
        assert home.json("whoami", "--server", server.url + "/")["role"] == "write"
        for other in (f"http://localhost:{port}", f"http://127.0.0.1:{port}/x", f"http://127.0.0.2:{port}"):
            assert "#bob" not in home.dayfly("whoami", "--server", other, code=1).stderr
        with Listener() as listener:
            home.dayfly("whoami", "--server", listener.url, code=1)
        assert listener.heads and not any("authorization" in head.lower() for head in listener.heads)


def test_a_file_of_logins_that_others_may_read_or_that_is_none_is_refused(home, devices):
    with Server(home, config=configuration(devices)) as server:
        sign_in(home, devices)
        path = home.directory / ".config" / "dayfly" / "logins.json"
        text = path.read_text()
        path.chmod(0o644)
        for command in ("whoami", "login", "logout"):
            assert "logins.json: others may read it (mode 0644)" in home.dayfly(command, code=1).stderr
        tokens = home.directory / "token"
        tokens.write_text("x\n")
        assert "others may read" not in home.dayfly("whoami", "--token-file", tokens, code=1).stderr
        path.chmod(0o600)
        assert home.json("whoami")["role"] == "write"
        for broken in ("", "[]", text[:-5], '{"logins": []}x'):
            path.write_text(broken)
            assert "is not a file of `dayfly login`" in home.dayfly("whoami", code=3).stderr
        path.write_text(text)
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
        assert "logins.json" in home.dayfly("whoami", code=1).stderr
        assert server.url in json.loads(text)["logins"]


def test_an_interrupted_sign_in_leaves_nothing(home, devices):
    with Server(home, config=configuration(devices)):
        login = Login(home)
        login.page()
        login.process.send_signal(signal.SIGINT)
        login.end(-signal.SIGINT)
    assert not (home.directory / ".config").exists()
