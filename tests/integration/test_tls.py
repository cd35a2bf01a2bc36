"""https between runner, tofu, clients and spawner: real curl, openssl and tofu."""

import shutil
import socket
import subprocess

import pytest

from lib import dayfly

MODULE = 'resource "terraform_data" "a" { input = "${var.n}" }\nvariable "n" { default = 1 }\n'
NAME = "dayfly.infra.svc"


def openssl(*args, **kwargs):
    result = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, check=False, **kwargs)
    assert result.returncode == 0, result.stderr
    return result.stdout


class Authority:
    """Somebody else's certificate authority."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        self.ca = directory / "ca.pem"
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=theirs",
                "-keyout", directory / "ca.key", "-out", self.ca)

    def issue(self, name, *hosts):
        """(certificate, key) for these hosts."""
        cert, key, request = (self.directory / f"{name}.{end}" for end in ("pem", "key", "csr"))
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        extensions = self.directory / "ext"
        extensions.write_text("subjectAltName=" + ",".join(hosts) + "\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.directory / "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", extensions, "-out", cert)
        return cert, key


def port_of(server):
    return server.url.rpartition(":")[2]


def curl(server, url, *args):
    """(exit code, body) of curl; the name of the service is at loopback."""
    port = port_of(server)
    result = subprocess.run(["curl", "-sS", "--max-time", "20", "--resolve", f"{NAME}:{port}:127.0.0.1", *map(str, args),
                             url.replace("PORT", port)], capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


@pytest.fixture
def own(home):
    """A server with a certificate that it made itself."""
    with dayfly.Server(home, "--set", f"server.tls.names={NAME}") as server:
        yield server


def test_its_own_certificate_is_for_the_configured_names_and_loopback(own):
    ca = own.data / "ca.pem"
    assert own.url.startswith("https://127.0.0.1:")
    for url in (f"https://{NAME}:PORT/livez", "https://127.0.0.1:PORT/livez", "https://localhost:PORT/livez"):
        assert curl(own, url, "--cacert", ca)[0] == 0, url
    # Whoever does not know the authority, or asks for another name, is warned.
    assert curl(own, "https://127.0.0.1:PORT/livez")[0] == 60
    other = curl(own, "https://other.example:PORT/livez", "--cacert", ca, "--connect-to", "other.example::127.0.0.1:")
    assert other[0] == 60
    assert "[+] certificate ok" in own.request("GET", "/readyz?verbose=true")[2].decode()


def test_ciphers_without_authentication_or_forward_secrecy_are_refused(home, tmp_path):
    theirs, port = Authority(tmp_path / "theirs"), dayfly.free_port()
    cert, key = theirs.issue("rsa", "IP:127.0.0.1")
    config = (f"advertiseUrl: https://127.0.0.1:{port}\n"
              f"server: {{tls: {{certFile: {cert}, keyFile: {key}, caFile: {theirs.ca}}}}}\n")
    offers = {"ECDHE-RSA-AES256-SHA": False, "ECDHE-RSA-AES128-SHA256": False, "AES128-GCM-SHA256": False,
              "AES256-SHA": False, "DHE-RSA-AES128-SHA": False, "ECDHE-RSA-AES128-GCM-SHA256": True,
              "ECDHE-RSA-CHACHA20-POLY1305": True}
    with dayfly.Server(home, config=config, listen=f"127.0.0.1:{port}") as server:
        for cipher, good in offers.items():
            code, body, _ = curl(server, "https://127.0.0.1:PORT/livez", "-k", "--tls-max", "1.2", "--ciphers",
                                 f"{cipher}:@SECLEVEL=0")
            assert (code == 0) == good, (cipher, code, body)


def test_plain_http_and_old_tls_are_refused(own):
    ca = own.data / "ca.pem"
    assert curl(own, "http://127.0.0.1:PORT/livez")[0] != 0
    assert curl(own, "https://127.0.0.1:PORT/livez", "--cacert", ca, "--tls-max", "1.1",
                "--ciphers", "DEFAULT@SECLEVEL=0")[0] != 0
    for version in ("1.2", "1.3"):
        assert curl(own, "https://127.0.0.1:PORT/livez", "--cacert", ca, f"--tlsv{version}",
                    "--tls-max", version)[:2] == (0, "ok\n")


def test_keys_are_for_their_owner_alone(own):
    for name in ("tls/key.pem", "tls/ca-key.pem"):
        assert (own.data / name).stat().st_mode & 0o077 == 0
    assert (own.data / "tls").stat().st_mode & 0o077 == 0


def test_a_whole_run_goes_over_https(home, own):
    """Claim, streams, plan, tofu's own state and the client that follows it all."""
    ca = own.data / "ca.pem"
    home.dayfly("run", home.module("net", MODULE), "--auto-approve", "--ca-file", ca)
    run = own.get("/v1/runs/net-1")
    assert run["status"]["phase"] == "Succeeded", run["status"]
    assert "terraform_data" in home.dayfly("state", "show", "net", "--ca-file", ca).stdout
    # Without the authority there is no talking to it.
    refused = home.dayfly("get", "runs", code=None)
    assert refused.returncode != 0 and "certificate" in refused.stderr


