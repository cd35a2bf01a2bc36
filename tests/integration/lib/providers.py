"""Packages of a real provider, as registries and mirrors have them."""

import base64
import hashlib
import json
import os
import shutil
import zipfile

from . import dayfly, web

HOST = "registry.invalid"
SOURCE = f"{HOST}/test/simple"


def requiring(source):
    """A module with one resource of the provider of this address."""
    return f"""
terraform {{
  required_providers {{
    simple = {{ source = "{source}" }}
  }}
}}
resource "simple_resource" "r" {{ value = "x" }}
"""


PROVIDED = requiring(SOURCE)


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


class Registry(web.Server):
    """A registry of providers, as OpenTofu asks registry.opentofu.org: archives {(type, version, platform): bytes}."""

    HOST = "registry.opentofu.org"

    def __init__(self, pair, archives):
        self.archives, self.sent, self.stall, self.lies = archives, [], None, b""
        super().__init__(RegistryHandler, pair)
        self.url = self.url.replace("127.0.0.1", "localhost")

    def client(self, directory):
        """Variables of a tool for which this is the registry."""
        config = directory / "registry.tfrc"
        config.write_text(f'host "{self.HOST}" {{\n  services = {{ "providers.v1" = "{self.url}/v1/" }}\n}}\n')
        return {"TF_CLI_CONFIG_FILE": str(config), "SSL_CERT_FILE": str(directory / "localhost.pem")}


class RegistryHandler(web.Handler):
    def do_GET(self):
        registry = self.server.owner
        words = self.path.strip("/").split("/")
        if self.path == "/.well-known/terraform.json":
            return self.json({"providers.v1": "/v1/"})
        if words[-1] == "versions":
            found = sorted({(v, p) for t, v, p in registry.archives if t == words[2]})
            return self.json({"versions": [{"version": v, "protocols": ["6.0"], "platforms": [
                dict(zip(("os", "arch"), p.split("_"))) for w, p in found if w == v]} for v in sorted({v for v, _ in found})]})
        if words[-3:-2] == ["download"]:
            kind, version, name = words[2], words[3], "_".join(words[-2:])
            archive = registry.archives[kind, version, name]
            where = f"{registry.url}/files/{kind}/{version}/{name}"
            return self.json({"protocols": ["6.0"], "os": words[-2], "arch": words[-1], "download_url": where,
                              "filename": f"terraform-provider-{kind}_{version}_{name}.zip",
                              "shasum": hashlib.sha256(archive + registry.lies).hexdigest(), "shasums_url": f"{where}/SHA256SUMS",
                              "shasums_signature_url": f"{where}/SHA256SUMS.sig", "signing_keys": {"gpg_public_keys": []}})
        if words[0] == "files" and words[-1].startswith("SHA256SUMS"):
            kind, version = words[1:3]
            return self.answer(200, "".join(
                f"{hashlib.sha256(a).hexdigest()}  terraform-provider-{t}_{v}_{p}.zip\n"
                for (t, v, p), a in registry.archives.items() if (t, v) == (kind, version)).encode())
        if registry.stall and self.path.startswith(registry.stall[0]):
            registry.stall[1].set()
            return registry.stall[2].wait()
        registry.sent.append(tuple(words[1:]))
        return self.answer(200, registry.archives[tuple(words[1:])], Content_Type="application/zip")

    def json(self, document):
        self.answer(200, json.dumps(document).encode(), Content_Type="application/json")


MIRRORED = f"{Registry.HOST}/test/simple"


def mirrored(home, directory):
    """What `dayfly mirror` makes of the provider MIRRORED where there is a network; returns the mirror."""
    archive = packed(dayfly.tool("provider"), directory / "made").read_bytes()
    with Registry(web.self_signed(directory), {("simple", "1.0.0", platform()): archive}) as registry:
        home.dayfly("mirror", directory / "mirror", home.module("net", requiring(MIRRORED)), env=registry.client(directory))
    return directory / "mirror"
