"""A way to a server on which every connection breaks after a number of bytes that chance decides."""

import contextlib
import socket
import threading


class Cutter:
    """Listens on a port of its own and hands on what comes. `with Cutter(address, random, cuts) as cutter:` lets
    connections live for as long as they like once so many were cut."""

    def __init__(self, target, chance, most):
        self.target, self.chance, self.most = target, chance, most
        self.connections = self.cuts = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"

    def budget(self):
        """Bytes that a connection lives for: not even its handshake, or long into a watch; None: no end."""
        with self.lock:
            self.connections += 1
            if self.connections > self.most:
                return None
            return self.chance.randrange(1, self.chance.choice([5_000, 30_000, 100_000]))

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.connect, args=(client, self.budget()), daemon=True).start()

    def connect(self, client, budget):
        with client, contextlib.suppress(OSError), socket.create_connection(self.target) as server:
            up = threading.Thread(target=self.hand_on, args=(client, server, None), daemon=True)
            up.start()
            if self.hand_on(server, client, budget):
                with self.lock:
                    self.cuts += 1

    @staticmethod
    def hand_on(source, to, budget):
        """True when the budget was spent; both ends are closed then, in the middle of whatever was said."""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if budget is not None:
                    data, budget = data[:budget], budget - len(data)
                to.sendall(data)
                if budget is not None and budget <= 0:
                    break
        for end in (source, to):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        return budget is not None and budget <= 0

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