def test_clients_of_the_same_data_directory_find_what_to_trust(home):
    data = home.state
    with dayfly.Server(home, "--set", f"server.tls.names={NAME}", data=data):
        del home.env["DAYFLY_SERVER"]
        home.dayfly("run", home.module("net", MODULE), "--auto-approve")
        assert [r["metadata"]["name"] for r in home.json("get", "runs")["items"]] == ["net-1"]


def test_the_authority_outlives_a_restart_and_new_names(home):
    data = home.directory / "data"
    with dayfly.Server(home, "--set", f"server.tls.names={NAME}", data=data):
        before = (data / "ca.pem").read_bytes()
    with dayfly.Server(home, "--set", "server.tls.names=other.example", data=data) as server:
        assert (data / "ca.pem").read_bytes() == before
        assert curl(server, "https://other.example:PORT/livez", "--cacert", data / "ca.pem", "--connect-to",
                    "other.example::127.0.0.1:")[0] == 0


def test_configured_files_are_shown_and_taken_up_when_they_change(home, tmp_path):
    theirs = Authority(tmp_path / "theirs")
    first, second = theirs.issue("first", f"DNS:{NAME}", "IP:127.0.0.1"), theirs.issue("second", "IP:127.0.0.1")
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    shutil.copy(first[0], cert)
    shutil.copy(first[1], key)

    port = dayfly.free_port()
    config = (f"listen: 127.0.0.1:{port}\nadvertiseUrl: https://127.0.0.1:{port}\n"
              f"server: {{tls: {{certFile: {cert}, keyFile: {key}, caFile: {theirs.ca}}}}}\n")
    server = dayfly.Server(home, "--listen", f"127.0.0.1:{port}", config=config)
    with server:
        def shown():
            out = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", theirs.ca],
                                 input="", capture_output=True, text=True, check=False)
            assert "Verify return code: 0" in out.stdout, out.stdout + out.stderr
            return openssl("x509", "-noout", "-subject", input=out.stdout)

        assert "first" in shown()
        shutil.copy(second[0], cert)  # one of two is new
        assert "first" in shown()
        status, _, body = server.request("GET", "/readyz")
        assert status == 503 and "certificate" in body.decode(), body
        shutil.copy(second[1], key)
        assert "second" in shown()
        assert server.request("GET", "/readyz")[0] == 200
        # Runners and tofu trust what is configured, too.
        home.dayfly("run", home.module("net", MODULE), "--auto-approve", "--ca-file", theirs.ca)
    assert "the previous certificate stays in use" in server.log.read_text()


def test_a_peer_that_never_ends_its_handshake_holds_up_nobody(own):
    with socket.create_connection(("127.0.0.1", int(port_of(own)))) as silent:
        silent.sendall(b"\x16\x03\x01")
        assert curl(own, "https://127.0.0.1:PORT/livez", "--cacert", own.data / "ca.pem")[:2] == (0, "ok\n")
