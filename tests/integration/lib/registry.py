"""A container registry of a test's own: takes pushes and keeps what it got."""

import hashlib
import http.server
import re
import threading
import uuid


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def do_GET(self):
        blob = self.server.blobs.get(self.path.rpartition("/")[2])
        manifest = self.server.manifests.get(self.path)
        if self.path == "/v2/":
            self.answer(200)
        elif blob is not None or manifest is not None:
            self.answer(200, manifest or blob)
        else:
            self.answer(404)

    do_HEAD = do_GET

    def do_POST(self):
        self.answer(202, Location=f"{self.path.rstrip('/')}/{uuid.uuid4().hex}")

    def do_PATCH(self):
        self.server.uploads[self.path] = self.server.uploads.get(self.path, b"") + self.body()
        self.answer(202, Location=self.path)

    def do_PUT(self):
        path, _, query = self.path.partition("?")
        if "/manifests/" in path:
            self.server.manifests[path] = body = self.body()
            return self.answer(201, Docker_Content_Digest="sha256:" + hashlib.sha256(body).hexdigest())
        blob = self.server.uploads.pop(path, b"") + self.body()
        digest = re.search(r"digest=(sha256(?::|%3A)[0-9a-f]+)", query).group(1).replace("%3A", ":")
        assert digest == "sha256:" + hashlib.sha256(blob).hexdigest()
        self.server.blobs[digest] = blob
        return self.answer(201, Docker_Content_Digest=digest)


class Registry:
    """address is host:port; manifests are those that were pushed, by their path; blobs by digest."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.blobs, self.server.manifests, self.server.uploads = {}, {}, {}
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def manifests(self):
        return self.server.manifests

    @property
    def blobs(self):
        return self.server.blobs
