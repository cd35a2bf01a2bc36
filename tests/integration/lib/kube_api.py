"""Requests to the cluster's API server without a process for each: a test that waits asks hundreds of times."""

import http.client
import json
import ssl
import threading
import time
import urllib.parse

import yaml

GROUPS = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Kinds:
    """What the API server serves, by every name that kubectl takes for it."""

    def __init__(self, api):
        self.by_name, self.by_kind = {}, {}
        for root in ("/api", "/apis"):  # in the order of kubectl's choice
            for group in api.ask("GET", root, accept=GROUPS)["items"]:
                self.add(group["metadata"].get("name", ""), group.get("versions", []))

    def add(self, group, versions):
        for version in versions:
            where = f"/apis/{group}/{version['version']}" if group else f"/api/{version['version']}"
            for resource in version.get("resources", []):
                kind, plural = resource["responseKind"]["kind"], resource["resource"]
                served = (where, plural, resource["scope"] == "Namespaced")
                self.by_kind.setdefault((where, kind), served)
                for name in (plural, resource.get("singularResource") or kind.lower(), *resource.get("shortNames", [])):
                    self.by_name.setdefault(name, served)
                    self.by_name.setdefault(f"{name}.{group}", served)
                    self.by_name.setdefault(f"{name}.{version['version']}.{group}", served)


class KubeApi:
    """The administrator's way to the API server; threads have a connection each."""

    def __init__(self, kubeconfig):
        config = yaml.safe_load(kubeconfig.read_text())
        where, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = urllib.parse.urlsplit(where["server"]).netloc
        self.trust = ssl.create_default_context(cafile=where["certificate-authority"])
        self.trust.load_cert_chain(user["client-certificate"], user["client-key"])
        self.own = threading.local()
        self.kinds = None

    def send(self, method, path, body, headers):
        """(status, bytes); a kept connection that the server has closed meanwhile is opened anew."""
        kept = getattr(self.own, "connection", None)
        for connection in filter(None, (kept, http.client.HTTPSConnection(self.address, context=self.trust, timeout=30))):
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                status, data = answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.own.connection, broken = None, error
                continue
            self.own.connection = connection
            return status, data
        raise AssertionError(f"{method} {path}: {broken}")

    def ask(self, method, path, body=None, accept="application/json", kind="application/json", missing=False):
        """The document that is answered; None where there is none, if that may be (missing)."""
        headers = {"Accept": accept, "User-Agent": "tests", **({"Content-Type": kind} if body is not None else {})}
        last = time.monotonic() + 60
        while True:
            status, data = self.send(method, path, None if body is None else json.dumps(body), headers)
            if status != 429 or time.monotonic() > last:  # as kubectl does: a server that has just started asks for it
                break
            time.sleep(0.5)
        if status == 404 and missing:
            return None
        assert 200 <= status < 300, f"{method} {path}: {status} {data.decode(errors='replace')}"
        return json.loads(data)

    def served(self, kind, find):
        """What find(kinds) finds of this kind, asked for again while it is not there: definitions come and go, and the list of
        kinds is a moment behind them."""
        last = time.monotonic() + 10
        while not self.kinds or not find(self.kinds):
            assert time.monotonic() < last, f"the server does not know {kind}"
            if self.kinds:
                time.sleep(0.1)
            self.kinds = Kinds(self)
        return find(self.kinds)

    def path(self, kind, namespace, name=None):
        """Of the objects of a kind as kubectl names it, or of one; without a namespace of those in all of them."""
        return self.join(self.served(kind, lambda kinds: kinds.by_name.get(kind.lower())), namespace, name)

    def path_of(self, document, namespace):
        """Of the object that this document is about."""
        version = document["apiVersion"]
        where = f"/apis/{version}" if "/" in version else f"/api/{version}"
        found = self.served(document["kind"], lambda kinds: kinds.by_kind.get((where, document["kind"])))
        return self.join(found, namespace, document["metadata"]["name"])

    @staticmethod
    def join(served, namespace, name):
        where, plural, namespaced = served
        return "/".join(filter(None, (where, f"namespaces/{namespace}" if namespaced and namespace else "", plural, name)))
