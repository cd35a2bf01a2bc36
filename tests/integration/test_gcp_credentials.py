"""Access tokens of Google Cloud, from where Google's own libraries take them. The token services exist in a cloud alone and are
played here as Google documents them."""

import base64
import json
import os
import subprocess
import time
import urllib.parse

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from lib import dayfly, web


class Google(web.Handler):
    def answer_json(self, status, **members):
        return self.answer(status, json.dumps(members).encode(), Content_Type="application/json")

    def do_GET(self):  # noqa: N802
        good = self.path.startswith("/computeMetadata/v1/instance/service-accounts/default/token") and self.headers["Metadata-Flavor"] == "Google"
        return self.answer_json(200, access_token="of-the-pod", expires_in=3599) if good else self.answer(403)

    def do_POST(self):  # noqa: N802
        body, owner = self.body().decode(), self.server.owner
        if self.path == "/token":
            return self.by_key(urllib.parse.parse_qs(body), owner)
        if self.path == "/sts":
            asked = json.loads(body)
            good = asked["subjectToken"] == "of-the-cluster" and asked["audience"] == "//iam/pool" and asked["subjectTokenType"].endswith(":jwt")
            return self.answer_json(200, access_token="federated", expires_in=3599) if good else self.answer_json(400, error="invalid_grant")
        if self.path == "/impersonate" and self.headers["Authorization"] == "Bearer federated":
            until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
            return self.answer_json(200, accessToken="impersonated", expireTime=until)
        return self.answer(404)

    def by_key(self, asked, owner):
        """As Google checks it: by the public key, for this address, not older than an hour."""
        header, claims, signature = asked["assertion"][0].split(".")
        owner.public.verify(decode(signature), f"{header}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
        header, claims = json.loads(decode(header)), json.loads(decode(claims))
        assert header == {"alg": "RS256", "typ": "JWT", "kid": "key-1"} and claims["iss"] == "dayfly@x.iam.gserviceaccount.com"
        assert claims["aud"] == owner.url + "/token" and claims["exp"] - claims["iat"] == 3600 and abs(claims["iat"] - time.time()) < 60
        assert claims["scope"] == "https://www.googleapis.com/auth/devstorage.read_write"
        return self.answer_json(200, access_token="by-key", expires_in=3599)


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture
def google():
    with web.Server(Google) as server:
        yield server


def token(env, code=0):
    sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    result = subprocess.run([str(dayfly.BUILD / "tools" / "gcp_token")], env={"PATH": os.environ["PATH"], **sanitizers, **env},
                            capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == code, result.stderr
    return result.stderr if code else result.stdout.strip()


def credentials(tmp_path, **members):
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(members))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}


def service_account(google, tmp_path, **members):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    google.public = key.public_key()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    return credentials(tmp_path, **{"type": "service_account", "client_email": "dayfly@x.iam.gserviceaccount.com", "private_key": pem,
                                    "private_key_id": "key-1", "token_uri": google.url + "/token", **members})


def test_the_key_of_a_service_account_signs_for_a_token(google, tmp_path):
    assert token(service_account(google, tmp_path)) == "by-key"


def test_what_a_file_lacks_is_named_and_nothing_of_it_shown(google, tmp_path):
    said = token(service_account(google, tmp_path, private_key="-----BEGIN hunter2"), code=1)
    assert "the private key is not an RSA key in PEM" in said and str(tmp_path / "credentials.json") in said and "hunter2" not in said
    assert "client_email is missing" in token(service_account(google, tmp_path, client_email=None), code=1)
    said = token(credentials(tmp_path, type="authorized_user"), code=1)
    assert 'type: "authorized_user" is neither service_account nor external_account' in said


@pytest.mark.parametrize("format_of", [None, {"type": "json", "subject_token_field_name": "token"}])
def test_a_token_of_the_cluster_is_exchanged(google, tmp_path, format_of):
    file = tmp_path / "token"
    file.write_text(json.dumps({"token": "of-the-cluster"}) if format_of else "of-the-cluster\n")
    members = {"type": "external_account", "audience": "//iam/pool", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
               "token_url": google.url + "/sts", "credential_source": {"file": str(file), **({"format": format_of} if format_of else {})}}
    assert token(credentials(tmp_path, **members)) == "federated"
    assert token(credentials(tmp_path, **members, service_account_impersonation_url=google.url + "/impersonate")) == "impersonated"
    file.write_text("of-somebody-else")
    said = token(credentials(tmp_path, **{**members, "credential_source": {"file": str(file)}}), code=1)
    assert "400" in said and "somebody" not in said


def test_a_pod_without_a_file_asks_its_metadata_service(google):
    assert token({"GCE_METADATA_HOST": google.address}) == "of-the-pod"
