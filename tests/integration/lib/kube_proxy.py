"""A proxy before the API server that sees every request of one client, and may do something at a chosen one."""

import base64
import http.client
import http.server
import json
import ssl
import threading
import urllib.parse

import yaml


class KubeProxy:
    """Speaks http to the client and https, as the cluster's admin, to the API server.

    at(request, when) is called "before" a request goes on and "after" its answer came, with (method, path). When it
    returns True, the client's connection is cut there."""

    def __init__(self, cluster, directory, namespace="default"):
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        where = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        self.upstream = urllib.parse.urlsplit(where["server"]).netloc
        self.trust = ssl.create_default_context(cadata=self.pem(where, "certificate-authority"))
        pair = directory / "admin.pem"
        pair.touch(mode=0o600)
        pair.write_text(self.pem(user, "client-certificate") + self.pem(user, "client-key"))
        self.trust.load_cert_chain(pair)
        self.at = lambda request, when: False
        self.requests = []
        self.headers = {}  # of answers, in place of the server's own
        self.answers = {}  # path -> (status, body), in place of the server's own
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.kubeconfig = directory / "through-proxy.kubeconfig"
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.http.server_port}"}
        config["users"][0]["user"] = {}
        config["contexts"][0]["context"]["namespace"] = namespace
        self.kubeconfig.write_text(yaml.safe_dump(config))

    @staticmethod
    def pem(holder, name):
        data = holder.get(f"{name}-data")
        return base64.b64decode(data).decode() if data else open(holder[name], encoding="ascii").read()

    def handler(self):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def stream(self, answer):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while data := answer.read1(65536):
                    self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def forward(self):
                request = (self.command, self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                proxy.requests.append(request)
                if proxy.at(request, "before"):
                    self.close_connection = True
                    return
                if self.path in proxy.answers:
                    self.answer(*proxy.answers[self.path])
                    return
                upstream = http.client.HTTPSConnection(proxy.upstream, context=proxy.trust)
                passed = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length", "accept-encoding")}
                upstream.request(self.command, self.path, body or None, passed)
                answer = upstream.getresponse()
                if proxy.at(request, "after"):
                    self.close_connection = True
                    return
                self.send_response_only(answer.status)
                for name, value in {"Date": answer.headers["Date"], **proxy.headers}.items():
                    self.send_header(name, value)
                for name in ("Content-Type", "Retry-After"):
                    if answer.headers[name]:
                        self.send_header(name, answer.headers[name])
                try:
                    self.stream(answer)
                except OSError:
                    self.close_connection = True
                finally:
                    upstream.close()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

        return Handler

    def close(self):
        self.http.shutdown()
        self.http.server_close()
