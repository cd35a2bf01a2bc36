"""Releases of OpenTofu in a directory, for steps that download their tool."""

import json
import zipfile
from hashlib import sha256

from .providers import platform


class ToolMirror:
    """Releases of a tool that says it is some version, and is the real one in all else."""

    def __init__(self, directory, real):
        self.directory = directory
        self.real = real
        self.index = {"versions": {}}

    def add(self, version, tamper=False):
        folder = self.directory / version
        folder.mkdir(parents=True)
        name = f"tofu_{version}_{platform()}.zip"
        script = f'#!/bin/sh\n[ "$1" = version ] && {{ echo OpenTofu v{version}; exit; }}\nexec {self.real} "$@"\n'
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("README.md", "hello")
            archive.writestr("tofu", script)
        digest = sha256((folder / name).read_bytes() + (b"!" if tamper else b"")).hexdigest()
        (folder / f"tofu_{version}_SHA256SUMS").write_text(f"{'0' * 64}  other.zip\n{digest}  {name}\n")
        self.index["versions"][version] = {
            "shasums": f"tofu_{version}_SHA256SUMS",
            "builds": [{"os": "plan9", "arch": "amd64", "filename": "x", "url": "x"},
                       {"os": "linux", "arch": platform().rsplit("_")[1], "filename": name,
                        "url": f"{version}/{name}"}]}
        (self.directory / "index.json").write_text(json.dumps(self.index))
        return digest
