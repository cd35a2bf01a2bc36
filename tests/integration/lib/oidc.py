"""A real OpenID provider (the package oidc-provider-mock), and people who sign in there by code flow with PKCE."""

import base64
import hashlib
import html
import json
import os
import pathlib
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from .dayfly import free_port, tool, wait_for

REDIRECT = "http://localhost:1/callback"


class StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


class Provider:
    """`people`: {name: claims}. Its keys are new at each start."""

    def __init__(self, people):
        self.people, self.port, self.process = people, free_port(), None
        self.issuer = f"http://localhost:{self.port}"

    def start(self):
        program = pathlib.Path(tool("python")).parent / "oidc-provider-mock"
        users = [word for name, claims in self.people.items() for word in ("--user-claims", json.dumps({"sub": name, **claims}))]
        self.process = subprocess.Popen([program, "-p", str(self.port), *users], env={**os.environ, "PYTHONWARNINGS": "ignore"},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("the OpenID provider", self.answers)
        return self

    def answers(self):
        try:
            return json.load(urllib.request.urlopen(self.issuer + "/.well-known/openid-configuration", timeout=5))
        except OSError:
            return None

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def sign_in(self, name, client="dayfly"):
        """The id token of this person for this client."""
        verifier = base64.urlsafe_b64encode(os.urandom(32)).rstrip(b"=")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).rstrip(b"=").decode()
        query = urllib.parse.urlencode({"client_id": client, "redirect_uri": REDIRECT, "response_type": "code", "state": "s",
                                        "scope": "openid profile email", "code_challenge": challenge, "code_challenge_method": "S256"})
        try:
            urllib.request.build_opener(StayHere).open(f"{self.issuer}/oauth2/authorize?{query}", f"sub={name}".encode(), timeout=30)
            raise AssertionError("the provider did not lead back")
        except urllib.error.HTTPError as answer:
            back = urllib.parse.parse_qs(urllib.parse.urlsplit(answer.headers["Location"]).query)
        form = urllib.parse.urlencode({"grant_type": "authorization_code", "code": back["code"][0], "redirect_uri": REDIRECT,
                                       "code_verifier": verifier.decode()})
        basic = base64.b64encode(f"{client}:x".encode()).decode()
        request = urllib.request.Request(self.issuer + "/oauth2/token", form.encode(), {"Authorization": f"Basic {basic}"})
        return json.load(urllib.request.urlopen(request, timeout=30))["id_token"]


class DeviceProvider:
    """A real OpenID provider with the device flow (the package oidc-provider for Node). `people` as above; `ttl`: seconds."""

    def __init__(self, people, clients=("dayfly",), **ttl):
        self.port, self.process = free_port(), None
        self.issuer = f"http://localhost:{self.port}"
        self.settings = {"people": people, "clients": clients, "ttl": ttl}

    def __enter__(self):
        script = pathlib.Path(__file__).with_name("device_provider.mjs")
        self.process = subprocess.Popen(["node", script, tool("oidc-provider"), json.dumps({"port": self.port, **self.settings})],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("the OpenID provider", self.answers)
        return self

    answers = Provider.answers

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def fault(self, **faults):
        """What goes wrong from now on: device_provider.mjs."""
        return json.load(urllib.request.urlopen(self.issuer + "/faults", json.dumps(faults).encode(), timeout=30))

    def ask(self, path, **form):
        """The answer to a form, also a refusal."""
        try:
            return json.loads(urllib.request.urlopen(self.issuer + path, urllib.parse.urlencode(form).encode(), timeout=30).read() or "null")
        except urllib.error.HTTPError as answer:
            return json.loads(answer.read())

    def enter_code(self, url, name, decline=False):
        """What the person does with a browser: the page of the code, the sign-in, the consent."""
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        page = browser.open(url, timeout=30)
        for _ in range(10):
            text = page.read().decode()
            form = re.search(r"<form[^>]*action=\"([^\"]*)\"", text)
            if not form or 'class="red"' in text:
                return text
            fields = dict(re.findall(r"<input[^>]*name=\"(\w+)\"[^>]*value=\"([^\"]*)\"", text))
            fields |= {"login": name, "password": "x"} if 'name="login"' in text else {}
            fields |= {"abort": "yes"} if decline and 'name="abort"' in text else {}
            try:
                page = browser.open(urllib.parse.urljoin(page.url, html.unescape(form[1])), urllib.parse.urlencode(fields).encode(), timeout=30)
            except urllib.error.HTTPError as answer:  # of a code that was declined
                return answer.read().decode()
        raise AssertionError(text)
