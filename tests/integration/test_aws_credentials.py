"""Keys of AWS from where its own programs take them. STS is moto's; the two services that exist in a cloud alone, of containers and
of instances, are played here as AWS documents them."""

import datetime
import json
import os
import subprocess
import sys
import time
import urllib.request

import pytest

from lib import dayfly, web

KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "hunter2", "Token": "FwoG-token"}


def iso(seconds):
    """The time in so many seconds."""
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def keys(env, lines="", code=0):
    """What the program prints in this environment, four lines a time; for a failure its message."""
    sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    result = subprocess.run([str(dayfly.BUILD / "tools" / "aws_keys")], env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **sanitizers, **env},
                            input=lines, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == code, result.stderr
    if code:
        return result.stderr
    said = result.stdout.split("\n")
    return [said[i:i + 4] for i in range(0, len(said) - 1, 4)]


class Metadata(web.Handler):
    """Of a container at /container, of an instance at /latest. The owner has what they answer, and counts."""

    def keys(self):
        owner = self.server.owner
        owner.asked += 1
        if owner.asked > owner.most:
            return self.answer(503)
        return self.answer(200, json.dumps({**KEYS, "AccessKeyId": f"ASIA{owner.asked}", "Expiration": iso(owner.life)}).encode())

    def do_GET(self):  # noqa: N802
        if self.path == "/container":
            return self.keys() if self.headers["Authorization"] == "pod-token" else self.answer(401)
        if self.headers["X-aws-ec2-metadata-token"] != "session":  # version 1 is not answered
            return self.answer(401)
        if self.path == "/latest/meta-data/iam/security-credentials/":
            return self.answer(200, b"the-role\n")
        return self.keys() if self.path.endswith("/the-role") else self.answer(404)

    def do_PUT(self):  # noqa: N802
        good = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        return self.answer(200, b"session") if good else self.answer(404)


@pytest.fixture
def metadata():
    with web.Server(Metadata) as server:
        server.asked, server.life, server.most = 0, 3600, 100
        yield server


@pytest.fixture
def sts():
    port = dayfly.free_port()
    with subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        dayfly.wait_for("moto to answer", lambda: answers(port))
        yield f"http://127.0.0.1:{port}"
        process.kill()


def answers(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5).status == 200
    except OSError:
        return False


def test_keys_of_the_environment_come_first(tmp_path):
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id=AKIAPROFILE\naws_secret_access_key=p\n")
    env = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials")}
    assert keys(env)[0] == ["AKIAPROFILE", "p", "", "0"]
    env |= {"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "e", "AWS_SESSION_TOKEN": "t"}
    assert keys(env)[0] == ["AKIAENV", "e", "t", "0"]


def test_a_token_of_the_cluster_is_exchanged_for_keys_of_its_role(sts, tmp_path):
    (tmp_path / "token").write_text("header.claims.signature\n")
    env = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/dayfly", "AWS_ENDPOINT_URL_STS": sts}
    access, secret, token, expires = keys(env)[0]
    assert access.startswith("ASIA") and secret and token
    assert time.time() + 600 < int(expires) < time.time() + 4000


def test_a_pod_identity_is_asked_with_its_token(metadata, tmp_path):
    (tmp_path / "token").write_text("pod-token\n")
    env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata.url + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}
    assert keys(env)[0][:3] == ["ASIA1", "hunter2", "FwoG-token"]
    (tmp_path / "token").write_text("of somebody else")
    said = keys(env, code=1)
    assert "AWS credentials (container credentials)" in said and "401" in said and "somebody" not in said


def test_an_instance_is_asked_by_version_two_of_its_metadata(metadata):
    assert keys({"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url})[0][:3] == ["ASIA1", "hunter2", "FwoG-token"]


def test_keys_are_kept_until_shortly_before_they_expire(metadata):
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url}
    assert [k[0] for k in keys(env, "again\nagain\n")] == ["ASIA1"] * 3
    metadata.life = 200  # less than the five minutes before
    assert [k[0] for k in keys(env, "again\nagain\n")] == ["ASIA2", "ASIA3", "ASIA4"]


def test_keys_that_are_still_good_outlast_a_source_that_does_not_answer(metadata):
    metadata.life, metadata.most = 200, 1
    assert [k[0] for k in keys({"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url}, "again\n")] == ["ASIA1", "ASIA1"]
    assert metadata.asked == 2


def test_keys_that_a_service_refused_are_fetched_anew(metadata):
    assert [k[0] for k in keys({"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url}, "refused\nagain\n")] == ["ASIA1", "ASIA2", "ASIA2"]


def test_without_any_source_the_way_out_is_told():
    said = keys({"AWS_EC2_METADATA_DISABLED": "true"}, code=1)
    assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give the pod an identity" in said
