"""HTTP servers of the tests' own."""

import contextlib
import http.client
import http.server
import socket
import ssl
import subprocess
import sys
import threading

DROPPED = ("content-length", "transfer-encoding", "connection", "date", "server")  # of an answer: the way makes its own


def relay(source, to):
    """Everything from one socket to the other, until either ends."""
    try:
        while piece := source.recv(65536):
            to.sendall(piece)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is written in two pieces: the second would wait for an acknowledgement

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
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def forward(self, address, body):
        """(status, body, headers) of what the server at this address answers to this request."""
        connection = http.client.HTTPConnection(address, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return answer.status, content, {name: value for name, value in answer.getheaders() if name.lower() not in DROPPED}


class Listener(http.server.ThreadingHTTPServer):
    """Knows the connections that are open."""

    daemon_threads = True

    def __init__(self, *args):
        self.connections = set()
        super().__init__(*args)

    def process_request(self, request, client_address):
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # of a client that went, or of kill()
            super().handle_error(request, client_address)


class Server:
    """Answers with a Handler on a free port or on this one, over TLS with (certificate, key); handlers find it as
    self.server.owner."""

    def __init__(self, handler, pair=None, host="127.0.0.1", port=0):
        self.handler, self.pair = handler, pair
        self.listen((host, port))
        self.address = f"{host}:{self.httpd.server_port}"
        self.url = f"{'https' if pair else 'http'}://{self.address}"

    def listen(self, address):
        self.httpd = Listener(address, self.handler)
        self.httpd.owner = self
        if self.pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.pair)
            # Handshakes in the connection's own thread: one that stalls must not stop the others.
            self.httpd.socket = context.wrap_socket(self.httpd.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def kill(self):
        """Nobody listens any more, and open connections end, some before their answer; what it knows stays."""
        self.stop()
        for connection in list(self.httpd.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def revive(self):
        self.listen(self.httpd.server_address)

    def stop(self):
        self.httpd.shutdown()
        self.httpd.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Tunnel(Server):
    """A proxy for clients that ask for https: whatever host they want, it leads to this address."""

    def __init__(self, address):
        self.target, self.hosts = address, []
        super().__init__(TunnelHandler)


class TunnelHandler(Handler):
    def do_CONNECT(self):
        self.server.owner.hosts.append(self.path)
        host, _, port = self.server.owner.target.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=relay, args=(there, self.connection), daemon=True)
            back.start()
            relay(self.connection, there)
            back.join()
        self.close_connection = True


def self_signed(directory, name="localhost", alternatives="DNS:localhost,IP:127.0.0.1"):
    """(certificate, key) that nobody but itself vouches for."""
    certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                           f"/CN={name}", "-addext", f"subjectAltName={alternatives}", "-keyout", str(key), "-out",
                           str(certificate)], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    return certificate, key
