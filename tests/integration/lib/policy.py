"""NetworkPolicies of a namespace, enforced: the test cluster's network plugin does not do it. `with Enforced(namespace)`
reads what the API server has, policies and pods, and makes rules of nftables on the node, behind those of kube-proxy. What
it does not understand of a policy it refuses. What is not allowed is rejected, so that a connection fails at once."""

import contextlib
import pathlib
import subprocess
import sys

TABLE = "dayfly-policy"  # tests/cluster removes those that a killed test has left
PROHIBITED = "EHOSTUNREACH"  # what a connection ends with that a rule rejected

# Run in a pod's network namespace: "connected", or the name of the error.
CONNECT = """
import errno, socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20).close()
    print("connected")
except OSError as error:
    print(errno.errorcode.get(error.errno, repr(error)))
"""

# Accepts on a port of every address of its network namespace, and says when it does.
LISTEN = """
import socket, sys
server = socket.create_server(("", int(sys.argv[1])))
print("ready", flush=True)
while True:
    server.accept()[0].close()
"""

# Asks a name server for the IPv4 address of a name, over UDP.
RESOLVE = """
import socket, struct, sys
name = b"".join(bytes([len(part)]) + part.encode() for part in sys.argv[2].split("."))
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(20)
client.connect((sys.argv[1], 53))
client.send(struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + name + b"\\0" + struct.pack(">2H", 1, 1))
print(socket.inet_ntoa(client.recv(512)[-4:]))
"""


def run(*command, **kwargs):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **kwargs)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def addresses(name):
    """Of a network namespace; none if it went meanwhile, as those of other tests do."""
    return subprocess.run(["ip", "-n", name, "-o", "-4", "addr"], capture_output=True, text=True, check=False).stdout


class Inside:
    """The network namespace of a pod: what is done here is done by the pod, as far as the network can tell."""

    def __init__(self, pod):
        self.address = pod["status"]["podIP"]
        self.name = next(p.name for p in pathlib.Path("/run/netns").glob("cni-*") if f" {self.address}/" in addresses(p.name))

    def ip(self, *words):
        run("ip", "-n", self.name, *words)

    def python(self, text, *args):
        return ["ip", "netns", "exec", self.name, sys.executable, "-c", text, *map(str, args)]

    def connect(self, address, port):
        """"connected", or the name of the error."""
        return run(*self.python(CONNECT, address, port)).strip()

    def resolve(self, server, name):
        return run(*self.python(RESOLVE, server, name)).strip()

    @contextlib.contextmanager
    def listening(self, *ports):
        listeners = [subprocess.Popen(self.python(LISTEN, port), stdout=subprocess.PIPE, text=True) for port in ports]
        try:
            for listener in listeners:
                assert listener.stdout.readline() == "ready\n"
            yield
        finally:
            for listener in listeners:
                listener.kill()
                listener.wait()
                listener.stdout.close()


def only(tree, *known):
    unknown = set(tree) - set(known)
    assert not unknown, f"this policy says {unknown}, which is not understood here"


def selects(selector, labels):
    only(selector, "matchLabels")
    return selector.get("matchLabels", {}).items() <= labels.items()


def matches_of_ports(ports):
    """Expressions, one of which a packet must match; [""] matches all."""
    for port in ports:
        only(port, "protocol", "port")
    return [f"{p.get('protocol', 'TCP').lower()} dport {p['port']}" for p in ports] or [""]


class Enforced:
    def __init__(self, namespace):
        self.namespace = namespace
        self.table = f"{TABLE}-{namespace.name}"
        api = namespace.cluster.api
        self.labels = {n["metadata"]["name"]: n["metadata"].get("labels", {})
                       for n in api.ask("GET", "/api/v1/namespaces")["items"]}
        self.pods = [p for p in api.ask("GET", "/api/v1/pods")["items"]
                     if p["status"].get("podIP") and not p["spec"].get("hostNetwork")]
        self.policies = namespace.get("networkpolicies")

    def matches_of_peers(self, peers, side):
        """The same of the other end: of side "saddr" or "daddr"."""
        return [m for peer in peers for m in self.matches_of_peer(peer, side)] if peers else [""]

    def matches_of_peer(self, peer, side):
        only(peer, "ipBlock", "podSelector", "namespaceSelector")
        if "ipBlock" in peer:
            block = peer["ipBlock"]
            only(block, "cidr", "except")
            family = "ip6" if ":" in block["cidr"] else "ip"
            but = f"{family} {side} != {{ {', '.join(block['except'])} }}" if block.get("except") else ""
            return [f"{family} {side} {block['cidr']} {but}"]
        spaces = [n for n, labels in self.labels.items() if selects(peer["namespaceSelector"], labels)] \
            if "namespaceSelector" in peer else [self.namespace.name]
        return [f"ip {side} {p['status']['podIP']}" for p in self.pods if p["metadata"]["namespace"] in spaces
                and selects(peer.get("podSelector", {}), p["metadata"].get("labels", {}))]

    def rules_of(self, pod, direction):
        """One chain's rules, or None: no policy holds this pod in this direction."""
        ours = [p["spec"] for p in self.policies if selects(p["spec"]["podSelector"], pod["metadata"].get("labels", {}))
                and direction in p["spec"]["policyTypes"]]
        if not ours:
            return None
        key, peers, side = {"Egress": ("egress", "to", "daddr"), "Ingress": ("ingress", "from", "saddr")}[direction]
        rules = []
        for rule in (rule for spec in ours for rule in spec.get(key, [])):
            only(rule, "ports", peers)
            rules += [f"{peer} {port} return" for peer in self.matches_of_peers(rule.get(peers), side)
                      for port in matches_of_ports(rule.get("ports", []))]
        return [*rules, "reject with icmpx type admin-prohibited"]

    def script(self):
        """From the node a pod is always reached: kubelet asks it."""
        chains, jumps = [], []
        for i, pod in enumerate(p for p in self.pods if p["metadata"]["namespace"] == self.namespace.name):
            for direction, side in (("Egress", "saddr"), ("Ingress", "daddr")):
                rules = self.rules_of(pod, direction)
                if rules:
                    chains.append(f"chain {direction}-{i} {{\n" + "\n".join(rules) + "\n}")
                    jumps.append(f"ip {side} {pod['status']['podIP']} jump {direction}-{i}")
        hooks = [f"chain {hook} {{ type filter hook {hook} priority 10\nct state established,related accept\n"
                 + "\n".join(jumps) + "\n}" for hook in ("forward", "input")]
        return f"table inet {self.table} {{\n" + "\n".join([*chains, *hooks]) + "\n}\n"

    def __enter__(self):
        run("nft", "-f", "-", input=self.script())
        return self

    def __exit__(self, *_):
        run("nft", "delete", "table", "inet", self.table)
