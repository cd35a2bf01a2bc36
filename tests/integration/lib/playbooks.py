"""Playbooks that are really run, on this machine, by what AWX itself runs them with."""

import json
import pathlib
import subprocess
import tempfile

from lib.dayfly import DEADLINE, tool


def run(playbook, variables, environment):
    """(status in the words of AWX, output) of a playbook, its text, with these extra variables."""
    binaries = tool("ansible")
    with tempfile.TemporaryDirectory() as directory:
        box = pathlib.Path(directory)
        for name, text in (("project/playbook.yml", playbook), ("inventory/hosts", "localhost ansible_connection=local\n"),
                           ("env/extravars", json.dumps({**variables, "ansible_python_interpreter": f"{binaries}/python"}))):
            (box / name).parent.mkdir()
            (box / name).write_text(text)
        # It demands a locale of UTF-8; AWX gives the output without colours.
        own = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": directory, "LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1"}
        ran = subprocess.run([f"{binaries}/ansible-runner", "run", directory, "-p", "playbook.yml", "--ident", "job", "-q"],
                             env={**environment, **own}, capture_output=True, text=True, check=False, timeout=DEADLINE)
        artifacts = box / "artifacts/job"
        assert artifacts.exists(), ran.stdout + ran.stderr
        return (artifacts / "status").read_text(), (artifacts / "stdout").read_text()
