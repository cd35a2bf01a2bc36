"""Versions of a state in a bucket: `dayfly state list` shows them, `dayfly state rollback` puts one back."""

import json
import re
import urllib.request

import pytest

from lib.backends import Amazon, lock_info
from lib.buckets import ACCESS, S3, SECRET, GoogleStorage
from lib.dayfly import Server

MODULE = """
resource "terraform_data" "one" {
  input = "%s"
}

output "n" {
  value = "%s"
}
"""
ENCRYPTION = """
terraform {
  encryption {
    key_provider "external" "k" {
      command = ["sh", "./key"]
    }
    method "aes_gcm" "m" {
      keys = key_provider.external.k
    }
    state {
      method   = method.aes_gcm.m
      enforced = true
    }
  }
}
"""
KEY = """#!/bin/sh
echo '{"magic":"OpenTofu-External-Key-Provider","version":1}'
cat > /dev/null
echo '{"keys":{"encryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","decryption_key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},"meta":{}}'
"""


class Bucket(Amazon):
    """Its versioning is on. A real server would be better, but versitygw cannot: the delete marker of a lock keeps the next
    lock from being made."""

    def __enter__(self):
        super().__enter__()
        self.s3.put_bucket_versioning(Bucket="states", VersioningConfiguration={"Status": "Enabled"})
        return self

    def storage(self):
        return {"type": "s3", "config": self.config()}

    @staticmethod
    def key(name):
        return f"executors/{name}/terraform.tfstate"

    def state(self, name, **version):
        return json.loads(self.s3.get_object(Bucket="states", Key=self.key(name), **version)["Body"].read())

    def put(self, name, content, suffix=""):
        return self.s3.put_object(Bucket="states", Key=self.key(name) + suffix, Body=json.dumps(content))["VersionId"]


@pytest.fixture(scope="module")
def bucket():
    with Bucket(None) as server:
        yield server


def s3_of(server):
    """Storage in the bucket of versitygw, which checks signatures."""
    return {"type": "s3", "config": {
        "bucket": "blobs", "region": "us-east-1", "endpoints": {"s3": server.url}, "use_path_style": True, "encrypt": False,
        "skip_credentials_validation": True, "skip_metadata_api_check": True, "skip_requesting_account_id": True,
        "skip_region_validation": True, "skip_s3_checksum": True}}


def create(home, name, storage, text="first", **files):
    if not home.json("secret", "list")["items"]:
        for key, value in (("aws_access_key_id", ACCESS), ("aws_secret_access_key", SECRET)):
            home.dayfly("secret", "set", "aws", key, input=value)
    module = home.module(name, MODULE % (text, text), **files)
    home.dayfly("create", "-f", "-", input=json.dumps({
        "apiVersion": "dayfly.dev/v1alpha1", "kind": "Executor", "metadata": {"name": name},
        "spec": {"source": {"url": f"file://{module}", "kind": "directory"}, "runtime": {"name": home.runtime}, "storage": storage,
                 "integrations": [{"provider": "aws", "secretRef": {"name": "aws"}}],
                 "environment": [{"name": "GOOGLE_OAUTH_ACCESS_TOKEN", "value": "any"}]}}))


def apply(home, name, text):
    home.module(name, MODULE % (text, text))
    home.dayfly("run", name, "--auto-approve")


def listed(home, name):
    """[(version, serial, lineage)] of the table in the log, newest first."""
    text = home.dayfly("state", "list", name).stdout
    return [(v, int(serial), lineage) for v, serial, lineage in
            re.findall(r"^\s*(\S+)  \d{4}-\d\d-\d\dT\S+\s+(\d+)\s+\d+\s+(\S+)\s*$", text, re.M)]


def refused(home, name, version, code=1):
    """The reason of a rollback that failed in its run."""
    result = home.dayfly("state", "rollback", name, version, "-o", "json", code=code)
    return json.loads(result.stdout)["run"]["status"]


