"""Terrakube's objects under the names by which its API reads them: in files, in real stores, and through the API."""

import base64
import json
import os
import subprocess
import urllib.request
import uuid

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lib import dayfly, web
from lib.buckets import ACCESS, SECRET, S3, AzureStorage, GoogleStorage, Trouble
from lib.terrakube import Terrakube

ORGANIZATION, WORKSPACE, STEP = (str(uuid.UUID(int=n)) for n in (1, 2, 3))
STATE = str(uuid.UUID(int=4))
PLAN = f"{ORGANIZATION}/{WORKSPACE}/7/{STEP}/terraformLibrary.tfPlan"
OBJECTS = {"plan": "-", "json": STATE, "raw": STATE, "output": "-", "binary": "tofu/1.12.6/tofu"}
KEYS = {f"tfstate/{PLAN}", f"tfstate/{ORGANIZATION}/{WORKSPACE}/state/{STATE}.json", f"tfstate/{ORGANIZATION}/{WORKSPACE}/state/{STATE}.raw.json",
        f"tfoutput/{ORGANIZATION}/7/{STEP}.tfoutput", "tfbinary/tofu/1.12.6/tofu"}


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


class Local:
    """LocalTerraformStateImpl."""

    kind, place = "Local", "/.terraform-spring-boot/local/state/" + PLAN
    theirs = "/home/cnb" + place

    def __init__(self, directory):
        self.home = directory
        self.env = {"HOME": str(directory)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def keys(self):
        top = self.home / ".terraform-spring-boot/local"
        return {"tf" + str(p.relative_to(top)) for p in top.rglob("*") if p.is_file()}


class Aws(S3):
    kind, place = "Aws", "/blobs/tfstate/" + PLAN
    theirs = "https://blobs.s3.us-east-1.amazonaws.com/tfstate/" + PLAN

    def __init__(self, directory):
        super().__init__(directory)
        self.env = {"AwsTerraformStateAccessKey": ACCESS, "AwsTerraformStateSecretKey": SECRET, "AwsTerraformStateBucketName": "blobs",
                    "AwsTerraformStateRegion": "us-east-1", "AwsEndpoint": self.url}

    def keys(self):
        return set(self.objects())


class Azure(AzureStorage):
    kind, place = "Azure", "/dayflytest/tfstate/" + PLAN
    theirs = "https://dayflytest.blob.core.windows.net/tfstate/" + PLAN.replace("/", "%2F")

    def __init__(self, directory):
        super().__init__(directory)
        self.env = {"AzureTerraformStateResourceGroup": "group", "AzureTerraformStateStorageAccountName": self.account,
                    "AzureTerraformStateStorageContainerName": "tfstate", "AzureTerraformStateStorageAccessKey": self.key, "AzureEndpoint": self.url}

    def keys(self):
        texts = {area: fetch(f"{self.url}/{area}?restype=container&comp=list&{self.sas()}") for area in ("tfstate", "tfoutput", "tfbinary")}
        return {f"{area}/{part.partition('</Name>')[0]}" for area, text in texts.items() for part in text.split("<Name>")[1:]}


class Tokens(web.Handler):
    """Gives a token to the key of a service account."""

    def do_POST(self):  # noqa: N802
        self.server.owner.asked.append(self.body().decode())
        self.answer(200, b'{"access_token": "by-key", "expires_in": 3599}', Content_Type="application/json")


class Google(GoogleStorage):
    kind, place = "Gcp", "https://storage.cloud.google.com/blobs/tfstate/" + PLAN
    theirs = place

    def __init__(self, directory):
        super().__init__(directory)
        self.tokens = web.Server(Tokens)
        self.tokens.asked = []
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
        account = {"type": "service_account", "client_email": "t@x.iam.gserviceaccount.com", "private_key": key, "token_uri": self.tokens.url + "/token"}
        self.env = {"GcpTerraformStateCredentials": base64.b64encode(json.dumps(account).encode()).decode(), "GcpTerraformStateBucketName": "blobs",
                    "GcpTerraformStateProjectId": "x", "GcpEndpoint": self.url}

    def __exit__(self, *_):
        self.tokens.stop()
        super().__exit__()
        assert self.tokens.asked

    def keys(self):
        return {item["name"] for item in json.loads(fetch(f"{self.url}/storage/v1/b/blobs/o"))["items"]}


class ByApi(Terrakube):
    kind, place = "Api", f"/tfstate/v1/organization/{ORGANIZATION}/workspace/{WORKSPACE}/jobId/7/step/{STEP}/terraform.tfstate"
    theirs = "https://terrakube.example" + place

    def __init__(self, _directory):
        super().__init__("2.34")

    @property
    def env(self):
        return super().env("ApiTerraformStateImpl")


STORES = [Local, Aws, Azure, Google, ByApi]


@pytest.fixture(scope="module", params=STORES, ids=[s.kind for s in STORES])
def store(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("terrakube") / "store") as running:
        yield running


@pytest.fixture
def s3(tmp_path):
    with Aws(tmp_path / "store") as running:
        yield running


def storage(store, *args, code=0, prefix=(), job="7", **more):
    """The tool's output: of a failure what it says."""
    job = {"type": "terraformPlan", "organizationId": ORGANIZATION, "workspaceId": WORKSPACE, "jobId": job, "stepId": STEP}
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AzBuilderApiUrl": "http://127.0.0.1:1", "TerrakubeApiUrl": "http://127.0.0.1:1",
           "InternalSecret": base64.b64encode(b"k" * 32).decode(), "TerrakubeEnableSecurity": "true", "TerrakubeRegistryDomain": "r.example",
           "TerrakubeToolsRepository": "https://t.example/t.git", "TerrakubeToolsBranch": "main", "TerrakubeRedisHostname": "127.0.0.1",
           "TerrakubeRedisPort": "6379", "TerraformStateType": f"{store.kind}TerraformStateImpl",
           "EphemeralJobData": base64.b64encode(json.dumps(job).encode()).decode(),
           **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}, **store.env, **more}
    done = subprocess.run([*prefix, str(dayfly.BUILD / "tools/terrakube_storage"), *map(str, args)], env={k: v for k, v in env.items() if v},
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout.strip()


def file(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


def test_every_object_has_the_name_by_which_the_api_reads_it(store, tmp_path):
    for what, name in OBJECTS.items():
        storage(store, "put", what, name, file(tmp_path, f"the {what}".encode()))
        storage(store, "put", what, name, file(tmp_path, f"the newer {what}".encode()))
    if store.kind == "Api":  # keeps no tools, and gives back plans only
        assert sorted(store.objects.values()) == [b"the newer json", b"the newer output", b"the newer plan", b"the newer raw"]
    else:
        assert store.keys() == KEYS
    for what in ["plan"] if store.kind == "Api" else OBJECTS:
        storage(store, "get", what, OBJECTS[what], tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == f"the newer {what}".encode()
        assert (tmp_path / "back").stat().st_mode & 0o777 == 0o600
    assert storage(store, "get", "binary", "tofu/9.9.9/tofu", tmp_path / "back", code=1).startswith("not-found")
    assert not (tmp_path / "back").exists()


def test_an_apply_gets_the_plan_of_its_job_and_no_other(store, tmp_path):
    place = storage(store, "place")
    assert place.endswith(store.place)
    storage(store, "put", "plan", "-", file(tmp_path, b"the plan"))
    for written in (place, store.theirs):  # by us, or by Terrakube's own executor elsewhere
        storage(store, "get-plan", written, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"the plan"
        (tmp_path / "back").unlink()
    for foreign in (place.replace(WORKSPACE, STEP), place.replace(ORGANIZATION, STEP), place + "x", place.replace("/7/", "/../"), "/etc/passwd", ""):
        assert storage(store, "get-plan", foreign, tmp_path / "back", code=1).startswith("denied ForeignPlan"), foreign
    # Another job of the workspace has a plan of its own, which nobody approved for this one.
    storage(store, "put", "plan", "-", file(tmp_path, b"the plan of job 8"), job="8")
    said = storage(store, "get-plan", storage(store, "place", job="8"), tmp_path / "back", code=1)
    assert said.startswith("denied ForeignPlan") and "no plan of job 7" in said and not (tmp_path / "back").exists()
    absent = place.replace(STEP, STATE)
    assert storage(store, "get-plan", absent, tmp_path / "back", code=1).startswith("not-found")


def test_a_plan_is_not_written_through_a_link_of_the_module(tmp_path):
    store = Local(tmp_path / "store")
    storage(store, "put", "plan", "-", file(tmp_path, b"the plan"))
    (tmp_path / "back").symlink_to(tmp_path / "elsewhere")
    storage(store, "get-plan", storage(store, "place"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"the plan" and not (tmp_path / "elsewhere").exists()
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert "/link" in storage(store, "put", "output", "-", tmp_path / "link", code=1)


def test_a_pipe_in_place_of_the_plan_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "pipe is not a regular file" in storage(Local(tmp_path / "store"), "put", "plan", "-", tmp_path / "pipe", code=1)


def test_an_object_beyond_the_limit_goes_neither_way(tmp_path):
    store = Local(tmp_path / "store")
    huge = file(tmp_path, b"")
    storage(store, "put", "output", "-", huge)
    (kept,) = (tmp_path / "store").rglob("*.tfoutput")
    for path in (huge, kept):
        os.truncate(path, (1 << 30) + 1)
    assert storage(store, "put", "output", "-", huge, code=1).startswith("limit")
    assert storage(store, "get", "output", "-", tmp_path / "back", code=1).startswith("limit")


def test_a_name_cannot_lead_elsewhere(tmp_path):
    store = Local(tmp_path / "store")
    for name in ("../../x", "/x", "a//b", "a b", "", "a/.b"):
        assert storage(store, "put", "json", name, file(tmp_path, b"x"), code=1).startswith("user"), name


def test_keys_of_the_pod_are_taken_where_roles_are_switched_on(s3, tmp_path):
    roles = {"AwsEnableRoleAuth": "true", "AwsTerraformStateAccessKey": "", "AwsTerraformStateSecretKey": ""}
    storage(s3, "put", "output", "-", file(tmp_path, b"x"), AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET, **roles)
    # And only there: other keys of the pod change nothing.
    storage(s3, "put", "output", "-", file(tmp_path, b"y"), AWS_ACCESS_KEY_ID="other", AWS_SECRET_ACCESS_KEY="keys")
    assert "SignatureDoesNotMatch" in storage(s3, "put", "output", "-", file(tmp_path, b"x"), AwsTerraformStateSecretKey="wrong", code=1)


def test_a_busy_store_is_asked_again(s3, tmp_path):
    class Once(Trouble):
        def choose(self):
            return "busy" if not sum(self.met.values()) and super().choose() else None

    with Once(s3.address, share=1.0, seed=1) as way:
        way.KINDS = ("busy",)
        storage(s3, "put", "output", "-", file(tmp_path, b"x"), AwsEndpoint=way.url)
        assert way.met["busy"] == 1
    assert s3.keys() == {f"tfoutput/{ORGANIZATION}/7/{STEP}.tfoutput"}


@pytest.mark.skipif("asan" in str(dayfly.BUILD), reason="a sanitizer needs the memory itself")
def test_a_large_object_needs_no_memory(store, tmp_path):
    large, little = os.urandom(1 << 20) * 24, ("prlimit", f"--data={16 << 20}")
    storage(store, "put", "plan", "-", file(tmp_path, large), prefix=little)
    storage(store, "get", "plan", "-", tmp_path / "back", prefix=little)
    assert (tmp_path / "back").read_bytes() == large
