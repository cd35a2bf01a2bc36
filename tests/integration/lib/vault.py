"""A real HashiCorp Vault, everything in memory (tests/tools/vault), and a cluster that vouches for accounts to it."""

import base64
import json
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

from lib import dayfly, web


class Reviewer(web.Handler):
    """TokenReview, as Vault asks an API server: every token in self.server.owner.tokens is of the account infra/dayfly."""

    def do_POST(self):
        self.server.owner.asked += 1
        token = json.loads(self.body())["spec"]["token"]
        user = {"username": "system:serviceaccount:infra:dayfly", "uid": "u-1", "groups": []}
        status = {"authenticated": True, "user": user} if token in self.server.owner.tokens else {"authenticated": False}
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}
        self.answer(201, json.dumps(review).encode(), Content_Type="application/json")


def account_token(number):
    """A token of infra/dayfly; Vault leaves its signature to the reviewer."""
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    holder = {"namespace": "infra", "serviceaccount": {"name": "dayfly", "uid": "u-1"}}
    claims = {"iss": "https://cluster.example", "sub": "system:serviceaccount:infra:dayfly", "kubernetes.io": holder, "jti": str(number)}
    return f'{part({"alg": "RS256"})}.{part(claims)}.{part("signature")}'


class Vault:
    """`with Vault(directory) as vault:` is unsealed and has KV version 2 at secret/, version 1 at old/, and the policy "read"
    of secret/infra."""

    POLICY = 'path "secret/data/infra/*" { capabilities = ["read"] }\npath "secret/metadata/infra/*" { capabilities = ["list"] }'

    def __init__(self, directory):
        self.directory = directory
        self.certificate, key = web.self_signed(directory, name="vault")
        self.context = ssl.create_default_context(cafile=self.certificate)
        self.address = f"127.0.0.1:{dayfly.free_port()}"
        self.url = f"https://{self.address}"
        self.argv = [dayfly.tool("vault"), "-listen", self.address, "-cert", str(self.certificate), "-key", str(key)]
        self.root = self.key = self.process = self.reviewer = None

    def call(self, method, path, body=None, token=None):
        """The answer's JSON; {} where it has none."""
        request = urllib.request.Request(f"{self.url}/v1/{path}", method=method, data=None if body is None else json.dumps(body).encode())
        if token or self.root:
            request.add_header("X-Vault-Token", token or self.root)
        with urllib.request.urlopen(request, timeout=30, context=self.context) as answer:
            return json.loads(answer.read() or "{}")

    def listens(self):
        assert self.process.poll() is None, (self.directory / "vault.log").read_text()
        try:
            host, _, port = self.address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        return True

    def start(self):
        with open(self.directory / "vault.log", "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        dayfly.wait_for("vault to listen", self.listens)
        made = self.call("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
        self.key, self.root = made["keys"][0], made["root_token"]
        self.unseal()
        for mount, version in (("secret", "2"), ("old", "1")):
            self.call("POST", f"sys/mounts/{mount}", {"type": "kv", "options": {"version": version}})
        self.call("PUT", "sys/policies/acl/read", {"policy": self.POLICY})
        self.reviewer = web.Server(Reviewer)
        self.reviewer.tokens, self.reviewer.asked = set(), 0
        self.call("POST", "sys/auth/kubernetes", {"type": "kubernetes"})
        self.call("POST", "auth/kubernetes/config", {"kubernetes_host": self.reviewer.url, "disable_local_ca_jwt": True, "token_reviewer_jwt": "reviewer"})
        self.call("POST", "auth/kubernetes/role/dayfly", {"bound_service_account_names": "dayfly", "bound_service_account_namespaces": "infra",
                                                          "token_policies": "read", "token_ttl": "1h"})
        return self

    def put(self, path, engine="secret/data", **values):
        body = {"data": values} if engine.endswith("/data") else values

        def done():  # a new engine of version 2 answers 400 until it has upgraded itself
            try:
                self.call("POST", f"{engine}/{path}", body)
            except urllib.error.HTTPError as error:
                assert error.code == 400, error.read()
                return False
            return True

        dayfly.wait_for("vault to take a secret", done)

    def token(self):
        """A token with the policy "read"."""
        return self.call("POST", "auth/token/create", {"policies": ["read"], "ttl": "1h"})["auth"]["client_token"]

    def revoke(self, token):
        self.call("POST", "auth/token/revoke", {"token": token})

    def revoke_accounts(self):
        """Every token that somebody got for the token of an account; vault may forget them for good only a while later."""
        self.call("PUT", "sys/leases/revoke-prefix/auth/kubernetes")

    def seal(self):
        self.call("PUT", "sys/seal")

    def unseal(self):
        self.call("PUT", "sys/unseal", {"key": self.key})
        dayfly.wait_for("vault to be active", self.is_active)

    def is_active(self):
        try:
            return not self.call("GET", "sys/health")["sealed"]
        except urllib.error.HTTPError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()
        if self.reviewer:
            self.reviewer.stop()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
