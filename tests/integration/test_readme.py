"""Every command block of README.md, typed into one shell on a terminal, as a reader would."""

import os
import pty
import re
import select
import socket
import subprocess
import time

from lib import dayfly

QUESTION = b"Only 'yes' is accepted:"


def blocks():
    text = (dayfly.ROOT / "README.md").read_text()
    return re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def type_in(script, env, seconds):
    """Runs a script in bash on a terminal, answering questions with yes; (exit code, what the screen showed)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(dayfly.ROOT)
        os.execvpe("bash", ["bash", "-eux", script], env)
    shown, answered, end = b"", 0, time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the last process on the terminal has ended
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode(errors="replace")
            shown += piece
            if shown.count(QUESTION) > answered:
                answered += 1
                os.write(terminal, b"yes\n")
        raise AssertionError("README's commands do not end:\n" + shown.decode(errors="replace")[-5000:])
    finally:
        os.close(terminal)


def test_every_command_block_does_what_it_says(home, tmp_path):
    found = blocks()
    assert len(found) >= 6, "README.md has lost its command blocks"
    script = "".join(found).replace("127.0.0.1:8030", f"127.0.0.1:{free_port()}")
    (tmp_path / "readme.sh").write_text(script)
    home.env["TERM"] = "xterm"
    # `make` finds here what was built once for this machine.
    home.env["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    before = set(dayfly.ROOT.glob("*.yaml"))
    code, shown = type_in(str(tmp_path / "readme.sh"), home.env, 900)
    for made in set(dayfly.ROOT.glob("*.yaml")) - before:
        made.unlink()
    assert code == 0, shown[-5000:]
    for text in ("Hello, world!", "hello-1: Succeeded", "net-1: Succeeded", "executor/net created",
                 "secret/greeting key name set", "# Done:", "job.batch/hello-1-apply", "pod/hello-1-plan-"):
        assert text in shown, f"{text!r} is not in:\n{shown[-5000:]}"
    assert "s3cret" not in shown.replace("echo s3cret", "")


def test_what_the_text_names_is_there():
    text = (dayfly.ROOT / "README.md").read_text()
    for path in set(re.findall(r"\]\(([\w./-]+)\)", text)):
        assert (dayfly.ROOT / path).exists(), f"README.md names {path}"
    help_text = subprocess.run([str(dayfly.DAYFLY), "help"], capture_output=True, text=True, check=True).stdout
    for command in set(re.findall(r"`dayfly ([a-z]+(?: [a-z-]+)?)", text)):
        first = command.split()[0]
        assert re.search(rf"^  {first}\b", help_text, re.M), f"README.md names dayfly {command}"
