"""A container registry of a test's own: takes pushes and keeps what it got."""

import hashlib
import json
import re
import uuid

from . import web


class Handler(web.Handler):
    def do_GET(self):
        blob = self.server.owner.blobs.get(self.path.rpartition("/")[2])
        manifest = self.server.owner.manifests.get(self.path)
        if self.path == "/v2/":
            self.answer(200)
        elif self.path.endswith("/tags/list"):
            place = self.path.replace("/tags/list", "/manifests/")
            tags = [p.removeprefix(place) for p in self.server.owner.manifests if p.startswith(place)]
            self.answer(200, json.dumps({"tags": [t for t in tags if ":" not in t]}).encode())
        elif manifest is not None:
            self.answer(200, manifest, Content_Type=json.loads(manifest).get("mediaType", "application/octet-stream"),
                        Docker_Content_Digest="sha256:" + hashlib.sha256(manifest).hexdigest())
        elif blob is not None:
            self.answer(200, blob)
        else:
            self.answer(404)

    do_HEAD = do_GET

    def do_POST(self):
        self.answer(202, Location=f"{self.path.rstrip('/')}/{uuid.uuid4().hex}")

    def do_PATCH(self):
        self.server.owner.uploads[self.path] = self.server.owner.uploads.get(self.path, b"") + self.body()
        self.answer(202, Location=self.path)

    def do_PUT(self):
        path, _, query = self.path.partition("?")
        if "/manifests/" in path:
            self.server.owner.manifests[path] = body = self.body()
            return self.answer(201, Docker_Content_Digest="sha256:" + hashlib.sha256(body).hexdigest())
        blob = self.server.owner.uploads.pop(path, b"") + self.body()
        digest = re.search(r"digest=(sha256(?::|%3A)[0-9a-f]+)", query).group(1).replace("%3A", ":")
        assert digest == "sha256:" + hashlib.sha256(blob).hexdigest()
        self.server.owner.blobs[digest] = blob
        return self.answer(201, Docker_Content_Digest=digest)


class Registry(web.Server):
    """manifests are those that were pushed, by their path; blobs by digest."""

    def __init__(self, pair=None):
        self.blobs, self.manifests, self.uploads = {}, {}, {}
        super().__init__(Handler, pair)
