"""Stores of tofu's own backends, as real servers: what an executor says to have its state there, what is in them, and a
lock that somebody else holds. Each is a context manager."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import secrets
import socket
import ssl
import subprocess
import threading
import urllib.parse
import urllib.request
from email.utils import formatdate

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import MotoRequestHandler
from moto.server import ThreadedMotoServer

from lib import buckets, dayfly, web
from lib.git_servers import Authority

# Head and body of an answer in one piece, as Amazon's servers send them. Between two pieces of an answer that it may not keep
# the connection of, the tool's client of DynamoDB closes it now and then, and asks again: for a lock that it has by then.
MotoRequestHandler.wbufsize = -1

PATH = "executors/e/terraform.tfstate"  # of the executor e, by default


def lock_info(lock_id="11111111-2222-3333-4444-555555555555", path="x"):
    """As the tool writes it for somebody else."""
    return {"ID": lock_id, "Operation": "OperationTypeApply", "Info": "", "Who": "eve@elsewhere", "Version": "1.12.6",
            "Created": "2026-01-01T10:20:30.5Z", "Path": path}


class Backend:
    """What they have in common: SECRET is the credential, which only a secret may contain."""

    kind = ""
    env = {}  # of the service
    SECRET = secrets.token_hex(16)

    def spec(self):
        return {"storage": {"type": self.kind, "config": self.config()}, **self.credentials()}

    def prepare(self, home):
        for key, value in self.secrets().items():
            home.dayfly("secret", "set", "store", key, input=value)

    def secret_environment(self, **variables):
        return {"secrets": [{"name": "store", "keys": [key], "as": "env", "env": name} for key, name in variables.items()]}


class Amazon(Backend):
    """S3 and DynamoDB of moto. table: the lock is an item in it, not an object."""

    kind = "s3"

    def __init__(self, _, table=None):
        self.table = table

    def __enter__(self):
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        host, port = self.server.get_host_and_port()
        self.url = f"http://{host}:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset", method="POST"), timeout=30).close()
        self.s3, self.dynamodb = (boto3.client(name, endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="k",
                                               aws_secret_access_key=self.SECRET, config=Config(s3={"addressing_style": "path"}))
                                  for name in ("s3", "dynamodb"))
        self.s3.create_bucket(Bucket="states")
        if self.table:
            self.dynamodb.create_table(TableName=self.table, BillingMode="PAY_PER_REQUEST",
                                       KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
                                       AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}])
        return self

    def __exit__(self, *_):
        self.server.stop()

    def config(self):
        table = {"dynamodb_table": self.table} if self.table else {}
        return {"bucket": "states", "region": "us-east-1", "endpoints": {"s3": self.url, "dynamodb": self.url}, "use_path_style": True,
                "skip_credentials_validation": True, "skip_metadata_api_check": True, "skip_requesting_account_id": True,
                "skip_region_validation": True, "skip_s3_checksum": True, **table}

    def secrets(self):
        return {"aws_access_key_id": "k", "aws_secret_access_key": self.SECRET}

    def credentials(self):
        return {"integrations": [{"provider": "aws", "secretRef": {"name": "store"}}]}

    def states(self):
        """Names of all objects but locks."""
        found = self.s3.list_objects_v2(Bucket="states").get("Contents", [])
        return [o["Key"] for o in found if not o["Key"].endswith(".tflock")]

    def read(self):
        return self.s3.get_object(Bucket="states", Key=PATH)["Body"].read()

    def is_encrypted(self):
        return self.s3.head_object(Bucket="states", Key=PATH).get("ServerSideEncryption") == "AES256"

    def items(self):
        return {i["LockID"]["S"]: i for i in self.dynamodb.scan(TableName=self.table)["Items"]}

    def lock(self):
        """The lock as it is in the store; None: there is none."""
        if self.table:
            item = self.items().get(f"states/{PATH}")
            return item and item["Info"]["S"]
        with contextlib.suppress(self.s3.exceptions.NoSuchKey):
            return self.s3.get_object(Bucket="states", Key=PATH + ".tflock")["Body"].read().decode()
        return None

    def hold(self):
        """Somebody else takes the lock; its ID."""
        info = lock_info(path=f"states/{PATH}")
        text = json.dumps(info, separators=(",", ":"))
        if self.table:
            self.dynamodb.put_item(TableName=self.table, Item={"LockID": {"S": f"states/{PATH}"}, "Info": {"S": text}})
        else:
            self.s3.put_object(Bucket="states", Key=PATH + ".tflock", Body=text)
        return info["ID"]


class Google(Backend):
    """The emulator fake-gcs-server; a token is the credential."""

    kind = "gcs"
    STATE = "executors/e/default.tfstate"

    def __init__(self, directory):
        self.server = buckets.GoogleStorage(directory / "google")

    def __enter__(self):
        self.server.__enter__()
        self.url = self.server.url
        return self

    def __exit__(self, *_):
        self.server.__exit__()

    def config(self):
        return {"bucket": "blobs", "storage_custom_endpoint": f"{self.url}/storage/v1/"}

    def secrets(self):
        return {"token": self.SECRET}

    def credentials(self):
        return self.secret_environment(token="GOOGLE_OAUTH_ACCESS_TOKEN")

    def request(self, path, body=None):
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=body), timeout=30) as answer:
            return answer.read()

    def names(self):
        return [i["name"] for i in json.loads(self.request("/storage/v1/b/blobs/o")).get("items", [])]

    def states(self):
        return [n for n in self.names() if not n.endswith(".tflock")]

    def read(self):
        return self.request(f"/storage/v1/b/blobs/o/{urllib.parse.quote(self.STATE, safe='')}?alt=media")

    def lock(self):
        name = "executors/e/default.tflock"
        if name not in self.names():
            return None
        return self.request(f"/storage/v1/b/blobs/o/{urllib.parse.quote(name, safe='')}?alt=media").decode()

    def hold(self):
        info = json.dumps(lock_info(path="gs://blobs/executors/e/default.tflock")).encode()
        name = urllib.parse.quote("executors/e/default.tflock", safe="")
        return json.loads(self.request(f"/upload/storage/v1/b/blobs/o?uploadType=media&name={name}", info))["generation"]


class Tunnel:
    """A proxy for https: whatever name is asked for, the connection leads to one address."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.connect, args=(self.listener.accept()[0],), daemon=True).start()

    def connect(self, client):
        with client, contextlib.suppress(OSError), socket.create_connection(self.target) as server:
            head = b""
            while b"\r\n\r\n" not in head and (more := client.recv(4096)):
                head += more
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=self.hand_on, args=(client, server), daemon=True).start()
            self.hand_on(server, client)

    @staticmethod
    def hand_on(source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Azure(Backend):
    """Azurite under the name that the backend asks for, over TLS with an authority of the test's own. by: what the
    credential is, `access_key` or `sas_token`."""

    kind = "azurerm"
    ACCOUNT, HOST = "dayflystates", "dayflystates.blob.core.windows.net"

    def __init__(self, directory, by="access_key"):
        self.directory, self.by = directory / "azure", by
        self.key = base64.b64encode(os.urandom(64)).decode()

    def __enter__(self):
        authority = Authority(self.directory)
        pair = authority.certificate(f"DNS:{self.HOST}")
        self.port = dayfly.free_port()
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [dayfly.tool("azurite"), "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent", "--blobPort",
                 str(self.port), "--cert", pair[0], "--key", pair[1]], cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env={**os.environ, "AZURITE_ACCOUNTS": f"{self.ACCOUNT}:{self.key}"})
        self.trust = ssl.create_default_context(cafile=authority.ca)
        dayfly.wait_for("Azurite to listen", self.listens)
        self.tunnel = Tunnel(f"127.0.0.1:{self.port}")
        self.env = {"HTTPS_PROXY": self.tunnel.url, "SSL_CERT_FILE": str(authority.ca)}
        self.request("PUT", "/states?restype=container")
        self.SECRET = self.key if self.by == "access_key" else self.sas()
        return self

    def __exit__(self, *_):
        self.tunnel.close()
        self.process.kill()
        self.process.wait()

    def listens(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def config(self):
        return {"resource_group_name": "states", "storage_account_name": self.ACCOUNT, "container_name": "states"}

    def secrets(self):
        return {self.by: self.SECRET}

    def credentials(self):
        return self.secret_environment(**{self.by: f"ARM_{self.by.upper()}"})

    def sign(self, text):
        return base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()).decode()

    def sas(self):
        """A shared access signature of the account for everything in blobs."""
        form = {"sp": "rwdlac", "ss": "b", "srt": "sco", "se": "2037-01-01T00:00:00Z", "sv": "2020-08-04", "spr": "https"}
        text = "\n".join([self.ACCOUNT, form["sp"], form["ss"], form["srt"], "", form["se"], "", form["spr"], form["sv"], ""])
        return urllib.parse.urlencode({**form, "sig": self.sign(text)})

    def request(self, method, path, **headers):
        """(headers, body) of a request signed with the account's key."""
        path, _, query = path.partition("?")
        head = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2020-08-04",
                **{k.replace("_", "-"): v for k, v in headers.items()}}
        resource = f"/{self.ACCOUNT}{path}" + "".join(f"\n{k}:{v}" for k, v in sorted(urllib.parse.parse_qsl(query)))
        own = "".join(f"{k}:{head[k]}\n" for k in sorted(head))
        head["Authorization"] = f"SharedKey {self.ACCOUNT}:{self.sign(method + chr(10) * 12 + own + resource)}"
        connection = http.client.HTTPSConnection(self.HOST, context=self.trust, timeout=30)
        connection._create_connection = lambda _, timeout, *__: socket.create_connection(("127.0.0.1", self.port), timeout)
        connection.request(method, path + (query and "?" + query), headers={**head, "Host": self.HOST})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status < 300 or answer.status == 404, (method, path, answer.status, body)
        return answer.headers if answer.status < 300 else None, body

    def states(self):
        listing = self.request("GET", "/states?comp=list&restype=container")[1].decode()
        return [part.partition("</Name>")[0] for part in listing.split("<Name>")[1:]]

    def read(self):
        return self.request("GET", f"/states/{PATH}")[1]

    def lock(self):
        head = self.request("HEAD", f"/states/{PATH}")[0]
        if not head or head["x-ms-lease-state"] != "leased":
            return None
        info = head["x-ms-meta-terraformlockid"]
        return base64.b64decode(info).decode() if info else "a lease"

    def lease(self, lock_id=None):
        lock_id = lock_id or lock_info()["ID"]
        self.request("PUT", f"/states/{PATH}?comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="-1", x_ms_proposed_lease_id=lock_id)
        return lock_id

    def hold(self):
        lock_id = self.lease()
        info = base64.b64encode(json.dumps(lock_info(lock_id)).encode()).decode()
        self.request("PUT", f"/states/{PATH}?comp=metadata", x_ms_lease_id=lock_id, x_ms_meta_terraformlockid=info)
        return lock_id


class StateHandler(web.Handler):
    def serve(self):
        web_store, body = self.server.owner.store, self.body()
        expected = base64.b64encode(f"me:{web_store.SECRET}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}":
            return self.answer(401, WWW_Authenticate='Basic realm="states"')
        return self.answer(*web_store.serve(self.command, self.path.partition("?")[0], body))

    do_GET = do_POST = do_LOCK = do_UNLOCK = serve


class Web(Backend):
    """A server of the protocol of tofu's backend http, with a user and a password."""

    kind = "http"

    def __init__(self, _):
        self.held = self.state = None

    def __enter__(self):
        self.server = web.Server(StateHandler)
        self.server.store = self
        return self

    def __exit__(self, *_):
        self.server.stop()

    def config(self):
        return {"address": f"{self.server.url}/states/e"}

    def secrets(self):
        return {"user": "me", "password": self.SECRET}

    def credentials(self):
        return self.secret_environment(user="TF_HTTP_USERNAME", password="TF_HTTP_PASSWORD")

    def serve(self, method, path, body):
        assert path == "/states/e"
        if method == "POST":
            self.state = body
        if method == "LOCK" and self.held:
            return 423, self.held.encode()
        if method == "LOCK":
            self.held = body.decode()
        # terraform's force-unlock sends no body: it means whatever lock there is.
        if method == "UNLOCK" and body and (not self.held or json.loads(self.held)["ID"] != json.loads(body)["ID"]):
            return 409, (self.held or "").encode()
        if method == "UNLOCK":
            self.held = None
        return (200, self.state) if method == "GET" and self.state else (204 if method == "GET" else 200, b"")

    def states(self):
        return ["e"] if self.state else []

    def read(self):
        return self.state

    def lock(self):
        return self.held

    def hold(self):
        self.held = json.dumps(lock_info())
        return lock_info()["ID"]
