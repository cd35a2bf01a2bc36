"""Packages of a real provider, as registries and mirrors have them."""

import base64
import hashlib
import json
import os
import shutil
import zipfile

HOST = "registry.invalid"
SOURCE = f"{HOST}/test/simple"
PROVIDED = f"""
terraform {{
  required_providers {{
    simple = {{ source = "{SOURCE}" }}
  }}
}}
resource "simple_resource" "r" {{ value = "x" }}
"""


def platform():
    return f"linux_{'arm64' if os.uname().machine == 'aarch64' else 'amd64'}"


def unpacked(provider, mirror, source=SOURCE, version="1.0.0"):
    """Puts the provider into a filesystem mirror; returns the package's directory."""
    place = mirror / source / version / platform()
    place.mkdir(parents=True)
    shutil.copy(provider, place / f"terraform-provider-simple_v{version}")
    return place


def packed(provider, mirror, source=SOURCE, version="1.0.0"):
    """The same as an archive; returns it."""
    archive = mirror / source / f"terraform-provider-simple_{version}_{platform()}.zip"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as z:
        z.write(provider, f"terraform-provider-simple_v{version}")
    return archive


def h1(package):
    """The checksum of a directory, as lock files record it."""
    lines = "".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(package)}\n"
                    for p in sorted(package.rglob("*")) if p.is_file())
    return "h1:" + base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()


def push(archive, registry, repository, version="1.0.0"):
    """Puts a packed provider into an OCI registry, in the form that OpenTofu reads."""
    def blob(content, media):
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        registry.blobs[digest] = content
        return {"mediaType": media, "digest": digest, "size": len(content)}

    def manifest(document, *names):
        content = json.dumps({"schemaVersion": 2, **document}).encode()
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        for name in (digest, *names):
            registry.manifests[f"/v2/{repository}/manifests/{name}"] = content
        return {"mediaType": document["mediaType"], "digest": digest, "size": len(content)}

    system, architecture = platform().split("_")
    image = {"mediaType": "application/vnd.oci.image.manifest.v1+json",
             "artifactType": "application/vnd.opentofu.provider-target",
             "config": blob(b"{}", "application/vnd.oci.empty.v1+json"),
             "layers": [blob(archive.read_bytes(), "archive/zip")]}
    target = {**manifest(image), "artifactType": image["artifactType"],
              "platform": {"os": system, "architecture": architecture}}
    manifest({"mediaType": "application/vnd.oci.image.index.v1+json",
              "artifactType": "application/vnd.opentofu.provider", "manifests": [target]}, version)