def test_an_old_version_is_put_back_with_its_lineage_and_a_higher_serial(home, bucket):
    with Server(home):
        create(home, "e", bucket.storage())
        home.dayfly("run", "e", "--auto-approve")
        first = bucket.state("e")
        apply(home, "e", "second")
        second = bucket.state("e")
        versions = listed(home, "e")
        assert versions[0][1:] == (second["serial"], second["lineage"])
        [old] = [v for v, serial, _ in versions if serial == first["serial"]]
        assert bucket.state("e", VersionId=old) == first
        done = home.json("state", "rollback", "e", old)
        assert done["run"]["status"]["reason"] == "StateChanged" and done["outputs"]["n"]["value"] == "first"
        now = bucket.state("e")
        assert (now["lineage"], now["outputs"], now["resources"]) == (first["lineage"], first["outputs"], first["resources"])
        assert now["serial"] > second["serial"]
        assert bucket.states() == [bucket.key("e")] and bucket.lock() is None
        assert listed(home, "e")[0][1] == now["serial"]
        # The configuration is the second one, so the plan wants it again; resources were not touched.
        assert home.json("run", "e", "--action", "dry-run")["planSummary"]["change"] == 1
        # What the state holds already is not written once more.
        again = home.json("state", "rollback", "e", old)["run"]["status"]
        assert again["reason"] == "Completed" and bucket.state("e")["serial"] == now["serial"]
        assert "rollback" in home.dayfly("get", "audit").stdout


def test_a_rollback_that_must_not_be_changes_nothing(home, bucket):
    with Server(home):
        create(home, "r", bucket.storage())
        home.dayfly("run", "r", "--auto-approve")
        state = bucket.state("r")
        foreign = bucket.put("r", {**state, "lineage": "11111111-2222-3333-4444-555555555555"})
        bucket.put("r", state)
        own = listed(home, "r")[-1][0]
        before = bucket.state("r")
        status = refused(home, "r", foreign)
        assert status["reason"] == "StateRefused" and "11111111-2222-3333-4444-555555555555" in status["message"]
        assert refused(home, "r", "01ARZ3NDEKTSV4RRFFQ69G5FAV")["reason"] == "NoSuchVersion"
        bucket.put("r", lock_info(), ".tflock")
        status = refused(home, "r", own)
        assert status["reason"] == "StateLocked" and "eve@elsewhere" in status["message"]
        bucket.s3.delete_object(Bucket="states", Key=bucket.key("r") + ".tflock")
        assert bucket.state("r") == before
        home.dayfly("run", "r", "--action", "destroy", "--auto-approve")
        gone = bucket.state("r")
        result = home.dayfly("state", "rollback", "r", own, code=1)
        assert "is destroyed" in result.stderr and bucket.state("r") == gone


def test_an_encrypted_state_is_rolled_back_and_stays_encrypted(home, bucket):
    with Server(home):
        create(home, "sealed", bucket.storage(), **{"encryption.tf": ENCRYPTION, "key": KEY})
        home.dayfly("run", "sealed", "--auto-approve")
        apply(home, "sealed", "second")
        newest, _, lineage = listed(home, "sealed")[0]
        old = listed(home, "sealed")[-1][0]
        assert old != newest
        home.dayfly("state", "rollback", "sealed", old)
        now = bucket.state("sealed")
        assert "encrypted_data" in now and now["lineage"] == lineage


def test_a_generation_of_a_google_bucket_is_put_back_from_behind_the_strict_wall(home, tmp_path):
    home.env["DAYFLY_ENGINE_LOCAL_ISOLATION"] = "strict"
    with GoogleStorage(tmp_path / "gcs") as gcs, Server(home):
        storage = {"type": "gcs", "config": {"bucket": "blobs", "storage_custom_endpoint": f"{gcs.url}/storage/v1/"}}
        create(home, "g", storage)
        home.dayfly("run", "g", "--auto-approve")
        result = home.dayfly("state", "list", "g", code=1)
        assert "gcloud storage buckets update gs://blobs --versioning" in result.stdout
        request = urllib.request.Request(f"{gcs.url}/storage/v1/b/blobs", method="PATCH", data=b'{"versioning":{"enabled":true}}',
                                         headers={"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=30).close()
        for text in ("second", "third"):
            apply(home, "g", text)
        versions = listed(home, "g")
        serials = [serial for _, serial, _ in versions]
        assert serials == sorted(serials, reverse=True) and len(set(serials)) == len(versions) > 1
        done = home.json("state", "rollback", "g", versions[1][0])
        assert done["outputs"]["n"]["value"] == "second"
        assert listed(home, "g")[0][1] > serials[0]


def test_where_no_versions_are_kept_the_way_out_is_told(home, tmp_path):
    with S3(tmp_path / "s3") as server, Server(home):
        create(home, "u", s3_of(server))
        home.dayfly("run", "u", "--auto-approve")
        result = home.dayfly("state", "list", "u", code=1)
        assert "put-bucket-versioning --bucket blobs" in result.stdout + result.stderr
        create(home, "f", {"type": "local", "path": str(tmp_path / "f.tfstate")})
        result = home.dayfly("state", "list", "f", code=1)
        assert f"in the file {tmp_path / 'f.tfstate'}" in result.stderr
        assert not home.json("get", "runs", "--executor", "f")["items"]
